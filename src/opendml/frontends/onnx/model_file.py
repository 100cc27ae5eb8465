"""ONNX models from files, bytes and messages. Tensors in files of their own are read from the model's folder
alone."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import TypeAlias

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped,unused-ignore]
from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data

from opendml.errors import InvalidArgument
from opendml.frontends.onnx.valid import require_valid, tensors_of
from opendml.spec.wording import shown

ModelLike: TypeAlias = str | PathLike[str] | bytes | onnx.ModelProto


def read_model(given: ModelLike) -> tuple[onnx.ModelProto, str]:
    """A model and what errors call it: its file's name, or "model".

    Raises:
        InvalidArgument: no such file, no ONNX model in it, one that breaks ONNX's rules, or a tensor's file
            outside of the model's folder.
        Unsupported: an operator set that is newer than the `onnx` package, or functions that amount to too
            many nodes.
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
    require_valid(model, name)
    return model, name


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidArgument(f"{path}: {error.strerror or error}") from error
    except ValueError as error:  # a path with a zero byte
        raise InvalidArgument(f"{str(path)!r}: {error}") from error


def _parsed(content: bytes, name: str) -> onnx.ModelProto:
    if not content:
        raise InvalidArgument(f"{name}: no ONNX model: it is empty")
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
    for tensor in tensors_of(model):
        if not uses_external_data(tensor):
            continue
        location = {each.key: each.value for each in tensor.external_data}.get("location", "")
        if not location or "\0" in location or not (folder / location).resolve().is_relative_to(folder):
            raise InvalidArgument(
                f"{path}: tensor {tensor.name!r} lies in {shown(location)}; must be in the model's folder"
            )
        try:
            load_external_data_for_tensor(tensor, str(folder))
        except (OSError, RuntimeError, ValueError, onnx.checker.ValidationError) as error:
            raise InvalidArgument(f"{path}: tensor {tensor.name!r} in {location}: {error}") from error
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]
