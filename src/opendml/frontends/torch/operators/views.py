"""Operators that see elements in other sizes and orders, or some of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from opendml.frontends.common.tensors import inverse, part, shaped
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.torch.layout import is_dense, written_order
from opendml.frontends.torch.registry import Tensor, TorchNode, converts
from opendml.runtime.graphs.repeat import repeated

_IDENTITY = "ELEMENT_WISE_IDENTITY"


@converts(
    *("reshape", "squeeze", "squeeze.dim", "squeeze.dims", "unsqueeze", "view", "_unsafe_view"), to=_IDENTITY
)
def reshape(node: TorchNode, x: Tensor, *given: Any) -> Tensor:
    """Convert the elements in their order in the output's sizes."""
    return x


@converts("permute", to=_IDENTITY)
def permute(node: TorchNode, x: Tensor, order: Sequence[int]) -> Tensor:
    """Convert the dimensions in another order."""
    return x.permute(order) if order else x


@converts("transpose.int", to=_IDENTITY)
def transpose(node: TorchNode, x: Tensor, first: int, second: int) -> Tensor:
    """Convert an exchange of two dimensions."""
    order = list(range(x.ndim))
    order[first], order[second] = order[second], order[first]
    return x.permute(order)


@converts("t", to=_IDENTITY)
def t(node: TorchNode, x: Tensor) -> Tensor:
    """Convert a transposed matrix."""
    return x.T


@converts("expand", to=_IDENTITY)
def expand(node: TorchNode, x: Tensor, sizes: Sequence[int], *, implicit: bool = False) -> Tensor:
    """Convert dimensions of size 1, and new ones, repeated."""
    return repeated(x, node.sizes or (1,))


@converts("as_strided")
def as_strided(
    node: TorchNode, x: Tensor, sizes: Sequence[int], strides: Sequence[int], offset: Any = None
) -> Tensor:
    """Convert elements by where they lie in memory, of a tensor that lies there without gaps."""
    given = node.given(0)
    if given.storage_offset() or not is_dense(given.shape, given.stride()):
        raise NotExpressible("memory with gaps, seen in other sizes and strides")
    memory = x.permute(written_order(given.shape, given.stride())) if given.shape else x
    flat = part(memory.reinterpret([given.numel()]), 0, offset or 0, given.numel() - (offset or 0))
    return flat.reinterpret(list(sizes) or [1], strides=list(strides) or [1])


@converts("as_strided_scatter")
def as_strided_scatter(
    node: TorchNode,
    x: Tensor,
    source: Tensor,
    sizes: Sequence[int],
    strides: Sequence[int],
    offset: int | None = None,
) -> Tensor:
    """Convert other elements in the whole memory of a tensor, by where they lie in it."""
    given = node.given(0)
    is_whole = given.numel() == math.prod(sizes) and not offset and not given.storage_offset()
    if not (is_whole and is_dense(sizes, strides) and is_dense(given.shape, given.stride())):
        raise NotExpressible("a part of the memory, written by where it lies")
    order = written_order(given.shape, given.stride())
    memory = source.permute(written_order(sizes, strides)) if sizes else source
    lying = shaped(memory, [given.shape[axis] for axis in order])
    return lying.permute(inverse(order)) if order else lying


def from_start(index: int, size: int) -> int:
    """Return an index of a dimension counted from its start."""
    return index + size if index < 0 else index


def stretch(size: int, count: int, start: int | None, step: int = 1) -> tuple[int, int]:
    """Return where a slice of a dimension starts, and how many elements lie between its ends.

    Args:
        size: that of the dimension.
        count: the number of elements of the slice.
        start, step: as the slice has them.
    """
    first = max(from_start(start or 0, size), 0)
    length = (count - 1) * step + 1
    if first + length > size:
        raise NotExpressible(f"a slice of {count} elements from {start} on, of {size}")
    return first, length


@converts("slice.Tensor", to="SLICE1")
def stretch_of(
    node: TorchNode, x: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Convert every step-th element of a stretch of a dimension."""
    axis = dim % x.ndim
    first, count = stretch(x.sizes[axis], node.sizes[axis], start, step)
    return part(x, axis, first, count, step)


@converts("select.int", to="SLICE1")
def select(node: TorchNode, x: Tensor, dim: int, index: int) -> Tensor:
    """Convert one element of a dimension, which goes away."""
    axis = dim % x.ndim
    return part(x, axis, from_start(index, x.sizes[axis]), 1)


@converts("split_with_sizes", to="SPLIT")
def split_with_sizes(node: TorchNode, x: Tensor, sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Convert stretches of a dimension."""
    stretches = zip(accumulate(sizes, initial=0), sizes, strict=False)
    return tuple(part(x, dim % x.ndim, first, count) for first, count in stretches)


@converts("flip", to="SLICE1")
def flip(node: TorchNode, x: Tensor, dims: Sequence[int]) -> Tensor:
    """Convert dimensions from their last element to their first."""
    flipped = {axis % x.ndim for axis in dims}
    return x[tuple(slice(None, None, -1 if axis in flipped else 1) for axis in range(x.ndim))]
