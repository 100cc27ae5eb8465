"""Decompositions of PyTorch's operators to those that are converted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions
from torch._prims_common import compute_elementwise_output_strides

from opendml.frontends.torch.layout import written_order
from opendml.frontends.torch.registry import converter_of

_aten = torch.ops.aten


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """Return PyTorch's decompositions to its core operators, but for the operators that have a mapping.

    Sums at indices are left to the kernels of PyTorch that are made for them. For 50,000 rows of 64 elements
    on two threads, `index_add` takes 1.3 ms. `index_put`, which it would become, takes 10 ms.
    """
    table = dict(core_aten_decompositions().items())
    left = {_aten.embedding_dense_backward.default, _aten.index_add.default}
    others = {name: table[name] for name in table.keys() - left if converter_of(name) is None}
    return others | {_aten.index_put.default: _sum_at_indices, _aten.native_dropout.default: _dropout}


def _dropout(x: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a dropout of which the mask alone is PyTorch's.

    It draws what PyTorch's own dropout draws on the CPU, in the order in which the elements of x lie in
    memory. It depends on no tensor, so it divides no part.
    """
    if train is False:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    if p == 1:
        return x * 0.0, torch.zeros_like(x, dtype=torch.bool)
    order = written_order(x.shape, compute_elementwise_output_strides(x))
    lying = torch.empty([x.shape[axis] for axis in order], dtype=torch.bool, device=x.device).bernoulli(1 - p)
    mask = lying.permute([order.index(axis) for axis in range(x.dim())])
    return x * mask * (1 / (1 - p)), mask


def _sum_at_indices(
    x: torch.Tensor, indices: Sequence[torch.Tensor | None], values: torch.Tensor, accumulate: bool = False
) -> torch.Tensor:
    """Return `index_put` with sums on the CPU as `index_add` of rows.

    PyTorch's `index_put` adds in the order in which threads come on the CPU, `index_add` does so on a GPU.
    """
    found = {axis: each for axis, each in enumerate(indices) if each is not None}
    is_mask = any(each.dtype in (torch.bool, torch.uint8) for each in found.values())
    if not accumulate or is_mask or x.device.type != "cpu":
        return NotImplemented
    axes, others = list(found), [axis for axis in range(x.dim()) if axis not in found]
    chosen, kept = [x.shape[axis] for axis in axes], [x.shape[axis] for axis in others]
    numbers: Any = found[axes[0]]
    if len(axes) > 1:
        numbers = 0
        for each, size in zip(torch.broadcast_tensors(*found.values()), chosen, strict=True):
            numbers = numbers * size + _counted_from_start(each, size)
    # PyTorch has the dimensions of the indices in the place of the ones that they choose from.
    before = axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0
    spread = values.expand(*kept[:before], *numbers.shape, *kept[before:])
    inner = range(before, before + numbers.dim())
    updates = spread.permute(*inner, *(axis for axis in range(spread.dim()) if axis not in inner))
    rows = x.permute(*axes, *others).reshape(math.prod(chosen), math.prod(kept))
    added = rows.index_add(0, numbers.reshape(-1), updates.reshape(numbers.numel(), math.prod(kept)))
    order = [*axes, *others]
    return added.reshape(*chosen, *kept).permute(*(order.index(axis) for axis in range(len(order))))


def _counted_from_start(indices: torch.Tensor, size: int) -> torch.Tensor:
    """Return indices counted from the start; one that is not there stands for the nearest one."""
    return torch.where(indices < 0, indices + size, indices).clamp(0, size - 1)
