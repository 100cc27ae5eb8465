"""Values that several kernels need: stored once, or computed by each of them."""

from __future__ import annotations

import numpy as np
import pytest

from opendml.compiler.repeated import LEAST_ELEMENTS
from opendml.program.functions import maximum, reduce_sum, rounded, tanh
from opendml.program.node import Node, Operation, contraction, convert, ordered, scan
from opendml.program.scalar_type import ScalarType
from opendml.program.view import permuted
from tests.programs import assert_agrees, kernels_of, sources

ARRAYS = [
    np.random.default_rng(seed).standard_normal((128, LEAST_ELEMENTS // 128)).astype(np.float32)
    for seed in range(2)
]
X, Y = sources(*ARRAYS)


def squashed(x: Node) -> Node:
    """What takes more operations than to write and read it."""
    for _ in range(4):
        x = tanh(x)
    return x


def computed(results: list[Node]) -> int:
    """How many hyperbolic tangents all kernels together compute."""
    return sum(
        node.operation is Operation.HYPERBOLIC_TANGENT
        for kernel in kernels_of(results, ARRAYS)
        for node in ordered(kernel.values)
    )


@pytest.mark.parametrize(
    "results",
    [
        [reduce_sum(squashed(X), (0,)), reduce_sum(squashed(X), (1,))],
        [reduce_sum(squashed(X) * Y, (0,)), reduce_sum(maximum(squashed(X), Y), (1,)), squashed(X) + Y],
        [reduce_sum(squashed(X), (0,)), permuted(squashed(X), (1, 0))],
        [reduce_sum(squashed(X), (0,)), squashed(X)],
    ],
    ids=["sums", "among others", "through a view", "a result"],
)
def test_what_takes_many_operations_is_computed_once(results: list[Node]) -> None:
    assert computed(results) == 4
    assert_agrees(results, ARRAYS, rtol=1e-4)


def test_the_last_of_what_several_kernels_compute_is_stored() -> None:
    value = squashed(X) * Y + 1.0
    first, *others = kernels_of([reduce_sum(value, (0,)), reduce_sum(value, (1,))], ARRAYS)
    assert (first.axes, len(first.loads)) == ((), 2)
    assert [len(kernel.loads) for kernel in others] == [1, 1]


@pytest.mark.parametrize(
    "sums",
    [contraction(X, Y, [1]), scan(Operation.RUNNING_SUM, X, 1, exclusive=False, reverse=False)],
    ids=["of products", "running"],
)
def test_sums_that_several_results_need_are_made_once(sums: Node) -> None:
    value = rounded(convert(maximum(sums, 0.0), ScalarType.FLOAT32))
    results = [value, value + 1.0, permuted(value * 2.0, (1, 0))]
    kernels = kernels_of(results, ARRAYS)
    nodes = [node for kernel in kernels for node in ordered(kernel.values)]
    assert sum(node.operation is sums.operation for node in nodes) == 1
    assert_agrees(results, ARRAYS, rtol=1e-4)


def test_what_takes_few_operations_is_computed_again() -> None:
    value = tanh(X)
    kernels = kernels_of([reduce_sum(value, (0,)), reduce_sum(value, (1,))], ARRAYS)
    assert len(kernels) == 2


def test_what_has_few_elements_is_computed_again() -> None:
    (x,) = sources(ARRAYS[0][:64])
    kernels = kernels_of([reduce_sum(squashed(x), (0,)), reduce_sum(squashed(x), (1,))], [ARRAYS[0][:64]])
    assert len(kernels) == 2


def test_results_over_the_same_elements_are_one_kernel() -> None:
    value = tanh(X)
    for _ in range(40):
        value = value * Y + 0.5
    (kernel,) = kernels_of([value + 1.0, value * 2.0], ARRAYS)
    assert len(kernel.stores) == 2
