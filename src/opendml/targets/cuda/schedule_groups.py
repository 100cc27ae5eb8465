"""The ways to launch normalizations: which threads hold a group, and how much of it each.

What fits the registers or the shared memory of a block, or of the whole device, is read once; of larger
groups a part stays in shared memory, and the rest is read twice, backwards the second time, as the L2 cache
holds what was read last.

Blocks that share a group meet in global memory. Thread-block clusters that add up through distributed shared
memory were slower for every group of 200 KB and more that was measured (0.67 to 0.78 of the copy; teams 0.75
to 0.87), since a cluster starts only when there is room for all of its blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.common.pattern import Step
from opendml.targets.cuda.costs import (
    BLOCK_MEETING,
    DEVICE_MEETING,
    SHARED_INSTRUCTIONS,
    UNIT_INSTRUCTIONS,
    instructions,
)
from opendml.targets.cuda.groups import HELD_REGISTERS, Groups
from opendml.targets.cuda.launch import VECTOR_BYTES, CudaLaunch, Table
from opendml.targets.cuda.pattern import CudaMode, Form

_THREADS = 256
"""Threads of a block whose groups are its own, and of one that shares a group with other blocks."""
_MOST_THREADS = 512
"""Greatest number of threads of a block."""
_WARP_UNITS = 256
"""Greatest number of units of a group that one warp holds."""
_STAGED_BYTES = 2048
"""Greatest group, in bytes, that goes through shared memory when it is not aligned to its units."""
_STAGED_UNITS = 32
"""Elements of a staged group that a thread has, about: all its threads compute what is the group's."""
_STAGE_ELEMENTS = 4 * 1024
"""Elements of staged groups that a block has in shared memory, about."""
_RESERVED_BYTES = 1024
"""Bytes of shared memory that the system takes for itself in each block."""
_WHOLE = (2, 512)
"""Blocks on a multiprocessor, and threads of each, where shared memory holds whole groups."""
_PARTS, _FEW_PARTS = (4, 256), (2, 512)
"""Blocks and threads where shared memory holds parts; few if it else held below _FEW_TEAMS groups."""
_FEW_TEAMS = 7
_PARTS_ABREAST = (3, 256)
"""Blocks and threads for parts of groups side by side, which take more registers."""
_FLAT_COLUMNS = (3, 256)
"""Blocks and threads where columns far from each other are folded."""
_LEAST_HELD_UNITS, _MOST_HELD_UNITS = 4, 32
"""Least and greatest number of units that a thread holds in shared memory."""
_TEAM_BLOCKS = 2
"""Blocks on a multiprocessor where groups are read twice."""
_MOST_TEAMS = 8
"""Greatest number of teams that is thought of where groups are read twice, but for groups of few blocks."""
_TEAM_UNITS = 2
"""Units that a thread loads at a time where groups are read twice."""
_MOST_IDLE = 1.125
"""Units of all threads for each unit of a group, at most, where threads have units of one row each."""
_LEAST_ROW_BYTES = 64
"""Bytes that the threads of a row read side by side, at least."""
_REGISTERS = 65536
"""Registers of a multiprocessor, of 4 bytes each."""
_LANE_REGISTERS = 4
"""Registers that a thread needs for each of its columns."""


_STAGED_INSTRUCTIONS = 0.25
"""Instructions for an element that is read from shared memory where it is staged; warps read it there for all
their threads."""
_READ_AGAIN = 1.0
"""How long what shared memory has no room for is read again; the L2 cache saves about a quarter of it, and
waiting for the team costs as much."""
_MOST_IN_ROOM = 64
"""Greatest number of units that a thread has in shared memory where groups are read twice."""


@dataclass(frozen=True, slots=True)
class Warps:
    """Each group by `span` threads of a warp, `keep` units each."""

    span: int
    keep: int


@dataclass(frozen=True, slots=True)
class Staged:
    """Each group by `span` threads, `keep` elements each, from shared memory, in which a block has `batch`
    groups at a time."""

    span: int
    keep: int
    batch: int


@dataclass(frozen=True, slots=True)
class Block:
    """The share of a tile: by `size` blocks of `threads` threads, `across` of them side by side, `keep`
    units each. A multiprocessor runs `resident` blocks.
    """

    size: int
    threads: int
    across: int
    keep: int
    resident: int
    room: int = 0
    """Units of each thread in shared memory, where the others are read twice."""
    row_threads: int = 0
    """Threads for each row of a group, where all rows have threads of their own."""
    full: int = 0
    """Units that each of these has, at least."""

    def constants(self) -> dict[str, int]:
        """The constants that the code of all blocks needs."""
        return {
            "THREADS": self.threads,
            "BLOCKS": self.resident,
            "TX": self.across,
            "KEEP": self.keep,
            "ROW_THREADS": self.row_threads,
            "FULL": self.full,
        }


@dataclass(frozen=True, slots=True)
class Teams:
    """So many teams of blocks, each for one tile at a time."""

    teams: int
    block: Block


# Groups by few threads


def _in_warps(groups: Groups) -> Estimate[Warps] | Refusal:
    if groups.columns:
        return Refusal("groups lie side by side")
    if groups.units > _WARP_UNITS:
        return Refusal(f"groups of {groups.units} units; at most {_WARP_UNITS}")
    registers = groups.registers * -(-groups.units // 32)
    if registers > HELD_REGISTERS:
        return Refusal(f"{registers} registers of each thread; at most {HELD_REGISTERS}")
    span = 1
    while span < 32 and span * 2 < groups.units:
        span *= 2
    way = Warps(span, -(-groups.units // span))
    return Estimate(way, {"memory": groups.reading(), "units": groups.loading()})


def _run_warps(groups: Groups, way: Warps) -> CudaLaunch:
    items = groups.nest.group_count
    constants = {"THREADS": _THREADS, "SPAN": way.span, "KEEP": way.keep}
    return _launch(
        groups, CudaMode.WARPS, constants, -(-items * way.span // _THREADS), _THREADS, {"items": items}
    )


def _staged(groups: Groups) -> Estimate[Staged] | Refusal:
    if groups.columns:
        return Refusal("groups lie side by side")
    if refusal := _not_stageable(groups):
        return refusal
    elements = groups.elements
    span = 1
    while span < 32 and span * _STAGED_UNITS < elements:
        span *= 2
    step = _THREADS // span
    batch = step * max(1, _STAGE_ELEMENTS // (step * elements))
    # Memory is read in whole units, shared memory element by element.
    instructions_of_all = UNIT_INSTRUCTIONS * groups.bytes / VECTOR_BYTES
    instructions_of_all += _STAGED_INSTRUCTIONS * groups.loads * groups.vector
    terms = {"memory": groups.reading(), "units": instructions(groups.machine, instructions_of_all)}
    return Estimate(Staged(span, -(-elements // span), batch), terms)


def _run_staged(groups: Groups, way: Staged) -> CudaLaunch:
    items, element = groups.nest.group_count, groups.held_accesses()[0].type.bytes
    groups = groups.in_elements()
    constants = {
        "THREADS": _THREADS,
        "SPAN": way.span,
        "KEEP": way.keep,
        "UNITS": groups.units,
        "BATCH": way.batch,
        "ELEMENT": element,
    }
    shared = way.batch * groups.units * element
    grid = -(-items // way.batch)
    return _launch(groups, CudaMode.STAGED, constants, grid, _THREADS, {"items": items}, shared_bytes=shared)


def _not_stageable(groups: Groups) -> Refusal | None:
    nest, held = groups.nest, groups.nest.held
    if len(held) != 1 or len(nest.stores) != 1 or nest.rows or nest.accesses[held[0]].guarded:
        return Refusal("more than one operand and one result of whole groups")
    if groups.unit_bytes >= VECTOR_BYTES:
        return Refusal("whole units are aligned")
    numbers = (held[0], len(nest.loads))
    for number in numbers:
        access = nest.accesses[number]
        group_bytes = groups.elements * access.type.bytes
        steps = [loop.strides[number] for loop in nest.groups]
        follows = [loop.count * loop.strides[number] for loop in nest.groups[1:]]
        if access.step is not Step.CONTIGUOUS or steps != [*follows, group_bytes][: len(steps)]:
            return Refusal("groups do not follow each other")
        if groups.alignments[number] % VECTOR_BYTES:
            return Refusal(f"the first group is not aligned to {VECTOR_BYTES} bytes")
        if group_bytes > _STAGED_BYTES:
            return Refusal(f"groups of {group_bytes} bytes; at most {_STAGED_BYTES}")
    if nest.accesses[numbers[0]].type.bytes != nest.accesses[numbers[1]].type.bytes:
        return Refusal("results are of another size than operands")
    return None


# Groups by a block


def _in_registers(groups: Groups) -> Estimate[Block] | Refusal:
    if groups.narrowed:
        return Refusal(f"{groups.units} rows of units that are narrower than memory allows")
    across = groups.across
    most = groups.most_units()
    # Columns of FLOAT16 cost each thread much beside its elements.
    least = most if groups.columns and groups.vector * groups.registers >= 32 else max(1, most // 2)
    for keep in dict.fromkeys((min(least, groups.units), min(most, groups.units))):
        threads = _threads(groups, across, -(-groups.units // keep))
        if threads <= _MOST_THREADS:
            break
    else:
        return Refusal(f"{threads} threads; at most {_MOST_THREADS}")
    block = _by_rows(groups, keep) or Block(1, threads, across, keep, _resident(groups, threads, keep))
    return Estimate(
        block, {"memory": groups.reading(), "units": groups.loading(), "meeting": _block_meetings(groups)}
    )


def _by_rows(groups: Groups, keep: int) -> Block | None:
    """A block whose threads have units of one row each, if units are short, so that there are many, and few
    threads are idle."""
    nest, units = groups.nest, groups.inner_units
    if groups.columns or groups.folded or nest.form is Form.FLAT or nest.row_count == 1:
        return None
    if groups.unit_bytes >= VECTOR_BYTES:
        return None
    row_threads = -(-units // keep)
    threads = _threads(groups, 1, nest.row_count * row_threads)
    is_narrow = row_threads * groups.unit_bytes < _LEAST_ROW_BYTES
    if is_narrow or threads > _MOST_THREADS or threads * keep > _MOST_IDLE * groups.units:
        return None
    resident = _resident(groups, threads, keep, has_rows=True)
    return Block(1, threads, 1, keep, resident, row_threads=row_threads, full=units // row_threads)


def _run_registers(groups: Groups, way: Block) -> CudaLaunch:
    words = _tile_words(groups)
    return _launch(groups, CudaMode.TILE, way.constants(), words["items"], way.threads, words)


def _in_shared_memory(groups: Groups) -> Estimate[Block] | Refusal:
    block = _held_block(groups, *_residency(groups, _WHOLE))
    if isinstance(block, Refusal):
        return block
    if block.size > 1:
        return Refusal(f"a tile takes the shared memory of {block.size} blocks")
    return Estimate(
        block,
        {
            "memory": groups.reading(),
            "units": groups.loading(SHARED_INSTRUCTIONS),
            "meeting": _block_meetings(groups),
        },
    )


def _run_shared_memory(groups: Groups, way: Block) -> CudaLaunch:
    words = _tile_words(groups)
    constants = {**way.constants(), "UNIT_BYTES": groups.unit_bytes, **_rows(groups, way)}
    shared_bytes = way.threads * way.keep * groups.unit_bytes
    grid = words["items"]
    return _launch(groups, CudaMode.HELD, constants, grid, way.threads, words, shared_bytes=shared_bytes)


# Groups by several blocks


def _spread(groups: Groups) -> Estimate[Teams] | Refusal:
    usual = _PARTS_ABREAST if groups.nest.form is Form.ABREAST else _PARTS
    return _spread_by(groups, usual, _FEW_TEAMS)


def _spread_by_few(groups: Groups) -> Estimate[Teams] | Refusal:
    return _spread_by(groups, _FEW_PARTS, 1)


def _spread_by(groups: Groups, usual: tuple[int, int], least: int) -> Estimate[Teams] | Refusal:
    """In the shared memory of several blocks each, with so many on a multiprocessor; refused if less than
    `least` groups, and not all of them, are held at a time.
    """
    resident, threads = _residency(groups, usual)
    block = _held_block(groups, resident, threads)
    if isinstance(block, Refusal):
        return block
    _, items = groups.tiles()
    blocks = resident * groups.machine.multiprocessors
    teams = min(blocks // block.size, items)
    if teams < min(least, items):
        return Refusal(f"{teams} of {items} tiles at a time; at least {min(least, items)}")
    block = _shared_by(groups, blocks // teams, block.threads, block.across, resident)
    return Estimate(
        Teams(teams, block),
        {
            "memory": groups.reading(),
            "units": groups.loading(SHARED_INSTRUCTIONS),
            "meeting": _device_meetings(items / teams, threads),
        },
    )


def _run_spread(groups: Groups, way: Teams) -> CudaLaunch:
    block = way.block
    return _launch(
        groups,
        CudaMode.SPREAD,
        {**block.constants(), "UNIT_BYTES": groups.unit_bytes, **_rows(groups, block)},
        way.teams * block.size,
        block.threads,
        {**_tile_words(groups), "team": block.size},
        shared_bytes=block.threads * block.keep * groups.unit_bytes,
        cooperative=True,
        **_meeting_room(groups, way),
    )


def _read_twice(groups: Groups) -> Estimate[Teams]:
    """By few teams, of which each keeps much of its tile, or by more, of which one meets while others read or
    write; each has as much to do as the others."""
    ways = [_read_twice_by(groups, teams) for teams in range(1, min(_MOST_TEAMS, groups.tiles()[1]) + 1)]
    return min(ways, key=lambda way: way.cycles)


def _read_twice_by(groups: Groups, least: int) -> Estimate[Teams]:
    """By so many teams at least."""
    across = groups.across
    keep = min(_TEAM_UNITS, groups.most_units())
    _, items = groups.tiles()
    blocks, deep = _TEAM_BLOCKS * groups.machine.multiprocessors, _MOST_THREADS // across
    size = min(blocks // least, -(-groups.units // (keep * deep)))
    teams = min(blocks // size, items)
    slices = -(-groups.units // (size * deep))
    room = min(_room_of_team(groups) // keep, -(-slices // keep)) * keep
    rounds = -(-items // teams)
    again = _READ_AGAIN * max(0.0, 1 - room / slices)
    return Estimate(
        Teams(teams, Block(size, _MOST_THREADS, across, keep, _TEAM_BLOCKS, room)),
        {
            "memory": groups.reading() * (1 + again) * rounds * teams / items,
            "units": 2 * groups.loading(),
            "meeting": _device_meetings(rounds, _MOST_THREADS),
        },
    )


def _run_twice(groups: Groups, way: Teams) -> CudaLaunch:
    block = way.block
    words = {**_tile_words(groups), "slice_units": -(-groups.units // block.size), "team": block.size}
    return _launch(
        groups,
        CudaMode.TEAM,
        {**block.constants(), "UNIT_BYTES": groups.unit_bytes, "ROOM": block.room},
        way.teams * block.size,
        block.threads,
        words,
        shared_bytes=block.threads * block.room * groups.unit_bytes,
        cooperative=True,
        **_meeting_room(groups, way),
    )


GROUPS: Table = (
    Candidate("warps", _in_warps, _run_warps),
    Candidate("staged in shared memory", _staged, _run_staged),
    Candidate("registers of a block", _in_registers, _run_registers),
    Candidate("shared memory of a block", _in_shared_memory, _run_shared_memory),
    Candidate("shared memory of several blocks", _spread, _run_spread),
    Candidate("shared memory of few large blocks", _spread_by_few, _run_spread),
    Candidate("read twice by several blocks", _read_twice, _run_twice),
)
"""The ways to run a normalization."""


# Room for groups


def _residency(groups: Groups, usual: tuple[int, int]) -> tuple[int, int]:
    return _FLAT_COLUMNS if groups.folded and groups.nest.form is Form.FLAT else usual


def _held_block(groups: Groups, blocks: int, threads: int) -> Block | Refusal:
    """The smallest number of blocks whose shared memory holds a tile, where a multiprocessor runs so many."""
    if not groups.copyable:
        return Refusal("what is reduced is guarded, strided, of several sizes or less than 4 bytes in a unit")
    across = groups.across
    room = _bytes_of_room(groups, blocks, threads) - 4 * groups.row_bytes()
    bytes = groups.unit_bytes - -groups.row_bytes() * groups.vector // groups.nest.inner.count
    most = min(_MOST_HELD_UNITS, room // (threads * bytes))
    if most < 1:
        return Refusal(f"{room} bytes of shared memory; a unit of each thread takes {threads * bytes}")
    deep = threads // across
    return _shared_by(groups, -(-groups.units // (most * deep)), threads, across, blocks)


def _bytes_of_room(groups: Groups, blocks: int, threads: int) -> int:
    """Bytes of shared memory that a block has for units, where a multiprocessor runs so many blocks."""
    # What all threads share: sums of the parts of the block, and what results need of each group.
    flat = groups.folded and groups.nest.form is Form.FLAT
    sums = groups.across * groups.vector if flat else groups.width * (threads // 32 + 1)
    shared = groups.reduced * (16 * sums + 8 * groups.width) + 64 * groups.width
    return groups.machine.shared_bytes // blocks - _RESERVED_BYTES - shared


def _room_of_team(groups: Groups) -> int:
    """Units of each thread that the shared memory of all blocks keeps, where groups are read twice."""
    if not groups.copyable:
        return 0
    bytes = _bytes_of_room(groups, _TEAM_BLOCKS, _MOST_THREADS)
    return max(0, min(_MOST_IN_ROOM, bytes // (_MOST_THREADS * groups.unit_bytes)))


def _shared_by(groups: Groups, size: int, threads: int, across: int, resident: int) -> Block:
    """A tile in even parts."""
    keep = max(
        -(-groups.units // (size * (threads // across))), min(_LEAST_HELD_UNITS, -(-groups.units // size))
    )
    return Block(size, _threads(groups, across, -(-groups.units // (keep * size))), across, keep, resident)


def _threads(groups: Groups, across: int, deep: int) -> int:
    """Threads of a block, `across` of them side by side and at least `deep` in depth, in whole warps."""
    if across == 1:
        return -(-deep // 32) * 32
    if groups.folded:
        summing = groups.width * (32 if groups.nest.form is Form.ABREAST else 1)
        return -(-max(across * deep, summing) // 32) * 32
    # Each column of a tile needs a thread that finishes it.
    deep = max(deep, groups.vector)
    step = max(1, 32 // across)
    return -(-deep // step) * step * across


def _resident(groups: Groups, threads: int, keep: int, has_rows: bool = False) -> int:
    """Blocks that a multiprocessor should run at a time; if threads have rows, all units of one lie at fixed
    distances."""
    lanes = groups.vector if groups.columns else 0
    scalars = keep if groups.vector == 1 and not has_rows else 0
    registers = -(-min(248, groups.registers * keep + 32 + lanes * _LANE_REGISTERS + scalars) // 8) * 8
    # A multiprocessor has four parts with registers of their own.
    warps = 4 * (_REGISTERS // 4 // (32 * registers))
    # For columns, the next block is worth some registers in local memory.
    spare = threads // 2 if groups.columns else 0
    return max(1, min((32 * min(warps, 64) + spare) // threads, 32))


# Costs and launches


def _block_meetings(groups: Groups) -> float:
    """Cycles for which tiles wait until the threads of a block have met."""
    _, items = groups.tiles()
    return items * BLOCK_MEETING / groups.machine.multiprocessors


def _device_meetings(times: float, threads: int) -> float:
    """Cycles for which blocks of so many threads meet so many times: the larger they are, the fewer others go
    on meanwhile."""
    return times * DEVICE_MEETING * (1 + threads / _MOST_THREADS)


def _tile_words(groups: Groups) -> dict[str, int]:
    tiles, items = groups.tiles()
    return {"items": items, "column_tiles": tiles, "columns": groups.row_units}


def _rows(groups: Groups, block: Block) -> dict[str, int]:
    """The number of rows that a block may meet, and one more, if it keeps what they need."""
    elements = block.threads * block.keep * groups.vector
    return {"ROWS": elements // groups.nest.inner.count + 3} if groups.row_bytes() else {}


def _meeting_room(groups: Groups, way: Teams) -> dict[str, int]:
    """Bytes that teams meet in: two counters each, and two pages of sums."""
    return {
        "counters_bytes": 8 * way.teams,
        "scratch_bytes": 32 * way.teams * way.block.size * groups.reduced * groups.width,
    }


def _launch(
    groups: Groups,
    mode: CudaMode,
    constants: dict[str, int],
    grid: int,
    block: int,
    chosen: dict[str, int],
    *,
    shared_bytes: int = 0,
    cooperative: bool = False,
    counters_bytes: int = 0,
    scratch_bytes: int = 0,
) -> CudaLaunch:
    nest = groups.nest
    if groups.folded:
        constants = {**constants, "FORM": int(nest.form), "RUN": nest.inner.count}
    greatest = max(chosen["items"], groups.units, grid)
    pattern = nest.pattern(mode, greatest, constants, vector=groups.vector, columns=groups.columns)
    words = groups.words(mode, **chosen)
    return CudaLaunch(
        pattern,
        grid,
        block,
        nest.given() | words,
        shared_bytes=shared_bytes,
        cooperative=cooperative,
        counters_bytes=counters_bytes,
        scratch_bytes=scratch_bytes,
    )
