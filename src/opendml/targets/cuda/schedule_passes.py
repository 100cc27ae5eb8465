"""The ways to launch kernels that reduce otherwise than normalizations do: how many threads share a group.

Elements are read from global memory in each pass, one at a time by a thread, neighbours by neighbouring
threads. The cost of a way is the time of one group, of which a device runs many at once. Where there are so
few that multiprocessors would be idle, blocks share groups, whichever way that is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.common.launch import power_of_two
from opendml.targets.common.passes import pass_count
from opendml.targets.cuda.costs import ELEMENT_STEP, SIDE_BY_SIDE, thread_meeting
from opendml.targets.cuda.launch import STATIC_SHARED_BYTES, CudaLaunch, CudaQuery, Table, UnitNest
from opendml.targets.cuda.parameters import launch_words
from opendml.targets.cuda.pattern import CudaMode

_THREADS = 256
_MOST_THREADS = 1024
"""Greatest number of threads of a block."""
_WINDOW = 64
"""Greatest number of elements of a group that a thread takes alone, where groups lie side by side."""
_MANY_GROUPS = 512
"""Least number of groups for each multiprocessor where each has one thread."""
_LEAST_SHARED = 32
"""Least number of elements of a group that two threads share, where one would do."""
_NEAR = 4
"""Greatest distance, in elements, of what neighbouring groups read, where those are windows."""
_FILLING = 2048
"""Threads that fill a multiprocessor."""
_LEAST_UNITS = 16
"""Least number of units of a thread whose block shares a group."""


@dataclass(frozen=True, slots=True)
class Threads:
    """Blocks of so many threads, each `span` of which share a group; each group by `team` blocks."""

    threads: int
    span: int
    team: int


@dataclass(frozen=True, slots=True)
class _Groups:
    """The groups of a nest: how many, and of how many elements each."""

    columns: bool
    count: int
    units: int


def _groups(nest: UnitNest) -> _Groups:
    columns = not nest.inner_reduced
    inner = nest.inner.count
    units = nest.row_count * (1 if columns else inner)
    return _Groups(columns, nest.group_count * (inner if columns else 1), units)


def _shared_by(query: CudaQuery, threads: int, span: int) -> Threads:
    """The way with as many blocks to a group as keep the device busy, if one pass of each is all."""
    nest, team = query.nest, 1
    groups = _groups(nest)
    if nest.readings == 1:
        blocks = -(-groups.count // (threads // span))
        wanted = query.machine.multiprocessors * (_FILLING // threads) // blocks
        team = max(1, min(wanted, groups.units // (span * _LEAST_UNITS)))
    return Threads(threads, span, team)


def _alone(query: CudaQuery) -> Estimate[Threads] | Refusal:
    """Each group, which lies beside others, by one thread or two."""
    groups = _groups(query.nest)
    if groups.units > _WINDOW:
        return Refusal(f"groups of {groups.units} elements; at most {_WINDOW}")
    least = query.machine.multiprocessors * _MANY_GROUPS
    if groups.count < least:
        return Refusal(f"{groups.count} groups; at least {least}")
    # Where so many threads do not fill the device, two share a group, if each has many elements left.
    is_shared = groups.count < query.machine.multiprocessors * _FILLING and groups.units >= _LEAST_SHARED
    way = Threads(_THREADS, 2 if is_shared else 1, 1)
    # While it waits for its elements, many others read theirs.
    return Estimate(way, {"elements": query.nest.readings * groups.units * ELEMENT_STEP / SIDE_BY_SIDE})


def _abreast(query: CudaQuery) -> Estimate[Threads]:
    """Each group, which lies beside others, by a few threads of a block."""
    units = _groups(query.nest).units
    way = _shared_by(query, _THREADS, min(SIDE_BY_SIDE, power_of_two(units)))
    elements = query.nest.readings * units * ELEMENT_STEP / way.span
    return Estimate(way, {"elements": elements, "meeting": thread_meeting(32)})


def _along(query: CudaQuery, span: int) -> Estimate[Threads] | Refusal:
    """Each group by so many threads, or the part of a warp that it fills."""
    units = _groups(query.nest).units
    room = span * query.nest.state_bytes
    if span > _THREADS and room > STATIC_SHARED_BYTES:
        return Refusal(f"states of {span} threads take {room} bytes; at most {STATIC_SHARED_BYTES}")
    part = min(span, power_of_two(units)) if span == 32 else span
    way = _shared_by(query, max(span, _THREADS), part)
    return Estimate(way, {"elements": units * ELEMENT_STEP / span, "meeting": thread_meeting(span)})


def _run(query: CudaQuery, way: Threads) -> CudaLaunch:
    nest = query.nest
    groups = _groups(nest)
    together = way.threads // way.span
    blocks = -(-groups.count // together)
    slice_units = -(-groups.units // way.team)
    team = -(-groups.units // slice_units)
    constants = {
        "THREADS": way.threads,
        "SPAN": way.span,
        "STAGES": pass_count(nest.kernel.values),
        "HAS_ELEMENTS": int(nest.has_elements),
        "TEAM": int(team > 1),
    }
    pattern = nest.pattern(
        CudaMode.REDUCE, max(groups.count, groups.units), constants, columns=groups.columns
    )
    inner = nest.inner.count
    words = launch_words(
        pattern.mode,
        items=groups.count,
        units=groups.units,
        rows=nest.row_count,
        columns=0,
        elements=groups.units,
        row_length=inner,
        column_tiles=inner,
        team=team,
        slice_units=slice_units,
    )
    return CudaLaunch(
        pattern,
        blocks * team,
        way.threads,
        nest.given() | words,
        counters_bytes=4 * blocks if team > 1 else 0,
        scratch_bytes=blocks * team * together * nest.state_bytes if team > 1 else 0,
    )


def windows_abreast(nest: UnitNest) -> UnitNest:
    """The nest with a loop over groups innermost along which results are neighbours, if groups are small and
    what neighbours read lies close together.
    """
    if not nest.inner_reduced or nest.row_count * nest.inner.count > _WINDOW:
        return nest
    first = len(nest.loads)
    for loop in nest.groups:
        loads = zip(loop.strides, nest.kernel.loads, strict=False)
        near = all(load.buffer is None or abs(step) <= _NEAR * load.type.bytes for step, load in loads)
        stores = zip(loop.strides[first:], nest.stores, strict=True)
        if near and all(step == store.type.bytes for step, store in stores):
            groups = tuple(other for other in nest.groups if other is not loop)
            return UnitNest(groups, (*nest.rows, nest.inner), loop, False, nest.kernel)
    return nest


ABREAST: Table = (
    Candidate("a thread for each group", _alone, _run),
    Candidate("few threads for each group", _abreast, _run),
)
"""The ways to reduce groups that lie side by side."""
ALONG: Table = (
    Candidate("a warp for each group", partial(_along, span=32), _run),
    Candidate("a large block for each group", partial(_along, span=_MOST_THREADS), _run),
    Candidate("a block for each group", partial(_along, span=_THREADS), _run),
)
"""The ways to reduce along the innermost loop."""
