"""The yardstick: as many bytes as the case moves, copied by `memmove` on all threads."""

from __future__ import annotations

import ctypes
import os
import threading
from itertools import pairwise
from time import perf_counter, sleep

import numpy as np

BLOCKS = (None, 256 << 10)  # whole parts, or blocks that stay below the size where memmove bypasses the cache
LEAD_SECONDS = 5e-4  # enough to start the threads


class Copy:
    """Copies `size` bytes in equal parts, one a thread; the fastest block size for this size is found first.

    The threads agree on a moment at which all begin, and `seconds()` counts from there to the end of the
    last. Waking them is left out, since it costs Python more than it costs native code.
    """

    def __init__(self, size: int, threads: int) -> None:
        self._source = np.ones(size, np.uint8)
        self._target = np.full(size, 0, np.uint8)
        self._addresses = self._target.ctypes.data, self._source.ctypes.data
        bounds = [size * i // threads for i in range(threads + 1)]
        self._parts = list(pairwise(bounds))
        self._block = min(BLOCKS, key=self._trial)

    def seconds(self) -> float:
        """Copies once."""
        begin = perf_counter() + LEAD_SECONDS
        ends = [0.0] * len(self._parts)

        def work(index: int) -> None:
            while perf_counter() < begin:
                _yield()
            self._move(*self._parts[index])
            ends[index] = perf_counter()

        workers = [threading.Thread(target=work, args=(index,)) for index in range(1, len(self._parts))]
        for worker in workers:
            worker.start()
        work(0)
        for worker in workers:
            worker.join()
        return max(ends) - begin

    def _trial(self, block: int | None) -> float:
        self._block = block
        return sorted(self.seconds() for _ in range(9))[4]

    def _move(self, first: int, last: int) -> None:
        target, source = self._addresses
        block = self._block or last - first
        for offset in range(first, last, block):
            ctypes.memmove(target + offset, source + offset, min(block, last - offset))


def _yield() -> None:
    """Lets other threads run; on Linux without the 50 microseconds that the shortest sleep takes."""
    if hasattr(os, "sched_yield"):
        os.sched_yield()
    else:
        sleep(0)
