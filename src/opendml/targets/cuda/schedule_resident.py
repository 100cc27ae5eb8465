"""The way to launch reductions whose groups fit the registers of a warp or a block: in units, read once,
whatever the reductions and however many passes they need.

As few threads hold a group as can, if all groups together fill the device; the cost of the way is the time of
one group, as in `schedule_passes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.common.launch import power_of_two, power_of_two_within
from opendml.targets.common.passes import pass_count
from opendml.targets.cuda.groups import HELD_REGISTERS, Groups, in_passes
from opendml.targets.cuda.launch import STATIC_SHARED_BYTES, VECTOR_BYTES, CudaLaunch, CudaQuery
from opendml.targets.cuda.pattern import CudaMode

_THREADS = 256
"""Threads of a block in which warps, or parts of them, have groups of their own."""
_MOST_THREADS, _LARGE_BLOCKS = 512, 2
"""Greatest number of threads of a block, and such blocks on a multiprocessor, so that one reads while the
other sums up: their threads have 64 registers."""
_USUAL_UNITS = 8
"""Units that a thread holds at most, where threads suffice."""
_STEP, _MEETING = 10.0, 10.0
"""Cycles of a unit, whose load is under way with the others, and of each doubling of the threads that put
their states together."""
_NEIGHBOURS = 16
"""Bytes that the threads of a group read side by side, at least."""
_FILLING, _FILLING_COLUMNS = 2048, 512
"""Threads that fill a multiprocessor, and of those that have several groups each."""
_WORD_BYTES = 4
"""Bytes of the least elements that threads read one by one as fast."""


@dataclass(frozen=True, slots=True)
class Resident:
    """Each group by `span` threads, `keep` units each, of blocks of `threads`; `across` threads lie side by
    side."""

    groups: Groups
    threads: int
    span: int
    across: int
    keep: int


def _in_registers(query: CudaQuery) -> Estimate[Resident] | Refusal:
    nest = query.nest
    groups = in_passes(query)
    if isinstance(groups, Refusal):
        return groups
    if groups.columns and nest.readings == 1 and groups.vector * _WORD_BYTES <= VECTOR_BYTES:
        return Refusal("one pass over groups side by side is all")
    ways = list(_columns(groups) if groups.columns else _rows(groups))
    ways = [way for way in ways if way.keep <= _USUAL_UNITS] or ways
    if not ways:
        return Refusal(f"groups of {groups.units} units, {groups.registers} registers each")
    filling = groups.machine.multiprocessors * (_FILLING_COLUMNS if groups.columns else _FILLING)
    way = next((way for way in ways if _items(groups) * way.span >= filling), ways[-1])
    meeting = _MEETING * (way.span * way.across).bit_length()
    return Estimate(way, {"elements": way.keep * _STEP, "meeting": meeting})


def _rows(groups: Groups) -> Iterator[Resident]:
    """Each group by threads that follow each other: up to a warp, or by a block, several units each."""
    span = min(power_of_two_within(_NEIGHBOURS // groups.unit_bytes), power_of_two(groups.units))
    while span < 2 * groups.units and span <= max(32, min(_MOST_THREADS, groups.units // 2)):
        keep = -(-groups.units // span)
        if keep * groups.registers <= HELD_REGISTERS:
            yield Resident(groups, _THREADS if span <= 32 else span, span, 1, keep)
        span *= 2


def _columns(groups: Groups) -> Iterator[Resident]:
    """Groups side by side in a block, a power of two of units."""
    across = min(32, power_of_two_within(groups.across))
    threads = 32
    while threads == 32 or threads <= min(_MOST_THREADS, across * groups.units // 2):
        span = threads // across
        keep = -(-groups.units // span)
        room = threads // 32 * across * groups.vector * groups.nest.state_bytes
        if keep * groups.registers <= HELD_REGISTERS and room <= STATIC_SHARED_BYTES:
            yield Resident(groups, threads, span, across, keep)
        threads *= 2


def _run(query: CudaQuery, way: Resident) -> CudaLaunch:
    groups, nest = way.groups, way.groups.nest
    items = _items(groups)
    together = way.threads // way.span
    constants = {
        "THREADS": way.threads,
        "BLOCKS": _LARGE_BLOCKS if way.threads == _MOST_THREADS else 1,
        "SPAN": way.span,
        "TX": way.across,
        "KEEP": way.keep,
        "STAGES": pass_count(nest.kernel.values),
        "HAS_ELEMENTS": int(nest.has_elements),
    }
    pattern = nest.pattern(
        CudaMode.RESIDENT,
        max(items + together, groups.units + way.span * way.keep),
        constants,
        vector=groups.vector,
        columns=groups.columns,
    )
    inner = groups.inner_units
    words = groups.words(pattern.mode, items=items, column_tiles=inner)
    grid = -(-items // together)
    return CudaLaunch(pattern, grid, way.threads, nest.given() | words)


def _items(groups: Groups) -> int:
    """Groups, or units of groups side by side."""
    return groups.nest.group_count * (groups.row_units if groups.columns else 1)


RESIDENT = Candidate("groups in registers", _in_registers, _run)
"""The way to reduce groups that the registers of a warp or a block hold."""
