"""Arrays of other libraries in CUDA memory: where they lie, on which stream they are ready, and new ones of
the same kind.

DLPack is the road for all libraries. PyTorch and CuPy, whose arrays belong to a current stream, are also read
directly: it costs a tenth of the time, and their own allocators keep the order of that stream.
"""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from opendml.errors import InvalidArgument
from opendml.program.program import Layout, packed
from opendml.program.scalar_type import ScalarType
from opendml.spec.enums import TensorDataType
from opendml.targets.cuda import dlpack
from opendml.targets.cuda.device_array import DeviceArray
from opendml.targets.cuda.driver import device, device_at
from opendml.targets.cuda.place import place
from opendml.targets.memory import TensorMemory

_NUMBERS = {type.name.lower(): type for type in ScalarType if type.name in TensorDataType.__members__}
_TYPES = _NUMBERS | {"bool": ScalarType.UINT8}


class Library(Protocol):
    """A library's way to read and make arrays."""

    is_ordered: bool
    """True if the library has a current stream. Its arrays are used and freed in the order of this stream."""

    def device(self, array: Any) -> int:
        """Return the number of the device that an array is on."""

    def stream(self, device: int) -> int:
        """Return the stream for work on such arrays, by its handle."""

    def identify(self, array: Any, stream: int) -> tuple[Hashable, int, Any]:
        """Make an array ready on a stream. Return a key of all that its code depends on, its address, and an
        owner that keeps it alive (None if the library does).

        Raises:
            BufferError: the array cannot be used in place.
        """

    def memory(self, array: Any, name: str, stream: int) -> TensorMemory:
        """Make an array ready on a stream, and return its memory.

        Raises:
            InvalidArgument: the array cannot be used in place, or has a type that DirectML does not have.
        """

    def empty(self, sizes: Sequence[int], type: ScalarType, device: int) -> tuple[Any, int]:
        """Return a new packed array, and its address. `finished` completes it."""

    def finished(self, array: Any) -> Any:
        """Complete an array of `empty`, once the work that writes it is on the stream."""


class TorchArrays:
    """PyTorch's tensors, on PyTorch's current stream."""

    is_ordered = True

    def __init__(self) -> None:
        torch: Any = importlib.import_module("torch")
        self._empty, self._strided, self._is_grad_enabled = torch.empty, torch.strided, torch.is_grad_enabled
        # What `torch.cuda.current_stream` asks, without the object that it makes.
        self._current = torch._C._cuda_getCurrentRawStream
        self._types = {getattr(torch, name): type for name, type in _TYPES.items() if hasattr(torch, name)}
        self._dtypes = {type: getattr(torch, name) for name, type in _NUMBERS.items() if hasattr(torch, name)}
        self._devices = [torch.device("cuda", index) for index in range(torch.cuda.device_count())]

    def device(self, array: Any) -> int:
        """See Library."""
        return int(array.get_device())

    def stream(self, device: int) -> int:
        """See Library."""
        return int(self._current(device))

    def identify(self, array: Any, stream: int) -> tuple[Hashable, int, Any]:
        """See Library."""
        is_neg, differentiated, address = array.is_neg(), self._is_differentiated(array), array.data_ptr()
        form = (
            array.dtype,
            array.shape,
            array.stride(),
            array.get_device(),
            is_neg,
            differentiated,
            not address,
        )
        return form, address, None

    def _is_differentiated(self, array: Any) -> bool:
        return array.requires_grad and self._is_grad_enabled()  # type: ignore[no-any-return]

    def memory(self, array: Any, name: str, stream: int) -> TensorMemory:
        """See Library."""
        if array.layout is not self._strided:
            raise InvalidArgument(f"{name}: a tensor of layout {array.layout}; a dense one is needed")
        if self._is_differentiated(array):
            raise InvalidArgument(
                f"{name}: a tensor that requires its gradient, which opendml does not compute; use detach()"
            )
        if array.is_neg():
            raise InvalidArgument(f"{name}: a tensor with the negative bit set; use resolve_neg()")
        if array.numel() and not array.data_ptr():
            raise InvalidArgument(f"{name}: a tensor without memory; use clone()")
        type = _element(name, self._types.get(array.dtype), array.dtype)
        strides = tuple(step * type.bytes for step in array.stride())
        layout = Layout(type, tuple(array.shape), strides)
        return TensorMemory(array.data_ptr(), layout, True, array, place(array.get_device()))

    def empty(self, sizes: Sequence[int], type: ScalarType, device: int) -> tuple[Any, int]:
        """See Library."""
        array = self._empty(sizes, dtype=self._dtypes[type], device=self._devices[device])
        return array, array.data_ptr()

    def finished(self, array: Any) -> Any:
        """See Library."""
        return array


class CupyArrays:
    """CuPy's arrays, on CuPy's current stream."""

    is_ordered = True

    def __init__(self) -> None:
        self._cupy: Any = importlib.import_module("cupy")

    def device(self, array: Any) -> int:
        """See Library."""
        return int(array.data.device_id)

    def stream(self, device: int) -> int:
        """See Library."""
        return int(self._cupy.cuda.get_current_stream(device).ptr)

    def identify(self, array: Any, stream: int) -> tuple[Hashable, int, Any]:
        """See Library."""
        data = array.data
        return (array.dtype, array.shape, array.strides, data.device_id), data.ptr, None

    def memory(self, array: Any, name: str, stream: int) -> TensorMemory:
        """See Library."""
        type = _element(name, _TYPES.get(array.dtype.name), array.dtype)
        layout = Layout(type, array.shape, array.strides)
        return TensorMemory(array.data.ptr, layout, True, array, place(array.data.device_id))

    def empty(self, sizes: Sequence[int], type: ScalarType, device: int) -> tuple[Any, int]:
        """See Library."""
        with self._cupy.cuda.Device(device):
            array = self._cupy.empty(sizes, type.numpy)
        return array, array.data.ptr

    def finished(self, array: Any) -> Any:
        """See Library."""
        return array


class ExchangedArrays:
    """Arrays of any library, through DLPack, or CUDA's array interface where it has no other; on the device's
    own stream. Results are opendml's own memory, which the library called `name` takes over if it has
    `from_dlpack`.
    """

    is_ordered = False

    def __init__(self, name: str) -> None:
        self._name = name

    def device(self, array: Any) -> int:
        """See Library."""
        if hasattr(array, "__dlpack_device__"):
            return int(array.__dlpack_device__()[1])
        return device_at(array.__cuda_array_interface__["data"][0])

    def stream(self, device_index: int) -> int:
        """See Library."""
        return int(device(device_index).stream)

    def identify(self, array: Any, stream: int) -> tuple[Hashable, int, Any]:
        """See Library."""
        memory = self._found(array, stream)
        return (memory.layout, memory.writable, memory.place), memory.address, memory.owner

    def memory(self, array: Any, name: str, stream: int) -> TensorMemory:
        """See Library."""
        try:
            return self._found(array, stream)
        except BufferError as error:
            raise InvalidArgument(f"{name}: {error}") from error

    def _found(self, array: Any, stream: int) -> TensorMemory:
        if type(array) is DeviceArray:  # In a tenth of the time of a capsule.
            array.ready(stream)
            return array.memory
        if getattr(array, "is_neg", bool)():  # subclasses of PyTorch's tensors
            raise BufferError("a tensor with the negative bit set; use resolve_neg()")
        try:
            found = _exchanged(array, stream)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise BufferError(f"{type(array).__name__} that cannot be used in place ({error})") from error
        # JAX's arrays never change, which the form of DLPack that it speaks cannot say.
        writable = found.writable and _package(type(array)) != "jax"
        return TensorMemory(found.address, found.layout, writable, found.owner, found.place)

    def empty(self, sizes: Sequence[int], type: ScalarType, device_index: int) -> tuple[Any, int]:
        """See Library."""
        array = DeviceArray(device(device_index), sizes, type)
        return array, array.memory.address

    def finished(self, array: Any) -> Any:
        """See Library. Libraries without `from_dlpack` get opendml's own array."""
        if self._name == "opendml":
            return array
        module = importlib.import_module(self._name)
        take = getattr(getattr(module, "dlpack", module), "from_dlpack", None)
        return array if take is None else take(array)


def library_of(array: Any) -> Library:
    """Return a way to read an array."""
    kind = type(array)
    library = _libraries.get(kind)
    if library is None:
        library = _libraries[kind] = _library(kind)
    return library


def exchanged(array: Any) -> Library:
    """Return a way to read an array of any library through the protocols alone."""
    return _exchange(_package(type(array)))


def _package(kind: type) -> str:
    """Return the package of the library that a class is from."""
    name = kind.__module__.partition(".")[0]
    return "jax" if name == "jaxlib" else name


_libraries: dict[type, Library] = {}


def _library(kind: type) -> Library:
    # Subclasses may mean something else by an address, so they go by the protocol.
    name = _package(kind)
    if name == "torch" and kind.__name__ in ("Tensor", "Parameter"):
        return _torch()
    if name == "cupy" and kind.__name__ == "ndarray":
        return _cupy()
    return _exchange(name)


_torch, _cupy, _exchange = cache(TorchArrays), cache(CupyArrays), cache(ExchangedArrays)


def ready_memory(array: Any, name: str) -> TensorMemory:
    """Return the memory of an array on a CUDA device, in place. The work of libraries without a current
    stream on it is done; that of the others is in the order of their streams.

    Raises:
        InvalidArgument: it cannot be used in place, or has a type that DirectML does not have.
    """
    library = library_of(array)
    owner = device(library.device(array))
    memory = library.memory(array, name, int(owner.stream))
    if not library.is_ordered:
        owner.synchronize(owner.stream)
    return memory


def _exchanged(array: Any, stream: int) -> TensorMemory:
    if not hasattr(array, "__dlpack__"):
        return _interfaced(array, stream)
    # DLPack calls the legacy default stream 1.
    waiting = stream or 1
    try:
        capsule = array.__dlpack__(stream=waiting, max_version=(dlpack.MAJOR_VERSION, 0))
    except TypeError:  # a library from before versions
        capsule = array.__dlpack__(stream=waiting)
    return dlpack.read(capsule)


def _interfaced(array: Any, stream: int) -> TensorMemory:
    """Return an array through CUDA's array interface."""
    facts = array.__cuda_array_interface__
    dtype = np.dtype(facts["typestr"])
    type = _TYPES.get(dtype.name)
    if type is None or not dtype.isnative:
        raise BufferError(f"elements of {facts['typestr']}")
    sizes, strides = tuple(facts["shape"]), facts.get("strides")
    layout = packed(type, sizes) if strides is None else Layout(type, sizes, tuple(strides))
    address, read_only = facts["data"]
    index = device_at(address)
    ready = facts.get("stream")
    if ready is not None and ready != stream:
        device(index).order(ready, stream)
    return TensorMemory(address, layout, not read_only, array, place(index))


def _element(name: str, type: ScalarType | None, given: Any) -> ScalarType:
    if type is None:
        raise InvalidArgument(f"{name}: elements of {given}; DirectML has {', '.join(_NUMBERS)}")
    return type
