"""Traced numbers as JSON, from which another process evaluates them for the sizes of its runs.

A plain number stays as it is. A size is the text of its place in a table of polynomials, which has the atoms
that these need. Floats that follow from sizes, and their bits, are lists of what they are made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opendml.program.atoms import Atom, Relation
from opendml.program.polynomials import Polynomial, from_terms
from opendml.program.size_values import Guard, SizeTable
from opendml.program.sizes import Size
from opendml.program.traced_floats import FLOAT_OPERATIONS, TracedFloat, TracedWord

if TYPE_CHECKING:
    from opendml.program.trace import Trace

_BITS = "bits"


class WrittenSizes:
    """Makes JSON of numbers of one trace.

    >>> from opendml.program.size_values import Values
    >>> from opendml.program.atoms import Dimension
    >>> from opendml.program.trace import Trace
    >>> trace = Trace({"batch": Dimension(4), "length": Dimension(50)})
    >>> written = WrittenSizes()
    >>> data = [written(each) for each in (7, trace.size("length"), trace.size("length") // 8 * 3)]
    >>> data
    [7, '0', '1']
    >>> read = ReadSizes(written.table())
    >>> Values(map(read, data))({"length": 17}).tolist()
    [7, 17, 6]
    """

    def __init__(self) -> None:
        self._places: dict[Polynomial, str] = {}
        self._trace: Trace | None = None

    def __call__(self, number: Any) -> Any:
        """Return a number as JSON."""
        if type(number) is Size:
            if self._trace is not None and self._trace is not number.trace:
                raise ValueError("sizes of two traces")
            self._trace = number.trace
            return self._places.setdefault(number.polynomial, str(len(self._places)))
        if type(number) is TracedFloat:
            return [number.operation, *map(self, number.operands)]
        if type(number) is TracedWord:
            return [_BITS, number.format, self(number.number)]
        return number

    def guards(self, guards: Iterable[Guard]) -> list[list[Any]]:
        """Return guards as JSON."""
        return [[relation.value, self(number)] for relation, number in guards]

    def table(self) -> dict[str, Any]:
        """Return the table of all sizes so far."""
        atoms = [] if self._trace is None else self._trace.atoms
        needed, pending = set[int](), [*self._places]
        while pending:
            for number in {atom for monomial, _ in pending.pop() for atom in monomial} - needed:
                needed.add(number)
                pending += [each for each in (atoms[number].above, atoms[number].below) if each]
        # An atom follows those that it is made of, and monomials stay sorted.
        numbers = {number: place for place, number in enumerate(sorted(needed))}

        def numbered(polynomial: Polynomial | None) -> Any:
            if polynomial is None:
                return None
            return [[[numbers[atom] for atom in monomial], factor] for monomial, factor in polynomial]

        return {
            "atoms": [
                [
                    atoms[each].name if atoms[each].above is None else "",
                    numbered(atoms[each].above),
                    numbered(atoms[each].below),
                ]
                for each in numbers
            ],
            "polynomials": [numbered(each) for each in self._places],
        }


class ReadSizes:
    """Makes numbers of the JSON of `WrittenSizes`.

    Args:
        table: the table of sizes.
        trace: a trace with their dimensions, to which the sizes are added. None: they can only be evaluated.

    Raises:
        LookupError, TypeError, ValueError: it is damaged.
    """

    def __init__(self, table: dict[str, Any], trace: Trace | None = None) -> None:
        if trace is None:
            own = SizeTable()
            # Atoms keep their numbers, so that terms keep their order.
            own.atoms += [
                Atom(name, *[None if each is None else _written(each) for each in parts])
                for name, *parts in table["atoms"]
            ]
            self._sizes = [own.of(_written(each)) for each in table["polynomials"]]
            return
        numbers = list[int]()
        for name, *parts in table["atoms"]:
            above, below = (None if each is None else _polynomial(each, numbers) for each in parts)
            numbers.append(trace.number(name, above, below))
        self._sizes = [trace.of(_polynomial(each, numbers)) for each in table["polynomials"]]

    def __call__(self, data: Any) -> Any:
        """Return the number of some JSON."""
        if isinstance(data, str):
            return self._sizes[int(data)]
        if not isinstance(data, list):
            return data
        operation, *operands = data
        if operation == _BITS:
            return TracedWord(self(operands[1]), operands[0])
        if operation not in FLOAT_OPERATIONS:
            raise ValueError(f"{operation} is no operation")
        return TracedFloat(operation, *map(self, operands))

    def guards(self, data: Iterable[tuple[int, Any]]) -> list[Guard]:
        """Return the guards of some JSON."""
        return [(Relation(relation), self(number)) for relation, number in data]


def guards_to_json(every: Iterable[tuple[Mapping[str, int], Iterable[Guard]]]) -> list[Any]:
    """Return sizes of dimensions as JSON, each with guards, which may be of a trace of their own."""
    found = list[Any]()
    for sizes, guards in every:
        written = WrittenSizes()
        listed = written.guards(guards)
        found.append([dict(sizes), written.table(), listed])
    return found


def guards_from_json(data: Iterable[Any]) -> list[tuple[Mapping[str, int], list[Guard]]]:
    """Return the sizes of dimensions with guards that `guards_to_json` has made JSON of.

    Raises:
        LookupError, TypeError, ValueError: they are damaged.
    """
    return [(dict(sizes), ReadSizes(table).guards(guards)) for sizes, table, guards in data]


def _written(data: Any) -> Polynomial:
    """Return a polynomial over atoms that have the numbers of the JSON."""
    return tuple([(tuple(monomial), factor) for monomial, factor in data])


def _polynomial(data: Any, numbers: Sequence[int]) -> Polynomial:
    """Return a polynomial over atoms, which have other numbers than in the JSON."""
    return from_terms({
        tuple(sorted([numbers[atom] for atom in monomial])): int(factor) for monomial, factor in data
    })  # fmt: skip
