"""Products and convolutions of quantized integers against ONNX."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import opendml as dml
from opendml.runtime.memory.host_array import Array

from .onnx_peer import PEERS, onnx_result
from .peer import Random, examples, seeds

every_peer = pytest.mark.parametrize("peer", PEERS)


def _weights(random: Random, *sizes: int) -> Array:
    """Half of all integers: with others ONNX Runtime's sums of pairs saturate on processors without VNNI."""
    return random.generator.integers(-64, 64, sizes).astype(np.int8)


class _Matrices:
    """Random matrices, with zero points."""

    def __init__(self, random: Random) -> None:
        m, n, k = (int(random.generator.choice(sizes)) for sizes in ((3, 28), (17, 60), (33, 1030)))
        self.a, self.b = random.full(np.dtype(np.uint8), (m, k)), _weights(random, k, n)
        self.a_zero, self.b_zero = random.full(np.dtype(np.uint8), (1, 1)), np.zeros((1, 1), np.int8)


@every_peer
@given(random=seeds)
@examples
def test_sums_of_integer_products_are_those_of_onnx(peer: str, random: Random) -> None:
    of = _Matrices(random)
    given_ = [of.a, of.b, of.a_zero.reshape(()), of.b_zero.reshape(())]
    expected = onnx_result(peer, "MatMulInteger", given_, "int32")
    np.testing.assert_array_equal(
        dml.matrix_multiply_integer(of.a, of.a_zero, of.b, of.b_zero, device="cpu"), expected
    )


@every_peer
@given(random=seeds)
@examples
def test_requantized_products_are_those_of_onnx(peer: str, random: Random) -> None:
    of = _Matrices(random)
    # Powers of two: all multiply alike, in any order.
    scales = [np.full((1, 1), value, np.float32) for value in (0.25, 0.125, 64.0)]
    zero = np.full((1, 1), 100, np.uint8)
    inputs = [of.a, scales[0], of.a_zero, of.b, scales[1], of.b_zero, scales[2], zero]
    scalars = [each if each.size > 1 else each.reshape(()) for each in inputs]
    expected = onnx_result(peer, "QLinearMatMul", scalars, "uint8")
    result = dml.quantized_linear_matrix_multiply(*inputs, device="cpu")
    np.testing.assert_array_equal(result, expected)


class _Layer:
    """A random convolution, padded."""

    def __init__(self, random: Random) -> None:
        channels, filters, size, self.stride = (
            int(random.generator.choice(sizes)) for sizes in ((3, 8), (5, 28), (9, 14), (1, 2))
        )
        self.x = random.full(np.dtype(np.uint8), (1, channels, size, size + 1))
        self.filter = _weights(random, filters, channels, 3, 3)
        self.x_zero = random.full(np.dtype(np.uint8), (1, 1, 1, 1))
        self.filter_zero = np.zeros((1, 1, 1, 1), np.int8)

    @property
    def of_onnx(self) -> dict[str, list[int]]:
        """ONNX's attributes."""
        return {"strides": [self.stride] * 2, "pads": [1] * 4}

    @property
    def of_directml(self) -> dict[str, list[int]]:
        """DirectML's."""
        ones = [1, 1]
        return {"strides": [self.stride] * 2, "dilations": ones, "start_padding": ones, "end_padding": ones}


@every_peer
@given(random=seeds)
@examples
def test_integer_convolutions_are_those_of_onnx(peer: str, random: Random) -> None:
    of = _Layer(random)
    given_ = [of.x, of.filter, of.x_zero.reshape(()), of.filter_zero.reshape(())]
    expected = onnx_result(peer, "ConvInteger", given_, "int32", **of.of_onnx)
    result = dml.convolution_integer(
        of.x, of.x_zero, of.filter, of.filter_zero, group_count=1, device="cpu", **of.of_directml
    )
    np.testing.assert_array_equal(result, expected)


@every_peer
@given(random=seeds)
@examples
def test_requantized_convolutions_are_those_of_onnx(peer: str, random: Random) -> None:
    of = _Layer(random)
    ones = (1, 1, 1, 1)
    scales = [np.full(ones, value, np.float32) for value in (0.25, 0.125, 64.0)]
    zero = np.full(ones, 100, np.uint8)
    bias = random.generator.integers(-5000, 5000, (1, len(of.filter), 1, 1)).astype(np.int32)
    inputs = [of.x, scales[0], of.x_zero, of.filter, scales[1], of.filter_zero, scales[2], zero]
    scalars = [each if each.size > 1 else each.reshape(()) for each in inputs]
    expected = onnx_result(peer, "QLinearConv", [*scalars, bias.ravel()], "uint8", **of.of_onnx)
    result = dml.quantized_linear_convolution(
        *inputs[:6], bias, *inputs[6:], group_count=1, device="cpu", **of.of_directml
    )
    np.testing.assert_array_equal(result, expected)
