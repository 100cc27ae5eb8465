"""`opendml check`: is a model valid at a feature level, and if not, why and from which level on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from opendml.cli import main


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
