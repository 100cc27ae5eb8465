"""Convert models to one serialized graph, and serialized graphs to models.

Dispatches become nodes, and resources the names between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from opendml.budget import meter
from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends.dxdispatch import files
from opendml.frontends.dxdispatch.foreign import SerializedDispatchable
from opendml.frontends.dxdispatch.model import (
    BindPoint,
    Command,
    Dispatch,
    DispatchModel,
    Folders,
    Initializer,
    NamedDispatchable,
    Print,
    Resource,
    ResourceBinding,
    WriteFile,
)
from opendml.frontends.dxdispatch.resources import ramp, values_of
from opendml.frontends.dxdispatch.values import encode
from opendml.frontends.serialized.graph import SerializedGraph, SerializedNode, read_graph
from opendml.late_dataclass import dataclass
from opendml.spec import descs
from opendml.spec.enums import ExecutionFlags
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc, reach


def graph_of(model: DispatchModel, name: str) -> SerializedGraph:
    """Return the dispatches of a model as a graph.

    Tensors that are bound at initialization become constants. A resource that is read before it is written
    becomes an input with its name. A written resource becomes an output if a command prints it or writes it
    to a file, or if no dispatch reads it afterwards.

    Args:
        model: the model.
        name: what messages call the graph.

    Raises:
        InvalidArgument: a model without dispatches.
        Unsupported: a part of a resource, or a dispatchable that is no operator.
    """
    exporter = _Exporter(name)
    for command in model.commands:
        if isinstance(command, Dispatch):
            exporter.dispatch(command, model.dispatchables[command.dispatchable], model)
        elif isinstance(command, Print | WriteFile):
            exporter.shown.add(command.resource)
    return exporter.graph()


class _Exporter:
    def __init__(self, name: str) -> None:
        self._name = name
        self._inputs: list[str] = []
        self._nodes: list[SerializedNode] = []
        self._written: dict[str, str] = {}
        """The name of the newest value of each resource that was written."""
        self._tensors: dict[str, TensorDesc] = {}
        self._read: set[str] = set()
        self.shown: set[str] = set()

    def dispatch(self, command: Dispatch, dispatchable: NamedDispatchable, model: DispatchModel) -> None:
        """Add a node for a dispatch."""
        desc = dispatchable.desc
        if not isinstance(desc, OperatorDesc):
            raise Unsupported(f"{dispatchable.path}: no operator, but a model in a file of its own")
        inputs: list[str] = []
        outputs: list[tuple[str, str, TensorDesc]] = []
        for point in dispatchable.bind_points:
            if not point.tensors:
                (outputs.append(("", "", _NONE)) if point.is_output else inputs.append(""))
                continue
            for number, tensor in enumerate(point.tensors):
                if (constant := self._constant(dispatchable, point, number, model)) is not None:
                    inputs.append(constant)
                    continue
                binding = command.bindings[point.name][number]
                assert binding is not None
                if binding.offset:
                    problem = (
                        f"byte {binding.offset} of '{binding.resource}'; a graph has whole resources alone"
                    )
                    raise Unsupported(f"{command.path}.bindings.{point.name}: {problem}")
                if point.is_output:
                    outputs.append((binding.resource, f"{binding.resource}.{len(self._nodes)}", tensor))
                else:
                    inputs.append(self._value(binding.resource))
        names = tuple(version for _, version, _ in outputs)
        self._nodes.append(SerializedNode(_unowned(desc), tuple(inputs), names, dispatchable.name))
        for resource, version, tensor in outputs:
            if resource:
                self._written[resource], self._tensors[version] = version, tensor

    def _constant(
        self, dispatchable: NamedDispatchable, point: BindPoint, number: int, model: DispatchModel
    ) -> str | None:
        """Return the name of the constant for a tensor, or None if it is bound at dispatch."""
        bound = dispatchable.initial_bindings.get(point.name)
        binding = bound[number] if bound else None
        if binding is None:
            return None
        resource = model.resources[binding.resource]
        meter().hold(resource.allocated_bytes, resource.path)
        buffer = np.zeros(resource.allocated_bytes, np.uint8)
        resource.initializer.write(buffer[resource.offset :][: resource.initializer.size_in_bytes])
        content = buffer[binding.offset :][: point.tensors[number].size_in_bytes]
        name = f"{dispatchable.name}.{point.name}.{len(self._nodes)}"
        self._nodes.append(SerializedNode(content.copy(), (), (name,), binding.resource))
        return name

    def _value(self, resource: str) -> str:
        """Return the name of the current value of a resource."""
        if resource in self._written:
            self._read.add(self._written[resource])
            return self._written[resource]
        if resource not in self._inputs:
            self._inputs.append(resource)
        return resource

    def graph(self) -> SerializedGraph:
        """Return the graph of the nodes that were added."""
        if not self._nodes:
            raise InvalidArgument(f"{self._name}: no dispatches")
        outputs = list(self._outputs())
        return SerializedGraph(tuple(self._inputs), tuple(outputs), tuple(self._nodes), self._name)

    def _outputs(self) -> Iterator[str]:
        for resource, version in self._written.items():
            if version in self._read and resource not in self.shown:
                continue
            name = f"{resource}.out" if resource in self._inputs else resource
            if version in self._read:
                # What another node reads too is copied: DxDispatch knows one place for a name.
                tensor = self._tensors[version]
                copy = descs.ElementWiseIdentity(tensor, TensorDesc(tensor.data_type, tensor.sizes))
                self._nodes.append(SerializedNode(copy, (version,), (name,), f"{resource}.copy"))
            else:
                self._nodes = [_renamed(node, version, name) for node in self._nodes]
            yield name


_NONE = TensorDesc("FLOAT32", (1,))


def _unowned(desc: OperatorDesc) -> OperatorDesc:
    """Return the desc without OWNED_BY_DML, because its tensors become constants."""
    fields = operator(desc.operator).inputs
    return desc.replace(**{each.python_name: _plain(getattr(desc, each.python_name)) for each in fields})


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if value is None or not value.flags:
        return value
    total = value.total_tensor_size_in_bytes
    return TensorDesc(value.data_type, value.sizes, value.strides, total_tensor_size_in_bytes=total)


def _renamed(node: SerializedNode, old: str, new: str) -> SerializedNode:
    if old not in node.outputs:
        return node
    outputs = tuple(new if each == old else each for each in node.outputs)
    return SerializedNode(node.content, node.inputs, outputs, node.name)


@dataclass(frozen=True)
class ImplicitModel:
    """A model, and for each input the file of its values, or None for zeros."""

    model: DispatchModel
    sources: dict[str, Path | None]
    tensors: dict[str, TensorDesc]


def model_of_graph(path: Path, folders: Folders, *, writes: bool) -> ImplicitModel:
    """Return the model of the graph in a file.

    Each input is read from NAME.npy, or is zeros without such a file. Each output is printed or, if `writes`,
    written to NAME.npy.

    Raises:
        InvalidArgument: no graph, or a file of another type or size than its input.
    """
    content = SerializedDispatchable(read_graph(path))
    resources, sources, tensors = dict[str, Resource](), dict[str, Path | None](), dict[str, TensorDesc]()
    bindings, commands = dict[str, tuple[ResourceBinding | None, ...]](), list[Command]()
    where = str(path)
    for point in content.bind_points():
        for tensor in point.tensors:
            name, file = point.name, _file_name(point.name)
            count = reach(tensor.sizes, tensor.effective_strides)
            initializer = ramp(tensor.data_type, count, 0)
            if point.is_output:
                dimensions = None if tensor.strides else tensor.sizes
                command = (
                    WriteFile(where, name, folders.outputs / file, dimensions, folders.targets)
                    if writes
                    else Print(where, name, False)
                )
                commands.append(command)
            else:
                source = sources[name] = folders.source(file)
                if source is not None:
                    initializer = _read(source, folders.sources, tensor, count)
                tensors[name] = tensor
            resources[name] = Resource(where, name, tensor.data_type, initializer, 0, tensor.size_in_bytes)
            bindings[name] = (ResourceBinding(where, name, 0),)
    dispatchable = NamedDispatchable(
        where, path.name, content, ExecutionFlags.NONE, content.bind_points(), {}
    )
    dispatch = Dispatch(where, path.name, bindings)
    return ImplicitModel(
        DispatchModel(resources, {path.name: dispatchable}, (dispatch, *commands)), sources, tensors
    )


def _file_name(name: str) -> str:
    """Return the name of the file of a tensor."""
    return re.sub(r"[^\w.-]", "_", name) + ".npy"


def _read(path: Path, folder: Path | None, tensor: TensorDesc, count: int) -> Initializer:
    try:
        with files.opened(path, folder) as file:
            elements, data_type = files.read_npy(file)
    except (OSError, ValueError, MemoryError) as error:
        raise InvalidArgument(f"{path}: {error}") from error
    if data_type is not tensor.data_type or elements.size != count:
        given = f"{elements.size} elements of {data_type.name}"
        raise InvalidArgument(f"{path}: {given}; the input has {count} of {tensor.data_type.name}")
    return values_of(encode(elements, data_type), count)
