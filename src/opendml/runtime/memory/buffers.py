"""Read and check the buffers that callers bind."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.late_dataclass import dataclass
from opendml.program.program import Layout
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.foreign import as_numpy
from opendml.runtime.memory.ranges import MemoryRange
from opendml.spec.element_types import element_type
from opendml.spec.four_bit import CARRIERS
from opendml.spec.tensor_desc import packed_strides, same_strides
from opendml.targets.memory import Place
from opendml.targets.registry import backend_at, place_of


@dataclass(frozen=True, slots=True)
class _Array:
    """A bound array: the address of its first element, and its strides."""

    address: int
    dtype: np.dtype[Any]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    writable: bool
    owner: Any
    place: Place | None = None

    @property
    def size(self) -> int:
        """The bytes of all elements."""
        return math.prod(self.sizes) * self.dtype.itemsize

    def lies_as(self, sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
        """Return whether the array has these sizes and strides."""
        return self.sizes == sizes and same_strides(sizes, self.strides, strides)

    def is_packed(self) -> bool:
        """Return whether the elements follow each other in row-major order."""
        return self.lies_as(
            self.sizes, tuple(step * self.dtype.itemsize for step in packed_strides(self.sizes))
        )

    def may_hold(self, type: ScalarType, writable: bool) -> bool:
        """Return whether the elements are of a type, or raw bytes. Booleans may be read as UINT8."""
        if self.dtype == np.bool_:
            return type is ScalarType.UINT8 and not writable
        return self.dtype in (np.uint8, type.numpy)


def buffer_range(buffer: Any, layout: Layout, writable: bool, name: str) -> MemoryRange:
    """Check a buffer against the tensor that is bound to it, and return its memory.

    Args:
        buffer: an array that is contiguous in row-major order, whatever its shape, or laid out as the tensor;
            of the tensor's type, or raw bytes: uint8, or any object with the buffer protocol.
        layout: the tensor.
        writable: the tensor is an output.
        name: what messages call the binding.

    Raises:
        InvalidArgument: no buffer, of another type or layout, read-only for an output, too small, or not
            aligned to the elements.
    """
    given = _array(buffer, name)
    is_laid_out = given.dtype == layout.type.numpy and given.lies_as(layout.sizes, layout.strides)
    _require(given, layout.type, writable, is_laid_out or given.is_packed(), name)
    # DirectML rounds sizes up to 4 bytes. Kernels only access the elements, so these are enough.
    size = layout.span[1]
    if given.size < size and not is_laid_out:
        raise InvalidArgument(f"{name}: {given.size} bytes; the tensor needs {size}")
    if given.address % layout.type.bytes:
        raise InvalidArgument(
            f"{name}: address {given.address:#x}; {layout.type.name} needs a multiple of {layout.type.bytes}"
        )
    return MemoryRange(given.address, size, given.owner, given.place)


def whole_buffer(buffer: Any, writable: bool, name: str, type: ScalarType | None = None) -> MemoryRange:
    """Return all bytes of an array in row-major order, or of an object with the buffer protocol.

    Args:
        buffer: the buffer.
        writable: it will be written.
        name: what messages call it.
        type: the type of its elements, unless it is raw bytes; None: any.

    Raises:
        InvalidArgument: no buffer, not contiguous, of another type, or read-only for an output.
    """
    given = _array(buffer, name)
    _require(given, type, writable, given.is_packed(), name)
    return MemoryRange(given.address, given.size, given.owner, given.place)


def _require(given: _Array, type: ScalarType | None, writable: bool, is_in_order: bool, name: str) -> None:
    if type is not None and not given.may_hold(type, writable):
        wanted = type.name.lower()
        copy = "" if writable else f" (.astype(np.{wanted}) makes one)"
        raise InvalidArgument(
            f"{name}: elements of {given.dtype}; the tensor is {type.name}: bind an array of {wanted}{copy}, "
            "or of uint8, which is taken as raw bytes"
        )
    if not is_in_order:
        fix = "bind a contiguous array" if writable else "copy it (np.ascontiguousarray)"
        raise InvalidArgument(
            f"{name}: an array that is not contiguous in row-major order, but has strides of "
            f"{list(given.strides)} bytes; {fix}, or give the TensorDesc its strides"
        )
    if writable and not given.writable:
        raise InvalidArgument(f"{name}: a read-only buffer; an output must be writable")


def _array(buffer: Any, name: str) -> _Array:
    """Return a bound buffer as an array."""
    place = place_of(buffer)
    if place is None:
        array = _host_array(buffer, name)
        if element_type(array.dtype) in CARRIERS:
            raise InvalidArgument(
                f"{name}: an array of {array.dtype}, each in a byte; opendml.to_buffer makes a buffer of it"
            )
        writable = array.flags.writeable
        return _Array(array.ctypes.data, array.dtype, array.shape, array.strides, writable, array)
    memory = backend_at(place).memory(buffer, name)
    layout = memory.layout
    dtype = layout.type.numpy
    return _Array(memory.address, dtype, layout.sizes, layout.strides, memory.writable, memory, memory.place)


def _host_array(buffer: Any, name: str) -> np.ndarray[Any, np.dtype[Any]]:
    if isinstance(buffer, np.ndarray):
        return buffer
    if hasattr(buffer, "__dlpack__"):
        return as_numpy(buffer, name)
    try:
        return np.asarray(memoryview(buffer))
    except (TypeError, ValueError, BufferError, NotImplementedError) as error:
        raise InvalidArgument(
            f"{name}: {type(buffer).__name__}; a contiguous buffer is needed ({error})"
        ) from error
