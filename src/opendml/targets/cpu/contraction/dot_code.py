"""Contractions of few rows with a matrix whose columns lie along k: vectors of several columns are read where
they lie, and multiplied by those of all rows. Lanes are added up at the end of a part."""

from __future__ import annotations

from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I64
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.code import ContractionCode
from opendml.targets.cpu.contraction.packing import Range
from opendml.targets.cpu.contraction.storages import Panel, Strided
from opendml.targets.cpu.values import llvm_type, overloaded, vector_constant
from opendml.targets.cpu.values import number as constant


class DotCode(ContractionCode):
    """Emits a contraction in tiles of `micro.rows` rows of A and `micro.vectors` columns of B."""

    results_lie_as_tiles = False

    def emit_micro_kernel(self) -> None:
        """Emit nothing: the tiles are part of the loop."""

    def multiply(self, a: ir.Value, row_bytes: list[ir.Value], block: Strided, panel: Panel) -> None:
        start, stop = panel.columns
        _, adds = self.products(panel.part)
        together = self.tiling.micro.vectors
        with self.code.loop(I64(0), self.b.reader.parts(self.builder.sub(stop, start), together)) as number:
            before = self.builder.mul(number, I64(together))
            totals = self._totals(a, (self.builder.add(start, before), stop), panel.part.depth)
            place = self.code.offset(panel.c, self.builder.mul(before, I64(F32.bytes)))
            for row, each in enumerate(totals):
                for column, total in enumerate(each):
                    at = self.code.offset(place, I64(row * self.column_pitch + column * F32.bytes))
                    added = self.builder.fadd(self.code.load(at, F32, 1), total)
                    self.code.store(at, self.builder.select(adds, added, total), F32)

    def _totals(self, a: ir.Value, columns: Range, depth: Range) -> list[list[ir.Value]]:
        """Return the sums of each row with the next columns; those behind the last are anything."""
        micro, zero = self.tiling.micro, constant(F32, self.lanes, 0.0)
        vector = llvm_type(F32, self.lanes)
        slots = [[self.code.local(vector, zero) for _ in range(micro.vectors)] for _ in range(micro.rows)]
        row_bytes, _ = self.tiling.a.strides(self.lanes)

        def take_in(index: ir.Value, mask: ir.Value | None, vectors: list[ir.Value]) -> None:
            distance = self.builder.mul(self.builder.sub(index, depth[0]), I64(F32.bytes))
            for row, each in enumerate(slots):
                at = self.builder.add(distance, I64(row * row_bytes))
                factor = self.code.load(self.code.offset(a, at), F32, self.lanes)
                for slot, other in zip(each, vectors, strict=True):
                    old = self.code.get(slot)
                    new = overloaded(self.builder, "fma", F32, self.lanes, [factor, other, old])
                    self.code.set(slot, new if mask is None else self.builder.select(mask, new, old))

        self.b.reader.read_together(columns, micro.vectors, depth, take_in)
        return [[self._add_lanes(self.code.get(slot)) for slot in each] for each in slots]

    def _add_lanes(self, vector: ir.Value) -> ir.Value:
        """Return the sum of all lanes, by adding halves to halves."""
        lanes = self.lanes
        while lanes > 1:
            lanes //= 2
            low, high = (
                self.builder.shuffle_vector(vector, vector, vector_constant(ir.IntType(32), range(*half)))
                for half in ((0, lanes), (lanes, 2 * lanes))
            )
            vector = self.builder.fadd(low, high)
        return self.builder.extract_element(vector, ir.IntType(32)(0))
