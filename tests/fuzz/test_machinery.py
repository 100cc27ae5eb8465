"""Failing, crashing and hanging cases are seen and made simple, and the next case runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.attempts import Worker
from tests.fuzz.campaign import Campaign
from tests.fuzz.choices import Choices
from tests.fuzz.samples import make
from tests.fuzz.shrink import shrunk

ENDS = {
    "fails": "AssertionError in samples.py:check",
    "crashes": "Sample ended by SIGSEGV",
    "hangs": "Sample no end within 2 seconds",
    "ends": "Sample ended with 3",
}


@pytest.mark.parametrize("way", ENDS)
def test_every_way_to_fail_is_seen_and_the_next_case_runs(way: str, tmp_path: Path) -> None:
    worker = Worker(str(tmp_path))
    failing, passing = f"Sample(way={way!r}, numbers=(1, 2, 10))", f"Sample(way={way!r}, numbers=(1, 2, 9))"
    outcome = worker.attempt(seconds=2, case=failing)
    assert outcome.failed == ENDS[way]
    assert outcome.case == failing
    assert worker.attempt(case=passing).failed is None
    worker.close()


@pytest.mark.parametrize(("way", "number"), [("fails", 1), ("crashes", 2), ("ends", 4)])
def test_the_simplest_case_that_fails_in_the_same_way_is_found(way: str, number: int, tmp_path: Path) -> None:
    worker = Worker(str(tmp_path))
    failure = worker.attempt(fuzzer="samples", tape=[number, 6, 4, 500, 3, 77, 12, 8])
    assert failure.failed == ENDS[way]
    assert shrunk(worker, "samples", failure, seconds=60).case == f"Sample(way={way!r}, numbers=(0, 0, 10))"
    worker.close()


def test_a_report_has_every_failure_with_the_line_that_shows_it_again() -> None:
    campaign = Campaign(["samples"], shrinking=5)
    seeds = [seed for seed in range(40) if make(Choices(seed)).way != "hangs"]
    campaign.try_seeds("samples", seeds)
    report = campaign.report()
    assert campaign.tried["samples"] == len(seeds)
    assert "python -m tests.fuzz 'Sample(way='\"'\"'fails'\"'\"', numbers=(0, 0, 10))'" in report
    assert "Sample ended by SIGSEGV" in report
    assert len(campaign.findings) == 3
