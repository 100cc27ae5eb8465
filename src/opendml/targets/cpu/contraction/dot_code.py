"""Sums of products of a few rows with a matrix whose rows lie along k: vectors of several rows at once are
read where they lie, and multiplied by those of all few. Lanes are put together at the end of a part."""

from __future__ import annotations

from llvmlite import ir

from opendml.targets.cpu.code import I64
from opendml.targets.cpu.contraction.code import ContractionCode, Sums
from opendml.targets.cpu.contraction.micro import Strides
from opendml.targets.cpu.contraction.packing import F32, Range
from opendml.targets.cpu.contraction.words import packing_code
from opendml.targets.cpu.values import llvm_type, overloaded, vector_constant
from opendml.targets.cpu.values import number as constant


class DotCode(ContractionCode):
    """A tile is `micro.rows` rows of a and `micro.vectors` columns of b."""

    _lies_in_rows = False

    def _lay_out_vectors(self, first_parameter: int) -> None:
        self.b = packing_code(self.function, self.tiling.b, self.lanes, self.code, first_parameter)

    def _emit_micro_kernel(self, strides: Strides) -> None:
        """There is none."""

    def _block(
        self, start: ir.Value, stop: ir.Value, depth: Range, part: ir.Value, parts: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        """Nothing is packed."""
        return start, I64(0)

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
        start, stop = columns
        _, adds = self._products(depth, part)
        together = self.tiling.micro.vectors
        with self.code.loop(I64(0), self.b.parts(self.builder.sub(stop, start), together)) as number:
            before = self.builder.mul(number, I64(together))
            totals = self._totals(a, (self.builder.add(start, before), stop), depth)
            place = self.code.offset(sums.held, self.builder.mul(before, I64(F32.bytes)))
            for row, each in enumerate(totals):
                for column, total in enumerate(each):
                    at = self.code.offset(place, I64(row * self.column_pitch + column * F32.bytes))
                    held = self.builder.fadd(self.code.load(at, F32, 1), total)
                    self.code.store(at, self.builder.select(adds, held, total), F32)

    def _totals(self, a: ir.Value, columns: Range, depth: Range) -> list[list[ir.Value]]:
        """The sums of each row, with the next few columns; those behind the last are anything."""
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

        self.b.read_together(columns, micro.vectors, depth, take_in)
        return [[self._folded(self.code.get(slot)) for slot in each] for each in slots]

    def _folded(self, vector: ir.Value) -> ir.Value:
        """The sum of all lanes: of halves onto halves."""
        lanes = self.lanes
        while lanes > 1:
            lanes //= 2
            low, high = (
                self.builder.shuffle_vector(vector, vector, vector_constant(ir.IntType(32), range(*half)))
                for half in ((0, lanes), (lanes, 2 * lanes))
            )
            vector = self.builder.fadd(low, high)
        return self.builder.extract_element(vector, ir.IntType(32)(0))
