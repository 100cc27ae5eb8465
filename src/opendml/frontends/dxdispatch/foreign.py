"""Serialized graphs and ONNX models as dispatchables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opendml.errors import Error, Unsupported
from opendml.frontends.dxdispatch.model import BindPoint
from opendml.frontends.dxdispatch.values import Bytes
from opendml.frontends.onnx.sizes import NO_SIZES, Sizes
from opendml.frontends.serialized.graph import SerializedGraph
from opendml.late_dataclass import dataclass
from opendml.runtime.memory.host_array import data_type_of
from opendml.runtime.memory.packing import from_buffer, to_buffer
from opendml.runtime.objects.compiled import CompiledOperator
from opendml.runtime.objects.device import Device, as_device
from opendml.spec.enums import DATA_TYPE_BITS, ExecutionFlags, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc, byte_size

if TYPE_CHECKING:
    from onnx import ModelProto

    from opendml.frontends.onnx.model import OnnxModel
    from opendml.frontends.onnx.tensor_info import TensorInfo
    from opendml.frontends.onnx.weights import Weights


@dataclass(frozen=True)
class SerializedDispatchable:
    """A serialized graph: resources are bound to the names of its inputs and outputs."""

    graph: SerializedGraph

    def bind_points(self) -> tuple[BindPoint, ...]:
        """Return the inputs and outputs, in their order."""
        return (
            *_points(self.graph.inputs, self.graph.tensors("inputs"), is_output=False),
            *_points(self.graph.outputs, self.graph.tensors("outputs"), is_output=True),
        )

    def operators(self) -> list[tuple[str, OperatorDesc]]:
        """Return the descs of its operators by the names of nodes."""
        return list(self.graph.operators())

    def compile(self, device: Any, flags: ExecutionFlags) -> CompiledOperator:
        """Compile the graph."""
        compiled: CompiledOperator = device.compile_graph(self.graph.desc(device), flags)
        return compiled


def _points(names: Sequence[str], tensors: Mapping[str, TensorDesc], *, is_output: bool) -> list[BindPoint]:
    return [BindPoint(name, is_output, (tensors[name],) if name in tensors else ()) for name in names]


@dataclass(frozen=True)
class OnnxDispatchable:
    """An ONNX model.

    Args:
        path: its file.
        read: its content.
        weights: its initializers that are not in the message.
        sized: the content with the sizes that are known before any binding.
        fixed: the tensors whose shapes bindings cannot give.
        inputs: its inputs. Sizes that are still open count as 1, unless a binding gives them.
        outputs: its outputs, with sizes by the same rule.
    """

    path: Path
    read: ModelProto
    weights: Weights
    sized: ModelProto
    fixed: frozenset[str]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]

    def bind_points(self) -> tuple[BindPoint, ...]:
        """Return the inputs and outputs, in the model's order."""
        return (
            *(self._point(info, is_output=False) for info in self.inputs),
            *(self._point(info, is_output=True) for info in self.outputs),
        )

    def operators(self) -> list[tuple[str, OperatorDesc]]:
        """Return no descs: the nodes become operators when the model runs."""
        return []

    def compile(self, device: Any, flags: ExecutionFlags) -> CompiledOnnx:
        """Return the model for a device. Its first dispatch compiles it."""
        return CompiledOnnx(self, self.model(device))

    def model(self, device: Device) -> OnnxModel:
        """Return the model on a device."""
        from opendml.frontends.onnx.model import model_of

        return model_of(self.sized, str(self.path), device, self.weights)

    def _point(self, info: TensorInfo, *, is_output: bool) -> BindPoint:
        where = f"{self.path}: {'output' if is_output else 'input'} {info.name!r}"
        if info.type is None:
            raise Unsupported(f"{where}: no tensor of numbers, which a resource could hold")
        if info.sizes is None:
            raise Unsupported(f"{where}: a tensor of any number of dimensions")
        declared = tuple(size if isinstance(size, int) else None for size in info.sizes)
        tensor = TensorDesc(_type_name(info), info._assumed_sizes or (1,))
        if not isinstance(tensor.data_type, TensorDataType):
            raise Unsupported(f"{where}: of type {info.type.name}, which DirectML has not")
        allowed = None if info.name in self.fixed else declared
        return BindPoint(info.name, is_output, (tensor,), allowed, is_optional=True)


@dataclass
class DeferredOutput:
    """A resource that becomes an output of an ONNX model, with its type and sizes.

    Args:
        array: the output of the last dispatch; None: there was none.
    """

    array: Any = None


@dataclass(frozen=True)
class CompiledOnnx:
    """An ONNX model on a device."""

    dispatchable: OnnxDispatchable
    model: OnnxModel

    def bind(
        self,
        inputs: Sequence[Bytes | None],
        outputs: Sequence[Bytes | DeferredOutput | None],
        shapes: Mapping[str, tuple[int, ...]],
    ) -> _BoundOnnx:
        """Return the model on buffers for its inputs and outputs, whose tensors have these shapes."""
        return _BoundOnnx(self, inputs, outputs, shapes)


@dataclass(frozen=True)
class _BoundOnnx:
    compiled: CompiledOnnx
    inputs: Sequence[Bytes | None]
    outputs: Sequence[Bytes | DeferredOutput | None]
    shapes: Mapping[str, tuple[int, ...]]

    def dispatch(self) -> None:
        """Run the model, and write each output to the start of its buffer. Deferred ones become the outputs.

        Raises:
            Error: an output is larger than its buffer, or has other sizes than its binding says.
        """
        dispatchable, shapes = self.compiled.dispatchable, self.shapes
        results = self.compiled.model.run(
            {
                info.name: _content(buffer, info, shapes.get(info.name, info._assumed_sizes))
                for info, buffer in zip(dispatchable.inputs, self.inputs, strict=True)
            }
        )
        for info, buffer in zip(dispatchable.outputs, self.outputs, strict=True):
            if isinstance(buffer, DeferredOutput):
                buffer.array = results[info.name]
                if (shape := shapes.get(info.name, buffer.array.shape)) != buffer.array.shape:
                    problem = f"sizes {list(buffer.array.shape)}; its binding says {list(shape)}"
                    raise Error(f"{dispatchable.path}: output {info.name!r}: {problem}")
            if buffer is None or isinstance(buffer, DeferredOutput):
                continue
            data = _bytes_of(results[info.name])
            if data.size > buffer.size:
                problem = f"{data.size} bytes; the resource that is bound has {buffer.size}"
                raise Error(f"{dispatchable.path}: output {info.name!r}: {problem}")
            buffer[: data.size] = data


def _bytes_of(array: Any) -> Bytes:
    """Return the bytes of an output."""
    plain = array.view(np.uint8) if array.dtype == np.bool_ else array
    bits = DATA_TYPE_BITS[data_type_of(plain, "output")]
    return to_buffer(plain)[: byte_size(array.size, bits)]


def _content(buffer: Bytes | None, info: TensorInfo, sizes: tuple[int, ...]) -> Any:
    """Return the input that a buffer holds; zeros without a buffer."""
    if buffer is None:
        return np.zeros(sizes, info.type)
    array = from_buffer(buffer, TensorDesc(_type_name(info), sizes or (1,))).reshape(sizes)
    return array if array.dtype == info.type else array.astype(info.type)


ForeignDispatchable = SerializedDispatchable | OnnxDispatchable


def read_onnx(
    path: Path, own: Sizes, given: Sizes = NO_SIZES, folder: Path | None = None
) -> OnnxDispatchable:
    """Read the ONNX model in a file.

    Args:
        path: the file.
        own: sizes for it alone.
        given: sizes that override these, as far as it has them.
        folder: the folder that it must lie in; None: any.

    Raises:
        InvalidArgument: there is none in it, or it does not have its own sizes.
        Unsupported: the package `onnx` is missing.
    """
    try:
        from opendml.frontends.onnx.model import model_of
        from opendml.frontends.onnx.model_file import read_model
    except ModuleNotFoundError as error:
        raise Unsupported("ONNX models need the onnx package: pip install 'opendml[onnx]'") from error
    read, name, weights = read_model(path, folder)
    own.require_used([read], name)
    sized = given.over(own).of(read, name)
    model = model_of(sized, name, as_device(None), weights)
    return OnnxDispatchable(path, read, weights, sized, frozenset(given.tensors), model.inputs, model.outputs)


def _type_name(info: TensorInfo) -> str:
    assert info.type is not None
    return "uint8" if info.type == np.bool_ else info.type.name
