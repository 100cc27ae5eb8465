"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import along
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.conversion import NotRunnable, OnnxConversion, Result
from opendml.frontends.onnx.operators.windows import SlidingWindows, padding_of, shared, windows_of
from opendml.frontends.onnx.registry import converts
from opendml.program.sizes import hint_of
from opendml.runtime.graphs.tensor import GraphTensor


def _per_channel(node: OnnxConversion, number: int) -> GraphTensor | None:
    """Return an optional input with one element, or one for each channel of input 0."""
    given = node.optional(number)
    return None if given is None else along(given, 1, len(node.sizes(0)))


def _fields(node: OnnxConversion, windows: SlidingWindows) -> dict[str, Any]:
    """Return the keywords that forward convolutions share."""
    return {
        "strides": windows.strides,
        "dilations": windows.dilations,
        "start_padding": windows.start,
        "end_padding": windows.end,
        "group_count": node.attribute("group"),
    }


def _filtered(node: OnnxConversion, number: int) -> SlidingWindows:
    """Return the windows of filters, which are an input.

    Raises:
        NotRunnable: they are of other channels than input 0 has, or do not fit into it.
    """
    filters = node.sizes(number)
    _require_channels(node, filters, filters[1] * node.attribute("group"))
    return windows_of(node, filters[2:], must_fit=True)


def _require_channels(node: OnnxConversion, filters: Sequence[int], channels: int) -> None:
    """Check that input 0 has the channels that filters of some sizes read."""
    sizes, group = node.sizes(0), node.attribute("group")
    if sizes[1] != channels:
        raise NotRunnable(
            f"filters of sizes {list(map(hint_of, filters))} with group {group} on an input of sizes "
            f"{list(map(hint_of, sizes))}: the input must have {hint_of(channels)} channels"
        )


@converts("Conv", to="CONVOLUTION")
def conv(node: OnnxConversion) -> Result:
    """Convert Conv: cross-correlation over 1 to 3 dimensions, in groups."""
    windows = _filtered(node, 1)
    sizes = (node.sizes(0)[0], node.sizes(1)[0], *windows.outputs)
    if 0 in sizes:
        return node.empty(sizes)
    result: GraphTensor = dml.convolution(
        node.tensor(0), node.tensor(1), _per_channel(node, 2), **_fields(node, windows)
    )
    return result


@converts("ConvTranspose", to="CONVOLUTION")
def conv_transpose(node: OnnxConversion) -> Result:
    """Convert ConvTranspose to a backward convolution. Padding cuts the result; `output_padding` takes back
    what it cut at the ends."""
    _require_channels(node, node.sizes(1), node.sizes(1)[0])
    spatial, kernel = node.sizes(0)[2:], node.sizes(1)[2:]
    count = len(spatial)
    strides, dilations = (node.list_attribute(name, count) for name in ("strides", "dilations"))
    added = node.list_attribute("output_padding", count, 0)
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    each = zip(spatial, strides, reach, added, strict=True)
    whole = [(length - 1) * stride + size + more for length, stride, size, more in each]
    start, end = _cut(node, whole, strides, reach)
    wanted = [size - first - last for size, first, last in zip(whole, start, end, strict=True)]
    ends = [last - more for last, more in zip(end, added, strict=True)]
    sizes = (node.sizes(0)[0], node.sizes(1)[1] * node.attribute("group"), *wanted)
    if min(sizes) == 0:
        return node.empty(sizes)
    if min(start) < 0 or any(each < 1 for each in wanted):
        raise NotExpressible(f"padding {[*start, *end]} of an output of {whole}")
    return dml.convolution(
        node.tensor(0),
        node.tensor(1),
        _per_channel(node, 2),
        direction="BACKWARD",
        strides=strides,
        dilations=dilations,
        start_padding=start,
        end_padding=[max(0, each) for each in ends],
        output_padding=[max(0, -each) for each in ends],
        group_count=node.attribute("group"),
    )


def _cut(
    node: OnnxConversion, whole: list[int], strides: list[int], reach: list[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return what is cut from the whole result, at its starts and at its ends."""
    mode, wanted = node.attribute("auto_pad"), node.attribute("output_shape")
    if not wanted and mode in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [length * stride for length, stride in zip(node.sizes(0)[2:], strides, strict=True)]
    if not wanted:
        return padding_of(node, (), strides, reach)
    excess = [size - output for size, output in zip(whole, wanted[-len(whole) :], strict=True)]
    start, _ = shared([max(0, each) for each in excess], mode == "SAME_UPPER")
    return start, tuple(each - first for each, first in zip(excess, start, strict=True))


@converts("ConvInteger", since=10, to="CONVOLUTION_INTEGER")
def conv_integer(node: OnnxConversion) -> Result:
    """Convert ConvInteger: 8-bit integers less their zero points, summed in 32 bits."""
    fields = _fields(node, _filtered(node, 1))
    zeros = _per_channel(node, 2), _per_channel(node, 3)
    result: GraphTensor = dml.convolution_integer(
        node.tensor(0), zeros[0], node.tensor(1), zeros[1], **fields
    )
    return result


@converts("QLinearConv", since=10, to="QUANTIZED_LINEAR_CONVOLUTION")
def qlinear_conv(node: OnnxConversion) -> Result:
    """Convert QLinearConv: a convolution of quantized numbers, with a quantized result."""
    fields = _fields(node, _filtered(node, 3))
    tensor, filters, rank = node.tensor(0), node.tensor(3), len(node.sizes(0))
    scales = [along(node.tensor(number), 1, rank) for number in (1, 4, 6)]
    zeros = [_per_channel(node, number) for number in (2, 5, 7)]
    operands = (tensor, scales[0], zeros[0], filters, scales[1], zeros[1])
    result: GraphTensor = dml.quantized_linear_convolution(
        *operands, _per_channel(node, 8), scales[2], zeros[2], **fields
    )
    return result
