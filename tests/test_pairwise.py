"""Helpers of the tests, and paragraphs of the project."""

from __future__ import annotations

import inspect
from itertools import combinations

import pytest

from tests.for_each import for_each
from tests.pairwise import pairwise
from tools.paragraphs import WIDTH, mended, torn, written_files

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


LONG = "word " * 12 + "end"

TORN = {
    "comment": (f"# {LONG} and\n# more.\nx = 1\n", f"# {LONG} and more.\nx = 1\n"),
    "comment in a block": (
        f"if x:\n    # {LONG}\n    # a b c\n    y = 1\n",
        f"if x:\n    # {LONG} a b c\n    y = 1\n",
    ),
    "docstring": ('"""First\n\nIt goes\non.\n"""\n', '"""First\n\nIt goes on.\n"""\n'),
    "first line of a docstring": (
        f'def f() -> None:\n    """{LONG}\n    a\n    b."""\n',
        f'def f() -> None:\n    """{LONG} a b."""\n',
    ),
    "docstring of a constant": (
        'X = 1\n"""Bytes that\none thread loads."""\n',
        'X = 1\n"""Bytes that one thread loads."""\n',
    ),
    "entry whose text fell out of its indentation": (
        '"""F.\n\nArgs:\n    a: only whether\n    they are\n        even.\n"""\n',
        '"""F.\n\nArgs:\n    a: only whether they are even.\n"""\n',
    ),
}

WHOLE = {
    "list": "# Two:\n# - one\n# - two\n",
    "numbers": "# 1. one\n# 2. two\n",
    "indented formula": '"""F:\n\n    x = 1\n    y = 2\n"""\n',
    "example": '"""F:\n\n>>> f()\n1\n"""\n',
    "names": "# `a`: one\n# `b`: two\n",
    "table": "# a  b\n# 1  2\n",
    "lead to a list": "# These:\n# are the next.\n",
    "entries": '"""F.\n\nArgs:\n    a: one.\n    b: two.\n\nReturns:\n    A number.\n"""\n',
    "directive": "# fmt: off\n# noqa\nx = 1\n",
    "string": 'x = """a\nb"""\n',
    "code": "x = 1  # a\ny = 2  # b\n",
    "word that does not fit with the quotes": f'"""{"x" * (WIDTH - 6)}\nb."""\n',
}


@pytest.mark.parametrize("case", TORN)
def test_a_torn_paragraph_is_found_and_filled(case: str) -> None:
    source, expected = TORN[case]
    assert torn(source)
    assert mended(source) == expected
    assert not torn(expected)


@pytest.mark.parametrize("case", WHOLE)
def test_all_else_stays(case: str) -> None:
    assert torn(WHOLE[case]) == []
    assert mended(WHOLE[case]) == WHOLE[case]


def test_no_paragraph_of_the_project_is_torn() -> None:
    """`python -m tools.paragraphs --write` fills those that are."""
    files = written_files()
    assert files
    assert {str(path): found for path in files if (found := torn(path.read_text("utf-8")))} == {}
