"""Conv, ConvTranspose and their integer forms in ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from tests.onnx.models import Array, assert_as_onnxruntime, feed, numbers, one_node


def _check(operator: str, inputs: list[Array | None], atol: float = 1e-4, **options: Any) -> None:
    model = one_node(operator, inputs, opset=21, **options)
    assert_as_onnxruntime(model, feed(inputs), 1e-4, atol)


@pytest.mark.parametrize(
    ("spatial", "kernel", "attributes"),
    [
        ([9], [3], {}),
        ([9], [3], {"pads": [2, 1], "strides": [2]}),
        ([7, 8], [3, 2], {"pads": [1, 0, 2, 1], "strides": [2, 3]}),
        ([7, 8], [3, 2], {"dilations": [2, 3]}),
        ([7, 8], [3, 4], {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        ([7, 8], [3, 4], {"auto_pad": "SAME_LOWER", "strides": [3, 2]}),
        ([7, 8], [3, 4], {"auto_pad": "VALID", "kernel_shape": [3, 4]}),
        ([4, 5, 6], [2, 3, 2], {"pads": [1, 1, 0, 0, 1, 1], "strides": [1, 2, 1]}),
    ],
)
@pytest.mark.parametrize("group", [1, 2])
def test_conv_slides_as_its_attributes_say(
    spatial: list[int], kernel: list[int], attributes: dict[str, Any], group: int
) -> None:
    inputs: list[Array | None] = [numbers([2, 4, *spatial]), numbers([6, 4 // group, *kernel]), numbers([6])]
    _check("Conv", inputs, group=group, **attributes)


@pytest.mark.parametrize(
    ("spatial", "kernel", "attributes"),
    [
        ([5], [3], {"strides": [2]}),
        ([5, 4], [3, 2], {"strides": [2, 3], "pads": [1, 0, 0, 1]}),
        ([5, 4], [3, 2], {"strides": [2, 3], "pads": [1, 0, 1, 1], "output_padding": [1, 2]}),
        ([5, 4], [3, 2], {"strides": [3, 3], "output_padding": [2, 1]}),
        ([5, 4], [3, 3], {"dilations": [2, 2]}),
        ([5, 4], [3, 3], {"strides": [2, 2], "output_shape": [10, 8]}),
        ([5, 4], [3, 3], {"strides": [2, 2], "output_shape": [10, 8], "auto_pad": "SAME_UPPER"}),
        ([5, 4], [3, 3], {"strides": [2, 2], "output_shape": [11, 10], "output_padding": [0, 1]}),
        ([5, 4], [3, 3], {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ([5, 4], [3, 3], {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
        ([3, 3, 2], [2, 2, 3], {"strides": [2, 1, 2]}),
    ],
)
@pytest.mark.parametrize("group", [1, 2])
def test_conv_transpose_sizes_its_output(
    spatial: list[int], kernel: list[int], attributes: dict[str, Any], group: int
) -> None:
    inputs: list[Array | None] = [numbers([2, 4, *spatial]), numbers([4, 3, *kernel]), numbers([3 * group])]
    _check("ConvTranspose", inputs, group=group, **attributes)


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_conv_integer_pads_with_the_zero_point(zeros: int) -> None:
    inputs: list[Array | None] = [numbers([1, 2, 5, 6], np.uint8), numbers([3, 2, 3, 3], np.uint8)]
    inputs += [np.array(7, np.uint8), np.array(3, np.uint8)][:zeros]
    _check("ConvInteger", inputs, pads=[1, 1, 1, 1])


@pytest.mark.parametrize("sizes", [[1, 4, 6], [2, 4, 6, 5]])
@pytest.mark.parametrize("per_channel", [False, True])
def test_qlinear_conv_takes_scales_of_channels(sizes: list[int], per_channel: bool) -> None:
    kernel, lines = [4, 2, *[3] * (len(sizes) - 2)], [4] if per_channel else []
    inputs: list[Array | None] = [
        numbers(sizes, np.uint8),
        np.array(0.02, np.float32),
        np.array(120, np.uint8),
        numbers(kernel, np.int8),
        np.asarray(np.abs(numbers(lines)) * np.float32(0.01) + np.float32(0.01)),
        np.zeros(lines, np.int8),
        np.array(0.3, np.float32),
        np.array(100, np.uint8),
        numbers([4], np.int32) * 50,
    ]
    _check("QLinearConv", inputs, atol=1, group=2, pads=[1] * 2 * (len(sizes) - 2))
