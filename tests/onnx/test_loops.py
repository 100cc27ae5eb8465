"""Loop and Scan of ONNX models: bodies that run again and again."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx
from onnx import TensorProto, helper

from opendml import InvalidArgument
from opendml import onnx as dml_onnx
from tests.onnx.models import Array, assert_same


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
def test_a_scan_goes_along_an_axis(
    input_axis: int, backwards: int, output_axis: int, output_backwards: int
) -> None:
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
