"""Kernels whose groups lie side by side in memory: lanes run over groups, a tile of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from opendml.program.node import Node
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.accumulations import TOGETHER
from opendml.targets.common.pattern import Level, Step
from opendml.targets.cpu.accumulation import AccumulationCode, State
from opendml.targets.cpu.code import I64
from opendml.targets.cpu.group_code import PART_BYTES, GroupCode
from opendml.targets.cpu.kernel_code import Pointers, Values
from opendml.targets.cpu.pattern import (
    LINE,
    ColumnWalk,
    CpuMode,
    CpuPattern,
    RowOrder,
)
from opendml.targets.cpu.stash import STASHED
from opendml.targets.cpu.values import splat

_ROWS_AT_ONCE = 4
"""Rows taken in per visit of the states of a tile. Where rows follow each other in memory it is one, so that
they are one stream."""
_ROWS_AHEAD = 4
"""Rows of results after which one is asked for, where it begins: rows of a tile lie too far apart for the
processor to look ahead. Normalizations of 51 MB of FLOAT16 side by side then take five sixths of the time."""
_LINES_AHEAD = 4
"""Cache lines of such a row, if it has as many: the processor foresees the others, and asking for all takes
longer."""
_MANY_ROWS = 4
"""The same where a vector is multiplied by a matrix, while the next are asked for."""

_States = dict[int, list[ir.Value]]
"""Room for the states of a tile, part by part, by accumulation."""


class ColumnCode(GroupCode):
    """Whole tiles: a pass over all rows, the statistics of all groups, the next pass; last the results row by
    row."""

    @property
    def walk(self) -> ColumnWalk:
        """The part of the pattern that these modes have."""
        return self.pattern.walk_as(ColumnWalk)

    def __init__(self, function: ir.Function, pattern: CpuPattern, lanes: int) -> None:
        super().__init__(function, pattern, lanes)
        self._states: _States = {
            id(accumulation): [self._tile(part) for part in accumulation.parts]
            for stage in self.passes
            for accumulation in stage
        }
        self._kept: dict[int, tuple[Node, ir.Value]] = {}
        self._of_tile: Values = {}

    def item(self, item: ir.Value) -> None:
        """One tile."""
        self._kept = {}
        group, self.start, self.stop = self.block_range(item)
        pointers = self._tile_pointers(group)
        if self.stashed is not None:
            self.stash_origin = self.builder.mul(self.start, I64(-STASHED.bytes))
        for number in range(len(self.passes)):
            self._pass(number, pointers, I64(0), self.units)
            self._settle(number, pointers)
        self._store_rows(pointers, I64(0), self.units)

    def _tile_pointers(self, group: ir.Value) -> Pointers:
        """Where the accesses stand at the first group of a tile, whose common values are computed."""
        pointers = self.group_pointers(group)
        self._of_tile = self.of_tile(pointers)
        return pointers

    def _tile(self, type: ScalarType) -> ir.Value:
        """Room for one value of each group, and for the lanes of a last vector that no group has."""
        return self.room(type, self.walk.tile + self.lanes)

    def _at(self, room: ir.Value, type: ScalarType, index: ir.Value) -> ir.Value:
        return self.code.offset(room, self.builder.mul(self.builder.sub(index, self.start), I64(type.bytes)))

    def state(self, accumulation: AccumulationCode, index: ir.Value) -> State:
        """The states of a vector of groups."""
        return self._read(self._states, accumulation, index)

    def set_state(
        self, accumulation: AccumulationCode, index: ir.Value, state: State, mask: ir.Value | None = None
    ) -> None:
        """Replaces them; those outside the mask stay."""
        self._write(self._states, accumulation, index, state, mask)

    def _read(self, rooms: _States, accumulation: AccumulationCode, index: ir.Value) -> State:
        parts = zip(rooms[id(accumulation)], accumulation.parts, strict=True)
        return [self.code.load(self._at(room, part, index), part, self.lanes) for room, part in parts]

    def _write(
        self,
        rooms: _States,
        accumulation: AccumulationCode,
        index: ir.Value,
        state: State,
        mask: ir.Value | None,
    ) -> None:
        for room, part, value in zip(rooms[id(accumulation)], accumulation.parts, state, strict=True):
            self.code.store(self._at(room, part, index), value, part, mask)

    def _known(self, index: ir.Value) -> Values:
        """The values that are kept of a vector of groups, and those of the tile."""
        return self._of_tile | {
            key: self.code.load(self._at(room, node.type, index), node.type, self.lanes)
            for key, (node, room) in self._kept.items()
        }

    # Passes

    def _pass(self, number: int, pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        """One pass over some rows: the odd ones first, which also start the states, then several per
        visit."""
        if self.walk.order is RowOrder.WHOLE:
            self._take_in(number, pointers, first, 1, fresh=True)
            with self.code.loop(self.builder.add(first, I64(1)), last) as row:
                self._take_in(number, pointers, row, 1, fresh=False)
            return
        if self.walk.order is RowOrder.MANY:
            if self.pattern.mode is CpuMode.COLUMNS:
                self._take_in_chunks(number, pointers)
            else:
                self._take_in_many(number, pointers, first, last)
            return
        if self.adds_together(number):
            self._take_in_together(number, pointers, first, last)
            return
        count = self.builder.sub(last, first)
        odd = self.builder.and_(self.builder.sub(count, I64(1)), I64(_ROWS_AT_ONCE - 1))
        done = self.builder.add(self.builder.add(first, odd), I64(1))
        self._choose(odd, lambda rows: self._take_in(number, pointers, first, rows + 1, fresh=True))
        with self.code.loop(done, last, _ROWS_AT_ONCE) as row:
            self._take_in(number, pointers, row, _ROWS_AT_ONCE, fresh=False)

    def _take_in_chunks(self, number: int, pointers: Pointers) -> None:
        """The same, with states of each chunk that are put together as those of items are."""
        stage = self.passes[number]
        totals = {id(each): [self._tile(part) for part in each.parts] for each in stage}
        with self.code.loop(I64(0), self.chunks) as chunk:
            begin, end = self.chunk_range(chunk, self.units)
            self._take_in_many(number, pointers, begin, end)
            is_first = self.builder.icmp_signed("==", chunk, I64(0))

            def put_together(index: ir.Value, mask: ir.Value | None) -> None:
                for accumulation in stage:
                    state, before = (
                        self._read(rooms, accumulation, index) for rooms in (self._states, totals)
                    )
                    merged = accumulation.merge(self.builder, self.lanes, before, state)
                    pairs = zip(state, merged, strict=True)
                    total = [self.builder.select(is_first, *pair) for pair in pairs]
                    for rooms in (self._states, totals):
                        self._write(rooms, accumulation, index, total, mask)

            self.code.vector_loop(self.start, self.stop, put_together)

    def _take_in_many(self, number: int, pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        """The same for many rows at once."""
        self._take_in(number, pointers, first, 0, fresh=True)
        odd = self.builder.and_(self.builder.sub(last, first), I64(_MANY_ROWS - 1))
        done = self.builder.add(first, odd)
        with self.code.loop(first, done) as row:
            self._take_in(number, pointers, row, 1, fresh=False)
        with self.code.loop(done, last, _MANY_ROWS) as row:
            self._take_in(number, pointers, row, _MANY_ROWS, fresh=False)

    def _take_in_together(self, number: int, pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        """The same for rows of which TOGETHER cost less than one after the other: the odd ones first, so that
        few rows are one or two visits."""
        count = self.builder.sub(last, first)
        odd = self.builder.and_(count, I64(_ROWS_AT_ONCE - 1))
        self._choose(odd, lambda rows: self._take_in(number, pointers, first, rows, fresh=True))
        some = self.builder.add(first, odd)
        done = self.builder.add(first, self.builder.and_(count, I64(TOGETHER - 1)))
        with self.code.loop(some, done, _ROWS_AT_ONCE) as row:
            self._take_in(number, pointers, row, _ROWS_AT_ONCE, fresh=False)
        with self.code.loop(done, last, TOGETHER) as row:
            self._take_in(number, pointers, row, TOGETHER, fresh=False)

    def _ask_for_later(self, rows: Sequence[Pointers], index: ir.Value) -> None:
        """Asks for the elements at an index of as many rows behind these."""
        for position, access in enumerate(self.pattern.loads):
            if access.step is Step.CONTIGUOUS and access.level is Level.ELEMENT and not access.counter:
                stride = self.parameter(self.layout.row_stride(position, self.pattern.rows - 1))
                distance = self.builder.mul(index, self.steps[position])
                distance = self.builder.add(distance, self.builder.mul(stride, I64(len(rows))))
                # As many rows as a matrix has between are more than the first cache holds.
                level = 2 if self.walk.order is RowOrder.MANY else 1
                for row in rows:
                    self.code.prefetch(self.code.offset(row[position], distance), level=level)

    def _choose(self, choice: ir.Value, emit: Callable[[int], None]) -> None:
        """Emits one case for each value below _ROWS_AT_ONCE."""
        for case in range(_ROWS_AT_ONCE):
            with self.builder.if_then(self.builder.icmp_signed("==", choice, I64(case))):
                emit(case)

    def _take_in(self, number: int, pointers: Pointers, first: ir.Value, count: int, fresh: bool) -> None:
        """Neighbouring rows into the states; fresh ones start from the first row of the group, which all its
        chunks share."""
        stage, needed, in_order = self.passes[number], self.operands[number], self.walk.in_order
        rows = [self.row_pointers(pointers, self.builder.add(first, I64(each))) for each in range(count)]
        outer = [self.evaluate(Level.ROW, 1, row, self._of_tile, roots=needed) for row in rows]
        outer_first = self.evaluate(Level.ROW, 1, pointers, self._of_tile, roots=needed) if fresh else {}

        def operands(row: Pointers, known: Values, index: ir.Value, mask: ir.Value | None) -> list[State]:
            values = self._known(index) | known
            for level in (Level.GROUP, Level.ELEMENT):
                values = self.evaluate(level, self.lanes, row, values, index, mask, needed)
            if number == self.last_pass:
                self.stash(values, row, index)
            return [
                [
                    splat(self.builder, value, self.lanes)
                    for value in self.operand_values(accumulation, self.lanes, values)
                ]
                for accumulation in stage
            ]

        def take_in(index: ir.Value, mask: ir.Value | None) -> None:
            if fresh:
                starts = operands(pointers, outer_first, index, mask)
                states = [
                    accumulation.start(self.builder, self.lanes, start)
                    for accumulation, start in zip(stage, starts, strict=True)
                ]
            else:
                states = [self.state(accumulation, index) for accumulation in stage]
            totals = states
            if self.walk.order is RowOrder.MANY:
                # Rounding errors grow with the number of sums: these rows have their own.
                states = [accumulation.start(self.builder, self.lanes, []) for accumulation in stage]
            given = list(zip(rows, outer, strict=True))
            for batch in [given] if self.adds_together(number) else [[each] for each in given]:
                elements = [operands(row, known, index, mask) for row, known in batch]
                states = [
                    accumulation.add_together(
                        self.builder, self.lanes, state, [each[which] for each in elements], in_order
                    )
                    for which, (accumulation, state) in enumerate(zip(stage, states, strict=True))
                ]
            if self.walk.order is RowOrder.MANY:
                pairs = zip(stage, totals, states, strict=True)
                states = [each.merge(self.builder, self.lanes, *pair) for each, *pair in pairs]
            if self.walk.order is RowOrder.MANY or count == TOGETHER:
                self._ask_for_later(rows, index)
            for accumulation, state in zip(stage, states, strict=True):
                self.set_state(accumulation, index, state)

        self.code.vector_loop(self.start, self.stop, take_in)

    def _settle(self, number: int, pointers: Pointers, store_groups: bool = True) -> None:
        """After a pass, what later ones and the elements need of the groups; after the last one, also what is
        stored once for a group."""
        found = self.found(number, Level.GROUP).items()
        new = {key: (node, self._tile(node.type)) for key, node in found if key not in self._kept}
        last = number == self.last_pass and store_groups
        stores = self.stores(of_groups=True) if last else []
        roots = [node for node, _ in new.values()] + [root for _, root in stores]

        def settle(index: ir.Value, mask: ir.Value | None) -> None:
            values = dict(self._of_tile)
            for stage in self.passes[: number + 1]:
                for accumulation in stage:
                    state = self.state(accumulation, index)
                    values |= accumulation.results(self.builder, self.lanes, state, self.elements)
            values = self.evaluate(Level.STATISTIC, self.lanes, pointers, values, roots=roots)
            values = self.evaluate(Level.GROUP, self.lanes, pointers, values, index, mask, roots)
            for key, (node, room) in new.items():
                value = splat(self.builder, values[key], self.lanes)
                self.code.store(self._at(room, node.type, index), value, node.type)
            for access, root in stores:
                value = splat(self.builder, self.value(root, self.lanes, values), self.lanes)
                self.store(access, value, pointers, index, mask)

        self.code.vector_loop(self.start, self.stop, settle)
        self._kept |= new

    def _store_rows(self, pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        """The elements of some rows."""
        if not self.stores(of_groups=False):
            return
        with self.walk_rows(pointers, first, last) as (_, row_pointers):
            self._ask_to_store(row_pointers)
            row_values = self.evaluate(Level.ROW, 1, row_pointers, self._of_tile)
            self.store_range(
                row_pointers, self.start, self.stop, lambda index: row_values | self._known(index)
            )

    def _ask_to_store(self, row: Pointers) -> None:
        """Asks for where the first elements of a row behind this one will be written, but past the caches."""
        for access, _ in self.stores(of_groups=False):
            store = self.accesses[access]
            if store.step is Step.CONTIGUOUS and not store.streamed and self.pattern.rows:
                stride = self.parameter(self.layout.row_stride(access, self.pattern.rows - 1))
                later = self.code.offset(row[access], self.builder.mul(stride, I64(_ROWS_AHEAD)))
                count = LINE // store.type.bytes
                last = self.builder.add(self.start, I64(_LINES_AHEAD * count))
                is_wide = self.builder.icmp_signed("<=", last, self.stop)
                end = self.builder.select(is_wide, last, self.start)
                with self.code.loop(self.start, end, count) as index:
                    distance = self.builder.mul(index, self.steps[access])
                    self.code.prefetch(self.code.offset(later, distance), written=True)


class SplitColumnCode(ColumnCode):
    """Long groups, in chunks of rows: one pass over the rows of a tile, or the states of a tile from those of
    its chunks, or the elements of some rows from the states of their groups.

    States: [group][chunk, and the group itself][part][column].
    """

    def item(self, item: ir.Value) -> None:
        """One chunk of a tile, or one tile."""
        self._kept = {}
        stage, mode = self.walk.stage, self.pattern.mode
        if mode is CpuMode.COLUMNS_COMBINE:
            group, self.start, self.stop = self.block_range(item)
            for number in range(stage):
                self.read_stage(number, group, self.chunks)
            self._combine(stage, group)
            if stage == self.last_pass and self.stores(of_groups=True):
                self._settle(stage, self._tile_pointers(group))
            return
        position, chunk = self.code.split(item, [I64(0), self.chunks])
        first, last = self.chunk_range(chunk, self.units)
        group, self.start, self.stop = self.block_range(position)
        pointers = self._tile_pointers(group)
        before = stage if mode is CpuMode.COLUMNS_PARTIAL else len(self.passes)
        for number in range(before):
            self.read_stage(number, group, self.chunks)
        if before:
            self._settle(before - 1, pointers, store_groups=False)
        if mode is CpuMode.COLUMNS_PARTIAL:
            self._pass(stage, pointers, first, last)
            self._write_stage(stage, group, chunk)
        else:
            self._store_rows(pointers, first, last)

    def _combine(self, stage: int, group: ir.Value) -> None:
        """The states of all chunks of a tile, in their order."""
        self.read_stage(stage, group, I64(0))
        with self.code.loop(I64(1), self.chunks) as chunk:

            def merge(column: ir.Value, mask: ir.Value | None) -> None:
                for accumulation in self.passes[stage]:
                    other = self.read_state(stage, accumulation, group, chunk, column, mask)
                    state = self.state(accumulation, column)
                    merged = accumulation.merge(self.builder, self.lanes, state, other)
                    self.set_state(accumulation, column, merged)

            self.code.vector_loop(self.start, self.stop, merge)
        self._write_stage(stage, group, self.chunks)

    def read_stage(self, stage: int, group: ir.Value, chunk: ir.Value) -> None:
        """The states of a chunk of a tile, or behind the chunks of the tile itself, from the arena."""

        def read(column: ir.Value, mask: ir.Value | None) -> None:
            for accumulation in self.passes[stage]:
                state = self.read_state(stage, accumulation, group, chunk, column, mask)
                self.set_state(accumulation, column, state)

        self.code.vector_loop(self.start, self.stop, read)

    def _write_stage(self, stage: int, group: ir.Value, chunk: ir.Value) -> None:
        def write(column: ir.Value, mask: ir.Value | None) -> None:
            for accumulation in self.passes[stage]:
                places = self.places(stage, accumulation, group, chunk, column)
                parts = zip(places, accumulation.parts, self.state(accumulation, column), strict=True)
                for place, part, value in parts:
                    self.code.store(place, value, part, mask)

        self.code.vector_loop(self.start, self.stop, write)

    def read_state(
        self,
        stage: int,
        accumulation: AccumulationCode,
        group: ir.Value,
        chunk: ir.Value,
        column: ir.Value,
        mask: ir.Value | None,
    ) -> State:
        """A vector of the states of a chunk of a tile."""
        places = self.places(stage, accumulation, group, chunk, column)
        return [
            self.code.load(place, part, self.lanes, mask)
            for place, part in zip(places, accumulation.parts, strict=True)
        ]

    def places(
        self, stage: int, accumulation: AccumulationCode, group: ir.Value, chunk: ir.Value, column: ir.Value
    ) -> list[ir.Value]:
        """Where the parts of such a vector lie."""
        first = self.builder.mul(self.chunk_position(group, chunk), I64(self.part_count))
        first = self.builder.add(first, I64(self.parts_before(stage, accumulation)))
        result = []
        for number, part in enumerate(accumulation.parts):
            row = self.builder.mul(self.builder.add(first, I64(number)), self.inner)
            origin = self.code.offset(self.arena(), self.builder.mul(row, I64(PART_BYTES)))
            result.append(self.code.offset(origin, self.builder.mul(column, I64(part.bytes))))
        return result
