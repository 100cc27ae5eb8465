"""The ways to walk kernels that scan: lines, or tiles of lines that lie side by side, each by one thread, or
in chunks that threads share."""

from __future__ import annotations

from opendml.program.sizes import least
from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.cpu.costs import chunked, whole
from opendml.targets.cpu.launch import (
    CLAIM_BYTES,
    CpuLaunch,
    CpuQuery,
    Numbers,
    Table,
    launch_of,
)
from opendml.targets.cpu.pattern import WIDE_TILE, CpuMode
from opendml.targets.cpu.schedule_groups import (
    Batches,
    Chunks,
    ColumnTiles,
    chunks_of_line,
    chunks_of_tiles,
    fits_a_block,
    in_chunks,
    numbers_of_tiles,
)


def _price_whole_lines(query: CpuQuery) -> Estimate[Batches]:
    nest = query.nest
    batch = max(1, CLAIM_BYTES // (nest.inner.count * nest.step_bytes))
    return Estimate(Batches(batch), whole(query, nest.group_count, fits=True, reads=1))


def _whole_lines(query: CpuQuery, choice: Batches) -> list[CpuLaunch]:
    nest, batch = query.nest, choice.batch
    length, lines = nest.inner.count, nest.group_count
    numbers = Numbers(block=length, blocks=1, units=1, chunk=batch, elements=length, groups=lines)
    items, item_bytes = -(-lines // batch), batch * nest.group_bytes
    return [launch_of(query.kernel, nest, CpuMode.SCAN_ROWS, numbers, items, item_bytes)]


def _price_chunks_of_lines(query: CpuQuery) -> Estimate[Chunks] | Refusal:
    terms = chunked(query, reads=2, is_scan=True)
    return fits_a_block(query) or Estimate(chunks_of_line(query), terms)


def _chunks_of_lines(query: CpuQuery, choice: Chunks) -> list[CpuLaunch]:
    length = query.nest.inner.count
    blocks = -(-length // choice.block)
    numbers = Numbers(choice.block, blocks, blocks, choice.chunk, -(-blocks // choice.chunk), length)
    modes = (CpuMode.ROWS_PARTIAL, CpuMode.SCAN_ROWS_COMBINE, CpuMode.SCAN_ROWS_MAP)
    return in_chunks(query, modes, numbers, choice.rounds)


def _price_whole_tiles(query: CpuQuery) -> Estimate[ColumnTiles]:
    nest = query.nest
    items = nest.group_count * -(-nest.inner.count // min(nest.inner.count, WIDE_TILE))
    return Estimate(ColumnTiles(WIDE_TILE), whole(query, items, fits=True, reads=1))


def _whole_tiles(query: CpuQuery, choice: ColumnTiles) -> list[CpuLaunch]:
    nest, tile = query.nest, least(query.nest.inner.count, choice.tile)
    rows, tiles = nest.row_count, -(-nest.inner.count // tile)
    numbers = Numbers(tile, tiles, rows, rows, elements=rows)
    items, item_bytes = nest.group_count * tiles, rows * tile * nest.step_bytes
    return [launch_of(query.kernel, nest, CpuMode.SCAN_COLUMNS, numbers, items, item_bytes)]


def _price_chunks_of_tiles(query: CpuQuery) -> Estimate[Chunks] | Refusal:
    choice = chunks_of_tiles(query, WIDE_TILE)
    return fits_a_block(query) or Estimate(choice, chunked(query, reads=2, is_scan=True))


def _chunks_of_tiles(query: CpuQuery, choice: Chunks) -> list[CpuLaunch]:
    modes = (CpuMode.COLUMNS_PARTIAL, CpuMode.SCAN_COLUMNS_COMBINE, CpuMode.SCAN_COLUMNS_MAP)
    return in_chunks(query, modes, numbers_of_tiles(query, choice), choice.rounds)


SCANNED_ROWS: Table = (
    Candidate("whole lines", _price_whole_lines, _whole_lines),
    Candidate("lines in chunks", _price_chunks_of_lines, _chunks_of_lines),
)
"""The ways to scan along the innermost loop."""
SCANNED_COLUMNS: Table = (
    Candidate("tiles of whole lines", _price_whole_tiles, _whole_tiles),
    Candidate("tiles of lines in chunks", _price_chunks_of_tiles, _chunks_of_tiles),
)
"""The ways to scan lines that lie side by side."""
