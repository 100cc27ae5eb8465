"""Compilation takes linear work, however often something is used twice. `tests.fuzz.growth` counts work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.compiler.materialize import MOST_PARTS_AGAIN
from opendml.compiler.prepare import MOST_VISITED, split
from opendml.program.node import ordered, source
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.runtime.graphs.wiring import _ordered
from opendml.targets.cpu.planning import plan
from tests.fuzz.growth import MOST_GROWTH, STEPS, OnChain, OnFamily, measured
from tests.running import device_kinds

LENGTH = 5000
"""Nodes of a long chain: five times as many as Python calls may be nested."""

Tensor = Any


def program_of(make: Callable[[Tensor], Tensor], times: int, sizes: list[int]) -> Program:
    """The program of a function that is applied so many times."""
    graph = dml.Graph()
    value = graph.input("x", dml.FLOAT32, sizes)
    for _ in range(times):
        value = make(value)
    return graph.compile({"y": value}, "reference")._program


def kernel_count(make: Callable[[Tensor], Tensor], times: int, sizes: list[int]) -> int:
    return len(plan(program_of(make, times, sizes)).kernels.kernels)


@pytest.mark.parametrize("axes", [[0], [0, 1]], ids=["one axis", "two axes"])
def test_joins_of_a_tensor_with_itself_have_kernels_in_proportion_to_the_joins(axes: list[int]) -> None:
    def joined(times: int) -> int:
        graph = dml.Graph()
        value = graph.input("x", dml.FLOAT32, [1, 1])
        for number in range(times):
            value = dml.join([value, value], axis=axes[number % len(axes)])
        return len(plan(graph.compile({"y": value}, "reference")._program).kernels.kernels)

    assert joined(20) <= joined(10) + 10 * MOST_PARTS_AGAIN


def test_doubled_joins_hold_the_elements_of_the_first_tensor_in_order() -> None:
    for device in device_kinds():
        graph = dml.Graph()
        value = graph.input("x", dml.FLOAT32, [3])
        for _ in range(8):
            value = dml.join([value, value], axis=0)
        x = np.array([1, 2, 3], np.float32)
        y = graph.compile({"y": value}, device)(x=x)["y"]
        np.testing.assert_array_equal(np.asarray(y), np.tile(x, 256))


@pytest.mark.parametrize("step", ["mirror", "gather"])
def test_twice_as_long_a_chain_takes_twice_the_work(step: str) -> None:
    OnChain(16, (step,)).check()


@pytest.mark.parametrize("family", ["serialized", "window"])
def test_twice_as_many_of_something_take_twice_the_work(family: str) -> None:
    OnFamily(32, family).check()


def test_kernels_of_many_outputs_of_a_chain_have_nodes_in_proportion_to_the_outputs() -> None:
    def node_count(outputs: int) -> int:
        graph = dml.Graph()
        value, made = graph.input("x", dml.FLOAT32, [8]), {}
        for number in range(outputs):
            value = made[f"y{number}"] = value + value
        kernels = plan(graph.compile(made, "reference")._program).kernels.kernels
        return sum(len(ordered(kernel.values)) for kernel in kernels)

    assert node_count(400) <= 2.2 * node_count(200)


@pytest.mark.parametrize("step", ["mirror", "gather", "join_twice", "butterfly"])
def test_chains_that_double_compute_what_the_reference_does(step: str) -> None:
    rng = np.random.default_rng(3)
    x = (rng.integers(0, 4, (4, 8)) / 4).astype(np.float32)
    results = []
    for device in ("reference", "cpu"):
        graph = dml.Graph()
        first = value = graph.input("x", dml.FLOAT32, [4, 8])
        for _ in range(20):
            value = STEPS[step](value, first)
        results.append(graph.compile({"y": value}, device)(x=x)["y"])
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5)


def test_a_long_chain_is_one_kernel() -> None:
    assert kernel_count(lambda x: x + x, LENGTH, [8]) == 1


def test_a_long_chain_of_joins_has_a_kernel_for_each_part() -> None:
    graph = dml.Graph()
    value = x = graph.input("x", dml.FLOAT32, [1])
    for _ in range(LENGTH // 4):
        value = dml.join([value, x], axis=0)
    program = graph.compile({"y": value}, "reference")._program
    assert len(plan(program).kernels.kernels) <= LENGTH // 4 + 1


def test_what_is_made_of_many_constants_is_prepared_without_listing_them_for_each_node() -> None:
    sizes, count = (8,), 400
    layouts = (packed(ScalarType.FLOAT32, sizes),) * (count + 1)
    total = source(1, ScalarType.FLOAT32, sizes)
    for number in range(2, count + 1):
        total = total + source(number, ScalarType.FLOAT32, sizes)
    result = source(0, ScalarType.FLOAT32, sizes) * total
    program = Program(layouts, layouts[:1], (result,), frozenset(range(1, count + 1)))
    assert split(program)[0].results == (total,)


def test_a_long_chain_that_starts_from_a_constant_is_prepared_as_a_whole() -> None:
    layouts = (packed(ScalarType.FLOAT32, (8,)),) * 2
    last = source(1, ScalarType.FLOAT32, (8,))
    for _ in range(2 * MOST_VISITED):
        last = last + last
    result = source(0, ScalarType.FLOAT32, (8,)) * last
    program = Program(layouts, layouts[:1], (result,), frozenset({1}))
    assert split(program)[0].results == (last,)


def test_nodes_of_a_graph_are_ordered_in_linear_work_in_whatever_order_they_are_given() -> None:
    def lines(count: int) -> int:
        # Each node reads the next one.
        reads = {node: [node + 1] for node in range(count - 1)} | {count - 1: []}
        taken = measured(lambda: len(_ordered(reads)))
        assert _ordered(reads) == list(reversed(range(count)))
        return sum(taken.lines.values())

    assert lines(400) <= MOST_GROWTH * lines(200)
