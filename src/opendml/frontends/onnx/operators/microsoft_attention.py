"""Attention of ONNX Runtime's own domain: projections, masks of all shapes, states of earlier runs."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np

from opendml.frontends.common.attention import in_rows
from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import along, shaped
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.conversion import OnnxConversion, Result, numpy_type
from opendml.frontends.onnx.operators.microsoft_quantized import float_product
from opendml.frontends.onnx.registry import MICROSOFT, converts
from opendml.late_dataclass import dataclass
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor


@dataclass(frozen=True)
class AttentionHeads:
    """The operands of attention.

    Args:
        query, key, value: [batch, sequence, heads of one size each].
        count: the number of heads.
        past: keys and values of earlier runs, [batch, heads, sequence, size].
    """

    query: GraphTensor
    key: GraphTensor
    value: GraphTensor
    count: int
    past: tuple[GraphTensor, GraphTensor] | None = None

    @property
    def scores(self) -> tuple[int, int, int, int]:
        """The sizes of what softmax takes."""
        batch, rows, _ = self.query.sizes
        past = self.past[0].sizes[2] if self.past else 0
        return batch, self.count, rows, past + self.key.sizes[1]


def _attended(
    node: OnnxConversion, heads: AttentionHeads, mask: int, bias: int
) -> tuple[GraphTensor, GraphTensor, GraphTensor]:
    """Return the output, and the keys and values up to here.

    Args:
        mask, bias: the numbers of the inputs that hide keys and that are added to the scores.
    """
    past = heads.past or (None, None)
    result = dml.multihead_attention(
        heads.query,
        heads.key,
        heads.value,
        relative_position_bias=_added_to_scores(node, heads, mask, bias),
        past_key=past[0],
        past_value=past[1],
        scale=node.attribute("scale") or 1 / math.sqrt(heads.query.sizes[2] // heads.count),
        head_count=heads.count,
        mask_type="NONE",
        output_present_key=True,
        output_present_value=True,
    )
    key, value = result.output_present_key, result.output_present_value
    assert key is not None
    assert value is not None
    return result.output, key, value


def _added_to_scores(node: OnnxConversion, heads: AttentionHeads, mask: int, bias: int) -> GraphTensor | None:
    """Return what is added before softmax; None: nothing."""
    rows, columns = heads.scores[2:]
    parts = [node.tensor(bias, 4)] if node.has(bias) else []
    if node.has(mask):
        parts.append(_hiding(node, mask, heads))
    if node.flag("unidirectional"):
        type = numpy_type(heads.query)
        seen = np.tri(rows, columns, columns - rows, dtype=bool)
        parts.append(node.constant(np.where(seen, 0, np.finfo(type).min)[None, None], type))
    if not parts:
        return None
    total = reduce(dml.element_wise_add, parts)
    if any(given not in (1, size) for given, size in zip(total.sizes, heads.scores, strict=True)):
        raise NotExpressible(f"masks and biases of sizes {list(total.sizes)} for {list(heads.scores)}")
    return repeated(total, heads.scores)


def _hiding(node: OnnxConversion, number: int, heads: AttentionHeads) -> GraphTensor:
    """Return `mask_filter_value` where a mask hides a key, else 0; of four dimensions."""
    sizes, (batch, _, rows, columns) = node.sizes(number), heads.scores
    mask = dml.cast(node.tensor(number), output_type="INT32")
    places = node.constant(np.arange(columns).reshape(1, 1, 1, -1), np.int32)
    if sizes == (batch,):
        seen = places < shaped(mask, (batch, 1, 1, 1))
    elif sizes == (2 * batch,):
        ends, starts = (shaped(each, (batch, 1, 1, 1)) for each in dml.split(mask, axis=0, sizes=[batch] * 2))
        seen = dml.element_wise_logical_and(places < ends, places >= starts)
    elif sizes in ((batch, columns), (batch, rows, columns)):
        seen = shaped(mask, (batch, 1, rows if len(sizes) == 3 else 1, columns)) > 0
    else:
        raise NotExpressible(f"a mask of sizes {list(sizes)} for scores of {list(heads.scores)}")
    hidden = np.full((1, 1, 1, 1), node.attribute("mask_filter_value"))
    return dml.element_wise_if(seen, 0.0, node.constant(hidden, numpy_type(heads.query)))


def _require_plain(node: OnnxConversion, *unknown: int) -> None:
    """Raise NotExpressible for attributes and inputs that have no mapping."""
    for name in ("do_rotary", "past_present_share_buffer"):
        if node.flag(name):
            raise NotExpressible(f"{name} {node.attribute(name)}")
    for number in unknown:
        if node.has(number):
            raise NotExpressible(f"input {number}")


def _past(node: OnnxConversion, number: int) -> tuple[GraphTensor, GraphTensor] | None:
    """Return keys and values of earlier runs, which lie in one tensor."""
    if not node.has(number) or 0 in node.sizes(number):
        return None
    if len(node.sizes(number)) != 5 or node.sizes(number)[0] != 2:
        raise NotExpressible(f"past of sizes {list(node.sizes(number))}")
    past = node.tensor(number)
    return past[0], past[1]


def _with_present(
    node: OnnxConversion, projected: GraphTensor, sizes: list[int], mask: int, past: int
) -> Result:
    """Return attention of queries, keys and values that lie in one tensor, and the state in one, too."""
    count = node.required("num_heads")
    query, key, value = dml.split(projected, axis=2, sizes=sizes)
    heads = AttentionHeads(query, key, value, count, _past(node, past))
    output, *state = _attended(node, heads, mask, 5 if mask == 3 else node.input_count)
    if not node.wants(1):
        return (output,)
    return output, dml.join([shaped(each, (1, *each.sizes)) for each in state], axis=0)


@converts("Attention", domain=MICROSOFT, to="MULTIHEAD_ATTENTION")
def attention(node: OnnxConversion) -> Result:
    """Convert Attention, whose queries, keys and values are projected from one input."""
    _require_plain(node, 6)
    batch, length, size = node.sizes(0)
    width = node.sizes(1)[1]
    sizes = node.attribute("qkv_hidden_sizes") or [width // 3] * 3
    if len(sizes) != 3 or sum(sizes) != width or min(sizes) < 1:
        raise NotExpressible(f"qkv_hidden_sizes {sizes} of weights of {list(node.sizes(1))}")
    if 0 in (batch, length) and not node.wants(1):
        return node.empty((batch, length, sizes[2]))
    bias = repeated(node.tensor(2), (batch * length, width)) if node.has(2) else None
    projected = dml.gemm(shaped(node.tensor(0), (batch * length, size)), node.tensor(1), bias)
    return _with_present(node, shaped(projected, (batch, length, width)), sizes, mask=3, past=4)


@converts("QAttention", domain=MICROSOFT, to="MULTIHEAD_ATTENTION MATRIX_MULTIPLY_INTEGER_TO_FLOAT")
def quantized_attention(node: OnnxConversion) -> Result:
    """Convert Attention with a projection of quantized numbers."""
    _require_plain(node)
    batch, length, size = node.sizes(0)
    width = node.sizes(1)[1]

    def row(number: int) -> GraphTensor | None:
        return along(node.tensor(number), 2, 3) if node.has(number) else None

    a = shaped(node.tensor(0), (1, batch * length, size)), along(node.tensor(3), 2, 3), row(6)
    b = shaped(node.tensor(1), (1, size, width)), along(node.tensor(4), 2, 3), row(7)
    projected = shaped(float_product(a, b, row(2)), (batch, length, width))
    return _with_present(node, projected, [width // 3] * 3, mask=5, past=8)


@converts("MultiHeadAttention", domain=MICROSOFT, to="MULTIHEAD_ATTENTION1")
def multi_head_attention(node: OnnxConversion) -> Result:
    """Convert MultiHeadAttention, whose queries, keys and values are given: apart, or in one tensor."""
    _require_plain(node, 8, 9)
    if node.has(2) and 0 in node.sizes(0)[:2] and not node.wants(1):
        # Values are rows, or heads of rows.
        heads, width = node.sizes(2)[1:-2], node.sizes(2)[-1]
        return node.empty((*node.sizes(0)[:2], math.prod(heads) * width))
    query, key, value = _given(node)
    if node.has(3):
        query, key, value = _biased(node, query, key, value)
    past = (node.tensor(6), node.tensor(7)) if node.has(6) and 0 not in node.sizes(6) else None
    return _attended(node, AttentionHeads(query, key, value, node.required("num_heads"), past), 4, 5)


def _given(node: OnnxConversion) -> tuple[GraphTensor, GraphTensor, GraphTensor]:
    """Return queries, keys and values of three dimensions."""
    query, rank = node.tensor(0), len(node.sizes(0))
    if rank == 5 and not node.has(1):
        first, second, third = (_flat(each) for each in dml.split(query, axis=3, sizes=[1, 1, 1]))
        return first, second, third
    if rank != 3 or not node.has(1):
        raise NotExpressible(f"queries of sizes {list(node.sizes(0))}")
    if len(node.sizes(1)) == 5 and not node.has(2):
        first, second = (_flat(each) for each in dml.split(node.tensor(1), axis=3, sizes=[1, 1]))
        return query, first, second
    key, value = node.tensor(1), node.tensor(2)
    return (query, in_rows(key), in_rows(value)) if len(node.sizes(1)) == 4 else (query, key, value)


def _flat(stacked: GraphTensor) -> GraphTensor:
    """Return [batch, sequence, heads, 1, size] in three dimensions."""
    batch, length, heads, _, size = stacked.sizes
    return shaped(stacked, (batch, length, heads * size))


def _biased(
    node: OnnxConversion, query: GraphTensor, key: GraphTensor, value: GraphTensor
) -> tuple[GraphTensor, GraphTensor, GraphTensor]:
    """Add the bias of the projection. Keys and values that earlier runs made have theirs already."""
    sizes = [query.sizes[2], key.sizes[2], value.sizes[2]]
    if node.sizes(3) != (sum(sizes),):
        raise NotExpressible(f"a bias of sizes {list(node.sizes(3))} for {sizes}")
    parts = [shaped(each, (1, 1, *each.sizes)) for each in dml.split(node.tensor(3), axis=0, sizes=sizes)]
    if node.has(1) and len(node.sizes(1)) == 4:
        return query + parts[0], key, value
    return query + parts[0], key + parts[1], value + parts[2]
