"""Kernels whose groups are reduced along the innermost loop: lanes run within a group, and are added up at
its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from llvmlite import ir

from opendml.program.node import Node
from opendml.targets.cpu.code import I64
from opendml.targets.cpu.kernel_code import F64, KernelCode, Pointers, Values
from opendml.targets.cpu.pattern import Level, Mode
from opendml.targets.cpu.values import llvm_type, number, scalar_llvm_type, splat

BATCH = 16
"""Groups that share one vector computation of their statistics."""
_ACCUMULATORS = 2
"""Independent vectors of sums: enough to hide the latency of an addition."""


@dataclass(frozen=True, slots=True)
class _Sums:
    """The running sums of one reduced value: accumulators of its distances from `shift` and of their
    squares."""

    value: Node
    shift: ir.Value
    totals: list[ir.Value]
    squares: list[ir.Value]


class RowCode(KernelCode):
    """Whole groups, a batch of them per item: the sums of each, then the statistics of all at once, then the
    results of each."""

    def item(self, item: ir.Value) -> None:
        """One batch."""
        first, last = self.chunk_range(item, self.groups)
        reduced = self.pattern.reduced()
        batches = [[self._batch(F64.bits) for _ in range(3)] for _ in reduced]
        with self.walk_groups(first, last) as (group, pointers):
            for value, slots in zip(reduced, batches, strict=True):
                sums = self._sums(value, pointers)
                self._add_units(sums, pointers, I64(0), self.units)
                for slot, result in zip(slots, (sums.shift, *self._totals(sums)), strict=True):
                    self.builder.store(result, self._in_batch(slot, group, first, F64.bytes))
        shared = self._batch_statistics(batches)
        with self.walk_groups(first, last) as (group, pointers):
            known = {
                key: self.code.load(self._in_batch(slot, group, first, node.type.bytes), node.type, 1)
                for key, (node, slot) in shared.items()
            }
            self.map_units(pointers, known, I64(0), self.units)

    def _batch(self, bits: int) -> ir.Value:
        return self.code.local(ir.ArrayType(ir.IntType(bits), BATCH))

    def _in_batch(self, slot: ir.Value, group: ir.Value, first: ir.Value, size: int) -> ir.Value:
        return self.code.offset(slot, self.builder.mul(self.builder.sub(group, first), I64(size)))

    def _batch_statistics(self, batches: list[list[ir.Value]]) -> dict[int, tuple[Node, ir.Value]]:
        """Computes what is made of the reductions alone for the whole batch; returns what the groups need of
        it, and where."""
        vector = llvm_type(F64, BATCH)
        values: Values = {}
        for value, slots in zip(self.pattern.reduced(), batches, strict=True):
            shifts, totals, squares = (self.builder.load(slot, typ=vector) for slot in slots)
            values |= self.statistics(value, shifts, totals, squares, BATCH)
        values = self.evaluate(Level.STATISTIC, BATCH, [], values)
        users = [
            node for node in self.nodes if id(node) in self.needed and self.levels[id(node)] > Level.STATISTIC
        ]
        wanted = [*(operand for node in users for operand in node.operands), *self.pattern.values]
        shared: dict[int, tuple[Node, ir.Value]] = {}
        for node in wanted:
            if self.levels[id(node)] is Level.STATISTIC and id(node) not in shared:
                slot = self._batch(node.type.bits)
                self.builder.store(splat(self.builder, values[id(node)], BATCH), slot)
                shared[id(node)] = node, slot
        return shared

    def map_units(self, pointers: Pointers, statistics: Values, first: ir.Value, last: ir.Value) -> None:
        """The results of some units of a group."""
        values = self.evaluate(Level.GROUP, 1, pointers, statistics)
        for access, root in self.stores(of_groups=True):
            self.store(access, self.value(root, 1, values), pointers, None, None)
        if self.stores(of_groups=False):
            with self.walk_units(pointers, first, last) as (row, start, stop):
                self.map_block(row, values, start, stop)

    @contextmanager
    def walk_units(
        self, pointers: Pointers, first: ir.Value, last: ir.Value
    ) -> Iterator[tuple[Pointers, ir.Value, ir.Value]]:
        """A loop over units of the group at `pointers`: where each row starts, and the unit's range. Here a
        unit is a row."""
        with self.walk_rows(pointers, first, last) as (_, row):
            yield row, I64(0), self.inner

    # Sums

    def _sums(self, value: Node, pointers: Pointers) -> _Sums:
        """Empty sums. The shift, which all chunks of a group share, is the group's first element: it keeps
        the sum of squares
        from cancelling where the mean is far from zero."""
        needed = self.below_reductions([value])
        values: Values = {}
        for level in (Level.GROUP, Level.ROW, Level.ELEMENT):
            values = self.evaluate(level, 1, pointers, values, only=needed)
        shift = self.shift_from(self.value(value, 1, values), 1)
        totals, squares = (
            [
                self.code.local(llvm_type(F64, self.lanes), number(F64, self.lanes, 0.0))
                for _ in range(_ACCUMULATORS)
            ]
            for _ in range(2)
        )
        return _Sums(value, shift, totals, squares)

    def _add_units(self, sums: _Sums, pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        with self.walk_units(pointers, first, last) as (row, start, stop):
            self._add_block(sums, row, start, stop)

    def _add_block(self, sums: _Sums, pointers: Pointers, start: ir.Value, stop: ir.Value) -> None:
        """Adds one block of a row: full strides over all accumulators, then vectors onto the first one."""
        needed = self.below_reductions([sums.value])
        known = self.evaluate(Level.GROUP, 1, pointers, {}, only=needed)
        known = self.evaluate(Level.ROW, 1, pointers, known, only=needed)
        shift = splat(self.builder, sums.shift, self.lanes)

        def add(accumulator: int, index: ir.Value, mask: ir.Value | None) -> None:
            values = self.evaluate(Level.ELEMENT, self.lanes, pointers, known, index, mask, needed)
            distance = self.distance(sums.value, self.value(sums.value, self.lanes, values), shift, mask)
            total, squares = sums.totals[accumulator], sums.squares[accumulator]
            self.code.set(total, self.builder.fadd(self.code.get(total), distance))
            self.code.set(squares, self.square_added(distance, self.code.get(squares)))

        stride = self.lanes * _ACCUMULATORS
        with self.code.loop(start, stop, stride) as index:
            for accumulator in range(_ACCUMULATORS):
                add(accumulator, self.builder.add(index, I64(accumulator * self.lanes)), None)
        rest = self.builder.and_(self.builder.sub(stop, start), I64(stride - 1))
        self.code.vector_loop(self.builder.sub(stop, rest), stop, lambda i, mask: add(0, i, mask))

    def _totals(self, sums: _Sums) -> tuple[ir.Value, ir.Value]:
        """The sums of all lanes."""
        results = []
        for accumulators in (sums.totals, sums.squares):
            vector = self.code.get(accumulators[0])
            for accumulator in accumulators[1:]:
                vector = self.builder.fadd(vector, self.code.get(accumulator))
            results.append(self.code.horizontal_sum(vector, self.lanes))
        return results[0], results[1]


class SplitRowCode(RowCode):
    """Large groups: an item is one chunk of a group, whose sums are written, or whose results come from the
    sums of all chunks.

    Partial sums: [group][chunk][reduction][total, squares].
    """

    def item(self, item: ir.Value) -> None:
        """One chunk."""
        group, chunk = self.code.split(item, [I64(0), self.chunks])
        first, last = self.chunk_range(chunk, self.units)
        pointers = self.group_pointers(group)
        reduced = [self._sums(value, pointers) for value in self.pattern.reduced()]
        if self.pattern.mode is Mode.ROWS_PARTIAL:
            for index, sums in enumerate(reduced):
                self._add_units(sums, pointers, first, last)
                target = self._partial(group, chunk, index)
                for part, total in enumerate(self._totals(sums)):
                    self.builder.store(total, self.code.offset(target, I64(part * F64.bytes)))
            return
        values: Values = {}
        for index, sums in enumerate(reduced):
            values |= self.statistics(sums.value, sums.shift, *self._sum_of_chunks(group, index), 1)
        self.map_units(pointers, self.evaluate(Level.STATISTIC, 1, [], values), first, last)

    @contextmanager
    def walk_units(
        self, pointers: Pointers, first: ir.Value, last: ir.Value
    ) -> Iterator[tuple[Pointers, ir.Value, ir.Value]]:
        """Here a unit is a block of a row."""
        with self.code.loop(first, last) as unit:
            row, start, stop = self.block_range(unit)
            yield self.row_pointers(pointers, row), start, stop

    def _partial(self, group: ir.Value, chunk: ir.Value, index: int) -> ir.Value:
        size = 2 * F64.bytes
        position = self.builder.add(self.builder.mul(group, self.chunks), chunk)
        byte_offset = self.builder.mul(position, I64(size * len(self.pattern.reduced())))
        return self.code.offset(self.partials(), self.builder.add(byte_offset, I64(size * index)))

    def _sum_of_chunks(self, group: ir.Value, index: int) -> tuple[ir.Value, ir.Value]:
        """The sums of all chunks of a group, added in their order."""
        zero = number(F64, 1, 0.0)
        results = [self.code.local(scalar_llvm_type(F64), zero) for _ in range(2)]
        with self.code.loop(I64(0), self.chunks) as chunk:
            origin = self._partial(group, chunk, index)
            for part, result in enumerate(results):
                total = self.code.load(self.code.offset(origin, I64(part * F64.bytes)), F64, 1)
                self.code.set(result, self.builder.fadd(self.code.get(result), total))
        return self.code.get(results[0]), self.code.get(results[1])
