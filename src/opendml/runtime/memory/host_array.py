"""Read types, layouts and addresses of NumPy arrays, and check the memory of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.program.program import Layout
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.ranges import MemoryRange, check_overlap
from opendml.spec.element_types import DATA_TYPES, element_type
from opendml.spec.enums import TensorDataType
from opendml.spec.overlap import overlaps
from opendml.targets.memory import TensorMemory, address_of

Array = np.ndarray[Any, np.dtype[Any]]

_element_type = lru_cache(maxsize=256)(element_type)


def data_type_of(array: Array, name: str) -> TensorDataType:
    """Return DirectML's type of an array's elements. Booleans are UINT8.

    Raises:
        InvalidArgument: DirectML has no such type (foreign byte orders included), or the memory is not
        aligned to it.
    """
    data_type = _element_type(array.dtype)
    if data_type is None or not array.dtype.isnative:
        order = "" if array.dtype.isnative else " in the processor's byte order"
        raise InvalidArgument(
            f"{name}: elements of {array.dtype!r}; DirectML has {', '.join(DATA_TYPES)}{order}"
        )
    if not array.flags.aligned:
        raise _misaligned(name, array.dtype)
    return data_type


def require_aligned(address: int, type: ScalarType, name: str) -> None:
    """Check that an array's memory is aligned to its elements.

    Raises:
        InvalidArgument: it is not.
    """
    if address % type.bytes:
        raise _misaligned(name, type.numpy)


def _misaligned(name: str, dtype: np.dtype[Any]) -> InvalidArgument:
    return InvalidArgument(f"{name}: memory that is not aligned to {dtype}; copy the array first")


def reject_truth_values(array: Any, name: str) -> None:
    """Refuse an array of booleans, of any library, as an output, because a UINT8 may exceed 1.

    Raises:
        InvalidArgument: it is one.
    """
    if type(array) is np.ndarray:
        is_truth = array.dtype.kind == "b"
    else:
        is_truth = str(getattr(array, "dtype", "")).endswith("bool")
    if is_truth:
        raise InvalidArgument(f"{name}: an array of truth values; an output needs one of uint8")


def layout_of_array(array: Array, name: str) -> Layout:
    """Return the layout of an array, which may have any strides.

    Raises:
        InvalidArgument: as `data_type_of`.
    """
    return Layout(ScalarType.of(data_type_of(array, name)), array.shape, array.strides)


def layout_in_graph(array: Array, name: str) -> Layout:
    """Return the layout of an array of a graph, which may have elements of bfloat16.

    Raises:
        InvalidArgument: as `data_type_of`.
    """
    if array.dtype.name != "bfloat16" or not array.dtype.isnative:
        return layout_of_array(array, name)
    require_aligned(address_of(array), ScalarType.BFLOAT16, name)
    return Layout(ScalarType.BFLOAT16, array.shape, array.strides)


def memory_of(array: Array, name: str) -> TensorMemory:
    """Return the memory of an array of a graph.

    Raises:
        InvalidArgument: as `layout_in_graph`.
    """
    return TensorMemory(address_of(array), layout_in_graph(array, name), array.flags.writeable, array)


def memory_range(memory: TensorMemory) -> MemoryRange:
    """Return the bytes from the first to the last element."""
    low, high = memory.layout.span
    return MemoryRange(memory.address + low, high - low, memory, memory.place)


def check_no_overlap_within(name: str, layout: Layout) -> None:
    """Check that no two elements of an output are the same memory.

    Raises:
        InvalidArgument: two are.
    """
    if overlaps(layout.sizes, [abs(stride) for stride in layout.strides]):
        raise InvalidArgument(
            f"{name}: strides {list(layout.strides)} bytes; an output must not overlap itself"
        )


def check_outputs(
    owner: str,
    inputs: Sequence[tuple[str, TensorMemory] | None],
    outputs: Sequence[tuple[str, TensorMemory]],
    in_place: frozenset[str],
) -> None:
    """Check that outputs are writable, and share memory neither within themselves nor with other arrays.

    Raises:
        InvalidArgument: an output is wrong.
    """
    for name, memory in outputs:
        if not memory.writable:
            raise InvalidArgument(f"{owner}.{name}: a read-only array; an output must be writable")
        check_no_overlap_within(f"{owner}.{name}", memory.layout)
    check_overlap(
        owner,
        [None if item is None else (item[0], memory_range(item[1]), item[1].layout) for item in inputs],
        [(name, memory_range(memory), memory.layout) for name, memory in outputs],
        in_place,
        _ranges_share,
    )


_MOST_WORK: Any = 100_000
"""Steps of NumPy's search for a common element. Its type hints know only two special values."""


def _ranges_share(a: MemoryRange, b: MemoryRange) -> bool:
    return a.overlaps(b) and share_elements(array_over(a.owner), array_over(b.owner))


def share_elements(a: Array, b: Array) -> bool:
    """Return whether two arrays have an element in common. Columns of a matrix interleave, but do not."""
    try:
        return np.may_share_memory(a, b) and bool(np.shares_memory(a, b, max_work=_MOST_WORK))
    except np.exceptions.TooHardError:
        return True


def array_over(memory: TensorMemory) -> Array:
    """Return an array over the elements. It does not keep them alive, and may be on a device."""

    layout = memory.layout
    data = memory.address, not memory.writable
    return np.asarray(_Elements(data, layout.sizes, layout.strides, layout.type.numpy.str))


class _Elements:
    """Elements at an address, as NumPy reads them."""

    def __init__(
        self, data: tuple[int, bool], shape: tuple[int, ...], strides: tuple[int, ...], typestr: str
    ) -> None:
        self.__array_interface__ = {
            "data": data,
            "shape": shape,
            "strides": strides,
            "typestr": typestr,
            "version": 3,
        }
