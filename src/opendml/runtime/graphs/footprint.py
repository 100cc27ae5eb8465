"""How much memory models take."""

from __future__ import annotations

from dataclasses import dataclass

from opendml.runtime.memory.constant_store import KeptMemory


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
