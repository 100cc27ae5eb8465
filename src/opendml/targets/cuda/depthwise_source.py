"""Prints depthwise convolutions: where images and filters lie, and what is made of the sums."""

from __future__ import annotations

from opendml.compiler.kernel import number_of
from opendml.targets.cuda.contraction_source import TilePrinter, contraction_of, stored_of
from opendml.targets.cuda.cxx import function
from opendml.targets.cuda.expression import TYPES

ROLES = ("images", "lines", "pixels", "lines_of_taps", "taps")
"""The loops over rows of the pattern: over results, from the outermost one inwards, then over taps. A loop of
one step is left out."""


class DepthwisePrinter(TilePrinter):
    """Prints what kernels/depthwise.cuh is written in."""

    def text(self) -> str:
        """Return all of the generated code."""
        constants, total = dict(self.pattern.constants), contraction_of(self.values)
        images = stored_of(total.operands[constants["IMAGES"]])
        filters = total.operands[1 - constants["IMAGES"]]
        lines, name = self._compute([filters], {}, self._group_load)
        arguments = "const Parameters& p, const Offsets& at"
        load = number_of(images)
        return "\n\n".join(
            [
                *self.head(*ROLES),
                f"typedef {TYPES[images.type]} Pixel;",
                function(f"float filter({arguments})", [*lines, f"return {name(filters)};"]),
                function(f"const char* image_at({arguments})", [f"return {self._address(load)} + p.before;"]),
                self.unit_of_results(total, self.pattern.vector),
            ]
        )
