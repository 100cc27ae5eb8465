"""Elements by their indices."""

from __future__ import annotations

import numpy as np
import onnx

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.operators.shapes import reshaped
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import Known
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.tensor_desc import packed_strides


def padded(tensor: GraphTensor, rank: int) -> GraphTensor:
    """A tensor with so many dimensions: further ones of size 1 in front."""
    return tensor.reinterpret([1] * (rank - len(tensor.sizes)) + list(tensor.sizes))


@converts("Gather")
def gather(node: Conversion) -> Result:
    """Slices along an axis, in the sizes of the indices."""
    sizes, indices = node.sizes(0), node.sizes(1)
    axis = node.axis(node.attribute("axis", 0), len(sizes))
    wanted = (*sizes[:axis], *indices, *sizes[axis + 1 :])
    if 0 in wanted:
        return node.empty(wanted, node.type(0))
    rank = max(1, len(sizes), len(indices), len(wanted))
    gathered = dml.gather(
        node.moved(0, rank),
        node.tensor(1, rank),
        axis=axis + rank - len(sizes),
        index_dimensions=len(indices),
    )
    return node.result(gathered, wanted, node.type(0))


@converts("GatherElements")
def gather_elements(node: Conversion) -> Result:
    """An index of its own for each element."""
    sizes, indices = node.sizes(0), node.sizes(1)
    axis = node.axis(node.attribute("axis", 0), len(sizes))
    if 0 in indices:
        return node.empty(indices, node.type(0))
    return node.result(
        dml.gather_elements(_within(node, axis), node.tensor(1), axis=axis), indices, node.type(0)
    )


def _within(node: Conversion, axis: int) -> GraphTensor:
    """Input 0, cut to the sizes of the indices but along the axis: DirectML wants them equal."""
    sizes, indices = node.sizes(0), node.sizes(1)
    wanted = [sizes[axis] if i == axis else size for i, size in enumerate(indices)]
    return node.moved(0) if wanted == list(sizes) else dml.slice1(node.moved(0), input_window_sizes=wanted)


@converts("GatherND")
def gather_nd(node: Conversion) -> Result:
    """Slices by index tuples, which lie along the last axis of the indices."""
    sizes, indices = node.sizes(0), node.sizes(1)
    batch = node.attribute("batch_dims", 0)
    wanted = (*indices[:-1], *sizes[batch + indices[-1] :])
    if 0 in wanted:
        return node.empty(wanted, node.type(0))
    rank = max(1, len(sizes), len(indices), len(wanted))
    gathered = dml.gather_nd1(
        node.moved(0, rank),
        node.tensor(1, rank),
        input_dimension_count=len(sizes),
        indices_dimension_count=len(indices),
        batch_dimension_count=batch,
    )
    return node.result(gathered, wanted, node.type(0))


@converts("Scatter", since=9)
@converts("ScatterElements", since=11)
def scatter_elements(node: Conversion) -> Result:
    """The input with updates at indices along an axis."""
    sizes, type = node.sizes(0), node.type(0)
    axis = node.axis(node.attribute("axis", 0), len(sizes))
    _require_replacing(node)
    indices = node.sizes(1)
    if 0 in indices:
        return reshaped(node, sizes)
    if all(i == axis or size == sizes[i] for i, size in enumerate(indices)):
        scattered = dml.scatter(node.moved(0), node.tensor(1), node.moved(2), axis=axis)
    else:
        scattered = _scattered_in_row(node, axis)
    return node.result(scattered, sizes, type)


def _scattered_in_row(node: Conversion, axis: int) -> GraphTensor:
    """Scattered where the indices do not cover the other axes: DirectML's SCATTER wants that, but of one
    dimension it takes any number of indices."""
    sizes, indices = node.sizes(0), node.sizes(1)
    strides = packed_strides(sizes)
    others = [0 if i == axis else stride for i, stride in enumerate(strides)]
    places = sum(grid * stride for grid, stride in zip(np.indices(indices), others, strict=True))
    along = node.tensor(1) if node.type(1) == np.int64 else dml.cast(node.tensor(1), output_type=dml.INT64)
    along = dml.element_wise_modulus_floor(along, sizes[axis])
    moved = dml.element_wise_multiply(along, strides[axis])
    count, total = int(np.prod(indices)), int(np.prod(sizes))
    return dml.scatter(
        node.moved(0).reinterpret([total]),
        dml.element_wise_add(moved, node.constant(places, np.int64)).reinterpret([count]),
        node.moved(2).reinterpret([count]),
        axis=0,
    )


@converts("ScatterND", since=11)
def scatter_nd(node: Conversion) -> Result:
    """The input with slices of updates at index tuples."""
    sizes, indices, updates = node.sizes(0), node.sizes(1), node.sizes(2)
    _require_replacing(node)
    if 0 in indices or 0 in updates:
        return reshaped(node, sizes)
    rank = max(1, len(sizes), len(indices), len(updates))
    scattered = dml.scatter_nd(
        node.moved(0, rank),
        node.tensor(1, rank),
        node.moved(2, rank),
        input_dimension_count=len(sizes),
        indices_dimension_count=len(indices),
    )
    return node.result(scattered, sizes, node.type(0))


def _require_replacing(node: Conversion) -> None:
    """Checks that updates take the place of elements.

    Raises:
        NotExpressible: they are reduced with them.
    """
    if (reduction := node.attribute("reduction", "none")) != "none":
        raise NotExpressible(f"DirectML has no scatter with reduction {reduction}")


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


@converts("OneHot", since=9)
def one_hot(node: Conversion) -> Result:
    """A new axis, on at the index and off elsewhere."""
    sizes, depth = node.sizes(0), node.known_list(1)[0]
    axis = node.axis(node.attribute("axis", -1), len(sizes) + 1)
    wanted = (*sizes[:axis], depth, *sizes[axis:])
    if 0 in wanted:
        return node.empty(wanted, node.type(2))
    indices = node.tensor(0)
    if node.type(0) not in (np.int64, np.int32, np.uint64, np.uint32):
        indices = dml.cast(indices, output_type=dml.INT64)
    indices = indices.reinterpret([1 if i == axis else size for i, size in enumerate(wanted)])
    values = padded(node.moved(2), len(wanted))
    return node.result(dml.one_hot(indices, values, axis=axis, sizes=wanted), wanted, node.type(2))


@converts("Compress", since=9)
def compress(node: Conversion) -> Result:
    """Slices for which a known condition holds."""
    if not node.is_known(1):
        raise NotExpressible("the output's sizes depend on the condition")
    chosen = np.flatnonzero(node.known(1))
    sizes = node.sizes(0)
    if "axis" not in node.node.attributes:
        sizes = (int(np.prod(sizes)),)
    axis = node.axis(node.attribute("axis", 0), len(sizes))
    if chosen.size and chosen[-1] >= sizes[axis]:
        raise NotExpressible(f"condition holds for element {chosen[-1]} of {sizes[axis]}")
    wanted = (*sizes[:axis], len(chosen), *sizes[axis + 1 :])
    if 0 in wanted:
        return node.empty(wanted, node.type(0))
    indices = padded(node.constant(chosen, np.int64), len(sizes))
    tensor = node.moved(0).reinterpret(sizes)
    return node.result(dml.gather(tensor, indices, axis=axis, index_dimensions=1), wanted, node.type(0))


@converts("NonZero")
def nonzero(node: Conversion) -> Result:
    """Where the elements are that are not 0."""
    raise NotExpressible("the output's sizes depend on the input")


@converts("EyeLike", since=9)
def eye_like(node: Conversion) -> Result:
    """Ones on a diagonal, of which only the sizes matter."""
    rows, columns = node.sizes(0)
    given = node.attribute("dtype", None)
    type = node.type(0) if given is None else onnx.helper.tensor_dtype_to_np_dtype(given)
    return Known(np.eye(rows, columns, node.attribute("k", 0)).astype(type))


@converts("ConstantOfShape", since=9)
@converts("Range", since=11)
def filled(node: Conversion) -> Result:
    """All inputs say sizes: they must be known, and what is known is computed at once."""
    for number in range(node.input_count):
        node.known(number)
    raise NotExpressible("its inputs are no numbers")
