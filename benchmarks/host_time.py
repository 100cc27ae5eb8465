"""Times what sizes that change cost on the host, beside the work of kernels.

python -m benchmarks.host_time [--case TEXT ...] [--rounds N] [--models FOLDER] [--out FILE]

Each model runs with sizes of one bucket, then with those of others. The time of a dispatch does not count,
the rest of a call does: processor time of the calling thread, which other programs change little. While code
is compiled, which other threads do, it is elapsed time.

Three processes follow each other: one with an empty cache ("no code"), one that finds machine code but no
plans ("code"), and one that finds the plans of the first bucket alone ("a plan").
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sizes import CASES, CHARACTER_CACHE, Arrays, options, packaged, random_floats, token_inputs

REPEATS = 5
"""Runs with sizes that are known."""
PHASES = ("first", "known size", "new size", "new bucket")


@dataclass(frozen=True)
class Case:
    """A model, and sizes for it.

    Args:
        model: returns the model's file, which it may make in a folder.
        inputs: makes inputs of a size.
        near: sizes of one bucket. The first one comes first.
        far: sizes of other buckets.
    """

    model: Callable[[Path], Path]
    inputs: Callable[[Any], Arrays]
    near: tuple[Any, ...]
    far: tuple[Any, ...]


def _decoded(past: int) -> Arrays:
    keys = {name: random_floats(*sizes[:2], past, sizes[3]) for name, sizes in CHARACTER_CACHE.items()}
    return {"numbers": np.array([[past % 50]]), **keys}


def _sound(batch: int) -> Arrays:
    return {
        "input": random_floats(batch, 576) / 4,
        "state": random_floats(2, batch, 128) / 4,
        "sr": np.array(16000, np.int64),
    }


def _bytes(batch: int) -> Arrays:
    return {"bytes": np.random.default_rng(batch).integers(0, 256, (batch, 2048), np.int32)}


_made = {each.name: each.model for each in CASES}
HOST_CASES = {
    "gpt, 3 layers": Case(_made["gpt, 3 layers"], _decoded, (70, 71, 90, 120), (20, 300, 10)),
    "bert-base": Case(_made["bert-base"], token_inputs, (100, 101, 120, 90), (40, 300, 20)),
    "nudenet": Case(
        packaged("nudenet"), lambda n: {"images": random_floats(n, 3, 320, 320)}, (4, 5, 6, 7), (2, 9, 1)
    ),
    "rapidocr-rec": Case(
        packaged("rapidocr-rec"),
        lambda n: {"x": random_floats(1, 3, 48, n)},
        (320, 340, 500, 400),
        (200, 40, 1200),
    ),
    "rapidocr-det": Case(
        packaged("rapidocr-det"),
        lambda sizes: {"x": random_floats(1, 3, *sizes)},
        ((320, 288), (288, 320), (416, 384), (352, 320)),
        ((160, 320), (192, 224), (640, 320)),
    ),
    "magika": Case(packaged("magika"), _bytes, (4, 5, 6, 7), (2, 9, 20)),
    "silero-vad": Case(packaged("silero-vad"), _sound, (4, 5, 6, 7), (2, 9, 20)),
}


class Dispatches:
    """The time of all dispatches of this process, and the launches of the longest one."""

    def __init__(self, clock: Callable[[], float]) -> None:
        from opendml.targets.cpu.pool import Pool

        self.seconds, self.launches, self._clock = 0.0, 0, clock
        for name in ("dispatch", "short_dispatch"):
            setattr(Pool, name, self._timed(getattr(Pool, name)))

    def _timed(self, method: Any) -> Any:
        """Return a method that makes dispatches, which note their time."""

        def made(pool: Any, job: Any, *others: Any) -> Callable[[], object]:
            run = method(pool, job, *others)

            def dispatch() -> None:
                begun = self._clock()
                run()
                self.seconds += self._clock() - begun
                self.launches = max(self.launches, job[0])

            return dispatch

        return made


def work(name: str, path: str, compiles: bool, only_near: bool) -> dict[str, Any]:
    """Run a case in this process, and return the milliseconds of the host in each phase, and the launches."""
    import opendml as dml

    clock = time.perf_counter if compiles else time.thread_time
    dispatches, case = Dispatches(clock), HOST_CASES[name]
    model = dml.onnx.load(path, dml.Device("cpu", threads=2))
    found: dict[str, list[float]] = {phase: [] for phase in PHASES}

    def runs() -> Iterator[tuple[str, Any]]:
        yield "first", case.near[0]
        yield from [("known size", case.near[0])] * REPEATS
        yield from [("new size", size) for size in case.near[1:]]
        if not only_near:
            yield from [("new bucket", size) for size in case.far]

    for phase, size in runs():
        inputs = case.inputs(size)
        before, begun = dispatches.seconds, clock()
        model(**inputs)
        elapsed = clock() - begun
        found[phase].append((elapsed - dispatches.seconds + before) * 1e3)
    return {**found, "launches": dispatches.launches}


def _measured(
    name: str, path: Path, cache: str, plans: bool = False, compiles: bool = False, only_near: bool = False
) -> dict[str, Any]:
    task = json.dumps([name, str(path), compiles, only_near])
    variables = {"OPENDML_CACHE_DIRECTORY": cache, "OPENDML_CACHE_PLANS": str(int(plans))}
    command = [sys.executable, "-m", "benchmarks.host_time", "--task", task]
    finished = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | variables
    )
    result: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return result


def rows(name: str, rounds: int, models: Path) -> Iterator[str]:
    """Measure a case, and yield the rows of the table: medians, and all times of new buckets."""
    case = HOST_CASES[name]
    measured = {state: list[dict[str, Any]]() for state in ("no code", "code", "a plan")}
    path = case.model(models)
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            measure = partial(_measured, name, path, cache)
            measured["no code"].append(measure(compiles=True))
            measured["code"].append(measure())
            measure(plans=True, only_near=True)
            measured["a plan"].append(measure(plans=True))
    for state, found in measured.items():
        cells = [
            " ".join(
                [
                    f"{statistics.median(times):.2f}"
                    for times in zip(*[_distinct(each[phase], phase) for each in found], strict=True)
                ]
            )
            for phase in PHASES
        ]
        yield f"| {name}, {found[0]['launches']} launches | {state} | {' | '.join(cells)} |"


def _distinct(times: list[float], phase: str) -> list[float]:
    """Return the times of each bucket, or the median of sizes of one bucket."""
    return times if phase == "new bucket" else [statistics.median(times)]


def main() -> None:
    """Measure the cases, and print the table."""
    parser = options(__doc__, "times that all processes run (3)")
    arguments = parser.parse_args()
    if arguments.task:
        print(json.dumps(work(*json.loads(arguments.task))))
        return
    arguments.models.mkdir(parents=True, exist_ok=True)
    head = ["model", "cache has", *(f"{each}: ms of the host" for each in PHASES)]
    lines = [f"| {' | '.join(head)} |", f"|---|---|{'--:|' * len(PHASES)}"]
    for name in HOST_CASES:
        if not arguments.case or any(text in name for text in arguments.case):
            for line in rows(name, arguments.rounds, arguments.models):
                lines.append(line)
                print(line, flush=True)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
