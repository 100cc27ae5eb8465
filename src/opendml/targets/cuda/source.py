"""Prints what depends on a pattern as CUDA C++: structures and functions that the code of all modes needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from opendml.compiler.kernel import number_of
from opendml.program.node import Node
from opendml.targets.common.pattern import Step
from opendml.targets.cuda.cxx import function, template
from opendml.targets.cuda.expression import CUDA, TYPES, CudaStatements, parameter
from opendml.targets.cuda.needs import Needs
from opendml.targets.cuda.parameters import ParameterStruct
from opendml.targets.cuda.pattern import CudaAccess, CudaMode
from opendml.targets.cuda.position_source import broken_accesses, positions, step_of

LEAST_COPY_BYTES = 4
"""Bytes of the smallest unit that a thread can copy to shared memory asynchronously (`cp.async`)."""


class Printer(Needs):
    """Prints structures and functions that the code of all modes is written in."""

    def text(self) -> str:
        """Return all of it."""
        parts = [self._constants(), ParameterStruct(self.pattern).declaration(), *positions(self.pattern)]
        kept = {id(node): f"kept.{self.names[id(node)]}" for node in self.kept}
        parts += [self._structures(), *self._loading(), *self._storing()]
        parts.append(self._evaluation(kept, "const Kept& kept"))
        return "\n\n".join(parts)

    def _constants(self) -> str:
        constants = {
            "VECTOR": self.pattern.vector,
            "GROUPS": self.pattern.group_loops,
            "COLUMNS": int(self.pattern.columns),
            **dict(self.pattern.constants),
        }
        lines = [f"typedef {'long long' if self.pattern.wide else 'int'} Index;"]
        lines += [f"constexpr int {name} = {value};" for name, value in constants.items()]
        return "\n".join(lines)

    # Memory

    def _structures(self) -> str:
        def loads(name: str, numbers: Sequence[int], more: str) -> str:
            members = "".join(f"\n    {self._storage(self.pattern.loads[n])} l{n};" for n in numbers)
            return f"template <int V>\nstruct {name} {{{members}{more}\n}};"

        def nodes(name: str, members: Sequence[Node]) -> str:
            return f"struct {name} {{" + "".join(f" {_declared(n, self.names)};" for n in members) + " };"

        outputs = "".join(f"\n    {self._storage(a)} s{n};" for n, a, _ in self.element_stores())
        broken = broken_accesses(self.pattern)
        rows = "\n    Row first, second;\n    int turn;" if broken else ""
        row = "".join(f" {TYPES[self.pattern.loads[n].type]} l{n};" for n in broken)
        size = sum(self.pattern.loads[n].type.bytes for n in broken)
        aligned = f"alignas({size}) " if size in (2, 4, 8, 16) else ""
        parts = [f"struct {aligned}Row {{{row} }};", loads("CollectiveInputs", self.collective_loads, "")]
        parts.append(loads("ResultInputs", [n for n in self.result_loads if n not in broken], rows))
        parts.append(f"template <int V>\nstruct Outputs {{{outputs}\n}};")
        return "\n".join([*parts, nodes("Kept", self.kept)])

    def _storage(self, access: CudaAccess) -> str:
        """Return the C++ type of what one access moves for a unit of V elements."""
        type = TYPES[access.type]
        return type if access.step is Step.NONE else f"Vector<{type}, V>"

    def _loading(self) -> list[str]:
        def lines(numbers: Sequence[int]) -> list[str]:
            apart = [number for number in numbers if self._is_guarded_by_lane(number)]
            others = [number for number in numbers if number not in apart]
            loads = [line for number in others for line in self._load(number, f"to.l{number}")]
            return [*loads, *self._lane_by_lane(apart)]

        broken = broken_accesses(self.pattern)
        arguments = "const Parameters& p, const Offsets& at"
        collective, rows = "CollectiveInputs<V>& to", self._row_loading() if broken else []
        own = lines([number for number in self.result_loads if number not in broken])
        functions = [
            template(f"void load_collective_inputs({collective}, {arguments})", lines(self.collective_loads)),
            function(f"void load_row(Row& to, {arguments})", lines(broken)),
            template(f"void load_result_inputs(ResultInputs<V>& to, {arguments})", [*own, *rows]),
        ]
        if self.pattern.mode is CudaMode.REDUCE:
            functions += self._copying(arguments)
        if self.pattern.mode is CudaMode.TRANSPOSED:
            copies = [f"to.l{n}.data[at] = from.l{n}.data[lane];" for n in self.collective_loads]
            lanes = "CollectiveInputs<A>& to, int at, const CollectiveInputs<B>& from, int lane"
            functions.append(template(f"void copy_lane({lanes})", copies, "A", "B"))
        return functions

    def _row_loading(self) -> list[str]:
        """Return the loading of both rows, for a unit that runs over the end of a row."""
        return [
            "to.turn = at.turn;",
            "Offsets next = at;",
            *(f"next.a{number} = at.next{number};" for number in broken_accesses(self.pattern)),
            "load_row(to.first, p, at);",
            "load_row(to.second, p, next);",
        ]

    def _copying(self, arguments: str) -> list[str]:
        """Return the functions that copy units to shared memory and load them from there.

        One unit of each load follows the other. They do nothing where threads keep no units there. Units
        below 4 bytes are stored from registers, since the hardware cannot copy them (`COPIES`).
        """
        copies, keeps, takes, offset = [], [], [], 0
        sizes = {n: self.pattern.loads[n].unit_bytes(self.pattern.vector) for n in self.collective_loads}
        copied = all(bytes >= LEAST_COPY_BYTES for bytes in sizes.values())
        for number, bytes in sizes.items() if dict(self.pattern.constants)["SHARED_UNITS"] else ():
            if copied:
                copies.append(f"copy_async<{bytes}>(to + {offset}, {self._address(number)});")
            keeps.append(f"store(to + {offset}, from.l{number});")
            takes.append(f"load(to.l{number}, from + {offset});")
            offset += bytes
        return [
            f"constexpr bool COPIES = {int(copied)};",
            function(f"void copy_collective_inputs(char* to, {arguments})", copies),
            template("void keep_collective_inputs(char* to, const CollectiveInputs<V>& from)", keeps),
            template("void take_collective_inputs(CollectiveInputs<V>& to, const char* from)", takes),
        ]

    def _storing(self) -> list[str]:
        arguments = "const Parameters& p, const Offsets& at"
        lines = []
        for number, access, _ in self.element_stores():
            if access.step is Step.STRIDED:
                lines.append(
                    f"scatter({self._address(number)}, from.s{number}, {step_of(self.pattern, number)});"
                )
            else:
                lines.append(f"store({self._address(number)}, from.s{number});")
        return [template(f"void store_outputs({arguments}, const Outputs<V>& from)", lines)]

    def _load(self, number: int, to: str) -> list[str]:
        access = self.pattern.loads[number]
        if access.counter and access.step is not Step.NONE:
            return [f"count({to}, {self._lies_at(number)}, {step_of(self.pattern, number)});"]
        if access.counter:
            return [f"{to} = {self._inline_load(number)};"]
        if access.guarded:
            return self._guarded_load(number, to)
        if access.step is Step.STRIDED and not access.turned:
            return [f"gather({to}, {self._address(number)}, {step_of(self.pattern, number)});"]
        return [f"load({to}, {self._address(number)});"]

    def _guarded_load(self, number: int, to: str) -> list[str]:
        """Return the load of an element, or of a unit whose lanes are guarded together."""
        if self.pattern.loads[number].step is Step.NONE:
            return [f"{to} = {self._inline_load(number)};"]
        lines, name = self._compute(self.guards[number], {}, self._inline_load)
        guard, *distances = map(name, self.guards[number])
        address = " + ".join([self._address(number), *distances])
        return ["{", *(f"    {line}" for line in lines), f"    load_where({guard}, {to}, {address});", "}"]

    def _is_guarded_by_lane(self, number: int) -> bool:
        access = self.pattern.loads[number]
        return access.guarded and not access.counter and access.step is Step.STRIDED

    def _lane_by_lane(self, numbers: Sequence[int]) -> list[str]:
        """Return a loop of loads that each lane guards by itself. Shared values are computed once."""
        if not numbers:
            return []
        roots = [root for number in numbers for root in self.guards[number]]
        lines, name = self._compute(roots, {}, partial(self._inline_load, lane="lane"))
        for number in numbers:
            address = f"{self._address(number)}{self._along(number, 'lane')}"
            read = self._read_where(number, address, *map(name, self.guards[number]))
            lines.append(f"to.l{number}.data[lane] = {read};")
        loop = "for (int lane = 0; lane < V; lane++) {"
        return ["#pragma unroll", loop, *(f"    {line}" for line in lines), "}"]

    def _address(self, number: int) -> str:
        return f"(char*){self._lies_at(number)}"

    def _lies_at(self, number: int) -> str:
        """Return the address of an access, or the value of a counter."""
        access, offset = self.pattern.accesses[number], f"at.a{self.pattern.offset(number)}"
        if access.first is not None:
            return f"({access.first}ll) + {offset}"
        ahead = f" + ({access.ahead})" if access.ahead else ""
        return f"p.base{self.pattern.base(number)} + {offset}{ahead}"

    def _along(self, number: int, lane: str) -> str:
        """Return the bytes from the first lane of a unit to a lane."""
        step = step_of(self.pattern, number)
        return f" + {lane} * {step}" if lane and step != "0" else ""

    # Values

    def _evaluation(self, known: dict[int, str], arguments: str) -> str:
        """Return the function that computes the results of one lane of a unit."""
        roots = [root for _, _, root in self.element_stores()]
        lines, name = self._compute(roots, known, self._element_load)
        for number, access, root in self.element_stores():
            target = f"to.s{number}" if access.step is Step.NONE else f"to.s{number}.data[lane]"
            lines.append(f"{target} = {name(root)};")
        loaded = "const CollectiveInputs<V>& collective, const ResultInputs<V>& result_inputs"
        signature = f"void evaluate(Outputs<V>& to, const Parameters& p, {loaded}, {arguments}, int lane)"
        return template(signature, lines)

    def _compute(
        self, roots: Iterable[Node], known: dict[int, str], load: Callable[..., str]
    ) -> tuple[list[str], Callable[[Node], str]]:
        """Return statements that compute `roots` from what is known and loaded, and the name of each node."""
        statements = CudaStatements(CUDA, self.names, known, load, _parameter)
        return statements.compute(roots), statements.name

    def _element_load(self, number: int, *guard: str) -> str:
        if guard:
            return self._read_where(number, self._address(number), *guard)
        member = f"{'collective' if number in self.collective_loads else 'result_inputs'}.l{number}"
        step = self.pattern.loads[number].step
        if step is Step.BROKEN:
            return f"(lane < result_inputs.turn ? result_inputs.first : result_inputs.second).l{number}"
        return member if step is Step.NONE else f"{member}.data[lane]"

    def _inline_load(self, number: int, lane: str = "") -> str:
        """Return the value of a load, or of a lane of its unit."""
        access = self.pattern.loads[number]
        along = self._along(number, lane if access.step is not Step.NONE else "")
        if access.counter:
            return f"({TYPES[access.type]})({self._lies_at(number)}{along})"
        address = f"{self._address(number)}{along}"
        if not access.guarded:
            return f"*(const {TYPES[access.type]}*)({address})"
        lines, name = self._compute(self.guards[number], {}, partial(self._inline_load, lane=lane))
        read = self._read_where(number, address, *map(name, self.guards[number]))
        return f"[&] {{ {' '.join(lines)} return {read}; }}()"

    def _group_load(self, number: int, *guard: str) -> str:
        """Return the value of a load whose guards are printed already."""
        return self._read_where(number, self._address(number), *guard) if guard else self._inline_load(number)

    def _read_where(self, number: int, address: str, guard: str, *distances: str) -> str:
        type = TYPES[self.pattern.loads[number].type]
        return f"read_where<{type}>({guard}, {' + '.join([address, *distances])})"


def _parameter(node: Node) -> str:
    return parameter(f"p.number{number_of(node)}", node.type)


def _declared(node: Node, names: dict[int, str]) -> str:
    return f"{TYPES[node.type]} {names[id(node)]}"
