"""Prepared constants, which models share."""

from __future__ import annotations

from collections.abc import Hashable
from weakref import WeakValueDictionary

from opendml.runtime.locked import Locked
from opendml.targets.memory import OwnMemory

Key = Hashable
"""A recipe of the compiler, and the identities of the constants that it reads."""


class PreparedMemory:
    """Filled memory, which is freed with the last model that reads it."""

    def __init__(self, memory: OwnMemory, size: int) -> None:
        self.memory, self.size = memory, size


class ConstantStore(Locked):
    """Prepared constants by recipe and identities, as long as a model reads them. It is safe to use from
    threads."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: WeakValueDictionary[Key, PreparedMemory] = WeakValueDictionary()

    @property
    def bytes(self) -> int:
        """Bytes of all prepared constants."""
        return sum(each.size for each in self._kept.values())

    def found(self, key: Key) -> PreparedMemory | None:
        """Return the memory of a key, or None."""
        with self._lock:
            return self._kept.get(key)

    def added(self, key: Key, memory: PreparedMemory) -> PreparedMemory:
        """Store memory by a key; return it, or what another thread has stored meanwhile."""
        with self._lock:
            return self._kept.setdefault(key, memory)
