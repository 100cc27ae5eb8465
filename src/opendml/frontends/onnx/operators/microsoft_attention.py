"""Attention of ONNX Runtime's own domain: projections, masks of all shapes, states of earlier runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result, numpy_type
from opendml.frontends.onnx.node import MICROSOFT
from opendml.frontends.onnx.operators.microsoft_quantized import float_product
from opendml.frontends.onnx.operators.views import permuted, shaped
from opendml.frontends.onnx.registry import converts
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType


@dataclass(frozen=True)
class Heads:
    """What attention works on.

    Args:
        query, key, value: [batch, sequence, heads of one size each].
        count: of heads.
        past: keys and values of earlier runs, [batch, heads, sequence, size].
    """

    query: GraphTensor
    key: GraphTensor
    value: GraphTensor
    count: int
    past: tuple[GraphTensor, GraphTensor] | None = None

    @property
    def past_length(self) -> int:
        return self.past[0].sizes[2] if self.past else 0

    @property
    def scores(self) -> tuple[int, int, int, int]:
        """The sizes of what softmax takes."""
        batch, rows, _ = self.query.sizes
        return batch, self.count, rows, self.past_length + self.key.sizes[1]


def attended(
    node: Conversion, heads: Heads, mask: int, bias: int
) -> tuple[GraphTensor, GraphTensor, GraphTensor]:
    """The output, and the keys and values up to here.

    Args:
        mask, bias: the numbers of the inputs that hide keys and that are added to the scores.
    """
    size = heads.query.sizes[2] // heads.count
    scale = node.attribute("scale", 0.0) or 1 / math.sqrt(size)
    past = heads.past or (None, None)
    result = dml.multihead_attention(
        heads.query,
        heads.key,
        heads.value,
        relative_position_bias=_added_to_scores(node, heads, mask, bias),
        past_key=past[0],
        past_value=past[1],
        scale=scale,
        head_count=heads.count,
        mask_type="NONE",
        output_present_key=True,
        output_present_value=True,
    )
    key, value = result.output_present_key, result.output_present_value
    assert key is not None
    assert value is not None
    return result.output, key, value


def _added_to_scores(node: Conversion, heads: Heads, mask: int, bias: int) -> GraphTensor | None:
    """What is added before softmax; None: nothing."""
    batch, count, rows, columns = heads.scores
    parts = []
    if node.has(bias):
        parts.append(node.tensor(bias, 4))
    if node.has(mask):
        parts.append(_hiding(node, mask, heads))
    if node.attribute("unidirectional", 0):
        type = numpy_type(heads.query)
        seen = np.tri(rows, columns, columns - rows, dtype=bool)
        parts.append(node.constant(np.where(seen, 0, np.finfo(type).min)[None, None], type))
    if not parts:
        return None
    total = parts[0]
    for each in parts[1:]:
        total = dml.element_wise_add(total, each)
    if any(given not in (1, size) for given, size in zip(total.sizes, heads.scores, strict=True)):
        raise NotExpressible(f"masks and biases of sizes {list(total.sizes)} for {list(heads.scores)}")
    return repeated(total, (batch, count, rows, columns))


def _hiding(node: Conversion, number: int, heads: Heads) -> GraphTensor:
    """`mask_filter_value` where a mask hides a key, else 0; of four dimensions."""
    sizes, (batch, _, rows, columns) = node.sizes(number), heads.scores
    mask = dml.cast(node.tensor(number), output_type=TensorDataType.INT32)
    places = node.constant(np.arange(columns).reshape(1, 1, 1, -1), np.int32)
    if sizes == (batch,):
        seen = dml.element_wise_logical_less_than(places, shaped(mask, (batch, 1, 1, 1)))
    elif sizes == (2 * batch,):
        ends, starts = (shaped(each, (batch, 1, 1, 1)) for each in dml.split(mask, axis=0, sizes=[batch] * 2))
        seen = dml.element_wise_logical_and(
            dml.element_wise_logical_less_than(places, ends),
            dml.element_wise_logical_greater_than_or_equal(places, starts),
        )
    elif sizes in ((batch, columns), (batch, rows, columns)):
        given = shaped(mask, (batch, 1, rows if len(sizes) == 3 else 1, columns))
        seen = dml.element_wise_logical_greater_than(given, 0)
    else:
        raise NotExpressible(f"a mask of sizes {list(sizes)} for scores of {list(heads.scores)}")
    hidden = node.constant(
        np.full((1, 1, 1, 1), node.attribute("mask_filter_value", -10000.0)), numpy_type(heads.query)
    )
    return dml.element_wise_if(seen, 0.0, hidden)


def _require_plain(node: Conversion, *unknown: int) -> None:
    """Raises NotExpressible for what has no mapping."""
    for name in ("do_rotary", "past_present_share_buffer"):
        if node.attribute(name, 0):
            raise NotExpressible(f"{name} {node.attribute(name, 0)}")
    for number in unknown:
        if node.has(number):
            raise NotExpressible(f"input {number}")


def _past(node: Conversion, number: int) -> tuple[GraphTensor, GraphTensor] | None:
    """Keys and values of earlier runs, which lie in one tensor."""
    if not node.has(number) or 0 in node.sizes(number):
        return None
    if len(node.sizes(number)) != 5 or node.sizes(number)[0] != 2:
        raise NotExpressible(f"past of sizes {list(node.sizes(number))}")
    sizes = node.sizes(number)[1:]
    keys, values = dml.split(node.tensor(number), axis=0, sizes=[1, 1])
    return shaped(keys, sizes), shaped(values, sizes)


def _with_present(node: Conversion, projected: GraphTensor, sizes: list[int], mask: int, past: int) -> Result:
    """Attention of queries, keys and values that lie in one tensor; the state in one, too."""
    count = node.required("num_heads")
    query, key, value = dml.split(projected, axis=2, sizes=sizes)
    heads = Heads(query, key, value, count, _past(node, past))
    output, keys, values = attended(node, heads, mask, 5 if mask == 3 else node.input_count)
    if not node.wants(1):
        return (output,)
    stacked = dml.join([shaped(each, (1, *each.sizes)) for each in (keys, values)], axis=0)
    return output, stacked


@converts("Attention", domain=MICROSOFT)
def attention(node: Conversion) -> Result:
    """Queries, keys and values are projected from one input."""
    _require_plain(node, 6)
    batch, length, size = node.sizes(0)
    width = node.sizes(1)[1]
    given: list[int] = node.attribute("qkv_hidden_sizes", [])
    sizes = given or [width // 3] * 3
    if len(sizes) != 3 or sum(sizes) != width or min(sizes) < 1:
        raise NotExpressible(f"qkv_hidden_sizes {sizes} of weights of {list(node.sizes(1))}")
    bias = repeated(node.tensor(2), (batch * length, width)) if node.has(2) else None
    projected = dml.gemm(shaped(node.tensor(0), (batch * length, size)), node.tensor(1), bias)
    return _with_present(node, shaped(projected, (batch, length, width)), sizes, mask=3, past=4)


@converts("QAttention", domain=MICROSOFT)
def quantized_attention(node: Conversion) -> Result:
    """The same with a projection of quantized numbers."""
    _require_plain(node)
    batch, length, size = node.sizes(0)
    width = node.sizes(1)[1]
    columns = {number: (1, 1, math.prod(node.sizes(number))) for number in (2, 4, 7) if node.has(number)}
    projected = float_product(
        (
            shaped(node.tensor(0), (1, batch * length, size)),
            shaped(node.tensor(3), (1, 1, 1)),
            shaped(node.tensor(6), (1, 1, 1)) if node.has(6) else None,
        ),
        (
            shaped(node.tensor(1), (1, size, width)),
            shaped(node.tensor(4), columns[4]),
            shaped(node.tensor(7), columns[7]) if node.has(7) else None,
        ),
        shaped(node.tensor(2), columns[2]),
    )
    return _with_present(node, shaped(projected, (batch, length, width)), [width // 3] * 3, mask=5, past=8)


@converts("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(node: Conversion) -> Result:
    """Queries, keys and values are given: apart, or in one tensor."""
    _require_plain(node, 8, 9)
    count = node.required("num_heads")
    query, key, value = _given(node, count)
    if node.has(3):
        query, key, value = _biased(node, query, key, value)
    past = None
    if node.has(6) and 0 not in node.sizes(6):
        past = node.tensor(6), node.tensor(7)
    output, keys, values = attended(node, Heads(query, key, value, count, past), 4, 5)
    return output, keys, values


def _given(node: Conversion, count: int) -> tuple[GraphTensor, GraphTensor, GraphTensor]:
    """Queries, keys and values of three dimensions."""
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
    if len(node.sizes(1)) == 4:
        return query, _in_rows(key), _in_rows(value)
    return query, key, value


def _flat(stacked: GraphTensor) -> GraphTensor:
    """One of [batch, sequence, heads, 1, size] in three dimensions."""
    batch, length, heads, _, size = stacked.sizes
    return shaped(stacked, (batch, length, heads * size))


def _in_rows(heads: GraphTensor) -> GraphTensor:
    """[batch, heads, sequence, size] as [batch, sequence, heads * size]."""
    batch, count, length, size = heads.sizes
    return shaped(permuted(heads, (0, 2, 1, 3)), (batch, length, count * size))


def _biased(
    node: Conversion, query: GraphTensor, key: GraphTensor, value: GraphTensor
) -> tuple[GraphTensor, GraphTensor, GraphTensor]:
    """With the bias of the projection; keys and values that earlier runs made have theirs already."""
    sizes = [query.sizes[2], key.sizes[2], value.sizes[2]]
    if node.sizes(3) != (sum(sizes),):
        raise NotExpressible(f"a bias of sizes {list(node.sizes(3))} for {sizes}")
    parts = [shaped(each, (1, 1, *each.sizes)) for each in dml.split(node.tensor(3), axis=0, sizes=sizes)]
    given = (query, key, value)
    if node.has(1) and len(node.sizes(1)) == 4:
        return dml.element_wise_add(query, parts[0]), key, value
    first, second, third = (dml.element_wise_add(*pair) for pair in zip(given, parts, strict=True))
    return first, second, third
