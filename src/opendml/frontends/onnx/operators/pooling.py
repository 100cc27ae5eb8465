"""Pooling over windows and over all of a channel, and its reverse."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps

import numpy as np

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import shaped
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.conversion import OnnxConversion, Result
from opendml.frontends.onnx.operators.windows import SlidingWindows, windows_of
from opendml.frontends.onnx.registry import Converter, converts
from opendml.frontends.onnx.values import Computed
from opendml.runtime.graphs.tensor import GraphTensor


def _pooling(pool: Callable[[OnnxConversion, GraphTensor, SlidingWindows], Result]) -> Converter:
    """Return a converter that passes input 0 with at least two spatial dimensions, and its windows."""

    @wraps(pool)
    def convert(node: OnnxConversion) -> Result:
        windows = windows_of(node, node.required("kernel_shape"))
        sizes = (*node.sizes(0)[:2], *windows.outputs)
        if 0 in sizes:
            return node.empty(sizes), node.empty(sizes, np.int64)
        tensor = node.tensor(0)
        if len(windows.spatial) == 1:
            lists = (windows.kernel, windows.strides, windows.dilations, windows.start, windows.end)
            ones = zip((1, 1, 1, 0, 0, 1, 1), (*lists, windows.outputs, windows.spatial), strict=True)
            windows = SlidingWindows(*((first, *rest) for first, rest in ones))
            tensor = shaped(tensor, (*tensor.sizes[:2], 1, *tensor.sizes[2:]))
        return pool(node, tensor, windows)

    return convert


def _pooled(node: OnnxConversion, tensor: GraphTensor, windows: SlidingWindows) -> Computed:
    """Return as many windows as ONNX has, in its sizes: padding alone may hold one more."""
    sizes, rank = (*tensor.sizes[:2], *windows.outputs), len(node.sizes(0))
    if sizes != tuple(tensor.sizes):
        tensor = dml.slice1(tensor, input_window_sizes=sizes)
    return node.result(tensor, (*sizes[:2], *sizes[2 + len(sizes) - rank :]))


@converts("AveragePool", to="AVERAGE_POOLING1")
@_pooling
def average_pool(node: OnnxConversion, tensor: GraphTensor, windows: SlidingWindows) -> Result:
    """Convert AveragePool. Windows that reach behind the padding have fewer elements."""
    is_counted, start, end = node.flag("count_include_pad"), windows.start, windows.reached
    if is_counted and any(reached > asked for reached, asked in zip(end, windows.end, strict=True)):
        start_padding, end_padding = [0, 0, *start], [0, 0, *windows.end]
        tensor = dml.padding1(
            tensor, padding_mode="CONSTANT", start_padding=start_padding, end_padding=end_padding
        )
        end = tuple(max(0, reached - asked) for reached, asked in zip(end, windows.end, strict=True))
        is_counted, start = False, (0,) * len(start)
    fields = {**windows.pooling_fields, "start_padding": start, "end_padding": end}
    return _pooled(node, dml.average_pooling1(tensor, include_padding=is_counted, **fields), windows)


@converts("LpPool", since=2, to="LP_POOLING1")
@_pooling
def lp_pool(node: OnnxConversion, tensor: GraphTensor, windows: SlidingWindows) -> Result:
    """Convert LpPool: the p-th roots of sums of p-th powers."""
    return _pooled(node, dml.lp_pooling1(tensor, p=node.attribute("p"), **windows.pooling_fields), windows)


@converts("MaxPool", to="MAX_POOLING2")
@_pooling
def max_pool(node: OnnxConversion, tensor: GraphTensor, windows: SlidingWindows) -> Result:
    """Convert MaxPool: the greatest elements, and their indices in the whole input."""
    fields = windows.pooling_fields
    values = _pooled(node, dml.max_pooling2(tensor, **fields), windows)
    if not node.wants(1):
        return values
    _, indices = dml.max_pooling2(tensor, output_indices=True, output_type="UINT64", **fields)
    places = _pooled(node, dml.cast(indices, output_type="INT64"), windows)
    if node.flag("storage_order"):
        places = node.result(_columns_first(places.tensor, windows.spatial), places.sizes)
    return values, places


def _columns_first(places: GraphTensor, spatial: tuple[int, ...]) -> GraphTensor:
    """Return indices into channels whose first dimension is contiguous."""
    rest = dml.element_wise_modulus_truncate(places, math.prod(spatial))
    result = places - rest
    for dimension, size in enumerate(spatial):
        inner = math.prod(spatial[dimension + 1 :])
        index = dml.element_wise_modulus_truncate(dml.element_wise_divide(rest, inner), size)
        result = result + index * math.prod(spatial[:dimension])
    return result


def _spatial(node: OnnxConversion) -> int:
    """Return the number of elements of a channel of a sample."""
    if len(node.sizes(0)) < 3:
        raise NotExpressible(f"no spatial dimensions in {list(node.sizes(0))}")
    return math.prod(node.sizes(0)[2:])


def _global(function: str) -> Converter:
    def convert(node: OnnxConversion) -> Result:
        _spatial(node)
        return dml.reduce(node.tensor(0), function=function, axes=range(2, len(node.sizes(0))))

    return convert


converts("GlobalAveragePool", to="AVERAGE_POOLING1")(_global("AVERAGE"))
converts("GlobalMaxPool", to="MAX_POOLING2")(_global("MAX"))


@converts("GlobalLpPool", since=2, to="LP_POOLING1")
def global_lp_pool(node: OnnxConversion) -> Result:
    """Convert GlobalLpPool: the norm of each channel."""
    p, sizes, length = node.attribute("p"), node.sizes(0), _spatial(node)
    if p in (1, 2):
        return _global(f"L{p}")(node)
    flat = shaped(node.tensor(0), (*sizes[:2], 1, length))
    pooled = dml.lp_pooling1(flat, window_size=[1, length], p=p)
    return node.result(pooled, (*sizes[:2], *[1] * (len(sizes) - 2)))


@converts("MaxUnpool", since=9, to="MAX_UNPOOLING")
def max_unpool(node: OnnxConversion) -> Result:
    """Convert MaxUnpool: elements at their places among zeros. A given shape adds zeros at the ends."""
    sizes, kernel = node.sizes(0), node.required("kernel_shape")
    count = len(kernel)
    strides, pads = node.list_attribute("strides", count), node.list_attribute("pads", 2 * count, 0)
    if len(sizes) != count + 2:
        raise NotExpressible(f"a kernel of {count} dimensions over {len(sizes) - 2} spatial ones")
    each = zip(sizes[2:], strides, kernel, pads[:count], pads[count:], strict=True)
    spatial = [(size - 1) * step + window - first - last for size, step, window, first, last in each]
    usual, total = (*sizes[:2], *spatial), math.prod(sizes)
    elements, places = (shaped(node.tensor(number), (1, 1, 1, total)) for number in (0, 1))
    flat = dml.max_unpooling(
        elements, dml.cast(places, output_type="UINT64"), sizes=[1, 1, 1, math.prod(usual)]
    )
    result = shaped(flat, usual)
    if not node.has(2):
        return result
    more = [size - least for size, least in zip(node.known_list(2), usual, strict=True)]
    if min(more) < 0:
        raise NotExpressible(f"output_shape {node.known_list(2)} is less than {list(usual)}")
    return dml.padding1(result, padding_mode="CONSTANT", end_padding=more) if any(more) else result
