"""Operands of element-wise operators: in one type, and with one number of dimensions."""

from __future__ import annotations

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
from torch.fx import Node

from opendml.frontends.torch.conversion import Conversion
from opendml.runtime.graphs.tensor import GraphTensor

Operand = GraphTensor | float


def operands(node: Conversion, *values: Operand, dtype: torch.dtype | None = None) -> list[Operand]:
    """Tensors in a type (None: the output's), and with as many dimensions; calls repeat what has size 1.
    Numbers remain numbers."""
    type = node.dtype if dtype is None else dtype
    tensors = [node.cast(each, type) for each in values if isinstance(each, GraphTensor)]
    aligned = iter(with_rank(*tensors))
    return [
        next(aligned)
        if isinstance(each, GraphTensor)
        else (float(each) if type.is_floating_point else int(each))
        for each in values
    ]


def with_rank(*tensors: GraphTensor) -> list[GraphTensor]:
    """Tensors with as many dimensions as the one with the most, new ones in front."""
    rank = max(len(each.sizes) for each in tensors)
    return [_filled_up(each, rank) for each in tensors]


def common_type(node: Conversion) -> torch.dtype:
    """The type in which PyTorch compares the arguments."""
    values = [each.meta["val"] if isinstance(each, Node) else each for each in node.node.args]
    numbers = [each for each in values if isinstance(each, torch.Tensor | bool | int | float)]
    found: torch.dtype = elementwise_dtypes(
        *numbers, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
    )[1]
    return found


def _filled_up(tensor: GraphTensor, rank: int) -> GraphTensor:
    missing = rank - len(tensor.sizes)
    return tensor.reinterpret([1] * missing + list(tensor.sizes)) if missing > 0 else tensor
