"""Data movement as nodes: slices, permutations, paddings, windows, reshaped and joined tensors.

Everything that a tensor's indices alone say is one VIEW: the index of the operand is affine in that of the
result. What would fall outside the operand is guarded and becomes a fill value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial, reduce

from opendml.program.node import Node, Number, Operation, View, apply, constant, convert, index
from opendml.program.scalar_type import ScalarType, counting
from opendml.program.sizes import are_same, greatest, index_range, is_surely_less, is_unit


def view(
    value: Node,
    sizes: Sequence[int],
    offsets: Sequence[int],
    steps: Sequence[Sequence[int]],
    fill: Node | Number | None = None,
) -> Node:
    """Return the tensor of `sizes` whose element at the index i is that of `value` at offsets + steps . i.

    Args:
        value: the tensor that is read.
        sizes: those of the result.
        offsets: the index in `value`, along each of its dimensions, of the result's first element.
        steps: for each dimension of `value`, how far its index moves along each dimension of the result.
        fill: what lies outside of `value`, a number or a tensor that broadcasts to `sizes`; None: nothing
            does.
    """
    moving = tuple(
        tuple(0 if is_unit(size) else step for step, size in zip(row, sizes, strict=True)) for row in steps
    )
    attribute = View(tuple(offsets), moving)
    if (
        len(sizes) == len(value.sizes)
        and is_whole(attribute, value.sizes)
        and are_same(tuple(sizes), value.sizes)
    ):
        return value
    inside = within(attribute, value.sizes, sizes)
    if inside is None or (fill is None and _is_within(attribute, value.sizes, sizes)):
        return Node(Operation.VIEW, value.type, tuple(sizes), (value,), attribute)
    if fill is None:
        raise ValueError(f"{attribute} reaches outside of {list(value.sizes)}")
    read = Node(Operation.VIEW, value.type, tuple(sizes), (value, inside), attribute)
    if not isinstance(fill, Node) and fill == 0 and not _is_negative_zero(fill):
        return read
    return apply(Operation.SELECT, inside, read, fill)


def is_whole(view: View, sizes: Sequence[int]) -> bool:
    """Return whether a view without a mask, of the sizes of what it sees, is that itself."""
    rows = enumerate(zip(view.offsets, view.steps, sizes, strict=True))
    return not view.indexed and all(
        offset == 0
        and all(step == (row == column and not is_unit(size)) for column, step in enumerate(steps))
        for row, (offset, steps, size) in rows
    )


def _is_within(attribute: View, operand: Sequence[int], sizes: Sequence[int]) -> bool:
    """Return whether all indices of a view lie inside its operand."""
    rows = zip(attribute.offsets, attribute.steps, operand, strict=True)
    return all(
        offset + least >= 0 and offset + most < extent
        for offset, steps, extent in rows
        for least, most in [index_range(sizes, steps)]
    )


def within(attribute: View, operand: Sequence[int], sizes: Sequence[int]) -> Node | None:
    """Return whether the indices of a view lie inside its operand; None if all do, for all traced sizes."""
    result: Node | None = None
    for offset, steps, extent in zip(attribute.offsets, attribute.steps, operand, strict=True):
        least, most = (offset + each for each in index_range(sizes, steps))
        if not (is_surely_less(-1, least) and is_surely_less(most, extent)):
            inside = is_index(sizes, offset, steps, extent, greatest(-least, most + 1))
            result = inside if result is None else apply(Operation.AND, result, inside)
    return result


def is_index(sizes: Sequence[int], offset: int, steps: Sequence[int], extent: int, reach: int) -> Node:
    """Return whether 0 <= offset + steps . i < extent; unsigned, negative numbers are greater than all.
    Numbers do not go beyond `reach`."""
    type = ScalarType.UINT32 if greatest(reach, extent) < 2**31 else ScalarType.UINT64
    bound = index(type, (), extent, ())
    return apply(Operation.LESS, index(type, sizes, offset, steps), bound)


def gathered(
    value: Node,
    sizes: Sequence[int],
    indices: Mapping[int, Node],
    offsets: Sequence[int] | None = None,
    steps: Sequence[Sequence[int]] | None = None,
    *,
    inside: bool = False,
) -> Node:
    """Return a view whose index along some dimensions of `value` is computed: that of `view`, plus integers.

    Args:
        value: the tensor that is read.
        sizes: those of the result.
        indices: for such dimensions, tensors of integers that broadcast to `sizes`.
        offsets, steps: as for `view`; None: 0.
        inside: whether no index is outside; otherwise such elements are 0.
    """
    rank = len(value.sizes)
    offsets = tuple(offsets or (0,) * rank)
    steps = tuple(tuple(row) for row in steps) if steps else ((0,) * len(sizes),) * rank
    attribute = View(offsets, steps, tuple(indices))
    guards = []
    for dimension, computed in indices.items() if not inside else ():
        narrow = computed.type.bits < 32 or computed.type is ScalarType.INT32
        place = convert(computed, counting(value.sizes[dimension]) if narrow else ScalarType.INT64)
        if offsets[dimension] or any(steps[dimension]):
            place = place + index(place.type, sizes, offsets[dimension], steps[dimension])
        extent = index(place.type, (), value.sizes[dimension], ())
        guards += [apply(Operation.LESS_EQUAL, 0, place), apply(Operation.LESS, place, extent)]
    if not indices:
        return view(value, sizes, offsets, steps, 0)
    fixed = [number for number in range(rank) if number not in indices]
    rest = View(tuple(offsets[d] for d in fixed), tuple(steps[d] for d in fixed))
    guard = within(rest, [value.sizes[d] for d in fixed], sizes)
    every = guards if guard is None else [*guards, guard]
    there = reduce(partial(apply, Operation.AND), every) if every else constant(1, ScalarType.BOOLEAN)
    wide = [convert(computed, ScalarType.INT64) for computed in indices.values()]
    return Node(Operation.VIEW, value.type, tuple(sizes), (value, there, *wide), attribute)


def whole_quotient(number: Node, divisor: int) -> Node:
    """Return an index: an integer divided by another one, or -1, which is outside of every tensor, where that
    is not whole."""
    quotient = number / divisor
    return apply(Operation.SELECT, apply(Operation.EQUAL, quotient * divisor, number), quotient, -1)


def sliced(
    value: Node, first: Sequence[int], sizes: Sequence[int], strides: Sequence[int] | None = None
) -> Node:
    """Return `sizes` elements of `value` from the index `first` on, with strides that may be negative."""
    return view(value, sizes, first, _diagonal(strides or (1,) * len(sizes)))


def permuted(value: Node, order: Sequence[int]) -> Node:
    """Return the tensor whose dimension d is dimension order[d] of `value`."""
    sizes = tuple(value.sizes[dimension] for dimension in order)
    steps = [[int(source == dimension) for source in order] for dimension in range(len(order))]
    return view(value, sizes, (0,) * len(order), steps)


def padded(value: Node, before: Sequence[int], after: Sequence[int], fill: Number = 0) -> Node:
    """Return `value` in a frame of `fill`, of `before` and `after` elements along each dimension."""
    sizes = [size + a + b for size, a, b in zip(value.sizes, before, after, strict=True)]
    return view(value, sizes, [-margin for margin in before], _diagonal((1,) * len(sizes)), fill)


def windows(
    value: Node,
    counts: Sequence[int],
    windows: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    before: Sequence[int],
    fill: Number = 0,
) -> Node:
    """Return the windows over the last dimensions of `value`: sizes [..., *counts, *windows], where window o
    has the elements at o * stride + k * dilation - before, and `fill` outside of `value`."""
    spatial = len(counts)
    outer = value.sizes[: len(value.sizes) - spatial]
    rank = len(outer) + 2 * spatial
    steps = [[int(column == row) for column in range(rank)] for row in range(len(outer))]
    for axis, (stride, dilation) in enumerate(zip(strides, dilations, strict=True)):
        row = [0] * rank
        row[len(outer) + axis], row[len(outer) + spatial + axis] = stride, dilation
        steps.append(row)
    offsets = [0] * len(outer) + [-margin for margin in before]
    return view(value, (*outer, *counts, *windows), offsets, steps, fill)


def repeated(value: Node, sizes: Sequence[int]) -> Node:
    """Return `value` with its dimensions of size 1 repeated to `sizes`."""
    own = zip(value.sizes, sizes, strict=True)
    steps = _diagonal([0 if size is not wanted and size == 1 < wanted else 1 for size, wanted in own])
    return view(value, sizes, (0,) * len(sizes), steps)


def reshaped(value: Node, sizes: Sequence[int]) -> Node:
    """Return the elements of `value` in row-major order, in other sizes of the same product."""
    if math.prod(sizes) != math.prod(value.sizes):
        raise ValueError(f"{list(value.sizes)} cannot be reshaped to {list(sizes)}")
    if are_same(tuple(sizes), value.sizes):
        return value
    return Node(Operation.RESHAPE, value.type, tuple(sizes), (value,))


def joined(values: Sequence[Node], axis: int) -> Node:
    """Return the tensors one after the other along an axis; along all others their sizes are equal."""
    if len(values) == 1:
        return values[0]
    first = values[0]
    sizes = tuple(
        sum(value.sizes[axis] for value in values) if dimension == axis else size
        for dimension, size in enumerate(first.sizes)
    )
    return Node(Operation.JOIN, first.type, sizes, tuple(values), axis)


def in_memory(value: Node) -> Node:
    """Return `value` as a tensor in memory: no kernel that reads it computes it again."""
    return Node(Operation.MATERIALIZE, value.type, value.sizes, (value,))


def _diagonal(steps: Sequence[int]) -> list[list[int]]:
    rank = range(len(steps))
    return [[step if row == column else 0 for column in rank] for row, step in enumerate(steps)]


def _is_negative_zero(value: Number) -> bool:
    return value == 0 and math.copysign(1, value) < 0
