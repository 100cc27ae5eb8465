"""ONNX models from files, bytes and messages. External tensors are read only from the model's folder."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TypeAlias

from google.protobuf.message import DecodeError  # type: ignore[import-untyped,unused-ignore]

from opendml.budget import meter
from opendml.errors import Error, InvalidArgument
from opendml.folders import open_within, within
from opendml.frontends.onnx.element_types import dtype_of
from opendml.frontends.onnx.node import messages_in, onnx_errors
from opendml.frontends.onnx.package import onnx
from opendml.frontends.onnx.protobuf import Content, parsed_size
from opendml.frontends.onnx.structure_checks import require_valid
from opendml.frontends.onnx.weights import Weights, without_weights
from opendml.model_files import hold_file, open_file
from opendml.spec.wording import shown

_PACKED_BITS = {
    **dict.fromkeys(("UINT2", "INT2"), 2),
    **dict.fromkeys(("UINT4", "INT4", "FLOAT4E2M1"), 4),
    **dict.fromkeys(("FLOAT6E2M3", "FLOAT6E3M2"), 6),
}
"""Bits of types whose elements share bytes in files."""

_MOST_GROWTH = 80
"""Greatest number of bytes in memory for each byte of a message."""

ModelLike: TypeAlias = str | PathLike[str] | bytes | onnx.ModelProto


def read_model(
    given: ModelLike, folder: Path | None = None, weights: Weights | None = None
) -> tuple[onnx.ModelProto, str, Weights]:
    """Return a model, its name for errors, and the initializers that stay in its file or bytes.

    Args:
        given: the model, or its path.
        folder: the folder that must contain the file; None: any.
        weights: may have the mapped file; None: it is opened.

    Raises:
        InvalidArgument: the file cannot be read, is no ONNX model, breaks ONNX's rules, or names a tensor's
            file outside of its folder.
        Unsupported: the operator set is newer than the `onnx` package.
        LimitExceeded: files or functions are larger than the model may be.
    """
    weights = weights or Weights()
    if isinstance(given, onnx.ModelProto):
        model, name = given, "model"
    elif isinstance(given, bytes | bytearray):
        meter().hold(len(given), "model")
        model, name = _parsed(bytes(given), "model", weights), "model"
    elif isinstance(given, str | PathLike):
        path = Path(fspath(given))
        model, name = _parsed(_content(path, folder, weights), str(path), weights), str(path)
        _load_external(model, path, folder, weights)
    else:
        raise InvalidArgument(f"model: {shown(given)}; a path, bytes or an onnx.ModelProto is needed")
    require_valid(model, name)
    return model, name, weights


def _content(path: Path, folder: Path | None, weights: Weights) -> Content:
    mapped = weights.content_of(path)
    if mapped is not None:
        meter().hold(len(mapped), path)
        return mapped
    with open_file(path, path, folder) as file:
        return weights.mapped(path, file).content if hold_file(file, path) else b""


def _parsed(content: Content, name: str, weights: Weights) -> onnx.ModelProto:
    if not content:
        raise InvalidArgument(f"{name}: no ONNX model: it is empty")
    allowed = meter().limits.memory_bytes - meter().held
    message = without_weights(content, weights)
    if _MOST_GROWTH * len(message) > allowed:
        size = parsed_size(message, onnx.ModelProto.DESCRIPTOR, allowed)
        meter().require_memory(size, f"{name}: what its messages take")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(message)
    except DecodeError as error:
        raise InvalidArgument(f"{name}: no ONNX model ({error})") from error
    if not model.HasField("graph"):
        raise InvalidArgument(f"{name}: no ONNX model: it has no graph")
    return model


def _load_external(model: onnx.ModelProto, path: Path, folder: Path | None, weights: Weights) -> None:
    """Read the external tensors, or map those of large initializers. No `..` or link may leave the folder."""
    own = len(model.graph.initializer)
    for number, tensor in enumerate((*model.graph.initializer, *messages_in(model, onnx.TensorProto))):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        keys = {each.key: each.value for each in tensor.external_data}
        location = keys.get("location", "")
        if not location or "\0" in location or within(path.parent, location) is None:
            raise InvalidArgument(
                f"{path}: tensor {tensor.name!r} lies in {shown(location)}; must be in the model's folder"
            )
        where = f"{path}: tensor {tensor.name!r} in {location}"
        try:
            needed, offset = _bytes_of(tensor, keys, where), _number_of(keys, "offset", where)
            file_path = path.parent.absolute() / location
            with open_within(folder or path.parent, file_path) as file:
                size = os.fstat(file.fileno()).st_size
                if not 0 <= offset <= size - needed:
                    raise ValueError(f"{needed:,} bytes at offset {offset:,}; the file has {size:,}")
                content = weights.mapped(file_path, file).content if needed else b""
                is_initializer = number < own and needed > 0
                if not is_initializer or not weights.add(tensor, content, offset, needed):
                    tensor.raw_data = bytes(memoryview(content)[offset : offset + needed])
        except Error:
            raise
        except onnx_errors(OSError) as error:
            raise InvalidArgument(f"{where}: {getattr(error, 'strerror', None) or error}") from error
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def _number_of(keys: Mapping[str, str], name: str, where: str) -> int:
    """Return a number among the keys of an external tensor, or 0."""
    text = keys.get(name) or "0"
    if not text.removeprefix("-").isdecimal():
        raise InvalidArgument(f"{where}: {name} {shown(text)}; must be a number of bytes")
    return int(text)


def _bytes_of(tensor: onnx.TensorProto, keys: Mapping[str, str], where: str) -> int:
    """Return the bytes that a tensor takes in its file, and count them as held by the model.

    Raises:
        InvalidArgument: the stated length does not fit the sizes.
        LimitExceeded: the tensor is larger than the model may hold.
        LookupError, TypeError: the type is malformed.
    """
    type = dtype_of(tensor.data_type)
    bits = _PACKED_BITS.get(onnx.TensorProto.DataType.Name(tensor.data_type), 8 * type.itemsize)
    if min(tensor.dims, default=0) < 0:
        raise InvalidArgument(f"{where}: sizes {list(tensor.dims)}; must not be negative")
    needed: int = -(-math.prod(tensor.dims) * bits // 8)
    meter().require("tensor_elements", math.prod(tensor.dims), where)
    meter().hold(needed, where)
    length = _number_of(keys, "length", where)
    if keys.get("length") and length != needed:
        raise InvalidArgument(f"{where}: length {length:,}; its sizes need {needed:,} bytes")
    return needed
