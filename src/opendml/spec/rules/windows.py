"""Windows that slide over spatial dimensions: convolution, pooling, fold and unfold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from opendml.spec.enums import ConvolutionDirection
from opendml.spec.rules.declared import Broken, rule
from opendml.spec.rules.sizes import expect
from opendml.spec.tensor_desc import TensorDesc

POOLED = "the input, window, strides, dilations and padding given"
FOLDED = "the image, windows, strides, dilations and padding given"
CONVOLVED = "the input, filter, strides, dilations, padding and groups given"


def positions(
    sizes: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    start_padding: Sequence[int],
    end_padding: Sequence[int],
) -> Iterator[int]:
    """How many positions the window has in each dimension: 0 where it is larger than the padded input.

    The pages of the dilated poolings print this without the dilation; a window of 3 elements with dilation 2
    spans 5, and ONNX Runtime's DirectML provider calculates so too.
    """
    spatial = zip(sizes, window, strides, dilations, start_padding, end_padding, strict=True)
    for size, extent, stride, dilation, start, end in spatial:
        span = (extent - 1) * dilation + 1
        yield max(0, (size + start + end - span) // stride + 1)


@rule("AVERAGE_POOLING_GRAD", input_tensor="OutputGradientTensor", output_tensor="InputGradientTensor")
@rule("MAX_POOLING_GRAD", output_tensor="InputGradientTensor")
@rule("AVERAGE_POOLING", "AVERAGE_POOLING1", "QUANTIZED_LINEAR_AVERAGE_POOLING")
@rule("LP_POOLING", "LP_POOLING1", "MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2")
def pooled_sizes(
    input_tensor: TensorDesc,
    output_tensor: TensorDesc,
    window_size: tuple[int, ...],
    strides: tuple[int, ...],
    start_padding: tuple[int, ...],
    end_padding: tuple[int, ...],
    dilations: tuple[int, ...] | None = None,
) -> Broken:
    """One output for each position of the window.

    The pages say that gradients have "typically" the sizes of the forward tensors; with others a position
    would have no window, so they must.
    """
    dilations = (1,) * len(strides) if dilations is None else dilations
    spatial = positions(input_tensor.sizes[2:], window_size, strides, dilations, start_padding, end_padding)
    yield from expect("output_tensor", output_tensor, (*input_tensor.sizes[:2], *spatial), POOLED)


@rule("FOLD", columns_tensor="InputTensor", image_tensor="OutputTensor")
@rule("UNFOLD", columns_tensor="OutputTensor", image_tensor="InputTensor")
def unfolded_sizes(
    columns_tensor: TensorDesc,
    image_tensor: TensorDesc,
    window_sizes: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    start_padding: tuple[int, ...],
    end_padding: tuple[int, ...],
) -> Broken:
    """The columns are (N, C * window elements, window positions), after leading ones.

    The pages say that both tensors have the same number of dimensions, and show columns of 3 dimensions for
    images of 4: both are accepted, the columns of more than 3 with leading ones.
    """
    batch, channels, *image = image_tensor.sizes
    blocks = prod(positions(image, window_sizes, strides, dilations, start_padding, end_padding))
    leading = (1,) * (len(columns_tensor.sizes) - 3)
    expected = (*leading, batch, channels * prod(window_sizes), blocks)
    yield from expect("columns_tensor", columns_tensor, expected, FOLDED)


@rule("CONVOLUTION", "CONVOLUTION_INTEGER", "QUANTIZED_LINEAR_CONVOLUTION")
def convolved_sizes(
    input_tensor: TensorDesc,
    filter_tensor: TensorDesc,
    output_tensor: TensorDesc,
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    start_padding: tuple[int, ...],
    end_padding: tuple[int, ...],
    group_count: int,
    output_padding: tuple[int, ...] | None = None,
    direction: ConvolutionDirection = ConvolutionDirection.FORWARD,
    bias_tensor: TensorDesc | None = None,
) -> Broken:
    """Filter, bias and output sizes for the input, in either direction.

    The pages give no formula; these are ONNX's Conv and ConvTranspose, whose tensors ONNX Runtime hands to
    DirectML unchanged. The output padding is added to the result in both directions.
    """
    batch, channels, *image = input_tensor.sizes
    filters, filter_channels, *window = filter_tensor.sizes
    forward = direction is ConvolutionDirection.FORWARD
    if channels % group_count:
        yield "group_count", f": {group_count}; must divide InputTensor's {channels} channels"
        return
    if forward and filters % group_count:
        yield "group_count", f": {group_count}; must divide FilterTensor's {filters} filters"
        return
    needed = (None, channels // group_count) if forward else (channels, None)
    yield from expect(
        "filter_tensor",
        filter_tensor,
        (*needed, *(None,) * len(window)),
        f"an input of {channels} channels in {group_count} groups {'forward' if forward else 'backward'}",
    )
    out_channels = filters if forward else filter_channels * group_count
    geometry = (image, window, strides, dilations, start_padding, end_padding)
    spatial = positions(*geometry) if forward else _transposed(*geometry)
    padding = output_padding or (0,) * len(image)
    # No output padding makes up for a filter that has no position.
    outputs = [size and size + more for size, more in zip(spatial, padding, strict=True)]
    yield from expect("output_tensor", output_tensor, (batch, out_channels, *outputs), CONVOLVED)
    bias = (1, out_channels, *(1,) * len(image))
    yield from expect("bias_tensor", bias_tensor, bias, f"{out_channels} output channels")


def _transposed(
    sizes: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    start_padding: Sequence[int],
    end_padding: Sequence[int],
) -> Iterator[int]:
    """The sizes over which the window has just so many positions: a convolution backward."""
    spatial = zip(sizes, window, strides, dilations, start_padding, end_padding, strict=True)
    for size, extent, stride, dilation, start, end in spatial:
        yield max(0, (size - 1) * stride + (extent - 1) * dilation + 1 - start - end)
