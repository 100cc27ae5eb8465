"""Prints kernels that put elements to places along lines, one element at a time."""

from __future__ import annotations

from opendml.program.node import Operation
from opendml.targets.cuda.cxx import function
from opendml.targets.cuda.expression import TYPES
from opendml.targets.cuda.parameters import Parameters
from opendml.targets.cuda.pattern import Mode
from opendml.targets.cuda.position_source import positions, step_of
from opendml.targets.cuda.source import Printer

_ARGUMENTS = "const Parameters& p, const Offsets& at"


class PlacingPrinter(Printer):
    """Prints what kernels/scatter.cuh and scatter_lines.cuh are written in."""

    def text(self) -> str:
        """All of it."""
        placed = self.values[0]
        lines, name = self._compute(placed.operands, {}, self._group_load)
        types = f"typedef {TYPES[placed.operands[0].type]} Element;\ntypedef {TYPES[placed.type]} Placed;"
        # What is scattered is the position if it stays as it is.
        signature = f"Element element({_ARGUMENTS}, Placed& value)"
        if placed.operation is Operation.SCATTER_SUM:
            lines.append(f"value = {name(placed.operands[1])};")
        parts = [
            self._constants(),
            Parameters(self.pattern).declaration(),
            *positions(self.pattern),
            types,
            function(signature, [*lines, f"return {name(placed.operands[0])};"]),
            "// At the start of a line.",
            function(f"void put({_ARGUMENTS}, long long place, Placed number)", self._puts(placed.operation)),
        ]
        return "\n\n".join(parts)

    def _puts(self, operation: Operation) -> list[str]:
        """A number to a place of each store."""
        put = {
            Operation.SCATTER: "atomicMax((Placed*)({}), number);",
            Operation.SCATTER_SUM: "atomicAdd((unsigned long long*)({}), (unsigned long long)number);",
        }[operation]
        if self.pattern.mode is Mode.SCATTER_LINES:
            put = "*(Placed*)({}) = number;"
        return [
            put.format(f"{self._address(number)} + place * {step_of(self.pattern, number)}")
            for number, _, _ in self.stores
        ]
