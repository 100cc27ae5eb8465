"""Locks that are held across forks: what a thread does under one of them is whole in every child, which lacks
that thread."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401
import logging  # noqa: F401
import os
import threading

remembering = threading.RLock()
"""Held while a memo of the process is read or changed. No other lock is taken under it."""
importing = threading.RLock()
"""Held while modules are imported that are needed after `import opendml`: the child would wait for ever for
one that was half imported."""
compiling = threading.RLock()
"""Held while LLVM is called: its state, and llvmlite's lock, are whole and free in every child."""
making = threading.RLock()
"""Held while the devices of calls that name a kind are made."""

# A fork takes locks in the reverse order of their registration, and threads must nest them as it does: these
# come after those of the modules above, which are taken under them, and before a thread can need them.
if hasattr(os, "register_at_fork"):
    for _lock in (remembering, importing, compiling, making):
        os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
