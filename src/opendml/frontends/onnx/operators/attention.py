"""Attention and rotary embeddings."""

from __future__ import annotations

import math

import numpy as np
import onnx

import opendml as dml
from opendml.frontends.attention import SharedHeads, narrow, sees_no_key, wide
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result, require_expressible
from opendml.frontends.onnx.operators.views import permuted, shaped
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import BOOLEAN, Array
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType

_FLOATS = (TensorDataType.FLOAT32, TensorDataType.FLOAT16)


@converts("Attention", since=23)
def attention(node: Conversion) -> Result:
    """Return the values, weighted by how much their keys agree with queries, for each head."""
    query = _heads(node, 0, "q_num_heads")
    keys, values = (_cached(node, number, past) for number, past in ((1, 4), (2, 5)))
    if query.data_type not in _FLOATS or len({each.data_type for each in (query, keys, values)}) > 1:
        raise NotExpressible(f"query, keys and values of {query.data_type.name} and {values.data_type.name}")
    batch, heads, rows, size = query.sizes
    if heads % keys.sizes[1]:
        raise NotExpressible(f"{heads} heads of queries share {keys.sizes[1]} of keys")
    scale = node.attribute("scale", None)
    scale = 1 / math.sqrt(size) if scale is None else scale
    columns = keys.sizes[2]
    bias, causal = _bias(node, rows, columns)
    shared = SharedHeads(batch, heads, keys.sizes[1], is_apart=bias is None)
    product = dml.gemm(wide(shared.rows(query)), wide(shared.columns(keys)), trans_b="TRANSPOSE", alpha=scale)
    scores = raw = shared.scores(product, rows)
    if softcap := node.attribute("softcap", 0.0):
        scaled = dml.activation_tanh(dml.activation_linear(scores, alpha=1 / softcap, beta=0.0))
        scores = dml.activation_linear(scaled, alpha=softcap, beta=0.0)
    biased = scores if bias is None else dml.element_wise_add(scores, bias)
    if causal is not None:
        biased = dml.diagonal_matrix1(
            biased, value=-math.inf, diagonal_fill_begin=causal, diagonal_fill_end=columns
        )
    shares = _shares(node, biased)
    result = dml.gemm(shared.rows(shares), wide(shared.columns(values)))
    result = shaped(result, (batch, heads, rows, values.sizes[3]))
    empty = None if bias is None else sees_no_key(bias)
    if empty is not None:
        result = dml.element_wise_if(empty, 0.0, result)
    seen = None
    if node.wants(3):
        if empty is not None:
            shares = dml.element_wise_if(empty, 0.0, shares)
        seen = (raw, scores, biased, shares)[node.attribute("qk_matmul_output_mode", 0)]
        seen = narrow(shaped(seen, (batch, heads, rows, columns)), query)
    return _as_query(node, narrow(result, query)), keys, values, seen


def _heads(node: Conversion, number: int, count: str) -> GraphTensor:
    """An input as [batch, heads, sequence, size]."""
    tensor, sizes = node.tensor(number), node.sizes(number)
    if len(sizes) == 4:
        return tensor
    heads = node.required(count)
    if len(sizes) != 3 or heads < 1 or sizes[2] % heads:
        raise NotExpressible(f"{heads} heads in input {number} of sizes {list(sizes)}")
    return permuted(shaped(tensor, (*sizes[:2], heads, sizes[2] // heads)), (0, 2, 1, 3))


def _cached(node: Conversion, number: int, past: int) -> GraphTensor:
    """Keys or values behind those of earlier runs."""
    new = _heads(node, number, "kv_num_heads")
    if not node.has(past):
        return new
    old = node.sizes(past)
    return dml.join([node.tensor(past), new], axis=2) if 0 not in old else new


def _as_query(node: Conversion, tensor: GraphTensor) -> GraphTensor:
    """The result in the layout that the query has."""
    if len(node.sizes(0)) == 4:
        return tensor
    batch, heads, rows, size = tensor.sizes
    return shaped(permuted(tensor, (0, 2, 1, 3)), (batch, rows, heads * size))


def _bias(node: Conversion, rows: int, columns: int) -> tuple[GraphTensor | None, int | None]:
    """Return what is added to the scores, and the first diagonal of keys that no query sees. The bias has
    four dimensions, and minus infinity where a key is hidden. Either is None if there is none."""
    distance = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    seen, past = np.ones((rows, columns), np.bool_), node.sizes(4)[2] if node.has(4) else 0
    least, most = _bounds(node)
    causal = None
    hidden: list[GraphTensor] = []
    if node.has(6) and not node.has(4):
        lengths = dml.cast(node.tensor(6), output_type=TensorDataType.INT32)
        lengths = shaped(lengths, (math.prod(lengths.sizes), 1, 1, 1))
        places = node.constant(np.arange(columns).reshape(1, 1, 1, -1), np.int32)
        hidden.append(dml.element_wise_logical_greater_than_or_equal(places, lengths))
        hidden.extend(_outside(node, distance, lengths, rows, (least, most)))
    elif node.has(6):
        raise NotExpressible("nonpad_kv_seqlen together with past keys")
    else:
        seen &= distance >= past - least if least is not None else True
        # Positions alone determine a causal mask, so no tensor is read. Each query sees the first key.
        if most is not None and past + most + 1 < columns and least is None and not node.has(3):
            causal = past + most + 1
        elif most is not None:
            seen &= distance <= past + most
    result, given = _mask(node, columns)
    seen[:, given:] = False
    if not seen.all():
        result = _added(result, _infinities(node, ~seen))
    for each in hidden:
        result = _added(result, _where_hidden(each))
    return result, causal


def _bounds(node: Conversion) -> tuple[int | None, int | None]:
    """How many keys before and behind its own place a query sees; None: all."""
    left, right = (node.attribute(f"{side}_window_size", -1) for side in ("left", "right"))
    most = None if right < 0 else right
    if node.attribute("is_causal", 0):
        most = 0
    return None if left < 0 else left, most


def _outside(
    node: Conversion, distance: Array, lengths: GraphTensor, rows: int, bounds: tuple[int | None, int | None]
) -> list[GraphTensor]:
    """Where keys are outside of windows whose places depend on the lengths of the sequences."""
    least, most = bounds
    offset = dml.element_wise_subtract(lengths, rows)
    away = node.constant(distance[None, None], np.int32)
    found = []
    if most is not None:
        found.append(dml.element_wise_logical_greater_than(away, dml.element_wise_add(offset, most)))
    if least is not None:
        found.append(dml.element_wise_logical_less_than(away, dml.element_wise_subtract(offset, least)))
    return found


def _mask(node: Conversion, columns: int) -> tuple[GraphTensor | None, int]:
    """The mask that is given, as floats of four dimensions, and for how many keys."""
    if not node.has(3):
        return None, columns
    mask, sizes = node.tensor(3, 4), node.sizes(3)
    given = columns if not sizes or sizes[-1] == 1 else sizes[-1]
    if given < columns:
        mask = dml.padding1(mask, padding_mode="CONSTANT", end_padding=[0, 0, 0, columns - given])
    if node.type(3) == BOOLEAN:
        return _where_hidden(dml.element_wise_logical_not(mask)), given
    if node.type(3) != node.type(0):
        raise NotExpressible(f"a mask of {node.type(3).name} for queries of {node.type(0).name}")
    return wide(mask), given


def _where_hidden(hidden: GraphTensor) -> GraphTensor:
    """Minus infinity where that is true, else 0."""
    infinity = hidden.graph.constant(np.full([1] * 4, -np.inf, np.float32))
    return dml.element_wise_if(hidden, infinity, 0.0)


def _infinities(node: Conversion, hidden: Array) -> GraphTensor:
    return node.constant(np.where(hidden, -np.inf, 0.0)[None, None], np.float32)


def _added(left: GraphTensor | None, right: GraphTensor) -> GraphTensor:
    return right if left is None else dml.element_wise_add(left, right)


def _shares(node: Conversion, scores: GraphTensor) -> GraphTensor:
    """Return the softmax over the keys. It is computed in float32 where float64 is asked for, since it sums
    in that and rounds once."""
    type, precision = scores.data_type, node.attribute("softmax_precision", 0)
    if precision:
        wanted = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(precision))
        require_expressible((1,), wanted, "softmax_precision")
        stored = TensorDataType.FLOAT16 if wanted == np.float16 else TensorDataType.FLOAT32
        if stored != type:
            scores = dml.cast(scores, output_type=stored)
    shares = dml.activation_softmax1(scores, axes=[3])
    return shares if shares.data_type == type else dml.cast(shares, output_type=type)


@converts("RotaryEmbedding", since=23)
def rotary_embedding(node: Conversion) -> Result:
    """Pairs of elements turned by the angle of their position."""
    tensor, sizes = node.tensor(0), node.sizes(0)
    by_heads = len(sizes) == 4
    if not by_heads:
        heads = node.required("num_heads")
        if len(sizes) != 3 or heads < 1 or sizes[2] % heads:
            raise NotExpressible(f"{heads} heads in {list(sizes)}")
        tensor = shaped(tensor, (*sizes[:2], heads, sizes[2] // heads))
    length, size = tensor.sizes[2 if by_heads else 1], tensor.sizes[3]
    turned = node.attribute("rotary_embedding_dim", 0) or size
    if turned % 2 or turned > size:
        raise NotExpressible(f"rotary_embedding_dim {turned} of {size} elements")
    angles = [_angles(node, number, sizes[0], length, turned // 2) for number in (1, 2)]
    order = (sizes[0], 1, length, turned // 2) if by_heads else (sizes[0], length, 1, turned // 2)
    cosine, sine = (shaped(each, order) for each in angles)
    rotated = tensor if turned == size else dml.slice1(tensor, input_window_sizes=[*tensor.sizes[:3], turned])
    result = _turned(rotated, cosine, sine, bool(node.attribute("interleaved", 0)))
    if turned < size:
        window = [*tensor.sizes[:3], size - turned]
        rest = dml.slice1(tensor, input_window_offsets=[0, 0, 0, turned], input_window_sizes=window)
        result = dml.join([result, rest], axis=3)
    return node.result(result, sizes)


def _angles(node: Conversion, number: int, batch: int, length: int, half: int) -> GraphTensor:
    """Cosines or sines at each position: [batch, length, half]."""
    cache, sizes = node.tensor(number), node.sizes(number)
    if sizes[-1] != half:
        raise NotExpressible(f"input {number} of sizes {list(sizes)} for {half} pairs")
    if not node.has(3):
        return repeated(cache, (batch, length, half))
    places = shaped(node.tensor(3), (1, batch * length))
    found = dml.gather(cache, places, axis=0, index_dimensions=1)
    return shaped(found, (batch, length, half))


def _turned(tensor: GraphTensor, cosine: GraphTensor, sine: GraphTensor, is_interleaved: bool) -> GraphTensor:
    """Pairs that lie side by side, or half the elements apart."""
    front, half = tensor.sizes[:3], tensor.sizes[3] // 2
    pairs = (half, 2) if is_interleaved else (2, half)
    axis = 4 if is_interleaved else 3
    parts = dml.split(shaped(tensor, (*front, *pairs)), axis=axis, sizes=[1, 1])
    first, second = (shaped(each, (*front, half)) for each in parts)
    cross = dml.element_wise_multiply
    real = dml.element_wise_subtract(cross(first, cosine), cross(second, sine))
    imaginary = dml.element_wise_add(cross(first, sine), cross(second, cosine))
    single = (*front, half, 1) if is_interleaved else (*front, 1, half)
    joined = dml.join([shaped(real, single), shaped(imaginary, single)], axis=axis)
    return shaped(joined, tensor.sizes)
