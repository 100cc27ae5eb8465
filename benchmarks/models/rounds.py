"""The rounds: in each, every engine runs once in a process of its own, and no two run at once."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.models.cases import Case
from benchmarks.models.prepare import folder_of, load_work
from benchmarks.models.work import Rates, Work
from benchmarks.models.worker import Job

TOLERANCES = {"float32": 1e-3, "float16": 5e-2, "int8": 0.25, "int8-dynamic": 0.25}
"""Largest allowed distance of an output from the expected one, as a share of the latter's length. Random
layers amplify roundings: on ResNet-50 all engines reach 0.035 in float16, and in int8 ONNX Runtime 0.07 and
OpenVINO, which moves quantizations, 0.15. Unrelated outputs are about 1.4 away."""

CACHES = ("OPENDML_CACHE_DIRECTORY", "TORCHINDUCTOR_CACHE_DIR")


@dataclass
class Outcome:
    """The results of the rounds of one engine.

    Args:
        times: milliseconds of a run, the median of each round.
        processor_times: the same of the processors' time of all threads. Other processes disturb it less.
        firsts: seconds from the start of the process to the first result. That of the first round begins
            with empty caches.
        processor_firsts: the same of the processors' time of all threads.
        memories: peak bytes of the process, on CUDA those in use on the device. The first round compiles.
        difference: the distance from the expected outputs, a share of their length.
        kernels: how many kernels a run launches.
        problem: why there are no times, or why they do not count.
    """

    engine: str
    times: list[float] = field(default_factory=list)
    processor_times: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    processor_firsts: list[float] = field(default_factory=list)
    memories: list[int] = field(default_factory=list)
    difference: float | None = None
    kernels: str | None = None
    problem: str | None = None

    @property
    def median(self) -> float:
        """The median milliseconds of the rounds."""
        return statistics.median(self.times)

    @property
    def processor_median(self) -> float:
        """The median milliseconds of processors' time of the rounds."""
        return statistics.median(self.processor_times)

    @property
    def spread(self) -> float:
        """The distance of the slowest round from the fastest, as a share of the median."""
        return (max(self.times) - min(self.times)) / self.median


def cold_and_warm(rounds: Sequence[float]) -> list[float]:
    """Return the figure with empty caches, and after several rounds the median of those with filled ones."""
    return [*rounds[:1], *([statistics.median(rounds[1:])] if len(rounds) > 1 else [])]


@dataclass
class Row:
    """A case in one type: its outcomes in the order of the engines; `problem` says why there are none."""

    case: str
    type: str
    work: Work | None = None
    rates: Rates | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    problem: str | None = None

    @property
    def floor(self) -> float | None:
        """Milliseconds of a run at the machine's rates."""
        return self.rates.floor(self.work) if self.rates and self.work else None

    @property
    def ours(self) -> Outcome | None:
        """The fastest right outcome of opendml."""
        return min(self._right(is_ours=True), key=lambda each: each.median, default=None)

    @property
    def best_peer(self) -> Outcome | None:
        """The fastest right outcome of another engine."""
        return min(self._right(is_ours=False), key=lambda each: each.median, default=None)

    @property
    def ratio(self) -> float | None:
        """How many times faster opendml is than the best peer."""
        return self.best_peer.median / self.ours.median if self.ours and self.best_peer else None

    @property
    def processor_ratio(self) -> float | None:
        """The least processors' time of other engines as a multiple of the least of opendml's."""
        least = [
            min((each.processor_median for each in self._right(is_ours=is_ours)), default=0.0)
            for is_ours in (False, True)
        ]
        return least[0] / least[1] if all(least) else None

    def _right(self, is_ours: bool) -> list[Outcome]:
        """Return the timed outcomes without problems, of opendml or of the others."""
        return [
            each
            for each in self.outcomes
            if each.times and each.problem is None and each.engine.startswith("opendml") == is_ours
        ]


@dataclass(frozen=True)
class Settings:
    """How models are measured; `root` is the folder of prepared models, `timeout` seconds of a process."""

    root: Path
    device: str
    threads: int
    rounds: int
    seconds: float
    timeout: float


Start = Callable[[Job, Mapping[str, str]], dict[str, Any]]
"""Does a job in a process with these variables in its environment, and returns what it found."""


def measure(case: Case, type: str, engines: Sequence[str], settings: Settings, start: Start) -> Row:
    """Run the engines on a prepared case in rounds; one that fails or is wrong is a problem of its own."""
    folder = folder_of(settings.root, case, type)
    row = Row(case.name, type, load_work(folder), outcomes=[Outcome(name) for name in engines])
    job = Job("", str(folder), type, settings.device, settings.threads, settings.seconds, False, 0.0, "")
    if row.work:
        found = start(replace(job, engine="rates"), {})
        row.rates = None if "problem" in found else Rates(**found)
    with tempfile.TemporaryDirectory() as caches:
        for number in range(settings.rounds):
            for outcome in row.outcomes:
                if outcome.times or not outcome.problem:
                    cache = dict.fromkeys(CACHES, os.path.join(caches, outcome.engine))
                    this = replace(job, engine=outcome.engine, is_checked=number == 0)
                    _add(outcome, start(this, cache), TOLERANCES[type])
    return row


def _add(outcome: Outcome, found: Mapping[str, Any], tolerance: float) -> None:
    """Add what a process found."""
    if "problem" in found:
        outcome.problem = found["problem"]
        outcome.times.clear()
        return
    outcome.times.append(statistics.median(found["times"]))
    outcome.processor_times.append(statistics.median(found["processor_times"]))
    outcome.firsts.append(found["first"])
    outcome.processor_firsts.append(found["first_processor"])
    outcome.memories.append(found["memory"])
    outcome.kernels = found.get("kernels", outcome.kernels)
    if "difference" in found:
        outcome.difference = found["difference"]
        if not found["difference"] <= tolerance:
            outcome.problem = (
                f"wrong result: differs by {found['difference']:.2g}; at most {tolerance:g} is right"
            )


def start_process(job: Job, variables: Mapping[str, str], timeout: float) -> dict[str, Any]:
    """Do a job in a new process; what it prints is shown only where it fails without a result."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        started = replace(job, result=str(result), started=time.monotonic())
        command = [sys.executable, "-m", "benchmarks.models.worker", json.dumps(asdict(started))]
        status, printed = run_command(command, variables, timeout)
        if result.exists():
            found: dict[str, Any] = json.loads(result.read_text())
            return found
        return {"problem": f"{status}: {printed}" if printed else status}


def run_command(command: Sequence[str], variables: Mapping[str, str], timeout: float) -> tuple[str, str]:
    """Run a command with all that it starts; return how it ended and the last line that it printed."""
    process = subprocess.Popen(
        command,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=timeout)
        status = "" if process.returncode == 0 else f"exit status {process.returncode}"
    except subprocess.TimeoutExpired:
        printed, status = "", f"took more than {timeout:g} s"
    finally:
        # Compilers that an engine started may outlive it, and hold its output open.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    lines = printed.strip().splitlines() or [""]
    return status, lines[-1][:200]
