"""Regions of interest: parts of an image, whose corners are data, brought to one size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from opendml.operators.registry import defines
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
from opendml.program.node import Node, Operation, apply, convert, index
from opendml.program.scalar_type import ScalarType
from opendml.program.view import gathered, reshaped, sliced
from opendml.spec.enums import InterpolationMode, ReduceFunction
from opendml.spec.operator_desc import Size2D
from opendml.spec.tensor_desc import TensorDesc

_RANK = 6
"""Of what is reduced: regions, channels, rows, columns, and what an output has of each of the latter two."""
_ROWS, _COLUMNS = 2, 3


@defines("ROI_POOLING")
def roi_pooling(x: Node, regions: Node, *, spatial_scale: float, pooled_size: Size2D) -> Node:
    """the greatest element of Input[BatchID, c, StartY to below EndY, StartX to below EndX]

    The corners x1, y1, x2, y2 are rounded, halves up, and moved to the nearest element of the input; where x2
    is less than x1 it is taken to be x1, and so is y2. So every output has at least one element, and each
    region at most those of the input. NaN counts as the greatest. A batch index is truncated; one out of
    range is moved to the nearest end.

    An output looks at height / PooledSize.Height + 2 rows, and as many columns likewise, whatever its
    region: all outputs of a region together at hardly more than the whole input.
    """
    count = regions.sizes[2]
    rows = reshaped(regions, (count, 5))
    batch = _clamped(convert(_column(rows, 0), ScalarType.INT32), x.sizes[0])
    places, inside = {0: batch}, []
    for axis, first, bins in ((_ROWS, 2, pooled_size.height), (_COLUMNS, 1, pooled_size.width)):
        low, high = (
            _clamped(_whole(rounded(_column(rows, at) * spatial_scale)), x.sizes[axis])
            for at in (first, first + 2)
        )
        extent = maximum(high - low, 0) + 1
        number = _along(axis, bins)
        start = number * extent / bins
        end = ((number + 1) * extent + (bins - 1)) / bins
        place = start + _along(axis + 2, -(-x.sizes[axis] // bins) + 1)
        places[axis] = low + place
        inside.append(place < end)
    seen = _gathered(x, places)
    within = select(apply(Operation.AND, *inside), seen, -math.inf)
    return _reduced(reduce_maximum(within, (4, 5)))


@defines("ROI_ALIGN", output=True)
def roi_align(
    x: Node,
    regions: Node,
    batch_indices: Node,
    *,
    reduction_function: ReduceFunction,
    interpolation_mode: InterpolationMode,
    spatial_scale_x: float,
    spatial_scale_y: float,
    out_of_bounds_input_value: float,
    minimum_samples_per_output: int,
    maximum_samples_per_output: int,
    output: TensorDesc,
) -> Node:
    """ROI_ALIGN1 of pixel centers: InputPixelOffset 0.5, OutputPixelOffset -0.5, AlignRegionsToCorners FALSE"""
    return roi_align1(
        x,
        regions,
        batch_indices,
        reduction_function=reduction_function,
        interpolation_mode=interpolation_mode,
        spatial_scale_x=spatial_scale_x,
        spatial_scale_y=spatial_scale_y,
        input_pixel_offset=0.5,
        output_pixel_offset=-0.5,
        out_of_bounds_input_value=out_of_bounds_input_value,
        minimum_samples_per_output=minimum_samples_per_output,
        maximum_samples_per_output=maximum_samples_per_output,
        align_regions_to_corners=False,
        output=output,
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
    """the average or the greatest of nY * nX samples of x, at x1 - InputPixelOffset + (sx - OutputPixelOffset)
    * regionX / (outX * nX) for sx from ox * nX to below ox * nX + nX, and likewise along y

    nX is |regionX| / outX rounded up, but at least MinimumSamplesPerOutput and 1, and at most
    MaximumSamplesPerOutput; a region larger than the input has no more samples than one as large. As in ONNX
    and PyTorch, a sample is out of bounds, and is OutOfBoundsInputValue, if it is more than one element
    before the first or after the last; nearer ones are those at the edge. The nearest neighbor is at
    floor(InputX + 0.5). The greatest is that of the interpolated samples.

    A region with NaN is out of bounds. With AlignRegionsToCorners the divisor is outX * nX - 1, so that samples reach from corner to corner; a
    single sample is in the middle, as in TensorFlow's crop_and_resize. A batch index out of range is moved to
    the last batch.

    An output looks at as many samples as there may be, whatever its region.
    """
    count = regions.sizes[-2]
    rows = reshaped(regions, (count, 4))
    batch = minimum(reshaped(batch_indices, (count, *(1,) * (_RANK - 1))), x.sizes[0] - 1)
    axes = []
    for axis, first, scale in ((_ROWS, 1, spatial_scale_y), (_COLUMNS, 0, spatial_scale_x)):
        bins, size = output.sizes[axis], x.sizes[axis]
        most = max(minimum_samples_per_output, min(maximum_samples_per_output, -(-size // bins)), 1)
        # Each step is rounded: samples count, and are out of bounds, on all devices alike.
        low, high = (rounded(_column(rows, at) * scale) for at in (first, first + 2))
        extent = rounded(high - low)
        needed = maximum(ceiling(rounded(abs(extent) / float(bins))), float(minimum_samples_per_output))
        needed = minimum(needed, float(most))
        # Also where a corner is NaN: its one sample is out of bounds.
        number = select(needed > 1.0, needed, 1.0)
        tap = convert(_along(axis + 2, most), ScalarType.FLOAT32)
        sample = convert(_along(axis, bins), ScalarType.FLOAT32) * number + tap
        sample = rounded(sample - output_pixel_offset)
        total = number * float(bins)
        if align_regions_to_corners:
            between = sample * rounded(extent / maximum(total - 1.0, 1.0))
            moved = select(equal(total, 1.0), extent * 0.5, between)
        else:
            moved = sample * rounded(extent / total)
        place = rounded(rounded(rounded(moved) + low) - input_pixel_offset)
        axes.append(_Samples(axis, size, place, number, tap < number))
    seen = _interpolated(x, batch, axes, interpolation_mode, out_of_bounds_input_value)
    used = apply(Operation.AND, axes[0].used, axes[1].used)
    if reduction_function is ReduceFunction.MAX:
        return _reduced(reduce_maximum(select(used, seen, -math.inf), (4, 5)))
    total = convert(axes[0].count * axes[1].count, ScalarType.FLOAT64)
    return _reduced(reduce_sum(select(used, seen, 0.0), (4, 5)) / total)


@dataclass(frozen=True, slots=True)
class _Samples:
    """Samples along an axis of so many elements: where they are, how many of them an output has, and whether
    it has this one."""

    axis: int
    size: int
    place: Node
    count: Node
    used: Node

    @property
    def inside(self) -> Node:
        """Whether a sample is not out of bounds."""
        return apply(Operation.AND, self.place >= -1.0, self.place <= float(self.size))

    @property
    def clamped(self) -> Node:
        """The place, between the first element and the last."""
        return minimum(maximum(self.place, 0.0), float(self.size - 1))


def _interpolated(
    x: Node, batch: Node, axes: Sequence[_Samples], mode: InterpolationMode, outside: float
) -> Node:
    """The elements at samples, or between them."""

    def value(rest: Sequence[_Samples], places: dict[int, Node]) -> Node:
        if not rest:
            return _gathered(x, places)
        own, *others = rest
        if mode is InterpolationMode.NEAREST_NEIGHBOR:
            return value(others, places | {own.axis: _whole(own.clamped)})
        before = floor(own.clamped)
        weight = own.clamped - before
        first = convert(before, ScalarType.INT32)
        second = minimum(first + 1, own.size - 1)
        ends = [value(others, places | {own.axis: at}) for at in (first, second)]
        return ends[0] * (1.0 - weight) + ends[1] * weight

    inside = apply(Operation.AND, axes[0].inside, axes[1].inside)
    return select(inside, value(axes, {0: batch}), outside)


def _gathered(x: Node, places: dict[int, Node]) -> Node:
    """x of each channel at places along the other dimensions."""
    sizes = [1] * _RANK
    for place in places.values():
        sizes = [max(a, b) for a, b in zip(sizes, place.sizes, strict=True)]
    sizes[1] = x.sizes[1]
    steps = [[int(row == 1 == column) for column in range(_RANK)] for row in range(4)]
    return gathered(x, sizes, places, steps=steps)


def _reduced(value: Node) -> Node:
    return reshaped(value, value.sizes[:4])


def _column(rows: Node, number: int) -> Node:
    """A column, one number for each region."""
    count = rows.sizes[0]
    return reshaped(sliced(rows, (0, number), (count, 1)), (count, *(1,) * (_RANK - 1)))


def _along(axis: int, size: int) -> Node:
    """The index along an axis."""
    sizes = [size if each == axis else 1 for each in range(_RANK)]
    return index(ScalarType.INT32, sizes, 0, [int(each == axis) for each in range(_RANK)])


def _whole(place: Node) -> Node:
    """The nearest index, halves up."""
    return convert(floor(rounded(place + 0.5)), ScalarType.INT32)


def _clamped(indices: Node, size: int) -> Node:
    return maximum(minimum(indices, size - 1), 0)
