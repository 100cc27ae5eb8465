"""Element-wise operators on floats against NumPy, SciPy and ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from opendml import ScaleBias
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import IsInfinityMode, RoundingMode
from tests.tolerances import assert_within

from .deviations import Correction, deviation
from .onnx_peer import PEERS, onnx_result
from .peer import DEVICES, FLOATS, Random, computed, exact, examples, seeds


@dataclass(frozen=True)
class Unary:
    """An operator on one tensor, and what computes it in float64 from the same attributes."""

    function: Callable[..., Any]
    low: float = -1e3
    high: float = 1e3
    attributes: Mapping[str, Any] = field(default_factory=dict)
    correction: Correction | None = None


def _erf(x: Array) -> Any:
    return pytest.importorskip("scipy.special", reason="SciPy is not installed").erf(x)


def _away_from_zero(x: Array) -> Any:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _power(x: Array, exponent: float) -> Any:
    """As C's pow, also where NumPy takes the square root for the exponent 1/2, which is NaN at -infinity."""
    return np.power(x, np.full_like(x, exponent))


def _no_nan(operator: str) -> Correction:
    return deviation(operator, "NaN", lambda peer, x: np.where(np.isnan(x), 0.0, peer))


UNARY: dict[str, Unary | list[Unary]] = {
    "ELEMENT_WISE_ABS": Unary(np.abs),
    "ELEMENT_WISE_ACOS": Unary(np.arccos, -1.1, 1.1),
    "ELEMENT_WISE_ACOSH": Unary(np.arccosh, 0.9),
    "ELEMENT_WISE_ASIN": Unary(np.arcsin, -1.1, 1.1),
    "ELEMENT_WISE_ASINH": Unary(np.arcsinh),
    "ELEMENT_WISE_ATAN": Unary(np.arctan),
    "ELEMENT_WISE_ATANH": Unary(np.arctanh, -1.1, 1.1),
    "ELEMENT_WISE_CEIL": Unary(np.ceil),
    "ELEMENT_WISE_CLIP": Unary(lambda x, min, max: x.clip(min, max), attributes={"min": -2.5, "max": 7.0}),
    "ELEMENT_WISE_CONSTANT_POW": [
        Unary(_power, 0.0, 50.0, {"exponent": 2.5}),
        Unary(_power, attributes={"exponent": 3.0}),
        Unary(_power, attributes={"exponent": -2.0}),
        Unary(_power, attributes={"exponent": 0.5}),
    ],
    "ELEMENT_WISE_COS": Unary(np.cos),
    "ELEMENT_WISE_COSH": Unary(np.cosh, -90, 90),
    "ELEMENT_WISE_ERF": Unary(_erf, -4, 4),
    "ELEMENT_WISE_EXP": Unary(np.exp, -110, 90),
    "ELEMENT_WISE_FLOOR": Unary(np.floor),
    "ELEMENT_WISE_IDENTITY": Unary(lambda x: x),
    "ELEMENT_WISE_LOG": Unary(np.log, 0),
    "ELEMENT_WISE_NEGATE": Unary(np.negative),
    "ELEMENT_WISE_RECIP": Unary(np.reciprocal),
    "ELEMENT_WISE_ROUND": [
        Unary(
            lambda x, rounding_mode: np.rint(x),
            attributes={"rounding_mode": RoundingMode.HALVES_TO_NEAREST_EVEN},
        ),
        Unary(lambda x, rounding_mode: np.trunc(x), attributes={"rounding_mode": RoundingMode.TOWARD_ZERO}),
        Unary(
            lambda x, rounding_mode: _away_from_zero(x),
            attributes={"rounding_mode": RoundingMode.TOWARD_INFINITY},
        ),
    ],
    "ELEMENT_WISE_SIGN": Unary(np.sign, correction=_no_nan("ELEMENT_WISE_SIGN")),
    "ELEMENT_WISE_SIN": Unary(np.sin),
    "ELEMENT_WISE_SINH": Unary(np.sinh, -90, 90),
    "ELEMENT_WISE_SQRT": Unary(np.sqrt, 0),
    "ELEMENT_WISE_TAN": Unary(np.tan),
    "ELEMENT_WISE_TANH": Unary(np.tanh, -10, 10),
    "ELEMENT_WISE_THRESHOLD": Unary(lambda x, min: np.maximum(x, min), attributes={"min": -1.5}),
}
UNARY_CASES = [
    pytest.param(operator, case, id=f"{operator}-{number}" if isinstance(cases, list) else operator)
    for operator, cases in UNARY.items()
    for number, case in enumerate(cases if isinstance(cases, list) else [cases])
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("operator", "case"), UNARY_CASES)
@given(random=seeds)
@examples
def test_functions_agree_with_numpy_and_scipy(
    operator: str, case: Unary, device: str, random: Random
) -> None:
    x = random.values(random.of_type(FLOATS), random.shape(), case.low, case.high)
    with np.errstate(all="ignore"):
        expected = case.function(exact(x), **case.attributes)
        if case.correction is not None:
            expected = case.correction(expected, exact(x))
    assert_within(operator, computed(operator, x, device=device, **case.attributes), expected)


SCALED = (
    "ELEMENT_WISE_ABS",
    "ELEMENT_WISE_EXP",
    "ELEMENT_WISE_IDENTITY",
    "ELEMENT_WISE_SIN",
    "ELEMENT_WISE_SQRT",
)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("operator", SCALED)
@given(random=seeds)
@examples
def test_scale_and_bias_come_first(operator: str, device: str, random: Random) -> None:
    # Small multiples of 1/4: the scaled input is exact.
    x = random.generator.integers(-40, 40, random.shape()).astype(np.float32) / np.float32(4)
    case = UNARY[operator]
    assert isinstance(case, Unary)
    with np.errstate(all="ignore"):
        expected = case.function(exact(x) * 0.5 + 2.0)
    result = computed(operator, x, scale_bias=ScaleBias(0.5, 2.0), device=device)
    assert_within(operator, result, expected)


def _mean(a: Array, b: Array) -> Array:
    return (a + b) / 2


BINARY: dict[str, Callable[[Array, Array], Any]] = {
    "ELEMENT_WISE_ADD": np.add,
    "ELEMENT_WISE_ADD1": np.add,
    "ELEMENT_WISE_ATAN_YX": np.arctan2,
    "ELEMENT_WISE_DIFFERENCE_SQUARE": lambda a, b: (a - b) ** 2,
    "ELEMENT_WISE_DIVIDE": np.divide,
    "ELEMENT_WISE_MAX": np.maximum,
    "ELEMENT_WISE_MEAN": _mean,
    "ELEMENT_WISE_MIN": np.minimum,
    "ELEMENT_WISE_MODULUS_FLOOR": np.mod,
    "ELEMENT_WISE_MODULUS_TRUNCATE": np.fmod,
    "ELEMENT_WISE_MULTIPLY": np.multiply,
    "ELEMENT_WISE_POW": np.power,
    "ELEMENT_WISE_SUBTRACT": np.subtract,
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("operator", BINARY)
@given(random=seeds)
@examples
def test_functions_of_two_tensors_agree_with_numpy(operator: str, device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type(FLOATS)
    limits = (-20, 20) if operator == "ELEMENT_WISE_POW" else (-1e3, 1e3)
    a, b = (random.values(dtype, shape, *limits) for _ in range(2))
    with np.errstate(all="ignore"):
        expected = BINARY[operator](exact(a), exact(b))
    assert_within(operator, computed(operator, a, b, device=device), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("operator", ["ELEMENT_WISE_ADD", "ELEMENT_WISE_MAX", "ELEMENT_WISE_POW"])
@given(random=seeds)
@examples
def test_sizes_are_repeated_as_in_numpy(operator: str, device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type(FLOATS)
    a = random.values(dtype, shape, -20, 20)
    ones = [1 if random.generator.integers(2) else size for size in shape]
    b = random.values(dtype, ones[int(random.generator.integers(len(shape))) :], -20, 20)
    with np.errstate(all="ignore"):
        expected = BINARY[operator](exact(a), exact(b))
    assert_within(operator, computed(operator, a, b, device=device), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("operator", ["ELEMENT_WISE_SUBTRACT", "ELEMENT_WISE_MIN", "ELEMENT_WISE_DIVIDE"])
@pytest.mark.parametrize("number", [2.5, -1, 0])
def test_numbers_have_the_type_of_the_array_beside_them(number: float, operator: str, device: str) -> None:
    for name in FLOATS:
        x = Random(0).values(np.dtype(name), (3, 5))
        with np.errstate(all="ignore"):
            expected = BINARY[operator](exact(x), np.float64(number))
            turned = BINARY[operator](np.float64(number), exact(x))
        result = computed(operator, x, number, device=device)
        assert result.dtype == x.dtype
        assert_within(operator, result, expected)
        assert_within(operator, computed(operator, number, x, device=device), turned)


COMPARISONS: dict[str, Callable[[Array, Array], Any]] = {
    "ELEMENT_WISE_LOGICAL_EQUALS": np.equal,
    "ELEMENT_WISE_LOGICAL_GREATER_THAN": np.greater,
    "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL": np.greater_equal,
    "ELEMENT_WISE_LOGICAL_LESS_THAN": np.less,
    "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL": np.less_equal,
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("operator", COMPARISONS)
@given(random=seeds)
@examples
def test_comparisons_agree_with_numpy(operator: str, device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type(FLOATS)
    a, b = (np.round(random.values(dtype, shape, -2, 2)) for _ in range(2))
    result = computed(operator, a, b, device=device)
    assert result.dtype == np.uint8
    assert_within(operator, result, COMPARISONS[operator](a, b))


INFINITIES: dict[IsInfinityMode, Callable[[Array], Array]] = {
    IsInfinityMode.EITHER: np.isinf,
    IsInfinityMode.POSITIVE: np.isposinf,
    IsInfinityMode.NEGATIVE: np.isneginf,
}


@pytest.mark.parametrize("device", DEVICES)
@given(random=seeds)
@examples
def test_tests_for_special_values_agree_with_numpy(device: str, random: Random) -> None:
    x = random.values(random.of_type(FLOATS), random.shape())
    assert_within("ELEMENT_WISE_IS_NAN", computed("ELEMENT_WISE_IS_NAN", x, device=device), np.isnan(x))
    for mode, function in INFINITIES.items():
        result = computed("ELEMENT_WISE_IS_INFINITY", x, infinity_mode=mode, device=device)
        assert_within("ELEMENT_WISE_IS_INFINITY", result, function(x))


@pytest.mark.parametrize("device", DEVICES)
@given(random=seeds)
@examples
def test_if_chooses_as_numpy_does(device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type((*FLOATS, "float64"))
    condition = random.generator.integers(0, 3, shape, np.uint8)
    a, b = (random.values(dtype, shape) for _ in range(2))
    result = computed("ELEMENT_WISE_IF", condition, a, b, device=device)
    np.testing.assert_array_equal(result, np.where(condition, a, b))


@pytest.mark.parametrize("device", DEVICES)
@given(random=seeds)
@examples
def test_the_gradient_of_clipping_is_open_at_both_ends(device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type(FLOATS)
    x = np.round(random.values(dtype, shape, -5, 5, special=False))
    gradient = random.values(dtype, shape, special=False)
    expected = np.where((x > -2) & (x < 3), gradient, 0)
    result = computed("ELEMENT_WISE_CLIP_GRAD", x, gradient, min=-2.0, max=3.0, device=device)
    np.testing.assert_array_equal(result, expected)


ONNX_UNARY = {
    "ELEMENT_WISE_ABS": "Abs",
    "ELEMENT_WISE_ACOS": "Acos",
    "ELEMENT_WISE_ACOSH": "Acosh",
    "ELEMENT_WISE_ASIN": "Asin",
    "ELEMENT_WISE_ASINH": "Asinh",
    "ELEMENT_WISE_ATAN": "Atan",
    "ELEMENT_WISE_ATANH": "Atanh",
    "ELEMENT_WISE_CEIL": "Ceil",
    "ELEMENT_WISE_COS": "Cos",
    "ELEMENT_WISE_COSH": "Cosh",
    "ELEMENT_WISE_ERF": "Erf",
    "ELEMENT_WISE_EXP": "Exp",
    "ELEMENT_WISE_FLOOR": "Floor",
    "ELEMENT_WISE_LOG": "Log",
    "ELEMENT_WISE_NEGATE": "Neg",
    "ELEMENT_WISE_RECIP": "Reciprocal",
    "ELEMENT_WISE_SIGN": "Sign",
    "ELEMENT_WISE_SIN": "Sin",
    "ELEMENT_WISE_SINH": "Sinh",
    "ELEMENT_WISE_SQRT": "Sqrt",
    "ELEMENT_WISE_TAN": "Tan",
    "ELEMENT_WISE_TANH": "Tanh",
}


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("operator", ONNX_UNARY)
@given(random=seeds)
@examples
def test_functions_agree_with_onnx(operator: str, peer: str, random: Random) -> None:
    case = UNARY[operator]
    assert isinstance(case, Unary)
    x = random.values(np.dtype("float32"), random.shape(), case.low, case.high, special=False)
    expected = onnx_result(peer, ONNX_UNARY[operator], [x], "float32")
    assert_within(operator, computed(operator, x, device="reference"), expected, peer=True)
