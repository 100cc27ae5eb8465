"""Serialized graphs on the command line: exported, checked and run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from opendml import serialized
from opendml.cli import main
from tests.printed import results_in

FOUR = {"DataType": "FLOAT32", "Sizes": [4]}
OWNED = {**FOUR, "Flags": "OWNED_BY_DML"}


def cli(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def values(*numbers: float) -> dict[str, Any]:
    return {"initialValuesDataType": "FLOAT32", "initialValues": list(numbers)}


def dispatch(name: str, **bindings: Any) -> dict[str, Any]:
    return {"type": "dispatch", "dispatchable": name, "bindings": bindings}


@pytest.fixture
def model() -> dict[str, Any]:
    """y = relu(x) + w, where w is bound at initialization; then y = y * y, and the sum is printed too."""
    add = {"ATensor": FOUR, "BTensor": OWNED, "OutputTensor": FOUR}
    return {
        "resources": {
            name: values(*content)
            for name, content in (("x", (-1, 2, -3, 4)), ("w", (1, 2, 3, 4)), ("t", [0] * 4), ("y", [0] * 4))
        },
        "dispatchables": {
            "relu": {"type": "ACTIVATION_RELU", "desc": {"InputTensor": FOUR, "OutputTensor": FOUR}},
            "add": {"type": "ELEMENT_WISE_ADD", "desc": add, "bindings": {"BTensor": "w"}},
            "square": {
                "type": "ELEMENT_WISE_MULTIPLY",
                "desc": {"ATensor": FOUR, "BTensor": FOUR, "OutputTensor": FOUR},
            },
        },
        "commands": [
            dispatch("relu", InputTensor="x", OutputTensor="t"),
            dispatch("add", ATensor="t", OutputTensor="t"),
            dispatch("square", ATensor="t", BTensor="t", OutputTensor="y"),
            {"type": "print", "resource": "t"},
            {"type": "print", "resource": "y"},
        ],
    }


@pytest.fixture
def path(model: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    monkeypatch.chdir(tmp_path)
    return path


def test_an_exported_model_gives_what_the_model_gives(path: Path) -> None:
    result = cli("export", path, "--output", "out")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "out/model.bin\nout/model.1.w.bin\n"
    np.save("out/x.npy", np.array([-1, 2, -3, 4], np.float32))
    run = cli("run", "--device", "reference", "out/model.bin")
    assert run.exit_code == 0, run.stderr
    printed = results_in(run.stdout).splitlines()
    assert printed[0] == "Input 'x' (FLOAT32 [4]): from 'out/x.npy'"
    assert sorted(printed[1:]) == ["Resource 't': 1, 4, 3, 8", "Resource 'y': 1, 16, 9, 64"]
    original = cli("run", "--device", "reference", path)
    assert sorted(results_in(original.stdout).splitlines()) == sorted(printed[1:])


def test_inputs_without_a_file_are_zeros_which_is_said_and_outputs_can_be_files(path: Path) -> None:
    cli("export", path, "-o", ".")
    run = cli(
        "run", "--device", "reference", "model.bin", "--output-directory", "results", "--iterations", "2"
    )
    assert run.exit_code == 0, run.stderr
    assert "Input 'x' (FLOAT32 [4]): zeros, because there is no .npy file of that name in . (" in run.stdout
    assert "Dispatch 'model.bin': 2 iterations" in run.stdout
    assert "Resource 'y' written to 'results/y.npy'" in run.stdout
    assert np.load("results/y.npy").tolist() == [1, 4, 9, 16]


def test_a_file_of_another_type_or_size_is_named(path: Path) -> None:
    cli("export", path, "-o", ".")
    np.save("x.npy", np.zeros(3, np.float32))
    run = cli("run", "model.bin")
    assert run.exit_code == 2
    assert "x.npy: 3 elements of FLOAT32; the input has 4 of FLOAT32" in run.stderr


def test_graphs_are_checked_at_a_level(path: Path) -> None:
    cli("export", path, "-o", ".")
    assert cli("check", "model.bin").stdout.splitlines()[0] == (
        "'relu' (ACTIVATION_RELU): valid at DML_FEATURE_LEVEL_6_4"
    )
    old = cli("check", "model.bin", "--feature-level", "2_0", "--json")
    assert old.exit_code == 1
    (report,) = json.loads(old.stdout)
    assert [each["name"] for each in report["operators"]] == ["relu", "add", "square", "t.copy"]
    assert not report["operators"][0]["valid"]
    Path("broken.bin").write_bytes(b"x" * 100)
    assert cli("check", "broken.bin").exit_code == 2
    assert (
        "broken.bin: byte 2021161080: 4 bytes are said to be there; the file"
        in cli("check", "broken.bin").stderr
    )
    assert cli("run", "broken.bin").exit_code == 2


def test_a_graph_is_a_dispatchable_of_a_model(path: Path) -> None:
    cli("export", path, "-o", ".")
    graph = {
        "resources": {name: values(*[float(n) for n in range(4)]) for name in ("in", "a", "b")},
        "dispatchables": {
            "g": {"type": "dmlSerializedGraph", "sourcePath": "model.bin", "executionFlags": "NONE"}
        },
        "commands": [dispatch("g", x="in", t="a", y="b"), {"type": "print", "resource": "b"}],
    }
    Path("outer.json").write_text(json.dumps(graph))
    run = cli("run", "--device", "reference", "outer.json")
    assert results_in(run.stdout) == "Resource 'b': 1, 9, 25, 49\n", run.stderr
    assert cli("check", "outer.json").exit_code == 0
    graph["commands"] = [dispatch("g", x="in", t="a", z="b")]
    Path("outer.json").write_text(json.dumps(graph))
    run = cli("run", "outer.json")
    assert run.exit_code == 2
    assert "$.commands[0].bindings.z: unknown field" in run.stderr
    Path("model.bin").unlink()
    run = cli("run", "outer.json")
    assert "$.dispatchables.g.sourcePath: expected a file in" in run.stderr
    assert cli("check", "outer.json").exit_code == 0
    assert cli("check", "--runs", "outer.json").exit_code == 1


def test_a_broken_graph_in_a_model_is_named_with_its_json_path(path: Path) -> None:
    Path("g.bin").write_bytes(bytes(8))
    graph = {"type": "dmlSerializedGraph", "sourcePath": "g.bin"}
    Path("outer.json").write_text(
        json.dumps({"resources": {}, "dispatchables": {"g": graph}, "commands": []})
    )
    run = cli("run", "outer.json")
    assert run.exit_code == 2
    assert "$.dispatchables.g.sourcePath: g.bin: byte 0: offset 0" in run.stderr


def test_parts_of_resources_cannot_be_exported(model: dict[str, Any], path: Path) -> None:
    model["resources"]["x"] = values(*range(8))
    model["commands"][0]["bindings"]["InputTensor"] = {"name": "x", "elementOffset": 4}
    path.write_text(json.dumps(model))
    result = cli("export", path, "-o", "out")
    assert result.exit_code == 1
    assert "$.commands[0].bindings.InputTensor: byte 16 of 'x'; a graph has whole resources" in result.stderr
    assert not Path("out").exists()


def test_models_without_dispatches_and_of_one_name_are_refused(model: dict[str, Any], path: Path) -> None:
    folder = path.parent / "other"
    folder.mkdir()
    (folder / "model.json").write_text(path.read_text())
    both = cli("export", path, folder / "model.json", "-o", "out")
    assert both.exit_code == 2
    assert "another model is to be written to out/model.bin too" in both.stderr
    model["commands"] = []
    path.write_text(json.dumps(model))
    assert "model.json: no dispatches" in cli("export", path, "-o", "out").stderr


def test_what_is_written_in_place_is_an_output_of_another_name(model: dict[str, Any], path: Path) -> None:
    model["commands"] = [dispatch("relu", InputTensor="x", OutputTensor="x")]
    path.write_text(json.dumps(model))
    assert cli("export", path, "-o", ".").exit_code == 0
    graph = serialized.read("model.bin")
    assert (graph.inputs, graph.outputs) == (("x",), ("x.out",))


def test_a_serialized_graph_is_read_checked_and_written_again(path: Path) -> None:
    assert cli("export", path, "-o", "first").exit_code == 0
    assert cli("export", "first/model.bin", "-o", "second").stdout.splitlines()[0] == "second/model.bin"
    assert Path("second/model.bin").read_bytes() == Path("first/model.bin").read_bytes()
    Path("broken.bin").write_bytes(bytes(8))
    assert cli("export", "broken.bin", "-o", "third").exit_code == 2
    assert not Path("third").exists()
