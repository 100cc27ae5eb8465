"""What the control groups of this process allow it: a container's shares of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

from opendml.targets.memory import physical_memory

T = TypeVar("T", int, float)

Read = Callable[[Path], T | None]
"""Reads a limit in the folder of a group; None: there is none."""


def limits(root: Path, controller: str, read: Read[T], read_old: Read[T]) -> Iterator[T]:
    """Yield the limits of the groups of this process and of those around them.

    Args:
        root: the folder that holds proc and sys.
        controller: which resource the limits are of, as groups of version 1 call it.
        read, read_old: read the limit of a group of version 2, and of version 1.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text("utf-8").splitlines()
    except OSError:
        return
    groups = root / "sys/fs/cgroup"
    found: list[T | None] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            found += [read(folder) for folder in _up(groups, path)]
        elif controller in controllers.split(","):
            for mount in (groups / controllers, groups / controller):
                found += [read_old(folder) for folder in _up(mount, path)]
    yield from (each for each in found if each is not None)


def text(path: Path) -> str:
    """Return the text of a file of a group; nothing where there is no such file."""
    try:
        return path.read_text("utf-8").strip()
    except OSError:
        return ""


@cache
def memory_limit() -> int:
    """Return the bytes of memory that this process may use: the machine's, or what its groups allow."""
    return allowed_memory(Path("/"))


def allowed_memory(root: Path) -> int:
    """Return that for the groups below a folder that holds proc and sys."""
    old = lambda folder: _bytes(folder / "memory.limit_in_bytes")  # noqa: E731
    found = limits(root, "memory", lambda folder: _bytes(folder / "memory.max"), old)
    return min(found, default=physical_memory())


def _bytes(path: Path) -> int | None:
    """Return a limit below the machine's memory: groups of version 1 say none by a huge number."""
    given = text(path)
    return int(given) if given.isdecimal() and int(given) < physical_memory() else None


def _up(mount: Path, path: str) -> list[Path]:
    """Return a group's folder and those of the groups around it. Within a container the path may be the one
    outside: the last is always the mount itself."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    return [mount.joinpath(*parts[:count]) for count in range(len(parts), -1, -1)]
