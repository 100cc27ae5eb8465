"""A program compiled for this processor: its launches as a job for the native runtime."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from opendml.compiler.fuse import fuse
from opendml.compiler.memory import aligned
from opendml.compiler.simplify import simplify
from opendml.program.program import Program
from opendml.targets.cpu.engine import Code, kernel_codes
from opendml.targets.cpu.launch import Launch
from opendml.targets.cpu.native import FIRST, HEADER, LAUNCH, PARAMETERS, PATIENCE, ROOM, THREADS
from opendml.targets.cpu.pattern import Parameters
from opendml.targets.cpu.pool import pool
from opendml.targets.cpu.schedule import schedule
from opendml.targets.cpu.threads import available_threads
from opendml.targets.memory import HostMemory, aligned_bytes

_SHARED_BYTES = 96 * 1024
"""Dispatches that move fewer bytes are over before another thread could have joined them."""
_FEW_CLAIMS = 16
"""Claims up to which the work of one thread is over before a signal could matter."""
_MILLISECONDS = 50
"""How long a dispatch runs before the interpreter looks for signals."""


class CpuExecutable:
    """A program as machine code. Up to `threads` threads share a dispatch; None: all that the process may
    use."""

    def __init__(self, program: Program, threads: int | None = None) -> None:
        kernels = fuse(Program(program.inputs, program.outputs, simplify(program.results)))
        launches = [launch for kernel in kernels.kernels for launch in schedule(kernel)]
        codes = kernel_codes([launch.pattern for launch in launches])
        moved = sum(
            layout.element_count * layout.type.bytes for layout in (*program.inputs, *program.outputs)
        )
        self._threads = 1 if moved < _SHARED_BYTES else threads or available_threads()
        claims = sum(-(-launch.items // launch.grain) for launch in launches)
        self._is_short = self._threads == 1 and claims <= _FEW_CLAIMS
        self._buffers = kernels.arena + 1
        # Behind the temporaries lie partial sums, and behind these each thread's room. All launches share
        # both: the launch that reads partial sums follows at once.
        partial_bytes = max((launch.partial_bytes for launch in launches), default=0)
        room_at = aligned(kernels.arena_bytes + partial_bytes)
        room_bytes = aligned(max((code.room_bytes for code in codes), default=0))
        self._arena_bytes = room_at + self._threads * room_bytes
        placed = [_placed(launch, kernels.arena, kernels.arena_bytes) for launch in launches]
        self._job = _job(launches, codes, placed)
        self._job.words[THREADS] = self._threads
        self._job.words[PATIENCE] = 0 if self._is_short else _MILLISECONDS
        self._job.words[ROOM : ROOM + 3] = kernels.arena, room_at, room_bytes

    @property
    def temporary_bytes(self) -> int:
        """The arena of each instance: temporaries, partial sums, and a room for each thread."""
        return self._arena_bytes

    def allocate(self, size: int) -> HostMemory:
        """Host memory."""
        return HostMemory(size)

    def instantiate(self, arena: int | None = None) -> CpuInstance:
        """A new instance with its own job and table of buffers, and its own arena unless one is given."""
        own = HostMemory(self._arena_bytes) if arena is None and self._arena_bytes else None
        instance = CpuInstance(self._job, self._buffers, self._is_short, own)
        instance.use_arena(own.address if own else arena or 0)
        return instance


class CpuInstance:
    """A job with its buffers. `dispatch` is one native call, or some for long work; it allocates nothing."""

    def __init__(self, job: _Job, buffers: int, is_short: bool, own: object) -> None:
        words = aligned_bytes(np.empty, job.words.nbytes).view(np.int64)
        words[:] = job.words
        for position in job.pointers:
            words[position] += words.ctypes.data
        table: Any = (ctypes.c_void_p * buffers)()
        self._buffers = table
        self._arena = buffers - 1
        # `dispatch` keeps these two alive, and they what they point to: it may outlive this object.
        self._buffers.own = own, job.codes
        native = (ctypes.c_int64 * len(words)).from_buffer(words.data)
        workers = pool()
        if is_short:
            self.dispatch = workers.short_dispatch(native, table)
        else:
            workers.start(int(words[THREADS]) - 1)
            self.dispatch = workers.dispatch(native, table)

    def use_arena(self, address: int) -> None:
        """Sets the address of the arena."""
        self._buffers[self._arena] = address

    def bind(self, buffer: int, address: int) -> None:
        """Sets the address of a tensor's first element: inputs first, then outputs."""
        self._buffers[buffer] = address

    def keep(self, memory: object) -> None:
        """Keeps an object alive as long as `dispatch` itself."""
        self._buffers.memory = memory


class _Job:
    """The words of a job before it has an address; `pointers` are the positions of words that are relative to
    it, `codes` the machine code that others point to."""

    def __init__(
        self,
        words: np.ndarray[tuple[int], np.dtype[np.int64]],
        pointers: Sequence[int],
        codes: Sequence[Code],
    ) -> None:
        self.words, self.pointers, self.codes = words, pointers, codes


def _job(launches: Sequence[Launch], codes: Sequence[Code], placed: Sequence[tuple[int, ...]]) -> _Job:
    parameters_at = HEADER + LAUNCH * len(launches)
    words = np.zeros(parameters_at + sum(len(parameters) for parameters in placed), np.int64)
    words[0] = len(launches)
    pointers = []
    for number, (launch, code, parameters) in enumerate(zip(launches, codes, placed, strict=True)):
        at = HEADER + LAUNCH * number
        words[at] = code.address
        words[at + PARAMETERS] = parameters_at * words.itemsize
        words[at + FIRST : at + FIRST + 3] = launch.first, launch.items, launch.grain
        words[parameters_at : parameters_at + len(parameters)] = parameters
        pointers.append(at + PARAMETERS)
        parameters_at += len(parameters)
    return _Job(words, pointers, codes)


def _placed(launch: Launch, arena: int, offset: int) -> tuple[int, ...]:
    """The launch's parameters with the place of its partial sums."""
    parameters = list(launch.parameters)
    parameters[Parameters.PARTIAL_BUFFER], parameters[Parameters.PARTIAL_OFFSET] = arena, offset
    return tuple(parameters)
