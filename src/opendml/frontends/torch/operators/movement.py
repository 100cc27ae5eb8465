"""Operators that put elements together in other ways."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import aligned, cast, gathered, inverse, joined, part, shaped, with_rank
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.torch.operators.views import from_start, stretch
from opendml.frontends.torch.registry import Converter, Tensor, TorchNode, converts
from opendml.runtime.graphs.repeat import repeated
from opendml.spec.enums import TensorDataType

Indices = Sequence[Tensor | None]


@converts("cat", to="JOIN")
def cat(node: TorchNode, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Convert tensors one after the other along a dimension."""
    return joined([node.cast(each) for each in tensors], dim % len(node.sizes))


@converts("roll")
def roll(node: TorchNode, x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    """Convert elements moved along dimensions; those that leave at one end come in at the other."""
    rolled = x if dims else shaped(x, [math.prod(x.sizes)])
    for shift, dim in zip(shifts, dims or (0,), strict=True):
        axis = dim % rolled.ndim
        size = rolled.sizes[axis]
        # A shift by less than a size that changes is the same for all of its sizes.
        if first := from_start(-shift, size) if abs(shift) < size else -shift % size:
            rolled = joined([part(rolled, axis, first, size - first), part(rolled, axis, 0, first)], axis)
    return rolled


@converts("repeat", to="TILE")
def repeat(node: TorchNode, x: Tensor, repeats: Sequence[int]) -> Tensor:
    """Convert the tensor repeated along each dimension."""
    return dml.tile(with_rank(x, len(repeats)), repeats=list(repeats) or [1])


@converts("constant_pad_nd", to="PADDING1")
def pad(node: TorchNode, x: Tensor, margins: Sequence[int], value: float = 0) -> Tensor:
    """Convert a number around the elements; negative margins cut elements off."""
    start, end = _margins(x, margins)
    for axis, size in enumerate(x.sizes):
        first = max(0, -start[axis])
        x = part(x, axis, first, size - max(0, -end[axis]) - first)
    if max(*start, *end) <= 0:
        return x
    return dml.padding1(
        x,
        padding_mode="CONSTANT",
        padding_value=float(value) if node.is_float else int(value),
        start_padding=[max(0, margin) for margin in start],
        end_padding=[max(0, margin) for margin in end],
    )


def _padding(mode: str) -> Converter:
    def convert(node: TorchNode, x: Tensor, margins: Sequence[int]) -> Tensor:
        if min(margins) < 0:
            raise NotExpressible(f"margins of {list(margins)}")
        start, end = _margins(x, margins)
        return dml.padding1(x, padding_mode=mode, start_padding=start, end_padding=end)

    return convert


for _name, _mode in {"reflection": "REFLECTION", "replication": "EDGE"}.items():
    converts(*(f"{_name}_pad{count}d" for count in (1, 2, 3)), to="PADDING1")(_padding(_mode))


def _margins(x: Tensor, margins: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the margins of each dimension, before and behind. PyTorch's begin with the last dimension."""
    lead = [0] * (x.ndim - len(margins) // 2)
    return lead + list(margins[::2])[::-1], lead + list(margins[1::2])[::-1]


@converts("slice_backward", to="SLICE_GRAD")
def slice_backward(
    node: TorchNode, gradient: Tensor, sizes: Sequence[int], dim: int, start: int, end: int, step: int
) -> Tensor:
    """Convert the gradient at the places that were taken, 0 elsewhere."""
    axis = dim % len(sizes)
    return _put(gradient, sizes, axis, *stretch(sizes[axis], gradient.sizes[axis], start, step), step)


@converts("select_backward")
def select_backward(node: TorchNode, gradient: Tensor, sizes: Sequence[int], dim: int, index: int) -> Tensor:
    """Convert the gradient at the element that was taken, 0 elsewhere."""
    axis = dim % len(sizes)
    single = [1 if each == axis else size for each, size in enumerate(sizes)]
    return _put(shaped(gradient, single), sizes, axis, from_start(index, sizes[axis]), 1)


@converts("slice_scatter")
def slice_scatter(
    node: TorchNode,
    x: Tensor,
    source: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Convert other elements at every step-th place of a stretch of a dimension."""
    axis = dim % x.ndim
    count = tuple(node.given(1).shape)[axis]
    return _replaced(node, x, source, axis, *stretch(x.sizes[axis], count, start, step), step)


@converts("select_scatter")
def select_scatter(node: TorchNode, x: Tensor, source: Tensor, dim: int, index: int) -> Tensor:
    """Convert other elements at one place of a dimension."""
    axis = dim % x.ndim
    return _replaced(node, x, source, axis, from_start(index, x.sizes[axis]), 1)


def _replaced(
    node: TorchNode, x: Tensor, source: Tensor, axis: int, first: int, length: int, step: int = 1
) -> Tensor:
    """Return the tensor with elements of the source at every step-th place of a stretch of a dimension."""
    count = (length - 1) // step + 1
    sizes = tuple(count if each == axis else size for each, size in enumerate(x.sizes))
    new = repeated(node.cast(shaped(source, sizes)), sizes)
    if step == 1:
        ends = [(0, first), (first + length, x.sizes[axis] - first - length)]
        before, after = ([part(x, axis, start, size)] if size else [] for start, size in ends)
        return joined([*before, new, *after], axis)
    ones = node.filled(1, sizes, new.data_type)
    is_replaced = _put(ones, x.sizes, axis, first, length, step) != 0
    return dml.element_wise_if(is_replaced, _put(new, x.sizes, axis, first, length, step), x)


def _put(gradient: Tensor, sizes: Sequence[int], axis: int, first: int, length: int, step: int = 1) -> Tensor:
    """Return elements at every step-th place of a stretch of a dimension, 0 elsewhere."""
    offsets, counts, strides = [0] * len(sizes), list(sizes), [1] * len(sizes)
    offsets[axis], counts[axis], strides[axis] = first, length, step
    return dml.slice_grad(
        gradient,
        input_window_offsets=offsets,
        input_window_sizes=counts,
        input_window_strides=strides,
        sizes=list(sizes),
    )


@converts("embedding", to="GATHER")
def embedding(node: TorchNode, weight: Tensor, indices: Tensor, *options: Any) -> Tensor:
    """Convert rows of a table."""
    return gathered(weight, indices, 0)


@converts("index_select", to="GATHER")
def index_select(node: TorchNode, x: Tensor, dim: int, indices: Tensor) -> Tensor:
    """Convert elements of a dimension by their numbers."""
    return gathered(x, indices, dim % x.ndim)


class _Indexed:
    """Elements of some dimensions of a tensor by their numbers, as lines of all other dimensions.

    PyTorch has the dimensions of the indices in the place of those that they choose from; in front, if others
    lie between these.
    """

    def __init__(self, x: Tensor, indices: Indices) -> None:
        found = {axis: each for axis, each in enumerate(indices) if each is not None}
        axes, others = list(found), [axis for axis in range(x.ndim) if axis not in found]
        self.order = [*axes, *others]
        self.chosen, self.kept = [x.sizes[axis] for axis in axes], [x.sizes[axis] for axis in others]
        self.before = axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0
        self.lines = x.permute(self.order).reinterpret([math.prod(self.chosen), *self.kept])
        self.numbers = _numbers_of([cast(each, TensorDataType.INT64) for each in found.values()], self.chosen)


@converts("index.Tensor", "_unsafe_index.Tensor")
def index(node: TorchNode, x: Tensor, indices: Indices) -> Tensor:
    """Convert elements of dimensions by their numbers."""
    found = [(axis, each) for axis, each in enumerate(indices) if each is not None]
    if any(each.data_type in (TensorDataType.UINT8, TensorDataType.INT8) for _, each in found):
        raise NotExpressible("a mask as indices")
    if len(found) == 1:
        return gathered(x, found[0][1], found[0][0])
    indexed = _Indexed(x, indices)
    taken, before = gathered(indexed.lines, indexed.numbers, 0), indexed.before
    return taken.permute([*range(1, before + 1), 0, *range(before + 1, taken.ndim)])


def _numbers_of(indices: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """Return the numbers of elements in their order, of their indices in each dimension.

    Indices below 0 count from the end, and those out of range stand for the nearest one.
    """
    result: Tensor | None = None
    for each, size in zip(aligned(*indices), sizes, strict=True):
        from_start = dml.element_wise_if(each < 0, each + size, each)
        from_start = dml.element_wise_clip1(from_start, min=0, max=size - 1)
        result = from_start if result is None else result * size + from_start
    assert result is not None
    return result


@converts("gather", to="GATHER_ELEMENTS")
def gather(node: TorchNode, x: Tensor, dim: int, indices: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Convert a choice of elements by their numbers along a dimension, for each line."""
    return dml.gather_elements(x, indices, axis=dim % x.ndim)


@converts("scatter.src", "scatter.value", to="SCATTER")
def scatter(node: TorchNode, x: Tensor, dim: int, indices: Tensor, updates: Tensor | float) -> Tensor:
    """Convert elements of each line along a dimension replaced."""
    if not isinstance(updates, Tensor):
        updates = node.filled(updates, indices.sizes, node.data_type)
    elif updates.sizes != indices.sizes:
        raise NotExpressible(f"updates of sizes {list(updates.sizes)} for indices of {list(indices.sizes)}")
    return dml.scatter(x, indices, updates, axis=dim % x.ndim)


@converts("index_put", to="SCATTER_ND")
def index_put(
    node: TorchNode, x: Tensor, indices: Indices, values: Tensor, accumulate: bool = False
) -> Tensor:
    """Convert elements of dimensions replaced at their numbers, or wherever a mask is true."""
    if accumulate:
        raise NotExpressible("sums at indices")
    axes = [axis for axis, each in enumerate(indices) if each is not None]
    given = [node.given(1, axis) for axis in axes]
    if any(str(each.dtype) in ("torch.bool", "torch.uint8") for each in given):
        return _put_where(x, axes, given[0].shape, indices[axes[0]], values)
    indexed = _Indexed(x, indices)
    numbers, before, kept = indexed.numbers, indexed.before, indexed.kept
    count, lead = math.prod(numbers.sizes), kept[:before]
    wanted = (*lead, *numbers.sizes, *kept[before:])
    spread = repeated(with_rank(values, len(wanted)), wanted)
    updates = spread.reinterpret([*lead, count, *kept[before:]])
    updates = updates.permute([before, *(each for each in range(len(kept) + 1) if each != before)])
    put = dml.scatter_nd(
        indexed.lines.reinterpret([math.prod(indexed.chosen), math.prod(kept)]),
        numbers.reinterpret([count, 1]),
        updates.reinterpret([count, math.prod(kept)]),
        input_dimension_count=2,
        indices_dimension_count=2,
    )
    return put.reinterpret([*indexed.chosen, *kept]).permute(inverse(indexed.order))


def _put_where(
    x: Tensor, axes: Sequence[int], sizes: Sequence[int], mask: Tensor | None, values: Tensor
) -> Tensor:
    """Return a number wherever a mask over the first dimensions is true."""
    if len(axes) > 1 or axes[0] or math.prod(values.sizes) != 1 or mask is None:
        raise NotExpressible("a mask as indices of several values")
    spread = repeated(shaped(mask, [*sizes, *[1] * (x.ndim - len(sizes))]), x.sizes)
    return dml.element_wise_if(spread, repeated(shaped(values, [1] * x.ndim), x.sizes), x)
