"""Prints kernels that find the least elements of lines, in units of neighbouring elements."""

from __future__ import annotations

from opendml.targets.cuda.cxx import function, template
from opendml.targets.cuda.expression import TYPES
from opendml.targets.cuda.parameters import ParameterStruct
from opendml.targets.cuda.position_source import positions, step_of
from opendml.targets.cuda.source import Printer


class TopPrinter(Printer):
    """Prints what kernels/words.cuh, kernels/top.cuh and kernels/sort.cuh are written in."""

    def text(self) -> str:
        """All of it."""
        parts = [self._constants(), ParameterStruct(self.pattern).declaration(), *positions(self.pattern)]
        return "\n\n".join([*parts, self._structures(), *self._loading(), *self._top()])

    def _top(self) -> list[str]:
        placed = self.values[0]
        (key,) = placed.operands
        given, given_name = self._compute(self.kept, {}, self._inline_load)
        given += [f"to.{self.names[id(node)]} = {given_name(node)};" for node in self.kept]
        kept = {id(node): f"kept.{self.names[id(node)]}" for node in self.kept}
        lines, name = self._compute([key], kept, self._element_load)
        puts = [
            f"store({self._address(number)} + place * {step_of(self.pattern, number)}, number);"
            for number, _, _ in self.stores
        ]
        element = "const Parameters& p, const Held<V>& held, const Kept& kept, int lane"
        return [
            f"typedef {TYPES[key.type]} Element;\ntypedef {TYPES[placed.type]} Placed;",
            function("void load_kept(Kept& to, const Parameters& p, const Offsets& at)", given),
            template(f"Element key_of({element})", [*lines, f"return {name(key)};"]),
            "// At the start of a line.",
            function(
                "void put(const Parameters& p, const Offsets& at, long long place, Placed number)", puts
            ),
        ]
