"""Operators that put elements together in other ways."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

import opendml as dml
from opendml.frontends.torch.conversion import Conversion, NotExpressible, reshaped
from opendml.frontends.torch.operators.operands import with_rank
from opendml.frontends.torch.operators.views import taken
from opendml.frontends.torch.registry import converts
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor

_aten = torch.ops.aten


@converts(_aten.cat.default)
def cat(node: Conversion, tensors: Sequence[GraphTensor], dim: int = 0) -> GraphTensor:
    """Tensors one after the other along a dimension."""
    cast = [node.cast(each, node.dtype) for each in tensors]
    return dml.join(cast, axis=dim % len(node.sizes)) if len(cast) > 1 else cast[0]


@converts(_aten.roll.default)
def roll(node: Conversion, x: GraphTensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> GraphTensor:
    """Elements moved along dimensions; what leaves at one end comes in at the other."""
    rolled = x if dims else reshaped(x, (node.given(0).numel(),))
    for shift, dim in zip(shifts, dims or (0,), strict=True):
        axis = dim % len(rolled.sizes)
        size = rolled.sizes[axis]
        if first := -shift % size:
            ends = [taken(rolled, axis, first, size - first), taken(rolled, axis, 0, first)]
            rolled = dml.join(ends, axis=axis)
    return rolled


@converts(_aten.repeat.default)
def repeat(node: Conversion, x: GraphTensor, repeats: Sequence[int]) -> GraphTensor:
    """The tensor repeated along each dimension."""
    missing = len(repeats) - len(node.given(0).shape)
    padded = reshaped(x, (1,) * missing + tuple(node.given(0).shape))
    return dml.tile(padded, repeats=list(repeats) or [1])


@converts(_aten.constant_pad_nd.default)
def pad(node: Conversion, x: GraphTensor, margins: Sequence[int], value: float = 0) -> GraphTensor:
    """A number around the elements; negative margins cut elements off."""
    start, end = _margins(x, margins)
    for axis, size in enumerate(x.sizes):
        first, last = max(0, -start[axis]), size - max(0, -end[axis])
        x = taken(x, axis, first, last - first)
    if not any(margin > 0 for margin in (*start, *end)):
        return x
    return dml.padding1(
        x,
        padding_mode="CONSTANT",
        padding_value=float(value) if node.dtype.is_floating_point else int(value),
        start_padding=[max(0, margin) for margin in start],
        end_padding=[max(0, margin) for margin in end],
    )


@converts(_aten.reflection_pad1d.default, _aten.reflection_pad2d.default, _aten.reflection_pad3d.default)
def pad_reflected(node: Conversion, x: GraphTensor, margins: Sequence[int]) -> GraphTensor:
    """The elements mirrored at the first and at the last one."""
    return _padded(x, margins, "REFLECTION")


@converts(_aten.replication_pad1d.default, _aten.replication_pad2d.default, _aten.replication_pad3d.default)
def pad_repeated(node: Conversion, x: GraphTensor, margins: Sequence[int]) -> GraphTensor:
    """The first and the last element around the others."""
    return _padded(x, margins, "EDGE")


def _padded(x: GraphTensor, margins: Sequence[int], mode: str) -> GraphTensor:
    if min(margins) < 0:
        raise NotExpressible(f"margins of {list(margins)}")
    start, end = _margins(x, margins)
    return dml.padding1(x, padding_mode=mode, start_padding=start, end_padding=end)


def _margins(x: GraphTensor, margins: Sequence[int]) -> tuple[list[int], list[int]]:
    """PyTorch's margins, of which the last dimension's come first, for each dimension: before and behind."""
    start, end = [0] * len(x.sizes), [0] * len(x.sizes)
    for number in range(len(margins) // 2):
        axis = len(x.sizes) - 1 - number
        start[axis], end[axis] = margins[2 * number], margins[2 * number + 1]
    return start, end


@converts(_aten.slice_backward.default)
def slice_backward(
    node: Conversion, gradient: GraphTensor, sizes: Sequence[int], dim: int, start: int, end: int, step: int
) -> GraphTensor:
    """The gradient at the places that were taken, 0 elsewhere."""
    axis = dim % len(sizes)
    stretch = range(sizes[axis])[start:end]
    return _put(gradient, sizes, axis, stretch.start, len(stretch), step)


@converts(_aten.select_backward.default)
def select_backward(
    node: Conversion, gradient: GraphTensor, sizes: Sequence[int], dim: int, index: int
) -> GraphTensor:
    """The gradient at the element that was taken, 0 elsewhere."""
    axis = dim % len(sizes)
    single = tuple(1 if each == axis else size for each, size in enumerate(sizes))
    return _put(reshaped(gradient, single), sizes, axis, index % sizes[axis], 1, 1)


@converts(_aten.slice_scatter.default)
def slice_scatter(
    node: Conversion,
    x: GraphTensor,
    source: GraphTensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> GraphTensor:
    """The tensor with other elements at every step-th place of a stretch of a dimension."""
    axis = dim % len(x.sizes)
    return _replaced(node, x, source, axis, range(x.sizes[axis])[start:end:step])


@converts(_aten.select_scatter.default)
def select_scatter(
    node: Conversion, x: GraphTensor, source: GraphTensor, dim: int, index: int
) -> GraphTensor:
    """The tensor with other elements at one place of a dimension."""
    axis = dim % len(x.sizes)
    first = index % x.sizes[axis]
    return _replaced(node, x, source, axis, range(first, first + 1))


def _replaced(node: Conversion, x: GraphTensor, source: GraphTensor, axis: int, places: range) -> GraphTensor:
    """The tensor with those of the source at some places of a dimension."""
    sizes = tuple(len(places) if each == axis else size for each, size in enumerate(x.sizes))
    new = repeated(node.cast(reshaped(source, sizes), node.dtype), sizes)
    if places.step == 1:
        ends = [(0, places.start), (places.stop, x.sizes[axis] - places.stop)]
        before, after = ([taken(x, axis, first, count)] if count else [] for first, count in ends)
        parts = [*before, new, *after]
        return dml.join(parts, axis=axis) if len(parts) > 1 else new
    is_replaced = np.zeros([size if each == axis else 1 for each, size in enumerate(x.sizes)], np.uint8)
    is_replaced.reshape(-1)[places] = 1
    spread = _put(new, x.sizes, axis, places.start, places.stop - places.start, places.step)
    return dml.element_wise_if(repeated(node.constant(is_replaced), tuple(x.sizes)), spread, x)


def _put(
    gradient: GraphTensor, sizes: Sequence[int], axis: int, first: int, count: int, step: int
) -> GraphTensor:
    offsets, counts, strides = [0] * len(sizes), list(sizes), [1] * len(sizes)
    offsets[axis], counts[axis], strides[axis] = first, count, step
    return dml.slice_grad(
        gradient,
        input_window_offsets=offsets,
        input_window_sizes=counts,
        input_window_strides=strides,
        sizes=list(sizes),
    )


@converts(_aten.embedding.default)
def embedding(
    node: Conversion,
    weight: GraphTensor,
    indices: GraphTensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> GraphTensor:
    """Rows of a table."""
    return _gathered(node, weight, indices, 0)


@converts(_aten.index_select.default)
def index_select(node: Conversion, x: GraphTensor, dim: int, indices: GraphTensor) -> GraphTensor:
    """Elements of a dimension by their numbers."""
    return _gathered(node, x, indices, dim % len(x.sizes))


@converts(_aten.index.Tensor, _aten._unsafe_index.Tensor)
def index(node: Conversion, x: GraphTensor, indices: Sequence[GraphTensor | None]) -> GraphTensor:
    """Elements of dimensions by their numbers. The dimensions of these stand in the place of the ones that
    they choose from; in front, if others lie between those."""
    found = {axis: each for axis, each in enumerate(indices) if each is not None}
    if any(each.data_type in (dml.UINT8, dml.INT8) for each in found.values()):
        raise NotExpressible("a mask as indices")
    axes = list(found)
    if len(axes) == 1:
        return _gathered(node, x, found[axes[0]], axes[0])
    others = [axis for axis in range(len(x.sizes)) if axis not in found]
    chosen, kept = [x.sizes[axis] for axis in axes], [x.sizes[axis] for axis in others]
    numbers = _numbers_of([node.cast(each, torch.int64) for each in found.values()], chosen)
    lines = x.permute([*axes, *others]).reinterpret([math.prod(chosen), *kept])
    gathered = _gathered(node, lines, numbers, 0)
    before = axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0
    order = [*range(1, before + 1), 0, *range(before + 1, len(gathered.sizes))]
    return gathered.permute(order)


def _numbers_of(indices: Sequence[GraphTensor], sizes: Sequence[int]) -> GraphTensor:
    """The numbers of elements in their order, of their indices in each dimension; those below 0 count from
    its end, and those out of range stand for the nearest one."""
    result: GraphTensor | None = None
    for each, size in zip(with_rank(*indices), sizes, strict=True):
        from_start = dml.element_wise_if(dml.element_wise_logical_less_than(each, 0), each + size, each)
        from_start = dml.element_wise_clip1(from_start, min=0, max=size - 1)
        result = from_start if result is None else result * size + from_start
    assert result is not None
    return result


def _gathered(node: Conversion, x: GraphTensor, indices: GraphTensor, axis: int) -> GraphTensor:
    """Elements of a dimension; the output has the sizes of the indices in its place."""
    count = 1
    for size in indices.sizes:
        count *= size
    row = reshaped(indices, (1,) * (len(x.sizes) - 1) + (count,))
    return dml.gather(x, row, axis=axis, index_dimensions=1)


@converts(_aten.gather.default)
def gather(
    node: Conversion, x: GraphTensor, dim: int, indices: GraphTensor, *, sparse_grad: bool = False
) -> GraphTensor:
    """Of each line along a dimension the elements with these numbers."""
    return dml.gather_elements(x, indices, axis=dim % len(x.sizes))


@converts(_aten.scatter.src, _aten.scatter.value)
def scatter(
    node: Conversion, x: GraphTensor, dim: int, indices: GraphTensor, updates: GraphTensor | float
) -> GraphTensor:
    """Elements of each line along a dimension replaced."""
    if not isinstance(updates, GraphTensor):
        updates = node.filled(updates, indices.sizes, node.dtype)
    elif updates.sizes != indices.sizes:
        raise NotExpressible(f"updates of sizes {list(updates.sizes)} for indices of {list(indices.sizes)}")
    return dml.scatter(x, indices, updates, axis=dim % len(x.sizes))


@converts(_aten.index_put.default)
def index_put(
    node: Conversion,
    x: GraphTensor,
    indices: Sequence[GraphTensor | None],
    values: GraphTensor,
    accumulate: bool = False,
) -> GraphTensor:
    """Elements of dimensions replaced at their numbers, or a number put wherever a mask is true."""
    if accumulate:
        raise NotExpressible("sums at indices")
    found = {axis: each for axis, each in enumerate(indices) if each is not None}
    given = [node.node.args[1][axis].meta["val"] for axis in found]
    if any(each.dtype in (torch.bool, torch.uint8) for each in given):
        return _put_where(node, x, list(found), given, list(found.values()), values)
    axes, others = list(found), [axis for axis in range(len(x.sizes)) if axis not in found]
    chosen, kept = [x.sizes[axis] for axis in axes], [x.sizes[axis] for axis in others]
    numbers = _numbers_of([node.cast(each, torch.int64) for each in found.values()], chosen)
    count = math.prod(numbers.sizes)
    before = axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0
    # PyTorch has the dimensions of the indices in the place of the ones that they choose from.
    wanted = [*kept[:before], *numbers.sizes, *kept[before:]]
    spread = repeated(with_rank(values, node.filled(0, tuple(wanted), node.dtype))[0], tuple(wanted))
    updates = spread.reinterpret([*kept[:before], count, *kept[before:]])
    updates = updates.permute([before, *(each for each in range(len(kept) + 1) if each != before)])
    lines = x.permute([*axes, *others]).reinterpret([math.prod(chosen), math.prod(kept)])
    put = dml.scatter_nd(
        lines,
        numbers.reinterpret([count, 1]),
        updates.reinterpret([count, math.prod(kept)]),
        input_dimension_count=2,
        indices_dimension_count=2,
    )
    order = [*axes, *others]
    back = [order.index(axis) for axis in range(len(order))]
    return put.reinterpret([*chosen, *kept]).permute(back)


def _put_where(
    node: Conversion,
    x: GraphTensor,
    axes: Sequence[int],
    given: Sequence[torch.Tensor],
    masks: Sequence[GraphTensor],
    values: GraphTensor,
) -> GraphTensor:
    """A number wherever a mask over the first dimensions is true."""
    if len(masks) > 1 or axes[0] or math.prod(values.sizes) != 1:
        raise NotExpressible("a mask as indices of several values")
    sizes = [*given[0].shape, *[1] * (len(x.sizes) - given[0].dim())]
    mask = repeated(masks[0].reinterpret(sizes), tuple(x.sizes))
    number = repeated(values.reinterpret([1] * len(x.sizes)), tuple(x.sizes))
    return dml.element_wise_if(mask, number, x)
