"""Prints sums of few products: where both operands lie, and what is made of the sums."""

from __future__ import annotations

from opendml.compiler.kernel import number_of
from opendml.targets.cuda.contraction_source import TilePrinter, contraction_of, stored_of
from opendml.targets.cuda.cxx import function
from opendml.targets.cuda.expression import TYPES

ROLES = ("images", "lines", "pixels", "columns", "k")
"""The loops over rows of the pattern: over rows of the product from the outermost one inwards, over its
columns, and over what is summed. Of the first three, a loop of one step is left out."""
UNIT = 8
"""Neighbouring results that a thread makes at a time."""


class ShortSumsPrinter(TilePrinter):
    """Prints what kernels/short_sums.cuh is written in."""

    def text(self) -> str:
        """Return all of the generated code."""
        constants, total = dict(self.pattern.constants), contraction_of(self.values)
        images, filters = (
            number_of(stored_of(total.operands[number]))
            for number in (constants["IMAGES"], 1 - constants["IMAGES"])
        )
        arguments = "const Parameters& p, const Offsets& at"
        return "\n\n".join(
            [
                *self.head(*ROLES),
                f"typedef {TYPES[self.pattern.loads[images].type]} Element;",
                function(
                    f"const char* image_at({arguments})", [f"return {self._address(images)} + p.before;"]
                ),
                function(f"const char* filters_at({arguments})", [f"return {self._address(filters)};"]),
                self.unit_of_results(total, UNIT),
            ]
        )
