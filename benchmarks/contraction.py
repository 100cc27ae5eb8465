"""Times matrix products, convolutions and attention on the CPU beside NumPy, PyTorch, ONNX Runtime and
OpenVINO.

python -m benchmarks.contraction [--words WORD ...] [--rounds N] [--threads N] [--out DIRECTORY]

All that are installed take turns on the same threads and values; figures are medians, in GFLOP/s. The floor
is the time of the multiply-adds alone, at the speed of a loop over registers that takes its turn with them:
of floats, also beside integers. Filters and biases are constants, as in a network.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any

from benchmarks.table_command import case_options, parsed, write_table
from benchmarks.turns import rest, seconds

if TYPE_CHECKING:
    from benchmarks.contraction_cases import Case
    from benchmarks.peak import Peak


def time_case(case: Case, peak: Peak, rounds: int) -> dict[str, Any]:
    """Median GFLOP/s of all contenders and of the floor, in turns, and the largest difference from them."""
    import numpy as np

    runs: dict[str, Callable[[], Any]] = {}
    for name, prepare in case.contenders.items():
        try:
            runs[name] = prepare()
        except ImportError as missing:
            print(f"{name}: left out ({missing})")
    results = {name: np.array(np.asarray(run())) for name, run in runs.items()}
    reference = results["opendml"].astype(np.float64)
    scale = float(np.abs(reference).max())
    difference = max(float(np.abs(each - reference).max()) / scale for each in results.values())
    speeds: dict[str, list[float]] = {name: [] for name in ("floor", *runs)}
    for _ in range(rounds):
        speeds["floor"].append(peak.operations() / 1e9)
        for name, run in runs.items():
            rest()
            speeds[name].append(case.operations / seconds(run) / 1e9)
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    peers = [name for name in medians if name != "floor" and not name.startswith("opendml")]
    fastest = max((medians[name] for name in peers), default=1.0)
    return {
        "name": case.name,
        "of_floor": medians["opendml"] / medians["floor"],
        "of_fastest": medians["opendml"] / fastest,
        "gflops": medians,
        "difference": difference,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    columns = ("floor", "opendml", "opendml float32", "numpy", "torch", "onnxruntime", "openvino")
    head = ("case", "of floor", "of fastest peer", *columns)
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in rows:
        speeds = row["gflops"]
        shown = " | ".join(f"{speeds[name]:.0f}" if name in speeds else "" for name in columns)
        lines.append(f"| {row['name']} | {row['of_floor']:.2f} | {row['of_fastest']:.2f} | {shown} |")
    return "\n".join(lines)


def main() -> None:
    """Times the cases and writes the table."""
    arguments = parsed(case_options("Times matrix products, convolutions and attention on the CPU."))
    # What comes with threads is imported when their number is known.
    from benchmarks.attention_cases import attention_cases
    from benchmarks.contraction_cases import cases
    from benchmarks.peak import Peak

    peak = Peak(arguments.threads)
    rows = []
    for case in chain(cases(arguments.threads), attention_cases(arguments.threads)):
        if all(word in case.name for word in arguments.words):
            row = time_case(case, peak, arguments.rounds)
            rows.append(row)
            print(
                f"{case.name:44} {row['of_floor']:.2f} of floor, {row['of_fastest']:.2f} of fastest",
                flush=True,
            )
    write_table("contraction", "Sums of products", arguments, rows, table(rows), unit="GFLOP/s")


if __name__ == "__main__":
    main()
