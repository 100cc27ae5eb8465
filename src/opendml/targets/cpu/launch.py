"""One launch of a kernel, and the facts about its loops and accesses that all schedules need."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from opendml.compiler.bounds import bounded_axes
from opendml.compiler.kernel import Access, Kernel, operations_of
from opendml.compiler.loops import LoopNest, bundles, loop_nest
from opendml.program.node import SEARCHES, Operation, ordered
from opendml.targets.common.candidates import Candidate
from opendml.targets.common.forms import ValueBinding
from opendml.targets.common.guards import guards_of
from opendml.targets.common.launch import KernelNest, Query, nest_of
from opendml.targets.common.pattern import Level, Step
from opendml.targets.cpu.interleave import interleaved
from opendml.targets.cpu.machine import CpuMachine, machine
from opendml.targets.cpu.pattern import (
    LINE,
    MATRIX_TILE,
    TILE,
    WIDE_TILE,
    ColumnWalk,
    CpuAccess,
    CpuMode,
    CpuPattern,
    ElementWalk,
    GroupWalk,
    Header,
    RowOrder,
    RowWalk,
    SharedReadings,
    Walk,
)
from opendml.targets.cpu.short_rows import streams_of
from opendml.targets.cpu.stash import STASHED

BLOCK_BYTES = 32 * 1024
"""Bytes of one operand in a block of a row."""
CLAIM_BYTES = 128 * 1024
"""Bytes of all operands that a thread claims at a time."""
_STREAMED_SHARE = 2
"""Outputs larger than the last cache divided by this go past the caches: whoever reads them next would not
find them there anyway."""
_STREAMED_ROW = 512
"""Steps of the innermost loop from which on streaming pays: it writes whole cache lines."""
_STREAMED_CROSSED_ROW = 256
"""Bytes of the innermost loop from which on streaming pays where operands lie across. Processors do not
foresee writes to one row after the other, so results go past the caches as soon as a core's own do not hold
them."""
_STREAMED_BYTES = 4
"""Of an element, from which on streaming pays where rows lie apart: vectors of narrower ones are parts of
cache lines."""
_STREAMED_WIDTHS = (2, 4, 8)
"""Of bundles: of others few lie at a boundary."""
_NEVER_STREAMED = {
    CpuMode.SHORT_ROWS,
    CpuMode.SCAN_ROWS,
    CpuMode.SCAN_ROWS_MAP,
    CpuMode.CONTRACTION,
    CpuMode.SCATTER,
    CpuMode.SCATTER_COLUMNS,
    CpuMode.SCATTER_TILES,
    CpuMode.SCATTER_STRIPS,
    CpuMode.POSITIONS_CHUNKS,
    CpuMode.TOP,
    CpuMode.TOP_MERGE,
    CpuMode.CONTRACTION_CHAIN,
}
"""Streamed vectors begin where memory has boundaries. The vectors of a line that is scanned begin where it
does, since its sums depend on that; and its arithmetic takes as long as writing through the caches. What is
placed is written element by element. Short rows have streams of their own."""
_BUNDLED = (CpuMode.POINTWISE, CpuMode.SHORT_ROWS, CpuMode.SHARED_ROWS, CpuMode.POSITIONS)
_MOST_ROW_VECTORS = 4
"""Of rows whose vectors follow each other in the code, without a loop: counting them takes as long as moving
them."""
_LONG_ROW = 256
"""Steps of the innermost loop from which on several vectors of states pay."""


@dataclass(frozen=True, slots=True)
class Rebound:
    """Positions in a launch's parameters: those of buffers, each of which an offset follows, and those of
    numbers."""

    addresses: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchWords:
    """The parameters of a launch, or some of them."""

    words: tuple[int, ...]
    rebound: Rebound

    def __add__(self, other: LaunchWords) -> LaunchWords:
        """These parameters, then others."""
        first = len(self.words)
        addresses, numbers = (
            (*own, *[first + position for position in others])
            for own, others in (
                (self.rebound.addresses, other.rebound.addresses),
                (self.rebound.numbers, other.rebound.numbers),
            )
        )
        return LaunchWords((*self.words, *other.words), Rebound(addresses, numbers))


@dataclass(frozen=True, slots=True)
class CpuLaunch:
    """One call of a pattern's function over `items` items from `first` on, taken `grain` at a time."""

    pattern: CpuPattern
    parameters: tuple[int, ...]
    first: int
    items: int
    grain: int
    partial_bytes: int = 0
    """Room that it needs in the arena for partial sums; its offset there is the parameter PARTIAL_OFFSET."""
    reads: frozenset[int] = frozenset()
    """The buffers of the tensors that it reads."""
    fixed: bool = False
    """Whether all that it writes is its room, the same in every run: the next launch reads it there."""
    steady: bool = False
    """The same for all steps of a recurrence."""
    backwards: bool = False
    """Whether the last items are claimed first."""
    room_bytes: int = 0
    """Room that each thread needs for it, beside that of the code."""
    kept: bool = False
    """Whether each thread begins with a share of its own, the same in all launches like this one."""
    work: float = 0.0
    """Estimated, in as much as a thread should claim at a time, where items may have more."""
    rebound: Rebound = Rebound()
    """The parameters by which alone kernels of one form differ."""

    def bound(self, binding: ValueBinding) -> CpuLaunch:
        """The launch of a kernel, if this is the launch of its form."""
        parameters = list(self.parameters)
        for position in self.rebound.addresses:
            tensor = parameters[position]
            parameters[position] = binding.buffers[tensor]
            parameters[position + 1] += binding.offsets[tensor]
        for position in self.rebound.numbers:
            parameters[position] = binding.numbers[parameters[position]]
        reads = frozenset([binding.buffers[tensor] for tensor in self.reads])
        return replace(self, parameters=tuple(parameters), reads=reads)

    @property
    def claims(self) -> int:
        """In how many parts threads claim it."""
        return -(-self.items // self.grain)

    @property
    def shared_work(self) -> float:
        """Of all threads together, likewise; none where the caller claims all at once."""
        return max(self.claims, self.work) if self.claims > 1 else 0.0


CpuQuery = Query[KernelNest, CpuMachine]
"""A kernel that is to be scheduled on a processor."""
Table = tuple[Candidate[Any, Any, list[CpuLaunch]], ...]
"""The ways to run the kernels of one kind."""


def query_of(kernel: Kernel) -> CpuQuery:
    """The query for a kernel on this machine, bundles of neighbours put together."""
    kernel = interleaved(kernel)
    # Lanes side by side may end their loops together.
    nest = loop_nest(kernel, keeps_inner=bool(bounded_axes(kernel, range(len(kernel.loads)))))
    return Query(nest_of(kernel, nest), machine())


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a schedule chooses of a launch's `Header`, in the order of its fields."""

    block: int
    blocks: int
    units: int
    chunk: int = 1
    chunks: int = 1
    elements: int = 1
    groups: int = 1
    stashed: int = 0
    """Elements of a group that are kept between the last pass and the results; 0: none are."""
    order: RowOrder = RowOrder.BATCHES
    """The order of rows in a tile of columns."""
    shared_rows: SharedReadings | None = None
    """The readings of rows that are computed together."""


def launch_of(
    kernel: Kernel,
    nest: LoopNest,
    mode: CpuMode,
    numbers: Numbers,
    items: int,
    item_bytes: int,
    stage: int = 0,
) -> CpuLaunch:
    """A launch in a mode, by numbers."""
    pattern = pattern_of(kernel, nest, mode)
    walk = pattern.walk
    if isinstance(walk, GroupWalk):
        walk = replace(walk, stage=stage, stashes=numbers.stashed > 0)
    if isinstance(walk, ColumnWalk):
        most = MATRIX_TILE if numbers.order is RowOrder.MANY else WIDE_TILE if numbers.block > TILE else TILE
        walk = replace(walk, order=numbers.order, tile=most)
    if isinstance(walk, ElementWalk):
        walk = replace(walk, shared_rows=numbers.shared_rows)
    pattern = replace(pattern, walk=walk)
    grain = max(1, min(CLAIM_BYTES // max(item_bytes, 1), items))
    reads = buffers_of(kernel.loads)
    parameters = parameters_of(kernel, nest, numbers)
    return CpuLaunch(pattern, parameters.words, 0, items, grain, reads=reads, rebound=parameters.rebound)


def buffers_of(accesses: Iterable[Access]) -> frozenset[int]:
    """The buffers that are accessed."""
    return frozenset(access.buffer for access in accesses if access.buffer is not None)


def pattern_of(kernel: Kernel, nest: LoopNest, mode: CpuMode) -> CpuPattern:
    """The pattern of a kernel that is walked in a mode."""
    bundled = _bundles(kernel, nest) if mode in _BUNDLED else ()
    widths = {bundle[0]: len(bundle) for bundle in bundled}
    # What is guarded or gathered is not loaded as a whole tile, wherever it lies.
    guarded = guards_of(kernel.values) if mode is CpuMode.TRANSPOSED else {}
    loads = tuple(
        _access_pattern(access, nest, position, mode, False, across=position not in guarded)
        for position, access in enumerate(kernel.loads)
    )
    stores = tuple(
        _access_pattern(access, nest, position, mode, True, widths.get(position, 1))
        for position, access in enumerate(kernel.stores, len(kernel.loads))
    )
    # Loops start at the boundary of a vector in one store. Others may lie differently.
    streams = next((position for position, store in enumerate(stores) if store.streamed), None)
    stores = tuple(replace(store, streamed=position == streams) for position, store in enumerate(stores))
    walk: Walk = ElementWalk(
        bundled, streams=streams_of(kernel, nest, bundled) if mode is CpuMode.SHORT_ROWS else ()
    )
    if mode.walks_groups and mode.columns:
        bounded = _bounded(kernel, nest) if mode is CpuMode.COLUMNS else ()
        walk = ColumnWalk(in_order=_in_order(kernel, nest, mode), bounded=bounded)
    elif mode.walks_groups:
        is_long = mode in (CpuMode.ROWS, CpuMode.ROWS_PARTIAL) and nest.inner.count >= _LONG_ROW
        walk = RowWalk(in_order=_in_order(kernel, nest, mode), long_rows=is_long)
    pattern = CpuPattern(mode, loads, stores, kernel.values, len(nest.groups), len(nest.rows), walk)
    if isinstance(walk, ElementWalk):
        pattern = replace(pattern, walk=replace(walk, row_steps=_row_steps(pattern, nest)))
    return pattern


def _row_steps(pattern: CpuPattern, nest: LoopNest) -> int:
    """Return the length of a row, if it is a few full vectors that begin where it does; else 0.

    Streamed vectors begin where memory has boundaries.
    """
    is_streamed = any(store.streamed for store in pattern.stores)
    if pattern.mode not in (CpuMode.POINTWISE, CpuMode.SHORT_ROWS) or is_streamed or not nest.groups:
        return 0
    vectors, rest = divmod(nest.inner.count, machine().vector_bytes // pattern.lane_bytes)
    return nest.inner.count if not rest and vectors <= _MOST_ROW_VECTORS else 0


def _bounded(kernel: Kernel, nest: LoopNest) -> tuple[tuple[int, int], ...]:
    """The loops over rows that may end early, each with the load that is the position there. Lanes that lie
    side by side go through as many rows, so what bounds them is the same for all."""
    if not nest_of(kernel, nest).reads_once:
        return ()
    uniform = {number for number, _ in enumerate(kernel.loads) if not nest.inner.strides[number]}
    return tuple(
        (loop, number)
        for number in bounded_axes(kernel, uniform)
        for loop, each in enumerate(nest.rows)
        if each.strides[number] == 1
    )


def _bundles(kernel: Kernel, nest: LoopNest) -> tuple[tuple[int, ...], ...]:
    """The bundles of loads and of stores along the innermost loop."""
    loads = len(kernel.loads)
    read = bundles(kernel.loads, nest.inner.strides[:loads])
    written = bundles(kernel.stores, nest.inner.strides[loads:])
    return *read, *(tuple(loads + number for number in bundle) for bundle in written)


def _in_order(kernel: Kernel, nest: LoopNest, mode: CpuMode) -> bool:
    """Return whether the positions that searches compare only grow as a lane goes through its group."""
    if not SEARCHES & operations_of(kernel.values):
        return True
    searches = [node for node in ordered(kernel.values) if node.operation in SEARCHES]
    return all(node.operands[1].operation is Operation.SOURCE for node in searches) and (
        mode.columns
        or all(_grows(nest, number) for number, load in enumerate(kernel.loads) if load.buffer is None)
    )


def _grows(nest: LoopNest, position: int) -> bool:
    """Return whether a position only grows from row to row of a group, and along each row."""
    inner = [nest.inner] if nest.inner_reduced else []
    steps = [loop.strides[position] for loop in (*nest.rows, *inner)]
    return steps == sorted(steps, reverse=True)


def _access_pattern(
    access: Access,
    nest: LoopNest,
    position: int,
    mode: CpuMode,
    written: bool,
    width: int = 1,
    across: bool = False,
) -> CpuAccess:
    """How an access moves; `width` is that of the bundle that it is the first of, and `across` whether it may
    be loaded as a whole tile."""
    stride = nest.inner.strides[position]
    loops = (*nest.groups, *nest.rows, nest.inner)
    written_bytes = math.prod(loop.count for loop in loops if loop.strides[position]) * access.type.bytes
    # Lines have as many places as there are, however few elements go to some of them.
    is_single = written and nest.inner.count == 1 and mode is not CpuMode.SCATTER
    if stride == access.type.bytes or is_single:
        step = Step.CONTIGUOUS
    elif (
        across
        and mode is CpuMode.TRANSPOSED
        and nest.rows[0].strides[position] == access.type.bytes
        and stride
        and access.buffer is not None
    ):
        step = Step.ACROSS
    else:
        skips = stride == 2 * access.type.bytes and access.buffer is not None
        step = Step.DOUBLE if skips else Step.STRIDED if stride else Step.NONE
    moves_in_rows = any(loop.strides[position] for loop in nest.rows)
    if mode.has_tiles and not written and not moves_in_rows and step is Step.NONE:
        level = Level.TILE
    elif mode.columns:
        level = Level.GROUP if not moves_in_rows else Level.ROW if step is Step.NONE else Level.ELEMENT
    else:
        level = Level.ELEMENT if step is not Step.NONE else Level.ROW if moves_in_rows else Level.GROUP
    streamed = (
        written
        and mode not in _NEVER_STREAMED
        and (step is Step.CONTIGUOUS or width in _STREAMED_WIDTHS)
        and level is Level.ELEMENT
        and (mode is not CpuMode.SHARED_ROWS or _lie_alike(nest, position, access.type.bytes))
        and _pays_past_caches(mode, width * nest.inner.count, access.type.bytes, width * written_bytes)
    )
    return CpuAccess(access.type, step, level, streamed, counter=access.buffer is None)


def _lie_alike(nest: LoopNest, position: int, size: int) -> bool:
    """Whether vectors of all rows begin at boundaries where those of the first one do."""
    return all(loop.strides[position] % (LINE * max(1, size // 4)) == 0 for loop in nest.rows)


def _pays_past_caches(mode: CpuMode, steps: int, size: int, written_bytes: int) -> bool:
    """Whether a result in rows of so many steps is better written past the caches."""
    if size < _STREAMED_BYTES and (mode.columns or mode is CpuMode.TRANSPOSED):
        return False
    if mode is CpuMode.TRANSPOSED:
        return steps * size >= _STREAMED_CROSSED_ROW and written_bytes > machine().l2_bytes
    return steps >= _STREAMED_ROW and is_past_caches(written_bytes)


def is_past_caches(written_bytes: int) -> bool:
    """Whether a result of so many bytes is not worth keeping in the last cache."""
    return written_bytes * _STREAMED_SHARE > machine().last_cache_bytes


def parameters_of(kernel: Kernel, nest: LoopNest, numbers: Numbers) -> LaunchWords:
    """The parameters of a kernel, as `Parameters` has them."""
    header = Header(
        inner=nest.inner.count,
        block=numbers.block,
        blocks=numbers.blocks,
        units=numbers.units,
        chunk=numbers.chunk,
        chunks=numbers.chunks,
        elements=numbers.elements,
        groups=numbers.groups,
        stashed_bytes=numbers.stashed * STASHED.bytes,
    )
    head: list[int] = [*header]
    head += [loop.count for loop in (*nest.groups, *nest.rows)]
    loops, addresses = (nest.inner, *nest.groups, *nest.rows), []
    for position, access in enumerate((*kernel.loads, *kernel.stores)):
        if access.buffer is not None:
            addresses.append(len(head))
        head += [access.buffer or 0, access.offset]
        head += [loop.strides[position] for loop in loops]
    last = len(head) + len(kernel.numbers)
    return LaunchWords((*head, *kernel.numbers), Rebound(tuple(addresses), tuple(range(len(head), last))))
