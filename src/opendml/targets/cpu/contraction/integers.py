"""In which types the operands of sums of products of integers are packed."""

from __future__ import annotations

from dataclasses import dataclass

from opendml.compiler.kernel import Kernel, number_of
from opendml.program.node import Node, Operation, ordered
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.contraction.arithmetic import BYTES, has_bytes, has_pairs
from opendml.targets.cpu.machine import machine


@dataclass(frozen=True, slots=True)
class Packed:
    """What of an operand is packed, in a type; of 8 bits the elements, then what is subtracted from them, if
    anything is."""

    type: ScalarType
    values: tuple[Node, ...]


def packed_operands(kernel: Kernel, a: Node, b: Node) -> tuple[Packed, Packed] | None:
    """How a, whose elements are broadcast, and b are packed on this machine; None: they are not."""
    if a.type is ScalarType.FLOAT32:
        return Packed(a.type, (a,)), Packed(b.type, (b,))
    if a.type is not ScalarType.INT32:
        return None
    host = machine()
    differences = _difference(a), _difference(b)
    if has_bytes(host) and all(each and _is_still(kernel, each[1:]) for each in differences):
        first, second = (Packed(type, each) for type, each in zip(BYTES, differences, strict=True) if each)
        return first, second
    if has_pairs(host) and all(each and all(map(_is_byte, each[1:])) for each in differences):
        return Packed(ScalarType.INT16, (a,)), Packed(ScalarType.INT16, (b,))
    return Packed(a.type, (a,)), Packed(b.type, (b,))


def _difference(operand: Node) -> tuple[Node, ...] | None:
    """Integers of 8 bits, and what is subtracted from them, if anything is; None if an operand is more."""
    if _is_byte(operand):
        return operand.operands
    if operand.operation is Operation.SUBTRACT and _is_byte(operand.operands[0]):
        value, subtracted = operand.operands
        return (*value.operands, subtracted)
    return None


def _is_byte(value: Node) -> bool:
    """Whether a value is an integer of 8 bits in a wider type."""
    return value.operation is Operation.CONVERT and value.operands[0].type in BYTES


def _is_still(kernel: Kernel, values: tuple[Node, ...]) -> bool:
    """Whether values are the same for all that is summed."""
    return not any(
        kernel.loads[number_of(node)].strides[axis]
        for node in ordered(values)
        if node.operation is Operation.SOURCE
        for axis in kernel.axes
    )
