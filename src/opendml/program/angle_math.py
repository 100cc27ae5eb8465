"""The trigonometric functions of FLOAT32 and their inverses, for any exactness of their polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from operator import add

from opendml.late_dataclass import dataclass
from opendml.program.common_math import even, float32_bits, odd, polynomial, with_sign_of, with_signed_zero
from opendml.program.functions import (
    equal,
    logical_not,
    multiply_add,
    rarely,
    round_even,
    select,
    square_root,
)
from opendml.program.node import Node, Operation, apply, bitcast, constant, convert
from opendml.program.scalar_type import ScalarType

Coefficients = tuple[float, ...]


@dataclass(frozen=True)
class AngleFunctions:
    """The functions, as exact as their polynomials in x^2 and the count of `parts` of pi / 2.

    (f(x) / x - 1) / x^2 for sin and tan up to pi / 4, asin up to 1/2, atan up to 1; (cos(x) - 1) / x^2 up to
    pi / 4.
    """

    parts: int
    sin: Coefficients
    cos: Coefficients
    tan: Coefficients
    asin: Coefficients
    atan: Coefficients

    def expansions(self) -> dict[Operation, Callable[..., Node]]:
        """Return the functions by their operations."""
        return {
            Operation.SINE: self.sine,
            Operation.COSINE: self.cosine,
            Operation.TANGENT: self.tangent,
            Operation.ARC_SINE: self.arc_sine,
            Operation.ARC_COSINE: self.arc_cosine,
            Operation.ARC_TANGENT_YX: self.arc_tangent_yx,
        }

    def sine(self, x: Node) -> Node:
        """Return sin(x)."""
        return with_signed_zero(x, self._of_angle(x, self._sine_or_cosine))

    def cosine(self, x: Node) -> Node:
        """Return cos(x) = sin(x + pi / 2)."""
        return self._of_angle(x, lambda quarter, angle: self._sine_or_cosine(quarter + 1, angle))

    def tangent(self, x: Node) -> Node:
        """Return tan(x); in odd quarters of the circle it is -1 / tan(x - pi / 2)."""
        return self._of_angle(x, self._tangent)

    def arc_sine(self, x: Node) -> Node:
        """Return asin(x); beyond a half pi / 2 - 2 asin(sqrt((1 - |x|) / 2))."""
        is_near, root, rest = self._arc(x)
        arc = root + select(is_near, rest, rest - _HALF_PI_REST / 2)
        return with_sign_of(x, select(is_near, arc, multiply_add(arc, -2.0, _HALF_PI)))

    def arc_cosine(self, x: Node) -> Node:
        """Return acos(x) = pi / 2 - asin(x); beyond a half 2 asin(sqrt((1 - |x|) / 2)), or what it is short
        of pi."""
        is_near, root, rest = self._arc(x)
        is_negative = float32_bits(x) < 0
        most = select(is_near, _HALF_PI, select(is_negative, constant(2 * _HALF_PI, x.type), 0.0))
        least = select(is_near, _HALF_PI_REST, select(is_negative, constant(2 * _HALF_PI_REST, x.type), 0.0))
        factor = select(is_near, constant(-1.0, x.type), 2.0)
        most = multiply_add(with_sign_of(x, root), factor, most)
        return most + multiply_add(with_sign_of(x, rest), factor, least)

    def arc_tangent_yx(self, y: Node, x: Node) -> Node:
        """Return atan2(y, x): the arc tangent of the lesser magnitude over the greater, in the right
        eighth."""
        height, width = abs(y), abs(x)
        is_steep = height > width
        slope = select(is_steep, width, height) / select(is_steep, height, width)
        # Two infinities, two zeros.
        of_equals = select(equal(height, width), select(height < 1.0, constant(0.0, x.type), 1.0), slope)
        slope = rarely(logical_not(slope <= 1.0), of_equals, slope)
        angle = odd(slope, self.atan)
        angle = select(is_steep, _HALF_PI - (angle - _HALF_PI_REST), angle)
        angle = select(float32_bits(x) < 0, 2 * _HALF_PI - (angle - 2 * _HALF_PI_REST), angle)
        return with_sign_of(y, angle)

    def _of_angle(self, x: Node, function: Callable[[Node, Node], Node]) -> Node:
        """Return a function of n as INT32, right modulo 4, and of r from -pi / 4 to pi / 4, for x = n pi / 2
        + r."""
        shifted = multiply_add(x, 2.0 / math.pi, _UNITS)
        n = shifted - _UNITS
        rest = x
        for part in _HALF_PI_PARTS[: self.parts]:
            rest = multiply_add(n, -part, rest)
        usual = function(float32_bits(shifted), rest)
        return rarely(abs(x) > _MOST_REDUCED, function(*_large_angle(x)), usual)

    def _sine_or_cosine(self, quarter: Node, angle: Node) -> Node:
        """Return sin(quarter pi / 2 + angle); the second bit of the quarter becomes the sign."""
        magnitude = select(_is_odd(quarter), even(angle, self.cos), odd(angle, self.sin))
        sign = apply(Operation.SHIFT_LEFT, apply(Operation.AND, quarter, 2), 30)
        return bitcast(apply(Operation.XOR, float32_bits(magnitude), sign), ScalarType.FLOAT32)

    def _tangent(self, quarter: Node, angle: Node) -> Node:
        tangent, is_odd = odd(angle, self.tan), _is_odd(quarter)
        return select(is_odd, -1.0, tangent) / select(is_odd, tangent, 1.0)

    def _arc(self, x: Node) -> tuple[Node, Node, Node]:
        """Return whether |x| is at most a half; r, which is |x| if so, else sqrt((1 - |x|) / 2); and asin(r)
        - r."""
        magnitude = abs(x)
        is_near = magnitude <= 0.5
        half_rest = multiply_add(magnitude, -0.5, 0.5)
        square = select(is_near, x * x, half_rest)
        root = select(is_near, magnitude, square_root(half_rest))
        return is_near, root, root * square * polynomial(self.asin, square)


def _is_odd(n: Node) -> Node:
    return logical_not(equal(apply(Operation.AND, n, 1), 0))


def _large_angle(x: Node) -> tuple[Node, Node]:
    """Return n and r of any x, in FLOAT64.

    The angle in quarter turns, x 2 / pi, is needed modulo 4 to 2^-62. 2 / pi is split into parts, so that x
    times each part is exact. Whole turns are left out of these products. n is subtracted from the greatest
    before the others are added, because what cancels is exact then.
    """
    value = convert(x, ScalarType.FLOAT64)
    products = [value * part for part in _TWO_OVER_PI]
    turns = [multiply_add(round_even(product * 0.25), -4.0, product) for product in products]
    shifted = reduce(add, turns) + _WIDE_UNITS
    rest = reduce(add, turns[1:], turns[0] - (shifted - _WIDE_UNITS))
    quarter = convert(bitcast(shifted, ScalarType.INT64), ScalarType.INT32)
    return quarter, convert(rest * (math.pi / 2), ScalarType.FLOAT32)


_UNITS, _WIDE_UNITS = 1.5 * 2.0**23, 1.5 * 2.0**52
"""From here on, the last bit of a FLOAT32 and of a FLOAT64 counts units; the middle leaves room for both
signs."""
_HALF_PI, _HALF_PI_REST = 1.57079637050628662109375, -4.37113900018624283e-8
_HALF_PI_PARTS = (1.5707962512969970703125, 7.549789415861596e-08, 5.390302529957764e-15)
"""Each below what is left: n of them have the bits of x."""
_MOST_REDUCED = 2.0**16
"""Up to here n times the first part is exact when it is taken off x, and the parts have digits enough."""
_TWO_OVER_PI_DIGITS = 0x517CC1B727220A94FE13ABE8FA9A6EE06DB14ACC9E21C820FF2
"""2 / pi times 2^203."""
_PART_BITS, _PARTS = 29, 7
"""The bits and the number of parts of 2 / pi: a product of a part and 24 bits of x is exact in FLOAT64."""
_TWO_OVER_PI = tuple(
    math.ldexp(
        float(_TWO_OVER_PI_DIGITS >> _PART_BITS * (_PARTS - part) & 2**_PART_BITS - 1), -_PART_BITS * part
    )
    for part in range(1, _PARTS + 1)
)

EXPANSIONS = AngleFunctions(
    parts=3,
    sin=(-0.166666552, 0.00833218917, -0.00019518286),
    cos=(-0.5, 0.0416666456, -0.00138873106, 2.44325638e-05),
    tan=(0.333333492, 0.133326754, 0.0540589057, 0.0212862976, 0.0108270766, 9.88741303e-05, 0.00437231269),
    asin=(0.166667521, 0.0749530941, 0.0454691499, 0.0241847783, 0.0421583056),
    atan=(
        -0.333331525,
        0.199937671,
        -0.142110035,
        0.106657855,
        -0.0755172372,
        0.0432058573,
        -0.016364133,
        0.00291972281,
    ),
).expansions()
"""Within 1.53 ULP (sin, cos), 2.86 (tan), 1.68 (asin), 1.16 (acos), 1.78 (atan2)."""
