"""Models that are compiled for sizes before these are needed, and what they say meanwhile."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import opendml as dml
from opendml.targets.cpu import machine_code, planning

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, n] x, int64[batch, 1] i) => (float[batch, n] y) {
  f = Cast <to = 1> (i)
  s = Add (x, f)
  y = Tanh (s)
}"""


def onnx_model(**options: Any) -> dml.onnx.OnnxModel:
    return dml.onnx.load(onnx.parser.parse_model(TEXT).SerializeToString(), **options)


def graph_model(**options: Any) -> dml.Model:
    graph = dml.Graph()
    x, i = (graph.input(name, dml.FLOAT32, ["batch", size]) for name, size in (("x", "n"), ("i", 1)))
    return graph.compile({"y": dml.activation_tanh(dml.element_wise_add(x, i))})


@pytest.fixture
def scheduled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The kernels that are scheduled from now on."""
    found: list[Any] = []
    schedule = planning.schedule

    def counted(kernel: Any, *arguments: Any) -> Any:
        found.append(kernel)
        return schedule(kernel, *arguments)

    monkeypatch.setattr(planning, "schedule", counted)
    return found


@pytest.mark.parametrize(("make", "type"), [(onnx_model, np.int64), (graph_model, np.float32)])
def test_sizes_that_were_warmed_up_are_not_compiled_again(
    make: Callable[[], Any], type: Any, scheduled: list[Any]
) -> None:
    model = make()
    model.warm_up({"batch": [1, 3, 1000], "n": 40})
    assert scheduled
    scheduled.clear()
    for batch in (3, 1, 1000):
        x, i = np.ones((batch, 40), np.float32), np.full((batch, 1), 2, type)
        np.testing.assert_allclose(model(x=x, i=i)["y"], np.tanh(x + i), rtol=1e-6)
    assert scheduled == []


@pytest.mark.parametrize("make", [onnx_model, graph_model])
@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"batch": 1}, "dimension n is missing; the model has batch, n"),
        ({"batch": 1, "n": 2, "width": 3}, "dimension 'width' is unknown; the model has batch, n"),
        ({"batch": 0, "n": 2}, "batch: 0; a size from 1 on is needed, or several"),
        ({"batch": [], "n": 2}, r"batch: \[\]; a size from 1 on"),
        ({"batch": 1.5, "n": 2}, "batch: 1.5; a size from 1 on"),
        ({"batch": np.array(2.5), "n": 2}, r"batch: array\(2.5\); a size from 1 on"),
        ({"batch": [1, True], "n": 2}, r"batch: \[1, True\]; a size from 1 on"),
        ([1, 2], "a dict is needed"),
    ],
)
def test_wrong_sizes_are_named(make: Callable[[], Any], sizes: Any, message: str) -> None:
    with pytest.raises(dml.InvalidArgument, match=message):
        make().warm_up(sizes)


def test_sizes_may_come_from_numpy_and_from_iterators(scheduled: list[Any]) -> None:
    model = graph_model()
    sizes: Any = {"batch": np.int64(3), "n": iter([1, 40])}
    model.warm_up(sizes)
    scheduled.clear()
    model(np.ones((3, 40), np.float32), np.ones((3, 1), np.float32))
    assert scheduled == []


def test_scalars_of_an_onnx_model_are_warmed_up_too() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[n] x, float s) => (float[n] y) { y = Mul (x, s) }"""
    model = dml.onnx.load(onnx.parser.parse_model(text))
    model.warm_up({"n": 2})
    for size in (2**60, 2**70):
        with pytest.raises(dml.InvalidArgument, match=r"warm_up: input 'x': no memory for sizes \[\d+\]"):
            model.warm_up({"n": size})


def test_sizes_outside_of_a_dimension_are_named() -> None:
    graph = dml.Graph()
    graph.dimension("n", least=2, greatest=8)
    model = graph.compile({"y": dml.activation_tanh(graph.input("x", dml.FLOAT32, ["n", 4]))})
    for size in (1, 9, 100):
        with pytest.raises(dml.InvalidArgument, match=f"warm_up: n: {size}; it is 2 to 8"):
            model.warm_up({"n": size})


def test_sizes_beyond_numpy_are_named() -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 2] x) => (float[n, 2] y) { y = Relu (x) }'
    model = dml.onnx.load(onnx.parser.parse_model(text))
    with pytest.raises(dml.InvalidArgument, match=r"warm_up: input 'x': no memory for sizes \[\d+, 2\]"):
        model.warm_up({"n": 2**62})


def test_a_model_of_fixed_sizes_has_nothing_to_warm_up() -> None:
    graph = dml.Graph()
    model = graph.compile({"y": dml.activation_tanh(graph.input("x", dml.FLOAT32, [4]))})
    model.warm_up({})
    with pytest.raises(dml.InvalidArgument, match="dimension 'n' is unknown; the model has none"):
        model.warm_up({"n": 1})


def test_progress_and_logs_say_what_is_compiled_and_why(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("OPENDML_CACHE_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(machine_code, "_codes", {})
    with caplog.at_level(logging.DEBUG, "opendml"):
        for progress in (True, False):
            model = onnx_model(progress=progress)
            model(np.ones((2, 8 + progress), np.float32), np.ones((2, 1), np.int64))
    told = capfd.readouterr().err
    for each in (
        "parsed and checked in",
        "kernels, which is not in the cache, in",
        "which it had not met, in",
    ):
        assert each in told
        assert each in caplog.text
    assert told.count("parsed and checked in") == 1


def test_compiling_pauses_the_collector_and_starts_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    enabled: list[bool] = []
    fuse = planning.fuse

    def noted(*arguments: Any) -> Any:
        enabled.append(gc.isenabled())
        if len(enabled) == 2:
            raise dml.Unsupported("no kernels")
        return fuse(*arguments)

    monkeypatch.setattr(planning, "fuse", noted)
    for _ in range(2):
        graph = dml.Graph()
        outputs = {"y": dml.activation_tanh(graph.input("x", dml.FLOAT32, [4]))}
        with suppress(dml.Unsupported):
            graph.compile(outputs)
        assert gc.isenabled()
    gc.disable()
    try:
        graph.compile(outputs)
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert enabled == [False] * 3
