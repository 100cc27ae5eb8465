"""Converts attention."""

from __future__ import annotations

import math

import numpy as np
import torch

import opendml as dml
from opendml.frontends.attention import SharedHeads, narrow, sees_no_key, shaped, wide
from opendml.frontends.torch import attention as operator
from opendml.frontends.torch.conversion import Conversion
from opendml.frontends.torch.registry import converts
from opendml.runtime.graphs.tensor import GraphTensor

assert operator.attention is not None  # registers the operator


@converts(torch.ops.opendml.attention.default)
def attention(
    node: Conversion,
    query: GraphTensor,
    key: GraphTensor,
    value: GraphTensor,
    mask: GraphTensor | None,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> GraphTensor:
    """Return softmax(scale * query key^T + mask) value, for each head; 0 for queries that see no key."""
    batch, heads, rows, size = query.sizes
    columns = key.sizes[2]
    bias = None if mask is None else _bias(node, mask)
    shared = SharedHeads(batch, heads, key.sizes[1], is_apart=bias is None)
    product = dml.gemm(
        wide(shared.rows(query)),
        wide(shared.columns(key)),
        trans_b="TRANSPOSE",
        alpha=1 / math.sqrt(size) if scale is None else scale,
    )
    scores = shared.scores(product, rows)
    if bias is not None:
        scores = dml.element_wise_add(scores, bias)
    if is_causal and columns > 1:
        scores = dml.diagonal_matrix1(
            scores, value=-math.inf, diagonal_fill_begin=1, diagonal_fill_end=columns
        )
    weights = dml.activation_softmax1(scores, axes=[3])
    result = dml.gemm(shared.rows(weights), wide(shared.columns(value)))
    result = shaped(result, (batch, heads, rows, value.sizes[3]))
    if bias is not None:
        result = dml.element_wise_if(sees_no_key(bias), 0.0, result)
    return narrow(result, query)


def _bias(node: Conversion, mask: GraphTensor) -> GraphTensor:
    """Return a mask as floats of four dimensions."""
    four = shaped(mask, (*(1,) * (4 - len(mask.sizes)), *mask.sizes))
    if node.given(3).dtype is not torch.bool:
        return wide(four)
    return dml.element_wise_if(four, 0.0, node.constant(np.full([1] * 4, -np.inf, np.float32)))
