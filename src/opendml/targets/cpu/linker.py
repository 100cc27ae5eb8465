"""Link object files into this process without LLVM, whose library takes 60 ms to load.

Kernels are compiled as ELF files for x86-64. They read their own constants, and call functions of their
bundle (`bundles.py`) and of the C library. So two kinds of relocations are enough. LLVM links all others
(`object_code.linked_by_llvm`).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from struct import Struct, error
from typing import Any, NamedTuple

from opendml.errors import Unsupported
from opendml.targets.cpu.bundles import objects_of

_MAGIC = b"\x7fELF\x02\x01\x01"
"""ELF with 64 bits, the least significant byte first, version 1."""
_RELOCATABLE, _X86_64 = 1, 62
_HEADER = Struct("<16sHHIQQQIHHHHHH")
_SECTION = Struct("<IIQQQQIIQQ")
_SYMBOL = Struct("<IBBHQQ")
_RELOCATION = Struct("<QQq")
_SYMBOLS, _ADDENDS, _NO_BITS, _RELATIONS = 2, 4, 8, 9
"""Types of sections: symbols, relocations with addends, zeros that are not in the file, relocations that have
their addends in place."""
_WRITTEN, _LOADED, _THREADS = 1, 2, 0x400
"""Flags of sections: written by the code, in memory, a copy for each thread."""
_RELATIVE, _CALL = 2, 4
"""Relocations: R_X86_64_PC32 and R_X86_64_PLT32, the distance to a symbol in 32 bits."""
_LOCAL = 0
"""The binding of a symbol that other objects do not see."""
_UNDEFINED = 0
"""The section of a symbol that is not in the file."""
_ELSEWHERE = -1
"""The place of a symbol that is in the file and not in memory, such as the name of the source."""
_JUMP = Struct("<6sQ")
_JUMP_TO = b"\xff\x25\x00\x00\x00\x00"
"""A jump to the address behind the instruction: functions lie more than 2 GiB away."""
_DISTANCE = Struct("<i")
_PAGE = mmap.PAGESIZE

_kept: list[mmap.mmap] = []
"""The memory of linked code, which is kept until the process ends."""


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _Placed(NamedTuple):
    """An object whose sections lie in memory.

    Args:
        code: the object.
        sections: its sections.
        begins: where sections begin that are in memory.
        symbols: the names and places of its symbols; None: another object has the symbol.
        exported: the places of the symbols that other objects may use.
    """

    code: bytes
    sections: Sequence[_Section]
    begins: Mapping[int, int]
    symbols: Sequence[tuple[str, int | None]]
    exported: Mapping[str, int]


def linked(code: bytes, symbols: Sequence[str]) -> dict[str, int] | None:
    """Link an object file or a bundle, and return the addresses of its `symbols`. None: LLVM has to link it.

    Raises:
        Unsupported: it is damaged, lacks a symbol, or the system gives no memory for code.
    """
    image = image_of(code) if is_possible() else None
    if image is None:
        return None
    content, places = image
    missing = [symbol for symbol in symbols if symbol not in places]
    if missing:
        raise Unsupported(f"cpu: the machine code of a kernel cannot be linked: it has no {missing[0]}")
    try:
        address = _executable(content)
    except OSError as problem:
        raise Unsupported(f"cpu: the system gives no memory for machine code ({problem})") from problem
    return {symbol: address + places[symbol] for symbol in symbols}


@cache
def is_possible() -> bool:
    """Return whether this process can link without LLVM: on Linux, for x86-64."""
    is_x86_64 = hasattr(os, "uname") and os.uname().machine == "x86_64"
    return sys.platform == "linux" and is_x86_64 and sys.maxsize > 2**32


def image_of(code: bytes) -> tuple[bytearray, dict[str, int]] | None:
    """Return an object or a bundle as it lies in memory, and the places of its symbols. None: LLVM has to
    link it.

    Raises:
        Unsupported: it is damaged, or calls a function that this process does not have.
    """
    try:
        objects = objects_of(code)
        return _image(objects) if all(each.startswith(_MAGIC) for each in objects) else None
    except (error, ArithmeticError, IndexError, ValueError) as problem:
        raise Unsupported(f"cpu: the machine code of a kernel cannot be linked: {problem}") from problem


def _image(objects: Sequence[bytes]) -> tuple[bytearray, dict[str, int]] | None:
    content, exported, placed = bytearray(), dict[str, int](), list[_Placed]()
    for code in objects:
        each = _placed(content, code)
        if each is None:
            return None
        placed.append(each)
        exported |= each.exported
    are_known = all(_relocate(content, each, exported) for each in placed)
    return (content, exported) if are_known else None


def _placed(content: bytearray, code: bytes) -> _Placed | None:
    """Add the sections of an object to the content. None: LLVM has to link it."""
    _, kind, processor, _, _, _, at, _, _, _, _, size, count, _ = _HEADER.unpack_from(code)
    if kind != _RELOCATABLE or processor != _X86_64 or size != _SECTION.size:
        return None
    sections = [_Section._make(_SECTION.unpack_from(code, at + size * each)) for each in range(count)]
    begins = dict[int, int]()
    for number, each in enumerate(sections):
        if not each.flags & _LOADED or not each.size:
            continue
        if each.flags & (_WRITTEN | _THREADS) or each.type == _NO_BITS:
            return None
        part = code[each.offset : each.offset + each.size]
        if len(part) != each.size or each.alignment > _PAGE:
            raise ValueError("a section that is cut off")
        content += bytes(-len(content) % max(each.alignment, 1))
        begins[number] = len(content)
        content += part
    symbols, exported = list[tuple[str, int | None]](), dict[str, int]()
    for each in sections:
        if each.type == _SYMBOLS:
            names = sections[each.link].offset
            for place in range(each.offset, each.offset + each.size, _SYMBOL.size):
                name, binding, _, section, value, _ = _SYMBOL.unpack_from(code, place)
                text = code[names + name : code.index(0, names + name)].decode()
                found = None if section == _UNDEFINED else _ELSEWHERE
                if section in begins:
                    found = begins[section] + value
                    if binding >> 4 != _LOCAL:
                        exported[text] = found
                symbols.append((text, found))
    return _Placed(code, sections, begins, symbols, exported)


def _relocate(content: bytearray, placed: _Placed, exported: Mapping[str, int]) -> bool:
    """Write the distances to symbols, and behind the content jumps to functions of the C library.

    Return whether all relocations are known.

    Args:
        content: the sections of all objects.
        placed: one of the objects.
        exported: the places of the symbols that other objects may use.
    """
    code, sections, begins, symbols, _ = placed
    jumps = dict[str, int]()
    for each in sections:
        if each.type == _RELATIONS and each.info in begins:
            return False
        if each.type != _ADDENDS or each.info not in begins:
            continue
        for place in range(each.offset, each.offset + each.size, _RELOCATION.size):
            offset, info, addend = _RELOCATION.unpack_from(code, place)
            symbol, kind = info >> 32, info & 0xFFFFFFFF
            name, target = symbols[symbol]
            target = exported.get(name) if target is None else target
            is_known = kind == _CALL or (kind == _RELATIVE and target is not None)
            if not is_known or target == _ELSEWHERE:
                return False
            if target is None:
                if name not in jumps:
                    content += bytes(-len(content) % 16)
                    jumps[name] = len(content)
                    content += _JUMP.pack(_JUMP_TO, _address_of(name))
                target = jumps[name]
            at = begins[each.info] + offset
            _DISTANCE.pack_into(content, at, target + addend - at)
    return True


def _address_of(name: str) -> int:
    """Return the address of a function of this process."""
    try:
        return ctypes.cast(getattr(_process(), name), ctypes.c_void_p).value or 0
    except AttributeError:
        raise ValueError(f"no function {name}") from None


@cache
def _process() -> Any:
    """Return the functions of this process, with a table of its own: other users set types of theirs."""
    return ctypes.CDLL(None, use_errno=True)


def _executable(content: bytearray) -> int:
    """Return the address of a copy in memory that is executed and not written."""
    flags, access = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE
    memory = mmap.mmap(-1, -(-len(content) // _PAGE) * _PAGE, flags=flags, prot=access)
    memory[: len(content)] = bytes(content)
    exported = ctypes.c_char.from_buffer(memory)
    address = ctypes.addressof(exported)
    del exported
    size = ctypes.c_size_t(len(memory))
    if _process().mprotect(ctypes.c_void_p(address), size, mmap.PROT_READ | mmap.PROT_EXEC):
        number = ctypes.get_errno()
        memory.close()
        raise OSError(number, "mprotect")
    _kept.append(memory)
    return address
