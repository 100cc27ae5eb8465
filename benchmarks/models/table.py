"""The dashboard as Markdown and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.models.rounds import Outcome, Row, cold_and_warm
from benchmarks.report import processor_name


@dataclass
class Report:
    """One run: the rows so far, and what the reader has to know about them.

    Args:
        versions: of the engines' packages, by the names of the engines.
        skipped: engines and models that are left out, and why.
        note: a sentence about the machine.
    """

    versions: dict[str, str]
    device: str
    threads: int
    rounds: int
    note: str = ""
    rows: list[Row] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    day: str = field(default_factory=lambda: date.today().isoformat())
    processor: str = field(default_factory=processor_name)


def write(report: Report, path: Path) -> list[Path]:
    """Write the report as Markdown and as JSON, beside each other; return both paths."""
    path.parent.mkdir(parents=True, exist_ok=True)
    paths = [path.with_suffix(".md"), path.with_suffix(".json")]
    paths[0].write_text(markdown(report), encoding="utf-8")
    paths[1].write_text(json.dumps(as_json(report), indent=1), encoding="utf-8")
    return paths


def markdown(report: Report) -> str:
    """Return the conditions, a line for each model and type, and a line for each engine."""
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    memory = "in use on the device" if report.device == "cuda" else "at the peak of the process (`VmHWM`)"
    lines = [
        f"# Whole models, {report.day}",
        "",
        f"{report.processor}, device {report.device}, {report.threads} threads; {versions}. Medians of "
        f"{report.rounds} rounds, each engine in a process of its own in each. {report.note}".rstrip(),
        "",
        "- ratio: the time of the fastest other engine, divided by that of opendml: above 1, opendml wins.",
        "- CPU ratio, CPU ms, first CPU s: the same of the processors' time of all threads, which other "
        "processes disturb less.",
        "- floor: the time of a copy of the bytes of weights, inputs and outputs, or of the operations at "
        "the rate of multiply-adds in registers, whichever is larger.",
        "- first: seconds from the start of the process, imports included, to the first result; with empty "
        "caches, then with filled ones.",
        f"- MiB: memory {memory}; with empty caches, then with filled ones.",
        "- spread: the slowest round less the fastest, as a share of the median.",
        "- difference: the distance from the result of ONNX Runtime in float32, as a share of its length.",
        "",
        *_lines(_SUMMARY, [(row, None) for row in report.rows]),
        "",
        "## All engines",
        "",
        *_lines(_ENGINES, [(row, outcome) for row in report.rows for outcome in row.outcomes]),
    ]
    failed = {f"{row.case}, {row.type}": row.problem for row in report.rows if row.problem}
    if report.skipped or failed:
        lines += ["", "## Left out", ""]
        lines += [f"- {name}: {reason}" for name, reason in {**report.skipped, **failed}.items()]
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    return "" if value is None or value == 0 else f"{value:.3g}"


def _seconds(firsts: Sequence[float]) -> str:
    return " / ".join(f"{each:.2g}" for each in cold_and_warm(firsts))


def _memory(outcome: Outcome) -> str:
    return " / ".join(f"{each / 2**20:.0f}" for each in cold_and_warm(outcome.memories) if each)


def _of_ours(show: Callable[[Outcome], str]) -> Callable[[Row, Any], str]:
    return lambda row, _: show(row.ours) if row.ours else ""


def _of_peer(show: Callable[[Outcome], str]) -> Callable[[Row, Any], str]:
    return lambda row, _: show(row.best_peer) if row.best_peer else ""


def _timed(show: Callable[[Outcome], str]) -> Callable[[Row, Outcome], str]:
    return lambda _, outcome: show(outcome) if outcome.times else ""


def _problem(row: Row) -> str:
    """Return why there is no time of opendml that counts."""
    if row.problem or row.ours:
        return row.problem or ""
    return "; ".join(each.problem or "" for each in row.outcomes if each.engine.startswith("opendml"))


_SUMMARY: Mapping[str, Callable[[Row, Any], str]] = {
    "model": lambda row, _: row.case,
    "type": lambda row, _: row.type,
    "kernels": _of_ours(lambda ours: ours.kernels or ""),
    "ms": _of_ours(lambda ours: _number(ours.median)),
    "floor ms": lambda row, _: _number(row.floor),
    "best peer": _of_peer(lambda peer: f"{_number(peer.median)} ({peer.engine})"),
    "ratio": lambda row, _: "" if row.ratio is None else f"{row.ratio:.2f}",
    "CPU ratio": lambda row, _: "" if row.processor_ratio is None else f"{row.processor_ratio:.2f}",
    "first s": _of_ours(lambda ours: _seconds(ours.firsts)),
    "peer's first s": _of_peer(lambda peer: _seconds(peer.firsts)),
    "MiB": _of_ours(_memory),
    "peer's MiB": _of_peer(_memory),
    "problem": lambda row, _: _problem(row),
}
_ENGINES: Mapping[str, Callable[[Row, Any], str]] = {
    "model": lambda row, _: row.case,
    "type": lambda row, _: row.type,
    "engine": lambda _, outcome: outcome.engine,
    "kernels": _timed(lambda outcome: outcome.kernels or ""),
    "ms": _timed(lambda outcome: _number(outcome.median)),
    "spread": _timed(lambda outcome: f"{outcome.spread:.0%}"),
    "CPU ms": _timed(lambda outcome: _number(outcome.processor_median)),
    "first s": _timed(lambda outcome: _seconds(outcome.firsts)),
    "first CPU s": _timed(lambda outcome: _seconds(outcome.processor_firsts)),
    "MiB": _timed(_memory),
    "difference": _timed(lambda outcome: "" if outcome.difference is None else f"{outcome.difference:.1g}"),
    "problem": lambda _, outcome: (outcome.problem or "").replace("|", "/"),
}
_TEXT = ("model", "type", "engine", "best peer", "problem")
"""Columns of words; those of figures are aligned on the right."""


def _lines(columns: Mapping[str, Callable[[Row, Any], str]], rows: Sequence[tuple[Row, Any]]) -> list[str]:
    """Return a Markdown table."""
    marks = ["---" if name in _TEXT else "--:" for name in columns]
    cells = [[show(*row) for show in columns.values()] for row in rows]
    return [f"| {' | '.join(each)} |" for each in ([*columns], marks, *cells)]


def line(row: Row) -> str:
    """Return a row as a line for the terminal."""
    times = ", ".join(
        f"{each.engine} {_number(each.median) if each.times else '-'}{' (!)' if each.problem else ''}"
        for each in row.outcomes
    )
    shares = [] if row.ratio is None else [f"ratio {row.ratio:.2f}"]
    shares += [] if row.floor is None else [f"floor {_number(row.floor)}"]
    return f"{row.case} {row.type}: {row.problem or ', '.join([*shares, f'ms: {times}'])}"


def as_json(report: Report) -> dict[str, Any]:
    """Return all figures: times in milliseconds, first results in seconds, memory in bytes."""
    return {
        "day": report.day,
        "processor": report.processor,
        "device": report.device,
        "threads": report.threads,
        "rounds": report.rounds,
        "note": report.note,
        "versions": report.versions,
        "skipped": report.skipped,
        "rows": [
            {
                "model": row.case,
                "type": row.type,
                "problem": row.problem,
                "operations": row.work.operations if row.work else None,
                "moved_bytes": row.work.moved if row.work else None,
                "floor": row.floor,
                "ratio": row.ratio,
                "processor_ratio": row.processor_ratio,
                "engines": [_outcome(each) for each in row.outcomes],
            }
            for row in report.rows
        ],
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    fields: dict[str, Any] = {"engine": outcome.engine, "problem": outcome.problem}
    if outcome.times:
        finite = outcome.difference is not None and math.isfinite(outcome.difference)
        fields |= {"median": outcome.median, "spread": outcome.spread, "times": outcome.times}
        fields["processor_times"] = outcome.processor_times
        fields |= {"firsts": outcome.firsts, "processor_firsts": outcome.processor_firsts}
        fields |= {"memories": outcome.memories, "kernels": outcome.kernels}
        fields["difference"] = outcome.difference if finite else None
    return fields
