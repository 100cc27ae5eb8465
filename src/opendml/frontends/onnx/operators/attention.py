"""Attention and rotary embeddings of ONNX's own domain."""

from __future__ import annotations

import math

import numpy as np

from opendml.frontends.common.attention import attend, hiding, in_rows, over_keys, rotate
from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import cast, permuted, rows_of, shaped, widened
from opendml.frontends.common.types import FLOATS, NotExpressible, data_type_of
from opendml.frontends.onnx.conversion import OnnxConversion, Result
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import BOOLEAN
from opendml.program.sizes import are_same, is_traced
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType


@converts("Attention", since=23, to="MULTIHEAD_ATTENTION1")
def attention(node: OnnxConversion) -> Result:
    """Convert Attention: the values, weighted by how much their keys agree with queries, for each head."""
    query = _heads(node, 0, "q_num_heads")
    keys, values = (_cached(node, number, past) for number, past in ((1, 4), (2, 5)))
    if query.data_type not in FLOATS or len({each.data_type for each in (query, keys, values)}) > 1:
        raise NotExpressible(f"query, keys and values of {query.data_type.name} and {values.data_type.name}")
    heads, rows, size = query.sizes[1:]
    if heads % keys.sizes[1]:
        raise NotExpressible(f"{heads} heads of queries share {keys.sizes[1]} of keys")
    scale = node.attribute("scale")
    bias, causal, hides_all = _bias(node, rows, keys.sizes[2])
    result, *stages = attend(
        query,
        keys,
        values,
        1 / math.sqrt(size) if scale is None else scale,
        bias=bias,
        causal=causal,
        hides_all=hides_all,
        softcap=node.attribute("softcap"),
        softmax=lambda scores: _weights(node, scores),
    )
    seen = None
    if node.wants(3):
        seen = cast(stages[node.attribute("qk_matmul_output_mode")], query.data_type)
    return result if len(node.sizes(0)) == 4 else in_rows(result), keys, values, seen


def _heads(node: OnnxConversion, number: int, count: str) -> GraphTensor:
    """Return an input as [batch, heads, sequence, size]."""
    tensor, sizes = node.tensor(number), node.sizes(number)
    return tensor if len(sizes) == 4 else permuted(_split_heads(node, number, count), (0, 2, 1, 3))


def _split_heads(node: OnnxConversion, number: int, count: str) -> GraphTensor:
    """Return an input of three dimensions as [batch, sequence, heads, size]."""
    sizes, heads = node.sizes(number), node.required(count)
    if len(sizes) != 3 or heads < 1 or sizes[2] % heads:
        raise NotExpressible(f"{heads} heads in input {number} of sizes {list(sizes)}")
    return shaped(node.tensor(number), (*sizes[:2], heads, sizes[2] // heads))


def _cached(node: OnnxConversion, number: int, past: int) -> GraphTensor:
    """Return keys or values behind those of earlier runs."""
    new = _heads(node, number, "kv_num_heads")
    if not node.has(past) or 0 in node.sizes(past):
        return new
    return dml.join([node.tensor(past), new], axis=2)


def _bias(node: OnnxConversion, rows: int, columns: int) -> tuple[GraphTensor | None, int | None, bool]:
    """Return what is added to the scores; the first diagonal of keys that no query sees; and a truth value.

    It says whether the bias may hide all keys of a query. None: nothing is added, or no diagonal is hidden.
    The bias has four dimensions, and minus infinity where a key is hidden.
    """
    past = node.sizes(4)[2] if node.has(4) else 0
    least, most = _bounds(node)
    causal, hidden = None, list[GraphTensor]()
    if node.has(6) and node.has(4):
        raise NotExpressible("nonpad_kv_seqlen together with past keys")
    if node.has(6):
        lengths = dml.cast(node.tensor(6), output_type="INT32")
        lengths = shaped(lengths, (math.prod(lengths.sizes), 1, 1, 1))
        places = shaped(node.sequence(columns, np.int32), (1, 1, 1, columns))
        hidden.append(places >= lengths)
        distance = places - shaped(node.sequence(rows, np.int32), (1, 1, rows, 1))
        hidden.extend(_outside(distance, lengths - rows, least, most))
        least = most = None
    elif most is not None and most + past + 1 >= columns:
        most = None
    hides_all = bool(hidden) or node.has(3) or least is not None
    result, given = _mask(node, columns)
    added = [] if result is None else [result]
    if is_traced(rows) or is_traced(columns):
        distance = _distance(node, rows, columns, past)
        hidden.extend([] if most is None else [distance > most])
        hidden.extend([] if least is None else [distance < -least])
        behind = shaped(node.sequence(columns, np.int32)[::-1], (1, 1, 1, columns))
        hidden.extend([] if given == columns else [behind < columns - given])
    else:
        # Positions alone determine a causal mask, so no tensor is read. Each query sees the first key.
        if most is not None and not hides_all:
            causal, most = past + most + 1, None
        away = np.arange(columns)[None, :] - np.arange(rows)[:, None] - past
        seen = np.broadcast_to(np.arange(columns) < given, away.shape)
        seen = seen if most is None else seen & (away <= most)
        seen = seen if least is None else seen & (away >= -least)
        if not seen.all():
            added.append(node.constant(np.where(seen, 0.0, -np.inf)[None, None], np.float32))
    added.extend(map(hiding, hidden))
    return (sum(added[1:], start=added[0]) if added else None), causal, hides_all


def _distance(node: OnnxConversion, rows: int, columns: int, past: int) -> GraphTensor:
    """Return how far each key lies behind the position of each query; `past` keys precede the first query.

    The graph computes positions from sizes, because constants of a graph do not change with sizes.
    """
    if are_same(columns - past, rows):
        # Counted from the ends, queries and keys have the same places.
        own, places = (node.sequence(each, np.int32)[::-1] for each in (rows, columns))
        return shaped(own, (1, 1, rows, 1)) - shaped(places, (1, 1, 1, columns))
    places = node.sequence(columns - past, np.int32)
    if past:
        places = dml.join([-1 - node.sequence(past, np.int32)[::-1], places], axis=0)
    return shaped(places, (1, 1, 1, columns)) - shaped(node.sequence(rows, np.int32), (1, 1, rows, 1))


def _bounds(node: OnnxConversion) -> tuple[int | None, int | None]:
    """Return how many keys before and behind its own place a query sees; None: all."""
    bounds = [node.attribute(f"{side}_window_size") for side in ("left", "right")]
    left, right = (None if each is None or each < 0 else each for each in bounds)
    return left, 0 if node.flag("is_causal") else right


def _outside(
    distance: GraphTensor, offset: GraphTensor, least: int | None, most: int | None
) -> list[GraphTensor]:
    """Return masks of the keys outside of windows whose offset depends on the lengths of the sequences."""
    behind = [] if most is None else [distance > offset + most]
    return behind if least is None else [*behind, distance < offset - least]


def _mask(node: OnnxConversion, columns: int) -> tuple[GraphTensor | None, int]:
    """Return the mask that is given, as floats of four dimensions, and the number of its keys."""
    if not node.has(3):
        return None, columns
    mask, sizes = node.tensor(3, 4), node.sizes(3)
    given = columns if not sizes or sizes[-1] == 1 else sizes[-1]
    if given < columns:
        mask = dml.padding1(mask, padding_mode="CONSTANT", end_padding=[0, 0, 0, columns - given])
    if node.type(3) == BOOLEAN:
        return hiding(mask, is_seen=True), given
    if node.type(3) != node.type(0):
        raise NotExpressible(f"a mask of {node.type(3).name} for queries of {node.type(0).name}")
    return widened(mask), given


def _weights(node: OnnxConversion, scores: GraphTensor) -> GraphTensor:
    """Return the softmax in the type of `softmax_precision`.

    It is computed in float32 where float64 is asked for, since it sums in that and rounds once.
    """
    wanted = node.type_attribute("softmax_precision")
    if wanted is None:
        return over_keys(scores)
    data_type_of(wanted)
    stored = TensorDataType.FLOAT16 if wanted == np.float16 else TensorDataType.FLOAT32
    return cast(over_keys(cast(scores, stored)), scores.data_type)


@converts("RotaryEmbedding", since=23)
def rotary_embedding(node: OnnxConversion) -> Result:
    """Convert RotaryEmbedding, which rotates pairs of elements by the angle of their position."""
    sizes = node.sizes(0)
    by_heads = len(sizes) == 4
    tensor = node.tensor(0) if by_heads else _split_heads(node, 0, "num_heads")
    length, size = tensor.sizes[2 if by_heads else 1], tensor.sizes[3]
    turned = node.attribute("rotary_embedding_dim") or size
    if turned % 2 or turned > size:
        raise NotExpressible(f"rotary_embedding_dim {turned} of {size} elements")
    order = (sizes[0], 1, length, turned // 2) if by_heads else (sizes[0], length, 1, turned // 2)
    cosine, sine = (shaped(_angles(node, each, sizes[0], length, turned // 2), order) for each in (1, 2))
    return node.result(rotate(tensor, cosine, sine, node.flag("interleaved")), sizes)


def _angles(node: OnnxConversion, number: int, batch: int, length: int, half: int) -> GraphTensor:
    """Return cosines or sines at each position: [batch, length, half]."""
    cache, sizes = node.tensor(number), node.sizes(number)
    if sizes[-1] != half:
        raise NotExpressible(f"input {number} of sizes {list(sizes)} for {half} pairs")
    if not node.has(3):
        return repeated(cache, (batch, length, half))
    return rows_of(cache, shaped(node.tensor(3), (batch, length)))
