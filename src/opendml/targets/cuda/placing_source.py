"""The printers of kernels that scatter along lines, or find positions, one element at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opendml.program.node import REDUCTIONS, Node, Operation, ordered
from opendml.targets.common.lines import placing_in
from opendml.targets.cuda.cxx import function
from opendml.targets.cuda.expression import TYPES
from opendml.targets.cuda.parameters import ParameterStruct
from opendml.targets.cuda.pattern import CudaAccess, CudaMode
from opendml.targets.cuda.position_source import positions, step_of
from opendml.targets.cuda.source import Printer

_Store = tuple[int, CudaAccess, Node]
_ARGUMENTS = "const Parameters& p, const Offsets& at"


class PlacingPrinter(Printer):
    """Prints the functions that kernels/scatter.cuh and scatter_lines.cuh call."""

    def text(self) -> str:
        """Return the source that the kernel files need."""
        placed = placing_in(self.values).node
        lines, name = self._compute(placed.operands, {}, self._group_load)
        types = f"typedef {TYPES[placed.operands[0].type]} Element;\ntypedef {TYPES[placed.type]} Placed;"
        # The value is the position unless the function changes it.
        signature = f"Element element({_ARGUMENTS}, Placed& value)"
        if placed.operation is Operation.SCATTER_SUM:
            lines.append(f"value = {name(placed.operands[1])};")
        parts = [
            self._constants(),
            ParameterStruct(self.pattern).declaration(),
            *positions(self.pattern),
            types,
            function(signature, [*lines, f"return {name(placed.operands[0])};"]),
            "// At the start of a line.",
            function(f"void put({_ARGUMENTS}, long long place, Placed number)", self._puts(placed.operation)),
        ]
        return "\n\n".join(parts)

    def _puts(self, operation: Operation) -> list[str]:
        """Return statements that put a number to a place by each store."""
        put = {
            Operation.SCATTER: "atomicMax((Placed*)({}), number);",
            Operation.SCATTER_SUM: "atomicAdd((unsigned long long*)({}), (unsigned long long)number);",
        }[operation]
        if self.pattern.mode is CudaMode.SCATTER_LINES:
            put = "*(Placed*)({}) = number;"
        return [
            put.format(f"{self._address(number)} + place * {step_of(self.pattern, number)}")
            for number, _, _ in self.stores
        ]


class PositionsPrinter(Printer):
    """Prints the functions that kernels/positions.cuh calls."""

    def text(self) -> str:
        """Return the source that the kernel file needs."""
        placed = placing_in(self.values).node
        (found,) = placed.operands
        lines, name = self._compute([found], {}, self._group_load)
        counts = {id(node): f"({TYPES[node.type]})all" for node in self.nodes if node.operation in REDUCTIONS}
        of_elements = [store for store in self.stores if placed in ordered([store[-1]], counts)]
        of_lines = [store for store in self.stores if store not in of_elements]
        row = dict(self.pattern.constants)["ROW"]
        position = self._puts(of_elements, {id(placed): "position"}, row)
        parts = [
            self._constants(),
            ParameterStruct(self.pattern).declaration(),
            *positions(self.pattern),
            f"typedef {TYPES[placed.type]} Position;",
            function(f"bool holds({_ARGUMENTS})", [*lines, f"return {name(found)};"]),
            function(f"void put({_ARGUMENTS}, Position position)", position),
            "// The results of the number of positions.",
            function(f"void put_number({_ARGUMENTS}, Index all)", self._puts(of_lines, counts, 1)),
        ]
        return "\n\n".join(parts)

    def _puts(self, stores: Sequence[_Store], known: Mapping[int, str], row: int) -> list[str]:
        """Return statements that store results of known values, `row` neighbours at a time."""
        lines, name = self._compute([root for *_, root in stores], dict(known), self._group_load)
        for first in range(0, len(stores), row):
            number, access, _ = stores[first]
            type = TYPES[access.type]
            values = ", ".join(f"({type}){name(root)}" for *_, root in stores[first : first + row])
            lines.append(f"store({self._address(number)}, Vector<{type}, {row}>{{{{{values}}}}});")
        return lines
