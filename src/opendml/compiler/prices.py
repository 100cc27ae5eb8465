"""The prices by which the compiler chooses between storing a value and computing it again.

Views of values in memory, and of element-wise values that are cheap to compute again, cost nothing. A value
is stored if it is made of reductions. It is stored, too, if computing it again costs more, for each element
that views repeat or in each kernel that reads it. It is stored where it takes the fewest bits.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import islice

from opendml.compiler.view_algebra import IN_MEMORY, above_memory, computed_operands, walk
from opendml.late_dataclass import dataclass
from opendml.program.node import COLLECTIVE, FUNCTIONS, Node, Operation, View
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import are_same, hint_of, is_surely_less

FUNCTION_OPERATIONS = 16
"""Operations that a transcendental function counts for: about the length of its polynomial."""

MOST_COUNTED = 512
"""Nodes whose operations are counted for one value, at most, so that counting takes linear time."""
GIVEN = frozenset({Operation.SOURCE, Operation.CONSTANT, Operation.PARAMETER, Operation.INDEX})
"""Operations that compute nothing."""
FREE_IN_LOADS = frozenset({Operation.CONVERT, Operation.BITCAST, Operation.ROUND, Operation.EXPAND})
"""Operations that loads do at no cost."""
MOST_COPIED = 128
"""Nodes that a view or a reshape copies when it moves below a value, at most. A value with more is stored, so
that a program grows by this factor at most: `x + x[::-1]`, applied k times, would take 2^k nodes. Views in
definitions of operators copy fewer than 100, except one of ROI_ALIGN_GRAD."""
_FREE = FREE_IN_LOADS | {Operation.CONSTANT, Operation.INDEX}
_HIDDEN_OPERATIONS = 2
"""Operations on each element that loads hide: scaled weights of 4 bits are best computed in the loader
(H100)."""
_LOAD_OPERATIONS = 2
"""Operations for each tensor but one of a value's own sizes that it is made of; no load hides another one.
Windows of a residual sum then read the stored sum."""
_LEAVES = IN_MEMORY | GIVEN
_TESTS = (GIVEN - {Operation.SOURCE}) | {
    Operation.ADD,
    Operation.SUBTRACT,
    Operation.MULTIPLY,
    Operation.CONVERT,
    Operation.LESS,
    Operation.LESS_EQUAL,
    Operation.EQUAL,
    Operation.AND,
    Operation.OR,
    Operation.NOT,
}
"""Operations of a test of indices."""
_INSTRUCTIONS = {**dict.fromkeys(FUNCTIONS, FUNCTION_OPERATIONS), Operation.ROUND: 2}
"""Instructions of operations that do not take one. A rounding takes none, but if it counts less, merging by
the first fit leaves 16 rather than 13 kernels of ROI_ALIGN in FLOAT16."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a target, in operations on one element.

    They are constants of a target, since kernels, and so the bits of sums, depend on them.

    Args:
        byte: the operations in the time that a byte takes to be read or written. Cores of x86 with AVX2 or
            AVX-512, and GPUs from A100 to H200, have 4 to 9.
        cached_byte: the operations in the time that a byte takes to be written and read again through caches,
            by a kernel that views a value several times. With 0.5, gradients of local response normalization
            in FLOAT16 take 1.15 times as long, with 4 those of RESAMPLE 2.5 times (EPYC with AVX-512).
        least_stored: the fewest elements of a value that is stored to save operations. For fewer elements, a
            kernel takes longer to begin than to run.
    """

    byte: float = 4.0
    cached_byte: Fraction = Fraction(2, 5)
    least_stored: int = 1 << 14


def operation_count(operations: Iterable[Operation]) -> int:
    """Return about how many instructions these operations take."""
    return sum(_INSTRUCTIONS.get(each, 1) for each in operations)


def costs_more_again(value: Node, kernels: int, prices: Prices, held: Container[int] = ()) -> bool:
    """Return whether computing an element-wise value again costs more than storing it.

    Each of the `kernels` pays for its operations and for the bytes that it is made of down to `held` values.
    If it is stored, one kernel pays for these and for the value's bytes, and each kernel for reading these.
    """
    if tests_indices(value):
        return False
    # A size that changes may be large, so the value is small only if it is for all sizes.
    if kernels < 2 or is_surely_less(math.prod(value.sizes), prices.least_stored):
        return False
    own = prices.byte * value.type.bytes
    enough = own * (kernels + 1) / (kernels - 1)
    return (kernels - 1) * _operations(value, held, prices, enough) > own * (kernels + 1)


def tests_indices(value: Node) -> bool:
    """Return whether a value is a test of indices, such as whether an element of a window is inside an image.

    No kernel finds it in memory. Where the mask of a load is a test of its indices, a loop ends before the
    test fails, and overlapping windows are packed once.
    """
    if value.type is not ScalarType.BOOLEAN:
        return False
    nodes = list(islice(above_memory(value), MOST_COPIED + 1))
    return len(nodes) <= MOST_COPIED and all(each.operation in _TESTS for each in nodes)


def _operations(value: Node, held: Container[int], prices: Prices, enough: float) -> float:
    """Return the price of an element of a value and of the bytes that it is made of, or more than
    `enough`."""
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
    elements = hint_of(math.prod(value.sizes))
    # The price decides about speed alone, so sizes that change are taken by their hints.
    shares = (each.type.bytes * min(1.0, hint_of(math.prod(each.sizes)) / elements) for each in read.values())
    return operations + prices.byte * sum(shares)


@dataclass(frozen=True, slots=True)
class Readers:
    """The readers of a value: the elements that they compute if it is not stored, each as often as they do,
    the elements that it has, and the target's prices."""

    computed: int = 1
    elements: int = 1
    prices: Prices = field(default_factory=Prices)


def readers_of(nodes: Sequence[Node], roots: Sequence[Node], prices: Prices) -> Mapping[int, Readers]:
    """Return the readers of the values that views read, by the identities of the values.

    Each view computes the elements that it reads. Readers without a view compute all elements once.
    """
    viewed: dict[int, tuple[int, int]] = {}
    direct = {id(in_first_sizes(root)) for root in roots}
    for node in nodes:
        if node.operation is Operation.RESHAPE:
            continue
        operands = [in_first_sizes(each) for each in node.operands]
        if node.operation is Operation.VIEW:
            value, *operands = operands
            elements, _ = viewed.get(id(value), (0, 0))
            viewed[id(value)] = elements + _elements_read(node), math.prod(value.sizes)
        direct.update(map(id, operands))
    return {
        key: Readers(read + size if key in direct else read, size, prices)
        for key, (read, size) in viewed.items()
    }


def in_first_sizes(value: Node) -> Node:
    """Return the operand of reshapes."""
    while value.operation is Operation.RESHAPE:
        value = value.operands[0]
    return value


def _elements_read(node: Node) -> int:
    """Return how many elements a VIEW reads at most; each counts as often as it is read."""
    assert isinstance(node.attribute, View)
    count, rows = math.prod(node.sizes), node.attribute.steps
    columns = [[row[column] for row in rows] for column, size in enumerate(node.sizes) if size > 1]
    once = all(sum(map(bool, line)) <= 1 for line in rows) and all(any(column) for column in columns)
    return min(count, math.prod(node.operands[0].sizes)) if once and not node.attribute.indexed else count


def is_stored(value: Node, readers: Readers) -> bool:
    """Return whether a view reads a value from memory, rather than computes it again."""
    if value.operation is Operation.VIEW:
        # Elements at computed indices are stored rather than gathered again.
        is_computed = isinstance(value.attribute, View) and bool(value.attribute.indexed)
        return (is_computed and readers.computed > readers.elements) or is_large(value)
    if value.operation in IN_MEMORY or is_large(value):
        return True
    nodes = list(above_memory(value))
    inside = [each.operation for each in nodes]
    if not COLLECTIVE.isdisjoint(inside):
        return True
    operations = (
        operation_count(each for each in inside if each not in IN_MEMORY | _FREE) - _HIDDEN_OPERATIONS
    )
    whole = sum(each.operation in IN_MEMORY and are_same(each.sizes, value.sizes) for each in nodes)
    operations += _LOAD_OPERATIONS * max(0, whole - 1)
    # Integers, so that traced sizes of both sides cancel each other.
    price = readers.prices.cached_byte * value.type.bytes
    repeated = (readers.computed - readers.elements) * operations
    return repeated * price.denominator > readers.elements * price.numerator


def is_large(value: Node) -> bool:
    """Return whether a view of a value copies more nodes than it may."""
    return len(list(islice(walk(value, computed_operands), MOST_COPIED + 1))) > MOST_COPIED


def narrowest(value: Node) -> Node:
    """Return the value to store from which a kernel computes another one while it reads.

    It is the one with the fewest bits on the way there. A value that is widened and scaled, for example,
    takes two or four times as much memory as its operand.
    """
    result = node = value
    operations = 0
    for _ in range(MOST_COPIED):
        whole = {id(operand): operand for operand in node.operands if are_same(operand.sizes, value.sizes)}
        operations += node.operation not in _FREE
        if node.operation in IN_MEMORY or len(whole) != 1 or operations > _HIDDEN_OPERATIONS:
            break
        # A view of many reduced values would be computed again for all that it repeats.
        others = (operand for operand in node.operands if id(operand) not in whole)
        many = (other for other in others if math.prod(other.sizes) > 1)
        if any(each.operation in COLLECTIVE for other in many for each in above_memory(other)):
            break
        (node,) = whole.values()
        if node.type.bits < result.type.bits:
            result = node
    return result


def bits_stored(operands: Sequence[Node]) -> int:
    """Return the bits of all values that kernels store so that the operands can be read in other sizes."""
    written: dict[int, Node] = {}
    for operand in operands:
        for each in islice(above_memory(operand), MOST_COPIED):
            if each.operation in (Operation.VIEW, Operation.RESHAPE):
                value = in_first_sizes(each.operands[0])
                if value.operation is not Operation.SOURCE:
                    written[id(value)] = value
    return sum(math.prod(value.sizes) * value.type.bits for value in written.values())


def needs_storing(value: Node) -> bool:
    """Return whether a value is made of one that a kernel stores in other sizes."""
    return any(
        each.operation is Operation.RESHAPE and each.operands[0].operation is not Operation.SOURCE
        for each in islice(above_memory(value), MOST_COPIED)
    )
