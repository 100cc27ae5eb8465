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
from opendml import onnx as dml_onnx
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
    run_by_onnxruntime,
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


def test_a_threshold_that_is_left_out_is_that_of_onnx() -> None:
    """ONNX Runtime takes 0 for it, as docs/deviations.md says."""
    inputs = _inputs("RNN", 1)
    default, one, zero = (
        one_node("RNN", inputs, opset=14, hidden_size=_HIDDEN, activations=["ThresholdedRelu"], **alpha)
        for alpha in ({}, {"activation_alpha": [1.0]}, {"activation_alpha": [0.0]})
    )
    given = feed(inputs)
    np.testing.assert_array_equal(computed(default, given)[0], computed(one, given)[0])
    np.testing.assert_allclose(run_by_onnxruntime(one, given)[0], computed(one, given)[0], 1e-5, 1e-5)
    np.testing.assert_allclose(run_by_onnxruntime(default, given)[0], computed(zero, given)[0], 1e-5, 1e-5)


def test_lstm_clips_and_couples_its_gates() -> None:
    _check_recurrent("LSTM", _inputs("LSTM", given=7), clip=0.5, input_forget=1)


@pytest.mark.parametrize("seed", range(24))
def test_gates_are_clipped_as_onnxruntime_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    operator = ["RNN", "GRU", "LSTM"][seed % 3]
    direction = ["forward", "reverse", "bidirectional"][seed // 3 % 3]
    directions = 2 if direction == "bidirectional" else 1
    sizes: dict[int, tuple[int, ...]] = {0: (_STEPS, _BATCH, _INPUT)}
    sizes |= {1: (directions, _GATES[operator] * _HIDDEN, _INPUT)}
    sizes |= {2: (directions, _GATES[operator] * _HIDDEN, _HIDDEN), 3: (directions, 2 * sizes[1][1])}
    sizes |= dict.fromkeys((5, 6) if operator == "LSTM" else (5,), (directions, _BATCH, _HIDDEN))
    inputs: list[Array | None] = [
        rng.standard_normal(sizes[number]).astype(np.float32)
        if number in sizes and (number < 3 or rng.random() < 0.6)
        else None
        for number in range(7 if operator == "LSTM" else 6)
    ]
    if rng.random() < 0.6:
        inputs[4] = rng.integers(1, _STEPS + 1, _BATCH).astype(np.int32)
    options: dict[str, Any] = {"clip": float(rng.uniform(0.1, 1.5)), "direction": direction}
    if operator == "GRU":
        options["linear_before_reset"] = int(rng.integers(2))
    if operator != "LSTM" and rng.random() < 0.4:
        options["activations"] = [
            str(each) for each in rng.choice(["Relu", "Tanh", "HardSigmoid"], directions)
        ]
        if operator == "GRU":
            options["activations"] = [each for one in options["activations"] for each in ("Sigmoid", one)]
    while inputs[-1] is None:
        inputs.pop()
    _check_recurrent(operator, inputs, **options)


@pytest.mark.parametrize("case", range(8))
def test_lstm_with_quantized_matrices(case: int) -> None:
    """They agree with ONNX Runtime's LSTM of floats, and with its quantized one within its own error."""
    rng = np.random.default_rng(case)
    type, by_column, full = [np.uint8, np.int8][case % 2], bool(case // 2 % 2), bool(case // 4)
    directions = 2 if full else 1
    limits = np.iinfo(type)
    steps, batch, size, hidden = 6, 3, 8, 5
    x = rng.standard_normal((steps, batch, size)).astype(np.float32)
    matrices = [
        rng.integers(limits.min, limits.max + 1, (directions, rows, 4 * hidden)).astype(type)
        for rows in (size, hidden)
    ]
    sizes = (directions, 4 * hidden) if by_column else (directions,)
    scales = [rng.uniform(0.002, 0.006, sizes).astype(np.float32) for _ in range(2)]
    # ONNX Runtime takes no zero points of columns.
    zeros = [np.full(sizes, limits.max // 2 if type == np.uint8 else 0).astype(type) for _ in range(2)]
    rest: list[Array | None] = [None] * 5
    if full:
        rest[0] = rng.standard_normal((directions, 8 * hidden)).astype(np.float32)
        rest[1] = np.array([6, 2, 4], np.int32)
        rest[2:4] = (rng.uniform(-1, 1, (directions, batch, hidden)).astype(np.float32) for _ in range(2))
    numbered = [scales[0], zeros[0], scales[1], zeros[1]]
    inputs = [x, *matrices, *rest, *numbered]
    options: dict[str, Any] = {"hidden_size": hidden, "direction": "bidirectional" if full else "forward"}
    if full:
        options["clip"] = 1.5
    known = [1, 2, 8, 9, 10, 11]
    model = one_node("DynamicQuantizeLSTM", inputs, 3, 14, "com.microsoft", known, **options)
    found = computed(model, feed(inputs, known))
    floats = [
        ((each.astype(np.float32) - _line(zero)) * _line(scale)).swapaxes(1, 2).copy()
        for each, scale, zero in zip(matrices, scales, zeros, strict=True)
    ]
    exact = [x, *floats, *rest]
    while exact[-1] is None:
        exact.pop()
    assert_same(found, run_by_onnxruntime(one_node("LSTM", exact, 3, 14, **options), feed(exact)))
    assert_same(found, run_by_onnxruntime(model, feed(inputs, known)), atol=0.03)


def _line(numbers: Array) -> Array:
    return (numbers if numbers.ndim == 2 else numbers[:, None])[:, None].astype(np.float32)


def test_clipped_networks_take_other_layouts_and_types() -> None:
    inputs = _inputs("GRU", given=6)
    turned = [
        each if each is None or number in (1, 2, 3, 4) else each.swapaxes(0, 1).copy()
        for number, each in enumerate(inputs)
    ]
    options: dict[str, Any] = {"outputs": 2, "opset": 14, "hidden_size": _HIDDEN, "clip": 0.4}
    y, state = computed(one_node("GRU", inputs, **options), feed(inputs))
    by_batch = computed(one_node("GRU", turned, layout=1, **options), feed(turned))
    np.testing.assert_allclose(by_batch[0], y.transpose(2, 0, 1, 3), atol=1e-6)
    np.testing.assert_allclose(by_batch[1], state.swapaxes(0, 1), atol=1e-6)
    halves = [each if each is None or each.dtype == np.int32 else each.astype(np.float16) for each in inputs]
    half = computed(one_node("GRU", halves, **options), feed(halves))
    assert half[0].dtype == np.float16
    np.testing.assert_allclose(half[0], y, atol=2e-3)


def test_one_clipped_network_serves_many_lengths() -> None:
    _, w, r, b = _inputs("GRU", given=4)
    node = helper.make_node("GRU", ["x", "w", "r", "b"], ["y", "h"], hidden_size=_HIDDEN, clip=0.4)
    given = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["steps", "batch", _INPUT])]
    known = [onnx.numpy_helper.from_array(array, name) for name, array in {"w": w, "r": r, "b": b}.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in "yh"]
    model = helper.make_model(
        helper.make_graph([node], "g", given, outputs, known),
        opset_imports=[helper.make_opsetid("", 14)],
        ir_version=10,
    )
    loaded = dml_onnx.load(model)
    for steps, batch in ((4, 3), (7, 3), (5, 2), (9, 6)):
        x = numbers([steps, batch, _INPUT], seed=steps)
        for own, real in zip(loaded.run({"x": x}).values(), run_by_onnxruntime(model, {"x": x}), strict=True):
            np.testing.assert_allclose(own, real, atol=1e-6)
    assert loaded._tracer.traced_count <= 6


def test_a_peephole_of_the_output_gate_sees_the_cell_after_the_step() -> None:
    inputs = [*_inputs("LSTM"), *[None] * 4, numbers([1, 3 * _HIDDEN])]
    model = one_node("LSTM", inputs, outputs=3, opset=14, hidden_size=_HIDDEN)
    assert_as_onnxruntime(model, feed(inputs), evaluator=True)


@pytest.mark.parametrize(
    ("operator", "options"),
    [
        ("GRU", {"clip": 0.5, "activations": ["Mish", "Tanh"]}),
        ("RNN", {"clip": 0.5, "activations": ["Affine"]}),
        ("RNN", {"clip": 0.5, "activations": ["Tanh", "Tanh"]}),
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
