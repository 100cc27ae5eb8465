"""The bytes of known ONNX models: digests, and the places of constants in them.

Plans and graphs in the cache hold no large constants. They have the place of each in the bytes of the model.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from weakref import ref

import numpy as np

from opendml.across_forks import cached_property
from opendml.digests import digest_of
from opendml.frontends.onnx.protobuf import GROUP_MARKS, LENGTH_DELIMITED, Content, fields
from opendml.frontends.onnx.tensor_info import type_of, type_text

Array = np.ndarray[Any, Any]

_LARGE_BYTES = 4096
"""Bytes of the smallest data of an initializer that does not count for the digest of a model."""
_MOST_STORED_BYTES = 2**22
"""Bytes of computed constants that a file of a run may hold. Others are folded again in each process."""
_MOST_READ_BYTES = 2**24
"""Bytes of initializers that the trace may read: each process computes their digests."""
_DATA_OF_INITIALIZERS = 7, 5, 9
"""The numbers of ONNX's fields: a model's graph, its initializers, their raw data."""
_DATA_OF_NODES = 7, 1, 5, 5, 9
"""A model's graph, its nodes, their attributes, tensors of these, and their raw data."""


class ModelContent:
    """The bytes of a model, in which its constants lie.

    Args:
        content: the bytes.
    """

    def __init__(self, content: Content) -> None:
        self.bytes = content
        self._base = np.frombuffer(content, np.uint8).ctypes.data
        self._places: dict[int, tuple[ref[Array], list[Any] | None]] = {}
        """Arrays of the trace and their places, by identities."""

    def digest(self) -> str:
        """Return a digest of the bytes, but for the data of large initializers. If these cannot be found, all
        bytes count."""
        view, digest, behind = memoryview(self.bytes), digest_of(), 0
        try:
            for begin, end in _large_data(view, _DATA_OF_INITIALIZERS):
                digest.update(view[behind:begin])
                behind = end
        except (LookupError, ValueError):
            digest, behind = digest_of(), 0
        digest.update(view[behind:])
        return digest.hexdigest()

    def sources(
        self,
        numbers: Iterable[int],
        constant: Callable[[int], tuple[Array, Any]],
        read: Sequence[Array],
    ) -> dict[str, Any] | None:
        """Return as JSON where constants lie or what they are, and the digests of what a trace has read.

        Args:
            numbers: the numbers of the constants.
            constant: returns the constant of a number, and its identity as JSON.
            read: the large initializers whose contents the trace has read.

        Returns:
            None: it is too much, or something that was read lies elsewhere.
        """
        found = {number: constant(number) for number in numbers}
        places = {number: self._known_place(array) for number, (array, _) in found.items()}
        stored = sum(found[number][0].nbytes for number, place in places.items() if place is None)
        if stored > _MOST_STORED_BYTES or sum(each.nbytes for each in read) > _MOST_READ_BYTES:
            return None
        read_places = [self._known_place(each) for each in read]
        if None in read_places:
            return None
        return {
            "constants": [
                [number, places[number] or _array_to_json(array), identity]
                for number, (array, identity) in found.items()
            ],
            "read": [[*(place or ()), _digest(each)] for place, each in zip(read_places, read, strict=True)],
        }

    def constant(self, place: Sequence[Any]) -> Array:
        """Return the constant of a place of `sources`."""
        return self._at(*place) if isinstance(place[0], int) else _array_from_json(place)

    def has_read(self, read: Iterable[Sequence[Any]]) -> bool:
        """Return whether the initializers that a trace has read, as `sources` has them, are the same now."""
        return all(_digest(self._at(*place)) == digest for *place, digest in read)

    def _known_place(self, array: Array) -> list[Any] | None:
        """Return the place of an array of `_place`, which is found once for all plans that read the array."""
        known = self._places.get(id(array))
        if known is None or known[0]() is not array:
            known = self._places[id(array)] = ref(array), self._place(array)
        return known[1]

    def _place(self, array: Array) -> list[Any] | None:
        """Return where an array or its copy lies in the bytes. None: elsewhere."""
        offset = array.ctypes.data - self._base
        if array.nbytes >= _LARGE_BYTES and not 0 <= offset < len(self.bytes):
            offset = self._copied.get(_digest(array), -1)
        inside = 0 <= offset <= len(self.bytes) - array.nbytes
        return [offset, type_text(array.dtype), array.shape] if inside and array.flags.c_contiguous else None

    @cached_property
    def _copied(self) -> Mapping[str, int]:
        """The offsets of tensors of nodes, which a parser copies, by digests."""
        try:
            spans = _large_data(memoryview(self.bytes), _DATA_OF_NODES)
        except (LookupError, ValueError):
            return {}
        return {_digest(self._at(begin, "u1", [end - begin])): begin for begin, end in spans}

    def _at(self, offset: int, dtype: str, sizes: Sequence[int]) -> Array:
        type, count = type_of(dtype), math.prod(sizes)
        return np.frombuffer(self.bytes, np.uint8, count * type.itemsize, offset).view(type).reshape(sizes)


def identity_to_json(identity: Any) -> Any:
    """Return the identity of a constant as JSON. None: other runs cannot know it.

    An identity of the tracer is a name or a digest, the type, and the sizes.
    """
    name, *form = identity if isinstance(identity, tuple) and len(identity) == 3 else (None,)
    if isinstance(name, bytes):
        return [[name.hex()], *form]
    return [name, *form] if isinstance(name, str) else None


def identity_from_json(data: Any) -> Any:
    """Return the identity that `identity_to_json` has made JSON of."""
    if data is None:
        return None
    name, type, sizes = data
    return (name if isinstance(name, str) else bytes.fromhex(name[0])), type, tuple(sizes)


def _array_to_json(array: Array) -> list[Any]:
    return ["array", type_text(array.dtype), array.shape, base64.b64encode(array.tobytes()).decode()]


def _array_from_json(data: Sequence[Any]) -> Array:
    _, type, sizes, content = data
    return np.frombuffer(base64.b64decode(content), np.uint8).view(type_of(type)).reshape(sizes)


def _digest(array: Array) -> str:
    return digest_of(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data).hexdigest()


def _large_data(view: memoryview, path: Sequence[int]) -> list[tuple[int, int]]:
    """Return the begin and end of large fields, by the numbers of the fields around them.

    Raises:
        LookupError, ValueError: the bytes are no message, or have groups.
    """
    found = [(0, len(view))]
    for number in path:
        around, found = found, []
        for begin, end in around:
            for each in fields(view, begin, end):
                if each[1] in GROUP_MARKS:
                    raise ValueError("a group")
                if each[0] == number and each[1] == LENGTH_DELIMITED and each[4] - each[3] >= _LARGE_BYTES:
                    found.append(each[3:])
    return found
