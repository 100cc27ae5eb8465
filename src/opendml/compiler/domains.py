"""The iteration domain of a kernel, and the nodes that it reduces or scans there."""

from __future__ import annotations

from collections.abc import Container, Iterable

from opendml.late_dataclass import dataclass
from opendml.program.node import COLLECTIVE, PLACINGS, REDUCTIONS, SCANS, Node, Operation, broadcast, ordered


@dataclass(frozen=True, slots=True)
class IterationDomain:
    """The sizes over which a kernel runs, and its `own` reductions or scans over axes of these.

    `others` are those that the kernel needs and cannot compute there.
    """

    sizes: tuple[int, ...]
    axes: tuple[int, ...] = ()
    own: tuple[Node, ...] = ()
    others: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Except:
    """A view of a container without one key."""

    keys: Container[int]
    left_out: int

    def __contains__(self, key: object) -> bool:
        return key != self.left_out and key in self.keys


def iteration_domain(root: Node, nodes: Iterable[Node]) -> IterationDomain:
    """Return the domain of the kernel that stores `root` and computes `nodes`, operands first.

    The domain has the sizes of the root. If the root is made of reductions to these sizes, the domain has the
    sizes of what they reduce.
    """
    inside = [node for node in nodes if node.operation in COLLECTIVE]
    over = [node for node in inside if operand_sizes(node) == root.sizes]
    to = [node for node in inside if node.sizes == root.sizes]
    candidates = [root] if root in inside else over or to
    if not candidates:
        return IterationDomain(root.sizes, others=tuple(inside))
    last = candidates[-1]
    sizes = operand_sizes(last)
    placed = _counted(last)
    if placed is not None:
        counts = [node for node in inside if _counted(node) is placed]
        is_both = placed in ordered([root], set(map(id, counts)))
        own = [placed] if is_both else [placed, *counts]
    elif last.operation in _ALONE:
        own = [last]
    else:
        own = [
            node
            for node in inside
            if node.operation in _TOGETHER
            and node.attribute == last.attribute
            and operand_sizes(node) == sizes
        ]
    kept = set(map(id, own))
    others = tuple(node for node in inside if id(node) not in kept)
    return IterationDomain(sizes, _axes(own[0]), tuple(own), others)


def _counted(node: Node) -> Node | None:
    """Return the POSITIONS whose number a node is: the kernel of these counts them anyway."""
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
"""A kernel has one of these, and reduces or scans nothing else but the number of POSITIONS."""
_TOGETHER = REDUCTIONS - _ALONE


def operand_sizes(node: Node) -> tuple[int, ...]:
    """Return the sizes that a reduction or scan goes through."""
    return broadcast([operand.sizes for operand in moving_operands(node)])


def moving_operands(node: Node) -> tuple[Node, ...]:
    """Return the operands of a reduction or scan that its kernel goes through.

    The third operand of a SCATTER_LAST has the sizes of the result instead.
    """
    return node.operands[:2] if node.operation is Operation.SCATTER_LAST else node.operands


def _axes(node: Node) -> tuple[int, ...]:
    """Return the axes that a node reduces or scans, or along which it places."""
    if not isinstance(node.attribute, tuple):
        raise TypeError(f"{node} has no axes")
    if node.operation in PLACINGS:
        return node.attribute[:-1]
    return node.attribute[:1] if node.operation in SCANS else node.attribute
