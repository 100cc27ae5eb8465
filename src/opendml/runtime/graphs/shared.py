"""What models share that compute the same for inputs of several sizes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from hashlib import sha256
from weakref import WeakValueDictionary

import numpy as np

from opendml.runtime.memory.constant_store import ConstantStore, KeptMemory
from opendml.runtime.memory.host_array import Array
from opendml.targets.arenas import Arenas


class SharedMemory:
    """Memory of several models: what they keep of constants that are the same in all of them, and the arenas
    of their temporaries."""

    def __init__(self) -> None:
        self.constants, self.arenas = ConstantStore(), Arenas()
        self._arrays: WeakValueDictionary[Hashable, Array] = WeakValueDictionary()

    def unchanging(self, array: Array, identity: Hashable) -> tuple[Array, Hashable]:
        """Return a packed array for a constant that nobody writes to, and its identity.

        Args:
            array: its values.
            identity: what constants of the same values have, as far as it is known; None: the values say it,
                and an array that a model has already stands for all of them.
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
        own_bytes: of the models alone.
        kept: what they keep of constants, and may share.
        arena_bytes: the largest of their arenas, which are shared.
    """

    own_bytes: int = 0
    kept: frozenset[KeptMemory] = frozenset()
    arena_bytes: int = 0
