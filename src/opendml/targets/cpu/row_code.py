"""Kernels whose groups are reduced along the innermost loop. Lanes run within a group, and are merged at its
end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from opendml.program.node import Node
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.accumulations import TOGETHER
from opendml.targets.common.pattern import Level, Step
from opendml.targets.cpu import ir
from opendml.targets.cpu.accumulation import AccumulationCode, State
from opendml.targets.cpu.code import I64, Code
from opendml.targets.cpu.group_code import GroupBody, GroupCode, Index
from opendml.targets.cpu.loads import Pointers, Values
from opendml.targets.cpu.pattern import LINE, CpuMode, CpuPattern, ParameterTable, RowWalk
from opendml.targets.cpu.values import llvm_type, splat

BATCH = 16
"""Groups that share one vector computation of their statistics."""

_AHEAD_BYTES = 4096
"""Bytes by which groups in chunks, elements that are taken together, and short rows are prefetched. Beside
the arithmetic the processor itself does not look as far. Sums of 8 MB then take three quarters of the time,
and so do normalizations of 51 MB in rows of 56 FLOAT16."""


class RowCode(GroupCode):
    """An item is a batch of whole groups, or one group, or one chunk of a group."""

    def __init__(self, code: Code, pattern: CpuPattern) -> None:
        super().__init__(code, pattern)
        self.walk = pattern.walk_as(RowWalk)
        self._states = {
            id(accumulation): self.variables(accumulation, 1)
            for stage in self.passes
            for accumulation in stage
        }
        self._known: Values = {}
        """The statistics of the group at hand."""

    def whole(self, item: ir.Value) -> None:
        """Emit a batch of groups: each pass over all groups, then the statistics of all at once; last the
        results of each group."""
        first, last = self.chunk_range(item, self.groups)
        kept: dict[int, tuple[Node, ir.Value]] = {}
        values: Values = {}

        def enter(group: ir.Value) -> None:
            self._known = {
                key: self.code.load(in_batch(slot, group, node.type), node.type, 1)
                for key, (node, slot) in kept.items()
            }
            if self.stashed is not None:
                size = self.parameter(ParameterTable.STASHED_BYTES)
                self.stash_origin = self.builder.mul(self.builder.sub(group, first), size)

        def in_batch(slot: ir.Value, group: ir.Value, type: ScalarType) -> ir.Value:
            return self.code.element_at(slot, self.builder.sub(group, first), I64(type.bytes))

        for number, stage in enumerate(self.passes):
            slots = [[self.code.array(part, BATCH) for part in each.parts] for each in stage]
            with self.walk_groups(first, last) as (group, pointers):
                enter(group)
                self.accumulate(number, pointers, I64(0), self.units)
                for accumulation, parts in zip(stage, slots, strict=True):
                    state = self.state(accumulation, None)
                    for part, value, slot in zip(accumulation.parts, state, parts, strict=True):
                        self.builder.store(value, in_batch(slot, group, part))
            for accumulation, parts in zip(stage, slots, strict=True):
                state = [
                    self.builder.load(slot, typ=llvm_type(part, BATCH))
                    for slot, part in zip(parts, accumulation.parts, strict=True)
                ]
                values |= accumulation.results(self.builder, BATCH, state, self.elements)
            found = self.found(number, Level.STATISTIC)
            values = self.evaluate(Level.STATISTIC, BATCH, [], values, roots=found.values())
            for key, node in found.items():
                if key not in kept:
                    kept[key] = node, self.code.array(node.type, BATCH)
                    self.code.store(kept[key][1], splat(self.builder, values[key], BATCH), node.type)
        with self.walk_groups(first, last) as (group, pointers):
            enter(group)
            self._known = self.evaluate(Level.GROUP, 1, pointers, self._known)
            self.store_group(pointers, self._known)
            self.store_units(pointers, I64(0), self.units)

    # Layout

    def each_vector(self, body: GroupBody) -> None:
        """Emit code for the group."""
        body(None, None)

    def state(self, accumulation: AccumulationCode, index: Index) -> State:
        """Return the state of the group."""
        return [self.code.get(slot) for slot in self._states[id(accumulation)]]

    def set_state(
        self, accumulation: AccumulationCode, index: Index, state: State, mask: ir.Value | None = None
    ) -> None:
        """Replace the state of the group."""
        for slot, value in zip(self._states[id(accumulation)], state, strict=True):
            self.code.set(slot, value)

    def settle(self, stage: int, pointers: Pointers, stores_groups: bool = False) -> None:
        """Compute the statistics of the group after a pass."""
        values: Values = {}
        for number in range(stage + 1):
            for accumulation in self.passes[number]:
                state = self.state(accumulation, None)
                values |= accumulation.results(self.builder, 1, state, self.elements)
            found = self.found(number, Level.STATISTIC)
            values = self.evaluate(Level.STATISTIC, 1, [], values, roots=found.values())
        self._known = values
        if stores_groups:
            self.store_group(pointers, self.evaluate(Level.GROUP, 1, pointers, values))

    def store_units(self, pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        """Store the elements of some units of the group."""
        if self.stores(of_groups=False):
            known = self.evaluate(Level.GROUP, 1, pointers, self._known)
            with self._walk_units(pointers, first, last) as (row, start, stop):
                self.map_block(row, known, start, stop)

    @contextmanager
    def _walk_units(
        self, pointers: Pointers, first: ir.Value, last: ir.Value
    ) -> Iterator[tuple[Pointers, ir.Value, ir.Value]]:
        """Loop over units of the group at `pointers`: rows of whole groups, and blocks of rows in chunks.
        Yields the addresses of each row, and the range of the innermost loop."""
        if self.pattern.mode is CpuMode.ROWS:
            with self.walk_rows(pointers, first, last) as (_, row):
                yield row, I64(0), self.inner
        else:
            with self.code.loop(first, last) as unit:
                number, start, stop = self.block_range(unit)
                yield self.row_pointers(pointers, number), start, stop

    # Passes

    def accumulate(self, stage: int, pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        """Emit one pass over some units of the group at `pointers`."""
        needed = self.operands[stage]
        values = self._known
        for level in (Level.GROUP, Level.ROW, Level.ELEMENT):
            values = self.evaluate(level, 1, pointers, values, roots=needed)
        states = []
        for accumulation in self.passes[stage]:
            start = accumulation.start(self.builder, 1, self.operand_vectors(accumulation, 1, values))
            vector = [splat(self.builder, value, self.lanes) for value in start]
            copies = range(self._independent_states(stage))
            states.append([self.variables(accumulation, self.lanes, vector) for _ in copies])
        group = self.evaluate(Level.GROUP, 1, pointers, self._known, roots=needed)
        with self._walk_units(pointers, first, last) as (row, begin, end):
            known = self.evaluate(Level.ROW, 1, row, group, roots=needed)
            self._add_row(stage, states, row, known, begin, end)
        for accumulation, copies_of_state in zip(self.passes[stage], states, strict=True):
            self.set_state(accumulation, None, self._merged(accumulation, copies_of_state))

    def _independent_states(self, stage: int) -> int:
        """Return the number of vectors of states that take elements in turns, to hide latencies."""
        if not self.walk.long_rows or self._together(stage) > 1:
            return 1
        return min(accumulation.lanes_at_once for accumulation in self.passes[stage])

    def _together(self, stage: int) -> int:
        """Return the number of vectors that a state takes together."""
        return TOGETHER if self.walk.long_rows and self.adds_together(stage) else 1

    def _add_row(
        self,
        stage: int,
        states: Sequence[Sequence[State]],
        pointers: Pointers,
        known: Values,
        start: ir.Value,
        stop: ir.Value,
    ) -> None:
        """Add a block of a row: full strides to all vectors of states, then single vectors to the first."""
        needed = self.operands[stage]

        def add(which: int, indices: Sequence[ir.Value], mask: ir.Value | None) -> None:
            vectors = []
            for index in indices:
                vectors.append(self.evaluate(Level.ELEMENT, self.lanes, pointers, known, index, mask, needed))
                if stage == self.last_pass:
                    self.stash(vectors[-1], pointers, index)
            for accumulation, copies in zip(self.passes[stage], states, strict=True):
                elements = [self.operand_vectors(accumulation, self.lanes, values) for values in vectors]
                before = [self.code.get(slot) for slot in copies[which]]
                in_order = self.walk.in_order
                after = accumulation.add_together(self.builder, self.lanes, before, elements, in_order)
                for slot, old, new in zip(copies[which], before, after, strict=True):
                    self.code.set(slot, new if mask is None else self.builder.select(mask, new, old))

        count, together = self._independent_states(stage), self._together(stage)
        stride = self.lanes * count * together
        with self.code.loop(start, stop, stride) as index:
            if self.pattern.mode is CpuMode.ROWS_PARTIAL or together > 1 or not self.walk.long_rows:
                self._prefetch(pointers, index, stride)
            elif 0 < stage == self.last_pass and self.pattern.mode is CpuMode.ROWS:
                self._prefetch_next_batch(pointers, index, stride)
            for which in range(count):
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
        for position, address, size in self._stride_of_loads(pointers, index, stride):
            step = self.parameter(self.layout.group_stride(position, innermost))
            address = self.code.element_at(address, self.chunk, step)
            for distance in range(0, size, LINE):
                self.code.prefetch(self.code.offset(address, I64(distance)), level=2)

    def _prefetch(self, pointers: Pointers, index: ir.Value, stride: int) -> None:
        """Prefetch the elements of a stride a little further on."""
        for _, address, size in self._stride_of_loads(pointers, index, stride):
            for distance in range(0, size, LINE):
                self.code.prefetch(self.code.offset(address, I64(_AHEAD_BYTES + distance)))

    def _stride_of_loads(
        self, pointers: Pointers, index: ir.Value, stride: int
    ) -> Iterator[tuple[int, ir.Value, int]]:
        """Yield for each contiguous load its number, and the address and the bytes of a stride."""
        for position, access in enumerate(self.pattern.loads):
            if access.step is Step.CONTIGUOUS and not access.counter:
                address = self.code.element_at(pointers[position], index, self.steps[position])
                yield position, address, stride * access.type.bytes

    def _merged(self, accumulation: AccumulationCode, states: Sequence[State]) -> State:
        """Return the state of all lanes of vectors of states."""
        state, *others = [[self.code.get(slot) for slot in variables] for variables in states]
        for other in others:
            state = accumulation.merge(self.builder, self.lanes, state, other)
        return accumulation.folded(self.builder, self.lanes, state)
