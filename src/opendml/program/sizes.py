"""Sizes that change: integers that keep the arithmetic by which they follow from named dimensions.

A `Size` behaves as an integer. It has the value of the present run, which is its hint, and an expression
over the dimensions of its `Trace`. A comparison is decided from the ranges of the dimensions where these
suffice. Otherwise the hints decide, and the trace records a guard: what was made with these sizes serves all
sizes that meet its guards. Code that needs a plain integer (`range`, slices, NumPy, `struct`) calls
`__index__`, which guards that the size equals its hint. So no expression is lost without a guard.

Expressions are polynomials with integer coefficients over atoms. An atom is a dimension or a quotient,
rounded down, of two polynomials. Equal polynomials are equal sizes, so most rules about sizes are decided
without a guard. `size_values` computes many expressions for given dimensions in one generated function.

>>> from opendml.program.size_values import Values
>>> trace = Trace({"batch": Dimension(4), "length": Dimension(50)})
>>> batch, length = trace.size("batch"), trace.size("length")
>>> elements = batch * length * 3
>>> elements // batch == length * 3, elements > 11
(True, True)
>>> trace.guards
{}
>>> length > batch, list(trace.guards)
(True, [(<Relation.NOT_NEGATIVE: 0>, <-1-batch+length>)])
>>> Values([elements, length // 8, 7])({"batch": 2, "length": 17}).tolist()
[102, 2, 7]
"""

from __future__ import annotations

import math
import operator
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import partial, reduce
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np

from opendml.late_dataclass import dataclass
from opendml.locked import Locked
from opendml.program.polynomials import (
    Interval,
    Monomial,
    Polynomial,
    constant_polynomial,
    divided,
    from_terms,
    never_zero,
    plain_value,
    polynomial_product,
    polynomial_sum,
    product_range,
    quotient_range,
    scaled,
    without,
)

if TYPE_CHECKING:
    _Integer = int
    _Float = float
else:
    _Integer = _Float = object

GREATEST = 2**31 - 1
"""The greatest size of a dimension, unless its range says another."""
LEAST_TRACED = 2
"""The least hint. A size of 0 means no elements, and operators repeat dimensions of 1."""
_EXACT = 2**53
"""The magnitude up to which a float has all whole numbers."""
_MOST_TERMS = 4
"""Terms of a polynomial whose quotients are eliminated for its bounds, at most."""
Answers = dict[tuple["Relation", Polynomial | None], bool]
"""The results of comparisons of sizes. A comparison of floats has no polynomial."""
Guards = dict[tuple["Relation", "Size | TracedFloat"], str]
"""Guards, and where in the code each was recorded first."""


class Relation(Enum):
    """The demand of a guard on an expression."""

    NOT_NEGATIVE = 0
    ZERO = 1
    NOT_ZERO = 2

    __hash__ = object.__hash__  # That of `Enum` is a function in Python.


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


class Evaluation:
    """The values of polynomials for dimensions by name, which may be sizes of another trace.

    Args:
        atoms: the atoms of their trace. Each is computed once, when a polynomial first needs it.
        dimensions: the dimensions.
    """

    def __init__(self, atoms: Sequence[Atom], dimensions: Mapping[str, int]) -> None:
        self._atoms, self._dimensions = atoms, dimensions
        self._known: dict[int, int] = {}

    def value(self, polynomial: Polynomial) -> int:
        """Return the value of a polynomial."""
        known, total = self._known, 0
        for monomial, product in polynomial:
            for atom in monomial:
                if atom not in known:
                    self._find(atom)
                product *= known[atom]
            total += product
        return total

    def _find(self, number: int) -> None:
        known, pending = self._known, [number]  # Expressions may be nested more deeply than calls.
        while pending:
            atom = self._atoms[pending[-1]]
            parts = (atom.above or (), atom.below or ())
            missing = {each for part in parts for monomial, _ in part for each in monomial} - known.keys()
            if missing:
                pending += missing
                continue
            if atom.above is None:
                found = self._dimensions[atom.name]
            elif atom.below is None:
                found = greatest(self.value(atom.above), 0)
            else:
                found = self.value(atom.above) // self.value(atom.below)
            known[pending.pop()] = found


class NotServedError(Exception):
    """A guard does not hold for the sizes that a block of a trace must serve."""


Value = TypeVar("Value")


class _AtomValues(dict[int, Value]):
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


class _State(NamedTuple):
    """The values that a block of a trace replaces."""

    dimensions: dict[str, Dimension]
    guards: Guards
    hints: _AtomValues[int]
    ranges: _AtomValues[Interval]
    outer: dict[int, Interval]
    known_ranges: dict[Polynomial, Interval]
    known_quotients: dict[tuple[Polynomial, Polynomial], tuple[Polynomial, Answers]]
    known_answers: Answers
    known_comparisons: Answers
    served: Mapping[str, int] | None
    served_values: Evaluation | None


class Trace(Locked):
    """The dimensions of sizes, and the guards under which what is made from them is right.

    It is used by one thread at a time. `within` waits for others.

    Args:
        dimensions: the dimensions by name.
        narrows: a guard narrows the ranges that decide later comparisons. All guards of the trace must then
            be checked for whatever is made from its sizes.
    """

    def __init__(self, dimensions: Mapping[str, Dimension], narrows: bool = False) -> None:
        super().__init__()
        self._narrows = narrows
        self.dimensions = dict(dimensions)
        self.guards: Guards = {}
        """Guards, and where in the code each was recorded first."""
        self.atoms: list[Atom] = []
        self._numbers: dict[Atom, int] = {}
        self._sizes: dict[Polynomial, Size] = {}
        self.hints = _AtomValues(self.atoms, self._hint_of)
        """The hints of atoms by their numbers. A block has its own."""
        self._ranges = _AtomValues(self.atoms, self._range_of)
        self._outer: dict[int, Interval] = {}
        """The ranges of atoms outside of a block, if guards narrow them. They hold in the block, too."""
        self._known_ranges: dict[Polynomial, Interval] = {}
        self._known_quotients: dict[tuple[Polynomial, Polynomial], tuple[Polynomial, Answers]] = {}
        self._passes_units = False
        self._known_answers: Answers = {}
        """The results of comparisons for which `has_answers` has recorded guards."""
        self._known_comparisons: Answers = {}
        """The results of `holds`, which has recorded their guards."""
        self._answers: Answers | None = None
        self._served: Mapping[str, int] | None = None
        self._served_values: Evaluation | None = None
        self._outermost: tuple[int, _State] | None = None
        """The thread that is in a block, and what the block replaced."""
        for name in self.dimensions:
            self._add(Atom(name))

    def size(self, name: str) -> Size:
        """Return the size of a dimension."""
        return self.of((((self._numbers[Atom(name)],), 1),))

    def of(self, polynomial: Polynomial) -> Size:
        """Return the size of a polynomial that is not constant."""
        known = self._sizes.get(polynomial)
        if known is None:
            known = self._sizes[polynomial] = Size(self, polynomial)
        return known

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
        before = self._state()
        is_outermost = self._outermost is None
        if is_outermost:
            self._outermost = get_ident(), before
        self.dimensions, self.guards, self._served = {**self.dimensions, **dimensions}, {}, served
        self._served_values = None if served is None else Evaluation(self.atoms, served)
        self._outer = {**before.outer, **before.ranges} if self._narrows else {}
        self.hints = _AtomValues(self.atoms, self._hint_of)
        self._ranges = _AtomValues(self.atoms, self._range_of)
        self._known_ranges, self._known_quotients = {}, {}
        self._known_answers, self._known_comparisons = {}, {}
        try:
            yield self.guards
        finally:
            self._return_to(before)
            if is_outermost:
                self._outermost = None

    def _state(self) -> _State:
        known = self._known_ranges, self._known_quotients
        answers = self._known_answers, self._known_comparisons
        served = self._served, self._served_values
        atoms = self.hints, self._ranges, self._outer
        return _State(self.dimensions, self.guards, *atoms, *known, *answers, *served)

    def _return_to(self, state: _State) -> None:
        """Leave a block. Its atoms remain, with the values of the trace."""
        self.dimensions, self.guards, self.hints, self._ranges, self._outer = state[:5]
        self._known_ranges, self._known_quotients, self._known_answers = state[5:8]
        self._known_comparisons, self._served, self._served_values = state[8:]

    def _go_on_in_child(self) -> None:
        """Leave the block of another thread, which the child of a fork does not have."""
        super()._go_on_in_child()
        if self._outermost is not None and self._outermost[0] != get_ident():
            self._numbers = {atom: number for number, atom in enumerate(self.atoms)}
            self._return_to(self._outermost[1])
            self._outermost = None

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
                self._ranges[number]  # By the guards so far.
        return number

    def _hint_of(self, number: int) -> int:
        """Return the hint of an atom."""
        atom = self.atoms[number]
        if atom.above is None:
            return self.dimensions[atom.name].hint
        if atom.below is None:
            return max(self.hint(atom.above), 0)
        return self.hint(atom.above) // (self.hint(atom.below) or 1)

    def _range_of(self, number: int) -> Interval:
        """Return the range of an atom."""
        atom = self.atoms[number]
        if atom.above is None:
            dimension = self.dimensions[atom.name]
            first, last = dimension.least, dimension.greatest
        elif atom.below is None:
            first, last = self.range(atom.above)
            first, last = max(first, 0), max(last, 0)
        else:
            first, last = quotient_range(self.range(atom.above), self.range(atom.below))
        least, greatest = self._outer.get(number, (first, last))
        if max(first, least) <= min(last, greatest):
            return max(first, least), min(last, greatest)
        return first, last

    def hint(self, polynomial: Polynomial) -> int:
        """Return the value of a polynomial for the hints."""
        hints = self.hints
        total = 0
        for monomial, coefficient in polynomial:
            for atom in monomial:
                coefficient *= hints[atom]
            total += coefficient
        return total

    def range(self, polynomial: Polynomial) -> Interval:
        """Return bounds of the values of a polynomial."""
        known = self._known_ranges.get(polynomial)
        if known is None:
            known = self._known_ranges[polynomial] = self._range(polynomial)
        return known

    def _range(self, polynomial: Polynomial) -> Interval:
        least, greatest = self._bounds(polynomial)
        if len(polynomial) < 2:
            return least, greatest
        if any(len(monomial) > 1 for monomial, _ in polynomial):
            before, after = self._bounds_from_least(polynomial)
            least, greatest = max(least, before), min(greatest, after)
        if len(polynomial) <= _MOST_TERMS and (cases := self._cases(polynomial)) is not None:
            # The polynomial is the greater or the lesser one of two others.
            one, other, chosen = self.range(cases[0]), self.range(cases[1]), cases[2]
            least, greatest = max(least, chosen(one[0], other[0])), min(greatest, chosen(one[1], other[1]))
        if least <= 0 <= greatest and len(polynomial) <= _MOST_TERMS:
            if (below := self._eliminated(polynomial)) is not None:
                least = max(least, -(-self.range(below[0])[0] // below[1]))
            if (above := self._eliminated(scaled(polynomial, -1))) is not None:
                greatest = min(greatest, self.range(above[0])[0] // -above[1])
        return least, greatest

    def _cases(
        self, polynomial: Polynomial
    ) -> tuple[Polynomial, Polynomial, Callable[[int, int], int]] | None:
        """Return two polynomials of which one is the greater or the lesser, and `max` or `min`.

        They replace the last maximum in it by its operands.
        """
        for monomial, coefficient in reversed(polynomial):
            atom = self.atoms[monomial[0]] if len(monomial) == 1 else None
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
            atom = self.atoms[monomial[0]] if len(monomial) == 1 else None
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
                first, last = self._ranges[atom]
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
                first, second = self._ranges[one][0], self._ranges[other][0]
                start += coefficient * first * second
                terms[one,] = terms.get((one,), 0) + coefficient * second
                terms[other,] = terms.get((other,), 0) + coefficient * first
                terms[monomial] = terms.get(monomial, 0) + coefficient
                continue
            own: dict[Monomial, int] = {(): coefficient}
            for atom in monomial:
                first = self._ranges[atom][0]
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
                first, last = self._ranges[atom]
                reach *= last - first
            if reach < 0:
                before += reach
            else:
                after += reach
        return before, after

    def value(self, polynomial: Polynomial, sizes: Mapping[str, int]) -> int:
        """Return the value of a polynomial for dimensions by name, which may be sizes of another trace."""
        return Evaluation(self.atoms, sizes).value(polynomial)

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
            while self._ranges[atom][0] > 0 and all(atom in monomial for monomial, _ in terms):
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
        while frame.f_back is not None and frame.f_globals is globals():
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
            self._narrow(relation, value.polynomial)

    def restore(self, guards: Iterable[tuple[Relation, Size | TracedFloat]]) -> None:
        """Record guards of a stored trace, which its hints meet."""
        for relation, value in guards:
            self.guards.setdefault((relation, value), "a stored trace")
            if self._narrows and type(value) is Size:
                self._narrow(relation, value.polynomial)

    def _narrow(self, relation: Relation, polynomial: Polynomial) -> None:
        """Narrow the range of an atom by a guard that is linear in it alone."""
        monomial, factor = polynomial[-1]
        if len(monomial) != 1 or len(polynomial) > 2 or (len(polynomial) == 2 and polynomial[0][0]):
            return
        constant = polynomial[0][1] if len(polynomial) == 2 else 0
        least, greatest = self._ranges[monomial[0]]
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
        if (least, greatest) != self._ranges[monomial[0]]:
            self._ranges[monomial[0]] = least, greatest
            self._known_ranges.clear()

    def text(self, polynomial: Polynomial) -> str:
        """Return a polynomial as text, in which equal polynomials of a trace are equal."""
        parts = []
        for monomial, coefficient in polynomial:
            factors = [self.atoms[atom].name for atom in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            parts.append(("-" if coefficient < 0 else "+") + "*".join(factors))
        return "".join(parts).removeprefix("+")


class Size(_Integer):
    """An integer that keeps how it follows from the dimensions of a trace.

    At run time it is no subclass of `int`, so that code in C cannot take its value without a guard.
    `isinstance(size, int)` holds all the same. No size is constant: the arithmetic returns plain integers
    then.
    """

    __slots__ = ("_hinted", "polynomial", "trace")

    trace: Trace
    polynomial: Polynomial
    _hinted: tuple[object, int]
    """The hint, behind the hints of atoms from which it was found."""

    def __new__(cls, trace: Trace, polynomial: Polynomial) -> Size:
        """Return a new size. Others call `Trace.of`, so that equal sizes are one object."""
        self = object.__new__(cls)
        self.trace, self.polynomial, self._hinted = trace, polynomial, (None, 0)
        return self

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> type:
            """The class that `isinstance` sees."""
            return int

    @property
    def name(self) -> str | None:
        """The name of a dimension; None for other expressions."""
        if len(self.polynomial) != 1 or self.polynomial[0][1] != 1 or len(self.polynomial[0][0]) != 1:
            return None
        atom = self.trace.atoms[self.polynomial[0][0][0]]
        return atom.name if atom.name in self.trace.dimensions else None

    @property
    def hint(self) -> int:
        """The value in the run that is traced."""
        hints = self.trace.hints
        known = self._hinted
        if known[0] is not hints:
            known = self._hinted = hints, self.trace.hint(self.polynomial)
        return known[1]

    def __repr__(self) -> str:
        return f"<{self.trace.text(self.polynomial)}>"

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return format(self.__index__(), specification) if specification else repr(self)

    __hash__ = object.__hash__  # Equal sizes of a trace are one object.

    def __index__(self) -> int:
        value = self.hint
        self.trace.holds(Relation.ZERO, polynomial_sum(self.polynomial, constant_polynomial(-value)))
        return value

    __int__ = __trunc__ = __floor__ = __ceil__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __bool__(self) -> bool:
        return self.trace.holds(Relation.NOT_ZERO, self.polynomial)

    def __add__(self, other: Any) -> Any:
        if type(other) is int and not other:
            return self
        own = self._polynomial_of(other)
        return (
            _of_float("+", self, other)
            if own is None
            else self.trace_value(polynomial_sum(self.polynomial, own))
        )

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        own = self._polynomial_of(other)
        if own is None:
            return _of_float("-", self, other)
        return self.trace_value(polynomial_sum(self.polynomial, scaled(own, -1)))

    def __rsub__(self, other: Any) -> Any:
        own = self._polynomial_of(other)
        if own is None:
            return _of_float("-", other, self)
        return self.trace_value(polynomial_sum(scaled(self.polynomial, -1), own))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (list, tuple)):
            return other * self.__index__()
        if type(other) is int:
            return self if other == 1 else self.trace_value(scaled(self.polynomial, other) if other else ())
        own = self._polynomial_of(other)
        if own is None:
            return _of_float("*", self, other)
        return self.trace_value(polynomial_product(self.polynomial, own))

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self.trace_value(scaled(self.polynomial, -1))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __invert__(self) -> Any:
        return -self - 1

    def __pow__(self, exponent: int, modulo: None = None) -> Any:  # type: ignore[override]
        return math.prod([self] * exponent)

    def __floordiv__(self, other: Any) -> Any:
        return self._divided(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._divided(other, self)

    def __mod__(self, other: Any) -> Any:
        return self - self // other * other

    def __rmod__(self, other: Any) -> Any:
        return other - other // self * self

    def __divmod__(self, other: Any) -> Any:
        quotient = self // other
        return quotient, self - quotient * other

    def __rdivmod__(self, other: Any) -> Any:
        quotient = other // self
        return quotient, other - quotient * self

    def __truediv__(self, other: Any) -> Any:
        return _quotient_of(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _quotient_of(other, self)

    def __lshift__(self, other: int) -> Any:
        return self * (1 << other)

    def __rshift__(self, other: int) -> Any:
        return self // (1 << other)

    def __rlshift__(self, other: int) -> Any:
        return other << self.__index__()

    def __rrshift__(self, other: int) -> Any:
        return other >> self.__index__()

    def __and__(self, other: Any) -> Any:
        if type(other) is int and other >= 0 and other & (other + 1) == 0:
            return self % (other + 1)
        if type(other) is int and other < 0 and -other & (-other - 1) == 0:
            return self // -other * -other
        return self.__index__() & other

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        return self.__index__() | other

    __ror__ = __or__

    def __xor__(self, other: Any) -> Any:
        return self.__index__() ^ other

    __rxor__ = __xor__

    def bit_length(self) -> int:
        """Return the number of bits, with guards for all sizes that have as many."""
        length = self.hint.bit_length()
        if length and self >= 1 << length - 1 and self < 1 << length:
            return length
        return self.__index__().bit_length()

    def __eq__(self, other: object) -> bool:
        if self is other or (
            type(other) is Size and self.polynomial == other.polynomial and self.trace is other.trace
        ):
            return True
        if type(other) is int and self.trace._answers is None:
            least, greatest = self.trace.range(self.polynomial)
            if not least <= other <= greatest:
                return False
        if isinstance(other, float) and not (type(other) is float and other.is_integer()):
            return False if type(other) is float else other == self
        difference = self._minus(other)
        return False if difference is None else self.trace.holds(Relation.ZERO, difference)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> Any:
        result = self.__ge__(other)
        return result if result is NotImplemented else not result

    def __ge__(self, other: Any) -> Any:
        if type(other) is float and math.isfinite(other):
            other = math.ceil(other)
        if type(other) is int and (known := self.trace.is_at_least(self.polynomial, other)) is not None:
            return known
        difference = self._minus(other)
        if difference is None:
            return other == -math.inf if type(other) is float else NotImplemented
        return self.trace.holds(Relation.NOT_NEGATIVE, difference)

    def __gt__(self, other: Any) -> Any:
        result = self.__le__(other)
        return result if result is NotImplemented else not result

    def __le__(self, other: Any) -> Any:
        if type(other) is float and math.isfinite(other):
            other = math.floor(other)
        if type(other) is int and (known := self.trace.is_at_least(self.polynomial, other + 1)) is not None:
            return not known
        difference = self._minus(other)
        if difference is None:
            return other == math.inf if type(other) is float else NotImplemented
        return self.trace.holds(Relation.NOT_NEGATIVE, scaled(difference, -1))

    def __copy__(self) -> Size:
        return self

    def __deepcopy__(self, memo: object) -> Size:
        return self

    def trace_value(self, polynomial: Polynomial) -> int:
        """Return a size of the same trace, or a plain integer for a constant."""
        if not polynomial:
            return 0
        if len(polynomial) == 1 and not polynomial[0][0]:
            return polynomial[0][1]
        return self.trace.of(polynomial)

    def _polynomial_of(self, other: Any) -> Polynomial | None:
        """Return another integer as a polynomial; None for what is no integer."""
        if type(other) is Size:
            if other.trace is not self.trace:
                raise ValueError("sizes of two traces")
            return other.polynomial
        if type(other) is int:
            return (((), other),) if other else ()
        if isinstance(other, (int, np.integer)):
            return constant_polynomial(int(other))
        return None

    def _divided(self, above: Any, below: Any) -> Any:
        first, second = self._polynomial_of(above), self._polynomial_of(below)
        if first is None or second is None:
            return _of_float("//", above, below)
        if not second or (type(below) is Size and not below):
            raise ZeroDivisionError("integer division or modulo by zero")
        return self.trace_value(self.trace.quotient(first, second))

    def _minus(self, other: object) -> Polynomial | None:
        own = self._polynomial_of(other)
        return None if own is None else polynomial_sum(self.polynomial, scaled(own, -1))


def rounded(format: str, value: float) -> float:
    """Return a float in one of the formats of `struct`, infinite if that cannot hold it."""
    try:
        (result,) = struct.unpack(format, struct.pack(format, value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(result)


def _float_operator(operation: str, *, other_first: bool = False) -> Callable[[Any, Any], Any]:
    """Return the method of an operation on two numbers."""

    def method(self: Any, other: Any) -> Any:
        return _of_float(operation, *((other, self) if other_first else (self, other)))

    return method


class TracedFloat(_Float):
    """A float that keeps how it follows from sizes: an operation of Python on sizes and floats.

    Its value for other sizes has the bits that Python computes from these. At run time it is no subclass of
    `float`; what needs a plain one guards that the number equals its hint.
    """

    __slots__ = ("_hash", "operands", "operation", "trace")

    trace: Trace
    operation: str
    operands: tuple[Any, ...]
    _hash: int

    def __new__(cls, operation: str, *operands: Any) -> TracedFloat:
        """Return a new number; at least one operand is a size or a number."""
        self = object.__new__(cls)
        self.trace = next(each.trace for each in operands if type(each) in (Size, TracedFloat))
        self.operation, self.operands = operation, operands
        self._hash = hash((operation, operands))
        return self

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> type:
            """The class that `isinstance` sees."""
            return float

    @property
    def hint(self) -> float:
        """The value in the run that is traced."""
        return float(FLOAT_OPERATIONS[self.operation](*map(hint_of, self.operands)))

    @property
    def range(self) -> tuple[float, float]:
        """Bounds of the values."""
        return _number_range(self.operation, list(map(_range_of, self.operands)))

    def value(self, sizes: Mapping[Size, int]) -> float:
        """Return the value for the values of the sizes that it is made of."""
        values = [
            sizes[each] if type(each) is Size else each.value(sizes) if type(each) is TracedFloat else each
            for each in self.operands
        ]
        return float(FLOAT_OPERATIONS[self.operation](*values))

    def sizes(self) -> Iterator[Size]:
        """Yield the sizes that it is made of."""
        for each in self.operands:
            if type(each) is Size:
                yield each
            elif type(each) is TracedFloat:
                yield from each.sizes()

    def __repr__(self) -> str:
        return f"<{self.operation} {' '.join(map(repr, self.operands))}>"

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return format(float(self), specification) if specification else repr(self)

    def __hash__(self) -> int:
        return self._hash

    def __float__(self) -> float:
        self.trace.note(Relation.ZERO, None)
        if not self._is_alike(self.hint):
            self.trace.guard(Relation.ZERO, TracedFloat("-", self, self.hint))
        return self.hint

    def __int__(self) -> int:
        return int(float(self))

    __trunc__ = __int__

    def __floor__(self) -> int:
        """Return a size for the product of a size and a float that is exact, such as size * 1.5."""
        size, *others = sorted(self.operands, key=lambda each: type(each) is not Size)
        if self.operation == "*" and type(size) is Size and type(others[0]) is float:
            above, below = others[0].as_integer_ratio()
            if max(map(abs, _range_of(size * above))) <= _EXACT:
                whole: int = size * above // below
                return whole
        return math.floor(float(self))

    def __ceil__(self) -> int:
        return math.ceil(float(self))

    def is_integer(self) -> bool:
        """Return whether the number is whole, which is guarded by its value."""
        return float(self).is_integer()

    def __bool__(self) -> bool:
        return self != 0

    __add__: Any = _float_operator("+")
    __radd__: Any = _float_operator("+", other_first=True)
    __sub__: Any = _float_operator("-")
    __rsub__: Any = _float_operator("-", other_first=True)
    __mul__: Any = _float_operator("*")
    __rmul__: Any = _float_operator("*", other_first=True)
    __truediv__: Any = _float_operator("/")
    __rtruediv__: Any = _float_operator("/", other_first=True)
    __floordiv__: Any = _float_operator("//")
    __rfloordiv__: Any = _float_operator("//", other_first=True)
    __pow__: Any = _float_operator("**")

    def __neg__(self) -> Any:
        return _of_float("*", -1.0, self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __eq__(self, other: object) -> bool:
        self.trace.note(Relation.ZERO, None)
        if self is other or self._is_alike(other):
            return True
        if not _is_number(other):
            return False
        if _compared(self, other) == -1 or _compared(other, self) == -1:
            return False
        is_equal: bool = self.hint == hint_of(cast(float, other))
        self.trace.guard(Relation.ZERO if is_equal else Relation.NOT_ZERO, TracedFloat("-", self, other))
        return is_equal

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __ge__(self, other: Any) -> Any:
        return self._is_at_least(self, other) if _is_number(other) else NotImplemented

    def __le__(self, other: Any) -> Any:
        return self._is_at_least(other, self) if _is_number(other) else NotImplemented

    def __gt__(self, other: Any) -> Any:
        return not self._is_at_least(other, self) if _is_number(other) else NotImplemented

    def __lt__(self, other: Any) -> Any:
        return not self._is_at_least(self, other) if _is_number(other) else NotImplemented

    def __copy__(self) -> TracedFloat:
        return self

    def __deepcopy__(self, memo: object) -> TracedFloat:
        return self

    def _is_alike(self, other: object) -> bool:
        """Return whether another number is the same expression."""
        return type(other) is TracedFloat and (self.operation, self.operands) == (
            other.operation,
            other.operands,
        )

    def _is_at_least(self, first: Any, second: Any) -> bool:
        """Return whether a number, which is this one or compared with it, is not less than another."""
        self.trace.note(Relation.NOT_NEGATIVE, None)
        if (known := _compared(first, second)) is not None:
            return known > 0
        is_met: bool = hint_of(first) >= hint_of(second)
        difference = TracedFloat("-", first, second) if is_met else TracedFloat("-", second, first)
        self.trace.guard(Relation.NOT_NEGATIVE, difference)
        if not is_met:
            self.trace.guard(Relation.NOT_ZERO, difference)
        return is_met


FLOAT_OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "**": operator.pow,
    "float": float,
    "sqrt": math.sqrt,
    "FLOAT16": partial(rounded, "e"),
    "FLOAT32": partial(rounded, "f"),
}
_RISING = frozenset({"float", "sqrt", "FLOAT16", "FLOAT32"})


def _of_float(operation: str, first: Any, second: Any) -> Any:
    """Return the number that an operation on floats, sizes and numbers makes."""
    if not _is_number(first) or not _is_number(second):
        return NotImplemented
    return TracedFloat(operation, first, second)


def _quotient_of(above: Any, below: Any) -> Any:
    """Return the quotient of a size and another number, which is plain if the sizes cancel each other."""
    if type(above) is Size and type(below) is Size and above.trace is below.trace:
        first, second = above.trace._without_common_factors(above.polynomial, below.polynomial)
        if scaled(first, second[-1][1]) == scaled(second, first[-1][1]):
            return first[-1][1] / second[-1][1]
        above, below = above.trace_value(first), below.trace_value(second)
    return _of_float("/", above, below)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float))


def _range_of(value: Any) -> tuple[float, float]:
    if type(value) is Size:
        return value.trace.range(value.polynomial)
    return value.range if type(value) is TracedFloat else (value, value)


def _compared(first: Any, second: Any) -> int | None:
    """Return 1 if a number is not less than another by their ranges, -1 if it is less, else None."""
    own, other = _range_of(first), _range_of(second)
    if own[0] >= other[1]:
        return 1
    return -1 if own[1] < other[0] else None


def _number_range(operation: str, ranges: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return bounds of what an operation makes of numbers within bounds. Rounding keeps their order."""
    unknown = -math.inf, math.inf
    if operation in _RISING:
        ((least, greatest),) = ranges
        made = FLOAT_OPERATIONS[operation]
        return (made(least), made(greatest)) if least >= 0 or operation != "sqrt" else unknown
    (first, second) = ranges
    is_divided = operation in ("/", "//")
    if operation == "**" or not all(map(math.isfinite, (*first, *second))):
        return unknown
    if is_divided and second[0] <= 0 <= second[1]:
        return unknown
    try:
        ends = [float(FLOAT_OPERATIONS[operation](a, b)) for a in first for b in second]
    except OverflowError:
        return unknown
    return min(ends), max(ends)


def bits_in(format: str, number: float) -> int:
    """Return the bits of a float in a format of `struct`, as an integer with a sign."""
    return int.from_bytes(struct.pack(format, number), "little", signed=True)


class TracedWord(_Integer):
    """The bits of a number in a float type, as an integer of 64 bits with a sign.

    Args:
        number: the number.
        format: the float type, as a format of `struct` of 8 bytes.
    """

    __slots__ = ("format", "number")

    number: TracedFloat
    format: str

    def __new__(cls, number: TracedFloat, format: str) -> TracedWord:
        """Return the bits of a number."""
        self = object.__new__(cls)
        self.number, self.format = number, format
        return self

    def bits_of(self, number: float) -> int:
        """Return the bits that the word has if its number is this one."""
        return bits_in(self.format, number)

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> type:
            """The class that `isinstance` sees."""
            return int

    @property
    def hint(self) -> int:
        """The bits in the run that is traced."""
        return self.bits_of(self.number.hint)

    def __repr__(self) -> str:
        return f"<bits {self.number!r}>"

    __str__ = __repr__

    def __hash__(self) -> int:
        return hash((self.number, self.format))

    def __eq__(self, other: object) -> bool:
        if type(other) is TracedWord:
            return self.format == other.format and self.number._is_alike(other.number)
        return self.__index__() == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __index__(self) -> int:
        return self.bits_of(float(self.number))

    __int__ = __index__


_TRACED = frozenset({Size, TracedFloat, TracedWord})
N = TypeVar("N", int, float)


def is_traced(value: object) -> bool:
    """Return whether a value is a size, a float or a word that is traced."""
    return type(value) in _TRACED


def hint_of(value: N) -> N:
    """Return the value of a size, a number or a word in the traced run, without a guard.

    Other numbers are their own hints.
    """
    return value.hint if type(value) in _TRACED else value  # type: ignore[attr-defined]


def value_at(value: N, sizes: Mapping[str, int]) -> N:
    """Return a size, a float or a word for dimensions by name, which may be sizes of another trace.

    Other numbers stay.
    """
    if type(value) is Size:
        return value.trace.value(value.polynomial, sizes)
    if type(value) is TracedWord:
        number = value_at(value.number, sizes)
        return TracedWord(number, value.format) if type(number) is TracedFloat else value.bits_of(number)
    if type(value) is TracedFloat:
        made = traced_operation(value.operation)
        return cast(N, made(*[value_at(each, sizes) for each in value.operands]))
    return value


def is_met(relation: Relation, value: Size | TracedFloat, sizes: Mapping[str, int]) -> bool:
    """Return whether a guard holds for dimensions by name."""
    try:
        return meets(relation, value_at(value, sizes))
    except ArithmeticError:
        return False


def meets(relation: Relation, number: float) -> bool:
    """Return whether a plain number meets a relation. NaN meets none."""
    if relation is Relation.NOT_NEGATIVE:
        return number >= 0
    return number == 0 if relation is Relation.ZERO else number == number and number != 0


def names_of(size: float) -> frozenset[str]:
    """Return the names of the dimensions that a number follows from; none for plain numbers.

    >>> trace = Trace({"length": Dimension(50), "batch": Dimension(2)})
    >>> sorted(names_of((trace.size("length") + 7) // 8 * 3))
    ['length']
    """
    if type(size) is TracedFloat:
        return frozenset().union(*map(names_of, size.sizes()))
    if type(size) is not Size:
        return frozenset()
    found, pending = set[str](), [size.polynomial]
    while pending:
        for monomial, _ in pending.pop():
            for atom in [size.trace.atoms[number] for number in monomial]:
                if atom.above is None:
                    found.add(atom.name)
                else:
                    pending += [atom.above, atom.below or ()]
    return frozenset(found)


def as_number(value: float) -> float:
    """Return `float(value)`, which keeps how it follows from sizes."""
    if type(value) is Size:
        return TracedFloat("float", value)
    return value if type(value) is TracedFloat else float(value)


def in_float_type(value: float, name: str) -> float:
    """Return a number rounded to FLOAT16, FLOAT32 or FLOAT64, which keeps how it follows from sizes."""
    number = as_number(value)
    if name == "FLOAT64":
        return number
    return TracedFloat(name, number) if type(number) is TracedFloat else FLOAT_OPERATIONS[name](number)


def square_root(value: float) -> float:
    """Return `math.sqrt(value)`, which keeps how it follows from sizes."""
    return TracedFloat("sqrt", value) if type(value) in _TRACED else math.sqrt(value)


_TRACED_OPERATIONS: dict[str, Callable[..., Any]] = {
    "float": as_number,
    "sqrt": square_root,
    "FLOAT16": partial(in_float_type, name="FLOAT16"),
    "FLOAT32": partial(in_float_type, name="FLOAT32"),
}


def traced_operation(name: str) -> Callable[..., Any]:
    """Return an operation of FLOAT_OPERATIONS whose result keeps its expression over sizes."""
    return _TRACED_OPERATIONS.get(name) or FLOAT_OPERATIONS[name]


def is_unit(size: int) -> bool:
    """Return whether a dimension of a size has one element, so that steps along it do not count.

    If the size is above 1 in the traced run, this returns False and records no guard. Steps along a dimension
    are right for one element, too, so the result also serves a size of 1.
    """
    return hint_of(size) < 2 and size < 2


def greatest(first: int, *others: int) -> int:
    """Return the greatest integer as an expression, without a guard.

    >>> from opendml.program.size_values import Values
    >>> trace = Trace({"length": Dimension(50)})
    >>> blocks = greatest(trace.size("length") // 16, 4)
    >>> blocks, len(trace.guards), Values([blocks])({"length": 160}).tolist()
    (<4+max(-4+(length//(16)),0)>, 0, [10])
    """
    return reduce(_greater, others, first)


def least(first: int, *others: int) -> int:
    """Return the least integer as an expression, without a guard."""
    return reduce(lambda a, b: a + b - _greater(a, b), others, first)


def are_same(first: Any, second: Any) -> bool:
    """Return whether integers, or tuples of them, are equal for all sizes that meet the guards so far.

    No guard is recorded: those that are equal for some sizes are not the same.
    """
    if type(first) is tuple:
        is_alike = type(second) is tuple and len(first) == len(second)
        return is_alike and all(map(are_same, first, second))
    size = first if type(first) is Size else second
    if type(size) is not Size or first is second or hint_of(first) != hint_of(second):
        return first is second or (type(size) is not Size and bool(first == second))
    return size.trace.is_zero(size._minus(first if size is second else second))


def is_surely_less(first: int, second: int) -> bool:
    """Return whether an integer is less than another one for all sizes in range, without a guard."""
    size = first if type(first) is Size else second
    if type(size) is not Size:
        return first < second
    difference = size._polynomial_of(second - first)
    assert difference is not None
    is_less = size.trace.range(difference)[0] > 0
    if is_less:
        size.trace.note(Relation.NOT_NEGATIVE, polynomial_sum(difference, constant_polynomial(-1)))
    return is_less


def index_range(sizes: Iterable[int], steps: Iterable[int]) -> tuple[int, int]:
    """Return the least and the greatest number that steps . i has for the indices i of a tensor of sizes."""
    before = after = 0
    for size, step in zip(sizes, steps, strict=True):
        reach = (size - 1) * step
        if type(reach) is Size:
            below = least(reach, 0)
            before, after = before + below, after + reach - below
        elif reach < 0:
            before += reach
        else:
            after += reach
    return before, after


def _greater(first: int, second: int) -> int:
    size = first if type(first) is Size else second
    if type(size) is not Size:
        return max(first, second)
    difference = size._polynomial_of(first - second)
    assert difference is not None
    return second + size.trace_value(size.trace.positive(difference))
