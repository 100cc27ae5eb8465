"""Ways to run a kernel as candidates, of which the cheapest is taken.

A candidate says whether it can run what is asked for, with which parameters, and how many cycles that takes,
by what takes them; or why it cannot. A target has one table of them. Estimates need only be right relative to
each other: where two ways have the same part, it may be left out of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Query = TypeVar("Query")
Parameters = TypeVar("Parameters")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A candidate cannot run a kernel; `reason` says why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Estimate(Generic[Parameters]):
    """A candidate can run a kernel with these parameters; `terms` are cycles by what takes them."""

    parameters: Parameters
    terms: Mapping[str, float]

    @property
    def cycles(self) -> float:
        """All of them."""
        return sum(self.terms.values())


@dataclass(frozen=True, slots=True)
class Candidate(Generic[Query, Parameters, Result]):
    """One way to run kernels: what it says of one, and what runs it with its parameters."""

    name: str
    estimate: Callable[[Query], Estimate[Parameters] | Refusal]
    result: Callable[[Query, Parameters], Result]


@dataclass(frozen=True, slots=True)
class Considered:
    """A candidate's answer, for people and tests to read."""

    name: str
    answer: Estimate[Any] | Refusal

    @property
    def cycles(self) -> float:
        """Infinite if it is refused."""
        return self.answer.cycles if isinstance(self.answer, Estimate) else float("inf")


def cheapest(table: Iterable[Candidate[Query, Any, Result]], query: Query) -> Result:
    """What the cheapest candidate makes of a query; of equal ones, the first.

    Raises:
        LookupError: all of them refuse.
    """
    best, parameters, least = None, None, float("inf")
    for candidate in table:
        answer = candidate.estimate(query)
        if isinstance(answer, Estimate) and (cycles := answer.cycles) < least:
            best, parameters, least = candidate, answer.parameters, cycles
    if best is None:
        raise LookupError(f"no way to run {query}")
    return best.result(query, parameters)


def considered(table: Iterable[Candidate[Query, Any, Any]], query: Query) -> Iterator[Considered]:
    """The answers of all candidates."""
    for candidate in table:
        yield Considered(candidate.name, candidate.estimate(query))
