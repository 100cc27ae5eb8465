"""Hints whose plans do not serve some sizes, in a process and in the cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opendml.later import finish
from opendml.program.atoms import Dimension, Relation
from opendml.program.stored_sizes import WrittenSizes, guards_from_json, guards_to_json
from opendml.program.trace import Trace
from opendml.runtime.graphs.refusals import (
    MOST_REFUSED,
    Refusals,
    keep_refusal,
    refusals_key,
)
from opendml.targets import object_cache

HINTS = {"n": 248}
KEY = refusals_key("a purpose")


def guards(*divisors: int) -> list[tuple[Relation, int]]:
    """Return guards that some numbers divide a size, as planning for it records them one after the other."""
    size = Trace({"n": Dimension(248)}).size("n")
    return [(Relation.ZERO, size % divisor) for divisor in divisors]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENDML_CACHE_DIRECTORY", str(tmp_path / "cache"))
    monkeypatch.setenv(object_cache.PLANS_VARIABLE, "1")
    return tmp_path / "cache"


def test_hints_are_refused_for_sizes_that_do_not_meet_all_guards() -> None:
    refusals = Refusals()
    assert not refusals.cover(HINTS, {"n": 100})
    refusals.note(HINTS, guards(4, 8))
    assert refusals.cover(HINTS, {"n": 100})
    assert not refusals.cover(HINTS, {"n": 104})
    assert not refusals.cover({"n": 240}, {"n": 100})


def test_a_later_guard_adds_to_those_of_before() -> None:
    """Guards of two plans may differ, as one of them may reuse launches of another bucket."""
    refusals = Refusals()
    for divisors in ((4,), (4, 8), (4,), (3,)):
        refusals.note(HINTS, guards(*divisors))
    assert [len(each) for _, each in refusals.every] == [2, 1]
    assert [refusals.cover(HINTS, {"n": size}) for size in (24, 8, 12, 3)] == [False, True, True, True]


def test_only_new_refusals_are_kept() -> None:
    refusals, kept = Refusals(), list[int]()
    refusals.keepers["test"] = lambda hints, guards: kept.append(len(guards))
    for divisors in ((4,), (4,), (4, 8), (4,)):
        refusals.note(HINTS, guards(*divisors))
    assert kept == [1, 2]


def test_refusals_of_several_processes_are_read_again() -> None:
    keep_refusal(KEY, HINTS, guards(4))
    keep_refusal(KEY, {"n": 252}, guards(7))
    keep_refusal(KEY, HINTS, guards(4, 8))
    finish()
    refusals = Refusals()
    refusals.read(KEY)
    assert [(hints, len(each)) for hints, each in refusals.every] == [(HINTS, 2), ({"n": 252}, 1)]
    assert refusals.cover({"n": 252}, {"n": 100})


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b'[[{"n": 248}, {}, []]]', b'[[1, {"atoms": []}, []]]']
)
def test_damaged_refusals_are_ignored(content: bytes) -> None:
    object_cache.write_object(KEY, content, "plan")
    refusals = Refusals()
    refusals.read(KEY)
    assert not refusals.every
    keep_refusal(KEY, HINTS, guards(4))
    finish()
    refusals.read(KEY)
    assert refusals.cover(HINTS, {"n": 6})


def test_refusals_of_several_traces_are_stored_with_their_own_sizes() -> None:
    """Those that were read have sizes of other traces than those of this process."""
    size = Trace({"m": Dimension(3), "n": Dimension(248)}).size("n")
    refused = [(HINTS, guards(4, 8)), (HINTS, [(Relation.ZERO, size % 5)])]
    refusals = Refusals()
    for each in guards_from_json(json.loads(json.dumps(guards_to_json(refused)))):
        refusals.add(*each)
    found = [refusals.cover(HINTS, {"m": 2, "n": size}) for size in (40, 8, 20)]
    assert found == [False, True, True]
    with pytest.raises(ValueError, match="two traces"):
        WrittenSizes().guards([*refused[0][1], *refused[1][1]])


def test_the_oldest_hints_are_forgotten() -> None:
    refusals = Refusals()
    for hint in range(2, MOST_REFUSED + 4):
        refusals.note({"n": hint}, guards(4))
    assert len(refusals.every) == MOST_REFUSED
    assert not refusals.cover({"n": 2}, {"n": 6})
