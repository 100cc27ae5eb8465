"""Element-wise kernels whose neighbouring rows read the same, as windows do: some rows are computed together,
a vector of each, and what several of them read is loaded once.

An item is a block of rows and columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from llvmlite import ir

from opendml.compiler.kernel import number_of
from opendml.program.node import Node, Operation
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.pattern import Level, Step
from opendml.targets.cpu.code import I64
from opendml.targets.cpu.kernel_code import KernelCode, Pointers, Stride, Values
from opendml.targets.cpu.launch import BLOCK_BYTES
from opendml.targets.cpu.pattern import LINE, CpuPattern, ElementWalk, Reading
from opendml.targets.cpu.shared_rows import conditions_of

_ZEROS = 2 * BLOCK_BYTES + 2 * 128 + 2 * LINE
"""Bytes of the row of zeros: what the columns of a block span where every other element is read, a vector
behind them, and a cache line on both sides, since what reads along one line begins up to that far apart."""


class SharedRowsCode(KernelCode):
    """The one row loop is that of the rows; `pattern.walk.shared_rows` says what they read."""

    def __init__(self, function: ir.Function, pattern: CpuPattern, lanes: int) -> None:
        super().__init__(function, pattern, lanes)
        together = pattern.walk_as(ElementWalk).shared_rows
        if together is None:
            raise TypeError("rows share what they read")
        self._together = together
        self._zeros = self.room(ScalarType.UINT8, _ZEROS)
        self._readings = together.alone
        """What loads read in the row at hand."""
        self._lines: dict[int, ir.Value] = {}
        """Where what is read begins in the rows at hand, by line."""
        self._found: Values = {}
        """What was loaded of a vector of columns, by its number."""

    def items(self, first: ir.Value, last: ir.Value) -> None:
        """Some blocks, which are counted."""
        widest = max(access.type.bytes for access in self.accesses if not access.counter)
        columns = self.builder.add(self.code.minimum(self.block, self.inner), I64(self.lanes))
        cleared = self.builder.add(self.builder.mul(columns, I64(2 * widest)), I64(2 * LINE))
        with self.code.loop(I64(0), cleared, 8) as at:
            self.builder.store(I64(0), self.code.offset(self._zeros, at))
        counts = [*self.group_counts, self.chunks, self.blocks]
        indices = [self.code.local(I64, index) for index in self.code.split(first, [I64(0), *counts])[1:]]
        with self.code.loop(first, last):
            *group, across, along = (self.code.get(index) for index in indices)
            self._block(self._moved(self.bases, group, self.layout.group_stride), across, along)
            self._advance([], indices, counts, self.layout.group_stride)

    def _block(self, pointers: Pointers, across: ir.Value, along: ir.Value) -> None:
        """A block of rows and columns of the group at `pointers`."""
        known = self.evaluate(Level.GROUP, 1, pointers, {})
        first, last = self.chunk_range(across, self.row_counts[0])
        start = self.builder.mul(along, self.block)
        stop = self.code.minimum(self.builder.add(start, self.block), self.inner)
        rest = self.code.local(I64, first)
        together = self._together.readings
        with self.code.loop(first, last, len(together)) as row:
            self._rows(pointers, known, row, together, (start, stop))
            self.code.set(rest, self.builder.add(row, I64(len(together))))
        with self.code.loop(self.code.get(rest), last) as row:
            self._rows(pointers, known, row, [self._together.alone], (start, stop))

    def _rows(
        self,
        pointers: Pointers,
        known: Values,
        row: ir.Value,
        readings: Sequence[tuple[Reading | None, ...]],
        columns: tuple[ir.Value, ir.Value],
    ) -> None:
        """As many rows from `row` on as there are readings: one vector of each after the other."""
        places = [self._moved(pointers, [row], self.layout.row_stride)]
        for _ in readings[1:]:
            steps = [self.parameter(self.layout.row_stride(each, 0)) for each in self._together.alike]
            places.append([self.code.offset(*each) for each in zip(places[-1], steps, strict=True)])
        values = [self.evaluate(Level.ROW, 1, place, known) for place in places]
        self._lines = {}

        def store(index: ir.Value, mask: ir.Value | None) -> None:
            self._found = {}
            for self._readings, place, value in zip(readings, places, values, strict=True):
                self.store_vector(place, value, index, mask)

        for self._readings, place, value in zip(readings, places, values, strict=True):
            self._begin_lines(place, value, columns[0])
        self.store_vectors(places[0], *columns, store)

    def _begin_lines(self, pointers: Pointers, values: Values, start: ir.Value) -> None:
        """Where the lines of a row begin. Where the part of their guards that is the same for all columns is
        false, a row of zeros is read in their place, without a branch."""
        for node in self.nodes:
            reading = self._reading(node)
            if reading is not None and self._is_in_line(node) and reading.line not in self._lines:
                access = number_of(node)
                line = self.code.offset(pointers[access], I64(-reading.distance))
                before = self.builder.neg(self.builder.mul(start, self.steps[access]))
                zeros = self.code.offset(self.code.offset(self._zeros, before), I64(LINE))
                for condition in self._conditions(node):
                    if self.levels[id(condition)] is not Level.ELEMENT:
                        line = self.builder.select(self.value(condition, 1, values), line, zeros)
                self._lines[reading.line] = line

    def _reading(self, node: Node) -> Reading | None:
        """What a load reads that moves along the row at hand."""
        is_load = node.operation is Operation.SOURCE
        return self._readings[number_of(node)] if is_load else None

    def _is_in_line(self, node: Node) -> bool:
        """Whether a load is one of vectors, without computed distances."""
        access = self.accesses[number_of(node)]
        is_near = access.step in (Step.CONTIGUOUS, Step.DOUBLE)
        return is_near and not access.counter and len(node.operands) < 2

    def _conditions(self, node: Node) -> Iterator[Node]:
        """The conditions under which a load reads."""
        for guard in node.operands:
            yield from conditions_of(guard)

    def loaded(
        self,
        node: Node,
        lanes: int,
        pointers: Pointers,
        values: Values,
        index: ir.Value | None,
        mask: ir.Value | None,
    ) -> Values:
        """A load, unless a row before had it."""
        reading = self._reading(node)
        if reading is None or index is None:
            return super().loaded(node, lanes, pointers, values, index, mask)
        if reading.number not in self._found:
            results = super().loaded(node, lanes, pointers, values, index, mask)
            for each in self.nodes:
                other = self._reading(each)
                if other is not None and id(each) in results:
                    self._found[other.number] = results[id(each)]
        return {id(node): self._found[reading.number]}

    def load(
        self,
        node: Node,
        lanes: int,
        pointers: Pointers,
        values: Values,
        index: ir.Value | None,
        mask: ir.Value | None,
    ) -> ir.Value:
        """A load; of a line, under what of its guard changes along it."""
        reading = self._reading(node)
        if reading is None or index is None or not self._is_in_line(node):
            return super().load(node, lanes, pointers, values, index, mask)
        access = number_of(node)
        address = self.code.offset(self._lines[reading.line], self.builder.mul(index, self.steps[access]))
        guards = [
            self.value(each, lanes, values)
            for each in self._conditions(node)
            if self.levels[id(each)] is Level.ELEMENT
        ]
        columns = reduce(self.builder.and_, guards) if guards else None
        return self.read(access, lanes, self.code.offset(address, I64(reading.distance)), mask, columns, None)

    def _moved(self, pointers: Pointers, indices: Sequence[ir.Value], stride: Stride) -> Pointers:
        """The distances of accesses that move alike are computed once."""
        if not indices:
            return pointers
        distances = {
            first: reduce(
                self.builder.add,
                [
                    self.builder.mul(index, self.parameter(stride(first, loop)))
                    for loop, index in enumerate(indices)
                ],
            )
            for first in set(self._together.alike)
        }
        alike = zip(pointers, self._together.alike, strict=True)
        return [self.code.offset(pointer, distances[first]) for pointer, first in alike]
