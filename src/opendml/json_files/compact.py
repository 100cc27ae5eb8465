"""JSON without spaces, as caches and compiled files have it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_LEVELS = 3
"""Levels of objects and lists whose parts are encoded one by one."""
_encode = json.JSONEncoder(separators=(",", ":")).encode


def compact_json(data: Any) -> bytes:
    """Return data as JSON.

    Python's encoder holds a piece of text for each token until the end: 60 bytes for each of them. Plans have
    several megabytes of tokens, so their parts are encoded one by one.
    """
    found = bytearray()
    for part in _parts(data, _LEVELS):
        found += part.encode()
    return bytes(found)


def _parts(data: Any, levels: int) -> Iterator[str]:
    if levels == 0 or not data or not isinstance(data, dict | list | tuple):
        yield _encode(data)
    elif isinstance(data, dict):
        before = "{"
        for name, value in data.items():
            yield f"{before}{_encode({name: 0})[1:-2]}"  # As the encoder writes keys that are no text.
            yield from _parts(value, levels - 1)
            before = ","
        yield "}"
    else:
        before = "["
        for each in data:
            yield before
            yield from _parts(each, levels - 1)
            before = ","
        yield "]"
