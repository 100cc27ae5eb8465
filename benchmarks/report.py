"""The tables, on the terminal and as Markdown, and all figures as JSON."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.contender import Mode
from benchmarks.goals import fastest_new, shortfalls
from benchmarks.small_work import Small
from benchmarks.timing import Outcome, Result


@dataclass
class Report:
    """One run of the benchmarks on this machine; `peers` gives each library's version."""

    peers: dict[str, str]
    rounds: int
    threads: int
    results: list[Result] = field(default_factory=list)
    small: list[Small] = field(default_factory=list)
    day: str = field(default_factory=lambda: date.today().isoformat())
    processor: str = field(default_factory=lambda: processor_name())


def processor_name() -> str:
    """The processor's name as Linux knows it, else what Python tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def print_case(console: Console, result: Result) -> None:
    """All contenders of one case."""
    case = result.case
    moved = case.traffic / result.copy.median / 1e6
    title = f"{case.name}: copy {result.copy.median:.3g} ms, {moved:.1f} GB/s"
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in ("contender", "ms", "spread", "of copy", "first call ms", "note"):
        table.add_column(column, justify="left" if column in ("contender", "note") else "right")
    for outcome in sorted(result.outcomes, key=lambda o: o.median if o.times else float("inf")):
        name = f"{outcome.peer}, {outcome.mode}"
        if outcome.times:
            table.add_row(
                name,
                f"{outcome.median:.3g}",
                f"{outcome.spread:.0%}",
                f"{result.share_of_copy(outcome):.2f}",
                f"{outcome.first_call:.3g}",
                "",
            )
        elif outcome.problem:
            table.add_row(name, "", "", "", "", outcome.problem, style="dim")
    console.print(table)
    missed = shortfalls(result)
    console.print(f"goals: {'missed: ' + '; '.join(missed) if missed else 'met'}\n", highlight=False)


def print_small(console: Console, figures: list[Small]) -> None:
    """The figures of small work, one a row."""
    table = Table(title="small work", title_justify="left", title_style="bold")
    table.add_column("what")
    table.add_column("median", justify="right")
    table.add_column("goal")
    for figure in figures:
        table.add_row(figure.name, figure.text, figure.verdict)
    console.print(table)


def write(report: Report, folder: Path) -> list[Path]:
    """Writes `DAY-PROCESSOR.md`, `.json` and, with matplotlib, `.png`; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{report.day}-{'-'.join(report.processor.lower().split())}"
    paths = [stem.with_name(stem.name + suffix) for suffix in (".md", ".json")]
    paths[0].write_text(markdown(report), encoding="utf-8")
    paths[1].write_text(json.dumps(as_json(report), indent=1), encoding="utf-8")
    if any(result.outcomes for result in report.results):
        try:
            from benchmarks.plot import draw
        except ImportError:
            return paths
        paths.append(draw(report, stem.with_name(stem.name + ".png")))
    return paths


def markdown(report: Report) -> str:
    """Return a summary that can be read alone: the machine, the versions, a line per case, small work."""
    libraries = ", ".join(f"{name} {version}" for name, version in report.peers.items())
    lines = [
        f"# Benchmarks of {report.day}",
        "",
        f"{report.processor}, {report.threads} threads, "
        f"Python {platform.python_version()}, {platform.system()}; "
        f"{libraries}. Medians of {report.rounds} rounds in turns, in milliseconds; "
        "the copy moves the same bytes on the same threads.",
        "",
        "| case | copy | opendml, bound | of copy | torch, bound | opendml, new | fastest other, new | "
        "torch, in place | goals |",
        "|---|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    lines += [_markdown_row(result) for result in report.results]
    if report.small:
        lines += ["", "| small work | median | goal |", "|---|--:|---|"]
        lines += [f"| {figure.name} | {figure.text} | {figure.verdict} |" for figure in report.small]
    return "\n".join(lines) + "\n"


def _markdown_row(result: Result) -> str:
    def shown(outcome: Outcome | None) -> str:
        return f"{outcome.median:.3g}" if outcome else ""

    bound, new = result.find("opendml", Mode.BOUND), fastest_new(result)
    cells = [
        result.case.name,
        f"{result.copy.median:.3g}",
        shown(bound),
        f"{result.share_of_copy(bound):.2f}" if bound else "",
        shown(result.find("torch", Mode.BOUND)),
        shown(result.find("opendml", Mode.NEW)),
        f"{new[1]:.3g} ({new[0]})" if new else "",
        shown(result.find("torch", Mode.IN_PLACE)),
        "; ".join(shortfalls(result)) or "met",
    ]
    return f"| {' | '.join(cells)} |"


def as_json(report: Report) -> dict[str, Any]:
    """Every figure that was measured; times in milliseconds, those of small work in seconds."""
    return {
        "day": report.day,
        "processor": report.processor,
        "threads": report.threads,
        "rounds": report.rounds,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "peers": report.peers,
        "cases": [
            {
                "name": result.case.name,
                "bytes": result.case.traffic,
                "copy": _outcome_json(result.copy),
                "outcomes": [_outcome_json(outcome) for outcome in result.outcomes],
            }
            for result in report.results
        ],
        "small": {figure.name: figure.seconds for figure in report.small},
    }


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
    fields: dict[str, Any] = {"peer": outcome.peer, "mode": outcome.mode}
    if outcome.times:
        fields |= {"median": outcome.median, "spread": outcome.spread, "first_call": outcome.first_call}
        fields["error"] = outcome.error
    else:
        fields["problem"] = outcome.problem
    return fields
