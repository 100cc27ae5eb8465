"""Which compiled models, arenas and constants are kept, and for how long."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from opendml import InvalidArgument
from opendml.host_memory import host_memory
from opendml.runtime.graphs import model_cache
from opendml.runtime.graphs.model_cache import ModelCache
from opendml.runtime.graphs.shared import ConstantStore, Footprint, PreparedMemory, SharedMemory
from opendml.targets.arenas import Arenas
from opendml.targets.memory import HostMemory


@pytest.fixture(autouse=True)
def _entries_take_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_cache, "_ENTRY_BYTES", 0)


@dataclass(eq=False)
class Size:
    """An entry that tells when it is dropped."""

    footprint: Footprint
    log: list[Size] = field(default_factory=list)

    def forget(self) -> None:
        self.log.append(self)


def memory(size: int) -> PreparedMemory:
    return PreparedMemory(HostMemory(size), size)


def test_what_was_used_longest_ago_goes_first() -> None:
    kept, dropped = ModelCache(250), list[Size]()
    sizes = [Size(Footprint(100), dropped) for _ in range(5)]
    for each in (*sizes[:3], sizes[0]):
        kept.use([each])
    assert (dropped, kept.bytes) == ([], 300)
    kept.use([sizes[3]])
    assert (dropped, kept.bytes) == ([sizes[1]], 300)
    kept.use([sizes[4]])
    assert dropped == [sizes[1], sizes[2]]
    kept.use([sizes[1]])
    assert dropped == [sizes[1], sizes[2], sizes[0]]


def test_what_runs_is_never_dropped_and_counts_for_nothing() -> None:
    kept, dropped = ModelCache(0), list[Size]()
    path = [Size(Footprint(1000), dropped) for _ in range(3)]
    for _ in range(2):
        kept.use(path)
    assert (dropped, kept.bytes) == ([], 3000)
    other = Size(Footprint(10), dropped)
    kept.use([path[0], other])
    assert (dropped, kept.bytes) == ([path[2], path[1]], 1010)


def test_shared_memory_counts_once_and_drops_nothing() -> None:
    weights, own = memory(1000), memory(50)
    kept, dropped = ModelCache(60), list[Size]()
    first, second, third = (
        Size(Footprint(5, frozenset(memories)), dropped)
        for memories in ([weights], [weights, own], [weights])
    )
    for each in (first, second, third):
        kept.use([each])
    assert (dropped, kept.bytes) == ([], 1065)
    kept.use([Size(Footprint(5, frozenset([weights])), dropped)])
    assert (dropped, kept.bytes) == ([first], 1065)
    kept.use([Size(Footprint(2), dropped)])
    assert len(dropped) == 4
    assert kept.bytes == 2


def test_an_arena_that_only_old_sizes_need_is_freed_with_them() -> None:
    kept, dropped = ModelCache(1000), list[Size]()
    arenas = kept.shared.arenas

    def run(bytes: int) -> None:
        arenas.give(arenas.take(bytes))
        kept.use([Size(Footprint(1, arena_bytes=bytes), dropped)])

    for bytes in (100, 5000, 5000, 200):
        run(bytes)
    assert len(dropped) == 3
    assert arenas.most == arenas.free_bytes + 200 == 200
    run(900)
    run(300)
    assert arenas.free_bytes == 900
    assert len(dropped) == 3


def test_arenas_grow_to_the_largest_need_and_are_as_many_as_run_at_once() -> None:
    arenas = Arenas()
    first, second = arenas.take(100), arenas.take(300)
    assert first is not second
    arenas.give(first)
    arenas.give(second)
    assert arenas.take(200) is second
    third = arenas.take(250)
    assert third.bytes.size == 250
    arenas.shrink(200)
    arenas.give(third)
    arenas.give(second)
    assert arenas.free_bytes == 0


def test_a_store_has_what_somebody_keeps() -> None:
    store = ConstantStore()
    first, second = memory(10), memory(10)
    assert store.found("a") is None
    assert store.added("a", first) is first
    assert store.added("a", second) is first
    assert (store.found("a"), store.bytes) == (first, 10)
    del first
    gc.collect()
    assert (store.found("a"), store.bytes) == (None, 0)


def test_arrays_of_equal_values_are_one_as_long_as_somebody_has_it() -> None:
    shared = SharedMemory()
    array, key = shared.unchanging(np.arange(6, dtype=np.float32), None)
    assert shared.unchanging(np.arange(6, dtype=np.float32), None)[0] is array
    for other in (np.arange(6, dtype=np.int32), np.arange(6, dtype=np.float32).reshape(2, 3), -array):
        found, another = shared.unchanging(other, None)
        assert found is other
        assert another != key
    named = np.zeros(3, np.float32)
    assert shared.unchanging(named, "weights")[0] is named
    assert shared.unchanging(named, "weights")[1] == shared.unchanging(array[:3], "weights")[1]


def test_the_bound_follows_the_memory_of_the_machine() -> None:
    assert ModelCache().most_bytes == host_memory() // 4 > 0


@pytest.mark.parametrize("most", [-1, 0.5, "8"])
def test_bounds_are_numbers_of_bytes(most: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^option: .*; a number of bytes from 0 on is needed, or None"):
        ModelCache(most, "option")
