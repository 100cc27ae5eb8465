"""Resampling to fewer elements, each the mean of all that it stands for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opendml.operators.registry import defines
from opendml.operators.resampling import Sampling, coordinate, number_along, resampled
from opendml.program.functions import floor, maximum, minimum, reduce_sum, select
from opendml.program.node import Node, convert, index
from opendml.program.scalar_type import ScalarType, counting
from opendml.program.sizes import as_number
from opendml.program.view import gathered, reshaped
from opendml.spec.enums import AxisDirection, InterpolationMode
from opendml.spec.tensor_desc import TensorDesc

_FILTERED_BELOW = 0.5
"""The scale: from there on two neighbours miss no element."""


@defines("RESAMPLE3", output=True)
def resample3(
    x: Node,
    *,
    interpolation_mode: InterpolationMode,
    rounding_direction: AxisDirection,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float],
    output_pixel_offsets: Sequence[float],
    antialiased: bool,
    output: TensorDesc,
) -> Node:
    """RESAMPLE2; antialiased and LINEAR, along dimensions with 1 / Scale > 2, the mean of the elements i
    weighted by max(0, 1 - |i - InputX| * Scale)

    As in PyTorch and Pillow the weights are divided by their sum, and elements that the input does not have
    do not count; InputX is moved to the nearest element of the input before. PyTorch and Pillow filter from
    1 / Scale > 1 on, DirectML's page from 2 on. Dimensions are filtered one after the other; means of
    integers are truncated at the end.
    """
    is_linear = interpolation_mode is InterpolationMode.LINEAR
    direction = None if is_linear else rounding_direction
    placings = list(map(Sampling, scales, input_pixel_offsets, output_pixel_offsets))
    exact = not x.type.is_float
    for axis, placing in sorted(enumerate(placings), key=lambda each: each[1].scale):
        if antialiased and is_linear and placing.scale < _FILTERED_BELOW:
            x = _filtered(convert(x, ScalarType.FLOAT32), axis, output.sizes[axis], placing, exact)
            placings[axis] = Sampling(1.0, 0.0, 0.0)
    return resampled(x, direction, placings, output.sizes, exact)


def _filtered(x: Node, axis: int, count: int, placing: Sampling, exact: bool) -> Node:
    """Return the means along an axis; `exact` where that of equal numbers must be."""
    rank, size = len(x.sizes), x.sizes[axis]
    reach = min(math.ceil(1.0 / placing.scale), size)
    sizes = [count if each == axis else own for each, own in enumerate(x.sizes)]
    place = coordinate(number_along([*sizes, 1], axis), count, placing)
    place = convert(minimum(maximum(place, 0.0), as_number(size - 1)), ScalarType.FLOAT32)
    first = convert(floor(place), counting(size))
    taps = min(2 * reach, size)
    start = maximum(minimum(first - (reach - 1), size - taps), 0)
    element = start + index(start.type, (*(1,) * rank, taps), 0, (*(0,) * rank, 1))
    steps = [[int(row == column and row != axis) for column in range(rank + 1)] for row in range(rank)]
    distance = abs(convert(element, ScalarType.FLOAT32) - place)
    weight = maximum(1.0 - distance * placing.scale, 0.0)
    viewed = gathered(x, (*sizes, taps), {axis: element}, steps=steps)
    nearest = gathered(x, (*sizes, 1), {axis: first}, steps=steps) if exact else None
    part = viewed if nearest is None else viewed - nearest
    # What has no weight does not count, even if it is not finite.
    shares = select(weight > 0.0, part * weight, 0.0)
    mean = convert(reduce_sum(shares, [rank]) / reduce_sum(weight, [rank]), ScalarType.FLOAT32)
    return reshaped(mean if nearest is None else nearest + mean, sizes)
