"""The schedules of typical kernels on machines that need not be here, against the table of those that were
found to be good; `python -m tools.schedules --write` renews it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from opendml.targets.common.candidates import Candidate, Estimate, Refusal, cheapest, considered
from opendml.targets.cpu import schedule_elements, schedule_groups, schedule_scans
from opendml.targets.cpu.machine import assumed, machine
from opendml.targets.cuda import groups as cuda_forms
from opendml.targets.cuda import schedule_elements as cuda_elements
from opendml.targets.cuda import schedule_groups as cuda_groups
from opendml.targets.cuda import schedule_passes as cuda_passes
from opendml.targets.cuda import schedule_scans as cuda_scans
from opendml.targets.cuda import schedule_shares as cuda_shares
from opendml.targets.cuda.schedule_resident import RESIDENT
from tools.machines import DEVICES, PROCESSORS
from tools.schedules import TABLE, main, taken

Table = tuple[Candidate[Any, Any, Any], ...]
DEVELOPMENT = Path(__file__).parents[2] / "docs" / "design" / "development.md"
MACHINES = (*PROCESSORS, *DEVICES)
CPU_TABLES: tuple[Table, ...] = (
    schedule_elements.ELEMENTS,
    schedule_groups.ROWS,
    schedule_groups.COLUMNS,
    schedule_scans.SCANNED_ROWS,
    schedule_scans.SCANNED_COLUMNS,
)
CUDA_TABLES: tuple[Table, ...] = (
    cuda_elements.ELEMENTS,
    cuda_forms.FORMS,
    cuda_groups.GROUPS,
    cuda_passes.ALONG,
    cuda_passes.ABREAST,
    (RESIDENT,),
    cuda_shares.SHARES,
    cuda_scans.LINES,
    cuda_scans.LINES_ABREAST,
)


@pytest.mark.parametrize("name", MACHINES)
def test_typical_kernels_are_scheduled_as_the_table_says(name: str) -> None:
    assert taken(name) == json.loads(TABLE.read_text("utf-8"))[name]


@pytest.mark.parametrize(("machines", "tables"), [(PROCESSORS, CPU_TABLES), (DEVICES, CUDA_TABLES)])
def test_every_candidate_is_taken_by_a_typical_kernel(
    machines: Iterable[str], tables: Iterable[Table]
) -> None:
    texts = json.loads(TABLE.read_text("utf-8"))
    taken_names = " ".join(text for name in machines for text in texts[name].values())
    names = {candidate.name for table in tables for candidate in table}
    assert {name for name in names if name not in taken_names} == set()


def test_the_cheapest_candidate_is_taken_and_of_equal_ones_the_first() -> None:
    def costing(name: str, cycles: float | None) -> Candidate[str, str, str]:
        answer = Refusal("never") if cycles is None else Estimate(name, {"work": cycles, "start": 1.0})
        return Candidate(name, lambda query: answer, lambda query, parameters: f"{query} by {parameters}")

    table = (costing("refused", None), costing("a", 3.0), costing("b", 2.0), costing("c", 2.0))
    assert cheapest(table, "kernel") == "kernel by b"
    assert [each.cycles for each in considered(table, "kernel")] == [float("inf"), 4.0, 3.0, 3.0]
    with pytest.raises(LookupError, match="no way to run kernel"):
        cheapest(table[:1], "kernel")


def test_another_machine_is_assumed_only_within() -> None:
    here = machine()
    with assumed(PROCESSORS["avx2"]):
        assert machine() is PROCESSORS["avx2"]
    assert machine() is here


def test_the_tool_shows_costs_and_reasons_as_the_documentation_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--machine", "sm_90"]) == 0
    shown = capsys.readouterr().out
    (example,) = re.findall(
        r"^```text\n(sm_90: .*?)^```", DEVELOPMENT.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert example in shown
    assert re.search(r"  refused  warps  \(groups of \d+ units; at most 256\)", shown)
