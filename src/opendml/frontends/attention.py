"""Products of attention in graphs, for the frontends of ONNX and PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import opendml as dml
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType


def wide(tensor: GraphTensor) -> GraphTensor:
    """Return FLOAT16 as FLOAT32: scores of float16 overflow, and softmax magnifies their rounding."""
    if tensor.data_type != TensorDataType.FLOAT16:
        return tensor
    return dml.cast(tensor, output_type=TensorDataType.FLOAT32)


def narrow(tensor: GraphTensor, like: GraphTensor) -> GraphTensor:
    """Return a tensor in the type of another one."""
    return tensor if tensor.data_type == like.data_type else dml.cast(tensor, output_type=like.data_type)


def shaped(tensor: GraphTensor, sizes: tuple[int, ...]) -> GraphTensor:
    """Return a tensor in other sizes."""
    return tensor if tuple(tensor.sizes) == sizes else tensor.reinterpret(sizes)


def sees_no_key(bias: GraphTensor) -> GraphTensor:
    """Return a mask of the queries that see no key, for a bias of four dimensions that is added to scores."""
    highest = dml.reduce(bias, function="MAX", axes=[3])
    lowest = highest.graph.constant(np.full([1] * 4, -np.inf, np.float32))
    return dml.element_wise_logical_equals(highest, lowest)


@dataclass(frozen=True)
class SharedHeads:
    """Heads of queries that share heads of keys and values, in consecutive groups.

    With a bias, the queries of a group are rows of one matrix, so that scores are [batch, heads, queries,
    keys]. Without a bias the heads stay apart (`is_apart`) and keys are repeated, so that the compiler can
    make one kernel of the products and the softmax.
    """

    batch: int
    heads: int
    groups: int
    is_apart: bool

    @property
    def _heads_per_group(self) -> int:
        return self.heads // self.groups

    def rows(self, tensor: GraphTensor) -> GraphTensor:
        """Return queries [batch, heads, queries, n], or weights in the sizes of `scores`, as GEMM takes
        them."""
        rows, columns = tensor.sizes[2:]
        if self.is_apart and self._heads_per_group > 1:
            return shaped(tensor, (self.batch * self.groups, self._heads_per_group, rows, columns))
        return shaped(tensor, (self.batch, self.groups, self._heads_per_group * rows, columns))

    def columns(self, tensor: GraphTensor) -> GraphTensor:
        """Return keys or values, [batch, groups, keys, n], as GEMM takes them."""
        count, size = tensor.sizes[2:]
        if self.is_apart and self._heads_per_group > 1:
            sizes = (self.batch * self.groups, self._heads_per_group, count, size)
            return tensor.reinterpret(sizes, strides=(count * size, 0, size, 1))
        return tensor

    def scores(self, product: GraphTensor, rows: int) -> GraphTensor:
        """Return the products of queries and keys in four dimensions, of which the last two are these."""
        if self.is_apart and self._heads_per_group > 1:
            return product
        return shaped(product, (self.batch, self.heads, rows, product.sizes[-1]))
