"""The bytes of a saved model: a head, JSON, and arrays, each at a multiple of 64 bytes."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from opendml.across_forks import importing
from opendml.errors import InvalidArgument, Unsupported
from opendml.json_files import text as json_text
from opendml.json_files.node import JsonNode
from opendml.program.scalar_type import ScalarType

Array = np.ndarray[Any, np.dtype[Any]]

MAGIC = b"\x93OPENDML"
VERSION = 2
_HEAD = struct.Struct("<8sIIQ32s")
"""Magic, version, zero, bytes of JSON, and the SHA-256 of all that follows the head."""
_ALIGNMENT = 64
_MOST_DIMENSIONS = 8


def _sha256(content: bytes | memoryview) -> bytes:
    with importing:
        import hashlib  # Loads OpenSSL, which processes without saved models need not have.

    return hashlib.sha256(content).digest()


class Arrays:
    """Arrays on their way into a file. Each is described by JSON: where it begins in the part of the arrays,
    its type, its sizes, and the order of its dimensions in memory, which is kept."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._size = 0

    def add(self, array: Array, type: ScalarType) -> dict[str, object]:
        """Return the description of an array that is added. One of bytes alone needs no order."""
        order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
        data = array.transpose(order).tobytes()
        start = self._size
        padding = -len(data) % _ALIGNMENT
        self.parts += (data, bytes(padding))
        self._size += len(data) + padding
        return {"start": start, "type": type.name, "sizes": list(array.shape), "order": order}


def packed_file(program: Mapping[str, object], arrays: Arrays) -> bytes:
    """Return a file of a program and its arrays."""
    text = json.dumps(program, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-(_HEAD.size + len(text)) % _ALIGNMENT)
    content = b"".join([text, *arrays.parts])
    return _HEAD.pack(MAGIC, VERSION, 0, len(text), _sha256(content)) + content


def opened_file(data: bytes | memoryview) -> tuple[JsonNode, memoryview]:
    """Return the program of a file, and its arrays' bytes.

    Raises:
        InvalidArgument: it is none, or damaged.
        Unsupported: another version has written it.
    """
    if len(data) < _HEAD.size or bytes(data[: len(MAGIC)]) != MAGIC:
        raise InvalidArgument(
            "no saved model of opendml, as `save` writes them; ONNX models are loaded by "
            "dml.onnx.load, serialized graphs by dml.serialized.load"
        )
    _, version, _, size, digest = _HEAD.unpack_from(data)
    if version != VERSION:
        fix = "save the model again with this version" if version < VERSION else "a newer opendml reads it"
        raise Unsupported(f"a saved model of version {version}; this opendml reads version {VERSION}: {fix}")
    content = memoryview(data)[_HEAD.size :]
    if size > len(content) or _sha256(content) != digest:
        raise InvalidArgument("a damaged saved model: its bytes are not those that were saved")
    try:
        text = bytes(content[:size]).decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"a damaged saved model: {error}") from error
    return JsonNode(json_text.parse(text)), content[size:]


def array_in(node: JsonNode, content: memoryview) -> Array:
    """Return the array that JSON describes, over the bytes of the file.

    Raises:
        InvalidArgument: there is none.
    """
    node.members(("start", "type", "sizes", "order"))
    name = node.member("type").string()
    if name not in ScalarType.__members__ or name == "BOOLEAN":
        node.member("type").fail("a data type")
    type = ScalarType[name]
    sizes = [each.integer(0, 2**32 - 1) for each in node.member("sizes").elements()]
    order = [each.integer(0, _MOST_DIMENSIONS - 1) for each in node.member("order").elements()]
    if len(sizes) > _MOST_DIMENSIONS or sorted(order) != list(range(len(sizes))):
        node.fail(f"up to {_MOST_DIMENSIONS} sizes and an order of as many dimensions")
    stored = [sizes[axis] for axis in order]
    count = math.prod(stored)
    if math.prod(size or 1 for size in stored) * type.bytes >= 2**63:
        node.member("sizes").fail("sizes of fewer than 2^63 bytes, sizes of 0 apart")
    start = node.member("start").integer(0, 2**64 - 1)
    if start % _ALIGNMENT or start + count * type.bytes > len(content):
        node.fail(f"{count * type.bytes} bytes within the file, from a multiple of {_ALIGNMENT} on")
    elements = np.frombuffer(content, type.numpy, count, start)
    return elements.reshape(stored).transpose(sorted(range(len(order)), key=order.__getitem__))
