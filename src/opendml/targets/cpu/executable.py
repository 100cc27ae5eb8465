"""Programs that are compiled for this processor. Their launches are jobs of the native runtime."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from operator import setitem
from typing import Any

import numpy as np

from opendml.compiler.fuse import Abilities, fuse
from opendml.compiler.kernel import KernelProgram, PreparedTensor, Recipe
from opendml.compiler.memory import aligned
from opendml.compiler.prices import Prices
from opendml.compiler.simplify import simplify
from opendml.program.program import Program
from opendml.targets.arenas import Arenas
from opendml.targets.cpu.contraction.chain import is_chained
from opendml.targets.cpu.engine import MachineCode, kernel_codes
from opendml.targets.cpu.launch import CLAIM_CYCLES, CpuLaunch
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.native import (
    BACKWARDS,
    FIRST,
    HEADER,
    KEPT,
    LAUNCH,
    MOST_KEPT,
    PARAMETERS,
    PATIENCE,
    SCRATCH,
    TABLE,
    THREADS,
)
from opendml.targets.cpu.pattern import ParameterTable
from opendml.targets.cpu.pool import pool
from opendml.targets.cpu.schedule import schedule
from opendml.targets.cpu.scratch import Scratch
from opendml.targets.cpu.threads import available_threads
from opendml.targets.kept import Kept, KeptConstants
from opendml.targets.memory import HostMemory, aligned_bytes
from opendml.targets.planned import Planned

_SHARED_BYTES = 96 * 1024
"""Bytes that a dispatch moves, at least, for more than one thread. Smaller dispatches end before another
thread could join."""
_FEW_CLAIMS = 16
"""Claims of a job of one thread, at most, for a dispatch that does not look for signals."""
_MOSTLY_ALONE = 16
"""Launches of a single claim for each claim of shared work, at most, for more than one thread. Above it other
threads would wait most of the time, on processors that the system may need for the caller."""
_MILLISECONDS = 50
"""Milliseconds for which a dispatch runs before the interpreter looks for signals."""


class CpuExecutable:
    """A program as machine code.

    Args:
        program: the program.
        threads: threads that share a dispatch, at most. None: all that the process may use.
    """

    def __init__(self, program: Program, threads: int | None = None) -> None:
        kernels = _fused(program)
        scheduled = _scheduled(kernels)
        steady, temporary_bytes = _steady_temporaries(kernels, scheduled)
        dispatched, packings = _launches(kernels, scheduled, steady, temporary_bytes)
        self._arena, self._buffers = kernels.arena, kernels.buffer_count + len(packings)
        moved = sum(
            layout.element_count * layout.type.bytes for layout in (*program.inputs, *program.outputs)
        )
        threads = 1 if moved < _SHARED_BYTES else threads or available_threads()
        initializing = _initializing(kernels)
        codes = kernel_codes([each.launch.pattern for each in (*dispatched, *initializing, *packings)])
        self._job = _Job(dispatched, codes[: len(dispatched)], threads, kernels.arena, temporary_bytes)
        read = {buffer for each in dispatched for buffer in each.launch.reads}
        self._steps = _steps(kernels, initializing, packings, codes[len(dispatched) :], read, threads)
        self._constants = KeptConstants(program.inputs, program.constants & read, len(self._steps))
        self._kept_buffers = [buffer for step in self._steps for buffer in step.buffers]
        made = [each for step in self._steps for each in step.kept]
        self.kept: list[Kept] = [*made, *self._constants.kept]
        """Prepared tensors and packed operands, then the constants that are read as they are."""

    @property
    def temporary_bytes(self) -> int:
        """Bytes of the arena of each instance: temporaries, partial sums, and scratch memory of each
        thread."""
        return self._job.arena_bytes

    def constants_of(self, step: int) -> Collection[int]:
        """Return the numbers of the constants that a step of the initialization reads."""
        is_copy = step >= len(self._steps)
        return self._constants.constants_of(step) if is_copy else self._steps[step].constants

    def initialize(self, step: int, constants: Mapping[int, int], addresses: Mapping[int, int]) -> None:
        """Run one step of the initialization."""
        if step >= len(self._steps):
            (address,) = addresses.values()
            self._constants.copy(step, constants, address, ctypes.memmove)
            return
        run = self._steps[step]
        instance = self._instance(run.job, None)
        between = [(buffer, HostMemory(size)) for buffer, size in run.between]
        for number, address in constants.items():
            instance.bind(number, address)
        for buffer, memory in between:
            instance.bind(buffer, memory.address)
        for place, address in addresses.items():
            instance.bind(self._kept_buffers[place], address)
        instance.dispatch()

    @property
    def launch_count(self) -> int:
        """The launches of a dispatch."""
        return int(self._job.words[0])

    def instantiate(
        self, arena: int | None = None, kept: Sequence[int] = (), arenas: Arenas | None = None
    ) -> CpuInstance:
        """Return a new instance with its own job and table of buffers, and its own arena unless one is given
        or it takes some of `arenas`."""
        if arenas is not None and self._job.arena_bytes:
            instance: CpuInstance = CpuScratchInstance(self._job, self._buffers, self._arena, None, arenas)
        else:
            instance = self._instance(self._job, arena)
        made = len(self._kept_buffers)
        for buffer, address in zip(self._kept_buffers, kept, strict=False):
            instance.bind(buffer, address)
        self._constants.bind(instance, kept[made:])
        return instance

    def instantiate_without_arena(self) -> CpuInstance:
        """Return a new instance with nothing bound, which holds no memory for temporaries."""
        if self._job.arena_bytes:
            return CpuScratchInstance(self._job, self._buffers, self._arena, None, _scratch)
        return CpuInstance(self._job, self._buffers, self._arena, None)

    def _instance(self, job: _Job, arena: int | None) -> CpuInstance:
        own = HostMemory(job.arena_bytes) if arena is None and job.arena_bytes else None
        instance = CpuInstance(job, self._buffers, self._arena, own)
        instance.use_arena(own.address if own else arena or 0)
        return instance


def plan(program: Program) -> Planned:
    """Return the kernels of a program, and the modes in which they are run."""
    kernels = _fused(program)
    scheduled = _scheduled(kernels)
    dispatched, _ = _launches(kernels, scheduled, *_steady_temporaries(kernels, scheduled))
    modes: list[list[str]] = [[] for _ in kernels.kernels]
    for each in dispatched:
        modes[each.kernel].append(each.launch.pattern.mode.name.lower())
    return Planned(kernels, tuple(map(tuple, modes)))


def _abilities() -> Abilities:
    """Return the abilities and prices of the CPU that decide what becomes a kernel."""
    prices = Prices(machine().operations_per_byte)
    return Abilities(ends_loops=True, scatters_in_order=True, computes_attention=is_chained, prices=prices)


def _fused(program: Program) -> KernelProgram:
    simple = replace(program, results=simplify(program.results))
    return fuse(simple, _abilities())


class CpuInstance:
    """A job with its buffers. `dispatch` is one native call, or several for long work, and allocates
    nothing."""

    enqueue = None

    def __init__(self, job: _Job, buffers: int, arena: int, own: object) -> None:
        words = aligned_bytes(np.empty, job.words.nbytes).view(np.int64)
        words[:] = job.words
        for position in job.pointers:
            words[position] += words.ctypes.data
        table: Any = (ctypes.c_void_p * buffers)()
        words[TABLE] = ctypes.addressof(table)
        self._job, self._buffers = job, table
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
            part = CpuInstance(self._job.part(first, count), len(self._buffers), self._arena, self)
            part._buffers[:] = self._buffers[:]
            yield part


class CpuScratchInstance(CpuInstance):
    """An instance without an arena. Each dispatch takes one of the calling thread or of a model."""

    def __init__(self, job: _Job, buffers: int, arena: int, own: object, arenas: Scratch | Arenas) -> None:
        super().__init__(job, buffers, arena, own)
        table, size, run = self._buffers, job.arena_bytes, self.dispatch
        take, give = arenas.take, arenas.give

        def dispatch() -> None:
            memory = take(size)
            table[arena] = memory.address
            run()
            give(memory)

        self.dispatch = dispatch


_scratch = Scratch()


@dataclass(frozen=True, slots=True)
class _Placed:
    """A launch, the number of its kernel, and the buffer and offset of its partial sums or packed
    operands."""

    launch: CpuLaunch
    kernel: int
    buffer: int
    offset: int

    @property
    def parameters(self) -> tuple[int, ...]:
        """The parameters of the launch, with this buffer and offset."""
        parameters = list(self.launch.parameters)
        parameters[ParameterTable.PARTIAL_BUFFER], parameters[ParameterTable.PARTIAL_OFFSET] = (
            self.buffer,
            self.offset,
        )
        return tuple(parameters)


def _launches(
    kernels: KernelProgram, scheduled: Sequence[Sequence[CpuLaunch]], steady: Mapping[int, int], end: int
) -> tuple[list[_Placed], list[_Placed]]:
    """Return the launches of a dispatch, and the launches that pack constants for them.

    Each packing launch writes a buffer of its own, behind those of the program.

    Args:
        kernels: the kernels of the program.
        scheduled: the launches of each kernel.
        steady: offsets of operands that are packed for all steps of a recurrence, by kernel.
        end: the offset behind them.
    """
    dispatched: list[_Placed] = []
    packings: list[_Placed] = []
    packed: dict[tuple[str, tuple[int, ...]], int] = {}
    begun: set[int] = set()
    for number, launches in enumerate(scheduled):
        if launches[0].fixed:
            # An operand that several kernels pack in the same way is packed once.
            key = launches[0].pattern.text(), launches[0].parameters
            is_new = key not in packed
            buffer = packed.setdefault(key, kernels.buffer_count + len(packings))
            placed = [_Placed(launch, number, buffer, 0) for launch in launches]
            first = placed.pop(0)
            if is_new:
                packings.append(first)
        else:
            offset = steady.get(number, end)
            placed = [_Placed(launch, number, kernels.arena, offset) for launch in launches]
            if offset in begun:
                placed.pop(0)
            elif number in steady:
                begun.add(offset)
        dispatched += placed
    return dispatched, packings


def _initializing(kernels: KernelProgram) -> list[_Placed]:
    """Return the launches that prepare tensors."""
    return [
        _Placed(launch, number, kernels.arena, kernels.initializer_arena_bytes)
        for number, kernel in enumerate(kernels.initializers)
        for launch in schedule(kernel)
    ]


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of the initialization.

    Args:
        job: its launches.
        constants: the numbers of the constants that it reads.
        kept: the memory that it fills.
        buffers: the buffers of this memory.
        between: buffers and bytes of tensors that only the step reads.
    """

    job: _Job
    constants: frozenset[int]
    kept: list[Kept]
    buffers: list[int]
    between: list[tuple[int, int]]


def _steps(
    kernels: KernelProgram,
    initializing: Sequence[_Placed],
    packings: Sequence[_Placed],
    codes: Sequence[MachineCode],
    read: Container[int],
    threads: int,
) -> list[_Step]:
    """Return the steps of the initialization.

    One step prepares tensors and packs them. Each constant is packed by a step of its own, so only one of
    them must be in memory at a time.
    """
    tensors = {kernels.first_prepared + place: each for place, each in enumerate(kernels.prepared)}
    first, others = list(zip(initializing, codes, strict=False)), list[tuple[_Placed, MachineCode]]()
    for each in zip(packings, codes[len(initializing) :], strict=True):
        (others if each[0].launch.reads.isdisjoint(tensors) else first).append(each)
    steps: list[_Step] = []

    def add(
        launches: Sequence[tuple[_Placed, MachineCode]], arena_bytes: int, own: Mapping[int, PreparedTensor]
    ) -> None:
        step, wanted = len(steps), [buffer for buffer in own if buffer in read]
        kept = [Kept(own[buffer].size, own[buffer].recipe, step) for buffer in wanted]
        packed = [each for each, _ in launches if each.buffer != kernels.arena]
        kept += [
            Kept(each.launch.partial_bytes, _packing_recipe(each.launch, tensors), step) for each in packed
        ]
        job = _Job(
            [each for each, _ in launches],
            [code for _, code in launches],
            threads,
            kernels.arena,
            arena_bytes,
        )
        between = [(buffer, each.size) for buffer, each in own.items() if buffer not in read]
        constants = frozenset(buffer for each, _ in launches for buffer in each.launch.reads)
        constants &= frozenset(range(kernels.input_count))
        steps.append(_Step(job, constants, kept, [*wanted, *(each.buffer for each in packed)], between))

    if first:
        add(first, kernels.initializer_arena_bytes, tensors)
    for pair in others:
        add([pair], 0, {})
    return steps


def _packing_recipe(launch: CpuLaunch, tensors: Mapping[int, PreparedTensor]) -> Recipe:
    """Return how a launch packs constants or prepared tensors.

    Recipes are equal if the launches pack equal content in the same way, whatever the numbers of buffers are.
    """
    at = ParameterTable(launch.pattern)
    parameters, constants, lines = list(launch.parameters), list[int](), [launch.pattern.text()]
    for access, load in enumerate(launch.pattern.loads):
        if load.counter:
            continue
        buffer = parameters[at.buffer(access)]
        parameters[at.buffer(access)] = 0
        recipe = tensors[buffer].recipe if buffer in tensors else Recipe("constant", (buffer,))
        if recipe.text is None:
            return Recipe(None, tuple(sorted({*constants, *recipe.constants})))
        lines.append(f"{len(recipe.constants)} {recipe.text}")
        constants += recipe.constants
    return Recipe("\n".join([*lines, repr(parameters)]), tuple(constants))


def _steady_temporaries(
    kernels: KernelProgram, scheduled: Sequence[Sequence[CpuLaunch]]
) -> tuple[dict[int, int], int]:
    """Return the offsets of operands that the first step of a recurrence packs for all steps.

    They are behind the temporaries. The second result is the offset behind them.
    """
    offsets: dict[int, int] = {}
    end = kernels.arena_bytes
    for repeat in kernels.repeats:
        for first in range(repeat.first, repeat.first + repeat.length):
            packing = scheduled[first][0]
            if packing.steady and not packing.fixed:
                offsets |= {first + step * repeat.length: end for step in range(repeat.count)}
                end += aligned(packing.partial_bytes)
    return offsets, end


def _scheduled(kernels: KernelProgram) -> list[list[CpuLaunch]]:
    """Return the launches of each kernel. The parameters of all steps of a recurrence follow from the first
    two."""
    result: list[list[CpuLaunch]] = []
    for repeat in kernels.repeats:
        until = repeat.first + min(repeat.count, 2) * repeat.length
        result += [schedule(kernel) for kernel in kernels.kernels[len(result) : until]]
        steps = result[repeat.first :]
        claims = max((each for launches in steps for each in launches), key=lambda each: each.work).claims
        first, second = steps[: repeat.length], steps[repeat.length :]
        result[repeat.first :] = [
            [_advanced(*each, step, claims) for each in zip(*pair, strict=True)]
            for step in range(repeat.count)
            for pair in zip(first, second or first, strict=True)
        ]
    return result + [schedule(kernel) for kernel in kernels.kernels[len(result) :]]


def _advanced(first: CpuLaunch, second: CpuLaunch, step: int, claims: int) -> CpuLaunch:
    """Return the launch of a step of a recurrence, given those of the first two steps.

    Every other step runs its items backwards, because the last items of the step before may be in a cache.
    Threads keep their items, so that this is the cache of the same core. All launches have the `claims` of
    the largest one, so that threads read what they wrote themselves.
    """
    both = zip(first.parameters, second.parameters, strict=True)
    parameters = tuple([a + step * (b - a) for a, b in both])
    launch = replace(first, parameters=parameters, backwards=step % 2 == 1)
    if 1 < claims <= MOST_KEPT and not first.steady:
        launch = replace(launch, grain=-(-first.items // claims))
    return replace(launch, kept=1 < launch.claims <= MOST_KEPT)


class _Job:
    """The words of a job without an address.

    `pointers` are the positions of words that are relative to the address. `codes` is the machine code to
    which other words point. Temporaries take `temporary_bytes` of the buffer `arena`.
    """

    def __init__(
        self,
        launches: Sequence[_Placed],
        codes: Sequence[MachineCode],
        threads: int,
        arena: int,
        temporary_bytes: int,
    ) -> None:
        self.codes = codes
        self.pointers = [HEADER + LAUNCH * number + PARAMETERS for number in range(len(launches))]
        # Partial sums are behind the temporaries, and scratch memory of threads behind these. All launches
        # share both, because the launch that reads partial sums follows immediately.
        ends = [each.offset + each.launch.partial_bytes for each in launches if each.buffer == arena]
        scratch_offset = aligned(max(ends, default=temporary_bytes))
        needed = [
            each.launch.scratch_bytes + code.scratch_bytes for each, code in zip(launches, codes, strict=True)
        ]
        scratch_bytes = aligned(max(needed, default=0))
        claims = [each.launch.claims for each in launches]
        shared = sum(each.launch.shared_cycles for each in launches)
        mostly_alone = claims.count(1) * CLAIM_CYCLES > _MOSTLY_ALONE * shared
        threads = 1 if mostly_alone else min(threads, max(claims, default=1))
        self.arena_bytes = scratch_offset + threads * scratch_bytes
        self.is_short = threads == 1 and sum(claims) <= _FEW_CLAIMS
        self.words = _words(launches, codes)
        self.words[THREADS] = threads
        self.words[PATIENCE] = 0 if self.is_short else _MILLISECONDS
        self.words[SCRATCH : SCRATCH + 3] = arena, scratch_offset, scratch_bytes

    def part(self, first: int, count: int) -> _Job:
        """Return a job of `count` launches from the launch `first` on, in the same memory.

        Parameters keep their positions, because launches refer to them relative to the beginning.
        """
        part = copy(self)
        part.words, at = self.words.copy(), HEADER + LAUNCH * first
        part.words[0], until = count, HEADER + LAUNCH * count
        part.words[HEADER:until] = self.words[at : at + LAUNCH * count]
        part.pointers = self.pointers[:count]
        return part


def _words(
    launches: Sequence[_Placed], codes: Sequence[MachineCode]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the words of a job: launches, then their parameters, which have offsets from the beginning."""
    all_parameters = [each.parameters for each in launches]
    parameters_at = HEADER + LAUNCH * len(launches)
    words = np.zeros(parameters_at + sum(map(len, all_parameters)), np.int64)
    words[0] = len(launches)
    for number, (each, code, parameters) in enumerate(zip(launches, codes, all_parameters, strict=True)):
        at = HEADER + LAUNCH * number
        words[at] = code.address
        words[at + PARAMETERS] = parameters_at * words.itemsize
        words[at + FIRST : at + FIRST + 3] = each.launch.first, each.launch.items, each.launch.grain
        words[at + BACKWARDS] = each.launch.backwards
        words[at + KEPT] = each.launch.kept
        words[parameters_at : parameters_at + len(parameters)] = parameters
        parameters_at += len(parameters)
    return words
