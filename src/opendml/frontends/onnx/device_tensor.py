"""Tensors of ONNX models in the memory of a device that has memory of its own.

This module works without the `onnx` package.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from opendml.across_forks import importing
from opendml.late_dataclass import dataclass
from opendml.program.program import packed
from opendml.program.scalar_type import ScalarType
from opendml.targets.memory import Place, TensorMemory
from opendml.targets.registry import backend_at, place_of

if TYPE_CHECKING:
    from opendml.runtime.graphs.caches import DeviceArrays

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class DeviceTensor:
    """A tensor of an ONNX model in the memory of a device.

    Args:
        array: the elements as an array of any library, in a type of DirectML and with a dimension at least.
        dtype, shape: the type and the sizes of ONNX's tensor.
        place: the device.
        is_own: whether opendml knows all streams on which the memory is used.
    """

    array: Any
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    place: Place
    is_own: bool = True

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def memory(self) -> TensorMemory:
        """The memory of the elements."""
        return backend_at(self.place).memory(self.array, "tensor")

    def numpy(self) -> Array:
        """Wait for the work on the device, and return a copy in host memory."""
        backend, array = backend_at(self.place), self.array
        if not backend.is_own(array):
            array = _device_arrays(self.place).given(array, "tensor")
        found = backend.download(array)
        return (found if found.dtype == self.dtype else found.view(self.dtype)).reshape(self.shape)

    def write(self, content: Array) -> None:
        """Copy a host array of the same type and sizes into the tensor, and wait."""
        made = uploaded(content, self.place)
        _device_arrays(self.place).copy_memory(self.memory, made.memory, made.array)
        backend_at(self.place).synchronize()

    def as_type(self, type: np.dtype[Any]) -> DeviceTensor | None:
        """Return the tensor with a type that has the same form in memory. None: it is another form."""
        if type == self.dtype:
            return self
        return replace(self, dtype=type) if carrier(type) == carrier(self.dtype) else None


def device_tensor(array: Any, name: str = "tensor") -> DeviceTensor | None:
    """Return an array of any library on a device as a tensor. None: it lies in host memory.

    Args:
        array: the array.
        name: its name for errors.

    Raises:
        InvalidArgument: the array cannot be used in place.
    """
    if isinstance(array, DeviceTensor):
        return array
    place = place_of(array)
    if place is None:
        return None
    backend = backend_at(place)
    if backend.is_own(array):
        own = array if array.shape else array.reshaped((1,))
        return DeviceTensor(own, array.dtype, array.shape, place)
    layout = backend.memory(array, name).layout
    if not layout.sizes:
        array = array.reshape((1,))
    return DeviceTensor(array, layout.type.numpy, layout.sizes, place, is_own=False)


def uploaded(content: Array, place: Place) -> DeviceTensor:
    """Return a copy of a host array in the memory of a device, which is complete for all streams."""
    host = in_graph(content)
    made = backend_at(place).upload(host, packed(ScalarType[host.dtype.name.upper()], host.shape))
    return DeviceTensor(made, content.dtype, content.shape, place)


def over_memory(address: int, shape: tuple[int, ...], type: np.dtype[Any], place: Place) -> DeviceTensor:
    """Return a packed tensor over memory of the caller on a device."""
    layout = packed(ScalarType[carrier(type).name.upper()], shape or (1,))
    return DeviceTensor(backend_at(place).over(address, layout), type, shape, place, is_own=False)


def carrier(type: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of a graph's tensor for a type of ONNX."""
    with importing:
        from opendml.frontends.onnx.values import carrier_of
    return carrier_of(type)


def in_graph(content: Array) -> Array:
    """Return a host array in the form of a graph's tensor: packed, with a dimension, and of its type."""
    return np.ascontiguousarray(np.atleast_1d(content)).view(carrier(content.dtype))


def _device_arrays(place: Place) -> DeviceArrays:
    with importing:
        from opendml.runtime.graphs.caches import DeviceArrays
        from opendml.runtime.objects.device import as_device
    return DeviceArrays(as_device(str(place)))
