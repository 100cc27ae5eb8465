"""Elements that move without change: slices, joins, padding, tiles, blocks of depth and space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from opendml.operators.registry import defines
from opendml.program.functions import maximum, minimum, select
from opendml.program.node import Node, Number, Operation, apply, constant, counted, index
from opendml.program.scalar_type import ScalarType, counting, number_in
from opendml.program.view import (
    gathered,
    joined,
    padded,
    permuted,
    repeated,
    reshaped,
    sliced,
    whole_quotient,
)
from opendml.spec.enums import DepthSpaceOrder, PaddingMode, TensorDataType
from opendml.spec.tensor_desc import TensorDesc


@defines("SLICE", stored=True)
def slice(x: Node, *, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]) -> Node:
    """x at Offsets + i * Strides"""
    return sliced(x, offsets, sizes, strides)


@defines("SLICE1", stored=True, output=True)
def slice1(
    x: Node,
    *,
    input_window_offsets: Sequence[int],
    input_window_sizes: Sequence[int],
    input_window_strides: Sequence[int],
    output: TensorDesc,
) -> Node:
    """x at the window's start + i * InputWindowStrides

    Along a dimension with a positive stride the start is the window's first element, with a negative stride
    its last one. It does not matter what part of the window the output takes.
    """
    start = _window_start(input_window_offsets, input_window_sizes, input_window_strides)
    return sliced(x, start, output.sizes, input_window_strides)


@defines("SLICE_GRAD", stored=True, output=True)
def slice_grad(
    x: Node,
    *,
    input_window_offsets: Sequence[int],
    input_window_sizes: Sequence[int],
    input_window_strides: Sequence[int],
    output: TensorDesc,
) -> Node:
    """x at the elements that SLICE1 takes from a tensor of the output's sizes; 0 elsewhere"""
    rank = len(x.sizes)
    start = _window_start(input_window_offsets, input_window_sizes, input_window_strides)
    offsets, steps, computed = [0] * rank, [[0] * rank for _ in range(rank)], {}
    for axis, (first, stride) in enumerate(zip(start, input_window_strides, strict=True)):
        if abs(stride) == 1:
            offsets[axis], steps[axis][axis] = -first * stride, stride
        else:
            along = [size if each == axis else 1 for each, size in enumerate(output.sizes)]
            number = counted(along, -first, [int(each == axis) for each in range(rank)])
            computed[axis] = whole_quotient(number, stride)
    return gathered(x, output.sizes, computed, offsets, steps)


@defines("SPLIT", stored=True, output=True)
def split(x: Node, *, axis: int, output: Sequence[TensorDesc]) -> tuple[Node, ...]:
    """the parts of x, one after the other along the axis"""
    parts = []
    first = [0] * len(x.sizes)
    for tensor in output:
        parts.append(sliced(x, first, tensor.sizes))
        first[axis] += tensor.sizes[axis]
    return tuple(parts)


@defines("JOIN", stored=True)
def join(parts: Sequence[Node], *, axis: int) -> Node:
    """the parts, one after the other along the axis"""
    return joined(parts, axis)


@defines("PADDING", stored=True)
def padding(
    x: Node,
    *,
    padding_mode: PaddingMode,
    padding_value: Number,
    start_padding: Sequence[int],
    end_padding: Sequence[int],
) -> Node:
    """x with elements around it: PaddingValue, or those of x that PaddingMode says

    An integer tensor is padded with PaddingValue truncated, or with the nearest end of its type. Where a
    dimension has one element, every mode but CONSTANT repeats it.
    """
    return _padded(x, padding_mode, number_in(padding_value, x.type), start_padding, end_padding)


@defines("PADDING1", stored=True)
def padding1(x: Node, *, padding_value_data_type: TensorDataType, **same: Any) -> Node:
    """PADDING with a PaddingValue of the tensor's type"""
    return padding(x, **same)


@defines("TILE", stored=True)
def tile(x: Node, *, repeats: Sequence[int]) -> Node:
    """x repeated Repeats times along each dimension, one copy after the other"""
    return _tiled(x, repeats)


@defines("SPACE_TO_DEPTH", stored=True)
def space_to_depth(x: Node, *, block_size: int) -> Node:
    """SPACE_TO_DEPTH1 in the order DEPTH_COLUMN_ROW"""
    return space_to_depth1(x, block_size=block_size, order=DepthSpaceOrder.DEPTH_COLUMN_ROW)


@defines("SPACE_TO_DEPTH1", stored=True)
def space_to_depth1(x: Node, *, block_size: int, order: DepthSpaceOrder) -> Node:
    """blocks of height and width become channels. In DEPTH_COLUMN_ROW each place in a block has the channels
    of x one after the other, in COLUMN_ROW_DEPTH each channel of x has the places"""
    batch, channels, height, width = x.sizes
    rows, columns, block = height // block_size, width // block_size, block_size
    blocks = reshaped(x, (batch, channels, rows, block, columns, block))
    outer = (3, 5, 1) if order is DepthSpaceOrder.DEPTH_COLUMN_ROW else (1, 3, 5)
    return reshaped(permuted(blocks, (0, *outer, 2, 4)), (batch, channels * block * block, rows, columns))


@defines("DEPTH_TO_SPACE", stored=True)
def depth_to_space(x: Node, *, block_size: int) -> Node:
    """DEPTH_TO_SPACE1 in the order DEPTH_COLUMN_ROW"""
    return depth_to_space1(x, block_size=block_size, order=DepthSpaceOrder.DEPTH_COLUMN_ROW)


@defines("DEPTH_TO_SPACE1", stored=True)
def depth_to_space1(x: Node, *, block_size: int, order: DepthSpaceOrder) -> Node:
    """channels become blocks of height and width, the inverse of SPACE_TO_DEPTH1"""
    batch, depth, height, width = x.sizes
    block, channels = block_size, depth // (block_size * block_size)
    if order is DepthSpaceOrder.DEPTH_COLUMN_ROW:
        blocks = reshaped(x, (batch, block, block, channels, height, width))
        blocks = permuted(blocks, (0, 3, 4, 1, 5, 2))
    else:
        blocks = reshaped(x, (batch, channels, block, block, height, width))
        blocks = permuted(blocks, (0, 1, 4, 2, 5, 3))
    return reshaped(blocks, (batch, channels, height * block, width * block))


@defines("DIAGONAL_MATRIX", stored=True, output=True)
def diagonal_matrix(*, offset: int, value: float, output: TensorDesc) -> Node:
    """Value where x - y is Offset, x and y being the last two indices; 0 elsewhere

    An integer tensor gets Value truncated, or the nearest end of its type.
    """
    type = ScalarType.of(output.data_type)
    filled = apply(Operation.EQUAL, _diagonal(output.sizes), offset)
    return select(filled, constant(number_in(value, type), type), constant(0, type))


@defines("DIAGONAL_MATRIX1", stored=True, output=True)
def diagonal_matrix1(
    x: Node | None,
    *,
    value_data_type: TensorDataType,
    value: Number,
    diagonal_fill_begin: int,
    diagonal_fill_end: int,
    output: TensorDesc,
) -> Node:
    """Value on the diagonals x - y from DiagonalFillBegin to below DiagonalFillEnd, x and y being the last
    two indices; elsewhere the input, or 0. Where the begin is above the end, Value is on all diagonals but
    those from the end to below the begin"""
    type = ScalarType.of(output.data_type)
    diagonal = _diagonal(output.sizes)
    least, most = sorted((diagonal_fill_begin, diagonal_fill_end))
    # One comparison does where the fill reaches the last diagonal on one side, as in a causal mask.
    reaches_first, reaches_last = least <= 1 - output.sizes[-2], most >= output.sizes[-1]
    if reaches_last:
        within = diagonal >= least
    elif reaches_first:
        within = diagonal < most
    else:
        within = apply(Operation.AND, diagonal >= least, diagonal < most)
    fill, rest = constant(number_in(value, type), type), constant(0, type) if x is None else x
    if diagonal_fill_begin > diagonal_fill_end:
        fill, rest = rest, fill
    return select(within, fill, rest)


def _window_start(offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Return the element of a window that its first one along each dimension is of SLICE1."""
    return [
        offset + (size - 1 if stride < 0 else 0)
        for offset, size, stride in zip(offsets, sizes, strides, strict=True)
    ]


def _diagonal(sizes: Sequence[int]) -> Node:
    """Return x - y, x and y being the last two indices."""
    return index(ScalarType.INT64, sizes, 0, (*(0,) * (len(sizes) - 2), -1, 1))


def _padded(x: Node, mode: PaddingMode, fill: Number, before: Sequence[int], after: Sequence[int]) -> Node:
    if mode is PaddingMode.CONSTANT:
        return padded(x, before, after, fill)
    sizes, steps = list(x.sizes), [[0] * len(x.sizes) for _ in x.sizes]
    indices = {}
    for axis, (start, end) in enumerate(zip(before, after, strict=True)):
        if not (start or end):
            steps[axis][axis] = 1
            continue
        if max(start, end) > _most(x.sizes[axis], mode):
            x = _periodic(x, axis, start, end, mode)
        else:
            indices[axis] = _extended(x.sizes, axis, start, end, mode)
        sizes[axis] += start + end
        steps[axis][axis] = int(axis not in indices)
    return gathered(x, sizes, indices, steps=steps, inside=True) if indices else x


def _most(size: int, mode: PaddingMode) -> int | float:
    """Return the number of elements of one period of the padding of a dimension."""
    if mode is PaddingMode.EDGE or size == 1:
        return math.inf
    return size - (mode is PaddingMode.REFLECTION)


def _extended(sizes: Sequence[int], axis: int, before: int, after: int, mode: PaddingMode) -> Node:
    """Return the index of each element of a padded dimension in the input."""
    size = sizes[axis]
    along = [before + size + after if each == axis else 1 for each in range(len(sizes))]
    type = counting(2 * along[axis])

    def counted(first: int, step: int) -> Node:
        return index(type, along, first, [step * (each == axis) for each in range(len(sizes))])

    place, last = counted(-before, 1), index(type, (), size - 1, ())
    if mode is PaddingMode.EDGE or size == 1:
        return minimum(maximum(place, 0), last)
    if mode is PaddingMode.WRAP:
        behind = select(last < place, counted(-before - size, 1), place)
        return select(place < 0, counted(size - before, 1), behind)
    # The mirrors of a reflection leave out the edge that they touch.
    edge = int(mode is PaddingMode.REFLECTION)
    return minimum(maximum(place, counted(before - 1 + edge, -1)), counted(2 * size - 1 - edge + before, -1))


def _periodic(x: Node, axis: int, before: int, after: int, mode: PaddingMode) -> Node:
    """Extend x by more than its own size: repeat a part of its period."""
    size = x.sizes[axis]
    edge = int(mode is PaddingMode.REFLECTION)
    mirror = None if mode is PaddingMode.WRAP else _run(x, axis, size - 1 - edge, size - 2 * edge, -1)
    period = joined([x] if mirror is None else [x, mirror], axis)
    length = period.sizes[axis]
    first = -before % length
    total = before + size + after
    copies = [-(-(first + total) // length) if each == axis else 1 for each in range(len(x.sizes))]
    sizes = [total if each == axis else own for each, own in enumerate(x.sizes)]
    return sliced(_tiled(period, copies), [first if each == axis else 0 for each in range(len(sizes))], sizes)


def _run(x: Node, axis: int, first: int, count: int, step: int) -> Node | None:
    """Return `count` elements along an axis, from the first one in steps; None for no elements."""
    if count == 0:
        return None
    sizes = [count if each == axis else size for each, size in enumerate(x.sizes)]
    start = [first if each == axis else 0 for each in range(len(sizes))]
    return sliced(x, start, sizes, [step if each == axis else 1 for each in range(len(sizes))])


def _tiled(x: Node, copies: Sequence[int]) -> Node:
    """Repeat x along each dimension, one copy after the other."""
    pairs = list(zip(copies, x.sizes, strict=True))
    single = reshaped(x, [each for _, size in pairs for each in (1, size)])
    many = repeated(single, [each for pair in pairs for each in pair])
    return reshaped(many, [math.prod(pair) for pair in pairs])
