"""The ways to walk kernels that reduce: groups, or tiles of groups that lie side by side, each by one thread,
or in chunks that threads share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import LoopNest
from opendml.program.node import Operation, ordered
from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.common.launch import nest_of
from opendml.targets.cpu.accumulation import part_count
from opendml.targets.cpu.costs import chunked, many_rows, whole
from opendml.targets.cpu.group_code import PART_BYTES
from opendml.targets.cpu.launch import (
    BLOCK_BYTES,
    CLAIM_BYTES,
    CpuLaunch,
    CpuQuery,
    Numbers,
    Table,
    launch_of,
)
from opendml.targets.cpu.pattern import MATRIX_TILE, TILE, WIDE_TILE, CpuMode, RowOrder
from opendml.targets.cpu.row_code import BATCH
from opendml.targets.cpu.stash import MOST_STASHED, repeats_functions, row_pitch, with_counter
from opendml.targets.cpu.threads import available_threads

_LEAST_TILE = 64
"""Groups in a tile of columns, at least: some cache lines of each row."""
_STASHED_BATCH = 8 * 1024
"""Elements of a batch of groups or a tile that are kept, if one group or tile has no more."""
MOST_CHUNKS = 1024
"""Chunks of one group, at most: one thread puts their states together."""
_MATRIX_CHUNKS = 16
"""Chunks of such a group, at most: as many sums are added to each other, and a chunk has"""
_MATRIX_ROWS = 256
"""a multiple of so many rows."""
_NARROW = 1024
"""Columns of a tile of whole groups then, at least: rows of fewer are read slower."""


@dataclass(frozen=True, slots=True)
class Batches:
    """So many whole groups at a time. `kept`: elements of a group that are kept from the last pass for the
    results."""

    batch: int
    kept: int = 0


@dataclass(frozen=True, slots=True)
class ColumnTiles:
    """Tiles of so many groups side by side. `kept`: their elements are kept from the last pass for the
    results."""

    tile: int
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Chunks:
    """Groups, or tiles of groups, in chunks of so many units: blocks of so many steps of a row, or rows of a
    tile that is so wide."""

    block: int
    chunk: int


# Groups along the innermost loop


def _whole_groups(query: CpuQuery) -> Estimate[Batches]:
    nest = query.nest
    batch = max(1, min(BATCH, CLAIM_BYTES // (nest.row_count * nest.inner.count * nest.step_bytes)))
    kept = nest.row_count * row_pitch(nest.inner.count)
    if nest.has_elements and kept <= MOST_STASHED and repeats_functions(query.kernel.values):
        batch = max(1, min(batch, _STASHED_BATCH // kept))
    else:
        kept = 0
    # Other data of the thread is in its cache as well.
    fits = nest.group_bytes <= query.machine.l2_bytes * 5 // 8
    return Estimate(Batches(batch, kept), whole(query, nest.group_count, fits, nest.readings))


def _run_whole_groups(query: CpuQuery, way: Batches) -> list[CpuLaunch]:
    nest = query.nest
    if way.kept:
        nest = with_counter(nest, row_pitch(nest.inner.count))
    elements = nest.row_count * nest.inner.count
    numbers = Numbers(
        block=nest.inner.count,
        blocks=1,
        units=nest.row_count,
        chunk=way.batch,
        elements=elements,
        groups=nest.group_count,
        stashed=way.kept,
    )
    items, item_bytes = -(-nest.group_count // way.batch), way.batch * elements * nest.step_bytes
    return [launch_of(nest.kernel, nest, CpuMode.ROWS, numbers, items, item_bytes)]


def _chunks_of_groups(query: CpuQuery) -> Estimate[Chunks] | Refusal:
    if refusal := fits_a_block(query):
        return refusal
    nest = query.nest
    block = min(nest.inner.count, BLOCK_BYTES // nest.element_bytes)
    units = nest.row_count * -(-nest.inner.count // block)
    chunk = max(1, BLOCK_BYTES // (block * nest.element_bytes), -(-units // MOST_CHUNKS))
    return Estimate(Chunks(block, chunk), chunked(query, nest.readings))


def _run_chunks_of_groups(query: CpuQuery, way: Chunks) -> list[CpuLaunch]:
    nest = query.nest
    blocks = -(-nest.inner.count // way.block)
    units = nest.row_count * blocks
    chunks = -(-units // way.chunk)
    numbers = Numbers(way.block, blocks, units, way.chunk, chunks, nest.row_count * nest.inner.count)
    modes = (CpuMode.ROWS_PARTIAL, CpuMode.ROWS_COMBINE, CpuMode.ROWS_MAP)
    return in_chunks(query, modes, numbers)


# Groups side by side


def _whole_tiles(query: CpuQuery) -> Estimate[ColumnTiles]:
    nest = query.nest
    widest = _widest_tile(query)
    fitting = widest
    if not nest.reads_once:
        fitting = (
            query.machine.l2_bytes // 2 // (nest.row_count * nest.element_bytes) // _LEAST_TILE * _LEAST_TILE
        )
    kept = (
        nest.has_elements
        and nest.row_count * _LEAST_TILE <= MOST_STASHED
        and repeats_functions(query.kernel.values)
    )
    if kept:
        fitting = min(fitting, _STASHED_BATCH // nest.row_count // _LEAST_TILE * _LEAST_TILE)
    tile = min(nest.inner.count, max(_LEAST_TILE, min(fitting, widest)))
    items = nest.group_count * -(-nest.inner.count // tile)
    return Estimate(ColumnTiles(tile, kept), whole(query, items, fitting > 0, nest.readings))


def _run_whole_tiles(query: CpuQuery, way: ColumnTiles) -> list[CpuLaunch]:
    nest = query.nest
    if way.kept:
        nest = with_counter(nest, row_pitch(way.tile))
    tiles = -(-nest.inner.count // way.tile)
    numbers = Numbers(
        block=way.tile,
        blocks=tiles,
        units=nest.row_count,
        chunk=nest.row_count,
        elements=nest.row_count,
        stashed=int(way.kept),
        order=_order_of_rows(query),
    )
    items, item_bytes = nest.group_count * tiles, nest.row_count * way.tile * nest.step_bytes
    return [launch_of(nest.kernel, nest, CpuMode.COLUMNS, numbers, items, item_bytes)]


def _chunks_of_tiles(query: CpuQuery) -> Estimate[Chunks] | Refusal:
    way = chunks_of_tiles(query, _widest_tile(query))
    return fits_a_block(query) or Estimate(way, chunked(query, query.nest.readings))


def _run_chunks_of_tiles(query: CpuQuery, way: Chunks) -> list[CpuLaunch]:
    numbers = replace(numbers_of_tiles(query, way), order=_order_of_rows(query))
    modes = (CpuMode.COLUMNS_PARTIAL, CpuMode.COLUMNS_COMBINE, CpuMode.COLUMNS_MAP)
    return in_chunks(query, modes, numbers)


def _order_of_rows(query: CpuQuery) -> RowOrder:
    """Return the order of rows in tiles. Tiles as wide as the rows read memory as one stream."""
    is_whole = query.nest.reads_once and query.nest.inner.count <= WIDE_TILE
    return RowOrder.WHOLE if is_whole else RowOrder.BATCHES


def _widest_tile(query: CpuQuery) -> int:
    return query.nest.inner.count if _order_of_rows(query) is RowOrder.WHOLE else TILE


# Vectors times matrices


def takes_in_many_rows(kernel: Kernel, nest: LoopNest) -> bool:
    """Whether the kernel multiplies vectors by matrices with many rows, whose columns lie side by side."""
    loops = nest_of(kernel, nest)
    sums = [node for node in ordered(kernel.values) if node.operation is Operation.CONTRACTION]
    return (
        bool(sums)
        and all(node.type.is_float for node in sums)
        and not nest.inner_reduced
        and loops.reads_once
        and loops.row_count >= _MATRIX_ROWS
    )


def _many_rows(query: CpuQuery) -> Estimate[ColumnTiles] | Refusal:
    """Tiles of whole groups, as many as threads."""
    if refusal := _of_few_rows(query):
        return refusal
    nest = query.nest
    threads = query.machine.threads or available_threads()
    sharing = -(-threads // nest.group_count)
    tiles = sharing * -(-nest.inner.count // (sharing * MATRIX_TILE))
    tile = min(nest.inner.count, _LEAST_TILE * -(-nest.inner.count // (tiles * _LEAST_TILE)))
    if sharing > 1 and tile < _NARROW:
        return Refusal(f"{tile} columns for each thread; {_NARROW} are read as fast as memory gives them")
    return Estimate(ColumnTiles(tile), many_rows(query))


def _run_many_rows(query: CpuQuery, way: ColumnTiles) -> list[CpuLaunch]:
    nest, chunks = query.nest, Chunks(way.tile, _rows_of_a_chunk(query))
    numbers = replace(numbers_of_tiles(query, chunks), order=RowOrder.MANY)
    items, item_bytes = nest.group_count * numbers.blocks, nest.row_count * way.tile * nest.step_bytes
    return [launch_of(query.kernel, query.nest, CpuMode.COLUMNS, numbers, items, item_bytes)]


def _many_rows_in_chunks(query: CpuQuery) -> Estimate[Chunks] | Refusal:
    """The same bits: states are put together in the same order."""
    way = Chunks(min(query.nest.inner.count, MATRIX_TILE), _rows_of_a_chunk(query))
    return _of_few_rows(query) or Estimate(way, many_rows(query, in_chunks=True))


def _run_many_rows_in_chunks(query: CpuQuery, way: Chunks) -> list[CpuLaunch]:
    numbers = replace(numbers_of_tiles(query, way), order=RowOrder.MANY)
    modes = (CpuMode.COLUMNS_PARTIAL, CpuMode.COLUMNS_COMBINE, CpuMode.COLUMNS_MAP)
    return in_chunks(query, modes, numbers)


def _of_few_rows(query: CpuQuery) -> Refusal | None:
    if takes_in_many_rows(query.kernel, query.nest):
        return None
    return Refusal(f"no vectors times matrices of {_MATRIX_ROWS} rows or more")


def _rows_of_a_chunk(query: CpuQuery) -> int:
    return _MATRIX_ROWS * -(-query.nest.row_count // (_MATRIX_ROWS * _MATRIX_CHUNKS))


# What scans share


def fits_a_block(query: CpuQuery) -> Refusal | None:
    """The refusal of groups that are too small for chunks."""
    size = query.nest.group_bytes
    return Refusal(f"{size} bytes of a group; more than {BLOCK_BYTES}") if size <= BLOCK_BYTES else None


def chunks_of_tiles(query: CpuQuery, widest: int) -> Chunks:
    """Chunks of tiles, these at most so wide."""
    nest = query.nest
    tile = min(nest.inner.count, widest)
    chunk = max(1, BLOCK_BYTES * 4 // (tile * nest.element_bytes), -(-nest.row_count // MOST_CHUNKS))
    return Chunks(tile, chunk)


def numbers_of_tiles(query: CpuQuery, way: Chunks) -> Numbers:
    """The numbers of launches over chunks of tiles."""
    rows, inner = query.nest.row_count, query.nest.inner.count
    return Numbers(way.block, -(-inner // way.block), rows, way.chunk, -(-rows // way.chunk), rows)


def in_chunks(query: CpuQuery, modes: tuple[CpuMode, CpuMode, CpuMode], numbers: Numbers) -> list[CpuLaunch]:
    """For each pass the states of all chunks, then of the groups; last the elements. All of it for some
    groups at a time, so that what is read again is found in a cache."""
    nest = query.nest
    tiles, part_bytes = 1, PART_BYTES
    if modes[0].columns:
        tiles, part_bytes = numbers.blocks, PART_BYTES * nest.inner.count
    per_group = tiles * numbers.chunks
    partial_mode, combine_mode, map_mode = modes
    launches = []
    for stage in range(nest.passes):
        launches.append((per_group, launch_of(nest.kernel, nest, partial_mode, numbers, 1, 1, stage)))
        launches.append((tiles, launch_of(nest.kernel, nest, combine_mode, numbers, 1, 1, stage)))
    if nest.has_elements:
        launches.append((per_group, launch_of(nest.kernel, nest, map_mode, numbers, 1, 1)))
    room = nest.group_count * (numbers.chunks + 1) * part_count(nest.kernel.values) * part_bytes
    grain = max(1, CLAIM_BYTES * per_group // nest.group_bytes)
    fitting = max(1, 4 * query.machine.l2_bytes // nest.group_bytes)
    together = nest.group_count if nest.reads_once else fitting
    result = []
    for first in range(0, nest.group_count, together):
        count = min(together, nest.group_count - first)
        for items, launch in launches:
            step = min(grain, items * count) if items == per_group else 1
            result.append(
                replace(launch, first=first * items, items=count * items, grain=step, partial_bytes=room)
            )
    return result


ROWS: Table = (
    Candidate("whole groups", _whole_groups, _run_whole_groups),
    Candidate("groups in chunks", _chunks_of_groups, _run_chunks_of_groups),
)
"""The ways to reduce along the innermost loop."""
COLUMNS: Table = (
    Candidate("tiles of whole groups", _whole_tiles, _run_whole_tiles),
    Candidate("tiles of groups in chunks", _chunks_of_tiles, _run_chunks_of_tiles),
    Candidate("many rows at once", _many_rows, _run_many_rows),
    Candidate("many rows at once in chunks", _many_rows_in_chunks, _run_many_rows_in_chunks),
)
"""The ways to reduce groups that lie side by side."""


def reductions(query: CpuQuery) -> tuple[Table, CpuQuery]:
    """Return the ways to reduce along the nest of a query, and the query."""
    return ROWS if query.nest.inner_reduced else COLUMNS, query
