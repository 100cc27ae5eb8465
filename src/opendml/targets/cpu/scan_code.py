"""Kernels of running sums and products: along the innermost loop within vectors, or from row to row with
lanes over neighbouring lines.

Threads share long lines in chunks. The totals of all chunks are made first, as in a reduction. COMBINE
replaces each total by that of all chunks ahead, from which MAP makes the elements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opendml.targets.common.lines import scan_in
from opendml.targets.common.pattern import Level
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I1, I32, I64, Code
from opendml.targets.cpu.column_code import ColumnCode
from opendml.targets.cpu.conversion import conversion
from opendml.targets.cpu.group_code import GroupCode, Index
from opendml.targets.cpu.loads import Pointers, Values
from opendml.targets.cpu.pattern import CpuPattern
from opendml.targets.cpu.row_code import RowCode
from opendml.targets.cpu.values import llvm_type, splat, vector_constant


class _ScanCode(GroupCode):
    """The one scan of a kernel. The state of a line is its running result."""

    def __init__(self, code: Code, pattern: CpuPattern) -> None:
        super().__init__(code, pattern)
        scan = scan_in(pattern.values)
        self.scan, self.exclusive, self.reverse = scan.node, scan.exclusive, scan.reverse
        ((self.total,),) = self.passes

    def combine(self, item: ir.Value) -> None:
        """Replace the totals of the chunks of a line by those of all chunks ahead."""
        group = self.tile_of(item)
        self.clear()
        with self.in_order(I64(0), self.chunks) as chunk:

            def replace(index: Index, mask: ir.Value | None) -> None:
                (total,) = self.read_state(0, self.total, group, chunk, index, mask)
                (before,) = self.state(self.total, index)
                self.write_state(0, self.total, group, chunk, [before], index, mask)
                self.set_state(self.total, index, [self.merged(self.group_lanes, before, total)])

            self.each_vector(replace)

    def map(self, item: ir.Value) -> None:
        """Store the results of a chunk."""
        group, chunk = self.split_item(item)
        self.read_states([0], group, chunk)
        self.scan_units(self.group_pointers(group), *self.chunk_range(chunk, self.units))

    def scan_units(self, pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        """Store the results of some units, given in the states those of all elements ahead."""
        raise NotImplementedError

    def clear(self) -> None:
        """Set the states to the results over no elements."""
        self.each_vector(
            lambda index, mask: self.set_state(self.total, index, [self.identity(self.group_lanes)])
        )

    def identity(self, lanes: int) -> ir.Value:
        """Return the result over no elements."""
        return self.total.start(self.builder, lanes, [])[0]

    def operand(self, pointers: Pointers, known: Values, index: ir.Value, mask: ir.Value | None) -> Values:
        """Return `known` with the elements that are scanned."""
        return self.evaluate(Level.ELEMENT, self.lanes, pointers, known, index, mask, self.operands[0])

    def merged(self, lanes: int, left: ir.Value, right: ir.Value) -> ir.Value:
        """Return the result of two neighbouring parts."""
        return self.total.merge(self.builder, lanes, [left], [right])[0]

    def store_results(
        self, pointers: Pointers, values: Values, result: ir.Value, index: ir.Value, mask: ir.Value | None
    ) -> None:
        """Store a vector of elements, whose running results are `result`."""
        values = values | {id(self.scan): result}
        values = self.evaluate(Level.ELEMENT, self.lanes, pointers, values, index, mask)
        for access, root in self.stores(of_groups=False):
            self.store(access, self.vector(root, self.lanes, values), pointers, index, mask)

    @contextmanager
    def in_order(self, first: ir.Value, last: ir.Value, step: int = 1) -> Iterator[ir.Value]:
        """Loop over first..last in the direction of the scan."""
        with self.code.loop(first, last, step) as position:
            if self.reverse:
                yield self.builder.sub(self.builder.add(first, last), self.builder.add(position, I64(step)))
            else:
                yield position


class ScanRowCode(_ScanCode, RowCode):
    """Lines along the innermost loop. An item is a batch of lines, or one line, or one chunk of a line."""

    def whole(self, item: ir.Value) -> None:
        """Emit a batch of lines."""
        first, last = self.chunk_range(item, self.groups)
        with self.walk_groups(first, last) as (_, pointers):
            self.clear()
            self._scan(pointers, I64(0), self.inner)

    def scan_units(self, pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        """Store the results of some blocks of a line."""
        stop = self.code.minimum(self.builder.mul(last, self.block), self.inner)
        self._scan(pointers, self.builder.mul(first, self.block), stop)

    def _scan(self, pointers: Pointers, start: ir.Value, stop: ir.Value) -> None:
        """Store the results of start..stop: full vectors, and a rest. Vectors begin at `start`, wherever the
        memory lies, because sums depend on what is added first."""
        values = self.evaluate(Level.GROUP, 1, pointers, {})
        values = self.evaluate(Level.ROW, 1, pointers, values)
        (before,) = self.state(self.total, None)
        carry = splat(self.builder, before, self.lanes)
        running = self.code.local(llvm_type(self.scan.type, self.lanes), carry)
        last_lane = 0 if self.reverse else self.lanes - 1
        everywhere = vector_constant(I32, [last_lane] * self.lanes)

        def step(index: ir.Value, mask: ir.Value | None) -> None:
            known = self.operand(pointers, values, index, mask)
            nothing = self.identity(self.lanes)
            elements = self._wide(known)
            if mask is not None:
                elements = self.builder.select(mask, elements, nothing)
            # One addition is all that the next vector waits for.
            carried, within = self.code.get(running), self._within(elements)
            total = self.builder.shuffle_vector(within, within, everywhere)
            self.code.set(running, self.merged(self.lanes, carried, total))
            result = self.merged(self.lanes, carried, within)
            if self.exclusive:
                result = self._shifted(result, carried, 1)
            self.store_results(pointers, values, result, index, mask)

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

    def _wide(self, values: Values) -> ir.Value:
        """Return the scanned elements in the type of the results."""
        (operand,) = self.scan.operands[:1]
        (value,) = self.operand_vectors(self.total, self.lanes, values)
        if operand.type is self.scan.type:
            return value
        return conversion(self.builder, value, operand.type, self.scan.type, self.lanes)

    def _within(self, vector: ir.Value) -> ir.Value:
        """Return the running results within a vector, made in steps of 1, 2, 4 and further lanes."""
        distance = 1
        while distance < self.lanes:
            ahead = self._shifted(vector, vector, distance)
            lanes = range(self.lanes)
            sources = [lane + distance if self.reverse else lane - distance for lane in lanes]
            mask = vector_constant(I1, [source in lanes for source in sources])
            # Processors add in chosen lanes alone, but make zeros in the others more slowly.
            vector = self.builder.select(mask, self.merged(self.lanes, ahead, vector), vector)
            distance *= 2
        return vector

    def _shifted(self, vector: ir.Value, filling: ir.Value, distance: int) -> ir.Value:
        """Return for every lane the one `distance` ahead of it, or a lane of the filling if there is none."""
        lanes = range(self.lanes)
        sources = [lane + distance if self.reverse else lane - distance for lane in lanes]
        chosen = [source if source in lanes else self.lanes for source in sources]
        return self.builder.shuffle_vector(vector, filling, vector_constant(I32, chosen))


class ScanColumnCode(_ScanCode, ColumnCode):
    """Lines side by side. An item is a tile of them, or some rows of a tile."""

    def whole(self, item: ir.Value) -> None:
        """Emit a tile."""
        group = self.tile_of(item)
        self.clear()
        self.scan_units(self.group_pointers(group), I64(0), self.units)

    def scan_units(self, pointers: Pointers, first: ir.Value, last: ir.Value) -> None:
        """Store the results of some rows, row by row."""
        with self.in_order(first, last) as row:
            row_pointers = self.row_pointers(pointers, row)
            known = self.evaluate(Level.ROW, 1, row_pointers, {})

            def step(index: ir.Value, mask: ir.Value | None) -> None:
                values = self.evaluate(Level.GROUP, self.lanes, row_pointers, known, index, mask)
                values = self.operand(row_pointers, values, index, mask)
                (before,) = self.state(self.total, index)
                element = self.operand_vectors(self.total, self.lanes, values)
                (after,) = self.total.add(self.builder, self.lanes, [before], element, True)
                # Lanes beyond a head that ends at a boundary are visited again.
                self.set_state(self.total, index, [after], mask)
                result = before if self.exclusive else after
                self.store_results(row_pointers, values, result, index, mask)

            start = self.up_to_boundary(row_pointers, self.start, self.stop, step)
            self.code.vector_loop(start, self.stop, step)
