"""Descriptions of DirectML's pooling operators.

Generated from opendml/spec/data by `python -m tools.generate`: change the data instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from opendml.spec.enums import InterpolationMode, ReduceFunction
from opendml.spec.operator_desc import OperatorDesc, Size2D
from opendml.spec.plain import as_member, as_tuple
from opendml.spec.tensor_desc import TensorDesc


class AveragePooling(OperatorDesc):
    """Average over a window sliding across the spatial dimensions.

        out = sum(x in window, padding = 0) / count; count = number of window elements (IncludePadding TRUE)
            or number of window elements inside the input (FALSE)

    DML_AVERAGE_POOLING_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 4 to 5 dimensions. 4D {BatchCount, ChannelCount, Height,
            Width}; 5D {BatchCount, ChannelCount, Depth, Height, Width}.
        output_tensor: output, FLOAT32, FLOAT16; 4 to 5 dimensions. Sizes by the output-size formula (see
            semantics).

    Attributes:
        strides: Sequence[int]. Window step, {Height, Width} or {Depth, Height, Width}.
        window_size: Sequence[int]. Window size, same order.
        start_padding: Sequence[int]. Padding elements at the beginning of each spatial dimension.
        end_padding: Sequence[int]. Padding elements at the end of each spatial dimension.
        include_padding: bool. TRUE counts padding elements in the divisor, FALSE leaves them out of the
            divisor.
    """

    operator = "AVERAGE_POOLING"
    fields = (
        "input_tensor",
        "output_tensor",
        "strides",
        "window_size",
        "start_padding",
        "end_padding",
        "include_padding",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    strides: tuple[int, ...]
    window_size: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]
    include_padding: bool

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        strides: Sequence[int],
        window_size: Sequence[int],
        start_padding: Sequence[int],
        end_padding: Sequence[int],
        include_padding: bool,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(strides),
            as_tuple(window_size),
            as_tuple(start_padding),
            as_tuple(end_padding),
            include_padding,
        )


class AveragePooling1(OperatorDesc):
    """Average over a window sliding across the spatial dimensions, with dilation.

        as AVERAGE_POOLING with window element w along axis i at input position out*Strides[i] -
            StartPadding[i] + w*Dilations[i]

    DML_AVERAGE_POOLING1_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_2. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 4 to 5 dimensions. 4D {BatchCount, ChannelCount, Height,
            Width}; 5D {BatchCount, ChannelCount, Depth, Height, Width}.
        output_tensor: output, FLOAT32, FLOAT16; 4 to 5 dimensions. Sizes by the output-size formula (see
            semantics).

    Attributes:
        strides: Sequence[int]. Window step, {Height, Width} or {Depth, Height, Width}.
        window_size: Sequence[int]. Window size, same order.
        start_padding: Sequence[int]. Padding elements at the beginning of each spatial dimension.
        end_padding: Sequence[int]. Padding elements at the end of each spatial dimension.
        dilations: Sequence[int]. Per spatial dimension {Height, Width} or {Depth, Height, Width}: spacing of
            the elements picked inside the window; all 1 = no dilation.
        include_padding: bool. TRUE counts padding elements in the divisor, FALSE leaves them out of the
            divisor.
    """

    operator = "AVERAGE_POOLING1"
    fields = (
        "input_tensor",
        "output_tensor",
        "strides",
        "window_size",
        "start_padding",
        "end_padding",
        "dilations",
        "include_padding",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    strides: tuple[int, ...]
    window_size: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]
    dilations: tuple[int, ...]
    include_padding: bool

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        strides: Sequence[int],
        window_size: Sequence[int],
        start_padding: Sequence[int],
        end_padding: Sequence[int],
        dilations: Sequence[int],
        include_padding: bool,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(strides),
            as_tuple(window_size),
            as_tuple(start_padding),
            as_tuple(end_padding),
            as_tuple(dilations),
            include_padding,
        )


class LpPooling(OperatorDesc):
    """Lp norm of the elements of a window sliding across the spatial dimensions.

        Y = (X1^P + X2^P + ... + Xn^P)^(1/P) over the window elements

    DML_LP_POOLING_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 4 to 5 dimensions. 4D {BatchCount, ChannelCount, Height,
            Width}; 5D {BatchCount, ChannelCount, Depth, Height, Width}.
        output_tensor: output, FLOAT32, FLOAT16; 4 to 5 dimensions. Sizes by the output-size formula (see
            semantics).

    Attributes:
        strides: Sequence[int]. Window step, {Height, Width} or {Depth, Height, Width}.
        window_size: Sequence[int]. Window size, same order.
        start_padding: Sequence[int]. Padding elements at the beginning of each spatial dimension.
        end_padding: Sequence[int]. Padding elements at the end of each spatial dimension.
        p: int. P of the norm; commonly 1 (L1) or 2 (L2).
    """

    operator = "LP_POOLING"
    fields = ("input_tensor", "output_tensor", "strides", "window_size", "start_padding", "end_padding", "p")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    strides: tuple[int, ...]
    window_size: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]
    p: int

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        strides: Sequence[int],
        window_size: Sequence[int],
        start_padding: Sequence[int],
        end_padding: Sequence[int],
        p: int,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(strides),
            as_tuple(window_size),
            as_tuple(start_padding),
            as_tuple(end_padding),
            p,
        )


class LpPooling1(OperatorDesc):
    """Lp norm of the elements of a window sliding across the spatial dimensions, with dilation.

        Y = (X1^P + X2^P + ... + Xn^P)^(1/P) over the window elements; window element w along axis i sits at
            input position out*Strides[i] - StartPadding[i] + w*Dilations[i]

    DML_LP_POOLING1_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_2. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 4 to 5 dimensions. 4D {BatchCount, ChannelCount, Height,
            Width}; 5D {BatchCount, ChannelCount, Depth, Height, Width}.
        output_tensor: output, FLOAT32, FLOAT16; 4 to 5 dimensions. Sizes by the output-size formula (see
            semantics).

    Attributes:
        strides: Sequence[int]. Window step, {Height, Width} or {Depth, Height, Width}.
        window_size: Sequence[int]. Window size, same order.
        start_padding: Sequence[int]. Padding elements at the beginning of each spatial dimension.
        end_padding: Sequence[int]. Padding elements at the end of each spatial dimension.
        dilations: Sequence[int]. Per spatial dimension {Height, Width} or {Depth, Height, Width}: spacing of
            the elements picked inside the window; all 1 = no dilation.
        p: int. P of the norm; commonly 1 (L1) or 2 (L2).
    """

    operator = "LP_POOLING1"
    fields = (
        "input_tensor",
        "output_tensor",
        "strides",
        "window_size",
        "start_padding",
        "end_padding",
        "dilations",
        "p",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    strides: tuple[int, ...]
    window_size: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]
    dilations: tuple[int, ...]
    p: int

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        strides: Sequence[int],
        window_size: Sequence[int],
        start_padding: Sequence[int],
        end_padding: Sequence[int],
        dilations: Sequence[int],
        p: int,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(strides),
            as_tuple(window_size),
            as_tuple(start_padding),
            as_tuple(end_padding),
            as_tuple(dilations),
            p,
        )


class MaxPooling(OperatorDesc):
    """Maximum over a window sliding across the spatial dimensions.

        out = max(x in window), padding never wins

    DML_MAX_POOLING_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT8, UINT8 from 3_0; INT64, INT32, INT16, UINT64, UINT32,
            UINT16 from 5_0; 4 to 5 dimensions. 4D {BatchCount, ChannelCount, Height, Width}; 5D {BatchCount,
            ChannelCount, Depth, Height, Width}.
        output_tensor: output, FLOAT32, FLOAT16; INT8, UINT8 from 3_0; INT64, INT32, INT16, UINT64, UINT32,
            UINT16 from 5_0; 4 to 5 dimensions. Sizes by the output-size formula (see semantics).

    Attributes:
        strides: Sequence[int]. Window step, {Height, Width} or {Depth, Height, Width}.
        window_size: Sequence[int]. Window size, same order.
        start_padding: Sequence[int]. Padding elements at the beginning of each spatial dimension.
        end_padding: Sequence[int]. Padding elements at the end of each spatial dimension.
    """

    operator = "MAX_POOLING"
    fields = ("input_tensor", "output_tensor", "strides", "window_size", "start_padding", "end_padding")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    strides: tuple[int, ...]
    window_size: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        strides: Sequence[int],
        window_size: Sequence[int],
        start_padding: Sequence[int],
        end_padding: Sequence[int],
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(strides),
            as_tuple(window_size),
            as_tuple(start_padding),
            as_tuple(end_padding),
        )


class MaxPooling1(OperatorDesc):
    """Maximum over a sliding window, optionally also giving where each maximum was found.

        out = max(x in window); index = position of that element in the input seen as one contiguous 1-D
            array, zero-based

    DML_MAX_POOLING1_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT8, UINT8 from 3_0; INT64, INT32, INT16, UINT64, UINT32,
            UINT16 from 5_0; 4 to 5 dimensions. 4D {BatchCount, ChannelCount, Height, Width}; 5D {BatchCount,
            ChannelCount, Depth, Height, Width}.
        output_tensor: output, FLOAT32, FLOAT16; INT8, UINT8 from 3_0; INT64, INT32, INT16, UINT64, UINT32,
            UINT16 from 5_0; 4 to 5 dimensions. Sizes by the output-size formula (see semantics).
        output_indices_tensor: output, optional; UINT32; UINT64 from 5_0; 4 to 5 dimensions. Same Sizes as
            OutputTensor.

    Attributes:
        strides: Sequence[int]. Window step, {Height, Width} or {Depth, Height, Width}.
        window_size: Sequence[int]. Window size, same order.
        start_padding: Sequence[int]. Padding elements at the beginning of each spatial dimension.
        end_padding: Sequence[int]. Padding elements at the end of each spatial dimension.
    """

    operator = "MAX_POOLING1"
    fields = (
        "input_tensor",
        "output_tensor",
        "output_indices_tensor",
        "strides",
        "window_size",
        "start_padding",
        "end_padding",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    output_indices_tensor: TensorDesc | None
    strides: tuple[int, ...]
    window_size: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        output_indices_tensor: TensorDesc | None = None,
        *,
        strides: Sequence[int],
        window_size: Sequence[int],
        start_padding: Sequence[int],
        end_padding: Sequence[int],
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            output_indices_tensor,
            as_tuple(strides),
            as_tuple(window_size),
            as_tuple(start_padding),
            as_tuple(end_padding),
        )


class RoiPooling(OperatorDesc):
    """Max pooling of rectangular regions of interest of the input into a fixed output size.

        x1 = round(RoiX1 * SpatialScale), x2 = round(RoiX2 * SpatialScale), y1 = round(RoiY1 * SpatialScale),
            y2 = round(RoiY2 * SpatialScale); RegionHeight = y2 - y1 + 1; RegionWidth = x2 - x1 + 1; for
            output index (Y, X): StartY = (Y * RegionHeight) / PooledSize.Height + y1; StartX = (X *
            RegionWidth) / PooledSize.Width + x1; EndY = ((Y + 1) * RegionHeight + PooledSize.Height - 1) /
            PooledSize.Height + y1; EndX = ((X + 1) * RegionWidth + PooledSize.Width - 1) / PooledSize.Width +
            x1; out[roi, c, Y, X] = max(Input[BatchID, c, y, x]) for y in [StartY, EndY), x in [StartX, EndX)

    DML_ROI_POOLING_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 4 dimensions. {BatchCount, ChannelCount, InputHeight,
            InputWidth}.
        roi_tensor: input, FLOAT32, FLOAT16; 4 dimensions. {1, 1, NumROIs, 5}, each row [BatchID, x1, y1, x2,
            y2], corners inclusive, x2 >= x1, y2 >= y1.
        output_tensor: output, FLOAT32, FLOAT16; 4 dimensions. {NumROIs, InputChannelCount, PooledSize.Height,
            PooledSize.Width}.

    Attributes:
        spatial_scale: float. Multiplier from ROI coordinates to input coordinates.
        pooled_size: Size2D. SIZE_2D {height, width} = the last two sizes of OutputTensor.
    """

    operator = "ROI_POOLING"
    fields = ("input_tensor", "roi_tensor", "output_tensor", "spatial_scale", "pooled_size")
    __slots__ = fields
    input_tensor: TensorDesc | None
    roi_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    spatial_scale: float
    pooled_size: Size2D

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        roi_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        spatial_scale: float,
        pooled_size: Size2D,
    ) -> None:
        self._fill(
            input_tensor,
            roi_tensor,
            output_tensor,
            spatial_scale,
            as_tuple(pooled_size),
        )


class MaxUnpooling(OperatorDesc):
    """Scatters max-pooled values back to the positions recorded by max pooling and zero-fills the rest.

        Output = 0; for each element e of InputTensor: Output.flat[IndicesTensor[e]] = InputTensor[e]

    DML_MAX_UNPOOLING_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8 from
            5_0; 4 dimensions. {Batch, Channel, Height, Width}; pooled values.
        indices_tensor: input, UINT32; UINT64 from 5_0; 4 dimensions. Same sizes as InputTensor; zero-based
            indices into OutputTensor taken as one contiguous 1-D array (as OutputIndicesTensor of max pooling
            gives).
        output_tensor: output, FLOAT32, FLOAT16; INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8 from
            5_0; 4 dimensions. Same number of dimensions as InputTensor; sizes free.
    """

    operator = "MAX_UNPOOLING"
    fields = ("input_tensor", "indices_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    indices_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        indices_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            indices_tensor,
            output_tensor,
        )


class MaxPooling2(OperatorDesc):
    """Max pooling over sliding windows with dilation, optionally returning the index of each maximum.

        Output[n, c, o...] = max over window offsets w of Input[n, c, o*Strides - StartPadding + w*Dilations]
            (padding excluded)

    DML_MAX_POOLING2_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT8, UINT8 from 3_0; INT64, INT32, INT16, UINT64, UINT32,
            UINT16 from 5_0; 4 to 5 dimensions. {BatchCount, ChannelCount, Height, Width} (4-D) or
            {BatchCount, ChannelCount, Depth, Height, Width} (5-D).
        output_tensor: output, FLOAT32, FLOAT16; INT8, UINT8 from 3_0; INT64, INT32, INT16, UINT64, UINT32,
            UINT16 from 5_0; 4 to 5 dimensions. Sizes[0..1] of input; Sizes[i+2] = (Input.Sizes[i+2] +
            StartPadding[i] + EndPadding[i] - ((WindowSize[i] - 1) * Dilations[i] + 1)) / Strides[i] + 1
            (integer division).
        output_indices_tensor: output, optional; UINT32; UINT64 from 5_0; 4 to 5 dimensions. Same sizes as
            OutputTensor; zero-based index of each maximum in the input taken as one contiguous 1-D array.

    Attributes:
        strides: Sequence[int]. UINT[DimensionCount]; window strides, {Height, Width} or {Depth, Height,
            Width}.
        window_size: Sequence[int]. UINT[DimensionCount]; window sizes, same order.
        start_padding: Sequence[int]. UINT[DimensionCount]; padding at the start of each spatial dimension.
        end_padding: Sequence[int]. UINT[DimensionCount]; padding at the end.
        dilations: Sequence[int]. UINT[DimensionCount]; step between window elements per spatial dimension;
            all 1 equals MAX_POOLING1.
    """

    operator = "MAX_POOLING2"
    fields = (
        "input_tensor",
        "output_tensor",
        "output_indices_tensor",
        "strides",
        "window_size",
        "start_padding",
        "end_padding",
        "dilations",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    output_indices_tensor: TensorDesc | None
    strides: tuple[int, ...]
    window_size: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]
    dilations: tuple[int, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        output_indices_tensor: TensorDesc | None = None,
        *,
        strides: Sequence[int],
        window_size: Sequence[int],
        start_padding: Sequence[int],
        end_padding: Sequence[int],
        dilations: Sequence[int],
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            output_indices_tensor,
            as_tuple(strides),
            as_tuple(window_size),
            as_tuple(start_padding),
            as_tuple(end_padding),
            as_tuple(dilations),
        )


class AveragePoolingGrad(OperatorDesc):
    """Backpropagates a gradient through average pooling: each incoming value is spread evenly over its
    forward window, overlaps add up.

        OutputGradient = 0; for every incoming position o: for every in-bounds element i of its window:
            OutputGradient[i] += InputGradient[o] / divisor(o); divisor = product(WindowSize) with
            IncludePadding, else the number of in-bounds window elements

    DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Tensors:
        input_gradient_tensor: input, FLOAT32, FLOAT16; 4 to 5 dimensions. Typically the sizes of the forward
            output.
        output_gradient_tensor: output, FLOAT32, FLOAT16; 4 to 5 dimensions. Typically the sizes of the
            forward input.

    Attributes:
        strides: Sequence[int]. As AVERAGE_POOLING.
        window_size: Sequence[int]. As AVERAGE_POOLING.
        start_padding: Sequence[int]. As AVERAGE_POOLING.
        end_padding: Sequence[int]. As AVERAGE_POOLING.
        include_padding: bool. As AVERAGE_POOLING (whether padding counts in the divisor).
    """

    operator = "AVERAGE_POOLING_GRAD"
    fields = (
        "input_gradient_tensor",
        "output_gradient_tensor",
        "strides",
        "window_size",
        "start_padding",
        "end_padding",
        "include_padding",
    )
    __slots__ = fields
    input_gradient_tensor: TensorDesc | None
    output_gradient_tensor: TensorDesc | None
    strides: tuple[int, ...]
    window_size: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]
    include_padding: bool

    def __init__(
        self,
        input_gradient_tensor: TensorDesc | None = None,
        output_gradient_tensor: TensorDesc | None = None,
        *,
        strides: Sequence[int],
        window_size: Sequence[int],
        start_padding: Sequence[int],
        end_padding: Sequence[int],
        include_padding: bool,
    ) -> None:
        self._fill(
            input_gradient_tensor,
            output_gradient_tensor,
            as_tuple(strides),
            as_tuple(window_size),
            as_tuple(start_padding),
            as_tuple(end_padding),
            include_padding,
        )


class MaxPoolingGrad(OperatorDesc):
    """Backpropagates a gradient through max pooling: each incoming value goes to the position of its window's
    maximum, overlaps add up, the rest is zero.

        OutputGradient = 0; for every incoming position o: i* = first (lowest logical index) position of the
            maximum of Input in the window of o; OutputGradient[i*] += InputGradient[o]

    DML_MAX_POOLING_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 4 to 5 dimensions (4 below 4_0). forward-pass input.
        input_gradient_tensor: input, FLOAT32, FLOAT16; 4 to 5 dimensions (4 below 4_0). Typically the sizes
            of the forward output.
        output_gradient_tensor: output, FLOAT32, FLOAT16; 4 to 5 dimensions (4 below 4_0). Same sizes as
            InputTensor.

    Attributes:
        strides: Sequence[int]. As MAX_POOLING2.
        window_size: Sequence[int]. As MAX_POOLING2.
        start_padding: Sequence[int]. As MAX_POOLING2.
        end_padding: Sequence[int]. As MAX_POOLING2.
        dilations: Sequence[int]. As MAX_POOLING2.
    """

    operator = "MAX_POOLING_GRAD"
    fields = (
        "input_tensor",
        "input_gradient_tensor",
        "output_gradient_tensor",
        "strides",
        "window_size",
        "start_padding",
        "end_padding",
        "dilations",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    input_gradient_tensor: TensorDesc | None
    output_gradient_tensor: TensorDesc | None
    strides: tuple[int, ...]
    window_size: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]
    dilations: tuple[int, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        input_gradient_tensor: TensorDesc | None = None,
        output_gradient_tensor: TensorDesc | None = None,
        *,
        strides: Sequence[int],
        window_size: Sequence[int],
        start_padding: Sequence[int],
        end_padding: Sequence[int],
        dilations: Sequence[int],
    ) -> None:
        self._fill(
            input_tensor,
            input_gradient_tensor,
            output_gradient_tensor,
            as_tuple(strides),
            as_tuple(window_size),
            as_tuple(start_padding),
            as_tuple(end_padding),
            as_tuple(dilations),
        )


class RoiAlign(OperatorDesc):
    """ROI align (Mask R-CNN): crops regions of interest from feature maps and resizes each to a common output
    size.

        per ROI: scaled corners = ROI * SpatialScale; samples per output = clamp(scaledSize / outputSize,
            MinimumSamplesPerOutput, MaximumSamplesPerOutput) per axis; output element = average or max of
            that many interpolated input samples per axis; detailed pseudo-code under ROI_ALIGN1 with
            InputPixelOffset 0.5, OutputPixelOffset -0.5, AlignRegionsToCorners FALSE

    DML_ROI_ALIGN_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 4 dimensions. { BatchCount, ChannelCount, InputHeight,
            InputWidth }.
        roi_tensor: input, FLOAT32, FLOAT16; 2 to 4 dimensions. {NumROIs,4}, {1,NumROIs,4} or {1,1,NumROIs,4};
            each row [x1, y1, x2, y2] = top-left and bottom-right corner.
        batch_indices_tensor: input, UINT32; UINT64 from 5_0; 1 to 4 dimensions. {NumROIs}, {1,NumROIs},
            {1,1,NumROIs} or {1,1,1,NumROIs}; batch index of each ROI.
        output_tensor: output, FLOAT32, FLOAT16; 4 dimensions. { NumROIs, ChannelCount, OutputHeight,
            OutputWidth }.

    Attributes:
        reduction_function: ReduceFunction. DML_REDUCE_FUNCTION_AVERAGE or DML_REDUCE_FUNCTION_MAX over the
            samples of one output element.
        interpolation_mode: InterpolationMode. DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR (nearest to the pixel
            centre) or DML_INTERPOLATION_MODE_LINEAR (bilinear, 4 input elements).
        spatial_scale_x: float. Factor from ROI x to input x; InputWidth for normalized ROIs.
        spatial_scale_y: float. Factor from ROI y to input y; InputHeight for normalized ROIs.
        out_of_bounds_input_value: float. Value read where a sample lies outside the input.
        minimum_samples_per_output: int. Lower clamp of samples per output.
        maximum_samples_per_output: int. Upper clamp of samples per output.
    """

    operator = "ROI_ALIGN"
    fields = (
        "input_tensor",
        "roi_tensor",
        "batch_indices_tensor",
        "output_tensor",
        "reduction_function",
        "interpolation_mode",
        "spatial_scale_x",
        "spatial_scale_y",
        "out_of_bounds_input_value",
        "minimum_samples_per_output",
        "maximum_samples_per_output",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    roi_tensor: TensorDesc | None
    batch_indices_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    reduction_function: ReduceFunction
    interpolation_mode: InterpolationMode
    spatial_scale_x: float
    spatial_scale_y: float
    out_of_bounds_input_value: float
    minimum_samples_per_output: int
    maximum_samples_per_output: int

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        roi_tensor: TensorDesc | None = None,
        batch_indices_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        reduction_function: ReduceFunction | str,
        interpolation_mode: InterpolationMode | str,
        spatial_scale_x: float,
        spatial_scale_y: float,
        out_of_bounds_input_value: float,
        minimum_samples_per_output: int,
        maximum_samples_per_output: int,
    ) -> None:
        self._fill(
            input_tensor,
            roi_tensor,
            batch_indices_tensor,
            output_tensor,
            as_member(ReduceFunction, reduction_function),
            as_member(InterpolationMode, interpolation_mode),
            spatial_scale_x,
            spatial_scale_y,
            out_of_bounds_input_value,
            minimum_samples_per_output,
            maximum_samples_per_output,
        )


class RoiAlign1(OperatorDesc):
    """ROI align with explicit pixel offsets and optional corner alignment.

        outX = OutputTensor.Sizes[3], outY = Sizes[2]; x1,y1,x2,y2 = ROI[r] scaled by SpatialScaleX/Y; regionX
            = x2 - x1, regionY = y2 - y1; nX = clamp(regionX / outX, MinSamples, MaxSamples), nY likewise;
            scaleX = regionX / (outX * nX), scaleY = regionY / (outY * nY); for output (ox, oy, channel): over
            samples sx in [ox*nX, ox*nX + nX), sy in [oy*nY, oy*nY + nY): inX = (sx - OutputPixelOffset) *
            scaleX + x1 - InputPixelOffset, inY = (sy - OutputPixelOffset) * scaleY + y1 - InputPixelOffset,
            value = interpolate2D(Input, BatchIndices[r], channel, inX, inY); Output[r, channel, oy, ox] =
            average or maximum of the values

    DML_ROI_ALIGN1_OPERATOR_DESC, from DML_FEATURE_LEVEL_4_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 4 dimensions. { BatchCount, ChannelCount, InputHeight,
            InputWidth }.
        roi_tensor: input, FLOAT32, FLOAT16; 2 to 4 dimensions. {NumROIs,4}, {1,NumROIs,4} or {1,1,NumROIs,4};
            rows [x1, y1, x2, y2]; empty regions (all outputs from one input coordinate) and inverted regions
            (mirrored result) are allowed.
        batch_indices_tensor: input, UINT32; UINT64 from 5_0; 1 to 4 dimensions. {NumROIs}, {1,NumROIs},
            {1,1,NumROIs} or {1,1,1,NumROIs}.
        output_tensor: output, FLOAT32, FLOAT16; 4 dimensions. { NumROIs, ChannelCount, OutputHeight,
            OutputWidth }.

    Attributes:
        reduction_function: ReduceFunction. DML_REDUCE_FUNCTION_AVERAGE or DML_REDUCE_FUNCTION_MAX.
        interpolation_mode: InterpolationMode. DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR or
            DML_INTERPOLATION_MODE_LINEAR (bilinear).
        spatial_scale_x: float. Factor from ROI x to input x; InputWidth for normalized ROIs.
        spatial_scale_y: float. Factor from ROI y to input y; InputHeight for normalized ROIs.
        input_pixel_offset: float. Offset of input coordinates to the top-left pixel centre, typically 0 or
            0.5; 0.5 behaves as ROI_ALIGN.
        output_pixel_offset: float. Offset from the top-left pixel centre to output (0,0), typically 0 or
            -0.5; -0.5 behaves as ROI_ALIGN.
        out_of_bounds_input_value: float. Value read where a sample lies outside the input.
        minimum_samples_per_output: int. Lower clamp of samples per output.
        maximum_samples_per_output: int. Upper clamp of samples per output.
        align_regions_to_corners: bool. TRUE stretches the sample points to the very corners of the region;
            FALSE (default) behaves as ROI_ALIGN.
    """

    operator = "ROI_ALIGN1"
    fields = (
        "input_tensor",
        "roi_tensor",
        "batch_indices_tensor",
        "output_tensor",
        "reduction_function",
        "interpolation_mode",
        "spatial_scale_x",
        "spatial_scale_y",
        "input_pixel_offset",
        "output_pixel_offset",
        "out_of_bounds_input_value",
        "minimum_samples_per_output",
        "maximum_samples_per_output",
        "align_regions_to_corners",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    roi_tensor: TensorDesc | None
    batch_indices_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    reduction_function: ReduceFunction
    interpolation_mode: InterpolationMode
    spatial_scale_x: float
    spatial_scale_y: float
    input_pixel_offset: float
    output_pixel_offset: float
    out_of_bounds_input_value: float
    minimum_samples_per_output: int
    maximum_samples_per_output: int
    align_regions_to_corners: bool

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        roi_tensor: TensorDesc | None = None,
        batch_indices_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
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
    ) -> None:
        self._fill(
            input_tensor,
            roi_tensor,
            batch_indices_tensor,
            output_tensor,
            as_member(ReduceFunction, reduction_function),
            as_member(InterpolationMode, interpolation_mode),
            spatial_scale_x,
            spatial_scale_y,
            input_pixel_offset,
            output_pixel_offset,
            out_of_bounds_input_value,
            minimum_samples_per_output,
            maximum_samples_per_output,
            align_regions_to_corners,
        )


class RoiAlignGrad(OperatorDesc):
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

    Tensors:
        input_tensor: input, optional; FLOAT32, FLOAT16; 4 dimensions. Forward input { BatchCount,
            ChannelCount, InputHeight, InputWidth }; required when OutputROIGradientTensor is given or
            ReductionFunction is MAX.
        input_gradient_tensor: input, FLOAT32, FLOAT16; 4 dimensions. Sizes of the forward output { NumROIs,
            ChannelCount, OutputHeight, OutputWidth }.
        roi_tensor: input, FLOAT32, FLOAT16; 2 to 4 dimensions. {NumROIs,4}, {1,NumROIs,4} or {1,1,NumROIs,4};
            rows [x1, y1, x2, y2]; empty and inverted regions allowed.
        batch_indices_tensor: input, UINT32; 1 to 4 dimensions. {NumROIs}, {1,NumROIs}, {1,1,NumROIs} or
            {1,1,1,NumROIs}.
        output_gradient_tensor: output, optional; FLOAT32, FLOAT16; 4 dimensions. Typically the sizes of the
            forward input; required when OutputROIGradientTensor is null.
        output_roi_gradient_tensor: output, optional; FLOAT32, FLOAT16; 2 to 4 dimensions. Same sizes as
            ROITensor; required when OutputGradientTensor is null.

    Attributes:
        reduction_function: ReduceFunction. As ROI_ALIGN1.
        interpolation_mode: InterpolationMode. As ROI_ALIGN1.
        spatial_scale_x: float. As ROI_ALIGN1.
        spatial_scale_y: float. As ROI_ALIGN1.
        input_pixel_offset: float. As ROI_ALIGN1.
        output_pixel_offset: float. As ROI_ALIGN1.
        minimum_samples_per_output: int. As ROI_ALIGN1.
        maximum_samples_per_output: int. As ROI_ALIGN1.
        align_regions_to_corners: bool. As ROI_ALIGN1.
    """

    operator = "ROI_ALIGN_GRAD"
    fields = (
        "input_tensor",
        "input_gradient_tensor",
        "roi_tensor",
        "batch_indices_tensor",
        "output_gradient_tensor",
        "output_roi_gradient_tensor",
        "reduction_function",
        "interpolation_mode",
        "spatial_scale_x",
        "spatial_scale_y",
        "input_pixel_offset",
        "output_pixel_offset",
        "minimum_samples_per_output",
        "maximum_samples_per_output",
        "align_regions_to_corners",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    input_gradient_tensor: TensorDesc | None
    roi_tensor: TensorDesc | None
    batch_indices_tensor: TensorDesc | None
    output_gradient_tensor: TensorDesc | None
    output_roi_gradient_tensor: TensorDesc | None
    reduction_function: ReduceFunction
    interpolation_mode: InterpolationMode
    spatial_scale_x: float
    spatial_scale_y: float
    input_pixel_offset: float
    output_pixel_offset: float
    minimum_samples_per_output: int
    maximum_samples_per_output: int
    align_regions_to_corners: bool

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        input_gradient_tensor: TensorDesc | None = None,
        roi_tensor: TensorDesc | None = None,
        batch_indices_tensor: TensorDesc | None = None,
        output_gradient_tensor: TensorDesc | None = None,
        output_roi_gradient_tensor: TensorDesc | None = None,
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
    ) -> None:
        self._fill(
            input_tensor,
            input_gradient_tensor,
            roi_tensor,
            batch_indices_tensor,
            output_gradient_tensor,
            output_roi_gradient_tensor,
            as_member(ReduceFunction, reduction_function),
            as_member(InterpolationMode, interpolation_mode),
            spatial_scale_x,
            spatial_scale_y,
            input_pixel_offset,
            output_pixel_offset,
            minimum_samples_per_output,
            maximum_samples_per_output,
            align_regions_to_corners,
        )


class QuantizedLinearAveragePooling(OperatorDesc):
    """Average pooling on linearly quantized 8-bit data: as if dequantizing, pooling and requantizing.

        Y = AveragePool((Input - InputZeroPoint) * InputScale); Output = clamp(round(Y / OutputScale) +
            OutputZeroPoint, Min, Max)

    DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_2. Not in place.

    Tensors:
        input_tensor: input, INT8, UINT8; 4 to 5 dimensions. { BatchCount, ChannelCount, Height, Width } or {
            BatchCount, ChannelCount, Depth, Height, Width }.
        input_scale_tensor: input, FLOAT32; 1 to 5 dimensions. {1,1,1,1} per tensor or {1,ChannelCount,1,1}
            per channel; value 0 undefined.
        input_zero_point_tensor: input, optional; INT8, UINT8; 1 to 5 dimensions. {1,1,1,1} or
            {1,ChannelCount,1,1}.
        output_scale_tensor: input, FLOAT32; 1 to 5 dimensions. {1,1,1,1} or {1,ChannelCount,1,1}; value 0
            undefined.
        output_zero_point_tensor: input, optional; INT8, UINT8; 1 to 5 dimensions. {1,1,1,1} or
            {1,ChannelCount,1,1}.
        output_tensor: output, INT8, UINT8; 4 to 5 dimensions. Batch and channel as input; spatial Sizes[i+2]
            = (Input.Sizes[i+2] + StartPadding[i] + EndPadding[i] - WindowSize[i]) / Strides[i] + 1.

    Attributes:
        strides: Sequence[int]. Window steps, {Height, Width} or {Depth, Height, Width}.
        window_size: Sequence[int]. Window extent, same order.
        start_padding: Sequence[int]. Padding at the start of each spatial axis, same order.
        end_padding: Sequence[int]. Padding at the end of each spatial axis, same order.
        dilations: Sequence[int]. Spacing of window elements per spatial axis, same order.
        include_padding: bool. FALSE leaves padding elements out of the divisor.
    """

    operator = "QUANTIZED_LINEAR_AVERAGE_POOLING"
    fields = (
        "input_tensor",
        "input_scale_tensor",
        "input_zero_point_tensor",
        "output_scale_tensor",
        "output_zero_point_tensor",
        "output_tensor",
        "strides",
        "window_size",
        "start_padding",
        "end_padding",
        "dilations",
        "include_padding",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    input_scale_tensor: TensorDesc | None
    input_zero_point_tensor: TensorDesc | None
    output_scale_tensor: TensorDesc | None
    output_zero_point_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    strides: tuple[int, ...]
    window_size: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]
    dilations: tuple[int, ...]
    include_padding: bool

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        input_scale_tensor: TensorDesc | None = None,
        input_zero_point_tensor: TensorDesc | None = None,
        output_scale_tensor: TensorDesc | None = None,
        output_zero_point_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        strides: Sequence[int],
        window_size: Sequence[int],
        start_padding: Sequence[int],
        end_padding: Sequence[int],
        dilations: Sequence[int],
        include_padding: bool,
    ) -> None:
        self._fill(
            input_tensor,
            input_scale_tensor,
            input_zero_point_tensor,
            output_scale_tensor,
            output_zero_point_tensor,
            output_tensor,
            as_tuple(strides),
            as_tuple(window_size),
            as_tuple(start_padding),
            as_tuple(end_padding),
            as_tuple(dilations),
            include_padding,
        )
