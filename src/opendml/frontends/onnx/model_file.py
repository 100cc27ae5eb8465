"""ONNX models from files, bytes and messages. Tensors in files of their own are read from the model's folder
alone."""

from __future__ import annotations

import os
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO, TypeAlias

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped,unused-ignore]
from onnx.external_data_helper import uses_external_data

from opendml.errors import InvalidArgument
from opendml.folders import open_within, within
from opendml.frontends.onnx.valid import require_valid, tensors_of
from opendml.spec.wording import shown

ModelLike: TypeAlias = str | PathLike[str] | bytes | onnx.ModelProto


def read_model(given: ModelLike, folder: Path | None = None) -> tuple[onnx.ModelProto, str]:
    """Return a model and what errors call it: its file's name, or "model".

    Args:
        given: the model, or its path.
        folder: the folder that a file must lie in; None: any.

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
        model, name = _parsed(_content(path, folder), str(path)), str(path)
        _load_external(model, path, folder)
    else:
        raise InvalidArgument(f"model: {shown(given)}; a path, bytes or an onnx.ModelProto is needed")
    require_valid(model, name)
    return model, name


def _content(path: Path, folder: Path | None) -> bytes:
    try:
        with path.open("rb") if folder is None else open_within(folder, path.absolute()) as file:
            return file.read()
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


def _load_external(model: onnx.ModelProto, path: Path, folder: Path | None) -> None:
    """Read the tensors that lie in files beside the model: `..` and links may not lead out of its folder."""
    for tensor in tensors_of(model):
        if not uses_external_data(tensor):
            continue
        keys = {each.key: each.value for each in tensor.external_data}
        location = keys.get("location", "")
        if not location or "\0" in location or within(path.parent, location) is None:
            raise InvalidArgument(
                f"{path}: tensor {tensor.name!r} lies in {shown(location)}; must be in the model's folder"
            )
        try:
            with open_within(folder or path.parent, path.parent.absolute() / location) as file:
                tensor.raw_data = _part(file, int(keys.get("offset") or 0), keys.get("length"))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InvalidArgument(f"{path}: tensor {tensor.name!r} in {location}: {reason}") from error
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def _part(file: BinaryIO, offset: int, length: str | None) -> bytes:
    """Return bytes of a file: up to its end, or `length` of them.

    Raises:
        ValueError: it does not have them.
    """
    left = os.fstat(file.fileno()).st_size - offset
    count = left if length is None else int(length)
    if offset < 0 or not 0 <= count <= left:
        raise ValueError(f"offset {offset} and length {count}; the file has {left + offset} bytes")
    file.seek(offset)
    return file.read(count)
