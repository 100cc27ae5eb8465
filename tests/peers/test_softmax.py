"""Softmax, its logarithm and hardmax against PyTorch and ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from opendml.runtime.host_array import Array

from .onnx_peer import PEERS, onnx_result
from .peer import DEVICES, FLOATS, Random, assert_close, computed, exact, examples, seeds

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


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", TORCH)
@given(random=seeds)
@examples
def test_softmax_over_any_axes_agrees_with_pytorch(name: str, device: str, random: Random) -> None:
    shape = random.shape()
    axes = random.axes(len(shape))
    special = bool(random.generator.integers(2))
    x = random.values(random.of_type(FLOATS), shape, -30, 30, special=special)
    expected = _along(exact(x), axes, lambda rows: _softmax(name, rows))
    operator = f"ACTIVATION_{name}1"
    assert_close(operator, computed(operator, x, axes=axes, device=device), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", TORCH)
@given(random=seeds)
@examples
def test_softmax_of_rows_agrees_with_pytorch(name: str, device: str, random: Random) -> None:
    shape = (1,) * int(random.generator.integers(3)) + random.shape(2)
    x = random.values(random.of_type(FLOATS), shape, -30, 30, special=False)
    expected = _along(exact(x), [len(shape) - 1], lambda rows: _softmax(name, rows))
    operator = f"ACTIVATION_{name}"
    assert_close(operator, computed(operator, x, device=device), expected)


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
