"""How the command ends: exit status, and one line about what went wrong, never a traceback."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import opendml.cli.ops_command
from opendml.cli import main

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
    assert result.stdout == b"Resource '" + shown + b"': 1\n"


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
