"""Locks that survive forks, signal handlers and finalizers."""

from __future__ import annotations

import os
import threading
import weakref


class Locked:
    """An object with a lock, `_lock`. In the child of a fork the lock is free, since no other thread exists.

    A signal handler, a finalizer or a weak reference's callback may run within the thread that holds the
    lock, and use the same object. Therefore the lock is reentrant, and code under it must allow that.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _all.add(self)

    def _lock_first(self) -> None:
        """Make the lock on its first use, which several threads may have at once."""
        self.__dict__.setdefault("_lock", threading.RLock())
        _all.add(self)

    def _go_on_in_child(self) -> None:
        """Free the lock in the child of a fork. What another thread was changing may be half done."""
        self._lock = threading.RLock()


_all: weakref.WeakSet[Locked] = weakref.WeakSet()


def _free_locks() -> None:
    for each in _all:
        each._go_on_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_locks)
