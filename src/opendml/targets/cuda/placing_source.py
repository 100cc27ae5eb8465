"""Prints kernels that place along lines: one element at a time."""

from __future__ import annotations

from opendml.program.node import Operation
from opendml.targets.cuda.cxx import function
from opendml.targets.cuda.expression import TYPES
from opendml.targets.cuda.parameters import Parameters
from opendml.targets.cuda.position_source import positions, step_of
from opendml.targets.cuda.source import Printer

_ARGUMENTS = "const Parameters& p, const Offsets& at"


class PlacingPrinter(Printer):
    """Prints what kernels/scatter.cuh and kernels/top.cuh are written in."""

    def text(self) -> str:
        """All of it."""
        placed = self.values[0]
        (operand,) = placed.operands
        lines, name = self._compute([operand], {}, self._group_load)
        targets = [
            f"{self._address(number)} + place * {step_of(self.pattern, number)}"
            for number, _, _ in self.stores
        ]
        if placed.operation is Operation.SCATTER:
            puts = [f"atomicMax((Position*)({target}), position);" for target in targets]
        else:
            puts = [f"store({target}, position);" for target in targets]
        return "\n\n".join(
            [
                self._constants(),
                Parameters(self.pattern).declaration(),
                *positions(self.pattern),
                f"typedef {TYPES[operand.type]} Element;\ntypedef {TYPES[placed.type]} Position;",
                function(f"Element element({_ARGUMENTS})", [*lines, f"return {name(operand)};"]),
                "// At the start of a line.",
                function(f"void put({_ARGUMENTS}, long long place, Position position)", puts),
            ]
        )
