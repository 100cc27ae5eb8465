"""Operands of products, computed and put down as micro-kernels read them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llvmlite import ir

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.code import I64, Code
from opendml.targets.cpu.kernel_code import KernelCode, Pointers, Values
from opendml.targets.cpu.pattern import Level, Packing, Step
from opendml.targets.cpu.transposed_code import transposed
from opendml.targets.cpu.values import splat

F32 = ScalarType.FLOAT32
"""The type in which products are added."""

Range = tuple[ir.Value, ir.Value]
"""The first index, and the one behind the last."""


class PackingCode(KernelCode):
    """One operand. Its row loops are those of its major dimension, then the outer ones of its minor
    dimension, whose innermost is the innermost of all."""

    def __init__(
        self, function: ir.Function, packing: Packing, lanes: int, code: Code, first_parameter: int
    ) -> None:
        super().__init__(function, packing.pattern, lanes, code, first_parameter)
        self._majors = packing.majors
        (self._root,) = packing.pattern.values
        self._pointers: Pointers = ()
        self._known: Values = {}

    def begin(self, group: ir.Value) -> None:
        """Goes to the first element of a group."""
        self._pointers = self.group_pointers(group)
        self._known = self.evaluate(Level.GROUP, 1, self._pointers, {})

    def pack(self, place: ir.Value, pitch: int, majors: Range, minors: Range, ahead: int) -> None:
        """Rows of the minor dimension, `pitch` bytes apart. What lies behind a row may be overwritten, by
        less than a vector. What will be read `ahead` rows later is asked for."""
        outer = self._outer(minors)
        counts = self.row_counts[: self._majors]
        with self._walk(self._pointers, counts, self.layout.row_stride, *majors) as (major, pointers):
            distance = self.builder.mul(self.builder.sub(major, majors[0]), I64(pitch))
            row = self.code.offset(place, distance)
            with self._runs(pointers, minors, outer) as (run, start, stop, position):
                self._pack_run(run, self._element(row, position), start, stop, ahead)

    def _pack_run(self, run: Pointers, place: ir.Value, start: ir.Value, stop: ir.Value, ahead: int) -> None:
        known = self.evaluate(Level.ROW, 1, run, self._known)
        later = self._later(run, ahead)

        def put(index: ir.Value, mask: ir.Value | None) -> None:
            for pointer, step in later:
                self.code.prefetch(self.code.offset(pointer, self.builder.mul(index, step)))
            at = self._element(place, self.builder.sub(index, start))
            self.code.store(at, self._vector(run, known, index, mask), F32)

        self.code.vector_loop(start, stop, put)

    def _later(self, run: Pointers, rows: int) -> list[tuple[ir.Value, ir.Value]]:
        """Where contiguous accesses will stand so many rows of the major dimension later, and their steps."""
        if not self._majors:
            return []
        result = []
        for number, access in enumerate(self.accesses):
            if access.step is Step.CONTIGUOUS and not access.counter:
                stride = self.parameter(self.layout.row_stride(number, self._majors - 1))
                distance = self.builder.mul(stride, I64(rows))
                result.append((self.code.offset(run[number], distance), self.steps[number]))
        return result

    def pack_transposed(self, place: ir.Value, pitch: int, majors: Range, minors: Range) -> None:
        """Columns of the minor dimension: its elements lie `pitch` bytes apart, those of the major dimension
        side by side. As many columns and rows may be overwritten as make whole vectors."""
        outer = self._outer(minors)
        first, last = majors
        rest = self.builder.and_(self.builder.sub(first, last), I64(self.lanes - 1))
        with self.code.loop(first, self.builder.add(last, rest), self.lanes) as major:
            target = self._element(place, self.builder.sub(major, first))
            with self._runs(self._pointers, minors, outer) as (run, start, stop, position):
                rows = [self._at_major(run, major, lane, last) for lane in range(self.lanes)]
                origin = self.code.offset(target, self.builder.mul(position, I64(pitch)))
                self._pack_columns(rows, origin, pitch, start, stop)

    def _at_major(self, run: Pointers, major: ir.Value, lane: int, last: ir.Value) -> Pointers:
        """Where the accesses stand at an index of the major dimension; behind the last, that of the last."""
        final = self.builder.sub(last, I64(1))
        index = self.code.minimum(self.builder.add(major, I64(lane)), final)
        return self._moved(
            run, self.code.split(index, self.row_counts[: self._majors]), self.layout.row_stride
        )

    def _pack_columns(
        self, rows: list[Pointers], place: ir.Value, pitch: int, start: ir.Value, stop: ir.Value
    ) -> None:
        known = [self.evaluate(Level.ROW, 1, row, self._known) for row in rows]

        def put(index: ir.Value, mask: ir.Value | None) -> None:
            vectors = [
                self._vector(row, values, index, mask) for row, values in zip(rows, known, strict=True)
            ]
            distance = self.builder.mul(self.builder.sub(index, start), I64(pitch))
            at = self.code.offset(place, distance)
            for number, column in enumerate(transposed(self.builder, vectors, F32, self.lanes)):
                self.code.store(self.code.offset(at, I64(number * pitch)), column, F32)

        self.code.vector_loop(start, stop, put)

    def _outer(self, minors: Range) -> Range | None:
        """The indices of the minor dimension's outer loops that a range touches; None if it has none."""
        if len(self.row_counts) == self._majors:
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
        return splat(self.builder, self.value(self._root, self.lanes, values), self.lanes)

    def _element(self, place: ir.Value, number: ir.Value) -> ir.Value:
        return self.code.offset(place, self.builder.mul(number, I64(F32.bytes)))
