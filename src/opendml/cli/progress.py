"""A progress bar on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Protocol

_DELAY = 0.5
"""Seconds before the bar appears."""


class Progress(Protocol):
    """A display of the current step."""

    def begin(self, what: str, count: int | None = None) -> None:
        """Begin the next step; `count` is the number of remaining steps with this one."""

    def hide(self) -> None:
        """Clear the display until the next step, so that something else can be printed."""


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
            self._timer = Timer(_DELAY, self._bar.start)
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
    """Show the progress of the block if it takes long and standard error is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield _Silence()
        return
    bar = _Bar()
    try:
        yield bar
    finally:
        bar.hide()
