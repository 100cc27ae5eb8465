"""Render an explanation as text."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from opendml.runtime.explain.wording import (
    bytes_text,
    count_text,
    floors_text,
    kernel_time_text,
    name_text,
    share_text,
    time_text,
)

if TYPE_CHECKING:
    from opendml.runtime.explain.explanation import ExplainedGraph

_WIDTH = 110


def plain(explanation: ExplainedGraph) -> str:
    """Return text without colours, of a fixed width."""
    written = StringIO()
    Console(file=written, width=_WIDTH, color_system=None, highlight=False, emoji=False).print(
        rendered(explanation)
    )
    return written.getvalue().rstrip()


def rendered(explanation: ExplainedGraph) -> RenderableType:
    """Return the title and the kernels by falling time."""
    threads = "" if explanation.threads is None else f", {explanation.threads} threads at most"
    head = [
        Text(explanation.title),
        Text(f"{explanation.device}{threads}: {time_text(explanation.seconds)} for a dispatch"),
    ]
    if not explanation.kernels:
        return Group(*head, Text(NO_KERNELS if explanation.operators else "no operators"))
    return Group(*head, Text(summary(explanation)), _kernels(explanation))


NO_KERNELS = "This device evaluates each operation by itself; it has no kernels to look at."


def summary(explanation: ExplainedGraph) -> str:
    """Return the numbers of operators and kernels, and the bytes of memory."""
    operators, kernels = len(explanation.operators), len(explanation.kernels)
    return (
        f"{operators} operator{'s' * (operators != 1)} in {kernels} kernel{'s' * (kernels != 1)}, "
        f"{bytes_text(explanation.temporary_bytes)} temporary, "
        f"{bytes_text(explanation.persistent_bytes)} persistent memory"
    )


def _kernels(explanation: ExplainedGraph) -> RenderableType:
    table = Table(box=None, pad_edge=False)
    table.add_column("Kernel", justify="right")
    table.add_column("Operators", ratio=1, overflow="fold")
    for name in ("Time", "Share", "Floor", "x floor", "Bytes", "Operations"):
        table.add_column(name, justify="right", no_wrap=True)
    for kernel in explanation.largest_first:
        table.add_row(
            str(kernel.number),
            Text(name_text(kernel)),
            kernel_time_text(kernel),
            share_text(kernel.seconds / (explanation.kernel_seconds or 1)),
            time_text(kernel.floor_seconds),
            floors_text(kernel),
            bytes_text(kernel.bytes_read + kernel.bytes_written),
            count_text(kernel.operations),
        )
    return table
