"""Read and write flatbuffers.

Files may be hostile: every offset that is read is checked, and depth and work are bounded.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from opendml.errors import InvalidArgument
from opendml.frontends.serialized.schema import NUMBERS, ROOT, STRUCTS, TABLES, UNIONS

_MOST_BYTES = 2**31 - 1
"""The largest flatbuffer, in bytes."""
_DEEPEST = 16
"""Tables within tables; a graph with activations has six."""
_SHARED = 8
"""Reads of each byte of a file, on average at most. Writers share strings, and hardly anything else."""


def read_flatbuffer(data: bytes, name: str) -> dict[str, Any]:
    """Return the root table of a flatbuffer.

    Args:
        data: the file.
        name: what messages call it.

    Raises:
        InvalidArgument: an offset, a size or a number that no flatbuffer of the schema has; too many
            tables within tables, or too many that are shared.
    """
    return _Reader(data, name).root()


class _Reader:
    def __init__(self, data: bytes, name: str) -> None:
        self._data, self._name = data, name
        self._left = _SHARED * len(data)
        self._strings: dict[int, str] = {}

    def root(self) -> dict[str, Any]:
        if len(self._data) > _MOST_BYTES:
            self._fail(0, f"{len(self._data)} bytes; a flatbuffer has less than 2^31")
        return self._table(ROOT, self._target(0), 0)

    def _fail(self, position: int, problem: str) -> NoReturn:
        raise InvalidArgument(
            f"{self._name}: byte {position}: {problem}; this is no serialized DirectML graph"
        )

    def _number(self, format: str, position: int) -> Any:
        size = struct.calcsize(format)
        self._require(position, size)
        values = struct.unpack_from(format, self._data, position)
        return values if len(values) > 1 else values[0]

    def _require(self, position: int, size: int) -> None:
        """Check that bytes exist at a position, and count them as read."""
        if position < 0 or position + size > len(self._data):
            self._fail(position, f"{size} bytes are said to be there; the file has {len(self._data)}")
        self._left -= size
        if self._left < 0:
            self._fail(position, "the same bytes are said to be parts of ever more tables")

    def _target(self, position: int) -> int:
        """Return the position that the offset at a position leads to, always forward."""
        offset: int = self._number("<I", position)
        if offset < 4:
            self._fail(position, f"offset {offset}; it must lead behind itself")
        return position + offset

    def _table(self, kind: str, position: int, depth: int) -> dict[str, Any]:
        if depth > _DEEPEST:
            self._fail(position, f"{depth} tables within tables; at most {_DEEPEST} are allowed")
        slots = self._slots(position)
        fields: dict[str, Any] = {}
        for name, each in TABLES[kind]:
            if each in UNIONS:
                fields[name] = self._union(each, next(slots), next(slots), depth)
            else:
                fields[name] = self._field(each, next(slots), depth)
        return fields

    def _slots(self, position: int) -> Any:
        """Yield for each field its position and the bytes to the end of its table; None for an absent one."""
        table = position - self._number("<i", position)
        size, length = self._number("<HH", table)
        if size < 4 or size % 2 or length < 4:
            self._fail(table, f"a table of {length} bytes whose list of fields has {size}")
        self._require(table, size)
        self._require(position, length)
        offsets = struct.unpack_from(f"<{size // 2 - 2}H", self._data, table + 4)
        for offset in offsets:
            if offset and not 4 <= offset < length:
                self._fail(table, f"a field at byte {offset} of a table of {length}")
            yield (position + offset, length - offset) if offset else None
        while True:
            yield None

    def _inline(self, slot: tuple[int, int], size: int) -> int:
        """Return the position of a field of that size within its table."""
        position, left = slot
        if size > left:
            self._fail(position, f"a field of {size} bytes, {left} before the end of its table")
        return position

    def _field(self, kind: str, slot: tuple[int, int] | None, depth: int) -> Any:
        if kind in NUMBERS:
            size = struct.calcsize(NUMBERS[kind])
            return 0 if slot is None else self._number(NUMBERS[kind], self._inline(slot, size))
        if slot is None:
            return None
        target = self._target(self._inline(slot, 4))
        if kind == "string":
            return self._string(target)
        return self._vector(kind[1:-1], target, depth)

    def _union(
        self, kind: str, type_slot: tuple[int, int] | None, slot: tuple[int, int] | None, depth: int
    ) -> tuple[str, Any] | None:
        """Return the name of a union's member and its value, or None."""
        number = 0 if type_slot is None else self._number("<B", self._inline(type_slot, 1))
        if not number or slot is None:
            return None
        if number > len(UNIONS[kind]):
            assert type_slot is not None
            self._fail(type_slot[0], f"{number} as a member of {kind}, which has {len(UNIONS[kind])}")
        member = UNIONS[kind][number - 1]
        target = self._target(self._inline(slot, 4))
        if member in STRUCTS:
            return member, self._number(STRUCTS[member], target)
        return member, self._table(member, target, depth + 1)

    def _string(self, position: int) -> str:
        if position not in self._strings:
            length = self._number("<I", position)
            self._require(position + 4, length + 1)
            content = self._data[position + 4 : position + 4 + length]
            if self._data[position + 4 + length]:
                self._fail(position, "a string without its end")
            try:
                self._strings[position] = content.decode()
            except UnicodeDecodeError:
                self._fail(position, "a string that is not UTF-8")
        return self._strings[position]

    def _vector(self, kind: str, position: int, depth: int) -> Any:
        count: int = self._number("<I", position)
        start = position + 4
        if kind in NUMBERS:
            dtype = np.dtype(NUMBERS[kind])
            self._require(start, count * dtype.itemsize)
            return np.frombuffer(self._data, dtype, count, start)
        self._require(start, count * 4)
        targets = [self._target(start + 4 * index) for index in range(count)]
        if kind == "string":
            return [self._string(target) for target in targets]
        return [self._table(kind, target, depth + 1) for target in targets]


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
