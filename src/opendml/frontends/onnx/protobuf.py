"""A walk over protobuf messages before they are parsed.

Parsing copies all data, and two bytes of a file may become a hundred in memory. So the walk estimates the
size of a parsed message, and finds large tensors that can stay in the file.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeAlias

Content: TypeAlias = bytes | mmap.mmap | memoryview
"""The bytes of a model file, or of a file with its tensors."""

LENGTH_DELIMITED = 2
GROUP_MARKS = (3, 4)
_VARINT = 0
_SIZES = {1: 8, 3: 0, 4: 0, 5: 4}
"""Bytes of a value by wire type: numbers of 64 and 32 bits, and the marks around a group."""

_MESSAGE_BYTES = 160
"""Bytes of a parsed message beside its content; 84 to 150 were measured for onnx's with protobuf 5 to 7."""
_TEXT_BYTES = 24  # Bytes of a text or of a packed number, beside its content.
_NUMBER_BYTES = 8  # Bytes of a number, which takes at least one in the file.
_MESSAGE_TYPE = 11
_COPIED_TYPES = frozenset({1, 2, 6, 7, 9, 12, 15, 16})
"""Protobuf's types that take as many bytes in the file as in memory: fixed-size numbers, strings and
bytes."""
_DEEPEST = 200  # Levels of nested messages; protobuf parses no more.


WireField: TypeAlias = tuple[int, int, int, int, int]
"""A field of a message: its number and wire type, and the offsets of its key, its value and its end."""


def fields(view: memoryview, begin: int, end: int) -> Iterator[WireField]:
    """Yield the fields of the message between two offsets.

    Raises:
        ValueError, LookupError: the bytes are no message.
    """
    at = begin
    while at < end:
        start, key = at, view[at]
        at += 1
        if key > 127:
            key, at = _read_varint(view, start)
        wire = key & 7
        if wire == LENGTH_DELIMITED:
            size = view[at]
            at += 1
            if size > 127:
                size, at = _read_varint(view, at - 1)
        elif wire == _VARINT:
            size = 1 if view[at] < 128 else _read_varint(view, at)[1] - at
        else:
            size = _SIZES[wire]
        stop = at + size
        if stop > end:
            raise ValueError("a field reaches beyond its message")
        yield key >> 3, wire, start, at, stop
        at = stop


def parsed_size(content: Content, descriptor: Any, most: float) -> int:
    """Estimate the bytes that a message takes after parsing.

    Args:
        content: the message, which may be damaged.
        descriptor: its descriptor.
        most: the count stops beyond this number.
    """
    view, total = memoryview(content), _MESSAGE_BYTES
    outer: list[tuple[Iterator[WireField], dict[int, tuple[int, Any]]]] = []
    walk, types = fields(view, 0, len(view)), _types(descriptor)
    try:
        while total <= most:
            for number, wire, _, begin, end in walk:
                type, inner = types.get(number, (0, None))
                if wire != LENGTH_DELIMITED:
                    total += _NUMBER_BYTES
                elif type != _MESSAGE_TYPE:
                    size = end - begin
                    total += size + _TEXT_BYTES if type in _COPIED_TYPES else size * _NUMBER_BYTES
                else:
                    total += _MESSAGE_BYTES
                    if begin < end and len(outer) < _DEEPEST:
                        outer.append((walk, types))
                        walk, types = fields(view, begin, end), _types(inner)
                        break
                if total > most:
                    break
            else:
                if not outer:
                    break
                walk, types = outer.pop()
    except (ValueError, LookupError):  # The parser says what is wrong.
        pass
    return total


@cache
def _types(descriptor: Any) -> dict[int, tuple[int, Any]]:
    """Return the type of each field by number, and the descriptors of messages."""
    return {each.number: (each.type, each.message_type) for each in descriptor.fields}


def _read_varint(view: memoryview, at: int) -> tuple[int, int]:
    """Return a number of variable length, and the offset behind it."""
    value = shift = 0
    while shift < 64:
        byte = view[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError("a number of more than 64 bits")


def varint(number: int) -> bytes:
    """Encode a number with variable length."""
    result = bytearray()
    while number > 127:
        result.append(number & 127 | 128)
        number >>= 7
    result.append(number)
    return bytes(result)
