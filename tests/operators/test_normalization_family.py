"""Other normalizations, gradients of normalizations, and Adam's steps, against float64 and differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT16, FLOAT32, Device, TensorDataType, TensorDesc, descs
from opendml.runtime.memory.host_array import Array
from tests.operators.gradients import by_differences
from tests.pairwise import pairwise
from tests.running import FLOATS, launches, run, same_bits
from tests.tolerances import assert_within

types = pytest.mark.parametrize("type", [np.float32, np.float16])


def values(seed: int, sizes: Sequence[int], type: Any) -> Array:
    return (np.random.default_rng(seed).standard_normal(sizes) + 1).astype(type)


@types
@pytest.mark.parametrize("channels", [[1, 5, 1, 1], [1, 1, 1, 1], [2, 5, 1, 9]], ids=str)
def test_batch_normalization(type: type[np.floating], channels: list[int], device: Device) -> None:
    x = values(0, [2, 5, 7, 9], type)
    mean, scale, bias = (values(seed, [1, 5, 1, 1], type) for seed in (1, 2, 3))
    variance = np.abs(values(4, channels, type))
    result = dml.batch_normalization(
        x, mean, variance, scale, bias, epsilon=0.1, fused_activation=descs.ActivationRelu(), device=device
    )
    wide = [each.astype(np.float64) for each in (x, mean, variance, scale, bias)]
    wanted = wide[3] * (wide[0] - wide[1]) / np.sqrt(wide[2] + np.float32(0.1)) + wide[4]
    assert_within("BATCH_NORMALIZATION", result, np.maximum(wanted, 0))


@pytest.mark.parametrize("spatial", [False, True])
def test_spatial_changes_nothing(spatial: bool) -> None:
    x = values(0, [2, 3, 4, 5], np.float32)
    full = [values(seed, x.shape, np.float32) ** 2 for seed in range(4)]
    results = [dml.batch_normalization(x, *full, spatial=each, epsilon=0.1) for each in (spatial, True)]
    assert same_bits(*results)


@types
@pytest.mark.parametrize("cross_channel", [False, True])
@pytest.mark.parametrize("normalize_variance", [False, True])
def test_the_first_form_is_the_second_over_height_and_width(
    type: type[np.floating], cross_channel: bool, normalize_variance: bool, device: Device
) -> None:
    x, scale, bias = (values(seed, [2, 5, 7, 9], type) for seed in range(3))
    first = dml.mean_variance_normalization(
        x, scale, bias, cross_channel=cross_channel, normalize_variance=normalize_variance, device=device
    )
    axes = [1, 2, 3] if cross_channel else [2, 3]
    second = dml.mean_variance_normalization1(
        x, scale, bias, axes=axes, normalize_variance=normalize_variance, device=device
    )
    assert same_bits(first, second)


@pairwise(
    type=[np.float32, np.float16],
    axes=[[1], [0, 2], [0, 1, 2]],
    use_mean=[False, True],
    use_variance=[False, True],
)
def test_mean_and_variance_are_used_each_on_its_own(
    type: type[np.floating], axes: list[int], use_mean: bool, use_variance: bool, device: Device
) -> None:
    x, scale = values(0, [4, 50, 9], type), values(1, [1, 50, 9], type)
    result = dml.mean_variance_normalization2(
        x, scale, axes=axes, use_mean=use_mean, use_variance=use_variance, epsilon=0.01, device=device
    )
    wide, dims = x.astype(np.float64), tuple(axes)
    centered = wide - wide.mean(dims, keepdims=True) if use_mean else wide
    spread = np.square(centered).mean(dims, keepdims=True) + np.float32(0.01)
    wanted = centered / np.sqrt(spread) if use_variance else centered
    assert_within("MEAN_VARIANCE_NORMALIZATION2", result, scale.astype(np.float64) * wanted)


@pairwise(type=[np.float32, np.float16], axis=[0, 1, 2], p=[1, 2])
def test_lp_normalization(type: type[np.floating], axis: int, p: int, device: Device) -> None:
    x = values(0, [5, 40, 17], type)
    result = dml.lp_normalization(x, axis=axis, p=p, device=device)
    wide = x.astype(np.float64)
    assert_within("LP_NORMALIZATION", result, wide / np.linalg.norm(wide, p, axis, keepdims=True))


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("where", ["cpu", "reference"])
def test_epsilon_is_the_least_norm(p: int, where: str) -> None:
    x = np.array([[0.0, 0.0], [0.003, 0.004], [3.0, 4.0]], np.float32)
    result = dml.lp_normalization(x, axis=1, epsilon=0.5, p=p, device=where)
    norms = np.maximum(np.linalg.norm(x.astype(np.float64), p, 1, keepdims=True), 0.5)
    assert_within("LP_NORMALIZATION", result, x / norms)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_norm_may_be_beyond_all_of_the_type(p: int, axis: int, device: Device) -> None:
    x = np.array([[-3.4e38, 3.4e38, 3e30, 1e-40, 0.0]] * 2, np.float32)
    x = x if axis else np.ascontiguousarray(x.T)
    wide = x.astype(np.float64)
    result = dml.lp_normalization(x, axis=axis, epsilon=1.0, p=p, device=device)
    wanted = wide / np.linalg.norm(wide, p, axis, keepdims=True)
    assert_within("LP_NORMALIZATION", result, wanted)
    least = dml.lp_normalization(x, axis=axis, epsilon=3.4e38, p=p, device=device)
    assert_within("LP_NORMALIZATION", least, wanted)


def test_squares_do_not_overflow(device: Device) -> None:
    x = np.array([[3e30, 4e30], [3e-30, 4e-30]], np.float32)
    result = dml.lp_normalization(x, axis=1, epsilon=0.0, p=2, device=device)
    wanted = x.astype(np.float64) / [[5e30], [5e-30]]
    assert_within("LP_NORMALIZATION", result, wanted)
    how = {"axes": [1], "use_mean": False, "use_variance": True, "epsilon": 0.0}
    result = dml.mean_variance_normalization2(x[:1], device=device, **how)
    assert_within("MEAN_VARIANCE_NORMALIZATION2", result, wanted[:1] * 2**0.5)
    tensor = TensorDesc(FLOAT16, [1, 300])
    halves = np.full((1, 300), 60000.0, np.float16)
    desc = descs.MeanVarianceNormalization2(tensor, None, None, tensor, axes=[1], use_mean=False)
    assert run(desc, [halves, None, None], device).tolist() == [[1.0] * 300]


def test_fused_activation_of_the_second_form(device: Device) -> None:
    tensor = TensorDesc(FLOAT32, [6, 30])
    x = values(0, [6, 30], np.float32)
    desc = descs.MeanVarianceNormalization2(
        tensor, None, None, tensor, axes=[1], fused_activation=descs.ActivationRelu()
    )
    plain = dml.mean_variance_normalization1(x, axes=[1], device=device)
    assert same_bits(run(desc, [x, None, None], device), np.maximum(plain, 0))


def responses(x: Array, axes: Sequence[int], size: int, alpha: float, beta: float, bias: float) -> Array:
    """Local response normalization in float64, element by element of the region."""
    squares = np.square(x.astype(np.float64))
    before = (size - 1) // 2
    for axis in axes:
        margins = [(before, size - 1 - before) if each == axis else (0, 0) for each in range(4)]
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(squares, margins), size, axis)
        squares = windows.sum(-1)
    with np.errstate(invalid="ignore"):
        return np.asarray(x / (bias + alpha / size * squares) ** beta)


@pairwise(type=[np.float32, np.float16], cross_channel=[False, True], size=[1, 2, 3, 5, 40, 70])
def test_local_responses(type: type[np.floating], cross_channel: bool, size: int, device: Device) -> None:
    x = values(0, [2, 70, 9, 8], type) * type(3)
    settings = {"alpha": 0.5, "beta": 0.75, "bias": 2.0}
    wanted = responses(x, (1,) if cross_channel else (2, 3), size, **settings)
    for where in (device, Device("reference")):
        result = dml.local_response_normalization(
            x, cross_channel=cross_channel, local_size=size, **settings, device=where
        )
        assert_within("LOCAL_RESPONSE_NORMALIZATION", result, wanted)


@pytest.mark.parametrize(
    ("size", "special"),
    [
        *((size, 1.0) for size in (33, 63, 1023, 1024, 1025, 1057, 2047, 5000)),
        *product((63, 1057), (math.inf, math.nan)),
    ],
)
def test_local_response_normalization_over_large_regions(size: int, special: float, device: Device) -> None:
    x = values(0, [1, 2100, 1, 2], np.float32)
    x[0, 1500, 0, 1] = special
    settings = {"alpha": 0.5, "beta": 0.75, "bias": 2.0}
    wanted = responses(x, (1,), min(size, 4199), **settings | {"alpha": 0.5 * min(size, 4199) / size})
    for where in (device, Device("reference")):
        result = dml.local_response_normalization(
            x, cross_channel=True, local_size=size, **settings, device=where
        )
        assert_within("LOCAL_RESPONSE_NORMALIZATION", result, wanted)


def test_code_of_local_response_normalization_hardly_grows_with_its_regions() -> None:
    image = TensorDesc(FLOAT32, [1, 262_144, 1, 3])
    desc = descs.LocalResponseNormalization(image, image, cross_channel=True, local_size=262_144)
    assert sum(len(each.pattern.loads) for each in launches(desc)) < 200


@pytest.mark.parametrize(("size", "kernels"), [(5, 1), (31, 2)])
def test_squares_of_small_regions_are_not_stored(size: int, kernels: int) -> None:
    image = TensorDesc(FLOAT32, [2, 64, 12, 12])
    desc = descs.LocalResponseNormalization(image, image, cross_channel=True, local_size=size)
    assert len(launches(desc)) == kernels


def test_padding_and_parts_in_a_graph(device: Device) -> None:
    x = values(0, [1, 6, 5, 7], np.float32)
    graph = dml.Graph()
    tensor = dml.activation_relu(graph.input("x", FLOAT32, x.shape))
    normalized = dml.local_response_normalization(tensor, cross_channel=True, local_size=3)
    model = graph.compile({"y": dml.activation_softmax1(normalized, axes=[1])}, device=device)
    wanted = responses(np.maximum(x, 0), (1,), 3, 1e-4, 0.75, 1.0)
    wanted = np.exp(wanted) / np.exp(wanted).sum(1, keepdims=True)
    np.testing.assert_allclose(model(x=x)["y"], wanted, rtol=2e-6, atol=2e-6)


EPSILON = 0.1
# The sizes of the input and of the statistics.
GROUPS = [
    ([4, 3, 5, 2], [1, 3, 1, 1]),
    ([6], [1]),
    ([2, 3, 4], [2, 1, 4]),
    ([3, 2], [3, 2]),
    ([2, 1, 3, 2, 2, 1, 2, 2], [1, 1, 3, 1, 2, 1, 1, 2]),
]
groups = pytest.mark.parametrize(("sizes", "kept"), GROUPS, ids=str)


def _axes(kept: Sequence[int]) -> tuple[int, ...]:
    return tuple(axis for axis, size in enumerate(kept) if size == 1)


def _wide(*arrays: Array) -> list[Array]:
    return [each.astype(np.float64) for each in arrays]


def _normalized(x: Array, scale: Array, bias: Array, more: Array | float = 0.0) -> Array:
    """In float64, with statistics of x itself over the dimensions where the scale has size 1; `more` is added
    to the variance."""
    axes = _axes(scale.shape)
    center = x.mean(axis=axes, keepdims=True)
    spread = np.square(x - center).mean(axis=axes, keepdims=True)
    return np.asarray(scale * (x - center) / np.sqrt(spread + more + np.float32(EPSILON)) + bias)


@types
@groups
@pytest.mark.parametrize("adds", [False, True])
def test_training(sizes: list[int], kept: list[int], adds: bool, type: Any, any_device: Device) -> None:
    x, add = values(0, sizes, type), values(1, sizes, type)
    scale, bias = values(2, kept, type), values(3, kept, type)
    output, mean, variance = dml.batch_normalization_training(
        x,
        scale,
        bias,
        add if adds else None,
        epsilon=EPSILON,
        fused_activation=descs.ActivationRelu(),
        device=any_device,
    )
    axes = _axes(kept)
    assert_within("BATCH_NORMALIZATION_TRAINING", mean, x.astype(np.float64).mean(axis=axes, keepdims=True))
    assert_within(
        "BATCH_NORMALIZATION_TRAINING", variance, x.astype(np.float64).var(axis=axes, keepdims=True)
    )
    wanted = _normalized(*_wide(x, scale, bias)) + (add if adds else 0)
    assert_within("BATCH_NORMALIZATION_TRAINING", output, np.maximum(wanted, 0))


def test_training_keeps_the_digits_of_a_great_mean(any_device: Device) -> None:
    x = (np.random.default_rng(0).standard_normal((1, 1, 8, 500)) + 4e4).astype(np.float32)
    one = np.ones((1, 1, 1, 1), np.float32)
    output, mean, variance = dml.batch_normalization_training(x, one, one * 0, epsilon=0.0, device=any_device)
    wide = x.astype(np.float64)
    wanted = ((wide - wide.mean()) / wide.std(), wide.mean(), wide.var())
    for result, exact in zip((output, mean, variance), wanted, strict=True):
        assert_within("BATCH_NORMALIZATION_TRAINING", result, np.broadcast_to(exact, result.shape))


@types
@groups
def test_gradients_of_statistics(sizes: list[int], kept: list[int], type: Any, any_device: Device) -> None:
    x, incoming = values(0, sizes, type), values(1, sizes, type)
    mean, variance, scale = (values(2 + number, kept, type) for number in range(3))
    variance = np.abs(variance)
    results = dml.batch_normalization_grad(
        x, incoming, mean, variance, scale, epsilon=EPSILON, device=any_device
    )
    wide, gradient, center, spread, gain = _wide(x, incoming, mean, variance, scale)
    root = np.sqrt(spread + np.float32(EPSILON))
    axes = _axes(kept)
    wanted = (
        gradient * gain / root,
        (gradient * (wide - center) / root).sum(axis=axes, keepdims=True),
        gradient.sum(axis=axes, keepdims=True),
    )
    for result, expected in zip(results, wanted, strict=True):
        assert_within("BATCH_NORMALIZATION_GRAD", result, expected)


@types
@groups
def test_gradients_of_a_training(sizes: list[int], kept: list[int], type: Any, any_device: Device) -> None:
    x, incoming, scale = (
        values(0, sizes, type),
        values(1, sizes, type),
        values(2, kept, type),
    )
    axes = _axes(kept)
    wide, gradient, gain = _wide(x, incoming, scale)
    exact = wide.var(axis=axes, keepdims=True)
    mean, variance = wide.mean(axis=axes, keepdims=True).astype(type), exact.astype(type)
    results = dml.batch_normalization_training_grad(
        x, incoming, mean, variance, scale, epsilon=EPSILON, device=any_device
    )
    none, rounding = np.zeros_like(gain), variance - exact
    wanted = (
        by_differences(lambda x: _normalized(x, gain, none, rounding), wide, gradient),
        (gradient * (wide - mean) / np.sqrt(variance + np.float64(np.float32(EPSILON)))).sum(
            axes, keepdims=True
        ),
        gradient.sum(axis=axes, keepdims=True),
    )
    for result, expected in zip(results, wanted, strict=True):
        assert_within("BATCH_NORMALIZATION_TRAINING_GRAD", result, expected)


def test_the_mean_of_a_training_is_for_the_scale_alone(any_device: Device) -> None:
    x, incoming = values(0, [3, 2, 4], np.float32), values(1, [3, 2, 4], np.float32)
    variance, scale = np.ones((1, 2, 1), np.float32), values(2, [1, 2, 1], np.float32)
    results = [
        dml.batch_normalization_training_grad(
            x, incoming, mean, variance, scale, epsilon=EPSILON, device=any_device
        )
        for mean in (x.mean(axis=(0, 2), keepdims=True), np.full((1, 2, 1), 1e3, np.float32))
    ]
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-4, atol=1e-4)
    root = np.sqrt(np.float32(1 + EPSILON))
    expected = (incoming * (x.astype(np.float64) - 1e3)).sum(axis=(0, 2), keepdims=True) / root
    assert_within("BATCH_NORMALIZATION_TRAINING_GRAD", results[1][1], expected)


def _local_response(x: Array, across: bool, size: int) -> Array:
    """The forward operator in float64, element by element."""
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    result = np.empty_like(x)
    for n, c, h, w in np.ndindex(*x.shape):
        at = [slice(max(i - before, 0), i + after + 1) for i in (c, h, w)]
        region = x[n, at[0], h, w] if across else x[n, c, at[1], at[2]]
        base = 0.5 + np.float64(np.float32(0.3)) / size * np.square(region).sum()
        result[n, c, h, w] = x[n, c, h, w] / base ** np.float64(np.float32(0.75))
    return result


@pairwise(type=[np.float32, np.float16], across=[False, True], size=[1, 2, 3, 40])
def test_gradient_of_local_responses(size: int, across: bool, type: Any, any_device: Device) -> None:
    x, incoming = values(0, [2, 5, 3, 4], type), values(1, [2, 5, 3, 4], type)
    attributes = {"cross_channel": across, "local_size": size, "alpha": 0.3, "beta": 0.75, "bias": 0.5}
    result = dml.local_response_normalization_grad(x, incoming, **attributes, device=any_device)
    wide, gradient = _wide(x, incoming)
    expected = by_differences(lambda x: _local_response(x, across, size), wide, gradient)
    assert_within("LOCAL_RESPONSE_NORMALIZATION_GRAD", result, expected)


@pytest.mark.parametrize("gradient", [1.5, np.full((1, 3, 1, 1), 1.5, np.float32)], ids=["number", "small"])
@pytest.mark.parametrize("name", ["batch_normalization_grad", "batch_normalization_training_grad"])
def test_a_gradient_that_a_graph_repeats_counts_as_often_as_it_is_repeated(name: str, gradient: Any) -> None:
    x = np.random.default_rng(1).random((2, 3, 4, 4), np.float32)
    statistic = x[:1, :, :1, :1] + 1
    graph, function = dml.Graph(), getattr(dml, name)
    given = graph.constant(gradient) if isinstance(gradient, np.ndarray) else gradient
    statistics = [graph.constant(statistic)] * 3
    results = function(graph.constant(x), given, *statistics, epsilon=1e-3)
    model = graph.compile({str(number): result for number, result in enumerate(results)})
    expected = function(x, np.full_like(x, 1.5), *[statistic] * 3, epsilon=1e-3)
    for result, wanted in zip(model().values(), expected, strict=True):
        assert_within(name.upper(), result, wanted)


def test_a_constant_gradient_of_a_training_vanishes_far_from_zero(any_device: Device) -> None:
    x = (100 + np.random.default_rng(1).random((4, 3, 5, 5))).astype(np.float32)
    # The mean of the training is no longer that of x.
    statistics = np.full((1, 3, 1, 1), 0.3, np.float32), np.full((1, 3, 1, 1), 0.1, np.float32)
    scale = np.ones((1, 3, 1, 1), np.float32)
    gradient = np.ones_like(x)
    found = dml.batch_normalization_training_grad(
        x, gradient, *statistics, scale, epsilon=1e-5, device=any_device
    )
    assert np.abs(found[0]).max() < 1e-6


@pytest.mark.parametrize("name", ["batch_normalization_grad", "batch_normalization_training_grad"])
def test_what_no_epsilon_holds_back_is_zero_where_the_scale_is(name: str, any_device: Device) -> None:
    x, gradient = np.array([[-1, 2, 3], [0, 1, 1]], np.float16), np.array([[-3, 1, 2], [4, 0, 1]], np.float16)
    mean, zero = np.array([[4], [1]], np.float16), np.zeros((2, 1), np.float16)
    of_input, _, of_bias = getattr(dml, name)(x, gradient, mean, zero, zero, epsilon=1e-40, device=any_device)
    assert not of_input.any()
    np.testing.assert_array_equal(of_bias, [[0], [5]])


def test_a_gradient_of_a_training_is_finite_where_only_its_terms_are_not(any_device: Device) -> None:
    # The deviations times their slope, without the scale, are about 1e42.
    x, gradient = np.array([[-1e14, 2e14, 1e13]], np.float32), np.array([[2e14, -1e14, 3e14]], np.float32)
    mean, one = np.zeros((1, 1), np.float32), np.ones((1, 1), np.float32)
    scale = np.full((1, 1), 1e-26, np.float32)
    of_input, _, _ = dml.batch_normalization_training_grad(
        x, gradient, mean, one, scale, epsilon=1.0, device=any_device
    )
    wide, incoming, gain = _wide(x, gradient, scale)
    centered = wide - wide.mean()
    terms = incoming - incoming.mean() - centered * (incoming * centered).mean() / 2
    assert_within("BATCH_NORMALIZATION_TRAINING_GRAD", of_input, gain / np.sqrt(2) * terms)


def test_a_gradient_is_finite_where_only_its_factor_is_not(any_device: Device) -> None:
    x, gradient = np.ones((1, 2), np.float32), np.full((1, 2), 1e-25, np.float32)
    zero, scale = np.zeros((1, 1), np.float32), np.full((1, 1), 1e30, np.float32)
    of_input, _, _ = dml.batch_normalization_grad(
        x, gradient, zero, zero, scale, epsilon=1e-20, device=any_device
    )
    expected = np.float64(gradient) * np.float64(scale) / np.sqrt(np.float64(np.float32(1e-20)))
    assert_within("BATCH_NORMALIZATION_GRAD", of_input, expected)


def test_a_gradient_of_local_responses_is_infinite_where_only_its_terms_differ(any_device: Device) -> None:
    # Of a base of 1e-10 both terms are beyond float32, and so is what is left of them.
    x, gradient = np.full((1, 1, 1, 1), 1e-5, np.float32), np.full((1, 1, 1, 1), 100, np.float32)
    attributes = {"cross_channel": True, "local_size": 1, "alpha": 1.0, "beta": 3.7, "bias": 0.0}
    result = dml.local_response_normalization_grad(x, gradient, device=any_device, **attributes)
    assert result.item() == -np.inf


def test_a_power_of_local_responses_that_float32_has_not_is_zero(any_device: Device) -> None:
    x, gradient = np.array([1e-20, 1], np.float32), np.ones((1, 2, 1, 1), np.float32)
    attributes = {"cross_channel": True, "local_size": 1, "alpha": 1.0, "beta": 1.5, "bias": 0.0}
    result = dml.local_response_normalization_grad(
        x.reshape(1, 2, 1, 1), gradient, device=any_device, **attributes
    )
    assert_within("LOCAL_RESPONSE_NORMALIZATION_GRAD", result.reshape(-1), [np.nan, -2])


SIZES = [2, 3, 4, 5]
RATES = {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}


def _given(type: Any) -> list[Array]:
    """Parameters, moments and gradient."""
    generator = np.random.default_rng(0)
    parameters, first, second, gradient = generator.standard_normal((4, *SIZES))
    return [each.astype(type) for each in (parameters, first, np.abs(second) + 0.01, gradient)]


def _step(number: int) -> Array:
    return np.full((1, 1, 1, 1), number, np.uint32)


def _expected(given: list[Array], step: int, rates: dict[str, float]) -> list[Array]:
    x, m, v, g = (each.astype(np.float64) for each in given)
    rate, beta1, beta2, epsilon = (np.float64(np.float32(each)) for each in rates.values())
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    alpha = np.sqrt(1 - beta2**step) / (1 - beta1**step)
    return [x - rate * alpha * m / (np.sqrt(v) + epsilon), m, v]


@pairwise(
    type=[np.float32, np.float16],
    step=[1, 2, 1000, 2**31 + 1],
    rates=[
        RATES,
        {"learning_rate": 3.0, "beta1": 0.0, "beta2": 0.5, "epsilon": 0.1},
        {"learning_rate": 1e-4, "beta1": 0.99999, "beta2": 0.0, "epsilon": 1e-3},
    ],
)
def test_step(rates: dict[str, float], step: int, type: Any, any_device: Device) -> None:
    given = _given(type)
    results = dml.adam_optimizer(*given, _step(step), **rates, device=any_device)
    for result, expected in zip(results, _expected(given, step, rates), strict=True):
        assert_within("ADAM_OPTIMIZER", result, expected)


def test_the_square_of_a_gradient_may_be_beyond_its_type_where_the_moment_is_not(any_device: Device) -> None:
    given = _given(np.float32)
    given[3] = np.where(given[3] < 0, np.float32(-3e19), np.float32(5e19))
    results = dml.adam_optimizer(*given, _step(2), **RATES, device=any_device)
    for result, expected in zip(results, _expected(given, 2, RATES), strict=True):
        assert_within("ADAM_OPTIMIZER", result, expected)


@types
def test_outputs_may_take_the_place_of_inputs(type: Any, any_device: Device) -> None:
    given = _given(type)
    apart = dml.adam_optimizer(*given, _step(3), **RATES, device=any_device)
    for inputs in ((0, 1, 2), (3, 0, 1)):
        own = [each.copy() for each in given]
        dml.adam_optimizer(
            *own, _step(3), **RATES, device=any_device, out=tuple(own[each] for each in inputs)
        )
        for place, expected in zip(inputs, apart, strict=True):
            np.testing.assert_array_equal(own[place], expected)


@pytest.mark.parametrize("type", FLOATS)
def test_a_step_is_one_kernel_since_it_may_write_over_what_it_reads(type: TensorDataType) -> None:
    x, step = TensorDesc(type, SIZES), TensorDesc(TensorDataType.UINT32, [1, 1, 1, 1])
    assert len(launches(descs.AdamOptimizer(x, x, x, x, step, x, x, x, **RATES))) == 1


def test_step_zero_has_no_result(any_device: Device) -> None:
    given = _given(np.float32)
    parameters, first, second = dml.adam_optimizer(*given, _step(0), **RATES, device=any_device)
    assert np.isnan(parameters).all()
    assert np.isfinite(first).all()
    assert np.isfinite(second).all()
