"""The scratch memory of immediate calls."""

from __future__ import annotations

import threading

from opendml.targets.memory import HostMemory


class Scratch(threading.local):
    """Scratch memory that all calls of a thread share.

    It grows to the largest need, and is freed with the thread. A call owns it while it runs. A nested call,
    of a signal handler, gets other memory.
    """

    def __init__(self) -> None:
        self._memory: HostMemory | None = None

    def take(self, size: int) -> HostMemory:
        """Return at least `size` bytes, which the caller owns until it gives them back."""
        memory, self._memory = self._memory, None
        if memory is None or memory.bytes.size < size:
            # Memory that is too small is freed before more is taken.
            memory = None
            memory = HostMemory(size)
        return memory

    def give(self, memory: HostMemory) -> None:
        """Take memory back for later calls."""
        if self._memory is None or self._memory.bytes.size < memory.bytes.size:
            self._memory = memory
