"""An explanation as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from opendml.runtime.explain.picture import graph_picture, heat, memory_picture
from opendml.runtime.explain.text import NO_KERNELS, summary
from opendml.runtime.explain.wording import (
    bytes_text,
    count_text,
    floors_text,
    kernel_time_text,
    share_text,
    time_text,
)

if TYPE_CHECKING:
    from opendml.runtime.explain.explanation import ExplainedGraph, ExplainedKernel


def page(explanation: ExplainedGraph) -> str:
    """Return the page: kernels by falling time, the graph, and the memory. Hovering marks related parts."""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f"<title>opendml: {time_text(explanation.seconds)} on {escape(explanation.device)}</title>",
            f"<style>{_file('page.css')}</style></head><body>",
            *_head(explanation),
            *_kernels(explanation),
            *_graph(explanation),
            *_memory(explanation),
            *_method(explanation),
            f"<script>{_file('page.js')}</script>",
            "</body></html>",
            "",
        ]
    )


def _file(name: str) -> str:
    """Return the content of a file beside this module."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _head(explanation: ExplainedGraph) -> Iterator[str]:
    yield f"<h1>{escape(explanation.title)}</h1>"
    threads = "" if explanation.threads is None else f", {explanation.threads} threads at most"
    yield (
        f'<div class="total">{time_text(explanation.seconds)} '
        f"<span>for a dispatch on {escape(explanation.device)}{threads}</span></div>"
    )
    yield f"<p>{summary(explanation)}.</p>" if explanation.kernels else f"<p>{NO_KERNELS}</p>"


def _kernels(explanation: ExplainedGraph) -> Iterator[str]:
    if not explanation.kernels:
        return
    yield "<h2>Where the time goes</h2>"
    yield (
        '<p><span class="key" style="background:var(--bar)"></span> measured time of a kernel, one pass over '
        "memory, largest first, with the sizes of its result. "
        '<span class="key" style="background:var(--floor)"></span> its floor: what '
        "this machine takes to copy as many bytes, or to do as many operations in a "
        "matrix product.</p>"
    )
    columns = ("Time", "Share", "x floor", "Bytes", "Operations", "Bound by")
    head = "".join(f"<th>{name}</th>" for name in columns)
    yield '<div class="scroll"><table id="kernels"><thead>'
    yield f'<tr><th>Kernel</th><th class="name">Operators in it</th><th></th>{head}</tr></thead><tbody>'
    longest = max(max(kernel.seconds, kernel.floor_seconds) for kernel in explanation.kernels)
    for kernel in explanation.largest_first:
        yield _row(explanation, kernel, longest)
    yield "</tbody></table></div>"


def _row(explanation: ExplainedGraph, kernel: ExplainedKernel, longest: float) -> str:
    share = kernel.seconds / (explanation.kernel_seconds or 1)
    sizes = f" <small>{list(kernel.result)}</small>" if kernel.result else ""
    times = f" <small>({kernel.times} times)</small>" if kernel.times > 1 else ""
    title = f"{', '.join(kernel.launches)} over {list(kernel.domain)}, reducing {list(kernel.axes)}"
    bars = "".join(
        f'<div class="{name}" style="width:{100 * seconds / longest:.2f}%"></div>'
        for name, seconds in (("time", kernel.seconds), ("least", kernel.floor_seconds))
    )
    moved = kernel.bytes_read + kernel.bytes_written
    cells = (
        escape(kernel_time_text(kernel)),
        escape(share_text(share)),
        floors_text(kernel),
        bytes_text(moved),
        count_text(kernel.operations),
        kernel.bound,
    )
    return (
        f'<tr data-kernel="{kernel.number}" title="{escape(title)}">'
        f'<td style="background:{heat(share)}">{kernel.number}</td>'
        f'<td class="name">{escape(kernel.name)}{sizes}{times}</td>'
        f'<td class="bar"><div class="track">{bars}</div></td>'
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + "</tr>"
    )


def _graph(explanation: ExplainedGraph) -> Iterator[str]:
    if explanation.operators:
        yield "<h2>What became of the graph</h2>"
        yield (
            "<p>Operators with the number of the kernel that computes them; those of one kernel were fused. "
            "The darker, the more of the time its kernels take. Point at one to see what belongs to it.</p>"
        )
        yield f'<div class="scroll" id="graph">{graph_picture(explanation)}</div>'


def _memory(explanation: ExplainedGraph) -> Iterator[str]:
    if explanation.temporaries:
        yield "<h2>The memory between kernels</h2>"
        yield (
            "<p>From left to right the kernels in their order, from bottom to top the bytes of the arena. "
            "What is not needed at the same time shares bytes. The arena has "
            f"{bytes_text(explanation.temporary_bytes)}, with scratch memory and partial results.</p>"
        )
        yield f'<div class="scroll" id="memory">{memory_picture(explanation)}</div>'


def _method(explanation: ExplainedGraph) -> Iterator[str]:
    if not explanation.kernels or explanation.operation_rate is None:
        return
    rates = ", ".join(
        f"{bytes_text(rate)}/s up to {bytes_text(size)}" for size, rate in explanation.bandwidth
    )
    yield "<h2>How this was measured</h2>"
    yield (
        "<p>Each launch alone, again and again, over the same memory; medians, without what it takes to "
        "launch nothing. Kernels one by one need not add up to the dispatch: what one has left in the "
        "caches, or still does while the next begins, counts there. Copies on this machine: "
        f"{rates}. Matrix products: {count_text(explanation.operation_rate)} operations/s. A function "
        "counts as ten operations.</p>"
    )
