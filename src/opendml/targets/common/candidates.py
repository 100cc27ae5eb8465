"""Ways to run a kernel as candidates, of which the cheapest is taken.

A candidate either estimates the cycles of a kernel and names what takes them, or refuses it with a reason. A
target has one table of candidates for each kind of kernel. Estimates need only be right relative to each
other: a part that all candidates of a table have in common may be left out.

Choosing and constructing are separate. The function `decide` compares costs. It returns a `Decision`, whose
choices have plain numbers. The method `Decision.construct` makes launches from these numbers and the sizes of
a kernel, by integer arithmetic alone. So a kept decision serves launches of other sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from opendml.late_dataclass import dataclass

Query = TypeVar("Query")
Choice = TypeVar("Choice")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A candidate cannot run a kernel; `reason` says why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Estimate(Generic[Choice]):
    """A candidate can run a kernel, as `choice` says."""

    choice: Choice
    terms: Mapping[str, float]
    """Cycles until the launches end, by what takes them."""
    work: float = 0.0
    """Cycles of all cores together. Of candidates that end at the same time, the one with less is taken."""
    name: str = ""
    """The name of the choice, if the candidate has several kinds of choices."""

    @property
    def cycles(self) -> float:
        """The sum of all terms."""
        return sum(self.terms.values())

    @property
    def order(self) -> tuple[float, float]:
        """A key that is less for better estimates."""
        return self.cycles, self.work


@dataclass(frozen=True, slots=True)
class Candidate(Generic[Query, Choice, Result]):
    """One way to run kernels. It has either `construct` or `then`."""

    name: str
    estimate: Callable[[Query], Estimate[Choice] | Refusal]
    """Prices the best choice for a query."""
    construct: Callable[[Query, Choice], Result] | None = None
    """Makes launches from a query and a choice, without floats and without comparing costs."""
    then: Callable[[Query, Choice], tuple[Table[Any, Result], Any]] | None = None
    """Returns the table, and the query for it, that decide the rest."""
    alternatives: Callable[[Query], Iterable[Estimate[Choice]]] | None = None
    """Prices all choices of a candidate that searches for the best one. Only people and tests ask for it."""


Table = tuple[Candidate[Query, Any, Result], ...]
"""The ways to run the kernels of one kind."""


@dataclass(frozen=True, slots=True)
class Decision(Generic[Result]):
    """The candidates that were taken, one table after another, and their choices in plain numbers."""

    path: tuple[tuple[Candidate[Any, Any, Result], Any], ...]

    def construct(self, query: Any) -> Result:
        """Return the launches for a query, which may have other sizes than the one that was decided."""
        *earlier, (last, choice) = self.path
        for candidate, own in earlier:
            assert candidate.then is not None
            _, query = candidate.then(query, own)
        assert last.construct is not None
        return last.construct(query, choice)


def decide(table: Table[Query, Result], query: Query) -> Decision[Result]:
    """Return the cheapest candidates for a query; the errors are those of `cheapest_estimate`."""
    best, estimate = cheapest_estimate(table, query)
    path = ((best, estimate.choice),)
    if best.then is None:
        return Decision(path)
    return Decision((*path, *decide(*best.then(query, estimate.choice)).path))


def cheapest_estimate(
    table: Table[Query, Result], query: Query
) -> tuple[Candidate[Query, Any, Result], Estimate[Any]]:
    """Return the cheapest candidate of a table, and its estimate; of equal ones, the first.

    Raises:
        LookupError: all candidates refuse.
    """
    best, taken = None, None
    for candidate in table:
        answer = candidate.estimate(query)
        if isinstance(answer, Estimate) and (best is None or answer.order < best.order):
            best, taken = answer, candidate
    if best is None or taken is None:
        raise LookupError(f"no way to run {query}")
    return taken, best


def cheapest(table: Table[Query, Result], query: Query) -> Result:
    """Return what the cheapest candidates construct for a query. The errors are those of `decide`."""
    return decide(table, query).construct(query)
