"""The prices by which the compiler chooses between storing a value and computing it again."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from dataclasses import dataclass

from opendml.compiler.view_algebra import IN_MEMORY
from opendml.program.node import FUNCTIONS, Node, Operation

FUNCTION_OPERATIONS = 16
"""Operations that a transcendental function counts for: about the length of its polynomial."""

MOST_COUNTED = 512
"""Nodes whose operations are counted for one value, at most, so that counting takes linear time."""
GIVEN = frozenset({Operation.SOURCE, Operation.CONSTANT, Operation.PARAMETER, Operation.INDEX})
"""Operations that compute nothing."""
FREE_IN_LOADS = frozenset({Operation.CONVERT, Operation.BITCAST, Operation.ROUND, Operation.EXPAND})
"""Operations that loads do at no cost."""
_LEAVES = IN_MEMORY | GIVEN
_INSTRUCTIONS = {**dict.fromkeys(FUNCTIONS, FUNCTION_OPERATIONS), Operation.ROUND: 2}
"""Instructions of operations that do not take one. A rounding takes none, but if it counts less, merging by
the first fit leaves 16 rather than 13 kernels of ROI_ALIGN in FLOAT16."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a target, in operations on one element.

    They only order alternatives, and are constants of a target: kernels, and so the bits of sums, depend on
    them.

    Args:
        byte: the operations in the time that a byte takes to be read or written. Cores of x86 with AVX2 or
            AVX-512, and GPUs from A100 to H200, have 4 to 9.
        least_stored: the fewest elements of a value that is stored to save operations. For fewer elements, a
            kernel takes longer to begin than to run.
    """

    byte: float = 4.0
    least_stored: int = 1 << 14


def operation_count(operations: Iterable[Operation]) -> int:
    """Return about how many instructions these operations take."""
    return sum(_INSTRUCTIONS.get(each, 1) for each in operations)


def costs_more_again(value: Node, kernels: int, prices: Prices, held: Container[int] = ()) -> bool:
    """Return whether computing an element-wise value again costs more than storing it.

    Each kernel that computes it pays for its operations and for the bytes that it is made of. If it is
    stored, one kernel pays for these and for the value's bytes, and each kernel for reading these.

    Args:
        value: the value.
        kernels: how many kernels need it.
        prices: those of the target.
        held: the identities of values in memory.
    """
    if kernels < 2 or math.prod(value.sizes) < prices.least_stored:
        return False
    own = prices.byte * value.type.bytes
    enough = own * (kernels + 1) / (kernels - 1)
    return (kernels - 1) * _operations(value, held, prices, enough) > own * (kernels + 1)


def _operations(value: Node, held: Container[int], prices: Prices, enough: float) -> float:
    """Return the operations for an element of a value, and the price of the bytes that it is made of.

    Counting ends when there are more than `enough`.
    """
    operations, read = 0, dict[int, Node]()
    pending, seen = [value], {id(value)}
    while pending and operations <= enough and len(seen) <= MOST_COUNTED:
        node = pending.pop()
        operands = node.operands
        if node.operation in _LEAVES or (id(node) in held and node is not value):
            base = node
            while base.operation in (Operation.VIEW, Operation.RESHAPE) and id(base) not in held:
                base = base.operands[0]
            if base.operation not in GIVEN or base.operation is Operation.SOURCE:
                read[id(base)] = base
            # A view computes its indices and its mask.
            operands = node.operands[1:] if node.operation is Operation.VIEW else ()
        if node.sizes == value.sizes and node.operation not in GIVEN:
            operations += FUNCTION_OPERATIONS if node.operation in FUNCTIONS else 1
        new = [each for each in operands if id(each) not in seen]
        seen.update(map(id, new))
        pending += new
    elements = math.prod(value.sizes)
    shares = (each.type.bytes * min(1.0, math.prod(each.sizes) / elements) for each in read.values())
    return operations + prices.byte * sum(shares)
