"""Contractions in matrix registers (Intel's AMX), of float32 in bfloat16 parts and of 8-bit integers."""

from __future__ import annotations

from opendml.targets.common.pattern import Step
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I32, I64
from opendml.targets.cpu.contraction.amx import Bf16Kernel, configure, emit_copy_windows, release
from opendml.targets.cpu.contraction.amx_int8 import Int8Kernel
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.bf16_parts import OF_FACTORS, PartLayout
from opendml.targets.cpu.contraction.code import ContractionCode
from opendml.targets.cpu.contraction.fma import DISTANCE_BYTES
from opendml.targets.cpu.contraction.image_code import Bf16ImageCode
from opendml.targets.cpu.contraction.packing import Range
from opendml.targets.cpu.contraction.storages import KPart, Panel, Stream, Strided
from opendml.targets.cpu.contraction.tiling import STEP, Instructions, Storage
from opendml.targets.cpu.contraction.windows_code import WindowsB, WindowsCode
from opendml.targets.cpu.loads import Pointers
from opendml.targets.cpu.shared_functions import shared_function


class AmxCode(ContractionCode):
    """Emits a contraction in tiles of matrix registers. Each tile prefetches its results."""

    prefetches_a = prefetches_b = False

    def item(self, item: ir.Value) -> None:
        configure(self.code)
        super().item(item)
        release(self.code)

    def emit_micro_kernel(self) -> None:
        tiling, module = self.tiling, self.function.module
        if tiling.instructions is Instructions.AMX_BF16:
            fetches = tiling.a.storage.is_ahead or tiling.b.storage.is_ahead
            depth = tiling.depth
            form = tiling.micro, depth, self.column_pitch, OF_FACTORS, fetches
            self.micro, scratch_bytes = shared_function(module, "micro", Bf16Kernel, *form)
        else:
            b_row_bytes = self.b.depth_bytes
            assert b_row_bytes is not None
            kernel = Int8Kernel(module, "micro", tiling.micro, tiling.a, self.column_pitch, b_row_bytes)
            self.micro, scratch_bytes = kernel.function, kernel.scratch_bytes
        self.scratch = self.reserve(F32, scratch_bytes // F32.bytes)
        self.arguments = [self.scratch]

    def prefetch_results(self, pointers: Pointers, rows: Range, columns: Range) -> None:
        """Prefetch nothing: each tile prefetches its own, or tiles would wait for all of it."""

    def multiply(self, a: ir.Value, row_bytes: list[ir.Value], block: Strided, panel: Panel) -> None:
        if self.tiling.a.storage is Storage.AHEAD:
            panel_bytes = self.builder.mul(panel.part.count, I64(self.tiling.a.part_bytes(self.lanes)))
            self._next_a = self.code.offset(a, panel_bytes)
        super().multiply(a, row_bytes, block, panel)

    def stream(
        self,
        operands: tuple[ir.Value, ir.Value, ir.Value],
        block: Strided,
        panel: Panel,
        tile: ir.Value,
        tiles: ir.Value,
    ) -> Stream:
        """Return where the results of a tile will be stored: in scratch memory until sums are complete. Then
        the part of A's next micro-panel that is fetched with all tiles, or that of B's next rows that is
        fetched with all micro-panels."""
        tiling, (_, b, c) = self.tiling, operands
        results = self._results_of_tile(self.builder.mul(tile, I64(self.width)), c, panel)
        if tiling.instructions is not Instructions.AMX_BF16:
            return results
        if tiling.a.storage is Storage.AHEAD:
            return [*results, *self.share(self._next_a, tiling.a.part_bytes(self.lanes), tile, tiles)]
        if tiling.b.storage is Storage.AHEAD:
            part_bytes = tiling.b.part_bytes(tiling.depth, self.lanes)
            following = self.code.offset(b, I64(part_bytes))
            return [*results, *self.share(following, part_bytes, panel.number, panel.count)]
        return results

    def _results_of_tile(self, column: ir.Value, c: ir.Value, panel: Panel) -> Stream:
        position, pitch = len(self.pattern.loads), I64(self.column_pitch)
        if self.pattern.rows != 1 or self.accesses[position].step is not Step.CONTIGUOUS:
            return [c, pitch]
        pointers, is_last = panel.pointers[1], panel.part.is_last
        index = self.builder.add(panel.columns[0], column)
        place = self.code.offset(pointers[position], self.builder.mul(index, self.steps[position]))
        row_bytes = self.parameter(self.layout.row_stride(position, 0))
        return [self.builder.select(is_last, *pair) for pair in ((place, c), (row_bytes, pitch))]

    def share(self, part: ir.Value, part_bytes: int, call: ir.Value, calls: ir.Value) -> Stream:
        """Return the share of a part that one of several calls of the micro-kernel fetches: where it lies,
        and its bytes for STEP products. Parts that are packed ahead come from memory, and hardware
        prefetchers do not recognize how they are read."""
        steps = I64(self.tiling.depth // STEP)
        size = self.builder.udiv(I64(part_bytes), self.builder.mul(calls, steps))
        size = self.builder.add(size, I64(1))
        return [self.code.offset(part, self.builder.mul(call, self.builder.mul(size, steps))), size]


class Bf16WindowsB(WindowsB):
    """B, whose columns are windows in bfloat16 parts. STEP channels of the image are packed with the first of
    their parts of k."""

    def lay_out(self, first_parameter: int) -> None:
        super().lay_out(first_parameter)
        self.taps = self.kernel.tiling.depth // STEP
        """The elements of a window in a part."""

    def block(self, columns: Range, part: KPart) -> Strided:
        builder, reader = self.builder, self.reader
        assert isinstance(reader, Bf16ImageCode)
        parts = I64(reader.image.taps // self.taps)
        channels, within = builder.udiv(part.number, parts), builder.urem(part.number, parts)
        rows = reader.line(columns[0]), reader.line(columns[1])
        self.plane = reader.plane_bytes(reader.line(self.kernel.block))
        with builder.if_then(builder.icmp_signed("==", part.number, I64(0))):
            self.image.put_distances(I64(1), reader.group_bytes(self.plane))
        with builder.if_then(builder.icmp_signed("==", within, I64(0))):
            packed = channels, builder.add(channels, I64(1))
            reader.pack_image(self.image.scratch, packed, rows, self.plane, self.width)
        first = builder.mul(within, I64(self.taps * DISTANCE_BYTES))
        self.distances = self.code.offset(self.image.distances, first)
        return Strided(self.image.scratch, I64(self.row_bytes))

    def state(self) -> ir.Value:
        """Return whether the image is in float32."""
        assert isinstance(self.reader, Bf16ImageCode)
        return self.builder.load(self.reader.state, typ=I32)


class AmxWindowsCode(AmxCode, WindowsCode):
    """Emits a contraction in matrix registers whose operand B is windows. The windows of each tile are copied
    into a packed panel, by which all micro-panels of A are multiplied."""

    multiplies_blocks = True

    def windows_storage(self, first_parameter: int) -> WindowsB:
        self.bf16_windows = Bf16WindowsB(self, first_parameter)
        return self.bf16_windows

    def emit_micro_kernel(self) -> None:
        super().emit_micro_kernel()
        tiling = self.tiling
        layout = PartLayout(tiling.micro.vectors, tiling.depth)
        self._copy = emit_copy_windows(self.function.module, "copy_windows", layout, self.bf16_windows.taps)
        panel_bytes = tiling.b.part_bytes(tiling.depth, self.lanes)
        self._panel = self.reserve(F32, panel_bytes // F32.bytes)

    def prefetch_results(self, pointers: Pointers, rows: Range, columns: Range) -> None:
        ContractionCode.prefetch_results(self, pointers, rows, columns)

    def multiply_block(self, b: Strided, rows: Range, columns: Range, part: KPart) -> None:
        builder, code, windows = self.builder, self.code, self.bf16_windows
        first, last = rows
        count, adds = self.products(part)
        panels = self.a.reader.parts(builder.sub(last, first), self.tiling.a.rows)
        pitch = I64(self.column_pitch)
        state = windows.state()
        tiles, part_bytes = windows.tiles(columns), self.tiling.a.part_bytes(self.lanes)
        with code.loop(I64(0), tiles) as tile:
            at = builder.mul(tile, b.step)
            begin = code.offset(b.address, at)
            builder.call(self._copy, [begin, windows.distances, windows.plane, state, self._panel])
            with code.loop(I64(0), panels) as panel:
                row = builder.mul(panel, I64(self.tiling.a.rows))
                a, _ = self.a.panel((builder.add(first, row), last), part)
                c = code.offset(self.c_row(row), at)
                following = code.offset(a, I64(part_bytes))
                share = self.share(following, part_bytes, tile, tiles)
                operands = [a, self._panel, c, c, pitch, count, adds, self.scratch]
                builder.call(self.micro, [*operands, c, pitch, *share])
