"""Reductions, and sums along a dimension."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from opendml.frontends.common.calls import dml
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.torch.registry import Converter, Tensor, TorchNode, converts


def axes_of(x: Tensor, dims: Sequence[int] | int | None) -> list[int]:
    """Return dimensions counted from the front; all where none are stated."""
    if dims is None or dims == []:
        return list(range(x.ndim))
    return [axis % x.ndim for axis in ([dims] if isinstance(dims, int) else dims)]


def _reduction(function: str, is_of_truth: bool = False) -> Converter:
    def convert(
        node: TorchNode, x: Tensor, dims: Any = None, keepdim: bool = False, **options: Any
    ) -> Tensor:
        given = node.truth(x, 0) if is_of_truth else node.cast(x)
        return dml.reduce(given, function=function, axes=axes_of(x, dims))

    return convert


def _extreme(function: Callable[..., Tensor]) -> Converter:
    def convert(node: TorchNode, x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        return function(x, axes=axes_of(x, dim), output_type="INT64")

    return convert


def _extreme_along(reduction: str, function: Callable[..., Tensor]) -> Converter:
    """Return a converter to the extreme elements along a dimension, and the numbers of the first ones."""

    def convert(node: TorchNode, x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        axes = axes_of(x, dim)
        return dml.reduce(x, function=reduction, axes=axes), function(x, axes=axes, output_type="INT64")

    return convert


def _running(function: Callable[..., Tensor]) -> Converter:
    def convert(node: TorchNode, x: Tensor, dim: int, **options: Any) -> Tensor:
        return function(node.cast(x), axis=dim % x.ndim)

    return convert


converts("sum", "sum.dim_IntList", to="REDUCE")(_reduction("SUM"))
converts("mean", "mean.dim", to="REDUCE")(_reduction("AVERAGE"))
converts("amax", to="REDUCE")(_reduction("MAX"))
converts("amin", to="REDUCE")(_reduction("MIN"))
converts("prod", "prod.dim_int", to="REDUCE")(_reduction("MULTIPLY"))
converts("any", "any.dim", "any.dims", to="REDUCE")(_reduction("MAX", is_of_truth=True))
converts("all", "all.dim", "all.dims", to="REDUCE")(_reduction("MIN", is_of_truth=True))
converts("argmax", to="ARGMAX")(_extreme(dml.argmax))
converts("argmin", to="ARGMIN")(_extreme(dml.argmin))
converts("max.dim", to="REDUCE")(_extreme_along("MAX", dml.argmax))
converts("min.dim", to="REDUCE")(_extreme_along("MIN", dml.argmin))
converts("cumsum", to="CUMULATIVE_SUMMATION")(_running(dml.cumulative_summation))
converts("cumprod", to="CUMULATIVE_PRODUCT")(_running(dml.cumulative_product))


@converts("var.correction")
def variance(
    node: TorchNode, x: Tensor, dims: Any = None, *, correction: float | None = None, **options: Any
) -> Tensor:
    """Convert the mean of the squared distances from the mean, over the count less a correction."""
    return _spread(x, axes_of(x, dims), correction)[0]


@converts("var_mean.correction")
def variance_and_mean(
    node: TorchNode, x: Tensor, dims: Any = None, *, correction: float | None = None, **options: Any
) -> tuple[Tensor, Tensor]:
    """Convert the variance and the mean."""
    return _spread(x, axes_of(x, dims), correction)


def _spread(x: Tensor, axes: list[int], correction: float | None) -> tuple[Tensor, Tensor]:
    count = math.prod(x.sizes[axis] for axis in axes)
    left = count - (1 if correction is None else correction)
    if left <= 0:
        raise NotExpressible(f"a variance of {count} elements, {left} of which count")
    center = dml.reduce(x, function="AVERAGE", axes=axes)
    spread = dml.reduce(dml.element_wise_difference_square(x, center), function="AVERAGE", axes=axes)
    return spread if left == count else spread * (count / left), center


@converts("linalg_vector_norm", to="REDUCE")
def vector_norm(
    node: TorchNode, x: Tensor, ord: float = 2, dims: Any = None, *options: Any, **keywords: Any
) -> Tensor:
    """Convert the sum of magnitudes, or the root of the sum of squares."""
    if ord not in (1, 2):
        raise NotExpressible(f"a norm of order {ord}")
    return dml.reduce(node.cast(x), function=f"L{int(ord)}", axes=axes_of(x, dims))


@converts("topk", to="TOP_K1")
def topk(
    node: TorchNode, x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """Convert the greatest or the smallest elements in their order, and their numbers."""
    direction = "DECREASING" if largest else "INCREASING"
    found = dml.top_k1(x, axis=dim % x.ndim, k=k, axis_direction=direction)
    return found[0], found[1]
