"""The ways to launch running sums and products: how many threads go along a line together, and whether
several blocks share it.

Costs are the time of all lines, by the tiles that threads take in one after the other: so they say which way
keeps the device busy, and of those that do, which takes the least effort.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.common.launch import power_of_two
from opendml.targets.cuda.costs import DEVICE_MEETING, thread_meeting
from opendml.targets.cuda.launch import POSTS_BYTES, VECTOR_BYTES, CudaLaunch, CudaQuery, Table
from opendml.targets.cuda.parameters import launch_words
from opendml.targets.cuda.pattern import CudaMode

_WARP = 32
_THREADS, _LARGE_THREADS, _MOST_THREADS = 256, 512, 1024
"""Threads of small, large and the largest blocks; of the last, a multiprocessor runs one at a time."""
_SIDE_BY_SIDE = 32
"""Greatest number of lines side by side of which a block has several threads each: they fill cache lines."""
_TILE_BYTES, _MOST_KEEP, _MOST_KEEP_ABREAST = 64, 32, 16
"""Bytes of a tile that a thread has, and greatest number of its elements, along the innermost loop and of
lines side by side: it holds one tile while it reads the next."""
_CHUNK = 4
"""Neighbouring elements of a thread, where units are single elements."""
_TILE_READING, _TILE_ELEMENT = 1000, 20
"""Cycles until a tile has come from memory, and for each element of a thread in it."""
_POST_READING = 14
"""Cycles that what a block leaves of a line costs each of the others: all of them read it at a time."""


@dataclass(frozen=True, slots=True)
class Span:
    """A line by `span` threads of each of `team` blocks of `threads`, `keep` elements each at a time; a
    multiprocessor runs `resident` such blocks."""

    threads: int
    span: int
    keep: int
    team: int
    resident: int


@dataclass(frozen=True, slots=True)
class _Lines:
    """How many lines there are, how many elements each has, and how many of these, at least and at most, a
    thread takes at a time."""

    count: int
    elements: int
    chunk: int
    most: int


def _lines(query: CudaQuery) -> _Lines:
    """The same for all alignments of the tensors, so that results are."""
    nest = query.nest
    if nest.inner_reduced:
        count, elements = nest.group_count, nest.row_count * nest.inner.count
        vector = nest.vector((VECTOR_BYTES,) * len(query.alignments), whole_rows=True)
        chunk, most = vector if vector > 1 else _CHUNK, _MOST_KEEP
    else:
        count, elements = nest.group_count * nest.inner.count, nest.row_count
        chunk, most = _CHUNK, _MOST_KEEP_ABREAST
    bytes = max(1, sum(nest.accesses[number].type.bytes for number in nest.held))
    return _Lines(count, elements, chunk, min(most, max(1, _TILE_BYTES // (bytes * chunk)) * chunk))


def _way(
    query: CudaQuery, threads: int, span: int, team: int = 1, resident: int | None = None
) -> Estimate[Span]:
    """Tiles of the same size, of as many elements as threads may keep; twice as many where a multiprocessor
    runs half as many threads."""
    lines = _lines(query)
    usual = _MOST_THREADS // threads
    resident = resident or usual
    most = min(_MOST_KEEP, lines.most * usual // resident)
    tiles = -(-lines.elements // (span * team * most))
    keep = lines.chunk * -(-lines.elements // (tiles * span * team * lines.chunk))
    blocks = -(-lines.count * span // threads) * team
    effort = tiles * max(1.0, blocks / (resident * query.machine.multiprocessors))
    meeting = 0.0 if span == 1 else thread_meeting(span if query.nest.inner_reduced else threads)
    terms = {"tiles": effort * (_TILE_READING + keep * _TILE_ELEMENT), "meeting": effort * meeting}
    if team > 1:
        # Blocks leave what they have, and find what others have.
        terms["blocks"] = effort * (2 * DEVICE_MEETING + team * _POST_READING)
    return Estimate(Span(threads, span, keep, team, resident), terms)


def _within_warp(query: CudaQuery) -> Estimate[Span] | Refusal:
    """Each line by a warp, or by the part of one that has two chunks of each thread in it."""
    lines = _lines(query)
    if lines.elements > _WARP * lines.most:
        return Refusal(f"lines of {lines.elements} elements; a warp takes {_WARP * lines.most}")
    return _way(query, _THREADS, min(_WARP, power_of_two(-(-lines.elements // (2 * lines.chunk)))))


def _shared(query: CudaQuery, resident: int) -> Estimate[Span] | Refusal:
    """Each line, or some side by side, by as many blocks as keep the device busy."""
    lines, abreast = _lines(query), 1
    if not query.nest.inner_reduced:
        abreast = min(_SIDE_BY_SIDE, power_of_two(query.nest.inner.count))
    span = _LARGE_THREADS // abreast
    blocks = resident * query.machine.multiprocessors // -(-lines.count // abreast)
    team = min(blocks, lines.elements // (span * lines.most))
    if team < 2:
        return Refusal(f"{lines.count} lines of {lines.elements} elements; a block takes {span * lines.most}")
    return _way(query, _LARGE_THREADS, span, team, resident)


def _run(query: CudaQuery, way: Span) -> CudaLaunch:
    nest, lines = query.nest, _lines(query)
    columns, is_shared = not nest.inner_reduced, way.team > 1
    vector = 1 if columns else nest.vector(query.alignments, whole_rows=True)
    units, together = lines.elements // vector, way.threads // way.span
    wave = way.team * way.span * way.keep // vector
    constants = {
        "THREADS": way.threads,
        "BLOCKS": way.resident,
        "SPAN": way.span,
        "KEEP": way.keep,
        "CHUNK": lines.chunk,
        "AHEAD": int(wave < units),
        "TEAM": int(is_shared),
    }
    grid = -(-lines.count // together) * way.team
    pattern = nest.pattern(
        CudaMode.SCAN, max(grid * together, units + 2 * wave), constants, vector=vector, columns=columns
    )
    inner = nest.inner.count // vector
    words = launch_words(
        pattern.mode,
        items=lines.count,
        units=units,
        row_length=inner,
        column_tiles=inner,
        team=way.team,
        zero=0,
    )
    return CudaLaunch(
        pattern,
        grid,
        way.threads,
        nest.given() | words,
        cooperative=is_shared,
        counters_bytes=POSTS_BYTES * grid * together if is_shared else 0,
    )


SHARED = Candidate("waves of tiles by blocks that share lines", partial(_shared, resident=2), _run)
LINES_ABREAST: Table = (
    Candidate("a thread for each line", partial(_way, threads=_THREADS, span=1), _run),
    Candidate(
        "a block for lines side by side",
        partial(_way, threads=_THREADS, span=_THREADS // _SIDE_BY_SIDE),
        _run,
    ),
    Candidate(
        "a large block for lines side by side",
        partial(_way, threads=_LARGE_THREADS, span=_LARGE_THREADS // _SIDE_BY_SIDE),
        _run,
    ),
    SHARED,
)
"""The ways to go along lines that lie side by side."""
LINES: Table = (
    Candidate("a warp for each line", _within_warp, _run),
    Candidate("a large block for each line", partial(_way, threads=_MOST_THREADS, span=_MOST_THREADS), _run),
    Candidate("a block for each line", partial(_way, threads=_THREADS, span=_THREADS), _run),
    SHARED,
    Candidate("waves of large tiles by fewer blocks", partial(_shared, resident=1), _run),
)
"""The ways to go along the innermost loop."""
