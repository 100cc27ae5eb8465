"""Transcendental functions in FLOAT32 as graphs of basic operations, the same for every target.

Range reduction, a polynomial, and selection instead of branches; no tables, and nothing that is undefined for
NaN. Angles, hyperbolic functions and powers are in modules of their own. The stated accuracies are the
greatest distances, over all arguments, from the exact result, in units of the last place (ULP) of a FLOAT32,
denormal results included. They hold on targets that round MULTIPLY_ADD once, keep denormals, and do not
reassociate.

An argument that is itself a product or a quotient was rounded, and exp magnifies that error by |x|. Where it
matters, the error is computed exactly and takes part: the accuracy is then that for the argument before it
was rounded.

The coefficients come from tools/minimax.py, the constant term first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from opendml.errors import Unsupported
from opendml.program import angle_math, hyperbolic_math, power_math
from opendml.program.common_math import (
    EXP,
    EXPONENT_BIAS,
    FOUR_QUARTER_POWERS,
    LEAST_NORMAL,
    LOG,
    LOG_2_LOW,
    SCALED_HIGHEST,
    TWO_23,
    TWO_HALF_POWERS,
    at_least,
    at_most,
    exponent_bits,
    float32_bits,
    polynomial,
    power_of_two,
    reduced,
    scaled_logarithm,
    times_power,
    times_scaled_power,
    unless_minus_infinite,
    with_sign_of,
)
from opendml.program.functions import multiply_add, select
from opendml.program.node import Node, Operation, apply, bitcast, constant, convert
from opendml.program.scalar_type import ScalarType

KNOWN_ERRORS = frozenset({Operation.NEGATE, Operation.ABSOLUTE, Operation.MULTIPLY, Operation.DIVIDE})
"""The operations whose rounding error takes part where an argument is their result."""


def expand(node: Node) -> Node:
    """Return the function `node` (one of FUNCTIONS, FLOAT32) in basic operations; other types are
    Unsupported."""
    if node.type is not ScalarType.FLOAT32:
        raise Unsupported(f"{node.operation.name} of {node.type.name}")
    return _EXPANSIONS[node.operation](*node.operands)


def exponential(x: Node) -> Node:
    """Return exp(x) within 0.90 ULP; the error of x takes part."""
    within = bounded(x, EXP_LOWEST, EXP_HIGHEST)
    is_normal = least_of(x) > _LEAST_NORMAL_LOG and greatest_of(x) <= 0.0
    bits, n, high = reduced(within, _WHOLE_POWER if is_normal else TWO_HALF_POWERS)
    power = polynomial((1.0, 1.0, *EXP), _remainder(n, high, error_within(within, x)))
    return power * power_of_two(bits) if is_normal else times_power(power, bits)


def scaled_exponential(x: Node, factor: Node) -> Node:
    """Return factor exp(x) within 1.9 ULP, where exp(x) may be beyond the range of the type; the error of x
    takes part."""
    within = bounded(x, -SCALED_HIGHEST, SCALED_HIGHEST)
    bits, n, high = reduced(within, FOUR_QUARTER_POWERS)
    remainder = _remainder(n, high, error_within(within, x))
    return times_scaled_power(polynomial((1.0, 1.0, *EXP), remainder), bits, factor)


def exponential_minus_one(x: Node) -> Node:
    """Return exp(x) - 1 within 1.08 ULP (0.91 below zero), with the sign of x; the error of x takes part.

    Where x is known not to be above zero, less cancels, and nothing overflows.
    """
    within = bounded(x, _EXPM1_LOWEST, EXP_HIGHEST)
    is_below = greatest_of(x) <= 0.0
    bits, n, high = reduced(within, _WHOLE_POWER if is_below else _HALF_POWER)
    error = error_within(within, x)
    low = n * LOG_2_LOW if error is None else multiply_add(n, LOG_2_LOW, error)
    r = high + low
    square = r * r
    rest = multiply_add(square, polynomial(EXP, r), low)
    power = power_of_two(bits)
    if is_below:
        return with_sign_of(x, multiply_add(power, high + rest, power - 1.0))
    # Half of the result, as 2^n itself overflows before the result does: p (high + rest) + p - 1/2 with p =
    # 2^(n-1). What is rounded off the greater part of it is added again.
    less_half = power - 0.5
    most = multiply_add(power, high, less_half)
    most_error = multiply_add(power, high, less_half - most)
    half = most + multiply_add(power, rest, most_error)
    # Of tiny arguments the result is x: halving would lose a denormal's last bit, the sum the sign of a zero.
    return select(apply(Operation.EQUAL, square, 0.0), x, half + half)


def logarithm(x: Node) -> Node:
    """Return log(x) within 0.92 ULP; -infinity at both zeros, NaN below."""
    return logarithm_by(LOG, x)


def logarithm_by(coefficients: tuple[float, ...], x: Node) -> Node:
    """Return log(x), as exact as `coefficients` for (log(1 + f) - f) / f^2 from -0.3 to 0.4 are."""
    # Denormals are scaled up by 2^23, and the exponent of the scale is taken off again.
    is_small = x < LEAST_NORMAL
    bits = float32_bits(select(is_small, x * TWO_23, x))
    exponent = exponent_bits(bits)
    scale = convert(exponent, ScalarType.FLOAT32) + select(is_small, constant(-23.0 * TWO_23, x.type), 0.0)
    mantissa = bitcast(bits - exponent, ScalarType.FLOAT32)
    return _at_the_ends(x, 0.0, scaled_logarithm(coefficients, mantissa - 1.0, scale))


def logarithm_one_plus(x: Node) -> Node:
    """Return log(1 + x) within 1.48 ULP, with the sign of x; -infinity at -1, NaN below."""
    return logarithm_one_plus_by(LOG, x)


def logarithm_one_plus_by(coefficients: tuple[float, ...], x: Node) -> Node:
    """Return log(1 + x), as exact as `coefficients`, which are as for `logarithm_by`."""
    exponent = exponent_bits(float32_bits(x + 1.0))
    # The fraction is (1 + x) 2^-n - 1, with one rounding. Subtracting from its exponent gives x 2^-n, because
    # x is not small if n is not 0. The rest is made from 2^(2-n), which is a normal number for every n.
    scaled = bitcast(float32_bits(x) - exponent, ScalarType.FLOAT32)
    four_over_power = bitcast(apply(Operation.SUBTRACT, _FOUR_BITS, exponent), ScalarType.FLOAT32)
    fraction = scaled + multiply_add(four_over_power, 0.25, -1.0)
    result = scaled_logarithm(coefficients, fraction, convert(exponent, ScalarType.FLOAT32))
    return _at_the_ends(x, -1.0, with_sign_of(x, result))


def logarithm_one_plus_exponential(x: Node) -> Node:
    """Return log(1 + exp(x)) within 1.9 ULP for x that is not above zero; the error of x takes part."""
    return softplus_of(exponential(x))


def softplus_of(power: Node) -> Node:
    """Return log(1 + power) for a power from 0 to 1, relative to the power."""
    return power * polynomial(_SOFTPLUS, power)


def hyperbolic_tangent(x: Node) -> Node:
    """Return tanh(x) within 1.09 ULP, with the sign of x; the error of x takes part."""
    magnitude, error = abs(x), rounding_error(abs(x))
    square = x * x
    cubic = square * polynomial(_TANH, square)
    if error is None:
        near = multiply_add(cubic, magnitude, magnitude)
    else:
        near = magnitude + multiply_add(cubic, magnitude, error)
    # 1 - 2 / (exp(2 x) + 1)
    twice = magnitude + magnitude
    within = at_most(twice, _TANH_HIGHEST)
    bits, n, high = reduced(within, _WHOLE_POWER)
    twice_error = None if error is None else select(apply(Operation.EQUAL, within, twice), error + error, 0.0)
    power = power_of_two(bits)
    far = 1.0 - 2.0 / multiply_add(power, _growth(_remainder(n, high, twice_error)), power + 1.0)
    return with_sign_of(x, select(magnitude < _TANH_NEAR, near, far))


def error_function(x: Node) -> Node:
    """Return erf(x) within 1.08 ULP, with the sign of x."""
    square = x * x
    near = multiply_add(x, polynomial(_ERF, square), x)
    magnitude = at_most(abs(x), _ERF_HIGHEST)
    # 1 - exp(a polynomial)
    bits, n, high = reduced(magnitude * polynomial(_ERF_EXPONENT, magnitude), _WHOLE_POWER)
    far = multiply_add(-power_of_two(bits), polynomial((1.0, 1.0, *EXP), _remainder(n, high)), 1.0)
    return select(abs(x) < _ERF_NEAR, near, with_sign_of(x, far))


def gaussian_error_linear_unit(x: Node) -> Node:
    """Return x times the probability that a standard normal variable is below x, within 2.96 ULP.

    That holds also where the probability is denormal.
    """
    magnitude = at_most(abs(x), NORMAL_HIGHEST)
    # -0 rather than 0, so that no tail at all leaves the sign of x.
    tail = _normal_tail(magnitude, magnitude)
    return unless_minus_infinite(x, multiply_add(tail, -(2.0**-TAIL_UNITS), at_least(x, -0.0)))


def _normal_tail(x: Node, factor: Node) -> Node:
    """Return the probability that a standard normal variable is above x (0 to NORMAL_HIGHEST), times the
    factor and 2^TAIL_UNITS, so that it is no denormal number.

    It is exp(-x^2 / 2) times a slowly falling function of x: s = numerator / (x + k) times a polynomial of s.
    The rounding errors of x^2 and of s are known exactly, and are made up for in the exponent.
    """
    minus_half = x * -0.5
    exponent = minus_half * x
    exponent_error = multiply_add(minus_half, x, -exponent)
    denominator = x + NORMAL_SCALE
    denominator_error = x - (denominator - NORMAL_SCALE)
    falling = NORMAL_NUMERATOR / denominator
    excess = multiply_add(-falling, denominator_error, multiply_add(-falling, denominator, NORMAL_NUMERATOR))
    error = multiply_add(excess, NORMAL_SENSITIVITY / NORMAL_NUMERATOR, exponent_error)
    argument = multiply_add(falling, 2.0 * NORMAL_SCALE / NORMAL_NUMERATOR, -1.0)
    scaled = falling * factor
    slow = multiply_add(scaled, argument * polynomial(NORMAL_TAIL, argument), scaled)
    bits, n, high = reduced(exponent, EXPONENT_BIAS + TAIL_UNITS)
    return multiply_add(slow, _growth(_remainder(n, high, error)), slow) * power_of_two(bits)


def _remainder(n: Node, high: Node, error: Node | None = None) -> Node:
    """Return the argument of exp less n times log 2, and with its rounding error if that is known."""
    return multiply_add(n, LOG_2_LOW, high) if error is None else high + multiply_add(n, LOG_2_LOW, error)


def _growth(r: Node) -> Node:
    """Return exp(r) - 1, as exact as a part of exp(r) must be."""
    return r * polynomial((1.0, *EXP), r)


def _at_the_ends(x: Node, pole: float, inside: Node) -> Node:
    """Return a logarithm with its pole: `inside`, but -infinity at the pole, NaN below it; infinity and NaN
    stay."""
    result = select(x < math.inf, inside, x)
    result = select(apply(Operation.EQUAL, x, pole), -math.inf, result)
    return select(x < pole, math.nan, result)


def bounded(x: Node, lowest: float, highest: float) -> Node:
    """Return x between two bounds, of which one may be known to hold; NaN stays."""
    within = x if least_of(x) >= lowest else at_least(x, lowest)
    return within if greatest_of(x) <= highest else at_most(within, highest)


def error_within(within: Node, x: Node) -> Node | None:
    """Return the rounding error of x, or of what it bounds; 0 out of bounds, where it may be infinite or NaN:
    `within` is not x there."""
    while is_bounded(x):
        x = x.operands[2]
    error = rounding_error(x)
    return None if error is None else select(apply(Operation.EQUAL, within, x), error, 0.0)


def rounding_error(x: Node) -> Node | None:
    """Return the part that was rounded off x if it is computed as a product or a quotient, perhaps below
    changes of sign; None if not, or if it is exact."""
    signs = list(changes_of_sign(x))
    error = _error_of_product(signs[-1].operands[0] if signs else x)
    if error is not None:
        for sign in reversed(signs):
            is_flipped = sign.operation is Operation.NEGATE
            error = -error if is_flipped else select(sign.operands[0] < 0.0, -error, error)
    return error


def greatest_of(x: Node) -> float:
    """Return a number that a node says it is never above: a bound of `at_most`, 0 of minus a magnitude, and 0
    of a difference from the greatest element."""
    if x.operation is Operation.NEGATE and x.operands[0].operation is Operation.ABSOLUTE:
        return 0.0
    if x.operation is Operation.SUBTRACT:
        element, greatest = x.operands
        is_greatest = greatest.operation is Operation.GREATEST and greatest.operands[0] is element
        return 0.0 if is_greatest else math.inf
    if is_bounded(x):
        below, bound, inner = x.operands
        is_highest = below.operands[0] is bound
        return bound.number if is_highest else max(bound.number, greatest_of(inner))
    return math.inf


def least_of(x: Node) -> float:
    """Return a number that a node says it is never below: a bound of `at_least`."""
    return x.operands[1].number if is_bounded(x) and x.operands[0].operands[1] is x.operands[1] else -math.inf


def is_bounded(x: Node) -> bool:
    """Return whether a node is made by `at_least` or `at_most`."""
    if x.operation is not Operation.SELECT or x.operands[0].operation is not Operation.LESS:
        return False
    condition, bound, inner = x.operands
    return bound.operation is Operation.CONSTANT and set(condition.operands) == {bound, inner}


def changes_of_sign(x: Node) -> Iterator[Node]:
    """Yield x and the nodes below it, as long as they do no more than change a sign; no more than a few."""
    for _ in range(_MOST_SIGNS):
        if x.operation not in (Operation.NEGATE, Operation.ABSOLUTE):
            return
        yield x
        (x,) = x.operands


_MOST_SIGNS = 16
"""Changes of sign below which a rounding error is looked for."""


def _error_of_product(x: Node) -> Node | None:
    """Return the part that was rounded off a product or a quotient; None of others, and where it is exact."""
    if x.operation not in KNOWN_ERRORS or any(map(is_power_of_two, x.operands)):
        return None
    a, b = x.operands
    if x.operation is Operation.MULTIPLY:
        return multiply_add(a, b, -x)
    # A constant's reciprocal is made once. Of the least divisors it is infinite, and must not meet a zero.
    return multiply_add(-x, b, a) * at_most(at_least(1.0 / b, -_GREATEST), _GREATEST)


def is_power_of_two(x: Node) -> bool:
    """Return whether a node is a constant by which a product or a quotient is exact."""
    if x.operation is not Operation.CONSTANT or not isinstance(x.attribute, float):
        return False
    return abs(math.frexp(x.attribute)[0]) == 0.5


_WHOLE_POWER = EXPONENT_BIAS
_HALF_POWER = EXPONENT_BIAS - 1

_GREATEST = 3.4028234663852886e38
_FOUR_BITS = 0x40800000

EXP_LOWEST, EXP_HIGHEST = -104.0, 89.0
"""Beyond these the results are 0 and infinity."""
_LEAST_NORMAL_LOG = -87.0
"""Above this the result is no denormal number."""
_EXPM1_LOWEST = -25.0
"""Below this the result is -1."""
_SOFTPLUS = (
    1.0,
    -0.499999315,
    0.333304703,
    -0.24958156,
    0.196931928,
    -0.153490931,
    0.1066999,
    -0.0575610884,
    0.0201499667,
    -0.00330642588,
)
"""log(1 + t) / t for t from 0 to 1."""

_TANH_NEAR, _TANH_HIGHEST = 0.85, 20.0
"""Below the first in magnitude the polynomial is used; above half of the second the result is 1."""
_TANH = (-0.333332658, 0.133314788, -0.0537964068, 0.0211209133, -0.00714258337, 0.00144005823)
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

NORMAL_HIGHEST, NORMAL_SCALE = 14.5, 1.625
"""From the first on the tail is 0; the second is k."""
TAIL_UNITS = 64
NORMAL_SENSITIVITY = 1.2
"""Relative change of the slow factor for a relative change of s: from 1.1 to 1.4."""
NORMAL_NUMERATOR = 0.633825123
NORMAL_TAIL = (
    0.367000103,
    -0.0624868535,
    -0.0431297794,
    0.0237656217,
    2.33322189e-05,
    -0.00596793927,
    0.00326697296,
    -2.35663393e-07,
    -0.000928508292,
    0.000356642937,
)
"""((x + k) exp(x^2 / 2) tail(x) / numerator - 1) / u as a function of u = 2 k / (x + k) - 1."""

_EXPANSIONS: dict[Operation, Callable[..., Node]] = {
    **angle_math.EXPANSIONS,
    **hyperbolic_math.EXPANSIONS,
    Operation.POWER: power_math.power,
    Operation.EXPONENTIAL: exponential,
    Operation.EXPONENTIAL_MINUS_ONE: exponential_minus_one,
    Operation.SCALED_EXPONENTIAL: scaled_exponential,
    Operation.LOGARITHM: logarithm,
    Operation.LOGARITHM_ONE_PLUS: logarithm_one_plus,
    Operation.HYPERBOLIC_TANGENT: hyperbolic_tangent,
    Operation.ERROR_FUNCTION: error_function,
    Operation.LOGARITHM_ONE_PLUS_EXPONENTIAL: logarithm_one_plus_exponential,
    Operation.GAUSSIAN_ERROR_LINEAR_UNIT: gaussian_error_linear_unit,
}
