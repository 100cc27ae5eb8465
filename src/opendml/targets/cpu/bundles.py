"""Assembly and objects in parts: a kernel, and the functions that it shares with other kernels.

Each part is compiled alone, a function once for all kernels that are compiled together. The object of a
kernel is a bundle, which has the objects of its functions too, so it is kept and linked by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from struct import Struct, error

_NEXT = "\n; function "
"""Precedes a function's name and its assembly, behind that of the kernel."""
_GLOBAL = re.compile(r'^(?:define [^@]*)?@"([^"]*)".*|^declare [^@]*@"([^"]*)".*', re.MULTILINE)
_MAGIC = b"opendml\x00"
_NUMBER = Struct("<Q")
"""The number of objects, or the bytes of one of them."""


def with_functions(kernel: str, functions: Mapping[str, str]) -> str:
    """Return the assembly of a kernel with that of the functions that it calls, by their names."""
    return "".join([kernel, *[f"{_NEXT}{name}\n{text}" for name, text in functions.items()]])


def parts_of(assembly: str) -> tuple[str, dict[str, str]]:
    """Return the assembly of a kernel, and that of the functions that it shares, by their names."""
    kernel, *others = assembly.split(_NEXT)
    return kernel, {name: text for name, _, text in (each.partition("\n") for each in others)}


def as_one_module(assembly: str) -> str:
    """Return the assembly of a kernel and its functions as one module."""
    kernel, functions = parts_of(assembly)
    if not functions:
        return assembly
    # Definitions come first, so that no function is declared that is defined. Of equal names, one is taken:
    # both have the same code.
    lines, names = list[str](), set[str]()
    texts = [kernel, *functions.values()]
    for wanted in ("definition", "declaration"):
        for text in texts:
            is_kept = True
            for line in text.splitlines():
                if line.startswith("target ") and lines:
                    continue
                found = _GLOBAL.match(line)
                if found:
                    name = found[1] or found[2]
                    is_kept = (wanted == "definition") == bool(found[1]) and name not in names
                    if is_kept:
                        names.add(name)
                if is_kept:
                    lines.append(line)
    return "\n".join(lines)


def bundled(objects: Sequence[bytes]) -> bytes:
    """Return objects as one: that of a kernel, and those of its functions. One object stays as it is."""
    if len(objects) == 1:
        return objects[0]
    numbers = [len(objects), *map(len, objects)]
    return b"".join([_MAGIC, *map(_NUMBER.pack, numbers), *objects])


def objects_of(code: bytes) -> list[bytes]:
    """Return the objects of a bundle, or the only one if the code is a single object.

    Raises:
        ValueError: the bundle is damaged.
    """
    if not code.startswith(_MAGIC):
        return [code]
    try:
        (count,) = _NUMBER.unpack_from(code, len(_MAGIC))
        begin = len(_MAGIC) + _NUMBER.size
        end = begin + count * _NUMBER.size
        sizes = [size for (size,) in _NUMBER.iter_unpack(code[begin:end])]
    except error as problem:
        raise ValueError(f"a damaged bundle of objects: {problem}") from problem
    if not count or len(sizes) != count or end + sum(sizes) != len(code):
        raise ValueError("a damaged bundle of objects")
    return [code[first:last] for first, last in pairwise(accumulate(sizes, initial=end))]
