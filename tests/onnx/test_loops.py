"""Loops in ONNX models, and old operator sets."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx
from onnx import TensorProto, helper

import opendml as dml
from opendml import InvalidArgument
from opendml import onnx as dml_onnx
from tests.onnx.models import Array, assert_same, computed, feed, one_node


def _graph(name: str, nodes: list[Any], inputs: list[str], outputs: list[str], weights: Any = ()) -> Any:
    """A graph; names with i are of INT64, with c of truth values, others of FLOAT."""
    types = {"i": TensorProto.INT64, "c": TensorProto.BOOL}

    def values(names: list[str]) -> list[Any]:
        return [helper.make_tensor_value_info(each, types.get(each[0], 1), None) for each in names]

    return helper.make_graph(nodes, name, values(inputs), values(outputs), list(weights))


def _run(
    nodes: list[Any], given: dict[str, Array], outputs: list[str], opset: int = 17, weights: Any = ()
) -> list[Any]:
    """The outputs of a model, of which nothing may run on the evaluator."""
    graph = _graph("g", nodes, list(given), outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", dml_onnx.EvaluatorWarning)
        return list(dml_onnx.load(model).run(given).values())


def _body(*nodes: Any, inputs: list[str], outputs: list[str]) -> Any:
    return _graph("body", [helper.make_node("Identity", ["c"], ["cond"]), *nodes], inputs, outputs)


def _doubling() -> Any:
    """Doubles its state, and gives out a captured tensor times it."""
    nodes = [helper.make_node("Add", ["s", "s"], ["t"]), helper.make_node("Mul", ["t", "k"], ["out"])]
    return _body(*nodes, inputs=["i", "c", "s"], outputs=["cond", "t", "out"])


K = np.array([1, 10], np.float32)
S = np.array([1, 2], np.float32)


@pytest.mark.parametrize("known", [False, True])
def test_a_loop_runs_as_often_as_its_count_says(known: bool) -> None:
    node = helper.make_node("Loop", ["i_count", "", "s_0"], ["t_last", "outs"], body=_doubling())
    given = {"i_count": np.array(3), "s_0": S, "k": K}
    weights = [onnx.numpy_helper.from_array(given.pop("k"), "k")] if known else []
    results = _run([node], given, ["t_last", "outs"], weights=weights)
    assert_same(results, [S * 8, np.stack([S * 2 * K, S * 4 * K, S * 8 * K])])


def test_a_loop_that_never_runs_leaves_its_state_and_nothing_stacked() -> None:
    node = helper.make_node("Loop", ["", "c_0", "s_0"], ["t_last", "outs"], body=_doubling())
    given = {"c_0": np.array(False), "s_0": S, "k": K}
    last, outs = _run([node], given, ["t_last", "outs"])
    assert_same([last], [S])
    assert len(outs) == 0


def test_a_loop_ends_when_its_condition_does() -> None:
    nodes = [
        helper.make_node("Add", ["s", "s"], ["t"]),
        helper.make_node("ReduceMax", ["t"], ["most"], keepdims=0),
        helper.make_node("Less", ["most", "k"], ["cond"]),
    ]
    body = _graph("body", nodes, ["i", "c", "s"], ["cond", "t"])
    node = helper.make_node("Loop", ["i_count", "", "s_0"], ["t_last"], body=body)
    given = {"i_count": np.array(100), "s_0": S, "k": np.array(30, np.float32)}
    assert_same(_run([node], given, ["t_last"]), [S * 16])


def test_the_state_of_a_loop_may_grow() -> None:
    nodes = [
        helper.make_node("Cast", ["i"], ["x"], to=TensorProto.FLOAT),
        helper.make_node("Reshape", ["x", "i_one"], ["one"]),
        helper.make_node("Concat", ["s", "one"], ["t"], axis=0),
    ]
    body = _body(*nodes, inputs=["i", "c", "s"], outputs=["cond", "t"])
    node = helper.make_node("Loop", ["i_count", "", "s_0"], ["t_last"], body=body)
    given = {"i_count": np.array(3), "s_0": np.zeros(0, np.float32), "i_one": np.array([1])}
    assert_same(_run([node], given, ["t_last"]), [np.array([0, 1, 2], np.float32)])


def _summing() -> Any:
    nodes = [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Mul", ["t", "k"], ["out"])]
    return _graph("body", nodes, ["s", "x"], ["t", "out"])


@pytest.mark.parametrize("input_axis", [0, 1])
@pytest.mark.parametrize("backwards", [0, 1])
@pytest.mark.parametrize(("output_axis", "output_backwards"), [(0, 1), (1, 0), (-1, 0)])
def test_a_scan_has_an_axis(input_axis: int, backwards: int, output_axis: int, output_backwards: int) -> None:
    node = helper.make_node(
        "Scan",
        ["s_0", "x_s"],
        ["t_last", "outs"],
        body=_summing(),
        num_scan_inputs=1,
        scan_input_axes=[input_axis],
        scan_input_directions=[backwards],
        scan_output_axes=[output_axis],
        scan_output_directions=[output_backwards],
    )
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    sums = S + np.cumsum(rows[::-1] if backwards else rows, 0)
    outs = sums * K
    wanted = np.moveaxis(outs[::-1] if output_backwards else outs, 0, output_axis)
    given = {"s_0": S, "x_s": rows if input_axis == 0 else rows.T.copy(), "k": K}
    assert_same(_run([node], given, ["t_last", "outs"]), [sums[-1], wanted])


def test_scanned_inputs_have_one_length() -> None:
    nodes = [helper.make_node("Add", ["a", "b"], ["out"])]
    body = _graph("body", nodes, ["a", "b"], ["out"])
    node = helper.make_node("Scan", ["x", "y"], ["outs"], body=body, num_scan_inputs=2)
    given = {"x": np.zeros((2, 1), np.float32), "y": np.zeros((3, 1), np.float32)}
    with pytest.raises(InvalidArgument, match=r"outs.*lengths \[2, 3\]"):
        _run([node], given, ["outs"])


def test_an_old_scan_takes_batches_of_sequences_of_several_lengths() -> None:
    node = helper.make_node(
        "Scan", ["i_lengths", "s_0", "x_s"], ["t_last", "outs"], body=_summing(), num_scan_inputs=1
    )
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    given = {"i_lengths": np.array([2, 3]), "s_0": np.stack([S, S]), "x_s": x, "k": K}
    sums = S + np.cumsum(x, 1)
    outs = sums * K
    outs[0, 2] = 0
    results = _run([node], given, ["t_last", "outs"], opset=8)
    assert_same(results, [np.stack([sums[0, 1], sums[1, 2]]), outs])


def test_loops_nest_and_capture_from_outside() -> None:
    inner = helper.make_node("Loop", ["i_count", "", "s"], ["t", "unused"], body=_doubling())
    body = _graph(
        "outer", [helper.make_node("Identity", ["c"], ["cond"]), inner], ["i", "c", "s"], ["cond", "t"]
    )
    node = helper.make_node("Loop", ["i_count", "", "s_0"], ["t_last"], body=body)
    given = {"i_count": np.array(2), "s_0": S, "k": K}
    assert_same(_run([node], given, ["t_last"]), [S * 16])


def test_a_body_is_compiled_once_for_its_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    from opendml.runtime.graphs.graph import Graph

    compiled: list[int] = []
    compile = Graph._compile

    def counting(self: Graph, *arguments: Any, **options: Any) -> Any:
        compiled.append(1)
        return compile(self, *arguments, **options)

    monkeypatch.setattr(Graph, "_compile", counting)
    node = helper.make_node("Loop", ["i_count", "", "s_0"], ["t_last", "outs"], body=_doubling())
    _run([node], {"i_count": np.array(20), "s_0": S, "k": K}, ["t_last", "outs"])
    assert len(compiled) == 1


def test_a_body_may_not_read_what_nobody_makes() -> None:
    node = helper.make_node("Loop", ["i_count", "", "s_0"], ["t_last", "outs"], body=_doubling())
    with pytest.raises(InvalidArgument, match="tensor 'k' is made by no node"):
        _run([node], {"i_count": np.array(2), "s_0": S}, ["t_last", "outs"])


OldArray = np.ndarray[Any, Any]
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 11
SQUARE = np.arange(-13, 14, dtype=np.float32).reshape(3, 3, 3)
PER_ROW = np.array([1, 2, 3], np.float32)
TRUE_ROWS = np.array([True, False, True])


def run(
    operator: str, inputs: list[OldArray], opset: int, known: list[int] | None = None, **attributes: Any
) -> OldArray:
    """The first output of a node of an old operator set, which must not run on the evaluator."""
    model = one_node(operator, inputs, opset=opset, known=known or [], **attributes)
    result: OldArray = computed(model, feed(inputs, known or []))[0]
    return result


@pytest.mark.parametrize(
    ("operator", "function"), [("Add", np.add), ("Mul", np.multiply), ("Sub", np.subtract)]
)
@pytest.mark.parametrize("opset", [1, 6])
def test_the_second_operand_lies_at_its_axis(operator: str, function: Any, opset: int) -> None:
    expected = function(X, PER_ROW[:, None])
    for axis in (1, -2):
        assert np.array_equal(run(operator, [X, PER_ROW], opset, broadcast=1, axis=axis), expected)
    last = np.array([1, 2, 3, 4], np.float32)
    assert np.array_equal(run(operator, [X, last], opset, broadcast=1), function(X, last))
    assert np.array_equal(run(operator, [X, X], opset), function(X, X))


def test_truth_values_and_comparisons_broadcast_likewise() -> None:
    given = X > 0
    expected = given & TRUE_ROWS[:, None]
    assert np.array_equal(run("And", [given, TRUE_ROWS], 1, broadcast=1, axis=1), expected)
    assert np.array_equal(
        run("Greater", [X, PER_ROW], 1, broadcast=1, axis=1), np.greater(X, PER_ROW[:, None])
    )
    whole = X.astype(np.int32)
    rows = PER_ROW.astype(np.int32)
    assert np.array_equal(run("Equal", [whole, rows], 1, broadcast=1, axis=1), whole == rows[:, None])


def test_a_slope_has_an_element_for_each_channel_also_where_the_last_dimension_has_as_many() -> None:
    expected = np.where(SQUARE < 0, SQUARE * PER_ROW[:, None], SQUARE)
    assert np.array_equal(run("PRelu", [SQUARE, PER_ROW], 6), expected)
    one = np.array([0.5], np.float32)
    assert np.array_equal(run("PRelu", [SQUARE, one], 1), np.where(SQUARE < 0, SQUARE / 2, SQUARE))


def test_the_old_defaults_of_selu_hold() -> None:
    x = np.array([-1, 2], np.float32)
    expected = 1.0507 * np.where(x > 0, x, 1.6732 * np.expm1(x.astype(np.float64)))
    assert np.allclose(run("Selu", [x], 1), expected, rtol=3e-7, atol=0)


def test_attributes_became_inputs_and_other_attributes() -> None:
    assert run("Reshape", [X], 1, shape=[4, 0, -1]).shape == (4, 3, 2)
    assert np.array_equal(run("Cast", [X], 1, to="INT32"), X.astype(np.int32))
    padded = np.pad(X, [(0, 0), (1, 0), (0, 2)])
    assert np.array_equal(run("Pad", [X], 1, paddings=[0, 1, 0, 0, 0, 2]), padded)
    assert np.array_equal(run("Concat", [X, X], 1), np.concatenate([X, X], 1))
    tiled = run("Tile", [X, np.array([3], np.float32), np.array([1], np.float32)], 1, known=[1, 2])
    assert np.array_equal(tiled, np.tile(X, [1, 3, 1]))
    image = X[None]
    larger = run("Upsample", [image], 1, height_scale=2.0, width_scale=3.0)
    assert np.array_equal(larger, image.repeat(2, 2).repeat(3, 3))


def test_split_takes_its_sizes_from_an_attribute_or_an_input() -> None:
    for inputs, attributes in (([X], {"split": [1, 2]}), ([X, np.array([1, 2], np.float32)], {})):
        model = one_node(
            "Split", inputs, outputs=2, opset=1, known=range(1, len(inputs)), axis=1, **attributes
        )
        first, second = computed(model, feed([X]))
        assert np.array_equal(first, X[:, :1])
        assert np.array_equal(second, X[:, 1:])


def test_products_norms_and_normalizations_lost_attributes() -> None:
    a, b, c = SQUARE[0], SQUARE[1], PER_ROW
    assert np.array_equal(run("Gemm", [a, b, c], 6, broadcast=1), a @ b + c)
    image = X[None]
    norm = run("GlobalLpPool", [image], 1, p=2.0)
    assert np.allclose(norm, np.sqrt((image**2).sum((2, 3), keepdims=True)))
    scale, bias, mean, variance = PER_ROW, -PER_ROW, PER_ROW / 2, PER_ROW
    batch = X[:, :, :, None]
    inputs = [batch, scale, bias, mean, variance]
    normal = run("BatchNormalization", inputs, 1, is_test=1, consumed_inputs=[0, 0, 0, 1, 1], epsilon=0.5)
    columns = [each[:, None, None] for each in (scale, bias, mean, variance)]
    expected = (batch - columns[2]) / np.sqrt(columns[3] + 0.5) * columns[0] + columns[1]
    assert np.allclose(normal, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("operator", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent_networks_lost_output_sequence(operator: str, gates: int) -> None:
    generator = np.random.default_rng(0)
    shapes = [(2, 1, 3), (1, gates * 4, 3), (1, gates * 4, 4)]
    inputs = [generator.standard_normal(shape, np.float32) for shape in shapes]
    old = run(operator, inputs, 6, hidden_size=4, output_sequence=1)
    assert np.array_equal(old, run(operator, inputs, 7, hidden_size=4))


def test_the_branches_of_an_if_are_of_the_old_operator_set_too() -> None:
    def branch(name: str, operator: str) -> onnx.GraphProto:
        node = helper.make_node(operator, ["x", "w"], [name], broadcast=1, axis=1)
        return helper.make_graph([node], name, [], [onnx.ValueInfoProto(name=name)])

    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("a", "Add"), else_branch=branch("b", "Sub")
    )
    info = helper.make_tensor_value_info
    inputs = [info("c", onnx.TensorProto.BOOL, [1]), info("x", onnx.TensorProto.FLOAT, [2, 3, 4])]
    weights = [onnx.numpy_helper.from_array(PER_ROW, "w")]
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")], weights)
    model = dml.onnx.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 6)], ir_version=3))
    for condition, expected in ((True, X + PER_ROW[:, None]), (False, X - PER_ROW[:, None])):
        assert np.array_equal(model.run({"c": np.array([condition]), "x": X})["y"], expected)


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "message"),
    [
        ("Dropout", [X], {}, "is_test is 0, so the node trains"),
        (
            "BatchNormalization",
            [X, *[PER_ROW] * 4],
            {"consumed_inputs": [0, 0, 0, 1, 1]},
            "is_test is 0, so the node trains",
        ),
        ("Tile", [X, PER_ROW[:1], PER_ROW[:1]], {}, "input 1 is computed, and decides the sizes"),
        ("GlobalLpPool", [X], {"p": 1.5}, "p is 1.5; a whole number is needed"),
        ("Cast", [X], {"to": "FLOAT12"}, "to is 'FLOAT12', which is no type of ONNX"),
    ],
)
def test_what_cannot_be_said_is_refused_with_its_reason(
    operator: str, inputs: list[OldArray], attributes: Any, message: str
) -> None:
    with pytest.raises(dml.Unsupported, match=message):
        run(operator, inputs, 1, **attributes)


def test_experimental_operators_run_in_old_operator_sets_too() -> None:
    assert np.array_equal(run("Affine", [X], 1, alpha=2.0, beta=1.0), X * 2 + 1)
