"""Memory that models of several sizes share."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from hashlib import sha256
from weakref import WeakValueDictionary

import numpy as np

from opendml.runtime.memory.constant_store import ConstantStore, PreparedMemory
from opendml.runtime.memory.host_array import Array
from opendml.targets.arenas import Arenas


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
