"""Reductions, searches for extremes, and running sums and products."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opendml.operators.registry import defines
from opendml.program.functions import (
    exp,
    index_of_maximum,
    index_of_minimum,
    log_of_wide,
    magnitude,
    reduce_maximum,
    reduce_minimum,
    reduce_product,
    reduce_sum,
    running_product,
    running_sum,
    select,
    square_root,
    wide,
)
from opendml.program.node import Node
from opendml.program.sizes import as_number
from opendml.spec.enums import AxisDirection, ReduceFunction


@defines("REDUCE")
def reduce(x: Node, *, function: ReduceFunction, axes: Sequence[int]) -> Node:
    """function of all elements along the axes

    Sums and products of floats are made in float64 and rounded once; those of integers wrap, the magnitude of
    the least integer included. LOG_SUM is the logarithm of the sum (NaN where that is negative), LOG_SUM_EXP
    the logarithm of the sum of exponentials, which cannot overflow. A NaN makes its whole group NaN. ARGMIN
    and ARGMAX are the operators of these names, with the first of equal elements.
    """
    return _FUNCTIONS[function](x, axes)


@defines("ARGMIN")
def argmin(x: Node, *, axes: Sequence[int], axis_direction: AxisDirection) -> Node:
    """the index, in row-major order over the axes, of the first (INCREASING) or last least element

    The order in which the axes are listed has no meaning. NaN counts as the least, as in NumPy and PyTorch;
    zeros are equal whatever their sign.
    """
    return index_of_minimum(x, axes, last=axis_direction is AxisDirection.DECREASING)


@defines("ARGMAX")
def argmax(x: Node, *, axes: Sequence[int], axis_direction: AxisDirection) -> Node:
    """the index, in row-major order over the axes, of the first (INCREASING) or last greatest element

    The order in which the axes are listed has no meaning. NaN counts as the greatest, as in NumPy and
    PyTorch; zeros are equal whatever their sign.
    """
    return index_of_maximum(x, axes, last=axis_direction is AxisDirection.DECREASING)


@defines("CUMULATIVE_SUMMATION")
def cumulative_summation(
    x: Node, *, axis: int, axis_direction: AxisDirection, has_exclusive_sum: bool
) -> Node:
    """the sum of all elements up to this one along the axis; exclusive: without this one

    Sums of floats are made in float64 and rounded once each; those of integers wrap.
    """
    reverse = axis_direction is AxisDirection.DECREASING
    return running_sum(x, axis, exclusive=has_exclusive_sum, reverse=reverse)


@defines("CUMULATIVE_PRODUCT")
def cumulative_product(
    x: Node, *, axis: int, axis_direction: AxisDirection, has_exclusive_product: bool
) -> Node:
    """the product of all elements up to this one along the axis; exclusive: without this one

    Products of floats are made in float64 and rounded once each, so that an intermediate product may lie
    beyond the greatest float32; those of integers wrap.
    """
    reverse = axis_direction is AxisDirection.DECREASING
    return running_product(x, axis, exclusive=has_exclusive_product, reverse=reverse)


def _average(x: Node, axes: Sequence[int]) -> Node:
    count = 1
    for axis in axes:
        count *= x.sizes[axis]
    return reduce_sum(x, axes) / as_number(count)


def _sum_of_squares(x: Node, axes: Sequence[int]) -> Node:
    return reduce_sum(wide(x) * wide(x), axes)


def _log_of_sum_of_exponentials(x: Node, axes: Sequence[int]) -> Node:
    greatest = reduce_maximum(x, axes)
    # Relative to the greatest element nothing overflows; an infinite one is the result itself.
    relative = log_of_wide(reduce_sum(exp(x - greatest), axes))
    return select(abs(greatest) > _LARGEST, greatest, greatest + relative)


_LARGEST = float.fromhex("0x1.fffffep127")

_FUNCTIONS: dict[ReduceFunction, Callable[[Node, Sequence[int]], Node]] = {
    ReduceFunction.ARGMAX: index_of_maximum,
    ReduceFunction.ARGMIN: index_of_minimum,
    ReduceFunction.AVERAGE: _average,
    ReduceFunction.L1: lambda x, axes: reduce_sum(magnitude(x), axes),
    ReduceFunction.L2: lambda x, axes: square_root(_sum_of_squares(x, axes)),
    ReduceFunction.LOG_SUM: lambda x, axes: log_of_wide(reduce_sum(x, axes)),
    ReduceFunction.LOG_SUM_EXP: _log_of_sum_of_exponentials,
    ReduceFunction.MAX: reduce_maximum,
    ReduceFunction.MIN: reduce_minimum,
    ReduceFunction.MULTIPLY: reduce_product,
    ReduceFunction.SUM: reduce_sum,
    ReduceFunction.SUM_SQUARE: _sum_of_squares,
}
