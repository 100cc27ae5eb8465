"""Convolutions."""

from __future__ import annotations

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.operators.views import along
from opendml.frontends.onnx.operators.windows import padding_of, shared, windows_of
from opendml.frontends.onnx.registry import converts
from opendml.runtime.graphs.tensor import GraphTensor


def channel_bias(node: Conversion, number: int) -> GraphTensor | None:
    """An optional input with an element for each channel of input 0."""
    bias = node.optional(number)
    return None if bias is None else along(bias, 1, len(node.sizes(0)))


@converts("Conv")
def conv(node: Conversion) -> Result:
    """Cross-correlation over 1 to 3 dimensions, in groups."""
    windows = windows_of(node, node.sizes(1)[2:])
    sizes = (node.sizes(0)[0], node.sizes(1)[0], *windows.outputs)
    if 0 in sizes:
        return node.empty(sizes, node.type(0))
    return dml.convolution(
        node.tensor(0),
        node.tensor(1),
        channel_bias(node, 2),
        strides=windows.strides,
        dilations=windows.dilations,
        start_padding=windows.start,
        end_padding=windows.end,
        group_count=node.attribute("group", 1),
    )


@converts("ConvTranspose")
def conv_transpose(node: Conversion) -> Result:
    """The same turned round. Padding cuts the result; `output_padding` takes back what it cut at the ends."""
    spatial, kernel = node.sizes(0)[2:], node.sizes(1)[2:]
    count = len(spatial)
    strides, dilations = (
        tuple(node.attribute(name, [1] * count) or [1] * count) for name in ("strides", "dilations")
    )
    added = node.attribute("output_padding", [0] * count) or [0] * count
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    each = zip(spatial, strides, reach, added, strict=True)
    whole = [(length - 1) * stride + size + more for length, stride, size, more in each]
    start, end = _cut(node, whole, strides, reach)
    wanted = [size - first - last for size, first, last in zip(whole, start, end, strict=True)]
    ends = [last - more for last, more in zip(end, added, strict=True)]
    if min(start) < 0 or min(wanted) < 1:
        raise NotExpressible(f"padding {[*start, *end]} of an output of {whole}")
    return dml.convolution(
        node.tensor(0),
        node.tensor(1),
        channel_bias(node, 2),
        direction="BACKWARD",
        strides=strides,
        dilations=dilations,
        start_padding=start,
        end_padding=[max(0, each) for each in ends],
        output_padding=[max(0, -each) for each in ends],
        group_count=node.attribute("group", 1),
    )


def _cut(
    node: Conversion, whole: list[int], strides: tuple[int, ...], reach: list[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What is cut from the whole result, at its starts and at its ends."""
    mode, wanted = node.attribute("auto_pad", "NOTSET"), node.attribute("output_shape", None)
    if not wanted and mode in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [length * stride for length, stride in zip(node.sizes(0)[2:], strides, strict=True)]
    if not wanted:
        return padding_of(node, (), strides, reach)
    total = [max(0, size - output) for size, output in zip(whole, wanted[-len(whole) :], strict=True)]
    start, _ = shared(total, mode == "SAME_UPPER")
    each = zip(whole, start, wanted[-len(whole) :], strict=True)
    return start, tuple(size - first - output for size, first, output in each)


@converts("ConvInteger", since=10)
def conv_integer(node: Conversion) -> Result:
    """8-bit integers less their zero points, summed in 32 bits."""
    windows, rank = windows_of(node, node.sizes(1)[2:]), len(node.sizes(0))
    return dml.convolution_integer(
        node.tensor(0),
        zero_point(node, 2, rank),
        node.tensor(1),
        zero_point(node, 3, rank),
        strides=windows.strides,
        dilations=windows.dilations,
        start_padding=windows.start,
        end_padding=windows.end,
        group_count=node.attribute("group", 1),
    )


@converts("QLinearConv", since=10)
def qlinear_conv(node: Conversion) -> Result:
    """The same of quantized numbers, with the result quantized."""
    windows, rank = windows_of(node, node.sizes(3)[2:]), len(node.sizes(0))
    return dml.quantized_linear_convolution(
        node.tensor(0),
        along(node.tensor(1), 1, rank),
        zero_point(node, 2, rank),
        node.tensor(3),
        along(node.tensor(4), 1, rank),
        zero_point(node, 5, rank),
        channel_bias(node, 8),
        along(node.tensor(6), 1, rank),
        zero_point(node, 7, rank),
        strides=windows.strides,
        dilations=windows.dilations,
        start_padding=windows.start,
        end_padding=windows.end,
        group_count=node.attribute("group", 1),
    )


def zero_point(node: Conversion, number: int, rank: int) -> GraphTensor | None:
    """A zero point: one, or one for each channel."""
    given = node.optional(number)
    return None if given is None else along(given, 1, rank)
