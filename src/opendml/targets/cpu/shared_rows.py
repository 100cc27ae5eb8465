"""Finds what neighbouring rows of an element-wise kernel have in common: a row of windows reads again most of
what the row before it did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from opendml.compiler.kernel import Access, Kernel, number_of
from opendml.compiler.loops import LoopNest
from opendml.program.node import Node, Operation, ordered
from opendml.targets.cpu.pattern import LINE, Reading, SharedReadings

_MOST_ROWS = 4
"""Rows of many that are computed together, at most."""
_ALL_ROWS = 8
"""Rows of a kernel that are computed together if it has no more."""
_MOST_LOADS = 128
"""Loads of all rows that are computed together, at most: each is code of its own."""


@dataclass(frozen=True, slots=True)
class SharedRows:
    """`count` rows that are computed together, of the one row loop of `nest`."""

    nest: LoopNest
    count: int
    reads: float
    """Distinct loads for each load of a row, over all rows; the rows that are left over share none."""


def shared_rows(kernel: Kernel, nest: LoopNest) -> SharedRows | None:
    """The way to compute rows together in which they share the most; None if none share anything. However
    short, rows are what is stored contiguous."""
    ways = [way for each in _nests(kernel, nest) for way in _ways(kernel, each)]
    best = min(ways, key=lambda way: way.reads, default=None)
    return best if best and best.reads < 1 else None


def _nests(kernel: Kernel, nest: LoopNest) -> Iterator[LoopNest]:
    """The nests in which each of the other loops is the one of rows."""
    loops = (*nest.groups, nest.inner)
    size, store = kernel.stores[0].type.bytes, len(kernel.loads)
    inner = next((loop for loop in loops if loop.strides[store] == size), nest.inner)
    for row in loops:
        if row is not inner:
            groups = tuple(each for each in loops if each is not row and each is not inner)
            yield LoopNest(groups, (row,), inner, False)


def _ways(kernel: Kernel, nest: LoopNest) -> Iterator[SharedRows]:
    """Each number of rows together."""
    loads = _loads(kernel, nest)
    read = [number for number in loads if kernel.loads[number].buffer is not None]
    (loop,) = nest.rows
    most = _MOST_LOADS // max(1, len(read))
    counts = [*range(2, min(_MOST_ROWS, loop.count) + 1), *([loop.count] if loop.count <= _ALL_ROWS else [])]
    counts = [count for count in counts if 1 < count <= most]
    for rows in counts:
        together = _readings(kernel, nest, rows, loads)
        distinct = {row[number] for row in together for number in read}
        whole, rest = divmod(loop.count, rows)
        reads = (whole * len(distinct) + rest * len(read)) / (loop.count * len(read)) if read else 1.0
        yield SharedRows(nest, rows, reads)


def shared_readings(kernel: Kernel, nest: LoopNest, rows: int) -> SharedReadings:
    """Return what rows that are computed together read."""
    loads = _loads(kernel, nest)
    (alone,) = _readings(kernel, nest, 1, loads)
    return SharedReadings(_readings(kernel, nest, rows, loads), alone, _alike(kernel))


def _readings(
    kernel: Kernel, nest: LoopNest, rows: int, loads: Mapping[int, Node]
) -> tuple[tuple[Reading | None, ...], ...]:
    """What loads read in each of so many rows together."""
    names = _Names(kernel, nest, rows)
    return tuple(
        tuple(
            names.reading(loads[number], row) if number in loads else None
            for number in range(len(kernel.loads))
        )
        for row in range(rows)
    )


def _loads(kernel: Kernel, nest: LoopNest) -> dict[int, Node]:
    """The loads that move along a row, by their numbers; under several guards a load is several, and none of
    these."""
    nodes: dict[int, list[Node]] = {}
    for node in ordered(kernel.values):
        if node.operation is Operation.SOURCE:
            nodes.setdefault(number_of(node), []).append(node)
    return {
        number: found[0] for number, found in nodes.items() if len(found) == 1 and nest.inner.strides[number]
    }


def _alike(kernel: Kernel) -> tuple[int, ...]:
    """For each access the first one that moves like it."""
    strides = [access.strides for access in (*kernel.loads, *kernel.stores)]
    return tuple(strides.index(each) for each in strides)


class _Names:
    """What is read along rows of which so many are computed together. It is equal for equal computations,
    apart from conditions that always hold."""

    def __init__(self, kernel: Kernel, nest: LoopNest, rows: int) -> None:
        self._kernel, self._rows = kernel, rows
        (self._loop,) = nest.rows
        self._others = (*nest.groups, nest.inner)
        self._inner = nest.inner
        self._numbers: dict[object, int] = {}
        self._known: dict[tuple[int, int], int] = {}
        """The numbers of nodes, by identity, in rows: a value may be used many times."""
        self._always: dict[tuple[int, int], bool] = {}
        """Whether conditions hold, likewise."""
        self._changing: dict[int, bool] = {}
        """Whether nodes change along a row."""
        self._lines: dict[object, list[tuple[int, int]]] = {}

    def reading(self, node: Node, row: int) -> Reading:
        """What a load reads in the row that is one of those together."""
        conditions = [self._of(each, row) for each in self._scalars(node, row)]
        load = self._kernel.loads[number_of(node)]
        lines = self._lines.setdefault((*_moves(load), *conditions), [])
        offset = load.offset + row * self._stride(node)
        for line, first in lines:
            if abs(offset - first) <= LINE:
                return Reading(self._of(node, row), line, offset - first)
        line = sum(map(len, self._lines.values()))
        lines.append((line, offset))
        return Reading(self._of(node, row), line, 0)

    def _scalars(self, node: Node, row: int) -> Iterator[Node]:
        """The conditions of a guard that are the same for all columns."""
        for each in node.operands[:1]:
            for condition in conditions_of(each):
                if not self._changes(condition) and not self._holds(condition, row):
                    yield condition

    def _changes(self, node: Node) -> bool:
        """Whether a node changes along a row."""
        if id(node) not in self._changing:
            below = [part for part in ordered([node]) if part.operation is Operation.SOURCE]
            self._changing[id(node)] = any(self._inner.strides[number_of(part)] for part in below)
        return self._changing[id(node)]

    def _of(self, node: Node, row: int) -> int:
        """Return the number of a value."""
        pending = [node]
        while pending:
            value = pending[-1]
            operands = [each for each in value.operands if not self._holds(each, row)]
            missing = [each for each in operands if (id(each), row) not in self._known]
            if (id(value), row) not in self._known and not missing:
                self._known[id(value), row] = self._numbered(value, operands, row)
            if (id(value), row) in self._known:
                pending.pop()
            else:
                pending += reversed(missing)
        return self._known[id(node), row]

    def _numbered(self, node: Node, operands: Sequence[Node], row: int) -> int:
        """Return the number of a value whose `operands` that matter have numbers."""
        numbers = tuple(self._known[id(each), row] for each in operands)
        if node.operation is Operation.AND and len(operands) == 1:
            return numbers[0]
        attribute: object = node.attribute
        if node.operation is Operation.SOURCE:
            load = self._kernel.loads[number_of(node)]
            attribute = load.offset + row * self._stride(node), *_moves(load)
        key = node.operation, node.type, repr(attribute), numbers
        return self._numbers.setdefault(key, len(self._numbers))

    def _holds(self, node: Node, row: int) -> bool:
        """Return whether a condition of guards is true in all such rows."""
        pending = [node]
        while pending:
            condition = pending[-1]
            parts = condition.operands if condition.operation is Operation.AND else ()
            missing = [each for each in parts if (id(each), row) not in self._always]
            if missing:
                pending += missing
                continue
            pending.pop()
            if parts:
                holds = all(self._always[id(each), row] for each in parts)
            else:
                holds = condition.operation is Operation.LESS and self._is_less(condition, row)
            self._always[id(condition), row] = holds
        return self._always[id(node), row]

    def _is_less(self, node: Node, row: int) -> bool:
        left, right = (self._range(each, row) for each in node.operands)
        return left is not None and right is not None and left[0] >= 0 and left[1] < right[0]

    def _range(self, node: Node, row: int) -> tuple[int, int] | None:
        """The least and the greatest value of a counter in such rows."""
        if node.operation is not Operation.SOURCE or node.operands:
            return None
        number = number_of(node)
        load = self._kernel.loads[number]
        if load.buffer is not None:
            return None
        last = row + (self._loop.count // self._rows - 1) * self._rows
        ends = [(loop.count - 1) * loop.strides[number] for loop in self._others]
        rows = [each * self._stride(node) for each in (row, last)]
        least = sum(min(each, 0) for each in ends) + min(rows)
        most = sum(max(each, 0) for each in ends) + max(rows)
        return load.offset + least, load.offset + most

    def _stride(self, node: Node) -> int:
        return self._loop.strides[number_of(node)]


def _moves(load: Access) -> tuple[object, ...]:
    """What loads have in common that keep their distance: in all steps of a recurrence, too."""
    return load.buffer, load.strides, load.advance


def conditions_of(guard: Node) -> Iterator[Node]:
    """Yield the conditions that hold where a guard does, each once."""
    pending, seen = [guard], set[int]()
    while pending:
        condition = pending.pop()
        if id(condition) in seen:
            continue
        seen.add(id(condition))
        if condition.operation is Operation.AND:
            pending += reversed(condition.operands)
        else:
            yield condition
