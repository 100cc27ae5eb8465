"""Cases of tests with many parameters: every two choices meet, but not all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import combinations, product
from typing import Any

import pytest

Place = tuple[int, int]
"""The number of a parameter, and of one of its choices."""


def pairwise(**choices: Iterable[Any]) -> pytest.MarkDecorator:
    """Parametrizes a test by few cases in which each choice of each parameter meets each choice of every
    other one: what goes wrong is nearly always up to one or two choices, and all of them together take long
    to compile. The cases are always the same."""
    options = [list(each) for each in choices.values()]
    cases = [[options[number][at] for number, at in enumerate(case)] for case in _cases(map(len, options))]
    return pytest.mark.parametrize(list(choices), cases, ids=["-".join(map(_name, case)) for case in cases])


def _cases(counts: Iterable[int]) -> list[tuple[int, ...]]:
    """Of each parameter the number of a choice, one for each case."""
    parameters = [[(number, at) for at in range(count)] for number, count in enumerate(counts)]
    met: Counter[frozenset[Place]] = Counter()
    cases = []
    for one, other in combinations(parameters, 2):
        for a, b in product(one, other):
            if not met[frozenset({a, b})]:
                case = _with_others({a, b}, parameters, met)
                met.update(map(frozenset, combinations(case, 2)))
                cases.append(tuple(at for _, at in sorted(case)))
    return sorted(cases)


def _with_others(
    case: set[Place], parameters: Iterable[list[Place]], met: Counter[frozenset[Place]]
) -> set[Place]:
    """Two choices with those of the other parameters that have met fewest of them, and least often."""

    def meetings(place: Place) -> tuple[int, int]:
        numbers = [met[frozenset({place, each})] for each in case]
        return len(numbers) - numbers.count(0), sum(numbers)

    for places in parameters:
        if case.isdisjoint(places):
            case = case | {min(places, key=meetings)}
    return case


def _name(choice: Any) -> str:
    if isinstance(choice, partial):
        return "-".join(map(_name, choice.args))
    return getattr(choice, "__name__", None) or getattr(choice, "name", None) or str(choice)
