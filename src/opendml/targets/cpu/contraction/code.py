"""Sums of products in tiles.

An item is a block of rows and columns of the results. For each block of k it packs its part of b into the
thread's room, then for one panel of rows after the other that of a, and adds the products to a tile in the
room; behind the last block of k each panel's rows go through the epilogue, which is an element-wise pattern
whose last load is the sums. Where it but stores them, whole tiles are written there at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from opendml.compiler.kernel import number_of
from opendml.program.node import Node, Operation
from opendml.targets.common.pattern import Level, Step
from opendml.targets.cpu.code import I32, I64
from opendml.targets.cpu.contraction.micro import Strides, emit_micro_kernel
from opendml.targets.cpu.contraction.packing import F32, Range
from opendml.targets.cpu.contraction.patterns import Strips, Tiling, odd_lines
from opendml.targets.cpu.contraction.tilings import FEW_ROWS
from opendml.targets.cpu.contraction.words import packing_code
from opendml.targets.cpu.kernel_code import KernelCode
from opendml.targets.cpu.loads import Pointers, Values
from opendml.targets.cpu.pattern import LINE, CpuPattern


@dataclass(frozen=True, slots=True)
class Sums:
    """Where the sums of a panel go, and those before lie."""

    held: ir.Value
    """In the room."""
    results: tuple[ir.Value, ir.Value]
    """Where they belong, and the bytes from one row to the next there."""
    done: ir.Value
    """So many columns of them are written there."""


class ContractionCode(KernelCode):
    """The pattern itself is the epilogue's: its row loop runs over the rows, its innermost over the columns
    of the results."""

    further: Sequence[ir.Value] = ()
    """What else the micro-kernel takes: where it is that one operand lies, say."""
    _place_in_block: tuple[ir.Value, ir.Value, ir.Value, Range]
    """The number of the panel that is multiplied, and that of all; the first row of the next block of b, and
    its columns."""
    _next_panel: tuple[ir.Value, ...]
    """The first row of the panel that is multiplied next, and the first of its products."""
    _panel_of_results: tuple[Pointers, ir.Value, ir.Value]
    """Where the accesses of the panel stand that is multiplied, its first column, and whether its sums are
    complete then."""
    _lies_in_rows = True
    """Whether neighbours in a tile are neighbours among the results."""

    def __init__(self, function: ir.Function, pattern: CpuPattern, lanes: int) -> None:
        super().__init__(function, pattern, lanes)
        tiling = self.tiling = pattern.walk_as(Tiling)
        micro = tiling.micro
        first = self.layout.length
        self.width = micro.vectors * lanes
        self.column_pitch = odd_lines(tiling.columns + lanes)
        a_row, a_depth = self._lay_out_rows(first)
        strides = Strides(
            a_row=None if tiling.a.in_place else a_row,
            a_depth=a_depth,
            b_depth=self._lay_out_vectors(first + self.a.layout.length),
            c_row=self.column_pitch,
            asked=-(-self.width * F32.bytes // LINE) if self._asks_for_tiles else int(self._asks),
            in_turns=3 if tiling.a.apart else 0,
            b_in_place=tiling.b_in_place,
            packed=tiling.a.packing.type,
        )
        self.c_room = self._rows(tiling.rows)
        self.sums_room = self._rows(tiling.rows if tiling.parts_together else 0)
        self._emit_micro_kernel(strides)
        self.only_stores = self._lies_in_rows and _only_stores(pattern) and not tiling.parts_together
        self.total = next(node for node in self.nodes if _is_total(node, pattern))

    @property
    def _asks(self) -> bool:
        """Whether the next panel is asked for while one is multiplied: no item packs it."""
        return self.tiling.ahead or self.tiling.a.in_place

    @property
    def _asks_for_tiles(self) -> bool:
        """Whether the next tile of b is asked for instead: no item packs it. Beside an image a strip comes in
        shares, one with each panel. Few rows read it as fast as caches give it, from which asking would
        take."""
        tiling = self.tiling
        strips = tiling.b_ahead and (tiling.micro.rows > FEW_ROWS or self._reads_once)
        return tiling.b_in_place or (strips and not tiling.a.in_place and not tiling.image)

    @property
    def _reads_once(self) -> bool:
        """Whether few rows read strips from memory, a share of each part at a time."""
        return self.tiling.b_ahead and self.tiling.strip_depth != self.tiling.a.depth

    def _lay_out_rows(self, first_parameter: int) -> tuple[int, int | None]:
        """Prepares for the operand whose elements are broadcast; returns the bytes between its rows in a
        packed tile, and between its columns."""
        tiling, lanes = self.tiling, self.lanes
        panels = tiling.a
        self.a = packing_code(self.function, panels.packing, lanes, self.code, first_parameter)
        self.a_room = self.room(F32, 0 if tiling.ahead else panels.part_bytes(lanes) // F32.bytes)
        return panels.strides(lanes)

    def _lay_out_vectors(self, first_parameter: int) -> int | None:
        """Prepares for the operand whose elements are vectors; returns the bytes between its rows in a
        tile."""
        tiling, lanes = self.tiling, self.lanes
        self.b = packing_code(self.function, tiling.b, lanes, self.code, first_parameter)
        # A tile's part of b lies together, unless vectors would belong to two of them.
        self.in_tiles = tiling.b.along_depth or self.b.is_in_vectors
        rows = tiling.a.words + lanes
        self.tile_bytes = rows * self.width * F32.bytes if self.in_tiles else self.width * F32.bytes
        tiles = 0 if tiling.b_ahead else 1 if tiling.b_in_place else tiling.columns // self.width
        self.b_room = (
            self.room(F32, tiles * self.tile_bytes // F32.bytes) if self.in_tiles else self._rows(rows)
        )
        return self.width * F32.bytes if self.in_tiles else self.column_pitch

    def _emit_micro_kernel(self, strides: Strides) -> None:
        self.micro = emit_micro_kernel(self.function.module, "micro", self.tiling.micro, self.lanes, strides)

    def _rows(self, count: int) -> ir.Value:
        """Room for so many rows of a block, and for a vector behind the last."""
        return self.room(F32, count * self.column_pitch // F32.bytes + self.lanes)

    def item(self, item: ir.Value) -> None:
        """One block of results."""
        group, along, across = self._parts_of(item)
        first, last = self.chunk_range(across, self.units)
        start = self.builder.mul(along, self.block)
        stop = self.code.minimum(self.builder.add(start, self.block), self.inner)
        pointers = self.group_pointers(group)
        known = self.evaluate(Level.GROUP, 1, pointers, {})
        self.a.begin(group)
        self.b.begin(group)
        if self.tiling.ahead:
            self.a_groups = self.code.offset(self.arena(), self.a.counted())
        if self.tiling.b_ahead:
            self.b_groups = self.code.offset(self.arena(), self.b.counted())
        panels, depth = self.tiling.a, I64(self.tiling.a.depth)
        parts = self.a.parts(self.elements, panels.depth)
        with self.code.loop(I64(0), parts) as part:
            begin = self.builder.mul(part, depth)
            end = self.code.minimum(self.builder.add(begin, depth), self.elements)
            is_last = self.builder.icmp_signed("==", end, self.elements)
            self._begin_part(first, last, (begin, end), part)
            b = self._block(start, stop, (begin, end), part, parts)
            self._multiply_block(b, (begin, end), part, (start, stop))
            count = self.a.parts(self.builder.sub(last, first), panels.rows)
            with self.code.loop(I64(0), count) as panel:
                row = self.builder.add(first, self.builder.mul(panel, I64(panels.rows)))
                behind = self.code.minimum(self.builder.add(row, I64(panels.rows)), last)
                a, row_bytes = self._panel((row, behind), (begin, end), part, parts)
                c = self._c_row(self.builder.sub(row, first))
                done = I64(0)
                self._panel_of_results = self.row_pointers(pointers, row), start, is_last
                results = c, I64(self.column_pitch)
                if not self.only_stores:
                    with self.builder.if_then(is_last):
                        self._ask_for_results(pointers, row, behind, start, stop)
                else:
                    is_whole = self.builder.icmp_signed("==", self.builder.sub(behind, row), I64(panels.rows))
                    done = self._whole_tiles(start, stop, self.builder.and_(is_last, is_whole))
                    results = self._results(pointers, row, start)
                sums = Sums(c, results, done)
                below = self.builder.select(is_last, I64(0), end)
                self._place_in_block = panel, count, below, (start, stop)
                ends = self.builder.icmp_signed("==", behind, last)
                self._next_panel = tuple(
                    self.builder.select(ends, *pair) for pair in ((first, behind), (below, begin))
                )
                self._multiply(a, b, (begin, end), part, (start, stop), sums, row_bytes)
                if self.tiling.parts_together:
                    self._add_up(part, is_last, self.builder.sub(row, first), self.builder.sub(behind, row))
                with self.builder.if_then(is_last):
                    self._store(pointers, known, c, row, behind, (start, stop), done)

    def _parts_of(self, item: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """The numbers of an item's group, of its block of columns and of its rows."""
        group, along, across = self.code.split(item, [I64(0), self.blocks, self.chunks])
        return group, along, across

    def _begin_part(self, first: ir.Value, last: ir.Value, depth: Range, part: ir.Value) -> None:
        """Prepares for a range of rows and a part of the products."""

    def _multiply_block(
        self, block: tuple[ir.Value, ir.Value], depth: Range, part: ir.Value, columns: Range
    ) -> None:
        """Multiplies all panels by a block where they need not be gone through one by one."""

    def _panel(
        self, rows: Range, depth: Range, part: ir.Value, parts: ir.Value
    ) -> tuple[ir.Value, list[ir.Value]]:
        """Where a part of a panel lies, packed now, ahead or not at all, and the bytes between its rows, if
        the micro-kernel takes them."""
        panels = self.tiling.a
        if self.tiling.ahead:
            number = self.builder.udiv(rows[0], I64(panels.rows))
            position = self.builder.add(self.builder.mul(number, parts), part)
            distance = self.builder.mul(position, I64(panels.part_bytes(self.lanes)))
            return self.code.offset(self.a_groups, distance), []
        if not panels.in_place:
            self.a.pack_panel(self.a_room, panels, rows, depth)
            return self.a_room, []
        is_whole = self.builder.icmp_signed("==", self.builder.sub(rows[1], rows[0]), I64(panels.rows))
        with self.builder.if_then(self.builder.not_(is_whole)):
            self.a.pack_panel(self.a_room, panels, rows, depth)
        place, row_bytes = self.a.lies_at(rows[0], depth[0])
        packed_bytes, _ = panels.strides(self.lanes)
        return (
            self.builder.select(is_whole, place, self.a_room),
            [self.builder.select(is_whole, row_bytes, I64(packed_bytes))],
        )

    def _add_up(self, part: ir.Value, is_last: ir.Value, row: ir.Value, count: ir.Value) -> None:
        """Behind the last of the parts whose sums belong together, adds a panel's to those before; behind the
        last of all, to where the epilogue reads them."""
        together = self.tiling.parts_together
        number = self.builder.urem(part, I64(together))
        ends = self.builder.or_(is_last, self.builder.icmp_signed("==", number, I64(together - 1)))
        is_first = self.builder.icmp_signed("<", part, I64(together))
        distance = self.builder.mul(row, I64(self.column_pitch))
        sums, c = (self.code.offset(room, distance) for room in (self.sums_room, self.c_room))
        target = self.builder.select(is_last, c, sums)
        size = F32.bytes * self.lanes
        with self.builder.if_then(ends):
            bytes = self.builder.mul(count, I64(self.column_pitch))
            with self.code.loop(I64(0), bytes, size) as at:
                value = self.code.load(self.code.offset(c, at), F32, self.lanes)
                before = self.code.load(self.code.offset(sums, at), F32, self.lanes)
                total = self.builder.select(is_first, value, self.builder.fadd(before, value))
                self.code.store(self.code.offset(target, at), total, F32)

    def _c_row(self, row: ir.Value) -> ir.Value:
        return self.code.offset(self.c_room, self.builder.mul(row, I64(self.column_pitch)))

    def _b_at(self, row: ir.Value, column: ir.Value) -> ir.Value:
        """The place of an element of b's block."""
        if not self.in_tiles:
            return self.b.rows_at(self.b_room, self.column_pitch)(row, column)
        # Short numbers are divided in fewer instructions.
        short = self.builder.trunc(column, I32)
        tile, within = (
            self.builder.zext(each, I64) for each in self.code.split(short, [I32(0), I32(self.width)])
        )
        distance = self.builder.mul(tile, I64(self.tile_bytes))
        place = self.b.rows_at(self.b_room, self.width * F32.bytes)(row, within)
        return self.code.offset(place, distance)

    def _block(
        self, start: ir.Value, stop: ir.Value, depth: Range, part: ir.Value, parts: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        """Where the first tile of a block of b lies, packed now or ahead, and the bytes from one to the
        next."""
        if self.tiling.b_in_place:
            return self._block_in_place(start, stop, depth)
        if not self.tiling.b_ahead:
            self.b.pack_tiles(self._b_at, self.width, depth, (start, stop))
            return self.b_room, I64(self.tile_bytes)
        part_bytes = self.b.part_bytes(self.elements, self._strips)
        number, within = self.builder.udiv(start, I64(self.width)), I64(0)
        if self._reads_once:
            parts = self.a.parts(self.elements, self._strips.depth)
            part, row = (
                divide(depth[0], I64(self._strips.depth)) for divide in (self.builder.udiv, self.builder.urem)
            )
            within = self.builder.mul(row, I64(self.width * F32.bytes))
        position = self.builder.add(self.builder.mul(number, parts), part)
        distance = self.builder.add(self.builder.mul(position, part_bytes), within)
        return self.code.offset(self.b_groups, distance), self.builder.mul(parts, part_bytes)

    @property
    def _strips(self) -> Strips:
        """How b is packed ahead."""
        return Strips(self.tiling.b, self.width, self.tiling.strip_depth)

    def _block_in_place(self, start: ir.Value, stop: ir.Value, depth: Range) -> tuple[ir.Value, ir.Value]:
        """The same where tiles are read where they lie; a last one that is not whole is packed."""
        count = self.builder.sub(stop, start)
        behind = self.builder.sub(stop, self.builder.urem(count, I64(self.width)))
        with self.builder.if_then(self.builder.icmp_signed("<", behind, stop)):
            at = self.b.rows_at(self.b_room, self.width * F32.bytes)
            self.b.pack_tiles(at, self.width, depth, (behind, stop))
        place, self.b_row_bytes = self.b.lies_at(depth[0], start)
        return place, I64(self.width * F32.bytes)

    def _ask_for_results(
        self, pointers: Pointers, row: ir.Value, behind: ir.Value, start: ir.Value, stop: ir.Value
    ) -> None:
        """Fetches what a panel's results will be written to while they are computed. Tiles that are written
        where they belong can wait for it: each is followed by the products of the next one."""
        wanted = [
            position
            for position, store in enumerate(self.accesses)
            if position >= len(self.pattern.loads) and store.step is Step.CONTIGUOUS
        ]
        with self.walk_rows(pointers, row, behind) as (_, row_pointers):
            for position in wanted:
                count = LINE // self.accesses[position].type.bytes
                with self.code.loop(start, self.builder.add(stop, I64(count - 1)), count) as index:
                    distance = self.builder.mul(index, self.steps[position])
                    self.code.prefetch(self.code.offset(row_pointers[position], distance), written=True)

    def _whole_tiles(self, start: ir.Value, stop: ir.Value, is_direct: ir.Value) -> ir.Value:
        """The columns of the tiles that are written where they belong."""
        count = self.builder.udiv(self.builder.sub(stop, start), I64(self.width))
        return self.builder.select(is_direct, self.builder.mul(count, I64(self.width)), I64(0))

    def _results(self, pointers: Pointers, row: ir.Value, start: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Where the results of a panel belong, and the bytes from one row to the next."""
        position = len(self.pattern.loads)
        place = self.row_pointers(pointers, row)[position]
        return (
            self.code.offset(place, self.builder.mul(start, I64(F32.bytes))),
            self.parameter(self.layout.row_stride(position, 0)),
        )

    def _multiply(
        self,
        a: ir.Value,
        block: tuple[ir.Value, ir.Value],
        depth: Range,
        part: ir.Value,
        columns: Range,
        sums: Sums,
        row_bytes: list[ir.Value],
    ) -> None:
        """The tiles of one panel."""
        count, adds = self._products(depth, part)
        tiles = self.b.parts(self.builder.sub(columns[1], columns[0]), self.width)
        with self.code.loop(I64(0), tiles) as tile:
            column = self.builder.mul(tile, I64(self.width))
            at = self.builder.mul(column, I64(F32.bytes))
            b = self.code.offset(block[0], self.builder.mul(tile, block[1]))
            held, direct = (self.code.offset(place, at) for place in (sums.held, sums.results[0]))
            is_direct = self.builder.icmp_signed("<", column, sums.done)
            target = self.builder.select(is_direct, direct, held)
            pitch = self.builder.select(is_direct, sums.results[1], I64(self.column_pitch))
            asked = self._share_of_next(a, tile, tiles) or self._ask_for_tile(column, held)
            if self.tiling.b_ahead and self._asks_for_tiles:
                asked = self._next_tile_ahead(block, b, tile, tiles)
            if self.tiling.b_in_place:
                asked = self._next_tile(b, depth, tile, tiles)
                end = self.builder.add(column, I64(self.width))
                fits = self.builder.icmp_signed("<=", end, self.builder.sub(columns[1], columns[0]))
                b = self.builder.select(fits, b, self.b_room)
                packed_bytes = I64(self.width * F32.bytes)
                row_bytes = [*row_bytes, self.builder.select(fits, self.b_row_bytes, packed_bytes)]
            further = [*self.further, *asked, *row_bytes]
            self.builder.call(self.micro, [a, b, held, target, pitch, count, adds, *further])

    def _ask_for_tile(self, column: ir.Value, held: ir.Value) -> list[ir.Value]:
        """Where the results of a tile will be written, and the bytes from one row to the next there, if the
        micro-kernel asks for it."""
        return []

    def _next_tile(self, b: ir.Value, depth: Range, tile: ir.Value, tiles: ir.Value) -> list[ir.Value]:
        """Where the tile of b lies that is read next, in this part or in the next one, and the bytes from one
        row to the next."""
        width = I64(self.width * F32.bytes)
        is_last = self.builder.icmp_signed("==", self.builder.add(tile, I64(1)), tiles)
        part_bytes = self.builder.mul(self.builder.sub(depth[1], depth[0]), self.b_row_bytes)
        below = self.builder.sub(part_bytes, self.builder.mul(tile, width))
        return [self.code.offset(b, self.builder.select(is_last, below, width)), self.b_row_bytes]

    def _next_tile_ahead(
        self, block: tuple[ir.Value, ir.Value], b: ir.Value, tile: ir.Value, tiles: ir.Value
    ) -> list[ir.Value]:
        """The same of tiles that are packed ahead."""
        is_last = self.builder.icmp_signed("==", self.builder.add(tile, I64(1)), tiles)
        part_bytes = self.b.part_bytes(self.elements, self._strips)
        if self._reads_once:
            part_bytes = I64(self.tiling.a.depth * self.width * F32.bytes)
        below = self.code.offset(block[0], part_bytes)
        beside = self.code.offset(b, block[1])
        return [self.builder.select(is_last, below, beside), I64(self.width * F32.bytes)]

    def _share_of_next(self, a: ir.Value, tile: ir.Value, tiles: ir.Value) -> list[ir.Value]:
        """Where the part of the next panel lies that is asked for with a tile, and its bytes for each
        product: asked for at once, its lines would delay those that are needed first."""
        if not self._asks:
            return []
        panels = self.tiling.a
        if panels.apart:
            return [*self._row_of_next(tile), *self._share_of_next_block(tile, tiles)]
        if panels.in_place:
            _, row_bytes = self.a.lies_at(I64(0), I64(0))
            part_bytes = next_panel = self.builder.mul(row_bytes, I64(panels.rows))
            products = self.elements
        else:
            part_bytes = I64(panels.part_bytes(self.lanes))
            next_panel = self.builder.mul(self.a.parts(self.elements, panels.depth), part_bytes)
            products = I64(panels.words)
        step = self.builder.udiv(part_bytes, self.builder.mul(tiles, products))
        step = self.builder.add(step, I64(1))
        before = self.builder.mul(tile, self.builder.mul(step, products))
        return [self.code.offset(a, self.builder.add(next_panel, before)), step]

    def _row_of_next(self, tile: ir.Value) -> list[ir.Value]:
        """The same where rows lie apart: one with each tile."""
        first, product = self._next_panel
        row = self.code.minimum(tile, I64(self.tiling.a.rows - 1))
        place, _ = self.a.lies_at(self.builder.add(first, row), product)
        return [place, I64(F32.bytes)]

    def _share_of_next_block(self, tile: ir.Value, tiles: ir.Value) -> list[ir.Value]:
        """What is asked for with a tile of what the next block of b is packed from: two rows, for lines of
        more would lie in as many pages."""
        panel, panels, first, columns = self._place_in_block
        depth = I64(self.tiling.a.depth)
        number = self.builder.add(self.builder.mul(panel, tiles), tile)
        share = self.builder.udiv(self.builder.mul(number, depth), self.builder.mul(panels, tiles))
        place, row_bytes = self.b.lies_at(self.builder.add(first, share), columns[0])
        block_bytes = self.builder.mul(self.builder.sub(columns[1], columns[0]), I64(F32.bytes))
        step = self.builder.udiv(block_bytes, depth)
        return [place, step, self.code.offset(place, row_bytes), step]

    def _products(self, depth: Range, part: ir.Value) -> tuple[ir.Value, ir.Value]:
        """How many products a part has, and whether their sums are added to those before."""
        together = self.tiling.parts_together
        number = self.builder.urem(part, I64(together)) if together else part
        count = self.a.parts(self.builder.sub(depth[1], depth[0]), self.tiling.a.packing.group)
        return count, self.builder.icmp_signed("!=", number, I64(0))

    def _store(
        self,
        pointers: Pointers,
        known: Values,
        c: ir.Value,
        row: ir.Value,
        behind: ir.Value,
        columns: Range,
        done: ir.Value,
    ) -> None:
        """The epilogue of a panel's rows, behind the first `done` columns."""
        start, stop = columns
        first = self.builder.add(start, done)
        with (
            self.builder.if_then(self.builder.icmp_signed("<", first, stop)),
            self.walk_rows(pointers, row, behind) as (position, row_pointers),
        ):
            row_values = self.evaluate(Level.ROW, 1, row_pointers, known)
            distance = self.builder.mul(self.builder.sub(position, row), I64(self.column_pitch))
            totals = self.code.offset(c, distance)
            self._store_row(row_pointers, row_values, totals, (start, stop), first)

    def _store_row(
        self, pointers: Pointers, known: Values, totals: ir.Value, columns: Range, first: ir.Value
    ) -> None:
        """The epilogue of a range of columns of one row, from `first` on; the sums of all lie at
        `totals`."""
        start, stop = columns

        def known_at(index: ir.Value) -> Values:
            at = self.builder.mul(self.builder.sub(index, start), I64(F32.bytes))
            total = self.code.load(self.code.offset(totals, at), self.total.type, self.lanes)
            return known | {id(self.total): total}

        self.store_range(pointers, first, stop, known_at)


def _only_stores(pattern: CpuPattern) -> bool:
    """Whether the sums are the results, and lie in memory as in tiles."""
    if len(pattern.stores) != 1 or pattern.rows != 1:
        return False
    (store,), (value,) = pattern.stores, pattern.values
    return _is_total(value, pattern) and store.type is value.type and store.step is Step.CONTIGUOUS


def _is_total(node: Node, pattern: CpuPattern) -> bool:
    return node.operation is Operation.SOURCE and number_of(node) == len(pattern.loads) - 1
