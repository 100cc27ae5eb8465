"""The ways to walk kernels that scan: lines, or tiles of lines that lie side by side, each by one thread, or
in chunks that threads share."""

from __future__ import annotations

from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.cpu.costs import chunked, whole
from opendml.targets.cpu.launch import (
    BLOCK_BYTES,
    CLAIM_BYTES,
    CpuLaunch,
    CpuQuery,
    Numbers,
    Table,
    launch_of,
)
from opendml.targets.cpu.pattern import WIDE_TILE, CpuMode
from opendml.targets.cpu.schedule_groups import (
    MOST_CHUNKS,
    Batches,
    Chunks,
    ColumnTiles,
    chunks_of_tiles,
    fits_a_block,
    in_chunks,
    numbers_of_tiles,
)


def _whole_lines(query: CpuQuery) -> Estimate[Batches]:
    nest = query.nest
    batch = max(1, CLAIM_BYTES // (nest.inner.count * nest.step_bytes))
    return Estimate(Batches(batch), whole(query, nest.group_count, fits=True, reads=1))


def _run_whole_lines(query: CpuQuery, way: Batches) -> list[CpuLaunch]:
    nest = query.nest
    numbers = Numbers(
        block=nest.inner.count,
        blocks=1,
        units=1,
        chunk=way.batch,
        elements=nest.inner.count,
        groups=nest.group_count,
    )
    items, item_bytes = -(-nest.group_count // way.batch), way.batch * nest.group_bytes
    return [launch_of(query.kernel, query.nest, CpuMode.SCAN_ROWS, numbers, items, item_bytes)]


def _chunks_of_lines(query: CpuQuery) -> Estimate[Chunks] | Refusal:
    if refusal := fits_a_block(query):
        return refusal
    block = BLOCK_BYTES // query.nest.element_bytes
    blocks = -(-query.nest.inner.count // block)
    chunk = -(-blocks // MOST_CHUNKS)
    return Estimate(Chunks(block, chunk), chunked(query, reads=2, is_scan=True))


def _run_chunks_of_lines(query: CpuQuery, way: Chunks) -> list[CpuLaunch]:
    blocks = -(-query.nest.inner.count // way.block)
    chunks = -(-blocks // way.chunk)
    numbers = Numbers(way.block, blocks, blocks, way.chunk, chunks, query.nest.inner.count)
    modes = (CpuMode.ROWS_PARTIAL, CpuMode.SCAN_ROWS_COMBINE, CpuMode.SCAN_ROWS_MAP)
    return in_chunks(query, modes, numbers)


def _whole_tiles(query: CpuQuery) -> Estimate[ColumnTiles]:
    nest = query.nest
    tile = min(nest.inner.count, WIDE_TILE)
    items = nest.group_count * -(-nest.inner.count // tile)
    return Estimate(ColumnTiles(tile), whole(query, items, fits=True, reads=1))


def _run_whole_tiles(query: CpuQuery, way: ColumnTiles) -> list[CpuLaunch]:
    nest = query.nest
    tiles = -(-nest.inner.count // way.tile)
    numbers = Numbers(way.tile, tiles, nest.row_count, nest.row_count, elements=nest.row_count)
    items, item_bytes = nest.group_count * tiles, nest.row_count * way.tile * nest.step_bytes
    return [launch_of(query.kernel, query.nest, CpuMode.SCAN_COLUMNS, numbers, items, item_bytes)]


def _chunks_of_tiles(query: CpuQuery) -> Estimate[Chunks] | Refusal:
    way = chunks_of_tiles(query, WIDE_TILE)
    return fits_a_block(query) or Estimate(way, chunked(query, reads=2, is_scan=True))


def _run_chunks_of_tiles(query: CpuQuery, way: Chunks) -> list[CpuLaunch]:
    modes = (CpuMode.COLUMNS_PARTIAL, CpuMode.SCAN_COLUMNS_COMBINE, CpuMode.SCAN_COLUMNS_MAP)
    return in_chunks(query, modes, numbers_of_tiles(query, way))


SCANNED_ROWS: Table = (
    Candidate("whole lines", _whole_lines, _run_whole_lines),
    Candidate("lines in chunks", _chunks_of_lines, _run_chunks_of_lines),
)
"""The ways to scan along the innermost loop."""
SCANNED_COLUMNS: Table = (
    Candidate("tiles of whole lines", _whole_tiles, _run_whole_tiles),
    Candidate("tiles of lines in chunks", _chunks_of_tiles, _run_chunks_of_tiles),
)
"""The ways to scan lines that lie side by side."""
