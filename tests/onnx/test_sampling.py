"""GridSample, AffineGrid and DeformConv in ONNX models."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")
from tests.onnx.models import Array, assert_same, computed, evaluated, feed, numbers, one_node
from tests.pairwise import pairwise


@pairwise(mode=["nearest", "linear", "cubic"], padding=["zeros", "border", "reflection"], corners=[0, 1])
def test_grids_reach_behind_the_borders(mode: str, padding: str, corners: int) -> None:
    inputs: list[Array | None] = [numbers([2, 3, 4, 5]), numbers([2, 3, 4, 2])]
    options = {"mode": mode, "padding_mode": padding, "align_corners": corners}
    model = one_node("GridSample", inputs, opset=20, **options)
    assert_same(computed(model, feed(inputs)), evaluated(model, feed(inputs)), 1e-3, 1e-4)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_grids_sample_volumes(mode: str) -> None:
    inputs: list[Array | None] = [numbers([1, 2, 3, 4, 5]), numbers([1, 2, 3, 2, 3])]
    model = one_node("GridSample", inputs, opset=20, mode=mode)
    assert_same(computed(model, feed(inputs)), evaluated(model, feed(inputs)), 1e-3, 1e-4)


@pytest.mark.parametrize("sizes", [[2, 3, 4, 5], [2, 3, 2, 4, 5]])
@pytest.mark.parametrize("corners", [0, 1])
def test_affine_grids_cover_the_output(sizes: list[int], corners: int) -> None:
    rank = len(sizes) - 2
    inputs: list[Array | None] = [numbers([2, rank, rank + 1]), np.array(sizes, np.int64)]
    model = one_node("AffineGrid", inputs, opset=20, known=[1], align_corners=corners)
    given = feed(inputs, [1])
    assert_same(computed(model, given), evaluated(model, given))


@pytest.mark.parametrize(("group", "offset_group"), [(1, 1), (2, 1), (1, 2), (2, 4)])
@pytest.mark.parametrize("masked", [False, True])
def test_deform_conv_moves_the_elements_of_windows(group: int, offset_group: int, masked: bool) -> None:
    inputs: list[Array | None] = [
        numbers([1, 4, 5, 6]),
        numbers([2, 4 // group, 2, 3]),
        numbers([1, offset_group * 12, 3, 4]),
        numbers([2]),
        *([numbers([1, offset_group * 6, 3, 4])] if masked else []),
    ]
    options = {"group": group, "offset_group": offset_group, "pads": [1, 1, 0, 1], "strides": [2, 1]}
    model = one_node("DeformConv", inputs, opset=19, dilations=[1, 2], kernel_shape=[2, 3], **options)
    assert_same(computed(model, feed(inputs)), evaluated(model, feed(inputs)), 1e-3, 1e-3)
