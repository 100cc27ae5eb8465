"""DFT, STFT and Det in ONNX models."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")
from tests.onnx.models import Array, assert_same, computed, evaluated, feed, numbers, one_node


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -2])
@pytest.mark.parametrize("length", [None, 5, 9])
@pytest.mark.parametrize("inverse", [0, 1])
def test_dft_cuts_or_pads_to_its_length(parts: int, axis: int, length: int | None, inverse: int) -> None:
    counts = None if length is None else np.array(length, np.int64)
    inputs: list[Array | None] = [numbers([3, 6, 7, parts]), counts, np.array(axis, np.int64)]
    known = [number for number in (1, 2) if inputs[number] is not None]
    model = one_node("DFT", inputs, known=known, inverse=inverse)
    assert_same(computed(model, feed(inputs, [1, 2])), evaluated(model, feed(inputs, [1, 2])))


@pytest.mark.parametrize("opset", [17, 20])
def test_dft_of_real_numbers_gives_one_side(opset: int) -> None:
    inputs: list[Array | None] = [numbers([2, 6, 1])]
    model = one_node("DFT", inputs, opset=opset, onesided=1, **({"axis": 1} if opset == 17 else {}))
    assert_same(computed(model, feed(inputs)), evaluated(model, feed(inputs)))


def test_inverse_dft_of_one_side_gives_real_numbers() -> None:
    inputs: list[Array | None] = [numbers([2, 5, 2]), np.array(8, np.int64)]
    model = one_node("DFT", inputs, known=[1], onesided=1, inverse=1)
    assert_same(computed(model, feed(inputs, [1])), evaluated(model, feed(inputs, [1])))


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("windowed", [False, True])
def test_stft_transforms_frames(parts: int, windowed: bool) -> None:
    window = np.abs(numbers([8])) if windowed else None
    inputs: list[Array | None] = [
        numbers([2, 29, parts]),
        np.array(3, np.int64),
        window,
        np.array(8, np.int64),
    ]
    model = one_node("STFT", inputs, known=[1, 3], onesided=int(parts == 1))
    assert_same(computed(model, feed(inputs, [1, 3])), evaluated(model, feed(inputs, [1, 3])))


@pytest.mark.parametrize("sizes", [[1, 1], [2, 2], [3, 3], [4, 3, 3]])
def test_determinants_of_small_matrices(sizes: list[int]) -> None:
    inputs: list[Array | None] = [numbers(sizes)]
    model = one_node("Det", inputs)
    assert_same(computed(model, feed(inputs)), [np.asarray(np.linalg.det(numbers(sizes)))])
