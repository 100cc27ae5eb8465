"""The ways to walk element-wise kernels: block by block of a row, or in blocks of both loops where operands
lie across."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from opendml.compiler.kernel import Access, Kernel
from opendml.compiler.loops import Loop, LoopNest
from opendml.compiler.prices import operation_count
from opendml.program.node import ordered
from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.common.guards import guards_of
from opendml.targets.common.launch import nest_of
from opendml.targets.cpu.costs import FAR, NEAR
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
from opendml.targets.cpu.pattern import LINE, CpuAccess, CpuMode, CpuPattern, ElementWalk, crossed_block
from opendml.targets.cpu.shared_rows import SharedRows, shared_rows

_SHORTEST_CROSSED = 8
"""Steps that both loops of such a kernel have at least: one vector of FLOAT32 with AVX2."""
_MOST_OPERATIONS = 32
"""Of a kernel that waits for the memory, about."""
_FETCHED = "lines read before they are written"
_TURNING = 1 / 16
"""Cycles, for each byte, to turn a block of an operand that lies across in registers, about."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """A row in blocks of so many steps."""

    block: int


@dataclass(frozen=True, slots=True)
class CrossedBlocks:
    """Blocks of `block` steps of the innermost loop of `nest` and `chunk` of its row loop."""

    nest: LoopNest
    block: int
    chunk: int


def _in_blocks(query: CpuQuery) -> Estimate[Blocks]:
    nest = query.nest
    block = min(nest.inner.count, BLOCK_BYTES // nest.element_bytes)
    terms = {"memory": FAR * _moved_bytes(query.kernel, query.nest)}
    if _is_large(query.kernel):
        pattern = pattern_of(query.kernel, query.nest, CpuMode.POINTWISE)
        terms[_FETCHED] = FAR * _bytes(query.kernel, _through_caches(pattern))
    return Estimate(Blocks(block), terms)


def _run_blocks(query: CpuQuery, way: Blocks) -> list[CpuLaunch]:
    nest = query.nest
    blocks = -(-nest.inner.count // way.block)
    numbers = Numbers(block=way.block, blocks=blocks, units=blocks)
    item_bytes = way.block * nest.step_bytes
    return [
        launch_of(query.kernel, query.nest, CpuMode.POINTWISE, numbers, nest.group_count * blocks, item_bytes)
    ]


def _through_caches(pattern: CpuPattern) -> list[CpuAccess]:
    """The stores that do not go past the caches."""
    first = len(pattern.loads)
    past = {number for number, store in enumerate(pattern.stores, first) if store.streamed}
    past.update(
        *(bundle for bundle in pattern.bundles if bundle[0] in past), *pattern.walk_as(ElementWalk).streams
    )
    return [store for number, store in enumerate(pattern.stores, first) if number not in past]


def _is_large(kernel: Kernel) -> bool:
    """Whether no cache holds the results of a kernel."""
    return is_past_caches(_bytes(kernel, kernel.stores))


def _bytes(kernel: Kernel, accesses: Iterable[Access | CpuAccess]) -> int:
    """Bytes of the elements of accesses."""
    return math.prod(kernel.domain) * sum(access.type.bytes for access in accesses)


def _in_short_rows(query: CpuQuery) -> Estimate[None] | Refusal:
    kernel, nest = query.kernel, query.nest
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
        "memory": FAR * _moved_bytes(kernel, nest),
        _FETCHED: FAR * through,
        "room": NEAR * (_bytes(kernel, kernel.stores) - through),
    }
    return Estimate(None, terms)


def _run_short_rows(query: CpuQuery, way: None) -> list[CpuLaunch]:
    nest = query.nest
    numbers = Numbers(block=nest.inner.count, blocks=1, units=1)
    item_bytes = nest.inner.count * nest.step_bytes
    return [launch_of(query.kernel, query.nest, CpuMode.SHORT_ROWS, numbers, nest.group_count, item_bytes)]


@dataclass(frozen=True, slots=True)
class SharedBlocks:
    """Blocks of so many columns, and of so many rows that share what they read."""

    rows: SharedRows
    block: int
    chunk: int


def _in_shared_blocks(query: CpuQuery) -> Estimate[SharedBlocks] | Refusal:
    rows = shared_rows(query.kernel, query.nest)
    if rows is None:
        return Refusal("neighbouring rows read nothing in common")
    loops = nest_of(query.kernel, rows.nest)
    block = min(loops.inner.count, BLOCK_BYTES // loops.element_bytes)
    together = len(rows.together.readings)
    # In a step of a recurrence, threads share all that there is as they share most of the work.
    in_step = any(load.advance for load in query.kernel.loads)
    most = 0 if in_step else CLAIM_BYTES
    chunk = together * max(1, most // (together * block * loops.step_bytes))
    memory = FAR * _moved_bytes(query.kernel, rows.nest) * rows.reads
    return Estimate(
        SharedBlocks(rows, block, chunk), {"memory": memory, "through caches": _through_in_rows(query, rows)}
    )


def _through_in_rows(query: CpuQuery, rows: SharedRows) -> float:
    """Cycles to read and write the lines of large results that do not go past the caches, apart from those
    that the memory's term has."""
    if not _is_large(query.kernel):
        return 0.0
    pattern = pattern_of(query.kernel, rows.nest, CpuMode.SHARED_ROWS)
    return FAR * (2 - rows.reads) * _bytes(query.kernel, _through_caches(pattern))


def _run_shared_blocks(query: CpuQuery, way: SharedBlocks) -> list[CpuLaunch]:
    nest = way.rows.nest
    loops = nest_of(query.kernel, nest)
    blocks, chunks = -(-loops.inner.count // way.block), -(-loops.row_count // way.chunk)
    numbers = Numbers(
        block=way.block,
        blocks=blocks,
        units=loops.row_count,
        chunk=way.chunk,
        chunks=chunks,
        shared_rows=way.rows.together,
    )
    items = loops.group_count * chunks * blocks
    item_bytes = way.block * min(way.chunk, loops.row_count) * loops.step_bytes
    return [launch_of(query.kernel, nest, CpuMode.SHARED_ROWS, numbers, items, item_bytes)]


def _in_crossed_blocks(query: CpuQuery) -> Estimate[CrossedBlocks] | Refusal:
    nest = _crossed(query.kernel, query.nest)
    if isinstance(nest, Refusal):
        return nest
    (across,) = nest.rows
    rows, steps = crossed_block(query.nest.element_bytes)
    way = CrossedBlocks(nest, min(nest.inner.count, steps), min(across.count, rows))
    elements = math.prod(query.kernel.domain)
    turned = sum(
        access.type.bytes
        for access, stride, step in zip(query.kernel.loads, across.strides, nest.inner.strides, strict=False)
        if stride == access.type.bytes and step and access.buffer is not None
    )
    return Estimate(
        way,
        {"memory": FAR * _moved_bytes(query.kernel, nest, across), "turning": _TURNING * turned * elements},
    )


def _run_crossed_blocks(query: CpuQuery, way: CrossedBlocks) -> list[CpuLaunch]:
    loops = nest_of(query.kernel, way.nest)
    blocks, chunks = -(-loops.inner.count // way.block), -(-loops.row_count // way.chunk)
    numbers = Numbers(block=way.block, blocks=blocks, units=loops.row_count, chunk=way.chunk, chunks=chunks)
    items = loops.group_count * chunks * blocks
    item_bytes = way.block * way.chunk * loops.step_bytes
    return [launch_of(query.kernel, way.nest, CpuMode.TRANSPOSED, numbers, items, item_bytes)]


def _moved_bytes(kernel: Kernel, nest: LoopNest, across: Loop | None = None) -> int:
    """Bytes of the cache lines that move: of an access that is contiguous neither along the innermost loop
    nor `across`, up to a line for each element."""
    moved = 0
    for number, access in enumerate((*kernel.loads, *kernel.stores)):
        size, step = access.type.bytes, abs(nest.inner.strides[number])
        if access.buffer is None:
            continue
        if step > size and not (across and across.strides[number] == size):
            size = min(LINE, step)
        moved += size
    return moved * math.prod(kernel.domain)


def _crossed(kernel: Kernel, nest: LoopNest) -> LoopNest | Refusal:
    """The nest with the loop innermost along which the results are contiguous, and as its one row loop the
    one along which operands are that move along both."""
    loops = (*nest.groups, nest.inner)
    accesses = (*kernel.loads, *kernel.stores)
    # What is guarded or gathered is not loaded as a whole tile.
    guarded = guards_of(kernel.values)
    contiguous = [
        next((loop for loop in loops if loop.strides[position] == access.type.bytes), None)
        if access.buffer is not None and position not in guarded
        else None
        for position, access in enumerate(accesses)
    ]
    inner = contiguous[len(kernel.loads)]
    if inner is None:
        return Refusal("the results are contiguous along no loop")
    # One that does not move along the results' loop is read once a row, wherever its elements lie.
    others = {
        id(loop): loop
        for position, loop in enumerate(contiguous[: len(kernel.loads)])
        if loop is not None and loop is not inner and inner.strides[position]
    }
    if len(others) != 1:
        return Refusal(f"operands are contiguous along {len(others)} loops other than the results'")
    (across,) = others.values()
    if min(inner.count, across.count) < _SHORTEST_CROSSED:
        return Refusal(f"loops of {across.count} and {inner.count} steps; at least {_SHORTEST_CROSSED}")
    groups = tuple(loop for loop in loops if loop is not inner and loop is not across)
    return LoopNest(groups, (across,), inner, False)


ELEMENTS: Table = (
    Candidate("blocks of both loops", _in_crossed_blocks, _run_crossed_blocks),
    Candidate("blocks of rows", _in_blocks, _run_blocks),
    Candidate("short rows", _in_short_rows, _run_short_rows),
    Candidate("blocks of shared rows", _in_shared_blocks, _run_shared_blocks),
)
"""The ways to walk a kernel without axes."""
