"""Gradients of resampling: each element gets what came to the outputs that were made of it, times its weight
in them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from opendml.errors import Unsupported
from opendml.late_dataclass import dataclass
from opendml.operators.registry import defines
from opendml.operators.resampling import (
    MOST_LISTED,
    Sampling,
    clamped,
    coordinate,
    number_along,
    places_of,
    regular,
    rounded_in,
    rounding_down,
)
from opendml.program.functions import equal, floor, reduce_sum, select, wide
from opendml.program.node import Node, Operation, apply, constant, convert, index
from opendml.program.scalar_type import ScalarType, counting
from opendml.program.view import gathered, padded, reshaped, sliced, view
from opendml.spec.enums import AxisDirection, InterpolationMode
from opendml.spec.tensor_desc import TensorDesc


@defines("RESAMPLE_GRAD", output=True)
def resample_grad(
    gradient: Node,
    *,
    interpolation_mode: InterpolationMode,
    input_pixel_offsets: Sequence[float],
    **same: Any,
) -> Node:
    """RESAMPLE_GRAD1, of RESAMPLE1: the nearest neighbor is at floor(InputX + 0.5)"""
    return resample_grad1(
        gradient,
        interpolation_mode=interpolation_mode,
        rounding_direction=AxisDirection.DECREASING,
        input_pixel_offsets=rounding_down(interpolation_mode, input_pixel_offsets),
        **same,
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
    other, but for small blocks of copies: sums are made in float64, and rounded after each step.
    """
    direction = None if interpolation_mode is InterpolationMode.LINEAR else rounding_direction
    placings = list(map(Sampling, scales, input_pixel_offsets, output_pixel_offsets))
    sizes, counts = output.sizes, gradient.sizes
    blocks = {
        axis: _Copies(found[0], size, found[2])
        for axis, (size, count, placing) in enumerate(zip(sizes, counts, placings, strict=True))
        if (found := regular(size, count, direction, placing)) is not None and found[1] == 1
    }
    together = math.prod(each.copies for each in blocks.values()) <= _MOST_COPIES
    if together:
        gradient = _of_copies(gradient, blocks)
    # What makes the tensor smallest comes first.
    for axis in sorted(range(len(sizes)), key=lambda axis: sizes[axis] / counts[axis]):
        if axis not in blocks:
            _require_listable("OutputGradientTensor", axis, sizes[axis])
            _require_listable("InputGradientTensor", axis, counts[axis])
            gradient = _along(gradient, axis, sizes[axis], direction, placings[axis])
        elif not together:
            gradient = _of_copies(gradient, {axis: blocks[axis]})
    return gradient


MOST_PLACES = 2**26
"""Along a dimension, that are listed to find which outputs an element meets: in about 3 GB."""


def _require_listable(field: str, axis: int, size: int) -> None:
    if size > MOST_PLACES:
        raise Unsupported(
            f"{field}.Sizes[{axis}]: {size:,} elements; at most {MOST_PLACES:,} with such a scale and offsets"
        )


_MOST_COPIES = 16
"""Terms of an element in a block that are summed at once, at most: of more, one dimension after the other."""


class _Copies(NamedTuple):
    """A dimension where each of `size` elements, from `start` on, has the same number of adjacent copies."""

    start: int
    size: int
    copies: int


def _along(gradient: Node, axis: int, size: int, direction: AxisDirection | None, placing: Sampling) -> Node:
    """Return the gradient of `size` elements along an axis."""
    # The tables of outputs that elements meet are made for certain sizes.
    size, count = int(size), int(gradient.sizes[axis])
    if direction is None and (even := _EvenTaps.of(size, count, placing)) is not None:
        return even.summed(gradient, axis)
    taps = _Taps.of(size, count, direction, placing)
    parts = []
    if taps.first < taps.end:
        viewed = _part(gradient, axis, taps.first, taps.end)
        parts.append(_interpolated(viewed, axis, size, direction, placing, taps))
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


def _of_copies(gradient: Node, blocks: Mapping[int, _Copies]) -> Node:
    """Return the sums of the copies of each element, along some axes."""
    for axis, (start, size, copies) in blocks.items():
        gradient = _placed(gradient, axis, start * copies, size * copies)
    if all(each.copies == 1 for each in blocks.values()):
        return gradient
    none = _Copies(0, 0, 1)
    counts = [blocks.get(axis, none).copies for axis in range(len(gradient.sizes))]
    sizes = [size // count for size, count in zip(gradient.sizes, counts, strict=True)]
    parted = reshaped(gradient, [each for pair in zip(sizes, counts, strict=True) for each in pair])
    sums = reduce_sum(parted, range(1, 2 * len(sizes), 2))
    return reshaped(convert(sums, gradient.type), sizes)


@dataclass(frozen=True, slots=True)
class _Taps:
    """The outputs that are made of each element i along a dimension.

    They are among the `count` ones from (`offset` + i * `step`) >> `shift` on, counted from `first`. Outputs
    before `first` are made of the first element alone, those from `end` on of the last.
    """

    first: int
    end: int
    offset: int
    step: int
    shift: int
    count: int

    @staticmethod
    def of(size: int, count: int, direction: AxisDirection | None, placing: Sampling) -> _Taps:
        """Return those of `size` elements and `count` outputs: exactly as many as some element needs."""
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


@dataclass(frozen=True, slots=True)
class _EvenTaps:
    """The outputs from i * `step` - `before` on, which are made of element i along a dimension.

    All elements have the same `weights`, but the first and the last one have their own.
    """

    size: int
    step: int
    before: int
    first: tuple[float, ...]
    weights: tuple[float, ...]
    last: tuple[float, ...]

    @staticmethod
    def of(size: int, count: int, placing: Sampling) -> _EvenTaps | None:
        """Return those of `size` elements and `count` outputs, if they are that even, and few."""
        step, rest = divmod(count, size)
        if rest or not 1 < step <= _MOST_STEP or size < 3 or count > MOST_LISTED:
            return None
        outputs, places = np.arange(count), places_of(count, placing)
        if not np.isfinite(places).all():
            return None
        least = np.floor(places)
        elements = np.clip([least, least + 1], 0, size - 1).astype(np.int64)
        parts = np.stack([1 - (places - least), places - least])
        of_second = outputs[(elements == 1).any(0)]
        if not len(of_second):
            return None
        first, taps = int(of_second[0]) - step, int(of_second[-1] - of_second[0]) + 1
        tap = outputs - step * elements - first
        if tap.min() < 0 or tap.max() >= taps:
            return None
        shares, met = np.zeros((size, taps), np.float32), np.zeros((size, taps), bool)
        np.add.at(shares, (elements, tap), parts)
        met[elements, tap] = True
        meets = step * np.arange(size)[:, None] + first + np.arange(taps)
        # What is outside of the gradient is 0, whatever its weight.
        inside = (meets >= 0) & (meets < count)
        shares = np.where(inside, shares, shares[1])
        if not np.array_equal(met, inside) or np.any(shares[1:-1] != shares[1]):
            return None
        return _EvenTaps(size, step, -first, *(tuple(map(float, shares[each])) for each in (0, 1, -1)))

    def summed(self, gradient: Node, axis: int) -> Node:
        """Return the sums of the outputs that elements along an axis are made of."""
        rank = range(len(gradient.sizes))
        sizes = [self.size if each == axis else own for each, own in enumerate(gradient.sizes)]
        steps = [[int(row == column) * (self.step if row == axis else 1) for column in rank] for row in rank]
        number = number_along(sizes, axis)
        total: Node | None = None
        for tap, (first, weight, last) in enumerate(zip(self.first, self.weights, self.last, strict=True)):
            offsets = [tap - self.before if each == axis else 0 for each in rank]
            own: Node | float = weight
            if last != weight:
                own = select(equal(number, self.size - 1), constant(last, gradient.type), weight)
            if first != weight:
                own = select(equal(number, 0), constant(first, gradient.type), own)
            share = wide(view(gradient, sizes, offsets, steps, fill=0) * own)
            total = share if total is None else total + share
        assert total is not None
        return convert(total, gradient.type)


_MOST_STEP = 8
"""Outputs for each element, of which those of an element are put together one by one."""


def _interpolated(
    gradient: Node, axis: int, size: int, direction: AxisDirection | None, placing: Sampling, taps: _Taps
) -> Node:
    """Return the sums of the outputs from taps.first to taps.end alone."""
    rank = len(gradient.sizes)
    sizes = (*(size if each == axis else own for each, own in enumerate(gradient.sizes)), taps.count)
    along = [size if each == axis else 1 for each in range(rank)]

    def numbers(type: ScalarType, offset: int, step: int, tap: int) -> Node:
        """Return offset + i * step + tap * t."""
        moving = [step if each == axis else 0 for each in range(rank)]
        return index(type, (*along, taps.count if tap else 1), offset, (*moving, tap))

    start = numbers(ScalarType.INT64, taps.offset, taps.step, 0)
    start = convert(apply(Operation.SHIFT_RIGHT, start, taps.shift), counting(taps.end + taps.count))
    output = start + numbers(start.type, 0, 0, 1)
    steps = [[int(row == column and row != axis) for column in range(rank + 1)] for row in range(rank)]
    viewed = gathered(gradient, sizes, {axis: output}, steps=steps)
    place = coordinate(output + taps.first, gradient.sizes[axis] + taps.first, placing)
    element = numbers(counting(size), 0, 1, 0)
    if direction is not None:
        own = equal(clamped(rounded_in(place, direction, size), size), element)
        return reshaped(reduce_sum(select(own, viewed, 0.0), [rank]), sizes[:-1])
    before = rounded_in(place, AxisDirection.DECREASING, size)
    weight = convert(place - floor(place), ScalarType.FLOAT32)
    shares = [
        select(equal(clamped(before + step, size), element), viewed * part, 0.0)
        for step, part in enumerate((1.0 - weight, weight))
    ]
    return reshaped(reduce_sum(shares[0] + shares[1], [rank]), sizes[:-1])


def _part(x: Node, axis: int, first: int, end: int) -> Node:
    sizes = [end - first if each == axis else size for each, size in enumerate(x.sizes)]
    return sliced(x, [first if each == axis else 0 for each in range(len(sizes))], sizes)


def _placed(x: Node, axis: int, start: int, size: int) -> Node:
    """Return `size` elements along an axis: zeros, and x from the place `start` on."""
    before = [start if each == axis else 0 for each in range(len(x.sizes))]
    after = [size - start - own if each == axis else 0 for each, own in enumerate(x.sizes)]
    return padded(x, before, after)
