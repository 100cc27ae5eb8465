"""The floating-point mode of the calling thread.

The application may flush denormals, change the rounding, or let exceptions end the process. Results of NumPy
and Python must not depend on that. The CPU's native runtime sets its own mode.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_ENVIRONMENT_BYTES = 64
"""Bytes that hold the fenv_t of any system."""


@contextmanager
def default_mode() -> Iterator[None]:
    """Set the default mode for the block. On Windows the caller's mode stays."""
    if sys.platform == "win32":
        yield
        return
    library, default = _library()
    before = ctypes.create_string_buffer(_ENVIRONMENT_BYTES)
    library.fegetenv(before)
    library.fesetenv(default)
    try:
        yield
    finally:
        library.fesetenv(before)


@cache
def _library() -> tuple[Any, ctypes.c_void_p]:
    """Return the C library and its FE_DFL_ENV."""
    library = ctypes.PyDLL(None)
    if sys.platform == "darwin":
        return library, ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(library, "_FE_DFL_ENV")))
    return library, ctypes.c_void_p(-1)
