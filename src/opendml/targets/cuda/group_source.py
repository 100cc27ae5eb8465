"""Prints kernels that reduce in any way, in several passes, one element at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from opendml.compiler.kernel import number_of
from opendml.program.node import REDUCTIONS, SCANS, Node, Operation, ordered
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.accumulations import Accumulation, accumulations_of
from opendml.targets.common.guards import guards_of
from opendml.targets.common.passes import MOMENTS, pass_count
from opendml.targets.cuda.cxx import function
from opendml.targets.cuda.expression import CUDA, TYPES, CudaStatements
from opendml.targets.cuda.parameters import ParameterStruct
from opendml.targets.cuda.pattern import CudaPattern
from opendml.targets.cuda.position_source import item_position, positions
from opendml.targets.cuda.source import Printer

Name = Callable[[Node], str]
"""How a node is called."""

_ARGUMENTS = "const Parameters& p, const Offsets& at"


class GroupPrinter(Printer):
    """Prints what kernels/reduce.cuh is written in."""

    def __init__(self, pattern: CudaPattern) -> None:
        super().__init__(pattern)
        self.stages = accumulations_of(self.values)

    def text(self) -> str:
        """All of it."""
        parts = [
            self._constants(),
            ParameterStruct(self.pattern).declaration(),
            *positions(self.pattern),
            item_position(self.pattern),
        ]
        elements = [(number, root) for number, _, root in self.element_stores()]
        return "\n\n".join([*parts, *self._reductions(), self._stores("elements", elements)])

    def _reductions(self) -> list[str]:
        """The states of all passes, what they come to, and the stores of groups."""
        nodes = [node for stage in self.stages for each in stage for node in each.nodes]
        found = "".join(f" {TYPES[node.type]} {self.names[id(node)]};" for node in nodes)
        parts = [f"struct Found {{{found} }};"]
        for number, stage in enumerate(self.stages):
            parts += self._stage(number, stage)
        parts.append(self._stores("groups", [(n, root) for n, _, root in self.group_stores()]))
        return parts

    def _stage(self, number: int, stage: Sequence[Accumulation]) -> list[str]:
        """The states of one pass, and what is done with them."""
        states, tag = f"States{number}", f"Number<{number}>"
        members = [
            f"{TYPES[type]} {_part(index, part)};"
            for index, each in enumerate(stage)
            for part, type in enumerate(each.parts)
        ]
        operands = [operand for each in stage for operand in each.operands]
        lines, name = self._compute(operands, self._found(), self._element_value)
        starting, adding, merging, concluding = list(lines), list[str](), [], []
        for index, each in enumerate(stage):
            to, left, right = (
                [f"{which}.{_part(index, part)}" for part in range(len(each.parts))]
                for which in ("to", "to", "from")
            )
            element = [name(operand) for operand in each.operands]
            starting += assigned(to, each.start, element, f"s{index}_")
            taken = [self._taken(operand, name) for operand in each.operands]
            adding += assigned(to, each.add, [*left, *taken], f"s{index}_")
            merging += assigned(to, each.merge, [*left, *right], f"s{index}_")
            results = [f"found.{self.names[id(node)]}" for node in each.nodes]
            concluding += assigned(results, each.results, [*right, "p.share"], f"s{index}_")
        return [
            f"struct alignas(8) {states} {{ {' '.join(members)} }};",
            function(f"{states} nothing({tag})", [f"return {states}();"]),
            self._element_function(f"void start({tag}, {states}& to", starting),
            *self._taking_in(number, operands, lines, name, adding),
            function(f"void merge({tag}, {states}& to, const {states}& from)", merging),
            function(
                f"void conclude({tag}, Found& found, const {states}& from, const Parameters& p)", concluding
            ),
        ]

    def _taken(self, operand: Node, name: Name) -> str:
        """What is added to a state for an operand."""
        return f"from.{self.names[id(operand)]}"

    def _taking_in(
        self, number: int, operands: Sequence[Node], lines: list[str], name: Name, adding: list[str]
    ) -> list[str]:
        """One function reads the operands of an element, which `lines` compute, and another takes them in: so
        many are read before any is taken in."""
        element, tag = f"Element{number}", f"Number<{number}>"
        distinct = list({id(operand): operand for operand in operands}.values())
        members = " ".join(f"{TYPES[each.type]} {self.names[id(each)]};" for each in distinct)
        reading = [f"to.{self.names[id(each)]} = {name(each)};" for each in distinct]
        return [
            f"struct {element} {{ {members} }};",
            self._element_function(
                f"{element} read({tag}", [f"{element} to;", *lines, *reading, "return to;"]
            ),
            function(f"void take_in({tag}, States{number}& to, const {element}& from)", adding),
        ]

    def _element_value(self, number: int, *guard: str) -> str:
        """What a load gives of the element that is taken in."""
        return self._group_load(number, *guard)

    def _element_function(self, head: str, lines: Sequence[str]) -> str:
        """A function that takes in an element, after its first arguments."""
        return function(f"{head}, {_ARGUMENTS}, const Found& found)", lines)

    def _found(self) -> dict[int, str]:
        return {
            id(node): f"found.{self.names[id(node)]}"
            for stage in self.stages
            for each in stage
            for node in each.nodes
        }

    def _stores(self, what: str, stores: Iterable[tuple[int, Node]]) -> str:
        stores = list(stores)
        lines, name = self._compute([root for _, root in stores], self._found(), self._group_load)
        lines += [f"store({self._address(number)}, {name(root)});" for number, root in stores]
        return function(f"void store_{what}({_ARGUMENTS}, const Found& found)", lines)


def _part(index: int, part: int) -> str:
    """The name of a part of the state of an accumulation."""
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


def is_normalization(values: tuple[Node, ...]) -> bool:
    """Whether all reductions are means and variances that need one pass, in floats, and none says what is
    read.
    """
    nodes = [node for node in ordered(values) if node.operation in REDUCTIONS | SCANS]
    floats = (ScalarType.FLOAT32, ScalarType.FLOAT64)
    guards = [operand for each in guards_of(values).values() for operand in each]
    if any(node.operation in REDUCTIONS for node in ordered(guards)):
        return False
    are_moments = all(n.operation in MOMENTS and n.operands[0].type in floats for n in nodes)
    return are_moments and pass_count(values) == 1
