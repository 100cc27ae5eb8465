"""Rotary embeddings, and attention with shared heads of keys and values, of ONNX Runtime's own domain."""

from __future__ import annotations

import math

import numpy as np

from opendml.frontends.common.attention import attend, in_rows, rotate
from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import permuted, rows_of, shaped, widened
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.conversion import OnnxConversion, Result, numpy_type
from opendml.frontends.onnx.registry import MICROSOFT, converts
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor


def _rotated(
    node: OnnxConversion, heads: GraphTensor, tables: tuple[int, int], places: GraphTensor, flag: str
) -> GraphTensor:
    """Rotate pairs of elements.

    Args:
        heads: [batch, sequence, heads, size].
        tables: the numbers of the inputs with cosines and sines.
        places: the rows of the tables, [batch, sequence].
        flag: the attribute that tells whether the elements of a pair are neighbours.
    """
    batch, length = places.sizes
    if 2 * node.sizes(tables[0])[1] > heads.sizes[3]:
        raise NotExpressible(f"angles of {node.sizes(tables[0])[1]} pairs for {heads.sizes[3]} elements")
    angles = [rows_of(node.tensor(number), places) for number in tables]
    cosine, sine = (shaped(each, (batch, length, 1, each.sizes[2])) for each in angles)
    return rotate(heads, cosine, sine, node.flag(flag))


def _last(node: OnnxConversion, length: int) -> GraphTensor:
    """Return the last of some positions, [1, 1]. A number in a graph would not change with sizes."""
    return shaped(node.sequence(length, np.int32)[::-1][:1], (1, 1))


def _following(node: OnnxConversion, first: GraphTensor, batch: int, length: int) -> GraphTensor:
    """Return the positions from the first of each row of the batch on, [batch, sequence]."""
    return repeated(first, (batch, 1)) + shaped(node.sequence(length, np.int32), (1, length))


@converts("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(node: OnnxConversion) -> Result:
    """Convert RotaryEmbedding, which rotates pairs of elements by the angle of their position."""
    if node.attribute("scale") != 1.0 or node.flag("is_packed_batching"):
        raise NotExpressible("scale or is_packed_batching")
    tensor, sizes = node.tensor(0), node.sizes(0)
    if len(sizes) == 4:
        heads = permuted(tensor, (0, 2, 1, 3))
    else:
        size = 2 * node.sizes(2)[1]
        if node.flag("rotary_embedding_dim"):
            size = sizes[2] // node.required("num_heads")
        if len(sizes) != 3 or sizes[2] % size:
            raise NotExpressible(f"heads of {size} elements in {list(sizes)}")
        heads = shaped(tensor, (*sizes[:2], sizes[2] // size, size))
    batch, length = heads.sizes[:2]
    places = dml.cast(node.tensor(1), output_type="INT32")
    if math.prod(places.sizes) == 1 and len(node.sizes(1)) < 2:
        places = _following(node, shaped(places, (1, 1)), batch, length)
    elif node.sizes(1) != (batch, length):
        raise NotExpressible(f"positions of sizes {list(node.sizes(1))} for {list(sizes)}")
    result = _rotated(node, heads, (2, 3), places, "interleaved")
    return node.result(permuted(result, (0, 2, 1, 3)) if len(sizes) == 4 else shaped(result, sizes))


@converts("GroupQueryAttention", domain=MICROSOFT, to="MULTIHEAD_ATTENTION1")
def group_query_attention(node: OnnxConversion) -> Result:
    """Convert GroupQueryAttention, which is causal.

    Keys and values of earlier runs lie in front of the new ones, for each row of the batch at its own length.
    """
    _require_plain(node)
    count, shared = node.required("num_heads"), node.required("kv_num_heads")
    if shared < 1 or count % shared:
        raise NotExpressible(f"{count} heads share {shared}")
    query, key, value = _heads(node, count, shared)
    batch, length = query.sizes[:2]
    total = node.known_integer(6)
    before = node.constant(np.zeros((batch, 1)), np.int32)
    if total != length:
        before = shaped(dml.cast(node.tensor(5), output_type="INT32"), (batch, 1)) - _last(node, length)
    if node.flag("do_rotary"):
        if node.has(9):
            places = repeated(dml.cast(node.tensor(9), output_type="INT32"), (batch, length))
        else:
            places = _following(node, before, batch, length)
        query, key = (_rotated(node, each, (7, 8), places, "rotary_interleaved") for each in (query, key))
    keys, values = (_kept(node, *each, before, total) for each in ((key, 3), (value, 4)))
    output = _attended(
        node, query, keys[:, :, :total], values[:, :, :total], _bias(node, query, before, total)
    )
    return output, keys, values


def _require_plain(node: OnnxConversion) -> None:
    for number, name in ((11, "head_sink"), (12, "k_scale"), (13, "v_scale"), (14, "q_norm_weight")):
        if node.has(number):
            raise NotExpressible(f"{name} has no mapping")
    if node.wants(3) or node.flag("sliding_window_cache") or node.attribute("smooth_softmax") == 1:
        raise NotExpressible("output_qk, sliding_window_cache or smooth_softmax")
    if not node.flag("causal"):
        raise NotExpressible("causal 0")


def _heads(node: OnnxConversion, count: int, shared: int) -> list[GraphTensor]:
    """Return queries, keys and values as [batch, sequence, heads, size]."""
    query, (batch, length, width) = node.tensor(0), node.sizes(0)
    if node.has(1):
        given, size = [query, node.tensor(1), node.tensor(2)], width // count
    else:
        size = width // (count + 2 * shared)
        given = list(dml.split(query, axis=2, sizes=[count * size, shared * size, shared * size]))
    wanted = [(batch, length, heads, size) for heads in (count, shared, shared)]
    if any(math.prod(each.sizes) != math.prod(sizes) for each, sizes in zip(given, wanted, strict=True)):
        raise NotExpressible(f"{count} heads over {shared} in sizes {[list(each.sizes) for each in given]}")
    return [shaped(each, sizes) for each, sizes in zip(given, wanted, strict=True)]


def _kept(
    node: OnnxConversion, new: GraphTensor, number: int, before: GraphTensor, total: int
) -> GraphTensor:
    """Return keys or values behind those of earlier runs, [batch, heads, sequence, size]."""
    fresh = permuted(new, (0, 2, 1, 3))
    batch, heads, length, size = fresh.sizes
    if not node.has(number) or 0 in node.sizes(number):
        if total == length:
            return fresh
        raise NotExpressible(f"no past in front of {length} of {total} positions")
    old = node.tensor(number)
    if old.data_type != fresh.data_type or (*old.sizes[:2], old.sizes[3]) != (batch, heads, size):
        raise NotExpressible(
            f"past of {old.data_type.name} and sizes {list(old.sizes)} for {list(fresh.sizes)}"
        )
    first = total - length
    if batch == 1 and old.sizes[2] == first:
        return dml.join([old, fresh], axis=2)
    if batch == 1 and old.sizes[2] >= total:
        behind = [old[:, :, total:]] if old.sizes[2] > total else []
        return dml.join([*([old[:, :, :first]] if first else []), fresh, *behind], axis=2)
    rows = old.sizes[2] if old.sizes[2] >= total else total
    after, last = shaped(node.sequence(rows, np.int32), (1, rows)) - before, _last(node, length)
    newer = dml.element_wise_min(dml.element_wise_max(after, 0), last)
    older = shaped(node.sequence(rows + length, np.int32)[length:], (1, rows))
    older = dml.element_wise_min(older, _last(node, length + old.sizes[2]))
    is_new = dml.element_wise_logical_and(after >= 0, after <= last)
    which = shaped(dml.element_wise_if(is_new, newer, older), (batch, 1, rows, 1))
    return dml.gather_nd1(
        dml.join([fresh, old], axis=2),
        repeated(which, (batch, heads, rows, 1)),
        input_dimension_count=4,
        indices_dimension_count=4,
        batch_dimension_count=2,
    )


def _bias(node: OnnxConversion, query: GraphTensor, before: GraphTensor, total: int) -> GraphTensor | None:
    """Return what is added to the scores: the lowest number where a key is hidden, else the bias.

    None: no key is hidden, and there is no bias.
    """
    batch, length, count = query.sizes[:3]
    type, window = numpy_type(query), node.attribute("local_window_size")
    if batch == 1:
        if length == 1 and window <= 0 and not node.has(10):
            return None
        # Places are counted from the ends, because numbers in a graph do not change with sizes.
        ends = (node.sequence(each, np.int32)[::-1] for each in (length, total))
        own, behind = (
            shaped(each, sizes)
            for each, sizes in zip(ends, ((1, 1, length, 1), (1, 1, 1, total)), strict=True)
        )
        away = own - behind
    else:
        own, keys = (node.sequence(each, np.int32) for each in (length, total))
        away = (
            shaped(keys, (1, 1, 1, total)) - shaped(own, (1, 1, length, 1)) - shaped(before, (batch, 1, 1, 1))
        )
    seen = away <= 0
    if window > 0:
        seen = dml.element_wise_logical_and(seen, away > -window)
    hidden = node.constant(np.full((1, 1, 1, 1), np.finfo(type).min), type)
    added = dml.element_wise_if(seen, node.tensor(10, 4) if node.has(10) else 0.0, hidden)
    return repeated(added, (batch, count, length, total))


def _attended(
    node: OnnxConversion, query: GraphTensor, keys: GraphTensor, values: GraphTensor, bias: GraphTensor | None
) -> GraphTensor:
    """Return attention of [batch, sequence, heads, size] over [batch, heads, sequence, size]."""
    batch, length, count, size = query.sizes
    scale, softcap = node.attribute("scale") or 1 / math.sqrt(size), node.attribute("softcap")
    if softcap:
        heads = permuted(query, (0, 2, 1, 3))
        result = attend(
            heads,
            keys,
            values,
            scale,
            bias=None if bias is None else widened(bias),
            softcap=softcap,
            hides_all=False,
        )[0]
        return in_rows(result)
    return dml.multihead_attention1(
        shaped(query, (batch, length, count * size)),
        in_rows(keys),
        in_rows(values),
        relative_position_bias=bias,
        scale=scale,
        query_head_count=count,
        key_value_head_count=keys.sizes[1],
        mask_type="NONE",
    )
