"""Initializers that stay outside of a model's message: in a mapped file, or in the caller's bytes.

The message of a model would hold a copy of each tensor. So files are parsed without the data of large
initializers and constant nodes. These become arrays over the file, which the system reads on demand and may
drop again.
"""

from __future__ import annotations

import math
import mmap
import os
import sys
import weakref
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from opendml.across_forks import importing
from opendml.errors import InvalidArgument
from opendml.frontends.onnx.protobuf import GROUP_MARKS, LENGTH_DELIMITED, Content, WireField, fields, varint
from opendml.targets.memory import Array

if TYPE_CHECKING:
    import onnx

_FEWEST_BYTES = 4096
"""Bytes of the smallest tensor that leaves the message. Smaller ones, such as sizes, need no page of their
own."""

# Numbers of fields in ONNX's messages.
_GRAPH_OF_MODEL = 7
_NODE_OF_GRAPH, _INITIALIZER_OF_GRAPH, _INPUT_OF_GRAPH = 1, 5, 11
_ATTRIBUTE_OF_NODE, _TENSOR_OF_ATTRIBUTE = 5, 5
_NAME_OF_TENSOR, _RAW_DATA_OF_TENSOR = 8, 9

_FIRST_INITIALIZERS = 4
"""The first version of the format in which an initializer need not be an input."""


@dataclass
class Weights:
    """Initializers of a model by name, as read-only arrays."""

    arrays: dict[str, Array] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    """The names of initializers whose contents a trace has read."""
    _files: dict[Path, MappedFile] = field(default_factory=dict)

    def mapped(self, path: Path, file: BinaryIO) -> MappedFile:
        """Map an open file, or return the mapping of its path.

        Raises:
            OSError: the file cannot be mapped.
            ValueError: the file is empty.
        """
        if path not in self._files:
            self._files[path] = MappedFile(path, file)
        return self._files[path]

    def use(self, path: Path, content: Content) -> None:
        """Use a part of a mapped file as the file."""
        self._files[path].content = content

    def content_of(self, path: Path) -> Content | None:
        """Return the bytes of a file that is mapped already."""
        file = self._files.get(path)
        return None if file is None else file.content

    def are_within(self, content: Content) -> bool:
        """Return whether no initializer lies in another file than the one with these bytes."""
        return all(file.content is content for file in self._files.values())

    def read_arrays(self) -> list[Array]:
        """Return the initializers whose contents a trace has read."""
        return [self.arrays[name] for name in sorted(self.read)]

    @property
    def stamps(self) -> frozenset[tuple[int, ...]]:
        """The mapped files and their states when they were opened. Equal stamps mean equal contents."""
        return frozenset([file.opened_as for file in self._files.values()])

    def require_unchanged(self) -> None:
        """Raise InvalidArgument if somebody has written to a mapped file.

        A replaced file counts as unchanged.
        """
        for file in self._files.values():
            file.require_unchanged()

    def require_whole(self) -> None:
        """Raise InvalidArgument if a mapped file became shorter: a read beyond its end kills the process."""
        for file in self._files.values():
            file.require_whole()

    def add(self, tensor: onnx.TensorProto, content: Content, offset: int, size: int) -> bool:
        """Return whether a tensor is large and of a plain type; if it is, add its data in `content`."""
        sizes = tuple(tensor.dims)
        if size < _FEWEST_BYTES or min(sizes, default=0) < 1 or sys.byteorder != "little":
            return False
        with importing:  # A known model needs no messages.
            from opendml.frontends.onnx.element_types import dtype_of
            from opendml.frontends.onnx.package import onnx
        type = dtype_of(tensor.data_type)
        # Elements of other types, such as int4, lie in files otherwise than in memory.
        is_plain = type.isbuiltin == 1 and type.kind in "fiu"
        if not is_plain and tensor.data_type != onnx.TensorProto.BFLOAT16:
            return False
        if math.prod(sizes) * type.itemsize != size or offset + size > memoryview(content).nbytes:
            return False
        self.arrays[tensor.name] = np.frombuffer(content, np.uint8, size, offset).view(type).reshape(sizes)
        return True


class MappedFile:
    """A mapped file, with its size, its time of change, and its numbers in the system when it was opened."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._file)
        self.opened_as = self._status()
        self.content: Content = mmap.mmap(self._file, 0, access=mmap.ACCESS_READ)

    def require_unchanged(self) -> None:
        """Raise InvalidArgument if somebody has written to the file since."""
        if self._status() != self.opened_as:
            raise InvalidArgument(
                f"{self._path} has been written to since the model was loaded; load it again (a file that "
                "replaces another one leaves loaded models as they are)"
            )

    def require_whole(self) -> None:
        """Raise InvalidArgument if the file has become shorter."""
        if os.fstat(self._file).st_size < self.opened_as[0]:
            self.require_unchanged()

    def _status(self) -> tuple[int, ...]:
        status = os.fstat(self._file)
        return status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino


def without_weights(content: Content, weights: Weights) -> bytes:
    """Return a model's message without the data of large initializers, which are added to `weights`.

    Nodes that are large constants become initializers. Bytes that are no message of a model are returned
    unchanged.
    """
    view = memoryview(content)
    with importing:
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped,unused-ignore]
    try:
        graphs = list(islice(_numbered(view, 0, len(view), (_GRAPH_OF_MODEL,)), 2))
        if len(graphs) != 1:
            return bytes(view)  # A parser joins several parts of a graph.
        ((_, _, start, begin, end),) = graphs
        # Runs of unchanged fields are one part, so a file of millions of fields takes no more memory.
        parts: list[bytes | memoryview] = []
        behind = begin
        inputs = _inputs(view, begin, end) if _has_plain_initializers(view, start, end) else None
        for each in _numbered(view, begin, end, (_NODE_OF_GRAPH, _INITIALIZER_OF_GRAPH)):
            if each[4] - each[3] < _FEWEST_BYTES:
                continue
            if each[0] == _INITIALIZER_OF_GRAPH:
                tensor = _without_data(content, view, each, weights)
            else:
                tensor = None if inputs is None else _of_constant(content, view, each, weights, inputs)
            if tensor is not None:
                parts += [view[behind : each[2]], _header(_INITIALIZER_OF_GRAPH, len(tensor)), tensor]
                behind = each[4]
        parts.append(view[behind:end])
        header = _header(_GRAPH_OF_MODEL, sum(map(len, parts)))
        return b"".join([view[:start], header, *parts, view[end:]])
    except (DecodeError, LookupError, ValueError):
        weights.arrays.clear()
        return bytes(view)


def _without_data(
    content: Content, view: memoryview, field: WireField, weights: Weights, name: bytes = b""
) -> bytes | None:
    """Return the message of a tensor without its data, which are added to the weights; None: it stays.

    Args:
        content, view: the bytes.
        field: the tensor.
        weights: gets its data.
        name: a field with another name for it, which replaces its own.
    """
    _, _, _, begin, end = field
    data = list(islice(_numbered(view, begin, end, (_RAW_DATA_OF_TENSOR,)), 2))
    if len(data) != 1:
        return None
    ((_, wire, data_start, data_begin, data_end),) = data
    if wire != LENGTH_DELIMITED or data_end - data_begin < _FEWEST_BYTES:
        return None
    rest = b"".join([view[begin:data_start], view[data_end:end], name])
    with importing:
        from opendml.frontends.onnx.package import onnx
    tensor = onnx.TensorProto.FromString(rest)
    if tensor.HasField("segment"):
        return None  # The parser refuses it.
    return rest if weights.add(tensor, content, data_begin, data_end - data_begin) else None


def _of_constant(
    content: Content, view: memoryview, field: WireField, weights: Weights, inputs: Container[str]
) -> bytes | None:
    """Return the message of a large constant node as an initializer, as `_without_data` does; None: the node
    stays."""
    _, _, _, begin, end = field
    attributes = list(islice(_numbered(view, begin, end, (_ATTRIBUTE_OF_NODE,)), 2))
    if len(attributes) != 1:
        return None
    ((_, _, start, first, last),) = attributes
    tensors = list(islice(_numbered(view, first, last, (_TENSOR_OF_ATTRIBUTE,)), 2))
    if len(tensors) != 1:
        return None
    with importing:
        from opendml.frontends.onnx.package import onnx
    (tensor,) = tensors
    node = onnx.NodeProto.FromString(b"".join([view[begin:start], view[last:end]]))
    attribute = onnx.AttributeProto.FromString(b"".join([view[first : tensor[2]], view[tensor[4] : last]]))
    is_constant = (node.op_type, node.domain, len(node.input), len(node.output)) == ("Constant", "", 0, 1)
    is_value = attribute.name == "value" and attribute.type == onnx.AttributeProto.TENSOR
    if not (is_constant and is_value) or attribute.ref_attr_name:
        return None
    (output,) = node.output
    if not isinstance(output, str) or not output or output in inputs:
        return None  # A name that is not UTF-8 is bytes.
    name = output.encode()
    return _without_data(content, view, tensor, weights, _header(_NAME_OF_TENSOR, len(name)) + name)


def _has_plain_initializers(view: memoryview, start: int, end: int) -> bool:
    """Return whether initializers of a model need not be inputs.

    Args:
        view: the model.
        start, end: the place of its graph.
    """
    with importing:
        from opendml.frontends.onnx.package import onnx
    model = onnx.ModelProto.FromString(b"".join([view[:start], view[end:]]))
    return int(model.ir_version) >= _FIRST_INITIALIZERS


def _inputs(view: memoryview, begin: int, end: int) -> set[str]:
    """Return the names of the inputs of the graph between two offsets."""
    with importing:
        from opendml.frontends.onnx.package import onnx
    inputs = _numbered(view, begin, end, (_INPUT_OF_GRAPH,))
    return {onnx.ValueInfoProto.FromString(view[each[3] : each[4]].tobytes()).name for each in inputs}


def _numbered(view: memoryview, begin: int, end: int, numbers: Container[int]) -> Iterator[WireField]:
    """Yield the fields of some numbers in the message between two offsets.

    Raises:
        ValueError, LookupError: the bytes are no message, or have groups, whose fields are not the message's.
    """
    for each in fields(view, begin, end):
        if each[1] in GROUP_MARKS:
            raise ValueError("a group")
        if each[0] in numbers:
            yield each


def _header(number: int, length: int) -> bytes:
    return varint(number << 3 | LENGTH_DELIMITED) + varint(length)
