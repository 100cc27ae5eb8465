"""Draw the graph of operators and the memory of the arena as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from opendml.runtime.explain.wording import bytes_text, share_text

if TYPE_CHECKING:
    from opendml.runtime.explain.explanation import ExplainedGraph, ExplainedOperator

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
