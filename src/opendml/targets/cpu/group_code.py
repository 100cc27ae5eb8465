"""The common part of kernels that reduce: passes over a group, each of which may need what earlier ones
found."""

from __future__ import annotations

from itertools import chain

from llvmlite import ir

from opendml.program.node import REDUCTIONS, Node, Operation
from opendml.targets.common.pattern import Level
from opendml.targets.cpu.accumulation import AccumulationCode, State, accumulations_of
from opendml.targets.cpu.code import I64
from opendml.targets.cpu.kernel_code import KernelCode, KnownAt, Pointers, Values
from opendml.targets.cpu.pattern import CpuPattern, GroupWalk
from opendml.targets.cpu.stash import MOST_STASHED, STASHED
from opendml.targets.cpu.values import splat

_WORTH_KEEPING = 10
"""Operations from which on a value is kept rather than computed again."""
PART_BYTES = 8
"""Room for one part of a state in the arena."""


class GroupCode(KernelCode):
    """The accumulations of a kernel, by pass, and which values each pass and the results need."""

    def __init__(self, function: ir.Function, pattern: CpuPattern, lanes: int) -> None:
        super().__init__(function, pattern, lanes)
        self.passes = accumulations_of(pattern.values)
        self.last_pass = len(self.passes) - 1
        self.depths = self._depths()
        self.operands = [
            [operand for accumulation in stage for operand in accumulation.operands] for stage in self.passes
        ]
        """The values that each pass takes in of an element."""
        self.stashed = self._stashed() if pattern.walk_as(GroupWalk).stashes else None
        if self.stashed is not None:
            self._stash = self.room(STASHED, MOST_STASHED + lanes)
            self.stash_origin: ir.Value = I64(0)

    def kept(self, level: Level) -> dict[int, Node]:
        """The nodes up to `level` (made of reductions, or of a group, but not those of all groups in a tile)
        that elements are made of."""
        evaluated = self.needed.union(*map(self.below_reductions, self.operands))
        users = [node for node in self.nodes if id(node) in evaluated and self.levels[id(node)] > level]
        wanted = [operand for node in users for operand in node.operands]
        wanted += [*self.pattern.values, *chain(*self.operands)]
        return {id(node): node for node in wanted if Level.TILE < self.levels[id(node)] <= level}

    def found(self, stage: int, level: Level) -> dict[int, Node]:
        """The nodes of `kept` that are known after a pass."""
        return {key: node for key, node in self.kept(level).items() if self.depths[key] <= stage + 1}

    def of_tile(self, pointers: Pointers) -> Values:
        """The values that are the same for all groups of a tile, which begins at `pointers`."""
        return self.evaluate(
            Level.TILE, 1, pointers, {}, roots=[*self.pattern.values, *chain(*self.operands)]
        )

    def adds_together(self, stage: int) -> bool:
        """Whether a pass takes in several elements of a group at less cost than one by one."""
        return any(accumulation.adds_together for accumulation in self.passes[stage])

    def parts_before(self, stage: int, accumulation: AccumulationCode) -> int:
        """The number of parts of all accumulations before this one."""
        before = [each for earlier in self.passes[:stage] for each in earlier]
        before += self.passes[stage][: self.passes[stage].index(accumulation)]
        return sum(len(each.parts) for each in before)

    @property
    def part_count(self) -> int:
        """The number of parts of all accumulations."""
        return sum(len(each.parts) for stage in self.passes for each in stage)

    def chunk_position(self, group: ir.Value, chunk: ir.Value) -> ir.Value:
        """The number of a chunk among those of all groups. Behind its chunks, a group itself has a place."""
        places = self.builder.add(self.chunks, I64(1))
        return self.builder.add(self.builder.mul(group, places), chunk)

    def stash(self, values: Values, pointers: Pointers, index: ir.Value) -> None:
        """Keeps what the results will need of a vector of elements."""
        if self.stashed is not None:
            value = splat(self.builder, self.value(self.stashed, self.lanes, values), self.lanes)
            self.code.store(self._stash_place(pointers, index), value, STASHED)

    def store_range(self, pointers: Pointers, start: ir.Value, stop: ir.Value, known: KnownAt) -> None:
        """The element-wise stores of a range; what was kept is not computed again."""
        kept = self.stashed
        if kept is None:
            super().store_range(pointers, start, stop, known)
            return

        def known_at(index: ir.Value) -> Values:
            value = self.code.load(self._stash_place(pointers, index), STASHED, self.lanes)
            return known(index) | {id(kept): value}

        super().store_range(pointers, start, stop, known_at)

    def _stash_place(self, pointers: Pointers, index: ir.Value) -> ir.Value:
        counter = len(self.pattern.loads) - 1
        position = self.builder.ptrtoint(pointers[counter], I64)
        position = self.builder.add(position, self.builder.mul(index, self.steps[counter]))
        return self.code.offset(self._stash, self.builder.add(self.stash_origin, position))

    def _stashed(self) -> Node | None:
        """The one value of elements that both the last pass and the results compute, and that is worth it."""
        both = self.below_reductions(self.operands[self.last_pass]) & self.needed
        shared = [
            node
            for node in self.nodes
            if id(node) in both
            and self.levels[id(node)] is Level.ELEMENT
            and node.operation is not Operation.SOURCE
        ]
        users = [node for node in self.nodes if id(node) in self.needed - both]
        wanted = {id(operand) for node in users for operand in node.operands}
        wanted |= {id(root) for root in self.pattern.values}
        ends = [node for node in shared if id(node) in wanted]
        if len(ends) != 1 or len(shared) < _WORTH_KEEPING or ends[0].type is not STASHED:
            return None
        return ends[0]

    def operand_values(self, accumulation: AccumulationCode, lanes: int, values: Values) -> State:
        """The values that an accumulation takes in of an element."""
        return [self.value(operand, lanes, values) for operand in accumulation.operands]

    def _depths(self) -> dict[int, int]:
        """For every node, the number of passes that it takes to know it."""
        depths: dict[int, int] = {}
        for node in self.nodes:
            depth = max((depths[id(operand)] for operand in node.operands), default=0)
            depths[id(node)] = depth + (node.operation in REDUCTIONS)
        return depths
