"""Softmax, its logarithm and hardmax against PyTorch and ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from opendml.runtime.memory.host_array import Array
from tests.tolerances import assert_within
from tools.terms import of_log_softmax, of_softmax

from .onnx_peer import PEERS, onnx_result
from .peer import DEVICES, FLOATS, Random, computed, exact, examples, seeds

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


def _check(
    name: str, result: Array, expected: Array, x: Array, axes: Sequence[int], peer: bool = False
) -> None:
    terms = of_log_softmax(x, axes) if "LOG" in name else of_softmax(x, axes, expected)
    assert_within(name, result, expected, terms, peer=peer)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", TORCH)
@given(random=seeds)
@examples
def test_softmax_over_any_axes_agrees_with_pytorch(name: str, device: str, random: Random) -> None:
    shape = random.shape()
    axes = random.axes(len(shape))
    x = _inputs(random, shape)
    expected = _along(exact(x), axes, lambda rows: _softmax(name, rows))
    operator = f"ACTIVATION_{name}1"
    _check(operator, computed(operator, x, axes=axes, device=device), expected, x, axes)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", TORCH)
@given(random=seeds)
@examples
def test_softmax_of_rows_agrees_with_pytorch(name: str, device: str, random: Random) -> None:
    shape = (1,) * int(random.generator.integers(3)) + random.shape(2)
    x = _inputs(random, shape)
    axes, operator = [len(shape) - 1], f"ACTIVATION_{name}"
    expected = _along(exact(x), axes, lambda rows: _softmax(name, rows))
    _check(operator, computed(operator, x, device=device), expected, x, axes)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", TORCH)
def test_rows_with_infinities_and_nan_agree_with_pytorch(name: str, dtype: str, device: str) -> None:
    rows = np.array([[np.inf, 1], [-np.inf, 1], [np.inf, -np.inf], [-np.inf, -np.inf], [np.nan, 1]])
    operator = f"ACTIVATION_{name}"
    result = computed(operator, rows.astype(dtype), device=device)
    _check(operator, result, _softmax(name, rows), rows, [1])


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
    operator = f"ACTIVATION_{name}"
    result = computed(f"{operator}1", x, axes=axes, device="reference")
    _check(f"{operator}1", result, expected, x, axes, peer=True)
    flat = x.reshape(1, -1)
    expected = onnx_result(peer, ONNX[name], [flat], "float32", axis=-1)
    _check(operator, computed(operator, flat, device="reference"), expected, flat, [1], peer=True)
