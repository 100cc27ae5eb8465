"""Programs become kernels: fusion, chains, repeated work, stored operands and recurrences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

import opendml as dml
from opendml.compiler.attention import attention_of
from opendml.compiler.fuse import Abilities, fuse
from opendml.compiler.kernel import Access, Kernel, KernelProgram, number_of
from opendml.compiler.materialize import MOST_OPERATIONS_AGAIN, MOST_PASSES, MOST_REDUCTIONS
from opendml.compiler.operand_kernels import divided
from opendml.compiler.prepare import split
from opendml.compiler.prices import Prices
from opendml.compiler.simplify import simplify
from opendml.operators.softmax import softmax1
from opendml.program.carriers import carried
from opendml.program.functions import (
    deviation,
    exp,
    maximum,
    mean,
    reduce_maximum,
    reduce_sum,
    rounded,
    tanh,
    variance,
)
from opendml.program.node import (
    REDUCTIONS,
    Node,
    Operation,
    Window,
    constant,
    contraction,
    convert,
    element_number,
    ordered,
    recurrence,
    scan,
    source,
)
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.view import in_memory, joined, padded, permuted, reshaped, sliced
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of
from tests.programs import assert_agrees, kernels_of, layout_of, run_program, sources

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
    for _ in range(4 * MOST_PASSES):
        value = tanh(normalized(value, 2, 3))
    assert variances(fused(value)) == [MOST_PASSES] * 4


def test_what_takes_many_operations_is_not_computed_again_in_a_third_pass() -> None:
    value = X
    for _ in range(6):
        value = normalized(value, 2, 3)
        for _ in range(MOST_OPERATIONS_AGAIN // 2):
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
    for number in range(2 * MOST_PASSES):
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
def test_hundreds_of_reductions_are_few_kernels(
    added: Callable[[list[Node]], Node], with_elements: bool
) -> None:
    reductions = [reduce_maximum(X * (1.0 + number), [2, 3]) for number in range(512)]
    program = fused(added([X * each for each in reductions] if with_elements else reductions))
    counts = [
        sum(node.operation in REDUCTIONS for node in ordered(kernel.values)) for kernel in program.kernels
    ]
    assert max(counts) <= MOST_REDUCTIONS
    assert sum(counts) == len(reductions)
    assert len(program.kernels) <= 2 * len(reductions) / MOST_REDUCTIONS


def test_reductions_of_many_reductions_are_kernels_of_a_few() -> None:
    shift = added_in_line([reduce_maximum(X * (1.0 + number), [2, 3]) for number in range(MOST_REDUCTIONS)])
    program = fused(reduce_maximum(X - shift, [2, 3]))
    counts = [
        sum(node.operation in REDUCTIONS for node in ordered(kernel.values)) for kernel in program.kernels
    ]
    assert counts == [MOST_REDUCTIONS, 1]


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


@pytest.mark.parametrize("sizes", [(8, 16), (2, 4, 16)], ids=["in rows", "merged for products"])
@pytest.mark.parametrize("first", [True, False], ids=["residual first", "product first"])
def test_residual_sums_are_stored_by_their_products(sizes: tuple[int, ...], first: bool) -> None:
    random = np.random.default_rng(10)
    arrays: list[Array] = [random.standard_normal(each, np.float32) / 8 for each in (sizes, (16, 16))]
    x, w = sources(*arrays)
    total = x
    for number in range(5):
        # As of heads in attention, the sums of every second product run along two dimensions.
        inner = (4, 4) if number % 2 else (16,)
        rows = reshaped(normalized(total, len(sizes) - 1), (8, 1, *inner))
        product = contraction(rows, reshaped(w, (1, 16, *inner)), tuple(range(2, 2 + len(inner))))
        product = maximum(reshaped(product, sizes) * 2.0, 0.0)
        total = total + product if first else product + total
    assert [len(kernel.loads) for kernel in kernels_of([total], arrays)] == [1, 3] * 5
    assert_agrees([total], arrays, rtol=1e-4)


def test_what_is_stored_behind_a_sum_of_products_takes_no_more_bytes() -> None:
    x, w, v = (source(n, FLOAT32, sizes) for n, sizes in enumerate([(8, 1, 16), (1, 16, 16), (1, 16, 16)]))
    layouts = tuple(packed(FLOAT32, node.sizes) for node in (x, w, v))
    for type, stored in ((ScalarType.FLOAT16, ScalarType.FLOAT16), (ScalarType.FLOAT64, FLOAT32)):
        result = convert(contraction(x, w, (2,)), type) + convert(contraction(x, v, (2,)), type)
        program = fuse(Program(layouts, (packed(result.type, result.sizes),), (result,)))
        assert [kernel.stores[0].type for kernel in program.kernels] == [stored, type]


@pytest.mark.parametrize(("window", "count"), [(3, 2), (1, 1)])
def test_sums_that_many_windows_read_are_stored(window: int, count: int) -> None:
    graph = dml.Graph()
    x, y = (graph.input(name, dml.FLOAT32, (1, 4, 9, 9)) for name in "xy")
    w = graph.input("w", dml.FLOAT32, (4, 1, window, window))
    program = graph.compile({"z": dml.convolution(x + y, w, group_count=4)}, "reference")._program
    kernels = fuse(replace(program, results=simplify(program.results))).kernels
    assert len(kernels) == count


def test_sums_that_are_normalized_are_stored_in_bfloat16() -> None:
    graph = dml.Graph()
    x, w = graph.input("x", "bfloat16", (8, 16)), graph.input("w", "bfloat16", (16, 16))
    total = (dml.gemm(x, w).rounded() + x).rounded()
    scaled = dml.mean_variance_normalization1(total, axes=[1])
    program = carried(graph.compile({"y": scaled.rounded()}, "reference")._program)
    kernels = fuse(replace(program, results=simplify(program.results))).kernels
    assert [kernel.stores[0].type for kernel in kernels] == [ScalarType.UINT16] * 2


def test_joined_operands_of_products_are_stored_in_bfloat16() -> None:
    graph = dml.Graph()
    x, w = graph.input("x", "bfloat16", (8, 16)), graph.input("w", "bfloat16", (16, 16))
    rows = dml.join([(x * 2.0).rounded(), (x + 1.0).rounded()], axis=0)
    program = carried(graph.compile({"y": dml.gemm(rows, w).rounded()}, "reference")._program)
    kernels = fuse(replace(program, results=simplify(program.results))).kernels
    assert {store.type for kernel in kernels for store in kernel.stores} == {ScalarType.UINT16}


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


Q, K, V = (
    source(number, FLOAT32, sizes)
    for number, sizes in enumerate([(2, 5, 1, 4, 1), (2, 1, 6, 4, 1), (2, 1, 6, 1, 3)])
)
SCORES = contraction(Q, K, [3])
WEIGHTS = softmax1(SCORES * 0.5, axes=[2])
RESULT = contraction(in_memory(WEIGHTS), V, [2])


def fused_chains(*results: Node, takes: bool = True) -> KernelProgram:
    inputs = tuple(packed(FLOAT32, each.sizes) for each in (Q, K, V))
    outputs = tuple(packed(result.type, result.sizes) for result in results)
    return fuse(Program(inputs, outputs, results), Abilities(computes_attention=lambda kernel: takes))


def test_products_around_a_softmax_are_one_kernel_without_temporaries() -> None:
    program = fused_chains(RESULT + 1.0)
    (kernel,) = program.kernels
    assert (program.arena_bytes, len(kernel.loads)) == (0, 3)
    assert (kernel.domain, kernel.axes) == ((2, 5, 6, 4, 3), (2,))
    assert attention_of(kernel.values) is not None


def test_a_target_may_refuse_a_chain() -> None:
    assert len(fused_chains(RESULT, takes=False).kernels) == 3


def test_weights_that_are_a_result_too_lie_in_memory() -> None:
    assert all(attention_of(kernel.values) is None for kernel in fused_chains(RESULT, WEIGHTS).kernels)


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
    assert len(fused_chains(contraction(in_memory(weights), V, [2])).kernels) > 1


def test_weights_that_are_shares_of_what_is_read_are_no_chain() -> None:
    for numerator, is_chain in ((source(1, ScalarType.FLOAT64, (2, 5, 1, 1, 1)), False), (1.0, True)):
        weights = exp(SCORES - reduce_maximum(SCORES, [2]))
        weights = weights * convert(numerator / reduce_sum(weights, [2]), FLOAT32)
        assert (attention_of([contraction(weights, V, [2])]) is not None) is is_chain


def test_chains_go_with_others() -> None:
    other = contraction(in_memory(softmax1(contraction(Q + 1.0, K, [3]), axes=[2])), V, [2])
    program = fused_chains(RESULT, other)
    assert sum(attention_of(kernel.values) is not None for kernel in program.kernels) == 2


def test_a_graph_of_products_and_a_softmax_is_one_kernel() -> None:
    graph = dml.Graph()
    q, k, v = (graph.input(name, dml.FLOAT32, [1, 2, 20, 8]) for name in "qkv")
    weights = dml.activation_softmax1(
        dml.gemm(q, k, trans_b=dml.MatrixTransform.TRANSPOSE, alpha=0.5), axes=[3]
    )
    model = graph.compile({"y": dml.gemm(weights, v)}, device="cpu")
    program = model._program
    assert len(fuse(program, Abilities(computes_attention=lambda kernel: True)).kernels) == 1


ARRAYS = [
    np.random.default_rng(seed).standard_normal((128, Prices().least_stored // 128)).astype(np.float32)
    for seed in range(2)
]
X_REPEATED, Y = sources(*ARRAYS)


def squashed(x: Node) -> Node:
    """Return a value that takes more operations to compute than to write and read it."""
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
        [reduce_sum(squashed(X_REPEATED), (0,)), reduce_sum(squashed(X_REPEATED), (1,))],
        [
            reduce_sum(squashed(X_REPEATED) * Y, (0,)),
            reduce_sum(maximum(squashed(X_REPEATED), Y), (1,)),
            squashed(X_REPEATED) + Y,
        ],
        [reduce_sum(squashed(X_REPEATED), (0,)), permuted(squashed(X_REPEATED), (1, 0))],
        [reduce_sum(squashed(X_REPEATED), (0,)), squashed(X_REPEATED)],
    ],
    ids=["sums", "among others", "through a view", "a result"],
)
def test_what_takes_many_operations_is_computed_once(results: list[Node]) -> None:
    assert computed(results) == 4
    assert_agrees(results, ARRAYS, rtol=1e-4)


def test_the_last_of_what_several_kernels_compute_is_stored() -> None:
    value = squashed(X_REPEATED) * Y + 1.0
    first, *others = kernels_of([reduce_sum(value, (0,)), reduce_sum(value, (1,))], ARRAYS)
    assert (first.axes, len(first.loads)) == ((), 2)
    assert [len(kernel.loads) for kernel in others] == [1, 1]


@pytest.mark.parametrize(
    "sums",
    [
        contraction(X_REPEATED, Y, [1]),
        scan(Operation.RUNNING_SUM, X_REPEATED, 1, exclusive=False, reverse=False),
    ],
    ids=["of products", "running"],
)
def test_sums_that_several_results_need_are_made_once(sums: Node) -> None:
    value = rounded(convert(maximum(sums, 0.0), ScalarType.FLOAT32))
    results = [value, value + 1.0, permuted(value * 2.0, (1, 0))]
    kernels = kernels_of(results, ARRAYS)
    nodes = [node for kernel in kernels for node in ordered(kernel.values)]
    assert sum(node.operation is sums.operation for node in nodes) == 1
    assert_agrees(results, ARRAYS, rtol=1e-4)


def test_masks_are_not_stored_beside_what_they_select() -> None:
    """A mask takes fewer bytes than the result of SiLU that two kernels reduce."""
    graph = dml.Graph()
    x, w = (graph.input(name, dml.FLOAT16, (1, 8, 64, 64)) for name in "xw")
    y = dml.activation_swish(x * w + 1.0)
    sums = {name: dml.reduce(y, function="SUM", axes=[axis]) for name, axis in (("rows", 2), ("columns", 3))}
    program = graph.compile(sums, "reference")._program
    kernels = fuse(replace(program, results=simplify(program.results))).kernels
    assert [store.type for kernel in kernels for store in kernel.stores] == [ScalarType.FLOAT16] * 3


def test_what_takes_few_operations_is_computed_again() -> None:
    value = tanh(X_REPEATED)
    kernels = kernels_of([reduce_sum(value, (0,)), reduce_sum(value, (1,))], ARRAYS)
    assert len(kernels) == 2


def test_what_has_few_elements_is_computed_again() -> None:
    (x,) = sources(ARRAYS[0][:64])
    kernels = kernels_of([reduce_sum(squashed(x), (0,)), reduce_sum(squashed(x), (1,))], [ARRAYS[0][:64]])
    assert len(kernels) == 2


def test_tests_of_indices_are_never_stored() -> None:
    """Six convolutions with the same margins share the test of what is inside the image."""
    graph = dml.Graph()
    y = graph.input("x", dml.FLOAT32, [1, 32, 24, 24])
    filters = graph.input("filters", dml.FLOAT32, [32, 32, 3, 3])
    for _ in range(6):
        y = dml.convolution(y, filters, start_padding=[1, 1], end_padding=[1, 1])
    kernels = graph.compile({"y": y}, dml.Device("cpu", threads=1)).explain().kernels
    assert [(kernel.result, kernel.operations > 1e6) for kernel in kernels] == [((1, 32, 24, 24), True)] * 6


def test_results_over_the_same_elements_are_one_kernel() -> None:
    value = tanh(X_REPEATED)
    for _ in range(40):
        value = value * Y + 0.5
    (kernel,) = kernels_of([value + 1.0, value * 2.0], ARRAYS)
    assert len(kernel.stores) == 2


def computed_operand(kernel: Kernel) -> Sequence[Node]:
    """Choose an operand of a product that is more than a load."""
    products = [node for node in ordered(kernel.values) if node.operation is Operation.CONTRACTION]
    computed = [
        operand
        for product in products
        for operand in product.operands
        if operand.operation is not Operation.SOURCE
    ]
    return computed[:1]


def product(m: int, n: int, k: int) -> Node:
    """Return relu(x) times the transpose of w."""
    x, w = source(0, FLOAT32, (m, 1, k)), source(1, FLOAT32, (1, n, k))
    return contraction(maximum(x, 0.0), w, (2,))


def fused_stored(m: int, n: int, k: int) -> KernelProgram:
    layouts = (packed(FLOAT32, (m, 1, k)), packed(FLOAT32, (1, n, k)))
    program = Program(layouts, (packed(FLOAT32, (m, n, 1)),), (product(m, n, k),))
    return fuse(program, Abilities(stored_operands=computed_operand))


def test_a_chosen_operand_is_stored_before_the_product_reads_it() -> None:
    program = fused_stored(6, 5, 64)
    stores, reads = program.kernels
    assert (stores.domain, stores.axes) == ((6, 64), ())
    assert (stores.stores[0].buffer, stores.stores[0].strides) == (reads.loads[1].buffer, (4 * 64, 4))
    assert reads.loads[1].strides == (4 * 64, 0, 4)
    assert (reads.domain, reads.axes) == ((6, 5, 64), (2,))
    assert program.arena_bytes == 4 * 6 * 64


def test_rows_of_a_stored_operand_begin_at_whole_units() -> None:
    """Padding is left out where it would make rows much longer."""
    assert fused_stored(6, 5, 61).kernels[0].stores[0].strides == (4 * 64, 4)
    assert fused_stored(6, 5, 5).kernels[0].stores[0].strides == (4 * 5, 4)


def test_a_stored_operand_lies_as_the_largest_tensor_that_it_is_made_of() -> None:
    value = product(8, 5, 64)
    columns, w = Access(0, FLOAT32, 0, (4, 0, 4 * 8)), Access(1, FLOAT32, 0, (0, 4 * 64, 4))
    store = Access(2, FLOAT32, 0, (4 * 5, 4, 0))
    part = divided(Kernel((8, 5, 64), (2,), (columns, w), (store,), (value,)), value.operands[:1], [9])
    assert part.stores[0].stores == (Access(9, FLOAT32, 0, (4, 0, 4 * 8)),)
    assert part.bytes == (4 * 8 * 64,)


def test_steps_of_a_recurrence_follow_what_is_stored_before_them() -> None:
    steps, batch, size, hidden = 3, 2, 8, 4
    tensors = {
        "x": (1, steps, batch, size),
        "w": (1, 1, 3 * hidden, size),
        "r": (1, 1, 3 * hidden, hidden),
        "y": (steps, 1, batch, hidden),
    }
    x, w, r, y = (dml.TensorDesc(dml.FLOAT32, sizes) for sizes in tensors.values())
    gru = dml.descs.Gru(
        x,
        w,
        r,
        None,
        None,
        None,
        y,
        None,
        activation_descs=[dml.descs.ActivationSigmoid(), dml.descs.ActivationTanh()],
        direction="FORWARD",
        linear_before_reset=True,
    )
    program = program_of(gru)
    plain = fuse(program)

    def stores_inputs(kernel: Kernel) -> Sequence[Node]:
        """Choose the loaded operand of the products before the steps."""
        products = [node for node in ordered(kernel.values) if node.operation is Operation.CONTRACTION]
        for each in products[0].operands if products else ():
            numbers = [node.attribute for node in ordered([each]) if node.operation is Operation.SOURCE]
            if any(kernel.loads[int(number)].buffer == 0 for number in numbers):  # type: ignore[arg-type]
                return (each,)
        return ()

    stored = fuse(program, Abilities(stored_operands=stores_inputs))
    assert len(stored.kernels) == len(plain.kernels) + 1
    assert [each.first for each in stored.repeats] == [each.first + 1 for each in plain.repeats]
    first = stored.repeats[0].first
    assert stored.kernels[first].domain == plain.kernels[first - 1].domain


STEPS = 5
GENERATOR = np.random.default_rng(0)
INITIAL = GENERATOR.uniform(-1, 1, (1, 4)).astype(np.float32)
ROWS = GENERATOR.uniform(-1, 1, (STEPS, 4)).astype(np.float32)
FORWARD = Window((0, 0), (1, 4), (1, 0))
BACKWARD = Window((STEPS - 1, 0), (1, 4), (-1, 0))


def _summed(initial: Node, rows: Node, window: Window = FORWARD, factor: float = 0.5) -> Node:
    """Each state is the one before times a factor, with a row added."""

    def step(state: Node, parts: Sequence[Node]) -> Node:
        return state * factor + parts[0]

    return recurrence(STEPS, initial, [(rows, window)], step)


def _expected(rows: Array, factor: float = 0.5) -> Array:
    states = [INITIAL]
    for row in rows:
        states.append(states[-1] * np.float32(factor) + row)
    return np.concatenate(states)


def test_windows_advance_forwards_and_backwards() -> None:
    initial, rows = sources(INITIAL, ROWS)
    results = [_summed(initial, rows), _summed(initial, rows, BACKWARD)]
    for kind in ("cpu", "reference"):
        forward, backward = run_program([each + 0.0 for each in results], [INITIAL, ROWS], kind)
        np.testing.assert_allclose(forward, _expected(ROWS), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(backward, _expected(ROWS[::-1]), rtol=1e-6, atol=1e-7)


def test_the_tensor_of_states_may_be_the_result() -> None:
    initial, rows = sources(INITIAL, ROWS)
    assert_agrees([_summed(initial, rows)], [INITIAL, ROWS], rtol=1e-6)


def test_recurrences_of_other_steps_are_others() -> None:
    initial, rows = sources(INITIAL, ROWS)
    results = simplify([_summed(initial, rows), _summed(initial, rows, factor=0.25)])
    assert results[0] is not results[1]
    found = run_program([each + 0.0 for each in results], [INITIAL, ROWS])
    for states, factor in zip(found, (0.5, 0.25), strict=True):
        np.testing.assert_allclose(states, _expected(ROWS, factor), rtol=1e-6, atol=1e-7)


def test_what_steps_read_may_be_computed_before_and_reduced_within() -> None:
    initial, rows = sources(INITIAL, ROWS)

    def step(state: Node, parts: Sequence[Node]) -> Node:
        total = convert(reduce_sum(state * parts[0], [1]), ScalarType.FLOAT32)
        return in_memory(total * 0.1) + parts[0]

    states = recurrence(STEPS, initial * 2.0, [(rows * rows, FORWARD)], step)
    assert_agrees([sliced(states, (STEPS, 0), (1, 4)) * 3.0], [INITIAL, ROWS], rtol=1e-5)


def test_a_part_of_the_state_that_is_needed_at_once_is_written_where_it_stays() -> None:
    pair = np.concatenate([INITIAL, INITIAL * 2])[None]
    initial, rows = sources(pair, ROWS)

    def step(state: Node, parts: Sequence[Node]) -> Node:
        first, second = (sliced(state, (0, each, 0), (1, 1, 4)) for each in range(2))
        row = Window((0, 0, 0), (1, 1, 4), (0, 0, 0))
        assert row.sizes == parts[0].sizes
        made = in_memory(second * 0.5 + parts[0])
        return joined([made * first, made], 1)

    shaped = ROWS.reshape(STEPS, 1, 4)
    initial, rows = sources(pair, shaped)
    states = recurrence(STEPS, initial, [(rows, Window((0, 0, 0), (1, 1, 4), (1, 0, 0)))], step)
    assert_agrees([states * 1.0], [pair, shaped], rtol=1e-5)
    program = Program(
        (layout_of(pair), layout_of(shaped)), (packed(states.type, states.sizes),), (states * 1.0,)
    )
    (repeat,) = fuse(program).repeats
    assert (repeat.length, repeat.count) == (2, STEPS)
    stored = [fuse(program).kernels[repeat.first + number].stores for number in range(2)]
    offsets = sorted(store.offset for stores in stored for store in stores)
    assert offsets[1] - offsets[0] == 4 * INITIAL.itemsize


def test_a_recurrence_of_constants_alone_is_computed_ahead() -> None:
    initial, rows = sources(INITIAL, ROWS)
    result = _summed(initial, rows) * 2.0
    layouts = (layout_of(INITIAL), layout_of(ROWS))
    written = (packed(result.type, result.sizes),)
    program = Program(layouts, written, simplify([result]), frozenset({0, 1}))
    kernels = fuse(program)
    assert len(kernels.initializers) > STEPS
    assert not kernels.repeats
    assert len(split(program)[0].results) == 1


def test_only_offsets_differ_between_steps() -> None:
    initial, rows = sources(INITIAL, ROWS)
    result = _summed(initial, rows) + 0.0
    layouts = (layout_of(INITIAL), layout_of(ROWS))
    kernels = fuse(Program(layouts, (packed(result.type, result.sizes),), (result,)))
    (repeat,) = kernels.repeats
    steps = kernels.kernels[repeat.first : repeat.first + repeat.count]
    assert {kernel.values for kernel in steps} == {steps[0].values}
    offsets = [[access.offset for access in (*kernel.loads, *kernel.stores)] for kernel in steps]
    advances = np.diff(np.array(offsets), axis=0)
    assert (advances == advances[0]).all()
    assert (advances[0] == ROWS.strides[0]).all()


def test_what_is_in_memory_is_computed_once() -> None:
    (rows,) = sources(ROWS)
    value = in_memory(exp(rows))
    first, second = kernels_of([value * value + 1.0], [ROWS])
    assert [node.operation for node in ordered(first.values)].count(Operation.EXPONENTIAL) == 1
    assert Operation.EXPONENTIAL not in {node.operation for node in ordered(second.values)}
    assert_agrees([value * value + 1.0], [ROWS], rtol=1e-6)


def test_kernels_of_a_chain_may_have_dimensions_that_are_one_in_others() -> None:
    """Two batches of three heads are six matrices for the second product."""
    q, k = source(0, FLOAT32, (2, 3, 5, 1, 4)), source(1, FLOAT32, (2, 3, 1, 7, 4))
    v = source(2, FLOAT32, (6, 1, 4, 7))
    weights = reshaped(softmax1(contraction(q, k, [4]), axes=[3]), (6, 5, 1, 7))
    result = contraction(in_memory(weights), v, [3])
    inputs = tuple(packed(FLOAT32, each.sizes) for each in (q, k, v))
    program = Program(inputs, (packed(FLOAT32, result.sizes),), simplify([result]))
    (kernel,) = fuse(program, Abilities(computes_attention=lambda kernel: True)).kernels
    assert sorted(size for size in kernel.domain if size > 1) == [2, 3, 4, 4, 5, 7]
