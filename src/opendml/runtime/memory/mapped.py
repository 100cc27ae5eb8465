"""Arrays in memory-mapped files."""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress
from typing import Any

import numpy as np

_Mapping = mmap.mmap
_PIECE_BYTES = 2**23
"""Bytes of a mapped file that are in memory while a thread copies them, at most."""


def mapping_of(array: Any) -> mmap.mmap | None:
    """Return the read-only mapping that an array lies in, or None."""
    base = array
    while isinstance(base, np.ndarray | memoryview):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return base if isinstance(base, _Mapping) and memoryview(base).readonly else None


def release(array: Any) -> None:
    """Release the pages of an array in a mapped file. The system reads them again on demand."""
    mapping = mapping_of(array)
    if mapping is None or not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
        return
    begin = array.ctypes.data - np.frombuffer(mapping, np.uint8).ctypes.data
    first = begin // mmap.PAGESIZE * mmap.PAGESIZE
    with suppress(AttributeError):  # Windows has no such call
        mapping.madvise(mmap.MADV_DONTNEED, first, begin + array.nbytes - first)


def copy_released(target: int, source: int, size: int, owner: Any) -> None:
    """Copy bytes in host memory, and release those of a mapped file piece by piece.

    Args:
        target, source: addresses.
        size: the number of bytes.
        owner: the array that has them.
    """
    for first in range(0, size, _PIECE_BYTES):
        ctypes.memmove(target + first, source + first, min(_PIECE_BYTES, size - first))
        release(owner)
