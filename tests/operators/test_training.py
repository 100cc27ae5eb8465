"""Adam's steps against the formula in float64 and PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import Device, TensorDataType, TensorDesc, descs
from opendml.runtime.memory.host_array import Array
from tests.pairwise import pairwise
from tests.running import FLOATS, launches
from tests.tolerances import assert_within

SIZES = [2, 3, 4, 5]
RATES = {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
types = pytest.mark.parametrize("type", [np.float32, np.float16])


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


def test_a_training_agrees_with_pytorch(any_device: Device) -> None:
    """But for epsilon, which PyTorch adds before it corrects the second moment."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    target = _given(np.float32)[3]
    weights = torch.zeros(SIZES, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=0.01, eps=1e-30)
    state = [np.zeros(SIZES, np.float32) for _ in range(3)]
    for step in range(1, 20):
        optimizer.zero_grad()
        (weights - torch.from_numpy(target.astype(np.float64))).square().sum().backward()
        optimizer.step()
        gradient = 2 * (state[0] - target)
        rates = RATES | {"epsilon": 1e-30}
        dml.adam_optimizer(*state, gradient, _step(step), **rates, device=any_device, out=tuple(state))
    np.testing.assert_allclose(state[0], weights.detach().numpy(), rtol=1e-4, atol=1e-5)
