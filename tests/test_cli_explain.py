"""`opendml explain`: texts, pages and traces."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from opendml.cli import main

CELU = str(Path(__file__).parents[1] / "examples" / "celu.json")


def _explain(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["explain", *arguments])


def two_dispatchables(folder: Path) -> str:
    tensor = {"DataType": "FLOAT32", "Sizes": [3]}
    desc = {"InputTensor": tensor, "OutputTensor": tensor, "Alpha": 1}
    celu = {"type": "DML_OPERATOR_ACTIVATION_CELU", "desc": desc}
    path = folder / "two.json"
    model = {"resources": {}, "dispatchables": {"celu": celu, "other": celu}, "commands": []}
    path.write_text(json.dumps(model), "utf-8")
    return str(path)


def test_the_text_names_each_dispatchable_and_its_kernels(tmp_path: Path) -> None:
    result = _explain(two_dispatchables(tmp_path))
    assert result.exit_code == 0
    assert "'celu':" in result.stdout
    assert "'other':" in result.stdout
    assert result.stdout.count("1 operator in 1 kernel") == 2


def test_files_and_json_are_those_of_the_explanation(tmp_path: Path) -> None:
    page, trace = tmp_path / "page.html", tmp_path / "trace.json"
    result = _explain(CELU, "--html", str(page), "--trace", str(trace), "--json")
    assert result.exit_code == 0
    (found,) = json.loads(result.stdout).values()
    assert [each["operator"] for each in found["operators"]] == ["ACTIVATION_CELU"]
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert [
        each["name"] for each in json.loads(trace.read_text("utf-8"))["traceEvents"] if each["ph"] == "X"
    ] == ["ACTIVATION_CELU"]


def test_a_file_is_of_one_dispatchable_that_is_named(tmp_path: Path) -> None:
    model, page = two_dispatchables(tmp_path), tmp_path / "page.html"
    refused = _explain(model, "--html", str(page))
    assert refused.exit_code == 2
    assert "2 dispatchables" in refused.stderr
    assert "--dispatchable: celu, other" in refused.stderr
    assert not page.exists()
    assert _explain(model, "--html", str(page), "--dispatchable", "other").exit_code == 0
    assert page.exists()


def test_an_unknown_dispatchable_is_an_error() -> None:
    result = _explain(CELU, "--dispatchable", "relu")
    assert result.exit_code == 2
    assert "unknown; the model has celu" in result.stderr


def test_the_reference_says_that_it_has_no_kernels() -> None:
    result = _explain(CELU, "--device", "reference")
    assert result.exit_code == 0
    assert "it has no kernels" in result.stdout


def test_a_serialized_graph_is_explained_as_one_dispatchable(tmp_path: Path) -> None:
    assert CliRunner().invoke(main, ["export", CELU, "-o", str(tmp_path)]).exit_code == 0
    found = json.loads(_explain(str(tmp_path / "celu.bin"), "--json").stdout)
    assert list(found) == ["celu.bin"]
    assert [each["operator"] for each in found["celu.bin"]["operators"]] == ["ACTIVATION_CELU"]
    model = {
        "resources": {},
        "dispatchables": {"g": {"type": "dmlSerializedGraph", "sourcePath": "celu.bin"}},
        "commands": [],
    }
    outer = tmp_path / "outer.json"
    outer.write_text(json.dumps(model), "utf-8")
    assert list(json.loads(_explain(str(outer), "--json").stdout)) == ["g"]


def test_a_broken_model_has_status_2(tmp_path: Path) -> None:
    (tmp_path / "broken.bin").write_bytes(bytes(8))
    result = _explain(str(tmp_path / "broken.bin"))
    assert result.exit_code == 2
    assert "broken.bin: byte 0" in result.stderr
