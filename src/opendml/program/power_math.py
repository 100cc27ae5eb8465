"""Powers of FLOAT32: the logarithm and its product with the exponent are sums of two FLOAT32."""

from __future__ import annotations

import math

from opendml.program.common_math import (
    EXP,
    LEAST_NORMAL,
    LOG_2_LOW,
    TWO_23,
    TWO_HALF_POWERS,
    exponent_bits,
    float32_bits,
    polynomial,
    power_of,
    reduced,
    times_power,
)
from opendml.program.functions import equal, multiply_add, select
from opendml.program.node import Node, bitcast, constant, convert


def power(x: Node, y: Node) -> Node:
    """x^y = exp(y log |x|) within 4 ULP, 1.6 for 999 in 1000 arguments; denormal results included."""
    high, low = _logarithm(abs(x))
    exponent = high * y
    rest = multiply_add(low, y, multiply_add(high, y, -exponent))
    bits, n, above = reduced(exponent, TWO_HALF_POWERS)
    magnitude = times_power(polynomial((1.0, 1.0, *EXP), above + multiply_add(n, LOG_2_LOW, rest)), bits)
    magnitude = select(exponent > _HIGHEST, math.inf, magnitude)
    return power_of(x, y, select(exponent < _LOWEST, 0.0, magnitude))


def _logarithm(x: Node) -> tuple[Node, Node]:
    """log(x) in two parts for a FLOAT32 that is not negative; x = 2^n (1 + f).

    The terms of the series up to f^3 are in two parts, the others, less than 1/100, in one.
    """
    is_small = x < LEAST_NORMAL
    bits = float32_bits(select(is_small, x * TWO_23, x))
    exponent = exponent_bits(bits)
    n = convert(exponent, x.type) * (1.0 / TWO_23) + select(is_small, constant(-23.0, x.type), 0.0)
    f = bitcast(bits - exponent, x.type) - 1.0
    square = f * f
    square_low = multiply_add(f, f, -square)
    cube = f * square
    cube_low = multiply_add(f, square_low, multiply_add(f, square, -cube))
    third = cube * _THIRD
    third_low = multiply_add(
        cube_low, _THIRD, multiply_add(cube, _THIRD_LOW, multiply_add(cube, _THIRD, -third))
    )
    first = multiply_add(square, -0.5, f)
    first_low = multiply_add(square, -0.5, f - first)
    of_fraction = first + third
    low = (first - of_fraction) + third
    low = low + multiply_add(square_low, -0.5, first_low) + third_low
    low = multiply_add(square * square, polynomial(_LOG_TAIL, f), low)
    whole = n * _LOG_2_WHOLE
    high = whole + of_fraction
    low = multiply_add(n, _LOG_2_REST, low + ((whole - high) + of_fraction))
    total = high + low
    is_inside = x < math.inf
    infinite = select(equal(x, 0.0), -math.inf, select(is_inside, total, x))
    return infinite, (high - total) + low


_THIRD, _THIRD_LOW = 0.3333333432674407958984375, -9.93410776862e-9
_LOG_2_WHOLE, _LOG_2_REST = 0.693145751953125, 1.42860682030941723212e-6
"""log 2: what n times has no rounding error, and the rest."""

_LOWEST, _HIGHEST = -104.0, 89.0
"""Beyond these the results are 0 and infinity."""

_LOG_TAIL = (
    -0.249999657,
    0.199999586,
    -0.166694075,
    0.142902553,
    -0.124283493,
    0.109597206,
    -0.107171685,
    0.110197157,
    -0.0666355565,
)
"""(log(1 + f) - f + f^2 / 2 - f^3 / 3) / f^4 for f from -0.3 to 0.4."""
