"""Nodes that are evaluated once, states of nodes, and files that grow."""

from __future__ import annotations

import subprocess
import sys
from collections import ChainMap, Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx
from onnx import NodeProto, TensorProto, helper

import opendml as dml
from opendml.frontends.onnx.evaluate import Evaluator
from opendml.frontends.onnx.folding import folded
from opendml.frontends.onnx.node import nodes_of
from opendml.frontends.onnx.states import Pending, Values, extended
from opendml.frontends.onnx.values import Known
from tests.onnx.models import computed

TEXT = """
<ir_version: 10, opset_import: ["" : 20]>
example (float[n, 4] x) => (float[m, k] y, float[1] two) {
    one = Constant <value = float[1] {1.0}> ()
    two = Add (one, one)
    sizes = Shape (x)
    order = Constant <value = int64[2] {1, 0}> ()
    turned = Gather (sizes, order)
    sum = Add (x, two)
    y = Reshape (sum, turned)
}
"""


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many times each operator is evaluated from here on."""
    counts = Counter[str]()
    run = Evaluator.__call__

    def counted(self: Evaluator, contents: Mapping[str, Any]) -> dict[str, Any]:
        counts[self._node.operator] += 1
        return run(self, contents)

    monkeypatch.setattr(Evaluator, "__call__", counted)
    return counts


def model() -> dml.onnx.OnnxModel:
    return dml.onnx.load(onnx.parser.parse_model(TEXT))


def test_a_node_of_the_same_contents_is_evaluated_once_for_all_sizes(evaluated: Counter[str]) -> None:
    example = model()
    example.run({"x": np.zeros((2, 4), np.float32)})
    first = dict(evaluated)
    assert first["Constant"] == 2
    example.run({"x": np.zeros((3, 4), np.float32)})
    assert evaluated["Constant"] == first["Constant"]
    assert evaluated["Add"] == first["Add"]
    assert evaluated["Gather"] == 0  # Sizes are traced.


def test_a_node_of_other_contents_has_other_results() -> None:
    example = model()
    for rows in (2, 3, 5, 3):
        assert example.run({"x": np.ones((rows, 4), np.float32)})["y"].shape == (4, rows)


def test_a_known_result_is_the_callers_own() -> None:
    example = model()
    for rows in (2, 2, 3):
        result = example.run({"x": np.zeros((rows, 4), np.float32)})
        np.testing.assert_array_equal(result["two"], [2])
        np.testing.assert_array_equal(result["y"], np.full((4, rows), 2))
        result["two"][:] = 7


NUMBERS = np.arange(-12, 12, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("operator", "contents", "attributes"),
    [
        ("Cast", [NUMBERS], {"to": TensorProto.INT64}),
        ("Cast", [NUMBERS], {"to": TensorProto.BOOL}),
        ("Cast", [NUMBERS.astype(np.int64)], {"to": TensorProto.FLOAT16}),
        ("Concat", [NUMBERS, NUMBERS[:, :1]], {"axis": -2}),
        ("Constant", [], {"value": onnx.numpy_helper.from_array(NUMBERS)}),
        ("ConstantOfShape", [np.array([2, 3])], {}),
        ("ConstantOfShape", [np.array([2])], {"value": onnx.numpy_helper.from_array(np.array([7]))}),
        ("ConstantOfShape", [np.array([], np.int64)], {}),
        ("Equal", [NUMBERS, NUMBERS[:1, :, :1]], {}),
        ("Equal", [np.array(3), np.array(3)], {}),
        ("Gather", [NUMBERS, np.array([[0, -1]])], {}),
        ("Gather", [NUMBERS, np.array(2)], {"axis": 1}),
        ("Neg", [NUMBERS], {}),
        ("Neg", [np.array([3, -(2**63), 0])], {}),
        ("Neg", [np.array(2.5, np.float16)], {}),
        ("Not", [NUMBERS > 0], {}),
        ("Not", [np.array(True)], {}),
        ("Reshape", [NUMBERS, np.array([0, -1])], {}),
        ("Reshape", [NUMBERS[:, :0], np.array([0, 4])], {"allowzero": 1}),
        ("Reshape", [NUMBERS[:1, :1, :1], np.array([], np.int64)], {}),
        ("Size", [NUMBERS], {}),
        ("Slice", [NUMBERS, *map(np.array, ([-1, 0], [-(2**63) + 1, 9], [2, 0], [-2, 1]))], {}),
        ("Slice", [NUMBERS, np.array([1]), np.array([2**63 - 1])], {}),
        ("Slice", [NUMBERS, *map(np.array, ([-9], [-9], [2], [-1]))], {}),
        ("Squeeze", [NUMBERS[:1, :, :1]], {}),
        ("Squeeze", [NUMBERS[:1, :, :1], np.array([-1])], {}),
        ("Transpose", [NUMBERS], {}),
        ("Transpose", [NUMBERS], {"perm": [1, 0, 2]}),
        ("Unsqueeze", [NUMBERS, np.array([0, -1])], {}),
        ("Unsqueeze", [NUMBERS, np.array(1)], {}),
        ("Where", [NUMBERS > 0, NUMBERS, NUMBERS[:1, :1]], {}),
        ("Where", [np.array(False), np.array(1), np.array(2)], {}),
    ],
)
def test_numpy_folds_nodes_as_the_evaluator_does(
    operator: str, contents: list[Any], attributes: dict[str, Any]
) -> None:
    names = [f"x{number}" for number in range(len(contents))]
    message = helper.make_node(operator, names, ["y"], **attributes)
    (node,) = nodes_of([message], {"": 20})
    given = dict(zip(names, contents, strict=True))
    own = folded(node, given)
    assert own is not None
    expected = Evaluator(node)._prepared().run(None, given)
    np.testing.assert_array_equal(own, expected, strict=True)


def test_a_gathered_string_is_a_tensor() -> None:
    (node,) = nodes_of([helper.make_node("Gather", ["x", "i"], ["y"])], {"": 20})
    result = Evaluator(node)({"x": np.array(["a", "b"], object), "i": np.array(1)})["y"]
    np.testing.assert_array_equal(result, np.array("b", object), strict=True)


def test_the_evaluator_folds_what_numpy_does_not() -> None:
    message = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E4M3FN)
    (node,) = nodes_of([message], {"": 20})
    assert folded(node, {"x": NUMBERS}) is None
    assert Evaluator(node)({"x": NUMBERS})["y"].dtype.itemsize == 1


def test_a_gather_behind_the_end_is_an_error() -> None:
    (node,) = nodes_of([helper.make_node("Gather", ["x", "i"], ["y"])], {"": 20})
    with pytest.raises(dml.InvalidArgument, match="Gather"):
        Evaluator(node)({"x": NUMBERS, "i": np.array([2])})


def test_a_node_whose_output_has_no_name_makes_nothing() -> None:
    (node,) = nodes_of([helper.make_node("Cast", ["x"], [""], to=TensorProto.INT8)], {"": 20})
    assert Evaluator(node)({"x": NUMBERS}) == {}


def _nodes(*edges: tuple[str, str]) -> Any:
    return nodes_of([helper.make_node("Relu", [read], [made]) for read, made in edges], {"": 20})


def test_nodes_are_taken_in_their_order_those_of_a_body_first() -> None:
    a, b, c = _nodes(("x", "a"), ("a", "b"), ("x", "c"))
    first, rest = Pending().prepended([a, b, c]).popped()
    body = _nodes(("a", "p"), ("p", "b"))
    second, inside = rest.prepended(body).popped()
    assert (first, second) == (a, body[0])
    taken = []
    while inside:
        node, inside = inside.popped()
        taken.append(node)
    assert taken == [body[1], b, c]


def test_what_is_read_later_is_known_without_a_look_at_all_nodes() -> None:
    _, rest = Pending().prepended(_nodes(("x", "a"), ("a", "b"), ("b", "c"))).popped()
    assert [name for name in "xabc" if rest.reads(name)] == ["a", "b"]
    inside = rest.prepended(_nodes(("x", "p"), ("p", "q")))
    assert [name for name in "xabcpq" if inside.reads(name)] == ["x", "a", "b", "p"]
    _, last = inside.popped()
    assert [name for name in "xabcpq" if last.reads(name)] == ["a", "b", "p"]


def test_extensions_copy_each_value_a_few_times_and_change_no_layer() -> None:
    count, copies, values = 1000, 0, Values()
    earlier: list[tuple[Values, int]] = []
    for number in range(count):
        before = values
        values = extended(values, {str(number): Known(number)})
        copies += sum(len(layer) for layer in values.maps if not any(layer is each for each in before.maps))
        if number % 100 == 0:
            earlier.append((values, number))
    assert copies < count * np.log2(count)
    assert len(values.maps) <= np.log2(count) + 1
    assert all(values[str(number)].content == number for number in range(count))  # type: ignore[union-attr]
    for each, number in earlier:
        assert len(each) == number + 1


def test_what_comes_later_counts() -> None:
    values = extended(extended(ChainMap({"a": Known(1)}), {"a": Known(2)}), {"b": Known(3)})
    assert values["a"] == Known(2)


def test_a_chain_outside_of_directml_copies_no_state_at_each_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its nodes see the tensors that they read, and nothing else."""
    seen: list[list[str]] = []

    class Watched(Evaluator):
        def __call__(self, contents: Any) -> dict[str, Any]:
            seen.append(list(contents))
            return super().__call__(contents)

    monkeypatch.setattr("opendml.frontends.onnx.trace.Evaluator", Watched)
    count = 20
    names = ["x", *(f"t{number}" for number in range(count))]
    nodes = [helper.make_node("Sin", [read], [made]) for read, made in pairwise(names)]
    x, y = (
        helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, [3]) for name in (names[0], names[-1])
    )
    graph = helper.make_graph(nodes, "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    (result,) = computed(model, {"x": np.ones(3)}, evaluator=True)
    wanted = np.ones(3)
    for _ in range(count):
        wanted = np.sin(wanted)
    np.testing.assert_allclose(result, wanted, rtol=1e-12)
    assert seen == [[name] for name in names[:-1]]


SECONDS = 300
"""How long a file may take on a busy machine; before, they took hours or all memory."""
RUN = """
import sys
import numpy as np
from opendml import onnx

session = onnx.InferenceSession(sys.argv[1])
given = session.get_inputs()[0]
type = np.int64 if "int64" in given.type else np.float32
x = np.arange(np.prod(given.shape, dtype=int)).reshape(given.shape).astype(type)
(y,) = session.run(None, {given.name: x})
print(y.shape, float(y.ravel()[-1]))
"""


def output_of(folder: Path, nodes: list[NodeProto], shape: list[int], type: int = TensorProto.FLOAT) -> str:
    """Return the shape and the last element of a model's output, computed in another process."""
    first, last = nodes[0].input[0], nodes[-1].output[0]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(first, type, shape)],
        [helper.make_tensor_value_info(last, type, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    command = [sys.executable, "-c", RUN, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_joins_of_a_tensor_with_itself(tmp_path: Path) -> None:
    nodes = [helper.make_node("Concat", [f"t{n}", f"t{n}"], [f"t{n + 1}"], axis=0) for n in range(20)]
    assert output_of(tmp_path, nodes, [2]) == f"({2 << 20},) 1.0"


def test_a_window_that_is_mostly_padding(tmp_path: Path) -> None:
    size = 2**30
    pads = [size - 1, size - 1, 0, 0]
    nodes = [helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[size, size], pads=pads)]
    assert output_of(tmp_path, nodes, [1, 1, 2, 2]) == "(1, 1, 2, 2) 1.5"


def test_elements_gathered_at_themselves(tmp_path: Path) -> None:
    nodes = [helper.make_node("GatherElements", [f"p{n}", f"p{n}"], [f"p{n + 1}"], axis=0) for n in range(40)]
    assert output_of(tmp_path, nodes, [8], TensorProto.INT64) == "(8,) 7.0"


def test_a_chain_of_thousands_of_nodes(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", [f"t{n}", f"t{n}"], [f"t{n + 1}"]) for n in range(5000)]
    nodes.append(helper.make_node("Mul", ["t5000", "t5000"], ["y"]))
    assert output_of(tmp_path, nodes, [2]) == "(2,) inf"
