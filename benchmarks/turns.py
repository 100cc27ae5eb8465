"""Contenders that take turns, so that what disturbs one disturbs all."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def rest() -> None:
    """Waits between turns: threads that look for work of the contender before, as those of OpenMP do for 0.2
    seconds, keep processors busy."""
    time.sleep(0.25)


_WARM, _TIMED = 0.01, 0.03
"""Seconds of a turn for which a contender runs before it is timed, and then, at least: its threads are awake
and on processors of their own by then, and its data is in the caches."""


def in_turns(
    floor: Callable[[], float], contenders: Mapping[str, Callable[[], Any]], rounds: int
) -> dict[str, float]:
    """Median milliseconds of the floor and of all contenders, by name; the floor says its own seconds. In
    each turn a contender runs as often as fills the time that it has, and the mean counts."""
    times: dict[str, list[float]] = {name: [] for name in ("floor", *contenders)}
    for _ in range(rounds):
        floor()
        times["floor"].append(floor())
        for name, contender in contenders.items():
            rest()
            times[name].append(seconds(contender))
    return {name: statistics.median(values) * 1e3 for name, values in times.items()}


def seconds(contender: Callable[[], Any]) -> float:
    """Of one run, when it is warm."""
    _seconds_of_a_run(contender, _WARM)
    return _seconds_of_a_run(contender, _TIMED)


def _seconds_of_a_run(contender: Callable[[], Any], least: float) -> float:
    """The mean of as many runs as take so many seconds."""
    runs, begun, passed = 0, time.perf_counter(), 0.0
    while passed < least:
        contender()
        runs += 1
        passed = time.perf_counter() - begun
    return passed / runs


def fastest(milliseconds: Mapping[str, float], names: Iterable[str]) -> str | None:
    """The fastest of those contenders; None if none of them was timed."""
    timed = (name for name in names if name in milliseconds)
    return min(timed, key=lambda name: milliseconds[name], default=None)
