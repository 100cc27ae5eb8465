"""Plans of programs for this processor: kernels, schedules, machine code, and the words of jobs."""

from __future__ import annotations

import functools
from collections.abc import Collection, Container, Hashable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from opendml.across_forks import cached_property
from opendml.compiler.fuse import Abilities, fuse
from opendml.compiler.kernel import KernelProgram, PreparedTensor
from opendml.compiler.memory import aligned
from opendml.compiler.prices import Prices
from opendml.compiler.recipe import Recipe
from opendml.compiler.simplify import simplify
from opendml.compiler.sized import at_sizes, plain, with_plain_nodes
from opendml.digests import digest_of
from opendml.late_dataclass import dataclass, replace
from opendml.program.program import Program
from opendml.program.sizes import greatest, hint_of, is_surely_less, is_traced
from opendml.targets.cpu.contraction.chain import is_chained
from opendml.targets.cpu.contraction.image import image_dimensions_of
from opendml.targets.cpu.contraction.tiling import packs_unaligned
from opendml.targets.cpu.engine import KernelCompiler
from opendml.targets.cpu.executable import CpuExecutable, CpuParts, InitializationStep, Job
from opendml.targets.cpu.launch import CpuLaunch
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.machine_code import MachineCode
from opendml.targets.cpu.native import (
    BACKWARDS,
    FIRST,
    HEADER,
    LAUNCH,
    MOST_CLAIMS,
    PARAMETERS,
    PATIENCE,
    SCRATCH,
    THREADS,
)
from opendml.targets.cpu.pattern import ParameterTable
from opendml.targets.cpu.schedule import Hints, KnownLaunches, PlanMemo, schedule
from opendml.targets.cpu.threads import available_threads
from opendml.targets.kept import Kept, KeptConstants
from opendml.targets.planned import Planned

_SHARED_BYTES = 96 * 1024
"""Bytes that a dispatch moves, at least, for more than one thread. Smaller dispatches end before another
thread could join."""
_FEW_CLAIMS = 16
"""Claims of a job of one thread, at most, for a dispatch that does not look for signals."""
_LAUNCH_CYCLES = 12_000
"""Cycles of shared work for each launch of a job, at least, for more than one thread. Below it other threads
would mostly wait for the next launch, on processors that the system may need for the caller. On Zen 4, 33
launches with 216,000 cycles took as long on two threads as on one, and 3 times as long on a busy machine."""
_MILLISECONDS = 50
"""Milliseconds for which a dispatch runs before the interpreter looks for signals."""
_LARGE_BETWEEN = 1 << 20
"""Bytes of prepared tensors that are only packed, from which on they are prepared by a step of their own. A
step takes some 100 us of the host's time."""
_WORD_BYTES = 8  # Bytes of a word of a job.


class _ReusableParts:
    """The parts of the plans of earlier buckets, which later ones may reuse.

    Args:
        whole: those of the program with all sizes traced; None: these are they.

    Attributes:
        launches: the launches of the program's kernels.
        steps: the steps of the initialization, by all that they depend on.
        constants: the constants that dispatches read, by their numbers and the number of steps.
    """

    def __init__(self, whole: _ReusableParts | None = None) -> None:
        self.launches: KnownLaunches = KnownLaunches(None if whole is None else whole.launches)
        self.steps: dict[Hashable, list[InitializationStep]] = {}
        self.constants: dict[tuple[tuple[int, ...], int], KeptConstants] = {}
        if whole is not None:
            self.constants = whole.constants


class CpuTracedProgram:
    """A program with traced sizes, as kernels. It is compiled for one bucket of sizes after another.

    Args:
        program: the program.
        threads: threads that share a dispatch, at most. None: all that the process may use.
        kernels: the kernels that another process has cut it into; then only the layouts of the program and
            its constants count. None: it is cut now.
    """

    def __init__(self, program: Program, threads: int | None, kernels: KernelProgram | None = None) -> None:
        self.program, self._threads = program, threads
        kernels = _fused(program) if kernels is None else kernels
        self.kernels = replace(kernels, kernels=tuple(map(with_plain_nodes, kernels.kernels)))
        self._whole: KernelProgram | None = None
        self._known = _ReusableParts()

    @cached_property
    def image_dimensions(self) -> frozenset[str]:
        """The dimensions of images whose height and width both vary, if there are windows of them.

        As traced sizes they take 1.08 times as long in a detector of 320x320 pixels (Zen 4, two threads):
        rows of tiles cannot divide the width of small images, and blocks are uneven.
        """
        return frozenset().union(*map(image_dimensions_of, self.kernels.kernels))

    def at(self, sizes: Mapping[str, int]) -> CpuTracedProgram:
        """Return the program for plain numbers of some dimensions, whose results have the same bits.

        Args:
            sizes: a plain number or a traced size for each dimension.
        """
        made = copy(self)
        made.kernels, made._whole = at_sizes(self.kernels, sizes), self.kernels
        made._known = _ReusableParts(self._known)
        return made

    def compile(self) -> CpuExecutable | None:
        """Choose schedules for the hints of the trace, and construct launches with traced sizes.

        Return None if prepared constants depend on traced sizes. Kernels that were fused for very different
        sizes may have one that cannot be run: then return None too.
        """
        with KernelCompiler() as compiler:
            try:
                scheduled = _scheduled(self.kernels, plain, compiler, self._whole, self._known.launches)
            except LookupError:
                return None
            parts = _parts(self.program, self.kernels, self._threads, compiler, scheduled, self._known)
        return None if any(step.is_traced for step in parts.steps) else CpuExecutable(parts)


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
    return Abilities(
        ends_loops=True,
        scatters_in_order=True,
        computes_attention=is_chained,
        prices=prices,
        reads_halves=True,
    )


def _fused(program: Program) -> KernelProgram:
    simple = replace(program, results=simplify(program.results))
    return fuse(simple, _abilities())


def compile_plan(program: Program, threads: int | None) -> CpuParts:
    """Fuse and schedule a program, compile its machine code, and return the parts of its executable.

    Args:
        program: the program.
        threads: threads that share a dispatch, at most. None: all that the process may use.
    """
    kernels = _fused(program)
    with KernelCompiler() as compiler:
        return _parts(program, kernels, threads, compiler, _scheduled(kernels, compiler=compiler))


def _parts(
    program: Program,
    kernels: KernelProgram,
    threads: int | None,
    compiler: KernelCompiler,
    scheduled: Sequence[Sequence[CpuLaunch]],
    known: _ReusableParts | None = None,
) -> CpuParts:
    """Return the parts of the executable of a program.

    Args:
        program: the program.
        kernels: its kernels, perhaps with traced sizes.
        threads: threads that share a dispatch, at most. None: all that the process may use.
        compiler: compiles machine code.
        scheduled: the launches of each kernel.
        known: parts of plans for other buckets of traced sizes; None: sizes are plain numbers.
    """
    steady, temporary_bytes = _steady_temporaries(kernels, scheduled)
    dispatched, packings = _launches(kernels, scheduled, steady, temporary_bytes)
    moved = sum(layout.element_count * layout.type.bytes for layout in (*program.inputs, *program.outputs))
    threads = 1 if hint_of(moved) < _SHARED_BYTES else threads or available_threads()
    initializing = _initializing(kernels, known)
    codes = compiler.codes([each.launch.pattern for each in (*dispatched, *initializing, *packings)])
    job = _job(dispatched, codes[: len(dispatched)], threads, kernels.arena, temporary_bytes)
    read = {buffer for each in dispatched for buffer in each.launch.reads}
    # `known` keeps its launches alive, so their identities stand for them.
    made_by = [(id(each.launch), each.buffer) for each in (*initializing, *packings)]
    key = tuple(made_by), frozenset(read.difference(range(kernels.first_prepared))), threads
    steps = None if known is None else known.steps.get(key)
    if steps is None:
        steps = _steps(kernels, initializing, packings, codes[len(dispatched) :], read, threads)
        if known is not None:
            known.steps[key] = steps
    copied = tuple(sorted(program.constants & read))
    constants = None if known is None else known.constants.get((copied, len(steps)))
    if constants is None:
        constants = KeptConstants({number: program.inputs[number] for number in copied}, len(steps))
        if known is not None:
            known.constants[copied, len(steps)] = constants
    return CpuParts(job, steps, constants, kernels.buffer_count + len(packings), kernels.arena)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A launch, the number of its kernel, and the buffer and offset of its partial sums or packed
    operands. `packed` is the buffer of a constant that was packed before."""

    launch: CpuLaunch
    kernel: int
    buffer: int
    offset: int
    packed: int = 0

    @property
    def buffers(self) -> frozenset[int]:
        """The buffers that the launch reads and writes."""
        at, pattern = ParameterTable(self.launch.pattern), self.launch.pattern
        stores = range(len(pattern.loads), len(pattern.accesses))
        written = {self.launch.parameters[at.buffer(access)] for access in stores}
        partial = {self.buffer} if self.launch.partial_bytes else set()
        return frozenset({*self.launch.reads, *written, *partial})

    @property
    def parameters(self) -> tuple[int, ...]:
        """The parameters of the launch, with this buffer and offset."""
        parameters = list(self.launch.parameters)
        parameters[ParameterTable.PARTIAL_BUFFER], parameters[ParameterTable.PARTIAL_OFFSET] = (
            self.buffer,
            self.offset,
        )
        if self.launch.packed_at:
            parameters[self.launch.packed_at] = self.packed
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
            if is_new:
                packings.append(_Placed(launches[0], number, buffer, 0))
            place = (kernels.arena, end) if launches[-1].packed_at else (buffer, 0)
            placed = [_Placed(launch, number, *place, buffer) for launch in launches[1:]]
        else:
            offset = steady.get(number, end)
            placed = [_Placed(launch, number, kernels.arena, offset) for launch in launches]
            if offset in begun:
                placed.pop(0)
            elif number in steady:
                begun.add(offset)
        dispatched += placed
    return dispatched, packings


def _initializing(kernels: KernelProgram, known: _ReusableParts | None) -> list[_Placed]:
    """Return the launches that prepare tensors."""
    of = schedule if known is None else functools.partial(schedule, hints=plain, known=known.launches)
    return [
        _Placed(launch, number, kernels.arena, kernels.initializer_arena_bytes)
        for number, kernel in enumerate(kernels.initializers)
        for launch in of(kernel)
    ]


def _steps(
    kernels: KernelProgram,
    initializing: Sequence[_Placed],
    packings: Sequence[_Placed],
    codes: Sequence[MachineCode],
    read: Container[int],
    threads: int,
) -> list[InitializationStep]:
    """Return the steps of the initialization.

    Each constant is packed by a step of its own, so only one of them must be in memory at a time. A large
    tensor that is prepared only to be packed, such as numbers of 4 bits, has a step of its own, too. One step
    has all other launches that prepare tensors.
    """
    tensors = {kernels.first_prepared + place: each for place, each in enumerate(kernels.prepared)}
    shared, alone = list[tuple[_Placed, MachineCode]](), list[list[tuple[_Placed, MachineCode]]]()
    pairs = list(zip((*initializing, *packings), codes, strict=True))
    places = {id(each): place for place, (each, _) in enumerate(pairs)}
    for touched, group in _joint(pairs, {*tensors, kernels.arena}):
        between = sum(tensors[buffer].size for buffer in touched - {kernels.arena} if buffer not in read)
        if touched and (kernels.arena in touched or between < _LARGE_BETWEEN):
            shared += group
        else:
            alone.append(group)
    steps: list[InitializationStep] = []

    def add(launches: Sequence[tuple[_Placed, MachineCode]], arena_bytes: int) -> None:
        touched = {buffer for each, _ in launches for buffer in each.buffers}
        own = {buffer: each for buffer, each in tensors.items() if buffer in touched}
        step, wanted = len(steps), [buffer for buffer in own if buffer in read]
        kept = [Kept(own[buffer].size, own[buffer].recipe, step, is_computed=True) for buffer in wanted]
        packed = [each for each, _ in launches if each.buffer != kernels.arena]
        is_unaligned = all(packs_unaligned(each.launch.pattern) for each, _ in launches)
        kept += [
            Kept(
                each.launch.partial_bytes,
                _packing_recipe(each.launch, tensors),
                step,
                reads_unaligned=is_unaligned,
            )
            for each in packed
        ]
        job = functools.partial(
            _job,
            [each for each, _ in launches],
            [code for _, code in launches],
            threads,
            kernels.arena,
            arena_bytes,
        )
        between = [(buffer, each.size) for buffer, each in own.items() if buffer not in read]
        constants = frozenset(buffer for each, _ in launches for buffer in each.launch.reads)
        constants &= frozenset(range(kernels.input_count))
        numbers = [arena_bytes, *[each.size for each in kept], *[size for _, size in between]]
        is_open = any(map(is_traced, numbers)) or any(each.launch.is_traced for each, _ in launches)
        buffers = [*wanted, *[each.buffer for each in packed]]
        steps.append(InitializationStep(job, constants, kept, buffers, between, is_open))

    if shared:
        add(sorted(shared, key=lambda pair: places[id(pair[0])]), kernels.initializer_arena_bytes)
    for group in alone:
        add(group, 0)
    return steps


def _joint(
    launches: Sequence[tuple[_Placed, MachineCode]], buffers: Collection[int]
) -> list[tuple[set[int], list[tuple[_Placed, MachineCode]]]]:
    """Return groups of launches, each with its buffers. Two groups have none of these buffers in common."""
    groups: list[tuple[set[int], list[tuple[_Placed, MachineCode]]]] = []
    for pair in launches:
        touched, group = set(buffers).intersection(pair[0].buffers), list[tuple[_Placed, MachineCode]]()
        if not touched:
            groups.append((touched, [pair]))
            continue
        apart = []
        for known in groups:
            if known[0].isdisjoint(touched):
                apart.append(known)
            else:
                touched, group = touched | known[0], group + known[1]
        groups = [*apart, (touched, [*group, pair])]
    return groups


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
    text = "\n".join([*lines, repr(parameters)])
    return Recipe(digest_of(text.encode()).hexdigest(), tuple(constants))


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


def _scheduled(
    kernels: KernelProgram,
    hints: Hints | None = None,
    compiler: KernelCompiler | None = None,
    whole: KernelProgram | None = None,
    known: KnownLaunches | None = None,
) -> list[list[CpuLaunch]]:
    """Return the launches of each kernel. The parameters of all steps of a recurrence follow from the first
    two.

    Args:
        kernels: the kernels.
        hints: returns kernels with the sizes for which launches are chosen; None: their own.
        compiler: compiles the launches of a kernel while those of the next are chosen.
        whole: the kernels with all sizes traced; None: they are `kernels`.
        known: the launches of the kernels for other hints.
    """
    memo = PlanMemo()
    result: list[list[CpuLaunch]] = []

    def launches(until: int) -> list[list[CpuLaunch]]:
        found = []
        for number in range(len(result), until):
            traced = None if whole is None else whole.kernels[number]
            found.append(schedule(kernels.kernels[number], hints, memo, traced, known))
            if compiler is not None:
                compiler.add([each.pattern for each in found[-1]])
        return found

    for repeat in kernels.repeats:
        until = repeat.first + min(repeat.count, 2) * repeat.length
        result += launches(until)
        steps = result[repeat.first :]
        claims = max((each for launches in steps for each in launches), key=_hinted_work).claims
        first, second = steps[: repeat.length], steps[repeat.length :]
        result[repeat.first :] = [
            [_advanced(*each, step, claims) for each in zip(*pair, strict=True)]
            for step in range(repeat.count)
            for pair in zip(first, second or first, strict=True)
        ]
    return result + launches(len(kernels.kernels))


def _hinted_work(launch: CpuLaunch) -> int:
    return hint_of(launch.work)


def _advanced(first: CpuLaunch, second: CpuLaunch, step: int, claims: int) -> CpuLaunch:
    """Return the launch of a step of a recurrence, given those of the first two steps.

    Every other step runs its items backwards, because the last items of the step before may be in a cache.
    Threads keep their items, so that this is the cache of the same core. All launches have the `claims` of
    the largest one, so that threads read what they wrote themselves.
    """
    both = zip(first.parameters, second.parameters, strict=True)
    parameters = tuple([a + step * (b - a) for a, b in both])
    grain = first.grain if claims == 1 or first.steady else -(-first.items // claims)
    return replace(first, parameters=parameters, backwards=step % 2 == 1, grain=grain)


def _job(
    launches: Sequence[_Placed],
    codes: Sequence[MachineCode],
    threads: int,
    arena: int,
    temporary_bytes: int,
) -> Job:
    """Return the job of some launches. Temporaries take `temporary_bytes` of the buffer `arena`."""
    # Partial sums are behind the temporaries, and scratch memory of threads behind these. All launches share
    # both, because the launch that reads partial sums follows immediately.
    partial: dict[int, list[int]] = {}
    for each in launches:
        if each.buffer == arena:
            partial.setdefault(each.offset, []).append(each.launch.partial_bytes)
    # Most have one offset, a long expression. Comparisons of long expressions take time.
    ends = [offset + greatest(*dict.fromkeys(sizes)) for offset, sizes in partial.items()]
    scratch_offset = aligned(greatest(*ends) if ends else temporary_bytes)
    needed = [
        each.launch.scratch_bytes + code.scratch_bytes for each, code in zip(launches, codes, strict=True)
    ]
    scratch_bytes = aligned(greatest(0, *dict.fromkeys(needed)))
    claims = [each.launch.claims for each in launches]
    shared = sum(each.launch.shared_cycles for each in launches)
    mostly_waits = shared < _LAUNCH_CYCLES * len(launches)
    threads = 1 if mostly_waits else min(threads, max(claims, default=1))
    is_short = threads == 1 and sum(claims) <= _FEW_CLAIMS
    values: list[int] = [0] * (HEADER + LAUNCH * len(launches))
    values[0], values[THREADS] = len(launches), threads
    values[PATIENCE] = 0 if is_short else _MILLISECONDS
    values[SCRATCH : SCRATCH + 3] = arena, scratch_offset, scratch_bytes
    pointers = range(HEADER + PARAMETERS, len(values), LAUNCH)
    for at, each, code in zip(pointers, launches, codes, strict=True):
        at -= PARAMETERS
        values[at] = code.address
        # The parameters have offsets from the beginning.
        values[at + PARAMETERS] = len(values) * _WORD_BYTES
        grain, items = each.launch.grain, each.launch.items
        if not is_surely_less(items, MOST_CLAIMS * grain + 1):
            grain = greatest(grain, -(-items // MOST_CLAIMS))
        values[at + FIRST : at + FIRST + 3] = each.launch.first, items, grain
        values[at + BACKWARDS] = each.launch.backwards
        values += each.parameters
    traced = [
        position for position, value in enumerate(values) if type(value) is not int and is_traced(value)
    ]
    sizes: tuple[Any, ...] = tuple([values[position] for position in traced])
    for position, size in zip(traced, sizes, strict=True):
        values[position] = size.hint
    return Job(
        np.array(values, np.int64),
        np.array(pointers, np.int64),
        codes,
        scratch_offset + threads * scratch_bytes,
        is_short,
        np.array(traced, np.int64),
        sizes,
    )
