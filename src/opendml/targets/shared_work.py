"""Work on the constants of a model that threads share before its first run: copies and checksums."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from opendml.signals import deferred_signals
from opendml.targets.cpu.threads import available_threads

Item = TypeVar("Item")

_FEWEST_BYTES = 2**24
"""Bytes that threads share, at least. Starting one takes 0.3 ms, in which 1 MB is copied."""
_MOST_BYTES = 2**28
"""Bytes after which handlers of signals run, unless one item has more: a second's work with a slow disk."""
_MOST_THREADS = 4
"""Threads that share the work, at most: few fill the bandwidth of memory."""


def share_work(work: Callable[[Item], object], sizes: Mapping[Item, int]) -> None:
    """Do work for each item, by several threads if it touches enough bytes.

    The copies of BERT-base's constants take 0.12 s instead of 0.21 on two processors: most of it is spent in
    the system, for the first touch of each page.

    Args:
        work: is called once for each item, in any thread. It leaves the interpreter to others meanwhile.
        sizes: the items, with the bytes that the work touches.

    Raises:
        Exception: the first one that the work raised. Other items may be left out then.
    """
    for items in _batches(sizes):
        threads = 1
        if sum(map(sizes.__getitem__, items)) >= _FEWEST_BYTES:
            threads = min(available_threads(), len(items), _MOST_THREADS)
        if threads > 1:
            _share(work, items, threads)
        else:
            for item in items:
                work(item)


def _batches(sizes: Mapping[Item, int]) -> Iterator[list[Item]]:
    """Yield the items, the largest first, so that no thread begins a large one when others end."""
    batch, total = list[Item](), 0
    for item in sorted(sizes, key=sizes.__getitem__, reverse=True):
        batch.append(item)
        total += sizes[item]
        if total >= _MOST_BYTES:
            yield batch
            batch, total = [], 0
    yield batch


def _share(work: Callable[[Item], object], items: list[Item], threads: int) -> None:
    """Do work for each item, by this thread and others. The arguments are those of `share_work`."""
    waiting, errors = deque(items), list[Exception]()

    def go_on() -> None:
        while True:
            try:
                item = waiting.popleft()
            except IndexError:
                return
            try:
                work(item)
            except Exception as error:
                waiting.clear()
                errors.append(error)

    # A handler that raised would free memory that the other threads use; one that forked would go on in the
    # child with what these had not finished.
    with deferred_signals():
        helpers = list(_started(go_on, threads - 1))
        go_on()
        for each in helpers:
            each.join()
    if errors:
        raise errors[0]


def _started(target: Callable[[], object], number: int) -> Iterator[threading.Thread]:
    """Start threads, fewer if the system gives no more, and yield them."""
    for _ in range(number):
        thread = threading.Thread(target=target, name="opendml start", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return
        yield thread
