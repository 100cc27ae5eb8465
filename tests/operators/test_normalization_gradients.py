"""Batch normalization of a training, and gradients of normalizations, against float64 and differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import Device, descs
from opendml.runtime.memory.host_array import Array
from tests.operators.gradients import by_differences
from tests.pairwise import pairwise
from tests.tolerances import assert_within

EPSILON = 0.1
types = pytest.mark.parametrize("type", [np.float32, np.float16])
# The sizes of the input and of the statistics.
GROUPS = [
    ([4, 3, 5, 2], [1, 3, 1, 1]),
    ([6], [1]),
    ([2, 3, 4], [2, 1, 4]),
    ([3, 2], [3, 2]),
    ([2, 1, 3, 2, 2, 1, 2, 2], [1, 1, 3, 1, 2, 1, 1, 2]),
]
groups = pytest.mark.parametrize(("sizes", "kept"), GROUPS, ids=str)


def values(seed: int, sizes: Sequence[int], type: Any) -> Array:
    return (np.random.default_rng(seed).standard_normal(sizes) + 1).astype(type)


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
def test_gradients_with_given_statistics(
    sizes: list[int], kept: list[int], type: Any, any_device: Device
) -> None:
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
    x, incoming, scale = values(0, sizes, type), values(1, sizes, type), values(2, kept, type)
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


@pairwise(
    type=[np.float32, np.float16],
    across=[False, True],
    size=[1, 2, 3, 40],
)
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
