"""The worker threads of the process: native loops that share the work of a dispatch (see `native`)."""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache

import numpy as np

from opendml.targets.cpu.engine import runtime_addresses
from opendml.targets.cpu.native import POOL_WORDS

_Dispatch = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_DispatchShared = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_Work = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


class Pool:
    """Workers beside the calling thread. They start when first needed, spin briefly after work, then
    sleep."""

    def __init__(self) -> None:
        addresses = runtime_addresses()
        self.dispatch_alone = _Dispatch(addresses["dispatch_alone"])
        self.dispatch_shared = _DispatchShared(addresses["dispatch_shared"])
        self._work = _Work(addresses["work"])
        self._state = np.zeros(POOL_WORDS + 8, np.int64)
        # Aligned to a cache line, so that the words that threads contend for lie on lines of their own.
        self.address = -(-self._state.ctypes.data // 64) * 64
        self.reset()

    def reset(self) -> None:
        """Makes the pool empty. After a fork the child has none of the workers, and its copy of the state may
        be
        mid-job; instances hold the address, so that it stays."""
        self._state[:] = 0
        self._workers = 0
        self._lock = threading.Lock()

    def start(self, workers: int) -> None:
        """Makes sure that so many workers run."""
        with self._lock:
            while self._workers < workers:
                self._workers += 1
                arguments = (self.address, self._workers)
                threading.Thread(target=self._work, args=arguments, name="opendml", daemon=True).start()


@cache
def pool() -> Pool:
    """The pool of this process."""
    result = Pool()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=result.reset)
    return result
