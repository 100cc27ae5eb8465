"""What is placed in order, said so that the order in which threads come does not matter: by the positions of
what is placed, of which the last one counts, and by running sums."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.program.functions import running_sum, select
from opendml.program.node import Node, Operation, convert, placing, rebuild
from opendml.program.scalar_type import counting
from opendml.program.view import gathered


def in_any_order(roots: Sequence[Node]) -> tuple[Node, ...]:
    """The same results without POSITIONS and SCATTER_LAST."""
    return rebuild(roots, _placed)


def _placed(node: Node) -> Node:
    if node.operation is Operation.POSITIONS:
        return _positions(node)
    return _last(node) if node.operation is Operation.SCATTER_LAST else node


def _positions(node: Node) -> Node:
    """Each position at the place that is the number of those before it."""
    assert isinstance(node.attribute, tuple)
    (found,), (axis, count) = node.operands, node.attribute
    number = running_sum(convert(found, counting(count)), axis, exclusive=False, reverse=False) - 1
    return placing(Operation.SCATTER, select(found, number, -1), axis, count)


def _last(node: Node) -> Node:
    """For each place the last value that goes there."""
    assert isinstance(node.attribute, tuple)
    (places, values, before), (axis, count) = node.operands, node.attribute
    last, rank = placing(Operation.SCATTER, places, axis, count), range(len(node.sizes))
    steps = [[int(row == column and row != axis) for column in rank] for row in rank]
    return select(last >= 0, gathered(values, node.sizes, {axis: last}, steps=steps), before)
