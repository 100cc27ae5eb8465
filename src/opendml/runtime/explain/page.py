"""An explanation as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

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
    from opendml.runtime.explain.explanation import ExplainedGraph, ExplainedKernel, ExplainedOperator


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


_WIDTH, _HEIGHT, _COLUMN, _ROW, _MARGIN = 252, 46, 268, 84, 12
_MEMORY_HEIGHT, _STEP, _LEFT = 260, 26, 80


def graph_picture(explanation: ExplainedGraph) -> str:
    """Return a picture of the operators, coloured by their kernels' share of the time."""
    rows = _rows(explanation.operators)
    if not rows:
        return ""
    widest = max(map(len, rows))
    places: dict[str, tuple[float, float]] = {}
    for depth, row in enumerate(rows):
        for column, name in enumerate(row):
            x = _MARGIN + _COLUMN * (column + (widest - len(row)) / 2)
            places[name] = x, _MARGIN + _ROW * depth
    known = {each.label: each for each in explanation.operators}
    lines = [
        _edge(places[read], places[each.label])
        for each in explanation.operators
        for read in each.reads
        if read in places
    ]
    boxes = [
        _box(explanation, known[name], place) if name in known else _input(name, place)
        for name, place in places.items()
    ]
    width, height = 2 * _MARGIN + _COLUMN * widest, 2 * _MARGIN + _ROW * len(rows)
    return _svg(width, height, "The graph of operators", [*lines, *boxes])


def _rows(operators: Sequence[ExplainedOperator]) -> list[list[str]]:
    """Return rows of names: inputs, and operators below all that they read, without constants.

    Each row is ordered by the positions of what its operators read.
    """
    known = {each.label for each in operators}
    inputs = {
        name: None
        for each in operators
        for name in each.reads
        if name not in known and not name.startswith("constant ")
    }
    rows: list[list[str]] = [list(inputs)]
    depths = dict.fromkeys(inputs, 0)
    for each in operators:
        depth = 1 + max((depths[name] for name in each.reads if name in depths), default=0)
        depths[each.label] = depth
        while len(rows) <= depth:
            rows.append([])
        rows[depth].append(each.label)
    places: dict[str, float] = {}
    above = {each.label: [name for name in each.reads if name in depths] for each in operators}
    for row in rows:
        centres = {
            name: sum(places.get(each, 0) for each in above.get(name, ())) / max(len(above.get(name, ())), 1)
            for name in row
        }
        row.sort(key=lambda name: centres[name])
        places |= {name: column - len(row) / 2 for column, name in enumerate(row)}
    return rows if rows[0] else rows[1:]


def _box(explanation: ExplainedGraph, operator: ExplainedOperator, place: tuple[float, float]) -> str:
    x, y = place
    kernels = [explanation.kernels[number] for number in operator.kernels]
    share = sum(kernel.seconds for kernel in kernels) / (explanation.kernel_seconds or 1)
    numbers = " ".join(str(kernel.number) for kernel in kernels)
    if kernels:
        names = ", ".join(str(kernel.number) for kernel in kernels[:4]) + (
            ", ..." if len(kernels) > 4 else ""
        )
        subtitle = f"kernel{'s' * (len(kernels) > 1)} {names} · {share_text(share)}"
    else:
        subtitle = "no kernel of its own" if explanation.kernels else ""
    reads = [name for name in operator.reads if name.startswith("constant ")]
    title = "\n".join([operator.label, *operator.outputs, *([f"reads {', '.join(reads)}"] if reads else [])])
    return (
        f'<g class="operator" data-kernel="{numbers}"><title>{escape(title)}</title>'
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" '
        f'style="fill:{heat(share)}"/>'
        f'<text x="{x + 10:.0f}" y="{y + 19:.0f}">{escape(_short(operator.operator))}</text>'
        f'<text class="small" x="{x + 10:.0f}" y="{y + 36:.0f}">{escape(subtitle)}</text></g>'
    )


def _input(name: str, place: tuple[float, float]) -> str:
    x, y = place
    return (
        f'<g class="input"><rect x="{x:.0f}" y="{y + 10:.0f}" width="{_WIDTH}" height="28" rx="14"/>'
        f'<text x="{x + _WIDTH / 2:.0f}" y="{y + 29:.0f}" text-anchor="middle">'
        f"{escape(_short(name))}</text></g>"
    )


def _edge(above: tuple[float, float], below: tuple[float, float]) -> str:
    x0, y0 = above[0] + _WIDTH / 2, above[1] + _HEIGHT
    x1, y1 = below[0] + _WIDTH / 2, below[1]
    bend = (y1 - y0) / 2
    return (
        f'<path class="edge" d="M{x0:.0f} {y0:.0f} C{x0:.0f} {y0 + bend:.0f} {x1:.0f} {y1 - bend:.0f} '
        f'{x1:.0f} {y1:.0f}"/>'
    )


def heat(share: float) -> str:
    """Return a colour between white and orange for a share of the time."""
    return f"hsl(32 95% {96 - 34 * min(max(share, 0.0), 1.0) ** 0.5:.0f}%)"


def _short(text: str, most: int = 30) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def memory_picture(explanation: ExplainedGraph) -> str:
    """Return a picture of the arena: kernels from left to right, bytes from bottom to top."""
    if not explanation.temporaries:
        return ""
    top = max(each.offset + each.size for each in explanation.temporaries)
    scale = _MEMORY_HEIGHT / top
    parts = [
        f'<text class="small" x="{_LEFT - 8}" y="{_MARGIN + 10}" text-anchor="end">{bytes_text(top)}</text>',
        f'<text class="small" x="{_LEFT - 8}" y="{_MARGIN + _MEMORY_HEIGHT}" text-anchor="end">0</text>',
    ]
    for each in explanation.temporaries:
        x, width = _LEFT + _STEP * each.first, _STEP * (each.last - each.first + 1)
        y = _MARGIN + _MEMORY_HEIGHT - scale * (each.offset + each.size)
        title = f"{bytes_text(each.size)} at {each.offset:,}, from kernel {each.first} to kernel {each.last}"
        numbers = " ".join(map(str, range(each.first, each.last + 1)))
        parts.append(
            f'<g class="temporary" data-kernel="{numbers}"><title>{escape(title)}</title>'
            f'<rect x="{x + 1}" y="{y:.1f}" width="{width - 2}" height="{max(scale * each.size - 1, 1):.1f}" '
            'rx="2"/></g>'
        )
    every = max(1, len(explanation.kernels) // 40)
    parts += [
        f'<text class="small" x="{_LEFT + _STEP * (number + 0.5):.0f}" y="{_MARGIN + _MEMORY_HEIGHT + 16}" '
        f'text-anchor="middle">{number}</text>'
        for number in range(0, len(explanation.kernels), every)
    ]
    width = _LEFT + _STEP * len(explanation.kernels) + _MARGIN
    return _svg(width, _MEMORY_HEIGHT + 2 * _MARGIN + 20, "The memory of temporaries", parts)


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{title}" {size}>'
    return f"{head}{''.join(parts)}</svg>"
