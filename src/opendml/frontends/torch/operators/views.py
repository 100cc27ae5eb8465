"""Operators that see elements in other sizes and orders, or some of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

import opendml as dml
from opendml.frontends.torch.conversion import Conversion, NotExpressible
from opendml.frontends.torch.layout import is_dense, written_order
from opendml.frontends.torch.registry import converts
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor

_aten = torch.ops.aten


@converts(
    _aten.reshape.default,
    _aten.squeeze.default,
    _aten.squeeze.dim,
    _aten.squeeze.dims,
    _aten.unsqueeze.default,
    _aten.view.default,
    _aten._unsafe_view.default,
)
def reshape(node: Conversion, x: GraphTensor, *given: Any) -> GraphTensor:
    """The elements in their order in the output's sizes."""
    return x


@converts(_aten.permute.default)
def permute(node: Conversion, x: GraphTensor, order: Sequence[int]) -> GraphTensor:
    """The dimensions in another order."""
    return x.permute(order) if order else x


@converts(_aten.transpose.int)
def transpose(node: Conversion, x: GraphTensor, first: int, second: int) -> GraphTensor:
    """Two dimensions change their places."""
    order = list(range(len(x.sizes)))
    order[first], order[second] = order[second], order[first]
    return x.permute(order)


@converts(_aten.t.default)
def t(node: Conversion, x: GraphTensor) -> GraphTensor:
    """A matrix transposed."""
    return x.permute(range(len(x.sizes))[::-1])


@converts(_aten.expand.default)
def expand(node: Conversion, x: GraphTensor, sizes: Sequence[int], *, implicit: bool = False) -> GraphTensor:
    """Dimensions of size 1, and new ones, repeated."""
    return repeated(x, node.sizes or (1,))


@converts(_aten.as_strided.default)
def as_strided(
    node: Conversion, x: GraphTensor, sizes: Sequence[int], strides: Sequence[int], offset: int | None = None
) -> GraphTensor:
    """Elements by where they lie in memory, of a tensor that lies there without gaps."""
    given = node.given(0)
    if given.storage_offset() or not is_dense(given.shape, given.stride()):
        raise NotExpressible("memory with gaps, seen in other sizes and strides")
    memory = x.permute(written_order(given.shape, given.stride())) if given.shape else x
    flat = taken(memory.reinterpret([given.numel()]), 0, offset or 0, given.numel() - (offset or 0))
    return flat.reinterpret(list(sizes) or [1], strides=list(strides) or [1])


@converts(_aten.as_strided_scatter.default)
def as_strided_scatter(
    node: Conversion,
    x: GraphTensor,
    source: GraphTensor,
    sizes: Sequence[int],
    strides: Sequence[int],
    offset: int | None = None,
) -> GraphTensor:
    """Other elements in the whole memory of a tensor, by where they lie in it."""
    given = node.given(0)
    is_whole = given.numel() == math.prod(sizes) and not offset and not given.storage_offset()
    if not (is_whole and is_dense(sizes, strides) and is_dense(given.shape, given.stride())):
        raise NotExpressible("a part of the memory, written by where it lies")
    order = written_order(given.shape, given.stride())
    memory = source.permute(written_order(sizes, strides)) if sizes else source
    lying = memory.reinterpret([given.shape[axis] for axis in order] or [1])
    return lying.permute([order.index(axis) for axis in range(len(order))]) if order else lying


@converts(_aten.slice.Tensor)
def slice(
    node: Conversion,
    x: GraphTensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> GraphTensor:
    """Every step-th element of a stretch of a dimension."""
    axis = dim % len(x.sizes)
    stretch = range(x.sizes[axis])[start:end]
    return taken(x, axis, stretch.start, len(stretch), step)


def taken(x: GraphTensor, axis: int, first: int, count: int, step: int = 1) -> GraphTensor:
    """Every step-th of `count` elements of a dimension, from one on."""
    if (first, count, step) == (0, x.sizes[axis], 1):
        return x
    offsets, sizes, strides = [0] * len(x.sizes), list(x.sizes), [1] * len(x.sizes)
    offsets[axis], sizes[axis], strides[axis] = first, count, step
    return dml.slice1(x, input_window_offsets=offsets, input_window_sizes=sizes, input_window_strides=strides)


@converts(_aten.select.int)
def select(node: Conversion, x: GraphTensor, dim: int, index: int) -> GraphTensor:
    """One element of a dimension, which goes away."""
    axis = dim % len(x.sizes)
    return taken(x, axis, index % x.sizes[axis], 1)


@converts(_aten.split_with_sizes.default)
def split_with_sizes(
    node: Conversion, x: GraphTensor, sizes: Sequence[int], dim: int = 0
) -> tuple[GraphTensor, ...]:
    """Stretches of a dimension."""
    firsts = [sum(sizes[:number]) for number in range(len(sizes))]
    return tuple(
        taken(x, dim % len(x.sizes), first, count) for first, count in zip(firsts, sizes, strict=True)
    )


@converts(_aten.flip.default)
def flip(node: Conversion, x: GraphTensor, dims: Sequence[int]) -> GraphTensor:
    """Dimensions from their last element to their first."""
    flipped = {axis % len(x.sizes) for axis in dims}
    return dml.slice1(
        x,
        input_window_offsets=[0] * len(x.sizes),
        input_window_sizes=list(x.sizes),
        input_window_strides=[-1 if axis in flipped else 1 for axis in range(len(x.sizes))],
    )
