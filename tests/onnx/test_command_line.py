"""ONNX models on the command line: run, checked, explained, and exported as serialized graphs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

pytest.importorskip("onnx")
import onnx

from opendml import onnx as dml_onnx
from opendml import serialized
from opendml.cli import main

_MODEL = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[batch, 3] x, int64[batch] n) => (float[batch, 3] y, int64[batch] same)
<float[3] bias = {1, 2, 3}>
{ y = Add (x, bias)
  same = Identity (n) }
"""
_GAPS = """
<ir_version: 10, opset_import: ["" : 20, "com.microsoft" : 1, "far" : 1]>
g (float[n, 3, 3] x, double[2] d, int64[3] sizes)
=> (float[n, 3, 3] y, double[2] s, float[k, l, m] w, float[n, 3, 3] v)
{ inverse = com.microsoft.Inverse (x)
  y = Relu (inverse)
  s = Sin (d)
  w = Reshape (x, sizes)
  v = far.Away (x) }
"""


def _saved(text: str, path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def _invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def test_run_takes_files_and_makes_up_the_rest(tmp_path: Path) -> None:
    model = _saved(_MODEL, tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.array([[1, 2, 3], [4, 5, 6]], np.float32))
    result = _invoke(
        "run",
        model,
        "--input",
        f"x={tmp_path / 'x.npy'}",
        "--size",
        "batch=2",
        "--output-directory",
        tmp_path,
    )
    assert result.exit_code == 0, result.output
    assert "zeros" in result.stdout
    assert "first run, which compiles" in result.stdout
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), [[2, 4, 6], [5, 7, 9]])
    np.testing.assert_array_equal(np.load(tmp_path / "same.npy"), [0, 0])


def test_run_speaks_json(tmp_path: Path) -> None:
    model = _saved(_MODEL, tmp_path / "m.onnx")
    result = _invoke("run", model, "--json", "--size", "batch=4", "--iterations", 2)
    found = json.loads(result.stdout)
    assert (found["file"], found["device"], found["evaluated"]) == (str(model), "cpu", [])
    assert found["inputs"] == [
        {"name": "x", "type": "float32", "sizes": [4, 3], "source": "random"},
        {"name": "n", "type": "int64", "sizes": [4], "source": "zeros"},
    ]
    assert [each["sizes"] for each in found["outputs"]] == [[4, 3], [4]]
    assert found["outputs"][1] | {"minimum": 0, "maximum": 0, "mean": 0} == found["outputs"][1]
    assert found["median_seconds"] > 0


def test_run_names_what_the_evaluator_did(tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["" : 20]> g (double[2] x) => (double[2] y) { y = Sin (x) }'
    result = _invoke("run", _saved(text, tmp_path / "m.onnx"))
    assert "node 'y' (Sin-20) runs on onnx's evaluator" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["--size", "batch"], 2, "--size batch: NAME=N with a size of at least 1 is needed"),
        (["--size", "batch=2", "--size", "batch=3"], 2, "--size batch=3: batch has the size 2 already"),
        (
            ["--size", "other=2"],
            2,
            "no input or output has a size of the name 'other'; there are: batch",
        ),
        (["--input", "x"], 2, "--input x: NAME=FILE.npy is needed"),
        (["--input", "x=missing.npy"], 2, "missing.npy: No such file or directory"),
    ],
)
def test_run_says_what_is_wrong(arguments: list[str], status: int, text: str, tmp_path: Path) -> None:
    result = _invoke("run", _saved(_MODEL, tmp_path / "m.onnx"), *arguments)
    assert result.exit_code == status
    assert text in result.stderr


def test_compile_says_which_file_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no model")
    for name, text in (
        ("text", "an ONNX model (FILE.onnx) or a file of Model.save is needed"),
        ("a", "No such file"),
    ):
        result = _invoke("compile", str(tmp_path / name), "-o", str(tmp_path / "unwritten"))
        assert (result.exit_code, f"{tmp_path / name}: {text}" in result.stderr) == (2, True)


@pytest.mark.parametrize("command", ["run", "explain", "export -o unwritten"])
def test_errors_say_which_sizes_were_assumed(command: str, tmp_path: Path) -> None:
    text = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[1, 1, width] x) => (float[1, 1, m] y)
<float[1, 1, 3] w = {1, 2, 3}>
{ y = Conv (x, w) }
"""
    result = _invoke(*command.split(), _saved(text, tmp_path / "m.onnx"))
    assert result.exit_code != 0
    assert "input 'x' was [1, 1, 1], as the model leaves sizes open: -b x:N,N,N says others" in result.output


def test_options_of_onnx_models_are_refused_for_others(tmp_path: Path) -> None:
    for path in (tmp_path / "m.json", tmp_path / "m.bin"):
        assert "--input is for ONNX models" in _invoke("run", path, "--input", "x=x.npy").output
    assert "sizes are for ONNX models" in _invoke("run", tmp_path / "m.bin", "--size", "n=1").output
    with_dispatchable = '{"resources": {}, "dispatchables": {}, "commands": []}'
    (tmp_path / "m.json").write_text(with_dispatchable)
    assert "has a size of the name 'n'" in _invoke("run", tmp_path / "m.json", "--size", "n=1").output


def test_check_names_all_gaps_at_once(tmp_path: Path) -> None:
    model = _saved(_GAPS, tmp_path / "m.onnx")
    result = _invoke("check", model, "--size", "n=2")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "opset 20, 5 nodes; inputs: x [2, 3, 3], d [2], sizes [3]"
    assert lines[1] == "2 cannot run; 1 on onnx's evaluator; 2 known only when it runs"
    assert [line.partition("(")[2].partition(")")[0] for line in lines[2:]] == [
        "com.microsoft.Inverse-1",
        "far.Away-1",
        "Sin-20",
        "Relu-20",
        "Reshape-20",
    ]
    assert lines[2].endswith("opendml has no mapping to DirectML's operators")
    assert lines[-1].endswith("depends on the content of tensor 'sizes'")


def test_check_speaks_json_and_takes_several_models(tmp_path: Path) -> None:
    good, bad = _saved(_MODEL, tmp_path / "good.onnx"), tmp_path / "bad.onnx"
    bad.write_bytes(b"no model")
    result = _invoke("check", "--json", good, bad)
    first, second = json.loads(result.stdout)
    assert result.exit_code == 2
    assert (first["nodes"], first["unsupported"], first["evaluated"], first["unknown"]) == (2, [], [], [])
    assert "no ONNX model" in second["errors"][0]
    assert _invoke("check", good).stdout.splitlines()[1] == "all nodes run on DirectML operators"


_NETWORK = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[batch, 4] x) => (float[batch, 3] y)
<float[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[3] b = {-40, 0, 40}, int64[2] sizes = {0, -1}>
{ product = MatMul (x, w)
  sum = Add (product, b)
  flat = Reshape (sum, sizes)
  y = Relu (flat) }
"""
_TWO_GRAPHS = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[4] x) => (float[4] y)
{ shifted = Exp (x)
  wide = Cast <to = 11> (shifted)
  sine = Sin (wide)
  narrow = Cast <to = 1> (sine)
  y = Relu (narrow) }
"""


def test_explain_shows_the_graph_of_a_model(tmp_path: Path) -> None:
    model = _saved(_NETWORK, tmp_path / "m.onnx")
    found = json.loads(_invoke("explain", model, "--size", "batch=2", "--json").stdout)
    assert list(found) == ["m.onnx"]
    assert "x FLOAT32 [2, 4]" in found["m.onnx"]["title"]
    assert "GEMM" in {each["operator"] for each in found["m.onnx"]["operators"]}


def test_explain_takes_inputs_that_decide_what_is_computed(tmp_path: Path) -> None:
    text = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[4] x, bool c) => (float[4] y)
{ y = If (c) <
    then_branch = s () => (float[4] a) { a = Sin (x) },
    else_branch = t () => (float[4] b) { b = Cos (x) }> }
"""
    model = _saved(text, tmp_path / "m.onnx")
    np.save(tmp_path / "c.npy", np.array(True))
    assert "ELEMENT_WISE_COS" in _invoke("explain", model).output
    assert "ELEMENT_WISE_SIN" in _invoke("explain", model, "--input", f"c={tmp_path / 'c.npy'}").output


def test_explain_shows_each_graph_and_names_what_is_outside(tmp_path: Path) -> None:
    result = _invoke("explain", _saved(_TWO_GRAPHS, tmp_path / "m.onnx"))
    assert result.exit_code == 0, result.output
    assert "'m.onnx[0]':" in result.stdout
    assert "'m.onnx[1]':" in result.stdout
    assert "m.onnx: node 'sine' (Sin-20) runs outside of DirectML's operators" in result.stderr
    page = tmp_path / "page.html"
    chosen = _invoke("explain", tmp_path / "m.onnx", "--dispatchable", "m.onnx[1]", "--html", page)
    assert chosen.exit_code == 0, chosen.output
    assert page.exists()


def test_explain_says_that_there_is_no_graph(tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["" : 20]> g (double[2] x) => (double[2] y) { y = Sin (x) }'
    result = _invoke("explain", _saved(text, tmp_path / "m.onnx"))
    assert (result.exit_code, result.stdout) == (0, "")
    assert "m.onnx: node 'y' (Sin-20) runs outside" in result.stderr
    assert "m.onnx: nothing of it becomes a graph of DirectML's operators" in result.stderr


def test_explain_takes_an_onnx_dispatchable(tmp_path: Path) -> None:
    _saved(_NETWORK, tmp_path / "m.onnx")
    text = {
        "resources": {},
        "dispatchables": {"net": {"type": "onnx", "sourcePath": "m.onnx"}},
        "commands": [],
    }
    (tmp_path / "m.json").write_text(json.dumps(text))
    found = json.loads(_invoke("explain", tmp_path / "m.json", "-f", "batch:5", "--json").stdout)
    assert "x FLOAT32 [5, 4]" in found["net"]["title"]


def test_an_exported_model_computes_what_the_model_does(tmp_path: Path) -> None:
    model = _saved(_NETWORK, tmp_path / "m.onnx")
    result = _invoke("export", model, "-f", "batch:2", "--output", tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == str(tmp_path / "m.bin")
    x = np.linspace(-1, 2, 8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_allclose(
        serialized.load(tmp_path / "m.bin")(x=x)["y"], dml_onnx.load(model)(x)["y"], rtol=1e-6
    )


_RESHAPED = """<ir_version: 10, opset_import: ["" : 20]>
g (float[4] x, int64[COUNT] sizes) => (float[n] y)
{ a = Exp (x)
  size = SIZE
  b = Reshape (a, size)
  y = Relu (b) }"""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (_TWO_GRAPHS, "a graph of DirectML has no node 'sine' (Sin-20), which runs outside of one"),
        (
            _RESHAPED.replace("COUNT", "2").replace("SIZE", "ReduceMax (sizes)"),
            "2 graphs: what follows the first depends on what it computes",
        ),
        (
            _RESHAPED.replace("COUNT", "1").replace("SIZE", "Abs (sizes)"),
            "numbers of input 'sizes' decide what the graph is",
        ),
        (
            """<ir_version: 10, opset_import: ["" : 20]>
            g (float[4] x) => (float[4] y, int64[1] z)
            { y = Exp (x)
              z = Shape (x) }""",
            "output 'z' is an input or always the same: no operator makes it",
        ),
    ],
)
def test_what_is_no_single_graph_is_not_exported(text: str, problem: str, tmp_path: Path) -> None:
    result = _invoke("export", _saved(text, tmp_path / "m.onnx"), "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert f"m.onnx: {problem}" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    model = _saved(_MODEL, tmp_path / "m.onnx")
    for name in [each for each in sys.modules if each == "opendml.onnx"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    for command in (["run"], ["explain"], ["export", "-o", tmp_path]):
        assert "pip install 'opendml[onnx]'" in _invoke(*command, model).stderr
    assert (
        "pip install 'opendml[onnx]'" in json.loads(_invoke("check", "--json", model).stdout)[0]["errors"][0]
    )
