"""The table of docs/deviations.md: where DirectML's rules demand another result than a peer gives."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from opendml.runtime.memory.host_array import Array

TABLE = Path(__file__).parents[2] / "docs" / "deviations.md"


class Row(NamedTuple):
    """One line of the table."""

    operators: str
    where: str
    peers: str
    here: str
    there: str
    reason: str


Correction = Callable[..., Array]
"""From the peer's result and the inputs to DirectML's result, or from inputs to those where both agree."""

used: set[tuple[str, str]] = set()
"""Operator and place of every deviation that a test names."""


@cache
def rows() -> list[Row]:
    """The table's lines."""
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines[2:]]


def deviation(operator: str, where: str, correction: Correction) -> Correction:
    """A correction that the table has a line for.

    Raises:
        KeyError: it has none.
    """
    if not any(where == row.where and operator in names(row) for row in rows()):
        raise KeyError(f"{TABLE.name} has no line for {operator} at {where}")
    used.add((operator, where))
    return correction


def names(row: Row) -> list[str]:
    """The operators of a line."""
    return [name.strip(" `") for name in row.operators.split(",")]
