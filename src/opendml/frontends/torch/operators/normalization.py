"""Normalizations. PyTorch decomposes the gradients of most."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import along, in_common_type, shaped
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.torch.registry import Tensor, TorchNode, converts

Results = tuple[Tensor | None, ...]
Parameter = Tensor | None


def _normalized(
    node: TorchNode,
    x: Tensor,
    parameters: tuple[Parameter, Parameter],
    sizes: Sequence[int],
    axes: list[int],
    epsilon: float,
) -> Results:
    """Return elements relative to mean and deviation over axes; and both, if they are wanted.

    Args:
        parameters: scale and bias, which have these `sizes`.
    """
    x, *typed = _in_one_type(x, *parameters)
    scale, bias = (None if each is None else shaped(each, sizes) for each in typed)
    result = dml.mean_variance_normalization1(x, scale, bias, axes=axes, epsilon=epsilon)
    if not any(node.wanted[1:]):
        return result, None, None
    center = dml.reduce(x, function="AVERAGE", axes=axes)
    variance = dml.reduce(dml.element_wise_difference_square(x, center), function="AVERAGE", axes=axes)
    return result, center, _reciprocal_deviation(variance, epsilon)


@converts("native_layer_norm", to="MEAN_VARIANCE_NORMALIZATION1")
def layer_norm(
    node: TorchNode, x: Tensor, sizes: Sequence[int], weight: Parameter, bias: Parameter, epsilon: float
) -> Results:
    """Convert the normalization of the last dimensions."""
    lead = x.ndim - len(sizes)
    axes = list(range(lead, x.ndim))
    return _normalized(node, x, (weight, bias), [*[1] * lead, *sizes], axes, epsilon)


@converts("native_group_norm", to="MEAN_VARIANCE_NORMALIZATION1")
def group_norm(
    node: TorchNode,
    x: Tensor,
    weight: Parameter,
    bias: Parameter,
    samples: int,
    channels: int,
    extent: int,
    groups: int,
    epsilon: float,
) -> Results:
    """Convert the normalization of groups of channels."""
    size = channels // groups
    grouped = x.reinterpret([samples, groups, size, extent])
    return _normalized(node, grouped, (weight, bias), [1, groups, size, 1], [2, 3], epsilon)


@converts("_native_batch_norm_legit_no_training", to="BATCH_NORMALIZATION")
def batch_norm(
    node: TorchNode,
    x: Tensor,
    weight: Parameter,
    bias: Parameter,
    mean: Tensor,
    variance: Tensor,
    momentum: float,
    epsilon: float,
) -> Results:
    """Convert the normalization of each channel by statistics that are given."""
    x, mean, variance, weight, bias = _in_one_type(x, mean, variance, weight, bias)
    center, spread = (along(each, 1, x.ndim) for each in (mean, variance))
    scale = 1.0 if weight is None else along(weight, 1, x.ndim)
    shift = 0.0 if bias is None else along(bias, 1, x.ndim)
    return dml.batch_normalization(x, center, spread, scale, shift, epsilon=epsilon), None, None


@converts("_native_batch_norm_legit_functional", "native_batch_norm", to="BATCH_NORMALIZATION_TRAINING")
def batch_norm_of_batch(
    node: TorchNode,
    x: Tensor,
    weight: Parameter,
    bias: Parameter,
    running_mean: Parameter,
    running_variance: Parameter,
    training: bool,
    momentum: float,
    epsilon: float,
) -> Results:
    """Convert the normalization of each channel by statistics of the batch, or by those that are given.

    The functional form returns the running statistics, which move towards those of the batch.
    """
    returns_running = len(node.wanted) == 5
    if running_mean is None or running_variance is None:
        if returns_running:
            raise NotExpressible("no running statistics")
    elif not training:
        results = batch_norm(node, x, weight, bias, running_mean, running_variance, momentum, epsilon)
        return (*results, running_mean, running_variance) if returns_running else results
    elif not returns_running:
        raise NotExpressible("running statistics that change in place")
    x, weight, bias = _in_one_type(x, weight, bias)
    result, center, spread = _of_batch(node, x, weight, bias, epsilon)
    results = result, center, _reciprocal_deviation(spread, epsilon)
    if running_mean is None or running_variance is None:
        return results
    count = math.prod(x.sizes) // x.sizes[1]
    if count == 1:
        raise NotExpressible("a batch with one element in each channel")
    unbiased = spread * (count / (count - 1))
    running_mean, center = in_common_type([running_mean, center])
    running_variance, unbiased = in_common_type([running_variance, unbiased])
    pairs = ((running_mean, center), (running_variance, unbiased))
    return *results, *(new * momentum + running * (1 - momentum) for running, new in pairs)


def _in_one_type(*tensors: Any) -> Iterator[Any]:
    """Return tensors in their widest type: autocast normalizes float16 by parameters of float32.

    Under autocast PyTorch's kernels return statistics of another type than its trace says, so what is left to
    them would be read wrongly.
    """
    together = iter(in_common_type([each for each in tensors if each is not None]))
    return iter([None if each is None else next(together) for each in tensors])


def _of_batch(
    node: TorchNode, x: Tensor, weight: Parameter, bias: Parameter, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the normalized elements, and the mean and the variance of each channel."""
    channels = (x.sizes[1],)
    scale = node.filled(1, channels, x.data_type) if weight is None else weight
    shift = node.filled(0, channels, x.data_type) if bias is None else bias
    result, mean, variance = dml.batch_normalization_training(
        x, along(scale, 1, x.ndim), along(shift, 1, x.ndim), epsilon=epsilon
    )
    return result, mean.reinterpret(channels), variance.reinterpret(channels)


def _reciprocal_deviation(variance: Tensor, epsilon: float) -> Tensor:
    return dml.element_wise_recip(dml.element_wise_sqrt(variance + epsilon))
