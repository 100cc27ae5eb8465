"""Moves views and reshapes to where they cost nothing: to the tensors in memory below, where they become
offsets and strides, or to the results above."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise

from opendml.compiler.homes import domain_of
from opendml.compiler.repeated import costs_more_again
from opendml.program.node import (
    COLLECTIVE,
    FUNCTIONS,
    REDUCTIONS,
    STORED,
    Node,
    Operation,
    View,
    apply,
    claim,
    constant,
    convert,
    expanded,
    index,
    ordered,
    rebuild,
    with_operands,
)
from opendml.program.scalar_type import ScalarType
from opendml.program.view import is_whole

IN_MEMORY = COLLECTIVE | STORED | {Operation.SOURCE, Operation.RECURRENCE, Operation.VIEW, Operation.RESHAPE}
"""What a view reads from memory, unless it can be moved on; all others are element-wise."""
_FIXED = COLLECTIVE | STORED | {Operation.INDEX}
"""Operations that no reshape moves below."""
_FREE = {
    Operation.CONSTANT,
    Operation.INDEX,
    Operation.CONVERT,
    Operation.BITCAST,
    Operation.ROUND,
    Operation.EXPAND,
}
_REPEATED_OPERATIONS = 2
"""Operations that are rather done again for every element that a view repeats than written to memory."""


_MOST_PARTS = 32
"""Parts of joined tensors, each of which gets a copy of the operations on these."""
MOST_COPIED = 128
"""Nodes that a view or a reshape copies when it moves below a value, at most; a value with more is written to
memory. So a program grows by no more than this factor: `x + x[::-1]`, applied k times, would take 2^k nodes.
Views in definitions of operators copy fewer than 100, but for one of ROI_ALIGN_GRAD."""


def moved(roots: Sequence[Node]) -> tuple[Node, ...]:
    """Return the program with views of element-wise values as values of views, views of views as one, and
    reshaped or joined results reshaped or joined last."""
    nodes = ordered(roots)
    seen: dict[int, int] = {}
    # A value that is moved below a view is another one than where it is not; each is computed.
    copies: dict[int, set[int]] = {id(_unshaped(root)): {0} for root in roots}
    for node in nodes:
        is_view = node.operation is Operation.VIEW
        for operand in node.operands if node.operation is not Operation.RESHAPE else ():
            copies.setdefault(id(_unshaped(operand)), set()).add(id(node) if is_view else 0)
        if is_view:
            value = _unshaped(node.operands[0])
            seen[id(value)] = seen.get(id(value), 0) + _reads(node)
    if not seen and not any(node.operation in {Operation.RESHAPE} | STORED for node in nodes):
        return tuple(roots)
    changed: dict[int, Node] = {}
    for node in nodes:
        operands = tuple(changed[id(operand)] for operand in node.operands)
        if node.operation in (Operation.VIEW, Operation.RESHAPE):
            operands = tuple(map(_joined_narrow, operands))
        new = node if operands == node.operands else with_operands(node, operands)
        if node.operation is Operation.VIEW:
            value = _unshaped(node.operands[0])
            repeats = seen[id(value)] > math.prod(value.sizes)
            new = _view(new, repeats, len(copies[id(value)]))
        elif node.operation is Operation.RESHAPE:
            new = _reshape(new)
        elif node.operation is not Operation.SOURCE:
            new = _joined_last(_reshaped_last(new))
        if node.origin is not None:
            claim(new, node.origin)
        changed[id(node)] = new
    return rebuild([changed[id(root)] for root in roots], lambda node: node)


def _unshaped(value: Node) -> Node:
    """What a value is in other sizes."""
    while value.operation is Operation.RESHAPE:
        value = value.operands[0]
    return value


def _reads(node: Node) -> int:
    """How many elements a VIEW reads at most; each counts as often as it is read."""
    assert isinstance(node.attribute, View)
    count, rows = math.prod(node.sizes), node.attribute.steps
    columns = [[row[column] for row in rows] for column, size in enumerate(node.sizes) if size > 1]
    once = all(sum(map(bool, line)) <= 1 for line in rows) and all(any(column) for column in columns)
    return min(count, math.prod(node.operands[0].sizes)) if once and not node.attribute.indexed else count


# Views


def _view(node: Node, repeats: bool, copies: int) -> Node:
    """Return a view, moved below the element-wise operations of what it reads if that is not more work.
    `repeats`: elements are read several times; by so many `copies` of what it reads."""
    if node.operands[0].operation is Operation.RESHAPE:
        node = _view_below_reshape(node, repeats, copies)
    if node.operation is not Operation.VIEW:
        return node
    value, seen = node.operands[0], _seen_by(node)
    if _is_in_memory(value, repeats, copies):
        narrow = _narrowest(value)
        operands = (narrow, *node.operands[1:])
        read = Node(node.operation, narrow.type, node.sizes, operands, node.attribute, node.origin)
        if narrow is value:
            return read
        seen.know(narrow, read)
    return expanded(seen.of(value, top=True), node.sizes)


def _view_below_reshape(node: Node, repeats: bool, copies: int) -> Node:
    """Move a VIEW of a reshaped tensor below the reshape, so that no tensor is written in between.

    If the reshape only splits dimensions, or the view runs within those that it merges, the result views the
    tensor that is reshaped. Otherwise the reshape moves down to tensors in memory, or above the view. If a
    kernel has to write the value, it writes its narrowest form.
    """
    reshape = node.operands[0]
    split = _affine_reshape(reshape)
    if split is not None:
        return _seen_by(node).of(split)
    value = reshape.operands[0]
    within = None if value.operation is Operation.SOURCE else _view_within_merged(node)
    if within is not None:
        return within
    if value.operation is Operation.VIEW:
        return _reshaped_view(node) or node
    if value.operation in IN_MEMORY:
        return node
    below = _lowered(reshape)
    is_in_memory = _is_in_memory(value, repeats, copies)
    if not is_in_memory and _is_written(below):
        reshaped = _reshaped_view(node)
        if reshaped is not None:
            viewed = _view(reshaped.operands[0], repeats, copies)
            return _reshape(with_operands(reshaped, (viewed,)))
    if is_in_memory or _is_written(below):
        below = _below_narrowest(reshape)
    return with_operands(node, (below, *node.operands[1:]))


def _view_within_merged(node: Node) -> Node | None:
    """Return a VIEW of a reshaped tensor as a VIEW of the tensor that is reshaped; None if there is none.

    There is one if no index carries over from one dimension that is merged into the next: of (32, 12) as 384,
    multiples of 12 move along the first one, and up to 11 elements in a row along the second one.
    """
    view, (reshape, *_) = node.attribute, node.operands
    value = reshape.operands[0]
    assert isinstance(view, View)
    parts = _common_parts(value.sizes, reshape.sizes)
    if parts is None or view.indexed:
        return None
    offsets, steps = dict.fromkeys(parts, 0), {part: [0] * len(node.sizes) for part in parts}
    rows = zip(_strides(reshape.sizes), reshape.sizes, view.offsets, view.steps, strict=True)
    for stride, size, offset, row in rows:
        left, moving = offset, list(row)
        own = _parts_within(parts, stride, size)
        for part in own:
            ratio = part // stride
            offsets[part], left = divmod(left, ratio)
            steps[part] = [step // ratio if step > 0 else -(-step // ratio) for step in moving]
            moving = [step - ratio * whole for step, whole in zip(moving, steps[part], strict=True)]
        for part in own[1:]:
            reach = [step * (count - 1) for count, step in zip(node.sizes, steps[part], strict=True)]
            least = offsets[part] + sum(min(each, 0) for each in reach)
            most = offsets[part] + sum(max(each, 0) for each in reach)
            if least < 0 or most >= parts[part]:
                return None
    new_offsets, new_steps = [], []
    for stride, size in zip(_strides(value.sizes), value.sizes, strict=True):
        factors = {part: part // stride for part in _parts_within(parts, stride, size)}
        new_offsets.append(sum(offsets[part] * factor for part, factor in factors.items()))
        moved = [steps[part] for part in factors]
        new_steps.append(_sum_of_rows(list(factors.values()), moved, len(node.sizes)))
    attribute = View(tuple(new_offsets), tuple(new_steps))
    return Node(Operation.VIEW, node.type, node.sizes, (value, *node.operands[1:]), attribute, node.origin)


def _reshaped_view(node: Node) -> Node | None:
    """Return a VIEW of a reshaped tensor as a reshaped VIEW of that tensor; None if there is none.

    There is one if each dimension that is merged of others is seen as a whole, without a mask.
    """
    view, (reshape, *rest) = node.attribute, node.operands
    assert isinstance(view, View)
    parts = _common_parts(reshape.operands[0].sizes, reshape.sizes)
    if parts is None or rest:
        return None
    split = {column: [(size, 1)] for column, size in enumerate(node.sizes)}
    rows = zip(_strides(reshape.sizes), reshape.sizes, view.offsets, view.steps, strict=True)
    for stride, size, offset, row in rows:
        own = _parts_within(parts, stride, size)
        moving = [(column, step) for column, step in enumerate(row) if step]
        if len(own) > 1 and offset == 0 and [step for _, step in moving] == [1]:
            ((column, _),) = moving
            if node.sizes[column] == size:
                split[column] = [(parts[part], part // stride) for part in own]
    sizes = tuple(size for own in split.values() for size, _ in own)
    steps = tuple(
        tuple(row[column] * step for column, own in split.items() for _, step in own) for row in view.steps
    )
    fine = Node(Operation.VIEW, node.type, sizes, (reshape,), View(view.offsets, steps), node.origin)
    within = None if sizes == node.sizes else _view_within_merged(fine)
    if within is None:
        return None
    if within.operands[0].operation is Operation.VIEW:
        within = _seen_by(within).of(within.operands[0])
    return Node(Operation.RESHAPE, node.type, node.sizes, (within,))


def _common_parts(first: Sequence[int], second: Sequence[int]) -> dict[int, int] | None:
    """Return the sizes, by their strides in elements, in which dimensions of both sizes are whole products of
    neighbours; None if there are none."""
    strides = sorted({*_strides(first), *_strides(second), math.prod(first)})
    parts = {inner: outer // inner for inner, outer in pairwise(strides)}
    return None if any(outer % inner for inner, outer in pairwise(strides)) else parts


def _parts_within(parts: Mapping[int, int], stride: int, size: int) -> list[int]:
    """Return the strides of the parts of a dimension, the largest first."""
    return [part for part in reversed(parts) if stride <= part < stride * size]


def _strides(sizes: Sequence[int]) -> list[int]:
    """Return how many elements neighbours along each dimension are apart."""
    return [math.prod(sizes[dimension + 1 :]) for dimension in range(len(sizes))]


def _narrowest(value: Node) -> Node:
    """Return where on the way to a value that is written to memory its elements take the fewest bits, before
    they are widened and a few operations with numbers, say: behind these, twice or four times as much would
    be written and read."""
    result = node = value
    operations = 0
    for _ in range(MOST_COPIED):
        whole = {id(operand): operand for operand in node.operands if operand.sizes == value.sizes}
        operations += node.operation not in _FREE
        if node.operation in IN_MEMORY or len(whole) != 1 or operations > _REPEATED_OPERATIONS:
            break
        # A view of many reduced values would be computed again for all that it repeats.
        others = (operand for operand in node.operands if id(operand) not in whole)
        many = (other for other in others if math.prod(other.sizes) > 1)
        if any(each.operation in COLLECTIVE for other in many for each in above_memory(other)):
            break
        (node,) = whole.values()
        if node.type.bits < result.type.bits:
            result = node
    return result


def _is_in_memory(value: Node, repeats: bool, copies: int) -> bool:
    """Whether a view reads a value from memory. What lies at computed indices is written there rather than
    gathered again for all that the view repeats."""
    if value.operation is Operation.VIEW:
        is_computed = isinstance(value.attribute, View) and bool(value.attribute.indexed)
        return (repeats and is_computed) or _is_large(value)
    if value.operation in IN_MEMORY or _is_large(value):
        return True
    return _stays(value, repeats) or costs_more_again(value, copies)


def _is_large(value: Node) -> bool:
    """Whether a view of a value copies more nodes than it may."""
    return len(list(islice(_walk(value, _read_by), MOST_COPIED + 1))) > MOST_COPIED


def _seen_by(node: Node) -> Seen:
    """What a VIEW does to what it reads."""
    assert isinstance(node.attribute, View)
    mask = node.operands[1] if len(node.operands) > 1 else None
    return Seen(node.sizes, node.attribute, mask, node.operands[2:])


def _stays(value: Node, repeats: bool) -> bool:
    """Whether an element-wise value is written to memory for a view to read it: where it is made of a
    reduction, or is more work than that for all that the view repeats."""
    steps = list(above_memory(value))
    if any(each.operation in COLLECTIVE for each in steps):
        return True
    if not repeats:
        return False
    work = [each for each in steps if each.operation not in IN_MEMORY | _FREE]
    return len(work) > _REPEATED_OPERATIONS or any(each.operation in FUNCTIONS for each in work)


def above_memory(value: Node) -> Iterator[Node]:
    """A value and what it is made of, down to tensors in memory."""
    return _walk(value, lambda node: () if node.operation in IN_MEMORY else node.operands)


def _walk(value: Node, below: Callable[[Node], Sequence[Node]]) -> Iterator[Node]:
    """A value and everything that `below` leads to from it. An operand that a node has twice comes twice."""
    pending, seen = [value], {id(value)}
    while pending:
        node = pending.pop()
        yield node
        new = [each for each in below(node) if id(each) not in seen]
        seen.update(map(id, new))
        pending += new


def _read_by(node: Node) -> Sequence[Node]:
    """The operands of a node that are computed rather than read from memory."""
    if node.operation is Operation.VIEW:
        return node.operands[1:]
    return () if node.operation in IN_MEMORY else node.operands


class Seen:
    """What the nodes of a program are through a view of sizes, an optional mask and indices (by the dimension
    that they add to)."""

    def __init__(
        self, sizes: tuple[int, ...], view: View, mask: Node | None = None, indices: Sequence[Node] = ()
    ) -> None:
        self.sizes, self.view, self.mask = sizes, view, mask
        self.indices = dict(zip(view.indexed, indices, strict=True))
        self._known: dict[int, Node] = {}

    def know(self, node: Node, seen: Node) -> None:
        """Says what a node is through the view."""
        self._known[id(node)] = seen

    def of(self, node: Node, top: bool = False) -> Node:
        """Return the elements of a node; where the mask is false they are 0 if it is the `top`, and anything
        below."""
        pending = [node]
        while pending:
            last = pending[-1]
            missing = [each for each in _read_by(last) if id(each) not in self._known]
            if id(last) not in self._known and not missing:
                self._known[id(last)] = self._of(last)
            if id(last) in self._known:
                pending.pop()
            else:
                pending += missing
        result = self._known[id(node)]
        if top and self.mask is not None and not _is_masked(result):
            return apply(Operation.SELECT, self.mask, result, constant(0, node.type))
        return result

    def _of(self, node: Node) -> Node:
        if not node.sizes:
            return node
        if node.operation is Operation.VIEW:
            return self._of_view(node)
        if node.operation is Operation.INDEX and isinstance(node.attribute, tuple):
            return self._number(node.type, node.attribute[0], node.attribute[1:])
        if node.operation in IN_MEMORY:
            offsets, steps, indices = self._within(node.sizes)
            return self._read(node, View(offsets, steps, tuple(indices)), indices, None)
        operands = tuple(self._known[id(operand)] for operand in node.operands)
        return Node(node.operation, node.type, self.sizes, operands, node.attribute, node.origin)

    def _within(
        self, sizes: Sequence[int]
    ) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...], dict[int, Node]]:
        """The view's own offsets, steps and indices in an operand that broadcasts to what is read."""
        whole = [size > 1 for size in sizes]
        still = (0,) * len(self.sizes)
        offsets = tuple(o if there else 0 for o, there in zip(self.view.offsets, whole, strict=True))
        steps = tuple(row if there else still for row, there in zip(self.view.steps, whole, strict=True))
        return offsets, steps, {d: value for d, value in self.indices.items() if whole[d]}

    def _of_view(self, node: Node) -> Node:
        """A view of a view: one view, masked by both masks."""
        inner = _seen_by(node)
        offsets, steps, indices = self._within(node.sizes)
        combined_offsets, combined_steps, combined_indices = [], [], {}
        for d, (offset, row) in enumerate(zip(inner.view.offsets, inner.view.steps, strict=True)):
            combined_offsets.append(offset + sum(s * o for s, o in zip(row, offsets, strict=True)))
            combined_steps.append(_sum_of_rows(row, steps, len(self.sizes)))
            parts = [self._known[id(inner.indices[d])]] if d in inner.indices else []
            parts += [_times(value, row[j]) for j, value in indices.items() if row[j]]
            if parts:
                combined_indices[d] = _sum(parts)
        mask = None if inner.mask is None else self._known[id(inner.mask)]
        view = View(tuple(combined_offsets), tuple(combined_steps), tuple(combined_indices))
        return self._read(node.operands[0], view, combined_indices, mask)

    def _read(self, value: Node, view: View, indices: dict[int, Node], mask: Node | None) -> Node:
        """A read of a tensor where this view's mask and another hold."""
        masks = [each for each in (self.mask, mask) if each is not None]
        if not masks and is_whole(view, value.sizes) and value.sizes == self.sizes:
            return value
        mask = apply(Operation.AND, *masks) if len(masks) == 2 else masks[0] if masks else None
        if mask is None and indices:
            mask = constant(1, ScalarType.BOOLEAN)
        operands = (value,) if mask is None else (value, mask, *indices.values())
        return Node(Operation.VIEW, value.type, self.sizes, operands, view)

    def _number(self, type: ScalarType, offset: int, strides: Sequence[int]) -> Node:
        """What an INDEX counts at the elements of the view."""
        first = offset + sum(s * o for s, o in zip(strides, self.view.offsets, strict=True))
        counted = index(type, self.sizes, first, _sum_of_rows(strides, self.view.steps, len(self.sizes)))
        computed = [
            convert(_times(value, strides[d]), type) for d, value in self.indices.items() if strides[d]
        ]
        return _sum([counted, *computed])


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
    """The rows, each times its factor, added up."""
    return tuple(
        sum(factor * row[column] for factor, row in zip(factors, rows, strict=True))
        for column in range(width)
    )


def _times(value: Node, factor: int) -> Node:
    return value if factor == 1 else value * index(value.type, (), factor, ())


def _sum(values: Sequence[Node]) -> Node:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


# Reshapes


def _reshape(node: Node) -> Node:
    """A reshaped tensor; of one in memory whose dimensions are only split, a view."""
    value = node.operands[0]
    if value.operation is Operation.RESHAPE:
        value = value.operands[0]
    if value.sizes in (node.sizes, ()):
        return expanded(value, node.sizes)
    result = Node(Operation.RESHAPE, value.type, node.sizes, (value,))
    if value.operation in (Operation.SOURCE, Operation.VIEW):
        return _lowered(result)
    return result


def _lowered(node: Node) -> Node:
    """Move a RESHAPE down to tensors in memory.

    The result is a view where dimensions are only split, and otherwise made of element-wise operations if all
    operands have the same sizes. What a kernel writes is written where it takes the fewest bits.
    """
    value = node.operands[0]
    if value.operation in COLLECTIVE | STORED:
        return node
    split = _affine_reshape(node)
    if split is not None:
        return _view(split, repeats=False, copies=1)
    if value.operation in IN_MEMORY:
        return node
    below = _reshaped_below(node)
    return below if below is not node else _below_narrowest(node)


def _below_narrowest(node: Node) -> Node:
    """Move a RESHAPE of a value that is written to memory down to where the value takes the fewest bits."""
    narrow = _narrowest(node.operands[0])
    return node if narrow is node.operands[0] else _reshaped_below(node, {id(narrow)})


def _reshaped_below(node: Node, read: Container[int] = ()) -> Node:
    """Move a RESHAPE below the element-wise operations of its operand, down to tensors in memory and to the
    nodes whose identities are in `read`.

    Return the node itself if an operand of these operations has other sizes, or if there are more operations
    than a reshape copies.
    """
    value = node.operands[0]

    def below(each: Node) -> Sequence[Node]:
        return () if each.operation in IN_MEMORY or id(each) in read else each.operands

    inside = list(islice(_walk(value, below), MOST_COPIED + 1))
    if len(inside) > MOST_COPIED or not all(
        each.sizes in ((), value.sizes) and (each.operation not in _FIXED or id(each) in read)
        for each in inside
    ):
        return node
    outside = {id(operand) for each in inside for operand in each.operands} - set(map(id, inside))
    moved_below: dict[int, Node] = {}
    for each in ordered([value], outside):
        if not each.sizes:
            new = each
        elif each.operation in IN_MEMORY or id(each) in read:
            new = _reshape(Node(Operation.RESHAPE, each.type, node.sizes, (each,)))
        else:
            operands = tuple(moved_below[id(operand)] for operand in each.operands)
            new = Node(each.operation, each.type, node.sizes, operands, each.attribute, each.origin)
        moved_below[id(each)] = new
    return moved_below[id(value)]


def _affine_reshape(node: Node) -> Node | None:
    """A reshaped tensor as a view, if every dimension of the operand is a product of dimensions of the
    result, or None."""
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


def split_groups(fine: Sequence[int], coarse: Sequence[int]) -> list[list[int]] | None:
    """For each dimension of `coarse` the neighbouring dimensions of `fine` whose product it is; None if
    there are none such."""
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


def _reshaped_last(node: Node) -> Node:
    """Return a node over reshaped tensors: an element-wise one, or a reduction of one tensor, is computed in
    the sizes that these had, then reshaped."""
    reshaped = [operand for operand in node.operands if operand.operation is Operation.RESHAPE]
    if not reshaped:
        return node
    if node.operation in REDUCTIONS and len(node.operands) == 1:
        return _reduced_in_parts(node) or with_operands(node, (_lowered(node.operands[0]),))
    if node.operation is Operation.CONTRACTION:
        in_parts = _contracted_in_parts(node)
        if in_parts is not None:
            return in_parts
    if node.operation in IN_MEMORY:
        return _in_own_sizes(node)
    best: Node | None = None
    least = math.inf
    tried = set[tuple[int, ...]]()
    for sizes in chain.from_iterable(_sizes_of(operand.operands[0]) for operand in reshaped):
        if sizes in tried:
            continue
        tried.add(sizes)
        operands = _in_sizes(node, sizes)
        written = math.inf if operands is None else _written_for(operands)
        if operands is not None and written < least:
            value = Node(node.operation, node.type, sizes, operands, node.attribute)
            best, least = Node(Operation.RESHAPE, node.type, node.sizes, (value,)), written
        if written == 0:
            break
    # The sizes of one operand may need another operand, such as a scaled sum of products, in memory.
    if least > 0:
        in_own_sizes = _in_own_sizes(node)
        if best is None or _written_for(in_own_sizes.operands) < least:
            return in_own_sizes
    return best or node


def _in_own_sizes(node: Node) -> Node:
    """Return a node whose reshaped operands are computed in the sizes that it reads."""
    return with_operands(node, tuple(map(_lowered_if_reshaped, node.operands)))


def _written_for(operands: Sequence[Node]) -> int:
    """Return the bits of all values that kernels write to memory so that the operands can be read in other
    sizes."""
    written: dict[int, Node] = {}
    for operand in operands:
        for each in islice(above_memory(operand), MOST_COPIED):
            if each.operation in (Operation.VIEW, Operation.RESHAPE):
                value = _unshaped(each.operands[0])
                if value.operation is not Operation.SOURCE:
                    written[id(value)] = value
    return sum(math.prod(value.sizes) * value.type.bits for value in written.values())


def _lowered_if_reshaped(node: Node) -> Node:
    return _lowered(node) if node.operation is Operation.RESHAPE else node


def _sizes_of(value: Node) -> Iterator[tuple[int, ...]]:
    """The sizes in which an element-wise node over a value may be computed: its own, and those of what it was
    reduced from, as a normalization does that multiplies by what it has reduced."""
    yield value.sizes
    for node in islice(above_memory(value), MOST_COPIED):
        if node.operation in REDUCTIONS:
            yield node.operands[0].sizes


def _reduced_in_parts(node: Node) -> Node | None:
    """A reduction of a tensor whose dimensions were merged, over those that they were merged of, so that it
    shares a kernel with what else is computed there; None where they are not."""
    (operand,), axes = node.operands, node.attribute
    value = operand.operands[0]
    groups = split_groups(value.sizes, operand.sizes)
    assert isinstance(axes, tuple)
    parts = [] if groups is None else [part for axis in axes for part in groups[axis]]
    if not parts:
        return None
    sizes = tuple(1 if part in parts else size for part, size in enumerate(value.sizes))
    result = Node(node.operation, node.type, sizes, (value,), tuple(parts))
    return Node(Operation.RESHAPE, node.type, node.sizes, (result,))


def _is_written(value: Node) -> bool:
    """Whether a kernel writes something to memory in other sizes before a value can be computed of it."""
    return any(
        each.operation is Operation.RESHAPE and each.operands[0].operation is not Operation.SOURCE
        for each in islice(above_memory(value), MOST_COPIED)
    )


def _contracted_in_parts(node: Node) -> Node | None:
    """Return a sum of products over dimensions that were merged, over those that they were merged of, so that
    an operand is computed where it is multiplied, as weights are whose blocks have scales; None where none
    were merged, or the other operand had to be written to memory instead."""
    for operand in node.operands:
        lowered = _lowered_if_reshaped(operand)
        if operand.operation is Operation.RESHAPE and _is_written(lowered):
            result = _contracted_over(node, operand, all_axes=_is_copied(lowered))
            if result is not None:
                return Node(Operation.RESHAPE, node.type, node.sizes, (result,))
    return None


def _is_copied(value: Node) -> bool:
    """Return whether a kernel copies a view to memory before a value can be computed of it.

    A kernel writes what it computes in another order of dimensions at once.
    """
    return any(
        each.operation is Operation.RESHAPE
        and each.operands[0].operation is Operation.VIEW
        and not _is_written_in_order(each.operands[0])
        for each in islice(above_memory(value), MOST_COPIED)
    )


def _is_written_in_order(node: Node) -> bool:
    """Return whether a VIEW only puts the dimensions of a computed value in another order, and keeps the last
    one."""
    view, (value, *rest) = node.attribute, node.operands
    assert isinstance(view, View)
    if rest or value.operation in IN_MEMORY - COLLECTIVE or any(view.offsets):
        return False
    places = []
    for size, row in zip(value.sizes, view.steps, strict=True):
        moving = [column for column, step in enumerate(row) if step]
        if size > 1 and (len(moving) != 1 or row[moving[0]] != 1 or node.sizes[moving[0]] != size):
            return False
        places += moving
    return math.prod(node.sizes) == math.prod(value.sizes) and places[-1:] == [max(places, default=0)]


def _contracted_over(node: Node, reshaped: Node, all_axes: bool) -> Node | None:
    """Return a sum of products over what the dimensions of a reshaped operand were merged of: those that are
    summed, or `all_axes`."""
    axes, domain, fine = node.attribute, domain_of(node), reshaped.operands[0].sizes
    groups = split_groups(fine, reshaped.sizes)
    assert isinstance(axes, tuple)
    split = range(len(domain)) if all_axes else axes
    if groups is None or all(len(groups[axis]) <= 1 for axis in split):
        return None
    sizes, summed, places = list[int](), list[int](), list[range]()
    for axis, group in enumerate(groups):
        parts = [fine[part] for part in group]
        if axis not in split or math.prod(parts) != domain[axis]:
            parts = [domain[axis]]
        places.append(range(len(sizes), len(sizes) + len(parts)))
        summed += [part for part, size in zip(places[-1], parts, strict=True) if axis in axes and size > 1]
        sizes += parts
    operands = [_refined(operand, domain, sizes, places) for operand in node.operands]
    kept = tuple(1 if part in summed else size for part, size in enumerate(sizes))
    found = tuple(operand for operand in operands if operand is not None)
    return Node(node.operation, node.type, kept, found, tuple(summed)) if len(found) == 2 else None


def _in_sizes(node: Node, sizes: tuple[int, ...]) -> tuple[Node, ...] | None:
    """The operands of an element-wise node in other sizes of as many elements; None if that takes more than
    views."""
    if math.prod(sizes) != math.prod(node.sizes):
        return None
    groups = split_groups(sizes, node.sizes)
    result = []
    for operand in node.operands:
        if not operand.sizes:
            result.append(operand)
        elif operand.operation is Operation.RESHAPE and operand.operands[0].sizes == sizes:
            result.append(operand.operands[0])
        elif groups is None:
            return None
        else:
            fine = _refined(operand, node.sizes, sizes, groups)
            if fine is None:
                return None
            result.append(fine)
    return tuple(result)


def _refined(
    operand: Node, coarse: Sequence[int], fine: Sequence[int], groups: Sequence[Sequence[int]]
) -> Node | None:
    """Return an operand with its dimensions split as those of its user are; None if that takes more than a
    view."""
    if not operand.sizes:
        return operand
    sizes = [1] * len(fine)
    for size, whole, group in zip(operand.sizes, coarse, groups, strict=True):
        for dimension in group:
            sizes[dimension] = fine[dimension] if size == whole else 1
    if operand.operation is Operation.RESHAPE and operand.operands[0].sizes == tuple(sizes):
        return operand.operands[0]
    if tuple(sizes) == operand.sizes:
        return _lowered_if_reshaped(operand)
    result = _lowered_if_reshaped(_reshape(Node(Operation.RESHAPE, operand.type, tuple(sizes), (operand,))))
    return None if result.operation is Operation.RESHAPE else result


# Joins


def _joined_last(node: Node) -> Node:
    """Return an element-wise node over joined tensors: computed of their parts, then joined, perhaps below a
    reshape. Parts that are joined tensors too are divided likewise, if there are few in all.

    Where it is also made of what a kernel reduces, that kernel computes the node, and reads joined tensors.
    """
    if node.operation is Operation.RESHAPE:
        return with_operands(node, (_joined_last(node.operands[0]),))
    join = next((operand for operand in node.operands if operand.operation is Operation.JOIN), None)
    if join is None:
        return node
    if (
        node.operation in IN_MEMORY
        or len(join.operands) > _MOST_PARTS
        or any(map(_is_made_of_reductions, node.operands))
    ):
        return with_operands(node, tuple(map(_joined_narrow, node.operands)))
    assert isinstance(join.attribute, int)
    axis, parts, first = join.attribute, [], 0
    are_divided = len(list(islice(_parts_in_all(join), _MOST_PARTS + 1))) <= _MOST_PARTS
    for number, part in enumerate(join.operands):
        extent = part.sizes[axis]
        sizes = tuple(extent if each == axis else size for each, size in enumerate(node.sizes))
        operands = tuple(
            operand.operands[number]
            if _are_joined_alike(operand, join)
            else _part(operand, axis, first, extent)
            for operand in node.operands
        )
        own = _reshaped_last(Node(node.operation, node.type, sizes, operands, node.attribute, node.origin))
        parts.append(_joined_last(own) if are_divided else own)
        first += extent
    return Node(Operation.JOIN, node.type, node.sizes, tuple(parts), axis)


def _parts_in_all(join: Node) -> Iterator[Node]:
    """Yield the parts of joined tensors, and those of parts that are joined tensors themselves instead of
    these. Tensors that are joined several times come as often."""
    pending = [join]
    while pending:
        node = pending.pop()
        if node.operation is Operation.JOIN:
            pending += node.operands
        else:
            yield node


def _is_made_of_reductions(value: Node) -> bool:
    """Return whether a value is made of what is reduced, other than parts of joined tensors."""
    ends = COLLECTIVE | STORED | {Operation.SOURCE, Operation.RECURRENCE}
    inside = _walk(value, lambda each: () if each.operation in ends else each.operands)
    return any(each.operation in COLLECTIVE for each in islice(inside, MOST_COPIED))


def _joined_narrow(value: Node) -> Node:
    """Return stored tensors that were all widened as a widened stored tensor."""
    if value.operation not in STORED:
        return value
    narrow = [part.operands[0] for part in value.operands if part.operation is Operation.CONVERT]
    types = {part.type for part in narrow}
    if len(narrow) < len(value.operands) or len(types) > 1 or narrow[0].type.bits >= value.type.bits:
        return value
    joined = Node(value.operation, narrow[0].type, value.sizes, tuple(narrow), value.attribute)
    return Node(Operation.CONVERT, value.type, value.sizes, (joined,))


def _are_joined_alike(node: Node, join: Node) -> bool:
    if node.operation is not Operation.JOIN or node.attribute != join.attribute:
        return False
    axis = join.attribute
    assert isinstance(axis, int)
    return [part.sizes[axis] for part in node.operands] == [part.sizes[axis] for part in join.operands]


def _part(value: Node, axis: int, first: int, extent: int) -> Node:
    """So many elements of a value along an axis, or all where it repeats along that."""
    if not value.sizes or value.sizes[axis] == 1:
        return value
    rank = range(len(value.sizes))
    sizes = tuple(extent if each == axis else size for each, size in enumerate(value.sizes))
    steps = tuple(tuple(int(row == column and sizes[row] > 1) for column in rank) for row in rank)
    view = View(tuple(first if each == axis else 0 for each in rank), steps)
    if _is_large(value):
        return Node(Operation.VIEW, value.type, sizes, (value,), view)
    return Seen(sizes, view).of(value)
