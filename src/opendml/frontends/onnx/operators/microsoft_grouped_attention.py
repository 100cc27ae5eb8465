"""Rotary embeddings, and attention whose heads of queries share heads of keys and values, of ONNX Runtime's
own domain."""

from __future__ import annotations

import math

import numpy as np

import opendml as dml
from opendml.frontends.attention import narrow, wide
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result, numpy_type
from opendml.frontends.onnx.node import MICROSOFT
from opendml.frontends.onnx.operators.views import permuted, shaped
from opendml.frontends.onnx.registry import converts
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType


def _turned(heads: GraphTensor, angles: tuple[GraphTensor, GraphTensor], is_interleaved: bool) -> GraphTensor:
    """Pairs of elements turned.

    Args:
        heads: [batch, sequence, heads, size].
        angles: cosines and sines, [batch, sequence, half of what is turned]; what is behind stays.
        is_interleaved: pairs are neighbours; otherwise halves.
    """
    batch, length, count, size = heads.sizes
    half = angles[0].sizes[2]
    if 2 * half > size:
        raise NotExpressible(f"angles of {half} pairs for {size} elements")
    cosine, sine = (shaped(each, (batch, length, 1, half)) for each in angles)
    parts = [2 * half, size - 2 * half] if 2 * half < size else [size]
    turned, *rest = dml.split(heads, axis=3, sizes=parts) if len(parts) > 1 else (heads,)
    if is_interleaved:
        pairs = dml.split(shaped(turned, (batch, length, count, half, 2)), axis=4, sizes=[1, 1])
        first, second = (shaped(each, (batch, length, count, half)) for each in pairs)
    else:
        first, second = dml.split(turned, axis=3, sizes=[half, half])
    multiply = dml.element_wise_multiply
    real = dml.element_wise_subtract(multiply(first, cosine), multiply(second, sine))
    imaginary = dml.element_wise_add(multiply(second, cosine), multiply(first, sine))
    if not is_interleaved:
        return dml.join([real, imaginary, *rest], axis=3)
    both = dml.join([shaped(each, (*each.sizes, 1)) for each in (real, imaginary)], axis=4)
    flat = shaped(both, (batch, length, count, 2 * half))
    return dml.join([flat, *rest], axis=3) if rest else flat


def _angles(node: Conversion, number: int, places: GraphTensor) -> GraphTensor:
    """The rows of a table of cosines or sines for places of [batch, sequence]."""
    table, (batch, length) = node.tensor(number), places.sizes
    found = dml.gather(
        shaped(table, (1, *table.sizes)), shaped(places, (1, batch, length)), axis=1, index_dimensions=2
    )
    return shaped(found, (batch, length, table.sizes[1]))


@converts("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(node: Conversion) -> Result:
    """Pairs of elements turned by the angle of their position."""
    if node.attribute("scale", 1.0) != 1.0 or node.attribute("is_packed_batching", 0):
        raise NotExpressible("scale or is_packed_batching")
    tensor, sizes = node.tensor(0), node.sizes(0)
    if len(sizes) == 4:
        heads = permuted(tensor, (0, 2, 1, 3))
    else:
        size = 2 * node.sizes(2)[1]
        if node.attribute("rotary_embedding_dim", 0):
            size = sizes[2] // node.required("num_heads")
        if len(sizes) != 3 or sizes[2] % size:
            raise NotExpressible(f"heads of {size} elements in {list(sizes)}")
        heads = shaped(tensor, (*sizes[:2], sizes[2] // size, size))
    batch, length = heads.sizes[:2]
    places = dml.cast(node.tensor(1), output_type=TensorDataType.INT32)
    if math.prod(places.sizes) == 1 and len(node.sizes(1)) < 2:
        following = node.constant(np.arange(length)[None], np.int32)
        places = dml.element_wise_add(repeated(shaped(places, (1, 1)), (batch, length)), following)
    elif node.sizes(1) != (batch, length):
        raise NotExpressible(f"positions of sizes {list(node.sizes(1))} for {list(sizes)}")
    angles = _angles(node, 2, places), _angles(node, 3, places)
    result = _turned(heads, angles, bool(node.attribute("interleaved", 0)))
    return node.result(permuted(result, (0, 2, 1, 3)) if len(sizes) == 4 else shaped(result, sizes))


@converts("GroupQueryAttention", domain=MICROSOFT)
def group_query_attention(node: Conversion) -> Result:
    """Causal attention; the keys and values of earlier runs lie in front of the new ones, for each row of the
    batch at its own length."""
    _require_plain(node)
    count, shared = node.required("num_heads"), node.required("kv_num_heads")
    if shared < 1 or count % shared:
        raise NotExpressible(f"{count} heads share {shared}")
    query, key, value = _heads(node, count, shared)
    batch, length = query.sizes[:2]
    total = int(node.known(6).reshape(-1)[0])
    ends = shaped(dml.cast(node.tensor(5), output_type=TensorDataType.INT32), (batch, 1))
    if total == length:
        before = node.constant(np.zeros((batch, 1)), np.int32)
    else:
        before = dml.element_wise_subtract(ends, length - 1)
    if node.attribute("do_rotary", 0):
        query, key = _rotated(node, query, key, before)
    keys, values = (_kept(node, *each, before, total) for each in ((key, 3), (value, 4)))
    seen = [keys, values]
    if keys.sizes[2] > total:
        seen = [dml.slice1(each, input_window_sizes=[*each.sizes[:2], total, each.sizes[3]]) for each in seen]
    bias = _bias(node, query, before, total)
    output = _attended(node, query, seen[0], seen[1], bias)
    return output, keys, values


def _require_plain(node: Conversion) -> None:
    for number, name in ((11, "head_sink"), (12, "k_scale"), (13, "v_scale"), (14, "q_norm_weight")):
        if node.has(number):
            raise NotExpressible(f"{name} has no mapping")
    if node.wants(3) or node.attribute("sliding_window_cache", 0) or node.attribute("smooth_softmax", 0) == 1:
        raise NotExpressible("output_qk, sliding_window_cache or smooth_softmax")
    if not node.attribute("causal", 1):
        raise NotExpressible("causal 0")


def _heads(node: Conversion, count: int, shared: int) -> list[GraphTensor]:
    """Queries, keys and values as [batch, sequence, heads, size]."""
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


def _rotated(
    node: Conversion, query: GraphTensor, key: GraphTensor, before: GraphTensor
) -> tuple[GraphTensor, GraphTensor]:
    """Queries and keys turned by the angles of their positions."""
    batch, length = query.sizes[:2]
    if node.has(9):
        places = repeated(dml.cast(node.tensor(9), output_type=TensorDataType.INT32), (batch, length))
    else:
        following = node.constant(np.arange(length)[None], np.int32)
        places = dml.element_wise_add(before, following)
    angles = _angles(node, 7, places), _angles(node, 8, places)
    is_interleaved = bool(node.attribute("rotary_interleaved", 0))
    return _turned(query, angles, is_interleaved), _turned(key, angles, is_interleaved)


def _kept(node: Conversion, new: GraphTensor, number: int, before: GraphTensor, total: int) -> GraphTensor:
    """Keys or values behind those of earlier runs, [batch, heads, sequence, size]."""
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
    rows = max(old.sizes[2], total)
    places = node.constant(np.arange(rows)[None], np.int32)
    after = dml.element_wise_subtract(places, before)
    newer = dml.element_wise_add(dml.element_wise_clip(after, min=0, max=length - 1), old.sizes[2])
    older = node.constant(np.minimum(np.arange(rows), old.sizes[2] - 1)[None], np.int32)
    is_new = dml.element_wise_logical_and(
        dml.element_wise_logical_greater_than_or_equal(after, 0),
        dml.element_wise_logical_less_than(after, length),
    )
    which = shaped(dml.element_wise_if(is_new, newer, older), (batch, 1, rows, 1))
    return dml.gather_nd1(
        dml.join([old, fresh], axis=2),
        repeated(which, (batch, heads, rows, 1)),
        input_dimension_count=4,
        indices_dimension_count=4,
        batch_dimension_count=2,
    )


def _bias(node: Conversion, query: GraphTensor, before: GraphTensor, total: int) -> GraphTensor:
    """What is added to the scores: the lowest number where a key is not seen, and the bias that is given."""
    batch, length, count = query.sizes[:3]
    type, window = numpy_type(query), node.attribute("local_window_size", -1)
    distance = node.constant(np.arange(total)[None, :] - np.arange(length)[:, None], np.int32)
    away = dml.element_wise_subtract(
        shaped(distance, (1, 1, length, total)), shaped(before, (batch, 1, 1, 1))
    )
    seen = dml.element_wise_logical_less_than_or_equal(away, 0)
    if window > 0:
        near = dml.element_wise_logical_greater_than(away, -window)
        seen = dml.element_wise_logical_and(seen, near)
    hidden = node.constant(np.full((1, 1, 1, 1), np.finfo(type).min), type)
    added = dml.element_wise_if(seen, 0.0 if not node.has(10) else node.tensor(10, 4), hidden)
    return repeated(added, (batch, count, length, total))


def _attended(
    node: Conversion, query: GraphTensor, keys: GraphTensor, values: GraphTensor, bias: GraphTensor
) -> GraphTensor:
    """Attention of [batch, sequence, heads, size] over [batch, heads, sequence, size]."""
    batch, length, count, size = query.sizes
    shared, total = keys.sizes[1:3]
    scale = node.attribute("scale", 0.0) or 1 / math.sqrt(size)
    softcap = node.attribute("softcap", 0.0)
    if not softcap:
        sizes = (batch, total, shared * size)
        key, value = (shaped(permuted(each, (0, 2, 1, 3)), sizes) for each in (keys, values))
        return dml.multihead_attention1(
            shaped(query, (batch, length, count * size)),
            key,
            value,
            relative_position_bias=bias,
            scale=scale,
            query_head_count=count,
            key_value_head_count=shared,
            mask_type="NONE",
        )
    stack, together = batch * shared, count // shared * length
    heads = shaped(permuted(wide(query), (0, 2, 1, 3)), (stack, together, size))
    scores = dml.gemm(
        heads, shaped(wide(keys), (stack, total, size)), trans_b="TRANSPOSE", alpha=scale / softcap
    )
    capped = dml.activation_linear(dml.activation_tanh(scores), alpha=softcap, beta=0.0)
    biased = dml.element_wise_add(shaped(capped, (batch, count, length, total)), wide(bias))
    shares = shaped(dml.activation_softmax1(biased, axes=[3]), (stack, together, total))
    result = dml.gemm(shares, shaped(wide(values), (stack, total, size)))
    turned = permuted(shaped(result, (batch, count, length, size)), (0, 2, 1, 3))
    return narrow(shaped(turned, (batch, length, count * size)), query)
