"""Prints contractions in tiles: the operands, and what is made of the sums."""

from __future__ import annotations

from opendml.program.node import Node, Operation, ordered
from opendml.program.scalar_type import ScalarType
from opendml.targets.cuda.cxx import function
from opendml.targets.cuda.expression import TYPES
from opendml.targets.cuda.parameters import Parameters
from opendml.targets.cuda.pattern import Mode, Pattern
from opendml.targets.cuda.position_source import loops_of_rows, positions
from opendml.targets.cuda.source import Printer

_POSITIONS = "const Parameters& p, Offsets to, Index at"
_ARGUMENTS = "const Parameters& p, const Offsets& at"


class ContractionPrinter(Printer):
    """Prints what kernels/contraction.cuh is written in."""

    def __init__(self, pattern: Pattern) -> None:
        super().__init__(pattern)
        self.contraction = contraction_of(self.values)

    def text(self) -> str:
        """All of it."""
        constants = dict(self.pattern.constants)
        parts = [self._constants(), Parameters(self.pattern).declaration(), *positions(self.pattern)]
        first = 0
        for role in ("m", "n", "k"):
            last = first + constants[f"LOOPS_{role.upper()}"]
            lines = [*loops_of_rows(self.pattern, first, last), "return to;"]
            parts.append(function(f"Offsets at_{role}({_POSITIONS})", lines))
            first = last
        along_k = range(constants["LOOPS_M"] + constants["LOOPS_N"], self.pattern.row_loops)
        lines = [
            f"to.a{number} += by.a{number};"
            for number, access in enumerate(self.pattern.accesses)
            if any(access.rows[loop] for loop in along_k)
        ]
        parts.append(function("Offsets moved(Offsets to, const Offsets& by)", [*lines, "return to;"]))
        parts.append(f"typedef {TYPES[self.contraction.type]} Sum;")
        for name, rows, operand in zip(("A", "B"), ("m", "n"), self.contraction.operands, strict=True):
            parts.append(self._operand(name, rows, operand))
        return "\n\n".join([*parts, self._results()])

    def _operand(self, name: str, rows: str, value: Node) -> str:
        constants = dict(self.pattern.constants)
        if self.pattern.mode is Mode.MMA:
            value = stored_half(value)
        copied = constants[f"{name}_COPIED"]
        size = "ROWS" if name == "A" else "COLUMNS_OF_TILE"
        # FLOAT16 lies as tensor cores want it either way; others by k.
        by_row = bool(constants[f"{name}_ALONG_K"]) and self.pattern.mode is Mode.MMA
        pitch = f"{'DEPTH' if by_row else 'ROWS'} + {16 // value.type.bytes}"
        slot = "row * PITCH + k" if by_row else "k * PITCH + row"
        lines = [
            f"typedef {TYPES[value.type]} Element;",
            f"static constexpr int ROWS = ::{size}, UNIT = {name}_UNIT, PITCH = {pitch};",
            f"static constexpr int SIZE = {'ROWS' if by_row else 'DEPTH'} * PITCH;",
            f"static constexpr bool ALONG_K = {name}_ALONG_K, COPIED = {name}_COPIED;",
            f"DEVICE_MEMBER static constexpr int slot(int row, int k) {{ return {slot}; }}",
            f"DEVICE_MEMBER static Offsets at_row({_POSITIONS}) {{ return at_{rows}(p, to, at); }}",
        ]
        lines += self._place(value) if copied else self._value(value)
        return "\n".join([f"struct {name} {{", *(f"    {line}" for line in lines), "};"])

    def _place(self, value: Node) -> list[str]:
        """Where an operand that is only loaded lies, and whether it is read there."""
        lines, name = self._compute(value.operands, {}, self._group_load)
        guard, *distances = [name(operand) for operand in value.operands] or ["true"]
        address = " + ".join([self._address(int(value.attribute)), *distances])  # type: ignore[arg-type]
        return [
            f"DEVICE_MEMBER static const char* place({_ARGUMENTS}, bool& there) {{",
            *(f"    {line}" for line in [*lines, f"there = {guard};", f"return {address};"]),
            "}",
        ]

    def _value(self, value: Node) -> list[str]:
        lines, name = self._compute([value], {}, self._group_load)
        return [
            f"DEVICE_MEMBER static Element value({_ARGUMENTS}) {{",
            *(f"    {line}" for line in [*lines, f"return {name(value)};"]),
            "}",
        ]

    def _results(self) -> str:
        """The results that are made of one sum."""
        lines, name = self._compute(
            [root for _, _, root in self.stores], {id(self.contraction): "sum"}, self._group_load
        )
        lines += [f"store({self._address(number)}, {name(root)});" for number, _, root in self.stores]
        return function(f"void store_results({_ARGUMENTS}, Sum sum)", lines)


def contraction_of(values: tuple[Node, ...]) -> Node:
    """The contraction that a kernel computes."""
    return next(node for node in ordered(values) if node.operation is Operation.CONTRACTION)


def stored_half(value: Node) -> Node:
    """The load of an operand that is a widened FLOAT16 one; else the operand itself."""
    if value.operation is not Operation.CONVERT or value.operands[0].operation is not Operation.SOURCE:
        return value
    return value.operands[0] if value.operands[0].type is ScalarType.FLOAT16 else value
