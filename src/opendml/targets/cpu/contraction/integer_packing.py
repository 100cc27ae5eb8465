"""Code that packs operands of products of integers: neighbours along k form a group that shares 32 bits.

What is subtracted from all 8-bit elements of a row is left to the micro-kernel. Behind the groups of a part
follow their sums along k, and what is to be subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import zip_longest

from opendml.program.scalar_type import ScalarType
from opendml.targets.common.pattern import Level
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I32, I64
from opendml.targets.cpu.contraction.arithmetic import dot_bytes
from opendml.targets.cpu.contraction.packing import AHEAD, AddressOf, PackingCode, Range
from opendml.targets.cpu.loads import Pointers, Values
from opendml.targets.cpu.values import llvm_type, number, splat, vector_constant, vector_type

_GROUP = ScalarType.INT32
_SIGN = 128
"""The number that makes signed bytes unsigned if it is added, and unsigned ones signed if subtracted."""
_CHAINS = 4
"""Sums that are added to at the same time. Additions to one sum would wait for each other."""


class IntegerPackingCode(PackingCode):
    """Packs an operand as integers of 8 or 16 bits."""

    def pack_k_rows(self, place: AddressOf, across: Range, depth: Range, ahead: int = 0) -> None:
        """Pack rows of groups. As many of both dimensions may be overwritten as make whole vectors, and two
        rows more."""
        packing = self.operand.packing
        if self._along_depth:
            self._group_along_k(place, across, depth)
        else:
            self._group_across_k(place, across, depth)
        if packing.type.bytes == 1:
            count = self.builder.sub(depth[1], depth[0])
            groups = self.parts(count, packing.group)
            subtracted = self.builder.add(groups, I64(1))
            if self._along_depth:
                self._put_subtracted_along_k(place, subtracted, across)
            else:
                self._put_subtracted(place, subtracted, across, depth)
            self._put_sums(place, groups, across, count)

    def _clear_missing(self, place: AddressOf, width: int, depth: Range, columns: Range) -> None:
        """Clear nothing: integers multiply as fast whatever they are."""

    def _group_across_k(self, place: AddressOf, across: Range, depth: Range) -> None:
        """Pack an operand that lies along m or n, in groups of one element of each row."""
        first, last = depth
        outer = self._outer(across)
        size = self.operand.packing.group
        with self.code.loop(I64(0), self.parts(self.builder.sub(last, first), size)) as group:
            begin = self.builder.add(first, self.builder.mul(group, I64(size)))
            indices = [self.builder.add(begin, I64(each)) for each in range(size)]
            distances = [self._distances_to(index, last) for index in indices]
            present = [self._if_before(index, last) for index in indices]
            with self._runs(self._pointers, across, outer) as (run, start, stop, position):
                rows = [self._at_distances(run, each) for each in distances]
                known = [self.evaluate(Level.ROW, 1, row, self._known) for row in rows]
                later = [each for row in rows for each in self._rows_ahead(row, AHEAD)]
                before = self.builder.sub(position, start)

                def put(index: ir.Value, mask: ir.Value | None) -> None:
                    for pointer, step in later:
                        self.code.prefetch(self.code.offset(pointer, self.builder.mul(index, step)), level=2)
                    elements = self.narrow(rows, known, index, mask)
                    at = place(group, self.builder.add(before, index))
                    self.code.store(at, self.joined(elements, present), _GROUP)

                self.code.vector_loop(start, stop, put)

    def _if_before(self, index: ir.Value, last: ir.Value) -> ir.Value:
        """Return a mask of all bits if an index comes before the last, else of none."""
        inside = self.builder.icmp_signed("<", index, last)
        return splat(self.builder, self.builder.sext(inside, I32), self.lanes)

    def _distances_to(self, index: ir.Value, last: ir.Value) -> list[ir.Value]:
        """Return the distances of the accesses to an index of the major dimension; behind the last, to the
        last."""
        index = self.code.minimum(index, self.builder.sub(last, I64(1)))
        indices = self.code.split(index, self.row_counts[: self._majors])
        distances = []
        for access in range(len(self.accesses)):
            total: ir.Value = I64(0)
            for loop, each in enumerate(indices):
                step = self.parameter(self.layout.row_stride(access, loop))
                total = self.builder.add(total, self.builder.mul(each, step))
            distances.append(total)
        return distances

    def _at_distances(self, pointers: Pointers, distances: Sequence[ir.Value]) -> Pointers:
        return [self.code.offset(*pair) for pair in zip(pointers, distances, strict=True)]

    def joined(self, elements: Sequence[ir.Value], present: Sequence[ir.Value] = ()) -> ir.Value:
        """Return groups of one element of each vector, from the lowest bits on. Elements that are not present
        are zero."""
        total: ir.Value = number(_GROUP, self.lanes, 0)
        for place, (element, there) in enumerate(zip_longest(elements, present)):
            wide = self.builder.zext(element, llvm_type(_GROUP, self.lanes))
            if there is not None:
                wide = self.builder.and_(wide, there)
            shift = number(_GROUP, self.lanes, place * self.operand.packing.type.bits)
            total = self.builder.or_(total, self.builder.shl(wide, shift))
        return total

    def _group_along_k(self, place: AddressOf, across: Range, depth: Range) -> None:
        """Pack an operand that lies along k. Its vectors consist of groups, which are transposed."""
        packing = self.operand.packing
        first, last = across
        outer = self._outer(depth)
        rest = self.builder.and_(self.builder.sub(first, last), I64(self.lanes - 1))
        with self.code.loop(first, self.builder.add(last, rest), self.lanes) as major:
            column = self.builder.sub(major, first)
            with self._runs(self._pointers, depth, outer) as (run, start, stop, position):
                rows = [self._at_major(run, major, lane, last) for lane in range(self.lanes)]
                known = [self.evaluate(Level.ROW, 1, row, self._known) for row in rows]
                before = self.builder.sub(position, start)

                def put(index: ir.Value, mask: ir.Value | None) -> None:
                    elements = self.narrow(rows, known, index, mask)
                    if mask is not None:
                        zero = number(packing.type, self.lanes, 0)
                        elements = [self.builder.select(mask, each, zero) for each in elements]
                    first_group = self.builder.add(before, index)
                    first_group = self.builder.udiv(first_group, I64(packing.group))
                    for each, vector in enumerate(self._groups_of(elements)):
                        at = place(self.builder.add(first_group, I64(each)), column)
                        self.code.store(at, vector, _GROUP)

                self.code.vector_loop(start, stop, put)

    def _groups_of(self, rows: Sequence[ir.Value]) -> list[ir.Value]:
        """Return the groups of rows: the first of all rows, then the second, and so on."""
        count = self.lanes // self.operand.packing.group
        vectors = [self.builder.bitcast(row, vector_type(I32, count)) for row in rows]
        while len(vectors) > 1:
            half = len(vectors) // 2
            vectors = [self._interleaved(*pair) for pair in zip(vectors[:half], vectors[half:], strict=True)]
        (together,) = vectors
        return [self._part(together, group * self.lanes) for group in range(count)]

    def _interleaved(self, a: ir.Value, b: ir.Value) -> ir.Value:
        count = a.type.count
        lanes = [lane // 2 + (lane % 2) * count for lane in range(2 * count)]
        return self.builder.shuffle_vector(a, b, vector_constant(I32, lanes))

    def _part(self, vector: ir.Value, first: int) -> ir.Value:
        """Return a vector's lanes from `first` on."""
        lanes = vector_constant(I32, range(first, first + self.lanes))
        return self.builder.shuffle_vector(vector, ir.undefined(vector.type), lanes)

    def narrow(
        self, rows: Sequence[Pointers], known: Sequence[Values], index: ir.Value, mask: ir.Value | None
    ) -> list[ir.Value]:
        """Return the elements of several rows in the type in which they are packed."""
        type, root = self.operand.packing.type, self.pattern.values[0]
        result = []
        for pointers, values in zip(rows, known, strict=True):
            found = self.evaluate(Level.ELEMENT, self.lanes, pointers, values, index, mask, [root])
            value = splat(self.builder, self.value(root, self.lanes, found), self.lanes)
            if root.type.bits > type.bits:
                value = self.builder.trunc(value, llvm_type(type, self.lanes))
            elif self._sign():
                value = self.builder.xor(value, number(type, self.lanes, -_SIGN))
            result.append(value)
        return result

    def _sign(self) -> int:
        """Return what is added to bytes to make them signed or unsigned, as they are packed."""
        given, packed = self.pattern.values[0].type, self.operand.packing.type
        if given is packed or packed.bytes > 1:
            return 0
        return _SIGN if given is ScalarType.INT8 else -_SIGN

    def _put_subtracted(self, place: AddressOf, row: ir.Value, across: Range, depth: Range) -> None:
        """Store what is subtracted, along m or n."""
        outer = self._outer(across)
        origin = self._at_distances(self._pointers, self._distances_to(depth[0], depth[1]))
        with self._runs(origin, across, outer) as (run, start, stop, position):
            known = self.evaluate(Level.ROW, 1, run, self._known)
            before = self.builder.sub(position, start)

            def put(index: ir.Value, mask: ir.Value | None) -> None:
                value = self.subtracted(self.lanes, run, known, index, mask)
                self.code.store(place(row, self.builder.add(before, index)), value, _GROUP)

            self.code.vector_loop(start, stop, put)

    def _put_subtracted_along_k(self, place: AddressOf, row: ir.Value, across: Range) -> None:
        """Store what is subtracted from rows that lie along k."""
        first, last = across
        counts = self.row_counts[: self._majors]
        with self._walk(self._pointers, counts, self.layout.row_stride, first, last) as (major, pointers):
            known = self.evaluate(Level.ROW, 1, pointers, self._known)
            value = self.subtracted(1, pointers, known, None, None)
            self.code.store(place(row, self.builder.sub(major, first)), value, _GROUP)

    def subtracted(
        self,
        lanes: int,
        pointers: Pointers,
        known: Values,
        index: ir.Value | None,
        mask: ir.Value | None,
    ) -> ir.Value:
        """Return what is subtracted from elements as they are packed."""
        sign = number(_GROUP, lanes, self._sign())
        if len(self.pattern.values) == 1:
            return sign
        root = self.pattern.values[1]
        found = (
            self.evaluate(Level.ELEMENT, lanes, pointers, known, index, mask, [root]) if lanes > 1 else known
        )
        value = splat(self.builder, self.value(root, lanes, found), lanes)
        return self.builder.add(value, sign)

    def _put_sums(self, place: AddressOf, groups: ir.Value, across: Range, count: ir.Value) -> None:
        """Store the sums of elements along k; of unsigned ones, less what is subtracted from `count`."""
        vector = llvm_type(_GROUP, self.lanes)
        ones = self.builder.bitcast(number(ScalarType.INT8, 4 * self.lanes, 1), vector)
        is_signed = self.operand.packing.type is ScalarType.INT8
        width = self.builder.sub(across[1], across[0])
        with self.code.loop(I64(0), self.parts(width, self.lanes)) as part:
            column = self.builder.mul(part, I64(self.lanes))
            totals = [self.code.local(vector) for _ in range(_CHAINS)]
            for total in totals:
                self.code.set(total, number(_GROUP, self.lanes, 0))
            start, following = place(I64(0), column), place(I64(1), column)
            step = self.builder.sub(*(self.builder.ptrtoint(each, I64) for each in (following, start)))

            def take_in(total: ir.Value, group: ir.Value) -> None:
                at = self.code.offset(start, self.builder.mul(group, step))
                bytes = self.code.load(at, _GROUP, self.lanes)
                operands = (bytes, ones) if is_signed else (ones, bytes)
                before = self.builder.load(total, typ=vector)
                self.code.set(total, dot_bytes(self.builder, before, *operands, self.lanes))

            with self.code.loop(I64(0), groups, _CHAINS) as group:
                for each, total in enumerate(totals):
                    take_in(total, self.builder.add(group, I64(each)))
            rest = self.builder.and_(groups, I64(_CHAINS - 1))
            with self.code.loop(self.builder.sub(groups, rest), groups) as group:
                take_in(totals[0], group)
            sums = reduce(self.builder.add, [self.builder.load(total, typ=vector) for total in totals])
            if not is_signed:
                at = place(self.builder.add(groups, I64(1)), column)
                scale = splat(self.builder, self.builder.trunc(count, I32), self.lanes)
                whole = self.builder.mul(self.code.load(at, _GROUP, self.lanes), scale)
                sums = self.builder.sub(sums, whole)
            self.code.store(place(groups, column), sums, _GROUP)
