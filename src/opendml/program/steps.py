"""How much work a tensor program is."""

from __future__ import annotations

import math
from collections.abc import Iterable

from opendml.program.node import REDUCTIONS, Node, Operation, Recurrence, ordered

_FREE = frozenset({Operation.SOURCE, Operation.CONSTANT, Operation.PARAMETER, Operation.RESHAPE})


def steps_of(roots: Iterable[Node]) -> int:
    """Return how many elements the nodes that `roots` need compute, and how many they reduce.

    The number does not depend on a target. Fusing may compute an element more than once, a few times at most.
    """
    return sum(_steps(node) for node in ordered(roots))


def _steps(node: Node) -> int:
    if node.operation in _FREE:
        return 0
    if isinstance(node.attribute, Recurrence):
        return node.attribute.count * steps_of([node.attribute.body])
    if node.operation not in REDUCTIONS:
        return math.prod(node.sizes)
    ranks = {len(operand.sizes) for operand in node.operands} - {0}
    full = [operand.sizes for operand in node.operands if operand.sizes]
    return math.prod(map(max, zip(*full, strict=True))) if len(ranks) == 1 else 1
