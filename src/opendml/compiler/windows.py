"""Unrolls reductions of small windows: pooling, and convolutions of each channel alone.

A reduction of a small window combines a few views of one tensor, element by element, in a kernel without
axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import chain, islice, product

from opendml.compiler.bounds import is_bounded
from opendml.compiler.domains import operand_sizes
from opendml.compiler.view_algebra import IN_MEMORY, Viewed, above_memory
from opendml.program.functions import (
    equal,
    logical_not,
    logical_or,
    maximum,
    minimum,
    multiply_add,
    select,
)
from opendml.program.node import COLLECTIVE, SEARCHES, Node, Operation, View, convert, ordered, rebuild
from opendml.program.sizes import is_traced

MOST_ELEMENTS = 32
"""Elements of a window that is unrolled, at most: each is a load of its own."""
MOST_PARTS = 1024
"""Nodes of the operands, at most: each is copied for each element of a window."""
MOST_BOUNDED = 4
"""Elements of a window that is unrolled, at most, if a loop would end where no further element counts."""


def with_windows_unrolled(roots: Sequence[Node], ends_loops: bool = False) -> tuple[Node, ...]:
    """Return the program without reductions of small windows, and fewer if a target `ends_loops`
    (`bounds`)."""
    nodes = ordered(roots)
    if not any(isinstance(node.attribute, View) for node in nodes):
        return tuple(roots)
    return rebuild(roots, partial(_unrolled, ends_loops=ends_loops), _repeated(nodes))


def _repeated(nodes: Sequence[Node]) -> set[int]:
    """Return the identities of reductions whose results are computed with for each element of a window.

    Softmax and normalizations have such. Unrolled, a kernel would combine the window again for each element:
    a softmax of 16 elements then takes 7 times as long (Sapphire Rapids).
    """
    repeated, wider = set[int](), dict[int, set[int]]()
    for node in reversed(nodes):
        axes = wider.get(id(node), set())
        if node.operation in _COMBINED and isinstance(node.attribute, tuple):
            if not axes.isdisjoint(node.attribute):
                repeated.add(id(node))
        elif node.operation in IN_MEMORY:
            continue
        else:
            for operand in node.operands:
                broadcast = (axis for axis, size in enumerate(operand.sizes) if size != node.sizes[axis])
                wider.setdefault(id(operand), set()).update(axes, broadcast)
    return repeated


def _unrolled(node: Node, ends_loops: bool) -> Node:
    if node.operation not in _COMBINED or not isinstance(node.attribute, tuple):
        return node
    domain = operand_sizes(node)
    elements = math.prod(domain[axis] for axis in node.attribute)
    # Code is not made for each element of a window whose size changes.
    if is_traced(elements) or elements > MOST_ELEMENTS:
        return node
    inside = chain.from_iterable(map(above_memory, node.operands))
    parts = list(islice(inside, MOST_PARTS + 1))
    if len(parts) > MOST_PARTS or any(part.operation in COLLECTIVE for part in parts):
        return node
    seen = [part.attribute for part in parts if _is_window(part, node.attribute)]
    computed = sum(isinstance(each, View) and bool(each.indexed) for each in seen)
    # Each element repeats the code that computes its indices.
    if not seen or elements * computed > MOST_ELEMENTS:
        return node
    if ends_loops and computed and elements > MOST_BOUNDED and is_bounded(node):
        return node
    if node.operation is Operation.CONTRACTION and (
        _is_product_of_matrices(node) or not _sums_windows(node, node.attribute, domain)
    ):
        return node
    return _COMBINED[node.operation](node, list(_elements(node, domain)))


def _is_window(node: Node, axes: Sequence[int]) -> bool:
    """Return whether a view moves along one dimension both with an axis and with a kept dimension."""
    if not isinstance(node.attribute, View):
        return False
    computed = dict(zip(node.attribute.indexed, node.operands[2:], strict=True))
    for dimension, row in enumerate(node.attribute.steps):
        moving = {axis for axis, step in enumerate(row) if step}
        if dimension in computed:
            moving |= {axis for axis, size in enumerate(computed[dimension].sizes) if size > 1}
        if not moving.isdisjoint(axes) and not moving <= set(axes):
            return True
    return False


def _sums_windows(node: Node, axes: Sequence[int], domain: Sequence[int]) -> bool:
    """Return whether an operand has windows, each for one result, or windows that share elements.

    Heads of attention are parts of a row behind each other, which are multiplied by several columns each.
    """
    kept = [axis for axis, size in enumerate(node.sizes) if size > 1]
    return any(
        _is_window(part, axes) and (not is_repeated or _overlaps(part.attribute, axes, domain))
        for operand in node.operands
        for is_repeated in [any(operand.sizes[axis] == 1 for axis in kept)]
        for part in above_memory(operand)
    )


def _overlaps(view: object, axes: Sequence[int], domain: Sequence[int]) -> bool:
    """Return whether neighbouring windows share elements, or their elements are computed."""
    if not isinstance(view, View) or view.indexed:
        return True
    for row in view.steps:
        reach = sum((domain[axis] - 1) * abs(row[axis]) for axis in axes)
        kept = [abs(step) for axis, step in enumerate(row) if step and axis not in axes]
        if reach and kept and min(kept) <= reach:
            return True
    return False


def _is_product_of_matrices(node: Node) -> bool:
    """Return whether both operands of a contraction are used for several results each."""
    a, b = (operand.sizes for operand in node.operands)
    kept = [axis for axis, size in enumerate(node.sizes) if size > 1]
    return any(a[axis] == 1 for axis in kept) and any(b[axis] == 1 for axis in kept)


def _elements(node: Node, domain: Sequence[int]) -> Iterator[list[Node]]:
    """Yield the operands for each element of a window, in row-major order, in the sizes of the result."""
    axes = node.attribute
    assert isinstance(axes, tuple)
    rank = range(len(domain))
    steps = tuple(tuple(int(row == column and row not in axes) for column in rank) for row in rank)
    for element in product(*(range(domain[axis]) for axis in axes)):
        offsets = tuple(element[axes.index(axis)] if axis in axes else 0 for axis in rank)
        viewed = Viewed(node.sizes, View(offsets, steps))
        yield [viewed.of(operand) for operand in node.operands]


def _folded(combine: Callable[[Node, Node], Node]) -> Callable[[Node, list[list[Node]]], Node]:
    def combined(node: Node, elements: list[list[Node]]) -> Node:
        return reduce(combine, (convert(element, node.type) for (element,) in elements))

    return combined


def _contracted(node: Node, elements: list[list[Node]]) -> Node:
    (a, b), *rest = elements
    total = a * b
    for a, b in rest:
        total = multiply_add(a, b, total) if node.type.is_float else total + a * b
    return total


def _found(node: Node, elements: list[list[Node]]) -> Node:
    """Return the index of the extreme element; of equal ones, and of NaN, the first or last index."""
    greatest = node.operation in (Operation.FIRST_GREATEST, Operation.LAST_GREATEST)
    last = node.operation in (Operation.LAST_LEAST, Operation.LAST_GREATEST)
    best = reduce(maximum if greatest else minimum, (value for value, _ in elements))
    none = -1 if last else 2 ** (node.type.bits - node.type.is_signed) - 1
    candidates = [select(_is_extreme(value, best), index, none) for value, index in elements]
    return reduce(maximum if last else minimum, candidates)


def _is_extreme(value: Node, best: Node) -> Node:
    """Return whether an element is the extreme one, which is NaN if one is."""
    is_best = equal(value, best)
    return logical_or(is_best, logical_not(equal(value, value))) if value.type.is_float else is_best


_COMBINED: dict[Operation, Callable[[Node, list[list[Node]]], Node]] = {
    Operation.SUM: _folded(lambda a, b: a + b),
    Operation.PRODUCT: _folded(lambda a, b: a * b),
    Operation.LEAST: _folded(minimum),
    Operation.GREATEST: _folded(maximum),
    Operation.CONTRACTION: _contracted,
    **dict.fromkeys(SEARCHES, _found),
}
