"""Which kernels become a chain."""

from __future__ import annotations

import pytest

import opendml as dml
from opendml.compiler.chains import chain_of
from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import KernelProgram
from opendml.operators.softmax import softmax1
from opendml.program.functions import exp, reduce_maximum, reduce_sum
from opendml.program.node import Node, contraction, convert, source
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.view import in_memory

FLOAT32 = ScalarType.FLOAT32
Q, K, V = (
    source(number, FLOAT32, sizes)
    for number, sizes in enumerate([(2, 5, 1, 4, 1), (2, 1, 6, 4, 1), (2, 1, 6, 1, 3)])
)
SCORES = contraction(Q, K, [3])
WEIGHTS = softmax1(SCORES * 0.5, axes=[2])
RESULT = contraction(in_memory(WEIGHTS), V, [2])


def fused(*results: Node, takes: bool = True) -> KernelProgram:
    inputs = tuple(packed(FLOAT32, each.sizes) for each in (Q, K, V))
    outputs = tuple(packed(result.type, result.sizes) for result in results)
    return fuse(Program(inputs, outputs, results), lambda kernel: takes)


def test_products_around_a_softmax_are_one_kernel_without_temporaries() -> None:
    program = fused(RESULT + 1.0)
    (kernel,) = program.kernels
    assert (program.arena_bytes, len(kernel.loads)) == (0, 3)
    assert (kernel.domain, kernel.axes) == ((2, 5, 6, 4, 3), (2,))
    assert chain_of(kernel.values) is not None


def test_a_target_may_refuse_a_chain() -> None:
    assert len(fused(RESULT, takes=False).kernels) == 3


def test_weights_that_are_a_result_too_lie_in_memory() -> None:
    assert all(chain_of(kernel.values) is None for kernel in fused(RESULT, WEIGHTS).kernels)


@pytest.mark.parametrize(
    "weights",
    [
        SCORES / convert(reduce_sum(SCORES, [2]), FLOAT32),
        softmax1(SCORES, axes=[1]),
        softmax1(SCORES, axes=[2]) * 2.0,
        convert(convert(WEIGHTS, ScalarType.FLOAT16), FLOAT32),
    ],
    ids=["no softmax", "along queries", "weights that are multiplied", "weights that are rounded"],
)
def test_other_weights_are_no_chain(weights: Node) -> None:
    assert len(fused(contraction(in_memory(weights), V, [2])).kernels) > 1


def test_weights_that_are_shares_of_what_is_read_are_no_chain() -> None:
    for numerator, is_chain in ((source(1, ScalarType.FLOAT64, (2, 5, 1, 1, 1)), False), (1.0, True)):
        weights = exp(SCORES - reduce_maximum(SCORES, [2]))
        weights = weights * convert(numerator / reduce_sum(weights, [2]), FLOAT32)
        assert (chain_of([contraction(weights, V, [2])]) is not None) is is_chain


def test_chains_go_with_others() -> None:
    other = contraction(in_memory(softmax1(contraction(Q + 1.0, K, [3]), axes=[2])), V, [2])
    program = fused(RESULT, other)
    assert sum(chain_of(kernel.values) is not None for kernel in program.kernels) == 2


def test_a_graph_of_products_and_a_softmax_is_one_kernel() -> None:
    graph = dml.Graph()
    q, k, v = (graph.input(name, dml.FLOAT32, [1, 2, 20, 8]) for name in "qkv")
    weights = dml.activation_softmax1(
        dml.gemm(q, k, trans_b=dml.MatrixTransform.TRANSPOSE, alpha=0.5), axes=[3]
    )
    model = graph.compile({"y": dml.gemm(weights, v)}, device="cpu")
    program = model._program
    assert len(fuse(program, lambda kernel: True).kernels) == 1
