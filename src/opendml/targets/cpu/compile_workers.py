"""Worker processes that compile machine code, so that all cores work while many kernels are missing.

A worker takes about 0.06 s to start, as long as LLVM takes for one kernel. Without workers, as in programs
whose executable is not Python, LLVM runs in this process, on one core.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

from opendml.logs import log
from opendml.targets.cpu import object_code
from opendml.targets.cpu.machine import CpuMachine
from opendml.targets.cpu.object_code import ANSWER, EFFORTS, JOB, Effort

_FEWEST_KERNELS = 4
"""Missing kernels for which workers are started: fewer are compiled while workers start."""
_KERNELS_PER_WORKER = 2
"""Missing kernels for each worker, at least."""
_MOST_WORKERS = 16
"""Workers, at most: this process writes assembly for about as many (20 ms a kernel; LLVM takes 50 ms)."""
_PYTHON = re.compile(r"python[0-9.]*w?(\.exe)?", re.IGNORECASE)
_START = (
    "import sys, runpy; _, program, *path = sys.argv; sys.path[:] = path; "
    "runpy.run_path(program, run_name='__main__')"
)
"""Runs the program of a worker with the import path of this process, without the start files of `site`."""


class WorkerLostError(Exception):
    """A worker process has ended, or cannot be started."""


class Worker:
    """A process that compiles for a machine.

    Raises:
        WorkerLostError: it cannot be started.
    """

    def __init__(self, machine: CpuMachine) -> None:
        command = [sys.executable, "-I", "-S", "-c", _START, object_code.__file__, *filter(None, sys.path)]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            raise WorkerLostError(str(error)) from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._jobs, self._answers = self._process.stdin, self._process.stdout
        self._head = f"{machine.triple}\n{machine.name}\n{machine.features}\n".encode()

    def compile(self, assembly: str, effort: Effort) -> bytes:
        """Return the object of some assembly.

        Raises:
            RuntimeError: LLVM refuses the assembly.
            WorkerLostError: the process has ended.
        """
        content, head = assembly.encode(), self._head
        self._head = b""
        try:
            self._jobs.write(head + JOB.pack(EFFORTS.index(effort), len(content)) + content)
            self._jobs.flush()
            answer = self._answers.read(ANSWER.size)
            if len(answer) < ANSWER.size:
                raise WorkerLostError("it has ended")
            status, size = ANSWER.unpack(answer)
            result = self._answers.read(size)
        except (OSError, ValueError) as error:
            raise WorkerLostError(str(error)) from error
        if len(result) < size:
            raise WorkerLostError("it has ended")
        if status:
            raise RuntimeError(result.decode(errors="replace"))
        return result

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        for stream in (self._jobs, self._answers):
            with suppress(OSError):
                stream.close()
        self._process.wait()


def worker_count(kernels: int, threads: int) -> int:
    """Return the number of workers for a number of kernels; 0: this process compiles them."""
    if kernels < _FEWEST_KERNELS or threads < 2 or not _PYTHON.fullmatch(Path(sys.executable or "").name):
        return 0
    return min(threads, kernels // _KERNELS_PER_WORKER, _MOST_WORKERS)


def compiled_by_workers(
    jobs: Iterable[tuple[str, Effort]], count: int, machine: CpuMachine
) -> Iterator[bytes | None]:
    """Yield the object of each job, in order. None: its worker was lost.

    Args:
        jobs: assembly, which is asked for while workers compile what came before, and its effort.
        count: the number of workers.
        machine: what they compile for.

    Raises:
        RuntimeError: LLVM refuses some assembly, or no thread can be started.
    """
    workers: list[Worker] = []
    idle: SimpleQueue[Worker | None] = SimpleQueue()
    try:
        for _ in range(count):
            try:
                workers.append(Worker(machine))
                idle.put(workers[-1])
            except WorkerLostError as error:
                log.debug("no process compiles machine code: %s", error)
                idle.put(None)

        def compiled(job: tuple[str, Effort]) -> bytes | None:
            worker = idle.get()
            try:
                return None if worker is None else worker.compile(*job)
            except WorkerLostError as error:
                log.debug("a process that compiled machine code is lost: %s", error)
                worker = None
                return None
            finally:
                idle.put(worker)

        with ThreadPoolExecutor(count) as threads:
            yield from threads.map(compiled, jobs)
    finally:
        for worker in workers:
            worker.close()
