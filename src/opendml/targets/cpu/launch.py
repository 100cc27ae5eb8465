"""One launch of a kernel, and the facts about its loops and accesses that all schedules need."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from opendml.compiler.bounds import bounded_axes
from opendml.compiler.kernel import Access, Kernel, operations_of
from opendml.compiler.loops import (
    LoopNest,
    MergedLoops,
    NumberedLoop,
    bundles,
    innermost_by_hints,
    innermost_loop,
    loop_nest,
    merged_loops,
)
from opendml.late_dataclass import light_dataclass, replace
from opendml.program.node import SEARCHES, Operation, ordered
from opendml.program.sizes import Size, are_same, greatest, hint_of, is_traced
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
    CopiedImage,
    CpuAccess,
    CpuMode,
    CpuPattern,
    ElementWalk,
    GroupWalk,
    Header,
    RowOrder,
    RowWalk,
    SharedReadings,
    parameter_names,
)
from opendml.targets.cpu.short_rows import streams_of
from opendml.targets.cpu.stash import STASHED

BLOCK_BYTES = 32 * 1024
"""Bytes of one operand in a block of a row."""
CLAIM_BYTES = 128 * 1024
"""Bytes of all operands that a thread claims at a time."""
CLAIM_CYCLES = 60_000
"""Cycles of products that a thread claims at a time."""
_STREAMED_SHARE = 2
"""Outputs larger than the last cache divided by this bypass the caches, as their readers would not find them
there anyway."""
_STREAMED_ROW = 512
"""The least steps of the innermost loop for which streaming pays: it writes whole cache lines."""
_STREAMED_CROSSED_ROW = 256
"""The least bytes of the innermost loop for which streaming pays in a transposed kernel. Processors do not
predict writes to one row after the other. So results bypass the caches if the L2 cache does not hold them."""
_STREAMED_BYTES = 4
"""The least bytes of an element for which streaming pays where rows lie apart. Vectors of narrower elements
are parts of cache lines."""
_STREAMED_WIDTHS = (2, 4, 8)
"""Accesses of a bundle that may be streamed; few bundles of other widths lie at a boundary."""
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
"""Modes without streamed stores. Streamed vectors begin where memory has boundaries. The vectors of a scan
begin where its line does, because sums depend on that. Placed elements are written one by one. Short rows
have streams of their own."""
_BUNDLED = (CpuMode.POINTWISE, CpuMode.SHORT_ROWS, CpuMode.SHARED_ROWS, CpuMode.POSITIONS)
_ANY_WALK = ElementWalk()
"""The walk of modes that neither walk groups nor have bundles."""
_MOST_ROW_VECTORS = 4
"""Vectors of a row that are unrolled, at most: a loop over so few takes as long as moving them."""
_LONG_ROW = 256
"""The least steps of the innermost loop for which several vectors of states pay."""


@light_dataclass(frozen=True, slots=True)
class Rebound:
    """Positions in the parameters of a launch by which kernels of one form differ.

    Attributes:
        addresses: the positions of buffers; an offset follows each.
        numbers: the positions of numbers.
    """

    addresses: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()


@light_dataclass(frozen=True, slots=True)
class LaunchWords:
    """The parameters of a launch, or some of them."""

    words: tuple[int, ...]
    rebound: Rebound

    def __add__(self, other: LaunchWords) -> LaunchWords:
        """Return these parameters, followed by others."""
        first = len(self.words)
        addresses, numbers = (
            (*own, *[first + position for position in others])
            for own, others in (
                (self.rebound.addresses, other.rebound.addresses),
                (self.rebound.numbers, other.rebound.numbers),
            )
        )
        return LaunchWords((*self.words, *other.words), Rebound(addresses, numbers))


@light_dataclass(frozen=True, slots=True)
class CpuLaunch:
    """One call of the function of a pattern over `items` items.

    Attributes:
        first: the first item.
        grain: items that a thread claims at a time, at least (`native.MOST_CLAIMS`).
        partial_bytes: bytes of the arena for partial sums. Their offset is the parameter PARTIAL_OFFSET.
        reads: the buffers of the tensors that the launch reads.
        fixed: the launch writes only its part of the arena, the same in every run, for the next launch.
        steady: the launch is the same for all steps of a recurrence.
        backwards: the last items are claimed first.
        scratch_bytes: bytes of scratch memory of each thread, besides those of the code.
        work: estimated cycles of all items; 0: each claim has about CLAIM_CYCLES.
        rebound: the parameters by which kernels of one form differ.
        packed_at: the parameter that is the buffer of what the first launch packs; 0: PARTIAL_BUFFER is.
    """

    pattern: CpuPattern
    parameters: tuple[int, ...]
    first: int
    items: int
    grain: int
    partial_bytes: int = 0
    reads: frozenset[int] = frozenset()
    fixed: bool = False
    steady: bool = False
    backwards: bool = False
    scratch_bytes: int = 0
    work: int = 0
    rebound: Rebound = Rebound()
    packed_at: int = 0

    def bound(self, binding: ValueBinding) -> CpuLaunch:
        """Return the launch of a kernel, if this is the launch of its form."""
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
    def is_traced(self) -> bool:
        """True if a word of it is traced, or the bytes that it needs."""
        own = self.first, self.items, self.grain, self.partial_bytes, self.scratch_bytes
        return any(map(is_traced, own)) or any(map(is_traced, self.parameters))

    @property
    def claims(self) -> int:
        """The number of claims by the grain; that of the traced run if sizes are traced."""
        return -(-hint_of(self.items) // hint_of(self.grain))

    @property
    def shared_cycles(self) -> int:
        """The work of all threads; 0 if the caller claims all at once."""
        if self.claims == 1:
            return 0
        if work := hint_of(self.work):
            return work
        moved = self.claims * CLAIM_BYTES
        if moved <= machine().l2_bytes and all(v.operation is Operation.SOURCE for v in self.pattern.values):
            return round(machine().cache_cycles(moved))  # Copies of what a cache holds.
        return self.claims * CLAIM_CYCLES


CpuQuery = Query[KernelNest, CpuMachine]
"""A kernel that is to be scheduled on a processor."""
Table = tuple[Candidate[Any, Any, list[CpuLaunch]], ...]
"""The ways to run the kernels of one kind."""


@light_dataclass(frozen=True, slots=True)
class InterleavedLoops:
    """A kernel with bundles of neighbours interleaved, and its merged loops."""

    kernel: Kernel
    loops: MergedLoops


def loops_of(kernel: Kernel) -> InterleavedLoops:
    """Return the loops of a kernel, which its query and the choice of its innermost loop need."""
    kernel = interleaved(kernel)
    return InterleavedLoops(kernel, merged_loops(kernel))


def query_of(kernel: Kernel, inner: int | None = None, loops: InterleavedLoops | None = None) -> CpuQuery:
    """Return the query for a kernel on this machine.

    Args:
        kernel: the kernel.
        inner: the number of the innermost loop, as of `innermost_loop_of`; None chooses it.
        loops: the loops of the kernel; None finds them.
    """
    own = loops or loops_of(kernel)
    nest = loop_nest(own.kernel, _keeps_inner(own.kernel), inner, own.loops)
    return Query(nest_of(own.kernel, nest), machine())


def innermost_loop_of(kernel: Kernel | None, traced: InterleavedLoops) -> NumberedLoop:
    """Return the innermost loop of a kernel, for the loops of the same kernel with traced sizes.

    Args:
        kernel: the kernel; None: the loop is chosen among those of traced sizes alone. It may be another one
            where plain sizes merge loops that traced ones do not.
        traced: the loops of traced sizes.
    """
    if kernel is None:
        return innermost_by_hints(traced.kernel, _keeps_inner(traced.kernel), traced.loops)
    kernel = interleaved(kernel)
    return innermost_loop(kernel, _keeps_inner(kernel), traced.kernel, traced.loops)


def _keeps_inner(kernel: Kernel) -> bool:
    """Return whether lanes are side by side, so that they may end their loops together."""
    return bool(bounded_axes(kernel, range(len(kernel.loads))))


def claim(all_bytes: int, count: int = 1) -> int:
    """Return the items that a thread claims at a time, at least one, given the bytes of `count` items."""
    return greatest(1, CLAIM_BYTES * count // all_bytes)


@light_dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of a `Header` that a schedule constructs, and parts of the walk that follow from them."""

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
    shared_rows: SharedReadings | CopiedImage | None = None
    """Readings that rows share which are computed together."""


def launch_of(
    kernel: Kernel,
    nest: LoopNest,
    mode: CpuMode,
    numbers: Numbers,
    items: int,
    item_bytes: int,
    stage: int = 0,
) -> CpuLaunch:
    """Return a launch in a mode."""
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
    words = parameters_of(kernel, nest, numbers)
    reads = buffers_of(kernel.loads)
    return CpuLaunch(pattern, words.words, 0, items, claim(item_bytes), reads=reads, rebound=words.rebound)


def buffers_of(accesses: Iterable[Access]) -> frozenset[int]:
    """Return the buffers that are accessed."""
    return frozenset(access.buffer for access in accesses if access.buffer is not None)


def pattern_of(kernel: Kernel, nest: LoopNest, mode: CpuMode) -> CpuPattern:
    """Return the pattern of a kernel that is walked in a mode."""
    bundled = _bundles(kernel, nest) if mode in _BUNDLED else ()
    widths = {bundle[0]: len(bundle) for bundle in bundled}
    # Guarded and gathered loads are not loaded as a whole tile.
    guarded = guards_of(kernel.values) if mode is CpuMode.TRANSPOSED else {}
    loads = [
        _access_pattern(access, nest, position, mode, False, across=position not in guarded)
        for position, access in enumerate(kernel.loads)
    ]
    stores = [
        _access_pattern(access, nest, position, mode, True, widths.get(position, 1))
        for position, access in enumerate(kernel.stores, len(kernel.loads))
    ]
    # Loops start at the boundary of a vector in one store. Others may lie differently.
    streams = [position for position, store in enumerate(stores) if store.streamed]
    for position in streams[1:]:
        stores[position] = replace(stores[position], streamed=False)
    parts = mode, tuple(loads), tuple(stores), kernel.values, len(nest.groups), len(nest.rows)
    if mode.walks_groups and mode.columns:
        bounded = _bounded(kernel, nest) if mode is CpuMode.COLUMNS else ()
        return CpuPattern(*parts, ColumnWalk(in_order=_in_order(kernel, nest, mode), bounded=bounded))
    if mode.walks_groups:
        long_rows = _are_long(mode, nest.inner.count)
        return CpuPattern(*parts, RowWalk(in_order=_in_order(kernel, nest, mode), long_rows=long_rows))
    if mode not in _BUNDLED:
        return CpuPattern(*parts, _ANY_WALK)
    joined = streams_of(kernel, nest, bundled) if mode is CpuMode.SHORT_ROWS else ()
    walk = ElementWalk(bundled, streams=joined)
    pattern = CpuPattern(*parts, walk)
    steps = _row_steps(pattern, nest)
    return replace(pattern, walk=replace(walk, row_steps=steps)) if steps else pattern


def _are_long(mode: CpuMode, steps: int) -> bool:
    """Return whether rows of some steps are added up in several vectors of states."""
    return mode in (CpuMode.ROWS, CpuMode.ROWS_PARTIAL) and hint_of(steps) >= _LONG_ROW


def adds_as_for_hints(launch: CpuLaunch) -> bool:
    """Return whether a launch adds elements in the order of one that is constructed for the present hints."""
    walk, steps = launch.pattern.walk, launch.parameters[Header._fields.index("inner")]
    return not isinstance(walk, RowWalk) or walk.long_rows == _are_long(launch.pattern.mode, steps)


def _row_steps(pattern: CpuPattern, nest: LoopNest) -> int:
    """Return the length of a row, if it is a few full vectors that begin where it does; else 0.

    Streamed vectors begin where memory has boundaries. Code is not made for a length that changes.
    """
    is_streamed = any(store.streamed for store in pattern.stores)
    if pattern.mode not in (CpuMode.POINTWISE, CpuMode.SHORT_ROWS) or is_streamed or not nest.groups:
        return 0
    if isinstance(nest.inner.count, Size):
        return 0
    vectors, rest = divmod(nest.inner.count, machine().vector_bytes // pattern.lane_bytes)
    return nest.inner.count if not rest and vectors <= _MOST_ROW_VECTORS else 0


def _bounded(kernel: Kernel, nest: LoopNest) -> tuple[tuple[int, int], ...]:
    """Return the loops over rows that may end early, each with the load that is the position along it.

    Neighbouring lanes go through the same number of rows, so their bounds have to be the same.
    """
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
    """Return the bundles of loads and of stores along the innermost loop."""
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
    """Return the pattern of an access.

    Args:
        access: a load or store of the kernel, with its position among all accesses.
        nest: the loops of the kernel.
        position: the number of the access.
        mode: the mode in which the kernel is walked.
        written: whether it is a store.
        width: the width of the bundle whose first access it is.
        across: whether it may be loaded as a whole tile.
    """
    stride = nest.inner.strides[position]
    # A scatter has a whole line of places, even for one element. A changing size may be 1 by a guard.
    count = nest.inner.count
    is_single = (
        written and mode is not CpuMode.SCATTER and (are_same(count, 1) or (not stride and count == 1))
    )
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
        # Without a guard: a plan for one size alone would have other choices for all kernels.
        skips = are_same(stride, 2 * access.type.bytes) and access.buffer is not None
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
        and _pays_past_caches(mode, nest, position, width, access.type.bytes)
        and (mode is not CpuMode.SHARED_ROWS or _lie_alike(nest, position, access.type.bytes))
    )
    return CpuAccess(access.type, step, level, streamed, counter=access.buffer is None)


def _lie_alike(nest: LoopNest, position: int, size: int) -> bool:
    """Return whether vectors of all rows begin at boundaries if those of the first row do, for all sizes."""
    distances = [loop.strides[position] % (LINE * max(1, size // 4)) for loop in nest.rows]
    return not any(isinstance(each, Size) or each for each in distances)


def _pays_past_caches(mode: CpuMode, nest: LoopNest, position: int, width: int, size: int) -> bool:
    """Return whether a result of elements of `size` bytes should bypass the caches, in a bundle of `width`.

    Sizes that change are taken by their hints, since this changes no result.
    """
    loops = (*nest.groups, *nest.rows, nest.inner)
    counts = [hint_of(loop.count) for loop in loops if hint_of(loop.strides[position])]
    steps, written_bytes = width * hint_of(nest.inner.count), width * math.prod(counts) * size
    if size < _STREAMED_BYTES and (mode.columns or mode is CpuMode.TRANSPOSED):
        return False
    if mode is CpuMode.TRANSPOSED:
        return steps * size >= _STREAMED_CROSSED_ROW and written_bytes > machine().l2_bytes
    return steps >= _STREAMED_ROW and is_past_caches(written_bytes)


def is_past_caches(written_bytes: int) -> bool:
    """Return whether a result is too large to keep in the last cache."""
    return written_bytes * _STREAMED_SHARE > machine().last_cache_bytes


def parameters_of(kernel: Kernel, nest: LoopNest, numbers: Numbers) -> LaunchWords:
    """Return the parameters of a kernel in the order of `parameter_names`."""
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
    loops, accesses = (*nest.groups, *nest.rows), kernel.accesses
    words = [*header, *[loop.count for loop in loops]]
    for number, access in enumerate(accesses):
        words += access.buffer or 0, access.offset, nest.inner.strides[number]
        words += [loop.strides[number] for loop in loops]
    are_in_memory = tuple([access.buffer is not None for access in accesses])
    rebound = _rebound(len(nest.groups), len(nest.rows), are_in_memory, len(kernel.numbers))
    return LaunchWords((*words, *kernel.numbers), rebound)


@lru_cache(maxsize=1024)
def _rebound(groups: int, rows: int, are_in_memory: tuple[bool, ...], numbers: int) -> Rebound:
    """Return the positions of addresses and numbers, given which accesses are in memory."""
    names = parameter_names(groups, rows, len(are_in_memory), numbers)
    buffers = [names.index(f"buffer{number}") for number, is_one in enumerate(are_in_memory) if is_one]
    return Rebound(tuple(buffers), tuple(range(len(names) - numbers, len(names))))
