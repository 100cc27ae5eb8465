"""Constants and steps that the expansions of functions share."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opendml.program.functions import equal, logical_not, multiply_add, select, truncate
from opendml.program.node import Node, Operation, apply, bitcast, constant, convert
from opendml.program.scalar_type import ScalarType

LOG_2 = math.log(2.0)
LOG2_E = 1.0 / LOG_2
LOG_2_HIGH = 0.693147182464599609375
"""log 2 rounded to FLOAT32."""
LOG_2_LOW = LOG_2_HIGH - LOG_2
"""The error of LOG_2_HIGH."""

TWO_23 = 2.0**23
UNITS = 1.5 * TWO_23
"""Between 2^23 and 2^24 a FLOAT32's last bit counts units; the middle leaves room for both signs."""
EXPONENT_BIAS = 127
TWO_HALF_POWERS = 2 * EXPONENT_BIAS
FOUR_QUARTER_POWERS = 4 * EXPONENT_BIAS
SCALED_HIGHEST = 280.0
"""e to this power, and to minus it, leaves nothing finite of any number but zero."""
LEAST_NORMAL = 2.0**-126
EXPONENT_MASK = -(2**23)
LEAST_MANTISSA_BITS = 0x3F333333
"""0.7"""
EXP = (0.49999994, 0.166665211, 0.0416682623, 0.00836867094, 0.00138209993)
"""(exp(r) - 1 - r) / r^2; weighted relative to exp(r)."""
LOG = (
    -0.499999911,
    0.333332926,
    -0.25001362,
    0.200043529,
    -0.166163787,
    0.14133206,
    -0.131255805,
    0.132052079,
    -0.0832739323,
)
"""(log(1 + f) - f) / f^2."""

SIGN_MASK = -(2**31)  # The sign bit of a FLOAT32, in an INT32.


def polynomial(coefficients: Sequence[float], x: Node) -> Node:
    """Evaluate a polynomial by Horner's scheme, with two coefficients or more, the constant term first."""
    *rest, previous, last = coefficients
    result = multiply_add(x, last, previous)
    for coefficient in reversed(rest):
        result = multiply_add(result, x, coefficient)
    return result


def odd(x: Node, coefficients: Sequence[float]) -> Node:
    """Return x + x^3 times a polynomial in x^2."""
    square = x * x
    return multiply_add(x * square, polynomial(coefficients, square), x)


def even(x: Node, coefficients: Sequence[float]) -> Node:
    """Return 1 + x^2 times a polynomial in x^2."""
    square = x * x
    return multiply_add(square, polynomial(coefficients, square), 1.0)


def at_least(x: Node, bound: float) -> Node:
    """Return x, but not below the bound; NaN stays. (MAXIMUM costs more: it has an order for zeros.)"""
    lowest = constant(bound, x.type)
    return select(x < lowest, lowest, x)


def at_most(x: Node, bound: float) -> Node:
    """Return x, but not above the bound; NaN stays."""
    highest = constant(bound, x.type)
    return select(highest < x, highest, x)


def float32_bits(x: Node) -> Node:
    """Return the bits of a FLOAT32 as INT32."""
    return bitcast(x, ScalarType.INT32)


def with_sign_of(x: Node, magnitude: Node) -> Node:
    """Return `magnitude`, which is not negative or has the sign of x already, with the sign of x; both
    FLOAT32."""
    sign = apply(Operation.AND, float32_bits(x), SIGN_MASK)
    return bitcast(apply(Operation.OR, float32_bits(magnitude), sign), ScalarType.FLOAT32)


def unless_minus_infinite(x: Node, result: Node) -> Node:
    """Return `result`, and NaN where x is -infinity."""
    return select(x > -math.inf, result, math.nan)


def with_signed_zero(x: Node, result: Node) -> Node:
    """Return `result`, and where x is zero, x itself."""
    return select(equal(x, 0.0), x, result)


def power_of(x: Node, y: Node, magnitude: Node) -> Node:
    """Return x^y from |x|^y; all FLOAT32. It is negative where x is and y is odd; special values are those of
    C."""
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


def reduced(x: Node, bias: float) -> tuple[Node, Node, Node]:
    """Return n as INT32 and as FLOAT32, and high with exp(x) = 2^n exp(high + n LOG_2_LOW), |high| <= log 2 /
    2.

    The integer comes with `bias` added, and its upper bits hold the rest of a float: in x / log 2 + 1.5 *
    2^23 the last bits of the significand count units. So nothing is converted, which for NaN would be
    undefined.
    """
    return reduced_by(x, UNITS + bias)


def reduced_by(x: Node, units: Node | float) -> tuple[Node, Node, Node]:
    """Return the same where `units`, the sum of UNITS and the bias, may be a node."""
    shifted = multiply_add(x, LOG2_E, units)
    n = shifted - units
    return float32_bits(shifted), n, multiply_add(n, -LOG_2_HIGH, x)


def power_of_two(biased_exponent: Node) -> Node:
    """Return the FLOAT32 with the exponent field in the low 8 bits; the ninth must be 0, as it becomes the
    sign."""
    return bitcast(apply(Operation.SHIFT_LEFT, biased_exponent, 23), ScalarType.FLOAT32)


def times_power(value: Node, bits: Node) -> Node:
    """Return value * 2^n, rounded once, for n with the bias TWO_HALF_POWERS.

    The power itself may be too great or too small for a FLOAT32, its halves are not.
    """
    half = apply(Operation.SHIFT_RIGHT, bits, 1)
    return value * power_of_two(half) * power_of_two(bits - half)


def times_scaled_power(value: Node, bits: Node, factor: Node) -> Node:
    """Return factor * value * 2^n for a value near 1 and n with the bias FOUR_QUARTER_POWERS.

    Quarters of the power take the factor from any number to any other without leaving the range between.
    """
    quarter = apply(Operation.SHIFT_RIGHT, bits, 2)
    power, rest = power_of_two(quarter), power_of_two(bits - quarter - quarter - quarter)
    return factor * power * power * (value * rest) * power


def exponent_bits(bits: Node) -> Node:
    """Return n 2^23 for a normal number 2^n m with m from 0.7 to 1.4, from its bits."""
    return apply(Operation.AND, bits - LEAST_MANTISSA_BITS, EXPONENT_MASK)


def scaled_logarithm(coefficients: tuple[float, ...], fraction: Node, exponent: Node) -> Node:
    """Return log((1 + fraction) 2^n) for a fraction from -0.3 to 0.4; `exponent` is n 2^23."""
    square = fraction * fraction
    of_fraction = multiply_add(square, polynomial(coefficients, fraction), fraction)
    return multiply_add(exponent, LOG_2 / TWO_23, of_fraction)


def normal_logarithm(coefficients: tuple[float, ...], x: Node, doubled: bool = False) -> Node:
    """Return log(x), or log(2 x), of a normal positive FLOAT32; infinity and NaN stay."""
    return select(x < math.inf, finite_logarithm(coefficients, x, doubled), x)


def finite_logarithm(coefficients: tuple[float, ...], x: Node, doubled: bool = False) -> Node:
    """Return the same of numbers alone."""
    bits = float32_bits(x)
    exponent = exponent_bits(bits)
    fraction = bitcast(bits - exponent, x.type) - 1.0
    scale = convert(exponent + 2**23 if doubled else exponent, x.type)
    return scaled_logarithm(coefficients, fraction, scale)
