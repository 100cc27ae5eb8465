"""Tensors in other sizes: each element from the nearest, or between the two nearest, along each dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from opendml.operators.registry import defines
from opendml.program.functions import ceiling, floor, maximum, minimum, rounded
from opendml.program.node import Node, convert, index
from opendml.program.scalar_type import ScalarType, number_in
from opendml.program.view import gathered, repeated, reshaped, view
from opendml.spec.enums import AxisDirection, InterpolationMode
from opendml.spec.operator_desc import Size2D
from opendml.spec.tensor_desc import TensorDesc

CENTER = 0.5
"""Of a pixel, from its edge."""


class Placing(NamedTuple):
    """How the elements of an output lie along a dimension of the input."""

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
def resample(
    x: Node, *, interpolation_mode: InterpolationMode, scales: Sequence[float], output: TensorDesc
) -> Node:
    """RESAMPLE1 of pixel centers: InputPixelOffsets 0.5, OutputPixelOffsets -0.5"""
    return resample1(
        x,
        interpolation_mode=interpolation_mode,
        scales=scales,
        input_pixel_offsets=(CENTER,) * len(scales),
        output_pixel_offsets=(-CENTER,) * len(scales),
        output=output,
    )


@defines("RESAMPLE1", output=True)
def resample1(
    x: Node,
    *,
    interpolation_mode: InterpolationMode,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float],
    output_pixel_offsets: Sequence[float],
    output: TensorDesc,
) -> Node:
    """RESAMPLE2, where the nearest neighbor is at floor(InputX + 0.5)

    Of two that are equally near it is the one behind: so ONNX Runtime takes it from DirectML. The remark on
    DirectML's page of RESAMPLE2, which shifts OutputPixelOffsets instead, holds for scales of 1 only.
    """
    return resample2(
        x,
        interpolation_mode=interpolation_mode,
        rounding_direction=AxisDirection.DECREASING,
        scales=scales,
        input_pixel_offsets=rounding_down(interpolation_mode, input_pixel_offsets),
        output_pixel_offsets=output_pixel_offsets,
        output=output,
    )


def rounding_down(mode: InterpolationMode, input_pixel_offsets: Sequence[float]) -> list[float]:
    """The offsets with which RESAMPLE2, rounding down, has the nearest neighbors of RESAMPLE1."""
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
    placings = list(map(Placing, scales, input_pixel_offsets, output_pixel_offsets))
    return resampled(x, direction, placings, output.sizes, exact=not x.type.is_float)


def resampled(
    x: Node,
    direction: AxisDirection | None,
    placings: Sequence[Placing],
    sizes: tuple[int, ...],
    exact: bool,
) -> Node:
    """x in other sizes: the elements next to coordinates in a direction, without one means of those around
    them; `exact` where means of equal numbers must be."""
    rank = len(x.sizes)
    offsets, steps = [0] * rank, [[0] * rank for _ in range(rank)]
    coordinates, copies = {}, [1] * rank
    for axis, placing in enumerate(placings):
        size, count = x.sizes[axis], sizes[axis]
        if (found := regular(size, count, direction, placing)) is not None:
            offsets[axis], steps[axis][axis], copies[axis] = found
        else:
            coordinates[axis] = coordinate(number_along(sizes, axis), count, placing)
    x = _each_repeated(x, copies)
    if not coordinates:
        return view(x, sizes, offsets, steps)

    def at(indices: dict[int, Node]) -> Node:
        within = {axis: clamped(each, x.sizes[axis]) for axis, each in indices.items()}
        return gathered(x, sizes, within, offsets, steps)

    if direction is not None:
        return at({axis: rounded_in(each, direction) for axis, each in coordinates.items()})
    before = {axis: rounded_in(each, AxisDirection.DECREASING) for axis, each in coordinates.items()}
    weights = {axis: convert(each - floor(each), ScalarType.FLOAT32) for axis, each in coordinates.items()}

    def mean(axes: Sequence[int], indices: dict[int, Node]) -> Node:
        if not axes:
            return convert(at(indices), ScalarType.FLOAT32)
        axis, *others = axes
        first, second = (mean(others, indices | {axis: before[axis] + step}) for step in (0, 1))
        return _between(first, second, weights[axis], exact=exact)

    return mean(list(coordinates), {})


def _between(first: Node, second: Node, weight: Node, *, exact: bool) -> Node:
    """The weighted mean. Where it is to be truncated, that of equal numbers must be `exact`, for which
    infinities have no mean."""
    return first + weight * (second - first) if exact else first * (1.0 - weight) + second * weight


def regular(
    size: int, count: int, direction: AxisDirection | None, placing: Placing
) -> tuple[int, int, int] | None:
    """The first index, the step, and how often each element comes, where the indices along a dimension are
    that regular and none is beyond an end. Without a direction all coordinates must be whole."""
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
    """The index along an axis of a tensor of `sizes`."""
    along = [size if each == axis else 1 for each, size in enumerate(sizes)]
    return index(ScalarType.INT32, along, 0, [int(each == axis) for each in range(len(sizes))])


def coordinate(number: Node, count: int, placing: Placing) -> Node:
    """InputX of the output `number` of so many along a dimension."""
    type = ScalarType.FLOAT32 if count <= 2**24 else ScalarType.FLOAT64
    place = rounded(convert(number, type) - placing.output_offset)
    return rounded(rounded(place / placing.scale) - placing.input_offset)


def clamped(indices: Node, size: int) -> Node:
    """Indices into so many elements; those beyond an end are that end."""
    return maximum(minimum(indices, size - 1), 0)


def rounded_in(place: Node, direction: AxisDirection) -> Node:
    """The whole number next to a coordinate in a direction."""
    up = direction is AxisDirection.INCREASING
    return convert(ceiling(place) if up else floor(place), ScalarType.INT32)


def _each_repeated(x: Node, copies: Sequence[int]) -> Node:
    """x with each element so many times along each dimension, one after the other."""
    pairs = list(zip(x.sizes, copies, strict=True))
    single = reshaped(x, [each for size, _ in pairs for each in (size, 1)])
    whole = repeated(single, [each for pair in pairs for each in pair])
    return reshaped(whole, [size * count for size, count in pairs])
