"""Attention as one operator of PyTorch's graphs (`frontends.torch.attention`)."""

from __future__ import annotations

from opendml.frontends.common.attention import attend, hiding
from opendml.frontends.common.tensors import widened, with_rank
from opendml.frontends.torch.registry import Tensor, TorchNode, converts
from opendml.program.sizes import square_root


@converts("opendml.attention.default")
def attention(
    node: TorchNode,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Tensor:
    """Convert softmax(scale * query key^T + mask) value, for each head; 0 for queries that see no key."""
    bias = None
    if mask is not None:
        four = with_rank(mask, 4)
        bias = hiding(four, is_seen=True) if node.is_truth_value(3) else widened(four)
    scale = 1 / square_root(query.sizes[3]) if scale is None else scale
    causal = 1 if is_causal and key.sizes[2] > 1 else None
    return attend(query, key, value, scale, bias=bias, causal=causal).result
