"""Pooling over windows and over all of a channel, and its reverse."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps

import numpy as np

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.operators.views import shaped
from opendml.frontends.onnx.operators.windows import Windows, windows_of
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import Computed
from opendml.runtime.graphs.tensor import GraphTensor


def _windows(node: Conversion) -> tuple[GraphTensor, Windows]:
    """Input 0 with at least two spatial dimensions, and the windows over them."""
    windows = windows_of(node, node.required("kernel_shape"))
    tensor = node.tensor(0)
    if len(windows.spatial) > 1:
        return tensor, windows
    lists = (windows.kernel, windows.strides, windows.dilations, windows.start, windows.end)
    ones = zip((1, 1, 1, 0, 0, 1, 1), (*lists, windows.outputs, windows.spatial), strict=True)
    flat = Windows(*((first, *rest) for first, rest in ones))
    return shaped(tensor, (*tensor.sizes[:2], 1, *tensor.sizes[2:])), flat


def _over_elements(pool: Callable[[Conversion], Result]) -> Callable[[Conversion], Result]:
    """What pools where there are elements: of none there are none."""

    @wraps(pool)
    def pooled(node: Conversion) -> Result:
        sizes = (*node.sizes(0)[:2], *windows_of(node, node.required("kernel_shape")).outputs)
        return (
            pool(node) if 0 not in sizes else (node.empty(sizes, node.type(0)), node.empty(sizes, np.int64))
        )

    return pooled


def _outputs(node: Conversion, windows: Windows) -> tuple[int, ...]:
    sizes = node.sizes(0)
    return (*sizes[:2], *windows.outputs[len(windows.outputs) - len(sizes) + 2 :])


@converts("AveragePool")
@_over_elements
def average_pool(node: Conversion) -> Result:
    """Means; windows that reach behind the padding have fewer elements."""
    tensor, windows = _windows(node)
    is_counted, start, end = bool(node.attribute("count_include_pad", 0)), windows.start, windows.reached
    behind = any(reached > asked for reached, asked in zip(end, windows.end, strict=True))
    if is_counted and behind:
        padded = [0, 0, *start], [0, 0, *windows.end]
        tensor = dml.padding1(tensor, padding_mode="CONSTANT", start_padding=padded[0], end_padding=padded[1])
        end = tuple(max(0, reached - asked) for reached, asked in zip(end, windows.end, strict=True))
        is_counted, start = False, (0,) * len(start)
    fields = {**windows.fields, "start_padding": start, "end_padding": end}
    pooled = dml.average_pooling1(tensor, include_padding=is_counted, **fields)
    return node.result(_first(pooled, windows), _outputs(node, windows))


def _first(pooled: GraphTensor, windows: Windows) -> GraphTensor:
    """As many windows as ONNX has: padding alone may hold one more."""
    sizes = (*pooled.sizes[:2], *windows.outputs)
    return pooled if sizes == tuple(pooled.sizes) else dml.slice1(pooled, input_window_sizes=sizes)


@converts("LpPool", since=2)
@_over_elements
def lp_pool(node: Conversion) -> Result:
    """The p-th roots of sums of p-th powers."""
    tensor, windows = _windows(node)
    pooled = dml.lp_pooling1(tensor, p=node.attribute("p", 2), **windows.fields)
    return node.result(_first(pooled, windows), _outputs(node, windows))


@converts("MaxPool")
@_over_elements
def max_pool(node: Conversion) -> Result:
    """The greatest elements, and where they lie in the whole input."""
    tensor, windows = _windows(node)
    values = dml.max_pooling2(tensor, **windows.fields)
    result = node.result(_first(values, windows), _outputs(node, windows))
    return (result, _places(node, tensor, windows)) if node.wants(1) else result


def _places(node: Conversion, tensor: GraphTensor, windows: Windows) -> Computed:
    """The indices of the greatest elements."""
    _, indices = dml.max_pooling2(tensor, output_indices=True, output_type="UINT64", **windows.fields)
    places = dml.cast(_first(indices, windows), output_type="INT64")
    if node.attribute("storage_order", 0):
        places = _columns_first(places, windows.spatial)
    return node.result(places, _outputs(node, windows))


def _columns_first(places: GraphTensor, spatial: tuple[int, ...]) -> GraphTensor:
    """Indices into channels that lie with their first dimension moving least."""
    rest = dml.element_wise_modulus_truncate(places, math.prod(spatial))
    result = dml.element_wise_subtract(places, rest)
    for dimension, size in enumerate(spatial):
        inner = math.prod(spatial[dimension + 1 :])
        index = dml.element_wise_modulus_truncate(dml.element_wise_divide(rest, inner), size)
        step = math.prod(spatial[:dimension])
        result = dml.element_wise_add(result, dml.element_wise_multiply(index, step))
    return result


def _global(node: Conversion, function: str) -> Result:
    tensor = node.tensor(0)
    if len(node.sizes(0)) < 3:
        raise NotExpressible(f"no spatial dimensions in {list(node.sizes(0))}")
    return dml.reduce(tensor, function=function, axes=range(2, len(tensor.sizes)))


@converts("GlobalAveragePool")
def global_average_pool(node: Conversion) -> Result:
    """The mean of each channel."""
    return _global(node, "AVERAGE")


@converts("GlobalMaxPool")
def global_max_pool(node: Conversion) -> Result:
    """The greatest element of each channel."""
    return _global(node, "MAX")


@converts("GlobalLpPool", since=2)
def global_lp_pool(node: Conversion) -> Result:
    """The norm of each channel."""
    p = node.attribute("p", 2)
    if p in (1, 2):
        return _global(node, f"L{p}")
    tensor, sizes = node.tensor(0), node.sizes(0)
    if len(sizes) < 3:
        raise NotExpressible(f"no spatial dimensions in {list(sizes)}")
    length = math.prod(sizes[2:])
    flat = shaped(tensor, (*sizes[:2], 1, length))
    return node.result(
        dml.lp_pooling1(flat, window_size=[1, length], p=p), (*sizes[:2], *[1] * (len(sizes) - 2))
    )


@converts("MaxUnpool", since=9)
def max_unpool(node: Conversion) -> Result:
    """Elements at their places among zeros. A given shape adds zeros at the ends."""
    sizes, kernel = node.sizes(0), node.required("kernel_shape")
    count = len(kernel)
    strides = node.attribute("strides", [1] * count)
    pads = node.attribute("pads", [0] * 2 * count)
    if len(sizes) != count + 2:
        raise NotExpressible(f"a kernel of {count} dimensions over {len(sizes) - 2} spatial ones")
    each = zip(sizes[2:], strides, kernel, pads[:count], pads[count:], strict=True)
    usual = (
        *sizes[:2],
        *((size - 1) * step + window - first - last for size, step, window, first, last in each),
    )
    total, length = math.prod(sizes), math.prod(usual)
    places = dml.cast(shaped(node.tensor(1), (1, 1, 1, total)), output_type="UINT64")
    flat = dml.max_unpooling(shaped(node.tensor(0), (1, 1, 1, total)), places, sizes=[1, 1, 1, length])
    result = shaped(flat, usual)
    if not node.has(2):
        return result
    more = [size - least for size, least in zip(node.known_list(2), usual, strict=True)]
    if min(more) < 0:
        raise NotExpressible(f"output_shape {node.known_list(2)} is less than {list(usual)}")
    return dml.padding1(result, padding_mode="CONSTANT", end_padding=more) if any(more) else result
