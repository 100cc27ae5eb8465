"""Tensors of a graph seen in another way: transposed, with other axes. No operators."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opendml.runtime.graphs.tensor import GraphTensor


def permuted(tensor: GraphTensor, order: Sequence[int]) -> GraphTensor:
    """The tensor transposed: dimension i of the result is dimension order[i]."""
    return tensor if list(order) == list(range(len(tensor.sizes))) else tensor.permute(*order)


def shaped(tensor: GraphTensor, sizes: Sequence[int]) -> GraphTensor:
    """The tensor in other sizes; none stand for one element."""
    wanted = tuple(sizes) or (1,)
    return tensor if wanted == tuple(tensor.sizes) else tensor.reinterpret(wanted)


def along(tensor: GraphTensor, axis: int, rank: int) -> GraphTensor:
    """A tensor of one dimension as one of `rank` dimensions, of size 1 but for `axis`."""
    sizes = [1] * rank
    sizes[axis] = math.prod(tensor.sizes)
    return shaped(tensor, sizes)
