"""Elements in another order: transposed, repeated, joined, cut, padded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import index
from typing import NamedTuple

import numpy as np

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import joined, permuted
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.conversion import NotRunnable, OnnxConversion, Result
from opendml.frontends.onnx.registry import Converter, converts
from opendml.frontends.onnx.values import Array, carrier_of
from opendml.program.sizes import are_same, hint_of
from opendml.runtime.graphs.tensor import GraphTensor


@converts("Transpose", to="ELEMENT_WISE_IDENTITY")
def transpose(node: OnnxConversion) -> Result:
    """Convert Transpose. Without an order the dimensions are reversed."""
    sizes, order = node.sizes(0), node.attribute("perm")
    order = list(reversed(range(len(sizes)))) if order is None else order
    if sorted(order) != list(range(len(sizes))):
        raise NotExpressible(f"perm {order} is no order of {len(sizes)} dimensions")
    tensor = permuted(node.moved(0), order) if order else node.moved(0)
    return node.result(tensor, [sizes[axis] for axis in order], node.type(0))


@converts("Tile", since=6, to="TILE")
def tile(node: OnnxConversion) -> Result:
    """Convert Tile to strides of 0, which need no operator."""
    sizes, repeats = node.sizes(0), node.known_list(1)
    if len(repeats) != len(sizes):
        raise NotExpressible(f"{len(repeats)} repeats of {len(sizes)} dimensions")
    wanted = [size * count for size, count in zip(sizes, repeats, strict=True)]
    tensor = node.moved(0)
    for axis, count in enumerate(repeats):
        if count != 1:
            tensor = _tiled(tensor, axis, count)
    return node.result(tensor, wanted, node.type(0))


def _tiled(tensor: GraphTensor, axis: int, count: int) -> GraphTensor:
    """Repeat a tensor along one dimension: as a matrix whose rows are read several times."""
    rows, row = math.prod(tensor.sizes[:axis]), math.prod(tensor.sizes[axis:])
    sizes = list(tensor.sizes)
    sizes[axis] *= count
    return tensor.reinterpret([rows, count, row], strides=[row, 0, 1]).reinterpret(sizes)


@converts("Concat", since=4, to="JOIN")
def concat(node: OnnxConversion) -> Result:
    """Convert Concat. Inputs without elements add none."""
    numbers = range(node.input_count)
    sizes, axis = list(node.sizes(0)), node.axis(node.required("axis"), len(node.sizes(0)))
    for other in map(node.sizes, numbers):
        if (*other[:axis], *other[axis + 1 :]) != (*sizes[:axis], *sizes[axis + 1 :]) or len(other) != len(
            sizes
        ):
            raise NotExpressible(f"sizes {list(other)} beside {sizes} along axis {axis}")
    sizes[axis] = sum(node.sizes(number)[axis] for number in numbers)
    parts = [node.moved(number) for number in numbers if 0 not in node.sizes(number)]
    return node.result(joined(parts, axis), sizes, node.type(0))


@converts("Split", since=2, to="SPLIT")
def split(node: OnnxConversion) -> Result:
    """Convert Split into parts of the sizes given, or equal ones, of which the last may be smaller."""
    count, sizes, type = len(node.node.outputs), node.sizes(0), node.type(0)
    axis = node.axis_attribute()
    given = node.listed("split", 1, since=13)
    if given is None:
        each = -(-sizes[axis] // count)
        given = [max(0, min(each, sizes[axis] - number * each)) for number in range(count)]
    if sum(given) != sizes[axis] or len(given) != count or any(size < 0 for size in given):
        raise NotRunnable(f"parts {given} for {count} outputs of {sizes[axis]} elements")
    whole = [size for size in given if size]
    parts = iter(dml.split(node.moved(0), axis=axis, sizes=whole) if len(whole) > 1 else [node.moved(0)])
    found = [(*sizes[:axis], size, *sizes[axis + 1 :]) for size in given]
    return tuple(node.empty(each) if 0 in each else node.result(next(parts), each, type) for each in found)


@converts("Slice", to="SLICE1")
def slices(node: OnnxConversion) -> Result:
    """Convert Slice. Before version 10 its bounds are attributes, and it has no steps."""
    names = enumerate(("starts", "ends", "axes", "steps"), 1)
    starts, ends, axes, steps = (node.listed(name, number, since=10) for number, name in names)
    if starts is None or ends is None:
        raise NotExpressible("starts or ends are missing")
    return _sliced(node, starts, ends, axes, steps)


@converts("Crop", to="SLICE")
def crop(node: OnnxConversion) -> Result:
    """Convert Crop, an experimental operator: pictures without borders."""
    left, top, right, bottom = node.required("border")
    sizes = node.sizes(0)
    height, width = node.attribute("scale") or (sizes[2] - top - bottom, sizes[3] - left - right)
    return _sliced(node, [top, left], [top + height, left + width], [2, 3], None)


def _sliced(
    node: OnnxConversion,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None,
    steps: Sequence[int] | None,
) -> Result:
    sizes, type = node.sizes(0), node.type(0)
    slices = [IndexRange(0, size) for size in sizes]
    axes = range(len(starts)) if axes is None else axes
    for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(starts), strict=True):
        axis = node.axis(axis, len(sizes))
        if step == 0:
            raise NotExpressible("a step of 0")
        slices[axis] = slice_range(start, end, index(step), sizes[axis])
    wanted = [each.length for each in slices]
    if 0 in wanted:
        return node.empty(wanted)
    # A slice that is whole for some sizes alone stays a slice, without a guard.
    if not sizes or (are_same(tuple(wanted), tuple(sizes)) and all(each.step > 0 for each in slices)):
        return node.result(node.moved(0), sizes, type)
    return node.result(_window(node.moved(0), slices), wanted, type)


class IndexRange(NamedTuple):
    """Indices, a step apart from each other. Its numbers may be sizes that change."""

    first: int
    length: int
    step: int = 1

    @property
    def indices(self) -> range:
        """The indices, of plain numbers."""
        return range(self.first, self.first + self.length * self.step, self.step)


def slice_range(start: int, end: int, step: int, size: int) -> IndexRange:
    """Return the indices of a slice. A start in front of all elements is moved to the first, backwards too,
    where Python finds nothing."""
    start, end = (each + size if each < 0 else each for each in (start, end))
    if step > 0:
        first, last = min(max(start, 0), size), min(max(end, 0), size)
    else:
        first, last = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return IndexRange(first, max(0, -((first - last) // step)), step)


def _window(tensor: GraphTensor, slices: Sequence[IndexRange]) -> GraphTensor:
    """Return the elements of which each index lies in its range."""
    return dml.slice1(
        tensor,
        input_window_offsets=[each.first + min(0, (each.length - 1) * each.step) for each in slices],
        input_window_sizes=[(each.length - 1) * abs(each.step) + 1 for each in slices],
        input_window_strides=[each.step if each.step == 1 or each.length > 1 else 1 for each in slices],
        sizes=[each.length for each in slices],
    )


_PADDING_MODES = {"constant": "CONSTANT", "edge": "EDGE", "reflect": "REFLECTION", "wrap": "WRAP"}


@converts("Pad", since=2, to="PADDING1")
def pad(node: OnnxConversion) -> Result:
    """Convert Pad along some axes. Before version 11, pads and a float are attributes."""
    rank, pads = len(node.sizes(0)), node.listed("pads", 1, since=11)
    value = np.zeros(1, node.type(0))
    if node.version < 11:
        value[:] = node.attribute("value")
    elif node.has(2) and node.known(2).size:
        value = node.known(2).reshape(-1)[:1]
    axes = node.known_list(3) if node.has(3) else range(rank)
    if pads is None or len(pads) != 2 * len(axes):
        raise NotExpressible(f"{len(pads or ())} pads for {len(axes)} axes")
    full = [0] * (2 * rank)
    for number, each in enumerate(axes):
        axis = node.axis(each, rank)
        full[axis], full[axis + rank] = pads[number], pads[number + len(axes)]
    return _padded(node, full, value)


def _padded(node: OnnxConversion, pads: Sequence[int], value: Array) -> Result:
    """Pad input 0. Elements that negative pads cut off go first."""
    sizes, type = node.sizes(0), node.type(0)
    mode = _PADDING_MODES.get(node.attribute("mode"))
    before, after = pads[: len(sizes)], pads[len(sizes) :]
    if mode is None or len(pads) != 2 * len(sizes):
        raise NotExpressible(f"mode {node.attribute('mode')}, {len(pads)} pads")
    wanted = [size + a + b for size, a, b in zip(sizes, before, after, strict=True)]
    cut = [(max(0, -a), max(0, -b)) for a, b in zip(before, after, strict=True)]
    kept = [IndexRange(a, size - a - b) for size, (a, b) in zip(sizes, cut, strict=True)]
    if not all(each.length > 0 for each in kept) or not sizes:
        raise NotExpressible(f"pads {list(pads)} leave nothing of sizes {list(sizes)}")
    tensor = node.moved(0) if all(each >= 0 for each in pads) else _window(node.moved(0), kept)
    if any(each > 0 for each in pads):
        tensor = dml.padding1(
            tensor,
            padding_mode=mode,
            padding_value=value.astype(type).view(carrier_of(type)).reshape(()).item(),
            start_padding=[max(0, each) for each in before],
            end_padding=[max(0, each) for each in after],
        )
    return node.result(tensor, wanted, type)


def _blocks(function: Callable[..., GraphTensor]) -> Converter:
    def convert(node: OnnxConversion) -> Result:
        sizes, block = node.sizes(0), node.required("blocksize")
        if len(sizes) != 4 or block < 1:
            raise NotExpressible(f"blocksize {block} of {len(sizes)} dimensions")
        is_deep = function is dml.depth_to_space1
        divided, by = (sizes[1:2], block * block) if is_deep else (sizes[2:], block)
        if any(size % by for size in divided):
            what = "channels must be a multiple" if is_deep else "height and width must be multiples"
            raise NotRunnable(
                f"blocksize {block} of an input of sizes {list(map(hint_of, sizes))}: {what} of {by}"
            )
        order = "COLUMN_ROW_DEPTH" if node.attribute("mode") == "CRD" else "DEPTH_COLUMN_ROW"
        moved = function(node.moved(0), block_size=block, order=order)
        return node.result(moved, None, node.type(0))

    return convert


converts("DepthToSpace", to=dml.depth_to_space1)(_blocks(dml.depth_to_space1))
converts("SpaceToDepth", to=dml.space_to_depth1)(_blocks(dml.space_to_depth1))


@converts("ReverseSequence", to="REVERSE_SUBSEQUENCES")
def reverse_sequence(node: OnnxConversion) -> Result:
    """Convert ReverseSequence, which reverses each sequence up to its length."""
    batch, time, given = node.attribute("batch_axis"), node.attribute("time_axis"), node.sizes(0)
    sizes = [given[axis] if axis == batch else 1 for axis in range(len(given))]
    lengths = dml.cast(node.tensor(1), output_type="UINT64").reinterpret(sizes)
    strides = [int(axis == batch) for axis in range(len(given))]
    wanted = [1 if axis == time else size for axis, size in enumerate(given)]
    spread = lengths.reinterpret(wanted, strides=strides)
    return node.result(dml.reverse_subsequences(node.moved(0), spread, axis=time), None, node.type(0))


@converts("Trilu", to="DIAGONAL_MATRIX1")
def trilu(node: OnnxConversion) -> Result:
    """Convert Trilu: one side of the diagonals of matrices, 0 on the other."""
    sizes = node.sizes(0)
    if len(sizes) < 2:
        raise NotExpressible(f"{len(sizes)} dimensions; matrices have two")
    rows, columns = sizes[-2:]
    offset = max(-rows, min(node.known_integer(1) if node.has(1) else 0, columns))
    begin, end = (-rows, offset) if node.flag("upper") else (offset + 1, columns + 1)
    if begin >= end:
        return node.reshaped(sizes)
    matrices = node.moved(0).reinterpret([math.prod(sizes[:-2]), rows, columns])
    value = dml.diagonal_matrix1(matrices, value=0, diagonal_fill_begin=begin, diagonal_fill_end=end)
    return node.result(value, sizes, node.type(0))


@converts("Col2Im", to="FOLD")
def col2im(node: OnnxConversion) -> Result:
    """Convert Col2Im, which adds blocks up to pictures."""
    image, block = node.known_list(1), node.known_list(2)
    batch, rows, _ = node.sizes(0)
    count = len(image)
    pads = node.list_attribute("pads", 2 * count, 0)
    return dml.fold(
        node.tensor(0),
        window_sizes=block,
        strides=node.list_attribute("strides", count),
        dilations=node.list_attribute("dilations", count),
        start_padding=pads[:count],
        end_padding=pads[count:],
        sizes=[batch, rows // math.prod(block), *image],
    )
