"""Indices of tensors of a graph, as NumPy has them: what they select, and the sizes of it."""

from __future__ import annotations

from dataclasses import dataclass
from types import EllipsisType
from typing import Any

from opendml.errors import InvalidArgument
from opendml.program.node import Node
from opendml.program.view import sliced
from opendml.spec.values import as_plain
from opendml.spec.wording import counted, dimensions, shown


@dataclass(frozen=True, slots=True)
class Window:
    """So many elements of a tensor along each dimension, from the first one on, each a stride (which may be
    negative) after the other."""

    first: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def lies_in(self, sizes: tuple[int, ...]) -> bool:
        """Whether all of its elements are a tensor's of these sizes."""
        if not len(self.first) == len(self.sizes) == len(self.strides) == len(sizes):
            return False
        along = zip(self.first, self.sizes, self.strides, sizes, strict=True)
        return all(
            count >= 1 and 0 <= first < size and 0 <= first + (count - 1) * stride < size
            for first, count, stride, size in along
        )

    def of(self, value: Node) -> Node:
        """These elements of a value."""
        return sliced(value, self.first, self.sizes, self.strides)


def window_of(index: Any, sizes: tuple[int, ...]) -> tuple[Window, tuple[int, ...]]:
    """What an index selects of a tensor: a window, and its sizes without the dimensions of integers and with
    those of None.

    Raises:
        InvalidArgument: it names something that is not there, or nothing at all.
    """
    given = tuple(map(as_plain, index if isinstance(index, tuple) else (index,)))
    given = _complete(given, sizes)
    ranges, result = list[range](), list[int]()
    for each in given:
        if each is None:
            result.append(1)
            continue
        size, axis = sizes[len(ranges)], len(ranges)
        if isinstance(each, slice):
            ranges.append(_range(each, size, axis))
            result.append(len(ranges[-1]))
        else:
            ranges.append(_one(each, size, axis))
    if not result:
        raise InvalidArgument(
            f"index {shown(index)}: no dimension is left; DirectML's tensors have 1 to 8, "
            "and a slice of one element keeps one"
        )
    window = Window(
        tuple(each.start for each in ranges),
        tuple(map(len, ranges)),
        tuple(each.step for each in ranges),
    )
    return window, tuple(result)


def _complete(given: tuple[Any, ...], sizes: tuple[int, ...]) -> tuple[Any, ...]:
    """The indices with whole slices for the dimensions that they leave out."""
    places = [place for place, each in enumerate(given) if isinstance(each, EllipsisType)]
    if len(places) > 1:
        raise InvalidArgument(f"index {shown(given)}: one ... at most")
    count = sum(each is not None and not isinstance(each, EllipsisType) for each in given)
    if count > len(sizes):
        raise InvalidArgument(
            f"index {shown(given)}: {counted(count, 'index', 'indices')} of a tensor with "
            f"{dimensions(len(sizes))}"
        )
    place = places[0] if places else len(given)
    return (*given[:place], *[slice(None)] * (len(sizes) - count), *given[place + 1 :])


def _range(each: slice, size: int, axis: int) -> range:
    """The indices of a slice along a dimension."""
    try:
        found = range(*each.indices(size))
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"index of dimension {axis}: {shown(each)}; {error}") from error
    if not found:
        raise InvalidArgument(
            f"index of dimension {axis}: {shown(each)} selects nothing of "
            f"{counted(size, 'element', 'elements')}; DirectML has no empty tensors"
        )
    return found


def _one(each: Any, size: int, axis: int) -> range:
    """The one index of an integer along a dimension."""
    if type(each) is not int:
        raise InvalidArgument(
            f"index of dimension {axis}: {shown(each)}; integers, slices, ... and None are indices; "
            "dml.gather takes tensors of them"
        )
    if not -size <= each < size:
        raise InvalidArgument(f"index of dimension {axis}: {each}; {-size} to {size - 1} are there")
    return range(each % size, each % size + 1)
