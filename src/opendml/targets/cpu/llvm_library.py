"""LLVM's library, which this process loads only if it compiles or links kernels itself.

Loading it touches 38 MB, half of what a process with a small model takes, and lasts 45 ms. Mostly other
processes do its work (`compile_workers`, `host_facts`).
"""

from __future__ import annotations

import ctypes
import mmap
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from opendml.across_forks import importing
from opendml.targets.cpu import object_code

_PYTHON = re.compile(r"python[0-9.]*w?(\.exe)?", re.IGNORECASE)
_START = (
    "import sys, runpy; _, program, task, *path = sys.argv; sys.path[:] = path; sys.argv[1:] = [task]; "
    "runpy.run_path(program, run_name='__main__')"
)
"""Runs a program with a task and the import path of this process, without the start files of `site`."""


def can_start_processes() -> bool:
    """Return whether the program of this process is Python, which can run `object_code` in another one."""
    return _PYTHON.fullmatch(Path(sys.executable or "").name) is not None


def process_command(task: str) -> list[str]:
    """Return the command of a process that runs `object_code` with a task."""
    path = filter(None, sys.path)
    return [sys.executable, "-I", "-S", "-c", _START, object_code.__file__, task, *path]


@cache
def load() -> None:
    """Load the library into this process, for its life."""
    with importing:
        import llvmlite.binding  # noqa: F401
    _release()


def _release() -> None:
    """Release the pages of the library that loading it has touched. Linking needs 7 MB of them.

    The system maps them again on demand. This works on Linux only, where /proc/self/smaps lists the pages.
    """
    with suppress(OSError, AttributeError):
        madvise = ctypes.CDLL(None).madvise
        with open("/proc/self/smaps") as lines:
            for begin, end in unchanged_parts(lines, "libllvmlite"):
                madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), mmap.MADV_DONTNEED)


def unchanged_parts(lines: Iterable[str], library: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of the parts of a library in memory whose pages are all those of its file.

    Pages that the loader has changed are anonymous or swapped out. "Private_Dirty" would not count those that
    the child of a fork shares with its parent. Parts that may still be written are left out.

    Args:
        lines: those of /proc/self/smaps.
        library: the beginning of the name of its file.
    """
    part = ""
    for line in lines:
        if f"/{library}" in line:
            addresses, permissions, *_ = line.split()
            part = "" if "w" in permissions else addresses
        elif part and line.startswith(("Anonymous:", "Swap:")):
            if line.split()[1] != "0":
                part = ""
            elif line.startswith("Swap:"):
                begin, end = part.split("-")
                yield int(begin, 16), int(end, 16)
                part = ""
