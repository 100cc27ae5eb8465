"""An array in device memory of opendml's own, which other libraries take over through DLPack without a
copy."""

from __future__ import annotations

import ctypes
from typing import Any

from opendml.program.program import Layout
from opendml.targets.cuda.driver import CudaDevice, check, driver_module

_CUDA = 2
"""DLPack's number of the device type."""


class DeviceArray:
    """A packed array on a device; what is written to it must be on the device's own stream, or done."""

    def __init__(self, device: CudaDevice, layout: Layout) -> None:
        self.device, self.layout = device, layout
        self.memory = device.allocate(layout.element_count * layout.type.bytes)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """CUDA's array interface, version 3."""
        return {
            "shape": self.layout.sizes,
            "typestr": self.layout.type.numpy.str,
            "data": (self.memory.address, False),
            "version": 3,
            "stream": int(self.device.stream),
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        """The kind and the number of the device."""
        return _CUDA, self.device.index

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        """A capsule with the array, ready on the consumer's `stream` (None: the default one; -1: nothing to
        wait for).
        """
        if stream != -1:
            self._order(stream or 0)
        return _capsule(self)

    def _order(self, stream: int) -> None:
        """Makes a stream wait for the work that is on the device's own by now."""
        driver = driver_module()
        self.device.activate()
        event = check(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING), "creating an event")
        check(driver.cuEventRecord(event, self.device.stream), "recording an event")
        check(driver.cuStreamWaitEvent(driver.CUstream(stream), event, 0), "waiting for an event")
        check(driver.cuEventDestroy(event), "destroying an event")


class _Tensor(ctypes.Structure):
    """DLTensor, then the rest of DLManagedTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("type_bits", ctypes.c_uint8),
        ("type_lanes", ctypes.c_uint16),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


_alive: dict[int, tuple[Any, ...]] = {}
"""What exported tensors point to, by their addresses, until their consumers delete them."""


def _delete(address: int) -> None:
    _alive.pop(address, None)


def _delete_capsule(capsule: int) -> None:
    # A capsule that was consumed has another name, and its tensor belongs to the consumer.
    if _is_valid(capsule, b"dltensor"):
        _delete(_pointer(capsule, b"dltensor"))


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_tensor_deleter, _capsule_deleter = _DELETER(_delete), _DELETER(_delete_capsule)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _capsule(array: DeviceArray) -> Any:
    layout = array.layout
    rank = len(layout.sizes)
    sizes = (ctypes.c_int64 * rank)(*layout.sizes)
    strides = (ctypes.c_int64 * rank)(*(stride // layout.type.bytes for stride in layout.strides))
    tensor = _Tensor(
        data=array.memory.address,
        device_type=_CUDA,
        device_id=array.device.index,
        rank=rank,
        type_code=2 if layout.type.is_float else 0 if layout.type.is_signed else 1,
        type_bits=8 * layout.type.bytes,
        type_lanes=1,
        sizes=ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64)),
        strides=ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64)),
        deleter=ctypes.cast(_tensor_deleter, ctypes.c_void_p).value,
    )
    address = ctypes.addressof(tensor)
    _alive[address] = (tensor, sizes, strides, array)
    return _new_capsule(address, b"dltensor", ctypes.cast(_capsule_deleter, ctypes.c_void_p))
