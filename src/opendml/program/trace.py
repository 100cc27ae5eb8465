"""Traces: dimensions of sizes, and the guards under which what is made from these sizes is right."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import get_ident
from typing import Any

from opendml.locked import Locked
from opendml.program.atoms import Atom, AtomValues, Dimension, Relation, meets
from opendml.program.polynomials import (
    Interval,
    Polynomial,
    constant_polynomial,
    divided,
    from_terms,
    never_zero,
    plain_value,
    polynomial_sum,
    scaled,
    without,
)
from opendml.program.ranges import Ranges
from opendml.program.size_values import Evaluation, SizeTable
from opendml.program.sizes import NotServedError, Size, is_met
from opendml.program.traced_floats import TracedFloat

Answers = dict[tuple[Relation, Polynomial | None], bool]
"""The results of comparisons of sizes. A comparison of floats has no polynomial."""
Guards = dict[tuple[Relation, Size | TracedFloat], str]
"""Guards, and where in the code each was recorded first."""
_OF_BLOCK = (
    "dimensions",
    "guards",
    "hints",
    "_ranges",
    "range",
    "_known_quotients",
    "_known_answers",
    "_known_comparisons",
    "_served",
    "_served_values",
    "_outermost",
)
"""The attributes of a trace that a block replaces."""
_OWN_MODULES = {__name__, Size.__module__, TracedFloat.__module__}
"""Modules whose functions are not named as the place of a guard."""


class Trace(Locked, SizeTable):
    """The dimensions of sizes, and the guards under which what is made from them is right.

    One thread uses it at a time. A trace that several threads know is used under `_lock`, for comparisons and
    ranges too: in a block of `within`, they are those of the block.

    Args:
        dimensions: the dimensions by name.
        narrows: a guard narrows the ranges that decide later comparisons. All guards of the trace must then
            be checked for whatever is made from its sizes.
    """

    def __init__(self, dimensions: Mapping[str, Dimension], narrows: bool = False) -> None:
        Locked.__init__(self)
        SizeTable.__init__(self)
        self._narrows = narrows
        self._numbers: dict[Atom, int] = {}
        self._passes_units = False
        self._answers: Answers | None = None
        self._outermost: tuple[int, Mapping[str, Any]] | None = None
        """The thread that is in a block, and the attributes that the block replaced."""
        self._begin(dict(dimensions), {}, None)
        for name in self.dimensions:
            self._add(Atom(name))

    def _begin(
        self,
        dimensions: dict[str, Dimension],
        outer: Mapping[int, Interval],
        served: Mapping[str, int] | None,
    ) -> None:
        """Set the attributes that a block replaces, which are those in `_OF_BLOCK`.

        Args:
            dimensions: the hints and ranges of the dimensions.
            outer: ranges of atoms outside of the block, if guards narrow them. They hold in the block, too.
            served: sizes for which all guards of the block must hold.
        """
        self.dimensions = dimensions
        self.guards: Guards = {}
        """Guards, and where in the code each was recorded first."""
        self.hints = AtomValues(self.atoms, self._hint_of)
        """The hints of atoms by their numbers. A block has its own."""
        self._ranges = Ranges(self.atoms, dimensions, outer)
        self.range = self._ranges.of
        self._known_quotients: dict[tuple[Polynomial, Polynomial], tuple[Polynomial, Answers]] = {}
        self._known_answers: Answers = {}
        """The results of comparisons for which `has_answers` has recorded guards."""
        self._known_comparisons: Answers = {}
        """The results of `holds`, which has recorded their guards."""
        self._served = served
        self._served_values = None if served is None else Evaluation(self.atoms, served)

    def size(self, name: str) -> Size:
        """Return the size of a dimension."""
        return self.of((((self._numbers[Atom(name)],), 1),))

    def add(self, name: str, dimension: Dimension) -> Size:
        """Add a dimension with a new name, and return its size."""
        with self._lock:
            self.dimensions[name] = dimension
            self._add(Atom(name))
            return self.size(name)

    @contextmanager
    def within(
        self, dimensions: Mapping[str, Dimension], served: Mapping[str, int] | None = None
    ) -> Iterator[Guards]:
        """Use other hints and narrower ranges in a block, and yield the guards of the block alone.

        Args:
            dimensions: the hints and ranges.
            served: sizes for which all guards of the block must hold.

        Raises:
            NotServedError: the last guard of the block does not hold for `served`.
        """
        with self._lock:
            yield from self._within(dimensions, served)

    @property
    def is_in_block(self) -> bool:
        """True if the thread that holds the lock is in a block of `within`."""
        return self._outermost is not None

    @property
    def own_guards(self) -> Guards:
        """The guards outside of all blocks, whatever other threads do."""
        with self._lock:
            return self.guards if self._outermost is None else self._outermost[1]["guards"]

    @contextmanager
    def passing_units(self) -> Iterator[None]:
        """Record no guards within a block that exclude 1 from dimensions whose hint is larger.

        What the block makes for larger sizes must be right for 1, too. Expressions are, because the ranges of
        the dimensions include 1.
        """
        with self._lock:
            before, self._passes_units = self._passes_units, True
            try:
                yield
            finally:
                self._passes_units = before

    @contextmanager
    def recording(self) -> Iterator[Answers]:
        """Yield a table that receives the results of all comparisons of sizes within a block.

        These results determine what the block makes of the sizes. As with `passing_units`, comparisons that
        tell 1 from larger sizes of a dimension are left out if its hint is larger.
        """
        with self._lock:
            before, self._answers = self._answers, {}
            try:
                yield self._answers
            finally:
                self._answers = before

    def has_answers(self, answers: Answers) -> bool:
        """Return whether comparisons of sizes have these results for the present hints, and for the sizes
        that a block must serve.

        If they have, guards are recorded for them.
        """
        known, new = self._known_answers, list[tuple[Relation, Polynomial]]()
        for question, answer in answers.items():
            before = known.get(question)
            if before is answer:
                continue
            relation, polynomial = question
            if before is not None or polynomial is None:
                return False
            if meets(relation, self.hint(polynomial)) is not answer:
                return False
            if self._is_served(relation, polynomial) not in (None, answer):
                return False
            new.append((relation, polynomial))
        for relation, polynomial in new:
            self.holds(relation, polynomial)
            known[relation, polynomial] = answers[relation, polynomial]
        return True

    def _is_served(self, relation: Relation, polynomial: Polynomial) -> bool | None:
        """Return whether the sizes that the block must serve meet a relation; None: there are none."""
        if self._served_values is None:
            return None
        try:
            return meets(relation, self._served_values.value(polynomial))
        except ArithmeticError:
            return False

    def is_at_least(self, polynomial: Polynomial, bound: int) -> bool | None:
        """Return the result of a comparison that need not be recorded, because the range decides it; else
        None."""
        if self._answers is not None:
            return None
        least, greatest = self.range(polynomial)
        return True if least >= bound else False if greatest < bound else None

    def note(self, relation: Relation, polynomial: Polynomial | None, answer: bool = True) -> None:
        """Record the result of a comparison within a block of `recording`."""
        # The monomial of a constant comes first, so the last one tells whether there are others.
        if self._answers is None or (polynomial is not None and not (polynomial and polynomial[-1][0])):
            return
        if polynomial is None or not self._asks_for_unit(relation, polynomial):
            self._answers[relation, polynomial] = answer

    def _within(
        self, dimensions: Mapping[str, Dimension], served: Mapping[str, int] | None
    ) -> Iterator[Guards]:
        before = {name: getattr(self, name) for name in _OF_BLOCK}
        restore = partial(vars(self).update, before)
        try:
            if self._outermost is None:
                self._outermost = get_ident(), before
            outer = self._ranges.found() if self._narrows else {}
            self._begin({**self.dimensions, **dimensions}, outer, served)
            yield self.guards
        finally:  # One call: a handler of a signal may raise an error after each.
            restore()  # Its atoms remain, with the values of the trace.

    def _go_on_in_child(self) -> None:
        """Leave the block of another thread, which the child of a fork does not have."""
        super()._go_on_in_child()
        if self._outermost is not None and self._outermost[0] != get_ident():
            self._numbers = {atom: number for number, atom in enumerate(self.atoms)}
            vars(self).update(self._outermost[1])

    def number(self, name: str, above: Polynomial | None, below: Polynomial | None) -> int:
        """Return the number of a known dimension, or of another atom, which may be new.

        Raises:
            LookupError: no dimension has the name.
        """
        if above is None:
            return self._numbers[Atom(name)]
        if below is None:
            return self._add(Atom(f"max({self.text(above)},0)", above))
        return self._add(Atom(f"({self.text(above)}//({self.text(below)}))", above, below))

    def _add(self, atom: Atom) -> int:
        number = self._numbers.get(atom)
        if number is None:
            self._numbers[atom] = number = len(self.atoms)
            self.atoms.append(atom)
            if self._narrows:
                self._ranges.atoms[number]  # By the guards so far.
        return number

    def _hint_of(self, number: int) -> int:
        """Return the hint of an atom."""
        atom = self.atoms[number]
        if atom.above is None:
            return self.dimensions[atom.name].hint
        if atom.below is None:
            return max(self.hint(atom.above), 0)
        return self.hint(atom.above) // (self.hint(atom.below) or 1)

    def hint(self, polynomial: Polynomial) -> int:
        """Return the value of a polynomial for the hints."""
        hints = self.hints
        total = 0
        for monomial, coefficient in polynomial:
            for atom in monomial:
                coefficient *= hints[atom]
            total += coefficient
        return total

    def quotient(self, above: Polynomial, below: Polynomial) -> Polynomial:
        """Return a polynomial for a quotient, rounded down. `below` is not 0 for any sizes in range."""
        known = self._known_quotients.get((above, below))
        if known is None:
            # `recording` as a context takes as long as all else here.
            before, self._answers = self._answers, {}
            try:
                known = self._known_quotients[above, below] = self._quotient(above, below), self._answers
            finally:
                self._answers = before
        if self._answers is not None:
            self._answers.update(known[1])
        return known[0]

    def _quotient(self, above: Polynomial, below: Polynomial) -> Polynomial:
        if self.range(below)[1] < 0:
            above, below = scaled(above, -1), scaled(below, -1)
        self.note(Relation.NOT_NEGATIVE, polynomial_sum(below, constant_polynomial(-1)))
        whole, rest = divided(above, below)
        divisor = plain_value(below)
        if divisor and rest and rest[-1][1] < 0:
            # Rounded up, the quotient of a sum that grows has narrower bounds.
            turned = self.quotient(polynomial_sum(scaled(rest, -1), constant_polynomial(divisor - 1)), below)
            return polynomial_sum(whole, scaled(turned, -1))
        common = math.gcd(divisor, *[c for monomial, c in rest if monomial]) if divisor else 1
        if common > 1:
            rest = from_terms({monomial: c // common for monomial, c in rest})
            below = constant_polynomial(divisor := divisor // common)
        if divisor and len(rest) and len(rest[-1][0]) == 1 and rest[-1][1] == 1 and len(rest) <= 2:
            # A quotient of a quotient divides by the product.
            inner = self.atoms[rest[-1][0][0]]
            factor = plain_value(inner.below or ())
            if factor > 0 and inner.above is not None and all(not monomial for monomial, _ in rest[:-1]):
                added = rest[0][1] * factor if len(rest) == 2 else 0
                total = polynomial_sum(inner.above, constant_polynomial(added))
                return polynomial_sum(whole, self.quotient(total, constant_polynomial(divisor * factor)))
        if not divisor:
            rest, below = self._without_common_factors(rest, below)
        bounds, divisors = self.range(rest), self.range(below)
        if not rest or (bounds[0] >= 0 and bounds[1] < divisors[0]):
            self.note(Relation.NOT_NEGATIVE, rest)
            less = polynomial_sum(below, scaled(rest, -1))
            self.note(Relation.NOT_NEGATIVE, polynomial_sum(less, constant_polynomial(-1)))
            return whole
        number = self.number("", rest, below)
        return polynomial_sum(whole, (((number,), 1),))

    def _without_common_factors(self, above: Polynomial, below: Polynomial) -> tuple[Polynomial, Polynomial]:
        """Return a fraction without the positive atoms by which all of its terms can be divided."""
        for atom in set(below[0][0]):
            terms = (*above, *below)
            while self._ranges.atoms[atom][0] > 0 and all(atom in monomial for monomial, _ in terms):
                self.note(Relation.NOT_NEGATIVE, (((), -1), ((atom,), 1)))
                above, below = (
                    from_terms({without(monomial, (atom,)) or (): c for monomial, c in each})
                    for each in (above, below)
                )
                terms = (*above, *below)
        return above, below

    def positive(self, polynomial: Polynomial) -> Polynomial:
        """Return a polynomial for the greater one of a polynomial and 0."""
        least, greatest = self.range(polynomial)
        if least >= 0 or greatest <= 0:
            self.note(Relation.NOT_NEGATIVE, polynomial if least >= 0 else scaled(polynomial, -1))
            return polynomial if least >= 0 else ()
        if polynomial[-1][1] < 0:
            turned = scaled(polynomial, -1)
            return polynomial_sum(polynomial, self.positive(turned))
        divisor = math.gcd(*[coefficient for _, coefficient in polynomial])
        polynomial = tuple([(monomial, c // divisor) for monomial, c in polynomial])
        return (((self.number("", polynomial, None),), divisor),)

    def is_zero(self, polynomial: Polynomial | None) -> bool:
        """Return whether a polynomial is 0 for all sizes that meet the guards so far, without a guard."""
        if not polynomial:
            return polynomial is not None
        if polynomial[-1][1] < 0:
            polynomial = scaled(polynomial, -1)
        is_zero = self.range(polynomial) == (0, 0) or (Relation.ZERO, self.of(polynomial)) in self.guards
        if is_zero:
            self.note(Relation.ZERO, polynomial)
        return is_zero

    def holds(self, relation: Relation, polynomial: Polynomial) -> bool:
        """Return whether a polynomial meets a relation, by its range or else by the hints and a guard."""
        if self._passes_units:
            answer = self._holds(relation, polynomial)
        elif (known := self._known_comparisons.get((relation, polynomial))) is not None:
            answer = known
        else:
            answer = self._known_comparisons[relation, polynomial] = self._holds(relation, polynomial)
        if self._answers is not None:
            is_zero = relation is Relation.NOT_ZERO
            self.note(Relation.ZERO if is_zero else relation, polynomial, answer is not is_zero)
        return answer

    def _holds(self, relation: Relation, polynomial: Polynomial) -> bool:
        least, greatest = self.range(polynomial)
        if relation is Relation.NOT_NEGATIVE:
            if least >= 0 or greatest < 0:
                return least >= 0
        elif not least <= 0 <= greatest or never_zero(polynomial):
            return relation is Relation.NOT_ZERO
        elif least == greatest == 0:
            return relation is Relation.ZERO
        value = self.hint(polynomial)
        passes = self._passes_units and self._asks_for_unit(relation, polynomial)
        if relation is Relation.NOT_NEGATIVE:
            is_met = value >= 0
            if passes:
                return is_met
            if not is_met:
                polynomial = polynomial_sum(scaled(polynomial, -1), constant_polynomial(-1))
            self.guard(Relation.NOT_NEGATIVE, self.of(polynomial))
            return is_met
        is_zero = value == 0
        if polynomial[-1][1] < 0:
            polynomial = scaled(polynomial, -1)
        if not passes:
            self.guard(Relation.ZERO if is_zero else Relation.NOT_ZERO, self.of(polynomial))
        return is_zero is (relation is Relation.ZERO)

    def _asks_for_unit(self, relation: Relation, polynomial: Polynomial) -> bool:
        """Return whether a relation tells 1 from all other sizes of a dimension whose hint is larger."""
        *constant, (monomial, factor) = polynomial
        if len(monomial) != 1 or abs(factor) != 1 or not constant or constant[0][0] or len(constant) > 1:
            return False
        root = -constant[0][1] * factor
        is_first = relation is Relation.NOT_NEGATIVE and factor > 0
        is_dimension = self.atoms[monomial[0]].above is None
        return is_dimension and root == 1 + is_first and self.hints[monomial[0]] > 1

    def guard(self, relation: Relation, value: Size | TracedFloat) -> None:
        """Record a guard, which the hints meet."""
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_globals.get("__name__") in _OWN_MODULES:
            frame = frame.f_back
        self.guards.setdefault((relation, value), f"{frame.f_code.co_filename}:{frame.f_lineno}")
        if self._served is not None:
            is_served = (
                self._is_served(relation, value.polynomial)
                if type(value) is Size
                else is_met(relation, value, self._served)
            )
            if not is_served:
                raise NotServedError
        if self._narrows and type(value) is Size:
            self._ranges.narrow(relation, value.polynomial)

    def restore(self, guards: Iterable[tuple[Relation, Size | TracedFloat]]) -> None:
        """Record guards of a stored trace, which its hints meet."""
        for relation, value in guards:
            self.guards.setdefault((relation, value), "a stored trace")
            if self._narrows and type(value) is Size:
                self._ranges.narrow(relation, value.polynomial)
