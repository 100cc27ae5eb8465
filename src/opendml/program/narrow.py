"""Nodes of which only FLOAT16 results are made: they need no more digits than the rounding to FLOAT16 leaves.

An operator rounds its outputs to their types, so this is decided for each operator by itself, whatever it is
fused with.
"""

from __future__ import annotations

from collections.abc import Sequence

from opendml.program.node import FUNCTIONS, REDUCTIONS, Node, Operation, Precision, ordered
from opendml.program.scalar_type import ScalarType


def is_narrow(node: Node) -> bool:
    """Return whether a function or a quotient may be as cheap as FLOAT16 results allow."""
    return node.attribute is Precision.NARROW


def narrowed(roots: Sequence[Node]) -> tuple[Node, ...]:
    """Return the program with its functions and quotients marked where they may be cheap.

    Values that depend only on reductions of a group stay exact. They cost next to nothing, and the rest of
    the operator may cancel most of them, as it does for the logarithm of a sum of exponentials.
    """
    nodes = ordered(roots)
    halves = {id(node) for node in nodes if node.type is ScalarType.FLOAT16}
    if not halves:
        return tuple(roots)
    # What has its bits read is rounded to its own type, too.
    exact_bits = (Operation.ROUND, Operation.BITCAST)
    rounded = [node.operands[0] for node in nodes if node.operation in exact_bits]
    exact = {id(node) for node in ordered([*roots, *rounded], halves)} | _of_groups(nodes)
    changed: dict[int, Node] = {}
    for node in nodes:
        operands = tuple(changed[id(operand)] for operand in node.operands)
        may_be_cheap = node.operation in _MARKED and node.type is ScalarType.FLOAT32 and id(node) not in exact
        attribute = Precision.NARROW if may_be_cheap else node.attribute
        is_same = attribute is node.attribute and operands == node.operands
        changed[id(node)] = (
            node if is_same else Node(node.operation, node.type, node.sizes, operands, attribute, node.origin)
        )
    return tuple(changed[id(root)] for root in roots)


def _of_groups(nodes: Sequence[Node]) -> set[int]:
    """Return the identities of the nodes that are made of reductions, and are not rounded to FLOAT16
    since."""
    found: set[int] = set()
    for node in nodes:
        varying = [operand for operand in node.operands if operand.operation is not Operation.CONSTANT]
        is_made = varying and all(id(operand) in found for operand in varying)
        if node.operation in REDUCTIONS or (is_made and node.type is not ScalarType.FLOAT16):
            found.add(id(node))
    return found


_MARKED = FUNCTIONS | {Operation.DIVIDE}
