"""The operations along lines, scans and placings, as all targets read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from opendml.compiler.domains import moving_operands
from opendml.compiler.kernel import placing_of
from opendml.late_dataclass import dataclass
from opendml.program.node import SCANS, Node, Operation, apply, ordered, source
from opendml.program.scalar_type import ScalarType

POSITION = ScalarType.UINT32
"""The type of positions in words that are sorted."""


@dataclass(frozen=True, slots=True)
class LineScan:
    """The one scan of a kernel. If `exclusive`, a result leaves out its own element. If `reverse`, the scan
    begins at the last element."""

    node: Node
    exclusive: bool
    reverse: bool


@dataclass(frozen=True, slots=True)
class LinePlacing:
    """The one placing of a kernel.

    Attributes:
        node: the node.
        operands: its operands that move along a line.
        before: the earlier values of the results, if the kernel computes them. Else they lie in memory.
        count: the places of a line, or the elements that are wanted of it.
    """

    node: Node
    operands: tuple[Node, ...]
    before: tuple[Node, ...]
    count: int


def scan_in(values: Iterable[Node]) -> LineScan:
    """Return the scan of a kernel that scans."""
    (node,) = (node for node in ordered(values) if node.operation in SCANS)
    assert isinstance(node.attribute, tuple)
    _, exclusive, reverse = node.attribute
    return LineScan(node, bool(exclusive), bool(reverse))


def placing_in(values: Sequence[Node]) -> LinePlacing:
    """Return the placing of a kernel that places."""
    node = placing_of(values)
    assert node is not None
    assert isinstance(node.attribute, tuple)
    operands = moving_operands(node)
    return LinePlacing(node, operands, node.operands[len(operands) :], node.attribute[-1])


@lru_cache
def word_is_less(key: ScalarType) -> Node:
    """Return whether a word comes before another: a graph over the key and the position of both.

    Words with lesser keys come first, words of equal keys in the order of their positions. No two words of
    different elements are equal, so every way to sort them gives the same result.
    """
    mine, position, other, other_position = (
        source(number, type) for number, type in enumerate((key, POSITION, key, POSITION))
    )
    is_same = apply(Operation.EQUAL, mine, other)
    return apply(Operation.OR, mine < other, apply(Operation.AND, is_same, position < other_position))
