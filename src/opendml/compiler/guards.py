"""Leaves out guards that hold everywhere: what is seen through a window or a view is often inside wherever it
is."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.program.node import Node, Operation, View, constant, ordered, rebuild
from opendml.program.scalar_type import ScalarType
from opendml.program.view import is_whole


def without_idle_guards(roots: Sequence[Node]) -> tuple[Node, ...]:
    """The program without conditions on indices that always hold."""
    if not any(isinstance(node.attribute, View) for node in ordered(roots)):
        return tuple(roots)
    return rebuild(roots, _without)


def _without(node: Node) -> Node:
    operands = node.operands
    match node.operation:
        case Operation.LESS if _always_less(node):
            return constant(1, ScalarType.BOOLEAN)
        case Operation.AND if node.type is ScalarType.BOOLEAN:
            left = [each for each in operands if not _is_true(each)]
            # What is left may repeat along a dimension, as operands may.
            return node if len(left) == 2 else left[0] if left else operands[0]
        case Operation.SELECT if _is_true(operands[0]) and operands[1].sizes == node.sizes:
            return operands[1]
        case Operation.VIEW if isinstance(node.attribute, View) and not node.attribute.indexed:
            if len(operands) == 2 and _is_true(operands[1]):
                value = operands[0]
                if is_whole(node.attribute, value.sizes) and value.sizes == node.sizes:
                    return value
                return Node(node.operation, node.type, node.sizes, (value,), node.attribute)
    return node


def _is_true(node: Node) -> bool:
    return node.operation is Operation.CONSTANT and node.attribute == 1 and node.type is ScalarType.BOOLEAN


def _always_less(node: Node) -> bool:
    """Whether an unsigned count stays below a number, as those of guards do."""
    counted, bound = node.operands
    if counted.operation is not Operation.INDEX or bound.operation is not Operation.INDEX or bound.sizes:
        return False
    if counted.type not in (ScalarType.UINT32, ScalarType.UINT64):
        return False
    assert isinstance(counted.attribute, tuple)
    assert isinstance(bound.attribute, tuple)
    first, *steps = counted.attribute
    reaches = [step * (size - 1) for step, size in zip(steps, counted.sizes, strict=bool(steps))]
    least, most = first + sum(min(each, 0) for each in reaches), first + sum(max(each, 0) for each in reaches)
    return least >= 0 and most < bound.attribute[0]
