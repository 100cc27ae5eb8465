"""The state that is kept while a group is reduced: how it starts, takes elements in, is put together, and
what follows from it.

All of it works on scalars and on vectors alike, whose lanes are accumulations of their own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from llvmlite import ir

from opendml.program.node import SEARCHES, Node, Operation, reduction
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.passes import passes_of
from opendml.targets.cpu.values import intrinsic, llvm_type, number, overloaded, splat

F64 = ScalarType.FLOAT64
_I32 = ir.IntType(32)

State = list[ir.Value]
"""One value for each of an accumulation's parts."""


class Accumulation(ABC):
    """The state of some reductions of one value."""

    lanes_at_once: ClassVar[int] = 4
    """Independent vectors of states: enough to hide the latency of taking in an element."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)
        self.value, *_ = nodes[0].operands
        self.operands = nodes[0].operands
        """The values that it takes in of every element."""
        self.parts: tuple[ScalarType, ...] = ()
        """The types of the state."""

    @abstractmethod
    def start(self, builder: ir.IRBuilder, lanes: int, first: State) -> State:
        """The state before any element; `first` are the operands at the group's first element."""

    @abstractmethod
    def add(self, builder: ir.IRBuilder, lanes: int, state: State, element: State, in_order: bool) -> State:
        """The state with an element's operands; `in_order` if positions only grow."""

    @abstractmethod
    def merge(self, builder: ir.IRBuilder, lanes: int, left: State, right: State) -> State:
        """The state of two parts of one group."""

    def folded(self, builder: ir.IRBuilder, lanes: int, state: State) -> State:
        """The state of all lanes as one: halves onto halves."""
        while lanes > 1:
            halves = [_halves(builder, part, lanes) for part in state]
            lanes //= 2
            low, high = [half[0] for half in halves], [half[1] for half in halves]
            state = self.merge(builder, lanes, low, high)
        return state

    @abstractmethod
    def results(
        self, builder: ir.IRBuilder, lanes: int, state: State, count: ir.Value
    ) -> dict[int, ir.Value]:
        """The reductions, by identity, of a group of `count` elements (an integer)."""


class Moments(Accumulation):
    """Mean and variance: sums of the distances from a shift, and of their squares.

    The shift, the group's first element, keeps the sum of squares from cancelling where the mean is far from
    zero. Where the first element is not finite it is zero, as the distance from it would say nothing of the
    others.
    """

    lanes_at_once = 2

    def __init__(self, nodes: Sequence[Node]) -> None:
        super().__init__(nodes)
        self._spread = any(node.operation is Operation.VARIANCE for node in nodes)
        self.parts = (F64, F64, F64) if self._spread else (F64, F64)
        value = self.value
        self._narrow = value.operation is Operation.CONVERT and value.operands[0].type is ScalarType.FLOAT16

    def start(self, builder: ir.IRBuilder, lanes: int, first: State) -> State:
        wide = self._wide(builder, lanes, first[0])
        zero = number(F64, lanes, 0.0)
        finite = builder.fcmp_ordered("==", builder.fsub(wide, wide), zero)
        return [builder.select(finite, wide, zero), *[zero] * (len(self.parts) - 1)]

    def add(self, builder: ir.IRBuilder, lanes: int, state: State, element: State, in_order: bool) -> State:
        shift, total, *squares = state
        (value,) = element
        if self._narrow:
            # FLOAT32 holds the difference of two FLOAT16 as well as is needed, and half as many vectors.
            narrow = builder.fptrunc(shift, value.type)
            distance = builder.fpext(builder.fsub(value, narrow), shift.type)
        else:
            distance = builder.fsub(self._wide(builder, lanes, value), shift)
        result = [shift, builder.fadd(total, distance)]
        if squares:
            name = f"llvm.fma.v{lanes}f64" if lanes > 1 else "llvm.fma.f64"
            result.append(intrinsic(builder, name, distance.type, [distance, distance, squares[0]]))
        return result

    def merge(self, builder: ir.IRBuilder, lanes: int, left: State, right: State) -> State:
        return [left[0], *(builder.fadd(a, b) for a, b in zip(left[1:], right[1:], strict=True))]

    def results(
        self, builder: ir.IRBuilder, lanes: int, state: State, count: ir.Value
    ) -> dict[int, ir.Value]:
        """The mean is shift + s / n, the variance (q - s * s / n) / n, never below zero."""
        shift, total, *squares = state
        share = builder.fdiv(number(F64, 1, 1.0), builder.sitofp(count, ir.DoubleType()))
        share = splat(builder, share, lanes)
        average = builder.fmul(total, share)
        found = {Operation.MEAN: builder.fadd(shift, average)}
        if squares:
            spread = builder.fmul(builder.fsub(squares[0], builder.fmul(total, average)), share)
            zero = number(F64, lanes, 0.0)
            found[Operation.VARIANCE] = builder.select(builder.fcmp_ordered("<", spread, zero), zero, spread)
        return {id(node): found[node.operation] for node in self.nodes}

    def _wide(self, builder: ir.IRBuilder, lanes: int, value: ir.Value) -> ir.Value:
        if self.value.type is F64:
            return value
        return builder.fpext(value, llvm_type(F64, lanes))


class Total(Accumulation):
    """A sum or a product, running or not: of floats in FLOAT64, of integers wrapping."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        super().__init__(nodes)
        self._type = nodes[0].type
        self._sums = nodes[0].operation in (Operation.SUM, Operation.RUNNING_SUM)
        self.parts = (self._type,)

    def start(self, builder: ir.IRBuilder, lanes: int, first: State) -> State:
        return [number(self._type, lanes, 0 if self._sums else 1)]

    def add(self, builder: ir.IRBuilder, lanes: int, state: State, element: State, in_order: bool) -> State:
        return self.merge(builder, lanes, state, [self.wide(builder, lanes, element[0])])

    def wide(self, builder: ir.IRBuilder, lanes: int, value: ir.Value) -> ir.Value:
        """An element as it is added or multiplied."""
        if self._type.is_float and self.value.type is not self._type:
            return builder.fpext(value, llvm_type(self._type, lanes))
        return value

    def merge(self, builder: ir.IRBuilder, lanes: int, left: State, right: State) -> State:
        if self._type.is_float:
            return [(builder.fadd if self._sums else builder.fmul)(left[0], right[0])]
        return [(builder.add if self._sums else builder.mul)(left[0], right[0])]

    def results(
        self, builder: ir.IRBuilder, lanes: int, state: State, count: ir.Value
    ) -> dict[int, ir.Value]:
        return {id(node): state[0] for node in self.nodes}


class SumOfProducts(Accumulation):
    """The sum of the products of two operands: of floats fused, in their type, of integers wrapping."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        super().__init__(nodes)
        self._type = nodes[0].type
        self.parts = (self._type,)

    def start(self, builder: ir.IRBuilder, lanes: int, first: State) -> State:
        return [number(self._type, lanes, 0)]

    def add(self, builder: ir.IRBuilder, lanes: int, state: State, element: State, in_order: bool) -> State:
        if self._type.is_float:
            return [overloaded(builder, "fma", self._type, lanes, [*element, *state])]
        return [builder.add(builder.mul(*element), state[0])]

    def merge(self, builder: ir.IRBuilder, lanes: int, left: State, right: State) -> State:
        return [(builder.fadd if self._type.is_float else builder.add)(left[0], right[0])]

    def results(
        self, builder: ir.IRBuilder, lanes: int, state: State, count: ir.Value
    ) -> dict[int, ir.Value]:
        return {id(node): state[0] for node in self.nodes}


class Extreme(Accumulation):
    """The least or the greatest element; NaN if one is."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        super().__init__(nodes)
        self._type, self._least = nodes[0].type, nodes[0].operation is Operation.LEAST
        self.parts = (self._type,)

    def start(self, builder: ir.IRBuilder, lanes: int, first: State) -> State:
        type = self._type
        if type.is_float:
            return [number(type, lanes, math.inf if self._least else -math.inf)]
        highest = 2 ** (type.bits - type.is_signed) - 1
        lowest = -highest - 1 if type.is_signed else 0
        return [number(type, lanes, highest if self._least else lowest)]

    def add(self, builder: ir.IRBuilder, lanes: int, state: State, element: State, in_order: bool) -> State:
        return self.merge(builder, lanes, state, element)

    def merge(self, builder: ir.IRBuilder, lanes: int, left: State, right: State) -> State:
        a, b = left[0], right[0]
        if self._type.is_float:
            name = f"llvm.{'minimum' if self._least else 'maximum'}"
            suffix = f"v{lanes}f{self._type.bits}" if lanes > 1 else f"f{self._type.bits}"
            return [intrinsic(builder, f"{name}.{suffix}", a.type, [a, b], flags=("nsz",))]
        compare = builder.icmp_signed if self._type.is_signed else builder.icmp_unsigned
        return [builder.select(compare("<" if self._least else ">", a, b), a, b)]

    def results(
        self, builder: ir.IRBuilder, lanes: int, state: State, count: ir.Value
    ) -> dict[int, ir.Value]:
        return {id(node): state[0] for node in self.nodes}


class Search(Accumulation):
    """The position of the first or last extreme element: the element, and its position. NaN comes before all
    numbers."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        super().__init__(nodes)
        operation = nodes[0].operation
        self._type = self.value.type
        self._sign = ">" if operation in (Operation.FIRST_GREATEST, Operation.LAST_GREATEST) else "<"
        self._last = operation in (Operation.LAST_LEAST, Operation.LAST_GREATEST)
        self._extreme = Extreme([reduction(_EXTREMES[operation], self.value, ())])
        self.parts = (self._type, nodes[0].type)

    def start(self, builder: ir.IRBuilder, lanes: int, first: State) -> State:
        return first

    def add(self, builder: ir.IRBuilder, lanes: int, state: State, element: State, in_order: bool) -> State:
        if not in_order:
            return self.merge(builder, lanes, state, element)
        best, value = state[0], element[0]
        sign = f"{self._sign}=" if self._last else self._sign
        if not self._type.is_float:
            return self._chosen(builder, self._compare(builder)(sign, value, best), state, element)
        # NaN is kept but, in search of the last, by NaN.
        better = builder.fcmp_unordered(sign, value, best)
        better = builder.and_(better, builder.fcmp_ordered("ord", best, best))
        if self._last:
            better = builder.or_(better, builder.fcmp_unordered("uno", value, value))
        return self._chosen(builder, better, state, element)

    def merge(self, builder: ir.IRBuilder, lanes: int, left: State, right: State) -> State:
        (best, best_at), (value, value_at) = left, right
        further = builder.icmp_signed(">" if self._last else "<", value_at, best_at)
        if self._type.is_float:
            nan, best_nan = (builder.fcmp_unordered("uno", each, each) for each in (value, best))
            better = builder.fcmp_ordered(self._sign, value, best)
            better = builder.or_(better, builder.and_(nan, builder.not_(best_nan)))
            equal = builder.fcmp_ordered("==", value, best)
            equal = builder.or_(equal, builder.and_(nan, best_nan))
        else:
            better = self._compare(builder)(self._sign, value, best)
            equal = builder.icmp_signed("==", value, best)
        return self._chosen(builder, builder.or_(better, builder.and_(equal, further)), left, right)

    def results(
        self, builder: ir.IRBuilder, lanes: int, state: State, count: ir.Value
    ) -> dict[int, ir.Value]:
        return {id(node): state[1] for node in self.nodes}

    def folded(self, builder: ir.IRBuilder, lanes: int, state: State) -> State:
        """The extreme element of all lanes, then the first or last position of those lanes that have it."""
        values, positions = state
        extreme = self._extreme.folded(builder, lanes, [values])[0]
        best = splat(builder, extreme, lanes)
        if self._type.is_float:
            nan = builder.fcmp_unordered("uno", values, values)
            # Beside a NaN, which is the extreme then, only NaN is found.
            equal = builder.or_(builder.fcmp_ordered("==", values, best), nan)
        else:
            equal = builder.icmp_signed("==", values, best)
        type = self.parts[1]
        elsewhere = number(type, lanes, -1 if self._last else 2 ** (type.bits - 1) - 1)
        candidates = builder.select(equal, positions, elsewhere)
        name = f"llvm.vector.reduce.{'smax' if self._last else 'smin'}.v{lanes}i{type.bits}"
        return [extreme, intrinsic(builder, name, ir.IntType(type.bits), [candidates])]

    def _compare(self, builder: ir.IRBuilder) -> Callable[[str, ir.Value, ir.Value], ir.Value]:
        compare: Callable[[str, ir.Value, ir.Value], ir.Value] = (
            builder.icmp_signed if self._type.is_signed else builder.icmp_unsigned
        )
        return compare

    def _chosen(self, builder: ir.IRBuilder, right: ir.Value, a: State, b: State) -> State:
        return [builder.select(right, y, x) for x, y in zip(a, b, strict=True)]


_EXTREMES = {
    Operation.FIRST_LEAST: Operation.LEAST,
    Operation.LAST_LEAST: Operation.LEAST,
    Operation.FIRST_GREATEST: Operation.GREATEST,
    Operation.LAST_GREATEST: Operation.GREATEST,
}

_KINDS: dict[Operation, type[Accumulation]] = {
    Operation.MEAN: Moments,
    Operation.VARIANCE: Moments,
    Operation.SUM: Total,
    Operation.PRODUCT: Total,
    Operation.RUNNING_SUM: Total,
    Operation.RUNNING_PRODUCT: Total,
    Operation.CONTRACTION: SumOfProducts,
    Operation.LEAST: Extreme,
    Operation.GREATEST: Extreme,
    **dict.fromkeys(SEARCHES, Search),
}


def accumulations_of(values: Iterable[Node]) -> list[list[Accumulation]]:
    """The accumulations that `values` need, by the pass over a group in which each can be made."""
    return [[_KINDS[nodes[0].operation](nodes) for nodes in stage] for stage in passes_of(values)]


def _halves(builder: ir.IRBuilder, vector: ir.Value, lanes: int) -> tuple[ir.Value, ir.Value]:
    """The lower and the upper half of a vector of `lanes`; of two lanes, the scalars."""
    if lanes == 2:
        return builder.extract_element(vector, _I32(0)), builder.extract_element(vector, _I32(1))
    undefined = ir.Constant(vector.type, ir.Undefined)
    low, high = (
        builder.shuffle_vector(
            vector,
            undefined,
            ir.Constant(ir.VectorType(_I32, lanes // 2), [first + lane for lane in range(lanes // 2)]),
        )
        for first in (0, lanes // 2)
    )
    return low, high


def part_count(values: Iterable[Node]) -> int:
    """The number of parts of all accumulations."""
    return sum(len(accumulation.parts) for stage in accumulations_of(values) for accumulation in stage)
