"""Chooses which value the kernel of a reduction stores for others: the last one that depends on it alone.

A bias, a residual sum and an activation may follow a sum of products, for example. Storing the value behind
them takes no more bytes. Consumers then read this value alone, and do not recompute the chain.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from heapq import heappop, heappush

from opendml.compiler.homes import Except, home_of
from opendml.compiler.views import IN_MEMORY
from opendml.program.node import Node, Operation, ordered

MOST_STEPS = 64
"""Most values above a reduction that are considered, and that its kernel may compute: for each of them the
whole kernel is searched."""


class Users:
    """The nodes that read each node of a program, and which of them are its results."""

    def __init__(self, nodes: Sequence[Node], roots: Sequence[Node]) -> None:
        self._nodes = nodes
        self._positions = {id(node): position for position, node in enumerate(nodes)}
        self._results = {id(root) for root in roots}
        self._users: dict[int, list[int]] = {id(node): [] for node in nodes}
        for position, node in enumerate(nodes):
            for operand in {id(each) for each in node.operands}:
                self._users[operand].append(position)

    def stored_for(self, node: Node, root: Node, cuts: Container[int]) -> Node:
        """Return the value that the kernel of a reduction stores instead of `node`, so that its readers find
        all that they need of it: the last one of the fewest bits below `root`, which reads it, and below the
        other `cuts`, which are stored too. A widened value is stored before it is widened."""
        result = last = _before_widening(node)
        for _ in range(MOST_STEPS):
            above = self._only_way(last, root, cuts)
            if above is None:
                break
            home = home_of(above, ordered([above], Except(cuts, id(above))))
            if not any(each is node for each in home.own):
                break
            last = above
            if last.type.bits <= result.type.bits:
                result = last
        return result

    def _only_way(self, node: Node, root: Node, cuts: Container[int]) -> Node | None:
        """Return the first element-wise value of a node's sizes through which everything leads that is made
        of the node; None if there is none."""
        open: list[int] = []
        reached: set[int] = set()
        last = node
        while len(reached) <= MOST_STEPS:
            if id(last) in self._results or (last.operation in IN_MEMORY and last is not node):
                return None
            for user in self._users[id(last)]:
                if user not in reached:
                    reached.add(user)
                    heappush(open, user)
            if not open:
                return None
            last = self._nodes[heappop(open)]
            if last is root or id(last) in cuts or last.sizes != node.sizes or last.operation in IN_MEMORY:
                return None
            if not open:
                return last
        return None


def _before_widening(value: Node) -> Node:
    """Return the value that a conversion to a wider type was made of, if a kernel computes it; else the value
    itself."""
    if value.operation is not Operation.CONVERT:
        return value
    (narrow,) = value.operands
    is_widened = narrow.type.bits < value.type.bits and narrow.sizes == value.sizes
    return narrow if is_widened and narrow.operation not in IN_MEMORY else value
