"""Bounds of polynomials over sizes, by interval arithmetic over the bounds of their atoms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from opendml.program.atoms import Atom, AtomValues, Dimension, Relation
from opendml.program.polynomials import (
    Interval,
    Monomial,
    Polynomial,
    constant_polynomial,
    plain_value,
    polynomial_sum,
    product_range,
    quotient_range,
    scaled,
)

_MOST_TERMS = 4
"""Terms of a polynomial whose quotients are eliminated for its bounds, at most."""


class Ranges:
    """The bounds of polynomials for all sizes of the dimensions.

    Args:
        atoms: all atoms of the polynomials.
        dimensions: the dimensions by name.
        outer: bounds of atoms that hold too, by their numbers.

    Attributes:
        atoms: the bounds of atoms, by their numbers.
    """

    def __init__(
        self, atoms: Sequence[Atom], dimensions: Mapping[str, Dimension], outer: Mapping[int, Interval]
    ) -> None:
        self._all, self._dimensions, self._outer = atoms, dimensions, outer
        self.atoms = AtomValues(atoms, self._of_atom)
        self._known: dict[Polynomial, Interval] = {}

    def found(self) -> dict[int, Interval]:
        """Return the bounds of atoms that are known so far, by their numbers."""
        return {**self._outer, **self.atoms}

    def _of_atom(self, number: int) -> Interval:
        """Return the range of an atom."""
        atom = self._all[number]
        if atom.above is None:
            dimension = self._dimensions[atom.name]
            first, last = dimension.least, dimension.greatest
        elif atom.below is None:
            first, last = self.of(atom.above)
            first, last = max(first, 0), max(last, 0)
        else:
            first, last = quotient_range(self.of(atom.above), self.of(atom.below))
        least, greatest = self._outer.get(number, (first, last))
        if max(first, least) <= min(last, greatest):
            return max(first, least), min(last, greatest)
        return first, last

    def of(self, polynomial: Polynomial) -> Interval:
        """Return bounds of the values of a polynomial."""
        known = self._known.get(polynomial)
        if known is None:
            known = self._known[polynomial] = self._find(polynomial)
        return known

    def _find(self, polynomial: Polynomial) -> Interval:
        least, greatest = self._bounds(polynomial)
        if len(polynomial) < 2:
            return least, greatest
        if any(len(monomial) > 1 for monomial, _ in polynomial):
            before, after = self._bounds_from_least(polynomial)
            least, greatest = max(least, before), min(greatest, after)
        if len(polynomial) <= _MOST_TERMS and (cases := self._cases(polynomial)) is not None:
            # The polynomial is the greater or the lesser one of two others.
            one, other, chosen = self.of(cases[0]), self.of(cases[1]), cases[2]
            least, greatest = max(least, chosen(one[0], other[0])), min(greatest, chosen(one[1], other[1]))
        if least <= 0 <= greatest and len(polynomial) <= _MOST_TERMS:
            if (below := self._eliminated(polynomial)) is not None:
                least = max(least, -(-self.of(below[0])[0] // below[1]))
            if (above := self._eliminated(scaled(polynomial, -1))) is not None:
                greatest = min(greatest, self.of(above[0])[0] // -above[1])
        return least, greatest

    def _cases(
        self, polynomial: Polynomial
    ) -> tuple[Polynomial, Polynomial, Callable[[int, int], int]] | None:
        """Return two polynomials of which one is the greater or the lesser, and `max` or `min`.

        They replace the last maximum in it by its operands.
        """
        for monomial, coefficient in reversed(polynomial):
            atom = self._all[monomial[0]] if len(monomial) == 1 else None
            if atom is not None and atom.above is not None and atom.below is None:
                rest = polynomial_sum(polynomial, ((monomial, -coefficient),))
                other = polynomial_sum(rest, scaled(atom.above, coefficient))
                return rest, other, max if coefficient > 0 else min
        return None

    def _eliminated(self, polynomial: Polynomial) -> tuple[Polynomial, int] | None:
        """Return a lower bound of a polynomial without its last quotient: a polynomial over an integer.

        A quotient by d lies between (above - d + 1) / d and above / d.
        """
        for monomial, coefficient in reversed(polynomial):
            atom = self._all[monomial[0]] if len(monomial) == 1 else None
            if atom is None or atom.above is None:
                continue
            divisor, added = 1, 0
            if atom.below is not None:
                divisor = plain_value(atom.below)
                added = 1 - divisor if coefficient > 0 else 0
            elif coefficient < 0:
                continue
            if divisor < 1:
                continue
            rest = polynomial_sum(polynomial, ((monomial, -coefficient),))
            bound = scaled(polynomial_sum(atom.above, constant_polynomial(added)), coefficient)
            return polynomial_sum(scaled(rest, divisor), bound), divisor
        return None

    def _bounds(self, polynomial: Polynomial) -> Interval:
        """Return the sum of the bounds of all terms."""
        least = greatest = 0
        for monomial, coefficient in polynomial:
            low = high = coefficient
            for atom in monomial:
                first, last = self.atoms[atom]
                if first >= 0:
                    low, high = low * (first if low >= 0 else last), high * (last if high >= 0 else first)
                else:
                    low, high = product_range((low, high), (first, last))
            least, greatest = least + low, greatest + high
        return least, greatest

    def _bounds_from_least(self, polynomial: Polynomial) -> Interval:
        """Return the bounds of a polynomial whose atoms are counted from their least values.

        Then terms of one sign bound those of the other. If all terms are linear, these are `_bounds`.
        """
        start, terms = 0, dict[Monomial, int]()
        for monomial, coefficient in polynomial:
            if len(monomial) == 2:  # The most frequent ones.
                one, other = monomial
                first, second = self.atoms[one][0], self.atoms[other][0]
                start += coefficient * first * second
                terms[one,] = terms.get((one,), 0) + coefficient * second
                terms[other,] = terms.get((other,), 0) + coefficient * first
                terms[monomial] = terms.get(monomial, 0) + coefficient
                continue
            own: dict[Monomial, int] = {(): coefficient}
            for atom in monomial:
                first = self.atoms[atom][0]
                shifted = {key: value * first for key, value in own.items()} if first else {}
                for key, value in own.items():
                    longer = tuple(sorted((*key, atom)))
                    shifted[longer] = shifted.get(longer, 0) + value
                own = shifted
            for key, value in own.items():
                if key:
                    terms[key] = terms.get(key, 0) + value
                else:
                    start += value
        before = after = start
        for monomial, coefficient in terms.items():
            reach = coefficient
            for atom in monomial:
                first, last = self.atoms[atom]
                reach *= last - first
            if reach < 0:
                before += reach
            else:
                after += reach
        return before, after

    def narrow(self, relation: Relation, polynomial: Polynomial) -> None:
        """Narrow the range of an atom by a guard that is linear in it alone."""
        monomial, factor = polynomial[-1]
        if len(monomial) != 1 or len(polynomial) > 2 or (len(polynomial) == 2 and polynomial[0][0]):
            return
        constant = polynomial[0][1] if len(polynomial) == 2 else 0
        least, greatest = self.atoms[monomial[0]]
        if relation is Relation.NOT_NEGATIVE and factor > 0:
            least = max(least, -(constant // factor))
        elif relation is Relation.NOT_NEGATIVE:
            greatest = min(greatest, constant // -factor)
        elif constant % factor:
            return
        elif relation is Relation.ZERO:
            least = greatest = -constant // factor
        else:
            value = -constant // factor
            least, greatest = least + (value == least), greatest - (value == greatest)
        if (least, greatest) != self.atoms[monomial[0]]:
            self.atoms[monomial[0]] = least, greatest
            self._known.clear()
