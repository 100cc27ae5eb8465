"""The worker threads of the process: native loops that share the work of a dispatch (see `native`)."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opendml.across_forks import compiling
from opendml.errors import Error, Unsupported
from opendml.signals import deferred_signals
from opendml.targets.cpu.machine_code import runtime_addresses
from opendml.targets.cpu.native import MISSING, POOL_WORDS, WORK_LOST, WORKERS_MISSING

# What every dispatch calls has no types of arguments: all are objects of ctypes, and converting them to such
# types takes as long as the call.
_Alone = ctypes.CFUNCTYPE(None)
_Turn = ctypes.CFUNCTYPE(ctypes.c_int)
_Cancel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_Work = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


class Pool:
    """Worker threads. They start when they are first needed, spin briefly after work, then sleep."""

    def __init__(self) -> None:
        addresses = runtime_addresses()
        self._dispatch_alone = _Alone(addresses["dispatch_alone"])
        self._begin, self._go_on = _Turn(addresses["begin"]), _Turn(addresses["go_on"])
        self._cancel, self._work = _Cancel(addresses["cancel"]), _Work(addresses["work"])
        self._state = np.zeros(POOL_WORDS + 8, np.int64)
        # Aligned to a cache line, so that the words that threads contend for lie on lines of their own.
        first = -self._state.ctypes.data % 64 // self._state.itemsize
        self._words = self._state[first : first + POOL_WORDS]
        self._address = self._words.ctypes.data
        self._wanted = self._workers = 0
        self._is_starting = False
        self._lock = threading.RLock()

    def forget(self) -> None:
        """Empty the pool in the child of a fork, which has no workers.

        The copied state may be that of a running job. Its address stays, because instances hold it. The next
        shared dispatch starts workers.
        """
        self._words[:] = 0
        self._words[MISSING] = self._wanted > 0
        self._workers = 0
        self._is_starting = False
        self._lock = threading.RLock()

    def start(self, workers: int = 0) -> None:
        """Start workers, up to a number or the largest number of earlier calls.

        Fewer run if the system gives no more threads.
        """
        if workers <= self._workers and not self._words[MISSING]:
            return  # Instances of other sizes start none; deferring signals takes longer than the rest.
        # A handler that raised while a thread starts would leave one that runs and is not counted.
        with deferred_signals(), self._lock:
            self._wanted = max(self._wanted, workers)
            self._words[MISSING] = 0
            if self._is_starting:
                # A finalizer needs workers while they start: what the thread goes on with then starts them.
                return
            try:
                self._is_starting = True
                self._start_wanted()
            finally:
                self._is_starting = False

    def _start_wanted(self) -> None:
        while self._workers < self._wanted:
            arguments = (self._address, self._workers + 1)
            thread = threading.Thread(target=self._work, args=arguments, name="opendml", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return
            self._workers += 1

    def short_dispatch(self, job: Any) -> Callable[[], object]:
        """Return a function that runs a job without patience in the calling thread."""
        return partial(self._dispatch_alone, job)

    def dispatch(self, job: Any, buffers: Any) -> Callable[[], object]:
        """Return a function that runs a job with the workers. Where it takes long, the interpreter handles
        signals meanwhile; an exception that one raises ends the job between two items. A handler or a
        finalizer that runs the same job gets an error: the words of a job are those of one run."""
        begin, go_on, cancel = self._begin, self._go_on, self._cancel
        state = ctypes.c_void_p(self._address)
        user: threading.Thread | None = None

        def dispatch() -> None:
            nonlocal user
            thread = threading.current_thread()
            if user is thread:
                raise Error(
                    "cpu: this dispatch is running; what has interrupted it, a handler of a signal or a "
                    "finalizer, cannot run it too: bind it again there, or call the model"
                )
            try:
                user = thread
                result = begin(job, buffers, state)
                while result:
                    if result == WORKERS_MISSING:
                        self.start()
                        result = begin(job, buffers, state)
                    elif result == WORK_LOST:
                        raise Unsupported(
                            "cpu: the process forked while it handled a signal within a dispatch, which the "
                            "child cannot go on with; dispatch again there"
                        )
                    else:
                        result = go_on(job, buffers, state)
            except BaseException:
                cancel(job, state)
                raise
            finally:
                user = None

        return dispatch


_pool: Pool | None = None


def pool() -> Pool:
    """Return the pool of this process."""
    global _pool
    if _pool is None:
        with compiling:
            if _pool is None:
                made = Pool()
                _pool = _pool or made  # A finalizer may have made one meanwhile.
    return _pool


def _forget_workers() -> None:
    if _pool is not None:
        _pool.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)
