"""Loads that read under a condition or at computed distances: the operands of their SOURCE, apart from what
else a kernel computes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opendml.compiler.kernel import number_of
from opendml.program.node import Node, Operation, ordered, rebuild, source

Guards = dict[int, tuple[Node, ...]]
"""By the number of a load the truth value under which it reads, and perhaps how many bytes further on."""


def guards_of(values: Iterable[Node]) -> Guards:
    """Return the guards of a kernel's loads."""
    return {
        number_of(node): node.operands
        for node in ordered(values)
        if node.operation is Operation.SOURCE and node.operands
    }


def apart(values: Sequence[Node]) -> tuple[tuple[Node, ...], Guards]:
    """Return the values over loads that say nothing of their guards, and these, which say nothing of
    others."""
    guards = guards_of(values)
    operands = [operand for each in guards.values() for operand in each]
    plain = list(rebuild([*values, *operands], _without_guard))
    results, rest = tuple(plain[: len(values)]), iter(plain[len(values) :])
    return results, {number: tuple(next(rest) for _ in each) for number, each in guards.items()}


def loads_of(roots: Iterable[Node]) -> set[int]:
    """Return the numbers of all loads that values are made of."""
    return {number_of(node) for node in ordered(roots) if node.operation is Operation.SOURCE}


def _without_guard(node: Node) -> Node:
    if node.operation is not Operation.SOURCE or not node.operands:
        return node
    return source(number_of(node), node.type, node.sizes)
