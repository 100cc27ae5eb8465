"""The values that a kernel needs at each level: expanded, and ordered by how often they change."""

from __future__ import annotations

from collections.abc import Iterable

from opendml.compiler.kernel import number_of
from opendml.program import vector_math
from opendml.program.narrow import is_narrow
from opendml.program.node import (
    FUNCTIONS,
    PLACINGS,
    REDUCTIONS,
    SCANS,
    Node,
    Operation,
    Precision,
    ordered,
    rebuild,
)
from opendml.targets.common.guards import Guards, apart, guards_of
from opendml.targets.common.pattern import Level, levels_of
from opendml.targets.cuda import narrow_math, reciprocal_math
from opendml.targets.cuda.near_division import TAME, with_quotients
from opendml.targets.cuda.pattern import COLLECTIVE, CudaAccess, CudaMode, CudaPattern


class Needs:
    """The loads and values of a kernel by level.

    `collective_loads` are the loads of elements that reductions, scans, placings or transpositions need.
    `result_loads` are those that only results need. `kept` are the values of a group that the results of its
    elements need. `guards` of loads are apart from the values, except where loads are printed `inline`.
    """

    def __init__(self, pattern: CudaPattern) -> None:
        self.pattern = pattern
        self.values = rebuild(pattern.values, _expanded)
        self.guards: Guards = {}
        guards = [operand for each in guards_of(self.values).values() for operand in each]
        self.inline = pattern.mode in COLLECTIVE or any(n.operation in REDUCTIONS for n in ordered(guards))
        """True if guarded loads are printed where they are needed: a reduction may say what they read."""
        if not self.inline:
            self.values, self.guards = apart(self.values)
        self.nodes = list(
            ordered([*self.values, *(each for guard in self.guards.values() for each in guard)])
        )
        self.names = {id(node): f"v{number}" for number, node in enumerate(self.nodes)}
        self.levels = levels_of(self.nodes, [pattern.level(load) for load in pattern.loads])
        self.stores = [
            (len(pattern.loads) + position, access, root)
            for position, (access, root) in enumerate(zip(pattern.stores, self.values, strict=True))
        ]
        self.collective_loads, self.result_loads = self._loads()
        self.kept = self._kept()

    def element_stores(self) -> list[tuple[int, CudaAccess, Node]]:
        """Return numbers, accesses and values of the stores of elements."""
        return [store for store in self.stores if self.pattern.level(store[1]) is Level.ELEMENT]

    def group_stores(self) -> list[tuple[int, CudaAccess, Node]]:
        """Return numbers, accesses and values of the stores of groups."""
        return [store for store in self.stores if self.pattern.level(store[1]) is not Level.ELEMENT]

    def needed(self, roots: Iterable[Node]) -> list[Node]:
        """Return the nodes for `roots`, operands first; what is reduced is left out, as the reductions are
        known."""
        reductions = {id(node) for node in self.nodes if node.operation in REDUCTIONS}
        return ordered(roots, reductions)

    def _loads(self) -> tuple[list[int], list[int]]:
        """Return the numbers of the collective loads, and of those that only results need."""

        def element_loads(roots: Iterable[Node]) -> list[int]:
            return [
                number_of(node)
                for node in self.needed(roots)
                if node.operation is Operation.SOURCE
                and self.levels[id(node)] is Level.ELEMENT
                and not (node.operands and self.pattern.mode is CudaMode.REDUCE)
            ]

        if self.pattern.mode is CudaMode.TRANSPOSED:
            found = [number for number, load in enumerate(self.pattern.loads) if load.turned]
        else:
            collective = [node for node in self.nodes if node.operation in REDUCTIONS | SCANS | PLACINGS]
            found = sorted(element_loads(operand for node in collective for operand in node.operands))
        all_loads = element_loads(root for _, _, root in self.stores)
        return found, sorted(number for number in all_loads if number not in found)

    def _kept(self) -> list[Node]:
        """Return the values of a group that its elements' results need."""
        roots = [root for _, _, root in self.element_stores()]
        found = {
            id(operand): operand
            for node in self.needed(roots)
            if self.levels[id(node)] is Level.ELEMENT
            for operand in node.operands
        }
        found |= {id(root): root for root in roots}
        return [node for key, node in found.items() if self.levels[key] in (Level.GIVEN, Level.STATISTIC)]


def _expanded(node: Node) -> Node:
    """Return a function in basic operations; of a narrow one its exponential and its quotients are narrow
    too."""
    if node.operation not in FUNCTIONS:
        return node
    if is_narrow(node) or node.attribute is Precision.BFLOAT16:
        quotients = Precision.ROUGH if node.operation in TAME else Precision.NARROW
        return with_quotients(node, narrow_math.expand(node), quotients)
    if node.operation is Operation.GAUSSIAN_ERROR_LINEAR_UNIT:
        expansion = reciprocal_math.gaussian_error_linear_unit(*node.operands)
    else:
        expansion = vector_math.expand(node)
    return with_quotients(node, expansion, TAME[node.operation]) if node.operation in TAME else expansion
