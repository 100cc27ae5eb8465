"""JSON that is encoded in parts is that of Python's encoder."""

from __future__ import annotations

import json
from typing import Any

import pytest

from opendml.json_files.compact import compact_json


@pytest.mark.parametrize(
    "data",
    [
        {},
        [],
        {"a": [], "b": [1, 2.5, [3, {"x": '\u00e9"', "y": None}]], "c": {"1": {"d": [[1, 2], [3]]}}},
        {2: 1, True: {None: [True, "text"]}, "t": (1, (2, 3))},
        [{"a": {"b": {"c": {"d": [1, {"e": 2}]}}}}, "text"],
    ],
)
def test_compact_json_is_that_of_the_encoder(data: Any) -> None:
    assert compact_json(data) == json.dumps(data, separators=(",", ":")).encode()
