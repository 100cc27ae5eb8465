"""Transcendental functions in FLOAT32 for results that are stored in 16 bits, out of CUDA's own exponential.

EXPONENTIAL stays: `kernels/quotients.cuh` has it. Relative errors are at most 2^-15, as in
`program.half_math`, where more is said. That of GELU holds for all results that are not below 2^-126, so that
BFLOAT16 has it, too.
"""

from __future__ import annotations

from collections.abc import Callable

from opendml.program import half_math, vector_math
from opendml.program.common_math import at_least, at_most, polynomial, power_of, unless_minus_infinite
from opendml.program.functions import exp, minimum, multiply_add, select
from opendml.program.node import Node, Operation

_SMALL = 2.0**-4
"""Below this, the first terms of a series are exact enough; above, differences of exponentials are."""
_TAIL_END = 15.0
"""From here on exp(-x^2 / 2) is zero in FLOAT32."""
_TAIL = (0.500012815, 0.279684335, 0.0631243363)
_TAIL_DIVISOR = (1.0, 1.3580457, 0.705907941, 0.158066884)
"""exp(x^2 / 2) times the probability above x, as a quotient of polynomials of x from 0 to _TAIL_END, from
tools/minimax.py."""


def expand(node: Node) -> Node:
    """Return the function `node` (one of FUNCTIONS, FLOAT32) in basic operations and EXPONENTIAL."""
    if node.operation is Operation.EXPONENTIAL:
        return node
    expansion = _EXPANSIONS.get(node.operation)
    return expansion(*node.operands) if expansion else half_math.expand(node)


def exponential_minus_one(x: Node) -> Node:
    """Return exp(x) - 1."""
    series = x * multiply_add(multiply_add(x, 1 / 6, 0.5), x, 1.0)
    return select(abs(x) < _SMALL, series, exp(x) - 1.0)


def scaled_exponential(x: Node, factor: Node) -> Node:
    """Return factor exp(x), where exp(x) may be beyond the range of the type."""
    root = exp(x * 0.5)
    return factor * root * root


def hyperbolic_tangent(x: Node) -> Node:
    """Return tanh(x) = (t - 1) / (t + 1) for t = exp(2 x)."""
    growth = exp(minimum(x + x, 40.0))
    series = x * multiply_add(x * x, -1 / 3, 1.0)
    return select(abs(x) < _SMALL, series, (growth - 1.0) / (growth + 1.0))


def power(x: Node, y: Node) -> Node:
    """Return |x|^y = exp(y log |x|), the logarithm as exact as FLOAT32 can be."""
    return power_of(x, y, exp(vector_math.logarithm(abs(x)) * y))


def logarithm_one_plus_exponential(x: Node) -> Node:
    """Return log(1 + exp(x)) for x that is not above zero."""
    return half_math.logarithm_one_plus_exponential(x, exp)


def gaussian_error_linear_unit(x: Node) -> Node:
    """Return max(x, 0) less |x| times the probability above |x|, which is exp(-x^2 / 2) times a quotient of
    polynomials of |x|."""
    magnitude = at_most(abs(x), _TAIL_END)
    scaled = polynomial(_TAIL, magnitude) * exp(magnitude * magnitude * -0.5)
    tail = scaled / polynomial(_TAIL_DIVISOR, magnitude)
    # Bounded by -0 a zero keeps its sign.
    return unless_minus_infinite(x, multiply_add(-magnitude, tail, at_least(x, -0.0)))


_EXPANSIONS: dict[Operation, Callable[..., Node]] = {
    Operation.EXPONENTIAL_MINUS_ONE: exponential_minus_one,
    Operation.SCALED_EXPONENTIAL: scaled_exponential,
    Operation.HYPERBOLIC_TANGENT: hyperbolic_tangent,
    Operation.LOGARITHM_ONE_PLUS_EXPONENTIAL: logarithm_one_plus_exponential,
    Operation.GAUSSIAN_ERROR_LINEAR_UNIT: gaussian_error_linear_unit,
    Operation.POWER: power,
}
