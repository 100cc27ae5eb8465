"""Graphs and their tensors: the values of operators one by one, and what is refused."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT16, FLOAT32, Device, Graph, GraphTensor, InvalidArgument, Model
from opendml.runtime.memory.host_array import Array
from tests.operators.normalizing import random_values
from tests.running import same_bits

SIZES = [2, 3, 8, 9]
Step = Callable[[Any], Any]

STEPS: dict[str, list[Step]] = {
    "one": [dml.activation_relu],
    "none": [],
    "identity": [dml.activation_identity],
    "chain of five": [
        dml.activation_leaky_relu,
        lambda x: dml.activation_linear(x, alpha=0.5, beta=-0.25),
        dml.activation_celu,
        lambda x: dml.activation_hard_sigmoid(x, alpha=0.3, beta=0.4),
        dml.activation_softsign,
    ],
    "normalization": [lambda x: dml.mean_variance_normalization1(x, axes=[2, 3])],
    "between activations": [
        lambda x: dml.activation_linear(x, alpha=3.0, beta=1.0),
        lambda x: dml.mean_variance_normalization1(x, axes=[1]),
        dml.activation_tanh,
    ],
    "two normalizations": [
        lambda x: dml.mean_variance_normalization1(x, axes=[2, 3]),
        lambda x: dml.mean_variance_normalization1(x, axes=[1], epsilon=0.1),
    ],
    "the same axes twice": [
        lambda x: dml.mean_variance_normalization1(x, axes=[3], epsilon=0.5),
        lambda x: dml.mean_variance_normalization1(x, axes=[3], epsilon=0.1),
    ],
    "five normalizations": [
        lambda x, axis=axis: dml.mean_variance_normalization1(  # type: ignore[misc]
            x, axes=[axis % 4], epsilon=0.01, fused_activation=dml.descs.ActivationElu(alpha=0.5)
        )
        for axis in range(5)
    ],
}


def through(value: Any, steps: Sequence[Step]) -> Any:
    for step in steps:
        value = step(value)
    return value


def compiled(build: Callable[[GraphTensor], GraphTensor], device: Device, type: Any = FLOAT32) -> Model:
    graph = Graph()
    return graph.compile({"y": build(graph.input("x", type, SIZES))}, device)


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_a_graph_computes_what_its_operators_compute_one_by_one(steps: list[Step], device: Device) -> None:
    x = random_values(0, SIZES, np.float32, 0.5)
    result = compiled(lambda tensor: through(tensor, steps), device)(x=x)["y"]
    np.testing.assert_allclose(result, through(x, steps), rtol=3e-6, atol=4e-6)


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_a_graph_of_float16_is_no_less_exact_than_its_operators(steps: list[Step], device: Device) -> None:
    x = random_values(0, SIZES, np.float16, 0.5)
    result = compiled(lambda tensor: through(tensor, steps), device, FLOAT16)(x=x)["y"]
    exact = through(x.astype(np.float32), steps)
    np.testing.assert_allclose(result.astype(np.float32), exact, rtol=2e-2, atol=1e-2)


def test_all_outputs_are_computed_also_those_that_others_need(device: Device) -> None:
    graph = Graph()
    x = graph.input("x", FLOAT32, SIZES)
    a = dml.activation_tanh(x)
    b = dml.mean_variance_normalization1(a, axes=[1])
    outputs = {"b": b, "a": a, "x": x, "c": dml.activation_relu(b), "again": a}
    values = random_values(0, SIZES, np.float32)
    results = graph.compile(outputs, device)(x=values)
    assert list(results) == list(outputs)
    tanh = dml.activation_tanh(values, device=device)
    normalized = dml.mean_variance_normalization1(tanh, axes=[1])
    assert same_bits(results["a"], tanh)
    assert same_bits(results["again"], tanh)
    assert same_bits(results["x"], values)
    np.testing.assert_allclose(results["b"], normalized, rtol=2e-6, atol=1e-6)
    assert same_bits(results["c"], np.maximum(results["b"], 0))


def test_one_tensor_may_be_used_for_several_inputs(device: Device) -> None:
    x = random_values(0, SIZES, np.float32)
    model = compiled(lambda t: dml.mean_variance_normalization1(t, t, t, axes=[2]), device)
    separate = dml.mean_variance_normalization1(x, x.copy(), x.copy(), axes=[2], device=device)
    assert same_bits(model(x=x)["y"], separate)


def test_constants_are_tensors_of_any_layout(device: Device) -> None:
    x = random_values(0, SIZES, np.float32)
    scale = random_values(1, [1, 3, 1, 1], np.float32)
    bias = random_values(2, SIZES[::-1], np.float32).T
    graph = Graph()
    tensors = [graph.input("x", FLOAT32, SIZES), graph.constant(scale), graph.constant(bias)]
    model = graph.compile({"y": dml.mean_variance_normalization1(*tensors, axes=[0, 2, 3])}, device)
    assert model.input_names == ("x",)
    immediate = dml.mean_variance_normalization1(x, scale, bias, axes=[0, 2, 3], device=device)
    assert same_bits(model(x=x)["y"], immediate)


def test_a_scale_may_come_from_another_normalization(device: Device) -> None:
    graph = Graph()
    x, s = graph.input("x", FLOAT32, SIZES), graph.input("s", FLOAT32, [1, 3, 8, 1])
    scale = dml.mean_variance_normalization1(s, axes=[2], fused_activation=dml.descs.ActivationSigmoid())
    y = dml.mean_variance_normalization1(x, scale, scale, axes=[1, 3])
    model = graph.compile({"y": y, "scale": scale}, device)
    values, factors = random_values(0, SIZES, np.float32), random_values(1, [1, 3, 8, 1], np.float32)
    results = model(x=values, s=factors)
    alone = dml.mean_variance_normalization1(
        factors, axes=[2], fused_activation=dml.descs.ActivationSigmoid()
    )
    np.testing.assert_allclose(results["scale"], alone, rtol=1e-6)
    expected = dml.mean_variance_normalization1(values, alone, alone, axes=[1, 3])
    np.testing.assert_allclose(results["y"], expected, rtol=3e-6, atol=1e-6)


def test_the_reference_runs_graphs_too() -> None:
    x = random_values(0, SIZES, np.float32)
    steps = STEPS["five normalizations"]
    results = [compiled(lambda t: through(t, steps), Device(kind))(x=x)["y"] for kind in ("cpu", "reference")]
    # One axis has two elements: where they are close, their rounding errors are divided by little.
    np.testing.assert_allclose(*results, rtol=3e-6, atol=1e-5)


def test_large_graphs_give_the_same_bits_on_any_number_of_threads() -> None:
    graph = Graph()
    x = graph.input("x", FLOAT32, [6, 5, 100, 170])
    y = through(x, STEPS["five normalizations"])
    values = random_values(0, x.sizes, np.float32)
    devices = [Device("cpu", threads=threads) for threads in (1, 2, 3, 8)]
    results = [graph.compile({"y": y}, device)(x=values)["y"] for device in devices]
    assert all(same_bits(result, results[0]) for result in results[1:])


def test_inputs_have_the_strides_that_they_were_declared_with(device: Device) -> None:
    graph = Graph()
    tensor = graph.input("x", FLOAT32, [4, 6], strides=[1, 4])
    model = graph.compile({"y": dml.activation_relu(tensor)}, device)
    x = random_values(0, [6, 4], np.float32).T
    assert same_bits(model(x=x)["y"], np.ascontiguousarray(np.maximum(x, 0)))
    with pytest.raises(
        InvalidArgument, match=r"x: strides \[24, 4\] bytes; the graph was compiled for \[4, 16\]"
    ):
        model.bind({"x": np.ascontiguousarray(x)}, {"y": np.empty_like(x, order="C")})


def test_a_bound_model_runs_again_on_what_its_arrays_hold(device: Device) -> None:
    model = compiled(lambda t: through(t, STEPS["two normalizations"]), device)
    x, y = random_values(0, SIZES, np.float32), np.zeros(SIZES, np.float32)
    bound = model.bind({"x": x}, {"y": y})
    for seed in (1, 2):
        x[...] = random_values(seed, SIZES, np.float32)
        bound.dispatch()
        assert same_bits(y, model(x=x)["y"])


def test_results_of_one_call_are_not_changed_by_the_next(device: Device) -> None:
    model = compiled(dml.activation_relu, device)
    first = model(x=np.ones(SIZES, np.float32))["y"]
    model(x=np.zeros(SIZES, np.float32))
    assert (first == 1).all()


def two_inputs() -> Model:
    graph = Graph()
    a, b = graph.input("a", FLOAT32, [3, 4]), graph.input("b", FLOAT32, [3, 4])
    return graph.compile({"y": dml.mean_variance_normalization1(a, b, axes=[1]), "z": dml.activation_relu(a)})


def ones(*sizes: int, type: Any = np.float32) -> Array:
    return np.ones(sizes or (3, 4), type)


def read_only() -> Array:
    result = ones()
    result.flags.writeable = False
    return result


INPUTS = {"a": ones(), "b": ones()}


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"a": ones()}, "inputs: b is missing; the graph has a, b"),
        ({}, "inputs: a is missing, b is missing; the graph has a, b"),
        (INPUTS | {"c": ones()}, "inputs: c is unknown; the graph has a, b"),
        (INPUTS | {"a": ones(4, 3)}, "a: sizes [4, 3]; [3, 4] are needed"),
        (INPUTS | {"b": ones(type=np.float16)}, "b: FLOAT16; FLOAT32 is needed; use b.astype(np.float32)"),
        (INPUTS | {"b": [1.0]}, "b: list; an array is needed"),
        (
            {"a": ones(), "B": ones()},
            "inputs: b is missing, B is unknown (did you mean b?); the graph has a, b",
        ),
    ],
)
def test_inputs_that_do_not_fit_are_refused_and_nothing_written(inputs: dict[str, Any], message: str) -> None:
    outputs = {"y": ones(), "z": ones()}
    with pytest.raises(InvalidArgument) as error:
        two_inputs().run(inputs, outputs)
    assert message in str(error.value)
    assert all((array == 1).all() for array in outputs.values())


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({"y": ones()}, "outputs: z is missing; the graph has y, z"),
        ({"y": ones(), "z": read_only()}, "graph.z: a read-only array"),
        ({"y": ones(), "z": ones(4, 3)}, "z: sizes [4, 3]; [3, 4] are needed"),
    ],
)
def test_outputs_that_do_not_fit_are_refused(outputs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        two_inputs().run(INPUTS, outputs)
    assert message in str(error.value)
    assert all((array == 1).all() for array in outputs.values())


def test_outputs_must_not_share_memory_with_anything() -> None:
    model = two_inputs()
    a, b, y, z = (ones() for _ in range(4))
    for inputs, outputs, message in [
        ({"a": a, "b": b}, {"y": a, "z": z}, "graph.y: shares memory with a"),
        ({"a": a, "b": b}, {"y": y, "z": y}, "graph.z: overlaps y; outputs must not share memory"),
    ]:
        with pytest.raises(InvalidArgument) as error:
            model.run(inputs, outputs)
        assert message in str(error.value)
    assert all((array == 1).all() for array in (a, b, y, z))


def test_a_graph_refuses_what_does_not_belong_to_it() -> None:
    graph, other = Graph(), Graph()
    x, foreign = graph.input("x", FLOAT32, [4]), other.input("x", FLOAT32, [4])
    array = np.ones(4, np.float32)
    normalize = dml.mean_variance_normalization1
    for build, message in [
        (lambda: graph.input("x", FLOAT32, [4]), "graph input 'x': already exists"),
        (lambda: graph.input(3, FLOAT32, [4]), "graph input 3: not a name"),  # type: ignore[arg-type]
        (lambda: graph.input("y", FLOAT32, []), "graph input 'y': 0 dimensions"),
        (lambda: graph.input("y", "float33", [2]), "graph input 'y'.data_type: 'float33'; must be"),
        (lambda: graph.input("y", FLOAT32, 2), "graph input 'y'.sizes: 2; must be"),  # type: ignore[arg-type]
        (lambda: graph.input("y", FLOAT32, [2] * 9), "9 dimensions"),
        (lambda: graph.constant([1.0]), "graph constant: list; a NumPy array is needed"),  # type: ignore[arg-type]
        (lambda: graph.constant(np.array(["a"])), "graph constant: elements of"),
        (lambda: graph.compile({}), "outputs: none; a model computes at least one tensor"),
        (lambda: graph.compile({"y": foreign}), "outputs['y']: not a tensor of this graph"),
        (lambda: graph.compile({"y": array}), "outputs['y']: not a tensor of this graph"),  # type: ignore[dict-item]
        (lambda: graph.compile({"y": x}, "gpu"), "device: 'gpu'"),
        (lambda: normalize(x, foreign, axes=[0]), "this graph; it is one of another graph"),
        (lambda: normalize(x, [1.0], axes=[0]), "mean_variance_normalization1.scale: list; an array is"),  # type: ignore[misc]
        (lambda: dml.activation_relu(x, out=x), "out and device belong to the compiled graph"),
        (lambda: dml.activation_relu(x, device="cpu"), "out and device belong to the compiled graph"),
        (lambda: normalize(x, axes=[1]), "mean_variance_normalization1.axes"),
    ]:
        with pytest.raises(InvalidArgument) as error:
            build()
        assert message in str(error.value)


def test_operators_of_a_graph_are_checked_at_its_level() -> None:
    graph = Graph(feature_level="2_0")
    x = graph.input("x", FLOAT32, [1, 1, 2, 2])
    with pytest.raises(InvalidArgument, match="activation_celu"):
        dml.activation_celu(x)
    assert dml.activation_relu(x).sizes == (1, 1, 2, 2)


def test_types_change_within_a_graph_and_numbers_become_constants(device: Device) -> None:
    graph = Graph()
    x, row = graph.input("x", FLOAT32, [2, 3]), graph.input("row", FLOAT32, [1, 3])
    condition = dml.element_wise_logical_less_than(dml.element_wise_add(x, row), 1.0)
    assert (condition.data_type, condition.sizes) == (dml.UINT8, (2, 3))
    whole = dml.cast(dml.cast(x, output_type=dml.INT16), output_type=FLOAT32)
    result = dml.element_wise_if(condition, whole, dml.element_wise_multiply(x, -1.0))
    model = graph.compile({"y": result, "condition": condition}, device=device)
    values, added = np.float32([[-2.5, 0.25, 3], [1.75, -0.5, 9]]), np.float32([[1, 0, -4]])
    outputs = model(x=values, row=added)
    expected = values + added < 1
    assert same_bits(outputs["condition"], expected.astype(np.uint8))
    assert same_bits(outputs["y"], np.where(expected, np.trunc(values) + np.float32(0), -values))


@pytest.mark.parametrize(
    "function",
    [
        dml.activation_celu,
        dml.activation_gelu,
        dml.activation_sigmoid,
        dml.activation_softplus,
        dml.element_wise_exp,
        dml.element_wise_log,
        dml.element_wise_sinh,
        dml.element_wise_tanh,
    ],
    ids=lambda function: function.__name__,
)
@pytest.mark.parametrize("bits", [0x7FC00000, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00155], ids=hex)
def test_nan_of_any_bits_stays_nan(function: Callable[..., Any], bits: int, device: Device) -> None:
    graph = Graph()
    x = graph.input("x", FLOAT32, [40])
    model = graph.compile({"y": dml.cast(function(x), output_type=FLOAT16)}, device)
    assert np.isnan(model(x=np.full(40, bits, np.uint32).view(np.float32))["y"]).all()


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_tensor_is_reinterpreted_in_other_sizes_and_strides(device: str) -> None:
    graph = Graph()
    x = dml.activation_relu(graph.input("x", FLOAT32, [2, 3, 4]))
    row = graph.input("row", FLOAT32, [4])
    outputs = {
        "flat": x.reinterpret([24]),
        "matrix": dml.gemm(x.reinterpret([6, 4]), x.reinterpret([4, 6], strides=[1, 4])),
        "transposed": x.reinterpret([4, 3, 2], strides=[1, 4, 12]),
        "repeated": dml.element_wise_add(x, row.reinterpret([2, 3, 4], strides=[0, 0, 1])),
        "first": x.reinterpret([2, 2], strides=[4, 1]),
    }
    x_values, row_values = random_values(1, [2, 3, 4], np.float32), random_values(2, [4], np.float32)
    results = graph.compile(outputs, device=device)(x=x_values, row=row_values)
    relu = x_values.clip(0)
    flat = relu.reshape(6, 4)
    assert same_bits(results["flat"], relu.reshape(24))
    assert np.allclose(results["matrix"], flat @ flat.T, rtol=1e-5, atol=1e-5)
    assert same_bits(results["transposed"], np.ascontiguousarray(relu.T))
    assert same_bits(results["repeated"], relu + row_values)
    assert same_bits(results["first"], relu[0, :2, :2])


@pytest.mark.parametrize(
    ("sizes", "strides", "message"),
    [
        ([5], None, r"reinterpret: sizes \[5\]; must have as many elements as \[2, 3\]"),
        ([7], None, r"reinterpret: sizes \[7\]; must have as many elements as \[2, 3\]"),
        ([2, 2], [4, 3], r"sizes \[2, 2\] with strides \[4, 3\]; must stay within the elements of \[2, 3\]"),
        ([], None, r"reinterpret.*0 dimensions"),
        ([0, 6], None, r"reinterpret.*0"),
        ([-1], None, r"reinterpret.*-1"),
        ([6], [1, 1], r"reinterpret.*strides"),
    ],
)
def test_a_reinterpretation_stays_within_the_tensor(sizes: Any, strides: Any, message: str) -> None:
    x = Graph().input("x", FLOAT32, [2, 3])
    with pytest.raises(InvalidArgument, match=message):
        x.reinterpret(sizes, strides=strides)


SOURCES: dict[str, Callable[[Graph, Array], GraphTensor]] = {
    "input": lambda graph, x: graph.input("x", FLOAT32, [2, 3]),
    "strided input": lambda graph, x: graph.input("x", FLOAT32, [2, 3], strides=[1, 2]),
    "constant": lambda graph, x: graph.constant(x),
    "sum": lambda graph, x: graph.input("x", FLOAT32, [2, 3]) + 0.0,
    "view": lambda graph, x: graph.input("x", FLOAT32, [3, 2]).T,
}
FORMS = [
    (np.int32, [2, 3], None),
    (np.int32, [3, 2], [1, 3]),
    (np.uint8, [2, 12], None),
    (np.uint16, [3, 4], [4, 1]),
    (np.uint16, [2, 2], [0, 5]),
    (np.float64, [3], None),
]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("dtype", "sizes", "strides"), FORMS)
def test_bytes_are_reinterpreted_as_another_type(
    source: str, dtype: Any, sizes: list[int], strides: list[int] | None, device: Device
) -> None:
    x = random_values(1, [2, 3], np.float32)
    graph = Graph()
    read = SOURCES[source](graph, x).reinterpret(dtype, sizes, strides)
    assert (read.dtype, list(read.sizes)) == (dtype, sizes)
    model = graph.compile({"y": dml.element_wise_identity(read)}, device)
    given = {"input": x, "sum": x, "strided input": np.asfortranarray(x), "view": np.ascontiguousarray(x.T)}
    got = model(x=given[source])["y"] if source in given else model()["y"]
    bytes_ = x.reshape(-1).view(dtype)
    if strides is None:
        expected = bytes_.reshape(sizes)
    else:
        steps = [stride * bytes_.itemsize for stride in strides]
        expected = np.lib.stride_tricks.as_strided(bytes_, sizes, steps)
    assert same_bits(got, expected)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ((dml.UINT8, [5]), r"\[5\] of UINT8 are 5 bytes; <GraphTensor FLOAT32 \[2, 3\]> has 24"),
        ((dml.FLOAT64,), r"\[2, 3\] of FLOAT64 are 48 bytes; <GraphTensor FLOAT32 \[2, 3\]> has 24"),
        ((dml.INT32, [2, 2], [4, 3]), r"\[2, 2\] of INT32 are 32 bytes; <GraphTensor .*> has 24"),
        ((dml.UINT4, [48]), "reinterpret: FLOAT32 as UINT4; elements of 4 bits share no bytes here"),
        (("float33",), "reinterpret.data_type: 'float33'; must be a TensorDataType"),
        ((6,), "reinterpret.sizes: 6; must be a sequence of whole numbers"),
    ],
)
def test_a_reinterpretation_as_another_type_has_its_bytes(form: tuple[Any, ...], message: str) -> None:
    x = Graph().input("x", FLOAT32, [2, 3])
    with pytest.raises(InvalidArgument, match=message):
        x.reinterpret(*form)


@pytest.mark.parametrize(("given", "named"), [((), {}), (([6], [1], [1]), {}), (([6],), {"size": 3})])
def test_a_reinterpretation_takes_a_type_sizes_and_strides(given: tuple[Any, ...], named: Any) -> None:
    x = Graph().input("x", FLOAT32, [2, 3])
    with pytest.raises(TypeError, match=r"reinterpret\(\) takes a type, sizes or both, and then strides"):
        x.reinterpret(*given, **named)
    with pytest.raises(TypeError, match=r"reinterpret\(\) got sizes by position and as a keyword"):
        x.reinterpret([6], sizes=[6])


def test_operators_without_inputs_are_nodes_of_a_graph(device: Device) -> None:
    graph = Graph()
    half = dml.fill_value_constant(value_data_type=FLOAT32, value=0.5, sizes=[2, 3], graph=graph)
    counted = dml.fill_value_sequence(
        value_data_type=FLOAT32, value_start=1, value_delta=2, sizes=[3], graph=graph
    )
    unit = dml.diagonal_matrix(offset=0, value=1.0, output_type=FLOAT32, sizes=[1, 1, 3, 3], graph=graph)
    limits = {"diagonal_fill_begin": 1, "diagonal_fill_end": 2, "sizes": [2, 3]}
    band = dml.diagonal_matrix1(value_data_type=FLOAT32, value=2, graph=graph, **limits)
    found = graph.compile({"sum": half + counted, "unit": unit, "band": band}, device)()
    assert found["band"].tolist() == [[0, 2, 0], [0, 0, 2]]
    assert found["sum"].tolist() == [[1.5, 3.5, 5.5], [1.5, 3.5, 5.5]]
    assert same_bits(found["unit"], np.eye(3, dtype=np.float32)[None, None])
    with pytest.raises(InvalidArgument, match=r"fill_value_constant\.graph: 3; a Graph is needed"):
        dml.fill_value_constant(value_data_type=FLOAT32, value=0.5, sizes=[2, 3], graph=3)
    with pytest.raises(InvalidArgument, match="device belong to the compiled graph"):
        dml.fill_value_constant(value_data_type=FLOAT32, value=1, sizes=[2], graph=graph, device="cpu")


def test_what_fills_a_tensor_has_its_sizes_for_all_operators(device: Device) -> None:
    graph = Graph()
    half = dml.fill_value_constant(value_data_type=FLOAT32, value=0.5, sizes=[2, 3], graph=graph)
    summed = half + graph.input("x", FLOAT32, [3])
    outputs = {
        "reduced": dml.reduce(half, function="SUM", axes=[0]),
        "reduced sum": dml.reduce(summed, function="SUM", axes=[0]),
        "scanned": dml.cumulative_summation(summed, axis=0),
        "joined": dml.join([half, summed], axis=0),
        "viewed": summed[1],
        "product": half @ np.ones((3, 2), np.float32),
        "bits": half.reinterpret(dml.INT32),
    }
    x, filled = np.array([1, 2, 3], np.float32), np.full((2, 3), 0.5, np.float32)
    expected = {
        "reduced": filled.sum(0, keepdims=True),
        "reduced sum": (filled + x).sum(0, keepdims=True),
        "scanned": np.cumsum(filled + x, 0),
        "joined": np.concatenate([filled, filled + x]),
        "viewed": (filled + x)[1],
        "product": filled @ np.ones((3, 2), np.float32),
        "bits": filled.view(np.int32),
    }
    found = graph.compile(outputs, device)(x=x)
    for name, values in expected.items():
        assert same_bits(found[name], values), name


INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": lambda a, b: a << (b & 7),
    ">>": lambda a, b: a >> (b & 7),
    "~": lambda a, b: ~a,
    "number %": lambda a, b: 7 % a,
    "number &": lambda a, b: 6 & b,
    "| number": lambda a, b: a | 9,
    "number ^": lambda a, b: 5 ^ a,
    "<< number": lambda a, b: a << 3,
    "number >>": lambda a, b: 200 >> (b & 7),
}


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.int32])
@pytest.mark.parametrize("name", INTEGERS)
def test_operators_of_integers_are_numpys(name: str, dtype: Any, device: Device) -> None:
    a = np.array([[7, 100, 3], [250, 1, 64]], np.uint8).astype(dtype)
    b = np.array([[2, 9, 5], [3, 77, 6]], np.uint8).astype(dtype)
    if dtype == np.int32:
        if ">" in name or "<" in name:
            pytest.skip("DirectML shifts unsigned integers alone")
        a = -a
    graph = Graph()
    inputs = graph.input("a", dtype, a.shape), graph.input("b", dtype, b.shape)
    got = graph.compile({"y": INTEGERS[name](*inputs)}, device)(a=a, b=b)["y"]
    assert same_bits(got, INTEGERS[name](a, b).astype(dtype))


def test_the_remainder_of_floats_has_the_sign_of_the_divisor(device: Device) -> None:
    x = np.array([-5.5, 5.5, -3, 3], np.float32)
    graph = Graph()
    t = graph.input("x", FLOAT32, [4])
    found = graph.compile({"y": t % 2.0, "z": t % -2.0}, device)(x=x)
    assert same_bits(found["y"], x % np.float32(2))
    assert same_bits(found["z"], x % np.float32(-2))


X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ROW = np.arange(1, 5, dtype=np.float32)

OPERATORS: dict[str, Callable[[Any], Any]] = {
    "+ array": lambda t: t + ROW,
    "array +": lambda t: ROW + t,
    "- tensor": lambda t: t - t[1:],
    "number -": lambda t: 1 - t,
    "* twice": lambda t: 2 * t * ROW,
    "/ number": lambda t: t / 2,
    "number /": lambda t: 1 / (t + 1),
    "** number": lambda t: t**2,
    "number **": lambda t: 2 ** (t / 8),
    "** array": lambda t: (t + 1) ** (ROW / 4),
    "NumPy's number *": lambda t: np.float32(3) * t,
    "-": lambda t: -t,
    "+": lambda t: +t,
    "abs": lambda t: abs(t - 3),
    "==": lambda t: (t == 3) * np.uint8(1),
    "!=": lambda t: (t != 3) * np.uint8(1),
    "<": lambda t: (t < ROW) * np.uint8(1),
    "array <": lambda t: operator.lt(ROW, t) * np.uint8(1),
    "<=": lambda t: (t <= 5) * np.uint8(1),
    ">=": lambda t: (t >= 5) * np.uint8(1),
    "matrix on the right": lambda t: t @ np.ones((4, 5), np.float32),
    "matrices on the right": lambda t: t @ np.arange(40, dtype=np.float32).reshape(2, 4, 5),
    "one of several matrices": lambda t: t[:1] @ np.arange(40, dtype=np.float32).reshape(2, 4, 5),
    "five dimensions": lambda t: t[None, :, None] @ t.reshape(2, 1, 4, 3)[:, None],
    "matrix on the left": lambda t: np.arange(15, dtype=np.float32).reshape(5, 3) @ t,
    "column": lambda t: t @ ROW,
    "row": lambda t: np.ones(3, np.float32) @ t,
    "integer": lambda t: t[0],
    "integers at the end": lambda t: t[..., -1],
    "steps": lambda t: t[1, ..., ::-2],
    "backwards": lambda t: t[:, 2:0:-1, ::3],
    "new dimensions": lambda t: t[None, :, 1:, None],
    "all": lambda t: t[...],
    "reshape": lambda t: t.reshape(6, -1),
    "reshape by a list": lambda t: t.reshape([24]),
    "transpose": lambda t: t.transpose(2, 0, 1) * ROW[:, None, None],
    "transpose by the end": lambda t: t.transpose((0, -1, 1)),
    "T": lambda t: t.T,
}


def test_operators_indices_and_methods_are_those_of_arrays(device: Device) -> None:
    graph = Graph()
    t = graph.input("x", FLOAT32, X.shape)
    model = graph.compile({name: build(t) for name, build in OPERATORS.items()}, device)
    results = model(X)
    for name, build in OPERATORS.items():
        expected = build(X)
        assert results[name].shape == expected.shape, name
        assert results[name].dtype == expected.dtype, name
        np.testing.assert_allclose(results[name], expected, rtol=1e-6, err_msg=name)


def test_slices_of_every_kind_are_numpys() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(4, 5, 6)).astype(np.float32)
    graph = Graph()
    t = graph.input("x", FLOAT32, x.shape)
    wanted: dict[str, Any] = {}
    while len(wanted) < 30:
        index = tuple(_index(random, size) for size in x.shape)
        if x[index].size and x[index].ndim:
            wanted[str(index)] = index
    results = graph.compile({name: t[index] for name, index in wanted.items()})(x)
    for name, index in wanted.items():
        assert same_bits(results[name], np.ascontiguousarray(x[index])), name


def _index(random: np.random.Generator, size: int) -> Any:
    if random.random() < 0.3:
        return int(random.integers(-size, size))
    ends = [None if random.random() < 0.3 else int(random.integers(-size - 2, size + 2)) for _ in range(2)]
    return slice(*ends, int(random.choice([-3, -2, -1, 1, 2, 3])))


def test_a_matrix_product_at_an_old_level_has_its_four_dimensions() -> None:
    graph = Graph(feature_level="2_0")
    t = graph.input("x", FLOAT32, [1, 2, 3, 4])
    result = t.reshape(1, 1, 6, 4) @ np.ones((1, 1, 4, 2), np.float32)
    assert result.shape == (1, 1, 6, 2)


def test_tensors_say_what_they_are_as_arrays_do() -> None:
    t = Graph().input("x", dml.FLOAT16, [2, 3])
    assert (t.shape, t.ndim, t.dtype) == ((2, 3), 2, np.dtype(np.float16))


def test_tensors_are_keys_and_equal_to_nothing_else() -> None:
    t = Graph().input("x", FLOAT32, [2])
    assert {t: 1}[t] == 1
    assert t in [t]
    assert (t == None) is False  # noqa: E711 - what a caller may write
    assert (t != "x") is True


def _tensor() -> GraphTensor:
    return Graph().input("x", FLOAT32, [2, 3, 4])


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (bool, "truth value of a tensor of a graph is not known before the graph runs"),
        (len, r"has no len\(\); \.shape has its sizes"),
        (iter, "cannot be iterated over; dml.split makes several"),
        (np.asarray, "has no values before the graph is compiled and called"),
        (lambda t: t + "a", "unsupported operand"),
        (lambda t: t + 1j, "unsupported operand"),
        (lambda t: t @ 2, "unsupported operand"),
    ],
)
def test_what_a_symbol_cannot_do_is_an_error_of_types(use: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        use(_tensor())


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda t: t + np.ones(4), "element_wise_add.b: FLOAT64; must have the data type of a, FLOAT32"),
        (
            lambda t: t + np.ones(3, np.float32),
            "element_wise_add.b: sizes [3]; must be those of a, [2, 3, 4], or 1",
        ),
        (lambda t: t + _tensor(), "element_wise_add.b: not a tensor of this graph; it is one of another"),
        (lambda t: t[2], "index of dimension 0: 2; -2 to 1 are there"),
        (lambda t: t[0, 0, 0], "no dimension is left"),
        (lambda t: t[0, 0, 0, 0], "4 indices of a tensor with 3 dimensions"),
        (lambda t: t[..., ...], "one ... at most"),
        (lambda t: t[1:1], "slice(1, 1, None) selects nothing of 2 elements"),
        (lambda t: t[::0], "slice step cannot be zero"),
        (lambda t: t["a":], "index of dimension 0: slice('a', None, None)"),
        (lambda t: t[t], "dml.gather takes tensors of them"),
        (lambda t: t[(None,) * 6], "9 dimensions"),
        (lambda t: t.reshape(5, -1), "reshape: [5, -1]; sizes of 24 elements, as [2, 3, 4] has"),
        (lambda t: t.reshape(-1, -1), "one of them may be -1"),
        (lambda t: t.reshape("a"), "reshape: ('a',); whole numbers are needed"),
        (lambda t: t.permute(0, 1), "permute: [0, 1]; each of the 3 dimensions once is needed"),
        (lambda t: t.permute(0, 1, 1), "each of the 3 dimensions once"),
        (lambda t: t @ t, "@ of sizes [2, 3, 4] and [2, 3, 4]: 4 columns and 3 rows"),
        (lambda t: t @ np.ones((3, 4, 5), np.float32), "[2] and [3] matrices cannot be repeated"),
        (lambda t: t[0, 0] @ ROW, "a number, which is no tensor of DirectML"),
        (lambda t: dml.cast(t, output_type="INT32") / 2, "/ of INT32: a quotient of integers is a float"),
        (lambda t: dml.cast(t, output_type="INT32") + 1.5, "1.5; a whole number that INT32 holds"),
        (lambda t: -dml.cast(t, output_type="UINT8"), "element_wise_negate.input: UINT8"),
        (lambda t: dml.cast(t, output_type="INT32") @ np.ones((4, 1), np.int32), "gemm.a: INT32"),
    ],
)
def test_what_directml_cannot_say_is_a_clear_error(use: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        use(_tensor())
    assert message in str(error.value)


def test_graphs_repeat_sizes_as_calls_do(device: Device) -> None:
    calls: list[Callable[[Any, Any], Any]] = [
        dml.element_wise_add,
        lambda x, row: dml.element_wise_if(x < row, row, x),
        lambda x, row: dml.mean_variance_normalization1(x, row, row[None], axes=[2]),
        lambda x, row: dml.mean_variance_normalization2(x, row, row, axes=[1, 2], use_variance=True),
        lambda x, row: dml.mean_variance_normalization1(x, 0.5, None, axes=[0]),
    ]
    graph = Graph()
    x, row = graph.input("x", FLOAT32, X.shape), graph.input("row", FLOAT32, ROW.shape)
    model = graph.compile({str(number): call(x, row) for number, call in enumerate(calls)}, device)
    results = model(X, ROW)
    for number, call in enumerate(calls):
        expected = np.where(X < ROW, ROW, X) if number == 1 else call(X, ROW)
        np.testing.assert_allclose(results[str(number)], expected, rtol=1e-6, atol=1e-6)


def test_a_row_is_not_taken_for_statistics_of_channels() -> None:
    for x in (X, _tensor()):
        with pytest.raises(InvalidArgument, match=r"batch_normalization\.mean: 1 dimension"):
            dml.batch_normalization(x, ROW, ROW, ROW, ROW, epsilon=0.1)
