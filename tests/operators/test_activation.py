"""Activations against their formulas, and attributes and numbers at the ends of types."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import Device, TensorDataType, TensorDesc
from opendml.operators.registry import implemented
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.spec.descs import desc_class
from opendml.spec.enums import ReduceFunction
from opendml.spec.schema import operator
from tests.running import same_bits
from tests.tolerances import assert_within
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
def test_float16_is_within_its_bound_everywhere(name: str, attributes: Attributes, device: Device) -> None:
    x = every_float16()
    desc = activation(name, attributes, F16, x.size)
    distances = ulp_distance(computed(desc, x, device), exact(desc, x))
    assert distances.max() <= bound(name, F16), f"at {x[distances.argmax()]!r}"


@every_case
def test_float32_is_within_its_bound_everywhere(name: str, attributes: Attributes, device: Device) -> None:
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
def test_not_a_number_stays_so(name: str, attributes: Attributes, type: ScalarType, device: Device) -> None:
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
def test_functions_through_zero_keep_its_sign(name: str, attributes: Attributes, device: Device) -> None:
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
def test_seams_are_met(name: str, attributes: Attributes, x: float, expected: float, device: Device) -> None:
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


BOUND = 0.5625
"""As in tolerances.json: the functions take a sixteenth of the last place, the rounding a half."""


@pytest.mark.parametrize("beta", [0.0, 0.75, -0.75, 3.0])
def test_local_responses_of_infinities_are_infinity_over_infinity(beta: float, device: Device) -> None:
    x = np.ones((1, 5, 1, 40), np.float16)
    x[0, 1], x[0, 4] = np.inf, 60000.0
    results = [
        dml.local_response_normalization(
            x, cross_channel=True, local_size=3, alpha=1e30, beta=beta, bias=1.0, device=each
        )
        for each in (device, "reference")
    ]
    assert same_bits(*results)


def test_logarithm_of_a_sum_of_exponentials_may_cancel(device: Device) -> None:
    x = (np.linspace(-0.75, -0.65, 1001)[:, None] + np.zeros(2)).astype(np.float16)
    results = [
        dml.reduce(x, function=ReduceFunction.LOG_SUM_EXP, axes=[1], device=each)
        for each in (device, "reference")
    ]
    assert ulp_distance(results[0], results[1].astype(np.float64)).max() <= 1


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("CELU", {"alpha": -1e-30}),
        ("CELU", {"alpha": 1e30}),
        ("CELU", {"alpha": -700.0}),
        ("ELU", {"alpha": 1e38}),
        ("ELU", {"alpha": 1e-7}),
        ("PARAMETRIC_SOFTPLUS", {"alpha": 1e38, "beta": 1.0}),
        ("PARAMETRIC_SOFTPLUS", {"alpha": -1e30, "beta": 0.01}),
        ("PARAMETRIC_SOFTPLUS", {"alpha": 1e-30, "beta": -1e30}),
        ("SCALED_ELU", {"alpha": 1e38, "gamma": 1e-38}),
        ("SCALED_ELU", {"alpha": 1e-30, "gamma": 1e30}),
        ("SCALED_TANH", {"alpha": 1e30, "beta": 1e-30}),
        ("SCALED_TANH", {"alpha": 1e-5, "beta": 1e30}),
        ("SOFTPLUS", {"steepness": 1e-30}),
        ("SOFTPLUS", {"steepness": 0.001}),
        ("SOFTPLUS", {"steepness": 1e30}),
        ("SWISH", {"sigmoid_input_scale": 1e-30}),
        ("SWISH", {"sigmoid_input_scale": -0.001}),
        ("SWISH", {"sigmoid_input_scale": 1e30}),
    ],
)
def test_attributes_far_from_one_do_no_harm(name: str, attributes: Attributes, device: Device) -> None:
    x = every_float16()
    desc = activation(f"ACTIVATION_{name}", attributes, ScalarType.FLOAT16, x.size)
    distances = ulp_distance(computed(desc, x, device), exact(desc, x))
    assert distances.max() <= BOUND, f"at {x[distances.argmax()]!r}"


F32_EXTREME = ScalarType.FLOAT32
NOT_FINITE = [math.inf, -math.inf, math.nan]
SPECIAL = np.array(
    [0.0, -0.0, 1e-45, -1e-45, 1.0, -1.0, 3e38, -3e38, math.inf, -math.inf, math.nan], np.float32
)


# Of both signs where a zero is of one.
TINY_TO_HUGE = [sign * number for number in (0.0, 1e-45, 1e-39, 1e-30, 1e30, 3.4e38) for sign in (1, -1)]
FACTORS = (0.01, -0.3, 1e-30, 5e-37, -1e30, 1e-40, 3e38)
FEW = [0.5, *TINY_TO_HUGE[::3], *NOT_FINITE]
EXTREMES: list[tuple[str, dict[str, float]]] = [
    *(("CELU", {"alpha": alpha}) for alpha in (-0.806, -1.0, *TINY_TO_HUGE, *NOT_FINITE)),
    *(("HARD_SIGMOID", {"alpha": alpha, "beta": beta}) for alpha, beta in product(FEW, FEW)),
    *(
        (name, {"alpha": alpha, "beta": beta})
        for name in ("PARAMETRIC_SOFTPLUS", "SCALED_TANH")
        for alpha in (0.7, -4.0, 1000.0, 1e-30, -1e30, 1e38, 0.0)
        for beta in (1.0, -0.3, 1e-30, -1e30, 0.0, 3e38)
    ),
    *(
        (name, {attribute: factor})
        for name, attribute in (("SOFTPLUS", "steepness"), ("SWISH", "sigmoid_input_scale"), ("ELU", "alpha"))
        for factor in FACTORS
    ),
    *(
        ("SCALED_ELU", {"alpha": alpha, "gamma": gamma})
        for alpha, gamma in product((1e38, -1e-38, 1e-20), (1e38, 1e-38, -1e20))
    ),
]


def values() -> Array:
    """Return FLOAT32 of all exponents, and numbers where exponentials of small attributes bend."""
    spread = np.linspace(-250, 250, 5001)
    bends = ((spread * scale).astype(np.float32) for scale in (1, 1e-43, 1e-28, 1e30))
    return np.concatenate([SPECIAL, float32_values(99991), *bends])


@pytest.mark.parametrize(("name", "attributes"), EXTREMES, ids=str)
def test_activations_are_within_their_bounds(name: str, attributes: Attributes, device: Device) -> None:
    x, name = values(), f"ACTIVATION_{name}"
    desc = activation(name, attributes, F32_EXTREME, x.size)
    distances = ulp_distance(computed(desc, x, device), exact(desc, x))
    assert distances.max() <= read_table()[name]["FLOAT32"]["bound"], f"at {x[distances.argmax()]!r}"


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


@pytest.mark.parametrize("beta", [1.0, -0.1, 0.0, 3e38, *NOT_FINITE])
@pytest.mark.parametrize("alpha", [math.inf, -math.inf])
@pytest.mark.parametrize("type", [np.float32, np.float16])
def test_softplus_of_infinite_alpha_is_alpha(
    type: Any, alpha: float, beta: float, any_device: Device
) -> None:
    x = np.array([-math.inf, -5844, -0.0, 1e-3, 5844, math.inf, math.nan], type)
    result = dml.activation_parametric_softplus(x, alpha=alpha, beta=beta, device=any_device)
    expected = np.where(np.isnan(x), x, math.nan if math.isnan(beta) else alpha)
    np.testing.assert_array_equal(result, expected)


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
def test_integers_to_whole_float_exponents_are_exact(type: Any, any_device: Device) -> None:
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
def test_integers_to_great_exponents_saturate(type: Any, exponent: float, any_device: Device) -> None:
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
