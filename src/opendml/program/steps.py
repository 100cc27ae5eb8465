"""The work of a tensor program, in steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opendml.program.node import REDUCTIONS, Node, Operation, Recurrence, broadcast, ordered

_FREE = frozenset(
    {
        Operation.BITCAST,
        Operation.CONSTANT,
        Operation.EXPAND,
        Operation.PARAMETER,
        Operation.RESHAPE,
        Operation.ROUND,
        Operation.SOURCE,
        Operation.VIEW,
    }
)
"""Operations that the next one does as it reads."""


def steps_of(roots: Sequence[Node]) -> int:
    """Return how many elements the nodes that `roots` need compute and reduce, and how many are written.

    The number does not depend on a target. Fusing may compute an element more than once, a few times at most.
    """
    return sum(map(_steps, ordered(roots))) + sum(math.prod(root.sizes) for root in roots)


def repeats_of(roots: Sequence[Node]) -> int:
    """Return the steps of all recurrences: each is launches of its own."""
    return sum(each.attribute.count for each in ordered(roots) if isinstance(each.attribute, Recurrence))


def _steps(node: Node) -> int:
    if node.operation in _FREE:
        return 0
    if isinstance(node.attribute, Recurrence):
        return node.attribute.count * steps_of([node.attribute.body])
    if node.operation not in REDUCTIONS:
        return math.prod(node.sizes)
    ranks = {len(operand.sizes) for operand in node.operands} - {0}
    full = [operand.sizes for operand in node.operands if operand.sizes]
    return math.prod(broadcast(full)) if len(ranks) == 1 else 1
