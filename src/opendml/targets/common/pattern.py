"""The properties of a kernel that decide its code on any target, apart from sizes, strides and addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, fields, is_dataclass
from enum import Enum, IntEnum
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, Generic, TypeVar

from opendml.compiler.kernel import fingerprint, number_of
from opendml.late_dataclass import light_dataclass
from opendml.program.node import PLACINGS, REDUCTIONS, SCANS, Node, Operation, ordered
from opendml.program.scalar_type import ScalarType


class Level(IntEnum):
    """The loops with which a value changes. A value has the highest level of its operands.

    A target places the loads of groups at GIVEN or at GROUP, as its kernels walk them.
    """

    CONSTANT = 0
    TILE = 1
    """With groups, but the same for neighbouring groups that share a vector."""
    GIVEN = 2
    """With the group, known before its reductions."""
    STATISTIC = 3
    """With the group, computed from its reductions."""
    GROUP = 4
    """With the group, loaded where its reductions are used."""
    ROW = 5
    """With the row of a group."""
    ELEMENT = 6


def levels_of(
    nodes: Sequence[Node], loads: Sequence[Level], lanes_over_groups: bool = False
) -> dict[int, Level]:
    """Return the levels of nodes by identity.

    Args:
        nodes: all nodes of a kernel, operands first.
        loads: the level of each load.
        lanes_over_groups: whether neighbouring lanes of the innermost loop work on different groups. A value
            of a group and a row then changes with every element.
    """
    levels: dict[int, Level] = {}
    for node in nodes:
        below = {levels[id(operand)] for operand in node.operands}
        if node.operation is Operation.SOURCE:
            below.add(loads[number_of(node)])
        if node.operation in REDUCTIONS:
            levels[id(node)] = Level.STATISTIC
        elif node.operation in SCANS | PLACINGS or (
            lanes_over_groups and Level.ROW in below and below & {Level.STATISTIC, Level.GROUP}
        ):
            levels[id(node)] = Level.ELEMENT
        else:
            levels[id(node)] = max(below, default=Level.CONSTANT)
    return levels


class Step(Enum):
    """The move of an access along the innermost loop."""

    NONE = "none"
    CONTIGUOUS = "contiguous"
    DOUBLE = "double"
    """Every other element."""
    STRIDED = "strided"
    ACROSS = "across"
    """Strided, but contiguous along the row loop."""
    FLAT = "flat"
    """Contiguous along the rows and the innermost loop together."""
    BROKEN = "broken"
    """Not at all, but from row to row, while units run over the ends of rows."""


@light_dataclass(frozen=True, slots=True)
class AccessPattern:
    """One load or store as the code sees it. A `counter` is a load whose value is its own offset."""

    type: ScalarType
    step: Step
    counter: bool = field(default=False, kw_only=True)


Mode = TypeVar("Mode", bound=Enum)
Access = TypeVar("Access", bound=AccessPattern)


@light_dataclass(frozen=True, slots=True)
class KernelPattern(Generic[Mode, Access]):
    """A pattern of kernels. Kernels of equal pattern share one function.

    A target derives its pattern, and adds what else decides its code. `mode` is the way in which the code
    walks the domain.
    """

    mode: Mode
    loads: tuple[Access, ...]
    stores: tuple[Access, ...]
    values: tuple[Node, ...]

    @property
    def accesses(self) -> tuple[Access, ...]:
        """Loads, then stores."""
        return (*self.loads, *self.stores)

    @property
    def numbers(self) -> int:
        """The count of numbers that launches give to the values."""
        return _count_of_numbers(self.values)

    def text(self) -> str:
        """Return a text that is equal for patterns with equal code."""
        known = _texts.get(id(self))
        if known is None:
            if len(_texts) >= _MOST_TEXTS:
                _texts.clear()
            known = _texts[id(self)] = self, key_text(self)
        return known[1]


@lru_cache(maxsize=1024)
def _count_of_numbers(values: tuple[Node, ...]) -> int:
    """Return the count of numbers in some values. It is found once for all sizes of a kernel."""
    return sum(node.operation is Operation.PARAMETER for node in ordered(values))


_MOST_TEXTS = 4096
_texts: dict[int, tuple[KernelPattern[Any, Any], str]] = {}
"""Texts by the identities of patterns, which they keep alive. A hash of a pattern would walk all of it."""


def key_text(value: object) -> str:
    """Return a text of plain frozen data that is equal for equal data.

    Graphs are equal whatever their sizes.
    """
    kind: Any = type(value)
    return _text_for(kind)(value)


@cache
def _text_for(kind: type[Any]) -> Callable[[Any], str]:
    """Return the function that returns the text of data of a class."""
    if issubclass(kind, tuple):
        return _text_of_tuple
    if issubclass(kind, Enum):
        return attrgetter("_name_")  # `name` is a descriptor, which takes ten times as long.
    if not is_dataclass(kind):
        return repr
    names = [each.name for each in fields(kind)]
    if len(names) < 2:
        return lambda value: (
            f"{kind.__name__}({', '.join([key_text(getattr(value, each)) for each in names])})"
        )
    values = attrgetter(*names)

    def text(value: Any) -> str:
        return f"{kind.__name__}({', '.join(map(key_text, values(value)))})"

    # Kernels have few kinds of accesses.
    return lru_cache(maxsize=1024)(text) if issubclass(kind, AccessPattern) else text


def _text_of_tuple(value: tuple[Any, ...]) -> str:
    if value and isinstance(value[0], Node):
        return fingerprint(value)
    if len(value) > 1 and set(map(type, value)) == {int}:
        return tuple.__repr__(value)
    return f"({', '.join(map(key_text, value))})"
