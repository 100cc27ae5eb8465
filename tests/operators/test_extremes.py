"""Attributes that nobody would choose, and numbers at the ends of types: devices agree with the reference."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import Device
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from tests.running import same_bits
from tests.tolerances import assert_within
from tools.distances import ulp_distance
from tools.measure_accuracy import (
    Attributes,
    activation,
    computed,
    exact,
    float32_values,
    read_table,
)

F32 = ScalarType.FLOAT32
EXTREMES = [
    0.0,
    -0.0,
    -0.806,
    -1.0,
    1e-45,
    -1e-45,
    1e-39,
    -1e-39,
    1e-30,
    -1e-30,
    1e30,
    -1e30,
    3.4e38,
    -3.4e38,
]
NOT_FINITE = [math.inf, -math.inf, math.nan]
SPECIAL = np.array(
    [0.0, -0.0, 1e-45, -1e-45, 1.0, -1.0, 3e38, -3e38, math.inf, -math.inf, math.nan], np.float32
)


def values() -> Array:
    """Float32 of all exponents, and where exponentials of small attributes bend."""
    spread = np.linspace(-250, 250, 5001)
    return np.concatenate(
        [
            SPECIAL,
            float32_values(99991),
            *((spread * scale).astype(np.float32) for scale in (1, 1e-43, 1e-28, 1e30)),
        ]
    )


def distance(name: str, attributes: Attributes, device: Device) -> tuple[float, float]:
    """The greatest distance from the definition in float64, and where it is."""
    x = values()
    desc = activation(name, attributes, F32, x.size)
    distances = ulp_distance(computed(desc, x, device), exact(desc, x))
    return float(distances.max()), float(x[distances.argmax()])


def bound(name: str) -> float:
    return float(read_table()[name]["FLOAT32"]["bound"])


@pytest.mark.parametrize("alpha", [*EXTREMES, *NOT_FINITE])
def test_celu_is_within_its_bound_for_every_alpha(alpha: float, device: Device) -> None:
    worst, where = distance("ACTIVATION_CELU", {"alpha": alpha}, device)
    assert worst <= bound("ACTIVATION_CELU"), f"at {where!r}"


@pytest.mark.parametrize("beta", [0.5, *EXTREMES[::3], *NOT_FINITE])
@pytest.mark.parametrize("alpha", [0.2, *EXTREMES[::2], *NOT_FINITE])
def test_hard_sigmoid_is_within_its_bound_for_all_attributes(
    alpha: float, beta: float, device: Device
) -> None:
    worst, where = distance("ACTIVATION_HARD_SIGMOID", {"alpha": alpha, "beta": beta}, device)
    assert worst <= bound("ACTIVATION_HARD_SIGMOID"), f"at {where!r}"


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [
        (0.0, [0, 0, 0, 1, math.inf, math.nan]),
        (-0.0, [0, 0, 0, 1, math.inf, math.nan]),
        (math.inf, [-math.inf, -1, 0, 1, math.inf, math.nan]),
        (-math.inf, [-math.inf, -1, 0, 1, math.inf, math.nan]),
        (math.nan, [math.nan] * 6),
    ],
)
@pytest.mark.parametrize("data_type", [dml.FLOAT32, dml.FLOAT16])
def test_celu_has_limits_where_its_formula_has_no_value(
    alpha: float, expected: list[float], data_type: Any, any_device: Device
) -> None:
    x = np.array(
        [-math.inf, -1, 0, 1, math.inf, math.nan], np.float16 if data_type is dml.FLOAT16 else np.float32
    )
    np.testing.assert_array_equal(dml.activation_celu(x, alpha=alpha, device=any_device), np.array(expected))


def test_celu_of_a_negative_alpha_overflows_only_where_its_product_does(device: Device) -> None:
    x = np.array([-71.6], np.float32)
    for each in (device, "reference"):
        assert -3.07e38 < dml.activation_celu(x, alpha=-0.806, device=each)[0] < -3.06e38


@pytest.mark.parametrize(
    "activation_of_result",
    [dml.descs.ActivationCelu(alpha=a) for a in (0.0, -0.806, 1e-45, math.inf, math.nan)]
    + [
        dml.descs.ActivationHardSigmoid(alpha=a, beta=b)
        for a in (0.0, -1e38, math.inf)
        for b in (0.0, math.inf)
    ],
)
def test_fused_activations_have_the_same_extremes(activation_of_result: Any, device: Device) -> None:
    for a, b in [(SPECIAL, SPECIAL[::-1].copy()), (SPECIAL, np.zeros_like(SPECIAL))]:
        results = [
            dml.element_wise_add1(a, b, fused_activation=activation_of_result, device=each)
            for each in (device, "reference")
        ]
        np.testing.assert_allclose(*results, rtol=3e-7)


@pytest.mark.parametrize("activated", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 1e-45, 1e-39, 1e30, 3.4e38])
@pytest.mark.parametrize("size", [1, 7, 4096])
def test_mean_variance_normalization_takes_every_valid_epsilon_as_the_formula_does(
    size: int, epsilon: float, activated: bool, device: Device
) -> None:
    x = np.random.default_rng(0).normal(size=(5, 1, 1, size)).astype(np.float32)
    x[1], x[2, ..., 0], x[3, ..., -1] = 0.1, math.inf, math.nan
    fused = dml.descs.ActivationHardSigmoid(alpha=0.2, beta=0.5) if activated else None
    results = [
        dml.mean_variance_normalization1(x, axes=[3], epsilon=epsilon, fused_activation=fused, device=each)
        for each in (device, "reference")
    ]
    assert_within("MEAN_VARIANCE_NORMALIZATION1", *results, 1 + np.abs(results[1]))


@pytest.mark.parametrize("epsilon", [-1e-45, -0.25, math.inf, -math.inf, math.nan])
def test_mean_variance_normalization_refuses_an_epsilon_below_zero_or_not_finite(epsilon: float) -> None:
    with pytest.raises(dml.InvalidArgument, match="must be finite and at least 0"):
        dml.mean_variance_normalization1(np.ones((1, 1, 1, 4), np.float32), axes=[3], epsilon=epsilon)


@pytest.mark.parametrize("beta", [1.0, -0.3, 1e-30, -1e30, 0.0, 3e38])
@pytest.mark.parametrize("alpha", [0.7, -4.0, 1000.0, 1e-30, -1e30, 1e38, 0.0])
@pytest.mark.parametrize("name", ["ACTIVATION_PARAMETRIC_SOFTPLUS", "ACTIVATION_SCALED_TANH"])
def test_activations_of_two_factors_are_within_their_bounds(
    name: str, alpha: float, beta: float, device: Device
) -> None:
    worst, where = distance(name, {"alpha": alpha, "beta": beta}, device)
    assert worst <= bound(name), f"at {where!r}"


@pytest.mark.parametrize("beta", [1.0, -0.1, 0.0, 3e38, *NOT_FINITE])
@pytest.mark.parametrize("alpha", [math.inf, -math.inf])
@pytest.mark.parametrize("type", [np.float32, np.float16])
def test_parametric_softplus_of_an_infinite_alpha_is_alpha(
    type: Any, alpha: float, beta: float, any_device: Device
) -> None:
    x = np.array([-math.inf, -5844, -0.0, 1e-3, 5844, math.inf, math.nan], type)
    result = dml.activation_parametric_softplus(x, alpha=alpha, beta=beta, device=any_device)
    expected = np.where(np.isnan(x), x, math.nan if math.isnan(beta) else alpha)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("factor", [0.01, -0.3, 1e-30, 5e-37, -1e30, 1e-40, 3e38])
@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("ACTIVATION_SOFTPLUS", "steepness"),
        ("ACTIVATION_SWISH", "sigmoid_input_scale"),
        ("ACTIVATION_ELU", "alpha"),
    ],
)
def test_activations_of_one_factor_are_within_their_bounds(
    name: str, attribute: str, factor: float, device: Device
) -> None:
    worst, where = distance(name, {attribute: factor}, device)
    assert worst <= bound(name), f"at {where!r}"


@pytest.mark.parametrize("alpha", [1e38, -1e-38, 1e-20])
@pytest.mark.parametrize("gamma", [1e38, 1e-38, -1e20])
def test_scaled_elu_is_within_its_bound_for_great_and_small_factors(
    alpha: float, gamma: float, device: Device
) -> None:
    worst, where = distance("ACTIVATION_SCALED_ELU", {"alpha": alpha, "gamma": gamma}, device)
    assert worst <= bound("ACTIVATION_SCALED_ELU"), f"at {where!r}"


INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def rounded_integer(value: int, type: Any) -> Any:
    """An integer as the nearest number of a float type, halves to even."""
    digits = np.finfo(type).nmant + 1
    shift = max(abs(value).bit_length() - digits, 0)
    whole = round(Fraction(value, 2**shift)) * 2**shift
    with np.errstate(over="ignore"):
        return type(float(whole))


@pytest.mark.parametrize("target", [np.float16, np.float32])
@pytest.mark.parametrize("source", INTEGERS)
def test_integers_are_rounded_once(source: Any, target: Any, any_device: Device) -> None:
    limits = np.iinfo(source)
    near = [sign * ((1 << power) + step) for power in range(64) for sign in (1, -1) for step in range(-2, 3)]
    # Just beyond halves between float32, where float64 has the half itself.
    near += [sign * ((1 << 63) - (1 << 40) + (1 << 38) + step) for sign in (1, -1) for step in (-1, 0, 1)]
    near += [sign * ((1 << 60) + (1 << 36) + step) for sign in (1, -1) for step in (-1, 0, 1)]
    whole = [value for value in near if limits.min <= value <= limits.max]
    result = dml.cast(
        np.array(whole, source),
        output_type=dml.TensorDataType[np.dtype(target).name.upper()],
        device=any_device,
    )
    assert same_bits(result, np.array([rounded_integer(value, target) for value in whole], target))


@pytest.mark.parametrize("type", INTEGERS[:6])
def test_integers_to_whole_float_exponents_are_exact_up_to_where_float32_skips(
    type: Any, any_device: Device
) -> None:
    exponents = [0.0, 1.0, 2.0, 3.0, 63.0, 2.0**24 + 2, 2.0**31 - 128]
    bases = [value for value in (0, 1, 2, 3, -1, -2, -3, 127) if np.iinfo(type).min <= value]
    x = np.repeat(np.array(bases, type), len(exponents))
    y = np.tile(np.array(exponents, np.float32), len(bases))
    bits = np.iinfo(type).bits
    expected = [pow(int(a), int(b), 1 << bits) for a, b in zip(x, y, strict=True)]
    result = dml.element_wise_pow(x, y, device=any_device)
    assert [int(value) % (1 << bits) for value in result] == expected


@pytest.mark.parametrize("type", INTEGERS[:6])
@pytest.mark.parametrize("exponent", [2.0**31, 2.0**32, 2.0**63, 3e38, math.inf])
def test_integers_to_greater_exponents_saturate_and_keep_their_sign(
    type: Any, exponent: float, any_device: Device
) -> None:
    limits = np.iinfo(type)
    bases = [value for value in (0, 1, 2, -1, -3) if limits.min <= value]
    result = dml.element_wise_pow(
        np.array(bases, type), np.full(len(bases), exponent, np.float32), device=any_device
    )
    assert result.tolist() == [value * value if abs(value) < 2 else limits.max for value in bases]


@pytest.mark.parametrize("type", INTEGERS[:6])
@pytest.mark.parametrize("exponent_type", INTEGERS[:6])
def test_integers_to_integer_exponents_are_exact_at_the_ends_of_both_types(
    type: Any, exponent_type: Any, any_device: Device
) -> None:
    limits, exponents = np.iinfo(type), np.iinfo(exponent_type)
    bases = [0, 1, 2, 3, limits.max, limits.min] + ([-1, -2] if limits.min else [])
    powers = [0, 1, 2, 7, exponents.max, exponents.max - 1] + (
        [-1, -2, exponents.min] if exponents.min else []
    )
    x, y = np.repeat(np.array(bases, type), len(powers)), np.tile(np.array(powers, exponent_type), len(bases))

    def power(a: int, b: int) -> int:
        if b < 0:
            return a ** (b & 1) if abs(a) == 1 else 0
        return pow(a, b, 1 << limits.bits)

    expected = [power(int(a), int(b)) % (1 << limits.bits) for a, b in zip(x, y, strict=True)]
    result = dml.element_wise_pow(x, y, device=any_device)
    assert [int(value) % (1 << limits.bits) for value in result] == expected
