"""Dispatchables that are files of their own: serialized graphs and ONNX models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opendml.errors import Error, InvalidArgument, Unsupported
from opendml.frontends.dxdispatch.model import BindPoint
from opendml.frontends.dxdispatch.values import Bytes
from opendml.frontends.serialized.graph import SerializedGraph, read_graph
from opendml.runtime.memory.packing import from_buffer
from opendml.spec.enums import ExecutionFlags
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc

if TYPE_CHECKING:
    from opendml.frontends.dxdispatch.execution import Compiled
    from opendml.frontends.onnx.model import TensorInfo


@dataclass(frozen=True)
class SerializedDispatchable:
    """A serialized graph: resources are bound to the names of its inputs and outputs."""

    graph: SerializedGraph

    def bind_points(self) -> tuple[BindPoint, ...]:
        """The inputs and outputs, in their order."""
        return (
            *_points(self.graph.inputs, self.graph.tensors("inputs"), is_output=False),
            *_points(self.graph.outputs, self.graph.tensors("outputs"), is_output=True),
        )

    def operators(self) -> list[tuple[str, OperatorDesc]]:
        """The descs of its operators by the names of nodes."""
        return list(self.graph.operators())

    def compile(self, device: Any, flags: ExecutionFlags) -> Compiled:
        """The graph for a device of the runtime."""
        compiled: Compiled = device.compile_graph(self.graph.desc(device), flags)
        return compiled


def _points(names: Sequence[str], tensors: Mapping[str, TensorDesc], *, is_output: bool) -> list[BindPoint]:
    return [BindPoint(name, is_output, (tensors[name],) if name in tensors else ()) for name in names]


@dataclass(frozen=True)
class OnnxDispatchable:
    """An ONNX model whose inputs have fixed sizes."""

    path: Path
    inputs: Mapping[str, TensorDesc]
    outputs: Mapping[str, TensorDesc]

    def bind_points(self) -> tuple[BindPoint, ...]:
        """The inputs and outputs, in the model's order."""
        return (
            *_points(list(self.inputs), self.inputs, is_output=False),
            *_points(list(self.outputs), self.outputs, is_output=True),
        )

    def operators(self) -> list[tuple[str, OperatorDesc]]:
        """None: its nodes become operators when it runs."""
        return []

    def compile(self, device: Any, flags: ExecutionFlags) -> Compiled:
        """The model on a device of the runtime, which is compiled by its first dispatch."""
        from opendml.frontends.onnx.model import load

        return _CompiledOnnx(load(self.path, device), self)


class _CompiledOnnx:
    def __init__(self, model: Any, dispatchable: OnnxDispatchable) -> None:
        self._model, self._dispatchable = model, dispatchable

    def bind(self, inputs: Sequence[Bytes | None], outputs: Sequence[Bytes | None]) -> _BoundOnnx:
        """The model on buffers for its inputs and outputs."""
        return _BoundOnnx(self._model, self._dispatchable, inputs, outputs)


class _BoundOnnx:
    def __init__(
        self,
        model: Any,
        dispatchable: OnnxDispatchable,
        inputs: Sequence[Bytes | None],
        outputs: Sequence[Bytes | None],
    ) -> None:
        self._model, self._dispatchable, self._inputs, self._outputs = model, dispatchable, inputs, outputs

    def dispatch(self) -> None:
        """Runs the model, and writes each output to the begin of its buffer.

        Raises:
            Error: an output is larger than its buffer.
        """
        given = zip(self._dispatchable.inputs.items(), self._inputs, strict=True)
        results = self._model.run(
            {name: from_buffer(buffer, tensor) for (name, tensor), buffer in given if buffer is not None}
        )
        for name, buffer in zip(self._dispatchable.outputs, self._outputs, strict=True):
            data = np.ascontiguousarray(results[name]).reshape(-1).view(np.uint8)
            if buffer is None or data.size > buffer.size:
                given_bytes = 0 if buffer is None else buffer.size
                problem = f"{data.size} bytes; the resource that is bound has {given_bytes}"
                raise Error(f"{self._dispatchable.path}: output {name!r}: {problem}")
            buffer[: data.size] = data


ForeignDispatchable = SerializedDispatchable | OnnxDispatchable


def read_foreign(kind: str, path: Path) -> ForeignDispatchable:
    """The dispatchable in a file.

    Args:
        kind: "dmlserializedgraph" or "onnx".
        path: the file.

    Raises:
        InvalidArgument: there is none in it.
        Unsupported: the package `onnx` is missing, or the model has sizes that are not fixed.
    """
    return SerializedDispatchable(read_graph(path)) if kind == "dmlserializedgraph" else _read_onnx(path)


def _read_onnx(path: Path) -> OnnxDispatchable:
    try:
        from opendml.onnx import load
    except ModuleNotFoundError as error:
        raise Unsupported(str(error)) from error
    model = load(path)
    inputs = {info.name: _tensor(path, info, "input") for info in model.inputs}
    outputs = {info.name: _tensor(path, info, "output") for info in model.outputs}
    return OnnxDispatchable(path, inputs, outputs)


def _tensor(path: Path, info: TensorInfo, kind: str) -> TensorDesc:
    """A tensor of an ONNX model. The sizes of an output that are not fixed count as 1: what it needs is known
    when it is there."""
    where = f"{path}: {kind} {info.name!r}"
    if info.type is None:
        raise Unsupported(f"{where}: no tensor of numbers, which a resource could hold")
    sizes = info.sizes or ()
    if kind == "input" and (info.sizes is None or not all(isinstance(size, int) for size in sizes)):
        fix = "opendml.onnx runs such models on arrays of any sizes"
        raise Unsupported(f"{where}: sizes {list(sizes)}, which are not fixed; {fix}")
    fixed = tuple(size if isinstance(size, int) and size > 0 else 1 for size in sizes) or (1,)
    name = "uint8" if info.type == np.bool_ else info.type.name
    try:
        return TensorDesc(name, fixed)
    except InvalidArgument as error:
        raise Unsupported(f"{where}: {error}") from error
