"""Descriptions of DirectML's convolution operators.

Generated from opendml/spec/data by `python -m tools.generate`: change the data instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from opendml.spec.enums import ConvolutionDirection, ConvolutionMode
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.plain import as_member, as_tuple
from opendml.spec.tensor_desc import TensorDesc


class Convolution(OperatorDesc):
    """Convolution (or cross-correlation), forward or transposed, optionally grouped, with a per-channel bias
    and a fused activation.

        out = conv(InputTensor, FilterTensor); out += Bias broadcast to the output sizes; out =
            FusedActivation(out)

    DML_CONVOLUTION_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 3 to 5 dimensions (4 to 5 below 4_0). 3D {BatchCount,
            InputChannelCount, InputWidth}; 4D {BatchCount, InputChannelCount, InputHeight, InputWidth}; 5D
            {BatchCount, InputChannelCount, InputDepth, InputHeight, InputWidth}.
        filter_tensor: input, FLOAT32, FLOAT16; 3 to 5 dimensions (4 to 5 below 4_0). Forward
            {OutputChannelCount, InputChannelCount / GroupCount, [FilterDepth], [FilterHeight], FilterWidth};
            backward {InputChannelCount, OutputChannelCount / GroupCount, ...}.
        bias_tensor: input, optional; FLOAT32, FLOAT16; 3 to 5 dimensions (4 to 5 below 4_0). {1,
            OutputChannelCount, 1}, {1, OutputChannelCount, 1, 1} or {1, OutputChannelCount, 1, 1, 1}; one
            value per output channel added to the whole channel.
        output_tensor: output, FLOAT32, FLOAT16; 3 to 5 dimensions (4 to 5 below 4_0). {BatchCount,
            OutputChannelCount, [OutputDepth], [OutputHeight], OutputWidth}.

    Attributes:
        mode: ConvolutionMode. DML_CONVOLUTION_MODE_CONVOLUTION flips the filter along each spatial dimension;
            DML_CONVOLUTION_MODE_CROSS_CORRELATION does not (usual for inference).
        direction: ConvolutionDirection. DML_CONVOLUTION_DIRECTION_FORWARD or _BACKWARD (transposed
            convolution, whose filters have the input's channels first).
        strides: Sequence[int]. Per spatial dimension, filter step; unrelated to tensor-desc strides.
        dilations: Sequence[int]. Per spatial dimension, spacing of the filter elements (zeros between them).
        start_padding: Sequence[int]. Per spatial dimension, {Depth, Height, Width}, at the beginning: forward
            zeros before the input, backward elements cut off the output.
        end_padding: Sequence[int]. Per spatial dimension, at the end, likewise.
        output_padding: Sequence[int]. Per spatial dimension, zero padding added to the end of each spatial
            dimension of the result.
        group_count: int. Number of groups; equal to the input channel count with FORWARD for depth-wise
            convolution.
        fused_activation: OperatorDesc, optional. Activation applied after the convolution.
    """

    operator = "CONVOLUTION"
    fields = (
        "input_tensor",
        "filter_tensor",
        "bias_tensor",
        "output_tensor",
        "mode",
        "direction",
        "strides",
        "dilations",
        "start_padding",
        "end_padding",
        "output_padding",
        "group_count",
        "fused_activation",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    filter_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    mode: ConvolutionMode
    direction: ConvolutionDirection
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]
    output_padding: tuple[int, ...]
    group_count: int
    fused_activation: OperatorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        filter_tensor: TensorDesc | None = None,
        bias_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        mode: ConvolutionMode | str = ConvolutionMode.CROSS_CORRELATION,
        direction: ConvolutionDirection | str = ConvolutionDirection.FORWARD,
        strides: Sequence[int],
        dilations: Sequence[int],
        start_padding: Sequence[int],
        end_padding: Sequence[int],
        output_padding: Sequence[int],
        group_count: int = 1,
        fused_activation: OperatorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            filter_tensor,
            bias_tensor,
            output_tensor,
            as_member(ConvolutionMode, mode),
            as_member(ConvolutionDirection, direction),
            as_tuple(strides),
            as_tuple(dilations),
            as_tuple(start_padding),
            as_tuple(end_padding),
            as_tuple(output_padding),
            group_count,
            fused_activation,
        )


class ConvolutionInteger(OperatorDesc):
    """Forward convolution of 8-bit integer input and filter with optional zero points subtracted from each,
    32-bit integer result.

        Output[n,oc,y,x] = sum over ic,ky,kx of (int32(Input[n,ic,y*Sy - Py + ky*Dy, x*Sx - Px + kx*Dx]) -
            InputZeroPoint) * (int32(Filter[oc,ic,ky,kx]) - FilterZeroPoint[oc or 0]) over the group's input
            channels; padded positions contribute 0

    DML_CONVOLUTION_INTEGER_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Tensors:
        input_tensor: input, INT8, UINT8; 3 to 4 dimensions (4 below 4_0). { BatchCount, InputChannelCount,
            InputHeight, InputWidth }.
        input_zero_point_tensor: input, optional; INT8, UINT8; 1 to 4 dimensions (4 below 4_0). One element,
            {1,1,1,1}.
        filter_tensor: input, INT8, UINT8; 3 to 4 dimensions (4 below 4_0). { FilterBatchCount,
            FilterChannelCount, FilterHeight, FilterWidth }.
        filter_zero_point_tensor: input, optional; INT8, UINT8; 1 to 4 dimensions (4 below 4_0). {1,1,1,1} per
            tensor or {1,OutputChannelCount,1,1} per channel.
        output_tensor: output, INT32; 3 to 4 dimensions (4 below 4_0). { BatchCount, OutputChannelCount,
            OutputHeight, OutputWidth }.

    Attributes:
        strides: Sequence[int]. Step of the filter per spatial axis (not tensor strides).
        dilations: Sequence[int]. Spacing between filter elements per spatial axis; 1 = dense.
        start_padding: Sequence[int]. Padding at the start of each spatial axis of the input.
        end_padding: Sequence[int]. Padding at the end of each spatial axis of the input.
        group_count: int. Number of groups; equal to the input channel count gives depth-wise convolution.
    """

    operator = "CONVOLUTION_INTEGER"
    fields = (
        "input_tensor",
        "input_zero_point_tensor",
        "filter_tensor",
        "filter_zero_point_tensor",
        "output_tensor",
        "strides",
        "dilations",
        "start_padding",
        "end_padding",
        "group_count",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    input_zero_point_tensor: TensorDesc | None
    filter_tensor: TensorDesc | None
    filter_zero_point_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]
    group_count: int

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        input_zero_point_tensor: TensorDesc | None = None,
        filter_tensor: TensorDesc | None = None,
        filter_zero_point_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        strides: Sequence[int],
        dilations: Sequence[int],
        start_padding: Sequence[int],
        end_padding: Sequence[int],
        group_count: int = 1,
    ) -> None:
        self._fill(
            input_tensor,
            input_zero_point_tensor,
            filter_tensor,
            filter_zero_point_tensor,
            output_tensor,
            as_tuple(strides),
            as_tuple(dilations),
            as_tuple(start_padding),
            as_tuple(end_padding),
            group_count,
        )


class QuantizedLinearConvolution(OperatorDesc):
    """Forward convolution on linearly quantized 8-bit data: as if dequantizing input and filter, convolving,
    adding bias, and requantizing.

        Y = conv((Input - InputZP) * InputScale, (Filter - FilterZP) * FilterScale) + bias; Output =
            clamp(round(Y / OutputScale) + OutputZP, Min, Max)

    DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Tensors:
        input_tensor: input, INT8, UINT8; 3 to 4 dimensions (4 below 4_0). { InputBatchCount,
            InputChannelCount, InputHeight, InputWidth }.
        input_scale_tensor: input, FLOAT32; 1 to 4 dimensions (4 below 4_0). {1,1,1,1}; value 0 undefined.
        input_zero_point_tensor: input, optional; INT8, UINT8; 1 to 4 dimensions (4 below 4_0). {1,1,1,1}.
        filter_tensor: input, INT8, UINT8; 3 to 4 dimensions (4 below 4_0). { FilterBatchCount,
            FilterChannelCount, FilterHeight, FilterWidth }.
        filter_scale_tensor: input, FLOAT32; 1 to 4 dimensions (3 to 4 below 5_2, 4 below 4_0). {1,1,1,1} per
            tensor or {1,OutputChannelCount,1,1} per channel; value 0 undefined.
        filter_zero_point_tensor: input, optional; INT8, UINT8; 1 to 4 dimensions (4 below 4_0). {1,1,1,1} or
            {1,OutputChannelCount,1,1}.
        bias_tensor: input, optional; INT32; 3 to 4 dimensions (4 below 4_0). INT32;
            {1,OutputChannelCount,1,1}, broadcast over the output and added after the convolution.
        output_scale_tensor: input, FLOAT32; 1 to 4 dimensions (4 below 4_0). {1,1,1,1}; value 0 undefined.
        output_zero_point_tensor: input, optional; INT8, UINT8; 1 to 4 dimensions (4 below 4_0). {1,1,1,1}.
        output_tensor: output, INT8, UINT8; 3 to 4 dimensions (4 below 4_0). { OutputBatchCount,
            OutputChannelCount, OutputHeight, OutputWidth }.

    Attributes:
        strides: Sequence[int]. Step of the filter per spatial axis (not tensor strides).
        dilations: Sequence[int]. Spacing between filter elements per spatial axis; 1 = dense.
        start_padding: Sequence[int]. Padding at the start of each spatial axis of the input.
        end_padding: Sequence[int]. Padding at the end of each spatial axis of the input.
        group_count: int. Number of groups; equal to the input channel count gives depth-wise convolution.
    """

    operator = "QUANTIZED_LINEAR_CONVOLUTION"
    fields = (
        "input_tensor",
        "input_scale_tensor",
        "input_zero_point_tensor",
        "filter_tensor",
        "filter_scale_tensor",
        "filter_zero_point_tensor",
        "bias_tensor",
        "output_scale_tensor",
        "output_zero_point_tensor",
        "output_tensor",
        "strides",
        "dilations",
        "start_padding",
        "end_padding",
        "group_count",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    input_scale_tensor: TensorDesc | None
    input_zero_point_tensor: TensorDesc | None
    filter_tensor: TensorDesc | None
    filter_scale_tensor: TensorDesc | None
    filter_zero_point_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    output_scale_tensor: TensorDesc | None
    output_zero_point_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]
    group_count: int

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        input_scale_tensor: TensorDesc | None = None,
        input_zero_point_tensor: TensorDesc | None = None,
        filter_tensor: TensorDesc | None = None,
        filter_scale_tensor: TensorDesc | None = None,
        filter_zero_point_tensor: TensorDesc | None = None,
        bias_tensor: TensorDesc | None = None,
        output_scale_tensor: TensorDesc | None = None,
        output_zero_point_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        strides: Sequence[int],
        dilations: Sequence[int],
        start_padding: Sequence[int],
        end_padding: Sequence[int],
        group_count: int = 1,
    ) -> None:
        self._fill(
            input_tensor,
            input_scale_tensor,
            input_zero_point_tensor,
            filter_tensor,
            filter_scale_tensor,
            filter_zero_point_tensor,
            bias_tensor,
            output_scale_tensor,
            output_zero_point_tensor,
            output_tensor,
            as_tuple(strides),
            as_tuple(dilations),
            as_tuple(start_padding),
            as_tuple(end_padding),
            group_count,
        )
