"""Finds loops that may end early: reductions whose elements count only below a bound.

The bound is computed from operands, and is the same for all elements of a group. The number of samples of a
region is one. A loop over the axis ends where no further element counts, and never goes beyond the axis.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import islice

from opendml.compiler.kernel import Access, Kernel, number_of, operations_of
from opendml.compiler.view_algebra import IN_MEMORY, computed_operands, walk
from opendml.program.node import REDUCTIONS, Node, Operation, View, ordered
from opendml.program.scalar_type import ScalarType

_NEUTRAL = {Operation.SUM: 0.0, Operation.LEAST: math.inf, Operation.GREATEST: -math.inf}
"""The numbers that do not change a reduction of floats; sums are never -0."""
_MOST_CONDITIONS = 64
"""Conditions that are searched for a bound, at most."""
_COUNTED = (ScalarType.INT32, ScalarType.INT64, ScalarType.FLOAT32, ScalarType.FLOAT64)


def bounds_of(reduction: Node) -> Iterator[tuple[Node, Node]]:
    """Yield positions along axes (INDEX nodes, or SOURCEs of a kernel) and the bounds below which they
    count."""
    if reduction.operation not in _NEUTRAL:
        return
    value = _converted(reduction.operands[0])
    if (
        value.operation is not Operation.SELECT
        or value.operands[2].attribute != _NEUTRAL[reduction.operation]
    ):
        return
    conditions = walk(
        value.operands[0], lambda each: each.operands if each.operation is Operation.AND else ()
    )
    for condition in islice(conditions, _MOST_CONDITIONS):
        if condition.operation is Operation.LESS and condition.operands[0].type in _COUNTED:
            position = _converted(condition.operands[0])
            if position.operation in (Operation.INDEX, Operation.SOURCE) and not position.operands:
                yield position, condition.operands[1]


def is_bounded(reduction: Node) -> bool:
    """Return whether a reduction has a bound along one of its axes that does not vary along them."""
    axes = reduction.attribute
    assert isinstance(axes, tuple)
    return any(
        _varies(position, axes) and not _varies(bound, axes) for position, bound in bounds_of(reduction)
    )


def _varies(root: Node, axes: Sequence[int]) -> bool:
    """Return whether a value differs along some axes."""
    for node in walk(root, computed_operands):
        moving: Iterable[int] = ()
        if isinstance(node.attribute, View):
            moving = (row[axis] for row in node.attribute.steps for axis in axes)
        elif node.operation is Operation.INDEX and isinstance(node.attribute, tuple):
            moving = (node.attribute[1 + axis] for axis in axes if node.sizes)
        elif node.operation in IN_MEMORY:
            moving = (node.sizes[axis] - 1 for axis in axes)
        if any(moving):
            return True
    return False


def bounded_axes(kernel: Kernel, uniform: Container[int]) -> list[int]:
    """Return the loads that are positions along the axes for which all reductions of a kernel have bounds.

    There are none if all loads are in order: reading memory then takes less time than ending a loop.

    Args:
        kernel: the kernel.
        uniform: the loads of which bounds may be made; they do not vary along the axes.
    """
    nodes = ordered(kernel.values) if _NEUTRAL.keys() & operations_of(kernel.values) else []
    # A load at computed distances has a guard and these.
    if not any(node.operation is Operation.SOURCE and len(node.operands) > 1 for node in nodes):
        return []
    common: set[int] | None = None
    for node in nodes:
        if node.operation in REDUCTIONS:
            found = {
                number_of(position)
                for position, bound in bounds_of(node)
                if _is_steady(bound, kernel, uniform)
            }
            common = found if common is None else common & found
    return sorted(number for number in common or () if _is_position(kernel.loads[number], kernel.axes))


def _is_position(load: Access, axes: Container[int]) -> bool:
    """Return whether a load is the position along one of the axes."""
    moving = [axis for axis, stride in enumerate(load.strides) if stride]
    counts = load.buffer is None and load.offset == 0 and len(moving) == 1
    return counts and load.strides[moving[0]] == 1 and moving[0] in axes


def _is_steady(bound: Node, kernel: Kernel, uniform: Container[int]) -> bool:
    """Return whether a value is the same for all elements of a group, and needs no reduction."""
    for node in ordered([bound]):
        if node.operation in REDUCTIONS:
            return False
        if node.operation is Operation.SOURCE:
            number = number_of(node)
            if number not in uniform or any(kernel.loads[number].strides[axis] for axis in kernel.axes):
                return False
    return True


def _converted(node: Node) -> Node:
    return node.operands[0] if node.operation is Operation.CONVERT else node
