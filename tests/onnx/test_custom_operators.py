"""Operators of ONNX models that are Python functions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("onnx")
import onnx

import opendml as dml
from opendml import onnx as dml_onnx
from opendml.cli import main
from opendml.frontends.onnx import custom
from opendml.targets import object_cache

_HEAD = '<ir_version: 10, opset_import: ["" : 20, "my" : 3, "local" : 1]>'
_X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operators of one test are not those of another."""
    monkeypatch.setattr(custom, "_operators", custom._operators.copy())


def _model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(_HEAD + text)


def _load(text: str) -> dml_onnx.OnnxModel:
    return dml_onnx.load(_model(text), "cpu")


def _register(function: Any, name: str = "Own", **options: Any) -> Any:
    return dml_onnx.custom_operator("my", name, **options)(function)


_ONE = "g (float[n, m] x) => (float[n, m] y) { t = Relu (x) s = my.Own <factor = 0.5> (t) y = Neg (s) }"


def test_a_function_on_graph_tensors_is_part_of_the_graph() -> None:
    calls = []

    def own(x: Any, *, factor: float = 1.0) -> Any:
        calls.append(x.sizes)
        return dml.element_wise_exp(x) * factor

    _register(own)
    model = _load(_ONE)
    for rows in (2, 3, 50):
        x = np.linspace(-2, 2, rows * 3, dtype=np.float32).reshape(rows, 3)
        wanted = -np.exp(np.maximum(x, 0)) * 0.5
        np.testing.assert_allclose(model(x)["y"], wanted, rtol=1e-6)
        assert len(model.parts({"x": x})) == 1
    assert len(calls) == 1  # All sizes share a trace.
    session = dml_onnx.InferenceSession(_model(_ONE).SerializeToString())
    np.testing.assert_allclose(session.run(["y"], {"x": x})[0], wanted, rtol=1e-6)


def test_a_function_may_compute_with_sizes_that_change() -> None:
    _register(lambda x: x * (1 / x.sizes[0]) + x.sizes[1], name="Mean")
    model = _load("g (float[n, m] x) => (float[n, m] y) { y = my.Mean (x) }")
    for rows, columns in ((2, 3), (5, 3), (4, 9)):
        x = np.ones((rows, columns), np.float32)
        np.testing.assert_allclose(model(x)["y"], x / rows + columns, rtol=1e-6)


@pytest.mark.filterwarnings("error")
def test_a_function_on_arrays_runs_in_each_run_with_any_sizes() -> None:
    def own(
        x: Any, weights: Any, bias: Any = None, *, k: int, text: str, several: list[int], table: Any
    ) -> Any:
        assert (k, text, several, table.tolist(), bias) == (3, "a", [1, 2], [4, 5], None)
        assert not x.flags.writeable
        assert not weights.flags.writeable
        return np.unique(x) + weights, np.array(x.shape)

    _register(own, on="arrays")
    model = _load(
        "g (float[n] x) => (float[m] y, int64[1] z, float[m] same) <float[1] w = {7}> {"
        "t = Relu (x) same, z = my.Own "
        '<k = 3, text = "a", several = [1, 2], table = int64[2] {4, 5}> (t, w, )'
        "y = Neg (same) }"
    )
    for count in (3, 6, 4, 9, 5):
        found = model(np.arange(count, dtype=np.float32) - 1)
        wanted = np.unique(np.maximum(np.arange(count, dtype=np.float32) - 1, 0)) + 7
        np.testing.assert_array_equal(found["y"], -wanted)
        np.testing.assert_array_equal(found["same"], wanted)
        assert found["z"].tolist() == [count]
    assert model._tracer.traced_count <= 4


def test_a_function_may_return_its_input() -> None:
    _register(lambda x: x, on="arrays")
    x = _X.copy()
    y = _load("g (float[n, m] x) => (float[n, m] y) { y = my.Own (x) }")(x)["y"]
    y[...] = 0
    np.testing.assert_array_equal(x, _X)


def test_inputs_of_constants_are_arrays_of_their_content() -> None:
    _register(lambda x, axes: dml.reduce(x, function="SUM", axes=[*axes]), name="Sum", constants=[1])
    known = _load("g (float[n, m] x) => (float[n, k] y) <int64[1] a = {1}> { y = my.Sum (x, a) }")
    np.testing.assert_array_equal(known(_X)["y"], _X.sum(1, keepdims=True))
    given = _load("g (float[n, m] x, int64[1] a) => (float[n, k] y) { y = my.Sum (x, a) }")
    for axis in (0, 1):
        np.testing.assert_array_equal(given(_X, np.array([axis]))["y"], _X.sum(axis, keepdims=True))


def test_outputs_have_the_types_that_are_stated() -> None:
    _register(
        lambda x: (dml.element_wise_logical_greater_than(x, x * 0), x), name="Positive", types=[np.bool_]
    )
    found = _load("g (float[n, m] x) => (bool[n, m] y, float[n, m] z) { y, z = my.Positive (x) }")(_X)
    assert [each.dtype for each in found.values()] == [np.bool_, np.float32]
    np.testing.assert_array_equal(found["y"], _X > 0)


@pytest.mark.parametrize(
    ("type", "stored"), [(np.bool_, "UINT8"), (np.int64, "INT64"), ("float16", "FLOAT16")]
)
def test_a_stated_type_is_that_of_the_elements(type: Any, stored: str) -> None:
    _register(lambda x: x, types=[type])
    message = f"output 0 is FLOAT32; {stored} is needed for its type {np.dtype(type).name}"
    with pytest.raises(dml.Error, match=message):
        _load("g (float[n, m] x) => (y) { y = my.Own (x) }")(_X)


def test_a_tensor_of_an_earlier_trace_is_refused() -> None:
    tensors: list[Any] = []

    def first(x: Any) -> Any:
        tensors.append(x)
        return tensors[0]

    _register(first)
    text = "g (float[n, m] x) => (float[n, m] y) { y = my.Own (x) }"
    _load(text)(_X)
    with pytest.raises(dml.Error, match="output 0 is a tensor of another graph"):
        _load(text)(_X)


def test_arrays_may_have_the_other_byte_order() -> None:
    _register(lambda x: x.astype(x.dtype.newbyteorder()), on="arrays")
    found = _load("g (float[n, m] x) => (float[n, m] y) { t = my.Own (x) y = Neg (t) }")(_X)
    np.testing.assert_array_equal(found["y"], -_X)


def test_versions_hold_up_to_the_next_one() -> None:
    for version, factor in ((1, 10.0), (3, 30.0), (4, 40.0)):
        _register(lambda x, factor=factor: x * factor, name="Times", version=version)
    text = "g (float[n] x) => (float[n] y) { y = my.Times (x) }"
    for opset, factor in ((1, 10), (2, 10), (3, 30), (9, 40)):
        model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20, "my" : {opset}]> {text}')
        assert dml_onnx.load(model)(np.ones(1, np.float32))["y"] == factor


def test_a_later_function_takes_the_place_of_an_earlier_one() -> None:
    text = "g (float[n, m] x) => (float[n, m] y) { y = my.Own (x) }"
    _register(lambda x: x + 1.0)
    before = _load(text)
    np.testing.assert_array_equal(before(_X)["y"], _X + 1)
    _register(lambda x: x + 2.0)
    np.testing.assert_array_equal(_load(text)(_X)["y"], _X + 2)


@pytest.mark.parametrize("on", ["graph", "arrays"])
def test_operators_run_in_loops_branches_and_functions(on: Any) -> None:
    _register(lambda x: x + x, name="Twice", on=on)
    model = onnx.parser.parse_model(
        f"""{_HEAD}
        g (float[n, m] x, bool c) => (float[n, m] y, float[n, m] z, float[n, m] w) {{
          y = local.Four (x)
          z = If (c) <then_branch = a () => (float[n, m] p) {{ p = my.Twice (x) }},
            else_branch = b () => (float[n, m] q) {{ q = Neg (x) }}>
          three = Constant <value_int = 3> ()
          w = Loop (three, , x) <body = d (int64 i, bool go, float[n, m] s) => (bool on, float[n, m] r) {{
            on = Identity (go) r = my.Twice (s) }}>
        }}
        <opset_import: ["" : 20, "my" : 1], domain: "local">
        Four (x) => (y) {{ t = my.Twice (x) y = my.Twice (t) }}
        """
    )
    found = dml_onnx.load(model)(_X, np.array(True))
    for name, factor in (("y", 4), ("z", 2), ("w", 8)):
        np.testing.assert_array_equal(found[name], _X * factor)


def test_a_function_of_the_model_goes_first() -> None:
    _register(lambda x: x * 0.0, name="Both")
    model = onnx.parser.parse_model(
        f"""{_HEAD} g (float[n, m] x) => (float[n, m] y) {{ y = my.Both (x) }}
        <opset_import: ["" : 20], domain: "my"> Both (x) => (y) {{ y = Neg (x) }}"""
    )
    np.testing.assert_array_equal(dml_onnx.load(model)(_X)["y"], -_X)


def _fails(x: Any) -> Any:
    raise ZeroDivisionError("by nothing")


@pytest.mark.parametrize(
    ("function", "on", "call", "message"),
    [
        (lambda x: x, "graph", "<k = 1> (x)", "got an unexpected keyword argument 'k'"),
        (lambda x, y: x, "arrays", "(x)", "missing a required argument: 'y'"),
        (_fails, "graph", "(x)", "_fails: ZeroDivisionError: by nothing"),
        (_fails, "arrays", "(x)", "_fails: ZeroDivisionError: by nothing"),
        (lambda x: 3, "graph", "(x)", "output 0 is of type int; a graph tensor is needed"),
        (lambda x: "a", "arrays", "(x)", "output 0 is of type str; a NumPy array is needed"),
        (lambda x: (), "arrays", "(x)", "returns 0 values; the node has 1 outputs"),
        (lambda x: dml.element_wise_add(x), "graph", "(x)", "missing 1 required positional argument: 'b'"),
        (lambda x: dml.gemm(x, x), "graph", "(x)", "gemm"),
        (
            lambda x: x,
            "graph",
            "(s)",
            "input 0 is of type object; a function that is registered with on='arrays'",
        ),
    ],
)
def test_errors_name_the_node_and_the_function(function: Any, on: Any, call: str, message: str) -> None:
    _register(function, on=on)
    model = _load(f"g (float[n, m] x, string[n] s) => (y) {{ y = my.Own {call} }}")
    with pytest.raises(dml.Error, match=rf"node 'y' \(my.Own-3\): .*{re.escape(message)}"):
        model(_X, np.array(["a", "b"], object))


def test_an_unknown_operator_names_the_hook() -> None:
    fix = "dml.onnx.custom_operator registers a function"
    with pytest.raises(dml.Unsupported, match=rf"my\.Absent-3\): neither opendml nor .*; {fix}"):
        _load("g (float[n] x) => (float[n] y) { y = my.Absent (x) }")


@pytest.mark.parametrize(
    ("domain", "name", "options", "message"),
    [
        ("", "Own", {}, "the domain is not open to other operators"),
        ("ai.onnx", "Own", {}, "the domain is not open to other operators"),
        ("opendml", "Own", {}, "the domain is not open to other operators"),
        ("com.microsoft", "Gelu", {}, "opendml has this operator"),
        ("my", "", {}, "the names of a domain and of an operator are needed"),
        (3, "Own", {}, "the names of a domain and of an operator are needed"),
        ("my", "Own", {"version": 0}, "version 0; a whole number from 1 on is needed"),
        ("my", "Own", {"version": True}, "version True; a whole number from 1 on is needed"),
        ("my", "Own", {"on": "tensors"}, "on='tensors'; must be one of 'graph', 'arrays'"),
        ("my", "Own", {"on": "arrays", "constants": [1]}, "constants and types are for functions on graph"),
        ("my", "Own", {"types": ["no type"]}, "types: data type 'no type' not understood"),
        ("my", "Own", {"types": [str]}, "types: the tensor is of type <U0"),
        ("my", "Own", {"constants": 3}, "constants=3; the numbers of inputs are needed"),
        ("my", "Own", {"constants": [-1]}, r"constants=\[-1\]; the numbers of inputs are needed"),
    ],
)
def test_what_cannot_be_registered_is_named(domain: Any, name: Any, options: Any, message: str) -> None:
    with pytest.raises(dml.InvalidArgument, match=message):
        dml_onnx.custom_operator(domain, name, **options)
    with pytest.raises(dml.InvalidArgument, match="3; a function is needed"):
        dml_onnx.custom_operator("my", "Own")(3)  # type: ignore[type-var]


def test_what_only_the_evaluator_runs_may_be_replaced() -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 20, "ai.onnx.ml" : 3]> '
        "g (float[n, m] x) => (float[n, m] y) { y = ai.onnx.ml.Binarizer <threshold = 1.0> (x) }"
    )
    wanted = (_X > 1).astype(np.float32)
    with pytest.warns(dml_onnx.EvaluatorWarning) as caught:
        np.testing.assert_array_equal(dml_onnx.load(onnx.parser.parse_model(text))(_X)["y"], wanted)
    assert {each.filename for each in caught} == {__file__}

    @dml_onnx.custom_operator("ai.onnx.ml", "Binarizer")
    def binarizer(x: Any, *, threshold: float) -> Any:
        return x.graph.constant(np.ones(1, np.float32)) * dml.cast(x > threshold, output_type=dml.FLOAT32)

    replaced = dml_onnx.load(onnx.parser.parse_model(text))
    np.testing.assert_array_equal(replaced(_X)["y"], wanted)
    assert len(replaced.parts({"x": _X})) == 1


def test_no_file_holds_a_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(object_cache.PLANS_VARIABLE, "1")
    path, target = tmp_path / "model.onnx", tmp_path / "model.odml"
    onnx.save(_model("g (float[2, 3] x) => (float[2, 3] y) { y = my.Own (x) }"), path)
    for term in (1.0, 2.0):  # Neither the cache of plans nor that of declarations serves another function.
        _register(lambda x, term=term: x + term)
        np.testing.assert_array_equal(dml_onnx.load(path)(_X)["y"], _X + term)
    reason = "my.Own is a Python function, which no file holds"
    with pytest.raises(dml.Unsupported, match=reason):
        dml_onnx.load(path).save(target, compiled=True)
    result = CliRunner().invoke(main, ["compile", str(path), "-o", str(target)])
    assert result.exit_code != 0
    assert reason in result.output
    custom._operators.clear()
    with pytest.raises(dml.Unsupported, match=r"dml\.onnx\.custom_operator registers a function"):
        dml_onnx.load(path)
    assert not target.exists()


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (np.zeros((2, 3), np.int8), "is of type int8; must be float32"),
        (np.zeros((2, 4), np.float32), "has sizes [2, 4]; must be [n, 3]"),
        (np.zeros(3, np.float32), "has sizes [3]; must be [n, 3]"),
        ([np.zeros((2, 3), np.float32)], "is a list; must be a tensor of float32"),
    ],
)
def test_a_result_on_arrays_is_as_the_model_declares(result: Any, problem: str) -> None:
    def own(x: Any) -> Any:
        return result

    _register(own, on="arrays")
    with pytest.raises(dml.InvalidArgument) as caught:
        _load("g (float[n, 3] x) => (float[n, 3] y) { y = my.Own (x) }")(_X)
    where = (
        "model: node 'y' (my.Own-3): test_a_result_on_arrays_is_as_the_model_declares.<locals>.own: output 0"
    )
    assert str(caught.value) == f"{where} {problem}, as the model declares"


def test_an_output_that_depends_on_a_result_is_as_the_model_declares() -> None:
    _register(lambda x: x.astype(np.int8), on="arrays")
    with pytest.raises(
        dml.InvalidArgument, match=r"output 'y' is of type int8; .* 's' \(my.Own-3\): .*<lambda>"
    ):
        _load("g (float[n, m] x) => (float[n, m] y) { s = my.Own (x) y = Neg (s) }")(_X)


@pytest.mark.parametrize(
    "result",
    [np.zeros(2, "M8[D]"), np.array([object()]), np.zeros(2, [("a", "f4")]), [np.zeros(2, "m8[s]")], [None]],
)
def test_a_result_on_arrays_is_of_a_type_that_onnx_has(result: Any) -> None:
    _register(lambda x: result, on="arrays")
    problem = r"node 's' \(my.Own-3\): .*<lambda>: output 0 is .*; an array of a type that ONNX has is needed"
    with pytest.raises(dml.InvalidArgument, match=problem):
        _load("g (float[n, m] x) => (float[n, m] y) { s = my.Own (x) y = Neg (s) }")(_X)


def test_a_function_that_calls_itself_without_end_is_named_once() -> None:
    models: list[Any] = []

    def own(x: Any) -> Any:
        return models[0](x)["y"]

    _register(own, on="arrays")
    models.append(_load("g (float[n, m] x) => (float[n, m] y) { s = my.Own (x) y = Neg (s) }"))
    with pytest.raises(dml.InvalidArgument, match="without end") as caught:
        models[0](_X)
    assert str(caught.value).count("my.Own") == 1
