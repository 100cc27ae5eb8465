"""The yardstick: as many bytes as the case moves, copied by `memmove` on all threads."""

from __future__ import annotations

import ctypes
import threading
from time import perf_counter

import numpy as np

BLOCKS = (None, 256 << 10)  # whole parts, or blocks that stay below the size where memmove bypasses the cache


class Copy:
    """Copies `size` bytes in equal parts, one a thread; the fastest block size for this size is found first.

    `seconds()` is the time that the slowest part took. It leaves out waking the threads, which costs
    Python more than native code: the yardstick is rather too hard than too easy.
    """

    def __init__(self, size: int, threads: int) -> None:
        self._source = np.ones(size, np.uint8)
        self._target = np.full(size, 0, np.uint8)
        self._addresses = self._target.ctypes.data, self._source.ctypes.data
        self._bounds = [size * i // threads for i in range(threads + 1)]
        self._block = min(BLOCKS, key=lambda block: self._trial(block))

    def _trial(self, block: int | None) -> float:
        self._block = block
        return sorted(self.seconds() for _ in range(9))[4]

    def seconds(self) -> float:
        parts = list(zip(self._bounds[:-1], self._bounds[1:], strict=True))
        elapsed = [0.0] * len(parts)
        start = threading.Barrier(len(parts))

        def work(index: int) -> None:
            first, last = parts[index]
            start.wait()
            began = perf_counter()
            self._move(first, last)
            elapsed[index] = perf_counter() - began

        workers = [threading.Thread(target=work, args=(index,)) for index in range(1, len(parts))]
        for worker in workers:
            worker.start()
        work(0)
        for worker in workers:
            worker.join()
        return max(elapsed)

    def _move(self, first: int, last: int) -> None:
        target, source = self._addresses
        block = self._block or last - first
        for offset in range(first, last, block):
            ctypes.memmove(target + offset, source + offset, min(block, last - offset))
