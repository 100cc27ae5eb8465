"""The trigonometric functions and their inverses in FLOAT32, for results that are stored as FLOAT16.

As in `half_math`, relative errors are at most 2^-15; the coefficients come from tools/minimax.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from opendml.program import angle_math
from opendml.program.angle_math import HALF_PI_HIGH, HALF_PI_LOW
from opendml.program.common_math import even, float32_bits, odd, with_sign_of, with_signed_zero
from opendml.program.functions import equal, logical_not, multiply_add, select, square_root
from opendml.program.node import Node, Operation, apply, bitcast
from opendml.program.rarely import rarely
from opendml.program.scalar_type import ScalarType


def sine(x: Node) -> Node:
    """sin(x)"""
    quarter, angle = _angle(x)
    result = _sine_or_cosine(quarter, angle)
    return with_signed_zero(x, rarely(_is_large(x), angle_math.sine(x), result))


def cosine(x: Node) -> Node:
    """cos(x) = sin(x + pi / 2)"""
    quarter, angle = _angle(x)
    return rarely(_is_large(x), angle_math.cosine(x), _sine_or_cosine(quarter + 1, angle))


def tangent(x: Node) -> Node:
    """tan(x), in odd quarters of the circle -1 / tan(x - pi / 2)"""
    quarter, angle = _angle(x)
    sine, cosine = odd(angle, _SIN), even(angle, _COS)
    is_odd = _is_odd(quarter)
    result = select(is_odd, -cosine, sine) / select(is_odd, sine, cosine)
    return with_signed_zero(x, rarely(_is_large(x), angle_math.tangent(x), result))


def arc_sine(x: Node) -> Node:
    """asin(x); beyond a half pi / 2 - 2 asin(sqrt((1 - |x|) / 2))"""
    is_near, angle = _arc(x)
    return with_sign_of(x, select(is_near, angle, math.pi / 2 - angle))


def arc_cosine(x: Node) -> Node:
    """acos(x) = pi / 2 - asin(x); beyond a half 2 asin(sqrt((1 - |x|) / 2)), or what it is short of pi"""
    is_near, angle = _arc(x)
    signed = with_sign_of(x, angle)
    return select(is_near, math.pi / 2 - signed, select(x < 0.0, math.pi + signed, signed))


def arc_tangent_yx(y: Node, x: Node) -> Node:
    """atan2(y, x)"""
    return angle_math.arc_tangent_by(_ATAN, y, x)


def _is_large(x: Node) -> Node:
    """Beyond FLOAT16, which values between fused operators may be."""
    return abs(x) > _MOST_REDUCED


def _angle(x: Node) -> tuple[Node, Node]:
    """n as INT32, right modulo 4, and r with x = n pi / 2 + r."""
    shifted = multiply_add(x, 2.0 / math.pi, _UNITS)
    n = shifted - _UNITS
    return float32_bits(shifted), multiply_add(n, HALF_PI_LOW, multiply_add(n, -HALF_PI_HIGH, x))


def _sine_or_cosine(quarter: Node, angle: Node) -> Node:
    """sin(quarter pi / 2 + angle); the second bit of the quarter becomes the sign."""
    magnitude = select(_is_odd(quarter), even(angle, _COS), odd(angle, _SIN))
    sign = apply(Operation.SHIFT_LEFT, apply(Operation.AND, quarter, 2), 30)
    return bitcast(apply(Operation.XOR, float32_bits(magnitude), sign), ScalarType.FLOAT32)


def _is_odd(n: Node) -> Node:
    return logical_not(equal(apply(Operation.AND, n, 1), 0))


def _arc(x: Node) -> tuple[Node, Node]:
    """Whether |x| is at most a half, and asin(|x|) if so, else 2 asin(sqrt((1 - |x|) / 2)); NaN above 1."""
    magnitude = abs(x)
    is_near = magnitude <= 0.5
    root = select(is_near, magnitude, square_root(multiply_add(magnitude, -0.5, 0.5)))
    arc = odd(root, _ASIN)
    return is_near, select(is_near, arc, arc + arc)


_UNITS = 1.5 * 2.0**23
"""From here on, the last bit of a FLOAT32 counts units."""
_MOST_REDUCED = 2.0**16

_SIN = (-0.166633889, 0.00816324446)
_COS = (-0.499760449, 0.0404581837)
"""(sin(r) / r - 1) / r^2 and (cos(r) - 1) / r^2 as functions of r^2, up to r = pi / 4."""
_ASIN = (0.166801259, 0.0718998089, 0.064107269)
"""(asin(x) / x - 1) / x^2 as a function of x^2, up to x = 1/2."""
_ATAN = (-0.333088994, 0.196183026, -0.122514792, 0.0587699786, -0.0139549831)
"""(atan(x) / x - 1) / x^2 as a function of x^2, up to x = 1."""

EXPANSIONS: dict[Operation, Callable[..., Node]] = {
    Operation.SINE: sine,
    Operation.COSINE: cosine,
    Operation.TANGENT: tangent,
    Operation.ARC_SINE: arc_sine,
    Operation.ARC_COSINE: arc_cosine,
    Operation.ARC_TANGENT_YX: arc_tangent_yx,
}
