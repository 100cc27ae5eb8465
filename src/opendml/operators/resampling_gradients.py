"""Gradients of resampling: each element gets what came to the outputs that were made of it, times its weight
in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opendml.operators.registry import defines
from opendml.operators.resampling import Placing, clamped, coordinate, regular, rounded_in, rounding_down
from opendml.program.functions import equal, floor, reduce_sum, select
from opendml.program.node import Node, Operation, apply, convert, index
from opendml.program.scalar_type import ScalarType, counting
from opendml.program.view import gathered, padded, reshaped, sliced
from opendml.spec.enums import AxisDirection, InterpolationMode
from opendml.spec.tensor_desc import TensorDesc


@defines("RESAMPLE_GRAD", output=True)
def resample_grad(
    gradient: Node,
    *,
    interpolation_mode: InterpolationMode,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float],
    output_pixel_offsets: Sequence[float],
    output: TensorDesc,
) -> Node:
    """RESAMPLE_GRAD1, of RESAMPLE1: the nearest neighbor is at floor(InputX + 0.5)"""
    return resample_grad1(
        gradient,
        interpolation_mode=interpolation_mode,
        rounding_direction=AxisDirection.DECREASING,
        scales=scales,
        input_pixel_offsets=rounding_down(interpolation_mode, input_pixel_offsets),
        output_pixel_offsets=output_pixel_offsets,
        output=output,
    )


@defines("RESAMPLE_GRAD1", output=True)
def resample_grad1(
    gradient: Node,
    *,
    interpolation_mode: InterpolationMode,
    rounding_direction: AxisDirection,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float],
    output_pixel_offsets: Sequence[float],
    output: TensorDesc,
) -> Node:
    """sum, over the outputs of RESAMPLE2 that are made of the element, of gradient * weight of the element
    in the output

    Indices, clamped at the ends, and weights are those of RESAMPLE2. It is done along one dimension after the
    other: sums are made in float64, and rounded after each dimension.
    """
    direction = None if interpolation_mode is InterpolationMode.LINEAR else rounding_direction
    placings = map(Placing, scales, input_pixel_offsets, output_pixel_offsets)
    dimensions = enumerate(zip(gradient.sizes, output.sizes, placings, strict=True))
    # What makes the tensor smallest comes first.
    for axis, (_, size, placing) in sorted(dimensions, key=lambda each: each[1][1] / each[1][0]):
        gradient = _along(gradient, axis, size, direction, placing)
    return gradient


def _along(gradient: Node, axis: int, size: int, direction: AxisDirection | None, placing: Placing) -> Node:
    """The gradient of so many elements along an axis."""
    count = gradient.sizes[axis]
    found = regular(size, count, direction, placing)
    if found is not None and found[1] == 1:
        start, _, copies = found
        return _of_copies(gradient, axis, start, size, copies)
    taps = _Taps.of(size, count, direction, placing)
    parts = []
    if taps.first < taps.end:
        seen = _part(gradient, axis, taps.first, taps.end)
        parts.append(_interpolated(seen, axis, size, direction, placing, taps))
    if taps.first > 0:
        before = reduce_sum(_part(gradient, axis, 0, taps.first), [axis])
        parts.append(_placed(before, axis, 0, size))
    if taps.end < count:
        after = reduce_sum(_part(gradient, axis, taps.end, count), [axis])
        parts.append(_placed(after, axis, size - 1, size))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return convert(total, gradient.type)


def _of_copies(gradient: Node, axis: int, start: int, size: int, copies: int) -> Node:
    """The sums of so many neighbours each, from the element `start` on."""
    whole = _placed(gradient, axis, start * copies, size * copies)
    if copies == 1:
        return whole
    sizes = list(whole.sizes)
    parted = reshaped(whole, (*sizes[:axis], size, copies, *sizes[axis + 1 :]))
    sums = convert(reduce_sum(parted, [axis + 1]), gradient.type)
    return reshaped(sums, (*sizes[:axis], size, *sizes[axis + 1 :]))


@dataclass(frozen=True, slots=True)
class _Taps:
    """Which outputs are made of an element i along a dimension: some of the `count` ones from
    (`offset` + i * `step`) >> `shift` on, counted from `first`. Those before `first` are made of the first
    element alone, those from `end` on of the last."""

    first: int
    end: int
    offset: int
    step: int
    shift: int
    count: int

    @staticmethod
    def of(size: int, count: int, direction: AxisDirection | None, placing: Placing) -> _Taps:
        """Those of `size` elements and `count` outputs: exactly as many as some element needs."""
        type = ScalarType.FLOAT32 if count <= 2**24 else ScalarType.FLOAT64
        numbers = [np.asarray(each, type.numpy) for each in placing]
        with np.errstate(over="ignore"):
            places = (np.arange(count, dtype=type.numpy) - numbers[2]) / numbers[0] - numbers[1]
        least = np.ceil(places) if direction is AxisDirection.INCREASING else np.floor(places)
        most = least + 1 if direction is None else least
        first, end = int(np.sum(most < 0)), int(np.sum(least < size))
        elements = np.arange(size)
        begins = np.searchsorted(np.clip(most[first:end], 0, size - 1), elements, "left")
        ends = np.searchsorted(np.clip(least[first:end], 0, size - 1), elements, "right")
        met = begins < ends
        shift = max(0, min(24, 62 - size.bit_length() - count.bit_length()))
        step = round(min(placing.scale, count) * 2**shift)
        if not met.any():
            return _Taps(first, end, 0, step, shift, 0)
        moving = elements * step
        offset = int(np.min(((begins << shift) - moving)[met]))
        most_taps = int(np.max((ends - ((moving + offset) >> shift))[met]))
        return _Taps(first, end, offset, step, shift, most_taps)


def _interpolated(
    gradient: Node, axis: int, size: int, direction: AxisDirection | None, placing: Placing, taps: _Taps
) -> Node:
    """The sums of the outputs from taps.first to taps.end alone."""
    rank = len(gradient.sizes)
    sizes = (*(size if each == axis else own for each, own in enumerate(gradient.sizes)), taps.count)
    along = [size if each == axis else 1 for each in range(rank)]

    def numbers(type: ScalarType, offset: int, step: int, tap: int) -> Node:
        """offset + i * step + tap * t"""
        moving = [step if each == axis else 0 for each in range(rank)]
        return index(type, (*along, taps.count if tap else 1), offset, (*moving, tap))

    start = numbers(ScalarType.INT64, taps.offset, taps.step, 0)
    start = convert(apply(Operation.SHIFT_RIGHT, start, taps.shift), counting(taps.end + taps.count))
    output = start + numbers(start.type, 0, 0, 1)
    steps = [[int(row == column and row != axis) for column in range(rank + 1)] for row in range(rank)]
    seen = gathered(gradient, sizes, {axis: output}, steps=steps)
    place = coordinate(output + taps.first, gradient.sizes[axis] + taps.first, placing)
    element = numbers(counting(size), 0, 1, 0)
    if direction is not None:
        own = equal(clamped(rounded_in(place, direction, size), size), element)
        return reshaped(reduce_sum(select(own, seen, 0.0), [rank]), sizes[:-1])
    before = rounded_in(place, AxisDirection.DECREASING, size)
    weight = convert(place - floor(place), ScalarType.FLOAT32)
    shares = [
        select(equal(clamped(before + step, size), element), seen * part, 0.0)
        for step, part in enumerate((1.0 - weight, weight))
    ]
    return reshaped(reduce_sum(shares[0] + shares[1], [rank]), sizes[:-1])


def _part(x: Node, axis: int, first: int, end: int) -> Node:
    sizes = [end - first if each == axis else size for each, size in enumerate(x.sizes)]
    return sliced(x, [first if each == axis else 0 for each in range(len(sizes))], sizes)


def _placed(x: Node, axis: int, start: int, size: int) -> Node:
    """x from the place `start` on among so many zeros along an axis."""
    before = [start if each == axis else 0 for each in range(len(x.sizes))]
    after = [size - start - own if each == axis else 0 for each, own in enumerate(x.sizes)]
    return padded(x, before, after)
