"""The lock under which modules are imported that are needed after `import opendml`."""

from __future__ import annotations

import os
import threading

importing = threading.RLock()
"""Held while such modules are imported, and across forks: the child would wait for ever for a module that a
thread it lacks is importing."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=importing.acquire, after_in_parent=importing.release, after_in_child=importing.release
    )
