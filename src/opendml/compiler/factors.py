"""Moves constant factors of FLOAT16 operands behind the contraction.

PyTorch scales the queries and keys of attention, for example. Without factors, a contraction reads FLOAT16
operands as they are, so that a target multiplies them in FLOAT16.
"""

from __future__ import annotations

from collections.abc import Sequence

from opendml.program.node import Node, Operation, apply, constant, rebuild, with_operands
from opendml.program.scalar_type import ScalarType

_LEAST, _GREATEST = 1e-30, 1e30
"""Magnitudes of factors that keep FLOAT32 sums of FLOAT16 products normal numbers."""


def factored(roots: Sequence[Node]) -> tuple[Node, ...]:
    """Return the program with scaled FLOAT16 operands of contractions as scaled contractions."""
    return rebuild(roots, _factored)


def _factored(node: Node) -> Node:
    if node.operation is not Operation.CONTRACTION or node.type is not ScalarType.FLOAT32:
        return node
    (a, first), (b, second) = map(_scaled, node.operands)
    factor = first * second
    if factor == 1 or not (_is_narrow(a) and _is_narrow(b)) or not _LEAST < abs(factor) < _GREATEST:
        return node
    return apply(Operation.MULTIPLY, with_operands(node, (a, b)), constant(factor, node.type))


def _scaled(value: Node) -> tuple[Node, float]:
    """Return an operand without the number that it is multiplied by, and the number."""
    scaled = value
    while scaled.operation is Operation.ROUND:
        (scaled,) = scaled.operands
    if scaled.operation is not Operation.MULTIPLY or scaled.type is not value.type:
        return value, 1.0
    narrow, number = scaled.operands
    if number.operation is not Operation.CONSTANT or not _is_narrow(narrow):
        return value, 1.0
    return narrow, float(number.attribute)  # type: ignore[arg-type]


def _is_narrow(value: Node) -> bool:
    return value.operation is Operation.CONVERT and value.operands[0].type is ScalarType.FLOAT16
