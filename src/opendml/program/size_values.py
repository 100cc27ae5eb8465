"""Compute traced sizes and check guards for given dimensions, all together in a few vectorized steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from opendml.program.polynomials import Monomial, Polynomial, constant_polynomial
from opendml.program.sizes import Atom, Relation, Size, TracedFloat, TracedWord

_OVERFLOW = 2.0**62
"""The magnitude that no term of an expression may reach, as they are computed with 64 bits."""


class Values:
    """Expressions that are computed together for given dimensions.

    The arithmetic is stored as arrays: monomials by their atoms, and terms by monomial and coefficient. Atoms
    that are computed lie in levels, each of which needs only atoms of lower levels.

    Args:
        sizes: sizes of one trace, words, and plain integers.
    """

    def __init__(self, sizes: Iterable[int]) -> None:
        values = list(sizes)
        self._words = [(position, each) for position, each in enumerate(values) if type(each) is TracedWord]
        self._inner = list(dict.fromkeys(size for _, word in self._words for size in word.number.sizes()))
        sizes = [*[0 if type(each) is TracedWord else each for each in values], *self._inner]
        traced = [each for each in sizes if type(each) is Size]
        unique: dict[Polynomial, int] = {}
        own = [each.polynomial if type(each) is Size else constant_polynomial(int(each)) for each in sizes]
        self._gather = np.array([unique.setdefault(each, len(unique)) for each in own], np.intp)
        atoms = traced[0].trace.atoms if traced else []
        levels, order = _levels_of(atoms, unique)
        self.names = tuple([atoms[number].name for number in order if atoms[number].above is None])
        self._steps = [
            (
                _Terms([_numbered(atoms[number].above or (), order) for number in level]),
                _Terms([_numbered(atoms[number].below or (), order) for number in level]),
                np.array([atoms[number].below is None for number in level]),
            )
            for level in levels
        ]
        self._last = _Terms([_numbered(polynomial, order) for polynomial in unique])

    def __call__(self, dimensions: Mapping[str, int]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the values for dimensions by name, in the order of the sizes.

        Raises:
            OverflowError: a term needs more than 62 bits.
        """
        atoms = np.array([1, *[dimensions[name] for name in self.names]], np.int64)
        for first, second, are_compared in self._steps:
            above, divisors = first(atoms), second(atoms)
            # A guard of its own refuses a divisor of 0.
            quotients = above // np.where(divisors == 0, 1, divisors)
            atoms = np.concatenate([atoms, np.where(are_compared, np.maximum(above, 0), quotients)])
        values = self._last(atoms)[self._gather]
        if self._words:
            count = len(values) - len(self._inner)
            inner = dict(zip(self._inner, values[count:].tolist(), strict=True))
            values = values[:count]
            for position, word in self._words:
                values[position] = word.bits_of(word.number.value(inner))
        return values


class _Terms:
    """Polynomials over numbered atoms, of which number 0 is 1."""

    def __init__(self, polynomials: Sequence[Polynomial]) -> None:
        monomials: dict[Monomial, int] = {}
        starts, terms, coefficients = list[int](), list[int](), list[int]()
        for polynomial in polynomials:
            starts.append(len(terms))
            for monomial, coefficient in polynomial or (((), 0),):
                terms.append(monomials.setdefault(monomial, len(monomials)))
                coefficients.append(coefficient)
        width = max(map(len, monomials), default=0) or 1
        padded = [(*monomial, *[0] * (width - len(monomial))) for monomial in monomials]
        self._factors = np.array(padded, np.intp).reshape(-1, width).T.copy()
        self._starts, self._terms = np.array(starts, np.intp), np.array(terms, np.intp)
        self._coefficients = np.array(coefficients, np.int64)

    def __call__(self, atoms: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
        if not len(self._starts):
            return np.empty(0, np.int64)
        factors = atoms[self._factors]
        magnitudes = np.abs(factors.astype(np.float64).prod(axis=0)[self._terms] * self._coefficients)
        if np.add.reduceat(magnitudes, self._starts).max() >= _OVERFLOW:
            raise OverflowError("a size needs more than 62 bits")
        return np.add.reduceat(factors.prod(axis=0)[self._terms] * self._coefficients, self._starts)


class Conditions:
    """Guards that are checked together for given dimensions.

    Args:
        guards: the guards.
        others: sizes of the same trace and plain integers that are computed in the same pass.
    """

    def __init__(
        self, guards: Iterable[tuple[Relation, Size | TracedFloat]], others: Iterable[int] = ()
    ) -> None:
        guards = list(guards)
        ordered = sorted(
            [(relation, each) for relation, each in guards if type(each) is Size],
            key=lambda each: each[0].value,
        )
        self._numbers = [(relation, each) for relation, each in guards if type(each) is TracedFloat]
        self._inner = list(dict.fromkeys(size for _, number in self._numbers for size in number.sizes()))
        self._values = Values([*[size for _, size in ordered], *self._inner, *others])
        counts = [sum(each is relation for each, _ in ordered) for relation in Relation]
        self._ends = counts[0], counts[0] + counts[1], sum(counts), sum(counts) + len(self._inner)

    def __call__(self, dimensions: Mapping[str, int]) -> bool:
        """Return whether the dimensions meet all guards, and no guard needs more than 62 bits."""
        return self.values(dimensions) is not None

    def values(self, dimensions: Mapping[str, int]) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        """Return the values of the others; None if the dimensions do not meet all guards, or a value needs
        more than 62 bits."""
        try:
            values = self._values(dimensions)
            first, second, third, fourth = self._ends
            if (values[:first] < 0).any() or values[first:second].any() or not values[second:third].all():
                return None
            if self._numbers:
                inner = dict(zip(self._inner, values[third:fourth].tolist(), strict=True))
                if not all(_meets(relation, number.value(inner)) for relation, number in self._numbers):
                    return None
        except ArithmeticError:
            return None
        return values[fourth:]


def _meets(relation: Relation, value: float) -> bool:
    if relation is Relation.NOT_NEGATIVE:
        return value >= 0
    return value == 0 if relation is Relation.ZERO else value == value and value != 0


def _levels_of(atoms: Sequence[Atom], unique: Iterable[Polynomial]) -> tuple[list[list[int]], dict[int, int]]:
    """Return the atoms that polynomials need and compute, in levels, and new numbers of all from 1 on."""

    def inner(number: int) -> list[int]:
        polynomials = (atoms[number].above or (), atoms[number].below or ())
        return [atom for polynomial in polynomials for monomial, _ in polynomial for atom in monomial]

    needed: set[int] = set()
    pending = [atom for polynomial in unique for monomial, _ in polynomial for atom in monomial]
    while pending:
        number = pending.pop()
        if number not in needed:
            needed.add(number)
            pending += inner(number)
    depth: dict[int, int] = {}
    levels: dict[int, list[int]] = {}
    # An atom follows those that it is made of.
    for number in sorted(needed):
        below = max([depth[atom] for atom in inner(number)], default=0)
        depth[number] = 0 if atoms[number].above is None else below + 1
        levels.setdefault(depth[number], []).append(number)
    order = [number for level in sorted(levels) for number in levels[level]]
    numbered = {number: position for position, number in enumerate(order, 1)}
    return [levels[level] for level in sorted(levels) if level], numbered


def _numbered(polynomial: Polynomial, order: Mapping[int, int]) -> Polynomial:
    return tuple([(tuple([order[atom] for atom in monomial]), c) for monomial, c in polynomial])
