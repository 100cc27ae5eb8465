"""Kernels of running sums and products: along the innermost loop within vectors, or from row to row with
lanes over neighbouring lines.

Long lines are worked off in chunks: the totals of all of them first, as in a reduction, then what comes
before each chunk, then its elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llvmlite import ir

from opendml.program.node import SCANS, Node
from opendml.targets.common.pattern import Level
from opendml.targets.cpu.code import I1, I32, I64
from opendml.targets.cpu.column_code import SplitColumnCode
from opendml.targets.cpu.conversion import conversion
from opendml.targets.cpu.group_code import GroupCode
from opendml.targets.cpu.kernel_code import Pointers, Values
from opendml.targets.cpu.pattern import CpuMode, CpuPattern
from opendml.targets.cpu.row_code import SplitRowCode
from opendml.targets.cpu.values import llvm_type, scalar_llvm_type, splat, vector_constant


class _Scan(GroupCode):
    """The one scan of a kernel."""

    def __init__(self, function: ir.Function, pattern: CpuPattern, lanes: int) -> None:
        super().__init__(function, pattern, lanes)
        (self.scan,) = (node for node in self.nodes if node.operation in SCANS)
        ((self.total,),) = self.passes
        _, self.exclusive, self.reverse = _flags(self.scan)

    def identity(self, lanes: int) -> ir.Value:
        """The result over no elements."""
        return self.total.start(self.builder, lanes, [])[0]

    def operand(self, values: Values) -> ir.Value:
        """A vector of what is scanned."""
        (value,) = self.operand_values(self.total, self.lanes, values)
        return splat(self.builder, value, self.lanes)

    def wide(self, value: ir.Value) -> ir.Value:
        """A vector of elements in the type of the results."""
        type, wide = self.scan.operands[0].type, self.scan.type
        return value if type is wide else conversion(self.builder, value, type, wide, self.lanes)

    def taken_in(self, before: ir.Value, value: ir.Value) -> ir.Value:
        """The running result with one more vector of elements."""
        return self.total.add(self.builder, self.lanes, [before], [value], True)[0]

    def merged(self, lanes: int, left: ir.Value, right: ir.Value) -> ir.Value:
        """The results of two neighbouring parts put together."""
        return self.total.merge(self.builder, lanes, [left], [right])[0]

    def store_elements(
        self, pointers: Pointers, values: Values, result: ir.Value, index: ir.Value, mask: ir.Value | None
    ) -> None:
        """Stores a vector of elements, whose running results are `result`."""
        values = values | {id(self.scan): result}
        values = self.evaluate(Level.ELEMENT, self.lanes, pointers, values, index, mask)
        for access, root in self.stores(of_groups=False):
            value = splat(self.builder, self.value(root, self.lanes, values), self.lanes)
            self.store(access, value, pointers, index, mask)

    @contextmanager
    def in_order(self, first: ir.Value, last: ir.Value, step: int = 1) -> Iterator[ir.Value]:
        """A loop over first..last in the direction of the scan."""
        with self.code.loop(first, last, step) as position:
            if self.reverse:
                yield self.builder.sub(self.builder.add(first, last), self.builder.add(position, I64(step)))
            else:
                yield position


class ScanRowCode(_Scan, SplitRowCode):
    """Lines along the innermost loop: an item is a batch of lines, or a line whose chunks are put together,
    or a chunk."""

    def item(self, item: ir.Value) -> None:
        """One batch, line or chunk."""
        if self.pattern.mode is CpuMode.SCAN_ROWS:
            first, last = self.chunk_range(item, self.groups)
            with self.walk_groups(first, last) as (_, pointers):
                self._scan(pointers, self.identity(1), I64(0), self.inner)
        elif self.pattern.mode is CpuMode.SCAN_ROWS_COMBINE:
            running = self.code.local(scalar_llvm_type(self.scan.type), self.identity(1))
            with self.in_order(I64(0), self.chunks) as chunk:
                (total,) = self.read_state(0, self.total, item, chunk)
                before = self.code.get(running)
                self.write_state(0, self.total, item, chunk, [before])
                self.code.set(running, self.merged(1, before, total))
        else:
            group, chunk = self.code.split(item, [I64(0), self.chunks])
            first, last = self.chunk_range(chunk, self.units)
            (before,) = self.read_state(0, self.total, group, chunk)
            stop = self.code.minimum(self.builder.mul(last, self.block), self.inner)
            self._scan(self.group_pointers(group), before, self.builder.mul(first, self.block), stop)

    def _scan(self, pointers: Pointers, before: ir.Value, start: ir.Value, stop: ir.Value) -> None:
        """The results of start..stop, `before` being that of all elements ahead of them: full vectors, and a
        rest. Vectors begin at `start`, wherever the memory lies: sums depend on what is added first."""
        values = self.evaluate(Level.GROUP, 1, pointers, {})
        values = self.evaluate(Level.ROW, 1, pointers, values)
        carry = splat(self.builder, before, self.lanes)
        running = self.code.local(llvm_type(self.scan.type, self.lanes), carry)
        last_lane = 0 if self.reverse else self.lanes - 1
        everywhere = vector_constant(I32, [last_lane] * self.lanes)

        def step(index: ir.Value, mask: ir.Value | None) -> None:
            needed = self.operands[0]
            known = self.evaluate(Level.ELEMENT, self.lanes, pointers, values, index, mask, needed)
            nothing = self.identity(self.lanes)
            elements = self.wide(self.operand(known))
            if mask is not None:
                elements = self.builder.select(mask, elements, nothing)
            # One addition is all that the next vector waits for.
            carried, within = self.code.get(running), self._within(elements)
            total = self.builder.shuffle_vector(within, within, everywhere)
            self.code.set(running, self.merged(self.lanes, carried, total))
            result = self.merged(self.lanes, carried, within)
            if self.exclusive:
                result = self._shifted(result, carried, 1)
            self.store_elements(pointers, values, result, index, mask)

        rest = self.builder.and_(self.builder.sub(stop, start), I64(self.lanes - 1))
        last = self.builder.sub(stop, rest)

        def step_over_rest() -> None:
            with self.builder.if_then(self.builder.icmp_signed(">", rest, I64(0)), likely=False):
                step(last, self.code.first_lanes(rest))

        if self.reverse:
            step_over_rest()
        with self.in_order(start, last, self.lanes) as index:
            step(index, None)
        if not self.reverse:
            step_over_rest()

    def _within(self, vector: ir.Value) -> ir.Value:
        """The running results within a vector, in steps of 1, 2, 4 and so on."""
        distance = 1
        while distance < self.lanes:
            ahead = self._shifted(vector, vector, distance)
            lanes = range(self.lanes)
            has_any = [lane + distance if self.reverse else lane - distance for lane in lanes]
            mask = vector_constant(I1, [lane in lanes for lane in has_any])
            # Processors add in chosen lanes alone, but make zeros in the others more slowly.
            vector = self.builder.select(mask, self.merged(self.lanes, ahead, vector), vector)
            distance *= 2
        return vector

    def _shifted(self, vector: ir.Value, filling: ir.Value, distance: int) -> ir.Value:
        """For every lane, the one so far ahead of it; where there is none, that of the filling."""
        lanes = range(self.lanes)
        sources = [lane + distance if self.reverse else lane - distance for lane in lanes]
        chosen = [source if source in lanes else self.lanes for source in sources]
        return self.builder.shuffle_vector(vector, filling, vector_constant(I32, chosen))


class ScanColumnCode(_Scan, SplitColumnCode):
    """Lines side by side: an item is a tile of them, or a tile whose chunks are put together, or some rows of
    a tile."""

    def item(self, item: ir.Value) -> None:
        """One tile, or some rows of it."""
        if self.pattern.mode is CpuMode.SCAN_COLUMNS:
            group, self.start, self.stop = self.block_range(item)
            self._clear()
            self._scan(self.group_pointers(group), I64(0), self.units)
        elif self.pattern.mode is CpuMode.SCAN_COLUMNS_COMBINE:
            group, self.start, self.stop = self.block_range(item)
            self._clear()
            with self.in_order(I64(0), self.chunks) as chunk:
                self._put_ahead(group, chunk)
        else:
            position, chunk = self.code.split(item, [I64(0), self.chunks])
            first, last = self.chunk_range(chunk, self.units)
            group, self.start, self.stop = self.block_range(position)
            self.read_stage(0, group, chunk)
            self._scan(self.group_pointers(group), first, last)

    def _clear(self) -> None:
        def clear(index: ir.Value, mask: ir.Value | None) -> None:
            self.set_state(self.total, index, [self.identity(self.lanes)])

        self.code.vector_loop(self.start, self.stop, clear)

    def _put_ahead(self, group: ir.Value, chunk: ir.Value) -> None:
        """Replaces the totals of a chunk by those of all chunks ahead of it."""

        def replace(column: ir.Value, mask: ir.Value | None) -> None:
            (total,) = self.read_state(0, self.total, group, chunk, column, mask)
            (before,) = self.state(self.total, column)
            (place,) = self.places(0, self.total, group, chunk, column)
            self.code.store(place, before, self.scan.type, mask)
            self.set_state(self.total, column, [self.merged(self.lanes, before, total)])

        self.code.vector_loop(self.start, self.stop, replace)

    def _scan(self, pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        """The results of some rows, row by row."""
        with self.in_order(first, last) as row:
            row_pointers = self.row_pointers(pointers, row)
            known = self.evaluate(Level.ROW, 1, row_pointers, {})

            def step(index: ir.Value, mask: ir.Value | None) -> None:
                values = self.evaluate(Level.GROUP, self.lanes, row_pointers, known, index, mask)
                needed = self.operands[0]
                values = self.evaluate(Level.ELEMENT, self.lanes, row_pointers, values, index, mask, needed)
                (before,) = self.state(self.total, index)
                after = self.taken_in(before, self.operand(values))
                # Lanes beyond a head that ends at a boundary are visited again.
                self.set_state(self.total, index, [after], mask)
                result = before if self.exclusive else after
                self.store_elements(row_pointers, values, result, index, mask)

            start = self.up_to_boundary(row_pointers, self.start, self.stop, step)
            self.code.vector_loop(start, self.stop, step)


def _flags(scan: Node) -> tuple[int, bool, bool]:
    """The axis of a scan, whether it leaves out the element itself, and whether it goes down."""
    if not isinstance(scan.attribute, tuple):
        raise TypeError(f"{scan} has no axis")
    axis, exclusive, reverse = scan.attribute
    return axis, bool(exclusive), bool(reverse)
