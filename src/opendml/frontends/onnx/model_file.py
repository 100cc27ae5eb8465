"""ONNX models from files, bytes and messages. Tensors in files of their own are read from the model's folder
alone."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TypeAlias

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped,unused-ignore]
from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data

from opendml.errors import InvalidArgument
from opendml.frontends.onnx.valid import require_valid, tensors_of
from opendml.frontends.onnx.weights import Content, Weights, without_weights
from opendml.spec.wording import shown

ModelLike: TypeAlias = str | PathLike[str] | bytes | onnx.ModelProto


def read_model(given: ModelLike) -> tuple[onnx.ModelProto, str, Weights]:
    """A model, what errors call it (its file's name, or "model"), and those of its initializers that are not
    in the message: large ones stay in the file or in the bytes.

    Raises:
        InvalidArgument: no such file, no ONNX model in it, one that breaks ONNX's rules, or a tensor's file
            outside of the model's folder.
        Unsupported: an operator set that is older than 7 or newer than the `onnx` package, or functions that
            amount to too many nodes.
    """
    weights = Weights()
    if isinstance(given, onnx.ModelProto):
        model, name = given, "model"
    elif isinstance(given, bytes | bytearray):
        model, name = _parsed(bytes(given), "model", weights), "model"
    elif isinstance(given, str | PathLike):
        path = Path(fspath(given))
        model, name = _parsed(_content(path, weights), str(path), weights), str(path)
        _load_external(model, path, weights)
    else:
        raise InvalidArgument(f"model: {shown(given)}; a path, bytes or an onnx.ModelProto is needed")
    require_valid(model, name)
    return model, name, weights


def _content(path: Path, weights: Weights) -> Content:
    try:
        return weights.mapped(path).content if path.stat().st_size else b""
    except OSError as error:
        raise InvalidArgument(f"{path}: {error.strerror or error}") from error
    except ValueError as error:  # a path with a zero byte
        raise InvalidArgument(f"{str(path)!r}: {error}") from error


def _parsed(content: Content, name: str, weights: Weights) -> onnx.ModelProto:
    if not content:
        raise InvalidArgument(f"{name}: no ONNX model: it is empty")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(without_weights(content, weights))
    except DecodeError as error:
        raise InvalidArgument(f"{name}: no ONNX model ({error})") from error
    if not model.HasField("graph"):
        raise InvalidArgument(f"{name}: no ONNX model: it has no graph")
    return model


def _load_external(model: onnx.ModelProto, path: Path, weights: Weights) -> None:
    """Reads the tensors that lie in files beside the model; those of large initializers are mapped."""
    folder = path.parent.resolve()
    own = len(model.graph.initializer)
    for number, tensor in enumerate((*model.graph.initializer, *tensors_of(model))):
        if not uses_external_data(tensor):
            continue
        entries = {each.key: each.value for each in tensor.external_data}
        location = entries.get("location", "")
        if not location or "\0" in location or not (folder / location).resolve().is_relative_to(folder):
            raise InvalidArgument(
                f"{path}: tensor {tensor.name!r} lies in {shown(location)}; must be in the model's folder"
            )
        try:
            if number >= own or not _mapped(tensor, folder / location, entries, weights):
                load_external_data_for_tensor(tensor, str(folder))
        except (OSError, RuntimeError, ValueError, onnx.checker.ValidationError) as error:
            raise InvalidArgument(f"{path}: tensor {tensor.name!r} in {location}: {error}") from error
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def _mapped(tensor: onnx.TensorProto, path: Path, entries: Mapping[str, str], weights: Weights) -> bool:
    """Add an initializer in a file of its own to the weights, if it is large and of a plain type; return
    whether it is."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size == 0:
        return False  # the `onnx` package says what is wrong
    content = weights.mapped(path).content
    offset = int(entries.get("offset", "0"))
    size = int(entries.get("length", len(content) - offset))
    return offset >= 0 and size >= 0 and weights.add(tensor, content, offset, size)
