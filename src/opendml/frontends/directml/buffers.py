"""Memory of a device: buffers, and arrays on their way there and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import opendml.runtime.objects.device as runtime
from opendml.frontends.directml.tensors import Described
from opendml.frontends.pydirectml.data_types import (
    DataType,
    as_data_type,
    is_castable,
    numpy_type,
)
from opendml.frontends.pydirectml.devices import Device
from opendml.frontends.pydirectml.errors import Refused
from opendml.frontends.pydirectml.tensors import TensorDesc
from opendml.runtime.memory.host_array import Array
from opendml.runtime.memory.packing import from_buffer
from opendml.spec.tensor_desc import TensorDesc as Tensor


class Buffer(Described):
    """A tensor in the memory of a device, packed. Operators take it in place of an array and read it where it
    is. NumPy does not take it by itself: `numpy()` copies it.

    Args:
        device: where.
        array: what `numpy.asarray` takes.
        dtype: the type of the elements; None: the array's. It may be narrowed within a kind, as float64 to
            float32, and cast as NumPy calls it safe.

    Raises:
        ValueError: an array that would be cast otherwise.
        TypeError: a type that DirectML does not have.
    """

    __array_ufunc__ = None

    def __init__(self, device: Device, array: npt.ArrayLike, dtype: DataType | None = None) -> None:
        if not isinstance(device, Device):
            raise TypeError(f"Buffer.device: {type(device).__name__}; a Device is needed")
        given = np.asarray(array)
        wanted = numpy_type(as_data_type(given.dtype if dtype is None else dtype))
        require_castable(given, wanted, "the buffer")
        self._device, self._desc = device, TensorDesc(wanted, list(given.shape) or [1])
        self._memory = uploaded(device._device, bytes_of(given, wanted), copy=True)

    @classmethod
    def _of(cls, device: Device, tensor: Tensor, memory: Any) -> Buffer:
        made = object.__new__(cls)
        made._device, made._desc, made._memory = device, TensorDesc._of(tensor), memory
        return made

    @property
    def desc(self) -> TensorDesc:
        """The desc of the tensor."""
        return self._desc

    @property
    def device(self) -> Device:
        """Whose memory it is."""
        return self._device

    @property
    def nbytes(self) -> int:
        """The bytes of the buffer."""
        return self._desc.total_tensor_size_in_bytes

    def numpy(self) -> Array:
        """A copy as an array."""
        return np.array(downloaded(self._device._device, self._desc._desc, self._memory))


def require_castable(array: Array, wanted: np.dtype[Any], what: str) -> None:
    """Checks that an array becomes one of another type without surprise.

    Raises:
        ValueError: it would not.
    """
    if not is_castable(array.dtype, wanted):
        problem = f"{array.dtype.name} for {what} of {wanted.name}"
        raise Refused(f"{problem}; array.astype('{wanted.name}') converts it")


def bytes_of(array: Array, dtype: np.dtype[Any]) -> Array:
    """The bytes of the elements in row-major order, which are the array's own where it has them so."""
    return np.ascontiguousarray(array, dtype).reshape(-1).view(np.uint8)


def uploaded(device: runtime.Device, data: Array, *, copy: bool = False) -> Any:
    """Bytes in the memory of a device: for the CPU these themselves, unless a copy is asked for."""
    return device.upload(data) if copy or device.kind != "cpu" else data


def reserved(device: runtime.Device, tensor: Tensor) -> Any:
    """Memory for a tensor."""
    size = tensor.size_in_bytes
    return np.empty(size, np.uint8) if device.kind == "cpu" else device.empty([size], "UINT8")


def downloaded(device: runtime.Device, tensor: Tensor, memory: Any) -> Array:
    """A tensor in the memory of a device as an array: where that is packed and the device the CPU, the memory
    itself."""
    data = memory if isinstance(memory, np.ndarray) else device.download(memory)
    if tensor.strides is not None:
        return from_buffer(data, tensor)
    dtype = numpy_type(tensor.data_type)
    elements: Array = data[: tensor.element_count * dtype.itemsize].view(dtype)
    return elements.reshape(tensor.sizes)
