"""Sums of products in tiles.

An item is a block of rows and columns of the results. For each block of k it packs its part of b into the
thread's room, then for one panel of rows after the other that of a, and adds the products to a tile in the
room; behind the last block of k each panel's rows go through the epilogue, which is an element-wise pattern
whose last load is the sums.
"""

from __future__ import annotations

from llvmlite import ir

from opendml.program.node import Node, Operation
from opendml.targets.cpu.code import I64
from opendml.targets.cpu.contraction.micro import Strides, emit_micro_kernel
from opendml.targets.cpu.contraction.packing import F32, PackingCode
from opendml.targets.cpu.kernel_code import KernelCode, Pointers, Values, source_index
from opendml.targets.cpu.pattern import Level, Pattern

_LINE = 64
"""Bytes of a cache line. Rows are an odd number of lines apart, so that they lie in different sets of a
cache."""

_AHEAD = 12
"""Rows of k by which operands are read ahead."""


class ContractionCode(KernelCode):
    """The pattern itself is the epilogue's: its row loop runs over the rows, its innermost over the columns
    of the results."""

    def __init__(self, function: ir.Function, pattern: Pattern, lanes: int) -> None:
        super().__init__(function, pattern, lanes)
        if pattern.tiling is None:
            raise TypeError("a contraction has a tiling")
        tiling = self.tiling = pattern.tiling
        micro = tiling.micro
        first = self.layout.length
        self.a = PackingCode(function, tiling.a, lanes, self.code, first)
        self.b = PackingCode(function, tiling.b, lanes, self.code, first + self.a.layout.length)
        self.width = micro.vectors * lanes
        depth_pitch = _odd_lines(tiling.depth + lanes)
        rows_pitch = -(-micro.rows // lanes) * lanes * F32.bytes
        self.column_pitch = _odd_lines(tiling.columns + lanes)
        self.a_pitch = depth_pitch if tiling.a.along_depth else rows_pitch
        self.strides = Strides(
            a_row=self.a_pitch if tiling.a.along_depth else F32.bytes,
            a_depth=F32.bytes if tiling.a.along_depth else self.a_pitch,
            b_depth=self.column_pitch,
            c_row=self.column_pitch,
        )
        panels = -(-tiling.rows // micro.rows)
        a_rows = micro.rows if tiling.a.along_depth else tiling.depth
        self.a_room = self._rows(a_rows, self.a_pitch)
        self.b_room = self._rows(tiling.depth + lanes, self.column_pitch)
        self.c_room = self._rows(panels * micro.rows, self.column_pitch)
        self.micro = emit_micro_kernel(function.module, "micro", micro, lanes, self.strides)
        self.total = next(node for node in self.nodes if _is_total(node, pattern))

    def _rows(self, count: int, pitch: int) -> ir.Value:
        """Room for so many rows, and for a vector behind the last."""
        return self.room(F32, count * pitch // F32.bytes + self.lanes)

    def item(self, item: ir.Value) -> None:
        """One block of results."""
        micro, tiling = self.tiling.micro, self.tiling
        group, along, across = self.code.split(item, [I64(0), self.blocks, self.chunks])
        first, last = self.chunk_range(across, self.units)
        start = self.builder.mul(along, self.block)
        stop = self.code.minimum(self.builder.add(start, self.block), self.inner)
        pointers = self.group_pointers(group)
        known = self.evaluate(Level.GROUP, 1, pointers, {})
        self.a.begin(group)
        self.b.begin(group)
        depths = self._parts(self.elements, tiling.depth)
        with self.code.loop(I64(0), depths) as block:
            begin = self.builder.mul(block, I64(tiling.depth))
            end = self.code.minimum(self.builder.add(begin, I64(tiling.depth)), self.elements)
            is_last = self.builder.icmp_signed("==", end, self.elements)
            self._pack_b(begin, end, start, stop)
            with self.code.loop(I64(0), self._parts(self.builder.sub(last, first), micro.rows)) as panel:
                row = self.builder.add(first, self.builder.mul(panel, I64(micro.rows)))
                behind = self.code.minimum(self.builder.add(row, I64(micro.rows)), last)
                self._pack_a(begin, end, row, behind)
                c = self._c_row(self.builder.sub(row, first))
                self._multiply(c, begin, end, start, stop)
                with self.builder.if_then(is_last):
                    self._store(pointers, known, c, row, behind, start, stop)

    def _parts(self, total: ir.Value, size: int) -> ir.Value:
        """How many parts of a size it takes."""
        return self.builder.udiv(self.builder.add(total, I64(size - 1)), I64(size))

    def _c_row(self, row: ir.Value) -> ir.Value:
        return self.code.offset(self.c_room, self.builder.mul(row, I64(self.column_pitch)))

    def _pack_a(self, begin: ir.Value, end: ir.Value, row: ir.Value, behind: ir.Value) -> None:
        """One panel; the rows that the last one lacks are zero."""
        if self.tiling.a.along_depth:
            self.a.pack(self.a_room, self.a_pitch, (row, behind), (begin, end), self.tiling.micro.rows)
            present = self.builder.sub(behind, row)
            with self.code.loop(present, I64(self.tiling.micro.rows)) as missing:
                place = self.code.offset(self.a_room, self.builder.mul(missing, I64(self.a_pitch)))
                self._clear(place, self.builder.sub(end, begin))
        else:
            self.a.pack(self.a_room, self.a_pitch, (begin, end), (row, behind), _AHEAD)

    def _pack_b(self, begin: ir.Value, end: ir.Value, start: ir.Value, stop: ir.Value) -> None:
        """One block; the columns that the last tile lacks are zero."""
        present = self.builder.sub(stop, start)
        tiles = self.builder.mul(self._parts(present, self.width), I64(self.width))
        with self.builder.if_then(self.builder.icmp_signed("!=", tiles, present)):
            last = self.builder.mul(self.builder.sub(tiles, I64(self.width)), I64(F32.bytes))
            with self.code.loop(I64(0), self.builder.sub(end, begin)) as row:
                place = self.code.offset(self.b_room, self.builder.mul(row, I64(self.column_pitch)))
                self._clear(self.code.offset(place, last), I64(self.width))
        if self.tiling.b.along_depth:
            self.b.pack_transposed(self.b_room, self.column_pitch, (start, stop), (begin, end))
        else:
            self.b.pack(self.b_room, self.column_pitch, (begin, end), (start, stop), _AHEAD)

    def _clear(self, place: ir.Value, count: ir.Value) -> None:
        """Zeros, in whole vectors."""
        zero = ir.Constant(ir.VectorType(ir.FloatType(), self.lanes), None)
        with self.code.loop(I64(0), self._parts(count, self.lanes)) as vector:
            at = self.builder.mul(vector, I64(F32.bytes * self.lanes))
            self.code.store(self.code.offset(place, at), zero, F32)

    def _multiply(self, c: ir.Value, begin: ir.Value, end: ir.Value, start: ir.Value, stop: ir.Value) -> None:
        """The tiles of one panel."""
        depth = self.builder.sub(end, begin)
        adds = self.builder.icmp_signed("!=", begin, I64(0))
        with self.code.loop(I64(0), self._parts(self.builder.sub(stop, start), self.width)) as tile:
            at = self.builder.mul(tile, I64(self.width * F32.bytes))
            b = self.code.offset(self.b_room, at)
            self.builder.call(self.micro, [self.a_room, b, self.code.offset(c, at), depth, adds])

    def _store(
        self,
        pointers: Pointers,
        known: Values,
        c: ir.Value,
        row: ir.Value,
        behind: ir.Value,
        start: ir.Value,
        stop: ir.Value,
    ) -> None:
        """The epilogue of a panel's rows."""
        with self.walk_rows(pointers, row, behind) as (position, row_pointers):
            row_values = self.evaluate(Level.ROW, 1, row_pointers, known)
            distance = self.builder.mul(self.builder.sub(position, row), I64(self.column_pitch))
            totals = self.code.offset(c, distance)

            def known_at(index: ir.Value) -> Values:
                at = self.builder.mul(self.builder.sub(index, start), I64(F32.bytes))
                total = self.code.load(self.code.offset(totals, at), F32, self.lanes)
                return row_values | {id(self.total): total}

            self.store_range(row_pointers, start, stop, known_at)


def _odd_lines(elements: int) -> int:
    """The bytes of so many elements, rounded up to an odd number of cache lines."""
    return (-(-elements * F32.bytes // _LINE) | 1) * _LINE


def _is_total(node: Node, pattern: Pattern) -> bool:
    return node.operation is Operation.SOURCE and source_index(node) == len(pattern.loads) - 1
