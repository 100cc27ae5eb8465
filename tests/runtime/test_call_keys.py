"""Plans that calls share, and arguments that are told apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import InvalidArgument
from opendml.runtime.calls import immediate
from opendml.runtime.calls.plans import Plans
from opendml.runtime.memory.host_array import Array
from tests.running import same_bits

ONES = np.ones(4, np.float32)


@pytest.fixture(autouse=True)
def plans(monkeypatch: pytest.MonkeyPatch) -> Plans[Any]:
    """The plans of the test alone."""
    plans: Plans[Any] = Plans()
    monkeypatch.setattr(immediate, "_plans", plans)
    return plans


def linear(alpha: Any, beta: Any = 2.0) -> Array:
    return dml.activation_linear(ONES, alpha=alpha, beta=beta)


@pytest.mark.parametrize("alias", [True, np.True_, "1.0", "0x1.0p+0", (1.0,), b"\0\0\0\0\0\0\xf0?"], ids=repr)
def test_what_is_no_number_is_refused_also_after_the_number_that_it_equals(alias: Any) -> None:
    linear(1.0)
    with pytest.raises(InvalidArgument, match=r"activation_linear\.alpha"):
        linear(alias)


def test_axes_and_flags_are_told_apart_by_their_types() -> None:
    x = np.ones((2, 2), np.float32)
    dml.reduce(x, function=dml.ReduceFunction.SUM, axes=[1])
    for axes in ([True], [1.0], (1.0,)):
        with pytest.raises(InvalidArgument, match=r"reduce\.axes\[0\]"):
            dml.reduce(x, function=dml.ReduceFunction.SUM, axes=axes)  # type: ignore[arg-type]
    number = int(dml.ReduceFunction.SUM)
    assert dml.reduce(x, function=number, axes=[1]).tolist() == [[2], [2]]  # type: ignore[call-overload]
    for function in (float(number), True):
        with pytest.raises(InvalidArgument, match=rf"reduce\.function: {function}"):
            dml.reduce(x, function=function, axes=[1])  # type: ignore[call-overload]
    dml.cumulative_summation(x, axis=0, has_exclusive_sum=True)
    with pytest.raises(InvalidArgument, match=r"cumulative_summation\.has_exclusive_sum: 1\.0;"):
        dml.cumulative_summation(x, axis=0, has_exclusive_sum=1.0)  # type: ignore[arg-type]
    dml.fill_value_constant(value_data_type=dml.INT8, value=1, sizes=[1, 2])
    for sizes in ([True, 2], [1.0, 2]):
        with pytest.raises(InvalidArgument, match=r"fill_value_constant\.sizes"):
            dml.fill_value_constant(value_data_type=dml.INT8, value=1, sizes=sizes)
    with pytest.raises(InvalidArgument, match=r"fill_value_constant\.value: 1.0"):
        dml.fill_value_constant(value_data_type=dml.INT8, value=1.0, sizes=[1, 2])


def test_zeros_within_a_fused_activation_are_told_apart() -> None:
    x = -np.zeros(4, np.float32)
    for beta in (-0.0, 0.0, -0.0):
        fused = dml.descs.ActivationLinear(alpha=1.0, beta=beta)
        result = dml.element_wise_add1(x, x, fused_activation=fused)
        assert np.signbit(result).all() == (math.copysign(1.0, beta) < 0)


def test_zeros_of_either_sign_are_told_apart_in_every_order() -> None:
    for beta in (0.0, -0.0, 0, np.float32(-0.0)):
        result = dml.activation_linear(-np.zeros(4, np.float32), alpha=1.0, beta=beta)
        assert np.signbit(result).all() == (math.copysign(1.0, beta) < 0)


def test_all_that_means_the_same_shares_a_plan(plans: Plans[Any]) -> None:
    for nan in (math.nan, float("nan"), -math.nan, np.float32("nan"), np.float64("nan")):
        assert np.isnan(linear(1.0, nan)).all()
    assert len(plans._table) == 1
    for one in (1, 1.0, np.float32(1), np.int64(1), np.array(1.0)):
        assert same_bits(linear(one), 3 * ONES)
    assert len(plans._table) == 2
    x = np.ones((2, 2), np.float32)
    for function in (dml.ReduceFunction.SUM, "SUM", "sum"):
        for axes in ([1], (1,), range(1, 2), np.array([1])):
            dml.reduce(x, function=function, axes=axes)
    assert len(plans._table) == 3
    for _ in range(2):
        dml.element_wise_add1(x, x, fused_activation=dml.descs.ActivationLinear(alpha=1, beta=math.nan))
    assert len(plans._table) == 4


def test_an_attribute_that_changes_in_place_is_read_anew() -> None:
    x, axes = np.ones((2, 3), np.float32), [0]
    assert dml.reduce(x, function="SUM", axes=axes).shape == (1, 3)
    axes[0] = 1
    assert dml.reduce(x, function="SUM", axes=axes).shape == (2, 1)
