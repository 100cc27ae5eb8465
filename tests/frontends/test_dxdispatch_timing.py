"""How often dispatches run, and what the runner says about their times."""

from __future__ import annotations

import math
import time
from typing import Any

import pytest

from opendml.errors import InvalidArgument
from opendml.frontends.dxdispatch.timing import Repetition, Statistics, cold_and_hot, measure


class Work:
    """Counts its runs, and when each began."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.starts: list[float] = []
        self.seconds = seconds

    def __call__(self) -> None:
        self.starts.append(time.perf_counter())
        time.sleep(self.seconds)


@pytest.mark.parametrize(("iterations", "repeat"), [(1, 1), (5, 1), (1, 3), (4, 2)])
def test_every_iteration_runs_its_repeats(iterations: int, repeat: int) -> None:
    work = Work()
    assert len(measure(work, Repetition(iterations, repeat))) == iterations
    assert len(work.starts) == iterations * repeat


def test_a_measurement_is_the_mean_of_its_repeats() -> None:
    (seconds,) = measure(Work(0.002), Repetition(repeat=5))
    assert 0.002 <= seconds < 0.01


def test_measurements_go_on_until_the_time_has_passed() -> None:
    work = Work(0.002)
    begin = time.perf_counter()
    assert len(measure(work, Repetition(minimum_seconds=0.02))) > 1
    assert time.perf_counter() - begin >= 0.02


def test_iterations_are_a_minimum_beside_the_time() -> None:
    assert len(measure(Work(), Repetition(iterations=7, minimum_seconds=1e-9))) >= 7


def test_measurements_keep_the_interval() -> None:
    work = Work(0.001)
    measure(work, Repetition(iterations=3, interval_seconds=0.01))
    first, second, third = work.starts
    assert min(second - first, third - second) >= 0.0099


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
