"""Kernels whose groups lie side by side, and whose rows need not all be gone through: a bound that is the
same for all groups of a tile says from where on none counts.

What a row reads lies apart from what the one before has read, so nothing is gained by going through memory in
its order: each vector of groups goes through the rows alone, its states in registers.
"""

from __future__ import annotations

from functools import reduce

from llvmlite import ir

from opendml.compiler.bounds import bounds_of
from opendml.compiler.kernel import number_of
from opendml.program.node import Node
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.pattern import Level
from opendml.targets.cpu.code import I64
from opendml.targets.cpu.conversion import conversion
from opendml.targets.cpu.group_code import GroupCode
from opendml.targets.cpu.kernel_code import Pointers, Values
from opendml.targets.cpu.pattern import ColumnWalk
from opendml.targets.cpu.values import llvm_type, splat


class BoundedColumnCode(GroupCode):
    """Whole tiles in one pass."""

    @property
    def walk(self) -> ColumnWalk:
        """The part of the pattern that these modes have."""
        return self.pattern.walk_as(ColumnWalk)

    def item(self, item: ir.Value) -> None:
        """One tile."""
        group, start, stop = self.block_range(item)
        pointers = self.group_pointers(group)
        known = self.of_tile(pointers)
        self.row_counts = self._counts(known)
        rows = reduce(self.builder.mul, self.row_counts)
        self.code.vector_loop(
            start, stop, lambda index, mask: self._groups(pointers, known, rows, index, mask)
        )

    def _groups(
        self, pointers: Pointers, of_tile: Values, rows: ir.Value, index: ir.Value, mask: ir.Value | None
    ) -> None:
        """The results of a vector of groups."""
        (stage,), (needed,) = self.passes, self.operands
        of_groups = self.evaluate(Level.GROUP, self.lanes, pointers, of_tile, index, mask, needed)
        slots = [
            [
                self.code.local(llvm_type(part, self.lanes), value)
                for part, value in zip(each.parts, each.start(self.builder, self.lanes, []), strict=True)
            ]
            for each in stage
        ]
        with self.walk_rows(pointers, I64(0), rows) as (_, row):
            values = self.evaluate(Level.ROW, 1, row, of_groups, roots=needed)
            values = self.evaluate(Level.ELEMENT, self.lanes, row, values, index, mask, needed)
            for each, state in zip(stage, slots, strict=True):
                operands = self.operand_values(each, self.lanes, values)
                element = [splat(self.builder, operand, self.lanes) for operand in operands]
                before = [self.code.get(slot) for slot in state]
                after = each.add(self.builder, self.lanes, before, element, self.walk.in_order)
                for slot, value in zip(state, after, strict=True):
                    self.code.set(slot, value)
        results = dict(of_tile)
        for each, state in zip(stage, slots, strict=True):
            found = [self.code.get(slot) for slot in state]
            results |= each.results(self.builder, self.lanes, found, self.elements)
        for level in (Level.STATISTIC, Level.GROUP):
            results = self.evaluate(level, self.lanes, pointers, results, index, mask)
        for access, root in self.stores(of_groups=True):
            value = splat(self.builder, self.value(root, self.lanes, results), self.lanes)
            self.store(access, value, pointers, index, mask)

    def _counts(self, of_tile: Values) -> list[ir.Value]:
        """How often the loops over rows run: as often as elements count, but at least once, and at most as
        often as they were validated for."""
        counts = list(self.row_counts)
        for loop, position in self.walk.bounded:
            reductions = [node for node in self.nodes if id(node) in self.reductions]
            steps = [self._steps(node, position, of_tile) for node in reductions]
            most = reduce(self.code.maximum, steps, I64(1))
            counts[loop] = self.code.minimum(most, counts[loop])
        return counts

    def _steps(self, reduction: Node, position: int, of_tile: Values) -> ir.Value:
        """The number from which on no position along a loop counts; NaN is below none."""
        bound = next(
            bound
            for each, bound in bounds_of(reduction)
            if number_of(each) == position and self.levels[id(bound)] <= Level.TILE
        )
        value = self.value(bound, 1, of_tile)
        if not bound.type.is_float:
            return conversion(self.builder, value, bound.type, ScalarType.INT64, 1)
        below = conversion(self.builder, value, bound.type, ScalarType.INT32, 1)
        again = conversion(self.builder, below, ScalarType.INT32, bound.type, 1)
        more = self.builder.zext(self.builder.fcmp_ordered("<", again, value), I64)
        return self.builder.add(self.builder.sext(below, I64), more)
