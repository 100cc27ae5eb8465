"""One test tries all cases, and shows which fail."""

from __future__ import annotations

import inspect

import pytest

from tests.for_each import for_each


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
