"""Nodes whose inputs are known are evaluated while a model is traced, once for all sizes if they can be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx

import opendml as dml
from opendml.frontends.onnx.evaluate import Evaluator

TEXT = """
<ir_version: 10, opset_import: ["" : 20]>
example (float[n, 4] x) => (float[m, k] y, float[1] two) {
    one = Constant <value = float[1] {1.0}> ()
    two = Add (one, one)
    sizes = Shape (x)
    order = Constant <value = int64[2] {1, 0}> ()
    turned = Gather (sizes, order)
    sum = Add (x, two)
    y = Reshape (sum, turned)
}
"""


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many times each operator is evaluated from here on."""
    counts = Counter[str]()
    run = Evaluator.__call__

    def counted(self: Evaluator, contents: Mapping[str, Any]) -> dict[str, Any]:
        counts[self._node.operator] += 1
        return run(self, contents)

    monkeypatch.setattr(Evaluator, "__call__", counted)
    return counts


def model() -> dml.onnx.OnnxModel:
    return dml.onnx.load(onnx.parser.parse_model(TEXT))


def test_a_node_of_the_same_contents_is_evaluated_once_for_all_sizes(evaluated: Counter[str]) -> None:
    example = model()
    example.run({"x": np.zeros((2, 4), np.float32)})
    first = dict(evaluated)
    assert first["Constant"] == 2
    example.run({"x": np.zeros((3, 4), np.float32)})
    assert evaluated["Constant"] == first["Constant"]
    assert evaluated["Add"] == first["Add"]
    assert evaluated["Gather"] == first["Gather"] + 1


def test_a_node_of_other_contents_has_other_results() -> None:
    example = model()
    for rows in (2, 3, 5, 3):
        assert example.run({"x": np.ones((rows, 4), np.float32)})["y"].shape == (4, rows)


def test_a_known_result_is_the_callers_own() -> None:
    example = model()
    for rows in (2, 2, 3):
        result = example.run({"x": np.zeros((rows, 4), np.float32)})
        np.testing.assert_array_equal(result["two"], [2])
        np.testing.assert_array_equal(result["y"], np.full((4, rows), 2))
        result["two"][:] = 7
