"""Normalizations of ONNX Runtime's own domain, with what is added in front of them."""

from __future__ import annotations

import math

import numpy as np

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.node import MICROSOFT
from opendml.frontends.onnx.operators.views import along, shaped
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import Computed
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType


def _last(node: Conversion, number: int, rank: int) -> GraphTensor | None:
    """An optional input along the last axis."""
    tensor = node.optional(number)
    return None if tensor is None else along(tensor, rank - 1, rank)


def _skipped(node: Conversion, scale: int, bias: int | None, added: int, use_mean: bool) -> Result:
    """The normalized sum of input 0, input 1 and a bias, and the sum itself."""
    if node.wants(1) or node.wants(2):
        raise NotExpressible("statistics of a training step")
    tensor, skip, rank = node.tensor(0), node.tensor(1), len(node.sizes(0))
    total = dml.element_wise_add(tensor, repeated(skip, tensor.sizes))
    if (extra := _last(node, added, rank)) is not None:
        total = dml.element_wise_add(total, extra)
    result = dml.mean_variance_normalization2(
        total,
        _last(node, scale, rank),
        None if bias is None else _last(node, bias, rank),
        axes=[rank - 1],
        use_mean=use_mean,
        epsilon=node.attribute("epsilon", 1e-12),
    )
    return result, None, None, total


@converts("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(node: Conversion) -> Result:
    """By mean and deviation over the last axis."""
    return _skipped(node, 2, 3, 4, use_mean=True)


@converts("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_normalization(node: Conversion) -> Result:
    """By the root of the mean square over the last axis."""
    return _skipped(node, 2, None, 3, use_mean=False)


@converts("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_normalization(node: Conversion) -> Result:
    """The normalized sum of the embeddings of words, positions and segments; how many words each row has."""
    batch, length = node.sizes(0)
    total = dml.element_wise_add(_embedded(node, 2, node.tensor(0)), _positions(node, batch, length))
    if node.has(1) and node.has(4):
        total = dml.element_wise_add(total, _embedded(node, 4, node.tensor(1)))
    scale, bias = _last(node, 5, 3), _last(node, 6, 3)
    epsilon = node.attribute("epsilon", 1e-12)
    result = dml.mean_variance_normalization2(total, scale, bias, axes=[2], epsilon=epsilon)
    return result, _word_counts(node, batch), total


def _embedded(node: Conversion, number: int, indices: GraphTensor) -> GraphTensor:
    """Rows of a table for indices of two dimensions."""
    table, (rows, columns) = node.tensor(number), indices.sizes
    size = table.sizes[1]
    found = dml.gather(
        shaped(table, (1, *table.sizes)), shaped(indices, (1, rows, columns)), axis=1, index_dimensions=2
    )
    return shaped(found, (rows, columns, size))


def _positions(node: Conversion, batch: int, length: int) -> GraphTensor:
    """The embeddings of the positions: as given, or in order."""
    table = node.tensor(3)
    size = table.sizes[1]
    if node.has(8):
        return repeated(_embedded(node, 3, node.tensor(8)), (batch, length, size))
    if table.sizes[0] < length:
        raise NotExpressible(f"embeddings of {table.sizes[0]} positions for {length}")
    first = dml.slice1(table, input_window_sizes=[length, size])
    return repeated(shaped(first, (1, length, size)), (batch, length, size))


def _word_counts(node: Conversion, batch: int) -> Computed:
    """How many words of a row its mask leaves; 0 without a mask."""
    if not node.has(7):
        return node.result(node.constant(np.zeros(batch), np.int32), (batch,))
    left = dml.cast(dml.element_wise_logical_equals(node.tensor(7), 1), output_type=TensorDataType.INT32)
    return node.result(dml.reduce(left, function="SUM", axes=[1]), (batch,))


@converts("GroupNorm", domain=MICROSOFT)
def group_norm(node: Conversion) -> Result:
    """Each group of channels by its own mean and deviation."""
    return _grouped(node, node.tensor(0))


@converts("SkipGroupNorm", domain=MICROSOFT)
def skip_group_norm(node: Conversion) -> Result:
    """The same of the sum of input 0, input 3 and a bias, and the sum."""
    tensor, rank, skip = node.tensor(0), len(node.sizes(0)), node.tensor(3)
    channel = rank - 1 if node.attribute("channels_last", 1) else 1
    if len(skip.sizes) == 2:
        spread = [1] * rank
        spread[0], spread[channel] = skip.sizes
        skip = shaped(skip, spread)
    total = dml.element_wise_add(tensor, skip)
    if node.has(4):
        total = dml.element_wise_add(total, along(node.tensor(4), channel, rank))
    return _grouped(node, total), total


def _grouped(node: Conversion, tensor: GraphTensor) -> GraphTensor:
    sizes, groups = tensor.sizes, node.required("groups")
    is_last = bool(node.attribute("channels_last", 1))
    channels = sizes[-1] if is_last else sizes[1]
    if groups < 1 or channels % groups:
        raise NotExpressible(f"{groups} groups of {channels} channels")
    places, size = math.prod(sizes) // sizes[0] // channels, channels // groups
    view = (sizes[0], places, groups, size) if is_last else (sizes[0], groups, size, places)
    scales = (1, 1, groups, size) if is_last else (1, groups, size, 1)
    given = [dml.cast(node.tensor(number), output_type=tensor.data_type) for number in (1, 2)]
    result = dml.mean_variance_normalization2(
        shaped(tensor, view),
        *(shaped(each, scales) for each in given),
        axes=[1, 3] if is_last else [2, 3],
        epsilon=node.attribute("epsilon", 1e-5),
    )
    if node.attribute("activation", 0) == 1:
        result = dml.activation_swish(result)
    return shaped(result, sizes)
