"""Element-wise kernels in which results are contiguous along one loop and some operands along another: NCHW
to NHWC, say.

An item is a block of both loops. It is worked off in square tiles of vectors: operands that lie across are
loaded along their own loop, transposed in registers and put down, then the rows of the tile are computed like
any others.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from opendml.compiler.kernel import number_of
from opendml.program.node import Node, Operation
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.code import I32, I64
from opendml.targets.cpu.kernel_code import KernelCode, Pointers, Values
from opendml.targets.cpu.pattern import Level, Step
from opendml.targets.cpu.values import llvm_type, splat

_AHEAD_BYTES = 128
"""How far ahead operands are prefetched: the processor itself does not follow as many streams as a tile
has."""


class TransposedCode(KernelCode):
    """The one row loop is the loop along which the operands that lie across are contiguous."""

    def item(self, item: ir.Value) -> None:
        """One block."""
        group, across, along = self.code.split(item, [I64(0), self.chunks, self.blocks])
        pointers = self.group_pointers(group)
        values = self.evaluate(Level.GROUP, 1, pointers, {})
        rooms = {id(node): self.room(node.type, self.lanes * self.lanes) for node in self._lying_across()}
        first_row, last_row = self.chunk_range(across, self.row_counts[0])
        start = self.builder.mul(along, self.block)
        stop = self.code.minimum(self.builder.add(start, self.block), self.inner)
        first_tile = self._last_boundary(pointers, start, first_row)
        last = self.builder.sub(last_row, I64(1))
        with self.code.loop(first_tile, self._rounded(first_tile, stop), self.lanes) as tile:
            index = self.code.maximum(tile, start)
            following = self.builder.add(tile, I64(self.lanes))
            count = self.builder.sub(self.code.minimum(following, stop), index)
            with self.code.loop(first_row, self._rounded(first_row, last_row), self.lanes) as row:
                rows = self.code.minimum(self.builder.sub(last_row, row), I64(self.lanes))
                full = self.builder.icmp_signed("==", self.builder.add(rows, count), I64(2 * self.lanes))
                with self.builder.if_else(full) as (whole, part):
                    with whole:
                        self._tile(pointers, values, rooms, row, I64(self.lanes), last, index, None)
                    with part:
                        self._tile(pointers, values, rooms, row, rows, last, index, count)

    def _last_boundary(self, pointers: Pointers, start: ir.Value, row: ir.Value) -> ir.Value:
        """The index, `start` or up to a vector before it, whose result lies at a multiple of a vector's size:
        tiles from there on write whole cache lines."""
        access = len(self.pattern.loads)
        address = self.row_pointers(pointers, row)[access]
        address = self.code.offset(address, self.builder.mul(start, self.steps[access]))
        ahead = self.code.elements_to_boundary(address, self.accesses[access].type)
        behind = self.builder.and_(self.builder.neg(ahead), I64(self.lanes - 1))
        return self.builder.sub(start, behind)

    def _rounded(self, start: ir.Value, stop: ir.Value) -> ir.Value:
        """`stop`, so far on that a loop in steps of lanes from `start` also does an incomplete last step."""
        rest = self.builder.and_(self.builder.sub(start, stop), I64(self.lanes - 1))
        return self.builder.add(stop, rest)

    def _lying_across(self) -> list[Node]:
        return [
            node
            for node in self.nodes
            if node.operation is Operation.SOURCE and self.accesses[number_of(node)].step is Step.ACROSS
        ]

    def _tile(
        self,
        pointers: Pointers,
        values: Values,
        rooms: dict[int, ir.Value],
        row: ir.Value,
        rows: ir.Value,
        last_row: ir.Value,
        index: ir.Value,
        count: ir.Value | None,
    ) -> None:
        """One tile of `rows` rows from `row` on, of a block that ends with `last_row`, and `count` lanes
        (None: all, and all rows too) from `index` on."""
        for node in self._lying_across():
            self._put_down(node, pointers, rooms[id(node)], row, rows, index, count)
        mask = None if count is None else self.code.first_lanes(count)
        with self.code.loop(I64(0), rows) as number:
            row_pointers = self.row_pointers(pointers, self.builder.add(row, number))
            known = self.evaluate(Level.ROW, 1, row_pointers, values)
            for node in self._lying_across():
                size = node.type.bytes * self.lanes
                address = self.code.offset(rooms[id(node)], self.builder.mul(number, I64(size)))
                known[id(node)] = self.code.load(address, node.type, self.lanes)
            results = self.evaluate(Level.ELEMENT, self.lanes, row_pointers, known, index, mask)
            # The rows of results are as many streams, of which the next tile's are asked for.
            following = self.builder.add(row, self.builder.add(number, I64(self.lanes)))
            later = self.row_pointers(pointers, self.code.minimum(following, last_row))
            for access, root in self.stores(of_groups=False):
                place = self.code.offset(later[access], self.builder.mul(index, self.steps[access]))
                self.code.prefetch(place, written=True)
                value = splat(self.builder, self.value(root, self.lanes, results), self.lanes)
                self.store(access, value, row_pointers, index, mask)

    def _put_down(
        self,
        node: Node,
        pointers: Pointers,
        room: ir.Value,
        row: ir.Value,
        rows: ir.Value,
        index: ir.Value,
        count: ir.Value | None,
    ) -> None:
        """Loads an operand's part of the tile along its own loop, and puts it down with the loops
        exchanged."""
        access = number_of(node)
        mask = None if count is None else self.code.first_lanes(rows)
        start = self.code.offset(pointers[access], self.builder.mul(row, I64(node.type.bytes)))
        vectors = []
        for lane in range(self.lanes):
            position = self.builder.add(index, I64(lane))
            address = self.code.offset(start, self.builder.mul(position, self.steps[access]))
            if count is not None and mask is not None:
                inside = self.builder.icmp_signed("<", I64(lane), count)
                lane_mask = self.builder.and_(mask, self.code.broadcast(inside))
                vectors.append(self.code.load(address, node.type, self.lanes, lane_mask))
            else:
                vectors.append(self.code.load(address, node.type, self.lanes))
                self.code.prefetch(self.code.offset(address, I64(_AHEAD_BYTES)))
        for lane, vector in enumerate(transposed(self.builder, vectors, node.type, self.lanes)):
            self.builder.store(vector, self.code.offset(room, I64(lane * node.type.bytes * self.lanes)))


def transposed(
    builder: ir.IRBuilder, rows: Sequence[ir.Value], type: ScalarType, lanes: int
) -> list[ir.Value]:
    """The columns of as many rows as they have lanes, by exchanging halves, quarters, and so on of pairs of
    rows."""
    bits = ir.VectorType(ir.IntType(type.bits), lanes)
    result = [builder.bitcast(row, bits) for row in rows]
    distance = lanes // 2
    while distance:
        for number in range(lanes):
            if number & distance:
                continue
            upper, lower = result[number], result[number + distance]
            result[number] = _merged(builder, upper, lower, distance, 0)
            result[number + distance] = _merged(builder, upper, lower, distance, distance)
        distance //= 2
    return [builder.bitcast(row, llvm_type(type, lanes)) for row in result]


def _merged(builder: ir.IRBuilder, upper: ir.Value, lower: ir.Value, distance: int, offset: int) -> ir.Value:
    """The lanes of two rows whose number has the bit `distance` as in `offset`, from the upper row, then from
    the lower."""
    lanes = upper.type.count
    chosen = [(lane & ~distance) + offset + (lanes if lane & distance else 0) for lane in range(lanes)]
    return builder.shuffle_vector(upper, lower, ir.Constant(ir.VectorType(I32, lanes), chosen))
