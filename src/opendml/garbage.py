"""Pauses of Python's collector of reference cycles.

A compilation makes hundreds of thousands of objects that live until it ends. Looking for cycles among them
takes a tenth of its time: 0.3 of 3.7 s for ResNet-50. So it is with the graph of an ONNX model while that is
parsed and traced: 0.2 of 3.1 s for BERT-base.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.RLock()
_pauses: list[int] = []
"""The threads that pause it, as often as they do."""
_was_enabled = False
_MANY = 10_000
"""Objects of a block that count as old at once: 10,000 more take the next collection 10 ms."""
_LEAST_MOVED = 200_000
"""Objects that come to the oldest generation in this way before it is collected, at least. They are a quarter
of all, too, as in Python's own rule, which does not count them. BERT-base makes 114,000 until its first
result, in 5 s. To collect 100,000 takes 0.15 s."""
_moved, _most_moved = 0, _LEAST_MOVED
_has_frozen = False
"""True if a program has frozen objects. To count them takes 10 ms for each million."""


@contextmanager
def collection_paused() -> Iterator[None]:
    """Collect no reference cycles in the block, in any thread. Blocks may nest, and run at the same time.

    Before a block, what many blocks have made is collected: models that are gone.
    """
    global _moved, _was_enabled
    thread, is_due = threading.get_ident(), False
    with _lock:
        if not _pauses:
            _was_enabled = gc.isenabled()
            gc.disable()
            is_due = _was_enabled and _moved >= _most_moved
            _moved = 0 if is_due else _moved
        _pauses.append(thread)
    try:
        if is_due:
            gc.collect()
        yield
    finally:
        with _lock:
            _pauses.remove(thread)
            if not _pauses and _was_enabled:
                _count_as_old()
                gc.enable()


def _count_as_old() -> None:
    """Move all objects to the oldest generation if they are many, without looking for cycles among them.

    Otherwise the next collection, of the young ones, would look at all that the blocks have made: 0.15 s for
    BERT-base. A collection of the oldest generation still finds them. Objects that a program has frozen stay
    so, because there is no other way to free them than for all.
    """
    global _has_frozen, _most_moved, _moved
    made = gc.get_count()[0]
    if made < _MANY or _has_frozen:
        return
    _has_frozen = gc.get_freeze_count() > 0
    if _has_frozen:
        return
    gc.freeze()
    _moved += made
    if _moved >= _most_moved:
        _most_moved = max(_LEAST_MOVED, gc.get_freeze_count() // 4)
    gc.unfreeze()


def _go_on_in_child() -> None:
    """Forget the pauses of other threads, which the child of a fork does not have."""
    global _lock
    _lock = threading.RLock()
    thread = threading.get_ident()
    others = [each for each in _pauses if each != thread]
    _pauses[:] = [each for each in _pauses if each == thread]
    if others and not _pauses and _was_enabled:
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_go_on_in_child)
