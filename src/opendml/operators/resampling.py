"""Tensors in other sizes: each element from the nearest, or between the two nearest, along each dimension."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from opendml.late_dataclass import dataclass
from opendml.operators.registry import defines
from opendml.program.functions import ceiling, floor, maximum, minimum, rounded, select, wide_enough
from opendml.program.node import Node, Operation, apply, constant, convert, counted
from opendml.program.scalar_type import ScalarType, counting, number_in
from opendml.program.sizes import index_range, is_surely_less, is_traced
from opendml.program.view import gathered, repeated, reshaped, view
from opendml.spec.enums import AxisDirection, InterpolationMode
from opendml.spec.operator_desc import Size2D
from opendml.spec.tensor_desc import TensorDesc

CENTER = 0.5
"""The center of a pixel, from its edge."""


class Sampling(NamedTuple):
    """The places of an output's elements along a dimension of the input."""

    scale: float
    input_offset: float
    output_offset: float


@defines("UPSAMPLE_2D", output=True)
def upsample_2d(
    x: Node, *, scale_size: Size2D, interpolation_mode: InterpolationMode, output: TensorDesc
) -> Node:
    """RESAMPLE of height and width, the last two dimensions, by ScaleSize"""
    scales = (*(1.0,) * (len(x.sizes) - 2), float(scale_size.height), float(scale_size.width))
    return resample(x, interpolation_mode=interpolation_mode, scales=scales, output=output)


@defines("RESAMPLE", output=True)
def resample(x: Node, *, scales: Sequence[float], **same: Any) -> Node:
    """RESAMPLE1 of pixel centers: InputPixelOffsets 0.5, OutputPixelOffsets -0.5"""
    offsets = (CENTER,) * len(scales), (-CENTER,) * len(scales)
    return resample1(
        x, scales=scales, input_pixel_offsets=offsets[0], output_pixel_offsets=offsets[1], **same
    )


@defines("RESAMPLE1", output=True)
def resample1(
    x: Node, *, interpolation_mode: InterpolationMode, input_pixel_offsets: Sequence[float], **same: Any
) -> Node:
    """RESAMPLE2, where the nearest neighbor is at floor(InputX + 0.5)

    Of two that are equally near it is the one behind: so ONNX Runtime takes it from DirectML. The remark on
    DirectML's page of RESAMPLE2, which shifts OutputPixelOffsets instead, holds for scales of 1 only.
    """
    offsets = rounding_down(interpolation_mode, input_pixel_offsets)
    return resample2(
        x,
        interpolation_mode=interpolation_mode,
        rounding_direction=AxisDirection.DECREASING,
        input_pixel_offsets=offsets,
        **same,
    )


def rounding_down(mode: InterpolationMode, input_pixel_offsets: Sequence[float]) -> list[float]:
    """Return the offsets with which RESAMPLE2, rounding down, has the nearest neighbors of RESAMPLE1."""
    shift = CENTER if mode is InterpolationMode.NEAREST_NEIGHBOR else 0.0
    return [number_in(offset - shift, ScalarType.FLOAT32) for offset in input_pixel_offsets]


@defines("RESAMPLE2", output=True)
def resample2(
    x: Node,
    *,
    interpolation_mode: InterpolationMode,
    rounding_direction: AxisDirection,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float],
    output_pixel_offsets: Sequence[float],
    output: TensorDesc,
) -> Node:
    """x at InputX = (OutputX - OutputPixelOffset) / Scale - InputPixelOffset along each dimension: rounded
    down (DECREASING) or up, or the mean of the elements around it, weighted by their nearness

    Coordinates are computed in float32, each step rounded, so that a scale of 1 / 3 meets the elements that
    it is meant to meet, as in ONNX Runtime. Indices beyond an end are that end. Means of integers are
    truncated.
    """
    is_linear = interpolation_mode is InterpolationMode.LINEAR
    direction = None if is_linear else rounding_direction
    placings = list(map(Sampling, scales, input_pixel_offsets, output_pixel_offsets))
    return resampled(x, direction, placings, output.sizes, exact=not x.type.is_float)


def resampled(
    x: Node,
    direction: AxisDirection | None,
    placings: Sequence[Sampling],
    sizes: tuple[int, ...],
    exact: bool,
) -> Node:
    """Return x in other sizes.

    With a direction these are the elements next to coordinates in that direction. Without one they are means
    of the elements around them, `exact` if means of equal numbers must be.
    """
    rank = len(x.sizes)
    offsets, steps = [0] * rank, [[0] * rank for _ in range(rank)]
    irregular, copies = {}, [1] * rank
    for axis, placing in enumerate(placings):
        size, count = x.sizes[axis], sizes[axis]
        if (found := regular(size, count, direction, placing)) is not None:
            offsets[axis], steps[axis][axis], copies[axis] = found
        else:
            irregular[axis] = placing
    x = _each_repeated(x, copies)
    if not irregular:
        return view(x, sizes, offsets, steps)
    if direction is None:
        return _linear(x, sizes, irregular, offsets, steps, exact)
    coordinates = {
        axis: coordinate(number_along(sizes, axis), sizes[axis], each) for axis, each in irregular.items()
    }
    indices = {axis: rounded_in(each, direction, x.sizes[axis]) for axis, each in coordinates.items()}
    return _within(x, sizes, indices, offsets, steps)


def _linear(
    x: Node,
    counts: Sequence[int],
    placings: Mapping[int, Sampling],
    offsets: Sequence[int],
    steps: Sequence[Sequence[int]],
    exact: bool,
) -> Node:
    """Return the means of the elements around each place along some axes.

    Along other axes the offsets and steps say which element it is.
    """
    lines = [_line(counts, axis, placings.get(axis)) for axis in range(len(counts))]
    # A dimension of the result is two of the kernel's: places that are weighted alike, and those of a period.
    sizes = tuple(each for line in lines for each in (line.count // line.period, line.period))
    steps = [[each for step in row for each in (step, 0)] for row in steps]

    def mean(axes: Sequence[int], indices: dict[int, Node]) -> Node:
        if not axes:
            return convert(_within(x, sizes, indices, offsets, steps), ScalarType.FLOAT32)
        axis, *others = axes
        line = lines[axis]
        first, second = (
            mean(others, indices | {axis: line.index(sizes, axis, step, x.sizes[axis])}) for step in (0, 1)
        )
        return _between(first, second, line.weight(sizes, axis), exact=exact)

    return reshaped(mean(list(placings), {}), counts)


@dataclass(frozen=True, slots=True)
class _Line:
    """The places along an axis, `count` in all and `period` in a period.

    From one period to the next the element before a place moves by `step`. `first` and `weights` are those of
    the first period. Without weights all are computed.
    """

    count: int
    period: int = 1
    step: int = 0
    first: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    placing: Sampling | None = None

    def index(self, sizes: Sequence[int], axis: int, ahead: int, size: int) -> Node:
        """Return the index, among `size` elements, of the element before each place, or `ahead` after it.

        The axis is two dimensions of `sizes`.
        """
        if not self.weights:
            return rounded_in(self._coordinate(sizes, axis), AxisDirection.DECREASING, size) + ahead
        steps = {2 * axis: self.step, 2 * axis + 1: self.first[-1] - self.first[0]}
        return _counted(sizes, self.first[0] + ahead, steps)

    def weight(self, sizes: Sequence[int], axis: int) -> Node:
        """Return the weight of the element behind each place."""
        if not self.weights:
            coordinate = self._coordinate(sizes, axis)
            return convert(coordinate - floor(coordinate), ScalarType.FLOAT32)
        weights = [constant(each, ScalarType.FLOAT32) for each in self.weights]
        if self.period == 1:
            return weights[0]
        number = _counted(sizes, 0, {2 * axis + 1: 1})
        return select(apply(Operation.EQUAL, number, 0), *weights)

    def _coordinate(self, sizes: Sequence[int], axis: int) -> Node:
        assert self.placing is not None
        return coordinate(number_along(sizes, 2 * axis), sizes[2 * axis], self.placing)


def _counted(sizes: Sequence[int], first: int, steps: Mapping[int, int]) -> Node:
    """Return a counter along some dimensions of `sizes`."""
    along = [size if each in steps else 1 for each, size in enumerate(sizes)]
    return counted(along, first, [steps.get(each, 0) for each in range(len(sizes))])


def _line(counts: Sequence[int], axis: int, placing: Sampling | None) -> _Line:
    """Return the places along an axis, by their periods of one or two if they have such."""
    count = counts[axis]
    if placing is None:
        return _Line(count)
    # Exact coordinates of more places repeat the period of these. Others of a traced number are computed.
    listed = _MOST_PROBED if is_traced(count) else count
    if count <= MOST_LISTED and (not is_traced(count) or _are_exact(placing)):
        places = places_of(listed, placing)
        before = np.floor(places)
        weights = places - before
        for period in (1, 2):
            moved = before[period:] - before[:-period]
            alike = np.array_equal(weights[period:], weights[:-period]) and (moved == moved[:1]).all()
            if count % period == 0 and count > period and alike:
                first = tuple(int(each) for each in before[:period])
                return _Line(count, period, int(moved[0]), first, tuple(map(float, weights[:period])))
    return _Line(count, placing=placing)


MOST_LISTED = 2**16
"""Places along an axis that are listed to find their period."""
_MOST_PROBED = 16
"""Places of a traced number that are listed to find their period."""


def _are_exact(placing: Sampling) -> bool:
    """Return whether float32 has the coordinates of `MOST_LISTED` places: multiples of 1/64 below 2^18."""
    step = 1 / Fraction(placing.scale)
    before = step * Fraction(placing.output_offset)
    parts = (step, before, Fraction(placing.input_offset), Fraction(placing.output_offset))
    return all(abs(each) <= 2 and 64 % each.denominator == 0 for each in parts)


def places_of(count: int, placing: Sampling) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Return the coordinates of `count` outputs."""
    scale, input_offset, output_offset = (np.float32(each) for each in placing)
    return (np.arange(count, dtype=np.float32) - output_offset) / scale - input_offset


def _within(
    x: Node,
    sizes: Sequence[int],
    indices: Mapping[int, Node],
    offsets: Sequence[int],
    steps: Sequence[Sequence[int]],
) -> Node:
    """Return x at indices, clamped to the ends."""
    offsets, steps, inside = list(offsets), [list(row) for row in steps], {}
    for axis, each in indices.items():
        size = x.sizes[axis]
        if each.operation is Operation.INDEX and isinstance(each.attribute, tuple):
            first, *moves = each.attribute
            least, most = index_range(sizes, moves)
            if is_surely_less(-1, first + least) and is_surely_less(first + most - least, size):
                offsets[axis], steps[axis] = first, moves
                continue
        inside[axis] = clamped(each, size)
    if not inside:
        return view(x, sizes, offsets, steps)
    return gathered(x, sizes, inside, offsets, steps, inside=True)


def _between(first: Node, second: Node, weight: Node, *, exact: bool) -> Node:
    """Return the weighted mean. Where it is to be truncated, that of equal numbers must be `exact`, for which
    infinities have no mean."""
    return first + weight * (second - first) if exact else first * (1.0 - weight) + second * weight


def regular(
    size: int, count: int, direction: AxisDirection | None, placing: Sampling
) -> tuple[int, int, int] | None:
    """Return the first index, the step, and how often each element comes, if the indices are that regular.

    None of them is beyond an end then. Without a direction all coordinates must be whole.
    """
    step = 1 / Fraction(placing.scale)
    first = -Fraction(placing.output_offset) * step - Fraction(placing.input_offset)
    if direction is AxisDirection.INCREASING:
        start = math.ceil(first)
    elif direction is AxisDirection.DECREASING or first.denominator == 1:
        start = math.floor(first)
    else:
        return None
    if step.denominator == 1:
        last = start + int(step) * (count - 1)
        return (start, int(step), 1) if start >= 0 and last < size else None
    # The elements of one block have coordinates from the first to that of the block's last.
    copies = step.denominator
    span = (copies - 1) * step
    same = math.ceil(first + span) if direction is AxisDirection.INCREASING else math.floor(first + span)
    if direction is not None and step.numerator == 1 and start == same == 0 and count <= size * copies:
        return 0, 1, copies
    return None


def number_along(sizes: Sequence[int], axis: int) -> Node:
    """Return the index along an axis of a tensor of `sizes`."""
    along = [size if each == axis else 1 for each, size in enumerate(sizes)]
    return counted(along, 0, [int(each == axis) for each in range(len(sizes))])


def coordinate(number: Node, count: int, placing: Sampling) -> Node:
    """Return InputX of the output `number` among `count` along a dimension."""
    type = ScalarType.FLOAT32 if count <= 2**24 else ScalarType.FLOAT64
    place = rounded(convert(number, type) - placing.output_offset)
    return rounded(rounded(place / placing.scale) - placing.input_offset)


def clamped(indices: Node, size: int) -> Node:
    """Return indices into `size` elements, clamped to the ends."""
    return maximum(minimum(wide_enough(indices, size), size - 1), 0)


def rounded_in(place: Node, direction: AxisDirection, size: int) -> Node:
    """Return the whole number next to a coordinate in a direction, among `size` elements."""
    up = direction is AxisDirection.INCREASING
    return convert(ceiling(place) if up else floor(place), counting(size))


def _each_repeated(x: Node, copies: Sequence[int]) -> Node:
    """Repeat each element of x along each dimension, one copy after the other."""
    pairs = list(zip(x.sizes, copies, strict=True))
    single = reshaped(x, [each for size, _ in pairs for each in (size, 1)])
    whole = repeated(single, [each for pair in pairs for each in pair])
    return reshaped(whole, [size * count for size, count in pairs])
