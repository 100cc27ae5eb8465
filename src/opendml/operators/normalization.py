"""Normalizations: elements relative to the mean and the deviation of their group."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.operators.registry import defines, fused
from opendml.program.functions import deviation, mean, multiply_add, square_root, variance
from opendml.program.node import Node, convert
from opendml.spec.operator_desc import OperatorDesc


@defines("MEAN_VARIANCE_NORMALIZATION1")
def mean_variance_normalization1(
    x: Node,
    scale: Node | None,
    bias: Node | None,
    *,
    axes: Sequence[int],
    normalize_variance: bool,
    epsilon: float,
    fused_activation: OperatorDesc | None,
) -> Node:
    """fused(scale * (x - mean) / sqrt(variance + epsilon) + bias), mean and population variance over the axes

    Without normalize_variance the division is left out. An absent scale is 1, an absent bias 0.
    """
    centered = deviation(x, mean(x, axes))
    gain = scale
    if normalize_variance:
        factor = convert(1.0 / square_root(variance(x, axes) + epsilon), x.type)
        gain = factor if scale is None else factor * scale
    return fused(fused_activation, _affine(centered, gain, bias))


def _affine(x: Node, gain: Node | None, bias: Node | None) -> Node:
    """gain * x + bias; absent operands leave their step out."""
    if gain is None:
        return x if bias is None else x + bias
    return x * gain if bias is None else multiply_add(x, gain, bias)
