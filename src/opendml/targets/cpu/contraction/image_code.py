"""Sums of products with windows of an image, which is packed once for all windows that see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from llvmlite import ir

from opendml.program.scalar_type import ScalarType
from opendml.targets.common.pattern import Level
from opendml.targets.cpu.code import I32, I64, Code
from opendml.targets.cpu.contraction.arithmetic import BYTES, dot_bytes
from opendml.targets.cpu.contraction.code import ContractionCode, Sums
from opendml.targets.cpu.contraction.micro import DISTANCE_BYTES
from opendml.targets.cpu.contraction.packing import F32, PackingCode, Range
from opendml.targets.cpu.contraction.patterns import Image, ImageWindow, Packing, Strips
from opendml.targets.cpu.contraction.words import WordPackingCode
from opendml.targets.cpu.loads import Pointers, Values
from opendml.targets.cpu.pattern import LINE
from opendml.targets.cpu.values import llvm_type
from opendml.targets.cpu.values import number as constant

GAP = 2 * LINE // F32.bytes
"""Elements between two planes of an image, at most."""


class ImageCode(PackingCode):
    """The image. Its row loops are those of channels, of phases where there are several, and of rows; its
    innermost is that of columns."""

    def __init__(
        self,
        function: ir.Function,
        packing: Packing,
        image: Image,
        lanes: int,
        code: Code,
        first_parameter: int,
    ) -> None:
        super().__init__(function, packing, lanes, code, first_parameter)
        self.image = image
        self.pitch = self.builder.mul(self.inner, I64(F32.bytes))
        self.width = self.builder.sub(self.inner, I64(image.columns.reach))
        """Windows beside each other."""

    @property
    def channels(self) -> int:
        """Those of a group, which are packed together."""
        return self.packing.group

    def group_bytes(self, plane: ir.Value) -> ir.Value:
        """From one group's phase to the next."""
        return plane

    def line(self, window: ir.Value) -> ir.Value:
        """The row of windows that one belongs to."""
        return self.builder.udiv(window, self.width)

    def plane_bytes(self, rows: ir.Value) -> ir.Value:
        """From one phase of one channel to the next, where windows begin in so many rows: an odd number of
        lines, so that they lie in different sets of a cache."""
        count = self.builder.add(rows, I64(self.image.rows.reach))
        lines = self.builder.udiv(
            self.builder.add(self.builder.mul(count, self.pitch), I64(LINE - 1)), I64(LINE)
        )
        return self.builder.mul(self.builder.or_(lines, I64(1)), I64(LINE))

    def pack_image(self, place: ir.Value, channels: Range, rows: Range, plane: ir.Value, behind: int) -> None:
        """What the windows that begin in some rows see of some channels; `behind` elements follow.

        What no window sees is multiplied too, but not stored. It is zero where nothing else is: some numbers
        that may be left there, which are denormal, would take long."""
        self._pack_planes(self._pointers, place, channels, rows, plane, [I64(0)])
        count = self.builder.mul(self.builder.sub(channels[1], channels[0]), I64(self.image.phases))
        self.clear(self.code.offset(place, self.builder.mul(count, plane)), I64(behind))

    def _pack_planes(
        self,
        origin: Pointers,
        place: ir.Value,
        channels: Range,
        rows: Range,
        plane: ir.Value,
        distances: Sequence[ir.Value],
    ) -> None:
        """The planes of some channels, of which the accesses stand at the first; `distances`: of the planes
        that are put down together."""
        phases = I64(self.image.phases)
        first, last = (self.builder.mul(channel, phases) for channel in channels)
        counts = self.row_counts[: self._majors]
        end = self.builder.add(rows[1], I64(self.image.rows.reach))
        with self._walk(origin, counts, self.layout.row_stride, first, last) as (major, pointers):
            number = self.builder.sub(major, first)
            at = self.rows_from(
                self.code.offset(place, self.builder.mul(number, self.group_bytes(plane))), rows[0]
            )
            height, width = self._seen(self.builder.urem(number, phases))
            stop = self.code.minimum(end, height)
            height_loop = self.row_counts[self._majors : self._majors + 1]
            with self._walk(pointers, height_loop, self._minor_stride, rows[0], stop) as (row, run):
                start = at(row)
                if self.image.columns.phases > 1:
                    last_column = self._element(start, self.builder.sub(self.inner, I64(1)))
                    for distance in distances:
                        self.code.store(self.code.offset(last_column, distance), constant(F32, 1, 0.0), F32)
                self._pack_run(run, (I64(0), width), lambda column: self._element(start, column), I64(0), 1)
            behind = self.code.offset(at(rows[0]), plane)
            rest = self.builder.sub(*(self.builder.ptrtoint(each, I64) for each in (behind, at(stop))))
            for distance in distances:
                self._clear_exactly(self.code.offset(at(stop), distance), rest)

    def _moved_channels(self, pointers: Pointers, count: ir.Value) -> Pointers:
        """Where the accesses stand so many channels further on in each group. What counts does not count
        these, so guards are computed once."""
        moved = list(pointers)
        for position, access in enumerate(self.accesses):
            if not access.counter:
                step = self.parameter(self.layout.row_stride(position, self._majors + 1))
                moved[position] = self.code.offset(pointers[position], self.builder.mul(count, step))
        return moved

    def _clear_exactly(self, place: ir.Value, size: ir.Value) -> None:
        """Zeros in so many bytes, and in none behind them."""
        zero = constant(F32, self.lanes, 0.0)

        def put(index: ir.Value, mask: ir.Value | None) -> None:
            self.code.store(self._element(place, index), zero, F32, mask)

        self.code.vector_loop(I64(0), self.builder.udiv(size, I64(F32.bytes)), put)

    def rows_from(self, place: ir.Value, first: ir.Value) -> Callable[[ir.Value], ir.Value]:
        """The places of rows, of which the first lies at a place."""

        def at(row: ir.Value) -> ir.Value:
            return self.code.offset(place, self.builder.mul(self.builder.sub(row, first), self.pitch))

        return at

    def _seen(self, phase: ir.Value) -> Range:
        """The rows and columns of a phase that windows see."""
        rows, columns = self.image.rows, self.image.columns
        height, width = self.row_counts[self._majors], self.inner
        if rows.phases > 1:
            own = self.builder.udiv(phase, I64(columns.phases))
            height = self._shortened(height, rows, own)
        if columns.phases > 1:
            width = self._shortened(width, columns, self.builder.urem(phase, I64(columns.phases)))
        return height, width

    def _shortened(self, count: ir.Value, window: ImageWindow, phase: ir.Value) -> ir.Value:
        last = self.builder.sub(I64(window.extent - 1), phase)
        beyond = self.builder.udiv(last, I64(window.stride))
        return self.builder.add(self.builder.sub(count, I64(window.reach)), beyond)


class WordImageCode(ImageCode, WordPackingCode):
    """An image of narrow integers, of which the channels of a group share words. Its last row loop is that of
    these channels."""

    def _pack_run(
        self,
        run: Pointers,
        part: Range,
        place: Callable[[ir.Value], ir.Value],
        position: ir.Value,
        ahead: int,
    ) -> None:
        rows = [self._moved_channels(run, I64(each)) for each in range(self.packing.group)]
        known = [self.evaluate(Level.ROW, 1, row, self._known) for row in rows]

        def put(index: ir.Value, mask: ir.Value | None) -> None:
            self.code.store(
                place(index), self.joined(self.narrow(rows, known, index, mask)), ScalarType.INT32
            )

        self.code.vector_loop(*part, put)

    def put_differences(
        self, image: ir.Value, taps: ir.Value, words: ir.Value, windows: ir.Value, places: Sequence[ir.Value]
    ) -> None:
        """Of so many windows, and of those between two rows, the sums of the bytes that they see, less what
        is subtracted from these, and what that is of each.

        Args:
            image, taps: where it lies, and the distances of a window's words.
            words: how many these are.
            windows: a multiple of the lanes.
            places: where both go.
        """
        vector = llvm_type(ScalarType.INT32, self.lanes)
        ones = self.builder.bitcast(constant(ScalarType.INT8, 4 * self.lanes, 1), vector)
        subtracted = self.subtracted(1, self._pointers, self._known, None, None)
        count = self.builder.trunc(self.builder.mul(words, I64(self.packing.group)), I32)
        less, each = (
            self.code.broadcast(value) for value in (self.builder.mul(subtracted, count), subtracted)
        )
        with self.code.loop(I64(0), windows, self.lanes) as window:
            start = self._element(image, window)
            total = self.code.local(vector, constant(ScalarType.INT32, self.lanes, 0))
            with self.code.loop(I64(0), words) as word:
                distance = self.builder.load(
                    self.code.offset(taps, self.builder.mul(word, I64(DISTANCE_BYTES))), typ=I64
                )
                bytes = self.code.load(self.code.offset(start, distance), ScalarType.INT32, self.lanes)
                before = self.code.get(total)
                self.code.set(total, dot_bytes(self.builder, before, ones, bytes, self.lanes))
            sums = self.builder.sub(self.code.get(total), less)
            for place, value in zip(places, (sums, each), strict=True):
                self.code.store(self._element(place, window), value, ScalarType.INT32)


class _SeeingCode(ContractionCode):
    """One of the operands consists of windows of an image."""

    def _see(self, packing: Packing, first_parameter: int) -> ImageCode:
        """The code of that operand, and room for its image, which lies in `image_room`."""
        image = self.tiling.image
        if image is None:
            raise TypeError("windows see an image")
        self.seen = self._image_code(packing)(
            self.function, packing, image, self.lanes, self.code, first_parameter
        )
        # A tile may reach beyond the last window, and what is cleared a vector beyond its end.
        self.image_room = self.room(F32, image.room + self.width + self.lanes + GAP)
        self.tap_distances = self.room(ScalarType.INT64, self.tiling.a.depth)
        self.further = [self.tap_distances]
        self._subtracts = packing.type in BYTES
        whole = self.tiling.columns + self.width
        self._differences = [self.room(F32, whole if self._subtracts else 0) for _ in range(2)]
        """Of windows of bytes: the sums of these, less what is subtracted from them, and what that is."""
        return self.seen

    def _image_code(self, packing: Packing) -> type[ImageCode]:
        return WordImageCode if packing.group > 1 else ImageCode

    def _pack_seen(self, windows: Range, block: ir.Value, depth: Range, part: ir.Value) -> ir.Value:
        """What a range of windows, whole rows of them, see of the channels of some products; a block has
        `block` windows. Returns the bytes of a plane."""
        taps = I64(self.seen.image.taps * self.seen.channels)
        first, last = (self.builder.udiv(each, taps) for each in depth)
        rows = self.seen.line(windows[0]), self.seen.line(windows[1])
        plane = self.seen.plane_bytes(self.seen.line(block))
        with self.builder.if_then(self.builder.icmp_signed("==", part, I64(0))):
            self._put_distances(self.builder.sub(last, first), self.seen.group_bytes(plane))
        self.seen.pack_image(self.image_room, (first, last), rows, plane, self.width)
        if isinstance(self.seen, WordImageCode) and self._subtracts:
            self._subtract(
                self.seen, rows, self.builder.mul(self.builder.sub(last, first), I64(self.seen.image.taps))
            )
        return plane

    def _subtract(self, seen: WordImageCode, rows: Range, words: ir.Value) -> None:
        """Prepares what the micro-kernel makes of what is subtracted from bytes. Behind the distances of a
        window's words follow those of both."""
        taps = self.tap_distances
        span = self.builder.mul(self.builder.sub(rows[1], rows[0]), seen.inner)
        tiles = self.b.parts(self.builder.sub(span, I64(seen.image.columns.reach)), self.width)
        windows = self.builder.mul(tiles, I64(self.width))
        seen.put_differences(self.image_room, taps, words, windows, self._differences)
        for number, place in enumerate(self._differences):
            distance = self.builder.sub(
                *(self.builder.ptrtoint(each, I64) for each in (place, self.image_room))
            )
            index = self.builder.add(words, I64(number))
            self.builder.store(distance, self.code.offset(taps, self.builder.mul(index, I64(DISTANCE_BYTES))))

    def _put_distances(self, channels: ir.Value, plane: ir.Value) -> None:
        """How far from where a window begins its elements lie, in the order in which they are multiplied."""
        image = self.seen.image
        with self.code.loop(I64(0), channels) as channel:
            base = self.builder.mul(channel, self.builder.mul(plane, I64(image.phases)))
            first = self.builder.mul(channel, I64(image.taps * DISTANCE_BYTES))
            place = self.code.offset(self.tap_distances, first)
            for number, (phase, row, column) in enumerate(_taps(image)):
                distance = self.builder.add(base, self.builder.mul(plane, I64(phase)))
                distance = self.builder.add(distance, self.builder.mul(self.seen.pitch, I64(row)))
                distance = self.builder.add(distance, I64(column * F32.bytes))
                self.builder.store(distance, self.code.offset(place, I64(number * DISTANCE_BYTES)))


def _taps(image: Image) -> Iterator[tuple[int, int, int]]:
    """Of each element of a window the phase, and how many rows and columns further on it lies there."""
    rows, columns = image.rows, image.columns
    for row, column in product(range(rows.extent), range(columns.extent)):
        (row_phase, down), (column_phase, along) = rows.place(row), columns.place(column)
        yield row_phase * columns.phases + column_phase, down, along


class BroadcastImageCode(_SeeingCode):
    """The elements of the windows are broadcast. An item's rows are whole rows of windows, and of a panel's
    windows each lies beside the one before.

    Panels need not be packed, so each tile of b is multiplied by all of them before the next one: it is
    fetched once, and the next one meanwhile."""

    _lies_in_rows = False

    @property
    def _asks(self) -> bool:
        """Whether the next strip is asked for."""
        return self.tiling.b_ahead

    def _lay_out_rows(self, first_parameter: int) -> tuple[int, None]:
        self.a = self._see(self.tiling.a.packing, first_parameter)
        return F32.bytes, None

    def _parts_of(self, item: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        if not self.tiling.b_ahead:
            return super()._parts_of(item)
        # All images meet the same strips while these are in a core's own cache.
        along, group, across = self.code.split(item, [I64(0), self.groups, self.chunks])
        return group, along, across

    def _begin_part(self, first: ir.Value, last: ir.Value, depth: Range, part: ir.Value) -> None:
        self._rows_of_item = first, last
        self._pack_seen((first, last), self.chunk, depth, part)

    def _multiply_block(
        self, block: tuple[ir.Value, ir.Value], depth: Range, part: ir.Value, columns: Range
    ) -> None:
        first, last = self._rows_of_item
        count, adds = self._products(depth, part)
        tiles = self.b.parts(self.builder.sub(columns[1], columns[0]), self.width)
        panels = self.a.parts(self.builder.sub(last, first), self.tiling.a.rows)
        pitch = I64(self.column_pitch)
        with self.code.loop(I64(0), tiles) as tile:
            b = self.code.offset(block[0], self.builder.mul(tile, block[1]))
            next_strip, step = self._next_strip(b, block[1], tile, tiles, panels)
            with self.code.loop(I64(0), panels) as panel:
                row = self.builder.mul(panel, I64(self.tiling.a.rows))
                at = self.builder.mul(tile, I64(self.width * F32.bytes))
                held = self.code.offset(self._c_row(row), at)
                share = self.builder.mul(panel, self.builder.mul(step, count))
                asked = [self.code.offset(next_strip, share), step] if self._asks else []
                operands = [self._window(row), b, held, held, pitch, count, adds]
                self.builder.call(self.micro, [*operands, *self.further, *asked])

    def _next_strip(
        self, b: ir.Value, strip_bytes: ir.Value, tile: ir.Value, tiles: ir.Value, panels: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        """Where the part of a strip lies that is multiplied next, of this range of products or of the next
        one, and the bytes of it that each product of a panel asks for."""
        part_bytes = self.b.part_bytes(self.elements, Strips(self.tiling.b, self.width, self.tiling.a.depth))
        is_last = self.builder.icmp_signed("==", self.builder.add(tile, I64(1)), tiles)
        below = self.builder.sub(part_bytes, self.builder.mul(tile, strip_bytes))
        distance = self.builder.select(is_last, below, strip_bytes)
        step = self.builder.udiv(I64(self.width * F32.bytes), panels)
        return self.code.offset(b, distance), self.builder.add(step, I64(1))

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
        """All panels are multiplied already."""

    def _panel(
        self, rows: Range, depth: Range, part: ir.Value, parts: ir.Value
    ) -> tuple[ir.Value, list[ir.Value]]:
        return self._window(self.builder.sub(rows[0], self._rows_of_item[0])), []

    def _window(self, number: ir.Value) -> ir.Value:
        """Where a window of the item begins."""
        line, column = self.code.split(number, [I64(0), self.seen.width])
        place = self.seen.rows_from(self.image_room, I64(0))(line)
        return self.code.offset(place, self.builder.mul(column, I64(F32.bytes)))


class ImageContractionCode(_SeeingCode):
    """Neighbouring windows are the lanes of vectors. An item's columns are whole rows of windows."""

    _lies_in_rows = False
    _panel_rows: tuple[Pointers, ir.Value, ir.Value]
    """Where the rows of the panel lie that are computed now, the first of them and the one behind."""

    def _lay_out_vectors(self, first_parameter: int) -> None:
        self.b = self._see(self.tiling.b, first_parameter)

    def _block(
        self, start: ir.Value, stop: ir.Value, depth: Range, part: ir.Value, parts: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        self._pack_seen((start, stop), self.block, depth, part)
        return self.image_room, I64(self.width * F32.bytes)

    def _ask_for_results(
        self, pointers: Pointers, row: ir.Value, behind: ir.Value, start: ir.Value, stop: ir.Value
    ) -> None:
        """Each tile asks for a share, or the first would wait for what all ask for."""
        self._panel_rows = pointers, row, behind

    def _ask_for_share(self, tile: ir.Value, columns: Range) -> None:
        """For as many columns as a tile has: tiles have some more than there are results."""
        first = self.builder.add(columns[0], self.builder.mul(tile, I64(self.width)))
        end = self.code.minimum(self.builder.add(first, I64(self.width)), columns[1])
        _, _, is_last = self._panel_of_results
        with self.builder.if_then(is_last):
            super()._ask_for_results(*self._panel_rows, first, end)

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
        """Emit the products of a block. Windows between two rows are multiplied too, but not stored."""
        count, adds = self._products(depth, part)
        tiles = self._tiles_of(columns)
        with self.code.loop(I64(0), tiles) as tile:
            self._ask_for_share(tile, columns)
            at = self.builder.mul(tile, block[1])
            b, held = self.code.offset(block[0], at), self.code.offset(sums.held, at)
            further = [*self.further, *self._share_of_next(a, tile, tiles)]
            self.builder.call(self.micro, [a, b, held, held, sums.results[1], count, adds, *further])

    def _tiles_of(self, columns: Range) -> ir.Value:
        """Return the tiles of a block, whose windows include those between two of its rows."""
        lines = self.seen.line(self.builder.sub(columns[1], columns[0]))
        between = I64(self.seen.image.columns.reach)
        span = self.builder.sub(self.builder.mul(lines, self.seen.inner), between)
        return self.b.parts(span, self.width)

    def _store_row(
        self, pointers: Pointers, known: Values, totals: ir.Value, columns: Range, first: ir.Value
    ) -> None:
        at = self.seen.rows_from(totals, I64(0))
        with self.code.loop(I64(0), self.seen.line(self.builder.sub(columns[1], columns[0]))) as line:
            start = self.builder.add(columns[0], self.builder.mul(line, self.seen.width))
            stop = self.builder.add(start, self.seen.width)
            super()._store_row(pointers, known, at(line), (start, stop), start)
