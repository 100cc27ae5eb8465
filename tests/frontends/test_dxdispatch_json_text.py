"""Comments and trailing commas are allowed wherever DxDispatch allows them, and nowhere inside strings."""

from __future__ import annotations

from typing import Any

import pytest

from opendml.errors import InvalidArgument
from opendml.frontends.dxdispatch import json_text


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
