"""Pauses of the collector: what a block makes counts as old, and is still collected."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from opendml import garbage
from opendml.garbage import collection_paused


class Cycle:
    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def nothing_frozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No objects are frozen, as other tests want them to be."""
    monkeypatch.setattr(garbage, "_has_frozen", False)
    was_frozen = gc.get_freeze_count() > 0
    gc.unfreeze()
    yield
    if was_frozen:
        gc.freeze()


def test_many_objects_of_a_block_count_as_old_and_are_collected() -> None:
    with collection_paused():
        assert not gc.isenabled()
        cycle = Cycle()
        died = weakref.ref(cycle)
        others = [[number] for number in range(2 * garbage._MANY)]
    assert gc.isenabled()
    assert any(each is cycle for each in gc.get_objects(generation=2))
    del cycle, others
    gc.collect()
    assert died() is None


@pytest.mark.parametrize("objects", [1, 10 * garbage._MANY], ids=["few", "many"])
def test_what_blocks_make_is_collected_without_being_asked_for(objects: int) -> None:
    thresholds = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    made = []
    try:
        with collection_paused():
            died = weakref.ref(Cycle())
        for _ in range(50):
            with collection_paused():
                made = [[number] for number in range(objects)]
            # Between blocks, a program makes fewer objects.
            made = [[number] for number in range(1000)]
            if died() is None:
                break
    finally:
        gc.set_threshold(*thresholds)
    assert made
    assert died() is None


def test_objects_that_a_program_has_frozen_stay_frozen() -> None:
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        for _ in range(2):
            with collection_paused():
                made = [[number] for number in range(2 * garbage._MANY)]
        assert made
        assert gc.get_freeze_count() == count > 0
        assert garbage._has_frozen
    finally:
        gc.unfreeze()
