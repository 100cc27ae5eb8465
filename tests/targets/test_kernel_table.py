"""Tests that the table in `kernel_table.txt` is true: kernels, bytes between them, and units that multiply.

`python -m tools.kernel_table --write` renews it. The machines need not be present.
"""

from __future__ import annotations

import re

import pytest

from opendml.operators.registry import implemented
from opendml.spec.enums import FeatureLevel
from opendml.spec.schema import operator
from opendml.targets.cpu import machine as cpu_machine
from opendml.targets.cpu.contraction import chain, schedule
from tools import kernel_table
from tools.kernel_rules import RULES, exceptions
from tools.kernel_table import COMMAND, MODEL, TARGETS, Row, differences, expected, operators, parsed, rows

TABLE = expected()


@pytest.mark.parametrize("name", operators())
def test_kernels_bytes_and_units_are_as_the_table_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> None:
        raise AssertionError("the table depends on the processor that is here")

    monkeypatch.setattr(cpu_machine, "detected", asked)
    monkeypatch.setattr(chain, "available_threads", asked)
    monkeypatch.setattr(schedule, "available_threads", asked)
    before = {row: text for row, text in TABLE.items() if row.operator == name}
    changed = list(differences(before, rows(name)))
    assert not changed, "\n".join(["", *changed, f"If that is as it should be: {COMMAND}"])


def test_the_table_has_every_operator_in_each_type_of_its_first_tensor() -> None:
    found = {(row.operator, row.type) for row in TABLE}
    for name in implemented():
        first = operator(name).tensors[0].name
        tables = operator(name).support_at(max(FeatureLevel), "SUM" if name == "REDUCE" else None)
        assert tables is not None
        for type in tables.tensors[first].types if first in tables.tensors else ():
            # A query is absent where queries, keys and values are one tensor, which has the same types.
            assert (name, type) in found, f"{name} {type}"
    assert {name for name, _ in found} == {*implemented(), MODEL}


def test_every_row_has_all_targets() -> None:
    cases = {row[:3] for row in TABLE}
    assert {*TABLE} == {Row(*case, target) for case in cases for target in TARGETS}


@pytest.mark.parametrize("rule", RULES)
def test_what_breaks_a_rule_has_a_reason_and_reasons_are_needed(rule: str) -> None:
    listed = [name for names in exceptions()[rule].values() for name in names]
    broken = RULES[rule](TABLE)
    assert len(listed) == len({*listed})
    assert broken - {*listed} == set(), "these need a reason, or to be mended"
    assert {*listed} - broken == set(), f"these need no exception any more: {COMMAND}"


def test_a_rendered_table_is_read_as_it_was() -> None:
    lines = kernel_table.TABLE.read_text("utf-8").splitlines()
    again = list(kernel_table.rendered(TABLE))
    assert [line for line in lines if not line.startswith("#")] == again
    assert parsed(again) == TABLE


def test_a_difference_shows_what_was_and_what_is() -> None:
    row = Row("GEMM", "2x2x2", "FLOAT16", "sm_90")
    (text,) = differences({row: "contraction | - | wgmma"}, {row: "contraction | - | FMA"})
    assert re.sub(r"\s+", " ", text) == (
        "GEMM | 2x2x2 | FLOAT16 | sm_90 before: contraction | - | wgmma after: contraction | - | FMA"
    )
    (gone,) = differences({row: "contraction | - | wgmma"}, {})
    assert "after:  no such row" in gone


def test_the_tool_shows_the_blocks_that_words_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert kernel_table.main(["GEMM", "128x768x768"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "GEMM: 128x768x768"
    assert "  FLOAT16 | sm_90 | contraction | - | wgmma" in shown
