"""LSTM and GRU as one operator each of PyTorch's graphs (`frontends.torch.recurrent`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import joined, permuted, shaped
from opendml.frontends.torch.registry import Result, Tensor, TorchNode, converts
from opendml.spec import descs

_LSTM_GATES = (0, 3, 1, 2)
"""PyTorch has the gates input, forget, cell, output; DirectML input, output, forget, cell."""
_GRU_GATES = (1, 0, 2)
"""PyTorch has the gates reset, update, new; DirectML update, reset, new."""


@converts("opendml.lstm.default", to="LSTM")
def lstm(node: TorchNode, x: Tensor, states: Sequence[Tensor], *options: Any) -> Result:
    """Convert an LSTM, layer after layer."""

    def layer(*operands: Any, **keywords: Any) -> Sequence[Tensor]:
        x, weights, recurrence, bias, (hidden, cell), functions = operands
        activations = [descs.ActivationSigmoid(), descs.ActivationTanh(), descs.ActivationTanh()] * functions
        found: Any = dml.lstm(
            x, weights, recurrence, bias, hidden, cell, activation_descs=activations,
            output_cell_single=True, **keywords,
        )  # fmt: skip
        return found.output_sequence, found.output_single, found.output_cell_single

    return _network(node, layer, _LSTM_GATES, x, states, *options)


@converts("opendml.gru.default", to="GRU")
def gru(node: TorchNode, x: Tensor, states: Sequence[Tensor], *options: Any) -> Result:
    """Convert a GRU, layer after layer."""

    def layer(*operands: Any, **keywords: Any) -> Sequence[Tensor]:
        x, weights, recurrence, bias, (hidden,), functions = operands
        activations = [descs.ActivationSigmoid(), descs.ActivationTanh()] * functions
        found: Any = dml.gru(
            x, weights, recurrence, bias, hidden,
            activation_descs=activations, linear_before_reset=True, **keywords,
        )  # fmt: skip
        return found.output_sequence, found.output_single

    return _network(node, layer, _GRU_GATES, x, states, *options)


def _network(
    node: TorchNode,
    layer: Callable[..., Sequence[Tensor]],
    gates: tuple[int, ...],
    x: Tensor,
    states: Sequence[Tensor],
    weights: Sequence[Tensor],
    has_biases: bool,
    layers: int,
    is_bidirectional: bool,
    batch_first: bool,
) -> Result:
    """Return the sequence of the last layer, and the last states of all layers.

    Args:
        node: the node.
        layer: a function that adds one layer. It returns the sequence (steps, directions, batch, hidden) and
            the last states (1, directions, batch, hidden).
        gates: PyTorch's numbers of DirectML's gates.
        x, states, weights, has_biases, layers, is_bidirectional, batch_first: the operator's arguments.
    """
    directions = 2 if is_bidirectional else 1
    each = 4 if has_biases else 2
    sequence = permuted(x, (1, 0, 2)) if batch_first else x
    lasts: list[Sequence[Tensor]] = []
    for number in range(layers):
        first = number * directions * each
        own = [weights[first + way * each : first + (way + 1) * each] for way in range(directions)]
        packed = [
            shaped(
                joined([_ordered(way[kind], gates) for way in own], 0), (1, directions, *own[0][kind].sizes)
            )
            for kind in range(2)
        ]
        bias = None
        if has_biases:
            parts = [_ordered(way[kind], gates) for way in own for kind in (2, 3)]
            bias = shaped(joined(parts, 0), (1, 1, directions, 2 * own[0][2].sizes[0]))
        before = [
            shaped(state[number * directions : (number + 1) * directions], (1, directions, *state.sizes[1:]))
            for state in states
        ]
        found, *last = layer(
            shaped(sequence, (1, *sequence.sizes)), *packed, bias, before, directions,
            direction="BIDIRECTIONAL" if is_bidirectional else "FORWARD",
            output_sequence=True, output_single=True,
        )  # fmt: skip
        steps, _, batch, hidden = found.sizes
        sequence = shaped(permuted(found, (0, 2, 1, 3)), (steps, batch, directions * hidden))
        lasts.append([shaped(state, state.sizes[1:]) for state in last])
    result = permuted(sequence, (1, 0, 2)) if batch_first else sequence
    return result, *(joined(list(several), 0) for several in zip(*lasts, strict=True))


def _ordered(tensor: Tensor, gates: tuple[int, ...]) -> Tensor:
    """Return the rows of all gates in DirectML's order."""
    hidden = tensor.sizes[0] // len(gates)
    return joined([tensor[gate * hidden : (gate + 1) * hidden] for gate in gates], 0)
