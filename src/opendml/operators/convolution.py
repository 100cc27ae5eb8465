"""Convolutions, forward and backward, as contractions of filters with the windows that they see."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from opendml.operators.folding import moving
from opendml.operators.quantization import aligned, exact_sum_type, less_zero_point, requantized
from opendml.operators.registry import defines, fused
from opendml.program.functions import rounded, select
from opendml.program.node import Node, Operation, constant, contraction, convert, index, position
from opendml.program.scalar_type import ScalarType
from opendml.program.view import (
    gathered,
    in_memory,
    joined,
    permuted,
    repeated,
    reshaped,
    sliced,
    view,
    whole_quotient,
)
from opendml.spec.enums import ConvolutionDirection, ConvolutionMode
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc

_MOST_PRODUCTS = 9
"""Products of a transposed convolution, one for each phase of its strides, at most: each takes a launch."""
_MOST_DILATED_PRODUCTS = 32
"""Most phases of a convolution that is dilated too. Beyond them, each output finds its inputs instead."""
_FEWEST_ROWS = 16
"""Channels of outputs from which on each phase is a product of its own: fewer are too few rows for a tile."""
_MOST_IDLE = 256
"""Outputs of the phases of a stride that are computed beyond those that there are, at most."""


@defines("CONVOLUTION", output=True)
def convolution(
    x: Node,
    filter: Node,
    bias: Node | None,
    *,
    mode: ConvolutionMode,
    direction: ConvolutionDirection,
    strides: Sequence[int],
    dilations: Sequence[int],
    start_padding: Sequence[int],
    end_padding: Sequence[int],
    output_padding: Sequence[int],
    group_count: int,
    fused_activation: OperatorDesc | None,
    output: TensorDesc,
) -> Node:
    """fused(bias + sum of filter * x over the window and the channels of the group)

    Products are added in float32. Forward, the output at o sees the inputs at o * stride + k * dilation -
    start_padding; output padding is zeros beyond the sums, to which the bias is added too.

    Backward it is the transposed operation, PyTorch's conv_transpose and ONNX's ConvTranspose. The input at i
    adds to the outputs at i * stride + k * dilation - start_padding, also to those of the output padding. The
    output's sizes alone say where it ends. Filters may be filled up with zeros to multiples of the stride. So
    an input that is not finite also makes NaN of the outputs beside those that it adds to.

    CONVOLUTION takes the filter's elements from the last to the first along each spatial dimension.
    """
    spatial = len(strides)
    if mode is ConvolutionMode.CONVOLUTION:
        filter = _reversed(filter, spatial)
    grouped = _grouped(x, group_count)
    if direction is ConvolutionDirection.FORWARD:
        taps = _forward_taps(filter, group_count, spatial)
        sums = _sums(_viewed(grouped, taps, output.sizes[2:], strides, dilations, start_padding), taps)
        for axis, (size, padding) in enumerate(
            zip(output.sizes[2:], output_padding, strict=True), 3 + spatial
        ):
            if padding:
                sums = select(position(sums.sizes, [axis]) < size - padding, sums, 0)
        return _image(_interleaved(_finished(sums, bias, fused_activation)))
    backward = _backward_filter(filter, group_count)
    windows = (strides, dilations, start_padding)
    axes = list(zip(filter.sizes[2:], output.sizes[2:], *windows, strict=True))
    type = ScalarType.of(output.data_type)
    if _has_product_per_phase(axes, backward.sizes[1]):
        phases = [list(_phases(*axis)) for axis in axes]

        def joined_phases(*chosen: _Phase) -> Node:
            """Return the outputs of the chosen phases, and of all phases of the other dimensions."""
            axis = len(chosen)
            if axis < spatial:
                return joined([joined_phases(*chosen, phase) for phase in phases[axis]], 3 + 2 * axis)
            sums = _sums_of_phase(grouped, backward, chosen)
            results = convert(_finished(sums, bias, fused_activation), type)
            # The results of a phase do not lie beside each other. Stored there by the CPU's products instead
            # of being copied, they took 1.45 times as long (3x3, stride 2, 64 to 32 channels, AVX-512).
            is_copied = sums.operation is Operation.CONTRACTION and math.prod(map(len, phases)) > 1
            return _interleaved(in_memory(results) if is_copied else results)

        return sliced(_image(joined_phases()), (0,) * (2 + spatial), output.sizes)
    if any(min(stride, dilation) > 1 or stride > size + _MOST_IDLE for _, size, stride, dilation, _ in axes):
        sums = _sums_tap_by_tap(grouped, backward, output.sizes[2:], windows)
        return _image(_interleaved(_finished(sums, bias, fused_activation)))
    taps = _taps_by_phase(backward, strides)
    # Sums at stride * q + phase - start_padding, for each phase of the stride, from the first q.
    firsts = [margin // stride for margin, stride in zip(start_padding, strides, strict=True)]
    counts = [-(-size // stride) + (before % stride > 0) for _, size, stride, _, before in axes]
    reach = [
        (size - 1) * dilation - first
        for size, dilation, first in zip(taps.sizes[3 + spatial :], dilations, firsts, strict=True)
    ]
    sums = _sums(_viewed(grouped, taps, counts, (1,) * spatial, dilations, reach), taps)
    results = convert(_finished(sums, bias, fused_activation), type)
    image = _image(_interleaved(results, [before % stride for _, _, stride, _, before in axes]))
    return sliced(image, (0,) * (2 + spatial), output.sizes)


@defines("CONVOLUTION_INTEGER", stored=True, output=True)
def convolution_integer(
    x: Node,
    zero_point: Node | None,
    filter: Node,
    filter_zero_point: Node | None,
    *,
    strides: Sequence[int],
    dilations: Sequence[int],
    start_padding: Sequence[int],
    end_padding: Sequence[int],
    group_count: int,
    output: TensorDesc,
) -> Node:
    """sum of (filter - filter_zero_point) * (x - zero_point) over the window and the channels of the group,
    in INT32

    The sums are exact; beyond INT32 they wrap. A padded position counts as the zero point.
    """
    return _sums_of_integers(
        (x, zero_point),
        (filter, filter_zero_point),
        output.sizes,
        (strides, dilations, start_padding),
        group_count,
        ScalarType.INT32,
    )


@defines("QUANTIZED_LINEAR_CONVOLUTION", stored=True, output=True)
def quantized_linear_convolution(
    x: Node,
    scale: Node,
    zero_point: Node | None,
    filter: Node,
    filter_scale: Node,
    filter_zero_point: Node | None,
    bias: Node | None,
    output_scale: Node,
    output_zero_point: Node | None,
    *,
    strides: Sequence[int],
    dilations: Sequence[int],
    start_padding: Sequence[int],
    end_padding: Sequence[int],
    group_count: int,
    output: TensorDesc,
) -> Node:
    """clamp(round(y / output_scale) + output_zero_point) to the range of the output, where
    y = (bias + sums of CONVOLUTION_INTEGER) * (scale * filter_scale)

    The sums are exact; the bias counts in units of scale * filter_scale, as in ONNX. NaN gives 0.
    """
    rank = len(x.sizes)
    sums = _sums_of_integers(
        (x, zero_point),
        (filter, filter_zero_point),
        output.sizes,
        (strides, dilations, start_padding),
        group_count,
        exact_sum_type(math.prod(filter.sizes[1:])),
    )
    if bias is not None:
        sums = convert(sums, ScalarType.INT64) + convert(aligned(bias, rank), ScalarType.INT64)
    scales = rounded(aligned(scale, rank) * _of_channels(filter_scale, rank, 1))
    zero = output_zero_point and aligned(output_zero_point, rank)
    return requantized(sums, scales, aligned(output_scale, rank), zero, output)


def _sums_of_integers(
    given: tuple[Node, Node | None],
    weights: tuple[Node, Node | None],
    sizes: Sequence[int],
    windows: tuple[Sequence[int], Sequence[int], Sequence[int]],
    groups: int,
    type: ScalarType,
) -> Node:
    """Return the convolution of integers with their zero points, in a type and in the output's sizes."""
    (x, zero_point), (filter, filter_zero_point) = given, weights
    rank = len(x.sizes)
    filter = less_zero_point(filter, filter_zero_point and _of_channels(filter_zero_point, rank, 0), type)
    taps = _forward_taps(filter, groups, rank - 2)
    # The zero point lies around the image, so that what is multiplied remains 8-bit integers less a number.
    zero = zero_point and aligned(zero_point, len(taps.sizes) + rank - 1)
    viewed = _viewed(_grouped(x, groups), taps, sizes[2:], *windows, zero or 0)
    return reshaped(_sums(less_zero_point(viewed, zero, type), taps), sizes)


def _of_channels(parameter: Node, rank: int, axis: int) -> Node:
    """Return a parameter of the tensor or of each channel, with channels along a dimension of `rank`."""
    count = math.prod(parameter.sizes)
    return reshaped(parameter, [count if dimension == axis else 1 for dimension in range(rank)])


def _grouped(x: Node, groups: int) -> Node:
    """Return a tensor (N, G * C, ...) as (N, G, C, ...)."""
    return reshaped(x, (x.sizes[0], groups, x.sizes[1] // groups, *x.sizes[2:]))


def _viewed(
    x: Node,
    taps: Node,
    counts: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    before: Sequence[int],
    fill: Node | float = 0,
) -> Node:
    """Return the windows of x (N, G, C, ...) for taps (G, O, phases, C, extents).

    The result is (N, G, 1, ones, counts, C, extents). A fill that is a node has as many dimensions.
    """
    spatial = len(counts)
    batch, groups, channels = x.sizes[:3]
    # The positions lie innermost, where a target has its vectors: beside each other, whatever the stride.
    sizes = (batch, groups, 1, *(1,) * spatial, *counts, channels, *taps.sizes[3 + spatial :])
    first_count, first_extent = 3 + spatial, 4 + 2 * spatial

    steps = [moving(sizes, {0: 1}), moving(sizes, {1: 1}), moving(sizes, {3 + 2 * spatial: 1})]
    for axis, (stride, dilation) in enumerate(zip(strides, dilations, strict=True)):
        steps.append(moving(sizes, {first_count + axis: stride, first_extent + axis: dilation}))
    return view(x, sizes, (0, 0, 0, *(-margin for margin in before)), steps, fill)


def _sums(viewed: Node, taps: Node) -> Node:
    """Return the sums (N, G, O, phases, counts, 1, ones) of taps (G, O, phases, C, extents) in windows."""
    spatial = (len(taps.sizes) - 3) // 2
    taps = reshaped(taps, (1, *taps.sizes[: 2 + spatial], *(1,) * spatial, *taps.sizes[2 + spatial :]))
    rank = len(taps.sizes)
    return contraction(taps, viewed, range(rank - 1 - spatial, rank))


def _finished(sums: Node, bias: Node | None, activation: OperatorDesc | None) -> Node:
    """Return sums with the bias, activated: (N, channels, phases, counts)."""
    channels, spatial = sums.sizes[1] * sums.sizes[2], (len(sums.sizes) - 4) // 3
    if bias is not None:
        ones = (1,) * (2 * spatial + 1)
        bias = reshaped(bias, (1, *sums.sizes[1:3], *(1,) * spatial, *ones))
        if any(phase > 1 for phase in sums.sizes[3 : 3 + spatial]):
            # All phases of all channels lie alike, so that they are the rows of one product.
            bias = in_memory(repeated(bias, (1, *sums.sizes[1 : 3 + spatial], *ones)))
        sums = sums + bias
    return reshaped(fused(activation, sums), (sums.sizes[0], channels, *sums.sizes[3 : 3 + 2 * spatial]))


def _interleaved(finished: Node, firsts: Sequence[int] | None = None) -> Node:
    """Return results (N, channels, phases, counts) as (N, channels, (counts, phases) of each spatial
    dimension), from the phases `firsts` on. Behind the last phase come the next ones of the first phases."""
    spatial = (len(finished.sizes) - 2) // 2
    batch, channels, *rest = finished.sizes
    phases, counts = rest[:spatial], rest[spatial:]

    def rotated(*chosen: tuple[int, int, int]) -> Node:
        """Return the chosen phases, the first, how many and from which number on, and all others."""
        axis = len(chosen)
        if axis < spatial:
            first = firsts[axis] if firsts else 0
            runs = [(first, phases[axis] - first, 0), (0, first, 1)][: 2 if first else 1]
            return joined([rotated(*chosen, run) for run in runs], 3 + 2 * axis)
        own = [counts[axis] - (firsts is not None and firsts[axis] > 0) for axis in range(spatial)]
        sizes = (*(size for _, size, _ in chosen), *own)
        starts = (*(first for first, _, _ in chosen), *(start for _, _, start in chosen))
        part = sliced(finished, (0, 0, *starts), (batch, channels, *sizes))
        order = _pairs(range(2 + spatial, 2 + 2 * spatial), range(2, 2 + spatial))
        if all(size == 1 for _, size, _ in chosen):
            return reshaped(part, (batch, channels, *_pairs(own, (1,) * spatial)))
        return permuted(part, (0, 1, *order))

    return rotated()


def _image(finished: Node) -> Node:
    """Return results (N, channels, (counts, phases) of each spatial dimension) as images."""
    batch, channels, *sizes = finished.sizes
    spatial = [count * phases for count, phases in zip(sizes[::2], sizes[1::2], strict=True)]
    return reshaped(finished, (batch, channels, *spatial))


def _forward_taps(filter: Node, groups: int, spatial: int) -> Node:
    """Return a filter (G * O, C, ...) as taps with one phase."""
    outputs, *rest = filter.sizes
    return reshaped(filter, (groups, outputs // groups, *(1,) * spatial, *rest))


def _backward_filter(filter: Node, groups: int) -> Node:
    """Return a filter (G * C, O, ...) as (G, O, C, ...)."""
    inputs, *rest = filter.sizes
    grouped = reshaped(filter, (groups, inputs // groups, *rest))
    return permuted(grouped, (0, 2, 1, *range(3, len(grouped.sizes))))


def _sums_tap_by_tap(
    x: Node, filter: Node, counts: Sequence[int], windows: tuple[Sequence[int], Sequence[int], Sequence[int]]
) -> Node:
    """Return the sums of a transposed convolution of x (N, G, C, ...) with a filter (G, O, C, ...).

    Each element of the filter finds the one input that it multiplies, if there is one. So strides and
    dilations of any size add no zeros.
    """
    spatial = len(counts)
    batch, groups, channels = x.sizes[:3]
    extents = filter.sizes[3:]
    taps = reshaped(filter, (*filter.sizes[:2], *(1,) * spatial, *filter.sizes[2:]))
    sizes = (batch, groups, 1, *(1,) * spatial, *counts, channels, *extents)

    places = {}
    for axis, (stride, dilation, before) in enumerate(zip(*windows, strict=True)):
        of_axis = [1] * len(sizes)
        count, tap = 3 + spatial + axis, 4 + 2 * spatial + axis
        of_axis[count], of_axis[tap] = counts[axis], extents[axis]
        distance = index(ScalarType.INT64, of_axis, before, moving(sizes, {count: 1, tap: -dilation}))
        places[3 + axis] = whole_quotient(distance, stride)
    steps = [
        moving(sizes, {0: 1}),
        moving(sizes, {1: 1}),
        moving(sizes, {3 + 2 * spatial: 1}),
        *[moving(sizes, {})] * spatial,
    ]
    return _sums(gathered(x, sizes, places, steps=steps), taps)


def _has_product_per_phase(axes: Sequence[tuple[int, int, int, int, int]], channels: int) -> bool:
    """Return whether each phase of a transposed convolution is a product of its own; not all are one.

    Each axis has the filter's extent, the number of outputs, the stride, the dilation and the padding before.
    """
    phases = math.prod(min(stride, size) for _, size, stride, _, _ in axes)
    if any(min(stride, dilation) > 1 for _, _, stride, dilation, _ in axes):
        return phases <= _MOST_DILATED_PRODUCTS
    if phases > _MOST_PRODUCTS:
        return False
    # A product of all phases reads the inputs once, but its filter may be filled up with zeros.
    is_filled = any(extent % stride for extent, _, stride, _, _ in axes)
    is_idle = any(stride > size + _MOST_IDLE for _, size, stride, _, _ in axes)
    return phases == 1 or is_idle or (is_filled and channels >= _FEWEST_ROWS)


class _Phase(NamedTuple):
    """One phase of the stride of a transposed convolution along a dimension.

    Its output number q sees the inputs start + q + t * dilation, for t < taps, and multiplies them by the
    elements last - t * step of the filter.
    """

    outputs: int
    """Return their number."""
    taps: int
    start: int
    dilation: int
    last: int
    step: int


def _phases(extent: int, size: int, stride: int, dilation: int, before: int) -> Iterator[_Phase]:
    """Yield the phases of a dimension of a transposed convolution.

    The output stride * q + first is number q of the phase number `first`. All phases have the same number
    of outputs.
    """
    common = math.gcd(stride, dilation)
    step = stride // common
    for first in range(min(stride, size)):
        position, phase = divmod(before + first, stride)
        # Of its first tap: tap * dilation = phase (modulo stride).
        tap = phase // common * pow(dilation // common, -1, step) % step
        taps = 0 if phase % common else max(-(-(extent - tap) // step), 0)
        last = tap + (taps - 1) * step
        start = position + (phase - last * dilation) // stride
        yield _Phase(-(-size // stride), taps, start, dilation // common, last, step)


def _sums_of_phase(x: Node, filter: Node, phases: Sequence[_Phase]) -> Node:
    """Return the sums of one phase along each dimension, for x (N, G, C, ...) and a filter (G, O, C, ...)."""
    spatial = len(phases)
    groups, outputs, channels = filter.sizes[:3]
    ones, counts = (1,) * spatial, [phase.outputs for phase in phases]
    if not all(phase.taps for phase in phases):
        sizes = (x.sizes[0], groups, outputs, *ones, *counts, 1, *ones)
        return repeated(reshaped(constant(0, x.type), (1,) * len(sizes)), sizes)
    first = (0, 0, 0, *(phase.last for phase in phases))
    sizes = (groups, outputs, channels, *(phase.taps for phase in phases))
    taps = sliced(filter, first, sizes, (1, 1, 1, *(-phase.step for phase in phases)))
    taps = reshaped(taps, (groups, outputs, *ones, *sizes[2:]))
    before, dilations = [-phase.start for phase in phases], [phase.dilation for phase in phases]
    return _sums(_viewed(x, taps, counts, ones, dilations, before), taps)


def _taps_by_phase(filter: Node, strides: Sequence[int]) -> Node:
    """Return the taps of a filter (G, O, C, ...) by phase: every stride-th element, the last one first.

    Taps beyond the filter are zero.
    """
    spatial = len(strides)
    groups, outputs, channels, *extents = filter.sizes
    counts = [-(-extent // stride) for extent, stride in zip(extents, strides, strict=True)]
    sizes = (groups, outputs, *strides, channels, *counts)

    steps = [moving(sizes, {0: 1}), moving(sizes, {1: 1}), moving(sizes, {2 + spatial: 1})]
    steps += [
        moving(sizes, {2 + axis: 1, 3 + spatial + axis: -stride}) for axis, stride in enumerate(strides)
    ]
    last = [stride * (count - 1) for stride, count in zip(strides, counts, strict=True)]
    return view(filter, sizes, (0, 0, 0, *last), steps, fill=0)


def _reversed(filter: Node, spatial: int) -> Node:
    """Return a filter from its last element to its first along the spatial dimensions."""
    extents = filter.sizes[2:]
    first = (0, 0, *(extent - 1 for extent in extents))
    return sliced(filter, first, filter.sizes, (1, 1, *(-1,) * spatial))


def _pairs(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """Return the elements of both by turns."""
    return [element for pair in zip(first, second, strict=True) for element in pair]
