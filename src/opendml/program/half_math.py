"""Transcendental functions in FLOAT32 for results that are stored as FLOAT16: half the work of `vector_math`,
and enough for it.

Relative errors are at most 2^-15, which moves a FLOAT16 result by at most a sixteenth of its last place
before it is rounded once.
Results below 2^-126 or above 2^127 are not distinguished: they are zero and infinity in FLOAT16. Functions
that are not here are
expanded as for FLOAT32.

The coefficients come from tools/minimax.py, the constant term first.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from opendml.program import vector_math
from opendml.program.common_math import polynomial
from opendml.program.functions import multiply_add, select
from opendml.program.node import Node, Operation, apply, bitcast
from opendml.program.scalar_type import ScalarType

Function = Callable[[Node], Node]


def expand(node: Node) -> Node:
    """The function `node` (one of FUNCTIONS, FLOAT32) in basic operations."""
    expansion = _EXPANSIONS.get(node.operation)
    return expansion(node.operands[0]) if expansion else vector_math.expand(node)


def exponential(x: Node) -> Node:
    """exp(x)"""
    bits, r = _reduced(x)
    fraction = polynomial((1.0, 1.0, *_EXP), r)
    return bitcast(
        apply(Operation.SHIFT_LEFT, bits, 23) + bitcast(fraction, ScalarType.INT32), ScalarType.FLOAT32
    )


def exponential_minus_one(x: Node) -> Node:
    """exp(x) - 1, relative to itself also near zero"""
    bits, r = _reduced(x)
    power = bitcast(apply(Operation.SHIFT_LEFT, bits + _EXPONENT_BIAS, 23), ScalarType.FLOAT32)
    return multiply_add(power, r * polynomial((1.0, *_EXPM1), r), power - 1.0)


def hyperbolic_tangent(x: Node) -> Node:
    """tanh(x) = t / (t + 2) for t = exp(2 x) - 1, which tends to 1 where t would overflow"""
    growth = exponential_minus_one(_between(x + x, -30.0, 30.0))
    return growth / (growth + 2.0)


def logarithm_one_plus_exponential(x: Node, exponential: Function = exponential) -> Node:
    """log(1 + exp(x)) for x that is not above zero, with a target's own exponential if it has one"""
    power = exponential(x)
    return power * polynomial(_SOFTPLUS, power)


def gaussian_error_linear_unit(x: Node, exponential: Function = exponential) -> Node:
    """max(x, 0) less |x| times the probability above |x|, which is exp(-x^2 / 2) times a slow function of
    k / (|x| + k); with a target's own exponential if it has one"""
    magnitude = abs(x)
    magnitude = select(magnitude > _TAIL_END, _TAIL_END, magnitude)
    share = _TAIL_SCALE / (magnitude + _TAIL_SCALE)
    slow = share * polynomial(_TAIL, multiply_add(share, 2.0, -1.0))
    tail = slow * exponential(magnitude * magnitude * -0.5)
    return multiply_add(-magnitude, tail, select(x < 0.0, 0.0, x))


def _reduced(x: Node) -> tuple[Node, Node]:
    """n, with 1.5 * 2^23 in the bits above it, and r with exp(x) = 2^n exp(r)."""
    within = _between(x, -87.0, 88.0)
    shifted = multiply_add(within, 1.0 / math.log(2.0), _UNITS)
    return bitcast(shifted, ScalarType.INT32), multiply_add(shifted - _UNITS, -math.log(2.0), within)


def _between(x: Node, low: float, high: float) -> Node:
    """x within bounds; NaN stays."""
    raised = select(x < low, low, x)
    return select(high < raised, high, raised)


_UNITS = 1.5 * 2.0**23
"""From here on, the last bit of a FLOAT32 counts units."""
_EXPONENT_BIAS = 127

_EXP = (0.5000512, 0.16753532, 0.0412774459)
"""(exp(r) - 1 - r) / r^2, weighted relative to exp(r)."""
_EXPM1 = (0.50001651, 0.167496458, 0.0416102409)
"""The same, weighted relative to exp(r) - 1."""

_SOFTPLUS = (0.999991596, -0.499361247, 0.325205654, -0.210045591, 0.101218492, -0.0238675363)
"""log(1 + t) / t for t from 0 to 1."""

_TAIL_SCALE, _TAIL_END = 1.5, 8.0
"""k, and where the tail is zero in FLOAT16 even times the greatest x."""
_TAIL = (0.41155526, 0.130046859, -0.0381255373, -0.0117883934, 0.0106111271, -0.00229153526)
"""exp(x^2 / 2) times the probability above x, over s, as a function of 2 s - 1 for s = k / (x + k); up to
x = 6, from where on x times the probability is zero in FLOAT16."""

_EXPANSIONS: dict[Operation, Function] = {
    Operation.EXPONENTIAL: exponential,
    Operation.EXPONENTIAL_MINUS_ONE: exponential_minus_one,
    Operation.HYPERBOLIC_TANGENT: hyperbolic_tangent,
    Operation.LOGARITHM_ONE_PLUS_EXPONENTIAL: logarithm_one_plus_exponential,
    Operation.GAUSSIAN_ERROR_LINEAR_UNIT: gaussian_error_linear_unit,
}
