"""What the expansions of functions share."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opendml.program.functions import equal, logical_not, multiply_add, select, truncate
from opendml.program.node import Node, Operation, apply, bitcast
from opendml.program.scalar_type import ScalarType

SIGN_MASK = -(2**31)


def polynomial(coefficients: Sequence[float], x: Node) -> Node:
    """Horner's scheme; at least two coefficients, the constant term first."""
    *rest, previous, last = coefficients
    result = multiply_add(x, last, previous)
    for coefficient in reversed(rest):
        result = multiply_add(result, x, coefficient)
    return result


def odd(x: Node, coefficients: Sequence[float]) -> Node:
    """x + x^3 times a polynomial in x^2."""
    square = x * x
    return multiply_add(x * square, polynomial(coefficients, square), x)


def even(x: Node, coefficients: Sequence[float]) -> Node:
    """1 + x^2 times a polynomial in x^2."""
    square = x * x
    return multiply_add(square, polynomial(coefficients, square), 1.0)


def at_least(x: Node, bound: float) -> Node:
    """x, but not below the bound; NaN stays. (MAXIMUM costs more: it has an order for zeros.)"""
    return select(x < bound, bound, x)


def at_most(x: Node, bound: float) -> Node:
    """x, but not above the bound; NaN stays."""
    return select(bound < x, bound, x)


def float32_bits(x: Node) -> Node:
    """The bits of a FLOAT32 as INT32."""
    return bitcast(x, ScalarType.INT32)


def with_sign_of(x: Node, magnitude: Node) -> Node:
    """`magnitude`, which is not negative or has the sign of x already, with the sign of x; both FLOAT32."""
    sign = apply(Operation.AND, float32_bits(x), SIGN_MASK)
    return bitcast(apply(Operation.OR, float32_bits(magnitude), sign), ScalarType.FLOAT32)


def with_signed_zero(x: Node, result: Node) -> Node:
    """`result`, and where x is zero, x itself."""
    return select(equal(x, 0.0), x, result)


def power_of(x: Node, y: Node, magnitude: Node) -> Node:
    """x^y from |x|^y; all FLOAT32. It is negative where x is and y is odd; special values are those of C."""
    is_whole = equal(truncate(y), y)
    half = y * 0.5
    is_odd = apply(Operation.AND, is_whole, logical_not(equal(truncate(half), half)))
    is_negative = float32_bits(x) < 0
    result = select(apply(Operation.AND, is_negative, is_odd), -magnitude, magnitude)
    is_root = apply(Operation.AND, x < 0.0, -math.inf < x)
    result = select(apply(Operation.AND, is_root, logical_not(is_whole)), math.nan, result)
    is_unit = apply(Operation.AND, equal(abs(x), 1.0), equal(abs(y), math.inf))
    is_one = apply(Operation.OR, apply(Operation.OR, equal(x, 1.0), equal(y, 0.0)), is_unit)
    return select(is_one, 1.0, result)
