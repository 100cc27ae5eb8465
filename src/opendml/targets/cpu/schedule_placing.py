"""The ways to walk kernels that place along lines: whole lines, tiles of lines, or chunks of long lines."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import LONG, LoopNest, line_nest
from opendml.late_dataclass import dataclass
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import least
from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.common.launch import Query, nest_of
from opendml.targets.common.lines import placing_in
from opendml.targets.cpu.bitonic import word_bytes
from opendml.targets.cpu.costs import chunked, whole
from opendml.targets.cpu.launch import CLAIM_BYTES, CpuLaunch, CpuQuery, Numbers, Table, launch_of
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.pattern import LINE, CpuMode

_LEAST_FOUND = 16 * 1024
"""Least elements of a chunk in which positions are found; its results are a few times a first cache. An
estimate."""
_MOST_FOUND = 256
"""Most chunks of a line in which positions are found: each adds up the counts of all before it."""
_FEW_LINES = 8
"""Lines below which long ones are split between threads."""
_LEAST_CHUNK = 64 * 1024
"""Least elements of a chunk whose best are found: of longer chunks, a smaller part is collected."""
_MOST_CHUNKS = 64
"""Most chunks of a line whose best are found: one thread merges them."""
_COLLECTED = 1.6
"""Words that are sorted together for each element that is wanted, beside a vector of them. A sample gives a
bound that usually no more elements exceed."""
_TILE_BYTES = 2 * LINE
"""Bytes of the results at one place of all lines of a tile. If places of neighbouring lines differ, as little
as possible has to stay in a cache."""
_VECTOR_TILE_BYTES = 64 * 1024
"""Bytes of the results of one vector of lines that a first cache mostly holds. If the results of a tile take
more, vectors of lines are placed one after the other."""
_TILES = 8
"""Tiles side by side that threads share, if there are that many lines."""
_MOST_EMPTY = 2
"""Most places for each element at which all places of a tile are read and written. Scratch memory that lies
together needs few page table entries, and avoids sets of caches that rows at a power of two share."""
_SCRATCH_BYTES = 256 * 1024 * 1024
"""Most bytes of scratch memory for the words of all items, if each item has several lines."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Groups of `batch` whole lines; `width` words of each are sorted, if the best are found."""

    batch: int
    width: int = 0


@dataclass(frozen=True, slots=True)
class LineChunks:
    """Chunks of at most `chunk` elements of a line. `width` words of each are sorted, if the best are
    found."""

    chunk: int
    width: int = 0


@dataclass(frozen=True, slots=True)
class LineTiles:
    """Tiles of at most `tile` lines side by side, and the mode in which elements are put to their places."""

    mode: CpuMode
    tile: int


def placing_query(kernel: Kernel) -> CpuQuery:
    """Return the query for a kernel that places along lines: its innermost loop goes along a line."""
    nest = line_nest(kernel)
    return Query(nest_of(kernel, nest), machine())


def _line_bytes(query: CpuQuery) -> int:
    """Return the bytes that are read of a line."""
    loads = query.kernel.loads
    element_bytes = sum(load.type.bytes for load in loads if load.buffer is not None)
    return query.nest.row_count * query.nest.inner.count * element_bytes or 1


def _reading(query: CpuQuery) -> float:
    """Return the cycles to read all lines from memory."""
    return query.machine.memory_cycles(query.nest.group_count * _line_bytes(query))


# Positions of elements that hold


def _price_positions(query: CpuQuery) -> Estimate[LineChunks]:
    length = query.nest.inner.count
    chunk = max(_LEAST_FOUND, -(-length // _MOST_FOUND))
    return Estimate(LineChunks(chunk), {"memory": _reading(query)})


def _positions(query: CpuQuery, choice: LineChunks) -> list[CpuLaunch]:
    """Construct two launches: all chunks are searched before it is known where their positions go."""
    kernel, nest, length, lines = query.kernel, query.nest, query.nest.inner.count, query.nest.group_count
    position_bytes = placing_in(query.kernel.values).node.type.bytes
    chunk = least(length, choice.chunk)
    chunks = -(-length // chunk)
    items, read_bytes = lines * chunks, -(-chunk * _line_bytes(query) // length)
    written_bytes = chunk * sum(store.type.bytes for store in kernel.stores)
    numbers = Numbers(length, 1, 1, chunk, chunks, length, lines)
    found = launch_of(kernel, nest, CpuMode.POSITIONS_CHUNKS, numbers, items, read_bytes)
    put = launch_of(kernel, nest, CpuMode.POSITIONS, numbers, items, written_bytes)
    scratch = items * ScalarType.INT64.bytes + lines * length * position_bytes
    # Positions are read a vector at a time, of the last ones too.
    vector_bytes = query.machine.lanes * position_bytes
    return [replace(launch, partial_bytes=scratch + vector_bytes) for launch in (found, put)]


# Elements to places along lines


def _price_lines_in_order(query: CpuQuery) -> Estimate[Batch] | Refusal:
    if _lies_across(query):
        return Refusal("more is contiguous from line to line than along lines")
    batch = max(1, min(query.nest.group_count, CLAIM_BYTES // _line_bytes(query)))
    return Estimate(
        Batch(batch), {"memory": _reading(query), "placing": query.machine.memory_cycles(_written(query))}
    )


def _lines_in_order(query: CpuQuery, choice: Batch) -> list[CpuLaunch]:
    nest, batch = query.nest, choice.batch
    numbers = Numbers(nest.inner.count, 1, nest.row_count, batch, 1, nest.placed_count, nest.group_count)
    items, item_bytes = -(-nest.group_count // batch), batch * _line_bytes(query)
    return [launch_of(query.kernel, query.nest, CpuMode.SCATTER, numbers, items, item_bytes)]


def _lies_across(query: CpuQuery) -> bool:
    """Return whether lines are placed side by side: more is contiguous from line to line than along lines."""
    nest = query.nest
    return not nest.rows and nest.lies_across and nest.groups[-1].count >= LONG


def _written(query: CpuQuery) -> int:
    """Return the bytes of all places."""
    return query.nest.group_count * query.nest.placed_count * query.kernel.stores[0].type.bytes


def _price_tiles(query: CpuQuery, mode: CpuMode) -> Estimate[LineTiles] | Refusal:
    """Price tiles of lines: narrow ones in scratch memory, if it stays in a cache, else wide ones where they
    lie."""
    if not _lies_across(query):
        return Refusal("no more is contiguous from line to line than along lines")
    count, rows, size = query.nest.placed_count, query.nest.inner.count, query.kernel.stores[0].type.bytes
    tile, lines = _TILE_BYTES // size, query.nest.groups[-1].count
    if mode is CpuMode.SCATTER_COLUMNS:
        tile *= -(-lines // (_TILES * tile))
        placing = query.machine.memory_cycles(_written(query))
    else:
        tile_bytes, vector = count * _TILE_BYTES, query.machine.lanes
        if count > _MOST_EMPTY * rows:
            return Refusal(f"{count} places for {rows} elements; at most {_MOST_EMPTY} for each")
        if tile_bytes > query.machine.l2_bytes:
            return Refusal(f"a tile takes {tile_bytes} bytes; at most {query.machine.l2_bytes}")
        placing = query.machine.cache_cycles(_written(query))
        if mode is CpuMode.SCATTER_STRIPS:
            vector_bytes = count * vector * size
            if not vector_bytes <= _VECTOR_TILE_BYTES < tile_bytes:
                return Refusal(
                    f"tiles take {vector_bytes} to {tile_bytes} bytes; around {_VECTOR_TILE_BYTES}"
                )
            tile, placing = vector, placing / 2
    return Estimate(LineTiles(mode, tile), {"memory": _reading(query), "placing": placing})


def _tiles(query: CpuQuery, choice: LineTiles) -> list[CpuLaunch]:
    """Construct the launch of tiles."""
    *others, inner = query.nest.groups
    nest, mode = LoopNest(tuple(others), (query.nest.inner,), inner, False), choice.mode
    tile = least(inner.count, choice.tile)
    count, rows, size = query.nest.placed_count, query.nest.inner.count, query.kernel.stores[0].type.bytes
    tiles, groups = -(-inner.count // tile), math.prod(loop.count for loop in others)
    numbers = Numbers(tile, tiles, rows, elements=count)
    launch = launch_of(query.kernel, nest, mode, numbers, groups * tiles, tile * _line_bytes(query))
    scratch = {
        CpuMode.SCATTER_TILES: count * _TILE_BYTES,
        CpuMode.SCATTER_STRIPS: count * (query.machine.lanes) * size,
    }
    return [replace(launch, scratch_bytes=scratch.get(mode, 0))]


# The best elements of lines


def _width(query: CpuQuery) -> int:
    """Return the words that are sorted together."""
    lanes = query.machine.lanes
    return 1 << (math.ceil(_COLLECTED * query.nest.placed_count) + lanes - 1).bit_length()


def _check_width(query: CpuQuery, width: int) -> None:
    """Check that `width` words have the elements that are wanted, of which traced sizes keep a record."""
    if query.nest.placed_count > width:
        raise ValueError(f"{query.nest.placed_count} elements of {width} words")


def _word_bytes(query: CpuQuery, width: int) -> int:
    """Return the bytes of the words that an item sorts."""
    return 2 * width * word_bytes(query.kernel.values[0].operands[0].type)


def _price_top_of_chunks(query: CpuQuery) -> Estimate[LineChunks] | Refusal:
    length, lines, width = query.nest.inner.count, query.nest.group_count, _width(query)
    chunk = max(_LEAST_CHUNK, 4 * width, -(-length // _MOST_CHUNKS))
    if lines >= _FEW_LINES:
        return Refusal(f"{lines} lines; below {_FEW_LINES}, threads share them")
    if length < 2 * chunk:
        return Refusal(f"lines of {length} elements; two chunks have {2 * chunk}")
    return Estimate(LineChunks(chunk, width), chunked(query, reads=1))


def _top_of_chunks(query: CpuQuery, choice: LineChunks) -> list[CpuLaunch]:
    length, lines, width = query.nest.inner.count, query.nest.group_count, choice.width
    _check_width(query, width)
    chunks = -(-length // choice.chunk)
    numbers = Numbers(length, 1, width, choice.chunk, chunks, query.nest.placed_count, lines)
    scratch = lines * chunks * _word_bytes(query, width)
    return [
        replace(launch_of(query.kernel, query.nest, mode, numbers, items, CLAIM_BYTES), partial_bytes=scratch)
        for mode, items in ((CpuMode.TOP_CHUNKS, lines * chunks), (CpuMode.TOP_MERGE, lines))
    ]


def _price_top(query: CpuQuery) -> Estimate[Batch]:
    lines, width = query.nest.group_count, _width(query)
    fewest = -(-lines * _word_bytes(query, width) // _SCRATCH_BYTES)
    batch = max(1, min(lines, CLAIM_BYTES // _line_bytes(query)), fewest)
    return Estimate(Batch(batch, width), whole(query, lines, fits=True, reads=1))


def _top(query: CpuQuery, choice: Batch) -> list[CpuLaunch]:
    lines, batch, width = query.nest.group_count, choice.batch, choice.width
    _check_width(query, width)
    items = -(-lines // batch)
    numbers = Numbers(query.nest.inner.count, 1, width, batch, 1, query.nest.placed_count, lines)
    launch = launch_of(query.kernel, query.nest, CpuMode.TOP, numbers, items, CLAIM_BYTES)
    return [replace(launch, partial_bytes=items * _word_bytes(query, width))]


SCATTER: Table = (
    Candidate("lines in order", _price_lines_in_order, _lines_in_order),
    *(
        Candidate(name, partial(_price_tiles, mode=mode), _tiles)
        for name, mode in (
            ("lines side by side", CpuMode.SCATTER_COLUMNS),
            ("tiles of lines in scratch memory", CpuMode.SCATTER_TILES),
            ("vectors of lines in scratch memory", CpuMode.SCATTER_STRIPS),
        )
    ),
)
"""The ways to put elements to places along lines."""
POSITIONS: Table = (Candidate("chunks of lines", _price_positions, _positions),)
"""The ways to find the positions of elements that hold."""
TOP: Table = (
    Candidate("best of whole lines", _price_top, _top),
    Candidate("best of chunks of lines", _price_top_of_chunks, _top_of_chunks),
)
"""The ways to find the best elements of lines."""
