"""Launches that read the same, one after the other: each thread keeps a share of their items, and what
another is late with is done by those that wait."""

from __future__ import annotations

import ctypes
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opendml.targets.cpu.native import (
    BACKWARDS,
    FIRST,
    HEADER,
    KEPT,
    LAUNCH,
    MOST_KEPT,
    PATIENCE,
    THREADS,
)
from opendml.targets.cpu.pool import Pool, pool

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * 3)
Compute = Callable[[int, int, int], None]
WAIT = 60.0
"""Seconds after which a thread that nobody comes to help is given up, so that a test fails and does not
hang."""


class Job:
    """Launches whose items are computed by a Python function of the launch's number, the first item and the
    one behind the last."""

    def __init__(self, compute: Compute, launches: int, items: int, grain: int, threads: int) -> None:
        words = np.zeros(HEADER + LAUNCH * launches + 8, np.int64)
        first = -words.ctypes.data % 64 // words.itemsize
        self.words = words[first : first + HEADER + LAUNCH * launches]
        self.words[0], self.words[THREADS] = launches, threads
        self._functions = [
            FUNCTION(lambda low, high, *_, number=number: compute(number, low, high))
            for number in range(launches)
        ]
        for number, function in enumerate(self._functions):
            at = HEADER + LAUNCH * number
            self.words[at] = ctypes.cast(function, ctypes.c_void_p).value or 0
            self.words[at + FIRST : at + FIRST + 3] = 0, items, grain
            self.words[at + BACKWARDS], self.words[at + KEPT] = number % 2, 1
        self.workers = pool()
        self.workers.start(threads - 1)

    def dispatch(self) -> None:
        """Computes all."""
        table: Any = (ctypes.c_void_p * 1)()
        native = (ctypes.c_int64 * len(self.words)).from_buffer(self.words.data)
        self.workers.dispatch(native, table)()


def test_every_item_is_computed_once() -> None:
    for threads in (1, 2, 3, 8):
        for items, grain in ((1, 1), (7, 1), (MOST_KEPT, 1), (100, 7), (5, 9)):
            found = Counter[tuple[int, int]]()

            def compute(launch: int, low: int, high: int, found: Counter[tuple[int, int]] = found) -> None:
                found.update((launch, item) for item in range(low, high))

            job = Job(compute, 6, items, grain, threads)
            for turn in (1, 2):
                job.dispatch()
                wanted = {(launch, item): turn for launch in range(6) for item in range(items)}
                assert found == wanted


def test_each_thread_begins_with_its_own_share() -> None:
    """In every other launch with the last item of it."""
    threads, launches, items = 3, 20, 8
    meeting = threading.Barrier(threads)
    begun: dict[tuple[int, int], int] = {}

    def compute(launch: int, low: int, high: int) -> None:
        key = launch, threading.get_ident()
        if key not in begun:
            begun[key] = low
            meeting.wait(WAIT)

    Job(compute, launches, items, 1, threads).dispatch()
    shares = [range(3), range(3, 6), range(6, 8)]
    own: dict[int, range] = {}
    for (launch, thread), item in sorted(begun.items()):
        share = own.setdefault(thread, next(each for each in shares if item in each))
        assert item == (share[-1] if launch % 2 else share[0])
    assert len(begun) == launches * threads
    assert {id(each) for each in own.values()} == {id(each) for each in shares}
    assert own[threading.get_ident()] is shares[0]


def test_what_a_thread_is_late_with_is_done_by_another() -> None:
    """The worker does not go on before all others of its share are done."""
    items = 8
    meeting, done = threading.Barrier(2), threading.Semaphore(0)
    computed: dict[int, int] = {}

    def compute(launch: int, low: int, high: int) -> None:
        computed[low] = threading.get_ident()
        if low in (0, 4):
            meeting.wait(WAIT)
        if low == 4:
            for _ in range(items - 1):
                assert done.acquire(timeout=WAIT)
        else:
            done.release()

    Job(compute, 1, items, 1, 2).dispatch()
    caller = threading.get_ident()
    assert [each for each in range(items) if computed[each] != caller] == [4]


def test_who_is_alone_goes_back_and_forth_over_all_items() -> None:
    """The pool has no worker, though the job wants one."""
    found: list[int] = []
    job = Job(lambda launch, low, high: found.append(low), 4, 8, 1, 2)
    job.workers = Pool()
    job.dispatch()
    forth, back = list(range(8)), list(range(7, -1, -1))
    assert found == [*forth, *back, *forth, *back]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_an_interrupted_dispatch_drops_what_is_left(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller pauses in a launch that it cannot miss: the others wait there until it has begun."""
    launches, items = 500, 9
    meeting, caller = threading.Barrier(threads), threading.get_ident()
    computed = Counter[tuple[int, int]]()
    waits = set[int]()

    def compute(launch: int, low: int, high: int) -> None:
        computed.update((launch, item) for item in range(low, high))
        if launch == 0 and threading.get_ident() not in waits:
            waits.add(threading.get_ident())
            meeting.wait(WAIT)
            if threading.get_ident() == caller:
                time.sleep(0.02)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    job = Job(compute, launches, items, 2, threads)
    job.words[PATIENCE] = 1
    with monkeypatch.context() as patched:
        patched.setattr(job.workers, "_go_on", interrupted)
        with pytest.raises(KeyboardInterrupt):
            job.dispatch()
    assert set(computed.values()) == {1}
    assert (launches - 1, items - 1) not in computed
    computed.clear()
    job.words[PATIENCE] = 0
    job.dispatch()
    assert computed == {(launch, item): 1 for launch in range(launches) for item in range(items)}
