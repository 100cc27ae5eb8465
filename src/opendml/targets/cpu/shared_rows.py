"""The search for rows of element-wise kernels that read the same elements: a row of windows reads most of
what the row before it read."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from opendml.compiler.kernel import Access, Kernel, number_of
from opendml.compiler.loops import Loop, LoopNest
from opendml.program.node import Node, Operation, ordered
from opendml.program.sizes import Size, greatest, is_surely_less, least
from opendml.targets.cpu.pattern import LINE, Reading, SharedReadings

_MOST_ROWS = 4
"""Rows that are computed together, at most, if there are more of them."""
_ALL_ROWS = 8
"""Rows of a kernel that are computed together if it has no more."""
_MOST_LOADS = 128
"""Loads of all rows that are computed together, at most. Each is code of its own."""


@dataclass(frozen=True, slots=True)
class SharedRows:
    """`count` rows that are computed together, of the one row loop of `nest`."""

    nest: LoopNest
    count: int
    reads: float
    """Distinct loads for each load of a row, over all rows. Rows that are left over share none."""


def shared_rows(kernel: Kernel, nest: LoopNest) -> SharedRows | None:
    """Return the rows that share the most loads, or None if none share any. Rows are what is stored
    contiguously, however short."""
    ways = [way for each in _nests(kernel, nest) for way in _ways(kernel, each)]
    best = min(ways, key=lambda way: way.reads, default=None)
    return best if best and best.reads < 1 else None


def _nests(kernel: Kernel, nest: LoopNest) -> Iterator[LoopNest]:
    """Yield the nests in which each of the other loops is the row loop."""
    loops = (*nest.groups, nest.inner)
    size, store = kernel.stores[0].type.bytes, len(kernel.loads)
    inner = next((loop for loop in loops if loop.strides[store] == size), nest.inner)
    for row in loops:
        if row is not inner:
            groups = tuple(each for each in loops if each is not row and each is not inner)
            yield LoopNest(groups, (row,), inner, False)


def _ways(kernel: Kernel, nest: LoopNest) -> Iterator[SharedRows]:
    """Yield the rows of a nest, for each number of rows that may be computed together."""
    loads = _loads(kernel, nest)
    read = [number for number in loads if kernel.loads[number].buffer is not None]
    (loop,) = nest.rows
    most = _MOST_LOADS // max(1, len(read))
    counts = [*range(2, min(_MOST_ROWS, loop.count) + 1), *([loop.count] if loop.count <= _ALL_ROWS else [])]
    counts = [count for count in counts if 1 < count <= most]
    if not counts or not _may_share(kernel, loop, read, max(counts)):
        return
    for rows in counts:
        together = _readings(kernel, nest, rows, loads)
        distinct = {row[number] for row in together for number in read}
        whole, rest = divmod(loop.count, rows)
        reads = (whole * len(distinct) + rest * len(read)) / (loop.count * len(read)) if read else 1.0
        yield SharedRows(nest, rows, reads)


def _may_share(kernel: Kernel, loop: Loop, read: Sequence[int], rows: int) -> bool:
    """Return whether some of the loads may read in one of the rows what one of them reads in another row."""
    offsets: dict[object, list[int]] = {}
    for number in read:
        load, stride = kernel.loads[number], loop.strides[number]
        if not stride:
            return True
        for other in offsets.setdefault((*_moves(load), stride), []):
            count, rest = divmod(abs(load.offset - other), abs(stride))
            if not rest and 0 < count < rows:
                return True
        offsets[*_moves(load), stride].append(load.offset)
    return False


def shared_readings(kernel: Kernel, nest: LoopNest, rows: int) -> SharedReadings:
    """Return what rows that are computed together read."""
    loads = _loads(kernel, nest)
    (alone,) = _readings(kernel, nest, 1, loads)
    return SharedReadings(_readings(kernel, nest, rows, loads), alone, _alike(kernel))


def _readings(
    kernel: Kernel, nest: LoopNest, rows: int, loads: Mapping[int, Node]
) -> tuple[tuple[Reading | None, ...], ...]:
    """Return what loads read in each of some rows that are computed together."""
    numbering = _Numbering(kernel, nest, rows, loads)
    return tuple(tuple(map(numbering.readings(row).get, range(len(kernel.loads)))) for row in range(rows))


def _loads(kernel: Kernel, nest: LoopNest) -> dict[int, Node]:
    """Return the loads that move along a row, by number, without those that are read under several guards."""
    nodes: dict[int, list[Node]] = {}
    for node in ordered(kernel.values):
        if node.operation is Operation.SOURCE:
            nodes.setdefault(number_of(node), []).append(node)
    return {
        number: found[0] for number, found in nodes.items() if len(found) == 1 and nest.inner.strides[number]
    }


def _alike(kernel: Kernel) -> tuple[int, ...]:
    """Return for each access the first one that moves like it."""
    strides = [access.strides for access in (*kernel.loads, *kernel.stores)]
    return tuple(strides.index(each) for each in strides)


class _Numbering:
    """Numbers for the values that loads depend on, in rows that are computed together. Equal computations
    have equal numbers, whatever conditions they contain that always hold."""

    def __init__(self, kernel: Kernel, nest: LoopNest, rows: int, loads: Mapping[int, Node]) -> None:
        self._kernel, self._rows, self._loads = kernel, rows, loads
        (self._loop,) = nest.rows
        self._others = (*nest.groups, nest.inner)
        self._order = ordered(loads.values())
        self._numbers: dict[object, int] = {}
        self._lines: dict[object, list[tuple[int, int]]] = {}
        """The lines that are read alike: their numbers, and the offsets of their first loads."""
        self._changing = set[int]()
        """The nodes that change along a row."""
        for node in self._order:
            moves = node.operation is Operation.SOURCE and nest.inner.strides[number_of(node)]
            if moves or any(id(each) in self._changing for each in node.operands):
                self._changing.add(id(node))

    def readings(self, row: int) -> dict[int, Reading]:
        """Return what loads read in one of the rows."""
        always, numbers = set[int](), dict[int, int]()
        for node in self._order:
            if self._holds(node, row, always):
                always.add(id(node))
            parts = tuple(numbers[id(each)] for each in node.operands if id(each) not in always)
            if node.operation is Operation.AND and len(parts) == 1:
                numbers[id(node)] = parts[0]
                continue
            attribute: object = repr(node.attribute)
            if node.operation is Operation.SOURCE:
                attribute = self._offset(node, row), *_moves(self._kernel.loads[number_of(node)])
            key = node.operation, node.type, attribute, parts
            numbers[id(node)] = self._numbers.setdefault(key, len(self._numbers))
        result = {}
        for number, node in self._loads.items():
            conditions = [
                numbers[id(each)]
                for guard in node.operands[:1]
                for each in conditions_of(guard)
                if id(each) not in self._changing and id(each) not in always
            ]
            line, distance = self._line(node, row, conditions)
            result[number] = Reading(numbers[id(node)], line, distance)
        return result

    def _line(self, node: Node, row: int, conditions: Sequence[int]) -> tuple[int, int]:
        """Return the number of a load's line, and the distance from the begin of the line."""
        lines = self._lines.setdefault((*_moves(self._kernel.loads[number_of(node)]), *conditions), [])
        offset = self._offset(node, row)
        for line, first in lines:
            distance = offset - first
            # Code is made for each distance, so one that changes is that of another line.
            if not isinstance(distance, Size) and abs(distance) <= LINE:
                return line, distance
        line = sum(map(len, self._lines.values()))
        lines.append((line, offset))
        return line, 0

    def _holds(self, node: Node, row: int, always: Container[int]) -> bool:
        """Return whether a condition of guards is true in all such rows, given those of its parts that
        are."""
        if node.operation is Operation.AND:
            return all(id(each) in always for each in node.operands)
        if node.operation is not Operation.LESS:
            return False
        left, right = (self._range(each, row) for each in node.operands)
        if left is None or right is None:
            return False
        return is_surely_less(-1, left[0]) and is_surely_less(left[1], right[0])

    def _range(self, node: Node, row: int) -> tuple[int, int] | None:
        """Return the least and the greatest value of a counter in such rows. Return None for other nodes."""
        if node.operation is not Operation.SOURCE or node.operands:
            return None
        number = number_of(node)
        if self._kernel.loads[number].buffer is not None:
            return None
        last = row + (self._loop.count // self._rows - 1) * self._rows
        ends = [(loop.count - 1) * loop.strides[number] for loop in self._others]
        offsets = [self._offset(node, each) for each in (row, last)]
        return (
            least(*offsets) + sum([least(each, 0) for each in ends]),
            greatest(*offsets) + sum([greatest(each, 0) for each in ends]),
        )

    def _offset(self, node: Node, row: int) -> int:
        """Return the offset of a load in a row."""
        number = number_of(node)
        return self._kernel.loads[number].offset + row * self._loop.strides[number]


def _moves(load: Access) -> tuple[object, ...]:
    """Return a key of loads that keep their distance, in all steps of a recurrence too."""
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
