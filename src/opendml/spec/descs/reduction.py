"""Descriptions of DirectML's reduction operators.

Generated from opendml/spec/data by `python -m tools.generate`: change the data instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from opendml.spec.enums import AxisDirection, ReduceFunction
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.plain import as_member, as_tuple
from opendml.spec.tensor_desc import TensorDesc


class Reduce(OperatorDesc):
    """Reduces one or more dimensions of the input with a chosen reduction function.

        out[kept indices] = Function over the N = product(sizes of Axes) input elements sharing the kept
            indices; for all axes listed, one output element

    DML_REDUCE_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Any sizes.
        output_tensor: output, UINT32, FLOAT32, FLOAT16; INT32 from 2_1; INT64, UINT64, INT16, INT8, UINT16,
            UINT8 from 3_0; 1 to 8 dimensions (4 below 3_0). DimensionCount as the input; Sizes as the input
            except 1 on each reduced axis.

    Attributes:
        function: ReduceFunction. DML_REDUCE_FUNCTION: ARGMAX, ARGMIN, AVERAGE, L1, L2, LOG_SUM, LOG_SUM_EXP,
            MAX, MIN, MULTIPLY, SUM, SUM_SQUARE; ARGMAX/ARGMIN deprecated from 3_0 in favour of the operators
            ARGMAX/ARGMIN.
        axes: Sequence[int]. Axes to reduce; each in [0, InputTensor.DimensionCount - 1].
    """

    operator = "REDUCE"
    fields = ("function", "input_tensor", "output_tensor", "axes")
    __slots__ = fields
    function: ReduceFunction
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    axes: tuple[int, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        function: ReduceFunction | str,
        axes: Sequence[int],
    ) -> None:
        self._fill(
            as_member(ReduceFunction, function),
            input_tensor,
            output_tensor,
            as_tuple(axes),
        )


class Argmin(OperatorDesc):
    """Index of the minimum element within the reduced axes.

        out[kept indices] = index, counted over the reduced axes only in row-major order, of the minimum
            element; ties decided by AxisDirection

    DML_ARGMIN_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from
            4_1; 1 to 8 dimensions. Any sizes.
        output_tensor: output, INT64, INT32, UINT64, UINT32; 1 to 8 dimensions. DimensionCount as the input;
            Sizes as the input except 1 on each reduced axis; integer indices.

    Attributes:
        axes: Sequence[int]. Axes to reduce; each in [0, InputTensor.DimensionCount - 1].
        axis_direction: AxisDirection. DML_AXIS_DIRECTION_INCREASING: first such element (argmin({1,2,3,2,1})
            = 0); DML_AXIS_DIRECTION_DECREASING: last such element (argmin({1,2,3,2,1}) = 4).
    """

    operator = "ARGMIN"
    fields = ("input_tensor", "output_tensor", "axes", "axis_direction")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    axes: tuple[int, ...]
    axis_direction: AxisDirection

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        axes: Sequence[int],
        axis_direction: AxisDirection | str = AxisDirection.INCREASING,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(axes),
            as_member(AxisDirection, axis_direction),
        )


class Argmax(OperatorDesc):
    """Index of the maximum element within the reduced axes.

        out[kept indices] = index, counted over the reduced axes only in row-major order, of the maximum
            element; ties decided by AxisDirection

    DML_ARGMAX_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from
            4_1; 1 to 8 dimensions. Any sizes.
        output_tensor: output, INT64, INT32, UINT64, UINT32; 1 to 8 dimensions. DimensionCount as the input;
            Sizes as the input except 1 on each reduced axis; integer indices.

    Attributes:
        axes: Sequence[int]. Axes to reduce; each in [0, InputTensor.DimensionCount - 1].
        axis_direction: AxisDirection. DML_AXIS_DIRECTION_INCREASING: first such element (argmax({3,2,1,2,3})
            = 0); DML_AXIS_DIRECTION_DECREASING: last such element (argmax({3,2,1,2,3}) = 4).
    """

    operator = "ARGMAX"
    fields = ("input_tensor", "output_tensor", "axes", "axis_direction")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    axes: tuple[int, ...]
    axis_direction: AxisDirection

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        axes: Sequence[int],
        axis_direction: AxisDirection | str = AxisDirection.INCREASING,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(axes),
            as_member(AxisDirection, axis_direction),
        )


class TopK(OperatorDesc):
    """The K largest elements along an axis, in descending order, with their positions.

        along Axis: OutputValue = K largest elements sorted descending; OutputIndex = their indices within the
            sequence

    DML_TOP_K_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64,
            UINT64 from 5_0; 1 to 8 dimensions (4 below 3_1). Source.
        output_value_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1;
            INT64, UINT64 from 5_0; 1 to 8 dimensions (4 below 3_1). Input Sizes with Axis set to K.
        output_index_tensor: output, UINT32; UINT64 from 5_0; 1 to 8 dimensions (4 below 3_1). Input Sizes
            with Axis set to K.

    Attributes:
        axis: int. Dimension; < InputTensor.DimensionCount.
        k: int. Number of elements; > 0 and at most InputTensor.Sizes[Axis].
    """

    operator = "TOP_K"
    fields = ("input_tensor", "output_value_tensor", "output_index_tensor", "axis", "k")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_value_tensor: TensorDesc | None
    output_index_tensor: TensorDesc | None
    axis: int
    k: int

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_value_tensor: TensorDesc | None = None,
        output_index_tensor: TensorDesc | None = None,
        *,
        axis: int,
        k: int,
    ) -> None:
        self._fill(
            input_tensor,
            output_value_tensor,
            output_index_tensor,
            axis,
            k,
        )


class CumulativeSummation(OperatorDesc):
    """Running sum along an axis, inclusive or exclusive, in either direction.

        tally = 0; for i along Axis in the chosen direction: if HasExclusiveSum: Output[i] = tally; tally +=
            Input[i]; else: tally += Input[i]; Output[i] = tally

    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT32, UINT32; INT64, UINT64 from 5_0; 1 to 8 dimensions (4
            below 4_0). Data.
        output_tensor: output, FLOAT32, FLOAT16, INT32, UINT32; INT64, UINT64 from 5_0; 1 to 8 dimensions (4
            below 4_0). Same sizes and data type.

    Attributes:
        axis: int. Dimension summed over; less than InputTensor.DimensionCount.
        axis_direction: AxisDirection. DML_AXIS_DIRECTION: INCREASING (ascending index), DECREASING
            (descending index).
        has_exclusive_sum: bool. TRUE leaves the current element out of its own output (first output 0, grand
            total never written).
    """

    operator = "CUMULATIVE_SUMMATION"
    fields = ("input_tensor", "output_tensor", "axis", "axis_direction", "has_exclusive_sum")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    axis: int
    axis_direction: AxisDirection
    has_exclusive_sum: bool

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        axis: int,
        axis_direction: AxisDirection | str = AxisDirection.INCREASING,
        has_exclusive_sum: bool = False,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            axis,
            as_member(AxisDirection, axis_direction),
            has_exclusive_sum,
        )


class CumulativeProduct(OperatorDesc):
    """Running product along an axis, inclusive or exclusive, in either direction.

        tally = 1; for i along Axis in the chosen direction: if HasExclusiveProduct: Output[i] = tally; tally
            *= Input[i]; else: tally *= Input[i]; Output[i] = tally

    DML_CUMULATIVE_PRODUCT_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_1. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT32, UINT32; INT64, UINT64 from 5_0; 1 to 8 dimensions (4
            below 4_0). Data.
        output_tensor: output, FLOAT32, FLOAT16, INT32, UINT32; INT64, UINT64 from 5_0; 1 to 8 dimensions (4
            below 4_0). Same sizes and data type.

    Attributes:
        axis: int. Dimension multiplied over; less than InputTensor.DimensionCount.
        axis_direction: AxisDirection. DML_AXIS_DIRECTION: INCREASING (ascending index), DECREASING
            (descending index).
        has_exclusive_product: bool. TRUE leaves the current element out of its own output (first output 1,
            grand total never written).
    """

    operator = "CUMULATIVE_PRODUCT"
    fields = ("input_tensor", "output_tensor", "axis", "axis_direction", "has_exclusive_product")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    axis: int
    axis_direction: AxisDirection
    has_exclusive_product: bool

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        axis: int,
        axis_direction: AxisDirection | str = AxisDirection.INCREASING,
        has_exclusive_product: bool = False,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            axis,
            as_member(AxisDirection, axis_direction),
            has_exclusive_product,
        )


class TopK1(OperatorDesc):
    """For each line of the input along Axis, returns the K largest or K smallest elements in sorted order
    together with their positions in the line.

        for each sequence s along Axis: order = stable sort of s (descending for DECREASING, ascending for
            INCREASING; ties by ascending index); OutputValue = first K values, OutputIndex = first K indices

    DML_TOP_K1_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from
            5_0; 1 to 8 dimensions (4 below 3_1). Any sizes.
        output_value_tensor: output, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64,
            UINT64 from 5_0; 1 to 8 dimensions (4 below 3_1). InputTensor.Sizes with Sizes[Axis] = K.
        output_index_tensor: output, UINT32; UINT64 from 5_0; 1 to 8 dimensions (4 below 3_1).
            InputTensor.Sizes with Sizes[Axis] = K; indices count from the start of each sequence, not of the
            tensor.

    Attributes:
        axis: int. Axis of the sequences; Axis < InputTensor.DimensionCount.
        k: int. Number of elements kept; > 0 and at most InputTensor.Sizes[Axis].
        axis_direction: AxisDirection. DML_AXIS_DIRECTION_INCREASING: K smallest, ascending;
            DML_AXIS_DIRECTION_DECREASING: K largest, descending (then identical to TOP_K).
    """

    operator = "TOP_K1"
    fields = ("input_tensor", "output_value_tensor", "output_index_tensor", "axis", "k", "axis_direction")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_value_tensor: TensorDesc | None
    output_index_tensor: TensorDesc | None
    axis: int
    k: int
    axis_direction: AxisDirection

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_value_tensor: TensorDesc | None = None,
        output_index_tensor: TensorDesc | None = None,
        *,
        axis: int,
        k: int,
        axis_direction: AxisDirection | str = AxisDirection.DECREASING,
    ) -> None:
        self._fill(
            input_tensor,
            output_value_tensor,
            output_index_tensor,
            axis,
            k,
            as_member(AxisDirection, axis_direction),
        )
