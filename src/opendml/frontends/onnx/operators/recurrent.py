"""Recurrent networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from opendml.errors import Error
from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import permuted, shaped
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.conversion import NotRunnable, OnnxConversion, Result
from opendml.frontends.onnx.operators.activations import recurrent_activations
from opendml.frontends.onnx.operators.quantized import dequantized
from opendml.frontends.onnx.registry import MICROSOFT, converts
from opendml.frontends.onnx.values import Computed, Known
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.descs import desc_class
from opendml.spec.operator_desc import OperatorDesc

_DIRECTIONS = {"forward": "FORWARD", "reverse": "BACKWARD", "bidirectional": "BIDIRECTIONAL"}

_LSTM = "Sigmoid Tanh Tanh"


def _activations(node: OnnxConversion, usual: str) -> list[OperatorDesc]:
    """Return the descs of the activations that a node names, by default the usual ones for each direction.

    Raises:
        Error: unknown names, another number of them, or missing numbers.
    """
    directions = 2 if node.attribute("direction") == "bidirectional" else 1
    try:
        found = recurrent_activations(node.node, usual.split(), directions)
    except NotExpressible as reason:
        raise _refused(node, str(reason)) from reason
    return [desc_class(function.__name__.upper())(**keywords) for _, function, keywords in found]


def _refused(node: OnnxConversion, reason: str) -> Error:
    """Return the error of a network that DirectML does not express. The evaluator knows plain ones alone."""
    names = ("activations", "clip", "input_forget")
    steps = node.sizes(0)[1 if node.flag("layout") else 0]
    is_cut = node.has(4) and any(length != steps for length in node.known_list(4))
    if is_cut or any(node.node.attributes.get(name) for name in names):
        return NotRunnable(f"{node.node}: {reason}; onnx's evaluator ignores lengths, {', '.join(names)}")
    return NotExpressible(reason)


class _Network:
    """The tensors and options that all recurrent operators have, and the outputs on their way back.

    Args:
        node: the node.
        activations: the usual ones of a direction.
        matrices: its weights and its recurrence of sizes (directions, gates * hidden, columns); None: inputs.
    """

    def __init__(
        self,
        node: OnnxConversion,
        activations: str,
        matrices: tuple[GraphTensor, GraphTensor] | None = None,
    ) -> None:
        direction = node.attribute("direction")
        if direction not in _DIRECTIONS:
            raise NotExpressible(f"direction {direction!r}")
        self._node, self._by_batch = node, node.flag("layout")
        if node.type(0) not in (np.float32, np.float16):
            raise _refused(node, f"input 0 is of type {node.type(0).name}")
        tensor = node.tensor(0)
        if len(tensor.sizes) != 3:
            raise NotExpressible(f"input of sizes {list(tensor.sizes)}")
        matrices = matrices or (node.tensor(1), node.tensor(2))
        weight, recurrence = (shaped(each, (1, *each.sizes)) for each in matrices)
        hidden = node.attribute("hidden_size")
        if hidden not in (None, recurrence.sizes[-1]):
            raise NotExpressible(f"hidden_size {hidden}, recurrence of {recurrence.sizes[-1]}")
        steps = permuted(tensor, (1, 0, 2)) if self._by_batch else tensor
        self.operands = (shaped(steps, (1, *steps.sizes)), weight, recurrence, self.of_directions(3))
        lengths = self.of_directions(4)
        self.lengths = (
            None if lengths is None else dml.cast(shaped(lengths, (1, *lengths.sizes)), output_type="UINT32")
        )
        self.options: dict[str, Any] = {
            "activation_descs": _activations(node, activations),
            "direction": _DIRECTIONS[direction],
            "output_sequence": node.wants(0) or not any(node.wants(each) for each in (1, 2)),
            "output_single": node.wants(1),
        }

    def of_directions(self, number: int) -> GraphTensor | None:
        """Return an optional input with a row for each direction."""
        given = self._node.optional(number)
        return None if given is None else shaped(given, (1, 1, *given.sizes))

    def state(self, number: int) -> GraphTensor | None:
        """Return an optional input with the state before the first step."""
        given = self._node.optional(number)
        if given is None:
            return None
        turned = permuted(given, (1, 0, 2)) if self._by_batch else given
        return shaped(turned, (1, *turned.sizes))

    def outputs(self, sequence: GraphTensor | None, *states: GraphTensor | None) -> Result:
        """Return all steps, and states behind the last one, in ONNX's order."""
        node = self._node
        results: list[Computed | None] = [None]
        if sequence is not None:
            results = [node.result(permuted(sequence, (2, 0, 1, 3)) if self._by_batch else sequence)]
        for state in states:
            flat = None if state is None else shaped(state, state.sizes[1:])
            turned = flat if flat is None or not self._by_batch else permuted(flat, (1, 0, 2))
            results.append(None if turned is None else node.result(turned))
        return tuple(results)


def _without_steps(node: OnnxConversion) -> Result | None:
    """Return the outputs of a network for sequences without steps, which leave states as they are; None: they
    have steps."""
    sizes, by_batch = node.sizes(0), node.flag("layout")
    if len(sizes) != 3 or sizes[1 if by_batch else 0]:
        return None
    directions, hidden = node.sizes(1)[0], node.required("hidden_size")
    batch = sizes[0 if by_batch else 1]
    states = (batch, directions, hidden) if by_batch else (directions, batch, hidden)
    sequence = node.empty((batch, 0, directions, hidden) if by_batch else (0, *states))
    zeros = Known(np.zeros(states, node.type(0)))
    given = [] if 0 in states else [number for number in (5, 6) if node.has(number)]
    return sequence, *[node.result(node.tensor(each)) if each in given else zeros for each in (5, 6)]


def _require_no_clip(node: OnnxConversion) -> None:
    """Refuse a network that `clipped_nodes` has not taken."""
    if node.attribute("clip"):
        raise _refused(node, "DirectML clips in LSTM alone")


@converts("RNN", since=7, to="RNN")
def rnn(node: OnnxConversion) -> Result:
    """Convert RNN: h = f(X W + h R + b)."""
    return _without_steps(node) or _rnn(node, _Network(node, "Tanh"))


def _rnn(node: OnnxConversion, network: _Network) -> Result:
    _require_no_clip(node)
    result = dml.rnn(*network.operands, network.state(5), network.lengths, **network.options)
    return network.outputs(result.output_sequence, result.output_single)


@converts("GRU", since=7, to="GRU")
def gru(node: OnnxConversion) -> Result:
    """Convert GRU, with gates for update and reset."""
    return _without_steps(node) or _gru(node, _Network(node, "Sigmoid Tanh"))


def _gru(node: OnnxConversion, network: _Network) -> Result:
    _require_no_clip(node)
    options = {**network.options, "linear_before_reset": node.flag("linear_before_reset")}
    result = dml.gru(*network.operands, network.state(5), network.lengths, **options)
    return network.outputs(result.output_sequence, result.output_single)


def _require_no_output_peephole(node: OnnxConversion) -> None:
    if not node.has(7):
        return
    hidden = node.sizes(7)[-1] // 3
    if not node.is_known(7) or np.any(node.known(7)[:, hidden : 2 * hidden]):
        raise _refused(node, "the output gate's peephole of DirectML sees the cell before the step")


@converts("LSTM", since=7, to="LSTM")
def lstm(node: OnnxConversion) -> Result:
    """Convert LSTM, with gates for input, output and forgetting, and a cell."""
    return _without_steps(node) or _lstm(node, _Network(node, _LSTM))


@converts("DynamicQuantizeLSTM", domain=MICROSOFT, to="LSTM DEQUANTIZE")
def dynamic_quantize_lstm(node: OnnxConversion) -> Result:
    """Convert LSTM with matrices of 8 bits. Inputs and states stay floats, which ONNX Runtime quantizes."""
    weight, recurrence = (_floats(node, *numbers) for numbers in ((1, 8, 9), (2, 10, 11)))
    return _lstm(node, _Network(node, _LSTM, (weight, recurrence)))


def _floats(node: OnnxConversion, matrix: int, scale: int, zero: int) -> GraphTensor:
    """Return the float32 matrices, transposed, of inputs: (directions, columns, gates * hidden) of 8 bits.

    Scale and zero point are numbers for a direction, or rows for its columns.
    """
    directions, _, columns = node.sizes(matrix)
    parts = []
    for number in (scale, zero):
        if node.has(number):
            sizes = node.sizes(number)
            if tuple(sizes) not in ((directions,), (directions, columns)):
                allowed = f"[{directions}] or [{directions}, {columns}]"
                raise NotExpressible(f"input {number} of sizes {list(sizes)}; must be {allowed}")
            parts.append(shaped(node.tensor(number), (directions, 1, columns if len(sizes) == 2 else 1)))
    if not node.has(scale):
        raise NotExpressible(f"input {scale}, a scale, is missing")
    result = dequantized(node.tensor(matrix), parts[0], parts[1] if len(parts) > 1 else None)
    return permuted(result, (0, 2, 1))


def _lstm(node: OnnxConversion, network: _Network) -> Result:
    _require_no_output_peephole(node)
    clip = node.attribute("clip") or 0.0
    result = dml.lstm(
        *network.operands,
        network.state(5),
        network.state(6),
        network.lengths,
        network.of_directions(7),
        **network.options,
        clip_threshold=clip,
        use_clip_threshold=clip > 0,
        couple_input_forget=node.flag("input_forget"),
        output_cell_single=node.wants(2),
    )
    return network.outputs(result.output_sequence, result.output_single, result.output_cell_single)
