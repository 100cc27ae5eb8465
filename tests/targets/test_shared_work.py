"""Work that threads share before a model's first run."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from opendml.targets import shared_work
from opendml.targets.shared_work import share_work

SIZES = {number: 2**24 + number for number in range(20)}


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENDML_THREADS", "2")


def threads_of(sizes: dict[int, int]) -> set[str]:
    """Return the names of the threads that work for items."""
    names, done = set[str](), list[int]()

    def work(item: int) -> None:
        names.add(threading.current_thread().name)
        done.append(item)

    share_work(work, sizes)
    assert sorted(done) == sorted(sizes)
    return names


def test_threads_share_much_work() -> None:
    names, both = set[str](), threading.Barrier(2, timeout=100)

    def work(item: int) -> None:
        name = threading.current_thread().name
        if name not in names:
            names.add(name)
            both.wait()

    share_work(work, SIZES)
    assert len(names) == 2


def test_little_work_and_one_thread_stay_in_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {threading.current_thread().name}
    assert threads_of(dict.fromkeys(range(20), 100)) == own
    assert threads_of({}) == set()
    monkeypatch.setenv("OPENDML_THREADS", "1")
    assert threads_of(SIZES) == own


def test_work_is_done_without_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert len(threads_of(SIZES)) == 1


def test_an_error_of_any_thread_is_raised_after_all_have_ended() -> None:
    running = set[int]()

    def work(item: int) -> None:
        running.add(item)
        time.sleep(0.01 * item)
        running.remove(item)
        raise ValueError(item)

    with pytest.raises(ValueError, match=r"^\d+$"):
        share_work(work, {1: 2**24, 2: 2**24})
    assert running == set()


def test_a_handler_that_raises_runs_when_no_thread_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_work, "_MOST_BYTES", 2**26)
    running, done = set[int](), list[int]()

    def work(item: int) -> None:
        running.add(item)
        if item == 19:
            signal.raise_signal(signal.SIGINT)
        time.sleep(0.01)
        running.remove(item)
        done.append(item)

    # A process in the background of a shell may ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            share_work(work, SIZES)
    finally:
        signal.signal(signal.SIGINT, before)
    assert running == set()
    assert 0 < len(done) < len(SIZES)
