"""Decides, by cost, which values are stored for the views that read them.

Views of values in memory, and of element-wise values that are cheap to compute again, cost nothing. A value
is stored if it is made of reductions, or if computing it for each element that views repeat, or in each
kernel that reads it, costs more. It is stored where it takes the fewest bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from opendml.compiler.prices import FREE_IN_LOADS, Prices, costs_more_again
from opendml.compiler.view_algebra import IN_MEMORY, above_memory, computed_operands, walk
from opendml.program.node import COLLECTIVE, FUNCTIONS, Node, Operation, View

MOST_COPIED = 128
"""Nodes that a view or a reshape copies when it moves below a value, at most. A value with more is stored, so
that a program grows by this factor at most: `x + x[::-1]`, applied k times, would take 2^k nodes. Views in
definitions of operators copy fewer than 100, except one of ROI_ALIGN_GRAD."""
_FREE = FREE_IN_LOADS | {Operation.CONSTANT, Operation.INDEX}
_REPEATED_OPERATIONS = 2
"""Operations that are done again for each element that a view repeats, at most, instead of storing a
value."""


@dataclass(frozen=True, slots=True)
class Readers:
    """The readers of a value.

    Args:
        repeat: whether views read more elements than the value has.
        kernels: how many kernels compute the value if it is not stored, at most.
        prices: those of the target.
    """

    repeat: bool = False
    kernels: int = 1
    prices: Prices = field(default_factory=Prices)


def readers_of(nodes: Sequence[Node], roots: Sequence[Node], prices: Prices) -> Mapping[int, Readers]:
    """Return the readers of the values that views read, by the identities of the values.

    A value that moves below a view is computed for the view, and once for all that read it without a view.
    """
    elements: dict[int, int] = {}
    sizes: dict[int, int] = {}
    users: dict[int, set[int]] = {id(in_first_sizes(root)): {0} for root in roots}
    for node in nodes:
        is_view = node.operation is Operation.VIEW
        for operand in node.operands if node.operation is not Operation.RESHAPE else ():
            users.setdefault(id(in_first_sizes(operand)), set()).add(id(node) if is_view else 0)
        if is_view:
            value = in_first_sizes(node.operands[0])
            sizes[id(value)] = math.prod(value.sizes)
            elements[id(value)] = elements.get(id(value), 0) + _elements_read(node)
    return {key: Readers(elements[key] > size, len(users[key]), prices) for key, size in sizes.items()}


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
        # Elements at computed indices are stored rather than gathered for each element that a view repeats.
        is_computed = isinstance(value.attribute, View) and bool(value.attribute.indexed)
        return (readers.repeat and is_computed) or is_large(value)
    if value.operation in IN_MEMORY or is_large(value):
        return True
    inside = list(above_memory(value))
    if any(each.operation in COLLECTIVE for each in inside):
        return True
    if readers.repeat:
        again = [each.operation for each in inside if each.operation not in IN_MEMORY | _FREE]
        if len(again) > _REPEATED_OPERATIONS or not FUNCTIONS.isdisjoint(again):
            return True
    return costs_more_again(value, readers.kernels, readers.prices)


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
        whole = {id(operand): operand for operand in node.operands if operand.sizes == value.sizes}
        operations += node.operation not in _FREE
        if node.operation in IN_MEMORY or len(whole) != 1 or operations > _REPEATED_OPERATIONS:
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


def needs_copying(value: Node) -> bool:
    """Return whether a value is made of a view that a kernel copies.

    A permutation of a computed value is no copy: the kernel that computes the value stores it in that order.
    """
    return any(
        each.operation is Operation.RESHAPE
        and each.operands[0].operation is Operation.VIEW
        and not _is_stored_in_order(each.operands[0])
        for each in islice(above_memory(value), MOST_COPIED)
    )


def _is_stored_in_order(node: Node) -> bool:
    """Return whether a VIEW permutes the dimensions of a computed value, and keeps the last one."""
    view, (value, *rest) = node.attribute, node.operands
    assert isinstance(view, View)
    if rest or value.operation in IN_MEMORY - COLLECTIVE or any(view.offsets):
        return False
    columns = []
    for size, row in zip(value.sizes, view.steps, strict=True):
        moving = [column for column, step in enumerate(row) if step]
        if size > 1 and (len(moving) != 1 or row[moving[0]] != 1 or node.sizes[moving[0]] != size):
            return False
        columns += moving
    return math.prod(node.sizes) == math.prod(value.sizes) and columns[-1:] == [max(columns, default=0)]
