"""Reductions and shapes of graph tensors, compared with NumPy and PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opendml as dml

RANDOM = np.random.default_rng(0)
X = RANDOM.integers(-4, 5, (2, 3, 4)).astype(np.float32)


def result_of(function: Callable[[Any], Any], array: Any, **options: Any) -> Any:
    graph = dml.Graph(**options)
    x = graph.input("x", array.dtype.name.upper(), array.shape)
    return graph.compile({"y": function(x)})(x=array)["y"]


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min", "any", "all", "argmax", "argmin"])
@pytest.mark.parametrize(
    ("axis", "keeps"), [(None, False), (None, True), (1, False), (-1, True), ((0, 2), False)]
)
def test_reductions_are_those_of_numpy(name: str, axis: Any, keeps: bool) -> None:
    if name.startswith("arg") and isinstance(axis, tuple):
        pytest.skip("NumPy has one axis")
    expected = np.atleast_1d(getattr(X, name)(axis=axis, keepdims=keeps))
    result = result_of(lambda x: getattr(x, name)(axis, keeps), X)
    same = result_of(lambda x: getattr(x, name)(dim=axis, keepdim=keeps), X)
    for found in (result, same):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    wanted = expected.dtype.name if expected.dtype.kind != "b" else "uint8"
    assert result.dtype.name == wanted


@pytest.mark.parametrize("name", ["sum", "prod"])
@pytest.mark.parametrize("type", [np.uint8, np.int8, np.int16, np.int32, np.uint32, np.int64])
def test_sums_and_products_of_integers_do_not_overflow_their_type(type: Any, name: str) -> None:
    given = np.array([[100, 100, 100], [1, 2, 3]], type)
    result, expected = result_of(lambda x: getattr(x, name)(1), given), getattr(given, name)(1)
    assert result.dtype == expected.dtype
    assert result.tolist() == expected.tolist()


def test_comparisons_are_counted() -> None:
    assert result_of(lambda x: (x > 0).sum(), X).tolist() == [np.count_nonzero(X > 0)]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.swapaxes(0, -1) + 0,
        lambda x: x.swapaxes(1, 1) + 0,
        lambda x: x.transpose(2, 0, 1) + 0,
        lambda x: x.reshape(3, -1).flatten() + 0,
        lambda x: x[:1].squeeze() + 0,
        lambda x: x[:1, :1].squeeze(0) + 0,
        lambda x: x[:1, :, :1].squeeze((0, -1)) + 0,
        lambda x: x.astype("int32"),
    ],
)
def test_shapes_and_types_are_those_of_numpy(function: Callable[[Any], Any]) -> None:
    result, expected = result_of(function, X), function(X)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("axis", [0, 1, 3, -1, -4])
def test_dimensions_are_inserted(axis: int) -> None:
    np.testing.assert_array_equal(result_of(lambda x: x.unsqueeze(axis) + 0, X), np.expand_dims(X, axis))


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda x: x.sum(3), r"sum: axis 3; must be within \[-3, 2\], and each once"),
        (lambda x: x.mean((0, -3)), r"mean: axis \(0, -3\); must be within"),
        (lambda x: x.argmax(dim=-4), r"argmax: axis -4; must be"),
        (lambda x: x.sum("a"), r"sum: \('a',\); whole numbers are needed"),
        (lambda x: x.squeeze(1), r"squeeze: dimension 1 has size 3; must be 1"),
        (lambda x: x.unsqueeze(4), r"unsqueeze: 4; must be within \[-4, 3\]"),
        (lambda x: x.swapaxes(0, 5), r"swapaxes: axis 5; must be within \[-3, 2\]"),
        (lambda x: x.astype("complex64"), "complex64"),
    ],
)
def test_wrong_arguments_are_named(call: Callable[[Any], Any], problem: str) -> None:
    with pytest.raises(dml.InvalidArgument, match=problem):
        call(dml.Graph().input("x", dml.FLOAT32, [2, 3, 4]))


def test_axis_and_dim_exclude_each_other() -> None:
    x = dml.Graph().input("x", dml.FLOAT32, [2, 3])
    with pytest.raises(dml.InvalidArgument, match="sum: axis 0 and dim 1; one of them is needed"):
        x.sum(0, dim=1)
