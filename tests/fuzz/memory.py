"""Memory whose neighbouring pages cannot be touched: a single byte too far ends the process."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

from opendml.runtime.memory.host_array import Array

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)


def guarded(count: int, dtype: np.dtype[Any], *, at_end: bool) -> Array:
    """`count` elements in memory of their own, against the page behind them or against the one before."""
    size = count * dtype.itemsize
    pages = -(-size // PAGE) * PAGE
    memory = mmap.mmap(-1, pages + 2 * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for guard in (start, start + PAGE + pages):
        if _libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    return np.frombuffer(memory, dtype, count, PAGE + (pages - size if at_end else 0))
