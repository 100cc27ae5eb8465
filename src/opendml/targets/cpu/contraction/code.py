"""The block loop of sums of products in tiles, and the code of vector instructions.

An item is a block of rows and columns of the results. For each part of k it finds or packs its part of B,
then that of one micro-panel of A after the other. It adds the products to a tile in scratch memory. Behind
the last part the rows of each micro-panel go through the epilogue, an element-wise pattern whose last load is
the sums. If it only stores them, whole tiles are stored where they belong at once.
"""

from __future__ import annotations

from dataclasses import replace

from opendml.compiler.kernel import number_of
from opendml.program.node import Node, Operation
from opendml.targets.common.pattern import Level, Step
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I64, Code
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.costs import has_low_tiles
from opendml.targets.cpu.contraction.fma import Strides, emit_micro_kernel
from opendml.targets.cpu.contraction.packing import Range
from opendml.targets.cpu.contraction.storages import (
    A_STORAGES,
    KPart,
    Panel,
    StoredA,
    StoredB,
    Stream,
    Strided,
    b_storage,
)
from opendml.targets.cpu.contraction.tiling import (
    FEW_ROWS,
    NARROW_PANELS_TOGETHER,
    PANELS_TOGETHER,
    Instructions,
    Storage,
    Tiling,
    odd_lines,
)
from opendml.targets.cpu.kernel_code import KernelCode
from opendml.targets.cpu.loads import Pointers, Values
from opendml.targets.cpu.pattern import LINE, CpuPattern
from opendml.targets.cpu.shared_functions import shared_function
from opendml.targets.cpu.shuffles import transposed


class ContractionCode(KernelCode):
    """Emits a contraction in tiles of vector registers.

    The pattern itself is that of the epilogue. Its row loop runs over the rows, its innermost loop over the
    columns of the results.
    """

    results_lie_as_tiles = True
    """True if neighbours in a tile are neighbours among the results."""
    multiplies_blocks = False
    """True if a tile of B is multiplied by all micro-panels of a block before the next tile."""

    def __init__(self, code: Code, pattern: CpuPattern) -> None:
        super().__init__(code, pattern)
        tiling = self.tiling = pattern.walk_as(Tiling)
        self.width = tiling.micro.vectors * self.lanes
        self.column_pitch = odd_lines(tiling.columns + self.lanes)
        first = self.layout.length
        self.a = self.a_storage(first)
        self.b = self.b_storage(first + self.a.reader.layout.length)
        self.c_scratch = self.rows_of_results(-(-tiling.rows // self.lanes) * self.lanes)
        self.sums_scratch = self.rows_of_results(tiling.rows if tiling.parts_together else 0)
        self.arguments: list[ir.Value] = []
        """Further arguments of the micro-kernel that are the same in all calls."""
        self.emit_micro_kernel()
        lie_as_tiles = self.results_lie_as_tiles and not tiling.turns
        self.only_stores = lie_as_tiles and _only_stores(pattern) and not tiling.parts_together
        # The epilogue walks the columns of tiles as rows if results are turned.
        self.row_count, self.column_count = self.units, self.inner
        if tiling.turns:
            self.row_count, self.column_count = self.inner, self.units
            self.turned_pitch = odd_lines(tiling.rows + 2 * self.lanes)
            self.turned = self.reserve(F32, self.lanes * self.turned_pitch // F32.bytes)
        self.total = next(node for node in self.nodes if _is_total(node, pattern))

    def a_storage(self, first_parameter: int) -> StoredA:
        """Create the storage of A, whose parameters begin there."""
        return A_STORAGES[self.tiling.a.storage](self, first_parameter)

    def b_storage(self, first_parameter: int) -> StoredB:
        """Create the storage of B, whose parameters begin there."""
        return b_storage(self.tiling.b)(self, first_parameter)

    def rows_of_results(self, count: int) -> ir.Value:
        """Return scratch memory for rows of a block, and for a vector behind the last."""
        return self.reserve(F32, count * self.column_pitch // F32.bytes + self.lanes)

    def emit_micro_kernel(self) -> None:
        """Emit the function of the micro-kernel."""
        a, b = self.tiling.a, self.tiling.b
        a_row, a_depth = self.a.strides
        lines = int(self.prefetches_a)
        if self.prefetches_b:
            row_bytes = b.narrow.row_bytes(self.width) if b.narrow else self.width * F32.bytes
            lines = -(-row_bytes // LINE)
        strides = Strides(
            a_row=a_row,
            a_depth=a_depth,
            b_depth=self.b.depth_bytes,
            c_row=self.column_pitch,
            prefetched=lines,
            b_in_place=b.storage is Storage.IN_PLACE,
            is_read_once=b.storage in (Storage.IN_PLACE, Storage.STREAMED),
            packed=a.packing.type,
            narrow=b.narrow if b.storage is Storage.NARROW_STREAMED else None,
            continues=self.tiling.continues,
        )
        module, micro = self.function.module, self.tiling.micro
        self.micro, _ = shared_function(module, "micro", emit_micro_kernel, micro, self.lanes, strides)
        if (panels := self._panels_together) > 1:
            wide = replace(micro, vectors=micro.vectors * panels)
            strides = replace(strides, prefetched=0, panels=panels)
            self.wide_micro, _ = shared_function(
                module, "wide_micro", emit_micro_kernel, wide, self.lanes, strides
            )

    @property
    def prefetches_a(self) -> bool:
        """True if micro-kernels prefetch the next micro-panel of A, because no item packs it."""
        return self.tiling.a.storage is Storage.AHEAD or self._fetches_rows

    @property
    def prefetches_b(self) -> bool:
        """True if micro-kernels prefetch the next tile of B instead, because no item packs it.

        Beside an image a panel comes in shares, one with each micro-panel. Few rows read panels as fast as
        caches give them; prefetching would take from that.
        """
        b = self.tiling.b.storage
        pays = self.tiling.micro.rows > FEW_ROWS or b is Storage.STREAMED
        is_ahead = b.is_ahead and pays and not (self._fetches_rows or self.tiling.image)
        return b in (Storage.IN_PLACE, Storage.NARROW) or is_ahead

    @property
    def _panels_together(self) -> int:
        """The panels of B that a row reads side by side."""
        if self.tiling.micro.rows > 1 or self.tiling.instructions is not Instructions.FMA:
            return 1
        most = {Storage.STREAMED: PANELS_TOGETHER, Storage.NARROW_STREAMED: NARROW_PANELS_TOGETHER}
        together = most.get(self.tiling.b.storage, 1)
        return together if self.tiling.columns >= together * self.width else 1

    @property
    def _fetches_rows(self) -> bool:
        """True if rows of A lie where they are read, and are too many for a hardware prefetcher."""
        return self.tiling.a.storage is Storage.IN_PLACE and not has_low_tiles()

    def item(self, item: ir.Value) -> None:
        """Compute one block of results."""
        builder = self.builder
        group, along, across = self.a.split(item)
        rows = self.chunk_range(across, self.row_count)
        start = builder.mul(along, self.block)
        columns = start, self.code.minimum(builder.add(start, self.block), self.column_count)
        pointers = self.group_pointers(group)
        known = self.evaluate(Level.GROUP, 1, pointers, {})
        operands: tuple[StoredA, StoredB] = self.a, self.b
        for operand in operands:
            operand.reader.begin(group)
        for operand in operands:
            operand.begin()
        depth = I64(self.tiling.depth)
        parts = self.a.reader.parts(self.elements, self.tiling.depth)
        with self.code.loop(I64(0), parts) as number:
            begin = builder.mul(number, depth)
            end = self.code.minimum(builder.add(begin, depth), self.elements)
            is_last = builder.icmp_signed("==", end, self.elements)
            part = KPart(number, parts, (begin, end), is_last)
            self.a.begin_part(rows, part)
            b = self.b.block(columns, part)
            if self.multiplies_blocks:
                self.multiply_block(b, rows, columns, part)
            self._take_in_part(part, b, rows, columns, pointers, known)

    def _take_in_part(
        self, part: KPart, b: Strided, rows: Range, columns: Range, pointers: Pointers, known: Values
    ) -> None:
        """Add the products of a part to the sums, one micro-panel after the other. Behind the last part,
        store the results of each."""
        builder, (first, last), height = self.builder, rows, self.tiling.a.rows
        count = self.a.reader.parts(builder.sub(last, first), height)
        with self.code.loop(I64(0), count) as number:
            row = builder.add(first, builder.mul(number, I64(height)))
            own = row, self.code.minimum(builder.add(row, I64(height)), last)
            a, row_bytes = self.a.panel(own, part)
            c = self.c_row(builder.sub(row, first))
            at = pointers, pointers if self.tiling.turns else self.row_pointers(pointers, row)
            if self.only_stores:
                is_whole = builder.icmp_signed("==", builder.sub(own[1], row), I64(height))
                stored = self._whole_tiles(columns, builder.and_(part.is_last, is_whole))
                results = self._results(pointers, row, columns[0])
            else:
                stored, results = I64(0), Strided(c, I64(self.column_pitch))
                if not self.tiling.turns:
                    with builder.if_then(part.is_last):
                        self.prefetch_results(pointers, own, columns)
            panel = Panel(part, number, count, own, columns, at, c, results, stored)
            if not self.multiplies_blocks:
                self.multiply(a, row_bytes, b, panel)
            if self.tiling.parts_together:
                self._add_up(part, builder.sub(row, first), builder.sub(own[1], row))
            if not self.tiling.turns:
                with builder.if_then(part.is_last):
                    self._store(known, panel)
        if self.tiling.turns:
            with builder.if_then(part.is_last):
                self._store_turned(pointers, known, rows, columns)

    def multiply_block(self, b: Strided, rows: Range, columns: Range, part: KPart) -> None:
        """Multiply all micro-panels by a block."""
        raise NotImplementedError

    def multiply(self, a: ir.Value, row_bytes: list[ir.Value], block: Strided, panel: Panel) -> None:
        """Multiply a micro-panel by the tiles of a block."""
        builder, columns = self.builder, panel.columns
        count, adds = self.products(panel.part)
        tiles = self.b.reader.parts(builder.sub(columns[1], columns[0]), self.width)

        def operands(tile: ir.Value, together: int) -> list[ir.Value]:
            """Return the first arguments of a micro-kernel that multiplies some tiles: A, B, C and so on."""
            at = builder.mul(tile, I64(self.width * F32.bytes))
            b = self.code.offset(block.address, builder.mul(tile, block.step))
            c, direct = (self.code.offset(place, at) for place in (panel.c, panel.results.address))
            end = builder.mul(builder.add(tile, I64(together)), I64(self.width))
            is_direct = builder.icmp_signed("<=", end, panel.stored)
            target = builder.select(is_direct, direct, c)
            pitch = builder.select(is_direct, panel.results.step, I64(self.column_pitch))
            return [a, b, c, target, pitch, count, adds]

        first = I64(0)
        if (panels := self._panels_together) > 1:
            # All tiles of a call are stored into the results, or all into C.
            whole = builder.udiv(panel.stored, I64(self.width))
            is_direct = builder.icmp_signed("!=", whole, I64(0))
            alike = builder.select(is_direct, whole, tiles)
            with self.code.loop(first, alike, panels) as tile:
                _, b, *others = operands(tile, panels)
                b, b_row_bytes = self.b.tile(b, builder.mul(tile, I64(self.width)), columns)
                further = [*self.arguments, *row_bytes, *b_row_bytes, block.step]
                builder.call(self.wide_micro, [a, b, *others, *further])
            first = builder.and_(alike, I64(-panels))
        with self.code.loop(first, tiles) as tile:
            _, b, c, *others = operands(tile, 1)
            stream = self.stream((a, b, c), block, panel, tile, tiles)
            b, b_row_bytes = self.b.tile(b, builder.mul(tile, I64(self.width)), columns)
            further = [*self.arguments, *stream, *row_bytes, *b_row_bytes]
            builder.call(self.micro, [a, b, c, *others, *further])

    def stream(
        self,
        operands: tuple[ir.Value, ir.Value, ir.Value],
        block: Strided,
        panel: Panel,
        tile: ir.Value,
        tiles: ir.Value,
    ) -> Stream:
        """Return what the micro-kernel prefetches with a tile. `operands` are A, B and C."""
        a, b, _ = operands
        if self.prefetches_b:
            return self.b.stream(block, b, panel, tile, tiles)
        return self.a.stream(a, tile, tiles) if self.prefetches_a else []

    def products(self, part: KPart) -> tuple[ir.Value, ir.Value]:
        """Return the products (or groups) of a part, and whether their sums are added to those before."""
        together, (first, last) = self.tiling.parts_together, part.depth
        number = self.builder.urem(part.number, I64(together)) if together else part.number
        count = self.a.reader.parts(self.builder.sub(last, first), self.tiling.a.packing.group)
        return count, self.builder.icmp_signed("!=", number, I64(0))

    # Results

    def c_row(self, row: ir.Value) -> ir.Value:
        """Return where the sums of a row of the block are."""
        return self.code.offset(self.c_scratch, self.builder.mul(row, I64(self.column_pitch)))

    def _add_up(self, part: KPart, row: ir.Value, count: ir.Value) -> None:
        """Add a micro-panel's sums to those before, behind the last of the parts whose sums belong together.
        Behind the last of all, store them where the epilogue reads them."""
        together = self.tiling.parts_together
        number = self.builder.urem(part.number, I64(together))
        ends = self.builder.or_(part.is_last, self.builder.icmp_signed("==", number, I64(together - 1)))
        is_first = self.builder.icmp_signed("<", part.number, I64(together))
        distance = self.builder.mul(row, I64(self.column_pitch))
        sums, c = (self.code.offset(place, distance) for place in (self.sums_scratch, self.c_scratch))
        target = self.builder.select(part.is_last, c, sums)
        size = F32.bytes * self.lanes
        with self.builder.if_then(ends):
            bytes = self.builder.mul(count, I64(self.column_pitch))
            with self.code.loop(I64(0), bytes, size) as at:
                value = self.code.load(self.code.offset(c, at), F32, self.lanes)
                before = self.code.load(self.code.offset(sums, at), F32, self.lanes)
                total = self.builder.select(is_first, value, self.builder.fadd(before, value))
                self.code.store(self.code.offset(target, at), total, F32)

    def prefetch_results(self, pointers: Pointers, rows: Range, columns: Range) -> None:
        """Prefetch the memory of a micro-panel's results while they are computed. Tiles that are stored where
        they belong can wait for it: each is followed by the products of the next one."""
        wanted = [
            position
            for position, store in enumerate(self.accesses)
            if position >= len(self.pattern.loads) and store.step is Step.CONTIGUOUS
        ]
        start, stop = columns
        with self.walk_rows(pointers, *rows) as (_, row_pointers):
            for position in wanted:
                count = LINE // self.accesses[position].type.bytes
                with self.code.loop(start, self.builder.add(stop, I64(count - 1)), count) as index:
                    distance = self.builder.mul(index, self.steps[position])
                    self.code.prefetch(self.code.offset(row_pointers[position], distance), written=True)

    def _whole_tiles(self, columns: Range, is_direct: ir.Value) -> ir.Value:
        """Return the columns of the tiles that are stored where they belong."""
        count = self.builder.udiv(self.builder.sub(columns[1], columns[0]), I64(self.width))
        return self.builder.select(is_direct, self.builder.mul(count, I64(self.width)), I64(0))

    def _results(self, pointers: Pointers, row: ir.Value, start: ir.Value) -> Strided:
        """Return where the results of a micro-panel belong."""
        position = len(self.pattern.loads)
        place = self.row_pointers(pointers, row)[position]
        return Strided(
            self.code.offset(place, self.builder.mul(start, I64(F32.bytes))),
            self.parameter(self.layout.row_stride(position, 0)),
        )

    def _store(self, known: Values, panel: Panel) -> None:
        """Emit the epilogue of a micro-panel's rows, behind the columns that are stored already."""
        (start, stop), (row, _) = panel.columns, panel.rows
        first = self.builder.add(start, panel.stored)
        with (
            self.builder.if_then(self.builder.icmp_signed("<", first, stop)),
            self.walk_rows(panel.pointers[0], *panel.rows) as (position, row_pointers),
        ):
            row_values = self.evaluate(Level.ROW, 1, row_pointers, known)
            distance = self.builder.mul(self.builder.sub(position, row), I64(self.column_pitch))
            totals = self.code.offset(panel.c, distance)
            self.store_row(row_pointers, row_values, totals, panel.columns, first)

    def _store_turned(self, pointers: Pointers, known: Values, rows: Range, columns: Range) -> None:
        """Emit the epilogue of a block whose results lie contiguous along the rows.

        As many columns as a vector has lanes are turned at a time, and stored from there. So they stay in the
        first cache, and long runs are stored.
        """
        builder, lanes = self.builder, self.lanes
        (first, last), (start, stop) = rows, columns
        # The last vector of either may reach beyond the block.
        row_end, column_end = (builder.add(each, I64(lanes - 1)) for each in (builder.sub(last, first), stop))
        with self.code.loop(start, column_end, lanes) as column:
            at = builder.mul(builder.sub(column, start), I64(F32.bytes))
            with self.code.loop(I64(0), row_end, lanes) as row:
                place = self.code.offset(self.c_row(row), at)
                distances = [I64(lane * self.column_pitch) for lane in range(lanes)]
                found = [
                    self.code.load(self.code.offset(place, each), self.total.type, lanes)
                    for each in distances
                ]
                target = self.code.offset(self.turned, builder.mul(row, I64(F32.bytes)))
                for lane, vector in enumerate(transposed(builder, found, self.total.type, lanes)):
                    turned = self.code.offset(target, I64(lane * self.turned_pitch))
                    self.code.store(turned, vector, self.total.type)
            end = self.code.minimum(builder.add(column, I64(lanes)), stop)
            with self.walk_rows(pointers, column, end) as (position, row_pointers):
                row_values = self.evaluate(Level.ROW, 1, row_pointers, known)
                distance = builder.mul(builder.sub(position, column), I64(self.turned_pitch))
                self.store_row(row_pointers, row_values, self.code.offset(self.turned, distance), rows, first)

    def store_row(
        self, pointers: Pointers, known: Values, totals: ir.Value, columns: Range, first: ir.Value
    ) -> None:
        """Emit the epilogue of a range of columns of one row, from `first` on. The sums of all are at
        `totals`."""
        start, stop = columns

        def known_at(index: ir.Value) -> Values:
            at = self.builder.mul(self.builder.sub(index, start), I64(F32.bytes))
            total = self.code.load(self.code.offset(totals, at), self.total.type, self.lanes)
            return known | {id(self.total): total}

        self.store_range(pointers, first, stop, known_at)


def _only_stores(pattern: CpuPattern) -> bool:
    """Return whether the sums are the results, and lie in memory as in tiles."""
    if len(pattern.stores) != 1 or pattern.rows != 1:
        return False
    (store,), (value,) = pattern.stores, pattern.values
    return _is_total(value, pattern) and store.type is value.type and store.step is Step.CONTIGUOUS


def _is_total(node: Node, pattern: CpuPattern) -> bool:
    return node.operation is Operation.SOURCE and number_of(node) == len(pattern.loads) - 1
