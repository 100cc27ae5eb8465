"""ONNX models from files, bytes and messages. Tensors in files of their own are read from the model's folder
alone."""

from __future__ import annotations

import math
from os import PathLike, fspath
from pathlib import Path
from typing import TypeAlias

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped,unused-ignore]
from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data

from opendml.budget import meter
from opendml.errors import InvalidArgument
from opendml.frontends.onnx.message_size import parsed_size
from opendml.frontends.onnx.node import ONNX_ERRORS
from opendml.frontends.onnx.valid import require_valid, tensors_of
from opendml.model_files import read_file
from opendml.spec.wording import shown

_PACKED_BITS = {
    "UINT4": 4,
    "INT4": 4,
    "FLOAT4E2M1": 4,
    "UINT2": 2,
    "INT2": 2,
    "FLOAT6E2M3": 6,
    "FLOAT6E3M2": 6,
}
"""Bits of types whose elements share bytes in files."""

_MOST_GROWTH = 80
"""Bytes in memory for each byte of a message, at most."""

ModelLike: TypeAlias = str | PathLike[str] | bytes | onnx.ModelProto


def read_model(given: ModelLike) -> tuple[onnx.ModelProto, str]:
    """A model and what errors call it: its file's name, or "model".

    Raises:
        InvalidArgument: no such file, no ONNX model in it, one that breaks ONNX's rules, or a tensor's file
            outside of the model's folder.
        Unsupported: an operator set that is older than 7 or newer than the `onnx` package.
        LimitExceeded: files or functions that are larger than the model may be.
    """
    if isinstance(given, onnx.ModelProto):
        model, name = given, "model"
    elif isinstance(given, bytes | bytearray):
        meter().hold(len(given), "model")
        model, name = _parsed(bytes(given), "model"), "model"
    elif isinstance(given, str | PathLike):
        path = Path(fspath(given))
        model, name = _parsed(read_file(path, path), str(path)), str(path)
        _load_external(model, path)
    else:
        raise InvalidArgument(f"model: {shown(given)}; a path, bytes or an onnx.ModelProto is needed")
    require_valid(model, name)
    return model, name


def _parsed(content: bytes, name: str) -> onnx.ModelProto:
    if not content:
        raise InvalidArgument(f"{name}: no ONNX model: it is empty")
    allowed = meter().limits.memory_bytes - meter().held
    if _MOST_GROWTH * len(content) > allowed:
        size = parsed_size(content, onnx.ModelProto.DESCRIPTOR, allowed)
        meter().require_memory(size, f"{name}: what its messages take")
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
            _require_length(tensor, f"{path}: tensor {tensor.name!r} in {location}")
            load_external_data_for_tensor(tensor, str(folder))
        except (*ONNX_ERRORS, OSError) as error:
            raise InvalidArgument(f"{path}: tensor {tensor.name!r} in {location}: {error}") from error
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def _require_length(tensor: onnx.TensorProto, where: str) -> None:
    """Check that a tensor takes as many bytes of its file as it has elements, and may take them. Without a
    length it takes those from its offset on.

    Raises:
        InvalidArgument: a length of other elements.
        LimitExceeded: more than the model may hold.
        LookupError, TypeError, ValueError: elements of an unknown type, or numbers that are none.
    """
    entries = {each.key: each.value for each in tensor.external_data}
    type = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    bits = _PACKED_BITS.get(onnx.TensorProto.DataType.Name(tensor.data_type), 8 * type.itemsize)
    if min(tensor.dims, default=0) < 0:
        raise InvalidArgument(f"{where}: sizes {list(tensor.dims)}; must not be negative")
    needed = -(-math.prod(tensor.dims) * bits // 8)
    meter().require("tensor_elements", math.prod(tensor.dims), where)
    meter().hold(needed, where)
    given = entries.get("length")
    if not given:
        tensor.external_data.add(key="length", value=str(needed))
    elif int(given) != needed:
        raise InvalidArgument(f"{where}: length {int(given):,}; its sizes need {needed:,} bytes")
