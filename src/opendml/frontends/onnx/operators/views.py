"""Tensors of a graph seen in another way: transposed, repeated, with axes in front. No operators."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opendml.runtime.graphs.tensor import GraphTensor


def packed_strides(sizes: Sequence[int]) -> list[int]:
    """Elements from one index to the next, per dimension, of a tensor without gaps."""
    return [math.prod(sizes[dimension + 1 :]) for dimension in range(len(sizes))]


def permuted(tensor: GraphTensor, order: Sequence[int]) -> GraphTensor:
    """The tensor transposed: dimension i of the result is dimension order[i]."""
    if list(order) == list(range(len(tensor.sizes))):
        return tensor
    strides = packed_strides(tensor.sizes)
    sizes = [tensor.sizes[each] for each in order]
    return tensor.reinterpret(sizes, strides=[strides[each] for each in order])


def repeated(tensor: GraphTensor, sizes: Sequence[int]) -> GraphTensor:
    """The tensor repeated to `sizes`, as NumPy broadcasts."""
    if tuple(sizes) == tuple(tensor.sizes):
        return tensor
    missing = len(sizes) - len(tensor.sizes)
    steps = zip(tensor.sizes, packed_strides(tensor.sizes), strict=True)
    strides = [0] * missing + [0 if size == 1 else step for size, step in steps]
    return tensor.reinterpret(sizes, strides=strides)


def shaped(tensor: GraphTensor, sizes: Sequence[int]) -> GraphTensor:
    """The tensor in other sizes; none stand for one element."""
    wanted = tuple(sizes) or (1,)
    return tensor if wanted == tuple(tensor.sizes) else tensor.reinterpret(wanted)


def along(tensor: GraphTensor, axis: int, rank: int) -> GraphTensor:
    """A tensor of one dimension as one of `rank` dimensions, of size 1 but for `axis`."""
    sizes = [1] * rank
    sizes[axis] = math.prod(tensor.sizes)
    return shaped(tensor, sizes)
