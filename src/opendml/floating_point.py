"""The floating-point mode of the calling thread, which its owner may have changed: denormals flushed to
zero, another rounding, exceptions that end the process. What NumPy and Python compute here must not depend on
it; the CPU's native runtime sees to it by itself."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_ENVIRONMENT_BYTES = 64
"""More than any system's fenv_t has."""


@contextmanager
def default_mode() -> Iterator[None]:
    """The mode that every thread begins with, as long as the context lasts. On Windows it is the caller's."""
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
    """C's functions for it, and its FE_DFL_ENV."""
    library = ctypes.PyDLL(None)
    if sys.platform == "darwin":
        return library, ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(library, "_FE_DFL_ENV")))
    return library, ctypes.c_void_p(-1)
