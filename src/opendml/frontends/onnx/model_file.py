"""ONNX models from files, bytes and messages. Tensors in files of their own are read from the model's folder
alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TypeAlias

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped,unused-ignore]
from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data

from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends.onnx.node import graphs_of, opsets_of
from opendml.spec.wording import shown

OLDEST_OPSET = 7
"""Of ONNX's own domain; older models mean their operators differently."""

ModelLike: TypeAlias = str | PathLike[str] | bytes | onnx.ModelProto


def read_model(given: ModelLike) -> tuple[onnx.ModelProto, str]:
    """A model and what errors call it: its file's name, or "model".

    Raises:
        InvalidArgument: no such file, no ONNX model in it, or a tensor's file outside of the model's folder.
        Unsupported: an operator set that is older than 7.
    """
    if isinstance(given, onnx.ModelProto):
        model, name = given, "model"
    elif isinstance(given, bytes | bytearray):
        model, name = _parsed(bytes(given), "model"), "model"
    elif isinstance(given, str | PathLike):
        path = Path(fspath(given))
        model, name = _parsed(_content(path), str(path)), str(path)
        _load_external(model, path)
    else:
        raise InvalidArgument(f"model: {shown(given)}; a path, bytes or an onnx.ModelProto is needed")
    version = opsets_of(model.opset_import).get("")
    if version is not None and version < OLDEST_OPSET:
        raise Unsupported(f"{name}: opset {version}; opset {OLDEST_OPSET} and newer ones are run")
    return model, name


def sized(model: onnx.ModelProto, sizes: Mapping[str, int]) -> onnx.ModelProto:
    """The model with sizes in place of their names in its inputs and outputs."""
    if not sizes:
        return model
    new = onnx.ModelProto()
    new.CopyFrom(model)
    for each in (*new.graph.input, *new.graph.output):
        for dimension in each.type.tensor_type.shape.dim:
            if dimension.dim_param in sizes:
                dimension.dim_value = sizes[dimension.dim_param]
    return new


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidArgument(f"{path}: {error.strerror or error}") from error


def _parsed(content: bytes, name: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError as error:
        raise InvalidArgument(f"{name}: no ONNX model ({error})") from error
    if not model.HasField("graph"):
        raise InvalidArgument(f"{name}: no ONNX model: it has no graph")
    return model


def _load_external(model: onnx.ModelProto, path: Path) -> None:
    """Reads the tensors that lie in files beside the model."""
    folder = path.parent.resolve()
    for tensor in _tensors(model):
        if not uses_external_data(tensor):
            continue
        location = next((each.value for each in tensor.external_data if each.key == "location"), "")
        file = (folder / location).resolve()
        if not location or not file.is_relative_to(folder):
            raise InvalidArgument(
                f"{path}: tensor {tensor.name!r} lies in {shown(location)}; must be in the model's folder"
            )
        try:
            load_external_data_for_tensor(tensor, str(folder))
        except (OSError, ValueError, onnx.checker.ValidationError) as error:
            raise InvalidArgument(f"{path}: tensor {tensor.name!r} in {location}: {error}") from error
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """All tensors that a model stores."""
    yield from _graph_tensors(model.graph)
    for function in model.functions:
        yield from _node_tensors(function.node)


def _graph_tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: Iterator[onnx.NodeProto]) -> Iterator[onnx.TensorProto]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
        for graph in graphs_of(node):
            yield from _graph_tensors(graph)
