"""Quantization to 8 and 4 bits and back against NumPy and ONNX."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given

import opendml as dml
from tests.tolerances import assert_within

from .onnx_peer import PEERS, onnx_result, onnx_type
from .peer import DEVICES, FLOATS, Random, computed, exact, examples, seeds

BYTES = ("uint8", "int8")
HALVES = (ml_dtypes.uint4, ml_dtypes.int4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("target", BYTES)
@given(random=seeds)
@examples
def test_quantization_saturates_and_rounds_halves_to_even(target: str, device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type(FLOATS)
    # A quarter as scale: quotients are exact, many of them halves.
    x = (random.generator.integers(-2000, 2000, shape) / 8).astype(dtype)
    scale = np.full(shape, 0.25, dtype)
    zero_point = random.full(np.dtype(target), shape)
    limits = np.iinfo(target)
    rounded = np.rint(exact(x) / 0.25) + exact(zero_point)
    expected = rounded.clip(limits.min, limits.max).astype(target)
    result = computed("ELEMENT_WISE_QUANTIZE_LINEAR", x, scale, zero_point, device=device)
    assert result.dtype == np.dtype(target)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("device", DEVICES)
@given(random=seeds)
@examples
def test_dequantization_agrees_with_numpy(device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type(FLOATS)
    source = random.of_type((*BYTES, "int16", "uint16"))
    x, zero_point = (random.values(source, shape, -100, 100) for _ in range(2))
    scale = random.values(dtype, shape, 0.01, 2, special=False)
    expected = (exact(x) - exact(zero_point)) * exact(scale)
    result = computed("ELEMENT_WISE_DEQUANTIZE_LINEAR", x, scale, zero_point, device=device)
    assert result.dtype == dtype
    assert_within("ELEMENT_WISE_DEQUANTIZE_LINEAR", result, expected)


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("target", BYTES)
@given(random=seeds)
@examples
def test_both_directions_agree_with_onnx(target: str, peer: str, random: Random) -> None:
    shape = random.shape()
    x = random.values(np.dtype("float32"), shape, -50, 50, special=False)
    scale = np.array(0.37, np.float32)
    zero_point = random.full(np.dtype(target), (1,)).reshape(())
    expected = onnx_result(peer, "QuantizeLinear", [x, scale, zero_point], target)
    spread = [np.broadcast_to(each, shape) for each in (scale, zero_point)]
    result = computed("ELEMENT_WISE_QUANTIZE_LINEAR", x, *spread, device="reference")
    np.testing.assert_array_equal(result, expected)
    expected = onnx_result(peer, "DequantizeLinear", [result, scale, zero_point], "float32")
    result = computed("ELEMENT_WISE_DEQUANTIZE_LINEAR", result, *spread, device="reference")
    assert_within("ELEMENT_WISE_DEQUANTIZE_LINEAR", result, expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("target", BYTES)
@given(random=seeds)
@examples
def test_quantized_addition_is_that_of_the_numbers_meant(target: str, device: str, random: Random) -> None:
    shape = random.shape()
    ones = (1,) * len(shape)
    a, b = (random.full(random.of_type(BYTES), shape) for _ in range(2))
    zeros = [random.full(dtype, ones) for dtype in (a.dtype, b.dtype, np.dtype(target))]
    # Powers of two: the sum is exact before it is rounded.
    scales = [np.full(ones, value, np.float32) for value in (0.25, 0.5, 1.0)]
    meant = (exact(a) - exact(zeros[0])) * 0.25 + (exact(b) - exact(zeros[1])) * 0.5
    limits = np.iinfo(target)
    expected = (np.rint(meant) + exact(zeros[2])).clip(limits.min, limits.max).astype(target)
    tensors = (a, scales[0], zeros[0], b, scales[1], zeros[1], scales[2], zeros[2])
    result = computed("ELEMENT_WISE_QUANTIZED_LINEAR_ADD", *tensors, device=device)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("with_zero_points", [False, True])
@pytest.mark.parametrize("target", [*BYTES, *HALVES], ids=lambda target: np.dtype(target).name)
@given(random=seeds)
@examples
def test_blocks_are_quantized_and_dequantized_as_by_onnx(
    target: str | type, with_zero_points: bool, device: str, random: Random
) -> None:
    kind = np.dtype(target)
    blocks = random.shape(rank=3, most=40)
    axis, size = int(random.generator.integers(3)), int(random.generator.integers(1, 6))
    x_shape = tuple(extent * size if place == axis else extent for place, extent in enumerate(blocks))
    # Powers of two: quotients are exact, many of them halves.
    x = (random.generator.integers(-400, 400, x_shape) / 8).astype(np.float32)
    scale = (2.0 ** random.generator.integers(-2, 2, blocks)).astype(np.float32)
    limits = ml_dtypes.iinfo(kind)
    zero_point = random.generator.integers(limits.min, limits.max, blocks, endpoint=True).astype(kind)
    given_ = [scale, zero_point] if with_zero_points else [scale]
    how = {"axis": axis, "block_size": size}
    # Without a zero point the type of the result is an attribute.
    more = {} if with_zero_points else {"output_dtype": onnx_type(kind)}
    quantized = onnx_result("reference", "QuantizeLinear", [x, *given_], kind.name, **how, **more)
    meaning = "SCALE_ZERO_POINT" if with_zero_points else "SCALE"
    result = dml.quantize(x, given_, quantization_type=meaning, output_type=kind, device=device)
    assert result.dtype == kind
    np.testing.assert_array_equal(result.astype(np.int32), quantized.astype(np.int32))
    expected = onnx_result("reference", "DequantizeLinear", [result, *given_], "float32", **how)
    dequantized = dml.dequantize(result, given_, quantization_type=meaning, device=device)
    np.testing.assert_array_equal(dequantized, expected)
