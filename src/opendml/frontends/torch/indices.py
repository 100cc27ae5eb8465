"""Indices that are out of range: moved to the nearest end, or refused (`check_indices`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from opendml.errors import InvalidArgument
from opendml.frontends.torch.symbols import packed_like
from opendml.program.sizes import is_traced

_aten = torch.ops.aten

_ALONG_AN_AXIS = (
    *(_aten.gather.default, _aten.index_add.default, _aten.index_reduce.default, _aten.index_select.default),
    *(_aten.scatter.src, _aten.scatter.value, _aten.scatter_add.default, _aten.scatter_reduce.two),
)
"""Operators that take a tensor, a dimension and indices into it."""

_IN_DIMENSIONS = frozenset({_aten.index.Tensor, _aten.index_put.default})
"""Operators that take a tensor and indices into several of its dimensions, which may count from the end."""


def with_indices_in_range(module: GraphModule) -> None:
    """Let an index that is not there stand for the nearest one where PyTorch sums at indices, too.

    So the row that an embedding has read gets the gradient.
    """
    for node in module.graph.nodes:
        if node.target is _aten.embedding_dense_backward.default:
            position, size = 1, _number_of(node.args[2])
        elif node.target is _aten.index_add.default:
            position, size = 2, _size(node.args[0], node.args[1])
        else:
            continue
        with module.graph.inserting_before(node):
            indices = node.args[position]
            is_negative = _called(module, _aten.lt.Scalar, torch.bool, indices, 0)
            from_end = _called(module, _aten.add.Tensor, None, indices, numbered(module, size))
            counted = _called(module, _aten.where.self, None, is_negative, from_end, indices)
            limits = 0, numbered(module, size - 1)
            node.update_arg(position, _called(module, _aten.clamp.default, None, counted, *limits))


def with_checked_indices(module: GraphModule) -> None:
    """Check the indices that operators take before these run."""
    for node in module.graph.nodes:
        for indices, size, least in _indices_of(node):
            with module.graph.inserting_before(node):
                name = str(node.target).rpartition(".")[0]
                limits = numbered(module, size), numbered(module, least)
                check = module.graph.call_function(checked, (indices, *limits, name))
                check.meta["val"] = indices.meta["val"]
            node.args = map_arg(node.args, lambda each: check if each is indices else each)  # noqa: B023


def checked(indices: torch.Tensor, size: int, least: int, operator: str) -> torch.Tensor:
    """Return indices after checking their range.

    Raises:
        InvalidArgument: one is below `least`, or not below `size`.
    """
    if indices.numel():
        for index in map(int, torch.aminmax(indices)):
            if not least <= index < size:
                problem = f"index {index} is out of range; must be within [{least}, {size - 1}]"
                raise InvalidArgument(f"torch.compile: {operator}: {problem}")
    return indices


def _indices_of(node: Node) -> Iterator[tuple[Node, int, int]]:
    """Yield the indices that a node takes, the size of the dimension, and the least index allowed."""
    if node.target is _aten.embedding.default:
        yield node.args[1], _size(node.args[0], 0), 0
    elif node.target in _ALONG_AN_AXIS:
        yield node.args[2], _size(node.args[0], node.args[1]), 0
    elif node.target in _IN_DIMENSIONS:
        for axis, each in enumerate(node.args[1]):
            if isinstance(each, Node) and each.meta["val"].dtype not in (torch.bool, torch.uint8):
                size = _size(node.args[0], axis)
                yield each, size, -size


def numbered(module: GraphModule, number: int) -> Any:
    """Return a number as an argument of nodes. `with_numbers` replaces the node of a traced one."""
    if not is_traced(number):
        return number
    node = module.graph.call_function(numbered)
    node.meta["val"] = number
    return node


def _number_of(argument: Any) -> int:
    """Return a number that is an argument of a node."""
    number: int = argument.meta["val"] if isinstance(argument, Node) else argument
    return number


def _size(tensor: Any, axis: Any) -> int:
    size: int = (tuple(tensor.meta["val"].shape) or (1,))[axis]
    return size


def _called(module: GraphModule, target: Any, dtype: torch.dtype | None, tensor: Node, *others: Any) -> Node:
    """Add a node whose result has the sizes of the last tensor, and its type or another one."""
    node = module.graph.call_function(target, (tensor, *others))
    like = [
        each for each in (tensor, *others) if isinstance(each, Node) and hasattr(each.meta["val"], "dtype")
    ][-1]
    node.meta["val"] = packed_like(like.meta["val"], dtype or like.meta["val"].dtype)
    return node
