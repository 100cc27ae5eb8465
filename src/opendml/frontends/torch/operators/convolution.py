"""Convolutions and their gradients, which are convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import opendml as dml
from opendml.frontends.torch.conversion import Conversion
from opendml.frontends.torch.operators.views import taken
from opendml.frontends.torch.registry import converts
from opendml.runtime.graphs.tensor import GraphTensor

_aten = torch.ops.aten


@converts(_aten.convolution.default)
def convolution(
    node: Conversion,
    x: GraphTensor,
    weight: GraphTensor,
    bias: GraphTensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> GraphTensor:
    """PyTorch's filters lie as DirectML's do, in both directions."""
    spatial = len(x.sizes) - 2
    return dml.convolution(
        x,
        weight,
        None if bias is None else bias.reinterpret([1, bias.sizes[0], *[1] * spatial]),
        direction="BACKWARD" if transposed else "FORWARD",
        strides=_all(stride, spatial),
        start_padding=_all(padding, spatial),
        end_padding=_all(padding, spatial),
        dilations=_all(dilation, spatial),
        output_padding=_all(output_padding, spatial) if transposed else None,
        group_count=groups,
        sizes=list(node.sizes),
    )


@converts(_aten.convolution_backward.default)
def convolution_backward(
    node: Conversion,
    gradient: GraphTensor,
    x: GraphTensor,
    weight: GraphTensor,
    bias_sizes: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[GraphTensor | None, ...]:
    """The gradients of the input, of the filters, and of the bias, as far as they are wanted."""
    spatial = len(x.sizes) - 2
    steps, margins, holes = (_all(each, spatial) for each in (stride, padding, dilation))
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
        axes = [0, *range(2, len(x.sizes))]
        of_bias = dml.reduce(gradient, function="SUM", axes=axes)
    return of_input, of_weight, of_bias


def _gradient_of_weight(
    long: GraphTensor,
    short: GraphTensor,
    weight: GraphTensor,
    steps: list[int],
    margins: list[int],
    holes: list[int],
    groups: int,
) -> GraphTensor:
    """The tensor before a forward convolution, filtered by the gradient behind it: samples are summed up like
    channels, and strides and dilations change their places."""
    ends = []
    places = zip(short.sizes[2:], weight.sizes[2:], steps, margins, holes, strict=True)
    for axis, (count, size, step, margin, hole) in enumerate(places, 2):
        end = (count - 1) * step + (size - 1) * hole + 1 - margin - long.sizes[axis]
        # What no window reaches would give more results than there are weights.
        long = taken(long, axis, 0, long.sizes[axis] + min(end, 0))
        ends.append(max(end, 0))
    samples, channels, *extents = long.sizes
    spatial = list(range(3, 3 + len(extents)))
    split = long.reinterpret([samples, groups, channels // groups, *extents])
    image = split.permute([2, 1, 0, *spatial]).reinterpret([channels // groups, groups * samples, *extents])
    filters = short.permute([1, 0, *(axis - 1 for axis in spatial)])
    sums = dml.convolution(
        image,
        filters,
        strides=holes,
        dilations=steps,
        start_padding=margins,
        end_padding=ends,
        group_count=groups,
    )
    return sums.permute([1, 0, *range(2, len(weight.sizes))])


def _all(values: Sequence[int], count: int) -> list[int]:
    """One number for each spatial dimension, where one stands for all."""
    return list(values) * count if len(values) == 1 else list(values)
