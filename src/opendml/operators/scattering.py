"""Elements written to where indices say.

What is written is found from the other end: for each place the last element that goes there. So the order of
the elements decides, and nothing else. An index that is out of range names no place: its element is left out,
and nothing outside of a tensor is written. Negative indices count from the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial, reduce

from opendml.operators.indexing import place_within, steps_along
from opendml.operators.registry import defines
from opendml.program.functions import equal, logical_not, reduce_sum, select
from opendml.program.node import Node, Operation, apply, constant, convert, placing, scattered_last
from opendml.program.scalar_type import ScalarType, counting
from opendml.program.view import gathered, joined, repeated, reshaped, sliced
from opendml.spec.tensor_desc import TensorDesc


@defines("SCATTER", stored=True, whole=True)
def scatter(x: Node, indices: Node, updates: Node, *, axis: int) -> Node:
    """x, but at each update's own place, along the axis at its index, the update

    A negative index counts from the end. An update whose index is out of range is left out. Of several
    updates of one element the last in row-major order holds.
    """
    size = x.sizes[axis]
    return scattered_last(place_within(indices, size), updates, x, axis)


@defines("SCATTER_ND", stored=True, output=True)
def scatter_nd(
    x: Node,
    indices: Node,
    updates: Node,
    *,
    input_dimension_count: int,
    indices_dimension_count: int,
    output: TensorDesc,
) -> Node:
    """x, but the updates at the index tuples that lie along the last dimension of the indices

    Indices and updates of one element as in SCATTER; a tuple with an index out of range is left out.
    """
    sizes = x.sizes[len(x.sizes) - input_dimension_count :]
    indices = reshaped(indices, indices.sizes[len(indices.sizes) - indices_dimension_count :])
    length, tuples = indices.sizes[-1], math.prod(indices.sizes[:-1])
    places, rest = math.prod(sizes[:length]), math.prod(sizes[length:])
    number = _number_of_tuple(reshaped(indices, (tuples, length)), sizes[:length])
    last = reshaped(placing(Operation.SCATTER, number, 0, places), (places, 1))
    x, updates = reshaped(x, (places, rest)), reshaped(updates, (tuples, rest))
    written = gathered(updates, x.sizes, {0: last}, steps=steps_along(x, {1: 1}, 2))
    return reshaped(select(last >= 0, written, x), output.sizes)


@defines("MAX_UNPOOLING", stored=True, output=True, whole=True)
def max_unpooling(x: Node, indices: Node, *, output: TensorDesc) -> Node:
    """0, but each element of x at its index, which counts the elements of the output in row-major order

    An element whose index is out of range is left out. Of several elements of one index the last in row-major
    order holds.
    """
    count, places = math.prod(x.sizes), math.prod(output.sizes)
    nothing = repeated(reshaped(constant(0, x.type), (1,)), (places,))
    number = place_within(reshaped(indices, (count,)), places)
    return reshaped(scattered_last(number, reshaped(x, (count,)), nothing, 0), output.sizes)


@defines("NONZERO_COORDINATES", output=True)
def nonzero_coordinates(x: Node, *, output: tuple[TensorDesc, TensorDesc]) -> tuple[Node, Node]:
    """how many elements are not 0, and their coordinates in row-major order

    NaN is not 0, -0 is. The rows from the count on are 0. Where a row has fewer coordinates than there are
    dimensions, those of the first dimensions are left out.
    """
    total, coordinates = output
    count = math.prod(x.sizes)
    found = logical_not(equal(reshaped(x, (count, 1)), 0))
    number = placing(Operation.POSITIONS, found, 0, count)
    rows = _coordinates(number, x.sizes[len(x.sizes) - coordinates.sizes[-1] :])
    of_all = reduce_sum(convert(number >= 0, ScalarType.UINT32), [0])
    return reshaped(of_all, total.sizes), reshaped(rows, coordinates.sizes)


def _number_of_tuple(indices: Node, sizes: Sequence[int]) -> Node:
    """Return the row-major number of the place that each row of indices names, or -1 for none."""
    tuples = indices.sizes[0]
    type = counting(math.prod(sizes))
    columns = [
        convert(place_within(sliced(indices, (0, column), (tuples, 1)), size), type)
        for column, size in enumerate(sizes)
    ]
    number = columns[0]
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        number = number * size + column
    inside = reduce(partial(apply, Operation.AND), [column >= 0 for column in columns])
    return reshaped(select(inside, number, -1), (tuples,))


def _coordinates(number: Node, sizes: Sequence[int]) -> Node:
    """Return the coordinates in a tensor of `sizes` for numbers (count, 1) of elements; zeros for -1."""
    rest, coordinates = select(number < 0, 0, number), list[Node]()
    for column in range(1, len(sizes)):
        places = math.prod(sizes[column:])
        # Half a unit is more than all roundings: no quotient comes to the other side of a whole number.
        line = convert((convert(rest, ScalarType.FLOAT64) + 0.5) * (1.0 / places), number.type)
        coordinates.append(line)
        rest = rest - line * places
    return joined([*coordinates, rest], 1)
