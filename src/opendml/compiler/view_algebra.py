"""Rules that express a view of a value as a value of views. Nothing is decided here.

A view of an element-wise value is that value of views. A view of a view is one view. A view of a reshaped
tensor is a view of the tensor if no index carries from one dimension into the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import add

from opendml.program.node import COLLECTIVE, STORED, Node, Operation, View, apply, constant, convert, index
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import are_same, is_traced
from opendml.program.view import is_whole

IN_MEMORY = COLLECTIVE | STORED | {Operation.SOURCE, Operation.RECURRENCE, Operation.VIEW, Operation.RESHAPE}
"""Operations whose results a view reads from memory. All others are element-wise."""


def above_memory(value: Node) -> Iterator[Node]:
    """Yield a value and what it is made of, down to tensors in memory."""
    return walk(value, lambda node: () if node.operation in IN_MEMORY else node.operands)


def walk(value: Node, below: Callable[[Node], Sequence[Node]]) -> Iterator[Node]:
    """Yield a value and everything that `below` leads to; an operand that a node has twice comes twice."""
    pending, seen = [value], {id(value)}
    while pending:
        node = pending.pop()
        yield node
        new = [each for each in below(node) if id(each) not in seen]
        seen.update(map(id, new))
        pending += new


def computed_operands(node: Node) -> Sequence[Node]:
    """Return the operands of a node that are computed where it is, rather than read from memory."""
    if node.operation is Operation.VIEW:
        return node.operands[1:]
    return () if node.operation in IN_MEMORY else node.operands


class Viewed:
    """The nodes of a program as a view of `sizes` sees them, where the mask is true, if there is one."""

    def __init__(
        self, sizes: tuple[int, ...], view: View, mask: Node | None = None, indices: Sequence[Node] = ()
    ) -> None:
        self.sizes, self.view, self.mask = sizes, view, mask
        self.indices = dict(zip(view.indexed, indices, strict=True))
        self._known: dict[int, Node] = {}

    @classmethod
    def by(cls, node: Node) -> Viewed:
        """Return the nodes as a VIEW sees them."""
        assert isinstance(node.attribute, View)
        mask = node.operands[1] if len(node.operands) > 1 else None
        return cls(node.sizes, node.attribute, mask, node.operands[2:])

    def know(self, node: Node, viewed: Node) -> None:
        """Set what a node is through the view."""
        self._known[id(node)] = viewed

    def masked(self, node: Node) -> Node:
        """Return the elements of a node; they are 0 where the mask is false."""
        result = self.of(node)
        if self.mask is None or _is_masked(result):
            return result
        return apply(Operation.SELECT, self.mask, result, constant(0, node.type))

    def of(self, node: Node) -> Node:
        """Return the elements of a node; they may be anything where the mask is false."""
        pending = [node]
        while pending:
            last = pending[-1]
            missing = [each for each in computed_operands(last) if id(each) not in self._known]
            if id(last) not in self._known and not missing:
                self._known[id(last)] = self._of(last)
            if id(last) in self._known:
                pending.pop()
            else:
                pending += missing
        return self._known[id(node)]

    def _of(self, node: Node) -> Node:
        if not node.sizes:
            return node
        if node.operation is Operation.VIEW:
            return self._of_view(node)
        if node.operation is Operation.INDEX and isinstance(node.attribute, tuple):
            return self._counted(node.type, node.attribute[0], node.attribute[1:])
        if node.operation in IN_MEMORY:
            offsets, steps, indices = self._within(node.sizes)
            return self._read(node, View(offsets, steps, tuple(indices)), indices, None)
        operands = tuple([self._known[id(operand)] for operand in node.operands])
        return Node(node.operation, node.type, self.sizes, operands, node.attribute, node.origin)

    def _within(
        self, sizes: Sequence[int]
    ) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...], dict[int, Node]]:
        """Return offsets, steps and indices of the view in an operand that broadcasts to its own."""
        if 1 not in sizes:
            return self.view.offsets, self.view.steps, self.indices
        still = (0,) * len(self.sizes)
        moves = [size > 1 for size in sizes]
        offsets = tuple(o if move else 0 for o, move in zip(self.view.offsets, moves, strict=True))
        steps = tuple(row if move else still for row, move in zip(self.view.steps, moves, strict=True))
        return offsets, steps, {d: value for d, value in self.indices.items() if moves[d]}

    def _of_view(self, node: Node) -> Node:
        """Return a view of a view as one view, masked by both masks."""
        inner = Viewed.by(node)
        offsets, steps, indices = self._within(node.sizes)
        combined_offsets, combined_steps, combined_indices = [], [], {}
        for d, (offset, row) in enumerate(zip(inner.view.offsets, inner.view.steps, strict=True)):
            combined_offsets.append(offset + sum([s * o for s, o in zip(row, offsets, strict=True)]))
            combined_steps.append(_sum_of_rows(row, steps, len(self.sizes)))
            parts = [self._known[id(inner.indices[d])]] if d in inner.indices else []
            parts += [_times(value, row[j]) for j, value in indices.items() if row[j]]
            if parts:
                combined_indices[d] = reduce(add, parts)
        mask = None if inner.mask is None else self._known[id(inner.mask)]
        view = View(tuple(combined_offsets), tuple(combined_steps), tuple(combined_indices))
        return self._read(node.operands[0], view, combined_indices, mask)

    def _read(self, value: Node, view: View, indices: dict[int, Node], mask: Node | None) -> Node:
        """Return a view of a tensor where this view's mask and another one hold."""
        masks = [each for each in (self.mask, mask) if each is not None]
        if not masks and is_whole(view, value.sizes) and are_same(value.sizes, self.sizes):
            return value
        mask = apply(Operation.AND, *masks) if len(masks) == 2 else masks[0] if masks else None
        if mask is None and indices:
            mask = constant(1, ScalarType.BOOLEAN)
        operands = (value,) if mask is None else (value, mask, *indices.values())
        result = Node(Operation.VIEW, value.type, self.sizes, operands, view)
        if value.operation is Operation.RESHAPE and value.operands[0].operation in IN_MEMORY:
            return _view_of_fine(result) or result
        return result

    def _counted(self, type: ScalarType, offset: int, strides: Sequence[int]) -> Node:
        """Return what an INDEX counts at the elements of the view."""
        first = offset + sum(s * o for s, o in zip(strides, self.view.offsets, strict=True))
        counted = index(type, self.sizes, first, _sum_of_rows(strides, self.view.steps, len(self.sizes)))
        computed = [
            convert(_times(value, strides[d]), type) for d, value in self.indices.items() if strides[d]
        ]
        return reduce(add, computed, counted)


def _is_masked(value: Node) -> bool:
    """Return whether a value is 0 wherever the VIEW that it is made of reads nothing.

    This holds for the VIEW, and for its conversions and their maxima with 0.
    """
    while value.operation in (Operation.CONVERT, Operation.MAXIMUM):
        value, *others = value.operands
        if any(other.operation is not Operation.CONSTANT or other.attribute != 0 for other in others):
            return False
    return value.operation is Operation.VIEW and bool(value.sizes)


def _sum_of_rows(factors: Sequence[int], rows: Sequence[Sequence[int]], width: int) -> tuple[int, ...]:
    """Return the sum of the rows, each times its factor."""
    result = [0] * width
    for factor, row in zip(factors, rows, strict=True):
        if factor:
            result = [total + factor * step for total, step in zip(result, row, strict=True)]
    return tuple(result)


def _times(value: Node, factor: int) -> Node:
    return value if factor == 1 else value * index(value.type, (), factor, ())


# Reshaped tensors


def split_groups(fine: Sequence[int], coarse: Sequence[int]) -> list[list[int]] | None:
    """Return the neighbouring dimensions of `fine` whose product each dimension of `coarse` is, or None."""
    groups: list[list[int]] = []
    position = 0
    for size in coarse:
        group: list[int] = []
        product = 1
        while product < size and position < len(fine) and size % (product * fine[position]) == 0:
            group.append(position)
            product *= fine[position]
            position += 1
        if product != size:
            return None
        groups.append(group)
    if any(fine[rest] != 1 for rest in range(position, len(fine))):
        return None
    return groups


def split_reshape(node: Node) -> Node | None:
    """Return a RESHAPE that only splits dimensions as a VIEW; None if it merges some."""
    value = node.operands[0]
    groups = split_groups(node.sizes, value.sizes)
    if groups is None:
        return None
    steps = [[0] * len(node.sizes) for _ in value.sizes]
    for row, group in zip(steps, groups, strict=True):
        step = 1
        for dimension in reversed(group):
            row[dimension] = step if node.sizes[dimension] > 1 else 0
            step *= node.sizes[dimension]
    view = View((0,) * len(value.sizes), tuple(map(tuple, steps)))
    return Node(Operation.VIEW, node.type, node.sizes, (value,), view)


def _view_of_fine(node: Node) -> Node | None:
    """Return a VIEW of a RESHAPE as a VIEW of what is reshaped.

    The reshape may merge dimensions if the view takes them apart again, as heads that are merged with a batch
    while they are permuted. None if it does not, for sizes that are open, and for guarded views.
    """
    view, reshape = node.attribute, node.operands[0]
    assert isinstance(view, View)
    value = reshape.operands[0]
    sizes = (*value.sizes, *reshape.sizes, *node.sizes)
    if len(node.operands) > 1 or any(map(is_traced, sizes)) or 0 in sizes:
        return None
    fine = _common_sizes(value.sizes, reshape.sizes)
    groups = None if fine is None else split_groups(fine, reshape.sizes)
    if fine is None or groups is None:
        return None
    offsets, steps = [0] * len(fine), [[0] * len(node.sizes) for _ in fine]
    for offset, row, group in zip(view.offsets, view.steps, groups, strict=True):
        rest, left = offset, [step * (size > 1) for step, size in zip(row, node.sizes, strict=True)]
        for part in group:
            # An element of this dimension is `unit` elements of the merged one.
            unit = math.prod(fine[each] for each in group if each > part)
            offsets[part], rest = divmod(rest, unit)
            steps[part] = [step // unit if step % unit == 0 else 0 for step in left]
            left = [0 if taken else step for step, taken in zip(left, steps[part], strict=True)]
            moved = [step * (size - 1) for step, size in zip(steps[part], node.sizes, strict=True)]
            first = offsets[part] + sum(each for each in moved if each < 0)
            last = offsets[part] + sum(each for each in moved if each > 0)
            if first < 0 or last >= fine[part]:
                return None
        if rest or any(left):
            return None
    split = split_reshape(Node(Operation.RESHAPE, node.type, fine, (value,)))
    if split is None:
        return None
    fine_view = View(tuple(offsets), tuple(map(tuple, steps)))
    result = Viewed.by(Node(Operation.VIEW, node.type, node.sizes, (split,), fine_view)).of(split)
    return Viewed.by(result).of(value) if result.operands[:1] == (value,) else result


def _common_sizes(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...] | None:
    """Return the fewest sizes of which the sizes of two tensors are products; None if there are none."""
    result = list[int]()
    pending = [size for size in reversed(second) if size != 1]
    for size in first:
        rest = size
        while rest > 1:
            other = pending.pop()
            part = min(rest, other)
            if rest % part or other % part:
                return None
            result.append(part)
            rest //= part
            if other > part:
                pending.append(other // part)
    return tuple(result)


def reads_in_order(node: Node) -> bool:
    """Return whether a node is a VIEW of all elements in their order, with other dimensions of size 1."""
    view, value = node.attribute, node.operands[0] if node.operands else node
    if not isinstance(view, View) or len(node.operands) > 1 or any(view.offsets):
        return False
    rows, columns = (
        [number for number, size in enumerate(sizes) if not are_same(size, 1)]
        for sizes in (value.sizes, node.sizes)
    )
    if len(rows) != len(columns):
        return False
    places = dict(zip(rows, columns, strict=True))
    return all(
        are_same(value.sizes[row], node.sizes[column])
        and all(are_same(view.steps[row][each], int(each == column)) for each in columns)
        for row, column in places.items()
    )


def merged_behind_permutation(node: Node) -> Node | None:
    """Return a VIEW that permutes the dimensions of a RESHAPE as a RESHAPE of a VIEW.

    None if the view does more than permute and repeat, or if the reshape does not merge whole dimensions.
    """
    view, reshape = node.attribute, node.operands[0]
    assert isinstance(view, View)
    value = reshape.operands[0]
    groups = split_groups(value.sizes, reshape.sizes)
    if groups is None or len(node.operands) > 1 or any(view.offsets):
        return None
    sizes, places = list[int](), dict[int, int]()
    for column, size in enumerate(node.sizes):
        rows = [row for row, steps in enumerate(view.steps) if steps[column]]
        if not rows:
            sizes.append(size)
            continue
        (row, *others) = rows
        if (
            others
            or view.steps[row][column] != 1
            or reshape.sizes[row] != size
            or not places.keys().isdisjoint(groups[row])
        ):
            return None
        for part in groups[row]:
            places[part] = len(sizes)
            sizes.append(value.sizes[part])
    if any(size > 1 and part not in places for part, size in enumerate(value.sizes)):
        return None
    steps = tuple(
        tuple([int(places.get(part) == column) for column in range(len(sizes))])
        for part in range(len(value.sizes))
    )
    permuted = View((0,) * len(value.sizes), steps)
    fine = Node(Operation.VIEW, node.type, tuple(sizes), (value,), permuted)
    return Node(Operation.RESHAPE, node.type, node.sizes, (fine,))
