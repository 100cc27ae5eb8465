"""How often dispatches run, and what the runner says about their times."""

from __future__ import annotations

import math
from typing import Any

import pytest

from opendml.errors import InvalidArgument
from opendml.frontends.dxdispatch import timing
from opendml.frontends.dxdispatch.timing import Repetition, Statistics, cold_and_hot, measure


class Clock:
    """Stands still but when something sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(timing, "time", clock)
    return clock


class Work:
    """Takes some time, and remembers when each run began."""

    def __init__(self, clock: Clock, seconds: float = 0.0) -> None:
        self.starts: list[float] = []
        self.clock = clock
        self.seconds = seconds

    def __call__(self) -> None:
        self.starts.append(self.clock.perf_counter())
        self.clock.sleep(self.seconds)


@pytest.mark.parametrize(("iterations", "repeat"), [(1, 1), (5, 1), (1, 3), (4, 2)])
def test_every_iteration_runs_its_repeats(iterations: int, repeat: int, clock: Clock) -> None:
    work = Work(clock)
    assert len(measure(work, Repetition(iterations, repeat))) == iterations
    assert len(work.starts) == iterations * repeat


def test_a_measurement_is_the_mean_of_its_repeats(clock: Clock) -> None:
    assert measure(Work(clock, 0.25), Repetition(repeat=5)) == (0.25,)


def test_measurements_go_on_until_the_time_has_passed(clock: Clock) -> None:
    assert len(measure(Work(clock, 0.25), Repetition(minimum_seconds=2))) == 8
    assert clock.now == 2


def test_iterations_are_a_minimum_beside_the_time(clock: Clock) -> None:
    assert len(measure(Work(clock, 1), Repetition(iterations=7, minimum_seconds=3))) == 7


def test_measurements_keep_the_interval(clock: Clock) -> None:
    work = Work(clock, 0.25)
    measure(work, Repetition(iterations=3, interval_seconds=1))
    assert work.starts == [0, 1, 2]


@pytest.mark.parametrize(
    ("count", "warmup", "cold"), [(1, 2, 0), (2, 2, 1), (3, 2, 2), (4, 2, 2), (4, 0, 0), (1, 0, 0)]
)
def test_warmup_leaves_at_least_one_hot_measurement(count: int, warmup: int, cold: int) -> None:
    seconds = [float(index) for index in range(count)]
    assert cold_and_hot(seconds, warmup) == (seconds[:cold], seconds[cold:])


def test_statistics() -> None:
    assert Statistics.of([5.0, 1.0, 2.0, 3.0, 4.0]) == Statistics(
        5, 3.0, 1.0, 3.0, 4.6, pytest.approx(4.96), 5.0
    )
    assert Statistics.of([2.0]) == Statistics(1, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0)


@pytest.mark.parametrize(
    "wrong",
    [
        *({name: count} for name in ("iterations", "repeat") for count in (0, -1)),
        *(
            {name: seconds}
            for name in ("minimum_seconds", "interval_seconds")
            for seconds in (math.nan, math.inf, -math.inf, -1e-9)
        ),
    ],
    ids=str,
)
def test_repetitions_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(InvalidArgument, match=f"^{name}: "):
        Repetition(**wrong)
