"""Locks that a fork acquires, so that a child never sees work of another thread half done."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401
import logging  # noqa: F401
import os
import threading

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
