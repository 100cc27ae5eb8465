"""Code that packs operands of products: elements are computed, and stored as micro-kernels read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, reduce
from typing import Protocol

from opendml.across_forks import cached_property
from opendml.compiler.kernel import number_of
from opendml.program.node import Node, Operation
from opendml.targets.common.pattern import Level, Step
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I1, I64, Code
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.tiling import STEP, Instructions, OperandA, OperandB, bf16_bytes
from opendml.targets.cpu.kernel_code import KernelCode
from opendml.targets.cpu.loads import Pointers, Values
from opendml.targets.cpu.pattern import LINE
from opendml.targets.cpu.shared_rows import conditions_of
from opendml.targets.cpu.shuffles import transposed
from opendml.targets.cpu.values import number as constant
from opendml.targets.cpu.values import splat

AHEAD = 12
"""Rows of k by which operands are prefetched; fitted on an Intel Xeon with AVX-512."""

Range = tuple[ir.Value, ir.Value]
"""The first index, and the one behind the last."""

AddressOf = Callable[[ir.Value, ir.Value], ir.Value]
"""Returns the address of a packed element, by its row and its column."""


class Packer(Protocol):
    """Packs parts of panels of an operand in the format that its instructions read."""

    def pack(self, place: ir.Value, across: Range, depth: Range) -> None:
        """Pack one part: a range of m or n, and a range of k."""


class PackingCode(KernelCode):
    """Reads and packs one operand.

    The row loops of its pattern are those of the major dimension, then the outer loops of the minor
    dimension. The innermost loop is that of the minor dimension. As a kernel of its own the code packs all
    panels with its packer, one behind the other: [group][panel][part]. An item is a panel then.
    """

    packer: Packer

    def __init__(self, code: Code, operand: OperandA | OperandB, first_parameter: int = 0) -> None:
        super().__init__(code, operand.packing.pattern, first_parameter)
        self.operand = operand
        self._majors, self._along_depth = operand.packing.majors, operand.packing.along_depth
        self._pointers: Pointers = ()
        self._known: Values = {}
        self.packed_value = next(iter(operand.packing.pattern.values), None)
        """The value that is packed, one of the pattern's. A counter of panels has none."""

    def item(self, item: ir.Value) -> None:
        """Pack one panel."""
        group, panel = self.code.split(item, [I64(0), self.chunks])
        self.begin(group)
        across = self.chunk_range(panel, self.units)
        depth = self.depth
        before = self.builder.sub(depth, I64(1))
        parts = self.builder.udiv(self.builder.add(self.elements, before), depth)
        with self.code.loop(I64(0), parts) as part:
            first = self.builder.mul(part, depth)
            last = self.code.minimum(self.builder.add(first, depth), self.elements)
            position = self.builder.add(self.builder.mul(item, parts), part)
            distance = self.builder.mul(position, self.part_bytes(self.elements))
            self.packer.pack(self.code.offset(self.arena(), distance), across, (first, last))

    @property
    def depth(self) -> ir.Value:
        """The products of a part."""
        return I64(self.operand.depth) if self.operand.depth else self.block

    def begin(self, group: ir.Value) -> None:
        """Go to the first element of a group."""
        self._pointers = self.group_pointers(group)
        self._known = self.evaluate(Level.GROUP, 1, self._pointers, {})

    def prefetch(self, group: ir.Value, majors: Range) -> None:
        """Prefetch rows of a group that will be packed later."""
        counts = self.row_counts[: self._majors]
        pointers = self.group_pointers(group)
        with self._walk(pointers, counts, self.layout.row_stride, *majors) as (_, row):
            for position in self._contiguous:
                length = self.builder.mul(self.inner, I64(self.accesses[position].type.bytes))
                with self.code.loop(I64(0), self.builder.add(length, I64(LINE - 1)), LINE) as at:
                    self.code.prefetch(self.code.offset(row[position], at), level=2)

    @cached_property
    def _contiguous(self) -> list[int]:
        """The numbers of accesses whose elements along the minor dimension are neighbours in memory."""
        return [
            position
            for position, access in enumerate(self.accesses)
            if access.step is Step.CONTIGUOUS and not access.counter
        ]

    def group_distance(self) -> ir.Value:
        """Return the bytes to a group of an operand that is packed ahead: the value of its one load."""
        (pointer,) = self._pointers
        return self.builder.ptrtoint(pointer, I64)

    def part_bytes(self, elements: ir.Value) -> ir.Value:
        """Return the bytes of a part if `elements` products are summed, a number known at run time."""
        operand = self.operand
        if isinstance(operand, OperandA):
            if operand.depth:
                return I64(operand.part_bytes(self.lanes))
            _, column_bytes = operand.strides(self.lanes)
            size = self.builder.mul(self.builder.add(self.depth, I64(self.lanes)), I64(column_bytes))
            return self.builder.mul(self.parts(size, LINE), I64(LINE))
        depth = self.code.minimum(elements, self.depth)
        if operand.instructions is Instructions.AMX_BF16:
            step_bytes = I64(bf16_bytes(operand.columns, STEP) - LINE)
            return self.builder.add(self.builder.mul(self.parts(depth, STEP), step_bytes), I64(LINE))
        rows = self.parts(depth, operand.packing.group)
        rows = self.builder.add(rows, I64(self.lanes))
        return self.builder.mul(rows, I64(operand.columns * F32.bytes))

    def at(self, major: ir.Value, minor: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Return where an element of a plain operand lies, and the bytes from one row to the next."""
        row_bytes = self.parameter(self.layout.row_stride(0, 0))
        row = self.code.offset(self._pointers[0], self.builder.mul(major, row_bytes))
        return self._element(row, minor), row_bytes

    # Formats

    def pack_a(self, place: ir.Value, rows: Range, depth: Range) -> None:
        """Pack a part of a micro-panel of A for vectors. Rows that a last panel lacks are anything."""
        operand = self.operand
        assert isinstance(operand, OperandA)
        row_bytes, column_bytes = operand.strides(self.lanes)
        at = self.rows_at(place, column_bytes)
        if operand.lies_in_rows:
            self._pack_rows(self.rows_at(place, row_bytes), operand.rows, rows, depth)
        elif operand.is_line and self._along_depth:
            self._pack(lambda row, column: at(column, row), rows, depth, 0)
        elif self._packs_vectors(operand):
            self._pack_vectors(at, depth, rows, AHEAD)
        else:
            self.pack_k_rows(at, rows, depth, operand.rows)

    def _packs_vectors(self, operand: OperandA) -> bool:
        """Return whether the rows of a micro-panel fit a vector, and follow each other in memory."""
        is_short = operand.rows <= self.lanes and operand.packing.group == 1
        return is_short and self.is_in_vectors and not self._along_depth

    def _pack_vectors(self, place: AddressOf, majors: Range, minors: Range, ahead: int) -> None:
        """Pack rows along the minor dimension of at most a vector each. All have one mask, so a row takes a
        load and a store."""
        mask = self.code.first_lanes(self.builder.sub(minors[1], minors[0]))
        counts = self.row_counts[: self._majors]
        with self._walk(self._pointers, counts, self.layout.row_stride, *majors) as (major, pointers):
            known = self.evaluate(Level.ROW, 1, pointers, self._known)
            for pointer, step in self._rows_ahead(pointers, ahead):
                distance = self.builder.mul(minors[0], step)
                self.code.prefetch(self.code.offset(pointer, distance), level=2)
            vector = self._vector(pointers, known, minors[0], mask)
            self.code.store(place(self.builder.sub(major, majors[0]), I64(0)), vector, F32)

    def _pack_rows(self, at: AddressOf, count: int, rows: Range, depth: Range) -> None:
        """Pack `count` rows along k. Rows that are missing become zero."""
        self._pack(at, rows, depth, 0)
        present, columns = self.builder.sub(rows[1], rows[0]), self.builder.sub(depth[1], depth[0])
        with self.code.loop(present, I64(count)) as row:
            self.clear(at(row, I64(0)), columns)

    def pack_b(self, place: AddressOf, width: int, columns: Range, depth: Range) -> None:
        """Pack a part of panels of B for vectors, each of `width` columns. Columns that the last panel lacks
        become finite."""
        self._clear_missing(place, width, depth, columns)
        self.pack_k_rows(place, columns, depth)

    def pack_k_rows(self, place: AddressOf, across: Range, depth: Range, ahead: int = 0) -> None:
        """Pack a range of m or n as rows along k, and columns across.

        As many of both may be overwritten as make whole vectors. If the operand lies along k, elements
        `ahead` rows of m or n later are prefetched.
        """
        if self._along_depth:
            self._pack_transposed(place, across, depth, ahead)
        else:
            self._pack(place, depth, across, AHEAD)

    def pack_m_rows(self, place: AddressOf, rows: Range, depth: Range) -> None:
        """Pack a range of m as rows, and columns along k."""
        if self._along_depth:
            self._pack(place, rows, depth, 0)
        else:
            self._pack_transposed(place, depth, rows)

    def _clear_missing(self, place: AddressOf, width: int, depth: Range, columns: Range) -> None:
        """Store zeros in the columns that the last panel lacks."""
        present = self.builder.sub(columns[1], columns[0])
        whole = self.builder.mul(self.parts(present, width), I64(width))
        with self.builder.if_then(self.builder.icmp_signed("!=", whole, present)):
            last = self.builder.sub(whole, I64(width))
            with self.code.loop(I64(0), self.builder.sub(depth[1], depth[0])) as row:
                self.clear(place(row, last), I64(width))

    # Rows of the major dimension

    def _pack(self, place: AddressOf, majors: Range, minors: Range, ahead: int) -> None:
        """Pack rows along the minor dimension. Less than a vector behind a row may be overwritten. Elements
        `ahead` rows later are prefetched."""
        outer = self._outer(minors)
        counts = self.row_counts[: self._majors]
        with self._walk(self._pointers, counts, self.layout.row_stride, *majors) as (major, pointers):
            row = self.builder.sub(major, majors[0])
            with self._runs(pointers, minors, outer) as (run, start, stop, position):
                self._pack_run(run, (start, stop), partial(place, row), position, ahead)

    def _pack_run(
        self,
        run: Pointers,
        part: Range,
        place: Callable[[ir.Value], ir.Value],
        position: ir.Value,
        ahead: int,
    ) -> None:
        known = self.evaluate(Level.ROW, 1, run, self._known)
        prefetched = self._rows_ahead(run, ahead)
        before = self.builder.sub(position, part[0])

        def put(index: ir.Value, mask: ir.Value | None) -> None:
            for pointer, step in prefetched:
                self.code.prefetch(self.code.offset(pointer, self.builder.mul(index, step)), level=2)
            at = place(self.builder.add(before, index))
            guards = self._guards_of_runs if mask is None else []
            if not guards:
                self.code.store(at, self._vector(run, known, index, mask), F32)
                return
            at_ends = (
                self.evaluate(Level.ELEMENT, 1, run, known, each, None, guards)
                for each in (index, self.builder.add(index, I64(self.lanes - 1)))
            )
            hold = [self.value(guard, 1, values) for values in at_ends for guard in guards]
            unguarded = known | {id(guard): I1(1) for guard in guards}
            with self.builder.if_else(reduce(self.builder.and_, hold), likely=True) as branches:
                for branch, values in zip(branches, (unguarded, known), strict=True):
                    with branch:
                        self.code.store(at, self._vector(run, values, index, mask), F32)

        self.code.vector_loop(*part, put)

    @cached_property
    def _guards_of_runs(self) -> list[Node]:
        """The guards that hold for one run of the innermost loop: those that compare its counter.

        If such a guard holds at both ends of a vector, the vector is loaded without a mask. Packing an image
        with margins takes half the time then (Zen 3).
        """
        guards = {
            id(node.operands[0]): node.operands[0]
            for node in self.nodes
            if node.operation is Operation.SOURCE and len(node.operands) == 1
        }
        return [each for each in guards.values() if self._holds_for_one_run(each)]

    def _holds_for_one_run(self, guard: Node) -> bool:
        conditions = [each for each in conditions_of(guard) if self.levels[id(each)] is Level.ELEMENT]
        for each in conditions:
            moving = [operand for operand in each.operands if self.levels[id(operand)] is Level.ELEMENT]
            if each.operation is not Operation.LESS or len(moving) != 1:
                return False
            if moving[0].operation is not Operation.SOURCE or not self.accesses[number_of(moving[0])].counter:
                return False
        return bool(conditions)

    def _rows_ahead(self, run: Pointers, rows: int) -> list[tuple[ir.Value, ir.Value]]:
        """Return where contiguous accesses will be `rows` of the major dimension later, and their steps."""
        if not (rows and self._majors):
            return []
        result = []
        for position in self._contiguous:
            stride = self.parameter(self.layout.row_stride(position, self._majors - 1))
            distance = self.builder.mul(stride, I64(rows))
            result.append((self.code.offset(run[position], distance), self.steps[position]))
        return result

    def _pack_transposed(self, place: AddressOf, majors: Range, minors: Range, ahead: int = 0) -> None:
        """Pack the minor dimension along columns, and the major one along rows. As many of both may be
        overwritten as make whole vectors. Elements `ahead` majors later are prefetched."""
        outer = self._outer(minors)
        first, last = majors
        rest = self.builder.and_(self.builder.sub(first, last), I64(self.lanes - 1))
        with self.code.loop(first, self.builder.add(last, rest), self.lanes) as major:
            column = self.builder.sub(major, first)
            with self._runs(self._pointers, minors, outer) as (run, start, stop, position):
                rows = [self._at_major(run, major, lane, last) for lane in range(self.lanes)]
                before = self.builder.sub(position, start)
                self._pack_columns(rows, (start, stop), place, before, column, ahead)

    def _pack_columns(
        self,
        rows: list[Pointers],
        part: Range,
        place: AddressOf,
        before: ir.Value,
        column: ir.Value,
        ahead: int,
    ) -> None:
        known = [self.evaluate(Level.ROW, 1, row, self._known) for row in rows]

        def put(index: ir.Value, mask: ir.Value | None) -> None:
            self._prefetch_majors(rows, index, ahead)
            pairs = zip(rows, known, strict=True)
            vectors = [self._vector(pointers, values, index, mask) for pointers, values in pairs]
            first = self.builder.add(before, index)
            for number, vector in enumerate(transposed(self.builder, vectors, F32, self.lanes)):
                self.code.store(place(self.builder.add(first, I64(number)), column), vector, F32)

        self.code.vector_loop(*part, put)

    def read_together(
        self,
        majors: Range,
        count: int,
        minors: Range,
        take_in: Callable[[ir.Value, ir.Value | None, list[ir.Value]], None],
    ) -> None:
        """Call `take_in(index, mask, vectors)` for each vector along a range of the minor dimension.

        The minor dimension has one loop. `vectors` are those of `count` majors; majors behind the last are
        the last. The next majors are prefetched.
        """
        first, last = majors
        rows = [self._at_major(self._pointers, first, number, last) for number in range(count)]
        known = [self.evaluate(Level.ROW, 1, row, self._known) for row in rows]

        def read(index: ir.Value, mask: ir.Value | None) -> None:
            self._prefetch_majors(rows, index, count)
            pairs = zip(rows, known, strict=True)
            take_in(index, mask, [self._vector(row, values, index, mask) for row, values in pairs])

        self.code.vector_loop(*minors, read)

    def _at_major(self, run: Pointers, major: ir.Value, lane: int, last: ir.Value) -> Pointers:
        """Return where the accesses are at an index of the major dimension; behind the last, at the last."""
        final = self.builder.sub(last, I64(1))
        index = self.code.minimum(self.builder.add(major, I64(lane)), final)
        return self.moved(
            run, self.code.split(index, self.row_counts[: self._majors]), self.layout.row_stride
        )

    def _prefetch_majors(self, rows: list[Pointers], index: ir.Value, ahead: int) -> None:
        """Prefetch the elements at an index of the next `ahead` majors."""
        if not (ahead and self._majors):
            return
        for position in self._contiguous:
            stride = self.parameter(self.layout.row_stride(position, self._majors - 1))
            distance = self.builder.mul(index, self.steps[position])
            distance = self.builder.add(distance, self.builder.mul(stride, I64(ahead)))
            for row in rows[:ahead]:
                self.code.prefetch(self.code.offset(row[position], distance), level=2)

    # Runs of the minor dimension

    @property
    def is_in_vectors(self) -> bool:
        """True if vectors of packed elements begin at multiples of their lanes."""
        return len(self.row_counts) == self._majors

    def _outer(self, minors: Range) -> Range | None:
        """Return the indices of the minor dimension's outer loops in a range; None if it has none."""
        if self.is_in_vectors:
            return None
        first, last = minors
        before_last = self.builder.udiv(self.builder.sub(last, I64(1)), self.inner)
        return self.builder.udiv(first, self.inner), self.builder.add(before_last, I64(1))

    @contextmanager
    def _runs(
        self, pointers: Pointers, minors: Range, outer: Range | None
    ) -> Iterator[tuple[Pointers, ir.Value, ir.Value, ir.Value]]:
        """Loop over the parts of a range of the minor dimension within one innermost loop. Yields where the
        accesses are, the part's range of that loop, and its position within the whole range."""
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

    # Elements

    def _vector(self, pointers: Pointers, known: Values, index: ir.Value, mask: ir.Value | None) -> ir.Value:
        """Return the operand's value at a vector of the innermost loop."""
        root = self.packed_value
        assert root is not None
        values = self.evaluate(Level.ELEMENT, self.lanes, pointers, known, index, mask, [root])
        return splat(self.builder, self.value(root, self.lanes, values), self.lanes)

    def _element(self, place: ir.Value, number: ir.Value) -> ir.Value:
        return self.code.offset(place, self.builder.mul(number, I64(F32.bytes)))

    def rows_at(self, place: ir.Value, pitch: int) -> AddressOf:
        """Return the places of rows that are `pitch` bytes apart."""

        def at(row: ir.Value, column: ir.Value) -> ir.Value:
            return self._element(self.code.offset(place, self.builder.mul(row, I64(pitch))), column)

        return at

    def clear(self, place: ir.Value, count: ir.Value) -> None:
        """Store zeros, in whole vectors."""
        zero = constant(F32, self.lanes, 0.0)
        with self.code.loop(I64(0), self.parts(count, self.lanes)) as vector:
            at = self.builder.mul(vector, I64(F32.bytes * self.lanes))
            self.code.store(self.code.offset(place, at), zero, F32)

    def parts(self, count: ir.Value, size: int) -> ir.Value:
        """Return the number of parts of a size in a count. The last one may be smaller."""
        return self.builder.udiv(self.builder.add(count, I64(size - 1)), I64(size))
