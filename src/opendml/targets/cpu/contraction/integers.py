"""The types in which operands of sums of products of integers are packed."""

from __future__ import annotations

from opendml.compiler.kernel import Kernel
from opendml.late_dataclass import dataclass
from opendml.program.node import Node
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.differences import difference, is_byte, is_still
from opendml.targets.cpu.contraction.arithmetic import BYTES, has_bytes, has_pairs
from opendml.targets.cpu.machine import machine


@dataclass(frozen=True, slots=True)
class Packed:
    """The values of an operand that are packed in a type: the elements, and what is subtracted from 8-bit
    elements, if anything is."""

    type: ScalarType
    values: tuple[Node, ...]


def packed_operands(kernel: Kernel, a: Node, b: Node) -> tuple[Packed, Packed] | None:
    """Return how A and B are packed on this machine; None if their type is not multiplied in tiles."""
    if a.type is ScalarType.FLOAT32:
        return Packed(a.type, (a,)), Packed(b.type, (b,))
    if a.type is not ScalarType.INT32:
        return None
    host = machine()
    differences = difference(a), difference(b)
    if has_bytes(host) and all(each and is_still(kernel, each[1:]) for each in differences):
        first, second = (Packed(type, each) for type, each in zip(BYTES, differences, strict=True) if each)
        return first, second
    if has_pairs(host) and all(each and all(map(is_byte, each[1:])) for each in differences):
        return Packed(ScalarType.INT16, (a,)), Packed(ScalarType.INT16, (b,))
    return Packed(a.type, (a,)), Packed(b.type, (b,))
