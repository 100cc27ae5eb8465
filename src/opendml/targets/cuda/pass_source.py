"""Prints kernels that reduce in any way, in several passes over units that blocks keep or read again."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.program.node import Node
from opendml.targets.common.pattern import Level
from opendml.targets.cuda.cxx import function, template
from opendml.targets.cuda.group_source import GroupPrinter, Name
from opendml.targets.cuda.parameters import ParameterStruct
from opendml.targets.cuda.position_source import item_position, positions


class PassPrinter(GroupPrinter):
    """Prints what kernels/passes.cuh and kernels/resident.cuh are written in."""

    def text(self) -> str:
        """All of it."""
        kept = {id(node): f"kept.{self.names[id(node)]}" for node in self.kept}
        parts = [self._constants(), ParameterStruct(self.pattern).declaration(), *positions(self.pattern)]
        parts.append(item_position(self.pattern))
        parts += [self._structures(), *self._loading(), *self._storing(), *self._reductions()]
        return "\n\n".join([*parts, self._finishing(), self._evaluation(kept, "const Kept& kept")])

    def _finishing(self) -> str:
        """What the elements' results need of the group."""
        lines, name = self._compute(self.kept, self._found(), self._inline_load)
        lines += [f"to.{self.names[id(node)]} = {name(node)};" for node in self.kept]
        arguments = "Kept& to, const Parameters& p, const Offsets& at, const Found& found"
        return function(f"void finish({arguments})", lines)

    def _element_value(self, number: int, *guard: str) -> str:
        if self.pattern.level(self.pattern.loads[number]) is Level.ELEMENT:
            return self._element_load(number)
        return self._group_load(number, *guard)

    def _taken(self, operand: Node, name: Name) -> str:
        return name(operand)

    def _taking_in(
        self, number: int, operands: Sequence[Node], lines: list[str], name: Name, adding: list[str]
    ) -> list[str]:
        head = f"void take_in(Number<{number}>, States{number}& to"
        return [self._element_function(head, [*lines, *adding])]

    def _element_function(self, head: str, lines: Sequence[str]) -> str:
        unit = "const Parameters& p, const Held<V>& held, const Offsets& at"
        return template(f"{head}, {unit}, const Found& found, int lane)", lines)
