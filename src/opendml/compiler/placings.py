"""What is placed in order, said so that the order in which threads come does not matter: by the positions of
what is placed, of which the last one counts."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.program.functions import select
from opendml.program.node import Node, Operation, placing, rebuild
from opendml.program.view import gathered


def in_any_order(roots: Sequence[Node]) -> tuple[Node, ...]:
    """The same results without SCATTER_LAST."""
    return rebuild(roots, lambda node: _last(node) if node.operation is Operation.SCATTER_LAST else node)


def _last(node: Node) -> Node:
    """For each place the last value that goes there."""
    assert isinstance(node.attribute, tuple)
    (places, values, before), (axis, count) = node.operands, node.attribute
    last, rank = placing(Operation.SCATTER, places, axis, count), range(len(node.sizes))
    steps = [[int(row == column and row != axis) for column in rank] for row in rank]
    return select(last >= 0, gathered(values, node.sizes, {axis: last}, steps=steps), before)
