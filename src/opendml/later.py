"""Work that is done later, by a thread of its own, and for which no caller waits: writing plans to the cache,
and generating functions.

Jobs run one after another, in their order. At the end of the process those that are left are done first. In
the child of a fork there are none, because its parent does them.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context

from opendml.logs import log

_PAUSE = 0.001
"""Seconds before the first job. The caller mostly starts kernels next, during which Python's lock is free.
Else it would wait for a job that holds the lock, up to 7 ms (a function of 300 sizes)."""
_lock = threading.RLock()
"""Is held while a job runs, so that `finish` waits for it."""
_jobs: deque[tuple[Context, Callable[[], object]]] = deque()
_thread: threading.Thread | None = None
"""The thread that does jobs; None: no job is left."""


def later(job: Callable[[], object]) -> None:
    """Do a job in another thread, in the context of the caller, or at once if no thread can be started.

    An error of the job is logged.
    """
    global _thread
    _jobs.append((copy_context(), job))
    if _thread is not None:
        return
    _thread = threading.Thread(target=_work, name="opendml writer", daemon=True)
    try:
        _thread.start()
    except RuntimeError:  # The system gives no thread, or the main thread has ended.
        _thread = None
        finish()


def finish() -> None:
    """Do all jobs that are left now, and wait for the one that is being done."""
    while _jobs:
        _do_next()
    with _lock:
        pass


def _work() -> None:
    """Do jobs until none is left."""
    global _thread
    time.sleep(_PAUSE)
    while True:
        while _jobs:
            _do_next()
        _thread = None
        if not _jobs:
            return
        _thread = threading.current_thread()


def _do_next() -> None:
    with _lock, suppress(IndexError):
        context, job = _jobs.popleft()
        try:
            context.run(job)
        except Exception:
            log.exception("work that opendml does later has failed")


def _forget_in_child() -> None:
    """Leave all jobs to the parent."""
    global _lock, _thread
    _lock, _thread = threading.RLock(), None
    _jobs.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
atexit.register(finish)
