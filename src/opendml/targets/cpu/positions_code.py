"""Kernels that find the positions along lines at which a condition holds, in order, and compute with them.

Threads find the positions of a chunk each, before it is known how many the chunks before it have.
"""

from __future__ import annotations

from opendml.program.node import REDUCTIONS
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.pattern import Level
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I64, Code
from opendml.targets.cpu.loads import Pointers, Values
from opendml.targets.cpu.pattern import CpuMode, CpuPattern
from opendml.targets.cpu.placing_code import PlacingCode
from opendml.targets.cpu.values import Literal, llvm_type


class PositionsCode(PlacingCode):
    """The positions of a chunk of a line, in two launches.

    The first stores the positions and their number to the arena. The second stores results of the positions
    where they belong, and results of -1 behind those of all chunks. The arena has the numbers of all chunks,
    then a line of positions for each line."""

    def __init__(self, code: Code, pattern: CpuPattern) -> None:
        super().__init__(code, pattern)
        self.counts = [node for node in self.nodes if node.operation in REDUCTIONS]
        """The nodes that count the positions of a line."""
        self.reductions = {id(self.placed), *map(id, self.counts)}

    def item(self, item: ir.Value) -> None:
        """Emit one chunk."""
        line, chunk = self.code.split(item, [I64(0), self.chunks])
        first, last = self.chunk_range(chunk, self.inner)
        pointers = self.group_pointers(line)
        positions = self._positions_from(self.builder.add(self.builder.mul(line, self.inner), first))
        if self.pattern.mode is CpuMode.POSITIONS_CHUNKS:
            self.builder.store(self._find(pointers, positions, first, last), self._number_of(item))
        else:
            self._put(item, pointers, positions, first, last)

    def _number_of(self, item: ir.Value) -> ir.Value:
        """Return the address of the number of a chunk's positions."""
        return self.code.element_at(self.arena(), item, I64(ScalarType.INT64.bytes))

    def _positions_from(self, element: ir.Value) -> ir.Value:
        """Return the address of the positions of a chunk, given its first element among those of all
        lines."""
        numbers = self.builder.mul(self.builder.mul(self.groups, self.chunks), I64(ScalarType.INT64.bytes))
        behind = self.builder.mul(element, I64(self.placed.type.bytes))
        return self.code.offset(self.arena(), self.builder.add(numbers, behind))

    def _find(self, pointers: Pointers, positions: ir.Value, first: ir.Value, last: ir.Value) -> ir.Value:
        """Store the positions of a chunk, and return their number."""
        known = self.outside_loops(Level.GROUP, pointers, {})
        number = self.code.local(I64, I64(0))
        others = Literal(llvm_type(self.placed.type, self.lanes), "undef")

        def step(index: ir.Value, mask: ir.Value | None) -> None:
            (found,) = self.elements_at(pointers, known, index, mask)
            if mask is not None:
                found = self.builder.and_(found, mask)
            together = self.code.compressed(self.positions(index), found, others, self.placed.type)
            there = self.code.get(number)
            after = self.builder.add(there, self.code.count(found))
            # A full vector ends no further than the elements that were read.
            inside = None if mask is None else self.code.first_lanes(self.builder.sub(after, there))
            self.code.store(self._behind(positions, there), together, self.placed.type, inside)
            self.code.set(number, after)

        self.code.vector_loop(first, last, step)
        return self.code.get(number)

    def _put(
        self, item: ir.Value, pointers: Pointers, positions: ir.Value, first: ir.Value, last: ir.Value
    ) -> None:
        """Store the results of a chunk's positions behind those of the chunks before it, and results of -1 in
        the part of the chunk that is behind all. With the first chunk, store results of their number."""
        before, after, end = self._ends(item)
        known = {id(node): self.code.narrowed(end, llvm_type(node.type, 1)) for node in self.counts}
        for level in (Level.STATISTIC, Level.GROUP):
            known = self.evaluate(level, 1, pointers, known)
        if self.counts:
            with self.builder.if_then(self.builder.icmp_signed("==", first, I64(0))):
                self.store_group(pointers, known)
        vector = llvm_type(self.placed.type, self.lanes)
        nothing = Literal(vector, f"splat (i{self.placed.type.bits} -1)")

        def found(index: ir.Value) -> Values:
            there = self._behind(positions, self.builder.sub(index, before))
            return known | {id(self.placed): self.code.load(there, self.placed.type, self.lanes)}

        self.store_range(pointers, before, after, found)
        behind = self.code.minimum(self.code.maximum(end, first), last)
        self.store_range(pointers, behind, last, lambda index: known | {id(self.placed): nothing})

    def _ends(self, item: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Return how many positions the chunks of a line have before one, with it, and in all."""
        chunk = self.builder.urem(item, self.chunks)
        line = self.builder.sub(item, chunk)
        total, ends = self.code.local(I64, I64(0)), []
        stops = [chunk, self.builder.add(chunk, I64(1)), self.chunks]
        for start, stop in zip([I64(0), *stops], stops, strict=False):
            with self.code.loop(start, stop) as each:
                number = self.builder.load(self._number_of(self.builder.add(line, each)), typ=I64)
                self.code.set(total, self.builder.add(self.code.get(total), number))
            ends.append(self.code.get(total))
        before, after, end = ends
        return before, after, end

    def _behind(self, positions: ir.Value, number: ir.Value) -> ir.Value:
        """Return the address of a position by its number."""
        return self.code.element_at(positions, number, I64(self.placed.type.bytes))
