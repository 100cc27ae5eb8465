"""NonMaxSuppression, on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from opendml import InvalidArgument
from opendml.frontends.onnx.check import check
from tests.onnx.models import Array, computed, feed, one_node, run_by_onnxruntime

RANDOM = np.random.default_rng(3)
BOXES = RANDOM.uniform(0, 1, (2, 40, 4)).astype(np.float32)
SCORES = RANDOM.uniform(0, 1, (2, 3, 40)).round(1).astype(np.float32)  # some of which are equal


def _inputs(most: int | None = 6, overlap: float | None = 0.3, least: float | None = 0.4) -> list[Any]:
    limits = (most, np.int64), (overlap, np.float32), (least, np.float32)
    return [BOXES, SCORES, *(None if each is None else np.array([each], type) for each, type in limits)]


@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize(
    "given", [_inputs(), _inputs(least=None), _inputs(overlap=None), _inputs(most=100), _inputs(overlap=1)]
)
def test_the_boxes_are_those_of_onnx_runtime(given: list[Any], center: int) -> None:
    model = one_node("NonMaxSuppression", given, center_point_box=center, opset=11)
    (wanted,), (result,) = run_by_onnxruntime(model, feed(given)), computed(model, feed(given))
    assert result.dtype == np.int64
    np.testing.assert_array_equal(result, wanted)


def test_boxes_without_an_area_and_none_at_all() -> None:
    boxes = np.array([[[0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]]], np.float32)
    given: list[Array | None] = [boxes, np.array([[[4, 3, 2, 1]]], np.float32), np.array([9])]
    model = one_node("NonMaxSuppression", given, opset=11)
    assert computed(model, feed(given))[0][:, 2].tolist() == [0, 1, 2]
    assert computed(model, {**feed(given), "x2": np.array([0])})[0].shape == (0, 3)
    given = given[:2]
    model = one_node("NonMaxSuppression", given, opset=11)
    assert computed(model, feed(given))[0].shape == (0, 3)  # as many as nothing says: none


def test_other_sizes_are_named() -> None:
    given = [BOXES[:, :39], SCORES, np.array([3])]
    with pytest.raises(InvalidArgument, match=r"boxes \[2, 39, 4\] and scores \[2, 3, 40\]; must"):
        computed(one_node("NonMaxSuppression", given, opset=11), feed(given))
    several = [BOXES, SCORES, np.array([3, 4])]
    with pytest.raises(InvalidArgument, match="each is one number"):
        computed(one_node("NonMaxSuppression", several, opset=11), feed(several))


def test_a_check_says_that_the_host_runs_it() -> None:
    found = check(one_node("NonMaxSuppression", _inputs(), opset=11))
    assert (found.unsupported, found.evaluated) == ((), ())
    assert found.unknown[0].reason.startswith("runs on the host")
