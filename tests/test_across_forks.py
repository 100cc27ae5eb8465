"""The child of a fork goes on though another thread of its parent was amid some work."""

from __future__ import annotations

import gc
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from opendml.across_forks import cached_property
from opendml.garbage import collection_paused
from opendml.program.atoms import Dimension
from opendml.program.trace import Trace
from tests.processes import has_fork, succeeds_in_child

SOURCES = Path(__file__).parents[1] / "src"


@contextmanager
def amid(work: Callable[[Callable[[], object]], object]) -> Iterator[None]:
    """Run a function in another thread. What it calls in turn returns when the block ends."""
    begun, over = threading.Event(), threading.Event()

    def waits() -> bool:
        begun.set()
        return over.wait(60)

    thread = threading.Thread(target=work, args=[waits])
    thread.start()
    try:
        assert begun.wait(60)
        yield
    finally:
        over.set()
        thread.join()


@has_fork
def test_a_property_that_another_thread_computes() -> None:
    class Sized:
        def __init__(self, size: Callable[[], object]) -> None:
            self._size = size

        @cached_property
        def size(self) -> object:
            return self._size()

    with amid(lambda waits: Sized(waits).size):
        assert succeeds_in_child(lambda: Sized(lambda: 7).size == 7, seconds=20)


def test_properties_are_computed_once() -> None:
    class Counted:
        count = 0

        @cached_property
        def number(self) -> int:
            self.count += 1
            return self.count

    counted = Counted()
    assert (counted.number, counted.number) == (1, 1)
    assert vars(counted) == {"count": 1, "number": 1}


def test_no_module_uses_properties_with_locks() -> None:
    pattern = re.compile(r"from functools import .*\bcached_property\b")
    assert [path for path in SOURCES.rglob("*.py") if pattern.search(path.read_text("utf-8"))] == []


@has_fork
def test_a_trace_whose_ranges_another_thread_has_narrowed() -> None:
    trace = Trace({"batch": Dimension(4), "length": Dimension(50)})
    batch, length = trace.size("batch"), trace.size("length")

    def narrowed(waits: Callable[[], object]) -> None:
        with trace.within({"length": Dimension(7, 7, 7)}):
            assert length // 3 == 2
            waits()

    def goes_on() -> bool:
        with trace.within({"batch": Dimension(5, 5, 5)}) as guards:
            first = batch > 4 and not guards and length > 40 and len(guards) == 1
        return first and length > 40 and bool(length // 3 == 16) and not length < 8

    with amid(narrowed):
        assert succeeds_in_child(goes_on, seconds=20)
    assert goes_on()


@has_fork
def test_the_collection_of_cycles_that_another_thread_pauses() -> None:
    def paused(waits: Callable[[], object]) -> None:
        with collection_paused():
            waits()

    def pauses() -> bool:
        before = gc.isenabled()
        with collection_paused():
            return before and not gc.isenabled()

    assert gc.isenabled()
    with amid(paused):
        assert not gc.isenabled()
        assert succeeds_in_child(lambda: pauses() and gc.isenabled(), seconds=20)
    assert gc.isenabled()
