"""Cases in which every two choices meet."""

from __future__ import annotations

from itertools import combinations

from tests.pairwise import pairwise

CHOICES = {"letter": "abc", "number": range(5), "sign": (-1, 1), "truth": (False, True)}


def test_every_two_choices_meet_in_hardly_more_cases_than_two_parameters_have() -> None:
    names, cases = pairwise(**CHOICES).args
    assert names == list(CHOICES)
    for a, b in combinations(range(len(names)), 2):
        wanted = {(x, y) for x in CHOICES[names[a]] for y in CHOICES[names[b]]}
        assert {(case[a], case[b]) for case in cases} == wanted
    assert len(cases) <= 18


def test_two_parameters_have_all_cases() -> None:
    _, cases = pairwise(letter="abc", number=range(5)).args
    assert len(cases) == 15


def test_cases_are_named_by_their_choices() -> None:
    assert pairwise(kind=[int], number=[3], sign=[-1]).kwargs["ids"] == ["int-3--1"]
