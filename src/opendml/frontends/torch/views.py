"""Operators of PyTorch that compute nothing: they see the memory of a tensor in other sizes and strides."""

from __future__ import annotations

import torch
from torch.fx import Node

_aten = torch.ops.aten

_VIEWS = frozenset(
    {
        _aten.alias.default,
        _aten.as_strided.default,
        _aten.detach.default,
        _aten.diagonal.default,
        _aten.expand.default,
        _aten.permute.default,
        _aten.select.int,
        _aten.slice.Tensor,
        _aten.squeeze.default,
        _aten.squeeze.dim,
        _aten.squeeze.dims,
        _aten.t.default,
        _aten.transpose.int,
        _aten.unsqueeze.default,
        _aten.view.default,
        _aten._unsafe_view.default,
    }
)


def is_view(node: Node) -> bool:
    """Return whether the result is the first argument's memory."""
    return node.target in _VIEWS


def base_of(node: Node) -> tuple[Node, list[Node]]:
    """Return what a node is a view of, and the views on the way to it, in their order."""
    views = []
    while is_view(node):
        views.append(node)
        node = node.all_input_nodes[0]
    return node, views[::-1]
