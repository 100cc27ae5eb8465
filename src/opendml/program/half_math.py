"""Transcendental functions in FLOAT32 for results that are stored as FLOAT16: half the work of `vector_math`,
and enough for it.

Relative errors are at most 2^-15, which moves a FLOAT16 result by at most a sixteenth of its last place
before it is rounded once. So it is where an operator multiplies or divides them before; `program.narrow` says
which functions are computed so. Exponentials below 2^-126 are zero, those above 2^127 may be infinite.
Functions that are not here are expanded as for FLOAT32.

The coefficients come from tools/minimax.py, the constant term first.
"""

from __future__ import annotations

from collections.abc import Callable

from opendml.program import power_math, vector_math
from opendml.program.angle_math import AngleFunctions
from opendml.program.common_math import (
    EXPONENT_BIAS,
    LOG2_E,
    LOG_2,
    UNITS,
    at_least,
    at_most,
    float32_bits,
    normal_logarithm,
    polynomial,
    power_of_two,
    unless_minus_infinite,
    with_signed_zero,
)
from opendml.program.functions import multiply_add, select
from opendml.program.hyperbolic_math import HyperbolicFunctions
from opendml.program.node import Node, Operation

Function = Callable[[Node], Node]


def expand(node: Node) -> Node:
    """Return the function `node` (one of FUNCTIONS, FLOAT32) in basic operations."""
    expansion = _EXPANSIONS.get(node.operation)
    return expansion(*node.operands) if expansion else vector_math.expand(node)


def exponential(x: Node) -> Node:
    """Return exp(x)."""
    return bounded_exponential(_within(x, 88.7))


def bounded_exponential(x: Node) -> Node:
    """Return exp(x) for x from -88 to 88.7."""
    power, r = _reduced(x)
    return power * polynomial((1.0, 1.0, *_EXP), r)


def scaled_exponential(x: Node, factor: Node) -> Node:
    """Return factor exp(x), where exp(x) may be beyond the range of the type."""
    root = exponential(x * 0.5)
    return factor * root * root


def exponential_minus_one(x: Node) -> Node:
    """Return exp(x) - 1, relative to itself also near zero; 2^127 where it is more."""
    power, r = _reduced(_within(x, 88.0))
    return multiply_add(power, r * polynomial((1.0, *_EXPM1), r), power - 1.0)


def hyperbolic_tangent(x: Node) -> Node:
    """Return tanh(x) = t / (t + 2) for t = exp(2 x) - 1, which tends to 1 where t would overflow."""
    growth = exponential_minus_one(at_most(at_least(x + x, -30.0), 30.0))
    return with_signed_zero(x, growth / (growth + 2.0))


def logarithm_one_plus_exponential(x: Node, exponential: Function = exponential) -> Node:
    """Return log(1 + exp(x)) for x that is not above zero, with a target's own exponential if it has one."""
    power = exponential(x)
    return power * polynomial(_SOFTPLUS, power)


def gaussian_error_linear_unit(x: Node) -> Node:
    """Return max(x, 0) less |x| times the probability above |x|, which is exp(-x^2 / 2) times a slow function
    of |x|."""
    magnitude = abs(x)
    magnitude = select(magnitude > _TAIL_END, _TAIL_END, magnitude)
    slow = polynomial(_TAIL, multiply_add(magnitude, 2.0 / _TAIL_END, -1.0))
    tail = slow * bounded_exponential(magnitude * magnitude * -0.5)
    # Bounded by -0 a zero keeps its sign, so that this is a maximum.
    return unless_minus_infinite(x, multiply_add(-magnitude, tail, select(x < -0.0, -0.0, x)))


def logarithm(x: Node) -> Node:
    """Return log(x); -infinity at zero, NaN below."""
    return vector_math.logarithm_by(_LOG, x)


def logarithm_one_plus(x: Node) -> Node:
    """Return log(1 + x); -infinity at -1, NaN below."""
    return vector_math.logarithm_one_plus_by(_LOG, x)


def power(x: Node, y: Node) -> Node:
    """Return |x|^y = exp(y log |x|), with a more exact logarithm."""
    magnitude = abs(x)
    exponent = normal_logarithm(_POWER_LOG, magnitude) * y
    of_any = exponential(vector_math.logarithm(magnitude) * y)
    return power_math.with_care(x, y, exponent, exponential(exponent), of_any, _GREATEST)


def _within(x: Node, highest: float) -> Node:
    """Return x, but not beyond where exp(x) is 2^-127, which is zero, as its exponent is, or 2^128,
    infinity."""
    return at_most(at_least(x, -88.0), highest)


def _reduced(x: Node) -> tuple[Node, Node]:
    """Return 2^n, and r with exp(x) = 2^n exp(r). A NaN is in r, and its bits in the power do no harm."""
    shifted = multiply_add(x, LOG2_E, UNITS)
    power = power_of_two(float32_bits(shifted) + EXPONENT_BIAS)
    return power, multiply_add(shifted - UNITS, -LOG_2, x)


_EXP = (0.5000512, 0.16753532, 0.0412774459)
"""(exp(r) - 1 - r) / r^2, weighted relative to exp(r)."""
_EXPM1 = (0.50001651, 0.167496458, 0.0416102409)
"""(exp(r) - 1 - r) / r^2, weighted relative to exp(r) - 1."""

_SOFTPLUS = (0.999991596, -0.499361247, 0.325205654, -0.210045591, 0.101218492, -0.0238675363)
"""log(1 + t) / t for t from 0 to 1."""

_TAIL_END = 5.75
"""From here on x times the probability above x is zero in FLOAT16."""
_TAIL = (
    0.125961348,
    -0.10584598,
    0.0833532065,
    -0.0610202961,
    0.0432381183,
    -0.0367297903,
    0.0214581843,
    0.0055176192,
    0.0078053684,
    -0.0200927481,
)
"""exp(x^2 / 2) times the probability above x, as a function of 2 x / _TAIL_END - 1; weighted relative to
itself, less where FLOAT16 is denormal."""

_LOG = (-0.499931872, 0.332647979, -0.253154159, 0.220946014, -0.149602652)
"""(log(1 + f) - f) / f^2 for f from -0.3 to 0.4."""
_POWER_LOG = (-0.500002682, 0.333353579, -0.249754921, 0.198797852, -0.171432763, 0.164254352, -0.108207971)
"""(log(1 + f) - f) / f^2, exact enough to be multiplied by an exponent."""
_GREATEST = 3.4028234663852886e38  # The greatest FLOAT32.

_ANGLES = AngleFunctions(
    parts=2,
    sin=(-0.166633889, 0.00816324446),
    cos=(-0.499760449, 0.0404581837),
    tan=(0.333154172, 0.136067018, 0.0413920507, 0.0430951528),
    asin=(0.166801259, 0.0718998089, 0.064107269),
    atan=(-0.333088994, 0.196183026, -0.122514792, 0.0587699786, -0.0139549831),
)

_HYPERBOLIC = HyperbolicFunctions(
    near_sinh=(),
    sinh=(0.166665435, 0.00836653449),
    cosh=(0.499991447, 0.0418984443),
    asinh=(-0.165891573, 0.068621397, -0.026708724, 0.00536630163),
    acosh=(-0.0831546038, 0.0175687671, -0.00319208624),
    atanh=(0.3338449, 0.188220769, 0.216322646),
    log=_LOG,
)

_EXPANSIONS: dict[Operation, Callable[..., Node]] = {
    **_ANGLES.expansions(),
    **_HYPERBOLIC.expansions(),
    Operation.EXPONENTIAL: exponential,
    Operation.EXPONENTIAL_MINUS_ONE: exponential_minus_one,
    Operation.SCALED_EXPONENTIAL: scaled_exponential,
    Operation.HYPERBOLIC_TANGENT: hyperbolic_tangent,
    Operation.LOGARITHM_ONE_PLUS_EXPONENTIAL: logarithm_one_plus_exponential,
    Operation.GAUSSIAN_ERROR_LINEAR_UNIT: gaussian_error_linear_unit,
    Operation.LOGARITHM: logarithm,
    Operation.LOGARITHM_ONE_PLUS: logarithm_one_plus,
    Operation.POWER: power,
}
