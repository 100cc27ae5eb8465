"""What a program of ONNX Runtime hands over and gets back beside arrays: OrtValue and IOBinding.

All memory is the host's. A binding to a device is accepted: results do not depend on where they lie.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends.onnx.values import Array
from opendml.spec.wording import shown


def element_type_of(type: Any) -> np.dtype[Any]:
    """An element type as NumPy has it: NumPy's own, or a number of onnx.TensorProto."""
    found: np.dtype[Any] = np.dtype(
        onnx.helper.tensor_dtype_to_np_dtype(type) if isinstance(type, int) else type
    )
    return found


def type_text(type: np.dtype[Any]) -> str:
    """An element type as ONNX Runtime writes it: "float" for float32."""
    names = {"float32": "float", "float64": "double", "object": "string", "float8_e4m3fn": "float8e4m3fn"}
    return "string" if type.kind in "US" else names.get(type.name, type.name)


class OrtValue:
    """A tensor (ONNX Runtime's class of this name). Made by its class methods."""

    def __init__(self, content: Any) -> None:
        self._content = content

    def __repr__(self) -> str:
        if not self.is_tensor():
            return f"<OrtValue {type(self._content).__name__}>"
        return f"<OrtValue {self.data_type()} {self.shape()}>"

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: Array, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """A value that shares an array's memory.

        Raises:
            InvalidArgument: no array.
        """
        if not isinstance(numpy_obj, np.ndarray):
            raise InvalidArgument(f"ortvalue_from_numpy: {shown(numpy_obj)}; a NumPy array is needed")
        return cls(np.ascontiguousarray(numpy_obj) if numpy_obj.ndim else numpy_obj)

    @classmethod
    def ortvalue_from_shape_and_type(
        cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """A tensor of zeros."""
        return cls(np.zeros(tuple(shape), element_type_of(element_type)))

    def numpy(self) -> Any:
        """The content."""
        return self._content

    def shape(self) -> list[int]:
        """The sizes."""
        return list(self._content.shape)

    def data_type(self) -> str:
        """The type, as in "tensor(float)"."""
        return f"tensor({type_text(self._content.dtype)})"

    def element_type(self) -> int:
        """The element type's number in onnx.TensorProto."""
        return int(onnx.helper.np_dtype_to_tensor_dtype(self._content.dtype))

    def device_name(self) -> str:
        """Where the content lies: always "cpu"."""
        return "cpu"

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self._content.ctypes.data)

    def has_value(self) -> bool:
        """Whether there is a content."""
        return self._content is not None

    def is_tensor(self) -> bool:
        """Whether it is an array; sequences are lists."""
        return isinstance(self._content, np.ndarray)

    def is_tensor_sequence(self) -> bool:
        """Whether it is a sequence."""
        return isinstance(self._content, list)

    def update_inplace(self, np_arr: Array) -> None:
        """Copies an array into the value.

        Raises:
            InvalidArgument: another type or other sizes.
        """
        _write(self._content, np_arr, "OrtValue.update_inplace")


class IOBinding:
    """Inputs and outputs of runs to come: ONNX Runtime's class of this name, from `io_binding`."""

    def __init__(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self._known = {"input": tuple(inputs), "output": tuple(outputs)}
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(each) or "nothing" for each in (self._inputs, self._outputs))
        return f"<IOBinding: {inputs} -> {outputs}>"

    def bind_cpu_input(self, name: str, arr_on_cpu: Array) -> None:
        """An array as an input."""
        self.bind_ortvalue_input(name, OrtValue(np.asarray(arr_on_cpu)))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """A value as an input."""
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
        """Memory of the host as an input.

        Raises:
            Unsupported: memory of a device.
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
        """An output of the runs: into memory of the host, or (without an address) into new memory.

        Raises:
            Unsupported: memory of a device.
        """
        self._require("output", name)
        if buffer_ptr is None:
            self._outputs[name] = None
            return
        _require_host(name, device_type)
        if element_type is None or shape is None:
            raise InvalidArgument(f"bind_output: {name!r}: memory without its element_type and shape")
        self._outputs[name] = OrtValue(_memory(buffer_ptr, shape, element_type))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """A value as where an output is written."""
        self._require("output", name)
        self._outputs[name] = ortvalue

    def synchronize_inputs(self) -> None:
        """Inputs are there already."""

    def synchronize_outputs(self) -> None:
        """A run returns when it has ended."""

    def get_outputs(self) -> list[OrtValue]:
        """The bound outputs of the last run, in the order of their binding."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The same as arrays of their own."""
        return [
            content.copy() if isinstance(content := each.numpy(), np.ndarray) else content
            for each in self._results
        ]

    def clear_binding_inputs(self) -> None:
        """Forgets the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forgets the outputs."""
        self._outputs.clear()
        self._results.clear()

    def feed(self) -> dict[str, Any]:
        """The inputs of a run."""
        return {name: value.numpy() for name, value in self._inputs.items()}

    def names(self) -> list[str]:
        """The outputs of a run."""
        return list(self._outputs)

    def take(self, results: Mapping[str, Any]) -> None:
        """Puts what a run made where it was bound to."""
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


def _require_host(name: str, device_type: str) -> None:
    if device_type != "cpu":
        raise Unsupported(f"io_binding: {name!r}: memory of {shown(device_type)}; that of 'cpu' can be bound")


def _memory(address: int, shape: Sequence[int], element_type: Any) -> Array:
    """Memory of the caller's as an array."""
    type = element_type_of(element_type)
    sizes = tuple(int(size) for size in shape)
    count = math.prod(sizes) * type.itemsize
    if not address or min(sizes, default=0) < 0:
        raise InvalidArgument(f"io_binding: address {address!r} with sizes {list(sizes)}")
    return np.ndarray(sizes, type, memoryview((ctypes.c_char * count).from_address(address)))


def _write(into: Array, content: Any, name: str) -> None:
    given = np.asarray(content)
    if (given.dtype, given.shape) != (into.dtype, into.shape):
        raise InvalidArgument(
            f"{name}: {given.dtype.name} of sizes {list(given.shape)} into"
            f" {into.dtype.name} of sizes {list(into.shape)}; both must be the same"
        )
    into[...] = given
