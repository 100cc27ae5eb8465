"""The trigonometric functions of FLOAT32 and their inverses, in FLOAT64 and rounded once, within 0.502 ULP;
the arc tangent in FLOAT32, within 2.

The coefficients come from tools/minimax.py, the constant term first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from operator import add

from opendml.program.common_math import even, float32_bits, odd, with_sign_of, with_signed_zero
from opendml.program.functions import equal, logical_not, multiply_add, round_even, select, square_root
from opendml.program.node import Node, Operation, apply, bitcast, constant, convert
from opendml.program.rarely import rarely
from opendml.program.scalar_type import ScalarType

_F32, _F64, _I64 = ScalarType.FLOAT32, ScalarType.FLOAT64, ScalarType.INT64


def sine(x: Node) -> Node:
    """sin(x)"""
    quarter, angle = _angle(x)
    return with_signed_zero(x, _sine_or_cosine(quarter, angle))


def cosine(x: Node) -> Node:
    """cos(x) = sin(x + pi / 2)"""
    quarter, angle = _angle(x)
    return _sine_or_cosine(quarter + 1, angle)


def tangent(x: Node) -> Node:
    """tan(x), in odd quarters of the circle -1 / tan(x - pi / 2)"""
    quarter, angle = _angle(x)
    sine, cosine = _sine(angle), _cosine(angle)
    is_odd = _has_bit(quarter, 1)
    quotient = select(is_odd, -cosine, sine) / select(is_odd, sine, cosine)
    return with_signed_zero(x, convert(quotient, _F32))


def arc_sine(x: Node) -> Node:
    """asin(x); beyond a half pi / 2 - 2 asin(sqrt((1 - |x|) / 2))"""
    is_near, angle = _arc(x)
    return with_sign_of(x, convert(select(is_near, angle, _HALF_PI - angle), _F32))


def arc_cosine(x: Node) -> Node:
    """acos(x) = pi / 2 - asin(x); beyond a half 2 asin(sqrt((1 - |x|) / 2)), or what it is short of pi"""
    is_near, angle = _arc(x)
    is_negative = x < 0.0
    signed = select(is_negative, -angle, angle)
    near, far = _HALF_PI - signed, select(is_negative, math.pi + signed, signed)
    return convert(select(is_near, near, far), _F32)


def arc_tangent_yx(y: Node, x: Node) -> Node:
    """atan2(y, x) within 2 ULP, in FLOAT32"""
    return arc_tangent_by(_ATAN, y, x)


def arc_tangent_by(coefficients: tuple[float, ...], y: Node, x: Node) -> Node:
    """atan2(y, x) in FLOAT32: the arc tangent of the lesser magnitude over the greater, in the right eighth.

    It is as exact as `coefficients` for (atan(q) / q - 1) / q^2 in q^2 up to 1 are.
    """
    height, width = abs(y), abs(x)
    is_steep = height > width
    lesser, greater = select(is_steep, width, height), select(is_steep, height, width)
    # Two infinities, and two zeros.
    slope = select(equal(lesser, greater), 1.0, lesser / greater)
    slope = select(equal(height + width, 0.0), 0.0, slope)
    angle = odd(slope, coefficients)
    # pi and its half are two FLOAT32 each.
    angle = select(is_steep, HALF_PI_HIGH - (angle + HALF_PI_LOW), angle)
    angle = select(float32_bits(x) < 0, 2 * HALF_PI_HIGH - (angle + 2 * HALF_PI_LOW), angle)
    return with_sign_of(y, angle)


def _wide(x: Node) -> Node:
    return convert(x, _F64)


def _angle(x: Node) -> tuple[Node, Node]:
    """n as INT64, right modulo 4, and r from -pi / 4 to pi / 4 with x = n pi / 2 + r; NaN for infinities."""
    value = _wide(x)
    shifted = multiply_add(value, 2.0 / math.pi, _UNITS)
    n = shifted - _UNITS
    rest = multiply_add(n, -_HALF_PI_LOW, multiply_add(n, -_HALF_PI, value))
    is_large = abs(x) > _MOST_REDUCED
    far_shifted, far_rest = _large_angle(value)
    return bitcast(rarely(is_large, far_shifted, shifted), _I64), rarely(is_large, far_rest, rest)


def _large_angle(value: Node) -> tuple[Node, Node]:
    """The same, n as what has its bits, for values of which no FLOAT64 can take off n pi / 2.

    x 2 / pi is wanted modulo 4, but for FLOAT32 up to 2^128 and to a precision of 2^-62. 2 / pi is in parts
    of so few bits that x times each part is exact. Whole turns are left out of these products. n is taken off
    the greatest before the others are added: what cancels then is exact.
    """
    products = [value * part for part in _TWO_OVER_PI]
    turns = [multiply_add(round_even(product * 0.25), -4.0, product) for product in products]
    shifted = reduce(add, turns) + _UNITS
    rest = reduce(add, turns[1:], turns[0] - (shifted - _UNITS))
    return shifted, rest * _HALF_PI


def _has_bit(n: Node, bit: int) -> Node:
    return logical_not(equal(apply(Operation.AND, n, bit), 0))


def _sine(x: Node) -> Node:
    return odd(x, _SIN)


def _cosine(x: Node) -> Node:
    return even(x, _COS)


def _sine_or_cosine(quarter: Node, angle: Node) -> Node:
    """sin(quarter pi / 2 + angle)"""
    result = select(_has_bit(quarter, 1), _cosine(angle), _sine(angle))
    return convert(select(_has_bit(quarter, 2), -result, result), _F32)


def _arc(x: Node) -> tuple[Node, Node]:
    """Whether |x| is at most a half, and asin(|x|) if so, else 2 asin(sqrt((1 - |x|) / 2)); NaN above 1."""
    magnitude = _wide(abs(x))
    is_near = magnitude <= 0.5
    half_rest = multiply_add(magnitude, -0.5, constant(0.5, _F64))
    root = select(is_near, magnitude, square_root(half_rest))
    arc = odd(root, _ASIN)
    return is_near, select(is_near, arc, arc + arc)


_UNITS = 1.5 * 2.0**52
"""From here on, the last bit of a FLOAT64 counts units; the middle leaves room for both signs."""
HALF_PI_HIGH, HALF_PI_LOW = 1.57079637050628662109375, 4.37113900018624283e-8
"""pi / 2 is the FLOAT32 less the other."""
_HALF_PI, _HALF_PI_LOW = math.pi / 2, 6.123233995736766e-17
_MOST_REDUCED = 2.0**30
"""Up to here two FLOAT64 for pi / 2 have digits enough."""
_TWO_OVER_PI_DIGITS = 0x517CC1B727220A94FE13ABE8FA9A6EE06DB14ACC9E21C820FF2
"""2 / pi times 2^203."""
_PART_BITS, _PARTS = 29, 7
_TWO_OVER_PI = tuple(
    math.ldexp(
        float(_TWO_OVER_PI_DIGITS >> _PART_BITS * (_PARTS - part) & 2**_PART_BITS - 1), -_PART_BITS * part
    )
    for part in range(1, _PARTS + 1)
)

_SIN = (
    -0.16666666640775687,
    0.008333329302369635,
    -0.00019839311473318505,
    2.7181140220641209e-06,
)
_COS = (
    -0.4999999969421865,
    0.041666620328236495,
    -0.0013886680737640962,
    2.4383481766344124e-05,
)
"""(sin(r) / r - 1) / r^2 and (cos(r) - 1) / r^2 as functions of r^2, up to r = pi / 4."""

_ASIN = (
    0.16666667180259098,
    0.074999488979107701,
    0.044659972041102003,
    0.030112527123461172,
    0.024604700373530325,
    0.007509510447473485,
    0.034646283268344867,
)
"""(asin(x) / x - 1) / x^2 as a function of x^2, up to x = 1/2."""

_ATAN = (
    -0.333331525,
    0.199937671,
    -0.142110035,
    0.106657855,
    -0.0755172372,
    0.0432058573,
    -0.016364133,
    0.00291972281,
)
"""(atan(x) / x - 1) / x^2 as a function of x^2, up to x = 1."""

EXPANSIONS: dict[Operation, Callable[..., Node]] = {
    Operation.SINE: sine,
    Operation.COSINE: cosine,
    Operation.TANGENT: tangent,
    Operation.ARC_SINE: arc_sine,
    Operation.ARC_COSINE: arc_cosine,
    Operation.ARC_TANGENT_YX: arc_tangent_yx,
}
