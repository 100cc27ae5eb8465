"""Memory that is made of constants, which all models share that need it."""

from __future__ import annotations

from collections.abc import Hashable
from weakref import WeakValueDictionary

from opendml.runtime.locked import Locked
from opendml.targets.memory import OwnMemory

Key = Hashable
"""A recipe, and the identities of the constants that it is made of."""


class KeptMemory:
    """Memory that has been filled, freed with the last model that reads it."""

    def __init__(self, memory: OwnMemory, size: int) -> None:
        self.memory, self.size = memory, size


class ConstantStore(Locked):
    """What models keep of their constants: one copy for each recipe and constants, as long as one of the
    models is there. Safe to use from several threads."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: WeakValueDictionary[Key, KeptMemory] = WeakValueDictionary()

    @property
    def bytes(self) -> int:
        """All that models keep by now."""
        return sum(each.size for each in self._kept.values())

    def found(self, key: Key) -> KeptMemory | None:
        """Return what is kept by a key."""
        with self._lock:
            return self._kept.get(key)

    def added(self, key: Key, memory: KeptMemory) -> KeptMemory:
        """Keep memory by a key; return it, or what another thread has kept meanwhile."""
        with self._lock:
            return self._kept.setdefault(key, memory)
