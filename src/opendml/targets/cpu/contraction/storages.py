"""Storages of operands: where a block loop finds the panels of A and B, and what of them it prefetches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from opendml.late_dataclass import dataclass
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I32, I64
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.bf16_parts import OF_FACTORS, PartLayout, emit_split_columns
from opendml.targets.cpu.contraction.narrow_code import NarrowCode
from opendml.targets.cpu.contraction.packers import packer_of, packing_code
from opendml.targets.cpu.contraction.packing import PackingCode, Range
from opendml.targets.cpu.contraction.tiling import Instructions, OperandA, OperandB, Storage
from opendml.targets.cpu.loads import Pointers
from opendml.targets.cpu.shared_functions import shared_function

if TYPE_CHECKING:
    from opendml.targets.cpu.contraction.code import ContractionCode

Stream = list[ir.Value]
"""Arguments of a micro-kernel that prefetches: where the stream begins, and its bytes for each product."""

_STREAM_BYTES = 8192
"""Bytes by which a panel that few rows read once is prefetched ahead. With 2 KB, 1x768x3072 takes 1.35 times
as long (Zen 3). 16 and 32 KB took as long."""


class Strided(NamedTuple):
    """The address of the first tile (or row) of several, and the bytes from one to the next."""

    address: ir.Value
    step: ir.Value


@dataclass(frozen=True, slots=True)
class KPart:
    """A part of the products of an item."""

    number: ir.Value
    count: ir.Value
    """The parts of the item."""
    depth: Range
    """The indices of its products along k."""
    is_last: ir.Value


@dataclass(frozen=True, slots=True)
class Panel:
    """A micro-panel of A that is multiplied by a part of a block of B."""

    part: KPart
    number: ir.Value
    count: ir.Value
    """The micro-panels of the block."""
    rows: Range
    columns: Range
    """Those of the block."""
    pointers: tuple[Pointers, Pointers]
    """The addresses of the accesses of the epilogue in the group, and at the first row."""
    c: ir.Value
    """The address of the sums of the parts before, in scratch memory."""
    results: Strided
    """The rows that micro-kernels store into for the columns that are `stored`."""
    stored: ir.Value
    """The columns whose results are stored where they belong at once, without the epilogue."""


class StoredA:
    """A, whose micro-panels each item packs into scratch memory."""

    def __init__(self, kernel: ContractionCode, first_parameter: int) -> None:
        self.kernel, self.builder, self.code = kernel, kernel.builder, kernel.code
        self.operand: OperandA = kernel.tiling.a
        self.lay_out(first_parameter)

    def lay_out(self, first_parameter: int) -> None:
        """Create the code that reads the operand, and take scratch memory."""
        kernel, operand = self.kernel, self.operand
        self.reader: PackingCode = packing_code(self.code, operand, first_parameter)
        is_ahead = operand.storage is Storage.AHEAD
        self.scratch = kernel.reserve(F32, 0 if is_ahead else operand.part_bytes(kernel.lanes) // F32.bytes)
        if not is_ahead:
            self.packer = packer_of(self.reader, kernel)

    @property
    def strides(self) -> tuple[int | None, int | None]:
        """The bytes from one row to the next, and from one product to the next, as micro-kernels know
        them."""
        return self.operand.strides(self.kernel.lanes)

    def split(self, item: ir.Value) -> list[ir.Value]:
        """Return the numbers of an item's group, of its block of columns and of its block of rows."""
        return self.code.split(item, [I64(0), self.kernel.blocks, self.kernel.chunks])

    def begin(self) -> None:
        """Begin with an item, whose group the reader is at."""

    def begin_part(self, rows: Range, part: KPart) -> None:
        """Begin with a part of an item's products."""

    def panel(self, rows: Range, part: KPart) -> tuple[ir.Value, list[ir.Value]]:
        """Return where a part of a micro-panel lies, and the bytes between its rows if micro-kernels take
        them."""
        self.packer.pack(self.scratch, rows, part.depth)
        return self.scratch, []

    def stream(self, a: ir.Value, tile: ir.Value, tiles: ir.Value) -> Stream:
        """Return the share of the next micro-panel that is prefetched with a tile. All at once would delay
        the lines that are needed first."""
        part_bytes, panel_bytes, products = self._stream_sizes()
        step = self.builder.udiv(part_bytes, self.builder.mul(tiles, products))
        step = self.builder.add(step, I64(1))
        before = self.builder.mul(tile, self.builder.mul(step, products))
        return [self.code.offset(a, self.builder.add(panel_bytes, before)), step]

    def _stream_sizes(self) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Return the bytes of a part, those from one micro-panel to the next, and the products of a part."""
        part_bytes = I64(self.operand.part_bytes(self.kernel.lanes))
        parts = self.reader.parts(self.kernel.elements, self.operand.depth)
        return part_bytes, self.builder.mul(parts, part_bytes), I64(self.operand.groups)


class AheadA(StoredA):
    """A, whose micro-panels a launch before packed."""

    def begin(self) -> None:
        self._group = self.code.offset(self.kernel.arena(), self.reader.group_distance())

    def panel(self, rows: Range, part: KPart) -> tuple[ir.Value, list[ir.Value]]:
        number = self.builder.udiv(rows[0], I64(self.operand.rows))
        position = self.builder.add(self.builder.mul(number, part.count), part.number)
        distance = self.builder.mul(position, I64(self.operand.part_bytes(self.kernel.lanes)))
        return self.code.offset(self._group, distance), []


class InPlaceA(StoredA):
    """A, whose whole micro-panels are read where they lie. A last one that is not whole is packed."""

    @property
    def strides(self) -> tuple[int | None, int | None]:
        return None, super().strides[1]

    def panel(self, rows: Range, part: KPart) -> tuple[ir.Value, list[ir.Value]]:
        height = I64(self.operand.rows)
        is_whole = self.builder.icmp_signed("==", self.builder.sub(rows[1], rows[0]), height)
        with self.builder.if_then(self.builder.not_(is_whole)):
            self.packer.pack(self.scratch, rows, part.depth)
        place, row_bytes = self.reader.at(rows[0], part.depth[0])
        packed_bytes, _ = self.operand.strides(self.kernel.lanes)
        return (
            self.builder.select(is_whole, place, self.scratch),
            [self.builder.select(is_whole, row_bytes, I64(packed_bytes))],
        )

    def _stream_sizes(self) -> tuple[ir.Value, ir.Value, ir.Value]:
        _, row_bytes = self.reader.at(I64(0), I64(0))
        part_bytes = self.builder.mul(row_bytes, I64(self.operand.rows))
        return part_bytes, part_bytes, self.kernel.elements


class StoredB:
    """B, of which each item packs its part into scratch memory.

    The part of each tile lies together, unless vectors belong to two tiles.
    """

    def __init__(self, kernel: ContractionCode, first_parameter: int) -> None:
        self.kernel, self.builder, self.code = kernel, kernel.builder, kernel.code
        self.operand: OperandB = kernel.tiling.b
        self.width = kernel.width
        self.row_bytes = self.width * F32.bytes
        self.lay_out(first_parameter)

    def lay_out(self, first_parameter: int) -> None:
        """Create the code that reads the operand, and take scratch memory."""
        kernel = self.kernel
        self.reader: PackingCode = packing_code(self.code, self.operand, first_parameter)
        self._is_tiled = self.operand.packing.along_depth or self.reader.is_in_vectors
        rows = kernel.tiling.a.groups + kernel.lanes
        self.tile_bytes = rows * self.row_bytes if self._is_tiled else self.row_bytes
        if self._is_tiled:
            self.scratch = kernel.reserve(F32, self._scratch_tiles * self.tile_bytes // F32.bytes)
        else:
            self.scratch = kernel.rows_of_results(rows)

    @property
    def _scratch_tiles(self) -> int:
        return self.kernel.tiling.columns // self.width

    @property
    def depth_bytes(self) -> int | None:
        """The bytes from one product to the next, as micro-kernels know them."""
        return self.row_bytes if self._is_tiled else self.kernel.column_pitch

    def begin(self) -> None:
        """Begin with an item, whose group the reader is at."""

    def block(self, columns: Range, part: KPart) -> Strided:
        """Return where the first tile of a part of a block lies."""
        self.reader.pack_b(self._at, self.width, columns, part.depth)
        return Strided(self.scratch, I64(self.tile_bytes))

    def _at(self, row: ir.Value, column: ir.Value) -> ir.Value:
        """Return the place of an element of a packed block."""
        if not self._is_tiled:
            return self.reader.rows_at(self.scratch, self.kernel.column_pitch)(row, column)
        # Short numbers are divided in fewer instructions.
        short = self.builder.trunc(column, I32)
        tile, within = (
            self.builder.zext(each, I64) for each in self.code.split(short, [I32(0), I32(self.width)])
        )
        distance = self.builder.mul(tile, I64(self.tile_bytes))
        place = self.reader.rows_at(self.scratch, self.row_bytes)(row, within)
        return self.code.offset(place, distance)

    def tile(self, b: ir.Value, column: ir.Value, columns: Range) -> tuple[ir.Value, list[ir.Value]]:
        """Return where a tile lies, and the bytes between its rows if micro-kernels take them."""
        return b, []

    def stream(self, block: Strided, b: ir.Value, panel: Panel, tile: ir.Value, tiles: ir.Value) -> Stream:
        """Return what is prefetched with a tile of a micro-panel: elements that are multiplied later."""
        raise NotImplementedError

    def _is_last(self, tile: ir.Value, tiles: ir.Value) -> ir.Value:
        return self.builder.icmp_signed("==", self.builder.add(tile, I64(1)), tiles)


class NarrowB(StoredB):
    """A narrow B. Each item widens its part into scratch memory."""

    def begin(self) -> None:
        self._panels.open(self.kernel.arena(), self.kernel.elements)

    @property
    def _panels(self) -> NarrowCode:
        assert isinstance(self.reader, NarrowCode)
        return self.reader

    def block(self, columns: Range, part: KPart) -> Strided:
        _, self._following = self._panels.places(columns[0], part.depth[1])
        return super().block(columns, part)

    def stream(self, block: Strided, b: ir.Value, panel: Panel, tile: ir.Value, tiles: ir.Value) -> Stream:
        """Return the numbers of the same panel in the next part. Micro-kernels fetch them, because items
        would wait for memory while they widen."""
        distance = self.builder.mul(tile, self._panels.panel_bytes)
        place = self.code.offset(self._following, distance)
        return [place, I64(self._panels.narrow.row_bytes(self.width))]


class NarrowStreamedB(StoredB):
    """A narrow B whose packed numbers micro-kernels read. Without digits, an item reads one panel from its
    beginning to its end."""

    @property
    def depth_bytes(self) -> int | None:
        return self.panels.narrow.row_bytes(self.width)

    def lay_out(self, first_parameter: int) -> None:
        reader = packing_code(self.code, self.operand, first_parameter)
        assert isinstance(reader, NarrowCode)
        self.reader = self.panels = reader

    def begin(self) -> None:
        self.panels.open(self.kernel.arena(), self.kernel.elements)

    def block(self, columns: Range, part: KPart) -> Strided:
        self._parameters, numbers = self.panels.places(columns[0], part.depth[0])
        return Strided(numbers, self.panels.panel_bytes)

    def tile(self, b: ir.Value, column: ir.Value, columns: Range) -> tuple[ir.Value, list[ir.Value]]:
        return b, [self._parameters_of(self.builder.udiv(column, I64(self.width)))]

    def stream(self, block: Strided, b: ir.Value, panel: Panel, tile: ir.Value, tiles: ir.Value) -> Stream:
        """Return the numbers and parameters of the same panel in the next part. Behind the last part they are
        those of the panel that the next item begins with."""
        builder, narrow, part = self.builder, self.panels.narrow, panel.part
        first, last = part.depth
        to_next_part, to_first_part = builder.sub(last, first), builder.neg(first)
        to_next_item = builder.mul(tiles, self.panels.panel_bytes)
        rows = builder.select(part.is_last, to_first_part, to_next_part)
        panels = builder.select(part.is_last, to_next_item, I64(0))
        block_bytes = narrow.parameter_bytes(self.width)
        result = []
        for place, bytes in (
            (b, builder.mul(rows, I64(narrow.row_bytes(self.width)))),
            (self._parameters_of(tile), builder.mul(builder.sdiv(rows, I64(narrow.block)), I64(block_bytes))),
        ):
            result.append(self.code.offset(place, builder.add(bytes, panels)))
        return result

    def _parameters_of(self, tile: ir.Value) -> ir.Value:
        return self.code.offset(self._parameters, self.builder.mul(tile, self.panels.panel_bytes))


class Bf16B(StoredB):
    """B, of which each item packs its part in bfloat16 parts."""

    depth_bytes = None

    def lay_out(self, first_parameter: int) -> None:
        kernel = self.kernel
        self.reader = packing_code(self.code, self.operand, first_parameter)
        self.tile_bytes = self.operand.part_bytes(self.operand.depth, kernel.lanes)
        self.scratch = kernel.reserve(F32, self._scratch_tiles * self.tile_bytes // F32.bytes)
        if not self.operand.storage.is_ahead:
            self._packer = packer_of(self.reader, kernel)

    def block(self, columns: Range, part: KPart) -> Strided:
        start, stop = columns
        width = I64(self.width)
        tiles = self.reader.parts(self.builder.sub(stop, start), self.width)
        with self.code.loop(I64(0), tiles) as tile:
            first = self.builder.add(start, self.builder.mul(tile, width))
            last = self.code.minimum(self.builder.add(first, width), stop)
            place = self.code.offset(self.scratch, self.builder.mul(tile, I64(self.tile_bytes)))
            self._packer.pack(place, (first, last), part.depth)
        return Strided(self.scratch, I64(self.tile_bytes))


class AheadB(StoredB):
    """B, whose panels a launch before packed. STREAMED, its parts are those for many rows, and few rows read
    a share of each at a time."""

    @property
    def _scratch_tiles(self) -> int:
        return 0

    def begin(self) -> None:
        self._group = self.code.offset(self.kernel.arena(), self.reader.group_distance())

    def block(self, columns: Range, part: KPart) -> Strided:
        part_bytes = self.reader.part_bytes(self.kernel.elements)
        number, within = self.builder.udiv(columns[0], I64(self.width)), I64(0)
        part_number, parts = part.number, part.count
        if self.operand.storage in (Storage.STREAMED, Storage.PANELS):
            depth = I64(self.operand.depth)
            parts = self.reader.parts(self.kernel.elements, self.operand.depth)
            part_number, row = (
                divide(part.depth[0], depth) for divide in (self.builder.udiv, self.builder.urem)
            )
            within = self.builder.mul(row, I64(self.row_bytes))
        position = self.builder.add(self.builder.mul(number, parts), part_number)
        distance = self.builder.add(self.builder.mul(position, part_bytes), within)
        return Strided(self.code.offset(self._group, distance), self.builder.mul(parts, part_bytes))

    def stream(self, block: Strided, b: ir.Value, panel: Panel, tile: ir.Value, tiles: ir.Value) -> Stream:
        """Return the rows that few rows of A read soon, or a share of the part that is multiplied next.

        Micro-panels share the prefetching of that part. If the first of them met tiles that lie in memory, it
        would wait: its products take a third of the time in which a core reads them there.
        """
        if self.operand.storage is Storage.STREAMED:
            below = self.code.offset(block.address, I64(_STREAM_BYTES))
            beside = self.code.offset(b, block.step)
            return [self.builder.select(self._is_last(tile, tiles), below, beside), I64(self.row_bytes)]
        step = self.builder.add(self.builder.udiv(I64(self.row_bytes), panel.count), I64(1))
        share = self.builder.mul(step, I64(self.kernel.tiling.a.groups))
        before = self.builder.mul(panel.number, share)
        part_bytes = self.reader.part_bytes(self.kernel.elements)
        # Behind the last part, it is the first one of the next block.
        parts_before = self.builder.sub(part_bytes, block.step)
        beyond = self.builder.add(self.builder.mul(tiles, block.step), parts_before)
        following = self.builder.select(panel.part.is_last, beyond, part_bytes)
        return [self.code.offset(b, self.builder.add(following, before)), step]


class NarrowBf16B(NarrowB, Bf16B):
    """A narrow B. Each item widens its part, and packs it in bfloat16 parts."""


class AheadBf16B(AheadB, Bf16B):
    """B, whose panels a launch before packed in bfloat16 parts."""


class PanelsBf16B(AheadB, Bf16B):
    """B, whose panels a launch before packed for vectors, into a buffer of its own. Each item splits its part
    into bfloat16 parts."""

    def lay_out(self, first_parameter: int) -> None:
        kernel, lanes = self.kernel, self.kernel.lanes
        panels = replace(self.operand, instructions=Instructions.FMA)
        self.reader = packing_code(self.code, panels, first_parameter)
        depth = kernel.tiling.depth
        self.tile_bytes = self.operand.part_bytes(depth, lanes)
        self.scratch = kernel.reserve(F32, kernel.tiling.columns // self.width * self.tile_bytes // F32.bytes)
        layout = PartLayout(self.width // lanes, depth, OF_FACTORS)
        self._split, _ = shared_function(kernel.function.module, "split_columns", emit_split_columns, layout)

    def begin(self) -> None:
        buffer = self.reader.buffer(self.reader.parameter(self.reader.layout.buffer(0)))
        self._group = self.code.offset(buffer, self.reader.group_distance())

    def block(self, columns: Range, part: KPart) -> Strided:
        builder, code, panels = self.builder, self.code, super().block(columns, part)
        tiles = self.reader.parts(builder.sub(columns[1], columns[0]), self.width)
        depth = builder.sub(part.depth[1], part.depth[0])
        with code.loop(I64(0), tiles) as tile:
            source = code.offset(panels.address, builder.mul(tile, panels.step))
            place = code.offset(self.scratch, builder.mul(tile, I64(self.tile_bytes)))
            builder.call(self._split, [source, I64(self.row_bytes), place, depth])
        return Strided(self.scratch, I64(self.tile_bytes))


class InPlaceB(StoredB):
    """B, whose whole tiles are read where they lie. A last one that is not whole is packed."""

    @property
    def _scratch_tiles(self) -> int:
        return 1

    def block(self, columns: Range, part: KPart) -> Strided:
        start, stop = columns
        count = self.builder.sub(stop, start)
        behind = self.builder.sub(stop, self.builder.urem(count, I64(self.width)))
        with self.builder.if_then(self.builder.icmp_signed("<", behind, stop)):
            at = self.reader.rows_at(self.scratch, self.row_bytes)
            self.reader.pack_b(at, self.width, (behind, stop), part.depth)
        place, self._row_bytes = self.reader.at(part.depth[0], start)
        return Strided(place, I64(self.row_bytes))

    def tile(self, b: ir.Value, column: ir.Value, columns: Range) -> tuple[ir.Value, list[ir.Value]]:
        end = self.builder.add(column, I64(self.width))
        fits = self.builder.icmp_signed("<=", end, self.builder.sub(columns[1], columns[0]))
        place = self.builder.select(fits, b, self.scratch)
        return place, [self.builder.select(fits, self._row_bytes, I64(self.row_bytes))]

    def stream(self, block: Strided, b: ir.Value, panel: Panel, tile: ir.Value, tiles: ir.Value) -> Stream:
        width = I64(self.row_bytes)
        is_last = self._is_last(tile, tiles)
        first, last = panel.part.depth
        part_bytes = self.builder.mul(self.builder.sub(last, first), self._row_bytes)
        below = self.builder.sub(part_bytes, self.builder.mul(tile, width))
        return [self.code.offset(b, self.builder.select(is_last, below, width)), self._row_bytes]


class AlongDepthB(StoredB):
    """B, whose vectors along k are read where they lie."""

    depth_bytes = None

    def lay_out(self, first_parameter: int) -> None:
        self.reader = packing_code(self.code, self.operand, first_parameter)

    def block(self, columns: Range, part: KPart) -> Strided:
        return Strided(columns[0], I64(0))


A_STORAGES: dict[Storage, type[StoredA]] = {
    Storage.PACKED: StoredA,
    Storage.AHEAD: AheadA,
    Storage.IN_PLACE: InPlaceA,
}
B_STORAGES: dict[Storage, type[StoredB]] = {
    Storage.PACKED: StoredB,
    Storage.AHEAD: AheadB,
    Storage.STREAMED: AheadB,
    Storage.NARROW: NarrowB,
    Storage.NARROW_STREAMED: NarrowStreamedB,
    Storage.IN_PLACE: InPlaceB,
}
BF16_STORAGES: dict[Storage, type[StoredB]] = {
    Storage.PACKED: Bf16B,
    Storage.AHEAD: AheadBf16B,
    Storage.NARROW: NarrowBf16B,
    Storage.PANELS: PanelsBf16B,
}


def b_storage(operand: OperandB) -> type[StoredB]:
    """Return the class of B's storage."""
    if operand.instructions is Instructions.DOTS:
        return AlongDepthB
    return (BF16_STORAGES if operand.instructions is Instructions.AMX_BF16 else B_STORAGES)[operand.storage]
