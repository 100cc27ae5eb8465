"""Cutting tensor programs into kernels, and the memory between them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import opendml as dml
from opendml.compiler.fuse import MAXIMUM_PASSES, MAXIMUM_REDUCTIONS, MOST_AGAIN, fuse
from opendml.compiler.kernel import KernelProgram, number_of
from opendml.compiler.simplify import simplify
from opendml.operators.softmax import softmax1
from opendml.program.functions import deviation, maximum, mean, reduce_maximum, tanh, variance
from opendml.program.node import (
    REDUCTIONS,
    Node,
    Operation,
    constant,
    contraction,
    convert,
    element_number,
    ordered,
    source,
)
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.view import padded, reshaped
from opendml.runtime.program import program_of

FLOAT32 = ScalarType.FLOAT32
SIZES = (2, 3, 4, 5)
X = source(0, FLOAT32, SIZES)
LAYOUT = packed(FLOAT32, SIZES)


def fused(*results: Node) -> KernelProgram:
    layouts = tuple(packed(result.type, result.sizes) for result in results)
    return fuse(Program((LAYOUT,), layouts, results))


def normalized(x: Node, *axes: int) -> Node:
    return deviation(x, mean(x, axes)) * convert(variance(x, axes), FLOAT32)


def variances(program: KernelProgram) -> list[int]:
    """How many variances each kernel computes."""
    return [sum(node.operation is Operation.VARIANCE for node in ordered(k.values)) for k in program.kernels]


def test_chain_of_element_wise_operations_is_one_kernel() -> None:
    program = fused(tanh(maximum(X * 2.0, 0.0)) + 1.0)
    assert (len(program.kernels), program.arena_bytes) == (1, 0)


def test_normalization_with_what_follows_is_one_kernel() -> None:
    program = fused(tanh(normalized(X, 2, 3)))
    assert [kernel.axes for kernel in program.kernels] == [(2, 3)]
    assert program.arena_bytes == 0


def test_normalization_of_a_normalization_goes_through_a_temporary() -> None:
    program = fused(normalized(normalized(X, 2, 3), 1))
    assert [kernel.axes for kernel in program.kernels] == [(2, 3), (1,)]
    first, second = program.kernels
    assert first.stores[0].buffer == second.loads[0].buffer == program.arena
    assert program.arena_bytes >= 2 * 3 * 4 * 5 * 4


def test_a_chain_of_normalizations_is_a_kernel_for_every_few() -> None:
    value = X
    for _ in range(4 * MAXIMUM_PASSES):
        value = tanh(normalized(value, 2, 3))
    assert variances(fused(value)) == [MAXIMUM_PASSES] * 4


def test_what_takes_many_operations_is_not_computed_again_in_a_third_pass() -> None:
    value = X
    for _ in range(6):
        value = normalized(value, 2, 3)
        for _ in range(MOST_AGAIN // 2):
            value = tanh(value)
    assert variances(fused(value)) == [2, 2, 2]


def test_a_softmax_of_a_normalization_with_scale_and_bias_is_one_kernel() -> None:
    scale, bias = (source(number, FLOAT32, SIZES) for number in (1, 2))
    narrow = convert(normalized(X, 3) * scale + bias, ScalarType.FLOAT16)
    value = softmax1(convert(narrow, FLOAT32), axes=[3])
    program = fuse(Program((LAYOUT,) * 3, (LAYOUT,), (value,)))
    assert [kernel.axes for kernel in program.kernels] == [(3,)]


def test_kernels_that_differ_in_numbers_share_their_values() -> None:
    value = X
    for number in range(2 * MAXIMUM_PASSES):
        value = normalized(value, 2, 3) * (number + 2.5)
    first, second = fused(value).kernels
    assert first.values == second.values
    assert first.numbers != second.numbers


def test_reductions_over_different_axes_are_computed_apart() -> None:
    program = fused(deviation(X, mean(X, [3])) + deviation(X, mean(X, [1])))
    assert sorted(kernel.axes for kernel in program.kernels) == [(1,), (3,)]
    assert program.kernels[0].stores[0].strides[1 if program.kernels[0].axes == (1,) else 3] == 0


def test_store_of_a_reduction_does_not_move_along_its_axes() -> None:
    program = fused(mean(X, [1, 3]))
    (kernel,) = program.kernels
    assert kernel.domain == SIZES
    assert [stride == 0 for stride in kernel.stores[0].strides] == [False, True, False, True]


def test_broadcast_operand_has_no_stride_along_the_repeated_dimension() -> None:
    scale = source(1, FLOAT32, (1, 3, 1, 1))
    scale_layout = packed(FLOAT32, (1, 3, 1, 1))
    program = fuse(Program((LAYOUT, scale_layout), (LAYOUT,), (X * scale,)))
    assert program.kernels[0].loads[1].strides == (0, 4, 0, 0)


def added_in_line(values: list[Node]) -> Node:
    total, *others = values
    for other in others:
        total = total + other
    return total


def added_in_pairs(values: list[Node]) -> Node:
    while len(values) > 1:
        values = [left + right for left, right in zip(values[::2], values[1::2], strict=True)]
    return values[0]


@pytest.mark.parametrize("added", [added_in_line, added_in_pairs])
@pytest.mark.parametrize("with_elements", [False, True])
def test_hundreds_of_reductions_are_kernels_of_a_few(
    added: Callable[[list[Node]], Node], with_elements: bool
) -> None:
    reductions = [reduce_maximum(X * (1.0 + number), [2, 3]) for number in range(512)]
    program = fused(added([X * each for each in reductions] if with_elements else reductions))
    counts = [
        sum(node.operation in REDUCTIONS for node in ordered(kernel.values)) for kernel in program.kernels
    ]
    assert max(counts) <= MAXIMUM_REDUCTIONS
    assert sum(counts) == len(reductions)
    assert len(program.kernels) <= 2 * len(reductions) / MAXIMUM_REDUCTIONS


def test_reductions_of_many_reductions_are_kernels_of_a_few() -> None:
    shift = added_in_line(
        [reduce_maximum(X * (1.0 + number), [2, 3]) for number in range(MAXIMUM_REDUCTIONS)]
    )
    program = fused(reduce_maximum(X - shift, [2, 3]))
    counts = [
        sum(node.operation in REDUCTIONS for node in ordered(kernel.values)) for kernel in program.kernels
    ]
    assert counts == [MAXIMUM_REDUCTIONS, 1]


def test_temporaries_that_are_not_alive_together_share_memory() -> None:
    def chain(length: int) -> int:
        value = X
        for step in range(length):
            value = normalized(value, 1 + step % 2)
        return fused(value).arena_bytes

    assert chain(3) == chain(7)


def test_the_number_of_an_element_is_a_load_without_a_buffer() -> None:
    number = element_number(SIZES)
    (kernel,) = fused(X + convert(number, FLOAT32)).kernels
    assert {load.buffer for load in kernel.loads} == {0, None}
    (counter,) = (load for load in kernel.loads if load.buffer is None)
    assert counter.strides == (60, 20, 5, 1)


def test_a_number_alone_fills_the_output() -> None:
    program = fuse(Program((), (LAYOUT,), (constant(7.0, FLOAT32),)))
    assert [kernel.domain for kernel in program.kernels] == [SIZES]


def test_value_mean_and_variance_are_one_kernel_that_reads_its_input_once() -> None:
    (kernel,) = fused(normalized(X, 2, 3), mean(X, [2, 3]), variance(X, [2, 3])).kernels
    assert (len(kernel.loads), len(kernel.stores)) == (1, 3)


def test_sums_that_several_kernels_read_are_stored_once() -> None:
    x, w = source(0, FLOAT32, (8, 16)), source(1, FLOAT32, (16, 16))
    total = x
    for _ in range(5):
        rows = reshaped(normalized(total, 1), (8, 1, 16))
        total = total + maximum(
            reshaped(contraction(rows, reshaped(w, (1, 16, 16)), (2,)), (8, 16)) * 2.0, 0.0
        )
    layouts = [packed(FLOAT32, node.sizes) for node in (x, w)]
    program = fuse(Program(tuple(layouts), (layouts[0],), (total,)))
    assert [len(kernel.loads) for kernel in program.kernels] == [1, 3] * 5


def test_what_is_stored_behind_a_sum_of_products_takes_no_more_bytes() -> None:
    x, w, v = (source(n, FLOAT32, sizes) for n, sizes in enumerate([(8, 1, 16), (1, 16, 16), (1, 16, 16)]))
    layouts = tuple(packed(FLOAT32, node.sizes) for node in (x, w, v))
    for type, stored in ((ScalarType.FLOAT16, ScalarType.FLOAT16), (ScalarType.FLOAT64, FLOAT32)):
        result = convert(contraction(x, w, (2,)), type) + convert(contraction(x, v, (2,)), type)
        program = fuse(Program(layouts, (packed(result.type, result.sizes),), (result,)))
        assert [kernel.stores[0].type for kernel in program.kernels] == [stored, type]


def test_a_chain_with_two_consumers_is_one_kernel() -> None:
    inner = maximum(X, 0.0)
    (kernel,) = fused(inner * 2.0, inner + 1.0).kernels
    assert (len(kernel.loads), len(kernel.stores)) == (1, 2)


def test_a_load_of_a_kernel_is_guarded_in_one_way() -> None:
    """Of parts beside each other that read the same element under different conditions."""
    image, gradient = (dml.TensorDesc(dml.FLOAT32, (1, 1, size, size)) for size in (2, 3))
    desc = dml.descs.MaxPoolingGrad(
        image,
        gradient,
        image,
        strides=[2, 2],
        window_size=[1, 1],
        dilations=[1, 1],
        start_padding=[2, 2],
        end_padding=[1, 1],
    )
    program = program_of(desc)
    kernels = fuse(Program(program.inputs, program.outputs, simplify(program.results))).kernels
    guarded = False
    for kernel in kernels:
        ways: dict[int, set[tuple[int, ...]]] = {}
        for node in ordered(kernel.values):
            if node.operation is Operation.SOURCE:
                ways.setdefault(number_of(node), set()).add(tuple(map(id, node.operands)))
        guarded |= len(kernel.stores) > 1
        assert all(len(each) == 1 for each in ways.values())
    assert guarded


def test_a_load_of_a_kernel_has_one_shape() -> None:
    beyond = padded(source(0, FLOAT32, (2, 2, 2)), (1, 2, -2), (62, -2, 1), 1.5)
    half = convert(beyond, ScalarType.FLOAT16)
    layouts = [packed(each.type, each.sizes) for each in (beyond, half)]
    (kernel,) = fuse(Program((packed(FLOAT32, (2, 2, 2)),), tuple(layouts), (beyond, half))).kernels
    loads = [node for node in ordered(kernel.values) if node.operation is Operation.SOURCE]
    assert len({number_of(node) for node in loads}) == len(loads)


def test_results_that_share_nothing_are_kernels_of_their_own() -> None:
    other = source(1, FLOAT32, SIZES)
    program = fuse(Program((LAYOUT, LAYOUT), (LAYOUT, LAYOUT), (X + 1.0, other + 1.0)))
    assert len(program.kernels) == 2


def test_results_of_much_work_are_kernels_of_their_own() -> None:
    functions = [tanh(tanh(X * float(factor))) for factor in range(2, 5)]
    assert len(fused(*functions).kernels) > 1
