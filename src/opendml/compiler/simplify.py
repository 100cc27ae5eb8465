"""Rewrites of a tensor program that keep its meaning and save work. Equal nodes are shared on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from opendml.program.narrow import is_narrow, narrowed
from opendml.program.node import Node, Operation, Recurrence, apply, constant, convert, rebuild
from opendml.program.vector_math import KNOWN_ERRORS


def simplify(roots: Sequence[Node]) -> tuple[Node, ...]:
    """A program with the results of the given one, of fewer nodes, with what may be cheap marked."""
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
        case Operation.SQUARE_ROOT:
            return _of_constant_or_nan(node, node.operands[0], math.sqrt)
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
        return constant(value.attribute, node.type)  # type: ignore[arg-type]
    if node.type.is_float and _nothing_and_constant(value) is not None:
        return _of_constant_or_nan(node, value, float)
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


def _product(node: Node) -> Node:
    left, right = node.operands
    if _is_one(right):
        return left if left.sizes == node.sizes else node
    if _is_one(left):
        return right if right.sizes == node.sizes else node
    return node


def _quotient(node: Node) -> Node:
    """Division by one, and by a number whose reciprocal does as well: of a power of two exactly, of others
    where a quotient may be cheap."""
    numerator, divisor = node.operands
    if _is_one(divisor):
        return numerator
    if numerator.operation is Operation.CONSTANT:
        return _of_constant_or_nan(node, divisor, lambda value: float(numerator.attribute) / value)  # type: ignore[arg-type]
    if divisor.operation is not Operation.CONSTANT or not node.type.is_float:
        return node
    mantissa, exponent = math.frexp(float(divisor.attribute))  # type: ignore[arg-type]
    if mantissa and (abs(mantissa) == 0.5 or is_narrow(node)) and abs(exponent) < 100:
        reciprocal = constant(1.0 / float(divisor.attribute), node.type)  # type: ignore[arg-type]
        return Node(Operation.MULTIPLY, node.type, node.sizes, (numerator, reciprocal))
    return node


def _of_constant_or_nan(node: Node, operand: Node, function: Callable[[float], float]) -> Node:
    """node = function(operand) where the operand is (x - x) + c, a constant but for NaN: then (x - x) +
    function(c).

    This is what is left of the variance of a group of one element.
    """
    parts = _nothing_and_constant(operand)
    if parts is None:
        return node
    nothing, value = parts
    inner = nothing.operands[0] if nothing.operation is Operation.CONVERT else nothing
    result = function(value)
    if not math.isfinite(result):
        return node
    return apply(Operation.ADD, convert(inner, node.type), constant(result, node.type))


def _nothing_and_constant(node: Node) -> tuple[Node, float] | None:
    """(x - x, c) if the node is (x - x) + c for a c above zero."""
    if node.operation is not Operation.ADD or node.operands[1].operation is not Operation.CONSTANT:
        return None
    nothing, value = node.operands[0], float(node.operands[1].attribute)  # type: ignore[arg-type]
    difference = nothing.operands[0] if nothing.operation is Operation.CONVERT else nothing
    is_nothing = (
        difference.operation is Operation.SUBTRACT and difference.operands[0] is difference.operands[1]
    )
    return (nothing, value) if is_nothing and value > 0 else None


def _is_one(node: Node) -> bool:
    return node.operation is Operation.CONSTANT and node.attribute == 1
