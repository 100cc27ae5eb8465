"""Atoms of polynomials over sizes: dimensions, quotients and maxima."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TypeVar

from opendml.late_dataclass import dataclass
from opendml.program.polynomials import Polynomial

GREATEST = 2**31 - 1
"""The greatest size of a dimension, unless its range says another."""
LEAST_TRACED = 2
"""The least hint. A size of 0 means no elements, and operators repeat dimensions of 1."""
Value = TypeVar("Value")


class Relation(Enum):
    """The demand of a guard on an expression."""

    NOT_NEGATIVE = 0
    ZERO = 1
    NOT_ZERO = 2

    __hash__ = object.__hash__  # That of `Enum` is a function in Python.


def meets(relation: Relation, number: float) -> bool:
    """Return whether a plain number meets a relation. NaN meets none."""
    if relation is Relation.NOT_NEGATIVE:
        return number >= 0
    return number == 0 if relation is Relation.ZERO else number == number and number != 0


@dataclass(frozen=True, slots=True)
class Dimension:
    """The size of a named dimension.

    Args:
        hint: its value in the run that is traced.
        least, greatest: the values for which the trace may be used. A size of 0 has a trace of its own.
    """

    hint: int
    least: int = LEAST_TRACED
    greatest: int = GREATEST


@dataclass(frozen=True, slots=True)
class Atom:
    """A dimension, the quotient of two polynomials, rounded down, or the greater of a polynomial and 0.

    Args:
        name: the dimension, or the other atoms as text.
        above: the polynomial that is divided, or compared with 0; None: a dimension.
        below: the divisor; None: no quotient.
    """

    name: str
    above: Polynomial | None = None
    below: Polynomial | None = None


class AtomValues(dict[int, Value]):
    """Values of atoms by their numbers. Each is found when it is first needed, after those of its parts.

    A trace keeps the atoms of all plans. Most are not needed for the next one.

    Args:
        atoms: all atoms. The parts of an atom come before it.
        find: returns the value of an atom by its number, given those of its parts.
    """

    def __init__(self, atoms: Sequence[Atom], find: Callable[[int], Value]) -> None:
        super().__init__()
        self._atoms, self._find = atoms, find

    def __missing__(self, number: int) -> Value:
        pending = [number]  # Expressions may be nested more deeply than calls.
        while pending:
            atom = self._atoms[pending[-1]]
            parts = (*(atom.above or ()), *(atom.below or ()))
            missing = [each for monomial, _ in parts for each in monomial if each not in self]
            if missing:
                pending += missing
            else:
                number = pending.pop()
                self[number] = self._find(number)
        return self[number]
