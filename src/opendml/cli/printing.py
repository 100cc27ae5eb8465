"""Tables and long texts: for a terminal, or as plain text of a fixed width."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

_PLAIN_WIDTH = 110


def console() -> Console:
    """Return the console for standard output, which prints text without markup or automatic colours."""
    width = None if sys.stdout.isatty() else _PLAIN_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def table_of(columns: Sequence[str], rows: Iterable[Sequence[str]], wrap_first: bool = True) -> Table:
    """Return a table without borders; `wrap_first` is whether its first column may wrap."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="underline")
    for index, column in enumerate(columns):
        table.add_column(column, no_wrap=index == 0 and not wrap_first, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
