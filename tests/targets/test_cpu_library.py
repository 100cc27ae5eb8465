"""Pages of LLVM's library are released only where the system can read them from its file again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from opendml.targets.cpu.llvm_library import unchanged_parts
from tests.processes import has_fork

LIBRARY = "/packages/llvmlite/binding/libllvmlite.so"
IN_CHILD = """
import os, sys
import llvmlite.binding
llvmlite.binding.get_default_triple()
child = os.fork()
if not child:
    import numpy as np, opendml as dml
    result = dml.element_wise_abs(np.array([-1], np.float32), device="cpu")
    os._exit(int(result[0] != 1))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def listed(
    begin: int, permissions: str = "r--p", anonymous: int = 0, swapped: int = 0, file: str = LIBRARY
) -> str:
    """Return a part of 4096 bytes as /proc/self/smaps lists it."""
    return (
        f"{begin:x}-{begin + 4096:x} {permissions} 00000000 fe:00 260850    {file}\n"
        f"Shared_Dirty:    {anonymous} kB\nPrivate_Dirty:    0 kB\nAnonymous:    {anonymous} kB\n"
        f"Swap:    {swapped} kB\nSwapPss:    0 kB\nVmFlags: rd mr mw me\n"
    )


def test_only_parts_without_changed_pages_are_unchanged() -> None:
    parts = [
        listed(0x7F0000000000),
        listed(0x7F0000001000, "r-xp"),
        listed(0x7F0000002000, "rw-p"),
        listed(0x7F0000003000, anonymous=16),
        listed(0x7F0000004000, swapped=16),
        listed(0x7F0000005000, file="/lib/libc.so.6"),
        listed(0x7F0000006000, file=""),
        listed(0x7F0000007000),
    ]
    found = list(unchanged_parts("".join(parts).splitlines(keepends=True), "libllvmlite"))
    assert found == [(begin, begin + 4096) for begin in (0x7F0000000000, 0x7F0000001000, 0x7F0000007000)]


@has_fork
def test_the_child_of_a_fork_keeps_the_pages_that_the_loader_has_changed(tmp_path: Path) -> None:
    """It shares them with its parent, whose program had loaded LLVM before opendml."""
    environment = {**os.environ, "OPENDML_CACHE_DIRECTORY": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", IN_CHILD], env=environment, timeout=120).returncode == 0
