"""One process of one engine: `python -m benchmarks.models.worker JOB`, where JOB is JSON.

It loads a model, runs it, times more runs, and writes what it found as JSON into the job's file. Modules that
the engine does not need are not imported: the time to the first result counts from the start of the process.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Job:
    """What a process does.

    Args:
        engine: the name of an engine; "rates" measures the machine's rates for the model instead.
        folder: of the prepared model.
        type: of the model.
        device: "cpu" or "cuda".
        threads: for the engine.
        seconds: how long runs are timed.
        is_checked: compare the outputs with the expected ones, and count kernels.
        started: the time of `time.monotonic` when the process was started.
        result: the file to write.
    """

    engine: str
    folder: str
    type: str
    device: str
    threads: int
    seconds: float
    is_checked: bool
    started: float
    result: str


def work(job: Job) -> dict[str, Any]:
    """Do a job, and return what is written."""
    if job.engine == "rates":
        from benchmarks.models.prepare import load_work
        from benchmarks.models.work import measure_rates

        needed = load_work(Path(job.folder))
        assert needed is not None
        return asdict(measure_rates(needed.moved, job.type, job.threads, job.device))
    from benchmarks.models.engines import ENGINES, time_runs

    loaded = ENGINES[job.engine].load(Path(job.folder), job.threads, job.device)
    loaded.run()
    loaded.wait()
    first, first_processor = time.monotonic() - job.started, time.process_time()
    run = loaded.repeated(loaded.run)
    times, processor_times = time_runs(run, loaded.wait, job.seconds)
    found: dict[str, Any] = {"first": first, "first_processor": first_processor}
    found |= {"times": times, "processor_times": processor_times}
    found["memory"] = device_memory() if job.device == "cuda" else peak_memory()
    if job.is_checked:
        from benchmarks.models.engines import as_arrays
        from benchmarks.models.prepare import load_arrays
        from benchmarks.models.work import difference

        outputs, path = run(), Path(job.folder) / "expected.npz"
        loaded.wait()
        if path.exists():
            found["difference"] = difference(
                as_arrays(loaded.arrays(outputs)), list(load_arrays(path).values())
            )
        found["kernels"] = loaded.kernels() if loaded.kernels else None
    return found


def peak_memory() -> int:
    """Return the most bytes of memory that the process had so far; 0 where Linux does not say it."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def device_memory() -> int:
    """Return the bytes of the GPU's memory that are in use."""
    import torch

    free, total = torch.cuda.mem_get_info()
    return int(total - free)


def main() -> None:
    """Do the job of the command line; a failure is written as its problem."""
    job = Job(**json.loads(sys.argv[1]))
    try:
        found = work(job)
    except Exception as failure:  # Whatever an engine raises belongs into the table.
        lines = str(failure).strip().splitlines() or [""]
        text = " ... ".join(line.strip()[:120] for line in dict.fromkeys((lines[0], lines[-1])))
        found = {"problem": f"{type(failure).__name__}: {text}"}
    Path(job.result).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
