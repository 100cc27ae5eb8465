"""What models share that compute the same for inputs of several sizes."""

from __future__ import annotations

from opendml.runtime.memory.constant_store import ConstantStore
from opendml.targets.arenas import Arenas


class SharedMemory:
    """Memory of several models: what they keep of constants that are the same in all of them, and the arenas
    of their temporaries."""

    def __init__(self) -> None:
        self.constants, self.arenas = ConstantStore(), Arenas()
