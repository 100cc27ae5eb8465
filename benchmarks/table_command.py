"""Options and output files of the commands that time one table on the CPU.

Nothing here imports a library with threads of its own before their number is known.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.__main__ import RESULTS, pin_threads

_HEADS = {
    "of_floor": "of floor",
    "of_fastest": "of fastest peer",
    "fused_of_floor": "fused of floor",
}
"""Shares of a row, and what stands above them."""


def case_options(description: str) -> argparse.ArgumentParser:
    """Return the options of a table of cases."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--words", nargs="*", default=[], help="only cases whose names have all of these")
    return parser


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the options of a command, and set the number of threads of all libraries."""
    arguments = parser.parse_args()
    pin_threads(arguments.threads)
    if capability := getattr(arguments, "capability", None):
        # Intel's MKL, which computes PyTorch's tanh, exp, log and erf, does not ask ATen.
        os.environ |= {"ATEN_CPU_CAPABILITY": capability, "MKL_ENABLE_INSTRUCTIONS": capability.upper()}
    import torch

    torch.set_num_threads(arguments.threads)
    return arguments


def table_of_peers(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], shares: Sequence[str]) -> str:
    """Rows with the `milliseconds` of those columns, and before these shares that may be None, as a Markdown
    table."""
    heads = [_HEADS[share] for share in shares]
    lines = [f"| {' | '.join(['case', *heads, *columns])} |", "|---" * (1 + len(heads) + len(columns)) + "|"]
    for row in rows:
        times = row["milliseconds"]
        parts = ["" if row[share] is None else f"{row[share]:.2f}" for share in shares]
        shown = [f"{times[name]:.3g}" if name in times else "" for name in columns]
        lines.append(f"| {' | '.join([row['name'], *parts, *shown])} |")
    return "\n".join(lines)


def write_table(
    name: str,
    title: str,
    arguments: argparse.Namespace,
    rows: Sequence[Mapping[str, Any]],
    table: str,
    *,
    setting: str = "",
    unit: str = "",
    **facts: object,
) -> None:
    """Writes `DAY-PROCESSOR-name.md` and `.json` into the folder of the options.

    Args:
        rows: what the JSON file holds, beside processor, threads, rounds and `facts`.
        table: the rows in Markdown.
        setting: stands in the heading behind processor and threads, `unit` behind the rounds.
    """
    from benchmarks.report import processor_name

    day, processor = date.today().isoformat(), processor_name()
    arguments.out.mkdir(parents=True, exist_ok=True)
    stem = arguments.out / f"{day}-{'-'.join(processor.lower().split())}-{name}"
    common = {"processor": processor, "threads": arguments.threads, "rounds": arguments.rounds}
    stem.with_suffix(".json").write_text(json.dumps({**common, **facts, "rows": rows}, indent=1))
    heading = [f"{processor}, {arguments.threads} threads", setting]
    medians = [f"medians of {arguments.rounds} rounds in turns", unit]
    shown = "; ".join(", ".join(filter(None, each)) for each in (heading, medians))
    stem.with_suffix(".md").write_text(f"# {title}, {day}\n\n{shown}.\n\n{table}\n")
