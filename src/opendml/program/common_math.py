"""What the expansions of functions share."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.program.functions import multiply_add, select
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
