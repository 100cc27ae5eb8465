"""Capsules of DLPack, with and without a version. They are read in place, and made for memory of opendml."""

from __future__ import annotations

import ctypes
from typing import Any

from opendml.program.program import Layout
from opendml.program.scalar_type import ScalarType
from opendml.targets.cuda.place import DLPACK_DEVICES, place
from opendml.targets.memory import TensorMemory

MAJOR_VERSION = 1  # Of DLPack. Capsules of this version have flags.
_READ_ONLY = 1  # The flag of arrays that must not be written.


class _Tensor(ctypes.Structure):
    """DLTensor."""

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
    )


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_NAMES: dict[bytes, type[_Managed] | type[_Versioned]] = {
    b"dltensor_versioned": _Versioned,
    b"dltensor": _Managed,
}
_TYPES: dict[tuple[int, int], ScalarType] = {
    (2 if type.is_float else 0 if type.is_signed else 1, 8 * type.bytes): type
    for type in ScalarType
    if type not in (ScalarType.BOOLEAN, ScalarType.BFLOAT16) and not type.is_four_bit
}
_TYPES[4, 16] = ScalarType.BFLOAT16
_CODES = {type: code for code, type in _TYPES.items()}
_TYPES[6, 8] = ScalarType.UINT8  # truth values


def read(capsule: Any) -> TensorMemory:
    """Return the memory that an unconsumed capsule describes. The capsule keeps it alive.

    Raises:
        BufferError: no such capsule, of a version that is too new, not on a CUDA device, or with elements
            that DirectML does not have.
    """
    address = id(capsule)
    name = next((name for name in _NAMES if _is_valid(address, name)), None)
    if name is None:
        raise BufferError("not a DLPack capsule")
    managed = _NAMES[name].from_address(_pointer(address, name))
    if isinstance(managed, _Versioned) and managed.major != MAJOR_VERSION:
        raise BufferError(f"DLPack {managed.major}.{managed.minor}; {MAJOR_VERSION} is understood")
    tensor = managed.tensor
    if tensor.device_type not in DLPACK_DEVICES:
        raise BufferError(f"memory of DLPack's device type {tensor.device_type}; CUDA's are {DLPACK_DEVICES}")
    type = _TYPES.get((tensor.type_code, tensor.type_bits)) if tensor.type_lanes == 1 else None
    if type is None:
        raise BufferError(f"elements of DLPack's type {tensor.type_code}, {tensor.type_bits} bits")
    sizes = tuple(tensor.sizes[: tensor.rank]) if tensor.rank else ()
    # Before version 1, no strides mean packed.
    steps = tensor.strides[: tensor.rank] if tensor.rank and tensor.strides else _packed_steps(sizes)
    layout = Layout(type, sizes, tuple(step * type.bytes for step in steps))
    writable = not (isinstance(managed, _Versioned) and managed.flags & _READ_ONLY)
    first = (tensor.data or 0) + tensor.byte_offset
    return TensorMemory(first, layout, writable, capsule, place(tensor.device_id))


def capsule(memory: TensorMemory, versioned: bool) -> Any:
    """Return a capsule with memory on a CUDA device."""
    layout = memory.layout
    rank = len(layout.sizes)
    sizes = (ctypes.c_int64 * rank)(*layout.sizes)
    strides = (ctypes.c_int64 * rank)(*(stride // layout.type.bytes for stride in layout.strides))
    code, bits = _CODES[layout.type]
    tensor = _Tensor(
        data=memory.address,
        device_type=DLPACK_DEVICES[0],
        device_id=memory.place.number if memory.place else 0,
        rank=rank,
        type_code=code,
        type_bits=bits,
        type_lanes=1,
        sizes=ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64)),
        strides=ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64)),
    )
    deleter = ctypes.cast(_tensor_deleter, ctypes.c_void_p).value
    managed: _Managed | _Versioned
    if versioned:
        flags = 0 if memory.writable else _READ_ONLY
        managed = _Versioned(major=MAJOR_VERSION, deleter=deleter, flags=flags, tensor=tensor)
    else:
        managed = _Managed(tensor=tensor, deleter=deleter)
    address = ctypes.addressof(managed)
    _alive[address] = (managed, sizes, strides, memory.owner)
    name = next(name for name, structure in _NAMES.items() if isinstance(managed, structure))
    return _new_capsule(address, name, ctypes.cast(_capsule_deleter, ctypes.c_void_p))


def _packed_steps(sizes: tuple[int, ...]) -> list[int]:
    steps = [1]
    for size in reversed(sizes[1:]):
        steps.insert(0, steps[0] * size)
    return steps if sizes else []


_alive: dict[int, tuple[Any, ...]] = {}
"""The objects that exported tensors point to, by their addresses, until their consumers delete them."""


def _delete(address: int) -> None:
    _alive.pop(address, None)


def _delete_capsule(capsule: int) -> None:
    # A capsule that was consumed has another name, and its tensor belongs to the consumer.
    for name in _NAMES:
        if _is_valid(capsule, name):
            _delete(_pointer(capsule, name))


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_tensor_deleter, _capsule_deleter = _DELETER(_delete), _DELETER(_delete_capsule)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
# Capsules by address: the deleter of one that is being destroyed must not take a new reference to it.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
