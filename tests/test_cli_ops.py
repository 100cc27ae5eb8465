"""opendml ops, check and explain, and the command line on terminals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from opendml.catalog.names import find_operators, framework_names
from opendml.cli import main
from opendml.errors import Unsupported
from opendml.json_files import text as json_text
from opendml.operators.registry import implemented
from opendml.spec.enums import FeatureLevel
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operators
from tests.for_each import for_each
from tests.test_project import ROOT


def _ops(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["ops", *arguments])


def test_list_has_every_operator_with_its_level_and_whether_it_runs() -> None:
    result = _ops()
    assert result.exit_code == 0
    rows = {
        line.split()[0]: line.split()[1:] for line in result.stdout.splitlines() if line and line[0].isupper()
    }
    for operator in operators().values():
        level = operator.introduced.name.removeprefix("LEVEL_")
        runs = "yes" if operator.name in implemented() else "-"
        assert rows[operator.name] == [operator.family, level, runs]
    assert (
        f"{len(operators())} operators at DML_FEATURE_LEVEL_6_4; {len(implemented())} run." in result.stdout
    )


@pytest.mark.parametrize("level", FeatureLevel)
def test_list_at_a_level_has_only_the_operators_of_that_level(level: FeatureLevel) -> None:
    name = level.name.removeprefix("LEVEL_")
    shown = [line.split()[0] for line in _ops("--feature-level", name).stdout.splitlines()[1:-2]]
    assert shown == [operator.name for operator in operators().values() if operator.introduced <= level]


@for_each("name", operators())
def test_every_operator_is_described(name: str) -> None:
    result = _ops(name)
    operator = operators()[name]
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert text.startswith(f"{name} ({operator.family}, from DML_FEATURE_LEVEL_")
    assert "".join(operator.summary.split()) in text.replace(" ", "")
    for field in operator.fields:
        assert field.name in text


def test_ranges_and_rules_that_the_page_does_not_say_are_shown() -> None:
    text = " ".join(_ops("AVERAGE_POOLING1").stdout.split())
    assert "Must be at least 1." in text
    assert "(size + paddings - span) / stride + 1, rounded down or up" in text


def test_rules_of_a_level_are_shown() -> None:
    rule = "With Spatial FALSE mean and variance are not repeated"
    assert rule in " ".join(_ops("BATCH_NORMALIZATION", "--feature-level", "3_1").stdout.split())
    assert rule not in " ".join(_ops("BATCH_NORMALIZATION").stdout.split())


@pytest.mark.parametrize(
    "name",
    [
        "ACTIVATION_CELU",
        "DML_OPERATOR_ACTIVATION_CELU",
        "activation_celu",
        "ActivationCelu",
        "activation-celu",
    ],
)
def test_operators_are_found_in_every_spelling(name: str) -> None:
    assert _ops(name).stdout.startswith("ACTIVATION_CELU (")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("matmull", "did you mean GEMM or "),
        ("normalization", "did you mean BATCH_NORMALIZATION or "),
        ("avg_pool", "did you mean AVERAGE_POOLING or "),
        ("ACTIVATION_HARDSIGMOD", "did you mean ACTIVATION_HARD_SIGMOID or "),
        ("xyzzy", "`opendml ops` lists them all"),
        ("", "`opendml ops` lists them all"),
    ],
)
def test_unknown_operators_bring_suggestions(name: str, hint: str) -> None:
    result = _ops(name)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert f"no operator is named {name}; {hint}" in result.stderr


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("celu", "ACTIVATION_CELU"),
        ("Celu", "ACTIVATION_CELU"),
        ("hard_sigmoid", "ACTIVATION_HARD_SIGMOID"),
        ("HardSigmoid", "ACTIVATION_HARD_SIGMOID"),
        ("hard-sigmoid", "ACTIVATION_HARD_SIGMOID"),
        ("add", "ELEMENT_WISE_ADD"),
        ("logical_and", "ELEMENT_WISE_LOGICAL_AND"),
        ("MatMul", "GEMM"),
        ("matmul", "GEMM"),
        ("ReduceLogSumExp", "REDUCE"),
        ("where", "ELEMENT_WISE_IF"),
        ("cat", "JOIN"),
        ("conv2d", "CONVOLUTION"),
        ("conv_transpose2d", "CONVOLUTION"),
        ("convTranspose2d", "CONVOLUTION"),
        ("silu", "ACTIVATION_SWISH"),
        ("reduce", "REDUCE"),
        ("slice", "SLICE"),
    ],
)
def test_operators_are_found_by_the_names_that_others_give_them(name: str, operator: str) -> None:
    result = _ops(name)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{operator} (")


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("tanh", ["ELEMENT_WISE_TANH", "ACTIVATION_TANH"]),
        ("LpPool", ["LP_POOLING", "LP_POOLING1"]),
        ("layer_norm", ["MEAN_VARIANCE_NORMALIZATION1", "MEAN_VARIANCE_NORMALIZATION2"]),
        ("Softmax", ["ACTIVATION_SOFTMAX", "ACTIVATION_SOFTMAX1"]),
        ("linear", ["GEMM", "ACTIVATION_LINEAR"]),
    ],
)
def test_of_several_operators_with_a_name_each_has_a_line(name: str, candidates: list[str]) -> None:
    result = _ops(name)
    assert result.exit_code == 0
    title, *lines = result.stdout.splitlines()
    assert title == f"{name} may be one of {len(candidates)} operators:"
    assert lines == [f"  {candidate}: {operators()[candidate].summary}" for candidate in candidates]


def test_aliases_name_operators_that_exist_and_lead_to_them() -> None:
    for name, meant in framework_names():
        assert meant <= operators().keys(), name
        found = {operator.name for operator in find_operators(name)}
        # A name that DirectML has too means DirectML's operator.
        own = {each for each in found if each.replace("_", "") == name.replace("_", "").upper()}
        assert found == own or meant <= found, name


def test_operators_without_another_name_are_few() -> None:
    """Gradients, and what no other system has as an operator."""
    named = set().union(*(meant for _, meant in framework_names()))
    unnamed = {name for name in operators() if name not in named and "_GRAD" not in name}
    assert unnamed == {"ELEMENT_WISE_BIT_COUNT", "ELEMENT_WISE_DIFFERENCE_SQUARE"}


def test_description_at_a_level_shows_the_table_of_that_level() -> None:
    types = _ops("ACTIVATION_HARD_SIGMOID", "--feature-level", "2_1").stdout
    assert "4 to 5" in types
    assert "1 to 8" not in types


def test_description_below_the_operators_level_says_so() -> None:
    assert (
        "does not exist at DML_FEATURE_LEVEL_2_0" in _ops("ACTIVATION_CELU", "--feature-level", "2_0").stdout
    )


def test_reduce_has_a_table_for_each_group_of_functions() -> None:
    text = _ops("REDUCE", "--feature-level", "3_0").stdout
    assert "with ARGMIN, ARGMAX:" in text
    assert "SUM" in text.split("Types and dimensions")[1]


def test_unknown_level_is_an_error() -> None:
    result = _ops("--feature-level", "7_0")
    assert result.exit_code == 2
    assert "7_0" in result.stderr


def test_piped_output_is_plain_text_of_a_fixed_width() -> None:
    text = _ops("MEAN_VARIANCE_NORMALIZATION1").stdout
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 110


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


CELU_HANDS = ROOT / "examples" / "celu.json"


def said(*arguments: str | Path) -> Any:
    """The JSON that a command prints, which has no numbers that JSON lacks."""
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout, parse_constant=pytest.fail)


def test_what_ran_is_printed_as_json() -> None:
    found = said("run", CELU_HANDS, "--device", "reference", "--iterations", "3", "--json")
    assert (found["device"], list(found["initialization_seconds"])) == ("reference", ["celu"])
    dispatch, *printed = found["events"]
    assert (dispatch["type"], dispatch["dispatchable"], len(dispatch["seconds"])) == ("dispatch", "celu", 3)
    assert dispatch["cold"]["count"] == 1
    assert dispatch["hot"]["minimum"] > 0
    assert [event["resource"] for event in printed] == ["x", "y"]
    assert printed[0]["values"] == ["-inf", -4, -1, -0.25, 0, 0.25, 1, 4, "inf"]


def test_written_files_are_in_the_json(tmp_path: Path) -> None:
    model: Any = json_text.parse(CELU_HANDS.read_text("utf-8"))
    model["commands"] = [{"type": "writeFile", "resource": "x", "targetPath": "x.npy"}]
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    found = said("run", path, "--output-directory", tmp_path, "--json")
    assert found["events"] == [{"type": "writeFile", "resource": "x", "path": str(tmp_path / "x.npy")}]


def test_operators_are_printed_as_json() -> None:
    found = said("ops", "--json", "--feature-level", "2_0")
    assert [each["name"] for each in said("ops", "--json")] == list(operators())
    assert {each["introduced"] for each in found} <= {f"DML_FEATURE_LEVEL_{n}" for n in ("1_0", "2_0")}
    (celu,) = said("ops", "celu", "--json")
    assert celu["limits"]["InputTensor"] == {"data_types": ["FLOAT32", "FLOAT16"], "dimension_counts": [1, 8]}
    alpha = celu["fields"][-1]
    assert (alpha["name"], alpha["argument"], alpha["default"]) == ("Alpha", "alpha", 1.0)
    assert len(said("ops", "LpPool", "--json")) == 2
    assert "limits" not in said("ops", "celu", "--json", "--feature-level", "2_0")[0]


def completed(arguments: list[str], incomplete: str) -> list[str]:
    complete = ShellComplete(main, {}, "opendml", "_OPENDML_COMPLETE")
    return [item.value for item in complete.get_completions(arguments, incomplete)]


def test_shells_complete_operators_levels_and_devices() -> None:
    assert completed(["ops"], "activation_har")[:1] == ["ACTIVATION_HARDMAX"]
    assert completed(["ops"], "cel") == ["ACTIVATION_CELU"]
    assert len(completed(["ops"], "")) == len(operators())
    assert completed(["check", "--feature-level"], "")[:2] == ["6_4", "6_3"]
    assert completed(["ops", "--feature-level"], "DML_FEATURE_LEVEL_2") == [
        "DML_FEATURE_LEVEL_2_1",
        "DML_FEATURE_LEVEL_2_0",
    ]
    assert completed(["run", "--device"], "c") == ["cpu", "cuda"]
    assert "--json" in completed(["run"], "--j")


def run_on_terminal(patience: str) -> tuple[bytes, str]:
    """Standard error, which is a terminal, and standard output, which is a pipe, of a run."""
    pty = pytest.importorskip("pty")
    terminal, inner = pty.openpty()
    program = (
        "import opendml.cli.progress as p, opendml.cli as c, time\n"
        f"p._DELAY = {patience}\n"
        "from opendml.frontends import dxdispatch as d\n"
        "read = d.read\n"
        "d.read = lambda *a: (time.sleep(0.3), read(*a))[1]\n"
        f"c.main(['run', {str(CELU_HANDS)!r}, '--device', 'reference'])\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=inner, check=True
    )
    os.close(inner)
    os.set_blocking(terminal, False)
    try:
        shown = os.read(terminal, 100_000)
    except OSError:
        shown = b""
    os.close(terminal)
    return shown, done.stdout.decode()


def test_long_work_shows_a_bar_on_terminals_only() -> None:
    shown, printed = run_on_terminal("0.05")
    assert b"reading" in shown
    assert printed.startswith("Resource 'x': -inf")
    quiet, same = run_on_terminal("60")
    assert (quiet, same) == (b"", printed)
    result = CliRunner().invoke(main, ["run", str(CELU_HANDS), "--device", "reference"])
    assert (result.stdout, result.stderr) == (printed, "")
