"""The functions of the CPU's table_math against float64, as tests/program/test_vector_math has the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from opendml.program.functions import erf, gaussian_error_linear_unit
from opendml.program.node import FUNCTIONS, TABLE_SIZE, Node, Operation, ordered, rebuild, source
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.machine import assumed, machine
from opendml.targets.cpu.table_math import expand, expand_narrow, looked_up
from opendml.targets.cpu.tables import has_tables, table_size
from tests.program.compiled import run_compiled
from tests.program.evaluate import Array, evaluate
from tests.program.sweeps import Case, distance, magnitudes
from tests.program.test_vector_math import exact_erf, exact_gelu

INFINITY, NAN = math.inf, math.nan
X = source(0, ScalarType.FLOAT32)
CASES = {
    "erf": Case(erf, exact_erf, 1.02, -6, 2),
    "gelu": Case(gaussian_error_linear_unit, exact_gelu, 2.6, -8, 4),
}
MACHINES = {
    8: replace(machine(), features="+fma,+f16c,+avx2", vector_bytes=32),
    16: replace(machine(), features="+fma,+f16c,+avx2,+avx512f", vector_bytes=64),
}
"""Processors, by the entries of a table."""

needs_tables = pytest.mark.skipif(
    not has_tables(), reason="this processor does not look up tables in registers"
)


def in_tables(root: Node, expansion: Callable[[Node], Node] = expand) -> Node:
    """Return the value in basic operations and LOOKUP."""
    return rebuild([root], lambda node: expansion(node) if node.operation in FUNCTIONS else node)[0]


@pytest.mark.parametrize("size", MACHINES)
@pytest.mark.parametrize("name", CASES)
def test_function_keeps_its_stated_accuracy(name: str, size: int) -> None:
    case = CASES[name]
    x = magnitudes(case.lowest, case.highest, step=11 * (case.highest - case.lowest))
    with assumed(MACHINES[size]):
        root = in_tables(case.function(X))
    x = np.concatenate([x, around_edges(root)])
    with np.errstate(all="ignore"):
        exact = case.exact(x.astype(np.float64))
    assert distance(evaluate(root, x), exact).max() <= case.ulps


def around_edges(root: Node) -> Array:
    """Return the numbers around those where the index into the tables changes."""
    (index,) = {node.operands[0] for node in ordered([root]) if node.operation is Operation.LOOKUP}
    low, high = np.array([2.0**-20, 8.0], np.float32).view(np.int32)
    coarse = np.arange(low, high, 1 << 12, dtype=np.int32)
    indices = evaluate(index, coarse.view(np.float32))
    edges = coarse[:-1][indices[1:] != indices[:-1]]
    assert len(edges) >= 7
    dense = (edges[:, None] + np.arange(1 << 12, dtype=np.int32)).ravel().view(np.float32)
    return np.concatenate([dense, -dense])


@pytest.mark.parametrize("name", CASES)
def test_float16_function_adds_a_sixteenth_of_the_last_place_to_the_rounding_at_most(name: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    x = x[np.isfinite(x)]
    result = evaluate(in_tables(CASES[name].function(X), expand_narrow), x.astype(np.float32))
    result = result.astype(np.float16).astype(np.float64)
    exact = CASES[name].exact(x.astype(np.float64))
    _, exponent = np.frexp(exact)
    assert np.abs((result - exact) / np.ldexp(1.0, np.maximum(exponent, -13) - 11)).max() <= 0.5625


@pytest.mark.parametrize("size", MACHINES)
@pytest.mark.parametrize("expansion", [expand, expand_narrow], ids=["float32", "float16"])
@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
        ("erf", 0.0, 0.0),
        ("erf", -0.0, -0.0),
        ("erf", INFINITY, 1.0),
        ("erf", -INFINITY, -1.0),
        ("gelu", 0.0, 0.0),
        ("gelu", -0.0, -0.0),
        ("gelu", INFINITY, INFINITY),
        ("gelu", 1000.0, 1000.0),
        ("gelu", -INFINITY, NAN),
        ("gelu", -1000.0, -0.0),
        *((name, NAN, NAN) for name in CASES),
    ],
)
def test_special_value(
    name: str, argument: float, expected: float, expansion: Callable[[Node], Node], size: int
) -> None:
    with assumed(MACHINES[size]):
        root = in_tables(CASES[name].function(X), expansion)
    result = evaluate(root, np.array([argument], np.float32))[0]
    if expansion is expand_narrow:
        result = result.astype(np.float16)
    assert result == expected or (math.isnan(result) and math.isnan(expected))
    assert math.isnan(expected) or math.copysign(1.0, result) == math.copysign(1.0, expected)


@needs_tables
@pytest.mark.parametrize("lanes", [1, 4, 8, 16, 32])
@pytest.mark.parametrize("name", CASES)
def test_machine_code_gives_the_same_bits(name: str, lanes: int) -> None:
    case = CASES[name]
    x = magnitudes(case.lowest, case.highest, step=30011)
    x = x[: len(x) // 32 * 32]
    root = in_tables(case.function(X))
    result, expected = run_compiled(root, lanes, x), evaluate(root, x)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(result), ~number)
    np.testing.assert_array_equal(result[number].view(np.uint32), expected[number].view(np.uint32))


@needs_tables
def test_only_the_low_bits_of_an_index_count() -> None:
    table = tuple(float(number) for number in range(TABLE_SIZE))
    index = Node(Operation.BITCAST, ScalarType.INT32, (), (X,))
    x = np.array([-1, 0, 7, 8, 15, 16, 1 << 30, -(1 << 31)], np.int32)
    result = run_compiled(looked_up(table, index), 8, x.view(np.float32))
    assert result.tolist() == [7, 0, 7, 0, 7, 0, 0, 0]


@needs_tables
def test_table_of_twice_as_many_entries_is_looked_up_where_registers_hold_it() -> None:
    size = table_size()
    index = np.arange(-16, 16, dtype=np.int32)
    root = looked_up(tuple(map(float, range(size))), Node(Operation.BITCAST, ScalarType.INT32, (), (X,)))
    assert run_compiled(root, 16, index.view(np.float32)).tolist() == (index % size).tolist()


def test_processor_without_avx2_has_no_tables() -> None:
    with assumed(replace(machine(), features="+fma,+f16c,-avx2", vector_bytes=16)):
        assert not has_tables()


def test_function_without_tables_is_expanded_as_for_other_processors() -> None:
    root = in_tables(Node(Operation.EXPONENTIAL, X.type, (), (X,)))
    assert not [node for node in ordered([root]) if node.operation in (*FUNCTIONS, Operation.LOOKUP)]
