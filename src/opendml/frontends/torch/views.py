"""Operators of PyTorch that compute nothing: they see the memory of a tensor in other sizes and strides."""

from __future__ import annotations

from torch.fx import Node

_NAMES = (
    "alias.default as_strided.default detach.default diagonal.default expand.default permute.default "
    "select.int slice.Tensor squeeze.default squeeze.dim squeeze.dims t.default transpose.int "
    "unsqueeze.default view.default _unsafe_view.default"
)
_VIEWS = frozenset(f"aten.{name}" for name in _NAMES.split())


def is_view(node: Node) -> bool:
    """Return whether the result is the first argument's memory."""
    return str(node.target) in _VIEWS


def base_of(node: Node) -> tuple[Node, list[Node]]:
    """Return what a node is a view of, and the views on the way to it, in their order."""
    views = []
    while is_view(node):
        views.append(node)
        node = node.all_input_nodes[0]
    return node, views[::-1]
