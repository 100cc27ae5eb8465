"""Tensors of a model that stay where they are: in a file that is mapped to memory, or in bytes of the caller.

The message of a model would hold a copy of each. So files are parsed without the data of large initializers,
which become arrays over the file: the system reads them when somebody does, and may forget them then.
"""

from __future__ import annotations

import math
import mmap
import os
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np
import onnx

from opendml.errors import InvalidArgument
from opendml.frontends.onnx.values import Array

Content: TypeAlias = bytes | mmap.mmap
"""What a model or some of its tensors are read from."""

_FEWEST_BYTES = 4096
"""Smaller tensors stay in the message: they are sizes and axes, and need no page of their own."""

_PLAIN = {
    onnx.TensorProto.FLOAT: np.float32,
    onnx.TensorProto.FLOAT16: np.float16,
    onnx.TensorProto.DOUBLE: np.float64,
    onnx.TensorProto.INT8: np.int8,
    onnx.TensorProto.INT16: np.int16,
    onnx.TensorProto.INT32: np.int32,
    onnx.TensorProto.INT64: np.int64,
    onnx.TensorProto.UINT8: np.uint8,
    onnx.TensorProto.UINT16: np.uint16,
    onnx.TensorProto.UINT32: np.uint32,
    onnx.TensorProto.UINT64: np.uint64,
}
"""Types whose elements lie in files as in memory (of processors that are little-endian)."""

# Numbers of fields in ONNX's messages, and the wire type of what has a length.
_GRAPH_OF_MODEL, _INITIALIZER_OF_GRAPH = 7, 5
_RAW_DATA_OF_TENSOR = 9
_WITH_LENGTH = 2
_FIXED = {1: 8, 5: 4}
"""The bytes of wire types of a fixed size."""


@dataclass
class Weights:
    """Initializers of a model by name, as arrays that nobody can write to."""

    arrays: dict[str, Array] = field(default_factory=dict)
    _files: dict[Path, MappedFile] = field(default_factory=dict)

    def mapped(self, path: Path, file: BinaryIO) -> MappedFile:
        """Return the content of an open file, which is mapped once.

        Args:
            path: where the file is; the same for the same file.
            file: may be closed afterwards.

        Raises:
            OSError: it cannot be mapped.
            ValueError: it is empty.
        """
        if path not in self._files:
            self._files[path] = MappedFile(path, file)
        return self._files[path]

    def require_unchanged(self) -> None:
        """Check that the files are as they were when they were mapped. Files that another one has replaced
        are.

        Raises:
            InvalidArgument: one has been written to.
        """
        for file in self._files.values():
            file.require_unchanged()

    def require_whole(self) -> None:
        """Check that no file has become shorter: reading what is gone would end the process.

        Raises:
            InvalidArgument: one has.
        """
        for file in self._files.values():
            file.require_whole()

    def add(self, tensor: onnx.TensorProto, content: Content, offset: int, size: int) -> bool:
        """Keep a tensor whose data are so many bytes of some content, if it is large and of a plain type.

        Returns:
            Whether it is.
        """
        array = _array(tensor, content, offset, size)
        if array is not None:
            self.arrays[tensor.name] = array
        return array is not None


class MappedFile:
    """A file as it was when it was opened."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._file)
        self._state = self._stated()
        self.content = mmap.mmap(self._file, 0, access=mmap.ACCESS_READ)

    def require_unchanged(self) -> None:
        """Raise InvalidArgument if somebody has written to the file since."""
        if self._stated() != self._state:
            raise InvalidArgument(
                f"{self._path} has been written to since the model was loaded; load it again (a file that "
                "replaces another one leaves loaded models as they are)"
            )

    def require_whole(self) -> None:
        """Raise InvalidArgument if the file has become shorter."""
        if os.fstat(self._file).st_size < self._state[0]:
            self.require_unchanged()

    def _stated(self) -> tuple[int, int]:
        status = os.fstat(self._file)
        return status.st_size, status.st_mtime_ns


def without_weights(content: Content, weights: Weights) -> bytes:
    """Return a model's message without the data of large initializers, which are added to `weights`. What is
    no message of a model is returned as it is."""
    view = memoryview(content)
    try:
        graphs = list(islice(_numbered(view, 0, len(view), _GRAPH_OF_MODEL), 2))
        if len(graphs) != 1:
            return bytes(view)  # parts of a graph, which a parser joins
        (graph,) = graphs
        # Runs of fields that stay as they are become one part: a file of millions of fields takes no more.
        parts: list[bytes | memoryview] = []
        behind = graph.begin
        for each in _numbered(view, graph.begin, graph.end, _INITIALIZER_OF_GRAPH):
            tensor = _without_data(content, view, each, weights)
            if tensor is not None:
                parts += [view[behind : each.start], each.key, _varint(len(tensor)), tensor]
                behind = each.end
        parts.append(view[behind : graph.end])
        length = _varint(sum(map(len, parts)))
        return b"".join([view[: graph.start], graph.key, length, *parts, view[graph.end :]])
    except (IndexError, ValueError):
        weights.arrays.clear()
        return bytes(view)


def _without_data(content: Content, view: memoryview, field: _Field, weights: Weights) -> bytes | None:
    """Return the message of a tensor without its data, which are added to the weights; None: it stays as it
    is."""
    if field.end - field.begin < _FEWEST_BYTES:
        return None
    data = list(islice(_numbered(view, field.begin, field.end, _RAW_DATA_OF_TENSOR), 2))
    if len(data) != 1 or data[0].wire != _WITH_LENGTH or data[0].end - data[0].begin < _FEWEST_BYTES:
        return None
    (only,) = data
    rest = b"".join([view[field.begin : only.start], view[only.end : field.end]])
    tensor = onnx.TensorProto.FromString(rest)
    return rest if weights.add(tensor, content, only.begin, only.end - only.begin) else None


def _numbered(view: memoryview, first: int, last: int, number: int) -> Iterator[_Field]:
    """Yield the fields of one number of a message between two places of some content."""
    return (each for each in _fields(view, first, last) if each.number == number)


def _array(tensor: onnx.TensorProto, content: Content, offset: int, size: int) -> Array | None:
    """Return a tensor as an array over its data; None: it is small, or its data are not as its type and sizes
    say."""
    type = _PLAIN.get(tensor.data_type)
    sizes = tuple(tensor.dims)
    if type is None or sys.byteorder != "little" or size < _FEWEST_BYTES or min(sizes, default=0) < 1:
        return None
    if math.prod(sizes) * np.dtype(type).itemsize != size or offset + size > memoryview(content).nbytes:
        return None
    array: Array = np.frombuffer(content, np.uint8, size, offset).view(type).reshape(sizes)
    return array


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a message: its number and wire type, where it starts, and where its value begins and ends.
    `key` is what stands before the value, or before its length."""

    number: int
    wire: int
    key: bytes
    start: int
    begin: int
    end: int


def _fields(view: memoryview, first: int = 0, last: int | None = None) -> Iterator[_Field]:
    """Yield the fields of a message between two places of some content.

    Raises:
        ValueError, IndexError: it is no message.
    """
    last = len(view) if last is None else last
    at = first
    while at < last:
        start = at
        key, at = _number(view, at)
        behind_key, wire = at, key & 7
        if wire == _WITH_LENGTH:
            size, at = _number(view, at)
        elif wire == 0:
            _, behind = _number(view, at)
            size = behind - at
        else:
            size = _FIXED.get(wire, len(view))
        end = at + size
        if end > last:
            raise ValueError("a field reaches beyond its message")
        yield _Field(key >> 3, wire, bytes(view[start:behind_key]), start, at, end)
        at = end


def _number(view: memoryview, at: int) -> tuple[int, int]:
    """Return a number of variable length, and the place behind it."""
    result = shift = 0
    while True:
        byte = view[at]
        at += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _varint(number: int) -> bytes:
    result = bytearray()
    while number > 127:
        result.append(number & 127 | 128)
        number >>= 7
    result.append(number)
    return bytes(result)
