"""`opendml check`: whether models are valid, at which level, and whether they run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from opendml.cli import main
from opendml.errors import Unsupported
from opendml.spec.operator_desc import OperatorDesc


def _check(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["check", str(path), *arguments])


def _model(path: Path, operator: str, sizes: list[int], **attributes: Any) -> Path:
    tensor = {"DataType": "FLOAT32", "Sizes": sizes}
    desc = {"InputTensor": tensor, "OutputTensor": tensor, **attributes}
    dispatchables = {"it": {"type": operator, "desc": desc}}
    path.write_text(json.dumps({"resources": {}, "dispatchables": dispatchables, "commands": []}))
    return path


def test_valid_model(tmp_path: Path) -> None:
    path = _model(tmp_path / "m.json", "ACTIVATION_CELU", [2, 3], Alpha=1)
    result = _check(path, "--feature-level", "3_0")
    assert (result.exit_code, result.stdout) == (
        0,
        "'it' (ACTIVATION_CELU): valid at DML_FEATURE_LEVEL_3_0\n",
    )


@pytest.mark.parametrize("level", ["2_1", "DML_FEATURE_LEVEL_2_1"])
def test_field_reason_and_first_valid_level_are_named(level: str, tmp_path: Path) -> None:
    path = _model(tmp_path / "m.json", "ACTIVATION_HARD_SIGMOID", [1, 2, 3], Alpha=1, Beta=0)
    result = _check(path, "--feature-level", level)
    assert result.exit_code == 1
    title, *failures = result.stdout.splitlines()
    assert title == (
        "'it' (ACTIVATION_HARD_SIGMOID): not valid at DML_FEATURE_LEVEL_2_1; valid from DML_FEATURE_LEVEL_3_0"
    )
    for field, failure in zip(["InputTensor", "OutputTensor"], failures, strict=True):
        assert failure.startswith(f"  $.dispatchables.it: ACTIVATION_HARD_SIGMOID.{field}: 3 dimensions; ")


def test_level_at_which_the_operator_does_not_exist(tmp_path: Path) -> None:
    path = _model(tmp_path / "m.json", "ACTIVATION_CELU", [1, 1, 2, 3], Alpha=1)
    result = _check(path, "--feature-level", "2_0")
    assert result.exit_code == 1
    assert "not valid at DML_FEATURE_LEVEL_2_0; valid from DML_FEATURE_LEVEL_3_0" in result.stdout


def test_what_no_level_allows(tmp_path: Path) -> None:
    result = _check(_model(tmp_path / "m.json", "ACTIVATION_RELU", [1] * 9), "--feature-level", "5_0")
    assert result.exit_code == 1
    assert "not valid at DML_FEATURE_LEVEL_5_0; nor at any newer level" in result.stdout


def test_newest_level_is_the_default(tmp_path: Path) -> None:
    assert (
        "valid at DML_FEATURE_LEVEL_6_4" in _check(_model(tmp_path / "m.json", "ACTIVATION_RELU", [1])).stdout
    )


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"resources": {}, "dispatchables": {"a": {}}, "commands": []}']
)
def test_malformed_model(content: str, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(content)
    result = _check(path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: $")


def test_absent_file(tmp_path: Path) -> None:
    result = _check(tmp_path / "no.json")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {tmp_path}/no.json: No such file")


def test_several_models_are_told_apart_and_the_worst_sets_the_status(tmp_path: Path) -> None:
    good = _model(tmp_path / "good.json", "ACTIVATION_RELU", [1])
    bad = _model(tmp_path / "bad.json", "ACTIVATION_RELU", [1] * 9)
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    result = _check(good, str(good))
    assert (result.exit_code, result.stdout.count(f"{good}: 'it' (ACTIVATION_RELU): valid")) == (0, 2)
    assert _check(good, str(bad)).exit_code == 1
    result = _check(broken, str(bad), str(good))
    assert result.exit_code == 2
    assert result.stderr == (
        f"Error: {broken}: $: not valid JSON at line 1, column 2: "
        "Expecting property name enclosed in double quotes\n"
    )
    first, second, third, *others = result.stdout.splitlines()
    assert first.startswith(f"{bad}: 'it' (ACTIVATION_RELU): not valid at")
    assert second.startswith(f"{bad}:   $.dispatchables.it: ACTIVATION_RELU.InputTensor: ")
    assert third.startswith(f"{bad}:   $.dispatchables.it: ACTIVATION_RELU.OutputTensor: ")
    assert others == [f"{good}: 'it' (ACTIVATION_RELU): valid at DML_FEATURE_LEVEL_6_4"]


def test_an_absent_file_among_several_is_named_once(tmp_path: Path) -> None:
    absent, good = tmp_path / "absent.json", _model(tmp_path / "good.json", "ACTIVATION_RELU", [1])
    assert _check(absent, str(good)).stderr == f"Error: {absent}: No such file or directory\n"


@pytest.mark.parametrize("options", [[], ["--runs"]])
def test_model_from_standard_input(options: list[str], tmp_path: Path) -> None:
    text = _model(tmp_path / "m.json", "ACTIVATION_RELU", [1]).read_text()
    result = CliRunner().invoke(main, ["check", "-", *options], input=text)
    end = "; can be run" if options else ""
    assert result.exit_code == 0
    assert result.stdout == f"'it' (ACTIVATION_RELU): valid at DML_FEATURE_LEVEL_6_4{end}\n"
    assert CliRunner().invoke(main, ["check", "-"], input="{").stderr.startswith("Error: $: not valid JSON")


def test_no_model_is_a_wrong_call() -> None:
    result = CliRunner().invoke(main, ["check"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Missing argument 'MODEL...'" in result.stderr


def _with_files(path: Path) -> Path:
    """A model with an operator that runs, and values in files that are not there."""
    _model(path, "ACTIVATION_RELU", [4])
    model = json.loads(path.read_text())
    model["resources"] = {
        "x": {"initialValues": {"sourcePath": "no.npy"}},
        "y": {"initialValuesDataType": "FLOAT32", "initialValues": {"sourcePath": "no.png"}},
    }
    bindings = {"InputTensor": "x", "OutputTensor": "y"}
    model["commands"] = [{"type": "dispatch", "dispatchable": "it", "bindings": bindings}]
    path.write_text(json.dumps(model))
    return path


def test_files_need_not_be_there_for_a_model_to_be_valid(tmp_path: Path) -> None:
    result = _check(_with_files(tmp_path / "m.json"))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "'it' (ACTIVATION_RELU): valid at DML_FEATURE_LEVEL_6_4\n"


def test_runs_names_files_that_are_not_there(tmp_path: Path) -> None:
    result = _check(_with_files(tmp_path / "m.json"), "--runs")
    assert (result.exit_code, result.stderr) == (1, "")
    first, *obstacles = result.stdout.splitlines()
    assert first == "'it' (ACTIVATION_RELU): valid at DML_FEATURE_LEVEL_6_4; can be run"
    for obstacle, name, file in zip(obstacles, "xy", ["no.npy", "no.png"], strict=True):
        assert obstacle.startswith(f"cannot be run here: $.resources.{name}.initialValues.sourcePath: ")
        assert obstacle.endswith(f'got "{file}"')


def _gemm(path: Path) -> Path:
    tensor = {"DataType": "FLOAT32", "Sizes": [1, 1, 2, 2]}
    desc = {"ATensor": tensor, "BTensor": tensor, "OutputTensor": tensor, "Alpha": 1, "Beta": 0}
    desc |= {"TransA": "NONE", "TransB": "NONE"}
    dispatchables = {"it": {"type": "GEMM", "desc": desc}}
    path.write_text(json.dumps({"resources": {}, "dispatchables": dispatchables, "commands": []}))
    return path


def test_runs_names_operators_that_cannot_be_run_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(desc: OperatorDesc) -> None:
        raise Unsupported(f"{desc.operator} cannot be run yet")

    path = _gemm(tmp_path / "m.json")
    assert _check(path).exit_code == 0
    monkeypatch.setattr("opendml.cli.check_command.compilable_of", cannot)
    assert _check(path).stdout == "'it' (GEMM): valid at DML_FEATURE_LEVEL_6_4\n"
    result = _check(path, "--runs")
    assert result.exit_code == 1
    assert result.stdout == "'it' (GEMM): valid at DML_FEATURE_LEVEL_6_4; GEMM cannot be run yet\n"


def test_json_has_an_object_for_each_model(tmp_path: Path) -> None:
    good = _model(tmp_path / "good.json", "ACTIVATION_CELU", [2, 3], Alpha=1)
    broken = tmp_path / "broken.json"
    broken.write_text("[]")
    result = _check(good, str(broken), "--json", "--feature-level", "2_0")
    assert (result.exit_code, result.stderr) == (2, "")
    failures = ["ACTIVATION_CELU: not in DML_FEATURE_LEVEL_2_0; exists from DML_FEATURE_LEVEL_3_0"]
    operator = {"name": "it", "operator": "ACTIVATION_CELU", "path": "$.dispatchables.it", "valid": False}
    operator |= {"valid_from": "DML_FEATURE_LEVEL_3_0", "failures": failures}
    level = "DML_FEATURE_LEVEL_2_0"
    assert json.loads(result.stdout) == [
        {"file": str(good), "feature_level": level, "errors": [], "operators": [operator]},
        {
            "file": str(broken),
            "feature_level": level,
            "errors": ["$: expected an object, got an array of 0"],
            "operators": [],
        },
    ]


def test_json_says_what_runs_only_when_asked(tmp_path: Path) -> None:
    (found,) = json.loads(_check(_with_files(tmp_path / "m.json"), "--json", "--runs").stdout)
    (operator,) = found["operators"]
    assert (operator["valid"], operator["runs"], operator["obstacle"]) == (True, True, None)
    assert (found["runs"], len(found["obstacles"])) == (False, 2)


def test_models_that_are_not_directml_have_status_1(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text('{"resources": {}, "dispatchables": {"a": {"type": "hlsl"}}, "commands": []}')
    result = _check(path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert '"a" is an HLSL compute shader' in result.stderr
