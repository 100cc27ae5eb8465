"""Locks across forks, handlers of signals and finalizers."""

from __future__ import annotations

import os
import threading
import weakref


class Locked:
    """An object with a lock, `_lock`. The child of a fork finds it free: the threads that may have held it
    are not there.

    A handler of a signal, a finalizer or a callback of a weak reference may run between any two steps of the
    thread that holds the lock, and use the same object. So the lock admits its owner again, and what stands
    under it must bear that.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _all.add(self)


_all: weakref.WeakSet[Locked] = weakref.WeakSet()


def _free_locks() -> None:
    for each in _all:
        each._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_locks)
