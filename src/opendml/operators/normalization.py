"""Normalizations: elements relative to the mean and the deviation of their group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opendml.operators.registry import defines, fused
from opendml.program.functions import (
    deviation,
    magnitude,
    maximum,
    mean,
    multiply_add,
    power,
    reduce_sum,
    select,
    square_root,
    squared,
    variance,
    wide,
    window_sum,
)
from opendml.program.node import Node, constant, convert
from opendml.spec.operator_desc import OperatorDesc


@defines("BATCH_NORMALIZATION")
def batch_normalization(
    x: Node,
    mean: Node,
    variance: Node,
    scale: Node,
    bias: Node,
    *,
    spatial: bool,
    epsilon: float,
    fused_activation: OperatorDesc | None,
) -> Node:
    """fused(scale * (x - mean) / sqrt(variance + epsilon) + bias)

    Spatial changes nothing: it only says which sizes the mean and the variance may have.
    """
    gain = scale / square_root(variance + epsilon)
    return fused(fused_activation, _affine(x - mean, gain, bias))


@defines("MEAN_VARIANCE_NORMALIZATION")
def mean_variance_normalization(
    x: Node, scale: Node | None, bias: Node | None, *, cross_channel: bool, **same: Any
) -> Node:
    """MEAN_VARIANCE_NORMALIZATION1 over height and width, and with cross_channel over the channels too"""
    axes = (1, 2, 3) if cross_channel else (2, 3)
    return mean_variance_normalization1(x, scale, bias, axes=axes, **same)


@defines("MEAN_VARIANCE_NORMALIZATION1")
def mean_variance_normalization1(
    x: Node, scale: Node | None, bias: Node | None, *, normalize_variance: bool, **same: Any
) -> Node:
    """fused(scale * (x - mean) / sqrt(variance + epsilon) + bias), mean and population variance over the axes

    Without normalize_variance the division is left out. An absent scale is 1, an absent bias 0.
    """
    return mean_variance_normalization2(
        x, scale, bias, use_mean=True, use_variance=normalize_variance, **same
    )


@defines("MEAN_VARIANCE_NORMALIZATION2")
def mean_variance_normalization2(
    x: Node,
    scale: Node | None,
    bias: Node | None,
    *,
    axes: Sequence[int],
    use_mean: bool,
    use_variance: bool,
    epsilon: float,
    fused_activation: OperatorDesc | None,
) -> Node:
    """fused(scale * (x - mean) / sqrt(variance + epsilon) + bias), mean and population variance over the axes

    Without use_mean, the mean is taken to be 0: the variance is then the mean of the squares. Without
    use_variance the division is left out. (Microsoft's page says neither; this is how simplified layer
    normalization uses the operator.) An absent scale is 1, an absent bias 0.
    """
    gain = scale
    if use_variance:
        spread = variance(x, axes) if use_mean else mean(wide(x) * wide(x), axes)
        factor = convert(1.0 / square_root(spread + epsilon), x.type)
        gain = factor if scale is None else factor * scale
    centered = deviation(x, mean(x, axes)) if use_mean else x
    return fused(fused_activation, _affine(centered, gain, bias))


@defines("LP_NORMALIZATION")
def lp_normalization(x: Node, *, axis: int, epsilon: float, p: int) -> Node:
    """x / max(norm, epsilon), the norm being the sum of |x| (p = 1) or the root of that of x * x (p = 2)

    Microsoft's page does not say how epsilon guards the division; as a lower bound of the norm it leaves
    results of all other groups exact, as ONNX's operator, which has no epsilon, and PyTorch's have them.
    """
    norm = reduce_sum(magnitude(x), [axis]) if p == 1 else square_root(reduce_sum(wide(x) * wide(x), [axis]))
    bound = maximum(norm, epsilon)
    # A norm may be beyond all of x's type. What scaling makes denormal is nothing beside such a norm.
    scale = select(bound > 2.0**127, constant(2.0**-64, bound.type), 1.0)
    return x * convert(scale, x.type) / convert(bound * scale, x.type)


@defines("LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalization(
    x: Node, *, cross_channel: bool, local_size: int, alpha: float, beta: float, bias: float
) -> Node:
    """x / (bias + alpha / local_size * (sum of x * x over the local region)) ^ beta

    The region holds local_size elements across the channels, or, without cross_channel, along the height and
    along the width. (local_size - 1) / 2 of them, rounded down, are before the element, and the rest after
    it, less those beyond the tensor's bounds. Microsoft's page says neither; ONNX does, but only has regions
    across channels. As Microsoft's page has it, alpha is divided by local_size in both cases.
    """
    again = local_size <= _SQUARED_AGAIN
    return x / power(local_base(x, cross_channel, local_size, alpha, bias, again), beta)


_SQUARED_AGAIN = 16
"""Elements of a region along an axis, at most, that are squared for each region: of more, squares are rather
stored."""


def local_base(
    x: Node, cross_channel: bool, local_size: int, alpha: float, bias: float, again: bool = False
) -> Node:
    """Return bias + alpha / local_size * (sum of x * x over the local region).

    The squares are stored in memory, or computed `again` for each region.
    """
    before = (local_size - 1) // 2
    sums, term = (x, squared) if again else (squared(x), wide)
    for axis in (1,) if cross_channel else (2, 3):
        sums, term = window_sum(sums, axis, before, local_size - 1 - before, term), wide
    return convert(sums * (alpha / local_size) + bias, x.type)


def _affine(x: Node, gain: Node | None, bias: Node | None) -> Node:
    """Return gain * x + bias, without the step of an absent operand."""
    if gain is None:
        return x if bias is None else x + bias
    return x * gain if bias is None else multiply_add(x, gain, bias)
