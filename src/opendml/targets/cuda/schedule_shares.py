"""The ways to launch reductions of several passes where each block has a share of a group, in units: kept in
shared memory, so that memory is read once, or read in each pass.

The cost of a way is the time of one group, as in `schedule_passes`. Where there are so few that
multiprocessors would be idle, or one block cannot keep a group, blocks share groups and meet in global
memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.common.passes import pass_count
from opendml.targets.cuda.costs import DEVICE_MEETING, ELEMENT_STEP, thread_meeting
from opendml.targets.cuda.groups import Groups, in_passes
from opendml.targets.cuda.launch import CudaLaunch, CudaQuery, Table
from opendml.targets.cuda.pattern import CudaMode

_THREADS = 1024
"""Threads that a multiprocessor runs at a time, of all blocks together: each has 64 registers."""
_RESERVED_BYTES = 1024
"""Bytes of shared memory that the system takes for itself in each block."""
_LEAST_UNITS = 4
"""Least number of units of a thread whose block shares a group for no other reason than to be faster."""
_READ_AGAIN = 1.5
"""Times as long as to keep the elements it takes to read them in each pass, some of them from the cache."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Groups by so many blocks each, of so many threads, of which a multiprocessor runs `resident`; a thread
    has up to `keep` units."""

    groups: Groups
    threads: int
    resident: int
    team: int
    keep: int


def _shares(query: CudaQuery, threads: int, held: bool) -> Estimate[Shares] | Refusal:
    nest = query.nest
    if nest.readings == 1:
        return Refusal("one pass over the elements is all")
    groups = in_passes(query)
    if isinstance(groups, Refusal):
        return groups
    resident = _THREADS // threads
    blocks = resident * query.machine.multiprocessors
    team = max(1, min(blocks // groups.nest.group_count, groups.units // (threads * _LEAST_UNITS)))
    if held:
        if not groups.copyable:
            return Refusal("what is reduced is of several sizes or less than 4 bytes in a unit, or a counter")
        room = (
            query.machine.shared_bytes // resident - _RESERVED_BYTES - groups.nest.state_bytes * threads // 32
        )
        most = room // (threads * groups.unit_bytes)
        team = max(team, -(-groups.units // (max(1, most) * threads)))
        if most < 1 or team > blocks:
            return Refusal(
                f"groups of {groups.units * groups.unit_bytes} bytes; {blocks} blocks keep {room} each"
            )
    keep = -(-groups.units // (team * threads))
    team = -(-groups.units // (keep * threads))
    # A unit is loaded in the time in which two of its elements are taken in.
    step = ELEMENT_STEP * max(1, groups.vector / 2) * (1 if held else _READ_AGAIN)
    terms = {
        "elements": keep * step,
        "meeting": thread_meeting(threads) + (DEVICE_MEETING if team > 1 else 0),
    }
    return Estimate(Shares(groups, threads, resident, team, keep), terms)


def _run(query: CudaQuery, way: Shares, held: bool) -> CudaLaunch:
    groups, nest = way.groups, way.groups.nest
    items, slice_units = nest.group_count, way.keep * way.threads
    is_shared = way.team > 1
    teams = min(way.resident * query.machine.multiprocessors // way.team, items) if is_shared else items
    constants: Mapping[str, int] = {
        "THREADS": way.threads,
        "BLOCKS": way.resident,
        "STAGES": pass_count(nest.kernel.values),
        "HAS_ELEMENTS": int(nest.has_elements),
        "TEAM": int(is_shared),
        "HELD": int(held),
        "UNIT_BYTES": groups.unit_bytes,
        "STATE_BYTES": nest.state_bytes,
    }
    grid = teams * way.team
    pattern = nest.pattern(
        CudaMode.PASSES, max(items + teams, groups.units + slice_units, grid), constants, vector=groups.vector
    )
    words = groups.words(pattern.mode, items=items, team=way.team, slice_units=slice_units)
    return CudaLaunch(
        pattern,
        grid,
        way.threads,
        nest.given() | words,
        shared_bytes=slice_units * groups.unit_bytes if held else 0,
        cooperative=is_shared,
        counters_bytes=8 * teams if is_shared else 0,
        scratch_bytes=2 * grid * nest.state_bytes if is_shared else 0,
    )


def _way(name: str, threads: int, held: bool) -> Candidate[CudaQuery, Shares, CudaLaunch]:
    return Candidate(name, partial(_shares, threads=threads, held=held), partial(_run, held=held))


SHARES: Table = (
    _way("shares kept by small blocks", 256, True),
    _way("shares kept by large blocks", 512, True),
    _way("shares read in each pass", 512, False),
)
"""The ways to reduce along the innermost loop with shares of groups."""
