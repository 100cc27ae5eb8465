"""Kernels that scatter along lines: positions or values go to the places that elements name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from opendml.program.node import Operation
from opendml.targets.common.lines import placing_in
from opendml.targets.common.pattern import Level, Step
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I1, I64, Body, Code
from opendml.targets.cpu.kernel_code import KernelCode
from opendml.targets.cpu.loads import Pointers, Values
from opendml.targets.cpu.pattern import LINE, CpuMode, CpuPattern
from opendml.targets.cpu.values import any_lane, intrinsic, scalar_llvm_type, vector_constant

_ROWS_AHEAD = 8
"""Rows of lines side by side by which elements are prefetched. The rows of a narrow tile lie too far apart
for the processor to look ahead."""

Columns = Callable[[Body], None]
"""Calls a body for each vector of some lines that lie side by side."""


class PlacingCode(KernelCode):
    """The one placing of a kernel, along the innermost loop. An item is a batch of lines, or a chunk.

    Attributes:
        placed: the node.
        operands: its operands that move along a line.
        before: the earlier values of the results, if the kernel computes them. Else they lie in memory.
        stored: the numbers of the stores.
    """

    def __init__(self, code: Code, pattern: CpuPattern) -> None:
        super().__init__(code, pattern)
        placing = placing_in(pattern.values)
        self.placed, self.operands, self.before = placing.node, placing.operands, placing.before
        self.stored = range(len(pattern.loads), len(self.accesses))

    def item(self, item: ir.Value) -> None:
        """Emit one batch."""
        first, last = self.chunk_range(item, self.groups)
        with self.walk_groups(first, last) as (_, pointers):
            self.line(item, pointers)

    def line(self, item: ir.Value, pointers: Pointers) -> None:
        """Emit one line."""
        raise NotImplementedError

    def outside_loops(self, level: Level, pointers: Pointers, known: Values) -> Values:
        """Return `known`, and what operands need at an outer level."""
        return self.evaluate(level, 1, pointers, known, roots=self.operands)

    def elements_at(
        self, pointers: Pointers, known: Values, index: ir.Value, mask: ir.Value | None = None
    ) -> list[ir.Value]:
        """Return a vector of each operand at an index of the line."""
        values = self.evaluate(Level.ELEMENT, self.lanes, pointers, known, index, mask, self.operands)
        return [self.vector(operand, self.lanes, values) for operand in self.operands]

    def stride(self, access: int) -> ir.Value:
        """Return the bytes from one place of a line to the next."""
        return self.parameter(self.layout.inner_stride(access))

    def narrow(self, position: ir.Value) -> ir.Value:
        """Return a position in the type of the results."""
        return self.code.narrowed(position, scalar_llvm_type(self.placed.type))

    def positions(self, first: ir.Value) -> ir.Value:
        """Return a vector of positions in the type of the results."""
        steps = vector_constant(scalar_llvm_type(self.placed.type), range(self.lanes))
        return self.builder.add(self.code.broadcast(self.narrow(first)), steps)


class Target(NamedTuple):
    """The memory in which results of a vector of elements lie.

    Attributes:
        first: the address of place 0 of the first lane.
        step: the bytes from one place of a line to the next.
        along: the bytes from the line of one lane to that of the next; None if they have one line.
    """

    first: ir.Value
    step: ir.Value
    along: ir.Value | None


class ScatterCode(PlacingCode):
    """Stores the last position or value that goes to each place, or the sum of all values. Other places keep
    what they hold."""

    def __init__(self, code: Code, pattern: CpuPattern) -> None:
        super().__init__(code, pattern)
        self._lanes_scratch = [self.code.array(operand.type, self.lanes) for operand in self.operands]

    def line(self, item: ir.Value, pointers: Pointers) -> None:
        """Emit one line, in order."""
        of_line = self.outside_loops(Level.GROUP, pointers, {})
        targets = [Target(pointers[access], self.stride(access), None) for access in self.stored]
        self._keep_before(pointers)
        with self.walk_rows(pointers, I64(0), self.units) as (_, row):
            known = self.outside_loops(Level.ROW, row, of_line)

            def step(index: ir.Value, mask: ir.Value | None) -> None:
                vectors = self.elements_at(row, known, index, mask)
                self.put(targets, vectors, mask, lambda: self.positions(index))

            self.code.vector_loop(I64(0), self.inner, step)

    def _keep_before(self, pointers: Pointers) -> None:
        """Store the earlier values of a line, if the kernel computes them."""
        if self.before:
            known = self.evaluate(Level.GROUP, 1, pointers, {}, roots=self.before)

            def keep(index: ir.Value, mask: ir.Value | None) -> None:
                self.store_all(self.before_at(pointers, known, index, mask), pointers, index, mask)

            self.code.vector_loop(I64(0), self.elements, keep)

    def store_all(self, value: ir.Value, pointers: Pointers, index: ir.Value, mask: ir.Value | None) -> None:
        """Store a vector by all stores."""
        for access in self.stored:
            self.store(access, value, pointers, index, mask)

    def before_at(
        self, pointers: Pointers, known: Values, index: ir.Value, mask: ir.Value | None
    ) -> ir.Value:
        """Return a vector of earlier values that the kernel computes."""
        values = self.evaluate(Level.ELEMENT, self.lanes, pointers, known, index, mask, self.before)
        return self.vector(self.before[0], self.lanes, values)

    def put(
        self,
        targets: Sequence[Target],
        vectors: list[ir.Value],
        mask: ir.Value | None,
        position: Callable[[], ir.Value],
    ) -> None:
        """Store or add, in the order of the lanes, the values or the positions of vectors of operands."""
        limit = self.code.narrowed(self.elements, scalar_llvm_type(self.operands[0].type))
        inside = self.builder.icmp_unsigned("<", vectors[0], self.code.broadcast(limit))
        if mask is not None:
            inside = self.builder.and_(inside, mask)
        if self.placed.operation is Operation.SCATTER_SUM:
            self._add(targets, vectors, inside)
            return
        value = position() if self.placed.operation is Operation.SCATTER else vectors[1]
        outside = any_lane(self.builder, self.builder.not_(inside), self.lanes)
        with self.builder.if_else(outside, likely=False) as (some, all_lanes):
            with some:
                self._write(targets, vectors[0], value, inside)
            with all_lanes:
                self._write(targets, vectors[0], value, None)

    def _write(
        self, targets: Sequence[Target], places: ir.Value, value: ir.Value, mask: ir.Value | None
    ) -> None:
        places = self.code.unsigned(places, I64)
        for first, step, along in targets:
            distance = self.builder.mul(places, self.code.broadcast(step))
            self.code.scatter(first, along, value, self.placed.type, mask, distance)

    def _add(self, targets: Sequence[Target], vectors: list[ir.Value], inside: ir.Value) -> None:
        """Add lane by lane: several lanes may name one place."""
        for scratch, vector, operand in zip(self._lanes_scratch, vectors, self.operands, strict=True):
            self.code.store(scratch, vector, operand.type)
        with self._set_lanes(inside) as lane:
            place, value = (
                self.code.load(self.code.element_at(scratch, lane, I64(operand.type.bytes)), operand.type, 1)
                for scratch, operand in zip(self._lanes_scratch, self.operands, strict=True)
            )
            place = self.code.unsigned(place, I64)
            for first, step, along in targets:
                distance = self.builder.mul(place, step)
                if along is not None:
                    distance = self.builder.add(distance, self.builder.mul(lane, along))
                target = self.code.offset(first, distance)
                before = self.code.load(target, self.placed.type, 1)
                self.code.store(target, self.builder.add(before, value), self.placed.type)

    @contextmanager
    def _set_lanes(self, mask: ir.Value) -> Iterator[ir.Value]:
        """Loop over the lanes of a mask that are set."""
        bits = self.builder.bitcast(mask, ir.IntType(self.lanes))
        rest = self.code.local(I64)
        self.code.set(rest, self.builder.zext(bits, I64))
        with self.code.loop(I64(0), intrinsic(self.builder, "llvm.ctpop.i64", I64, [self.code.get(rest)])):
            left = self.code.get(rest)
            yield intrinsic(self.builder, "llvm.cttz.i64", I64, [left, I1(0)])
            self.code.set(rest, self.builder.and_(left, self.builder.sub(left, I64(1))))


class ScatterColumnCode(ScatterCode):
    """Scatters along lines side by side, row by row, with lanes over lines. An item is a tile of lines.

    Results are placed where they belong, or in the thread's scratch, which spares pages and sets of caches.
    Scratch holds the results of a tile, or of one vector of lines after the other.
    """

    def item(self, item: ir.Value) -> None:
        """Emit one tile."""
        group, start, stop = self.block_range(item)
        pointers, size = self.group_pointers(group), I64(self.placed.type.bytes)
        columns = partial(self.code.vector_loop, start, stop)
        if self.pattern.mode is CpuMode.SCATTER_COLUMNS:
            self._scatter_in_place(pointers, columns)
        elif self.pattern.mode is CpuMode.SCATTER_TILES:
            self._scatter_in_scratch(pointers, start, self.builder.mul(self.block, size), columns)
        else:
            pitch = I64(self.lanes * self.placed.type.bytes)
            columns(
                lambda index, mask: self._scatter_in_scratch(
                    pointers, index, pitch, lambda put: put(index, mask)
                )
            )

    def _scatter_in_place(self, pointers: Pointers, columns: Columns) -> None:
        """Scatter lines of a group where the results belong."""
        if self.before:
            with self._all_places(pointers) as (_, there):

                def keep(index: ir.Value, mask: ir.Value | None) -> None:
                    self.store_all(self._earlier(there, index, mask), there, index, mask)

                columns(keep)

        def targets(line: ir.Value) -> list[Target]:
            return [
                Target(
                    self.code.element_at(pointers[access], line, self.steps[access]),
                    self.stride(access),
                    self.steps[access],
                )
                for access in self.stored
            ]

        self._scatter_rows(pointers, columns, targets)

    def _scatter_in_scratch(
        self, pointers: Pointers, start: ir.Value, pitch: ir.Value, columns: Columns
    ) -> None:
        """Scatter lines of a group, from `start` on. Their places lie `pitch` bytes apart in scratch."""
        scratch, size = self.launch_scratch(), I64(self.placed.type.bytes)

        def at(index: ir.Value) -> ir.Value:
            return self.code.element_at(scratch, self.builder.sub(index, start), size)

        with self._all_places(pointers) as (place, there):
            into = self.builder.mul(place, pitch)

            def fetch(index: ir.Value, mask: ir.Value | None) -> None:
                value = self._earlier(there, index, mask)
                self.code.store(self.code.offset(at(index), into), value, self.placed.type, mask)

            columns(fetch)
        self._scatter_rows(pointers, columns, lambda index: [Target(at(index), pitch, size)])
        with self._all_places(pointers) as (place, there):
            begin = self.builder.mul(place, pitch)

            def put_back(index: ir.Value, mask: ir.Value | None) -> None:
                address = self.code.offset(at(index), begin)
                value = self.code.load(address, self.placed.type, self.lanes, mask)
                self.store_all(value, there, index, mask)

            columns(put_back)

    @contextmanager
    def _all_places(self, pointers: Pointers) -> Iterator[tuple[ir.Value, Pointers]]:
        """Loop over the places of lines. Yields the place and the addresses of the accesses there."""
        with self.code.loop(I64(0), self.elements) as place:
            yield place, self.row_pointers(pointers, place)

    def _earlier(self, place: Pointers, index: ir.Value, mask: ir.Value | None) -> ir.Value:
        """Return the earlier values at a place of neighbouring lines."""
        if self.before:
            known = self.evaluate(Level.ROW, 1, place, {}, roots=self.before)
            known = self.evaluate(Level.GROUP, self.lanes, place, known, index, mask, self.before)
            return self.before_at(place, known, index, mask)
        first = self.stored[0]
        address = self.code.element_at(place[first], index, self.steps[first])
        return self.loads.read(first, self.lanes, address, mask)

    def _scatter_rows(
        self, pointers: Pointers, columns: Columns, targets: Callable[[ir.Value], Sequence[Target]]
    ) -> None:
        """Scatter lines of a group row by row. `targets` returns those of the lines from an index on."""
        with self.code.loop(I64(0), self.units) as row:
            row_pointers = self.row_pointers(pointers, row)
            known = self.outside_loops(Level.ROW, row_pointers, {})
            later = self.row_pointers(pointers, self.builder.add(row, I64(_ROWS_AHEAD)))

            def step(index: ir.Value, mask: ir.Value | None) -> None:
                self._prefetch(later, index)
                of_lines = self.evaluate(
                    Level.GROUP, self.lanes, row_pointers, known, index, mask, self.operands
                )
                vectors = self.elements_at(row_pointers, of_lines, index, mask)
                self.put(targets(index), vectors, mask, lambda: self.code.broadcast(self.narrow(row)))

            columns(step)

    def _prefetch(self, row: Pointers, index: ir.Value) -> None:
        """Prefetch a vector of elements of a row."""
        for number, access in enumerate(self.pattern.loads):
            if access.step is Step.CONTIGUOUS and not access.counter:
                first = self.code.element_at(row[number], index, self.steps[number])
                for distance in range(0, self.lanes * access.type.bytes, LINE):
                    self.code.prefetch(self.code.offset(first, I64(distance)))

    def stride(self, access: int) -> ir.Value:
        """Return the bytes from one place of a line to the next."""
        return self.parameter(self.layout.row_stride(access, 0))
