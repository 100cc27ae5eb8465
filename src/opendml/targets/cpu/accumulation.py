"""The accumulations of a kernel as LLVM values: scalars, or vectors whose lanes are accumulations of their
own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opendml.program.node import SEARCHES, Node, Operation, ordered
from opendml.program.scalar_type import ScalarType
from opendml.targets.common import accumulations
from opendml.targets.common.passes import MOMENTS
from opendml.targets.cpu import ir
from opendml.targets.cpu.expression import emit
from opendml.targets.cpu.values import intrinsic, number, overloaded, splat, vector_constant

_I32 = ir.IntType(32)

State = list[ir.Value]
"""One value for each of an accumulation's parts."""


class AccumulationCode:
    """The state of some reductions of the same operands."""

    def __init__(self, graphs: accumulations.Accumulation) -> None:
        self._graphs = graphs
        self.nodes, self.operands, self.parts = graphs.nodes, graphs.operands, graphs.parts
        self.lanes_at_once = 2 if self.nodes[0].operation in MOMENTS else 4
        """Independent vectors of states that hide the latency of adding an element."""

    def start(self, builder: ir.IRBuilder, lanes: int, first: State) -> State:
        """Return the state before any element. `first` are the operands at the group's first element."""
        return emitted(builder, self._graphs.start, lanes, first)

    def add(self, builder: ir.IRBuilder, lanes: int, state: State, element: State, in_order: bool) -> State:
        """Return the state with an element. `in_order`: positions only grow."""
        graph = self._graphs.add_in_order if in_order else self._graphs.add
        return emitted(builder, graph, lanes, [*state, *element])

    @property
    def adds_together(self) -> bool:
        """Return whether TOGETHER elements are added at less cost than one by one."""
        return self._graphs.add_together is not None

    def add_together(
        self, builder: ir.IRBuilder, lanes: int, state: State, elements: Sequence[State], in_order: bool
    ) -> State:
        """Return the state with several elements: TOGETHER of them at once, if that costs less."""
        if self._graphs.add_together is not None and len(elements) == accumulations.TOGETHER:
            given = [*state, *(operand for element in elements for operand in element)]
            return emitted(builder, self._graphs.add_together, lanes, given)
        for element in elements:
            state = self.add(builder, lanes, state, element, in_order)
        return state

    def merge(self, builder: ir.IRBuilder, lanes: int, left: State, right: State) -> State:
        """Return the state of two parts of one group."""
        return emitted(builder, self._graphs.merge, lanes, [*left, *right])

    def folded(self, builder: ir.IRBuilder, lanes: int, state: State) -> State:
        """Return the state of all lanes as one."""
        if lanes > 1 and self.nodes[0].operation in SEARCHES:
            return self._found_in_lanes(builder, lanes, state)
        return self._in_halves(builder, lanes, state)

    def results(
        self, builder: ir.IRBuilder, lanes: int, state: State, count: ir.Value
    ) -> dict[int, ir.Value]:
        """Return the reductions, by identity, of a group of `count` elements (an integer)."""
        given = list(state)
        if self.nodes[0].operation in MOMENTS:
            one = number(ScalarType.FLOAT64, 1, 1.0)
            share = builder.fdiv(one, builder.sitofp(count, ir.DOUBLE))
            given.append(splat(builder, share, lanes))
        values = emitted(builder, self._graphs.results, lanes, given)
        return {id(node): value for node, value in zip(self.nodes, values, strict=True)}

    def _in_halves(self, builder: ir.IRBuilder, lanes: int, state: State) -> State:
        """Merge halves of the lanes until one is left."""
        while lanes > 1:
            halves = [_halves(builder, part, lanes) for part in state]
            lanes //= 2
            low, high = [half[0] for half in halves], [half[1] for half in halves]
            state = self.merge(builder, lanes, low, high)
        return state

    def _found_in_lanes(self, builder: ir.IRBuilder, lanes: int, state: State) -> State:
        """Return the state of a search: the extreme element of all lanes, and the first or last position of
        the lanes that have it."""
        (values, positions), (type, position_type) = state, self.parts
        operation = self.nodes[0].operation
        is_greatest = operation in (Operation.FIRST_GREATEST, Operation.LAST_GREATEST)
        is_last = operation in (Operation.LAST_LEAST, Operation.LAST_GREATEST)
        extreme = _extreme(builder, type, values, lanes, is_greatest)
        best = splat(builder, extreme, lanes)
        if type.is_float:
            nan = builder.fcmp_unordered("uno", values, values)
            # If a lane is NaN, NaN is the extreme, and only NaN is found.
            equal = builder.or_(builder.fcmp_ordered("==", values, best), nan)
        else:
            equal = builder.icmp_signed("==", values, best)
        bits = position_type.bits
        elsewhere = number(position_type, lanes, -1 if is_last else 2 ** (bits - 1) - 1)
        candidates = builder.select(equal, positions, elsewhere)
        name = f"llvm.vector.reduce.{'smax' if is_last else 'smin'}.v{lanes}i{bits}"
        return [extreme, intrinsic(builder, name, ir.IntType(bits), [candidates])]


def accumulations_of(values: Iterable[Node]) -> list[list[AccumulationCode]]:
    """Return the accumulations that `values` need, by pass over a group."""
    return [list(map(AccumulationCode, stage)) for stage in accumulations.accumulations_of(values)]


def part_count(values: Iterable[Node]) -> int:
    """Return the number of parts of all accumulations."""
    return sum(len(each.parts) for stage in accumulations.accumulations_of(values) for each in stage)


def emitted(builder: ir.IRBuilder, roots: Sequence[Node], lanes: int, given: State) -> State:
    """Emit a graph whose SOURCEs stand for given values."""
    values: dict[int, ir.Value] = {}
    for node in ordered(roots):
        if node.operation is Operation.SOURCE and isinstance(node.attribute, int):
            values[id(node)] = given[node.attribute]
        else:
            operands = [values[id(operand)] for operand in node.operands]
            values[id(node)] = emit(builder, node, lanes, operands)
    return [values[id(root)] for root in roots]


def _extreme(
    builder: ir.IRBuilder, type: ScalarType, vector: ir.Value, lanes: int, is_greatest: bool
) -> ir.Value:
    """Return the least or the greatest of all lanes. Return NaN if one is."""
    name = "maximum" if is_greatest else "minimum"
    if not type.is_float:
        name = f"{'s' if type.is_signed else 'u'}{'max' if is_greatest else 'min'}"
    while lanes > 1:
        low, high = _halves(builder, vector, lanes)
        lanes //= 2
        vector = overloaded(builder, name, type, lanes, [low, high], ("nsz",) if type.is_float else ())
    return vector


def _halves(builder: ir.IRBuilder, vector: ir.Value, lanes: int) -> tuple[ir.Value, ir.Value]:
    """Return the lower and the upper half of a vector of `lanes`. The halves of two lanes are scalars."""
    if lanes == 2:
        return builder.extract_element(vector, _I32(0)), builder.extract_element(vector, _I32(1))
    undefined = ir.undefined(vector.type)
    low, high = (
        builder.shuffle_vector(
            vector,
            undefined,
            vector_constant(_I32, range(first, first + lanes // 2)),
        )
        for first in (0, lanes // 2)
    )
    return low, high
