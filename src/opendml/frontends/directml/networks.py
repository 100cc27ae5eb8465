"""The operators of `directml` that networks are made of: products, convolutions, pooling, normalization,
attention and recurrence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from opendml.frontends.directml.call import output, outputs, present, truth
from opendml.frontends.directml.movement import fill_value_constant
from opendml.frontends.directml.tensors import Expression, tensor
from opendml.frontends.pydirectml import functions
from opendml.frontends.pydirectml.activations import FusedActivation
from opendml.frontends.pydirectml.data_types import DataType, numpy_type
from opendml.frontends.pydirectml.enumerations import (
    ConvolutionDirection,
    ConvolutionMode,
    InterpolationMode,
    MatrixTransform,
    OutputOptions,
    QuantizationType,
    RecurrentNetworkDirection,
    ReduceFunction,
)
from opendml.frontends.pydirectml.expressions import record, reinterpreted
from opendml.frontends.pydirectml.functions import REQUIRED, require
from opendml.spec.outputs import Told

__all__ = [
    "GRUOutputs",
    "MaxPoolingOutputs",
    "average_pooling",
    "batch_normalization",
    "convolution",
    "convolution_integer",
    "dequantize",
    "gemm",
    "gru",
    "local_response_normalization",
    "max_pooling",
    "mean_variance_normalization",
    "multihead_attention",
    "quantized_linear_convolution",
    "roi_align",
    "value_scale_2d",
]


class MaxPoolingOutputs(NamedTuple):
    """What `max_pooling` gives: the greatest elements and, if asked for, where they stood."""

    values: Expression
    indices: Expression | None


class GRUOutputs(NamedTuple):
    """What `gru` gives: all states, the last one, or both; None for what is not asked for."""

    sequence: Expression | None
    single: Expression | None


def convolution(
    input: Expression,
    filter: Expression,
    bias: Expression | None = None,
    mode: ConvolutionMode = ConvolutionMode.CROSS_CORRELATION,
    direction: ConvolutionDirection = ConvolutionDirection.FORWARD,
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    start_padding: Sequence[int] = (),
    end_padding: Sequence[int] = (),
    output_padding: Sequence[int] = (),
    group_count: int = 1,
    fused_activation: FusedActivation | None = None,
    output_sizes: Sequence[int] = (),
) -> Expression:
    """CONVOLUTION. Output sizes of a transposed one that are larger than they follow, by less than a stride,
    stand for output padding."""
    return cast(Expression, functions.convolution(**locals()))


def gemm(
    a: Expression,
    b: Expression,
    c: Expression | None = None,
    trans_a: MatrixTransform = MatrixTransform.NONE,
    trans_b: MatrixTransform = MatrixTransform.NONE,
    alpha: float = 1.0,
    beta: float = 1.0,
    fused_activation: FusedActivation | None = None,
) -> Expression:
    """GEMM: alpha * a @ b + beta * c over the last two axes."""
    return output("GEMM", locals())


def average_pooling(
    input: Expression,
    strides: Sequence[int],
    window_sizes: Sequence[int],
    start_padding: Sequence[int] = (),
    end_padding: Sequence[int] = (),
    dilations: Sequence[int] = (),
    include_padding: bool = False,
    output_sizes: Sequence[int] = (),
) -> Expression:
    """AVERAGE_POOLING1: the averages of windows."""
    return output("AVERAGE_POOLING1", {**locals(), "window_size": window_sizes}, sizes=output_sizes)


def max_pooling(
    input: Expression,
    window_sizes: Sequence[int],
    strides: Sequence[int] = (),
    start_padding: Sequence[int] = (),
    end_padding: Sequence[int] = (),
    dilations: Sequence[int] = (),
    output_indices: bool = False,
) -> MaxPoolingOutputs:
    """MAX_POOLING2: the greatest elements of windows and, if asked for, their positions."""
    wanted = ["output_indices"] if truth(output_indices, "max_pooling.output_indices") else []
    values, indices = outputs("MAX_POOLING2", {**locals(), "window_size": window_sizes}, wanted=wanted)
    return MaxPoolingOutputs(present(values), indices)


def mean_variance_normalization(
    input: Expression,
    scale: Expression | None = None,
    bias: Expression | None = None,
    axes: Sequence[int] = REQUIRED,
    normalize_variance: bool = True,
    normalize_mean: bool = True,
    epsilon: float = 1e-5,
    fused_activation: FusedActivation | None = None,
) -> Expression:
    """MEAN_VARIANCE_NORMALIZATION2: scale * (input - mean) / sqrt(variance + epsilon) + bias, where mean and
    variance are taken over the axes."""
    require("mean_variance_normalization", axes=axes)
    use = {"use_mean": normalize_mean, "use_variance": normalize_variance}
    return output("MEAN_VARIANCE_NORMALIZATION2", {**locals(), **use})


def batch_normalization(
    input: Expression,
    mean: Expression,
    variance: Expression,
    scale: Expression,
    bias: Expression,
    spatial: bool = True,
    epsilon: float = 1e-5,
    fused_activation: FusedActivation | None = None,
) -> Expression:
    """BATCH_NORMALIZATION: scale * (input - mean) / sqrt(variance + epsilon) + bias."""
    return output("BATCH_NORMALIZATION", locals())


def local_response_normalization(
    input: Expression, cross_channel: bool, local_size: int, alpha: float, beta: float, bias: float
) -> Expression:
    """LOCAL_RESPONSE_NORMALIZATION: input / (bias + alpha / local_size * squares around) ** beta."""
    return output("LOCAL_RESPONSE_NORMALIZATION", locals())


def value_scale_2d(input: Expression, scale: float, bias: Sequence[float]) -> Expression:
    """VALUE_SCALE_2D: input * scale + the bias of the channel."""
    return output("VALUE_SCALE_2D", locals())


def multihead_attention(
    query: Expression, key: Expression, value: Expression, head_count: int, scale: float
) -> Expression:
    """MULTIHEAD_ATTENTION without a mask: softmax(scale * query @ key') @ value for each head.

    Args:
        query: [batch, 1, tokens, heads * size]; the result has its tokens.
        key: the same, of its own tokens.
        value: the same, of the key's tokens and a size of its own.
        head_count: how many heads the last axis has.
        scale: what the products are multiplied by, such as 1 / sqrt(size).
    """
    given = {"query": _batch_at(query, 1), "key": _batch_at(key, 1), "value": _batch_at(value, 1)}
    attributes = {"head_count": head_count, "scale": scale, "mask_filter_value": 0.0, "mask_type": "NONE"}
    tokens, size = (tensor(given[name], "multihead_attention").desc.sizes for name in ("query", "value"))
    told = Told(sizes=(*tokens[:-1], size[-1]))
    attended: Any = record("MULTIHEAD_ATTENTION", given, attributes, told=told)[0]
    return _batch_at(attended, 0)


def _batch_at(expression: Expression, axis: int) -> Expression:
    """A tensor of four dimensions with the batch at axis 0 or 1, where the other one is 1."""
    desc = tensor(expression, "multihead_attention").desc
    if len(desc.sizes) != 4 or desc.sizes[axis] != 1:
        return expression
    sizes, strides = ((b, a, *rest) for a, b, *rest in (desc.sizes, desc.effective_strides))
    return reinterpreted(expression, desc.data_type, sizes, None if desc.strides is None else strides)


def gru(
    input: Expression,
    weight: Expression,
    recurrence: Expression,
    bias: Expression | None = None,
    hidden_init: Expression | None = None,
    sequence_lengths: Expression | None = None,
    activation_descs: Sequence[FusedActivation] = REQUIRED,
    direction: RecurrentNetworkDirection = RecurrentNetworkDirection.FORWARD,
    linear_before_reset: bool = True,
    output_options: OutputOptions = OutputOptions.Both,
) -> GRUOutputs:
    """GRU: a layer of gated recurrent units."""
    linear_before_reset = truth(linear_before_reset, "gru.linear_before_reset")
    made: Any = functions.gru(**locals())
    asked = functions.member(OutputOptions, output_options, "gru.output_options")
    return GRUOutputs(
        None if asked == OutputOptions.Single else made.sequence,
        None if asked == OutputOptions.Sequence else made.single,
    )


def roi_align(
    input: Expression,
    roi: Expression,
    batch_indices: Expression,
    *,
    reduction_function: ReduceFunction,
    interpolation_mode: InterpolationMode,
    spatial_scale_x: float,
    spatial_scale_y: float,
    input_pixel_offset: float,
    output_pixel_offset: float,
    out_of_bounds_input_value: float,
    minimum_samples_per_output: int,
    maximum_samples_per_output: int,
    align_regions_to_corners: bool,
    output_height: int,
    output_width: int,
) -> Expression:
    """ROI_ALIGN1: regions of an image in one size, their averages or maxima."""
    channels = tensor(input, "roi_align.input").desc.sizes[1:2]
    regions = tensor(roi, "roi_align.roi").desc.sizes[-2:-1]
    sizes = (*regions, *channels, output_height, output_width)
    return output("ROI_ALIGN1", locals(), sizes=sizes)


def dequantize(
    input: Expression, quantization_parameters: Sequence[Expression], *, quantization_type: QuantizationType
) -> Expression:
    """DEQUANTIZE: (input - zero point) * scale, where a number may be that of a block of elements.

    Args:
        input: whole numbers.
        quantization_parameters: [scale], or [scale, zero point].
        quantization_type: which of them: SCALE or SCALE_ZERO_POINT. Without a zero point, that of unsigned
            numbers is the middle of their range, such as 128, and 0 otherwise.
    """
    parameters, given = list(quantization_parameters), tensor(input, "dequantize.input")
    dtype = numpy_type(given.desc.data_type)
    if quantization_type is QuantizationType.SCALE and len(parameters) == 1 and dtype.kind == "u":
        sizes = tensor(parameters[0], "dequantize.quantization_parameters").desc.sizes
        middle = 1 << (8 * dtype.itemsize - 1)
        parameters.append(fill_value_constant(given.scope, sizes=sizes, value=middle, dtype=dtype))
        quantization_type = QuantizationType.SCALE_ZERO_POINT
    return output(
        "DEQUANTIZE", {"input": input, "quantizations": parameters, "quantization_type": quantization_type}
    )


def convolution_integer(
    input: Expression,
    filter: Expression,
    input_zero_point: Expression | None = None,
    filter_zero_point: Expression | None = None,
    *,
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    start_padding: Sequence[int] = (),
    end_padding: Sequence[int] = (),
    group_count: int = 1,
    output_sizes: Sequence[int] = (),
) -> Expression:
    """CONVOLUTION_INTEGER: the convolution of whole numbers less their zero points, in INT32."""
    return output("CONVOLUTION_INTEGER", locals(), sizes=output_sizes)


def quantized_linear_convolution(
    input: Expression,
    input_scale: Expression,
    filter: Expression,
    filter_scale: Expression,
    output_scale: Expression,
    input_zero_point: Expression | None = None,
    filter_zero_point: Expression | None = None,
    bias: Expression | None = None,
    output_zero_point: Expression | None = None,
    *,
    output_dtype: DataType,
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    start_padding: Sequence[int] = (),
    end_padding: Sequence[int] = (),
    group_count: int = 1,
    output_sizes: Sequence[int] = (),
) -> Expression:
    """QUANTIZED_LINEAR_CONVOLUTION: the convolution of quantized numbers, quantized to INT8 or UINT8."""
    return output("QUANTIZED_LINEAR_CONVOLUTION", locals(), sizes=output_sizes, dtype=output_dtype)
