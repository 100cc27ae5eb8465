"""Exponentials, logarithms and the hyperbolic tangent in FLOAT32 on x86 processors.

AVX-512 has instructions for exponents. VSCALEFPS multiplies by a power of two and rounds once, also to a
denormal number. VGETEXPPS and VGETMANTPS return the exponent and the significand of any number, with correct
results for zero, infinite and negative ones. So expansions need no powers of two made of bits, and no
selections for special values. Tables are looked up as in `table_math`. Accuracies are stated as in
`vector_math`, which has these functions for other processors.

The tables come from tools/minimax.py.
"""

from __future__ import annotations

from collections.abc import Callable

from opendml.program import vector_math
from opendml.program.common_math import (
    EXP,
    LOG,
    LOG2_E,
    LOG_2,
    LOG_2_HIGH,
    LOG_2_LOW,
    SCALED_HIGHEST,
    UNITS,
    at_least,
    at_most,
    finite_logarithm,
    float32_bits,
    polynomial,
    with_sign_of,
)
from opendml.program.functions import multiply_add, rarely, select
from opendml.program.node import Node, Operation, apply
from opendml.program.scalar_type import ScalarType
from opendml.program.vector_math import (
    EXP_HIGHEST,
    EXP_LOWEST,
    bounded,
    error_within,
    greatest_of,
    softplus_of,
)
from opendml.targets.cpu import table_math
from opendml.targets.cpu.exponents import has_exponents
from opendml.targets.cpu.table_math import looked_up, polynomial_of, table_rows


def expand(node: Node) -> Node:
    """Return the function `node` (one of FUNCTIONS, FLOAT32) in operations of this processor, which has
    VPERMPS.

    Raises:
        Unsupported: another type.
    """
    if node.type is ScalarType.FLOAT32:
        if node.operation is Operation.HYPERBOLIC_TANGENT:
            return hyperbolic_tangent(*node.operands)
        if node.operation is Operation.LOGARITHM and not has_exponents():
            return logarithm_without_exponents(*node.operands)
        if has_exponents() and (expansion := _EXPANSIONS.get(node.operation)):
            return expansion(*node.operands)
    return table_math.expand(node)


def exponential(x: Node) -> Node:
    """Return exp(x) within 0.90 ULP; the error of x takes part."""
    return apply(Operation.SCALE, *_reduced_power(x, bounded(x, EXP_LOWEST, EXP_HIGHEST)))


def scaled_exponential(x: Node, factor: Node) -> Node:
    """Return factor exp(x) within 1.9 ULP, where exp(x) may be beyond the range of the type; the error of x
    takes part."""
    power, n = _reduced_power(x, bounded(x, -SCALED_HIGHEST, SCALED_HIGHEST))
    if greatest_of(x) <= 0.0:
        return apply(Operation.SCALE, factor, n) * power
    # Two steps of half the exponent, so that no intermediate product overflows or is denormal.
    half = multiply_add(n, 0.5, UNITS) - UNITS
    return apply(Operation.SCALE, apply(Operation.SCALE, factor, half) * power, n - half)


def logarithm_one_plus_exponential(x: Node) -> Node:
    """Return log(1 + exp(x)) within 1.9 ULP for x that is not above zero; the error of x takes part."""
    return softplus_of(apply(Operation.SCALE, *_reduced_power(x, at_least(x, EXP_LOWEST))))


def logarithm(x: Node) -> Node:
    """Return log(x) within 0.92 ULP; -infinity at both zeros, NaN below.

    The significand times a looked-up factor is near 1. The logarithm of the factor and the multiple of log 2
    have so few bits that their sum is exact.
    """
    significand = apply(Operation.SIGNIFICAND, x)
    piece = apply(Operation.SHIFT_RIGHT, float32_bits(significand), 19)
    factors, logarithms, growth = _LOG_TABLES
    exponent = apply(Operation.EXPONENT, x) + looked_up(growth, piece)
    fraction = multiply_add(significand, looked_up(factors, piece), -1.0)
    high = multiply_add(exponent, _LOG_2_UPPER, looked_up(logarithms, piece))
    rest = multiply_add(exponent, LOG_2 - _LOG_2_UPPER, fraction)
    return high + multiply_add(fraction * fraction, polynomial(_LOG_PIECE, fraction), rest)


def logarithm_without_exponents(x: Node) -> Node:
    """Return log(x) within 0.92 ULP without instructions for exponents; -infinity at both zeros, NaN below.

    Denormal and infinite numbers, NaN and those that are not positive are left to `vector_math`.
    """
    # This addition wraps so that the bits of positive normal numbers become the least integers.
    is_special = float32_bits(x) + _TO_LEAST > _LAST_NORMAL
    return rarely(is_special, vector_math.logarithm(x), finite_logarithm(LOG, x))


def hyperbolic_tangent(x: Node) -> Node:
    """Return tanh(x) within 1.09 ULP, with the sign of x; the error of x takes part."""
    magnitude = abs(x)
    within = at_most(magnitude, _TANH_HIGHEST)
    error = error_within(within, magnitude)
    shifted = multiply_add(within, multiply_add(within, -TANH_SQUARE, TANH_SLOPE), UNITS)
    piece = float32_bits(shifted)
    points, values, *coefficients = _TANH_TABLES
    r = within - looked_up(points, piece)
    # The first piece is that of tanh(x) - x, whose constant term has more significant digits than that of
    # tanh(x).
    is_first = shifted <= UNITS
    base = select(is_first, magnitude, looked_up(values, piece))
    curve = polynomial_of(coefficients, piece, r)
    if error is None:
        return with_sign_of(x, multiply_add(r, curve, base))
    slope = select(is_first, 1.0, looked_up(coefficients[0], piece))
    rest = multiply_add(r, curve, error * slope)
    return with_sign_of(x, base + rest)


def _reduced_power(x: Node, within: Node) -> tuple[Node, Node]:
    """Return exp(r), and n as FLOAT32, for n log 2 + r = x, where x is `within` bounds."""
    n = multiply_add(within, LOG2_E, UNITS) - UNITS
    high = multiply_add(n, -LOG_2_HIGH, within)
    error = error_within(within, x)
    r = multiply_add(n, LOG_2_LOW, high) if error is None else high + multiply_add(n, LOG_2_LOW, error)
    return polynomial((1.0, 1.0, *EXP), r), n


_TO_LEAST, _LAST_NORMAL = 2**31 - 2**23, -(2**24) - 1
"""An addend and a limit, for bits as INT32. The addend maps the least positive normal FLOAT32 to the least
integer, and the greatest FLOAT32 to the limit."""

_LOG_2_UPPER = 0.693145751953125
"""log 2, rounded down to a multiple of 2^-17."""
_LOG_TABLES = table_rows(
    16,
    """
    1 1 0.870115221 0.815242708 0.788077235 0.747486889 0.716884911 0.685885429 0.651029289 0.628855765
    0.604986191 0.580430686 0.558718801 0.5 0.5 0.5
    0 0 0.139129639 0.204269409 0.23815918 0.291038513 0.332839966 0.377044678 -0.263946533 -0.229293823
    -0.190597534 -0.149162292 -0.111038208 0 0 0
    0 0 0 0 0 0 0 0 1 1 1 1 1 1 1 1
    """,
)
"""Tables by the upper four bits of a significand: the factor, minus the logarithm of the factor times
2^growth, and the growth of the exponent."""
_LOG_PIECE = (-0.5, 0.333332956, -0.249994144, 0.20014514, -0.168394729, 0.131979033)
"""Coefficients of (log(1 + f) - f) / f^2, the constant term first."""

_TANH_HIGHEST, TANH_SLOPE, TANH_SQUARE = 9.02, 1.62656, 0.089371
"""From _TANH_HIGHEST on the result is 1. The number of a piece is x (slope - square x), rounded."""
_TANH_TABLES = table_rows(
    8,
    """
    0 0.445441842 1.11798429 1.85480237 2.67724681 3.61968255 4.77583027 6.54717541
    0 0.418145001 0.806866646 0.952196181 0.990590751 0.998565495 0.999857843 0.999995887
    8.35504554e-10 0.825154662 0.348966211 0.0933224708 0.0187299605 0.00286694826 0.000284289359
    8.21838057e-06
    -2.53428198e-07 -0.345034868 -0.281569093 -0.0888612345 -0.0185537338 -0.00286284718 -0.000284254667
    -8.22725724e-06
    -0.333320826 -0.130763143 0.110868059 0.0535017364 0.0121360673 0.00190333952 0.000189545681
    5.54989856e-06
    -0.000229754864 0.169715405 0.00438594585 -0.0213182103 -0.00583731383 -0.000946386077
    -9.47764347e-05 -2.79275082e-06
    0.135305047 -0.00962122995 -0.032765314 0.00463360269 0.00214882731 0.000370827387 3.71501228e-05
    1.01523347e-06
    -0.0082794046 -0.0593089014 0.0192362219 0.000344375352 -0.00058488379 -0.000110444285
    -1.06778489e-05 -2.28386128e-07
    -0.0393095911 0.0274473671 -0.0045444807 -0.000440747535 9.21105166e-05 1.88372342e-05
    1.64011544e-06 2.2859874e-08
    """,
)
"""Tables of tanh(x). The first piece is centered at 0, and is that of tanh(x) - x."""

_EXPANSIONS: dict[Operation, Callable[..., Node]] = {
    Operation.EXPONENTIAL: exponential,
    Operation.SCALED_EXPONENTIAL: scaled_exponential,
    Operation.LOGARITHM: logarithm,
    Operation.LOGARITHM_ONE_PLUS_EXPONENTIAL: logarithm_one_plus_exponential,
}
"""Expansions for processors with instructions for exponents."""
