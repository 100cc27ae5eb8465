"""Transcendental functions in FLOAT32 as graphs of basic operations, the same for every target.

Range reduction, a polynomial, and selection instead of branches; no tables, and nothing that is undefined for NaN. All accuracies
are greatest distances, over all arguments, from the exact result in units of the last place of a FLOAT32 (denormal results
included). They hold on targets that keep MULTIPLY_ADD in one rounding, keep denormals, and do not reassociate.

The coefficients come from tools/minimax.py, the constant term first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from opendml.errors import Unsupported
from opendml.program.functions import multiply_add, select
from opendml.program.node import Node, Operation, apply, bitcast, constant, convert
from opendml.program.scalar_type import ScalarType


def expand(node: Node) -> Node:
    """The function `node` (one of FUNCTIONS, FLOAT32) in basic operations; raises Unsupported for other types."""
    if node.type is not ScalarType.FLOAT32:
        raise Unsupported(f"{node.operation.name} of {node.type.name}")
    return _EXPANSIONS[node.operation](node.operands[0])


def exponential(x: Node) -> Node:
    """exp(x) within 0.90 ULP; where x is a product, of the product before it was rounded, within 1.02."""
    within = _at_most(_at_least(x, _EXP_LOWEST), _EXP_HIGHEST)
    factors = _factors(x)
    if factors is None:
        return _exponential_within(within)
    # The product's rounding error grows to |x| times its relative size in the result, so it takes part. Outside the range it
    # may be infinite or NaN, and means nothing.
    error = multiply_add(*factors, -x)
    return _exponential_within(within, select(apply(Operation.EQUAL, within, x), error, 0.0))


def exponential_minus_one(x: Node) -> Node:
    """exp(x) - 1 within 0.98 ULP, with the sign of x."""
    bits, n, high = _reduced_exponent(_at_most(_at_least(x, _EXPM1_LOWEST), _EXP_HIGHEST), _HALF_POWER)
    low = n * _LOG_2_LOW
    r = high + low
    square = r * r
    remainder = multiply_add(square, _polynomial(_EXPM1, r), low)
    # Half of the result: 2 to the power n would overflow before the result does. What is small is added last.
    power = _power_of_two(bits)
    half = multiply_add(power, remainder, multiply_add(power, high, power - 0.5))
    # For tiny arguments the result is x: halving would lose a denormal's last bit, and the sum the sign of a zero.
    return select(apply(Operation.EQUAL, square, 0.0), x, half + half)


def logarithm(x: Node) -> Node:
    """log(x) within 0.86 ULP; -infinity at both zeros, NaN below."""
    # Denormals are scaled up by 2^23, and the exponent of the scale is taken off again.
    is_small = x < _LEAST_NORMAL
    bits = _bits(select(is_small, x * _TWO_23, x))
    exponent = _exponent_bits(bits)
    scale = convert(exponent, ScalarType.FLOAT32) + select(is_small, constant(-23.0 * _TWO_23, x.type), 0.0)
    mantissa = bitcast(bits - exponent, ScalarType.FLOAT32)
    return _at_the_ends(x, 0.0, _scaled_logarithm(mantissa - 1.0, scale))


def logarithm_one_plus(x: Node) -> Node:
    """log(1 + x) within 0.88 ULP, with the sign of x; -infinity at -1, NaN below."""
    exponent = _exponent_bits(_bits(x + 1.0))
    # (1 + x) 2^-n - 1, exact but for one rounding: x 2^-n is made by subtraction from the exponent (where n is not 0, x is not
    # small), 2^-n - 1 from 2^(2-n), which is a normal number for every n.
    scaled = bitcast(_bits(x) - exponent, ScalarType.FLOAT32)
    four_over_power = bitcast(apply(Operation.SUBTRACT, _FOUR_BITS, exponent), ScalarType.FLOAT32)
    fraction = scaled + multiply_add(four_over_power, 0.25, -1.0)
    result = _scaled_logarithm(fraction, convert(exponent, ScalarType.FLOAT32))
    return _at_the_ends(x, -1.0, _with_sign_of(x, result))


def hyperbolic_tangent(x: Node) -> Node:
    """tanh(x) within 1.14 ULP, with the sign of x."""
    magnitude = abs(x)
    square = x * x
    near = multiply_add(square * _polynomial(_TANH, square), magnitude, magnitude)
    power, rest = _scaled_exponential(_at_most(magnitude + magnitude, _TANH_HIGHEST))
    far = 1.0 - 2.0 / multiply_add(power, rest, 1.0)
    return _with_sign_of(x, select(magnitude < _TANH_NEAR, near, far))


def error_function(x: Node) -> Node:
    """erf(x) within 1.05 ULP, with the sign of x."""
    square = x * x
    near = multiply_add(x, _polynomial(_ERF, square), x)
    magnitude = _at_most(abs(x), _ERF_HIGHEST)
    power, rest = _scaled_exponential(magnitude * _polynomial(_ERF_EXPONENT, magnitude))
    far = multiply_add(-power, rest, 1.0)
    return select(abs(x) < _ERF_NEAR, near, _with_sign_of(x, far))


def normal_distribution(x: Node) -> Node:
    """The probability that a standard normal variable is below x, within 2.5 ULP."""
    tail = _normal_tail(_at_most(abs(x), _NORMAL_HIGHEST))
    return select(0.0 < x, 1.0 - tail, tail)


def gaussian_error_linear_unit(x: Node) -> Node:
    """x times normal_distribution(x) within 3 ULP also where the probability is denormal; 0 at -infinity, which is the limit."""
    magnitude = _at_most(abs(x), _NORMAL_HIGHEST)
    return _at_least(x, 0.0) - _normal_tail(magnitude, magnitude)


def _normal_tail(x: Node, factor: Node | None = None) -> Node:
    """The probability that a standard normal variable is above x, from 0 to _NORMAL_HIGHEST; times the factor.

    It is exp(-x^2 / 2) times a slowly falling function of x, which is a polynomial of s = k / (x + k) times s. The rounding
    errors of x^2 and of s are known exactly, and are made up for in the exponent.
    """
    minus_half = x * -0.5
    exponent = minus_half * x
    exponent_error = multiply_add(minus_half, x, -exponent)
    denominator = x + _NORMAL_SCALE
    denominator_error = x - (denominator - _NORMAL_SCALE)
    slope = _NORMAL_NUMERATOR / denominator
    excess = multiply_add(-slope, denominator_error, multiply_add(-slope, denominator, _NORMAL_NUMERATOR))
    error = multiply_add(excess, _NORMAL_SENSITIVITY / _NORMAL_NUMERATOR, exponent_error)
    argument = multiply_add(slope, 2.0 * _NORMAL_SCALE / _NORMAL_NUMERATOR, -1.0)
    scaled = slope if factor is None else slope * factor
    slow = multiply_add(scaled, argument * _polynomial(_NORMAL_TAIL, argument), scaled)
    bits, n, high = _reduced_exponent(exponent, _TWO_HALF_POWERS)
    r = high + multiply_add(n, _LOG_2_LOW, error)
    return _times_two_to(bits, multiply_add(slow, r * _polynomial((1.0, *_EXP), r), slow))


def _exponential_within(x: Node, error: Node | None = None) -> Node:
    """exp(x + error) for x from _EXP_LOWEST to _EXP_HIGHEST (or NaN), and an error that is small beside 1."""
    bits, n, high = _reduced_exponent(x, _TWO_HALF_POWERS)
    r = multiply_add(n, _LOG_2_LOW, high) if error is None else high + multiply_add(n, _LOG_2_LOW, error)
    return _times_two_to(bits, _polynomial((1.0, 1.0, *_EXP), r))


def _scaled_exponential(x: Node) -> tuple[Node, Node]:
    """Two factors of exp(x), for a power of two that is a normal number: the power, and exp of what is left."""
    bits, n, high = _reduced_exponent(x, _WHOLE_POWER)
    return _power_of_two(bits), _polynomial((1.0, 1.0, *_EXP), multiply_add(n, _LOG_2_LOW, high))


def _reduced_exponent(x: Node, bias: float) -> tuple[Node, Node, Node]:
    """n as an INT32 and as a FLOAT32, and r with exp(x) = 2^n exp(r + n _LOG_2_LOW), |r| at most half of log 2.

    The integer comes with `bias` added, and its upper bits hold the rest of a float: in x / log 2 + 1.5 * 2^23 the last bits of
    the significand count units. So nothing is converted, which for NaN would be undefined.
    """
    shifted = multiply_add(x, _LOG2_E, _UNITS + bias)
    n = shifted - (_UNITS + bias)
    return _bits(shifted), n, multiply_add(n, -_LOG_2_HIGH, x)


def _power_of_two(biased_exponent: Node) -> Node:
    """The FLOAT32 with the exponent field in the low 8 bits; the ninth must be 0, as it becomes the sign."""
    return bitcast(apply(Operation.SHIFT_LEFT, biased_exponent, 23), ScalarType.FLOAT32)


def _times_two_to(bits: Node, value: Node) -> Node:
    """value * 2^n, rounded once, for n with the bias _TWO_HALF_POWERS: the power itself may be too great or too small."""
    half = apply(Operation.SHIFT_RIGHT, bits, 1)
    return value * _power_of_two(half) * _power_of_two(bits - half)


def _exponent_bits(bits: Node) -> Node:
    """n 2^23 for a normal number 2^n m with m from 2/3 to 4/3, from its bits."""
    return apply(Operation.AND, bits - _TWO_THIRDS_BITS, _EXPONENT_MASK)


def _scaled_logarithm(fraction: Node, exponent: Node) -> Node:
    """log((1 + fraction) 2^n) for |fraction| up to 1/3; `exponent` is n 2^23."""
    square = fraction * fraction
    return multiply_add(exponent, _LOG_2 / _TWO_23, multiply_add(square, _polynomial(_LOG, fraction), fraction))


def _at_the_ends(x: Node, pole: float, inside: Node) -> Node:
    """A logarithm with its pole: `inside`, but -infinity at the pole, NaN below it; infinity and NaN stay."""
    result = select(x < math.inf, inside, x)
    result = select(apply(Operation.EQUAL, x, pole), -math.inf, result)
    return select(x < pole, math.nan, result)


def _polynomial(coefficients: Sequence[float], x: Node) -> Node:
    """Horner's scheme; at least two coefficients."""
    *rest, previous, last = coefficients
    result = multiply_add(x, last, previous)
    for coefficient in reversed(rest):
        result = multiply_add(result, x, coefficient)
    return result


def _at_least(x: Node, bound: float) -> Node:
    """x, but not below the bound; NaN stays. (MAXIMUM costs more: it has an order for zeros.)"""
    return select(x < bound, bound, x)


def _at_most(x: Node, bound: float) -> Node:
    """x, but not above the bound; NaN stays."""
    return select(bound < x, bound, x)


def _bits(x: Node) -> Node:
    return bitcast(x, ScalarType.INT32)


def _with_sign_of(x: Node, magnitude: Node) -> Node:
    """`magnitude`, which is not negative or has the sign of x already, with the sign of x."""
    sign = apply(Operation.AND, _bits(x), _SIGN_MASK)
    return bitcast(apply(Operation.OR, _bits(magnitude), sign), ScalarType.FLOAT32)


def _factors(x: Node) -> tuple[Node, Node] | None:
    """Two numbers whose exact product rounds to x; None where x is not computed as a product."""
    if x.operation is Operation.MULTIPLY:
        return x.operands[0], x.operands[1]
    if x.operation not in (Operation.NEGATE, Operation.ABSOLUTE):
        return None
    inner = _factors(x.operands[0])
    if inner is None:
        return None
    return (-inner[0], inner[1]) if x.operation is Operation.NEGATE else (abs(inner[0]), abs(inner[1]))


_LOG_2 = math.log(2.0)
_LOG2_E = 1.0 / _LOG_2
_LOG_2_HIGH = 0.693147182464599609375
"""log 2 rounded to FLOAT32."""
_LOG_2_LOW = _LOG_2_HIGH - _LOG_2
"""What that is too much."""

_TWO_23 = 2.0**23
_UNITS = 1.5 * _TWO_23
"""Between 2^23 and 2^24 a FLOAT32's last bit counts units; the middle leaves room for both signs."""
_EXPONENT_BIAS = 127
_WHOLE_POWER = _EXPONENT_BIAS
_HALF_POWER = _EXPONENT_BIAS - 1
_TWO_HALF_POWERS = 2 * _EXPONENT_BIAS

_LEAST_NORMAL = 2.0**-126
_SIGN_MASK = -(2**31)
_EXPONENT_MASK = -(2**23)
_TWO_THIRDS_BITS = 0x3F2AAAAB
_FOUR_BITS = 0x40800000

_EXP_LOWEST, _EXP_HIGHEST = -104.0, 89.0
"""Beyond these the results are 0 and infinity."""
_EXPM1_LOWEST = -25.0
"""Below this the result is -1."""
_EXP = (0.49999994, 0.166665211, 0.0416682623, 0.00836867094, 0.00138209993)
"""(exp(r) - 1 - r) / r^2; weighted relative to exp(r)."""
_EXPM1 = (0.49999997, 0.166665465, 0.0416674428, 0.00836625323, 0.00138699485)
"""The same, weighted relative to exp(r) - 1."""

_LOG = (
    -0.5,
    0.333332151,
    -0.249998048,
    0.200104445,
    -0.16680181,
    0.140053406,
    -0.121883437,
    0.139867067,
    -0.128744885,
)
"""(log(1 + f) - f) / f^2."""

_TANH_NEAR, _TANH_HIGHEST = 0.65, 20.0
"""Below the first in magnitude the polynomial is used; above half of the second the result is 1."""
_TANH = (-0.333332598, 0.133308291, -0.0536879115, 0.0204690564, -0.0055147768)
"""(tanh(x) - x) / x^3 as a function of x^2."""

_ERF_NEAR, _ERF_HIGHEST = 0.92, 4.0
"""Below the first in magnitude the first polynomial is used; from the second on the result is 1."""
_ERF = (0.128379151, -0.376125008, 0.11281877, -0.0267685801, 0.00499585317, -0.000600379542)
"""erf(x) / x - 1 as a function of x^2."""
_ERF_EXPONENT = (
    -1.12855172,
    -0.635625422,
    -0.105262347,
    0.0226736907,
    -0.00292982883,
    4.94466403e-05,
    4.56132948e-05,
    -4.94126834e-06,
)
"""log(1 - erf(x)) / x."""

_NORMAL_HIGHEST, _NORMAL_SCALE = 14.5, 1.5
"""From the first on the tail is 0; the second is k."""
_NORMAL_SENSITIVITY = 1.25
"""Relative change of the tail's slow factor for a relative change of s; it is from 1 to 1.3."""
_NORMAL_NUMERATOR = 0.617341995
_NORMAL_TAIL = (
    0.316031486,
    -0.0931338146,
    -0.0289903544,
    0.0285746232,
    -0.00645674253,
    -0.00394354155,
    0.0043831584,
    -0.00168605463,
    -0.000398382108,
    0.000753258879,
    -0.000247866614,
)
"""exp(x^2 / 2) times the probability above x, over s + 1, as a function of s = 2 k / (x + k) - 1 with the scale k."""

_EXPANSIONS: dict[Operation, Callable[[Node], Node]] = {
    Operation.EXPONENTIAL: exponential,
    Operation.EXPONENTIAL_MINUS_ONE: exponential_minus_one,
    Operation.LOGARITHM: logarithm,
    Operation.LOGARITHM_ONE_PLUS: logarithm_one_plus,
    Operation.HYPERBOLIC_TANGENT: hyperbolic_tangent,
    Operation.ERROR_FUNCTION: error_function,
    Operation.NORMAL_DISTRIBUTION: normal_distribution,
}
