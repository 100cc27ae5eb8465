"""Activations: definitions against the formulas of DirectML's pages, devices against definitions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from opendml import Device, TensorDataType, TensorDesc
from opendml.operators.registry import implemented
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.spec.descs import desc_class
from opendml.spec.schema import operator
from tests.running import same_bits
from tools.distances import ulp_distance
from tools.measure_accuracy import (
    CASES,
    Attributes,
    activation,
    computed,
    dense_float32_values,
    every_float16,
    exact,
    float32_values,
    read_table,
)

F16, F32 = ScalarType.FLOAT16, ScalarType.FLOAT32
BOUNDS = read_table()
NAMES = [name for name in CASES if name.startswith("ACTIVATION_") and len(operator(name).tensors) == 2]
PAIRS = [(name, attributes) for name in NAMES for attributes in CASES[name]]
IDS = [
    f"{name.removeprefix('ACTIVATION_')}-{'-'.join(f'{v:.3g}' for v in case.values())}"
    for name, case in PAIRS
]

every_activation = pytest.mark.parametrize("name", NAMES)
every_case = pytest.mark.parametrize(("name", "attributes"), PAIRS, ids=IDS)

SIGN_OF_ZERO_IS_OPEN = {"ACTIVATION_HARD_SIGMOID", "ACTIVATION_HARD_SWISH", "ACTIVATION_RELU"}
"""Of two zeros, a minimum or a maximum is either one."""

Formula = Callable[..., Array]


def normal_distribution(x: Array) -> Array:
    return np.array([math.erfc(-value / math.sqrt(2)) / 2 for value in x])


def softplus(x: Array) -> Array:
    return np.logaddexp(0.0, x)


# As on DirectML's pages, in float64; written so that nothing cancels or overflows on the way.
FORMULAS: dict[str, Formula] = {
    "CELU": lambda x, alpha: np.maximum(0, x) + np.minimum(0, alpha * np.expm1(x / alpha)),
    "ELU": lambda x, alpha: np.where(x < 0, alpha * np.expm1(x), x),
    "GELU": lambda x: x * normal_distribution(x),
    "HARD_SIGMOID": lambda x, alpha, beta: np.maximum(0, np.minimum(alpha * x + beta, 1)),
    "HARD_SWISH": lambda x, alpha, beta: x * np.maximum(0, np.minimum(alpha * x + beta, 1)),
    "IDENTITY": lambda x: x,
    "LEAKY_RELU": lambda x, alpha: np.where(x < 0, alpha * x, x),
    "LINEAR": lambda x, alpha, beta: alpha * x + beta,
    "PARAMETRIC_SOFTPLUS": lambda x, alpha, beta: alpha * softplus(beta * x),
    "RELU": lambda x: np.maximum(0, x),
    "SCALED_ELU": lambda x, alpha, gamma: gamma * np.where(x > 0, x, alpha * np.expm1(x)),
    "SCALED_TANH": lambda x, alpha, beta: alpha * np.tanh(beta * x),
    "SHRINK": lambda x, bias, threshold: np.select(
        [np.isnan(x), x > threshold, x < -threshold], [x, x - bias, x + bias], 0.0
    ),
    "SIGMOID": lambda x: np.exp(-softplus(-x)),
    "SOFTPLUS": lambda x, steepness: softplus(steepness * x) / steepness,
    "SOFTSIGN": lambda x: x / (1 + np.abs(x)),
    "SWISH": lambda x, sigmoid_input_scale: x * np.exp(-softplus(-sigmoid_input_scale * x)),
    "TANH": lambda x: -np.expm1(-2 * x) / (1 + np.exp(-2 * x)),
    "THRESHOLDED_RELU": lambda x, alpha: np.where(x <= alpha, 0.0, x),
}


def bound(name: str, type: ScalarType) -> float:
    return float(BOUNDS[name][type.name]["bound"])


def sampled_float32() -> Array:
    """All exponents and both signs, with more where the functions bend."""
    return np.concatenate([float32_values(4001), dense_float32_values(499, 2.0**-10, 2.0**7)])


def as_float32(attributes: Attributes) -> dict[str, float]:
    """DirectML's attributes are float32."""
    return {key: float(np.float32(value)) for key, value in attributes.items()}


def one_value(device: Device, name: str, x: float, **attributes: float) -> float:
    desc = activation(name, attributes, F32, 1)
    return float(computed(desc, np.array([x], np.float32), device)[0])


def test_every_activation_that_can_run_has_cases_a_formula_and_bounds() -> None:
    assert set(NAMES) <= implemented()
    assert set(NAMES) == {f"ACTIVATION_{name}" for name in FORMULAS}
    assert set(NAMES) <= BOUNDS.keys()


@every_case
def test_the_definition_is_the_documented_formula(name: str, attributes: Attributes) -> None:
    x = np.linspace(-100, 100, 4001, dtype=np.float32)
    defined = exact(activation(name, attributes, F32, x.size), x)
    with np.errstate(all="ignore"):
        expected = FORMULAS[name.removeprefix("ACTIVATION_")](x.astype(np.float64), **as_float32(attributes))
    np.testing.assert_allclose(defined, expected, rtol=1e-12, atol=1e-300)


@every_case
def test_float16_is_within_its_bound_for_every_input(
    name: str, attributes: Attributes, device: Device
) -> None:
    x = every_float16()
    desc = activation(name, attributes, F16, x.size)
    distances = ulp_distance(computed(desc, x, device), exact(desc, x))
    assert distances.max() <= bound(name, F16), f"at {x[distances.argmax()]!r}"


@every_case
def test_float32_is_within_its_bound_over_the_whole_range(
    name: str, attributes: Attributes, device: Device
) -> None:
    x = sampled_float32()
    desc = activation(name, attributes, F32, x.size)
    result, expected = computed(desc, x, device), exact(desc, x)
    distances = ulp_distance(result, expected)
    assert distances.max() <= bound(name, F32), f"at {x[distances.argmax()]!r}"
    zeros = (result == 0) & (expected == 0)
    wrong_sign = zeros & (name not in SIGN_OF_ZERO_IS_OPEN) & (np.signbit(result) != np.signbit(expected))
    assert not wrong_sign.any(), f"sign of zero at {x[wrong_sign][:3]}"


def test_what_is_stated_of_celu_holds_for_an_alpha_that_is_no_power_of_two() -> None:
    """The error depends on the mantissa of alpha: 1.58 was stated when alphas were mostly powers of two."""
    x = -dense_float32_values(61, 0.25, 4.0)
    desc = activation("ACTIVATION_CELU", {"alpha": 1.87}, F32, x.size)
    row = BOUNDS["ACTIVATION_CELU"]["FLOAT32"]
    found = ulp_distance(computed(desc, x), exact(desc, x)).max()
    assert found <= row["measured"] <= row["bound"]


@every_activation
@pytest.mark.parametrize("type", [F16, F32])
def test_measured_accuracies_are_within_the_bounds(name: str, type: ScalarType) -> None:
    row = BOUNDS[name][type.name]
    assert row["measured"] <= row["bound"] + 0.001  # rounded up
    assert row["measured_over"]


@every_case
@pytest.mark.parametrize("type", [F16, F32])
def test_not_a_number_stays_not_a_number(
    name: str, attributes: Attributes, type: ScalarType, device: Device
) -> None:
    x = np.full(40, math.nan, type.numpy)
    assert np.isnan(computed(activation(name, attributes, type, x.size), x, device)).all()


INFINITIES = [
    ("CELU", {"alpha": 1.0}, -1.0, math.inf),
    ("CELU", {"alpha": 0.5}, -0.5, math.inf),
    ("CELU", {"alpha": -1.0}, -math.inf, math.inf),
    ("ELU", {"alpha": 2.0}, -2.0, math.inf),
    ("GELU", {}, math.nan, math.inf),
    ("HARD_SIGMOID", {}, 0.0, 1.0),
    ("HARD_SIGMOID", {"alpha": -1.0}, 1.0, 0.0),
    ("HARD_SWISH", {}, math.nan, math.inf),
    ("IDENTITY", {}, -math.inf, math.inf),
    ("LEAKY_RELU", {}, -math.inf, math.inf),
    ("LEAKY_RELU", {"alpha": 0.0}, math.nan, math.inf),
    ("LINEAR", {"alpha": -2.0, "beta": 1.0}, math.inf, -math.inf),
    ("PARAMETRIC_SOFTPLUS", {"alpha": 2.0, "beta": 1.0}, 0.0, math.inf),
    ("PARAMETRIC_SOFTPLUS", {"alpha": -2.0, "beta": -1.0}, -math.inf, 0.0),
    ("RELU", {}, 0.0, math.inf),
    ("SCALED_ELU", {"alpha": 1.5, "gamma": 2.0}, -3.0, math.inf),
    ("SCALED_TANH", {"alpha": 3.0, "beta": 0.5}, -3.0, 3.0),
    ("SHRINK", {"bias": 1.0}, -math.inf, math.inf),
    ("SIGMOID", {}, 0.0, 1.0),
    ("SOFTPLUS", {}, 0.0, math.inf),
    ("SOFTSIGN", {}, math.nan, math.nan),
    ("SWISH", {}, math.nan, math.inf),
    ("SWISH", {"sigmoid_input_scale": -1.0}, -math.inf, math.nan),
    ("TANH", {}, -1.0, 1.0),
    ("THRESHOLDED_RELU", {}, 0.0, math.inf),
]


@pytest.mark.parametrize(("name", "attributes", "negative", "positive"), INFINITIES)
def test_infinities_follow_the_formula(
    name: str, attributes: Attributes, negative: float, positive: float, device: Device
) -> None:
    results = [one_value(device, f"ACTIVATION_{name}", x, **attributes) for x in (-math.inf, math.inf)]
    np.testing.assert_array_equal(results, [negative, positive])


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("ELU", {}),
        ("IDENTITY", {}),
        ("LEAKY_RELU", {}),
        ("SCALED_ELU", {}),
        ("SCALED_TANH", {}),
        ("SOFTSIGN", {}),
        ("TANH", {}),
    ],
)
def test_functions_through_the_origin_keep_the_sign_of_zero(
    name: str, attributes: Attributes, device: Device
) -> None:
    results = [one_value(device, f"ACTIVATION_{name}", x, **attributes) for x in (-0.0, 0.0)]
    assert [math.copysign(1.0, result) for result in results] == [-1.0, 1.0]
    assert results == [0.0, 0.0]


@pytest.mark.parametrize("name", ["CELU", "ELU", "IDENTITY", "LINEAR", "RELU", "SHRINK", "SOFTSIGN", "TANH"])
def test_denormals_are_not_flushed(name: str, device: Device) -> None:
    least = 2.0**-149
    attributes = {"LINEAR": {"alpha": 1.0, "beta": 0.0}, "SHRINK": {"threshold": 0.0}}.get(name, {})
    x = np.array([least, 3 * least, 2.0**-127] * 30, np.float32)
    desc = activation(f"ACTIVATION_{name}", attributes, F32, x.size)
    assert same_bits(computed(desc, x, device), x)


@pytest.mark.parametrize(
    ("name", "attributes", "x", "expected"),
    [
        ("ELU", {"alpha": 1.0}, -0.0, -0.0),
        ("HARD_SIGMOID", {"alpha": 0.2, "beta": 0.5}, 2.5, 1.0),
        ("SHRINK", {"bias": 0.25, "threshold": 0.5}, 0.5, 0.0),
        ("SHRINK", {"bias": 0.25, "threshold": 0.5}, -0.5, 0.0),
        ("SHRINK", {"bias": 0.25, "threshold": 0.5}, 0.75, 0.5),
        ("SHRINK", {"bias": 0.25, "threshold": 0.5}, -0.75, -0.5),
        ("SHRINK", {"bias": 1.0, "threshold": -1.0}, 0.0, -1.0),
        ("THRESHOLDED_RELU", {"alpha": 1.0}, 1.0, 0.0),
        ("THRESHOLDED_RELU", {"alpha": 1.0}, 1.5, 1.5),
        ("THRESHOLDED_RELU", {"alpha": -1.0}, -0.5, -0.5),
        ("SOFTPLUS", {"steepness": 20.0}, 1.7e37, float(np.float32(1.7e37))),
    ],
)
def test_values_at_the_seams(
    name: str, attributes: Attributes, x: float, expected: float, device: Device
) -> None:
    assert one_value(device, f"ACTIVATION_{name}", x, **attributes) == expected


@every_activation
def test_in_place_gives_the_same_bits(name: str, device: Device) -> None:
    x = sampled_float32()[:20011]
    desc = activation(name, CASES[name][0], F32, x.size)
    separate, memory = computed(desc, x, device), x.copy()
    device.compile_operator(device.create_operator(desc)).bind([memory], [memory]).dispatch()
    assert same_bits(memory, separate)


@every_activation
@pytest.mark.parametrize("rank", range(1, 9))
def test_every_rank_gives_the_same_values(name: str, rank: int, device: Device) -> None:
    sizes = [1, 2, 3, 1, 2, 1, 2, 2][:rank]
    x = np.linspace(-3, 3, math.prod(sizes), dtype=np.float32)
    tensor = TensorDesc(TensorDataType.FLOAT32, sizes)
    desc = desc_class(name)(tensor, tensor, **CASES[name][0])
    flat = activation(name, CASES[name][0], F32, x.size)
    assert same_bits(computed(desc, x, device), computed(flat, x, device))
