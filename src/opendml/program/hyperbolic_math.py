"""The hyperbolic functions of FLOAT32 and their inverses, for any exactness of their polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable

from opendml.late_dataclass import dataclass
from opendml.program.common_math import (
    EXPONENT_BIAS,
    LOG,
    LOG_2_LOW,
    at_most,
    finite_logarithm,
    float32_bits,
    normal_logarithm,
    odd,
    polynomial,
    power_of_two,
    reduced,
    with_sign_of,
)
from opendml.program.functions import equal, multiply_add, select, square_root
from opendml.program.node import Node, Operation, apply, bitcast, constant
from opendml.program.scalar_type import ScalarType

Coefficients = tuple[float, ...]


@dataclass(frozen=True)
class HyperbolicFunctions:
    """The functions, as exact as their polynomials.

    In x^2: (f(x) / x - 1) / x^2 for sinh up to 1 (`near_sinh`) and up to log 2 / 2, for asinh up to sinh(1),
    for atanh up to 1/2; (cosh(x) - 1) / x^2 up to log 2 / 2. In t: (acosh(1 + t) / sqrt(2 t) - 1) / t up to
    1. In f: (log(1 + f) - f) / f^2 from -0.3 to 0.4.
    """

    near_sinh: Coefficients
    sinh: Coefficients
    cosh: Coefficients
    asinh: Coefficients
    acosh: Coefficients
    atanh: Coefficients
    log: Coefficients

    def expansions(self) -> dict[Operation, Callable[..., Node]]:
        """Return the functions by their operations."""
        return {
            Operation.HYPERBOLIC_SINE: self.sine,
            Operation.HYPERBOLIC_COSINE: self.cosine,
            Operation.INVERSE_HYPERBOLIC_SINE: self.inverse_sine,
            Operation.INVERSE_HYPERBOLIC_COSINE: self.inverse_cosine,
            Operation.INVERSE_HYPERBOLIC_TANGENT: self.inverse_tangent,
        }

    def sine(self, x: Node) -> Node:
        """Return sinh(n log 2 + r) = sinh(n log 2) cosh(r) + cosh(n log 2) sinh(r), of which bits may cancel;
        near zero the polynomial, if there is one."""
        magnitude = abs(x)
        cosine, sine, r = _powers(magnitude)
        result = self._sum(sine, cosine, r)
        if self.near_sinh:
            result = select(magnitude < 1.0, odd(magnitude, self.near_sinh), result)
        return with_sign_of(x, result)

    def cosine(self, x: Node) -> Node:
        """Return cosh(n log 2 + r) = cosh(n log 2) cosh(r) + sinh(n log 2) sinh(r)."""
        return self._sum(*_powers(abs(x)))

    def inverse_sine(self, x: Node) -> Node:
        """Return asinh(x) = log(|x| + sqrt(x^2 + 1)); where that is below 1, a polynomial."""
        magnitude = abs(x)
        far = self._logarithm_of_sum(magnitude, square_root(multiply_add(x, x, 1.0)))
        return with_sign_of(x, select(magnitude < math.sinh(1.0), odd(magnitude, self.asinh), far))

    def inverse_cosine(self, x: Node) -> Node:
        """Return acosh(x) = log(x + sqrt(x^2 - 1)); near one sqrt(2 t) times a polynomial in t = x - 1."""
        t = x - 1.0
        is_near = t < 1.0
        root = square_root(select(is_near, t + t, multiply_add(x, x, -1.0)))
        near = multiply_add(root * t, polynomial(self.acosh, t), root)
        return select(is_near, near, self._logarithm_of_sum(x, root))

    def inverse_tangent(self, x: Node) -> Node:
        """Return atanh(x) = log((1 + |x|) / (1 - |x|)) / 2; near zero a polynomial."""
        magnitude = abs(x)
        far = 0.5 * finite_logarithm(self.log, (1.0 + magnitude) / (1.0 - magnitude))
        result = select(magnitude < 0.5, odd(magnitude, self.atanh), far)
        at_the_end = select(equal(magnitude, 1.0), constant(math.inf, x.type), math.nan)
        return with_sign_of(x, select(magnitude < 1.0, result, at_the_end))

    def _sum(self, of_cosine: Node, of_sine: Node, r: Node) -> Node:
        """Return 2 (of_cosine cosh(r) + of_sine sinh(r))."""
        square = r * r
        cosine_rest = square * polynomial(self.cosh, square)
        rest = multiply_add(of_cosine, cosine_rest, of_sine * odd(r, self.sinh))
        return 2.0 * (of_cosine + rest)

    def _logarithm_of_sum(self, x: Node, root: Node) -> Node:
        """Return log(x + root) for a root that is x where x is large, and may have become infinite there."""
        half = x * 0.5
        return normal_logarithm(self.log, multiply_add(select(x > _LARGE, x, root), 0.5, half), doubled=True)


def _powers(magnitude: Node) -> tuple[Node, Node, Node]:
    """Return (2^n + 2^-n) / 4, (2^n - 2^-n) / 4, and r, for magnitude = n log 2 + r."""
    bits, n, high = reduced(at_most(magnitude, _HIGHEST), _QUARTER_POWER)
    above = power_of_two(bits)
    # Of large n the lesser power does not count: where its exponent would be below zero, it is zero.
    least = apply(Operation.MAXIMUM, (2 * _QUARTER_POWER << 23) - float32_bits(above), 0)
    below = bitcast(least, ScalarType.FLOAT32)
    return above + below, above - below, multiply_add(n, LOG_2_LOW, high)


_QUARTER_POWER = EXPONENT_BIAS - 2
_HIGHEST = 89.7
"""From here on the results are infinite, but n log 2 is still below 2^128."""
_LARGE = 2.0**13
"""From here on sqrt(x^2 + 1) and sqrt(x^2 - 1) are x in FLOAT32."""

EXPANSIONS = HyperbolicFunctions(
    near_sinh=(0.166667163, 0.00833027437, 0.000203728327),
    sinh=(0.166665435, 0.00836653449),
    cosh=(0.5, 0.0416664593, 0.00139354309),
    asinh=(
        -0.166664541,
        0.0749455839,
        -0.0441574194,
        0.0282146186,
        -0.0166885518,
        0.0076760943,
        -0.00225762185,
        0.000305401511,
    ),
    acosh=(-0.0833330899, 0.018745048, -0.00554632023, 0.00178829208, -0.000506871089, 8.28041011e-05),
    atanh=(0.333333015, 0.20002453, 0.142237857, 0.118163861, 0.0516043603, 0.176378503),
    log=LOG,
).expansions()
"""Within 1.56 ULP (sinh), 1.85 (cosh), 1.37 (asinh), 1.55 (acosh), 1.35 (atanh)."""
