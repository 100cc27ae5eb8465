"""OrtValue and IOBinding of ONNX Runtime.

All memory is host memory. A binding to a device of this machine is accepted, because it changes no results.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import onnx

from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends.onnx.values import Array
from opendml.frontends.onnxruntime.devices import OrtMemoryInfo, require_memory
from opendml.spec.wording import shown

if TYPE_CHECKING:
    from opendml.frontends.onnxruntime.session import InferenceSession


def element_type_of(type: Any) -> np.dtype[Any]:
    """Return the NumPy type for a NumPy type or a number of onnx.TensorProto."""
    found: np.dtype[Any] = np.dtype(
        onnx.helper.tensor_dtype_to_np_dtype(type) if isinstance(type, int) else type
    )
    return found


def type_text(type: np.dtype[Any]) -> str:
    """Return an element type as ONNX Runtime writes it: "float" for float32."""
    names = {"float32": "float", "float64": "double", "object": "string", "float8_e4m3fn": "float8e4m3fn"}
    return "string" if type.kind in "US" else names.get(type.name, type.name)


class OrtValue:
    """A tensor or sequence, as in ONNX Runtime. Its class methods make one."""

    def __init__(self, content: Any) -> None:
        self._content = content

    def __repr__(self) -> str:
        if not self.is_tensor():
            return f"<OrtValue {type(self._content).__name__}>"
        return f"<OrtValue {self.data_type()} {self.shape()}>"

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: Array, /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """Return a value that shares an array's memory, whatever its strides are; a copy for a device.

        Args:
            numpy_obj: the array.
            device_type: "cpu", "cuda", or "dml" for the best device here.
            device_id, vendor_id: have no effect.

        Raises:
            InvalidArgument: the argument is no NumPy array, or the device is unknown.
            Unsupported: this machine has no such device.
        """
        if not isinstance(numpy_obj, np.ndarray):
            raise InvalidArgument(f"ortvalue_from_numpy: {shown(numpy_obj)}; a NumPy array is needed")
        require_memory(device_type, "ortvalue_from_numpy")
        return cls(numpy_obj if device_type == "cpu" else numpy_obj.copy())

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: Array, /, onnx_element_type: int) -> OrtValue:
        """Return a value over the bytes of an array, whose elements are of another type of the same size.

        Args:
            data: the array.
            onnx_element_type: the number of the type in onnx.TensorProto, such as that of BFLOAT16.
        """
        type = element_type_of(onnx_element_type)
        if not isinstance(data, np.ndarray) or data.dtype.itemsize != type.itemsize:
            given = data.dtype.name if isinstance(data, np.ndarray) else shown(data)
            needed = f"{given}; an array of {type.itemsize} bytes for each {type.name} is needed"
            raise InvalidArgument(f"ortvalue_from_numpy_with_onnx_type: {needed}")
        return cls(data.view(type))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: Any,
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: OrtMemoryInfo | None = None,
    ) -> OrtValue:
        """Return a tensor of zeros. The device is that of `ortvalue_from_numpy`."""
        require_memory(device_type, "ortvalue_from_shape_and_type")
        return cls(np.zeros(tuple(shape), element_type_of(element_type)))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """Return a value that shares the host memory of an array of another library."""
        try:
            return cls(np.from_dlpack(data))
        except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
            raise InvalidArgument(f"OrtValue.from_dlpack: {type(data).__name__}: {error}") from error

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: Any) -> NoReturn:
        """Raise Unsupported: models take dense tensors."""
        raise _no_sparse("ort_value_from_sparse_tensor")

    def as_sparse_tensor(self) -> NoReturn:
        """Raise Unsupported: values are dense."""
        raise _no_sparse("as_sparse_tensor")

    def is_sparse_tensor(self) -> bool:
        """Return False: values are dense."""
        return False

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the value for NumPy's functions."""
        if copy is None:
            return np.asarray(self.numpy(), dtype)
        return np.array(self.numpy(), dtype, copy=copy)

    def __dlpack__(self, *, stream: Any = None) -> Any:
        """Return a capsule of DLPack over the memory of the value."""
        return self.numpy().__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's numbers of the device."""
        kind, number = self.numpy().__dlpack_device__()
        return int(kind), int(number)

    def numpy(self) -> Any:
        """Return the value as a NumPy array."""
        return self._content

    def shape(self) -> list[int]:
        """Return the sizes of the value."""
        return list(self._content.shape)

    def data_type(self) -> str:
        """Return the type as text, such as "tensor(float)"."""
        if self.is_tensor_sequence():
            elements = {OrtValue(each).data_type() for each in self._content} or {"tensor(float)"}
            return f"seq({', '.join(sorted(elements))})"
        return f"tensor({type_text(self._content.dtype)})"

    def element_type(self) -> int:
        """Return the number of the element type in onnx.TensorProto."""
        return int(onnx.helper.np_dtype_to_tensor_dtype(self._content.dtype))

    def tensor_size_in_bytes(self) -> int:
        """Return the bytes of the elements."""
        return int(self._content.nbytes)

    def device_name(self) -> str:
        """Return the device of the memory, which is always "cpu"."""
        return "cpu"

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return int(self._content.ctypes.data)

    def has_value(self) -> bool:
        """Return whether the value has a content."""
        return self._content is not None

    def is_tensor(self) -> bool:
        """Return whether the content is an array."""
        return isinstance(self._content, np.ndarray)

    def is_tensor_sequence(self) -> bool:
        """Return whether the content is a list."""
        return isinstance(self._content, list)

    def update_inplace(self, data: Array | OrtValue) -> None:
        """Copy an array or another value into the value.

        Raises:
            InvalidArgument: the types or sizes differ.
        """
        content = data.numpy() if isinstance(data, OrtValue) else data
        _write(self._content, content, "OrtValue.update_inplace")


class IOBinding:
    """Bound inputs and outputs for runs of a session, as in ONNX Runtime.

    Args:
        session: the session.
    """

    def __init__(self, session: InferenceSession) -> None:
        names = [[each.name for each in some] for some in (session.get_inputs(), session.get_outputs())]
        self._known = {"input": names[0], "output": names[1]}
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(each) or "nothing" for each in (self._inputs, self._outputs))
        return f"<IOBinding: {inputs} -> {outputs}>"

    def bind_cpu_input(self, name: str, arr_on_cpu: Array) -> None:
        """Bind an array as an input."""
        self.bind_ortvalue_input(name, OrtValue(np.asarray(arr_on_cpu)))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Bind a value as an input."""
        self._require("input", name)
        self._inputs[name] = ortvalue

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: Any,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Bind host memory as an input.

        Raises:
            Unsupported: the memory belongs to another device.
        """
        _require_host(name, device_type)
        self.bind_ortvalue_input(name, OrtValue(_memory(buffer_ptr, shape, element_type)))

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Bind an output to host memory or, without an address, to new memory for each run.

        Raises:
            Unsupported: the memory belongs to another device.
        """
        self._require("output", name)
        if buffer_ptr is None:
            require_memory(device_type, f"bind_output: {name!r}")
            self._outputs[name] = None
            return
        _require_host(name, device_type)
        if element_type is None or shape is None:
            raise InvalidArgument(f"bind_output: {name!r}: memory without its element_type and shape")
        self._outputs[name] = OrtValue(_memory(buffer_ptr, shape, element_type))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an output to a value, which each run overwrites."""
        self._require("output", name)
        self._outputs[name] = ortvalue

    def synchronize_inputs(self) -> None:
        """Do nothing: host memory needs no synchronization."""

    def synchronize_outputs(self) -> None:
        """Do nothing: a run returns after it has written its outputs."""

    def get_outputs(self) -> list[OrtValue]:
        """Return the outputs of the last run, in the order of their binding."""
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        """Return the outputs of the last run as a list, which programs index as they do the vector."""
        return self.get_outputs()

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Return copies of the outputs of the last run."""
        return [
            content.copy() if isinstance(content := each.numpy(), np.ndarray) else content
            for each in self._results
        ]

    def clear_binding_inputs(self) -> None:
        """Remove all bound inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Remove all bound outputs."""
        self._outputs.clear()
        self._results.clear()

    def feed(self) -> dict[str, Any]:
        """Return the bound inputs by name, for a run."""
        return {name: value.numpy() for name, value in self._inputs.items()}

    def names(self) -> list[str]:
        """Return the names of the bound outputs."""
        return list(self._outputs)

    def memory(self) -> dict[str, Any]:
        """Return the contents of the outputs that are bound to values, by name."""
        return {name: value.numpy() for name, value in self._outputs.items() if value is not None}

    def take(self, results: Mapping[str, Any]) -> None:
        """Store the results of a run in the bound outputs."""
        self._results = []
        for name, bound in self._outputs.items():
            if bound is None:
                self._results.append(OrtValue(results[name]))
            else:
                _write(bound.numpy(), results[name], f"output {name!r}")
                self._results.append(bound)

    def _require(self, kind: str, name: str) -> None:
        if name not in self._known[kind]:
            names = ", ".join(map(repr, self._known[kind]))
            raise InvalidArgument(f"io_binding: {kind} {name!r} is unknown; the model has {names or 'none'}")


def _no_sparse(name: str) -> Unsupported:
    return Unsupported(f"OrtValue.{name}: models take and return dense tensors")


def _require_host(name: str, device_type: str) -> None:
    if device_type != "cpu":
        raise Unsupported(f"io_binding: {name!r}: memory of {shown(device_type)}; that of 'cpu' can be bound")


def _memory(address: int, shape: Sequence[int], element_type: Any) -> Array:
    """Return an array over the caller's memory."""
    type = element_type_of(element_type)
    sizes = tuple(int(size) for size in shape)
    count = math.prod(sizes) * type.itemsize
    if not address or min(sizes, default=0) < 0:
        raise InvalidArgument(f"io_binding: address {address!r} with sizes {list(sizes)}")
    return np.ndarray(sizes, type, memoryview((ctypes.c_char * count).from_address(address)))


def _write(into: Array, content: Any, name: str) -> None:
    if content is into:
        return
    given = np.asarray(content)
    if (given.dtype, given.shape) != (into.dtype, into.shape):
        raise InvalidArgument(
            f"{name}: {given.dtype.name} of sizes {list(given.shape)} into"
            f" {into.dtype.name} of sizes {list(into.shape)}; both must be the same"
        )
    into[...] = given
