"""The judgement that all comparisons with other systems rest on."""

from __future__ import annotations

import numpy as np
import pytest

from opendml.runtime.memory.host_array import Array

from .peer import Random, assert_close, assert_near

ONE = np.ones((2, 3), np.float32)
STEP = 2.0**-23


@pytest.mark.parametrize("steps", [0.0, 0.5, -0.5])
def test_results_within_the_promise_pass(steps: float) -> None:
    assert_close("ACTIVATION_TANH", ONE, ONE.astype(np.float64) + steps * STEP)


@pytest.mark.parametrize(
    "expected",
    [ONE + 5 * STEP, np.full_like(ONE, np.nan), np.full_like(ONE, np.inf), -ONE, ONE[:1]],
    ids=["far", "NaN", "infinity", "sign", "sizes"],
)
def test_others_fail(expected: Array) -> None:
    with pytest.raises(AssertionError):
        assert_close("ACTIVATION_TANH", ONE, expected.astype(np.float64))


@pytest.mark.parametrize("difference", [0.0, STEP, -2 * STEP])
def test_results_near_to_the_expected_ones_pass(difference: float) -> None:
    small = np.full((3,), 2.0**-20, np.float32)
    assert_near(small, small.astype(np.float64) + difference, 2.0, 1.0)


@pytest.mark.parametrize("expected", [5 * STEP, np.nan, np.inf, -np.inf])
def test_results_that_are_not_near_fail(expected: float) -> None:
    with pytest.raises(AssertionError, match="instead of"):
        assert_near(np.zeros(3, np.float32), np.full(3, expected), 2.0, 1.0)


def test_integers_must_be_equal() -> None:
    assert_close("CAST", np.array([3]), np.array([3]))
    with pytest.raises(AssertionError):
        assert_close("CAST", np.array([3]), np.array([4]))


@pytest.mark.parametrize("seed", range(6))
def test_layouts_keep_the_values(seed: int) -> None:
    random = Random(seed)
    packed = random.generator.normal(size=random.shape())
    np.testing.assert_array_equal(random.laid_out(packed), packed)


def test_random_values_have_every_special_one() -> None:
    values = Random(0).values(np.dtype("float32"), (1000,))
    assert np.isnan(values).any()
    assert np.isinf(values).any()
    assert (values == 0).any()
    assert np.signbit(values[values == 0]).any()
    assert (np.abs(values[values != 0]) < np.finfo(np.float32).tiny).any()


def test_random_integers_reach_both_ends() -> None:
    values = Random(0).full(np.dtype("int16"), (1000,))
    assert values.min() == -(2**15)
    assert values.max() == 2**15 - 1
