"""Models that break ONNX's rules: refused by what is wrong with them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx
from onnx import TensorProto, helper, numpy_helper

import opendml as dml
from opendml import onnx as dml_onnx
from opendml.frontends.onnx.check import check
from tests.onnx.models import one_node

_X = np.arange(6, dtype=np.float32)
_OPSETS = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]


def _model(*nodes: onnx.NodeProto, **fields: Any) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        fields.pop("initializer", ()),
        sparse_initializer=fields.pop("sparse_initializer", ()),
    )
    return helper.make_model(graph, **{"opset_imports": _OPSETS, "ir_version": 10, **fields})


def _function(name: str, *nodes: onnx.NodeProto) -> onnx.FunctionProto:
    return helper.make_function("own", name, ["x"], ["y"], list(nodes), _OPSETS)


def _external(*entries: tuple[str, str]) -> onnx.TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[6])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries:
        tensor.external_data.add(key=key, value=value)
    return tensor


def _constant(tensor: onnx.TensorProto) -> onnx.NodeProto:
    node = helper.make_node("Constant", [], ["w"])
    node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR).t.CopyFrom(tensor)
    return node


def _sparse(values: onnx.TensorProto, indices: Any, sizes: list[int]) -> onnx.SparseTensorProto:
    places = numpy_helper.from_array(np.array(indices, np.int64))
    return onnx.SparseTensorProto(values=values, indices=places, dims=sizes)


_ADD = helper.make_node("Add", ["x", "w"], ["y"])
_ONE = numpy_helper.from_array(np.ones(1, np.float32), "w")


@pytest.mark.parametrize("place", ["initializer", "attribute", "sparse", "function"])
def test_models_without_path_read_no_files(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _X.tofile(tmp_path / "w.bin")
    monkeypatch.chdir(tmp_path)
    tensor = _external(("location", "w.bin"))
    call = helper.make_node("f", ["x"], ["y"], domain="own")
    model = {
        "initializer": lambda: _model(_ADD, initializer=[tensor]),
        "attribute": lambda: _model(_constant(tensor), _ADD),
        "sparse": lambda: _model(_ADD, sparse_initializer=[_sparse(tensor, [*range(6)], [6])]),
        "function": lambda: _model(call, functions=[_function("f", _constant(tensor), _ADD)]),
    }[place]()
    with pytest.raises(dml.InvalidArgument, match="'w' lies in a file of its own; such models are loaded by"):
        dml_onnx.load(model.SerializeToString())
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    np.testing.assert_array_equal(dml_onnx.load("model.onnx")(_X)["y"], 2 * _X)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([("location", "../w.bin")], "must be in the model's folder"),
        ([("location", "w.bin"), ("location", "../w.bin")], "must be in the model's folder"),
        ([("location", "/dev/zero")], "must be in the model's folder"),
        ([("location", "link.bin")], "must be in the model's folder"),
        ([("location", "w\0.bin")], "must be in the model's folder"),
        ([], "must be in the model's folder"),
        ([("location", "w.bin"), ("offset", str(2**62))], "offset"),
        ([("location", "w.bin"), ("length", str(2**62))], "length"),
        ([("location", "w.bin"), ("offset", "0x10")], "offset '0x10'; must be a number of bytes"),
        ([("location", "w.bin"), ("offset", "-4")], "24 bytes at offset -4; the file has 24"),
        ([("location", "w.bin"), ("length", "8")], "length 8; its sizes need 24 bytes"),
        ([("location", ".")], "must be in the model's folder"),
        ([("location", "pipe")], "regular file"),
        ([("location", "w" * 10_000)], "name too long"),
    ],
)
def test_tensors_lie_in_whole_files_of_the_folder(
    entries: list[tuple[str, str]], message: str, tmp_path: Path
) -> None:
    (tmp_path / "inner").mkdir()
    _X.tofile(tmp_path / "w.bin")
    _X.tofile(tmp_path / "inner" / "w.bin")
    (tmp_path / "inner" / "link.bin").symlink_to("../w.bin")
    os.mkfifo(tmp_path / "inner" / "pipe")
    path = tmp_path / "inner" / "model.onnx"
    path.write_bytes(_model(_ADD, initializer=[_external(*entries)]).SerializeToString())
    with pytest.raises(dml.InvalidArgument, match=message):
        dml_onnx.load(path)


@pytest.mark.parametrize(
    ("indices", "sizes"), [([9], [6]), ([-1], [6]), ([0, 1], [6]), ([[0, 9]], [2, 3]), ([0], [-6])]
)
def test_sparse_tensors_have_their_values_inside(indices: Any, sizes: list[int]) -> None:
    with pytest.raises(dml.InvalidArgument, match="sparse tensor 'w'"):
        dml_onnx.load(_model(_ADD, sparse_initializer=[_sparse(_ONE, indices, sizes)]))


def test_sparse_tensors_are_no_larger_than_allowed() -> None:
    with pytest.raises(dml.LimitExceeded, match=r"sparse tensor 'w'.*tensor_elements 1,152,921,504"):
        dml_onnx.load(_model(_ADD, sparse_initializer=[_sparse(_ONE, [0], [2**60])]))


@pytest.mark.parametrize(
    ("type", "sizes"), [(1, [6]), (1, [-1]), (1, [2**40]), (1, [0, 2**62]), (0, [1]), (99, [1]), (8, [1])]
)
def test_tensors_have_the_data_of_their_sizes(type: int, sizes: list[int]) -> None:
    tensor = TensorProto(name="w", data_type=type, dims=sizes, raw_data=bytes(4))
    with pytest.raises(dml.InvalidArgument, match=r"tensor 'w'|node name: y\).*tensor\(string\)"):
        dml_onnx.load(_model(_ADD, initializer=[tensor]))


_NEG = helper.make_node("Neg", ["x"], ["y"])
_BODY = helper.make_graph([], "body", [], [])


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([_NEG, _NEG], "tensor 'y' is there twice"),
        ([helper.make_node("Neg", ["x"], ["x"])], "tensor 'x' is there twice"),
        ([helper.make_node("Neg", ["x", "x"], ["y"])], r"\(Neg\): 2 inputs; the operator has 1 to 1"),
        ([helper.make_node("If", [], ["y"])], r"node 'y' \(If\): 0 inputs"),
        ([helper.make_node("If", ["x"], ["y"])], "attribute (then|else)_branch is missing"),
        ([helper.make_node("Loop", ["x", ""], ["y"], body=3)], "body is of type INT; must be GRAPH"),
        ([helper.make_node("Softmax", ["x"], ["y"], axis="a")], "axis is of type STRING; must be INT"),
        ([helper.make_node("Softmax", ["x"], ["y"], axis=1.5)], "axis is of type FLOAT; must be INT"),
        ([helper.make_node("Softmax", ["x"], ["y"], axes=1)], "'axes' is unknown; the operator has axis"),
    ],
)
def test_nodes_are_what_their_operators_declare(nodes: list[onnx.NodeProto], message: str) -> None:
    with pytest.raises(dml.InvalidArgument, match=message):
        dml_onnx.load(_model(*nodes))


def test_names_of_initializers_are_unique() -> None:
    with pytest.raises(dml.InvalidArgument, match="initializer 'w' is there twice"):
        dml_onnx.load(_model(_ADD, initializer=[_ONE, _ONE]))


@pytest.mark.parametrize(
    ("opsets", "error", "message"),
    [
        ([helper.make_opsetid("", 999)], dml.Unsupported, "opset 999; the onnx package that is installed"),
        ([helper.make_opsetid("", 0)], dml.InvalidArgument, "opset 0; ONNX's operator sets begin with 1"),
        ([_OPSETS[1]], dml.InvalidArgument, "imports no operator set of ONNX"),
    ],
)
def test_operator_sets_are_known(opsets: Any, error: type[dml.Error], message: str) -> None:
    with pytest.raises(error, match=message):
        dml_onnx.load(_model(_NEG, opset_imports=opsets))


def test_element_types_are_known() -> None:
    model = _model(_NEG)
    model.graph.input[0].type.tensor_type.elem_type = 99
    with pytest.raises(dml.InvalidArgument, match="'x' is of element type 99"):
        dml_onnx.load(model)


def test_functions_do_not_call_themselves() -> None:
    calls = [helper.make_node(name, ["x"], ["y"], domain="own") for name in ("f", "g")]
    functions = [_function("f", calls[1]), _function("g", calls[0])]
    with pytest.raises(dml.InvalidArgument, match="calls itself"):
        dml_onnx.load(_model(calls[0], functions=functions))


def test_functions_written_out_are_bounded() -> None:
    def calls(name: str, domain: str) -> list[onnx.NodeProto]:
        names = ["x", *map(str, range(9)), "y"]
        return [helper.make_node(name, [names[i]], [names[i + 1]], domain=domain) for i in range(10)]

    functions = [_function(f"f{i}", *calls(f"f{i + 1}", "own")) for i in range(9)]
    functions.append(_function("f9", *calls("Neg", "")))
    with pytest.raises(
        dml.LimitExceeded, match="written out: graph_parts 11,111,111,111; the limit is 1,000,000"
    ):
        dml_onnx.load(_model(helper.make_node("f0", ["x"], ["y"], domain="own"), functions=functions))


def test_nested_graphs_are_bounded() -> None:
    model = _model(_NEG)
    nodes = model.graph.node
    for _ in range(1000):
        node = nodes.add(op_type="If", input=["x"], output=["z"])
        nodes = node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g.node
    with pytest.raises(dml.InvalidArgument, match="nested in more than 30 levels"):
        dml_onnx.load(model)


@pytest.mark.parametrize("inputs", [["trips", ""], ["trips", "", "x"]])
def test_bodies_that_do_not_fit_are_named(inputs: list[str]) -> None:
    trips = numpy_helper.from_array(np.array(2), "trips")
    node = helper.make_node("Loop", inputs, ["y"], body=_BODY)
    with pytest.raises(dml.InvalidArgument, match=r"op_type:Loop, node name: y\): .*Graph has 0 inputs"):
        dml_onnx.load(_model(node, initializer=[trips]))(_X)


@pytest.mark.parametrize(
    ("operator", "inputs"),
    [
        ("ConstantOfShape", ["many"]),
        ("Expand", ["x", "many"]),
        ("Tile", ["x", "many"]),
        ("Pad", ["x", "pads"]),
        ("Range", ["start", "limit", "delta"]),
        ("OneHot", ["many", "limit", "pads"]),
    ],
)
def test_results_larger_than_the_memory_are_refused(operator: str, inputs: list[str]) -> None:
    numbers = {"many": [2**44], "pads": [0, 2**44], "start": 0, "limit": 2**44, "delta": 1}
    stored = [numpy_helper.from_array(np.array(each), name) for name, each in numbers.items()]
    model = _model(helper.make_node(operator, inputs, ["y"]), initializer=stored)
    model.graph.output[0].ClearField("type")
    with pytest.raises(
        dml.LimitExceeded, match=rf"\({operator}-20\): output 'y' of sizes .*: tensor_elements "
    ):
        dml_onnx.load(model)(_X[:1])


@pytest.mark.parametrize(
    ("operator", "sizes", "attributes"),
    [
        ("MatMul", [[2**18, 1], [1, 2**18]], {}),
        ("Add", [[2**18, 1], [1, 2**18]], {}),
        ("Gather", [[1, 2**18], [2**18]], {}),
        ("Conv", [[1, 1, 4, 4], [1, 1, 1, 1]], {"pads": [0, 0, 2**30, 2**30]}),
        ("MaxPool", [[1, 1, 4, 4]], {"kernel_shape": [1, 1], "pads": [0, 0, 2**30, 2**30]}),
    ],
)
def test_sizes_and_attributes_ask_for_no_more_than_the_memory(
    operator: str, sizes: list[list[int]], attributes: dict[str, Any]
) -> None:
    inputs = [np.zeros(each, np.float32 if operator != "Gather" else np.int64) for each in sizes]
    with pytest.raises(
        dml.LimitExceeded, match=rf"\({operator}-.*: output 'y0' of sizes .*: (memory_bytes|tensor_elements) "
    ):
        dml_onnx.load(one_node(operator, inputs, **attributes))(*inputs)


def test_what_is_known_together_fits_into_the_memory() -> None:
    sizes = numpy_helper.from_array(np.array([2**20]), "sizes")
    nodes = [helper.make_node("ConstantOfShape", ["sizes"], [f"c{number}"]) for number in range(2)]
    model = _model(*nodes, helper.make_node("Concat", ["x", "c0", "c1"], ["y"], axis=0), initializer=[sizes])
    with pytest.raises(dml.LimitExceeded, match=r"'c1'.* memory_bytes 8,388,.*; the limit is 5,242,880"):
        dml_onnx.load(model, limits=dml.Limits(memory_bytes=5 << 20))(_X)


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_transposed_convolutions_take_no_memory_for_what_strides_leave_out(device: str) -> None:
    inputs = [np.ones([2, 2, 1, 1], np.float32), np.ones([2, 2, 2, 2], np.float32)]
    model = dml_onnx.load(one_node("ConvTranspose", inputs, strides=[2**31 - 1, 2**20]), device)
    assert np.array_equal(model(*inputs)["y0"], np.full([2, 2, 2, 2], 2))


def test_what_a_result_needs_on_the_way_fits_into_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opendml.targets.reference.evaluate.host_memory", lambda: 1 << 20)
    x = np.ones([1, 1, 64, 64], np.float32)
    model = dml_onnx.load(one_node("AveragePool", [x], kernel_shape=[33, 33]), "reference")
    with pytest.raises(dml.Unsupported, match=r"^model: .*no memory for .*[0-9]{3},[0-9]{3} bytes"):
        model(x)


@pytest.mark.filterwarnings("ignore:.* runs on onnx's evaluator")
@pytest.mark.parametrize("sizes", [[0] * 100, [0, 2**62, 2**62]])
def test_tensors_without_elements_have_the_dimensions_that_there_are(sizes: list[int]) -> None:
    node = helper.make_node("ConstantOfShape", ["sizes"], ["y"])
    stored = numpy_helper.from_array(np.array(sizes), "sizes")
    with pytest.raises(dml.Error, match="ConstantOfShape"):
        dml_onnx.load(_model(node, initializer=[stored]))(_X)


def test_domains_are_text() -> None:
    imports = [*_OPSETS, helper.make_opsetid("here", 1)]
    content = _model(helper.make_node("Neg", ["x"], ["y"]), opset_imports=imports).SerializeToString()
    with pytest.raises(dml.InvalidArgument, match=r"not UTF-8|no ONNX model"):
        dml_onnx.load(content.replace(b"here", b"\xffere"))


@pytest.mark.parametrize("word", [b"here", b"axis"])
def test_names_are_text(word: bytes) -> None:
    content = _model(helper.make_node("Softmax", ["x"], ["y"], name="here", axis=0)).SerializeToString()
    with pytest.raises(dml.InvalidArgument, match=r"here|not UTF-8|no ONNX model"):
        dml_onnx.load(content.replace(word, b"\xff" + word[1:]))


def test_versions_of_other_domains_are_any_number() -> None:
    node = helper.make_node("f", ["x"], ["y"], domain="own")
    model = _model(node, opset_imports=[_OPSETS[0], helper.make_opsetid("own", 2**40)])
    with pytest.raises(dml.Unsupported, match=r"own\.f"):
        dml_onnx.load(model)(_X)


@pytest.mark.parametrize("condition", ["nowhere", ""])
def test_conditions_that_no_node_makes_are_named(condition: str) -> None:
    node = helper.make_node("If", [condition], ["y"], then_branch=_BODY, else_branch=_BODY)
    with pytest.raises(dml.InvalidArgument, match=r"op_type:If, node name: y\): .*subgraphs produce 0"):
        dml_onnx.load(_model(node))(_X)


@pytest.mark.filterwarnings("ignore:.* runs on onnx's evaluator")
def test_nodes_on_values_that_they_do_not_take_are_named() -> None:
    body = helper.make_graph([], "body", [], [])
    node = helper.make_node("SequenceMap", ["x"], ["y"], body=body)
    with pytest.raises(dml.Error, match=r"op_type:SequenceMap, node name: y\)"):
        dml_onnx.load(_model(node))(_X)


def test_a_scale_that_is_missing_is_named() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20, "com.microsoft" : 1]>\n'
        "g (uint8[1, 2, 3, 3] x, uint8 z) => (uint8[1, 2, 1, 1] y)\n"
        "{ y = com.microsoft.QLinearGlobalAveragePool (x, , z, , z) }"
    )
    given = {"x": np.zeros((1, 2, 3, 3), np.uint8), "z": np.zeros((), np.uint8)}
    with pytest.raises(dml.Error, match=r"node 'y'.*input 1, a scale, is missing"):
        dml_onnx.load(model).run(given)


def test_values_of_more_dimensions_than_numpy_broadcasts_are_computed_or_refused() -> None:
    sizes = ",".join("1" * 33)
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]>\n'
        f"g (float[{sizes}] x) => (float[{sizes}] y) {{ y = Add (x, x) }}"
    )
    x = np.ones((1,) * 33, np.float32)
    with pytest.warns(dml_onnx.EvaluatorWarning, match="33 dimensions"):
        assert dml_onnx.load(model).run({"x": x})["y"].max() == 2


@pytest.mark.filterwarnings("ignore::opendml.onnx.EvaluatorWarning")
@pytest.mark.parametrize(
    "node",
    [
        'Einsum <equation = "...b~>..."> (x)',
        "GatherND <batch_dims: int = -2147483648> (x, i)",
        'GatherND <batch_dims = "one"> (x, i)',
    ],
)
def test_attributes_that_inference_would_believe_are_refused(node: str) -> None:
    """ONNX's inference of the first does not end, and of the second it ends the process."""
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 16]>\n'
        f"g (float[1, 2] x, int64[1, 2] i) => (float[1, 2] y) {{ y = {node} }}"
    )
    with pytest.raises(dml.Error, match=r"node 'y'"):
        dml_onnx.load(model).run({"x": np.ones((1, 2), np.float32), "i": np.zeros((1, 2), np.int64)})
    with suppress(dml.InvalidArgument):
        assert check(model).nodes == 1


def test_a_node_that_memory_has_no_room_for_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any) -> Any:
        raise MemoryError("no 61.9 MiB")

    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 16]>\n'
        "g (float[1, 2] x) => (float[2, 1] y) { y = Transpose <perm = [1, 0]> (x) }"
    )
    monkeypatch.setattr("opendml.frontends.onnx.custom.CONVERTERS.find", lambda *_: nothing)
    with pytest.raises(dml.Unsupported, match=r"node 'y' \(Transpose-16\): no memory: no 61.9 MiB"):
        dml_onnx.load(model).run({"x": np.ones((1, 2), np.float32)})


def test_what_is_empty_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "empty.onnx"
    path.touch()
    with pytest.raises(dml.InvalidArgument, match=r"empty\.onnx: no ONNX model: it is empty$"):
        dml_onnx.load(path)
    with pytest.raises(dml.InvalidArgument, match=r"model: no ONNX model: it is empty$"):
        dml_onnx.load(b"")
    with pytest.raises(dml.InvalidArgument, match=r"model: no ONNX model: it has no graph$"):
        dml_onnx.load(onnx.ModelProto(ir_version=10).SerializeToString())


def _text(body: str, inputs: str = "float[2,3] x") -> onnx.ModelProto:
    imports = '"" : 20, "far" : 1, "com.microsoft" : 1'
    return onnx.parser.parse_model(
        f"<ir_version: 10, opset_import: [{imports}]> g ({inputs}) => (float[a,b] y) {{ {body} }}"
    )


@pytest.mark.parametrize(
    "body",
    [
        "z = far.Foo (x)  y = Relu (z)",
        "y = Relu (x)  z = com.microsoft.Foo (x)",
        "c = Constant <value = bool {1}> ()  y = If (c) <then_branch = a () => (p) { p = far.Foo (x) },"
        " else_branch = b () => (q) { q = Relu (x) }>",
    ],
)
def test_operators_that_nothing_runs_are_named_when_the_model_is_loaded(body: str) -> None:
    with pytest.raises(dml.Unsupported, match=r"Foo-1\): neither opendml nor onnx's evaluator has"):
        dml_onnx.load(_text(body))


def test_all_operators_that_nothing_runs_are_named_at_once() -> None:
    body = "  ".join(f"t{number} = far.Foo{number} (x)" for number in range(7))
    with pytest.raises(dml.Unsupported, match=r"Foo0(.|\n)*Foo4.*, and 2 more"):
        dml_onnx.load(_text(f"{body}  y = Relu (x)"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("y = MatMul (x, x)", r"MatMul, node name: y\): .*Incompatible dimensions"),
        ("y = Cast <to = 7> (x)", r"Cast, node name: y\): .*Inferred elem type differs"),
        ("z = Transpose <perm = [1, 0]> (x)  y = Concat <axis = 1> (x, z)", r"Concat, node name: y\)"),
    ],
)
def test_sizes_and_types_that_do_not_fit_are_refused_at_loading(body: str, message: str) -> None:
    with pytest.raises(dml.InvalidArgument, match=message):
        dml_onnx.load(_text(body))


def test_sizes_that_a_model_declares_wrongly_of_its_outputs_do_not_keep_it_from_running() -> None:
    model = _text("y = Relu (x)")
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 7
    assert dml_onnx.load(model)(np.ones([2, 3], np.float32))["y"].shape == (2, 3)


def test_a_judged_model_needs_no_memory_for_what_inference_would_multiply() -> None:
    """Data propagation in ONNX's inference allocates what sizes say."""
    sizes = numpy_helper.from_array(np.array([2**40]), "sizes")
    model = _model(helper.make_node("ConstantOfShape", ["sizes"], ["y"]), initializer=[sizes])
    with pytest.raises(dml.LimitExceeded, match="memory_bytes 4,398,046,511,104"):
        dml_onnx.load(model)(_X)
