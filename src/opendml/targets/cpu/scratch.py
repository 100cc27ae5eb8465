"""Memory for what immediate calls need while they run."""

from __future__ import annotations

import threading

from opendml.targets.memory import HostMemory


class Scratch(threading.local):
    """The calling thread's memory, which all its calls share: it grows to the greatest need, and is freed
    with the thread. A call that takes it has it alone: one within it, by a signal's handler, gets other
    memory."""

    def __init__(self) -> None:
        self._memory: HostMemory | None = None

    def take(self, size: int) -> HostMemory:
        """At least `size` bytes."""
        memory, self._memory = self._memory, None
        if memory is None or memory.bytes.size < size:
            # Memory that is too small is freed before more is taken.
            memory = None
            memory = HostMemory(size)
        return memory

    def give(self, memory: HostMemory) -> None:
        """Takes memory back for later calls."""
        if self._memory is None or self._memory.bytes.size < memory.bytes.size:
            self._memory = memory
