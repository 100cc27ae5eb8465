"""Rewrites of tensor programs: each saves work and keeps the meaning."""

from __future__ import annotations

import math

from opendml.compiler.kernel import fingerprint
from opendml.compiler.simplify import simplify
from opendml.program.functions import (
    deviation,
    exp,
    log,
    mean,
    reduce_sum,
    rounded,
    square_root,
    variance,
)
from opendml.program.narrow import is_narrow
from opendml.program.node import Node, Operation, convert, ordered, source
from opendml.program.scalar_type import ScalarType

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


def test_reading_bits_and_back_is_left_out_unless_a_function_would_look_behind_it() -> None:
    assert operations(simple(rounded(X + 1.0))) == [Operation.SOURCE, Operation.ADD]
    assert operations(simple(exp(rounded(X * X)))).count(Operation.BITCAST) == 2


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
    assert set(operations(result)) <= {
        Operation.SOURCE,
        Operation.SUBTRACT,
        Operation.ADD,
        Operation.MULTIPLY,
    }
    constants = [node.attribute for node in ordered([result]) if node.operation is Operation.CONSTANT]
    assert constants == [1 / math.sqrt(1e-5)]


def test_fingerprint_does_not_depend_on_sizes() -> None:
    other = source(0, ScalarType.FLOAT32, (7,))
    assert fingerprint((X + 1.0,)) == fingerprint((other + 1.0,))


def test_fingerprint_tells_constants_and_types_apart() -> None:
    double = source(0, ScalarType.FLOAT64, (4, 5))
    assert len({fingerprint((node,)) for node in (X + 1.0, X + 2.0, X + -0.0, X + 0.0, double + 1.0)}) == 5
