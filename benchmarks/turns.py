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


def in_turns(
    floor: Callable[[], float], contenders: Mapping[str, Callable[[], Any]], rounds: int
) -> dict[str, float]:
    """Median milliseconds of the floor and of all contenders, by name; the floor says its own seconds. All
    are timed behind a run of their own, which fills the caches."""
    times: dict[str, list[float]] = {name: [] for name in ("floor", *contenders)}
    for _ in range(rounds):
        floor()
        times["floor"].append(floor())
        for name, contender in contenders.items():
            rest()
            contender()
            begun = time.perf_counter()
            contender()
            times[name].append(time.perf_counter() - begun)
    return {name: statistics.median(values) * 1e3 for name, values in times.items()}


def fastest(milliseconds: Mapping[str, float], names: Iterable[str]) -> str | None:
    """The fastest of those contenders; None if none of them was timed."""
    timed = (name for name in names if name in milliseconds)
    return min(timed, key=lambda name: milliseconds[name], default=None)
