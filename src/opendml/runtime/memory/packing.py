"""Convert arrays to the bytes of DirectML's buffers, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from opendml.across_forks import importing
from opendml.errors import InvalidArgument
from opendml.runtime.memory.host_array import Array, data_type_of
from opendml.spec.enums import TensorDataType
from opendml.spec.four_bit import CARRIERS, Bytes, numpy_type, pack, unpack
from opendml.spec.tensor_desc import TensorDesc, calc_buffer_tensor_size, reach
from opendml.spec.wording import shown


def to_buffer(array: Any) -> Bytes:
    """Return a buffer that holds an array's elements in row-major order.

    Two elements of 4 bits (ml_dtypes' uint4 and int4, a byte each in arrays) share a byte, the first in the
    low half. Zeros pad the buffer to a multiple of 4 bytes, as DirectML demands.

    >>> import ml_dtypes
    >>> to_buffer(np.array([1, -1, 7], ml_dtypes.int4)).tolist()
    [241, 7, 0, 0]

    Args:
        array: a NumPy array, or an array in host memory that NumPy can copy.

    Raises:
        InvalidArgument: no such array, or elements of a type that DirectML has not.
    """
    try:
        values = np.asarray(array)
    except Exception as error:  # whatever a foreign array raises
        raise InvalidArgument(f"array: {type(array).__name__} that NumPy cannot copy ({error})") from error
    data_type = data_type_of(values, "array")
    if data_type in CARRIERS:
        data = pack(values.astype(CARRIERS[data_type]))
    else:
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    buffer = np.zeros(-(-data.size // 4) * 4, np.uint8)
    buffer[: data.size] = data
    return buffer


def from_buffer(buffer: Any, tensor: TensorDesc) -> Array:
    """Return the elements of a tensor in a buffer as a new array. UINT4 and INT4 have ml_dtypes' types.

    Args:
        buffer: a contiguous NumPy array or any object with the buffer protocol; only its bytes matter.
        tensor: the tensor, which may have strides.

    >>> from_buffer(bytes([241, 7, 0, 0]), TensorDesc(TensorDataType.INT4, [3]))
    array([1, -1, 7], dtype=int4)

    Raises:
        InvalidArgument: no such buffer, too small a buffer, a tensor without a size, or one of
            more dimensions or elements than an array can have.
    """
    if not isinstance(tensor, TensorDesc):
        raise InvalidArgument(f"tensor: {shown(tensor)}; a TensorDesc is needed")
    size = calc_buffer_tensor_size(tensor.data_type, tensor.sizes, tensor.strides)
    try:
        data = np.frombuffer(buffer, np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        problem = f"{type(buffer).__name__}; a contiguous buffer is needed ({error})"
        raise InvalidArgument(f"buffer: {problem}") from error
    if data.size < size:
        raise InvalidArgument(f"buffer: {data.size} bytes; the tensor needs {size}")
    count = reach(tensor.sizes, tensor.effective_strides)
    elements = _elements(data, tensor.data_type, count)
    strides = [stride * elements.itemsize for stride in tensor.effective_strides]
    try:
        return np.lib.stride_tricks.as_strided(elements, tensor.sizes, strides, writeable=False).copy()
    except (ValueError, OverflowError, MemoryError) as error:
        raise InvalidArgument(f"tensor: {shown(tensor)}; NumPy has no such array ({error})") from error


def _elements(data: Bytes, data_type: TensorDataType, count: int) -> Array:
    if data_type not in CARRIERS:
        dtype = numpy_type(data_type)
        return data[: count * dtype.itemsize].copy().view(dtype)
    with importing:
        import ml_dtypes
    return unpack(data, data_type, count).astype(getattr(ml_dtypes, data_type.name.lower()))
