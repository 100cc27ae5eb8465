"""Immediate functions: one per operator, arrays in, arrays out.

Generated from opendml/spec/data by `python -m tools.generate`: change the data instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Never, TypeVar, overload

from opendml.runtime.arguments import hide_unknown, unexpected
from opendml.runtime.immediate import call
from opendml.spec.enums import AxisDirection, IsInfinityMode, ReduceFunction, RoundingMode
from opendml.spec.operator_desc import OperatorDesc, ScaleBias
from opendml.spec.plain import DataTypeLike

if TYPE_CHECKING:
    from opendml.runtime.device import Device
    from opendml.runtime.host_array import Array

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
    "argmax",
    "argmin",
    "batch_normalization",
    "cast",
    "cumulative_product",
    "cumulative_summation",
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
    "local_response_normalization",
    "lp_normalization",
    "mean_variance_normalization",
    "mean_variance_normalization1",
    "mean_variance_normalization2",
    "reduce",
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

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.401.

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
    min_max_data_type: DataTypeLike,
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
        min_max_data_type: DML_TENSOR_DATA_TYPE of Min and Max; must equal OutputTensor.DataType.
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
    min_max_data_type: DataTypeLike,
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
        min_max_data_type: DML_TENSOR_DATA_TYPE of Min and Max; must equal OutputTensor.DataType.
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

    Greatest distance from the exact result, in ULP: FLOAT32 0.9, FLOAT16 0.515.

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

    Greatest distance from the exact result, in ULP: FLOAT32 1.288, FLOAT16 0.508.

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

    Greatest distance from the exact result, in ULP: FLOAT32 2.523, FLOAT16 0.506.

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

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.401.

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

    Greatest distance from the exact result, in ULP: FLOAT32 1.035, FLOAT16 0.5.

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

    Greatest distance from the exact result, in ULP: FLOAT32 1.067, FLOAT16 0.54.

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

    Greatest distance from the exact result, in ULP: FLOAT32 1.453, FLOAT16 0.532.

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

    Greatest distance from the exact result, in ULP: FLOAT32 1.583, FLOAT16 0.537.

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

    Greatest distance from the exact result, in ULP: FLOAT32 2.852, FLOAT16 0.522.

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

    Greatest distance from the exact result, in ULP: FLOAT32 1.708, FLOAT16 0.536.

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

    Greatest distance from the exact result, in ULP: FLOAT32 1.946, FLOAT16 0.54.

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

    Greatest distance from the exact result, in ULP: FLOAT32 1.603, FLOAT16 0.505.

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

    Greatest distance from the exact result, in ULP: FLOAT32 2.772, FLOAT16 0.519.

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

    Greatest distance from the exact result, in ULP: FLOAT32 1.067, FLOAT16 0.54.

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

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.5.

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

    Greatest distance from the exact result, in ULP: FLOAT32 2.62, FLOAT16 0.539.

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

    Greatest distance from the exact result, in ULP: FLOAT32 3.096, FLOAT16 0.518.

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

    Greatest distance from the exact result, in ULP: FLOAT32 1.484, FLOAT16 0.501.

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


hide_unknown(globals()[_name] for _name in __all__)
