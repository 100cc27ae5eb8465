"""The ways to walk element-wise kernels: block by block of a row, in blocks of both loops where operands lie
across, or in rows that share what they read."""

from __future__ import annotations

import math
from collections.abc import Iterable

from opendml.compiler.kernel import Access, Kernel
from opendml.compiler.loops import Loop, LoopNest
from opendml.compiler.prices import operation_count
from opendml.late_dataclass import dataclass
from opendml.program.node import ordered
from opendml.program.sizes import hint_of, is_traced, least
from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.common.guards import guards_of
from opendml.targets.common.launch import nest_of
from opendml.targets.cpu.copied_image import copied_image
from opendml.targets.cpu.launch import (
    BLOCK_BYTES,
    CLAIM_BYTES,
    CpuLaunch,
    CpuQuery,
    Numbers,
    Table,
    is_past_caches,
    launch_of,
    pattern_of,
)
from opendml.targets.cpu.pattern import (
    LINE,
    CopiedImage,
    CpuAccess,
    CpuMode,
    CpuPattern,
    ElementWalk,
    SharedReadings,
    crossed_block,
)
from opendml.targets.cpu.shared_rows import SharedRows, shared_readings, shared_rows

_SHORTEST_CROSSED = 8
"""Least steps of both loops that are walked in blocks of both: one vector of FLOAT32 with AVX2."""
_MOST_OPERATIONS = 32
"""Most operations on an element of a kernel that waits for memory; an estimate."""
_FETCHED = "lines read before they are written"
_TURNING = 1 / 16
"""Cycles for each byte to transpose a block of an operand in registers; an estimate."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """A row in blocks of at most `block` steps."""

    block: int


@dataclass(frozen=True, slots=True)
class CrossedBlocks:
    """Blocks of at most `block` steps of the loop `inner` and `chunk` of the loop `row`; loops by their
    numbers."""

    inner: int
    row: int
    block: int
    chunk: int


@dataclass(frozen=True, slots=True)
class SharedBlocks:
    """Blocks of at most `block` steps of the loop `inner` and `chunk` of the loop `row`, of which `together`
    rows are computed together; loops by their numbers."""

    inner: int
    row: int
    together: int
    block: int
    chunk: int


def _loops(nest: LoopNest) -> tuple[Loop, ...]:
    """Return the loops of a nest without rows, by their numbers."""
    return (*nest.groups, nest.inner)


def _rearranged(nest: LoopNest, inner: int, row: int) -> LoopNest:
    """Return a nest with another innermost loop, and one loop over rows."""
    loops = _loops(nest)
    groups = tuple(loop for number, loop in enumerate(loops) if number not in (inner, row))
    return LoopNest(groups, (loops[row],), loops[inner], False)


def _price_blocks(query: CpuQuery) -> Estimate[Blocks]:
    block = BLOCK_BYTES // query.nest.element_bytes
    terms = {"memory": query.machine.memory_cycles(_moved_bytes(query.kernel, query.nest))}
    if _is_large(query.kernel):
        pattern = pattern_of(query.kernel, query.nest, CpuMode.POINTWISE)
        terms[_FETCHED] = query.machine.memory_cycles(_bytes(query.kernel, _through_caches(pattern)))
    return Estimate(Blocks(block), terms)


def _blocks(query: CpuQuery, choice: Blocks) -> list[CpuLaunch]:
    nest, block = query.nest, least(query.nest.inner.count, choice.block)
    blocks = -(-nest.inner.count // block)
    numbers = Numbers(block=block, blocks=blocks, units=blocks)
    items, item_bytes = nest.group_count * blocks, block * nest.step_bytes
    return [launch_of(query.kernel, query.nest, CpuMode.POINTWISE, numbers, items, item_bytes)]


def _through_caches(pattern: CpuPattern) -> list[CpuAccess]:
    """Return the stores that do not go past the caches."""
    walk = pattern.walk_as(ElementWalk)
    first = len(pattern.loads)
    past = {number for number, store in enumerate(pattern.stores, first) if store.streamed}
    past.update(*(bundle for bundle in walk.bundles if bundle[0] in past), *walk.streams)
    return [store for number, store in enumerate(pattern.stores, first) if number not in past]


def _is_large(kernel: Kernel) -> bool:
    """Return whether no cache holds the results of a kernel."""
    return is_past_caches(_bytes(kernel, kernel.stores))


def _bytes(kernel: Kernel, accesses: Iterable[Access | CpuAccess]) -> int:
    """Return the bytes of the elements of accesses."""
    return math.prod(kernel.domain) * sum(access.type.bytes for access in accesses)


def _price_short_rows(query: CpuQuery) -> Estimate[None] | Refusal:
    kernel, nest, host = query.kernel, query.nest, query.machine
    if not _is_large(kernel):
        return Refusal(f"a cache holds the results of {_bytes(kernel, kernel.stores)} bytes")
    operations = operation_count([node.operation for node in ordered(kernel.values)])
    if operations > _MOST_OPERATIONS:
        return Refusal(f"{operations} operations take as long as writing through the caches")
    pattern = pattern_of(kernel, nest, CpuMode.SHORT_ROWS)
    if not pattern.walk_as(ElementWalk).streams:
        return Refusal("no short rows of results follow each other")
    through = _bytes(kernel, _through_caches(pattern))
    terms = {
        "memory": host.memory_cycles(_moved_bytes(kernel, nest)),
        _FETCHED: host.memory_cycles(through),
        "scratch": host.cache_cycles(_bytes(kernel, kernel.stores) - through),
    }
    return Estimate(None, terms)


def _short_rows(query: CpuQuery, _: None) -> list[CpuLaunch]:
    nest = query.nest
    numbers = Numbers(block=nest.inner.count, blocks=1, units=1)
    item_bytes = nest.inner.count * nest.step_bytes
    return [launch_of(query.kernel, query.nest, CpuMode.SHORT_ROWS, numbers, nest.group_count, item_bytes)]


def _price_shared_blocks(query: CpuQuery) -> Estimate[SharedBlocks] | Refusal:
    rows = shared_rows(query.kernel, query.nest)
    if rows is None:
        return Refusal("neighbouring rows read nothing in common")
    loops = nest_of(query.kernel, rows.nest)
    most_steps = BLOCK_BYTES // loops.element_bytes
    block = min(loops.inner.count, most_steps)
    # In a step of a recurrence, threads share all rows as they share most of the work.
    in_step = any(load.advance for load in query.kernel.loads)
    most = 0 if in_step else CLAIM_BYTES
    chunk = rows.count * max(1, most // (rows.count * block * loops.step_bytes))
    numbers = {id(loop): number for number, loop in enumerate(_loops(query.nest))}
    inner, row = numbers[id(rows.nest.inner)], numbers[id(rows.nest.rows[0])]
    memory = query.machine.memory_cycles(_moved_bytes(query.kernel, rows.nest)) * rows.reads
    terms = {"memory": memory, "through caches": _through_in_rows(query, rows)}
    return Estimate(SharedBlocks(inner, row, rows.count, most_steps, chunk), terms)


def _through_in_rows(query: CpuQuery, rows: SharedRows) -> float:
    """Return the cycles to read and write the lines of large results that do not go past the caches, apart
    from those of the memory's term."""
    if not _is_large(query.kernel):
        return 0.0
    pattern = pattern_of(query.kernel, rows.nest, CpuMode.SHARED_ROWS)
    return (2 - rows.reads) * query.machine.memory_cycles(_bytes(query.kernel, _through_caches(pattern)))


def _shared_blocks(query: CpuQuery, choice: SharedBlocks) -> list[CpuLaunch]:
    nest = _rearranged(query.nest, choice.inner, choice.row)
    image = copied_image(query.kernel, nest)
    if image is None:
        readings = shared_readings(query.kernel, nest, choice.together)
        return _blocks_of_rows(query, nest, CpuMode.SHARED_ROWS, choice.block, choice.chunk, readings)
    return _blocks_of_rows(query, nest, CpuMode.SHARED_ROWS, *_image_block(query, nest, choice, image), image)


def _image_block(
    query: CpuQuery, nest: LoopNest, choice: SharedBlocks, image: CopiedImage
) -> tuple[int, int]:
    """Return the columns and rows of blocks, of which each copies its part of an image.

    The part fits IMAGE_BYTES. Columns are so few that twice the rows that are computed together fit. Rows are
    then as many as fit, in chunks of about the same size.
    """
    size = max(load.type.bytes for load, place in zip(query.kernel.loads, image.places, strict=True) if place)
    columns, rows, together = hint_of(nest.inner.count), hint_of(nest.rows[0].count), image.together
    block = min(choice.block, -(-columns // LINE) * LINE, image.columns_of(2 * together, size))
    # Other sizes may have all columns of a block.
    widest = block if is_traced(nest.inner.count) else min(columns, block)
    most = max(together, min(choice.chunk, image.rows_of(widest, size)) // together * together)
    chunks = -(-rows // most)
    return block, -(-rows // (chunks * together)) * together


def _blocks_of_rows(
    query: CpuQuery,
    nest: LoopNest,
    mode: CpuMode,
    block: int,
    chunk: int,
    shared_rows: SharedReadings | CopiedImage | None = None,
) -> list[CpuLaunch]:
    """Return the launch of blocks of at most `block` steps of the innermost loop and `chunk` rows."""
    loops = nest_of(query.kernel, nest)
    block = least(loops.inner.count, block)
    blocks, chunks = -(-loops.inner.count // block), -(-loops.row_count // chunk)
    numbers = Numbers(
        block=block, blocks=blocks, units=loops.row_count, chunk=chunk, chunks=chunks, shared_rows=shared_rows
    )
    items = loops.group_count * chunks * blocks
    item_bytes = block * least(chunk, loops.row_count) * loops.step_bytes
    return [launch_of(query.kernel, nest, mode, numbers, items, item_bytes)]


def _price_crossed_blocks(query: CpuQuery) -> Estimate[CrossedBlocks] | Refusal:
    crossed = _crossed(query.kernel, query.nest)
    if isinstance(crossed, Refusal):
        return crossed
    nest = _rearranged(query.nest, *crossed)
    (across,) = nest.rows
    rows, steps = crossed_block(query.nest.element_bytes)
    choice = CrossedBlocks(*crossed, steps, rows)
    turned = sum(
        access.type.bytes
        for access, stride, step in zip(query.kernel.loads, across.strides, nest.inner.strides, strict=False)
        if stride == access.type.bytes and step and access.buffer is not None
    )
    terms = {
        "memory": query.machine.memory_cycles(_moved_bytes(query.kernel, nest, across)),
        "turning": _TURNING * turned * math.prod(query.kernel.domain),
    }
    return Estimate(choice, terms)


def _crossed_blocks(query: CpuQuery, choice: CrossedBlocks) -> list[CpuLaunch]:
    nest = _rearranged(query.nest, choice.inner, choice.row)
    chunk = least(nest.rows[0].count, choice.chunk)
    return _blocks_of_rows(query, nest, CpuMode.TRANSPOSED, choice.block, chunk)


def _moved_bytes(kernel: Kernel, nest: LoopNest, across: Loop | None = None) -> int:
    """Return the bytes of the cache lines that move. An access that is contiguous neither along the innermost
    loop nor `across` moves up to a line for each element."""
    moved = 0
    for number, access in enumerate((*kernel.loads, *kernel.stores)):
        size, step = access.type.bytes, abs(nest.inner.strides[number])
        if access.buffer is None:
            continue
        if step > size and not (across and across.strides[number] == size):
            size = min(LINE, step)
        moved += size
    return moved * math.prod(kernel.domain)


def _crossed(kernel: Kernel, nest: LoopNest) -> tuple[int, int] | Refusal:
    """Return the number of the loop along which the results are contiguous, and of the one along which other
    operands that move along both are."""
    loops = _loops(nest)
    # Guarded and gathered operands are not loaded as a whole tile.
    guarded = guards_of(kernel.values)
    contiguous = [
        next((n for n, loop in enumerate(loops) if loop.strides[position] == access.type.bytes), None)
        if access.buffer is not None and position not in guarded
        else None
        for position, access in enumerate((*kernel.loads, *kernel.stores))
    ]
    inner = contiguous[len(kernel.loads)]
    if inner is None:
        return Refusal("the results are contiguous along no loop")
    # An operand that does not move along the results' loop is read once a row, wherever its elements lie.
    others = {
        number
        for position, number in enumerate(contiguous[: len(kernel.loads)])
        if number not in (None, inner) and loops[inner].strides[position]
    }
    if len(others) != 1:
        return Refusal(f"operands are contiguous along {len(others)} loops other than the results'")
    (across,) = others
    assert across is not None
    steps = loops[across].count, loops[inner].count
    if min(steps) < _SHORTEST_CROSSED:
        return Refusal(f"loops of {steps[0]} and {steps[1]} steps; at least {_SHORTEST_CROSSED}")
    return inner, across


ELEMENTS: Table = (
    Candidate("blocks of both loops", _price_crossed_blocks, _crossed_blocks),
    Candidate("blocks of rows", _price_blocks, _blocks),
    Candidate("short rows", _price_short_rows, _short_rows),
    Candidate("blocks of shared rows", _price_shared_blocks, _shared_blocks),
)
"""The ways to walk a kernel without axes."""
