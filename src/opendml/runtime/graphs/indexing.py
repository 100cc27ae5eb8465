"""NumPy's basic indexing of tensors of a graph, as views."""

from __future__ import annotations

from types import EllipsisType
from typing import Any, NamedTuple

from opendml.errors import InvalidArgument
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
    steps = packed_strides(sizes)
    return Selection(
        tuple(map(len, ranges)),
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


def _range(each: slice, size: int, axis: int) -> range:
    """Return the indices of a slice along a dimension."""
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
    """Return the one index of an integer along a dimension."""
    if type(each) is not int:
        raise InvalidArgument(
            f"index of dimension {axis}: {shown(each)}; integers, slices, ... and None are indices; "
            "dml.gather takes tensors of them"
        )
    if not -size <= each < size:
        raise InvalidArgument(f"index of dimension {axis}: {each}; {-size} to {size - 1} are there")
    return range(each % size, each % size + 1)
