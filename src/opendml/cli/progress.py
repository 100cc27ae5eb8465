"""A bar for what takes long, on standard error and only where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Protocol

_PATIENCE = 0.5
"""Seconds before there is something to see."""


class Progress(Protocol):
    """What is being done."""

    def begin(self, what: str, count: int | None = None) -> None:
        """The next step begins; with `count`, this many are to come, this one included."""

    def hide(self) -> None:
        """Clears what is shown until the next step begins: something else is printed."""


class _Silence:
    def begin(self, what: str, count: int | None = None) -> None:
        pass

    def hide(self) -> None:
        pass


class _Bar:
    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=None)
        self._left: int | None = None
        self._total = 0
        self._timer: Timer | None = None

    def begin(self, what: str, count: int | None = None) -> None:
        if self._timer is None:
            self._timer = Timer(_PATIENCE, self._bar.start)
            self._timer.daemon = True
            self._timer.start()
        if count is not None:
            self._total = self._left = count
        elif self._left is not None:
            self._left -= 1
        done = None if self._left is None else self._total - self._left
        self._bar.update(self._task, description=what, total=self._total or None, completed=done)

    def hide(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
            self._bar.stop()
            self._timer = None


@contextmanager
def progress() -> Iterator[Progress]:
    """Shows what is being done while the block runs, if that takes long and somebody looks on."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield _Silence()
        return
    bar = _Bar()
    try:
        yield bar
    finally:
        bar.hide()
