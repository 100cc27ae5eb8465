"""Serialized graphs are read as they were written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT32, Device, Graph, Unsupported, serialized
from opendml.frontends.serialized.flatbuffers import read_flatbuffer, write_flatbuffer
from opendml.frontends.serialized.nodes import read_operator, written_operator
from opendml.runtime.program import tensors_of
from opendml.serialized import SerializedGraph, SerializedNode
from opendml.spec.rank_defaults import with_rank_defaults
from opendml.spec.schema import Field, operator, operators
from opendml.spec.validator import failures
from tests.for_each import for_each
from tests.frontends.test_saved_models import every_kind_of_call
from tests.fuzz.choices import Choices
from tests.fuzz.random_descs import any_desc
from tests.runtime.test_graph import OPERATORS
from tests.runtime.test_graph import X as GRAPH_X

KINDS = ("INPUT_TENSOR", "OUTPUT_TENSOR")


def as_stored(desc: dml.OperatorDesc) -> dml.OperatorDesc:
    """A desc as a file can say it: with all numbers of dimensions, and floats of 32 bits."""
    desc = with_rank_defaults(desc)
    return desc.replace(
        **{
            field.python_name: rounded(desc, field, getattr(desc, field.python_name))
            for field in operator(desc.operator).attributes
        }
    )


def rounded(desc: dml.OperatorDesc, field: Field, value: Any) -> Any:
    if isinstance(value, dml.OperatorDesc):
        return as_stored(value)
    if isinstance(value, dml.ScaleBias):
        return dml.ScaleBias(*map(rounded32, value))
    if field.type == "FLOAT_ARRAY" and value is not None:
        return tuple(map(rounded32, value))
    if field.type == "OPERATOR_DESC_ARRAY":
        return tuple(map(as_stored, value))
    if field.type == "SCALAR_UNION":
        data_type = getattr(desc, operator(desc.operator).field(field.data_type_field or "").python_name)
        with np.errstate(over="ignore"):
            return value if data_type.name[0] in "UI" else np.dtype(data_type.name.lower()).type(value).item()
    return rounded32(value) if field.type == "FLOAT" else value


def rounded32(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def names_of(desc: dml.OperatorDesc) -> list[list[str]]:
    return [
        [f"{kind}{number}" if tensor else "" for number, tensor in enumerate(tensors_of(desc, kind))]
        for kind in KINDS
    ]


def through_bytes(desc: dml.OperatorDesc) -> dml.OperatorDesc:
    data = write_flatbuffer({"nodes": [{"desc": ("OperatorNodeDesc", written_operator(desc))}]})
    (node,) = read_flatbuffer(data, "test")["nodes"]
    kind, content = node["desc"]
    assert kind == "OperatorNodeDesc"
    return read_operator(content, *names_of(desc), "nodes[0]")


@for_each("name", operators())
def test_every_operator_is_the_same_through_a_file(name: str) -> None:
    valid = [desc for seed in range(8) if not failures(desc := any_desc(Choices(seed), names=[name]))]
    assert valid
    for desc in valid:
        assert through_bytes(desc) == as_stored(desc)


def small_graph() -> tuple[dml.GraphDesc, dml.Device]:
    """relu(x) + c, times y."""
    device = dml.Device("cpu")
    tensor = dml.TensorDesc(dml.FLOAT32, [2, 3])
    descs = [
        dml.descs.ActivationRelu(tensor, tensor),
        dml.descs.ElementWiseAdd(tensor, tensor, tensor),
        dml.descs.ElementWiseMultiply(tensor, tensor, tensor),
    ]
    nodes: list[Any] = [dml.OperatorNode(device.create_operator(desc)) for desc in descs]
    nodes.append(dml.ConstantNode(np.arange(6, dtype=np.float32), "c"))
    desc = dml.GraphDesc(
        input_count=2,
        output_count=2,
        nodes=nodes,
        input_edges=[dml.InputEdge(0, 0, 0, "x"), dml.InputEdge(1, 2, 1, "y")],
        output_edges=[dml.OutputEdge(2, 0, 0, "product"), dml.OutputEdge(1, 0, 1)],
        intermediate_edges=[
            dml.IntermediateEdge(0, 0, 1, 0),
            dml.IntermediateEdge(3, 0, 1, 1),
            dml.IntermediateEdge(1, 0, 2, 0),
        ],
    )
    return desc, device


X = np.array([[-1, 2, -3], [4, -5, 6]], np.float32)
Y = np.full((2, 3), 2, np.float32)
SUM = np.maximum(X, 0) + np.arange(6, dtype=np.float32).reshape(2, 3)


def test_a_graph_is_written_with_its_constants_beside_it_and_runs(tmp_path: Path) -> None:
    desc, _ = small_graph()
    graph = SerializedGraph.of(desc)
    files = serialized.write(graph, tmp_path / "new" / "small.bin")
    assert [path.name for path in files] == ["small.bin", "small.1.c.bin"]
    assert files[1].read_bytes() == np.arange(6, dtype=np.float32).tobytes()
    model = serialized.load(files[0])
    assert list(model.inputs) == ["x", "y"]
    assert model.outputs == dict.fromkeys(["product", "output1"], dml.TensorDesc(dml.FLOAT32, [2, 3]))
    for results in (model(X, Y), model(y=Y, x=X), model.run({"x": X.ravel(), "y": Y})):
        np.testing.assert_array_equal(results["output1"], SUM)
        np.testing.assert_array_equal(results["product"], SUM * 2)
    assert repr(model) == f"<SerializedModel {files[0]} on cpu: x, y -> product, output1>"


def test_a_graph_that_is_read_is_the_graph_that_was_written(tmp_path: Path) -> None:
    graph = SerializedGraph.of(small_graph()[0])
    path, *_ = serialized.write(graph, tmp_path / "small.bin")
    again = serialized.read(path)
    assert (again.inputs, again.outputs) == (graph.inputs, graph.outputs)
    for one, other in zip(graph.nodes, again.nodes, strict=True):
        assert (one.inputs, one.outputs, one.name) == (other.inputs, other.outputs, other.name)
        same = np.array_equal if isinstance(one.content, np.ndarray) else lambda a, b: a == b
        assert same(one.content, other.content)
    second = SerializedGraph.of(again.desc(dml.Device("cpu")))
    assert [node.outputs for node in second.nodes] == [node.outputs for node in graph.nodes]


def test_constants_below_8_bytes_stand_in_the_file(tmp_path: Path) -> None:
    one = dml.TensorDesc(dml.FLOAT32, [1])
    graph = SerializedGraph(
        ("x",),
        ("y",),
        (
            SerializedNode(np.array([2.5], np.float32).view(np.uint8), (), ("c",)),
            SerializedNode(dml.descs.ElementWiseMultiply(one, one, one), ("x", "c"), ("y",)),
        ),
    )
    files = serialized.write(graph, tmp_path / "one.bin")
    assert len(files) == 1
    assert serialized.load(files[0])(np.array([3], np.float32))["y"].tolist() == [7.5]


def test_optional_tensors_are_empty_names(tmp_path: Path) -> None:
    tensor = dml.TensorDesc(dml.FLOAT32, [1, 1, 2, 2])
    desc = dml.descs.MeanVarianceNormalization1(tensor, None, None, tensor, axes=[2, 3], epsilon=0.0)
    graph = SerializedGraph(("x",), ("y",), (SerializedNode(desc, ("x", "", ""), ("y",)),))
    path, *_ = serialized.write(graph, tmp_path / "mvn.bin")
    assert serialized.read(path).nodes == graph.nodes


def test_strides_and_sizes_in_bytes_are_kept(tmp_path: Path) -> None:
    wide = dml.TensorDesc(dml.FLOAT32, [2, 2], [4, 1], total_tensor_size_in_bytes=64)
    repeated, packed = dml.TensorDesc(dml.FLOAT32, [2, 2], [0, 1]), dml.TensorDesc(dml.FLOAT32, [2, 2])
    desc = dml.descs.ElementWiseAdd(wide, repeated, packed)
    graph = SerializedGraph(("a", "b"), ("y",), (SerializedNode(desc, ("a", "b"), ("y",)),))
    path, *_ = serialized.write(graph, tmp_path / "strided.bin")
    assert serialized.read(path).nodes == graph.nodes
    result = serialized.load(path)(np.arange(16, dtype=np.float32), np.array([10, 20], np.float32))["y"]
    assert result.tolist() == [[10, 21], [14, 25]]


def test_one_place_with_two_names_cannot_be_written() -> None:
    device, tensor = dml.Device("cpu"), dml.TensorDesc(dml.FLOAT32, [2])
    node = dml.OperatorNode(device.create_operator(dml.descs.ActivationRelu(tensor, tensor)))
    results = [dml.OutputEdge(0, 0, 0, "a"), dml.OutputEdge(0, 0, 1, "b")]
    desc = dml.GraphDesc(1, 2, [node], [dml.InputEdge(0, 0, 0)], results)
    with pytest.raises(dml.Unsupported, match=r"outputs\[1\] comes from the same place as output 'a'"):
        SerializedGraph.of(desc)


def test_the_library_of_flatbuffers_reads_what_is_written() -> None:
    table = pytest.importorskip("flatbuffers.table", reason="flatbuffers is not installed")
    numbers = pytest.importorskip("flatbuffers.number_types")
    tensor = dml.TensorDesc(dml.FLOAT32, [2, 3], [4, 1])
    desc = written_operator(dml.descs.ActivationElu(tensor, tensor, alpha=0.25))
    data = write_flatbuffer({"nodes": [{"desc": ("OperatorNodeDesc", desc), "name": "node"}]})

    def child(of: Any, slot: int) -> Any:
        return table.Table(data, of.Indirect(of.Pos + of.Offset(4 + 2 * slot)))

    def element(of: Any, slot: int, index: int) -> Any:
        return table.Table(data, of.Indirect(of.Vector(of.Offset(4 + 2 * slot)) + 4 * index))

    root = table.Table(data, int.from_bytes(data[:4], "little"))
    node = element(root, 0, 0)
    assert node.String(node.Pos + node.Offset(8)) == b"node"
    assert node.Get(numbers.Uint8Flags, node.Pos + node.Offset(4)) == 1
    inner = child(node, 1)
    assert inner.String(inner.Pos + inner.Offset(4)) == b"DML_OPERATOR_ACTIVATION_ELU"
    given = element(inner, 1, 0)
    assert given.Get(numbers.Uint64Flags, given.Pos + given.Offset(10)) == 28
    sizes = given.GetVectorAsNumpy(numbers.Uint32Flags, given.Offset(6))
    assert sizes.tolist() == [2, 3]
    attribute = element(inner, 3, 0)
    assert attribute.Get(numbers.Uint8Flags, attribute.Pos + attribute.Offset(6)) == 6
    place = attribute.Indirect(attribute.Pos + attribute.Offset(8))
    assert attribute.Get(numbers.Float32Flags, place) == 0.25


def test_what_the_library_of_flatbuffers_writes_is_read() -> None:
    flatbuffers = pytest.importorskip("flatbuffers", reason="flatbuffers is not installed")
    builder = flatbuffers.Builder(0)
    text, name = builder.CreateString("DML_OPERATOR_ACTIVATION_RELU"), builder.CreateString("n")
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(0, text, 0)
    operator_node = builder.EndObject()
    builder.StartObject(5)
    builder.PrependUint8Slot(0, 1, 0)
    builder.PrependUOffsetTRelativeSlot(1, operator_node, 0)
    builder.PrependUOffsetTRelativeSlot(2, name, 0)
    node = builder.EndObject()
    builder.StartVector(4, 1, 4)
    builder.PrependUOffsetTRelative(node)
    nodes = builder.EndVector()
    builder.StartObject(3)
    builder.PrependUOffsetTRelativeSlot(0, nodes, 0)
    builder.Finish(builder.EndObject())
    (read,) = read_flatbuffer(bytes(builder.Output()), "test")["nodes"]
    assert read["name"] == "n"
    kind, content = read["desc"]
    assert (kind, content["type"], content["inputs"]) == (
        "OperatorNodeDesc",
        "DML_OPERATOR_ACTIVATION_RELU",
        None,
    )


def read_again(model: Any, folder: Path, device: str | Device) -> serialized.SerializedModel:
    """The model as a serialized graph, written and read."""
    serialized.write(serialized.graph_of_model(model), folder / "graph.bin")
    return serialized.load(folder / "graph.bin", device)


def assert_same(model: Any, inputs: dict[str, Any], folder: Path, device: str | Device) -> None:
    again, expected = read_again(model, folder, device), model(**inputs)
    results = again.run(inputs)
    assert list(results) == list(expected)
    for name, result in results.items():
        assert result.dtype == expected[name].dtype, name
        assert result.shape == expected[name].shape, name
        np.testing.assert_allclose(result, expected[name], rtol=2e-6, atol=1e-6, err_msg=name)


def test_what_tensors_of_graphs_do_is_written(tmp_path: Path) -> None:
    graph = Graph()
    t = graph.input("x", FLOAT32, GRAPH_X.shape)
    dml.activation_relu(t)  # which no output needs
    model = graph.compile({name: build(t) for name, build in OPERATORS.items()}, "reference")
    assert_same(model, {"x": GRAPH_X}, tmp_path, "reference")


def test_every_kind_of_call_is_written(tmp_path: Path) -> None:
    image = np.random.default_rng(0).normal(size=(1, 2, 6, 8)).astype(np.float32)
    graph = Graph()
    t, i = graph.input("t", FLOAT32, GRAPH_X.shape), graph.input("image", FLOAT32, image.shape)
    model = graph.compile(every_kind_of_call(t, i), "reference")
    assert_same(model, {"t": GRAPH_X / 10, "image": image}, tmp_path, "reference")


def test_inputs_with_strides_that_are_outputs_too_are_copied(tmp_path: Path) -> None:
    graph = Graph()
    x = graph.input("x", FLOAT32, [2, 3], strides=[1, 2])
    model = graph.compile({"same": x, "again": x, "constant": graph.constant(GRAPH_X[0]), "T": x.T})
    given = GRAPH_X[0, :2, :3]
    again = read_again(model, tmp_path, "reference")
    results = again.run({"x": given.T.copy()})
    for name in ("same", "again"):
        np.testing.assert_array_equal(results[name], given)
    np.testing.assert_array_equal(results["T"], given.T)
    np.testing.assert_array_equal(results["constant"], GRAPH_X[0])


def test_names_of_nodes_are_not_those_of_the_graph(tmp_path: Path) -> None:
    graph = Graph()
    x = graph.input("node0", FLOAT32, [4])
    model = graph.compile({"node1": dml.activation_relu(x), "constant0": x * np.ones(4, np.float32)})
    assert_same(model, {"node0": GRAPH_X[0, 0]}, tmp_path, "reference")


def test_models_of_other_kinds_and_what_files_cannot_say_are_named() -> None:
    with pytest.raises(Unsupported, match=r"serialized graph: this model was not made by Graph\.compile"):
        serialized.graph_of_model(_without_data())


def _without_data() -> Any:
    graph = Graph()
    model = graph.compile({"y": graph.input("x", FLOAT32, [1]) + 1})
    model._data = None
    return model
