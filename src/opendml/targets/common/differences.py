"""Operands of sums of products that are integers of 8 bits less a number: the integers are multiplied as they
are, and what the number amounts to is subtracted from the sums."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.compiler.kernel import Kernel, number_of
from opendml.program.node import Node, Operation, ordered
from opendml.program.scalar_type import ScalarType

BYTES = (ScalarType.INT8, ScalarType.UINT8)


def difference(operand: Node) -> tuple[Node, ...] | None:
    """Integers of 8 bits, and what is subtracted from them, if anything is; None if an operand is more."""
    if is_byte(operand):
        return operand.operands
    if operand.operation is Operation.SUBTRACT and is_byte(operand.operands[0]):
        value, subtracted = operand.operands
        return (*value.operands, subtracted)
    return None


def is_byte(value: Node) -> bool:
    """Whether a value is an integer of 8 bits in a wider type."""
    return value.operation is Operation.CONVERT and value.operands[0].type in BYTES


def is_still(kernel: Kernel, values: Sequence[Node]) -> bool:
    """Whether values are the same for all that is summed."""
    return not any(
        kernel.loads[number_of(node)].strides[axis]
        for node in ordered(values)
        if node.operation is Operation.SOURCE
        for axis in kernel.axes
    )
