"""Attention and rotary embeddings as several operators, for both frameworks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import cast, part, permuted, shaped, widened
from opendml.late_dataclass import dataclass
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType


class Attended(NamedTuple):
    """The result of `attend`, and its scores after each stage, [batch, heads, queries, keys] each.

    Args:
        result: the weighted values, [batch, heads, queries, size].
        products: the scaled products of queries and keys.
        capped: those after the soft cap.
        biased: those with bias and causal mask.
        weights: the softmax of those.
    """

    result: GraphTensor
    products: GraphTensor
    capped: GraphTensor
    biased: GraphTensor
    weights: GraphTensor


def in_rows(heads: GraphTensor) -> GraphTensor:
    """Return [batch, heads, sequence, size] as [batch, sequence, heads * size]."""
    batch, count, length, size = heads.sizes
    return shaped(permuted(heads, (0, 2, 1, 3)), (batch, length, count * size))


def over_keys(scores: GraphTensor) -> GraphTensor:
    """Return the softmax of scores over the keys."""
    return dml.activation_softmax1(scores, axes=[3])


def attend(
    query: GraphTensor,
    key: GraphTensor,
    value: GraphTensor,
    scale: float,
    *,
    bias: GraphTensor | None = None,
    causal: int | None = None,
    softcap: float = 0.0,
    hides_all: bool = True,
    softmax: Callable[[GraphTensor], GraphTensor] = over_keys,
) -> Attended:
    """Compute attention. FLOAT16 is widened: its scores overflow, and softmax magnifies their rounding.

    Args:
        query: [batch, heads, queries, size].
        key, value: [batch, groups, keys, size]; consecutive heads share a group.
        scale: the factor of the products.
        bias: a tensor of four dimensions that is added to the scores.
        causal: the first diagonal of keys that no query sees; None: queries see all keys.
        softcap: the bound of the scores, by tanh; 0: none.
        hides_all: whether the bias may hide all keys of a query, which then gets zeros.
        softmax: turns scores into weights.
    """
    batch, heads, rows, _ = query.sizes
    groups, columns = key.sizes[1:3]
    sizes = (batch, heads, rows, columns)
    if rows == 1 and heads > groups and causal is None:
        # The heads of a group are queries of one head, so that no sizes are merged and split again.
        together = (batch, groups, heads // groups)
        if bias is not None and bias.sizes[1] > 1:
            bias = shaped(bias, (bias.sizes[0], *together[1:], columns))
        found = attend(
            shaped(query, (*together, query.sizes[3])),
            key,
            value,
            scale,
            bias=bias,
            softcap=softcap,
            hides_all=hides_all,
            softmax=softmax,
        )
        return Attended(*(shaped(each, (batch, heads, 1, each.sizes[3])) for each in found))
    shared = _SharedHeads(batch, heads, key.sizes[1], is_apart=bias is None)
    first, second = widened(shared.rows(query)), widened(shared.columns(key))
    capped = products = shared.scores(dml.gemm(first, second, trans_b="TRANSPOSE", alpha=scale), rows)
    if softcap:
        bounded = dml.activation_tanh(dml.activation_linear(products, alpha=1 / softcap, beta=0.0))
        capped = dml.activation_linear(bounded, alpha=softcap, beta=0.0)
    biased = capped if bias is None else capped + bias
    if causal is not None:
        biased = dml.diagonal_matrix1(
            biased, value=-math.inf, diagonal_fill_begin=causal, diagonal_fill_end=columns
        )
    weights = softmax(biased)
    result = dml.gemm(shared.rows(weights), widened(shared.columns(value)))
    result = shaped(result, (batch, heads, rows, value.sizes[3]))
    if bias is not None and hides_all:
        highest = dml.reduce(bias, function="MAX", axes=[3])
        is_blind = highest == _number(bias, -math.inf)
        result, weights = (dml.element_wise_if(is_blind, 0.0, each) for each in (result, weights))
    stages = (shaped(each, sizes) for each in (products, capped, biased, weights))
    return Attended(cast(result, query.data_type), *stages)


def hiding(mask: GraphTensor, is_seen: bool = False) -> GraphTensor:
    """Return a bias: minus infinity where a mask of four dimensions hides a key, else 0.

    Args:
        is_seen: whether the mask is true for keys that are seen; otherwise for those that are hidden.
    """
    infinity = _number(mask, -math.inf)
    return dml.element_wise_if(mask, 0.0, infinity) if is_seen else dml.element_wise_if(mask, infinity, 0.0)


def _number(like: GraphTensor, value: float) -> GraphTensor:
    return like.graph._number(value, TensorDataType.FLOAT32)


@dataclass(frozen=True)
class _SharedHeads:
    """Heads of queries that share heads of keys and values, in consecutive groups.

    With a bias, the queries of a group are rows of one matrix, so that scores are [batch, heads, queries,
    keys]. Without a bias the heads stay apart (`is_apart`) and keys are repeated, so that the compiler can
    make one kernel of the products and the softmax.
    """

    batch: int
    heads: int
    groups: int
    is_apart: bool

    @property
    def _heads_per_group(self) -> int:
        return self.heads // self.groups

    @property
    def _repeats_keys(self) -> bool:
        return self.is_apart and self._heads_per_group > 1

    def rows(self, tensor: GraphTensor) -> GraphTensor:
        """Return queries [batch, heads, queries, n], or weights in the sizes of `scores`, as GEMM takes
        them."""
        rows, columns = tensor.sizes[2:]
        if self._repeats_keys:
            return shaped(tensor, (self.batch * self.groups, self._heads_per_group, rows, columns))
        return shaped(tensor, (self.batch, self.groups, self._heads_per_group * rows, columns))

    def columns(self, tensor: GraphTensor) -> GraphTensor:
        """Return keys or values, [batch, groups, keys, n], as GEMM takes them."""
        if not self._repeats_keys:
            return tensor
        count, size = tensor.sizes[2:]
        sizes = (self.batch * self.groups, self._heads_per_group, count, size)
        return tensor.reinterpret(sizes, strides=(count * size, 0, size, 1))

    def scores(self, product: GraphTensor, rows: int) -> GraphTensor:
        """Return the products of queries and keys in four dimensions, of which the last two are these."""
        if self._repeats_keys:
            return product
        return shaped(product, (self.batch, self.heads, rows, product.sizes[-1]))


def rotate(tensor: GraphTensor, cosine: GraphTensor, sine: GraphTensor, is_interleaved: bool) -> GraphTensor:
    """Rotate pairs of elements of a tensor of four dimensions along the last one.

    Args:
        cosine, sine: of the angles; four dimensions, of which the last one has an element for each pair.
            Elements behind the pairs stay as they are.
        is_interleaved: whether the elements of a pair are neighbours; otherwise they are as many elements
            apart as there are pairs.
    """
    front, half, axis = tensor.sizes[:3], cosine.sizes[3], 4 if is_interleaved else 3
    turned = part(tensor, 3, 0, 2 * half)
    pairs = shaped(turned, (*front, half, 2) if is_interleaved else (*front, 2, half))
    first, second = (shaped(each, (*front, half)) for each in dml.split(pairs, axis=axis, sizes=[1, 1]))
    both = (first * cosine - second * sine, first * sine + second * cosine)
    single = (*front, half, 1) if is_interleaved else (*front, 1, half)
    result = shaped(dml.join([shaped(each, single) for each in both], axis=axis), turned.sizes)
    rest = tensor.sizes[3] - 2 * half
    return dml.join([result, part(tensor, 3, 2 * half, rest)], axis=3) if rest else result
