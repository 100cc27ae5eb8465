"""Elements that move without change: slices, joins, tiles, padding, blocks of depth and space."""

from __future__ import annotations

from opendml.spec.operator_desc import Size2D
from opendml.spec.rules.declared import Broken, rule
from opendml.spec.rules.sizes import Size, expect, replaced, sizes_message
from opendml.spec.tensor_desc import TensorDesc


@rule("SLICE")
def sliced_sizes(
    input_tensor: TensorDesc,
    output_tensor: TensorDesc,
    offsets: tuple[int, ...],
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
) -> Broken:
    """The output has the slice's sizes, and the slice lies within the input.

    A stride of 0 is refused, as DirectML's page of SLICE1 has it; that of SLICE says nothing.
    """
    yield from expect("output_tensor", output_tensor, sizes, "the Sizes given")
    slices = zip(input_tensor.sizes, offsets, sizes, strides, strict=True)
    for i, (size, offset, count, stride) in enumerate(slices):
        last = offset + (count - 1) * stride
        if last >= size:
            steps = f"the last of {count} elements in steps of {stride}"
            yield "offsets", f"[{i}]: {offset}; {steps} must be below {size}, not {last}"


@rule("SLICE1", input_tensor="InputTensor", output_tensor="OutputTensor")
@rule("SLICE_GRAD", input_tensor="OutputGradientTensor", output_tensor="InputGradientTensor")
def window_within_input(
    input_tensor: TensorDesc,
    output_tensor: TensorDesc,
    input_window_offsets: tuple[int, ...],
    input_window_sizes: tuple[int, ...],
    input_window_strides: tuple[int, ...],
) -> Broken:
    """The window lies within the input, and has an element for each of the output's."""
    windows = zip(input_tensor.sizes, input_window_offsets, input_window_sizes, strict=True)
    for i, (size, offset, extent) in enumerate(windows):
        if extent > size:
            yield "input_window_sizes", f"[{i}]: {extent}; must be at most {size}, what there is"
        elif offset + extent > size:
            allowed = f"must be at most {size - extent} for a window of {extent} in {size} elements"
            yield "input_window_offsets", f"[{i}]: {offset}; {allowed}"
    for i, (extent, stride) in enumerate(zip(input_window_sizes, input_window_strides, strict=True)):
        most = 1 + (extent - 1) // abs(stride)
        if output_tensor.sizes[i] > most:
            why = f"what a window of {extent} has with stride {stride}"
            yield "output_tensor", f".Sizes[{i}]: {output_tensor.sizes[i]}; must be at most {most}, {why}"


@rule("JOIN", parts="InputTensors", whole="OutputTensor")
@rule("SPLIT", parts="OutputTensors", whole="InputTensor")
def parts_of_whole(parts: tuple[TensorDesc, ...], whole: TensorDesc, axis: int) -> Broken:
    """The parts have the sizes of the whole but along the axis, where they add up to it."""
    expected = replaced(whole.sizes, axis, None)
    for i, part in enumerate(parts):
        message = sizes_message(part, expected, "the other tensor and axis given")
        if message:
            yield "parts", f"[{i}]{message}"
    total = sum(part.sizes[axis] for part in parts)
    if total != whole.sizes[axis]:
        yield (
            "whole",
            f".Sizes[{axis}]: {whole.sizes[axis]}; must be the sum of the parts along the axis, {total}",
        )


@rule("PADDING", "PADDING1")
def padded_sizes(
    input_tensor: TensorDesc,
    output_tensor: TensorDesc,
    start_padding: tuple[int, ...],
    end_padding: tuple[int, ...],
) -> Broken:
    """The output is the input and the padding at both ends. Any mode pads any size, also 1."""
    expected = tuple(map(sum, zip(input_tensor.sizes, start_padding, end_padding, strict=True)))
    yield from expect("output_tensor", output_tensor, expected, "the input and padding given")


@rule("TILE")
def tiled_sizes(input_tensor: TensorDesc, output_tensor: TensorDesc, repeats: tuple[int, ...]) -> Broken:
    """The output is the input, repeated in each dimension."""
    expected = tuple(size * count for size, count in zip(input_tensor.sizes, repeats, strict=True))
    yield from expect("output_tensor", output_tensor, expected, "the input and repeats given")


@rule("UPSAMPLE_2D")
def upsampled_sizes(input_tensor: TensorDesc, output_tensor: TensorDesc, scale_size: Size2D) -> Broken:
    """ScaleSize multiplies height and width, the last two sizes."""
    *leading, height, width = input_tensor.sizes
    expected = (*leading, height * scale_size.height, width * scale_size.width)
    yield from expect("output_tensor", output_tensor, expected, "the input and ScaleSize given")


@rule("DEPTH_TO_SPACE", "DEPTH_TO_SPACE1", depth_tensor="InputTensor", space_tensor="OutputTensor")
@rule("SPACE_TO_DEPTH", "SPACE_TO_DEPTH1", depth_tensor="OutputTensor", space_tensor="InputTensor")
def block_sizes(depth_tensor: TensorDesc, space_tensor: TensorDesc, block_size: int) -> Broken:
    """(N, C * B * B, H, W) in depth is (N, C, H * B, W * B) in space, which B must divide.

    DirectML's page of SPACE_TO_DEPTH prints the sizes of its inverse; its example shows these.
    """
    batch, channels, height, width = depth_tensor.sizes
    space: tuple[Size, ...] = (batch, None, height * block_size, width * block_size)
    yield from expect("space_tensor", space_tensor, space, "the other tensor and block size given")
    needed = space_tensor.sizes[1] * block_size**2
    if channels != needed:
        allowed = f"must be {needed}, {block_size} * {block_size} times those in space"
        yield "depth_tensor", f".Sizes[1]: {channels} channels; {allowed}"
