"""Programs that are compiled for this processor. Their launches are jobs of the native runtime.

A process that finds its plans on disk imports this module, but not the compiler (`planning`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import setitem
from struct import Struct
from typing import Any

import numpy as np

from opendml.across_forks import cached_property
from opendml.late_dataclass import dataclass
from opendml.targets.arenas import Arenas
from opendml.targets.cpu.machine_code import MachineCode
from opendml.targets.cpu.native import HEADER, LAUNCH, PARAMETERS, TABLE, THREADS
from opendml.targets.cpu.pool import pool
from opendml.targets.cpu.scratch import Scratch
from opendml.targets.kept import Kept, KeptConstants
from opendml.targets.memory import HostMemory, address_of, aligned_bytes

IntegerArray = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Job:
    """The words of a job without an address.

    Args:
        words: the words; traced ones have the values of their hints.
        pointers: the positions of words that are relative to the address.
        codes: the machine code to which other words point.
        arena_bytes: bytes of temporaries, partial sums and scratch memory.
        is_short: a dispatch does not look for signals.
        positions: the positions of traced words.
        sizes: these words.
    """

    words: IntegerArray
    pointers: IntegerArray
    codes: Sequence[MachineCode]
    arena_bytes: int
    is_short: bool
    positions: IntegerArray
    sizes: tuple[int, ...]

    @classmethod
    def fixed(
        cls, words: IntegerArray, codes: Sequence[MachineCode], arena_bytes: int, is_short: bool
    ) -> Job:
        """Return a job without traced words."""
        pointers = np.arange(HEADER + PARAMETERS, HEADER + PARAMETERS + LAUNCH * int(words[0]), LAUNCH)
        return cls(words, pointers, codes, arena_bytes, is_short, _NONE, ())

    def at(self, values: IntegerArray) -> Job:
        """Return the job for values of its traced words and of the bytes of its arena."""
        words = self.words.copy()
        words[self.positions] = values[:-1]
        return replace(self, words=words, arena_bytes=int(values[-1]), positions=_NONE, sizes=())

    def part(self, first: int, count: int) -> Job:
        """Return a job of `count` launches from the launch `first` on, in the same memory.

        Parameters keep their positions, because launches refer to them relative to the beginning.
        """
        words, at = self.words.copy(), HEADER + LAUNCH * first
        words[0], until = count, HEADER + LAUNCH * count
        words[HEADER:until] = self.words[at : at + LAUNCH * count]
        return replace(self, words=words, pointers=self.pointers[:count])


_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class InitializationStep:
    """A step of the initialization.

    Args:
        make_job: makes the job that has its launches. It is made once, and only if the step runs.
        constants: the numbers of the constants that it reads.
        kept: the memory that it fills.
        buffers: the buffers of this memory.
        between: buffers and bytes of tensors that only the step reads.
        is_traced: True if a traced size is part of it, so that it cannot be run.
    """

    make_job: Callable[[], Job]
    constants: frozenset[int]
    kept: list[Kept]
    buffers: list[int]
    between: list[tuple[int, int]]
    is_traced: bool = False

    @cached_property
    def job(self) -> Job:
        """Its launches."""
        return self.make_job()


@dataclass(frozen=True, slots=True)
class CpuParts:
    """The parts of an executable.

    Args:
        job: the launches of a dispatch.
        steps: the steps of the initialization, before those that copy constants.
        constants: the constants that are read as they are.
        buffers: the length of the table of buffers.
        arena: the number of the arena in it.
    """

    job: Job
    steps: list[InitializationStep]
    constants: KeptConstants
    buffers: int
    arena: int


class CpuExecutable:
    """A program as machine code, which runs as its parts say."""

    sized_instances = 1
    """Writing the words of another size takes some microseconds."""

    def __init__(self, parts: CpuParts) -> None:
        self._parts = parts
        self._job, self._steps, self._constants = parts.job, parts.steps, parts.constants
        self._arena, self._buffers = parts.arena, parts.buffers
        self._kept_buffers = [buffer for step in self._steps for buffer in step.buffers]
        made = [each for step in self._steps for each in step.kept]
        self.kept: list[Kept] = [*made, *self._constants.kept]
        """Prepared tensors and packed operands, then the constants that are read as they are."""
        self._tables: dict[tuple[int, ...], Any] = {}
        """Tables of buffers to which only these addresses of `kept` are bound."""

    @property
    def parts(self) -> CpuParts:
        """Its parts."""
        return replace(self._parts, job=self._job)

    @property
    def sizes(self) -> Sequence[int]:
        """The traced sizes of the job: words, and the bytes of the arena."""
        return (*self._job.sizes, self._job.arena_bytes)

    def at(self, values: IntegerArray) -> CpuExecutable:
        """Return the executable for given values of `sizes`. It shares all but the job."""
        made = object.__new__(CpuExecutable)
        made.__dict__.update(self.__dict__)
        made._job = self._job.at(values)
        return made

    @property
    def temporary_bytes(self) -> int:
        """Bytes of the arena of each instance: temporaries, partial sums, and scratch memory of each
        thread."""
        return self._job.arena_bytes

    def constants_of(self, step: int) -> Collection[int]:
        """Return the numbers of the constants that a step of the initialization reads."""
        return self._steps[step].constants

    def initialize(self, step: int, constants: Mapping[int, int], addresses: Mapping[int, int]) -> None:
        """Run one step of the initialization."""
        run = self._steps[step]
        instance = self._instance(run.job, new_table(self._buffers), None)
        between = [(buffer, HostMemory(size)) for buffer, size in run.between]
        for number, address in constants.items():
            instance.bind(number, address)
        for buffer, memory in between:
            instance.bind(buffer, memory.address)
        for place, address in addresses.items():
            instance.bind(self._kept_buffers[place], address)
        instance.dispatch()

    def instantiate(
        self, arena: int | None = None, kept: Sequence[int] = (), arenas: Arenas | None = None
    ) -> CpuInstance:
        """Return a new instance with its own job and table of buffers, and its own arena unless one is given
        or it takes some of `arenas`."""
        table = self._table(tuple(kept))
        if arenas is not None and self._job.arena_bytes:
            return CpuScratchInstance(self._job, table, self._arena, None, arenas)
        return self._instance(self._job, table, arena)

    def sized_instance(
        self, kept: Sequence[int], arenas: Arenas | None, on_stream: bool = False
    ) -> CpuSizedInstance:
        """Return a new instance whose sizes may change. The arguments are those of `instantiate`."""
        return CpuSizedInstance(self._job, self._table(tuple(kept)), self._arena, arenas or _scratch)

    def _table(self, kept: tuple[int, ...]) -> Any:
        """Return a new table of buffers to which the memory of `kept` is bound."""
        known = self._tables.get(kept)
        if known is None:
            known = new_table(self._buffers)
            for buffer, address in zip(self._kept_buffers, kept, strict=False):
                known[buffer] = address
            for (number, start), address in zip(
                self._constants.starts, kept[len(self._kept_buffers) :], strict=True
            ):
                known[number] = address - start
            # Models of one plan have the same constants; other memory is that of a recompiled one.
            self._tables.clear()
            self._tables[kept] = known
        return type(known).from_buffer_copy(known)

    def instantiate_without_arena(self) -> CpuInstance:
        """Return a new instance with nothing bound, which holds no memory for temporaries."""
        if self._job.arena_bytes:
            return CpuScratchInstance(self._job, new_table(self._buffers), self._arena, None, _scratch)
        return CpuInstance(self._job, new_table(self._buffers), self._arena, None)

    def _instance(self, job: Job, table: Any, arena: int | None) -> CpuInstance:
        own = HostMemory(job.arena_bytes) if arena is None and job.arena_bytes else None
        instance = CpuInstance(job, table, self._arena, own)
        instance.use_arena(own.address if own else arena or 0)
        return instance


def new_table(buffers: int) -> Any:
    """Return a table of addresses, all 0."""
    return (ctypes.c_void_p * buffers)()


class CpuInstance:
    """A job with its buffers. `dispatch` is one native call, or several for long work, and allocates
    nothing."""

    enqueue = None

    def __init__(self, job: Job, table: Any, arena: int, own: object) -> None:
        words = aligned_bytes(np.empty, job.words.nbytes).view(np.int64)
        words[:] = job.words
        words[job.pointers] += address_of(words)
        words[TABLE] = ctypes.addressof(table)
        self._job, self._buffers, self._words = job, table, words
        # Half the time of the table's own method.
        self.bind: Callable[[int, int], None] = partial(setitem, table)
        """Sets the address of a tensor's first element: inputs first, then outputs."""
        self._arena = arena
        # `dispatch` keeps the words alive, and they what they point to: it may outlive this object.
        self._buffers.own = own, job.codes
        native: Any = (ctypes.c_int64 * len(words)).from_buffer(words.data)
        native.table = table
        workers = pool()
        if job.is_short:
            self.dispatch = workers.short_dispatch(native)
        else:
            workers.start(int(words[THREADS]) - 1)
            self.dispatch = workers.dispatch(native, table)

    def binder(self, count: int) -> Callable[..., None]:
        """Return a function that sets the addresses of the first `count` tensors.

        For two tensors it takes a third of the time of `bind`.
        """
        return partial(Struct(f"{count}P").pack_into, self._buffers, 0)

    def use_arena(self, address: int) -> None:
        """Set the address of the arena."""
        self._buffers[self._arena] = address

    def keep(self, memory: object) -> None:
        """Keep an object alive as long as `dispatch` itself."""
        self._buffers.memory = memory

    def alone(self) -> Iterator[CpuInstance]:
        """Return an instance that runs nothing, then one for each launch of this one, over the same
        memory."""
        for first, count in ((0, 0), *((number, 1) for number in range(int(self._job.words[0])))):
            table = type(self._buffers).from_buffer_copy(self._buffers)
            yield CpuInstance(self._job.part(first, count), table, self._arena, self)


class CpuScratchInstance(CpuInstance):
    """An instance without an arena. Each dispatch takes one of the calling thread or of a model."""

    def __init__(self, job: Job, table: Any, arena: int, own: object, arenas: Scratch | Arenas) -> None:
        super().__init__(job, table, arena, own)
        size, run = job.arena_bytes, self.dispatch
        take, give = arenas.take, arenas.give

        def dispatch() -> None:
            memory = take(size)
            table[arena] = memory.address
            run()
            give(memory)

        self.dispatch = dispatch


class CpuSizedInstance(CpuInstance):
    """An instance of traced sizes, without an arena. The job is that of the hints until sizes are set."""

    def __init__(self, job: Job, table: Any, arena: int, arenas: Scratch | Arenas) -> None:
        super().__init__(job, table, arena, None)
        self.values: IntegerArray | None = None
        self._size = size = [0]
        self._count = len(job.positions)
        run, take, give = self.dispatch, arenas.take, arenas.give

        def dispatch() -> None:
            memory = take(size[0])
            table[arena] = memory.address
            run()
            give(memory)

        self.dispatch = dispatch

    def resize(self, values: IntegerArray) -> None:
        """Write the words of other sizes."""
        self.values = None
        self._words[self._job.positions] = values[: self._count]
        self._size[0] = int(values[self._count])
        self.values = values


_scratch = Scratch()
