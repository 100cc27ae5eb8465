"""Compiled files: a model with its plans, machine code and packed constants, which is mapped into memory.

The code and the plans in a file are used only if the cache folder records their digest, or if the caller
trusts the file. Nobody else can write to that folder. Otherwise, and on another machine, the model in the
file is compiled like any other. The digest covers computed constants too, because kernels trust the indices
in them. It does not cover the model and packed weights, because they are data. Each packed weight has a
checksum, which is compared when a model first needs it.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from opendml.context import variable_set
from opendml.digests import digest_of
from opendml.errors import InvalidArgument, located
from opendml.json_files import text as json_text
from opendml.json_files.compact import compact_json
from opendml.targets.memory import aligned_bytes
from opendml.targets.shared_work import share_work

MAGIC = b"\x93OPENDMLC"
_VERSION = 3
_HEAD = struct.Struct("<9s7xQQ32s")
"""Magic, the version, the bytes of the index, and the digest of the index, the objects and the checked
constants."""
_PAGE = 4096
"""The model and each constant begin at a multiple of this, so that reading one maps no other."""


Content = bytes | mmap.mmap | memoryview


@dataclass
class Recorder:
    """A record of what is read from the cache, written there and packed while a model is compiled for a file.

    Args:
        objects: machine code and plans by the names of their files.
        constants: packed constants by their keys: the bytes, and the object that keeps them alive.
        checked: the keys of those for which the digest of the file counts.
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    constants: dict[str, tuple[int, int, object]] = field(default_factory=dict)
    checked: set[str] = field(default_factory=set)

    @property
    def has_plans(self) -> bool:
        """True if plans were read or written."""
        return any(name.endswith(".plan") for name in self.objects)


_recorder: ContextVar[Recorder | None] = ContextVar("opendml_recorder", default=None)
_reading: ContextVar[CompiledFile | None] = ContextVar("opendml_compiled_file", default=None)


def recorder() -> Recorder | None:
    """Return the recorder of this context."""
    return _recorder.get()


def current_file() -> CompiledFile | None:
    """Return the compiled file that the model of this context was loaded from, if it is trusted."""
    return _reading.get()


@contextmanager
def recorded() -> Iterator[Recorder]:
    """Record what the block reads, writes and packs."""
    found = Recorder()
    token = _recorder.set(found)
    try:
        yield found
    finally:
        _recorder.reset(token)


def reading(file: CompiledFile | None) -> variable_set[CompiledFile | None]:
    """Use the objects and constants of a trusted compiled file in the block."""
    return variable_set(_reading, file)


class MappedConstant:
    """Bytes of a packed constant in a mapped file."""

    def __init__(self, bytes: np.ndarray[Any, Any]) -> None:
        self.bytes, self.address = bytes, int(bytes.ctypes.data)

    def write(self, source: int, size: int) -> None:
        """Raise TypeError: the file is not written to."""
        raise TypeError("a constant of a compiled file")

    def read(self, target: int, size: int) -> None:
        """Raise TypeError: nothing reads it but kernels."""
        raise TypeError("a constant of a compiled file")


class CompiledFile:
    """A compiled file in memory.

    Args:
        content: the mapped file.
        where: the beginning of error messages.

    Raises:
        InvalidArgument: it is damaged, or of another version.
    """

    def __init__(self, content: Content, where: str) -> None:
        self._view = view = memoryview(content)
        try:
            _, version, size, digest = _HEAD.unpack_from(view)
            if version != _VERSION:
                problem = f"a compiled file of version {version}; this opendml reads {_VERSION}"
                raise InvalidArgument(f"{where}: {problem}")
            # What the digest counts is copied, so that nobody changes it in the file afterwards.
            text = bytes(view[_HEAD.size : _HEAD.size + size])
            with located(f"{where}: a damaged compiled file"):
                index: Any = json_text.parse(text.decode())
            self.kind: str = index["kind"]
            self.model = self._part(index["model"])
            parts = (*index["objects"].values(), *index["constants"].values())
            if sum(part[1] for part in parts) > len(view):
                raise ValueError("parts overlap")
            self._objects = {name: bytes(self._part(place)) for name, place in index["objects"].items()}
            self._constants = {
                key: (self._part(place), checksum) for key, (*place, checksum) in index["constants"].items()
            }
            checked = {key: _copied(self._constants[key][0]) for key in index["checked"]}
            self._constants |= {key: (part, None) for key, part in checked.items()}
            found = _digest(text, {**self._objects, **checked})
        except (struct.error, AttributeError, LookupError, TypeError, ValueError) as error:
            raise InvalidArgument(f"{where}: a damaged compiled file ({error})") from error
        if found != digest:
            raise InvalidArgument(f"{where}: a damaged compiled file: its code is not what was written")
        self.digest: str = digest.hex()

    def _part(self, place: Any) -> memoryview:
        begin, size = place
        if not (type(begin) is type(size) is int and 0 <= begin <= begin + size <= len(self._view)):
            raise ValueError(f"{place} lies outside of the file")
        return self._view[begin : begin + size]

    def object(self, name: str) -> bytes | None:
        """Return machine code or a plan by the name of its file in the cache."""
        return self._objects.get(name)

    def constants(self, sizes: Mapping[str, int]) -> dict[str, MappedConstant]:
        """Return packed constants by their keys: those of the given sizes that the file has.

        Raises:
            InvalidArgument: their bytes are not what was written.
        """
        known = {key: self._constants[key] for key in sizes if key in self._constants}
        found = {key: each for key, each in known.items() if len(each[0]) == sizes[key]}

        def check(key: str) -> None:
            part, checksum = found[key]
            if checksum is not None and checksum != _checksum(part):
                raise InvalidArgument("a damaged compiled file: its packed weights are not what was written")

        share_work(check, {key: sizes[key] for key in found})
        return {key: MappedConstant(np.frombuffer(part, np.uint8)) for key, (part, _) in found.items()}


def is_compiled_file(content: Content) -> bool:
    """Return whether bytes are those of a compiled file."""
    return bytes(content[: len(MAGIC)]) == MAGIC


def write_compiled_file(file: BinaryIO, kind: str, model: bytes | memoryview, found: Recorder) -> str:
    """Write a compiled file, and return the digest of its code and plans.

    Args:
        file: an empty file.
        kind: "onnx", or "saved" (of `Model.save`).
        model: the bytes of the model.
        found: what compiling it has read, written and packed.
    """
    objects = {name: memoryview(content) for name, content in sorted(found.objects.items())}
    checked = {key: _memory(*found.constants[key][:2]) for key in sorted(found.checked)}
    sizes = [*map(len, objects.values()), len(model), *(size for _, size, _ in found.constants.values())]

    checksums = {key: _checksum(_memory(*each[:2])) for key, each in found.constants.items()}

    def index(places: Callable[[], Iterator[int]]) -> bytes:
        begin = places()
        each = iter(sizes)
        data = {
            "kind": kind,
            "objects": {name: [next(begin), next(each)] for name in objects},
            "model": [next(begin), next(each)],
            "constants": {key: [next(begin), next(each), sum] for key, sum in checksums.items()},
            "checked": [*checked],
        }
        return compact_json(data)

    # Room for the widest offsets, so that the index has a size before the offsets are known.
    room = len(index(lambda: iter([2**62] * len(sizes))))
    begins, at = [], _HEAD.size + room
    for number, size in enumerate(sizes):
        at += -at % (_PAGE if number >= len(objects) else 8)
        begins.append(at)
        at += size
    text = index(lambda: iter(begins)).ljust(room)
    digest = _digest(text, {**objects, **checked})
    file.write(_HEAD.pack(MAGIC, _VERSION, len(text), digest) + text)
    contents = [*objects.values(), memoryview(model)]
    for begin, content in zip(begins, contents, strict=False):
        file.write(bytes(begin - file.tell()))
        file.write(content)
    for begin, (address, size, _) in zip(begins[len(contents) :], found.constants.values(), strict=True):
        file.write(bytes(begin - file.tell()))
        file.write(_memory(address, size))
    return digest.hex()


def _digest(index: bytes, parts: Mapping[str, bytes | memoryview]) -> bytes:
    content = digest_of(index)
    for name in sorted(parts):
        content.update(digest_of(parts[name]).digest())
    return content.digest()


def _checksum(content: bytes | memoryview) -> int:
    """Return a checksum of the bytes of a constant: the CRC-32 of the sums of words in each page, each word
    times an odd number of its own.

    It takes 0.1 s for each GB, and 0.13 s for the first touch of its pages, which the first run then saves.
    It shows any change of one word, and words that change places unless they differ in their first ten bits
    alone. The CRC-32 of all bytes would take four times as long, as much as a model needs until its first
    result.
    """
    array = np.frombuffer(content, np.uint8)
    whole = len(array) // _PAGE * _PAGE
    words = array[:whole].view(np.uint64).reshape(-1, _PAGE // 8)
    sums = np.einsum("ij,j->i", words, np.arange(1, _PAGE // 4, 2, dtype=np.uint64))
    return zlib.crc32(content[whole:], zlib.crc32(sums))


def _memory(address: int, size: int) -> memoryview:
    return memoryview((ctypes.c_uint8 * size).from_address(address))


def _copied(part: memoryview) -> memoryview:
    copy = aligned_bytes(np.empty, len(part))
    copy[:] = np.frombuffer(part, np.uint8)
    return copy.data


def constant_key(text: str, identities: tuple[Any, ...]) -> str:
    """Return the key of a packed constant: a digest of how it is made, and of which constants."""
    return digest_of(json.dumps([text, _plain(identities)]).encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value
