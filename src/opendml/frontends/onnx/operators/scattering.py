"""Elements written at indices: in the place of what is there, or reduced with it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.operators.shapes import reshaped
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import Array
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.tensor_desc import packed_strides

_Reduction = Callable[[GraphTensor, GraphTensor], GraphTensor]

_REDUCTIONS: dict[str, _Reduction] = {
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
    axis, reduction = node.axis(node.attribute("axis", 0), len(sizes)), _reduction(node)
    if 0 in indices:
        return reshaped(node, sizes)
    total, count = math.prod(sizes), math.prod(indices)
    if reduction is not None:
        rows, updates = node.tensor(0).reinterpret([total, 1]), node.tensor(2).reinterpret([count, 1])
        return node.result(_reduced(node, rows, _places(node, axis), updates, reduction), sizes, type)
    if all(i == axis or size == sizes[i] for i, size in enumerate(indices)):
        scattered = dml.scatter(node.moved(0), node.tensor(1), node.moved(2), axis=axis)
    else:  # SCATTER wants indices for all of the other axes, but of one dimension it takes any number
        row, updates = node.moved(0).reinterpret([total]), node.moved(2).reinterpret([count])
        scattered = dml.scatter(row, _as_tensor(node, _places(node, axis)), updates, axis=0)
    return node.result(scattered, sizes, type)


def _places(node: Conversion, axis: int) -> GraphTensor | Array:
    """Where each update of a ScatterElements goes in the row of all elements."""
    sizes, indices = node.sizes(0), node.sizes(1)
    strides = packed_strides(sizes)
    others = [0 if i == axis else stride for i, stride in enumerate(strides)]
    starts: Array = sum(grid * stride for grid, stride in zip(np.indices(indices), others, strict=True))
    if node.is_known(1):
        return (node.known(1).astype(np.int64) % sizes[axis] * strides[axis] + starts).reshape(-1)
    along = dml.element_wise_modulus_floor(_wide(node.tensor(1)), sizes[axis])
    places = dml.element_wise_multiply(along, strides[axis])
    row: GraphTensor = dml.element_wise_add(places, node.constant(starts, np.int64))
    return row.reinterpret([math.prod(indices)])


@converts("ScatterND", since=11)
def scatter_nd(node: Conversion) -> Result:
    """The input with slices of updates at index tuples."""
    sizes, indices, updates = node.sizes(0), node.sizes(1), node.sizes(2)
    reduction = _reduction(node)
    if 0 in indices or 0 in updates:
        return reshaped(node, sizes)
    if reduction is not None:
        outer = indices[-1]
        rows = node.tensor(0).reinterpret([math.prod(sizes[:outer]), math.prod(sizes[outer:])])
        slices = node.tensor(2).reinterpret([math.prod(indices[:-1]), math.prod(sizes[outer:])])
        reduced = _reduced(node, rows, _places_of_tuples(node), slices, reduction)
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


def _places_of_tuples(node: Conversion) -> GraphTensor | Array:
    """Where each slice of a ScatterND goes among all slices."""
    indices = node.sizes(1)
    sizes, count = node.sizes(0)[: indices[-1]], math.prod(indices[:-1])
    strides = np.array(packed_strides(sizes), np.int64)
    if node.is_known(1):
        tuples = node.known(1).astype(np.int64).reshape(count, len(sizes))
        return tuples % np.array(sizes) @ strides
    tensor = _wide(node.tensor(1)).reinterpret([count, len(sizes)])
    limits = repeated(node.constant(sizes, np.int64).reinterpret([1, len(sizes)]), tensor.sizes)
    steps = repeated(node.constant(strides).reinterpret([1, len(sizes)]), tensor.sizes)
    places = dml.element_wise_multiply(dml.element_wise_modulus_floor(tensor, limits), steps)
    row: GraphTensor = dml.reduce(places, function="SUM", axes=[1])
    return row.reinterpret([count])


def _reduced(
    node: Conversion,
    rows: GraphTensor,
    places: GraphTensor | Array,
    updates: GraphTensor,
    reduction: _Reduction,
) -> GraphTensor:
    """Rows reduced with all the updates whose place is theirs, in an order that only the places decide.

    Sorted by their places, updates of one row are neighbours. Each takes up those before it of the same row,
    1, 2, 4 ... of them at a time, so that the last one of a row has them all; of several updates SCATTER_ND
    lets the last one hold.
    """
    places, order, most = _sorted(node, places)
    updates = _rows_of(updates, order)
    step = 1
    while step < most:
        before, behind = updates[:-step], updates[step:]
        same = dml.element_wise_logical_equals(places[:-step], places[step:])
        same = repeated(same.reinterpret([same.sizes[0], 1]), behind.sizes)
        taken = dml.element_wise_if(same, reduction(before, behind), behind)
        updates = dml.join([updates[:step], taken], axis=0)
        step *= 2
    written = reduction(_rows_of(rows, places), updates)
    result: GraphTensor = dml.scatter_nd(
        rows,
        places.reinterpret([places.sizes[0], 1]),
        written,
        input_dimension_count=2,
        indices_dimension_count=2,
    )
    return result


def _sorted(node: Conversion, places: GraphTensor | Array) -> tuple[GraphTensor, GraphTensor, int]:
    """Places in ascending order, the numbers that they had, and how many of them are equal at most."""
    if isinstance(places, np.ndarray):
        order = np.argsort(places, kind="stable")
        most = int(np.unique(places, return_counts=True)[1].max())
        return node.constant(places[order]), node.constant(order, np.int64), most
    count = places.sizes[0]
    ascending = dml.top_k1(places, axis=0, k=count, axis_direction="INCREASING")
    return ascending.output_value, ascending.output_index, count


def _rows_of(tensor: GraphTensor, numbers: GraphTensor) -> GraphTensor:
    """The rows of a matrix that have the numbers."""
    indices = numbers.reinterpret([1, numbers.sizes[0]])
    rows: GraphTensor = dml.gather(tensor, indices, axis=0, index_dimensions=1)
    return rows


def _wide(indices: GraphTensor) -> GraphTensor:
    """Indices as INT64."""
    wide: GraphTensor = dml.cast(indices, output_type=dml.INT64)
    return indices if indices.data_type == dml.INT64 else wide


def _as_tensor(node: Conversion, places: GraphTensor | Array) -> GraphTensor:
    return node.constant(places) if isinstance(places, np.ndarray) else places


def _reduction(node: Conversion) -> _Reduction | None:
    """What updates and elements become together; None: updates replace elements."""
    name = node.attribute("reduction", "none")
    if name == "none":
        return None
    if name not in _REDUCTIONS:
        raise NotExpressible(f"a scatter with reduction {name!r}")
    return _REDUCTIONS[name]


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
