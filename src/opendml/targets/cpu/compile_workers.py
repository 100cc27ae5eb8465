"""Worker processes that compile machine code, so that all cores work while many kernels are missing.

A worker takes about 0.06 s to start, as long as LLVM takes for one kernel. Without workers, as in programs
whose executable is not Python, LLVM runs in this process, on one core.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue

from opendml.across_forks import importing
from opendml.logs import log
from opendml.targets.cpu.llvm_library import can_start_processes, process_command
from opendml.targets.cpu.machine import CpuMachine
from opendml.targets.cpu.object_code import ANSWER, COMPILE, EFFORTS, JOB, Effort

_FEWEST_KERNELS = 4
"""Missing kernels for which workers are started: fewer are compiled while workers start."""
_KERNELS_PER_WORKER = 2
"""Missing kernels for each worker, at least."""
_MOST_WORKERS = 16
"""Workers, at most: this process writes assembly for about as many (20 ms a kernel; LLVM takes 50 ms)."""
_LARGEST_ANSWER = 2**28
"""Bytes of an answer, at most. A Python that prints anything else, such as a wrapper, is no worker."""


class WorkerLostError(Exception):
    """A worker process has ended, or cannot be started."""


class Worker:
    """A process that compiles for a machine.

    Raises:
        WorkerLostError: it cannot be started.
    """

    def __init__(self, machine: CpuMachine) -> None:
        with importing:  # 10 ms, which a process that finds all code in the cache does not pay
            import subprocess
        try:
            self._process = subprocess.Popen(
                process_command(COMPILE),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
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
            if status not in (0, 1) or not 0 <= size <= _LARGEST_ANSWER:
                raise WorkerLostError("what it writes is not an answer")
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
    if kernels < _FEWEST_KERNELS or threads < 2 or not can_start_processes():
        return 0
    return min(threads, kernels // _KERNELS_PER_WORKER, _MOST_WORKERS)


class WorkerPool:
    """Worker processes, each with a thread that waits for it. More of them may be asked for at any time.

    Args:
        machine: what they compile for.
    """

    def __init__(self, machine: CpuMachine) -> None:
        self._machine = machine
        self._jobs: SimpleQueue[tuple[str, Effort, Future[bytes | None]] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._workers: list[Worker] = []
        self._is_closed = False

    @property
    def size(self) -> int:
        """The number of processes that were started."""
        return len(self._workers)

    def start(self, count: int) -> None:
        """Start workers, up to a number in all.

        Raises:
            RuntimeError: no thread can be started.
        """
        while len(self._threads) < count:
            thread = threading.Thread(target=self._work, name="opendml compiler", daemon=True)
            thread.start()
            self._threads.append(thread)

    def compile(self, assembly: str, effort: Effort, count: int) -> Future[bytes | None]:
        """Return the later object of some assembly.

        Its result is None if its worker was lost, and RuntimeError if LLVM refuses the assembly.

        Args:
            assembly, effort: the job.
            count: workers that may work at the same time.

        Raises:
            RuntimeError: no thread can be started.
        """
        self.start(count)
        found: Future[bytes | None] = Future()
        self._jobs.put((assembly, effort, found))
        return found

    def close(self) -> None:
        """End all processes, and drop jobs that have not begun."""
        self._is_closed = True
        self._jobs.put(None)
        for each in list(self._workers):
            each.close()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        """Start a worker, and give it jobs until the pool is closed."""
        worker: Worker | None = None
        try:
            worker = Worker(self._machine)
            self._workers.append(worker)
        except (WorkerLostError, MemoryError) as error:
            log.debug("no process compiles machine code: %s", error)
        while (job := self._jobs.get()) is not None and not self._is_closed:
            assembly, effort, found = job
            try:
                found.set_result(None if worker is None else worker.compile(assembly, effort))
            except WorkerLostError as error:
                log.debug("a process that compiled machine code is lost: %s", error)
                worker = None
                found.set_result(None)
            except BaseException as error:  # Otherwise the caller would wait for ever.
                found.set_exception(error)
        self._jobs.put(
            None
        )  # For the next thread: an interrupt of `start` leaves threads that are not listed.
        if worker is not None:
            worker.close()
