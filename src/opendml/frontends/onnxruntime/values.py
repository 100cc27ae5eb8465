"""OrtValue and IOBinding of ONNX Runtime, over host memory or the memory of a CUDA device."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from opendml.across_forks import importing
from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends.onnx.device_tensor import DeviceTensor, device_tensor, over_memory, uploaded
from opendml.frontends.onnxruntime.devices import OrtMemoryInfo, memory_kind
from opendml.runtime.memory.foreign import as_numpy
from opendml.spec.overlap import overlaps
from opendml.spec.values import as_counts
from opendml.spec.wording import shown
from opendml.targets.memory import Array, Place
from opendml.targets.registry import backend_at, backend_of

if TYPE_CHECKING:
    from opendml.frontends.onnxruntime.session import InferenceSession


def element_type_of(type: Any) -> np.dtype[Any]:
    """Return the NumPy type for a NumPy type or a number of onnx.TensorProto.

    Raises:
        InvalidArgument: it is neither.
    """
    found: np.dtype[Any] | None = None
    try:
        if isinstance(type, int):
            with importing:
                import onnx
            found = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(type))
        elif type is not None:
            found = np.dtype(type)
    except (KeyError, TypeError):
        pass
    if found is None:
        needed = "a NumPy type or a number of onnx.TensorProto is needed"
        raise InvalidArgument(f"element_type: {shown(type)}; {needed}")
    return found


def type_text(type: np.dtype[Any]) -> str:
    """Return an element type as ONNX Runtime writes it: "float" for float32."""
    names = {"float32": "float", "float64": "double", "object": "string", "float8_e4m3fn": "float8e4m3fn"}
    return "string" if type.kind in "US" else names.get(type.name, type.name)


class OrtValue:
    """A tensor or sequence, as in ONNX Runtime. Its class methods make one.

    Args:
        content: a NumPy array or a list; or an array of any library on a CUDA device, which is used in place.
            It may be a view with strides, as the first part of a longer buffer.

    Raises:
        InvalidArgument: another object, or an array on a device that cannot be used in place.
    """

    def __init__(self, content: Any) -> None:
        if isinstance(content, np.generic):
            content = np.asarray(content)
        is_here = content is None or isinstance(content, np.ndarray | list | dict)
        tensor = None if is_here else device_tensor(content, "OrtValue")
        if not is_here and tensor is None:
            raise InvalidArgument(f"OrtValue: {shown(content)}; a NumPy array or a list is needed")
        self._content: Any = content if tensor is None else tensor

    def __repr__(self) -> str:
        if not self.is_tensor():
            return f"<OrtValue {type(self._content).__name__}>"
        return f"<OrtValue {self.data_type()} {self.shape()}>"

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: Array, /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """Return a value that shares an array's memory, whatever its strides are, or a copy on a device.

        Args:
            numpy_obj: the array.
            device_type: "cpu" (the memory is shared), "cuda", or "dml" for the best device here.
            device_id: the number of the device.
            vendor_id: has no effect.

        Raises:
            InvalidArgument: the argument is no NumPy array, or the device is unknown.
            Unsupported: this machine has no such device.
        """
        if not isinstance(numpy_obj, np.ndarray):
            raise InvalidArgument(f"ortvalue_from_numpy: {shown(numpy_obj)}; a NumPy array is needed")
        place = _place("ortvalue_from_numpy", device_type, device_id)
        if place is None:
            return cls(numpy_obj if device_type == "cpu" else numpy_obj.copy())
        return cls(uploaded(numpy_obj, place))

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
        sizes = _sizes("ortvalue_from_shape_and_type", shape)
        zeros = np.zeros(sizes, element_type_of(element_type))
        return cls.ortvalue_from_numpy(zeros, device_type, device_id)

    @property
    def _memory(self) -> Any:
        """The array of the library that has the memory, with the value's sizes."""
        content = self._content
        if not isinstance(content, DeviceTensor):
            return content
        return content.array if content.shape else content.array.reshaped(())

    def _tensor(self, method: str) -> Any:
        """Return the array or tensor.

        Raises:
            InvalidArgument: the value is a sequence.
        """
        if not self.is_tensor():
            raise InvalidArgument(f"OrtValue.{method}: a {type(self._content).__name__}; a tensor is needed")
        return self._content

    @property
    def content(self) -> Any:
        """The value as runs take it: a NumPy array, a list, or a tensor on a device."""
        return self._content

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """Return a value over the memory of an array of another library, on the host or on a CUDA device.

        Raises:
            InvalidArgument: the array cannot be used in place.
        """
        is_on_device = device_tensor(data, "OrtValue.from_dlpack") is not None
        return cls(data if is_on_device else as_numpy(data, "OrtValue.from_dlpack"))

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
        """Return a capsule of DLPack over the memory of the value, ready on a stream of its device."""
        if isinstance(self._content, DeviceTensor):
            return self._memory.__dlpack__(stream=stream)
        return self._tensor("__dlpack__").__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's numbers of the device."""
        self._tensor("__dlpack_device__")
        kind, number = self._memory.__dlpack_device__()
        return int(kind), int(number)

    def numpy(self) -> Any:
        """Return the value as a NumPy array, which is a copy if the value lies on a device."""
        return self._content.numpy() if isinstance(self._content, DeviceTensor) else self._content

    def shape(self) -> list[int]:
        """Return the sizes of the value."""
        return list(self._tensor("shape").shape)

    def data_type(self) -> str:
        """Return the type as text, such as "tensor(float)"."""
        if self.is_tensor_sequence():
            elements = {OrtValue(each).data_type() for each in self._content} or {"tensor(float)"}
            return f"seq({', '.join(sorted(elements))})"
        return f"tensor({type_text(self._tensor('data_type').dtype)})"

    def element_type(self) -> int:
        """Return the number of the element type in onnx.TensorProto."""
        with importing:
            import onnx
        return int(onnx.helper.np_dtype_to_tensor_dtype(self._tensor("element_type").dtype))

    def tensor_size_in_bytes(self) -> int:
        """Return the bytes of the elements."""
        return int(self._tensor("tensor_size_in_bytes").nbytes)

    def device_name(self) -> str:
        """Return the kind of the device of the memory, "cpu" or "cuda"."""
        return self._content.place.kind if isinstance(self._content, DeviceTensor) else "cpu"

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        if isinstance(self._content, DeviceTensor):
            return self._content.memory.address
        return int(self._tensor("data_ptr").ctypes.data)

    def has_value(self) -> bool:
        """Return whether the value has a content."""
        return self._content is not None

    def is_tensor(self) -> bool:
        """Return whether the content is an array."""
        return isinstance(self._content, np.ndarray | DeviceTensor)

    def is_tensor_sequence(self) -> bool:
        """Return whether the content is a list."""
        return isinstance(self._content, list)

    def update_inplace(self, data: Array | OrtValue) -> None:
        """Copy an array or another value into the value.

        Raises:
            InvalidArgument: the types or sizes differ, or the value is a sequence or read-only.
        """
        content = data.numpy() if isinstance(data, OrtValue) else data
        _write(self._tensor("update_inplace"), content, "OrtValue.update_inplace")


class IOBinding:
    """Bound inputs and outputs for runs of a session, as in ONNX Runtime.

    Args:
        session: the session.
    """

    def __init__(self, session: InferenceSession) -> None:
        names = [[each.name for each in some] for some in (session.get_inputs(), session.get_outputs())]
        self._known = {"input": names[0], "output": names[1]}
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | str] = {}
        """The values that outputs are written to, or the kind of device of new ones."""
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
        self._inputs[name] = _ort_value("bind_ortvalue_input", name, ortvalue)

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: Any,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Bind memory as an input: of the host ("cpu"), of a CUDA device, or of the best device here ("dml").

        Work that writes memory of a device must be done when a run begins.

        Raises:
            InvalidArgument: an unknown device, or no memory of these sizes.
            Unsupported: this machine has no such device.
        """
        place = _place("bind_input", device_type, device_id)
        self.bind_ortvalue_input(name, OrtValue(_memory(buffer_ptr, shape, element_type, place)))

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Bind an output to memory or, without an address, to new memory for each run.

        The device is that of `bind_input`. New memory lies on the device of the session, or on the host.

        Raises:
            InvalidArgument: an unknown device, or no memory of these sizes.
            Unsupported: this machine has no such device.
        """
        self._require("output", name)
        if buffer_ptr is None:
            self._outputs[name] = memory_kind(device_type, f"bind_output: {name!r}")
            return
        place = _place("bind_output", device_type, device_id)
        if element_type is None or shape is None:
            raise InvalidArgument(f"bind_output: {name!r}: memory without its element_type and shape")
        self._outputs[name] = OrtValue(_memory(buffer_ptr, shape, element_type, place))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an output to a value, which each run overwrites.

        Raises:
            InvalidArgument: the value is no tensor, is read-only, or overlaps itself.
        """
        self._require("output", name)
        content = _ort_value("bind_ortvalue_output", name, ortvalue)._tensor("bind_ortvalue_output")
        if isinstance(content, np.ndarray):
            _require_writable(f"output {name!r}", content)
            if content.size and overlaps(content.shape, [abs(stride) for stride in content.strides]):
                problem = f"strides {list(content.strides)} bytes; an output must not overlap itself"
                raise InvalidArgument(f"output {name!r}: {problem}")
        self._outputs[name] = ortvalue

    def synchronize_inputs(self) -> None:
        """Wait for all work on the devices of the inputs."""
        for value in self._inputs.values():
            if isinstance(value.content, DeviceTensor):
                backend_at(value.content.place).synchronize()

    def synchronize_outputs(self) -> None:
        """Wait until the outputs on a device are written."""
        for value in self._results:
            if isinstance(value.content, DeviceTensor):
                backend_at(value.content.place).synchronize()

    def get_outputs(self) -> list[OrtValue]:
        """Return the outputs of the last run, in the order of their binding."""
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        """Return the outputs of the last run as a list, which programs index as they do the vector."""
        return self.get_outputs()

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Return copies of the outputs of the last run."""
        return [
            content.copy() if isinstance(content := each.content, np.ndarray) else each.numpy()
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
        return {name: value.content for name, value in self._inputs.items()}

    def names(self) -> list[str]:
        """Return the names of the bound outputs."""
        return list(self._outputs)

    def memory(self) -> dict[str, Any]:
        """Return the contents of the outputs that are bound to values, by name."""
        return {name: value.content for name, value in self._outputs.items() if isinstance(value, OrtValue)}

    def on_device(self) -> set[str]:
        """Return the names of the outputs that are wanted in new memory on a device."""
        return {name for name, value in self._outputs.items() if value == "cuda"}

    def take(self, results: Mapping[str, Any]) -> None:
        """Store the results of a run in the bound outputs."""
        self._results = []
        for name, bound in self._outputs.items():
            if isinstance(bound, OrtValue):
                _write(bound.content, results[name], f"output {name!r}")
                self._results.append(bound)
            else:
                self._results.append(OrtValue(results[name]))

    def _require(self, kind: str, name: str) -> None:
        if name not in self._known[kind]:
            names = ", ".join(map(repr, self._known[kind]))
            raise InvalidArgument(f"io_binding: {kind} {name!r} is unknown; the model has {names or 'none'}")


def _no_sparse(name: str) -> Unsupported:
    return Unsupported(f"OrtValue.{name}: models take and return dense tensors")


def _place(method: str, device_type: Any, device_id: Any) -> Place | None:
    """Return the memory of a device, which is opened; None: host memory."""
    kind = memory_kind(device_type, method)
    if kind == "cpu":
        return None
    if not isinstance(device_id, int) or device_id < 0:
        raise InvalidArgument(f"{method}: device_id {shown(device_id)}; the number of a device is needed")
    backend_of(f"{kind}:{device_id}").open()
    return Place(kind, device_id)


def _memory(
    address: int, shape: Sequence[int], element_type: Any, place: Place | None
) -> Array | DeviceTensor:
    """Return an array over the caller's memory. Without elements it needs no address.

    Raises:
        InvalidArgument: memory of objects, or no address.
    """
    type, sizes = element_type_of(element_type), _sizes("io_binding", shape)
    if type.hasobject or not type.itemsize:
        raise InvalidArgument(f"io_binding: element_type {type}; memory holds numbers")
    count = math.prod(sizes) * type.itemsize
    if not isinstance(address, int) or address < 0 or (count and not address) or count >= 2**63:
        problem = f"address {shown(address)} with sizes {list(sizes)}"
        raise InvalidArgument(f"io_binding: {problem}; the address of {count:,} bytes is needed")
    if place is not None:
        return over_memory(address, sizes, type, place)
    if not count:
        return np.empty(sizes, type)
    return np.ndarray(sizes, type, memoryview((ctypes.c_char * count).from_address(address)))


def _sizes(where: str, shape: Any) -> tuple[int, ...]:
    """Return the sizes of a tensor.

    Raises:
        InvalidArgument: they are no sizes.
    """
    sizes = as_counts(shape)
    if sizes is None:
        raise InvalidArgument(f"{where}: shape {shown(shape)}; a list of sizes is needed")
    return sizes


def _ort_value(method: str, name: str, value: Any) -> OrtValue:
    if not isinstance(value, OrtValue):
        raise InvalidArgument(f"{method}: {name!r}: {shown(value)}; an OrtValue is needed")
    return value


def _require_writable(name: str, array: Array) -> None:
    if not array.flags.writeable:
        raise InvalidArgument(f"{name}: a read-only array; an output must be writable")


def _write(into: Array | DeviceTensor, content: Any, name: str) -> None:
    """Copy a content into a value, unless it is the value's own."""
    if content is into:
        return
    given = content.numpy() if isinstance(content, DeviceTensor) else np.asarray(content)
    if (given.dtype, given.shape) != (into.dtype, into.shape):
        raise InvalidArgument(
            f"{name}: {given.dtype} of sizes {list(given.shape)} into"
            f" {into.dtype} of sizes {list(into.shape)}; both must be the same"
        )
    if isinstance(into, DeviceTensor):
        into.write(given)
    else:
        _require_writable(name, into)
        into[...] = given
