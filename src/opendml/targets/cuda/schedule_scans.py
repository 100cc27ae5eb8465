"""The ways to launch running sums and products.

They differ in the threads that scan a line together, and in whether several blocks share a line. A cost is
the time of all lines: threads read one tile of elements after the other, and idle multiprocessors count.
"""

from __future__ import annotations

from functools import partial

from opendml.late_dataclass import dataclass
from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.common.launch import power_of_two
from opendml.targets.cuda.costs import DEVICE_MEETING, thread_meeting
from opendml.targets.cuda.launch import POSTS_BYTES, CudaLaunch, CudaQuery, Table
from opendml.targets.cuda.parameters import launch_words
from opendml.targets.cuda.pattern import CudaMode
from opendml.targets.cuda.planned_launch import VECTOR_BYTES

_WARP = 32
_THREADS, _LARGE_THREADS, _MOST_THREADS = 256, 512, 1024
"""Threads of small, large and the largest blocks; of the last, a multiprocessor runs one at a time."""
_SIDE_BY_SIDE = 32
"""Greatest number of lines side by side of which a block has several threads each: they fill cache lines."""
_TILE_BYTES, _MOST_KEEP, _MOST_KEEP_OF_COLUMNS = 64, 32, 16
"""Bytes of a thread's tile, and most elements of it, along the innermost loop and of lines side by side. A
thread holds one tile while it reads the next."""
_CHUNK = 4
"""Neighbouring elements of a thread, if units are single elements."""
_TILE_READING, _TILE_ELEMENT = 1000, 20
"""Cycles until a tile has come from memory, and cycles of each element of a thread; fitted on an H200."""
_POST_READING = 14
"""Cycles in which a block reads the state that each other block leaves of a line; fitted on an H200."""


@dataclass(frozen=True, slots=True)
class LineSpan:
    """A line is scanned by `span` threads of each of `team` blocks of `threads`. A thread reads `keep`
    elements at a time, and a multiprocessor runs `resident` blocks."""

    threads: int
    span: int
    keep: int
    team: int
    resident: int


@dataclass(frozen=True, slots=True)
class _Lines:
    """The number of lines, the elements of each, and the least and the most elements that a thread reads at a
    time."""

    count: int
    elements: int
    chunk: int
    most: int


def _lines(query: CudaQuery) -> _Lines:
    """Return the lines. They do not depend on the alignments of tensors, so that results do not."""
    nest = query.nest
    if nest.inner_reduced:
        count, elements = nest.group_count, nest.row_count * nest.inner.count
        vector = nest.vector((VECTOR_BYTES,) * len(query.alignments), whole_rows=True)
        chunk, most = vector if vector > 1 else _CHUNK, _MOST_KEEP
    else:
        count, elements = nest.group_count * nest.inner.count, nest.row_count
        chunk, most = _CHUNK, _MOST_KEEP_OF_COLUMNS
    bytes = max(1, sum(nest.accesses[number].type.bytes for number in nest.collective_loads))
    return _Lines(count, elements, chunk, min(most, max(1, _TILE_BYTES // (bytes * chunk)) * chunk))


def _price(
    query: CudaQuery, threads: int, span: int, team: int = 1, resident: int | None = None
) -> Estimate[LineSpan]:
    """Price tiles of equal size, of as many elements as threads may keep. They are twice as many if a
    multiprocessor runs half as many threads."""
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
        # Blocks leave their states, and read those of others.
        terms["blocks"] = effort * (2 * DEVICE_MEETING + team * _POST_READING)
    return Estimate(LineSpan(threads, span, keep, team, resident), terms)


def _price_warp(query: CudaQuery) -> Estimate[LineSpan] | Refusal:
    """Price a warp for each line, or a part of a warp, whose threads have two chunks each."""
    lines = _lines(query)
    if lines.elements > _WARP * lines.most:
        return Refusal(f"lines of {lines.elements} elements; a warp takes {_WARP * lines.most}")
    return _price(query, _THREADS, min(_WARP, power_of_two(-(-lines.elements // (2 * lines.chunk)))))


def _price_shared(query: CudaQuery, resident: int) -> Estimate[LineSpan] | Refusal:
    """Price as many blocks for each line, or for some side by side, as keep the device busy."""
    lines, lines_of_block = _lines(query), 1
    if not query.nest.inner_reduced:
        lines_of_block = min(_SIDE_BY_SIDE, power_of_two(query.nest.inner.count))
    span = _LARGE_THREADS // lines_of_block
    blocks = resident * query.machine.multiprocessors // -(-lines.count // lines_of_block)
    team = min(blocks, lines.elements // (span * lines.most))
    if team < 2:
        return Refusal(f"{lines.count} lines of {lines.elements} elements; a block takes {span * lines.most}")
    return _price(query, _LARGE_THREADS, span, team, resident)


def construct_scan(query: CudaQuery, choice: LineSpan) -> CudaLaunch:
    """Return the launch that scans lines."""
    nest, lines = query.nest, _lines(query)
    columns, is_shared = not nest.inner_reduced, choice.team > 1
    vector = 1 if columns else nest.vector(query.alignments, whole_rows=True)
    units, together = lines.elements // vector, choice.threads // choice.span
    wave = choice.team * choice.span * choice.keep // vector
    constants = {
        "THREADS": choice.threads,
        "BLOCKS": choice.resident,
        "SPAN": choice.span,
        "KEEP": choice.keep,
        "CHUNK": lines.chunk,
        "AHEAD": int(wave < units),
        "TEAM": int(is_shared),
    }
    grid = -(-lines.count // together) * choice.team
    pattern = nest.pattern(
        CudaMode.SCAN, (grid * together, units + 2 * wave), constants, vector=vector, columns=columns
    )
    inner = nest.inner.count // vector
    words = launch_words(
        pattern.mode,
        items=lines.count,
        units=units,
        row_length=inner,
        column_tiles=inner,
        team=choice.team,
        zero=0,
    )
    return CudaLaunch(
        pattern,
        grid,
        choice.threads,
        nest.given() | words,
        cooperative=is_shared,
        counters_bytes=POSTS_BYTES * grid * together if is_shared else 0,
    )


SHARED = Candidate(
    "waves of tiles by blocks that share lines", partial(_price_shared, resident=2), construct_scan
)
LINES_SIDE_BY_SIDE: Table = (
    Candidate("a thread for each line", partial(_price, threads=_THREADS, span=1), construct_scan),
    Candidate(
        "a block for lines side by side",
        partial(_price, threads=_THREADS, span=_THREADS // _SIDE_BY_SIDE),
        construct_scan,
    ),
    Candidate(
        "a large block for lines side by side",
        partial(_price, threads=_LARGE_THREADS, span=_LARGE_THREADS // _SIDE_BY_SIDE),
        construct_scan,
    ),
    SHARED,
)
"""The ways to scan lines that lie side by side."""
LINES: Table = (
    Candidate("a warp for each line", _price_warp, construct_scan),
    Candidate(
        "a large block for each line",
        partial(_price, threads=_MOST_THREADS, span=_MOST_THREADS),
        construct_scan,
    ),
    Candidate("a block for each line", partial(_price, threads=_THREADS, span=_THREADS), construct_scan),
    SHARED,
    Candidate("waves of large tiles by fewer blocks", partial(_price_shared, resident=1), construct_scan),
)
"""The ways to scan along the innermost loop."""
