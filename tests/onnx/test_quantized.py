"""Quantized numbers in ONNX models."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx
from onnx import helper

from tests.onnx.models import (
    Array,
    assert_as_onnxruntime,
    assert_same,
    computed,
    evaluated,
    feed,
    numbers,
    one_node,
)

_TYPES = [np.uint8, np.int8, np.uint16, np.int16, ml_dtypes.int4, ml_dtypes.uint4]


def _scales(sizes: list[int], type: Any = np.float32) -> Array:
    return np.asarray(np.abs(numbers(sizes)) * 0.1 + 0.05, type)


def _zeros(sizes: list[int], type: Any) -> Array:
    return np.asarray(np.abs(numbers(sizes, np.int32, 5)) % 7, np.int32).astype(type)


def _check(operator: str, inputs: list[Array | None], **options: Any) -> None:
    model = one_node(operator, inputs, **options)
    assert_same(computed(model, feed(inputs)), evaluated(model, feed(inputs)))


@pytest.mark.parametrize("type", _TYPES)
@pytest.mark.parametrize(("sizes", "options"), [([], {}), ([4], {"axis": 1}), ([3, 2, 5], {"block_size": 2})])
def test_quantize_rounds_and_saturates(type: Any, sizes: list[int], options: dict[str, int]) -> None:
    inputs: list[Array | None] = [numbers([3, 4, 5]) * 10, _scales(sizes), _zeros(sizes, type)]
    model = one_node("QuantizeLinear", inputs, opset=21, **options)
    results, wanted = computed(model, feed(inputs)), evaluated(model, feed(inputs))
    assert results[0].dtype == wanted[0].dtype
    np.testing.assert_array_equal(results[0].astype(np.int32), wanted[0].astype(np.int32))


@pytest.mark.parametrize("type", _TYPES)
@pytest.mark.parametrize(("sizes", "options"), [([], {}), ([4], {"axis": 1}), ([3, 2, 5], {"block_size": 2})])
@pytest.mark.parametrize("zero", [False, True])
def test_dequantize_takes_away_the_zero_point(
    type: Any, sizes: list[int], options: dict[str, int], zero: bool
) -> None:
    array = (np.arange(60) % 8).reshape(3, 4, 5).astype(type)
    inputs: list[Array | None] = [array, _scales(sizes), *([_zeros(sizes, type)] if zero else [])]
    _check("DequantizeLinear", inputs, opset=21, **options)


def test_the_last_block_may_be_shorter() -> None:
    inputs: list[Array | None] = [numbers([2, 7], np.uint8), _scales([2, 3]), _zeros([2, 3], np.uint8)]
    blocks = np.repeat(inputs[1], 3, 1)[:, :7], np.repeat(inputs[2], 3, 1)[:, :7]  # type: ignore[arg-type]
    wanted = (numbers([2, 7], np.uint8).astype(np.float32) - blocks[1]) * blocks[0]
    model = one_node("DequantizeLinear", inputs, opset=21, block_size=3)
    assert_same(computed(model, feed(inputs)), [wanted.astype(np.float32)])


def test_quantize_names_its_type() -> None:
    inputs: list[Array | None] = [numbers([3, 4]) * 10, _scales([])]
    _check("QuantizeLinear", inputs, opset=21, output_dtype=onnx.TensorProto.INT8)
    _check("QuantizeLinear", inputs, opset=21)


def test_integers_of_32_bits_are_quantized_and_dequantized() -> None:
    integers = numbers([3, 4], np.int32) * 1000
    _check("QuantizeLinear", [integers, _scales([]) * 10000, _zeros([], np.uint8)], opset=19)
    _check("DequantizeLinear", [integers, _scales([4])], opset=19, axis=-1)


@pytest.mark.parametrize("array", [numbers([3, 4]), np.abs(numbers([3, 4])) + 1, -np.abs(numbers([4])) - 1])
def test_dynamic_quantization_has_zero_among_its_numbers(array: Array) -> None:
    model = one_node("DynamicQuantizeLinear", [array], outputs=3)
    results, wanted = computed(model, feed([array])), evaluated(model, feed([array]))
    assert_same(results[:1], wanted[:1], 0, 1)
    assert_same(results[1:], wanted[1:])


@pytest.mark.parametrize(
    ("a", "b"),
    [([3, 4], [4, 2]), ([4], [4, 2]), ([3, 4], [4]), ([2, 3, 4], [4, 5]), ([2, 1, 3, 4], [5, 4, 2])],
)
@pytest.mark.parametrize("zeros", ["none", "one", "columns"])
def test_matmul_integer_repeats_as_numpy_does(a: list[int], b: list[int], zeros: str) -> None:
    inputs: list[Array | None] = [numbers(a, np.uint8), numbers(b, np.int8)]
    if zeros != "none":
        lines = [b[-1]] if zeros == "columns" and len(b) == 2 else []
        inputs += [np.array(9, np.uint8), _zeros(lines, np.int8)]
    model = one_node("MatMulInteger", inputs, opset=10)
    assert_as_onnxruntime(model, feed(inputs))


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("a", [[3, 4], [2, 3, 4]])
def test_qlinear_matmul_takes_scales_of_columns(a: list[int], columns: bool) -> None:
    lines = [5] if columns else []
    inputs: list[Array | None] = [numbers(a, np.uint8), np.array(0.05, np.float32), np.array(120, np.uint8)]
    inputs += [numbers([4, 5], np.int8), _scales(lines), np.zeros(lines, np.int8)]
    inputs += [np.array(3.0, np.float32), np.array(100, np.uint8)]
    model = one_node("QLinearMatMul", inputs, opset=10)
    assert_as_onnxruntime(model, feed(inputs), 0, 1)


@pytest.mark.parametrize("operator", ["Conv", "MatMul"])
def test_models_with_quantized_weights_compute_on_what_these_stand_for(operator: str) -> None:
    sizes, kernel = ([2, 3, 6, 6], [4, 3, 3, 3]) if operator == "Conv" else ([5, 6], [6, 4])
    weights = {"w": numbers(kernel, np.int8), "ws": _scales([4]), "wz": np.zeros([4], np.int8)}
    weights |= {"s": np.array(0.04, np.float32), "z": np.array(128, np.uint8)}
    axis = 0 if operator == "Conv" else 1
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["dw"], axis=axis),
        helper.make_node(operator, ["d", "dw"], ["y"]),
    ]
    given = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, sizes)]
    result = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    known = [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", given, result, known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    feeds = {"x": numbers(sizes)}
    assert_same(computed(model, feeds), evaluated(model, feeds), 1e-4, 1e-4)


def test_dequantized_weights_are_floats() -> None:
    """ONNX Runtime rounds the activations to 8 bits where it optimizes such a graph: 5e-3."""
    x, weights, scale = numbers([5, 96]), numbers([96, 40], np.int8), _scales([40])
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["floats"], axis=1),
        helper.make_node("MatMul", ["x", "floats"], ["y"]),
    ]
    known = [onnx.numpy_helper.from_array(array, name) for name, array in (("w", weights), ("s", scale))]
    given = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)
    graph = helper.make_graph(nodes, "g", [given], [onnx.ValueInfoProto(name="y")], known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    exact = x.astype(np.float64) @ (weights.astype(np.float64) * scale)
    (result,) = computed(model, {"x": x})
    assert np.abs(result - exact).max() < 1e-6 * np.abs(exact).max()
