"""Kernels whose groups lie side by side in memory. Lanes run over groups, a tile of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from opendml.compiler.bounds import bounds_of
from opendml.compiler.kernel import number_of
from opendml.program.node import Node
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.accumulations import TOGETHER
from opendml.targets.common.pattern import Level, Step
from opendml.targets.cpu import ir
from opendml.targets.cpu.accumulation import AccumulationCode, State
from opendml.targets.cpu.code import I64, Code
from opendml.targets.cpu.conversion import conversion
from opendml.targets.cpu.group_code import GroupBody, GroupCode, Index
from opendml.targets.cpu.loads import Pointers, Values
from opendml.targets.cpu.pattern import LINE, ColumnWalk, CpuMode, CpuPattern, RowOrder
from opendml.targets.cpu.stash import STASHED
from opendml.targets.cpu.values import splat

_ROWS_AT_ONCE = 4
"""Rows that are added per visit of the states of a tile. Rows that follow each other in memory are added one
by one, so that they are one stream."""
_MOST_UNROLLED = 16
"""Nodes that a pass computes of each element, at most, if rows are added _ROWS_AT_ONCE. A pass of 192 nodes
takes a sixth of the time to compile if its rows are added one by one. Softmax takes equal time (Zen 3)."""
_MATRIX_ROWS_AT_ONCE = 4
"""Rows that are added at once where a vector is multiplied by a matrix, while the next are prefetched."""
_ROWS_AHEAD = 4
"""Rows after which the begin of a row of results is prefetched. Rows of a tile lie too far apart for the
processor to look ahead. Normalizations of 51 MB of FLOAT16 side by side then take five sixths of the time."""
_LINES_AHEAD = 4
"""Cache lines of such a row that are prefetched, if it has as many. The processor foresees the others, and
prefetching all takes longer."""

_States = dict[int, list[ir.Value]]
"""The scratch for the states of a tile, part by part, by accumulation."""


class ColumnCode(GroupCode):
    """An item is a tile of neighbouring groups, or some rows of such a tile."""

    def __init__(self, code: Code, pattern: CpuPattern) -> None:
        super().__init__(code, pattern)
        self.walk = pattern.walk_as(ColumnWalk)
        self.group_lanes = self.lanes
        self._states: _States = {
            id(accumulation): [self._tile(part) for part in accumulation.parts]
            for stage in self.passes
            for accumulation in stage
        }
        self._kept: dict[int, tuple[Node, ir.Value]] = {}
        """The values of groups that later passes and elements need, with their scratch."""
        self._of_tile: Values = {}
        self.start: ir.Value = I64(0)
        self.stop: ir.Value = I64(0)

    def whole(self, item: ir.Value) -> None:
        """Emit a tile: each pass over all rows, then the values of all groups; last the results by row."""
        pointers = self.tile_pointers(self.tile_of(item))
        if self.stashed is not None:
            self.stash_origin = self.builder.mul(self.start, I64(-STASHED.bytes))
        for number in range(len(self.passes)):
            self.accumulate(number, pointers, I64(0), self.units)
            self.settle(number, pointers, stores_groups=number == self.last_pass)
        self.store_units(pointers, I64(0), self.units)

    # Layout

    def tile_of(self, position: ir.Value) -> ir.Value:
        """Go to a tile of neighbouring groups, and return its group."""
        self._kept = {}
        group, self.start, self.stop = self.block_range(position)
        return group

    def tile_pointers(self, group: ir.Value) -> Pointers:
        """Return the addresses of the accesses at the first group of a tile. Compute its common values."""
        pointers = self.group_pointers(group)
        self._of_tile = self.of_tile(pointers)
        return pointers

    def each_vector(self, body: GroupBody) -> None:
        """Emit code for every vector of groups in the tile."""
        self.code.vector_loop(self.start, self.stop, body)

    def state(self, accumulation: AccumulationCode, index: Index) -> State:
        """Return the states of a vector of groups."""
        return self._read(self._states, accumulation, index)

    def set_state(
        self, accumulation: AccumulationCode, index: Index, state: State, mask: ir.Value | None = None
    ) -> None:
        """Replace the states of a vector of groups, in the lanes of a mask."""
        self._write(self._states, accumulation, index, state, mask)

    def settle(self, stage: int, pointers: Pointers, stores_groups: bool = False) -> None:
        """Compute what later passes and elements need of groups after a pass. Optionally store the results of
        groups."""
        if stage < 0:
            return
        found = self.found(stage, Level.GROUP).items()
        new = {key: (node, self._tile(node.type)) for key, node in found if key not in self._kept}
        stores = self.stores(of_groups=True) if stores_groups else []
        roots = [node for node, _ in new.values()] + [root for _, root in stores]

        def settle(index: Index, mask: ir.Value | None) -> None:
            values = dict(self._of_tile)
            for number in range(stage + 1):
                for accumulation in self.passes[number]:
                    state = self.state(accumulation, index)
                    values |= accumulation.results(self.builder, self.lanes, state, self.elements)
            values = self.evaluate(Level.STATISTIC, self.lanes, pointers, values, roots=roots)
            values = self.evaluate(Level.GROUP, self.lanes, pointers, values, index, mask, roots)
            for key, (node, scratch) in new.items():
                value = splat(self.builder, values[key], self.lanes)
                self.code.store(self._at(scratch, node.type, index), value, node.type)
            if stores:
                self.store_group(pointers, values, self.lanes, index, mask)

        self.each_vector(settle)
        self._kept |= new

    def store_units(self, pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        """Store the elements of some rows."""
        if not self.stores(of_groups=False):
            return
        with self.walk_rows(pointers, first, last) as (_, row_pointers):
            self._prefetch_results(row_pointers)
            row_values = self.evaluate(Level.ROW, 1, row_pointers, self._of_tile)
            self.store_range(
                row_pointers, self.start, self.stop, lambda index: row_values | self._known(index)
            )

    def _prefetch_results(self, row: Pointers) -> None:
        """Prefetch for writing the first results of a later row that do not bypass the caches."""
        for access, _ in self.stores(of_groups=False):
            store = self.accesses[access]
            if store.step is Step.CONTIGUOUS and not store.streamed and self.pattern.rows:
                stride = self.parameter(self.layout.row_stride(access, self.pattern.rows - 1))
                later = self.code.element_at(row[access], stride, I64(_ROWS_AHEAD))
                count = LINE // store.type.bytes
                last = self.builder.add(self.start, I64(_LINES_AHEAD * count))
                is_wide = self.builder.icmp_signed("<=", last, self.stop)
                end = self.builder.select(is_wide, last, self.start)
                with self.code.loop(self.start, end, count) as index:
                    self.code.prefetch(self.code.element_at(later, index, self.steps[access]), written=True)

    # Scratch

    def _tile(self, type: ScalarType) -> ir.Value:
        """Return scratch for one value of each group, and for the lanes of a last vector that no group
        has."""
        return self.reserve(type, self.walk.tile + self.lanes)

    def _at(self, scratch: ir.Value, type: ScalarType, index: Index) -> ir.Value:
        assert index is not None  # Groups are in lanes.
        return self.code.element_at(scratch, self.builder.sub(index, self.start), I64(type.bytes))

    def _read(self, tiles: _States, accumulation: AccumulationCode, index: Index) -> State:
        parts = zip(tiles[id(accumulation)], accumulation.parts, strict=True)
        return [self.code.load(self._at(tile, part, index), part, self.lanes) for tile, part in parts]

    def _write(
        self,
        tiles: _States,
        accumulation: AccumulationCode,
        index: Index,
        state: State,
        mask: ir.Value | None,
    ) -> None:
        for tile, part, value in zip(tiles[id(accumulation)], accumulation.parts, state, strict=True):
            self.code.store(self._at(tile, part, index), value, part, mask)

    def _known(self, index: ir.Value) -> Values:
        """Return the values of a vector of groups that are kept, and those of the tile."""
        return self._of_tile | {
            key: self.code.load(self._at(scratch, node.type, index), node.type, self.lanes)
            for key, (node, scratch) in self._kept.items()
        }

    # Passes

    def accumulate(self, stage: int, pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        """Emit one pass over some rows."""
        if self.walk.order is RowOrder.WHOLE or self._is_costly(stage):
            self._add_rows(stage, pointers, first, 1, fresh=True)
            self._loop_over_rows(stage, pointers, self.builder.add(first, I64(1)), last, 1)
        elif self.walk.order is RowOrder.MANY and self.pattern.mode is CpuMode.COLUMNS:
            self._add_chunks(stage, pointers)
        elif self.walk.order is RowOrder.MANY:
            self._add_many_rows(stage, pointers, first, last)
        else:
            self._add_few_rows(stage, pointers, first, last)

    def _is_costly(self, stage: int) -> bool:
        """Return whether a pass computes so much of each element that visits of the states do not count."""
        if self.walk.order is not RowOrder.BATCHES or self.adds_together(stage):
            return False
        below = self.below_reductions(self.operands[stage])
        of_elements = [node for node in self.nodes if self.levels[id(node)] is Level.ELEMENT]
        return sum(id(node) in below for node in of_elements) > _MOST_UNROLLED

    def _loop_over_rows(
        self, stage: int, pointers: Pointers, first: ir.Value, last: ir.Value, count: int
    ) -> None:
        """Add rows to the states, `count` at a time."""
        with self.code.loop(first, last, count) as row:
            self._add_rows(stage, pointers, row, count, fresh=False)

    def _add_few_rows(self, stage: int, pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        """Start the states with as many rows as are left over, then add several per visit. Rows that cost
        less together are added TOGETHER at a time."""
        count = self.builder.sub(last, first)
        together = self.adds_together(stage)
        least = 0 if together else 1
        odd = self.builder.and_(self.builder.sub(count, I64(least)), I64(_ROWS_AT_ONCE - 1))
        self._choose(odd, lambda rows: self._add_rows(stage, pointers, first, rows + least, fresh=True))
        start = self.builder.add(self.builder.add(first, odd), I64(least))
        if together:
            some = self.builder.add(first, self.builder.and_(count, I64(TOGETHER - 1)))
            self._loop_over_rows(stage, pointers, start, some, _ROWS_AT_ONCE)
            self._loop_over_rows(stage, pointers, some, last, TOGETHER)
        else:
            self._loop_over_rows(stage, pointers, start, last, _ROWS_AT_ONCE)

    def _add_chunks(self, stage: int, pointers: Pointers) -> None:
        """Add the rows of a matrix in chunks, and merge their states as those of items are merged."""
        accumulations = self.passes[stage]
        totals = {id(each): [self._tile(part) for part in each.parts] for each in accumulations}
        with self.code.loop(I64(0), self.chunks) as chunk:
            self._add_many_rows(stage, pointers, *self.chunk_range(chunk, self.units))
            is_first = self.builder.icmp_signed("==", chunk, I64(0))

            def merge(index: Index, mask: ir.Value | None) -> None:
                for accumulation in accumulations:
                    state, before = (
                        self._read(tiles, accumulation, index) for tiles in (self._states, totals)
                    )
                    merged = accumulation.merge(self.builder, self.lanes, before, state)
                    pairs = zip(state, merged, strict=True)
                    total = [self.builder.select(is_first, *pair) for pair in pairs]
                    for tiles in (self._states, totals):
                        self._write(tiles, accumulation, index, total, mask)

            self.each_vector(merge)

    def _add_many_rows(self, stage: int, pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        """Add rows of a matrix: those that are left over one by one, then several at once."""
        self._add_rows(stage, pointers, first, 0, fresh=True)
        odd = self.builder.and_(self.builder.sub(last, first), I64(_MATRIX_ROWS_AT_ONCE - 1))
        done = self.builder.add(first, odd)
        self._loop_over_rows(stage, pointers, first, done, 1)
        self._loop_over_rows(stage, pointers, done, last, _MATRIX_ROWS_AT_ONCE)

    def _choose(self, choice: ir.Value, emit: Callable[[int], None]) -> None:
        """Emit one case for each value below _ROWS_AT_ONCE."""
        for case in range(_ROWS_AT_ONCE):
            with self.builder.if_then(self.builder.icmp_signed("==", choice, I64(case))):
                emit(case)

    def _add_rows(self, stage: int, pointers: Pointers, first: ir.Value, count: int, fresh: bool) -> None:
        """Add neighbouring rows to the states. Fresh states start from the first row of the group, which all
        its chunks share."""
        accumulations, needed = self.passes[stage], self.operands[stage]
        rows = [self.row_pointers(pointers, self.builder.add(first, I64(each))) for each in range(count)]
        outer = [self.evaluate(Level.ROW, 1, row, self._of_tile, roots=needed) for row in rows]
        outer_first = self.evaluate(Level.ROW, 1, pointers, self._of_tile, roots=needed) if fresh else {}

        def operands(row: Pointers, known: Values, index: ir.Value, mask: ir.Value | None) -> list[State]:
            values = self._known(index) | known
            for level in (Level.GROUP, Level.ELEMENT):
                values = self.evaluate(level, self.lanes, row, values, index, mask, needed)
            if stage == self.last_pass:
                self.stash(values, row, index)
            return [self.operand_vectors(accumulation, self.lanes, values) for accumulation in accumulations]

        def started(elements: Sequence[State]) -> list[State]:
            pairs = zip(accumulations, elements, strict=True)
            return [each.start(self.builder, self.lanes, element) for each, element in pairs]

        def add(index: Index, mask: ir.Value | None) -> None:
            assert index is not None
            if fresh:
                states = started(operands(pointers, outer_first, index, mask))
            else:
                states = [self.state(accumulation, index) for accumulation in accumulations]
            totals = states
            if self.walk.order is RowOrder.MANY:
                # Rounding errors grow with the number of sums: these rows have their own.
                states = started([[] for _ in accumulations])
            given = list(zip(rows, outer, strict=True))
            for batch in [given] if self.adds_together(stage) else [[each] for each in given]:
                elements = [operands(row, known, index, mask) for row, known in batch]
                states = [
                    accumulation.add_together(
                        self.builder,
                        self.lanes,
                        state,
                        [each[which] for each in elements],
                        self.walk.in_order,
                    )
                    for which, (accumulation, state) in enumerate(zip(accumulations, states, strict=True))
                ]
            if self.walk.order is RowOrder.MANY:
                pairs = zip(accumulations, totals, states, strict=True)
                states = [each.merge(self.builder, self.lanes, *pair) for each, *pair in pairs]
            if self.walk.order is RowOrder.MANY or count == TOGETHER:
                self._prefetch_rows(rows, index)
            for accumulation, state in zip(accumulations, states, strict=True):
                self.set_state(accumulation, index, state)

        self.each_vector(add)

    def _prefetch_rows(self, rows: Sequence[Pointers], index: ir.Value) -> None:
        """Prefetch the elements at an index of as many rows behind these."""
        for position, access in enumerate(self.pattern.loads):
            if access.step is Step.CONTIGUOUS and access.level is Level.ELEMENT and not access.counter:
                stride = self.parameter(self.layout.row_stride(position, self.pattern.rows - 1))
                distance = self.builder.mul(index, self.steps[position])
                distance = self.builder.add(distance, self.builder.mul(stride, I64(len(rows))))
                # The rows of a matrix in between are more than the first cache holds.
                level = 2 if self.walk.order is RowOrder.MANY else 1
                for row in rows:
                    self.code.prefetch(self.code.offset(row[position], distance), level=level)


class BoundedColumnCode(GroupCode):
    """Groups side by side whose rows end at a bound, which is the same for all groups of a tile.

    What a row reads lies apart from what the row before has read, so nothing is gained by going through
    memory in its order. Each vector of groups goes through the rows alone, with its states in registers."""

    def whole(self, item: ir.Value) -> None:
        """Emit a tile in one pass."""
        group, start, stop = self.block_range(item)
        pointers = self.group_pointers(group)
        known = self.of_tile(pointers)
        self.row_counts = self._counts(known)
        rows = reduce(self.builder.mul, self.row_counts)
        self.code.vector_loop(
            start, stop, lambda index, mask: self._groups(pointers, known, rows, index, mask)
        )

    def _groups(
        self, pointers: Pointers, of_tile: Values, rows: ir.Value, index: ir.Value, mask: ir.Value | None
    ) -> None:
        """Emit the results of a vector of groups."""
        (accumulations,), (needed,) = self.passes, self.operands
        of_groups = self.evaluate(Level.GROUP, self.lanes, pointers, of_tile, index, mask, needed)
        states = [
            self.variables(each, self.lanes, each.start(self.builder, self.lanes, []))
            for each in accumulations
        ]
        with self.walk_rows(pointers, I64(0), rows) as (_, row):
            values = self.evaluate(Level.ROW, 1, row, of_groups, roots=needed)
            values = self.evaluate(Level.ELEMENT, self.lanes, row, values, index, mask, needed)
            for each, state in zip(accumulations, states, strict=True):
                element = self.operand_vectors(each, self.lanes, values)
                before = [self.code.get(slot) for slot in state]
                after = each.add(
                    self.builder, self.lanes, before, element, self.pattern.walk_as(ColumnWalk).in_order
                )
                for slot, value in zip(state, after, strict=True):
                    self.code.set(slot, value)
        results = dict(of_tile)
        for each, state in zip(accumulations, states, strict=True):
            found = [self.code.get(slot) for slot in state]
            results |= each.results(self.builder, self.lanes, found, self.elements)
        for level in (Level.STATISTIC, Level.GROUP):
            results = self.evaluate(level, self.lanes, pointers, results, index, mask)
        self.store_group(pointers, results, self.lanes, index, mask)

    def _counts(self, of_tile: Values) -> list[ir.Value]:
        """Return how often the loops over rows run: once at least, and as often as validated at most."""
        counts = list(self.row_counts)
        for loop, position in self.pattern.walk_as(ColumnWalk).bounded:
            reductions = [node for node in self.nodes if id(node) in self.reductions]
            steps = [self._steps(node, position, of_tile) for node in reductions]
            most = reduce(self.code.maximum, steps, I64(1))
            counts[loop] = self.code.minimum(most, counts[loop])
        return counts

    def _steps(self, reduction: Node, position: int, of_tile: Values) -> ir.Value:
        """Return the first position along a loop from which on none counts. NaN is below all positions."""
        bound = next(
            bound
            for each, bound in bounds_of(reduction)
            if number_of(each) == position and self.levels[id(bound)] <= Level.TILE
        )
        value = self.value(bound, 1, of_tile)
        if not bound.type.is_float:
            return conversion(self.builder, value, bound.type, ScalarType.INT64, 1)
        below = conversion(self.builder, value, bound.type, ScalarType.INT32, 1)
        again = conversion(self.builder, below, ScalarType.INT32, bound.type, 1)
        more = self.builder.zext(self.builder.fcmp_ordered("<", again, value), I64)
        return self.builder.add(self.builder.sext(below, I64), more)
