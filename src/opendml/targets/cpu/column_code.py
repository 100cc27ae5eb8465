"""Kernels whose groups lie side by side in memory: lanes run over groups, a tile of them at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from opendml.program.node import Node
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.code import I64
from opendml.targets.cpu.kernel_code import F64, KernelCode, Pointers, Values
from opendml.targets.cpu.pattern import Level, Mode
from opendml.targets.cpu.values import number, scalar_llvm_type, splat

MAXIMUM_TILE = 512
"""Groups in the widest tile; their sums and statistics live on the stack."""
_ROWS_AT_ONCE = 4
"""Rows added per visit of the sums of a tile."""


@dataclass(frozen=True, slots=True)
class _Tile:
    """A range of groups, and the sums of one reduced value for each: of its distances from a shift, and of
    their squares."""

    value: Node
    shifts: ir.Value
    totals: ir.Value
    squares: ir.Value


class ColumnCode(KernelCode):
    """Whole tiles: the sums of all their groups, the statistics, then the results row by row."""

    def item(self, item: ir.Value) -> None:
        """One tile."""
        group, start, stop = self.block_range(item)
        pointers = self.group_pointers(group)
        self.start, self.stop = start, stop
        tiles = [self._tile_of(value) for value in self.pattern.reduced()]
        for tile in tiles:
            self._sum_rows(tile, pointers, I64(0), self.units)
        self._finish(tiles, pointers, I64(0), self.units)

    def _tile_of(self, value: Node) -> _Tile:
        return _Tile(value, *(self._room(F64) for _ in range(3)))

    def _room(self, type: ScalarType) -> ir.Value:
        """Room for one value of each group."""
        return self.code.local(ir.ArrayType(scalar_llvm_type(type), MAXIMUM_TILE))

    def _at(self, room: ir.Value, type: ScalarType, index: ir.Value) -> ir.Value:
        return self.code.offset(room, self.builder.mul(self.builder.sub(index, self.start), I64(type.bytes)))

    def _sum_rows(self, tile: _Tile, pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        """The sums over some rows: the odd ones first, which also sets the shifts, then several per visit."""
        count = self.builder.sub(last, first)
        odd = self.builder.and_(self.builder.sub(count, I64(1)), I64(_ROWS_AT_ONCE - 1))
        done = self.builder.add(self.builder.add(first, odd), I64(1))
        self._choose(odd, lambda number_: self._add_rows(tile, pointers, first, number_ + 1, fresh=True))
        with self.code.loop(done, last, _ROWS_AT_ONCE) as row:
            self._add_rows(tile, pointers, row, _ROWS_AT_ONCE, fresh=False)

    def _choose(self, choice: ir.Value, emit: Callable[[int], None]) -> None:
        """Emits one case for each value below _ROWS_AT_ONCE."""
        for number_ in range(_ROWS_AT_ONCE):
            with self.builder.if_then(self.builder.icmp_signed("==", choice, I64(number_))):
                emit(number_)

    def _add_rows(self, tile: _Tile, pointers: Pointers, first: ir.Value, count: int, fresh: bool) -> None:
        """Adds neighbouring rows to the sums; fresh sums start at zero. The shift of a group, which all its
        chunks share, is its
        first element."""
        needed = self.below_reductions([tile.value])
        rows = [
            self.row_pointers(pointers, self.builder.add(first, I64(number_))) for number_ in range(count)
        ]
        outer = [self.evaluate(Level.ROW, 1, row, {}, only=needed) for row in rows]
        first_row = self.evaluate(Level.ROW, 1, pointers, {}, only=needed) if fresh else {}

        def element(row: Pointers, known: Values, index: ir.Value, mask: ir.Value | None) -> ir.Value:
            values = self.evaluate(Level.GROUP, self.lanes, row, known, index, mask, needed)
            values = self.evaluate(Level.ELEMENT, self.lanes, row, values, index, mask, needed)
            return splat(self.builder, self.value(tile.value, self.lanes, values), self.lanes)

        def add(index: ir.Value, mask: ir.Value | None) -> None:
            slots = [self._at(room, F64, index) for room in (tile.shifts, tile.totals, tile.squares)]
            if fresh:
                shift = self.shift_from(element(pointers, first_row, index, mask), self.lanes)
                total = squares = number(F64, self.lanes, 0.0)
                self.builder.store(shift, slots[0], align=F64.bytes)
            else:
                shift, total, squares = (self.code.load(slot, F64, self.lanes) for slot in slots)
            for row, known in zip(rows, outer, strict=True):
                distance = self.distance(tile.value, element(row, known, index, mask), shift, mask)
                total = self.builder.fadd(total, distance)
                squares = self.square_added(distance, squares)
            self.builder.store(total, slots[1], align=F64.bytes)
            self.builder.store(squares, slots[2], align=F64.bytes)

        self.code.vector_loop(self.start, self.stop, add)

    def _finish(self, tiles: list[_Tile], pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        """Statistics of all groups, then the results of some rows."""
        shared = self._shared()
        rooms = {key: self._room(node.type) for key, node in shared.items()}

        def finish(index: ir.Value, mask: ir.Value | None) -> None:
            values: Values = {}
            for tile in tiles:
                rows = (tile.shifts, tile.totals, tile.squares)
                sums = [self.code.load(self._at(room, F64, index), F64, self.lanes) for room in rows]
                values |= self.statistics(tile.value, sums[0], sums[1], sums[2], self.lanes)
            values = self.evaluate(Level.STATISTIC, self.lanes, pointers, values)
            values = self.evaluate(Level.GROUP, self.lanes, pointers, values, index, mask)
            for key, room in rooms.items():
                value = splat(self.builder, values[key], self.lanes)
                self.code.store(self._at(room, shared[key].type, index), value, shared[key].type)
            for access, root in self.stores(of_groups=True):
                value = splat(self.builder, self.value(root, self.lanes, values), self.lanes)
                self.store(access, value, pointers, index, mask)

        self.code.vector_loop(self.start, self.stop, finish)
        if not self.stores(of_groups=False):
            return
        with self.walk_rows(pointers, first, last) as (_, row_pointers):
            row_values = self.evaluate(Level.ROW, 1, row_pointers, {})

            def known(index: ir.Value) -> Values:
                return row_values | {
                    key: self.code.load(self._at(room, shared[key].type, index), shared[key].type, self.lanes)
                    for key, room in rooms.items()
                }

            self.store_range(row_pointers, self.start, self.stop, known)

    def _shared(self) -> dict[int, Node]:
        """What the elements need of their groups."""
        users = [
            node for node in self.nodes if id(node) in self.needed and self.levels[id(node)] > Level.GROUP
        ]
        wanted = [operand for node in users for operand in node.operands]
        wanted += [root for _, root in self.stores(of_groups=False)]
        return {id(node): node for node in wanted if self.levels[id(node)] in (Level.STATISTIC, Level.GROUP)}


class SplitColumnCode(ColumnCode):
    """Long groups: an item is some rows of a tile, whose sums are written, or whose results come from the
    sums of all rows.

    Partial sums: [group][chunk][reduction][total, squares][column].
    """

    def item(self, item: ir.Value) -> None:
        """One chunk of a tile."""
        position, chunk = self.code.split(item, [I64(0), self.chunks])
        first, last = self.chunk_range(chunk, self.units)
        group, self.start, self.stop = self.block_range(position)
        pointers = self.group_pointers(group)
        tiles = [self._tile_of(value) for value in self.pattern.reduced()]
        for index, tile in enumerate(tiles):
            if self.pattern.mode is Mode.COLUMNS_PARTIAL:
                self._sum_rows(tile, pointers, first, last)
                self._write_partial(tile, group, chunk, index)
            else:
                self._add_rows(tile, pointers, I64(0), 1, fresh=True)
                self._read_partials(tile, group, index)
        if self.pattern.mode is Mode.COLUMNS_MAP:
            self._finish(tiles, pointers, first, last)

    def _partial(self, group: ir.Value, chunk: ir.Value, index: int, part: int, column: ir.Value) -> ir.Value:
        position = self.builder.add(self.builder.mul(group, self.chunks), chunk)
        position = self.builder.mul(position, I64(2 * len(self.pattern.reduced())))
        position = self.builder.add(position, I64(2 * index + part))
        position = self.builder.add(self.builder.mul(position, self.inner), column)
        return self.code.offset(self.partials(), self.builder.mul(position, I64(F64.bytes)))

    def _write_partial(self, tile: _Tile, group: ir.Value, chunk: ir.Value, index: int) -> None:
        def write(column: ir.Value, mask: ir.Value | None) -> None:
            for part, room in enumerate((tile.totals, tile.squares)):
                value = self.code.load(self._at(room, F64, column), F64, self.lanes)
                self.code.store(self._partial(group, chunk, index, part, column), value, F64, mask)

        self.code.vector_loop(self.start, self.stop, write)

    def _read_partials(self, tile: _Tile, group: ir.Value, index: int) -> None:
        """The sums of all chunks of a tile, added in their order. (The one row that set the shifts added
        zero,
        or what is not finite, which the sums are then anyway.)"""
        with self.code.loop(I64(0), self.chunks) as chunk:

            def add(column: ir.Value, mask: ir.Value | None) -> None:
                for part, room in enumerate((tile.totals, tile.squares)):
                    slot = self._at(room, F64, column)
                    value = self.code.load(
                        self._partial(group, chunk, index, part, column), F64, self.lanes, mask
                    )
                    self.code.store(
                        slot, self.builder.fadd(self.code.load(slot, F64, self.lanes), value), F64
                    )

            self.code.vector_loop(self.start, self.stop, add)
