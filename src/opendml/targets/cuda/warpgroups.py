"""Limits of blocks whose warpgroups load by TMA and multiply by `wgmma` (compute capability 9.0)."""

from __future__ import annotations

WARPGROUP = 128
"""Threads of a warpgroup: what `wgmma` and `setmaxnreg` are issued by."""
ROWS_OF_BOX = 8
"""The rows of a box are a multiple of this, after which the swizzle repeats."""
SHARED_SLACK = 1024 + 512
"""Bytes of shared memory beside the tiles: to align them to 1024, and for barriers and counters."""
RESERVED_BYTES = 1024
"""Bytes of shared memory that CUDA reserves in each block."""
_REGISTERS = 65536
"""Registers of a multiprocessor, of 32 bits."""
_MOST_REGISTERS = 240
"""Registers of a thread that multiplies, at most: a multiple of 8, as `setmaxnreg` takes them."""


def threads_of(consumers: int) -> int:
    """Return the threads of a block in which one warpgroup loads, and `consumers` multiply."""
    return WARPGROUP * (1 + consumers)


def registers_of(producer: int, consumers: int, blocks: int = 1) -> tuple[int, int]:
    """Return the registers of a thread that loads, which are given, and of one that multiplies.

    Args:
        producer: the registers of a thread that loads.
        consumers: the warpgroups of a block that multiply.
        blocks: the blocks on a multiprocessor.
    """
    each = _REGISTERS // blocks // threads_of(consumers) // 8 * 8
    left = (each * (1 + consumers) - producer) // consumers // 8 * 8
    return producer, min(left, _MOST_REGISTERS)
