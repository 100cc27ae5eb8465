"""Operators on quantized integers against the same integers in NumPy, whose sums are exact."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendml as dml
from opendml import TensorDesc, Unsupported, descs
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import QuantizationType
from tests.pairwise import pairwise
from tests.peers.peer import examples
from tests.running import device_kinds

every_device = pytest.mark.parametrize("device", device_kinds())
BYTES = (np.uint8, np.int8)
WITH_ZERO_POINT = QuantizationType.SCALE_ZERO_POINT
SMALL_TYPES = (np.uint8, np.int8, ml_dtypes.uint4, ml_dtypes.int4)


def _full(generator: np.random.Generator, dtype: Any, *shape: int) -> Array:
    """Integers over the whole range of their type, its ends among them."""
    limits = np.iinfo(dtype)
    numbers = generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return np.where(generator.random(shape) < 0.2, limits.min, numbers).astype(dtype)


def _limits(dtype: Any) -> tuple[int, int]:
    limits = ml_dtypes.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _quantized(y: Array, scale: Array, zero_point: Array | int, dtype: Any) -> Array:
    """y / scale in float32, rounded, with the zero point, at the ends of the type at most."""
    with np.errstate(all="ignore"):
        whole = np.rint((y.astype(np.float32) / scale).astype(np.float32)).astype(np.float64)
    whole = np.nan_to_num(whole + np.asarray(zero_point).astype(np.float64), nan=0.0, posinf=1e9, neginf=-1e9)
    return whole.clip(*_limits(dtype)).astype(np.int64)


class _Product:
    """Random matrices with zero points and scales, one for all or one for each row or column."""

    def __init__(self, seed: int, a_type: Any, b_type: Any, m: int, k: int, n: int) -> None:
        generator = np.random.default_rng(seed)
        each = generator.integers(0, 2, 3).astype(bool)
        batch = (int(generator.integers(1, 3)),)
        self.a, self.b = _full(generator, a_type, *batch, m, k), _full(generator, b_type, *batch, k, n)
        rows, columns = (1, m if each[0] else 1, 1), (1, 1, n if each[1] else 1)
        self.a_zero = _full(generator, a_type, *rows)
        self.b_zero = _full(generator, b_type, *columns)
        self.a_scale = generator.uniform(0.01, 0.1, rows).astype(np.float32)
        self.b_scale = generator.uniform(0.01, 0.1, columns).astype(np.float32)
        self.out_scale = generator.uniform(5, 50, (1, m if each[2] else 1, 1)).astype(np.float32)
        self.sums = self.sums_with(self.a_zero, self.b_zero)

    def sums_with(self, a_zero: Array | int, b_zero: Array | int) -> Array:
        """The exact sums with other zero points."""
        a, b = self.a.astype(np.int64) - a_zero, self.b.astype(np.int64) - b_zero
        return np.asarray(a @ b)

    @property
    def product(self) -> Array:
        """The sums in units of 1, in float32."""
        return np.asarray(self.sums.astype(np.float32) * (self.a_scale * self.b_scale))


@every_device
@pytest.mark.parametrize("b_type", BYTES)
@pytest.mark.parametrize("a_type", BYTES)
@given(m=st.integers(1, 20), k=st.integers(1, 70), n=st.integers(1, 40), seed=st.integers(0, 2**31))
@examples
def test_products_are_exact(a_type: Any, b_type: Any, device: str, m: int, k: int, n: int, seed: int) -> None:
    given_ = _Product(seed, a_type, b_type, m, k, n)
    result = dml.matrix_multiply_integer(given_.a, given_.a_zero, given_.b, given_.b_zero, device=device)
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, given_.sums)
    result = dml.matrix_multiply_integer(given_.a, None, given_.b, None, device=device)
    np.testing.assert_array_equal(result, given_.sums_with(0, 0))


@every_device
def test_long_sums_wrap_as_integers_and_are_exact_before_they_are_scaled(device: str) -> None:
    count = 40000
    a, b = np.full((1, count), 255, np.uint8), np.full((count, 1), 255, np.uint8)
    wrapped = dml.matrix_multiply_integer(a, None, b, None, device=device)
    exact = 255 * 255 * count
    assert wrapped.item() == exact - 2**32
    one = np.ones((1, 1), np.float32)
    result = dml.matrix_multiply_integer_to_float(a, one, None, b, one, None, None, device=device)
    assert result.item() == np.float32(exact)
    scale = one * np.float32(exact / 100)
    rest = (None, b, one, None, scale, None)
    result = dml.quantized_linear_matrix_multiply(a, one, *rest, device=device)
    assert result.item() == 100


@every_device
@pytest.mark.parametrize("target", BYTES)
@given(m=st.integers(1, 12), k=st.integers(1, 40), n=st.integers(1, 20), seed=st.integers(0, 2**31))
@examples
def test_products_are_requantized(target: Any, device: str, m: int, k: int, n: int, seed: int) -> None:
    given_ = _Product(seed, np.uint8, np.int8, m, k, n)
    zero_point = _full(np.random.default_rng(seed), target, *given_.out_scale.shape)
    result = dml.quantized_linear_matrix_multiply(
        given_.a,
        given_.a_scale,
        given_.a_zero,
        given_.b,
        given_.b_scale,
        given_.b_zero,
        given_.out_scale,
        zero_point,
        device=device,
    )
    assert result.dtype == target
    np.testing.assert_array_equal(result, _quantized(given_.product, given_.out_scale, zero_point, target))


@every_device
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("integer", [np.uint8, np.int8, np.int16, np.uint16, np.int32, np.uint32])
def test_products_of_all_integers_become_floats(integer: Any, dtype: Any, device: str) -> None:
    generator = np.random.default_rng(1)
    a, b = _full(generator, integer, 3, 5, 20), _full(generator, integer, 3, 20, 7)
    a_zero, b_zero = _full(generator, integer, 1, 5, 1), _full(generator, integer, 1, 1, 1)
    unit = float(np.iinfo(integer).max)
    a_scale, b_scale = np.full((1, 1, 1), 1 / unit, dtype), np.full((1, 1, 7), 0.5 / unit, dtype)
    bias = generator.uniform(-1, 1, (3, 5, 7)).astype(dtype)
    differences = a.astype(np.float64) - a_zero, b.astype(np.float64) - b_zero
    scales = a_scale.astype(np.float64) * b_scale
    expected = differences[0] @ differences[1] * scales + bias
    magnitude = np.abs(differences[0]) @ np.abs(differences[1]) * scales + np.abs(bias)
    result = dml.matrix_multiply_integer_to_float(a, a_scale, a_zero, b, b_scale, b_zero, bias, device=device)
    assert result.dtype == dtype
    allowed = 1e-6 * magnitude + np.finfo(dtype).eps * np.abs(expected)
    assert (np.abs(result - expected) <= allowed).all()


@every_device
@pytest.mark.parametrize("integer", [np.int32, np.uint32])
def test_differences_of_wide_integers_are_exact_before_they_are_rounded(integer: Any, device: str) -> None:
    zero = np.iinfo(integer).max - 9
    a = np.array([[zero + 1, zero - 2, zero + 9]], integer)
    one, zero_point = np.ones((1, 1), np.float32), np.array([[zero]], integer)
    result = dml.matrix_multiply_integer_to_float(a, one, zero_point, a.T, one, zero_point, device=device)
    assert result.item() == 1 + 4 + 81


class _Convolution:
    """A random convolution of integers over one or two dimensions."""

    def __init__(self, seed: int, x_type: Any, filter_type: Any) -> None:
        generator = np.random.default_rng(seed)
        draw = generator.integers
        spatial = int(draw(1, 3))
        groups, inner, outer = (int(number) for number in draw(1, 4, 3))
        self.extents = draw(1, 4, spatial).tolist()
        self.attributes: dict[str, Any] = {
            "strides": draw(1, 3, spatial).tolist(),
            "dilations": draw(1, 3, spatial).tolist(),
            "start_padding": draw(0, 3, spatial).tolist(),
            "end_padding": draw(0, 3, spatial).tolist(),
            "group_count": groups,
        }
        spans = (np.array(self.extents) - 1) * self.attributes["dilations"] + 1
        image = (spans + draw(0, 6, spatial)).tolist()
        ones = (1,) * spatial
        self.x = _full(generator, x_type, 2, groups * inner, *image)
        self.x_zero = _full(generator, x_type, 1, 1, *ones)
        self.filter = _full(generator, filter_type, groups * outer, inner, *self.extents)
        per_channel = groups * outer if draw(2) else 1
        self.filter_zero = _full(generator, filter_type, 1, per_channel, *ones)
        self.x_scale = generator.uniform(0.01, 0.1, (1, 1, *ones)).astype(np.float32)
        self.filter_scale = generator.uniform(0.01, 0.1, (1, per_channel, *ones)).astype(np.float32)
        self.bias = draw(-50000, 50000, (1, groups * outer, *ones)).astype(np.int32)

    def sums(self) -> Array:
        """The exact sums, output by output."""
        x = self.x.astype(np.int64) - self.x_zero
        ones = (1,) * len(self.extents)
        weights = self.filter.astype(np.int64) - self.filter_zero.reshape(-1, 1, *ones)
        a = self.attributes
        margins = [(0, 0), (0, 0), *zip(a["start_padding"], a["end_padding"], strict=True)]
        x = np.pad(x, margins)
        groups, inner = a["group_count"], weights.shape[1]
        steps = list(zip(self.extents, a["dilations"], a["strides"], x.shape[2:], strict=True))
        counts = [
            (size - (extent - 1) * dilation - 1) // stride + 1 for extent, dilation, stride, size in steps
        ]
        result = np.zeros((2, len(weights), *counts), np.int64)
        for tap in np.ndindex(*self.extents):
            rows = [
                slice(place * dilation, place * dilation + (count - 1) * stride + 1, stride)
                for place, count, (_, dilation, stride, _) in zip(tap, counts, steps, strict=True)
            ]
            seen = x[(slice(None), slice(None), *rows)].reshape(2, groups, inner, *counts)
            taps = weights[(slice(None), slice(None), *tap)].reshape(groups, -1, inner)
            result += np.einsum("goi,ngi...->ngo...", taps, seen).reshape(result.shape)
        return result


@every_device
@pytest.mark.parametrize("filter_type", BYTES)
@pytest.mark.parametrize("x_type", BYTES)
@given(seed=st.integers(0, 2**31))
@examples
def test_integer_convolutions_are_exact(x_type: Any, filter_type: Any, device: str, seed: int) -> None:
    one = _Convolution(seed, x_type, filter_type)
    result = dml.convolution_integer(
        one.x, one.x_zero, one.filter, one.filter_zero, **one.attributes, device=device
    )
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, one.sums())


@every_device
@pytest.mark.parametrize("target", BYTES)
@given(seed=st.integers(0, 2**31))
@examples
def test_convolutions_are_requantized(target: Any, device: str, seed: int) -> None:
    one = _Convolution(seed, np.uint8, np.int8)
    generator = np.random.default_rng(seed)
    scale = generator.uniform(1, 30, one.x_scale.shape).astype(np.float32)
    zero_point = _full(generator, target, *scale.shape)
    bias = one.bias if seed % 2 else None
    result = dml.quantized_linear_convolution(
        one.x,
        one.x_scale,
        one.x_zero,
        one.filter,
        one.filter_scale,
        one.filter_zero,
        bias,
        scale,
        zero_point,
        **one.attributes,
        device=device,
    )
    assert result.dtype == target
    sums = one.sums() + (0 if bias is None else bias.astype(np.int64))
    y = sums.astype(np.float32) * (one.x_scale * one.filter_scale)
    np.testing.assert_array_equal(result, _quantized(y, scale, zero_point, target))


@every_device
@pytest.mark.parametrize("include_padding", [False, True])
@pytest.mark.parametrize(("source", "target"), [(np.uint8, np.int8), (np.int8, np.uint8)])
def test_averages_are_of_exact_sums(source: Any, target: Any, include_padding: bool, device: str) -> None:
    generator = np.random.default_rng(2)
    x = _full(generator, source, 2, 3, 6, 7)
    scale, out_scale = (generator.uniform(0.05, 0.1, (1, 3, 1, 1)).astype(np.float32) for _ in range(2))
    zero_point, out_zero = _full(generator, source, 1, 3, 1, 1), _full(generator, target, 1, 1, 1, 1)
    padded = np.pad(x.astype(np.int64) - zero_point, [(0, 0), (0, 0), (1, 0), (1, 1)])
    inside = np.pad(
        np.ones(x.shape, np.int64), [(0, 0), (0, 0), (1, 0), (1, 1)], constant_values=include_padding
    )
    sums, counts = (
        np.lib.stride_tricks.sliding_window_view(each, (3, 2), (2, 3))[:, :, ::2, ::1].sum(axis=(4, 5))
        for each in (padded, inside)
    )
    result = dml.quantized_linear_average_pooling(
        x,
        scale,
        zero_point,
        out_scale,
        out_zero,
        strides=[2, 1],
        window_size=[3, 2],
        start_padding=[1, 1],
        end_padding=[0, 1],
        dilations=[1, 1],
        include_padding=include_padding,
        device=device,
    )
    assert result.dtype == target
    y = (sums / counts).astype(np.float32) * scale
    np.testing.assert_array_equal(result, _quantized(y, out_scale, out_zero, target))


def _in_blocks(parameter: Array, sizes: tuple[int, ...]) -> Array:
    result = parameter.astype(np.float64)
    for axis, size in enumerate(sizes):
        result = np.repeat(result, size // result.shape[axis], axis)
    return result


BLOCKS = [(1, 1, 1), (2, 1, 1), (2, 3, 2), (1, 6, 4), (2, 6, 8)]


@pairwise(device=device_kinds(), blocks=BLOCKS, dtype=[np.float32, np.float16], target=SMALL_TYPES)
def test_blocks_share_scales(target: Any, dtype: Any, blocks: tuple[int, ...], device: str) -> None:
    generator = np.random.default_rng(3)
    sizes = (2, 6, 8)
    low, high = _limits(target)
    x = generator.uniform(-3 * high, 3 * high, sizes).astype(dtype)
    x[0, 0, :3] = np.nan, np.inf, -np.inf
    scale = (2.0 ** generator.integers(-2, 2, blocks)).astype(dtype)
    zero_point = generator.integers(low, high + 1, blocks).astype(target)
    wide_scale, wide_zero = (_in_blocks(each, sizes) for each in (scale, zero_point))
    result = dml.quantize(
        x,
        [scale, zero_point],
        quantization_type=WITH_ZERO_POINT,
        output_type=np.dtype(target).name.upper(),
        device=device,
    )
    assert result.dtype == target
    expected = _quantized(x.astype(np.float64), wide_scale, wide_zero, target)
    np.testing.assert_array_equal(result.astype(np.int64), expected)
    back = dml.dequantize(result, [scale, zero_point], quantization_type=WITH_ZERO_POINT, device=device)
    assert back.dtype == dtype
    np.testing.assert_array_equal(back, ((expected - wide_zero) * wide_scale).astype(dtype))
    alone = dml.dequantize(result, [scale], quantization_type=QuantizationType.SCALE, device=device)
    np.testing.assert_array_equal(alone, (expected * wide_scale).astype(dtype))


LAYOUTS: list[tuple[tuple[int, ...], tuple[int, ...] | None]] = [
    ((3, 5), None),
    ((4, 8), None),
    ((5, 3), (1, 5)),
    ((1,), None),
    ((2, 3, 4), (1, 8, 2)),
]


@every_device
@pytest.mark.parametrize(("sizes", "strides"), LAYOUTS, ids=str)
@pytest.mark.parametrize("target", ["UINT4", "INT4"])
def test_elements_of_4_bits_share_bytes_of_buffers(
    target: str, sizes: tuple[int, ...], strides: tuple[int, ...] | None, device: str
) -> None:
    generator = np.random.default_rng(4)
    dtype = getattr(ml_dtypes, target.lower())
    x = generator.uniform(-10, 20, sizes).astype(np.float32)
    scale, zero_point = np.array([0.5], np.float32), np.array([3], dtype)
    ones = (1,) * len(sizes)
    tensor, floats = TensorDesc(target, sizes, strides), TensorDesc(dml.FLOAT32, sizes)
    parameters = [TensorDesc(dml.FLOAT32, ones), TensorDesc(target, ones)]
    where = dml.Device(device)
    quantized = np.full(tensor.size_in_bytes + 4, 0xEE, np.uint8)
    desc = descs.Quantize(floats, parameters, tensor, quantization_type=WITH_ZERO_POINT)
    given_ = [scale, dml.to_buffer(zero_point)]
    where.compile_operator(where.create_operator(desc)).bind([x, *given_], [quantized]).dispatch()
    expected = _quantized(x, scale, zero_point, dtype)
    written = dml.from_buffer(quantized[: tensor.size_in_bytes], tensor)
    np.testing.assert_array_equal(written.astype(np.int64), expected)
    assert (quantized[(tensor.element_count + 1) // 2 :] == 0xEE).all()
    back = np.zeros(sizes, np.float32)
    desc_back = descs.Dequantize(tensor, parameters, floats, quantization_type=WITH_ZERO_POINT)
    compiled = where.compile_operator(where.create_operator(desc_back))
    compiled.bind([quantized, *given_], [back]).dispatch()
    np.testing.assert_array_equal(back, (expected - 3) * 0.5)


@every_device
def test_elements_of_4_bits_are_repeated_and_skipped_by_strides(device: str) -> None:
    tensor = TensorDesc(dml.INT4, [2, 3], strides=[0, 2])
    floats, one = TensorDesc(dml.FLOAT32, [2, 3]), TensorDesc(dml.FLOAT32, [1, 1])
    desc = descs.Dequantize(tensor, [one], floats, quantization_type=QuantizationType.SCALE)
    where = dml.Device(device)
    result = np.zeros((2, 3), np.float32)
    data = dml.to_buffer(np.array([-8, 1, 7, 2, -1], ml_dtypes.int4))
    compiled = where.compile_operator(where.create_operator(desc))
    compiled.bind([data, np.ones(1, np.float32)], [result]).dispatch()
    np.testing.assert_array_equal(result, [[-8, 7, -1]] * 2)


def test_elements_of_4_bits_are_not_written_with_gaps() -> None:
    floats, one = TensorDesc(dml.FLOAT32, [2, 3]), TensorDesc(dml.FLOAT32, [1, 1])
    tensor = TensorDesc(dml.UINT4, [2, 3], strides=[4, 1])
    desc = descs.Quantize(floats, [one], tensor, quantization_type=QuantizationType.SCALE)
    where = dml.Device("reference")
    with pytest.raises(Unsupported, match=r"UINT4: an output with strides \[4, 1\].*without gaps"):
        where.compile_operator(where.create_operator(desc))


@every_device
def test_elements_of_4_bits_within_graphs(device: str) -> None:
    x = np.linspace(-4, 4, 15, dtype=np.float32).reshape(3, 5)
    scale = np.array([[0.5]], np.float32)
    graph = dml.Graph()
    scales = graph.constant(scale)
    given_ = graph.input("x", dml.FLOAT32, x.shape)
    weights = graph.input("w", dml.INT4, x.shape)
    kind = QuantizationType.SCALE
    quantized = dml.quantize(given_, [scales], quantization_type=kind, output_type="INT4")
    outputs = {
        "q": quantized,
        "x": dml.dequantize(quantized, [scales], quantization_type=kind),
        "w": dml.dequantize(weights, [scales], quantization_type=kind),
    }
    w = np.arange(-8, 7).reshape(3, 5).astype(ml_dtypes.int4)
    results = graph.compile(outputs, device)(x=x, w=w)
    expected = np.rint(x / 0.5).clip(-8, 7)
    assert results["q"].dtype == ml_dtypes.int4
    np.testing.assert_array_equal(results["q"].astype(np.float64), expected)
    np.testing.assert_array_equal(results["x"], expected * 0.5)
    np.testing.assert_array_equal(results["w"], w.astype(np.float32) * 0.5)


@every_device
def test_the_low_half_alone_is_an_element_of_an_array(device: str) -> None:
    data = np.array([0x1F, 0xF1, 0x88, 0x07], np.uint8)
    one = np.ones((1,), np.float32)
    for dtype, expected in ((ml_dtypes.uint4, [15, 1, 8, 7]), (ml_dtypes.int4, [-1, 1, -8, 7])):
        result = dml.dequantize(
            data.view(dtype), [one], quantization_type=QuantizationType.SCALE, device=device
        )
        np.testing.assert_array_equal(result, expected)


def _dynamic(x: Array, dtype: Any) -> tuple[Array, np.float32, int]:
    """The formula in float32, with 0 among the elements."""
    low, high = _limits(dtype)
    least, most = (np.float32(each) for each in (min(x.min(), 0), max(x.max(), 0)))
    scale = (most - least) / np.float32(high - low) if most > least else np.float32(1)
    zero_point = int(np.rint(np.float32(low) - least / scale).clip(low, high))
    return _quantized(x, np.asarray(scale), zero_point, dtype), scale, zero_point


@every_device
@pytest.mark.parametrize("target", BYTES)
@pytest.mark.parametrize(("low", "high"), [(-3, 5), (2, 4), (-7, -1), (0, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_dynamic_scales_span_elements(dtype: Any, low: float, high: float, target: Any, device: str) -> None:
    x = np.random.default_rng(5).uniform(low, high, (3, 4, 25)).astype(dtype)
    values, scale, zero_point = dml.dynamic_quantize_linear(
        x, output_type=np.dtype(target).name.upper(), device=device
    )
    expected = _dynamic(x.astype(np.float32), target)
    assert (values.dtype, scale.dtype, zero_point.dtype) == (target, np.float32, target)
    np.testing.assert_array_equal(values, expected[0])
    assert (scale.item(), zero_point.item()) == (expected[1], expected[2])


@every_device
def test_a_nan_makes_the_dynamic_scale_nan_and_all_numbers_zero(device: str) -> None:
    x = np.array([1, np.nan, -2], np.float32)
    values, scale, zero_point = dml.dynamic_quantize_linear(x, device=device)
    assert np.isnan(scale).all()
    assert not values.any()
    assert not zero_point.any()


@every_device
@pytest.mark.parametrize("target", BYTES)
@pytest.mark.parametrize("ends", [(-1, np.inf), (-np.inf, 1), (-np.inf, np.inf), (-3e38, 3e38)], ids=str)
def test_infinite_extents_make_scales_infinite(ends: tuple[float, float], target: Any, device: str) -> None:
    x = np.array([*ends, 2, -0.5, 0], np.float32)
    values, scale, zero_point = dml.dynamic_quantize_linear(
        x, output_type=np.dtype(target).name.upper(), device=device
    )
    number = 0 if ends[0] == -np.inf else _limits(target)[0]
    assert (scale.item(), zero_point.item()) == (np.inf, number)
    np.testing.assert_array_equal(values, np.where(np.isinf(x), 0, number))


@every_device
def test_elements_of_4_bits_between_operators_of_a_graph(device: str) -> None:
    where = dml.Device(device)
    floats, scale = TensorDesc(dml.FLOAT32, [3, 5]), TensorDesc(dml.FLOAT32, [1, 1])
    kind = QuantizationType.SCALE
    halves = TensorDesc(dml.UINT4, [3, 5])
    turned = TensorDesc(dml.UINT4, [5, 3], strides=[1, 5])
    to = where.create_operator(descs.Quantize(floats, [scale], halves, quantization_type=kind))
    back = where.create_operator(
        descs.Dequantize(turned, [scale], TensorDesc(dml.FLOAT32, [5, 3]), quantization_type=kind)
    )
    inputs = [(0, 0, 0), (1, 0, 1), (1, 1, 1)]
    graph = dml.GraphDesc(
        2,
        1,
        [dml.OperatorNode(to), dml.OperatorNode(back)],
        [dml.InputEdge(*each) for each in inputs],
        [dml.OutputEdge(1, 0, 0)],
        [dml.IntermediateEdge(0, 0, 1, 0)],
    )
    x = np.linspace(-2, 20, 15, dtype=np.float32)
    result = np.zeros((5, 3), np.float32)
    compiled = where.compile_graph(graph)
    compiled.bind([x, np.ones(1, np.float32)], [result]).dispatch()
    np.testing.assert_array_equal(result, np.rint(x).clip(0, 15).reshape(3, 5).T)


@every_device
@pytest.mark.parametrize("target", BYTES)
def test_quotients_by_zero_are_the_ends_of_the_type_and_nan_is_zero(target: Any, device: str) -> None:
    limits = np.iinfo(target)
    one, zero = np.ones((1, 1, 1, 1), np.float32), np.zeros((1, 1, 1, 1), np.float32)
    x = np.array([100, -100, 0], np.int8).reshape(1, 1, 1, 3)
    no_zero, filter = np.zeros((1, 1, 1, 1), np.int8), np.ones((1, 1, 1, 1), np.int8)
    zero_point = np.full((1, 1, 1, 1), 7, target)
    matrix = x.reshape(1, 1, 3, 1)
    results = [
        dml.quantized_linear_matrix_multiply(
            matrix, one, no_zero, filter, one, no_zero, zero, zero_point, device=device
        ),
        dml.quantized_linear_convolution(
            x, one, no_zero, filter, one, no_zero, None, zero, zero_point, device=device
        ),
    ]
    if target is np.int8:
        results.append(
            dml.quantized_linear_average_pooling(
                x, one, no_zero, zero, zero_point, window_size=[1, 1], include_padding=False, device=device
            )
        )
    for result in results:
        np.testing.assert_array_equal(result.reshape(-1), [limits.max, limits.min, 0])


@every_device
def test_long_sums_of_convolutions_wrap(device: str) -> None:
    channels = 33_100
    x, filter = np.full((1, channels, 1, 1), 255, np.uint8), np.full((1, channels, 1, 1), 255, np.uint8)
    expected = np.array(channels * 255 * 255).astype(np.int32)
    assert expected < 0
    assert dml.convolution_integer(x, None, filter, device=device).item() == expected
