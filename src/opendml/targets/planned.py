"""The kernels and launches into which a device turns a program, for people to look at."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

from opendml.late_dataclass import dataclass

if TYPE_CHECKING:
    from opendml.compiler.kernel import KernelProgram

Timer = Callable[[], float]
"""Runs some work and returns the seconds that it took."""


@dataclass(frozen=True, slots=True)
class Planned:
    """The kernels of a program, and for each of them how its launches go about it, in their order."""

    kernels: KernelProgram
    launches: tuple[tuple[str, ...], ...]


def on_the_clock(work: Callable[[], object]) -> Timer:
    """Work that is done when it returns, timed by the host."""

    def timed() -> float:
        begun = perf_counter()
        work()
        return perf_counter() - begun

    return timed
