"""SECURITY.md is true: each promise names tests, and they are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "SECURITY.md").read_text("utf-8")


def test_each_promise_has_tests_that_are_there() -> None:
    promises = TEXT.split("## What is promised")[1].split("\n## ")[0]
    rows = [line for line in promises.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 8
    for row in rows:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert tests, row
        for file, name in tests:
            assert f"def {name}(" in (ROOT / file).read_text("utf-8"), f"{file}::{name}"


def test_links_lead_to_files_of_the_repository() -> None:
    for link in re.findall(r"\]\(([^)#]+)", TEXT):
        assert (ROOT / link).is_file(), link
