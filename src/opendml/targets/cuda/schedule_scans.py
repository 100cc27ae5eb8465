"""The ways to launch running sums and products: how many threads go along a line together, and whether
several blocks share it.

Costs are the time of one line. Where there are so few that multiprocessors would be idle, a line is worth
reading twice: blocks sum up a slice each, meet, and go along it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.cuda.costs import DEVICE_MEETING, ELEMENT_STEP, SIDE_BY_SIDE, thread_meeting
from opendml.targets.cuda.launch import Launch, Query, Table
from opendml.targets.cuda.parameters import Words
from opendml.targets.cuda.pattern import Mode, Pattern

_THREADS = 256
"""Threads of a block whose lines are its own, but for long ones."""
_MOST_THREADS = 1024
_KEEP = 4
"""Neighbouring elements that a thread takes at a time."""
_TEAM_THREADS, _TEAM_BLOCKS, _TEAM_KEEP = 512, 2, 8
"""Threads of a block that shares a line, such blocks on a multiprocessor, and elements of their threads."""
_WORD_BYTES = 8
"""Bytes in which a block leaves the sum of its slice."""


@dataclass(frozen=True, slots=True)
class Span:
    """A line by `span` threads of blocks of `threads`, `keep` elements each at a time; by `team` blocks, of
    which a multiprocessor runs `resident`."""

    threads: int
    span: int
    keep: int = _KEEP
    team: int = 1
    resident: int = 1


def _lines(query: Query) -> tuple[int, int]:
    """How many lines there are, and how many elements each has."""
    nest = query.nest
    if nest.inner_reduced:
        return nest.group_count, nest.row_count * nest.inner.count
    return nest.group_count * nest.inner.count, nest.row_count


def _alone(query: Query) -> Estimate[Span]:
    """Each line, which lies beside others, by one thread: while it waits, many others read theirs."""
    _, elements = _lines(query)
    return Estimate(Span(_THREADS, 1), {"elements": elements * ELEMENT_STEP / SIDE_BY_SIDE})


def _along(query: Query, span: int) -> Estimate[Span]:
    """Each line by so many threads, or the part of a warp that it fills."""
    _, elements = _lines(query)
    part = min(span, 1 << (elements - 1).bit_length()) if span == 32 else span
    way = Span(max(span, _THREADS), part)
    return Estimate(way, {"elements": elements * ELEMENT_STEP / span, "meeting": thread_meeting(span)})


def _shared(query: Query) -> Estimate[Span] | Refusal:
    """Each line by as many blocks as keep the device busy."""
    lines, elements = _lines(query)
    blocks = query.machine.multiprocessors * _TEAM_BLOCKS
    step = _TEAM_THREADS * _TEAM_KEEP
    team = min(blocks // lines, elements // step)
    if team < 2:
        return Refusal(f"{lines} lines of {elements} elements; blocks that share one need {step} each")
    way = Span(_TEAM_THREADS, _TEAM_THREADS, _TEAM_KEEP, team, _TEAM_BLOCKS)
    return Estimate(
        way,
        {
            "elements": 2 * elements * ELEMENT_STEP / (_TEAM_THREADS * team),
            "meeting": thread_meeting(_TEAM_THREADS) + DEVICE_MEETING,
        },
    )


def _run(query: Query, way: Span) -> Launch:
    nest = query.nest
    lines, elements = _lines(query)
    columns = not nest.inner_reduced
    vector = 1 if columns else min(way.keep, nest.vector(query.alignments, whole_rows=True))
    units, step = elements // vector, way.span * way.keep // vector
    slice_units = -(-units // (way.team * step)) * step
    team = -(-units // slice_units)
    is_shared = team > 1
    constants = {
        "THREADS": way.threads,
        "BLOCKS": way.resident,
        "SPAN": way.span,
        "KEEP": way.keep,
        "TEAM": int(is_shared),
    }
    pattern = Pattern(
        Mode.SCAN,
        vector,
        columns,
        nest.wide(max(lines, units + step)),
        nest.loads,
        nest.stores,
        nest.kernel.values,
        tuple(constants.items()),
    )
    inner = nest.inner.count // vector
    words = Words(items=lines, units=units, inner=inner, tiles=inner, team=team, slice=slice_units)
    grid = lines * team if is_shared else -(-lines // (way.threads // way.span))
    return Launch(
        pattern,
        grid,
        way.threads,
        nest.given() | words.named(),
        cooperative=is_shared,
        counters_bytes=8 * lines if is_shared else 0,
        scratch_bytes=2 * _WORD_BYTES * grid if is_shared else 0,
    )


SHARED = Candidate("slices of a line by blocks that meet", _shared, _run)
LINES_ABREAST: Table = (Candidate("a thread for each line", _alone, _run), SHARED)
"""The ways to go along lines that lie side by side."""
LINES: Table = (
    Candidate("a warp for each line", partial(_along, span=32), _run),
    Candidate("a large block for each line", partial(_along, span=_MOST_THREADS), _run),
    Candidate("a block for each line", partial(_along, span=_THREADS), _run),
    SHARED,
)
"""The ways to go along the innermost loop."""
