"""The benchmark of models whose sizes change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")

from benchmarks import sizes  # noqa: E402

MODEL = """
<ir_version: 10, opset_import: ["" : 20]>
doubled (float[n] x) => (float[n] y) { y = Add(x, x) }
"""


@pytest.mark.parametrize("engine", sizes.ENGINES["cpu"])
def test_each_run_of_a_case_is_timed_and_summed(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(engine, reason=f"{sizes.ENGINES['cpu'][engine]} is not installed")
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    inputs = {size: {"x": np.full(size, -size, np.float32)} for size in (2, 5, 9)}
    case = sizes.Case("case", lambda folder: path, sizes.in_random_order([2, 5, 9], inputs.__getitem__))
    monkeypatch.setattr(sizes, "CASES", (case,))
    found = sizes.work(engine, "case", path, 1, "cpu")
    assert len(found["times"]) == 3
    assert sorted(found["sums"].values()) == [[-162.0, 162.0], [-50.0, 50.0], [-8.0, 8.0]]


def test_a_row_has_each_engine_and_what_differs() -> None:
    measured = {"load": 0.5, "first": 0.01, "total": 2.0, "median": 0.002, "memory": 3e8}
    engines = ("opendml", "onnxruntime", "openvino")
    result = {"case": "gpt", "differing": ["3: 8"], **dict.fromkeys(engines, measured)}
    assert sizes.row(result, engines[:2]) == (
        "| gpt | 0.50 / 0.50 | 10.00 / 10.00 | 2.00 / 2.00 | 2.00 / 2.00 | 300.00 / 300.00 |"
        " outputs differ: 3: 8"
    )
    assert "| 0.50 / 0.50 / 0.50 |" in sizes.row(result, engines)
