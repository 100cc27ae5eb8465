"""Descriptions of DirectML's elementwise operators.

Generated from opendml/spec/data by `python -m tools.generate`: change the data instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from opendml.spec.enums import IsInfinityMode, RoundingMode, TensorDataType
from opendml.spec.operator_desc import OperatorDesc, ScaleBias
from opendml.spec.plain import DataTypeLike, as_member, as_tuple
from opendml.spec.tensor_desc import TensorDesc


class ElementWiseIdentity(OperatorDesc):
    """Copies each input element to the output, optionally after a scale and bias.

        f(x) = x

    DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 4_1; 1 to 8 dimensions (4 to 5 below 3_0). Input, any sizes.
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 4_1; 1 to 8 dimensions (4 to 5 below 3_0). Same DataType, DimensionCount and
            Sizes as InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. Scale and bias: the operator is applied to x * scale + bias; absent:
            to x.
    """

    operator = "ELEMENT_WISE_IDENTITY"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseAbs(OperatorDesc):
    """Element-wise absolute value.

        f(x) = abs(x)

    DML_ELEMENT_WISE_ABS_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8 from 2_1; INT64 from 4_1; 1 to 8 dimensions
            (4 below 3_0). Input, any sizes.
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8 from 2_1; INT64 from 4_1; 1 to 8
            dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. Scale and bias: the operator is applied to x * scale + bias; absent:
            to x.
    """

    operator = "ELEMENT_WISE_ABS"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseAcos(OperatorDesc):
    """Element-wise arccosine.

        f(x) = acos(x)

    DML_ELEMENT_WISE_ACOS_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType,
            DimensionCount and Sizes as InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. Scale and bias: the operator is applied to x * scale + bias; absent:
            to x.
    """

    operator = "ELEMENT_WISE_ACOS"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseAdd(OperatorDesc):
    """Element-wise sum of two tensors.

        f(a, b) = a + b

    DML_ELEMENT_WISE_ADD_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    ATensor or BTensor.

    Tensors:
        a_tensor: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT64, UINT64 from 4_1; INT16, INT8,
            UINT16, UINT8 from 5_1; 1 to 8 dimensions (4 to 5 below 3_0). left-hand operand.
        b_tensor: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT64, UINT64 from 4_1; INT16, INT8,
            UINT16, UINT8 from 5_1; 1 to 8 dimensions (4 to 5 below 3_0). right-hand operand; same DataType,
            DimensionCount and Sizes as ATensor.
        output_tensor: output, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT64, UINT64 from 4_1; INT16, INT8,
            UINT16, UINT8 from 5_1; 1 to 8 dimensions (4 to 5 below 3_0). Same DataType, DimensionCount and
            Sizes as ATensor.
    """

    operator = "ELEMENT_WISE_ADD"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseAsin(OperatorDesc):
    """Element-wise arcsine.

        f(x) = asin(x)

    DML_ELEMENT_WISE_ASIN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType,
            DimensionCount and Sizes as InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. Scale and bias: the operator is applied to x * scale + bias; absent:
            to x.
    """

    operator = "ELEMENT_WISE_ASIN"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseAtan(OperatorDesc):
    """Element-wise arctangent.

        f(x) = atan(x)

    DML_ELEMENT_WISE_ATAN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType,
            DimensionCount and Sizes as InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. Scale and bias: the operator is applied to x * scale + bias; absent:
            to x.
    """

    operator = "ELEMENT_WISE_ATAN"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseCeil(OperatorDesc):
    """Rounds each element up to the nearest integer value.

        f(x) = ceil(x)

    DML_ELEMENT_WISE_CEIL_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType,
            DimensionCount and Sizes as InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. Scale and bias: the operator is applied to x * scale + bias; absent:
            to x.
    """

    operator = "ELEMENT_WISE_CEIL"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseClip(OperatorDesc):
    """Clamps each element to the closed interval [Min, Max].

        f(x) = max(Min, min(x, Max))

    DML_ELEMENT_WISE_CLIP_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64,
            UINT64 from 5_0; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64,
            UINT64 from 5_0; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
            InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. Scale and bias: the operator is applied to x * scale + bias; absent:
            to x.
        min: float. Lower bound; smaller values become Min.
        max: float. Upper bound; larger values become Max.
    """

    operator = "ELEMENT_WISE_CLIP"
    fields = ("input_tensor", "output_tensor", "scale_bias", "min", "max")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None
    min: float
    max: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
        min: float,
        max: float,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
            min,
            max,
        )


class ElementWiseClip1(OperatorDesc):
    """Clamps each element to [Min, Max], with bounds given in a typed scalar union.

        f(x) = max(Min, min(x, Max))

    DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8; 1 to
            8 dimensions. Input, any sizes.
        output_tensor: output, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8; 1
            to 8 dimensions. Same DataType, DimensionCount and Sizes as InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. Scale and bias: the operator is applied to x * scale + bias; absent:
            to x.
        min_max_data_type: TensorDataType. DML_TENSOR_DATA_TYPE of Min and Max; must equal
            OutputTensor.DataType.
        min: int | float. Lower bound, read as MinMaxDataType; smaller values become Min.
        max: int | float. Upper bound, read as MinMaxDataType; larger values become Max.
    """

    operator = "ELEMENT_WISE_CLIP1"
    fields = ("input_tensor", "output_tensor", "scale_bias", "min_max_data_type", "min", "max")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None
    min_max_data_type: TensorDataType
    min: int | float
    max: int | float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
        min_max_data_type: DataTypeLike,
        min: int | float,
        max: int | float,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
            as_member(TensorDataType, min_max_data_type),
            min,
            max,
        )


class ElementWiseClipGrad(OperatorDesc):
    """Backpropagation gradient of element-wise CLIP: passes the gradient through strictly inside (Min, Max),
    zero elsewhere.

        f(x, gradient) = 0 if x <= Min; 0 if x >= Max; gradient otherwise

    DML_ELEMENT_WISE_CLIP_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_1. OutputGradientTensor may be the same
    memory as InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from
            5_0; 1 to 8 dimensions. X, normally the InputTensor of the forward CLIP.
        input_gradient_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64,
            UINT64 from 5_0; 1 to 8 dimensions. Incoming gradient, normally with the sizes of the forward
            output.
        output_gradient_tensor: output, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64,
            UINT64 from 5_0; 1 to 8 dimensions. Resulting gradient, normally with the sizes of the forward
            input.

    Attributes:
        min: float. X at or below it gives gradient 0.
        max: float. X at or above it gives gradient 0.
    """

    operator = "ELEMENT_WISE_CLIP_GRAD"
    fields = ("input_tensor", "input_gradient_tensor", "output_gradient_tensor", "min", "max")
    __slots__ = fields
    input_tensor: TensorDesc | None
    input_gradient_tensor: TensorDesc | None
    output_gradient_tensor: TensorDesc | None
    min: float
    max: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        input_gradient_tensor: TensorDesc | None = None,
        output_gradient_tensor: TensorDesc | None = None,
        *,
        min: float,
        max: float,
    ) -> None:
        self._fill(
            input_tensor,
            input_gradient_tensor,
            output_gradient_tensor,
            min,
            max,
        )


class ElementWiseClipGrad1(OperatorDesc):
    """Backpropagation gradient of element-wise CLIP1: passes the gradient through strictly inside (Min, Max),
    zero elsewhere.

        f(x, gradient) = 0 if x <= Min; 0 if x >= Max; gradient otherwise

    DML_ELEMENT_WISE_CLIP_GRAD1_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_0. OutputGradientTensor may be the
    same memory as InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8; 1 to
            8 dimensions. X, normally the InputTensor of the forward CLIP1.
        input_gradient_tensor: input, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16,
            UINT8; 1 to 8 dimensions. Incoming gradient, normally with the sizes of the forward output.
        output_gradient_tensor: output, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16,
            UINT8; 1 to 8 dimensions. Resulting gradient, normally with the sizes of the forward input.

    Attributes:
        min_max_data_type: TensorDataType. DML_TENSOR_DATA_TYPE of Min and Max; must equal
            OutputTensor.DataType.
        min: int | float. Read as MinMaxDataType; x at or below it gives gradient 0.
        max: int | float. Read as MinMaxDataType; x at or above it gives gradient 0.
    """

    operator = "ELEMENT_WISE_CLIP_GRAD1"
    fields = (
        "input_tensor",
        "input_gradient_tensor",
        "output_gradient_tensor",
        "min_max_data_type",
        "min",
        "max",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    input_gradient_tensor: TensorDesc | None
    output_gradient_tensor: TensorDesc | None
    min_max_data_type: TensorDataType
    min: int | float
    max: int | float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        input_gradient_tensor: TensorDesc | None = None,
        output_gradient_tensor: TensorDesc | None = None,
        *,
        min_max_data_type: DataTypeLike,
        min: int | float,
        max: int | float,
    ) -> None:
        self._fill(
            input_tensor,
            input_gradient_tensor,
            output_gradient_tensor,
            as_member(TensorDataType, min_max_data_type),
            min,
            max,
        )


class ElementWiseCos(OperatorDesc):
    """Element-wise trigonometric cosine.

        f(x) = cos(x)

    DML_ELEMENT_WISE_COS_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType,
            DimensionCount and Sizes as InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. Scale and bias: the operator is applied to x * scale + bias; absent:
            to x.
    """

    operator = "ELEMENT_WISE_COS"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseDivide(OperatorDesc):
    """Element-wise quotient of ATensor over BTensor.

        f(a, b) = a / b

    DML_ELEMENT_WISE_DIVIDE_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    ATensor or BTensor.

    Tensors:
        a_tensor: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT16, INT8, UINT16, UINT8 from 5_1; INT64,
            UINT64 from 6_0; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b_tensor: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT16, INT8, UINT16, UINT8 from 5_1; INT64,
            UINT64 from 6_0; 1 to 8 dimensions (4 below 3_0). right-hand operand; same DataType,
            DimensionCount and Sizes as ATensor.
        output_tensor: output, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT16, INT8, UINT16, UINT8 from 5_1;
            INT64, UINT64 from 6_0; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes
            as ATensor.
    """

    operator = "ELEMENT_WISE_DIVIDE"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseExp(OperatorDesc):
    """Element-wise natural exponential.

        f(x) = exp(x)

    DML_ELEMENT_WISE_EXP_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType,
            DimensionCount and Sizes as InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. Scale and bias: the operator is applied to x * scale + bias; absent:
            to x.
    """

    operator = "ELEMENT_WISE_EXP"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseFloor(OperatorDesc):
    """Rounds each element down to the nearest integer value.

        f(x) = floor(x)

    DML_ELEMENT_WISE_FLOOR_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType,
            DimensionCount and Sizes as InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. Scale and bias: the operator is applied to x * scale + bias; absent:
            to x.
    """

    operator = "ELEMENT_WISE_FLOOR"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseLog(OperatorDesc):
    """Element-wise natural (base e) logarithm.

        f(x) = ln(x)

    DML_ELEMENT_WISE_LOG_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType,
            DimensionCount and Sizes as InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. Scale and bias: the operator is applied to x * scale + bias; absent:
            to x.
    """

    operator = "ELEMENT_WISE_LOG"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseLogicalAnd(OperatorDesc):
    """Element-wise logical AND of two tensors.

        f(a, b) = (a && b)

    DML_ELEMENT_WISE_LOGICAL_AND_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same
    memory as ATensor or BTensor.

    Tensors:
        a_tensor: input, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b_tensor: input, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). right-hand operand; same
            DataType, DimensionCount and Sizes as ATensor.
        output_tensor: output, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). Same DataType,
            DimensionCount and Sizes as ATensor.
    """

    operator = "ELEMENT_WISE_LOGICAL_AND"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseLogicalEquals(OperatorDesc):
    """Element-wise comparison: equal.

        f(a, b) = (a == b)

    DML_ELEMENT_WISE_LOGICAL_EQUALS_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        a_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64
            from 4_1; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64
            from 4_1; 1 to 8 dimensions (4 below 3_0). right-hand operand; same DataType, DimensionCount and
            Sizes as ATensor.
        output_tensor: output, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). Same DimensionCount
            and Sizes as ATensor; its DataType is independent of the inputs.
    """

    operator = "ELEMENT_WISE_LOGICAL_EQUALS"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseLogicalGreaterThan(OperatorDesc):
    """Element-wise comparison: greater than.

        f(a, b) = (a > b)

    DML_ELEMENT_WISE_LOGICAL_GREATER_THAN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        a_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64
            from 4_1; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64
            from 4_1; 1 to 8 dimensions (4 below 3_0). right-hand operand; same DataType, DimensionCount and
            Sizes as ATensor.
        output_tensor: output, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). Same DimensionCount
            and Sizes as ATensor; its DataType is independent of the inputs.
    """

    operator = "ELEMENT_WISE_LOGICAL_GREATER_THAN"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseLogicalLessThan(OperatorDesc):
    """Element-wise comparison: less than.

        f(a, b) = (a < b)

    DML_ELEMENT_WISE_LOGICAL_LESS_THAN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        a_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64
            from 4_1; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64
            from 4_1; 1 to 8 dimensions (4 below 3_0). right-hand operand; same DataType, DimensionCount and
            Sizes as ATensor.
        output_tensor: output, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). Same DimensionCount
            and Sizes as ATensor; its DataType is independent of the inputs.
    """

    operator = "ELEMENT_WISE_LOGICAL_LESS_THAN"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseLogicalGreaterThanOrEqual(OperatorDesc):
    """Element-wise comparison: greater than or equal.

        f(a, b) = (a >= b)

    DML_ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Tensors:
        a_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 4_1;
            1 to 8 dimensions. left-hand operand.
        b_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 4_1;
            1 to 8 dimensions. right-hand operand; same DataType, DimensionCount and Sizes as ATensor.
        output_tensor: output, UINT32, UINT8; 1 to 8 dimensions. Same DimensionCount and Sizes as ATensor; its
            DataType is independent of the inputs.
    """

    operator = "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseLogicalLessThanOrEqual(OperatorDesc):
    """Element-wise comparison: less than or equal.

        f(a, b) = (a <= b)

    DML_ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Tensors:
        a_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 4_1;
            1 to 8 dimensions. left-hand operand.
        b_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 4_1;
            1 to 8 dimensions. right-hand operand; same DataType, DimensionCount and Sizes as ATensor.
        output_tensor: output, UINT32, UINT8; 1 to 8 dimensions. Same DimensionCount and Sizes as ATensor; its
            DataType is independent of the inputs.
    """

    operator = "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseLogicalNot(OperatorDesc):
    """Element-wise logical NOT.

        f(x) = !x

    DML_ELEMENT_WISE_LOGICAL_NOT_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same
    memory as InputTensor.

    Tensors:
        input_tensor: input, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        output_tensor: output, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). Same DataType,
            DimensionCount and Sizes as InputTensor.
    """

    operator = "ELEMENT_WISE_LOGICAL_NOT"
    fields = ("input_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
        )


class ElementWiseLogicalOr(OperatorDesc):
    """Element-wise logical OR of two tensors.

        f(a, b) = (a || b)

    DML_ELEMENT_WISE_LOGICAL_OR_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as ATensor or BTensor.

    Tensors:
        a_tensor: input, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b_tensor: input, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). right-hand operand; same
            DataType, DimensionCount and Sizes as ATensor.
        output_tensor: output, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). Same DataType,
            DimensionCount and Sizes as ATensor.
    """

    operator = "ELEMENT_WISE_LOGICAL_OR"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseLogicalXor(OperatorDesc):
    """Element-wise logical exclusive OR of two tensors.

        f(a, b) = (!!a) != (!!b)

    DML_ELEMENT_WISE_LOGICAL_XOR_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same
    memory as ATensor or BTensor.

    Tensors:
        a_tensor: input, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b_tensor: input, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). right-hand operand; same
            DataType, DimensionCount and Sizes as ATensor.
        output_tensor: output, UINT32; UINT8 from 2_0; 1 to 8 dimensions (4 below 3_0). Same DataType,
            DimensionCount and Sizes as ATensor.
    """

    operator = "ELEMENT_WISE_LOGICAL_XOR"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseMax(OperatorDesc):
    """Element-wise larger of two tensors.

        f(a, b) = max(a, b)

    DML_ELEMENT_WISE_MAX_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    ATensor or BTensor.

    Tensors:
        a_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64
            from 5_0; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64
            from 5_0; 1 to 8 dimensions (4 below 3_0). right-hand operand; same DataType, DimensionCount and
            Sizes as ATensor.
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64,
            UINT64 from 5_0; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
            ATensor.
    """

    operator = "ELEMENT_WISE_MAX"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseMean(OperatorDesc):
    """Element-wise average of two tensors.

        f(a, b) = (a + b) / 2

    DML_ELEMENT_WISE_MEAN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    ATensor or BTensor.

    Tensors:
        a_tensor: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; 1 to 8 dimensions (4 below 3_0). left-hand
            operand.
        b_tensor: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; 1 to 8 dimensions (4 below 3_0). right-hand
            operand; same DataType, DimensionCount and Sizes as ATensor.
        output_tensor: output, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; 1 to 8 dimensions (4 below 3_0). Same
            DataType, DimensionCount and Sizes as ATensor.
    """

    operator = "ELEMENT_WISE_MEAN"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseMin(OperatorDesc):
    """Element-wise smaller of two tensors.

        f(a, b) = min(a, b)

    DML_ELEMENT_WISE_MIN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    ATensor or BTensor.

    Tensors:
        a_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64
            from 5_0; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64, UINT64
            from 5_0; 1 to 8 dimensions (4 below 3_0). right-hand operand; same DataType, DimensionCount and
            Sizes as ATensor.
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64,
            UINT64 from 5_0; 1 to 8 dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as
            ATensor.
    """

    operator = "ELEMENT_WISE_MIN"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseMultiply(OperatorDesc):
    """Element-wise product of two tensors.

        f(a, b) = a * b

    DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as ATensor or BTensor.

    Tensors:
        a_tensor: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT64, UINT64 from 4_1; INT16, INT8,
            UINT16, UINT8 from 5_1; 1 to 8 dimensions (4 to 5 below 3_0). left-hand operand.
        b_tensor: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT64, UINT64 from 4_1; INT16, INT8,
            UINT16, UINT8 from 5_1; 1 to 8 dimensions (4 to 5 below 3_0). right-hand operand; same DataType,
            DimensionCount and Sizes as ATensor.
        output_tensor: output, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT64, UINT64 from 4_1; INT16, INT8,
            UINT16, UINT8 from 5_1; 1 to 8 dimensions (4 to 5 below 3_0). Same DataType, DimensionCount and
            Sizes as ATensor.
    """

    operator = "ELEMENT_WISE_MULTIPLY"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWisePow(OperatorDesc):
    """Raises each input element to the power of the matching exponent element.

        f(input, exponent) = pow(input, exponent)

    DML_ELEMENT_WISE_POW_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 3_0; 1 to 8
            dimensions (4 below 3_0). Base.
        exponent_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 3_0; 1 to 8
            dimensions (4 below 3_0). Exponent; same DimensionCount and Sizes as InputTensor; from 3_0 its
            DataType may differ from InputTensor's.
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 3_0; 1 to 8
            dimensions (4 below 3_0). Same DataType, DimensionCount and Sizes as InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. Scale and bias: the operator is applied to x * scale + bias; absent:
            to x (applies to InputTensor, not to ExponentTensor).
    """

    operator = "ELEMENT_WISE_POW"
    fields = ("input_tensor", "exponent_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    exponent_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        exponent_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            exponent_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseConstantPow(OperatorDesc):
    """Raises each element to a constant exponent.

        f(x) = pow(x, Exponent)

    DML_ELEMENT_WISE_CONSTANT_POW_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same
    memory as InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType,
            DimensionCount and Sizes as InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. Scale and bias: the operator is applied to x * scale + bias; absent:
            to x.
        exponent: float. Exponent applied to every element.
    """

    operator = "ELEMENT_WISE_CONSTANT_POW"
    fields = ("input_tensor", "output_tensor", "scale_bias", "exponent")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None
    exponent: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
        exponent: float,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
            exponent,
        )


class ElementWiseRecip(OperatorDesc):
    """Element-wise reciprocal.

        f(x) = 1 / x

    DML_ELEMENT_WISE_RECIP_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType,
            DimensionCount and Sizes as InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. Scale and bias: the operator is applied to x * scale + bias; absent:
            to x.
    """

    operator = "ELEMENT_WISE_RECIP"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseSin(OperatorDesc):
    """Element-wise trigonometric sine.

        f(x) = sin(x)

    DML_ELEMENT_WISE_SIN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType,
            DimensionCount and Sizes as InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. Scale and bias: the operator is applied to x * scale + bias; absent:
            to x.
    """

    operator = "ELEMENT_WISE_SIN"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseSqrt(OperatorDesc):
    """Element-wise square root.

        f(x) = sqrt(x)

    DML_ELEMENT_WISE_SQRT_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Input, any sizes.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same DataType,
            DimensionCount and Sizes as InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. Scale and bias: the operator is applied to x * scale + bias; absent:
            to x.
    """

    operator = "ELEMENT_WISE_SQRT"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseDifferenceSquare(OperatorDesc):
    """Square of the element-wise difference.

        f(a, b) = (a - b) * (a - b)

    DML_ELEMENT_WISE_DIFFERENCE_SQUARE_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_1. OutputTensor may be the same
    memory as ATensor or BTensor.

    Tensors:
        a_tensor: input, FLOAT32, FLOAT16, INT32, UINT32; 1 to 8 dimensions. left-hand operand.
        b_tensor: input, FLOAT32, FLOAT16, INT32, UINT32; 1 to 8 dimensions. right-hand operand; same
            DataType, DimensionCount and Sizes as ATensor.
        output_tensor: output, FLOAT32, FLOAT16, INT32, UINT32; 1 to 8 dimensions. Same DataType,
            DimensionCount and Sizes as ATensor.
    """

    operator = "ELEMENT_WISE_DIFFERENCE_SQUARE"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseAtanYx(OperatorDesc):
    """Two-argument arctangent with ATensor as the y axis and BTensor as the x axis.

        f(y, x) = atan2(y, x), y from ATensor, x from BTensor

    DML_ELEMENT_WISE_ATAN_YX_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_1. OutputTensor may be the same memory as
    ATensor or BTensor.

    Tensors:
        a_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. y-axis values.
        b_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. x-axis values; same DataType, DimensionCount and
            Sizes as ATensor.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. Same DataType, DimensionCount and Sizes as
            ATensor.
    """

    operator = "ELEMENT_WISE_ATAN_YX"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseSubtract(OperatorDesc):
    """Element-wise difference: B is taken away from A.

        f(a, b) = a - b

    DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as ATensor or BTensor.

    Tensors:
        a_tensor: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT64, UINT64 from 4_1; INT16, INT8,
            UINT16, UINT8 from 5_1; 1 to 8 dimensions (4 below 3_0). left-hand operand.
        b_tensor: input, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT64, UINT64 from 4_1; INT16, INT8,
            UINT16, UINT8 from 5_1; 1 to 8 dimensions (4 below 3_0). right-hand operand.
        output_tensor: output, FLOAT32, FLOAT16; INT32, UINT32 from 2_1; INT64, UINT64 from 4_1; INT16, INT8,
            UINT16, UINT8 from 5_1; 1 to 8 dimensions (4 below 3_0). Same sizes as the inputs (broadcast only
            through zero strides, Sizes must still match).
    """

    operator = "ELEMENT_WISE_SUBTRACT"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseTan(OperatorDesc):
    """Tangent of each element (trigonometric).

        f(x) = tan(x), with x first mapped by x * Scale + Bias when ScaleBias is present

    DML_ELEMENT_WISE_TAN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Any sizes.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same sizes as InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. When present g(x) = x * Scale + Bias is applied to each input element
            before the operator.
    """

    operator = "ELEMENT_WISE_TAN"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseThreshold(OperatorDesc):
    """Clamps every element from below at Min.

        f(x) = max(x, Min), where max is the larger of the two; x first mapped by x * Scale + Bias when
            ScaleBias is present

    DML_ELEMENT_WISE_THRESHOLD_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; 1 to 8
            dimensions (4 below 3_0). Any sizes.
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; 1 to 8
            dimensions (4 below 3_0). Same sizes as InputTensor.

    Attributes:
        scale_bias: ScaleBias, optional. When present g(x) = x * Scale + Bias is applied to each input element
            before the operator.
        min: float. Lower bound; elements under it become Min.
    """

    operator = "ELEMENT_WISE_THRESHOLD"
    fields = ("input_tensor", "output_tensor", "scale_bias", "min")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None
    min: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
        min: float,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
            min,
        )


class Cast(OperatorDesc):
    """Converts each element to the data type of the output tensor.

        f(x) = (OutputType) x

    DML_CAST_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT16, INT8, UINT16, UINT8; INT64, INT32, UINT64, UINT32 from
            3_0; FLOAT64 from 4_1; 1 to 8 dimensions (4 below 3_1). Any sizes.
        output_tensor: output, FLOAT32, FLOAT16, INT16, INT8, UINT16, UINT8; INT64, INT32, UINT64, UINT32 from
            3_0; FLOAT64 from 4_1; 1 to 8 dimensions (4 below 3_1). Same Sizes as InputTensor, any supported
            type.
    """

    operator = "CAST"
    fields = ("input_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
        )


class ValueScale2D(OperatorDesc):
    """Scales the whole tensor and adds one bias per channel.

        Output[n,c,h,w] = Scale * Input[n,c,h,w] + Bias[c]

    DML_VALUE_SCALE_2D_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 4 dimensions. {BatchCount, ChannelCount, Height, Width}.
        output_tensor: output, FLOAT32, FLOAT16; 4 dimensions. Same sizes as InputTensor.

    Attributes:
        scale: float. Multiplier of every value.
        bias: Sequence[float]. Array, one per channel.
    """

    operator = "VALUE_SCALE_2D"
    fields = ("input_tensor", "output_tensor", "scale", "bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale: float
    bias: tuple[float, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale: float,
        bias: Sequence[float],
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            scale,
            as_tuple(bias),
        )


class ElementWiseSign(OperatorDesc):
    """Sign of each element: -1, 0 or 1.

        f(x) = -1 if x < 0; 1 if x > 0; 0 otherwise (including -0)

    DML_ELEMENT_WISE_SIGN_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Data.
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Same sizes.
    """

    operator = "ELEMENT_WISE_SIGN"
    fields = ("input_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
        )


class ElementWiseIsNan(OperatorDesc):
    """Writes 1 where the input element is an IEEE-754 NaN, 0 elsewhere.

        f(x) = isnan(x) ? 1 : 0

    DML_ELEMENT_WISE_IS_NAN_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        output_tensor: output, UINT32, UINT8; 1 to 8 dimensions (4 below 3_0). Same sizes.
    """

    operator = "ELEMENT_WISE_IS_NAN"
    fields = ("input_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
        )


class ElementWiseNegate(OperatorDesc):
    """Changes the sign of each element.

        f(x) = -x

    DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8; 1 to 8 dimensions. Data.
        output_tensor: output, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8; 1 to 8 dimensions. Same sizes.
    """

    operator = "ELEMENT_WISE_NEGATE"
    fields = ("input_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
        )


class ElementWiseErf(OperatorDesc):
    """Gaussian error function of each element.

        f(x) = 2 / sqrt(pi) * integral from 0 to x of exp(-(i^2)) di; input first mapped by ScaleBias

    DML_ELEMENT_WISE_ERF_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same sizes.

    Attributes:
        scale_bias: ScaleBias, optional. DML_SCALE_BIAS; g(x) = x * scale + bias applied to each input element
            before the function; absent: identity.
    """

    operator = "ELEMENT_WISE_ERF"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseSinh(OperatorDesc):
    """Hyperbolic sine of each element.

        f(x) = sinh(x); input first mapped by ScaleBias

    DML_ELEMENT_WISE_SINH_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same sizes.

    Attributes:
        scale_bias: ScaleBias, optional. DML_SCALE_BIAS; g(x) = x * scale + bias applied to each input element
            before the function; absent: identity.
    """

    operator = "ELEMENT_WISE_SINH"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseCosh(OperatorDesc):
    """Hyperbolic cosine of each element.

        f(x) = cosh(x); input first mapped by ScaleBias

    DML_ELEMENT_WISE_COSH_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same sizes.

    Attributes:
        scale_bias: ScaleBias, optional. DML_SCALE_BIAS; g(x) = x * scale + bias applied to each input element
            before the function; absent: identity.
    """

    operator = "ELEMENT_WISE_COSH"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseTanh(OperatorDesc):
    """Hyperbolic tangent of each element.

        f(x) = tanh(x); with ScaleBias: tanh(x * scale + bias)

    DML_ELEMENT_WISE_TANH_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same sizes.

    Attributes:
        scale_bias: ScaleBias, optional. DML_SCALE_BIAS; g(x) = x * scale + bias applied to each input element
            before the function; absent: identity.
    """

    operator = "ELEMENT_WISE_TANH"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseAsinh(OperatorDesc):
    """Inverse hyperbolic sine of each element.

        f(x) = asinh(x) = ln(x + sqrt(x*x + 1)); input first mapped by ScaleBias

    DML_ELEMENT_WISE_ASINH_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same sizes.

    Attributes:
        scale_bias: ScaleBias, optional. DML_SCALE_BIAS; g(x) = x * scale + bias applied to each input element
            before the function; absent: identity.
    """

    operator = "ELEMENT_WISE_ASINH"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseAcosh(OperatorDesc):
    """Inverse hyperbolic cosine of each element.

        f(x) = acosh(x) = ln(x + sqrt(x*x - 1)); with ScaleBias: acosh(x * scale + bias)

    DML_ELEMENT_WISE_ACOSH_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same sizes.

    Attributes:
        scale_bias: ScaleBias, optional. DML_SCALE_BIAS; g(x) = x * scale + bias applied to each input element
            before the function; absent: identity.
    """

    operator = "ELEMENT_WISE_ACOSH"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseAtanh(OperatorDesc):
    """Inverse hyperbolic tangent of each element.

        f(x) = atanh(x) = ln((1 + x) / (1 - x)) / 2; input first mapped by ScaleBias

    DML_ELEMENT_WISE_ATANH_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same sizes.

    Attributes:
        scale_bias: ScaleBias, optional. DML_SCALE_BIAS; g(x) = x * scale + bias applied to each input element
            before the function; absent: identity.
    """

    operator = "ELEMENT_WISE_ATANH"
    fields = ("input_tensor", "output_tensor", "scale_bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_bias: ScaleBias | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_bias: ScaleBias | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_bias),
        )


class ElementWiseIf(OperatorDesc):
    """Picks each output element from A where the condition is non-zero, from B where it is zero.

        f(cond, a, b) = cond != 0 ? a : b

    DML_ELEMENT_WISE_IF_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. Not in place.

    Tensors:
        condition_tensor: input, UINT8; 1 to 8 dimensions (4 below 3_0). UINT8 condition.
        a_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 3_0; FLOAT64, INT64,
            UINT64 from 5_0; 1 to 8 dimensions (4 below 3_0). Values for non-zero condition.
        b_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 3_0; FLOAT64, INT64,
            UINT64 from 5_0; 1 to 8 dimensions (4 below 3_0). Values for zero condition.
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 3_0; FLOAT64,
            INT64, UINT64 from 5_0; 1 to 8 dimensions (4 below 3_0). Result.
    """

    operator = "ELEMENT_WISE_IF"
    fields = ("condition_tensor", "a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    condition_tensor: TensorDesc | None
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        condition_tensor: TensorDesc | None = None,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            condition_tensor,
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseAdd1(OperatorDesc):
    """Element-wise sum with an optional fused activation.

        f(a, b) = FusedActivation(a + b)

    DML_ELEMENT_WISE_ADD1_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    ATensor or BTensor.

    Tensors:
        a_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0). Left operand.
        b_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0). Right operand.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0). Result.

    Attributes:
        fused_activation: OperatorDesc, optional. Activation operator desc applied to the sum; only when the
            output type is FLOAT16 or FLOAT32; absent: none.
    """

    operator = "ELEMENT_WISE_ADD1"
    fields = ("a_tensor", "b_tensor", "output_tensor", "fused_activation")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    fused_activation: OperatorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        fused_activation: OperatorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
            fused_activation,
        )


class ElementWiseBitShiftLeft(OperatorDesc):
    """Logical left shift of each A element by the number of bits in the matching B element.

        f(a, b) = a << b

    DML_ELEMENT_WISE_BIT_SHIFT_LEFT_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. OutputTensor may be the same
    memory as ATensor or BTensor.

    Tensors:
        a_tensor: input, UINT32, UINT16, UINT8; UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Values.
        b_tensor: input, UINT32, UINT16, UINT8; UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Bit counts.
        output_tensor: output, UINT32, UINT16, UINT8; UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0).
            Result.
    """

    operator = "ELEMENT_WISE_BIT_SHIFT_LEFT"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseBitShiftRight(OperatorDesc):
    """Logical right shift of each A element by the number of bits in the matching B element.

        f(a, b) = a >> b (logical, zero-filling)

    DML_ELEMENT_WISE_BIT_SHIFT_RIGHT_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. OutputTensor may be the same
    memory as ATensor or BTensor.

    Tensors:
        a_tensor: input, UINT32, UINT16, UINT8; UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Values.
        b_tensor: input, UINT32, UINT16, UINT8; UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Bit counts.
        output_tensor: output, UINT32, UINT16, UINT8; UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0).
            Result.
    """

    operator = "ELEMENT_WISE_BIT_SHIFT_RIGHT"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseRound(OperatorDesc):
    """Rounds each element to an integral value in the chosen mode.

        HALVES_TO_NEAREST_EVEN: nearest integer, ties to even; TOWARD_ZERO: trunc(x); TOWARD_INFINITY: nearest
            integer, ties away from zero (sign(x) * floor(|x| + 0.5))

    DML_ELEMENT_WISE_ROUND_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Same sizes.

    Attributes:
        rounding_mode: RoundingMode. DML_ROUNDING_MODE: HALVES_TO_NEAREST_EVEN, TOWARD_ZERO, TOWARD_INFINITY.
    """

    operator = "ELEMENT_WISE_ROUND"
    fields = ("input_tensor", "output_tensor", "rounding_mode")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    rounding_mode: RoundingMode

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        rounding_mode: RoundingMode | str = RoundingMode.HALVES_TO_NEAREST_EVEN,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_member(RoundingMode, rounding_mode),
        )


class ElementWiseIsInfinity(OperatorDesc):
    """Writes 1 where the element is an infinity of the chosen sign, 0 elsewhere.

        f(x) = isinf(x) && ((x > 0 && InfinityMode == POSITIVE) || (x < 0 && InfinityMode == NEGATIVE) ||
            InfinityMode == EITHER) ? 1 : 0

    DML_ELEMENT_WISE_IS_INFINITY_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_0). Data.
        output_tensor: output, UINT8; 1 to 8 dimensions (4 below 3_0). Same sizes, UINT8.

    Attributes:
        infinity_mode: IsInfinityMode. DML_IS_INFINITY_MODE: EITHER (-inf or inf), POSITIVE (inf only),
            NEGATIVE (-inf only).
    """

    operator = "ELEMENT_WISE_IS_INFINITY"
    fields = ("input_tensor", "output_tensor", "infinity_mode")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    infinity_mode: IsInfinityMode

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        infinity_mode: IsInfinityMode | str = IsInfinityMode.EITHER,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_member(IsInfinityMode, infinity_mode),
        )


class ElementWiseModulusTruncate(OperatorDesc):
    """C-style remainder of each pair of elements.

        f(a, b) = a - (b * trunc(a / b))

    DML_ELEMENT_WISE_MODULUS_TRUNCATE_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. OutputTensor may be the same
    memory as ATensor or BTensor.

    Tensors:
        a_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 6_0;
            1 to 8 dimensions (4 below 3_0). Dividend.
        b_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 6_0;
            1 to 8 dimensions (4 below 3_0). Divisor.
        output_tensor: output, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from
            6_0; 1 to 8 dimensions (4 below 3_0). Result.
    """

    operator = "ELEMENT_WISE_MODULUS_TRUNCATE"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseModulusFloor(OperatorDesc):
    """Python-style modulus of each pair of elements.

        f(a, b) = a - (b * floor(a / b))

    DML_ELEMENT_WISE_MODULUS_FLOOR_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. OutputTensor may be the same
    memory as ATensor or BTensor.

    Tensors:
        a_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 6_0;
            1 to 8 dimensions (4 below 3_0). Dividend.
        b_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from 6_0;
            1 to 8 dimensions (4 below 3_0). Divisor.
        output_tensor: output, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from
            6_0; 1 to 8 dimensions (4 below 3_0). Result.
    """

    operator = "ELEMENT_WISE_MODULUS_FLOOR"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseBitAnd(OperatorDesc):
    """Element-wise bitwise AND of two tensors on their raw bit patterns.

        Output = A & B, bit by bit

    DML_ELEMENT_WISE_BIT_AND_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. OutputTensor may be the same memory as
    ATensor or BTensor.

    Tensors:
        a_tensor: input, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64
            from 4_1; 1 to 8 dimensions. Left operand.
        b_tensor: input, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64
            from 4_1; 1 to 8 dimensions. Right operand, same sizes (no implicit broadcasting).
        output_tensor: output, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8,
            UINT64 from 4_1; 1 to 8 dimensions. Same sizes.
    """

    operator = "ELEMENT_WISE_BIT_AND"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseBitOr(OperatorDesc):
    """Element-wise bitwise OR of two tensors on their raw bit patterns.

        Output = A | B, bit by bit

    DML_ELEMENT_WISE_BIT_OR_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. OutputTensor may be the same memory as
    ATensor or BTensor.

    Tensors:
        a_tensor: input, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64
            from 4_1; 1 to 8 dimensions. Left operand.
        b_tensor: input, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64
            from 4_1; 1 to 8 dimensions. Right operand, same sizes (no implicit broadcasting).
        output_tensor: output, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8,
            UINT64 from 4_1; 1 to 8 dimensions. Same sizes.
    """

    operator = "ELEMENT_WISE_BIT_OR"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseBitXor(OperatorDesc):
    """Element-wise bitwise XOR of two tensors on their raw bit patterns.

        Output = A ^ B, bit by bit

    DML_ELEMENT_WISE_BIT_XOR_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. OutputTensor may be the same memory as
    ATensor or BTensor.

    Tensors:
        a_tensor: input, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64
            from 4_1; 1 to 8 dimensions. Left operand.
        b_tensor: input, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64
            from 4_1; 1 to 8 dimensions. Right operand, same sizes (no implicit broadcasting).
        output_tensor: output, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8,
            UINT64 from 4_1; 1 to 8 dimensions. Same sizes.
    """

    operator = "ELEMENT_WISE_BIT_XOR"
    fields = ("a_tensor", "b_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            output_tensor,
        )


class ElementWiseBitNot(OperatorDesc):
    """Element-wise bitwise complement on the raw bit pattern.

        Output = ~Input

    DML_ELEMENT_WISE_BIT_NOT_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8,
            UINT64 from 4_1; 1 to 8 dimensions. Any sizes.
        output_tensor: output, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8,
            UINT64 from 4_1; 1 to 8 dimensions. Same sizes.
    """

    operator = "ELEMENT_WISE_BIT_NOT"
    fields = ("input_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
        )


class ElementWiseBitCount(OperatorDesc):
    """Counts the bits set to 1 in the raw pattern of each element.

        Output = popcount(bits of Input)

    DML_ELEMENT_WISE_BIT_COUNT_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Tensors:
        input_tensor: input, UINT32, UINT16, UINT8; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8,
            UINT64 from 4_1; 1 to 8 dimensions. Any sizes.
        output_tensor: output, UINT32, UINT8; 1 to 8 dimensions. Same sizes, UINT32 or UINT8 independent of
            the input type.
    """

    operator = "ELEMENT_WISE_BIT_COUNT"
    fields = ("input_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
        )
