"""Saved models: what is read computes what was written, bit by bit, and no file does harm."""

from __future__ import annotations

import copy
import hashlib
import json
import multiprocessing
import pickle
import random
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import (
    FLOAT32,
    CompiledOperator,
    ConstantNode,
    Device,
    Error,
    Graph,
    GraphDesc,
    InputEdge,
    IntermediateEdge,
    InvalidArgument,
    Model,
    OperatorNode,
    OutputEdge,
    TensorDesc,
    Unsupported,
    descs,
)
from opendml.json_files.node import JsonNode
from opendml.runtime.graphs.steps import ConstantStep
from opendml.runtime.memory.host_array import Array
from opendml.runtime.saved.container import _HEAD, MAGIC, VERSION
from opendml.runtime.saved.read import loaded
from opendml.runtime.saved.values import desc_from_json, to_json
from tests.for_each import for_each
from tests.running import same_bits
from tests.runtime.test_graph import OPERATORS, X
from tests.spec.valid_descs import NAMES, valid_desc


def saved(model: Model | CompiledOperator, folder: Path, device: Device | str | None = None) -> Any:
    """The model, written and read."""
    path = folder / "model.dml"
    model.save(path)
    return dml.load(path, device)


def same(a: Mapping[str, Array], b: Mapping[str, Array]) -> bool:
    return list(a) == list(b) and all(same_bits(a[name], b[name]) for name in a)


def test_what_tensors_of_graphs_do_is_saved(tmp_path: Path) -> None:
    graph = Graph()
    t, _ = graph.input("x", FLOAT32, X.shape), graph.input("unused", "int8", [2], strides=[3])
    dml.activation_relu(t)  # which no output needs
    model = graph.compile({name: build(t) for name, build in OPERATORS.items()})
    inputs = {"x": X, "unused": np.zeros(6, np.int8)[::3]}
    expected = model(**inputs)
    read = saved(model, tmp_path)
    assert repr(read) == repr(model)
    assert same(read(**inputs), expected)
    assert saved(read, tmp_path)._saved() == model._saved()


def every_kind_of_call(t: Any, image: Any) -> dict[str, Any]:
    """Calls with lists, several outputs, types, sizes, names of members and activations of their own."""
    top = dml.top_k1(t, axis=-1, k=2, axis_direction="DECREASING")
    pooled = dml.max_pooling2(image, window_size=[2, 2], strides=[2, 2], output_indices=True)
    first, second = dml.split(t, axis=1, sizes=[1, 2])
    weights = np.linspace(-1, 1, 2 * 1 * 4 * 4 * 4, dtype=np.float32)[: 1 * 2 * 16 * 4].reshape(1, 2, 16, 4)
    lstm = dml.lstm(
        t[None],
        weights[:, :1],
        weights[:, 1:],
        activation_descs=[descs.ActivationSigmoid(), descs.ActivationTanh(), descs.ActivationTanh()],
        direction="FORWARD",
        output_single=True,
    )
    return {
        "values": top.output_value,
        "positions": top.output_index,
        "pooled": pooled.output,
        "indices": pooled.output_indices,
        "joined": dml.join([second, first, np.ones((2, 1, 4), np.float32)], axis=1),
        "lstm": lstm.output_single,
        "cast": dml.cast(t * 3, output_type="INT16"),
        "scaled": dml.element_wise_exp(t, scale_bias=dml.ScaleBias(0.25, float("-inf"))),
        "resampled": dml.resample1(image, scales=[1, 1, 1.5, 0.5], interpolation_mode="LINEAR"),
        "normalized": dml.mean_variance_normalization1(
            t, axes=np.array([-1]), fused_activation=descs.ActivationElu(alpha=0.5)
        ),
        "clipped": dml.element_wise_clip(t, min=float("-inf"), max=1.5),
    }


def test_every_kind_of_call_is_saved(tmp_path: Path) -> None:
    image = np.random.default_rng(0).normal(size=(1, 2, 6, 8)).astype(np.float32)
    graph = Graph()
    t, i = graph.input("t", FLOAT32, X.shape), graph.input("image", FLOAT32, image.shape)
    model = graph.compile(every_kind_of_call(t, i))
    read = saved(model, tmp_path)
    assert same(read(X / 10, image), model(X / 10, image))


def test_lists_are_saved_as_they_were_and_changed_constants_are_refused(tmp_path: Path) -> None:
    axes, scale = [1], np.array([1, 2, 3, 4], np.float32)
    graph = Graph()
    t = graph.input("t", FLOAT32, [2, 4])
    normalized: Any = dml.mean_variance_normalization1(t, scale, axes=axes)
    model = graph.compile({"y": normalized, "z": t @ graph.constant(np.eye(4, dtype=np.float32)[::-1].T)})
    expected = model(X[:, 0])
    axes[0] = 0
    assert same(saved(model, tmp_path)(X[:, 0]), expected)
    scale[1] = 9
    with pytest.raises(
        InvalidArgument, match=r"^constant: the float32 array of sizes \[4\] was written to after"
    ):
        model.save(tmp_path / "changed.odml")
    assert same(model(X[:, 0]), expected)


def test_a_model_keeps_no_copy_of_its_constants_for_saving() -> None:
    weights = np.ones((64, 64), np.float32)
    graph = Graph()
    model = graph.compile({"y": graph.input("t", FLOAT32, [2, 64]) @ graph.constant(weights)})
    assert model._data is not None
    (step,) = (each for each in model._data.steps if isinstance(each, ConstantStep))
    assert np.shares_memory(step.array, weights)


def test_constants_of_every_type_and_order_are_saved(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    arrays: dict[str, Array] = {
        "columns": np.asfortranarray(X[0]),
        "backwards": X[:, ::-1, ::-2],
        "repeated": np.broadcast_to(X[0, 0], (3, 4)),
        "halves": X[0].astype(np.float16),
        "wide": np.array([2**63 - 1, -(2**63)]),
        "truth": np.array([True, False]),
        "four bits": np.array([[-8, 7, 3]], ml_dtypes.int4),
        "read-only": np.frombuffer(X.tobytes(), np.float32),
    }
    graph = Graph()
    number = graph.input("number", FLOAT32, [1])
    outputs = {name: graph.constant(array) for name, array in arrays.items()}
    outputs["number"] = number + 1
    read = saved(graph.compile(outputs), tmp_path)
    results = read(np.ones(1, np.float32))
    for name, array in arrays.items():
        np.testing.assert_array_equal(results[name], array, name)


@for_each("name", NAMES)
def test_the_desc_of_every_operator_is_saved(name: str) -> None:
    desc = valid_desc(name, max(dml.FeatureLevel))
    text = json.dumps(to_json(desc), allow_nan=False)
    assert desc_from_json(JsonNode(json.loads(text))) == desc


def graph_in_directmls_form(device: Device) -> GraphDesc:
    """A convolution with constant filters, whose sum is interpreted as a row and read twice."""
    x, y = TensorDesc(FLOAT32, [1, 1, 2, 6]), TensorDesc(FLOAT32, [1, 1, 1, 12])
    relu = descs.ActivationRelu(x, x)
    add = descs.ElementWiseAdd1(y, y, y, fused_activation=descs.ActivationTanh())
    return GraphDesc(
        1,
        1,
        [
            OperatorNode(device.create_operator(relu), "relu"),
            ConstantNode(np.linspace(-1, 1, 12, dtype=np.float32)),
            OperatorNode(device.create_operator(add)),
        ],
        [InputEdge(0, 0, 0, "in")],
        [OutputEdge(2, 0, 0)],
        [IntermediateEdge(0, 0, 2, 0, "12"), IntermediateEdge(1, 0, 2, 1)],
    )


def test_graphs_in_directmls_form_are_saved(tmp_path: Path) -> None:
    device = Device("cpu")
    desc = graph_in_directmls_form(device)
    compiled = device.compile_graph(desc, dml.ExecutionFlags.DISABLE_META_COMMANDS)
    constant: Any = desc.nodes[1]
    constant.data[...] = 0
    read = saved(compiled, tmp_path)
    assert read.flags == compiled.flags
    x, outputs = np.linspace(-2, 2, 12, dtype=np.float32), np.zeros((2, 12), np.float32)
    for output, each in zip(outputs, (compiled, read), strict=True):
        each.bind([x], [output]).dispatch()
    assert outputs.any()
    assert same_bits(*outputs)


def test_graphs_with_owned_absent_and_stored_tensors_are_saved(tmp_path: Path) -> None:
    device, x = Device("cpu"), TensorDesc(FLOAT32, [12])
    halves, owned = TensorDesc("UINT16", [24]), TensorDesc(FLOAT32, [12], flags="OWNED_BY_DML")
    add, copied = descs.ElementWiseAdd(x, owned, x), descs.ElementWiseIdentity(halves, halves)
    nodes = [OperatorNode(device.create_operator(each)) for each in (add, copied, descs.ActivationTanh(x, x))]
    desc = GraphDesc(
        3,
        2,
        nodes,
        [InputEdge(0, 0, 0), InputEdge(2, 0, 1)],
        [OutputEdge(2, 0, 0), OutputEdge(0, 0, 1)],
        [IntermediateEdge(0, 0, 1, 0), IntermediateEdge(1, 0, 2, 0)],
    )
    compiled = device.compile_graph(desc)
    read = saved(compiled, tmp_path)
    assert (read.input_tensors, read.output_tensors) == (compiled.input_tensors, compiled.output_tensors)
    a, b = np.linspace(-1, 1, 12, dtype=np.float32), np.full(12, 0.5, np.float32)
    for each in (compiled, read):
        tanh, total = np.zeros((2, 12), np.float32)
        each.bind([a, None, b], [tanh, total]).dispatch()
        np.testing.assert_array_equal(total, a + b)
        np.testing.assert_allclose(tanh, np.tanh(a + b), rtol=1e-6)


def test_compiled_operators_are_saved_with_tensors_that_the_operator_owns(tmp_path: Path) -> None:
    device = Device("cpu", feature_level="5_0", threads=2)
    x = TensorDesc(FLOAT32, [1, 1, 3, 4], [24, 24, 8, 2])
    owned = TensorDesc(FLOAT32, [1, 1, 4, 2], flags="OWNED_BY_DML")
    desc = descs.Gemm(x, owned, None, TensorDesc(FLOAT32, [1, 1, 3, 2]))
    compiled = device.compile_operator(device.create_operator(desc))
    for read in (saved(compiled, tmp_path), pickle.loads(pickle.dumps(compiled)), copy.deepcopy(compiled)):
        assert (read.device.kind, read.device.threads) == ("cpu", 2)
        assert read.input_tensors == compiled.input_tensors
        y = np.zeros((3, 2), np.float32)
        read.bind([np.arange(24, dtype=np.float32), np.ones((1, 1, 4, 2), np.float32), None], [y]).dispatch()
        np.testing.assert_array_equal(y[:, 0], [12, 44, 76])


def celu(device: Device | str | None = None) -> Model:
    graph = Graph(feature_level="4_0")
    return graph.compile({"y": dml.activation_celu(graph.input("x", FLOAT32, [4]) * 2)}, device)


def test_a_model_goes_to_the_device_that_it_was_saved_for_or_to_another(tmp_path: Path) -> None:
    usual = celu()
    assert saved(usual, tmp_path).device is usual.device
    read = saved(celu(Device("cpu", feature_level="5_0", threads=1)), tmp_path)
    assert repr(read.device) == "Device('cpu', feature_level='5_0', threads=1)"
    assert saved(usual, tmp_path, "reference").device.kind == "reference"


def test_copies_have_the_device_of_the_model(tmp_path: Path) -> None:
    device = Device("cpu", threads=1)
    model = celu(device)
    copied = copy.deepcopy(model)
    assert copied is not model
    assert copied.device is device
    for each in (copied, pickle.loads(pickle.dumps(model)), copy.copy(model)):
        assert same_bits(each(X[0, 0])["y"], model(X[0, 0])["y"])


def test_files_that_are_not_there_or_cannot_be_written_are_named(tmp_path: Path) -> None:
    missing = tmp_path / "none" / "model.dml"
    for act in (lambda: dml.load(missing), lambda: celu().save(missing)):
        with pytest.raises(InvalidArgument, match=r"model\.dml: No such file"):
            act()
    for act in (lambda: dml.load("a\0b"), lambda: celu().save("a\0b")):
        with pytest.raises(InvalidArgument, match="null byte"):
            act()
    nowhere: Any = None
    calls: list[Any] = [dml.load, celu().save, dml.serialized.load]
    for call in calls:
        with pytest.raises(InvalidArgument, match=r"None: expected str, bytes or os.PathLike"):
            call(nowhere)


def with_digest(head: tuple[Any, ...], content: bytes) -> bytes:
    return _HEAD.pack(*head, hashlib.sha256(content).digest()) + content


def test_files_of_other_kinds_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    data = celu()._saved()
    for wrong in (b"", b"PK", MAGIC, data[:40], pickle.dumps([1])):
        with pytest.raises(InvalidArgument, match="no saved model"):
            loaded(wrong)
    content = data[_HEAD.size :]
    for wrong in (
        data[:-1],
        data[:-3] + b"abc",
        data + b" ",
        with_digest((MAGIC, VERSION, 0, 2**60), content),
    ):
        with pytest.raises(InvalidArgument, match="a damaged saved model"):
            loaded(wrong)
    with pytest.raises(
        Unsupported, match="a saved model of version 1; this opendml reads version 2: save the model again"
    ):
        loaded(with_digest((MAGIC, 1, 0, 8), content))
    path = tmp_path / "wrong.dml"
    path.write_bytes(b"abc")
    with pytest.raises(InvalidArgument, match=r"wrong\.dml: no saved model.*ONNX models are loaded by dml"):
        dml.load(path)


def program_of(data: bytes) -> tuple[Any, bytes]:
    """The JSON and the arrays of a file."""
    size = _HEAD.unpack_from(data)[3]
    content = data[_HEAD.size :]
    return json.loads(content[:size]), content[size:]


def file_of(program: Any, arrays: bytes) -> bytes:
    text = json.dumps(program).encode()
    return with_digest((MAGIC, VERSION, 0, len(text)), text + arrays)


STRANGE: list[Any] = [
    None,
    True,
    -1,
    0,
    3,
    2**31,
    2**63,
    10**400,
    0.5,
    "",
    "x",
    "GEMM",
    "FLOAT64",
    [],
    [1] * 9,
    [0, 0],
    [[]],
    {},
    {"tensor": 0},
    {"tensor": 10**9},
    {"float": "nan"},
    {"float": 1e400},
    {"operator": "ACTIVATION_RELU", "fields": {}},
    {"scale_bias": ["a", None]},
    {"size_2d": [-1, 2**40]},
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all values within a JSON value."""
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield (*path, key)
        yield from places(child, (*path, key))


def changed(value: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    result = copy.deepcopy(value)
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    change(inner, path[-1])
    return result


def hostile() -> Iterator[bytes]:
    """Files that are well-formed, in each of which one value is another one, or is missing."""
    device = Device("reference")
    graph = Graph()
    t = graph.input("t", FLOAT32, [2, 3, 4])
    row = graph.constant(np.ones((2, 2), np.float32).T)
    outputs = {"a": t[:, ::-1, :2].reshape(6, 2) @ row, "b": dml.join([t, t], axis=1)}
    outputs["c"] = dml.top_k1(t, axis=2, k=2, axis_direction="DECREASING").output_index
    outputs["d"] = dml.element_wise_exp(t, scale_bias=dml.ScaleBias(1, 2))
    for model in (graph.compile(outputs, device), device.compile_graph(graph_in_directmls_form(device))):
        program, arrays = program_of(model._saved())
        every = list(places(program))
        choose = random.Random(0)
        for path in choose.sample(every, min(len(every), 120)):
            strange = choose.choice(STRANGE)

            def replace(inner: Any, key: Any, strange: Any = strange) -> None:
                inner[key] = strange

            def remove(inner: Any, key: Any) -> None:
                del inner[key]

            for change in (replace, remove):
                yield file_of(changed(program, path, change), arrays)


def test_whatever_a_file_holds_is_checked() -> None:
    refused = 0
    for data in hostile():
        try:
            loaded(data, "reference")
        except Error:
            refused += 1
    assert refused > 200


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda p: p["steps"][2].update(inputs=[7, 1]),
            r"\$: steps\[2\]: inputs: 7; expected one of the 2 tensors",
        ),
        (
            lambda p: p["steps"][2]["desc"].update(operator="ADD"),
            r"\$\.steps\[2\]\.desc: ADD is no operator",
        ),
        (lambda p: p["steps"][2].update(code="x"), r"\$\.steps\[2\]\.code: unknown field"),
        (lambda p: p["steps"][2].update(inputs=[0]), r"steps\[2\]: inputs: .*; the desc has"),
        (
            lambda p: p["steps"][0].update(input=1),
            r"steps\[0\]: input 1; expected those of \('x',\), in their order",
        ),
        (
            lambda p: p["steps"][0]["tensor"].update(sizes=[0]),
            r"steps\[0\]: graph input 'x'\.sizes\[0\]: 0; must be",
        ),
        (lambda p: p["device"].update(kind="gpu"), "device: 'gpu'; opendml knows"),
        (lambda p: p["outputs"].update(z=7), r"outputs\.z: 7; expected one of the 4 tensors"),
        (lambda p: p.update(kind="x"), r"\$\.kind: unknown field"),
    ],
)
def test_messages_name_the_place_in_the_file(change: Callable[[Any], None], message: str) -> None:
    program, arrays = program_of(celu()._saved())
    change(program)
    with pytest.raises(InvalidArgument, match=message):
        loaded(file_of(program, arrays))


def test_views_beyond_a_tensor_are_refused() -> None:
    graph = Graph()
    data = graph.compile({"y": graph.input("x", FLOAT32, [8])[2:6]})._saved()
    program, arrays = program_of(data)
    for offset, size, stride in ((7, 2, 1), (0, 8, -1), (0, 9, 1), (2, 0, 1), (0, 2**31, 2**31)):
        program["steps"][1].update(offset=offset, sizes=[size], strides=[stride])
        with pytest.raises(InvalidArgument, match=r"steps\[1\]: view"):
            loaded(file_of(program, arrays))


def call_in_child(model: Model, x: Array) -> Array:
    return model(x)["y"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_of_processes_runs_a_model(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system starts no processes by {method}")
    model = celu()
    x = np.linspace(-1, 1, 4, dtype=np.float32)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
        results = list(pool.map(call_in_child, [model] * 3, [x, 2 * x, 3 * x]))
    for number, result in enumerate(results, 1):
        assert same_bits(result, model(number * x)["y"])
