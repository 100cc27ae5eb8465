"""REDUCE, ARGMIN and ARGMAX against NumPy, SciPy and ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import AxisDirection, ReduceFunction
from tests.tolerances import assert_within
from tools.terms import of_reduction

from .onnx_peer import PEERS, onnx_result
from .peer import (
    DEVICES,
    FLOATS,
    INTEGERS,
    Random,
    computed,
    exact,
    examples,
    seeds,
)

FLOAT_FUNCTIONS: dict[str, Callable[[Array, Any], Any]] = {
    "AVERAGE": lambda x, axes: x.mean(axes, keepdims=True),
    "L1": lambda x, axes: np.abs(x).sum(axes, keepdims=True),
    "L2": lambda x, axes: np.sqrt((x * x).sum(axes, keepdims=True)),
    "LOG_SUM": lambda x, axes: np.log(x.sum(axes, keepdims=True)),
    "LOG_SUM_EXP": lambda x, axes: _logsumexp(x, axes),
    "MAX": lambda x, axes: x.max(axes, keepdims=True),
    "MIN": lambda x, axes: x.min(axes, keepdims=True),
    "MULTIPLY": lambda x, axes: x.prod(axes, keepdims=True),
    "SUM": lambda x, axes: x.sum(axes, keepdims=True),
    "SUM_SQUARE": lambda x, axes: (x * x).sum(axes, keepdims=True),
}
INTEGER_FUNCTIONS: dict[str, Callable[[Array, Any], Any]] = {
    "L1": lambda x, axes: np.abs(x).sum(axes, x.dtype, keepdims=True),
    "MAX": lambda x, axes: x.max(axes, keepdims=True),
    "MIN": lambda x, axes: x.min(axes, keepdims=True),
    "MULTIPLY": lambda x, axes: x.prod(axes, x.dtype, keepdims=True),
    "SUM": lambda x, axes: x.sum(axes, x.dtype, keepdims=True),
    "SUM_SQUARE": lambda x, axes: (x * x).sum(axes, x.dtype, keepdims=True),
}
SEARCHES = {"ARGMIN": np.argmin, "ARGMAX": np.argmax}


def _logsumexp(x: Array, axes: Any) -> Any:
    special = pytest.importorskip("scipy.special", reason="SciPy is not installed")
    return special.logsumexp(x, axes, keepdims=True)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("function", FLOAT_FUNCTIONS)
@given(random=seeds)
@examples
def test_float_reductions_agree_with_numpy_and_scipy(function: str, device: str, random: Random) -> None:
    shape = random.shape()
    axes = random.axes(len(shape))
    x = random.values(random.of_type(FLOATS), shape, -10, 10, special=bool(random.generator.integers(2)))
    if function == "LOG_SUM":
        x = np.abs(x)
    with np.errstate(all="ignore"):
        expected = FLOAT_FUNCTIONS[function](exact(x), tuple(axes))
    result = computed("REDUCE", x, function=ReduceFunction[function], axes=axes, device=device)
    assert_within("REDUCE", result, expected, of_reduction(ReduceFunction[function], expected))


INFINITE = np.array(
    [
        [np.inf, 1],
        [-np.inf, 1],
        [np.inf, -np.inf],
        [-np.inf, -np.inf],
        [np.nan, 1],
        [np.nan, np.inf],
        [0, np.inf],
    ]
)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("function", FLOAT_FUNCTIONS)
def test_groups_with_infinities_and_nan_agree_with_numpy(function: str, name: str, device: str) -> None:
    x = INFINITE.astype(name)
    with np.errstate(all="ignore"):
        expected = FLOAT_FUNCTIONS[function](INFINITE, (1,))
    result = computed("REDUCE", x, function=ReduceFunction[function], axes=[1], device=device)
    assert_within("REDUCE", result, expected, of_reduction(ReduceFunction[function], expected))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("function", INTEGER_FUNCTIONS)
@given(random=seeds)
@examples
def test_integer_reductions_wrap_as_numpy_has_them(function: str, device: str, random: Random) -> None:
    wide_only = function in ("L1", "SUM_SQUARE", "MULTIPLY", "SUM")
    dtype = random.of_type(("int32", "int64", "uint32", "uint64") if wide_only else INTEGERS)
    shape = random.shape()
    axes = random.axes(len(shape))
    x = random.full(dtype, shape)
    with np.errstate(all="ignore"):
        expected = INTEGER_FUNCTIONS[function](x, tuple(axes))
    result = computed("REDUCE", x, function=ReduceFunction[function], axes=axes, device=device)
    assert_within("REDUCE", result, expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("direction", AxisDirection, ids=lambda direction: direction.name.lower())
@pytest.mark.parametrize("operator", SEARCHES)
@given(random=seeds)
@examples
def test_searches_count_over_the_axes_as_numpy_does(
    operator: str, direction: AxisDirection, device: str, random: Random
) -> None:
    dtype = random.of_type(FLOATS + INTEGERS)
    shape = random.shape()
    axes = random.axes(len(shape))
    x = random.values(dtype, shape, -4, 4)
    x = np.round(x)  # ties
    result = computed(operator, x, axes=axes, axis_direction=direction, device=device)
    assert result.dtype.kind in "iu"
    assert_within(operator, result, _searched(SEARCHES[operator], x, axes, direction))


def _searched(search: Callable[..., Any], x: Array, axes: list[int], direction: AxisDirection) -> Array:
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    rows = x.transpose(kept + axes).reshape([x.shape[axis] for axis in kept] + [-1])
    if direction is AxisDirection.DECREASING:
        found = rows.shape[-1] - 1 - search(rows[..., ::-1], axis=-1)
    else:
        found = search(rows, axis=-1)
    result: Array = np.asarray(found).reshape(
        [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    )
    return result


ONNX = {
    "AVERAGE": "ReduceMean",
    "L1": "ReduceL1",
    "L2": "ReduceL2",
    "LOG_SUM": "ReduceLogSum",
    "LOG_SUM_EXP": "ReduceLogSumExp",
    "MAX": "ReduceMax",
    "MIN": "ReduceMin",
    "MULTIPLY": "ReduceProd",
    "SUM": "ReduceSum",
    "SUM_SQUARE": "ReduceSumSquare",
}


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("function", ONNX)
@given(random=seeds)
@examples
def test_reductions_agree_with_onnx(function: str, peer: str, random: Random) -> None:
    shape = random.shape()
    axes = random.axes(len(shape))
    x = random.values(np.dtype("float32"), shape, 0.1, 2.0, special=False)
    expected = onnx_result(peer, ONNX[function], [x, np.array(axes, np.int64)], "float32")
    result = computed("REDUCE", x, function=ReduceFunction[function], axes=axes, device="reference")
    assert_within("REDUCE", result, expected, peer=True)


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("operator", ["ArgMin", "ArgMax"])
@given(random=seeds)
@examples
def test_searches_agree_with_onnx(operator: str, last: bool, peer: str, random: Random) -> None:
    shape = random.shape()
    axis = int(random.generator.integers(len(shape)))
    x = np.round(random.values(np.dtype("float32"), shape, -3, 3, special=False))
    expected = onnx_result(peer, operator, [x], "int64", axis=axis, keepdims=1, select_last_index=int(last))
    direction = AxisDirection.DECREASING if last else AxisDirection.INCREASING
    result = computed(operator.upper(), x, axes=[axis], axis_direction=direction, device="reference")
    np.testing.assert_array_equal(result, expected)
