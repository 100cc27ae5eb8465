"""Machine code is linked wherever memory is left."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCATTERED = """
import ctypes, mmap
import numpy as np, opendml as dml

PAGE, ROOM, ANYWHERE = mmap.PAGESIZE, 16 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
x = np.linspace(-2, 2, 37, dtype=np.float32)
dml.activation_relu(x)

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def take(bytes):
    return libc.mmap(None, bytes, 0, ANYWHERE, -1, 0)


# One page is free amid 16 GiB, and none above: what does not fit into it lies gigabytes below.
hole = take(ROOM) + ROOM // 2
libc.munmap(hole, PAGE)
for _ in range(100_000):
    if take(PAGE) == hole:
        break
else:
    raise AssertionError("the page is not found")
libc.munmap(hole, PAGE)

y = dml.activation_celu(x, alpha=0.75)
assert np.allclose(y, np.where(x > 0, x, 0.75 * np.expm1(x / 0.75)), rtol=1e-6)
"""


@pytest.mark.skipif(sys.platform != "linux" or sys.maxsize < 2**40, reason="counts on how Linux gives memory")
def test_pieces_of_memory_that_are_left_may_lie_gigabytes_apart(tmp_path: Path) -> None:
    environment = os.environ | {"OPENDML_CACHE_DIRECTORY": str(tmp_path)}
    subprocess.run([sys.executable, "-c", SCATTERED], env=environment, check=True)
