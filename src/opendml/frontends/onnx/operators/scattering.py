"""Elements written at indices, in the place of others or reduced with them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import gathered
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.conversion import OnnxConversion, Result
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import Array
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType
from opendml.spec.tensor_desc import packed_strides

_REDUCTIONS: dict[str, Callable[[GraphTensor, GraphTensor], GraphTensor]] = {
    "add": dml.element_wise_add,
    "mul": dml.element_wise_multiply,
    "max": dml.element_wise_max,
    "min": dml.element_wise_min,
}


@converts("Scatter", since=9, to="SCATTER")
@converts("ScatterElements", since=11, to="SCATTER")
def scatter_elements(node: OnnxConversion) -> Result:
    """Convert ScatterElements: the input with updates at indices along an axis."""
    sizes, indices, type = node.sizes(0), node.sizes(1), node.type(0)
    axis = node.axis_attribute()
    if 0 in indices:
        return node.reshaped(sizes)
    if node.attribute("reduction") not in (None, "none"):
        _require_known(node)
        return node.result(_reduced_once(node, _places(node, axis), 1), sizes, type)
    if all(each == axis or size == sizes[each] for each, size in enumerate(indices)):
        scattered = dml.scatter(node.moved(0), node.tensor(1), node.moved(2), axis=axis)
    else:  # SCATTER wants indices for all of the other axes, but of one dimension it takes any number
        row, updates = (node.moved(each).reinterpret([math.prod(node.sizes(each))]) for each in (0, 2))
        places = _places(node, axis)
        positions = node.constant(places) if isinstance(places, np.ndarray) else places
        scattered = dml.scatter(row, positions, updates, axis=0)
    return node.result(scattered, sizes, type)


def _places(node: OnnxConversion, axis: int) -> GraphTensor | Array:
    """Return where each update of a ScatterElements goes in the row of all elements."""
    sizes, indices = node.sizes(0), node.sizes(1)
    strides = packed_strides(sizes)
    others = [0 if each == axis else stride for each, stride in enumerate(strides)]
    starts: Array = sum(grid * stride for grid, stride in zip(np.indices(indices), others, strict=True))
    if node.is_known(1):
        return (_known_within(node, sizes[axis]) * strides[axis] + starts).reshape(-1)
    along = _within(_wide(node.tensor(1)), sizes[axis], strides[axis], math.prod(sizes))
    return (along + node.constant(starts, np.int64)).reinterpret([math.prod(indices)])


@converts("ScatterND", since=11, to="SCATTER_ND")
def scatter_nd(node: OnnxConversion) -> Result:
    """Convert ScatterND: the input with slices of updates at index tuples."""
    sizes, indices, updates = (node.sizes(number) for number in range(3))
    if 0 in indices or 0 in updates:
        return node.reshaped(sizes)
    if node.attribute("reduction") not in (None, "none"):
        _require_known(node)
        length = indices[-1]
        tuples = _known_within(node, np.array(sizes[:length])).reshape(-1, length)
        places = tuples @ np.array(packed_strides(sizes[:length]), np.int64)
        return node.result(_reduced_once(node, places, math.prod(sizes[length:])), sizes, node.type(0))
    rank = max(1, len(sizes), len(indices), len(updates))
    scattered = dml.scatter_nd(
        node.moved(0, rank),
        node.tensor(1, rank),
        node.moved(2, rank),
        input_dimension_count=len(sizes),
        indices_dimension_count=len(indices),
    )
    return node.result(scattered, sizes, node.type(0))


def _known_within(node: OnnxConversion, size: int | Array) -> Array:
    """Return the known indices of a node, counted from the front."""
    indices = node.known(1).astype(np.int64)
    if np.any((indices < -size) | (indices >= size)):
        raise NotExpressible("an index is out of range")
    found: Array = indices % size
    return found


def _within(indices: GraphTensor, size: int, stride: int, nowhere: int) -> GraphTensor:
    """Return the distances of indices, also from the end. Those out of range go to `nowhere`, behind all
    places, where SCATTER leaves them out."""
    within = dml.element_wise_modulus_floor(indices, size)
    valid = dml.element_wise_logical_or(within == indices, within == indices + size)
    return dml.element_wise_if(valid, within * stride, nowhere)


def _require_known(node: OnnxConversion) -> None:
    if not node.is_known(1):
        raise NotExpressible("several updates may go to one place")


def _reduced_once(node: OnnxConversion, places: GraphTensor | Array, columns: int) -> GraphTensor:
    """Return the input in rows, of which those at known places are reduced with one row of updates each.

    Raises:
        NotExpressible: several updates go to one place; the host reduces them.
    """
    function = _REDUCTIONS.get(node.attribute("reduction"))
    assert isinstance(places, np.ndarray)
    if function is None or len(np.unique(places)) < len(places):
        raise NotExpressible("several updates go to one place")
    rows = node.tensor(0).reinterpret([math.prod(node.sizes(0)) // columns, columns])
    numbers = node.constant(places)
    updates = function(gathered(rows, numbers, 0), node.tensor(2).reinterpret([len(places), columns]))
    numbers = numbers.reinterpret([len(places), 1])
    return dml.scatter_nd(rows, numbers, updates, input_dimension_count=2, indices_dimension_count=2)


def _wide(indices: GraphTensor) -> GraphTensor:
    is_wide = indices.data_type == TensorDataType.INT64
    return indices if is_wide else dml.cast(indices, output_type="INT64")


@converts("TensorScatter", to="SCATTER")
def tensor_scatter(node: OnnxConversion) -> Result:
    """Convert TensorScatter: a cache with an update, at a place of its own for each sample."""
    sizes, update, axis = node.sizes(0), node.sizes(1), node.axis_attribute()
    if axis == 0:
        raise NotExpressible("axis 0 is that of the batch")
    along = [update[axis] if each == axis else 1 for each in range(len(sizes))]
    places = repeated(node.constant(np.arange(update[axis])).reinterpret(along), update)
    if node.has(2):
        starts = node.tensor(2).reinterpret([sizes[0]] + [1] * (len(sizes) - 1))
        places = places + repeated(_wide(starts), update)
    if node.attribute("mode") == "circular":
        places = dml.element_wise_modulus_floor(places, sizes[axis])
    return node.result(dml.scatter(node.moved(0), places, node.moved(1), axis=axis), sizes, node.type(0))
