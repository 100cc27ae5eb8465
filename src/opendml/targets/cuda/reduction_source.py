"""Prints kernels of reductions: the functions over states that kernels/reduction.cuh calls."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.compiler.kernel import number_of
from opendml.program.node import Node, Operation, ordered
from opendml.targets.common.accumulations import Accumulation, accumulations_of
from opendml.targets.common.pattern import Level
from opendml.targets.cuda.cxx import function, template
from opendml.targets.cuda.expression import CUDA, TYPES, CudaStatements
from opendml.targets.cuda.parameters import ParameterStruct
from opendml.targets.cuda.pattern import CudaPattern
from opendml.targets.cuda.position_source import item_position, positions
from opendml.targets.cuda.source import Printer

_GROUP = "const Parameters& p, const Offsets& at, const Found& found"
"""The arguments of functions that compute values of a group, whose first element is at `at`."""


class ReductionPrinter(Printer):
    """Prints what kernels/reduction.cuh is written in."""

    def __init__(self, pattern: CudaPattern) -> None:
        super().__init__(pattern)
        self.stages = accumulations_of(self.values)
        nodes = [node for stage in self.stages for each in stage for node in each.nodes]
        self.found = {id(node): f"found.{self.names[id(node)]}" for node in nodes}

    def text(self) -> str:
        """Return all of it."""
        kept = {id(node): f"kept.{self.names[id(node)]}" for node in self.kept}
        parts = [self._constants(), ParameterStruct(self.pattern).declaration(), *positions(self.pattern)]
        parts += [item_position(self.pattern), self._structures(), *self._loading(), *self._storing()]
        parts.append(f"constexpr bool INLINE = {int(self.inline)};")
        nodes = [node for stage in self.stages for each in stage for node in each.nodes]
        members = "".join(f" {TYPES[node.type]} {self.names[id(node)]};" for node in nodes)
        parts.append(f"struct Found {{{members} }};")
        for number, stage in enumerate(self.stages):
            parts += self._stage(number, stage)
        parts += [self._group_results(), self._finishing()]
        return "\n\n".join([*parts, self._evaluation(kept, "const Kept& kept, const Offsets& at")])

    def _stage(self, number: int, stage: Sequence[Accumulation]) -> list[str]:
        """Return the states of one pass, and the functions over them."""
        states, tag = f"States{number}", f"Number<{number}>"
        operands = [operand for each in stage for operand in each.operands]
        lines, name = self._compute(operands, self.found, self._element_value)
        starting, adding, merging, concluding = list(lines), list(lines), list[str](), list[str]()
        for index, each in enumerate(stage):
            to, other = (
                [f"{which}.{_part(index, part)}" for part in range(len(each.parts))]
                for which in ("to", "from")
            )
            element = [name(operand) for operand in each.operands]
            starting += assigned(to, each.start, element, f"s{index}_")
            adding += assigned(to, each.add, [*to, *element], f"s{index}_")
            merging += assigned(to, each.merge, [*to, *other], f"s{index}_")
            results = [self.found[id(node)] for node in each.nodes]
            concluding += assigned(results, each.results, [*other, "p.share"], f"s{index}_")
        return [
            _structure(states, stage),
            function(f"{states} nothing({tag})", [f"return {states}();"]),
            self._element_function(f"void start({tag}, {states}& to", starting),
            self._element_function(f"void take_in({tag}, {states}& to", adding),
            function(f"void merge({tag}, {states}& to, const {states}& from)", merging),
            function(
                f"void conclude({tag}, Found& found, const {states}& from, const Parameters& p)", concluding
            ),
        ]

    def _element_function(self, head: str, lines: Sequence[str]) -> str:
        """Return a function of one lane of a unit, after its first arguments."""
        unit = "const Parameters& p, const CollectiveInputs<V>& collective, const Offsets& at"
        return template(f"{head}, {unit}, const Found& found, int lane)", lines)

    def _element_value(self, number: int, *guard: str) -> str:
        """Return a load as it is reduced. Others than those of elements are the same for the whole group."""
        if self.pattern.level(self.pattern.loads[number]) is Level.ELEMENT:
            return self._element_load(number, *guard)
        return self._group_load(number, *guard)

    def _group_results(self) -> str:
        stores = self.group_stores()
        lines, name = self._compute([root for _, _, root in stores], self.found, self._group_load)
        lines += [f"store({self._address(number)}, {name(root)});" for number, _, root in stores]
        return function(f"void store_groups({_GROUP})", lines)

    def _finishing(self) -> str:
        """Return the function of the values of the group that the elements' results need."""
        lines, name = self._compute(self.kept, self.found, self._group_load)
        lines += [f"to.{self.names[id(node)]} = {name(node)};" for node in self.kept]
        return function(f"void finish(Kept& to, {_GROUP})", lines)


def _structure(states: str, stage: Sequence[Accumulation]) -> str:
    """Return the structure of the states of a pass. Parts that a merge leaves as they are come last: all
    threads of a group begin with the same ones and need not exchange them."""
    members = [
        (not _is_merged(each, part), -type.bytes, f"{TYPES[type]} {_part(index, part)};")
        for index, each in enumerate(stage)
        for part, type in enumerate(each.parts)
    ]
    merged = sum(-bytes for is_fixed, bytes, _ in members if not is_fixed)
    text = " ".join(member for _, _, member in sorted(members))
    return (
        f"struct alignas(8) {states} {{ static constexpr int MERGED_BYTES = {-(-merged // 8) * 8}; {text} }};"
    )


def _is_merged(accumulation: Accumulation, part: int) -> bool:
    root = accumulation.merge[part]
    return root.operation is not Operation.SOURCE or number_of(root) != part


def _part(index: int, part: int) -> str:
    """Return the name of a part of the state of an accumulation."""
    return f"a{index}_{part}"


def assigned(targets: Sequence[str], roots: Sequence[Node], given: Sequence[str], prefix: str) -> list[str]:
    """Return statements that set variables to the values of a graph, whose SOURCEs stand for `given`."""
    nodes = ordered(roots)
    names = {id(node): f"{prefix}{number}" for number, node in enumerate(nodes)}
    known = {id(node): given[number_of(node)] for node in nodes if node.operation is Operation.SOURCE}
    statements = CudaStatements(CUDA, names, known, str, str)
    lines = statements.compute(roots)
    # All is computed before any of it is replaced.
    changed = [(target, statements.name(root)) for target, root in zip(targets, roots, strict=True)]
    lines = [f"    {line}" for line in lines]
    lines += [f"    {target} = {value};" for target, value in changed if target != value]
    return ["{", *lines, "}"]
