"""Prints contractions in tiles: the operands, and what is made of the sums."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.compiler.kernel import number_of
from opendml.program.carriers import bits_of_bfloat16
from opendml.program.node import Node, Operation, ordered
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.differences import difference
from opendml.targets.common.guards import loads_of
from opendml.targets.common.pattern import Step
from opendml.targets.cuda.cxx import function
from opendml.targets.cuda.expression import TYPES
from opendml.targets.cuda.parameters import ParameterStruct
from opendml.targets.cuda.pattern import SHORT_TILES, CudaMode
from opendml.targets.cuda.position_source import loops_of_rows, positions, step_of
from opendml.targets.cuda.source import Printer

SHORT_TYPES = (ScalarType.FLOAT16, ScalarType.UINT16)
"""Types of 16 bits that tensor cores multiply: FLOAT16, and UINT16 with the bits of BFLOAT16."""
POSITIONS = "const Parameters& p, Offsets to, Index at"
_ARGUMENTS = "const Parameters& p, const Offsets& at"


class TilePrinter(Printer):
    """Prints what kernels of tiles have in common: where the loops of each role lead, and operands."""

    def head(self, *roles: str) -> list[str]:
        """Return the constants, the parameters, and the positions along the loops of roles."""
        constants = dict(self.pattern.constants)
        parts = [self._constants(), ParameterStruct(self.pattern).declaration(), *positions(self.pattern)]
        first = 0
        for role in roles:
            last = first + constants[f"LOOPS_{role.upper()}"]
            lines = [*loops_of_rows(self.pattern, first, last), "return to;"]
            parts.append(function(f"Offsets at_{role}({POSITIONS})", lines))
            first = last
        along_k = range(first - constants[f"LOOPS_{roles[-1].upper()}"], first)
        lines = [
            f"to.a{number} += by.a{number};"
            for number, access in enumerate(self.pattern.accesses)
            if any(access.rows[loop] for loop in along_k)
        ]
        moved = function("Offsets moved(Offsets to, const Offsets& by)", [*lines, "return to;"])
        return [*parts, moved]

    def operand(self, name: str, value: Node, rows: tuple[str, str], depth: tuple[str, str]) -> str:
        """Print an operand. The arguments have the role of the loops for both directions of its tiles, and
        the constant that says how long they are."""
        constants = dict(self.pattern.constants)
        more = []
        if self.pattern.mode in SHORT_TILES:
            value = stored_of(value)
        if self.pattern.mode is CudaMode.IMMA:
            value, *subtracted = difference(value) or ()
            more = self._shift(subtracted)
        copied, by_row, unit = (constants[f"{name}_{key}"] for key in ("COPIED", "BY_ROW", "UNIT"))
        pitch = f"{'DEPTH' if by_row else 'ROWS'} + {16 // value.type.bytes}"
        slot = "row * PITCH + k" if by_row else "k * PITCH + row"
        lines = [
            f"typedef {TYPES[value.type]} Element;",
            f"static constexpr int ROWS = ::{rows[1]}, DEPTH = ::{depth[1]}, UNIT = {name}_UNIT;",
            f"static constexpr int PITCH = {pitch}, SIZE = {'ROWS' if by_row else 'DEPTH'} * PITCH;",
            f"static constexpr bool ALONG_K = {name}_ALONG_K, BY_ROW = {name}_BY_ROW;",
            f"static constexpr bool COPIED = {name}_COPIED, PARTIAL = {name}_PARTIAL;",
            f"static constexpr bool COMPUTED = {name}_COMPUTED;",
            f"static constexpr int QUAD = {name}_QUAD;",
            f"DEVICE_MEMBER static constexpr int slot(int row, int k) {{ return {slot}; }}",
            f"DEVICE_MEMBER static Offsets at_row({POSITIONS}) {{ return ::at_{rows[0]}(p, to, at); }}",
            f"DEVICE_MEMBER static Offsets at_k({POSITIONS}) {{ return ::at_{depth[0]}(p, to, at); }}",
        ]
        if constants[f"{name}_COMPUTED"]:
            access = self._computed(name, value)
        else:
            access = self._place(value) if copied or unit > 1 else self._value(value)
        lines += [*more, *access]
        return "\n".join([f"struct {name} {{", *(f"    {line}" for line in lines), "};"])

    def _place(self, value: Node) -> list[str]:
        """Return the function that gives the address of an operand that is only loaded, and its guard."""
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

    def _computed(self, name: str, value: Node) -> list[str]:
        """Return how a unit of neighbours is read, and how its elements are computed of what was read."""
        members, reads = list[str](), list[str]()
        partial = dict(self.pattern.constants)[f"{name}_PARTIAL"]
        for number in sorted(loads_of([value])):
            access, type = self.pattern.loads[number], TYPES[self.pattern.loads[number].type]
            if access.step is Step.NONE:
                members.append(f"{type} l{number};")
                reads.append(f"to.l{number} = {self._inline_load(number)};")
                continue
            is_whole = access.step is Step.CONTIGUOUS
            arguments = f"to.l{number}, {self._address(number)}"
            step = step_of(self.pattern, number)
            members.append(f"Vector<{type}, UNIT> l{number};")
            if partial:
                reads.append(f"load_lanes<{str(is_whole).lower()}>({arguments}, {step}, count);")
            else:
                reads.append(f"load({arguments});" if is_whole else f"gather({arguments}, {step});")

        def lane(number: int, *_: str) -> str:
            is_still = self.pattern.loads[number].step is Step.NONE
            return f"from.l{number}" if is_still else f"from.l{number}.data[lane]"

        lines, named = self._compute([value], {}, lane)
        return [
            f"struct Read {{ {' '.join(members)} }};",
            f"DEVICE_MEMBER static void read(Read& to, {_ARGUMENTS}, int count) {{",
            *(f"    {line}" for line in reads),
            "}",
            "DEVICE_MEMBER static Element value(const Parameters& p, const Read& from, int lane) {",
            *(f"    {line}" for line in [*lines, f"return {named(value)};"]),
            "}",
        ]

    def _shift(self, subtracted: Sequence[Node]) -> list[str]:
        """Return the function of the number that is subtracted from all elements of a row, 0 without one."""
        lines, name = self._compute(subtracted, {}, self._group_load)
        shift = name(subtracted[0]) if subtracted else "0"
        return [
            f"static constexpr bool SHIFTED = {str(bool(subtracted)).lower()};",
            f"DEVICE_MEMBER static int shift({_ARGUMENTS}) {{",
            *(f"    {line}" for line in [*lines, f"return {shift};"]),
            "}",
        ]

    def unit_of_results(self, total: Node, unit: int) -> str:
        """Print a function that makes the results of neighbouring sums, of which the first `count` are there.

        A unit of several sums has no guarded loads.
        """
        roots = [root for _, _, root in self.stores]
        arguments = f"{_ARGUMENTS}, const {TYPES[total.type]} (&sums)[{unit}], int count"
        if unit == 1:
            lines, name = self._compute(roots, {id(total): "sums[0]"}, self._group_load)
            lines += [f"store({self._address(number)}, {name(root)});" for number, _, root in self.stores]
            return function(f"void store_unit({arguments})", lines)
        before, after = [], []
        for number in loads_beside(total, roots):
            before += self._load_unit(number, unit)
        lines, name = self._compute(roots, {id(total): "sums[lane]"}, self._lane_load)
        for number, access, root in self.stores:
            before.append(f"Vector<{TYPES[access.type]}, {unit}> s{number};")
            lines.append(f"s{number}.data[lane] = {name(root)};")
            after.append(
                f"store_lanes<{self._is_whole(number)}>({self._address(number)}, s{number}, "
                f"{step_of(self.pattern, number)}, count);"
            )
        loop = f"for (int lane = 0; lane < {unit}; lane++) {{"
        body = [*before, "#pragma unroll", loop, *(f"    {line}" for line in lines), "}", *after]
        return function(f"void store_unit({arguments})", body)

    def _load_unit(self, number: int, unit: int) -> list[str]:
        """Return the statements that load what the results need beside the sums."""
        access, type = self.pattern.loads[number], TYPES[self.pattern.loads[number].type]
        if access.counter:
            return []
        if access.step is Step.NONE:
            return [f"const {type} l{number} = {self._inline_load(number)};"]
        step = step_of(self.pattern, number)
        return [
            f"Vector<{type}, {unit}> l{number};",
            f"load_lanes<{self._is_whole(number)}>(l{number}, {self._address(number)}, {step}, count);",
        ]

    def _lane_load(self, number: int) -> str:
        """Return the expression of a load in a lane of the unit."""
        access = self.pattern.loads[number]
        if access.counter:
            return self._inline_load(number, "lane")
        return f"l{number}" if access.step is Step.NONE else f"l{number}.data[lane]"

    def _is_whole(self, number: int) -> str:
        return str(self.pattern.accesses[number].step is Step.CONTIGUOUS).lower()


class ContractionPrinter(TilePrinter):
    """Prints what kernels/contraction.cuh is written in."""

    def text(self) -> str:
        """Return all of the generated code."""
        contraction = contraction_of(self.values)
        a, b = contraction.operands
        parts = [*self.head("m", "n", "k"), f"typedef {TYPES[contraction.type]} Sum;"]
        parts.append(self.operand("A", a, ("m", "ROWS"), ("k", "DEPTH")))
        parts.append(self.operand("B", b, ("n", "COLUMNS_OF_TILE"), ("k", "DEPTH")))
        return "\n\n".join([*parts, self.unit_of_results(contraction, dict(self.pattern.constants)["UNIT"])])


def contraction_of(values: tuple[Node, ...]) -> Node:
    """Return the contraction that a kernel computes."""
    return next(node for node in ordered(values) if node.operation is Operation.CONTRACTION)


def loads_beside(total: Node, roots: Sequence[Node]) -> list[int]:
    """Return the numbers of the loads that results need beside the sum that they are made of."""
    return [number_of(node) for node in ordered(roots, {id(total)}) if node.operation is Operation.SOURCE]


def stored_of(value: Node) -> Node:
    """Return the FLOAT16 value, or the bits of BFLOAT16, that was widened to an operand; else the operand."""
    return bits_of_bfloat16(value) or half_of(value)


def half_of(value: Node) -> Node:
    """Return the FLOAT16 value, loaded or computed, that was widened to an operand; else the operand."""
    is_half = value.operation is Operation.CONVERT and value.operands[0].type is ScalarType.FLOAT16
    return value.operands[0] if is_half else value
