"""Names that misspelt ones may be for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import opendml as dml
from opendml.json_files.node import MOST_MESSAGES, Failures, suggestion
from opendml.runtime.graphs.model import MOST_HINTS
from opendml.spelling import LONGEST_COMPARED, MOST_COMPARED, close_matches


def test_a_name_is_compared_with_no_more_than_so_many_others() -> None:
    taken = 0

    def names() -> Iterator[str]:
        nonlocal taken
        for number in range(10 * MOST_COMPARED):
            taken += 1
            yield f"resource{number}"

    assert close_matches("resourse7", names()) == ["resource7"]
    assert taken == MOST_COMPARED


def test_long_names_are_not_compared() -> None:
    long = "a" * LONGEST_COMPARED
    assert close_matches(long, [long + "b"]) == []
    assert close_matches(long + "b", [long]) == []
    assert close_matches(long[1:], [long]) == [long]


def test_names_in_files_are_looked_for_among_the_first_ones() -> None:
    known = {f"resource{number}": None for number in range(2 * MOST_COMPARED)}
    assert suggestion("ource3", known) == '; did you mean "resource3"?'
    assert suggestion(f"other {2 * MOST_COMPARED}", known) == ""


def test_one_error_lists_so_many_mistakes_and_says_that_there_are_more() -> None:
    failures = Failures()
    with pytest.raises(dml.InvalidArgument) as caught:  # noqa: PT012 - the last of them raises
        for number in range(MOST_MESSAGES + 1):
            with failures.collected():
                raise dml.InvalidArgument(f"mistake {number}")
    assert caught.value.failures[MOST_MESSAGES - 1] == f"mistake {MOST_MESSAGES - 1}"
    assert caught.value.failures[MOST_MESSAGES:] == ("there are more mistakes, which are not listed",)


def test_the_first_unknown_names_of_a_call_get_a_hint() -> None:
    graph = dml.Graph()
    model = graph.compile({"y": graph.input("input_tensor", dml.FLOAT32, [1]) + 1.0}, "reference")
    given = {f"input_tensr{number}": np.zeros(1, np.float32) for number in range(2 * MOST_HINTS)}
    with pytest.raises(dml.InvalidArgument) as caught:
        model(**given)
    assert str(caught.value).count("did you mean input_tensor?") == MOST_HINTS
    assert str(caught.value).count("is unknown") == 2 * MOST_HINTS
