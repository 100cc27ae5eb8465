"""Tensors that are the same in every run."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from opendml.frontends.torch.conversion import Conversion, numpy_type
from opendml.frontends.torch.registry import converts
from opendml.runtime.graphs.tensor import GraphTensor

_aten = torch.ops.aten


@converts(_aten.full.default, _aten.full_like.default, _aten.new_full.default)
def full(node: Conversion, like: Any, *values: Any, **options: Any) -> GraphTensor:
    """A number in all elements."""
    return node.filled(values[-1], node.sizes, node.dtype)


@converts(_aten.scalar_tensor.default)
def scalar_tensor(node: Conversion, value: float, **options: Any) -> GraphTensor:
    """A number."""
    return node.filled(value, (), node.dtype)


@converts(_aten.zeros.default, _aten.zeros_like.default, _aten.new_zeros.default)
def zeros(node: Conversion, *given: Any, **options: Any) -> GraphTensor:
    """0 in all elements."""
    return node.filled(0, node.sizes, node.dtype)


@converts(_aten.ones.default, _aten.ones_like.default, _aten.new_ones.default)
def ones(node: Conversion, *given: Any, **options: Any) -> GraphTensor:
    """1 in all elements."""
    return node.filled(1, node.sizes, node.dtype)


@converts(_aten.arange.start_step)
def arange(node: Conversion, start: float, end: float, step: float = 1, **options: Any) -> GraphTensor:
    """Numbers in equal steps."""
    count = np.arange(node.sizes[0])
    return node.constant((start + count * step).astype(numpy_type(node.dtype)))
