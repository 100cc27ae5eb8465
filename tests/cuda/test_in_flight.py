"""Check what stays alive until work on a stream is done, while several threads add work."""

from __future__ import annotations

import weakref
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from opendml.targets.cuda import streams


class Driver:
    """A driver whose events are numbers. `meanwhile` runs once, while an event is asked for."""

    CUevent_flags = SimpleNamespace(CU_EVENT_DISABLE_TIMING=2)
    CUstream = int

    def __init__(self) -> None:
        self.count, self.done, self.destroyed = 0, set[int](), list[int]()
        self.meanwhile: Any = None

    def cuEventCreate(self, flags: int) -> tuple[Any, int]:  # noqa: N802 - the driver's name
        self.count += 1
        return SimpleNamespace(value=0), self.count

    def cuEventRecord(self, *_: Any) -> tuple[Any]:  # noqa: N802
        return (SimpleNamespace(value=0),)

    def cuEventQuery(self, event: int) -> tuple[Any]:  # noqa: N802
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return (SimpleNamespace(value=0 if event in self.done else 600),)

    def cuEventDestroy(self, event: int) -> None:  # noqa: N802
        self.destroyed.append(event)


class Held:
    """An object that may be referred to weakly."""


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = Driver()
    monkeypatch.setattr(streams, "driver_module", lambda: made)
    monkeypatch.setattr(streams, "check", lambda results, _: results[-1])
    monkeypatch.setattr(streams, "outside_captures", nullcontext)
    return made


def test_objects_are_released_when_their_work_is_done(driver: Driver) -> None:
    device: Any = SimpleNamespace(current=nullcontext)
    in_flight, held = streams.InFlight(device), [Held() for _ in range(3)]
    left = [weakref.ref(each) for each in held]
    for each in held:
        in_flight.hold(each, 0)
    del each
    held.clear()
    driver.done |= {1, 2}
    in_flight.hold(None, 0)
    assert [each() is None for each in left] == [True, True, False]
    assert driver.destroyed == [1, 2]


def test_an_object_is_kept_if_another_thread_releases_the_one_before_it(driver: Driver) -> None:
    device: Any = SimpleNamespace(current=nullcontext)
    in_flight, held = streams.InFlight(device), Held()
    left = weakref.ref(held)
    in_flight.hold(None, 0)
    in_flight.hold(held, 0)
    del held
    driver.done.add(1)
    driver.meanwhile = lambda: in_flight.hold(None, 0)
    in_flight.hold(None, 0)
    assert left() is not None
    assert driver.destroyed == [1]
    driver.done |= {2, 3, 4, 5}
    in_flight.hold(None, 0)
    assert left() is None
    assert sorted(driver.destroyed) == [1, 2, 3, 4, 5]
