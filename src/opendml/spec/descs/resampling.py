"""Descriptions of DirectML's resampling operators.

Generated from opendml/spec/data by `python -m tools.generate`: change the data instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from opendml.spec.enums import AxisDirection, InterpolationMode
from opendml.spec.operator_desc import OperatorDesc, Size2D
from opendml.spec.plain import as_member, as_tuple
from opendml.spec.tensor_desc import TensorDesc


class Upsample2D(OperatorDesc):
    """Enlarges height and width by whole factors with nearest or bilinear interpolation.

        Output sizes: {N, C, [D], InputHeight * ScaleSize.Height, InputWidth * ScaleSize.Width}; nearest: the
            input element nearest to the pixel centre of the output element; linear: weighted average of the 2
            x 2 nearest input elements (height x width)

    DML_UPSAMPLE_2D_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 4 to 5 dimensions. 4D {InputBatchCount, InputChannelCount,
            InputHeight, InputWidth}; 5D {InputBatchCount, InputChannelCount, InputDepth, InputHeight,
            InputWidth}.
        output_tensor: output, FLOAT32, FLOAT16; 4 to 5 dimensions. Same but Height * HeightScale and Width *
            WidthScale.

    Attributes:
        scale_size: Size2D. The whole factors, Size2D(width, height), the width first; 0 < Height <= UINT_MAX
            / InputHeight and 0 < Width <= UINT_MAX / InputWidth.
        interpolation_mode: InterpolationMode. DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR or
            DML_INTERPOLATION_MODE_LINEAR.
    """

    operator = "UPSAMPLE_2D"
    fields = ("input_tensor", "output_tensor", "scale_size", "interpolation_mode")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    scale_size: Size2D
    interpolation_mode: InterpolationMode

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        scale_size: Size2D,
        interpolation_mode: InterpolationMode | str,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(scale_size),
            as_member(InterpolationMode, interpolation_mode),
        )


class Resample(OperatorDesc):
    """Resamples the input to the output's size by per-dimension scales, nearest neighbour or linear.

        per dimension: InputX = (OutputX + 0.5) / Scale - 0.5 (= RESAMPLE1 with InputPixelOffset 0.5 and
            OutputPixelOffset -0.5); NEAREST_NEIGHBOR: input element nearest to InputX, index clamped to [0,
            size-1]; LINEAR: weights of floor(InputX) and floor(InputX)+1, both indices clamped, product over
            dimensions

    DML_RESAMPLE_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT8, UINT8 from 6_2; 1 to 4 dimensions (4 below 5_1). Data.
        output_tensor: output, FLOAT32, FLOAT16; INT8, UINT8 from 6_2; 1 to 4 dimensions (4 below 5_1). Own
            sizes, any dimension may be resampled (batch and channel too).

    Attributes:
        interpolation_mode: InterpolationMode. DML_INTERPOLATION_MODE: NEAREST_NEIGHBOR, LINEAR.
        scales: Sequence[float]. Per dimension; > 1 enlarges, < 1 shrinks; need not equal OutputSize /
            InputSize exactly.
    """

    operator = "RESAMPLE"
    fields = ("input_tensor", "output_tensor", "interpolation_mode", "scales")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    interpolation_mode: InterpolationMode
    scales: tuple[float, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        interpolation_mode: InterpolationMode | str,
        scales: Sequence[float],
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_member(InterpolationMode, interpolation_mode),
            as_tuple(scales),
        )


class Resample1(OperatorDesc):
    """Resizes a tensor along any of its axes by nearest-neighbour or (multi)linear interpolation with
    explicit scales and pixel offsets.

        OutputX = (InputX + InputPixelOffset) * Scale + OutputPixelOffset, per axis; inverse InputX = (OutputX
            - OutputPixelOffset) / Scale - InputPixelOffset

    DML_RESAMPLE1_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT8, UINT8 from 6_2; 1 to 4 dimensions (4 below 5_1). Any
            sizes.
        output_tensor: output, FLOAT32, FLOAT16; INT8, UINT8 from 6_2; 1 to 4 dimensions (4 below 5_1). Any
            sizes; chosen by the caller, not tied to Scales.

    Attributes:
        interpolation_mode: InterpolationMode. DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR (nearest input element)
            or DML_INTERPOLATION_MODE_LINEAR (weighted mean of the 2 nearest input elements per axis, up to 4
            axes = 16 elements).
        scales: Sequence[float]. Per axis, > 1 enlarges, < 1 shrinks; need not equal OutputSize / InputSize.
        input_pixel_offsets: Sequence[float]. Per axis, added to the input coordinate before scaling; 0.5 =
            pixel centres (behaves as RESAMPLE), 0 = top-left corner.
        output_pixel_offsets: Sequence[float]. Per axis, added after scaling; -0.5 = pixel centres (behaves as
            RESAMPLE), 0 = top-left corner.
    """

    operator = "RESAMPLE1"
    fields = (
        "input_tensor",
        "output_tensor",
        "interpolation_mode",
        "scales",
        "input_pixel_offsets",
        "output_pixel_offsets",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    interpolation_mode: InterpolationMode
    scales: tuple[float, ...]
    input_pixel_offsets: tuple[float, ...]
    output_pixel_offsets: tuple[float, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        interpolation_mode: InterpolationMode | str,
        scales: Sequence[float],
        input_pixel_offsets: Sequence[float],
        output_pixel_offsets: Sequence[float],
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_member(InterpolationMode, interpolation_mode),
            as_tuple(scales),
            as_tuple(input_pixel_offsets),
            as_tuple(output_pixel_offsets),
        )


class ResampleGrad(OperatorDesc):
    """Backpropagates a gradient through RESAMPLE1 (transpose of the interpolation).

        OutputGradient[i] = sum over o of weight(o, i) * InputGradient[o], where forward Output[o] = sum_i
            weight(o, i) * Input[i]

    DML_RESAMPLE_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Tensors:
        input_gradient_tensor: input, FLOAT32, FLOAT16; 1 to 4 dimensions (4 below 5_1). Typically the sizes
            of the forward output.
        output_gradient_tensor: output, FLOAT32, FLOAT16; 1 to 4 dimensions (4 below 5_1). Typically the sizes
            of the forward input.

    Attributes:
        interpolation_mode: InterpolationMode. As RESAMPLE1 (NEAREST_NEIGHBOR or LINEAR).
        scales: Sequence[float]. As RESAMPLE1 (forward-pass scales).
        input_pixel_offsets: Sequence[float]. As RESAMPLE1.
        output_pixel_offsets: Sequence[float]. As RESAMPLE1.
    """

    operator = "RESAMPLE_GRAD"
    fields = (
        "input_gradient_tensor",
        "output_gradient_tensor",
        "interpolation_mode",
        "scales",
        "input_pixel_offsets",
        "output_pixel_offsets",
    )
    __slots__ = fields
    input_gradient_tensor: TensorDesc | None
    output_gradient_tensor: TensorDesc | None
    interpolation_mode: InterpolationMode
    scales: tuple[float, ...]
    input_pixel_offsets: tuple[float, ...]
    output_pixel_offsets: tuple[float, ...]

    def __init__(
        self,
        input_gradient_tensor: TensorDesc | None = None,
        output_gradient_tensor: TensorDesc | None = None,
        *,
        interpolation_mode: InterpolationMode | str,
        scales: Sequence[float],
        input_pixel_offsets: Sequence[float],
        output_pixel_offsets: Sequence[float],
    ) -> None:
        self._fill(
            input_gradient_tensor,
            output_gradient_tensor,
            as_member(InterpolationMode, interpolation_mode),
            as_tuple(scales),
            as_tuple(input_pixel_offsets),
            as_tuple(output_pixel_offsets),
        )


class Resample2(OperatorDesc):
    """RESAMPLE1 with a selectable rounding direction for nearest-neighbour sampling.

        OutputX = (InputX + InputPixelOffset) * Scale + OutputPixelOffset, per axis; inverse InputX = (OutputX
            - OutputPixelOffset) / Scale - InputPixelOffset; nearest: index = floor(InputX) (DECREASING) or
            ceil(InputX) (INCREASING)

    DML_RESAMPLE2_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT8, UINT8 from 6_2; 1 to 4 dimensions. Any sizes.
        output_tensor: output, FLOAT32, FLOAT16; INT8, UINT8 from 6_2; 1 to 4 dimensions. Any sizes; chosen by
            the caller.

    Attributes:
        interpolation_mode: InterpolationMode. DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR or
            DML_INTERPOLATION_MODE_LINEAR (weighted mean of the 2 nearest input elements per axis, up to 4
            axes = 16 elements).
        rounding_direction: AxisDirection. Only for nearest: DML_AXIS_DIRECTION_INCREASING rounds the
            fractional input coordinate up (ceil), DML_AXIS_DIRECTION_DECREASING rounds it down (floor).
        scales: Sequence[float]. Per axis, > 1 enlarges, < 1 shrinks; need not equal OutputSize / InputSize.
        input_pixel_offsets: Sequence[float]. Per axis, added to the input coordinate before scaling; 0.5 =
            pixel centres (as RESAMPLE), 0 = top-left corner.
        output_pixel_offsets: Sequence[float]. Per axis, added after scaling; -0.5 = pixel centres (as
            RESAMPLE), 0 = top-left corner.
    """

    operator = "RESAMPLE2"
    fields = (
        "input_tensor",
        "output_tensor",
        "interpolation_mode",
        "rounding_direction",
        "scales",
        "input_pixel_offsets",
        "output_pixel_offsets",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    interpolation_mode: InterpolationMode
    rounding_direction: AxisDirection
    scales: tuple[float, ...]
    input_pixel_offsets: tuple[float, ...]
    output_pixel_offsets: tuple[float, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        interpolation_mode: InterpolationMode | str,
        rounding_direction: AxisDirection | str,
        scales: Sequence[float],
        input_pixel_offsets: Sequence[float],
        output_pixel_offsets: Sequence[float],
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_member(InterpolationMode, interpolation_mode),
            as_member(AxisDirection, rounding_direction),
            as_tuple(scales),
            as_tuple(input_pixel_offsets),
            as_tuple(output_pixel_offsets),
        )


class ResampleGrad1(OperatorDesc):
    """Backpropagates a gradient through RESAMPLE2 (transpose of the interpolation).

        OutputGradient[i] = sum over o of weight(o, i) * InputGradient[o], where forward Output[o] = sum_i
            weight(o, i) * Input[i]

    DML_RESAMPLE_GRAD1_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_1. Not in place.

    Tensors:
        input_gradient_tensor: input, FLOAT32, FLOAT16; 1 to 4 dimensions. Typically the sizes of the forward
            output.
        output_gradient_tensor: output, FLOAT32, FLOAT16; 1 to 4 dimensions. Typically the sizes of the
            forward input.

    Attributes:
        interpolation_mode: InterpolationMode. As RESAMPLE2 (NEAREST_NEIGHBOR or LINEAR).
        rounding_direction: AxisDirection. As RESAMPLE2.
        scales: Sequence[float]. As RESAMPLE2 (forward-pass scales).
        input_pixel_offsets: Sequence[float]. As RESAMPLE2.
        output_pixel_offsets: Sequence[float]. As RESAMPLE2.
    """

    operator = "RESAMPLE_GRAD1"
    fields = (
        "input_gradient_tensor",
        "output_gradient_tensor",
        "interpolation_mode",
        "rounding_direction",
        "scales",
        "input_pixel_offsets",
        "output_pixel_offsets",
    )
    __slots__ = fields
    input_gradient_tensor: TensorDesc | None
    output_gradient_tensor: TensorDesc | None
    interpolation_mode: InterpolationMode
    rounding_direction: AxisDirection
    scales: tuple[float, ...]
    input_pixel_offsets: tuple[float, ...]
    output_pixel_offsets: tuple[float, ...]

    def __init__(
        self,
        input_gradient_tensor: TensorDesc | None = None,
        output_gradient_tensor: TensorDesc | None = None,
        *,
        interpolation_mode: InterpolationMode | str,
        rounding_direction: AxisDirection | str,
        scales: Sequence[float],
        input_pixel_offsets: Sequence[float],
        output_pixel_offsets: Sequence[float],
    ) -> None:
        self._fill(
            input_gradient_tensor,
            output_gradient_tensor,
            as_member(InterpolationMode, interpolation_mode),
            as_member(AxisDirection, rounding_direction),
            as_tuple(scales),
            as_tuple(input_pixel_offsets),
            as_tuple(output_pixel_offsets),
        )


class Resample3(OperatorDesc):
    """Resamples a tensor along any dimensions by scale factors and pixel offsets, nearest or linear, with
    optional antialiasing when downscaling.

        OutputX = (InputX + InputPixelOffset) * Scale + OutputPixelOffset, hence per dimension InputX =
            (OutputX - OutputPixelOffset) / Scale - InputPixelOffset. NEAREST: floor(InputX) for DECREASING,
            ceil(InputX) for INCREASING. LINEAR: weighted average of the two nearest input elements per
            dimension. Antialiased: linear filter stretched by max(1, 1/Scale)

    DML_RESAMPLE3_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_4. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16, INT8, UINT8; 1 to 4 dimensions. Any sizes, 1 to 4 dims.
        output_tensor: output, FLOAT32, FLOAT16, INT8, UINT8; 1 to 4 dimensions. Sizes given by the caller,
            same DimensionCount.

    Attributes:
        interpolation_mode: InterpolationMode. DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR or _LINEAR (up to four
            dimensions, i.e. 16 input elements).
        rounding_direction: AxisDirection. DML_AXIS_DIRECTION_INCREASING = ceil, _DECREASING = floor of the
            fractional input coordinate; matters for NEAREST_NEIGHBOR only.
        scales: Sequence[float]. Per dimension; > 1 enlarges, < 1 shrinks; need not be exactly OutputSize /
            InputSize.
        input_pixel_offsets: Sequence[float]. Per dimension, added to input pixels before resampling; 0 =
            top-left corner, 0.5 = pixel centre (as RESAMPLE).
        output_pixel_offsets: Sequence[float]. Per dimension, added after resampling; 0 = top-left corner,
            -0.5 = pixel centre (as RESAMPLE).
        antialiased: bool. When TRUE and InterpolationMode is LINEAR and 1/Scale > 2, an antialiasing filter
            is used for downscaling.
    """

    operator = "RESAMPLE3"
    fields = (
        "input_tensor",
        "output_tensor",
        "interpolation_mode",
        "rounding_direction",
        "scales",
        "input_pixel_offsets",
        "output_pixel_offsets",
        "antialiased",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    interpolation_mode: InterpolationMode
    rounding_direction: AxisDirection
    scales: tuple[float, ...]
    input_pixel_offsets: tuple[float, ...]
    output_pixel_offsets: tuple[float, ...]
    antialiased: bool

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        interpolation_mode: InterpolationMode | str,
        rounding_direction: AxisDirection | str,
        scales: Sequence[float],
        input_pixel_offsets: Sequence[float],
        output_pixel_offsets: Sequence[float],
        antialiased: bool,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_member(InterpolationMode, interpolation_mode),
            as_member(AxisDirection, rounding_direction),
            as_tuple(scales),
            as_tuple(input_pixel_offsets),
            as_tuple(output_pixel_offsets),
            antialiased,
        )
