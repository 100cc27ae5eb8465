"""Small rewrites of a program that keep its meaning: scatters without an order, factors behind products, and
guards that always hold."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.program.functions import select
from opendml.program.node import (
    Node,
    Operation,
    View,
    apply,
    constant,
    ordered,
    placing,
    rebuild,
    with_operands,
)
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import index_range, is_surely_less
from opendml.program.view import gathered, is_whole

_LEAST_FACTOR, _GREATEST_FACTOR = 1e-30, 1e30
"""Magnitudes of factors that keep FLOAT32 sums of FLOAT16 products normal numbers."""


def with_unordered_scatters(roots: Sequence[Node]) -> tuple[Node, ...]:
    """Return the program without SCATTER_LAST, for targets whose threads come in any order.

    A SCATTER finds the position of the last value for each place, and a gather reads the values there.
    """
    return rebuild(roots, _unordered)


def _unordered(node: Node) -> Node:
    if node.operation is not Operation.SCATTER_LAST:
        return node
    assert isinstance(node.attribute, tuple)
    (places, values, before), (axis, count) = node.operands, node.attribute
    last, rank = placing(Operation.SCATTER, places, axis, count), range(len(node.sizes))
    steps = [[int(row == column and row != axis) for column in rank] for row in rank]
    return select(last >= 0, gathered(values, node.sizes, {axis: last}, steps=steps), before)


def with_factors_behind_products(roots: Sequence[Node]) -> tuple[Node, ...]:
    """Return the program with constant factors of FLOAT16 operands behind the contractions.

    PyTorch scales the queries and keys of attention, for example. Without factors, a contraction reads
    FLOAT16 operands as they are, so that a target multiplies them in FLOAT16.
    """
    return rebuild(roots, _with_factor_behind)


def _with_factor_behind(node: Node) -> Node:
    if node.operation is not Operation.CONTRACTION or node.type is not ScalarType.FLOAT32:
        return node
    (a, first), (b, second) = map(_scaled, node.operands)
    factor = first * second
    is_normal = _LEAST_FACTOR < abs(factor) < _GREATEST_FACTOR
    if factor == 1 or not (_is_widened(a) and _is_widened(b)) or not is_normal:
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
    if number.operation is not Operation.CONSTANT or not _is_widened(narrow):
        return value, 1.0
    return narrow, float(number.number)


def _is_widened(value: Node) -> bool:
    return value.operation is Operation.CONVERT and value.operands[0].type is ScalarType.FLOAT16


def without_idle_guards(roots: Sequence[Node]) -> tuple[Node, ...]:
    """Return the program without conditions on indices that always hold.

    An element of a window or of a part is often inside for every index.
    """
    if not any(isinstance(node.attribute, View) for node in ordered(roots)):
        return tuple(roots)
    return rebuild(roots, _without_guard)


def _without_guard(node: Node) -> Node:
    operands = node.operands
    match node.operation:
        case Operation.LESS if _always_less(node):
            return constant(1, ScalarType.BOOLEAN)
        case Operation.AND if node.type is ScalarType.BOOLEAN:
            left = [each for each in operands if not _is_true(each)]
            # An operand may have fewer elements than the node, and repeat.
            return node if len(left) == 2 else left[0] if left else operands[0]
        case Operation.SELECT if _is_true(operands[0]) and operands[1].sizes == node.sizes:
            return operands[1]
        case Operation.VIEW if isinstance(node.attribute, View) and not node.attribute.indexed:
            if len(operands) == 2 and _is_true(operands[1]):
                value = operands[0]
                if is_whole(node.attribute, value.sizes) and value.sizes == node.sizes:
                    return value
                return Node(node.operation, node.type, node.sizes, (value,), node.attribute)
    return node


def _is_true(node: Node) -> bool:
    return node.operation is Operation.CONSTANT and node.attribute == 1 and node.type is ScalarType.BOOLEAN


def _always_less(node: Node) -> bool:
    """Return whether an unsigned count stays below a number, as those of guards do."""
    counted, bound = node.operands
    if counted.operation is not Operation.INDEX or bound.operation is not Operation.INDEX or bound.sizes:
        return False
    if counted.type not in (ScalarType.UINT32, ScalarType.UINT64):
        return False
    assert isinstance(counted.attribute, tuple)
    assert isinstance(bound.attribute, tuple)
    first, *steps = counted.attribute
    least, most = (first + each for each in index_range(counted.sizes if steps else (), steps))
    # A guard of traced sizes that is idle for some of them stays.
    return is_surely_less(-1, least) and is_surely_less(most, bound.attribute[0])
