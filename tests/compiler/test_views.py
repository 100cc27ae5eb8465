"""Views, reshaped and joined tensors: what they mean, and that they cost no kernels of their own."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

import opendml as dml
from opendml.compiler.prices import Prices
from opendml.compiler.simplify import simplify
from opendml.compiler.views import with_views_moved
from opendml.program.functions import deviation, maximum, mean, reduce_maximum, reduce_sum, tanh, variance
from opendml.program.node import Node, Operation, contraction, convert, index, ordered
from opendml.program.scalar_type import ScalarType
from opendml.program.view import gathered, joined, padded, permuted, repeated, reshaped, sliced, view, windows
from opendml.runtime.memory.host_array import Array
from tests.programs import assert_agrees, kernels_of, run_program, sources

ARRAY = np.random.default_rng(5).standard_normal((2, 3, 17, 19)).astype(np.float32)
(X,) = sources(ARRAY)


def _sizes_of_reshape(choose: random.Random, count: int) -> list[int]:
    sizes: list[int] = []
    while count > 1 and len(sizes) < 4:
        size = choose.choice([size for size in range(1, count + 1) if count % size == 0])
        sizes.append(size)
        count //= size
    return [*sizes, count]


def _moved(choose: random.Random, node: Node, array: Array) -> tuple[Node, Array]:
    """A random movement of a tensor, and the same of an array."""
    rank = range(len(node.sizes))
    match choose.choice(["slice", "reverse", "permute", "pad", "reshape", "repeat", "join", "map"]):
        case "slice":
            first = [choose.randrange(size) for size in node.sizes]
            steps = [choose.randint(1, 3) for _ in rank]
            cut = tuple(map(lambda f, s: slice(f, None, s), first, steps))
            part = array[cut]
            return sliced(node, first, part.shape, steps), part
        case "reverse":
            first = [size - 1 for size in node.sizes]
            return sliced(node, first, node.sizes, [-1] * len(first)), np.flip(array)
        case "permute":
            order = choose.sample(rank, len(rank))
            return permuted(node, order), array.transpose(order)
        case "pad":
            margins = [(choose.randint(0, 3), choose.randint(0, 3)) for _ in rank]
            before, after = zip(*margins, strict=True)
            fill = choose.choice([0.0, -2.5])
            return padded(node, before, after, fill), np.pad(array, margins, constant_values=fill)
        case "reshape":
            sizes = _sizes_of_reshape(choose, array.size)
            return reshaped(node, sizes), array.reshape(sizes)
        case "repeat":
            axis = choose.randrange(len(rank) + 1)
            wide = [*node.sizes[:axis], 1, *node.sizes[axis:]]
            sizes = [*node.sizes[:axis], 2, *node.sizes[axis:]]
            return repeated(reshaped(node, wide), sizes), np.broadcast_to(array.reshape(wide), sizes)
        case "join":
            axis = choose.choice(rank)
            return joined([node, node * 3.0, node], axis), np.concatenate([array, array * 3, array], axis)
    return maximum(node, 0.25) + 1.0, np.maximum(array, np.float32(0.25)) + np.float32(1)


@pytest.mark.parametrize("seed", range(60))
def test_chains_of_movements_are_those_of_numpy(seed: int) -> None:
    choose = random.Random(seed)
    array = np.arange(1, 61, dtype=np.float32).reshape(
        choose.choice([(60,), (3, 20), (3, 4, 5), (2, 3, 2, 5)])
    )
    (node,) = sources(array)
    moved = array
    for _ in range(choose.randint(2, 7)):
        node, moved = _moved(choose, node, moved)
        if moved.size > 5000 or len(node.sizes) > 6:
            break
    (found,) = run_program([node], [array])
    np.testing.assert_array_equal(found, moved)


@pytest.mark.parametrize(
    "result",
    [
        tanh(sliced(X, (1, 2, 16, 0), (1, 2, 5, 19), (-1, -1, -3, 1))),
        sliced(tanh(X), (0, 1, 2, 3), (2, 2, 5, 7)),
        permuted(tanh(permuted(X, (0, 2, 3, 1))), (0, 3, 1, 2)) + X,
        padded(tanh(X), (0, 0, 1, 1), (0, 0, 1, 1), -1.0),
        reshaped(tanh(reshaped(tanh(reshaped(X, (6, 323))), (2, 969))), (2, 3, 323)),
        reshaped(reduce_sum(X, (2, 3)), (6,)) * 2.0,
    ],
    ids=["slice", "slice of values", "permutations", "padding", "reshapes", "reshaped sums"],
)
def test_movements_beside_arithmetic_are_one_kernel(result: Node) -> None:
    assert len(kernels_of([result], [ARRAY])) == 1
    assert_agrees([result], [ARRAY], rtol=1e-6)


def test_a_hundred_activations_with_alternating_sizes_are_one_kernel() -> None:
    node = X
    for number in range(100):
        node = maximum(reshaped(node, (6, 323) if number % 2 else (2, 969)), -float(number))
    assert len(kernels_of([node], [ARRAY])) == 1


def test_inputs_that_have_no_strides_in_other_sizes_are_copied() -> None:
    array = ARRAY[:, :, ::2, ::3]
    (x,) = sources(array)
    result = reshaped(x, (array.size,)) + 1.0
    (found,) = run_program([result], [array])
    np.testing.assert_array_equal(found, array.reshape(-1) + np.float32(1))


def test_joined_values_are_computed_where_they_are_joined() -> None:
    sums = reduce_sum(X, (3,))
    whole = joined([tanh(X), X * 2.0], 1)
    (kernel,) = kernels_of([whole], [ARRAY])
    assert (kernel.axes, len(kernel.loads), len(kernel.stores)) == ((), 1, 2)
    kernels = kernels_of([reduce_sum(joined([sums, sums * 2.0], 1), (2,))], [ARRAY])
    assert [len(kernel.stores) for kernel in kernels] == [2, 1]
    assert_agrees([reduce_sum(joined([sums, sums * 2.0], 1), (2,))], [ARRAY], rtol=1e-12)


@pytest.mark.parametrize("axis", [1, 3])
def test_operations_on_joined_values_are_computed_where_these_are_joined(axis: int) -> None:
    parts = [X, X * 2.0, sliced(X, (0, 0, 0, 0), (2, 3, 17, 19), (1, 1, 1, 1)) + 1.0]
    whole = joined(parts, axis)
    scale, bias = sliced(whole, (0,) * 4, whole.sizes) * -1.0, sliced(X, (0,) * 4, (2, 1, 1, 1))
    result = reshaped(maximum(whole * bias, scale) + whole, (math.prod(whole.sizes),))
    kernels = kernels_of([result], [ARRAY])
    assert all(access.buffer in (None, 0) for kernel in kernels for access in kernel.loads)
    assert sum(len(kernel.stores) for kernel in kernels) == len(parts)
    assert_agrees([result, reduce_sum(result, (0,))], [ARRAY], rtol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 33, 70])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_neighbours_are_read_and_written_in_pairs(size: int, dtype: type) -> None:
    array: Array = np.arange(6 * size).reshape(3, 2 * size).astype(dtype)
    (x,) = sources(array)
    pairs = permuted(reshaped(x, (3, size, 2)), (2, 0, 1))
    twice = reshaped(repeated(reshaped(x, (3, 2 * size, 1)), (3, 2 * size, 2)), (3, 4 * size))
    back = reshaped(permuted(reshaped(x, (3, 2, size)), (0, 2, 1)), (3, 2 * size))
    found = run_program([pairs, twice, back], [array])
    np.testing.assert_array_equal(found[0], np.stack([array[:, ::2], array[:, 1::2]]))
    np.testing.assert_array_equal(found[1], array.repeat(2, 1))
    np.testing.assert_array_equal(found[2], array.reshape(3, 2, size).transpose(0, 2, 1).reshape(3, -1))


def test_parts_of_joined_values_are_read_where_they_lie() -> None:
    whole = joined([tanh(X), X], 3)
    results = [whole, sliced(whole, (0, 0, 0, 10), (2, 3, 17, 12)) * 2.0, reduce_sum(whole, [2])]
    assert_agrees(results, [ARRAY], rtol=1e-6)


@pytest.mark.parametrize("sizes", [(2, 3, 17, 1), (6, 17), (2, 1, 51)])
def test_what_is_read_again_and_written_out_is_computed_and_written_once(sizes: tuple[int, ...]) -> None:
    sums = reduce_sum(X, (3,))
    results = [reshaped(sums, sizes), reduce_maximum(sums, (2,))]
    first, second = kernels_of(results, [ARRAY])
    assert [store.buffer for store in first.stores] == [load.buffer for load in second.loads] == [1]
    assert_agrees(results, [ARRAY], rtol=1e-6)


@pytest.mark.parametrize(("order", "count"), [((1, 0, 2), 1), ((2, 1, 0), 2), ((0, 2, 1), 2)])
def test_sums_in_the_result_s_order_keep_the_innermost_dimension(order: tuple[int, ...], count: int) -> None:
    sums = reshaped(reduce_sum(X, (3,)), (2, 3, 17))
    results = [reshaped(permuted(sums, order), (102,))]
    assert len(kernels_of(results, [ARRAY])) == count
    assert_agrees(results, [ARRAY], rtol=1e-6)
    # Others would read them across.
    results.append(reduce_maximum(sums, (2,)))
    assert len(kernels_of(results, [ARRAY])) == 3
    assert_agrees(results, [ARRAY], rtol=1e-6)


@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("dilations", [(1, 1), (2, 3)])
def test_small_windows_are_joined_without_axes(strides: tuple[int, int], dilations: tuple[int, int]) -> None:
    counts = [
        (size + 4 - 2 * d - 1) // s + 1 for size, s, d in zip((17, 19), strides, dilations, strict=True)
    ]
    seen = windows(X, counts, (3, 3), strides, dilations, (2, 2), -math.inf)
    zeros = windows(X, counts, (3, 3), strides, dilations, (2, 2))
    results = [
        reshaped(reduce_maximum(seen, (4, 5)), (2, 3, *counts)),
        reshaped(reduce_sum(zeros, (4, 5)), (2, 3, *counts)),
    ]
    assert all(kernel.axes == () for kernel in kernels_of(results, [ARRAY]))
    assert_agrees(results, [ARRAY], rtol=1e-12)


def test_conditions_that_always_hold_are_left_out() -> None:
    seen = windows(X, (9, 10), (3, 3), (2, 2), (1, 1), (1, 1), -math.inf)
    (kernel,) = kernels_of([reshaped(reduce_maximum(seen, (4, 5)), (2, 3, 9, 10))], [ARRAY])
    guarded = [
        node for node in ordered(kernel.values) if node.operation is Operation.SOURCE and node.operands
    ]
    # Of 9 elements the middle one alone is always inside; along odd sizes both ends reach beyond.
    assert len(guarded) == 8
    even = sliced(X, (0,) * 4, (2, 3, 16, 18))
    seen = windows(even, (8, 9), (3, 3), (2, 2), (1, 1), (1, 1), -math.inf)
    (kernel,) = kernels_of([reshaped(reduce_maximum(seen, (4, 5)), (2, 3, 8, 9))], [ARRAY])
    guarded = [
        node for node in ordered(kernel.values) if node.operation is Operation.SOURCE and node.operands
    ]
    assert len(guarded) == 5
    whole = windows(X, (17, 19), (1, 1), (1, 1), (1, 1), (0, 0), 1.0)
    (kernel,) = kernels_of([reshaped(whole, X.sizes) * 2.0], [ARRAY])
    assert len(kernel.loads) == 1


def test_a_window_finds_the_first_of_its_greatest_elements() -> None:
    array = np.round(ARRAY)
    array[0, 0, 3, 4] = np.nan
    seen = windows(X, (9, 10), (3, 3), (2, 2), (1, 1), (1, 1), -math.inf)
    places = index(ScalarType.INT64, seen.sizes, -20, (0, 0, 38, 2, 19, 1))
    found = Node(Operation.FIRST_GREATEST, ScalarType.INT64, (2, 3, 9, 10, 1, 1), (seen, places), (4, 5))
    (kernel,) = kernels_of([found], [array])
    assert kernel.axes == ()
    assert_agrees([found], [array])


@pytest.mark.parametrize("reduced", [reduce_maximum, reduce_sum])
def test_a_window_with_whose_sum_its_elements_are_divided_is_reduced_once(
    reduced: Callable[[Node, Sequence[int]], Node],
) -> None:
    array = np.random.default_rng(7).uniform(1, 2, (2, 70, 19)).astype(np.float32)
    (x,) = sources(array)
    groups = permuted(reshaped(sliced(x, (0, 3, 0), (2, 64, 19)), (2, 4, 16, 19)), (0, 2, 1, 3))
    total = convert(reduced(groups, (1,)), groups.type)
    (kernel,) = kernels_of([total], [array])
    assert kernel.axes == ()
    (kernel,) = kernels_of([groups / total], [array])
    assert kernel.axes == (1,)
    assert_agrees([groups / total], [array], rtol=1e-6)


def test_large_windows_are_reduced() -> None:
    seen = windows(X, (9, 10), (9, 10), (1, 1), (1, 1), (0, 0), -math.inf)
    (kernel,) = kernels_of([reduce_maximum(seen, (4, 5))], [ARRAY])
    assert kernel.axes == (4, 5)
    assert_agrees([reduce_maximum(seen, (4, 5))], [ARRAY])


def test_each_channel_convolved_alone_is_element_wise() -> None:
    weights = np.random.default_rng(2).standard_normal((1, 3, 1, 1, 3, 3)).astype(np.float32)
    x, w = sources(ARRAY, weights)
    seen = windows(x, (17, 19), (3, 3), (1, 1), (1, 1), (1, 1))
    result = tanh(reshaped(contraction(w, seen, (4, 5)), ARRAY.shape))
    (kernel,) = kernels_of([result], [ARRAY, weights])
    assert kernel.axes == ()
    assert_agrees([result], [ARRAY, weights], rtol=1e-5)


def test_a_convolution_with_what_follows_is_one_kernel() -> None:
    weights = np.random.default_rng(2).standard_normal((1, 1, 5, 1, 1, 3, 3, 3)).astype(np.float32)
    x, w = sources(ARRAY, weights)
    seen = windows(x, (9, 10), (3, 3), (2, 2), (1, 1), (1, 1))
    operand = reshaped(permuted(seen, (0, 2, 3, 1, 4, 5)), (2, 1, 1, 9, 10, 3, 3, 3))
    result = tanh(reshaped(contraction(w, operand, (5, 6, 7)), (2, 5, 9, 10)) + 1.0)
    (kernel,) = kernels_of([result], [ARRAY, weights])
    assert [node.operation for node in ordered(kernel.values)].count(Operation.CONTRACTION) == 1
    assert_agrees([result], [ARRAY, weights], rtol=1e-5)


def test_a_normalization_in_other_sizes_than_its_input_is_one_kernel() -> None:
    arrays = [
        np.random.default_rng(3).standard_normal(sizes).astype(np.float32) for sizes in ((8, 16, 1), (16,))
    ]
    x, scale = sources(*arrays)
    value = reshaped(x * 2.0, (1, 8, 16))
    spread = convert(variance(value, [2]) + 1.0, x.type) * reshaped(scale, (1, 1, 16))
    result = deviation(value, mean(value, [2])) / spread
    assert len(kernels_of([result], arrays)) == 1
    assert_agrees([result], arrays, rtol=1e-5)


def test_weights_whose_blocks_have_scales_are_computed_where_they_are_multiplied() -> None:
    random = np.random.default_rng(4)
    x, scales = (random.standard_normal(sizes).astype(np.float32) for sizes in ((3, 24), (5, 3)))
    weights = random.integers(0, 16, (5, 24)).astype(np.uint8)
    rows, columns, scale = sources(x, weights, scales)
    steps = [[1, 0, 0], [0, 1, 0]]
    spread = reshaped(view(scale, (5, 3, 8), (0, 0), steps), (5, 24))
    floats = (convert(columns, rows.type) - 8.0) * spread
    result = contraction(reshaped(rows, (3, 1, 24)), reshaped(floats, (1, 5, 24)), (2,))
    (kernel,) = kernels_of([result], [x, weights, scales])
    assert (len(kernel.axes), len(kernel.loads)) == (2, 3)
    assert_agrees([result], [x, weights, scales], rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 3])
def test_heads_of_attention_and_blocks_of_weights_may_split_one_axis(rows: int) -> None:
    """The rows are results of products for 6 heads of 4 elements, the blocks of weights have 8."""
    random = np.random.default_rng(4)
    shapes = (6, rows, 1, 7), (6, 1, 4, 7), (5, 3)
    arrays = [random.standard_normal(sizes).astype(np.float32) for sizes in shapes]
    weights = random.integers(0, 16, (5, 24)).astype(np.uint8)
    p, v, scale, columns = sources(*arrays, weights)
    heads = contraction(p, v, (3,))
    if rows > 1:
        heads = permuted(reshaped(heads, (6, rows, 4)), (1, 0, 2))
    spread = reshaped(view(scale, (5, 3, 8), (0, 0), [[1, 0, 0], [0, 1, 0]]), (5, 24))
    floats = convert(columns, scale.type) * spread
    result = contraction(reshaped(heads, (rows, 1, 24)), reshaped(floats, (1, 5, 24)), (2,))
    of_heads, multiplying = kernels_of([result], [*arrays, weights])
    assert (len(of_heads.loads), len(multiplying.loads)) == (2, 3)
    assert_agrees([result], [*arrays, weights], rtol=1e-5)


def test_heads_that_are_merged_with_a_batch_while_they_are_permuted_are_not_copied() -> None:
    """As in PyTorch's MultiheadAttention: 5 steps, a batch of 2, and 3 heads of 4 elements in packed rows."""
    random = np.random.default_rng(4)
    arrays = [random.standard_normal(sizes).astype(np.float32) for sizes in ((10, 1, 7), (1, 24, 7))]
    packed = contraction(*sources(*arrays), (2,))
    parts = [
        permuted(
            reshaped(sliced(reshaped(packed, (5, 2, 24)), (0, 0, first), (5, 2, 12)), (5, 6, 4)), (1, 0, 2)
        )
        for first in (0, 12)
    ]
    q, k = (reshaped(part, (2, 3, 5, 4)) for part in parts)
    result = contraction(reshaped(q, (2, 3, 5, 1, 4)), reshaped(k, (2, 3, 1, 5, 4)), (4,))
    _, scores = kernels_of([result], arrays)
    assert len(scores.loads) == 2
    assert_agrees([result], arrays, rtol=1e-5)


@pytest.mark.parametrize("seed", range(40))
def test_views_of_merged_dimensions_are_those_of_numpy(seed: int) -> None:
    """Some take the merged dimensions apart again, others cross their bounds."""
    choose = random.Random(seed)
    array = np.random.default_rng(seed).standard_normal((3, 4, 12)).astype(np.float32)
    (x,) = sources(array)
    merged, flat = reshaped(sliced(x, (0, 0, 1), (3, 4, 6)), (3, 12, 2)), array[:, :, 1:7].reshape(3, 12, 2)
    count, step = choose.choice([(2, 6), (3, 3), (3, 1), (4, 3), (2, -6), (5, 2), (12, 1)])
    inner = choose.randint(1, min(3, 12 - abs(step) * (count - 1)))
    ends = 0, step * (count - 1)
    first = choose.randint(-min(ends), 12 - max(ends) - inner)
    places = first + step * np.arange(count)[:, None] + np.arange(inner)
    seen = view(merged, (count, inner, 3, 2), (0, first, 0), [[0, 0, 1, 0], [step, 1, 0, 0], [0, 0, 0, 1]])
    (found,) = run_program([seen + 1.0], [array])
    np.testing.assert_array_equal(found, flat[:, places].transpose(1, 2, 0, 3) + np.float32(1))


def test_a_view_that_moves_dimensions_of_size_1_is_in_the_way_of_no_other_view() -> None:
    random = np.random.default_rng(4)
    arrays = [random.standard_normal(sizes).astype(np.float32) for sizes in ((6, 4, 1, 1), (6, 4, 5))]
    x, y = sources(*arrays)
    moved = reshaped(permuted(x, (2, 3, 0, 1)), (24,))
    result = view(moved, (6, 4, 5), (0,), [[4, 1, 0]]) * y
    assert len(kernels_of([result], arrays)) == 1
    assert_agrees([result], arrays)


def test_what_a_view_reads_is_written_where_it_takes_the_fewest_bits() -> None:
    x, y = sources(*[np.ones((4, 16), np.float32)] * 2)
    greatest = reduce_maximum(x, (0, 1))
    bytes = convert(x / greatest * 255.0, ScalarType.UINT8)
    zero = convert(convert(greatest, ScalarType.UINT8), ScalarType.INT32)
    wide = convert(bytes, ScalarType.INT32) - zero
    result = permuted(wide, (1, 0)) * permuted(convert(y, ScalarType.INT32), (1, 0))
    arrays = [np.arange(64, dtype=np.float32).reshape(4, 16), np.full((4, 16), 3, np.float32)]
    stored = [kernel.stores[0].type for kernel in kernels_of([result], arrays)]
    assert stored == [ScalarType.FLOAT32, ScalarType.UINT8, ScalarType.INT32]
    assert_agrees([result], arrays)


@pytest.mark.parametrize("axes", [(2, 3), (1,), (0, 1, 3), (0,)], ids=str)
def test_a_convolution_and_its_normalization_are_two_kernels(axes: tuple[int, ...]) -> None:
    weights = np.random.default_rng(2).standard_normal((1, 1, 5, 1, 1, 3, 3, 3)).astype(np.float32)
    x, w = sources(ARRAY, weights)
    seen = windows(x, (9, 10), (3, 3), (2, 2), (1, 1), (1, 1))
    operand = reshaped(permuted(seen, (0, 2, 3, 1, 4, 5)), (2, 1, 1, 9, 10, 3, 3, 3))
    convolved = reshaped(contraction(w, operand, (5, 6, 7)), (2, 5, 9, 10))
    spread = convert(variance(convolved, axes) + 1.0, x.type)
    result = deviation(convolved, mean(convolved, axes)) / spread
    kernels = kernels_of([result], [ARRAY, weights])
    assert len(kernels) == 2
    assert_agrees([result], [ARRAY, weights], rtol=1e-5)


@pytest.mark.parametrize("axis", [2, 3])
@pytest.mark.parametrize("type", [np.int32, np.int64, np.uint32, np.uint8])
def test_gathered_elements_outside_are_zero(axis: int, type: type) -> None:
    low = -3 if np.issubdtype(type, np.signedinteger) else 0
    indices: Array = np.random.default_rng(1).integers(low, 25, (1, 1, 17, 19)).astype(type)
    x, i = sources(ARRAY, indices)
    steps = [[int(row == column and row != axis) for column in range(4)] for row in range(4)]
    assert_agrees([gathered(x, ARRAY.shape, {axis: i}, None, steps)], [ARRAY, indices])


def test_views_of_gathered_elements_are_one_kernel() -> None:
    indices = np.random.default_rng(1).integers(0, 17, (1, 1, 17, 1))
    x, i = sources(ARRAY, indices)
    steps = [[int(row == column and row != 2) for column in range(4)] for row in range(4)]
    result = sliced(
        tanh(gathered(x, ARRAY.shape, {2: i}, None, steps)), (0, 0, 1, 0), (2, 3, 8, 19), (1, 1, 2, 1)
    )
    assert len(kernels_of([result], [ARRAY, indices])) == 1
    assert_agrees([result], [ARRAY, indices], rtol=1e-6)


def test_views_of_long_chains_do_not_recurse() -> None:
    node = X
    for number in range(3000):
        node = maximum(node, -float(number))
    result = sliced(node, (0, 0, 1, 1), (2, 3, 4, 4))
    (found,) = with_views_moved([result], Prices())
    assert found.sizes == result.sizes
    assert [each.operation for each in ordered([found])].count(Operation.VIEW) == 1


def test_masks_and_indices_of_views_are_seen_through_views() -> None:
    indices = np.arange(24).reshape(1, 1, 24, 1) - 3
    x, i = sources(ARRAY, indices)
    steps = [[int(row == column and row != 2) for column in range(4)] for row in range(4)]
    rows = gathered(x, (2, 3, 24, 19), {2: padded(i * 2, (0, 0, 0, 0), (0, 0, 0, 0))}, None, steps)
    framed = padded(rows, (0, 0, 2, 1), (0, 0, 1, 3), -1.0)
    result = sliced(framed, (0, 0, 26, 0), (2, 3, 9, 8), (1, 1, -3, 2))
    assert_agrees([result], [ARRAY, indices])


def _reads_memory_alone(results: list[Node]) -> bool:
    """Return whether views and reshapes of moved results read nothing that a kernel has to write first."""
    return all(
        node.operands[0].operation in (Operation.SOURCE, Operation.RESHAPE)
        for node in ordered(with_views_moved(simplify(results), Prices()))
        if node.operation in (Operation.VIEW, Operation.RESHAPE)
    )


def _operations(results: list[Node], arrays: list[Array]) -> list[Operation]:
    (kernel,) = kernels_of(results, arrays)
    return [node.operation for node in ordered(kernel.values)]


HALVES: Array = ARRAY.astype(np.float16)
NARROW_SIZES = {
    "split": (2, 1, 3, 17, 19),
    "split and given again": (2, 3, 17, 19),
    "merged": (6, 17, 19),
    "merged and split": (3, 2, 17, 19),
    "of other dimensions": (3, 34, 19),
}


@pytest.mark.parametrize("sizes", NARROW_SIZES.values(), ids=NARROW_SIZES)
@pytest.mark.parametrize("activates", [False, True], ids=["converted", "activated"])
def test_views_of_reshaped_conversions_read_narrow_tensors(sizes: tuple[int, ...], activates: bool) -> None:
    (x,) = sources(HALVES)
    wide = convert(x, ScalarType.FLOAT32)
    value = reshaped(maximum(wide, 0.0) if activates else wide, sizes)
    margins = [0] * (len(sizes) - 2) + [1, 1]
    results = [convert(padded(value, margins, margins), ScalarType.FLOAT16)]
    assert _reads_memory_alone(results)
    # A view that reads nothing reads 0, of which the conversion and the activation are 0.
    assert Operation.SELECT not in _operations(results, [HALVES])
    assert_agrees(results, [HALVES])


def test_a_mask_stays_where_what_is_made_of_zero_is_not_zero() -> None:
    (x,) = sources(HALVES)
    value = reshaped(maximum(convert(x, ScalarType.FLOAT32), 0.5), (2, 1, 3, 17, 19))
    results = [padded(value, (0, 0, 0, 1, 1), (0, 0, 0, 1, 1))]
    assert Operation.SELECT in _operations(results, [HALVES])
    assert_agrees(results, [HALVES])


@pytest.mark.parametrize("type", [np.float16, np.int8, np.uint8])
def test_windows_of_a_reshaped_conversion_are_multiplied_where_they_lie(type: type) -> None:
    random = np.random.default_rng(2)
    arrays: list[Array] = [
        (random.standard_normal(sizes) * 9).astype(type)
        for sizes in ((2, 24, 9, 9), (1, 2, 5, 1, 1, 12, 3, 3))
    ]
    sums = ScalarType.FLOAT32 if type is np.float16 else ScalarType.INT32
    x, w = (convert(each, sums) for each in sources(*arrays))
    seen = windows(reshaped(x, (2, 2, 12, 9, 9)), (9, 9), (3, 3), (1, 1), (1, 1), (1, 1))
    steps = [[int(column == place) for column in range(8)] for place in (0, 1, 5, 3, 4, 6, 7)]
    operand = view(seen, (2, 2, 1, 9, 9, 12, 3, 3), (0,) * 7, steps)
    results = [contraction(w, operand, (5, 6, 7))]
    assert _reads_memory_alone(results)
    assert Operation.SELECT not in _operations(results, arrays)
    assert_agrees(results, arrays, rtol=1e-4)


def test_a_normalization_in_other_sizes_is_written_narrow_for_a_product() -> None:
    arrays: list[Array] = [
        np.random.default_rng(6).standard_normal(sizes).astype(np.float16) for sizes in ((4, 8, 32), (16, 32))
    ]
    x, w = (convert(each, ScalarType.FLOAT32) for each in sources(*arrays))
    normal = convert(deviation(x, mean(x, [2])), ScalarType.FLOAT16)
    rows = reshaped(convert(normal, ScalarType.FLOAT32), (32, 1, 32))
    result = convert(contraction(rows, reshaped(w, (1, 16, 32)), (2,)), ScalarType.FLOAT16)
    kernels = kernels_of([result], arrays)
    assert [[store.type for store in kernel.stores] for kernel in kernels] == [[ScalarType.FLOAT16]] * 2
    assert_agrees([result], arrays, rtol=1e-2)


def test_groups_of_another_convolution_read_its_narrow_results() -> None:
    """The first has two groups and the second one, so that what is between them is in other sizes."""
    random = np.random.default_rng(7)
    arrays: list[Array] = [
        (random.standard_normal(sizes) / 4).astype(np.float16)
        for sizes in ((1, 8, 6, 6), (1, 2, 4, 1, 1, 4, 3, 3), (1, 1, 8, 1, 1, 8, 3, 3))
    ]
    value, *filters = sources(*arrays)
    for weights in filters:
        groups, channels = weights.sizes[1], weights.sizes[5]
        grouped = reshaped(convert(value, ScalarType.FLOAT32), (1, groups, channels, 6, 6))
        seen = windows(grouped, (6, 6), (3, 3), (1, 1), (1, 1), (1, 1))
        steps = [[int(column == place) for column in range(8)] for place in (0, 1, 5, 3, 4, 6, 7)]
        operand = view(seen, (1, groups, 1, 6, 6, channels, 3, 3), (0,) * 7, steps)
        sums = contraction(convert(weights, ScalarType.FLOAT32), operand, (5, 6, 7))
        value = convert(maximum(reshaped(sums, (1, 8, 6, 6)), 0.0), ScalarType.FLOAT16)
    kernels = kernels_of([value], arrays)
    assert [[store.type for store in kernel.stores] for kernel in kernels] == [[ScalarType.FLOAT16]] * 2
    assert_agrees([value], arrays, rtol=4e-3)


def test_numbers_that_scale_narrow_operands_of_a_product_scale_its_sums() -> None:
    random = np.random.default_rng(9)
    arrays: list[Array] = [random.standard_normal((4, 1, 8)).astype(np.float16) for _ in range(2)]
    q, k = (convert(each, ScalarType.FLOAT32) for each in sources(*arrays))
    result = contraction(q * 0.3, reshaped(k, (1, 4, 8)) * 0.5, (2,))
    (kernel,) = kernels_of([result], arrays)
    (sums,) = (node for node in ordered(kernel.values) if node.operation is Operation.CONTRACTION)
    assert [operand.operation for operand in sums.operands] == [Operation.CONVERT] * 2
    assert_agrees([result], arrays, rtol=1e-6)
    wide = [each.astype(np.float32) for each in arrays]
    q, k = sources(*wide)
    (kernel,) = kernels_of([contraction(q * 0.3, reshaped(k, (1, 4, 8)), (2,))], wide)
    assert kernel.values[0].operation is Operation.CONTRACTION


def test_joined_values_are_read_where_sums_are_added_to_them() -> None:
    """Such values are in a network whose tokens begin with one that is joined to them: no later kernel is in
    two parts."""
    random = np.random.default_rng(10)
    arrays: list[Array] = [
        random.standard_normal(sizes).astype(np.float16) for sizes in ((1, 8), (6, 8), (8, 8))
    ]
    first, rest, weights = (convert(each, ScalarType.FLOAT32) for each in sources(*arrays))
    value = joined([first, rest], 0)
    for _ in range(3):
        sums = contraction(reshaped(value, (7, 1, 8)), reshaped(weights, (1, 8, 8)), (2,))
        value = value + convert(convert(reshaped(sums, (7, 8)), ScalarType.FLOAT16), ScalarType.FLOAT32)
    results = [convert(deviation(value, mean(value, [1])), ScalarType.FLOAT16)]
    kernels = kernels_of(results, arrays)
    # The joined tensor in its parts, each sum, and the difference.
    assert len(kernels) == 2 + 3 + 1
    assert {store.type for kernel in kernels[:2] for store in kernel.stores} == {ScalarType.FLOAT16}
    assert_agrees(results, arrays, rtol=1e-2)


def test_a_computed_number_scales_sums_in_other_sizes() -> None:
    """The number has the same sizes in both, so that it takes no reshape, and keeps its own operation."""
    random = np.random.default_rng(12)
    sizes = (4, 3, 1, 8), (4, 1, 5, 8), (1, 1, 1, 1)
    arrays: list[Array] = [random.standard_normal(each).astype(np.float32) for each in sizes]
    a, b, number = sources(*arrays)
    result = reshaped(contraction(a, b, (3,)), (2, 2, 3, 5)) * -number
    assert_agrees([result], arrays, rtol=1e-6)


def test_gathered_elements_of_one_image_are_broadcast_over_several() -> None:
    random = np.random.default_rng(13)
    arrays: list[Array] = [
        random.standard_normal((1, 6, 9)).astype(np.float32),
        random.integers(0, 9, (1, 6, 5)).astype(np.int32),
        random.standard_normal((4, 6, 5)).astype(np.float32),
    ]
    graph = dml.Graph()
    x, places, factors = (
        graph.input(name, data_type, list(each.shape))
        for name, data_type, each in zip("xpf", (dml.FLOAT32, dml.INT32, dml.FLOAT32), arrays, strict=True)
    )
    model = graph.compile({"y": dml.gather_elements(x, places, axis=2) * factors}, "cpu")
    np.testing.assert_array_equal(model(*arrays)["y"], np.take_along_axis(*arrays[:2], 2) * arrays[2])
