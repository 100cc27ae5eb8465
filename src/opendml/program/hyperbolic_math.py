"""Hyperbolic functions of FLOAT32: in FLOAT64, within 0.502 ULP; their inverses in FLOAT32, within 2.1 ULP.

The coefficients come from tools/minimax.py, the constant term first.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from opendml.program.common_math import (
    LOG,
    LOG_2,
    at_least,
    at_most,
    even,
    exponent_bits,
    float32_bits,
    odd,
    polynomial,
    scaled_logarithm,
    with_sign_of,
    with_signed_zero,
)
from opendml.program.functions import multiply_add, select, square_root
from opendml.program.node import Node, Operation, apply, bitcast, convert
from opendml.program.scalar_type import ScalarType

_F32, _F64, _I64 = ScalarType.FLOAT32, ScalarType.FLOAT64, ScalarType.INT64


def hyperbolic_sine(x: Node) -> Node:
    """sinh(x) = sinh(n log 2) cosh(r) + cosh(n log 2) sinh(r), x = n log 2 + r: nothing cancels near zero"""
    sum_, difference, even, odd = _powers(x)
    return with_signed_zero(x, convert(multiply_add(difference, even, sum_ * odd), _F32))


def hyperbolic_cosine(x: Node) -> Node:
    """cosh(x) = cosh(n log 2) cosh(r) + sinh(n log 2) sinh(r)"""
    sum_, difference, even, odd = _powers(x)
    return convert(multiply_add(sum_, even, difference * odd), _F32)


def inverse_hyperbolic_sine(x: Node) -> Node:
    """asinh(x) = log(|x| + sqrt(x^2 + 1)); up to 1 a polynomial"""
    magnitude = abs(x)
    root = square_root(multiply_add(x, x, 1.0))
    # From 2^60 on, where the square may be infinite, the root is x itself.
    root = select(magnitude < _SQUARED, root, magnitude)
    far = _logarithm_of_sum(root, magnitude)
    return with_sign_of(x, select(magnitude < 1.0, odd(magnitude, _ASINH), far))


def inverse_hyperbolic_cosine(x: Node) -> Node:
    """acosh(x) = log(x + sqrt(x^2 - 1)); up to 1.875 the root of x - 1 times a polynomial; NaN below 1"""
    root = square_root(multiply_add(x, x, -1.0))
    far = _logarithm_of_sum(x, select(x < _SQUARED, root, x))
    rest = x - 1.0
    return select(rest < 0.875, square_root(rest) * polynomial(_ACOSH, rest), far)


def inverse_hyperbolic_tangent(x: Node) -> Node:
    """atanh(x) = log((1 + |x|) / (1 - |x|)) / 2; up to a half a polynomial; infinite at 1, NaN beyond"""
    magnitude = abs(x)
    far = _logarithm((1.0 + magnitude) / (1.0 - magnitude)) * 0.5
    result = select(magnitude < 0.5, odd(magnitude, _ATANH), far)
    return with_sign_of(x, select(magnitude > 1.0, math.nan, result))


def _logarithm_of_sum(a: Node, b: Node) -> Node:
    """log(a + b) where a^2 - b^2 = 1: what is lost of the sum is to be divided by it, which is 1 / (a - b).

    From 2^60 on, b is a, and their sum may be infinite.
    """
    is_small = a < _SQUARED
    total = a + select(is_small, b, 0.0)
    lost = (a - total) + b
    return _logarithm(total) + select(is_small, lost * (a - b), LOG_2)


def _logarithm(x: Node) -> Node:
    """log(x) for a normal positive number; infinity and NaN stay."""
    bits = float32_bits(x)
    exponent = exponent_bits(bits)
    fraction = bitcast(bits - exponent, _F32) - 1.0
    return select(x < math.inf, scaled_logarithm(LOG, fraction, convert(exponent, _F32)), x)


def _reduced(x: Node) -> tuple[Node, Node]:
    """n as INT64, with other bits above the lower 32, and r with x = n log 2 + r."""
    shifted = multiply_add(x, 1.0 / math.log(2.0), _UNITS)
    return bitcast(shifted, _I64), multiply_add(shifted - _UNITS, -math.log(2.0), x)


def _power_of_two(n: Node) -> Node:
    """2^n, whatever the upper bits of n."""
    return bitcast(apply(Operation.SHIFT_LEFT, n + _EXPONENT_BIAS, _MANTISSA_BITS), _F64)


def _powers(x: Node) -> tuple[Node, Node, Node, Node]:
    """(2^n + 2^-n) / 2, (2^n - 2^-n) / 2, cosh(r), sinh(r) for x = n log 2 + r."""
    n, r = _reduced(at_most(at_least(convert(x, _F64), -_HIGHEST), _HIGHEST))
    above, below = _power_of_two(n - 1), _power_of_two(-n - 1)
    return above + below, above - below, even(r, _COSH), odd(r, _SINH)


_SQUARED = 2.0**60
"""Below this the square is finite."""
_MANTISSA_BITS = 52
_EXPONENT_BIAS = 1023
_UNITS = 1.5 * 2.0**52
"""From here on, the last bit of a FLOAT64 counts units; the middle leaves room for both signs."""
_HIGHEST = 110.0
"""Above this exp(x) is infinite, below its opposite zero, in FLOAT32."""

_SINH = (
    0.16666666754079162,
    0.0083332890812072204,
    0.00019904885040191022,
)
_COSH = (
    0.50000000778854803,
    0.041666270442641859,
    0.0013946028698664183,
)
"""(sinh(r) / r - 1) / r^2 and (cosh(r) - 1) / r^2 as functions of r^2, up to r = log 2 / 2."""

_ASINH = (
    -0.166666299,
    0.0749871582,
    -0.0444878787,
    0.0294562876,
    -0.0191820674,
    0.0104308436,
    -0.00383843947,
    0.000673985283,
)
"""(asinh(x) / x - 1) / x^2 as a function of x^2, up to x = 1."""
_ACOSH = (
    1.41421354,
    -0.117849052,
    0.026487235,
    -0.00773746939,
    0.00229859608,
    -0.000485576573,
    2.98592258e-05,
)
"""acosh(1 + t) / sqrt(t), up to t = 7/8."""
_ATANH = (
    0.333333015,
    0.20002453,
    0.142237857,
    0.118163861,
    0.0516043603,
    0.176378503,
)
"""(atanh(x) / x - 1) / x^2 as a function of x^2, up to x = 1/2."""

EXPANSIONS: dict[Operation, Callable[..., Node]] = {
    Operation.HYPERBOLIC_SINE: hyperbolic_sine,
    Operation.HYPERBOLIC_COSINE: hyperbolic_cosine,
    Operation.INVERSE_HYPERBOLIC_SINE: inverse_hyperbolic_sine,
    Operation.INVERSE_HYPERBOLIC_COSINE: inverse_hyperbolic_cosine,
    Operation.INVERSE_HYPERBOLIC_TANGENT: inverse_hyperbolic_tangent,
}
