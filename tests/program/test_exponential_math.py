"""The functions of the CPU by instructions for exponents and by tables, against float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from opendml.program.common_math import at_least, at_most
from opendml.program.functions import exp, expm1, log, log1p_exp, scaled_exp, tanh
from opendml.program.node import FUNCTIONS, Node, Operation, apply, ordered, rebuild, source
from opendml.program.scalar_type import ScalarType
from opendml.program.vector_math import greatest_of, least_of
from opendml.targets.cpu import exponential_math
from opendml.targets.cpu.exponents import has_exponents
from opendml.targets.cpu.machine import assumed, detected
from tests.program.compiled import run_compiled
from tests.program.evaluate import Array, evaluate
from tests.program.sweeps import Case, distance, magnitudes

X = source(0, ScalarType.FLOAT32)
INFINITY, NAN, LEAST, GREATEST = math.inf, math.nan, 2.0**-149, float(np.finfo(np.float32).max)

CASES = {
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


def expanded(root: Node) -> Node:
    """Return the functions below a node in what AVX-512 has."""

    def expansion(node: Node) -> Node:
        return exponential_math.expand(node) if node.operation in FUNCTIONS else node

    return rebuild([root], expansion)[0]


def has_avx512() -> bool:
    """Return whether this processor runs the instructions."""
    return detected().has("avx512f")


@pytest.mark.parametrize("name", CASES)
def test_function_keeps_its_stated_accuracy(name: str) -> None:
    case = CASES[name]
    x = magnitudes(case.lowest, case.highest, step=7 * (case.highest - case.lowest))
    with np.errstate(all="ignore"):
        exact = case.exact(x.astype(np.float64))
    assert float(distance(evaluate(expanded(case.function(X)), x), exact).max()) <= case.ulps


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
def test_special_value(function: Callable[[Node], Node], argument: float, expected: float) -> None:
    with np.errstate(all="ignore"):
        result = evaluate(expanded(function(X)), np.array([argument], np.float32))
    np.testing.assert_array_equal(result, np.array([expected], np.float32))
    assert math.isnan(expected) or np.signbit(result[0]) == np.signbit(np.float32(expected))


def test_pieces_of_tanh_meet() -> None:
    """Every float32 around the edges of the pieces: each belongs to the piece whose entries are looked up."""
    slope, square = exponential_math.TANH_SLOPE, exponential_math.TANH_SQUARE
    edges = [(slope - math.sqrt(slope**2 - 4 * square * (n + 0.5))) / (2 * square) for n in range(7)]
    x = np.concatenate(
        [np.float32(edge) + np.spacing(np.float32(edge)) * np.arange(-64, 65) for edge in edges]
    )
    x = x.astype(np.float32)
    result = evaluate(expanded(tanh(X)), x)
    assert float(distance(result, np.tanh(x.astype(np.float64))).max()) <= CASES["tanh"].ulps


@pytest.mark.parametrize(
    ("argument", "expected"), [(0.0, -INFINITY), (-0.0, -INFINITY), (INFINITY, INFINITY)]
)
def test_logarithm_without_instructions_for_exponents(argument: float, expected: float) -> None:
    x = magnitudes(-8, 8, step=997)
    with assumed(replace(detected(), features="+avx2")), np.errstate(all="ignore"):
        root = expanded(log(X))
        exact = np.log(x.astype(np.float64))
        assert float(distance(evaluate(root, x), exact).max()) <= 0.92
        np.testing.assert_array_equal(evaluate(root, np.array([argument], np.float32)), [expected])
    assert Operation.EXPONENT not in [node.operation for node in ordered([root])]


@pytest.mark.parametrize("exponent", [100.0, -100.0, 88.0, -150.0])
def test_scaled_exponential_has_a_finite_result_where_a_part_of_it_is_not(exponent: float) -> None:
    factor = np.exp2(np.arange(-149, 128, 3.0)).astype(np.float32)
    root = expanded(scaled_exp(X * 0.0 + exponent, X))
    with np.errstate(over="ignore"):
        exact = factor.astype(np.float64) * math.exp(exponent)
        assert float(distance(evaluate(root, factor), exact).max()) <= 1.9


def test_exponential_of_bounded_numbers_has_no_further_bounds() -> None:
    x = at_least(at_most(X, 3.0), -80.0)
    assert [node.operation for node in ordered([expanded(exp(x))])].count(Operation.SELECT) == 2
    assert (greatest_of(x), least_of(x), least_of(at_most(X, 3.0))) == (3.0, -80.0, -INFINITY)


def test_below_zero_the_exponential_has_one_bound() -> None:
    free, bounded = ([node.operation for node in ordered([expanded(exp(x))])] for x in (X, -abs(X)))
    assert free.count(Operation.SELECT) == 2
    assert bounded.count(Operation.SELECT) == 1
    assert Operation.SHIFT_LEFT not in free


@pytest.mark.skipif(not has_avx512(), reason="this processor has no AVX-512")
@pytest.mark.parametrize("lanes", [1, 8, 16, 32])
@pytest.mark.parametrize("name", CASES)
def test_machine_code_gives_the_same_bits(name: str, lanes: int) -> None:
    case = CASES[name]
    x = magnitudes(case.lowest, case.highest, step=30011)
    x = x[: len(x) // 32 * 32]
    root = expanded(case.function(X))
    with assumed(detected()), np.errstate(all="ignore"):
        assert has_exponents()
        result, expected = run_compiled(root, lanes, x), evaluate(root, x)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(result), ~number)
    np.testing.assert_array_equal(result[number].view(np.uint32), expected[number].view(np.uint32))


@pytest.mark.skipif(not has_avx512(), reason="this processor has no AVX-512")
@pytest.mark.parametrize("operation", [Operation.EXPONENT, Operation.SIGNIFICAND])
def test_numbers_are_taken_apart_as_stated(operation: Operation) -> None:
    x: Array = magnitudes(-4, 4, step=99991)
    x = x[: len(x) // 16 * 16]
    root = apply(operation, X)
    with assumed(detected()), np.errstate(all="ignore"):
        np.testing.assert_array_equal(run_compiled(root, 16, x), evaluate(root, x))
