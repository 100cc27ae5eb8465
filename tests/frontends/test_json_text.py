"""Comments and trailing commas are allowed wherever DxDispatch allows them, and nowhere inside strings."""

from __future__ import annotations

from typing import Any

import pytest

from opendml.errors import InvalidArgument
from opendml.json_files import text as json_text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2,]", [1, 2]),
        ('{"a": 1, }', {"a": 1}),
        ("// first\n[1] // last", [1]),
        ("[1, /* two,\n lines */ 2]", [1, 2]),
        ('{"a": [1, // one\n], }', {"a": [1]}),
        ('["// no comment", "/* nor */ this", ",]"]', ["// no comment", "/* nor */ this", ",]"]),
        (r'["a quote \" // inside"]', ['a quote " // inside']),
        ('["ü"]', ["ü"]),
    ],
)
def test_text_is_read(text: str, value: Any) -> None:
    assert json_text.parse(text) == value


def test_positions_in_errors_count_comments() -> None:
    with pytest.raises(InvalidArgument, match="line 3, column 7"):
        json_text.parse("{\n  /* a,\n b */ 1\n}")


def test_two_commas_stay_an_error() -> None:
    with pytest.raises(InvalidArgument, match="not valid JSON"):
        json_text.parse("[1,,]")


# Each of these took a time that grew with the square of its length: with this one, hours.
_LONG = 400_000


@pytest.mark.parametrize(
    "text",
    [
        '["' + r"\"" * _LONG,
        r"\"" * _LONG,
        '"' * _LONG,
        '["' + "\\\\" * _LONG + '"',
        "/*" * _LONG,
        "/*/" * _LONG,
        "[1" + "," * _LONG + "]",
        "[1" + ", " * _LONG + "]",
        "[1," + " " * _LONG,
    ],
    ids=lambda text: text[:8],
)
def test_reading_takes_time_in_proportion_to_the_text(text: str) -> None:
    with pytest.raises(InvalidArgument, match="not valid JSON"):
        json_text.parse(text)


def test_long_strings_of_escaped_quotes_are_read() -> None:
    assert json_text.parse('["' + r"\"" * _LONG + '"]') == ['"' * _LONG]


@pytest.mark.parametrize("text", ["[1] /*", "[1]/*/", '["a', '["a\\', '["/*"', "[1], /* ]"])
def test_what_is_not_closed_is_an_error(text: str) -> None:
    with pytest.raises(InvalidArgument, match="not valid JSON at line 1"):
        json_text.parse(text)


@pytest.mark.parametrize("depth", [33, 300, 100_000])
@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a": ', "}"), ('{"a": [', "]}")])
def test_deep_nesting_is_refused(depth: int, opened: str, closed: str) -> None:
    with pytest.raises(InvalidArgument, match="more than 32 arrays and objects within each other"):
        json_text.parse(opened * depth + "1" + closed * depth)


def test_nesting_that_models_have_is_read() -> None:
    assert json_text.parse("[" * 32 + '"a"' + "]" * 32)


@pytest.mark.parametrize("text", [r'{"\ud800": 1}', r'["a\udfff"]', r'[{"a": [{"b": "\udc00\ud800"}]}]'])
def test_half_of_a_surrogate_pair_is_no_text(text: str) -> None:
    with pytest.raises(InvalidArgument, match="half of a surrogate pair in"):
        json_text.parse(text)


def test_whole_surrogate_pairs_are_text() -> None:
    assert json_text.parse(r'["\ud83d\ude00"]') == ["\U0001f600"]
