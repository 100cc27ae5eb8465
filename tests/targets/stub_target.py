"""A target in plain Python: it prints kernels as Python functions, and runs them over host memory.

It has no FLOAT64, no vectors and no threads. Everything that a target need not write itself comes from the
package: levels, the walk of a printer, sums without FLOAT64, candidates, the memo of forms, and the base
classes of backends and executables. `docs/design/adding_a_target.md` explains it.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import count
from typing import Any, ClassVar

from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Kernel, number_of, operations_of
from opendml.compiler.loops import Loop, loop_nest
from opendml.compiler.simplify import simplify
from opendml.errors import Unsupported
from opendml.program.node import FUNCTIONS, PLACINGS, SCANS, Node, Operation, ordered, rebuild
from opendml.program.program import Program
from opendml.program.scalar_type import ScalarType, number_in
from opendml.program.vector_math import expand
from opendml.targets.common.accumulations import Graph
from opendml.targets.common.candidates import Candidate, Estimate, Refusal, cheapest
from opendml.targets.common.float_pairs import (
    ReductionPass,
    numbers_in_parts,
    parts_of_number,
    without_float64,
)
from opendml.targets.common.forms import Memo, ValueBinding, form_of
from opendml.targets.common.language import (
    BOOLEANS,
    INTEGERS,
    TYPES,
    Statements,
    Syntax,
    TextLanguage,
)
from opendml.targets.common.launch import KernelNest, Query, nest_of
from opendml.targets.common.machine import Machine
from opendml.targets.common.pattern import AccessPattern, KernelPattern, Level, Step, levels_of
from opendml.targets.host import HostBackend, HostExecutable
from opendml.targets.memory import HostMemory

F16, F32, F64 = ScalarType.FLOAT16, ScalarType.FLOAT32, ScalarType.FLOAT64

_FORMATS = dict(zip((type.name for type in ScalarType), "?efdBHIQbhiq", strict=False))


def read(type: str, address: int) -> float:
    """Return the element of a type at an address."""
    size = struct.calcsize(_FORMATS[type])
    return struct.unpack(_FORMATS[type], ctypes.string_at(address, size))[0]  # type: ignore[no-any-return]


def write(type: str, address: int, value: float) -> None:
    """Store an element."""
    content = struct.pack(_FORMATS[type], value)
    ctypes.memmove(address, content, len(content))


def wrap(type: str, value: int) -> int:
    """Return an integer that wraps in its type."""
    bits = ScalarType[type].bits
    value &= (1 << bits) - 1
    return value - (1 << bits) if ScalarType[type].is_signed and value >> (bits - 1) else value


def to(type: str, value: float) -> float:
    """Return a number in another type, with CONVERT's rules."""
    if type == "BOOLEAN":
        return bool(value)
    if isinstance(value, int) and not ScalarType[type].is_float:
        return wrap(type, value)
    return number_in(value, ScalarType[type])


def f32(value: float) -> float:
    """Round to FLOAT32."""
    return ctypes.c_float(value).value


def bits_as(source: str, type: str, value: float) -> float:
    """Return the bits of a value as another type."""
    return struct.unpack(_FORMATS[type], struct.pack(_FORMATS[source], value))[0]  # type: ignore[no-any-return]


def fma(a: float, b: float, c: float) -> float:
    """Return a * b + c in FLOAT32, rounded once: the sum is rounded to odd before."""
    product, total = a * b, a * b + c
    if math.isfinite(total):
        part = total - product
        error = (product - (total - part)) + (c - part)
        if error and not struct.unpack("q", struct.pack("d", total))[0] & 1:
            total = math.nextafter(total, math.copysign(math.inf, error))
    return f32(total)


def divide(a: float, b: float) -> float:
    """Return a quotient of floats."""
    return f32(a / b) if b else a * math.copysign(math.inf, b)


def remainder(a: float, b: float) -> float:
    """Return the remainder of a truncated quotient of floats."""
    return f32(math.fmod(a, b)) if b and math.isfinite(a) else math.nan


def quotient(type: str, a: int, b: int) -> int:
    """Return a truncated quotient of integers, all bits one for a divisor of zero."""
    return wrap(type, (abs(a) // abs(b)) * (-1 if (a < 0) != (b < 0) else 1) if b else -1)


def root(value: float) -> float:
    """Return a square root."""
    return f32(math.sqrt(value)) if value >= 0 else math.nan


def rounded(function: Callable[[float], float], value: float) -> float:
    """Return a whole number; zeros keep their signs."""
    return math.copysign(function(value), value) if math.isfinite(value) else value


def extreme(choose: Callable[[float, float], float], a: float, b: float) -> float:
    """Return the lesser or greater of two floats; NaN if either is NaN."""
    return a + b if a != a or b != b else choose(a, b)


def _literal(_: None, node: Node, operands: Sequence[str]) -> str:
    number = number_in(node.number, node.type) if node.type.is_float else node.number
    return repr(number) if math.isfinite(number) else f"float('{number}')"


_COMPARISONS = {Operation.LESS: "<", Operation.LESS_EQUAL: "<=", Operation.EQUAL: "=="}
_ARITHMETIC = {Operation.ADD: "+", Operation.SUBTRACT: "-", Operation.MULTIPLY: "*"}
_BITS = {
    Operation.AND: "&",
    Operation.OR: "|",
    Operation.XOR: "^",
    Operation.SHIFT_LEFT: "<<",
    Operation.SHIFT_RIGHT: ">>",
}

PYTHON = TextLanguage(
    "the stub",
    {type: type.name for type in ScalarType},
    Syntax(
        constant="{name} = {value}",
        variable="{name} = {value}",
        assignment="{name} = {value}",
        branch="if {condition}:",
        end="",
    ),
    [
        (
            TYPES,
            {
                Operation.CONSTANT: _literal,
                Operation.CONVERT: "to('{type}', {0})",
                Operation.BITCAST: "bits_as('{source}', '{type}', {0})",
                Operation.ROUND: "{0}",
                Operation.EXPAND: "{0}",
                Operation.SELECT: "({1} if {0} else {2})",
                **{key: f"({{0}} {sign} {{1}})" for key, sign in _COMPARISONS.items()},
            },
        ),
        (
            BOOLEANS,
            {key: f"({{0}} {sign} {{1}})" for key, sign in _BITS.items()} | {Operation.NOT: "(not {0})"},
        ),
        (
            [F32],
            {key: f"f32({{0}} {sign} {{1}})" for key, sign in _ARITHMETIC.items()}
            | {
                Operation.DIVIDE: "divide({0}, {1})",
                Operation.REMAINDER: "remainder({0}, {1})",
                Operation.MULTIPLY_ADD: "fma({0}, {1}, {2})",
                Operation.MINIMUM: "extreme(min, {0}, {1})",
                Operation.MAXIMUM: "extreme(max, {0}, {1})",
                Operation.NEGATE: "(-{0})",
                Operation.ABSOLUTE: "abs({0})",
                Operation.SQUARE_ROOT: "root({0})",
                Operation.ROUND_EVEN: "rounded(round, {0})",
                Operation.FLOOR: "rounded(floor, {0})",
                Operation.TRUNCATE: "rounded(trunc, {0})",
            },
        ),
        (
            INTEGERS,
            {key: f"wrap('{{type}}', {{0}} {sign} {{1}})" for key, sign in (_ARITHMETIC | _BITS).items()}
            | {
                Operation.NOT: "wrap('{type}', ~{0})",
                Operation.NEGATE: "wrap('{type}', -{0})",
                Operation.ABSOLUTE: "wrap('{type}', abs({0}))",
                Operation.MINIMUM: "min({0}, {1})",
                Operation.MAXIMUM: "max({0}, {1})",
                Operation.DIVIDE: "quotient('{type}', {0}, {1})",
                Operation.REMAINDER: "wrap('{type}', {0} - quotient('{type}', {0}, {1}) * {1})",
                Operation.COUNT_BITS: "bin({0} & ((1 << 64) - 1 if {0} >= 0 else -1)).count('1')",
            },
        ),
    ],
)
"""Python as a language of expressions. FLOAT32 is the only float that it computes in."""


class StubMode(Enum):
    """The ways to walk a domain."""

    ELEMENTS = "elements"
    GROUPS = "groups"


def level_of(access: AccessPattern) -> Level:
    """Return the loops that move an access."""
    return Level.GROUP if access.step is Step.NONE else Level.ELEMENT


@dataclass(frozen=True, slots=True)
class StubPattern(KernelPattern[StubMode, AccessPattern]):
    """A pattern with the counts of its loops over groups and over the elements of a group."""

    groups: int
    rows: int


@dataclass(frozen=True, slots=True)
class StubLaunch:
    """A call of a pattern's function.

    Args:
        pattern: the pattern.
        loops: the loops over groups, then those over rows.
        places: for each access its tensor in the form and its offset there. A counter has no tensor.
    """

    pattern: StubPattern
    loops: tuple[Loop, ...]
    places: tuple[tuple[int | None, int], ...]

    def run(self, binding: ValueBinding, buffers: Sequence[int]) -> None:
        """Run it over the buffers at some addresses."""
        bases = [
            offset if tensor is None else buffers[binding.buffers[tensor]] + binding.offsets[tensor] + offset
            for tensor, offset in self.places
        ]
        numbers = numbers_in_parts(self.pattern.values, binding.numbers)
        rows = [loop.count for loop in self.loops[self.pattern.groups :]]
        share = parts_of_number(1.0 / math.prod(rows))
        strides = [loop.strides for loop in self.loops]
        function_of(self.pattern)([loop.count for loop in self.loops], strides, bases, numbers, share)


# Schedules


class StubMachine(Machine):
    """An interpreter: moving a byte takes a fifth of an operation, whatever lies in caches."""

    cores = lanes = registers = 1
    memory_rate = cache_rate = 5.0
    operation_rate = 1.0


StubQuery = Query[KernelNest, StubMachine]


def _estimate(mode: StubMode, query: StubQuery) -> Estimate[StubMode] | Refusal:
    nest, machine = query.nest, query.machine
    if operations_of(query.kernel.values) & (SCANS | PLACINGS):
        return Refusal("scans and placings")
    if mode is StubMode.ELEMENTS and query.kernel.axes:
        return Refusal("reductions need groups")
    elements = nest.group_count * nest.row_count * nest.inner.count
    return Estimate(
        mode,
        {
            "memory": machine.memory_cycles(elements * nest.readings * nest.step_bytes),
            "elements": machine.operation_cycles(elements * len(ordered(query.kernel.values))),
            "groups": machine.operation_cycles(nest.group_count) * (mode is StubMode.GROUPS),
        },
    )


def _launch(query: StubQuery, mode: StubMode) -> StubLaunch:
    nest, kernel = query.nest, query.kernel
    groups = nest.groups if nest.inner_reduced else (*nest.groups, nest.inner)
    rows = (*nest.rows, nest.inner) if nest.inner_reduced else nest.rows
    patterns = []
    for number, access in enumerate(nest.all_accesses):
        step = Step.STRIDED if any(loop.strides[number] for loop in rows) else Step.NONE
        patterns.append(AccessPattern(access.type, step, counter=access.buffer is None))
    loads, stores = tuple(patterns[: len(kernel.loads)]), tuple(patterns[len(kernel.loads) :])
    pattern = StubPattern(mode, loads, stores, kernel.values, len(groups), len(rows))
    places = tuple((access.buffer, access.offset) for access in nest.all_accesses)
    return StubLaunch(pattern, (*groups, *rows), places)


CANDIDATES = tuple(Candidate(mode.value, partial(_estimate, mode), _launch) for mode in StubMode)
"""The ways to run a kernel."""

_memo = Memo[StubLaunch]()


def scheduled(kernel: Kernel) -> tuple[StubLaunch, ValueBinding]:
    """Return the cheapest launch of a kernel's form, and what binds it to the kernel.

    Raises:
        Unsupported: no candidate runs it.
    """
    form, binding = form_of(kernel)
    query = StubQuery(nest_of(form, loop_nest(form)), StubMachine())
    try:
        return _memo.get(form, "stub", lambda: cheapest(CANDIDATES, query)), binding
    except LookupError as error:
        raise Unsupported(f"the stub: {error}") from error


# Printing


def _expanded(node: Node) -> Node:
    return expand(node) if node.operation in FUNCTIONS else node


class StubPrinter:
    """Prints the function of a pattern: loops over groups, a loop over elements for each pass, and stores."""

    def __init__(self, pattern: StubPattern) -> None:
        self.pattern = pattern
        loads = len(pattern.loads)
        self.stages, self.values = without_float64(rebuild(pattern.values, _expanded), loads)
        operands = [part for stage in self.stages for parts in stage.operands for part in parts]
        results = [part for stage in self.stages for parts in stage.results for part in parts]
        self.nodes = ordered([*operands, *self.values])
        self.names = {id(node): f"v{number}" for number, node in enumerate(self.nodes)}
        self.levels = levels_of(
            self.nodes, [*map(level_of, pattern.loads), *[Level.STATISTIC] * len(results)]
        )
        self.lines: list[str] = []
        self.known: dict[int, str] = {}
        """The expressions of nodes that are computed for the group already."""

    def text(self) -> str:
        """Return the source of the function."""
        groups, rows = self.pattern.groups, self.pattern.rows
        self.lines = ["def kernel(counts, strides, bases, numbers, share):"]
        self._loops("bases[{}]", "g", range(groups))
        for number, stage in enumerate(self.stages):
            self._stage(f"s{number}", stage)
        self._stores(Level.GROUP, groups, "g")
        if any(level_of(store) is Level.ELEMENT for store in self.pattern.stores):
            self._rows()
            self._stores(Level.ELEMENT, groups + rows, "a")
        return "\n".join(self.lines)

    def _add(self, depth: int, lines: Iterable[str]) -> None:
        self.lines += [f"{'    ' * (depth + 1)}{line}" for line in lines]

    def _rows(self) -> None:
        """Begin the loops over the elements of a group."""
        self._loops("g{}", "a", range(self.pattern.groups, self.pattern.groups + self.pattern.rows))

    def _loops(self, origin: str, name: str, loops: range) -> None:
        """Begin some loops, and print where accesses lie at their indices."""
        for loop in loops:
            self._add(loop, [f"for i{loop} in range(counts[{loop}]):"])
        for number in range(len(self.pattern.accesses)):
            moves = (f" + i{loop} * strides[{loop}][{number}]" for loop in loops)
            self._add(loops.stop, [f"{name}{number} = {origin.format(number)}{''.join(moves)}"])

    def _stage(self, name: str, stage: ReductionPass) -> None:
        """Print one pass over a group."""
        depth, inside = self.pattern.groups, self.pattern.groups + self.pattern.rows
        roots = [part for parts in stage.operands for part in parts]
        self._hoist(roots)
        states = [
            [f"{name}_{index}_{part}" for part in range(len(each.parts))]
            for index, each in enumerate(stage.accumulations)
        ]
        first = self._values(roots, depth, "g")
        for each, state, operands in zip(stage.accumulations, states, stage.operands, strict=True):
            self._graph(depth, state, each.start, [first(part) for part in operands])
        self._rows()
        element = self._values(roots, inside, "a")
        for each, state, operands in zip(stage.accumulations, states, stage.operands, strict=True):
            self._graph(inside, state, each.add, [*state, *map(element, operands)])
        for each, state, results in zip(stage.accumulations, states, stage.results, strict=True):
            names = [f"r{number_of(part)}" for part in results]
            self._graph(depth, names, each.results, [*state, "share[0]", "share[1]"])
            self.known |= {id(part): name for part, name in zip(results, names, strict=True)}

    def _graph(self, depth: int, targets: Sequence[str], graph: Graph, given: Sequence[str]) -> None:
        """Print assignments of a graph's values, whose SOURCEs stand for what is given."""
        nodes = ordered(graph)
        names = {id(node): f"t{number}" for number, node in enumerate(nodes)}
        known = {id(node): given[number_of(node)] for node in nodes if node.operation is Operation.SOURCE}
        statements = Statements(PYTHON, names, known, str, str)
        self._add(depth, statements.compute(graph))
        self._add(depth, [f"{', '.join(targets)} = {', '.join(map(statements.name, graph))}"])

    def _hoist(self, roots: Sequence[Node]) -> None:
        """Print what `roots` need that does not change within a group, before its loops."""
        outer = [
            node
            for node in ordered(roots, self.known)
            if Level.CONSTANT < self.levels[id(node)] < Level.ELEMENT and id(node) not in self.known
        ]
        self._values(outer, self.pattern.groups, "g")
        self.known |= {id(node): self.names[id(node)] for node in outer}

    def _values(self, roots: Sequence[Node], depth: int, at: str) -> Callable[[Node], str]:
        """Print what `roots` need where accesses lie at addresses with names such as `g0`."""

        def load(number: int, *guard: str) -> str:
            access = self.pattern.loads[number]
            place = " + ".join([f"{at}{number}", *guard[1:]])
            if access.counter:
                return f"wrap('{access.type.name}', {place})"
            value = f"read('{access.type.name}', {place})"
            return f"({value} if {guard[0]} else 0)" if guard else value

        statements = Statements(
            PYTHON, self.names, self.known, load, lambda node: f"numbers[{number_of(node)}]"
        )
        self._add(depth, statements.compute(roots))
        return statements.name

    def _stores(self, level: Level, depth: int, at: str) -> None:
        """Print the stores of groups, or of elements."""
        first = len(self.pattern.loads)
        stores = [
            (number, access, value)
            for number, access, value in zip(count(first), self.pattern.stores, self.values, strict=False)
            if level_of(access) is level
        ]
        name = self._values([value for _, _, value in stores], depth, at)
        self._add(
            depth,
            [f"write('{access.type.name}', {at}{number}, {name(value)})" for number, access, value in stores],
        )


_LIBRARY: Mapping[str, Any] = {
    each.__name__: each
    for each in (
        *(read, write, wrap, to, f32, bits_as, fma, divide, remainder, quotient, root, rounded, extreme),
        *(math.floor, math.trunc),
    )
}
_functions: dict[str, Callable[..., None]] = {}


def function_of(pattern: StubPattern) -> Callable[..., None]:
    """Return the function of a pattern. Equal patterns share one."""
    key = pattern.text()
    if key not in _functions:
        namespace = dict(_LIBRARY)
        exec(StubPrinter(pattern).text(), namespace)
        _functions[key] = namespace["kernel"]
    return _functions[key]


# Programs


class StubExecutable(HostExecutable):
    """A program as launches of Python functions."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        plain = Program(program.inputs, program.outputs, simplify(program.results))
        self.kernels = fuse(plain)
        self.launches = [scheduled(kernel) for kernel in self.kernels.kernels]
        for launch, _ in self.launches:
            function_of(launch.pattern)

    def run(self, addresses: Sequence[int]) -> None:
        """Run all launches, over temporaries in an arena."""
        arena = HostMemory(self.kernels.arena_bytes)
        for launch, binding in self.launches:
            launch.run(binding, [*addresses, arena.address])


class StubBackend(HostBackend):
    """The stub as the runtime sees it."""

    kind: ClassVar[str] = "stub"

    def compile(self, program: Program, threads: int | None) -> StubExecutable:
        """Return a program as Python functions, for one thread."""
        return StubExecutable(program)
