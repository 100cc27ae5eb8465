"""Temporary memory that instances share."""

from __future__ import annotations

from opendml.targets.memory import HostMemory
from opendml.targets.output_memory import OutputMemory


class Arenas:
    """A pool of arenas, from which each dispatch takes one and gives it back.

    There are as many arenas as dispatches run at a time. Each is as large as the largest need that it has
    met. Several threads may use a pool.
    """

    def __init__(self) -> None:
        self._free: list[HostMemory] = []
        self.most = 0
        """The largest need so far."""
        self.outputs = OutputMemory()
        """The memory of outputs that callers have dropped."""

    @property
    def free_bytes(self) -> int:
        """The bytes of those that no dispatch has, and of dropped outputs."""
        return sum(memory.bytes.size for memory in list(self._free)) + self.outputs.free_bytes

    def take(self, size: int) -> HostMemory:
        """Return an arena of at least `size` bytes for the caller alone.

        Raises:
            Unsupported: there is not enough memory.
        """
        self.most = max(self.most, size)
        try:
            memory = self._free.pop()
        except IndexError:
            return HostMemory(size)
        if memory.bytes.size < size:
            del memory  # freed before more is taken
            return HostMemory(size)
        return memory

    def give(self, memory: HostMemory) -> None:
        """Take an arena back, unless it is larger than any need by now (`shrink`)."""
        if memory.bytes.size <= self.most:
            self._free.append(memory)

    def shrink(self, most: int) -> None:
        """Free arenas of more than `most` bytes, now or when they are given back, and dropped outputs."""
        self.most = most
        self._free[:] = [memory for memory in list(self._free) if memory.bytes.size <= most]
        self.outputs.clear()
