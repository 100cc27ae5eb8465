"""The page about adding an operator: its steps, applied to a copy of the package, add one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import opendml

PACKAGE = Path(opendml.__file__).parent
ROOT = PACKAGE.parents[1]
PAGE = ROOT / "docs" / "design" / "adding_an_operator.md"
STEP = re.compile(r"^## \d\. \w+: `(.+?)`$(.*?)(?=^## |^Then )", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(?:json|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
USE = """
import sys
import numpy as np
import opendml as dml
from opendml.cli import main

x = np.array([3.0, -1.0], np.float32)
y = [dml.activation_halve(x, factor=1.7, device=device) for device in ("reference", "cpu")]
graph = dml.Graph()
model = graph.compile({"y": dml.activation_halve(graph.input("x", dml.FLOAT32, [2]), factor=1.7)})
tensor = dml.TensorDesc(dml.FLOAT32, [2])
desc = dml.descs.ActivationHalve(tensor, tensor, factor=1.7)
dml.validate(desc)
try:
    dml.validate(desc, "6_3")
except dml.InvalidArgument as error:
    assert "6_4" in str(error)
print([each.tolist() for each in (*y, model(x=x)["y"])])
main(["ops", "ACTIVATION_HALVE"], standalone_mode=False)
"""


def test_an_operator_takes_at_most_five_places_and_then_runs(tmp_path: Path) -> None:
    steps = {path: BLOCK.findall(text)[0] for path, text in STEP.findall(PAGE.read_text("utf-8"))}
    assert len(steps) <= 5
    assert all((ROOT / path).is_file() for path in steps)
    copy = tmp_path / "src" / "opendml"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
    formula = cases = ""
    for path, block in steps.items():
        if path.endswith(".json"):
            facts = json.loads((tmp_path / path).read_text("utf-8"))
            facts |= json.loads(f"{{{block}}}")
            (tmp_path / path).write_text(json.dumps(facts), "utf-8")
        elif path.startswith("src/"):
            with (tmp_path / path).open("a", encoding="utf-8") as file:
                file.write(f"\n\n{block}")
        elif path.startswith("tools/"):
            cases = block
        else:
            formula = block
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src")}
    found = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, env=environment)
    assert found.returncode == 0, found.stderr
    results, page = found.stdout.split("\n", 1)
    ((_, attributes),) = eval(f"{{{cases}}}").items()
    assert all(set(each) == {"factor"} for each in attributes)
    halve = eval(f"{{{formula}}}")["HALVE"]
    for each in json.loads(results):
        np.testing.assert_allclose(each, halve(np.array([3.0, -1.0]), factor=1.7), rtol=1e-6)
    for text in ("factor * x", "The element times a factor.", "dml.activation_halve(np.ones(2, np.float32))"):
        assert text in page
