"""Contractions with windows of an image, which is packed once for all windows that see it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I64
from opendml.targets.cpu.contraction.arithmetic import BYTES, F32
from opendml.targets.cpu.contraction.code import ContractionCode
from opendml.targets.cpu.contraction.fma import DISTANCE_BYTES
from opendml.targets.cpu.contraction.image_code import ImageCode, IntegerImageCode, image_code
from opendml.targets.cpu.contraction.packing import Range
from opendml.targets.cpu.contraction.storages import KPart, Panel, StoredA, StoredB, Stream, Strided
from opendml.targets.cpu.contraction.tiling import Image, OperandA, OperandB
from opendml.targets.cpu.loads import Pointers, Values
from opendml.targets.cpu.pattern import LINE

GAP = 2 * LINE // F32.bytes
"""Elements between two planes of an image, at most."""


class PackedImage:
    """The image of an operand in scratch memory, and the table of distances of a window's elements."""

    def __init__(self, kernel: ContractionCode, operand: OperandA | OperandB, first_parameter: int) -> None:
        self.kernel, self.builder, self.code = kernel, kernel.builder, kernel.code
        image, lanes = kernel.tiling.image, kernel.lanes
        assert image is not None
        self.reader = image_code(kernel.code, operand, image, first_parameter)
        # A tile may reach beyond the last window, and zeros a vector beyond its end.
        self.scratch = kernel.reserve(F32, image.elements + kernel.width + lanes + GAP)
        self.distances = kernel.reserve(ScalarType.INT64, kernel.tiling.depth)
        self._subtracts = operand.packing.type in BYTES
        whole = kernel.tiling.columns + kernel.width
        self._differences = [kernel.reserve(F32, whole if self._subtracts else 0) for _ in range(2)]
        """The sums of windows of bytes less what is subtracted from them, and what that is."""

    def pack(self, windows: Range, block: ir.Value, part: KPart) -> None:
        """Pack what a range of windows, whole rows of them, see of the channels of a part. A block has
        `block` windows."""
        reader = self.reader
        taps = I64(reader.image.taps * reader.channels)
        first, last = (self.builder.udiv(each, taps) for each in part.depth)
        rows = reader.line(windows[0]), reader.line(windows[1])
        plane = reader.plane_bytes(reader.line(block))
        with self.builder.if_then(self.builder.icmp_signed("==", part.number, I64(0))):
            self.put_distances(self.builder.sub(last, first), reader.group_bytes(plane))
        reader.pack_image(self.scratch, (first, last), rows, plane, self.kernel.width)
        if isinstance(reader, IntegerImageCode) and self._subtracts:
            groups = self.builder.mul(self.builder.sub(last, first), I64(reader.image.taps))
            self._subtract(reader, rows, groups)

    def _subtract(self, reader: IntegerImageCode, rows: Range, groups: ir.Value) -> None:
        """Store what the micro-kernel subtracts. Behind the distances of a window's groups follow those of
        the sums and of what is subtracted."""
        span = self.builder.mul(self.builder.sub(rows[1], rows[0]), reader.inner)
        tiles = self.kernel.b.reader.parts(
            self.builder.sub(span, I64(reader.image.columns.reach)), self.kernel.width
        )
        windows = self.builder.mul(tiles, I64(self.kernel.width))
        reader.put_differences(self.scratch, self.distances, groups, windows, self._differences)
        for number, place in enumerate(self._differences):
            distance = self.builder.sub(*(self.builder.ptrtoint(each, I64) for each in (place, self.scratch)))
            index = self.builder.add(groups, I64(number))
            at = self.code.offset(self.distances, self.builder.mul(index, I64(DISTANCE_BYTES)))
            self.builder.store(distance, at)

    def put_distances(self, channels: ir.Value, plane: ir.Value) -> None:
        """Store the distances of a window's elements from its begin, in the order of products."""
        image = self.reader.image
        with self.code.loop(I64(0), channels) as channel:
            base = self.builder.mul(channel, self.builder.mul(plane, I64(image.phases)))
            first = self.builder.mul(channel, I64(image.taps * DISTANCE_BYTES))
            place = self.code.offset(self.distances, first)
            for number, (phase, row, column) in enumerate(_taps(image)):
                distance = self.builder.add(base, self.builder.mul(plane, I64(phase)))
                distance = self.builder.add(distance, self.builder.mul(self.reader.pitch, I64(row)))
                distance = self.builder.add(distance, I64(column * F32.bytes))
                self.builder.store(distance, self.code.offset(place, I64(number * DISTANCE_BYTES)))


def _taps(image: Image) -> Iterator[tuple[int, int, int]]:
    """Yield for each element of a window its phase, and its distance in rows and columns there."""
    rows, columns = image.rows, image.columns
    for row, column in product(range(rows.extent), range(columns.extent)):
        (row_phase, down), (column_phase, along) = rows.place(row), columns.place(column)
        yield row_phase * columns.phases + column_phase, down, along


class WindowsA(StoredA):
    """A, whose rows are windows. The windows of a micro-panel lie beside each other."""

    strides = (F32.bytes, None)

    def lay_out(self, first_parameter: int) -> None:
        self.image = PackedImage(self.kernel, self.operand, first_parameter)
        self.reader: ImageCode = self.image.reader

    def split(self, item: ir.Value) -> list[ir.Value]:
        kernel = self.kernel
        if not kernel.tiling.b.storage.is_ahead:
            return super().split(item)
        # All images meet the same panels while these are in a core's own cache.
        along, group, across = self.code.split(item, [I64(0), kernel.groups, kernel.chunks])
        return [group, along, across]

    def begin_part(self, rows: Range, part: KPart) -> None:
        self._first = rows[0]
        self.image.pack(rows, self.kernel.chunk, part)

    def panel(self, rows: Range, part: KPart) -> tuple[ir.Value, list[ir.Value]]:
        return self.window(self.builder.sub(rows[0], self._first)), []

    def window(self, number: ir.Value) -> ir.Value:
        """Return where a window of the item begins."""
        line, column = self.code.split(number, [I64(0), self.reader.width])
        place = self.reader.rows_from(self.image.scratch, I64(0))(line)
        return self.code.offset(place, self.builder.mul(column, I64(F32.bytes)))


class BroadcastWindowsCode(ContractionCode):
    """Emits a contraction whose operand A is windows. A block's rows are whole rows of windows.

    Micro-panels of windows are not packed. So each tile of B is multiplied by all of them before the next
    tile: it is fetched once, and the next one meanwhile.
    """

    results_lie_as_tiles = False
    multiplies_blocks = True

    @property
    def prefetches_a(self) -> bool:
        """True if micro-kernels prefetch the next panel of B: a line with each product."""
        return self.tiling.b.storage.is_ahead

    def a_storage(self, first_parameter: int) -> StoredA:
        self.windows = WindowsA(self, first_parameter)
        self.windows_table = self.windows.image.distances
        return self.windows

    def multiply_block(self, b: Strided, rows: Range, columns: Range, part: KPart) -> None:
        first, last = rows
        count, adds = self.products(part)
        tiles = self.b.reader.parts(self.builder.sub(columns[1], columns[0]), self.width)
        panels = self.a.reader.parts(self.builder.sub(last, first), self.tiling.a.rows)
        pitch = I64(self.column_pitch)
        with self.code.loop(I64(0), tiles) as tile:
            place = self.code.offset(b.address, self.builder.mul(tile, b.step))
            next_tile, step = self._next_tile(place, b.step, tile, tiles, panels)
            with self.code.loop(I64(0), panels) as panel:
                row = self.builder.mul(panel, I64(self.tiling.a.rows))
                at = self.builder.mul(tile, I64(self.width * F32.bytes))
                c = self.code.offset(self.c_row(row), at)
                share = self.builder.mul(panel, self.builder.mul(step, count))
                stream = [self.code.offset(next_tile, share), step] if self.prefetches_a else []
                operands = [self.windows.window(row), place, c, c, pitch, count, adds]
                self.builder.call(self.micro, [*operands, self.windows_table, *stream])

    def _next_tile(
        self, b: ir.Value, tile_bytes: ir.Value, tile: ir.Value, tiles: ir.Value, panels: ir.Value
    ) -> Stream:
        """Return the address of the tile that is multiplied next, of these products or of the next ones. The
        second number is its bytes that are prefetched with each product of a micro-panel."""
        part_bytes = self.b.reader.part_bytes(self.elements)
        is_last = self.builder.icmp_signed("==", self.builder.add(tile, I64(1)), tiles)
        below = self.builder.sub(part_bytes, self.builder.mul(tile, tile_bytes))
        distance = self.builder.select(is_last, below, tile_bytes)
        step = self.builder.udiv(I64(self.width * F32.bytes), panels)
        return [self.code.offset(b, distance), self.builder.add(step, I64(1))]


class WindowsB(StoredB):
    """B, whose columns are windows. Windows that begin at neighbours are the lanes of vectors."""

    depth_bytes = None

    def lay_out(self, first_parameter: int) -> None:
        self.image = PackedImage(self.kernel, self.operand, first_parameter)
        self.reader: ImageCode = self.image.reader

    def block(self, columns: Range, part: KPart) -> Strided:
        self.image.pack(columns, self.kernel.block, part)
        return Strided(self.image.scratch, I64(self.row_bytes))

    def tiles(self, columns: Range) -> ir.Value:
        """Return the tiles of a block, whose windows include those between two of its rows."""
        lines = self.reader.line(self.builder.sub(columns[1], columns[0]))
        between = I64(self.reader.image.columns.reach)
        span = self.builder.sub(self.builder.mul(lines, self.reader.inner), between)
        return self.reader.parts(span, self.width)


class WindowsCode(ContractionCode):
    """Emits a contraction whose operand B is windows. A block's columns are whole rows of windows. Windows
    between two rows are multiplied too, but not stored."""

    results_lie_as_tiles = False

    def b_storage(self, first_parameter: int) -> StoredB:
        self.windows = self.windows_storage(first_parameter)
        return self.windows

    def windows_storage(self, first_parameter: int) -> WindowsB:
        """Create the storage of the windows."""
        return WindowsB(self, first_parameter)

    def prefetch_results(self, pointers: Pointers, rows: Range, columns: Range) -> None:
        """Prefetch nothing: each tile prefetches a share, or the first would wait for all of it."""

    def multiply(self, a: ir.Value, row_bytes: list[ir.Value], block: Strided, panel: Panel) -> None:
        count, adds = self.products(panel.part)
        tiles = self.windows.tiles(panel.columns)
        with self.code.loop(I64(0), tiles) as tile:
            self._prefetch_share(tile, panel)
            at = self.builder.mul(tile, block.step)
            b, c = self.code.offset(block.address, at), self.code.offset(panel.c, at)
            stream = self.stream((a, b, c), block, panel, tile, tiles)
            operands = [a, b, c, c, panel.results.step, count, adds, self.windows.image.distances]
            self.builder.call(self.micro, [*operands, *stream])

    def _prefetch_share(self, tile: ir.Value, panel: Panel) -> None:
        """Prefetch the memory of the columns of a tile, which may be behind all results."""
        first = self.builder.add(panel.columns[0], self.builder.mul(tile, I64(self.width)))
        end = self.code.minimum(self.builder.add(first, I64(self.width)), panel.columns[1])
        with self.builder.if_then(panel.part.is_last):
            super().prefetch_results(panel.pointers[0], panel.rows, (first, end))

    def store_row(
        self, pointers: Pointers, known: Values, totals: ir.Value, columns: Range, first: ir.Value
    ) -> None:
        reader = self.windows.reader
        at = reader.rows_from(totals, I64(0))
        with self.code.loop(I64(0), reader.line(self.builder.sub(columns[1], columns[0]))) as line:
            start = self.builder.add(columns[0], self.builder.mul(line, reader.width))
            stop = self.builder.add(start, reader.width)
            super().store_row(pointers, known, at(line), (start, stop), start)
