"""Locks that a fork acquires, and cached properties without locks, so that no child waits for ever."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401
import logging  # noqa: F401
import os
import threading
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

Value = TypeVar("Value")

remembering = threading.RLock()
"""Guards the memos of the process. No other lock may be acquired under it."""
importing = threading.RLock()
"""Guards late imports: a child would wait for ever for a module that another thread was importing."""
compiling = threading.RLock()
"""Guards calls of LLVM, so that its state is complete and llvmlite's lock is free in a child."""
making = threading.RLock()
"""Guards the creation of devices for calls that name a kind."""

# A fork acquires locks in the reverse order of their registration, and threads must nest them in the same
# order. So these locks are registered after those of the imported modules, which threads acquire under them.
if hasattr(os, "register_at_fork"):
    for _lock in (remembering, importing, compiling, making):
        os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


class cached_property(Generic[Value]):  # noqa: N801
    """A property that is computed once for each object, and that no thread waits for.

    In Python 3.11 the property of `functools` has a lock, which all objects of a class share. The child of a
    fork would wait for ever if another thread of its parent was computing it. Two threads may compute it at
    the same time; the later value stays.
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self._function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Note the name, under which objects keep the value."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...

    def __get__(self, instance: object | None, owner: type) -> Self | Value:
        """Return the value of an object that has none yet."""
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._function(instance)
        return value
