"""Products, convolutions and averages of quantized integers, and dynamic scales, against ONNX."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import opendml as dml
from opendml.runtime.memory.host_array import Array
from tests.tolerances import assert_within

from .onnx_peer import onnx_result, onnx_results
from .peer import DEVICES, Random, examples, seeds

every_device = pytest.mark.parametrize("device", DEVICES)
BYTES = ("uint8", "int8")


def _byte(random: Random, *shape: int) -> Array:
    return random.full(np.dtype("uint8"), shape)


def _zero_point(random: Random) -> Array:
    return _byte(random, 1).reshape(())


def _scale(random: Random) -> Array:
    """A power of two: results before they are rounded are exact on both sides."""
    return np.array(2.0 ** random.generator.integers(-6, 0), np.float32)


def _spread(value: Array, rank: int) -> Array:
    return value.reshape((1,) * rank)


def _extents(random: Random) -> tuple[int, int, int]:
    """Sizes of two matrices, around those of tiles; half of them with long sums."""
    m, n = (int(each) for each in random.generator.integers(1, 70, 2))
    return m, int(random.generator.integers(1, random.generator.choice((40, 1100)))), n


@every_device
@given(random=seeds)
@examples
def test_integer_products_are_those_of_onnx(device: str, random: Random) -> None:
    m, k, n = _extents(random)
    a, b, zeros = _byte(random, m, k), _byte(random, k, n), [_zero_point(random) for _ in range(2)]
    expected = onnx_result("runtime", "MatMulInteger", [a, b, *zeros], "int32")
    shaped = [a[None], _spread(zeros[0], 3), b[None], _spread(zeros[1], 3)]
    np.testing.assert_array_equal(dml.matrix_multiply_integer(*shaped, device=device)[0], expected)


@every_device
@given(random=seeds)
@examples
def test_scaled_products_are_those_of_onnx_runtime(device: str, random: Random) -> None:
    m, k, n = _extents(random)
    dtype = random.of_type(BYTES)
    a, b = (random.full(dtype, shape) for shape in ((m, k), (k, n)))
    columns = n if random.generator.integers(2) else 1
    zeros = [random.full(dtype, (count,)) for count in (1, columns)]
    # Powers of two: ONNX Runtime's products are exact but for the sum's rounding to float32.
    scales = [2.0 ** random.generator.integers(-6, 0, count) for count in (1, columns)]
    scales = [each.astype(np.float32) for each in scales]
    bias = random.values(np.dtype("float32"), (n,), special=False)
    operands = [a, b, *scales, *zeros, bias]
    expected = onnx_result("runtime", "MatMulIntegerToFloat", operands, "float32", domain="com.microsoft")
    row, column = ([each[0].reshape(1, 1, 1), each[1].reshape(1, 1, -1)] for each in (scales, zeros))
    result = dml.matrix_multiply_integer_to_float(
        a[None],
        row[0],
        column[0],
        b[None],
        row[1],
        column[1],
        np.broadcast_to(bias, (1, m, n)),
        device=device,
    )
    assert_within("MATRIX_MULTIPLY_INTEGER_TO_FLOAT", result[0], expected, peer=True)


@every_device
@given(random=seeds)
@examples
def test_requantized_products_are_those_of_onnx(device: str, random: Random) -> None:
    m, k, n = _extents(random)
    matrices = [_byte(random, m, k), _byte(random, k, n)]
    scales, zeros = [_scale(random) for _ in range(3)], [_zero_point(random) for _ in range(3)]
    scales[2] = np.array(float(2.0 ** random.generator.integers(0, 9)), np.float32)
    quantizations = [[scale, zero] for scale, zero in zip(scales, zeros, strict=True)]
    operands = [matrices[0], *quantizations[0], matrices[1], *quantizations[1], *quantizations[2]]
    expected = onnx_result("runtime", "QLinearMatMul", operands, "uint8")
    shaped = [each[None] if each.ndim == 2 else _spread(each, 3) for each in operands]
    result = dml.quantized_linear_matrix_multiply(*shaped, device=device)
    np.testing.assert_array_equal(result[0], expected)


class _Image:
    """A random convolution."""

    def __init__(self, random: Random) -> None:
        self.groups = int(random.generator.integers(1, 3))
        channels, filters = (self.groups * int(each) for each in random.generator.integers(1, 4, 2))
        extents = [int(each) for each in random.generator.integers(1, 4, 2)]
        self.strides = [int(each) for each in random.generator.integers(1, 3, 2)]
        self.dilations = [int(each) for each in random.generator.integers(1, 3, 2)]
        self.padding = [[int(each) for each in random.generator.integers(0, 2, 2)] for _ in range(2)]
        self.x = _byte(random, 2, channels, 7, 9)
        self.filter = _byte(random, filters, channels // self.groups, *extents)
        self.zeros = [_zero_point(random) for _ in range(3)]

    @property
    def of_onnx(self) -> dict[str, object]:
        return {
            "strides": self.strides,
            "dilations": self.dilations,
            "pads": self.padding[0] + self.padding[1],
            "group": self.groups,
        }

    @property
    def own(self) -> dict[str, object]:
        start, end = self.padding
        both = {"strides": self.strides, "dilations": self.dilations, "group_count": self.groups}
        return both | {"start_padding": start, "end_padding": end}


@every_device
@given(random=seeds)
@examples
def test_integer_convolutions_are_those_of_onnx(device: str, random: Random) -> None:
    image = _Image(random)
    operands = [image.x, image.filter, *image.zeros[:2]]
    expected = onnx_result("runtime", "ConvInteger", operands, "int32", **image.of_onnx)
    zeros = [_spread(each, 4) for each in image.zeros]
    result = dml.convolution_integer(image.x, zeros[0], image.filter, zeros[1], **image.own, device=device)  # type: ignore[arg-type]
    np.testing.assert_array_equal(result, expected)


@every_device
@given(random=seeds)
@examples
def test_requantized_convolutions_are_those_of_onnx(device: str, random: Random) -> None:
    image = _Image(random)
    scales = [_scale(random), _scale(random), np.array(4.0, np.float32)]
    bias = random.generator.integers(-999, 999, image.filter.shape[0], np.int32)
    pairs = [[scale, zero] for scale, zero in zip(scales, image.zeros, strict=True)]
    operands = [image.x, *pairs[0], image.filter, *pairs[1], *pairs[2], bias]
    expected = onnx_result("runtime", "QLinearConv", operands, "uint8", **image.of_onnx)
    spread = [[_spread(each, 4) for each in pair] for pair in pairs]
    result = dml.quantized_linear_convolution(
        image.x,
        *spread[0],
        image.filter,
        *spread[1],
        bias.reshape(1, -1, 1, 1),
        *spread[2],
        **image.own,  # type: ignore[arg-type]
        device=device,
    )
    np.testing.assert_array_equal(result, expected)


@every_device
@given(random=seeds)
@examples
def test_quantized_averages_are_those_of_onnx_but_for_halves(device: str, random: Random) -> None:
    x, scales = _byte(random, 2, 3, 6, 8), [np.array(each, np.float32) for each in (0.5, 0.75)]
    zeros = [_zero_point(random) for _ in range(2)]
    operands = [x, scales[0], zeros[0], scales[1], zeros[1]]
    expected = onnx_result(
        "runtime",
        "QLinearAveragePool",
        operands,
        "uint8",
        domain="com.microsoft",
        kernel_shape=[2, 3],
        strides=[2, 1],
    )
    shaped = [x, *(_spread(each, 4) for each in operands[1:])]
    result = dml.quantized_linear_average_pooling(
        *shaped, window_size=[2, 3], strides=[2, 1], include_padding=False, device=device
    )
    assert np.abs(result.astype(int) - expected.astype(int)).max() <= 1
    assert (result == expected).mean() > 0.9


@every_device
@given(random=seeds)
@examples
def test_dynamic_scales_are_those_of_onnx(device: str, random: Random) -> None:
    x = random.values(np.dtype("float32"), random.shape(), special=False)
    types = ["uint8", "float32", "uint8"]
    expected = onnx_results("runtime", "DynamicQuantizeLinear", [x], types)
    found = dml.dynamic_quantize_linear(x, output_type=dml.UINT8, device=device)
    assert_within("DYNAMIC_QUANTIZE_LINEAR", found[1].reshape(()), expected[1], peer=True)
    assert found[2].item() == expected[2].item()
    assert np.abs(found[0].astype(int) - expected[0].astype(int)).max() <= 1
    assert (found[0] == expected[0]).mean() > 0.9
