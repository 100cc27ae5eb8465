"""Rewrites of a tensor program that keep its meaning and save work. Equal nodes are shared on the way."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opendml.program.node import REDUCTIONS, Node, Operation, constant, convert, rebuild
from opendml.program.scalar_type import ScalarType


def simplify(roots: Sequence[Node]) -> tuple[Node, ...]:
    """The same program, simpler."""
    return rebuild(roots, _simpler)


def _simpler(node: Node) -> Node:
    match node.operation:
        case Operation.CONVERT:
            return _conversion(node)
        case Operation.MULTIPLY:
            return _product(node)
        case Operation.MULTIPLY_ADD if _is_one(node.operands[1]):
            return Node(Operation.ADD, node.type, node.sizes, (node.operands[0], node.operands[2]))
        case Operation.DIVIDE:
            return _quotient(node)
        case operation if operation in REDUCTIONS:
            return _reduction(node)
    return node


def _conversion(node: Node) -> Node:
    (value,) = node.operands
    if value.type is node.type:
        return value
    if value.operation is Operation.CONSTANT and node.type.is_float:
        return constant(value.attribute, node.type)  # type: ignore[arg-type]
    # Widening and back changes nothing. Narrowing to FLOAT16 and back is a tensor between two fused operators, whose rounding
    # may be left out; other roundings are meant.
    if value.operation is Operation.CONVERT and value.operands[0].type is node.type and value.type.is_float:
        inner = value.operands[0]
        if inner.type.is_float and (value.type.bits > inner.type.bits or value.type is ScalarType.FLOAT16):
            return inner
    return node


def _product(node: Node) -> Node:
    left, right = node.operands
    if _is_one(right):
        return left if left.sizes == node.sizes else node
    if _is_one(left):
        return right if right.sizes == node.sizes else node
    return node


def _quotient(node: Node) -> Node:
    """Division by one or, exactly, by a power of two."""
    numerator, divisor = node.operands
    if _is_one(divisor):
        return numerator
    if divisor.operation is not Operation.CONSTANT or not node.type.is_float:
        return node
    mantissa, exponent = math.frexp(float(divisor.attribute))  # type: ignore[arg-type]
    if abs(mantissa) == 0.5 and abs(exponent) < 100:
        reciprocal = constant(1.0 / float(divisor.attribute), node.type)  # type: ignore[arg-type]
        return Node(Operation.MULTIPLY, node.type, node.sizes, (numerator, reciprocal))
    return node


def _reduction(node: Node) -> Node:
    """A group of one element is its own mean; its variance is zero, or NaN where the element is not finite."""
    (value,) = node.operands
    if node.sizes != value.sizes:
        return node
    wide = convert(value, ScalarType.FLOAT64)
    return wide if node.operation is Operation.MEAN else wide - wide


def _is_one(node: Node) -> bool:
    return node.operation is Operation.CONSTANT and node.attribute == 1
