"""Batch normalization as training has it, and the gradients of normalizations."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opendml.operators.normalization import local_base
from opendml.operators.registry import defines, fused
from opendml.program.functions import (
    deviation,
    mean,
    multiply_add,
    power,
    reduce_sum,
    rounded,
    square_root,
    variance,
    wide,
    window_sum,
)
from opendml.program.node import Node, convert
from opendml.program.sizes import as_number
from opendml.spec.operator_desc import OperatorDesc


@defines("BATCH_NORMALIZATION_TRAINING", whole=True)
def batch_normalization_training(
    x: Node,
    scale: Node,
    bias: Node,
    fused_add: Node | None,
    *,
    epsilon: float,
    fused_activation: OperatorDesc | None,
) -> tuple[Node, ...]:
    """fused(scale * (x - mean) / sqrt(variance + epsilon) + bias + fused_add), mean and population variance
    over the dimensions where the scale has size 1

    The mean and the variance that are put out are rounded to their type; the result is made of them as they
    were before.
    """
    axes = _axes(scale)
    center, spread = mean(x, axes), variance(x, axes)
    gain = scale * convert(1.0 / square_root(spread + epsilon), x.type)
    result = multiply_add(deviation(x, center), gain, bias)
    result = result if fused_add is None else result + fused_add
    return fused(fused_activation, result), center, spread


@defines("BATCH_NORMALIZATION_GRAD", whole=True)
def batch_normalization_grad(
    x: Node, gradient: Node, mean: Node, variance: Node, scale: Node, *, epsilon: float
) -> tuple[Node, ...]:
    """gradient * scale / sqrt(variance + epsilon); of the scale: sum of gradient * (x - mean) /
    sqrt(variance + epsilon); of the bias: sum of the gradient

    The sums run over the dimensions where the mean has size 1, are made in float64, and rounded once.
    """
    axes = _axes(mean)
    root = square_root(wide(variance) + epsilon)
    slope = reduce_sum(wide(gradient) * (wide(x) - wide(mean)), axes) / root
    # Factors of a group may be beyond the numbers of its type where the results are not.
    of_input = convert(wide(gradient) * (wide(scale) / root), x.type)
    return of_input, slope, reduce_sum(gradient, axes)


@defines("BATCH_NORMALIZATION_TRAINING_GRAD", whole=True)
def batch_normalization_training_grad(
    x: Node, gradient: Node, mean_of_training: Node, variance: Node, scale: Node, *, epsilon: float
) -> tuple[Node, ...]:
    """scale / sqrt(variance + epsilon) * (gradient - mean(gradient) - (x - mean(x)) * mean(gradient *
    (x - mean(x))) / (variance + epsilon)); of the scale and of the bias: as BATCH_NORMALIZATION_GRAD

    mean(...) is over the dimensions where the scale has size 1, and computed of x, as DirectML's formula has
    it; the MeanTensor is for the gradient of the scale alone. Sums are made in float64 and rounded once.
    """
    axes = _axes(scale)
    count = as_number(math.prod(x.sizes[axis] for axis in axes))
    spread = wide(variance) + epsilon
    root = square_root(spread)
    center, of_bias = mean(x, axes), reduce_sum(gradient, axes)
    products = reduce_sum(wide(gradient) * (wide(x) - wide(mean_of_training)), axes)
    # About the mean of x: both sums are over x as it comes, so one pass suffices.
    covariance = (products + (wide(mean_of_training) - center) * of_bias) / count
    gain = wide(scale) / root
    slope = gain * covariance / spread
    # Terms may be beyond the numbers of the type where the results are not.
    of_input = (wide(gradient) - of_bias / count) * gain - (wide(x) - center) * slope
    return convert(of_input, x.type), products / root, of_bias


@defines("LOCAL_RESPONSE_NORMALIZATION_GRAD", whole=True)
def local_response_normalization_grad(
    x: Node, gradient: Node, *, cross_channel: bool, local_size: int, alpha: float, beta: float, bias: float
) -> Node:
    """gradient / base ^ beta - 2 * alpha * beta / local_size * x * (sum of gradient * x / base ^ (beta + 1))

    LOCAL_RESPONSE_NORMALIZATION raises base to the power of beta. The sum is over the elements whose local
    region has this one.

    DirectML's page has no formula; this is the derivative of the forward operator, with its local regions.
    The power is float32: where the base is so near 0 that it is 0, its terms are infinite or NaN.
    """
    base = local_base(x, cross_channel, local_size, alpha, bias)
    # Beside a base near 0 terms may be beyond the numbers of the type where their difference is not.
    divisor = wide(rounded(power(base, beta)))
    shares = wide(gradient) * wide(x) / (wide(base) * divisor)
    # The regions that have an element reach as far the other way.
    after = (local_size - 1) // 2
    for axis in (1,) if cross_channel else (2, 3):
        shares = window_sum(shares, axis, local_size - 1 - after, after)
    factor = 2.0 * alpha * beta / local_size
    return convert(wide(gradient) / divisor - wide(x) * (shares * factor), x.type)


def _axes(statistic: Node) -> Sequence[int]:
    """Return the dimensions over which a statistic of such sizes is made."""
    return [axis for axis, size in enumerate(statistic.sizes) if size == 1]
