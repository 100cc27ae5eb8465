"""Make a model of a serialized graph: resources for its inputs and outputs, and one dispatch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from opendml.errors import InvalidArgument
from opendml.frontends.dxdispatch import files
from opendml.frontends.dxdispatch.foreign import SerializedDispatchable
from opendml.frontends.dxdispatch.model import (
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
from opendml.frontends.serialized.graph import read_graph
from opendml.spec.enums import ExecutionFlags
from opendml.spec.tensor_desc import TensorDesc, reach


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
