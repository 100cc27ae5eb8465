"""The base of kernels that reduce or scan groups: passes over a group, each of which may need results of
earlier ones, and groups in chunks that threads share.

Lanes run within a group in `row_code`, and over neighbouring groups in `column_code`. A group in chunks takes
a launch for each role: PARTIAL makes the states of chunks, COMBINE makes the states of groups from these, and
MAP stores elements. States lie in the arena: [group][chunk, and the group itself][part][column].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TypeAlias

from opendml.program.node import REDUCTIONS, Node, Operation
from opendml.targets.common.pattern import Level
from opendml.targets.cpu import ir
from opendml.targets.cpu.accumulation import AccumulationCode, State, accumulations_of
from opendml.targets.cpu.code import I64, Code
from opendml.targets.cpu.kernel_code import KernelCode, KnownAt
from opendml.targets.cpu.loads import Pointers, Values
from opendml.targets.cpu.pattern import CpuMode, CpuPattern, GroupWalk
from opendml.targets.cpu.stash import MOST_STASHED, STASHED
from opendml.targets.cpu.values import llvm_type

_WORTH_KEEPING = 10
"""Operations from which on a value is stashed rather than computed again."""
PART_BYTES = 8
"""Bytes of one part of a state in the arena: those of the widest type."""

Index: TypeAlias = ir.Value | None
"""The index of a vector of neighbouring groups. None where lanes run within a group."""
GroupBody: TypeAlias = Callable[[Index, ir.Value | None], None]
"""Adds the code for a vector of groups, of which a mask may leave some out."""


class GroupCode(KernelCode):
    """The passes of a kernel, and the states of its groups.

    Attributes:
        passes: the accumulations, by pass.
        last_pass: the number of the last pass.
        operands: the values that each pass takes of an element.
        stashed: the value of elements that the last pass keeps for the results.
    """

    def __init__(self, code: Code, pattern: CpuPattern) -> None:
        super().__init__(code, pattern)
        self.passes = accumulations_of(pattern.values)
        self.last_pass = len(self.passes) - 1
        self._depths = self._pass_counts()
        self.operands = [
            [operand for accumulation in stage for operand in accumulation.operands] for stage in self.passes
        ]
        self.stashed = self._stashed() if pattern.walk_as(GroupWalk).stashes else None
        if self.stashed is not None:
            self._stash = self.reserve(STASHED, MOST_STASHED + self.lanes)
            self.stash_origin: ir.Value = I64(0)

    def item(self, item: ir.Value) -> None:
        """Emit one item, by the role of the launch."""
        mode = self.pattern.mode
        if mode in _PARTIAL:
            self.partial(item)
        elif mode in _COMBINE:
            self.combine(item)
        elif mode in _MAP:
            self.map(item)
        else:
            self.whole(item)

    # Roles

    def whole(self, item: ir.Value) -> None:
        """Emit all passes over the groups of an item, and their results."""
        raise NotImplementedError

    def partial(self, item: ir.Value) -> None:
        """Emit one pass over a chunk, given the states of groups after earlier passes."""
        stage = self.pattern.walk_as(GroupWalk).stage
        group, chunk = self.split_item(item)
        pointers = self.tile_pointers(group)
        self.read_states(range(stage), group, self.chunks)
        self.settle(stage - 1, pointers)
        self.accumulate(stage, pointers, *self.chunk_range(chunk, self.units))
        self._write_states(stage, group, chunk)

    def combine(self, item: ir.Value) -> None:
        """Merge the states of all chunks of a group, in their order. After the last pass, store the results
        of the group."""
        stage = self.pattern.walk_as(GroupWalk).stage
        group = self.tile_of(item)
        self.read_states([stage], group, I64(0))
        with self.code.loop(I64(1), self.chunks) as chunk:

            def merge(index: Index, mask: ir.Value | None) -> None:
                for accumulation in self.passes[stage]:
                    other = self.read_state(stage, accumulation, group, chunk, index, mask)
                    merged = accumulation.merge(
                        self.builder, self.group_lanes, self.state(accumulation, index), other
                    )
                    self.set_state(accumulation, index, merged)

            self.each_vector(merge)
        self._write_states(stage, group, self.chunks)
        if stage == self.last_pass and self.stores(of_groups=True):
            pointers = self.tile_pointers(group)
            self.read_states(range(stage), group, self.chunks)
            self.settle(stage, pointers, stores_groups=True)

    def map(self, item: ir.Value) -> None:
        """Store the elements of a chunk, given the states of its group."""
        group, chunk = self.split_item(item)
        pointers = self.tile_pointers(group)
        self.read_states(range(len(self.passes)), group, self.chunks)
        self.settle(self.last_pass, pointers)
        self.store_units(pointers, *self.chunk_range(chunk, self.units))

    def split_item(self, item: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Return the group and the chunk of an item."""
        position, chunk = self.code.split(item, [I64(0), self.chunks])
        return self.tile_of(position), chunk

    # Layouts

    group_lanes = 1
    """The number of groups that a vector has."""

    def tile_of(self, position: ir.Value) -> ir.Value:
        """Go to a tile of neighbouring groups, and return its group. A tile is one group unless lanes run
        over groups."""
        return position

    def tile_pointers(self, group: ir.Value) -> Pointers:
        """Return the addresses of the accesses at the first element of a tile."""
        return self.group_pointers(group)

    def each_vector(self, body: GroupBody) -> None:
        """Emit code for every vector of groups in the tile."""
        raise NotImplementedError

    def state(self, accumulation: AccumulationCode, index: Index) -> State:
        """Return the states of a vector of groups."""
        raise NotImplementedError

    def set_state(
        self, accumulation: AccumulationCode, index: Index, state: State, mask: ir.Value | None = None
    ) -> None:
        """Replace the states of a vector of groups, in the lanes of a mask."""
        raise NotImplementedError

    def accumulate(self, stage: int, pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        """Emit one pass over some units of the tile at `pointers`: from no states to those of the units."""
        raise NotImplementedError

    def settle(self, stage: int, pointers: Pointers, stores_groups: bool = False) -> None:
        """Compute what later passes and elements need of groups after a pass (-1: before all). Optionally
        store the results of groups."""
        raise NotImplementedError

    def store_units(self, pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        """Store the elements of some units of the tile at `pointers`."""
        raise NotImplementedError

    # States

    def variables(self, accumulation: AccumulationCode, lanes: int, initial: State | None = None) -> State:
        """Return variables for a state."""
        values: Sequence[ir.Value | None] = initial or [None] * len(accumulation.parts)
        return [
            self.code.local(llvm_type(part, lanes), value)
            for part, value in zip(accumulation.parts, values, strict=True)
        ]

    def read_state(
        self,
        stage: int,
        accumulation: AccumulationCode,
        group: ir.Value,
        chunk: ir.Value,
        index: Index,
        mask: ir.Value | None,
    ) -> State:
        """Return the state of a chunk of a group, or of the group itself, which lies behind its chunks."""
        places = self._state_addresses(stage, accumulation, group, chunk, index)
        return [
            self.code.load(place, part, self.group_lanes, mask)
            for place, part in zip(places, accumulation.parts, strict=True)
        ]

    def write_state(
        self,
        stage: int,
        accumulation: AccumulationCode,
        group: ir.Value,
        chunk: ir.Value,
        state: State,
        index: Index,
        mask: ir.Value | None,
    ) -> None:
        """Store the state of a chunk of a group, or of the group itself."""
        places = self._state_addresses(stage, accumulation, group, chunk, index)
        for place, part, value in zip(places, accumulation.parts, state, strict=True):
            self.code.store(place, value, part, mask)

    def read_states(self, stages: Iterable[int], group: ir.Value, chunk: ir.Value) -> None:
        """Load the states of a chunk of a group, or of the group itself, for some passes."""
        pairs = [(stage, each) for stage in stages for each in self.passes[stage]]

        def read(index: Index, mask: ir.Value | None) -> None:
            for stage, accumulation in pairs:
                state = self.read_state(stage, accumulation, group, chunk, index, mask)
                self.set_state(accumulation, index, state)

        if pairs:
            self.each_vector(read)

    def _write_states(self, stage: int, group: ir.Value, chunk: ir.Value) -> None:
        def write(index: Index, mask: ir.Value | None) -> None:
            for accumulation in self.passes[stage]:
                state = self.state(accumulation, index)
                self.write_state(stage, accumulation, group, chunk, state, index, mask)

        self.each_vector(write)

    def _state_addresses(
        self, stage: int, accumulation: AccumulationCode, group: ir.Value, chunk: ir.Value, index: Index
    ) -> list[ir.Value]:
        """Return the addresses of the parts of a state in the arena."""
        before = [each for earlier in self.passes[:stage] for each in earlier]
        before += self.passes[stage][: self.passes[stage].index(accumulation)]
        number = self.builder.add(self.builder.mul(group, self.builder.add(self.chunks, I64(1))), chunk)
        first = self.builder.mul(number, I64(_part_count(chain(*self.passes))))
        first = self.builder.add(first, I64(_part_count(before)))
        result = []
        for position, part in enumerate(accumulation.parts):
            offset = self.builder.add(first, I64(position))
            if index is not None:
                offset = self.builder.mul(offset, self.inner)
            address = self.code.element_at(self.arena(), offset, I64(PART_BYTES))
            if index is not None:
                address = self.code.element_at(address, index, I64(part.bytes))
            result.append(address)
        return result

    # Values

    def kept(self, level: Level) -> dict[int, Node]:
        """Return the nodes up to `level` that elements are made of: results of reductions, or values of a
        group, but not those of all groups in a tile."""
        evaluated = self.needed.union(*map(self.below_reductions, self.operands))
        users = [node for node in self.nodes if id(node) in evaluated and self.levels[id(node)] > level]
        wanted = [operand for node in users for operand in node.operands]
        wanted += [*self.pattern.values, *chain(*self.operands)]
        return {id(node): node for node in wanted if Level.TILE < self.levels[id(node)] <= level}

    def found(self, stage: int, level: Level) -> dict[int, Node]:
        """Return the nodes of `kept` that are known after a pass."""
        return {key: node for key, node in self.kept(level).items() if self._depths[key] <= stage + 1}

    def of_tile(self, pointers: Pointers) -> Values:
        """Return the values that are the same for all groups of the tile at `pointers`."""
        roots = [*self.pattern.values, *chain(*self.operands)]
        return self.evaluate(Level.TILE, 1, pointers, {}, roots=roots)

    def adds_together(self, stage: int) -> bool:
        """Return whether a pass takes several elements of a group at less cost than one by one."""
        return any(accumulation.adds_together for accumulation in self.passes[stage])

    def operand_vectors(self, accumulation: AccumulationCode, lanes: int, values: Values) -> State:
        """Return the values that an accumulation takes of an element."""
        return [self.vector(operand, lanes, values) for operand in accumulation.operands]

    def stash(self, values: Values, pointers: Pointers, index: ir.Value) -> None:
        """Keep the stashed value of a vector of elements for the results."""
        if self.stashed is not None:
            value = self.vector(self.stashed, self.lanes, values)
            self.code.store(self._stash_address(pointers, index), value, STASHED)

    def store_range(self, pointers: Pointers, start: ir.Value, stop: ir.Value, known: KnownAt) -> None:
        """Store the elements of a range, without computing the stashed value again."""
        kept = self.stashed
        if kept is None:
            super().store_range(pointers, start, stop, known)
            return

        def known_at(index: ir.Value) -> Values:
            value = self.code.load(self._stash_address(pointers, index), STASHED, self.lanes)
            return known(index) | {id(kept): value}

        super().store_range(pointers, start, stop, known_at)

    def _stash_address(self, pointers: Pointers, index: ir.Value) -> ir.Value:
        counter = len(self.pattern.loads) - 1
        position = self.builder.ptrtoint(pointers[counter], I64)
        position = self.builder.add(position, self.builder.mul(index, self.steps[counter]))
        return self.code.offset(self._stash, self.builder.add(self.stash_origin, position))

    def _stashed(self) -> Node | None:
        """Return the one value of elements that both the last pass and the results compute, if it is worth
        stashing."""
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

    def _pass_counts(self) -> dict[int, int]:
        """Return for every node the number of passes after which it is known."""
        depths: dict[int, int] = {}
        for node in self.nodes:
            depth = max((depths[id(operand)] for operand in node.operands), default=0)
            depths[id(node)] = depth + (node.operation in REDUCTIONS)
        return depths


def _part_count(accumulations: Iterable[AccumulationCode]) -> int:
    return sum(len(each.parts) for each in accumulations)


_PARTIAL: Sequence[CpuMode] = (CpuMode.ROWS_PARTIAL, CpuMode.COLUMNS_PARTIAL)
_COMBINE: Sequence[CpuMode] = (
    CpuMode.ROWS_COMBINE,
    CpuMode.COLUMNS_COMBINE,
    CpuMode.SCAN_ROWS_COMBINE,
    CpuMode.SCAN_COLUMNS_COMBINE,
)
_MAP: Sequence[CpuMode] = (
    CpuMode.ROWS_MAP,
    CpuMode.COLUMNS_MAP,
    CpuMode.SCAN_ROWS_MAP,
    CpuMode.SCAN_COLUMNS_MAP,
)
