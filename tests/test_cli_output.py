"""Output of the command line: JSON, completion in shells, and bars on terminals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from opendml.cli import main
from opendml.json_files import text as json_text
from opendml.spec.schema import operators
from tests.printed import results_in
from tests.test_project import ROOT

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
    assert results_in(printed).startswith("Resource 'x': -inf")
    quiet, same = run_on_terminal("60")
    assert (quiet, results_in(same)) == (b"", results_in(printed))
    result = CliRunner().invoke(main, ["run", str(CELU_HANDS), "--device", "reference"])
    assert (results_in(result.stdout), result.stderr) == (results_in(printed), "")
