"""Normalizations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result, numpy_type
from opendml.frontends.onnx.operators.views import along, shaped
from opendml.frontends.onnx.registry import converts
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType

_FLOAT32 = np.dtype(np.float32)


def _as(tensor: GraphTensor, type: TensorDataType) -> GraphTensor:
    """The tensor in another type, if it has not that one."""
    return tensor if tensor.data_type == type else dml.cast(tensor, output_type=type)


def _common(tensors: Sequence[GraphTensor]) -> list[GraphTensor]:
    """Tensors of floats in the widest of their types."""
    types = {tensor.data_type for tensor in tensors}
    if not types <= {TensorDataType.FLOAT32, TensorDataType.FLOAT16}:
        raise NotExpressible(f"elements of types {', '.join(sorted(type.name for type in types))}")
    wide = TensorDataType.FLOAT32 if len(types) > 1 else next(iter(types))
    return [_as(tensor, wide) for tensor in tensors]


@converts("LRN")
def lrn(node: Conversion) -> Result:
    """Each element by a power of the squares of its neighbours in other channels."""
    sizes, size = node.sizes(0), node.required("size")
    if len(sizes) < 3:
        raise NotExpressible(f"no spatial dimensions in {list(sizes)}")
    planes = (*sizes[:2], math.prod(sizes[2:-1]), sizes[-1])
    result = dml.local_response_normalization(
        shaped(node.tensor(0), planes),
        cross_channel=True,
        local_size=size,
        alpha=node.attribute("alpha", 1e-4),
        beta=node.attribute("beta", 0.75),
        bias=node.attribute("bias", 1.0),
    )
    return node.result(result, sizes)


@converts("LpNormalization")
def lp_normalization(node: Conversion) -> Result:
    """Lines of norm 1; those of norm 0 stay 0."""
    axis, tensor = node.axis(node.attribute("axis", -1), len(node.sizes(0))), node.tensor(0)
    least = float(np.finfo(numpy_type(tensor)).smallest_subnormal)
    return dml.lp_normalization(tensor, axis=axis, p=node.attribute("p", 2), epsilon=least)


@converts("BatchNormalization", since=7)
def batch_normalization(node: Conversion) -> Result:
    """By mean and variance of each channel that are given, or, in training, of the batch."""
    if not node.attribute("spatial", 1):
        raise NotExpressible("spatial 0: statistics of each element")
    rank, epsilon = max(2, len(node.sizes(0))), node.attribute("epsilon", 1e-5)
    tensors = [node.tensor(0), *(along(node.tensor(number), 1, rank) for number in range(1, 5))]
    given = tensors[0].data_type
    tensor, scale, bias, mean, variance = _common(tensors)
    if len(node.sizes(0)) < 2:
        raise NotExpressible(f"no channels in {list(node.sizes(0))}")
    if node.version >= 14 and node.attribute("training_mode", 0):
        return _trained(node, (tensor, scale, bias, mean, variance), epsilon)
    if any(node.wants(number) for number in range(1, 5)):
        raise NotExpressible("statistics of a training step")
    result = dml.batch_normalization(tensor, mean, variance, scale, bias, epsilon=epsilon)
    return _as(result, given)


def _trained(node: Conversion, tensors: Sequence[GraphTensor], epsilon: float) -> Result:
    """The batch by its own statistics, and these mixed into the running ones."""
    tensor, scale, bias, mean, variance = tensors
    result = dml.batch_normalization_training(tensor, scale, bias, epsilon=epsilon)
    momentum = node.attribute("momentum", 0.9)
    outputs = [node.result(_as(result.output, node.tensor(0).data_type))]
    for number, old, new in ((3, mean, result.output_mean), (4, variance, result.output_variance)):
        kept = dml.element_wise_multiply(old, momentum)
        mixed = dml.element_wise_add(kept, dml.element_wise_multiply(new, 1 - momentum))
        outputs.append(node.result(_as(mixed, node.tensor(number).data_type), node.sizes(number)))
    return tuple(outputs)


@converts("InstanceNormalization", since=6)
def instance_normalization(node: Conversion) -> Result:
    """Each channel of each sample by its own mean and variance."""
    rank = len(node.sizes(0))
    if rank < 3:
        raise NotExpressible(f"no spatial dimensions in {list(node.sizes(0))}")
    return dml.mean_variance_normalization1(
        node.tensor(0),
        along(node.tensor(1), 1, rank),
        along(node.tensor(2), 1, rank),
        axes=range(2, rank),
        epsilon=node.attribute("epsilon", 1e-5),
    )


def _normalized(node: Conversion, use_mean: bool, bias: int | None) -> Result:
    """Input 0 over the axes from `axis` on, times input 1, and what it was divided by."""
    sizes = node.sizes(0)
    axis = node.axis(node.attribute("axis", -1), len(sizes))
    axes = range(axis, len(sizes))
    given = node.tensor(0)
    parameters = [
        node.tensor(number, len(sizes)) for number in (1, bias) if number is not None and node.has(number)
    ]
    tensor, scale, *rest = _common([given, *parameters])
    epsilon = node.attribute("epsilon", 1e-5)
    result = dml.mean_variance_normalization2(
        tensor, scale, rest[0] if rest else None, axes=axes, use_mean=use_mean, epsilon=epsilon
    )
    wanted = node.type(1)
    output = node.result(_as(result, node.tensor(1).data_type if wanted != node.type(0) else given.data_type))
    return (output, *_statistics(node, given, axes, use_mean, epsilon))


def _statistics(
    node: Conversion, tensor: GraphTensor, axes: range, use_mean: bool, epsilon: float
) -> tuple[GraphTensor | None, ...]:
    """Means and inverse deviations, in float32 unless `stash_type` says otherwise."""
    wanted = [node.wants(number) for number in (1, 2)]
    if not any(wanted):
        return (None, None)
    if node.attribute("stash_type", 1) == 1:
        tensor = _as(tensor, TensorDataType.FLOAT32)
    mean = dml.reduce(tensor, function="AVERAGE", axes=axes)
    centred = dml.element_wise_subtract(tensor, mean) if use_mean else tensor
    variance = dml.reduce(dml.element_wise_multiply(centred, centred), function="AVERAGE", axes=axes)
    inverse = dml.element_wise_recip(dml.element_wise_sqrt(dml.element_wise_add(variance, epsilon)))
    return (mean, inverse) if use_mean else (inverse, None)


@converts("LayerNormalization", since=1)
def layer_normalization(node: Conversion) -> Result:
    """By mean and deviation over the last axes."""
    return _normalized(node, use_mean=True, bias=2)


@converts("RMSNormalization", since=23)
def rms_normalization(node: Conversion) -> Result:
    """By the root of the mean square over the last axes."""
    return _normalized(node, use_mean=False, bias=None)


@converts("SimplifiedLayerNormalization")
def simplified_layer_normalization(node: Conversion) -> Result:
    """The same under the name of ONNX Runtime, with the inverse root."""
    return _normalized(node, use_mean=False, bias=None)


@converts("GroupNormalization", since=18)
def group_normalization(node: Conversion) -> Result:
    """Each group of channels by its own mean and variance; scales are of groups up to version 20."""
    sizes, groups = node.sizes(0), node.required("num_groups")
    if len(sizes) < 2 or groups < 1 or sizes[1] % groups:
        raise NotExpressible(f"{groups} groups of the channels of {list(sizes)}")
    grouped = (sizes[0], groups, sizes[1] // groups, math.prod(sizes[2:]))
    parameters = (1, groups, 1 if node.version < 21 else grouped[2], 1)
    given = node.tensor(0)
    tensors = [shaped(given, grouped), *(shaped(node.tensor(number), parameters) for number in (1, 2))]
    tensor, scale, bias = _common(tensors)
    epsilon = node.attribute("epsilon", 1e-5)
    result = dml.mean_variance_normalization2(tensor, scale, bias, axes=[2, 3], epsilon=epsilon)
    return node.result(_as(result, given.data_type), sizes)


@converts("MeanVarianceNormalization", since=9)
def mean_variance_normalization(node: Conversion) -> Result:
    """Less the mean, by the deviation."""
    tensor, rank = node.tensor(0), len(node.sizes(0))
    axes = sorted({node.axis(axis, rank) for axis in node.attribute("axes", [0, 2, 3])})
    if tensor.data_type != TensorDataType.FLOAT32:
        tensor = _as(tensor, TensorDataType.FLOAT32)
    result = dml.mean_variance_normalization1(tensor, axes=axes, epsilon=1e-18)
    return _as(result, node.tensor(0).data_type)
