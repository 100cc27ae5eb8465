"""ONNX models that another process has run: neither parsed, nor traced, fused or scheduled again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

import opendml as dml
from opendml.frontends.onnx import model_file
from opendml.targets import object_cache
from opendml.targets.cpu import engine, planning

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(28)
X = RANDOM.standard_normal((3, 48), np.float32)
W = RANDOM.standard_normal((48, 40), np.float32)
V = RANDOM.standard_normal((40, 32), np.float32)
TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[n, 48] x) => (float[n, 32] y, bool[n, 32] positive) {
  h = MatMul (x, w)
  r = Relu (h)
  t = Constant <value_ints = [1, 0]> ()
  BODY
  zero = Constant <value_float = 0.0> ()
  positive = Greater (y, zero)
}
"""


def model(body: str = "y = MatMul (r, v)", **weights: Array) -> bytes:
    """Return a model of two products with weights in its initializers."""
    read = onnx.parser.parse_model(TEXT.replace("BODY", body))
    for name, array in ({"w": W, "v": V} | weights).items():
        read.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return bytes(read.SerializeToString())


def folded(**weights: Array) -> bytes:
    """Return such a model, whose second product has weights computed from an initializer."""
    return model("f = Mul (v, v)\n  y = MatMul (r, f)", **weights)


class Work:
    """Counts what a process does beside running machine code."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch, self.counts = monkeypatch, {"parsed": 0, "fused": 0, "scheduled": 0}
        monkeypatch.setenv("OPENDML_CACHE_DIRECTORY", str(folder / "cache"))
        monkeypatch.setenv(object_cache.PLANS_VARIABLE, "1")
        for module, function, name in (
            (model_file, "_parsed", "parsed"),
            (planning, "fuse", "fused"),
            (planning, "schedule", "scheduled"),
        ):
            monkeypatch.setattr(module, function, self._counted(getattr(module, function), name))

    def _counted(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            self.counts[name] += 1
            return function(*arguments, **named)

        return counted

    def of(self, run: Callable[[], Any]) -> tuple[Any, dict[str, int]]:
        """Return the result of `run` as if in a new process, and what it took."""
        self._patch.setattr(engine, "_codes", {})
        self.counts |= dict.fromkeys(self.counts, 0)
        return run(), dict(self.counts)


NOTHING = {"parsed": 0, "fused": 0, "scheduled": 0}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    return Work(tmp_path, monkeypatch)


def results(source: Any, *xs: Array, **options: Any) -> list[bytes]:
    loaded = dml.onnx.load(source, **options)
    return [each.tobytes() for x in xs for each in loaded(x).values()]


@pytest.mark.parametrize("kind", ["bytes", "path"])
@pytest.mark.parametrize("make", [model, folded])
def test_a_known_model_is_neither_parsed_nor_traced(
    make: Callable[[], bytes], kind: str, work: Work, tmp_path: Path
) -> None:
    source: Any = make()
    if kind == "path":
        (tmp_path / "model.onnx").write_bytes(source)
        source = tmp_path / "model.onnx"
    expected, first = work.of(lambda: results(source, X, X[:1], X))
    assert first["parsed"] == 1
    assert first["fused"] > 0
    found, second = work.of(lambda: results(source, X, X[:1], X))
    assert second == NOTHING
    assert found == expected


def test_declarations_of_a_known_model_are_those_of_the_model(work: Work) -> None:
    def declared() -> Any:
        loaded = dml.onnx.load(model())
        loaded(X)
        return loaded.inputs, loaded.outputs, loaded.input_names, loaded.output_names, repr(loaded)

    expected, _ = work.of(declared)
    found, counts = work.of(declared)
    assert found == expected
    assert counts == NOTHING


def test_models_with_types_that_numpy_lacks_are_loaded_each_time(work: Work) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (bfloat16[3, 48] x) => (bfloat16[3, 48] y) { y = Neg (x) }"""
    source = bytes(onnx.parser.parse_model(text).SerializeToString())
    x = X.astype(ml_dtypes.bfloat16)
    for _ in range(2):
        found, counts = work.of(lambda: results(source, x))
        assert found == [(-x).tobytes()]
        assert counts["parsed"] == 1


def test_other_weights_are_used(work: Work) -> None:
    work.of(lambda: results(model(), X))
    found, counts = work.of(lambda: results(model(w=W + 1), X))
    assert counts == NOTHING
    assert found[0] == work.of(lambda: results(onnx.load_from_string(model(w=W + 1)), X))[0][0]


def test_initializers_that_a_trace_has_read_are_compared(work: Work) -> None:
    work.of(lambda: results(folded(), X))
    expected = np.maximum(X @ W, 0) @ (2 * V * V * 2)
    (found, _), counts = work.of(lambda: results(folded(v=2 * V), X))
    assert counts["parsed"] == 1
    np.testing.assert_allclose(np.frombuffer(found, np.float32).reshape(3, 32), expected, 1e-4, 1e-4)


def test_new_sizes_of_a_known_model_are_traced(work: Work) -> None:
    work.of(lambda: results(model(), X))
    expected = [results(onnx.load_from_string(model()), x) for x in (X, X[:2])]
    found, counts = work.of(lambda: results(model(), X, X[:2], X))
    assert counts["parsed"] == 1
    assert found == [*expected[0], *expected[1], *expected[0]]


@pytest.mark.parametrize(
    "change",
    [
        {"sizes": dml.onnx.Sizes({"n": 3})},
        {"limits": dml.Limits(tensor_elements=10**6)},
        {"device": "reference"},
    ],
)
def test_other_settings_are_not_those_of_a_known_model(change: dict[str, Any], work: Work) -> None:
    work.of(lambda: results(model(), X))
    _, counts = work.of(lambda: results(model(), X, **change))
    assert counts["parsed"] == 1


def test_wrong_inputs_of_a_known_model_are_named(work: Work) -> None:
    work.of(lambda: results(model(), X))
    loaded, _ = work.of(lambda: dml.onnx.load(model()))
    with pytest.raises(dml.InvalidArgument, match=r"input 'x' has sizes \[3, 47\]"):
        loaded(X[:, 1:])
    with pytest.raises(dml.InvalidArgument, match="must be float32"):
        loaded(X.astype(np.float64))
    with pytest.raises(dml.LimitExceeded):
        dml.onnx.load(model(), limits=dml.Limits(memory_bytes=100))


def test_sizes_that_are_a_dict_are_refused() -> None:
    sizes: Any = {"n": 3}
    with pytest.raises(dml.InvalidArgument, match=r"sizes: \{'n': 3\}; a dml\.onnx\.Sizes is needed"):
        dml.onnx.load(model(), sizes=sizes)


def test_damaged_files_are_ignored(work: Work, tmp_path: Path) -> None:
    expected, _ = work.of(lambda: results(model(), X))
    for path in (tmp_path / "cache").glob("*.plan"):
        path.write_bytes(path.read_bytes()[:-1])
    found, counts = work.of(lambda: results(model(), X))
    assert found == expected
    assert counts["parsed"] == 1
    assert work.of(lambda: results(model(), X)) == (expected, NOTHING)


def test_a_known_model_drops_sizes_that_take_too_much(work: Work) -> None:
    rows = [X[:1], X[:2], X[:3]]
    expected = [each for x in rows for each in work.of(partial(results, model(), x))[0]]
    found, counts = work.of(lambda: results(model(), *rows, *rows, most_kept_bytes=0))
    assert counts == NOTHING
    assert found == 2 * expected


UNIMPORTED = """
import sys
import numpy as np, opendml as dml
dml.onnx.load(sys.argv[1])(np.ones((3, 48), np.float32))
print([name for name in ("onnx", "opendml.compiler.fuse") if name in sys.modules])
"""


def test_a_known_run_imports_neither_the_onnx_package_nor_the_compiler(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(model())
    env = os.environ | {"OPENDML_CACHE_DIRECTORY": str(tmp_path / "cache"), object_cache.PLANS_VARIABLE: "1"}
    command = [sys.executable, "-c", UNIMPORTED, str(tmp_path / "model.onnx")]
    runs = [
        subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout for _ in range(2)
    ]
    assert runs == ["['onnx', 'opendml.compiler.fuse']\n", "[]\n"]
