"""Descriptions of DirectML's quantization operators.

Generated from opendml/spec/data by `python -m tools.generate`: change the data instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from opendml.spec.enums import QuantizationType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.plain import as_member, as_tuple
from opendml.spec.tensor_desc import TensorDesc


class ElementWiseQuantizeLinear(OperatorDesc):
    """Linear quantization of each element with an element-wise scale and zero point into 8-bit integers,
    saturating.

        f(input, scale, zero_point) = clamp(round(input / scale) + zero_point, Min, Max); UINT8 output: Min =
            0, Max = 255; INT8 output: Min = -128, Max = 127

    DML_ELEMENT_WISE_QUANTIZE_LINEAR_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32; INT32 from 2_1; FLOAT16 from 6_0; 1 to 8 dimensions (4 below 3_0).
            Values to quantize.
        scale_tensor: input, FLOAT32; FLOAT16 from 6_0; 1 to 8 dimensions (4 below 3_0). per-element scale,
            same Sizes as input (broadcast by zero strides); scale 0 gives undefined behaviour.
        zero_point_tensor: input, optional from 6_2; UINT8; INT8 from 2_1; 1 to 8 dimensions (4 below 3_0).
            Zero point, same DataType as OutputTensor; optional from 6_2, required before.
        output_tensor: output, UINT8; INT8 from 2_1; 1 to 8 dimensions (4 below 3_0). 8-bit result.
    """

    operator = "ELEMENT_WISE_QUANTIZE_LINEAR"
    fields = ("input_tensor", "scale_tensor", "zero_point_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    scale_tensor: TensorDesc | None
    zero_point_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        scale_tensor: TensorDesc | None = None,
        zero_point_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            scale_tensor,
            zero_point_tensor,
            output_tensor,
        )


class ElementWiseDequantizeLinear(OperatorDesc):
    """Linear dequantization of each integer element with an element-wise scale and zero point.

        f(input, scale, zero_point) = (input - zero_point) * scale

    DML_ELEMENT_WISE_DEQUANTIZE_LINEAR_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, UINT8; INT32, INT16, INT8, UINT32, UINT16 from 2_1; 1 to 8 dimensions (4 below
            3_0). Quantized values.
        scale_tensor: input, FLOAT32; FLOAT16 from 6_0; 1 to 8 dimensions (4 below 3_0). per-element scale,
            same Sizes as input; scale 0 gives undefined behaviour.
        zero_point_tensor: input, optional from 6_2; UINT8; INT32, INT16, INT8, UINT32, UINT16 from 2_1; 1 to
            8 dimensions (4 below 3_0). Zero point, same DataType as InputTensor; optional from 6_2, required
            before.
        output_tensor: output, FLOAT32; FLOAT16 from 6_0; 1 to 8 dimensions (4 below 3_0). Same DataType as
            ScaleTensor.
    """

    operator = "ELEMENT_WISE_DEQUANTIZE_LINEAR"
    fields = ("input_tensor", "scale_tensor", "zero_point_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    scale_tensor: TensorDesc | None
    zero_point_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        scale_tensor: TensorDesc | None = None,
        zero_point_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            scale_tensor,
            zero_point_tensor,
            output_tensor,
        )


class DynamicQuantizeLinear(OperatorDesc):
    """Finds scale and zero point from the minimum and maximum of the whole input, then quantizes the input
    with them.

        InputMax = max(Input), InputMin = min(Input); OutputScale = (InputMax - InputMin) / (Max - Min);
            OutputZeroPoint = Min - InputMin / OutputScale; Output = clamp(round(Input / OutputScale) +
            OutputZeroPoint, Min, Max); UINT8: Min 0, Max 255; INT8: Min -128, Max 127

    DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC, from DML_FEATURE_LEVEL_4_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Any sizes.
        output_tensor: output, INT8, UINT8; 1 to 8 dimensions. Same sizes as the input (implied).
        output_scale_tensor: output, FLOAT32; 1 to 8 dimensions. 1 element.
        output_zero_point_tensor: output, INT8, UINT8; 1 to 8 dimensions. 1 element, same type as
            OutputTensor.
    """

    operator = "DYNAMIC_QUANTIZE_LINEAR"
    fields = ("input_tensor", "output_tensor", "output_scale_tensor", "output_zero_point_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    output_scale_tensor: TensorDesc | None
    output_zero_point_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        output_scale_tensor: TensorDesc | None = None,
        output_zero_point_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            output_scale_tensor,
            output_zero_point_tensor,
        )


class ElementWiseQuantizedLinearAdd(OperatorDesc):
    """Adds two linearly quantized tensors element by element and requantizes the sum.

        Y = (A - AZeroPoint) * AScale + (B - BZeroPoint) * BScale; Output = clamp(round(Y / OutputScale) +
            OutputZeroPoint, Min, Max); UINT8 output: 0..255, INT8 output: -128..127

    DML_ELEMENT_WISE_QUANTIZED_LINEAR_ADD_OPERATOR_DESC, from DML_FEATURE_LEVEL_4_0. Not in place.

    Tensors:
        a_tensor: input, INT8, UINT8; 1 to 8 dimensions. Any sizes.
        a_scale_tensor: input, FLOAT32; 1 to 8 dimensions. 1 element.
        a_zero_point_tensor: input, optional; INT8, UINT8; 1 to 8 dimensions. 1 element, default 0.
        b_tensor: input, INT8, UINT8; 1 to 8 dimensions. Same sizes as A (implied).
        b_scale_tensor: input, FLOAT32; 1 to 8 dimensions. 1 element.
        b_zero_point_tensor: input, optional; INT8, UINT8; 1 to 8 dimensions. 1 element, default 0.
        output_scale_tensor: input, FLOAT32; 1 to 8 dimensions. 1 element (an input).
        output_zero_point_tensor: input, optional; INT8, UINT8; 1 to 8 dimensions. 1 element, default 0 (an
            input).
        output_tensor: output, INT8, UINT8; 1 to 8 dimensions. Same sizes (implied).
    """

    operator = "ELEMENT_WISE_QUANTIZED_LINEAR_ADD"
    fields = (
        "a_tensor",
        "a_scale_tensor",
        "a_zero_point_tensor",
        "b_tensor",
        "b_scale_tensor",
        "b_zero_point_tensor",
        "output_scale_tensor",
        "output_zero_point_tensor",
        "output_tensor",
    )
    __slots__ = fields
    a_tensor: TensorDesc | None
    a_scale_tensor: TensorDesc | None
    a_zero_point_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    b_scale_tensor: TensorDesc | None
    b_zero_point_tensor: TensorDesc | None
    output_scale_tensor: TensorDesc | None
    output_zero_point_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        a_scale_tensor: TensorDesc | None = None,
        a_zero_point_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        b_scale_tensor: TensorDesc | None = None,
        b_zero_point_tensor: TensorDesc | None = None,
        output_scale_tensor: TensorDesc | None = None,
        output_zero_point_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            a_scale_tensor,
            a_zero_point_tensor,
            b_tensor,
            b_scale_tensor,
            b_zero_point_tensor,
            output_scale_tensor,
            output_zero_point_tensor,
            output_tensor,
        )


class Quantize(OperatorDesc):
    """Converts floating-point values to a low-precision integer type using scale and optional zero point.

        Output = clamp(round(Input / Scale) + ZeroPoint, min(OutputType), max(OutputType)); ZeroPoint = 0 for
            SCALE; ties are rounded to even

    DML_QUANTIZE_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_3. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Source; floats.
        quantization_tensors: inputs, FLOAT32, FLOAT16, INT8, INT4, UINT8, UINT4; 1 to 8 dimensions. Array;
            element 0 = scale (float type), element 1 = zero point (the quantized integer type) when
            QuantizationType is SCALE_ZERO_POINT; same DimensionCount as InputTensor. A dimension may be
            smaller than the input's: per-block (blockwise) parameters, with input size divisible by it.
        output_tensor: output, INT8, INT4, UINT8, UINT4; 1 to 8 dimensions. Same DimensionCount and sizes as
            InputTensor.

    Attributes:
        quantization_type: QuantizationType. SCALE, or SCALE_ZERO_POINT.
    """

    operator = "QUANTIZE"
    fields = ("input_tensor", "quantization_type", "quantization_tensors", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    quantization_type: QuantizationType
    quantization_tensors: tuple[TensorDesc, ...]
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        quantization_tensors: Sequence[TensorDesc] = (),
        output_tensor: TensorDesc | None = None,
        *,
        quantization_type: QuantizationType | str,
    ) -> None:
        self._fill(
            input_tensor,
            as_member(QuantizationType, quantization_type),
            as_tuple(quantization_tensors),
            output_tensor,
        )


class Dequantize(OperatorDesc):
    """Converts quantized integers back to floating point using scale and optional zero point.

        Output = (Input - ZeroPoint) * Scale; ZeroPoint = 0 for SCALE

    DML_DEQUANTIZE_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_3. Not in place.

    Tensors:
        input_tensor: input, INT8, INT4, UINT8, UINT4; 1 to 8 dimensions. Source; quantized integers.
        quantization_tensors: inputs, FLOAT32, FLOAT16, INT8, INT4, UINT8, UINT4; 1 to 8 dimensions. Array;
            element 0 = scale (float type), element 1 = zero point (the quantized integer type) when
            QuantizationType is SCALE_ZERO_POINT; same DimensionCount as InputTensor. A dimension may be
            smaller than the input's: per-block (blockwise) parameters, with input size divisible by it.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. Same DimensionCount and sizes as
            InputTensor.

    Attributes:
        quantization_type: QuantizationType. SCALE, or SCALE_ZERO_POINT.
    """

    operator = "DEQUANTIZE"
    fields = ("input_tensor", "quantization_type", "quantization_tensors", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    quantization_type: QuantizationType
    quantization_tensors: tuple[TensorDesc, ...]
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        quantization_tensors: Sequence[TensorDesc] = (),
        output_tensor: TensorDesc | None = None,
        *,
        quantization_type: QuantizationType | str,
    ) -> None:
        self._fill(
            input_tensor,
            as_member(QuantizationType, quantization_type),
            as_tuple(quantization_tensors),
            output_tensor,
        )
