"""Pools of memory on a device for tensors of callers in host memory."""

from __future__ import annotations

from opendml.targets.arenas import Arenas, DeviceCopies
from opendml.targets.memory import HostMemory


def test_copies_are_as_large_as_the_largest_need() -> None:
    copies = DeviceCopies()
    small = copies.take(100, 0, HostMemory)
    copies.give(small)
    large = copies.take(300, small[1].address, HostMemory)
    other = copies.take(200, 0, HostMemory)
    assert (large[0], other[0], copies.free_bytes, copies.most) == (300, 200, 0, 300)
    copies.give(large)
    copies.give(other)
    assert copies.free_bytes == 500
    # The block of before is preferred, so that addresses stay.
    assert copies.take(150, large[1].address, HostMemory) is large
    assert copies.take(150, 0, HostMemory) is other


def test_copies_that_are_given_back_after_memory_was_freed_are_freed_too() -> None:
    arenas = Arenas()
    block = arenas.copies.take(64, 0, HostMemory)
    arenas.copies.give(arenas.copies.take(128, 0, HostMemory))
    assert arenas.free_bytes == 128
    arenas.shrink(0)
    arenas.copies.give(block)
    assert arenas.free_bytes == 0


def test_a_block_is_large_enough_if_another_thread_notes_a_smaller_need_meanwhile() -> None:
    class Freed(HostMemory):
        """Memory before whose end another thread goes on."""

        def __del__(self) -> None:
            copies.most = 100

    copies = DeviceCopies()
    copies.give(copies.take(100, 0, Freed))
    size, memory = copies.take(300, 0, HostMemory)
    assert size == 300
    assert isinstance(memory, HostMemory)
    assert memory.bytes.size >= 300
