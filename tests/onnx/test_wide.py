"""Nodes on float16 that become several operators: they round once, and do not overflow on the way."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx

import opendml as dml
from tests.onnx.models import feed, one_node

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(0)


def normal(*sizes: int, scale: float = 1.0) -> Array:
    return (RANDOM.standard_normal(sizes) * scale).astype(np.float16)


CASES: dict[str, tuple[list[Array | None], dict[str, Any]]] = {
    "AffineGrid": ([normal(1, 2, 3), np.array([1, 1, 5, 6])], {}),
    "DFT": ([normal(1, 64, 1, scale=500)], {}),
    "Einsum": ([np.full((3, 50), 50, np.float16), np.full(50, 5, np.float16)], {"equation": "ab,b->"}),
    "Gelu": ([normal(100, scale=2)], {"approximate": "tanh"}),
    "GridSample": ([normal(1, 1, 6, 6), normal(1, 5, 5, 2, scale=0.4)], {}),
    "Mean": ([np.full(3, 40_000, np.float16), np.full(3, 50_000, np.float16)], {}),
    "Mish": ([normal(100, scale=3)], {}),
    "Resize": ([normal(1, 1, 5, 6), None, np.array([1, 1, 1.7, 2.3], np.float32)], {"mode": "cubic"}),
    "RotaryEmbedding": ([normal(1, 2, 3, 8), normal(4, 4), normal(4, 4), np.array([[0, 1, 2]])], {}),
    "STFT": ([normal(1, 64, 1, scale=300), np.array(8), normal(16)], {}),
    "Sum": (
        [np.full(3, 40_000, np.float16), np.full(3, 50_000, np.float16), np.full(3, -60_000, np.float16)],
        {},
    ),
    "Attention": ([normal(1, 2, 5, 8, scale=60), normal(1, 2, 5, 8, scale=60), normal(1, 2, 5, 8)], {}),
}


def result(inputs: list[Array | None], operator: str, attributes: dict[str, Any]) -> Array:
    known = [
        i
        for i, each in enumerate(inputs)
        if each is not None and each.dtype.kind in "iu" and operator != "RotaryEmbedding"
    ]
    known += [2] if operator == "Resize" else []
    model = one_node(operator, inputs, known=known, **attributes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found: Array = dml.onnx.load(model)(*feed(inputs, known).values())["y0"]
    return found


@pytest.mark.parametrize("operator", CASES)
def test_float16_is_what_float32_rounds_to(operator: str) -> None:
    inputs, attributes = CASES[operator]
    wide = [
        each.astype(np.float32) if each is not None and each.dtype == np.float16 else each for each in inputs
    ]
    expected = result(wide, operator, attributes)
    found = result(inputs, operator, attributes)
    assert found.dtype == np.float16
    assert expected.dtype == np.float32
    rounded = expected.astype(np.float16)
    assert np.isfinite(rounded).all()
    assert (abs(found - expected.astype(np.float64)) <= np.spacing(abs(rounded)).astype(np.float64)).all()


def test_a_sum_in_front_of_a_normalization_does_not_overflow() -> None:
    x = np.full((1, 2, 8), 40_000, np.float16)
    x[..., ::2] = 39_000
    scale = np.ones(8, np.float16)
    model = one_node("SkipLayerNormalization", [x, x, scale], opset=20, domain="com.microsoft")
    y = dml.onnx.load(model)(x, x, scale)["y0"]
    assert y.dtype == np.float16
    assert np.allclose(abs(y), 1, atol=1e-2)


def test_the_sum_that_overflowed_is_exact() -> None:
    """37,500: the sum over b of 50 * 5 * 50 elements, over three rows; one row alone is 12,500."""
    inputs, attributes = CASES["Einsum"]
    assert result(inputs, "Einsum", attributes) == 37_500


def test_large_weights_of_float16_are_not_stored_as_float32() -> None:
    weight = normal(64, 64)
    node = onnx.helper.make_node("Einsum", ["x", "w"], ["y"], equation="ab,bc->ac")
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node],
        "g",
        [info("x", onnx.TensorProto.FLOAT16, [3, 64])],
        [info("y", onnx.TensorProto.FLOAT16, [3, 64])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    x = normal(3, 64)
    model = dml.onnx.load(onnx.helper.make_model(graph))
    y = model(x)["y"]
    expected = x.astype(np.float64) @ weight.astype(np.float64)
    assert np.allclose(y, expected, rtol=2**-10, atol=1e-2)
    (part,) = model.parts({"x": x})
    assert not isinstance(part, str)
    assert len(part.explain().kernels) == 1


def test_a_tensor_without_elements_stays_float16() -> None:
    empty = np.zeros((0, 3), np.float16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = dml.onnx.load(one_node("Sum", [empty, empty, empty]))(empty, empty, empty)["y0"]
    assert (y.dtype, y.shape) == (np.float16, (0, 3))


def test_a_conversion_to_a_type_that_directml_has_not_is_left_as_it_is() -> None:
    x, like = (
        normal(3),
        np.zeros(1, np.dtype(onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16))),
    )
    model = one_node("CastLike", [x, like])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = dml.onnx.load(model)(x, like)["y0"]
    assert y.dtype == like.dtype
