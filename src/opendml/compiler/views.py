"""Moves views, reshapes and joins to where they cost nothing.

Views move down to tensors in memory, where they become offsets, strides and masks of loads. Reshapes move
down if they split dimensions, and otherwise up to results, which are computed in the sizes of their operands.
Joins move up, so that each part is computed where it is joined. The rules are in `view_algebra`; `prices`
decides which values are stored on the way.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from itertools import chain, islice, pairwise

from opendml.compiler.domains import operand_sizes
from opendml.compiler.prices import (
    MOST_COPIED,
    Prices,
    Readers,
    bits_stored,
    in_first_sizes,
    is_large,
    is_stored,
    narrowest,
    needs_storing,
    readers_of,
)
from opendml.compiler.view_algebra import (
    IN_MEMORY,
    Viewed,
    above_memory,
    merged_behind_permutation,
    reads_in_order,
    split_groups,
    split_reshape,
    walk,
)
from opendml.program.carriers import bits_of_bfloat16, float32_of_bits
from opendml.program.node import (
    COLLECTIVE,
    REDUCTIONS,
    STORED,
    Node,
    Operation,
    View,
    claim,
    expanded,
    ordered,
    rebuild,
    with_operands,
)
from opendml.program.sizes import are_same, is_traced

_FIXED = COLLECTIVE | STORED | {Operation.INDEX}
"""Operations below which no reshape moves."""
_MOST_PARTS = 32
"""Parts of joined tensors that get copies of the operations on these, at most."""


def with_views_moved(roots: Sequence[Node], prices: Prices) -> tuple[Node, ...]:
    """Return the program with views, reshapes and joins moved to where they cost nothing."""
    nodes = ordered(roots)
    readers = readers_of(nodes, roots, prices)
    if not readers and not any(node.operation in {Operation.RESHAPE} | STORED for node in nodes):
        return tuple(roots)
    changed: dict[int, Node] = {}
    uses: Counter[int] = Counter(id(operand) for node in nodes for operand in node.operands)
    for node in nodes:
        operands = tuple([changed[id(operand)] for operand in node.operands])
        if node.operation in (Operation.VIEW, Operation.RESHAPE):
            operands = tuple(map(_joined_narrow, operands))
        new = node if operands == node.operands else with_operands(node, operands)
        if node.operation is Operation.VIEW:
            new = _view(new, readers[id(in_first_sizes(node.operands[0]))])
        elif node.operation is Operation.RESHAPE:
            new = _reshape(new)
        elif node.operation is not Operation.SOURCE:
            new = _joined_last(_reshaped_last(new, [uses[id(operand)] for operand in node.operands]))
        if node.origin is not None:
            claim(new, node.origin)
        changed[id(node)] = new
    return rebuild([changed[id(root)] for root in roots], lambda node: node)


# Views


def _view(node: Node, readers: Readers) -> Node:
    """Return a view below the element-wise operations of its operand, unless that is stored."""
    if node.operands[0].operation is Operation.RESHAPE:
        node = _view_below_reshape(node, readers)
    if node.operation is not Operation.VIEW:
        return node
    value, viewed = node.operands[0], Viewed.by(node)
    if is_stored(value, readers):
        narrow = narrowest(value)
        operands = (narrow, *node.operands[1:])
        read = Node(node.operation, narrow.type, node.sizes, operands, node.attribute, node.origin)
        if narrow is value:
            return read
        viewed.know(narrow, read)
    return expanded(viewed.masked(value), node.sizes)


def _view_below_reshape(node: Node, readers: Readers) -> Node:
    """Move a VIEW of a reshaped tensor below the reshape, so that no tensor is stored in between.

    If the reshape only splits dimensions, the result views the tensor that is reshaped. Otherwise the reshape
    moves down to tensors in memory. If it can't, a permutation moves below it, such as that of weights whose
    blocks have scales. If a kernel has to store the value, it stores its narrowest form.
    """
    reshape = node.operands[0]
    split = split_reshape(reshape)
    if split is not None:
        return Viewed.by(node).of(split)
    value = reshape.operands[0]
    if value.operation in IN_MEMORY:
        return node
    below = _lowered(reshape)
    stores = is_stored(value, readers)
    if not stores and needs_storing(below):
        permuted = merged_behind_permutation(node)
        if permuted is not None:
            return with_operands(permuted, (_view(permuted.operands[0], readers),))
    if stores or needs_storing(below):
        below = _below_narrowest(reshape)
    return with_operands(node, (below, *node.operands[1:]))


# Reshapes


def _reshape(node: Node) -> Node:
    """Return a RESHAPE without another one below it, and below views of tensors in memory.

    A view that only moves dimensions of size 1 is as good as a RESHAPE.
    """
    value = node.operands[0]
    while value.operation is Operation.RESHAPE or reads_in_order(value):
        value = value.operands[0]
    if value.sizes in (node.sizes, ()):
        return expanded(value, node.sizes)
    result = Node(Operation.RESHAPE, value.type, node.sizes, (value,))
    if value.operation in (Operation.SOURCE, Operation.VIEW):
        return _lowered(result)
    return result


def _lowered(node: Node) -> Node:
    """Move a RESHAPE down to tensors in memory.

    The result is a view if dimensions are only split. Otherwise it is element-wise if all operands have the
    same sizes. A value that a kernel stores is stored where it takes the fewest bits.
    """
    value = node.operands[0]
    if value.operation in COLLECTIVE | STORED:
        return node
    split = split_reshape(node)
    if split is not None:
        return _view(split, Readers())
    if value.operation in IN_MEMORY:
        return node
    below = _reshaped_below(node)
    return below if below is not node else _below_narrowest(node)


def _below_narrowest(node: Node) -> Node:
    """Move a RESHAPE of a value that is stored down to where the value takes the fewest bits."""
    narrow = narrowest(node.operands[0])
    return node if narrow is node.operands[0] else _reshaped_below(node, {id(narrow)})


def _reshaped_below(node: Node, read: Container[int] = ()) -> Node:
    """Move a RESHAPE below the element-wise operations of its operand.

    It moves down to tensors in memory and to nodes whose identities are in `read`. Return the node itself if
    an operand of these operations has other sizes, or if a reshape may not copy as many operations.
    """
    value = node.operands[0]

    def below(each: Node) -> Sequence[Node]:
        return () if each.operation in IN_MEMORY or id(each) in read else each.operands

    inside = list(islice(walk(value, below), MOST_COPIED + 1))
    if len(inside) > MOST_COPIED or not all(
        not each.sizes or (each.sizes == value.sizes and (each.operation not in _FIXED or id(each) in read))
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
            operands = tuple([moved_below[id(operand)] for operand in each.operands])
            new = Node(each.operation, each.type, node.sizes, operands, each.attribute, each.origin)
        moved_below[id(each)] = new
    return moved_below[id(value)]


def _reshaped_last(node: Node, uses: Sequence[int] = ()) -> Node:
    """Return a node over reshaped tensors as a reshaped node over these tensors.

    An element-wise node is computed in those sizes for which kernels store the fewest bits. Of equal ones,
    those of the operand with the fewest `uses` are taken, since one with many is stored anyway.
    """
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
    if uses:
        counts = {id(operand): count for operand, count in zip(node.operands, uses, strict=True)}
        reshaped.sort(key=lambda operand: counts[id(operand)])
    # The kernel of a product adds what is in memory, such as a residual, in the sizes of the product.
    of_products = {each.operands[0].sizes for each in reshaped if _is_made_of_products(each.operands[0])}
    best: Node | None = None
    least = math.inf
    tried = set[tuple[int, ...]]()
    for sizes in chain.from_iterable(_sizes_of(operand.operands[0]) for operand in reshaped):
        if sizes in tried:
            continue
        tried.add(sizes)
        operands = _in_sizes(node, sizes, merges=sizes in of_products)
        written = math.inf if operands is None else bits_stored(operands)
        if operands is not None and written < least:
            value = Node(node.operation, node.type, sizes, operands, node.attribute)
            best, least = Node(Operation.RESHAPE, node.type, node.sizes, (value,)), written
        if written == 0:
            break
    # The sizes of one operand may need another operand, such as a scaled sum of products, in memory.
    if least > 0:
        in_own_sizes = _in_own_sizes(node)
        if best is None or bits_stored(in_own_sizes.operands) < least:
            return in_own_sizes
    return best or node


def _is_made_of_products(value: Node) -> bool:
    inside = islice(above_memory(value), MOST_COPIED)
    return any(each.operation is Operation.CONTRACTION for each in inside)


def _in_own_sizes(node: Node) -> Node:
    """Return a node whose reshaped operands are computed in the sizes that it reads."""
    return with_operands(node, tuple(map(_lowered_if_reshaped, node.operands)))


def _lowered_if_reshaped(node: Node) -> Node:
    return _lowered(node) if node.operation is Operation.RESHAPE else node


def _sizes_of(value: Node) -> Iterator[tuple[int, ...]]:
    """Yield sizes in which an element-wise node over a value may be computed.

    They are those of the value, and those of what it was reduced from. A normalization multiplies its input
    by a result of reductions.
    """
    yield value.sizes
    for node in islice(above_memory(value), MOST_COPIED):
        if node.operation in REDUCTIONS:
            yield node.operands[0].sizes


def _reduced_in_parts(node: Node) -> Node | None:
    """Return a reduction of a tensor with merged dimensions as one over the dimensions before.

    It then shares a kernel with other values of these sizes. None if the axes are not merged of whole ones.
    """
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


def _contracted_in_parts(node: Node) -> Node | None:
    """Return a sum of products over merged dimensions as one over the dimensions before.

    An operand is then computed where it is multiplied, such as weights whose blocks have scales. None if no
    dimensions are merged, or if the other operand had to be stored instead.
    """
    for operand in node.operands:
        lowered = _lowered_if_reshaped(operand)
        if operand.operation is Operation.RESHAPE and needs_storing(lowered):
            result = _contracted_over(node, operand)
            if result is not None:
                return Node(Operation.RESHAPE, node.type, node.sizes, (result,))
    return None


def _contracted_over(node: Node, reshaped: Node) -> Node | None:
    """Return a sum of products over the dimensions that those of an operand are merged of."""
    axes, domain, fine = node.attribute, operand_sizes(node), reshaped.operands[0].sizes
    groups = split_groups(fine, reshaped.sizes)
    assert isinstance(axes, tuple)
    if groups is None or all(len(group) <= 1 for group in groups):
        return None
    sizes, summed, groups_of_sizes = list[int](), list[int](), list[range]()
    for axis, group in enumerate(groups):
        parts = [fine[part] for part in group]
        if math.prod(parts) != domain[axis]:
            parts = [domain[axis]]
        elif axis in axes:
            for operand in node.operands:
                parts = _parts_of_both(parts, _merged_sizes(operand, axis)) or parts
        numbers = range(len(sizes), len(sizes) + len(parts))
        groups_of_sizes.append(numbers)
        summed += [part for part, size in zip(numbers, parts, strict=True) if axis in axes and size > 1]
        sizes += parts
    operands = [_refined(operand, domain, sizes, groups_of_sizes, True) for operand in node.operands]
    kept = tuple(1 if part in summed else size for part, size in enumerate(sizes))
    found = tuple(operand for operand in operands if operand is not None)
    return Node(node.operation, node.type, kept, found, tuple(summed)) if len(found) == 2 else None


def _merged_sizes(operand: Node, axis: int) -> list[int]:
    """Return the sizes of the dimensions that an axis of an operand is merged of; none if it is not."""
    if operand.operation is not Operation.RESHAPE:
        return []
    sizes = operand.operands[0].sizes
    groups = split_groups(sizes, operand.sizes)
    return [] if groups is None else [sizes[part] for part in groups[axis]]


def _parts_of_both(first: Sequence[int], second: Sequence[int]) -> list[int] | None:
    """Return the largest sizes that split both of two sequences of sizes with one product.

    The heads of attention and the blocks of weights may split one axis, for example. None if there are none,
    or if a size is traced.
    """
    if any(map(is_traced, (*first, *second))) or math.prod(first) != math.prod(second):
        return None
    steps = {math.prod(sizes[place:]) for sizes in (first, second) for place in range(len(sizes) + 1)}
    ordered_steps = sorted(steps, reverse=True)
    parts = []
    for step, below in pairwise(ordered_steps):
        if step % below:
            return None
        parts.append(step // below)
    return parts


def _in_sizes(node: Node, sizes: tuple[int, ...], merges: bool) -> tuple[Node, ...] | None:
    """Return the operands of an element-wise node in other sizes.

    None if that takes more than views. With `merges`, operands that kernels can store may be reshaped too.
    """
    if not are_same(math.prod(sizes), math.prod(node.sizes)):
        return None
    groups = split_groups(sizes, node.sizes)
    merged = split_groups(node.sizes, sizes) if groups is None and merges else None
    result = []
    for operand in node.operands:
        found: Node | None = None
        if not operand.sizes:
            found = operand
        elif operand.operation is Operation.RESHAPE and operand.operands[0].sizes == sizes:
            found = operand.operands[0]
        elif groups is not None:
            found = _refined(operand, node.sizes, sizes, groups)
        elif merged is not None:
            found = _merged(operand, node.sizes, sizes, merged)
        if found is None:
            return None
        result.append(found)
    return tuple(result)


def _merged(
    operand: Node, fine: Sequence[int], coarse: Sequence[int], groups: Sequence[Sequence[int]]
) -> Node | None:
    """Return an operand with the dimensions of its user merged, from groups of `fine` sizes to `coarse` ones.

    None if it repeats along only some dimensions of a group, or if it is made of reductions other than
    products. A normalization would no longer be one kernel.
    """
    sizes = []
    for whole, group in zip(coarse, groups, strict=True):
        size = math.prod(operand.sizes[dimension] for dimension in group)
        if size not in (1, whole):
            return None
        sizes.append(size)
    operations = {each.operation for each in islice(above_memory(operand), MOST_COPIED)}
    if not operations.isdisjoint(REDUCTIONS - {Operation.CONTRACTION}):
        return None
    reshaped = _reshape(Node(Operation.RESHAPE, operand.type, tuple(sizes), (_joined_narrow(operand),)))
    return _lowered_if_reshaped(reshaped)


def _refined(
    operand: Node,
    coarse: Sequence[int],
    fine: Sequence[int],
    groups: Sequence[Sequence[int]],
    is_multiplied: bool = False,
) -> Node | None:
    """Return an operand with dimensions split like the sizes `coarse` of its user into groups of `fine` ones.

    None if that takes more than a view. If the operand `is_multiplied`, it may be a view of results of
    reductions, which are stored anyway.
    """
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
    if result.operation is not Operation.RESHAPE:
        return result
    return split_reshape(result) if is_multiplied and result.operands[0].operation in COLLECTIVE else None


# Joins


def _joined_last(node: Node) -> Node:
    """Return an element-wise node over joined tensors, perhaps reshaped, as joined nodes over their parts.

    Parts that are joined tensors are divided, too, if there are few in all. If the node is also made of
    reductions, their kernel computes it, and reads the joined tensors.
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
    """Yield the parts of joined tensors, as often as they are joined, and not those that are joined
    tensors."""
    pending = [join]
    while pending:
        node = pending.pop()
        if node.operation is Operation.JOIN:
            pending += node.operands
        else:
            yield node


def _is_made_of_reductions(value: Node) -> bool:
    """Return whether a value is made of reductions, other than through joined tensors."""
    ends = COLLECTIVE | STORED | {Operation.SOURCE, Operation.RECURRENCE}
    inside = walk(value, lambda each: () if each.operation in ends else each.operands)
    return any(each.operation in COLLECTIVE for each in islice(inside, MOST_COPIED))


def _joined_narrow(value: Node) -> Node:
    """Return stored tensors that are all widened, perhaps reshaped, as a widened stored tensor."""
    if value.operation is Operation.RESHAPE:
        return with_operands(value, (_joined_narrow(value.operands[0]),))
    if value.operation not in STORED:
        return value
    bits = [each for each in map(bits_of_bfloat16, value.operands) if each is not None]
    narrow = bits or [part.operands[0] for part in value.operands if part.operation is Operation.CONVERT]
    types = {part.type for part in narrow}
    if len(narrow) < len(value.operands) or len(types) > 1 or narrow[0].type.bits >= value.type.bits:
        return value
    joined = Node(value.operation, narrow[0].type, value.sizes, tuple(narrow), value.attribute)
    return float32_of_bits(joined) if bits else Node(Operation.CONVERT, value.type, value.sizes, (joined,))


def _are_joined_alike(node: Node, join: Node) -> bool:
    if node.operation is not Operation.JOIN or node.attribute != join.attribute:
        return False
    axis = join.attribute
    assert isinstance(axis, int)
    return [part.sizes[axis] for part in node.operands] == [part.sizes[axis] for part in join.operands]


def _part(value: Node, axis: int, first: int, extent: int) -> Node:
    """Return `extent` elements of a value along an axis, or the value if it repeats along that."""
    if not value.sizes or value.sizes[axis] == 1:
        return value
    rank = range(len(value.sizes))
    sizes = tuple(extent if each == axis else size for each, size in enumerate(value.sizes))
    steps = tuple(tuple(int(row == column and sizes[row] > 1) for column in rank) for row in rank)
    view = View(tuple(first if each == axis else 0 for each in rank), steps)
    if is_large(value):
        return Node(Operation.VIEW, value.type, sizes, (value,), view)
    return Viewed(sizes, view).of(value)
