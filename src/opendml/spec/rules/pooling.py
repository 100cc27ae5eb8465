"""Windows without weights: pooling, and images as columns of what their windows see."""

from __future__ import annotations

from math import prod

from opendml.spec.rules.declared import rule, shape
from opendml.spec.rules.rule import Broken, Sizes, expect, right_aligned
from opendml.spec.rules.windows import windows
from opendml.spec.tensor_desc import TensorDesc

_REASON = "the input, window, strides, dilations and padding given"


@shape(
    "AVERAGE_POOLING", "AVERAGE_POOLING1", "QUANTIZED_LINEAR_AVERAGE_POOLING", reason=_REASON, is_open=True
)
@shape(
    "LP_POOLING", "LP_POOLING1", "MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2", reason=_REASON, is_open=True
)
def pooled_sizes(
    input_tensor: TensorDesc,
    window_size: tuple[int, ...],
    strides: tuple[int, ...],
    start_padding: tuple[int, ...],
    end_padding: tuple[int, ...],
    dilations: tuple[int, ...] | None = None,
) -> Sizes:
    """An output size is (size + paddings - span) / stride + 1, rounded down or up.

    The span is (window - 1) * dilation + 1. DirectML's pages round down, and leave the dilation out.
    DirectML's authors say (DirectML issue 205) that the output's sizes tell how to round, and ONNX Runtime
    rounds up for its ceil_mode.
    """
    batch, channels, *image = input_tensor.sizes
    spatial = windows(image, window_size, strides, dilations, start_padding, end_padding)
    return (batch, channels, *(window.positions for window in spatial))


@rule("AVERAGE_POOLING_GRAD", image_tensor="OutputGradientTensor")
@rule("MAX_POOLING_GRAD", image_tensor="InputTensor")
def pooled_gradient_sizes(
    image_tensor: TensorDesc,
    input_gradient_tensor: TensorDesc,
    window_size: tuple[int, ...],
    strides: tuple[int, ...],
    start_padding: tuple[int, ...],
    end_padding: tuple[int, ...],
    dilations: tuple[int, ...] | None = None,
) -> Broken:
    """The gradient that comes in has the sizes of the forward operator's output.

    DirectML's pages call that typical; with others a position would have no window.
    """
    expected = pooled_sizes(image_tensor, window_size, strides, start_padding, end_padding, dilations)
    yield from expect("input_gradient_tensor", input_gradient_tensor, expected, _REASON)


@shape("UNFOLD", reason="the image, windows, strides, dilations and padding given", leading_ones=True)
def unfolded_sizes(
    input_tensor: TensorDesc,
    window_sizes: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    start_padding: tuple[int, ...],
    end_padding: tuple[int, ...],
) -> Sizes:
    """The columns are (N, C * window elements, window positions), after leading ones.

    DirectML's pages say that both tensors have the same number of dimensions, and show columns of 3
    dimensions for images of 4, as ONNX Runtime gives them: both are accepted.
    """
    batch, channels, *image = input_tensor.sizes
    spatial = windows(image, window_sizes, strides, dilations, start_padding, end_padding)
    blocks = prod(window.positions.usual for window in spatial)
    return (batch, channels * prod(window_sizes), blocks)


@rule("FOLD")
def folded_columns(
    input_tensor: TensorDesc,
    output_tensor: TensorDesc,
    window_sizes: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    start_padding: tuple[int, ...],
    end_padding: tuple[int, ...],
) -> Broken:
    """The input has the columns that UNFOLD makes of an image of the output's sizes."""
    columns = unfolded_sizes(output_tensor, window_sizes, strides, dilations, start_padding, end_padding)
    expected = right_aligned(columns, len(input_tensor.sizes))
    reason = "the image, windows, strides, dilations and padding given"
    yield from expect("input_tensor", input_tensor, expected, reason)
