"""Kernels whose groups are reduced along the innermost loop: lanes run within a group, and are put together
at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir

from opendml.program.node import Node
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.accumulations import TOGETHER
from opendml.targets.common.pattern import Level, Step
from opendml.targets.cpu.accumulation import AccumulationCode, State
from opendml.targets.cpu.code import I64
from opendml.targets.cpu.group_code import PART_BYTES, GroupCode
from opendml.targets.cpu.kernel_code import Pointers, Values
from opendml.targets.cpu.pattern import LINE, CpuMode, ParameterTable, RowWalk
from opendml.targets.cpu.values import llvm_type, scalar_llvm_type, splat

BATCH = 16
"""Groups that share one vector computation of their statistics."""

_AHEAD_BYTES = 4096
"""How far ahead groups in chunks, elements that are taken in together, and short rows are asked for: beside
the arithmetic the processor itself does not look as far. Sums of 8 MB then take three quarters of the time,
and so do normalizations of 51 MB in rows of 56 FLOAT16."""

_Kept = dict[int, tuple[Node, ir.Value]]
"""Statistics of a batch, and where they lie."""


class RowCode(GroupCode):
    """Whole groups, a batch of them per item: a pass over each, then the statistics of all at once, then the
    next pass; last the results of each."""

    @property
    def walk(self) -> RowWalk:
        """The part of the pattern that these modes have."""
        return self.pattern.walk_as(RowWalk)

    def item(self, item: ir.Value) -> None:
        """One batch."""
        first, last = self.chunk_range(item, self.groups)
        kept: _Kept = {}
        values: Values = {}
        for number, stage in enumerate(self.passes):
            rooms = [[self._slot(part) for part in accumulation.parts] for accumulation in stage]
            with self.walk_groups(first, last) as (group, pointers):
                known = self._of_group(kept, group, first)
                self._find_stash(group, first)
                states = self.accumulated(number, pointers, known, I64(0), self.units)
                for accumulation, state, slots in zip(stage, states, rooms, strict=True):
                    for part, value, slot in zip(accumulation.parts, state, slots, strict=True):
                        self.builder.store(value, self._in_batch(slot, group, first, part))
            for accumulation, slots in zip(stage, rooms, strict=True):
                parts = zip(slots, accumulation.parts, strict=True)
                state = [self.builder.load(slot, typ=llvm_type(part, BATCH)) for slot, part in parts]
                values |= accumulation.results(self.builder, BATCH, state, self.elements)
            found = self.found(number, Level.STATISTIC)
            values = self.evaluate(Level.STATISTIC, BATCH, [], values, roots=found.values())
            kept |= self._put_down(values, {key: node for key, node in found.items() if key not in kept})
        with self.walk_groups(first, last) as (group, pointers):
            self._find_stash(group, first)
            known = self.evaluate(Level.GROUP, 1, pointers, self._of_group(kept, group, first))
            self.store_group(pointers, known)
            self.store_units(pointers, known, I64(0), self.units)

    def _find_stash(self, group: ir.Value, first: ir.Value) -> None:
        if self.stashed is not None:
            size = self.parameter(ParameterTable.STASHED_BYTES)
            self.stash_origin = self.builder.mul(self.builder.sub(group, first), size)

    def _slot(self, type: ScalarType) -> ir.Value:
        return self.code.room(type, BATCH)

    def _in_batch(self, slot: ir.Value, group: ir.Value, first: ir.Value, type: ScalarType) -> ir.Value:
        return self.code.offset(slot, self.builder.mul(self.builder.sub(group, first), I64(type.bytes)))

    def _of_group(self, kept: _Kept, group: ir.Value, first: ir.Value) -> Values:
        return {
            key: self.code.load(self._in_batch(slot, group, first, node.type), node.type, 1)
            for key, (node, slot) in kept.items()
        }

    def _put_down(self, values: Values, statistics: dict[int, Node]) -> _Kept:
        """Keeps statistics of the batch."""
        kept: _Kept = {}
        for key, node in statistics.items():
            kept[key] = node, self._slot(node.type)
            self.code.store(kept[key][1], splat(self.builder, values[key], BATCH), node.type)
        return kept

    def store_units(self, pointers: Pointers, known: Values, first: ir.Value, last: ir.Value) -> None:
        """The elements of some units of a group."""
        if self.stores(of_groups=False):
            with self.walk_units(pointers, first, last) as (row, start, stop):
                self.map_block(row, known, start, stop)

    @contextmanager
    def walk_units(
        self, pointers: Pointers, first: ir.Value, last: ir.Value
    ) -> Iterator[tuple[Pointers, ir.Value, ir.Value]]:
        """A loop over units of the group at `pointers`: where each row starts, and the unit's range. Here a
        unit is a row."""
        with self.walk_rows(pointers, first, last) as (_, row):
            yield row, I64(0), self.inner

    # Passes

    def accumulated(
        self, number: int, pointers: Pointers, known: Values, first: ir.Value, last: ir.Value
    ) -> list[State]:
        """The states of one pass over some units of the group at `pointers`; `known` is what is known of
        it."""
        stage, needed = self.passes[number], self.operands[number]
        values = known
        for level in (Level.GROUP, Level.ROW, Level.ELEMENT):
            values = self.evaluate(level, 1, pointers, values, roots=needed)
        slots = []
        for accumulation in stage:
            start = accumulation.start(self.builder, 1, self.operand_values(accumulation, 1, values))
            slots.append([self._vectors(accumulation, start) for _ in range(self._at_once(number))])
        group = self.evaluate(Level.GROUP, 1, pointers, known, roots=needed)
        with self.walk_units(pointers, first, last) as (row, begin, end):
            self._take_in(
                number, slots, row, self.evaluate(Level.ROW, 1, row, group, roots=needed), begin, end
            )
        return [self._folded(*pair) for pair in zip(stage, slots, strict=True)]

    def _at_once(self, number: int) -> int:
        """States of their own."""
        if not self.walk.long_rows or self._together(number) > 1:
            return 1
        return min(accumulation.lanes_at_once for accumulation in self.passes[number])

    def _together(self, number: int) -> int:
        """Vectors that a state takes in at once."""
        return TOGETHER if self.walk.long_rows and self.adds_together(number) else 1

    def _vectors(self, accumulation: AccumulationCode, start: State) -> State:
        """Variables for a state in every lane."""
        return [
            self.code.local(llvm_type(part, self.lanes), splat(self.builder, value, self.lanes))
            for part, value in zip(accumulation.parts, start, strict=True)
        ]

    def _take_in(
        self,
        number: int,
        slots: list[list[State]],
        pointers: Pointers,
        known: Values,
        start: ir.Value,
        stop: ir.Value,
    ) -> None:
        """Emit a block of a row: full strides over all vectors of states, then vectors into the first one."""
        stage, needed = self.passes[number], self.operands[number]

        def add(which: int, indices: Sequence[ir.Value], mask: ir.Value | None) -> None:
            vectors = []
            for index in indices:
                vectors.append(self.evaluate(Level.ELEMENT, self.lanes, pointers, known, index, mask, needed))
                if number == self.last_pass:
                    self.stash(vectors[-1], pointers, index)
            for accumulation, states in zip(stage, slots, strict=True):
                elements = [
                    [
                        splat(self.builder, value, self.lanes)
                        for value in self.operand_values(accumulation, self.lanes, values)
                    ]
                    for values in vectors
                ]
                before = [self.code.get(slot) for slot in states[which]]
                in_order = self.walk.in_order
                after = accumulation.add_together(self.builder, self.lanes, before, elements, in_order)
                for slot, old, new in zip(states[which], before, after, strict=True):
                    self.code.set(slot, new if mask is None else self.builder.select(mask, new, old))

        at_once, together = self._at_once(number), self._together(number)
        stride = self.lanes * at_once * together
        with self.code.loop(start, stop, stride) as index:
            if self.pattern.mode is CpuMode.ROWS_PARTIAL or together > 1 or not self.walk.long_rows:
                self._ask_for(pointers, index, stride)
            elif 0 < number == self.last_pass and self.pattern.mode is CpuMode.ROWS:
                self._prefetch_next_batch(pointers, index, stride)
            for which in range(at_once):
                first = which * together
                distances = [each * self.lanes for each in range(first, first + together)]
                add(which, [self.builder.add(index, I64(distance)) for distance in distances], None)
        rest = self.builder.and_(self.builder.sub(stop, start), I64(stride - 1))
        self.code.vector_loop(self.builder.sub(stop, rest), stop, lambda i, mask: add(0, [i], mask))

    def _prefetch_next_batch(self, pointers: Pointers, index: ir.Value, stride: int) -> None:
        """Prefetch the elements of a stride in the next batch. This pass finds its own elements in the
        caches, so it computes while they arrive. The first pass of the next batch would wait for them."""
        if not self.group_counts:
            return
        innermost = len(self.group_counts) - 1
        for position, access in enumerate(self.pattern.loads):
            if access.step is Step.CONTIGUOUS and not access.counter:
                step = self.parameter(self.layout.group_stride(position, innermost))
                place = self.code.offset(pointers[position], self.builder.mul(index, self.steps[position]))
                place = self.code.offset(place, self.builder.mul(self.chunk, step))
                for distance in range(0, stride * access.type.bytes, LINE):
                    self.code.prefetch(self.code.offset(place, I64(distance)), level=2)

    def _ask_for(self, pointers: Pointers, index: ir.Value, stride: int) -> None:
        """Asks for what a stride reads that is a little further on."""
        for position, access in enumerate(self.pattern.loads):
            if access.step is Step.CONTIGUOUS and not access.counter:
                place = self.code.offset(pointers[position], self.builder.mul(index, self.steps[position]))
                for distance in range(0, stride * access.type.bytes, LINE):
                    self.code.prefetch(self.code.offset(place, I64(_AHEAD_BYTES + distance)))

    def _folded(self, accumulation: AccumulationCode, vectors: list[State]) -> State:
        """The state of all lanes of all vectors."""
        state, *others = [[self.code.get(slot) for slot in vector] for vector in vectors]
        for other in others:
            state = accumulation.merge(self.builder, self.lanes, state, other)
        return accumulation.folded(self.builder, self.lanes, state)


class SplitRowCode(RowCode):
    """Large groups, in chunks: one pass over a chunk, or a group's state from those of its chunks, or the
    elements of a chunk from the state of its group.

    States: [group][chunk, and the group itself][part].
    """

    def item(self, item: ir.Value) -> None:
        """One chunk, or one group."""
        stage = self.walk.stage
        if self.pattern.mode is CpuMode.ROWS_COMBINE:
            self._combine(stage, item)
            return
        group, chunk = self.code.split(item, [I64(0), self.chunks])
        first, last = self.chunk_range(chunk, self.units)
        pointers = self.group_pointers(group)
        if self.pattern.mode is CpuMode.ROWS_PARTIAL:
            known = self._statistics(group, stage)
            states = self.accumulated(stage, pointers, known, first, last)
            for accumulation, state in zip(self.passes[stage], states, strict=True):
                self.write_state(stage, accumulation, group, chunk, state)
        else:
            known = self.evaluate(Level.GROUP, 1, pointers, self._statistics(group, len(self.passes)))
            self.store_units(pointers, known, first, last)

    @contextmanager
    def walk_units(
        self, pointers: Pointers, first: ir.Value, last: ir.Value
    ) -> Iterator[tuple[Pointers, ir.Value, ir.Value]]:
        """Here a unit is a block of a row."""
        with self.code.loop(first, last) as unit:
            row, start, stop = self.block_range(unit)
            yield self.row_pointers(pointers, row), start, stop

    def _combine(self, stage: int, group: ir.Value) -> None:
        """The states of all chunks of a group, in their order."""
        for accumulation in self.passes[stage]:
            slots = [
                self.code.local(scalar_llvm_type(part), value)
                for part, value in zip(
                    accumulation.parts, self.read_state(stage, accumulation, group, I64(0)), strict=True
                )
            ]
            with self.code.loop(I64(1), self.chunks) as chunk:
                state = [self.code.get(slot) for slot in slots]
                other = self.read_state(stage, accumulation, group, chunk)
                merged = accumulation.merge(self.builder, 1, state, other)
                for slot, value in zip(slots, merged, strict=True):
                    self.code.set(slot, value)
            state = [self.code.get(slot) for slot in slots]
            self.write_state(stage, accumulation, group, self.chunks, state)
        if stage == self.last_pass and self.stores(of_groups=True):
            pointers = self.group_pointers(group)
            known = self._statistics(group, len(self.passes))
            self.store_group(pointers, self.evaluate(Level.GROUP, 1, pointers, known))

    def _statistics(self, group: ir.Value, stages: int) -> Values:
        """The reductions of a group, from the states that its first passes have found."""
        values: Values = {}
        for number in range(stages):
            for accumulation in self.passes[number]:
                state = self.read_state(number, accumulation, group, self.chunks)
                values |= accumulation.results(self.builder, 1, state, self.elements)
            found = self.found(number, Level.STATISTIC)
            values = self.evaluate(Level.STATISTIC, 1, [], values, roots=found.values())
        return values

    def _places(
        self, stage: int, accumulation: AccumulationCode, group: ir.Value, chunk: ir.Value
    ) -> list[ir.Value]:
        position = self.builder.mul(self.chunk_position(group, chunk), I64(self.part_count))
        position = self.builder.add(position, I64(self.parts_before(stage, accumulation)))
        origin = self.code.offset(self.arena(), self.builder.mul(position, I64(PART_BYTES)))
        return [
            self.code.offset(origin, I64(PART_BYTES * number)) for number in range(len(accumulation.parts))
        ]

    def write_state(
        self, stage: int, accumulation: AccumulationCode, group: ir.Value, chunk: ir.Value, state: State
    ) -> None:
        """Puts down the state of a chunk of a group, or behind the chunks of the group itself."""
        for place, value in zip(self._places(stage, accumulation, group, chunk), state, strict=True):
            self.builder.store(value, place)

    def read_state(
        self, stage: int, accumulation: AccumulationCode, group: ir.Value, chunk: ir.Value
    ) -> State:
        """The state of a chunk of a group, or of the group itself."""
        places = self._places(stage, accumulation, group, chunk)
        return [
            self.code.load(place, part, 1) for place, part in zip(places, accumulation.parts, strict=True)
        ]
