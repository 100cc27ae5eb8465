"""Windows without weights: pooling, and images as columns of what their windows see."""

from __future__ import annotations

from math import prod

from opendml.spec.rules.declared import Broken, rule
from opendml.spec.rules.sizes import Size, expect
from opendml.spec.rules.windows import windows
from opendml.spec.tensor_desc import TensorDesc


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
    """An output size is (size + paddings - span) / stride + 1, rounded down or up.

    The span is (window - 1) * dilation + 1. DirectML's pages round down, and leave the dilation out.
    DirectML's authors say (DirectML issue 205) that the output's sizes tell how to round, and ONNX Runtime
    rounds up for its ceil_mode. Gradients must have the sizes of the forward tensors, which DirectML's pages
    only call typical: with others a position would have no window.
    """
    batch, channels, *image = input_tensor.sizes
    spatial = windows(image, window_size, strides, dilations, start_padding, end_padding)
    expected: list[Size] = [batch, channels, *(window.positions for window in spatial)]
    reason = "the input, window, strides, dilations and padding given"
    yield from expect("output_tensor", output_tensor, expected, reason)


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

    DirectML's pages say that both tensors have the same number of dimensions, and show columns of 3
    dimensions for images of 4, as ONNX Runtime gives them: both are accepted.
    """
    batch, channels, *image = image_tensor.sizes
    spatial = windows(image, window_sizes, strides, dilations, start_padding, end_padding)
    blocks = prod(window.positions.start for window in spatial)
    leading = (1,) * (len(columns_tensor.sizes) - 3)
    expected = (*leading, batch, channels * prod(window_sizes), blocks)
    reason = "the image, windows, strides, dilations and padding given"
    yield from expect("columns_tensor", columns_tensor, expected, reason)
