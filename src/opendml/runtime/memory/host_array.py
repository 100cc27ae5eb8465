"""NumPy arrays as tensors: type, layout and address; and what is asked of the memory of any array."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np

from opendml.errors import InvalidArgument
from opendml.program.program import Layout
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.ranges import MemoryRange, check_overlap
from opendml.spec.element_types import DATA_TYPES, element_type
from opendml.spec.enums import TensorDataType
from opendml.spec.overlap import overlaps
from opendml.targets.memory import TensorMemory, aligned_bytes, new_array

Array = np.ndarray[Any, np.dtype[Any]]

_element_type = lru_cache(maxsize=256)(element_type)


def data_type_of(array: Array, name: str) -> TensorDataType:
    """DirectML's type of an array's elements; truth values are UINT8.

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
    """Refuse an array of truth values, of any library, as an output: a UINT8 may be more than 0 and 1.

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
    """Return where the elements of an array lie, whatever its strides.

    Raises:
        InvalidArgument: as `data_type_of`.
    """
    return Layout(ScalarType.of(data_type_of(array, name)), array.shape, array.strides)


def memory_of(array: Array, name: str) -> TensorMemory:
    """Return where the elements of an array are.

    Raises:
        InvalidArgument: as `data_type_of`.
    """
    return TensorMemory(address_of(array), layout_of_array(array, name), array.flags.writeable, array)


def memory_range(memory: TensorMemory) -> MemoryRange:
    """Return the bytes from the first to the last element."""
    low, high = memory.layout.span
    return MemoryRange(memory.address + low, high - low, memory, memory.place)


_LARGE_BYTES = 64 * 1024


def array_maker(layout: Layout) -> Callable[[], Array]:
    """Return a function that makes new packed arrays of a tensor's type and sizes.

    Large ones are aligned so that every library takes them over as they are: JAX copies what is not aligned
    to 64 bytes. For small ones that would take longer than the copy.
    """
    type, sizes = layout.type.numpy, layout.sizes
    size = layout.element_count * type.itemsize
    if size < _LARGE_BYTES:
        return partial(np.empty, sizes, type)
    aligned = lambda: aligned_bytes(np.empty, size).view(type).reshape(sizes)  # noqa: E731
    return partial(new_array, aligned, layout)


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
    """Check that the outputs of `owner` can be written: writable, no element twice in memory, nothing shared
    that must not be.

    Raises:
        InvalidArgument: the output, and what is wrong with it.
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
        _share_elements,
    )


_MOST_WORK: Any = 100_000
"""Steps of the search for a common element; NumPy's type hints know only its two special values."""


def _share_elements(a: MemoryRange, b: MemoryRange) -> bool:
    """Return whether two arrays have an element in common: the columns of a matrix interleave, but do not."""
    try:
        return a.overlaps(b) and bool(
            np.shares_memory(array_over(a.owner), array_over(b.owner), max_work=_MOST_WORK)
        )
    except np.exceptions.TooHardError:
        return True


def array_over(memory: TensorMemory) -> Array:
    """Return an array of the same elements, for NumPy to compute with addresses and, in host memory, to copy.
    It does not keep them alive."""

    class Elements:
        __array_interface__: ClassVar = {
            "data": (memory.address, not memory.writable),
            "shape": memory.layout.sizes,
            "strides": memory.layout.strides,
            "typestr": memory.layout.type.numpy.str,
            "version": 3,
        }

    return np.asarray(Elements())


def _address_reader() -> Callable[[Array], int]:
    """Return how to read an array's address fast.

    NumPy's own ways take microseconds. The data pointer is the first field of an array object, and has been
    in every version; where that is not so, the slow way remains.
    """
    probe = np.zeros(3)
    offset = object.__basicsize__
    from_address = ctypes.c_size_t.from_address
    if from_address(id(probe) + offset).value == probe.ctypes.data:
        return lambda array: from_address(id(array) + offset).value
    return lambda array: int(array.ctypes.data)


address_of = _address_reader()
