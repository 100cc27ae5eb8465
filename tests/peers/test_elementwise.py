"""Element-wise operators against NumPy, SciPy, PyTorch and ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from opendml import ScaleBias, TensorDataType
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import IsInfinityMode, RoundingMode
from tests.tolerances import assert_within

from .deviations import Correction, deviation
from .onnx_peer import PEERS, onnx_result
from .peer import FLOATS, INTEGERS, SIGNED, UNSIGNED, Random, computed, exact, on_random


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


@pytest.mark.parametrize(("operator", "case"), UNARY_CASES)
@on_random
def test_functions_agree_with_scipy(operator: str, case: Unary, device: str, random: Random) -> None:
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


@pytest.mark.parametrize("operator", SCALED)
@on_random
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


@pytest.mark.parametrize("operator", BINARY)
@on_random
def test_functions_of_two_tensors_agree_with_numpy(operator: str, device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type(FLOATS)
    limits = (-20, 20) if operator == "ELEMENT_WISE_POW" else (-1e3, 1e3)
    a, b = (random.values(dtype, shape, *limits) for _ in range(2))
    with np.errstate(all="ignore"):
        expected = BINARY[operator](exact(a), exact(b))
    assert_within(operator, computed(operator, a, b, device=device), expected)


COMPARISONS: dict[str, Callable[[Array, Array], Any]] = {
    "ELEMENT_WISE_LOGICAL_EQUALS": np.equal,
    "ELEMENT_WISE_LOGICAL_GREATER_THAN": np.greater,
    "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL": np.greater_equal,
    "ELEMENT_WISE_LOGICAL_LESS_THAN": np.less,
    "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL": np.less_equal,
}


@pytest.mark.parametrize("operator", COMPARISONS)
@on_random
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


@on_random
def test_tests_for_special_values_agree_with_numpy(device: str, random: Random) -> None:
    x = random.values(random.of_type(FLOATS), random.shape())
    assert_within("ELEMENT_WISE_IS_NAN", computed("ELEMENT_WISE_IS_NAN", x, device=device), np.isnan(x))
    for mode, function in INFINITIES.items():
        result = computed("ELEMENT_WISE_IS_INFINITY", x, infinity_mode=mode, device=device)
        assert_within("ELEMENT_WISE_IS_INFINITY", result, function(x))


@on_random
def test_if_chooses_as_numpy_does(device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type((*FLOATS, "float64"))
    condition = random.generator.integers(0, 3, shape, np.uint8)
    a, b = (random.values(dtype, shape) for _ in range(2))
    result = computed("ELEMENT_WISE_IF", condition, a, b, device=device)
    np.testing.assert_array_equal(result, np.where(condition, a, b))


@on_random
def test_the_gradient_of_clipping_is_open_at_both_ends(device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type(FLOATS)
    x = np.round(random.values(dtype, shape, -5, 5, special=False))
    gradient = random.values(dtype, shape, special=False)
    expected = np.where((x > -2) & (x < 3), gradient, 0)
    result = computed("ELEMENT_WISE_CLIP_GRAD", x, gradient, min=-2.0, max=3.0, device=device)
    np.testing.assert_array_equal(result, expected)


Attributes = Mapping[str, float]

TORCH: list[tuple[str, Attributes, Callable[[Any, Any], Any]]] = [
    ("CELU", {"alpha": 1.0}, lambda f, x: f.celu(x)),
    ("CELU", {"alpha": 0.5}, lambda f, x: f.celu(x, alpha=0.5)),
    ("CELU", {"alpha": 2.0}, lambda f, x: f.celu(x, alpha=2.0)),
    ("ELU", {"alpha": 1.0}, lambda f, x: f.elu(x)),
    ("ELU", {"alpha": 1.5}, lambda f, x: f.elu(x, alpha=1.5)),
    ("GELU", {}, lambda f, x: f.gelu(x)),
    ("HARD_SIGMOID", {"alpha": 0.25, "beta": 0.5}, lambda f, x: f.hardsigmoid(x * 1.5)),
    ("HARD_SWISH", {"alpha": 0.25, "beta": 0.5}, lambda f, x: x * f.hardsigmoid(x * 1.5)),
    ("LEAKY_RELU", {"alpha": 0.25}, lambda f, x: f.leaky_relu(x, 0.25)),
    ("PARAMETRIC_SOFTPLUS", {"alpha": 0.5, "beta": 2.0}, lambda f, x: f.softplus(x, beta=2.0, threshold=1e3)),
    ("RELU", {}, lambda f, x: f.relu(x)),
    ("SCALED_ELU", {"alpha": 1.5, "gamma": 2.0}, lambda f, x: 2.0 * f.elu(x, alpha=1.5)),
    ("SCALED_TANH", {"alpha": 2.0, "beta": 0.5}, lambda f, x: 2.0 * (x * 0.5).tanh()),
    ("SHRINK", {"bias": 0.5, "threshold": 0.5}, lambda f, x: f.softshrink(x, 0.5)),
    ("SHRINK", {"bias": 0.0, "threshold": 0.5}, lambda f, x: f.hardshrink(x, 0.5)),
    ("SIGMOID", {}, lambda f, x: f.sigmoid(x)),
    ("SOFTPLUS", {"steepness": 1.0}, lambda f, x: f.softplus(x, threshold=1e3)),
    ("SOFTPLUS", {"steepness": 4.0}, lambda f, x: f.softplus(x, beta=4.0, threshold=1e3)),
    ("SOFTSIGN", {}, lambda f, x: f.softsign(x)),
    ("SWISH", {"sigmoid_input_scale": 1.0}, lambda f, x: f.silu(x)),
    ("SWISH", {"sigmoid_input_scale": 2.0}, lambda f, x: f.silu(x * 2.0) / 2.0),
    ("TANH", {}, lambda f, x: f.tanh(x)),
    ("THRESHOLDED_RELU", {"alpha": 1.0}, lambda f, x: f.threshold(x, 1.0, 0.0)),
]


def _inputs(random: Random, *, special: bool = True) -> Array:
    """Numbers on both sides of all bends, but not next to zero, where peers lose digits by subtracting 1."""
    shape, dtype = random.shape(), random.of_type(FLOATS)
    numbers = random.generator.choice([-1, 1], shape) * random.generator.uniform(0.01, 30, shape)
    if special:
        chosen = random.generator.choice([0.0, -0.0, np.inf, -np.inf, np.nan], shape)
        numbers = np.where(random.generator.random(shape) < 0.2, chosen, numbers)
    return random.laid_out(numbers.astype(dtype))


@pytest.mark.parametrize(("name", "attributes", "peer"), TORCH, ids=[name for name, _, _ in TORCH])
@on_random
def test_activations_agree_with_pytorch(
    name: str, attributes: Attributes, peer: Callable[[Any, Any], Any], device: str, random: Random
) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = _inputs(random)
    if name == "GELU":  # PyTorch adds 1 and erf, which cancel in the tail even in float64.
        x = np.maximum(x, x.dtype.type(-4.0))
    expected = peer(torch.nn.functional, torch.from_numpy(exact(x))).numpy()
    operator = f"ACTIVATION_{name}"
    assert_within(operator, computed(operator, x, device=device, **attributes), expected)


@on_random
def test_slopes_of_each_element_agree_with_pytorch(device: str, random: Random) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = _inputs(random)
    slope = random.values(x.dtype, x.shape, -2, 2, special=False)
    wide, factor = torch.from_numpy(exact(x)), torch.from_numpy(exact(slope))
    expected = torch.where(wide >= 0, wide, wide * factor).numpy()
    operator = "ACTIVATION_PARAMETERIZED_RELU"
    assert_within(operator, computed(operator, x, slope, device=device), expected)


@on_random
def test_the_gradient_of_relu_is_pytorchs(device: str, random: Random) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = _inputs(random, special=False)
    gradient = random.values(x.dtype, x.shape, special=False)
    wide = torch.from_numpy(exact(x)).requires_grad_()
    torch.relu(wide).backward(torch.from_numpy(exact(gradient)))
    result = computed("ACTIVATION_RELU_GRAD", x, gradient, device=device)
    np.testing.assert_array_equal(result, wide.grad.numpy())


_shrunk = deviation("ACTIVATION_SHRINK", "NaN", lambda peer, x: np.where(np.isnan(x), np.nan, peer))


@pytest.mark.parametrize("peer", PEERS)
def test_shrink_keeps_nan_unlike_onnx(peer: str) -> None:
    x = np.array([np.nan, -2, -0.1, 0.1, 2], np.float32)
    expected = _shrunk(onnx_result(peer, "Shrink", [x], "float32", bias=0.5, lambd=1.5), x)
    for device in ("reference", "cpu"):
        result = computed("ACTIVATION_SHRINK", x, device=device, bias=0.5, threshold=1.5)
        np.testing.assert_array_equal(result, expected)


ALL_FLOATS = (*FLOATS, "float64")
TYPES = (*ALL_FLOATS, *INTEGERS)


def _in_range(random: Random, source: str, target: str) -> Array:
    """Values that both types can hold, up to rounding."""
    shape = random.shape()
    if source in ALL_FLOATS:
        low, high = (-1e6, 1e6) if target in ALL_FLOATS else _bounds(target, source)
        return random.values(np.dtype(source), shape, low, high, special=target in ALL_FLOATS)
    return random.full(np.dtype(source), shape)


def _bounds(target: str, source: str) -> tuple[float, float]:
    limits = np.iinfo(target)
    most = 6e4 if source == "float16" else 2.0**62
    return max(float(limits.min), -most), min(float(limits.max), most)


@pytest.mark.parametrize("target", TYPES)
@on_random
def test_casts_agree_with_numpy(target: str, device: str, random: Random) -> None:
    x = _in_range(random, random.of_type(TYPES).name, target)
    with np.errstate(all="ignore"):
        expected = x.astype(target)
    result = computed("CAST", x, out=np.empty(x.shape, target), device=device)
    np.testing.assert_array_equal(result, expected)


def _saturated(x: Array, target: str) -> Array:
    """NaN is 0; beyond the ends of the type are its ends. Python's integers are exact."""
    limits = np.iinfo(target)
    whole = [0 if np.isnan(value) else value for value in x.astype(np.float64).reshape(-1).tolist()]
    bounded = [int(min(max(value, limits.min), limits.max)) for value in whole]
    result: Array = np.array(bounded, target).reshape(x.shape)
    return result


saturated = deviation("CAST", "floats beyond the integer type, NaN", _saturated)


@pytest.mark.parametrize("target", INTEGERS)
@on_random
def test_floats_beyond_an_integer_type_saturate(target: str, device: str, random: Random) -> None:
    dtype = random.of_type(ALL_FLOATS)
    x = random.values(dtype, random.shape(most=60), -1e5, 1e5)
    if dtype.itemsize > 2:
        with np.errstate(over="ignore"):
            x = (x * random.generator.choice([1, 1e5, 1e12, 1e20], x.shape)).astype(dtype)
    result = computed("CAST", x, out=np.empty(x.shape, target), device=device)
    np.testing.assert_array_equal(result, saturated(x, target))


def _half(total: Array) -> Any:
    """Halves are rounded toward zero."""
    return np.sign(total) * (np.abs(total) // 2)


def _all_bits(peer: Array, a: Array, b: Array) -> Array:
    return np.where(b == 0, np.array(-1).astype(a.dtype), peer)


def _dividend(peer: Array, a: Array, b: Array) -> Array:
    return np.where(b == 0, a, peer)


def _corrected(
    operator: str, where: str, function: Callable[[Array, Array], Any], correct: Correction
) -> Callable[[Array, Array], Any]:
    """Return a function of integers as DirectML has it, where that deviates from NumPy."""
    correction = deviation(operator, where, correct)
    return lambda a, b: correction(function(a, b), a, b)


DIVIDE, FLOOR, TRUNCATE = (f"ELEMENT_WISE_{name}" for name in ("DIVIDE", "MODULUS_FLOOR", "MODULUS_TRUNCATE"))
BINARY_INTEGER: dict[str, tuple[tuple[str, ...], Callable[[Array, Array], Any]]] = {
    "ELEMENT_WISE_ADD": (INTEGERS, np.add),
    "ELEMENT_WISE_BIT_AND": (INTEGERS, np.bitwise_and),
    "ELEMENT_WISE_BIT_OR": (INTEGERS, np.bitwise_or),
    "ELEMENT_WISE_BIT_XOR": (INTEGERS, np.bitwise_xor),
    "ELEMENT_WISE_DIFFERENCE_SQUARE": (("int32", "uint32"), lambda a, b: (a - b) * (a - b)),
    "ELEMENT_WISE_LOGICAL_AND": (("uint8", "uint32"), lambda a, b: ((a != 0) & (b != 0)).astype(a.dtype)),
    "ELEMENT_WISE_LOGICAL_OR": (("uint8", "uint32"), lambda a, b: ((a != 0) | (b != 0)).astype(a.dtype)),
    "ELEMENT_WISE_LOGICAL_XOR": (("uint8", "uint32"), lambda a, b: ((a != 0) ^ (b != 0)).astype(a.dtype)),
    "ELEMENT_WISE_MAX": (INTEGERS, np.maximum),
    "ELEMENT_WISE_MEAN": (("int32", "uint32"), lambda a, b: _half(a.astype(np.int64) + b).astype(a.dtype)),
    "ELEMENT_WISE_MIN": (INTEGERS, np.minimum),
    "ELEMENT_WISE_MULTIPLY": (INTEGERS, np.multiply),
    "ELEMENT_WISE_SUBTRACT": (INTEGERS, np.subtract),
    "ACTIVATION_PARAMETERIZED_RELU": (("int8", "int16", "int32"), lambda a, b: np.where(a >= 0, a, a * b)),
    DIVIDE: (
        INTEGERS,
        _corrected(DIVIDE, "integer divided by zero", lambda a, b: (a - np.fmod(a, b)) // b, _all_bits),
    ),
    FLOOR: (INTEGERS, _corrected(FLOOR, "integer modulo zero", np.mod, _dividend)),
    TRUNCATE: (INTEGERS, _corrected(TRUNCATE, "integer modulo zero", np.fmod, _dividend)),
}


@pytest.mark.parametrize("operator", BINARY_INTEGER)
@on_random
def test_arithmetic_wraps_as_numpy_has_it(operator: str, device: str, random: Random) -> None:
    types, function = BINARY_INTEGER[operator]
    shape, dtype = random.shape(), random.of_type(types)
    a, b = (random.full(dtype, shape) for _ in range(2))
    with np.errstate(all="ignore"):
        expected = function(a, b)
    assert_within(operator, computed(operator, a, b, device=device), expected)


@pytest.mark.parametrize("operator", ["ELEMENT_WISE_BIT_SHIFT_LEFT", "ELEMENT_WISE_BIT_SHIFT_RIGHT"])
@on_random
def test_shifts_agree_with_numpy(operator: str, device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type(UNSIGNED)
    a = random.full(dtype, shape)
    b = random.values(dtype, shape, 0, dtype.itemsize * 10)  # from the width on nothing is left
    expected = (np.left_shift if operator.endswith("LEFT") else np.right_shift)(a, b)
    assert_within(operator, computed(operator, a, b, device=device), expected)


@on_random
def test_powers_wrap_as_numpy_has_them(device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type(("int8", "int16", "int32", "uint8", "uint16", "uint32"))
    x = random.values(dtype, shape, -20, 20)
    exponent = random.values(dtype, shape, 0, 9)
    result = computed("ELEMENT_WISE_POW", x, exponent, device=device)
    assert_within("ELEMENT_WISE_POW", result, np.power(x, exponent))


@on_random
def test_bounds_of_floats_are_truncated_for_integers(device: str, random: Random) -> None:
    x = random.full(random.of_type(("int8", "int16", "int32")), random.shape())
    result = computed("ELEMENT_WISE_CLIP", x, min=-2.9, max=90.5, device=device)
    assert_within("ELEMENT_WISE_CLIP", result, x.clip(-2, 90))
    result = computed("ELEMENT_WISE_THRESHOLD", x, min=-2.9, device=device)
    assert_within("ELEMENT_WISE_THRESHOLD", result, np.maximum(x, -2))


UNARY_INTEGER: dict[str, tuple[tuple[str, ...], Callable[[Array], Any]]] = {
    "ELEMENT_WISE_ABS": (SIGNED, np.abs),
    "ELEMENT_WISE_BIT_NOT": (INTEGERS, np.invert),
    "ELEMENT_WISE_IDENTITY": (INTEGERS, lambda x: x),
    "ELEMENT_WISE_LOGICAL_NOT": (("uint8", "uint32"), lambda x: (x == 0).astype(x.dtype)),
    "ELEMENT_WISE_NEGATE": (SIGNED, np.negative),
    "ELEMENT_WISE_SIGN": (INTEGERS, np.sign),
    "ACTIVATION_RELU": (("int8", "int16", "int32"), lambda x: np.maximum(x, 0)),
}


@pytest.mark.parametrize("operator", UNARY_INTEGER)
@on_random
def test_functions_agree_with_numpy(operator: str, device: str, random: Random) -> None:
    types, function = UNARY_INTEGER[operator]
    x = random.full(random.of_type(types), random.shape())
    with np.errstate(all="ignore"):
        expected = function(x)
    result = computed(operator, x, device=device)
    assert result.dtype == x.dtype
    assert_within(operator, result, expected)


@pytest.mark.parametrize("operator", COMPARISONS)
@on_random
def test_comparisons_agree_with_numpy_of_integer(operator: str, device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type(INTEGERS)
    a = random.full(dtype, shape)
    b = np.where(random.generator.random(shape) < 0.3, a, random.full(dtype, shape))
    assert_within(operator, computed(operator, a, b, device=device), COMPARISONS[operator](a, b))


@on_random
def test_clipping_to_typed_bounds_agrees_with_numpy(device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type((*INTEGERS, *FLOATS))
    if dtype.kind == "f":
        x = random.values(dtype, shape, -100, 100)
        low, high = -12.5, 60.25
    else:
        x = random.full(dtype, shape)
        low, high = sorted(random.full(dtype, (2,)).tolist())
    data_type = TensorDataType[dtype.name.upper()]
    attributes = {"min_max_data_type": data_type, "min": low, "max": high}
    result = computed("ELEMENT_WISE_CLIP1", x, device=device, **attributes)
    np.testing.assert_array_equal(result, x.clip(low, high))
    gradient = random.full(dtype, shape) if dtype.kind != "f" else random.values(dtype, shape, special=False)
    expected = np.where((x <= low) | (x >= high), 0, gradient)
    result = computed("ELEMENT_WISE_CLIP_GRAD1", x, gradient, device=device, **attributes)
    np.testing.assert_array_equal(result, expected)


@on_random
def test_set_bits_are_counted_as_numpy_does(device: str, random: Random) -> None:
    x = random.full(random.of_type(UNSIGNED), random.shape())
    assert_within(
        "ELEMENT_WISE_BIT_COUNT", computed("ELEMENT_WISE_BIT_COUNT", x, device=device), np.bitwise_count(x)
    )


@pytest.mark.parametrize("operator", ["AND", "OR", "XOR"])
@on_random
def test_bits_of_floats_are_those_of_their_encoding(operator: str, device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type((*FLOATS, "float64"))
    bits = np.dtype(f"uint{dtype.itemsize * 8}")
    a, b = (random.full(bits, shape) for _ in range(2))
    expected = getattr(np, f"bitwise_{operator.lower()}")(a, b)
    a, b = (np.ascontiguousarray(each).view(dtype) for each in (a, b))
    result = computed(f"ELEMENT_WISE_BIT_{operator}", a, b, device=device)
    np.testing.assert_array_equal(np.ascontiguousarray(result).view(bits), expected)
