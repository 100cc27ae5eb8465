"""Rewrites of a tensor program that keep its meaning and save work. Equal nodes are shared on the way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from opendml.program.narrow import is_narrow, narrowed
from opendml.program.node import Node, Operation, Recurrence, constant, rebuild
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import is_traced
from opendml.program.vector_math import KNOWN_ERRORS


def simplify(roots: Sequence[Node]) -> tuple[Node, ...]:
    """Return a program with the results of the given one, of fewer nodes, with what may be cheap marked."""
    return rebuild(narrowed(roots), _simpler)


def _simpler(node: Node) -> Node:
    match node.operation:
        case Operation.CONVERT:
            return _conversion(node)
        case Operation.BITCAST:
            return _bits(node)
        case Operation.ROUND if node.operands[0].operation not in KNOWN_ERRORS:
            # No function finds a rounding error here, and targets round to the type anyhow.
            return node.operands[0]
        case Operation.MULTIPLY:
            return _product(node)
        case Operation.MULTIPLY_ADD if _is_one(node.operands[1]):
            return Node(Operation.ADD, node.type, node.sizes, (node.operands[0], node.operands[2]))
        case Operation.DIVIDE:
            return _quotient(node)
        case Operation.EQUAL | Operation.NOT:
            return _negation(node)
        case Operation.RECURRENCE if isinstance(node.attribute, Recurrence):
            (body,) = simplify([node.attribute.body])
            steps = replace(node.attribute, body=body)
            return Node(node.operation, node.type, node.sizes, node.operands, steps)
    return node


def _conversion(node: Node) -> Node:
    (value,) = node.operands
    if value.type is node.type:
        return value
    if value.operation is Operation.CONSTANT and node.type.is_float:
        return constant(value.number, node.type)
    # Widening and back changes nothing. What rounds is meant: an operator's output is rounded to its type.
    if value.operation is Operation.CONVERT and value.operands[0].type is node.type and value.type.is_float:
        inner = value.operands[0]
        if inner.type.is_float and value.type.bits > inner.type.bits:
            return inner
    return node


def _bits(node: Node) -> Node:
    """Return the value whose bits are read as another type and back."""
    (value,) = node.operands
    is_back = value.operation is Operation.BITCAST and value.operands[0].type is node.type
    return value.operands[0] if is_back else node


def _negation(node: Node) -> Node:
    """Return a truth value that is negated twice, or compared with 0 as a number, in fewer nodes."""
    value = node.operands[0]
    if node.operation is Operation.EQUAL:
        is_truth = value.operation is Operation.CONVERT and value.operands[0].type is ScalarType.BOOLEAN
        if not is_truth or not _is_zero(node.operands[1]):
            return node
        (value,) = value.operands
    if value.sizes != node.sizes:
        return node
    if value.operation is Operation.NOT:
        return value.operands[0]
    return node if node.operation is Operation.NOT else Node(Operation.NOT, node.type, node.sizes, (value,))


def _product(node: Node) -> Node:
    left, right = node.operands
    if _is_one(right):
        return left if left.sizes == node.sizes else node
    if _is_one(left):
        return right if right.sizes == node.sizes else node
    return node


def _quotient(node: Node) -> Node:
    """Replace a division by a number by a product with its reciprocal, if that is exact or may be cheap."""
    numerator, divisor = node.operands
    if _is_one(divisor):
        return numerator
    if divisor.operation is not Operation.CONSTANT or not node.type.is_float:
        return node
    if is_traced(divisor.number):
        is_cheap = is_narrow(node) and 2.0**-100 < divisor.number < 2.0**99
    else:
        mantissa, exponent = math.frexp(divisor.number)
        is_cheap = (abs(mantissa) == 0.5 or (mantissa != 0 and is_narrow(node))) and abs(exponent) < 100
    if is_cheap:
        reciprocal = constant(1.0 / divisor.number, node.type)
        return Node(Operation.MULTIPLY, node.type, node.sizes, (numerator, reciprocal))
    return node


def _is_zero(node: Node) -> bool:
    return node.operation is Operation.CONSTANT and node.attribute == 0


def _is_one(node: Node) -> bool:
    return node.operation is Operation.CONSTANT and node.attribute == 1
