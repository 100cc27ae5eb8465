"""Elements that move without change: slices, joins, tiles, padding, blocks of depth and space."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.spec.fault import Fault
from opendml.spec.operator_desc import Size2D
from opendml.spec.rules.declared import rule, shape
from opendml.spec.rules.rule import Broken, Size, Sizes, SizeSpan, expect, replaced, sizes_fault
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.wording import dimensions


@shape("SLICE", reason="the {Sizes} given")
def sliced_sizes(sizes: tuple[int, ...]) -> Sizes:
    """The output has the slice's sizes."""
    return sizes


@rule("SLICE")
def slice_within_input(
    input_tensor: TensorDesc, offsets: tuple[int, ...], sizes: tuple[int, ...], strides: tuple[int, ...]
) -> Broken:
    """The slice lies within the input.

    A stride of 0 is refused, as DirectML's page of SLICE1 has it; that of SLICE says nothing.
    """
    slices = zip(input_tensor.sizes, offsets, sizes, strides, strict=True)
    for i, (size, offset, count, stride) in enumerate(slices):
        last = offset + (count - 1) * stride
        if last >= size:
            steps = f"the last of {count} elements in steps of {stride}"
            yield "offsets", Fault(offset, f"{steps} must be below {size}, not {last}", (i,))


@shape("SLICE1", reason="the window and strides given", is_open=True)
def windowed_sizes(input_window_sizes: tuple[int, ...], input_window_strides: tuple[int, ...]) -> Sizes:
    """The output has at most as many elements as the window, in steps of the stride."""
    steps = zip(input_window_sizes, input_window_strides, strict=True)
    counts = [1 + (extent - 1) // abs(stride) for extent, stride in steps]
    return tuple(SizeSpan(most, 1, most) for most in counts)


@rule("SLICE1", input_tensor="InputTensor")
@rule("SLICE_GRAD", input_tensor="OutputGradientTensor")
def window_within_input(
    input_tensor: TensorDesc,
    input_window_offsets: tuple[int, ...],
    input_window_sizes: tuple[int, ...],
) -> Broken:
    """The window lies within the input."""
    windows = zip(input_tensor.sizes, input_window_offsets, input_window_sizes, strict=True)
    for i, (size, offset, extent) in enumerate(windows):
        if extent > size:
            yield "input_window_sizes", Fault(extent, f"must be at most {size}, what there is", (i,))
        elif offset + extent > size:
            allowed = f"must be at most {size - extent} for a window of {extent} in {size} elements"
            yield "input_window_offsets", Fault(offset, allowed, (i,))


@rule("SLICE_GRAD")
def gradient_of_window(
    input_gradient_tensor: TensorDesc,
    input_window_sizes: tuple[int, ...],
    input_window_strides: tuple[int, ...],
) -> Broken:
    """The gradient that comes in has at most as many elements as the window, in steps of the stride."""
    expected = windowed_sizes(input_window_sizes, input_window_strides)
    yield from expect(
        "input_gradient_tensor", input_gradient_tensor, expected, "the window and strides given"
    )


@rule("JOIN", basic=True)
def equal_parts(input_tensors: tuple[TensorDesc, ...], axis: int) -> Broken:
    """The parts have equal sizes but along the axis."""
    if axis >= (rank := len(input_tensors[0].sizes)):
        yield "axis", Fault(axis, f"{{InputTensors}} have {dimensions(rank)}, numbered from 0")
        return
    yield from _parts("input_tensors", input_tensors, replaced(input_tensors[0].sizes, axis, None))


@shape("JOIN", reason="the inputs and axis given")
def joined_sizes(input_tensors: tuple[TensorDesc, ...], axis: int) -> Sizes:
    """The output has the sizes of the parts, and along the axis their sum."""
    return replaced(input_tensors[0].sizes, axis, sum(part.sizes[axis] for part in input_tensors))


@rule("SPLIT")
def parts_of_whole(input_tensor: TensorDesc, output_tensors: tuple[TensorDesc, ...], axis: int) -> Broken:
    """The parts have the sizes of the whole but along the axis, where they add up to it."""
    yield from _parts("output_tensors", output_tensors, replaced(input_tensor.sizes, axis, None))
    total, size = sum(part.sizes[axis] for part in output_tensors), input_tensor.sizes[axis]
    if total != size:
        allowed = f"must be the sum of the parts along the axis, {total}"
        yield "input_tensor", Fault(size, allowed, ("Sizes", axis))


@shape("PADDING", "PADDING1", reason="the input and padding given")
def padded_sizes(
    input_tensor: TensorDesc, start_padding: tuple[int, ...], end_padding: tuple[int, ...]
) -> Sizes:
    """The output is the input and the padding at both ends. Any mode pads any size, also 1."""
    return tuple(map(sum, zip(input_tensor.sizes, start_padding, end_padding, strict=True)))


@shape("TILE", reason="the input and repeats given")
def tiled_sizes(input_tensor: TensorDesc, repeats: tuple[int, ...]) -> Sizes:
    """The output is the input, repeated in each dimension."""
    return tuple(size * count for size, count in zip(input_tensor.sizes, repeats, strict=True))


@shape("UPSAMPLE_2D", reason="the input and {ScaleSize} given")
def upsampled_sizes(input_tensor: TensorDesc, scale_size: Size2D) -> Sizes:
    """ScaleSize multiplies height and width, the last two sizes."""
    *leading, height, width = input_tensor.sizes
    return (*leading, height * scale_size.height, width * scale_size.width)


@rule("DEPTH_TO_SPACE", "DEPTH_TO_SPACE1", basic=True)
def whole_blocks_of_depth(input_tensor: TensorDesc, block_size: int) -> Broken:
    """The channels are a multiple of BlockSize squared."""
    channels, block = input_tensor.sizes[1], block_size**2
    if channels % block:
        allowed = f"must be a multiple of {block} for {{BlockSize}} {block_size}"
        yield "input_tensor", Fault(f"{channels} channels", allowed, ("Sizes", 1))


@shape("DEPTH_TO_SPACE", "DEPTH_TO_SPACE1", reason="the input and block size given")
def sizes_in_space(input_tensor: TensorDesc, block_size: int) -> Sizes:
    """(N, C * B * B, H, W) in depth is (N, C, H * B, W * B) in space."""
    batch, channels, height, width = input_tensor.sizes
    return (batch, channels // block_size**2, height * block_size, width * block_size)


@rule("SPACE_TO_DEPTH", "SPACE_TO_DEPTH1", basic=True)
def whole_blocks_of_space(input_tensor: TensorDesc, block_size: int) -> Broken:
    """Height and width are multiples of BlockSize."""
    for i, size in enumerate(input_tensor.sizes[2:], 2):
        if size % block_size:
            yield (
                "input_tensor",
                Fault(size, f"must be a multiple of {{BlockSize}}, {block_size}", ("Sizes", i)),
            )


@shape("SPACE_TO_DEPTH", "SPACE_TO_DEPTH1", reason="the input and block size given")
def sizes_in_depth(input_tensor: TensorDesc, block_size: int) -> Sizes:
    """(N, C, H * B, W * B) in space is (N, C * B * B, H, W) in depth.

    DirectML's page prints the sizes of its inverse; its example shows these.
    """
    batch, channels, height, width = input_tensor.sizes
    return (batch, channels * block_size**2, height // block_size, width // block_size)


def _parts(name: str, parts: tuple[TensorDesc, ...], expected: Sequence[Size]) -> Broken:
    """Yield a fault for each part that has other sizes than the expected ones."""
    for i, part in enumerate(parts):
        if fault := sizes_fault(part, expected, "the other tensors and axis given"):
            yield name, fault.within(i)
