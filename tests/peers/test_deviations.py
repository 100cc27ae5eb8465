"""Tests of the table of deviations and of the judgement of results."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from opendml.runtime.memory.host_array import Array
from opendml.spec.schema import operators
from tests.tolerances import assert_within

from .deviations import deviation, names, rows, used
from .peer import Random


def test_every_deviation_of_the_table_is_tested() -> None:
    for path in Path(__file__).parent.glob("test_*.py"):
        importlib.import_module(f"tests.peers.{path.stem}")
    assert {(name, row.where) for row in rows() for name in names(row)} == used


def test_the_table_names_operators_and_is_filled_in() -> None:
    for row in rows():
        assert set(names(row)) <= set(operators())
        assert all(row)


def test_a_deviation_needs_a_line_in_the_table() -> None:
    with pytest.raises(KeyError, match="no line for ELEMENT_WISE_ADD at NaN"):
        deviation("ELEMENT_WISE_ADD", "NaN", lambda result: result)


ONE = np.ones((2, 3), np.float32)
STEP = 2.0**-23


@pytest.mark.parametrize("steps", [0.0, 0.5, -0.5])
def test_results_within_the_promise_pass(steps: float) -> None:
    assert_within("ACTIVATION_TANH", ONE, ONE.astype(np.float64) + steps * STEP)


@pytest.mark.parametrize(
    "expected",
    [ONE + 5 * STEP, np.full_like(ONE, np.nan), np.full_like(ONE, np.inf), -ONE, ONE[:1]],
    ids=["far", "NaN", "infinity", "sign", "sizes"],
)
def test_others_fail(expected: Array) -> None:
    with pytest.raises(AssertionError):
        assert_within("ACTIVATION_TANH", ONE, expected.astype(np.float64))


@pytest.mark.parametrize("difference", [0.0, STEP, -4 * STEP])
def test_results_of_greater_ones_may_be_as_far_as_these_say(difference: float) -> None:
    exact = [1.0, 2.0**-20 + difference]
    small = np.array([1.0, 2.0**-20], np.float32)
    assert_within("GRU", small, exact)
    assert_within("GEMM", small, exact, np.ones(2))


@pytest.mark.parametrize("expected", [9 * STEP, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("operator", ["GRU", "GEMM"])
def test_results_that_are_farther_fail(operator: str, expected: float) -> None:
    small = np.array([1.0, 0.0], np.float32)
    assert_within(operator, small, small, np.ones(2))
    with pytest.raises(AssertionError, match="instead of"):
        assert_within(operator, small, [1.0, expected], np.ones(2))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 0.0])
@pytest.mark.parametrize("operator", ["ACTIVATION_TANH", "GRU", "GEMM"])
def test_what_is_not_finite_and_zeros_are_equal_to_themselves(operator: str, number: float) -> None:
    same = np.full(3, number, np.float32)
    assert_within(operator, same, same, np.zeros(3))
    with pytest.raises(AssertionError, match="instead of"):
        assert_within(operator, np.ones(3, np.float32), same, np.zeros(3))


def test_a_peer_has_a_tolerance_of_its_own() -> None:
    far = ONE + 6 * np.float32(STEP)
    assert_within("ACTIVATION_TANH", far, ONE, peer=True)
    with pytest.raises(AssertionError, match="2 allowed"):
        assert_within("ACTIVATION_TANH", far, ONE)


def test_what_states_no_tolerance_is_rounded_once() -> None:
    assert_within("ELEMENT_WISE_CLIP1", ONE, ONE + STEP / 2)
    with pytest.raises(AssertionError, match=r"0\.501 allowed"):
        assert_within("ELEMENT_WISE_CLIP1", ONE, ONE + np.float64(STEP) * 0.6)


def test_integers_must_be_equal() -> None:
    assert_within("CAST", np.array([3]), np.array([3]))
    with pytest.raises(AssertionError):
        assert_within("CAST", np.array([3]), np.array([4]))


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
