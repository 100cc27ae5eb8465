"""The passes over a group that a kernel's reductions and scans take, and what of them is accumulated
together."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from opendml.program.node import COLLECTIVE, Node, Operation, ordered

MOMENTS = frozenset({Operation.MEAN, Operation.VARIANCE})
"""Reductions that share their sums, where they are of one value."""


def passes_of(values: Iterable[Node]) -> list[list[list[Node]]]:
    """Return the reductions and scans that `values` need, by the pass over a group in which each can be made:
    those whose operands need no reduction, then those that need only these, and so on. Those of one
    accumulation are together: the same of the same operands, and all MOMENTS of them."""
    depths: dict[int, int] = {}
    passes: list[dict[tuple[object, ...], list[Node]]] = []
    for node in ordered(values):
        depth = max((depths[id(operand)] for operand in node.operands), default=0)
        if node.operation in COLLECTIVE:
            kind = MOMENTS if node.operation in MOMENTS else node.operation
            if depth == len(passes):
                passes.append({})
            passes[depth].setdefault((kind, *map(id, node.operands)), []).append(node)
            depth += 1
        depths[id(node)] = depth
    return [list(accumulations.values()) for accumulations in passes]


@lru_cache
def pass_count(values: tuple[Node, ...]) -> int:
    """Return how many passes over a group `values` need."""
    return len(passes_of(values))
