"""Elements by their indices in ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from tests.onnx.models import Array, assert_same, computed, evaluated, feed, one_node, run_by_onnxruntime

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def _check(operator: str, inputs: list[Array | None], evaluator: bool = False, **options: Any) -> None:
    model = one_node(operator, inputs, **options)
    given = feed(inputs, options.get("known", ()))
    assert_same(computed(model, given, evaluator), evaluated(model, given))


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("indices", [np.array(1), np.array([0, -1]), np.array([[1, 0, 1]], np.int32)])
def test_gather_replaces_an_axis_by_those_of_the_indices(axis: int, indices: Array) -> None:
    _check("Gather", [X, indices], axis=axis)


def test_gather_makes_numbers() -> None:
    _check("Gather", [X[0, 0], np.array(2)])
    _check("Gather", [X[0, 0] > 1, np.array([2])])


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_gather_elements_has_indices_of_its_own_sizes(axis: int) -> None:
    few: list[Array | None] = [X, np.array([[[1], [0]]])]
    model = one_node("GatherElements", few, axis=axis, opset=13)
    assert_same(computed(model, feed(few)), run_by_onnxruntime(model, feed(few)))
    _check("GatherElements", [X, np.zeros((2, 3, 4), np.int32) - 1], axis=axis)


@pytest.mark.parametrize(
    ("indices", "batch"),
    [
        ([[0, 1], [1, 2]], 0),
        ([[1], [0]], 0),
        ([[1, 2, 3]], 0),
        ([[1], [2]], 1),
        ([[[0, 1]], [[2, 3]]], 1),
        ([[[1], [2], [3]], [[0], [0], [1]]], 2),
    ],
)
def test_gather_by_tuples(indices: Any, batch: int) -> None:
    _check("GatherND", [X, np.array(indices)], batch_dims=batch)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_scatter_elements(axis: int) -> None:
    indices, updates = np.array([[[1], [0]]]), np.array([[[50], [60]]], np.float32)
    _check("ScatterElements", [X, indices, updates], axis=axis)
    _check("ScatterElements", [X, np.zeros((2, 3, 4), np.int32) - 1, -X], axis=axis)


def test_scatter_of_old_models() -> None:
    x: list[Array | None] = [X[0], np.array([[0, -1]]), np.array([[50, 60]], np.float32)]
    wanted = X[0].copy()
    wanted[0, 0], wanted[0, 3] = 50, 60
    assert_same(computed(one_node("Scatter", x, opset=9, axis=1), feed(x)), [wanted])


@pytest.mark.parametrize("indices", [[[0, 1], [1, 2]], [[1], [0]], [[1, 2, 3]], [[[0, 0]], [[1, -1]]]])
def test_scatter_by_tuples(indices: Any) -> None:
    found = np.array(indices)
    updates = -np.arange(np.prod(sizes := (*found.shape[:-1], *X.shape[found.shape[-1] :])))
    _check("ScatterND", [X, found, updates.reshape(sizes).astype(np.float32)])


@pytest.mark.parametrize("operator", ["ScatterElements", "ScatterND"])
def test_scatter_with_a_reduction_runs_on_the_evaluator(operator: str) -> None:
    indices = np.array([[0, 0]]) if operator == "ScatterElements" else np.array([[0], [0]])
    updates = np.ones((1, 2) if operator == "ScatterElements" else (2, 4), np.float32)
    _check(operator, [X[0], indices, updates], evaluator=True, reduction="add")


@pytest.mark.parametrize(
    ("mode", "starts"), [("linear", None), ("linear", [1, 0]), ("circular", [2, 5]), ("circular", [0, 1])]
)
def test_caches_are_updated(mode: str, starts: list[int] | None) -> None:
    given = [] if starts is None else [np.array(starts)]
    _check("TensorScatter", [X, -X[:, :2], *given], mode=mode)


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("type", [np.int64, np.float32, np.uint8])
def test_one_hot(axis: int, type: Any) -> None:
    indices = np.array([[1, 2], [0, 3]]).astype(type)
    _check("OneHot", [indices, np.array(4), np.array([0, 5], np.float32)], axis=axis, known=(1,))


def test_compress_with_a_known_condition() -> None:
    condition = np.array([False, True, True])
    _check("Compress", [X, condition], axis=1, known=(1,))
    _check("Compress", [X, condition], known=(1,))
    _check("Compress", [X, condition], axis=1, evaluator=True)


@pytest.mark.parametrize("k", [-1, 0, 1])
def test_eye_like_reads_sizes_alone(k: int) -> None:
    _check("EyeLike", [X[0]], k=k)
    _check("EyeLike", [X[0]], k=k, dtype=7)


def test_ranges_and_fillings_depend_on_contents() -> None:
    _check("Range", [np.array(1), np.array(7), np.array(2)])
    _check("ConstantOfShape", [np.array([2, 3])])


def test_nonzero_runs_on_the_evaluator() -> None:
    _check("NonZero", [X], evaluator=True)


@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize(
    ("axis", "is_sorted", "wanted"),
    [
        (None, 0, ([3, 1, 2], [0, 1, 3], [0, 1, 1, 2, 0, 2], [2, 2, 2])),
        (None, 1, ([1, 2, 3], [1, 3, 0], [2, 0, 0, 1, 2, 1], [2, 2, 2])),
        (1, 0, ([[3, 1], [2, 3]], [0, 1], [0, 1, 0], [2, 1])),
        (-1, 1, ([[1, 3], [3, 2]], [1, 0], [1, 0, 1], [1, 2])),
    ],
)
def test_what_is_unique_is_sorted_or_comes_in_its_order(
    axis: int | None, is_sorted: int, wanted: Any, outputs: int
) -> None:
    rows = [[3, 1, 1], [2, 3, 2]] if axis is None else [[3, 1, 3], [2, 3, 2]]
    attributes = {} if axis is None else {"axis": axis}
    x = np.array(rows, np.float32)
    model = one_node("Unique", [x], outputs, sorted=is_sorted, **attributes)
    found = computed(model, feed([x]), evaluator=True)
    assert [each.tolist() for each in found] == [*wanted][:outputs]
    assert [each.dtype for each in found[1:]] == [np.int64] * (outputs - 1)
