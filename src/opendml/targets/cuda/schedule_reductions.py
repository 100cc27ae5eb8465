"""The ways to launch reductions: which threads share a group, and where they keep its elements.

A choice is a `Sharing`; all ways run the same code, kernels/reduction.cuh. The cost of a way is the time in
which memory is read, and the latency of one group.

Blocks that share a group meet in global memory. Clusters of blocks that add up through distributed shared
memory were slower for every group of 200 KB and more (0.67 to 0.78 of a copy's speed; teams 0.75 to 0.87;
H200), since a cluster starts only when all of its blocks fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from opendml.compiler.kernel import operations_of
from opendml.late_dataclass import dataclass
from opendml.program.node import REDUCTIONS, Operation, ordered
from opendml.program.sizes import least
from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.common.guards import guards_of
from opendml.targets.common.launch import power_of_two, power_of_two_within
from opendml.targets.common.passes import pass_count
from opendml.targets.common.pattern import Step
from opendml.targets.cuda.costs import DEVICE_MEETING, ELEMENT_STEP, SIDE_BY_SIDE, read_by, thread_meeting
from opendml.targets.cuda.launch import (
    STATIC_SHARED_BYTES,
    CudaLaunch,
    CudaQuery,
    Table,
    UnitNest,
    check_fit,
)
from opendml.targets.cuda.parameters import launch_words
from opendml.targets.cuda.pattern import CudaMode
from opendml.targets.cuda.source import LEAST_COPY_BYTES

_THREADS = 256
"""Threads of a block that has several groups."""
_MOST_THREADS = 1024
"""Greatest number of threads of a block."""
_FILLING = 2048
"""Threads that fill a multiprocessor."""

_REGISTER_THREADS, _REGISTER_BLOCKS = 512, 2
"""Greatest number of threads of a block that keeps units in registers, and such blocks on a multiprocessor:
one reads while the other sums up, and their threads have 64 registers each."""
_REGISTERS = 32
"""Registers, of 4 bytes, in which a thread keeps elements."""
_USUAL_UNITS = 8
"""Units that a thread keeps in registers if threads suffice."""
_UNIT_STEP, _MERGE_STEP = 10.0, 10.0
"""Cycles of a unit whose load is under way with the others, and of each doubling of the threads that merge
their states (H200)."""
_NEIGHBOURS, _NARROW_ELEMENTS = 4, 4
"""Threads that share a group and follow each other, at least, and elements of FLOAT16 that each reads one by
one, at least. With one thread for each row of 112 bytes, a normalization took 3.5 times as long as with four.
Rows of 7 elements of FLOAT16 took 0.62 of the time with two threads (H100)."""
_LEAST_THREADS = 64
"""Least threads of a block that has several groups, if there are few groups. In small blocks, 128 rows of 768
elements took 0.95 of the time, and 197 rows 0.87 (H100)."""
_COLUMN_LANES = 4
"""Greatest number of groups side by side that a thread has, since it keeps a state of each in registers."""
_WORD_BYTES = 4
"""Bytes of the smallest elements that threads read one by one as fast as in units."""
_FILLING_COLUMNS = 512
"""Threads that fill a multiprocessor if each has several groups."""
_NARROW_FACTOR = 1.1
"""Time to read elements of FLOAT16 one by one over the time to read them in units (H100)."""
_WHOLE_ROW = 64
"""Units of a row, at most, of which a block takes whole rows. Neighbouring rows are then one run in memory,
as for images of 7 x 7."""
_COLUMN_BYTES, _MOST_COLUMN_BYTES, _TILE_BYTES = 64, 256, 8192
"""Bytes that groups side by side in a block have in each row, at least and at most. The third number bounds
the bytes of all rows together, unless a row has the least."""

_SHARED_THREADS = 1024
"""Threads on a multiprocessor, of all blocks together, whose units are in shared memory: each has 64
registers."""
_RESERVED_BYTES = 1024
"""Bytes of shared memory that the system takes in each block (CUDA programming guide, compute capability
8.0 and later)."""
_MEETING, _ARRIVAL = 1500, 0.9
"""Cycles in which blocks of a team meet, and for each of them beyond one on each multiprocessor.

With these, teams of 264 large blocks are cheaper than those of 528 small ones. The small ones take 1.06 of
the time for 3 groups of 8.3 million elements (H100)."""
_LEAST_UNITS = 4
"""Least number of units of a thread whose block shares a group."""
_MOST_TEAMS = 8
"""Greatest number of teams of blocks that is considered, beside one for each group."""
_READ_AGAIN = 0.6
"""Time to read an element in a further pass over the time of the first; the L2 cache has some (H200)."""

_WINDOW = 64
"""Greatest number of elements of a group that one or two threads reduce, if groups lie side by side."""
_UNITS_FACTOR = 0.5
"""Time of a thread for each unit of products, over that of a thread for each sum, at most. For depthwise
windows of 7 x 7 over 32 images it is 0.31 to 0.67 on an H100."""
_MANY_GROUPS = 512
"""Least number of groups for each multiprocessor if each has one thread."""
_LEAST_HALVED = 32
"""Least number of elements of a group that two threads share instead of one."""
_NEAR = 4
"""Greatest distance, in elements, of what neighbouring windows read."""
_LEAST_ELEMENTS = 16
"""Least number of elements of a thread whose block shares a group that is read once."""
_LOADED, _LOADING = 4, 750
"""States of other blocks that a thread loads at once, at most, and the cycles that it waits for them (H100).
Means of 12,544 pixels of 32 channels by 392 blocks, of which 8 threads merge a channel, waited 49 times."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """A choice of threads that share the groups of a kernel, and of the memory that keeps elements.

    `span` of the `threads` of a block reduce a group, or a unit of groups side by side, of which each of
    `team` blocks has a slice. A thread keeps all units in `registers`, or at most `shared` units in shared
    memory. A unit has `vector` elements; units may run over the ends of rows (`runs_on`). A multiprocessor
    runs `resident` blocks.
    """

    runs_on: bool
    vector: int
    threads: int
    span: int
    registers: int = 0
    shared: int = 0
    resident: int = 1
    team: int = 1


class _Groups:
    """The groups of a nest in units of `vector` elements.

    `items` counts groups, or units of groups side by side (`columns`); `units` those of a group, or of the
    column below such a unit. A unit takes `unit_bytes`, and `registers` of 4 bytes.
    """

    def __init__(self, nest: UnitNest, vector: int) -> None:
        self.nest, self.vector, self.columns = nest, vector, not nest.inner_reduced
        self.row_units = nest.inner.count // (1 if nest.runs_on else vector)
        if self.columns:
            self.units, self.items = nest.row_count, nest.group_count * self.row_units
        else:
            self.units, self.items = nest.row_count * nest.inner.count // vector, nest.group_count
        self.lanes = vector if self.columns else 1
        loads = [nest.accesses[number] for number in nest.collective_loads]
        moved = [each.unit_bytes(vector) for each in loads]
        self.unit_bytes = max(1, sum(moved))
        self.registers = max(1, sum(-(-bytes // 4) for bytes in moved))
        contiguous = (Step.CONTIGUOUS, Step.FLAT)
        plain = all(each.step in contiguous and not each.guarded and not each.counter for each in loads)
        alike = len(set(moved)) == 1
        self.is_keepable = plain and alike and (self.columns or moved[0] >= LEAST_COPY_BYTES)
        """True if units can be kept in shared memory as they are. Those of groups side by side may be smaller
        than what hardware copies."""

    @property
    def bytes(self) -> int:
        """Bytes of all elements that are reduced."""
        return self.items * self.units * self.unit_bytes

    @property
    def across(self) -> int:
        """Threads side by side in a block."""
        if not self.columns:
            return 1
        if 32 < self.row_units <= _WHOLE_ROW:
            return self.row_units
        across = power_of_two_within(_COLUMN_BYTES // self.unit_bytes)
        most = min(_MOST_COLUMN_BYTES, _TILE_BYTES // self.units) // self.unit_bytes
        return min(32, max(across, power_of_two_within(most)), power_of_two(self.row_units))

    def state_bytes(self, threads: int) -> int:
        """Return the bytes of shared memory in which threads of a block leave their states, at most."""
        parts = -(-threads // max(32, self.across))
        return parts * max(1, self.across) * self.lanes * self.nest.state_bytes


def _in_widest_units(query: CudaQuery) -> _Groups | Refusal:
    """Return the groups in the widest units that memory allows, if units can be kept between passes."""
    nest = query.nest
    guards = [operand for each in guards_of(nest.kernel.values).values() for operand in each]
    if any(node.operation in REDUCTIONS for node in ordered(guards)):
        return Refusal("a reduction says what is read")
    if nest.readings == 1 and (
        guards or any(a.step is Step.STRIDED and not a.counter for a in nest.accesses)
    ):
        return Refusal("elements that do not follow each other are read once")
    forms = [form for form in (nest.flat() if nest.inner_reduced else None, nest) if form is not None]
    vectors = [form.vector(query.alignments, whole_rows=True) for form in forms]
    vector, form = max(zip(vectors, forms, strict=True), key=lambda each: each[0])
    return _Groups(form, vector if nest.inner_reduced else min(vector, _COLUMN_LANES))


# Groups in registers


def _in_registers(query: CudaQuery) -> Estimate[Sharing] | Refusal:
    groups = _in_widest_units(query)
    if isinstance(groups, Refusal):
        return groups
    if groups.columns and query.nest.readings == 1:
        return Refusal("one pass over groups side by side is all")
    ways = list(_columns_in_registers(groups) if groups.columns else _rows_in_registers(groups))
    usual = [way for way in ways if way.registers <= _USUAL_UNITS]
    # With many single elements of several rows, an H100 takes 1.2 of the time (FLOAT16: 1.36) of blocks that
    # keep them in shared memory, or read them twice.
    finds_rows = groups.vector == 1 and query.nest.row_count > 1 and not groups.columns
    ways = usual if usual or finds_rows else ways
    if not ways:
        return Refusal(f"groups of {groups.units} units, {groups.registers} registers each")
    # As few threads share a group as can, if all groups together fill the device.
    filling = query.machine.cores * (_FILLING_COLUMNS if groups.columns else _FILLING)
    way = next((way for way in ways if groups.items * way.span >= filling), ways[-1])
    threads = way.threads
    while threads > max(way.span, _LEAST_THREADS) and groups.items * way.span < query.machine.cores * threads:
        threads //= 2
    if not groups.columns:
        way = replace(way, threads=threads)
    blocks = -(-groups.items * way.span // way.threads)
    terms = {
        "memory": read_by(query.machine, groups.bytes, blocks),
        "elements": way.registers * _UNIT_STEP,
        "meeting": _MERGE_STEP * (way.threads if groups.columns else way.span).bit_length(),
    }
    return Estimate(way, terms)


def _rows_in_registers(groups: _Groups) -> Iterator[Sharing]:
    """Yield ways in which threads that follow each other share a group: up to a warp, or a block.

    Threads of a block have two units each, unless their registers cannot hold these.
    """
    least = _NARROW_ELEMENTS if groups.unit_bytes < _WORD_BYTES else 1
    span, found = min(_NEIGHBOURS, power_of_two(-(-groups.units // least))), False
    while span < 2 * groups.units and span <= _REGISTER_THREADS:
        if span > 32 and found and span > groups.units // 2:
            return
        for way in _kept_in_registers(groups, _THREADS if span <= 32 else span, span):
            found = True
            yield way
        span *= 2


def _columns_in_registers(groups: _Groups) -> Iterator[Sharing]:
    """Yield ways in which blocks of growing size have groups side by side."""
    span = max(1, 32 // groups.across)
    while span * groups.across <= max(32, min(_REGISTER_THREADS, groups.across * groups.units // 2)):
        threads = span * groups.across
        if groups.state_bytes(threads) <= STATIC_SHARED_BYTES:
            yield from _kept_in_registers(groups, threads, span)
        span *= 2


def _kept_in_registers(groups: _Groups, threads: int, span: int) -> Iterator[Sharing]:
    keep = -(-groups.units // span)
    # The states of several groups leave less of the 64 registers of the threads of the largest blocks.
    is_large = threads > _REGISTER_THREADS // 2
    most = _REGISTERS // 2 if groups.lanes > 1 and is_large else _REGISTERS
    if keep * groups.registers <= most:
        resident = _REGISTER_BLOCKS if is_large else 1
        yield Sharing(groups.nest.runs_on, groups.vector, threads, span, registers=keep, resident=resident)


# Groups in shared memory


def _in_shared_memory(query: CudaQuery, threads: int) -> Estimate[Sharing] | Refusal:
    """Estimate blocks that keep what fits into shared memory, each with a group or a slice of one."""
    if query.nest.readings == 1:
        return Refusal("one pass over the elements is all")
    groups = _in_widest_units(query)
    if isinstance(groups, Refusal):
        return groups
    resident, span = _SHARED_THREADS // threads, threads // groups.across
    threads = span * groups.across
    blocks = resident * query.machine.cores
    tiles = -(-groups.items // groups.across)
    free_bytes = query.machine.shared_bytes // resident - _RESERVED_BYTES - groups.state_bytes(threads)
    shared = max(0, free_bytes // (threads * groups.unit_bytes)) if groups.is_keepable else 0
    # As few blocks as keep a group, or as many as are there for each or for a few groups at a time.
    most = max(1, min(blocks, groups.units // (span * _LEAST_UNITS)))
    teams = {1, *(max(1, min(blocks // count, most)) for count in (tiles, *range(1, _MOST_TEAMS + 1)))}
    teams.add(min(most, -(-groups.units // (span * max(1, shared)))))
    ways = []
    for team in sorted(teams):
        kept = min(shared, -(-groups.units // (team * span)))
        way = Sharing(groups.nest.runs_on, groups.vector, threads, span, 0, kept, resident, team)
        ways.append(_estimate(query, groups, way))
    return min(ways, key=lambda way: way.cycles)


def _estimate(query: CudaQuery, groups: _Groups, way: Sharing) -> Estimate[Sharing]:
    machine, nest = query.machine, query.nest
    tiles, blocks = -(-groups.items // groups.across), way.resident * machine.cores
    keep = -(-groups.units // (way.team * way.span))
    again = (nest.readings - 1) * _READ_AGAIN * max(0.0, 1 - way.shared / keep)
    meeting = thread_meeting(way.threads)
    used = min(blocks, tiles)
    idle = 1.0
    if way.team > 1:
        teams = min(blocks // way.team, tiles)
        rounds = -(-tiles // teams)
        device_meeting = _MEETING + _ARRIVAL * max(0, way.team - machine.cores)
        meeting += rounds * pass_count(nest.kernel.values) * device_meeting
        used = teams * way.team
        idle = rounds * teams / tiles
    terms = {
        "memory": read_by(machine, groups.bytes * (1 + again) * idle, used),
        "elements": keep * ELEMENT_STEP * max(1, groups.vector / 2),
        "meeting": meeting,
    }
    return Estimate(way, terms)


# Groups that are read in each pass


def _reading(
    query: CudaQuery, groups: _Groups, threads: int, span: int, elements: float, meeting: float
) -> Estimate[Sharing]:
    """Estimate threads that keep no units, for cycles of the latencies of a group.

    If one pass of each group is all, several blocks may share it where multiprocessors would be idle.
    """
    nest, teams = query.nest, {1}
    blocks = -(-groups.items * span // threads)
    if nest.readings == 1:
        wanted = max(1, query.machine.cores * (_FILLING // threads) // blocks)
        own = max(-(-_LEAST_ELEMENTS // groups.vector), -(-groups.units // (wanted * span)))
        most = -(-groups.units // (own * span))
        teams.add(most)
        if most > _LOADED * span:
            teams.update(-(-groups.units // (own * times * span)) for times in (2, 4, 8))
    again = (nest.readings - 1) * _READ_AGAIN
    ways = []
    for team in sorted(teams):
        terms = {
            "memory": read_by(query.machine, groups.bytes * (1 + again), blocks * team),
            "elements": elements / team,
            "meeting": meeting + (_exchange(team, threads, span) if team > 1 else 0),
        }
        ways.append(Estimate(Sharing(groups.nest.runs_on, groups.vector, threads, span, team=team), terms))
    return min(ways, key=lambda way: way.cycles)


def _exchange(team: int, threads: int, span: int) -> float:
    """Return the cycles until `span` threads of a block have merged what blocks of a team have summed up."""
    return 2 * DEVICE_MEETING * (1 + threads / 512) + _LOADING * ((team - 1) // (_LOADED * span))


def _alone(query: CudaQuery) -> Estimate[Sharing] | Refusal:
    """Estimate one thread or two for each group, which lies beside others."""
    groups = _Groups(query.nest, 1)
    if not groups.columns:
        return Refusal("groups do not lie side by side")
    if groups.units > _WINDOW:
        return Refusal(f"groups of {groups.units} elements; at most {_WINDOW}")
    least = query.machine.cores * _MANY_GROUPS
    if groups.items < least:
        return Refusal(f"{groups.items} groups; at least {least}")
    # Two threads share a group if one does not fill the device and each has many elements left.
    is_shared = groups.items < query.machine.cores * _FILLING and groups.units >= _LEAST_HALVED
    # While a thread waits for its elements, many others read theirs.
    elements = query.nest.readings * groups.units * ELEMENT_STEP / SIDE_BY_SIDE
    found = _reading(query, groups, _THREADS, 2 if is_shared else 1, elements, 0.0)
    factor = _NARROW_FACTOR if groups.unit_bytes < _WORD_BYTES else 1.0
    return replace(found, terms={**found.terms, "memory": factor * found.terms["memory"]})


def _units_alone(query: CudaQuery) -> Estimate[Sharing] | Refusal:
    """Estimate a thread for each unit of sums of products that lie side by side, such as those along a line
    of a packed depthwise convolution."""
    alone, nest = _alone(query), query.nest
    if isinstance(alone, Refusal):
        return alone
    vector = nest.vector(query.alignments, whole_rows=True)
    if Operation.CONTRACTION not in operations_of(nest.kernel.values) or nest.readings > 1 or vector == 1:
        return Refusal("no sums of products in units")
    if any(a.step is Step.STRIDED and not a.counter and not a.guarded for a in nest.accesses):
        return Refusal("neighbours do not lie side by side")
    groups = _Groups(nest, vector)
    if groups.items < query.machine.cores * _MANY_GROUPS // _COLUMN_LANES:
        return Refusal(f"{groups.items} units of groups")
    way = Sharing(nest.runs_on, vector, _THREADS, 1)
    return Estimate(way, {name: cycles * _UNITS_FACTOR for name, cycles in alone.terms.items()})


def _side_by_side(query: CudaQuery) -> Estimate[Sharing] | Refusal:
    """Estimate a few threads for each group, or for each unit of narrow elements side by side."""
    widest, groups = _in_widest_units(query), _Groups(query.nest, 1)
    if not groups.columns:
        return Refusal("groups do not lie side by side")
    if not isinstance(widest, Refusal) and widest.unit_bytes < _WORD_BYTES * widest.vector:
        groups = widest
    # Blocks of fewer groups than usual have more threads for each.
    span = min(max(SIDE_BY_SIDE, _THREADS // power_of_two(groups.items)), power_of_two(groups.units))
    elements = query.nest.readings * groups.units * max(1, groups.lanes / 2) * ELEMENT_STEP / span
    return _reading(query, groups, _THREADS, span, elements, thread_meeting(max(32, span)))


def _along(query: CudaQuery, span: int) -> Estimate[Sharing] | Refusal:
    """Estimate threads for each group that follow each other, or the part of a warp that it fills."""
    widest = _in_widest_units(query)
    groups = _Groups(query.nest, 1) if isinstance(widest, Refusal) else widest
    if groups.columns:
        return Refusal("groups lie side by side")
    part = min(span, power_of_two(groups.units)) if span == 32 else span
    elements = groups.units * groups.vector * ELEMENT_STEP / span
    return _reading(query, groups, max(span, _THREADS), part, elements, thread_meeting(span))


# The launch


def _launch(query: CudaQuery, way: Sharing) -> CudaLaunch:
    nest = query.nest.flat() if way.runs_on else query.nest
    if nest is None:
        raise ValueError(f"rows of {query.kernel} do not follow each other")
    groups = _Groups(nest, way.vector)
    stages, has_elements = pass_count(nest.kernel.values), nest.has_elements
    together = way.threads // way.span
    tiles = -(-groups.items // together)
    own = -(-groups.units // (way.team * way.span))
    check_fit(query, nest.fits(way.vector, query.alignments, whole_rows=True))
    check_fit(query, not way.registers or own <= way.registers)
    slice_units = own * way.span
    team = -(-groups.units // slice_units) if way.team > 1 else 1
    ends = stages == 1 and not has_elements
    meets = team > 1 and not ends
    teams = least(way.resident * query.machine.cores // team, tiles) if meets else tiles
    grid = teams * team
    constants = {
        "THREADS": way.threads,
        "BLOCKS": way.resident,
        "SPAN": way.span,
        "REGISTER_UNITS": way.registers,
        "SHARED_UNITS": way.shared,
        "REREADS": int(not way.registers and own > way.shared),
        "TEAM": int(team > 1),
        "STAGES": stages,
        "HAS_ELEMENTS": int(has_elements),
        "UNIT_BYTES": groups.unit_bytes,
        "STATE_BYTES": nest.state_bytes,
    }
    greatest = (tiles + teams) * together, groups.units + slice_units, grid
    pattern = nest.pattern(CudaMode.REDUCE, greatest, constants, vector=groups.vector, columns=groups.columns)
    words = launch_words(
        CudaMode.REDUCE,
        items=groups.items,
        units=groups.units,
        elements=groups.units if groups.columns else groups.units * groups.vector,
        rows=nest.row_count,
        slice_units=slice_units,
        team=team,
        row_length=groups.row_units,
        column_tiles=groups.row_units,
    )
    pages = 0 if team == 1 else 2 if meets else 1
    return CudaLaunch(
        pattern,
        grid,
        way.threads,
        nest.given() | words,
        shared_bytes=way.shared * way.threads * groups.unit_bytes,
        cooperative=meets,
        counters_bytes=8 * teams if team > 1 else 0,
        scratch_bytes=pages * grid * together * groups.lanes * nest.state_bytes,
    )


def windows_side_by_side(nest: UnitNest) -> UnitNest:
    """Return the nest with a loop over groups innermost along which results are neighbours, if groups are
    small and what neighbours read lies close together."""
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


REDUCE: Table = (
    Candidate("groups in registers", _in_registers, _launch),
    Candidate("groups in shared memory of small blocks", partial(_in_shared_memory, threads=256), _launch),
    Candidate("groups in shared memory of large blocks", partial(_in_shared_memory, threads=512), _launch),
    Candidate("a thread for each group", _alone, _launch),
    Candidate("a thread for each unit of groups", _units_alone, _launch),
    Candidate("few threads for each group", _side_by_side, _launch),
    Candidate("a warp for each group", partial(_along, span=32), _launch),
    Candidate("a large block for each group", partial(_along, span=_MOST_THREADS), _launch),
    Candidate("a block for each group", partial(_along, span=_THREADS), _launch),
)
"""The ways to run reductions."""
