"""Sizes and types of tensors in ONNX models."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("onnx")
from tests.onnx.models import Array, assert_same, computed, evaluated, feed, one_node

X = np.arange(24, dtype=np.float32).reshape(2, 1, 3, 4)


def _check(operator: str, inputs: list[Array | None], **options: Any) -> None:
    model = one_node(operator, inputs, **options)
    given = feed(inputs, options.get("known", ()))
    assert_same(computed(model, given), evaluated(model, given))


def _list(*values: int) -> Array:
    return np.array(values, np.int64)


@pytest.mark.parametrize("known", [(), (1,)])
@pytest.mark.parametrize("sizes", [[-1], [0, 12], [6, -1], [0, 0, -1], [4, 3, 2, 1, 1]])
def test_reshape_keeps_and_finds_sizes(sizes: list[int], known: tuple[int, ...]) -> None:
    _check("Reshape", [X, _list(*sizes)], known=known)


def test_reshape_makes_a_number() -> None:
    _check("Reshape", [np.ones((1, 1), np.float32), np.zeros(0, np.int64)], known=(1,))


@pytest.mark.parametrize("axis", [-4, -1, 0, 1, 2, 4])
def test_flatten_counts_axes_from_either_end(axis: int) -> None:
    _check("Flatten", [X], axis=axis)


@pytest.mark.parametrize("known", [(), (0,)])
@pytest.mark.parametrize(
    ("start", "end", "wanted"), [(-9, -9, []), (-9, -5, []), (-9, -3, [2]), (1, 9, [1, 3, 4]), (3, 1, [])]
)
def test_ends_of_a_shape_lie_within_it(
    start: int, end: int, wanted: list[int], known: tuple[int, ...]
) -> None:
    model = one_node("Shape", [X], opset=19, known=known, start=start, end=end)
    assert_same(computed(model, feed([X], known)), [_list(*wanted)])


def test_flatten_makes_a_matrix_of_a_number() -> None:
    _check("Flatten", [np.array(3, np.float32)], axis=0)


@pytest.mark.parametrize("axes", [None, _list(1), _list(-3)])
def test_squeeze_takes_axes_from_an_input(axes: Array | None) -> None:
    _check("Squeeze", [X, axes] if axes is not None else [X])


@pytest.mark.parametrize(("operator", "axes"), [("Squeeze", [1]), ("Unsqueeze", [0, -1])])
def test_axes_of_old_models_are_attributes(operator: str, axes: list[int]) -> None:
    _check(operator, [X], opset=11, axes=axes)


@pytest.mark.parametrize("axes", [_list(0), _list(-1, 1), _list(3, 0)])
def test_unsqueeze_counts_axes_in_the_output(axes: Array) -> None:
    _check("Unsqueeze", [X, axes])


@pytest.mark.parametrize("sizes", [[5, 3, 4], [2, 2, 3, 4], [1], [2, 2, 1, 3, 1], []])
def test_expand_repeats_either_way(sizes: list[int]) -> None:
    _check("Expand", [X, _list(*sizes)])


def test_expand_of_a_number() -> None:
    _check("Expand", [np.array(2, np.float64), _list(2, 3)])


@pytest.mark.parametrize("opset", [7, 10, 13])
def test_dropout_does_nothing_in_inference(opset: int) -> None:
    result, mask = computed(one_node("Dropout", [X], outputs=2, opset=opset), feed([X]))
    assert_same([result], [X])
    assert mask.all()
    assert mask.dtype == (np.float32 if opset == 7 else np.bool_)


@pytest.mark.parametrize(
    "type", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.float64, np.complex64, np.bool_]
)
def test_elements_of_any_type_are_moved(type: Any) -> None:
    x = np.arange(6).reshape(2, 3).astype(type)
    result = computed(one_node("Transpose", [x]), feed([x]))[0]
    assert result.dtype == x.dtype
    assert result.tobytes() == x.T.tobytes()


@pytest.mark.parametrize("given", [np.bool_, np.int8, np.uint64, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("wanted", [np.bool_, np.uint8, np.int64, np.float16, np.float64])
def test_cast_changes_types(given: Any, wanted: Any) -> None:
    if (given, wanted) == (np.float64, np.bool_):
        pytest.skip("on the evaluator")
    x = np.array([0, 0.5, 1, 2.75, 100]).astype(given)
    import onnx

    to = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(wanted))
    assert_same(computed(one_node("Cast", [x], to=to), feed([x])), [x.astype(wanted)])
    inputs: list[Array | None] = [x, np.zeros(1, wanted)]
    assert_same(computed(one_node("CastLike", inputs), feed(inputs)), [x.astype(wanted)])
