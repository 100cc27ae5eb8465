"""Where tables and long texts are printed: like a terminal, and without it plain text of a fixed width."""

from __future__ import annotations

import sys

from rich.console import Console

_PLAIN_WIDTH = 110


def console() -> Console:
    """The console for standard output. Text is taken as it is: no markup, no automatic colours."""
    width = None if sys.stdout.isatty() else _PLAIN_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)
