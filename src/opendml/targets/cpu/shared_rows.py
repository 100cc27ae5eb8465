"""The search for rows of element-wise kernels that read the same elements: a row of windows reads most of
what the row before it read."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from opendml.compiler.kernel import Access, Kernel, number_of
from opendml.compiler.loops import Loop, LoopNest
from opendml.late_dataclass import dataclass
from opendml.program.node import Node, Operation, ordered
from opendml.program.sizes import Size, greatest, hint_of, is_surely_less, least
from opendml.targets.cpu.pattern import LINE, Reading, SharedReadings

_MOST_ROWS = 4
"""Rows that are computed together, at most, if there are more of them."""
_ALL_ROWS = 8
"""Rows of a kernel that are computed together if it has no more."""
_MOST_LOADS = 128
"""Loads of all rows that are computed together, at most. Each is code of its own."""
_MOST_OPERATIONS = 256
"""Nodes of more than two rows that are computed together, at most, unless these are all rows. Where a row
computes more of what it reads, sharing its loads saves little, and each row is code of its own."""


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
    some = min(_MOST_ROWS, max(2, _MOST_OPERATIONS // len(ordered(kernel.values))))
    counts = [*range(2, min(some, loop.count) + 1), *([loop.count] if loop.count <= _ALL_ROWS else [])]
    counts = [count for count in counts if 1 < count <= most]
    if not counts or not _may_share(kernel, loop, read, max(counts)):
        return
    readings = _Readings(kernel, nest, loads)
    for rows in counts:
        whole, rest = divmod(loop.count, rows)
        distinct = readings.count_of(rows, read)
        reads = (whole * distinct + rest * len(read)) / (loop.count * len(read)) if read else 1.0
        yield SharedRows(nest, rows, reads)


def _may_share(kernel: Kernel, loop: Loop, read: Sequence[int], rows: int) -> bool:
    """Return whether some of the loads may read in one of the rows what one of them reads in another row."""
    offsets: dict[object, list[int]] = {}
    for number in read:
        load, stride = kernel.loads[number], loop.strides[number]
        if not stride:
            return True
        for other in offsets.setdefault((*moves_of(load), stride), []):
            count, rest = divmod(abs(load.offset - other), abs(stride))
            if not rest and 0 < count < rows:
                return True
        offsets[*moves_of(load), stride].append(load.offset)
    return False


def shared_readings(kernel: Kernel, nest: LoopNest, rows: int) -> SharedReadings:
    """Return what rows that are computed together read."""
    readings = _Readings(kernel, nest, _loads(kernel, nest))
    count = nest.rows[0].count
    alone = None if not isinstance(count, Size) and count == rows else readings.of(1)[0]
    return SharedReadings(readings.of(rows), alone, moving_alike(kernel))


def _loads(kernel: Kernel, nest: LoopNest) -> dict[int, Node]:
    """Return the loads that move along a row, by number, without those that are read under several guards."""
    nodes: dict[int, list[Node]] = {}
    for node in ordered(kernel.values):
        if node.operation is Operation.SOURCE:
            nodes.setdefault(number_of(node), []).append(node)
    return {
        number: found[0] for number, found in nodes.items() if len(found) == 1 and nest.inner.strides[number]
    }


def moving_alike(kernel: Kernel) -> tuple[int, ...]:
    """Return for each access the first one that moves like it."""
    strides = [access.strides for access in kernel.accesses]
    firsts = {each: number for number, each in reversed(list(enumerate(strides)))}
    # Different expressions of sizes may be equal. Comparing them takes time, so each is compared once.
    distinct = list(dict.fromkeys(strides))
    alike = {each: firsts[distinct[distinct.index(each)]] for each in distinct}
    return tuple([alike[each] for each in strides])


class _Readings:
    """The values that loads depend on, in rows that are computed together.

    Equal computations have equal numbers. Conditions that always hold make no difference.
    """

    def __init__(self, kernel: Kernel, nest: LoopNest, loads: Mapping[int, Node]) -> None:
        self._kernel, self._loads = kernel, loads
        (self._loop,) = nest.rows
        self._others = (*nest.groups, nest.inner)
        self._order = ordered(loads.values())
        self._guards = [node for node in self._order if node.operation in (Operation.AND, Operation.LESS)]
        # Numbers of `count_of`, for all its calls. Those of `of` are in patterns, and begin anew in each one.
        self._known: dict[object, int] = {}
        self._known_rows: dict[tuple[int, frozenset[int]], dict[int, int]] = {}
        self._attributes = {id(node): repr(node.attribute) for node in self._order}
        self._moves = {number: moves_of(load) for number, load in enumerate(kernel.loads)}
        self._offsets: dict[tuple[int, int], int] = {}
        changing = set[int]()
        for node in self._order:
            moves = node.operation is Operation.SOURCE and nest.inner.strides[number_of(node)]
            if moves or any(id(each) in changing for each in node.operands):
                changing.add(id(node))
        self._conditions = {
            number: [
                id(each)
                for guard in node.operands[:1]
                for each in conditions_of(guard)
                if id(each) not in changing
            ]
            for number, node in loads.items()
        }
        """The conditions of loads that are the same along a row."""

    def of(self, rows: int) -> tuple[tuple[Reading | None, ...], ...]:
        """Return what all loads of the kernel read in each of some rows that are computed together."""
        known: dict[object, int] = {}
        lines: dict[object, list[tuple[int, int, int]]] = {}
        found = []
        for row, always in enumerate(self._always(rows)):
            numbers = self._numbers(row, always, known)
            readings = {}
            for number, node in self._loads.items():
                conditions = [numbers[each] for each in self._conditions[number] if each not in always]
                line, distance = self._line(number, row, conditions, lines)
                readings[number] = Reading(numbers[id(node)], line, distance)
            found.append(readings)
        return tuple(tuple(map(each.get, range(len(self._kernel.loads)))) for each in found)

    def count_of(self, rows: int, loads: Sequence[int]) -> int:
        """Return the number of different values that some loads read in rows that are computed together."""
        found = set[int]()
        for row, always in enumerate(self._always(rows)):
            numbers = self._known_rows.get((row, always))
            if numbers is None:
                numbers = self._known_rows[row, always] = self._numbers(row, always, self._known)
            found.update([numbers[id(self._loads[each])] for each in loads])
        return len(found)

    def _always(self, rows: int) -> Iterator[frozenset[int]]:
        """Yield the identities of conditions that are true in all such rows, for each of some rows."""
        reaches: dict[tuple[int, ...], tuple[int, int]] = {}
        true_rows = {id(node): self._true_rows(node, rows, reaches) for node in self._guards}
        for row in range(rows):
            always = set[int]()
            for node in self._guards:
                if node.operation is Operation.AND:
                    is_true = all(id(each) in always for each in node.operands)
                else:
                    is_true = row in true_rows[id(node)]
                if is_true:
                    always.add(id(node))
            yield frozenset(always)

    def _numbers(self, row: int, always: Container[int], known: dict[object, int]) -> dict[int, int]:
        """Return the numbers of the computations of a row, by the identities of their nodes.

        Args:
            row: the row.
            always: the conditions that are always true.
            known: the numbers so far.
        """
        numbers = dict[int, int]()
        for node in self._order:
            parts = tuple([numbers[id(each)] for each in node.operands if id(each) not in always])
            if node.operation is Operation.AND and len(parts) == 1:
                numbers[id(node)] = parts[0]
                continue
            attribute: object = self._attributes[id(node)]
            if node.operation is Operation.SOURCE:
                number = number_of(node)
                attribute = self._offset(number, row), *self._moves[number]
            key = node.operation, node.type, attribute, parts
            numbers[id(node)] = known.setdefault(key, len(known))
        return numbers

    def _line(
        self,
        number: int,
        row: int,
        conditions: Sequence[int],
        lines: dict[object, list[tuple[int, int, int]]],
    ) -> tuple[int, int]:
        """Return the number of a load's line, and the distance from the begin of the line."""
        alike = lines.setdefault((*self._moves[number], *conditions), [])
        offset = self._offset(number, row)
        hint = hint_of(offset)
        for line, first, first_hint in alike:
            # Arithmetic on sizes takes fifty times as long as that on hints.
            if not -LINE <= hint - first_hint <= LINE:
                continue
            distance = offset - first
            # Code is made for each distance, so one that changes is that of another line.
            if not isinstance(distance, Size) and abs(distance) <= LINE:
                return line, distance
        line = sum(map(len, lines.values()))
        alike.append((line, offset, hint))
        return line, 0

    def _true_rows(
        self, node: Node, rows: int, reaches: dict[tuple[int, ...], tuple[int, int]]
    ) -> Container[int]:
        """Return those of some rows in which a counter is surely not negative and less than a bound.

        Args:
            node: the comparison; others are never surely true.
            rows: the number of rows that are computed together.
            reaches: the least and the greatest change of counters along all loops, by their strides. Those of
                this node are added.
        """
        if node.operation is not Operation.LESS or not all(
            is_counter(self._kernel, each) for each in node.operands
        ):
            return ()
        (low, high, step), (bound, _, bound_step) = (
            self._range(number_of(each), rows, reaches) for each in node.operands
        )
        step_to_bound = bound_step - step

        def is_true(row: int) -> bool:
            return is_surely_less(-1, low + row * step) and is_surely_less(high, bound + row * step_to_bound)

        # Comparing sizes takes time. Their hints show most of what is not surely less.
        first, last, final = hint_of(low), hint_of(high), hint_of(bound)
        by_hints = [
            row
            for row in range(rows)
            if first + row * hint_of(step) >= 0 and last < final + row * hint_of(step_to_bound)
        ]
        if not by_hints:
            return ()
        # Values grow or fall from row to row, so those between two rows are true if these are.
        if is_true(by_hints[0]) and is_true(by_hints[-1]):
            return by_hints
        return [row for row in by_hints if is_true(row)]

    def _range(
        self, number: int, rows: int, reaches: dict[tuple[int, ...], tuple[int, int]]
    ) -> tuple[int, int, int]:
        """Return the least and the greatest value of a counter in the first of such rows, and its step from
        row to row."""
        step, others = self._loop.strides[number], [loop.strides[number] for loop in self._others]
        key = (step, *others)
        found = reaches.get(key)
        if found is None:
            every = [(self._loop.count // rows - 1) * rows * step]
            every += [(loop.count - 1) * each for loop, each in zip(self._others, others, strict=True)]
            found = sum([least(each, 0) for each in every]), sum([greatest(each, 0) for each in every])
            reaches[key] = found
        offset = self._kernel.loads[number].offset
        return offset + found[0], offset + found[1], step

    def _offset(self, number: int, row: int) -> int:
        """Return the offset of a load in a row."""
        offset = self._offsets.get((number, row))
        if offset is None:
            offset = self._kernel.loads[number].offset + row * self._loop.strides[number]
            self._offsets[number, row] = offset
        return offset


def moves_of(load: Access) -> tuple[object, ...]:
    """Return a key of loads that keep their distance, in all steps of a recurrence too."""
    return load.buffer, load.strides, load.advance


def is_counter(kernel: Kernel, node: Node) -> bool:
    """Return whether a node is a counter."""
    if node.operation is not Operation.SOURCE or node.operands:
        return False
    return kernel.loads[number_of(node)].buffer is None


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
