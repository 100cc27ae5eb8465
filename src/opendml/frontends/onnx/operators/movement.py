"""Elements in another order: transposed, repeated, joined, cut, padded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, NotRunnable, Result
from opendml.frontends.onnx.operators.views import permuted
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import Array, Computed, Known, carrier_of
from opendml.runtime.graphs.tensor import GraphTensor


@converts("Transpose")
def transpose(node: Conversion) -> Result:
    """The dimensions in the order given, or reversed."""
    sizes = node.sizes(0)
    order = node.attribute("perm", list(reversed(range(len(sizes)))))
    if sorted(order) != list(range(len(sizes))):
        raise NotExpressible(f"perm {order} is no order of {len(sizes)} dimensions")
    tensor = permuted(node.moved(0), order) if order else node.moved(0)
    return node.result(tensor, [sizes[axis] for axis in order], node.type(0))


@converts("Tile", since=6)
def tile(node: Conversion) -> Result:
    """Repeated along each dimension."""
    sizes, repeats = node.sizes(0), node.known_list(1)
    if len(repeats) != len(sizes):
        raise NotExpressible(f"{len(repeats)} repeats of {len(sizes)} dimensions")
    wanted = [size * count for size, count in zip(sizes, repeats, strict=True)]
    if 0 in wanted:
        return node.empty(wanted, node.type(0))
    tensor = node.moved(0)
    for axis, count in enumerate(repeats):
        if count != 1:
            tensor = _tiled(tensor, axis, count)
    return node.result(tensor, wanted, node.type(0))


def _tiled(tensor: GraphTensor, axis: int, count: int) -> GraphTensor:
    """A tensor repeated along one dimension: as a matrix whose rows are read several times."""
    row = int(np.prod(tensor.sizes[axis:]))
    rows = int(np.prod(tensor.sizes[:axis]))
    sizes = list(tensor.sizes)
    sizes[axis] *= count
    return tensor.reinterpret([rows, count, row], strides=[row, 0, 1]).reinterpret(sizes)


@converts("Concat", since=4)
def concat(node: Conversion) -> Result:
    """Inputs without elements add none."""
    numbers = range(node.input_count)
    sizes, type = list(node.sizes(0)), node.type(0)
    axis = node.axis(node.required("axis"), len(sizes))
    for number in numbers[1:]:
        other = node.sizes(number)
        if len(other) != len(sizes) or any(
            a != b for i, (a, b) in enumerate(zip(sizes, other, strict=True)) if i != axis
        ):
            raise NotExpressible(f"sizes {list(other)} beside {list(node.sizes(0))} along axis {axis}")
    sizes[axis] = sum(node.sizes(number)[axis] for number in numbers)
    if 0 in sizes:
        return node.empty(sizes, type)
    parts = [node.moved(number) for number in numbers if 0 not in node.sizes(number)]
    return node.result(parts[0] if len(parts) == 1 else dml.join(parts, axis=axis), sizes, type)


@converts("Split", since=2)
def split(node: Conversion) -> Result:
    """Parts of the sizes given, or equal ones; the last one may be smaller."""
    count, sizes = len(node.node.outputs), node.sizes(0)
    axis = node.axis(node.attribute("axis", 0), len(sizes))
    if node.version >= 13:
        given = node.known_list(1) if node.has(1) else None
    else:
        given = node.attribute("split", None)
    if given is None:
        part = -(-sizes[axis] // count)
        given = [max(0, min(part, sizes[axis] - index * part)) for index in range(count)]
    if sum(given) != sizes[axis] or len(given) != count or min(given) < 0:
        raise NotRunnable(f"parts {given} for {count} outputs of {sizes[axis]} elements")
    whole = [part for part in given if part]
    parts = iter(dml.split(node.moved(0), axis=axis, sizes=whole) if len(whole) > 1 else [node.moved(0)])
    results: list[Computed | Known] = []
    for size in given:
        found = (*sizes[:axis], size, *sizes[axis + 1 :])
        results.append(
            node.result(next(parts), found, node.type(0)) if size else node.empty(found, node.type(0))
        )
    return tuple(results)


@converts("Slice")
def slice_by_attributes(node: Conversion) -> Result:
    """Every element between starts and ends."""
    starts, ends = node.required("starts"), node.required("ends")
    return _sliced(node, starts, ends, node.attribute("axes", None), None)


@converts("Slice", since=10)
def slice_by_inputs(node: Conversion) -> Result:
    """Every so manieth element between starts and ends, backwards too."""
    axes, steps = (node.known_list(number) if node.has(number) else None for number in (3, 4))
    return _sliced(node, node.known_list(1), node.known_list(2), axes, steps)


def _sliced(
    node: Conversion,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None,
    steps: Sequence[int] | None,
) -> Result:
    sizes, type = node.sizes(0), node.type(0)
    ranges = [range(size) for size in sizes]
    axes = range(len(starts)) if axes is None else axes
    for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(starts), strict=True):
        axis = node.axis(axis, len(sizes))
        if step == 0:
            raise NotExpressible("a step of 0")
        ranges[axis] = slice_range(start, end, step, sizes[axis])
    wanted = [len(each) for each in ranges]
    if 0 in wanted:
        return node.empty(wanted, type)
    if not sizes or (wanted == list(sizes) and all(each.step > 0 for each in ranges)):
        return node.result(node.moved(0), sizes, type)
    return node.result(_window(node.moved(0), ranges), wanted, type)


def slice_range(start: int, end: int, step: int, size: int) -> range:
    """The indices of a slice. A start in front of all elements is moved to the first, backwards too, where
    Python finds nothing."""
    start, end = (each + size if each < 0 else each for each in (start, end))
    if step > 0:
        return range(min(max(start, 0), size), min(max(end, 0), size), step)
    return range(min(max(start, 0), size - 1), min(max(end, -1), size - 1), step)


def _window(tensor: GraphTensor, ranges: Sequence[range]) -> GraphTensor:
    """The elements of which each index lies in its range."""
    return dml.slice1(
        tensor,
        input_window_offsets=[min(each) for each in ranges],
        input_window_sizes=[max(each) - min(each) + 1 for each in ranges],
        input_window_strides=[each.step if len(each) > 1 else 1 for each in ranges],
        sizes=[len(each) for each in ranges],
    )


_PADDING_MODES = {"constant": "CONSTANT", "edge": "EDGE", "reflect": "REFLECTION", "wrap": "WRAP"}


@converts("Pad", since=2)
def pad_by_attributes(node: Conversion) -> Result:
    """With a float, or with what lies inside."""
    return _padded(node, node.required("pads"), np.array(node.attribute("value", 0.0), node.type(0)))


@converts("Pad", since=11)
def pad_by_inputs(node: Conversion) -> Result:
    """With a value of the input's type, or with what lies inside, along some axes."""
    rank, pads = len(node.sizes(0)), node.known_list(1)
    value = node.known(2).reshape(-1)[:1] if node.has(2) else np.zeros(1, node.type(0))
    axes = node.known_list(3) if node.has(3) else range(rank)
    if len(pads) != 2 * len(axes):
        raise NotExpressible(f"{len(pads)} pads for {len(axes)} axes")
    full = [0] * (2 * rank)
    for index, each in enumerate(axes):
        axis = node.axis(each, rank)
        full[axis], full[axis + rank] = pads[index], pads[index + len(axes)]
    return _padded(node, full, np.zeros(1, node.type(0)) if value.size == 0 else value)


def _padded(node: Conversion, pads: Sequence[int], value: Array) -> Result:
    """What negative pads cut off goes first."""
    sizes, type = node.sizes(0), node.type(0)
    mode = _PADDING_MODES.get(node.attribute("mode", "constant"))
    before, after = pads[: len(sizes)], pads[len(sizes) :]
    if mode is None or len(pads) != 2 * len(sizes):
        raise NotExpressible(f"mode {node.attribute('mode', 'constant')}, {len(pads)} pads")
    wanted = [size + a + b for size, a, b in zip(sizes, before, after, strict=True)]
    if 0 in wanted:
        return node.empty(wanted, type)
    if mode != "CONSTANT" and min(pads, default=0) < 0:
        raise NotExpressible(f"negative pads in mode {mode}")
    kept = [range(max(0, -a), size - max(0, -b)) for size, a, b in zip(sizes, before, after, strict=True)]
    if not all(kept) or not sizes:
        raise NotExpressible(f"pads {list(pads)} leave nothing of sizes {list(sizes)}")
    tensor = node.moved(0)
    if min(pads) < 0:
        tensor = _window(tensor, kept)
    if max(pads) <= 0:
        return node.result(tensor, wanted, type)
    padded = dml.padding1(
        tensor,
        padding_mode=mode,
        padding_value=value.astype(type).view(carrier_of(type)).reshape(()).item(),
        start_padding=[max(0, each) for each in before],
        end_padding=[max(0, each) for each in after],
    )
    return node.result(padded, wanted, type)


@converts("Crop")
def crop(node: Conversion) -> Result:
    """An experimental operator of old models: pictures without borders."""
    left, top, right, bottom = node.required("border")
    sizes = node.sizes(0)
    height, width = node.attribute("scale", [sizes[2] - top - bottom, sizes[3] - left - right])
    return _sliced(node, [top, left], [top + height, left + width], [2, 3], None)


@converts("DepthToSpace")
def depth_to_space(node: Conversion) -> Result:
    """Channels become blocks of pixels."""
    order = "COLUMN_ROW_DEPTH" if node.attribute("mode", "DCR") == "CRD" else "DEPTH_COLUMN_ROW"
    block = node.required("blocksize")
    moved = dml.depth_to_space1(node.moved(0), block_size=block, order=order)
    return node.result(moved, None, node.type(0))


@converts("SpaceToDepth")
def space_to_depth(node: Conversion) -> Result:
    """Blocks of pixels become channels."""
    order = "COLUMN_ROW_DEPTH" if node.attribute("mode", "DCR") == "CRD" else "DEPTH_COLUMN_ROW"
    moved = dml.space_to_depth1(node.moved(0), block_size=node.required("blocksize"), order=order)
    return node.result(moved, None, node.type(0))


@converts("ReverseSequence")
def reverse_sequence(node: Conversion) -> Result:
    """Each sequence reversed up to its length."""
    batch, time = node.attribute("batch_axis", 1), node.attribute("time_axis", 0)
    sizes = [1] * len(node.sizes(0))
    sizes[batch] = node.sizes(0)[batch]
    lengths = dml.cast(node.tensor(1), output_type=dml.UINT64).reinterpret(sizes)
    strides = [1 if axis == batch else 0 for axis in range(len(sizes))]
    wanted = [1 if axis == time else size for axis, size in enumerate(node.sizes(0))]
    reversed_ = dml.reverse_subsequences(
        node.moved(0), lengths.reinterpret(wanted, strides=strides), axis=time
    )
    return node.result(reversed_, None, node.type(0))


@converts("Trilu")
def trilu(node: Conversion) -> Result:
    """One side of the diagonals of matrices, 0 on the other."""
    sizes, type = node.sizes(0), node.type(0)
    if len(sizes) < 2:
        raise NotExpressible(f"{len(sizes)} dimensions; matrices have two")
    offset = node.known_list(1)[0] if node.has(1) else 0
    rows, columns = sizes[-2:]
    upper = bool(node.attribute("upper", 1))
    offset = max(-rows, min(offset, columns))
    begin, end = (-rows, offset) if upper else (offset + 1, columns + 1)
    if begin >= end:
        return node.result(node.moved(0), sizes, type)
    matrices = node.moved(0).reinterpret([int(np.prod(sizes[:-2])), rows, columns])
    value = dml.diagonal_matrix1(matrices, value=0, diagonal_fill_begin=begin, diagonal_fill_end=end)
    return node.result(value, sizes, type)


@converts("Col2Im")
def col2im(node: Conversion) -> Result:
    """Blocks added up to pictures."""
    image, block = node.known_list(1), node.known_list(2)
    batch, rows, _ = node.sizes(0)
    pads = node.attribute("pads", [0] * (2 * len(image)))
    folded = dml.fold(
        node.tensor(0),
        window_sizes=block,
        strides=node.attribute("strides", [1] * len(image)),
        dilations=node.attribute("dilations", [1] * len(image)),
        start_padding=pads[: len(image)],
        end_padding=pads[len(image) :],
        sizes=[batch, rows // int(np.prod(block)), *image],
    )
    return node.result(folded)
