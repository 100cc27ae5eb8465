"""The domain of the kernel that computes a node, and what it reduces or scans there."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from opendml.program.node import (
    COLLECTIVE,
    PLACINGS,
    REDUCTIONS,
    SCANS,
    Node,
    Operation,
    broadcast,
    ordered,
)


@dataclass(frozen=True, slots=True)
class Home:
    """The sizes over which a kernel runs, and the nodes that it reduces or scans, all over the same axes;
    `others` are those that it needs and cannot compute there."""

    domain: tuple[int, ...]
    axes: tuple[int, ...] = ()
    own: tuple[Node, ...] = ()
    others: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Except:
    """All keys of a container but one."""

    keys: Container[int]
    left_out: int

    def __contains__(self, key: object) -> bool:
        return key != self.left_out and key in self.keys


def home_of(root: Node, nodes: Iterable[Node]) -> Home:
    """The domain of the kernel of `root`, of the `nodes` that it needs without going through memory: its own
    sizes or, if it is made of reductions to them, what these reduce."""
    inside = [node for node in nodes if node.operation in COLLECTIVE]
    over = [node for node in inside if domain_of(node) == root.sizes]
    to = [node for node in inside if node.sizes == root.sizes]
    candidates = [root] if root in inside else over or to
    if not candidates:
        return Home(root.sizes, others=tuple(inside))
    last = candidates[-1]
    domain = domain_of(last)
    placed = _counted(last)
    if placed is not None:
        counts = [node for node in inside if _counted(node) is placed]
        is_both = placed in ordered([root], set(map(id, counts)))
        return _alone(domain, [placed] if is_both else [placed, *counts], inside)
    if last.operation in _ALONE:
        return _alone(domain, [last], inside)
    own: list[Node] = []
    others: list[Node] = []
    for node in inside:
        fits = node.operation in _TOGETHER and node.attribute == last.attribute and domain_of(node) == domain
        (own if fits else others).append(node)
    return Home(domain, _axes(last), tuple(own), tuple(others))


def _alone(domain: tuple[int, ...], own: Sequence[Node], inside: Iterable[Node]) -> Home:
    """Of the nodes `inside`, a kernel has these, the first of which is of those that are alone."""
    return Home(domain, _axes(own[0]), tuple(own), tuple(node for node in inside if node not in own))


def _counted(node: Node) -> Node | None:
    """The POSITIONS of which a node is the number: their kernel has it anyway."""
    is_sum = node.operation is Operation.SUM and not node.type.is_float
    if not is_sum or node.operands[0].operation is not Operation.CONVERT:
        return None
    (value,) = node.operands[0].operands
    if value.operation is not Operation.LESS_EQUAL:
        return None
    zero, placed = value.operands
    is_least = zero.operation is Operation.CONSTANT and zero.attribute == 0
    if not is_least or placed.operation is not Operation.POSITIONS or node.attribute != _axes(placed):
        return None
    return placed


_ALONE = SCANS | PLACINGS | {Operation.CONTRACTION}
"""Of these a kernel has one, and nothing else that it reduces or scans but the number of POSITIONS."""
_TOGETHER = REDUCTIONS - _ALONE


def domain_of(node: Node) -> tuple[int, ...]:
    """What a reduction or scan goes through."""
    return broadcast([operand.sizes for operand in moving_operands(node)])


def moving_operands(node: Node) -> tuple[Node, ...]:
    """The operands of a reduction or scan that its kernel goes through: what a SCATTER_LAST leaves as it is
    has the sizes of the result."""
    return node.operands[:2] if node.operation is Operation.SCATTER_LAST else node.operands


def _axes(node: Node) -> tuple[int, ...]:
    """The axes that a node reduces or scans, or along which it places."""
    if not isinstance(node.attribute, tuple):
        raise TypeError(f"{node} has no axes")
    if node.operation in PLACINGS:
        return node.attribute[:-1]
    return node.attribute[:1] if node.operation in SCANS else node.attribute
