"""A progress bar on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

_DELAY = 0.5
"""Seconds before the bar appears."""


class Progress:
    """A display of the current step. It shows nothing if standard error is no terminal."""

    def __init__(self) -> None:
        self._left: int | None = None
        self._total = 0
        self._timer: Timer | None = None
        self._is_shown = sys.stderr is not None and sys.stderr.isatty()
        if self._is_shown:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("", total=None)

    def begin(self, what: str, count: int | None = None) -> None:
        """Begin the next step; `count` is the number of remaining steps with this one."""
        if not self._is_shown:
            return
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
        """Clear the display until the next step, so that something else can be printed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
            self._bar.stop()
            self._timer = None


@contextmanager
def progress() -> Iterator[Progress]:
    """Show the progress of the block if it takes long."""
    shown = Progress()
    try:
        yield shown
    finally:
        shown.hide()
