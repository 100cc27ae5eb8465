"""Softmax, its logarithm and hardmax against PyTorch and ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from opendml.runtime.memory.host_array import Array

from .onnx_peer import PEERS, onnx_result
from .peer import DEVICES, FLOATS, Random, assert_close, assert_near, computed, exact, examples, seeds

TORCH = {"SOFTMAX": "softmax", "LOG_SOFTMAX": "log_softmax"}
ONNX = {"SOFTMAX": "Softmax", "LOG_SOFTMAX": "LogSoftmax", "HARDMAX": "Hardmax"}


def _along(x: Array, axes: Sequence[int], function: Any) -> Array:
    """`function` of rows, where each row has all elements along the axes."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    order = [*kept, *axes]
    turned = x.transpose(order)
    rows = np.ascontiguousarray(turned).reshape(-1, int(np.prod([x.shape[axis] for axis in axes])))
    result: Array = np.asarray(function(rows)).reshape(turned.shape).transpose(np.argsort(order))
    return result


def _softmax(name: str, rows: Array) -> Array:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    result: Array = getattr(torch, TORCH[name])(torch.from_numpy(rows), -1).numpy()
    return result


def _check(name: str, result: Array, expected: Array) -> None:
    """Relative to the greatest element each one is rounded: that moves an exponential by as many steps as the
    difference is large, at most 32 here, and a logarithm by an absolute amount."""
    if name == "SOFTMAX":
        assert_close(f"ACTIVATION_{name}", result, expected, ulp=20.0)
    else:
        assert_near(result, expected, 2.0, 4.0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", TORCH)
@given(random=seeds)
@examples
def test_softmax_over_any_axes_agrees_with_pytorch(name: str, device: str, random: Random) -> None:
    shape = random.shape()
    axes = random.axes(len(shape))
    x = _inputs(random, shape)
    expected = _along(exact(x), axes, lambda rows: _softmax(name, rows))
    _check(name, computed(f"ACTIVATION_{name}1", x, axes=axes, device=device), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", TORCH)
@given(random=seeds)
@examples
def test_softmax_of_rows_agrees_with_pytorch(name: str, device: str, random: Random) -> None:
    shape = (1,) * int(random.generator.integers(3)) + random.shape(2)
    x = _inputs(random, shape)
    expected = _along(exact(x), [len(shape) - 1], lambda rows: _softmax(name, rows))
    _check(name, computed(f"ACTIVATION_{name}", x, device=device), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", TORCH)
def test_rows_with_infinities_and_nan_agree_with_pytorch(name: str, dtype: str, device: str) -> None:
    rows = np.array([[np.inf, 1], [-np.inf, 1], [np.inf, -np.inf], [-np.inf, -np.inf], [np.nan, 1]])
    result = computed(f"ACTIVATION_{name}", rows.astype(dtype), device=device)
    _check(name, result, _softmax(name, rows))


def _inputs(random: Random, shape: tuple[int, ...]) -> Array:
    """Numbers from -16 to 16, in one of two arrays also special ones of every kind."""
    x = random.values(random.of_type(FLOATS), shape, -16, 16, special=False)
    if random.generator.integers(2):
        chosen = random.generator.choice([0.0, -0.0, np.inf, -np.inf, np.nan], shape)
        x = np.where(random.generator.random(shape) < 0.05, chosen, x).astype(x.dtype)
    return x


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("name", ONNX)
@given(random=seeds)
@examples
def test_every_form_agrees_with_onnx(name: str, peer: str, random: Random) -> None:
    shape = random.shape()
    axes = random.axes(len(shape))
    x = random.values(np.dtype("float32"), shape, -20, 20, special=False)
    if name == "HARDMAX":
        x = np.round(x / 5)  # ties
    expected = _along(x, axes, lambda rows: onnx_result(peer, ONNX[name], [rows], "float32", axis=-1))
    result = computed(f"ACTIVATION_{name}1", x, axes=axes, device="reference")
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    flat = x.reshape(1, -1)
    expected = onnx_result(peer, ONNX[name], [flat], "float32", axis=-1)
    np.testing.assert_allclose(
        computed(f"ACTIVATION_{name}", flat, device="reference"), expected, rtol=1e-5, atol=1e-6
    )
