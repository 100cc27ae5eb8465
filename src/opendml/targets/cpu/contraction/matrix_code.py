"""Sums of products in matrix registers: parts of panels and strips are packed as these take them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from opendml.program.scalar_type import ScalarType
from opendml.targets.common.pattern import Level, Step
from opendml.targets.cpu.code import I32, I64, Code
from opendml.targets.cpu.contraction.code import ContractionCode, Sums
from opendml.targets.cpu.contraction.image_code import ImageCode, ImageContractionCode
from opendml.targets.cpu.contraction.matrix_micro import (
    MatrixMicroKernel,
    configure,
    emit_window_strip,
    release,
)
from opendml.targets.cpu.contraction.matrix_words import WordMatrixMicroKernel, emit_turn
from opendml.targets.cpu.contraction.micro import DISTANCE_BYTES, Strides
from opendml.targets.cpu.contraction.packing import F32, PackingCode, PanelCode, Range, StripCode
from opendml.targets.cpu.contraction.patterns import (
    PIECES,
    REGISTER_ROWS,
    STEP,
    Image,
    Packing,
    Panels,
    odd_lines,
    pieces_bytes,
)
from opendml.targets.cpu.contraction.pieces import (
    OF_FACTORS,
    Magnitudes,
    PartLayout,
    Splitter,
    emit_split_columns,
    emit_split_rows,
)
from opendml.targets.cpu.contraction.words import WordPackingCode, packing_code
from opendml.targets.cpu.loads import Pointers
from opendml.targets.cpu.pattern import CpuPattern
from opendml.targets.cpu.values import number as constant

Room = Callable[[ScalarType, int], ir.Value]


class PanelParts:
    """Packs parts of panels: rows that lie along k in memory where they lie, others by way of a room."""

    def __init__(
        self, packing: PackingCode, panels: Panels, room: Room, magnitudes: Magnitudes = OF_FACTORS
    ) -> None:
        self._packing, self._code = packing, packing.code
        layout = PartLayout(panels.rows // REGISTER_ROWS, panels.depth, magnitudes)
        self._split = emit_split_rows(packing.function.module, "split_rows", layout)
        self._is_plain = packing.packing.is_plain and packing.packing.along_depth
        self._pitch = odd_lines(panels.depth + packing.lanes)
        rows = panels.rows + packing.lanes
        self._room = room(F32, 0 if self._is_plain else rows * self._pitch // F32.bytes)

    def pack(self, part: ir.Value, rows: Range, depth: Range) -> None:
        builder = self._packing.builder
        place, pitch = self._room, I64(self._pitch)
        if self._is_plain:
            place, pitch = self._packing.lies_at(rows[0], depth[0])
        else:
            self._packing.put_rows(self._packing.rows_at(place, self._pitch), rows, depth)
        counts = [builder.sub(last, first) for first, last in (rows, depth)]
        builder.call(self._split, [place, pitch, part, *counts])


class StripParts:
    """Packs parts of strips: whole ones of matrices where they lie, others by way of a room."""

    def __init__(
        self,
        packing: PackingCode,
        width: int,
        depth: int,
        room: Room,
        magnitudes: Magnitudes = OF_FACTORS,
        name: str = "split_columns",
    ) -> None:
        self._packing, self._width = packing, width
        layout = PartLayout(width // packing.lanes, depth, magnitudes)
        self._split = emit_split_columns(packing.function.module, name, layout)
        self._is_plain = packing.packing.is_plain and not packing.packing.along_depth
        self._pitch = odd_lines(width + packing.lanes)
        self._room = room(F32, (depth + packing.lanes) * self._pitch // F32.bytes)

    def pack(self, part: ir.Value, depth: Range, columns: Range) -> None:
        builder, packing = self._packing.builder, self._packing
        place, pitch = self._room, I64(self._pitch)
        count = builder.sub(columns[1], columns[0])
        lacks = builder.icmp_signed("<", count, I64(self._width if self._is_plain else 2**62))
        with builder.if_then(lacks):
            packing.pack_tiles(packing.rows_at(place, self._pitch), self._width, depth, columns)
        if self._is_plain:
            there, row_bytes = packing.lies_at(depth[0], columns[0])
            place, pitch = (builder.select(lacks, *pair) for pair in ((place, there), (pitch, row_bytes)))
        builder.call(self._split, [place, pitch, part, builder.sub(depth[1], depth[0])])


class _TurnedPanelParts:
    """Packs parts of panels of words: as for vectors, by way of a room."""

    def __init__(self, packing: PackingCode, panels: Panels, room: Room) -> None:
        self._packing, self._pitch = packing, panels.rows * F32.bytes
        self._turn = emit_turn(packing.function.module, "turn", panels)
        self._room = room(F32, (panels.words + 2 + packing.lanes) * panels.rows)

    def pack(self, part: ir.Value, rows: Range, depth: Range) -> None:
        builder, packing = self._packing.builder, self._packing
        packing.put_down(packing.rows_at(self._room, self._pitch), rows, depth)
        words = packing.parts(builder.sub(depth[1], depth[0]), packing.packing.group)
        builder.call(self._turn, [self._room, part, words])


def _panel_parts(packing: PackingCode, panels: Panels, room: Room) -> PanelParts | _TurnedPanelParts:
    return (_TurnedPanelParts if panels.turned else PanelParts)(packing, panels, room)


class MatrixPanelCode(PanelCode):
    """Packs all panels of an operand in pieces."""

    def __init__(self, function: ir.Function, pattern: CpuPattern, lanes: int) -> None:
        super().__init__(function, pattern, lanes)
        self._parts = _panel_parts(self, self._panels, self.room)

    def pack_panel(self, place: ir.Value, panels: Panels, rows: Range, depth: Range) -> None:
        self._parts.pack(place, rows, depth)


class WordMatrixPanelCode(MatrixPanelCode, WordPackingCode):
    """The same of words."""


class MatrixStripCode(StripCode):
    """Packs all strips of an operand in pieces."""

    def __init__(self, function: ir.Function, pattern: CpuPattern, lanes: int) -> None:
        super().__init__(function, pattern, lanes)
        self._parts = StripParts(self, self._strips.width, self._strips.depth, self.room)

    def pack_part(self, place: ir.Value, depth: Range, columns: Range) -> None:
        self._parts.pack(place, depth, columns)


class _InMatrixRegisters(ContractionCode):
    """A tile of results is one of matrix registers."""

    _asks = _asks_for_tiles = False

    def item(self, item: ir.Value) -> None:
        configure(self.code)
        super().item(item)
        release(self.code)

    def _lay_out_rows(self, first_parameter: int) -> tuple[int, int | None]:
        result = super()._lay_out_rows(first_parameter)
        if not self.tiling.ahead:
            self._panel_parts = _panel_parts(self.a, self.tiling.a, self.room)
        return result

    def _use(self, kernel: MatrixMicroKernel | WordMatrixMicroKernel) -> None:
        self.micro, self._scratch = kernel.function, self.room(F32, kernel.scratch_bytes // F32.bytes)

    def _of_pieces(self) -> MatrixMicroKernel:
        tiling, module = self.tiling, self.function.module
        fetches = tiling.ahead or tiling.b_ahead
        return MatrixMicroKernel(
            module, "micro", tiling.micro, tiling.a.depth, self.column_pitch, fetches=fetches
        )

    def _share(self, part: ir.Value, part_bytes: int, call: ir.Value, calls: ir.Value) -> list[ir.Value]:
        """Return the share of a part that one of several calls of the micro-kernel fetches: where it lies,
        and its bytes for STEP products. Parts that are packed ahead come from memory, and
        hardware prefetchers do not recognize how they are read."""
        steps = I64(self.tiling.a.depth // STEP)
        size = self.builder.udiv(I64(part_bytes), self.builder.mul(calls, steps))
        size = self.builder.add(size, I64(1))
        return [self.code.offset(part, self.builder.mul(call, self.builder.mul(size, steps))), size]

    def _panel(
        self, rows: Range, depth: Range, part: ir.Value, parts: ir.Value
    ) -> tuple[ir.Value, list[ir.Value]]:
        if self.tiling.ahead:
            return super()._panel(rows, depth, part, parts)
        self._panel_parts.pack(self.a_room, rows, depth)
        return self.a_room, []


class _OfMatrices(_InMatrixRegisters):
    """Both operands are matrices; each tile asks for its results."""

    def _ask_for_results(
        self, pointers: Pointers, row: ir.Value, behind: ir.Value, start: ir.Value, stop: ir.Value
    ) -> None:
        """Each tile asks for its own, or tiles would wait for what all ask for."""

    def _ask_for_tile(self, column: ir.Value, held: ir.Value) -> list[ir.Value]:
        """In the room as long as sums are not complete."""
        position, pitch = len(self.pattern.loads), I64(self.column_pitch)
        if self.pattern.rows != 1 or self.accesses[position].step is not Step.CONTIGUOUS:
            return [held, pitch]
        pointers, start, is_last = self._panel_of_results
        index = self.builder.add(start, column)
        place = self.code.offset(pointers[position], self.builder.mul(index, self.steps[position]))
        row_bytes = self.parameter(self.layout.row_stride(position, 0))
        return [self.builder.select(is_last, *pair) for pair in ((place, held), (row_bytes, pitch))]


class MatrixCode(_OfMatrices):
    """Of numbers in pieces."""

    def _lay_out_vectors(self, first_parameter: int) -> int | None:
        tiling = self.tiling
        self.b = packing_code(self.function, tiling.b, self.lanes, self.code, first_parameter)
        self.in_tiles, self.tile_bytes = True, pieces_bytes(self.width, tiling.a.depth)
        tiles = 0 if tiling.b_ahead else tiling.columns // self.width
        self.b_room = self.room(F32, tiles * self.tile_bytes // F32.bytes)
        if not tiling.b_ahead:
            self._strip_parts = StripParts(self.b, self.width, tiling.a.depth, self.room)
        return None

    def _emit_micro_kernel(self, strides: Strides) -> None:
        self._use(self._of_pieces())
        self.further = [self._scratch]

    def _panel(
        self, rows: Range, depth: Range, part: ir.Value, parts: ir.Value
    ) -> tuple[ir.Value, list[ir.Value]]:
        panel, row_bytes = super()._panel(rows, depth, part, parts)
        if self.tiling.ahead:
            panel_bytes = self.builder.mul(parts, I64(self.tiling.a.part_bytes(self.lanes)))
            self._next_of_a = self.code.offset(panel, panel_bytes)
        return panel, row_bytes

    def _ask_for_tile(self, column: ir.Value, held: ir.Value) -> list[ir.Value]:
        """Fetch the part of the next panel with all tiles, or that of b's next rows with all panels."""
        builder, asked = self.builder, super()._ask_for_tile(column, held)
        panel, panels, _, (start, stop) = self._place_in_block
        tile = builder.udiv(column, I64(self.width))
        if self.tiling.ahead:
            tiles = self.b.parts(builder.sub(stop, start), self.width)
            return [*asked, *self._share(self._next_of_a, self.tiling.a.part_bytes(self.lanes), tile, tiles)]
        if self.tiling.b_ahead:
            place, strip_bytes = self._ahead
            part = self.code.offset(place, builder.mul(tile, strip_bytes))
            following = self.code.offset(part, I64(self.tile_bytes))
            return [*asked, *self._share(following, self.tile_bytes, panel, panels)]
        return asked

    def _block(
        self, start: ir.Value, stop: ir.Value, depth: Range, part: ir.Value, parts: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        if self.tiling.b_ahead:
            self._ahead = super()._block(start, stop, depth, part, parts)
            return self._ahead
        width = I64(self.width)
        with self.code.loop(I64(0), self.b.parts(self.builder.sub(stop, start), self.width)) as tile:
            first = self.builder.add(start, self.builder.mul(tile, width))
            last = self.code.minimum(self.builder.add(first, width), stop)
            place = self.code.offset(self.b_room, self.builder.mul(tile, I64(self.tile_bytes)))
            self._strip_parts.pack(place, depth, (first, last))
        return self.b_room, I64(self.tile_bytes)


class WordMatrixCode(_OfMatrices):
    """Of 8-bit integers, of which those of b are packed as for vectors."""

    def _emit_micro_kernel(self, strides: Strides) -> None:
        if strides.b_depth is None:
            raise TypeError("a matrix has rows")
        tiling, module = self.tiling, self.function.module
        self._use(
            WordMatrixMicroKernel(module, "micro", tiling.micro, tiling.a, self.column_pitch, strides.b_depth)
        )
        self.further = [self._scratch]


class PieceImageCode(ImageCode):
    """An image in pieces: of STEP channels the words of each pair, piece by piece. Its last row loop is that
    of these channels."""

    def __init__(
        self,
        function: ir.Function,
        packing: Packing,
        image: Image,
        lanes: int,
        code: Code,
        first_parameter: int,
    ) -> None:
        super().__init__(function, packing, image, lanes, code, first_parameter)
        self._splitter = Splitter(code)
        self.state = code.local(I32)
        """Whether the image that was packed last is in FLOAT32."""

    @property
    def channels(self) -> int:
        return STEP

    def group_bytes(self, plane: ir.Value) -> ir.Value:
        return self.builder.mul(plane, I64(PIECES * REGISTER_ROWS))

    def pack_image(self, place: ir.Value, channels: Range, rows: Range, plane: ir.Value, behind: int) -> None:
        self._splitter.begin()
        pieces = [self.builder.mul(plane, I64(piece * REGISTER_ROWS)) for piece in range(PIECES)]
        with self.code.loop(I64(0), I64(REGISTER_ROWS)) as pair:
            self._pack_channels(place, channels, rows, plane, (pair, pair), pieces)
        phases = self.builder.mul(self.builder.sub(channels[1], channels[0]), I64(self.image.phases))
        self.clear(self.code.offset(place, self.builder.mul(phases, self.group_bytes(plane))), I64(behind))
        with (
            self.builder.if_then(self._splitter.judged(self.state)),
            self.code.loop(I64(0), I64(REGISTER_ROWS)) as pair,
        ):
            first = self.builder.mul(pair, I64(2))
            self._pack_channels(place, channels, rows, plane, (pair, first), [I64(0), plane])

    def _pack_channels(
        self,
        place: ir.Value,
        channels: Range,
        rows: Range,
        plane: ir.Value,
        numbers: tuple[ir.Value, ir.Value],
        distances: Sequence[ir.Value],
    ) -> None:
        """Of each group the two channels of one pair, into the planes from one on: in pieces, or as FLOAT32
        if these are two. `numbers`: those of the pair and of the plane."""
        self._distances = distances
        pair, first = numbers
        origin = self._moved_channels(self._pointers, self.builder.mul(pair, I64(2)))
        start = self.code.offset(place, self.builder.mul(first, plane))
        self._pack_planes(origin, start, channels, rows, plane, distances)

    def _pack_run(
        self,
        run: Pointers,
        part: Range,
        place: Callable[[ir.Value], ir.Value],
        position: ir.Value,
        ahead: int,
    ) -> None:
        rows = [run, self._moved_channels(run, I64(1))]
        known = [self.evaluate(Level.ROW, 1, row, self._known) for row in rows]

        def put(index: ir.Value, mask: ir.Value | None) -> None:
            vectors = [self._vector(*pair, index, mask) for pair in zip(rows, known, strict=True)]
            if mask is not None:
                zero = constant(F32, self.lanes, 0.0)
                vectors = [self.builder.select(mask, each, zero) for each in vectors]
            parts = vectors
            if len(self._distances) == PIECES:
                parts = self._splitter.words(*map(self._splitter.taken_apart, vectors))
            type = F32 if parts is vectors else ScalarType.INT32
            for distance, value in zip(self._distances, parts, strict=True):
                self.code.store(self.code.offset(place(index), distance), value, type, mask)

        self.code.vector_loop(*part, put)


class MatrixImageCode(_InMatrixRegisters, ImageContractionCode):
    """Products in matrix registers whose second operand is windows of an image. STEP channels of the image
    are packed at once. The windows of each tile are copied into a strip, by which all panels are
    multiplied."""

    def _image_code(self, packing: Packing) -> type[ImageCode]:
        return PieceImageCode

    def _emit_micro_kernel(self, strides: Strides) -> None:
        tiling, module = self.tiling, self.function.module
        if not isinstance(self.seen, PieceImageCode):
            raise TypeError("the image is in pieces")
        self._state = self.seen.state
        self._use(self._of_pieces())
        layout = PartLayout(tiling.micro.vectors, tiling.a.depth)
        self._part_taps = tiling.a.depth // STEP
        self._copy = emit_window_strip(module, "copy_windows", layout, self._part_taps)
        self._strip = self.room(F32, pieces_bytes(self.width, tiling.a.depth) // F32.bytes)

    def _begin_part(self, first: ir.Value, last: ir.Value, depth: Range, part: ir.Value) -> None:
        self._rows_of_item = first, last

    def _ask_for_results(
        self, pointers: Pointers, row: ir.Value, behind: ir.Value, start: ir.Value, stop: ir.Value
    ) -> None:
        ContractionCode._ask_for_results(self, pointers, row, behind, start, stop)

    def _pack_seen(self, windows: Range, block: ir.Value, depth: Range, part: ir.Value) -> ir.Value:
        """Pack the image of STEP channels with the first of their parts."""
        builder, seen = self.builder, self.seen
        parts = I64(seen.image.taps // self._part_taps)
        channels, within = builder.udiv(part, parts), builder.urem(part, parts)
        rows = seen.line(windows[0]), seen.line(windows[1])
        self._plane = seen.plane_bytes(seen.line(block))
        with builder.if_then(builder.icmp_signed("==", part, I64(0))):
            self._put_distances(I64(1), seen.group_bytes(self._plane))
        with builder.if_then(builder.icmp_signed("==", within, I64(0))):
            packed = channels, builder.add(channels, I64(1))
            seen.pack_image(self.image_room, packed, rows, self._plane, self.width)
        first = builder.mul(within, I64(self._part_taps * DISTANCE_BYTES))
        self._distances = self.code.offset(self.tap_distances, first)
        return self._plane

    def _multiply_block(
        self, block: tuple[ir.Value, ir.Value], depth: Range, part: ir.Value, columns: Range
    ) -> None:
        builder, code = self.builder, self.code
        first, last = self._rows_of_item
        count, adds = self._products(depth, part)
        parts = self.a.parts(self.elements, self.tiling.a.depth)
        panels = self.a.parts(builder.sub(last, first), self.tiling.a.rows)
        pitch = I64(self.column_pitch)
        state = builder.load(self._state, typ=I32)
        tiles, part_bytes = self._tiles_of(columns), self.tiling.a.part_bytes(self.lanes)
        with code.loop(I64(0), tiles) as tile:
            at = builder.mul(tile, block[1])
            windows = code.offset(block[0], at)
            builder.call(self._copy, [windows, self._distances, self._plane, state, self._strip])
            with code.loop(I64(0), panels) as panel:
                row = builder.mul(panel, I64(self.tiling.a.rows))
                rows = builder.add(first, row), last
                a, _ = self._panel(rows, depth, part, parts)
                held = code.offset(self._c_row(row), at)
                following = code.offset(a, I64(part_bytes))
                share = self._share(following, part_bytes, tile, tiles)
                operands = [a, self._strip, held, held, pitch, count, adds, self._scratch]
                builder.call(self.micro, [*operands, held, pitch, *share])

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
        """Emit nothing: all panels are multiplied already."""
