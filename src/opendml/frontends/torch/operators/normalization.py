"""Normalizations. The gradients of most are decomposed by PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

import opendml as dml
from opendml.frontends.torch.conversion import Conversion, NotExpressible
from opendml.frontends.torch.registry import converts
from opendml.runtime.graphs.tensor import GraphTensor

_aten = torch.ops.aten


@converts(_aten.native_layer_norm.default)
def layer_norm(
    node: Conversion,
    x: GraphTensor,
    sizes: Sequence[int],
    weight: GraphTensor | None,
    bias: GraphTensor | None,
    epsilon: float,
) -> tuple[GraphTensor | None, ...]:
    """The elements relative to mean and deviation over the last dimensions; both, if they are wanted."""
    axes = list(range(len(x.sizes) - len(sizes), len(x.sizes)))
    lead = [1] * (len(x.sizes) - len(sizes))
    scale, shift = (None if each is None else each.reinterpret([*lead, *sizes]) for each in (weight, bias))
    result = dml.mean_variance_normalization1(x, scale, shift, axes=axes, epsilon=epsilon)
    if not any(node.wanted[1:]):
        return result, None, None
    center = dml.reduce(x, function="AVERAGE", axes=axes)
    return result, center, _reciprocal_deviation(_variance(x, center, axes), epsilon)


@converts(_aten.native_group_norm.default)
def group_norm(
    node: Conversion,
    x: GraphTensor,
    weight: GraphTensor | None,
    bias: GraphTensor | None,
    samples: int,
    channels: int,
    extent: int,
    groups: int,
    epsilon: float,
) -> tuple[GraphTensor | None, ...]:
    """The elements relative to the mean and the deviation of groups of channels; both, if they are wanted."""
    sizes = [samples, groups, channels // groups, extent]
    grouped, axes = x.reinterpret(sizes), [2, 3]
    scale, shift = (
        None if each is None else each.reinterpret([1, groups, channels // groups, 1])
        for each in (weight, bias)
    )
    result = dml.mean_variance_normalization1(grouped, scale, shift, axes=axes, epsilon=epsilon)
    if not any(node.wanted[1:]):
        return result, None, None
    center = dml.reduce(grouped, function="AVERAGE", axes=axes)
    return result, center, _reciprocal_deviation(_variance(grouped, center, axes), epsilon)


@converts(_aten._native_batch_norm_legit_no_training.default)
def batch_norm(
    node: Conversion,
    x: GraphTensor,
    weight: GraphTensor | None,
    bias: GraphTensor | None,
    mean: GraphTensor,
    variance: GraphTensor,
    momentum: float,
    epsilon: float,
) -> tuple[GraphTensor | None, ...]:
    """The elements relative to mean and deviation that are given for each channel."""
    return (
        dml.batch_normalization(
            x,
            _per_channel(mean, x),
            _per_channel(variance, x),
            1.0 if weight is None else _per_channel(weight, x),
            0.0 if bias is None else _per_channel(bias, x),
            epsilon=epsilon,
        ),
        None,
        None,
    )


@converts(_aten._native_batch_norm_legit_functional.default)
def batch_norm_of_batch(
    node: Conversion,
    x: GraphTensor,
    weight: GraphTensor | None,
    bias: GraphTensor | None,
    running_mean: GraphTensor,
    running_variance: GraphTensor,
    training: bool,
    momentum: float,
    epsilon: float,
) -> tuple[GraphTensor | None, ...]:
    """The elements relative to the mean and the deviation of their channel in the batch; both; and the
    running statistics, moved towards them."""
    if not training:
        result, *_ = batch_norm(node, x, weight, bias, running_mean, running_variance, momentum, epsilon)
        return result, None, None, running_mean, running_variance
    count = math.prod(x.sizes) // x.sizes[1]
    if count == 1:
        raise NotExpressible("a batch with one element in each channel")
    result, center, spread = _of_batch(node, x, weight, bias, epsilon)
    unbiased = dml.element_wise_multiply(spread, count / (count - 1))
    return (
        result,
        center,
        _reciprocal_deviation(spread, epsilon),
        _moved(running_mean, center, momentum),
        _moved(running_variance, unbiased, momentum),
    )


@converts(_aten.native_batch_norm.default)
def batch_norm_without_statistics(
    node: Conversion,
    x: GraphTensor,
    weight: GraphTensor | None,
    bias: GraphTensor | None,
    running_mean: GraphTensor | None,
    running_variance: GraphTensor | None,
    training: bool,
    momentum: float,
    epsilon: float,
) -> tuple[GraphTensor | None, ...]:
    """With statistics that are given, or with those of the batch that nothing keeps."""
    if not training and running_mean is not None and running_variance is not None:
        return batch_norm(node, x, weight, bias, running_mean, running_variance, momentum, epsilon)
    if running_mean is not None:
        raise NotExpressible("running statistics that change in place")
    result, center, spread = _of_batch(node, x, weight, bias, epsilon)
    return result, center, _reciprocal_deviation(spread, epsilon)


def _of_batch(
    node: Conversion, x: GraphTensor, weight: GraphTensor | None, bias: GraphTensor | None, epsilon: float
) -> tuple[GraphTensor, GraphTensor, GraphTensor]:
    """The normalized elements, and the mean and the variance of each channel."""
    channels = (x.sizes[1],)
    scale = node.filled(1, channels, node.dtype) if weight is None else weight
    shift = node.filled(0, channels, node.dtype) if bias is None else bias
    result, mean, variance = dml.batch_normalization_training(
        x, _per_channel(scale, x), _per_channel(shift, x), epsilon=epsilon
    )
    return result, mean.reinterpret(channels), variance.reinterpret(channels)


def _moved(running: GraphTensor, new: GraphTensor, momentum: float) -> GraphTensor:
    return dml.element_wise_add(
        dml.element_wise_multiply(new, momentum), dml.element_wise_multiply(running, 1 - momentum)
    )


def _per_channel(statistic: GraphTensor, x: GraphTensor) -> GraphTensor:
    """One number for each channel, with the dimensions of x."""
    return statistic.reinterpret([1, statistic.sizes[0], *[1] * (len(x.sizes) - 2)])


def _variance(x: GraphTensor, center: GraphTensor, axes: Sequence[int]) -> GraphTensor:
    return dml.reduce(dml.element_wise_difference_square(x, center), function="AVERAGE", axes=axes)


def _reciprocal_deviation(variance: GraphTensor, epsilon: float) -> GraphTensor:
    return dml.element_wise_recip(dml.element_wise_sqrt(dml.element_wise_add(variance, epsilon)))
