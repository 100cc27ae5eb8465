"""Normalizations, also with what ONNX Runtime adds in front of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import along, cast, in_common_type, rows_of, shaped
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.conversion import OnnxConversion, Result, numpy_type
from opendml.frontends.onnx.registry import MICROSOFT, converts
from opendml.frontends.onnx.values import Computed
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType


@converts("LRN", to="LOCAL_RESPONSE_NORMALIZATION")
def lrn(node: OnnxConversion) -> Result:
    """Convert LRN, which divides by a power of the squares of neighbours in other channels."""
    sizes, size = node.sizes(0), node.required("size")
    if len(sizes) < 3:
        raise NotExpressible(f"no spatial dimensions in {list(sizes)}")
    planes = (*sizes[:2], math.prod(sizes[2:-1]), sizes[-1])
    given = {name: node.attribute(name) for name in ("alpha", "beta", "bias")}
    tensor = shaped(node.tensor(0), planes)
    result = dml.local_response_normalization(tensor, cross_channel=True, local_size=size, **given)
    return node.result(result, sizes)


@converts("LpNormalization", to="LP_NORMALIZATION")
def lp_normalization(node: OnnxConversion) -> Result:
    """Convert LpNormalization. Lines of norm 0 stay 0."""
    tensor = node.tensor(0)
    least = float(np.finfo(numpy_type(tensor)).smallest_subnormal)
    return dml.lp_normalization(tensor, axis=node.axis_attribute(), p=node.attribute("p"), epsilon=least)


@converts("BatchNormalization", since=7, to="BATCH_NORMALIZATION BATCH_NORMALIZATION_TRAINING")
def batch_normalization(node: OnnxConversion) -> Result:
    """Convert BatchNormalization by statistics that are given, or, in training, by those of the batch."""
    if node.attribute("spatial") == 0:
        raise NotExpressible("spatial 0: statistics of each element")
    rank, epsilon = max(2, len(node.sizes(0))), node.attribute("epsilon")
    tensors = [node.tensor(0), *(along(node.tensor(number), 1, rank) for number in range(1, 5))]
    given = tensors[0].data_type
    tensor, scale, bias, mean, variance = tensors = in_common_type(tensors)
    if len(node.sizes(0)) < 2:
        raise NotExpressible(f"no channels in {list(node.sizes(0))}")
    if node.version >= 14 and node.flag("training_mode"):
        return _trained(node, tensors, epsilon)
    if any(node.wants(number) for number in range(1, 5)):
        raise NotExpressible("statistics of a training step")
    return cast(dml.batch_normalization(tensor, mean, variance, scale, bias, epsilon=epsilon), given)


def _trained(node: OnnxConversion, tensors: Sequence[GraphTensor], epsilon: float) -> Result:
    """Normalize a batch by its own statistics, and mix these into the running ones."""
    tensor, scale, bias, mean, variance = tensors
    result = dml.batch_normalization_training(tensor, scale, bias, epsilon=epsilon)
    momentum = node.attribute("momentum")
    outputs = [node.result(cast(result.output, node.tensor(0).data_type))]
    for number, old, new in ((3, mean, result.output_mean), (4, variance, result.output_variance)):
        mixed = old * momentum + new * (1 - momentum)
        outputs.append(node.result(cast(mixed, node.tensor(number).data_type), node.sizes(number)))
    return tuple(outputs)


@converts("InstanceNormalization", since=6, to="MEAN_VARIANCE_NORMALIZATION1")
def instance_normalization(node: OnnxConversion) -> Result:
    """Convert InstanceNormalization: each channel of each sample by its own statistics."""
    rank = len(node.sizes(0))
    if rank < 3:
        raise NotExpressible(f"no spatial dimensions in {list(node.sizes(0))}")
    scale, bias = (along(node.tensor(number), 1, rank) for number in (1, 2))
    axes, epsilon = range(2, rank), node.attribute("epsilon")
    return dml.mean_variance_normalization1(node.tensor(0), scale, bias, axes=axes, epsilon=epsilon)


def _normalized(node: OnnxConversion, use_mean: bool, bias: int | None) -> Result:
    """Normalize input 0 over the axes from `axis` on, scale it by input 1, and return the statistics too."""
    rank, given = len(node.sizes(0)), node.tensor(0)
    axes, epsilon = range(node.axis_attribute(), rank), node.attribute("epsilon")
    numbers = [number for number in (1, bias) if number is not None and node.has(number)]
    tensor, *parameters = in_common_type([given, *(node.tensor(number, rank) for number in numbers)])
    scale, shift = (*parameters, None)[:2]
    result = dml.mean_variance_normalization2(
        tensor, scale, shift, axes=axes, use_mean=use_mean, epsilon=epsilon
    )
    output = cast(result, node.tensor(1).data_type)
    return (node.result(output), *_statistics(node, given, axes, use_mean, epsilon))


def _statistics(
    node: OnnxConversion, tensor: GraphTensor, axes: range, use_mean: bool, epsilon: float
) -> tuple[GraphTensor | None, ...]:
    """Return means and inverse deviations, in float32 unless `stash_type` says otherwise."""
    if not node.wants(1) and not node.wants(2):
        return (None, None)
    if node.attribute("stash_type") == 1:
        tensor = cast(tensor, TensorDataType.FLOAT32)
    mean = dml.reduce(tensor, function="AVERAGE", axes=axes)
    centred = tensor - mean if use_mean else tensor
    variance = dml.reduce(centred * centred, function="AVERAGE", axes=axes)
    inverse = dml.element_wise_recip(dml.element_wise_sqrt(variance + epsilon))
    return (mean, inverse) if use_mean else (inverse, None)


@converts("LayerNormalization", to="MEAN_VARIANCE_NORMALIZATION2")
def layer_normalization(node: OnnxConversion) -> Result:
    """Convert LayerNormalization: by mean and deviation over the last axes."""
    return _normalized(node, use_mean=True, bias=2)


@converts("RMSNormalization", since=23, to="MEAN_VARIANCE_NORMALIZATION2")
@converts("SimplifiedLayerNormalization", to="MEAN_VARIANCE_NORMALIZATION2")
def rms_normalization(node: OnnxConversion) -> Result:
    """Convert RMSNormalization, also under ONNX Runtime's name, with the inverse root as an output."""
    return _normalized(node, use_mean=False, bias=None)


@converts("GroupNormalization", since=18, to="MEAN_VARIANCE_NORMALIZATION2")
def group_normalization(node: OnnxConversion) -> Result:
    """Convert GroupNormalization. Scales are of groups up to version 20, then of channels."""
    sizes, groups = node.sizes(0), node.required("num_groups")
    if len(sizes) < 2 or groups < 1 or sizes[1] % groups:
        raise NotExpressible(f"{groups} groups of the channels of {list(sizes)}")
    if 0 in sizes:
        return node.empty(sizes)
    grouped = (sizes[0], groups, sizes[1] // groups, math.prod(sizes[2:]))
    parameters = (1, groups, 1 if node.version < 21 else grouped[2], 1)
    given = node.tensor(0)
    tensors = [shaped(given, grouped), *(shaped(node.tensor(number), parameters) for number in (1, 2))]
    options = {"axes": [2, 3], "epsilon": node.attribute("epsilon")}
    result = dml.mean_variance_normalization2(*in_common_type(tensors), **options)
    return node.result(cast(result, given.data_type), sizes)


@converts("MeanVarianceNormalization", since=9, to="MEAN_VARIANCE_NORMALIZATION1")
def mean_variance_normalization(node: OnnxConversion) -> Result:
    """Convert MeanVarianceNormalization, in float32. Its epsilon only avoids a division by 0."""
    rank = len(node.sizes(0))
    axes = sorted({node.axis(axis, rank) for axis in node.attribute("axes")})
    tensor = cast(node.tensor(0), TensorDataType.FLOAT32)
    result = dml.mean_variance_normalization1(tensor, axes=axes, epsilon=1e-18)
    return cast(result, node.tensor(0).data_type)


def _last(node: OnnxConversion, number: int | None, rank: int) -> GraphTensor | None:
    """Return an optional input along the last axis."""
    tensor = None if number is None else node.optional(number)
    return None if tensor is None else along(tensor, rank - 1, rank)


def _skipped(node: OnnxConversion, scale: int, bias: int | None, added: int, use_mean: bool) -> Result:
    """Normalize the sum of input 0, input 1 and a bias, and return the sum too."""
    if node.wants(1) or node.wants(2):
        raise NotExpressible("statistics of a training step")
    tensor, rank = node.tensor(0), len(node.sizes(0))
    total = tensor + repeated(node.tensor(1), tensor.sizes)
    extra = _last(node, added, rank)
    total = total if extra is None else total + extra
    options = {"axes": [rank - 1], "use_mean": use_mean, "epsilon": node.attribute("epsilon")}
    parameters = _last(node, scale, rank), _last(node, bias, rank)
    return dml.mean_variance_normalization2(total, *parameters, **options), None, None, total


@converts("SkipLayerNormalization", domain=MICROSOFT, to="MEAN_VARIANCE_NORMALIZATION2")
def skip_layer_normalization(node: OnnxConversion) -> Result:
    """Convert LayerNormalization of a sum over the last axis."""
    return _skipped(node, 2, 3, 4, use_mean=True)


@converts("SkipSimplifiedLayerNormalization", domain=MICROSOFT, to="MEAN_VARIANCE_NORMALIZATION2")
def skip_simplified_layer_normalization(node: OnnxConversion) -> Result:
    """Convert RMSNormalization of a sum over the last axis."""
    return _skipped(node, 2, None, 3, use_mean=False)


@converts("EmbedLayerNormalization", domain=MICROSOFT, to="GATHER MEAN_VARIANCE_NORMALIZATION2")
def embed_layer_normalization(node: OnnxConversion) -> Result:
    """Convert the normalized sum of the embeddings of words, positions and segments, and the sum itself.

    The second output is the number of words of each row that its mask leaves; 0 without a mask.
    """
    batch, length = node.sizes(0)
    total = rows_of(node.tensor(2), node.tensor(0)) + _positions(node, batch, length)
    if node.has(1) and node.has(4):
        total = total + rows_of(node.tensor(4), node.tensor(1))
    options = {"axes": [2], "epsilon": node.attribute("epsilon")}
    result = dml.mean_variance_normalization2(total, _last(node, 5, 3), _last(node, 6, 3), **options)
    return result, _word_counts(node, batch), total


def _positions(node: OnnxConversion, batch: int, length: int) -> GraphTensor:
    """Return the embeddings of the positions: as given, or in order."""
    table = node.tensor(3)
    sizes = (batch, length, table.sizes[1])
    if node.has(8):
        return repeated(rows_of(table, node.tensor(8)), sizes)
    if table.sizes[0] < length:
        raise NotExpressible(f"embeddings of {table.sizes[0]} positions for {length}")
    return repeated(shaped(table[:length], (1, *sizes[1:])), sizes)


def _word_counts(node: OnnxConversion, batch: int) -> Computed:
    if not node.has(7):
        return node.result(node.constant(np.zeros(batch), np.int32), (batch,))
    left = dml.cast(node.tensor(7) == 1, output_type="INT32")
    return node.result(dml.reduce(left, function="SUM", axes=[1]), (batch,))


@converts("GroupNorm", domain=MICROSOFT, to="MEAN_VARIANCE_NORMALIZATION2")
def group_norm(node: OnnxConversion) -> Result:
    """Convert GroupNorm: each group of channels by its own mean and deviation."""
    return _grouped(node, node.tensor(0))


@converts("SkipGroupNorm", domain=MICROSOFT, to="MEAN_VARIANCE_NORMALIZATION2")
def skip_group_norm(node: OnnxConversion) -> Result:
    """Convert GroupNorm of the sum of input 0, input 3 and a bias, and the sum."""
    tensor, rank, skip = node.tensor(0), len(node.sizes(0)), node.tensor(3)
    channel = rank - 1 if node.flag("channels_last") else 1
    if len(skip.sizes) == 2:
        spread = [1] * rank
        spread[0], spread[channel] = skip.sizes
        skip = shaped(skip, spread)
    total = tensor + skip
    total = total + along(node.tensor(4), channel, rank) if node.has(4) else total
    return _grouped(node, total), total


def _grouped(node: OnnxConversion, tensor: GraphTensor) -> GraphTensor:
    sizes, groups, is_last = tensor.sizes, node.required("groups"), node.flag("channels_last")
    channels = sizes[-1] if is_last else sizes[1]
    if groups < 1 or channels % groups:
        raise NotExpressible(f"{groups} groups of {channels} channels")
    places, size = math.prod(sizes) // sizes[0] // channels, channels // groups
    view = (sizes[0], places, groups, size) if is_last else (sizes[0], groups, size, places)
    scales = (1, 1, groups, size) if is_last else (1, groups, size, 1)
    parameters = [shaped(cast(node.tensor(number), tensor.data_type), scales) for number in (1, 2)]
    options = {"axes": [1, 3] if is_last else [2, 3], "epsilon": node.attribute("epsilon")}
    result = dml.mean_variance_normalization2(shaped(tensor, view), *parameters, **options)
    if node.attribute("activation") == 1:
        result = dml.activation_swish(result)
    return shaped(result, sizes)
