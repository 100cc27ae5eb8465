"""Rewrites of tensor programs: each saves work and keeps the meaning."""

from __future__ import annotations

import math

from opendml.compiler.kernel import fingerprint
from opendml.compiler.simplify import simplify
from opendml.program.functions import deviation, mean, square_root, variance
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


def test_widening_and_narrowing_again_is_left_out() -> None:
    assert operations(simple(convert(convert(HALF, ScalarType.FLOAT32), ScalarType.FLOAT16))) == [
        Operation.SOURCE
    ]


def test_rounding_to_float16_between_fused_operators_is_left_out() -> None:
    rounded = convert(convert(X + 1.0, ScalarType.FLOAT16), ScalarType.FLOAT32)
    assert operations(simple(rounded)) == [Operation.SOURCE, Operation.ADD]


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
