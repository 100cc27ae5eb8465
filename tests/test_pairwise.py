"""Helpers of other tests: `pairwise`, `for_each` and `made_once`."""

from __future__ import annotations

import inspect
from itertools import combinations
from pathlib import Path

import pytest

from tests.conftest import MadeOnce
from tests.for_each import for_each
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


def test_all_cases_are_tried_and_those_that_fail_are_shown() -> None:
    tried = []

    @for_each("number", [1, 2, 3, 4])
    def are_odd(number: int) -> None:
        tried.append(number)
        assert number % 2

    with pytest.raises(ExceptionGroup, match="2 of 4 cases") as caught:
        are_odd()
    assert tried == [1, 2, 3, 4]
    assert [error.__notes__ for error in caught.value.exceptions] == [
        ["of {'number': 2}"],
        ["of {'number': 4}"],
    ]


def test_cases_of_several_values_meet_the_fixtures_of_the_test() -> None:
    met = []

    @for_each(("name", "number"), [("a", 1), ("b", 2)])
    def meet(name: str, tmp_path: str, number: int) -> None:
        met.append((name, tmp_path, number))

    assert list(inspect.signature(meet).parameters) == ["tmp_path"]
    meet(tmp_path="folder")
    assert met == [("a", "folder", 1), ("b", "folder", 2)]


def test_a_case_cannot_skip_the_others() -> None:
    @for_each("number", [1, 2])
    def skip(number: int) -> None:
        pytest.skip()

    with pytest.raises(AssertionError, match="cannot be skipped"):
        skip()


def test_a_folder_is_made_once_and_again_after_a_failure(made_once: MadeOnce) -> None:
    made: list[Path] = []

    def fail(folder: Path) -> None:
        (folder / "part").mkdir()
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        made_once("example", fail)
    folders = [made_once("example", made.append) for _ in range(2)]
    assert made == folders[:1] == folders[1:]
    assert list(folders[0].iterdir()) == []
