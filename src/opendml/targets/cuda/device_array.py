"""Arrays in device memory of opendml, which other libraries import through DLPack without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.program.program import Layout, packed
from opendml.program.scalar_type import ScalarType
from opendml.spec.enums import TensorDataType
from opendml.targets.cuda import dlpack
from opendml.targets.cuda.driver import UNKNOWN_STREAM, CudaDevice
from opendml.targets.cuda.place import DLPACK_DEVICES, place
from opendml.targets.memory import TensorMemory


class DeviceArray:
    """An array on a CUDA device. It is packed, or the first part of a packed array along an axis.

    `torch.from_dlpack`, `cupy.from_dlpack` and `jax.dlpack.from_dlpack` make it an array of theirs over the
    same memory. New arrays, unless `cleared`, may be used in the order of the device's own stream. What is
    written to them must be on that stream, or done, before another library takes them over.

    Args:
        device: the device.
        sizes: the sizes.
        type: the type of the elements.
        cleared: whether the elements are set to 0.
        address: the address of the elements in memory of the caller, who keeps it alive. None: new memory.

    Raises:
        Unsupported: out of memory.
    """

    def __init__(
        self,
        device: CudaDevice,
        sizes: Sequence[int],
        type: ScalarType,
        *,
        cleared: bool = False,
        address: int | None = None,
    ) -> None:
        self._device, self._layout = device, packed(type, sizes)
        if address is None:
            self._memory = device.allocate(self.nbytes, cleared=cleared)
        else:
            self._memory = device.memory_at(address, self.nbytes)

    def __repr__(self) -> str:
        return f"DeviceArray({self.data_type.name}, {list(self.sizes)}, device='cuda:{self._device.index}')"

    @property
    def device_index(self) -> int:
        """The number of its device."""
        return self._device.index

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes, outermost first."""
        return self._layout.sizes

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes, by the name that other libraries have for them."""
        return self.sizes

    @property
    def data_type(self) -> TensorDataType:
        """The type of the elements."""
        return self._layout.type.data_type

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self._layout.element_count * self._layout.type.bytes

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements, as NumPy has it."""
        return self._layout.type.numpy

    def part(self, axis: int, length: int) -> DeviceArray:
        """Return the first elements along an axis, in the same memory.

        Args:
            axis: the axis.
            length: the number of elements along it, at most as many as there are.
        """
        layout = self._layout
        sizes = (*layout.sizes[:axis], length, *layout.sizes[axis + 1 :])
        return self._with(Layout(layout.type, sizes, layout.strides))

    def reshaped(self, sizes: Sequence[int]) -> DeviceArray:
        """Return the elements of a packed array with other sizes, in the same memory."""
        return self._with(packed(self._layout.type, sizes))

    def _with(self, layout: Layout) -> DeviceArray:
        """Return an array in the same memory with another layout."""
        other = DeviceArray.__new__(DeviceArray)
        other._device, other._memory, other._layout = self._device, self._memory, layout
        return other

    @property
    def memory(self) -> TensorMemory:
        """The memory of the elements."""
        return TensorMemory(self._memory.address, self._layout, True, self, place(self._device.index))

    def copy_from(self, array: np.ndarray[Any, np.dtype[Any]]) -> None:
        """Copy a host array of as many bytes into this array, and wait.

        Raises:
            InvalidArgument: the numbers of bytes differ.
        """
        if array.nbytes != self.nbytes:
            raise InvalidArgument(
                f"copy_from: {array.nbytes} bytes given, {self.dtype} {list(self.sizes)} has {self.nbytes}"
            )
        layout, content = self._layout, np.ascontiguousarray(array)
        if layout.span[1] > self.nbytes:  # What lies between the elements of a part stays.
            values, content = content.view(self.dtype), np.empty(layout.span[1], np.uint8)
            self._memory.read(content.ctypes.data, content.nbytes)
            elements = np.ndarray(layout.sizes, self.dtype, content, strides=layout.strides)
            elements[...] = values.reshape(layout.sizes)
        self._memory.write(content.ctypes.data, content.nbytes)

    def to_host(self) -> np.ndarray[Any, np.dtype[Any]]:
        """Wait for all work on the device, and return a copy in host memory."""
        layout = self._layout
        result = np.empty(layout.span[1], np.uint8)
        self._memory.read(result.ctypes.data, result.nbytes)
        return np.ascontiguousarray(np.ndarray(layout.sizes, self.dtype, result, strides=layout.strides))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """CUDA's array interface, version 3."""
        self._device.streams.add(UNKNOWN_STREAM)
        return {
            "shape": self.sizes,
            "strides": self._layout.strides,
            "typestr": self.dtype.str,
            "data": (self._memory.address, False),
            "version": 3,
            "stream": int(self._device.stream),
        }

    def ready(self, stream: int) -> None:
        """Make the array ready on a stream."""
        self._device.streams.add(stream)
        if stream not in (UNKNOWN_STREAM, int(self._device.stream)):
            self._device.order(self._device.stream, stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the kind and the number of the device."""
        return DLPACK_DEVICES[0], self._device.index

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a capsule with the array, ready on the consumer's `stream` (None: the default one; -1:
        nothing to wait for).

        Raises:
            BufferError: a copy or another device is asked for.
        """
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("this array is shared as it is: no copies, no other device")
        # DLPack calls the legacy default stream None or 1.
        self.ready(0 if stream is None or stream == 1 else stream)
        return dlpack.capsule(self.memory, max_version is not None and max_version[0] >= dlpack.MAJOR_VERSION)
