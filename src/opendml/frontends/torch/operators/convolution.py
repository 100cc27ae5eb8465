"""Convolutions and their gradients, which are convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import along, part
from opendml.frontends.torch.registry import Tensor, TorchNode, converts


@converts("convolution", to="CONVOLUTION")
def convolution(
    node: TorchNode,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """Convert a convolution. PyTorch's filters lie as DirectML's do, in both directions."""
    spatial = x.ndim - 2
    return dml.convolution(
        x,
        weight,
        None if bias is None else along(bias, 1, x.ndim),
        direction="BACKWARD" if transposed else "FORWARD",
        strides=_all(stride, spatial),
        start_padding=_all(padding, spatial),
        end_padding=_all(padding, spatial),
        dilations=_all(dilation, spatial),
        output_padding=_all(output_padding, spatial) if transposed else None,
        group_count=groups,
        sizes=list(node.sizes),
    )


@converts("convolution_backward", to="CONVOLUTION")
def convolution_backward(
    node: TorchNode,
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """Convert the gradients of the input, of the filters, and of the bias, as far as they are wanted."""
    steps, margins, holes = (_all(each, x.ndim - 2) for each in (stride, padding, dilation))
    wanted = node.wanted
    of_input = of_weight = of_bias = None
    if wanted[0]:
        of_input = dml.convolution(
            gradient,
            weight,
            direction="FORWARD" if transposed else "BACKWARD",
            strides=steps,
            start_padding=margins,
            end_padding=margins,
            dilations=holes,
            group_count=groups,
            sizes=list(x.sizes),
        )
    if wanted[1]:
        long, short = (gradient, x) if transposed else (x, gradient)
        of_weight = _gradient_of_weight(long, short, weight, steps, margins, holes, groups)
    if wanted[2]:
        of_bias = dml.reduce(gradient, function="SUM", axes=[0, *range(2, x.ndim)])
    return of_input, of_weight, of_bias


def _gradient_of_weight(
    long: Tensor,
    short: Tensor,
    weight: Tensor,
    steps: list[int],
    margins: list[int],
    holes: list[int],
    groups: int,
) -> Tensor:
    """Filter the tensor before a forward convolution by the gradient behind it.

    Samples are summed up like channels, and strides and dilations change their places.
    """
    ends = []
    places = zip(short.sizes[2:], weight.sizes[2:], steps, margins, holes, strict=True)
    for axis, (count, size, step, margin, hole) in enumerate(places, 2):
        end = (count - 1) * step + (size - 1) * hole + 1 - margin - long.sizes[axis]
        # What no window reaches would give more results than there are weights.
        long = part(long, axis, 0, long.sizes[axis] + min(end, 0))
        ends.append(max(end, 0))
    samples, channels, *extents = long.sizes
    spatial = list(range(3, 3 + len(extents)))
    split = long.reinterpret([samples, groups, channels // groups, *extents])
    image = split.permute([2, 1, 0, *spatial]).reinterpret([channels // groups, groups * samples, *extents])
    sums = dml.convolution(
        image,
        short.permute([1, 0, *(axis - 1 for axis in spatial)]),
        strides=holes,
        dilations=steps,
        start_padding=margins,
        end_padding=ends,
        group_count=groups,
    )
    return sums.permute([1, 0, *range(2, weight.ndim)])


def _all(values: Sequence[int], count: int) -> list[int]:
    """Return one number for each spatial dimension, where one stands for all."""
    return list(values) * count if len(values) == 1 else list(values)
