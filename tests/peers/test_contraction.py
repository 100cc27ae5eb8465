"""Products, convolutions, attention and quantization against PyTorch, NumPy and ONNX Runtime."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import opendml as dml
from opendml import descs
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import ConvolutionDirection, ConvolutionMode
from tests.running import on_arrays
from tests.tolerances import assert_within

from .onnx_peer import onnx_result, onnx_results, onnx_type
from .peer import FLOATS, Random, computed, exact, on_random


def _torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def _values(random: Random, *sizes: int) -> Array:
    return random.generator.uniform(-1, 1, sizes).astype(np.float32)


class _Convolution:
    """A random convolution: arrays and attributes, which PyTorch allows too."""

    def __init__(self, random: Random, backward: bool) -> None:
        draw = random.generator.integers
        self.rank = int(draw(1, 4))
        self.groups = int(draw(1, 4))
        self.strides, self.dilations, self.padding = (draw(a, b, self.rank).tolist() for a, b in _ATTRIBUTES)
        extents = draw(1, 5, self.rank)
        spans = (extents - 1) * self.dilations + 1
        # Backward, padding takes away outputs; some must be left.
        image = (spans + draw(0, 6, self.rank) + 2 * backward).tolist()
        self.output_padding = [int(draw(0, s)) if backward else 0 for s in self.strides]
        own, other = int(draw(1, 4)), int(draw(1, 4))
        self.x = _values(random, int(draw(1, 3)), self.groups * own, *image)
        first = self.groups * (own if backward else other)
        self.filter = _values(random, first, other if backward else own, *extents.tolist())
        self.bias = _values(random, self.groups * other)
        self.backward = backward

    def by_torch(self, x: Array, filter: Array, bias: Array) -> Array:
        torch = _torch()
        name = f"conv{'_transpose' if self.backward else ''}{self.rank}d"
        tensors = [torch.from_numpy(exact(each)) for each in (x, filter, bias)]
        more = {"output_padding": self.output_padding} if self.backward else {}
        result: Array = getattr(torch.nn.functional, name)(
            *tensors,
            stride=self.strides,
            padding=self.padding,
            dilation=self.dilations,
            groups=self.groups,
            **more,
        ).numpy()
        return result

    def computed(self, output: Array, device: str) -> Array:
        direction = ConvolutionDirection.BACKWARD if self.backward else ConvolutionDirection.FORWARD
        bias = self.bias.reshape(1, -1, *(1,) * self.rank)
        (result,) = on_arrays(
            descs.Convolution,
            [self.x, self.filter, bias],
            [output.astype(np.float32)],
            device,
            mode=ConvolutionMode.CROSS_CORRELATION,
            direction=direction,
            strides=self.strides,
            dilations=self.dilations,
            start_padding=self.padding,
            end_padding=self.padding,
            output_padding=self.output_padding,
            group_count=self.groups,
        )
        return result

    def assert_agrees(self, expected: Array, device: str) -> None:
        magnitude = self.by_torch(*map(np.abs, (self.x, self.filter, self.bias)))
        assert_within("CONVOLUTION", self.computed(expected, device), expected, magnitude)


_ATTRIBUTES = ((1, 4), (1, 3), (0, 2))


@pytest.mark.parametrize("backward", [False, True])
@on_random
def test_convolution_agrees_with_pytorch(backward: bool, device: str, random: Random) -> None:
    case = _Convolution(random, backward)
    case.assert_agrees(case.by_torch(case.x, case.filter, case.bias), device)


def _by_head(torch: Any, x: Array, heads: int) -> Any:
    """(batch, sequence, hidden) as (batch, heads, sequence, size), in float64."""
    batch, length, _ = x.shape
    return torch.from_numpy(exact(x).reshape(batch, length, heads, -1).transpose(0, 2, 1, 3).copy())


@pytest.mark.parametrize("masked", [False, True])
@on_random
def test_attention_is_that_of_pytorch(masked: bool, device: str, random: Random) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    batch, queries, keys, size, shared = (int(each) for each in random.generator.integers(1, 7, 5))
    groups = int(random.generator.integers(1, 4))
    heads = groups * shared

    def tensor(length: int, count: int) -> Array:
        return random.values(np.dtype("float32"), (batch, length, count * size), -2, 2, special=False)

    query, key, value = tensor(queries, heads), tensor(keys, shared), tensor(keys, shared)
    added = random.values(np.dtype("float32"), (batch, heads, queries, keys), -3, 3, special=False)
    scale = 1 / size**0.5
    mask: Array | None = None
    allowed = exact(added)
    if masked:
        mask = random.generator.integers(0, 2, (batch, 1, queries, keys)).astype(np.int32)
        mask[..., 0] = 1
        allowed = np.where(mask, allowed, -np.inf)
    wanted = torch.nn.functional.scaled_dot_product_attention(
        *(_by_head(torch, each, count) for each, count in ((query, heads), (key, shared), (value, shared))),
        attn_mask=torch.from_numpy(allowed),
        scale=float(np.float32(scale)),
        enable_gqa=True,
    )
    result = dml.multihead_attention1(
        query,
        key,
        value,
        mask=None if mask is None else np.broadcast_to(mask, added.shape).copy(),
        relative_position_bias=added,
        scale=scale,
        mask_filter_value=-1e9,
        query_head_count=heads,
        key_value_head_count=shared,
        mask_type="BOOLEAN" if masked else "NONE",
        device=device,
    )
    assert isinstance(result, np.ndarray)
    expected = wanted.numpy().transpose(0, 2, 1, 3).reshape(result.shape)
    assert_within("MULTIHEAD_ATTENTION1", result, expected)


@on_random
def test_attention_with_a_past_is_that_of_onnx_runtime_and_pytorch(device: str, random: Random) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    batch, heads, past = (int(each) for each in random.generator.integers(1, 5, 3))
    # Many queries are computed otherwise. Here ONNX Runtime has as many new keys as queries.
    new, size = int(random.generator.choice([1, 3, 20])), 4 * int(random.generator.integers(1, 4))
    f32 = np.dtype("float32")
    given_ = [random.values(f32, (batch, new, heads * size), -2, 2, special=False) for _ in range(3)]
    pasts = [random.values(f32, (batch, heads, past, size), -2, 2, special=False) for _ in range(2)]
    added = random.values(f32, (batch, heads, new, past + new), -3, 3, special=False)
    bias = random.values(f32, (3 * heads * size,), -1, 1, special=False)
    scale = float(np.float32(1 / size**0.5))
    found = dml.multihead_attention(
        *given_,
        bias=bias,
        relative_position_bias=added,
        past_key=pasts[0],
        past_value=pasts[1],
        scale=scale,
        head_count=heads,
        mask_type="NONE",
        output_present_key=True,
        output_present_value=True,
        device=device,
    )
    expected = onnx_results(
        "runtime",
        "MultiHeadAttention",
        [*given_, bias, None, added, *pasts],
        ["float32"] * 3,
        domain="com.microsoft",
        num_heads=heads,
        scale=scale,
    )
    for result, wanted in zip(found, expected, strict=True):
        assert_within("MULTIHEAD_ATTENTION", result, wanted, peer=True)

    biased = [each + part for each, part in zip(given_, np.split(bias, 3), strict=True)]
    q, k, v = (_by_head(torch, each, heads) for each in biased)
    keys, values = (
        torch.cat([torch.from_numpy(exact(old)), each], 2) for old, each in zip(pasts, (k, v), strict=True)
    )
    wanted = torch.nn.functional.scaled_dot_product_attention(
        q, keys, values, attn_mask=torch.from_numpy(exact(added)), scale=scale
    )
    by_query = wanted.numpy().transpose(0, 2, 1, 3).reshape(found[0].shape)
    for result, own in zip(found, (by_query, keys.numpy(), values.numpy()), strict=True):
        assert_within("MULTIHEAD_ATTENTION", result, own)


BYTES = ("uint8", "int8")


def _byte(random: Random, *shape: int) -> Array:
    return random.full(np.dtype("uint8"), shape)


def _zero_point(random: Random) -> Array:
    return _byte(random, 1).reshape(())


def _spread(value: Array, rank: int) -> Array:
    return value.reshape((1,) * rank)


def _extents(random: Random) -> tuple[int, int, int]:
    """Sizes of two matrices, around those of tiles; half of them with long sums."""
    m, n = (int(each) for each in random.generator.integers(1, 70, 2))
    return m, int(random.generator.integers(1, random.generator.choice((40, 1100)))), n


@on_random
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


@on_random
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


HALVES = (ml_dtypes.uint4, ml_dtypes.int4)


@pytest.mark.parametrize("target", BYTES)
@on_random
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


@on_random
def test_dequantization_agrees_with_numpy(device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type(FLOATS)
    source = random.of_type((*BYTES, "int16", "uint16"))
    x, zero_point = (random.values(source, shape, -100, 100) for _ in range(2))
    scale = random.values(dtype, shape, 0.01, 2, special=False)
    expected = (exact(x) - exact(zero_point)) * exact(scale)
    result = computed("ELEMENT_WISE_DEQUANTIZE_LINEAR", x, scale, zero_point, device=device)
    assert result.dtype == dtype
    assert_within("ELEMENT_WISE_DEQUANTIZE_LINEAR", result, expected)


@pytest.mark.parametrize("target", BYTES)
@on_random
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


@pytest.mark.parametrize("with_zero_points", [False, True])
@pytest.mark.parametrize("target", [*BYTES, *HALVES], ids=lambda target: np.dtype(target).name)
@on_random
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
