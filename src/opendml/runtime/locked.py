"""Locks across forks."""

from __future__ import annotations

import os
import threading
import weakref


class Locked:
    """Something with a lock, `_lock`, which the child of a fork finds free: the threads that may have held it
    are not there."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _all.add(self)


_all: weakref.WeakSet[Locked] = weakref.WeakSet()


def _free_locks() -> None:
    for each in _all:
        each._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_locks)
