"""How much memory a protobuf message takes when it is parsed: two bytes of a file may become a hundred."""

from __future__ import annotations

from functools import cache
from typing import Any

from opendml.frontends.onnx.weights import Content

_MESSAGE_BYTES = 160
"""Bytes of a parsed message beside its content, measured for onnx's with protobuf 5 to 7: 84 to 150."""
_TEXT_BYTES = 24
"""Bytes of a text or of a repeated number beside its content."""
_NUMBER_BYTES = 8
"""Bytes of a number that takes at least one in the file."""
_FIXED = frozenset({1, 2, 6, 7, 15, 16})
"""Protobuf's types of numbers that take as many bytes in the file as in memory: double, float, fixed ones."""
_TEXTS = frozenset({9, 12})
"""Its types string and bytes."""
_MESSAGE = 11
_NO_FIELD = (0, None)
_DEEPEST = 200
"""Messages in each other; protobuf parses no deeper ones."""


def parsed_size(content: Content, descriptor: Any, most: float) -> int:
    """Return about how many bytes a message takes when it is parsed.

    Args:
        content: of a file.
        descriptor: of the message.
        most: the count ends when it is more.
    """
    total, place = _MESSAGE_BYTES, 0
    around: list[tuple[int, dict[int, tuple[int, Any]]]] = []
    end, fields = len(content), _fields(descriptor)
    try:
        while total <= most:
            if place >= end:
                if not around:
                    break
                end, fields = around.pop()
                continue
            key, place = _varint(content, place)
            wire = key & 7
            if wire == 2:
                length, place = _varint(content, place)
                type, inner = fields.get(key >> 3, _NO_FIELD)
                if type == _MESSAGE:
                    total += _MESSAGE_BYTES
                    if length and len(around) < _DEEPEST:
                        around.append((end, fields))
                        end, fields = place + length, _fields(inner)
                        continue
                elif type in _TEXTS or type in _FIXED:
                    total += length + _TEXT_BYTES
                else:
                    total += length * _NUMBER_BYTES
                place += length
                continue
            total += _NUMBER_BYTES
            if wire == 0:
                _, place = _varint(content, place)
            elif wire in (1, 5):
                place += 8 if wire == 1 else 4
            elif wire not in (3, 4):  # the marks of a group, which have no content of their own
                break  # no message: parsing says so
    except IndexError:  # a part of a message
        pass
    return total


@cache
def _fields(descriptor: Any) -> dict[int, tuple[int, Any]]:
    """The types of a message's fields by number, and the descriptors of messages."""
    return {each.number: (each.type, each.message_type) for each in descriptor.fields}


def _varint(content: Content, place: int) -> tuple[int, int]:
    """Return a number of variable length, and the place behind it."""
    value = content[place]
    if value < 128:
        return value, place + 1
    value = shift = 0
    while True:
        byte = content[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128 or shift > 63:
            return value, place
        shift += 7
