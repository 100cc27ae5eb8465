"""Decides how kernels that reduce are launched: which threads hold a group, and how much of it each.

What fits the registers or the shared memory of a block, or of the whole device, is read once; larger groups
are read twice, backwards the second time, as the L2 cache holds what was read last.

Blocks that share a group meet in global memory. Thread-block clusters that add up through distributed shared
memory were slower for every group of 200 KB and more that was measured (0.67 to 0.78 of the copy; teams 0.75
to 0.87), since a cluster starts only when there is room for all of its blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opendml.targets.cuda.groups import HELD_REGISTERS, Groups, widest_units
from opendml.targets.cuda.launch import VECTOR_BYTES, Launch, Nest
from opendml.targets.cuda.machine import Machine
from opendml.targets.cuda.pattern import Form, Mode, Pattern, Step

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
_STAGE_BYTES = 16 * 1024
"""Bytes of shared memory that a block takes for staged groups, about."""
_RESERVED_BYTES = 1024
"""Bytes of shared memory that the system takes for itself in each block."""
_TILE_BYTES = 64 * 1024
"""Greatest tile, in bytes, that the registers of a block hold."""
_WHOLE = (2, 512)
"""Blocks on a multiprocessor, and threads of each, where shared memory holds whole groups."""
_PARTS, _FEW_PARTS = (4, 256), (2, 512)
"""Blocks and threads where shared memory holds parts; few if it else held below _FEW_TEAMS groups."""
_FEW_TEAMS = 7
_PARTS_ABREAST = (2, 256)
"""Blocks and threads for parts of groups side by side, which take more registers."""
_FLAT_COLUMNS = (3, 256)
"""Blocks and threads where columns far from each other are folded."""
_LEAST_HELD_UNITS, _MOST_HELD_UNITS = 4, 32
"""Least and greatest number of units that a thread holds in shared memory."""
_TEAM_BLOCKS = 2
"""Blocks on a multiprocessor where groups are read twice."""
_TEAM_UNITS = 4
"""Units that a thread loads at a time where groups are read twice."""
_REGISTERS = 65536
"""Registers of a multiprocessor, of 4 bytes each."""
_LANE_REGISTERS = 4
"""Registers that a thread needs for each of its columns."""


def schedule_groups(nest: Nest, machine: Machine, alignments: Sequence[int]) -> Launch:
    """The launch of a kernel that reduces; the arguments are those of `schedule`."""
    groups = _Modes(widest_units(nest, alignments), machine, alignments)
    if not groups.columns and (small := groups.warps() or groups.staged()):
        return small
    return groups.tile() or groups.held() or groups.team()


@dataclass(frozen=True, slots=True)
class _Block:
    """The share of a tile: by `size` blocks of `threads` threads, `across` of them side by side, `keep`
    units each.
    """

    size: int
    threads: int
    across: int
    keep: int

    def constants(self, blocks: int) -> dict[str, int]:
        """The constants that the code of all blocks needs, where a multiprocessor runs so many blocks."""
        return {"THREADS": self.threads, "BLOCKS": blocks, "TX": self.across, "KEEP": self.keep}


class _Modes(Groups):
    """The ways in which one device may run the groups of a nest."""

    def __init__(self, nest: Nest, machine: Machine, alignments: Sequence[int]) -> None:
        super().__init__(nest, alignments)
        self.machine, self.alignments = machine, alignments

    def warps(self) -> Launch | None:
        """Groups within warps, if they are small and aligned."""
        if self.units > _WARP_UNITS or self.registers * -(-self.units // 32) > HELD_REGISTERS:
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
        element = self.held_accesses()[0].type.bytes
        step = _THREADS // span
        batch = step * max(1, _STAGE_BYTES // (step * self.units * element))
        groups = self.nest.group_count
        constants = {
            "THREADS": _THREADS,
            "SPAN": span,
            "KEEP": -(-self.units // span),
            "UNITS": self.units,
            "BATCH": batch,
            "ELEMENT": element,
        }
        shared = batch * self.units * element
        return self._launch(
            Mode.STAGED, constants, -(-groups // batch), _THREADS, {"items": groups}, shared_bytes=shared
        )

    def _stageable(self) -> bool:
        nest = self.nest
        held = nest.held
        if len(held) != 1 or len(nest.stores) != 1 or self.unit_bytes >= VECTOR_BYTES or nest.rows:
            return False
        if nest.accesses[held[0]].guarded:
            return False
        numbers = (held[0], len(nest.loads))
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
        across = self.across
        if self.units * self.unit_bytes * across > _TILE_BYTES:
            return None
        most = self.most_units()
        # Columns of FLOAT16 cost each thread much beside its elements.
        least = most if self.columns and self.vector * self.registers >= 32 else max(1, most // 2)
        for keep in dict.fromkeys((least, most)):
            threads = self._threads(across, -(-self.units // keep))
            if threads <= _MOST_THREADS:
                break
        else:
            return None
        values = self._tile_values()
        constants = _Block(1, threads, across, keep).constants(self._resident(threads, keep))
        return self._launch(Mode.TILE, constants, values["items"], threads, values)

    def _tile_values(self) -> dict[str, int]:
        tiles, items = self.tiles()
        return {"items": items, "tiles": tiles, "columns": self.row_units}

    def _meeting(self, teams: int, size: int) -> dict[str, int]:
        """Bytes that teams of `size` blocks meet in: two counters each, and two pages of sums."""
        return {
            "counters_bytes": 8 * teams,
            "scratch_bytes": 32 * teams * size * self.reduced * self.width,
        }

    def held(self) -> Launch | None:
        """Groups in the shared memory of one block, or of several, if they fit."""
        if not self._copyable():
            return None
        count, threads = self._residency(_WHOLE)
        block = self._held_block(count, threads)
        if block and block.size == 1:
            values = self._tile_values()
            constants = {**block.constants(count), "UNIT_BYTES": self.unit_bytes, **self._rows(block)}
            shared_bytes = block.threads * block.keep * self.unit_bytes
            return self._launch(
                Mode.HELD, constants, values["items"], block.threads, values, shared_bytes=shared_bytes
            )
        parts = self._residency(_PARTS_ABREAST if self.nest.form is Form.ABREAST else _PARTS)
        return self._spread(*parts, _FEW_TEAMS) or self._spread(*self._residency(_FEW_PARTS), 1)

    def _residency(self, usual: tuple[int, int]) -> tuple[int, int]:
        return _FLAT_COLUMNS if self.folded and self.nest.form is Form.FLAT else usual

    def _held_block(self, blocks: int, threads: int) -> _Block | None:
        """The smallest number of blocks that hold a tile, where a multiprocessor runs so many of them."""
        across = self.across
        # What all threads share: sums of the parts of the block, and what results need of each group.
        flat = self.folded and self.nest.form is Form.FLAT
        sums = across * self.vector if flat else self.width * (threads // 32 + 1)
        shared = self.reduced * (16 * sums + 8 * self.width) + 64 * self.width
        room = self.machine.shared_bytes // blocks - _RESERVED_BYTES - shared
        room -= 4 * self.row_bytes()
        bytes = self.unit_bytes - -self.row_bytes() * self.vector // self.nest.inner.count
        most = min(_MOST_HELD_UNITS, room // (threads * bytes))
        if most < 1:
            return None
        deep = threads // across
        return self._shared_by(-(-self.units // (most * deep)), threads, across)

    def _rows(self, block: _Block) -> dict[str, int]:
        """The number of rows that a block may meet, and one more, if it keeps what they need."""
        elements = block.threads * block.keep * self.vector
        return {"ROWS": elements // self.nest.inner.count + 3} if self.row_bytes() else {}

    def _shared_by(self, size: int, threads: int, across: int) -> _Block:
        """A tile in even parts."""
        keep = max(
            -(-self.units // (size * (threads // across))), min(_LEAST_HELD_UNITS, -(-self.units // size))
        )
        return _Block(size, self._threads(across, -(-self.units // (keep * size))), across, keep)

    def _spread(self, resident: int, threads: int, least: int) -> Launch | None:
        """Groups in the shared memory of several blocks each, `resident` of them on a multiprocessor; None if
        less than `least` groups, and not all of them, were held at a time.
        """
        blocks = resident * self.machine.multiprocessors
        block = self._held_block(resident, threads)
        if block is None:
            return None
        values = self._tile_values()
        teams = min(blocks // block.size, values["items"])
        if teams < min(least, values["items"]):
            return None
        block = self._shared_by(blocks // teams, block.threads, block.across)
        constants = {**block.constants(resident), "UNIT_BYTES": self.unit_bytes, **self._rows(block)}
        values["team"] = block.size
        return self._launch(
            Mode.SPREAD,
            constants,
            teams * block.size,
            block.threads,
            values,
            shared_bytes=block.threads * block.keep * self.unit_bytes,
            cooperative=True,
            **self._meeting(teams, block.size),
        )

    def _copyable(self) -> bool:
        """Whether what is reduced can be copied to shared memory: aligned, unguarded, in at least 4 bytes."""
        held = self.held_accesses()
        sizes = {a.type.bytes * self.vector for a in held}
        contiguous = (Step.CONTIGUOUS, Step.FLAT)
        plain = all(a.step in contiguous and not a.guarded for a in held)
        return len(sizes) == 1 and min(sizes) >= 4 and plain

    def _threads(self, across: int, deep: int) -> int:
        """Threads of a block, `across` of them side by side and at least `deep` in depth, in whole warps."""
        if across == 1:
            return -(-deep // 32) * 32
        if self.folded:
            summing = self.width * (32 if self.nest.form is Form.ABREAST else 1)
            return -(-max(across * deep, summing) // 32) * 32
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
        across = self.across
        keep = min(_TEAM_UNITS, self.most_units())
        values = self._tile_values()
        items = values["items"]
        blocks = _TEAM_BLOCKS * self.machine.multiprocessors
        # Two teams at least, if there is work for them: while one meets, the other reads or writes.
        size = min(blocks // min(2, items), -(-self.units // (keep * (_MOST_THREADS // across))))
        teams = min(blocks // size, items)
        constants = _Block(size, _MOST_THREADS, across, keep).constants(_TEAM_BLOCKS)
        values |= {"slice": -(-self.units // size), "team": size}
        return self._launch(
            Mode.TEAM,
            constants,
            teams * size,
            _MOST_THREADS,
            values,
            cooperative=True,
            **self._meeting(teams, size),
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
        if self.folded:
            constants = {**constants, "FORM": int(nest.form), "RUN": nest.inner.count}
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
        inner = nest.inner.count // (1 if nest.form is Form.FLAT else self.vector)
        values = {**nest.given(), "units": self.units, "inner": inner, "rows": nest.row_count, **values}
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
