"""Functions of FLOAT32 that are computed in FLOAT64 and rounded once: within 0.502 ULP.

FLOAT64 has room for what is hard in FLOAT32: differences that cancel, and, in `angle_math`, angles far from
zero. The polynomials are as exact as that needs: relative errors are below
2^-33.

The coefficients come from tools/minimax.py, the constant term first.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from opendml.program import angle_math, power_math
from opendml.program.common_math import (
    at_least,
    at_most,
    even,
    odd,
    polynomial,
    with_sign_of,
    with_signed_zero,
)
from opendml.program.functions import (
    multiply_add,
    select,
    square_root,
)
from opendml.program.node import Node, Operation, apply, bitcast, constant, convert
from opendml.program.scalar_type import ScalarType

_F32, _F64, _I64 = ScalarType.FLOAT32, ScalarType.FLOAT64, ScalarType.INT64


def expand(node: Node) -> Node:
    """The function `node` (FLOAT32) in basic operations."""
    return _EXPANSIONS[node.operation](*node.operands)


def hyperbolic_sine(x: Node) -> Node:
    """sinh(x) = sinh(n log 2) cosh(r) + cosh(n log 2) sinh(r), x = n log 2 + r: nothing cancels near zero"""
    sum_, difference, even, odd = _powers(x)
    return with_signed_zero(x, convert(multiply_add(difference, even, sum_ * odd), _F32))


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


def _wide(x: Node) -> Node:
    return convert(x, _F64)


def _between(x: Node, low: float, high: float) -> Node:
    return at_most(at_least(x, low), high)


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


def _powers(x: Node) -> tuple[Node, Node, Node, Node]:
    """(2^n + 2^-n) / 2, (2^n - 2^-n) / 2, cosh(r), sinh(r) for x = n log 2 + r."""
    n, r = _reduced(_between(_wide(x), -_HIGHEST, _HIGHEST))
    above, below = _power_of_two(n - 1), _power_of_two(-n - 1)
    return above + below, above - below, even(r, _COSH), odd(r, _SINH)


def _logarithm(x: Node) -> Node:
    """log(x) of a normal positive FLOAT64; infinity and NaN stay."""
    bits = bitcast(x, _I64)
    exponent = apply(Operation.AND, bits - _LEAST_MANTISSA_BITS, _EXPONENT_MASK)
    fraction = bitcast(bits - exponent, _F64) - 1.0
    n = convert(apply(Operation.SHIFT_RIGHT, exponent, _MANTISSA_BITS), _F64)
    of_fraction = multiply_add(fraction * fraction, polynomial(_LOG, fraction), fraction)
    return select(x < math.inf, multiply_add(n, math.log(2.0), of_fraction), x)


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

_LOG = (
    -0.50000000350343277,
    0.33333333580710772,
    -0.24999930666298054,
    0.19999919197211183,
    -0.16670495600097487,
    0.14291898556860824,
    -0.12415107717576769,
    0.10934745750229254,
    -0.10770120776234894,
    0.11144789790639177,
    -0.066941308000559335,
)
"""(log(1 + f) - f) / f^2 for f from -0.3 to 0.4."""

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

_EXPANSIONS: dict[Operation, Callable[..., Node]] = {
    **angle_math.EXPANSIONS,
    Operation.POWER: power_math.power,
    Operation.HYPERBOLIC_SINE: hyperbolic_sine,
    Operation.HYPERBOLIC_COSINE: hyperbolic_cosine,
    Operation.INVERSE_HYPERBOLIC_SINE: inverse_hyperbolic_sine,
    Operation.INVERSE_HYPERBOLIC_COSINE: inverse_hyperbolic_cosine,
    Operation.INVERSE_HYPERBOLIC_TANGENT: inverse_hyperbolic_tangent,
}
