"""Pooling and its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opendml.frontends.common.calls import dml
from opendml.frontends.common.pooling import end_padding
from opendml.frontends.common.tensors import gathered, shaped
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.torch.registry import Tensor, TorchNode, converts
from opendml.program.scalar_type import ScalarType
from opendml.runtime.graphs.repeat import repeated


@converts("max_pool2d_with_indices", to="MAX_POOLING2")
def max_pool(
    node: TorchNode,
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> tuple[Tensor | None, ...]:
    """Convert the greatest element of each window, and, if wanted, its number in its channel's image."""
    image, options = _windows(x, node.sizes, kernel, stride, padding, dilation)
    if not node.wanted[1]:
        return dml.max_pooling2(image, **options), None
    values, numbers = dml.max_pooling2(image, output_indices=True, output_type="UINT32", **options)
    height, width = x.sizes[-2:]
    starts = node.sequence(image.sizes[0] * image.sizes[1], np.uint32) * (height * width)
    return values, numbers - starts.reinterpret([*image.sizes[:2], 1, 1])


@converts("max_pool2d_with_indices_backward", to="MAX_POOLING_GRAD")
def max_pool_backward(
    node: TorchNode,
    gradient: Tensor,
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """Convert the gradient of each window at its first greatest element, which is found again."""
    image, options = _windows(x, gradient.sizes, kernel, stride, padding, dilation)
    result: Tensor = dml.max_pooling_grad(image, _of_windows(gradient, image), **options)
    return result


@converts("avg_pool2d", to="AVERAGE_POOLING1")
def average_pool(
    node: TorchNode,
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Convert the mean of each window."""
    image, options = _windows(x, node.sizes, kernel, stride, padding)
    include = _includes_padding(options, padding, count_include_pad, divisor_override)
    result: Tensor = dml.average_pooling1(image, include_padding=include, **options)
    return result


@converts("avg_pool2d_backward", to="AVERAGE_POOLING_GRAD")
def average_pool_backward(
    node: TorchNode,
    gradient: Tensor,
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """Convert the gradient of each window, shared by its elements."""
    image, options = _windows(x, gradient.sizes, kernel, stride, padding)
    options["include_padding"] = _includes_padding(options, padding, count_include_pad, divisor_override)
    del options["dilations"]
    result: Tensor = dml.average_pooling_grad(
        _of_windows(gradient, image), sizes=list(image.sizes), **options
    )
    return result


@converts("_adaptive_avg_pool2d", to="AVERAGE_POOLING1")
def adaptive_average_pool(node: TorchNode, x: Tensor, sizes: Sequence[int]) -> Tensor:
    """Convert the mean of windows that cover the image.

    Where they do not divide it, their sizes differ by 1 and they overlap.
    """
    if windows := _dividing(x.sizes[-2:], sizes):
        return average_pool(node, x, windows, count_include_pad=False)
    stretches = _covering(x.sizes[-2:], sizes)
    sums = _summed(node, _summed(node, x, x.ndim - 2, stretches[0]), x.ndim - 1, stretches[1])
    return sums / _counts(node, stretches, x.ndim)


@converts("_adaptive_avg_pool2d_backward", to="AVERAGE_POOLING_GRAD")
def adaptive_average_pool_backward(node: TorchNode, gradient: Tensor, x: Tensor) -> Tensor:
    """Convert the gradient of each window, shared by its elements."""
    if windows := _dividing(x.sizes[-2:], gradient.sizes[-2:]):
        return average_pool_backward(node, gradient, x, windows, (), (0,), False, False, None)
    windows_of = _covering(x.sizes[-2:], gradient.sizes[-2:])
    shared = gradient / _counts(node, windows_of, x.ndim)
    for axis, stretches in zip((x.ndim - 2, x.ndim - 1), windows_of, strict=True):
        shared = _summed(node, shared, axis, _windows_over(x.sizes[axis], stretches))
    return shared


def _dividing(extents: Sequence[int], counts: Sequence[int]) -> list[int]:
    """Return the sizes of `counts` equal windows that divide an image; [] if none do."""
    if any(extent % count for extent, count in zip(extents, counts, strict=True)):
        return []
    return [extent // count for extent, count in zip(extents, counts, strict=True)]


def _covering(extents: Sequence[int], counts: Sequence[int]) -> list[list[range]]:
    """Return the elements of each of `counts` windows, along each dimension."""
    return [
        [range(number * extent // count, -(-(number + 1) * extent // count)) for number in range(count)]
        for extent, count in zip(extents, counts, strict=True)
    ]


def _windows_over(extent: int, windows: Sequence[range]) -> list[range]:
    """Return the windows that each element is in."""
    over = [[number for number, each in enumerate(windows) if place in each] for place in range(extent)]
    return [range(each[0], each[-1] + 1) for each in over]


def _counts(node: TorchNode, windows: Sequence[Sequence[range]], rank: int) -> Tensor:
    """Return how many elements each window has."""
    heights, widths = (np.array([len(each) for each in stretches]) for stretches in windows)
    counts = np.multiply.outer(heights, widths).astype(ScalarType.of(node.data_type).numpy)
    return node.constant(counts.reshape([1] * (rank - 2) + list(counts.shape)))


def _summed(node: TorchNode, x: Tensor, axis: int, stretches: Sequence[range]) -> Tensor:
    """Return the sums of stretches of a dimension, which may overlap."""
    sizes = [len(stretches) if each == axis else 1 for each in range(x.ndim)]
    result: Tensor | None = None
    for step in range(max(map(len, stretches))):
        is_there = np.array([step < len(each) for each in stretches])
        places = np.array([each.start + step if step < len(each) else 0 for each in stretches], np.uint32)
        term = gathered(x, node.constant(places), axis)
        if not is_there.all():
            mask = repeated(node.constant(is_there.astype(np.uint8).reshape(sizes)), term.sizes)
            term = dml.element_wise_if(mask, term, node.filled(0, term.sizes, node.data_type))
        result = term if result is None else result + term
    assert result is not None
    return result


def _windows(
    x: Tensor,
    result: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int] = (1,),
) -> tuple[Tensor, dict[str, Any]]:
    """Return the image with samples and channels, and how windows lie in it.

    Where the last ones reach beyond the padding, as with `ceil_mode`, there is more of it at the end.
    """
    image = shaped(x, (*[1] * (4 - x.ndim), *x.sizes))
    window, steps, margins, holes = map(_both, (kernel, stride or kernel, padding, dilation))
    end = end_padding(result[-2:], steps, window, holes, image.sizes[2:], margins)
    fields = {"strides": steps, "window_size": window, "dilations": holes}
    return image, {**fields, "start_padding": margins, "end_padding": end}


def _of_windows(gradient: Tensor, image: Tensor) -> Tensor:
    return gradient.reinterpret([*image.sizes[:2], *gradient.sizes[-2:]])


def _includes_padding(
    options: dict[str, Any], padding: Sequence[int], count_include_pad: bool, divisor: int | None
) -> bool:
    """Return whether padding counts among a window's elements. What lies beyond it does not count."""
    if divisor is not None:
        raise NotExpressible(f"divisor_override={divisor}")
    if not count_include_pad or not any(padding):
        return False
    if any(end > margin for end, margin in zip(options["end_padding"], _both(padding), strict=True)):
        raise NotExpressible("windows beyond the padding, of which the padding counts")
    return True


def _both(values: Sequence[int]) -> list[int]:
    return list(values) * 2 if len(values) == 1 else list(values)
