"""Attention as one operator in PyTorch's graphs.

PyTorch decomposes attention into products and a softmax, which scale queries and keys separately, compare
every weight with infinity, and read masks. Graphs that need no gradients have this operator instead, which is
converted as a whole. `nn.MultiheadAttention` is one call in these graphs, whose attention is replaced inside.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.nn.functional import multi_head_attention_forward, scaled_dot_product_attention


@torch.library.custom_op("opendml::attention", mutates_args=())  # type: ignore[untyped-decorator]
def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> torch.Tensor:
    """Compute `scaled_dot_product_attention` without dropout, where a graph leaves it to PyTorch."""
    return scaled_dot_product_attention(
        query, key, value, mask, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa
    ).contiguous()


@attention.register_fake  # type: ignore[untyped-decorator]
def _(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *options: Any) -> torch.Tensor:
    return query.new_empty((*query.shape[:-1], value.shape[-1]))


def with_attention(module: GraphModule) -> GraphModule:
    """Replace the attention of a graph, in place, unless it needs gradients.

    Args:
        module: as PyTorch traced it.

    Returns:
        The module.
    """
    found = [node for node in module.graph.nodes if node.target in _FUNCTIONS]
    for node in found:
        if node.target is multi_head_attention_forward:
            result, _ = node.meta.get("example_value", (None, None))
            if isinstance(result, torch.Tensor) and not result.requires_grad:
                node.target = _multi_head_attention
            continue
        arguments = _arguments(_value(node), *node.args, **node.kwargs)
        if arguments is not None:
            node.target, node.args, node.kwargs = torch.ops.opendml.attention.default, arguments, {}
    if found:
        module.recompile()
    return module


_FUNCTIONS = (scaled_dot_product_attention, multi_head_attention_forward)


def _attention_without_gradients(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    dropout: float,
    is_causal: bool,
) -> torch.Tensor:
    """Compute attention by the operator if it computes the same, else as PyTorch does."""
    arguments = _arguments(query, query, key, value, mask, dropout, is_causal)
    kind = query.device.type
    if arguments is None or (
        torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) is not query.dtype
    ):
        return scaled_dot_product_attention(query, key, value, mask, dropout, is_causal)
    result: torch.Tensor = torch.ops.opendml.attention.default(*arguments)
    return result


def _multi_head_attention(*args: Any, **kwargs: Any) -> Any:
    """Compute `multi_head_attention_forward`, with attention as the operator where it computes the same."""
    return _with_own_attention(*args, **kwargs)


# PyTorch's function finds attention among its globals, and there also itself, which it hands to modes. A mode
# would not see the call of attention, because what is inside a function runs without modes.
_with_own_attention = FunctionType(
    multi_head_attention_forward.__code__,
    {
        **multi_head_attention_forward.__globals__,
        "scaled_dot_product_attention": _attention_without_gradients,
        "multi_head_attention_forward": _multi_head_attention,
    },
    multi_head_attention_forward.__name__,
    multi_head_attention_forward.__defaults__,
)


def _arguments(
    result: Any,
    query: Node | torch.Tensor,
    key: Node | torch.Tensor,
    value: Node | torch.Tensor,
    attn_mask: Node | torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Any, ...] | None:
    """Return the arguments of the operator; None if it does not compute the same.

    The `result` tells whether gradients were asked for. Under autocast types may differ.
    """
    tensors = [_value(each) for each in (query, key, value)]
    if not all(isinstance(each, torch.Tensor) and each.dim() == 4 for each in (result, *tensors)):
        return None
    if result.requires_grad or dropout_p != 0 or (attn_mask is not None and is_causal):
        return None
    masks = [] if attn_mask is None else [_value(attn_mask)]
    typed = [*tensors, *(mask for mask in masks if mask.dtype is not torch.bool)]
    if any(each.dtype is not result.dtype for each in typed):
        return None
    queries, keys, values = (each.shape[:2] for each in tensors)
    # Sizes may be symbols, which no set takes.
    if any(each[0] != queries[0] for each in (keys, values)) or keys[1] != values[1]:
        return None
    if not enable_gqa and queries[1] != keys[1]:
        return None
    return query, key, value, attn_mask, is_causal, scale, enable_gqa


def _value(node: Node | torch.Tensor) -> Any:
    """Return the value that PyTorch traced for a node."""
    return node.meta.get("example_value") if isinstance(node, Node) else node
