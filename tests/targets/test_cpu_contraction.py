"""Sums of products on the CPU, in every way that it has, against NumPy's float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opendml.compiler.kernel import Kernel
from opendml.runtime.host_array import Array
from opendml.targets.cpu.pattern import Mode
from opendml.targets.cpu.schedule import schedule
from tests.targets.kernels import contraction_kernel, run_launches

RANDOM = np.random.default_rng(9)


def values(type: str, *sizes: int) -> Array:
    """Random numbers; integers of all bits."""
    if np.dtype(type).kind == "f":
        return RANDOM.standard_normal(sizes).astype(type)
    info = np.iinfo(type)
    return RANDOM.integers(info.min, info.max, sizes, type, endpoint=True)


def product(a: Array, b: Array, axes: tuple[int, ...]) -> Array:
    """The sums of products: of floats in FLOAT64, of integers wrapping."""
    wide: Any = np.float64 if a.dtype.kind == "f" else a.dtype
    return np.sum(a.astype(wide) * b.astype(wide), axis=axes, keepdims=True, dtype=wide)


def assert_accurate(result: Array, a: Array, b: Array, axes: tuple[int, ...], what: str = "") -> None:
    """Errors of sums of products, relative to the sums of their magnitudes, within the stated bound."""
    wanted = product(a, b, axes)
    if a.dtype.kind != "f":
        np.testing.assert_array_equal(result, wanted, what)
        return
    magnitude = product(np.abs(a), np.abs(b), axes)
    error = np.abs(result.astype(np.float64) - wanted) / np.maximum(magnitude, 1e-30)
    assert error.max(initial=0) <= 4e-7 + np.finfo(result.dtype).eps * (result.dtype != np.float32), what


def run(kernel: Kernel, *arrays: Array) -> set[Mode]:
    """Runs a kernel; returns the modes that it takes."""
    launches = schedule(kernel)
    run_launches(launches, arrays)
    return {launch.pattern.mode for launch in launches}


@pytest.mark.parametrize("type", ["float64", "int8", "uint8", "int32", "uint64"])
@pytest.mark.parametrize("transposed", [False, True])
def test_other_types_than_float32_are_summed_in_their_own(type: str, transposed: bool) -> None:
    m, n, k = 5, 37, 23
    a, b = values(type, m, 1, k), values(type, 1, n, k)
    if transposed:
        b = values(type, 1, k, n).transpose(0, 2, 1)
    out = np.zeros((m, n, 1), type)
    run(contraction_kernel(a, b, (2,), [out]), a, b, out)
    assert_accurate(out, a, b, (2,))


@pytest.mark.parametrize("sizes", [(1, 600, 500), (1, 4, 20_000), (600, 1, 500), (1, 1, 70_000)], ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_vectors_are_accurate(sizes: tuple[int, int, int], transposed: bool) -> None:
    m, n, k = sizes
    a, b = values("float32", m, 1, k), values("float32", 1, n, k)
    if transposed:
        b = values("float32", 1, k, n).transpose(0, 2, 1)
    out = np.zeros((m, n, 1), np.float32)
    run(contraction_kernel(a, b, (2,), [out]), a, b, out)
    assert_accurate(out, a, b, (2,))
