"""Element-wise kernels in which results are contiguous along one loop and some operands along another: NCHW
to NHWC, say.

An item is a block of both loops. First the operands that lie across are loaded along their own loop, in
square tiles of vectors that are transposed in registers, and put down in the thread's room; then the rows of
the block are computed like any others.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from opendml.compiler.kernel import number_of
from opendml.program.node import Node, Operation
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.pattern import Level, Step
from opendml.targets.cpu.code import I32, I64, Code
from opendml.targets.cpu.kernel_code import KernelCode, Pointers, Values
from opendml.targets.cpu.pattern import LINE, CpuPattern, crossed_block
from opendml.targets.cpu.values import llvm_type, vector_constant, vector_type

_AHEAD_BYTES = 128
"""How far ahead operands are prefetched: the processor itself does not follow as many streams as a tile
has."""


class TransposedCode(KernelCode):
    """The one row loop is the loop along which the operands that lie across are contiguous."""

    def __init__(
        self,
        function: ir.Function,
        pattern: CpuPattern,
        lanes: int,
        code: Code | None = None,
        first_parameter: int = 0,
    ) -> None:
        super().__init__(function, pattern, lanes, code, first_parameter)
        widest = max(access.type.bytes for access in self.accesses if not access.counter)
        rows, self._most_steps = crossed_block(widest)
        self._across = [
            node
            for node in self.nodes
            if node.operation is Operation.SOURCE and self.accesses[number_of(node)].step is Step.ACROSS
        ]
        self._rooms = {
            number_of(node): self.room(ScalarType.UINT8, rows * self._pitch(node.type))
            for node in self._across
        }
        self._places: dict[int, ir.Value] = {}
        """Where an operand's part of the row at hand lies in its room, so that it is read by the index."""

    def item(self, item: ir.Value) -> None:
        """One block."""
        group, along, across = self.code.split(item, [I64(0), self.blocks, self.chunks])
        pointers = self.group_pointers(group)
        values = self.evaluate(Level.GROUP, 1, pointers, {})
        first_row, last_row = self.chunk_range(across, self.row_counts[0])
        start, stop = self._steps(pointers, along)
        for node in self._across:
            self._put_down(node, pointers, first_row, last_row, start, stop)
        with self.walk_rows(pointers, first_row, last_row) as (row, row_pointers):
            for node in self._across:
                number = self.builder.sub(row, first_row)
                place = self.builder.mul(number, I64(self._pitch(node.type)))
                moved = self.builder.sub(place, self.builder.mul(start, I64(node.type.bytes)))
                self._places[number_of(node)] = self.code.offset(self._rooms[number_of(node)], moved)
            self.map_block(row_pointers, values, start, stop)

    def load(
        self,
        node: Node,
        lanes: int,
        pointers: Pointers,
        values: Values,
        index: ir.Value | None,
        mask: ir.Value | None,
    ) -> ir.Value:
        """A load; of what lies across, from the room."""
        if index is None or number_of(node) not in self._places:
            return super().load(node, lanes, pointers, values, index, mask)
        distance = self.builder.mul(index, I64(node.type.bytes))
        return self.code.load(self.code.offset(self._places[number_of(node)], distance), node.type, lanes)

    def _pitch(self, type: ScalarType) -> int:
        """Bytes from one row of a room to the next: room for what a block and its last vector have, an odd
        number of cache lines, so that rows lie in different sets of a cache."""
        return (-(-(self._most_steps + 2 * self.lanes) * type.bytes // LINE) | 1) * LINE

    def _steps(self, pointers: Pointers, block: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The range of the innermost loop in a block. All but the first begin where a result of the first row
        lies at a multiple of a vector's size."""
        access = len(self.pattern.loads)
        ahead = self.code.elements_to_boundary(pointers[access], self.accesses[access].type)

        def begin(number: ir.Value) -> ir.Value:
            moved = self.builder.add(self.builder.mul(number, self.block), ahead)
            return self.code.minimum(moved, self.inner)

        following = self.builder.add(block, I64(1))
        is_first = self.builder.icmp_signed("==", block, I64(0))
        is_last = self.builder.icmp_signed("==", following, self.blocks)
        start = self.builder.select(is_first, I64(0), begin(block))
        return start, self.builder.select(is_last, self.inner, begin(following))

    def _put_down(
        self,
        node: Node,
        pointers: Pointers,
        first_row: ir.Value,
        last_row: ir.Value,
        start: ir.Value,
        stop: ir.Value,
    ) -> None:
        """Loads an operand's part of the block along its own loop, and puts it down with the loops
        exchanged."""
        access, size = number_of(node), node.type.bytes
        last = self.builder.sub(stop, I64(1))
        with self.code.loop(start, self._rounded(start, stop), self.lanes) as index:
            addresses = []
            for lane in range(self.lanes):
                # Lanes behind the last step repeat it, and are not looked at.
                position = self.code.minimum(self.builder.add(index, I64(lane)), last)
                moved = self.builder.mul(position, self.steps[access])
                addresses.append(self.code.offset(pointers[access], moved))
            column = self.builder.mul(self.builder.sub(index, start), I64(size))

            def tile(row: ir.Value, mask: ir.Value | None) -> None:
                along = self.builder.mul(row, I64(size))
                vectors = []
                for address in addresses:
                    place = self.code.offset(address, along)
                    vectors.append(self.code.load(place, node.type, self.lanes, mask))
                    if mask is None:
                        self.code.prefetch(self.code.offset(place, I64(_AHEAD_BYTES)))
                number = self.builder.sub(row, first_row)
                room = self.builder.add(self.builder.mul(number, I64(self._pitch(node.type))), column)
                target = self.code.offset(self._rooms[access], room)
                for lane, vector in enumerate(transposed(self.builder, vectors, node.type, self.lanes)):
                    place = self.code.offset(target, I64(lane * self._pitch(node.type)))
                    self.code.store(place, vector, node.type)

            self.code.vector_loop(first_row, last_row, tile)

    def _rounded(self, start: ir.Value, stop: ir.Value) -> ir.Value:
        """`stop`, so far on that a loop in steps of lanes from `start` also does an incomplete last step."""
        rest = self.builder.and_(self.builder.sub(start, stop), I64(self.lanes - 1))
        return self.builder.add(stop, rest)


def transposed(
    builder: ir.IRBuilder, rows: Sequence[ir.Value], type: ScalarType, lanes: int
) -> list[ir.Value]:
    """The columns of as many rows as they have lanes.

    First the squares of elements that 16 bytes have lie transposed where they were, since processors merge
    two vectors within each 16 bytes at the least cost; then squares of such parts are.
    """
    part = min(lanes, 16 // type.bytes)
    bits = vector_type(ir.IntType(type.bits), lanes)
    result = [builder.bitcast(row, bits) for row in rows]
    for distance in _powers(part):
        halves = [_in_turns(lanes, part, distance, half) for half in range(2)]
        result = _merged(builder, result, distance, halves)
    for distance in _powers(lanes // part):
        halves = [_every_other(lanes, part, half) for half in range(2)]
        result = _merged(builder, result, distance * part, halves)
    order = [_reversed(number % part, part) + number // part * part for number in range(lanes)]
    return [builder.bitcast(result[number], llvm_type(type, lanes)) for number in order]


def _powers(count: int) -> list[int]:
    """1, 2, 4, ... up to half of a power of two."""
    return [1 << bit for bit in range(count.bit_length() - 1)]


def _reversed(number: int, count: int) -> int:
    """The number, of fewer than a power of two, whose bits stand the other way round."""
    return sum(1 << bit for bit, power in enumerate(reversed(_powers(count))) if number & power)


def _in_turns(lanes: int, part: int, size: int, half: int) -> list[int]:
    """Of each part of two vectors one half: elements of the one and of the other in turns, so many at a
    time."""
    return [
        (lane - place) + half * part // 2 + place // (2 * size) * size + place % size
        + (lanes if place & size else 0)
        for lane in range(lanes)
        for place in [lane % part]
    ]  # fmt: skip


def _every_other(lanes: int, part: int, half: int) -> list[int]:
    """Every other part of two vectors, from the first or the second on."""
    parts = range(half, 2 * lanes // part, 2)
    return [each * part + place for each in parts for place in range(part)]


def _merged(
    builder: ir.IRBuilder, rows: Sequence[ir.Value], distance: int, halves: Sequence[Sequence[int]]
) -> list[ir.Value]:
    """Rows so far apart merged in both ways, each in the place of one of them."""
    result = list(rows)
    for number in range(len(rows)):
        if not number & distance:
            for half, lanes in enumerate(halves):
                chosen = vector_constant(I32, lanes)
                result[number + half * distance] = builder.shuffle_vector(
                    rows[number], rows[number + distance], chosen
                )
    return result
