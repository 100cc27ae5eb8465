"""Decides how kernels that reduce are launched: which threads hold a group, and how much of it each.

What fits the registers of a block, or of a cluster of blocks, is read once; larger groups are read twice, by
as many groups at a time as the L2 cache holds.
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
_STAGE_BYTES = 16 * 1024
"""Of shared memory for them, about."""
_RESERVED_BYTES = 1024
"""Of shared memory, for the system, per block."""
_TILE_COLUMNS = 64
"""Groups side by side in one tile."""
_TILE_BYTES = 64 * 1024
"""Of a group that one block holds."""
_COLUMN_TILE_BYTES = 16 * 1024
"""The same for groups side by side."""
_PIPELINES = ((256, 8, 2), (512, 8, 1), (512, 12, 1))
"""Threads, 16-byte units of each, and blocks on a multiprocessor, of blocks that share groups: the first way
that is enough.
"""
_MOST_STAGES = 4
"""Tiles that such a block has in registers or under way."""
_TEAM_BLOCKS = 2
"""Blocks on one multiprocessor, where groups are read twice."""
_REGISTERS = 65536
"""Of a multiprocessor."""


def schedule_groups(nest: Nest, machine: Machine, alignments: Sequence[int]) -> Launch:
    """The launch of a kernel that reduces; the arguments are those of `schedule`."""
    groups = _Groups(nest, machine, alignments)
    if nest.inner_reduced and (small := groups.warps() or groups.staged()):
        return small
    return groups.tile() or groups.pipeline() or groups.team()


@dataclass(frozen=True, slots=True)
class _Block:
    """How a tile is shared: by `size` blocks of `threads` threads, `across` of them side by side, `keep`
    units each.
    """

    size: int
    threads: int
    across: int
    keep: int


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
        while span < 32 and span * 8 < self.units:
            span *= 2
        element = self.nest.loads[self._held_number()].type.bytes
        step = _THREADS // span
        batch = step * max(1, _STAGE_BYTES // (step * self.units * element))
        groups = self.nest.group_count
        constants = {"THREADS": _THREADS, "SPAN": span, "KEEP": 8, "BATCH": batch, "ELEMENT": element}
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
        limit = _COLUMN_TILE_BYTES if self.columns else _TILE_BYTES
        if self.units * self.unit_bytes * across > limit:
            return None
        most = self._most_units()
        for keep in dict.fromkeys((max(1, most // 2), most)):
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

    def pipeline(self) -> Launch | None:
        """Groups in the registers of several blocks, if they fit."""
        if not self._copyable():
            return None
        across = self._across()
        for threads, units, blocks in _PIPELINES:
            keep = max(1, min(units * VECTOR_BYTES // self.unit_bytes, 2 * _MOST_UNITS))
            size = -(-self.units // (keep * (threads // across)))
            if size <= blocks * self.machine.multiprocessors:
                cluster = 1 << (size - 1).bit_length()
                if cluster <= self.machine.cluster_blocks:
                    size = cluster
                threads = self._threads(across, -(-self.units // (keep * size)))
                launch = self._pipeline(_Block(size, threads, across, keep), blocks)
                # Two stages must fit; where they do not, groups are read twice instead.
                if launch.shared_bytes <= self.machine.shared_bytes // blocks - _RESERVED_BYTES:
                    return launch
        return None

    def _pipeline(self, held: _Block, blocks: int) -> Launch:
        tiles, items = self._tiles(held.across)
        width = held.across * (self.vector if self.columns else 1)
        # What all threads share: sums of the parts of the block, and what results need of each group.
        shared = self.reduced * width * (16 * (held.threads // 32 + 1) + 8) + 64 * width
        stage_bytes = held.threads * held.keep * self.unit_bytes
        stages = min(
            _MOST_STAGES, (self.machine.shared_bytes // blocks - _RESERVED_BYTES - shared) // stage_bytes
        )
        constants = {
            "THREADS": held.threads,
            "BLOCKS": blocks,
            "TX": held.across,
            "KEEP": held.keep,
            "STAGES": max(2, stages),
            "UNIT_BYTES": self.unit_bytes,
        }
        values = {"items": items, "tiles": tiles, "columns": self.row_units, "team": held.size}
        shared_bytes = max(2, stages) * stage_bytes
        if held.size <= self.machine.cluster_blocks:
            constants["CLUSTER"] = held.size
            return self._launch(
                Mode.CLUSTER,
                constants,
                items * held.size,
                held.threads,
                values,
                cluster=held.size,
                shared_bytes=shared_bytes,
                resident=True,
            )
        teams = min(blocks * self.machine.multiprocessors // held.size, items)
        return self._launch(
            Mode.SPREAD,
            constants,
            teams * held.size,
            held.threads,
            values,
            shared_bytes=shared_bytes,
            cooperative=True,
            counters_bytes=8 * teams,
            scratch_bytes=32 * teams * held.size * self.reduced * width,
        )

    def _copyable(self) -> bool:
        """Whether the elements that are reduced can be copied to shared memory while others are worked on."""
        return all(a.step is Step.CONTIGUOUS and a.type.bytes * self.vector >= 4 for a in self._held())

    def _across(self) -> int:
        """Threads side by side in a tile."""
        across = 1
        while self.columns and across * self.vector < _TILE_COLUMNS and across < self.row_units:
            across *= 2
        return across

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
        registers = -(-min(248, self.registers * keep + 32 + lanes * 8 + scalars) // 8) * 8
        # A multiprocessor has four parts with registers of their own.
        warps = 4 * (_REGISTERS // 4 // (32 * registers))
        return max(1, min(32 * min(warps, 64) // threads, 32))

    def team(self) -> Launch:
        """Groups that teams of blocks read twice."""
        across = self._across()
        keep = self._most_units()
        tiles, items = self._tiles(across)
        size = min(
            _TEAM_BLOCKS * self.machine.multiprocessors, -(-self.units // (keep * (_MOST_THREADS // across)))
        )
        teams = min(_TEAM_BLOCKS * self.machine.multiprocessors // size, items)
        width = across * (self.vector if self.columns else 1)
        constants = {"THREADS": _MOST_THREADS, "BLOCKS": _TEAM_BLOCKS, "TX": across, "KEEP": keep}
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
        cluster: int = 1,
        shared_bytes: int = 0,
        resident: bool = False,
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
            cluster,
            shared_bytes,
            resident,
            cooperative,
            counters_bytes,
            scratch_bytes,
        )
