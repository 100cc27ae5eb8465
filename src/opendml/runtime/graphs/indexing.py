"""NumPy's basic indexing of tensors of a graph, as views."""

from __future__ import annotations

from operator import index
from types import EllipsisType
from typing import Any, NamedTuple

from opendml.errors import InvalidArgument
from opendml.program.sizes import greatest, is_traced, least
from opendml.spec.tensor_desc import packed_strides
from opendml.spec.values import as_plain
from opendml.spec.wording import counted, dimensions, shown


class Selection(NamedTuple):
    """The elements that an index selects.

    Args:
        sizes: how many along each dimension of the tensor.
        strides: elements of the packed tensor from one to the next.
        offset: the first element.
        result: the sizes without the dimensions of integers, and with those of None.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    result: tuple[int, ...]


def selection(index: Any, sizes: tuple[int, ...]) -> Selection:
    """Return what an index selects of a tensor.

    Raises:
        InvalidArgument: it names something that is not there, or nothing at all.
    """
    given = tuple(map(as_plain, index if isinstance(index, tuple) else (index,)))
    given = _complete(given, sizes)
    ranges, result = list[_Range](), list[int]()
    for each in given:
        if each is None:
            result.append(1)
            continue
        size, axis = sizes[len(ranges)], len(ranges)
        if isinstance(each, slice):
            ranges.append(_range(each, size, axis))
            result.append(ranges[-1].length)
        else:
            ranges.append(_one(each, size, axis))
    if not result:
        raise InvalidArgument(
            f"index {shown(index)}: no dimension is left; DirectML's tensors have 1 to 8, "
            "and a slice of one element keeps one"
        )
    steps = packed_strides(sizes)
    return Selection(
        tuple([each.length for each in ranges]),
        tuple(each.step * step for each, step in zip(ranges, steps, strict=True)),
        sum(each.start * step for each, step in zip(ranges, steps, strict=True)),
        tuple(result),
    )


def _complete(given: tuple[Any, ...], sizes: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the indices with whole slices for the dimensions that they leave out."""
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


class _Range(NamedTuple):
    """The indices of a dimension that an index selects."""

    start: int
    step: int
    length: int


def _range(each: slice, size: int, axis: int) -> _Range:
    """Return the indices of a slice along a dimension."""
    try:
        found = _indices(each, size)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"index of dimension {axis}: {shown(each)}; {error}") from error
    if found.length < 1:
        raise InvalidArgument(
            f"index of dimension {axis}: {shown(each)} selects nothing of "
            f"{counted(size, 'element', 'elements')}; DirectML has no empty tensors"
        )
    return found


def _indices(each: slice, size: int) -> _Range:
    """Return the indices of a slice as `slice.indices` does, for a size that may be traced."""
    given = [each.start, each.stop, each.step]
    start, stop, step = (value if value is None or is_traced(value) else index(value) for value in given)
    step = 1 if step is None else step
    if step == 0:
        raise ValueError("slice step cannot be zero")
    first, last = (0, size) if step > 0 else (-1, size - 1)

    def within(value: int) -> int:
        return greatest(value + size, first) if value < 0 else least(value, last)

    start = (first if step > 0 else last) if start is None else within(start)
    stop = (last if step > 0 else first) if stop is None else within(stop)
    steps = -(-(stop - start) // step) if step > 0 else -(-(start - stop) // -step)
    return _Range(start, step, steps)


def _one(each: Any, size: int, axis: int) -> _Range:
    """Return the one index of an integer along a dimension."""
    if not isinstance(each, int) or type(each) is bool:
        raise InvalidArgument(
            f"index of dimension {axis}: {shown(each)}; integers, slices, ... and None are indices; "
            "dml.gather takes tensors of them"
        )
    if not -size <= each < size:
        raise InvalidArgument(f"index of dimension {axis}: {each}; {-size} to {size - 1} are there")
    return _Range(each % size, 1, 1)
