"""Functions of FLOAT32 that are computed in FLOAT64 and rounded once: within 0.502 ULP, all of them.

FLOAT64 has room for what is hard in FLOAT32: the product in a power's exponent, angles far from zero,
differences that cancel. The polynomials are as exact as that needs, relative errors being below 2^-34.

The coefficients come from tools/minimax.py, the constant term first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from operator import add

from opendml.program.common_math import at_least, at_most, float32_bits, polynomial, with_sign_of
from opendml.program.functions import (
    equal,
    logical_not,
    multiply_add,
    round_even,
    select,
    square_root,
    truncate,
)
from opendml.program.node import Node, Operation, apply, bitcast, constant, convert
from opendml.program.rarely import rarely
from opendml.program.scalar_type import ScalarType

_F32, _F64, _I64 = ScalarType.FLOAT32, ScalarType.FLOAT64, ScalarType.INT64


def expand(node: Node) -> Node:
    """The function `node` (FLOAT32) in basic operations."""
    return _EXPANSIONS[node.operation](*node.operands)


def power(x: Node, y: Node) -> Node:
    """x^y = exp(y log |x|), negative where x is and y is odd; the special values are those of C."""
    magnitude = _wide(abs(x))
    exponent = select(equal(x, 0.0), -math.inf, _logarithm(magnitude)) * _wide(y)
    result = convert(_exponential(_between(exponent, -_HIGHEST, _HIGHEST)), _F32)
    is_whole = equal(truncate(y), y)
    half = y * 0.5
    is_odd = apply(Operation.AND, is_whole, logical_not(equal(truncate(half), half)))
    is_negative = float32_bits(x) < 0
    result = select(apply(Operation.AND, is_negative, is_odd), -result, result)
    is_root = apply(Operation.AND, x < 0.0, -math.inf < x)
    result = select(apply(Operation.AND, is_root, logical_not(is_whole)), math.nan, result)
    is_unit = apply(Operation.AND, equal(abs(x), 1.0), equal(abs(y), math.inf))
    is_one = apply(Operation.OR, apply(Operation.OR, equal(x, 1.0), equal(y, 0.0)), is_unit)
    return select(is_one, 1.0, result)


def sine(x: Node) -> Node:
    """sin(x)"""
    quarter, angle = _angle(x)
    return _with_signed_zero(x, _sine_or_cosine(quarter, angle))


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
    return _with_signed_zero(x, convert(quotient, _F32))


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
    """atan2(y, x): the arc tangent of the lesser magnitude over the greater, in the right eighth"""
    height, width = _wide(abs(y)), _wide(abs(x))
    is_steep = height > width
    lesser, greater = select(is_steep, width, height), select(is_steep, height, width)
    # Two infinities, and two zeros.
    slope = select(equal(lesser, greater), 1.0, lesser / greater)
    slope = select(equal(height + width, 0.0), 0.0, slope)
    angle = _odd(slope, _ATAN)
    angle = select(is_steep, _HALF_PI - angle, angle)
    angle = select(float32_bits(x) < 0, math.pi - angle, angle)
    return with_sign_of(y, convert(angle, _F32))


def hyperbolic_sine(x: Node) -> Node:
    """sinh(x) = sinh(n log 2) cosh(r) + cosh(n log 2) sinh(r), x = n log 2 + r: nothing cancels near zero"""
    sum_, difference, even, odd = _powers(x)
    return convert(multiply_add(difference, even, sum_ * odd), _F32)


def hyperbolic_cosine(x: Node) -> Node:
    """cosh(x) = cosh(n log 2) cosh(r) + sinh(n log 2) sinh(r)"""
    sum_, difference, even, odd = _powers(x)
    return convert(multiply_add(sum_, even, difference * odd), _F32)


def inverse_hyperbolic_sine(x: Node) -> Node:
    """asinh(x) = log(|x| + sqrt(x^2 + 1)), near zero its series"""
    magnitude = _wide(abs(x))
    far = _logarithm(magnitude + square_root(multiply_add(magnitude, magnitude, 1.0)))
    return with_sign_of(x, _near_zero(magnitude, -1.0 / 6.0, far))


def inverse_hyperbolic_cosine(x: Node) -> Node:
    """acosh(x) = log(x + sqrt(x^2 - 1))"""
    value = _wide(x)
    result = convert(_logarithm(value + square_root(multiply_add(value, value, -1.0))), _F32)
    return select(x < 1.0, math.nan, result)


def inverse_hyperbolic_tangent(x: Node) -> Node:
    """atanh(x) = log((1 + |x|) / (1 - |x|)) / 2, near zero its series"""
    magnitude = _wide(abs(x))
    far = _logarithm((1.0 + magnitude) / (1.0 - magnitude)) * 0.5
    result = _near_zero(magnitude, 1.0 / 3.0, far)
    return with_sign_of(x, select(abs(x) > 1.0, math.nan, result))


def _with_signed_zero(x: Node, result: Node) -> Node:
    """`result`, and where x is zero, x itself."""
    return select(equal(x, 0.0), x, result)


def _wide(x: Node) -> Node:
    return convert(x, _F64)


def _between(x: Node, low: float, high: float) -> Node:
    return at_most(at_least(x, low), high)


def _odd(x: Node, coefficients: tuple[float, ...]) -> Node:
    """x + x^3 times a polynomial in x^2."""
    square = x * x
    return multiply_add(x * square, polynomial(coefficients, square), x)


def _even(x: Node, coefficients: tuple[float, ...]) -> Node:
    """1 + x^2 times a polynomial in x^2."""
    square = x * x
    return multiply_add(square, polynomial(coefficients, square), 1.0)


def _near_zero(magnitude: Node, cubic: float, far: Node) -> Node:
    """`far`, but for so small a magnitude that a sum with 1 would lose it, magnitude + cubic magnitude^3."""
    near = multiply_add(magnitude * magnitude * magnitude, constant(cubic, _F64), magnitude)
    return convert(select(magnitude < _NEAR, near, far), _F32)


# Exponential and logarithm


def _reduced(x: Node) -> tuple[Node, Node]:
    """n as INT64, with other bits above the lower 32, and r with x = n log 2 + r."""
    shifted = multiply_add(x, 1.0 / math.log(2.0), _UNITS)
    return bitcast(shifted, _I64), multiply_add(shifted - _UNITS, -math.log(2.0), x)


def _power_of_two(n: Node) -> Node:
    """2^n, whatever the upper bits of n."""
    return bitcast(apply(Operation.SHIFT_LEFT, n + _EXPONENT_BIAS, _MANTISSA_BITS), _F64)


def _exponential(x: Node) -> Node:
    n, r = _reduced(x)
    return (_even(r, _COSH) + _odd(r, _SINH)) * _power_of_two(n)


def _powers(x: Node) -> tuple[Node, Node, Node, Node]:
    """(2^n + 2^-n) / 2, (2^n - 2^-n) / 2, cosh(r), sinh(r) for x = n log 2 + r."""
    n, r = _reduced(_between(_wide(x), -_HIGHEST, _HIGHEST))
    above, below = _power_of_two(n - 1), _power_of_two(-n - 1)
    return above + below, above - below, _even(r, _COSH), _odd(r, _SINH)


def _logarithm(x: Node) -> Node:
    """log(x) of a normal positive FLOAT64; infinity and NaN stay."""
    bits = bitcast(x, _I64)
    exponent = apply(Operation.AND, bits - _LEAST_MANTISSA_BITS, _EXPONENT_MASK)
    fraction = bitcast(bits - exponent, _F64) - 1.0
    n = convert(apply(Operation.SHIFT_RIGHT, exponent, _MANTISSA_BITS), _F64)
    of_fraction = multiply_add(fraction * fraction, polynomial(_LOG, fraction), fraction)
    return select(x < math.inf, multiply_add(n, math.log(2.0), of_fraction), x)


# Angles


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
    return _odd(x, _SIN)


def _cosine(x: Node) -> Node:
    return _even(x, _COS)


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
    arc = _odd(root, _ASIN)
    return is_near, select(is_near, arc, arc + arc)


_MANTISSA_BITS = 52
_EXPONENT_BIAS = 1023
_EXPONENT_MASK = -(2**52)
_UNITS = 1.5 * 2.0**52
"""From here on, the last bit of a FLOAT64 counts units; the middle leaves room for both signs."""
_LEAST_MANTISSA_BITS = 0x3FE6666666666666
"""0.7"""
_HIGHEST = 110.0
"""Above this exp(x) is infinite, below its opposite zero, in FLOAT32."""
_NEAR = 2.0**-9

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

_LOG = (
    -0.49999999999479344,
    0.33333333308265745,
    -0.25000000170100639,
    0.20000004785900843,
    -0.16666654528359084,
    0.14285405407910387,
    -0.12500223576200525,
    0.11120326773133277,
    -0.10003724418533777,
    0.089537193507501223,
    -0.081633523989282308,
    0.08631903345440553,
    -0.090334674283614719,
    0.050421227051752018,
)
"""(log(1 + f) - f) / f^2 for f from -0.3 to 0.4."""

_SINH = (0.16666666754079162, 0.0083332890812072204, 0.00019904885040191022)
_COSH = (0.49999999999605715, 0.041666666987696707, 0.001388880781104104, 2.4882167317317455e-05)
"""(sinh(r) / r - 1) / r^2 and (cosh(r) - 1) / r^2 as functions of r^2, up to r = log 2 / 2."""

_SIN = (-0.16666666640775687, 0.008333329302369635, -0.00019839311473318505, 2.7181140220641209e-06)
_COS = (
    -0.49999999999488592,
    0.041666666553301174,
    -0.0013888880652978652,
    2.4798959421938453e-05,
    -2.7174697495295528e-07,
)
"""(sin(r) / r - 1) / r^2 and (cos(r) - 1) / r^2 as functions of r^2, up to r = pi / 4."""

_ASIN = (
    0.16666666669637054,
    0.074999995331805402,
    0.044643109118785419,
    0.03037530484997706,
    0.022470455522733766,
    0.016483638398850173,
    0.018606712562265058,
    -0.0028071965873719029,
    0.031913532011993644,
)
"""(asin(x) / x - 1) / x^2 as a function of x^2, up to x = 1/2."""

_ATAN = (
    -0.33333333111086438,
    0.19999984220725003,
    -0.14285320864522494,
    0.11106143224137034,
    -0.090536284079599696,
    0.075105069945298628,
    -0.060569460073342601,
    0.044178938857338555,
    -0.0265476057351119,
    0.011778527006675029,
    -0.0033264429662149719,
    0.00044068575770302338,
)
"""(atan(x) / x - 1) / x^2 as a function of x^2, up to x = 1."""

_EXPANSIONS: dict[Operation, Callable[..., Node]] = {
    Operation.POWER: power,
    Operation.SINE: sine,
    Operation.COSINE: cosine,
    Operation.TANGENT: tangent,
    Operation.ARC_SINE: arc_sine,
    Operation.ARC_COSINE: arc_cosine,
    Operation.ARC_TANGENT_YX: arc_tangent_yx,
    Operation.HYPERBOLIC_SINE: hyperbolic_sine,
    Operation.HYPERBOLIC_COSINE: hyperbolic_cosine,
    Operation.INVERSE_HYPERBOLIC_SINE: inverse_hyperbolic_sine,
    Operation.INVERSE_HYPERBOLIC_COSINE: inverse_hyperbolic_cosine,
    Operation.INVERSE_HYPERBOLIC_TANGENT: inverse_hyperbolic_tangent,
}
