"""Code that packs the image of an operand of windows, once for all windows that see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opendml.program.scalar_type import ScalarType
from opendml.targets.common.pattern import Level
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I32, I64, Code
from opendml.targets.cpu.contraction.arithmetic import F32, dot_bytes
from opendml.targets.cpu.contraction.bf16_parts import Splitter
from opendml.targets.cpu.contraction.fma import DISTANCE_BYTES
from opendml.targets.cpu.contraction.integer_packing import IntegerPackingCode
from opendml.targets.cpu.contraction.packing import PackingCode, Range
from opendml.targets.cpu.contraction.tiling import (
    BF16_PARTS,
    REGISTER_ROWS,
    STEP,
    Image,
    ImageWindow,
    Instructions,
    OperandA,
    OperandB,
)
from opendml.targets.cpu.loads import Pointers
from opendml.targets.cpu.pattern import LINE
from opendml.targets.cpu.values import llvm_type
from opendml.targets.cpu.values import number as constant


class ImageCode(PackingCode):
    """Packs an image of float32.

    Its row loops are those of channels, of phases if there are several, and of rows. Its innermost loop is
    that of columns.
    """

    def __init__(self, code: Code, operand: OperandA | OperandB, image: Image, first_parameter: int) -> None:
        super().__init__(code, operand, first_parameter)
        self.image = image
        self.pitch = self.builder.mul(self.inner, I64(F32.bytes))
        self.width = self.builder.sub(self.inner, I64(image.columns.reach))
        """Windows beside each other."""

    @property
    def channels(self) -> int:
        """The channels that are packed together."""
        return self.operand.packing.group

    def group_bytes(self, plane: ir.Value) -> ir.Value:
        """Return the bytes from one group's phase to the next."""
        return plane

    def line(self, window: ir.Value) -> ir.Value:
        """Return the row of windows to which one belongs."""
        return self.builder.udiv(window, self.width)

    def plane_bytes(self, rows: ir.Value) -> ir.Value:
        """Return the bytes from one phase of one channel to the next, if windows begin in `rows` rows. It is
        an odd number of cache lines, so that phases lie in different sets of a cache."""
        count = self.builder.add(rows, I64(self.image.rows.reach))
        lines = self.builder.udiv(
            self.builder.add(self.builder.mul(count, self.pitch), I64(LINE - 1)), I64(LINE)
        )
        return self.builder.mul(self.builder.or_(lines, I64(1)), I64(LINE))

    def pack_image(self, place: ir.Value, channels: Range, rows: Range, plane: ir.Value, behind: int) -> None:
        """Pack what the windows that begin in a range of rows see of some channels; `behind` elements follow.

        What no window sees is multiplied too, but not stored. It is zero if nothing else is, because denormal
        numbers that may be left there would take long.
        """
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
        """Pack the planes of some channels; at `origin` the accesses are at the first. `distances` are those
        of the planes that are stored together."""
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
                self._clear_bytes(self.code.offset(at(stop), distance), rest)

    def _moved_channels(self, pointers: Pointers, count: ir.Value) -> Pointers:
        """Return where the accesses are `count` channels further on in each group. Counters do not count
        these, so guards are computed once."""
        moved = list(pointers)
        for position, access in enumerate(self.accesses):
            if not access.counter:
                step = self.parameter(self.layout.row_stride(position, self._majors + 1))
                moved[position] = self.code.offset(pointers[position], self.builder.mul(count, step))
        return moved

    def _clear_bytes(self, place: ir.Value, size: ir.Value) -> None:
        """Store zeros in `size` bytes, and in none behind them."""
        zero = constant(F32, self.lanes, 0.0)

        def put(index: ir.Value, mask: ir.Value | None) -> None:
            self.code.store(self._element(place, index), zero, F32, mask)

        self.code.vector_loop(I64(0), self.builder.udiv(size, I64(F32.bytes)), put)

    def rows_from(self, place: ir.Value, first: ir.Value) -> Callable[[ir.Value], ir.Value]:
        """Return the places of rows, the first of which lies at a place."""

        def at(row: ir.Value) -> ir.Value:
            return self.code.offset(place, self.builder.mul(self.builder.sub(row, first), self.pitch))

        return at

    def _seen(self, phase: ir.Value) -> Range:
        """Return the rows and columns of a phase that windows see."""
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


class IntegerImageCode(ImageCode, IntegerPackingCode):
    """Packs an image of narrow integers. Channels form groups; the last row loop is that of a group's
    channels."""

    def _pack_run(
        self,
        run: Pointers,
        part: Range,
        place: Callable[[ir.Value], ir.Value],
        position: ir.Value,
        ahead: int,
    ) -> None:
        rows = [self._moved_channels(run, I64(each)) for each in range(self.channels)]
        known = [self.evaluate(Level.ROW, 1, row, self._known) for row in rows]

        def put(index: ir.Value, mask: ir.Value | None) -> None:
            self.code.store(
                place(index), self.joined(self.narrow(rows, known, index, mask)), ScalarType.INT32
            )

        self.code.vector_loop(*part, put)

    def put_differences(
        self, image: ir.Value, taps: ir.Value, groups: ir.Value, windows: ir.Value, places: Sequence[ir.Value]
    ) -> None:
        """Store the sums of the bytes of windows less what is subtracted, and what is subtracted from each
        byte. Windows include those between two rows.

        Args:
            image, taps: where it lies, and the distances of a window's groups.
            groups: how many these are.
            windows: a multiple of the lanes.
            places: where both are stored.
        """
        vector = llvm_type(ScalarType.INT32, self.lanes)
        ones = self.builder.bitcast(constant(ScalarType.INT8, 4 * self.lanes, 1), vector)
        subtracted = self.subtracted(1, self._pointers, self._known, None, None)
        count = self.builder.trunc(self.builder.mul(groups, I64(self.channels)), I32)
        less, each = (
            self.code.broadcast(value) for value in (self.builder.mul(subtracted, count), subtracted)
        )
        with self.code.loop(I64(0), windows, self.lanes) as window:
            start = self._element(image, window)
            total = self.code.local(vector, constant(ScalarType.INT32, self.lanes, 0))
            with self.code.loop(I64(0), groups) as group:
                distance = self.builder.load(
                    self.code.offset(taps, self.builder.mul(group, I64(DISTANCE_BYTES))), typ=I64
                )
                bytes = self.code.load(self.code.offset(start, distance), ScalarType.INT32, self.lanes)
                before = self.code.get(total)
                self.code.set(total, dot_bytes(self.builder, before, ones, bytes, self.lanes))
            sums = self.builder.sub(self.code.get(total), less)
            for place, value in zip(places, (sums, each), strict=True):
                self.code.store(self._element(place, window), value, ScalarType.INT32)


class Bf16ImageCode(ImageCode):
    """Packs an image in bfloat16 parts: of STEP channels the pairs, part by part. The last row loop is that
    of these channels."""

    def __init__(self, code: Code, operand: OperandA | OperandB, image: Image, first_parameter: int) -> None:
        super().__init__(code, operand, image, first_parameter)
        self._splitter = Splitter(code)
        self.state = code.local(I32)
        """True if the image that was packed last is in float32."""

    @property
    def channels(self) -> int:
        return STEP

    def group_bytes(self, plane: ir.Value) -> ir.Value:
        return self.builder.mul(plane, I64(BF16_PARTS * REGISTER_ROWS))

    def pack_image(self, place: ir.Value, channels: Range, rows: Range, plane: ir.Value, behind: int) -> None:
        self._splitter.reset()
        parts = [self.builder.mul(plane, I64(part * REGISTER_ROWS)) for part in range(BF16_PARTS)]
        with self.code.loop(I64(0), I64(REGISTER_ROWS)) as pair:
            self._pack_pair(place, channels, rows, plane, (pair, pair), parts)
        phases = self.builder.mul(self.builder.sub(channels[1], channels[0]), I64(self.image.phases))
        self.clear(self.code.offset(place, self.builder.mul(phases, self.group_bytes(plane))), I64(behind))
        with (
            self.builder.if_then(self._splitter.store_state(self.state)),
            self.code.loop(I64(0), I64(REGISTER_ROWS)) as pair,
        ):
            first = self.builder.mul(pair, I64(2))
            self._pack_pair(place, channels, rows, plane, (pair, first), [I64(0), plane])

    def _pack_pair(
        self,
        place: ir.Value,
        channels: Range,
        rows: Range,
        plane: ir.Value,
        numbers: tuple[ir.Value, ir.Value],
        distances: Sequence[ir.Value],
    ) -> None:
        """Pack the two channels of one pair of each group into planes at these distances. Two planes hold
        float32, others bfloat16 parts. `numbers` are those of the pair and of the first plane."""
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
            if len(self._distances) == BF16_PARTS:
                parts = self._splitter.pairs_of(*map(self._splitter.split_checked, vectors))
            type = F32 if parts is vectors else ScalarType.INT32
            for distance, value in zip(self._distances, parts, strict=True):
                self.code.store(self.code.offset(place(index), distance), value, type, mask)

        self.code.vector_loop(*part, put)


def image_code(code: Code, operand: OperandA | OperandB, image: Image, first_parameter: int) -> ImageCode:
    """Return the code that packs an image in its type, for its instructions."""
    kind = IntegerImageCode if operand.packing.group > 1 else ImageCode
    if operand.instructions is Instructions.AMX_BF16:
        kind = Bf16ImageCode
    return kind(code, operand, image, first_parameter)
