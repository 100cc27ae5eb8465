"""The properties of a kernel that decide its code on any target: how values change and accesses move."""

from __future__ import annotations

from enum import Enum, IntEnum


class Level(IntEnum):
    """The loops with which a value changes. A value has the highest level of its operands.

    A target whose lanes run over groups or within them places its group loads at GIVEN or at GROUP.
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
