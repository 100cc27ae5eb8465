"""Selections of a value that is seldom wanted: what is computed for it alone may be left out elsewhere."""

from __future__ import annotations

from collections.abc import Container, Iterable

from opendml.program.functions import select
from opendml.program.node import Node, Operation

_RARE = 1


def rarely(condition: Node, if_true: Node, if_false: Node) -> Node:
    """`select`, with a condition that hardly ever holds."""
    node = select(condition, if_true, if_false)
    return Node(node.operation, node.type, node.sizes, node.operands, _RARE)


def is_rare(node: Node) -> bool:
    """Whether a node is such a selection."""
    return node.operation is Operation.SELECT and node.attribute == _RARE


def always_needed(roots: Iterable[Node], known: Container[int] = ()) -> set[int]:
    """The identities of the nodes that `roots` need while no condition of a rare selection holds, apart from
    what is `known`, and what is needed for that alone."""
    needed: set[int] = set()
    pending = list(roots)
    while pending:
        node = pending.pop()
        if id(node) not in needed and id(node) not in known:
            needed.add(id(node))
            pending.extend(node.operands[::2] if is_rare(node) else node.operands)
    return needed
