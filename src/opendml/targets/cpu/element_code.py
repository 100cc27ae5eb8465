"""Element-wise kernels: one walk over the domain, with ways to load vectors and to store short rows.

An item is a block of one row, a whole short row, or a block of rows and columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from opendml.late_dataclass import dataclass
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.pattern import Level
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I64, POINTER, Code
from opendml.targets.cpu.image_loads import CopiedImageLoads, ImageLoads, ImageRowLoads
from opendml.targets.cpu.kernel_code import KernelCode, NodeEvaluation, RunningPosition
from opendml.targets.cpu.loads import (
    At,
    BlockLoads,
    CrossedLoads,
    LoadsOfRows,
    Pointers,
    Range,
    RegularLoads,
    SharedLoads,
    Values,
)
from opendml.targets.cpu.pattern import LINE, CopiedImage, CpuMode, CpuPattern, ElementWalk
from opendml.targets.cpu.short_rows import GATHERED_BYTES, LONGEST_ROW


def _block_loads(kernel: KernelCode) -> BlockLoads | None:
    """Return the loads of a kernel that walks blocks of rows and columns; None: it has RegularLoads."""
    if kernel.pattern.mode is CpuMode.TRANSPOSED:
        return CrossedLoads(kernel)
    if kernel.pattern.mode is not CpuMode.SHARED_ROWS:
        return None
    image = kernel.pattern.walk_as(ElementWalk).shared_rows
    if not isinstance(image, CopiedImage):
        return SharedLoads(kernel)
    return ImageRowLoads(kernel) if image.fits_vectors else CopiedImageLoads(kernel)


class ElementCode(KernelCode):
    """Walks rows, or blocks of the one row loop and the innermost loop."""

    def __init__(self, code: Code, pattern: CpuPattern) -> None:
        super().__init__(code, pattern)
        self._blocks = _block_loads(self)
        self.loads = self._blocks or RegularLoads(self)
        self._gathered = GatheredRows(self)

    def items(self, first: ir.Value, last: ir.Value) -> None:
        """Emit the items first..last, which are counted up."""
        if self._blocks:
            self._walk_blocks(self._blocks, first, last)
        else:
            self._walk_rows(first, last)

    def _walk_rows(self, first: ir.Value, last: ir.Value) -> None:
        """Emit whole rows, or blocks of one row each."""
        whole = self.pattern.row_steps or self.pattern.mode is CpuMode.SHORT_ROWS
        blocks = [] if whole else [self.blocks]
        counts, stride = [*self.group_counts, *blocks], self.layout.group_stride
        position = RunningPosition(self, self.bases, counts, stride, first, still=len(blocks))
        self._gathered.begin(position.pointers())
        with self.code.loop(first, last) as item:
            pointers, start, stop = position.pointers(), I64(0), self.inner
            if blocks:
                start = self.builder.mul(position.indices()[-1], self.block)
                stop = self.code.minimum(self.builder.add(start, self.block), self.inner)
            known = self.evaluate(Level.GROUP, 1, pointers, {})
            self.map_block(self._gathered.in_scratch(pointers), known, start, stop)
            position.advance()
            is_last = self.builder.icmp_signed("==", self.builder.add(item, I64(1)), last)
            self._gathered.end_row(pointers, position.pointers(), is_last)

    def _walk_blocks(self, loads: BlockLoads, first: ir.Value, last: ir.Value) -> None:
        """Emit blocks of rows and columns."""
        loads.begin()
        stride = self.layout.group_stride
        counts = [*self.group_counts, self.chunks, self.blocks]
        with self.code.loop(first, last) as item:
            *group, across, along = self.code.split(item, [I64(0), *counts])[1:]
            pointers = self.moved(self.bases, group, stride, loads.alike)
            known = self.evaluate(Level.GROUP, 1, pointers, {})
            rows = self.chunk_range(across, self.row_counts[0])
            columns = loads.columns(pointers, along)
            loads.begin_block(pointers, rows, columns)
            if isinstance(loads, LoadsOfRows):
                self._walk_shared_rows(loads, pointers, known, rows, columns)
            else:
                with self.walk_rows(pointers, *rows) as (row, row_pointers):
                    self._store_rows(loads, row, [row_pointers], known, columns)

    def _walk_shared_rows(
        self, loads: LoadsOfRows, pointers: Pointers, known: Values, rows: Range, columns: Range
    ) -> None:
        """Emit the rows of a block: as many together as can be, then those that are left over."""
        stride = self.layout.row_stride
        rest = self.code.local(I64, rows[0])
        for count in loads.counts:
            with self.code.loop(self.code.get(rest), rows[1], count) as row:
                places = [self.moved(pointers, [row], stride, loads.alike)]
                for _ in range(1, count):
                    steps = [self.parameter(stride(each, 0)) for each in loads.alike]
                    places.append([self.code.offset(*each) for each in zip(places[-1], steps, strict=True)])
                self._store_rows(loads, row, places, known, columns)
                self.code.set(rest, self.builder.add(row, I64(count)))

    def _store_rows(
        self, loads: BlockLoads, first: ir.Value, rows: Sequence[Pointers], known: Values, columns: Range
    ) -> None:
        """Store neighbouring rows: one vector of each after the other."""
        at_rows = [(row, self.evaluate(Level.ROW, 1, row, known)) for row in rows]
        loads.begin_rows(first, at_rows)

        def store(index: ir.Value, mask: ir.Value | None) -> None:
            loads.begin_vectors()
            if isinstance(loads, ImageLoads):
                for (row, _), values in zip(
                    at_rows, self._side_by_side(loads, at_rows, index, mask), strict=True
                ):
                    self.store_values(row, values, index, mask)
                return
            for number, (row, values) in enumerate(at_rows):
                loads.begin_row(number)
                self.store_vector(row, values, index, mask)

        if isinstance(loads, ImageRowLoads):  # A row of windows is one vector.
            store(columns[0], self.code.first_lanes(self.builder.sub(columns[1], columns[0])))
        else:
            self.store_vectors(rows[0], *columns, store)

    def _side_by_side(
        self,
        loads: ImageLoads,
        at_rows: Sequence[tuple[Pointers, Values]],
        index: ir.Value,
        mask: ir.Value | None,
    ) -> list[Values]:
        """Return the values of a vector of each of some rows.

        A row waits for its own sums, so the rows are computed side by side. Each is behind the one before by
        a row of its window: what several rows read is loaded when all of them need it, and not kept.
        """
        nodes, lag = loads.in_order, loads.lag
        wanted = set(map(id, nodes))
        rows = [NodeEvaluation(self, At(row, self.lanes, index, mask)) for row, _ in at_rows]
        values = [dict(known) for _, known in at_rows]
        for step in range(len(nodes) + lag * (len(rows) - 1)):
            for number, row in enumerate(rows):
                at = step - number * lag
                if 0 <= at < len(nodes):
                    loads.begin_row(number)
                    row.walk(nodes[at : at + 1], wanted, values[number])
        return values


@dataclass(frozen=True, slots=True)
class _Stream:
    """Rows that follow each other in memory: `numbers` are the stores that write them.

    The part that is computed and not yet written lies in `scratch`. It is aligned to cache lines there as it
    is in memory, where it begins at the address in `begin`."""

    numbers: tuple[int, ...]
    type: ScalarType
    scratch: ir.Value
    begin: ir.Value


class GatheredRows:
    """Gathers the results of `ElementWalk.streams`: short rows that follow each other. They are stored to the
    thread's scratch, from which whole cache lines are written past the caches."""

    def __init__(self, kernel: KernelCode) -> None:
        self._kernel, self._code, self._builder = kernel, kernel.code, kernel.builder
        pattern, lanes = kernel.pattern, kernel.lanes
        streams = pattern.walk_as(ElementWalk).streams
        self._lanes = lanes
        self._line = max(LINE, max(store.type.bytes for store in pattern.stores) * lanes)
        """Bytes that are written at once: those of a cache line, or of a vector that is longer."""
        size = GATHERED_BYTES + LONGEST_ROW + 2 * self._line
        self._streams = [
            _Stream(
                numbers,
                kernel.accesses[numbers[0]].type,
                kernel.reserve(ScalarType.UINT8, size),
                kernel.code.local(I64),
            )
            for numbers in streams
        ]

    def begin(self, pointers: Pointers) -> None:
        """Begin before the first row, which is at `pointers`."""
        for stream in self._streams:
            self._code.set(stream.begin, self._address(pointers[stream.numbers[0]]))

    def in_scratch(self, pointers: Pointers) -> Pointers:
        """Return the addresses with those of streams in scratch."""
        result = list(pointers)
        for stream in self._streams:
            boundary = self._boundary(self._code.get(stream.begin))
            for number in stream.numbers:
                behind = self._builder.sub(self._address(pointers[number]), boundary)
                result[number] = self._code.offset(stream.scratch, behind)
        return result

    def end_row(self, row: Pointers, following: Pointers, is_last: ir.Value) -> None:
        """Write what streams have gathered, if their scratch is full or the following row lies elsewhere."""
        for stream in self._streams:
            number = stream.numbers[0]
            begin = self._code.get(stream.begin)
            size = self._builder.mul(self._kernel.inner, I64(stream.type.bytes * len(stream.numbers)))
            end = self._builder.add(self._address(row[number]), size)
            after = self._address(following[number])
            is_done = self._builder.or_(is_last, self._builder.icmp_signed("!=", after, end))
            is_full = self._builder.icmp_signed(">=", self._builder.sub(end, begin), I64(GATHERED_BYTES))
            with self._builder.if_then(self._builder.or_(is_done, is_full), likely=False):
                stop = self._builder.select(is_done, end, self._boundary(end))
                self._write(stream, begin, stop)
                self._code.set(stream.begin, self._builder.select(is_done, after, stop))

    def _write(self, stream: _Stream, begin: ir.Value, stop: ir.Value) -> None:
        """Write the bytes from one address to another: whole lines past the caches, and the rests of the
        first and the last one through them. What follows in scratch moves to its front."""
        boundary = self._boundary(begin)
        last = self._code.maximum(self._boundary(stop), begin)
        first = self._code.minimum(self._boundary(self._builder.add(begin, I64(self._line - 1))), last)
        self._copy(stream, boundary, begin, first)
        parts = range(0, self._line, stream.type.bytes * self._lanes)
        with self._code.loop(first, last, self._line) as line:
            for part in parts:
                address = self._builder.add(line, I64(part))
                self._code.stream(
                    self._pointer(address), self._gathered(stream, boundary, address), stream.type
                )
        self._copy(stream, boundary, last, stop)
        for part in parts:
            rest = self._gathered(stream, boundary, self._builder.add(stop, I64(part)))
            self._code.store(self._code.offset(stream.scratch, I64(part)), rest, stream.type)

    def _copy(self, stream: _Stream, boundary: ir.Value, begin: ir.Value, stop: ir.Value) -> None:
        """Write less than a line through the caches."""
        size = stream.type.bytes
        count = self._builder.sdiv(self._builder.sub(stop, begin), I64(size))

        def copy(index: ir.Value, mask: ir.Value | None) -> None:
            address = self._builder.add(begin, self._builder.mul(index, I64(size)))
            value = self._gathered(stream, boundary, address)
            self._code.store(self._pointer(address), value, stream.type, mask)

        self._code.vector_loop(I64(0), count, copy)

    def _gathered(self, stream: _Stream, boundary: ir.Value, address: ir.Value) -> ir.Value:
        """Return a vector from scratch, by its address in memory."""
        offset = self._builder.sub(address, boundary)
        return self._code.load(self._code.offset(stream.scratch, offset), stream.type, self._lanes)

    def _boundary(self, address: ir.Value) -> ir.Value:
        """Return the first address of the line that an address is in."""
        return self._builder.and_(address, I64(-self._line))

    def _address(self, pointer: ir.Value) -> ir.Value:
        return self._builder.ptrtoint(pointer, I64)

    def _pointer(self, address: ir.Value) -> ir.Value:
        return self._builder.inttoptr(address, POINTER)
