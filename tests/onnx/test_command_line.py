"""`opendml run` and `opendml check` of ONNX models."""

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
        (["--size", "other=2"], 2, "--size other: no input has a size of that name"),
        (["--input", "x"], 2, "--input x: NAME=FILE.npy is needed"),
        (["--input", "x=missing.npy"], 2, "missing.npy: No such file or directory"),
    ],
)
def test_run_says_what_is_wrong(arguments: list[str], status: int, text: str, tmp_path: Path) -> None:
    result = _invoke("run", _saved(_MODEL, tmp_path / "m.onnx"), *arguments)
    assert result.exit_code == status
    assert text in result.stderr


def test_options_of_onnx_models_are_refused_for_others(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text("{}")
    assert "are for ONNX models" in _invoke("run", tmp_path / "m.json", "--size", "n=1").output


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


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    model = _saved(_MODEL, tmp_path / "m.onnx")
    for name in [each for each in sys.modules if each == "opendml.onnx"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert "pip install 'opendml[onnx]'" in _invoke("run", model).stderr
    assert (
        "pip install 'opendml[onnx]'" in json.loads(_invoke("check", "--json", model).stdout)[0]["errors"][0]
    )
