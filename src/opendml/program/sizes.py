"""Sizes that change: integers that keep the arithmetic by which they follow from named dimensions.

A `Size` behaves as an integer. It has the value of the present run, which is its hint, and an expression
over the dimensions of its `Trace`. A comparison is decided from the ranges of the dimensions where these
suffice. Otherwise the hints decide, and the trace records a guard: what was made with these sizes serves all
sizes that meet its guards. Code that needs a plain integer (`range`, slices, NumPy, `struct`) calls
`__index__`, which guards that the size equals its hint. So no expression is lost without a guard.

Expressions are polynomials with integer coefficients over atoms. An atom is a dimension or a quotient,
rounded down, of two polynomials. Equal polynomials are equal sizes, so most rules about sizes are decided
without a guard. `Values` computes any number of expressions for given dimensions in a few vectorized steps.

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
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    _Integer = int
else:
    _Integer = object

GREATEST = 2**31 - 1
"""The greatest size of a dimension, unless its range says another."""
_OVERFLOW = 2.0**62
"""The magnitude that no term of an expression may reach, as `Values` computes with 64 bits."""

Monomial = tuple[int, ...]
"""Numbers of atoms of a trace, sorted, each as often as it is a factor."""
Polynomial = tuple[tuple[Monomial, int], ...]
"""Sorted monomials with their coefficients, none of which is 0."""
Interval = tuple[int, int]
"""The least and the greatest value."""


class Relation(Enum):
    """The demand of a guard on an expression."""

    NOT_NEGATIVE = 0
    ZERO = 1
    NOT_ZERO = 2


@dataclass(frozen=True, slots=True)
class Dimension:
    """The size of a named dimension.

    Args:
        hint: its value in the run that is traced.
        least, greatest: the values for which the trace may be used. Sizes of 0 and 1 have traces of their
            own.
    """

    hint: int
    least: int = 2
    greatest: int = GREATEST


@dataclass(frozen=True, slots=True)
class Atom:
    """A dimension with a name, or the quotient of two polynomials, rounded down."""

    name: str
    quotient: tuple[Polynomial, Polynomial] | None = None


Guards = dict[tuple[Relation, "Size"], str]
"""Guards, and where in the code each was recorded first."""


class Trace:
    """The dimensions of sizes, and the guards under which what is made from them is right.

    It is used by one thread.
    """

    def __init__(self, dimensions: Mapping[str, Dimension]) -> None:
        self.dimensions = dict(dimensions)
        self.guards: Guards = {}
        self.atoms: list[Atom] = []
        self._numbers: dict[Atom, int] = {}
        self._hints: list[int] = []
        self._ranges: list[Interval] = []
        for name, dimension in self.dimensions.items():
            self._add(Atom(name), dimension.hint, (dimension.least, dimension.greatest))

    def size(self, name: str) -> Size:
        """Return the size of a dimension."""
        return Size(self, (((self._numbers[Atom(name)],), 1),))

    @contextmanager
    def within(self, dimensions: Mapping[str, Dimension]) -> Iterator[Guards]:
        """Use other hints and narrower ranges in a block, and yield the guards of the block alone."""
        before = self.dimensions, self.guards, self._hints, self._ranges
        self.dimensions, self.guards = {**self.dimensions, **dimensions}, {}
        self._hints, self._ranges = [], []
        try:
            for atom in self.atoms:
                self._evaluate(atom)
            yield self.guards
        finally:
            self.dimensions, self.guards, hints, ranges = before
            # Atoms of the block remain, with the values of the trace.
            self._hints, self._ranges = hints, ranges
            for atom in self.atoms[len(hints) :]:
                self._evaluate(atom)

    def _evaluate(self, atom: Atom) -> None:
        """Append the hint and the range of the next atom."""
        if atom.quotient is None:
            dimension = self.dimensions[atom.name]
            self._hints.append(dimension.hint)
            self._ranges.append((dimension.least, dimension.greatest))
            return
        above, below = atom.quotient
        self._hints.append(self.hint(above) // (self.hint(below) or 1))
        self._ranges.append(_quotient_range(self.range(above), self.range(below)))

    def _add(self, atom: Atom, hint: int, range: Interval) -> int:
        self._numbers[atom] = number = len(self.atoms)
        self.atoms.append(atom)
        self._hints.append(hint)
        self._ranges.append(range)
        return number

    def hint(self, polynomial: Polynomial) -> int:
        """Return the value of a polynomial for the hints."""
        hints = self._hints
        return sum([c * math.prod([hints[atom] for atom in monomial]) for monomial, c in polynomial])

    def range(self, polynomial: Polynomial) -> Interval:
        """Return bounds of the values of a polynomial."""
        least = greatest = 0
        for monomial, coefficient in polynomial:
            ranges = [self._ranges[atom] for atom in monomial]
            ends = reduce(_product_range, ranges, (coefficient, coefficient))
            least, greatest = least + ends[0], greatest + ends[1]
        return least, greatest

    def quotient(self, above: Polynomial, below: Polynomial) -> Polynomial:
        """Return a polynomial for a quotient, rounded down. `below` is not 0 for any sizes in range."""
        whole, rest = _divided(above, below)
        bounds, divisors = self.range(rest), self.range(below)
        if bounds[0] >= 0 and bounds[1] < divisors[0]:
            return whole
        atom = Atom(f"({self.text(rest)}//({self.text(below)}))", (rest, below))
        number = self._numbers.get(atom)
        if number is None:
            hint = self.hint(rest) // self.hint(below)
            number = self._add(atom, hint, _quotient_range(bounds, divisors))
        return _sum(whole, (((number,), 1),))

    def holds(self, relation: Relation, polynomial: Polynomial) -> bool:
        """Return whether a polynomial meets a relation, by its range or else by the hints and a guard."""
        least, greatest = self.range(polynomial)
        if relation is Relation.NOT_NEGATIVE:
            if least >= 0 or greatest < 0:
                return least >= 0
        elif not least <= 0 <= greatest or _never_zero(polynomial):
            return relation is Relation.NOT_ZERO
        elif least == greatest == 0:
            return relation is Relation.ZERO
        value = self.hint(polynomial)
        if relation is Relation.NOT_NEGATIVE:
            is_met = value >= 0
            if not is_met:
                polynomial = _sum(_scaled(polynomial, -1), _constant(-1))
            self._guard(Relation.NOT_NEGATIVE, polynomial)
            return is_met
        is_zero = value == 0
        self._guard(Relation.ZERO if is_zero else Relation.NOT_ZERO, polynomial)
        return is_zero is (relation is Relation.ZERO)

    def _guard(self, relation: Relation, polynomial: Polynomial) -> None:
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_globals is globals():
            frame = frame.f_back
        self.guards.setdefault(
            (relation, Size(self, polynomial)), f"{frame.f_code.co_filename}:{frame.f_lineno}"
        )

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

    __slots__ = ("_hash", "polynomial", "trace")

    trace: Trace
    polynomial: Polynomial
    _hash: int

    def __new__(cls, trace: Trace, polynomial: Polynomial) -> Size:
        """Return a new size; `polynomial` is not constant."""
        self = object.__new__(cls)
        self.trace, self.polynomial = trace, polynomial
        self._hash = hash((id(trace), polynomial))
        return self

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> type:
            """The class that `isinstance` sees."""
            return int

    @property
    def hint(self) -> int:
        """The value in the run that is traced."""
        return self.trace.hint(self.polynomial)

    def __repr__(self) -> str:
        return f"<{self.trace.text(self.polynomial)}>"

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return format(self.__index__(), specification) if specification else repr(self)

    def __hash__(self) -> int:
        return self._hash

    def __index__(self) -> int:
        value = self.hint
        self.trace.holds(Relation.ZERO, _sum(self.polynomial, _constant(-value)))
        return value

    __int__ = __trunc__ = __floor__ = __ceil__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __bool__(self) -> bool:
        return self.trace.holds(Relation.NOT_ZERO, self.polynomial)

    def __add__(self, other: Any) -> Any:
        return self._with(other, _sum)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: _sum(a, _scaled(b, -1)))

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: _sum(_scaled(a, -1), b))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (list, tuple)):
            return other * self.__index__()
        return self._with(other, _product)

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self.trace_value(_scaled(self.polynomial, -1))

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
        return self.__index__() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.__index__()

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
        difference = self._minus(other)
        return False if difference is None else self.trace.holds(Relation.ZERO, difference)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __ge__(self, other: Any) -> bool:
        difference = self._minus(other)
        if difference is None:
            return self.__index__() >= float(other)
        return self.trace.holds(Relation.NOT_NEGATIVE, difference)

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __le__(self, other: Any) -> bool:
        difference = self._minus(other)
        if difference is None:
            return self.__index__() <= float(other)
        return self.trace.holds(Relation.NOT_NEGATIVE, _scaled(difference, -1))

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
        return Size(self.trace, polynomial)

    def _polynomial_of(self, other: Any) -> Polynomial | None:
        """Return another integer as a polynomial; None for what is no integer."""
        if type(other) is Size:
            if other.trace is not self.trace:
                raise ValueError("sizes of two traces")
            return other.polynomial
        if isinstance(other, (int, np.integer)):
            return _constant(int(other))
        return None

    def _with(self, other: Any, operation: Callable[[Polynomial, Polynomial], Polynomial]) -> Any:
        own = self._polynomial_of(other)
        if own is None:
            return NotImplemented
        return self.trace_value(operation(self.polynomial, own))

    def _divided(self, above: Any, below: Any) -> Any:
        first, second = self._polynomial_of(above), self._polynomial_of(below)
        if first is None or second is None:
            return NotImplemented
        if not second or (type(below) is Size and not below):
            raise ZeroDivisionError("integer division or modulo by zero")
        return self.trace_value(self.trace.quotient(first, second))

    def _minus(self, other: object) -> Polynomial | None:
        own = self._polynomial_of(other)
        return None if own is None else _sum(self.polynomial, _scaled(own, -1))


def hint_of(value: int) -> int:
    """Return the value of a size in the traced run, without a guard; a plain integer is its own hint."""
    return value.hint if type(value) is Size else value


class Values:
    """Expressions that are computed together for given dimensions.

    The arithmetic is stored as arrays: monomials by their atoms, terms by monomial and coefficient, and
    quotients in levels, each of which needs only atoms of lower levels.

    Args:
        sizes: sizes of one trace and plain integers.
    """

    def __init__(self, sizes: Iterable[int]) -> None:
        sizes = list(sizes)
        traced = [each for each in sizes if type(each) is Size]
        self.names: tuple[str, ...] = ()
        unique: dict[Polynomial, int] = {}
        own = [each.polynomial if type(each) is Size else _constant(int(each)) for each in sizes]
        self._gather = np.array([unique.setdefault(each, len(unique)) for each in own], np.intp)
        atoms = traced[0].trace.atoms if traced else []
        self._levels, order = _levels_of(atoms, unique)
        self.names = tuple([atoms[number].name for number in order if atoms[number].quotient is None])
        self._steps = [
            (
                _Terms([_numbered(atoms[number].quotient[0], order) for number in level]),  # type: ignore[index]
                _Terms([_numbered(atoms[number].quotient[1], order) for number in level]),  # type: ignore[index]
            )
            for level in self._levels
        ]
        self._last = _Terms([_numbered(polynomial, order) for polynomial in unique])

    def __call__(self, dimensions: Mapping[str, int]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the values for dimensions by name, in the order of the sizes.

        Raises:
            OverflowError: a term needs more than 62 bits.
        """
        atoms = np.array([1, *[dimensions[name] for name in self.names]], np.int64)
        for above, below in self._steps:
            divisors = below(atoms)
            # A guard of its own refuses a divisor of 0.
            atoms = np.concatenate([atoms, above(atoms) // np.where(divisors == 0, 1, divisors)])
        return self._last(atoms)[self._gather]


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
    """Guards that are checked together for given dimensions."""

    def __init__(self, guards: Iterable[tuple[Relation, Size]]) -> None:
        ordered = sorted(guards, key=lambda each: each[0].value)
        self._values = Values([size for _, size in ordered])
        counts = [sum(each is relation for each, _ in ordered) for relation in Relation]
        self._ends = counts[0], counts[0] + counts[1]

    def __call__(self, dimensions: Mapping[str, int]) -> bool:
        """Return whether the dimensions meet all guards, and no guard needs more than 62 bits."""
        if not len(self._values._gather):
            return True
        try:
            values = self._values(dimensions)
        except OverflowError:
            return False
        first, second = self._ends
        return bool(
            (values[:first] >= 0).all() and (values[first:second] == 0).all() and (values[second:] != 0).all()
        )


def _levels_of(atoms: Sequence[Atom], unique: Iterable[Polynomial]) -> tuple[list[list[int]], dict[int, int]]:
    """Return the quotients that polynomials need in levels, and new numbers of all atoms from 1 on."""
    needed: set[int] = set()
    pending = [atom for polynomial in unique for monomial, _ in polynomial for atom in monomial]
    while pending:
        number = pending.pop()
        if number not in needed:
            needed.add(number)
            pending += [a for own in atoms[number].quotient or () for monomial, _ in own for a in monomial]
    depth: dict[int, int] = {}
    levels: dict[int, list[int]] = {}
    # An atom follows those that it is made of.
    for number in sorted(needed):
        inner = [depth[a] for own in atoms[number].quotient or () for monomial, _ in own for a in monomial]
        depth[number] = 0 if atoms[number].quotient is None else max(inner, default=0) + 1
        levels.setdefault(depth[number], []).append(number)
    order = [number for level in sorted(levels) for number in levels[level]]
    numbered = {number: position for position, number in enumerate(order, 1)}
    return [levels[level] for level in sorted(levels) if level], numbered


def _numbered(polynomial: Polynomial, order: Mapping[int, int]) -> Polynomial:
    return tuple([(tuple([order[atom] for atom in monomial]), c) for monomial, c in polynomial])


def _constant(value: int) -> Polynomial:
    return (((), value),) if value else ()


def _sum(first: Polynomial, second: Polynomial) -> Polynomial:
    terms = dict(first)
    for monomial, coefficient in second:
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return _sorted(terms)


def _scaled(polynomial: Polynomial, factor: int) -> Polynomial:
    return tuple([(monomial, coefficient * factor) for monomial, coefficient in polynomial])


def _product(first: Polynomial, second: Polynomial) -> Polynomial:
    terms: dict[Monomial, int] = {}
    for left, a in first:
        for right, b in second:
            monomial = tuple(sorted(left + right))
            terms[monomial] = terms.get(monomial, 0) + a * b
    return _sorted(terms)


def _sorted(terms: Mapping[Monomial, int]) -> Polynomial:
    return tuple(sorted([each for each in terms.items() if each[1]]))


def _divided(above: Polynomial, below: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Return `whole` and `rest` with above = whole * below + rest."""
    if above == below:
        return _constant(1), ()
    if len(below) != 1:
        whole = _multiple(above, below)
        return ((), above) if whole is None else (whole, ())
    ((divisor, factor),) = below
    terms, rest = dict[Monomial, int](), dict[Monomial, int]()
    for monomial, coefficient in above:
        left = _without(monomial, divisor)
        if left is None:
            rest[monomial] = coefficient
            continue
        # The rest of a constant lies between 0 and the divisor; other terms are divided whole or not at all.
        quotient, over = divmod(coefficient, factor)
        if over and monomial:
            rest[monomial] = coefficient
            continue
        terms[left] = quotient
        if over:
            rest[monomial] = over
    return _sorted(terms), _sorted(rest)


def _multiple(above: Polynomial, below: Polynomial) -> Polynomial | None:
    """Return a polynomial divided by one of several terms; None: the quotient is no polynomial."""
    rest, whole = above, Polynomial()
    lead, factor = below[-1]
    while rest:
        left, (quotient, over) = _without(rest[-1][0], lead), divmod(rest[-1][1], factor)
        if left is None or over or len(whole) > len(above):
            return None
        term: Polynomial = ((left, quotient),)
        whole, rest = _sum(whole, term), _sum(rest, _scaled(_product(term, below), -1))
    return whole


def _without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """Return a monomial without the factors of another; None if it lacks one."""
    left = list(monomial)
    for atom in divisor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _never_zero(polynomial: Polynomial) -> bool:
    """Return whether a constant that no common divisor of the other coefficients divides rules out zero."""
    constant = sum([coefficient for monomial, coefficient in polynomial if not monomial])
    divisor = math.gcd(*[coefficient for monomial, coefficient in polynomial if monomial])
    return divisor != 0 and constant % divisor != 0


def _product_range(first: Interval, second: Interval) -> Interval:
    ends = [a * b for a in first for b in second]
    return min(ends), max(ends)


def _quotient_range(above: Interval, below: Interval) -> Interval:
    """Return bounds of a quotient, rounded down, by a divisor that is not 0."""
    divisors = [each for each in (*below, -1, 1) if each and below[0] <= each <= below[1]]
    ends = [a // b for a in above for b in divisors]
    return min(ends), max(ends)
