"""GEMM against NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendml import TensorDataType, TensorDesc, descs
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import MatrixTransform
from opendml.spec.operator_desc import OperatorDesc
from tests.pairwise import pairwise
from tests.peers.peer import examples
from tests.running import device_kinds, on_arrays, run
from tests.tolerances import assert_within

NONE, TRANSPOSE = MatrixTransform.NONE, MatrixTransform.TRANSPOSE
FLOATS = (np.float32, np.float16)
every_device = pytest.mark.parametrize("device", device_kinds())


def _random(seed: int, dtype: Any, *sizes: int) -> Array:
    return np.random.default_rng(seed).uniform(-2, 2, sizes).astype(dtype)


def _gemm(a: Array, b: Array, c: Array | None, output: Array, device: str, **attributes: Any) -> Array:
    usual = {"trans_a": NONE, "trans_b": NONE, "alpha": 1.0, "beta": 1.0, "fused_activation": None}
    (result,) = on_arrays(descs.Gemm, [a, b, c], [output], device, **(usual | attributes))
    return result


@pairwise(
    device=device_kinds(),
    dtype=FLOATS,
    trans_b=MatrixTransform,
    trans_a=MatrixTransform,
    batch=[(), (3,), (2, 3)],
)
def test_transposes_and_batches(
    batch: tuple[int, ...], trans_a: MatrixTransform, trans_b: MatrixTransform, dtype: Any, device: str
) -> None:
    a, b, c = (_random(seed, dtype, *batch, *s) for seed, s in enumerate([(5, 9), (9, 7), (5, 7)]))
    magnitude = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    expected = 0.5 * (a.astype(np.float64) @ b.astype(np.float64)) - 1.5 * c.astype(np.float64)
    given_a = a if trans_a is NONE else np.swapaxes(a, -1, -2)
    given_b = b if trans_b is NONE else np.swapaxes(b, -1, -2)
    transforms = {"trans_a": trans_a, "trans_b": trans_b}
    result = _gemm(given_a, given_b, c, c, device, alpha=0.5, beta=-1.5, **transforms)
    assert_within("GEMM", result, expected, magnitude + 1.5 * np.abs(c.astype(np.float64)))


@every_device
@given(m=st.integers(1, 40), n=st.integers(1, 40), k=st.integers(1, 70), seed=st.integers(0, 2**31))
@examples
def test_any_sizes(device: str, m: int, n: int, k: int, seed: int) -> None:
    a, b = _random(seed, np.float32, m, k), _random(seed + 1, np.float32, k, n)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    result = _gemm(a, b, None, expected.astype(np.float32), device)
    assert_within("GEMM", result, expected, np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))


@every_device
def test_an_addend_is_repeated_by_strides_of_zero(device: str) -> None:
    a, b, c = (_random(seed, np.float32, *s) for seed, s in enumerate([(4, 6), (6, 5), (5,)]))
    tensors = [TensorDesc(TensorDataType.FLOAT32, s) for s in [(4, 6), (6, 5)]]
    row = TensorDesc(TensorDataType.FLOAT32, (4, 5), (0, 1))
    output = TensorDesc(TensorDataType.FLOAT32, (4, 5))
    desc = descs.Gemm(*tensors, row, output, trans_a=NONE, trans_b=NONE, alpha=1.0, beta=1.0)
    result = run(desc, [a.reshape(-1), b.reshape(-1), c], device)
    a, b = a.astype(np.float64), b.astype(np.float64)
    assert_within("GEMM", result, a @ b + c, np.abs(a) @ np.abs(b) + np.abs(c))


def _softmax(x: Array, axes: tuple[int, ...]) -> Array:
    e = np.exp(x - x.max(axis=axes, keepdims=True))
    return np.asarray(e / e.sum(axis=axes, keepdims=True))


@every_device
@pytest.mark.parametrize(
    ("activation", "formula"),
    [
        (descs.ActivationRelu, lambda x: np.maximum(x, 0)),
        (lambda: descs.ActivationLinear(alpha=0.5, beta=-1.0), lambda x: 0.5 * x - 1.0),
        (descs.ActivationTanh, np.tanh),
        (descs.ActivationSoftmax, lambda x: _softmax(x, (-1,))),
        (lambda: descs.ActivationSoftmax1(axes=[1, 2]), lambda x: _softmax(x, (1, 2))),
    ],
    ids=["relu", "linear", "tanh", "softmax", "softmax1"],
)
def test_activations_come_last(activation: Any, formula: Any, device: str) -> None:
    a, b, c = (_random(seed, np.float32, 2, *s) for seed, s in enumerate([(3, 4), (4, 5), (3, 5)]))
    expected = formula(a.astype(np.float64) @ b.astype(np.float64) + c)
    magnitude = np.abs(a) @ np.abs(b) + np.abs(c)
    fused: OperatorDesc = activation()
    result = _gemm(a, b, c, c, device, fused_activation=fused)
    # None of them is steeper than 1.
    assert_within("GEMM", result, expected, magnitude + 1)


@every_device
def test_what_a_zero_factor_multiplies_counts_where_it_is_not_finite(device: str) -> None:
    a, b = np.ones((1, 1), np.float32), np.ones((1, 2), np.float32)
    c = np.array([[np.inf, 3]], np.float32)
    np.testing.assert_array_equal(_gemm(a, b, c, c, device, beta=0.0), [[np.nan, 1]])
