"""Prints a pattern as CUDA C++: what depends on the pattern, around the mode's code in `kernels`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

from opendml.program import vector_math
from opendml.program.node import FUNCTIONS, REDUCTIONS, SCANS, Node, Operation, ordered, rebuild
from opendml.program.rarely import always_needed, is_rare
from opendml.program.scalar_type import ScalarType
from opendml.targets.cuda import narrow_math
from opendml.targets.cuda.expression import TYPES, expression, literal
from opendml.targets.cuda.near_division import with_near_quotients
from opendml.targets.cuda.parameters import Parameters
from opendml.targets.cuda.pattern import AccessPattern, Form, Level, Mode, Pattern, Step, reduced

_FILES = {
    Mode.POINTWISE: ("pointwise",),
    Mode.TRANSPOSED: ("transposed",),
    Mode.WARPS: ("moments", "warps"),
    Mode.STAGED: ("moments", "staged"),
    Mode.TILE: ("moments", "block", "tile"),
    Mode.HELD: ("moments", "block", "alone", "held"),
    Mode.SPREAD: ("moments", "block", "meeting", "held"),
    Mode.TEAM: ("moments", "block", "meeting", "team"),
    Mode.REDUCE: ("reduce",),
    Mode.SCAN: ("scan",),
}
"""The files of each mode, after those that all have and what is printed."""

_COLLECTIVE = (Mode.REDUCE, Mode.SCAN)
"""The modes that `group_source` prints for."""


def kernel_source(pattern: Pattern) -> str:
    """The whole source; its function is `kernel`."""
    from opendml.targets.cuda.group_source import GroupPrinter

    printer = (GroupPrinter if pattern.mode in _COLLECTIVE else Printer)(pattern)
    arithmetic = "narrow" if printer.narrow else "exact"
    states = ("accumulate",) if pattern.mode in _COLLECTIVE else ()
    names = ("common", arithmetic, *states, None, *_FILES[pattern.mode])
    return "\n".join(printer.text() if name is None else _file(name) for name in names)


@cache
def _file(name: str) -> str:
    return (Path(__file__).parent / "kernels" / f"{name}.cuh").read_text()


class Printer:
    """Prints structures and functions that the code of all modes is written in.

    Held are the elements that reductions need, Late those that only results need; Given is what is known of a
    group at first, Kept what the results need of it.
    """

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.narrow = all(store.type is ScalarType.FLOAT16 for store in pattern.stores)
        self.values = rebuild(pattern.values, self._expanded)
        self.reduced = reduced(self.values)
        self.nodes = list(ordered(self.values))
        self.names = {id(node): f"v{number}" for number, node in enumerate(self.nodes)}
        self.levels = self._levels()
        self.stores = [
            (len(pattern.loads) + position, access, root)
            for position, (access, root) in enumerate(zip(pattern.stores, self.values, strict=True))
        ]
        self.held, self.late = self._loads()
        self.given, self.kept = self._boundaries()

    def text(self) -> str:
        """All of it."""
        parts = [self._constants(), Parameters(self.pattern).declaration(), *self._positions()]
        parts += [self._structures(), *self._loading(), *self._storing(), self._evaluation()]
        if self.reduced:
            parts += [
                self._given_values(),
                self._finish(),
                *map(self._reduced_value, range(len(self.reduced))),
            ]
        return "\n\n".join(parts)

    def _expanded(self, node: Node) -> Node:
        if node.operation not in FUNCTIONS:
            return node
        expand = narrow_math.expand if self.narrow else vector_math.expand
        return with_near_quotients(node, expand(node))

    # What is needed where

    def _levels(self) -> dict[int, Level]:
        levels: dict[int, Level] = {}
        for node in self.nodes:
            if node.operation is Operation.SOURCE:
                levels[id(node)] = self.pattern.level(self.pattern.loads[_index(node)])
            elif node.operation in SCANS:
                levels[id(node)] = Level.ELEMENT
            elif node.operation in REDUCTIONS:
                levels[id(node)] = Level.GROUP
            else:
                below = (levels[id(operand)] for operand in node.operands)
                levels[id(node)] = max(below, default=Level.CONSTANT)
        return levels

    def _element_stores(self) -> list[tuple[int, AccessPattern, Node]]:
        return [store for store in self.stores if self.pattern.level(store[1]) is Level.ELEMENT]

    def _group_stores(self) -> list[tuple[int, AccessPattern, Node]]:
        return [store for store in self.stores if self.pattern.level(store[1]) is not Level.ELEMENT]

    def _needed(self, roots: Iterable[Node]) -> list[Node]:
        """The nodes for `roots`, operands first; what is reduced is left out, as the reductions are known."""
        reductions = {id(node) for node in self.nodes if node.operation in REDUCTIONS}
        return list(ordered(roots, reductions))

    def _loads(self) -> tuple[list[int], list[int]]:
        """Numbers of the loads that are held, and of those that come late."""

        def element_loads(roots: Iterable[Node]) -> list[int]:
            return [
                _index(node)
                for node in self._needed(roots)
                if node.operation is Operation.SOURCE and self.levels[id(node)] is Level.ELEMENT
            ]

        if self.pattern.mode is Mode.TRANSPOSED:
            held = [number for number, load in enumerate(self.pattern.loads) if load.turned]
        else:
            held = sorted(element_loads(self.reduced))
        all_loads = element_loads(root for _, _, root in self.stores)
        return held, sorted(number for number in all_loads if number not in held)

    def _boundaries(self) -> tuple[list[Node], list[Node]]:
        """Group values that others need after the group's loads, and those that the elements need."""
        elements = self._needed(root for _, _, root in self._element_stores())
        kept = self._crossing(elements, (Level.GIVEN, Level.GROUP), [r for _, _, r in self._element_stores()])
        kept += [root for _, _, root in self._group_stores() if root not in kept]
        users = [*self._needed(self.reduced), *self._needed(kept)]
        given = self._crossing(users, (Level.GIVEN,), [*kept, *self.reduced])
        return given, kept

    def _crossing(
        self, users: Sequence[Node], levels: tuple[Level, ...], roots: Sequence[Node]
    ) -> list[Node]:
        """Nodes of `levels` that nodes of higher levels among `users` need, or that are roots themselves."""
        highest = max(levels)
        found = {id(o): o for node in users if self.levels[id(node)] > highest for o in node.operands}
        found |= {id(root): root for root in roots}
        return [node for key, node in found.items() if self.levels[key] in levels]

    # Positions

    def _constants(self) -> str:
        needs_given = any(self.levels[id(n)] is Level.GIVEN for n in self._needed(self.reduced))
        quick = all(node.type is ScalarType.FLOAT32 for node in self.reduced)
        constants = {
            "VECTOR": self.pattern.vector,
            "GROUPS": self.pattern.group_loops,
            "COLUMNS": int(self.pattern.columns),
            "REDUCED": len(self.reduced),
            "REDUCED_NEEDS_GIVEN": int(needs_given),
            "FIRST_ATTEMPT": int(not quick),
            "NARROW": int(self.narrow),
            "LONG": int(self.pattern.mode is Mode.TEAM),
            "FORM": Form.PLAIN,
            "RUN": 1,
            "ROWS": 0,
            **dict(self.pattern.constants),
        }
        lines = [f"typedef {'long long' if self.pattern.wide else 'int'} Index;"]
        lines.append(f"typedef {'float' if quick else 'double'} Quick;  // in which sums are taken first")
        lines += [f"constexpr int {name} = {value};" for name, value in constants.items()]
        return "\n".join(lines)

    def _positions(self) -> list[str]:
        accesses = self.pattern.accesses
        offsets = "".join(f" Index a{number};" for number in range(len(accesses)))
        broken = self._broken()
        if broken:
            offsets += "".join(f" Index next{number};" for number in broken) + " Index row; int turn;"
        in_row = [
            f"to.a{number} += at * V * (Index){self._step(number)};"
            for number, access in enumerate(accesses)
            if access.step not in (Step.NONE, Step.BROKEN)
        ]
        if broken:
            in_group = [
                "const Index row = divide(unit * V, p.inner), last = p.rows - 1;",
                "to = in_row<V>(p, to, unit);",
                "to.row = row;",
                "to.turn = (int)((row + 1) * (Index)p.inner.count - unit * V);",
                "const Offsets next = at_row(p, to, row < last ? row + 1 : last);",
                *(f"to.next{number} = next.a{number};" for number in broken),
                "return at_row(p, to, row);",
            ]
        elif self.pattern.flat:
            in_group = ["return in_row<V>(p, to, unit);"]
        elif self.pattern.columns or self.pattern.mode in (Mode.POINTWISE, Mode.TRANSPOSED):
            in_group = ["return at_row(p, to, unit);"]
        elif self.pattern.row_loops:
            in_group = [
                "const Index row = divide(unit, p.inner);",
                "return in_row<V>(p, at_row(p, to, row), unit - row * (Index)p.inner.count);",
            ]
        else:
            in_group = ["return in_row<V>(p, to, unit);"]
        return [
            "// Bytes from the first element of each access; where units run over the ends of rows, also\n"
            "// those in the next row, and the lane with which that begins.\n"
            f"struct Offsets {{{offsets} }};",
            function(
                "Offsets at_group(const Parameters& p, Index at)",
                ["Offsets to = {};", *self._loops("group", self.pattern.group_loops), "return to;"],
            ),
            function(
                "Offsets at_row(const Parameters& p, Offsets to, Index at)",
                [*self._loops("row", self.pattern.row_loops), "return to;"],
            ),
            _template("Offsets in_row(const Parameters& p, Offsets to, Index at)", [*in_row, "return to;"]),
            _template("Offsets in_group(const Parameters& p, Offsets to, Index unit)", in_group),
        ]

    def _broken(self) -> list[int]:
        """The accesses that change at the ends of rows, within units."""
        return [number for number, a in enumerate(self.pattern.accesses) if a.step is Step.BROKEN]

    def _loops(self, kind: str, count: int) -> list[str]:
        """Splits the index `at` into the indices of nested loops, and moves `to` along each."""
        lines = ["Index rest, index;"] if count else []
        for loop in reversed(range(count)):
            if loop:
                lines.append(f"rest = divide(at, p.{kind}_count{loop});")
                lines.append(f"index = at - rest * (Index)p.{kind}_count{loop}.count;")
                lines.append("at = rest;")
            else:
                lines.append("index = at;")
            for number, access in enumerate(self.pattern.accesses):
                if (access.groups if kind == "group" else access.rows)[loop]:
                    lines.append(f"to.a{number} += index * (Index)p.{kind}{number}_{loop};")
        return lines

    def _step(self, number: int) -> str:
        """Bytes from one element to the next along the innermost loop."""
        access = self.pattern.accesses[number]
        return f"p.step{number}" if access.step is Step.STRIDED else str(access.type.bytes)

    # Memory

    def _structures(self) -> str:
        def loads(name: str, numbers: Sequence[int], more: str) -> str:
            members = "".join(f"\n    {self._storage(self.pattern.loads[n], 'V')} l{n};" for n in numbers)
            return f"template <int V>\nstruct {name} {{{members}{more}\n}};"

        def nodes(name: str, members: Sequence[Node]) -> str:
            return f"struct {name} {{" + "".join(f" {_declared(n, self.names)};" for n in members) + " };"

        outputs = "".join(f"\n    {self._storage(a, 'V')} s{n};" for n, a, _ in self._element_stores())
        broken = self._broken()
        rows = "\n    Row first, second;\n    int turn;" if broken else ""
        row = "".join(f" {TYPES[self.pattern.loads[n].type]} l{n};" for n in broken)
        size = sum(self.pattern.loads[n].type.bytes for n in broken)
        aligned = f"alignas({size}) " if size in (2, 4, 8, 16) else ""
        parts = [f"struct {aligned}Row {{{row} }};", loads("Held", self.held, "")]
        parts.append(loads("Late", [n for n in self.late if n not in broken], rows))
        parts.append(f"template <int V>\nstruct Outputs {{{outputs}\n}};")
        return "\n".join([*parts, nodes("Given", self.given), nodes("Kept", self.kept)])

    def _storage(self, access: AccessPattern, lanes: str) -> str:
        """The C++ type of what one access moves for one unit."""
        type = TYPES[access.type]
        return type if access.step is Step.NONE else f"Vector<{type}, {lanes}>"

    def _loading(self) -> list[str]:
        def lines(numbers: Sequence[int]) -> list[str]:
            return [self._load(number, f"to.l{number}") for number in numbers]

        broken = self._broken()
        arguments = "const Parameters& p, const Offsets& at"
        functions = [
            _template(f"void load_held(Held<V>& to, {arguments})", lines(self.held)),
            function(f"void load_row(Row& to, {arguments})", lines(broken)),
            _template(
                f"void load_late(Late<V>& to, {arguments}, const Row* rows = nullptr, Index first_row = 0)",
                [*lines([n for n in self.late if n not in broken]), *(self._row_loading() if broken else ())],
            ),
        ]
        if self.pattern.mode is Mode.STAGED:
            (held,) = self.held
            functions.append(
                function(f"const char* held_address({arguments})", [f"return {self._address(held)};"])
            )
        if self.pattern.mode in (Mode.STAGED, Mode.HELD, Mode.SPREAD):
            functions += self._copying(arguments)
        return functions

    def _row_loading(self) -> list[str]:
        """What is one value in a row and another in the next, for a unit that runs over a row's end."""
        return [
            "to.turn = at.turn;",
            "if constexpr (ROWS > 0) {",
            "    to.first = rows[at.row - first_row];",
            "    to.second = rows[at.row - first_row + 1];",
            "    return;",
            "}",
            "Offsets next = at;",
            *(f"next.a{number} = at.next{number};" for number in self._broken()),
            "load_row(to.first, p, at);",
            "load_row(to.second, p, next);",
        ]

    def _copying(self, arguments: str) -> list[str]:
        """Held elements on their way through shared memory: one unit of each load after the other."""
        copies, takes, offset = [], [], 0
        for number in self.held:
            unit = self.pattern.loads[number].type.bytes * self.pattern.vector
            copies.append(f"copy_async<{unit}>(to + {offset}, {self._address(number)});")
            takes.append(f"load(to.l{number}, from + {offset});")
            offset += unit
        return [
            function(f"void copy_held(char* to, {arguments})", copies),
            _template("void take_held(Held<V>& to, const char* from)", takes),
        ]

    def _storing(self) -> list[str]:
        arguments = "const Parameters& p, const Offsets& at"
        lines = []
        for number, access, _ in self._element_stores():
            if access.step is Step.STRIDED:
                lines.append(f"scatter({self._address(number)}, from.s{number}, p.step{number});")
            else:
                lines.append(f"store({self._address(number)}, from.s{number});")
        functions = [_template(f"void store_outputs({arguments}, const Outputs<V>& from)", lines)]
        if self.pattern.mode is Mode.STAGED:
            ((number, _, _),) = self._element_stores()
            functions += [
                function(f"char* stored_address({arguments})", [f"return {self._address(number)};"]),
                _template(
                    "void put_outputs(char* to, const Outputs<V>& from)", [f"store(to, from.s{number});"]
                ),
            ]
        return functions

    def _load(self, number: int, to: str) -> str:
        access = self.pattern.loads[number]
        if access.counter:
            offset = f"at.a{number}"
            return (
                f"{to} = {offset};" if access.step is Step.NONE else f"count({to}, {offset}, p.step{number});"
            )
        if access.step is Step.STRIDED:
            return f"gather({to}, {self._address(number)}, p.step{number});"
        return f"load({to}, {self._address(number)});"

    def _address(self, number: int) -> str:
        return f"(char*)p.base{number} + at.a{number}"

    # Values

    def _evaluation(self) -> str:
        """The results of one lane of a unit."""
        roots = [root for _, _, root in self._element_stores()]
        known = {id(node): f"kept.{self.names[id(node)]}" for node in self.kept}
        lines, name = self._compute(roots, known, self._element_load)
        for number, access, root in self._element_stores():
            target = f"to.s{number}" if access.step is Step.NONE else f"to.s{number}.data[lane]"
            lines.append(f"{target} = {name(root)};")
        arguments = "Outputs<V>& to, const Held<V>& held, const Late<V>& late, const Kept& kept, int lane"
        signature = f"void evaluate({arguments})"
        return _template(signature, lines)

    def _reduced_value(self, number: int) -> str:
        """One lane of a value that is reduced."""
        root = self.reduced[number]
        known = {id(node): f"given.{self.names[id(node)]}" for node in self.given}
        lines, name = self._compute([root], known, self._element_load)
        type = TYPES[root.type] if root.type is ScalarType.FLOAT64 else "float"
        signature = f"{type} reduced(Number<{number}>, const Held<V>& held, const Given& given, int lane)"
        return _template(signature, [*lines, f"return {name(root)};"])

    def _given_values(self) -> str:
        """What is known of a group before its reductions; `at` is its first element."""
        lines, name = self._compute(self.given, {}, self._group_load)
        lines += [f"to.{self.names[id(node)]} = {name(node)};" for node in self.given]
        return function("void load_given(Given& to, const Parameters& p, const Offsets& at)", lines)

    def _finish(self) -> str:
        """What the results need of a group, and what is stored of it."""
        known = {id(node): f"given.{self.names[id(node)]}" for node in self.given}
        for index, value in enumerate(self.reduced):
            for node in self.nodes:
                if node.operation in REDUCTIONS and node.operands[0] is value:
                    known[id(node)] = f"found[{index}].{node.operation.name.lower()}"
        lines, name = self._compute(self.kept, known, self._group_load)
        lines += [f"to.{self.names[id(node)]} = {name(node)};" for node in self.kept]
        finish = function(
            "void finish(Kept& to, const Given& given, const Statistics (&found)[REDUCED])", lines
        )
        stores = [
            f"store({self._address(number)}, kept.{self.names[id(root)]});"
            for number, _, root in self._group_stores()
        ]
        signature = "void store_groups(const Parameters& p, const Offsets& at, const Kept& kept)"
        return f"{finish}\n\n{function(signature, stores)}"

    def _compute(
        self, roots: Iterable[Node], known: dict[int, str], load: Callable[[int], str]
    ) -> tuple[list[str], Callable[[Node], str]]:
        """Statements that compute `roots` from what is known and loaded, and how each node is then called."""
        lines: list[str] = []

        def name(node: Node) -> str:
            if node.operation is Operation.CONSTANT:
                return literal(node.attribute, node.type)  # type: ignore[arg-type]
            return known.get(id(node), self.names[id(node)])

        roots = list(roots)
        always = always_needed(roots)

        def print_rare(node: Node) -> None:
            """The first value of a rare selection, and what only that needs, in a branch."""
            condition, wanted, usual = node.operands
            lines.append(f"{_declared(node, self.names)} = {name(usual)};")
            lines.append(f"if ({name(condition)}) {{")
            printed = always | known.keys()
            for part in ordered([wanted], printed):
                if part.operation is not Operation.CONSTANT:
                    value = expression(part, [name(operand) for operand in part.operands])
                    lines.append(f"    const {_declared(part, self.names)} = {value};")
            lines.extend([f"    {name(node)} = {name(wanted)};", "}"])

        for node in ordered(roots, known):
            if id(node) not in always:
                continue
            if node.operation is Operation.SOURCE:
                lines.append(f"const {_declared(node, self.names)} = {load(_index(node))};")
            elif is_rare(node):
                print_rare(node)
            elif _is_reciprocal_root(node):
                root = name(node.operands[1].operands[0])
                lines.append(f"const {_declared(node, self.names)} = reciprocal_root({root});")
            elif node.operation is not Operation.CONSTANT:
                operands = [name(operand) for operand in node.operands]
                lines.append(f"const {_declared(node, self.names)} = {expression(node, operands)};")
        return lines, name

    def _element_load(self, number: int) -> str:
        member = f"{'held' if number in self.held else 'late'}.l{number}"
        step = self.pattern.loads[number].step
        if step is Step.BROKEN:
            return f"(lane < late.turn ? late.first : late.second).l{number}"
        return member if step is Step.NONE else f"{member}.data[lane]"

    def _group_load(self, number: int) -> str:
        if self.pattern.loads[number].counter:
            return f"({TYPES[self.pattern.loads[number].type]})at.a{number}"
        return f"*(const {TYPES[self.pattern.loads[number].type]}*)({self._address(number)})"


def _is_reciprocal_root(node: Node) -> bool:
    """Whether a node is 1 / sqrt(x) in FLOAT64, as groups need it."""
    if node.operation is not Operation.DIVIDE or node.type is not ScalarType.FLOAT64:
        return False
    one, root = node.operands
    return (
        one.operation is Operation.CONSTANT and one.attribute == 1 and root.operation is Operation.SQUARE_ROOT
    )


def _declared(node: Node, names: dict[int, str]) -> str:
    return f"{TYPES[node.type]} {names[id(node)]}"


def function(signature: str, lines: Sequence[str]) -> str:
    """A C++ function."""
    return "\n".join([f"DEVICE {signature} {{", *(f"    {line}" for line in lines), "}"])


def _template(signature: str, lines: Sequence[str]) -> str:
    return f"template <int V>\n{function(signature, lines)}"


def _index(node: Node) -> int:
    if not isinstance(node.attribute, int):
        raise TypeError(f"{node} has no index")
    return node.attribute
