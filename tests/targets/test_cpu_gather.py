"""Gathers of elements of less than 32 bits, which read the aligned 32 bits around each."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator

import numpy as np
import pytest

import opendml as dml
from opendml.runtime.memory.host_array import Array

PAGE = mmap.PAGESIZE


@pytest.fixture
def fenced() -> Iterator[memoryview]:
    """A page between two that cannot be read."""
    memory = mmap.mmap(-1, 3 * PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for page in (0, 2):
        assert protect(address + page * PAGE, PAGE, 0) == 0
    yield memoryview(memory)[PAGE : 2 * PAGE]
    for page in (0, 2):
        assert protect(address + page * PAGE, PAGE, mmap.PROT_READ | mmap.PROT_WRITE) == 0


@pytest.mark.parametrize("count", [1, 2, 3, 5, 50, 101])
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.float16])
def test_nothing_beyond_a_page_is_read(fenced: memoryview, dtype: type, count: int) -> None:
    size = np.dtype(dtype).itemsize
    for part in (fenced[: count * size], fenced[-count * size :]):
        x: Array = np.frombuffer(part, dtype)
        x[:] = np.arange(count).astype(dtype)
        indices = np.random.default_rng(count).integers(0, count, 77, np.int32)
        np.testing.assert_array_equal(dml.gather_elements(x, indices, axis=0), x[indices])
        backwards = dml.slice1(x, input_window_sizes=[count], input_window_strides=[-1])
        np.testing.assert_array_equal(backwards, x[::-1])
