"""Functions of floats: their accuracy, special values and machine code."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from opendml.errors import Unsupported
from opendml.program.common_math import at_least, at_most
from opendml.program.functions import (
    acos,
    acosh,
    asin,
    asinh,
    atan2,
    atanh,
    cos,
    cosh,
    erf,
    exp,
    expm1,
    gaussian_error_linear_unit,
    log,
    log1p,
    log1p_exp,
    power,
    scaled_exp,
    sin,
    sinh,
    tan,
    tanh,
)
from opendml.program.node import FUNCTIONS, Node, Operation, apply, ordered, rebuild, source
from opendml.program.scalar_type import ScalarType, number_in
from opendml.program.vector_math import expand, greatest_of, least_of
from opendml.targets.cpu import exponential_math
from opendml.targets.cpu.exponents import has_exponents
from opendml.targets.cpu.machine import assumed, detected
from tests.program.compiled import assert_same_bits, run_compiled
from tests.program.evaluate import Array, evaluate, expanded
from tests.program.sweeps import Case, distance, greatest_distance, magnitudes
from tests.running import same_bits
from tools.distances import ulp_distance

INFINITY, NAN, LEAST, GREATEST = math.inf, math.nan, 2.0**-149, float(np.finfo(np.float32).max)
HALF_PI, PI = float(np.float32(math.pi / 2)), float(np.float32(math.pi))
X = source(0, ScalarType.FLOAT32)
Y = source(1, ScalarType.FLOAT32)


def exact_erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


def exact_normal_distribution(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erfc, 1, 1)(x / -math.sqrt(2)), np.float64) / 2


def exact_gelu(x: Array) -> Array:
    return x * exact_normal_distribution(x)


ZEROS = (0.0, -0.0, LEAST, -LEAST)
CASES = {
    "exp": Case(exp, np.exp, 0.90, -12, 7),
    "expm1": Case(expm1, np.expm1, 1.08, -12, 7),
    "log": Case(log, np.log, 0.92, -8, 8),
    "log1p": Case(log1p, np.log1p, 1.48, -8, 8),
    "tanh": Case(tanh, np.tanh, 1.09, -8, 4),
    "erf": Case(erf, exact_erf, 1.08, -6, 2),
    "log1p_exp": Case(lambda x: log1p_exp(-abs(x)), lambda x: np.log1p(np.exp(-np.abs(x))), 2.2, -8, 7),
    "gelu": Case(gaussian_error_linear_unit, exact_gelu, 2.96, -8, 4),
    "sin": Case(sin, np.sin, 1.53, -8, 17),
    "cos": Case(cos, np.cos, 1.53, -8, 17),
    "tan": Case(tan, np.tan, 2.86, -8, 17),
    "asin": Case(asin, np.arcsin, 1.68, -8, 0),
    "acos": Case(acos, np.arccos, 1.16, -8, 0),
    "atan": Case(lambda x: atan2(x, 1.0), np.arctan, 1.57, -8, 4),
    "sinh": Case(sinh, np.sinh, 1.56, -8, 7),
    "cosh": Case(cosh, np.cosh, 1.85, -8, 7),
    "asinh": Case(asinh, np.arcsinh, 1.37, -8, 14),
    "acosh": Case(acosh, np.arccosh, 1.55, 0, 14),
    "atanh": Case(atanh, np.arctanh, 1.35, -8, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_function_keeps_its_stated_accuracy(name: str) -> None:
    case = CASES[name]
    assert case.worst(19) <= case.ulps


@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
        ("exp", 0.0, 1.0),
        ("exp", -0.0, 1.0),
        ("exp", INFINITY, INFINITY),
        ("exp", -INFINITY, 0.0),
        ("exp", 88.72284, INFINITY),
        ("exp", -103.27893, LEAST),
        ("exp", -103.97209, 0.0),
        ("expm1", 0.0, 0.0),
        ("expm1", -0.0, -0.0),
        ("expm1", INFINITY, INFINITY),
        ("expm1", -INFINITY, -1.0),
        ("expm1", LEAST, LEAST),
        ("expm1", -LEAST, -LEAST),
        ("log", 0.0, -INFINITY),
        ("log", -0.0, -INFINITY),
        ("log", 1.0, 0.0),
        ("log", -LEAST, NAN),
        ("log", -INFINITY, NAN),
        ("log", INFINITY, INFINITY),
        ("log1p", 0.0, 0.0),
        ("log1p", -0.0, -0.0),
        ("log1p", -1.0, -INFINITY),
        ("log1p", -1.0000001, NAN),
        ("log1p", -INFINITY, NAN),
        ("log1p", INFINITY, INFINITY),
        ("log1p", -LEAST, -LEAST),
        ("tanh", 0.0, 0.0),
        ("tanh", -0.0, -0.0),
        ("tanh", INFINITY, 1.0),
        ("tanh", -INFINITY, -1.0),
        ("tanh", -LEAST, -LEAST),
        ("erf", 0.0, 0.0),
        ("erf", -0.0, -0.0),
        ("erf", INFINITY, 1.0),
        ("erf", -GREATEST, -1.0),
        ("gelu", 0.0, 0.0),
        ("gelu", -0.0, -0.0),
        ("gelu", INFINITY, INFINITY),
        ("gelu", -INFINITY, NAN),
        ("gelu", -1000.0, -0.0),
        ("acos", 1.0, 0.0),
        ("acos", -1.0, PI),
        ("acos", 0.0, HALF_PI),
        ("asin", 1.0, HALF_PI),
        ("asin", -1.0, -HALF_PI),
        ("atan", INFINITY, HALF_PI),
        ("atan", -INFINITY, -HALF_PI),
        ("acosh", 1.0, 0.0),
        ("acosh", INFINITY, INFINITY),
        ("asinh", -INFINITY, -INFINITY),
        ("asinh", INFINITY, INFINITY),
        ("atanh", 1.0, INFINITY),
        ("atanh", -1.0, -INFINITY),
        ("cos", -0.0, 1.0),
        ("cosh", 0.0, 1.0),
        ("cosh", -INFINITY, INFINITY),
        ("cosh", GREATEST, INFINITY),
        ("sinh", -GREATEST, -INFINITY),
        ("sinh", INFINITY, INFINITY),
        *((name, x, NAN) for name in ("sin", "cos", "tan") for x in (INFINITY, -INFINITY)),
        *((name, x, NAN) for name in ("acos", "asin", "atanh") for x in (1.0000001, -2.0, INFINITY)),
        *(("acosh", x, NAN) for x in (0.99999994, 0.0, -3.0, -INFINITY)),
        *((name, x, x) for name in ("sin", "tan", "asin", "atan", "sinh", "asinh", "atanh") for x in ZEROS),
        *((name, NAN, NAN) for name in CASES),
    ],
)
def test_special_value(name: str, argument: float, expected: float) -> None:
    result = evaluate(expanded(CASES[name].function(X)), np.array([argument], np.float32))
    assert same_bits(result, np.array([expected], np.float32))


def pairs(low: float, high: float) -> tuple[Array, Array]:
    """Many pairs whose products lie between the bounds, of all sizes."""
    random = np.random.default_rng(7)
    product = random.uniform(low, high, 200_000)
    factor = np.exp2(random.uniform(-20.0, 20.0, product.size)).astype(np.float32)
    return (product / factor).astype(np.float32), factor


@pytest.mark.parametrize(
    ("argument", "exact"),
    [
        (X * Y, lambda x, y: x * y),
        (-(X * Y), lambda x, y: -(x * y)),
        (-abs(X * Y), lambda x, y: -np.abs(x * y)),
        (X / Y, lambda x, y: x / y),
    ],
    ids=["product", "negated product", "magnitude of a product", "quotient"],
)
@pytest.mark.parametrize(
    ("function", "exact_function", "low", "high", "ulps"),
    [
        (exp, np.exp, -103.0, 80.0, 1.10),
        (expm1, np.expm1, -20.0, 80.0, 1.10),
        (tanh, np.tanh, -9.0, 9.0, 1.10),
    ],
    ids=["exp", "expm1", "tanh"],
)
def test_rounding_of_a_product_is_not_magnified(
    function: Callable[[Node], Node],
    exact_function: Callable[[Array], Array],
    low: float,
    high: float,
    ulps: float,
    argument: Node,
    exact: Callable[[Array, Array], Array],
) -> None:
    x, factor = pairs(low, high)
    y = 1.0 / factor if argument.operation is Operation.DIVIDE else factor
    y = y.astype(np.float32)
    value = exact(x.astype(np.float64), y.astype(np.float64))
    inside = value < 88.0
    assert greatest_distance(function(argument), exact_function(value[inside]), x[inside], y[inside]) <= ulps


@pytest.mark.parametrize("argument", [X * Y, X / Y], ids=["product", "quotient"])
@pytest.mark.parametrize(
    ("function", "lower", "upper"), [(exp, 0.0, INFINITY), (expm1, -1.0, INFINITY), (tanh, -1.0, 1.0)]
)
def test_argument_that_overflows_gives_the_limit(
    function: Callable[[Node], Node], lower: float, upper: float, argument: Node
) -> None:
    values = np.array([-INFINITY, -GREATEST, -1e30, 1e30, GREATEST, INFINITY], np.float32)
    factor = np.full_like(values, 1e-20 if argument.operation is Operation.DIVIDE else 1e20)
    result = evaluate(expanded(function(argument)), values, factor)
    assert result.tolist() == [lower] * 3 + [upper] * 3


def test_quotient_by_the_least_divisors_is_not_nan() -> None:
    x = np.array([0.0, 2.0**-149, -(2.0**-148), 1.0, -1.0], np.float32)
    divisor = np.full_like(x, 2.0**-149)
    assert evaluate(expanded(expm1(X / Y)), x, divisor).tolist() == pytest.approx(
        [0.0, math.expm1(1), math.expm1(-2), INFINITY, -1.0], rel=1e-6
    )


def test_product_with_a_power_of_two_is_exact_and_costs_nothing() -> None:
    assert len(ordered([expanded(exp(X * 0.5))])) < len(ordered([expanded(exp(X * 0.3))]))


@pytest.mark.parametrize("name", CASES)
def test_no_float_becomes_an_integer_by_conversion(name: str) -> None:
    nodes = ordered([expanded(CASES[name].function(X))])
    assert not [node for node in nodes if node.operation in FUNCTIONS]
    conversions = [node for node in nodes if node.operation is Operation.CONVERT]
    assert all(node.type.is_float or not node.operands[0].type.is_float for node in conversions)


@pytest.mark.parametrize("operation", [operation for operation in Operation if operation in FUNCTIONS])
def test_other_types_are_unsupported(operation: Operation) -> None:
    wide = source(0, ScalarType.FLOAT64)
    with pytest.raises(Unsupported, match=f"{operation.name} of FLOAT64"):
        expand(Node(operation, wide.type, (), (wide,)))


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("name", CASES)
def test_machine_code_gives_the_same_bits(name: str, lanes: int) -> None:
    assert_same_bits(expanded(CASES[name].function(X)), lanes, CASES[name].magnitudes(30011))


CASES_EXPONENTIAL = {
    "exp": Case(exp, np.exp, 0.90, -12, 7),
    "log": Case(log, np.log, 0.76, -8, 8),
    "tanh": Case(tanh, np.tanh, 0.93, -8, 4),
    "log1p_exp": Case(lambda x: log1p_exp(-abs(x)), lambda x: np.log1p(np.exp(-np.abs(x))), 2.2, -8, 7),
    "expm1 below zero": Case(lambda x: expm1(-abs(x)), lambda x: np.expm1(-np.abs(x)), 0.91, -12, 7),
}


@pytest.fixture(autouse=True)
def avx512() -> Iterator[None]:
    """Expand functions as if the processor had AVX-512."""
    with assumed(replace(detected(), features="+avx2,+avx512f")):
        yield


def expanded_exponential(root: Node) -> Node:
    """Return the functions below a node in what AVX-512 has."""

    def expansion(node: Node) -> Node:
        return exponential_math.expand(node) if node.operation in FUNCTIONS else node

    return rebuild([root], expansion)[0]


def has_avx512() -> bool:
    """Return whether this processor runs the instructions."""
    return detected().has("avx512f")


@pytest.mark.parametrize("name", CASES_EXPONENTIAL)
def test_function_keeps_its_stated_accuracy_of_exponential(name: str) -> None:
    case = CASES_EXPONENTIAL[name]
    assert case.worst(19, expanded_exponential) <= case.ulps


@pytest.mark.parametrize(
    ("function", "argument", "expected"),
    [
        *[(exp, *pair) for pair in ((INFINITY, INFINITY), (-INFINITY, 0.0), (-103.9, LEAST), (-104.1, 0.0))],
        *[(exp, *pair) for pair in ((GREATEST, INFINITY), (-GREATEST, 0.0), (-0.0, 1.0), (NAN, NAN))],
        *[(log, *pair) for pair in ((0.0, -INFINITY), (-0.0, -INFINITY), (INFINITY, INFINITY), (1.0, 0.0))],
        *[(log, *pair) for pair in ((-1.0, NAN), (-INFINITY, NAN), (-LEAST, NAN), (NAN, NAN))],
        *[(log, *pair) for pair in ((LEAST, math.log(LEAST)), (GREATEST, math.log(GREATEST)))],
        *[(tanh, *pair) for pair in ((INFINITY, 1.0), (-INFINITY, -1.0), (-0.0, -0.0), (NAN, NAN))],
        *[(tanh, *pair) for pair in ((LEAST, LEAST), (-LEAST, -LEAST), (GREATEST, 1.0), (9.02, 1.0))],
        (lambda x: expm1(at_most(x, 0.0)), -0.0, -0.0),
        (lambda x: expm1(at_most(x, 0.0)), -INFINITY, -1.0),
        (lambda x: expm1(at_most(x, 0.0)), NAN, NAN),
        (lambda x: expm1(at_most(x, 0.0)), -LEAST, -LEAST),
    ],
)
def test_exponential_values(function: Callable[[Node], Node], argument: float, expected: float) -> None:
    with np.errstate(all="ignore"):
        result = evaluate(expanded_exponential(function(X)), np.array([argument], np.float32))
    assert same_bits(result, np.array([expected], np.float32))


def test_pieces_of_tanh_meet() -> None:
    """Every float32 around the edges of the pieces: each belongs to the piece whose entries are looked up."""
    slope, square = exponential_math.TANH_SLOPE, exponential_math.TANH_SQUARE
    edges = [(slope - math.sqrt(slope**2 - 4 * square * (n + 0.5))) / (2 * square) for n in range(7)]
    x = np.concatenate(
        [np.float32(edge) + np.spacing(np.float32(edge)) * np.arange(-64, 65) for edge in edges]
    )
    x = x.astype(np.float32)
    result = evaluate(expanded_exponential(tanh(X)), x)
    assert float(distance(result, np.tanh(x.astype(np.float64))).max()) <= CASES_EXPONENTIAL["tanh"].ulps


@pytest.mark.parametrize(
    ("argument", "expected"), [(0.0, -INFINITY), (-0.0, -INFINITY), (INFINITY, INFINITY)]
)
def test_logarithm_without_instructions_for_exponents(argument: float, expected: float) -> None:
    x = magnitudes(-8, 8, step=997)
    with assumed(replace(detected(), features="+avx2")), np.errstate(all="ignore"):
        root = expanded_exponential(log(X))
        exact = np.log(x.astype(np.float64))
        assert float(distance(evaluate(root, x), exact).max()) <= 0.92
        np.testing.assert_array_equal(evaluate(root, np.array([argument], np.float32)), [expected])
    assert Operation.EXPONENT not in [node.operation for node in ordered([root])]


@pytest.mark.parametrize("exponent", [100.0, -100.0, 88.0, -150.0])
def test_scaled_exponential_has_a_finite_result_where_a_part_of_it_is_not(exponent: float) -> None:
    factor = np.exp2(np.arange(-149, 128, 3.0)).astype(np.float32)
    root = expanded_exponential(scaled_exp(X * 0.0 + exponent, X))
    with np.errstate(over="ignore"):
        exact = factor.astype(np.float64) * math.exp(exponent)
        assert float(distance(evaluate(root, factor), exact).max()) <= 1.9


def test_exponential_of_bounded_numbers_has_no_further_bounds() -> None:
    x = at_least(at_most(X, 3.0), -80.0)
    assert [node.operation for node in ordered([expanded_exponential(exp(x))])].count(Operation.SELECT) == 2
    assert (greatest_of(x), least_of(x), least_of(at_most(X, 3.0))) == (3.0, -80.0, -INFINITY)


def test_below_zero_the_exponential_has_one_bound() -> None:
    free, bounded = (
        [node.operation for node in ordered([expanded_exponential(exp(x))])] for x in (X, -abs(X))
    )
    assert free.count(Operation.SELECT) == 2
    assert bounded.count(Operation.SELECT) == 1
    assert Operation.SHIFT_LEFT not in free


@pytest.mark.skipif(not has_avx512(), reason="this processor has no AVX-512")
@pytest.mark.parametrize("lanes", [1, 8, 16, 32])
@pytest.mark.parametrize("name", CASES_EXPONENTIAL)
def test_machine_code_gives_the_same_bits_of_exponential(name: str, lanes: int) -> None:
    case = CASES_EXPONENTIAL[name]
    root = expanded_exponential(case.function(X))
    with assumed(detected()):
        assert has_exponents()
        assert_same_bits(root, lanes, case.magnitudes(30011))


@pytest.mark.skipif(not has_avx512(), reason="this processor has no AVX-512")
@pytest.mark.parametrize("operation", [Operation.EXPONENT, Operation.SIGNIFICAND])
def test_numbers_are_taken_apart_as_stated(operation: Operation) -> None:
    x: Array = magnitudes(-4, 4, step=99991)
    x = x[: len(x) // 16 * 16]
    root = apply(operation, X)
    with assumed(detected()), np.errstate(all="ignore"):
        np.testing.assert_array_equal(run_compiled(root, 16, x), evaluate(root, x))


@pytest.mark.parametrize(
    ("low", "high", "ulps"),
    [(0.69, 1.45, 1.70), (0.999, 1.001, 1.0), (1.5, 3e38, 1.41), (1.2e-38, 0.6, 1.41), (1e-45, 1.1e-38, 1.0)],
)
def test_power_is_exact_up_to_the_greatest_results(low: float, high: float, ulps: float) -> None:
    random = np.random.default_rng(5)
    x = np.exp2(random.uniform(math.log2(low), math.log2(high), 300_000)).astype(np.float32)
    x = x[x != 1]
    y = (random.uniform(-152, 129, x.size) / np.log2(x.astype(np.float64))).astype(np.float32)
    exact = np.power(x.astype(np.float64), y)
    assert greatest_distance(power(X, Y), exact, x, y) <= ulps


def test_angle_of_a_point_is_exact_in_all_quarters() -> None:
    random = np.random.default_rng(6)
    y, x = (random.normal(0, 1, 300_000) * np.exp2(random.uniform(-9, 9, 300_000)) for _ in range(2))
    y, x = y.astype(np.float32), x.astype(np.float32)
    assert greatest_distance(atan2(X, Y), np.arctan2(y.astype(np.float64), x), y, x) <= 1.78


PRODUCT = expanded(scaled_exp(source(0, ScalarType.FLOAT32, (1,)), source(1, ScalarType.FLOAT32, (1,))))


@pytest.mark.parametrize(("low", "high", "power"), [(-100, 88, 0), (-200, 0, 100), (0, 200, -100)])
def test_products_of_exponentials_are_within_their_bound(low: float, high: float, power: int) -> None:
    generator = np.random.default_rng(0)
    x = generator.uniform(low, high, 300_000).astype(np.float32)
    factor = np.ldexp(generator.uniform(1, 2, x.size), generator.integers(power - 20, power + 20, x.size))
    factor = factor.astype(np.float32)
    assert ulp_distance(evaluate(PRODUCT, x, factor), np.exp(x.astype(np.float64)) * factor).max() <= 1.9


def test_beyond_all_numbers_the_product_is_zero_or_infinite() -> None:
    x = np.array([-np.inf, -300, 300, np.inf], np.float32)
    for factor in (3e38, 1e-45, -3e38, -1e-45):
        result = evaluate(PRODUCT, x, np.full(4, factor, np.float32))
        np.testing.assert_array_equal(result, np.array([0, 0, np.inf, np.inf]) * np.sign(factor))


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        (2.9, "INT8", 2),
        (-2.9, "INT8", -2),
        (-2.9, "UINT8", 0),
        (1e30, "INT32", 2**31 - 1),
        (math.inf, "UINT64", 2**64 - 1),
        (-math.inf, "INT64", -(2**63)),
        (math.nan, "INT16", 0),
        (2**63 + 1, "UINT64", 2**63 + 1),
        (0.1, "FLOAT32", 0.100000001490116119384765625),
        (0.1, "FLOAT16", 0.0999755859375),
        (1e6, "FLOAT16", math.inf),
        (3, "FLOAT64", 3.0),
    ],
)
def test_numbers_are_rounded_or_truncated_in_range(value: float, type: str, expected: float) -> None:
    result = number_in(value, ScalarType[type])
    assert result == expected
    assert isinstance(result, float) == type.startswith("FLOAT")


@pytest.mark.parametrize("type", ["FLOAT16", "FLOAT32", "FLOAT64"])
def test_whole_numbers_beyond_all_floats_overflow(type: str) -> None:
    with pytest.raises(OverflowError):
        number_in(10**400, ScalarType[type])
