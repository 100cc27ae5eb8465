"""Simplification, numbers as parameters, loops over memory, and what is prepared ahead."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import pytest

from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Access, Kernel, fingerprint
from opendml.compiler.loops import loop_nest
from opendml.compiler.memory import ALIGNMENT, place
from opendml.compiler.parameters import MOST_NUMBERS, Shared, with_parameters
from opendml.compiler.prepare import split
from opendml.compiler.simplify import simplify
from opendml.program.carriers import carried
from opendml.program.common_math import at_least, at_most
from opendml.program.four_bit import unpacked
from opendml.program.functions import (
    deviation,
    exp,
    log,
    maximum,
    mean,
    minimum,
    power,
    reduce_sum,
    rounded,
    square_root,
    tanh,
    variance,
)
from opendml.program.narrow import is_narrow
from opendml.program.node import (
    REDUCTIONS,
    Node,
    Operation,
    apply,
    bitcast,
    constant,
    contraction,
    convert,
    ordered,
    source,
)
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.view import permuted

X = source(0, ScalarType.FLOAT32, (4, 5))
HALF = source(0, ScalarType.FLOAT16, (4, 5))


def operations(root: Node) -> list[Operation]:
    return [node.operation for node in ordered([root]) if node.operation is not Operation.CONSTANT]


def simple(root: Node) -> Node:
    return simplify([root])[0]


def test_equal_nodes_become_one() -> None:
    result = simple((X + 1.0) * (X + 1.0))
    assert result.operands[0] is result.operands[1]


def test_zeros_of_different_sign_stay_apart() -> None:
    result = simple((X * 0.0) + (X * -0.0))
    assert result.operands[0] is not result.operands[1]


def test_multiplication_by_one_is_left_out() -> None:
    assert operations(simple(X * 1.0)) == [Operation.SOURCE]
    assert operations(simple(1.0 * X)) == [Operation.SOURCE]


def test_addition_of_zero_is_kept_because_of_negative_zero() -> None:
    assert operations(simple(X + 0.0)) == [Operation.SOURCE, Operation.ADD]


def test_division_by_a_power_of_two_is_a_multiplication() -> None:
    result = simple(X / 4.0)
    assert (result.operation, result.operands[1].attribute) == (Operation.MULTIPLY, 0.25)


def test_division_by_another_number_stays_a_division() -> None:
    assert simple(X / 3.0).operation is Operation.DIVIDE


def test_division_by_a_number_is_a_multiplication_where_only_float16_is_made_of_it() -> None:
    def divided(number: float) -> list[Operation]:
        return operations(simple(convert(convert(HALF, ScalarType.FLOAT32) / number, ScalarType.FLOAT16)))

    assert divided(3.0)[-2] is Operation.MULTIPLY
    # Reciprocals of these are denormal or infinite, or there is none.
    for number in (2.0**127 * 1.5, 1e-40, 0.0):
        assert divided(number)[-2] is Operation.DIVIDE


def test_widening_and_narrowing_again_is_left_out() -> None:
    assert operations(simple(convert(convert(HALF, ScalarType.FLOAT32), ScalarType.FLOAT16))) == [
        Operation.SOURCE
    ]


def test_rounding_to_float16_between_fused_operators_is_kept() -> None:
    half = convert(convert(X + 1.0, ScalarType.FLOAT16), ScalarType.FLOAT32)
    assert operations(simple(half)).count(Operation.CONVERT) == 2


def test_rounding_is_left_out_unless_a_function_would_look_behind_it() -> None:
    assert operations(simple(rounded(X + 1.0))) == [Operation.SOURCE, Operation.ADD]
    assert operations(simple(exp(rounded(X * X)))).count(Operation.ROUND) == 1
    assert simple(bitcast(bitcast(X, ScalarType.INT32), X.type)) is X


def cheap(root: Node) -> list[Operation]:
    return [node.operation for node in ordered([simple(root)]) if is_narrow(node)]


def test_functions_are_cheap_where_only_float16_is_made_of_them() -> None:
    of_half, of_full = convert(exp(X) / X, ScalarType.FLOAT16), exp(X)
    assert cheap(of_half) == [Operation.EXPONENTIAL, Operation.DIVIDE]
    assert cheap(of_full) == []
    assert cheap(convert(rounded(exp(X)), ScalarType.FLOAT16)) == []
    assert cheap(log(convert(of_half, ScalarType.FLOAT32))) == [Operation.EXPONENTIAL, Operation.DIVIDE]


def test_functions_of_reductions_are_not_cheap() -> None:
    total = convert(reduce_sum(exp(X), [1]), ScalarType.FLOAT32)
    assert cheap(convert(log(total) + X, ScalarType.FLOAT16)) == [Operation.EXPONENTIAL]


def test_rounding_to_float32_on_the_way_from_float64_is_kept() -> None:
    wide = convert(X, ScalarType.FLOAT64) / 3.0
    rounded = convert(convert(wide, ScalarType.FLOAT32), ScalarType.FLOAT64)
    assert operations(simple(rounded)).count(Operation.CONVERT) == 3


def test_group_of_one_element_needs_no_reduction() -> None:
    column = source(0, ScalarType.FLOAT32, (4, 1))
    factor = 1.0 / square_root(variance(column, [1]) + 1e-5)
    result = simple(deviation(column, mean(column, [1])) * convert(factor, ScalarType.FLOAT32))
    assert REDUCTIONS.isdisjoint(operations(result))


def test_fingerprint_does_not_depend_on_sizes() -> None:
    other = source(0, ScalarType.FLOAT32, (7,))
    assert fingerprint((X + 1.0,)) == fingerprint((other + 1.0,))


def test_fingerprint_tells_constants_and_types_apart() -> None:
    double = source(0, ScalarType.FLOAT64, (4, 5))
    assert len({fingerprint((node,)) for node in (X + 1.0, X + 2.0, X + -0.0, X + 0.0, double + 1.0)}) == 5


FLOAT16, FLOAT32, FLOAT64 = ScalarType.FLOAT16, ScalarType.FLOAT32, ScalarType.FLOAT64
X_NUMBERS = source(0, FLOAT32, (4,))


def numbers(value: Node) -> list[float]:
    """The parameters of a value in FLOAT32."""
    _, words = with_parameters((value,), {})
    return [struct.unpack("<f", word.to_bytes(8, "little", signed=True)[:4])[0] for word in words]


def constants(value: Node) -> list[object]:
    """Return the constants that stay in the code."""
    values, _ = with_parameters((value,), {})
    return [node.attribute for node in ordered(values) if node.operation is Operation.CONSTANT]


def test_finite_numbers_are_parameters_in_the_order_of_their_uses() -> None:
    assert numbers(maximum(minimum(X_NUMBERS * 3.5 + 0.25, 6.0), -7.0)) == [3.5, 0.25, 6.0, -7.0]


@pytest.mark.parametrize("number", [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e39, 1e-50])
def test_numbers_that_change_the_formula_stay(number: float) -> None:
    assert numbers(X_NUMBERS + number) == []


def test_integers_stay() -> None:
    assert with_parameters((source(0, ScalarType.INT32, (4,)) * 12,), {})[1] == ()


def test_whole_exponents_stay_and_others_do_not() -> None:
    assert (numbers(power(X_NUMBERS, 4.0)), numbers(power(X_NUMBERS, 2.5))) == ([], [2.5])


def test_powers_of_two_stay_where_a_function_takes_what_they_scale() -> None:
    assert (
        numbers(exp(-(X_NUMBERS * 0.5))),
        numbers(exp(X_NUMBERS * 0.75)),
        numbers(exp(X_NUMBERS + 0.5)),
    ) == ([], [0.75], [0.5])
    assert numbers(tanh(X_NUMBERS) * 0.5) == [0.5]


def test_bounds_of_what_a_function_takes_stay() -> None:
    assert numbers(exp(at_least(at_most(X_NUMBERS, 3.0), -2.5))) == []
    assert (numbers(exp(at_most(X_NUMBERS, 3.0))), numbers(at_most(X_NUMBERS, 3.0))) == ([], [3.0, 3.0])


def test_equal_numbers_are_parameters_of_their_own() -> None:
    equal, other = (with_parameters((X_NUMBERS * 3.0 + number,), {})[0] for number in (3.0, 5.0))
    assert fingerprint(equal) == fingerprint(other)


def test_values_that_differ_in_numbers_alone_are_the_same_nodes() -> None:
    shared: Shared = {}
    first, second = (with_parameters((tanh(X_NUMBERS * number) + 2.5,), shared)[0] for number in (3.0, 5.0))
    assert first == second


def test_results_that_are_numbers_are_parameters() -> None:
    values, words = with_parameters((constant(2.5, FLOAT64),), {})
    assert values[0].operation is Operation.PARAMETER
    assert words == struct.unpack("<q", struct.pack("<d", 2.5))


@pytest.mark.parametrize(("type", "code"), [(FLOAT16, "<e"), (FLOAT32, "<f"), (FLOAT64, "<d")])
def test_words_hold_the_bits_of_numbers_in_their_type(type: ScalarType, code: str) -> None:
    _, (word,) = with_parameters((convert(X_NUMBERS, type) * -0.3,), {})
    content = struct.pack(code, -0.3)
    assert word.to_bytes(8, "little", signed=True)[: len(content)] == content


def test_a_kernel_has_so_many_parameters_at_most() -> None:
    value = X_NUMBERS
    for number in range(MOST_NUMBERS + 3):
        value = value + (number + 1.5)
    assert len(numbers(value)) == MOST_NUMBERS
    assert constants(value) == [MOST_NUMBERS + number + 1.5 for number in range(3)]


FLOAT32_LOOPS = ScalarType.FLOAT32


def kernel(domain: tuple[int, ...], *strides: tuple[int, ...], axes: tuple[int, ...] = ()) -> Kernel:
    accesses = [Access(index, FLOAT32_LOOPS, 0, each) for index, each in enumerate(strides)]
    return Kernel(domain, axes, tuple(accesses[:-1]), (accesses[-1],), (source(0, FLOAT32_LOOPS, domain),))


def strides(*sizes: int) -> tuple[int, ...]:
    return packed(FLOAT32_LOOPS, sizes).strides


def test_packed_tensors_are_one_loop() -> None:
    nest = loop_nest(kernel((2, 3, 4), strides(2, 3, 4), strides(2, 3, 4)))
    assert (nest.groups, nest.rows, nest.inner.count) == ((), (), 24)


def test_padded_rows_stay_a_loop_of_their_own() -> None:
    nest = loop_nest(kernel((2, 3, 4), (60, 20, 4), strides(2, 3, 4)))
    assert [loop.count for loop in nest.groups] == [6]
    assert nest.inner.count == 4


def test_dimensions_of_size_one_vanish() -> None:
    nest = loop_nest(kernel((1, 5, 1), (0, 4, 0), (0, 4, 0)))
    assert (nest.groups, nest.inner.count) == ((), 5)


def test_permuted_tensors_are_walked_in_the_order_of_memory() -> None:
    nest = loop_nest(kernel((2, 3, 4, 5), (240, 4, 60, 12), (240, 4, 60, 12)))
    assert (nest.groups, nest.inner.count) == ((), 120)


def test_reduced_and_kept_dimensions_are_not_merged() -> None:
    nest = loop_nest(kernel((2, 3, 4, 5), strides(2, 3, 4, 5), strides(2, 3, 4, 5), axes=(2, 3)))
    assert ([loop.count for loop in nest.groups], nest.inner.count, nest.inner_reduced) == ([6], 20, True)


def test_groups_side_by_side_make_a_kept_dimension_innermost() -> None:
    nest = loop_nest(kernel((2, 3, 4, 5), strides(2, 3, 4, 5), strides(2, 3, 4, 5), axes=(1,)))
    assert (nest.inner.count, nest.inner_reduced) == (20, False)
    assert [loop.count for loop in nest.rows] == [3]


def test_small_operands_do_not_decide_which_loop_is_innermost() -> None:
    scale = (0, 4, 0, 0)
    sizes = (4, 256, 7, 56)
    nest = loop_nest(kernel(sizes, strides(*sizes), scale, scale, strides(*sizes), axes=(3,)))
    assert (nest.inner.count, nest.inner_reduced) == (56, True)


@pytest.mark.parametrize("seed", range(20))
def test_memory_plan_never_overlaps_what_is_alive_together(seed: int) -> None:
    state = seed * 7919 + 1
    sizes, lifetimes = [], []
    for _ in range(12):
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        first = state >> 8 & 7
        sizes.append(1 + (state >> 12) % 5000)
        lifetimes.append((first, first + (state >> 20 & 3)))
    offsets, total = place(sizes, lifetimes)
    for one, (offset, size, (first, last)) in enumerate(zip(offsets, sizes, lifetimes, strict=True)):
        assert offset % ALIGNMENT == 0
        assert offset + size <= total
        for other in range(one):
            if lifetimes[other][0] <= last and first <= lifetimes[other][1]:
                assert offsets[other] + sizes[other] <= offset or offset + size <= offsets[other]


FLOAT16_PREPARE, FLOAT32_PREPARE = ScalarType.FLOAT16, ScalarType.FLOAT32
SIZES = (1, 8, 4, 4)
ROW = (1, 8, 1, 1)
X_PREPARE = source(0, FLOAT32_PREPARE, SIZES)
SCALE, SHIFT = (source(number, FLOAT32_PREPARE, ROW) for number in (1, 2))
WHOLE = source(3, FLOAT32_PREPARE, SIZES)
HALF_PREPARE = source(4, FLOAT16_PREPARE, SIZES)
REPEATED = source(5, FLOAT32_PREPARE, SIZES)
INPUTS = (
    *(packed(each.type, each.sizes) for each in (X_PREPARE, SCALE, SHIFT, WHOLE, HALF_PREPARE)),
    Layout(FLOAT32_PREPARE, SIZES, (0, 4, 0, 0)),
)
CONSTANTS = frozenset(range(1, len(INPUTS)))


def program_of(*results: Node, constants: frozenset[int] = CONSTANTS) -> Program:
    return Program(INPUTS, tuple(packed(each.type, each.sizes) for each in results), results, constants)


def prepared(*results: Node) -> tuple[Node, ...]:
    return split(program_of(*results))[0].results


def root(value: Node) -> Node:
    return apply(Operation.SQUARE_ROOT, value)


def test_what_is_made_of_constants_alone_is_prepared_as_a_whole() -> None:
    gain = SCALE / root(SHIFT + 1.0)
    assert prepared(X_PREPARE * gain) == (gain,)
    assert prepared(X_PREPARE * gain, root(X_PREPARE) + gain) == (gain,)


def test_what_changes_or_depends_on_nothing_is_not_prepared() -> None:
    assert prepared(X_PREPARE * 2.0 + X_PREPARE) == ()
    assert prepared(X_PREPARE * root(X_PREPARE + 3.0) * SCALE) == ()
    program = program_of(X_PREPARE * root(SHIFT), constants=frozenset())
    assert not fuse(program).initializers
    assert not fuse(program).prepared


@pytest.mark.parametrize(
    ("value", "number"),
    [(WHOLE, 3), (convert(HALF_PREPARE, FLOAT32_PREPARE), 4), (permuted(WHOLE, (0, 1, 3, 2)), 3)],
    ids=["constant", "converted", "moved"],
)
def test_what_a_kernel_reads_for_free_stays_as_it_is(value: Node, number: int) -> None:
    assert prepared(X_PREPARE * value) == ()
    (kernel,) = fuse(program_of(X_PREPARE * value)).kernels
    assert {load.buffer: load.fixed for load in kernel.loads} == {0: False, number: True}


@pytest.mark.parametrize(
    ("larger", "parts"),
    [(SCALE + REPEATED, ()), (root(SCALE) * convert(HALF_PREPARE, FLOAT32_PREPARE), (root,))],
    ids=["repeated", "widened"],
)
def test_what_takes_more_than_its_constants_is_not_prepared(larger: Node, parts: Sequence[object]) -> None:
    found = prepared(X_PREPARE * larger)
    assert larger not in found
    assert [node.operation for node in found] == [Operation.SQUARE_ROOT for _ in parts]


def test_halves_of_bytes_are_prepared_as_bytes() -> None:
    layout = Layout(ScalarType.UINT4, (2, 8), (8, 1))
    halves = unpacked(source(0, ScalarType.UINT8, (8,)), layout)
    value = convert(halves, FLOAT32_PREPARE) * source(1, FLOAT32_PREPARE, (2, 1))
    inputs = tuple(
        packed(type, sizes) for type, sizes in ((ScalarType.UINT8, (8,)), (FLOAT32_PREPARE, (2, 1)))
    )
    x = source(2, FLOAT32_PREPARE, (2, 8))
    whole = Program(
        (*inputs, packed(FLOAT32_PREPARE, (2, 8))),
        (packed(FLOAT32_PREPARE, (2, 8)),),
        (x * value,),
        frozenset({0, 1}),
    )
    (found,) = split(carried(whole))[0].results
    assert (found.type, found.sizes) == (ScalarType.UINT8, (2, 8))


def test_sums_are_prepared_however_large_they_are() -> None:
    column, row = source(1, FLOAT32_PREPARE, (8, 1, 2)), source(2, FLOAT32_PREPARE, (1, 8, 2))
    x = source(0, FLOAT32_PREPARE, (8, 8, 1))
    inputs = tuple(packed(FLOAT32_PREPARE, each.sizes) for each in (x, column, row))
    total = contraction(column, row, (2,))
    program = Program(inputs, (packed(FLOAT32_PREPARE, x.sizes),), (x * (total + 1.0),), frozenset({1, 2}))
    assert split(program)[0].results == (total,)


def test_results_that_are_constant_are_copied() -> None:
    program = fuse(program_of(WHOLE + 1.0))
    (ahead,), (copy,) = program.initializers, program.kernels
    assert [load.buffer for load in ahead.loads] == [3]
    assert [store.buffer for store in ahead.stores] == [program.first_prepared]
    assert [load.buffer for load in copy.loads] == [program.first_prepared]
    assert copy.values[0].operation is Operation.SOURCE


def test_kernels_read_what_is_prepared_from_memory_of_its_own() -> None:
    program = fuse(program_of(X_PREPARE * root(SCALE) + root(SHIFT) * X_PREPARE * X_PREPARE))
    (kernel,) = program.kernels
    first = program.first_prepared
    assert {load.buffer: load.fixed for load in kernel.loads} == {0: False, first: True, first + 1: True}
    assert {store.buffer for each in program.initializers for store in each.stores} == {first, first + 1}
    assert len({each.recipe.text for each in program.prepared}) == 1
    assert [each.recipe.constants for each in program.prepared] == [(1,), (2,)]
    assert [store.buffer for store in kernel.stores] == [len(INPUTS)]
