"""Elements written at indices: in the place of what is there, or reduced with it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.operators.shapes import reshaped
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.scatter_reduction import is_reduction
from opendml.frontends.onnx.values import Array
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.tensor_desc import packed_strides

_REDUCTIONS: dict[str, Callable[[GraphTensor, GraphTensor], GraphTensor]] = {
    "add": dml.element_wise_add,
    "mul": dml.element_wise_multiply,
    "max": dml.element_wise_max,
    "min": dml.element_wise_min,
}


@converts("Scatter", since=9)
@converts("ScatterElements", since=11)
def scatter_elements(node: Conversion) -> Result:
    """The input with updates at indices along an axis."""
    sizes, indices, type = node.sizes(0), node.sizes(1), node.type(0)
    axis = node.axis(node.attribute("axis", 0), len(sizes))
    if 0 in indices:
        return reshaped(node, sizes)
    total, count = math.prod(sizes), math.prod(indices)
    if is_reduction(node.node):
        _require_known(node)
        return node.result(_reduced_once(node, _places(node, axis), 1), sizes, type)
    if all(i == axis or size == sizes[i] for i, size in enumerate(indices)):
        scattered = dml.scatter(node.moved(0), node.tensor(1), node.moved(2), axis=axis)
    else:  # SCATTER wants indices for all of the other axes, but of one dimension it takes any number
        row, updates = node.moved(0).reinterpret([total]), node.moved(2).reinterpret([count])
        places = _places(node, axis)
        positions = node.constant(places) if isinstance(places, np.ndarray) else places
        scattered = dml.scatter(row, positions, updates, axis=0)
    return node.result(scattered, sizes, type)


def _places(node: Conversion, axis: int) -> GraphTensor | Array:
    """Where each update of a ScatterElements goes in the row of all elements."""
    sizes, indices = node.sizes(0), node.sizes(1)
    strides = packed_strides(sizes)
    others = [0 if i == axis else stride for i, stride in enumerate(strides)]
    starts: Array = sum(grid * stride for grid, stride in zip(np.indices(indices), others, strict=True))
    if node.is_known(1):
        return (_known_within(node, sizes[axis]) * strides[axis] + starts).reshape(-1)
    along = _within(_wide(node.tensor(1)), sizes[axis], strides[axis], math.prod(sizes))
    row: GraphTensor = dml.element_wise_add(along, node.constant(starts, np.int64))
    return row.reinterpret([math.prod(indices)])


@converts("ScatterND", since=11)
def scatter_nd(node: Conversion) -> Result:
    """The input with slices of updates at index tuples."""
    sizes, indices, updates = node.sizes(0), node.sizes(1), node.sizes(2)
    if 0 in indices or 0 in updates:
        return reshaped(node, sizes)
    if is_reduction(node.node):
        _require_known(node)
        length = indices[-1]
        tuples = _known_within(node, np.array(sizes[:length])).reshape(-1, length)
        places = tuples @ np.array(packed_strides(sizes[:length]), np.int64)
        reduced = _reduced_once(node, places, math.prod(sizes[length:]))
        return node.result(reduced, sizes, node.type(0))
    rank = max(1, len(sizes), len(indices), len(updates))
    scattered = dml.scatter_nd(
        node.moved(0, rank),
        node.tensor(1, rank),
        node.moved(2, rank),
        input_dimension_count=len(sizes),
        indices_dimension_count=len(indices),
    )
    return node.result(scattered, sizes, node.type(0))


def _known_within(node: Conversion, size: int | Array) -> Array:
    """The indices of a node, those from the end counted from the front."""
    indices = node.known(1).astype(np.int64)
    if np.any((indices < -size) | (indices >= size)):
        raise NotExpressible("an index is out of range")
    found: Array = indices % size
    return found


def _within(
    indices: GraphTensor, size: GraphTensor | int, stride: GraphTensor | int, nowhere: int
) -> GraphTensor:
    """How far indices lead, also from the end; `nowhere`, behind all places, if they are out of range: what
    goes there is left out."""
    within = dml.element_wise_modulus_floor(indices, size)
    from_end = dml.element_wise_logical_equals(within, dml.element_wise_add(indices, size))
    valid = dml.element_wise_logical_or(dml.element_wise_logical_equals(within, indices), from_end)
    found: GraphTensor = dml.element_wise_if(valid, dml.element_wise_multiply(within, stride), nowhere)
    return found


def _require_known(node: Conversion) -> None:
    if not node.is_known(1):
        raise NotExpressible("several updates may go to one place")


def _reduced_once(node: Conversion, places: GraphTensor | Array, columns: int) -> GraphTensor:
    """The input in rows, of which those at known places are reduced with one row of updates each.

    Raises:
        NotExpressible: several updates go to one place; the host reduces them.
    """
    function = _REDUCTIONS.get(node.attribute("reduction", "none"))
    assert isinstance(places, np.ndarray)
    if function is None or len(np.unique(places)) < len(places):
        raise NotExpressible("several updates go to one place")
    rows = node.tensor(0).reinterpret([math.prod(node.sizes(0)) // columns, columns])
    numbers = node.constant(places)
    before = dml.gather(rows, numbers.reinterpret([1, len(places)]), axis=0, index_dimensions=1)
    result: GraphTensor = dml.scatter_nd(
        rows,
        numbers.reinterpret([len(places), 1]),
        function(before, node.tensor(2).reinterpret([len(places), columns])),
        input_dimension_count=2,
        indices_dimension_count=2,
    )
    return result


def _wide(indices: GraphTensor) -> GraphTensor:
    """Indices as INT64."""
    wide: GraphTensor = dml.cast(indices, output_type=dml.INT64)
    return indices if indices.data_type == dml.INT64 else wide


@converts("TensorScatter")
def tensor_scatter(node: Conversion) -> Result:
    """A cache with an update, at a place of its own for each sample of the batch."""
    sizes, update = node.sizes(0), node.sizes(1)
    axis = node.axis(node.attribute("axis", -2), len(sizes))
    if axis == 0:
        raise NotExpressible("axis 0 is that of the batch")
    along = [update[axis] if i == axis else 1 for i in range(len(sizes))]
    places = repeated(node.constant(np.arange(update[axis])).reinterpret(along), update)
    if node.has(2):
        starts = node.tensor(2).reinterpret([sizes[0]] + [1] * (len(sizes) - 1))
        places = dml.element_wise_add(places, repeated(dml.cast(starts, output_type=dml.INT64), update))
    if node.attribute("mode", "linear") == "circular":
        places = dml.element_wise_modulus_floor(places, sizes[axis])
    return node.result(dml.scatter(node.moved(0), places, node.moved(1), axis=axis), sizes, node.type(0))
