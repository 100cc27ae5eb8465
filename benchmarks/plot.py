"""One picture: for every case, each contender's speed as a share of the copy's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

from benchmarks.contender import Mode

if TYPE_CHECKING:
    from benchmarks.report import Report

# Told apart by shape too: filled for new arrays, open for bound outputs and in place.
COLORS = {
    "opendml": "#d1495b",
    "torch": "#ee964b",
    "torch.compile": "#8d6a9f",
    "onnxruntime": "#30638e",
    "openvino": "#00798c",
    "jax": "#5b8c5a",
    "numpy": "#888888",
}
MARKERS = {Mode.BOUND: "D", Mode.NEW: "o", Mode.IN_PLACE: "s"}


def draw(report: Report, path: Path) -> Path:
    """Writes the plot as PNG and returns its path."""
    results = [result for result in report.results if any(result.timed())]
    figure, axes = pyplot.subplots(figsize=(10, 1.6 + 0.24 * len(results)), layout="constrained")
    labelled: set[str] = set()
    for row, result in enumerate(results):
        for outcome in result.timed():
            label = f"{outcome.peer}, {outcome.mode}"
            mode = outcome.mode or Mode.BOUND
            color = COLORS[outcome.peer]
            axes.plot(
                result.share_of_copy(outcome),
                row,
                MARKERS[mode],
                color=color,
                markerfacecolor=color if mode is Mode.NEW or outcome.peer == "opendml" else "white",
                markersize=6,
                label=label if label not in labelled else None,
            )
            labelled.add(label)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlim(left=0)
    axes.set_ylim(len(results) - 0.5, -0.5)
    axes.set_yticks(range(len(results)), [result.case.name for result in results], fontsize=8)
    axes.set_xlabel("speed as a share of the copy of the same bytes")
    axes.set_title(f"{report.processor}, {report.threads} threads, {report.day}", fontsize=10)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8, frameon=False)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return path
