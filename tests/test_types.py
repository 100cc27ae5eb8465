"""What type checkers see: programs of users pass mypy's strict check, with the types that are meant."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_project import ROOT
from tools.generate.stubs import write_stubs

PROGRAM = """
from collections.abc import Callable
from typing import assert_type, Any

import numpy as np
import numpy.typing as npt
import opendml as dml
from opendml.outputs import MaxPooling2Outputs, TopK1Outputs

Array = np.ndarray[Any, np.dtype[Any]]
Floats = npt.NDArray[np.float32]


class Tensor:
    \"\"\"An array of another library.\"\"\"


def of_arrays(model: dml.Model, x: Floats, indices: npt.NDArray[np.uint32]) -> Array:
    assert_type(model(x=x), dict[str, Array])
    assert_type(model(x=x, indices=indices), dict[str, Array])
    assert_type(model(), dict[str, Array])
    model.run({"x": x}, {"y": x})
    assert_type(model.bind({"x": x}, {"y": x}), dml.BoundModel)
    return model(x=x)["y"].astype(np.float64)


def of_another_library(model: dml.Model, x: Tensor) -> Tensor:
    assert_type(model(x=x, y=x), dict[str, Tensor])
    return model(x=x)["y"]


def objects(device: dml.Device, desc: dml.OperatorDesc, x: Floats) -> None:
    compiled = assert_type(device.compile_operator(device.create_operator(desc)), dml.CompiledOperator)
    bound = assert_type(compiled.bind([x], [x]), dml.BoundOperator)
    assert_type(bound.dispatch, Callable[[], None])
    assert_type(device.record([bound]), dml.Recording)
    assert_type(device.removed_reason, dml.DeviceRemoved | None)
    assert_type(f"{dml.FLOAT32}", str)
    assert_type(dml.TensorDataType.FLOAT32.value, int)


def graphs(graph: dml.Graph) -> dml.Model:
    x = assert_type(graph.input("x", dml.FLOAT32, [2]), dml.GraphTensor)
    return graph.compile({"x": x})


def functions(x: Floats, tensor: dml.GraphTensor) -> None:
    assert_type(dml.activation_celu(x, alpha=2.0), Floats)
    assert_type(dml.activation_celu(tensor), dml.GraphTensor)
    band = assert_type(dml.diagonal_matrix1(x, value=1, diagonal_fill_begin=0, diagonal_fill_end=1), Floats)
    assert_type(dml.diagonal_matrix1(value=1, diagonal_fill_begin=0, diagonal_fill_end=1, out=band), Floats)
    filled = dml.diagonal_matrix1(value=1, diagonal_fill_begin=0, diagonal_fill_end=1, graph=dml.Graph())
    assert_type(filled, dml.GraphTensor)
    assert_type(dml.top_k1(x, k=1), TopK1Outputs[Array])
    pooled = dml.max_pooling2(tensor, window_size=[2], output_indices=True)
    assert_type(pooled, MaxPooling2Outputs[dml.GraphTensor])
    assert_type(dml.descs.ActivationCelu(alpha=2.0).alpha, float)
    assert_type(dml.PaddingMode["EDGE"], dml.PaddingMode)
"""

WRONG = """
import opendml as dml


def wrong(device: dml.Device, model: dml.Model) -> int:
    device.create_operator(3)
    device.compile_graph([])
    dml.activation_celu(3.0, alhpa=1)
    dml.descs.ActivationCelu(alpha="1")
    return model()
"""


def check(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """With the settings of the project, for which `make lint` has left what it knows of opendml."""
    pytest.importorskip("mypy")
    write_stubs()
    path = folder / "program.py"
    path.write_text(program)
    command = [sys.executable, "-m", "mypy", str(path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_programs_have_the_types_that_are_meant(tmp_path: Path) -> None:
    result = check(PROGRAM, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_wrong_programs_are_told(tmp_path: Path) -> None:
    result = check(WRONG, tmp_path)
    told = re.findall(r"program\.py:(\d+): error", result.stdout)
    assert told == ["6", "7", "8", "9", "10"], result.stdout
