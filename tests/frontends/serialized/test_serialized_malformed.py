"""Files that are no serialized graphs, or wrong ones: one clear error, soon and in little memory."""

from __future__ import annotations

import os
import resource
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import opendml as dml
from opendml import serialized
from opendml.frontends.serialized.flatbuffers import read_flatbuffer, write_flatbuffer
from opendml.frontends.serialized.nodes import written_operator
from opendml.serialized import SerializedGraph, SerializedNode

TENSOR = dml.TensorDesc(dml.FLOAT32, [2, 3])
RELU = dml.descs.ActivationRelu(TENSOR, TENSOR)


def sample() -> bytes:
    """A graph with all that graphs have: constants, activations, arrays and scalars."""
    image, filter = dml.TensorDesc(dml.FLOAT32, [1, 1, 3, 3]), dml.TensorDesc(dml.FLOAT32, [1, 1, 2, 2])
    out = dml.TensorDesc(dml.FLOAT32, [1, 1, 2, 2])
    convolution = dml.descs.Convolution(
        image,
        filter,
        None,
        out,
        strides=[1, 1],
        dilations=[1, 1],
        start_padding=[0, 0],
        end_padding=[0, 0],
        output_padding=[0, 0],
        group_count=1,
        fused_activation=dml.descs.ActivationLeakyRelu(alpha=0.5),
    )
    fill = dml.descs.FillValueConstant(out, value_data_type=dml.FLOAT32, value=1.5)
    join = dml.descs.Join([out, out], dml.TensorDesc(dml.FLOAT32, [1, 2, 2, 2]), axis=1)
    nodes = [
        {
            "desc": ("OperatorNodeDesc", written_operator(convolution)),
            "inputNames": ["x", "w", ""],
            "outputNames": ["a"],
        },
        {"desc": ("OperatorNodeDesc", written_operator(fill)), "name": "fill", "outputNames": ["b"]},
        {
            "desc": ("OperatorNodeDesc", written_operator(join)),
            "inputNames": ["a", "b"],
            "outputNames": ["y"],
        },
        {
            "desc": ("ConstantNodeDesc", {"data": ("ConstantRawData", {"data": [1, 2, 3, 4]})}),
            "outputNames": ["c"],
        },
    ]
    return write_flatbuffer({"nodes": nodes, "graphInputNames": ["x", "w"], "graphOutputNames": ["y"]})


SAMPLE = sample()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "graph.bin"


def read_or_refuse(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    try:
        graph = serialized.read(path)
        graph.tensors("inputs")
        graph.desc(dml.Device("reference"))
    except dml.Error as error:
        if str(path) not in str(error):
            pytest.fail(str(error))


Edits = st.lists(
    st.tuples(
        st.integers(0, len(SAMPLE) - 1),
        st.one_of(
            st.integers(0, 255).map(lambda byte: bytes([byte])),
            st.sampled_from([0, 1, 4, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1]).map(
                lambda n: struct.pack("<I", n)
            ),
            st.integers(0, len(SAMPLE)).map(lambda number: struct.pack("<I", number)),
        ),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=Edits, cut=st.one_of(st.none(), st.integers(0, len(SAMPLE))))
def test_any_damage_is_an_error_or_none(file: Path, edits: list[tuple[int, bytes]], cut: int | None) -> None:
    damaged = bytearray(SAMPLE)
    for position, content in edits:
        damaged[position : position + len(content)] = content
    read_or_refuse(file, bytes(damaged[:cut]))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
@example(b"")
@example(b"\4\0\0\0")
@example(b"\4\0\0\0\0\0\0\0")
def test_any_bytes_are_an_error_or_none(file: Path, data: bytes) -> None:
    read_or_refuse(file, data)


def nested(depth: int) -> dict[str, Any]:
    """Activations within activations."""
    attribute: dict[str, Any] = {"val": ("Float32", 1.0)}
    for _ in range(depth):
        attribute = {
            "val": ("Activation", {"type": "DML_OPERATOR_ACTIVATION_ELU", "attributes": [attribute]})
        }
    return {"nodes": [{"desc": ("OperatorNodeDesc", {"attributes": [attribute]})}]}


def test_tables_within_tables_are_bounded() -> None:
    assert read_flatbuffer(write_flatbuffer(nested(4)), "test")
    with pytest.raises(dml.InvalidArgument, match="tables within tables; at most 16"):
        read_flatbuffer(write_flatbuffer(nested(100)), "test")


def test_a_table_that_contains_itself_ends() -> None:
    data = bytearray(write_flatbuffer(nested(1)))
    attributes = data.find(b"DML_OPERATOR")
    assert attributes > 0
    for position in range(0, len(data) - 4, 4):
        loop = bytearray(data)
        (offset,) = struct.unpack_from("<I", data, position)
        if 4 <= offset < len(data):
            for target in range(4, 40, 4):
                struct.pack_into("<I", loop, position, target)
                try:
                    read_flatbuffer(bytes(loop), "test")
                except dml.InvalidArgument:
                    continue


def test_what_is_shared_is_bounded() -> None:
    """A hundred thousand nodes that are all the same node, of a thousand attributes that are all the same."""
    data = bytearray(write_flatbuffer({"nodes": [{}] * 2, "graphInputNames": ["a"]}))
    root = write_flatbuffer(
        {"nodes": [{"desc": ("OperatorNodeDesc", {"attributes": [{"name": "n"}] * 4000})}] * 1}
    )
    shared = bytearray(root)
    # The vector of nodes grows at the end of the file: each element leads back to no earlier place, so that
    # all of them lead to a copy of the one node behind it.
    count = 4000
    (table,) = struct.unpack_from("<I", shared, 0)
    vtable = table - struct.unpack_from("<i", shared, table)[0]
    field = table + struct.unpack_from("<H", shared, vtable + 4)[0]
    start = len(shared)
    struct.pack_into("<I", shared, field, start - field)
    node = start + 4 + 4 * count + len(root)
    (vector,) = struct.unpack_from("<I", root, field)
    (first,) = struct.unpack_from("<I", root, field + vector + 4)
    target = start + 4 + 4 * count + field + vector + 4 + first
    shared += struct.pack("<I", count)
    shared += b"".join(struct.pack("<I", target - (start + 4 + 4 * index)) for index in range(count))
    shared += root
    assert len(shared) < node + len(data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(dml.InvalidArgument, match="parts of ever more tables"):
        read_flatbuffer(bytes(shared), "test")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # of 1024 bytes


def written(path: Path, nodes: list[dict[str, Any]], inputs: list[str], outputs: list[str]) -> Path:
    path.write_bytes(
        write_flatbuffer({"nodes": nodes, "graphInputNames": inputs, "graphOutputNames": outputs})
    )
    return path


def relu_node(**changes: Any) -> dict[str, Any]:
    content = written_operator(RELU) | changes.pop("desc", {})
    return {"desc": ("OperatorNodeDesc", content), "inputNames": ["x"], "outputNames": ["y"]} | changes


def elu(attribute: Any) -> dict[str, Any]:
    return {"type": "DML_OPERATOR_ACTIVATION_ELU", "attributes": [attribute]}


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({}, r"nodes\[0\]: neither an operator nor a constant"),
        (
            relu_node(desc={"type": "DML_OPERATOR_RELU"}),
            r"nodes\[0\]\.type: 'DML_OPERATOR_RELU'; the name of an op",
        ),
        (relu_node(desc={"type": None}), r"nodes\[0\]\.type: None; the name"),
        (
            relu_node(name="n", desc={"inputs": []}),
            r"nodes\[0:n\]\.ACTIVATION_RELU\.inputs: 0 tensors, 1 names",
        ),
        (relu_node(inputNames=["x", ""]), r"ACTIVATION_RELU\.inputs: 2 names; 1 are needed"),
        (relu_node(inputNames=[], desc={"inputs": []}), r"ACTIVATION_RELU\.inputs: 0 names; 1 are needed"),
        (relu_node(desc={"attributes": [{}]}), r"ACTIVATION_RELU\.attributes: 1; there are 0"),
        (relu_node(desc=elu({})), r"ACTIVATION_ELU\.Alpha: missing; the operator requires it"),
        (relu_node(desc=elu({"val": ("Int32", 1)})), r"ACTIVATION_ELU\.Alpha: Int32; Float32 is needed"),
        (relu_node(inputNames=["z"]), r"nodes\[0\]: input 'z': neither an input of the graph nor an output"),
        (relu_node(outputNames=["x"]), r"nodes\[0\]: output 'x': there is one of that name already"),
        (relu_node(outputNames=["z"]), r"output 'y': no node has an output of that name"),
        (
            relu_node(desc={"inputs": [{"dataType": "FLOAT31", "sizes": [1]}]}),
            r"inputs\[0\]\.dataType: 'FLOAT31'; the name of a DML_TENSOR_DATA_TYPE",
        ),
        (
            relu_node(desc={"inputs": [{"dataType": "FLOAT32"}]}),
            r"inputs\[0\]\.sizes: 0 sizes; 1 to 8 are needed",
        ),
        (
            relu_node(desc={"inputs": [{"dataType": "FLOAT32", "sizes": [0]}]}),
            r"inputs\[0\]\.Sizes: \[0\]; every",
        ),
        (
            relu_node(desc={"inputs": [{"dataType": "INT8", "sizes": [2, 3]}]}),
            r"nodes\[0\]: ACTIVATION_RELU\.OutputTensor: FLOAT32; must have",
        ),
        ({"desc": ("ConstantNodeDesc", {}), "outputNames": ["y"]}, r"nodes\[0\]: a constant without content"),
        (
            {"desc": ("ConstantNodeDesc", {"data": ("ConstantRawData", {"data": [1]})})},
            r"nodes\[0\]: a constant has no inputs and one output with a name",
        ),
        (
            {"desc": ("ConstantNodeDesc", {"data": ("ConstantRawData", {"data": []})}), "outputNames": ["y"]},
            r"nodes\[0\]: a constant of 0 bytes",
        ),
    ],
)
def test_what_is_wrong_is_named_with_file_node_and_field(file: Path, node: Any, message: str) -> None:
    with pytest.raises(dml.InvalidArgument, match=rf"^{file}: .*{message}"):
        serialized.load(written(file, [node], ["x"], ["y"]))


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/b", "a\\b", "C:x", "", ".", "..", "a\0b"])
def test_constants_are_files_in_the_same_folder_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.bin").write_bytes(bytes(8))
    folder = tmp_path / "model"
    folder.mkdir()
    node = {"desc": ("ConstantNodeDesc", {"data": ("ConstantName", {"name": name})}), "outputNames": ["c"]}
    with pytest.raises(dml.InvalidArgument, match="the name of a file beside the graph is needed"):
        serialized.read(written(folder / "graph.bin", [node], [], []))


def test_a_constant_whose_name_no_file_can_have_is_named(tmp_path: Path) -> None:
    node = {
        "desc": ("ConstantNodeDesc", {"data": ("ConstantName", {"name": "a" * 300})}),
        "outputNames": ["c"],
    }
    with pytest.raises(dml.InvalidArgument, match="File name too long"):
        serialized.read(written(tmp_path / "graph.bin", [node], [], []))


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.bin").write_bytes(bytes(8))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "c.bin").symlink_to(tmp_path / "secret.bin")
    node = {"desc": ("ConstantNodeDesc", {"data": ("ConstantName", {"name": "c"})}), "outputNames": ["c"]}
    with pytest.raises(dml.InvalidArgument, match="leads out of its folder"):
        serialized.read(written(folder / "graph.bin", [node], [], []))


def test_pipes_and_folders_are_no_constants(tmp_path: Path, file: Path) -> None:
    node = {"desc": ("ConstantNodeDesc", {"data": ("ConstantName", {"name": "c"})}), "outputNames": ["c"]}
    for make in (os.mkfifo, os.mkdir):
        make(tmp_path / "c.bin")
        with pytest.raises(dml.InvalidArgument, match=r"nodes\[0\]: constant 'c': .*c\.bin: not a file"):
            serialized.read(written(file, [node], [], []))
        (tmp_path / "c.bin").rename(tmp_path / make.__name__)


def test_files_that_are_not_there_are_named(tmp_path: Path, file: Path) -> None:
    with pytest.raises(dml.InvalidArgument, match=r"none\.bin: No such file"):
        serialized.load(tmp_path / "none.bin")
    node = {"desc": ("ConstantNodeDesc", {"data": ("ConstantName", {"name": "c"})}), "outputNames": ["c"]}
    with pytest.raises(dml.InvalidArgument, match=r"nodes\[0\]: constant 'c': .*c\.bin: No such file"):
        serialized.read(written(file, [node], [], []))


def test_counts_must_be_those_of_their_arrays(file: Path) -> None:
    reduce = dml.descs.Reduce(TENSOR, dml.TensorDesc(dml.FLOAT32, [2, 1]), function="SUM", axes=[1])
    content = written_operator(reduce)
    count = next(each for each in content["attributes"] if each["name"] == "AxisCount")
    count["val"] = ("UInt32", 3)
    node = {"desc": ("OperatorNodeDesc", content), "inputNames": ["x"], "outputNames": ["y"]}
    with pytest.raises(dml.InvalidArgument, match=r"REDUCE\.AxisCount: 3, but Axes has 1"):
        serialized.read(written(file, [node], ["x"], ["y"]))


def test_values_of_enumerations_are_known_ones(file: Path) -> None:
    content = written_operator(dml.descs.Reduce(TENSOR, TENSOR, function="SUM", axes=[1]))
    content["attributes"][0]["val"] = ("UInt32", 99)
    node = {"desc": ("OperatorNodeDesc", content), "inputNames": ["x"], "outputNames": ["y"]}
    with pytest.raises(dml.InvalidArgument, match=r"REDUCE\.Function: 99; allowed are 0 \(ARGMAX\)"):
        serialized.read(written(file, [node], ["x"], ["y"]))


def test_names_of_the_graph_are_different() -> None:
    node = SerializedNode(RELU, ("x",), ("y",))
    with pytest.raises(dml.InvalidArgument, match="input 'x': there are 2 of that name"):
        SerializedGraph(("x", "x"), ("y",), (node,)).desc(dml.Device("cpu"))


def test_arrays_of_a_call_are_checked(file: Path) -> None:
    model = serialized.load(written(file, [relu_node()], ["x"], ["y"]))
    with pytest.raises(dml.InvalidArgument, match="inputs: x is missing, z is unknown; the graph has x"):
        model(z=np.zeros((2, 3), np.float32))
    with pytest.raises(dml.InvalidArgument, match="2 inputs; it has 1"):
        model(1, 2)
    with pytest.raises(dml.InvalidArgument, match=str(file)):
        model(np.zeros((2, 3)))
    with pytest.raises(dml.InvalidArgument, match=str(file)):
        model(np.zeros(5, np.float32))
