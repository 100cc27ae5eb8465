"""Repeat tensors of a graph by strides of 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opendml.program.sizes import are_same, is_unit
from opendml.spec.tensor_desc import packed_strides

if TYPE_CHECKING:
    from opendml.runtime.graphs.tensor import GraphTensor


def repeated(tensor: GraphTensor, sizes: Sequence[int]) -> GraphTensor:
    """Return the tensor repeated to `sizes` by NumPy's rules of broadcasting."""
    own = tensor.sizes
    if are_same(tuple(sizes), own):
        return tensor
    strides = [0 if is_unit(size) else step for size, step in zip(own, packed_strides(own), strict=True)]
    return tensor.reinterpret(sizes, strides=[0] * (len(sizes) - len(own)) + strides)
