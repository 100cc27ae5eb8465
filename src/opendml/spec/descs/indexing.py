"""Descriptions of DirectML's indexing operators.

Generated from opendml/spec/data by `python -m tools.generate`: change the data instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from opendml.spec.enums import DepthSpaceOrder, PaddingMode, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.plain import DataTypeLike, as_member, as_tuple
from opendml.spec.tensor_desc import TensorDesc


class Slice(OperatorDesc):
    """Copies one strided sub-box of the input.

        OutputTensor[c] = InputTensor[Offsets + Strides * c] for every output coordinate c

    DML_SLICE_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT32, INT16, UINT32, UINT16; INT8, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 4_1; 1 to 8 dimensions (4 to 5 below 3_0). Source.
        output_tensor: output, FLOAT32, FLOAT16, INT32, INT16, UINT32, UINT16; INT8, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 4_1; 1 to 8 dimensions (4 to 5 below 3_0). Sizes equal the attribute Sizes.

    Attributes:
        offsets: Sequence[int]. First element copied, per dimension.
        sizes: Sequence[int]. Number of elements copied, per dimension; must equal OutputTensor.Sizes.
        strides: Sequence[int]. Step per dimension (2 takes every second element).
    """

    operator = "SLICE"
    fields = ("input_tensor", "output_tensor", "offsets", "sizes", "strides")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        offsets: Sequence[int],
        sizes: Sequence[int],
        strides: Sequence[int],
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(offsets),
            as_tuple(sizes),
            as_tuple(strides),
        )


class Split(OperatorDesc):
    """Cuts the input along one axis into several output tensors.

        OutputTensors[k][.., j, ..] = InputTensor[.., sum(OutputTensors[0..k-1].Sizes[Axis]) + j, ..] along
            Axis

    DML_SPLIT_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT32, INT16, UINT32, UINT16; INT8, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Source.
        output_tensors: outputs, FLOAT32, FLOAT16, INT32, INT16, UINT32, UINT16; INT8, UINT8 from 2_1;
            FLOAT64, INT64, UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Same Sizes as the input except
            on Axis; the Axis sizes sum to exactly InputTensor.Sizes[Axis].

    Attributes:
        axis: int. Dimension to cut; in [0, InputTensor.DimensionCount - 1].
    """

    operator = "SPLIT"
    fields = ("input_tensor", "output_tensors", "axis")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensors: tuple[TensorDesc, ...]
    axis: int

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensors: Sequence[TensorDesc] = (),
        *,
        axis: int,
    ) -> None:
        self._fill(
            input_tensor,
            as_tuple(output_tensors),
            axis,
        )


class Join(OperatorDesc):
    """Concatenates tensors along one axis.

        OutputTensor[.., sum(InputTensors[0..k-1].Sizes[Axis]) + j, ..] = InputTensors[k][.., j, ..] along
            Axis

    DML_JOIN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensors: inputs, FLOAT32, FLOAT16, INT32, INT16, UINT32, UINT16; INT8, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 4_1; 1 to 8 dimensions (4 to 5 below 4_1, 4 below 3_0). Same Sizes except on
            Axis, where any non-zero size goes.
        output_tensor: output, FLOAT32, FLOAT16, INT32, INT16, UINT32, UINT16; INT8, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 4_1; 1 to 8 dimensions (4 to 5 below 4_1, 4 below 3_0). Sizes of the inputs
            except on Axis, which is the sum.

    Attributes:
        axis: int. Dimension to join; in [0, OutputTensor.DimensionCount - 1].
    """

    operator = "JOIN"
    fields = ("input_tensors", "output_tensor", "axis")
    __slots__ = fields
    input_tensors: tuple[TensorDesc, ...]
    output_tensor: TensorDesc | None
    axis: int

    def __init__(
        self,
        input_tensors: Sequence[TensorDesc] = (),
        output_tensor: TensorDesc | None = None,
        *,
        axis: int,
    ) -> None:
        self._fill(
            as_tuple(input_tensors),
            output_tensor,
            axis,
        )


class Padding(OperatorDesc):
    """Enlarges the input at its edges with constant, edge or mirrored values.

        out[c] = in[map(c - StartPadding)], map given per dimension by PaddingMode; PaddingValue outside the
            input for CONSTANT

    DML_PADDING_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 5_0; 1 to 8 dimensions (4 to 5 below 3_1). Source.
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 5_0; 1 to 8 dimensions (4 to 5 below 3_1). Sizes[i] = input Sizes[i] +
            StartPadding[i] + EndPadding[i].

    Attributes:
        padding_mode: PaddingMode. DML_PADDING_MODE_CONSTANT: PaddingValue everywhere; _EDGE: nearest edge
            value; _REFLECTION: mirror without repeating the edge, padding >= size allowed (mirrors
            periodically); _SYMMETRIC (from 3_0): mirror repeating the edge, padding > size allowed; _WRAP
            (from 6_4).
        padding_value: float. Used for CONSTANT only, ignored otherwise; may be truncated when the tensor type
            is neither FLOAT16 nor FLOAT32 (10.6 becomes 10).
        start_padding: Sequence[int]. Elements added before, per dimension.
        end_padding: Sequence[int]. Elements added after, per dimension.
    """

    operator = "PADDING"
    fields = (
        "input_tensor",
        "output_tensor",
        "padding_mode",
        "padding_value",
        "start_padding",
        "end_padding",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    padding_mode: PaddingMode
    padding_value: float
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        padding_mode: PaddingMode | str = PaddingMode.CONSTANT,
        padding_value: float = 0.0,
        start_padding: Sequence[int],
        end_padding: Sequence[int],
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_member(PaddingMode, padding_mode),
            padding_value,
            as_tuple(start_padding),
            as_tuple(end_padding),
        )


class Padding1(OperatorDesc):
    """Like PADDING but with a typed padding value.

        out[c] = in[map(c - StartPadding)], map given per dimension by PaddingMode; PaddingValue outside the
            input for CONSTANT

    DML_PADDING1_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16,
            UINT8; 1 to 8 dimensions. Source.
        output_tensor: output, FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16,
            UINT8; 1 to 8 dimensions. Sizes[i] = input Sizes[i] + StartPadding[i] + EndPadding[i].

    Attributes:
        padding_mode: PaddingMode. DML_PADDING_MODE_CONSTANT: PaddingValue everywhere; _EDGE: nearest edge
            value; _REFLECTION: mirror without repeating the edge, padding >= size allowed (mirrors
            periodically); _SYMMETRIC (from 3_0): mirror repeating the edge, padding > size allowed; _WRAP
            (from 6_4).
        padding_value_data_type: TensorDataType. Type of PaddingValue; must equal OutputTensor.DataType.
        padding_value: int | float. Read with PaddingValueDataType; CONSTANT only, ignored otherwise.
        start_padding: Sequence[int]. Elements added before, per dimension.
        end_padding: Sequence[int]. Elements added after, per dimension.
    """

    operator = "PADDING1"
    fields = (
        "input_tensor",
        "output_tensor",
        "padding_mode",
        "padding_value_data_type",
        "padding_value",
        "start_padding",
        "end_padding",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    padding_mode: PaddingMode
    padding_value_data_type: TensorDataType
    padding_value: int | float
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        padding_mode: PaddingMode | str,
        padding_value_data_type: DataTypeLike,
        padding_value: int | float = 0,
        start_padding: Sequence[int],
        end_padding: Sequence[int],
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_member(PaddingMode, padding_mode),
            as_member(TensorDataType, padding_value_data_type),
            padding_value,
            as_tuple(start_padding),
            as_tuple(end_padding),
        )


class Gather(OperatorDesc):
    """Picks slices of the input along one axis by index.

        output[lead.., idx.., trail..] = input[lead.., indices[idx..], trail..] with lead = dimensions before
            Axis, trail = after Axis; OutputTensor.Sizes = InputTensor.Sizes[0..Axis) ++ last IndexDimensions
            sizes of IndicesTensor ++ InputTensor.Sizes[Axis+1 ..], right-aligned (leading 1s cropped to fit
            DimensionCount)

    DML_GATHER_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Source.
        indices_tensor: input, UINT32; INT64, INT32, UINT64 from 3_0; 1 to 8 dimensions (4 below 3_0). Same
            DimensionCount as InputTensor (padded with leading 1s); signed types may hold negative indices
            from 3_0.
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Sizes as in formula; same DimensionCount
            and DataType as InputTensor.

    Attributes:
        axis: int. Input dimension gathered on; in [0, InputTensor.DimensionCount).
        index_dimensions: int. Number of meaningful trailing dimensions of IndicesTensor after dropping
            leading 1s; 0 to IndicesTensor.DimensionCount. Example: Sizes {1,1,4,6} with IndexDimensions 3
            uses {1,4,6}.
    """

    operator = "GATHER"
    fields = ("input_tensor", "indices_tensor", "output_tensor", "axis", "index_dimensions")
    __slots__ = fields
    input_tensor: TensorDesc | None
    indices_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    axis: int
    index_dimensions: int

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        indices_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        axis: int,
        index_dimensions: int,
    ) -> None:
        self._fill(
            input_tensor,
            indices_tensor,
            output_tensor,
            axis,
            index_dimensions,
        )


class SpaceToDepth(OperatorDesc):
    """Moves spatial blocks into the channel dimension.

        out[n, (by * BlockSize + bx) * C + c, y, x] = in[n, c, y * BlockSize + by, x * BlockSize + bx], C =
            input channels

    DML_SPACE_TO_DEPTH_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 5_0; 4 dimensions. {Batch, Channels, Height, Width}.
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 5_0; 4 dimensions. {Batch, Channels * BlockSize * BlockSize, Height /
            BlockSize, Width / BlockSize}.

    Attributes:
        block_size: int. Side (width and height) of the blocks.
    """

    operator = "SPACE_TO_DEPTH"
    fields = ("input_tensor", "output_tensor", "block_size")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    block_size: int

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        block_size: int,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            block_size,
        )


class DepthToSpace(OperatorDesc):
    """Moves channel data into spatial blocks.

        out[n, c, y * BlockSize + by, x * BlockSize + bx] = in[n, (by * BlockSize + bx) * OutputChannelCount +
            c, y, x]

    DML_DEPTH_TO_SPACE_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 5_0; 4 dimensions. {BatchCount, InputChannelCount, InputHeight, InputWidth}.
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 5_0; 4 dimensions. {BatchCount, InputChannelCount / (BlockSize * BlockSize),
            InputHeight * BlockSize, InputWidth * BlockSize}.

    Attributes:
        block_size: int. Side (width and height) of the blocks.
    """

    operator = "DEPTH_TO_SPACE"
    fields = ("input_tensor", "output_tensor", "block_size")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    block_size: int

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        block_size: int,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            block_size,
        )


class Tile(OperatorDesc):
    """Repeats the input a given number of times along each dimension.

        Output[c] = Input[c mod InputTensor.Sizes] (per dimension)

    DML_TILE_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 below 3_1). Source.
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 below 3_1). Sizes[i] = InputTensor.Sizes[i] * Repeats[i];
            same DimensionCount as input.

    Attributes:
        repeats: Sequence[int]. Copies per dimension, each > 0.
    """

    operator = "TILE"
    fields = ("input_tensor", "output_tensor", "repeats")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    repeats: tuple[int, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        repeats: Sequence[int],
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(repeats),
        )


class DiagonalMatrix(OperatorDesc):
    """Generates matrices with a constant on one (shifted) diagonal and zeros elsewhere.

        for each coordinate: Output[.., y, x] = (y + Offset == x) ? Value : 0

    DML_DIAGONAL_MATRIX_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. Not in place.

    Tensors:
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 5_1; 2 to 4 dimensions (4 below 4_0). {Batch1, Batch2, OutputHeight,
            OutputWidth}; need not be square; dimensions before the last two are batch.

    Attributes:
        offset: int. Shift of the diagonal; > 0 right/up, < 0 left/down; may move it out of the matrix (all
            zeros).
        value: float. Diagonal value; standard 1.0; truncated for non-float output types (10.6 becomes 10).
    """

    operator = "DIAGONAL_MATRIX"
    fields = ("output_tensor", "offset", "value")
    __slots__ = fields
    output_tensor: TensorDesc | None
    offset: int
    value: float

    def __init__(
        self,
        output_tensor: TensorDesc | None = None,
        *,
        offset: int = 0,
        value: float = 1.0,
    ) -> None:
        self._fill(
            output_tensor,
            offset,
            value,
        )


class Scatter(OperatorDesc):
    """Copies the input, then overwrites the elements named by an index tensor along one axis (alias
    SCATTER_ELEMENTS).

        output = input; for each coordinate c of updates: output[c with c[Axis] replaced by indices[c]] =
            updates[c]

    DML_SCATTER_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Data.
        indices_tensor: input, UINT32; INT64, INT32, UINT64 from 3_0; 1 to 8 dimensions (4 below 3_0). Sizes
            equal InputTensor's in every dimension except Axis.
        updates_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Same Sizes as IndicesTensor, DataType of
            InputTensor.
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Sizes and DataType of InputTensor.

    Attributes:
        axis: int. Dimension indexed, range [0, OutputTensor.DimensionCount).
    """

    operator = "SCATTER"
    fields = ("input_tensor", "indices_tensor", "updates_tensor", "output_tensor", "axis")
    __slots__ = fields
    input_tensor: TensorDesc | None
    indices_tensor: TensorDesc | None
    updates_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    axis: int

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        indices_tensor: TensorDesc | None = None,
        updates_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        axis: int,
    ) -> None:
        self._fill(
            input_tensor,
            indices_tensor,
            updates_tensor,
            output_tensor,
            axis,
        )


class OneHot(OperatorDesc):
    """Fills each line along an axis with OffValue except one element set to OnValue at the given index.

        for each output coordinate c: k = indices[c with c[Axis]=0]; if k < 0 (signed): k +=
            OutputTensor.Sizes[Axis]; Output[c] = (c[Axis] == k) ? OnValue : OffValue

    DML_ONE_HOT_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. Not in place.

    Tensors:
        indices_tensor: input, UINT32; INT64, INT32, UINT64 from 3_0; 1 to 8 dimensions (4 below 3_0). Sizes
            of OutputTensor except Axis, where the size is 1 (output {2,3,4,5}, Axis 1 -> {2,1,4,5}).
        values_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Any sizes with at least two elements;
            element 0 = OffValue, element 1 along the fastest-changing dimension of size > 1 = OnValue, the
            rest unused.
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 2_1; FLOAT64,
            INT64, UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Sizes of IndicesTensor except Axis, which
            may be any size > 0.

    Attributes:
        axis: int. Dimension of the sequences; must be less than IndicesTensor.DimensionCount.
    """

    operator = "ONE_HOT"
    fields = ("indices_tensor", "values_tensor", "output_tensor", "axis")
    __slots__ = fields
    indices_tensor: TensorDesc | None
    values_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    axis: int

    def __init__(
        self,
        indices_tensor: TensorDesc | None = None,
        values_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        axis: int,
    ) -> None:
        self._fill(
            indices_tensor,
            values_tensor,
            output_tensor,
            axis,
        )


class FillValueConstant(OperatorDesc):
    """Fills the output with one constant.

        for each coordinate: Output[coordinate] = Value

    DML_FILL_VALUE_CONSTANT_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Tensors:
        output_tensor: output, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 below 4_0). Any sizes.

    Attributes:
        value_data_type: TensorDataType. DML_TENSOR_DATA_TYPE of Value; must equal OutputTensor.DataType.
        value: int | float. Fill value, read as ValueDataType.
    """

    operator = "FILL_VALUE_CONSTANT"
    fields = ("output_tensor", "value_data_type", "value")
    __slots__ = fields
    output_tensor: TensorDesc | None
    value_data_type: TensorDataType
    value: int | float

    def __init__(
        self,
        output_tensor: TensorDesc | None = None,
        *,
        value_data_type: DataTypeLike,
        value: int | float,
    ) -> None:
        self._fill(
            output_tensor,
            as_member(TensorDataType, value_data_type),
            value,
        )


class FillValueSequence(OperatorDesc):
    """Fills the output with an arithmetic sequence in element order.

        v = ValueStart; for each coordinate (row-major): Output[coordinate] = v; v += ValueDelta

    DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Tensors:
        output_tensor: output, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; INT64, UINT64 from
            5_0; 1 to 8 dimensions (4 below 4_0). Any sizes.

    Attributes:
        value_data_type: TensorDataType. DML_TENSOR_DATA_TYPE of both values; must equal
            OutputTensor.DataType.
        value_start: int | float. First element.
        value_delta: int | float. Added after each element written.
    """

    operator = "FILL_VALUE_SEQUENCE"
    fields = ("output_tensor", "value_data_type", "value_start", "value_delta")
    __slots__ = fields
    output_tensor: TensorDesc | None
    value_data_type: TensorDataType
    value_start: int | float
    value_delta: int | float

    def __init__(
        self,
        output_tensor: TensorDesc | None = None,
        *,
        value_data_type: DataTypeLike,
        value_start: int | float,
        value_delta: int | float,
    ) -> None:
        self._fill(
            output_tensor,
            as_member(TensorDataType, value_data_type),
            value_start,
            value_delta,
        )


class ReverseSubsequences(OperatorDesc):
    """Reverses the first n elements of every line along an axis, n coming from a lengths tensor.

        for each coordinate c: n = min(lengths[c with c[Axis]=0], Sizes[Axis]); i = c[Axis]; Output[c] = i < n
            ? Input[c with c[Axis] = n-1-i] : Input[c]

    DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 5_0; 1 to 8 dimensions (4 to 5 below 4_0, 4 below 3_0). Data.
        sequence_lengths_tensor: input, UINT32; UINT64 from 5_0; 1 to 8 dimensions (4 to 5 below 4_0, 4 below
            3_0). Sizes of InputTensor except Axis, where the size is 1 (input {2,3,4,5}, Axis 1 ->
            {2,1,4,5}).
        output_tensor: output, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 5_0; 1 to 8 dimensions (4 to 5 below 4_0, 4 below 3_0). Sizes and data type of
            InputTensor.

    Attributes:
        axis: int. Dimension reversed over; less than InputTensor.DimensionCount.
    """

    operator = "REVERSE_SUBSEQUENCES"
    fields = ("input_tensor", "sequence_lengths_tensor", "output_tensor", "axis")
    __slots__ = fields
    input_tensor: TensorDesc | None
    sequence_lengths_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    axis: int

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        sequence_lengths_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        axis: int,
    ) -> None:
        self._fill(
            input_tensor,
            sequence_lengths_tensor,
            output_tensor,
            axis,
        )


class GatherElements(OperatorDesc):
    """Gathers single elements along one axis, an index tensor giving the position for each output element.

        output[c] = input[c with c[Axis] replaced by indices[c]]

    DML_GATHER_ELEMENTS_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Data.
        indices_tensor: input, UINT32; INT64, INT32, UINT64 from 3_0; 1 to 8 dimensions (4 below 3_0). Sizes
            equal InputTensor's in every dimension except Axis.
        output_tensor: output, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Sizes of IndicesTensor, DataType of InputTensor.

    Attributes:
        axis: int. Dimension of InputTensor gathered along, range [0, InputTensor.DimensionCount).
    """

    operator = "GATHER_ELEMENTS"
    fields = ("input_tensor", "indices_tensor", "output_tensor", "axis")
    __slots__ = fields
    input_tensor: TensorDesc | None
    indices_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    axis: int

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        indices_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        axis: int,
    ) -> None:
        self._fill(
            input_tensor,
            indices_tensor,
            output_tensor,
            axis,
        )


class GatherNd(OperatorDesc):
    """Gathers sub-blocks of the input addressed by index tuples stored in the last dimension of the indices.

        output[i..., j...] = input[indices[i..., 0], ..., indices[i..., indexTupleSize-1], j...]

    DML_GATHER_ND_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Data.
        indices_tensor: input, UINT32; INT64, INT32, UINT64 from 3_0; 1 to 8 dimensions (4 below 3_0). Same
            DimensionCount as InputTensor; last dimension = coordinates per tuple, must not exceed
            InputTensor.DimensionCount; {1,4,5,2} with IndicesDimensionCount 3 = a 4x5 array of 2-coordinate
            tuples.
        output_tensor: output, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). IndexTupleSize = Indices.Sizes[last];
            Output.Sizes = {1..., Indices.Sizes[IndicesDC - IndicesDimensionCount .. IndicesDC - 1),
            Input.Sizes[InputDC - InputDimensionCount + indexTupleSize .. InputDC)}, half-open ranges,
            right-aligned with leading 1s up to DimensionCount.

    Attributes:
        input_dimension_count: int. Number of meaningful trailing dimensions of InputTensor (leading ones
            ignored), range [1, InputTensor.DimensionCount]; {1,1,4,6} with 3 means {1,4,6}.
        indices_dimension_count: int. Likewise for IndicesTensor, range [1, IndicesTensor.DimensionCount].
    """

    operator = "GATHER_ND"
    fields = (
        "input_tensor",
        "indices_tensor",
        "output_tensor",
        "input_dimension_count",
        "indices_dimension_count",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    indices_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    input_dimension_count: int
    indices_dimension_count: int

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        indices_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        input_dimension_count: int,
        indices_dimension_count: int,
    ) -> None:
        self._fill(
            input_tensor,
            indices_tensor,
            output_tensor,
            input_dimension_count,
            indices_dimension_count,
        )


class ScatterNd(OperatorDesc):
    """Copies the input, then overwrites sub-blocks addressed by index tuples with blocks from the updates.

        output = input; output[indices[i..., 0], ..., indices[i..., indexTupleSize-1], j...] = updates[i...,
            j...]

    DML_SCATTER_ND_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Data.
        indices_tensor: input, UINT32; INT64, INT32, UINT64 from 3_0; 1 to 8 dimensions (4 below 3_0). Same
            DimensionCount as InputTensor; last dimension = coordinates per tuple, must not exceed
            InputTensor.DimensionCount; {1,4,5,2} with IndicesDimensionCount 3 = a 4x5 array of 2-coordinate
            tuples.
        updates_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Same DimensionCount; indexTupleSize =
            Indices.Sizes[last]; Updates.Sizes = {1..., Indices.Sizes[IndicesDC - IndicesDimensionCount ..
            IndicesDC - 1), Input.Sizes[InputDC - InputDimensionCount + indexTupleSize .. InputDC)}, half-open
            ranges, right-aligned with leading 1s up to DimensionCount.
        output_tensor: output, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 below 3_0). Sizes and DataType of InputTensor.

    Attributes:
        input_dimension_count: int. Number of meaningful trailing dimensions of InputTensor, in [1,
            InputTensor.DimensionCount].
        indices_dimension_count: int. Likewise for IndicesTensor, in [1, IndicesTensor.DimensionCount].
    """

    operator = "SCATTER_ND"
    fields = (
        "input_tensor",
        "indices_tensor",
        "updates_tensor",
        "output_tensor",
        "input_dimension_count",
        "indices_dimension_count",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    indices_tensor: TensorDesc | None
    updates_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    input_dimension_count: int
    indices_dimension_count: int

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        indices_tensor: TensorDesc | None = None,
        updates_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        input_dimension_count: int,
        indices_dimension_count: int,
    ) -> None:
        self._fill(
            input_tensor,
            indices_tensor,
            updates_tensor,
            output_tensor,
            input_dimension_count,
            indices_dimension_count,
        )


class Slice1(OperatorDesc):
    """Copies a strided sub-window of the input into the output; strides may be negative, which walks an axis
    backwards from the end of the window.

        start[i] = InputWindowOffsets[i] + (InputWindowStrides[i] < 0 ? InputWindowSizes[i] - 1 : 0);
            Output[c] = Input[start[i] + InputWindowStrides[i] * c[i] for every axis i]

    DML_SLICE1_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 to 5 below 3_0). Any sizes.
        output_tensor: output, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions (4 to 5 below 3_0). 1 <= Sizes[i] <= MaxCopied[i], MaxCopied[i]
            = 1 + (InputWindowSizes[i] - 1) / |InputWindowStrides[i]| (integer division); need not use every
            reachable element.

    Attributes:
        input_window_offsets: Sequence[int]. Per axis, first element of the window; InputWindowOffsets[i] +
            InputWindowSizes[i] <= InputTensor.Sizes[i].
        input_window_sizes: Sequence[int]. Per axis, extent of the window, at least 1 (window may not be empty
            on any axis); last window element is offset + size - 1.
        input_window_strides: Sequence[int]. Per axis, non-zero; |stride| = step between copied elements, sign
            = walk from the start (+) or from the end (-) of the window.
    """

    operator = "SLICE1"
    fields = (
        "input_tensor",
        "output_tensor",
        "input_window_offsets",
        "input_window_sizes",
        "input_window_strides",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    input_window_offsets: tuple[int, ...]
    input_window_sizes: tuple[int, ...]
    input_window_strides: tuple[int, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        input_window_offsets: Sequence[int],
        input_window_sizes: Sequence[int],
        input_window_strides: Sequence[int],
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(input_window_offsets),
            as_tuple(input_window_sizes),
            as_tuple(input_window_strides),
        )


class DepthToSpace1(OperatorDesc):
    """Moves channel data into BlockSize x BlockSize spatial blocks; inverse of SPACE_TO_DEPTH1.

        B = BlockSize, OC = InputChannelCount / (B*B). Output[n, c, h*B + by, w*B + bx] = Input[n, ch, h, w]
            with ch = (by*B + bx)*OC + c for DEPTH_COLUMN_ROW, ch = c*B*B + by*B + bx for COLUMN_ROW_DEPTH

    DML_DEPTH_TO_SPACE1_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 5_0; 4 dimensions. { BatchCount, InputChannelCount, InputHeight, InputWidth }.
        output_tensor: output, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 5_0; 4 dimensions. { BatchCount, InputChannelCount / (BlockSize*BlockSize),
            InputHeight * BlockSize, InputWidth * BlockSize }.

    Attributes:
        block_size: int. Height and width of a block, > 0; B*B must divide the input channel count.
        order: DepthSpaceOrder. DML_DEPTH_SPACE_ORDER_DEPTH_COLUMN_ROW (then identical to DEPTH_TO_SPACE) or
            DML_DEPTH_SPACE_ORDER_COLUMN_ROW_DEPTH.
    """

    operator = "DEPTH_TO_SPACE1"
    fields = ("input_tensor", "output_tensor", "block_size", "order")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    block_size: int
    order: DepthSpaceOrder

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        block_size: int,
        order: DepthSpaceOrder | str = DepthSpaceOrder.DEPTH_COLUMN_ROW,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            block_size,
            as_member(DepthSpaceOrder, order),
        )


class SpaceToDepth1(OperatorDesc):
    """Moves BlockSize x BlockSize spatial blocks into the channel dimension; inverse of DEPTH_TO_SPACE1.

        B = BlockSize, IC = InputChannelCount. Output[n, ch, h, w] = Input[n, c, h*B + by, w*B + bx] with ch =
            (by*B + bx)*IC + c for DEPTH_COLUMN_ROW, ch = c*B*B + by*B + bx for COLUMN_ROW_DEPTH

    DML_SPACE_TO_DEPTH1_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 5_0; 4 dimensions. { Batch, Channels, Height, Width }.
        output_tensor: output, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 5_0; 4 dimensions. { Batch, Channels * BlockSize*BlockSize, Height / BlockSize, Width
            / BlockSize }.

    Attributes:
        block_size: int. Height and width of a block, > 0; must divide input height and width.
        order: DepthSpaceOrder. DML_DEPTH_SPACE_ORDER_DEPTH_COLUMN_ROW (then identical to SPACE_TO_DEPTH) or
            DML_DEPTH_SPACE_ORDER_COLUMN_ROW_DEPTH.
    """

    operator = "SPACE_TO_DEPTH1"
    fields = ("input_tensor", "output_tensor", "block_size", "order")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    block_size: int
    order: DepthSpaceOrder

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        block_size: int,
        order: DepthSpaceOrder | str = DepthSpaceOrder.DEPTH_COLUMN_ROW,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            block_size,
            as_member(DepthSpaceOrder, order),
        )


class NonzeroCoordinates(OperatorDesc):
    """Lists the N-dimensional coordinates of all non-zero input elements and their count.

        rows = [coord(e) for e in elements in ascending logical index if Input[e] != 0]; OutputCount =
            len(rows); OutputCoordinates[0:OutputCount] = last N components of each coordinate

    DML_NONZERO_COORDINATES_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; 1 to 8 dimensions (4
            to 5 below 4_0). Any sizes.
        output_count_tensor: output, UINT32; 1 to 8 dimensions (4 to 5 below 4_0). Scalar (all sizes 1),
            UINT32.
        output_coordinates_tensor: output, UINT32; 2 to 8 dimensions (4 to 5 below 4_0). { 1.., M, N }: M =
            total number of input elements (worst case), effective rank of InputTensor <= N <=
            InputTensor.DimensionCount.
    """

    operator = "NONZERO_COORDINATES"
    fields = ("input_tensor", "output_count_tensor", "output_coordinates_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_count_tensor: TensorDesc | None
    output_coordinates_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_count_tensor: TensorDesc | None = None,
        output_coordinates_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_count_tensor,
            output_coordinates_tensor,
        )


class SliceGrad(OperatorDesc):
    """Backpropagates a gradient through SLICE1: writes the incoming values at the sliced positions, zero
    elsewhere.

        OutputGradient = 0; start[i] = InputWindowOffsets[i] + (InputWindowStrides[i] < 0 ?
            InputWindowSizes[i] - 1 : 0); OutputGradient[start + InputWindowStrides * c] = InputGradient[c]

    DML_SLICE_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Tensors:
        input_gradient_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64,
            INT64, UINT64 from 4_1; 1 to 8 dimensions (4 to 5 below 3_1). Typically the sizes of the SLICE1
            output.
        output_gradient_tensor: output, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64,
            INT64, UINT64 from 4_1; 1 to 8 dimensions (4 to 5 below 3_1). Typically the sizes of the SLICE1
            input.

    Attributes:
        input_window_offsets: Sequence[int]. As SLICE1.
        input_window_sizes: Sequence[int]. As SLICE1.
        input_window_strides: Sequence[int]. As SLICE1; must be non-zero; negative flips the axis.
    """

    operator = "SLICE_GRAD"
    fields = (
        "input_gradient_tensor",
        "output_gradient_tensor",
        "input_window_offsets",
        "input_window_sizes",
        "input_window_strides",
    )
    __slots__ = fields
    input_gradient_tensor: TensorDesc | None
    output_gradient_tensor: TensorDesc | None
    input_window_offsets: tuple[int, ...]
    input_window_sizes: tuple[int, ...]
    input_window_strides: tuple[int, ...]

    def __init__(
        self,
        input_gradient_tensor: TensorDesc | None = None,
        output_gradient_tensor: TensorDesc | None = None,
        *,
        input_window_offsets: Sequence[int],
        input_window_sizes: Sequence[int],
        input_window_strides: Sequence[int],
    ) -> None:
        self._fill(
            input_gradient_tensor,
            output_gradient_tensor,
            as_tuple(input_window_offsets),
            as_tuple(input_window_sizes),
            as_tuple(input_window_strides),
        )


class GatherNd1(OperatorDesc):
    """Gathers sub-blocks of the input addressed by index tuples, with optional leading batch dimensions
    shared by all tensors.

        Output[batch..., i..., j...] = Input[batch..., Indices[batch..., i..., 0 .. indexTupleSize-1], j...],
            indexTupleSize = IndicesTensor.Sizes[last]

    DML_GATHER_ND1_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions. Data, right-aligned with leading 1s.
        indices_tensor: input, INT64, INT32, UINT64, UINT32; 1 to 8 dimensions. Last dimension = coordinates
            per tuple (indexTupleSize <= InputTensor.DimensionCount); e.g. {1,4,5,2} with
            IndicesDimensionCount 3 = 4x5 array of 2-coordinate tuples.
        output_tensor: output, FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8; FLOAT64, INT64,
            UINT64 from 4_1; 1 to 8 dimensions. right-aligned, leading 1s: meaningful indices sizes without
            the last one, followed by the input sizes after the batch and tuple dimensions.

    Attributes:
        input_dimension_count: int. Number of meaningful (rightmost) dimensions of InputTensor,
            1..InputTensor.DimensionCount; {1,1,4,6} with 3 means {1,4,6}.
        indices_dimension_count: int. Number of meaningful (rightmost) dimensions of IndicesTensor,
            1..IndicesTensor.DimensionCount.
        batch_dimension_count: int. Leading meaningful dimensions treated as independent batches; in [0,
            InputTensor.DimensionCount) and [0, IndicesTensor.DimensionCount); 0 = GATHER_ND. Example: indices
            {1,3,4,5,6,7}, IndicesDimensionCount 5, BatchDimensionCount 2 -> batches {3,4}, meaningful indices
            {5,6,7}.
    """

    operator = "GATHER_ND1"
    fields = (
        "input_tensor",
        "indices_tensor",
        "output_tensor",
        "input_dimension_count",
        "indices_dimension_count",
        "batch_dimension_count",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    indices_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    input_dimension_count: int
    indices_dimension_count: int
    batch_dimension_count: int

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        indices_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        input_dimension_count: int,
        indices_dimension_count: int,
        batch_dimension_count: int,
    ) -> None:
        self._fill(
            input_tensor,
            indices_tensor,
            output_tensor,
            input_dimension_count,
            indices_dimension_count,
            batch_dimension_count,
        )


class DiagonalMatrix1(OperatorDesc):
    """Writes Value on a band of diagonals (or outside of it when the limits are inverted) of each 2D matrix
    and keeps the input, or zero, elsewhere.

        topX = x - y; useValue = (DiagonalFillEnd >= DiagonalFillBegin) XOR (topX >= DiagonalFillBegin) XOR
            (topX < DiagonalFillEnd); Output[.., y, x] = useValue ? Value : (InputTensor present ? Input[..,
            y, x] : 0)

    DML_DIAGONAL_MATRIX1_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_1. Not in place.

    Tensors:
        input_tensor: input, optional; FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32,
            UINT16, UINT8; 2 to 4 dimensions. Same sizes as OutputTensor (implied).
        output_tensor: output, FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16,
            UINT8; 2 to 4 dimensions. { Batch1, Batch2, OutputHeight, OutputWidth }, need not be square;
            dimensions before the last two are batches.

    Attributes:
        value_data_type: TensorDataType. Type of Value; must equal OutputTensor.DataType.
        value: int | float. Constant written.
        diagonal_fill_begin: int. First diagonal filled (inclusive); > 0 is right of the main diagonal.
        diagonal_fill_end: int. End of the filled diagonals (exclusive); Begin > End inverts the fill.
    """

    operator = "DIAGONAL_MATRIX1"
    fields = (
        "input_tensor",
        "output_tensor",
        "value_data_type",
        "value",
        "diagonal_fill_begin",
        "diagonal_fill_end",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    value_data_type: TensorDataType
    value: int | float
    diagonal_fill_begin: int
    diagonal_fill_end: int

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        value_data_type: DataTypeLike,
        value: int | float,
        diagonal_fill_begin: int,
        diagonal_fill_end: int,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_member(TensorDataType, value_data_type),
            value,
            diagonal_fill_begin,
            diagonal_fill_end,
        )


class Fold(OperatorDesc):
    """Sums an array of sliding-window patches back into one large tensor (col2im).

        BlocksPerDimension[d] = (SpatialSize[d] + StartPadding[d] + EndPadding[d] -
            Dilations[d]*(WindowSizes[d]-1) - 1) / Strides[d] + 1; BlockCount = product of BlocksPerDimension
            (SpatialSize = spatial sizes of OutputTensor); Output[n, c, pos] = sum over all (block, window
            point) pairs mapping to pos of Input[n, c*prod(WindowSizes) + w, block]

    DML_FOLD_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_4. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 3 to 8 dimensions. (N, C * product(WindowSizes), BlockCount).
        output_tensor: output, FLOAT32, FLOAT16; 3 to 8 dimensions. (N, C, OutputSize[0], OutputSize[1], ...).

    Attributes:
        window_sizes: Sequence[int]. UINT[DimensionCount]; size of the sliding window (extracted patch).
        strides: Sequence[int]. UINT[DimensionCount]; step of the window (not the tensor strides).
        dilations: Sequence[int]. UINT[DimensionCount]; spacing between window points.
        start_padding: Sequence[int]. UINT[DimensionCount]; implicit zero padding at the start of each spatial
            dimension.
        end_padding: Sequence[int]. UINT[DimensionCount]; implicit zero padding at the end of each spatial
            dimension.
    """

    operator = "FOLD"
    fields = (
        "input_tensor",
        "output_tensor",
        "window_sizes",
        "strides",
        "dilations",
        "start_padding",
        "end_padding",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    window_sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        window_sizes: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        start_padding: Sequence[int],
        end_padding: Sequence[int],
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(window_sizes),
            as_tuple(strides),
            as_tuple(dilations),
            as_tuple(start_padding),
            as_tuple(end_padding),
        )


class Unfold(OperatorDesc):
    """Extracts sliding windows of a batched tensor into columns (im2col).

        BlocksPerDimension[d] = (SpatialSize[d] + StartPadding[d] + EndPadding[d] -
            Dilations[d]*(WindowSizes[d]-1) - 1) / Strides[d] + 1; BlockCount = product of BlocksPerDimension
            (SpatialSize = spatial sizes of InputTensor); Output[n, c*prod(WindowSizes) + w, block] =
            zero-padded Input[n, c, block*Strides + w*Dilations - StartPadding]

    DML_UNFOLD_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_4. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 3 to 8 dimensions. (N, C, spatial...), up to 6 spatial
            dimensions.
        output_tensor: output, FLOAT32, FLOAT16; 3 to 8 dimensions. 3-D (N, C * product(WindowSizes),
            BlockCount).

    Attributes:
        window_sizes: Sequence[int]. UINT[DimensionCount]; size of the sliding window (extracted patch).
        strides: Sequence[int]. UINT[DimensionCount]; step of the window (not the tensor strides).
        dilations: Sequence[int]. UINT[DimensionCount]; spacing between window points.
        start_padding: Sequence[int]. UINT[DimensionCount]; implicit zero padding at the start of each spatial
            dimension.
        end_padding: Sequence[int]. UINT[DimensionCount]; implicit zero padding at the end of each spatial
            dimension.
    """

    operator = "UNFOLD"
    fields = (
        "input_tensor",
        "output_tensor",
        "window_sizes",
        "strides",
        "dilations",
        "start_padding",
        "end_padding",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    window_sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        window_sizes: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        start_padding: Sequence[int],
        end_padding: Sequence[int],
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(window_sizes),
            as_tuple(strides),
            as_tuple(dilations),
            as_tuple(start_padding),
            as_tuple(end_padding),
        )
