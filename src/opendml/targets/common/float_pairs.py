"""FLOAT64 as pairs of FLOAT32, for targets without wider floats: a value is a high part and a low part.

Pairs keep the bound of sums in FLOAT64 (`SumBound.ROUNDED_ONCE`): an addition is off by 2^-46 or less. In a
sum the low part is what compensated summation keeps. Numbers have the range of FLOAT32: a sum beyond 2^128 is
infinite, and parts below 2^-126 are lost. The algorithms are those of Dekker and Knuth, with fused products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from opendml.compiler.kernel import number_of
from opendml.compiler.parameters import value_of_word
from opendml.errors import Unsupported
from opendml.late_dataclass import dataclass
from opendml.program.functions import maximum, minimum, multiply_add, select, square_root
from opendml.program.node import COLLECTIVE, Node, Operation, apply, constant, convert, ordered, source
from opendml.program.scalar_type import ScalarType, number_in
from opendml.targets.common.accumulations import Accumulation, Graph, accumulations_of

F32, F64 = ScalarType.FLOAT32, ScalarType.FLOAT64
Parts = tuple[Node, ...]
"""A value without FLOAT64: one node, or the high and the low part of a FLOAT64."""


@dataclass(frozen=True, slots=True)
class ReductionPass:
    """One pass over a group in a kernel without FLOAT64.

    Args:
        accumulations: what is accumulated in the pass, over the parts of operands.
        operands: the parts of all operands of each accumulation, one after the other.
        results: for each accumulation the SOURCEs that stand for the parts of its results in later values.
    """

    accumulations: tuple[Accumulation, ...]
    operands: tuple[Parts, ...]
    results: tuple[Parts, ...]


def without_float64(values: Sequence[Node], first: int) -> tuple[list[ReductionPass], tuple[Node, ...]]:
    """Return the passes of a kernel and its values, all without FLOAT64.

    The parts of PARAMETER n have the numbers 2 n and 2 n + 1 (`numbers_in_parts`).

    Args:
        values: the values of a kernel, whose functions are expanded. None of them is a FLOAT64.
        first: the number of the first SOURCE that may stand for a result; the kernel has fewer loads.

    Raises:
        Unsupported: a value is a FLOAT64, or made by an operation that pairs do not have.
    """
    lowered, stages = _Lowering({}), list[ReductionPass]()
    for accumulations in accumulations_of(values):
        operands = tuple(
            tuple(part for operand in each.operands for part in lowered.parts(operand))
            for each in accumulations
        )
        results: list[Parts] = []
        for each in accumulations:
            own: list[Node] = []
            for node in each.nodes:
                parts = tuple(source(first + number, type) for number, type in enumerate(parts_of(node.type)))
                first += len(parts)
                lowered.set(node, parts)
                own += parts
            results.append(tuple(own))
        stages.append(ReductionPass(tuple(map(_in_pairs, accumulations)), operands, tuple(results)))
    if any(value.type is F64 for value in values):
        raise Unsupported("a tensor of FLOAT64 on a device without FLOAT64")
    return stages, tuple(lowered.parts(value)[0] for value in values)


def parts_of(type: ScalarType) -> tuple[ScalarType, ...]:
    """Return the types of the parts of a value."""
    return (F32, F32) if type is F64 else (type,)


def parts_of_number(value: float) -> tuple[float, float]:
    """Return the high and the low part of a number."""
    high = number_in(value, F32)
    return high, number_in(value - high, F32) if math.isfinite(high) else 0.0


def numbers_in_parts(values: Sequence[Node], words: Sequence[int]) -> list[float]:
    """Return the numbers of a kernel that `without_float64` has changed.

    Args:
        values: the values of the kernel before.
        words: the bits of its numbers.
    """
    numbers = [0.0] * (2 * len(words))
    for node in ordered(values):
        if node.operation is Operation.PARAMETER:
            number = number_of(node)
            numbers[2 * number : 2 * number + 2] = parts_of_number(value_of_word(words[number], node.type))
    return numbers


def _in_pairs(each: Accumulation) -> Accumulation:
    """Return an accumulation over parts."""
    state = [*each.parts]
    operands = [operand.type for operand in each.operands]
    add = _lowered_graph(each.add, [*state, *operands])
    return replace(
        each,
        parts=tuple(part for type in state for part in parts_of(type)),
        start=_lowered_graph(each.start, operands),
        add=add,
        add_in_order=_lowered_graph(each.add_in_order, [*state, *operands]),
        add_together=None,
        merge=_lowered_graph(each.merge, state * 2),
        results=_lowered_graph(each.results, [*state, F64]),
    )


def _lowered_graph(roots: Graph, types: Iterable[ScalarType]) -> Graph:
    """Return a graph over the parts of given values of these types, in their order."""
    given: dict[int, Parts] = {}
    first = 0
    for number, type in enumerate(types):
        own = parts_of(type)
        given[number] = tuple(source(first + place, part) for place, part in enumerate(own))
        first += len(own)
    lowered = _Lowering(given)
    return tuple(part for root in roots for part in lowered.parts(root))


class _Lowering:
    """The parts of nodes. `given` has those of SOURCEs by their numbers; others stand for themselves."""

    def __init__(self, given: Mapping[int, Parts]) -> None:
        self._given = given
        self._found: dict[int, Parts] = {}
        self._alive: list[Node] = []

    def set(self, node: Node, parts: Parts) -> None:
        """State the parts of a node that is computed elsewhere."""
        self._found[id(node)] = parts
        self._alive.append(node)

    def parts(self, root: Node) -> Parts:
        """Return the parts of a node."""
        for node in ordered([root], self._found):
            self.set(node, self._lowered(node))
        return self._found[id(root)]

    def _lowered(self, node: Node) -> Parts:
        operands = [self._found[id(operand)] for operand in node.operands]
        if node.operation is Operation.SOURCE and node.attribute in self._given:
            return self._given[number_of(node)]
        if node.operation in COLLECTIVE:
            raise Unsupported(f"{node.operation.name} in another pass on a device without FLOAT64")
        if node.operation is Operation.PARAMETER and node.type is not F64:
            return (Node(node.operation, node.type, attribute=2 * number_of(node)),)
        if node.type is not F64 and not any(operand.type is F64 for operand in node.operands):
            own = tuple(part for (part,) in operands)
            return (Node(node.operation, node.type, node.sizes, own, node.attribute, node.origin),)
        if node.operation is Operation.PARAMETER:
            return tuple(Node(node.operation, F32, attribute=2 * number_of(node) + part) for part in (0, 1))
        if node.operation is Operation.CONSTANT:
            high, low = parts_of_number(node.number)
            return constant(high, F32), constant(low, F32)
        if node.operation is Operation.CONVERT:
            return _converted(node, operands[0])
        if node.operation not in _PAIRS:
            raise Unsupported(f"{node.operation.name} of FLOAT64 on a device without FLOAT64")
        return _PAIRS[node.operation](*operands)


def _converted(node: Node, value: Parts) -> Parts:
    """Return a conversion to or from FLOAT64."""
    if node.type is F64:
        (whole,) = value
        high = convert(whole, F32)
        if whole.type.is_float or whole.type.bits <= 16:
            return high, constant(0.0, F32)
        return high, convert(whole - convert(high, whole.type), F32)
    if node.type.is_float:
        return (convert(value[0], node.type),)
    # A high part of 2^24 or more is whole, and the low part has what is left.
    return (convert(value[0], node.type) + convert(value[1], node.type),)


def _sum(a: Node, b: Node) -> Parts:
    """Return a + b, and its rounding error; 0 if the sum is not finite."""
    total = a + b
    of_b = total - a
    return total, _finite(total, (a - (total - of_b)) + (b - of_b))


def _ordered_sum(a: Node, b: Node) -> Parts:
    """Return the same where the magnitude of a is not less than that of b."""
    total = a + b
    return total, _finite(total, b - (total - a))


def _product(a: Node, b: Node) -> Parts:
    product = a * b
    return product, _finite(product, multiply_add(a, b, -product))


def _finite(value: Node, error: Node) -> Node:
    return select(abs(value) < math.inf, error, 0.0)


def _added(x: Parts, y: Parts) -> Parts:
    high, error = _sum(x[0], y[0])
    low, rest = _sum(x[1], y[1])
    high, error = _ordered_sum(high, error + low)
    return _ordered_sum(high, error + rest)


def _multiplied(x: Parts, y: Parts) -> Parts:
    high, error = _product(x[0], y[0])
    cross = multiply_add(x[0], y[1], multiply_add(x[1], y[0], error))
    return _ordered_sum(high, _finite(high, cross))


def _divided(x: Parts, y: Parts) -> Parts:
    first = x[0] / y[0]
    rest = _added(x, _negative(_multiplied(y, (first, constant(0.0, F32)))))
    return _ordered_sum(first, _finite(first, rest[0] / y[0]))


def _root(x: Parts) -> Parts:
    root = square_root(x[0])
    rest = _added(x, _negative(_product(root, root)))
    is_regular = apply(Operation.AND, root > 0.0, root < math.inf)
    return _ordered_sum(root, select(is_regular, rest[0] / (root + root), 0.0))


def _negative(x: Parts) -> Parts:
    return tuple(-part for part in x)


def _magnitude(x: Parts) -> Parts:
    return abs(x[0]), select(x[0] < 0.0, -x[1], x[1])


def _chosen(condition: Parts, x: Parts, y: Parts) -> Parts:
    return tuple(select(condition[0], a, b) for a, b in zip(x, y, strict=True))


def _equal(x: Parts, y: Parts) -> Parts:
    return (_both(*(apply(Operation.EQUAL, a, b) for a, b in zip(x, y, strict=True))),)


def _comparison(compare: Callable[[Node, Node], Node]) -> Callable[[Parts, Parts], Parts]:
    def compared(x: Parts, y: Parts) -> Parts:
        beside = _both(apply(Operation.EQUAL, x[0], y[0]), compare(x[1], y[1]))
        return (apply(Operation.OR, x[0] < y[0], beside),)

    return compared


def _both(a: Node, b: Node) -> Node:
    return apply(Operation.AND, a, b)


def _extreme(extreme: Callable[[Node, Node], Node], is_least: bool) -> Callable[[Parts, Parts], Parts]:
    def chosen(x: Parts, y: Parts) -> Parts:
        (is_less,) = _comparison(Node.__lt__)(x, y)
        low = select(is_less, x[1], y[1]) if is_least else select(is_less, y[1], x[1])
        return extreme(x[0], y[0]), low

    return chosen


_PAIRS: dict[Operation, Callable[..., Parts]] = {
    Operation.ADD: _added,
    Operation.SUBTRACT: lambda x, y: _added(x, _negative(y)),
    Operation.MULTIPLY: _multiplied,
    Operation.MULTIPLY_ADD: lambda x, y, z: _added(_multiplied(x, y), z),
    Operation.DIVIDE: _divided,
    Operation.SQUARE_ROOT: _root,
    Operation.NEGATE: _negative,
    Operation.ABSOLUTE: _magnitude,
    Operation.MINIMUM: _extreme(minimum, is_least=True),
    Operation.MAXIMUM: _extreme(maximum, is_least=False),
    Operation.SELECT: _chosen,
    Operation.LESS: _comparison(Node.__lt__),
    Operation.LESS_EQUAL: _comparison(Node.__le__),
    Operation.EQUAL: _equal,
    Operation.ROUND: lambda x: x,
    Operation.EXPAND: lambda x: x,
}
"""The operations of FLOAT64 in pairs."""
