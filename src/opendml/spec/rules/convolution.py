"""Convolution forward and backward."""

from __future__ import annotations

from opendml.spec.enums import ConvolutionDirection
from opendml.spec.fault import Fault
from opendml.spec.rules.declared import rule, shape
from opendml.spec.rules.rule import Broken, Size, Sizes, SizeSpan, expect
from opendml.spec.rules.windows import windows
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.wording import counted

_CONVOLUTIONS = ("CONVOLUTION", "CONVOLUTION_INTEGER", "QUANTIZED_LINEAR_CONVOLUTION")


@rule(*_CONVOLUTIONS, basic=True)
def equal_groups(
    input_tensor: TensorDesc,
    filter_tensor: TensorDesc,
    group_count: int,
    direction: ConvolutionDirection = ConvolutionDirection.FORWARD,
) -> Broken:
    """GroupCount divides the input's channels, and forward the number of filters."""
    channels, filters = input_tensor.sizes[1], filter_tensor.sizes[0]
    if channels % group_count:
        yield "group_count", Fault(group_count, f"must divide {{InputTensor}}'s {channels} channels")
    elif direction is ConvolutionDirection.FORWARD and filters % group_count:
        yield "group_count", Fault(group_count, f"must divide {{FilterTensor}}'s {filters} filters")


@rule(*_CONVOLUTIONS)
def convolved_channels(
    input_tensor: TensorDesc,
    filter_tensor: TensorDesc,
    group_count: int,
    direction: ConvolutionDirection = ConvolutionDirection.FORWARD,
    bias_tensor: TensorDesc | None = None,
) -> Broken:
    """Filters are (outputs, inputs of a group, ...) forward and (inputs, outputs of a group, ...) backward.

    DirectML's pages do not say so; ONNX's are, and ONNX Runtime hands them to DirectML unchanged.
    """
    channels, dimensions = input_tensor.sizes[1], len(input_tensor.sizes)
    forward = direction is ConvolutionDirection.FORWARD
    needed: tuple[Size, Size] = (None, channels // group_count) if forward else (channels, None)
    groups = f" in {group_count} groups" if group_count > 1 else ""
    reason = f"{counted(channels, 'channel', 'channels')}{groups} {'forward' if forward else 'backward'}"
    yield from expect("filter_tensor", filter_tensor, (*needed, *(None,) * (dimensions - 2)), reason)
    outputs = _output_channels(filter_tensor, group_count, direction)
    bias = (1, outputs, *(1,) * (dimensions - 2))
    yield from expect("bias_tensor", bias_tensor, bias, counted(outputs, "output channel", "output channels"))


@shape(*_CONVOLUTIONS, reason="the input, filter, strides, dilations, padding and groups given", is_open=True)
def convolved_sizes(
    input_tensor: TensorDesc,
    filter_tensor: TensorDesc,
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    start_padding: tuple[int, ...],
    end_padding: tuple[int, ...],
    group_count: int,
    output_padding: tuple[int, ...] | None = None,
    direction: ConvolutionDirection = ConvolutionDirection.FORWARD,
) -> Sizes:
    """An output size is (size + paddings - span) / stride + 1, rounded down.

    The span is (filter - 1) * dilation + 1. Backward it is one that gives the input's size forward. There are
    as many of these as the stride. All are accepted, because ONNX Runtime chooses among them by the output
    alone. The output padding is added in both directions. DirectML's pages have no formula.
    """
    batch, _, *image = input_tensor.sizes
    spatial = windows(image, filter_tensor.sizes[2:], strides, dilations, start_padding, end_padding)
    if direction is ConvolutionDirection.FORWARD:
        found = [SizeSpan(*(window.positions.usual,) * 3) for window in spatial]
    else:
        found = [window.origins for window in spatial]
    padding = output_padding or (0,) * len(image)
    channels = _output_channels(filter_tensor, group_count, direction)
    return (batch, channels, *map(_padded, found, padding))


def _output_channels(filter_tensor: TensorDesc, group_count: int, direction: ConvolutionDirection) -> int:
    outputs, inputs = filter_tensor.sizes[:2]
    return outputs if direction is ConvolutionDirection.FORWARD else inputs * group_count


def _padded(sizes: SizeSpan, padding: int) -> SizeSpan:
    """Return the sizes with output padding, which does not make up for a filter that is too large."""
    return SizeSpan(*(size + padding for size in sizes)) if sizes.least > 0 else sizes
