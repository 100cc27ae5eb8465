"""Convolutions, forward and backward, as contractions of filters with the windows that they see."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opendml.operators.quantization import aligned, exact_sum_type, less_zero_point, requantized
from opendml.operators.registry import defines, fused
from opendml.program.functions import rounded
from opendml.program.node import Node, contraction, convert, index
from opendml.program.scalar_type import ScalarType
from opendml.program.view import gathered, padded, permuted, reshaped, sliced, view, whole_quotient
from opendml.spec.enums import ConvolutionDirection, ConvolutionMode
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc

MOST_IDLE = 256
"""Zeros between the elements of a filter, or outputs that nothing adds to, at most, before a transposed
convolution goes from tap to tap."""


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

    Backward it is the transposed operation, PyTorch's conv_transpose and ONNX's ConvTranspose: the input at i
    adds to the outputs at i * stride + k * dilation - start_padding, those of the output padding among them;
    the output's sizes alone say where it ends. Filters are filled up with zeros to multiples of the stride,
    so that an input that is not finite also makes NaN of the outputs beside those that it adds to.

    CONVOLUTION takes the filter's elements from the last to the first along each spatial dimension.
    """
    spatial = len(strides)
    if mode is ConvolutionMode.CONVOLUTION:
        filter = _reversed(filter, spatial)
    grouped = _grouped(x, group_count)
    if direction is ConvolutionDirection.FORWARD:
        counts = [size - margin for size, margin in zip(output.sizes[2:], output_padding, strict=True)]
        taps = _forward_taps(filter, group_count, spatial)
        sums = _sums(_seen(grouped, taps, counts, strides, dilations, start_padding), taps)
        after = [*(0,) * (3 + spatial), *output_padding, *(0,) * (1 + spatial)]
        return _finished(_padded_after(sums, after), bias, fused_activation, spatial)
    backward = _backward_filter(filter, group_count)
    gaps = zip(filter.sizes[2:], dilations, strict=True)
    idle = [(extent - 1) * (dilation - 1) for extent, dilation in gaps]
    idle += [stride - size for stride, size in zip(strides, output.sizes[2:], strict=True)]
    if max(idle) > MOST_IDLE:
        sums = _sums_tap_by_tap(grouped, backward, output.sizes[2:], (strides, dilations, start_padding))
        return _finished(sums, bias, fused_activation, spatial)
    taps = _taps_by_phase(_dilated(backward, dilations), strides)
    # The outputs at stride * q + phase - start_padding, for each phase of the stride, from the first q.
    firsts = [margin // stride for margin, stride in zip(start_padding, strides, strict=True)]
    lasts = [
        (margin + size - 1) // stride
        for margin, size, stride in zip(start_padding, output.sizes[2:], strides, strict=True)
    ]
    counts = [last - first + 1 for first, last in zip(firsts, lasts, strict=True)]
    reach = [size - 1 - first for size, first in zip(taps.sizes[3 + spatial :], firsts, strict=True)]
    ones = (1,) * spatial
    sums = _sums(_seen(grouped, taps, counts, ones, ones, reach), taps)
    whole = _finished(sums, bias, fused_activation, spatial)
    start = [margin - q * stride for margin, q, stride in zip(start_padding, firsts, strides, strict=True)]
    return sliced(whole, (0, 0, *start), output.sizes)


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
    """The convolution of integers, each given with its zero point, in a type and in the output's sizes."""
    (x, zero_point), (filter, filter_zero_point) = given, weights
    rank = len(x.sizes)
    filter = less_zero_point(filter, filter_zero_point and _of_channels(filter_zero_point, rank, 0), type)
    taps = _forward_taps(filter, groups, rank - 2)
    # The zero point lies around the image, so that what is multiplied remains 8-bit integers less a number.
    zero = zero_point and aligned(zero_point, len(taps.sizes) + rank - 1)
    seen = _seen(_grouped(x, groups), taps, sizes[2:], *windows, zero or 0)
    return reshaped(_sums(less_zero_point(seen, zero, type), taps), sizes)


def _of_channels(parameter: Node, rank: int, axis: int) -> Node:
    """A parameter, one or one for each output channel, with its channels along a dimension of `rank`."""
    count = math.prod(parameter.sizes)
    return reshaped(parameter, [count if dimension == axis else 1 for dimension in range(rank)])


def _grouped(x: Node, groups: int) -> Node:
    """A tensor (N, G * C, ...) as (N, G, C, ...)."""
    return reshaped(x, (x.sizes[0], groups, x.sizes[1] // groups, *x.sizes[2:]))


def _seen(
    x: Node,
    taps: Node,
    counts: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    before: Sequence[int],
    fill: Node | float = 0,
) -> Node:
    """What taps (G, O, phases, C, extents) see of x (N, G, C, ...) in windows: (N, G, 1, ones, counts, C,
    extents). A fill that is a node has as many dimensions."""
    spatial = len(counts)
    batch, groups, channels = x.sizes[:3]
    # The positions lie innermost, where a target has its vectors: beside each other, whatever the stride.
    sizes = (batch, groups, 1, *(1,) * spatial, *counts, channels, *taps.sizes[3 + spatial :])
    first_count, first_extent = 3 + spatial, 4 + 2 * spatial

    def moving(*columns: tuple[int, int]) -> list[int]:
        return [dict(columns).get(column, 0) for column in range(len(sizes))]

    steps = [moving((0, 1)), moving((1, 1)), moving((3 + 2 * spatial, 1))]
    for axis, (stride, dilation) in enumerate(zip(strides, dilations, strict=True)):
        steps.append(moving((first_count + axis, stride), (first_extent + axis, dilation)))
    return view(x, sizes, (0, 0, 0, *(-margin for margin in before)), steps, fill)


def _sums(seen: Node, taps: Node) -> Node:
    """The sums (N, G, O, phases, counts, 1, ones) of taps (G, O, phases, C, extents) times what they see."""
    spatial = (len(taps.sizes) - 3) // 2
    taps = reshaped(taps, (1, *taps.sizes[: 2 + spatial], *(1,) * spatial, *taps.sizes[2 + spatial :]))
    rank = len(taps.sizes)
    return contraction(taps, seen, range(rank - 1 - spatial, rank))


def _finished(sums: Node, bias: Node | None, activation: OperatorDesc | None, spatial: int) -> Node:
    """Sums with the bias, activated: (N, channels, ...), where each count has its phases one by one."""
    batch, channels = sums.sizes[0], sums.sizes[1] * sums.sizes[2]
    phases, counts = sums.sizes[3 : 3 + spatial], sums.sizes[3 + spatial : 3 + 2 * spatial]
    result = reshaped(sums, (batch, channels, *phases, *counts))
    if any(phase > 1 for phase in phases):
        # The bias is added where the phases are put in their places: so all phases of all channels, which
        # lie alike, are the rows of one product.
        order = _pairs(range(2 + spatial, 2 + 2 * spatial), range(2, 2 + spatial))
        result = permuted(result, (0, 1, *order))
    if bias is not None:
        result = result + reshaped(bias, (1, channels, *(1,) * (2 * spatial)))
    image = [count * phase for count, phase in zip(counts, phases, strict=True)]
    return reshaped(fused(activation, result), (batch, channels, *image))


def _forward_taps(filter: Node, groups: int, spatial: int) -> Node:
    """A filter (G * O, C, ...) as taps with one phase."""
    outputs, *rest = filter.sizes
    return reshaped(filter, (groups, outputs // groups, *(1,) * spatial, *rest))


def _backward_filter(filter: Node, groups: int) -> Node:
    """A filter (G * C, O, ...) as (G, O, C, ...)."""
    inputs, *rest = filter.sizes
    grouped = reshaped(filter, (groups, inputs // groups, *rest))
    return permuted(grouped, (0, 2, 1, *range(3, len(grouped.sizes))))


def _sums_tap_by_tap(
    x: Node,
    filter: Node,
    counts: Sequence[int],
    windows: tuple[Sequence[int], Sequence[int], Sequence[int]],
) -> Node:
    """The sums of a transposed convolution of x (N, G, C, ...) with a filter (G, O, C, ...), for each of its
    elements with the one input that it adds, if there is one: without the zeros between the filter's elements
    and the outputs between two inputs' first ones, which may be any number."""
    spatial = len(counts)
    batch, groups, channels = x.sizes[:3]
    extents = filter.sizes[3:]
    taps = reshaped(filter, (*filter.sizes[:2], *(1,) * spatial, *filter.sizes[2:]))
    sizes = (batch, groups, 1, *(1,) * spatial, *counts, channels, *extents)

    def moving(*columns: tuple[int, int]) -> list[int]:
        return [dict(columns).get(column, 0) for column in range(len(sizes))]

    places = {}
    for axis, (stride, dilation, before) in enumerate(zip(*windows, strict=True)):
        of_axis = [1] * len(sizes)
        count, tap = 3 + spatial + axis, 4 + 2 * spatial + axis
        of_axis[count], of_axis[tap] = counts[axis], extents[axis]
        distance = index(ScalarType.INT64, of_axis, before, moving((count, 1), (tap, -dilation)))
        places[3 + axis] = whole_quotient(distance, stride)
    steps = [moving((0, 1)), moving((1, 1)), moving((3 + 2 * spatial, 1)), *[moving()] * spatial]
    return _sums(gathered(x, sizes, places, steps=steps), taps)


def _dilated(filter: Node, dilations: Sequence[int]) -> Node:
    """A filter (G, O, C, ...) with zeros between its elements."""
    if all(dilation == 1 for dilation in dilations):
        return filter
    leading, extents = filter.sizes[:3], filter.sizes[3:]
    ones = (1,) * len(extents)
    spread = _padded_after(
        reshaped(filter, (*leading, *_pairs(extents, ones))),
        [0, 0, 0, *_pairs((0,) * len(extents), [dilation - 1 for dilation in dilations])],
    )
    sizes = [extent * dilation for extent, dilation in zip(extents, dilations, strict=True)]
    spans = [size - dilation + 1 for size, dilation in zip(sizes, dilations, strict=True)]
    return sliced(reshaped(spread, (*leading, *sizes)), (0,) * len(filter.sizes), (*leading, *spans))


def _taps_by_phase(filter: Node, strides: Sequence[int]) -> Node:
    """Taps of a filter (G, O, C, ...): of each phase every stride-th element from there on, from the last to
    the first; zero beyond the filter."""
    spatial = len(strides)
    groups, outputs, channels, *extents = filter.sizes
    counts = [-(-extent // stride) for extent, stride in zip(extents, strides, strict=True)]
    sizes = (groups, outputs, *strides, channels, *counts)

    def moving(*columns: tuple[int, int]) -> list[int]:
        return [dict(columns).get(column, 0) for column in range(len(sizes))]

    steps = [moving((0, 1)), moving((1, 1)), moving((2 + spatial, 1))]
    steps += [moving((2 + axis, 1), (3 + spatial + axis, -stride)) for axis, stride in enumerate(strides)]
    last = [stride * (count - 1) for stride, count in zip(strides, counts, strict=True)]
    return view(filter, sizes, (0, 0, 0, *last), steps, fill=0)


def _reversed(filter: Node, spatial: int) -> Node:
    """A filter from its last element to its first along the spatial dimensions."""
    extents = filter.sizes[2:]
    first = (0, 0, *(extent - 1 for extent in extents))
    return sliced(filter, first, filter.sizes, (1, 1, *(-1,) * spatial))


def _padded_after(x: Node, after: Sequence[int]) -> Node:
    return padded(x, (0,) * len(after), after) if any(after) else x


def _pairs(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """The elements of both by turns."""
    return [element for pair in zip(first, second, strict=True) for element in pair]
