"""Elements by their indices."""

from __future__ import annotations

import numpy as np
import onnx

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import Known
from opendml.runtime.graphs.tensor import GraphTensor


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
    """Slices for which a known condition holds; see `counted` for those that are computed."""
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
    """Where the elements are that are not 0; see `counted`."""
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
