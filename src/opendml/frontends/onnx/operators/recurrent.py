"""Recurrent networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

import opendml as dml
from opendml.errors import Error
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, NotRunnable, Result
from opendml.frontends.onnx.operators.views import permuted, shaped
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import Computed
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType
from opendml.spec.operator_desc import OperatorDesc

_DIRECTIONS = {"forward": "FORWARD", "reverse": "BACKWARD", "bidirectional": "BIDIRECTIONAL"}

_PLAIN: dict[str, Callable[[], OperatorDesc]] = {
    "relu": dml.descs.ActivationRelu,
    "sigmoid": dml.descs.ActivationSigmoid,
    "softsign": dml.descs.ActivationSoftsign,
    "tanh": dml.descs.ActivationTanh,
}
_ALPHA: dict[str, tuple[Callable[..., OperatorDesc], float | None]] = {
    "elu": (dml.descs.ActivationElu, 1.0),
    "leakyrelu": (dml.descs.ActivationLeakyRelu, 0.01),
    "thresholdedrelu": (dml.descs.ActivationThresholdedRelu, 1.0),
}
_ALPHA_BETA: dict[str, tuple[Callable[..., OperatorDesc], float | None, float | None]] = {
    "affine": (dml.descs.ActivationLinear, None, None),
    "hardsigmoid": (dml.descs.ActivationHardSigmoid, 0.2, 0.5),
    "scaledtanh": (dml.descs.ActivationScaledTanh, None, None),
}


def _activations(node: Conversion, defaults: Sequence[str]) -> list[OperatorDesc]:
    """What `activations` names, by default the same for each direction. Those that take alpha or beta take
    the next of the lists.

    Raises:
        NotExpressible: unknown names, another number of them, or missing numbers.
    """
    names = node.attribute("activations", None) or list(defaults) * _directions(node)
    if len(names) != len(defaults) * _directions(node):
        raise NotExpressible(f"{len(names)} activations for {_directions(node)} directions")
    alphas: Iterator[float] = iter(node.attribute("activation_alpha", []))
    betas: Iterator[float] = iter(node.attribute("activation_beta", []))
    try:
        return [_activation(name.lower(), alphas, betas) for name in names]
    except NotExpressible as reason:
        raise _outside(node, str(reason)) from reason


def _activation(name: str, alphas: Iterator[float], betas: Iterator[float]) -> OperatorDesc:
    if name in _PLAIN:
        return _PLAIN[name]()
    if name == "softplus":
        return dml.descs.ActivationSoftplus(steepness=1.0)
    if name in _ALPHA:
        make, alpha = _ALPHA[name]
        return make(alpha=_number(name, alphas, alpha))
    if name in _ALPHA_BETA:
        make, alpha, beta = _ALPHA_BETA[name]
        return make(alpha=_number(name, alphas, alpha), beta=_number(name, betas, beta))
    raise NotExpressible(f"activation {name!r}")


def _number(name: str, given: Iterator[float], default: float | None) -> float:
    number = next(given, default)
    if number is None:
        raise NotExpressible(f"activation {name!r} without its alpha and beta")
    return number


def _outside(node: Conversion, reason: str) -> Error:
    """What is raised where DirectML does not say it: the evaluator knows plain networks alone."""
    names = ("activations", "clip", "input_forget")
    steps = node.sizes(0)[1 if node.attribute("layout", 0) else 0]
    is_cut = node.has(4) and any(length != steps for length in node.known_list(4))
    if is_cut or any(node.attribute(name, None) for name in names):
        return NotRunnable(f"{node.node}: {reason}; onnx's evaluator ignores lengths, {', '.join(names)}")
    return NotExpressible(reason)


def _directions(node: Conversion) -> int:
    return 2 if node.attribute("direction", "forward") == "bidirectional" else 1


class _Network:
    """The tensors that all recurrent operators have, as DirectML has them, and outputs on their way back."""

    def __init__(self, node: Conversion) -> None:
        direction = node.attribute("direction", "forward")
        if direction not in _DIRECTIONS:
            raise NotExpressible(f"direction {direction!r}")
        self._node, self._by_batch = node, bool(node.attribute("layout", 0))
        self.direction = _DIRECTIONS[direction]
        if node.type(0) not in (np.float32, np.float16):
            raise _outside(node, f"input 0 is of type {node.type(0).name}")
        tensor = node.tensor(0)
        if len(tensor.sizes) != 3:
            raise NotExpressible(f"input of sizes {list(tensor.sizes)}")
        steps = permuted(tensor, (1, 0, 2)) if self._by_batch else tensor
        self.input = shaped(steps, (1, *steps.sizes))
        self.weight, self.recurrence = (
            shaped(each, (1, *each.sizes)) for each in (node.tensor(1), node.tensor(2))
        )
        hidden = self.recurrence.sizes[-1]
        if node.attribute("hidden_size", hidden) != hidden:
            raise NotExpressible(
                f"hidden_size {node.attribute('hidden_size', hidden)}, recurrence of {hidden}"
            )
        self.bias = self.of_directions(3)
        self.lengths = self._lengths()

    def _lengths(self) -> GraphTensor | None:
        given = self._node.optional(4)
        if given is None:
            return None
        return dml.cast(shaped(given, (1, 1, 1, *given.sizes)), output_type=TensorDataType.UINT32)

    def of_directions(self, number: int) -> GraphTensor | None:
        """An optional input with a row for each direction."""
        given = self._node.optional(number)
        return None if given is None else shaped(given, (1, 1, *given.sizes))

    def state(self, number: int) -> GraphTensor | None:
        """An optional input with the state before the first step."""
        given = self._node.optional(number)
        if given is None:
            return None
        turned = permuted(given, (1, 0, 2)) if self._by_batch else given
        return shaped(turned, (1, *turned.sizes))

    def wants(self, number: int) -> bool:
        """Whether to compute an output: one at least, the first if the node has none."""
        node = self._node
        return node.wants(number) or (number == 0 and not any(node.wants(each) for each in (1, 2)))

    def sequence(self, tensor: GraphTensor | None) -> Computed | None:
        """All steps in ONNX's order."""
        if tensor is None:
            return None
        return self._node.result(permuted(tensor, (2, 0, 1, 3)) if self._by_batch else tensor)

    def last(self, tensor: GraphTensor | None) -> Computed | None:
        """A state behind the last step in ONNX's order."""
        if tensor is None:
            return None
        flat = shaped(tensor, tensor.sizes[1:])
        return self._node.result(permuted(flat, (1, 0, 2)) if self._by_batch else flat)


def _require_no_clip(node: Conversion) -> None:
    if node.attribute("clip", 0.0):
        raise _outside(node, "DirectML clips in LSTM alone")


@converts("RNN", since=7)
def rnn(node: Conversion) -> Result:
    """h = f(X W + h R + b)."""
    network = _Network(node)
    _require_no_clip(node)
    result = dml.rnn(
        network.input,
        network.weight,
        network.recurrence,
        network.bias,
        network.state(5),
        network.lengths,
        activation_descs=_activations(node, ["Tanh"]),
        direction=network.direction,
        output_sequence=network.wants(0),
        output_single=network.wants(1),
    )
    return network.sequence(result.output_sequence), network.last(result.output_single)


@converts("GRU", since=7)
def gru(node: Conversion) -> Result:
    """Gates for update and reset."""
    network = _Network(node)
    _require_no_clip(node)
    result = dml.gru(
        network.input,
        network.weight,
        network.recurrence,
        network.bias,
        network.state(5),
        network.lengths,
        activation_descs=_activations(node, ["Sigmoid", "Tanh"]),
        direction=network.direction,
        linear_before_reset=bool(node.attribute("linear_before_reset", 0)),
        output_sequence=network.wants(0),
        output_single=network.wants(1),
    )
    return network.sequence(result.output_sequence), network.last(result.output_single)


def _require_no_output_peephole(node: Conversion) -> None:
    if not node.has(7):
        return
    hidden = node.sizes(7)[-1] // 3
    if not node.is_known(7) or np.any(node.known(7)[:, hidden : 2 * hidden]):
        raise _outside(node, "the output gate's peephole of DirectML sees the cell before the step")


@converts("LSTM", since=7)
def lstm(node: Conversion) -> Result:
    """Gates for input, output and forgetting, and a cell."""
    _require_no_output_peephole(node)
    network, clip = _Network(node), node.attribute("clip", 0.0)
    result = dml.lstm(
        network.input,
        network.weight,
        network.recurrence,
        network.bias,
        network.state(5),
        network.state(6),
        network.lengths,
        network.of_directions(7),
        activation_descs=_activations(node, ["Sigmoid", "Tanh", "Tanh"]),
        direction=network.direction,
        clip_threshold=clip,
        use_clip_threshold=clip > 0,
        couple_input_forget=bool(node.attribute("input_forget", 0)),
        output_sequence=network.wants(0),
        output_single=network.wants(1),
        output_cell_single=network.wants(2),
    )
    return (
        network.sequence(result.output_sequence),
        network.last(result.output_single),
        network.last(result.output_cell_single),
    )
