"""The search for the image whose windows the rows of an element-wise kernel read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opendml.compiler.kernel import Kernel, number_of
from opendml.compiler.loops import LoopNest
from opendml.late_dataclass import dataclass
from opendml.program.node import Node, Operation, ordered
from opendml.program.sizes import Size, are_same, greatest, hint_of, is_surely_less, least
from opendml.targets.cpu.pattern import LINE, CopiedImage, ImagePlace
from opendml.targets.cpu.shared_rows import conditions_of, moving_alike

_MOST_ROWS, _MOST_LOADS = 8, 200
"""Rows that are computed together, at most, and their loads: each is code of its own."""
_WIDE, _FEW_LOADS = 96, 16
"""Columns of an image from which on windows of few elements take longer with a copy: those of 3x3 on 112x112
pixels take 1.1 times as long (Zen 3)."""
_LEAST_COLUMNS = 16
"""Columns of a block: an image is not copied in narrower parts."""
_FARTHEST = 16
"""Rows between two elements of a window, at most."""


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The conditions that limit a load: the loads that count its rows and columns in the image, if any do,
    and those that are their bounds."""

    counters: tuple[int | None, int | None]
    bounds: tuple[int | None, int | None]


def copied_image(kernel: Kernel, nest: LoopNest) -> CopiedImage | None:
    """Return the image with margins whose windows rows of a kernel read, or None if there is none.

    Loads of windows have one buffer, and move alike. Their conditions are that a row and a column are in the
    image; those that always hold may be missing.
    """
    search = _Search(kernel, nest)
    places = search.places()
    if places is None:
        return None
    columns = hint_of(nest.inner.count) * search.strides[1]
    if columns >= _WIDE and len(places) <= _FEW_LOADS:
        return None
    planes = sorted(
        {(row % search.strides[0], column % search.strides[1]) for row, column in places.values()}
    )
    found = {
        number: ImagePlace(
            planes.index((row % search.strides[0], column % search.strides[1])),
            row // search.strides[0],
            column // search.strides[1],
        )
        for number, (row, column) in places.items()
    }
    image = CopiedImage(
        search.strides,
        tuple(planes),
        tuple(map(found.get, range(len(kernel.loads)))),
        search.bounds,
        _together(list(found.values()), hint_of(nest.rows[0].count)),
        moving_alike(kernel),
    )
    size = kernel.loads[next(iter(places))].type.bytes
    return image if image.columns_of(2 * image.together, size) >= _LEAST_COLUMNS else None


def _together(places: Sequence[ImagePlace], rows: int) -> int:
    """Return the number of rows that are computed together, so that the fewest vectors are loaded."""

    def loads(count: int) -> int:
        read = {place._replace(row=place.row + number) for place in places for number in range(count)}
        return rows // count * len(read) + rows % count * len(places)

    most = min(rows, _MOST_ROWS, max(2, _MOST_LOADS // len(places)))
    return min(range(1, most + 1), key=loads)


class _Search:
    """The search for the places in an image that loads read.

    Attributes:
        strides: the rows and columns of the image from one window to the next.
        bounds: the loads that count its rows and columns.
    """

    def __init__(self, kernel: Kernel, nest: LoopNest) -> None:
        self._kernel = kernel
        (self._row,), self._column = nest.rows, nest.inner
        self._loops = (*nest.groups, self._row, self._column)
        self.strides, self.bounds = (1, 1), (0, 0)

    def places(self) -> dict[int, tuple[int, int]] | None:
        """Return the row and the column of the image that each load reads in the first row and column."""
        limits = self._limits()
        if limits is None:
            return None
        known = {number: each for number, each in limits.items() if None not in each.counters}
        reference, *_ = [*known, None]
        if reference is None:
            return None
        counters, self.bounds = (
            _integers(each) for each in (known[reference].counters, known[reference].bounds)
        )
        loads = self._kernel.loads
        self.strides = self._row.strides[counters[0]], self._column.strides[counters[1]]
        if isinstance(self.strides[0], Size) or self.strides[0] < 1 or self.strides[1] not in (1, 2):
            return None
        size = loads[reference].type.bytes
        line = self._row.strides[reference] // self.strides[0]
        steps = self._column.strides[reference], self._row.strides[reference]
        if steps[0] != size * self.strides[1] or not are_same(line * self.strides[0], steps[1]):
            return None
        first = tuple(loads[each].offset for each in counters)
        if any(isinstance(each, Size) for each in first):
            return None
        result = {}
        for number, limit in limits.items():
            if not self._moves_alike(number, reference):
                return None
            distance = loads[number].offset - loads[reference].offset
            places = _rows_and_columns(distance, line, size)
            moved = next((each for each in places if self._agrees(limit, counters, each)), None)
            if moved is None:
                return None
            result[number] = first[0] + moved[0], first[1] + moved[1]
        return result

    def _limits(self) -> dict[int, _Bounds] | None:
        """Return the limits of the loads of windows by their numbers: of all loads of the buffer that has
        conditions. None: there are others."""
        nodes: dict[int, list[Node]] = {}
        for node in ordered(self._kernel.values):
            if node.operation is Operation.SOURCE and self._kernel.loads[number_of(node)].buffer is not None:
                nodes.setdefault(number_of(node), []).append(node)
        guarded = [number for number, found in nodes.items() if any(node.operands for node in found)]
        loads = self._kernel.loads
        if not guarded or len({(loads[each].buffer, loads[each].strides) for each in guarded}) > 1:
            return None
        result = {}
        for number, found in nodes.items():
            if not self._moves_alike(number, guarded[0]):
                continue
            limits = self._limits_of(found[0]) if len(found) == 1 and len(found[0].operands) < 2 else None
            if limits is None:
                return None
            result[number] = limits
        return result

    def _limits_of(self, node: Node) -> _Bounds | None:
        """Return the limits of a load. None: it has other conditions."""
        counters: list[int | None] = [None, None]
        bounds: list[int | None] = [None, None]
        for condition in (each for guard in node.operands for each in conditions_of(guard)):
            if condition.operation is not Operation.LESS or not all(map(self._counts, condition.operands)):
                return None
            if condition.operands[0].type.is_signed:
                return None
            counter, bound = map(number_of, condition.operands)
            moves = [bool(loop.strides[counter]) for loop in self._loops]
            *_, along_rows, along_columns = moves
            if sum(moves) != 1 or along_rows + along_columns != 1 or any(self._kernel.loads[bound].strides):
                return None
            if counters[along_columns] not in (None, counter):
                return None
            counters[along_columns], bounds[along_columns] = counter, bound
        return _Bounds((counters[0], counters[1]), (bounds[0], bounds[1]))

    def _counts(self, node: Node) -> bool:
        """Return whether a node is a counter."""
        if node.operation is not Operation.SOURCE or node.operands:
            return False
        return self._kernel.loads[number_of(node)].buffer is None

    def _moves_alike(self, number: int, other: int) -> bool:
        """Return whether two loads keep their distance."""
        load, like = self._kernel.loads[number], self._kernel.loads[other]
        return (load.buffer, load.type, load.strides, load.advance) == (
            like.buffer,
            like.type,
            like.strides,
            like.advance,
        )

    def _agrees(self, limit: _Bounds, counters: tuple[int, int], moved: tuple[int, int]) -> bool:
        """Return whether a load reads where its place is in the image, and only there. Its place is `moved`
        from that of the load with these counters."""
        loads = self._kernel.loads
        for loop, own, bound, counter, limited, distance in zip(
            (self._row, self._column), limit.counters, limit.bounds, counters, self.bounds, moved, strict=True
        ):
            if own is not None and bound is not None:
                is_alike = loop.strides[own] == loop.strides[counter]
                is_there = are_same(loads[own].offset, loads[counter].offset + distance)
                if not (is_alike and is_there and are_same(loads[bound].offset, loads[limited].offset)):
                    return False
                continue
            place, reach = loads[counter].offset + distance, (loop.count - 1) * loop.strides[counter]
            if not is_surely_less(-1, place + least(reach, 0)):
                return False
            if not is_surely_less(place + greatest(reach, 0), loads[limited].offset):
                return False
        return True


def _integers(numbers: tuple[int | None, int | None]) -> tuple[int, int]:
    first, second = numbers
    assert first is not None
    assert second is not None
    return first, second


def _rows_and_columns(distance: int, line: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the rows of `line` bytes and the columns of `size` bytes that a distance may be."""
    for rows in range(-_FARTHEST, _FARTHEST + 1):
        rest = distance - rows * line
        if not isinstance(rest, Size) and abs(rest) <= LINE and rest % size == 0:
            yield rows, rest // size
