"""Enumerations whose members read as their names in texts, and are numbers everywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, IntFlag

_NUMBERS = frozenset("bcdoxXneEfFgG%")
"""The types of format specifications that are for numbers."""


class _Named:
    """Text as a name. A format specification for numbers, such as "x", formats the value."""

    name: str
    value: int

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(self.value if spec[-1:] in _NUMBERS else str(self), spec)


class Enumeration(_Named, IntEnum):
    """One of several values, which has DirectML's number."""


class Flags(_Named, IntFlag):
    """A combination of values: "A|B"; that of none is called NONE, numbers that are no flags stay such."""

    def __str__(self) -> str:
        return str(self.value) if self.name is None else self.name


def named_members(name: str, values: Mapping[str, int]) -> dict[str, int]:
    """Return the members of an enumeration of `enums.json`. Those of FEATURE_LEVEL begin with a letter."""
    prefix = "LEVEL_" if name == "FEATURE_LEVEL" else ""
    return {prefix + member: value for member, value in values.items()}
