"""The printer of kernels that find the least elements of lines, in units of neighbouring elements."""

from __future__ import annotations

from opendml.targets.common.lines import placing_in, word_is_less
from opendml.targets.cuda.cxx import function, template
from opendml.targets.cuda.expression import TYPES
from opendml.targets.cuda.parameters import ParameterStruct
from opendml.targets.cuda.position_source import positions, step_of
from opendml.targets.cuda.reduction_source import assigned
from opendml.targets.cuda.source import Printer

_WORDS = ("mine", "position", "other", "other_position")
"""The arguments of the order of words: key and position of one, then of the other."""


class TopPrinter(Printer):
    """Prints the functions that kernels/words.cuh, kernels/top.cuh and kernels/sort.cuh call."""

    def text(self) -> str:
        """Return the source that the kernel files need."""
        parts = [self._constants(), ParameterStruct(self.pattern).declaration(), *positions(self.pattern)]
        return "\n\n".join([*parts, self._structures(), *self._loading(), *self._top()])

    def _top(self) -> list[str]:
        placing = placing_in(self.values)
        placed, (key,) = placing.node, placing.operands
        given, given_name = self._compute(self.kept, {}, self._inline_load)
        given += [f"to.{self.names[id(node)]} = {given_name(node)};" for node in self.kept]
        kept = {id(node): f"kept.{self.names[id(node)]}" for node in self.kept}
        lines, name = self._compute([key], kept, self._element_load)
        puts = [
            f"store({self._address(number)} + place * {step_of(self.pattern, number)}, number);"
            for number, _, _ in self.stores
        ]
        element = "const Parameters& p, const CollectiveInputs<V>& collective, const Kept& kept, int lane"
        return [
            f"typedef {TYPES[key.type]} Element;\ntypedef {TYPES[placed.type]} Placed;",
            function("void load_kept(Kept& to, const Parameters& p, const Offsets& at)", given),
            template(f"Element key_of({element})", [*lines, f"return {name(key)};"]),
            function(
                "bool is_before(Element mine, unsigned position, Element other, unsigned other_position)",
                [
                    "bool less;",
                    *assigned(["less"], [word_is_less(key.type)], _WORDS, "word"),
                    "return less;",
                ],
            ),
            "// At the start of a line.",
            function(
                "void put(const Parameters& p, const Offsets& at, long long place, Placed number)", puts
            ),
        ]
