"""Devices, and data on its way there and back: bindings, buffers, and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import opendml.runtime.objects.device as runtime
from opendml.errors import Unsupported
from opendml.frontends.pydirectml.enumerations import DataType, as_data_type, numpy_type
from opendml.frontends.pydirectml.errors import Refused
from opendml.frontends.pydirectml.tensors import Described, TensorDesc
from opendml.runtime.memory.host_array import Array
from opendml.runtime.memory.packing import from_buffer
from opendml.spec.tensor_desc import TensorDesc as Tensor

if TYPE_CHECKING:
    from opendml.frontends.pydirectml.expressions import Expression
    from opendml.frontends.pydirectml.graphs import Binding, Model


class TensorData(np.ndarray[Any, Any]):
    """The elements of an output. `numpy.array(result)` copies them, and it has the buffer protocol."""

    def __new__(cls, data: Any) -> TensorData:
        return np.array(data).view(cls)


class Device:
    """A device that runs models: an NVIDIA GPU if there is one and it is not refused, else the CPU.

    Args:
        use_gpu: False for the CPU.
        use_debug_layer: changes nothing. The checks of the debug layers are always made.
    """

    def __init__(self, use_gpu: bool = True, use_debug_layer: bool = False) -> None:
        try:
            self._device = runtime.Device("cuda" if use_gpu else "cpu")
        except Unsupported:  # There is no GPU.
            self._device = runtime.Device("cpu")

    def __repr__(self) -> str:
        return f"dml.Device on {'CPU' if self._device.kind == 'cpu' else 'GPU'}"

    def compute(
        self, model: Model, inputs: Sequence[Binding | None], outputs: Sequence[Expression | None]
    ) -> list[TensorData]:
        """Run a model and return its outputs, in the order of `build`.

        Args:
            model: the model. In `pydirectml` each call initializes it, in `directml` the first one.
            inputs: a binding for each input, in their order.
            outputs: the expressions that the model was built for, None for those to leave out.

        Raises:
            ValueError: too few inputs or outputs, or data of another size.
        """
        if model._bound is None or not model._keeps_weights:
            model._initialize(inputs)
        return model._dispatch(inputs, outputs)

    def initialize(self, model: Model, inputs: Sequence[Binding | None]) -> None:
        """Hand over the OWNED_BY_DML inputs of a model, also if it was done before.

        Args:
            model: the model.
            inputs: a binding for each input, in their order.

        Raises:
            ValueError: too few inputs, or data of another size.
        """
        model._initialize(inputs)

    def dispatch(
        self, model: Model, inputs: Sequence[Binding | None], outputs: Sequence[Expression | None]
    ) -> list[TensorData]:
        """Run an initialized model as `compute` does. Only the inputs that are not OWNED_BY_DML are read.

        Args:
            model: the model.
            inputs: a binding for each input, in their order.
            outputs: the expressions that the model was built for, None for those to leave out.

        Raises:
            ValueError: the model is not initialized, too few inputs or outputs, or data of another size.
        """
        return model._dispatch(inputs, outputs)


class Buffer(Described):
    """A packed tensor in the memory of a device. Operators read it there, in place of an array.

    NumPy does not convert it silently: `numpy()` copies it.

    Args:
        device: the device.
        array: anything that `numpy.asarray` takes.
        dtype: the type of the elements; None: the array's.

    Raises:
        ValueError: a cast that is neither safe in NumPy's sense nor within a kind, as float64 to float32 is.
        TypeError: DirectML does not have the type.
    """

    __array_ufunc__ = None

    def __init__(self, device: Device, array: npt.ArrayLike, dtype: DataType | None = None) -> None:
        if not isinstance(device, Device):
            raise TypeError(f"Buffer.device: {type(device).__name__}; a Device is needed")
        given = np.asarray(array)
        data_type = numpy_type(as_data_type(given.dtype if dtype is None else dtype))
        self._device, self._desc = device, TensorDesc(data_type, list(given.shape) or [1])
        self._memory = device._device.upload(host_bytes(self._desc._desc, given, "Buffer.array"))

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
        """The device in whose memory it is."""
        return self._device

    @property
    def nbytes(self) -> int:
        """The bytes of the buffer."""
        return self._desc.total_tensor_size_in_bytes

    def numpy(self) -> Array:
        """Return a copy as an array."""
        return np.array(downloaded(self._device._device, self._desc._desc, self._memory))


def host_bytes(tensor: Tensor, data: Any, what: str, *, is_strict: bool = True) -> Array:
    """Return the elements of an array in row-major order as bytes of a tensor, if possible without a copy.

    If it `is_strict`, a cast must be safe in NumPy's sense, or within a kind, as float64 to float32 is.
    """
    given, wanted = np.asarray(data), numpy_type(tensor.data_type)
    if is_strict and given.dtype.kind != wanted.kind and not np.can_cast(given.dtype, wanted, "safe"):
        problem = f"{what}: {given.dtype.name} for a tensor of {wanted.name}"
        raise Refused(f"{problem}; array.astype('{wanted.name}') converts it")
    require_fit(tensor, given.size, given.size * wanted.itemsize, what)
    return np.ascontiguousarray(given, wanted).reshape(-1).view(np.uint8)


def require_fit(tensor: Tensor, count: int, size: int, what: str) -> None:
    """Raise Refused unless data has the elements of a packed tensor, or the bytes that strides reach."""
    needed = tensor.size_in_bytes
    fits = count == tensor.element_count if tensor.strides is None else -(-size // 4) * 4 >= needed
    if not fits:
        has = f"the tensor has sizes {list(tensor.sizes)} and {needed} bytes"
        raise Refused(f"{what}: {count} elements, {size} bytes; {has}")


def downloaded(device: runtime.Device, tensor: Tensor, memory: Any) -> Array:
    """Return a tensor in the memory of a device as an array, which shares the memory of the CPU if packed."""
    data = memory if isinstance(memory, np.ndarray) else device.download(memory)
    if tensor.strides is not None:
        return from_buffer(data, tensor)
    dtype = numpy_type(tensor.data_type)
    elements: Array = data[: tensor.element_count * dtype.itemsize].view(dtype)
    return elements.reshape(tensor.sizes)
