"""Decides how kernels that reduce are launched: which threads hold a group, and how much of it each.

What fits the registers or the shared memory of a block, or of the whole device, is read once; larger groups
are read twice, backwards the second time, as the L2 cache holds what was read last.

Blocks that share a group meet in global memory. Thread-block clusters that add up through distributed shared
memory were slower for every group of 200 KB and more that was measured (0.67 to 0.78 of the copy; teams 0.75
to 0.87), since a cluster starts only when there is room for all of its blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opendml.program.node import Operation, ordered
from opendml.targets.cuda.launch import VECTOR_BYTES, Launch, Nest
from opendml.targets.cuda.machine import Machine
from opendml.targets.cuda.pattern import AccessPattern, Mode, Pattern, Step, reduced

_THREADS = 256
"""Of a block of independent groups, and of one that shares a group with others."""
_MOST_THREADS = 512
"""Of a block."""
_HELD_REGISTERS = 32
"""In which a thread holds elements."""
_MOST_UNITS = 16
"""That a thread holds: each costs instructions and a place to remember."""
_WARP_UNITS = 256
"""Units up to which a group is held by one warp."""
_STAGED_BYTES = 2048
"""Up to this size, groups that are not aligned go through shared memory."""
_STAGED_UNITS = 32
"""Elements of a thread there, about: what is computed once for a group is computed by all its threads."""
_STAGE_BYTES = 16 * 1024
"""Of shared memory for them, about."""
_RESERVED_BYTES = 1024
"""Of shared memory, for the system, per block."""
_LEAST_COLUMN_BYTES, _MOST_COLUMN_BYTES = 64, 256
"""Of groups side by side in one tile, in each row."""
_COLUMN_TILE_BYTES = 8 * 1024
"""Of a tile of groups side by side, about."""
_TILE_BYTES = 64 * 1024
"""Of a tile that the registers of a block hold."""
_HELD_THREADS = 1024
"""On one multiprocessor, of blocks that hold groups in shared memory."""
_HELD_BLOCKS = 2
"""On a multiprocessor, of those that hold whole groups in shared memory."""
_SPREAD_BLOCKS, _FEW_SPREAD_BLOCKS = 4, 2
"""The same for those that hold parts of groups; few, if else fewer than _FEW_TEAMS groups were held."""
_FEW_TEAMS = 7
_LEAST_HELD_UNITS, _MOST_HELD_UNITS = 4, 32
"""That a thread holds in shared memory."""
_TEAM_BLOCKS = 2
"""Blocks on one multiprocessor, where groups are read twice."""
_TEAM_UNITS = 4
"""That a thread loads at a time there."""
_REGISTERS = 65536
"""Of a multiprocessor."""
_LANE_REGISTERS = 4
"""Of a thread, for each column."""


def schedule_groups(nest: Nest, machine: Machine, alignments: Sequence[int]) -> Launch:
    """The launch of a kernel that reduces; the arguments are those of `schedule`."""
    groups = _Groups(nest, machine, alignments)
    if nest.inner_reduced and (small := groups.warps() or groups.staged()):
        return small
    return groups.tile() or groups.held() or groups.team()


@dataclass(frozen=True, slots=True)
class _Block:
    """How a tile is shared: by `size` blocks of `threads` threads, `across` of them side by side, `keep`
    units each.
    """

    size: int
    threads: int
    across: int
    keep: int

    def constants(self, blocks: int) -> dict[str, int]:
        """Those that the code of all blocks needs, where a multiprocessor runs so many blocks."""
        return {"THREADS": self.threads, "BLOCKS": blocks, "TX": self.across, "KEEP": self.keep}


class _Groups:
    """A kernel's groups in units, for one device."""

    def __init__(self, nest: Nest, machine: Machine, alignments: Sequence[int]) -> None:
        self.nest, self.machine, self.alignments = nest, machine, alignments
        self.columns = not nest.inner_reduced
        self.vector = nest.vector(alignments, whole_rows=True)
        self.row_units = nest.inner.count // self.vector
        self.units = nest.row_count * (1 if self.columns else self.row_units)
        self.elements = nest.row_count * (1 if self.columns else nest.inner.count)
        held = list(self._held())
        self.unit_bytes = max(
            1, sum(a.type.bytes * (1 if a.step is Step.NONE else self.vector) for a in held)
        )
        self.registers = (
            sum(-(-a.type.bytes * (1 if a.step is Step.NONE else self.vector) // 4) for a in held) or 1
        )
        self.reduced = len(reduced(nest.kernel.values))

    def _held(self) -> Iterator[AccessPattern]:
        """The loads of elements that are reduced."""
        for node in ordered(reduced(self.nest.kernel.values)):
            if node.operation is Operation.SOURCE and isinstance(node.attribute, int):
                access = self.nest.accesses[node.attribute]
                if any(access.rows) or (access.step is not Step.NONE and not self.columns):
                    yield access

    def warps(self) -> Launch | None:
        """Groups within warps, if they are small and aligned."""
        if self.units > _WARP_UNITS or self.registers * -(-self.units // 32) > _HELD_REGISTERS:
            return None
        if self._stageable():
            return None
        span = 1
        while span < 32 and span * 2 < self.units:
            span *= 2
        keep = -(-self.units // span)
        groups = self.nest.group_count
        constants = {"THREADS": _THREADS, "SPAN": span, "KEEP": keep}
        grid = -(-groups * span // _THREADS)
        return self._launch(Mode.WARPS, constants, grid, _THREADS, {"items": groups})

    def staged(self) -> Launch | None:
        """Groups through shared memory, if they are small, follow each other, and are not aligned."""
        if not self._stageable():
            return None
        self.vector, self.units = 1, self.elements
        span = 1
        while span < 32 and span * _STAGED_UNITS < self.units:
            span *= 2
        element = self.nest.loads[self._held_number()].type.bytes
        step = _THREADS // span
        batch = step * max(1, _STAGE_BYTES // (step * self.units * element))
        groups = self.nest.group_count
        constants = {
            "THREADS": _THREADS,
            "SPAN": span,
            "KEEP": -(-self.units // span),
            "BATCH": batch,
            "ELEMENT": element,
        }
        shared = batch * self.units * element
        return self._launch(
            Mode.STAGED, constants, -(-groups // batch), _THREADS, {"items": groups}, shared_bytes=shared
        )

    def _held_number(self) -> int:
        held = list(self._held())
        return self.nest.loads.index(held[0])

    def _stageable(self) -> bool:
        nest = self.nest
        held = list(self._held())
        if len(held) != 1 or len(nest.stores) != 1 or self.unit_bytes >= VECTOR_BYTES or nest.rows:
            return False
        numbers = (nest.loads.index(held[0]), len(nest.loads))
        for number in numbers:
            access = nest.accesses[number]
            group_bytes = self.elements * access.type.bytes
            steps = [loop.strides[number] for loop in nest.groups]
            follows = [loop.count * loop.strides[number] for loop in nest.groups[1:]]
            if access.step is not Step.CONTIGUOUS or steps != [*follows, group_bytes][: len(steps)]:
                return False
            if self.alignments[number] % VECTOR_BYTES or group_bytes > _STAGED_BYTES:
                return False
        return nest.accesses[numbers[0]].type.bytes == nest.accesses[numbers[1]].type.bytes

    def tile(self) -> Launch | None:
        """Groups in the registers of a block, if they fit."""
        across = self._across()
        if self.units * self.unit_bytes * across > _TILE_BYTES:
            return None
        most = self._most_units()
        # Columns of FLOAT16 cost each thread much beside its elements.
        least = most if self.columns and self.vector * self.registers >= 32 else max(1, most // 2)
        for keep in dict.fromkeys((least, most)):
            threads = self._threads(across, -(-self.units // keep))
            if threads <= _MOST_THREADS:
                break
        else:
            return None
        tiles, items = self._tiles(across)
        constants = {"THREADS": threads, "BLOCKS": self._resident(threads, keep), "TX": across, "KEEP": keep}
        values = {"items": items, "tiles": tiles, "columns": self.row_units}
        return self._launch(Mode.TILE, constants, items, threads, values)

    def _most_units(self) -> int:
        return min(_MOST_UNITS, max(1, _HELD_REGISTERS // self.registers))

    def _tiles(self, across: int) -> tuple[int, int]:
        """Tiles side by side, and all tiles."""
        tiles = -(-self.row_units // across) if self.columns else 1
        return tiles, self.nest.group_count * tiles

    def held(self) -> Launch | None:
        """Groups in the shared memory of one block, or of several, if they fit."""
        if not self._copyable():
            return None
        block = self._held_block(_HELD_BLOCKS)
        if block and block.size == 1:
            tiles, items = self._tiles(block.across)
            constants = {**block.constants(_HELD_BLOCKS), "UNIT_BYTES": self.unit_bytes}
            values = {"items": items, "tiles": tiles, "columns": self.row_units}
            shared_bytes = block.threads * block.keep * self.unit_bytes
            return self._launch(Mode.HELD, constants, items, block.threads, values, shared_bytes=shared_bytes)
        return self._spread(_SPREAD_BLOCKS, _FEW_TEAMS) or self._spread(_FEW_SPREAD_BLOCKS, 1)

    def _held_block(self, blocks: int) -> _Block | None:
        """The smallest number of blocks that hold a tile, where a multiprocessor runs so many of them."""
        across = self._across()
        threads = _HELD_THREADS // blocks
        room = self.machine.shared_bytes // blocks - _RESERVED_BYTES - self._shared_bytes(threads, across)
        most = min(_MOST_HELD_UNITS, room // (threads * self.unit_bytes))
        if most < 1:
            return None
        deep = threads // across
        return self._shared_by(-(-self.units // (most * deep)), threads, across)

    def _shared_bytes(self, threads: int, across: int) -> int:
        """What all threads of a block share: sums of its parts, and what results need of each group."""
        width = across * (self.vector if self.columns else 1)
        return self.reduced * width * (16 * (threads // 32 + 1) + 8) + 64 * width

    def _shared_by(self, size: int, threads: int, across: int) -> _Block:
        """A tile in even parts."""
        keep = max(
            -(-self.units // (size * (threads // across))), min(_LEAST_HELD_UNITS, -(-self.units // size))
        )
        return _Block(size, self._threads(across, -(-self.units // (keep * size))), across, keep)

    def _spread(self, resident: int, least: int) -> Launch | None:
        """Groups in the shared memory of several blocks each, `resident` of them on a multiprocessor; None if
        less than `least` groups, and not all of them, were held at a time.
        """
        blocks = resident * self.machine.multiprocessors
        block = self._held_block(resident)
        if block is None:
            return None
        tiles, items = self._tiles(block.across)
        teams = min(blocks // block.size, items)
        if teams < min(least, items):
            return None
        block = self._shared_by(blocks // teams, block.threads, block.across)
        width = block.across * (self.vector if self.columns else 1)
        constants = {**block.constants(resident), "UNIT_BYTES": self.unit_bytes}
        values = {"items": items, "tiles": tiles, "columns": self.row_units, "team": block.size}
        return self._launch(
            Mode.SPREAD,
            constants,
            teams * block.size,
            block.threads,
            values,
            shared_bytes=block.threads * block.keep * self.unit_bytes,
            cooperative=True,
            counters_bytes=8 * teams,
            scratch_bytes=32 * teams * block.size * self.reduced * width,
        )

    def _copyable(self) -> bool:
        """Whether what is reduced can be copied to shared memory: aligned, in at least 4 bytes."""
        held = list(self._held())
        sizes = {a.type.bytes * self.vector for a in held}
        return len(sizes) == 1 and min(sizes) >= 4 and all(a.step is Step.CONTIGUOUS for a in held)

    def _across(self) -> int:
        """Threads side by side in a tile."""
        if not self.columns:
            return 1
        across = max(1, _LEAST_COLUMN_BYTES // self.unit_bytes)
        most = _MOST_COLUMN_BYTES // self.unit_bytes
        while (
            across < most
            and across < self.row_units
            and 2 * across * self.units * self.unit_bytes <= _COLUMN_TILE_BYTES
        ):
            across *= 2
        return min(across, 1 << (self.row_units - 1).bit_length())

    def _threads(self, across: int, deep: int) -> int:
        """Threads of a block, `across` of them side by side and at least `deep` in depth, in whole warps."""
        if across == 1:
            return -(-deep // 32) * 32
        # Each column of a tile needs a thread that finishes it.
        deep = max(deep, self.vector)
        step = max(1, 32 // across)
        return -(-deep // step) * step * across

    def _resident(self, threads: int, keep: int) -> int:
        """Blocks that a multiprocessor should run at a time."""
        lanes = self.vector if self.columns else 0
        scalars = keep if self.vector == 1 else 0
        registers = -(-min(248, self.registers * keep + 32 + lanes * _LANE_REGISTERS + scalars) // 8) * 8
        # A multiprocessor has four parts with registers of their own.
        warps = 4 * (_REGISTERS // 4 // (32 * registers))
        # For columns, the next block is worth some registers in local memory.
        spare = threads // 2 if self.columns else 0
        return max(1, min((32 * min(warps, 64) + spare) // threads, 32))

    def team(self) -> Launch:
        """Groups that teams of blocks read twice."""
        across = self._across()
        keep = min(_TEAM_UNITS, self._most_units())
        tiles, items = self._tiles(across)
        blocks = _TEAM_BLOCKS * self.machine.multiprocessors
        # Two teams at least, if there is work for them: while one meets, the other reads or writes.
        size = min(blocks // min(2, items), -(-self.units // (keep * (_MOST_THREADS // across))))
        teams = min(blocks // size, items)
        width = across * (self.vector if self.columns else 1)
        constants = _Block(size, _MOST_THREADS, across, keep).constants(_TEAM_BLOCKS)
        values = {
            "items": items,
            "tiles": tiles,
            "columns": self.row_units,
            "slice": -(-self.units // size),
            "team": size,
        }
        return self._launch(
            Mode.TEAM,
            constants,
            teams * size,
            _MOST_THREADS,
            values,
            cooperative=True,
            counters_bytes=8 * teams,
            scratch_bytes=32 * teams * size * self.reduced * width,
        )

    def _launch(
        self,
        mode: Mode,
        constants: dict[str, int],
        grid: int,
        block: int,
        values: dict[str, int],
        *,
        shared_bytes: int = 0,
        cooperative: bool = False,
        counters_bytes: int = 0,
        scratch_bytes: int = 0,
    ) -> Launch:
        nest = self.nest
        greatest = max(values["items"], self.units, grid)
        pattern = Pattern(
            mode,
            self.vector,
            self.columns,
            nest.wide(greatest),
            nest.loads,
            nest.stores,
            nest.kernel.values,
            tuple(constants.items()),
        )
        values = {**nest.strides(), "units": self.units, "inner": nest.inner.count // self.vector, **values}
        return Launch(
            pattern,
            grid,
            block,
            values,
            1.0 / self.elements,
            shared_bytes=shared_bytes,
            cooperative=cooperative,
            counters_bytes=counters_bytes,
            scratch_bytes=scratch_bytes,
        )
