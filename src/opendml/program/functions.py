"""The vocabulary of operator definitions: functions from nodes to nodes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from functools import partial, reduce
from typing import Protocol

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
from opendml.program.sizes import is_unit
from opendml.program.view import padded, sliced

Operand = Node | Number
"""An operand of `apply`; a number takes the type of the operands beside it."""


class _Unary(Protocol):
    def __call__(self, x: Node, /) -> Node: ...


class _Binary(Protocol):
    def __call__(self, a: Operand, b: Operand, /) -> Node: ...


class _Ternary(Protocol):
    def __call__(self, a: Operand, b: Operand, c: Operand, /) -> Node: ...


# `Operation` says what these compute.

select: _Ternary = partial(apply, Operation.SELECT)
multiply_add: _Ternary = partial(apply, Operation.MULTIPLY_ADD)
maximum: _Binary = partial(apply, Operation.MAXIMUM)
minimum: _Binary = partial(apply, Operation.MINIMUM)
remainder: _Binary = partial(apply, Operation.REMAINDER)
logical_and: _Binary = partial(apply, Operation.AND)
logical_or: _Binary = partial(apply, Operation.OR)
equal: _Binary = partial(apply, Operation.EQUAL)
scaled_exp: _Binary = partial(apply, Operation.SCALED_EXPONENTIAL)
power: _Binary = partial(apply, Operation.POWER)
atan2: _Binary = partial(apply, Operation.ARC_TANGENT_YX)
square_root: _Unary = partial(apply, Operation.SQUARE_ROOT)
round_even: _Unary = partial(apply, Operation.ROUND_EVEN)
floor: _Unary = partial(apply, Operation.FLOOR)
truncate: _Unary = partial(apply, Operation.TRUNCATE)
logical_not: _Unary = partial(apply, Operation.NOT)
exp: _Unary = partial(apply, Operation.EXPONENTIAL)
expm1: _Unary = partial(apply, Operation.EXPONENTIAL_MINUS_ONE)
log: _Unary = partial(apply, Operation.LOGARITHM)
log1p: _Unary = partial(apply, Operation.LOGARITHM_ONE_PLUS)
tanh: _Unary = partial(apply, Operation.HYPERBOLIC_TANGENT)
erf: _Unary = partial(apply, Operation.ERROR_FUNCTION)
log1p_exp: _Unary = partial(apply, Operation.LOGARITHM_ONE_PLUS_EXPONENTIAL)
gaussian_error_linear_unit: _Unary = partial(apply, Operation.GAUSSIAN_ERROR_LINEAR_UNIT)
sin: _Unary = partial(apply, Operation.SINE)
cos: _Unary = partial(apply, Operation.COSINE)
tan: _Unary = partial(apply, Operation.TANGENT)
asin: _Unary = partial(apply, Operation.ARC_SINE)
acos: _Unary = partial(apply, Operation.ARC_COSINE)
sinh: _Unary = partial(apply, Operation.HYPERBOLIC_SINE)
cosh: _Unary = partial(apply, Operation.HYPERBOLIC_COSINE)
asinh: _Unary = partial(apply, Operation.INVERSE_HYPERBOLIC_SINE)
acosh: _Unary = partial(apply, Operation.INVERSE_HYPERBOLIC_COSINE)
atanh: _Unary = partial(apply, Operation.INVERSE_HYPERBOLIC_TANGENT)


def rarely(condition: Node, if_true: Node, if_false: Node) -> Node:
    """Return `select`, with a condition that hardly ever holds."""
    node = select(condition, if_true, if_false)
    return Node(node.operation, node.type, node.sizes, node.operands, Likelihood.RARE)


def near_quotient(x: Node, number: float) -> Node:
    """Return x / number within 2 ULP, where no denormal results matter: for the argument of a function that
    takes its rounding error in. The number's magnitude is from 2^-100 on."""
    return Node(Operation.DIVIDE, x.type, x.sizes, (x, constant(number, x.type)), Precision.BY_RECIPROCAL)


def scaled(x: Node, factor: float) -> Node:
    """Return x times a factor that the type of x need not hold, as if only the result were rounded."""
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


def ceiling(x: Node) -> Node:
    """Return the least whole number that is not below x."""
    return -floor(-x)


def rounded(x: Node) -> Node:
    """Return x as its type has it.

    Definitions round the outputs of operators, and arguments of functions that jump at ties, where exact
    arithmetic would come to the other side of them.
    """
    return Node(Operation.ROUND, x.type, x.sizes, (x,)) if x.type.is_float else x


def magnitude(x: Node) -> Node:
    """Return |x| for every type; that of the least integer wraps to itself."""
    if x.type.is_float:
        return abs(x)
    return select(x < 0, -x, x) if x.type.is_signed else x


def wide(x: Node) -> Node:
    """Return a float in FLOAT64, where its square cannot overflow; an integer as it is."""
    return convert(x, ScalarType.FLOAT64) if x.type.is_float else x


def wide_enough(indices: Node, size: int) -> Node:
    """Return indices in a type that holds `size` too. Unsigned indices do so already."""
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
    reduced = [axis for axis in axes if not is_unit(x.sizes[axis])]
    return reduction(Operation.MEAN, x, reduced) if reduced else convert(x, ScalarType.FLOAT64)


def variance(x: Node, axes: Iterable[int]) -> Node:
    """Population variance over the axes, in FLOAT64. That of one element is zero, or NaN where it is not
    finite."""
    reduced = [axis for axis in axes if not is_unit(x.sizes[axis])]
    return reduction(Operation.VARIANCE, x, reduced) if reduced else convert(x - x, ScalarType.FLOAT64)


def _reduced(operation: Operation, x: Node, axes: Iterable[int]) -> Node:
    """Reduce x over axes in the type of `reduction`."""
    # One element is its own sum, product and extreme, in the type of the result.
    reduced = [axis for axis in axes if not is_unit(x.sizes[axis])]
    whole = reduction(operation, x, reduced)
    return whole if reduced else convert(x, whole.type)


reduce_sum = partial(_reduced, Operation.SUM)
reduce_product = partial(_reduced, Operation.PRODUCT)
reduce_minimum = partial(_reduced, Operation.LEAST)
reduce_maximum = partial(_reduced, Operation.GREATEST)


def index_of_minimum(x: Node, axes: Iterable[int], last: bool = False) -> Node:
    """Return where over the axes, counted in row-major order, the first (or last) least element is; NaN is
    least."""
    return _search(Operation.LAST_LEAST if last else Operation.FIRST_LEAST, x, axes)


def index_of_maximum(x: Node, axes: Iterable[int], last: bool = False) -> Node:
    """Return where over the axes, counted in row-major order, the first (or last) greatest element is; NaN is
    greatest."""
    return _search(Operation.LAST_GREATEST if last else Operation.FIRST_GREATEST, x, axes)


def first_greatest(x: Node, numbers: Node, axes: Iterable[int]) -> Node:
    """Return the least of the `numbers` of the greatest elements over the axes; NaN is greatest."""
    reduced = tuple(axis for axis in axes if not is_unit(x.sizes[axis]))
    if not reduced:
        return numbers
    sizes = tuple(1 if axis in reduced else size for axis, size in enumerate(x.sizes))
    return Node(Operation.FIRST_GREATEST, numbers.type, sizes, (x, numbers), reduced)


def _search(operation: Operation, x: Node, axes: Iterable[int]) -> Node:
    reduced = [axis for axis in axes if not is_unit(x.sizes[axis])]
    return reduction(operation, x, reduced) if reduced else position(x.sizes, ())


def _running(operation: Operation, x: Node, axis: int, *, exclusive: bool, reverse: bool) -> Node:
    """Return the sums or products of all elements up to each along an axis, in the type of x."""
    if x.sizes[axis] > 1:
        return convert(scan(operation, x, axis, exclusive, reverse), x.type)
    if not exclusive:
        return x
    nothing = convert(position(x.sizes, ()), x.type)
    return nothing if operation is Operation.RUNNING_SUM else nothing + 1


running_sum = partial(_running, Operation.RUNNING_SUM)
running_product = partial(_running, Operation.RUNNING_PRODUCT)


def squared(x: Node) -> Node:
    """Return x * x; of floats in FLOAT64."""
    return wide(x) * wide(x)


def window_sum(x: Node, axis: int, before: int, after: int, term: Callable[[Node], Node] = wide) -> Node:
    """Return for each element the sum of a `term` of it and its neighbours along an axis.

    Args:
        x: the elements. Those outside of it do not count.
        axis: the axis.
        before, after: counts of neighbours on both sides.
        term: a function that gives 0 for 0; by default the element, of floats in FLOAT64.
    """
    size = x.sizes[axis]
    before, after = min(before, size - 1), min(after, size - 1)
    margins = [[margin if each == axis else 0 for each in range(len(x.sizes))] for margin in (before, after)]
    return _sum_of_following(padded(x, margins[0], margins[1]), axis, before + after + 1, size, term)


_FOLLOWING = 32
"""Elements that are added one by one. Sums of longer windows add the sums of these."""


def _sum_of_following(
    x: Node, axis: int, count: int, size: int, term: Callable[[Node], Node] = wide, apart: int = 1
) -> Node:
    """Return the sums of a term of `count` elements that are `apart`, for the first `size` elements."""

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
    """Return x - center in the type of x, as if the FLOAT64 center were not rounded to it first.

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
    """Return the type in which elements stored as `storage` are computed: FLOAT16 in FLOAT32, all others in
    their own."""
    return ScalarType.FLOAT32 if storage is ScalarType.FLOAT16 else storage
