"""The functions of vector_math against float64, in units of the last place of the exact result's float32."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from opendml.errors import Unsupported
from opendml.program.functions import erf, exp, expm1, gaussian_error_linear_unit, log, log1p, log1p_exp, tanh
from opendml.program.node import FUNCTIONS, Node, Operation, ordered, source
from opendml.program.scalar_type import ScalarType
from opendml.program.vector_math import expand
from tests.program.compiled import run_compiled
from tests.program.evaluate import Array, evaluate, expanded
from tests.program.sweeps import Case, greatest_distance, magnitudes

INFINITY, NAN, LEAST, GREATEST = math.inf, math.nan, 2.0**-149, float(np.finfo(np.float32).max)
X = source(0, ScalarType.FLOAT32)
Y = source(1, ScalarType.FLOAT32)


def exact_erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


def exact_normal_distribution(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erfc, 1, 1)(x / -math.sqrt(2)), np.float64) / 2


def exact_gelu(x: Array) -> Array:
    return x * exact_normal_distribution(x)


CASES = {
    "exp": Case(exp, np.exp, 0.90, -12, 7),
    "expm1": Case(expm1, np.expm1, 1.08, -12, 7),
    "log": Case(log, np.log, 0.92, -8, 8),
    "log1p": Case(log1p, np.log1p, 1.48, -8, 8),
    "tanh": Case(tanh, np.tanh, 1.09, -8, 4),
    "erf": Case(erf, exact_erf, 1.08, -6, 2),
    "log1p_exp": Case(lambda x: log1p_exp(-abs(x)), lambda x: np.log1p(np.exp(-np.abs(x))), 2.2, -8, 7),
    "gelu": Case(gaussian_error_linear_unit, exact_gelu, 2.96, -8, 4),
}


@pytest.mark.parametrize("name", CASES)
def test_function_keeps_its_stated_accuracy(name: str) -> None:
    case = CASES[name]
    x = magnitudes(case.lowest, case.highest, step=7 * (case.highest - case.lowest))
    with np.errstate(all="ignore"):
        exact = case.exact(x.astype(np.float64))
    assert greatest_distance(case.function(X), exact, x) <= case.ulps


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
        *((name, NAN, NAN) for name in CASES),
    ],
)
def test_special_value(name: str, argument: float, expected: float) -> None:
    result = evaluate(expanded(CASES[name].function(X)), np.array([argument], np.float32))[0]
    assert result == expected or (math.isnan(result) and math.isnan(expected))
    assert math.isnan(expected) or math.copysign(1.0, result) == math.copysign(1.0, expected)


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
    assert all(node.type.is_float for node in nodes if node.operation is Operation.CONVERT)


@pytest.mark.parametrize("operation", [operation for operation in Operation if operation in FUNCTIONS])
def test_other_types_are_unsupported(operation: Operation) -> None:
    wide = source(0, ScalarType.FLOAT64)
    with pytest.raises(Unsupported, match=f"{operation.name} of FLOAT64"):
        expand(Node(operation, wide.type, (), (wide,)))


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("name", CASES)
def test_machine_code_gives_the_same_bits(name: str, lanes: int) -> None:
    case = CASES[name]
    x = magnitudes(case.lowest, case.highest, step=30011)
    x = x[: len(x) // 16 * 16]
    root = expanded(case.function(X))
    result, expected = run_compiled(root, lanes, x), evaluate(root, x)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(result), ~number)
    np.testing.assert_array_equal(result[number].view(np.uint32), expected[number].view(np.uint32))
