"""Elements chosen by indices. Negative ones count from the end; those out of range are moved to the nearest
end, so that nothing outside of a tensor is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from opendml.operators.registry import defines
from opendml.program.functions import equal, maximum, minimum, select, wide_enough
from opendml.program.node import Node, Operation, apply, convert, position
from opendml.program.scalar_type import counting
from opendml.program.view import gathered, reshaped, sliced
from opendml.spec.tensor_desc import TensorDesc


@defines("GATHER", stored=True, output=True)
def gather(x: Node, indices: Node, *, axis: int, index_dimensions: int, output: TensorDesc) -> Node:
    """x at the indices along the axis, whose dimensions take its place

    A negative index counts from the end. One out of range is moved to the nearest end, as in WebNN.
    """
    chosen = indices.sizes[len(indices.sizes) - index_dimensions :]
    # A result without dimensions would be a number; it gets one of size 1.
    leading = (1, *x.sizes[:axis])
    sizes = (*leading, *chosen, *x.sizes[axis + 1 :])
    trailing = len(x.sizes) - axis - 1
    across = (*(1,) * len(leading), *chosen, *(1,) * trailing)
    if math.prod(leading) == 1:
        # Each index is used in one place: it is moved into the range as it is read.
        places = _within(reshaped(indices, across), x.sizes[axis])
    else:
        places = reshaped(_within(indices, x.sizes[axis]), across)
    own = {d: d + 1 for d in range(axis)}
    own |= {d: d + len(chosen) for d in range(axis + 1, len(x.sizes))}
    return reshaped(
        gathered(x, sizes, {axis: places}, steps=steps_along(x, own, len(sizes)), inside=True), output.sizes
    )


@defines("GATHER_ELEMENTS", stored=True)
def gather_elements(x: Node, indices: Node, *, axis: int) -> Node:
    """x at the element's own place, but along the axis at the index

    Indices as in GATHER.
    """
    rank = len(x.sizes)
    steps = steps_along(x, {d: d for d in range(rank) if d != axis}, rank)
    return gathered(x, indices.sizes, {axis: _within(indices, x.sizes[axis])}, steps=steps, inside=True)


@defines("GATHER_ND", stored=True, output=True)
def gather_nd(x: Node, indices: Node, **same: Any) -> Node:
    """GATHER_ND1 without batches

    Indices as in GATHER.
    """
    return gather_nd1(x, indices, batch_dimension_count=0, **same)


@defines("GATHER_ND1", stored=True, output=True)
def gather_nd1(
    x: Node,
    indices: Node,
    *,
    input_dimension_count: int,
    indices_dimension_count: int,
    batch_dimension_count: int,
    output: TensorDesc,
) -> Node:
    """x of the same batch, at the index tuple that lies along the last dimension of the indices

    Indices as in GATHER.
    """
    rank = len(x.sizes)
    x = reshaped(x, x.sizes[rank - input_dimension_count :])
    indices = reshaped(indices, indices.sizes[rank - indices_dimension_count :])
    batch, length, outer = batch_dimension_count, indices.sizes[-1], len(indices.sizes) - 1
    rest = x.sizes[batch + length :]
    sizes = (1, *indices.sizes[:-1], *rest)
    places = {}
    for number in range(length):
        column = sliced(indices, (*(0,) * outer, number), (*indices.sizes[:-1], 1))
        column = reshaped(column, (1, *indices.sizes[:-1], *(1,) * len(rest)))
        places[batch + number] = _within(column, x.sizes[batch + number])
    own = {d: d + 1 for d in range(batch)}
    own |= {d: d + 1 + outer - batch - length for d in range(batch + length, len(x.sizes))}
    steps = steps_along(x, own, len(sizes))
    return reshaped(gathered(x, sizes, places, steps=steps, inside=True), output.sizes)


@defines("ONE_HOT", stored=True, output=True)
def one_hot(indices: Node, values: Node, *, axis: int, output: TensorDesc) -> Node:
    """OnValue, the second of the values, where the index is the element's own along the axis; OffValue, the
    first, elsewhere

    A negative index of a signed type counts from the end. Of one that is out of range all its line is
    OffValue.
    """
    count = len(output.sizes)
    flat = reshaped(values, (math.prod(values.sizes),))
    off, on = (reshaped(sliced(flat, (number,), (1,)), (1,) * count) for number in range(2))
    own = position(output.sizes, [axis])
    return select(equal(own, convert(place_within(indices, output.sizes[axis]), own.type)), on, off)


@defines("REVERSE_SUBSEQUENCES", stored=True)
def reverse_subsequences(x: Node, lengths: Node, *, axis: int) -> Node:
    """x, of which each line along the axis has its first elements, as many as its length, in reverse

    A length beyond the line is that of the line.
    """
    own = position(x.sizes, [axis])
    length = convert(minimum(wide_enough(lengths, x.sizes[axis]), x.sizes[axis]), own.type)
    steps = steps_along(x, {d: d for d in range(len(x.sizes)) if d != axis}, len(x.sizes))
    place = select(own < length, length - own - 1, own)
    return gathered(x, x.sizes, {axis: place}, steps=steps, inside=True)


def place_within(indices: Node, size: int) -> Node:
    """Return the places of indices in `size` elements, -1 where they are out of range.

    Negative indices of signed types count from the end.
    """
    indices = wide_enough(indices, size)
    if indices.type.is_signed:
        indices = select(indices < 0, indices + size, indices)
        inside = apply(Operation.AND, indices >= 0, indices < size)
    else:
        inside = indices < size
    return select(inside, convert(indices, counting(size)), -1)


def _within(indices: Node, size: int) -> Node:
    """Return indices into `size` elements. Negative ones count from the end; an end replaces others."""
    indices = wide_enough(indices, size)
    if not indices.type.is_signed:
        return minimum(indices, size - 1)
    return maximum(minimum(select(indices < 0, indices + size, indices), size - 1), 0)


def steps_along(x: Node, own: dict[int, int], rank: int) -> Sequence[Sequence[int]]:
    """Return the steps of a view in which dimension d of x moves along own[d], and others along none."""
    return [
        [int(own.get(dimension) == column) for column in range(rank)] for dimension in range(len(x.sizes))
    ]
