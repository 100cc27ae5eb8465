"""Operands of products whose elements are narrower than words of 32 bits, packed so that neighbours along k
share a word.

Of 8 bits, what is subtracted from all elements of a row is left to the micro-kernel: behind the words of a
part follow their sums along k, and what is to be subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import zip_longest

from llvmlite import ir

from opendml.program.scalar_type import ScalarType
from opendml.targets.common.pattern import Level
from opendml.targets.cpu.code import I32, I64, Code
from opendml.targets.cpu.contraction.arithmetic import dot_bytes
from opendml.targets.cpu.contraction.packing import (
    AHEAD,
    PackingCode,
    PanelCode,
    Place,
    Range,
    StripCode,
)
from opendml.targets.cpu.contraction.patterns import Packing
from opendml.targets.cpu.loads import Pointers, Values
from opendml.targets.cpu.values import llvm_type, number, splat, vector_constant, vector_type

_WORD = ScalarType.INT32
_SIGN = 128
"""Added to signed bytes it makes them unsigned; subtracted from unsigned ones, signed."""
_CHAINS = 4
"""Sums that are added to at the same time: as one, each would wait for the one before."""


class WordPackingCode(PackingCode):
    """One operand, packed as integers of 8 or 16 bits."""

    def put_down(self, place: Place, across: Range, depth: Range, ahead: int = 0) -> None:
        """Rows of words. As many of both dimensions may be overwritten as make whole vectors, and two rows
        more."""
        if self.packing.along_depth:
            self._put_rows(place, across, depth)
        else:
            self._put_columns(place, across, depth)
        if self.packing.type.bytes == 1:
            count = self.builder.sub(depth[1], depth[0])
            words = self.parts(count, self.packing.group)
            subtracted = self.builder.add(words, I64(1))
            if self.packing.along_depth:
                self._put_subtracted_of_rows(place, subtracted, across)
            else:
                self._put_subtracted(place, subtracted, across, depth)
            self._put_sums(place, words, across, count)

    def clear_behind(self, place: Place, width: int, depth: Range, columns: Range) -> None:
        """Integers multiply as fast whatever they are."""

    def _put_columns(self, place: Place, across: Range, depth: Range) -> None:
        """Of an operand that lies along m or n: words of elements of as many rows."""
        first, last = depth
        outer = self._outer(across)
        with self.code.loop(I64(0), self.parts(self.builder.sub(last, first), self.packing.group)) as word:
            begin = self.builder.add(first, self.builder.mul(word, I64(self.packing.group)))
            indices = [self.builder.add(begin, I64(each)) for each in range(self.packing.group)]
            distances = [self._distances_to(index, last) for index in indices]
            present = [self._if_before(index, last) for index in indices]
            with self._runs(self._pointers, across, outer) as (run, start, stop, position):
                rows = [self._at_distances(run, each) for each in distances]
                known = [self.evaluate(Level.ROW, 1, row, self._known) for row in rows]
                later = [each for row in rows for each in self._later(row, AHEAD)]
                before = self.builder.sub(position, start)

                def put(index: ir.Value, mask: ir.Value | None) -> None:
                    for pointer, step in later:
                        self.code.prefetch(self.code.offset(pointer, self.builder.mul(index, step)), level=2)
                    elements = self.narrow(rows, known, index, mask)
                    at = place(word, self.builder.add(before, index))
                    self.code.store(at, self.joined(elements, present), _WORD)

                self.code.vector_loop(start, stop, put)

    def _if_before(self, index: ir.Value, last: ir.Value) -> ir.Value:
        """All bits of each lane where an index comes before the last, none otherwise."""
        inside = self.builder.icmp_signed("<", index, last)
        return splat(self.builder, self.builder.sext(inside, I32), self.lanes)

    def _distances_to(self, index: ir.Value, last: ir.Value) -> list[ir.Value]:
        """How far on the accesses stand at an index of the major dimension; behind the last, at that."""
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
        """Words of one element of each vector, from the lowest bits on; those that are not present are
        zero."""
        total: ir.Value = number(_WORD, self.lanes, 0)
        for place, (element, there) in enumerate(zip_longest(elements, present)):
            wide = self.builder.zext(element, llvm_type(_WORD, self.lanes))
            if there is not None:
                wide = self.builder.and_(wide, there)
            shift = number(_WORD, self.lanes, place * self.packing.type.bits)
            total = self.builder.or_(total, self.builder.shl(wide, shift))
        return total

    def _put_rows(self, place: Place, across: Range, depth: Range) -> None:
        """Of an operand that lies along k: vectors of elements are words, which are transposed."""
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
                        zero = number(self.packing.type, self.lanes, 0)
                        elements = [self.builder.select(mask, each, zero) for each in elements]
                    first_word = self.builder.add(before, index)
                    first_word = self.builder.udiv(first_word, I64(self.packing.group))
                    for each, vector in enumerate(self._words_of(elements)):
                        self.code.store(place(self.builder.add(first_word, I64(each)), column), vector, _WORD)

                self.code.vector_loop(start, stop, put)

    def _words_of(self, rows: Sequence[ir.Value]) -> list[ir.Value]:
        """The words of rows: the first of all rows, then the second, and so on."""
        count = self.lanes // self.packing.group
        vectors = [self.builder.bitcast(row, vector_type(I32, count)) for row in rows]
        while len(vectors) > 1:
            half = len(vectors) // 2
            vectors = [self._interleaved(*pair) for pair in zip(vectors[:half], vectors[half:], strict=True)]
        (together,) = vectors
        return [self._part(together, word * self.lanes) for word in range(count)]

    def _interleaved(self, a: ir.Value, b: ir.Value) -> ir.Value:
        count = a.type.count
        lanes = [lane // 2 + (lane % 2) * count for lane in range(2 * count)]
        return self.builder.shuffle_vector(a, b, vector_constant(I32, lanes))

    def _part(self, vector: ir.Value, first: int) -> ir.Value:
        """A vector's lanes from the first of them on."""
        lanes = vector_constant(I32, range(first, first + self.lanes))
        return self.builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), lanes)

    def narrow(
        self, rows: Sequence[Pointers], known: Sequence[Values], index: ir.Value, mask: ir.Value | None
    ) -> list[ir.Value]:
        """What is packed of several rows, in its type."""
        type, root = self.packing.type, self.pattern.values[0]
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
        """What is added to bytes to make them signed or not, as they are packed."""
        given = self.pattern.values[0].type
        if given is self.packing.type or self.packing.type.bytes > 1:
            return 0
        return _SIGN if given is ScalarType.INT8 else -_SIGN

    def _put_subtracted(self, place: Place, row: ir.Value, across: Range, depth: Range) -> None:
        """What is subtracted, along m or n."""
        outer = self._outer(across)
        origin = self._at_distances(self._pointers, self._distances_to(depth[0], depth[1]))
        with self._runs(origin, across, outer) as (run, start, stop, position):
            known = self.evaluate(Level.ROW, 1, run, self._known)
            before = self.builder.sub(position, start)

            def put(index: ir.Value, mask: ir.Value | None) -> None:
                value = self.subtracted(self.lanes, run, known, index, mask)
                self.code.store(place(row, self.builder.add(before, index)), value, _WORD)

            self.code.vector_loop(start, stop, put)

    def _put_subtracted_of_rows(self, place: Place, row: ir.Value, across: Range) -> None:
        """The same of rows that lie along k."""
        first, last = across
        counts = self.row_counts[: self._majors]
        with self._walk(self._pointers, counts, self.layout.row_stride, first, last) as (major, pointers):
            known = self.evaluate(Level.ROW, 1, pointers, self._known)
            value = self.subtracted(1, pointers, known, None, None)
            self.code.store(place(row, self.builder.sub(major, first)), value, _WORD)

    def subtracted(
        self,
        lanes: int,
        pointers: Pointers,
        known: Values,
        index: ir.Value | None,
        mask: ir.Value | None,
    ) -> ir.Value:
        """What is subtracted from elements as they are packed."""
        sign = number(_WORD, lanes, self._sign())
        if len(self.pattern.values) == 1:
            return sign
        root = self.pattern.values[1]
        found = (
            self.evaluate(Level.ELEMENT, lanes, pointers, known, index, mask, [root]) if lanes > 1 else known
        )
        value = splat(self.builder, self.value(root, lanes, found), lanes)
        return self.builder.add(value, sign)

    def _put_sums(self, place: Place, words: ir.Value, across: Range, count: ir.Value) -> None:
        """The sums of what is packed along k; of unsigned bytes, less what is subtracted from so many."""
        vector = llvm_type(_WORD, self.lanes)
        ones = self.builder.bitcast(number(ScalarType.INT8, 4 * self.lanes, 1), vector)
        is_signed = self.packing.type is ScalarType.INT8
        width = self.builder.sub(across[1], across[0])
        with self.code.loop(I64(0), self.parts(width, self.lanes)) as part:
            column = self.builder.mul(part, I64(self.lanes))
            totals = [self.code.local(vector) for _ in range(_CHAINS)]
            for total in totals:
                self.code.set(total, number(_WORD, self.lanes, 0))
            start, following = place(I64(0), column), place(I64(1), column)
            step = self.builder.sub(*(self.builder.ptrtoint(each, I64) for each in (following, start)))

            def take_in(total: ir.Value, word: ir.Value) -> None:
                at = self.code.offset(start, self.builder.mul(word, step))
                bytes = self.code.load(at, _WORD, self.lanes)
                operands = (bytes, ones) if is_signed else (ones, bytes)
                before = self.builder.load(total, typ=vector)
                self.code.set(total, dot_bytes(self.builder, before, *operands, self.lanes))

            with self.code.loop(I64(0), words, _CHAINS) as word:
                for each, total in enumerate(totals):
                    take_in(total, self.builder.add(word, I64(each)))
            rest = self.builder.and_(words, I64(_CHAINS - 1))
            with self.code.loop(self.builder.sub(words, rest), words) as word:
                take_in(totals[0], word)
            sums = reduce(self.builder.add, [self.builder.load(total, typ=vector) for total in totals])
            if not is_signed:
                at = place(self.builder.add(words, I64(1)), column)
                each = splat(self.builder, self.builder.trunc(count, I32), self.lanes)
                whole = self.builder.mul(self.code.load(at, _WORD, self.lanes), each)
                sums = self.builder.sub(sums, whole)
            self.code.store(place(words, column), sums, _WORD)


class WordPanelCode(PanelCode, WordPackingCode):
    """Packs all panels of such an operand."""


class WordStripCode(StripCode, WordPackingCode):
    """Packs all strips of such an operand."""


def packing_code(
    function: ir.Function, packing: Packing, lanes: int, code: Code, first_parameter: int
) -> PackingCode:
    """What packs an operand in its type."""
    kind = WordPackingCode if packing.group > 1 else PackingCode
    return kind(function, packing, lanes, code, first_parameter)
