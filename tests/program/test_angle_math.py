"""Angles, hyperbolic functions and powers against float64, as test_vector_math has the others."""

from __future__ import annotations

import math

import numpy as np
import pytest

from opendml.program.functions import (
    acos,
    acosh,
    asin,
    asinh,
    atan2,
    atanh,
    cos,
    cosh,
    power,
    sin,
    sinh,
    tan,
)
from opendml.program.node import FUNCTIONS, Operation, ordered, source
from opendml.program.scalar_type import ScalarType
from tests.program.compiled import run_compiled
from tests.program.evaluate import evaluate, expanded
from tests.program.sweeps import Case, greatest_distance, magnitudes

INFINITY, NAN, LEAST, GREATEST = math.inf, math.nan, 2.0**-149, float(np.finfo(np.float32).max)
HALF_PI, PI = float(np.float32(math.pi / 2)), float(np.float32(math.pi))
X = source(0, ScalarType.FLOAT32)
Y = source(1, ScalarType.FLOAT32)

CASES = {
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
    x = magnitudes(case.lowest, case.highest, step=9 * max(case.highest - case.lowest, 4))
    with np.errstate(all="ignore"):
        exact = case.exact(x.astype(np.float64))
    assert greatest_distance(case.function(X), exact, x) <= case.ulps


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


@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
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
        *((name, NAN, NAN) for name in CASES),
        *((name, x, x) for name in CASES if "cos" not in name for x in (0.0, -0.0, LEAST, -LEAST)),
    ],
)
def test_special_value(name: str, argument: float, expected: float) -> None:
    result = evaluate(expanded(CASES[name].function(X)), np.array([argument], np.float32))[0]
    assert result == expected or (math.isnan(result) and math.isnan(expected))
    assert math.isnan(expected) or math.copysign(1.0, result) == math.copysign(1.0, expected)


@pytest.mark.parametrize("name", CASES)
def test_no_float_becomes_an_integer_by_conversion(name: str) -> None:
    nodes = ordered([expanded(CASES[name].function(X))])
    assert not [node for node in nodes if node.operation in FUNCTIONS]
    conversions = [node for node in nodes if node.operation is Operation.CONVERT]
    assert all(node.type.is_float or not node.operands[0].type.is_float for node in conversions)


@pytest.mark.parametrize("name", CASES)
def test_machine_code_gives_the_same_bits(name: str) -> None:
    case = CASES[name]
    x = magnitudes(case.lowest, case.highest, step=30011)
    x = x[: len(x) // 16 * 16]
    root = expanded(case.function(X))
    result, expected = run_compiled(root, 16, x), evaluate(root, x)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(result), ~number)
    np.testing.assert_array_equal(result[number].view(np.uint32), expected[number].view(np.uint32))
