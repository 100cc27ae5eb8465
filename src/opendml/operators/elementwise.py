"""Element-wise arithmetic and functions of one, two or three operands.

Integers wrap. NaN propagates, also through minimum and maximum, but not where a page's formula compares: a
comparison with NaN is false.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from opendml.operators.registry import defines, defines_each, fused
from opendml.operators.scale_bias import defines_scaled
from opendml.program import functions
from opendml.program.functions import (
    equal,
    floor,
    maximum,
    minimum,
    multiply_add,
    remainder,
    rounded,
    select,
    truncate,
)
from opendml.program.node import Node, Number, Operation, apply, bitcast, constant, convert, index
from opendml.program.scalar_type import ScalarType, number_in
from opendml.spec.enums import RoundingMode, TensorDataType
from opendml.spec.operator_desc import OperatorDesc


@defines("ELEMENT_WISE_SIGN")
def sign(x: Node) -> Node:
    """1 where x > 0, -1 where x < 0, 0 elsewhere, NaN included"""
    above = select(x > 0, constant(1, x.type), 0)
    return above if not (x.type.is_float or x.type.is_signed) else select(x < 0, -1, above)


@defines("ELEMENT_WISE_ADD1")
def add1(a: Node, b: Node, *, fused_activation: OperatorDesc | None) -> Node:
    """fused(a + b)"""
    return fused(fused_activation, a + b)


@defines("ELEMENT_WISE_DIVIDE")
def divide(a: Node, b: Node) -> Node:
    """a / b; of integers the quotient is truncated

    An integer divided by zero gives all bits one, as on Direct3D: the greatest unsigned number, -1. The least
    integer divided by -1 wraps to itself.
    """
    return a / b


@defines("ELEMENT_WISE_MODULUS_TRUNCATE")
def modulus_truncate(a: Node, b: Node) -> Node:
    """a - b * trunc(a / b), exactly; it has the sign of a. Modulo zero a float is NaN, an integer itself"""
    return remainder(a, b)


@defines("ELEMENT_WISE_MODULUS_FLOOR")
def modulus_floor(a: Node, b: Node) -> Node:
    """a - b * floor(a / b); it has the sign of b. Modulo zero a float is NaN, an integer itself

    A float is rounded once where the signs differ.
    """
    rest = remainder(a, b)
    if not (a.type.is_float or a.type.is_signed):
        return rest
    differ = apply(Operation.XOR, rest < 0, b < 0)
    is_zero = apply(Operation.OR, equal(rest, 0), equal(b, 0))
    return select(apply(Operation.AND, differ, functions.logical_not(is_zero)), rest + b, rest)


@defines("ELEMENT_WISE_MEAN")
def mean(a: Node, b: Node) -> Node:
    """(a + b) / 2; of integers it is truncated. The sum does not overflow"""
    if a.type.is_float:
        return functions.multiply_add(a, 0.5, b * 0.5)
    a, b = convert(a, ScalarType.FLOAT64), convert(b, ScalarType.FLOAT64)
    return (a + b) * 0.5


@defines_scaled("ELEMENT_WISE_THRESHOLD")
def threshold(x: Node, *, min: float) -> Node:
    """max(x, Min); for integers Min is truncated, and saturates"""
    return maximum(x, number_in(min, x.type))


@defines_scaled("ELEMENT_WISE_CLIP")
def clip(x: Node, *, min: Number, max: Number) -> Node:
    """max(Min, min(x, Max)); for integers Min and Max are truncated, and saturate"""
    return maximum(minimum(x, number_in(max, x.type)), number_in(min, x.type))


@defines_scaled("ELEMENT_WISE_CLIP1")
def clip1(x: Node, *, min_max_data_type: TensorDataType, min: Number, max: Number) -> Node:
    """max(Min, min(x, Max)), Min and Max being numbers of the tensor's type"""
    type = ScalarType.of(min_max_data_type)
    return clip(x, min=number_in(min, type), max=number_in(max, type))


@defines("ELEMENT_WISE_CLIP_GRAD")
def clip_grad(x: Node, gradient: Node, *, min: Number, max: Number) -> Node:
    """gradient where Min < x < Max or x is NaN, 0 elsewhere; for integers Min and Max are truncated"""
    low, high = number_in(min, x.type), number_in(max, x.type)
    return select(apply(Operation.OR, x <= low, x >= high), 0, gradient)


@defines("ELEMENT_WISE_CLIP_GRAD1")
def clip_grad1(
    x: Node, gradient: Node, *, min_max_data_type: TensorDataType, min: Number, max: Number
) -> Node:
    """gradient where Min < x < Max or x is NaN, 0 elsewhere; Min and Max are numbers of the tensor's type"""
    type = ScalarType.of(min_max_data_type)
    return clip_grad(x, gradient, min=number_in(min, type), max=number_in(max, type))


@defines("ELEMENT_WISE_IF", stored=True)
def if_(condition: Node, a: Node, b: Node) -> Node:
    """a where the condition is not 0, b elsewhere"""
    return select(equal(condition, 0), b, a)


@defines("ELEMENT_WISE_ROUND")
def round(x: Node, *, rounding_mode: RoundingMode) -> Node:
    """the nearest whole number with halves to even (HALVES_TO_NEAREST_EVEN) or away from zero
    (TOWARD_INFINITY), or x without its fraction (TOWARD_ZERO); the sign of zero stays"""
    if rounding_mode is RoundingMode.HALVES_TO_NEAREST_EVEN:
        return functions.round_even(x)
    whole = truncate(x)
    if rounding_mode is RoundingMode.TOWARD_ZERO:
        return whole
    return select(abs(x - whole) >= 0.5, whole + select(x < 0, constant(-1, x.type), 1), whole)


_FUNCTIONS: Mapping[str, tuple[Callable[..., Node], str]] = {
    "ELEMENT_WISE_CEIL": (functions.ceiling, "the least whole number that is not below x"),
    "ELEMENT_WISE_FLOOR": (floor, "the greatest whole number that is not above x"),
    "ELEMENT_WISE_SQRT": (functions.square_root, "the square root; NaN below zero"),
    "ELEMENT_WISE_EXP": (functions.exp, "e^x"),
    "ELEMENT_WISE_LOG": (functions.log, "ln(x); -infinity at zero, NaN below"),
    "ELEMENT_WISE_ERF": (functions.erf, "2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x"),
    "ELEMENT_WISE_SIN": (functions.sin, "sin(x), x in radians, however large"),
    "ELEMENT_WISE_COS": (functions.cos, "cos(x), x in radians, however large"),
    "ELEMENT_WISE_TAN": (functions.tan, "tan(x), x in radians, however large"),
    "ELEMENT_WISE_ASIN": (functions.asin, "arc sine; NaN outside [-1, 1]"),
    "ELEMENT_WISE_ACOS": (functions.acos, "arc cosine; NaN outside [-1, 1]"),
    "ELEMENT_WISE_ATAN": (lambda x: functions.atan2(x, 1.0), "arc tangent"),
    "ELEMENT_WISE_SINH": (functions.sinh, "(e^x - e^-x) / 2"),
    "ELEMENT_WISE_COSH": (functions.cosh, "(e^x + e^-x) / 2"),
    "ELEMENT_WISE_TANH": (functions.tanh, "(e^x - e^-x) / (e^x + e^-x)"),
    "ELEMENT_WISE_ASINH": (functions.asinh, "ln(x + sqrt(x^2 + 1))"),
    "ELEMENT_WISE_ACOSH": (functions.acosh, "ln(x + sqrt(x^2 - 1)); NaN below 1"),
    "ELEMENT_WISE_ATANH": (functions.atanh, "ln((1 + x) / (1 - x)) / 2; infinite at -1 and 1, NaN beyond"),
    "ELEMENT_WISE_IDENTITY": (lambda x: x, "x"),
    "ELEMENT_WISE_ABS": (abs, "|x|; the least integer stays as it is, as it has no opposite"),
    "ELEMENT_WISE_RECIP": (lambda x: 1.0 / x, "1 / x; infinite at zero, with its sign"),
}
"""Functions of one operand, which may be scaled before."""

_OPERATIONS: Mapping[str, tuple[Callable[..., Node], str]] = {
    "ELEMENT_WISE_NEGATE": (lambda x: -x, "-x; the least integer stays as it is"),
    "ELEMENT_WISE_ADD": (lambda a, b: a + b, "a + b"),
    "ELEMENT_WISE_SUBTRACT": (lambda a, b: a - b, "a - b"),
    "ELEMENT_WISE_MULTIPLY": (lambda a, b: a * b, "a * b"),
    "ELEMENT_WISE_DIFFERENCE_SQUARE": (lambda a, b: (a - b) * (a - b), "(a - b) * (a - b)"),
    "ELEMENT_WISE_MAX": (maximum, "max(a, b); NaN if either is NaN"),
    "ELEMENT_WISE_MIN": (minimum, "min(a, b); NaN if either is NaN"),
    "ELEMENT_WISE_ATAN_YX": (
        functions.atan2,
        "the angle of the point (x, y), from -pi to pi; at the origin that of C: 0 or pi, with the sign of y",
    ),
}

defines_each(_FUNCTIONS, defines_scaled)
defines_each(_OPERATIONS)


@defines_scaled("ELEMENT_WISE_POW")
def pow(x: Node, exponent: Node) -> Node:
    """x^exponent; NaN for a negative x with an exponent that is not whole

    Integers to integers are exact, modulo the range of the type. A negative exponent gives the reciprocal,
    truncated: 0 unless x is 1 or -1; 0 to a negative exponent is 0. Of an integer with a float exponent the
    result is truncated; it is as exact as with an integer where the exponent is whole and below 2^31. An
    integer exponent of a float is rounded to FLOAT32, but decides the sign before.
    """
    if x.type.is_float and exponent.type.is_float:
        return functions.power(x, exponent)
    if x.type.is_float:
        return _signed_power(x, exponent)
    if not exponent.type.is_float:
        return _whole_power(x, exponent)
    computed = convert(functions.power(convert(x, exponent.type), exponent), x.type)
    whole = convert(exponent, ScalarType.INT32)
    # From 2^31 on it is not the exponent any more, though rounding may make it look so.
    is_whole = apply(Operation.AND, equal(convert(whole, exponent.type), exponent), exponent < 2.0**31)
    return select(is_whole, _whole_power(x, whole), computed)


@defines_scaled("ELEMENT_WISE_CONSTANT_POW")
def constant_pow(x: Node, *, exponent: float) -> Node:
    """x^Exponent; NaN for a negative x with an exponent that is not whole"""
    match exponent:
        case 1.0:
            return x
        case 2.0:
            return x * x
        case 3.0:
            return x * x * x
        case -1.0:
            return 1.0 / x
    return functions.power(x, exponent)


@defines("VALUE_SCALE_2D")
def value_scale_2d(x: Node, *, scale: float, bias: Sequence[float]) -> Node:
    """scale * x + the channel's bias, rounded once"""
    sizes = (1, len(bias), 1, 1)
    channel = index(ScalarType.INT32, sizes, 0, (0, 1, 0, 0))
    offset = constant(bias[0], x.type)
    for number, value in enumerate(bias[1:], 1):
        offset = select(equal(channel, number), value, offset)
    return multiply_add(x, scale, offset)


def _signed_power(x: Node, exponent: Node) -> Node:
    """Return FLOAT32 x to an integer power."""
    magnitude = functions.power(abs(x), rounded(convert(exponent, x.type)))
    is_odd = equal(apply(Operation.AND, exponent, 1), 1)
    is_negative = bitcast(x, ScalarType.INT32) < 0
    return select(apply(Operation.AND, is_odd, is_negative), -magnitude, magnitude)


def _whole_power(x: Node, exponent: Node) -> Node:
    """Return x to a whole power, as a product of repeated squares."""
    result, square = constant(1, x.type), x
    steps = min(exponent.type.bits, x.type.bits)
    for bit in range(steps):
        shifted = apply(Operation.SHIFT_RIGHT, exponent, bit)
        is_set = functions.logical_not(equal(apply(Operation.AND, shifted, 1), 0))
        result, square = select(is_set, result * square, result), square * square
    if exponent.type.bits > steps:
        # After `steps` squarings an even number is 0 and an odd one 1. Further squarings do not change that.
        has_more = functions.logical_not(equal(apply(Operation.SHIFT_RIGHT, exponent, steps), 0))
        result = select(has_more, result * square, result)
    if not exponent.type.is_signed:
        return result
    is_unit = apply(Operation.OR, equal(x, 1), equal(x, -1)) if x.type.is_signed else equal(x, 1)
    return select(apply(Operation.OR, exponent >= 0, is_unit), result, 0)
