"""The values that a kernel needs at each level: expanded, and told apart by how often they change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.guards import Guards, apart
from opendml.targets.common.pattern import Level, levels_of
from opendml.targets.cuda import narrow_math, reciprocal_math
from opendml.targets.cuda.near_division import TAME, with_quotients
from opendml.targets.cuda.pattern import COLLECTIVE, CudaAccess, CudaMode, CudaPattern, reduced


class Needs:
    """Held are the elements that reductions, scans or placings need, Late those that only results need; Given
    is what is known of a group at first, Kept what the results need of it. What guards loads is kept apart,
    but where loads are printed wherever their values are needed.
    """

    def __init__(self, pattern: CudaPattern) -> None:
        self.pattern = pattern
        self.narrow = all(each.type is ScalarType.FLOAT16 for each in (*pattern.loads, *pattern.stores))
        """True if all loads and stores are FLOAT16."""
        self.values = rebuild(pattern.values, _expanded)
        self.guards: Guards = {}
        if pattern.mode not in COLLECTIVE:
            self.values, self.guards = apart(self.values)
        self.reduced = reduced(self.values)
        self.nodes = list(
            ordered([*self.values, *(each for guard in self.guards.values() for each in guard)])
        )
        self.names = {id(node): f"v{number}" for number, node in enumerate(self.nodes)}
        self.levels = levels_of(self.nodes, [pattern.level(load) for load in pattern.loads])
        self.stores = [
            (len(pattern.loads) + position, access, root)
            for position, (access, root) in enumerate(zip(pattern.stores, self.values, strict=True))
        ]
        self.held, self.late = self._loads()
        self.given, self.kept = self._boundaries()

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
        """Return numbers of the loads that are held, and of those that come late."""

        def element_loads(roots: Iterable[Node]) -> list[int]:
            return [
                number_of(node)
                for node in self.needed(roots)
                if node.operation is Operation.SOURCE and self.levels[id(node)] is Level.ELEMENT
            ]

        if self.pattern.mode is CudaMode.TRANSPOSED:
            held = [number for number, load in enumerate(self.pattern.loads) if load.turned]
        else:
            collective = [node for node in self.nodes if node.operation in REDUCTIONS | SCANS | PLACINGS]
            held = sorted(element_loads(operand for node in collective for operand in node.operands))
        all_loads = element_loads(root for _, _, root in self.stores)
        return held, sorted(number for number in all_loads if number not in held)

    def _boundaries(self) -> tuple[list[Node], list[Node]]:
        """Group values that others need after the group's loads, and those that the elements need."""
        elements = self.needed(root for _, _, root in self.element_stores())
        kept = self._crossing(
            elements, (Level.GIVEN, Level.STATISTIC), [r for _, _, r in self.element_stores()]
        )
        kept = list(dict.fromkeys([*kept, *(root for _, _, root in self.group_stores())]))
        users = [*self.needed(self.reduced), *self.needed(kept)]
        given = self._crossing(users, (Level.GIVEN,), [*kept, *self.reduced])
        return given, kept

    def _crossing(
        self, users: Sequence[Node], levels: tuple[Level, ...], roots: Sequence[Node]
    ) -> list[Node]:
        """Return nodes of `levels` that nodes of higher levels among `users` need, or that are roots
        themselves."""
        highest = max(levels)
        found = {id(o): o for node in users if self.levels[id(node)] > highest for o in node.operands}
        found |= {id(root): root for root in roots}
        return [node for key, node in found.items() if self.levels[key] in levels]


def _expanded(node: Node) -> Node:
    """Return a function in basic operations; of a narrow one its exponential and its quotients are narrow
    too."""
    if node.operation not in FUNCTIONS:
        return node
    if is_narrow(node):
        quotients = Precision.ROUGH if node.operation in TAME else Precision.NARROW
        return with_quotients(node, narrow_math.expand(node), quotients)
    if node.operation is Operation.GAUSSIAN_ERROR_LINEAR_UNIT:
        expansion = reciprocal_math.gaussian_error_linear_unit(*node.operands)
    else:
        expansion = vector_math.expand(node)
    return with_quotients(node, expansion, TAME[node.operation]) if node.operation in TAME else expansion
