"""The states of reductions, as graphs of element-wise nodes that targets print as any others.

The graphs say how a state starts, takes in an element, and merges with the state of another part of the
group, and which results follow from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from opendml.late_dataclass import dataclass
from opendml.program.functions import logical_and, logical_not, logical_or, select
from opendml.program.node import SEARCHES, Node, Operation, apply, constant, convert, source
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.passes import MOMENTS, passes_of

F16, F32, F64 = ScalarType.FLOAT16, ScalarType.FLOAT32, ScalarType.FLOAT64
TOGETHER = 8
"""Elements that `add_together` takes in at once."""
Graph = tuple[Node, ...]
"""One value for each part of a state, or for each reduction. SOURCE i stands for the i-th value that is
given."""


@dataclass(frozen=True, slots=True)
class Accumulation:
    """Some reductions of the same operands.

    Args:
        nodes: the reductions.
        parts: the types of the state.
        start: the state before any element, given the operands at the group's first element.
        add: the state with an element, given the state, then the element's operands.
        add_in_order: the same, where positions only grow.
        add_together: the state with TOGETHER elements, given the state, then the operands of each; None where
            that is the same as one after the other.
        merge: the state of two parts of a group, given both.
        results: the reductions, given the state and, as FLOAT64, one over the number of elements.
    """

    nodes: tuple[Node, ...]
    parts: tuple[ScalarType, ...]
    start: Graph
    add: Graph
    add_in_order: Graph
    add_together: Graph | None
    merge: Graph
    results: Graph

    @property
    def operands(self) -> tuple[Node, ...]:
        """The values that it takes in of every element."""
        return self.nodes[0].operands


def accumulations_of(values: Iterable[Node]) -> list[list[Accumulation]]:
    """Return the accumulations that `values` need, by the pass over a group in which each can be made."""
    return [[accumulation_of(tuple(nodes)) for nodes in stage] for stage in passes_of(values)]


def accumulation_of(nodes: tuple[Node, ...]) -> Accumulation:
    """Return the accumulation of reductions of the same operands, which `passes_of` puts together."""
    operation, operands = nodes[0].operation, nodes[0].operands
    types = tuple(operand.type for operand in operands)
    if operation in MOMENTS:
        value = operands[0]
        is_narrow = value.operation is Operation.CONVERT and value.operands[0].type is F16
        graphs = _moments(tuple(node.operation for node in nodes), value.type, is_narrow)
    elif operation in SEARCHES:
        graphs = _search(operation, *types)
    elif operation is Operation.CONTRACTION:
        graphs = _sum_of_products(nodes[0].type)
    elif operation in (Operation.LEAST, Operation.GREATEST):
        graphs = _extreme(operation, nodes[0].type)
    else:
        graphs = _total(operation, nodes[0].type, types[0])
    return Accumulation(nodes, *graphs)


_Graphs = tuple[tuple[ScalarType, ...], Graph, Graph, Graph, Graph | None, Graph, Graph]
"""The parts, then the graphs of an accumulation in the order of its fields."""


def _given(types: Sequence[ScalarType], first: int = 0) -> list[Node]:
    return [source(first + number, type) for number, type in enumerate(types)]


@lru_cache
def _moments(operations: tuple[Operation, ...], type: ScalarType, is_narrow: bool) -> _Graphs:
    """Mean and variance: sums of the distances from a shift, and of their squares.

    The shift, the group's first element, keeps the sum of squares from cancelling where the mean is far from
    zero. Where the first element is not finite it is zero, as the distance from it would say nothing of the
    others.
    """
    spreads = Operation.VARIANCE in operations
    parts = (F64, F64, F64) if spreads else (F64, F64)
    wide = convert(source(0, type), F64)
    zero = constant(0.0, F64)
    shift = select(apply(Operation.EQUAL, wide - wide, zero), wide, zero)
    start = (shift, *[zero] * (len(parts) - 1))

    shift, total, *squares = _given(parts)
    value = source(len(parts), type)
    # FLOAT32 holds the difference of two FLOAT16 as well as is needed, and vectors hold twice as many.
    distance = convert(value - convert(shift, F32), F64) if is_narrow else convert(value, F64) - shift
    add = (shift, total + distance, *(apply(Operation.MULTIPLY_ADD, distance, distance, s) for s in squares))

    others = _given(parts, len(parts))
    merge = (shift, *(a + b for a, b in zip([total, *squares], others[1:], strict=True)))

    # The mean is shift + s / n, the variance (q - s * s / n) / n, never below zero.
    share = source(len(parts), F64)
    average = total * share
    found = {Operation.MEAN: shift + average}
    if spreads:
        spread = (squares[0] - total * average) * share
        found[Operation.VARIANCE] = select(spread < zero, zero, spread)
    together = _moments_together(type) if is_narrow and spreads else None
    return parts, start, add, add, together, merge, tuple(found[operation] for operation in operations)


def _moments_together(type: ScalarType) -> Graph:
    """Return the state of mean and variance with elements that were FLOAT16: their sum, and the sum of
    squares about their own mean, in FLOAT32.

    The sum is exact, since elements have 11 bits, unless one of them is nothing beside the others. Its error
    is at most 3 * 2^-24 of magnitudes that are no more than 7.5 roots of the squares. All these errors move
    the mean of the group by at most 8 * 2^-24 deviations, 0.5e-6. The squares are off by 7 * 2^-24 of
    themselves. No shift is needed for that, and all else is FLOAT64.
    """
    shift, total, squares = _given((F64, F64, F64))
    values = _given((type,) * TOGETHER, 3)
    sum = _added_in_pairs(values)
    center = sum * (1.0 / TOGETHER)
    distances = [value - center for value in values]
    halves = [_sum_of_squares(distances[part::2]) for part in (0, 1)]
    distance = apply(Operation.MULTIPLY_ADD, shift, -float(TOGETHER), convert(sum, F64))
    further = squares + convert(halves[0] + halves[1], F64)
    return (
        shift,
        total + distance,
        apply(Operation.MULTIPLY_ADD, distance * (1.0 / TOGETHER), distance, further),
    )


def _added_in_pairs(values: Sequence[Node]) -> Node:
    """Return the sum of two, four, eight ... values, with as few roundings one after the other as can be."""
    while len(values) > 1:
        values = [a + b for a, b in zip(values[::2], values[1::2], strict=True)]
    return values[0]


def _sum_of_squares(values: Sequence[Node]) -> Node:
    sum = values[0] * values[0]
    for value in values[1:]:
        sum = apply(Operation.MULTIPLY_ADD, value, value, sum)
    return sum


@lru_cache
def _total(operation: Operation, type: ScalarType, of: ScalarType) -> _Graphs:
    """Return a sum or a product, running or not: of floats in FLOAT64, of integers wrapping."""
    sums = operation in (Operation.SUM, Operation.RUNNING_SUM)
    combine: Callable[[Node, Node], Node] = Node.__add__ if sums else Node.__mul__
    state, other = _given((type, type))
    add = (combine(state, convert(source(1, of), type)),)
    return (type,), (constant(0 if sums else 1, type),), add, add, None, (combine(state, other),), (state,)


@lru_cache
def _sum_of_products(type: ScalarType) -> _Graphs:
    """Return the sum of the products of two operands: of floats fused, in their type, of integers
    wrapping."""
    state, left, right = _given((type,) * 3)
    fused = apply(Operation.MULTIPLY_ADD, left, right, state)
    add = (fused if type.is_float else left * right + state,)
    return (type,), (constant(0, type),), add, add, None, (state + left,), (state,)


@lru_cache
def _extreme(operation: Operation, type: ScalarType) -> _Graphs:
    """Return the least or the greatest element; NaN if one is."""
    is_least = operation is Operation.LEAST
    highest = math.inf if type.is_float else 2 ** (type.bits - type.is_signed) - 1
    lowest = -math.inf if type.is_float else -highest - 1 if type.is_signed else 0
    state, other = _given((type, type))
    merge = (apply(Operation.MINIMUM if is_least else Operation.MAXIMUM, state, other),)
    return (type,), (constant(highest if is_least else lowest, type),), merge, merge, None, merge, (state,)


@lru_cache
def _search(operation: Operation, type: ScalarType, position: ScalarType) -> _Graphs:
    """Return the position of the first or last extreme element: the element, and its position. NaN comes
    before all numbers."""
    parts = (type, position)
    (best, best_at), (value, value_at) = _given(parts), _given(parts, 2)
    is_greatest = operation in (Operation.FIRST_GREATEST, Operation.LAST_GREATEST)
    is_last = operation in (Operation.LAST_LEAST, Operation.LAST_GREATEST)
    better = best < value if is_greatest else value < best
    equal = apply(Operation.EQUAL, value, best)
    further = best_at < value_at if is_last else value_at < best_at
    # A later one is better, or if it is sought also as good.
    following = better if not is_last else best <= value if is_greatest else value <= best
    if type.is_float:
        is_number, best_is_number = (apply(Operation.EQUAL, each, each) for each in (value, best))
        is_nan = logical_not(is_number)
        better = logical_or(better, logical_and(is_nan, best_is_number))
        equal = logical_or(equal, logical_and(is_nan, logical_not(best_is_number)))
        low, high = (value, best) if is_greatest else (best, value)
        # NaN is kept but, in search of the last, by NaN.
        following = logical_and(logical_not(low < high if is_last else low <= high), best_is_number)
        if is_last:
            following = logical_or(following, is_nan)
    chosen = logical_or(better, logical_and(equal, further))
    merge = (select(chosen, value, best), select(chosen, value_at, best_at))
    in_order = (select(following, value, best), select(following, value_at, best_at))
    return parts, (best, best_at), merge, in_order, None, merge, (best_at,)
