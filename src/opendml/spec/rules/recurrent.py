"""Recurrent networks."""

from __future__ import annotations

from collections.abc import Mapping

from opendml.spec.enums import RecurrentNetworkDirection
from opendml.spec.fault import Fault
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules.declared import rule, shape
from opendml.spec.rules.rule import Broken, Size, Sizes, expect
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.wording import counted

_REASON = "the input, hidden size and direction given"


@rule("RNN", gates=1)
@rule("GRU", gates=3)
@rule("LSTM", gates=4)
def recurrent_sizes(gates: int, direction: RecurrentNetworkDirection, **given: TensorDesc) -> Broken:
    """All sizes follow from the input's, the hidden size (the last of RecurrenceTensor) and the direction."""
    _, _, batch, features = given["input_tensor"].sizes
    hidden, directions = given["recurrence_tensor"].sizes[3], _directions(direction)
    state = (1, directions, batch, hidden)
    expected: dict[str, tuple[Size, ...]] = {
        "input_tensor": (1, None, None, None),
        "weight_tensor": (1, directions, gates * hidden, features),
        "recurrence_tensor": (1, directions, gates * hidden, hidden),
        "bias_tensor": (1, 1, directions, 2 * gates * hidden),
        "hidden_init_tensor": state,
        "cell_mem_init_tensor": state,
        "sequence_lengths_tensor": (1, 1, 1, batch),
        "peephole_tensor": (1, 1, directions, 3 * hidden),
    }
    for name, tensor in given.items():
        yield from expect(name, tensor, expected[name], _REASON)


@shape("RNN", "GRU", "LSTM", reason=_REASON)
def recurrent_output_sizes(
    input_tensor: TensorDesc, recurrence_tensor: TensorDesc, direction: RecurrentNetworkDirection
) -> Mapping[str, Sizes]:
    """A state for each direction and batch; in the sequence, also for each step."""
    _, steps, batch, _ = input_tensor.sizes
    hidden, directions = recurrence_tensor.sizes[3], _directions(direction)
    state = (1, directions, batch, hidden)
    return {
        "output_sequence_tensor": (steps, directions, batch, hidden),
        "output_single_tensor": state,
        "output_cell_single_tensor": state,
    }


@rule("RNN", each=1)
@rule("GRU", each=2)
@rule("LSTM", each=3)
def activations_of_gates(
    each: int, activation_descs: tuple[OperatorDesc, ...], direction: RecurrentNetworkDirection
) -> Broken:
    """For each direction RNN has one activation, GRU two, LSTM three."""
    needed = each * _directions(direction)
    if len(activation_descs) != needed:
        given = counted(len(activation_descs), "activation", "activations")
        yield "activation_descs", Fault(given, f"must be {needed} for {direction.name}")


@rule("RNN", "GRU", "LSTM")
def some_output(
    output_sequence_tensor: TensorDesc | None = None,
    output_single_tensor: TensorDesc | None = None,
    output_cell_single_tensor: TensorDesc | None = None,
) -> Broken:
    """There is at least one output.

    DirectML's pages are silent; ONNX Runtime's DirectML provider demands it.
    """
    if output_sequence_tensor is output_single_tensor is output_cell_single_tensor is None:
        yield "output_sequence_tensor", Fault("missing, as are the other outputs", "at least one is required")


def _directions(direction: RecurrentNetworkDirection) -> int:
    return 2 if direction is RecurrentNetworkDirection.BIDIRECTIONAL else 1
