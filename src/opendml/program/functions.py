"""The vocabulary of operator definitions: functions from nodes to nodes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from functools import reduce

import numpy as np

from opendml.program.node import (
    Likelihood,
    Node,
    Number,
    Operation,
    Precision,
    apply,
    constant,
    convert,
    position,
    reduction,
    scan,
)
from opendml.program.scalar_type import ScalarType, counting
from opendml.program.view import padded, sliced


def maximum(a: Node | Number, b: Node | Number) -> Node:
    """The greater of two; NaN if either is NaN."""
    return apply(Operation.MAXIMUM, a, b)


def minimum(a: Node | Number, b: Node | Number) -> Node:
    """The lesser of two; NaN if either is NaN."""
    return apply(Operation.MINIMUM, a, b)


def select(condition: Node, if_true: Node | Number, if_false: Node | Number) -> Node:
    """`if_true` where the condition holds, `if_false` elsewhere."""
    return apply(Operation.SELECT, condition, if_true, if_false)


def rarely(condition: Node, if_true: Node, if_false: Node) -> Node:
    """Return `select`, with a condition that hardly ever holds."""
    node = select(condition, if_true, if_false)
    return Node(node.operation, node.type, node.sizes, node.operands, Likelihood.RARE)


def multiply_add(a: Node | Number, b: Node | Number, c: Node | Number) -> Node:
    """a * b + c, rounded once."""
    return apply(Operation.MULTIPLY_ADD, a, b, c)


def near_quotient(x: Node, number: float) -> Node:
    """x / number within 2 ULP, where no denormal results matter: for the argument of a function that takes
    its rounding error in. The number's magnitude is from 2^-100 on."""
    return Node(Operation.DIVIDE, x.type, x.sizes, (x, constant(number, x.type)), Precision.BY_RECIPROCAL)


def scaled(x: Node, factor: float) -> Node:
    """x times a factor that the type of x need not hold, as if only the result were rounded."""
    if float(np.finfo(np.float32).max) < abs(factor) < math.inf:
        return scaled(x * 2.0**100, factor * 2.0**-100)
    if 0.0 < abs(factor) < 2.0**-100:
        return scaled(x * 2.0**-100, factor * 2.0**100)
    # Two parts of one sign: those of opposite sign would meet as infinity - infinity.
    high = np.float32(factor)
    if abs(float(high)) > abs(factor):
        high = np.nextafter(high, np.float32(0))
    rest = factor - float(high)
    return x * float(high) if rest == 0.0 or rest != rest else multiply_add(x, float(high), x * rest)


def square_root(x: Node) -> Node:
    """Correctly rounded square root; NaN below zero."""
    return apply(Operation.SQUARE_ROOT, x)


def round_even(x: Node) -> Node:
    """The nearest whole number, halves to even."""
    return apply(Operation.ROUND_EVEN, x)


def floor(x: Node) -> Node:
    """The greatest whole number that is not above x."""
    return apply(Operation.FLOOR, x)


def ceiling(x: Node) -> Node:
    """The least whole number that is not below x."""
    return -floor(-x)


def truncate(x: Node) -> Node:
    """x without its fraction."""
    return apply(Operation.TRUNCATE, x)


def remainder(a: Node, b: Node) -> Node:
    """The remainder of division with a truncated quotient; it has the sign of a."""
    return apply(Operation.REMAINDER, a, b)


def equal(a: Node, b: Node | Number) -> Node:
    """Whether two are equal; NaN is equal to nothing."""
    return apply(Operation.EQUAL, a, b)


def logical_not(x: Node) -> Node:
    """The opposite of a condition, or all bits of an integer."""
    return apply(Operation.NOT, x)


def logical_and(a: Node, b: Node) -> Node:
    """Both of two conditions, or the bits that both of two integers have."""
    return apply(Operation.AND, a, b)


def logical_or(a: Node, b: Node) -> Node:
    """One of two conditions or both, or the bits that one of two integers has."""
    return apply(Operation.OR, a, b)


def rounded(x: Node) -> Node:
    """Return x as its type has it.

    Definitions round the outputs of operators, and arguments of functions that jump at ties, where exact
    arithmetic would come to the other side of them.
    """
    return Node(Operation.ROUND, x.type, x.sizes, (x,)) if x.type.is_float else x


def exp(x: Node) -> Node:
    """e to the power x."""
    return apply(Operation.EXPONENTIAL, x)


def scaled_exp(x: Node, factor: Node | Number) -> Node:
    """The factor times e to the power x, where that power alone might overflow or have few digits."""
    return apply(Operation.SCALED_EXPONENTIAL, x, factor)


def expm1(x: Node) -> Node:
    """e to the power x, less one; exact for small x."""
    return apply(Operation.EXPONENTIAL_MINUS_ONE, x)


def log(x: Node) -> Node:
    """Natural logarithm; -infinity at zero, NaN below."""
    return apply(Operation.LOGARITHM, x)


def log1p(x: Node) -> Node:
    """Natural logarithm of 1 + x; exact for small x."""
    return apply(Operation.LOGARITHM_ONE_PLUS, x)


def tanh(x: Node) -> Node:
    """Hyperbolic tangent."""
    return apply(Operation.HYPERBOLIC_TANGENT, x)


def erf(x: Node) -> Node:
    """Error function."""
    return apply(Operation.ERROR_FUNCTION, x)


def log1p_exp(x: Node) -> Node:
    """Natural logarithm of 1 + e to the power x, for x that is not above zero."""
    return apply(Operation.LOGARITHM_ONE_PLUS_EXPONENTIAL, x)


def gaussian_error_linear_unit(x: Node) -> Node:
    """Return x times the probability that a standard normal variable is below x; NaN at -infinity."""
    return apply(Operation.GAUSSIAN_ERROR_LINEAR_UNIT, x)


def power(base: Node, exponent: Node | Number) -> Node:
    """base to the power of the exponent; a negative base needs a whole exponent, else NaN."""
    return apply(Operation.POWER, base, exponent)


def sin(x: Node) -> Node:
    """Sine of x radians."""
    return apply(Operation.SINE, x)


def cos(x: Node) -> Node:
    """Cosine of x radians."""
    return apply(Operation.COSINE, x)


def tan(x: Node) -> Node:
    """Tangent of x radians."""
    return apply(Operation.TANGENT, x)


def asin(x: Node) -> Node:
    """Arc sine; NaN outside -1 to 1."""
    return apply(Operation.ARC_SINE, x)


def acos(x: Node) -> Node:
    """Arc cosine; NaN outside -1 to 1."""
    return apply(Operation.ARC_COSINE, x)


def atan2(y: Node, x: Node | Number) -> Node:
    """The angle of the point (x, y), from -pi to pi."""
    return apply(Operation.ARC_TANGENT_YX, y, x)


def sinh(x: Node) -> Node:
    """Hyperbolic sine."""
    return apply(Operation.HYPERBOLIC_SINE, x)


def cosh(x: Node) -> Node:
    """Hyperbolic cosine."""
    return apply(Operation.HYPERBOLIC_COSINE, x)


def asinh(x: Node) -> Node:
    """Inverse hyperbolic sine."""
    return apply(Operation.INVERSE_HYPERBOLIC_SINE, x)


def acosh(x: Node) -> Node:
    """Inverse hyperbolic cosine; NaN below 1."""
    return apply(Operation.INVERSE_HYPERBOLIC_COSINE, x)


def atanh(x: Node) -> Node:
    """Inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond."""
    return apply(Operation.INVERSE_HYPERBOLIC_TANGENT, x)


def magnitude(x: Node) -> Node:
    """|x| for every type; that of the least integer wraps to itself."""
    if x.type.is_float:
        return abs(x)
    return select(x < 0, -x, x) if x.type.is_signed else x


def wide(x: Node) -> Node:
    """A float in FLOAT64, where its square cannot overflow; an integer as it is."""
    return convert(x, ScalarType.FLOAT64) if x.type.is_float else x


def wide_enough(indices: Node, size: int) -> Node:
    """Indices of a type that holds so many elements too, as unsigned ones of tensors do."""
    narrow = indices.type.is_signed and indices.type.bits < counting(size).bits
    return convert(indices, counting(size)) if narrow else indices


def log_of_wide(x: Node) -> Node:
    """Natural logarithm, in FLOAT32, of a FLOAT64 that FLOAT32 need not hold."""
    scale = 2.0**100
    large, small = x > scale, x < 1.0 / scale
    within = select(large, x * (1.0 / scale), select(small, x * scale, x))
    exponent = select(large, constant(100 * math.log(2), ScalarType.FLOAT32), 0.0)
    exponent = select(small, -100 * math.log(2), exponent)
    return log(convert(within, ScalarType.FLOAT32)) + exponent


def mean(x: Node, axes: Iterable[int]) -> Node:
    """Mean over the axes, in FLOAT64. One element is its own mean."""
    reduced = [axis for axis in axes if x.sizes[axis] > 1]
    return reduction(Operation.MEAN, x, reduced) if reduced else convert(x, ScalarType.FLOAT64)


def variance(x: Node, axes: Iterable[int]) -> Node:
    """Population variance over the axes, in FLOAT64. That of one element is zero, or NaN where it is not
    finite."""
    reduced = [axis for axis in axes if x.sizes[axis] > 1]
    return reduction(Operation.VARIANCE, x, reduced) if reduced else convert(x - x, ScalarType.FLOAT64)


def reduce_sum(x: Node, axes: Iterable[int]) -> Node:
    """Sum over the axes: of floats in FLOAT64, of integers wrapping in their type."""
    return _reduced(Operation.SUM, x, axes)


def reduce_product(x: Node, axes: Iterable[int]) -> Node:
    """Product over the axes, typed as a sum."""
    return _reduced(Operation.PRODUCT, x, axes)


def reduce_minimum(x: Node, axes: Iterable[int]) -> Node:
    """The least element over the axes; NaN if one is."""
    return _reduced(Operation.LEAST, x, axes)


def reduce_maximum(x: Node, axes: Iterable[int]) -> Node:
    """The greatest element over the axes; NaN if one is."""
    return _reduced(Operation.GREATEST, x, axes)


def _reduced(operation: Operation, x: Node, axes: Iterable[int]) -> Node:
    # One element is its own sum, product and extreme, in the type of the result.
    reduced = [axis for axis in axes if x.sizes[axis] > 1]
    whole = reduction(operation, x, reduced)
    return whole if reduced else convert(x, whole.type)


def index_of_minimum(x: Node, axes: Iterable[int], last: bool = False) -> Node:
    """Where over the axes, counted in row-major order, the first (or last) least element is; NaN is least."""
    return _search(Operation.LAST_LEAST if last else Operation.FIRST_LEAST, x, axes)


def index_of_maximum(x: Node, axes: Iterable[int], last: bool = False) -> Node:
    """Where over the axes, counted in row-major order, the first (or last) greatest element is; NaN is
    greatest."""
    return _search(Operation.LAST_GREATEST if last else Operation.FIRST_GREATEST, x, axes)


def first_greatest(x: Node, numbers: Node, axes: Iterable[int]) -> Node:
    """The least of the `numbers` of the greatest elements over the axes; NaN is greatest."""
    reduced = tuple(axis for axis in axes if x.sizes[axis] > 1)
    if not reduced:
        return numbers
    sizes = tuple(1 if axis in reduced else size for axis, size in enumerate(x.sizes))
    return Node(Operation.FIRST_GREATEST, numbers.type, sizes, (x, numbers), reduced)


def _search(operation: Operation, x: Node, axes: Iterable[int]) -> Node:
    reduced = [axis for axis in axes if x.sizes[axis] > 1]
    return reduction(operation, x, reduced) if reduced else position(x.sizes, ())


def running_sum(x: Node, axis: int, *, exclusive: bool, reverse: bool) -> Node:
    """Sums of all elements up to each along an axis, made as in `reduce_sum`, in the type of x."""
    return _running(Operation.RUNNING_SUM, x, axis, exclusive, reverse)


def running_product(x: Node, axis: int, *, exclusive: bool, reverse: bool) -> Node:
    """Products of all elements up to each along an axis, made as in `reduce_product`, in the type of x."""
    return _running(Operation.RUNNING_PRODUCT, x, axis, exclusive, reverse)


def _running(operation: Operation, x: Node, axis: int, exclusive: bool, reverse: bool) -> Node:
    if x.sizes[axis] > 1:
        return convert(scan(operation, x, axis, exclusive, reverse), x.type)
    if not exclusive:
        return x
    nothing = convert(position(x.sizes, ()), x.type)
    return nothing if operation is Operation.RUNNING_SUM else nothing + 1


def squared(x: Node) -> Node:
    """x * x; of floats in FLOAT64."""
    return wide(x) * wide(x)


def window_sum(x: Node, axis: int, before: int, after: int, term: Callable[[Node], Node] = wide) -> Node:
    """The sum of each element, so many before it and so many after it along an axis, as far as there are
    any, or of a `term` of each, which is 0 of 0; of floats in FLOAT64."""
    size = x.sizes[axis]
    before, after = min(before, size - 1), min(after, size - 1)
    margins = [[margin if each == axis else 0 for each in range(len(x.sizes))] for margin in (before, after)]
    return _sum_of_following(padded(x, margins[0], margins[1]), axis, before + after + 1, size, term)


_FOLLOWING = 32
"""Elements that are added one by one; the sums of so many are then added as one, and so on."""


def _sum_of_following(
    x: Node, axis: int, count: int, size: int, term: Callable[[Node], Node] = wide, apart: int = 1
) -> Node:
    """For the first `size` elements along an axis the sum of a term of it and those of what follows it,
    `count` in all, so far `apart`."""

    def following(number: int) -> Node:
        sizes = [size if each == axis else full for each, full in enumerate(x.sizes)]
        return term(sliced(x, [number * apart if each == axis else 0 for each in range(len(sizes))], sizes))

    if count <= _FOLLOWING:
        return reduce(operator.add, map(following, range(count)))
    blocks, rest = divmod(count, _FOLLOWING)
    whole = blocks * _FOLLOWING
    sums = _sum_of_following(x, axis, _FOLLOWING, size + (whole - _FOLLOWING) * apart, term, apart)
    of_blocks = _sum_of_following(sums, axis, blocks, size, apart=_FOLLOWING * apart)
    return reduce(operator.add, map(following, range(whole, whole + rest)), of_blocks)


def deviation(x: Node, center: Node) -> Node:
    """x - center in the type of x, as if the FLOAT64 center were not rounded to it first.

    The mean of a group may be thousands of times its deviation: rounded to FLOAT32 it would shift every
    result. So it is subtracted in two parts. An infinite center has no second part.
    """
    if center.operation is Operation.CONVERT and center.operands[0] is x:
        return x - x
    high = convert(center, x.type)
    exact_high = convert(high, center.type)
    rest = select(abs(exact_high) < math.inf, center - exact_high, 0.0)
    return (x - high) - convert(rest, x.type)


def compute_type(storage: ScalarType) -> ScalarType:
    """The type in which elements stored as `storage` are computed: FLOAT16 in FLOAT32, all others in their
    own."""
    return ScalarType.FLOAT32 if storage is ScalarType.FLOAT16 else storage
