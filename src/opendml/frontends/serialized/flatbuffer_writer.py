"""Write flatbuffers: tables first, and then what they lead to."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.frontends.serialized.schema import NUMBERS, ROOT, STRUCTS, TABLES, UNIONS

_MOST_BYTES = 2**31 - 1


def write_flatbuffer(root: Mapping[str, Any]) -> bytes:
    """Return the flatbuffer of a root table, as `read_flatbuffer` returns it.

    Missing fields are absent.

    Raises:
        InvalidArgument: it would have 2^31 bytes or more.
    """
    writer = _Writer()
    writer.data += bytes(4)
    writer.point(0, writer.table(ROOT, root))
    return bytes(writer.data)


class _Writer:
    def __init__(self) -> None:
        self.data = bytearray()

    def point(self, position: int, target: int) -> None:
        """Write the offset from one position to a later one."""
        if len(self.data) > _MOST_BYTES:
            raise InvalidArgument("serialized graph: 2^31 bytes or more, which no flatbuffer can have")
        struct.pack_into("<I", self.data, position, target - position)

    def _aligned(self, alignment: int, ahead: int = 0) -> int:
        """Pad the data until `alignment` divides the position `ahead` bytes on, and return its end."""
        self.data += bytes(-(len(self.data) + ahead) % alignment)
        return len(self.data)

    def table(self, kind: str, fields: Mapping[str, Any]) -> int:
        """Write a table and all that it leads to, and return its position."""
        slots = [slot for name, each in TABLES[kind] for slot in _slots(each, fields.get(name))]
        length, offsets = 4, list[int]()
        for format, _, _ in slots:
            size = struct.calcsize(format) if format else 0
            length += -length % max(size, 1)
            offsets.append(length if size else 0)
            length += size
        # 8 bytes is the largest alignment that a field asks for.
        position = self._aligned(8, ahead=4 + 2 * len(slots)) + 4 + 2 * len(slots)
        self.data += struct.pack(f"<HH{len(slots)}H", 4 + 2 * len(slots), length, *offsets)
        self.data += struct.pack("<i", 4 + 2 * len(slots)) + bytes(length - 4)
        for (format, member, value), offset in zip(slots, offsets, strict=True):
            if member:
                self.point(position + offset, self._outside(member, value))
            elif format:
                struct.pack_into(format, self.data, position + offset, value)
        return position

    def _outside(self, kind: str, value: Any) -> int:
        """Write the target of an offset, and return its position."""
        if kind in STRUCTS:
            numbers = value if isinstance(value, tuple) else (value,)
            content = struct.pack(STRUCTS[kind], *numbers)
            start = self._aligned(8)
            self.data += content
            return start
        if kind == "string":
            text = value.encode()
            start = self._aligned(4)
            self.data += struct.pack("<I", len(text)) + text + b"\0"
            return start
        return self._vector(kind[1:-1], value) if kind[0] == "[" else self.table(kind, value)

    def _vector(self, kind: str, values: Any) -> int:
        if kind in NUMBERS:
            content = np.ascontiguousarray(values, NUMBERS[kind])
            start = self._aligned(max(4, content.itemsize), ahead=4)
            self.data += struct.pack("<I", content.size) + content.tobytes()
            return start
        start = self._aligned(4)
        self.data += struct.pack("<I", len(values)) + bytes(4 * len(values))
        for index, value in enumerate(values):
            self.point(start + 4 + 4 * index, self._outside(kind, value))
        return start


def _slots(kind: str, value: Any) -> list[tuple[str, str, Any]]:
    """Return the slots of a field: a format of `struct`, the kind of an offset's target ("" for none), a
    value."""
    if kind in UNIONS:
        if value is None:
            return [("", "", None)] * 2
        member, content = value
        number = UNIONS[kind].index(member) + 1
        return [("<B", "", number), ("", "", None) if content is None else ("<I", member, content)]
    if value is None:
        return [("", "", None)]
    if kind in NUMBERS:
        return [(NUMBERS[kind], "", value)] if value else [("", "", None)]
    return [("<I", kind, value)]
