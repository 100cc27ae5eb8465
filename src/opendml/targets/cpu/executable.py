"""A program compiled for this processor: its launches as a job for the native runtime."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from opendml.compiler.fuse import fuse
from opendml.compiler.simplify import simplify
from opendml.program.program import Program
from opendml.targets.cpu.engine import kernel_address
from opendml.targets.cpu.launch import Launch
from opendml.targets.cpu.machine import available_threads
from opendml.targets.cpu.native import HEADER, LAUNCH
from opendml.targets.cpu.pattern import Parameters
from opendml.targets.cpu.pool import pool
from opendml.targets.cpu.schedule import schedule
from opendml.targets.memory import HostMemory, aligned_bytes

_SHARED_BYTES = 96 * 1024
"""Dispatches that move fewer bytes are over before another thread could have joined them."""


class CpuExecutable:
    """A program as machine code. Up to `threads` threads share a dispatch; None: all that the process may
    use."""

    def __init__(self, program: Program, threads: int | None = None) -> None:
        kernels = fuse(Program(program.inputs, program.outputs, simplify(program.results)))
        launches = [launch for kernel in kernels.kernels for launch in schedule(kernel)]
        self._buffers = kernels.arena + 1
        # Partial sums lie behind the temporaries. All launches share the room: the launch that reads them
        # follows at once.
        self._job = _job(
            [(launch, _placed(launch, kernels.arena, kernels.arena_bytes)) for launch in launches]
        )
        self._arena_bytes = kernels.arena_bytes + max(
            (launch.partial_bytes for launch in launches), default=0
        )
        moved = sum(
            layout.element_count * layout.type.bytes for layout in (*program.inputs, *program.outputs)
        )
        self._threads = 1 if moved < _SHARED_BYTES else threads or available_threads()

    @property
    def temporary_bytes(self) -> int:
        """The arena of each instance: temporaries and partial sums."""
        return self._arena_bytes

    def allocate(self, size: int) -> HostMemory:
        """Host memory."""
        return HostMemory(size)

    def instantiate(self, arena: int | None = None) -> CpuInstance:
        """A new instance with its own job and table of buffers, and its own arena unless one is given."""
        own = HostMemory(self._arena_bytes) if arena is None else None
        return CpuInstance(self._job, self._buffers, self._threads, own.address if own else arena, own)


class CpuInstance:
    """A job with its buffers. `dispatch` is one native call; it allocates nothing."""

    def __init__(self, job: _Job, buffers: int, threads: int, arena: int | None, own: object) -> None:
        self._words = aligned_bytes(np.empty, job.words.nbytes).view(np.int64)
        self._words[:] = job.words
        self._words[1] = threads
        for position in job.pointers:
            self._words[position] += self._words.ctypes.data
        table: Any = (ctypes.c_void_p * buffers)()
        self._buffers = table
        self._buffers.arena = own
        self._buffers[buffers - 1] = arena
        # The arguments keep alive what they point to, and `dispatch` keeps the arguments: it may outlive this
        # object.
        arguments = [(ctypes.c_int64 * len(self._words)).from_buffer(self._words.data), self._buffers]
        workers = pool()
        if threads == 1:
            self.dispatch = partial(workers.dispatch_alone, *arguments)
        else:
            workers.start(threads - 1)
            self.dispatch = partial(workers.dispatch_shared, *arguments, ctypes.c_void_p(workers.address))

    def bind(self, buffer: int, address: int) -> None:
        """Sets the address of a tensor's first element: inputs first, then outputs."""
        self._buffers[buffer] = address

    def keep(self, memory: object) -> None:
        """Keeps an object alive as long as `dispatch` itself."""
        self._buffers.memory = memory


class _Job:
    """The words of a job before it has an address; `pointers` are the positions of words that are relative to
    it."""

    def __init__(self, words: np.ndarray[tuple[int], np.dtype[np.int64]], pointers: Sequence[int]) -> None:
        self.words, self.pointers = words, pointers


def _job(launches: Sequence[tuple[Launch, tuple[int, ...]]]) -> _Job:
    parameters_at = HEADER + LAUNCH * len(launches)
    words = np.zeros(parameters_at + sum(len(parameters) for _, parameters in launches), np.int64)
    words[0] = len(launches)
    pointers = []
    for number, (launch, parameters) in enumerate(launches):
        at = HEADER + LAUNCH * number
        words[at] = kernel_address(launch.pattern)
        words[at + 1] = parameters_at * words.itemsize
        words[at + 2 : at + 5] = launch.first, launch.items, launch.grain
        words[parameters_at : parameters_at + len(parameters)] = parameters
        pointers.append(at + 1)
        parameters_at += len(parameters)
    return _Job(words, pointers)


def _placed(launch: Launch, arena: int, offset: int) -> tuple[int, ...]:
    """The launch's parameters with the place of its partial sums."""
    parameters = list(launch.parameters)
    parameters[Parameters.PARTIAL_BUFFER], parameters[Parameters.PARTIAL_OFFSET] = arena, offset
    return tuple(parameters)
