"""opendml run, and the program as a whole."""

from __future__ import annotations

import copy
import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import opendml.cli.adapters
import opendml.cli.ops_command
from opendml import Device
from opendml.cli import main
from opendml.json_files import text as json_text
from tests.printed import results_in

MILLISECONDS = r"\d+\.\d{4} ms"


def _run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["run", "--device", "reference", *map(str, arguments)])


@pytest.fixture
def model() -> dict[str, Any]:
    """Writes the absolute values' ReLU of x to y.npy."""
    tensor = {"DataType": "FLOAT32", "Sizes": [4]}
    return {
        "resources": {"x": {"initialValuesDataType": "FLOAT32", "initialValues": [-1, 2, -3, 4]}},
        "dispatchables": {
            "relu": {"type": "ACTIVATION_RELU", "desc": {"InputTensor": tensor, "OutputTensor": tensor}}
        },
        "commands": [
            {
                "type": "dispatch",
                "dispatchable": "relu",
                "bindings": {"InputTensor": "x", "OutputTensor": "x"},
            },
            {"type": "print", "resource": "x"},
            {"type": "writeFile", "resource": "x", "targetPath": "y.npy", "dimensions": [2, 2]},
        ],
    }


@pytest.fixture
def path(model: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    monkeypatch.chdir(tmp_path)
    return path


def test_prints_and_files(path: Path) -> None:
    result = _run(path)
    assert result.exit_code == 0
    device, dispatch, *results = result.stdout.splitlines()
    assert device == "Running on 'NumPy in float64'"
    assert re.fullmatch(rf"Dispatch 'relu': 1 iterations, {MILLISECONDS} median \(CPU\)", dispatch)
    assert results == ["Resource 'x': 0, 2, 0, 4", "Resource 'x' written to 'y.npy'"]
    assert np.load("y.npy").tolist() == [[0, 2], [0, 4]]


def test_every_device_prints_the_same(path: Path, device: Device) -> None:
    result = CliRunner().invoke(main, ["run", "--device", device.kind, str(path)])
    assert result.exit_code == 0
    assert results_in(result.stdout) == results_in(_run(path).stdout)


def test_files_go_to_the_directory(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert _run(path).exit_code == 0
    assert (tmp_path / "elsewhere" / "y.npy").is_file()
    assert not (tmp_path / "y.npy").exists()


@pytest.mark.parametrize("option", ["--output-directory", "--output_path"])
def test_output_directory(option: str, path: Path, tmp_path: Path) -> None:
    assert _run(path, option, tmp_path / "a" / "b").exit_code == 0
    assert (tmp_path / "a" / "b" / "y.npy").is_file()
    assert not (tmp_path / "y.npy").exists()


def test_median_of_several_iterations(path: Path) -> None:
    _, first, second, *_ = _run(path, "--iterations", "5").stdout.splitlines()
    assert re.fullmatch(rf"Dispatch 'relu': 5 iterations, {MILLISECONDS} median \(CPU\)", first)
    assert second.startswith("Resource")


STATISTICS = ", ".join(f"{MILLISECONDS} {name}" for name in ("average", "min", "median", "max"))


def test_statistics_of_cold_and_hot_iterations_and_of_initialization(path: Path) -> None:
    lines = _run(path, "--timing", "--iterations", "5", "--warmup", "2").stdout.splitlines()[1:]
    assert re.fullmatch(f"Initialize 'relu': {MILLISECONDS}", lines[0])
    assert lines[1] == "Dispatch 'relu': 5 iterations"
    assert re.fullmatch(rf"CPU Timings \(Cold\) : 2 samples, {STATISTICS}", lines[2])
    assert re.fullmatch(rf"CPU Timings \(Hot\)  : 3 samples, {STATISTICS}", lines[3])
    assert lines[4].startswith("Resource")


def test_one_iteration_is_hot(path: Path) -> None:
    _, _, dispatch, hot, *_ = _run(path, "--timing").stdout.splitlines()
    assert dispatch == "Dispatch 'relu': 1 iterations"
    assert re.fullmatch(rf"CPU Timings \(Hot\)  : 1 samples, {STATISTICS}", hot)


def test_every_sample_can_be_printed(path: Path) -> None:
    lines = _run(path, "--samples", "--iterations", "3", "--repeat", "2").stdout.splitlines()
    assert lines[2] == "The timings of each iteration: "
    for index in range(3):
        assert re.fullmatch(rf"iteration {index}: {MILLISECONDS} \(CPU\)", lines[3 + index])


def test_iterations_go_on_for_the_time_asked_for(path: Path) -> None:
    _, first, *_ = _run(path, "--milliseconds", "20", "--interval", "5").stdout.splitlines()
    found = re.fullmatch(rf"Dispatch 'relu': (\d+) iterations, {MILLISECONDS} median \(CPU\)", first)
    assert found
    assert 2 <= int(found[1]) <= 5


@pytest.mark.parametrize(
    ("spelling", "options"),
    [
        ("-i 3", "--iterations 3"),
        ("--dispatch_iterations 3", "--iterations 3"),
        ("-i 3 -r 2", "--iterations 3 --repeat 2"),
        ("--dispatch_iterations 3 --dispatch_repeat 2", "--iterations 3 --repeat 2"),
        ("-i 3 -I 1", "--iterations 3 --interval 1"),
        ("-i 3 --dispatch_interval 1", "--iterations 3 --interval 1"),
        ("-i 3 -w 2 -v 1", "--iterations 3 --warmup 2 --timing"),
        ("-i 3 --warmup_samples 2 --timing_verbosity 1", "--iterations 3 --warmup 2 --timing"),
        ("-i 3 -v 2", "--iterations 3 --timing --samples"),
        ("-i 3 -v 0", "--iterations 3"),
        ("-d", ""),
        ("--debug", ""),
    ],
)
def test_options_of_dxdispatch_mean_the_same(spelling: str, options: str, path: Path) -> None:
    given, meant = (
        re.sub(r"\d+\.\d{4}", "T", _run(path, *each.split()).stdout) for each in (spelling, options)
    )
    assert given == meant
    assert meant.endswith("Resource 'x' written to 'y.npy'\n")


@pytest.mark.parametrize("option", ["-t", "--milliseconds_to_run"])
def test_times_of_dxdispatch_mean_the_same(option: str, path: Path) -> None:
    assert re.search(r"\nDispatch 'relu': \d+ iterations, ", _run(path, option, "20").stdout)


@pytest.mark.parametrize("option", ["-a", "--adapter"])
def test_adapter_is_the_device(option: str, path: Path) -> None:
    assert CliRunner().invoke(main, ["run", option, "reference", str(path)]).exit_code == 0
    result = CliRunner().invoke(main, ["run", option, "GeForce", str(path)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "device: 'GeForce'; no device has that name; there are " in result.stderr


def test_a_part_of_a_name_is_the_first_device_that_has_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [("cuda", "NVIDIA H100"), ("cuda:1", "NVIDIA L4"), ("cpu", "AMD EPYC"), ("reference", "NumPy")]
    monkeypatch.setattr(opendml.cli.adapters, "adapters", lambda: iter(known))
    found = [opendml.cli.adapters.kind_named(text) for text in ("NVIDIA", "h100", "L4", "amd", "NumPy")]
    assert found == ["cuda", "cuda", "cuda:1", "cpu", "reference"]
    result = CliRunner().invoke(main, ["run", "-a", "EPYC", str(path)])
    assert result.stdout.startswith("Running on 'AMD EPYC'\n")


def test_nvidia_is_cuda_on_every_machine(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opendml.cli.adapters, "adapters", lambda: iter([("cpu", "AMD EPYC")]))
    assert opendml.cli.adapters.kind_named("NVIDIA") == "cuda"


def test_adapters_are_shown_with_the_kinds_that_name_them(path: Path) -> None:
    result = CliRunner().invoke(main, ["run", "-s"])
    assert result.exit_code == 0
    assert result.stdout.endswith("\n-Device: cpu\n\nNumPy in float64\n-Device: reference\n\n")
    assert results_in(_run("--show_adapters", path).stdout).endswith("Resource 'x' written to 'y.npy'\n")


@pytest.mark.parametrize("option", ["-m", "--model"])
def test_model_may_be_an_option(option: str, path: Path) -> None:
    assert results_in(_run(option, path).stdout).startswith("Resource 'x': 0, 2, 0, 4\n")
    for wrong in ([option, path, path], []):
        result = _run(*wrong)
        assert result.exit_code == 2
        assert "one MODEL is needed, as an argument or after --model" in result.stderr


def test_model_may_come_from_standard_input(path: Path) -> None:
    command = ["run", "--device", "reference", "-"]
    result = CliRunner().invoke(main, command, input=path.read_bytes())
    assert results_in(result.stdout).startswith("Resource 'x': 0, 2, 0, 4\n")


@pytest.mark.parametrize("option", ["--input-directory", "--input_path"])
def test_input_directory(option: str, path: Path, model: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "inputs").mkdir()
    np.save(tmp_path / "inputs" / "x.npy", np.float32([5, -5, 6, -6]))
    model["resources"]["x"] = {"initialValues": {"sourcePath": "x.npy"}}
    path.write_text(json.dumps(model))
    assert results_in(_run(path, option, tmp_path / "inputs").stdout).startswith("Resource 'x': 5, 0, 6, 0\n")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["-q", "compute"], "-q or --queue_type of DxDispatch has no effect: it concerns Direct3D"),
        (["--queue_type=compute"], "it concerns Direct3D"),
        (["--clear_shader_caches"], "--clear_shader_caches of DxDispatch has no effect"),
        (["--post_dispatch_barriers", "none"], "it concerns Direct3D"),
        (["-o", "capture"], "the folder for outputs is --output-directory"),
        (["-e", "a:1", "-e", "b:2"], "it concerns ONNX Runtime, which does not run the models here"),
        (["-l", "0"], "-l or --onnx_graph_optimization_level of DxDispatch has no effect"),
        (["-L", "1"], "-L or --onnx_logging_level of DxDispatch has no effect"),
        (["-p"], "-p or --print_onnx_bindings of DxDispatch has no effect"),
        (["-S"], "opendml --version tells the version"),
    ],
)
def test_options_of_dxdispatch_with_nothing_to_do_warn(options: list[str], reason: str, path: Path) -> None:
    for arguments in ([*options, path], [path, *options]):
        result = _run(*arguments)
        assert result.exit_code == 0
        assert result.stdout.endswith("Resource 'x' written to 'y.npy'\n")
        assert result.stderr.startswith("Warning: ")
        assert reason in " ".join(result.stderr.split())


def test_verbose_print_starts_on_its_own_line(path: Path, model: dict[str, Any]) -> None:
    model["commands"][1]["verbose"] = True
    path.write_text(json.dumps(model))
    assert results_in(_run(path).stdout).startswith(
        "Resource 'x':\n[0] 0.0 (0x00000000)\n[1] 2.0 (0x40000000)\n"
    )


_NO_TIMES = ["nan", "NaN", "-nan", "inf", "-inf", "-1", "1e999", "1e12", "soon", ""]
_NO_COUNTS = ["0", "-1", "nan", "inf", "1e3", "0.5", "9" * 12, "9" * 5000, "x", ""]


@pytest.mark.parametrize(
    "option",
    [
        *([option, value] for option in ("--milliseconds", "--interval") for value in _NO_TIMES),
        *([option, value] for option in ("--iterations", "--repeat", "--threads") for value in _NO_COUNTS),
        *(["--warmup", value] for value in _NO_COUNTS if value != "0"),
        *(["--timing_verbosity", value] for value in ("3", "-1", "x")),
        ["--feature-level", "9_9"],
    ],
)
def test_wrong_options_are_refused(option: list[str], path: Path) -> None:
    result = _run(path, *option)
    assert (result.exit_code, result.stdout) == (2, "")
    assert option[0].strip("-") in result.stderr.replace(" ", "-")


def test_malformed_model_writes_nothing(path: Path, model: dict[str, Any]) -> None:
    model["dispatchables"]["relu"]["desc"]["InputTensor"]["Sizes"][0] = "four"
    path.write_text(json.dumps(model))
    result = _run(path)
    assert (result.exit_code, result.stdout) == (2, "")
    message = 'InputTensor.Sizes[0]: expected an integer from 0 to 4294967295, got "four"'
    assert f"Error: $.dispatchables.relu.desc.{message}\n" in result.stderr
    assert list(path.parent.iterdir()) == [path]


def test_model_that_is_invalid_at_the_level_writes_nothing(path: Path) -> None:
    result = _run(path, "--feature-level", "2_0")
    assert (result.exit_code, result.stdout) == (2, "")
    for line, field in zip(result.stderr.splitlines(), ["InputTensor", "OutputTensor"], strict=True):
        assert line.startswith(f"Error: $.dispatchables.relu: ACTIVATION_RELU.{field}: 1 dimension")
    assert list(path.parent.iterdir()) == [path]


def test_overlap_that_directml_forbids_writes_nothing(path: Path, model: dict[str, Any]) -> None:
    model["resources"]["x"]["sizeInBytes"] = 64
    model["commands"][0]["bindings"]["OutputTensor"] = {"name": "x", "elementOffset": 4}
    model["dispatchables"]["relu"]["desc"]["InputTensor"]["Sizes"] = [8]
    model["dispatchables"]["relu"]["desc"]["OutputTensor"]["Sizes"] = [8]
    path.write_text(json.dumps(model))
    result = _run(path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(
        "Error: $.commands[0].bindings: ACTIVATION_RELU.OutputTensor: overlaps InputTensor"
    )
    assert list(path.parent.iterdir()) == [path]


def test_model_that_cannot_run_here_has_status_1(path: Path, model: dict[str, Any]) -> None:
    model["dispatchables"]["relu"] = {"type": "hlsl"}
    path.write_text(json.dumps(model))
    result = _run(path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert '"relu" is an HLSL compute shader' in result.stderr


def test_an_onnx_model_that_is_not_there_has_status_2(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    result = _run(tmp_path / "model.onnx")
    assert result.exit_code == 2
    assert "model.onnx: No such file or directory" in result.stderr


def test_module_is_the_command(path: Path) -> None:
    command = [sys.executable, "-m", "opendml", "run", "--device", "reference", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert results_in(result.stdout).startswith("Resource 'x': 0, 2, 0, 4\n")


def test_help_loads_neither_llvm_nor_rich() -> None:
    code = (
        "import sys, opendml.cli; "
        "heavy = {'rich', 'llvmlite', 'opendml.frontends', 'opendml.operators.activation'}; "
        "heavy &= set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


PROGRAM = [sys.executable, "-m", "opendml"]
EXAMPLE = str(Path(__file__).parents[1] / "examples" / "celu.json")
COMMANDS = [
    ["--help"],
    ["ops"],
    ["ops", "ACTIVATION_CELU"],
    ["check", "--json", EXAMPLE],
    ["run", "--device", "reference", EXAMPLE],
]


def _shell(redirection: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """The program in a shell that redirects its output."""
    command = ["sh", "-c", f'"$@" {redirection}', "sh", *PROGRAM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_full_standard_output_is_one_error(arguments: list[str]) -> None:
    result = _shell("> /dev/full", arguments)
    assert (result.returncode, result.stderr) == (1, "Error: standard output: No space left on device\n")


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_closed_standard_output_is_one_error(arguments: list[str]) -> None:
    result = _shell(">&-", arguments)
    assert (result.returncode, result.stderr) == (1, "Error: standard output is closed\n")


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_closed_pipe_ends_the_command_without_words(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run([*PROGRAM, *arguments], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (result.returncode, result.stderr) == (1, b"")


@pytest.mark.parametrize("redirection", ["2> /dev/full", "2>&-"])
def test_full_or_closed_standard_error_changes_no_status(redirection: str) -> None:
    assert _shell(redirection, ["ops", "CELU"]).returncode == 0
    assert _shell(redirection, ["ops", "xyzzy"]).returncode == 2
    assert _shell(redirection, ["ops", "--what"]).returncode == 2


def test_closed_standard_input_is_one_error() -> None:
    result = _shell("<&-", ["check", "-"])
    assert (result.returncode, result.stderr) == (2, "Error: standard input: closed\n")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_names_that_the_terminal_cannot_show_are_escaped(encoding: str, tmp_path: Path) -> None:
    resource = {"initialValuesDataType": "FLOAT32", "initialValues": [1]}
    commands = [{"type": "print", "resource": "größe \U0001f600"}]
    model = {"resources": {"größe \U0001f600": resource}, "dispatchables": {}, "commands": commands}
    (tmp_path / "m.json").write_text(json.dumps(model))
    command = [*PROGRAM, "run", "--device", "reference", str(tmp_path / "m.json")]
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    result = subprocess.run(command, capture_output=True, env=environment, check=True)
    shown = "größe \U0001f600".encode(encoding, "backslashreplace")
    assert result.stdout.endswith(b"\nResource '" + shown + b"': 1\n")


def test_paths_that_are_no_text_are_escaped(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/caf\xe9.json"
    result = subprocess.run([*PROGRAM, "run", path], capture_output=True, check=False)
    assert result.returncode == 2
    assert result.stderr.endswith(rb"/caf\udce9.json: No such file or directory" + b"\n")


@pytest.mark.usefixtures("interruptible")
def test_interruption_ends_a_run_with_status_130(tmp_path: Path) -> None:
    command = [*PROGRAM, "run", "--device", "reference", "--timing", "-t", "60000", EXAMPLE]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Running on")
    assert process.stdout.readline().startswith("Initialize")  # the measurements begin
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors.strip()) == (130, "")


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_for_terminals_that_want_them(variables: dict[str, str], coloured: bool) -> None:
    parent, child = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | variables
    subprocess.run([*PROGRAM, "ops", "xyzzy"], stderr=child, env=environment | {"TERM": "xterm"}, check=False)
    os.close(child)
    assert (b"\x1b[" in os.read(parent, 1000)) == coloured


def _made(make: Callable[[Path], object]) -> Callable[[Path], str]:
    def path(folder: Path) -> str:
        make(folder / "m.json")
        return str(folder / "m.json")

    return path


WRONG_FILES: dict[str, tuple[Callable[[Path], str], str]] = {
    "absent": (lambda folder: str(folder / "no.json"), "No such file or directory"),
    "folder": (str, "Is a directory"),
    "in no folder": (lambda folder: f"{EXAMPLE}/m.json", "Not a directory"),
    "empty": (_made(Path.touch), "not valid JSON at line 1, column 1"),
    "binary": (_made(lambda path: path.write_bytes(bytes(range(256)))), "not UTF-8 text"),
    "UTF-16": (_made(lambda path: path.write_bytes("{}".encode("utf-16"))), "not UTF-8 text"),
    "a number": (_made(lambda path: path.write_text("9" * 5000)), "not valid JSON"),
    "a list": (_made(lambda path: path.write_text("[]")), "expected an object"),
    "endless": (lambda folder: "/dev/zero", "longer than 1073741824 bytes"),
    "name too long": (lambda folder: "x" * 5000, "File name too long"),
    "no name": (lambda folder: "", "Is a directory"),
}


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize(("path", "message"), WRONG_FILES.values(), ids=WRONG_FILES.keys())
def test_wrong_files_are_one_error(
    path: Callable[[Path], str], message: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opendml.json_files.text._LARGEST_FILE", 2**20)
    result = CliRunner().invoke(main, [command, path(tmp_path)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert message.replace("1073741824", "1048576") in result.stderr
    assert result.stderr.count("\n") == 1


def test_lack_of_memory_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(opendml.cli.ops_command, "list_operators", fail)
    result = CliRunner().invoke(main, ["ops"])
    assert (result.exit_code, result.stderr) == (1, "Error: not enough memory\n")


def test_unknown_devices_are_one_error() -> None:
    for device in ("gpu", "cuda:x", "", "CPU "):
        result = CliRunner().invoke(main, ["run", "--device", device, EXAMPLE])
        assert (result.exit_code, result.stdout) == (2, "")
        assert repr(device) in result.stderr
        assert result.stderr.count("\n") == 1


EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.json"))
COMMANDS_MUTATED = [["run", "--device", "reference"], ["check"], ["check", "--json"], ["check", "--runs"]]
VALUES: list[Any] = [
    *[None, True, 0, 1, -1, 7, 2**31, 2**32 - 1, 2**32, 2**63, 2**64, 10**400, 0.5, -0.0, 1e-300, 1e308],
    *["", "x", "nan", "-inf", "\0", "\ud800", "ü" * 300, ".", "/", "/dev/null", "a.png", "FLOAT16", "INT4"],
    *["UNKNOWN", "OWNED_BY_DML", "deferred", [], [[]], [None], [1, 2, 3], [0] * 9, [2**32 - 1] * 4, {}],
    *[{"": {}}, {"type": "ACTIVATION_RELU"}, {"name": "x"}, {"sourcePath": "."}, {"Float32": 1}],
    {"valueCount": 5, "valueStart": 1, "valueDelta": "inf"},
]
NAMES = (
    *("Type", "Desc", "Strides", "Flags", "TotalTensorSizeInBytes", "GuaranteedBaseOffsetAlignment"),
    *("elementOffset", "elementCount", "sizeInBytes", "initialValuesOffsetInBytes", "bindings", "dimensions"),
    *("executionFlags", "FusedActivation", "ScaleBias", "x\ud800"),
)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each array or object inside of `value`, with each of its indices or names."""
    for key, child in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(child, dict | list):
            yield from _places(child)


def _mutated(model: Any, draw: random.Random) -> str:
    """The model's text after a few changes to its values, and sometimes to its characters."""
    model = copy.deepcopy(model)
    for _ in range(draw.choice([1, 1, 1, 2, 3, 6])):
        places = list(_places(model))
        if not places:
            break
        parent, key = draw.choice(places)
        other, other_key = draw.choice(places)
        match draw.choice(["replace", "replace", "copy", "remove", "add"]):
            case "replace":
                parent[key] = copy.deepcopy(draw.choice(VALUES))
            case "copy":
                parent[key] = copy.deepcopy(other[other_key])
            case "remove":
                del parent[key]
            case "add":
                value = copy.deepcopy(draw.choice([other[other_key], *VALUES]))
                if isinstance(parent, list):
                    parent.append(value)
                else:
                    parent[draw.choice(NAMES)] = value
    text = list(json.dumps(model))
    for _ in range(draw.choice([0, 0, 0, 1, 3])):
        text[draw.randrange(len(text))] = draw.choice('{}[],:"\\/*0e-')
    return "".join(text)


@pytest.mark.parametrize("seed", range(20))
def test_mutated_models_are_answered(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    draw = random.Random(seed)
    models = [json_text.read(path) for path in EXAMPLES]
    for index in range(20):
        path = tmp_path / "model.json"
        path.write_text(_mutated(draw.choice(models), draw))
        result = CliRunner().invoke(main, [*draw.choice(COMMANDS_MUTATED), str(path)])
        if not isinstance(result.exception, SystemExit | None):
            pytest.fail(f"{index}: {path.read_text()}: {result.exception!r}")
        assert result.exit_code in (0, 1, 2)
        assert all(line.startswith("Error: ") for line in result.stderr.splitlines())
