"""Gradients of aligned regions: for the elements that their samples were made of, and for their corners.

Many samples add to one element. The sums are made of integers, so that they are the same in every order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

from opendml.late_dataclass import dataclass
from opendml.operators.regions import Samples, aligned_samples
from opendml.operators.registry import defines
from opendml.program.functions import equal, index_of_maximum, minimum, reduce_maximum, reduce_sum, select
from opendml.program.node import Node, Operation, apply, bitcast, constant, convert, index, scattered_sum
from opendml.program.scalar_type import ScalarType, counting
from opendml.program.sizes import as_number
from opendml.program.view import gathered, in_memory, joined, permuted, reshaped
from opendml.spec.enums import InterpolationMode, ReduceFunction
from opendml.spec.tensor_desc import TensorDesc

_RANK = 8
"""Channels, regions, rows and columns of the outputs, the samples that each has along rows and columns, and
the elements between which a sample is along both."""
_PLACES = ((2, 4), (3, 5))
"""The dimensions of the outputs and the samples along rows, and along columns."""


@defines("ROI_ALIGN_GRAD", output=True)
def roi_align_grad(
    x: Node | None,
    gradient: Node,
    regions: Node,
    batch_indices: Node,
    *,
    reduction_function: ReduceFunction,
    interpolation_mode: InterpolationMode,
    spatial_scale_x: float,
    spatial_scale_y: float,
    input_pixel_offset: float,
    output_pixel_offset: float,
    minimum_samples_per_output: int,
    maximum_samples_per_output: int,
    align_regions_to_corners: bool,
    output: tuple[TensorDesc | None, TensorDesc | None],
) -> tuple[Node, ...]:
    """sum of gradient * weight over the samples of ROI_ALIGN1 that are made of the element; for a corner, of
    gradient * d sample / d corner

    Samples out of bounds, which are 0 where the greatest is looked for, have no gradient. Of several greatest
    ones the first has it. The gradient of the corners is that of the samples' places, per unit of the region.
    The number of samples is taken to be fixed. DirectML's page leaves out the scales and the division by the
    number of samples, and has no other interpolation. The gradient of the corners is 0 for the nearest
    neighbor, and beyond the outermost elements.

    Sums of the image's gradient are made in integers of 62 bits, relative to the greatest magnitude of the
    incoming gradient, so that they depend on no order; if that is not finite, every element is NaN. A batch
    index out of range is moved to the last batch; NaN counts as the greatest.
    """
    of_image, of_regions = output
    image = x.sizes if x is not None else of_image.sizes if of_image is not None else ()
    rows, columns = aligned_samples(
        regions,
        image,
        gradient.sizes,
        mode=interpolation_mode,
        scales=(spatial_scale_y, spatial_scale_x),
        offsets=(input_pixel_offset, output_pixel_offset),
        samples=(minimum_samples_per_output, maximum_samples_per_output),
        to_corners=align_regions_to_corners,
    )
    batch = reshaped(batch_indices, (1, regions.sizes[-2], *(1,) * (_RANK - 2)))
    batch = minimum(batch, image[0] - 1)
    found = _ImageSamples(x, image, convert(batch, counting(image[0])), rows, columns)
    shares = found.shares(reduction_function is ReduceFunction.MAX)
    swapped = permuted(gradient, (1, 0, 2, 3))
    incoming = reshaped(swapped, (*swapped.sizes, 1, 1, 1, 1))
    results = []
    if of_image is not None:
        results.append(_of_image(found, incoming, shares))
    if of_regions is not None:
        offset = output_pixel_offset
        parts = []
        for which, scale in ((1, spatial_scale_x), (0, spatial_scale_y)):
            share = _share_of_extent(found.axes[which], offset, align_regions_to_corners)
            moved = reduce_sum(incoming * shares * found.derivative(which), (0,)) * scale
            both = reduce_sum(moved, range(2, _RANK))
            second = reduce_sum(moved * convert(found.put(share, which), moved.type), range(2, _RANK))
            parts.append((both - second, second))
        corners = [parts[0][0], parts[1][0], parts[0][1], parts[1][1]]
        columns_of_corners = [reshaped(corner, (regions.sizes[-2], 1)) for corner in corners]
        results.append(reshaped(joined(columns_of_corners, 1), of_regions.sizes))
    return tuple(results)


@dataclass(frozen=True, slots=True)
class _ImageSamples:
    """The samples of an image (batch, channels, rows, columns)."""

    x: Node | None
    image: Sequence[int]
    batch: Node
    rows: Samples
    columns: Samples

    @property
    def axes(self) -> tuple[Samples, Samples]:
        """Along rows, along columns."""
        return self.rows, self.columns

    def put(self, value: Node, which: int) -> Node:
        """Return a tensor (regions, outputs, samples) along an axis among all dimensions."""
        sizes = [1] * _RANK
        for dimension, size in zip((1, *_PLACES[which]), value.sizes, strict=True):
            sizes[dimension] = size
        return reshaped(value, sizes)

    def ends(self, which: int) -> tuple[Node, Node | None]:
        """Return the elements between which a sample is along an axis, and their weights; None: 1."""
        axis = self.axes[which]
        if len(axis.ends) == 1:
            return self.put(axis.ends[0][0], which), None
        is_first = equal(_along(_RANK, _RANK - 2 + which, 2), 0)
        (first, before), (second, after) = axis.ends
        assert before is not None
        assert after is not None
        place = select(is_first, self.put(first, which), self.put(second, which))
        return place, select(is_first, self.put(before, which), self.put(after, which))

    @property
    def counted(self) -> Node:
        """Return whether an output has a sample, and it is not out of bounds."""
        rows, columns = (self.put(axis.counted, which) for which, axis in enumerate(self.axes))
        return apply(Operation.AND, rows, columns)

    def shares(self, of_greatest: bool) -> Node:
        """Return the weight of each sample in its output."""
        if not of_greatest:
            rows, columns = (self.put(axis.count, which) for which, axis in enumerate(self.axes))
            return select(self.counted, 1.0 / (rows * columns), 0.0)
        taps = [axis.counted.sizes[2] for axis in self.axes]
        used = apply(
            Operation.AND,
            *(
                self.put(convert(_along(3, 2, taps[which]), ScalarType.FLOAT32) < axis.count, which)
                for which, axis in enumerate(self.axes)
            ),
        )
        samples = select(used, select(self.counted, self.interpolated, 0.0), -math.inf)
        number = _along(_RANK, 4, taps[0]) * taps[1] + _along(_RANK, 5, taps[1])
        greatest = index_of_maximum(samples, (4, 5))
        if taps[0] * taps[1] > 1:
            # Each of five kernels would interpolate all samples of an output again for each of them.
            greatest = in_memory(greatest)
        is_greatest = equal(number, convert(greatest, number.type))
        return select(apply(Operation.AND, is_greatest, self.counted), constant(1.0, ScalarType.FLOAT32), 0.0)

    @property
    def interpolated(self) -> Node:
        """The samples of each channel."""
        terms = [
            self._times(self._at(row, column), (upper, 0), (left, 1))
            for row, upper in self.rows.ends
            for column, left in self.columns.ends
        ]
        return reduce(lambda a, b: a + b, terms)

    def derivative(self, which: int) -> Node:
        """Return the derivative of a sample by its place along an axis."""
        own, other = self.axes[which], self.axes[1 - which]
        place = own.place
        if len(own.ends) == 1 or place is None:
            return constant(0.0, ScalarType.FLOAT32)
        first, second = (end for end, _ in own.ends)
        terms = []
        for end, weight in other.ends:
            after, before = (
                self._at(end, each) if which else self._at(each, end) for each in (second, first)
            )
            terms.append(self._times(after - before, (weight, 1 - which)))
        size = as_number(self.image[2 + which] - 1)
        inside = apply(Operation.AND, place >= 0.0, place <= size)
        return select(self.put(inside, which), reduce(lambda a, b: a + b, terms), 0.0)

    def _at(self, row: Node, column: Node) -> Node:
        """Return the image at ends of the samples."""
        assert self.x is not None
        channels = self.image[1]
        rows, columns = self.put(row, 0), self.put(column, 1)
        sizes = (channels, *(max(a, b) for a, b in zip(rows.sizes[1:], columns.sizes[1:], strict=True)))
        steps = [[int(dimension == 1 and not column) for column in range(_RANK)] for dimension in range(4)]
        return gathered(self.x, sizes, {0: self.batch, 2: rows, 3: columns}, steps=steps)

    def _times(self, value: Node, *weights: tuple[Node | None, int]) -> Node:
        for weight, which in weights:
            value = value if weight is None else value * self.put(weight, which)
        return value


def _share_of_extent(axis: Samples, offset: float, to_corners: bool) -> Node:
    """Return the derivative of a sample's place along an axis by the extent of its region."""
    _, bins, taps = axis.counted.sizes
    number = convert(_along(3, 1, bins), ScalarType.FLOAT32) * axis.count
    sample = number + convert(_along(3, 2, taps), ScalarType.FLOAT32) - offset
    total = axis.count * as_number(bins)
    if to_corners:
        return select(equal(total, 1.0), 0.5, sample / select(equal(total, 1.0), 1.0, total - 1.0))
    return sample / total


def _of_image(found: _ImageSamples, incoming: Node, shares: Node) -> Node:
    """Return the gradient of the image: that of each sample goes to the elements between which it is."""
    batches, channels, height, width = found.image
    outputs = math.prod(incoming.sizes[1:])
    greatest = reduce_maximum(abs(incoming), range(_RANK))
    exponent = apply(Operation.SHIFT_RIGHT, bitcast(greatest, ScalarType.INT32), 23)
    is_finite = exponent < 255
    # 2 to the power of exponent - 126 is above the greatest; an output has shares of at most 1 in all.
    bits = 62 - outputs.bit_length() - convert(exponent, ScalarType.INT64) + 126
    (row, upper), (column, left) = (found.ends(which) for which in range(2))
    share = incoming * shares
    for weight in (upper, left):
        share = share if weight is None else share * weight
    values = convert(convert(share, ScalarType.FLOAT64) * _power_of_two(bits), ScalarType.INT64)
    type = counting(batches * height * width)
    batch, row, column = (convert(each, type) for each in (found.batch, row, column))
    places = select(found.counted, (batch * height + row) * width + column, -1)
    sums = scattered_sum(places, values, range(1, _RANK), batches * height * width)
    total = convert(sums, ScalarType.FLOAT64) * _power_of_two(-bits)
    total = select(is_finite, total, math.nan)
    return permuted(reshaped(total, (channels, batches, height, width)), (1, 0, 2, 3))


def _power_of_two(exponent: Node) -> Node:
    """Return 2 to the power of an INT64 from -1022 to 1023, as FLOAT64."""
    return bitcast(apply(Operation.SHIFT_LEFT, exponent + 1023, 52), ScalarType.FLOAT64)


def _along(rank: int, axis: int, size: int) -> Node:
    """Return the index along an axis."""
    sizes = [size if each == axis else 1 for each in range(rank)]
    return index(ScalarType.INT32, sizes, 0, [int(each == axis) for each in range(rank)])
