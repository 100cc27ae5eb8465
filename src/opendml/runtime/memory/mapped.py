"""Arrays in memory-mapped files."""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any

import numpy as np

_Mapping = mmap.mmap


def mapping_of(array: Any) -> mmap.mmap | None:
    """Return the read-only mapping that an array lies in, or None."""
    base = array
    while isinstance(base, np.ndarray | memoryview):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return base if isinstance(base, _Mapping) and memoryview(base).readonly else None


def release(array: Any) -> None:
    """Release the pages of an array in a mapped file. The system reads them again on demand."""
    mapping = mapping_of(array)
    if mapping is None or not array.flags.c_contiguous:
        return
    begin = array.ctypes.data - np.frombuffer(mapping, np.uint8).ctypes.data
    first = begin // mmap.PAGESIZE * mmap.PAGESIZE
    with suppress(AttributeError):  # Windows has no such call
        mapping.madvise(mmap.MADV_DONTNEED, first, begin + array.nbytes - first)
