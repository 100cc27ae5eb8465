"""Gradients of pooling: each place of an image gets its share of what came to the windows that have it."""

from __future__ import annotations

import math
from typing import Any

from opendml.operators.folding import folded
from opendml.operators.pooling import PoolingWindows, index_of_greatest, number_of_elements, windows_of
from opendml.operators.registry import defines
from opendml.program.functions import equal, select
from opendml.program.node import Node, convert
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import as_number
from opendml.program.view import permuted, repeated, reshaped
from opendml.spec.tensor_desc import TensorDesc


@defines("AVERAGE_POOLING_GRAD", output=True)
def average_pooling_grad(gradient: Node, *, include_padding: bool, output: TensorDesc, **window: Any) -> Node:
    """sum, over the windows that have the element, of gradient / number of the window's elements, which are
    counted as in AVERAGE_POOLING

    Sums are made in float64 and rounded once; where the numbers differ, so is each quotient before.
    """
    counts = gradient.sizes[2:]
    windows = windows_of(output.sizes, counts, **window)
    number = number_of_elements(windows, include_padding)
    shares = gradient
    if isinstance(number, Node):
        single = reshaped(gradient, (*gradient.sizes, *(1,) * len(counts)))
        shares = windows.pooled(single / convert(number, gradient.type))
    share = 1.0 if isinstance(number, Node) else 1.0 / as_number(number)
    return _folded(windows, _masked(windows, _in_windows(windows, shares)), output, share)


@defines("MAX_POOLING_GRAD", output=True)
def max_pooling_grad(x: Node, gradient: Node, *, output: TensorDesc, **window: Any) -> Node:
    """sum, over the windows whose greatest element this is, of gradient

    Of equal elements it is the first in row-major order, and NaN counts as the greatest, as the indices of
    MAX_POOLING2 have it. A window of nothing but padding gives its gradient to no element. Sums are made in
    float64 and rounded once.
    """
    windows = windows_of(x.sizes, gradient.sizes[2:], **window)
    type = _type_of_numbers(windows)
    numbers = permuted(convert(windows.numbers(), type), _folding_order(windows))
    is_greatest = equal(_in_windows(windows, convert(index_of_greatest(windows, x), type)), numbers)
    shares = select(is_greatest, _in_windows(windows, gradient), 0.0)
    return _folded(windows, _masked(windows, shares), output)


def _type_of_numbers(windows: PoolingWindows) -> ScalarType:
    """Return the narrowest type in which the numbers of a window's elements differ from each other."""
    axes = enumerate(zip(windows.extents, windows.dilations, strict=True), 3)
    span = sum((extent - 1) * dilation * math.prod(windows.sizes[axis:]) for axis, (extent, dilation) in axes)
    types = (ScalarType.UINT8, ScalarType.UINT16, ScalarType.UINT32)
    return next((type for type in types if span < 2**type.bits), ScalarType.UINT64)


def _folding_order(windows: PoolingWindows) -> tuple[int, ...]:
    """Return the dimensions (N, C, extents, counts) by their places in (N, C, counts, extents)."""
    return (0, 1, *windows.axes, *range(2, windows.axes[0]))


def _masked(windows: PoolingWindows, value: Node) -> Node:
    """Return a value of (N, C, extents, counts) where the windows have the elements; elsewhere 0."""
    if not windows.clipped:
        return value
    order = _folding_order(windows)
    return permuted(windows.masked(permuted(value, order), 0.0), order)


def _in_windows(windows: PoolingWindows, value: Node) -> Node:
    """Return the gradient of each window for all of its elements: (N, C, extents, counts)."""
    single = reshaped(value, (*windows.sizes[:2], *(1,) * len(windows.extents), *windows.counts))
    return repeated(single, (*windows.sizes[:2], *windows.extents, *windows.counts))


def _folded(windows: PoolingWindows, shares: Node, output: TensorDesc, share: float = 1.0) -> Node:
    """Return a share of the sums of the windows' elements at each place of the image."""
    type = ScalarType.of(output.data_type)
    return folded(shares, windows.sizes[2:], windows.strides, windows.dilations, windows.before, type, share)
