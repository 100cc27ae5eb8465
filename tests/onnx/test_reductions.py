"""Reductions of ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from tests.onnx.models import (
    Array,
    assert_as_onnxruntime,
    assert_same,
    computed,
    evaluated,
    feed,
    one_node,
)

X = np.random.default_rng(3).uniform(0.5, 2, (2, 3, 4)).astype(np.float32)
ALL = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]


def _check(operator: str, inputs: list[Array | None], **options: Any) -> None:
    model = one_node(operator, inputs, **options)
    given = feed(inputs, options.get("known", ()))
    assert_same(computed(model, given), evaluated(model, given))


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [None, [1], [-1, 0]])
@pytest.mark.parametrize("name", ALL)
def test_axes_are_an_input(name: str, axes: list[int] | None, keepdims: int) -> None:
    given = [] if axes is None else [np.array(axes)]
    _check("Reduce" + name, [X, *given], keepdims=keepdims)


@pytest.mark.parametrize("name", ALL)
def test_axes_of_old_models_are_an_attribute(name: str) -> None:
    model = one_node("Reduce" + name, [X], opset=11, axes=[-1], keepdims=0)
    newer = one_node("Reduce" + name, [X, np.array([2])], keepdims=0)
    given = feed([X, np.array([2])])
    assert_same(computed(model, feed([X])), evaluated(newer, given))


@pytest.mark.parametrize("name", ["Sum", "SumSquare", "LogSum", "Max"])
@pytest.mark.parametrize("noop", [0, 1])
def test_no_axes_are_all_or_none(name: str, noop: int) -> None:
    inputs: list[Array | None] = [X, np.zeros(0, np.int64)]
    results = computed(one_node("Reduce" + name, inputs, noop_with_empty_axes=noop), feed(inputs))
    one: dict[str, Any] = {"Sum": X, "SumSquare": X * X, "LogSum": np.log(X), "Max": X}
    every = {"Sum": X.sum(), "SumSquare": (X * X).sum(), "LogSum": np.log(X.sum()), "Max": X.max()}
    assert_same(results, [one[name] if noop else np.asarray(every[name]).reshape(1, 1, 1)])


@pytest.mark.parametrize("type", [np.bool_, np.uint8, np.int64])
@pytest.mark.parametrize("name", ["Max", "Min"])
def test_extremes_of_other_types(name: str, type: Any) -> None:
    _check("Reduce" + name, [np.array([[0, 1], [1, 1]]).astype(type), np.array([1])])


@pytest.mark.parametrize("name", ["Sum", "Prod", "Max"])
def test_what_has_no_elements_has_a_neutral_result(name: str) -> None:
    _check("Reduce" + name, [np.zeros((2, 0, 3), np.float32), np.array([1])])


def test_a_number_is_reduced_to_itself() -> None:
    _check("ReduceSum", [np.array(3, np.float32)])


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
def test_where_extremes_are(operator: str, last: int, keepdims: int) -> None:
    x = np.array([[2, 2, 1, 1], [3, 1, 3, 1]], np.float32)
    _check(operator, [x], axis=-1, select_last_index=last, keepdims=keepdims)
    _check(operator, [x], select_last_index=last)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_top_k(axis: int, largest: int) -> None:
    _check("TopK", [X, np.array([2])], outputs=2, axis=axis, largest=largest, known=(1,))


def test_top_k_of_old_models() -> None:
    model = one_node("TopK", [X], outputs=2, opset=9, k=2, axis=1)
    values = -np.sort(-X, 1)[:, :2]
    assert_same(computed(model, feed([X])), [values, np.argsort(-X, 1, "stable")[:, :2]])


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("operator", ["CumSum", "CumProd"])
def test_running_sums_and_products(operator: str, exclusive: int, reverse: int) -> None:
    _check(operator, [X, np.array(-1)], exclusive=exclusive, reverse=reverse, known=(1,))


@pytest.mark.parametrize("operator", ["ReduceLogSumExp", "ReduceL2", "ReduceProd"])
def test_onnx_runtime_agrees(operator: str) -> None:
    model = one_node(operator, [X, np.array([0, 2])], known=(1,), opset=18)
    assert_as_onnxruntime(model, feed([X]))
