"""The parts of operators whose results are as large as the data say; see `counted`."""

from __future__ import annotations

import math

import numpy as np

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, Result
from opendml.frontends.onnx.node import OWN
from opendml.frontends.onnx.registry import converts
from opendml.runtime.graphs.tensor import GraphTensor


@converts("Coordinates", domain=OWN)
def coordinates(node: Conversion) -> Result:
    """The coordinates of all elements that are not 0, zeros behind them, and how many there are."""
    tensor = node.tensor(0)
    if node.type(0).itemsize == 8:
        tensor = dml.element_wise_logical_not(dml.element_wise_logical_equals(tensor, 0))
    found = dml.nonzero_coordinates(tensor)
    return found.output_coordinates, found.output_count


@converts("NonZero", domain=OWN)
def nonzero(node: Conversion) -> Result:
    """Coordinates column by column."""
    count, rank = node.known_list(1)[0], node.sizes(0)[1]
    if not count:
        return node.empty((rank, 0), np.int64)
    return node.result(dml.cast(_first(node, 0, count).T, output_type=dml.INT64))


@converts("Compress", domain=OWN)
def compress(node: Conversion) -> Result:
    """The slices at the coordinates."""
    count, sizes = node.known_list(2)[0], node.sizes(0)
    if "axis" not in node.node.attributes:
        sizes = (math.prod(sizes),)
    axis = node.axis(node.attribute("axis", 0), len(sizes))
    wanted = (*sizes[:axis], count, *sizes[axis + 1 :])
    if not count:
        return node.empty(wanted, node.type(0))
    numbers = _first(node, 1, count).reinterpret([1] * (len(sizes) - 1) + [count])
    tensor = node.moved(0).reinterpret(sizes)
    return node.result(dml.gather(tensor, numbers, axis=axis, index_dimensions=1), wanted, node.type(0))


def _first(node: Conversion, number: int, count: int) -> GraphTensor:
    """So many rows of an input."""
    rows: GraphTensor = node.tensor(number)[:count]
    return rows
