"""Cases that fail, crash or hang are seen, and made simple."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opendml.spec.validator import failures
from tests.fuzz.attempts import SECONDS, Worker
from tests.fuzz.campaign import Campaign
from tests.fuzz.choices import Choices
from tests.fuzz.random_descs import OPERATORS, any_desc
from tests.fuzz.samples import make

ENDS = {
    "fails": "AssertionError in samples.py:check",
    "crashes": "Sample ended by SIGSEGV",
    "hangs": "Sample did not end",
    "ends": "Sample ended with 3",
}


@pytest.mark.parametrize("way", ENDS)
def test_every_way_to_fail_is_seen_and_the_next_case_runs(way: str, tmp_path: Path) -> None:
    worker = Worker(str(tmp_path))
    failing, passing = f"Sample(way={way!r}, numbers=(1, 2, 10))", f"Sample(way={way!r}, numbers=(1, 2, 9))"
    outcome = worker.attempt(1 if way == "hangs" else SECONDS, case=failing)
    assert outcome.failed == ENDS[way]
    assert outcome.case == failing
    assert worker.attempt(case=passing).failed is None
    worker.close()


@pytest.mark.parametrize("name", OPERATORS)
def test_descs_of_every_operator_are_mostly_valid(name: str) -> None:
    seeds = range(30)
    valid = [seed for seed in seeds if not failures(any_desc(Choices(seed), names=[name]))]
    assert len(valid) >= len(seeds) / 3


def test_a_campaign_says_how_far_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    campaign = Campaign(["samples"], shrinking=0)
    campaign.run(2.0, 1)
    (first, *_) = [line for line in capfd.readouterr().err.splitlines() if "seconds:" in line]
    assert re.fullmatch(r"\d+ of 2 seconds: samples \d+; \d kinds of failures", first)


def test_a_report_shows_each_failure_once_as_the_simplest_case_that_fails_so() -> None:
    campaign = Campaign(["samples"])
    cases = {seed: make(Choices(seed)) for seed in range(100)}
    failing = [seed for seed, case in cases.items() if case.way == "fails"][:3]
    campaign.try_seeds("samples", failing)
    assert campaign.tried["samples"] == len(failing)
    assert campaign.failed["samples"] > 1
    assert len(campaign.findings) == 1
    assert "python -m tests.fuzz 'Sample(way='\"'\"'fails'\"'\"', numbers=(0, 10, 0))'" in campaign.report()
