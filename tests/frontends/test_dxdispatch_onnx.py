"""ONNX models in JSON models of DxDispatch: where the sizes that they leave open come from."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("onnx")
import numpy as np
import onnx

from opendml.cli import main
from tests.printed import results_in

_TEXT = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[N, 2] x, float[N, 2] y) => (float[M, 2] z) { z = Concat <axis = 0> (x, y) }
"""

Run = Callable[..., Result]


def _floats(*values: float) -> dict[str, Any]:
    return {"initialValuesDataType": "FLOAT32", "initialValues": list(values)}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a JSON model with the ONNX model as its dispatchable."""
    monkeypatch.chdir(tmp_path)
    model = onnx.parser.parse_model(_TEXT)
    model.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    model.graph.input[1].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    onnx.save(model, tmp_path / "model.onnx")

    def run(
        *options: str,
        command: str = "run",
        bindings: dict[str, Any] | None = None,
        output: dict[str, Any] | None = None,
        commands: Sequence[dict[str, Any]] = (),
        **fields: Any,
    ) -> Result:
        bound = {"x": "a", "y": "b", "z": "c"} if bindings is None else bindings
        values = {"a": _floats(1, 2, 3, 4), "b": _floats(5, 6, 7, 8), "c": output or _floats(*[0] * 8)}
        text = {
            "resources": values,
            "dispatchables": {"m": {"type": "onnx", "sourcePath": "model.onnx", **fields}},
            "commands": [
                *commands,
                {"type": "dispatch", "dispatchable": "m", "bindings": bound},
                {"type": "print", "resource": "c"},
                *([{"type": "writeFile", "resource": "c", "targetPath": "c.npy"}] if output else []),
            ],
        }
        path = tmp_path / "model.json"
        path.write_text(json.dumps(text))
        return CliRunner().invoke(main, [command, str(path), *options])

    return run


_ONE_ROW = "Resource 'c': 1, 2, 5, 6, 0, 0, 0, 0\n"
_TWO_ROWS = "Resource 'c': 1, 2, 3, 4, 5, 6, 7, 8\n"


def test_open_sizes_are_1_as_in_dxdispatch(run: Run) -> None:
    result = run()
    assert results_in(result.stdout) == _ONE_ROW, result.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["-f", "N:2"],
        ["--onnx_free_dim_name_override", "N:2"],
        ["--size", "N=2"],
        ["-F", "DATA_BATCH:2"],
        ["--onnx_free_dim_denotation_override", "DATA_BATCH:2"],
        ["-b", "x:2,2", "-b", "y:2,2"],
        ["--binding_shape", "x:2,2", "--binding_shape", "y:2,2"],
    ],
)
def test_options_of_dxdispatch_say_sizes(options: list[str], run: Run) -> None:
    result = run(*options)
    assert results_in(result.stdout) == _TWO_ROWS, result.stderr


def test_the_model_says_sizes_and_options_go_before_it(run: Run) -> None:
    assert results_in(run(freeDimensionNameOverrides={"N": 2}).stdout) == _TWO_ROWS
    assert results_in(run(freeDimensionDenotationOverrides={"DATA_BATCH": 2}).stdout) == _TWO_ROWS
    assert results_in(run("-f", "N:1", freeDimensionNameOverrides={"N": 2}).stdout) == _ONE_ROW


def test_bindings_say_shapes_and_options_go_before_them(run: Run) -> None:
    shaped = {
        "x": {"name": "a", "shape": [2, 2]},
        "y": {"name": "b", "shape": [2, 2]},
        "z": {"name": "c", "shape": [4, 2]},
    }
    assert results_in(run(bindings=shaped).stdout) == _TWO_ROWS
    assert results_in(run("-b", "x:1,2", "-b", "y:1,2", bindings=shaped).stdout) == _ONE_ROW


def test_tensors_need_no_resource(run: Run) -> None:
    assert results_in(run(bindings={"z": "c"}).stdout) == "Resource 'c': 0, 0, 0, 0, 0, 0, 0, 0\n"
    assert run("--iterations", "2", bindings={}).exit_code == 0


@pytest.mark.parametrize(
    ("options", "fields", "text"),
    [
        (["-f", "K:2"], {}, "no input or output has a size of the name 'K'"),
        (["-F", "DATA_CHANNEL:2"], {}, "no input or output has a dimension with the denotation"),
        (["-b", "w:2,2"], {}, "no input or output has a tensor of the name 'w'"),
        (["-b", "x:2,3"], {}, "model.onnx: tensor 'x': sizes [2, 3]; must be ['N', 2]"),
        (["-f", "N"], {}, "-f N: NAME:N with a size of at least 1 is needed"),
        (["-b", "x:2,"], {}, "-b x:2,: TENSOR:N,N with sizes of at least 1 is needed"),
        ([], {"freeDimensionNameOverrides": {"K": 2}}, "has a size of the name 'K'"),
        ([], {"freeDimensionNameOverrides": {"N": 0}}, "m.freeDimensionNameOverrides.N: expected"),
        ([], {"freeDimensionNameOverrides": {"N": 4}}, "with 32 bytes for the tensor, got 16 from byte 0"),
        (
            [],
            {"bindings": {"x": {"name": "a", "shape": [2, 3]}, "y": "b", "z": "c"}},
            "bindings.x.shape: expected the sizes of the model, ['?', 2], got [2, 3]",
        ),
    ],
)
def test_wrong_sizes_are_named(options: list[str], fields: dict[str, Any], text: str, run: Run) -> None:
    result = run(*options, **fields)
    assert result.exit_code == 2
    assert text in result.stderr


def test_what_is_larger_than_its_resource_is_an_error_when_it_is_known(run: Run) -> None:
    shaped = {"x": {"name": "a", "shape": [2, 2]}, "y": {"name": "b", "shape": [2, 2]}, "z": "a"}
    result = run(bindings=shaped)
    assert result.exit_code == 1
    assert "output 'z': 32 bytes; the resource that is bound has 16" in result.stderr


def test_check_takes_the_sizes_too(run: Run) -> None:
    assert run("--runs", "-f", "N:2", command="check").exit_code == 0
    wrong = run("--runs", "-f", "K:2", command="check")
    assert wrong.exit_code == 1
    assert "size of the name 'K'" in wrong.stdout + wrong.stderr


DEFERRED = {"initialValues": "deferred"}


def test_a_deferred_resource_becomes_the_output(run: Run, tmp_path: Path) -> None:
    result = run("-f", "N:2", "--output-directory", str(tmp_path), output=DEFERRED)
    assert results_in(result.stdout).startswith(_TWO_ROWS), result.stderr
    assert np.load(tmp_path / "c.npy").tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
    typed = run("-i", "3", output=DEFERRED | {"initialValuesDataType": "FLOAT32"})
    assert results_in(typed.stdout).startswith("Resource 'c': 1, 2, 5, 6\n"), typed.stderr


@pytest.mark.parametrize(
    ("changes", "status", "text"),
    [
        ({"output": DEFERRED | {"sizeInBytes": 4}}, 2, 'c.sizeInBytes: expected nothing beside "deferred"'),
        (
            {"output": DEFERRED, "bindings": {"x": "c", "y": "b", "z": "c"}},
            2,
            'bindings.x: expected a resource with values, got "c", which an output of an ONNX model becomes',
        ),
        (
            {"output": DEFERRED, "commands": [{"type": "print", "resource": "c"}]},
            2,
            '$.commands[0].resource: expected a resource that a dispatch before binds to an output, got "c"',
        ),
        (
            {"output": DEFERRED, "commands": [{"type": "writeFile", "resource": "c", "targetPath": "c.bin"}]},
            2,
            '$.commands[0].resource: expected a resource that a dispatch before binds to an output, got "c"',
        ),
        (
            {"output": DEFERRED, "bindings": {"z": {"name": "c", "elementOffset": 4, "elementCount": 2}}},
            2,
            'z.elementCount: expected 0 for a "deferred" resource, which becomes the whole output, got 2',
        ),
        (
            {"output": DEFERRED, "bindings": {"z": {"name": "c", "shape": [2]}}},
            2,
            "z.shape: expected the sizes of the model, ['?', 2], got [2]",
        ),
        (
            {"output": DEFERRED, "bindings": {"z": {"name": "c", "shape": [3, 2]}}},
            1,
            "output 'z': sizes [2, 2]; its binding says [3, 2]",
        ),
    ],
)
def test_a_deferred_resource_is_an_output_alone(
    changes: dict[str, Any], status: int, text: str, run: Run
) -> None:
    result = run(**changes)
    assert result.exit_code == status
    assert text in result.stderr


def test_a_deferred_resource_becomes_one_output_of_any_size(run: Run, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        """
        <ir_version: 10, opset_import: ["" : 20]>
        g (float[N] x) => (int64[1, M] z, bool[N] t) { z = NonZero (x) t = Cast <to = 9> (x) }
        """
    )
    onnx.save(model, tmp_path / "model.onnx")
    rows = [{"x": {"name": name, "shape": [size]}, "z": "c"} for name, size in (("a", 4), ("b", 2), ("a", 1))]
    first, last = (
        [{"type": "dispatch", "dispatchable": "m", "bindings": each}, {"type": "print", "resource": "c"}]
        for each in rows[:2]
    )
    result = run(output=DEFERRED, commands=first + last, bindings=rows[2] | {"t": {"name": "a"}})
    assert results_in(result.stdout).startswith(
        "Resource 'c': 0, 1, 2, 3\nResource 'c': 0, 1\nResource 'c': 0\n"
    ), result.stderr
    both = run(output=DEFERRED, bindings={"x": "a", "z": "c", "t": "c"})
    assert both.exit_code == 2
    assert 'bindings.t: expected a resource that no other output becomes, got "c", which z' in both.stderr


def test_a_deferred_output_that_is_no_picture_says_so(run: Run) -> None:
    picture = {"type": "writeFile", "resource": "c", "targetPath": "c.png"}
    dispatch = {"type": "dispatch", "dispatchable": "m", "bindings": {"z": "c"}}
    result = run(output=DEFERRED, commands=[dispatch, picture])
    assert result.exit_code == 1
    assert "FLOAT32 [2, 2]; FLOAT16, FLOAT32, FLOAT64 or UINT8 with sizes [1, C, H, W]" in result.stderr
