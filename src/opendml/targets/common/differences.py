"""Operands of contractions that are integers of 8 bits less a number, a zero point say.

Targets multiply the integers as they are, and subtract the products with the number from the sums.
"""

from __future__ import annotations

from collections.abc import Sequence

from opendml.compiler.kernel import Kernel, number_of
from opendml.program.node import Node, Operation, ordered
from opendml.program.scalar_type import ScalarType

BYTES = (ScalarType.INT8, ScalarType.UINT8)


def difference(operand: Node) -> tuple[Node, ...] | None:
    """Return integers of 8 bits, and what is subtracted from them, if anything is; None if an operand is
    more."""
    if is_byte(operand):
        return operand.operands
    if operand.operation is Operation.SUBTRACT and is_byte(operand.operands[0]):
        value, subtracted = operand.operands
        return (*value.operands, subtracted)
    return None


def is_byte(value: Node) -> bool:
    """Return whether a value is an integer of 8 bits in a wider type."""
    return value.operation is Operation.CONVERT and value.operands[0].type in BYTES


def is_still(kernel: Kernel, values: Sequence[Node]) -> bool:
    """Return whether values are the same for all that is summed."""
    return not any(
        kernel.loads[number_of(node)].strides[axis]
        for node in ordered(values)
        if node.operation is Operation.SOURCE
        for axis in kernel.axes
    )
