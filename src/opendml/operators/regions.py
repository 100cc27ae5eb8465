"""Regions of interest: parts of an image, whose corners are data, brought to one size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product
from operator import add
from typing import Any, NamedTuple

from opendml.late_dataclass import dataclass
from opendml.operators.registry import defines
from opendml.operators.resampling import clamped
from opendml.program.functions import (
    ceiling,
    equal,
    floor,
    maximum,
    minimum,
    reduce_maximum,
    reduce_sum,
    rounded,
    select,
)
from opendml.program.node import Node, Number, Operation, apply, convert, counted
from opendml.program.scalar_type import ScalarType, counting
from opendml.program.sizes import as_number
from opendml.program.view import gathered, in_memory, permuted, reshaped, sliced
from opendml.spec.enums import InterpolationMode, ReduceFunction
from opendml.spec.operator_desc import Size2D
from opendml.spec.tensor_desc import TensorDesc


@defines("ROI_POOLING")
def roi_pooling(x: Node, regions: Node, *, spatial_scale: float, pooled_size: Size2D) -> Node:
    """the greatest element of Input[BatchID, c, StartY to below EndY, StartX to below EndX]

    The corners x1, y1, x2, y2 are rounded, halves up, and moved to the nearest element of the input; where x2
    is less than x1 it is taken to be x1, and so is y2. So every output has at least one element, and each
    region at most those of the input. NaN counts as the greatest. A batch index is truncated; one out of
    range is moved to the nearest end.

    Whatever a region is, its outputs together look at hardly more than the whole input.
    """
    corners = reshaped(regions, (regions.sizes[2], 5))
    batch = clamped(convert(_column(corners, 0), counting(x.sizes[0])), x.sizes[0])
    x1, y1, x2, y2 = (rounded(_column(corners, number) * spatial_scale) for number in range(1, 5))
    rows = _bins(y1, y2, x.sizes[2], pooled_size.height)
    columns = _bins(x1, x2, x.sizes[3], pooled_size.width)
    return _sampled(x, batch, rows, columns, _Reduction(reduce_maximum, -math.inf))


@defines("ROI_ALIGN", output=True)
def roi_align(x: Node, regions: Node, batch_indices: Node, **same: Any) -> Node:
    """ROI_ALIGN1 of pixel centers: InputPixelOffset 0.5, OutputPixelOffset -0.5, and not to corners

    Samples, what is out of bounds, and batch indices as in ROI_ALIGN1.
    """
    return roi_align1(
        x,
        regions,
        batch_indices,
        input_pixel_offset=0.5,
        output_pixel_offset=-0.5,
        align_regions_to_corners=False,
        **same,
    )


@defines("ROI_ALIGN1", output=True)
def roi_align1(
    x: Node,
    regions: Node,
    batch_indices: Node,
    *,
    reduction_function: ReduceFunction,
    interpolation_mode: InterpolationMode,
    spatial_scale_x: float,
    spatial_scale_y: float,
    input_pixel_offset: float,
    output_pixel_offset: float,
    out_of_bounds_input_value: float,
    minimum_samples_per_output: int,
    maximum_samples_per_output: int,
    align_regions_to_corners: bool,
    output: TensorDesc,
) -> Node:
    """the average or the greatest of nY * nX samples of x; along x they are at x1 - InputPixelOffset +
    (sx - OutputPixelOffset) * regionX / (outX * nX), with sx from ox * nX to below ox * nX + nX

    nX is |regionX| / outX rounded up, but at least MinimumSamplesPerOutput and 1, and at most
    MaximumSamplesPerOutput; a region larger than the input has no more samples than one as large. As in ONNX
    and PyTorch, a sample is out of bounds, and is OutOfBoundsInputValue, if it is more than one element
    before the first or after the last; nearer ones are those at the edge. A region with NaN is out of bounds.
    The nearest neighbor is at floor(InputX + 0.5). The greatest is that of the interpolated samples. A batch
    index out of range is moved to the last batch.

    With AlignRegionsToCorners the divisor is outX * nX - 1, so that samples reach from corner to corner; a
    single sample is in the middle, as in TensorFlow's crop_and_resize.

    Averages of few channels are made along one dimension after the other where that is less work. Whatever a
    region is, an output looks at no more samples than one of the whole input has.
    """
    batch = minimum(reshaped(batch_indices, (regions.sizes[-2], 1, 1)), x.sizes[0] - 1)
    rows, columns = aligned_samples(
        regions,
        x.sizes,
        output.sizes,
        mode=interpolation_mode,
        scales=(spatial_scale_y, spatial_scale_x),
        offsets=(input_pixel_offset, output_pixel_offset),
        samples=(minimum_samples_per_output, maximum_samples_per_output),
        to_corners=align_regions_to_corners,
    )
    is_average = reduction_function is ReduceFunction.AVERAGE

    def finished(found: Node, total: Node, inside: Node) -> Node:
        missing = convert(total - inside, found.type)
        if is_average:
            found = found + select(missing > 0.0, missing * out_of_bounds_input_value, 0.0)
            return found / convert(total, found.type)
        return select(missing > 0.0, maximum(found, out_of_bounds_input_value), found)

    if is_average:
        return _sampled(x, batch, rows, columns, _Reduction(reduce_sum, 0.0, finished))
    return _sampled(x, batch, rows, columns, _Reduction(reduce_maximum, -math.inf, finished))


def aligned_samples(
    regions: Node,
    image: Sequence[int],
    outputs: Sequence[int],
    *,
    mode: InterpolationMode,
    scales: tuple[float, float],
    offsets: tuple[float, float],
    samples: tuple[int, int],
    to_corners: bool,
) -> tuple[Samples, Samples]:
    """Return the samples of ROI_ALIGN1 along rows and columns.

    Args:
        regions: their corners.
        image, outputs: the sizes of the input and of the output.
        mode: of the interpolation.
        scales: along y and x.
        offsets: of input and output pixels.
        samples: of an output along an axis, at least and at most.
        to_corners: whether samples reach from corner to corner.
    """
    corners = reshaped(regions, (regions.sizes[-2], 4))
    axes = []
    for axis, first, scale in zip((2, 3), (1, 0), scales, strict=True):
        low, high = (rounded(_column(corners, at) * scale) for at in (first, first + 2))
        size, bins = image[axis], outputs[axis]
        most = max(samples[0], min(samples[1], -(-size // bins)), 1)
        count = in_memory(_number_of_samples(rounded(high - low), bins, samples[0], most))
        place = rounded(_places(low, high, bins, count, most, offsets[1], to_corners) - offsets[0])
        used = _taps(most, ScalarType.FLOAT32) < count
        axes.append(_interpolated(place, size, used, count, mode))
    return axes[0], axes[1]


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of each region's outputs along an axis, in tensors (regions, outputs, taps).

    Attributes:
        ends: the indices between which a sample is, and its weight there; None: 1.
        used: whether an output has the sample.
        count: how many samples an output has, those out of bounds among them.
        is_inside: whether it is not out of bounds; None: all are not.
        place: where a sample is; None: it is an element.
    """

    ends: Sequence[tuple[Node, Node | None]]
    used: Node
    count: Node
    is_inside: Node | None = None
    place: Node | None = None

    @property
    def counted(self) -> Node:
        """Return whether an output has the sample, and it is not out of bounds."""
        return self.used if self.is_inside is None else apply(Operation.AND, self.is_inside, self.used)

    @property
    def known(self) -> Samples:
        """Return the samples with their indices and weights in memory, computed once for all channels."""
        ends = [(in_memory(at), weight and in_memory(weight)) for at, weight in self.ends]
        return replace(self, ends=ends, is_inside=self.is_inside and in_memory(self.is_inside))

    @property
    def inside(self) -> Node:
        """Return the number of an output's samples that are not out of bounds."""
        counted = reduce_sum(convert(self.counted, ScalarType.INT32), [2])
        return convert(counted, ScalarType.FLOAT32)


def _bins(low: Node, high: Node, size: int, bins: int) -> Samples:
    """Return the elements of a region that is divided into `bins` parts, which may overlap."""
    type = counting((bins + 1) * size + bins)
    low, high = (convert(clamped(_whole(corner, size), size), type) for corner in (low, high))
    extent = maximum(high - low, 0) + 1
    number = _outputs(bins, type)
    start = number * extent / bins
    end = ((number + 1) * extent + (bins - 1)) / bins
    tap, count = _taps(-(-size // bins) + 1, type), in_memory(end - start)
    # No part is longer: so many taps are enough for all of a region.
    longest = (extent + (bins - 1)) / bins + 1
    used = apply(Operation.AND, tap < longest, tap < count)
    return Samples([(low + start + tap, None)], used, convert(count, ScalarType.FLOAT32))


def _number_of_samples(extent: Node, bins: int, least: int, most: int) -> Node:
    """Return the number of samples of each output. It is rounded as everywhere, so that devices agree."""
    needed = maximum(ceiling(rounded(abs(extent) / as_number(bins))), float(least))
    # Also where a corner is NaN: its one sample is out of bounds.
    return select(needed > 1.0, minimum(needed, float(most)), 1.0)


def _places(
    low: Node, high: Node, bins: int, count: Node, most: int, offset: float, to_corners: bool
) -> Node:
    """Return the places of samples. Each step is rounded, so that devices agree on what is out of bounds."""
    sample = _outputs(bins, ScalarType.FLOAT32) * count + _taps(most, ScalarType.FLOAT32)
    sample = rounded(sample - offset)
    extent, total = rounded(high - low), count * as_number(bins)
    if to_corners:
        between = sample * rounded(extent / maximum(total - 1.0, 1.0))
        moved = select(equal(total, 1.0), extent * 0.5, between)
    else:
        moved = sample * rounded(extent / total)
    return rounded(rounded(moved) + low)


def _interpolated(place: Node, size: int, used: Node, count: Node, mode: InterpolationMode) -> Samples:
    """Return samples at places, of which only the used ones count."""
    is_inside = apply(Operation.AND, place >= -1.0, place <= as_number(size))
    inner = minimum(maximum(place, 0.0), as_number(size - 1))
    if mode is InterpolationMode.NEAREST_NEIGHBOR:
        return Samples([(_whole(inner, size), None)], used, count, is_inside, place)
    before = floor(inner)
    weight, first = inner - before, convert(before, counting(size))
    ends = [(first, 1.0 - weight), (minimum(first + 1, size - 1), weight)]
    return Samples(ends, used, count, is_inside, place)


class _Reduction(NamedTuple):
    """The reduction of an output's samples to one number.

    Attributes:
        function: the reduction.
        nothing: its neutral element.
        finished: makes the output of the number, of how many samples there are, and of how many are not out
            of bounds.
    """

    function: Callable[[Node, Sequence[int]], Node]
    nothing: Number
    finished: Callable[[Node, Node, Node], Node] = lambda found, total, inside: found

    def of(self, terms: Sequence[Node], counted: Node, axes: Sequence[int]) -> Node:
        """Return the sums of terms, where they are counted, over the axes."""
        return self.function(select(counted, reduce(add, terms), self.nothing), axes)

    def of_outputs(self, found: Node, rows: Samples, columns: Samples, axes: tuple[int, int]) -> Node:
        """Return the outputs of numbers that lie along two axes of four."""
        total, inside = (
            _put(first, 4, {axes[0]: 1}) * _put(second, 4, {axes[1]: 1})
            for first, second in ((rows.count, columns.count), (rows.inside, columns.inside))
        )
        return self.finished(found, total, inside)


_GATHERED = 8
"""Cost of an element that is read by itself, in elements that are read with their neighbours."""
_CHANNELS = 16
"""Channels from which it pays to store them side by side: a vector of FLOAT32 has no more."""


def _sampled(x: Node, batch: Node, rows: Samples, columns: Samples, reduction: _Reduction) -> Node:
    """Return the reduced samples of each region's outputs: (regions, channels, rows, columns).

    Many channels are put beside each other before, unless outputs are fewer than what is moved then; they are
    sampled alike, without that an element is read by itself. Of few those along the rows come first, if that
    is less work: then the elements of a row lie beside each other. Extremes of what is between elements are
    not found so.
    """
    (regions, height, row_taps), (_, width, column_taps) = rows.counted.sizes, columns.counted.sizes
    batches, channels, *image = x.sizes
    read = regions * height * width * len(rows.ends) * len(columns.ends)
    if channels >= _CHANNELS and read * _GATHERED >= batches * math.prod(image):
        return _channels_beside(x, batch, rows.known, columns.known, reduction)
    at_once = height * width * row_taps * column_taps * _GATHERED
    in_turn = height * row_taps * x.sizes[3] + height * width * column_taps * _GATHERED
    is_separable = reduction.function is reduce_sum or len(rows.ends) == 1
    if is_separable and in_turn < at_once:
        found = _along_columns(_along_rows(x, batch, rows, reduction), columns, reduction)
    else:
        found = _at_once(x, batch, rows, columns, reduction, (2, 3))
    return reduction.of_outputs(found, rows, columns, (2, 3))


def _channels_beside(x: Node, batch: Node, rows: Samples, columns: Samples, reduction: _Reduction) -> Node:
    """Return the reduced samples, with channels stored side by side while they are sampled."""
    beside = in_memory(permuted(x, (0, 2, 3, 1)))
    found = _at_once(beside, batch, rows, columns, reduction, (1, 2))
    found = reduction.of_outputs(found, rows, columns, (1, 2))
    return permuted(convert(found, x.type), (0, 3, 1, 2))


def _at_once(
    x: Node, batch: Node, rows: Samples, columns: Samples, reduction: _Reduction, axes: tuple[int, int]
) -> Node:
    """Return the reduced samples of each region's outputs.

    Rows and columns of x and of the results lie along the `axes`, channels along the axis that is left.
    """
    down, along = axes
    channel = ({1, 2, 3} - {*axes}).pop()
    own = {down: 1, 4: 2}, {along: 1, 5: 2}
    (regions, height, row_taps), (_, width, column_taps) = rows.counted.sizes, columns.counted.sizes
    counts = {0: regions, channel: x.sizes[channel], down: height, along: width}
    sizes = (*(counts[axis] for axis in range(4)), row_taps, column_taps)
    terms = []
    for (row, upper), (column, left) in product(rows.ends, columns.ends):
        places = {0: _put(batch, 6, {}), down: _put(row, 6, own[0]), along: _put(column, 6, own[1])}
        sampled = gathered(x, sizes, places, steps=_steps(6, {channel: channel}))
        if upper is not None and left is not None:
            sampled = sampled * (_put(upper, 6, own[0]) * _put(left, 6, own[1]))
        terms.append(sampled)
    counted = apply(Operation.AND, _put(rows.counted, 6, own[0]), _put(columns.counted, 6, own[1]))
    return reshaped(reduction.of(terms, counted, (4, 5)), sizes[:4])


def _along_rows(x: Node, batch: Node, rows: Samples, reduction: _Reduction) -> Node:
    """Return the samples reduced along y: (regions, channels, rows, width of x)."""
    count, height, taps = rows.counted.sizes
    sizes, own = (count, x.sizes[1], height, taps, x.sizes[3]), {2: 1, 3: 2}
    terms = []
    for row, weight in rows.ends:
        places = {0: _put(batch, 5, {}), 2: _put(row, 5, own)}
        sampled = gathered(x, sizes, places, steps=_steps(5, {1: 1, 3: 4}))
        terms.append(sampled if weight is None else sampled * _put(weight, 5, own))
    lines = reduction.of(terms, _put(rows.counted, 5, own), [3])
    return reshaped(convert(lines, x.type), (*sizes[:3], sizes[4]))


def _along_columns(lines: Node, columns: Samples, reduction: _Reduction) -> Node:
    """Return the samples that are reduced along y, reduced along x too."""
    _, width, taps = columns.counted.sizes
    sizes, own = (*lines.sizes[:3], width, taps), {3: 1, 4: 2}
    terms = []
    for column, weight in columns.ends:
        sampled = gathered(lines, sizes, {3: _put(column, 5, own)}, steps=_steps(5, {0: 0, 1: 1, 2: 2}))
        terms.append(sampled if weight is None else sampled * _put(weight, 5, own))
    return reshaped(reduction.of(terms, _put(columns.counted, 5, own), [4]), sizes[:4])


def _put(value: Node, rank: int, dimensions: dict[int, int]) -> Node:
    """Return a tensor (regions, outputs, taps) with `rank` dimensions, of which regions are the first."""
    sizes = [1] * rank
    sizes[0] = value.sizes[0]
    for dimension, own in dimensions.items():
        sizes[dimension] = value.sizes[own]
    return reshaped(value, sizes)


def _steps(rank: int, moving: dict[int, int]) -> list[list[int]]:
    """Return the steps of a view of 4 dimensions, of which d moves along moving[d]."""
    return [[int(moving.get(row) == column) for column in range(rank)] for row in range(4)]


def _column(corners: Node, number: int) -> Node:
    """Return a column, one number for each region."""
    return reshaped(sliced(corners, (0, number), (corners.sizes[0], 1)), (corners.sizes[0], 1, 1))


def _outputs(count: int, type: ScalarType) -> Node:
    """Return the numbers of the outputs along an axis."""
    return convert(counted((1, count, 1), 0, (0, 1, 0)), type)


def _taps(count: int, type: ScalarType) -> Node:
    """Return the numbers of the samples of an output along an axis."""
    return convert(counted((1, 1, count), 0, (0, 0, 1)), type)


def _whole(place: Node, size: int) -> Node:
    """Return the nearest index into `size` elements, halves rounded up."""
    return convert(floor(rounded(place + 0.5)), counting(size))
