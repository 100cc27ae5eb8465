"""Numbers as ones of an element type."""

from __future__ import annotations

import math

import pytest

from opendml.program.scalar_type import ScalarType, number_in


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        (2.9, "INT8", 2),
        (-2.9, "INT8", -2),
        (-2.9, "UINT8", 0),
        (1e30, "INT32", 2**31 - 1),
        (math.inf, "UINT64", 2**64 - 1),
        (-math.inf, "INT64", -(2**63)),
        (math.nan, "INT16", 0),
        (2**63 + 1, "UINT64", 2**63 + 1),
        (0.1, "FLOAT32", 0.100000001490116119384765625),
        (0.1, "FLOAT16", 0.0999755859375),
        (1e6, "FLOAT16", math.inf),
        (3, "FLOAT64", 3.0),
    ],
)
def test_numbers_are_rounded_to_floats_and_truncated_to_integers_in_range(
    value: float, type: str, expected: float
) -> None:
    result = number_in(value, ScalarType[type])
    assert result == expected
    assert isinstance(result, float) == type.startswith("FLOAT")


@pytest.mark.parametrize("type", ["FLOAT16", "FLOAT32", "FLOAT64"])
def test_whole_numbers_beyond_all_floats_overflow(type: str) -> None:
    with pytest.raises(OverflowError):
        number_in(10**400, ScalarType[type])
