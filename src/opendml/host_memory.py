"""The memory that this process may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from opendml.control_groups import group_folders, text_of

_UNKNOWN = 2**46
"""Bytes if the system reports no limit; allocations fail there by themselves."""


@cache
def host_memory() -> int:
    """Return the bytes that this process may use at most.

    That is the least of the machine's memory, the limits of the process's control groups (a container's
    memory) and its address space (`ulimit -v`).
    """
    sizes = [_address_space(), group_memory(Path("/"))]
    if hasattr(os, "sysconf"):
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((size for size in sizes if size is not None), default=_UNKNOWN)


def group_memory(root: Path) -> int | None:
    """Return the bytes that the control groups of this process allow, of version 2 or 1; None: any number.

    Args:
        root: the folder that holds proc and sys.
    """
    return min(_group_sizes(root), default=None)


def _group_sizes(root: Path) -> Iterator[int]:
    new, old = group_folders(root, "memory")
    for folders, name in ((new, "memory.max"), (old, "memory.limit_in_bytes")):
        for folder in folders:
            text = text_of(folder / name)  # "max" in version 2, a number near 2^63 in version 1: no limit
            if text.isdecimal():
                yield int(text)


def _address_space() -> int | None:
    """Return the soft limit of the address space; None: there is none."""
    try:
        resource = import_module("resource")
    except ModuleNotFoundError:  # Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else int(soft)
