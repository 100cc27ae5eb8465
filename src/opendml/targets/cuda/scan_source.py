"""The printer of kernels of running sums and products, in units of neighbouring elements."""

from __future__ import annotations

from opendml.targets.common.accumulations import accumulation_of
from opendml.targets.common.lines import scan_in
from opendml.targets.cuda.cxx import function, template
from opendml.targets.cuda.expression import CUDA, TYPES, literal
from opendml.targets.cuda.parameters import ParameterStruct
from opendml.targets.cuda.position_source import item_position, positions
from opendml.targets.cuda.source import Printer


class ScanPrinter(Printer):
    """Prints the functions that kernels/scan.cuh calls."""

    def text(self) -> str:
        """Return the source that the kernel file needs."""
        parts = [self._constants(), ParameterStruct(self.pattern).declaration(), *positions(self.pattern)]
        parts += [item_position(self.pattern), self._structures(), *self._loading(), *self._storing()]
        return "\n\n".join([*parts, *self._scan()])

    def _scan(self) -> list[str]:
        line = scan_in(self.values)
        scan = line.node
        total, type = accumulation_of((scan,)), TYPES[scan.type]
        identity = literal(total.start[0].number, scan.type)
        (merged,) = total.merge
        given, given_name = self._compute(self.kept, {}, self._inline_load)
        given += [f"to.{self.names[id(node)]} = {given_name(node)};" for node in self.kept]
        kept = {id(node): f"kept.{self.names[id(node)]}" for node in self.kept}
        operand, name = self._compute(scan.operands, kept, self._element_load)
        together = CUDA.expression(merged, ["a", "b"])
        return [
            f"typedef {type} Scanned;",
            f"constexpr bool EXCLUSIVE = {int(line.exclusive)}, REVERSE = {int(line.reverse)};",
            f"#define IDENTITY ({type})({identity})",
            function("void load_kept(Kept& to, const Parameters& p, const Offsets& at)", given),
            template(
                "Scanned scanned(const Parameters& p, const CollectiveInputs<V>& collective, "
                "const Kept& kept, int lane)",
                [*operand, f"return {name(scan.operands[0])};"],
            ),
            function("Scanned put_together(Scanned a, Scanned b)", [f"return {together};"]),
            self._evaluation(kept | {id(scan): "running"}, "const Kept& kept, Scanned running"),
        ]
