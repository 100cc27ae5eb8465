"""Quantized and recurrent ONNX models, and those whose sums are wider than their tensors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx
from onnx import helper

import opendml as dml
from tests.onnx.models import (
    Array,
    assert_as_onnxruntime,
    assert_same,
    check_node,
    computed,
    evaluated,
    feed,
    numbers,
    one_node,
)


def _scales(sizes: list[int], type: Any = np.float32) -> Array:
    return np.asarray(np.abs(numbers(sizes)) * 0.1 + 0.05, type)


def _zeros(sizes: list[int], type: Any) -> Array:
    return np.asarray(np.abs(numbers(sizes, np.int32, 5)) % 7, np.int32).astype(type)


def test_the_last_block_may_be_shorter() -> None:
    inputs: list[Array | None] = [numbers([2, 7], np.uint8), _scales([2, 3]), _zeros([2, 3], np.uint8)]
    blocks = np.repeat(inputs[1], 3, 1)[:, :7], np.repeat(inputs[2], 3, 1)[:, :7]  # type: ignore[arg-type]
    wanted = (numbers([2, 7], np.uint8).astype(np.float32) - blocks[1]) * blocks[0]
    model = one_node("DequantizeLinear", inputs, opset=21, block_size=3)
    assert_same(computed(model, feed(inputs)), [wanted.astype(np.float32)])


def test_integers_of_32_bits_are_quantized_and_dequantized() -> None:
    integers = numbers([3, 4], np.int32) * 1000
    check_node("QuantizeLinear", [integers, _scales([]) * 10000, _zeros([], np.uint8)], opset=19)
    check_node("DequantizeLinear", [integers, _scales([4])], opset=19, axis=-1)


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


_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_STEPS, _BATCH, _INPUT, _HIDDEN = 4, 3, 5, 2


def _inputs(operator: str, directions: int = 1, given: int = 3) -> list[Array | None]:
    """The first inputs; those that are not there are None."""
    gates = _GATES[operator] * _HIDDEN
    state = [directions, _BATCH, _HIDDEN]
    every: list[Array | None] = [
        numbers([_STEPS, _BATCH, _INPUT]),
        numbers([directions, gates, _INPUT]),
        numbers([directions, gates, _HIDDEN], seed=1),
        numbers([directions, 2 * gates], seed=2),
        np.array([3, 4, 1], np.int32),
        numbers(state, seed=3),
    ]
    return [*every, numbers(state, seed=4)][:given] if operator == "LSTM" else every[:given]


def _check_recurrent(operator: str, inputs: list[Array | None], **options: Any) -> None:
    outputs = 3 if operator == "LSTM" else 2
    model = one_node(operator, inputs, outputs=outputs, opset=14, hidden_size=_HIDDEN, **options)
    assert_as_onnxruntime(model, feed(inputs))


@pytest.mark.parametrize("operator", ["RNN", "GRU"])
def test_lists_of_activations_take_alpha_and_beta_in_order(operator: str) -> None:
    names = ["LeakyRelu", "HardSigmoid"] if operator == "RNN" else ["HardSigmoid", "LeakyRelu", "Elu", "Tanh"]
    alpha = [0.3, 0.4] if operator == "RNN" else [0.3, 0.2, 0.5]
    options = {"activations": names, "activation_alpha": alpha, "activation_beta": [0.6]}
    _check_recurrent(operator, _inputs(operator, 2), direction="bidirectional", **options)


def test_lstm_clips_and_couples_its_gates() -> None:
    _check_recurrent("LSTM", _inputs("LSTM", given=7), clip=0.5, input_forget=1)


def test_a_peephole_of_the_output_gate_sees_the_cell_after_the_step() -> None:
    inputs = [*_inputs("LSTM"), *[None] * 4, numbers([1, 3 * _HIDDEN])]
    model = one_node("LSTM", inputs, outputs=3, opset=14, hidden_size=_HIDDEN)
    assert_as_onnxruntime(model, feed(inputs), evaluator=True)


@pytest.mark.parametrize(
    ("operator", "options"),
    [
        ("GRU", {"clip": 0.5}),
        ("RNN", {"clip": 0.5}),
        ("RNN", {"activations": ["Affine"]}),
        ("RNN", {"activations": ["Mish"]}),
    ],
)
def test_what_the_evaluator_would_ignore_is_refused(operator: str, options: dict[str, Any]) -> None:
    inputs = _inputs(operator)
    model = one_node(operator, inputs, opset=14, hidden_size=_HIDDEN, **options)
    with pytest.raises(dml.Unsupported, match=f"{operator}-14"):
        computed(model, feed(inputs))


def test_lengths_of_a_network_of_float64_are_not_ignored() -> None:
    wide: list[Array | None] = []
    for each in _inputs("RNN", given=5):
        assert each is not None
        wide.append(each.astype(np.float64) if each.dtype == np.float32 else each)
    with pytest.raises(dml.Unsupported, match="float64"):
        computed(one_node("RNN", wide, opset=14, hidden_size=_HIDDEN), feed(wide))


@pytest.mark.parametrize("operator", list(_GATES))
def test_lengths_of_known_sequences_are_not_ignored(operator: str) -> None:
    inputs = _inputs(operator, given=5)
    options: dict[str, Any] = {"outputs": 3 if operator == "LSTM" else 2, "opset": 14, "hidden_size": _HIDDEN}
    asked = one_node(operator, inputs, **options)
    known = one_node(operator, inputs, known=range(5), **options)
    assert_same(computed(known, {}), computed(asked, feed(inputs)))


WideArray = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(0)


def normal(*sizes: int, scale: float = 1.0) -> WideArray:
    return (RANDOM.standard_normal(sizes) * scale).astype(np.float16)


CASES: dict[str, tuple[list[WideArray | None], dict[str, Any]]] = {
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


def result(inputs: list[WideArray | None], operator: str, attributes: dict[str, Any]) -> WideArray:
    known = [
        i
        for i, each in enumerate(inputs)
        if each is not None and each.dtype.kind in "iu" and operator != "RotaryEmbedding"
    ]
    known += [2] if operator == "Resize" else []
    model = one_node(operator, inputs, known=known, **attributes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found: WideArray = dml.onnx.load(model)(*feed(inputs, known).values())["y0"]
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
