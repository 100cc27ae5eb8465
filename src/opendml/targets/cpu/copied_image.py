"""The search for the image whose windows the rows of an element-wise kernel read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from opendml.compiler.kernel import Kernel, number_of
from opendml.compiler.loops import LoopNest
from opendml.program.node import Node, Operation, ordered
from opendml.program.sizes import Size, are_same, greatest, hint_of, is_surely_less, is_traced, least
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.pattern import LINE, CopiedImage, ImagePlace
from opendml.targets.cpu.shared_rows import conditions_of, is_counter, moves_of, moving_alike

_MOST_ROWS, _MOST_LOADS = 8, 200
"""Rows that are computed together, at most, and their loads: each is code of its own."""
_WIDE, _FEW_LOADS = 96, 16
"""Columns of an image from which on windows of few elements take longer with a copy: those of 3x3 on 112x112
pixels take 1.1 times as long (Zen 3)."""
_LEAST_COLUMNS = 16
"""Columns of a block: an image is not copied in narrower parts."""
_FARTHEST = 16
"""Rows between two elements of a window, at most."""


class _Limit(NamedTuple):
    """The condition that a row or a column of a load is in the image: the loads that count it, and those that
    there are."""

    counter: int
    bound: int


_Limits = tuple[_Limit | None, _Limit | None]
"""The limits of the row and the column of a load; None: there is no condition."""


def copied_image(kernel: Kernel, nest: LoopNest) -> CopiedImage | None:
    """Return the image with margins whose windows rows of a kernel read, or None if there is none.

    Loads of windows have one buffer, and move alike. Their conditions are that a row and a column are in the
    image; those that always hold may be missing.
    """
    search = _Search(kernel, nest)
    places = search.places()
    if places is None:
        return None
    down, along = search.strides
    planes = sorted({(row % down, column % along) for row, column in places.values()})
    found = {
        number: ImagePlace(planes.index((row % down, column % along)), row // down, column // along)
        for number, (row, column) in places.items()
    }
    image = CopiedImage(
        search.strides,
        tuple(planes),
        tuple(map(found.get, range(len(kernel.loads)))),
        search.bounds,
        _together(list(found.values()), hint_of(nest.rows[0].count)),
        moving_alike(kernel),
        _fits_vectors(kernel, nest, search),
    )
    size = kernel.loads[next(iter(places))].type.bytes
    return image if image.columns_of(2 * image.together, size) >= _LEAST_COLUMNS else None


def _fits_vectors(kernel: Kernel, nest: LoopNest, search: _Search) -> bool:
    """Return whether rows of the image and of windows fit a vector for all sizes."""
    image, windows = kernel.loads[search.bounds[1]].offset, nest.inner.count
    return not (is_traced(image) or is_traced(windows)) and max(image, windows) <= machine().lanes


def _together(places: Sequence[ImagePlace], rows: int) -> int:
    """Return the number of rows that are computed together, so that the fewest vectors are loaded."""

    def loads(count: int) -> int:
        read = {(plane, row + number, column) for plane, row, column in places for number in range(count)}
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
        self._found: dict[int, tuple[_Limit, bool] | None] = {}
        """The results of `_limit_of`, by the identities of conditions."""

    def places(self) -> dict[int, tuple[int, int]] | None:
        """Return the row and the column of the image that each load reads in the first row and column.

        None: there is no such image, or a copy of it does not pay.
        """
        limits = self._limits()
        if limits is None:
            return None
        reference = next((number for number, each in limits.items() if None not in each), None)
        if reference is None:
            return None
        loads = self._kernel.loads
        row, column = limits[reference]
        assert row is not None
        assert column is not None
        self.bounds = row.bound, column.bound
        self.strides = self._row.strides[row.counter], self._column.strides[column.counter]
        if isinstance(self.strides[0], Size) or self.strides[0] < 1 or self.strides[1] not in (1, 2):
            return None
        if hint_of(self._column.count) * self.strides[1] >= _WIDE and len(limits) <= _FEW_LOADS:
            return None
        size = loads[reference].type.bytes
        line = self._row.strides[reference] // self.strides[0]
        steps = self._column.strides[reference], self._row.strides[reference]
        if steps[0] != size * self.strides[1] or not are_same(line * self.strides[0], steps[1]):
            return None
        first = loads[row.counter].offset, loads[column.counter].offset
        if any(isinstance(each, Size) for each in first):
            return None
        result = {}
        for number, own in limits.items():
            distance = loads[number].offset - loads[reference].offset
            places = _rows_and_columns(distance, line, size)
            moved = next((each for each in places if self._agrees(own, (row, column), each)), None)
            if moved is None:
                return None
            result[number] = first[0] + moved[0], first[1] + moved[1]
        return result

    def _limits(self) -> dict[int, _Limits] | None:
        """Return the limits of the loads of windows by their numbers: of all loads of the buffer that has
        conditions. None: there are others."""
        nodes: dict[int, list[Node]] = {}
        for node in ordered(self._kernel.values):
            if node.operation is Operation.SOURCE and self._kernel.loads[number_of(node)].buffer is not None:
                nodes.setdefault(number_of(node), []).append(node)
        guarded = [number for number, found in nodes.items() if any(node.operands for node in found)]
        loads = self._kernel.loads
        if not guarded or len({(*moves_of(loads[each]), loads[each].type) for each in guarded}) > 1:
            return None
        first = loads[guarded[0]]
        result = {}
        for number, found in nodes.items():
            if moves_of(loads[number]) != moves_of(first) or loads[number].type is not first.type:
                continue
            limits = self._limits_of(found[0]) if len(found) == 1 and len(found[0].operands) < 2 else None
            if limits is None:
                return None
            result[number] = limits
        return result

    def _limits_of(self, node: Node) -> _Limits | None:
        """Return the limits of a load. None: it has other conditions."""
        found: list[_Limit | None] = [None, None]
        for condition in (each for guard in node.operands for each in conditions_of(guard)):
            if id(condition) not in self._found:
                self._found[id(condition)] = self._limit_of(condition)
            own = self._found[id(condition)]
            if own is None:
                return None
            limit, along_columns = own
            other = found[along_columns]
            if other is not None and other.counter != limit.counter:
                return None
            found[along_columns] = limit
        return found[0], found[1]

    def _limit_of(self, condition: Node) -> tuple[_Limit, bool] | None:
        """Return the limit that a condition is, and whether it is that of the column. None: it is another
        condition."""
        is_compared = condition.operation is Operation.LESS and not condition.operands[0].type.is_signed
        if not is_compared or not all(is_counter(self._kernel, each) for each in condition.operands):
            return None
        limit = _Limit(*map(number_of, condition.operands))
        moves = [bool(loop.strides[limit.counter]) for loop in self._loops]
        *_, along_rows, along_columns = moves
        is_in_image = sum(moves) == along_rows + along_columns == 1
        if not is_in_image or any(self._kernel.loads[limit.bound].strides):
            return None
        return limit, along_columns

    def _agrees(self, limits: _Limits, reference: tuple[_Limit, _Limit], moved: tuple[int, int]) -> bool:
        """Return whether a load reads where its place is in the image, and only there. Its place is `moved`
        from that of the load with the limits `reference`."""
        loads, loops = self._kernel.loads, (self._row, self._column)
        for loop, own, other, distance in zip(loops, limits, reference, moved, strict=True):
            place, bound = loads[other.counter].offset + distance, loads[other.bound].offset
            if own is not None:
                is_alike = loop.strides[own.counter] == loop.strides[other.counter]
                is_there = are_same(loads[own.counter].offset, place)
                if not (is_alike and is_there and are_same(loads[own.bound].offset, bound)):
                    return False
                continue
            reach = (loop.count - 1) * loop.strides[other.counter]
            if not is_surely_less(-1, place + least(reach, 0)):
                return False
            if not is_surely_less(place + greatest(reach, 0), bound):
                return False
        return True


def _rows_and_columns(distance: int, line: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the rows of `line` bytes and the columns of `size` bytes that a distance may be."""
    hint, step = hint_of(distance), hint_of(line)
    # Arithmetic on sizes takes fifty times as long as that on hints.
    near = [rows for rows in range(-_FARTHEST, _FARTHEST + 1) if -LINE <= hint - rows * step <= LINE]
    for rows in near:
        rest = distance - rows * line
        if not isinstance(rest, Size) and abs(rest) <= LINE and rest % size == 0:
            yield rows, rest // size
