"""Reductions, and sums along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import opendml as dml
from opendml.frontends.torch.conversion import Conversion, NotExpressible
from opendml.frontends.torch.operators.elementwise import truth
from opendml.frontends.torch.registry import Converter, converts
from opendml.runtime.graphs.tensor import GraphTensor

_aten = torch.ops.aten


def axes_of(x: GraphTensor, dims: Sequence[int] | int | None) -> list[int]:
    """Dimensions counted from the front; all where none are said."""
    if dims is None or dims == []:
        return list(range(len(x.sizes)))
    return [axis % len(x.sizes) for axis in ([dims] if isinstance(dims, int) else dims)]


def _reduction(function: str) -> Converter:
    def convert(
        node: Conversion, x: GraphTensor, dims: Any = None, keepdim: bool = False, **options: Any
    ) -> GraphTensor:
        return dml.reduce(node.cast(x, node.dtype), function=function, axes=axes_of(x, dims))

    return convert


converts(_aten.sum.default, _aten.sum.dim_IntList)(_reduction("SUM"))
converts(_aten.mean.default, _aten.mean.dim)(_reduction("AVERAGE"))
converts(_aten.amax.default)(_reduction("MAX"))
converts(_aten.amin.default)(_reduction("MIN"))
converts(_aten.prod.default, _aten.prod.dim_int)(_reduction("MULTIPLY"))


@converts(_aten.any.default, _aten.any.dim, _aten.any.dims)
def any_of(node: Conversion, x: GraphTensor, dims: Any = None, keepdim: bool = False) -> GraphTensor:
    """Whether an element is not 0."""
    return dml.reduce(truth(node, x, node.given(0).dtype), function="MAX", axes=axes_of(x, dims))


@converts(_aten.all.default, _aten.all.dim, _aten.all.dims)
def all_of(node: Conversion, x: GraphTensor, dims: Any = None, keepdim: bool = False) -> GraphTensor:
    """Whether no element is 0."""
    return dml.reduce(truth(node, x, node.given(0).dtype), function="MIN", axes=axes_of(x, dims))


@converts(_aten.argmax.default)
def argmax(node: Conversion, x: GraphTensor, dim: int | None = None, keepdim: bool = False) -> GraphTensor:
    """The number of the first of the greatest elements."""
    return dml.argmax(x, axes=axes_of(x, dim), output_type=dml.INT64)


@converts(_aten.argmin.default)
def argmin(node: Conversion, x: GraphTensor, dim: int | None = None, keepdim: bool = False) -> GraphTensor:
    """The number of the first of the smallest elements."""
    return dml.argmin(x, axes=axes_of(x, dim), output_type=dml.INT64)


@converts(_aten.cumsum.default)
def cumsum(node: Conversion, x: GraphTensor, dim: int, **options: Any) -> GraphTensor:
    """Each element and all before it, summed."""
    return dml.cumulative_summation(node.cast(x, node.dtype), axis=dim % len(x.sizes))


@converts(_aten.cumprod.default)
def cumprod(node: Conversion, x: GraphTensor, dim: int, **options: Any) -> GraphTensor:
    """Each element and all before it, multiplied."""
    return dml.cumulative_product(node.cast(x, node.dtype), axis=dim % len(x.sizes))


@converts(_aten.max.dim)
def max_along(
    node: Conversion, x: GraphTensor, dim: int, keepdim: bool = False
) -> tuple[GraphTensor, GraphTensor]:
    """The greatest elements along a dimension, and the numbers of the first ones."""
    axes = axes_of(x, dim)
    return dml.reduce(x, function="MAX", axes=axes), dml.argmax(x, axes=axes, output_type=dml.INT64)


@converts(_aten.min.dim)
def min_along(
    node: Conversion, x: GraphTensor, dim: int, keepdim: bool = False
) -> tuple[GraphTensor, GraphTensor]:
    """The smallest elements along a dimension, and the numbers of the first ones."""
    axes = axes_of(x, dim)
    return dml.reduce(x, function="MIN", axes=axes), dml.argmin(x, axes=axes, output_type=dml.INT64)


@converts(_aten.var.correction)
def variance(
    node: Conversion,
    x: GraphTensor,
    dims: Any = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> GraphTensor:
    """The mean of the squared distances from the mean, over the number of elements less a correction."""
    return _spread(x, axes_of(x, dims), correction)[0]


@converts(_aten.var_mean.correction)
def variance_and_mean(
    node: Conversion,
    x: GraphTensor,
    dims: Any = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> tuple[GraphTensor, GraphTensor]:
    """Both."""
    return _spread(x, axes_of(x, dims), correction)


def _spread(x: GraphTensor, axes: list[int], correction: float | None) -> tuple[GraphTensor, GraphTensor]:
    count = 1
    for axis in axes:
        count *= x.sizes[axis]
    left = count - (1 if correction is None else correction)
    if left <= 0:
        raise NotExpressible(f"a variance of {count} elements, {left} of which count")
    center = dml.reduce(x, function="AVERAGE", axes=axes)
    spread = dml.reduce(dml.element_wise_difference_square(x, center), function="AVERAGE", axes=axes)
    return spread if left == count else dml.element_wise_multiply(spread, count / left), center


@converts(_aten.linalg_vector_norm.default)
def vector_norm(
    node: Conversion, x: GraphTensor, ord: float = 2, dims: Any = None, keepdim: bool = False, **options: Any
) -> GraphTensor:
    """The sum of magnitudes, or the root of the sum of squares."""
    functions = {1: "L1", 2: "L2"}
    if ord not in functions:
        raise NotExpressible(f"a norm of order {ord}")
    return dml.reduce(node.cast(x, node.dtype), function=functions[int(ord)], axes=axes_of(x, dims))


@converts(_aten.topk.default)
def topk(
    node: Conversion, x: GraphTensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[GraphTensor, GraphTensor]:
    """The greatest or the smallest elements in their order, and their numbers."""
    direction = "DECREASING" if largest else "INCREASING"
    found = dml.top_k1(x, axis=dim % len(x.sizes), k=k, axis_direction=direction)
    return found[0], found[1]
