"""Decides how kernels that reduce are launched: which threads hold a group, and how much of it each.

What fits the registers of a block, or of a cluster of blocks, is read once; larger groups are read twice, by as many groups at a
time as the L2 cache holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opendml.program.node import Operation, ordered
from opendml.targets.cuda.launch import VECTOR_BYTES, Launch, Nest
from opendml.targets.cuda.machine import Machine
from opendml.targets.cuda.pattern import AccessPattern, Mode, Pattern, Step, reduced

_THREADS = 256
"""Of a block of independent groups."""
_MOST_THREADS = 512
"""Of a block that shares a group."""
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
_TILE_COLUMNS = 64
"""Groups side by side in one tile."""
_CLUSTER_BYTES = 1024 * 1024
"""Up to this size, a group is held by a cluster."""
_TEAM_BLOCKS = 2
"""Blocks of teams on one multiprocessor."""
_REGISTERS = 65536
"""Of a multiprocessor."""


def schedule_groups(nest: Nest, machine: Machine, alignments: Sequence[int]) -> Launch:
    """The launch of a kernel that reduces; the arguments are those of `schedule`."""
    groups = _Groups(nest, machine, alignments)
    if nest.inner_reduced:
        return groups.warps() or groups.staged() or groups.tile() or groups.team()
    return groups.tile() or groups.team()


@dataclass(frozen=True, slots=True)
class _Block:
    """How a tile is held: `cluster` blocks of `threads` threads, `across` of them side by side, `keep` units each."""

    cluster: int
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
        self.unit_bytes = max(1, sum(a.type.bytes * (1 if a.step is Step.NONE else self.vector) for a in held))
        self.registers = sum(
            -(-a.type.bytes * (1 if a.step is Step.NONE else self.vector) // 4) for a in held
        ) or 1
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
        """Groups in the registers of a block or a cluster, if they fit."""
        held = self._block()
        if held is None:
            return None
        tiles = -(-self.row_units // held.across) if self.columns else 1
        items = self.nest.group_count * tiles
        # Few groups leave most of the device idle, unless all of it shares each.
        if items * held.cluster * 2 < self.machine.multiprocessors and held.cluster * held.threads > _MOST_THREADS:
            return None
        constants = {
            "THREADS": held.threads,
            "BLOCKS": self._resident(held),
            "TX": held.across,
            "KEEP": held.keep,
            "CLUSTER": held.cluster,
            "PREFETCH": int(held.cluster > 1),
        }
        values = {"items": items, "tiles": tiles, "columns": self.row_units}
        return self._launch(
            Mode.TILE,
            constants,
            items * held.cluster,
            held.threads,
            values,
            cluster=held.cluster,
            resident=held.cluster > 1,
        )

    def _block(self) -> _Block | None:
        across = self._across()
        if self.units * self.unit_bytes * across > _CLUSTER_BYTES * (1 if across == 1 else 2):
            return None
        cluster = 1
        while cluster <= self.machine.cluster_blocks:
            most = min(_MOST_UNITS, max(1, _HELD_REGISTERS // self.registers))
            for keep in dict.fromkeys((max(1, most // 2), most)):
                deep = -(-self.units // (keep * cluster))
                threads = self._threads(across, deep)
                if threads <= _MOST_THREADS:
                    return _Block(cluster, threads, across, keep)
            cluster *= 2
        return None

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

    def _resident(self, held: _Block) -> int:
        """Blocks that a multiprocessor should run at a time."""
        lanes = self.vector if self.columns else 0
        scalars = held.keep if self.vector == 1 else 0
        registers = -(-min(248, self.registers * held.keep + 32 + lanes * 8 + scalars) // 8) * 8
        # A multiprocessor has four parts with registers of their own.
        warps = 4 * (_REGISTERS // 4 // (32 * registers))
        return max(1, min(32 * min(warps, 64) // held.threads, 32))

    def team(self) -> Launch:
        """Groups that teams of blocks read twice."""
        across = self._across()
        keep = min(_MOST_UNITS, max(1, _HELD_REGISTERS // self.registers))
        deep = _MOST_THREADS // across
        tiles = -(-self.row_units // across) if self.columns else 1
        items = self.nest.group_count * tiles
        resident = _TEAM_BLOCKS * self.machine.multiprocessors
        # Groups that the registers of all blocks hold are read only once.
        size = min(resident, -(-self.units // (keep * deep)))
        teams = min(resident // size, items)
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
        values = {
            **nest.strides(), "units": self.units, "inner": nest.inner.count // self.vector, **values
        }
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
