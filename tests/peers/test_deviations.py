"""The table of deviations and the tests name the same ones."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from opendml.spec.schema import operators

from .deviations import deviation, names, rows, used


def test_every_deviation_of_the_table_is_tested() -> None:
    for path in Path(__file__).parent.glob("test_*.py"):
        importlib.import_module(f"tests.peers.{path.stem}")
    assert {(name, row.where) for row in rows() for name in names(row)} == used


def test_the_table_names_operators_and_is_filled_in() -> None:
    for row in rows():
        assert set(names(row)) <= set(operators())
        assert all(row)


def test_a_deviation_needs_a_line_in_the_table() -> None:
    with pytest.raises(KeyError, match="no line for ELEMENT_WISE_ADD at NaN"):
        deviation("ELEMENT_WISE_ADD", "NaN", lambda result: result)
