"""Arrays in device memory, of any library: where they lie, on which stream they are ready, and new ones of
the same kind.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.program.program import Layout, packed
from opendml.program.scalar_type import ScalarType
from opendml.spec.enums import TensorDataType
from opendml.targets.cuda.dlpack import DeviceArray
from opendml.targets.cuda.driver import CudaDevice


@dataclass(frozen=True, slots=True)
class DeviceView:
    """An array's memory: the address of its first element, its layout, and whether it may be written."""

    address: int
    layout: Layout
    writable: bool
    owner: Any


def is_device_array(value: Any) -> bool:
    """Whether a value is an array in CUDA memory."""
    # PyTorch tensors on the CPU have the attribute too, but raise when it is read.
    return hasattr(value, "__cuda_array_interface__")


def view(value: Any, name: str) -> DeviceView:
    """The memory of an array on a CUDA device, in place.

    Raises:
        InvalidArgument: no such array, or of a type that DirectML does not have.
    """
    if not is_device_array(value):
        raise InvalidArgument(f"{name}: {type(value).__name__}; an array in CUDA memory is needed")
    facts = value.__cuda_array_interface__
    dtype = np.dtype(facts["typestr"])
    element = _SCALAR_TYPES.get(dtype)
    if element is None:
        raise InvalidArgument(f"{name}: elements of {dtype}; DirectML does not have them")
    sizes = tuple(facts["shape"])
    strides = facts.get("strides")
    layout = packed(element, sizes) if strides is None else Layout(element, sizes, tuple(strides))
    address, read_only = facts["data"]
    if address % element.bytes:
        raise InvalidArgument(
            f"{name}: address {address:#x}; {element.name} needs a multiple of {element.bytes}"
        )
    return DeviceView(address, layout, not read_only, value)


def stream_of(value: Any, device: CudaDevice) -> int:
    """The stream, as a handle, on which work on an array is in order with its library's own work.

    PyTorch and CuPy: their current stream. Others: the device's own, after their work on the array is done.
    """
    library = _library(value)
    if library == "torch":
        torch = importlib.import_module("torch")
        return int(torch.cuda.current_stream(value.device).cuda_stream)
    if library == "cupy":
        cupy = importlib.import_module("cupy")
        return int(cupy.cuda.get_current_stream().ptr)
    wait = getattr(value, "block_until_ready", None)
    if wait is not None:
        wait()
    else:
        device.synchronize(value.__cuda_array_interface__.get("stream") or 0)
    return int(device.stream)


def empty_like(kind: Any, sizes: Sequence[int], element: ScalarType, device: CudaDevice) -> Any:
    """A new array that `as_kind` makes one of the library that `kind` is from; its memory can be viewed and
    written.
    """
    library = _library(kind)
    if library == "torch":
        torch = importlib.import_module("torch")
        return torch.empty(tuple(sizes), dtype=getattr(torch, element.name.lower()), device=kind.device)
    if library == "cupy":
        return importlib.import_module("cupy").empty(tuple(sizes), element.numpy)
    return DeviceArray(device, packed(element, sizes))


def as_kind(kind: Any, array: Any) -> Any:
    """What `empty_like` made, after it was written on the stream of `stream_of`, as an array of the library
    of `kind`.
    """
    if not isinstance(array, DeviceArray) or isinstance(kind, DeviceArray):
        return array
    library = importlib.import_module(_library(kind).removesuffix("lib"))
    return getattr(library, "dlpack", library).from_dlpack(array)


def upload(array: np.ndarray[Any, np.dtype[Any]], device: CudaDevice) -> DeviceArray:
    """A packed copy of a host array on the device.

    Raises:
        Unsupported: no memory.
    """
    packed_array = np.ascontiguousarray(array)
    result = DeviceArray(device, packed(_SCALAR_TYPES[packed_array.dtype], array.shape))
    result.memory.write(packed_array.ctypes.data, packed_array.nbytes)
    return result


def download(array: DeviceArray) -> np.ndarray[Any, np.dtype[Any]]:
    """A copy of a device array in host memory, after all work on the device."""
    result = np.empty(array.layout.sizes, array.layout.type.numpy)
    array.memory.read(result.ctypes.data, result.nbytes)
    return result


def _library(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


_SCALAR_TYPES = {
    np.dtype(data_type.name.lower()): ScalarType.of(data_type)
    for data_type in TensorDataType
    if data_type.name in ScalarType.__members__
}
