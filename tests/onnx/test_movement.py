"""Moved elements in ONNX models: transposed, repeated, joined, cut, padded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import opendml as dml
from opendml import onnx as dml_onnx
from tests.onnx.models import Array, assert_same, computed, evaluated, feed, one_node, run_by_onnxruntime

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def _check(operator: str, inputs: list[Array | None], **options: Any) -> None:
    model = one_node(operator, inputs, **options)
    given = feed(inputs, options.get("known", ()))
    assert_same(computed(model, given), evaluated(model, given))


def _list(*values: int) -> Array:
    return np.array(values, np.int64)


@pytest.mark.parametrize("perm", [None, [0, 1, 2], [2, 0, 1], [1, 2, 0]])
def test_transpose(perm: list[int] | None) -> None:
    _check("Transpose", [X], **({} if perm is None else {"perm": perm}))


@pytest.mark.parametrize("repeats", [[1, 1, 1], [2, 1, 3], [1, 2, 1], [2, 3, 2], [0, 1, 1]])
@pytest.mark.parametrize("type", [np.float32, np.float64, np.bool_])
def test_tile(repeats: list[int], type: Any) -> None:
    _check("Tile", [X.astype(type), _list(*repeats)])


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_concat(axis: int) -> None:
    _check("Concat", [X, X + 1, X * 2], axis=axis)


def test_concat_leaves_out_what_has_no_elements() -> None:
    _check("Concat", [X, np.zeros((2, 0, 4), np.float32), X], axis=1)
    _check("Concat", [np.zeros((2, 0, 4), np.float32), X], axis=1)


@pytest.mark.parametrize(
    ("parts", "axis", "outputs"), [([1, 3], -1, 2), ([0, 4], 2, 2), ([1, 1, 1], 1, 3), (None, 2, 2)]
)
def test_split_by_sizes(parts: list[int] | None, axis: int, outputs: int) -> None:
    if parts is None:
        _check("Split", [X], outputs=outputs, axis=axis, num_outputs=outputs)
    else:
        _check("Split", [X, _list(*parts)], outputs=outputs, axis=axis)


def test_the_last_part_of_a_split_may_be_smaller() -> None:
    _check("Split", [X], outputs=2, axis=1, num_outputs=2)


def test_split_of_old_models_has_attributes() -> None:
    _check("Split", [X], outputs=2, opset=11, axis=1, split=[1, 2])


SLICES = [
    ([0], [2], [1], [1]),
    ([-1], [-100], [2], [-1]),
    ([-1], [-100], [-1], [-2]),
    ([1, 0], [100, 3], [0, 2], [1, 2]),
    ([3], [0], [2], [-1]),
    ([3], [1], [2], [1]),
    ([100], [-100], [1], [-2]),
    ([-100], [2**63 - 1], [1], [2]),
    ([2], [-(2**63)], [1], [-1]),
]


@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), SLICES)
@pytest.mark.parametrize("known", [(), (1, 2, 3, 4)])
def test_slices(
    starts: list[int], ends: list[int], axes: list[int], steps: list[int], known: tuple[int, ...]
) -> None:
    _check("Slice", [X, _list(*starts), _list(*ends), _list(*axes), _list(*steps)], known=known)


def test_a_start_in_front_of_all_elements_is_the_first() -> None:
    inputs: list[Array | None] = [X, _list(-9), _list(-10), _list(2), _list(-1)]
    model = one_node("Slice", inputs, opset=17)
    assert_same(computed(model, feed(inputs)), [X[:, :, :1]])
    assert_same(run_by_onnxruntime(model, feed(inputs)), [X[:, :, :1]])


def test_slices_without_axes_and_steps() -> None:
    _check("Slice", [X, _list(0, 1), _list(1, -1)])
    _check("Slice", [X], opset=9, starts=[0, 1], ends=[1, -1])
    _check("Slice", [X], opset=9, starts=[1], ends=[9], axes=[2])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [[0, 1, 2, 0, 2, 1], [1, 0, 0, 0, 0, 3]])
def test_pad_in_each_mode(mode: str, pads: list[int]) -> None:
    value = [np.array(7, np.float32)] if mode == "constant" else []
    _check("Pad", [X, _list(*pads), *value], mode=mode)


def test_pad_cuts_where_pads_are_negative() -> None:
    x = X.astype(np.int64)
    given: list[Array | None] = [x, _list(0, -1, 1, 0, 0, -2)]
    wanted = np.pad(x[:, 1:, :2], [(0, 0), (0, 0), (1, 0)])
    assert_same(computed(one_node("Pad", given), feed(given)), [wanted])


def test_pad_along_some_axes() -> None:
    _check("Pad", [X, _list(1, 2), np.array(3, np.float32), _list(-1)])
    _check("Pad", [X, _list(1, 2), None, _list(0)])


def test_pad_of_old_models_has_attributes() -> None:
    model = one_node("Pad", [X], opset=9, pads=[0, 1, 0, 0, 0, 2], value=5.0)
    wanted = np.pad(X, [(0, 0), (1, 0), (0, 2)], constant_values=5)
    assert_same(computed(model, feed([X])), [wanted])


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_and_channels(mode: str) -> None:
    x = np.arange(2 * 8 * 2 * 3, dtype=np.float32).reshape(2, 8, 2, 3)
    _check("DepthToSpace", [x], blocksize=2, mode=mode)
    _check("SpaceToDepth", [x.reshape(2, 2, 4, 6)], blocksize=2)


@pytest.mark.parametrize("time", [0, 1])
@pytest.mark.parametrize("tail", [[], [2]])
def test_sequences_are_reversed_up_to_their_lengths(time: int, tail: list[int]) -> None:
    x = np.arange(16 * (2 if tail else 1), dtype=np.float32).reshape(4, 4, *tail)
    _check("ReverseSequence", [x, _list(1, 2, 3, 4)], time_axis=time, batch_axis=1 - time)


@pytest.mark.parametrize("k", [None, -3, -1, 0, 2, 100, -100])
@pytest.mark.parametrize("upper", [0, 1])
def test_trilu(k: int | None, upper: int) -> None:
    _check("Trilu", [X.astype(np.int64), *([] if k is None else [np.array(k)])], upper=upper)


def test_col2im_adds_blocks() -> None:
    x = np.arange(1 * 8 * 4, dtype=np.float32).reshape(1, 8, 4)
    _check("Col2Im", [x, _list(3, 3), _list(2, 2)])
    x = np.arange(1 * 4 * 9, dtype=np.float32).reshape(1, 4, 9)
    _check("Col2Im", [x, _list(4, 4), _list(2, 2)], strides=[2, 2], pads=[1, 1, 1, 1])


def test_pictures_of_old_models_are_cropped() -> None:
    x = np.arange(2 * 5 * 6, dtype=np.float32).reshape(1, 2, 5, 6)
    model = one_node("Crop", [x], opset=7, border=[1, 2, 3, 0])
    assert_same(computed(model, feed([x])), [x[:, :, 2:, 1:3]])
    model = one_node("Crop", [x], opset=7, border=[1, 2, 3, 0], scale=[2, 4])
    assert_same(computed(model, feed([x])), [x[:, :, 2:4, 1:5]])


@pytest.mark.parametrize("parts", [[2**40], [5], [-5], [-1, 7], [3, 3, 3]])
def test_parts_that_are_not_the_whole_are_refused(parts: list[int]) -> None:
    model = one_node("Split", [np.ones(6, np.float32), np.array(parts)], len(parts), known=[1])
    with pytest.raises(dml.Error, match=r"Split, node name: y0\): .*split|Split-.*parts"):
        dml_onnx.load(model)(np.ones(6, np.float32))


@pytest.mark.parametrize("known", [(1, 2, 3, 4), (0, 1, 2, 3, 4)])
def test_slices_backwards_in_front_of_all_elements_begin_at_the_first(known: tuple[int, ...]) -> None:
    inputs: list[Array | None] = [X, _list(-9, 1), _list(-10, 9), _list(2, -2), _list(-2, 1)]
    model = one_node("Slice", inputs, known=known)
    assert_same(computed(model, feed(inputs, known)), [X[:, 1:, :1]])
