"""Pooling and its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

import opendml as dml
from opendml.frontends.pooling_windows import end_padding, pooling_fields
from opendml.frontends.torch.conversion import Conversion, NotExpressible, numpy_type
from opendml.frontends.torch.registry import converts
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor

_aten = torch.ops.aten


@converts(_aten.max_pool2d_with_indices.default)
def max_pool(
    node: Conversion,
    x: GraphTensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> tuple[GraphTensor | None, ...]:
    """The greatest element of each window, and, if they are wanted, its number in its channel's image."""
    image, options = _windows(x, node.sizes, kernel, stride, padding, dilation)
    if not node.wanted[1]:
        return dml.max_pooling2(image, **options), None
    values, numbers = dml.max_pooling2(image, output_indices=True, output_type=dml.UINT32, **options)
    height, width = x.sizes[-2:]
    channels = image.sizes[0] * image.sizes[1]
    starts = np.arange(channels, dtype=np.uint32) * np.uint32(height * width)
    firsts = node.constant(starts).reinterpret([*image.sizes[:2], 1, 1])
    return values, dml.element_wise_subtract(numbers, firsts)


@converts(_aten.max_pool2d_with_indices_backward.default)
def max_pool_backward(
    node: Conversion,
    gradient: GraphTensor,
    x: GraphTensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: GraphTensor,
) -> GraphTensor:
    """The gradient of each window at its first greatest element, which is found again."""
    image, options = _windows(x, gradient.sizes, kernel, stride, padding, dilation)
    of_windows = gradient.reinterpret([*image.sizes[:2], *gradient.sizes[-2:]])
    result: GraphTensor = dml.max_pooling_grad(image, of_windows, **options)
    return result


@converts(_aten.avg_pool2d.default)
def average_pool(
    node: Conversion,
    x: GraphTensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> GraphTensor:
    """The mean of each window."""
    image, options = _windows(x, node.sizes, kernel, stride, padding, (1,))
    include = _includes_padding(options, padding, count_include_pad, divisor_override)
    result: GraphTensor = dml.average_pooling1(image, include_padding=include, **options)
    return result


@converts(_aten.avg_pool2d_backward.default)
def average_pool_backward(
    node: Conversion,
    gradient: GraphTensor,
    x: GraphTensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> GraphTensor:
    """The gradient of each window, shared by its elements."""
    image, options = _windows(x, gradient.sizes, kernel, stride, padding, (1,))
    include = _includes_padding(options, padding, count_include_pad, divisor_override)
    del options["dilations"]
    of_windows = gradient.reinterpret([*image.sizes[:2], *gradient.sizes[-2:]])
    result: GraphTensor = dml.average_pooling_grad(
        of_windows, include_padding=include, sizes=list(image.sizes), **options
    )
    return result


@converts(_aten._adaptive_avg_pool2d.default)
def adaptive_average_pool(node: Conversion, x: GraphTensor, sizes: Sequence[int]) -> GraphTensor:
    """The mean of windows that cover the image; where they do not divide it, their sizes differ by 1 and they
    overlap."""
    if windows := _dividing(x.sizes[-2:], sizes):
        image, options = _windows(x, node.sizes, windows, (), (0,), (1,))
        result: GraphTensor = dml.average_pooling1(image, include_padding=False, **options)
        return result
    windows_of = _covering(x.sizes[-2:], sizes)
    sums = _summed(node, _summed(node, x, -2, windows_of[0]), -1, windows_of[1])
    return dml.element_wise_divide(sums, _counts(node, windows_of, len(x.sizes)))


@converts(_aten._adaptive_avg_pool2d_backward.default)
def adaptive_average_pool_backward(node: Conversion, gradient: GraphTensor, x: GraphTensor) -> GraphTensor:
    """The gradient of each window, shared by its elements."""
    if windows := _dividing(x.sizes[-2:], gradient.sizes[-2:]):
        return average_pool_backward(node, gradient, x, windows, (), (0,), False, False, None)
    windows_of = _covering(x.sizes[-2:], gradient.sizes[-2:])
    shared = dml.element_wise_divide(gradient, _counts(node, windows_of, len(x.sizes)))
    for axis, stretches in zip((-2, -1), windows_of, strict=True):
        shared = _summed(node, shared, axis, _windows_over(x.sizes[axis], stretches))
    return shared


def _dividing(extents: Sequence[int], counts: Sequence[int]) -> list[int]:
    """The windows of so many that divide an image; none where they would be of unequal sizes."""
    if any(extent % count for extent, count in zip(extents, counts, strict=True)):
        return []
    return [extent // count for extent, count in zip(extents, counts, strict=True)]


def _covering(extents: Sequence[int], counts: Sequence[int]) -> list[list[range]]:
    """The elements of each of so many windows, along each dimension."""
    return [
        [range(number * extent // count, -(-(number + 1) * extent // count)) for number in range(count)]
        for extent, count in zip(extents, counts, strict=True)
    ]


def _windows_over(extent: int, windows: Sequence[range]) -> list[range]:
    """The windows that each element is in."""
    over = [[number for number, each in enumerate(windows) if place in each] for place in range(extent)]
    return [range(each[0], each[-1] + 1) for each in over]


def _counts(node: Conversion, windows: Sequence[Sequence[range]], rank: int) -> GraphTensor:
    """How many elements each window has."""
    heights, widths = (np.array([len(each) for each in several]) for several in windows)
    counts = np.outer(heights, widths).astype(numpy_type(node.dtype))
    return node.constant(counts.reshape([1] * (rank - 2) + list(counts.shape)))


def _summed(node: Conversion, x: GraphTensor, axis: int, stretches: Sequence[range]) -> GraphTensor:
    """The sums of stretches of a dimension, which may overlap."""
    sizes = [1] * len(x.sizes)
    sizes[axis] = len(stretches)
    result: GraphTensor | None = None
    for step in range(max(map(len, stretches))):
        is_there = np.array([step < len(each) for each in stretches])
        places = np.array([each.start + step if step < len(each) else 0 for each in stretches], np.uint32)
        row = node.constant(places.reshape([1] * (len(x.sizes) - 1) + [-1]))
        part = dml.gather(x, row, axis=axis % len(x.sizes), index_dimensions=1)
        if not is_there.all():
            mask = repeated(node.constant(is_there.astype(np.uint8).reshape(sizes)), part.sizes)
            part = dml.element_wise_if(mask, part, node.filled(0, part.sizes, node.dtype))
        result = part if result is None else dml.element_wise_add(result, part)
    assert result is not None
    return result


def _windows(
    x: GraphTensor,
    result: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> tuple[GraphTensor, dict[str, Any]]:
    """The image with samples and channels, and how windows lie in it. Where the last ones reach beyond the
    padding, as with `ceil_mode`, there is more of it at the end."""
    image = x if len(x.sizes) == 4 else x.reinterpret([1, *x.sizes])
    window = _both(kernel)
    steps, margins, holes = _both(stride or kernel), _both(padding), _both(dilation)
    end = end_padding(result[-2:], steps, window, holes, image.sizes[2:], margins)
    return image, pooling_fields(window, steps, holes, margins, end)


def _includes_padding(
    options: dict[str, Any], padding: Sequence[int], count_include_pad: bool, divisor: int | None
) -> bool:
    """Whether padding counts among a window's elements; beyond what PyTorch calls padding nothing does."""
    if divisor is not None:
        raise NotExpressible(f"divisor_override={divisor}")
    if not count_include_pad or not any(padding):
        return False
    if any(end > margin for end, margin in zip(options["end_padding"], _both(padding), strict=True)):
        raise NotExpressible("windows beyond the padding, of which the padding counts")
    return True


def _both(values: Sequence[int]) -> list[int]:
    return list(values) * 2 if len(values) == 1 else list(values)
