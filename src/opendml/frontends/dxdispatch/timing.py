"""Repeat and time dispatches."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from opendml.errors import InvalidArgument
from opendml.late_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Repetition:
    """The number of runs of each dispatch command. All runs write into the same buffers.

    Raises InvalidArgument for counts below 1, and for times that are negative or not finite.
    """

    iterations: int = 1
    """Measurements, at least."""
    repeat: int = 1
    """Dispatches in each measurement, which tells their mean: for work that is too short for the clock."""
    minimum_seconds: float = 0.0
    """Measurements go on until this much time has passed."""
    interval_seconds: float = 0.0
    """Time from the start of one measurement to the start of the next, at least."""

    def __post_init__(self) -> None:
        for name, count in (("iterations", self.iterations), ("repeat", self.repeat)):
            if count < 1:
                raise InvalidArgument(f"{name}: {count}; 1 or more are needed")
        times = (("minimum_seconds", self.minimum_seconds), ("interval_seconds", self.interval_seconds))
        for name, seconds in times:
            if not 0 <= seconds < math.inf:
                raise InvalidArgument(f"{name}: {seconds}; a finite time of 0 or more is needed")


def measure(dispatch: Callable[[], object], repetition: Repetition) -> tuple[float, ...]:
    """Return the seconds that one dispatch took, for each measurement."""
    seconds: list[float] = []
    begin = time.perf_counter()
    while True:
        start = time.perf_counter()
        for _ in range(repetition.repeat):
            dispatch()
        end = time.perf_counter()
        seconds.append((end - start) / repetition.repeat)
        if len(seconds) >= repetition.iterations and end - begin >= repetition.minimum_seconds:
            return tuple(seconds)
        time.sleep(max(0.0, start + repetition.interval_seconds - end))


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of several measurements, in seconds. Percentiles between two measurements are
    interpolated."""

    count: int
    mean: float
    minimum: float
    median: float
    percentile_90: float
    percentile_99: float
    maximum: float

    @staticmethod
    def of(seconds: Sequence[float]) -> Statistics:
        """Return the statistics of at least one measurement."""
        minimum, median, ninety, ninety_nine, maximum = np.percentile(seconds, [0, 50, 90, 99, 100]).tolist()
        mean = float(np.mean(seconds))
        return Statistics(len(seconds), mean, minimum, median, ninety, ninety_nine, maximum)


def cold_and_hot(seconds: Sequence[float], warmup: int) -> tuple[Sequence[float], Sequence[float]]:
    """Split measurements into the first `warmup`, which pay for cold caches, and the others, at least one."""
    cold = min(warmup, len(seconds) - 1)
    return seconds[:cold], seconds[cold:]
