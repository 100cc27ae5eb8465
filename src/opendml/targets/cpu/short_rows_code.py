"""Element-wise kernels whose results are short rows that follow each other: they are put together in the
thread's room, from which whole cache lines are written past the caches.

An item is a row.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from opendml.program.scalar_type import ScalarType
from opendml.targets.common.pattern import Level
from opendml.targets.cpu.code import I64, POINTER, Code
from opendml.targets.cpu.kernel_code import Pointers
from opendml.targets.cpu.pattern import LINE, CpuPattern, ElementWalk
from opendml.targets.cpu.pointwise_code import PointwiseCode
from opendml.targets.cpu.short_rows import LONGEST_ROW, ROOM_BYTES


@dataclass(frozen=True, slots=True)
class _Stream:
    """Rows that follow each other: `numbers` are the accesses that write them. What is computed of them and
    not yet written lies in `room`, as far behind a boundary of cache lines as it will in memory, where it
    begins at the address in `begin`."""

    numbers: tuple[int, ...]
    type: ScalarType
    room: ir.Value
    begin: ir.Value


class ShortRowsCode(PointwiseCode):
    """`pattern.walk.streams` says which results are written so; others are as in any element-wise kernel."""

    def __init__(
        self,
        function: ir.Function,
        pattern: CpuPattern,
        lanes: int,
        code: Code | None = None,
        first_parameter: int = 0,
    ) -> None:
        super().__init__(function, pattern, lanes, code, first_parameter)
        widest = max(store.type.bytes for store in pattern.stores)
        self._line = max(LINE, widest * lanes)
        """Bytes that are written at once: of a cache line, or a vector that is longer."""
        size = ROOM_BYTES + LONGEST_ROW + 2 * self._line
        self._streams_of_rows = [
            _Stream(
                numbers,
                self.accesses[numbers[0]].type,
                self.room(ScalarType.UINT8, size),
                self.code.local(I64),
            )
            for numbers in pattern.walk_as(ElementWalk).streams
        ]

    def items(self, first: ir.Value, last: ir.Value) -> None:
        """Some rows."""
        counts, stride = self.group_counts, self.layout.group_stride
        indices = [self.code.local(I64, index) for index in self.code.split(first, counts)]
        start = self._moved(self.bases, [self.code.get(index) for index in indices], stride)
        places = [self.code.local(POINTER, pointer) for pointer in start]
        for stream in self._streams_of_rows:
            self.code.set(stream.begin, self._address(start[stream.numbers[0]]))
        with self.code.loop(first, last) as item:
            pointers = [self.code.get(place) for place in places]
            known = self.evaluate(Level.GROUP, 1, pointers, {})
            self.map_block(self._in_rooms(pointers), known, I64(0), self.inner)
            self._advance(places, indices, counts, stride)
            following = self.builder.add(item, I64(1))
            is_last = self.builder.icmp_signed("==", following, last)
            for stream in self._streams_of_rows:
                number = stream.numbers[0]
                self._end_row(stream, pointers[number], self.code.get(places[number]), is_last)

    def _in_rooms(self, pointers: Pointers) -> Pointers:
        """The pointers, into the rooms where these are of streams."""
        result = list(pointers)
        for stream in self._streams_of_rows:
            boundary = self._boundary(self.code.get(stream.begin))
            for number in stream.numbers:
                behind = self.builder.sub(self._address(pointers[number]), boundary)
                result[number] = self.code.offset(stream.room, behind)
        return result

    def _end_row(self, stream: _Stream, row: ir.Value, following: ir.Value, is_last: ir.Value) -> None:
        """Writes what a stream has if its room is full, or the next row lies elsewhere."""
        begin = self.code.get(stream.begin)
        size = self.builder.mul(self.inner, I64(stream.type.bytes * len(stream.numbers)))
        end, after = self.builder.add(self._address(row), size), self._address(following)
        is_done = self.builder.or_(is_last, self.builder.icmp_signed("!=", after, end))
        is_full = self.builder.icmp_signed(">=", self.builder.sub(end, begin), I64(ROOM_BYTES))
        with self.builder.if_then(self.builder.or_(is_done, is_full), likely=False):
            stop = self.builder.select(is_done, end, self._boundary(end))
            self._write(stream, begin, stop)
            self.code.set(stream.begin, self.builder.select(is_done, after, stop))

    def _write(self, stream: _Stream, begin: ir.Value, stop: ir.Value) -> None:
        """Writes what lies between two addresses: whole lines past the caches, and what is left of a first
        and a last one through them. What follows in the room moves to its front."""
        boundary = self._boundary(begin)
        last = self.code.maximum(self._boundary(stop), begin)
        first = self.code.minimum(self._boundary(self.builder.add(begin, I64(self._line - 1))), last)
        self._copy(stream, boundary, begin, first)
        vector = stream.type.bytes * self.lanes
        with self.code.loop(first, last, self._line) as line:
            for part in range(0, self._line, vector):
                address = self.builder.add(line, I64(part))
                self.code.stream(
                    self._pointer(address), self._in_room(stream, boundary, address), stream.type
                )
        self._copy(stream, boundary, last, stop)
        for part in range(0, self._line, vector):
            rest = self._in_room(stream, boundary, self.builder.add(stop, I64(part)))
            self.code.store(self.code.offset(stream.room, I64(part)), rest, stream.type)

    def _copy(self, stream: _Stream, boundary: ir.Value, begin: ir.Value, stop: ir.Value) -> None:
        """Writes less than a line of a room's elements through the caches."""
        size = stream.type.bytes
        count = self.builder.sdiv(self.builder.sub(stop, begin), I64(size))

        def copy(index: ir.Value, mask: ir.Value | None) -> None:
            address = self.builder.add(begin, self.builder.mul(index, I64(size)))
            value = self._in_room(stream, boundary, address)
            self.code.store(self._pointer(address), value, stream.type, mask)

        self.code.vector_loop(I64(0), count, copy)

    def _in_room(self, stream: _Stream, boundary: ir.Value, address: ir.Value) -> ir.Value:
        """A vector of a room, by its address in memory."""
        place = self.code.offset(stream.room, self.builder.sub(address, boundary))
        return self.code.load(place, stream.type, self.lanes)

    def _boundary(self, address: ir.Value) -> ir.Value:
        """Where the line begins that an address is in."""
        return self.builder.and_(address, I64(-self._line))

    def _address(self, pointer: ir.Value) -> ir.Value:
        return self.builder.ptrtoint(pointer, I64)

    def _pointer(self, address: ir.Value) -> ir.Value:
        return self.builder.inttoptr(address, POINTER)
