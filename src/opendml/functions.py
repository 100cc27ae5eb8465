"""Immediate functions: one per operator, arrays in, arrays out.

Generated from opendml/spec/data by `python -m tools.generate`: change the data instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Never, TypeVar, overload

from opendml.runtime.calls.arguments import hide_unknown, unexpected
from opendml.runtime.calls.immediate import call, call_several
from opendml.spec.enums import (
    AxisDirection,
    ConvolutionDirection,
    ConvolutionMode,
    DepthSpaceOrder,
    InterpolationMode,
    IsInfinityMode,
    MatrixTransform,
    MultiheadAttentionMaskType,
    PaddingMode,
    QuantizationType,
    RandomGeneratorType,
    RecurrentNetworkDirection,
    ReduceFunction,
    RoundingMode,
)
from opendml.spec.operator_desc import OperatorDesc, ScaleBias, Size2D
from opendml.spec.plain import DataTypeLike

if TYPE_CHECKING:
    from opendml.outputs import (
        AdamOptimizerOutputs,
        BatchNormalizationGradOutputs,
        BatchNormalizationTrainingGradOutputs,
        BatchNormalizationTrainingOutputs,
        DynamicQuantizeLinearOutputs,
        GruOutputs,
        LstmOutputs,
        MaxPooling1Outputs,
        MaxPooling2Outputs,
        MultiheadAttention1Outputs,
        MultiheadAttentionOutputs,
        NonzeroCoordinatesOutputs,
        RandomGeneratorOutputs,
        RnnOutputs,
        RoiAlignGradOutputs,
        TopK1Outputs,
        TopKOutputs,
    )
    from opendml.runtime.memory.host_array import Array
    from opendml.runtime.objects.device import Device

T = TypeVar("T")

__all__ = [
    "activation_celu",
    "activation_elu",
    "activation_gelu",
    "activation_hard_sigmoid",
    "activation_hard_swish",
    "activation_hardmax",
    "activation_hardmax1",
    "activation_identity",
    "activation_leaky_relu",
    "activation_linear",
    "activation_log_softmax",
    "activation_log_softmax1",
    "activation_parameterized_relu",
    "activation_parametric_softplus",
    "activation_relu",
    "activation_relu_grad",
    "activation_scaled_elu",
    "activation_scaled_tanh",
    "activation_shrink",
    "activation_sigmoid",
    "activation_softmax",
    "activation_softmax1",
    "activation_softplus",
    "activation_softsign",
    "activation_swish",
    "activation_tanh",
    "activation_thresholded_relu",
    "adam_optimizer",
    "argmax",
    "argmin",
    "average_pooling",
    "average_pooling1",
    "average_pooling_grad",
    "batch_normalization",
    "batch_normalization_grad",
    "batch_normalization_training",
    "batch_normalization_training_grad",
    "cast",
    "convolution",
    "convolution_integer",
    "cumulative_product",
    "cumulative_summation",
    "depth_to_space",
    "depth_to_space1",
    "dequantize",
    "diagonal_matrix",
    "diagonal_matrix1",
    "dynamic_quantize_linear",
    "element_wise_abs",
    "element_wise_acos",
    "element_wise_acosh",
    "element_wise_add",
    "element_wise_add1",
    "element_wise_asin",
    "element_wise_asinh",
    "element_wise_atan",
    "element_wise_atan_yx",
    "element_wise_atanh",
    "element_wise_bit_and",
    "element_wise_bit_count",
    "element_wise_bit_not",
    "element_wise_bit_or",
    "element_wise_bit_shift_left",
    "element_wise_bit_shift_right",
    "element_wise_bit_xor",
    "element_wise_ceil",
    "element_wise_clip",
    "element_wise_clip1",
    "element_wise_clip_grad",
    "element_wise_clip_grad1",
    "element_wise_constant_pow",
    "element_wise_cos",
    "element_wise_cosh",
    "element_wise_dequantize_linear",
    "element_wise_difference_square",
    "element_wise_divide",
    "element_wise_erf",
    "element_wise_exp",
    "element_wise_floor",
    "element_wise_identity",
    "element_wise_if",
    "element_wise_is_infinity",
    "element_wise_is_nan",
    "element_wise_log",
    "element_wise_logical_and",
    "element_wise_logical_equals",
    "element_wise_logical_greater_than",
    "element_wise_logical_greater_than_or_equal",
    "element_wise_logical_less_than",
    "element_wise_logical_less_than_or_equal",
    "element_wise_logical_not",
    "element_wise_logical_or",
    "element_wise_logical_xor",
    "element_wise_max",
    "element_wise_mean",
    "element_wise_min",
    "element_wise_modulus_floor",
    "element_wise_modulus_truncate",
    "element_wise_multiply",
    "element_wise_negate",
    "element_wise_pow",
    "element_wise_quantize_linear",
    "element_wise_quantized_linear_add",
    "element_wise_recip",
    "element_wise_round",
    "element_wise_sign",
    "element_wise_sin",
    "element_wise_sinh",
    "element_wise_sqrt",
    "element_wise_subtract",
    "element_wise_tan",
    "element_wise_tanh",
    "element_wise_threshold",
    "fill_value_constant",
    "fill_value_sequence",
    "fold",
    "gather",
    "gather_elements",
    "gather_nd",
    "gather_nd1",
    "gemm",
    "gru",
    "join",
    "local_response_normalization",
    "local_response_normalization_grad",
    "lp_normalization",
    "lp_pooling",
    "lp_pooling1",
    "lstm",
    "matrix_multiply_integer",
    "matrix_multiply_integer_to_float",
    "max_pooling",
    "max_pooling1",
    "max_pooling2",
    "max_pooling_grad",
    "max_unpooling",
    "mean_variance_normalization",
    "mean_variance_normalization1",
    "mean_variance_normalization2",
    "multihead_attention",
    "multihead_attention1",
    "nonzero_coordinates",
    "one_hot",
    "padding",
    "padding1",
    "quantize",
    "quantized_linear_average_pooling",
    "quantized_linear_convolution",
    "quantized_linear_matrix_multiply",
    "random_generator",
    "reduce",
    "resample",
    "resample1",
    "resample2",
    "resample3",
    "resample_grad",
    "resample_grad1",
    "reverse_subsequences",
    "rnn",
    "roi_align",
    "roi_align1",
    "roi_align_grad",
    "roi_pooling",
    "scatter",
    "scatter_nd",
    "slice",
    "slice1",
    "slice_grad",
    "space_to_depth",
    "space_to_depth1",
    "split",
    "tile",
    "top_k",
    "top_k1",
    "unfold",
    "upsample_2d",
    "value_scale_2d",
]


def element_wise_identity(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Copies each input element to the output, optionally after a scale and bias.

        f(x) = x

    DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.501.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 to 5 below 3_0). Input, any sizes.
        scale_bias: Scale and bias: the operator is applied to x * scale + bias; absent: to x.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64, INT64, UINT64 from 4_1;
        1 to 8 dimensions (4 to 5 below 3_0). Same DataType, DimensionCount and Sizes as InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_identity, unknown)
    results: T = call("ELEMENT_WISE_IDENTITY", (input,), (scale_bias,), out, device)
    return results


def element_wise_abs(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise absolute value.

        f(x) = abs(x)

    DML_ELEMENT_WISE_ABS_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8 from 2_1; INT64 from 4_1; 1 to 8 dimensions (4
            below 3_0). Input, any sizes.
        scale_bias: Scale and bias: the operator is applied to x * scale + bias; absent: to x.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8 from 2_1; INT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Same
        DataType, DimensionCount and Sizes as InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_abs, unknown)
    results: T = call("ELEMENT_WISE_ABS", (input,), (scale_bias,), out, device)
    return results


def element_wise_acos(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise arccosine.

        f(x) = acos(x)

    DML_ELEMENT_WISE_ACOS_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.148, FLOAT16 0.502.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        scale_bias: Scale and bias: the operator is applied to x * scale + bias; absent: to x.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
        InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_acos, unknown)
    results: T = call("ELEMENT_WISE_ACOS", (input,), (scale_bias,), out, device)
    return results


def element_wise_add(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise sum of two tensors.

        f(a, b) = a + b

    DML_ELEMENT_WISE_ADD_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    ATensor or BTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.5.

    Args:
        a: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT64, UINT64 from 4_1; INT16, INT8, UINT16, UINT8
            from 5_1; 1 to 8 dimensions (4 to 5 below 3_0). left-hand operand.
        b: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT64, UINT64 from 4_1; INT16, INT8, UINT16, UINT8
            from 5_1; 1 to 8 dimensions (4 to 5 below 3_0). right-hand operand; same DataType, DimensionCount
            and Sizes as ATensor.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT64, UINT64 from 4_1; INT16, INT8, UINT16, UINT8 from 5_1;
        1 to 8 dimensions (4 to 5 below 3_0). Same DataType, DimensionCount and Sizes as ATensor.
    """
    if unknown:
        raise unexpected(element_wise_add, unknown)
    results: T = call("ELEMENT_WISE_ADD", (a, b), (), out, device)
    return results


def element_wise_asin(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise arcsine.

        f(x) = asin(x)

    DML_ELEMENT_WISE_ASIN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.656, FLOAT16 0.502.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        scale_bias: Scale and bias: the operator is applied to x * scale + bias; absent: to x.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
        InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_asin, unknown)
    results: T = call("ELEMENT_WISE_ASIN", (input,), (scale_bias,), out, device)
    return results


def element_wise_atan(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise arctangent.

        f(x) = atan(x)

    DML_ELEMENT_WISE_ATAN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.422, FLOAT16 0.509.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        scale_bias: Scale and bias: the operator is applied to x * scale + bias; absent: to x.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
        InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_atan, unknown)
    results: T = call("ELEMENT_WISE_ATAN", (input,), (scale_bias,), out, device)
    return results


def element_wise_ceil(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Rounds each element up to the nearest integer value.

        f(x) = ceil(x)

    DML_ELEMENT_WISE_CEIL_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        scale_bias: Scale and bias: the operator is applied to x * scale + bias; absent: to x.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
        InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_ceil, unknown)
    results: T = call("ELEMENT_WISE_CEIL", (input,), (scale_bias,), out, device)
    return results


def element_wise_clip(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    min: float,
    max: float,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Clamps each element to the closed interval [Min, Max].

        f(x) = max(Min, min(x, Max))

    DML_ELEMENT_WISE_CLIP_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.498.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from
            5_0; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        scale_bias: Scale and bias: the operator is applied to x * scale + bias; absent: to x.
        min: Lower bound; smaller values become Min.
        max: Upper bound; larger values become Max.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from 5_0; 1 to 8
        dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_clip, unknown)
    results: T = call("ELEMENT_WISE_CLIP", (input,), (scale_bias, min, max), out, device)
    return results


def element_wise_clip1(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    min_max_data_type: DataTypeLike | None = None,
    min: int | float,
    max: int | float,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Clamps each element to [Min, Max], with bounds given in a typed scalar union.

        f(x) = max(Min, min(x, Max))

    DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_0. OutputTensor may be the same memory as
    InputTensor.

    Args:
        input: input, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8; 1 to 8
            dimensions. Input, any sizes.
        scale_bias: Scale and bias: the operator is applied to x * scale + bias; absent: to x.
        min_max_data_type: DML_TENSOR_DATA_TYPE of Min and Max; must equal OutputTensor.DataType. When None,
            that of input.
        min: Lower bound, read as MinMaxDataType; smaller values become Min.
        max: Upper bound, read as MinMaxDataType; larger values become Max.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8; 1 to 8 dimensions. Same
        DataType, DimensionCount and Sizes as InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_clip1, unknown)
    results: T = call("ELEMENT_WISE_CLIP1", (input,), (scale_bias, min_max_data_type, min, max), out, device)
    return results


def element_wise_clip_grad(
    input: T | float,
    input_gradient: T | float,
    *,
    min: float,
    max: float,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Backpropagation gradient of element-wise CLIP: passes the gradient through strictly inside (Min, Max),
    zero elsewhere.

        f(x, gradient) = 0 if x <= Min; 0 if x >= Max; gradient otherwise

    DML_ELEMENT_WISE_CLIP_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_1. OutputGradientTensor may be the same
    memory as InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.

    Args:
        input: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 5_0; 1
            to 8 dimensions. X, normally the InputTensor of the forward CLIP.
        input_gradient: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from
            5_0; 1 to 8 dimensions. Incoming gradient, normally with the sizes of the forward output.
        min: X at or below it gives gradient 0.
        max: X at or above it gives gradient 0.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 5_0; 1 to 8
        dimensions. Resulting gradient, normally with the sizes of the forward input.
    """
    if unknown:
        raise unexpected(element_wise_clip_grad, unknown)
    results: T = call("ELEMENT_WISE_CLIP_GRAD", (input, input_gradient), (min, max), out, device)
    return results


def element_wise_clip_grad1(
    input: T | float,
    input_gradient: T | float,
    *,
    min_max_data_type: DataTypeLike | None = None,
    min: int | float,
    max: int | float,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Backpropagation gradient of element-wise CLIP1: passes the gradient through strictly inside (Min, Max),
    zero elsewhere.

        f(x, gradient) = 0 if x <= Min; 0 if x >= Max; gradient otherwise

    DML_ELEMENT_WISE_CLIP_GRAD1_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_0. OutputGradientTensor may be the
    same memory as InputTensor.

    Args:
        input: input, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8; 1 to 8
            dimensions. X, normally the InputTensor of the forward CLIP1.
        input_gradient: input, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8; 1
            to 8 dimensions. Incoming gradient, normally with the sizes of the forward output.
        min_max_data_type: DML_TENSOR_DATA_TYPE of Min and Max; must equal OutputTensor.DataType. When None,
            that of input.
        min: Read as MinMaxDataType; x at or below it gives gradient 0.
        max: Read as MinMaxDataType; x at or above it gives gradient 0.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8; 1 to 8 dimensions.
        Resulting gradient, normally with the sizes of the forward input.
    """
    if unknown:
        raise unexpected(element_wise_clip_grad1, unknown)
    results: T = call(
        "ELEMENT_WISE_CLIP_GRAD1",
        (input, input_gradient),
        (min_max_data_type, min, max),
        out,
        device,
    )
    return results


def element_wise_cos(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise trigonometric cosine.

        f(x) = cos(x)

    DML_ELEMENT_WISE_COS_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.51, FLOAT16 0.528.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        scale_bias: Scale and bias: the operator is applied to x * scale + bias; absent: to x.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
        InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_cos, unknown)
    results: T = call("ELEMENT_WISE_COS", (input,), (scale_bias,), out, device)
    return results


def element_wise_divide(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise quotient of ATensor over BTensor.

        f(a, b) = a / b

    DML_ELEMENT_WISE_DIVIDE_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    ATensor or BTensor.

    An integer divided by zero gives all bits one, as on Direct3D: the greatest unsigned number, -1. The least
    integer divided by -1 wraps to itself.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.5.

    Args:
        a: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT16, INT8, UINT16, UINT8 from 5_1; INT64, UINT64
            from 6_0; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT16, INT8, UINT16, UINT8 from 5_1; INT64, UINT64
            from 6_0; 1 to 8 dimensions (4 below 3_0). right-hand operand; same DataType, DimensionCount and
            Sizes as ATensor.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT16, INT8, UINT16, UINT8 from 5_1; INT64, UINT64 from 6_0;
        1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as ATensor.
    """
    if unknown:
        raise unexpected(element_wise_divide, unknown)
    results: T = call("ELEMENT_WISE_DIVIDE", (a, b), (), out, device)
    return results


def element_wise_exp(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise natural exponential.

        f(x) = exp(x)

    DML_ELEMENT_WISE_EXP_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.889, FLOAT16 0.508.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        scale_bias: Scale and bias: the operator is applied to x * scale + bias; absent: to x.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
        InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_exp, unknown)
    results: T = call("ELEMENT_WISE_EXP", (input,), (scale_bias,), out, device)
    return results


def element_wise_floor(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Rounds each element down to the nearest integer value.

        f(x) = floor(x)

    DML_ELEMENT_WISE_FLOOR_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        scale_bias: Scale and bias: the operator is applied to x * scale + bias; absent: to x.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
        InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_floor, unknown)
    results: T = call("ELEMENT_WISE_FLOOR", (input,), (scale_bias,), out, device)
    return results


def element_wise_log(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise natural (base e) logarithm.

        f(x) = ln(x)

    DML_ELEMENT_WISE_LOG_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.749, FLOAT16 0.515.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        scale_bias: Scale and bias: the operator is applied to x * scale + bias; absent: to x.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
        InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_log, unknown)
    results: T = call("ELEMENT_WISE_LOG", (input,), (scale_bias,), out, device)
    return results


def element_wise_logical_and(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise logical AND of two tensors.

        f(a, b) = (a && b)

    DML_ELEMENT_WISE_LOGICAL_AND_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same
    memory as ATensor or BTensor.

    Args:
        a: input, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b: input, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). right-hand operand; same DataType,
            DimensionCount and Sizes as ATensor.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
        ATensor.
    """
    if unknown:
        raise unexpected(element_wise_logical_and, unknown)
    results: T = call("ELEMENT_WISE_LOGICAL_AND", (a, b), (), out, device)
    return results


@overload
def element_wise_logical_equals(
    a: Array | float,
    b: Array | float,
    *,
    output_type: DataTypeLike | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def element_wise_logical_equals(
    a: T | float,
    b: T | float,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def element_wise_logical_equals(
    a: T | float,
    b: T | float,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise comparison: equal.

        f(a, b) = (a == b)

    DML_ELEMENT_WISE_LOGICAL_EQUALS_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Args:
        a: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from
            4_1; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from
            4_1; 1 to 8 dimensions (4 below 3_0). right-hand operand; same DataType, DimensionCount and Sizes
            as ATensor.
        output_type: The type of the output; that of `out` when None, or UINT8.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). Same DimensionCount and Sizes as ATensor; its
        DataType is independent of the inputs.
    """
    if unknown:
        raise unexpected(element_wise_logical_equals, unknown)
    results: T = call("ELEMENT_WISE_LOGICAL_EQUALS", (a, b), (), out, device, output_type=output_type)
    return results


@overload
def element_wise_logical_greater_than(
    a: Array | float,
    b: Array | float,
    *,
    output_type: DataTypeLike | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def element_wise_logical_greater_than(
    a: T | float,
    b: T | float,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def element_wise_logical_greater_than(
    a: T | float,
    b: T | float,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise comparison: greater than.

        f(a, b) = (a > b)

    DML_ELEMENT_WISE_LOGICAL_GREATER_THAN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Args:
        a: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from
            4_1; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from
            4_1; 1 to 8 dimensions (4 below 3_0). right-hand operand; same DataType, DimensionCount and Sizes
            as ATensor.
        output_type: The type of the output; that of `out` when None, or UINT8.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). Same DimensionCount and Sizes as ATensor; its
        DataType is independent of the inputs.
    """
    if unknown:
        raise unexpected(element_wise_logical_greater_than, unknown)
    results: T = call("ELEMENT_WISE_LOGICAL_GREATER_THAN", (a, b), (), out, device, output_type=output_type)
    return results


@overload
def element_wise_logical_less_than(
    a: Array | float,
    b: Array | float,
    *,
    output_type: DataTypeLike | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def element_wise_logical_less_than(
    a: T | float,
    b: T | float,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def element_wise_logical_less_than(
    a: T | float,
    b: T | float,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise comparison: less than.

        f(a, b) = (a < b)

    DML_ELEMENT_WISE_LOGICAL_LESS_THAN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Args:
        a: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from
            4_1; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from
            4_1; 1 to 8 dimensions (4 below 3_0). right-hand operand; same DataType, DimensionCount and Sizes
            as ATensor.
        output_type: The type of the output; that of `out` when None, or UINT8.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). Same DimensionCount and Sizes as ATensor; its
        DataType is independent of the inputs.
    """
    if unknown:
        raise unexpected(element_wise_logical_less_than, unknown)
    results: T = call("ELEMENT_WISE_LOGICAL_LESS_THAN", (a, b), (), out, device, output_type=output_type)
    return results


@overload
def element_wise_logical_greater_than_or_equal(
    a: Array | float,
    b: Array | float,
    *,
    output_type: DataTypeLike | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def element_wise_logical_greater_than_or_equal(
    a: T | float,
    b: T | float,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def element_wise_logical_greater_than_or_equal(
    a: T | float,
    b: T | float,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise comparison: greater than or equal.

        f(a, b) = (a >= b)

    DML_ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Args:
        a: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 4_1; 1 to 8
            dimensions. left-hand operand.
        b: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 4_1; 1 to 8
            dimensions. right-hand operand; same DataType, DimensionCount and Sizes as ATensor.
        output_type: The type of the output; that of `out` when None, or UINT8.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT32, UINT8; 1 to 8 dimensions. Same DimensionCount and Sizes as ATensor; its DataType is
        independent of the inputs.
    """
    if unknown:
        raise unexpected(element_wise_logical_greater_than_or_equal, unknown)
    results: T = call(
        "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL",
        (a, b),
        (),
        out,
        device,
        output_type=output_type,
    )
    return results


@overload
def element_wise_logical_less_than_or_equal(
    a: Array | float,
    b: Array | float,
    *,
    output_type: DataTypeLike | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def element_wise_logical_less_than_or_equal(
    a: T | float,
    b: T | float,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def element_wise_logical_less_than_or_equal(
    a: T | float,
    b: T | float,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise comparison: less than or equal.

        f(a, b) = (a <= b)

    DML_ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Args:
        a: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 4_1; 1 to 8
            dimensions. left-hand operand.
        b: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 4_1; 1 to 8
            dimensions. right-hand operand; same DataType, DimensionCount and Sizes as ATensor.
        output_type: The type of the output; that of `out` when None, or UINT8.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT32, UINT8; 1 to 8 dimensions. Same DimensionCount and Sizes as ATensor; its DataType is
        independent of the inputs.
    """
    if unknown:
        raise unexpected(element_wise_logical_less_than_or_equal, unknown)
    results: T = call(
        "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL",
        (a, b),
        (),
        out,
        device,
        output_type=output_type,
    )
    return results


def element_wise_logical_not(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise logical NOT.

        f(x) = !x

    DML_ELEMENT_WISE_LOGICAL_NOT_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same
    memory as InputTensor.

    Args:
        input: input, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
        InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_logical_not, unknown)
    results: T = call("ELEMENT_WISE_LOGICAL_NOT", (input,), (), out, device)
    return results


def element_wise_logical_or(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise logical OR of two tensors.

        f(a, b) = (a || b)

    DML_ELEMENT_WISE_LOGICAL_OR_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as ATensor or BTensor.

    Args:
        a: input, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b: input, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). right-hand operand; same DataType,
            DimensionCount and Sizes as ATensor.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
        ATensor.
    """
    if unknown:
        raise unexpected(element_wise_logical_or, unknown)
    results: T = call("ELEMENT_WISE_LOGICAL_OR", (a, b), (), out, device)
    return results


def element_wise_logical_xor(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise logical exclusive OR of two tensors.

        f(a, b) = (!!a) != (!!b)

    DML_ELEMENT_WISE_LOGICAL_XOR_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same
    memory as ATensor or BTensor.

    Args:
        a: input, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b: input, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). right-hand operand; same DataType,
            DimensionCount and Sizes as ATensor.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
        ATensor.
    """
    if unknown:
        raise unexpected(element_wise_logical_xor, unknown)
    results: T = call("ELEMENT_WISE_LOGICAL_XOR", (a, b), (), out, device)
    return results


def element_wise_max(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise larger of two tensors.

        f(a, b) = max(a, b)

    DML_ELEMENT_WISE_MAX_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    ATensor or BTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.

    Args:
        a: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from
            5_0; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from
            5_0; 1 to 8 dimensions (4 below 3_0). right-hand operand; same DataType, DimensionCount and Sizes
            as ATensor.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from 5_0; 1 to 8
        dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as ATensor.
    """
    if unknown:
        raise unexpected(element_wise_max, unknown)
    results: T = call("ELEMENT_WISE_MAX", (a, b), (), out, device)
    return results


def element_wise_mean(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise average of two tensors.

        f(a, b) = (a + b) / 2

    DML_ELEMENT_WISE_MEAN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    ATensor or BTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1, FLOAT16 0.5.

    Args:
        a: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; 1 to 8 dimensions (4 below 3_0). left-hand
            operand.
        b: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; 1 to 8 dimensions (4 below 3_0). right-hand
            operand; same DataType, DimensionCount and Sizes as ATensor.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, UINT32 from 2_1; 1 to 8 dimensions (4 below 3_0). Same DataType,
        DimensionCount and Sizes as ATensor.
    """
    if unknown:
        raise unexpected(element_wise_mean, unknown)
    results: T = call("ELEMENT_WISE_MEAN", (a, b), (), out, device)
    return results


def element_wise_min(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise smaller of two tensors.

        f(a, b) = min(a, b)

    DML_ELEMENT_WISE_MIN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    ATensor or BTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.

    Args:
        a: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from
            5_0; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from
            5_0; 1 to 8 dimensions (4 below 3_0). right-hand operand; same DataType, DimensionCount and Sizes
            as ATensor.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from 5_0; 1 to 8
        dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as ATensor.
    """
    if unknown:
        raise unexpected(element_wise_min, unknown)
    results: T = call("ELEMENT_WISE_MIN", (a, b), (), out, device)
    return results


def element_wise_multiply(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise product of two tensors.

        f(a, b) = a * b

    DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as ATensor or BTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.5.

    Args:
        a: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT64, UINT64 from 4_1; INT16, INT8, UINT16, UINT8
            from 5_1; 1 to 8 dimensions (4 to 5 below 3_0). left-hand operand.
        b: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT64, UINT64 from 4_1; INT16, INT8, UINT16, UINT8
            from 5_1; 1 to 8 dimensions (4 to 5 below 3_0). right-hand operand; same DataType, DimensionCount
            and Sizes as ATensor.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT64, UINT64 from 4_1; INT16, INT8, UINT16, UINT8 from 5_1;
        1 to 8 dimensions (4 to 5 below 3_0). Same DataType, DimensionCount and Sizes as ATensor.
    """
    if unknown:
        raise unexpected(element_wise_multiply, unknown)
    results: T = call("ELEMENT_WISE_MULTIPLY", (a, b), (), out, device)
    return results


def element_wise_pow(
    input: T | float,
    exponent: T | float,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Raises each input element to the power of the matching exponent element.

        f(input, exponent) = pow(input, exponent)

    DML_ELEMENT_WISE_POW_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Integers to integers are exact, modulo the range of the type. A negative exponent gives the reciprocal,
    truncated: 0 unless x is 1 or -1; 0 to a negative exponent is 0. Of an integer with a float exponent the
    result is truncated; it is as exact as with an integer where the exponent is whole and below 2^31. An
    integer exponent of a float is rounded to FLOAT32, but decides the sign before.

    Greatest distance from the exact result, in ULP: FLOAT32 0.903, FLOAT16 0.508.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 3_0; 1 to 8 dimensions
            (4 below 3_0). Base.
        exponent: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 3_0; 1 to 8
            dimensions (4 below 3_0). Exponent; same DimensionCount and Sizes as InputTensor; from 3_0 its
            DataType may differ from InputTensor's.
        scale_bias: Scale and bias: the operator is applied to x * scale + bias; absent: to x (applies to
            InputTensor, not to ExponentTensor).
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 3_0; 1 to 8 dimensions (4 below 3_0).
        Same DataType, DimensionCount and Sizes as InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_pow, unknown)
    results: T = call("ELEMENT_WISE_POW", (input, exponent), (scale_bias,), out, device)
    return results


def element_wise_constant_pow(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    exponent: float,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Raises each element to a constant exponent.

        f(x) = pow(x, Exponent)

    DML_ELEMENT_WISE_CONSTANT_POW_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same
    memory as InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.288, FLOAT16 0.51.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        scale_bias: Scale and bias: the operator is applied to x * scale + bias; absent: to x.
        exponent: Exponent applied to every element.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
        InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_constant_pow, unknown)
    results: T = call("ELEMENT_WISE_CONSTANT_POW", (input,), (scale_bias, exponent), out, device)
    return results


def element_wise_recip(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise reciprocal.

        f(x) = 1 / x

    DML_ELEMENT_WISE_RECIP_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.5.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        scale_bias: Scale and bias: the operator is applied to x * scale + bias; absent: to x.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
        InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_recip, unknown)
    results: T = call("ELEMENT_WISE_RECIP", (input,), (scale_bias,), out, device)
    return results


def element_wise_sin(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise trigonometric sine.

        f(x) = sin(x)

    DML_ELEMENT_WISE_SIN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.524, FLOAT16 0.528.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        scale_bias: Scale and bias: the operator is applied to x * scale + bias; absent: to x.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
        InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_sin, unknown)
    results: T = call("ELEMENT_WISE_SIN", (input,), (scale_bias,), out, device)
    return results


def element_wise_sqrt(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise square root.

        f(x) = sqrt(x)

    DML_ELEMENT_WISE_SQRT_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.5.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        scale_bias: Scale and bias: the operator is applied to x * scale + bias; absent: to x.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
        InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_sqrt, unknown)
    results: T = call("ELEMENT_WISE_SQRT", (input,), (scale_bias,), out, device)
    return results


def element_wise_difference_square(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Square of the element-wise difference.

        f(a, b) = (a - b) * (a - b)

    DML_ELEMENT_WISE_DIFFERENCE_SQUARE_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_1. OutputTensor may be the same
    memory as ATensor or BTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.914, FLOAT16 0.501.

    Args:
        a: input, FLOAT32, FLOAT16, INT32, UINT32; 1 to 8 dimensions. left-hand operand.
        b: input, FLOAT32, FLOAT16, INT32, UINT32; 1 to 8 dimensions. right-hand operand; same DataType,
            DimensionCount and Sizes as ATensor.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, UINT32; 1 to 8 dimensions. Same DataType, DimensionCount and Sizes as
        ATensor.
    """
    if unknown:
        raise unexpected(element_wise_difference_square, unknown)
    results: T = call("ELEMENT_WISE_DIFFERENCE_SQUARE", (a, b), (), out, device)
    return results


def element_wise_atan_yx(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Two-argument arctangent with ATensor as the y axis and BTensor as the x axis.

        f(y, x) = atan2(y, x), y from ATensor, x from BTensor

    DML_ELEMENT_WISE_ATAN_YX_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_1. OutputTensor may be the same memory as
    ATensor or BTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.74, FLOAT16 0.507.

    Args:
        a: input, FLOAT32, FLOAT16; 1 to 8 dimensions. y-axis values.
        b: input, FLOAT32, FLOAT16; 1 to 8 dimensions. x-axis values; same DataType, DimensionCount and Sizes
            as ATensor.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions. Same DataType, DimensionCount and Sizes as ATensor.
    """
    if unknown:
        raise unexpected(element_wise_atan_yx, unknown)
    results: T = call("ELEMENT_WISE_ATAN_YX", (a, b), (), out, device)
    return results


def element_wise_subtract(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise difference: B is taken away from A.

        f(a, b) = a - b

    DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as ATensor or BTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.5.

    Args:
        a: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT64, UINT64 from 4_1; INT16, INT8, UINT16, UINT8
            from 5_1; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT64, UINT64 from 4_1; INT16, INT8, UINT16, UINT8
            from 5_1; 1 to 8 dimensions (4 below 3_0). right-hand operand.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT64, UINT64 from 4_1; INT16, INT8, UINT16, UINT8 from 5_1;
        1 to 8 dimensions (4 below 3_0). Same sizes as the inputs (broadcast only through zero strides, Sizes
        must still match).
    """
    if unknown:
        raise unexpected(element_wise_subtract, unknown)
    results: T = call("ELEMENT_WISE_SUBTRACT", (a, b), (), out, device)
    return results


def element_wise_tan(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Tangent of each element (trigonometric).

        f(x) = tan(x), with x first mapped by x * Scale + Bias when ScaleBias is present

    DML_ELEMENT_WISE_TAN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 2.697, FLOAT16 0.506.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Any sizes.
        scale_bias: When present g(x) = x * Scale + Bias is applied to each input element before the operator.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_tan, unknown)
    results: T = call("ELEMENT_WISE_TAN", (input,), (scale_bias,), out, device)
    return results


def element_wise_threshold(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    min: float,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Clamps every element from below at Min.

        f(x) = max(x, Min), where max is the larger of the two; x first mapped by x * Scale + Bias when
            ScaleBias is present

    DML_ELEMENT_WISE_THRESHOLD_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.496.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; 1 to 8 dimensions
            (4 below 3_0). Any sizes.
        scale_bias: When present g(x) = x * Scale + Bias is applied to each input element before the operator.
        min: Lower bound; elements under it become Min.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; 1 to 8 dimensions (4 below 3_0).
        Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(element_wise_threshold, unknown)
    results: T = call("ELEMENT_WISE_THRESHOLD", (input,), (scale_bias, min), out, device)
    return results


@overload
def element_wise_quantize_linear(
    input: Array | float,
    scale: Array | float,
    zero_point: Array | float | None = None,
    *,
    output_type: DataTypeLike | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def element_wise_quantize_linear(
    input: T | float,
    scale: T | float,
    zero_point: T | float | None = None,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def element_wise_quantize_linear(
    input: T | float,
    scale: T | float,
    zero_point: T | float | None = None,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Linear quantization of each element with an element-wise scale and zero point into 8-bit integers,
    saturating.

        f(input, scale, zero_point) = clamp(round(input / scale) + zero_point, Min, Max); UINT8 output: Min =
            0, Max = 255; INT8 output: Min = -128, Max = 127

    DML_ELEMENT_WISE_QUANTIZE_LINEAR_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    NaN (0 / 0, say) gives 0.

    Args:
        input: input, FLOAT32; INT32 from 2_1; FLOAT16 from 6_0; 1 to 8 dimensions (4 below 3_0). Values to
            quantize.
        scale: input, FLOAT32; FLOAT16 from 6_0; 1 to 8 dimensions (4 below 3_0). per-element scale, same
            Sizes as input (broadcast by zero strides); scale 0 gives undefined behaviour.
        zero_point: input, optional from 6_2; UINT8; INT8 from 2_1; 1 to 8 dimensions (4 below 3_0). Zero
            point, same DataType as OutputTensor; optional from 6_2, required before.
        output_type: The type of the output; that of `out` when None, or that of ZeroPointTensor, or UINT8.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT8; INT8 from 2_1; 1 to 8 dimensions (4 below 3_0). 8-bit result.
    """
    if unknown:
        raise unexpected(element_wise_quantize_linear, unknown)
    results: T = call(
        "ELEMENT_WISE_QUANTIZE_LINEAR",
        (input, scale, zero_point),
        (),
        out,
        device,
        output_type=output_type,
    )
    return results


@overload
def element_wise_dequantize_linear(
    input: Array | float,
    scale: Array | float,
    zero_point: Array | float | None = None,
    *,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def element_wise_dequantize_linear(
    input: T | float,
    scale: T | float,
    zero_point: T | float | None = None,
    *,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def element_wise_dequantize_linear(
    input: T | float,
    scale: T | float,
    zero_point: T | float | None = None,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Linear dequantization of each integer element with an element-wise scale and zero point.

        f(input, scale, zero_point) = (input - zero_point) * scale

    DML_ELEMENT_WISE_DEQUANTIZE_LINEAR_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Args:
        input: input, UINT8; INT32, INT16, INT8, UINT32, UINT16 from 2_1; 1 to 8 dimensions (4 below 3_0).
            Quantized values.
        scale: input, FLOAT32; FLOAT16 from 6_0; 1 to 8 dimensions (4 below 3_0). per-element scale, same
            Sizes as input; scale 0 gives undefined behaviour.
        zero_point: input, optional from 6_2; UINT8; INT32, INT16, INT8, UINT32, UINT16 from 2_1; 1 to 8
            dimensions (4 below 3_0). Zero point, same DataType as InputTensor; optional from 6_2, required
            before.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32; FLOAT16 from 6_0; 1 to 8 dimensions (4 below 3_0). Same DataType as ScaleTensor.
    """
    if unknown:
        raise unexpected(element_wise_dequantize_linear, unknown)
    results: T = call("ELEMENT_WISE_DEQUANTIZE_LINEAR", (input, scale, zero_point), (), out, device)
    return results


@overload
def convolution(
    input: Array | float,
    filter: Array | float,
    bias: Array | float | None = None,
    *,
    mode: ConvolutionMode | str = ConvolutionMode.CROSS_CORRELATION,
    direction: ConvolutionDirection | str = ConvolutionDirection.FORWARD,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    group_count: int = 1,
    fused_activation: OperatorDesc | None = None,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def convolution(
    input: T | float,
    filter: T | float,
    bias: T | float | None = None,
    *,
    mode: ConvolutionMode | str = ConvolutionMode.CROSS_CORRELATION,
    direction: ConvolutionDirection | str = ConvolutionDirection.FORWARD,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    group_count: int = 1,
    fused_activation: OperatorDesc | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def convolution(
    input: T | float,
    filter: T | float,
    bias: T | float | None = None,
    *,
    mode: ConvolutionMode | str = ConvolutionMode.CROSS_CORRELATION,
    direction: ConvolutionDirection | str = ConvolutionDirection.FORWARD,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    group_count: int = 1,
    fused_activation: OperatorDesc | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Convolution (or cross-correlation), forward or transposed, optionally grouped, with a per-channel bias
    and a fused activation.

        out = conv(InputTensor, FilterTensor); out += Bias broadcast to the output sizes; out =
            FusedActivation(out)

    DML_CONVOLUTION_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Products are added in float32. Forward, the output at o sees the inputs at o * stride + k * dilation -
    start_padding; output padding is zeros beyond the sums, to which the bias is added too.

    Backward it is the transposed operation, PyTorch's conv_transpose and ONNX's ConvTranspose: the input at i
    adds to the outputs at i * stride + k * dilation - start_padding, those of the output padding among them;
    the output's sizes alone say where it ends. Filters may be filled up with zeros to multiples of the
    stride, so that an input that is not finite also makes NaN of the outputs beside those that it adds to.

    CONVOLUTION takes the filter's elements from the last to the first along each spatial dimension.

    Args:
        input: input, FLOAT32, FLOAT16; 3 to 5 dimensions (4 to 5 below 4_0). 3D {BatchCount,
            InputChannelCount, InputWidth}; 4D {BatchCount, InputChannelCount, InputHeight, InputWidth}; 5D
            {BatchCount, InputChannelCount, InputDepth, InputHeight, InputWidth}.
        filter: input, FLOAT32, FLOAT16; 3 to 5 dimensions (4 to 5 below 4_0). Forward {OutputChannelCount,
            InputChannelCount / GroupCount, [FilterDepth], [FilterHeight], FilterWidth}; backward
            {InputChannelCount, OutputChannelCount / GroupCount, ...}.
        bias: input, optional; FLOAT32, FLOAT16; 3 to 5 dimensions (4 to 5 below 4_0). {1, OutputChannelCount,
            1}, {1, OutputChannelCount, 1, 1} or {1, OutputChannelCount, 1, 1, 1}; one value per output
            channel added to the whole channel.
        mode: DML_CONVOLUTION_MODE_CONVOLUTION flips the filter along each spatial dimension;
            DML_CONVOLUTION_MODE_CROSS_CORRELATION does not (usual for inference).
        direction: DML_CONVOLUTION_DIRECTION_FORWARD or _BACKWARD (transposed convolution, whose filters have
            the input's channels first).
        strides: Per spatial dimension, filter step; unrelated to tensor-desc strides. When None, 1 for each
            dimension.
        dilations: Per spatial dimension, spacing of the filter elements (zeros between them). When None, 1
            for each dimension.
        start_padding: Per spatial dimension, {Depth, Height, Width}, at the beginning: forward zeros before
            the input, backward elements cut off the output. When None, 0 for each dimension.
        end_padding: Per spatial dimension, at the end, likewise. When None, 0 for each dimension.
        output_padding: Per spatial dimension, zero padding added to the end of each spatial dimension of the
            result. When None, 0 for each dimension.
        group_count: Number of groups; equal to the input channel count with FORWARD for depth-wise
            convolution.
        fused_activation: Activation applied after the convolution.
        sizes: The sizes of the output; those of `out` when None, or the usual ones.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 3 to 5 dimensions (4 to 5 below 4_0). {BatchCount, OutputChannelCount,
        [OutputDepth], [OutputHeight], OutputWidth}.
    """
    if unknown:
        raise unexpected(convolution, unknown)
    results: T = call(
        "CONVOLUTION",
        (input, filter, bias),
        (
            mode,
            direction,
            strides,
            dilations,
            start_padding,
            end_padding,
            output_padding,
            group_count,
            fused_activation,
        ),
        out,
        device,
        sizes=sizes,
    )
    return results


@overload
def gemm(
    a: Array | float,
    b: Array | float,
    c: Array | float | None = None,
    *,
    trans_a: MatrixTransform | str = MatrixTransform.NONE,
    trans_b: MatrixTransform | str = MatrixTransform.NONE,
    alpha: float = 1.0,
    beta: float = 1.0,
    fused_activation: OperatorDesc | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def gemm(
    a: T | float,
    b: T | float,
    c: T | float | None = None,
    *,
    trans_a: MatrixTransform | str = MatrixTransform.NONE,
    trans_b: MatrixTransform | str = MatrixTransform.NONE,
    alpha: float = 1.0,
    beta: float = 1.0,
    fused_activation: OperatorDesc | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def gemm(
    a: T | float,
    b: T | float,
    c: T | float | None = None,
    *,
    trans_a: MatrixTransform | str = MatrixTransform.NONE,
    trans_b: MatrixTransform | str = MatrixTransform.NONE,
    alpha: float = 1.0,
    beta: float = 1.0,
    fused_activation: OperatorDesc | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Batched general matrix multiplication with optional transposes, scaled product, scaled addend and fused
    activation.

        Output = FusedActivation(Alpha * TransA(A) x TransB(B) + Beta * C); x is matrix product, done
            independently for each of BatchCount * ChannelCount matrices

    DML_GEMM_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Products are added in float32. What a factor of 0 multiplies still counts where it is not finite.

    Args:
        a: input, FLOAT32, FLOAT16; 2 to 4 dimensions (4 below 4_0). {BatchCount, ChannelCount, M, K} with
            TransA NONE, {BatchCount, ChannelCount, K, M} with TRANSPOSE.
        b: input, FLOAT32, FLOAT16; 2 to 4 dimensions (4 below 4_0). {BatchCount, ChannelCount, K, N} with
            TransB NONE, {BatchCount, ChannelCount, N, K} with TRANSPOSE.
        c: input, optional; FLOAT32, FLOAT16; 2 to 4 dimensions (4 below 4_0). {BatchCount, ChannelCount, M,
            N}, in which strides of 0 repeat a row or a column; treated as 0 when absent.
        trans_a: DML_MATRIX_TRANSFORM_NONE or DML_MATRIX_TRANSFORM_TRANSPOSE, for A.
        trans_b: Same, for B.
        alpha: Multiplier of the product.
        beta: Multiplier of C; ignored when CTensor is absent.
        fused_activation: Activation applied last; from 6_1 may also be ACTIVATION_SOFTMAX or
            ACTIVATION_SOFTMAX1.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 2 to 4 dimensions (4 below 4_0). {BatchCount, ChannelCount, M, N}.
    """
    if unknown:
        raise unexpected(gemm, unknown)
    results: T = call("GEMM", (a, b, c), (trans_a, trans_b, alpha, beta, fused_activation), out, device)
    return results


@overload
def reduce(
    input: Array,
    *,
    function: ReduceFunction | str,
    axes: Sequence[int],
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def reduce(
    input: T,
    *,
    function: ReduceFunction | str,
    axes: Sequence[int],
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def reduce(
    input: T,
    *,
    function: ReduceFunction | str,
    axes: Sequence[int],
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Reduces one or more dimensions of the input with a chosen reduction function.

        out[kept indices] = Function over the N = product(sizes of Axes) input elements sharing the kept
            indices; for all axes listed, one output element

    DML_REDUCE_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Sums and products of floats are made in float64 and rounded once; those of integers wrap, the magnitude of
    the least integer included. LOG_SUM is the logarithm of the sum (NaN where that is negative), LOG_SUM_EXP
    the logarithm of the sum of exponentials, which cannot overflow. A NaN makes its whole group NaN. ARGMIN
    and ARGMAX are the operators of these names, with the first of equal elements.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from
            4_1; 1 to 8 dimensions (4 below 3_0). Any sizes.
        function: DML_REDUCE_FUNCTION: ARGMAX, ARGMIN, AVERAGE, L1, L2, LOG_SUM, LOG_SUM_EXP, MAX, MIN,
            MULTIPLY, SUM, SUM_SQUARE; ARGMAX/ARGMIN deprecated from 3_0 in favour of the operators
            ARGMAX/ARGMIN.
        axes: Axes to reduce; each in [0, InputTensor.DimensionCount - 1].
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT32, FLOAT32, FLOAT16; INT32 from 2_1; INT64, UINT64, INT16, INT8, UINT16, UINT8 from 3_0; 1 to 8
        dimensions (4 below 3_0). DimensionCount as the input; Sizes as the input except 1 on each reduced
        axis.
    """
    if unknown:
        raise unexpected(reduce, unknown)
    results: T = call("REDUCE", (input,), (function, axes), out, device)
    return results


@overload
def argmin(
    input: Array,
    *,
    axes: Sequence[int],
    axis_direction: AxisDirection | str = AxisDirection.INCREASING,
    output_type: DataTypeLike | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def argmin(
    input: T,
    *,
    axes: Sequence[int],
    axis_direction: AxisDirection | str = AxisDirection.INCREASING,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def argmin(
    input: T,
    *,
    axes: Sequence[int],
    axis_direction: AxisDirection | str = AxisDirection.INCREASING,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Index of the minimum element within the reduced axes.

        out[kept indices] = index, counted over the reduced axes only in row-major order, of the minimum
            element; ties decided by AxisDirection

    DML_ARGMIN_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    The order in which the axes are listed has no meaning. NaN counts as the least, as in NumPy and PyTorch;
    zeros are equal whatever their sign.

    Args:
        input: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 4_1; 1
            to 8 dimensions. Any sizes.
        axes: Axes to reduce; each in [0, InputTensor.DimensionCount - 1].
        axis_direction: DML_AXIS_DIRECTION_INCREASING: first such element (argmin({1,2,3,2,1}) = 0);
            DML_AXIS_DIRECTION_DECREASING: last such element (argmin({1,2,3,2,1}) = 4).
        output_type: The type of the output; that of `out` when None, or UINT32.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        INT64, INT32, UINT64, UINT32; 1 to 8 dimensions. DimensionCount as the input; Sizes as the input
        except 1 on each reduced axis; integer indices.
    """
    if unknown:
        raise unexpected(argmin, unknown)
    results: T = call("ARGMIN", (input,), (axes, axis_direction), out, device, output_type=output_type)
    return results


@overload
def argmax(
    input: Array,
    *,
    axes: Sequence[int],
    axis_direction: AxisDirection | str = AxisDirection.INCREASING,
    output_type: DataTypeLike | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def argmax(
    input: T,
    *,
    axes: Sequence[int],
    axis_direction: AxisDirection | str = AxisDirection.INCREASING,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def argmax(
    input: T,
    *,
    axes: Sequence[int],
    axis_direction: AxisDirection | str = AxisDirection.INCREASING,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Index of the maximum element within the reduced axes.

        out[kept indices] = index, counted over the reduced axes only in row-major order, of the maximum
            element; ties decided by AxisDirection

    DML_ARGMAX_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    The order in which the axes are listed has no meaning. NaN counts as the greatest, as in NumPy and
    PyTorch; zeros are equal whatever their sign.

    Args:
        input: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 4_1; 1
            to 8 dimensions. Any sizes.
        axes: Axes to reduce; each in [0, InputTensor.DimensionCount - 1].
        axis_direction: DML_AXIS_DIRECTION_INCREASING: first such element (argmax({3,2,1,2,3}) = 0);
            DML_AXIS_DIRECTION_DECREASING: last such element (argmax({3,2,1,2,3}) = 4).
        output_type: The type of the output; that of `out` when None, or UINT32.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        INT64, INT32, UINT64, UINT32; 1 to 8 dimensions. DimensionCount as the input; Sizes as the input
        except 1 on each reduced axis; integer indices.
    """
    if unknown:
        raise unexpected(argmax, unknown)
    results: T = call("ARGMAX", (input,), (axes, axis_direction), out, device, output_type=output_type)
    return results


@overload
def average_pooling(
    input: Array,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    include_padding: bool,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def average_pooling(
    input: T,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    include_padding: bool,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def average_pooling(
    input: T,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    include_padding: bool,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Average over a window sliding across the spatial dimensions.

        out = sum(x in window, padding = 0) / count; count = number of window elements (IncludePadding TRUE)
            or number of window elements inside the input (FALSE)

    DML_AVERAGE_POOLING_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Sums are made in float64 and rounded once. What lies beyond the padding, where the output's sizes are
    rounded up, never counts, as in PyTorch. A window without any element is 0.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.5.

    Args:
        input: input, FLOAT32, FLOAT16; 4 to 5 dimensions. 4D {BatchCount, ChannelCount, Height, Width}; 5D
            {BatchCount, ChannelCount, Depth, Height, Width}.
        strides: Window step, {Height, Width} or {Depth, Height, Width}. When None, 1 for each dimension.
        window_size: Window size, same order.
        start_padding: Padding elements at the beginning of each spatial dimension. When None, 0 for each
            dimension.
        end_padding: Padding elements at the end of each spatial dimension. When None, 0 for each dimension.
        include_padding: TRUE counts padding elements in the divisor, FALSE leaves them out of the divisor.
        sizes: The sizes of the output; those of `out` when None, or the usual ones.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 4 to 5 dimensions. Sizes by the output-size formula (see semantics).
    """
    if unknown:
        raise unexpected(average_pooling, unknown)
    results: T = call(
        "AVERAGE_POOLING",
        (input,),
        (strides, window_size, start_padding, end_padding, include_padding),
        out,
        device,
        sizes=sizes,
    )
    return results


@overload
def average_pooling1(
    input: Array,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    include_padding: bool,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def average_pooling1(
    input: T,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    include_padding: bool,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def average_pooling1(
    input: T,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    include_padding: bool,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Average over a window sliding across the spatial dimensions, with dilation.

        as AVERAGE_POOLING with window element w along axis i at input position out*Strides[i] -
            StartPadding[i] + w*Dilations[i]

    DML_AVERAGE_POOLING1_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_2. Not in place.

    Sums are made in float64 and rounded once. What lies beyond the padding, where the output's sizes are
    rounded up, never counts, as in PyTorch. A window without any element is 0.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.5.

    Args:
        input: input, FLOAT32, FLOAT16; 4 to 5 dimensions. 4D {BatchCount, ChannelCount, Height, Width}; 5D
            {BatchCount, ChannelCount, Depth, Height, Width}.
        strides: Window step, {Height, Width} or {Depth, Height, Width}. When None, 1 for each dimension.
        window_size: Window size, same order.
        start_padding: Padding elements at the beginning of each spatial dimension. When None, 0 for each
            dimension.
        end_padding: Padding elements at the end of each spatial dimension. When None, 0 for each dimension.
        dilations: Per spatial dimension {Height, Width} or {Depth, Height, Width}: spacing of the elements
            picked inside the window; all 1 = no dilation. When None, 1 for each dimension.
        include_padding: TRUE counts padding elements in the divisor, FALSE leaves them out of the divisor.
        sizes: The sizes of the output; those of `out` when None, or the usual ones.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 4 to 5 dimensions. Sizes by the output-size formula (see semantics).
    """
    if unknown:
        raise unexpected(average_pooling1, unknown)
    results: T = call(
        "AVERAGE_POOLING1",
        (input,),
        (strides, window_size, start_padding, end_padding, dilations, include_padding),
        out,
        device,
        sizes=sizes,
    )
    return results


@overload
def lp_pooling(
    input: Array,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    p: int,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def lp_pooling(
    input: T,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    p: int,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def lp_pooling(
    input: T,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    p: int,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Lp norm of the elements of a window sliding across the spatial dimensions.

        Y = (X1^P + X2^P + ... + Xn^P)^(1/P) over the window elements

    DML_LP_POOLING_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    As in ONNX, magnitudes count, not elements with their signs, as DirectML's formula and PyTorch have it for
    an odd P. The sums are made in float64; from P = 3 on relative to the window's greatest magnitude, so that
    no power is beyond the greatest float32.

    Greatest distance from the exact result, in ULP: FLOAT32 2.5, FLOAT16 0.5.

    Args:
        input: input, FLOAT32, FLOAT16; 4 to 5 dimensions. 4D {BatchCount, ChannelCount, Height, Width}; 5D
            {BatchCount, ChannelCount, Depth, Height, Width}.
        strides: Window step, {Height, Width} or {Depth, Height, Width}. When None, 1 for each dimension.
        window_size: Window size, same order.
        start_padding: Padding elements at the beginning of each spatial dimension. When None, 0 for each
            dimension.
        end_padding: Padding elements at the end of each spatial dimension. When None, 0 for each dimension.
        p: P of the norm; commonly 1 (L1) or 2 (L2).
        sizes: The sizes of the output; those of `out` when None, or the usual ones.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 4 to 5 dimensions. Sizes by the output-size formula (see semantics).
    """
    if unknown:
        raise unexpected(lp_pooling, unknown)
    results: T = call(
        "LP_POOLING",
        (input,),
        (strides, window_size, start_padding, end_padding, p),
        out,
        device,
        sizes=sizes,
    )
    return results


@overload
def lp_pooling1(
    input: Array,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    p: int,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def lp_pooling1(
    input: T,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    p: int,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def lp_pooling1(
    input: T,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    p: int,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Lp norm of the elements of a window sliding across the spatial dimensions, with dilation.

        Y = (X1^P + X2^P + ... + Xn^P)^(1/P) over the window elements; window element w along axis i sits at
            input position out*Strides[i] - StartPadding[i] + w*Dilations[i]

    DML_LP_POOLING1_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_2. Not in place.

    As in ONNX, magnitudes count, not elements with their signs, as DirectML's formula and PyTorch have it for
    an odd P. The sums are made in float64; from P = 3 on relative to the window's greatest magnitude, so that
    no power is beyond the greatest float32.

    Greatest distance from the exact result, in ULP: FLOAT32 2.5, FLOAT16 0.5.

    Args:
        input: input, FLOAT32, FLOAT16; 4 to 5 dimensions. 4D {BatchCount, ChannelCount, Height, Width}; 5D
            {BatchCount, ChannelCount, Depth, Height, Width}.
        strides: Window step, {Height, Width} or {Depth, Height, Width}. When None, 1 for each dimension.
        window_size: Window size, same order.
        start_padding: Padding elements at the beginning of each spatial dimension. When None, 0 for each
            dimension.
        end_padding: Padding elements at the end of each spatial dimension. When None, 0 for each dimension.
        dilations: Per spatial dimension {Height, Width} or {Depth, Height, Width}: spacing of the elements
            picked inside the window; all 1 = no dilation. When None, 1 for each dimension.
        p: P of the norm; commonly 1 (L1) or 2 (L2).
        sizes: The sizes of the output; those of `out` when None, or the usual ones.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 4 to 5 dimensions. Sizes by the output-size formula (see semantics).
    """
    if unknown:
        raise unexpected(lp_pooling1, unknown)
    results: T = call(
        "LP_POOLING1",
        (input,),
        (strides, window_size, start_padding, end_padding, dilations, p),
        out,
        device,
        sizes=sizes,
    )
    return results


@overload
def max_pooling(
    input: Array,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def max_pooling(
    input: T,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def max_pooling(
    input: T,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Maximum over a window sliding across the spatial dimensions.

        out = max(x in window), padding never wins

    DML_MAX_POOLING_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    NaN, and windows of nothing but padding, as in MAX_POOLING2.

    Args:
        input: input, FLOAT32, FLOAT16; INT8, UINT8 from 3_0; INT64, INT32, INT16, UINT64, UINT32, UINT16 from
            5_0; 4 to 5 dimensions. 4D {BatchCount, ChannelCount, Height, Width}; 5D {BatchCount,
            ChannelCount, Depth, Height, Width}.
        strides: Window step, {Height, Width} or {Depth, Height, Width}. When None, 1 for each dimension.
        window_size: Window size, same order.
        start_padding: Padding elements at the beginning of each spatial dimension. When None, 0 for each
            dimension.
        end_padding: Padding elements at the end of each spatial dimension. When None, 0 for each dimension.
        sizes: The sizes of the output; those of `out` when None, or the usual ones.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT8, UINT8 from 3_0; INT64, INT32, INT16, UINT64, UINT32, UINT16 from 5_0; 4 to 5
        dimensions. Sizes by the output-size formula (see semantics).
    """
    if unknown:
        raise unexpected(max_pooling, unknown)
    results: T = call(
        "MAX_POOLING",
        (input,),
        (strides, window_size, start_padding, end_padding),
        out,
        device,
        sizes=sizes,
    )
    return results


@overload
def max_pooling1(
    input: Array,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    output_indices: Literal[False] = False,
    output_type: DataTypeLike | None = None,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def max_pooling1(
    input: Array,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    output_indices: Literal[True],
    output_type: DataTypeLike | None = None,
    sizes: Sequence[int] | None = None,
    out: tuple[Array, Array] | None = None,
    device: str | Device | None = None,
) -> MaxPooling1Outputs[Array]: ...


@overload
def max_pooling1(
    input: T,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    output_indices: Literal[False] = False,
    output_type: DataTypeLike | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


@overload
def max_pooling1(
    input: T,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    output_indices: Literal[True],
    output_type: DataTypeLike | None = None,
    sizes: Sequence[int] | None = None,
    out: tuple[T, T] | None = None,
    device: str | Device | None = None,
) -> MaxPooling1Outputs[T]: ...


def max_pooling1(
    input: T,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    output_indices: bool = False,
    output_type: DataTypeLike | None = None,
    sizes: Sequence[int] | None = None,
    out: T | tuple[T, T] | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T | MaxPooling1Outputs[T]:
    """Maximum over a sliding window, optionally also giving where each maximum was found.

        out = max(x in window); index = position of that element in the input seen as one contiguous 1-D
            array, zero-based

    DML_MAX_POOLING1_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. Not in place.

    NaN counts as the greatest, as in PyTorch. The first of equal elements gives the index. A window that
    holds nothing but padding is the least number of the type (-infinity of floats), at the index after the
    input's last.

    Args:
        input: input, FLOAT32, FLOAT16; INT8, UINT8 from 3_0; INT64, INT32, INT16, UINT64, UINT32, UINT16 from
            5_0; 4 to 5 dimensions. 4D {BatchCount, ChannelCount, Height, Width}; 5D {BatchCount,
            ChannelCount, Depth, Height, Width}.
        strides: Window step, {Height, Width} or {Depth, Height, Width}. When None, 1 for each dimension.
        window_size: Window size, same order.
        start_padding: Padding elements at the beginning of each spatial dimension. When None, 0 for each
            dimension.
        end_padding: Padding elements at the end of each spatial dimension. When None, 0 for each dimension.
        output_indices: Whether this output is returned too.
        output_type: The type of output_indices; that of `out` when None, or UINT32.
        sizes: The sizes of output; those of `out` when None, or the usual ones.
        out: Where to write, for several outputs a tuple with an array for each output, None for those that
            are not asked for; new arrays (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        output, or where another output is asked for, opendml.outputs.MaxPooling1Outputs, a named tuple:
        output: FLOAT32, FLOAT16; INT8, UINT8 from 3_0; INT64, INT32, INT16, UINT64, UINT32, UINT16 from 5_0;
            4 to 5 dimensions. Sizes by the output-size formula (see semantics).
        output_indices: optional; UINT32; UINT64 from 5_0; 4 to 5 dimensions. Same Sizes as OutputTensor.
    """
    if unknown:
        raise unexpected(max_pooling1, unknown)
    results: T | MaxPooling1Outputs[T] = call_several(
        "MAX_POOLING1",
        (input,),
        (strides, window_size, start_padding, end_padding),
        out,
        device,
        output_type=output_type,
        sizes=sizes,
        wanted=(output_indices,),
    )
    return results


@overload
def roi_pooling(
    input: Array | float,
    roi: Array | float,
    *,
    spatial_scale: float,
    pooled_size: Size2D,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def roi_pooling(
    input: T | float,
    roi: T | float,
    *,
    spatial_scale: float,
    pooled_size: Size2D,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def roi_pooling(
    input: T | float,
    roi: T | float,
    *,
    spatial_scale: float,
    pooled_size: Size2D,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Max pooling of rectangular regions of interest of the input into a fixed output size.

        x1 = round(RoiX1 * SpatialScale), x2 = round(RoiX2 * SpatialScale), y1 = round(RoiY1 * SpatialScale),
            y2 = round(RoiY2 * SpatialScale); RegionHeight = y2 - y1 + 1; RegionWidth = x2 - x1 + 1; for
            output index (Y, X): StartY = (Y * RegionHeight) / PooledSize.Height + y1; StartX = (X *
            RegionWidth) / PooledSize.Width + x1; EndY = ((Y + 1) * RegionHeight + PooledSize.Height - 1) /
            PooledSize.Height + y1; EndX = ((X + 1) * RegionWidth + PooledSize.Width - 1) / PooledSize.Width +
            x1; out[roi, c, Y, X] = max(Input[BatchID, c, y, x]) for y in [StartY, EndY), x in [StartX, EndX)

    DML_ROI_POOLING_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    The corners x1, y1, x2, y2 are rounded, halves up, and moved to the nearest element of the input; where x2
    is less than x1 it is taken to be x1, and so is y2. So every output has at least one element, and each
    region at most those of the input. NaN counts as the greatest. A batch index is truncated; one out of
    range is moved to the nearest end.

    Whatever a region is, its outputs together look at hardly more than the whole input.

    Args:
        input: input, FLOAT32, FLOAT16; 4 dimensions. {BatchCount, ChannelCount, InputHeight, InputWidth}.
        roi: input, FLOAT32, FLOAT16; 4 dimensions. {1, 1, NumROIs, 5}, each row [BatchID, x1, y1, x2, y2],
            corners inclusive, x2 >= x1, y2 >= y1.
        spatial_scale: Multiplier from ROI coordinates to input coordinates.
        pooled_size: SIZE_2D {height, width} = the last two sizes of OutputTensor.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 4 dimensions. {NumROIs, InputChannelCount, PooledSize.Height, PooledSize.Width}.
    """
    if unknown:
        raise unexpected(roi_pooling, unknown)
    results: T = call("ROI_POOLING", (input, roi), (spatial_scale, pooled_size), out, device)
    return results


@overload
def slice(
    input: Array,
    *,
    offsets: Sequence[int] | None = None,
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def slice(
    input: T,
    *,
    offsets: Sequence[int] | None = None,
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def slice(
    input: T,
    *,
    offsets: Sequence[int] | None = None,
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Copies one strided sub-box of the input.

        OutputTensor[c] = InputTensor[Offsets + Strides * c] for every output coordinate c

    DML_SLICE_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Args:
        input: input, FLOAT32, FLOAT16, INT32, INT16, UINT32, UINT16; INT8, UINT8 from 2_1; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 to 5 below 3_0). Source.
        offsets: First element copied, per dimension. When None, 0 for each dimension.
        sizes: Number of elements copied, per dimension; must equal OutputTensor.Sizes.
        strides: Step per dimension (2 takes every second element). When None, 1 for each dimension.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, INT16, UINT32, UINT16; INT8, UINT8 from 2_1; FLOAT64, INT64, UINT64 from 4_1;
        1 to 8 dimensions (4 to 5 below 3_0). Sizes equal the attribute Sizes.
    """
    if unknown:
        raise unexpected(slice, unknown)
    results: T = call("SLICE", (input,), (offsets, sizes, strides), out, device)
    return results


@overload
def cast(
    input: Array,
    *,
    output_type: DataTypeLike | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def cast(
    input: T,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def cast(
    input: T,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Converts each element to the data type of the output tensor.

        f(x) = (OutputType) x

    DML_CAST_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Floats are rounded to nearest even, and become integers by truncation; out of range that saturates, and
    NaN becomes 0, as on Direct3D. Integers wrap.

    Args:
        input: input, FLOAT32, FLOAT16, INT16, INT8, UINT16, UINT8; INT64, INT32, UINT64, UINT32 from 3_0;
            FLOAT64 from 4_1; 1 to 8 dimensions (4 below 3_1). Any sizes.
        output_type: The type of the output; that of `out` when None.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT16, INT8, UINT16, UINT8; INT64, INT32, UINT64, UINT32 from 3_0; FLOAT64 from 4_1;
        1 to 8 dimensions (4 below 3_1). Same Sizes as InputTensor, any supported type.
    """
    if unknown:
        raise unexpected(cast, unknown)
    results: T = call("CAST", (input,), (), out, device, output_type=output_type)
    return results


@overload
def split(
    input: Array,
    *,
    axis: int,
    sizes: Sequence[int] | None = None,
    out: Sequence[Array] | None = None,
    device: str | Device | None = None,
) -> tuple[Array, ...]: ...


@overload
def split(
    input: T,
    *,
    axis: int,
    sizes: Sequence[int] | None = None,
    out: Sequence[T] | None = None,
    device: str | Device | None = None,
) -> tuple[T, ...]: ...


def split(
    input: T,
    *,
    axis: int,
    sizes: Sequence[int] | None = None,
    out: Sequence[T] | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> tuple[T, ...]:
    """Cuts the input along one axis into several output tensors.

        OutputTensors[k][.., j, ..] = InputTensor[.., sum(OutputTensors[0..k-1].Sizes[Axis]) + j, ..] along
            Axis

    DML_SPLIT_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Args:
        input: input, FLOAT32, FLOAT16, INT32, INT16, UINT32, UINT16; INT8, UINT8 from 2_1; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Source.
        axis: Dimension to cut; in [0, InputTensor.DimensionCount - 1].
        sizes: The sizes of the parts along the axis; those of `out` when None.
        out: Where to write, an array for each part; new arrays (of the input's kind) when None.
        device: Where to run; the default device when None.

    Returns:
        A tuple: FLOAT32, FLOAT16, INT32, INT16, UINT32, UINT16; INT8, UINT8 from 2_1; FLOAT64, INT64, UINT64
        from 4_1; 1 to 8 dimensions (4 below 3_0). Same Sizes as the input except on Axis; the Axis sizes sum
        to exactly InputTensor.Sizes[Axis].
    """
    if unknown:
        raise unexpected(split, unknown)
    results: tuple[T, ...] = call_several("SPLIT", (input,), (axis,), out, device, sizes=sizes)
    return results


@overload
def join(
    inputs: Sequence[Array],
    *,
    axis: int,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def join(
    inputs: Sequence[T],
    *,
    axis: int,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def join(
    inputs: Sequence[T],
    *,
    axis: int,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Concatenates tensors along one axis.

        OutputTensor[.., sum(InputTensors[0..k-1].Sizes[Axis]) + j, ..] = InputTensors[k][.., j, ..] along
            Axis

    DML_JOIN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Args:
        inputs: inputs, FLOAT32, FLOAT16, INT32, INT16, UINT32, UINT16; INT8, UINT8 from 2_1; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 to 5 below 4_1, 4 below 3_0). Same Sizes except on Axis,
            where any non-zero size goes.
        axis: Dimension to join; in [0, OutputTensor.DimensionCount - 1].
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, INT16, UINT32, UINT16; INT8, UINT8 from 2_1; FLOAT64, INT64, UINT64 from 4_1;
        1 to 8 dimensions (4 to 5 below 4_1, 4 below 3_0). Sizes of the inputs except on Axis, which is the
        sum.
    """
    if unknown:
        raise unexpected(join, unknown)
    results: T = call_several("JOIN", (inputs,), (axis,), out, device)
    return results


@overload
def padding(
    input: Array,
    *,
    padding_mode: PaddingMode | str = PaddingMode.CONSTANT,
    padding_value: float = 0.0,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def padding(
    input: T,
    *,
    padding_mode: PaddingMode | str = PaddingMode.CONSTANT,
    padding_value: float = 0.0,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def padding(
    input: T,
    *,
    padding_mode: PaddingMode | str = PaddingMode.CONSTANT,
    padding_value: float = 0.0,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Enlarges the input at its edges with constant, edge or mirrored values.

        out[c] = in[map(c - StartPadding)], map given per dimension by PaddingMode; PaddingValue outside the
            input for CONSTANT

    DML_PADDING_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    An integer tensor is padded with PaddingValue truncated, or with the nearest end of its type. Where a
    dimension has one element, every mode but CONSTANT repeats it.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64, INT64,
            UINT64 from 5_0; 1 to 8 dimensions (4 to 5 below 3_1). Source.
        padding_mode: DML_PADDING_MODE_CONSTANT: PaddingValue everywhere; _EDGE: nearest edge value;
            _REFLECTION: mirror without repeating the edge, padding >= size allowed (mirrors periodically);
            _SYMMETRIC (from 3_0): mirror repeating the edge, padding > size allowed; _WRAP (from 6_4).
        padding_value: Used for CONSTANT only, ignored otherwise; may be truncated when the tensor type is
            neither FLOAT16 nor FLOAT32 (10.6 becomes 10).
        start_padding: Elements added before, per dimension. When None, 0 for each dimension.
        end_padding: Elements added after, per dimension. When None, 0 for each dimension.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64, INT64, UINT64 from 5_0;
        1 to 8 dimensions (4 to 5 below 3_1). Sizes[i] = input Sizes[i] + StartPadding[i] + EndPadding[i].
    """
    if unknown:
        raise unexpected(padding, unknown)
    results: T = call(
        "PADDING",
        (input,),
        (padding_mode, padding_value, start_padding, end_padding),
        out,
        device,
    )
    return results


@overload
def padding1(
    input: Array,
    *,
    padding_mode: PaddingMode | str,
    padding_value_data_type: DataTypeLike | None = None,
    padding_value: int | float = 0,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def padding1(
    input: T,
    *,
    padding_mode: PaddingMode | str,
    padding_value_data_type: DataTypeLike | None = None,
    padding_value: int | float = 0,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def padding1(
    input: T,
    *,
    padding_mode: PaddingMode | str,
    padding_value_data_type: DataTypeLike | None = None,
    padding_value: int | float = 0,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Like PADDING but with a typed padding value.

        out[c] = in[map(c - StartPadding)], map given per dimension by PaddingMode; PaddingValue outside the
            input for CONSTANT

    DML_PADDING1_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_0. Not in place.

    Args:
        input: input, FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8; 1
            to 8 dimensions. Source.
        padding_mode: DML_PADDING_MODE_CONSTANT: PaddingValue everywhere; _EDGE: nearest edge value;
            _REFLECTION: mirror without repeating the edge, padding >= size allowed (mirrors periodically);
            _SYMMETRIC (from 3_0): mirror repeating the edge, padding > size allowed; _WRAP (from 6_4).
        padding_value_data_type: Type of PaddingValue; must equal OutputTensor.DataType. When None, that of
            input.
        padding_value: Read with PaddingValueDataType; CONSTANT only, ignored otherwise.
        start_padding: Elements added before, per dimension. When None, 0 for each dimension.
        end_padding: Elements added after, per dimension. When None, 0 for each dimension.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8; 1 to 8
        dimensions. Sizes[i] = input Sizes[i] + StartPadding[i] + EndPadding[i].
    """
    if unknown:
        raise unexpected(padding1, unknown)
    results: T = call(
        "PADDING1",
        (input,),
        (padding_mode, padding_value_data_type, padding_value, start_padding, end_padding),
        out,
        device,
    )
    return results


def value_scale_2d(
    input: T,
    *,
    scale: float,
    bias: Sequence[float],
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Scales the whole tensor and adds one bias per channel.

        Output[n,c,h,w] = Scale * Input[n,c,h,w] + Bias[c]

    DML_VALUE_SCALE_2D_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Args:
        input: input, FLOAT32, FLOAT16; 4 dimensions. {BatchCount, ChannelCount, Height, Width}.
        scale: Multiplier of every value.
        bias: Array, one per channel.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 4 dimensions. Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(value_scale_2d, unknown)
    results: T = call("VALUE_SCALE_2D", (input,), (scale, bias), out, device)
    return results


@overload
def upsample_2d(
    input: Array,
    *,
    scale_size: Size2D,
    interpolation_mode: InterpolationMode | str,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def upsample_2d(
    input: T,
    *,
    scale_size: Size2D,
    interpolation_mode: InterpolationMode | str,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def upsample_2d(
    input: T,
    *,
    scale_size: Size2D,
    interpolation_mode: InterpolationMode | str,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Enlarges height and width by whole factors with nearest or bilinear interpolation.

        Output sizes: {N, C, [D], InputHeight * ScaleSize.Height, InputWidth * ScaleSize.Width}; nearest: the
            input element nearest to the pixel centre of the output element; linear: weighted average of the 2
            x 2 nearest input elements (height x width)

    DML_UPSAMPLE_2D_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Args:
        input: input, FLOAT32, FLOAT16; 4 to 5 dimensions. 4D {InputBatchCount, InputChannelCount,
            InputHeight, InputWidth}; 5D {InputBatchCount, InputChannelCount, InputDepth, InputHeight,
            InputWidth}.
        scale_size: The whole factors, Size2D(width, height), the width first; 0 < Height <= UINT_MAX /
            InputHeight and 0 < Width <= UINT_MAX / InputWidth.
        interpolation_mode: DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR or DML_INTERPOLATION_MODE_LINEAR.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 4 to 5 dimensions. Same but Height * HeightScale and Width * WidthScale.
    """
    if unknown:
        raise unexpected(upsample_2d, unknown)
    results: T = call("UPSAMPLE_2D", (input,), (scale_size, interpolation_mode), out, device)
    return results


@overload
def gather(
    input: Array | float,
    indices: Array | float,
    *,
    axis: int,
    index_dimensions: int,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def gather(
    input: T | float,
    indices: T | float,
    *,
    axis: int,
    index_dimensions: int,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def gather(
    input: T | float,
    indices: T | float,
    *,
    axis: int,
    index_dimensions: int,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Picks slices of the input along one axis by index.

        output[lead.., idx.., trail..] = input[lead.., indices[idx..], trail..] with lead = dimensions before
            Axis, trail = after Axis; OutputTensor.Sizes = InputTensor.Sizes[0..Axis) ++ last IndexDimensions
            sizes of IndicesTensor ++ InputTensor.Sizes[Axis+1 ..], right-aligned (leading 1s cropped to fit
            DimensionCount)

    DML_GATHER_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    A negative index counts from the end. One out of range is moved to the nearest end, as in WebNN.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Source.
        indices: input, UINT32; INT64, INT32, UINT64 from 3_0; 1 to 8 dimensions (4 below 3_0). Same
            DimensionCount as InputTensor (padded with leading 1s); signed types may hold negative indices
            from 3_0.
        axis: Input dimension gathered on; in [0, InputTensor.DimensionCount).
        index_dimensions: Number of meaningful trailing dimensions of IndicesTensor after dropping leading 1s;
            0 to IndicesTensor.DimensionCount. Example: Sizes {1,1,4,6} with IndexDimensions 3 uses {1,4,6}.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64, INT64, UINT64 from 4_1;
        1 to 8 dimensions (4 below 3_0). Sizes as in formula; same DimensionCount and DataType as InputTensor.
    """
    if unknown:
        raise unexpected(gather, unknown)
    results: T = call("GATHER", (input, indices), (axis, index_dimensions), out, device)
    return results


@overload
def space_to_depth(
    input: Array,
    *,
    block_size: int,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def space_to_depth(
    input: T,
    *,
    block_size: int,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def space_to_depth(
    input: T,
    *,
    block_size: int,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Moves spatial blocks into the channel dimension.

        out[n, (by * BlockSize + bx) * C + c, y, x] = in[n, c, y * BlockSize + by, x * BlockSize + bx], C =
            input channels

    DML_SPACE_TO_DEPTH_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64, INT64,
            UINT64 from 5_0; 4 dimensions. {Batch, Channels, Height, Width}.
        block_size: Side (width and height) of the blocks.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64, INT64, UINT64 from 5_0;
        4 dimensions. {Batch, Channels * BlockSize * BlockSize, Height / BlockSize, Width / BlockSize}.
    """
    if unknown:
        raise unexpected(space_to_depth, unknown)
    results: T = call("SPACE_TO_DEPTH", (input,), (block_size,), out, device)
    return results


@overload
def depth_to_space(
    input: Array,
    *,
    block_size: int,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def depth_to_space(
    input: T,
    *,
    block_size: int,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def depth_to_space(
    input: T,
    *,
    block_size: int,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Moves channel data into spatial blocks.

        out[n, c, y * BlockSize + by, x * BlockSize + bx] = in[n, (by * BlockSize + bx) * OutputChannelCount +
            c, y, x]

    DML_DEPTH_TO_SPACE_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64, INT64,
            UINT64 from 5_0; 4 dimensions. {BatchCount, InputChannelCount, InputHeight, InputWidth}.
        block_size: Side (width and height) of the blocks.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64, INT64, UINT64 from 5_0;
        4 dimensions. {BatchCount, InputChannelCount / (BlockSize * BlockSize), InputHeight * BlockSize,
        InputWidth * BlockSize}.
    """
    if unknown:
        raise unexpected(depth_to_space, unknown)
    results: T = call("DEPTH_TO_SPACE", (input,), (block_size,), out, device)
    return results


@overload
def tile(
    input: Array,
    *,
    repeats: Sequence[int],
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def tile(
    input: T,
    *,
    repeats: Sequence[int],
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def tile(
    input: T,
    *,
    repeats: Sequence[int],
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Repeats the input a given number of times along each dimension.

        Output[c] = Input[c mod InputTensor.Sizes] (per dimension)

    DML_TILE_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from
            4_1; 1 to 8 dimensions (4 below 3_1). Source.
        repeats: Copies per dimension, each > 0.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from 4_1; 1 to 8
        dimensions (4 below 3_1). Sizes[i] = InputTensor.Sizes[i] * Repeats[i]; same DimensionCount as input.
    """
    if unknown:
        raise unexpected(tile, unknown)
    results: T = call("TILE", (input,), (repeats,), out, device)
    return results


@overload
def top_k(
    input: Array,
    *,
    axis: int | None = None,
    k: int,
    output_type: DataTypeLike | None = None,
    out: tuple[Array, Array] | None = None,
    device: str | Device | None = None,
) -> TopKOutputs[Array]: ...


@overload
def top_k(
    input: T,
    *,
    axis: int | None = None,
    k: int,
    output_type: DataTypeLike | None = None,
    out: tuple[T, T] | None = None,
    device: str | Device | None = None,
) -> TopKOutputs[T]: ...


def top_k(
    input: T,
    *,
    axis: int | None = None,
    k: int,
    output_type: DataTypeLike | None = None,
    out: tuple[T, T] | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> TopKOutputs[T]:
    """The K largest elements along an axis, in descending order, with their positions.

        along Axis: OutputValue = K largest elements sorted descending; OutputIndex = their indices within the
            sequence

    DML_TOP_K_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    NaN and equal elements as in TOP_K1.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from
            5_0; 1 to 8 dimensions (4 below 3_1). Source.
        axis: Dimension; < InputTensor.DimensionCount. When None, the last axis.
        k: Number of elements; > 0 and at most InputTensor.Sizes[Axis].
        output_type: The type of output_index; that of `out` when None, or UINT32.
        out: Where to write, a tuple with an array for each output; new arrays (of the inputs' kind) when
            None.
        device: Where to run; the default device when None.

    Returns:
        opendml.outputs.TopKOutputs, a named tuple:
        output_value: FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from
            5_0; 1 to 8 dimensions (4 below 3_1). Input Sizes with Axis set to K.
        output_index: UINT32; UINT64 from 5_0; 1 to 8 dimensions (4 below 3_1). Input Sizes with Axis set to
            K.
    """
    if unknown:
        raise unexpected(top_k, unknown)
    results: TopKOutputs[T] = call_several("TOP_K", (input,), (axis, k), out, device, output_type=output_type)
    return results


def batch_normalization(
    input: T | float,
    mean: T | float,
    variance: T | float,
    scale: T | float,
    bias: T | float,
    *,
    spatial: bool = True,
    epsilon: float,
    fused_activation: OperatorDesc | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Normalizes the input with given mean and variance, then scales, shifts and optionally activates.

        Output = FusedActivation(Scale * ((Input - Mean) / sqrt(Variance + Epsilon)) + Bias)

    DML_BATCH_NORMALIZATION_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Spatial changes nothing: it only says which sizes the mean and the variance may have.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). Any sizes.
        mean: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). Each dimension equal to the input one
            or 1 (broadcast).
        variance: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). As MeanTensor.
        scale: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). As MeanTensor.
        bias: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). As MeanTensor.
        spatial: FALSE required unbroadcast Width and Height in Mean and Variance; deprecated and without
            effect from 4_0.
        epsilon: Added to the variance against division by zero.
        fused_activation: Activation applied last.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). Sizes of InputTensor.
    """
    if unknown:
        raise unexpected(batch_normalization, unknown)
    results: T = call(
        "BATCH_NORMALIZATION",
        (input, mean, variance, scale, bias),
        (spatial, epsilon, fused_activation),
        out,
        device,
    )
    return results


@overload
def batch_normalization_grad(
    input: Array | float,
    input_gradient: Array | float,
    mean: Array | float,
    variance: Array | float,
    scale: Array | float,
    *,
    epsilon: float,
    out: tuple[Array, Array, Array] | None = None,
    device: str | Device | None = None,
) -> BatchNormalizationGradOutputs[Array]: ...


@overload
def batch_normalization_grad(
    input: T | float,
    input_gradient: T | float,
    mean: T | float,
    variance: T | float,
    scale: T | float,
    *,
    epsilon: float,
    out: tuple[T, T, T] | None = None,
    device: str | Device | None = None,
) -> BatchNormalizationGradOutputs[T]: ...


def batch_normalization_grad(
    input: T | float,
    input_gradient: T | float,
    mean: T | float,
    variance: T | float,
    scale: T | float,
    *,
    epsilon: float,
    out: tuple[T, T, T] | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> BatchNormalizationGradOutputs[T]:
    """Gradients of batch normalization with fixed statistics.

        OutputGradient = InputGradient * (Scale / sqrt(Variance + Epsilon)); OutputScaleGradient =
            sum(InputGradient * (Input - Mean) / sqrt(Variance + Epsilon)); OutputBiasGradient =
            sum(InputGradient)

    DML_BATCH_NORMALIZATION_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_1. Not in place.

    The sums run over the dimensions where the mean has size 1, are made in float64, and rounded once.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Forward input.
        input_gradient: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Incoming gradient, Sizes of InputTensor.
        mean: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Statistics shape: each dimension 1 or the input
            size.
        variance: input, FLOAT32, FLOAT16; 1 to 8 dimensions. As MeanTensor.
        scale: input, FLOAT32, FLOAT16; 1 to 8 dimensions. As MeanTensor.
        epsilon: Added to the variance.
        out: Where to write, a tuple with an array for each output; new arrays (of the inputs' kind) when
            None.
        device: Where to run; the default device when None.

    Returns:
        opendml.outputs.BatchNormalizationGradOutputs, a named tuple:
        output_gradient: FLOAT32, FLOAT16; 1 to 8 dimensions. Sizes of InputTensor.
        output_scale_gradient: FLOAT32, FLOAT16; 1 to 8 dimensions. Sizes of MeanTensor.
        output_bias_gradient: FLOAT32, FLOAT16; 1 to 8 dimensions. Sizes of MeanTensor.
    """
    if unknown:
        raise unexpected(batch_normalization_grad, unknown)
    results: BatchNormalizationGradOutputs[T] = call_several(
        "BATCH_NORMALIZATION_GRAD",
        (input, input_gradient, mean, variance, scale),
        (epsilon,),
        out,
        device,
    )
    return results


@overload
def batch_normalization_training_grad(
    input: Array | float,
    input_gradient: Array | float,
    mean: Array | float,
    variance: Array | float,
    scale: Array | float,
    *,
    epsilon: float,
    out: tuple[Array, Array, Array] | None = None,
    device: str | Device | None = None,
) -> BatchNormalizationTrainingGradOutputs[Array]: ...


@overload
def batch_normalization_training_grad(
    input: T | float,
    input_gradient: T | float,
    mean: T | float,
    variance: T | float,
    scale: T | float,
    *,
    epsilon: float,
    out: tuple[T, T, T] | None = None,
    device: str | Device | None = None,
) -> BatchNormalizationTrainingGradOutputs[T]: ...


def batch_normalization_training_grad(
    input: T | float,
    input_gradient: T | float,
    mean: T | float,
    variance: T | float,
    scale: T | float,
    *,
    epsilon: float,
    out: tuple[T, T, T] | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> BatchNormalizationTrainingGradOutputs[T]:
    """Gradients of batch normalization whose statistics came from the batch itself.

        Coef0 = 1 / sqrt(Variance + Epsilon); Coef1 = InputGradient * (Input - mean(Input));
            InputGradientCentered = InputGradient - mean(InputGradient); InputCentered = Input - mean(Input);
            OutputGradient = Scale * Coef0 * (InputGradientCentered - InputCentered * mean(Coef1) / (Variance
            + Epsilon)); OutputScaleGradient = sum(InputGradient * (Input - Mean) / sqrt(Variance + Epsilon));
            OutputBiasGradient = sum(InputGradient)

    DML_BATCH_NORMALIZATION_TRAINING_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_4_1. Not in place.

    mean(...) is over the dimensions where the scale has size 1, and computed of x, as DirectML's formula has
    it; the MeanTensor is for the gradient of the scale alone. Sums are made in float64 and rounded once.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Forward input.
        input_gradient: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Incoming gradient, Sizes of InputTensor.
        mean: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Mean from the training pass; each dimension 1
            (broadcast) or the input size.
        variance: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Variance from the training pass; as MeanTensor.
        scale: input, FLOAT32, FLOAT16; 1 to 8 dimensions. As MeanTensor.
        epsilon: Added to the variance.
        out: Where to write, a tuple with an array for each output; new arrays (of the inputs' kind) when
            None.
        device: Where to run; the default device when None.

    Returns:
        opendml.outputs.BatchNormalizationTrainingGradOutputs, a named tuple:
        output_gradient: FLOAT32, FLOAT16; 1 to 8 dimensions. Sizes of InputTensor.
        output_scale_gradient: FLOAT32, FLOAT16; 1 to 8 dimensions. Sizes of MeanTensor.
        output_bias_gradient: FLOAT32, FLOAT16; 1 to 8 dimensions. Sizes of MeanTensor.
    """
    if unknown:
        raise unexpected(batch_normalization_training_grad, unknown)
    results: BatchNormalizationTrainingGradOutputs[T] = call_several(
        "BATCH_NORMALIZATION_TRAINING_GRAD",
        (input, input_gradient, mean, variance, scale),
        (epsilon,),
        out,
        device,
    )
    return results


def mean_variance_normalization(
    input: T | float,
    scale: T | float | None = None,
    bias: T | float | None = None,
    *,
    cross_channel: bool = False,
    normalize_variance: bool = True,
    epsilon: float = 1e-05,
    fused_activation: OperatorDesc | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Normalizes with the mean and variance of the input itself, then scales, shifts and optionally
    activates.

        NormalizeVariance TRUE: Output = FusedActivation(Scale * ((Input - Mean) / sqrt(Variance + Epsilon)) +
            Bias); FALSE: Output = FusedActivation(Scale * (Input - Mean) + Bias)

    DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Args:
        input: input, FLOAT32, FLOAT16; 4 dimensions. {BatchCount, ChannelCount, Height, Width}.
        scale: input, optional; FLOAT32, FLOAT16; 4 dimensions. Same sizes or 1 in any dimension (broadcast);
            before 5_2 required if BiasTensor is present.
        bias: input, optional; FLOAT32, FLOAT16; 4 dimensions. Same rule; before 5_2 required if ScaleTensor
            is present.
        cross_channel: TRUE takes statistics over {ChannelCount, Height, Width}, FALSE over {Height, Width}
            per channel.
        normalize_variance: FALSE leaves the variance out.
        epsilon: Against division by zero; usually 0.00001.
        fused_activation: Activation applied last.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 4 dimensions. {BatchCount, ChannelCount, Height, Width}.
    """
    if unknown:
        raise unexpected(mean_variance_normalization, unknown)
    results: T = call(
        "MEAN_VARIANCE_NORMALIZATION",
        (input, scale, bias),
        (cross_channel, normalize_variance, epsilon, fused_activation),
        out,
        device,
    )
    return results


def local_response_normalization(
    input: T,
    *,
    cross_channel: bool,
    local_size: int,
    alpha: float = 0.0001,
    beta: float = 0.75,
    bias: float = 1.0,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Divides each element by a power of the local sum of squares.

        Output = Input / (Bias + (Alpha / LocalSize) * sum(Input^2 over the local region))^Beta

    DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    The region holds local_size elements across the channels, or, without cross_channel, along the height and
    the width each: (local_size - 1) / 2 before the element, rounded down, and the rest after it, less those
    beyond the tensor's bounds. Microsoft's page says neither; so does ONNX, which only has regions across
    channels. As Microsoft's page has it, alpha is divided by local_size in both cases.

    Greatest distance from the exact result, in ULP: FLOAT32 2.5, FLOAT16 0.51.

    Args:
        input: input, FLOAT32, FLOAT16; 4 dimensions. {BatchCount, ChannelCount, Height, Width}.
        cross_channel: TRUE sums across channels.
        local_size: >= 1; elements summed per dimension: Width and Height, or Channel when CrossChannel is
            set.
        alpha: Scaling; usually 0.0001.
        beta: Exponent; usually 0.75.
        bias: Usually 1.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 4 dimensions. Same as InputTensor.
    """
    if unknown:
        raise unexpected(local_response_normalization, unknown)
    results: T = call(
        "LOCAL_RESPONSE_NORMALIZATION",
        (input,),
        (cross_channel, local_size, alpha, beta, bias),
        out,
        device,
    )
    return results


def local_response_normalization_grad(
    input: T | float,
    input_gradient: T | float,
    *,
    cross_channel: bool,
    local_size: int,
    alpha: float = 0.0001,
    beta: float = 0.75,
    bias: float = 1.0,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Gradient of local response normalization.

        derivative of LOCAL_RESPONSE_NORMALIZATION with S = Bias + (Alpha / LocalSize) * sum(Input^2 over
            region): dX[i] = dY[i] * S[i]^(-Beta) - 2 * Beta * (Alpha / LocalSize) * X[i] * sum over j whose
            region contains i of (dY[j] * X[j] * S[j]^(-Beta - 1))

    DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_1. Not in place.

    DirectML's page has no formula; this is the derivative of the forward operator, with its local regions.
    The power is float32: where the base is so near 0 that it is 0, its terms are infinite or NaN.

    Args:
        input: input, FLOAT32, FLOAT16; 4 dimensions. {BatchCount, ChannelCount, Height, Width}.
        input_gradient: input, FLOAT32, FLOAT16; 4 dimensions. Incoming gradient.
        cross_channel: TRUE sums across channels, FALSE across spatial dimensions.
        local_size: >= 1; largest number of elements summed per dimension, region clipped to the bounds.
        alpha: Scaling; usually 0.0001.
        beta: Exponent; usually 0.75.
        bias: Usually 1.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 4 dimensions. Backpropagated gradient.
    """
    if unknown:
        raise unexpected(local_response_normalization_grad, unknown)
    results: T = call(
        "LOCAL_RESPONSE_NORMALIZATION_GRAD",
        (input, input_gradient),
        (cross_channel, local_size, alpha, beta, bias),
        out,
        device,
    )
    return results


def lp_normalization(
    input: T,
    *,
    axis: int,
    epsilon: float = 1e-05,
    p: int,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Divides every element by the Lp norm (L1 or L2) taken along one axis.

        norm = (sum over Axis of |x|^P)^(1/P); Output = x / max(norm, Epsilon)

    DML_LP_NORMALIZATION_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Microsoft's page does not say how epsilon guards the division; as a lower bound of the norm it leaves
    results of all other groups exact, as ONNX's operator, which has no epsilon, and PyTorch's have them.

    Greatest distance from the exact result, in ULP: FLOAT32 1.5, FLOAT16 0.5.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). Data, any sizes.
        axis: Axis along which the norm is taken.
        epsilon: Guards against division by zero; recommended default 0.00001.
        p: Norm order, 1 or 2 only.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(lp_normalization, unknown)
    results: T = call("LP_NORMALIZATION", (input,), (axis, epsilon, p), out, device)
    return results


@overload
def rnn(
    input: Array | float,
    weight: Array | float,
    recurrence: Array | float,
    bias: Array | float | None = None,
    hidden_init: Array | float | None = None,
    sequence_lengths: Array | float | None = None,
    *,
    activation_descs: Sequence[OperatorDesc],
    direction: RecurrentNetworkDirection | str = RecurrentNetworkDirection.FORWARD,
    output_sequence: bool = False,
    output_single: bool = False,
    out: tuple[Array | None, Array | None] | None = None,
    device: str | Device | None = None,
) -> RnnOutputs[Array]: ...


@overload
def rnn(
    input: T | float,
    weight: T | float,
    recurrence: T | float,
    bias: T | float | None = None,
    hidden_init: T | float | None = None,
    sequence_lengths: T | float | None = None,
    *,
    activation_descs: Sequence[OperatorDesc],
    direction: RecurrentNetworkDirection | str = RecurrentNetworkDirection.FORWARD,
    output_sequence: bool = False,
    output_single: bool = False,
    out: tuple[T | None, T | None] | None = None,
    device: str | Device | None = None,
) -> RnnOutputs[T]: ...


def rnn(
    input: T | float,
    weight: T | float,
    recurrence: T | float,
    bias: T | float | None = None,
    hidden_init: T | float | None = None,
    sequence_lengths: T | float | None = None,
    *,
    activation_descs: Sequence[OperatorDesc],
    direction: RecurrentNetworkDirection | str = RecurrentNetworkDirection.FORWARD,
    output_sequence: bool = False,
    output_single: bool = False,
    out: tuple[T | None, T | None] | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> RnnOutputs[T]:
    """One-layer simple recurrent network (a single input gate) run over the sequence dimension, forward,
    backward or both.

        forward, t = 0 .. seq_length-1: H_t = f(X_t * W_i^T + H_(t-1) * R_i^T + W_bi + R_bi) backward, t =
            seq_length-1 .. 0: H_t = f(X_t * W_Bi^T + H_(t+1) * R_Bi^T + W_Bbi + R_Bbi) (* = matrix multiply,
            ^T = transposed; H before the first step = HiddenInitTensor of that direction, or 0)

    DML_RNN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Products are added in float32, and h is rounded to its type after every step. A batch keeps its state from
    the step on that its length is, and has 0 in the sequence there: so a length of 0 gives the initial state.
    A length beyond the sequence counts as all of it.

    Args:
        input: input, FLOAT32, FLOAT16; 4 dimensions. X {1, seq_length, batch_size, input_size}; sequences
            packed, possibly padded; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        weight: input, FLOAT32, FLOAT16; 4 dimensions. W {1, num_directions, hidden_size, input_size}; W_i
            then W_Bi along the direction dimension; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        recurrence: input, FLOAT32, FLOAT16; 4 dimensions. R {1, num_directions, hidden_size, hidden_size};
            R_i then R_Bi; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        bias: input, optional; FLOAT32, FLOAT16; 4 dimensions. B {1, 1, num_directions, 2*hidden_size}; per
            direction {W_bi, R_bi} concatenated; absent: 0; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        hidden_init: input, optional; FLOAT32, FLOAT16; 4 dimensions. {1, num_directions, batch_size,
            hidden_size}; H_(t-1) of the first step; absent: 0; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        sequence_lengths: input, optional; UINT32; 4 dimensions. {1, 1, 1, batch_size}, UINT32; own sequence
            length of each batch element; absent: every sequence has length seq_length;
            DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        activation_descs: Array of activation operator descs, one f() per direction (forward first).
        direction: DML_RECURRENT_NETWORK_DIRECTION: FORWARD, BACKWARD, BIDIRECTIONAL; num_directions = 2 for
            BIDIRECTIONAL, else 1.
        output_sequence: Whether this output is returned too.
        output_single: Whether this output is returned too.
        out: Where to write, a tuple with an array for each output, None for those that are not asked for; new
            arrays (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        opendml.outputs.RnnOutputs, a named tuple:
        output_sequence: optional; FLOAT32, FLOAT16; 4 dimensions. {seq_length, num_directions, batch_size,
            hidden_size}; H_t of every step, dimension 0 is t.
        output_single: optional; FLOAT32, FLOAT16; 4 dimensions. {1, num_directions, batch_size, hidden_size};
            H of the last step.
    """
    if unknown:
        raise unexpected(rnn, unknown)
    results: RnnOutputs[T] = call_several(
        "RNN",
        (input, weight, recurrence, bias, hidden_init, sequence_lengths),
        (activation_descs, direction),
        out,
        device,
        wanted=(output_sequence, output_single),
    )
    return results


@overload
def lstm(
    input: Array | float,
    weight: Array | float,
    recurrence: Array | float,
    bias: Array | float | None = None,
    hidden_init: Array | float | None = None,
    cell_mem_init: Array | float | None = None,
    sequence_lengths: Array | float | None = None,
    peephole: Array | float | None = None,
    *,
    activation_descs: Sequence[OperatorDesc],
    direction: RecurrentNetworkDirection | str = RecurrentNetworkDirection.FORWARD,
    clip_threshold: float = 0.0,
    use_clip_threshold: bool = False,
    couple_input_forget: bool = False,
    output_sequence: bool = False,
    output_single: bool = False,
    output_cell_single: bool = False,
    out: tuple[Array | None, Array | None, Array | None] | None = None,
    device: str | Device | None = None,
) -> LstmOutputs[Array]: ...


@overload
def lstm(
    input: T | float,
    weight: T | float,
    recurrence: T | float,
    bias: T | float | None = None,
    hidden_init: T | float | None = None,
    cell_mem_init: T | float | None = None,
    sequence_lengths: T | float | None = None,
    peephole: T | float | None = None,
    *,
    activation_descs: Sequence[OperatorDesc],
    direction: RecurrentNetworkDirection | str = RecurrentNetworkDirection.FORWARD,
    clip_threshold: float = 0.0,
    use_clip_threshold: bool = False,
    couple_input_forget: bool = False,
    output_sequence: bool = False,
    output_single: bool = False,
    output_cell_single: bool = False,
    out: tuple[T | None, T | None, T | None] | None = None,
    device: str | Device | None = None,
) -> LstmOutputs[T]: ...


def lstm(
    input: T | float,
    weight: T | float,
    recurrence: T | float,
    bias: T | float | None = None,
    hidden_init: T | float | None = None,
    cell_mem_init: T | float | None = None,
    sequence_lengths: T | float | None = None,
    peephole: T | float | None = None,
    *,
    activation_descs: Sequence[OperatorDesc],
    direction: RecurrentNetworkDirection | str = RecurrentNetworkDirection.FORWARD,
    clip_threshold: float = 0.0,
    use_clip_threshold: bool = False,
    couple_input_forget: bool = False,
    output_sequence: bool = False,
    output_single: bool = False,
    output_cell_single: bool = False,
    out: tuple[T | None, T | None, T | None] | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> LstmOutputs[T]:
    """One-layer long short-term memory network run over the sequence dimension, with optional peepholes,
    clipping and input/forget coupling.

        forward, t = 0 .. seq_length-1: i_t = f(clip(X_t*W_i^T + H_(t-1)*R_i^T + P_i . C_(t-1) + W_bi + R_bi))
            f_t = CoupleInputForget ? 1 - i_t : f(clip(X_t*W_f^T + H_(t-1)*R_f^T + P_f . C_(t-1) + W_bf +
            R_bf)) c_t = g(clip(X_t*W_c^T + H_(t-1)*R_c^T + W_bc + R_bc)) C_t = f_t . C_(t-1) + i_t . c_t o_t
            = f(clip(X_t*W_o^T + H_(t-1)*R_o^T + P_o . C_(t-1) + W_bo + R_bo)) H_t = o_t . h(C_t) (. =
            element-wise, * = matrix multiply). Backward: t = seq_length-1 .. 0 with the W_B, R_B, W_Bb, R_Bb,
            P_B parts and t+1 as the previous step.

    DML_LSTM_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    As in DirectML's formula, all peepholes see the cell before the step; in ONNX that of o sees the new one.
    With CoupleInputForget f is 1 - i. Products, lengths and h as in RNN; the cell is kept in float32.

    Args:
        input: input, FLOAT32, FLOAT16; 4 dimensions. X {1, seq_length, batch_size, input_size};
            DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        weight: input, FLOAT32, FLOAT16; 4 dimensions. W {1, num_directions, 4*hidden_size, input_size}; gate
            blocks in order i, o, f, c; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        recurrence: input, FLOAT32, FLOAT16; 4 dimensions. R {1, num_directions, 4*hidden_size, hidden_size};
            gate blocks i, o, f, c; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        bias: input, optional; FLOAT32, FLOAT16; 4 dimensions. B {1, 1, num_directions, 8*hidden_size}; per
            direction W_b[i,o,f,c] then R_b[i,o,f,c]; absent: 0; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        hidden_init: input, optional; FLOAT32, FLOAT16; 4 dimensions. {1, num_directions, batch_size,
            hidden_size}; H before the first step; absent: 0; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        cell_mem_init: input, optional; FLOAT32, FLOAT16; 4 dimensions. {1, num_directions, batch_size,
            hidden_size}; C before the first step; absent: 0; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        sequence_lengths: input, optional; UINT32; 4 dimensions. {1, 1, 1, batch_size}, UINT32; own sequence
            length of each batch element; absent: every sequence has length seq_length;
            DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        peephole: input, optional; FLOAT32, FLOAT16; 4 dimensions. P {1, 1, num_directions, 3*hidden_size};
            blocks i, o, f; absent: 0; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        activation_descs: F (gates i, o, f), g (cell gate), h (cell state to hidden) for the direction;
            bidirectional: f, g, h of forward then f, g, h of backward.
        direction: DML_RECURRENT_NETWORK_DIRECTION: FORWARD, BACKWARD, BIDIRECTIONAL; num_directions 2 for
            BIDIRECTIONAL else 1.
        clip_threshold: clip(x) bounds x to [-ClipThreshold, +ClipThreshold], applied to the inputs of the
            activations.
        use_clip_threshold: TRUE makes clip() active, FALSE leaves it out.
        couple_input_forget: TRUE: forget gate = 1 - input gate.
        output_sequence: Whether this output is returned too.
        output_single: Whether this output is returned too.
        output_cell_single: Whether this output is returned too.
        out: Where to write, a tuple with an array for each output, None for those that are not asked for; new
            arrays (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        opendml.outputs.LstmOutputs, a named tuple:
        output_sequence: optional; FLOAT32, FLOAT16; 4 dimensions. {seq_length, num_directions, batch_size,
            hidden_size}; H_t of every step.
        output_single: optional; FLOAT32, FLOAT16; 4 dimensions. {1, num_directions, batch_size, hidden_size};
            last H_t.
        output_cell_single: optional; FLOAT32, FLOAT16; 4 dimensions. {1, num_directions, batch_size,
            hidden_size}; last C_t.
    """
    if unknown:
        raise unexpected(lstm, unknown)
    results: LstmOutputs[T] = call_several(
        "LSTM",
        (input, weight, recurrence, bias, hidden_init, cell_mem_init, sequence_lengths, peephole),
        (activation_descs, direction, clip_threshold, use_clip_threshold, couple_input_forget),
        out,
        device,
        wanted=(output_sequence, output_single, output_cell_single),
    )
    return results


@overload
def gru(
    input: Array | float,
    weight: Array | float,
    recurrence: Array | float,
    bias: Array | float | None = None,
    hidden_init: Array | float | None = None,
    sequence_lengths: Array | float | None = None,
    *,
    activation_descs: Sequence[OperatorDesc],
    direction: RecurrentNetworkDirection | str = RecurrentNetworkDirection.FORWARD,
    linear_before_reset: bool,
    output_sequence: bool = False,
    output_single: bool = False,
    out: tuple[Array | None, Array | None] | None = None,
    device: str | Device | None = None,
) -> GruOutputs[Array]: ...


@overload
def gru(
    input: T | float,
    weight: T | float,
    recurrence: T | float,
    bias: T | float | None = None,
    hidden_init: T | float | None = None,
    sequence_lengths: T | float | None = None,
    *,
    activation_descs: Sequence[OperatorDesc],
    direction: RecurrentNetworkDirection | str = RecurrentNetworkDirection.FORWARD,
    linear_before_reset: bool,
    output_sequence: bool = False,
    output_single: bool = False,
    out: tuple[T | None, T | None] | None = None,
    device: str | Device | None = None,
) -> GruOutputs[T]: ...


def gru(
    input: T | float,
    weight: T | float,
    recurrence: T | float,
    bias: T | float | None = None,
    hidden_init: T | float | None = None,
    sequence_lengths: T | float | None = None,
    *,
    activation_descs: Sequence[OperatorDesc],
    direction: RecurrentNetworkDirection | str = RecurrentNetworkDirection.FORWARD,
    linear_before_reset: bool,
    output_sequence: bool = False,
    output_single: bool = False,
    out: tuple[T | None, T | None] | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> GruOutputs[T]:
    """One-layer gated recurrent unit run over the sequence dimension.

        forward, t = 0 .. seq_length-1: z_t = f(X_t*W_z^T + H_(t-1)*R_z^T + W_bz + R_bz) r_t = f(X_t*W_r^T +
            H_(t-1)*R_r^T + W_br + R_br) LinearBeforeReset == 0: h_t = g(X_t*W_h^T + (r_t . H_(t-1))*R_h^T +
            W_bh + R_bh) LinearBeforeReset != 0: h_t = g(X_t*W_h^T + r_t . (H_(t-1)*R_h^T + R_bh) + W_bh) H_t
            = (1 - z_t) . h_t + z_t . H_(t-1) (. = element-wise, * = matrix multiply). Backward: t =
            seq_length-1 .. 0 with the W_B, R_B, W_Bb, R_Bb parts and t+1 as the previous step.

    DML_GRU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Products, lengths and h as in RNN; without LinearBeforeReset r h_(t-1) is rounded to the type of h too.

    Args:
        input: input, FLOAT32, FLOAT16; 4 dimensions. X {1, seq_length, batch_size, input_size};
            DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        weight: input, FLOAT32, FLOAT16; 4 dimensions. W {1, num_directions, 3*hidden_size, input_size}; gate
            blocks in order z, r, h; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        recurrence: input, FLOAT32, FLOAT16; 4 dimensions. R {1, num_directions, 3*hidden_size, hidden_size};
            gate blocks z, r, h; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        bias: input, optional; FLOAT32, FLOAT16; 4 dimensions. B {1, 1, num_directions, 6*hidden_size}; per
            direction W_b[z,r,h] then R_b[z,r,h]; absent: 0; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        hidden_init: input, optional; FLOAT32, FLOAT16; 4 dimensions. {1, num_directions, batch_size,
            hidden_size}; absent: 0; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        sequence_lengths: input, optional; UINT32; 4 dimensions. {1, 1, 1, batch_size}, UINT32; own sequence
            length of each batch element; absent: every sequence has length seq_length;
            DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        activation_descs: F (gates z, r), g (hidden gate) for the direction; bidirectional: f, g of forward
            then f, g of backward.
        direction: DML_RECURRENT_NETWORK_DIRECTION: FORWARD, BACKWARD, BIDIRECTIONAL; num_directions 2 for
            BIDIRECTIONAL else 1.
        linear_before_reset: TRUE: the hidden gate's recurrent linear map is applied before multiplying by the
            reset gate.
        output_sequence: Whether this output is returned too.
        output_single: Whether this output is returned too.
        out: Where to write, a tuple with an array for each output, None for those that are not asked for; new
            arrays (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        opendml.outputs.GruOutputs, a named tuple:
        output_sequence: optional; FLOAT32, FLOAT16; 4 dimensions. {seq_length, num_directions, batch_size,
            hidden_size}; H_t of every step.
        output_single: optional; FLOAT32, FLOAT16; 4 dimensions. {1, num_directions, batch_size, hidden_size};
            last H_t.
    """
    if unknown:
        raise unexpected(gru, unknown)
    results: GruOutputs[T] = call_several(
        "GRU",
        (input, weight, recurrence, bias, hidden_init, sequence_lengths),
        (activation_descs, direction, linear_before_reset),
        out,
        device,
        wanted=(output_sequence, output_single),
    )
    return results


def element_wise_sign(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Sign of each element: -1, 0 or 1.

        f(x) = -1 if x < 0; 1 if x > 0; 0 otherwise (including -0)

    DML_ELEMENT_WISE_SIGN_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from
            4_1; 1 to 8 dimensions (4 below 3_0). Data.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64 from 4_1; 1 to 8
        dimensions (4 below 3_0). Same sizes.
    """
    if unknown:
        raise unexpected(element_wise_sign, unknown)
    results: T = call("ELEMENT_WISE_SIGN", (input,), (), out, device)
    return results


@overload
def element_wise_is_nan(
    input: Array,
    *,
    output_type: DataTypeLike | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def element_wise_is_nan(
    input: T,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def element_wise_is_nan(
    input: T,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Writes 1 where the input element is an IEEE-754 NaN, 0 elsewhere.

        f(x) = isnan(x) ? 1 : 0

    DML_ELEMENT_WISE_IS_NAN_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. Not in place.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        output_type: The type of the output; that of `out` when None, or UINT8.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT32, UINT8; 1 to 8 dimensions (4 below 3_0). Same sizes.
    """
    if unknown:
        raise unexpected(element_wise_is_nan, unknown)
    results: T = call("ELEMENT_WISE_IS_NAN", (input,), (), out, device, output_type=output_type)
    return results


def element_wise_negate(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Changes the sign of each element.

        f(x) = -x

    DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.

    Args:
        input: input, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8; 1 to 8 dimensions. Data.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT64, INT32, INT16, INT8; 1 to 8 dimensions. Same sizes.
    """
    if unknown:
        raise unexpected(element_wise_negate, unknown)
    results: T = call("ELEMENT_WISE_NEGATE", (input,), (), out, device)
    return results


def element_wise_erf(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Gaussian error function of each element.

        f(x) = 2 / sqrt(pi) * integral from 0 to x of exp(-(i^2)) di; input first mapped by ScaleBias

    DML_ELEMENT_WISE_ERF_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.014, FLOAT16 0.503.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        scale_bias: DML_SCALE_BIAS; g(x) = x * scale + bias applied to each input element before the function;
            absent: identity.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same sizes.
    """
    if unknown:
        raise unexpected(element_wise_erf, unknown)
    results: T = call("ELEMENT_WISE_ERF", (input,), (scale_bias,), out, device)
    return results


def element_wise_sinh(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Hyperbolic sine of each element.

        f(x) = sinh(x); input first mapped by ScaleBias

    DML_ELEMENT_WISE_SINH_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.494, FLOAT16 0.501.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        scale_bias: DML_SCALE_BIAS; g(x) = x * scale + bias applied to each input element before the function;
            absent: identity.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same sizes.
    """
    if unknown:
        raise unexpected(element_wise_sinh, unknown)
    results: T = call("ELEMENT_WISE_SINH", (input,), (scale_bias,), out, device)
    return results


def element_wise_cosh(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Hyperbolic cosine of each element.

        f(x) = cosh(x); input first mapped by ScaleBias

    DML_ELEMENT_WISE_COSH_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.8, FLOAT16 0.501.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        scale_bias: DML_SCALE_BIAS; g(x) = x * scale + bias applied to each input element before the function;
            absent: identity.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same sizes.
    """
    if unknown:
        raise unexpected(element_wise_cosh, unknown)
    results: T = call("ELEMENT_WISE_COSH", (input,), (scale_bias,), out, device)
    return results


def element_wise_tanh(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Hyperbolic tangent of each element.

        f(x) = tanh(x); with ScaleBias: tanh(x * scale + bias)

    DML_ELEMENT_WISE_TANH_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.918, FLOAT16 0.54.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        scale_bias: DML_SCALE_BIAS; g(x) = x * scale + bias applied to each input element before the function;
            absent: identity.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same sizes.
    """
    if unknown:
        raise unexpected(element_wise_tanh, unknown)
    results: T = call("ELEMENT_WISE_TANH", (input,), (scale_bias,), out, device)
    return results


def element_wise_asinh(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Inverse hyperbolic sine of each element.

        f(x) = asinh(x) = ln(x + sqrt(x*x + 1)); input first mapped by ScaleBias

    DML_ELEMENT_WISE_ASINH_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.339, FLOAT16 0.555.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        scale_bias: DML_SCALE_BIAS; g(x) = x * scale + bias applied to each input element before the function;
            absent: identity.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same sizes.
    """
    if unknown:
        raise unexpected(element_wise_asinh, unknown)
    results: T = call("ELEMENT_WISE_ASINH", (input,), (scale_bias,), out, device)
    return results


def element_wise_acosh(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Inverse hyperbolic cosine of each element.

        f(x) = acosh(x) = ln(x + sqrt(x*x - 1)); with ScaleBias: acosh(x * scale + bias)

    DML_ELEMENT_WISE_ACOSH_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.501, FLOAT16 0.515.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        scale_bias: DML_SCALE_BIAS; g(x) = x * scale + bias applied to each input element before the function;
            absent: identity.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same sizes.
    """
    if unknown:
        raise unexpected(element_wise_acosh, unknown)
    results: T = call("ELEMENT_WISE_ACOSH", (input,), (scale_bias,), out, device)
    return results


def element_wise_atanh(
    input: T,
    *,
    scale_bias: ScaleBias | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Inverse hyperbolic tangent of each element.

        f(x) = atanh(x) = ln((1 + x) / (1 - x)) / 2; input first mapped by ScaleBias

    DML_ELEMENT_WISE_ATANH_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.307, FLOAT16 0.511.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        scale_bias: DML_SCALE_BIAS; g(x) = x * scale + bias applied to each input element before the function;
            absent: identity.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same sizes.
    """
    if unknown:
        raise unexpected(element_wise_atanh, unknown)
    results: T = call("ELEMENT_WISE_ATANH", (input,), (scale_bias,), out, device)
    return results


@overload
def element_wise_if(
    condition: Array | float,
    a: Array | float,
    b: Array | float,
    *,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def element_wise_if(
    condition: T | float,
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def element_wise_if(
    condition: T | float,
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Picks each output element from A where the condition is non-zero, from B where it is zero.

        f(cond, a, b) = cond != 0 ? a : b

    DML_ELEMENT_WISE_IF_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. Not in place.

    Args:
        condition: input, UINT8; 1 to 8 dimensions (4 below 3_0). UINT8 condition.
        a: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 3_0; FLOAT64, INT64, UINT64
            from 5_0; 1 to 8 dimensions (4 below 3_0). Values for non-zero condition.
        b: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 3_0; FLOAT64, INT64, UINT64
            from 5_0; 1 to 8 dimensions (4 below 3_0). Values for zero condition.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 3_0; FLOAT64, INT64, UINT64 from 5_0;
        1 to 8 dimensions (4 below 3_0). Result.
    """
    if unknown:
        raise unexpected(element_wise_if, unknown)
    results: T = call("ELEMENT_WISE_IF", (condition, a, b), (), out, device)
    return results


def element_wise_add1(
    a: T | float,
    b: T | float,
    *,
    fused_activation: OperatorDesc | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise sum with an optional fused activation.

        f(a, b) = FusedActivation(a + b)

    DML_ELEMENT_WISE_ADD1_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    ATensor or BTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.5.

    Args:
        a: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0). Left operand.
        b: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0). Right operand.
        fused_activation: Activation operator desc applied to the sum; only when the output type is FLOAT16 or
            FLOAT32; absent: none.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0). Result.
    """
    if unknown:
        raise unexpected(element_wise_add1, unknown)
    results: T = call("ELEMENT_WISE_ADD1", (a, b), (fused_activation,), out, device)
    return results


@overload
def max_unpooling(
    input: Array | float,
    indices: Array | float,
    *,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def max_unpooling(
    input: T | float,
    indices: T | float,
    *,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def max_unpooling(
    input: T | float,
    indices: T | float,
    *,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Scatters max-pooled values back to the positions recorded by max pooling and zero-fills the rest.

        Output = 0; for each element e of InputTensor: Output.flat[IndicesTensor[e]] = InputTensor[e]

    DML_MAX_UNPOOLING_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. Not in place.

    An element whose index is out of range is left out. Of several elements of one index the last in row-major
    order holds.

    Args:
        input: input, FLOAT32, FLOAT16; INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8 from 5_0; 4
            dimensions. {Batch, Channel, Height, Width}; pooled values.
        indices: input, UINT32; UINT64 from 5_0; 4 dimensions. Same sizes as InputTensor; zero-based indices
            into OutputTensor taken as one contiguous 1-D array (as OutputIndicesTensor of max pooling gives).
        sizes: The sizes of the output; those of `out` when None.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8 from 5_0; 4 dimensions.
        Same number of dimensions as InputTensor; sizes free.
    """
    if unknown:
        raise unexpected(max_unpooling, unknown)
    results: T = call("MAX_UNPOOLING", (input, indices), (), out, device, sizes=sizes)
    return results


@overload
def diagonal_matrix(
    *,
    offset: int = 0,
    value: float = 1.0,
    output_type: DataTypeLike | None = None,
    sizes: Sequence[int] | None = None,
    out: None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def diagonal_matrix(
    *,
    offset: int = 0,
    value: float = 1.0,
    output_type: DataTypeLike | None = None,
    sizes: Sequence[int] | None = None,
    out: T,
    device: str | Device | None = None,
) -> T: ...


def diagonal_matrix(
    *,
    offset: int = 0,
    value: float = 1.0,
    output_type: DataTypeLike | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Generates matrices with a constant on one (shifted) diagonal and zeros elsewhere.

        for each coordinate: Output[.., y, x] = (y + Offset == x) ? Value : 0

    DML_DIAGONAL_MATRIX_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. Not in place.

    An integer tensor gets Value truncated, or the nearest end of its type.

    Args:
        offset: Shift of the diagonal; > 0 right/up, < 0 left/down; may move it out of the matrix (all zeros).
        value: Diagonal value; standard 1.0; truncated for non-float output types (10.6 becomes 10).
        output_type: The type of the output; that of `out` when None, or FLOAT32.
        sizes: The sizes of the output; those of `out` when None.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64, INT64, UINT64 from 5_1;
        2 to 4 dimensions (4 below 4_0). {Batch1, Batch2, OutputHeight, OutputWidth}; need not be square;
        dimensions before the last two are batch.
    """
    if unknown:
        raise unexpected(diagonal_matrix, unknown)
    results: T = call(
        "DIAGONAL_MATRIX",
        (),
        (offset, value),
        out,
        device,
        output_type=output_type,
        sizes=sizes,
    )
    return results


def scatter(
    input: T | float,
    indices: T | float,
    updates: T | float,
    *,
    axis: int,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Copies the input, then overwrites the elements named by an index tensor along one axis (alias
    SCATTER_ELEMENTS).

        output = input; for each coordinate c of updates: output[c with c[Axis] replaced by indices[c]] =
            updates[c]

    DML_SCATTER_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. Not in place.

    A negative index counts from the end. An update whose index is out of range is left out. Of several
    updates of one element the last in row-major order holds.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Data.
        indices: input, UINT32; INT64, INT32, UINT64 from 3_0; 1 to 8 dimensions (4 below 3_0). Sizes equal
            InputTensor's in every dimension except Axis.
        updates: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Same Sizes as IndicesTensor, DataType of
            InputTensor.
        axis: Dimension indexed, range [0, OutputTensor.DimensionCount).
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64, INT64, UINT64 from 4_1;
        1 to 8 dimensions (4 below 3_0). Sizes and DataType of InputTensor.
    """
    if unknown:
        raise unexpected(scatter, unknown)
    results: T = call("SCATTER", (input, indices, updates), (axis,), out, device)
    return results


@overload
def one_hot(
    indices: Array | float,
    values: Array | float,
    *,
    axis: int,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def one_hot(
    indices: T | float,
    values: T | float,
    *,
    axis: int,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def one_hot(
    indices: T | float,
    values: T | float,
    *,
    axis: int,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Fills each line along an axis with OffValue except one element set to OnValue at the given index.

        for each output coordinate c: k = indices[c with c[Axis]=0]; if k < 0 (signed): k +=
            OutputTensor.Sizes[Axis]; Output[c] = (c[Axis] == k) ? OnValue : OffValue

    DML_ONE_HOT_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. Not in place.

    A negative index of a signed type counts from the end. Of one that is out of range all its line is
    OffValue.

    Args:
        indices: input, UINT32; INT64, INT32, UINT64 from 3_0; 1 to 8 dimensions (4 below 3_0). Sizes of
            OutputTensor except Axis, where the size is 1 (output {2,3,4,5}, Axis 1 -> {2,1,4,5}).
        values: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Any sizes with at least two elements; element 0
            = OffValue, element 1 along the fastest-changing dimension of size > 1 = OnValue, the rest unused.
        axis: Dimension of the sequences; must be less than IndicesTensor.DimensionCount.
        sizes: The sizes of the output; those of `out` when None.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64, INT64, UINT64 from 4_1;
        1 to 8 dimensions (4 below 3_0). Sizes of IndicesTensor except Axis, which may be any size > 0.
    """
    if unknown:
        raise unexpected(one_hot, unknown)
    results: T = call("ONE_HOT", (indices, values), (axis,), out, device, sizes=sizes)
    return results


@overload
def resample(
    input: Array,
    *,
    interpolation_mode: InterpolationMode | str,
    scales: Sequence[float],
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def resample(
    input: T,
    *,
    interpolation_mode: InterpolationMode | str,
    scales: Sequence[float],
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def resample(
    input: T,
    *,
    interpolation_mode: InterpolationMode | str,
    scales: Sequence[float],
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Resamples the input to the output's size by per-dimension scales, nearest neighbour or linear.

        per dimension: InputX = (OutputX + 0.5) / Scale - 0.5 (= RESAMPLE1 with InputPixelOffset 0.5 and
            OutputPixelOffset -0.5); NEAREST_NEIGHBOR: input element nearest to InputX, index clamped to [0,
            size-1]; LINEAR: weights of floor(InputX) and floor(InputX)+1, both indices clamped, product over
            dimensions

    DML_RESAMPLE_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. Not in place.

    Args:
        input: input, FLOAT32, FLOAT16; INT8, UINT8 from 6_2; 1 to 4 dimensions (4 below 5_1). Data.
        interpolation_mode: DML_INTERPOLATION_MODE: NEAREST_NEIGHBOR, LINEAR.
        scales: Per dimension; > 1 enlarges, < 1 shrinks; need not equal OutputSize / InputSize exactly.
        sizes: The sizes of the output; those of `out` when None, or the usual ones.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT8, UINT8 from 6_2; 1 to 4 dimensions (4 below 5_1). Own sizes, any dimension may
        be resampled (batch and channel too).
    """
    if unknown:
        raise unexpected(resample, unknown)
    results: T = call("RESAMPLE", (input,), (interpolation_mode, scales), out, device, sizes=sizes)
    return results


def element_wise_bit_shift_left(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Logical left shift of each A element by the number of bits in the matching B element.

        f(a, b) = a << b

    DML_ELEMENT_WISE_BIT_SHIFT_LEFT_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. OutputTensor may be the same
    memory as ATensor or BTensor.

    Args:
        a: input, UINT32, UINT16, UINT8; UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Values.
        b: input, UINT32, UINT16, UINT8; UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Bit counts.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT32, UINT16, UINT8; UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Result.
    """
    if unknown:
        raise unexpected(element_wise_bit_shift_left, unknown)
    results: T = call("ELEMENT_WISE_BIT_SHIFT_LEFT", (a, b), (), out, device)
    return results


def element_wise_bit_shift_right(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Logical right shift of each A element by the number of bits in the matching B element.

        f(a, b) = a >> b (logical, zero-filling)

    DML_ELEMENT_WISE_BIT_SHIFT_RIGHT_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. OutputTensor may be the same
    memory as ATensor or BTensor.

    Args:
        a: input, UINT32, UINT16, UINT8; UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Values.
        b: input, UINT32, UINT16, UINT8; UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Bit counts.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT32, UINT16, UINT8; UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Result.
    """
    if unknown:
        raise unexpected(element_wise_bit_shift_right, unknown)
    results: T = call("ELEMENT_WISE_BIT_SHIFT_RIGHT", (a, b), (), out, device)
    return results


def element_wise_round(
    input: T,
    *,
    rounding_mode: RoundingMode | str = RoundingMode.HALVES_TO_NEAREST_EVEN,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Rounds each element to an integral value in the chosen mode.

        HALVES_TO_NEAREST_EVEN: nearest integer, ties to even; TOWARD_ZERO: trunc(x); TOWARD_INFINITY: nearest
            integer, ties away from zero (sign(x) * floor(|x| + 0.5))

    DML_ELEMENT_WISE_ROUND_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        rounding_mode: DML_ROUNDING_MODE: HALVES_TO_NEAREST_EVEN, TOWARD_ZERO, TOWARD_INFINITY.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same sizes.
    """
    if unknown:
        raise unexpected(element_wise_round, unknown)
    results: T = call("ELEMENT_WISE_ROUND", (input,), (rounding_mode,), out, device)
    return results


@overload
def element_wise_is_infinity(
    input: Array,
    *,
    infinity_mode: IsInfinityMode | str = IsInfinityMode.EITHER,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def element_wise_is_infinity(
    input: T,
    *,
    infinity_mode: IsInfinityMode | str = IsInfinityMode.EITHER,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def element_wise_is_infinity(
    input: T,
    *,
    infinity_mode: IsInfinityMode | str = IsInfinityMode.EITHER,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Writes 1 where the element is an infinity of the chosen sign, 0 elsewhere.

        f(x) = isinf(x) && ((x > 0 && InfinityMode == POSITIVE) || (x < 0 && InfinityMode == NEGATIVE) ||
            InfinityMode == EITHER) ? 1 : 0

    DML_ELEMENT_WISE_IS_INFINITY_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        infinity_mode: DML_IS_INFINITY_MODE: EITHER (-inf or inf), POSITIVE (inf only), NEGATIVE (-inf only).
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT8; 1 to 8 dimensions (4 below 3_0). Same sizes, UINT8.
    """
    if unknown:
        raise unexpected(element_wise_is_infinity, unknown)
    results: T = call("ELEMENT_WISE_IS_INFINITY", (input,), (infinity_mode,), out, device)
    return results


def element_wise_modulus_truncate(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """C-style remainder of each pair of elements.

        f(a, b) = a - (b * trunc(a / b))

    DML_ELEMENT_WISE_MODULUS_TRUNCATE_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. OutputTensor may be the same
    memory as ATensor or BTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.

    Args:
        a: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 6_0; 1 to 8
            dimensions (4 below 3_0). Dividend.
        b: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 6_0; 1 to 8
            dimensions (4 below 3_0). Divisor.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 6_0; 1 to 8 dimensions
        (4 below 3_0). Result.
    """
    if unknown:
        raise unexpected(element_wise_modulus_truncate, unknown)
    results: T = call("ELEMENT_WISE_MODULUS_TRUNCATE", (a, b), (), out, device)
    return results


def element_wise_modulus_floor(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Python-style modulus of each pair of elements.

        f(a, b) = a - (b * floor(a / b))

    DML_ELEMENT_WISE_MODULUS_FLOOR_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. OutputTensor may be the same
    memory as ATensor or BTensor.

    A float is rounded once where the signs differ.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.5.

    Args:
        a: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 6_0; 1 to 8
            dimensions (4 below 3_0). Dividend.
        b: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 6_0; 1 to 8
            dimensions (4 below 3_0). Divisor.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 6_0; 1 to 8 dimensions
        (4 below 3_0). Result.
    """
    if unknown:
        raise unexpected(element_wise_modulus_floor, unknown)
    results: T = call("ELEMENT_WISE_MODULUS_FLOOR", (a, b), (), out, device)
    return results


@overload
def fill_value_constant(
    *,
    value_data_type: DataTypeLike,
    value: int | float,
    sizes: Sequence[int] | None = None,
    out: None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def fill_value_constant(
    *,
    value_data_type: DataTypeLike,
    value: int | float,
    sizes: Sequence[int] | None = None,
    out: T,
    device: str | Device | None = None,
) -> T: ...


def fill_value_constant(
    *,
    value_data_type: DataTypeLike,
    value: int | float,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Fills the output with one constant.

        for each coordinate: Output[coordinate] = Value

    DML_FILL_VALUE_CONSTANT_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Args:
        value_data_type: DML_TENSOR_DATA_TYPE of Value; must equal OutputTensor.DataType.
        value: Fill value, read as ValueDataType.
        sizes: The sizes of the output; those of `out` when None.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64 from 4_1; 1 to 8
        dimensions (4 below 4_0). Any sizes.
    """
    if unknown:
        raise unexpected(fill_value_constant, unknown)
    results: T = call("FILL_VALUE_CONSTANT", (), (value_data_type, value), out, device, sizes=sizes)
    return results


@overload
def fill_value_sequence(
    *,
    value_data_type: DataTypeLike,
    value_start: int | float,
    value_delta: int | float,
    sizes: Sequence[int] | None = None,
    out: None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def fill_value_sequence(
    *,
    value_data_type: DataTypeLike,
    value_start: int | float,
    value_delta: int | float,
    sizes: Sequence[int] | None = None,
    out: T,
    device: str | Device | None = None,
) -> T: ...


def fill_value_sequence(
    *,
    value_data_type: DataTypeLike,
    value_start: int | float,
    value_delta: int | float,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Fills the output with an arithmetic sequence in element order.

        v = ValueStart; for each coordinate (row-major): Output[coordinate] = v; v += ValueDelta

    DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Floats are computed in FLOAT64 and rounded once, so that no error adds up along the sequence.

    Args:
        value_data_type: DML_TENSOR_DATA_TYPE of both values; must equal OutputTensor.DataType.
        value_start: First element.
        value_delta: Added after each element written.
        sizes: The sizes of the output; those of `out` when None.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 5_0; 1 to 8 dimensions
        (4 below 4_0). Any sizes.
    """
    if unknown:
        raise unexpected(fill_value_sequence, unknown)
    results: T = call(
        "FILL_VALUE_SEQUENCE",
        (),
        (value_data_type, value_start, value_delta),
        out,
        device,
        sizes=sizes,
    )
    return results


def cumulative_summation(
    input: T,
    *,
    axis: int,
    axis_direction: AxisDirection | str = AxisDirection.INCREASING,
    has_exclusive_sum: bool = False,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Running sum along an axis, inclusive or exclusive, in either direction.

        tally = 0; for i along Axis in the chosen direction: if HasExclusiveSum: Output[i] = tally; tally +=
            Input[i]; else: tally += Input[i]; Output[i] = tally

    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. OutputTensor may be the same memory as
    InputTensor.

    Sums of floats are made in float64 and rounded once each; those of integers wrap.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.5.

    Args:
        input: input, FLOAT32, FLOAT16, INT32, UINT32; INT64, UINT64 from 5_0; 1 to 8 dimensions (4 below
            4_0). Data.
        axis: Dimension summed over; less than InputTensor.DimensionCount.
        axis_direction: DML_AXIS_DIRECTION: INCREASING (ascending index), DECREASING (descending index).
        has_exclusive_sum: TRUE leaves the current element out of its own output (first output 0, grand total
            never written).
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, UINT32; INT64, UINT64 from 5_0; 1 to 8 dimensions (4 below 4_0). Same sizes
        and data type.
    """
    if unknown:
        raise unexpected(cumulative_summation, unknown)
    results: T = call(
        "CUMULATIVE_SUMMATION",
        (input,),
        (axis, axis_direction, has_exclusive_sum),
        out,
        device,
    )
    return results


def cumulative_product(
    input: T,
    *,
    axis: int,
    axis_direction: AxisDirection | str = AxisDirection.INCREASING,
    has_exclusive_product: bool = False,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Running product along an axis, inclusive or exclusive, in either direction.

        tally = 1; for i along Axis in the chosen direction: if HasExclusiveProduct: Output[i] = tally; tally
            *= Input[i]; else: tally *= Input[i]; Output[i] = tally

    DML_CUMULATIVE_PRODUCT_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_1. OutputTensor may be the same memory as
    InputTensor.

    Products of floats are made in float64 and rounded once each, so that an intermediate product may lie
    beyond the greatest float32; those of integers wrap.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.5.

    Args:
        input: input, FLOAT32, FLOAT16, INT32, UINT32; INT64, UINT64 from 5_0; 1 to 8 dimensions (4 below
            4_0). Data.
        axis: Dimension multiplied over; less than InputTensor.DimensionCount.
        axis_direction: DML_AXIS_DIRECTION: INCREASING (ascending index), DECREASING (descending index).
        has_exclusive_product: TRUE leaves the current element out of its own output (first output 1, grand
            total never written).
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, UINT32; INT64, UINT64 from 5_0; 1 to 8 dimensions (4 below 4_0). Same sizes
        and data type.
    """
    if unknown:
        raise unexpected(cumulative_product, unknown)
    results: T = call(
        "CUMULATIVE_PRODUCT",
        (input,),
        (axis, axis_direction, has_exclusive_product),
        out,
        device,
    )
    return results


def reverse_subsequences(
    input: T | float,
    sequence_lengths: T | float,
    *,
    axis: int,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Reverses the first n elements of every line along an axis, n coming from a lengths tensor.

        for each coordinate c: n = min(lengths[c with c[Axis]=0], Sizes[Axis]); i = c[Axis]; Output[c] = i < n
            ? Input[c with c[Axis] = n-1-i] : Input[c]

    DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    A length beyond the line is that of the line.

    Args:
        input: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64 from
            5_0; 1 to 8 dimensions (4 to 5 below 4_0, 4 below 3_0). Data.
        sequence_lengths: input, UINT32; UINT64 from 5_0; 1 to 8 dimensions (4 to 5 below 4_0, 4 below 3_0).
            Sizes of InputTensor except Axis, where the size is 1 (input {2,3,4,5}, Axis 1 -> {2,1,4,5}).
        axis: Dimension reversed over; less than InputTensor.DimensionCount.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64 from 5_0; 1 to 8
        dimensions (4 to 5 below 4_0, 4 below 3_0). Sizes and data type of InputTensor.
    """
    if unknown:
        raise unexpected(reverse_subsequences, unknown)
    results: T = call("REVERSE_SUBSEQUENCES", (input, sequence_lengths), (axis,), out, device)
    return results


@overload
def gather_elements(
    input: Array | float,
    indices: Array | float,
    *,
    axis: int,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def gather_elements(
    input: T | float,
    indices: T | float,
    *,
    axis: int,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def gather_elements(
    input: T | float,
    indices: T | float,
    *,
    axis: int,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Gathers single elements along one axis, an index tensor giving the position for each output element.

        output[c] = input[c with c[Axis] replaced by indices[c]]

    DML_GATHER_ELEMENTS_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Indices as in GATHER.

    Args:
        input: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64 from
            4_1; 1 to 8 dimensions (4 below 3_0). Data.
        indices: input, UINT32; INT64, INT32, UINT64 from 3_0; 1 to 8 dimensions (4 below 3_0). Sizes equal
            InputTensor's in every dimension except Axis.
        axis: Dimension of InputTensor gathered along, range [0, InputTensor.DimensionCount).
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64 from 4_1; 1 to 8
        dimensions (4 below 3_0). Sizes of IndicesTensor, DataType of InputTensor.
    """
    if unknown:
        raise unexpected(gather_elements, unknown)
    results: T = call("GATHER_ELEMENTS", (input, indices), (axis,), out, device)
    return results


@overload
def gather_nd(
    input: Array | float,
    indices: Array | float,
    *,
    input_dimension_count: int,
    indices_dimension_count: int,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def gather_nd(
    input: T | float,
    indices: T | float,
    *,
    input_dimension_count: int,
    indices_dimension_count: int,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def gather_nd(
    input: T | float,
    indices: T | float,
    *,
    input_dimension_count: int,
    indices_dimension_count: int,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Gathers sub-blocks of the input addressed by index tuples stored in the last dimension of the indices.

        output[i..., j...] = input[indices[i..., 0], ..., indices[i..., indexTupleSize-1], j...]

    DML_GATHER_ND_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Indices as in GATHER.

    Args:
        input: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64 from
            4_1; 1 to 8 dimensions (4 below 3_0). Data.
        indices: input, UINT32; INT64, INT32, UINT64 from 3_0; 1 to 8 dimensions (4 below 3_0). Same
            DimensionCount as InputTensor; last dimension = coordinates per tuple, must not exceed
            InputTensor.DimensionCount; {1,4,5,2} with IndicesDimensionCount 3 = a 4x5 array of 2-coordinate
            tuples.
        input_dimension_count: Number of meaningful trailing dimensions of InputTensor (leading ones ignored),
            range [1, InputTensor.DimensionCount]; {1,1,4,6} with 3 means {1,4,6}.
        indices_dimension_count: Likewise for IndicesTensor, range [1, IndicesTensor.DimensionCount].
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64 from 4_1; 1 to 8
        dimensions (4 below 3_0). IndexTupleSize = Indices.Sizes[last]; Output.Sizes = {1...,
        Indices.Sizes[IndicesDC - IndicesDimensionCount .. IndicesDC - 1), Input.Sizes[InputDC -
        InputDimensionCount + indexTupleSize .. InputDC)}, half-open ranges, right-aligned with leading 1s up
        to DimensionCount.
    """
    if unknown:
        raise unexpected(gather_nd, unknown)
    results: T = call(
        "GATHER_ND",
        (input, indices),
        (input_dimension_count, indices_dimension_count),
        out,
        device,
    )
    return results


def scatter_nd(
    input: T | float,
    indices: T | float,
    updates: T | float,
    *,
    input_dimension_count: int,
    indices_dimension_count: int,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Copies the input, then overwrites sub-blocks addressed by index tuples with blocks from the updates.

        output = input; output[indices[i..., 0], ..., indices[i..., indexTupleSize-1], j...] = updates[i...,
            j...]

    DML_SCATTER_ND_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Indices and updates of one element as in SCATTER; a tuple with an index out of range is left out.

    Args:
        input: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64 from
            4_1; 1 to 8 dimensions (4 below 3_0). Data.
        indices: input, UINT32; INT64, INT32, UINT64 from 3_0; 1 to 8 dimensions (4 below 3_0). Same
            DimensionCount as InputTensor; last dimension = coordinates per tuple, must not exceed
            InputTensor.DimensionCount; {1,4,5,2} with IndicesDimensionCount 3 = a 4x5 array of 2-coordinate
            tuples.
        updates: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64
            from 4_1; 1 to 8 dimensions (4 below 3_0). Same DimensionCount; indexTupleSize =
            Indices.Sizes[last]; Updates.Sizes = {1..., Indices.Sizes[IndicesDC - IndicesDimensionCount ..
            IndicesDC - 1), Input.Sizes[InputDC - InputDimensionCount + indexTupleSize .. InputDC)}, half-open
            ranges, right-aligned with leading 1s up to DimensionCount.
        input_dimension_count: Number of meaningful trailing dimensions of InputTensor, in [1,
            InputTensor.DimensionCount].
        indices_dimension_count: Likewise for IndicesTensor, in [1, IndicesTensor.DimensionCount].
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64 from 4_1; 1 to 8
        dimensions (4 below 3_0). Sizes and DataType of InputTensor.
    """
    if unknown:
        raise unexpected(scatter_nd, unknown)
    results: T = call(
        "SCATTER_ND",
        (input, indices, updates),
        (input_dimension_count, indices_dimension_count),
        out,
        device,
    )
    return results


@overload
def max_pooling2(
    input: Array,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    output_indices: Literal[False] = False,
    output_type: DataTypeLike | None = None,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def max_pooling2(
    input: Array,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    output_indices: Literal[True],
    output_type: DataTypeLike | None = None,
    sizes: Sequence[int] | None = None,
    out: tuple[Array, Array] | None = None,
    device: str | Device | None = None,
) -> MaxPooling2Outputs[Array]: ...


@overload
def max_pooling2(
    input: T,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    output_indices: Literal[False] = False,
    output_type: DataTypeLike | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


@overload
def max_pooling2(
    input: T,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    output_indices: Literal[True],
    output_type: DataTypeLike | None = None,
    sizes: Sequence[int] | None = None,
    out: tuple[T, T] | None = None,
    device: str | Device | None = None,
) -> MaxPooling2Outputs[T]: ...


def max_pooling2(
    input: T,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    output_indices: bool = False,
    output_type: DataTypeLike | None = None,
    sizes: Sequence[int] | None = None,
    out: T | tuple[T, T] | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T | MaxPooling2Outputs[T]:
    """Max pooling over sliding windows with dilation, optionally returning the index of each maximum.

        Output[n, c, o...] = max over window offsets w of Input[n, c, o*Strides - StartPadding + w*Dilations]
            (padding excluded)

    DML_MAX_POOLING2_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    NaN counts as the greatest, as in PyTorch. The first of equal elements gives the index. A window that
    holds nothing but padding is the least number of the type (-infinity of floats), at the index after the
    input's last.

    Args:
        input: input, FLOAT32, FLOAT16; INT8, UINT8 from 3_0; INT64, INT32, INT16, UINT64, UINT32, UINT16 from
            5_0; 4 to 5 dimensions. {BatchCount, ChannelCount, Height, Width} (4-D) or {BatchCount,
            ChannelCount, Depth, Height, Width} (5-D).
        strides: UINT[DimensionCount]; window strides, {Height, Width} or {Depth, Height, Width}. When None, 1
            for each dimension.
        window_size: UINT[DimensionCount]; window sizes, same order.
        start_padding: UINT[DimensionCount]; padding at the start of each spatial dimension. When None, 0 for
            each dimension.
        end_padding: UINT[DimensionCount]; padding at the end. When None, 0 for each dimension.
        dilations: UINT[DimensionCount]; step between window elements per spatial dimension; all 1 equals
            MAX_POOLING1. When None, 1 for each dimension.
        output_indices: Whether this output is returned too.
        output_type: The type of output_indices; that of `out` when None, or UINT32.
        sizes: The sizes of output; those of `out` when None, or the usual ones.
        out: Where to write, for several outputs a tuple with an array for each output, None for those that
            are not asked for; new arrays (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        output, or where another output is asked for, opendml.outputs.MaxPooling2Outputs, a named tuple:
        output: FLOAT32, FLOAT16; INT8, UINT8 from 3_0; INT64, INT32, INT16, UINT64, UINT32, UINT16 from 5_0;
            4 to 5 dimensions. Sizes[0..1] of input; Sizes[i+2] = (Input.Sizes[i+2] + StartPadding[i] +
            EndPadding[i] - ((WindowSize[i] - 1) * Dilations[i] + 1)) / Strides[i] + 1 (integer division).
        output_indices: optional; UINT32; UINT64 from 5_0; 4 to 5 dimensions. Same sizes as OutputTensor;
            zero-based index of each maximum in the input taken as one contiguous 1-D array.
    """
    if unknown:
        raise unexpected(max_pooling2, unknown)
    results: T | MaxPooling2Outputs[T] = call_several(
        "MAX_POOLING2",
        (input,),
        (strides, window_size, start_padding, end_padding, dilations),
        out,
        device,
        output_type=output_type,
        sizes=sizes,
        wanted=(output_indices,),
    )
    return results


@overload
def slice1(
    input: Array,
    *,
    input_window_offsets: Sequence[int] | None = None,
    input_window_sizes: Sequence[int],
    input_window_strides: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def slice1(
    input: T,
    *,
    input_window_offsets: Sequence[int] | None = None,
    input_window_sizes: Sequence[int],
    input_window_strides: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def slice1(
    input: T,
    *,
    input_window_offsets: Sequence[int] | None = None,
    input_window_sizes: Sequence[int],
    input_window_strides: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Copies a strided sub-window of the input into the output; strides may be negative, which walks an axis
    backwards from the end of the window.

        start[i] = InputWindowOffsets[i] + (InputWindowStrides[i] < 0 ? InputWindowSizes[i] - 1 : 0);
            Output[c] = Input[start[i] + InputWindowStrides[i] * c[i] for every axis i]

    DML_SLICE1_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    The start is the window's first element along a dimension with a positive stride, its last one along one
    with a negative stride, whatever part of the window the output takes.

    Args:
        input: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64 from
            4_1; 1 to 8 dimensions (4 to 5 below 3_0). Any sizes.
        input_window_offsets: Per axis, first element of the window; InputWindowOffsets[i] +
            InputWindowSizes[i] <= InputTensor.Sizes[i]. When None, 0 for each dimension.
        input_window_sizes: Per axis, extent of the window, at least 1 (window may not be empty on any axis);
            last window element is offset + size - 1.
        input_window_strides: Per axis, non-zero; |stride| = step between copied elements, sign = walk from
            the start (+) or from the end (-) of the window. When None, 1 for each dimension.
        sizes: The sizes of the output; those of `out` when None, or the usual ones.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64 from 4_1; 1 to 8
        dimensions (4 to 5 below 3_0). 1 <= Sizes[i] <= MaxCopied[i], MaxCopied[i] = 1 + (InputWindowSizes[i]
        - 1) / |InputWindowStrides[i]| (integer division); need not use every reachable element.
    """
    if unknown:
        raise unexpected(slice1, unknown)
    results: T = call(
        "SLICE1",
        (input,),
        (input_window_offsets, input_window_sizes, input_window_strides),
        out,
        device,
        sizes=sizes,
    )
    return results


@overload
def top_k1(
    input: Array,
    *,
    axis: int | None = None,
    k: int,
    axis_direction: AxisDirection | str = AxisDirection.DECREASING,
    output_type: DataTypeLike | None = None,
    out: tuple[Array, Array] | None = None,
    device: str | Device | None = None,
) -> TopK1Outputs[Array]: ...


@overload
def top_k1(
    input: T,
    *,
    axis: int | None = None,
    k: int,
    axis_direction: AxisDirection | str = AxisDirection.DECREASING,
    output_type: DataTypeLike | None = None,
    out: tuple[T, T] | None = None,
    device: str | Device | None = None,
) -> TopK1Outputs[T]: ...


def top_k1(
    input: T,
    *,
    axis: int | None = None,
    k: int,
    axis_direction: AxisDirection | str = AxisDirection.DECREASING,
    output_type: DataTypeLike | None = None,
    out: tuple[T, T] | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> TopK1Outputs[T]:
    """For each line of the input along Axis, returns the K largest or K smallest elements in sorted order
    together with their positions in the line.

        for each sequence s along Axis: order = stable sort of s (descending for DECREASING, ascending for
            INCREASING; ties by ascending index); OutputValue = first K values, OutputIndex = first K indices

    DML_TOP_K1_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    NaN counts as the greatest, as in PyTorch; all NaN are equal, and so are 0 and -0. Of equal elements that
    with the lowest index comes first, in both directions.

    Args:
        input: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 5_0; 1
            to 8 dimensions (4 below 3_1). Any sizes.
        axis: Axis of the sequences; Axis < InputTensor.DimensionCount. When None, the last axis.
        k: Number of elements kept; > 0 and at most InputTensor.Sizes[Axis].
        axis_direction: DML_AXIS_DIRECTION_INCREASING: K smallest, ascending; DML_AXIS_DIRECTION_DECREASING: K
            largest, descending (then identical to TOP_K).
        output_type: The type of output_index; that of `out` when None, or UINT32.
        out: Where to write, a tuple with an array for each output; new arrays (of the inputs' kind) when
            None.
        device: Where to run; the default device when None.

    Returns:
        opendml.outputs.TopK1Outputs, a named tuple:
        output_value: FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 5_0; 1
            to 8 dimensions (4 below 3_1). InputTensor.Sizes with Sizes[Axis] = K.
        output_index: UINT32; UINT64 from 5_0; 1 to 8 dimensions (4 below 3_1). InputTensor.Sizes with
            Sizes[Axis] = K; indices count from the start of each sequence, not of the tensor.
    """
    if unknown:
        raise unexpected(top_k1, unknown)
    results: TopK1Outputs[T] = call_several(
        "TOP_K1",
        (input,),
        (axis, k, axis_direction),
        out,
        device,
        output_type=output_type,
    )
    return results


@overload
def depth_to_space1(
    input: Array,
    *,
    block_size: int,
    order: DepthSpaceOrder | str = DepthSpaceOrder.DEPTH_COLUMN_ROW,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def depth_to_space1(
    input: T,
    *,
    block_size: int,
    order: DepthSpaceOrder | str = DepthSpaceOrder.DEPTH_COLUMN_ROW,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def depth_to_space1(
    input: T,
    *,
    block_size: int,
    order: DepthSpaceOrder | str = DepthSpaceOrder.DEPTH_COLUMN_ROW,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Moves channel data into BlockSize x BlockSize spatial blocks; inverse of SPACE_TO_DEPTH1.

        B = BlockSize, OC = InputChannelCount / (B*B). Output[n, c, h*B + by, w*B + bx] = Input[n, ch, h, w]
            with ch = (by*B + bx)*OC + c for DEPTH_COLUMN_ROW, ch = c*B*B + by*B + bx for COLUMN_ROW_DEPTH

    DML_DEPTH_TO_SPACE1_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Args:
        input: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64 from
            5_0; 4 dimensions. { BatchCount, InputChannelCount, InputHeight, InputWidth }.
        block_size: Height and width of a block, > 0; B*B must divide the input channel count.
        order: DML_DEPTH_SPACE_ORDER_DEPTH_COLUMN_ROW (then identical to DEPTH_TO_SPACE) or
            DML_DEPTH_SPACE_ORDER_COLUMN_ROW_DEPTH.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64 from 5_0; 4
        dimensions. { BatchCount, InputChannelCount / (BlockSize*BlockSize), InputHeight * BlockSize,
        InputWidth * BlockSize }.
    """
    if unknown:
        raise unexpected(depth_to_space1, unknown)
    results: T = call("DEPTH_TO_SPACE1", (input,), (block_size, order), out, device)
    return results


@overload
def space_to_depth1(
    input: Array,
    *,
    block_size: int,
    order: DepthSpaceOrder | str = DepthSpaceOrder.DEPTH_COLUMN_ROW,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def space_to_depth1(
    input: T,
    *,
    block_size: int,
    order: DepthSpaceOrder | str = DepthSpaceOrder.DEPTH_COLUMN_ROW,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def space_to_depth1(
    input: T,
    *,
    block_size: int,
    order: DepthSpaceOrder | str = DepthSpaceOrder.DEPTH_COLUMN_ROW,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Moves BlockSize x BlockSize spatial blocks into the channel dimension; inverse of DEPTH_TO_SPACE1.

        B = BlockSize, IC = InputChannelCount. Output[n, ch, h, w] = Input[n, c, h*B + by, w*B + bx] with ch =
            (by*B + bx)*IC + c for DEPTH_COLUMN_ROW, ch = c*B*B + by*B + bx for COLUMN_ROW_DEPTH

    DML_SPACE_TO_DEPTH1_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Args:
        input: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64 from
            5_0; 4 dimensions. { Batch, Channels, Height, Width }.
        block_size: Height and width of a block, > 0; must divide input height and width.
        order: DML_DEPTH_SPACE_ORDER_DEPTH_COLUMN_ROW (then identical to SPACE_TO_DEPTH) or
            DML_DEPTH_SPACE_ORDER_COLUMN_ROW_DEPTH.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64 from 5_0; 4
        dimensions. { Batch, Channels * BlockSize*BlockSize, Height / BlockSize, Width / BlockSize }.
    """
    if unknown:
        raise unexpected(space_to_depth1, unknown)
    results: T = call("SPACE_TO_DEPTH1", (input,), (block_size, order), out, device)
    return results


def mean_variance_normalization1(
    input: T | float,
    scale: T | float | None = None,
    bias: T | float | None = None,
    *,
    axes: Sequence[int],
    normalize_variance: bool = True,
    epsilon: float = 1e-05,
    fused_activation: OperatorDesc | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Normalizes the input by mean and (optionally) variance computed over the listed axes, then applies
    optional scale, bias and fused activation.

        Mean, Variance over Axes. NormalizeVariance: Output = FusedActivation(Scale * ((Input - Mean) /
            sqrt(Variance + Epsilon)) + Bias); otherwise Output = FusedActivation(Scale * (Input - Mean) +
            Bias)

    DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Without normalize_variance the division is left out. An absent scale is 1, an absent bias 0.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). { BatchCount, ChannelCount, Height,
            Width } in the 4D case.
        scale: input, optional; FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). Before 4_0: { 1 or
            BatchCount, ChannelCount, 1 or Height, 1 or Width }; from 4_0 any dimension may be 1 (broadcast)
            or equal to InputTensor. Before 5_2 required when BiasTensor is present; from 5_2 independent of
            BiasTensor.
        bias: input, optional; FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). Sizes as ScaleTensor. Before
            5_2 required when ScaleTensor is present; from 5_2 independent of ScaleTensor.
        axes: Axes reduced for mean and variance; on a 4D tensor {2,3} equals MEAN_VARIANCE_NORMALIZATION with
            CrossChannel FALSE, {1,2,3} with CrossChannel TRUE.
        normalize_variance: FALSE leaves the division by sqrt(Variance + Epsilon) out.
        epsilon: Added to the variance; recommended default 0.00001.
        fused_activation: Activation operator applied last; its own InputTensor/OutputTensor are null.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(mean_variance_normalization1, unknown)
    results: T = call(
        "MEAN_VARIANCE_NORMALIZATION1",
        (input, scale, bias),
        (axes, normalize_variance, epsilon, fused_activation),
        out,
        device,
    )
    return results


@overload
def resample1(
    input: Array,
    *,
    interpolation_mode: InterpolationMode | str,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float] | None = None,
    output_pixel_offsets: Sequence[float] | None = None,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def resample1(
    input: T,
    *,
    interpolation_mode: InterpolationMode | str,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float] | None = None,
    output_pixel_offsets: Sequence[float] | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def resample1(
    input: T,
    *,
    interpolation_mode: InterpolationMode | str,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float] | None = None,
    output_pixel_offsets: Sequence[float] | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Resizes a tensor along any of its axes by nearest-neighbour or (multi)linear interpolation with
    explicit scales and pixel offsets.

        OutputX = (InputX + InputPixelOffset) * Scale + OutputPixelOffset, per axis; inverse InputX = (OutputX
            - OutputPixelOffset) / Scale - InputPixelOffset

    DML_RESAMPLE1_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Of two that are equally near it is the one behind: so ONNX Runtime takes it from DirectML. The remark on
    DirectML's page of RESAMPLE2, which shifts OutputPixelOffsets instead, holds for scales of 1 only.

    Args:
        input: input, FLOAT32, FLOAT16; INT8, UINT8 from 6_2; 1 to 4 dimensions (4 below 5_1). Any sizes.
        interpolation_mode: DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR (nearest input element) or
            DML_INTERPOLATION_MODE_LINEAR (weighted mean of the 2 nearest input elements per axis, up to 4
            axes = 16 elements).
        scales: Per axis, > 1 enlarges, < 1 shrinks; need not equal OutputSize / InputSize.
        input_pixel_offsets: Per axis, added to the input coordinate before scaling; 0.5 = pixel centres
            (behaves as RESAMPLE), 0 = top-left corner. When None, 0.5 for each dimension.
        output_pixel_offsets: Per axis, added after scaling; -0.5 = pixel centres (behaves as RESAMPLE), 0 =
            top-left corner. When None, -0.5 for each dimension.
        sizes: The sizes of the output; those of `out` when None, or the usual ones.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT8, UINT8 from 6_2; 1 to 4 dimensions (4 below 5_1). Any sizes; chosen by the
        caller, not tied to Scales.
    """
    if unknown:
        raise unexpected(resample1, unknown)
    results: T = call(
        "RESAMPLE1",
        (input,),
        (interpolation_mode, scales, input_pixel_offsets, output_pixel_offsets),
        out,
        device,
        sizes=sizes,
    )
    return results


@overload
def matrix_multiply_integer(
    a: Array | float,
    a_zero_point: Array | float | None,
    b: Array | float,
    b_zero_point: Array | float | None = None,
    *,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def matrix_multiply_integer(
    a: T | float,
    a_zero_point: T | float | None,
    b: T | float,
    b_zero_point: T | float | None = None,
    *,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def matrix_multiply_integer(
    a: T | float,
    a_zero_point: T | float | None,
    b: T | float,
    b_zero_point: T | float | None = None,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Batched integer matrix product of 8-bit matrices with optional zero points, giving 32-bit integers.

        Output[b,c,m,n] = sum_k (int32(A[b,c,m,k]) - AZeroPoint[m or 0]) * (int32(B[b,c,k,n]) - BZeroPoint[n
            or 0])

    DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    The sums are exact; beyond INT32 they wrap.

    Args:
        a: input, INT8, UINT8; 2 to 4 dimensions (4 below 4_0). { [BatchCount], [ChannelCount], M, K }.
        a_zero_point: input, optional; INT8, UINT8; 1 to 4 dimensions (4 below 4_0). { 1,1,1,1 } per tensor or
            { 1,1,M,1 } per row.
        b: input, INT8, UINT8; 2 to 4 dimensions (4 below 4_0). { [BatchCount], [ChannelCount], K, N }.
        b_zero_point: input, optional; INT8, UINT8; 1 to 4 dimensions (2 to 4 below 5_2, 4 below 4_0). {
            1,1,1,1 } per tensor or { 1,1,1,N } per column.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        INT32; 2 to 4 dimensions (4 below 4_0). { [BatchCount], [ChannelCount], M, N }.
    """
    if unknown:
        raise unexpected(matrix_multiply_integer, unknown)
    results: T = call("MATRIX_MULTIPLY_INTEGER", (a, a_zero_point, b, b_zero_point), (), out, device)
    return results


@overload
def quantized_linear_matrix_multiply(
    a: Array | float,
    a_scale: Array | float,
    a_zero_point: Array | float | None,
    b: Array | float,
    b_scale: Array | float,
    b_zero_point: Array | float | None,
    output_scale: Array | float,
    output_zero_point: Array | float | None = None,
    *,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def quantized_linear_matrix_multiply(
    a: T | float,
    a_scale: T | float,
    a_zero_point: T | float | None,
    b: T | float,
    b_scale: T | float,
    b_zero_point: T | float | None,
    output_scale: T | float,
    output_zero_point: T | float | None = None,
    *,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def quantized_linear_matrix_multiply(
    a: T | float,
    a_scale: T | float,
    a_zero_point: T | float | None,
    b: T | float,
    b_scale: T | float,
    b_zero_point: T | float | None,
    output_scale: T | float,
    output_zero_point: T | float | None = None,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Batched matrix product on linearly quantized 8-bit data: as if dequantizing A and B, multiplying, and
    requantizing.

        Y[b,c,m,n] = sum_k ((A[b,c,m,k] - AZP) * AScale) * ((B[b,c,k,n] - BZP) * BScale); Output =
            clamp(round(Y / OutputScale) + OutputZP, Min, Max)

    DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    The sums are exact. NaN (0 / 0, say) gives 0.

    Args:
        a: input, INT8, UINT8; 2 to 4 dimensions (4 below 4_0). { [BatchCount], [ChannelCount], M, K }.
        a_scale: input, FLOAT32; 1 to 4 dimensions (4 below 4_0). {1,1,1,1} per tensor or {1,1,M,1} per row;
            value 0 undefined.
        a_zero_point: input, optional; INT8, UINT8; 1 to 4 dimensions (4 below 4_0). {1,1,1,1} or {1,1,M,1}.
        b: input, INT8, UINT8; 2 to 4 dimensions (4 below 4_0). { [BatchCount], [ChannelCount], K, N }.
        b_scale: input, FLOAT32; 1 to 4 dimensions (4 below 4_0). {1,1,1,1} or {1,1,1,N} per column; value 0
            undefined.
        b_zero_point: input, optional; INT8, UINT8; 1 to 4 dimensions (4 below 4_0). {1,1,1,1} or {1,1,1,N}.
        output_scale: input, FLOAT32; 1 to 4 dimensions (4 below 4_0). {1,1,1,1} or {1,1,M,1} per row; value 0
            undefined.
        output_zero_point: input, optional; INT8, UINT8; 1 to 4 dimensions (4 below 4_0). {1,1,1,1} or
            {1,1,M,1}.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        INT8, UINT8; 2 to 4 dimensions (4 below 4_0). { [BatchCount], [ChannelCount], M, N }.
    """
    if unknown:
        raise unexpected(quantized_linear_matrix_multiply, unknown)
    results: T = call(
        "QUANTIZED_LINEAR_MATRIX_MULTIPLY",
        (a, a_scale, a_zero_point, b, b_scale, b_zero_point, output_scale, output_zero_point),
        (),
        out,
        device,
    )
    return results


@overload
def convolution_integer(
    input: Array | float,
    input_zero_point: Array | float | None,
    filter: Array | float,
    filter_zero_point: Array | float | None = None,
    *,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    group_count: int = 1,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def convolution_integer(
    input: T | float,
    input_zero_point: T | float | None,
    filter: T | float,
    filter_zero_point: T | float | None = None,
    *,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    group_count: int = 1,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def convolution_integer(
    input: T | float,
    input_zero_point: T | float | None,
    filter: T | float,
    filter_zero_point: T | float | None = None,
    *,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    group_count: int = 1,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Forward convolution of 8-bit integer input and filter with optional zero points subtracted from each,
    32-bit integer result.

        Output[n,oc,y,x] = sum over ic,ky,kx of (int32(Input[n,ic,y*Sy - Py + ky*Dy, x*Sx - Px + kx*Dx]) -
            InputZeroPoint) * (int32(Filter[oc,ic,ky,kx]) - FilterZeroPoint[oc or 0]) over the group's input
            channels; padded positions contribute 0

    DML_CONVOLUTION_INTEGER_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    The sums are exact; beyond INT32 they wrap. A padded position counts as the zero point.

    Args:
        input: input, INT8, UINT8; 3 to 4 dimensions (4 below 4_0). { BatchCount, InputChannelCount,
            InputHeight, InputWidth }.
        input_zero_point: input, optional; INT8, UINT8; 1 to 4 dimensions (4 below 4_0). One element,
            {1,1,1,1}.
        filter: input, INT8, UINT8; 3 to 4 dimensions (4 below 4_0). { FilterBatchCount, FilterChannelCount,
            FilterHeight, FilterWidth }.
        filter_zero_point: input, optional; INT8, UINT8; 1 to 4 dimensions (4 below 4_0). {1,1,1,1} per tensor
            or {1,OutputChannelCount,1,1} per channel.
        strides: Step of the filter per spatial axis (not tensor strides). When None, 1 for each dimension.
        dilations: Spacing between filter elements per spatial axis; 1 = dense. When None, 1 for each
            dimension.
        start_padding: Padding at the start of each spatial axis of the input. When None, 0 for each
            dimension.
        end_padding: Padding at the end of each spatial axis of the input. When None, 0 for each dimension.
        group_count: Number of groups; equal to the input channel count gives depth-wise convolution.
        sizes: The sizes of the output; those of `out` when None, or the usual ones.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        INT32; 3 to 4 dimensions (4 below 4_0). { BatchCount, OutputChannelCount, OutputHeight, OutputWidth }.
    """
    if unknown:
        raise unexpected(convolution_integer, unknown)
    results: T = call(
        "CONVOLUTION_INTEGER",
        (input, input_zero_point, filter, filter_zero_point),
        (strides, dilations, start_padding, end_padding, group_count),
        out,
        device,
        sizes=sizes,
    )
    return results


@overload
def quantized_linear_convolution(
    input: Array | float,
    input_scale: Array | float,
    input_zero_point: Array | float | None,
    filter: Array | float,
    filter_scale: Array | float,
    filter_zero_point: Array | float | None,
    bias: Array | float | None,
    output_scale: Array | float,
    output_zero_point: Array | float | None = None,
    *,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    group_count: int = 1,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def quantized_linear_convolution(
    input: T | float,
    input_scale: T | float,
    input_zero_point: T | float | None,
    filter: T | float,
    filter_scale: T | float,
    filter_zero_point: T | float | None,
    bias: T | float | None,
    output_scale: T | float,
    output_zero_point: T | float | None = None,
    *,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    group_count: int = 1,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def quantized_linear_convolution(
    input: T | float,
    input_scale: T | float,
    input_zero_point: T | float | None,
    filter: T | float,
    filter_scale: T | float,
    filter_zero_point: T | float | None,
    bias: T | float | None,
    output_scale: T | float,
    output_zero_point: T | float | None = None,
    *,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    group_count: int = 1,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Forward convolution on linearly quantized 8-bit data: as if dequantizing input and filter, convolving,
    adding bias, and requantizing.

        Y = conv((Input - InputZP) * InputScale, (Filter - FilterZP) * FilterScale) + bias; Output =
            clamp(round(Y / OutputScale) + OutputZP, Min, Max)

    DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    The sums are exact; the bias counts in units of scale * filter_scale, as in ONNX. NaN gives 0.

    Args:
        input: input, INT8, UINT8; 3 to 4 dimensions (4 below 4_0). { InputBatchCount, InputChannelCount,
            InputHeight, InputWidth }.
        input_scale: input, FLOAT32; 1 to 4 dimensions (4 below 4_0). {1,1,1,1}; value 0 undefined.
        input_zero_point: input, optional; INT8, UINT8; 1 to 4 dimensions (4 below 4_0). {1,1,1,1}.
        filter: input, INT8, UINT8; 3 to 4 dimensions (4 below 4_0). { FilterBatchCount, FilterChannelCount,
            FilterHeight, FilterWidth }.
        filter_scale: input, FLOAT32; 1 to 4 dimensions (3 to 4 below 5_2, 4 below 4_0). {1,1,1,1} per tensor
            or {1,OutputChannelCount,1,1} per channel; value 0 undefined.
        filter_zero_point: input, optional; INT8, UINT8; 1 to 4 dimensions (4 below 4_0). {1,1,1,1} or
            {1,OutputChannelCount,1,1}.
        bias: input, optional; INT32; 3 to 4 dimensions (4 below 4_0). INT32; {1,OutputChannelCount,1,1},
            broadcast over the output and added after the convolution.
        output_scale: input, FLOAT32; 1 to 4 dimensions (4 below 4_0). {1,1,1,1}; value 0 undefined.
        output_zero_point: input, optional; INT8, UINT8; 1 to 4 dimensions (4 below 4_0). {1,1,1,1}.
        strides: Step of the filter per spatial axis (not tensor strides). When None, 1 for each dimension.
        dilations: Spacing between filter elements per spatial axis; 1 = dense. When None, 1 for each
            dimension.
        start_padding: Padding at the start of each spatial axis of the input. When None, 0 for each
            dimension.
        end_padding: Padding at the end of each spatial axis of the input. When None, 0 for each dimension.
        group_count: Number of groups; equal to the input channel count gives depth-wise convolution.
        sizes: The sizes of the output; those of `out` when None, or the usual ones.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        INT8, UINT8; 3 to 4 dimensions (4 below 4_0). { OutputBatchCount, OutputChannelCount, OutputHeight,
        OutputWidth }.
    """
    if unknown:
        raise unexpected(quantized_linear_convolution, unknown)
    results: T = call(
        "QUANTIZED_LINEAR_CONVOLUTION",
        (
            input,
            input_scale,
            input_zero_point,
            filter,
            filter_scale,
            filter_zero_point,
            bias,
            output_scale,
            output_zero_point,
        ),
        (strides, dilations, start_padding, end_padding, group_count),
        out,
        device,
        sizes=sizes,
    )
    return results


def element_wise_bit_and(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise bitwise AND of two tensors on their raw bit patterns.

        Output = A & B, bit by bit

    DML_ELEMENT_WISE_BIT_AND_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. OutputTensor may be the same memory as
    ATensor or BTensor.

    Args:
        a: input, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64 from
            4_1; 1 to 8 dimensions. Left operand.
        b: input, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64 from
            4_1; 1 to 8 dimensions. Right operand, same sizes (no implicit broadcasting).
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64 from 4_1; 1 to 8
        dimensions. Same sizes.
    """
    if unknown:
        raise unexpected(element_wise_bit_and, unknown)
    results: T = call("ELEMENT_WISE_BIT_AND", (a, b), (), out, device)
    return results


def element_wise_bit_or(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise bitwise OR of two tensors on their raw bit patterns.

        Output = A | B, bit by bit

    DML_ELEMENT_WISE_BIT_OR_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. OutputTensor may be the same memory as
    ATensor or BTensor.

    Args:
        a: input, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64 from
            4_1; 1 to 8 dimensions. Left operand.
        b: input, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64 from
            4_1; 1 to 8 dimensions. Right operand, same sizes (no implicit broadcasting).
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64 from 4_1; 1 to 8
        dimensions. Same sizes.
    """
    if unknown:
        raise unexpected(element_wise_bit_or, unknown)
    results: T = call("ELEMENT_WISE_BIT_OR", (a, b), (), out, device)
    return results


def element_wise_bit_xor(
    a: T | float,
    b: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise bitwise XOR of two tensors on their raw bit patterns.

        Output = A ^ B, bit by bit

    DML_ELEMENT_WISE_BIT_XOR_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. OutputTensor may be the same memory as
    ATensor or BTensor.

    Args:
        a: input, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64 from
            4_1; 1 to 8 dimensions. Left operand.
        b: input, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64 from
            4_1; 1 to 8 dimensions. Right operand, same sizes (no implicit broadcasting).
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64 from 4_1; 1 to 8
        dimensions. Same sizes.
    """
    if unknown:
        raise unexpected(element_wise_bit_xor, unknown)
    results: T = call("ELEMENT_WISE_BIT_XOR", (a, b), (), out, device)
    return results


def element_wise_bit_not(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Element-wise bitwise complement on the raw bit pattern.

        Output = ~Input

    DML_ELEMENT_WISE_BIT_NOT_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. OutputTensor may be the same memory as
    InputTensor.

    Args:
        input: input, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64 from
            4_1; 1 to 8 dimensions. Any sizes.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64 from 4_1; 1 to 8
        dimensions. Same sizes.
    """
    if unknown:
        raise unexpected(element_wise_bit_not, unknown)
    results: T = call("ELEMENT_WISE_BIT_NOT", (input,), (), out, device)
    return results


@overload
def element_wise_bit_count(
    input: Array,
    *,
    output_type: DataTypeLike | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def element_wise_bit_count(
    input: T,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def element_wise_bit_count(
    input: T,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Counts the bits set to 1 in the raw pattern of each element.

        Output = popcount(bits of Input)

    DML_ELEMENT_WISE_BIT_COUNT_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Args:
        input: input, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64 from
            4_1; 1 to 8 dimensions. Any sizes.
        output_type: The type of the output; that of `out` when None, or UINT8.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        UINT32, UINT8; 1 to 8 dimensions. Same sizes, UINT32 or UINT8 independent of the input type.
    """
    if unknown:
        raise unexpected(element_wise_bit_count, unknown)
    results: T = call("ELEMENT_WISE_BIT_COUNT", (input,), (), out, device, output_type=output_type)
    return results


def activation_relu_grad(
    input: T | float,
    input_gradient: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Backpropagates a gradient through ReLU: passes it where the forward input was positive, zero elsewhere.

        OutputGradient = (Input > 0 ? InputGradient : 0)

    DML_ACTIVATION_RELU_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8 from 5_1; 1 to 8 dimensions. forward-pass input of
            ReLU.
        input_gradient: input, FLOAT32, FLOAT16; INT32, INT16, INT8 from 5_1; 1 to 8 dimensions. Incoming
            gradient, same sizes.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8 from 5_1; 1 to 8 dimensions. Same sizes.
    """
    if unknown:
        raise unexpected(activation_relu_grad, unknown)
    results: T = call("ACTIVATION_RELU_GRAD", (input, input_gradient), (), out, device)
    return results


@overload
def average_pooling_grad(
    input_gradient: Array,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    include_padding: bool,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def average_pooling_grad(
    input_gradient: T,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    include_padding: bool,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def average_pooling_grad(
    input_gradient: T,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    include_padding: bool,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Backpropagates a gradient through average pooling: each incoming value is spread evenly over its
    forward window, overlaps add up.

        OutputGradient = 0; for every incoming position o: for every in-bounds element i of its window:
            OutputGradient[i] += InputGradient[o] / divisor(o); divisor = product(WindowSize) with
            IncludePadding, else the number of in-bounds window elements

    DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Sums are made in float64 and rounded once; where the numbers differ, so is each quotient before.

    Args:
        input_gradient: input, FLOAT32, FLOAT16; 4 to 5 dimensions. Typically the sizes of the forward output.
        strides: As AVERAGE_POOLING. When None, 1 for each dimension.
        window_size: As AVERAGE_POOLING.
        start_padding: As AVERAGE_POOLING. When None, 0 for each dimension.
        end_padding: As AVERAGE_POOLING. When None, 0 for each dimension.
        include_padding: As AVERAGE_POOLING (whether padding counts in the divisor).
        sizes: The sizes of the output; those of `out` when None.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 4 to 5 dimensions. Typically the sizes of the forward input.
    """
    if unknown:
        raise unexpected(average_pooling_grad, unknown)
    results: T = call(
        "AVERAGE_POOLING_GRAD",
        (input_gradient,),
        (strides, window_size, start_padding, end_padding, include_padding),
        out,
        device,
        sizes=sizes,
    )
    return results


def max_pooling_grad(
    input: T | float,
    input_gradient: T | float,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Backpropagates a gradient through max pooling: each incoming value goes to the position of its window's
    maximum, overlaps add up, the rest is zero.

        OutputGradient = 0; for every incoming position o: i* = first (lowest logical index) position of the
            maximum of Input in the window of o; OutputGradient[i*] += InputGradient[o]

    DML_MAX_POOLING_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Of equal elements it is the first in row-major order, and NaN counts as the greatest, as the indices of
    MAX_POOLING2 have it. A window of nothing but padding gives its gradient to no element. Sums are made in
    float64 and rounded once.

    Args:
        input: input, FLOAT32, FLOAT16; 4 to 5 dimensions (4 below 4_0). forward-pass input.
        input_gradient: input, FLOAT32, FLOAT16; 4 to 5 dimensions (4 below 4_0). Typically the sizes of the
            forward output.
        strides: As MAX_POOLING2. When None, 1 for each dimension.
        window_size: As MAX_POOLING2.
        start_padding: As MAX_POOLING2. When None, 0 for each dimension.
        end_padding: As MAX_POOLING2. When None, 0 for each dimension.
        dilations: As MAX_POOLING2. When None, 1 for each dimension.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 4 to 5 dimensions (4 below 4_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(max_pooling_grad, unknown)
    results: T = call(
        "MAX_POOLING_GRAD",
        (input, input_gradient),
        (strides, window_size, start_padding, end_padding, dilations),
        out,
        device,
    )
    return results


@overload
def random_generator(
    input_state: Array,
    *,
    type: RandomGeneratorType | str = RandomGeneratorType.PHILOX_4X32_10,
    output_state: Literal[False] = False,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def random_generator(
    input_state: Array,
    *,
    type: RandomGeneratorType | str = RandomGeneratorType.PHILOX_4X32_10,
    output_state: Literal[True],
    sizes: Sequence[int] | None = None,
    out: tuple[Array, Array] | None = None,
    device: str | Device | None = None,
) -> RandomGeneratorOutputs[Array]: ...


@overload
def random_generator(
    input_state: T,
    *,
    type: RandomGeneratorType | str = RandomGeneratorType.PHILOX_4X32_10,
    output_state: Literal[False] = False,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


@overload
def random_generator(
    input_state: T,
    *,
    type: RandomGeneratorType | str = RandomGeneratorType.PHILOX_4X32_10,
    output_state: Literal[True],
    sizes: Sequence[int] | None = None,
    out: tuple[T, T] | None = None,
    device: str | Device | None = None,
) -> RandomGeneratorOutputs[T]: ...


def random_generator(
    input_state: T,
    *,
    type: RandomGeneratorType | str = RandomGeneratorType.PHILOX_4X32_10,
    output_state: bool = False,
    sizes: Sequence[int] | None = None,
    out: T | tuple[T, T] | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T | RandomGeneratorOutputs[T]:
    """Fills the output with deterministic uniform pseudo-random 32-bit words from a counter-based generator
    and can return the advanced state.

        state = 128-bit counter C (state elements 0..3) and 64-bit key (elements 4..5); each counter value C +
            j yields 4 words by Philox 4x32-10(counter, key); Output is the concatenation of the words,
            truncated to the output's element count N; OutputState = { C + ceil(N / 4), same key }

    DML_RANDOM_GENERATOR_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    The first word of the state is the least significant one of the counter, as in Random123, whose published
    numbers these are. The counter goes on from 0 after its last value.

    Args:
        input_state: input, UINT32; 1 to 8 dimensions (4 below 4_0). UINT32, 6 elements {1,1,1,6}: four words
            of counter, two words of key; leading dimensions 1.
        type: DML_RANDOM_GENERATOR_TYPE_PHILOX_4X32_10 is the only valid value.
        output_state: Whether this output is returned too.
        sizes: The sizes of output; those of `out` when None.
        out: Where to write, for several outputs a tuple with an array for each output, None for those that
            are not asked for; new arrays (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        output, or where another output is asked for, opendml.outputs.RandomGeneratorOutputs, a named tuple:
        output: UINT32; 1 to 8 dimensions (4 below 4_0). UINT32, any sizes.
        output_state: optional; UINT32; 1 to 8 dimensions (4 below 4_0). Same sizes as InputStateTensor.
    """
    if unknown:
        raise unexpected(random_generator, unknown)
    results: T | RandomGeneratorOutputs[T] = call_several(
        "RANDOM_GENERATOR",
        (input_state,),
        (type,),
        out,
        device,
        sizes=sizes,
        wanted=(output_state,),
    )
    return results


@overload
def nonzero_coordinates(
    input: Array,
    *,
    out: tuple[Array, Array] | None = None,
    device: str | Device | None = None,
) -> NonzeroCoordinatesOutputs[Array]: ...


@overload
def nonzero_coordinates(
    input: T,
    *,
    out: tuple[T, T] | None = None,
    device: str | Device | None = None,
) -> NonzeroCoordinatesOutputs[T]: ...


def nonzero_coordinates(
    input: T,
    *,
    out: tuple[T, T] | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> NonzeroCoordinatesOutputs[T]:
    """Lists the N-dimensional coordinates of all non-zero input elements and their count.

        rows = [coord(e) for e in elements in ascending logical index if Input[e] != 0]; OutputCount =
            len(rows); OutputCoordinates[0:OutputCount] = last N components of each coordinate

    DML_NONZERO_COORDINATES_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    NaN is not 0, -0 is. The rows from the count on are 0. Where a row has fewer coordinates than there are
    dimensions, those of the first dimensions are left out.

    Args:
        input: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; 1 to 8 dimensions (4 to 5
            below 4_0). Any sizes.
        out: Where to write, a tuple with an array for each output; new arrays (of the inputs' kind) when
            None.
        device: Where to run; the default device when None.

    Returns:
        opendml.outputs.NonzeroCoordinatesOutputs, a named tuple:
        output_count: UINT32; 1 to 8 dimensions (4 to 5 below 4_0). Scalar (all sizes 1), UINT32.
        output_coordinates: UINT32; 2 to 8 dimensions (4 to 5 below 4_0). { 1.., M, N }: M = total number of
            input elements (worst case), effective rank of InputTensor <= N <= InputTensor.DimensionCount.
    """
    if unknown:
        raise unexpected(nonzero_coordinates, unknown)
    results: NonzeroCoordinatesOutputs[T] = call_several("NONZERO_COORDINATES", (input,), (), out, device)
    return results


@overload
def resample_grad(
    input_gradient: Array,
    *,
    interpolation_mode: InterpolationMode | str,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float] | None = None,
    output_pixel_offsets: Sequence[float] | None = None,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def resample_grad(
    input_gradient: T,
    *,
    interpolation_mode: InterpolationMode | str,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float] | None = None,
    output_pixel_offsets: Sequence[float] | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def resample_grad(
    input_gradient: T,
    *,
    interpolation_mode: InterpolationMode | str,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float] | None = None,
    output_pixel_offsets: Sequence[float] | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Backpropagates a gradient through RESAMPLE1 (transpose of the interpolation).

        OutputGradient[i] = sum over o of weight(o, i) * InputGradient[o], where forward Output[o] = sum_i
            weight(o, i) * Input[i]

    DML_RESAMPLE_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Args:
        input_gradient: input, FLOAT32, FLOAT16; 1 to 4 dimensions (4 below 5_1). Typically the sizes of the
            forward output.
        interpolation_mode: As RESAMPLE1 (NEAREST_NEIGHBOR or LINEAR).
        scales: As RESAMPLE1 (forward-pass scales).
        input_pixel_offsets: As RESAMPLE1. When None, 0.5 for each dimension.
        output_pixel_offsets: As RESAMPLE1. When None, -0.5 for each dimension.
        sizes: The sizes of the output; those of `out` when None.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 4 dimensions (4 below 5_1). Typically the sizes of the forward input.
    """
    if unknown:
        raise unexpected(resample_grad, unknown)
    results: T = call(
        "RESAMPLE_GRAD",
        (input_gradient,),
        (interpolation_mode, scales, input_pixel_offsets, output_pixel_offsets),
        out,
        device,
        sizes=sizes,
    )
    return results


@overload
def slice_grad(
    input_gradient: Array,
    *,
    input_window_offsets: Sequence[int] | None = None,
    input_window_sizes: Sequence[int],
    input_window_strides: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def slice_grad(
    input_gradient: T,
    *,
    input_window_offsets: Sequence[int] | None = None,
    input_window_sizes: Sequence[int],
    input_window_strides: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def slice_grad(
    input_gradient: T,
    *,
    input_window_offsets: Sequence[int] | None = None,
    input_window_sizes: Sequence[int],
    input_window_strides: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Backpropagates a gradient through SLICE1: writes the incoming values at the sliced positions, zero
    elsewhere.

        OutputGradient = 0; start[i] = InputWindowOffsets[i] + (InputWindowStrides[i] < 0 ?
            InputWindowSizes[i] - 1 : 0); OutputGradient[start + InputWindowStrides * c] = InputGradient[c]

    DML_SLICE_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Args:
        input_gradient: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 to 5 below 3_1). Typically the sizes of the SLICE1 output.
        input_window_offsets: As SLICE1. When None, 0 for each dimension.
        input_window_sizes: As SLICE1.
        input_window_strides: As SLICE1; must be non-zero; negative flips the axis. When None, 1 for each
            dimension.
        sizes: The sizes of the output; those of `out` when None.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64 from 4_1; 1 to 8
        dimensions (4 to 5 below 3_1). Typically the sizes of the SLICE1 input.
    """
    if unknown:
        raise unexpected(slice_grad, unknown)
    results: T = call(
        "SLICE_GRAD",
        (input_gradient,),
        (input_window_offsets, input_window_sizes, input_window_strides),
        out,
        device,
        sizes=sizes,
    )
    return results


def adam_optimizer(
    input_parameters: T | float,
    input_first_moment: T | float,
    input_second_moment: T | float,
    gradient: T | float,
    training_step: T | float,
    *,
    learning_rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-08,
    out: tuple[T, T, T] | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> AdamOptimizerOutputs[T]:
    """One Adam update step: new weights and new first and second moment estimates from a gradient.

        M = Beta1*M + (1 - Beta1)*G; V = Beta2*V + (1 - Beta2)*G*G; Alpha = sqrt(1 - pow(Beta2, T)) / (1 -
            pow(Beta1, T)); X = X - LearningRate * Alpha * M / (sqrt(V) + Epsilon); with X, M, V, G, T =
            parameters, first moment, second moment, gradient, training step; outputs are the updated X, M, V

    DML_ADAM_OPTIMIZER_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. OutputParametersTensor may be the same
    memory as InputParametersTensor, InputFirstMomentTensor, InputSecondMomentTensor or GradientTensor.

    Steps count from 1: step 0 makes NaN of the parameters, as it does in DirectML's formula, whose alpha is 0
    / 0 there. The parameters are made of m and v as they were before they were rounded to their type. Where v
    is beyond float32 it is infinite, and the step 0; where it is below float32 it is 0, and only epsilon is
    divided by. The reference device goes on with the exact numbers.

    Args:
        input_parameters: input, FLOAT32, FLOAT16; 4 dimensions. Weights, {D0,D1,D2,D3}.
        input_first_moment: input, FLOAT32, FLOAT16; 4 dimensions. Same sizes; zero at the first step.
        input_second_moment: input, FLOAT32, FLOAT16; 4 dimensions. Same sizes; zero at the first step.
        gradient: input, FLOAT32, FLOAT16; 4 dimensions. Same sizes.
        training_step: input, UINT32; 4 dimensions. Scalar (all sizes 1), UINT32.
        learning_rate: Step size.
        beta1: Decay of the first moment, should lie in 0..1, usually 0.9.
        beta2: Decay of the second moment, should lie in 0..1, usually 0.999.
        epsilon: Avoids division by zero, usually 1e-8 or FLT_EPSILON for 32-bit floats.
        out: Where to write, a tuple with an array for each output; new arrays (of the inputs' kind) when
            None.
        device: Where to run; the default device when None.

    Returns:
        opendml.outputs.AdamOptimizerOutputs, a named tuple:
        output_parameters: FLOAT32, FLOAT16; 4 dimensions. Same sizes.
        output_first_moment: FLOAT32, FLOAT16; 4 dimensions. Same sizes.
        output_second_moment: FLOAT32, FLOAT16; 4 dimensions. Same sizes.
    """
    if unknown:
        raise unexpected(adam_optimizer, unknown)
    results: AdamOptimizerOutputs[T] = call_several(
        "ADAM_OPTIMIZER",
        (input_parameters, input_first_moment, input_second_moment, gradient, training_step),
        (learning_rate, beta1, beta2, epsilon),
        out,
        device,
    )
    return results


@overload
def roi_align(
    input: Array | float,
    roi: Array | float,
    batch_indices: Array | float,
    *,
    reduction_function: ReduceFunction | str,
    interpolation_mode: InterpolationMode | str,
    spatial_scale_x: float,
    spatial_scale_y: float,
    out_of_bounds_input_value: float,
    minimum_samples_per_output: int,
    maximum_samples_per_output: int,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def roi_align(
    input: T | float,
    roi: T | float,
    batch_indices: T | float,
    *,
    reduction_function: ReduceFunction | str,
    interpolation_mode: InterpolationMode | str,
    spatial_scale_x: float,
    spatial_scale_y: float,
    out_of_bounds_input_value: float,
    minimum_samples_per_output: int,
    maximum_samples_per_output: int,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def roi_align(
    input: T | float,
    roi: T | float,
    batch_indices: T | float,
    *,
    reduction_function: ReduceFunction | str,
    interpolation_mode: InterpolationMode | str,
    spatial_scale_x: float,
    spatial_scale_y: float,
    out_of_bounds_input_value: float,
    minimum_samples_per_output: int,
    maximum_samples_per_output: int,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """ROI align (Mask R-CNN): crops regions of interest from feature maps and resizes each to a common output
    size.

        per ROI: scaled corners = ROI * SpatialScale; samples per output = clamp(scaledSize / outputSize,
            MinimumSamplesPerOutput, MaximumSamplesPerOutput) per axis; output element = average or max of
            that many interpolated input samples per axis; detailed pseudo-code under ROI_ALIGN1 with
            InputPixelOffset 0.5, OutputPixelOffset -0.5, AlignRegionsToCorners FALSE

    DML_ROI_ALIGN_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Samples, what is out of bounds, and batch indices as in ROI_ALIGN1.

    Args:
        input: input, FLOAT32, FLOAT16; 4 dimensions. { BatchCount, ChannelCount, InputHeight, InputWidth }.
        roi: input, FLOAT32, FLOAT16; 2 to 4 dimensions. {NumROIs,4}, {1,NumROIs,4} or {1,1,NumROIs,4}; each
            row [x1, y1, x2, y2] = top-left and bottom-right corner.
        batch_indices: input, UINT32; UINT64 from 5_0; 1 to 4 dimensions. {NumROIs}, {1,NumROIs},
            {1,1,NumROIs} or {1,1,1,NumROIs}; batch index of each ROI.
        reduction_function: DML_REDUCE_FUNCTION_AVERAGE or DML_REDUCE_FUNCTION_MAX over the samples of one
            output element.
        interpolation_mode: DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR (nearest to the pixel centre) or
            DML_INTERPOLATION_MODE_LINEAR (bilinear, 4 input elements).
        spatial_scale_x: Factor from ROI x to input x; InputWidth for normalized ROIs.
        spatial_scale_y: Factor from ROI y to input y; InputHeight for normalized ROIs.
        out_of_bounds_input_value: Value read where a sample lies outside the input.
        minimum_samples_per_output: Lower clamp of samples per output.
        maximum_samples_per_output: Upper clamp of samples per output.
        sizes: The sizes of the output; those of `out` when None.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 4 dimensions. { NumROIs, ChannelCount, OutputHeight, OutputWidth }.
    """
    if unknown:
        raise unexpected(roi_align, unknown)
    results: T = call(
        "ROI_ALIGN",
        (input, roi, batch_indices),
        (
            reduction_function,
            interpolation_mode,
            spatial_scale_x,
            spatial_scale_y,
            out_of_bounds_input_value,
            minimum_samples_per_output,
            maximum_samples_per_output,
        ),
        out,
        device,
        sizes=sizes,
    )
    return results


@overload
def roi_align1(
    input: Array | float,
    roi: Array | float,
    batch_indices: Array | float,
    *,
    reduction_function: ReduceFunction | str,
    interpolation_mode: InterpolationMode | str,
    spatial_scale_x: float,
    spatial_scale_y: float,
    input_pixel_offset: float = 0.5,
    output_pixel_offset: float = -0.5,
    out_of_bounds_input_value: float,
    minimum_samples_per_output: int,
    maximum_samples_per_output: int,
    align_regions_to_corners: bool = False,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def roi_align1(
    input: T | float,
    roi: T | float,
    batch_indices: T | float,
    *,
    reduction_function: ReduceFunction | str,
    interpolation_mode: InterpolationMode | str,
    spatial_scale_x: float,
    spatial_scale_y: float,
    input_pixel_offset: float = 0.5,
    output_pixel_offset: float = -0.5,
    out_of_bounds_input_value: float,
    minimum_samples_per_output: int,
    maximum_samples_per_output: int,
    align_regions_to_corners: bool = False,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def roi_align1(
    input: T | float,
    roi: T | float,
    batch_indices: T | float,
    *,
    reduction_function: ReduceFunction | str,
    interpolation_mode: InterpolationMode | str,
    spatial_scale_x: float,
    spatial_scale_y: float,
    input_pixel_offset: float = 0.5,
    output_pixel_offset: float = -0.5,
    out_of_bounds_input_value: float,
    minimum_samples_per_output: int,
    maximum_samples_per_output: int,
    align_regions_to_corners: bool = False,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """ROI align with explicit pixel offsets and optional corner alignment.

        outX = OutputTensor.Sizes[3], outY = Sizes[2]; x1,y1,x2,y2 = ROI[r] scaled by SpatialScaleX/Y; regionX
            = x2 - x1, regionY = y2 - y1; nX = clamp(regionX / outX, MinSamples, MaxSamples), nY likewise;
            scaleX = regionX / (outX * nX), scaleY = regionY / (outY * nY); for output (ox, oy, channel): over
            samples sx in [ox*nX, ox*nX + nX), sy in [oy*nY, oy*nY + nY): inX = (sx - OutputPixelOffset) *
            scaleX + x1 - InputPixelOffset, inY = (sy - OutputPixelOffset) * scaleY + y1 - InputPixelOffset,
            value = interpolate2D(Input, BatchIndices[r], channel, inX, inY); Output[r, channel, oy, ox] =
            average or maximum of the values

    DML_ROI_ALIGN1_OPERATOR_DESC, from DML_FEATURE_LEVEL_4_0. Not in place.

    nX is |regionX| / outX rounded up, but at least MinimumSamplesPerOutput and 1, and at most
    MaximumSamplesPerOutput; a region larger than the input has no more samples than one as large. As in ONNX
    and PyTorch, a sample is out of bounds, and is OutOfBoundsInputValue, if it is more than one element
    before the first or after the last; nearer ones are those at the edge. A region with NaN is out of bounds.
    The nearest neighbor is at floor(InputX + 0.5). The greatest is that of the interpolated samples. A batch
    index out of range is moved to the last batch.

    With AlignRegionsToCorners the divisor is outX * nX - 1, so that samples reach from corner to corner; a
    single sample is in the middle, as in TensorFlow's crop_and_resize.

    Averages of few channels are made along one dimension after the other where that is less work. Whatever a
    region is, an output looks at no more samples than one of the whole input has.

    Args:
        input: input, FLOAT32, FLOAT16; 4 dimensions. { BatchCount, ChannelCount, InputHeight, InputWidth }.
        roi: input, FLOAT32, FLOAT16; 2 to 4 dimensions. {NumROIs,4}, {1,NumROIs,4} or {1,1,NumROIs,4}; rows
            [x1, y1, x2, y2]; empty regions (all outputs from one input coordinate) and inverted regions
            (mirrored result) are allowed.
        batch_indices: input, UINT32; UINT64 from 5_0; 1 to 4 dimensions. {NumROIs}, {1,NumROIs},
            {1,1,NumROIs} or {1,1,1,NumROIs}.
        reduction_function: DML_REDUCE_FUNCTION_AVERAGE or DML_REDUCE_FUNCTION_MAX.
        interpolation_mode: DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR or DML_INTERPOLATION_MODE_LINEAR
            (bilinear).
        spatial_scale_x: Factor from ROI x to input x; InputWidth for normalized ROIs.
        spatial_scale_y: Factor from ROI y to input y; InputHeight for normalized ROIs.
        input_pixel_offset: Offset of input coordinates to the top-left pixel centre, typically 0 or 0.5; 0.5
            behaves as ROI_ALIGN.
        output_pixel_offset: Offset from the top-left pixel centre to output (0,0), typically 0 or -0.5; -0.5
            behaves as ROI_ALIGN.
        out_of_bounds_input_value: Value read where a sample lies outside the input.
        minimum_samples_per_output: Lower clamp of samples per output.
        maximum_samples_per_output: Upper clamp of samples per output.
        align_regions_to_corners: TRUE stretches the sample points to the very corners of the region; FALSE
            (default) behaves as ROI_ALIGN.
        sizes: The sizes of the output; those of `out` when None.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 4 dimensions. { NumROIs, ChannelCount, OutputHeight, OutputWidth }.
    """
    if unknown:
        raise unexpected(roi_align1, unknown)
    results: T = call(
        "ROI_ALIGN1",
        (input, roi, batch_indices),
        (
            reduction_function,
            interpolation_mode,
            spatial_scale_x,
            spatial_scale_y,
            input_pixel_offset,
            output_pixel_offset,
            out_of_bounds_input_value,
            minimum_samples_per_output,
            maximum_samples_per_output,
            align_regions_to_corners,
        ),
        out,
        device,
        sizes=sizes,
    )
    return results


@overload
def gather_nd1(
    input: Array | float,
    indices: Array | float,
    *,
    input_dimension_count: int,
    indices_dimension_count: int,
    batch_dimension_count: int,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def gather_nd1(
    input: T | float,
    indices: T | float,
    *,
    input_dimension_count: int,
    indices_dimension_count: int,
    batch_dimension_count: int,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def gather_nd1(
    input: T | float,
    indices: T | float,
    *,
    input_dimension_count: int,
    indices_dimension_count: int,
    batch_dimension_count: int,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Gathers sub-blocks of the input addressed by index tuples, with optional leading batch dimensions
    shared by all tensors.

        Output[batch..., i..., j...] = Input[batch..., Indices[batch..., i..., 0 .. indexTupleSize-1], j...],
            indexTupleSize = IndicesTensor.Sizes[last]

    DML_GATHER_ND1_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Indices as in GATHER.

    Args:
        input: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64 from
            4_1; 1 to 8 dimensions. Data, right-aligned with leading 1s.
        indices: input, INT64, INT32, UINT64, UINT32; 1 to 8 dimensions. Last dimension = coordinates per
            tuple (indexTupleSize <= InputTensor.DimensionCount); e.g. {1,4,5,2} with IndicesDimensionCount 3
            = 4x5 array of 2-coordinate tuples.
        input_dimension_count: Number of meaningful (rightmost) dimensions of InputTensor,
            1..InputTensor.DimensionCount; {1,1,4,6} with 3 means {1,4,6}.
        indices_dimension_count: Number of meaningful (rightmost) dimensions of IndicesTensor,
            1..IndicesTensor.DimensionCount.
        batch_dimension_count: Leading meaningful dimensions treated as independent batches; in [0,
            InputTensor.DimensionCount) and [0, IndicesTensor.DimensionCount); 0 = GATHER_ND. Example: indices
            {1,3,4,5,6,7}, IndicesDimensionCount 5, BatchDimensionCount 2 -> batches {3,4}, meaningful indices
            {5,6,7}.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64, UINT64 from 4_1; 1 to 8
        dimensions. right-aligned, leading 1s: meaningful indices sizes without the last one, followed by the
        input sizes after the batch and tuple dimensions.
    """
    if unknown:
        raise unexpected(gather_nd1, unknown)
    results: T = call(
        "GATHER_ND1",
        (input, indices),
        (input_dimension_count, indices_dimension_count, batch_dimension_count),
        out,
        device,
    )
    return results


@overload
def dynamic_quantize_linear(
    input: Array,
    *,
    output_type: DataTypeLike | None = None,
    out: tuple[Array, Array, Array] | None = None,
    device: str | Device | None = None,
) -> DynamicQuantizeLinearOutputs[Array]: ...


@overload
def dynamic_quantize_linear(
    input: T,
    *,
    output_type: DataTypeLike | None = None,
    out: tuple[T, T, T] | None = None,
    device: str | Device | None = None,
) -> DynamicQuantizeLinearOutputs[T]: ...


def dynamic_quantize_linear(
    input: T,
    *,
    output_type: DataTypeLike | None = None,
    out: tuple[T, T, T] | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> DynamicQuantizeLinearOutputs[T]:
    """Finds scale and zero point from the minimum and maximum of the whole input, then quantizes the input
    with them.

        InputMax = max(Input), InputMin = min(Input); OutputScale = (InputMax - InputMin) / (Max - Min);
            OutputZeroPoint = Min - InputMin / OutputScale; Output = clamp(round(Input / OutputScale) +
            OutputZeroPoint, Min, Max); UINT8: Min 0, Max 255; INT8: Min -128, Max 127

    DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC, from DML_FEATURE_LEVEL_4_0. Not in place.

    As in ONNX, which ONNX Runtime gives to this operator, 0 counts among the elements whose extremes are
    taken, so that it has a number of its own. Where all elements are 0, the scale is 1. A NaN makes the scale
    NaN and all numbers 0. An infinity, or max(x) - min(x) beyond float32, makes the scale infinite: infinite
    elements then are 0, the others the zero point, which is Min, or 0 beside -infinity.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Any sizes.
        output_type: The type of output; that of `out` when None, or that of OutputZeroPointTensor, or UINT8.
        out: Where to write, a tuple with an array for each output; new arrays (of the inputs' kind) when
            None.
        device: Where to run; the default device when None.

    Returns:
        opendml.outputs.DynamicQuantizeLinearOutputs, a named tuple:
        output: INT8, UINT8; 1 to 8 dimensions. Same sizes as the input (implied).
        output_scale: FLOAT32; 1 to 8 dimensions. 1 element.
        output_zero_point: INT8, UINT8; 1 to 8 dimensions. 1 element, same type as OutputTensor.
    """
    if unknown:
        raise unexpected(dynamic_quantize_linear, unknown)
    results: DynamicQuantizeLinearOutputs[T] = call_several(
        "DYNAMIC_QUANTIZE_LINEAR",
        (input,),
        (),
        out,
        device,
        output_type=output_type,
    )
    return results


@overload
def element_wise_quantized_linear_add(
    a: Array | float,
    a_scale: Array | float,
    a_zero_point: Array | float | None,
    b: Array | float,
    b_scale: Array | float,
    b_zero_point: Array | float | None,
    output_scale: Array | float,
    output_zero_point: Array | float | None = None,
    *,
    output_type: DataTypeLike | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def element_wise_quantized_linear_add(
    a: T | float,
    a_scale: T | float,
    a_zero_point: T | float | None,
    b: T | float,
    b_scale: T | float,
    b_zero_point: T | float | None,
    output_scale: T | float,
    output_zero_point: T | float | None = None,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def element_wise_quantized_linear_add(
    a: T | float,
    a_scale: T | float,
    a_zero_point: T | float | None,
    b: T | float,
    b_scale: T | float,
    b_zero_point: T | float | None,
    output_scale: T | float,
    output_zero_point: T | float | None = None,
    *,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Adds two linearly quantized tensors element by element and requantizes the sum.

        Y = (A - AZeroPoint) * AScale + (B - BZeroPoint) * BScale; Output = clamp(round(Y / OutputScale) +
            OutputZeroPoint, Min, Max); UINT8 output: 0..255, INT8 output: -128..127

    DML_ELEMENT_WISE_QUANTIZED_LINEAR_ADD_OPERATOR_DESC, from DML_FEATURE_LEVEL_4_0. Not in place.

    Args:
        a: input, INT8, UINT8; 1 to 8 dimensions. Any sizes.
        a_scale: input, FLOAT32; 1 to 8 dimensions. 1 element.
        a_zero_point: input, optional; INT8, UINT8; 1 to 8 dimensions. 1 element, default 0.
        b: input, INT8, UINT8; 1 to 8 dimensions. Same sizes as A (implied).
        b_scale: input, FLOAT32; 1 to 8 dimensions. 1 element.
        b_zero_point: input, optional; INT8, UINT8; 1 to 8 dimensions. 1 element, default 0.
        output_scale: input, FLOAT32; 1 to 8 dimensions. 1 element (an input).
        output_zero_point: input, optional; INT8, UINT8; 1 to 8 dimensions. 1 element, default 0 (an input).
        output_type: The type of the output; that of `out` when None, or that of OutputZeroPointTensor, or
            UINT8.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        INT8, UINT8; 1 to 8 dimensions. Same sizes (implied).
    """
    if unknown:
        raise unexpected(element_wise_quantized_linear_add, unknown)
    results: T = call(
        "ELEMENT_WISE_QUANTIZED_LINEAR_ADD",
        (a, a_scale, a_zero_point, b, b_scale, b_zero_point, output_scale, output_zero_point),
        (),
        out,
        device,
        output_type=output_type,
    )
    return results


@overload
def roi_align_grad(
    input: Array | float | None,
    input_gradient: Array | float,
    roi: Array | float,
    batch_indices: Array | float,
    *,
    reduction_function: ReduceFunction | str,
    interpolation_mode: InterpolationMode | str,
    spatial_scale_x: float,
    spatial_scale_y: float,
    input_pixel_offset: float,
    output_pixel_offset: float,
    minimum_samples_per_output: int,
    maximum_samples_per_output: int,
    align_regions_to_corners: bool,
    output_gradient: bool = False,
    output_roi_gradient: bool = False,
    sizes: Sequence[int] | None = None,
    out: tuple[Array | None, Array | None] | None = None,
    device: str | Device | None = None,
) -> RoiAlignGradOutputs[Array]: ...


@overload
def roi_align_grad(
    input: T | float | None,
    input_gradient: T | float,
    roi: T | float,
    batch_indices: T | float,
    *,
    reduction_function: ReduceFunction | str,
    interpolation_mode: InterpolationMode | str,
    spatial_scale_x: float,
    spatial_scale_y: float,
    input_pixel_offset: float,
    output_pixel_offset: float,
    minimum_samples_per_output: int,
    maximum_samples_per_output: int,
    align_regions_to_corners: bool,
    output_gradient: bool = False,
    output_roi_gradient: bool = False,
    sizes: Sequence[int] | None = None,
    out: tuple[T | None, T | None] | None = None,
    device: str | Device | None = None,
) -> RoiAlignGradOutputs[T]: ...


def roi_align_grad(
    input: T | float | None,
    input_gradient: T | float,
    roi: T | float,
    batch_indices: T | float,
    *,
    reduction_function: ReduceFunction | str,
    interpolation_mode: InterpolationMode | str,
    spatial_scale_x: float,
    spatial_scale_y: float,
    input_pixel_offset: float,
    output_pixel_offset: float,
    minimum_samples_per_output: int,
    maximum_samples_per_output: int,
    align_regions_to_corners: bool,
    output_gradient: bool = False,
    output_roi_gradient: bool = False,
    sizes: Sequence[int] | None = None,
    out: tuple[T | None, T | None] | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> RoiAlignGradOutputs[T]:
    """Backpropagates a gradient through ROI_ALIGN / ROI_ALIGN1 to the input and/or to the regions of
    interest.

        OutputGradient = transpose of the forward sampling (each incoming value spread with the forward
            weights; overlaps summed). OutputROIGradient (given for MinimumSamplesPerOutput =
            MaximumSamplesPerOutput = 1): for each ROI r, each incoming coordinate g and each input coordinate
            p that contributed: y0 = floor(p.y), y1 = ceil(p.y), x0 = floor(p.x), x1 = ceil(p.x), fy = p.y -
            y0, fx = p.x - x0, TL = In[y0][x0], TR = In[y0][x1], BL = In[y1][x0], BR = In[y1][x1], w =
            InputGradient[g.y][g.x]; gY = ((1 - fx)*(BL - TL) + fx*(BR - TR)) * w; gX = ((1 - fy)*(TR - TL) +
            fy*(BR - BL)) * w; ROIGrad[r][0] += gX*(inputWidth - g.x); [1] += gY*(inputHeight - g.y); [2] +=
            gX*g.x; [3] += gY*g.y

    DML_ROI_ALIGN_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_4_1. Not in place.

    Samples out of bounds, which are 0 where the greatest is looked for, have no gradient; of several greatest
    ones the first has it. The gradient of the corners is that of the samples' places, whose number is taken
    to be fixed, per unit of the region: DirectML's page leaves out the scales and the division by the number
    of samples, and has no other interpolation. It is 0 for the nearest neighbor, and for what is beyond the
    outermost elements.

    Sums of the image's gradient are made in integers of 62 bits, relative to the greatest magnitude of the
    incoming gradient, so that they depend on no order; if that is not finite, every element is NaN. A batch
    index out of range is moved to the last batch; NaN counts as the greatest.

    Args:
        input: input, optional; FLOAT32, FLOAT16; 4 dimensions. Forward input { BatchCount, ChannelCount,
            InputHeight, InputWidth }; required when OutputROIGradientTensor is given or ReductionFunction is
            MAX.
        input_gradient: input, FLOAT32, FLOAT16; 4 dimensions. Sizes of the forward output { NumROIs,
            ChannelCount, OutputHeight, OutputWidth }.
        roi: input, FLOAT32, FLOAT16; 2 to 4 dimensions. {NumROIs,4}, {1,NumROIs,4} or {1,1,NumROIs,4}; rows
            [x1, y1, x2, y2]; empty and inverted regions allowed.
        batch_indices: input, UINT32; 1 to 4 dimensions. {NumROIs}, {1,NumROIs}, {1,1,NumROIs} or
            {1,1,1,NumROIs}.
        reduction_function: As ROI_ALIGN1.
        interpolation_mode: As ROI_ALIGN1.
        spatial_scale_x: As ROI_ALIGN1.
        spatial_scale_y: As ROI_ALIGN1.
        input_pixel_offset: As ROI_ALIGN1.
        output_pixel_offset: As ROI_ALIGN1.
        minimum_samples_per_output: As ROI_ALIGN1.
        maximum_samples_per_output: As ROI_ALIGN1.
        align_regions_to_corners: As ROI_ALIGN1.
        output_gradient: Whether this output is returned too.
        output_roi_gradient: Whether this output is returned too.
        sizes: The sizes of output_gradient; those of `out` when None.
        out: Where to write, a tuple with an array for each output, None for those that are not asked for; new
            arrays (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        opendml.outputs.RoiAlignGradOutputs, a named tuple:
        output_gradient: optional; FLOAT32, FLOAT16; 4 dimensions. Typically the sizes of the forward input;
            required when OutputROIGradientTensor is null.
        output_roi_gradient: optional; FLOAT32, FLOAT16; 2 to 4 dimensions. Same sizes as ROITensor; required
            when OutputGradientTensor is null.
    """
    if unknown:
        raise unexpected(roi_align_grad, unknown)
    results: RoiAlignGradOutputs[T] = call_several(
        "ROI_ALIGN_GRAD",
        (input, input_gradient, roi, batch_indices),
        (
            reduction_function,
            interpolation_mode,
            spatial_scale_x,
            spatial_scale_y,
            input_pixel_offset,
            output_pixel_offset,
            minimum_samples_per_output,
            maximum_samples_per_output,
            align_regions_to_corners,
        ),
        out,
        device,
        sizes=sizes,
        wanted=(output_gradient, output_roi_gradient),
    )
    return results


@overload
def batch_normalization_training(
    input: Array | float,
    scale: Array | float,
    bias: Array | float,
    fused_add: Array | float | None = None,
    *,
    epsilon: float,
    fused_activation: OperatorDesc | None = None,
    out: tuple[Array, Array, Array] | None = None,
    device: str | Device | None = None,
) -> BatchNormalizationTrainingOutputs[Array]: ...


@overload
def batch_normalization_training(
    input: T | float,
    scale: T | float,
    bias: T | float,
    fused_add: T | float | None = None,
    *,
    epsilon: float,
    fused_activation: OperatorDesc | None = None,
    out: tuple[T, T, T] | None = None,
    device: str | Device | None = None,
) -> BatchNormalizationTrainingOutputs[T]: ...


def batch_normalization_training(
    input: T | float,
    scale: T | float,
    bias: T | float,
    fused_add: T | float | None = None,
    *,
    epsilon: float,
    fused_activation: OperatorDesc | None = None,
    out: tuple[T, T, T] | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> BatchNormalizationTrainingOutputs[T]:
    """Batch normalization that computes mean and variance from the input itself and also outputs them.

        Mean, Variance of Input over the dimensions where Scale/Bias have size 1; Output =
            FusedActivation(Scale * ((Input - Mean) / sqrt(Variance + Epsilon)) + Bias + FusedAdd)

    DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC, from DML_FEATURE_LEVEL_4_1. Not in place.

    The mean and the variance that are put out are rounded to their type; the result is made of them as they
    were before.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions. InputDimensions.
        scale: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Each dimension 1 (broadcast, and reduced for
            mean/variance) or equal to InputTensor.
        bias: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as ScaleTensor.
        fused_add: input, optional; FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as InputTensor; added
            before the activation.
        epsilon: Added to the variance.
        fused_activation: Activation applied last; its own tensors null.
        out: Where to write, a tuple with an array for each output; new arrays (of the inputs' kind) when
            None.
        device: Where to run; the default device when None.

    Returns:
        opendml.outputs.BatchNormalizationTrainingOutputs, a named tuple:
        output: FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as InputTensor.
        output_mean: FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as ScaleTensor.
        output_variance: FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as ScaleTensor.
    """
    if unknown:
        raise unexpected(batch_normalization_training, unknown)
    results: BatchNormalizationTrainingOutputs[T] = call_several(
        "BATCH_NORMALIZATION_TRAINING",
        (input, scale, bias, fused_add),
        (epsilon, fused_activation),
        out,
        device,
    )
    return results


@overload
def resample2(
    input: Array,
    *,
    interpolation_mode: InterpolationMode | str,
    rounding_direction: AxisDirection | str,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float] | None = None,
    output_pixel_offsets: Sequence[float] | None = None,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def resample2(
    input: T,
    *,
    interpolation_mode: InterpolationMode | str,
    rounding_direction: AxisDirection | str,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float] | None = None,
    output_pixel_offsets: Sequence[float] | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def resample2(
    input: T,
    *,
    interpolation_mode: InterpolationMode | str,
    rounding_direction: AxisDirection | str,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float] | None = None,
    output_pixel_offsets: Sequence[float] | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """RESAMPLE1 with a selectable rounding direction for nearest-neighbour sampling.

        OutputX = (InputX + InputPixelOffset) * Scale + OutputPixelOffset, per axis; inverse InputX = (OutputX
            - OutputPixelOffset) / Scale - InputPixelOffset; nearest: index = floor(InputX) (DECREASING) or
            ceil(InputX) (INCREASING)

    DML_RESAMPLE2_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_1. Not in place.

    Coordinates are computed in float32, each step rounded, so that a scale of 1 / 3 meets the elements that
    it is meant to meet, as in ONNX Runtime. Indices beyond an end are that end. Means of integers are
    truncated.

    Args:
        input: input, FLOAT32, FLOAT16; INT8, UINT8 from 6_2; 1 to 4 dimensions. Any sizes.
        interpolation_mode: DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR or DML_INTERPOLATION_MODE_LINEAR (weighted
            mean of the 2 nearest input elements per axis, up to 4 axes = 16 elements).
        rounding_direction: Only for nearest: DML_AXIS_DIRECTION_INCREASING rounds the fractional input
            coordinate up (ceil), DML_AXIS_DIRECTION_DECREASING rounds it down (floor).
        scales: Per axis, > 1 enlarges, < 1 shrinks; need not equal OutputSize / InputSize.
        input_pixel_offsets: Per axis, added to the input coordinate before scaling; 0.5 = pixel centres (as
            RESAMPLE), 0 = top-left corner. When None, 0.5 for each dimension.
        output_pixel_offsets: Per axis, added after scaling; -0.5 = pixel centres (as RESAMPLE), 0 = top-left
            corner. When None, -0.5 for each dimension.
        sizes: The sizes of the output; those of `out` when None, or the usual ones.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT8, UINT8 from 6_2; 1 to 4 dimensions. Any sizes; chosen by the caller.
    """
    if unknown:
        raise unexpected(resample2, unknown)
    results: T = call(
        "RESAMPLE2",
        (input,),
        (interpolation_mode, rounding_direction, scales, input_pixel_offsets, output_pixel_offsets),
        out,
        device,
        sizes=sizes,
    )
    return results


@overload
def resample_grad1(
    input_gradient: Array,
    *,
    interpolation_mode: InterpolationMode | str,
    rounding_direction: AxisDirection | str,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float] | None = None,
    output_pixel_offsets: Sequence[float] | None = None,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def resample_grad1(
    input_gradient: T,
    *,
    interpolation_mode: InterpolationMode | str,
    rounding_direction: AxisDirection | str,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float] | None = None,
    output_pixel_offsets: Sequence[float] | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def resample_grad1(
    input_gradient: T,
    *,
    interpolation_mode: InterpolationMode | str,
    rounding_direction: AxisDirection | str,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float] | None = None,
    output_pixel_offsets: Sequence[float] | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Backpropagates a gradient through RESAMPLE2 (transpose of the interpolation).

        OutputGradient[i] = sum over o of weight(o, i) * InputGradient[o], where forward Output[o] = sum_i
            weight(o, i) * Input[i]

    DML_RESAMPLE_GRAD1_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_1. Not in place.

    Indices, clamped at the ends, and weights are those of RESAMPLE2. It is done along one dimension after the
    other, but for small blocks of copies: sums are made in float64, and rounded after each step.

    Args:
        input_gradient: input, FLOAT32, FLOAT16; 1 to 4 dimensions. Typically the sizes of the forward output.
        interpolation_mode: As RESAMPLE2 (NEAREST_NEIGHBOR or LINEAR).
        rounding_direction: As RESAMPLE2.
        scales: As RESAMPLE2 (forward-pass scales).
        input_pixel_offsets: As RESAMPLE2. When None, 0.5 for each dimension.
        output_pixel_offsets: As RESAMPLE2. When None, -0.5 for each dimension.
        sizes: The sizes of the output; those of `out` when None.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 4 dimensions. Typically the sizes of the forward input.
    """
    if unknown:
        raise unexpected(resample_grad1, unknown)
    results: T = call(
        "RESAMPLE_GRAD1",
        (input_gradient,),
        (interpolation_mode, rounding_direction, scales, input_pixel_offsets, output_pixel_offsets),
        out,
        device,
        sizes=sizes,
    )
    return results


def diagonal_matrix1(
    input: T | None = None,
    *,
    value_data_type: DataTypeLike | None = None,
    value: int | float,
    diagonal_fill_begin: int,
    diagonal_fill_end: int,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Writes Value on a band of diagonals (or outside of it when the limits are inverted) of each 2D matrix
    and keeps the input, or zero, elsewhere.

        topX = x - y; useValue = (DiagonalFillEnd >= DiagonalFillBegin) XOR (topX >= DiagonalFillBegin) XOR
            (topX < DiagonalFillEnd); Output[.., y, x] = useValue ? Value : (InputTensor present ? Input[..,
            y, x] : 0)

    DML_DIAGONAL_MATRIX1_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_1. Not in place.

    Args:
        input: input, optional; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16,
            UINT8; 2 to 4 dimensions. Same sizes as OutputTensor (implied).
        value_data_type: Type of Value; must equal OutputTensor.DataType. When None, that of input.
        value: Constant written.
        diagonal_fill_begin: First diagonal filled (inclusive); > 0 is right of the main diagonal.
        diagonal_fill_end: End of the filled diagonals (exclusive); Begin > End inverts the fill.
        output_type: The type of the output; that of `out` when None, or that of InputTensor, or FLOAT32.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8; 2 to 4
        dimensions. { Batch1, Batch2, OutputHeight, OutputWidth }, need not be square; dimensions before the
        last two are batches.
    """
    if unknown:
        raise unexpected(diagonal_matrix1, unknown)
    results: T = call(
        "DIAGONAL_MATRIX1",
        (input,),
        (value_data_type, value, diagonal_fill_begin, diagonal_fill_end),
        out,
        device,
        output_type=output_type,
    )
    return results


@overload
def multihead_attention(
    query: Array | float | None = None,
    key: Array | float | None = None,
    value: Array | float | None = None,
    stacked_query_key: Array | float | None = None,
    stacked_key_value: Array | float | None = None,
    stacked_query_key_value: Array | float | None = None,
    bias: Array | float | None = None,
    mask: Array | float | None = None,
    relative_position_bias: Array | float | None = None,
    past_key: Array | float | None = None,
    past_value: Array | float | None = None,
    *,
    scale: float,
    mask_filter_value: float = -10000.0,
    head_count: int,
    mask_type: MultiheadAttentionMaskType | str,
    output_present_key: Literal[False] = False,
    output_present_value: Literal[False] = False,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def multihead_attention(
    query: Array | float | None = None,
    key: Array | float | None = None,
    value: Array | float | None = None,
    stacked_query_key: Array | float | None = None,
    stacked_key_value: Array | float | None = None,
    stacked_query_key_value: Array | float | None = None,
    bias: Array | float | None = None,
    mask: Array | float | None = None,
    relative_position_bias: Array | float | None = None,
    past_key: Array | float | None = None,
    past_value: Array | float | None = None,
    *,
    scale: float,
    mask_filter_value: float = -10000.0,
    head_count: int,
    mask_type: MultiheadAttentionMaskType | str,
    output_present_key: Literal[True],
    output_present_value: bool = False,
    out: tuple[Array, Array | None, Array | None] | None = None,
    device: str | Device | None = None,
) -> MultiheadAttentionOutputs[Array]: ...


@overload
def multihead_attention(
    query: Array | float | None = None,
    key: Array | float | None = None,
    value: Array | float | None = None,
    stacked_query_key: Array | float | None = None,
    stacked_key_value: Array | float | None = None,
    stacked_query_key_value: Array | float | None = None,
    bias: Array | float | None = None,
    mask: Array | float | None = None,
    relative_position_bias: Array | float | None = None,
    past_key: Array | float | None = None,
    past_value: Array | float | None = None,
    *,
    scale: float,
    mask_filter_value: float = -10000.0,
    head_count: int,
    mask_type: MultiheadAttentionMaskType | str,
    output_present_key: bool = False,
    output_present_value: Literal[True],
    out: tuple[Array, Array | None, Array | None] | None = None,
    device: str | Device | None = None,
) -> MultiheadAttentionOutputs[Array]: ...


@overload
def multihead_attention(
    query: T | float | None = None,
    key: T | float | None = None,
    value: T | float | None = None,
    stacked_query_key: T | float | None = None,
    stacked_key_value: T | float | None = None,
    stacked_query_key_value: T | float | None = None,
    bias: T | float | None = None,
    mask: T | float | None = None,
    relative_position_bias: T | float | None = None,
    past_key: T | float | None = None,
    past_value: T | float | None = None,
    *,
    scale: float,
    mask_filter_value: float = -10000.0,
    head_count: int,
    mask_type: MultiheadAttentionMaskType | str,
    output_present_key: Literal[False] = False,
    output_present_value: Literal[False] = False,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


@overload
def multihead_attention(
    query: T | float | None = None,
    key: T | float | None = None,
    value: T | float | None = None,
    stacked_query_key: T | float | None = None,
    stacked_key_value: T | float | None = None,
    stacked_query_key_value: T | float | None = None,
    bias: T | float | None = None,
    mask: T | float | None = None,
    relative_position_bias: T | float | None = None,
    past_key: T | float | None = None,
    past_value: T | float | None = None,
    *,
    scale: float,
    mask_filter_value: float = -10000.0,
    head_count: int,
    mask_type: MultiheadAttentionMaskType | str,
    output_present_key: Literal[True],
    output_present_value: bool = False,
    out: tuple[T, T | None, T | None] | None = None,
    device: str | Device | None = None,
) -> MultiheadAttentionOutputs[T]: ...


@overload
def multihead_attention(
    query: T | float | None = None,
    key: T | float | None = None,
    value: T | float | None = None,
    stacked_query_key: T | float | None = None,
    stacked_key_value: T | float | None = None,
    stacked_query_key_value: T | float | None = None,
    bias: T | float | None = None,
    mask: T | float | None = None,
    relative_position_bias: T | float | None = None,
    past_key: T | float | None = None,
    past_value: T | float | None = None,
    *,
    scale: float,
    mask_filter_value: float = -10000.0,
    head_count: int,
    mask_type: MultiheadAttentionMaskType | str,
    output_present_key: bool = False,
    output_present_value: Literal[True],
    out: tuple[T, T | None, T | None] | None = None,
    device: str | Device | None = None,
) -> MultiheadAttentionOutputs[T]: ...


def multihead_attention(
    query: T | float | None = None,
    key: T | float | None = None,
    value: T | float | None = None,
    stacked_query_key: T | float | None = None,
    stacked_key_value: T | float | None = None,
    stacked_query_key_value: T | float | None = None,
    bias: T | float | None = None,
    mask: T | float | None = None,
    relative_position_bias: T | float | None = None,
    past_key: T | float | None = None,
    past_value: T | float | None = None,
    *,
    scale: float,
    mask_filter_value: float = -10000.0,
    head_count: int,
    mask_type: MultiheadAttentionMaskType | str,
    output_present_key: bool = False,
    output_present_value: bool = False,
    out: T | tuple[T, T | None, T | None] | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T | MultiheadAttentionOutputs[T]:
    """Multi-head scaled dot-product attention with optional stacked inputs, bias, relative position bias,
    mask and key/value cache.

        [Q,K,V += Bias parts] ; [K = concat(PastKey, K), V = concat(PastValue, V) on the sequence axis]; S =
            (Q K^T) * Scale per head; [S += RelativePositionBias]; [apply Mask with MaskFilterValue]; P =
            softmax(S) over keys; Output = P V, heads concatenated

    DML_MULTIHEAD_ATTENTION_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_1. Not in place.

    Masks, roundings and what is not finite as in MULTIHEAD_ATTENTION1.

    Args:
        query: input, optional; FLOAT32, FLOAT16; 3 to 5 dimensions. [batchSize, sequenceLength, hiddenSize],
            hiddenSize = headCount*headSize; 4D/5D with leading 1s; excludes StackedQueryKey,
            StackedQueryKeyValue.
        key: input, optional; FLOAT32, FLOAT16; 3 to 5 dimensions. [batchSize, keyValueSequenceLength,
            hiddenSize]; 4D/5D with leading 1s; excludes every Stacked* tensor.
        value: input, optional; FLOAT32, FLOAT16; 3 to 5 dimensions. [batchSize, keyValueSequenceLength,
            valueHiddenSize], valueHiddenSize = headCount*valueHeadSize; 4D/5D with leading 1s; excludes
            StackedKeyValue, StackedQueryKeyValue.
        stacked_query_key: input, optional; FLOAT32, FLOAT16; 5 dimensions. [batchSize, sequenceLength,
            headCount, 2, headSize]; excludes Query, Key, StackedKeyValue, StackedQueryKeyValue.
        stacked_key_value: input, optional; FLOAT32, FLOAT16; 5 dimensions. [batchSize,
            keyValueSequenceLength, headCount, 2, headSize]; excludes Key, Value, StackedQueryKey,
            StackedQueryKeyValue.
        stacked_query_key_value: input, optional; FLOAT32, FLOAT16; 5 dimensions. [batchSize, sequenceLength,
            headCount, 3, headSize]; excludes all other Q/K/V inputs.
        bias: input, optional; FLOAT32, FLOAT16; 1 to 5 dimensions. [hiddenSize + hiddenSize +
            valueHiddenSize], added to Q, K, V before the first product; up to 5D with leading 1s.
        mask: input, optional; INT32; 1 to 5 dimensions. INT32, shape by MaskType; applied after
            RelativePositionBias.
        relative_position_bias: input, optional; FLOAT32, FLOAT16; 4 to 5 dimensions. Added to the first
            product.
        past_key: input, optional; FLOAT32, FLOAT16; 4 to 5 dimensions. [batchSize, headCount,
            pastSequenceLength, headSize], prepended to the key -> [batchSize, headCount, pastSequenceLength +
            keyValueSequenceLength, headSize].
        past_value: input, optional; FLOAT32, FLOAT16; 4 to 5 dimensions. Same layout, prepended to the value.
        scale: Multiplies Q K^T before softmax; usually 1/sqrt(headSize).
        mask_filter_value: Applied at masked positions; very negative, usually -10000.0.
        head_count: Number of heads.
        mask_type: DML_MULTIHEAD_ATTENTION_MASK_TYPE_BOOLEAN: mask 0 -> MaskFilterValue is added, mask 1 ->
            nothing; ..._KEY_SEQUENCE_LENGTH: mask [1, batchSize] of valid key lengths, positions at and
            beyond the length are filtered; ..._KEY_SEQUENCE_END_START: mask [2, batchSize], row 0 end
            (exclusive), row 1 start (inclusive) of the valid area; ..._KEY_QUERY_SEQUENCE_LENGTH_START_END:
            mask [batchSize*3 + 2] = keyLength[0..batch-1], queryStart[0..batch-1], queryEnd[batch-1],
            keyStart[0..batch-1], keyEnd[batch-1].
        output_present_key: Whether this output is returned too.
        output_present_value: Whether this output is returned too.
        out: Where to write, for several outputs a tuple with an array for each output, None for those that
            are not asked for; new arrays (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        output, or where another output is asked for, opendml.outputs.MultiheadAttentionOutputs, a named
        tuple:
        output: FLOAT32, FLOAT16; 3 to 5 dimensions. [batchSize, sequenceLength, valueHiddenSize].
        output_present_key: optional; FLOAT32, FLOAT16; 4 to 5 dimensions. [batchSize, headCount,
            keyValueSequenceLength, headSize] (cross attention) or [batchSize, headCount, pastSequenceLength +
            keyValueSequenceLength, headSize] (self attention): key, or past+key.
        output_present_value: optional; FLOAT32, FLOAT16; 4 to 5 dimensions. As OutputPresentKeyTensor for the
            value.
    """
    if unknown:
        raise unexpected(multihead_attention, unknown)
    results: T | MultiheadAttentionOutputs[T] = call_several(
        "MULTIHEAD_ATTENTION",
        (
            query,
            key,
            value,
            stacked_query_key,
            stacked_key_value,
            stacked_query_key_value,
            bias,
            mask,
            relative_position_bias,
            past_key,
            past_value,
        ),
        (scale, mask_filter_value, head_count, mask_type),
        out,
        device,
        wanted=(output_present_key, output_present_value),
    )
    return results


@overload
def quantized_linear_average_pooling(
    input: Array | float,
    input_scale: Array | float,
    input_zero_point: Array | float | None,
    output_scale: Array | float,
    output_zero_point: Array | float | None = None,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    include_padding: bool,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def quantized_linear_average_pooling(
    input: T | float,
    input_scale: T | float,
    input_zero_point: T | float | None,
    output_scale: T | float,
    output_zero_point: T | float | None = None,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    include_padding: bool,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def quantized_linear_average_pooling(
    input: T | float,
    input_scale: T | float,
    input_zero_point: T | float | None,
    output_scale: T | float,
    output_zero_point: T | float | None = None,
    *,
    strides: Sequence[int] | None = None,
    window_size: Sequence[int],
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    include_padding: bool,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Average pooling on linearly quantized 8-bit data: as if dequantizing, pooling and requantizing.

        Y = AveragePool((Input - InputZeroPoint) * InputScale); Output = clamp(round(Y / OutputScale) +
            OutputZeroPoint, Min, Max)

    DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_2. Not in place.

    The sums are exact. Padding counts as the zero point; its elements are counted as in AVERAGE_POOLING1.

    Args:
        input: input, INT8, UINT8; 4 to 5 dimensions. { BatchCount, ChannelCount, Height, Width } or {
            BatchCount, ChannelCount, Depth, Height, Width }.
        input_scale: input, FLOAT32; 1 to 5 dimensions. {1,1,1,1} per tensor or {1,ChannelCount,1,1} per
            channel; value 0 undefined.
        input_zero_point: input, optional; INT8, UINT8; 1 to 5 dimensions. {1,1,1,1} or {1,ChannelCount,1,1}.
        output_scale: input, FLOAT32; 1 to 5 dimensions. {1,1,1,1} or {1,ChannelCount,1,1}; value 0 undefined.
        output_zero_point: input, optional; INT8, UINT8; 1 to 5 dimensions. {1,1,1,1} or {1,ChannelCount,1,1}.
        strides: Window steps, {Height, Width} or {Depth, Height, Width}. When None, 1 for each dimension.
        window_size: Window extent, same order.
        start_padding: Padding at the start of each spatial axis, same order. When None, 0 for each dimension.
        end_padding: Padding at the end of each spatial axis, same order. When None, 0 for each dimension.
        dilations: Spacing of window elements per spatial axis, same order. When None, 1 for each dimension.
        include_padding: FALSE leaves padding elements out of the divisor.
        sizes: The sizes of the output; those of `out` when None, or the usual ones.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        INT8, UINT8; 4 to 5 dimensions. Batch and channel as input; spatial Sizes[i+2] = (Input.Sizes[i+2] +
        StartPadding[i] + EndPadding[i] - WindowSize[i]) / Strides[i] + 1.
    """
    if unknown:
        raise unexpected(quantized_linear_average_pooling, unknown)
    results: T = call(
        "QUANTIZED_LINEAR_AVERAGE_POOLING",
        (input, input_scale, input_zero_point, output_scale, output_zero_point),
        (strides, window_size, start_padding, end_padding, dilations, include_padding),
        out,
        device,
        sizes=sizes,
    )
    return results


@overload
def matrix_multiply_integer_to_float(
    a: Array | float,
    a_scale: Array | float,
    a_zero_point: Array | float | None,
    b: Array | float,
    b_scale: Array | float,
    b_zero_point: Array | float | None = None,
    bias: Array | float | None = None,
    *,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def matrix_multiply_integer_to_float(
    a: T | float,
    a_scale: T | float,
    a_zero_point: T | float | None,
    b: T | float,
    b_scale: T | float,
    b_zero_point: T | float | None = None,
    bias: T | float | None = None,
    *,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def matrix_multiply_integer_to_float(
    a: T | float,
    a_scale: T | float,
    a_zero_point: T | float | None,
    b: T | float,
    b_scale: T | float,
    b_zero_point: T | float | None = None,
    bias: T | float | None = None,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Batched matrix product of dequantized integer matrices with optional bias, floating-point result.

        Output[b,c,m,n] = sum_k ((A[b,c,m,k] - AZeroPoint[m or 0]) * AScale[m or 0]) * ((B[b,c,k,n] -
            BZeroPoint[n or 0]) * BScale[n or 0]) + Bias[b,c,m,n]

    DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_2. Not in place.

    Of 8-bit integers the sums are exact. Of wider ones the differences are rounded to float32, in which their
    products are added.

    Args:
        a: input, INT32, INT16, INT8, UINT32, UINT16, UINT8; 2 to 4 dimensions. { [BatchCount],
            [ChannelCount], M, K }.
        a_scale: input, FLOAT32, FLOAT16; 1 to 4 dimensions. {1,1,1,1} per tensor or {1,1,M,1} per row.
        a_zero_point: input, optional; INT32, INT16, INT8, UINT32, UINT16, UINT8; 1 to 4 dimensions. {1,1,1,1}
            or {1,1,M,1}.
        b: input, INT32, INT16, INT8, UINT32, UINT16, UINT8; 2 to 4 dimensions. { [BatchCount],
            [ChannelCount], K, N }.
        b_scale: input, FLOAT32, FLOAT16; 1 to 4 dimensions. {1,1,1,1} or {1,1,1,N} per column.
        b_zero_point: input, optional; INT32, INT16, INT8, UINT32, UINT16, UINT8; 1 to 4 dimensions. {1,1,1,1}
            or {1,1,1,N}.
        bias: input, optional; FLOAT32, FLOAT16; 2 to 4 dimensions. Same sizes as OutputTensor.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 2 to 4 dimensions. { [BatchCount], [ChannelCount], M, N }.
    """
    if unknown:
        raise unexpected(matrix_multiply_integer_to_float, unknown)
    results: T = call(
        "MATRIX_MULTIPLY_INTEGER_TO_FLOAT",
        (a, a_scale, a_zero_point, b, b_scale, b_zero_point, bias),
        (),
        out,
        device,
    )
    return results


def mean_variance_normalization2(
    input: T | float,
    scale: T | float | None = None,
    bias: T | float | None = None,
    *,
    axes: Sequence[int],
    use_mean: bool = True,
    use_variance: bool = True,
    epsilon: float = 1e-05,
    fused_activation: OperatorDesc | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Normalizes the input by mean and/or variance computed over chosen axes, then applies optional scale,
    bias and fused activation; mean and variance can be switched on separately.

        m = UseMean ? mean(Input over Axes) : 0; v = mean((Input - m)^2 over Axes); y = UseVariance ? (Input -
            m) / sqrt(v + Epsilon) : (Input - m); Output = FusedActivation(Scale * y + Bias)

    DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_3. Not in place.

    Without use_mean, the mean is taken to be 0: the variance is then the mean of the squares. Without
    use_variance the division is left out. (Microsoft's page says neither; this is how simplified layer
    normalization uses the operator.) An absent scale is 1, an absent bias 0.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions. {BatchCount, ChannelCount, Height, Width} in the
            text; table allows 1 to 8 dimensions.
        scale: input, optional; FLOAT32, FLOAT16; 1 to 8 dimensions. Level < 4_0: {ScaleBatchCount,
            ChannelCount, ScaleHeight, ScaleWidth} each matching input or 1 (ChannelCount matches); level >=
            4_0: any dimension may be 1 and is broadcast to InputTensor. Level < 5_2: required if BiasTensor
            present; level >= 5_2: independent of BiasTensor. (Operator needs 6_3, so: any dim 1 broadcasts,
            independent nullability).
        bias: input, optional; FLOAT32, FLOAT16; 1 to 8 dimensions. Same rules as ScaleTensor
            ({BiasBatchCount, ChannelCount, BiasHeight, BiasWidth} below 4_0); level < 5_2: required if
            ScaleTensor present; >= 5_2 independent.
        axes: Axes over which mean and variance are computed.
        use_mean: Subtracts the mean when TRUE.
        use_variance: Divides by sqrt(Variance + Epsilon) when TRUE.
        epsilon: Added to the variance against division by zero; recommended default 0.00001.
        fused_activation: Activation desc applied after the normalization.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions. {BatchCount, ChannelCount, Height, Width}, i.e. sizes of
        InputTensor.
    """
    if unknown:
        raise unexpected(mean_variance_normalization2, unknown)
    results: T = call(
        "MEAN_VARIANCE_NORMALIZATION2",
        (input, scale, bias),
        (axes, use_mean, use_variance, epsilon, fused_activation),
        out,
        device,
    )
    return results


@overload
def multihead_attention1(
    query: Array | float | None = None,
    key: Array | float | None = None,
    value: Array | float | None = None,
    stacked_query_key: Array | float | None = None,
    stacked_key_value: Array | float | None = None,
    stacked_query_key_value: Array | float | None = None,
    bias: Array | float | None = None,
    mask: Array | float | None = None,
    relative_position_bias: Array | float | None = None,
    past_key: Array | float | None = None,
    past_value: Array | float | None = None,
    past_sequence_lengths: Array | float | None = None,
    *,
    scale: float,
    mask_filter_value: float = -10000.0,
    query_head_count: int,
    key_value_head_count: int,
    mask_type: MultiheadAttentionMaskType | str,
    output_present_key: Literal[False] = False,
    output_present_value: Literal[False] = False,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def multihead_attention1(
    query: Array | float | None = None,
    key: Array | float | None = None,
    value: Array | float | None = None,
    stacked_query_key: Array | float | None = None,
    stacked_key_value: Array | float | None = None,
    stacked_query_key_value: Array | float | None = None,
    bias: Array | float | None = None,
    mask: Array | float | None = None,
    relative_position_bias: Array | float | None = None,
    past_key: Array | float | None = None,
    past_value: Array | float | None = None,
    past_sequence_lengths: Array | float | None = None,
    *,
    scale: float,
    mask_filter_value: float = -10000.0,
    query_head_count: int,
    key_value_head_count: int,
    mask_type: MultiheadAttentionMaskType | str,
    output_present_key: Literal[True],
    output_present_value: bool = False,
    out: tuple[Array, Array | None, Array | None] | None = None,
    device: str | Device | None = None,
) -> MultiheadAttention1Outputs[Array]: ...


@overload
def multihead_attention1(
    query: Array | float | None = None,
    key: Array | float | None = None,
    value: Array | float | None = None,
    stacked_query_key: Array | float | None = None,
    stacked_key_value: Array | float | None = None,
    stacked_query_key_value: Array | float | None = None,
    bias: Array | float | None = None,
    mask: Array | float | None = None,
    relative_position_bias: Array | float | None = None,
    past_key: Array | float | None = None,
    past_value: Array | float | None = None,
    past_sequence_lengths: Array | float | None = None,
    *,
    scale: float,
    mask_filter_value: float = -10000.0,
    query_head_count: int,
    key_value_head_count: int,
    mask_type: MultiheadAttentionMaskType | str,
    output_present_key: bool = False,
    output_present_value: Literal[True],
    out: tuple[Array, Array | None, Array | None] | None = None,
    device: str | Device | None = None,
) -> MultiheadAttention1Outputs[Array]: ...


@overload
def multihead_attention1(
    query: T | float | None = None,
    key: T | float | None = None,
    value: T | float | None = None,
    stacked_query_key: T | float | None = None,
    stacked_key_value: T | float | None = None,
    stacked_query_key_value: T | float | None = None,
    bias: T | float | None = None,
    mask: T | float | None = None,
    relative_position_bias: T | float | None = None,
    past_key: T | float | None = None,
    past_value: T | float | None = None,
    past_sequence_lengths: T | float | None = None,
    *,
    scale: float,
    mask_filter_value: float = -10000.0,
    query_head_count: int,
    key_value_head_count: int,
    mask_type: MultiheadAttentionMaskType | str,
    output_present_key: Literal[False] = False,
    output_present_value: Literal[False] = False,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


@overload
def multihead_attention1(
    query: T | float | None = None,
    key: T | float | None = None,
    value: T | float | None = None,
    stacked_query_key: T | float | None = None,
    stacked_key_value: T | float | None = None,
    stacked_query_key_value: T | float | None = None,
    bias: T | float | None = None,
    mask: T | float | None = None,
    relative_position_bias: T | float | None = None,
    past_key: T | float | None = None,
    past_value: T | float | None = None,
    past_sequence_lengths: T | float | None = None,
    *,
    scale: float,
    mask_filter_value: float = -10000.0,
    query_head_count: int,
    key_value_head_count: int,
    mask_type: MultiheadAttentionMaskType | str,
    output_present_key: Literal[True],
    output_present_value: bool = False,
    out: tuple[T, T | None, T | None] | None = None,
    device: str | Device | None = None,
) -> MultiheadAttention1Outputs[T]: ...


@overload
def multihead_attention1(
    query: T | float | None = None,
    key: T | float | None = None,
    value: T | float | None = None,
    stacked_query_key: T | float | None = None,
    stacked_key_value: T | float | None = None,
    stacked_query_key_value: T | float | None = None,
    bias: T | float | None = None,
    mask: T | float | None = None,
    relative_position_bias: T | float | None = None,
    past_key: T | float | None = None,
    past_value: T | float | None = None,
    past_sequence_lengths: T | float | None = None,
    *,
    scale: float,
    mask_filter_value: float = -10000.0,
    query_head_count: int,
    key_value_head_count: int,
    mask_type: MultiheadAttentionMaskType | str,
    output_present_key: bool = False,
    output_present_value: Literal[True],
    out: tuple[T, T | None, T | None] | None = None,
    device: str | Device | None = None,
) -> MultiheadAttention1Outputs[T]: ...


def multihead_attention1(
    query: T | float | None = None,
    key: T | float | None = None,
    value: T | float | None = None,
    stacked_query_key: T | float | None = None,
    stacked_key_value: T | float | None = None,
    stacked_query_key_value: T | float | None = None,
    bias: T | float | None = None,
    mask: T | float | None = None,
    relative_position_bias: T | float | None = None,
    past_key: T | float | None = None,
    past_value: T | float | None = None,
    past_sequence_lengths: T | float | None = None,
    *,
    scale: float,
    mask_filter_value: float = -10000.0,
    query_head_count: int,
    key_value_head_count: int,
    mask_type: MultiheadAttentionMaskType | str,
    output_present_key: bool = False,
    output_present_value: bool = False,
    out: T | tuple[T, T | None, T | None] | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T | MultiheadAttention1Outputs[T]:
    """Multi-head attention with separate query and key/value head counts (grouped-query attention) and an
    optional tensor of past sequence lengths.

        per batch b, head h: Q,K,V += Bias (optional); K = concat(PastKey, K), V = concat(PastValue, V) along
            the sequence (optional); S = GEMM(Q, transpose(K)) * Scale; S += RelativePositionBias (optional);
            apply Mask (optional); P = softmax(S over key positions); Output = GEMM(P, V), heads merged back
            to [batchSize, sequenceLength, valueHiddenSize]

    DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_3. Not in place.

    Query heads share the heads of keys and values in groups that follow each other. The filter value is added
    where a BOOLEAN mask is 0, to keys from a batch's length on, or to those before its start and from its end
    on. Of KEY_QUERY_SEQUENCE_LENGTH_START_END only the lengths of keys count: the others say where batches
    lie in tensors without a batch dimension.

    With PastSequenceLengths, a batch's new keys and values follow its own past ones, as far as the present
    has room; what comes behind them is 0 in the present, and no query sees it. There are as many keys as the
    present has, or a BOOLEAN mask or a relative position bias, or as past and new ones together. A query that
    sees no key gives NaN.

    Queries, keys and values with their bias are rounded to their types. Weights are float32: one that is
    below its numbers is 0, which makes an infinite value NaN.

    Args:
        query: input, optional; FLOAT32, FLOAT16; 3 to 5 dimensions. [batchSize, sequenceLength, hiddenSize],
            hiddenSize = headCount*headSize; 4 or 5 dims allowed with leading 1s; exclusive with
            StackedQueryKey, StackedQueryKeyValue.
        key: input, optional; FLOAT32, FLOAT16; 3 to 5 dimensions. [batchSize, keyValueSequenceLength,
            hiddenSize]; leading 1s allowed; exclusive with StackedQueryKey, StackedKeyValue,
            StackedQueryKeyValue.
        value: input, optional; FLOAT32, FLOAT16; 3 to 5 dimensions. [batchSize, keyValueSequenceLength,
            valueHiddenSize], valueHiddenSize = headCount*valueHeadSize; leading 1s allowed; exclusive with
            StackedKeyValue, StackedQueryKeyValue.
        stacked_query_key: input, optional; FLOAT32, FLOAT16; 5 dimensions. [batchSize, sequenceLength,
            headCount, 2, headSize]; exclusive with Query, Key, StackedKeyValue, StackedQueryKeyValue.
        stacked_key_value: input, optional; FLOAT32, FLOAT16; 5 dimensions. [batchSize,
            keyValueSequenceLength, headCount, 2, headSize]; exclusive with Key, Value, StackedQueryKey,
            StackedQueryKeyValue.
        stacked_query_key_value: input, optional; FLOAT32, FLOAT16; 5 dimensions. [batchSize, sequenceLength,
            headCount, 3, headSize]; exclusive with all the others (Query, Key, Value, StackedQueryKey,
            StackedKeyValue).
        bias: input, optional; FLOAT32, FLOAT16; 1 to 5 dimensions. [hiddenSize + hiddenSize +
            valueHiddenSize], added to query/key/value before the first GEMM (order query, key, value implied
            by the shape); up to 5 dims with leading 1s.
        mask: input, optional; INT32; 1 to 5 dimensions. INT32; shape depends on MaskType (see attributes);
            applied after RelativePositionBias, or after the first GEMM when that is null.
        relative_position_bias: input, optional; FLOAT32, FLOAT16; 4 to 5 dimensions. Added to the result of
            the first GEMM.
        past_key: input, optional; FLOAT32, FLOAT16; 4 to 5 dimensions. [batchSize, headCount,
            pastSequenceLength, headSize]; concatenated before the key giving [batchSize, headCount,
            pastSequenceLength + keyValueSequenceLength, headSize].
        past_value: input, optional; FLOAT32, FLOAT16; 4 to 5 dimensions. [batchSize, headCount,
            pastSequenceLength, headSize]; concatenated before the value likewise.
        past_sequence_lengths: input, optional; INT32; 1 to 5 dimensions. INT32 [batchSize]: the number of
            past positions of each batch element.
        scale: Multiplying QxK^T before softmax; usually 1/sqrt(headSize).
        mask_filter_value: Added to QxK^T at positions the mask marks as padding; very large negative, usually
            -10000.0.
        query_head_count: Number of query heads.
        key_value_head_count: Number of key/value heads, which query heads share in groups of QueryHeadCount /
            KeyValueHeadCount.
        mask_type: DML_MULTIHEAD_ATTENTION_MASK_TYPE. BOOLEAN: where mask is 0 MaskFilterValue is added, where
            it is 1 nothing is added. KEY_SEQUENCE_LENGTH: mask [1, batchSize] = unpadded length per batch;
            later elements get MaskFilterValue. KEY_SEQUENCE_END_START: mask [2, batchSize] = end (exclusive)
            then start (inclusive) of the unpadded area; elements outside get MaskFilterValue.
            KEY_QUERY_SEQUENCE_LENGTH_START_END: mask [batchSize*3 + 2] = [keyLength[0..batchSize-1],
            queryStart[0..batchSize-1], queryEnd[batchSize-1], keyStart[0..batchSize-1], keyEnd[batchSize-1]].
        output_present_key: Whether this output is returned too.
        output_present_value: Whether this output is returned too.
        out: Where to write, for several outputs a tuple with an array for each output, None for those that
            are not asked for; new arrays (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        output, or where another output is asked for, opendml.outputs.MultiheadAttention1Outputs, a named
        tuple:
        output: FLOAT32, FLOAT16; 3 to 5 dimensions. [batchSize, sequenceLength, valueHiddenSize].
        output_present_key: optional; FLOAT32, FLOAT16; 4 to 5 dimensions. Cross attention: [batchSize,
            headCount, keyValueSequenceLength, headSize]; self attention: [batchSize, headCount,
            pastSequenceLength + keyValueSequenceLength, headSize]; the key, or PastKey+Key concatenated.
        output_present_value: optional; FLOAT32, FLOAT16; 4 to 5 dimensions. As OutputPresentKeyTensor, with
            the value.
    """
    if unknown:
        raise unexpected(multihead_attention1, unknown)
    results: T | MultiheadAttention1Outputs[T] = call_several(
        "MULTIHEAD_ATTENTION1",
        (
            query,
            key,
            value,
            stacked_query_key,
            stacked_key_value,
            stacked_query_key_value,
            bias,
            mask,
            relative_position_bias,
            past_key,
            past_value,
            past_sequence_lengths,
        ),
        (scale, mask_filter_value, query_head_count, key_value_head_count, mask_type),
        out,
        device,
        wanted=(output_present_key, output_present_value),
    )
    return results


@overload
def quantize(
    input: Array | float,
    quantizations: Sequence[Array],
    *,
    quantization_type: QuantizationType | str,
    output_type: DataTypeLike | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def quantize(
    input: T | float,
    quantizations: Sequence[T],
    *,
    quantization_type: QuantizationType | str,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def quantize(
    input: T | float,
    quantizations: Sequence[T],
    *,
    quantization_type: QuantizationType | str,
    output_type: DataTypeLike | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Converts floating-point values to a low-precision integer type using scale and optional zero point.

        Output = clamp(round(Input / Scale) + ZeroPoint, min(OutputType), max(OutputType)); ZeroPoint = 0 for
            SCALE; ties are rounded to even

    DML_QUANTIZE_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_3. Not in place.

    Elements of a block, as many along each dimension as the parameter's size goes into that of x, share a
    scale or a zero point. NaN (0 / 0, say) gives 0.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Source; floats.
        quantizations: inputs, FLOAT32, FLOAT16, INT8, INT4, UINT8, UINT4; 1 to 8 dimensions. Array; element 0
            = scale (float type), element 1 = zero point (the quantized integer type) when QuantizationType is
            SCALE_ZERO_POINT; same DimensionCount as InputTensor. A dimension may be smaller than the input's:
            per-block (blockwise) parameters, with input size divisible by it.
        quantization_type: SCALE, or SCALE_ZERO_POINT.
        output_type: The type of the output; that of `out` when None, or UINT8.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        INT8, INT4, UINT8, UINT4; 1 to 8 dimensions. Same DimensionCount and sizes as InputTensor.
    """
    if unknown:
        raise unexpected(quantize, unknown)
    results: T = call_several(
        "QUANTIZE",
        (input, quantizations),
        (quantization_type,),
        out,
        device,
        output_type=output_type,
    )
    return results


@overload
def dequantize(
    input: Array | float,
    quantizations: Sequence[Array],
    *,
    quantization_type: QuantizationType | str,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def dequantize(
    input: T | float,
    quantizations: Sequence[T],
    *,
    quantization_type: QuantizationType | str,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def dequantize(
    input: T | float,
    quantizations: Sequence[T],
    *,
    quantization_type: QuantizationType | str,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Converts quantized integers back to floating point using scale and optional zero point.

        Output = (Input - ZeroPoint) * Scale; ZeroPoint = 0 for SCALE

    DML_DEQUANTIZE_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_3. Not in place.

    Blocks as in QUANTIZE. The difference is exact.

    Args:
        input: input, INT8, INT4, UINT8, UINT4; 1 to 8 dimensions. Source; quantized integers.
        quantizations: inputs, FLOAT32, FLOAT16, INT8, INT4, UINT8, UINT4; 1 to 8 dimensions. Array; element 0
            = scale (float type), element 1 = zero point (the quantized integer type) when QuantizationType is
            SCALE_ZERO_POINT; same DimensionCount as InputTensor. A dimension may be smaller than the input's:
            per-block (blockwise) parameters, with input size divisible by it.
        quantization_type: SCALE, or SCALE_ZERO_POINT.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions. Same DimensionCount and sizes as InputTensor.
    """
    if unknown:
        raise unexpected(dequantize, unknown)
    results: T = call_several("DEQUANTIZE", (input, quantizations), (quantization_type,), out, device)
    return results


def activation_elu(
    input: T,
    *,
    alpha: float = 1.0,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Exponential linear unit on every element.

        f(x) = x if x >= 0; Alpha * (exp(x) - 1) otherwise

    DML_ACTIVATION_ELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.869, FLOAT16 0.542.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        alpha: Coefficient; usually 1.0.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_elu, unknown)
    results: T = call("ACTIVATION_ELU", (input,), (alpha,), out, device)
    return results


def activation_celu(
    input: T,
    *,
    alpha: float = 1.0,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Continuously differentiable exponential linear unit on every element.

        f(x) = max(0, x) + min(0, Alpha * (exp(x / Alpha) - 1))

    DML_ACTIVATION_CELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. OutputTensor may be the same memory as
    InputTensor.

    So near to zero that the two parts do not differ, x itself is taken: x / alpha may be denormal there.
    Where the formula has no value its limit is taken: alpha = 0 is RELU, an infinite alpha the identity. With
    alpha = NaN everything is NaN.

    Greatest distance from the exact result, in ULP: FLOAT32 2.062, FLOAT16 0.551.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Any sizes (element-wise); source.
        alpha: Coefficient; usually 1.0.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_celu, unknown)
    results: T = call("ACTIVATION_CELU", (input,), (alpha,), out, device)
    return results


def activation_hardmax(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """For each row writes 1 at the first occurrence of the row's largest value and 0 elsewhere.

        out[b, i] = 1 if i == first index of max(in[b, :]) else 0; rows run along the last dimension

    DML_ACTIVATION_HARDMAX_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    NaN counts as the greatest, as in ARGMAX.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Effective rank
            (DimensionCount without leftmost dimensions of size 1) at most 2, e.g. {1, 1, BatchCount, Width}
            acts as {BatchCount, Width}.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_hardmax, unknown)
    results: T = call("ACTIVATION_HARDMAX", (input,), (), out, device)
    return results


def activation_hardmax1(
    input: T,
    *,
    axes: Sequence[int],
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Writes 1 at the first maximum found over the given axes and 0 elsewhere.

        r = ReduceArgMax(Input, Axes, axisDirection = DML_AXIS_DIRECTION_INCREASING), broadcast back;
            Output[c] = 1 if r[c] == (index of c within the reduced axes) else 0

    DML_ACTIVATION_HARDMAX1_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_1. Not in place.

    NaN counts as the greatest, as in ARGMAX.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Any sizes (element-wise); source.
        axes: Axes reduced together; each in [0, InputTensor.DimensionCount - 1].
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_hardmax1, unknown)
    results: T = call("ACTIVATION_HARDMAX1", (input,), (axes,), out, device)
    return results


def activation_hard_sigmoid(
    input: T,
    *,
    alpha: float = 0.2,
    beta: float = 0.5,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Piecewise-linear sigmoid on every element.

        f(x) = max(0, min(Alpha * x + Beta, 1))

    DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.501.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        alpha: Coefficient; usually 0.2.
        beta: Coefficient; usually 0.5.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_hard_sigmoid, unknown)
    results: T = call("ACTIVATION_HARD_SIGMOID", (input,), (alpha, beta), out, device)
    return results


def activation_identity(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Copies every input element to the output.

        f(x) = x

    DML_ACTIVATION_IDENTITY_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_identity, unknown)
    results: T = call("ACTIVATION_IDENTITY", (input,), (), out, device)
    return results


def activation_leaky_relu(
    input: T,
    *,
    alpha: float = 0.01,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Rectified linear unit with a constant slope for negative elements.

        f(x) = x if x >= 0; Alpha * x otherwise

    DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.501.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        alpha: Slope for x < 0; usually 0.01.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_leaky_relu, unknown)
    results: T = call("ACTIVATION_LEAKY_RELU", (input,), (alpha,), out, device)
    return results


def activation_linear(
    input: T,
    *,
    alpha: float,
    beta: float,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Scales and shifts every element.

        f(x) = Alpha * x + Beta

    DML_ACTIVATION_LINEAR_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.501.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        alpha: Scale.
        beta: Offset.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_linear, unknown)
    results: T = call("ACTIVATION_LINEAR", (input,), (alpha, beta), out, device)
    return results


def activation_log_softmax(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Natural logarithm of softmax over each row.

        f(x_i) = ln(exp(x_i) / sum_k exp(x_k)), k over all elements along the (last) axis

    DML_ACTIVATION_LOG_SOFTMAX_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    What is not finite as in ACTIVATION_SOFTMAX1.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Effective rank
            (DimensionCount without leftmost dimensions of size 1) at most 2, e.g. {1, 1, BatchCount, Width}
            acts as {BatchCount, Width}.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_log_softmax, unknown)
    results: T = call("ACTIVATION_LOG_SOFTMAX", (input,), (), out, device)
    return results


def activation_log_softmax1(
    input: T,
    *,
    axes: Sequence[int],
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Natural logarithm of softmax over the given axes.

        1-D: f(x[i]) = ln(exp(x[i]) / sum(exp(x[0]), ..., exp(x[j-1]))); in general the sum runs jointly over
            all Axes

    DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_1. Not in place.

    Computed relative to the greatest element; not finite elements as in softmax.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Any sizes (element-wise); source.
        axes: Axes reduced together; each in [0, InputTensor.DimensionCount - 1].
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_log_softmax1, unknown)
    results: T = call("ACTIVATION_LOG_SOFTMAX1", (input,), (axes,), out, device)
    return results


def activation_parameterized_relu(
    input: T | float,
    slope: T | float,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Rectified linear unit whose negative slope is read per element from a tensor.

        f(x, slope) = x if x >= 0; slope * x otherwise

    DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same
    memory as InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.5.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8 from 5_1; 1 to 8 dimensions (4 to 5 below 3_0, 4
            below 2_0). Source.
        slope: input, FLOAT32, FLOAT16; INT32, INT16, INT8 from 5_1; 1 to 8 dimensions (4 to 5 below 3_0, 4
            below 2_0). Slope for each corresponding input element; same sizes (broadcast only through
            strides).
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8 from 5_1; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same
        sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_parameterized_relu, unknown)
    results: T = call("ACTIVATION_PARAMETERIZED_RELU", (input, slope), (), out, device)
    return results


def activation_parametric_softplus(
    input: T,
    *,
    alpha: float,
    beta: float,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Softplus with output and input coefficients.

        f(x) = Alpha * ln(1 + exp(Beta * x))

    DML_ACTIVATION_PARAMETRIC_SOFTPLUS_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same
    memory as InputTensor.

    The logarithm is above 0, so with an infinite alpha everything but NaN is alpha.

    Greatest distance from the exact result, in ULP: FLOAT32 3.022, FLOAT16 0.526.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        alpha: Output coefficient.
        beta: Input coefficient.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_parametric_softplus, unknown)
    results: T = call("ACTIVATION_PARAMETRIC_SOFTPLUS", (input,), (alpha, beta), out, device)
    return results


def activation_relu(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Rectified linear unit on every element.

        f(x) = max(0, x)

    DML_ACTIVATION_RELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8 from 5_1; 1 to 8 dimensions (4 to 5 below 3_0, 4
            below 2_0). Any sizes (element-wise); source.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8 from 5_1; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same
        sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_relu, unknown)
    results: T = call("ACTIVATION_RELU", (input,), (), out, device)
    return results


def activation_scaled_elu(
    input: T,
    *,
    alpha: float = 1.6732,
    gamma: float = 1.0507,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Scaled exponential linear unit on every element.

        f(x) = Gamma * x if x > 0; Gamma * (Alpha * exp(x) - Alpha) otherwise

    DML_ACTIVATION_SCALED_ELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.867, FLOAT16 0.542.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        alpha: Usually 1.6732.
        gamma: Usually 1.0507.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_scaled_elu, unknown)
    results: T = call("ACTIVATION_SCALED_ELU", (input,), (alpha, gamma), out, device)
    return results


def activation_scaled_tanh(
    input: T,
    *,
    alpha: float = 1.0,
    beta: float = 0.5,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Scaled hyperbolic tangent on every element.

        f(x) = Alpha * tanh(Beta * x)

    DML_ACTIVATION_SCALED_TANH_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 2.177, FLOAT16 0.546.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        alpha: Usually 1.0.
        beta: Usually 0.5.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_scaled_tanh, unknown)
    results: T = call("ACTIVATION_SCALED_TANH", (input,), (alpha, beta), out, device)
    return results


def activation_sigmoid(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Logistic sigmoid on every element.

        f(x) = 1 / (1 + exp(-x))

    DML_ACTIVATION_SIGMOID_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.61, FLOAT16 0.505.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_sigmoid, unknown)
    results: T = call("ACTIVATION_SIGMOID", (input,), (), out, device)
    return results


def activation_softmax(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Softmax over each row.

        1-D: f(x[i]) = exp(x[i]) / sum(exp(x[0]), ..., exp(x[j-1])), j = number of elements; in general over
            each row (last dimension)

    DML_ACTIVATION_SOFTMAX_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    What is not finite as in ACTIVATION_SOFTMAX1.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Effective rank
            (DimensionCount without leftmost dimensions of size 1) at most 2, e.g. {1, 1, BatchCount, Width}
            acts as {BatchCount, Width}.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_softmax, unknown)
    results: T = call("ACTIVATION_SOFTMAX", (input,), (), out, device)
    return results


def activation_softmax1(
    input: T,
    *,
    axes: Sequence[int],
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Softmax over the given axes.

        1-D: f(x[i]) = exp(x[i]) / sum(exp(x[0]), ..., exp(x[j-1])); in general the sum runs jointly over all
            Axes

    DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_1. Not in place.

    Computed relative to the greatest element, so that nothing overflows. A group with a NaN or an infinity,
    or of nothing but -infinity, becomes NaN, as in PyTorch; -infinity beside numbers becomes 0.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Any sizes (element-wise); source.
        axes: Axes reduced together; each in [0, InputTensor.DimensionCount - 1].
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_softmax1, unknown)
    results: T = call("ACTIVATION_SOFTMAX1", (input,), (axes,), out, device)
    return results


def activation_softplus(
    input: T,
    *,
    steepness: float = 1.0,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Softplus with a steepness coefficient.

        f(x) = ln(1 + exp(Steepness * x)) / Steepness

    DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 3.047, FLOAT16 0.527.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        steepness: Usually 1.0; at least 1 below level 6_4; from 6_4 smaller values are allowed.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_softplus, unknown)
    results: T = call("ACTIVATION_SOFTPLUS", (input,), (steepness,), out, device)
    return results


def activation_softsign(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Softsign on every element.

        f(x) = x / (1 + abs(x))

    DML_ACTIVATION_SOFTSIGN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.496, FLOAT16 0.5.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_softsign, unknown)
    results: T = call("ACTIVATION_SOFTSIGN", (input,), (), out, device)
    return results


def activation_tanh(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Hyperbolic tangent on every element.

        f(x) = (1 - exp(-2 * x)) / (1 + exp(-2 * x))

    DML_ACTIVATION_TANH_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.918, FLOAT16 0.54.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_tanh, unknown)
    results: T = call("ACTIVATION_TANH", (input,), (), out, device)
    return results


def activation_thresholded_relu(
    input: T,
    *,
    alpha: float = 1.0,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Passes elements above a threshold and zeroes the rest.

        f(x) = x if x > Alpha; 0 otherwise

    DML_ACTIVATION_THRESHOLDED_RELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same
    memory as InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        alpha: Threshold; usually 1.0.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_thresholded_relu, unknown)
    results: T = call("ACTIVATION_THRESHOLDED_RELU", (input,), (alpha,), out, device)
    return results


def activation_shrink(
    input: T,
    *,
    bias: float = 0.0,
    threshold: float = 0.5,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Shrinks elements beyond a threshold toward zero by a bias and zeroes the rest.

        f(x) = x - Bias if x > Threshold; x + Bias if x < -Threshold; 0 otherwise

    DML_ACTIVATION_SHRINK_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Integers are computed in FLOAT64 and truncated, and saturate.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.501.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 5_1; 1 to 8 dimensions
            (4 to 5 below 3_0). Any sizes (element-wise); source.
        bias: Usually 0.0.
        threshold: Usually 0.5.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 5_1; 1 to 8 dimensions (4 to 5 below
        3_0). Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_shrink, unknown)
    results: T = call("ACTIVATION_SHRINK", (input,), (bias, threshold), out, device)
    return results


def activation_gelu(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Gaussian error linear unit (erf form) on every element.

        f(x) = 0.5 * x * (1.0 + erf(x / sqrt(2)))

    DML_ACTIVATION_GELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_1. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 2.126, FLOAT16 0.51.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Any sizes (element-wise); source.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_gelu, unknown)
    results: T = call("ACTIVATION_GELU", (input,), (), out, device)
    return results


def activation_swish(
    input: T,
    *,
    sigmoid_input_scale: float = 1.0,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Swish: the element times the sigmoid of the scaled element.

        f(x) = x * Sigmoid(SigmoidInputScale * x) = x / (1 + exp(-SigmoidInputScale * x))

    DML_ACTIVATION_SWISH_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_2. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 3.096, FLOAT16 0.512.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Any sizes (element-wise); source.
        sigmoid_input_scale: Coefficient; usually 1.0.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_swish, unknown)
    results: T = call("ACTIVATION_SWISH", (input,), (sigmoid_input_scale,), out, device)
    return results


def activation_hard_swish(
    input: T,
    *,
    alpha: float = 0.166667,
    beta: float = 0.5,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Hard swish: the element times its hard sigmoid.

        f(x) = x * HardSigmoid(x, Alpha, Beta) = x * max(0, min(Alpha * x + Beta, 1))

    DML_ACTIVATION_HARD_SWISH_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_2. OutputTensor may be the same memory
    as InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.492, FLOAT16 0.501.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Any sizes (element-wise); source.
        alpha: Scale; usually 0.166667 (1/6).
        beta: Bias; usually 0.5.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as InputTensor.
    """
    if unknown:
        raise unexpected(activation_hard_swish, unknown)
    results: T = call("ACTIVATION_HARD_SWISH", (input,), (alpha, beta), out, device)
    return results


@overload
def resample3(
    input: Array,
    *,
    interpolation_mode: InterpolationMode | str,
    rounding_direction: AxisDirection | str,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float] | None = None,
    output_pixel_offsets: Sequence[float] | None = None,
    antialiased: bool,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def resample3(
    input: T,
    *,
    interpolation_mode: InterpolationMode | str,
    rounding_direction: AxisDirection | str,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float] | None = None,
    output_pixel_offsets: Sequence[float] | None = None,
    antialiased: bool,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def resample3(
    input: T,
    *,
    interpolation_mode: InterpolationMode | str,
    rounding_direction: AxisDirection | str,
    scales: Sequence[float],
    input_pixel_offsets: Sequence[float] | None = None,
    output_pixel_offsets: Sequence[float] | None = None,
    antialiased: bool,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Resamples a tensor along any dimensions by scale factors and pixel offsets, nearest or linear, with
    optional antialiasing when downscaling.

        OutputX = (InputX + InputPixelOffset) * Scale + OutputPixelOffset, hence per dimension InputX =
            (OutputX - OutputPixelOffset) / Scale - InputPixelOffset. NEAREST: floor(InputX) for DECREASING,
            ceil(InputX) for INCREASING. LINEAR: weighted average of the two nearest input elements per
            dimension. Antialiased: linear filter stretched by max(1, 1/Scale)

    DML_RESAMPLE3_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_4. Not in place.

    As in PyTorch and Pillow the weights are divided by their sum, and elements that the input does not have
    do not count; InputX is moved to the nearest element of the input before. PyTorch and Pillow filter from 1
    / Scale > 1 on, DirectML's page from 2 on. Dimensions are filtered one after the other; means of integers
    are truncated at the end.

    Args:
        input: input, FLOAT32, FLOAT16, INT8, UINT8; 1 to 4 dimensions. Any sizes, 1 to 4 dims.
        interpolation_mode: DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR or _LINEAR (up to four dimensions, i.e. 16
            input elements).
        rounding_direction: DML_AXIS_DIRECTION_INCREASING = ceil, _DECREASING = floor of the fractional input
            coordinate; matters for NEAREST_NEIGHBOR only.
        scales: Per dimension; > 1 enlarges, < 1 shrinks; need not be exactly OutputSize / InputSize.
        input_pixel_offsets: Per dimension, added to input pixels before resampling; 0 = top-left corner, 0.5
            = pixel centre (as RESAMPLE). When None, 0.5 for each dimension.
        output_pixel_offsets: Per dimension, added after resampling; 0 = top-left corner, -0.5 = pixel centre
            (as RESAMPLE). When None, -0.5 for each dimension.
        antialiased: When TRUE and InterpolationMode is LINEAR and 1/Scale > 2, an antialiasing filter is used
            for downscaling.
        sizes: The sizes of the output; those of `out` when None, or the usual ones.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16, INT8, UINT8; 1 to 4 dimensions. Sizes given by the caller, same DimensionCount.
    """
    if unknown:
        raise unexpected(resample3, unknown)
    results: T = call(
        "RESAMPLE3",
        (input,),
        (
            interpolation_mode,
            rounding_direction,
            scales,
            input_pixel_offsets,
            output_pixel_offsets,
            antialiased,
        ),
        out,
        device,
        sizes=sizes,
    )
    return results


@overload
def fold(
    input: Array,
    *,
    window_sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def fold(
    input: T,
    *,
    window_sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def fold(
    input: T,
    *,
    window_sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Sums an array of sliding-window patches back into one large tensor (col2im).

        BlocksPerDimension[d] = (SpatialSize[d] + StartPadding[d] + EndPadding[d] -
            Dilations[d]*(WindowSizes[d]-1) - 1) / Strides[d] + 1; BlockCount = product of BlocksPerDimension
            (SpatialSize = spatial sizes of OutputTensor); Output[n, c, pos] = sum over all (block, window
            point) pairs mapping to pos of Input[n, c*prod(WindowSizes) + w, block]

    DML_FOLD_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_4. Not in place.

    Sums are made in float64 and rounded once. What lies in the padding is left out; a place that is in no
    window is 0.

    Args:
        input: input, FLOAT32, FLOAT16; 3 to 8 dimensions. (N, C * product(WindowSizes), BlockCount).
        window_sizes: UINT[DimensionCount]; size of the sliding window (extracted patch).
        strides: UINT[DimensionCount]; step of the window (not the tensor strides). When None, 1 for each
            dimension.
        dilations: UINT[DimensionCount]; spacing between window points. When None, 1 for each dimension.
        start_padding: UINT[DimensionCount]; implicit zero padding at the start of each spatial dimension.
            When None, 0 for each dimension.
        end_padding: UINT[DimensionCount]; implicit zero padding at the end of each spatial dimension. When
            None, 0 for each dimension.
        sizes: The sizes of the output; those of `out` when None.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 3 to 8 dimensions. (N, C, OutputSize[0], OutputSize[1], ...).
    """
    if unknown:
        raise unexpected(fold, unknown)
    results: T = call(
        "FOLD",
        (input,),
        (window_sizes, strides, dilations, start_padding, end_padding),
        out,
        device,
        sizes=sizes,
    )
    return results


@overload
def unfold(
    input: Array,
    *,
    window_sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    out: Array | None = None,
    device: str | Device | None = None,
) -> Array: ...


@overload
def unfold(
    input: T,
    *,
    window_sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T: ...


def unfold(
    input: T,
    *,
    window_sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    start_padding: Sequence[int] | None = None,
    end_padding: Sequence[int] | None = None,
    out: T | None = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> T:
    """Extracts sliding windows of a batched tensor into columns (im2col).

        BlocksPerDimension[d] = (SpatialSize[d] + StartPadding[d] + EndPadding[d] -
            Dilations[d]*(WindowSizes[d]-1) - 1) / Strides[d] + 1; BlockCount = product of BlocksPerDimension
            (SpatialSize = spatial sizes of InputTensor); Output[n, c*prod(WindowSizes) + w, block] =
            zero-padded Input[n, c, block*Strides + w*Dilations - StartPadding]

    DML_UNFOLD_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_4. Not in place.

    A column is a window o, counted in row-major order; its rows are the channels, each with the elements k of
    its window in row-major order.

    Args:
        input: input, FLOAT32, FLOAT16; 3 to 8 dimensions. (N, C, spatial...), up to 6 spatial dimensions.
        window_sizes: UINT[DimensionCount]; size of the sliding window (extracted patch).
        strides: UINT[DimensionCount]; step of the window (not the tensor strides). When None, 1 for each
            dimension.
        dilations: UINT[DimensionCount]; spacing between window points. When None, 1 for each dimension.
        start_padding: UINT[DimensionCount]; implicit zero padding at the start of each spatial dimension.
            When None, 0 for each dimension.
        end_padding: UINT[DimensionCount]; implicit zero padding at the end of each spatial dimension. When
            None, 0 for each dimension.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.

    Returns:
        FLOAT32, FLOAT16; 3 to 8 dimensions. 3-D (N, C * product(WindowSizes), BlockCount).
    """
    if unknown:
        raise unexpected(unfold, unknown)
    results: T = call(
        "UNFOLD",
        (input,),
        (window_sizes, strides, dilations, start_padding, end_padding),
        out,
        device,
    )
    return results


hide_unknown(globals()[_name] for _name in __all__)
