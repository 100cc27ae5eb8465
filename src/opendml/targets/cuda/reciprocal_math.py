"""A function in FLOAT32 for which the machine's approximate reciprocal is good enough."""

from __future__ import annotations

import math

from opendml.program.common_math import (
    EXP,
    LOG2_E,
    UNITS,
    at_least,
    at_most,
    float32_bits,
    polynomial,
    unless_minus_infinite,
)
from opendml.program.functions import multiply_add
from opendml.program.node import Node, Operation, apply, bitcast
from opendml.program.vector_math import (
    NORMAL_HIGHEST,
    NORMAL_NUMERATOR,
    NORMAL_SCALE,
    NORMAL_SENSITIVITY,
    NORMAL_TAIL,
    TAIL_UNITS,
)


def gaussian_error_linear_unit(x: Node) -> Node:
    """Return x times the probability that a standard normal variable is below x, within 3.6 ULP.

    That holds also where the probability is denormal. `program.vector_math` is more exact and takes a quarter
    more instructions.
    """
    tail = _normal_tail(at_most(abs(x), NORMAL_HIGHEST))
    # -0 rather than 0, so that no tail at all leaves the sign of x.
    result = multiply_add(tail, -NORMAL_NUMERATOR * 2.0**-TAIL_UNITS, at_least(x, -0.0))
    return unless_minus_infinite(x, result)


def _normal_tail(x: Node) -> Node:
    """Return the probability that a standard normal variable is above x (0 to NORMAL_HIGHEST), over
    NORMAL_NUMERATOR, times x and 2^TAIL_UNITS, so that it is no denormal number.

    It is exp(-x^2 / 2) times a slowly falling function of x: s = 1 / (x + k) times a polynomial of s. The
    exponent corrects the error of s, the difference of s (x + k) from 1. It is twice as great here, and
    negative.
    """
    shifted = multiply_add(x * x, -0.5 * LOG2_E, UNITS + TAIL_UNITS)
    n = shifted - (UNITS + TAIL_UNITS)
    # The product with n has no more bits than a FLOAT32, and the sum is rounded once.
    high = multiply_add(x, x, n * _TWO_LOG_2_HIGH)
    falling = 1.0 / (x + NORMAL_SCALE)
    excess = multiply_add(-falling, NORMAL_SCALE, multiply_add(-falling, x, 1.0))
    exponent = multiply_add(excess, -2.0 * NORMAL_SENSITIVITY, multiply_add(n, _TWO_LOG_2_LOW, high))
    growth = exponent * polynomial(_EXP_OF_MINUS_HALF, exponent)
    argument = multiply_add(falling, 2.0 * NORMAL_SCALE, -1.0)
    slow = argument * polynomial(NORMAL_TAIL, argument)
    power_bits = apply(Operation.SHIFT_LEFT, float32_bits(shifted), 23)
    scaled = bitcast(float32_bits(falling) + power_bits, x.type) * x
    return multiply_add(scaled, multiply_add(slow, growth, slow + growth), scaled)


_TWO_LOG_2_HIGH = 1.38629150390625
_TWO_LOG_2_LOW = 2.0 * math.log(2.0) - _TWO_LOG_2_HIGH
"""2 log 2 in 16 bits, and the rest."""
_EXP_OF_MINUS_HALF = tuple(c * (-0.5) ** (power + 1) for power, c in enumerate((1.0, *EXP)))
"""(exp(-r / 2) - 1) / r."""
