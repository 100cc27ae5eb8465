"""Multi-head attention: products of queries with keys, a softmax, and products with values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from opendml.operators.registry import defines
from opendml.operators.softmax import softmax1
from opendml.program.functions import equal, maximum, rounded, select
from opendml.program.node import Node, Operation, apply, constant, contraction, convert, index
from opendml.program.scalar_type import ScalarType
from opendml.program.view import gathered, in_memory, joined, padded, permuted, reshaped, sliced
from opendml.spec.enums import MultiheadAttentionMaskType as MaskType
from opendml.spec.tensor_desc import TensorDesc

_COMPUTED = ScalarType.FLOAT32
Outputs = tuple[TensorDesc | None, ...]
_MANY = 64
"""Queries of a head that fill the tiles of a product. From here on, heads that share keys need not be rows of
one product, which would cost a copy of the results."""


@defines("MULTIHEAD_ATTENTION", stored=True, output=True)
def multihead_attention(*tensors: Node | None, head_count: int, **same: Any) -> tuple[Node, ...]:
    """MULTIHEAD_ATTENTION1 with as many heads of keys and values as of queries, without PastSequenceLengths

    Masks, roundings and what is not finite as in MULTIHEAD_ATTENTION1.
    """
    same |= {"query_head_count": head_count, "key_value_head_count": head_count}
    return multihead_attention1(*(*tensors, None), **same)


@defines("MULTIHEAD_ATTENTION1", stored=True, output=True)
def multihead_attention1(
    query: Node | None,
    key: Node | None,
    value: Node | None,
    stacked_query_key: Node | None,
    stacked_key_value: Node | None,
    stacked_query_key_value: Node | None,
    bias: Node | None,
    mask: Node | None,
    relative_position_bias: Node | None,
    past_key: Node | None,
    past_value: Node | None,
    past_lengths: Node | None,
    *,
    scale: float,
    mask_filter_value: float,
    query_head_count: int,
    key_value_head_count: int,
    mask_type: MaskType,
    output: Outputs,
) -> tuple[Node, ...]:
    """softmax(scale * (Q + b_q) K^T + relative position bias + mask) V, for each head; K is the past
    keys and the new ones with their bias, V the past values and the new ones with theirs; the
    presents are K and V

    Query heads share the heads of keys and values in groups that follow each other. The filter value is added
    where a BOOLEAN mask is 0, to keys outside a batch's length, or to keys outside its start and end. Of
    KEY_QUERY_SEQUENCE_LENGTH_START_END only the lengths of keys count: the others say where batches lie in
    tensors without a batch dimension.

    With PastSequenceLengths, a batch's new keys and values follow its own past ones, as far as the present
    has room; what comes behind them is 0 in the present, and no query sees it. There are as many keys as the
    present has, or a BOOLEAN mask or a relative position bias, or as past and new ones together. A query that
    sees no key gives NaN.

    Queries, keys and values with their bias are rounded to their types. Weights are float32: one that is
    below its numbers is 0, which makes an infinite value NaN.
    """
    heads, groups = key_value_head_count, query_head_count // key_value_head_count
    q = _by_head(query, query_head_count, (stacked_query_key, 0), (stacked_query_key_value, 0))
    k = _by_head(key, heads, (stacked_query_key, 1), (stacked_key_value, 0), (stacked_query_key_value, 1))
    v = _by_head(value, heads, (stacked_key_value, 1), (stacked_query_key_value, 2))
    if bias is not None:
        q, k, v = _biased([q, k, v], reshaped(bias, (math.prod(bias.sizes),)))
    assert q is not None
    given = _Operands(q, k, v, past_key, past_value, past_lengths)
    total = given.total(output[1] or output[2], mask, relative_position_bias, mask_type)
    keys, values = given.present(k, past_key, total), given.present(v, past_value, total)

    batch, _, queries, head_size = q.sizes
    rows = reshaped(convert(q, _COMPUTED), (batch, heads, groups, queries, 1, head_size))
    columns = reshaped(convert(keys, _COMPUTED), (batch, heads, 1, 1, total, head_size))
    scores = reshaped(contraction(rows, columns, [5]), (batch, heads, groups, queries, total)) * scale
    if relative_position_bias is not None:
        scores = scores + convert(_of_scores(relative_position_bias, heads, groups), _COMPUTED)
    if mask is not None:
        hidden = _hidden(mask, mask_type, batch, heads, groups, total)
        scores = scores + select(hidden, constant(mask_filter_value, _COMPUTED), 0.0)
    if past_lengths is not None:
        scores = select(_positions(total) < given.ends(), scores, -math.inf)
    weights = rounded(softmax1(scores, axes=[4]))
    result = _weighted(weights, convert(values, _COMPUTED))
    presents = [
        reshaped(each, wanted.sizes)
        for each, wanted in zip((keys, values), output[1:], strict=True)
        if wanted is not None
    ]
    assert output[0] is not None
    return (reshaped(result, output[0].sizes), *presents)


def _by_head(own: Node | None, heads: int, *stacked: tuple[Node | None, int]) -> Node | None:
    """Return queries, keys or values in (batch, heads, sequence, head size), whether stacked or not."""
    if own is not None:
        batch, length, hidden = own.sizes[-3:]
        return permuted(reshaped(own, (batch, length, heads, hidden // heads)), (0, 2, 1, 3))
    for tensor, place in stacked:
        if tensor is not None:
            batch, length, _, _, size = tensor.sizes
            one = sliced(tensor, (0, 0, 0, place, 0), (batch, length, heads, 1, size))
            return permuted(reshaped(one, (batch, length, heads, size)), (0, 2, 1, 3))
    return None


def _biased(given: Sequence[Node | None], bias: Node) -> list[Node | None]:
    """Return queries, keys and values, in their types, plus the bias of each element of each head."""
    first, result = 0, list[Node | None]()
    for x in given:
        if x is None:
            result.append(None)
            continue
        _, heads, _, size = x.sizes
        own = reshaped(sliced(bias, (first,), (heads * size,)), (1, heads, 1, size))
        result.append(rounded(convert(convert(x, _COMPUTED) + convert(own, _COMPUTED), x.type)))
        first += heads * size
    return result


class _Operands:
    """Queries, new keys and values, and how many past ones there are."""

    def __init__(
        self,
        q: Node,
        k: Node | None,
        v: Node | None,
        past_key: Node | None,
        past_value: Node | None,
        past_lengths: Node | None,
    ) -> None:
        self._batch = q.sizes[0]
        self._new = 0 if k is None else k.sizes[2]
        self._past = 0 if past_key is None else past_key.sizes[-2]
        self._lengths = None
        if past_lengths is not None:
            self._lengths = maximum(reshaped(past_lengths, (self._batch, 1, 1, 1)), 0)

    def total(
        self, present: TensorDesc | None, mask: Node | None, bias: Node | None, mask_type: MaskType
    ) -> int:
        """Return the number of keys."""
        if self._lengths is None:
            return self._past + self._new
        if present is not None:
            return present.sizes[-2]
        tensors = [mask if mask_type is MaskType.BOOLEAN else None, bias]
        return max(
            (each.sizes[-1] for each in tensors if each is not None and each.sizes[-1] > 1),
            default=self._past + self._new,
        )

    def ends(self) -> Node:
        """Return the number of keys of each batch, in the shape of scores."""
        assert self._lengths is not None
        return reshaped(self._lengths + self._new, (self._batch, 1, 1, 1, 1))

    def present(self, new: Node | None, past: Node | None, total: int) -> Node:
        """Return the past keys or values and the new ones, in (batch, heads, total, head size)."""
        past = past and reshaped(past, past.sizes[-4:])
        if self._lengths is None:
            return joined([each for each in (past, new) if each is not None], 2)
        known = past or new
        assert known is not None
        batch, heads, _, size = known.sizes
        sizes = (batch, heads, total, size)
        positions = index(ScalarType.INT32, (1, 1, total, 1), 0, (0, 0, 1, 0))
        value = constant(0, known.type)
        if new is not None:
            steps = ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 0, 0), (0, 0, 0, 1))
            value = gathered(new, sizes, {2: positions - self._lengths}, steps=steps)
        if past is not None:
            kept = min(past.sizes[2], total)
            part = sliced(past, (0, 0, 0, 0), (batch, heads, kept, size))
            whole = padded(part, (0, 0, 0, 0), (0, 0, total - kept, 0))
            value = select(positions < self._lengths, whole, value)
        return in_memory(value)


def _positions(total: int) -> Node:
    """Return the numbers of keys, beside scores."""
    return index(ScalarType.INT32, (1, 1, 1, 1, total), 0, (0, 0, 0, 0, 1))


def _of_scores(tensor: Node, heads: int, groups: int) -> Node:
    """Return a tensor (batch, query heads, queries, keys) in the shape of scores, with 1 for what repeats.

    The first dimensions may be missing.
    """
    batch, count, *rest = (1, 1, 1, *tensor.sizes)[-4:]
    return reshaped(tensor, (batch, *((1, 1) if count == 1 else (heads, groups)), *rest))


def _hidden(mask: Node, kind: MaskType, batch: int, heads: int, groups: int, total: int) -> Node:
    """Return where the filter value is added to scores (batch, heads, groups, queries, keys)."""
    if kind is MaskType.BOOLEAN:
        return equal(_of_scores(mask, heads, groups), 0)
    numbers, positions = reshaped(mask, (math.prod(mask.sizes),)), _positions(total)

    def of_batches(row: int) -> Node:
        return reshaped(sliced(numbers, (row * batch,), (batch,)), (batch, 1, 1, 1, 1))

    behind = positions >= of_batches(0)
    if kind is not MaskType.KEY_SEQUENCE_END_START:
        return behind
    return apply(Operation.OR, behind, positions < of_batches(1))


def _weighted(weights: Node, values: Node) -> Node:
    """Return the weighted sums of values (batch, heads, keys, size): (batch, queries, heads, groups, size).

    The weights are (batch, heads, groups, queries, keys).
    """
    batch, heads, groups, queries, total = weights.sizes
    size = values.sizes[3]
    columns = permuted(values, (0, 1, 3, 2))
    if groups == 1 or queries == 1 or queries >= _MANY:
        rows = reshaped(permuted(weights, (0, 3, 1, 2, 4)), (batch, queries, heads, groups, 1, total))
        return contraction(rows, reshaped(columns, (batch, 1, heads, 1, size, total)), [5])
    # The queries of all heads that share keys are rows of one product.
    rows = reshaped(weights, (batch, heads, groups, queries, 1, total))
    sums = contraction(rows, reshaped(columns, (batch, heads, 1, 1, size, total)), [5])
    return permuted(reshaped(sums, (batch, heads, groups, queries, size)), (0, 3, 1, 2, 4))
