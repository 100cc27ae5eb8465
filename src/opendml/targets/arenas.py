"""Temporary memory that instances share."""

from __future__ import annotations

from collections.abc import Callable

from opendml.targets.memory import HostMemory, OwnMemory
from opendml.targets.output_memory import OutputMemory


class DeviceCopies:
    """A pool of memory on a device for tensors of callers in host memory.

    Each dispatch takes one block for all of its tensors, and gives it back when it has ended. So there are as
    many blocks as dispatches run at a time, however many instances there are. Several threads may use a pool.
    """

    def __init__(self) -> None:
        self._free: list[tuple[int, OwnMemory]] = []
        self.most = 0
        """The largest need so far."""

    @property
    def free_bytes(self) -> int:
        """The bytes of blocks that no dispatch has."""
        return sum(size for size, _ in list(self._free))

    def take(self, size: int, last: int, allocate: Callable[[int], OwnMemory]) -> tuple[int, OwnMemory]:
        """Return a block of at least `size` bytes with its size, which the caller gives back.

        Args:
            size: the bytes that are needed.
            last: the address of the block that the caller had last. With it, no address changes.
            allocate: returns new memory.

        Raises:
            Unsupported: there is not enough memory.
        """
        # Another thread may write a smaller need meanwhile.
        most = self.most = max(self.most, size)
        try:
            # Another thread may take one meanwhile. Any block will do.
            for place in range(len(self._free)):
                if self._free[place][1].address == last:
                    found = self._free.pop(place)
                    break
            else:
                found = self._free.pop()
        except IndexError:
            return size, allocate(size)
        if found[0] < size:
            del found  # freed before more is taken
            return most, allocate(most)
        return found

    def give(self, block: tuple[int, OwnMemory]) -> None:
        """Take a block back, unless it is larger than any need by now (`clear`)."""
        if block[0] <= self.most:
            self._free.append(block)

    def clear(self) -> None:
        """Free all blocks, now or when they are given back."""
        self.most = 0
        self._free.clear()


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
        self.copies = DeviceCopies()
        """Memory on a device for tensors in host memory."""

    @property
    def free_bytes(self) -> int:
        """The bytes of those that no dispatch has, of dropped outputs, and of copies on a device."""
        free = sum(memory.bytes.size for memory in list(self._free))
        return free + self.outputs.free_bytes + self.copies.free_bytes

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
        """Free arenas of more than `most` bytes, now or when they are given back, dropped outputs, and copies
        on a device."""
        self.most = most
        self._free[:] = [memory for memory in list(self._free) if memory.bytes.size <= most]
        self.outputs.clear()
        self.copies.clear()
