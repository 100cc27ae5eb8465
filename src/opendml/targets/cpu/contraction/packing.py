"""Operands of products, computed and put down as micro-kernels read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from llvmlite import ir

from opendml.program.scalar_type import ScalarType
from opendml.targets.common.pattern import Level, Step
from opendml.targets.cpu.code import I64, Code
from opendml.targets.cpu.contraction.patterns import STEP, Packing, Panels, Strips, pieces_bytes
from opendml.targets.cpu.kernel_code import KernelCode
from opendml.targets.cpu.loads import Pointers, Values
from opendml.targets.cpu.pattern import LINE, CpuPattern
from opendml.targets.cpu.shuffles import transposed
from opendml.targets.cpu.values import number as constant
from opendml.targets.cpu.values import splat

F32 = ScalarType.FLOAT32
"""The type in which products are added."""

AHEAD = 12
"""Rows of k by which operands are asked for before they are read."""

Range = tuple[ir.Value, ir.Value]
"""The first index, and the one behind the last."""

Place = Callable[[ir.Value, ir.Value], ir.Value]
"""The address of an element of what is packed, by its row and its column."""


class PackingCode(KernelCode):
    """One operand. Its row loops are those of its major dimension, then the outer ones of its minor
    dimension, whose innermost is the innermost of all."""

    def __init__(
        self,
        function: ir.Function,
        packing: Packing,
        lanes: int,
        code: Code | None = None,
        first_parameter: int = 0,
    ) -> None:
        super().__init__(function, packing.pattern, lanes, code, first_parameter)
        self.packing = packing
        self._majors, self._along_depth = packing.majors, packing.along_depth
        self._pointers: Pointers = ()
        self._known: Values = {}

    def begin(self, group: ir.Value) -> None:
        """Goes to the first element of a group."""
        self._pointers = self.group_pointers(group)
        self._known = self.evaluate(Level.GROUP, 1, self._pointers, {})

    def ask(self, group: ir.Value, majors: Range) -> None:
        """Asks for rows of a group that will be packed later."""
        counts = self.row_counts[: self._majors]
        pointers = self.group_pointers(group)
        with self._walk(pointers, counts, self.layout.row_stride, *majors) as (_, row):
            for access, pointer in zip(self.accesses, row, strict=True):
                if access.step is Step.CONTIGUOUS and not access.counter:
                    length = self.builder.mul(self.inner, I64(access.type.bytes))
                    with self.code.loop(I64(0), self.builder.add(length, I64(LINE - 1)), LINE) as at:
                        self.code.prefetch(self.code.offset(pointer, at), level=2)

    def counted(self) -> ir.Value:
        """The bytes that the one load of an operand packed ahead counts to its group."""
        (pointer,) = self._pointers
        return self.builder.ptrtoint(pointer, I64)

    def pack(self, place: Place, majors: Range, minors: Range, ahead: int) -> None:
        """Rows of the minor dimension. What lies behind a row may be overwritten, by less than a vector. What
        will be read `ahead` rows later is asked for."""
        outer = self._outer(minors)
        counts = self.row_counts[: self._majors]
        with self._walk(self._pointers, counts, self.layout.row_stride, *majors) as (major, pointers):
            row = self.builder.sub(major, majors[0])
            with self._runs(pointers, minors, outer) as (run, start, stop, position):
                self._pack_run(run, (start, stop), partial(place, row), position, ahead)

    def pack_panel(self, place: ir.Value, panels: Panels, rows: Range, depth: Range) -> None:
        """One part of a panel, `depth` of its columns; rows that the last panel lacks are anything."""
        row_bytes, column_bytes = panels.strides(self.lanes)
        at = self.rows_at(place, column_bytes)
        if panels.lies_in_rows:
            self._pack_rows(self.rows_at(place, row_bytes), panels.rows, rows, depth)
        elif panels.is_line and panels.packing.along_depth:
            self.pack(lambda row, column: at(column, row), rows, depth, 0)
        else:
            self.put_down(at, rows, depth, panels.rows)

    def _pack_rows(self, at: Place, count: int, rows: Range, depth: Range) -> None:
        """So many rows, of which those that are missing are zero."""
        self.pack(at, rows, depth, 0)
        present, columns = self.builder.sub(rows[1], rows[0]), self.builder.sub(depth[1], depth[0])
        with self.code.loop(present, I64(count)) as row:
            self.clear(at(row, I64(0)), columns)

    def lies_at(self, major: ir.Value, minor: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Of an operand that is plain: where an element lies, and the bytes from one row to the next."""
        row_bytes = self.parameter(self.layout.row_stride(0, 0))
        row = self.code.offset(self._pointers[0], self.builder.mul(major, row_bytes))
        return self._element(row, minor), row_bytes

    def pack_tiles(self, place: Place, width: int, depth: Range, columns: Range) -> None:
        """Tiles of so many columns; those that the last one lacks are finite."""
        self.clear_behind(place, width, depth, columns)
        self.put_down(place, columns, depth)

    def put_down(self, place: Place, across: Range, depth: Range, ahead: int = 0) -> None:
        """One part of a range of m or n, along columns. As many of both may be overwritten as make whole
        vectors. Where it lies along k, what is read `ahead` rows of m or n later, if any, is asked for."""
        if self._along_depth:
            self.pack_transposed(place, across, depth, ahead)
        else:
            self.pack(place, depth, across, AHEAD)

    def put_rows(self, place: Place, rows: Range, depth: Range) -> None:
        """The same along rows, which lie along k then."""
        if self._along_depth:
            self.pack(place, rows, depth, 0)
        else:
            self.pack_transposed(place, depth, rows)

    def clear_behind(self, place: Place, width: int, depth: Range, columns: Range) -> None:
        """Zeros in the columns that the last tile lacks."""
        present = self.builder.sub(columns[1], columns[0])
        whole = self.builder.mul(self.parts(present, width), I64(width))
        with self.builder.if_then(self.builder.icmp_signed("!=", whole, present)):
            last = self.builder.sub(whole, I64(width))
            with self.code.loop(I64(0), self.builder.sub(depth[1], depth[0])) as row:
                self.clear(place(row, last), I64(width))

    def part_bytes(self, elements: ir.Value, strips: Strips) -> ir.Value:
        """Strips.part_bytes of a number that is known when the code runs."""
        depth = self.code.minimum(elements, I64(strips.depth))
        if strips.packing.in_pieces:
            step_bytes = I64(pieces_bytes(strips.width, STEP) - LINE)
            return self.builder.add(self.builder.mul(self.parts(depth, STEP), step_bytes), I64(LINE))
        rows = self.parts(depth, strips.packing.group)
        rows = self.builder.add(rows, I64(self.lanes))
        return self.builder.mul(rows, I64(strips.width * F32.bytes))

    def rows_at(self, place: ir.Value, pitch: int) -> Place:
        """The places of rows that many bytes apart."""

        def at(row: ir.Value, column: ir.Value) -> ir.Value:
            return self._element(self.code.offset(place, self.builder.mul(row, I64(pitch))), column)

        return at

    def clear(self, place: ir.Value, count: ir.Value) -> None:
        """Zeros, in whole vectors."""
        zero = constant(F32, self.lanes, 0.0)
        with self.code.loop(I64(0), self.parts(count, self.lanes)) as vector:
            at = self.builder.mul(vector, I64(F32.bytes * self.lanes))
            self.code.store(self.code.offset(place, at), zero, F32)

    def parts(self, count: ir.Value, size: int) -> ir.Value:
        """How many parts of a size a count has."""
        return self.builder.udiv(self.builder.add(count, I64(size - 1)), I64(size))

    def _pack_run(
        self,
        run: Pointers,
        part: Range,
        place: Callable[[ir.Value], ir.Value],
        position: ir.Value,
        ahead: int,
    ) -> None:
        known = self.evaluate(Level.ROW, 1, run, self._known)
        later = self._later(run, ahead)
        before = self.builder.sub(position, part[0])

        def put(index: ir.Value, mask: ir.Value | None) -> None:
            for pointer, step in later:
                self.code.prefetch(self.code.offset(pointer, self.builder.mul(index, step)), level=2)
            at = place(self.builder.add(before, index))
            self.code.store(at, self._vector(run, known, index, mask), F32)

        self.code.vector_loop(*part, put)

    def _later(self, run: Pointers, rows: int) -> list[tuple[ir.Value, ir.Value]]:
        """Where contiguous accesses will stand so many rows of the major dimension later, and their steps."""
        if not (rows and self._majors):
            return []
        result = []
        for position, access in enumerate(self.accesses):
            if access.step is Step.CONTIGUOUS and not access.counter:
                stride = self.parameter(self.layout.row_stride(position, self._majors - 1))
                distance = self.builder.mul(stride, I64(rows))
                result.append((self.code.offset(run[position], distance), self.steps[position]))
        return result

    def pack_transposed(self, place: Place, majors: Range, minors: Range, ahead: int = 0) -> None:
        """The minor dimension along columns, the major one along rows. As many of both may be overwritten as
        make whole vectors. What will be read `ahead` majors later, if any, is asked for."""
        outer = self._outer(minors)
        first, last = majors
        rest = self.builder.and_(self.builder.sub(first, last), I64(self.lanes - 1))
        with self.code.loop(first, self.builder.add(last, rest), self.lanes) as major:
            column = self.builder.sub(major, first)
            with self._runs(self._pointers, minors, outer) as (run, start, stop, position):
                rows = [self._at_major(run, major, lane, last) for lane in range(self.lanes)]
                before = self.builder.sub(position, start)
                self._pack_columns(rows, (start, stop), place, before, column, ahead)

    def read_together(
        self,
        majors: Range,
        count: int,
        minors: Range,
        take_in: Callable[[ir.Value, ir.Value | None, list[ir.Value]], None],
    ) -> None:
        """Calls `take_in(index, mask, vectors)` for every vector along a range of the minor dimension, which
        has but one loop: with those of `count` majors, of which those behind the last are the last. The next
        majors are asked for."""
        first, last = majors
        rows = [self._at_major(self._pointers, first, number, last) for number in range(count)]
        known = [self.evaluate(Level.ROW, 1, row, self._known) for row in rows]

        def read(index: ir.Value, mask: ir.Value | None) -> None:
            self._ask_for(rows, index, count)
            pairs = zip(rows, known, strict=True)
            take_in(index, mask, [self._vector(row, values, index, mask) for row, values in pairs])

        self.code.vector_loop(*minors, read)

    def _at_major(self, run: Pointers, major: ir.Value, lane: int, last: ir.Value) -> Pointers:
        """Where the accesses stand at an index of the major dimension; behind the last, that of the last."""
        final = self.builder.sub(last, I64(1))
        index = self.code.minimum(self.builder.add(major, I64(lane)), final)
        return self.moved(
            run, self.code.split(index, self.row_counts[: self._majors]), self.layout.row_stride
        )

    def _pack_columns(
        self,
        rows: list[Pointers],
        part: Range,
        place: Place,
        before: ir.Value,
        column: ir.Value,
        ahead: int,
    ) -> None:
        known = [self.evaluate(Level.ROW, 1, row, self._known) for row in rows]

        def put(index: ir.Value, mask: ir.Value | None) -> None:
            self._ask_for(rows, index, ahead)
            pairs = zip(rows, known, strict=True)
            vectors = [self._vector(pointers, values, index, mask) for pointers, values in pairs]
            first = self.builder.add(before, index)
            for number, vector in enumerate(transposed(self.builder, vectors, F32, self.lanes)):
                self.code.store(place(self.builder.add(first, I64(number)), column), vector, F32)

        self.code.vector_loop(*part, put)

    def _ask_for(self, rows: list[Pointers], index: ir.Value, ahead: int) -> None:
        """Asks for the elements at an index of so many majors later."""
        if not (ahead and self._majors):
            return
        for position, access in enumerate(self.accesses):
            if access.step is Step.CONTIGUOUS and not access.counter:
                stride = self.parameter(self.layout.row_stride(position, self._majors - 1))
                distance = self.builder.mul(index, self.steps[position])
                distance = self.builder.add(distance, self.builder.mul(stride, I64(ahead)))
                for row in rows[:ahead]:
                    self.code.prefetch(self.code.offset(row[position], distance), level=2)

    @property
    def is_in_vectors(self) -> bool:
        """Whether vectors of what is packed begin at multiples of their lanes."""
        return len(self.row_counts) == self._majors

    def _outer(self, minors: Range) -> Range | None:
        """The indices of the minor dimension's outer loops that a range touches; None if it has none."""
        if self.is_in_vectors:
            return None
        first, last = minors
        before_last = self.builder.udiv(self.builder.sub(last, I64(1)), self.inner)
        return self.builder.udiv(first, self.inner), self.builder.add(before_last, I64(1))

    @contextmanager
    def _runs(
        self, pointers: Pointers, minors: Range, outer: Range | None
    ) -> Iterator[tuple[Pointers, ir.Value, ir.Value, ir.Value]]:
        """A loop over the parts of a range of the minor dimension within one innermost loop: where the
        accesses stand, the part's range of that loop, and its place within the whole range."""
        first, last = minors
        if outer is None:
            yield pointers, first, last, I64(0)
            return
        counts = self.row_counts[self._majors :]
        with self._walk(pointers, counts, self._minor_stride, *outer) as (number, run):
            base = self.builder.mul(number, self.inner)
            before = self.builder.sub(first, base)
            start = self.builder.select(self.builder.icmp_signed("<", before, I64(0)), I64(0), before)
            stop = self.code.minimum(self.builder.sub(last, base), self.inner)
            yield run, start, stop, self.builder.sub(start, before)

    def _minor_stride(self, access: int, loop: int) -> int:
        return self.layout.row_stride(access, self._majors + loop)

    def _vector(self, pointers: Pointers, known: Values, index: ir.Value, mask: ir.Value | None) -> ir.Value:
        """The operand's value at a vector of the innermost loop."""
        values = self.evaluate(Level.ELEMENT, self.lanes, pointers, known, index, mask)
        return splat(self.builder, self.value(self.pattern.values[0], self.lanes, values), self.lanes)

    def _element(self, place: ir.Value, number: ir.Value) -> ir.Value:
        return self.code.offset(place, self.builder.mul(number, I64(F32.bytes)))


class PanelCode(PackingCode):
    """Packs all panels of an operand, one after the other: [group][panel][part]. An item is a panel."""

    def __init__(self, function: ir.Function, pattern: CpuPattern, lanes: int) -> None:
        self._panels = pattern.walk_as(Panels)
        super().__init__(function, self._panels.packing, lanes)

    def item(self, item: ir.Value) -> None:
        """One panel."""
        group, panel = self.code.split(item, [I64(0), self.chunks])
        self.begin(group)
        rows = self.chunk_range(panel, self.units)
        depth, parts = I64(self._panels.depth), self.parts(self.elements, self._panels.depth)
        with self.code.loop(I64(0), parts) as part:
            first = self.builder.mul(part, depth)
            last = self.code.minimum(self.builder.add(first, depth), self.elements)
            position = self.builder.add(self.builder.mul(item, parts), part)
            distance = self.builder.mul(position, I64(self._panels.part_bytes(self.lanes)))
            self.pack_panel(self.code.offset(self.arena(), distance), self._panels, rows, (first, last))


class StripCode(PackingCode):
    """Packs all strips of an operand, one after the other: [group][strip][part]. An item is a strip."""

    def __init__(self, function: ir.Function, pattern: CpuPattern, lanes: int) -> None:
        self._strips = pattern.walk_as(Strips)
        super().__init__(function, self._strips.packing, lanes)

    def item(self, item: ir.Value) -> None:
        """One strip."""
        group, strip = self.code.split(item, [I64(0), self.chunks])
        self.begin(group)
        columns = self.chunk_range(strip, self.units)
        parts = self.parts(self.elements, self._strips.depth)
        with self.code.loop(I64(0), parts) as part:
            first = self.builder.mul(part, I64(self._strips.depth))
            last = self.code.minimum(self.builder.add(first, I64(self._strips.depth)), self.elements)
            position = self.builder.add(self.builder.mul(item, parts), part)
            distance = self.builder.mul(position, self.part_bytes(self.elements, self._strips))
            place = self.code.offset(self.arena(), distance)
            self.pack_part(place, (first, last), columns)

    def pack_part(self, place: ir.Value, depth: Range, columns: Range) -> None:
        """One part of a strip."""
        at = self.rows_at(place, self._strips.width * F32.bytes)
        self.pack_tiles(at, self._strips.width, depth, columns)
