"""ONNX models are explained, bound to arrays and saved, as compiled graphs are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx

import opendml as dml
from opendml import onnx as dml_onnx
from opendml.targets import object_cache

_HEAD = '<ir_version: 10, opset_import: ["" : 20]>'
_TEXT = f"""{_HEAD}
g (float[n, 64] x, float scale) => (float[n, 64] y, bool[n, 64] positive)
<float[64] bias = {{{", ".join(map(str, range(64)))}}}>
{{ sum = Add (x, bias)
  y = Mul (sum, scale)
  zero = Constant <value_float = 0.0> ()
  positive = Greater (y, zero) }}
"""
_FIXED = f"{_HEAD} g (float[8, 4] x) => (float[8, 4] y) {{ t = Tanh (x) y = Relu (t) }}"
_TWO_GRAPHS = f"""{_HEAD}
g (float[n] x, int64[2] sizes) => (float[1, m] y, int64[1] same)
{{ size = ReduceMax (sizes) t = Tanh (x) r = Relu (t) s = Softsign (r)
  one = Constant <value_ints = [1]> () wide = Concat <axis = 0> (one, size)
  turned = Reshape (s, wide) y = Exp (turned) same = Add (size, one) }}
"""
_IN_PYTHON = f"{_HEAD} g (float[4] x) => (double[4] z) {{ y = Tanh (x) d = Cast <to = 11> (y) z = Sin (d) }}"
_X = np.linspace(-80, 80, 3 * 64, dtype=np.float32).reshape(3, 64)
_SCALE = np.array(2, np.float32)


def _load(text: str, **options: Any) -> dml_onnx.OnnxModel:
    return dml_onnx.load(onnx.parser.parse_model(text), "cpu", **options)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are kept."""
    monkeypatch.setenv(object_cache.PLANS_VARIABLE, "1")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(_TEXT), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_a_model_is_explained_for_the_sizes_of_its_inputs() -> None:
    model = _load(_TEXT)
    found = model.explain(_X)
    assert [kernel.name for kernel in model.explain(x=_X).kernels] == [
        kernel.name for kernel in found.kernels
    ]
    assert {each.operator for each in found.operators} >= {"ELEMENT_WISE_ADD", "ELEMENT_WISE_MULTIPLY"}
    assert sum(each.bytes_written for each in found.kernels) >= _X.nbytes + _X.size
    assert found.seconds > 0
    assert _load(_FIXED).explain().kernels[0].name == "ACTIVATION_TANH + ACTIVATION_RELU"
    with pytest.raises(dml.InvalidArgument, match="explain: input 'x' has open sizes; an array is needed"):
        model.explain()
    with pytest.raises(dml.InvalidArgument, match="input 'z' is unknown; the model has 'x', 'scale'"):
        model.explain(x=_X, z=_X)
    with pytest.raises(dml.InvalidArgument, match="input 'q' is unknown; the model has 'x', 'scale'"):
        model.explain(q=1)
    with pytest.raises(dml.InvalidArgument, match="input 'x' is given by its place and by its name"):
        model.explain(_X, x=_X)


def test_graphs_of_a_model_are_explained_as_one() -> None:
    found = _load(_TWO_GRAPHS).explain(x=np.ones(6, np.float32), sizes=np.array([6, 2]))
    assert [each.number for each in found.kernels] == list(range(len(found.kernels)))
    labels = [each.label for each in found.operators]
    assert labels[0].startswith("graphs[0].")
    assert labels[-1].startswith("graphs[1].")
    assert {name for each in found.kernels for name in each.operators} <= set(labels)
    assert all(number < len(found.kernels) for each in found.operators for number in each.kernels)
    assert "ELEMENT_WISE_EXP" in str(found)
    assert found.html()


@pytest.mark.filterwarnings("ignore::opendml.onnx.EvaluatorWarning")
def test_nodes_outside_of_graphs_are_named_when_a_model_is_explained() -> None:
    with pytest.warns(UserWarning, match=r"'z' \(Sin-20\) runs outside of DirectML's operators"):
        assert _load(_IN_PYTHON).explain().kernels
    with pytest.warns(UserWarning, match="outside of") as caught:
        _load(_IN_PYTHON).explain()
    assert {each.filename for each in caught} == {__file__}
    text = f"{_HEAD} g (double[4] x) => (double[4] y) {{ y = Sin (x) }}"
    with (
        pytest.warns(UserWarning, match="outside of"),
        pytest.raises(dml.Unsupported, match="explain: nothing of the model becomes a graph"),
    ):
        _load(text).explain()


def test_a_bound_model_reads_and_writes_its_arrays() -> None:
    model, x, scale = _load(_TEXT), _X.copy(), _SCALE.copy()
    y, positive = np.empty_like(x), np.empty(x.shape, np.bool_)
    bound = model.bind({"x": x, "scale": scale}, {"y": y, "positive": positive})
    for change in (1.0, -3.0):
        x *= change
        scale += 1
        bound.dispatch()
        wanted = model(x, scale)
        np.testing.assert_array_equal(y, wanted["y"])
        np.testing.assert_array_equal(positive, wanted["positive"])
    other = np.empty((5, 64), np.float32)
    model.bind(
        {"x": np.ones((5, 64), np.float32), "scale": scale}, {"y": other, "positive": other > 0}
    ).dispatch()
    np.testing.assert_array_equal(
        other, (np.arange(64, dtype=np.float32) + 1) * scale + np.zeros((5, 1), np.float32)
    )


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"x": _X[:, ::2]}, dml.InvalidArgument, "'x' has sizes .3, 32."),
        ({"x": np.asfortranarray(_X)}, dml.InvalidArgument, "'x': strides .4, 12.; a packed array is needed"),
        ({"x": _X.tolist()}, dml.InvalidArgument, "'x': a list; a NumPy array of float32 is needed"),
        ({"x": _X.astype(">f4")}, dml.InvalidArgument, "'x': >f4 of sizes .3, 64.; a NumPy array of float32"),
        ({"x": None}, dml.InvalidArgument, "input 'x' is missing"),
        (
            {"y": np.empty((2, 64), np.float32)},
            dml.InvalidArgument,
            "'y': float32 of sizes .2, 64.; an array of",
        ),
        ({"y": None}, dml.InvalidArgument, "y is missing"),
        ({"y": [1]}, dml.InvalidArgument, "'y': a list; an array of float32 of sizes .3, 64. is needed"),
    ],
)
def test_what_cannot_be_bound_is_named(change: dict[str, Any], kind: type[Exception], message: str) -> None:
    arrays = {
        "x": _X,
        "scale": _SCALE,
        "y": np.empty_like(_X),
        "positive": np.empty(_X.shape, np.bool_),
        **change,
    }
    inputs, outputs = (
        {name: arrays[name] for name in names if arrays[name] is not None}
        for names in (("x", "scale"), ("y", "positive"))
    )
    with pytest.raises(kind, match=message):
        _load(_TEXT).bind(inputs, outputs)


def test_a_model_of_several_graphs_is_not_bound() -> None:
    arrays = {"x": np.ones(6, np.float32), "sizes": np.array([6, 2])}
    outputs = {"y": np.empty((1, 6), np.float32), "same": np.empty(1, np.int64)}
    with pytest.raises(dml.Unsupported, match="bind: the model is more than one graph"):
        _load(_TWO_GRAPHS).bind(arrays, outputs)


def test_a_model_whose_inputs_decide_what_runs_is_not_bound() -> None:
    text = f"""{_HEAD} g (float[n] x, int64[2] sizes) => (float[a, b] y) {{ y = Reshape (x, sizes) }}"""
    arrays = {"x": np.ones(6, np.float32), "sizes": np.array([3, 2])}
    with pytest.raises(dml.Unsupported, match="bind: numbers of input 'sizes' decide what runs; `run` reads"):
        _load(text).bind(arrays, {"y": np.empty((3, 2), np.float32)})


@pytest.mark.parametrize("is_known", [False, True])
def test_a_saved_model_is_the_same_model(is_known: bool, path: Path, tmp_path: Path) -> None:
    model = dml_onnx.load(path, "cpu") if is_known else _load(_TEXT)
    wanted = model(_X, _SCALE)
    model.save(tmp_path / "other.onnx")
    for load in (dml_onnx.load, lambda file: dml_onnx.InferenceSession(file).model):
        again = load(tmp_path / "other.onnx")
        assert again.inputs == model.inputs
        for name, array in again(_X, _SCALE).items():
            np.testing.assert_array_equal(array, wanted[name])


def test_a_saved_model_has_its_fixed_sizes_and_its_external_weights(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"{_HEAD} g (float[n, 64] x) => (float[n, 64] y) {{ y = MatMul (x, w) }}")
    weights = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(
        model, tmp_path / "model.onnx", save_as_external_data=True, location="weights", size_threshold=0
    )
    loaded = dml_onnx.load(tmp_path / "model.onnx", "cpu", sizes=dml_onnx.Sizes({"n": 3}))
    (tmp_path / "elsewhere").mkdir()
    loaded.save(tmp_path / "elsewhere" / "model.onnx")
    again = dml_onnx.load(tmp_path / "elsewhere" / "model.onnx", "cpu")
    assert again.inputs[0].sizes == (3, 64)
    np.testing.assert_array_equal(again(_X)["y"], loaded(_X)["y"])


@pytest.mark.usefixtures("plans")
@pytest.mark.parametrize("sizes", [[], [3], [3, 40, 1]])
def test_a_compiled_file_has_the_sizes_that_ran(sizes: list[int], tmp_path: Path) -> None:
    model = _load(_TEXT if sizes else _FIXED)
    given = [np.full((size, 64), size, np.float32) for size in sizes]
    wanted = [model(each, _SCALE)["y"] for each in given]
    model.save(tmp_path / "model.odml", compiled=True)
    again = dml_onnx.load(tmp_path / "model.odml", "cpu")
    for each, result in zip(given, wanted, strict=True):
        np.testing.assert_array_equal(again(each, _SCALE)["y"], result)
    if not sizes:
        again(np.ones((8, 4), np.float32))
    assert callable(again._opened)  # It was neither parsed nor traced.


@pytest.mark.usefixtures("plans")
def test_what_cannot_be_compiled_to_a_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(
        dml.InvalidArgument, match="save: input 'x' has open sizes; call or warm up the model"
    ):
        _load(_TEXT).save(tmp_path / "a.odml", compiled=True)
    model = _load(_TWO_GRAPHS)
    model(np.ones(6, np.float32), np.array([6, 2]))
    with pytest.raises(dml.Unsupported, match="save: compiled=True: a file is compiled for one graph"):
        model.save(tmp_path / "a.odml", compiled=True)
    with pytest.raises(dml.InvalidArgument, match="No such file or directory"):
        _load(_FIXED).save(tmp_path / "none" / "a.onnx")
    assert not (tmp_path / "a.odml").exists()
