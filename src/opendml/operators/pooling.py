"""Pooling: the average, the norm or the greatest element of windows over the spatial dimensions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from opendml.late_dataclass import dataclass
from opendml.operators.quantization import aligned, less_zero_point, requantized
from opendml.operators.registry import defines
from opendml.program.functions import (
    first_greatest,
    maximum,
    minimum,
    power,
    rarely,
    reduce_maximum,
    reduce_sum,
    select,
    square_root,
    wide,
)
from opendml.program.node import Node, Number, Operation, apply, convert, index
from opendml.program.scalar_type import ScalarType, counting
from opendml.program.sizes import as_number, greatest
from opendml.program.view import is_index, reshaped, windows
from opendml.spec.tensor_desc import TensorDesc


@defines("AVERAGE_POOLING", output=True)
@defines("AVERAGE_POOLING1", output=True)
def average_pooling(x: Node, *, include_padding: bool, output: TensorDesc, **window: Any) -> Node:
    """sum of the window / number of its elements, with IncludePadding those in the padding too

    Sums are made in float64 and rounded once. What lies beyond the padding, where the output's sizes are
    rounded up, never counts, as in PyTorch. A window without any element is 0.
    """
    windows = windows_of(x.sizes, output.sizes[2:], **window)
    count = number_of_elements(windows, include_padding)
    return windows.pooled(shared(windows.sums(x), count))


@defines("QUANTIZED_LINEAR_AVERAGE_POOLING", stored=True, output=True)
def quantized_linear_average_pooling(
    x: Node,
    scale: Node,
    zero_point: Node | None,
    output_scale: Node,
    output_zero_point: Node | None,
    *,
    include_padding: bool,
    output: TensorDesc,
    **window: Any,
) -> Node:
    """clamp(round(y / output_scale) + output_zero_point) to the range of the output, where
    y = sum of (x - zero_point) over the window / number of its elements * scale

    The sums are exact. Padding counts as the zero point; its elements are counted as in AVERAGE_POOLING1.
    """
    rank = len(x.sizes)
    x = less_zero_point(x, zero_point and aligned(zero_point, rank), ScalarType.INT32)
    windows = windows_of(x.sizes, output.sizes[2:], **window)
    count = number_of_elements(windows, include_padding)
    sums = convert(windows.sums(x), ScalarType.FLOAT64)
    averages = windows.pooled(sums / count)
    zero = output_zero_point and aligned(output_zero_point, rank)
    return requantized(averages, aligned(scale, rank), aligned(output_scale, rank), zero, output)


@defines("LP_POOLING", output=True)
@defines("LP_POOLING1", output=True)
def lp_pooling(x: Node, *, p: int, output: TensorDesc, **window: Any) -> Node:
    """(sum of |x| ^ P over the window) ^ (1 / P)

    As in ONNX, magnitudes count, not elements with their signs, as DirectML's formula and PyTorch have it for
    an odd P. The sums are made in float64; from P = 3 on relative to the window's greatest magnitude, so that
    no power is beyond the greatest float32.
    """
    windows = windows_of(x.sizes, output.sizes[2:], **window)
    magnitudes = abs(windows.elements(x, 0))
    if p == 1:
        return windows.pooled(reduce_sum(magnitudes, windows.axes))
    if p == 2:
        return windows.pooled(_root(reduce_sum(wide(magnitudes) * wide(magnitudes), windows.axes)))
    greatest = reduce_maximum(magnitudes, windows.axes)
    scale = select(apply(Operation.AND, greatest > 0.0, greatest < math.inf), greatest, 1.0)
    total = reduce_sum(_whole_power(magnitudes / scale, p), windows.axes)
    return windows.pooled(power(convert(total, x.type), 1.0 / p) * scale)


@defines("MAX_POOLING", output=True)
def max_pooling(x: Node, *, output: TensorDesc, **window: Any) -> Node:
    """MAX_POOLING2 without indices and dilation

    NaN, and windows of nothing but padding, as in MAX_POOLING2.
    """
    windows = windows_of(x.sizes, output.sizes[2:], **window)
    return _greatest(windows, x)


@defines("MAX_POOLING1", output=True)
@defines("MAX_POOLING2", output=True)
def max_pooling2(x: Node, *, output: tuple[TensorDesc, TensorDesc | None], **window: Any) -> tuple[Node, ...]:
    """the greatest element of the window; index: its number, in row-major order, in the whole input

    NaN counts as the greatest, as in PyTorch. The first of equal elements gives the index. A window that
    holds nothing but padding is the least number of the type (-infinity of floats), at the index after the
    input's last.
    """
    values, indices = output
    windows = windows_of(x.sizes, values.sizes[2:], **window)
    greatest = _greatest(windows, x)
    return (greatest,) if indices is None else (greatest, index_of_greatest(windows, x))


MOST_IDLE = 64
"""Elements that a window has more than the input, at most, before only those of the input are visited."""


@dataclass(frozen=True, slots=True)
class PoolingWindows:
    """The windows over the spatial dimensions of a tensor of `sizes` (N, C, ...).

    They have the elements at o * stride + k * dilation - before, in (N, C, counts, extents).

    Along a dimension where windows are much larger than the tensor, `clipped` has the window that was asked
    for. There the element k of each window is that of the tensor at k, whether or not the window has it:
    extents are sizes, strides and `before` are 0. `margins` is the padding of each dimension at both ends.
    """

    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    extents: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    before: Sequence[int]
    clipped: Mapping[int, PoolingWindow]
    margins: Sequence[tuple[int, int]]

    @property
    def axes(self) -> range:
        """The dimensions within a window."""
        return range(2 + len(self.counts), 2 + 2 * len(self.counts))

    def elements(self, x: Node, fill: Number) -> Node:
        """Return the elements of x; what is not in x is `fill`."""
        viewed = windows(x, self.counts, self.extents, self.strides, self.dilations, self.before, fill)
        return self.masked(viewed, fill)

    def masked(self, value: Node, fill: Number) -> Node:
        """Return a value of each element where a window has that, and `fill` where it was clipped."""
        for axis in self.clipped:
            value = select(self._has_place(axis), value, fill)
        return value

    def sums(self, x: Node) -> Node:
        """Return the sum of each window's elements. Elements beyond x are +0, also if they are clipped."""
        sums = reduce_sum(self.elements(x, 0), self.axes)
        return sums + 0.0 if self.clipped and sums.type.is_float else sums

    def pooled(self, value: Node) -> Node:
        """Return a value of each window as the output has it."""
        return reshaped(value, (*self.sizes[:2], *self.counts))

    def number_of_elements(self, axis: int, before: int, after: int) -> Node | Number:
        """Return the number of a window's elements along a dimension, in x and in its padding."""
        if axis in self.clipped:
            return self._number_within(axis, -before, self.sizes[2 + axis] + after)
        inside = self.is_inside(axis, before, after)
        if inside is None:
            return as_number(self.extents[axis])
        return maximum(reduce_sum(convert(inside, ScalarType.FLOAT32), [self.axes[axis]]), 1.0)

    def is_inside(self, axis: int, before: int = 0, after: int = 0) -> Node | None:
        """Return whether elements along a dimension are in x or in padding of these sizes; None: all are."""
        if axis in self.clipped:
            return self._has_place(axis)
        rank = 2 + 2 * len(self.counts)
        sizes, steps = [1] * rank, [0] * rank
        sizes[2 + axis], steps[2 + axis] = self.counts[axis], self.strides[axis]
        sizes[self.axes[axis]], steps[self.axes[axis]] = self.extents[axis], self.dilations[axis]
        least = before - self.before[axis]
        most = least + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
        size = before + self.sizes[2 + axis] + after
        if least >= 0 and most < size:
            return None
        return is_index(sizes, least, steps, size, greatest(-least, most + 1))

    def _has_place(self, axis: int) -> Node:
        """Return whether each window has a place of x along a clipped dimension."""
        window, sizes, steps = self.clipped[axis], self._ones, [0] * (2 + 2 * len(self.counts))
        sizes[2 + axis], steps[2 + axis] = self.counts[axis], -window.stride
        sizes[self.axes[axis]], steps[self.axes[axis]] = self.sizes[2 + axis], 1
        reach = window.before + window.stride * self.counts[axis] + self.sizes[2 + axis]
        span = (window.extent - 1) * window.dilation + 1
        inside = is_index(sizes, window.before, steps, span, greatest(reach, span))
        if window.dilation == 1:
            return inside
        distance = index(ScalarType.INT64, sizes, window.before, steps)
        between = apply(Operation.REMAINDER, distance, index(ScalarType.INT64, (), window.dilation, ()))
        return apply(Operation.AND, inside, apply(Operation.EQUAL, between, 0))

    def _number_within(self, axis: int, first: int, end: int) -> Node | Number:
        """Return the number of each window's elements between places of a clipped dimension, at least 1."""
        window, sizes, steps = self.clipped[axis], self._ones, [0] * (2 + 2 * len(self.counts))
        last = window.stride * (self.counts[axis] - 1) + (window.extent - 1) * window.dilation - window.before
        if first <= -window.before and last < end:
            return as_number(window.extent)
        sizes[2 + axis], steps[2 + axis] = self.counts[axis], -window.stride

        def number_before(place: int) -> Node:
            distance = index(ScalarType.INT64, sizes, place + window.before + window.dilation - 1, steps)
            return minimum(maximum(distance, 0) / window.dilation, window.extent)

        number = maximum(number_before(end) - number_before(first), 1)
        return convert(number, ScalarType.FLOAT64)

    @property
    def _ones(self) -> list[int]:
        return [1] * (2 + 2 * len(self.counts))

    def numbers(self) -> Node:
        """Return the number of each element in x, in row-major order."""
        strides = [math.prod(self.sizes[axis + 1 :]) for axis in range(len(self.sizes))]
        spatial = strides[2:]
        first = -sum(margin * stride for margin, stride in zip(self.before, spatial, strict=True))
        sizes = (*self.sizes[:2], *self.counts, *self.extents)
        moving = [
            step * stride
            for steps in (self.strides, self.dilations)
            for step, stride in zip(steps, spatial, strict=True)
        ]
        return index(counting(math.prod(self.sizes)), sizes, first, (*strides[:2], *moving))


class PoolingWindow(NamedTuple):
    """The windows along one dimension: each has `extent` elements, `dilation` apart, and the first one begins
    `before` the tensor."""

    extent: int
    stride: int
    dilation: int
    before: int


def windows_of(
    sizes: tuple[int, ...],
    counts: tuple[int, ...],
    *,
    window_size: Sequence[int],
    strides: Sequence[int],
    start_padding: Sequence[int],
    end_padding: Sequence[int],
    dilations: Sequence[int] = (),
) -> PoolingWindows:
    """Return the windows of an operator over a tensor of `sizes`. Operators without dilations give none."""
    asked = list(map(PoolingWindow, window_size, strides, dilations or (1,) * len(strides), start_padding))
    clipped = {
        axis: window
        for axis, (window, size) in enumerate(zip(asked, sizes[2:], strict=True))
        if window.extent > size + MOST_IDLE
    }
    each = [
        PoolingWindow(sizes[2 + axis], 0, 1, 0) if axis in clipped else own for axis, own in enumerate(asked)
    ]
    extents, strides, dilations, before = zip(*each, strict=True)
    margins = tuple(zip(start_padding, end_padding, strict=True))
    return PoolingWindows(sizes, counts, extents, strides, dilations, before, clipped, margins)


def number_of_elements(windows: PoolingWindows, include_padding: bool) -> Node | Number:
    """Return the number of the windows' elements, in the tensor or also in the padding."""
    margins = windows.margins if include_padding else [(0, 0)] * len(windows.margins)
    return _product([windows.number_of_elements(axis, *margin) for axis, margin in enumerate(margins)])


def shared(total: Node, count: Node | Number) -> Node:
    """Return a FLOAT64 over a count, by a product with the reciprocal.

    It is rounded to fewer bits later, which show no difference to a quotient.
    """
    return total / count if isinstance(count, Node) else total * (1.0 / as_number(count))


def index_of_greatest(windows: PoolingWindows, x: Node) -> Node:
    """Return the least number of a greatest element in x. Padding has the number after x's last."""
    numbers = windows.numbers()
    for axis in range(len(windows.counts)):
        inside = windows.is_inside(axis)
        if inside is not None:
            numbers = select(inside, numbers, math.prod(windows.sizes))
    return windows.pooled(first_greatest(windows.elements(x, _least(x.type)), numbers, windows.axes))


def _whole_power(x: Node, exponent: int) -> Node:
    """Return x to the power of a whole number above zero, by squaring.

    The root of the same order reduces its rounding errors to less than one.
    """
    if exponent == 1:
        return x
    half = _whole_power(x, exponent // 2)
    return half * half * x if exponent % 2 else half * half


def _root(total: Node) -> Node:
    """Return the square root of a FLOAT64, within 0.8 units in the last place of FLOAT32.

    It is computed in FLOAT32, which is faster, where that holds the number.
    """
    narrow = convert(total, ScalarType.FLOAT32)
    held = apply(Operation.AND, narrow >= 2.0**-100, narrow <= 2.0**100)
    exact = convert(square_root(total), ScalarType.FLOAT32)
    return rarely(apply(Operation.NOT, held), exact, square_root(narrow))


def _greatest(windows: PoolingWindows, x: Node) -> Node:
    return windows.pooled(reduce_maximum(windows.elements(x, _least(x.type)), windows.axes))


def _least(type: ScalarType) -> Number:
    return -math.inf if type.is_float else int(np.iinfo(type.numpy.name).min)


def _product(factors: Sequence[Node | Number]) -> Node | Number:
    """Return the product: that of the numbers, times each node."""
    result: Node | Number = math.prod(factor for factor in factors if not isinstance(factor, Node))
    for factor in factors:
        if isinstance(factor, Node):
            result = factor * result
    return result
