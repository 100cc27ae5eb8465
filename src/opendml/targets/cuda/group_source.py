"""Prints kernels that reduce in any way, in several passes, and kernels that scan: one element at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opendml.program.node import REDUCTIONS, SCANS, SEARCHES, Node, Operation, ordered
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.guards import guards_of
from opendml.targets.common.passes import MOMENTS, pass_count, passes_of
from opendml.targets.cuda.cxx import function
from opendml.targets.cuda.expression import TYPES, literal
from opendml.targets.cuda.parameters import Parameters
from opendml.targets.cuda.pattern import Mode, Pattern
from opendml.targets.cuda.position_source import positions
from opendml.targets.cuda.source import Printer

_ARGUMENTS = "const Parameters& p, const Offsets& at"
_SIMPLE = {
    Operation.SUM: "Sum",
    Operation.PRODUCT: "Product",
    Operation.LEAST: "Least",
    Operation.GREATEST: "Greatest",
    Operation.CONTRACTION: "SumOfProducts",
}


class GroupPrinter(Printer):
    """Prints what kernels/reduce.cuh and kernels/scan.cuh are written in."""

    def __init__(self, pattern: Pattern) -> None:
        super().__init__(pattern)
        self.stages = passes_of(self.values)

    def text(self) -> str:
        """All of it."""
        parts = [
            self._constants(),
            Parameters(self.pattern).declaration(),
            *positions(self.pattern),
            self._item(),
        ]
        parts += self._scan() if self.pattern.mode is Mode.SCAN else self._reductions()
        return "\n\n".join(parts)

    def _item(self) -> str:
        """The start of a group; of groups side by side, each is an item."""
        lines = ["return at_group(p, item);"]
        if self.pattern.columns:
            lines = [
                "const Index group = divide(item, p.tiles);",
                "return in_row<1>(p, at_group(p, group), item - group * (Index)p.tiles.count);",
            ]
        return function("Offsets at_item(const Parameters& p, Index item)", lines)

    # Reductions

    def _reductions(self) -> list[str]:
        nodes = [node for stage in self.stages for members in stage for node in members]
        found = "".join(f" {TYPES[node.type]} {self.names[id(node)]};" for node in nodes)
        parts = [f"struct Found {{{found} }};"]
        for number, stage in enumerate(self.stages):
            parts += self._stage(number, stage)
        parts.append(self._stores("groups", [(n, root) for n, _, root in self.group_stores()]))
        return [*parts, self._stores("elements", [(n, root) for n, _, root in self.element_stores()])]

    def _stage(self, number: int, stage: Sequence[Sequence[Node]]) -> list[str]:
        """The states of one pass, and what is done with them."""
        states, tag = f"States{number}", f"Number<{number}>"
        members = "".join(f" {_kind(nodes)} a{index};" for index, nodes in enumerate(stage))
        calls = []
        operands = [operand for nodes in stage for operand in nodes[0].operands]
        lines, name = self._compute(operands, self._found(), self._group_load)
        for index, nodes in enumerate(stage):
            arguments = ", ".join(name(operand) for operand in nodes[0].operands)
            calls.append((f"a{index}", arguments))
        reading = f"({tag}, {states}& to, {_ARGUMENTS}, const Found& found)"
        conclusions = [
            f"found.{self.names[id(node)]} = from.a{index}.{_result(node)};"
            for index, nodes in enumerate(stage)
            for node in nodes
        ]
        return [
            f"struct alignas(8) {states} {{{members} }};",
            function(f"{states} nothing({tag})", [f"return {states}();"]),
            function(f"void start{reading}", [*lines, *(f"to.{a}.start({b});" for a, b in calls)]),
            function(f"void take_in{reading}", [*lines, *(f"to.{a}.add({b});" for a, b in calls)]),
            function(
                f"void merge({tag}, {states}& to, const {states}& from)",
                [f"to.{member}.merge(from.{member});" for member, _ in calls],
            ),
            function(
                f"void conclude({tag}, Found& found, const {states}& from, const Parameters& p)", conclusions
            ),
        ]

    def _found(self) -> dict[int, str]:
        return {
            id(node): f"found.{self.names[id(node)]}"
            for stage in self.stages
            for members in stage
            for node in members
        }

    def _stores(self, what: str, stores: Iterable[tuple[int, Node]]) -> str:
        stores = list(stores)
        lines, name = self._compute([root for _, root in stores], self._found(), self._group_load)
        lines += [f"store({self._address(number)}, {name(root)});" for number, root in stores]
        return function(f"void store_{what}({_ARGUMENTS}, const Found& found)", lines)

    # Scans

    def _scan(self) -> list[str]:
        (scan,) = (node for node in self.nodes if node.operation in SCANS)
        if not isinstance(scan.attribute, tuple):
            raise TypeError(f"{scan} has no axis")
        _, exclusive, reverse = scan.attribute
        type = TYPES[scan.type]
        sums = scan.operation is Operation.RUNNING_SUM
        operand, name = self._compute(scan.operands, {}, self._group_load)
        stores = [(number, root) for number, _, root in self.element_stores()]
        result, result_name = self._compute(
            [root for _, root in stores], {id(scan): "running"}, self._group_load
        )
        result += [f"store({self._address(number)}, {result_name(root)});" for number, root in stores]
        identity = literal(0 if sums else 1, scan.type)
        merged = f"return {'sum' if sums else 'product'}_of<Scanned>(a, b);"
        return [
            f"typedef {type} Scanned;",
            f"constexpr bool EXCLUSIVE = {exclusive}, REVERSE = {reverse};",
            f"#define IDENTITY ({type})({identity})",
            function(f"Scanned scanned({_ARGUMENTS})", [*operand, f"return {name(scan.operands[0])};"]),
            function("Scanned put_together(Scanned a, Scanned b)", [merged]),
            function(f"void store_elements({_ARGUMENTS}, Scanned running)", result),
        ]


def _kind(nodes: Sequence[Node]) -> str:
    """The C++ type of the state of reductions of one value."""
    operation = nodes[0].operation
    if operation in SEARCHES:
        greatest = operation in (Operation.FIRST_GREATEST, Operation.LAST_GREATEST)
        last = operation in (Operation.LAST_LEAST, Operation.LAST_GREATEST)
        value, position = nodes[0].operands
        return f"Search<{TYPES[value.type]}, {TYPES[position.type]}, {int(greatest)}, {int(last)}>"
    return f"{_SIMPLE[operation]}<{TYPES[nodes[0].type]}>" if operation in _SIMPLE else "Moments"


def _result(node: Node) -> str:
    if node.operation in (Operation.MEAN, Operation.VARIANCE):
        return f"{node.operation.name.lower()}(p.share)"
    return "value"


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
