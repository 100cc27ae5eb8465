"""Memory that models share: prepared constants, and arenas of models of several sizes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from hashlib import sha256
from weakref import WeakValueDictionary

import numpy as np

from opendml.runtime.locked import Locked
from opendml.runtime.memory.host_array import Array
from opendml.targets.arenas import Arenas
from opendml.targets.memory import OwnMemory


class PreparedMemory:
    """Filled memory, which is freed with the last model that reads it."""

    def __init__(self, memory: OwnMemory, size: int) -> None:
        self.memory, self.size = memory, size


class ConstantStore(Locked):
    """Prepared constants, as long as a model reads them. It is safe to use from threads.

    A key is a recipe of the compiler with the identities of the constants that it reads.
    """

    def __init__(self) -> None:
        super().__init__()
        self._kept: WeakValueDictionary[Hashable, PreparedMemory] = WeakValueDictionary()

    @property
    def bytes(self) -> int:
        """Bytes of all prepared constants."""
        return sum(each.size for each in self._kept.values())

    def found(self, key: Hashable) -> PreparedMemory | None:
        """Return the memory of a key, or None."""
        with self._lock:
            return self._kept.get(key)

    def added(self, key: Hashable, memory: PreparedMemory) -> PreparedMemory:
        """Store memory by a key; return it, or what another thread has stored meanwhile."""
        with self._lock:
            return self._kept.setdefault(key, memory)


class SharedMemory:
    """Prepared constants and arenas of several models."""

    def __init__(self) -> None:
        self.constants, self.arenas = ConstantStore(), Arenas()
        self._arrays: WeakValueDictionary[Hashable, Array] = WeakValueDictionary()

    def unchanging(self, array: Array, identity: Hashable) -> tuple[Array, Hashable]:
        """Return a packed array for a constant that nobody writes to, and its identity.

        Args:
            array: its values.
            identity: a key that constants of equal values have. None: a digest of the values is used, and
                one array stands for all equal ones.
        """
        # NumPy's own code of a type is the same for signed and unsigned integers of 4 bits.
        form = array.dtype.name, array.shape
        if identity is not None:
            return array, (identity, *form)
        key = (sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data).digest(), *form)
        return self._arrays.setdefault(key, array), key


@dataclass(frozen=True, slots=True)
class Footprint:
    """The memory that some models take.

    Args:
        own_bytes: memory of the models alone.
        kept: prepared constants, which others may share.
        arena_bytes: the largest of their arenas, which are shared.
    """

    own_bytes: int = 0
    kept: frozenset[PreparedMemory] = frozenset()
    arena_bytes: int = 0
