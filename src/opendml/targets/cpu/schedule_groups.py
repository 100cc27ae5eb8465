"""The ways to walk kernels that reduce: groups, or tiles of groups that lie side by side, each by one thread,
or in chunks that threads share."""

from __future__ import annotations

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import LoopNest
from opendml.late_dataclass import dataclass, replace
from opendml.program.node import Operation, ordered
from opendml.program.sizes import least
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
    claim,
    launch_of,
)
from opendml.targets.cpu.pattern import MATRIX_TILE, TILE, WIDE_TILE, CpuMode, RowOrder
from opendml.targets.cpu.row_code import BATCH
from opendml.targets.cpu.stash import MOST_STASHED, repeats_functions, row_pitch, with_counter

_LEAST_TILE = 64
"""Least groups in a tile of columns: some cache lines of each row. An estimate."""
_STASHED_BATCH = 8 * 1024
"""Most kept elements of a batch of groups, or of a tile, unless one group or tile has more; an estimate."""
_MOST_CHUNKS = 1024
"""Most chunks of one group: one thread merges their states."""
_MATRIX_CHUNKS = 16
"""Most chunks of a group of many rows: each sum of a chunk is added to the one before."""
_MATRIX_ROWS = 256
"""Rows of a chunk of many rows are a multiple of this."""
_NARROW = 1024
"""Least columns of a tile of many rows: rows of fewer columns are read more slowly (AVX-512, two cores)."""


@dataclass(frozen=True, slots=True)
class Batches:
    """`batch` whole groups at a time. `keeps`: the last pass keeps their elements for the results."""

    batch: int
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class ColumnTiles:
    """Tiles of at most `tile` groups side by side, and the order of their rows. `keeps`: the last pass keeps
    their elements for the results."""

    tile: int
    keeps: bool = False
    order: RowOrder = RowOrder.BATCHES


@dataclass(frozen=True, slots=True)
class Chunks:
    """Groups, or tiles of groups, in chunks that threads share.

    Args:
        block: the most steps of a block of a row, or columns of a tile.
        chunk: the blocks of a row, or the rows of a tile, in each chunk.
        rounds: all passes are made over a part of the groups, in this number of rounds.
        order: the order of rows in tiles.
    """

    block: int
    chunk: int
    rounds: int = 1
    order: RowOrder = RowOrder.BATCHES


# Groups along the innermost loop


def _price_whole_groups(query: CpuQuery) -> Estimate[Batches]:
    nest = query.nest
    batch = max(1, min(BATCH, CLAIM_BYTES // (nest.row_count * nest.inner.count * nest.step_bytes)))
    kept = nest.row_count * row_pitch(nest.inner.count)
    keeps = nest.has_elements and kept <= MOST_STASHED and repeats_functions(nest.kernel.values)
    if keeps:
        batch = max(1, min(batch, _STASHED_BATCH // kept))
    # Other data of the thread is in its cache as well.
    fits = nest.group_bytes <= query.machine.l2_bytes * 5 // 8
    return Estimate(Batches(batch, keeps), whole(query, nest.group_count, fits, nest.readings))


def _whole_groups(query: CpuQuery, choice: Batches) -> list[CpuLaunch]:
    nest, batch, kept = query.nest, choice.batch, 0
    if choice.keeps:
        kept = _kept(batch, nest.row_count, nest.inner.count)
        nest = with_counter(nest, row_pitch(nest.inner.count))
    elements = nest.row_count * nest.inner.count
    numbers = Numbers(
        block=nest.inner.count,
        blocks=1,
        units=nest.row_count,
        chunk=batch,
        elements=elements,
        groups=nest.group_count,
        stashed=kept,
    )
    items, item_bytes = -(-nest.group_count // batch), batch * elements * query.nest.step_bytes
    return [launch_of(nest.kernel, nest, CpuMode.ROWS, numbers, items, item_bytes)]


def _kept(groups: int, rows: int, elements: int) -> int:
    """Return the elements of a group that are kept, of which there is room for `groups`.

    The choice made sure of the room for the sizes that it was made for. Traced sizes record it here.
    """
    kept = rows * row_pitch(elements)
    if groups * kept > MOST_STASHED:
        raise ValueError(f"{groups} groups of {kept} elements to keep; there is room for {MOST_STASHED}")
    return kept


def _price_chunks_of_groups(query: CpuQuery) -> Estimate[Chunks] | Refusal:
    if refusal := fits_a_block(query):
        return refusal
    nest = query.nest
    most = BLOCK_BYTES // nest.element_bytes
    block = min(nest.inner.count, most)
    units = nest.row_count * -(-nest.inner.count // block)
    chunk = max(1, BLOCK_BYTES // (block * nest.element_bytes), -(-units // _MOST_CHUNKS))
    return Estimate(Chunks(most, chunk, rounds_of(query)), chunked(query, nest.readings))


def _chunks_of_groups(query: CpuQuery, choice: Chunks) -> list[CpuLaunch]:
    nest = query.nest
    block = least(nest.inner.count, choice.block)
    blocks = -(-nest.inner.count // block)
    units = nest.row_count * blocks
    chunks, elements = -(-units // choice.chunk), nest.row_count * nest.inner.count
    numbers = Numbers(block, blocks, units, choice.chunk, chunks, elements)
    modes = (CpuMode.ROWS_PARTIAL, CpuMode.ROWS_COMBINE, CpuMode.ROWS_MAP)
    return in_chunks(query, modes, numbers, choice.rounds)


# Groups side by side


def _price_whole_tiles(query: CpuQuery) -> Estimate[ColumnTiles]:
    nest = query.nest
    widest, order = _widest_tile(query)
    fitting = widest
    if not nest.reads_once:
        rows = query.machine.l2_bytes // 2 // (nest.row_count * nest.element_bytes)
        fitting = rows // _LEAST_TILE * _LEAST_TILE
    keeps = nest.has_elements and nest.row_count * _LEAST_TILE <= MOST_STASHED
    keeps = keeps and repeats_functions(nest.kernel.values)
    if keeps:
        fitting = min(fitting, _STASHED_BATCH // nest.row_count // _LEAST_TILE * _LEAST_TILE)
    most = max(_LEAST_TILE, min(fitting, widest))
    items = nest.group_count * -(-nest.inner.count // min(nest.inner.count, most))
    return Estimate(ColumnTiles(most, keeps, order), whole(query, items, fitting > 0, nest.readings))


def _whole_tiles(query: CpuQuery, choice: ColumnTiles) -> list[CpuLaunch]:
    nest, tile = query.nest, least(query.nest.inner.count, choice.tile)
    if choice.keeps:
        _kept(1, nest.row_count, tile)
        nest = with_counter(nest, row_pitch(tile))
    rows, tiles = nest.row_count, -(-nest.inner.count // tile)
    numbers = Numbers(
        block=tile,
        blocks=tiles,
        units=rows,
        chunk=rows,
        elements=rows,
        stashed=int(choice.keeps),
        order=choice.order,
    )
    items, item_bytes = nest.group_count * tiles, rows * tile * query.nest.step_bytes
    return [launch_of(nest.kernel, nest, CpuMode.COLUMNS, numbers, items, item_bytes)]


def _price_chunks_of_tiles(query: CpuQuery) -> Estimate[Chunks] | Refusal:
    choice = replace(chunks_of_tiles(query, _widest_tile(query)[0]), order=_widest_tile(query)[1])
    return fits_a_block(query) or Estimate(choice, chunked(query, query.nest.readings))


def _chunks_of_tiles(query: CpuQuery, choice: Chunks) -> list[CpuLaunch]:
    modes = (CpuMode.COLUMNS_PARTIAL, CpuMode.COLUMNS_COMBINE, CpuMode.COLUMNS_MAP)
    return in_chunks(query, modes, numbers_of_tiles(query, choice), choice.rounds)


def _widest_tile(query: CpuQuery) -> tuple[int, RowOrder]:
    """Return the most columns of a tile, and the order of its rows. Tiles as wide as the rows read memory as
    one stream."""
    if query.nest.reads_once and query.nest.inner.count <= WIDE_TILE:
        return WIDE_TILE, RowOrder.WHOLE
    return TILE, RowOrder.BATCHES


# Vectors times matrices


def takes_in_many_rows(kernel: Kernel, nest: LoopNest) -> bool:
    """Return whether the kernel multiplies vectors by matrices with many rows, whose columns lie side by
    side."""
    loops = nest_of(kernel, nest)
    sums = [node for node in ordered(kernel.values) if node.operation is Operation.CONTRACTION]
    return (
        bool(sums)
        and all(node.type.is_float for node in sums)
        and not nest.inner_reduced
        and loops.reads_once
        and loops.row_count >= _MATRIX_ROWS
    )


def _price_many_rows(query: CpuQuery) -> Estimate[Chunks] | Refusal:
    """Price tiles of whole groups, as many as threads."""
    if refusal := _of_few_rows(query):
        return refusal
    nest = query.nest
    sharing = -(-query.machine.cores // nest.group_count)
    tiles = sharing * -(-nest.inner.count // (sharing * MATRIX_TILE))
    tile = min(nest.inner.count, _LEAST_TILE * -(-nest.inner.count // (tiles * _LEAST_TILE)))
    if sharing > 1 and tile < _NARROW:
        return Refusal(f"{tile} columns for each thread; {_NARROW} are read as fast as memory gives them")
    return Estimate(Chunks(tile, _rows_of_a_chunk(query), order=RowOrder.MANY), many_rows(query))


def _many_rows(query: CpuQuery, choice: Chunks) -> list[CpuLaunch]:
    nest, numbers = query.nest, numbers_of_tiles(query, choice)
    items, item_bytes = nest.group_count * numbers.blocks, nest.row_count * numbers.block * nest.step_bytes
    return [launch_of(query.kernel, nest, CpuMode.COLUMNS, numbers, items, item_bytes)]


def _price_many_rows_in_chunks(query: CpuQuery) -> Estimate[Chunks] | Refusal:
    """Price chunks, whose results have the same bits: states are merged in the same order."""
    choice = Chunks(MATRIX_TILE, _rows_of_a_chunk(query), rounds_of(query), RowOrder.MANY)
    return _of_few_rows(query) or Estimate(choice, many_rows(query, in_chunks=True))


def _of_few_rows(query: CpuQuery) -> Refusal | None:
    if takes_in_many_rows(query.kernel, query.nest):
        return None
    return Refusal(f"no vectors times matrices of {_MATRIX_ROWS} rows or more")


def _rows_of_a_chunk(query: CpuQuery) -> int:
    return _MATRIX_ROWS * -(-query.nest.row_count // (_MATRIX_ROWS * _MATRIX_CHUNKS))


# Chunks of groups and of scanned lines


def fits_a_block(query: CpuQuery) -> Refusal | None:
    """Return the refusal of groups that are too small for chunks."""
    size = query.nest.group_bytes
    return Refusal(f"{size} bytes of a group; more than {BLOCK_BYTES}") if size <= BLOCK_BYTES else None


def chunks_of_line(query: CpuQuery) -> Chunks:
    """Return chunks of lines that are scanned."""
    block = BLOCK_BYTES // query.nest.element_bytes
    blocks = -(-query.nest.inner.count // block)
    return Chunks(block, -(-blocks // _MOST_CHUNKS), rounds_of(query))


def chunks_of_tiles(query: CpuQuery, widest: int) -> Chunks:
    """Return chunks of tiles of `widest` columns at most."""
    nest = query.nest
    tile = min(nest.inner.count, widest)
    chunk = max(1, BLOCK_BYTES * 4 // (tile * nest.element_bytes), -(-nest.row_count // _MOST_CHUNKS))
    return Chunks(widest, chunk, rounds_of(query))


def rounds_of(query: CpuQuery) -> int:
    """Return the number of rounds after each of which a cache still holds the groups that are read again."""
    nest = query.nest
    if nest.reads_once:
        return 1
    return -(-nest.group_count // max(1, 4 * query.machine.l2_bytes // nest.group_bytes))


def numbers_of_tiles(query: CpuQuery, choice: Chunks) -> Numbers:
    """Return the numbers of launches over chunks of tiles."""
    rows, inner = query.nest.row_count, query.nest.inner.count
    block = least(inner, choice.block)
    blocks, chunks = -(-inner // block), -(-rows // choice.chunk)
    return Numbers(block, blocks, rows, choice.chunk, chunks, rows, order=choice.order)


def in_chunks(
    query: CpuQuery, modes: tuple[CpuMode, CpuMode, CpuMode], numbers: Numbers, rounds: int
) -> list[CpuLaunch]:
    """Return the launches over chunks: for each pass the states of all chunks, then those of groups; last the
    elements. Each round makes all of them for a part of the groups."""
    nest = query.nest
    tiles, part_bytes = 1, PART_BYTES
    if modes[0].columns:
        tiles, part_bytes = numbers.blocks, PART_BYTES * nest.inner.count
    per_group = tiles * numbers.chunks
    grain = claim(nest.group_bytes, per_group)
    partial_mode, combine_mode, map_mode = modes
    walks = [(mode, stage) for stage in range(nest.passes) for mode in (partial_mode, combine_mode)]
    walks += [(map_mode, 0)] if nest.has_elements else []
    launches = [launch_of(nest.kernel, nest, mode, numbers, 1, 1, stage) for mode, stage in walks]
    scratch = nest.group_count * (numbers.chunks + 1) * part_count(nest.kernel.values) * part_bytes
    result = []
    for number in range(rounds):
        first, last = (nest.group_count * each // rounds for each in (number, number + 1))
        for (mode, _), launch in zip(walks, launches, strict=True):
            items, step = (tiles, 1) if mode is combine_mode else (per_group, grain)
            result.append(
                replace(
                    launch,
                    first=first * items,
                    items=(last - first) * items,
                    grain=step,
                    partial_bytes=scratch,
                )
            )
    return result


ROWS: Table = (
    Candidate("whole groups", _price_whole_groups, _whole_groups),
    Candidate("groups in chunks", _price_chunks_of_groups, _chunks_of_groups),
)
"""The ways to reduce along the innermost loop."""
COLUMNS: Table = (
    Candidate("tiles of whole groups", _price_whole_tiles, _whole_tiles),
    Candidate("tiles of groups in chunks", _price_chunks_of_tiles, _chunks_of_tiles),
    Candidate("many rows at once", _price_many_rows, _many_rows),
    Candidate("many rows at once in chunks", _price_many_rows_in_chunks, _chunks_of_tiles),
)
"""The ways to reduce groups that lie side by side."""


def reductions(query: CpuQuery) -> tuple[Table, CpuQuery]:
    """Return the ways to reduce along the loops of a query, and the query."""
    return ROWS if query.nest.inner_reduced else COLUMNS, query
