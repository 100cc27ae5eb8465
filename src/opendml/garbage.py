"""Pauses of Python's collector of reference cycles.

A compilation makes hundreds of thousands of objects that live until it ends. Looking for cycles among them
takes a tenth of its time: 0.3 of 3.7 s for ResNet-50.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.RLock()
_pauses = 0
_was_enabled = False


@contextmanager
def collection_paused() -> Iterator[None]:
    """Collect no reference cycles in the block, in any thread. Blocks may nest, and run at the same time."""
    global _pauses, _was_enabled
    with _lock:
        if not _pauses:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _lock:
            _pauses -= 1
            if not _pauses and _was_enabled:
                gc.enable()
