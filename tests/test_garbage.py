"""Pauses of the collector: what a block makes counts as old, and is still collected."""

from __future__ import annotations

import gc
import weakref

from opendml.garbage import collection_paused


class Cycle:
    def __init__(self) -> None:
        self.own = self


def test_objects_of_a_block_count_as_old_and_are_collected() -> None:
    gc.unfreeze()
    with collection_paused():
        assert not gc.isenabled()
        cycle = Cycle()
        died = weakref.ref(cycle)
    assert gc.isenabled()
    assert any(each is cycle for each in gc.get_objects(generation=2))
    del cycle
    gc.collect()
    assert died() is None


def test_objects_that_a_program_has_frozen_stay_frozen() -> None:
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        with collection_paused():
            pass
        assert gc.get_freeze_count() == count > 0
    finally:
        gc.unfreeze()
