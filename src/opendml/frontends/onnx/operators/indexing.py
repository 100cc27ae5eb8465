"""Elements by their indices, also the parts that `frontends.onnx.counted` takes operators apart into."""

from __future__ import annotations

import math
from operator import index

import numpy as np

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import gathered
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.conversion import OnnxConversion, Result
from opendml.frontends.onnx.registry import OWN, converts
from opendml.frontends.onnx.values import Known, KnownSizes, array_of, carrier_of, is_same
from opendml.program.sizes import Size
from opendml.runtime.graphs.tensor import GraphTensor


@converts("Gather", to="GATHER")
def gather(node: OnnxConversion) -> Result:
    """Convert Gather: slices along an axis, in the sizes of the indices."""
    sizes, indices, axis = node.sizes(0), node.sizes(1), node.axis_attribute()
    wanted = (*sizes[:axis], *indices, *sizes[axis + 1 :])
    rank = max(1, len(sizes), len(indices), len(wanted))
    gathered = dml.gather(
        node.moved(0, rank),
        node.tensor(1, rank),
        axis=axis + rank - len(sizes),
        index_dimensions=len(indices),
    )
    return node.result(gathered, wanted, node.type(0))


@converts("GatherElements", to="GATHER_ELEMENTS")
def gather_elements(node: OnnxConversion) -> Result:
    """Convert GatherElements. The input is cut to the sizes of the indices but along the axis."""
    sizes, indices, axis = node.sizes(0), node.sizes(1), node.axis_attribute()
    some = [sizes[axis] if each == axis else size for each, size in enumerate(indices)]
    tensor = node.moved(0) if some == list(sizes) else dml.slice1(node.moved(0), input_window_sizes=some)
    return node.result(dml.gather_elements(tensor, node.tensor(1), axis=axis), indices, node.type(0))


@converts("GatherND", to="GATHER_ND1")
def gather_nd(node: OnnxConversion) -> Result:
    """Convert GatherND: slices by index tuples, which lie along the last axis of the indices."""
    sizes, indices, batch = node.sizes(0), node.sizes(1), node.attribute("batch_dims") or 0
    wanted = (*indices[:-1], *sizes[batch + indices[-1] :])
    rank = max(1, len(sizes), len(indices), len(wanted))
    gathered = dml.gather_nd1(
        node.moved(0, rank),
        node.tensor(1, rank),
        input_dimension_count=len(sizes),
        indices_dimension_count=len(indices),
        batch_dimension_count=batch,
    )
    return node.result(gathered, wanted, node.type(0))


@converts("OneHot", since=9, to="ONE_HOT")
def one_hot(node: OnnxConversion) -> Result:
    """Convert OneHot: a new axis, on at the index and off elsewhere."""
    sizes, depth = node.sizes(0), node.known_integer(1)
    axis = node.axis_attribute(len(sizes) + 1)
    wanted = (*sizes[:axis], depth, *sizes[axis:])
    indices = node.tensor(0)
    if node.type(0) not in (np.int64, np.int32, np.uint64, np.uint32):
        indices = dml.cast(indices, output_type="INT64")
    indices = indices.reinterpret([1 if each == axis else size for each, size in enumerate(wanted)])
    hot = dml.one_hot(indices, node.moved(2, len(wanted)), axis=axis, sizes=wanted)
    return node.result(hot, wanted, node.type(2))


@converts("Compress", since=9)
def compress(node: OnnxConversion) -> Result:
    """Convert Compress with a known condition. `counted` has those that are computed."""
    if not node.is_known(1):
        raise NotExpressible("the output's sizes depend on the condition")
    chosen, sizes = np.flatnonzero(node.known(1)), node.sizes(0)
    if node.attribute("axis") is None:
        sizes = (math.prod(sizes),)
    axis = node.axis(node.attribute("axis") or 0, len(sizes))
    if chosen.size and chosen[-1] >= sizes[axis]:
        raise NotExpressible(f"condition holds for element {chosen[-1]} of {sizes[axis]}")
    wanted = (*sizes[:axis], len(chosen), *sizes[axis + 1 :])
    if 0 in wanted:
        return node.empty(wanted)
    found = gathered(node.moved(0).reinterpret(sizes), node.constant(chosen, np.int64), axis)
    return node.result(found, wanted, node.type(0))


@converts("NonZero", to="NONZERO_COORDINATES")
def nonzero(node: OnnxConversion) -> Result:
    """Refuse NonZero, whose sizes are known when it has run. `counted` takes it apart."""
    raise NotExpressible("the output's sizes depend on the input")


@converts("EyeLike", since=9, to="DIAGONAL_MATRIX DIAGONAL_MATRIX1")
def eye_like(node: OnnxConversion) -> Result:
    """Convert EyeLike to its result, of which only the sizes of the input matter."""
    rows, columns = node.sizes(0)
    type = node.type_attribute("dtype") or node.type(0)
    return Known(np.eye(rows, columns, node.attribute("k")).astype(type))


@converts("ConstantOfShape", since=9, to="FILL_VALUE_CONSTANT")
def constant_of_shape(node: OnnxConversion) -> Result:
    """Convert ConstantOfShape for sizes that change. The evaluator computes other results, once known."""
    sizes = node.known_list(0)
    if is_same(node.value(0)):
        raise NotExpressible("its input is no tensor of sizes")
    value = node.attribute("value")
    array = np.zeros(1, np.float32) if value is None else array_of(value).reshape(1)
    if any(size <= 0 for size in sizes):
        return Known(np.full([index(size) for size in sizes], array[0]))
    single = node.constant(array.view(carrier_of(array.dtype)))
    return node.result(single.reinterpret(sizes, strides=[0] * len(sizes)), sizes, array.dtype)


@converts("Range", since=11, to="FILL_VALUE_SEQUENCE")
def range_of(node: OnnxConversion) -> Result:
    """Convert Range over sizes that change. The evaluator computes other results, once known."""
    if all(is_same(node.value(number)) for number in range(3)):
        raise NotExpressible("its inputs are no numbers")
    start, limit, delta = (_number(node, number) for number in range(3))
    if not (isinstance(start, int) and isinstance(limit, int) and isinstance(delta, int)):
        return Known(np.arange(*(node.known(number).item() for number in range(3)), dtype=node.type(0)))
    count, step = max(0, -((start - limit) // delta)), index(delta)
    if count == 0:
        return node.empty([0])
    is_moved = isinstance(start, Size)
    sequence = node.sequence(count, node.type(0), 0 if is_moved else start, step)
    return sequence + node.tensor(0) if is_moved else sequence


def _number(node: OnnxConversion, number: int) -> float:
    """Return a known number, an integer if it is whole."""
    value = node.value(number)
    if isinstance(value, KnownSizes):
        found: float = value.elements.item()
        return found
    plain: float = node.known(number).item()
    return int(plain) if float(plain).is_integer() else plain


@converts("Coordinates", domain=OWN)
def coordinates(node: OnnxConversion) -> Result:
    """Find the coordinates of all elements that are not 0, followed by zeros, and their number."""
    tensor = node.tensor(0) != 0 if node.type(0).itemsize == 8 else node.tensor(0)
    found = dml.nonzero_coordinates(tensor)
    return found.output_coordinates, found.output_count


@converts("NonZero", domain=OWN)
def nonzero_found(node: OnnxConversion) -> Result:
    """Return the coordinates that were found, a column for each element."""
    count, rank = node.known_integer(1), node.sizes(0)[1]
    if not count:
        return node.empty((rank, 0), np.int64)
    return node.result(dml.cast(_first(node, 0, count).T, output_type="INT64"))


@converts("Compress", domain=OWN)
def compress_found(node: OnnxConversion) -> Result:
    """Return the slices at the coordinates that were found."""
    count, sizes, axis = node.known_integer(2), node.sizes(0), node.attribute("axis")
    sizes = (math.prod(sizes),) if axis is None else sizes
    axis = node.axis(axis or 0, len(sizes))
    wanted = (*sizes[:axis], count, *sizes[axis + 1 :])
    if not count:
        return node.empty(wanted)
    found = gathered(node.moved(0).reinterpret(sizes), _first(node, 1, count), axis)
    return node.result(found, wanted, node.type(0))


def _first(node: OnnxConversion, number: int, count: int) -> GraphTensor:
    """Return the first rows of an input."""
    return node.tensor(number)[:count]
