"""Compute traced sizes and check guards for given dimensions, all together.

Sizes of a plan have many words but few expressions, of which most are linear. A generated function evaluates
them: straight-line code of Python integers takes about four microseconds for thirty, where arrays of terms
took sixty, and is exact. Compiling it takes milliseconds, so another thread does it. Meanwhile evaluations go
through the expressions themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from opendml.later import later
from opendml.program.atoms import Atom, Relation, meets
from opendml.program.polynomials import Monomial, Polynomial, constant_polynomial
from opendml.program.sizes import Size, greatest
from opendml.program.traced_floats import TracedFloat, TracedWord

if TYPE_CHECKING:
    from opendml.program.trace import Trace

IntegerArray = np.ndarray[Any, np.dtype[np.int64]]
Guard = tuple[Relation, Size | TracedFloat]
_Function = Callable[[Mapping[str, int]], "tuple[int, ...] | None"]

_GREATEST = 2**62
"""The magnitude that no value may reach, as kernels compute with 64 bits."""
_WALKS = 2
"""The evaluation after which a function is generated. Most plans of fixed sizes have one."""
_WALKS_BETWEEN = 64
"""Evaluations after which a function is generated again, since the child of a fork does not have the job."""
_LONG = 32
"""Operands of a sum or product in the source of a function, at most; the compiler nests operators."""
_NONE = np.empty(0, np.int64)
_FAILS = {Relation.NOT_NEGATIVE: "< 0", Relation.ZERO: "!= 0", Relation.NOT_ZERO: "== 0"}


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


class SizeTable:
    """Sizes over a list of atoms. If it is no `Trace`, they have no hints, and can only be evaluated.

    Attributes:
        atoms: the atoms. The parts of an atom come before it.
    """

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self._sizes: dict[Polynomial, Size] = {}

    def of(self, polynomial: Polynomial) -> Size:
        """Return the size of a polynomial that is not constant."""
        known = self._sizes.get(polynomial)
        if known is None:
            known = self._sizes[polynomial] = Size(cast("Trace", self), polynomial)
        return known

    def value(self, polynomial: Polynomial, sizes: Mapping[str, int]) -> int:
        """Return the value of a polynomial for dimensions by name, which may be sizes of another trace."""
        return Evaluation(self.atoms, sizes).value(polynomial)

    def text(self, polynomial: Polynomial) -> str:
        """Return a polynomial as text, in which equal polynomials of a trace are equal."""
        parts = []
        for monomial, coefficient in polynomial:
            factors = [self.atoms[atom].name for atom in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            parts.append(("-" if coefficient < 0 else "+") + "*".join(factors))
        return "".join(parts).removeprefix("+")


class Conditions:
    """Guards that are checked together for given dimensions, and sizes that are computed if they hold.

    Args:
        guards: the guards, of one trace.
        others: sizes of the same trace, words, and plain integers.
    """

    def __init__(self, guards: Iterable[Guard], others: Iterable[int] = ()) -> None:
        guards, values = list(guards), list(others)
        self._guards = [(relation, each) for relation, each in guards if type(each) is Size]
        self._numbers = [(relation, each) for relation, each in guards if type(each) is TracedFloat]
        self._words = [(position, each) for position, each in enumerate(values) if type(each) is TracedWord]
        numbers = [*[number for _, number in self._numbers], *[word.number for _, word in self._words]]
        self._inner = list(dict.fromkeys(size for number in numbers for size in number.sizes()))
        sizes = [*[0 if type(each) is TracedWord else each for each in values], *self._inner]
        unique: dict[Polynomial, int] = {}
        own = [each.polynomial if type(each) is Size else constant_polynomial(int(each)) for each in sizes]
        self._gather = np.array([unique.setdefault(each, len(unique)) for each in own], np.intp)
        self._count, self._unique = len(values), list(unique)
        traced = [*[each for _, each in self._guards], *[each for each in sizes if type(each) is Size]]
        if len({id(each.trace) for each in traced}) > 1:
            raise ValueError("sizes of two traces")
        self._atoms: Sequence[Atom] = traced[0].trace.atoms if traced else ()
        self._function: _Function | None = None
        self._walks = 0

    def __call__(self, dimensions: Mapping[str, int]) -> bool:
        """Return whether the dimensions meet all guards, and no value needs more than 62 bits."""
        return self.values(dimensions) is not None

    def values(self, dimensions: Mapping[str, int]) -> IntegerArray | None:
        """Return the values of the others; None if the dimensions do not meet all guards, or a value needs
        more than 62 bits."""
        try:
            return self._values(dimensions)
        except ArithmeticError:
            return None

    def _values(self, dimensions: Mapping[str, int]) -> IntegerArray | None:
        found = (self._function or self._walk)(dimensions)
        if not found:
            return None if found is None else _NONE
        if max(found) >= _GREATEST or min(found) <= -_GREATEST:
            raise OverflowError("a size needs more than 62 bits")
        values = np.array(found, np.int64)[self._gather]
        if not self._inner:
            return values
        inner = dict(zip(self._inner, values[self._count :].tolist(), strict=True))
        if not all(meets(relation, number.value(inner)) for relation, number in self._numbers):
            return None
        values = values[: self._count]
        for position, word in self._words:
            values[position] = word.bits_of(word.number.value(inner))
        return values

    def _walk(self, dimensions: Mapping[str, int]) -> tuple[int, ...] | None:
        """Go through the expressions, and have a function generated for later evaluations."""
        self._walks += 1
        if self._walks % _WALKS_BETWEEN == _WALKS:
            later(self._generate)
        value = Evaluation(self._atoms, dimensions).value
        for relation, size in self._guards:  # Before all that only the results need.
            if not meets(relation, value(size.polynomial)):
                return None
        return tuple([value(polynomial) for polynomial in self._unique])

    def _generate(self) -> None:
        if self._function is None:
            self._function = _function_of(self._guards, self._unique, self._atoms)


class Values:
    """Expressions that are computed together for given dimensions.

    Args:
        sizes: sizes of one trace, words, and plain integers.
    """

    def __init__(self, sizes: Iterable[int]) -> None:
        self._conditions = Conditions((), sizes)

    def __call__(self, dimensions: Mapping[str, int]) -> IntegerArray:
        """Return the values for dimensions by name, in the order of the sizes.

        Raises:
            OverflowError: a value needs more than 62 bits.
        """
        values = self._conditions._values(dimensions)
        assert values is not None
        return values


def _function_of(
    guards: Iterable[tuple[Relation, Size]], results: Iterable[Polynomial], atoms: Sequence[Atom]
) -> _Function:
    """Return a function that computes polynomials for dimensions by name, or None if a guard fails.

    Its source has numbers and names of its own alone, because names of dimensions come from files. Guards
    are before all that only the results need.
    """
    source = _Source(atoms)
    for relation, size in guards:
        value = source.value(size.polynomial)
        source.lines.append(f"if {value} {_FAILS[relation]}: return None")
    values = [source.value(polynomial) for polynomial in results]
    source.lines.append(f"return ({''.join(f'{value}, ' for value in values)})")
    text = "".join(f"    {line}\n" for line in source.lines)
    defined: dict[str, Any] = {}
    exec(compile(f"def values(sizes):\n{text}", f"<{__name__}>", "exec"), source.names, defined)
    function: _Function = defined["values"]
    return function


class _Source:
    """Lines of Python that compute atoms, and the names that they use."""

    def __init__(self, atoms: Sequence[Atom]) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"prod": math.prod}
        self._atoms, self._computed = atoms, set[int]()

    def value(self, polynomial: Polynomial) -> str:
        """Return an expression for a polynomial, behind lines that compute its atoms."""
        for number in self._missing(polynomial):
            self._computed.add(number)
            self.lines.append(f"v{number} = {self._atom(number)}")
        return _sum_of(polynomial)

    def _missing(self, polynomial: Polynomial) -> list[int]:
        """Return the atoms to compute, in an order in which each follows those that it is made of."""
        needed, pending = set[int](), [polynomial]
        while pending:
            for monomial, _ in pending.pop():
                for number in monomial:
                    if number not in needed and number not in self._computed:
                        needed.add(number)
                        pending += [self._atoms[number].above or (), self._atoms[number].below or ()]
        return sorted(needed)

    def _atom(self, number: int) -> str:
        atom = self._atoms[number]
        if atom.above is None:
            self.names[f"n{number}"] = atom.name
            return f"sizes[n{number}]"
        above = _sum_of(atom.above)
        return f"max({above}, 0)" if atom.below is None else f"({above}) // ({_sum_of(atom.below)})"


def _sum_of(polynomial: Polynomial) -> str:
    terms = [_product_of(monomial, coefficient) for monomial, coefficient in polynomial] or ["0"]
    return f"sum(({', '.join(terms)}))" if len(terms) > _LONG else " + ".join(terms)


def _product_of(monomial: Monomial, coefficient: int) -> str:
    factors = [f"v{atom}" for atom in monomial]
    if coefficient != 1 or not factors:
        factors.insert(0, hex(coefficient))  # Decimal digits are limited.
    return f"prod(({', '.join(factors)}))" if len(factors) > _LONG else " * ".join(factors)
