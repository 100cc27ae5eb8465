"""Powers of FLOAT32: the logarithm to base 2 and its product with the exponent are sums of two FLOAT32.

Of normal positive numbers with results well within the range of the type nothing needs care. All else is
computed apart from them, where there is any.
"""

from __future__ import annotations

import math

from opendml.program.common_math import (
    LEAST_NORMAL,
    TWO_23,
    TWO_HALF_POWERS,
    UNITS,
    exponent_bits,
    float32_bits,
    polynomial,
    power_of,
    times_power,
)
from opendml.program.functions import equal, logical_not, multiply_add, rarely, select
from opendml.program.node import Node, Operation, apply, bitcast, constant, convert


def power(x: Node, y: Node) -> Node:
    """Return x^y = 2^(y log2 |x|) within 1.7 ULP; denormal arguments and results included."""
    magnitude = abs(x)
    exponent, rest = _product(y, *_logarithm(magnitude, 0.0))
    bits, fraction = _split_power(exponent, rest, UNITS)
    usual = bitcast(apply(Operation.SHIFT_LEFT, bits, 23) + float32_bits(fraction), x.type)
    return with_care(x, y, exponent, usual, _power_of_any(magnitude, y), _USUAL)


def with_care(x: Node, y: Node, exponent: Node, usual: Node, of_any: Node, bound: float) -> Node:
    """Return x^y from two ways to compute |x|^y.

    Args:
        x, y: base and exponent.
        exponent: the logarithm of the result.
        usual: |x|^y for normal x, if the logarithm is within the bound.
        of_any: |x|^y for any x but zero.
        bound: the magnitude of the logarithm up to which `usual` holds.
    """
    magnitude, is_zero = abs(x), equal(x, 0.0)
    is_normal = apply(Operation.AND, magnitude >= LEAST_NORMAL, magnitude < math.inf)
    is_usual = apply(Operation.AND, is_normal, abs(exponent) <= bound)
    is_special = logical_not(apply(Operation.OR, is_usual, is_zero))
    result = rarely(is_special, of_any, usual)
    needs_care = apply(Operation.OR, is_special, logical_not(x >= LEAST_NORMAL))
    of_zero = select(y > 0.0, constant(0.0, x.type), select(y < 0.0, math.inf, y))
    return rarely(needs_care, power_of(x, y, select(is_zero, of_zero, result)), result)


def _power_of_any(x: Node, y: Node) -> Node:
    """Return x to the power of y for any x above zero, and any result, but for the pairs that `power_of`
    knows."""
    is_small = x < LEAST_NORMAL
    scale = select(is_small, constant(-23.0, x.type), 0.0)
    high, low = _logarithm(select(is_small, x * TWO_23, x), scale)
    exponent, rest = _product(y, select(x < math.inf, high, x), low)
    bits, fraction = _split_power(exponent, rest, UNITS + TWO_HALF_POWERS)
    result = select(exponent > _HIGHEST, math.inf, times_power(fraction, bits))
    return select(exponent < _LOWEST, 0.0, result)


def _product(y: Node, high: Node, low: Node) -> tuple[Node, Node]:
    """Return y (high + low) in two parts."""
    product = high * y
    return product, multiply_add(low, y, multiply_add(high, y, -product))


def _split_power(exponent: Node, rest: Node, units: float) -> tuple[Node, Node]:
    """Return n in the lower bits of an INT32, and 2^f, for exponent + rest = n + f."""
    shifted = exponent + units
    f = (exponent - (shifted - units)) + rest
    return float32_bits(shifted), polynomial((1.0, *_EXP2), f)


def _logarithm(x: Node, scale: Node | float) -> tuple[Node, Node]:
    """Return log2(x) + scale in two parts, for a normal positive FLOAT32 x = 2^n m and a whole scale.

    For q = (m - 1) / (m + 1) it is n + 2 / log(2) (q + q^3 / 3 + ...). The first term is in two parts, and
    what is lost in q is multiplied by the slope of the series.
    """
    bits = float32_bits(x)
    exponent = exponent_bits(bits)
    f = bitcast(bits - exponent, x.type) - 1.0
    reciprocal = 1.0 / (f + 2.0)
    q = f * reciprocal
    q_low = multiply_add(-q, f, multiply_add(q, -2.0, f)) * reciprocal
    square = q * q
    cube = q * square
    curve = polynomial(_LOG2, square)
    first = q * _TWO_LOG2_E
    of_fraction = multiply_add(cube, curve, first)
    low = multiply_add(q, _TWO_LOG2_E, -first)
    low = multiply_add(q, _TWO_LOG2_E_LOW, low)
    low = multiply_add(multiply_add(q_low, square, q_low), _TWO_LOG2_E, low)
    low = low + multiply_add(cube, curve, first - of_fraction)
    n = multiply_add(convert(exponent, x.type), 1.0 / TWO_23, scale)
    high = n + of_fraction
    return high, low + ((n - high) + of_fraction)


_TWO_LOG2_E, _TWO_LOG2_E_LOW = 2.885390043258666992, 3.8519259825e-8
"""2 / log(2) in two parts."""
_USUAL = 125.0
"""2 to powers up to this magnitude is a normal number, and so is its product with 2^f."""
_LOWEST, _HIGHEST = -151.0, 129.0
"""2 to powers beyond these is 0 and infinity."""

_LOG2 = (0.961796701, 0.577079356, 0.411871582, 0.337836951)
"""(log2((1 + q) / (1 - q)) - 2 q / log(2)) / q^3 in q^2, for (1 + q) / (1 - q) from 0.7 to 1.4."""
_EXP2 = (0.693147182, 0.240226477, 0.0555035956, 0.0096185049, 0.0013391024, 0.0001532717)
"""(2^f - 1) / f for f from -1/2 to 1/2."""
