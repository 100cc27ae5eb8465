"""Which numbers of a kernel are parameters, and what the code keeps."""

from __future__ import annotations

import math
import struct

import pytest

from opendml.compiler.kernel import fingerprint
from opendml.compiler.numbers import MOST_NUMBERS, Shared, with_parameters
from opendml.program.common_math import at_least, at_most
from opendml.program.functions import exp, maximum, minimum, power, tanh
from opendml.program.node import Node, Operation, constant, convert, ordered, source
from opendml.program.scalar_type import ScalarType

FLOAT16, FLOAT32, FLOAT64 = ScalarType.FLOAT16, ScalarType.FLOAT32, ScalarType.FLOAT64
X = source(0, FLOAT32, (4,))


def numbers(value: Node) -> list[float]:
    """The parameters of a value in FLOAT32."""
    _, words = with_parameters((value,), {})
    return [struct.unpack("<f", word.to_bytes(8, "little", signed=True)[:4])[0] for word in words]


def constants(value: Node) -> list[object]:
    """What its code keeps."""
    values, _ = with_parameters((value,), {})
    return [node.attribute for node in ordered(values) if node.operation is Operation.CONSTANT]


def test_finite_numbers_are_parameters_in_the_order_of_their_uses() -> None:
    assert numbers(maximum(minimum(X * 3.5 + 0.25, 6.0), -7.0)) == [3.5, 0.25, 6.0, -7.0]


@pytest.mark.parametrize("number", [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e39, 1e-50])
def test_numbers_that_change_the_formula_stay(number: float) -> None:
    assert numbers(X + number) == []


def test_integers_stay() -> None:
    assert with_parameters((source(0, ScalarType.INT32, (4,)) * 12,), {})[1] == ()


def test_whole_exponents_stay_and_others_do_not() -> None:
    assert (numbers(power(X, 4.0)), numbers(power(X, 2.5))) == ([], [2.5])


def test_powers_of_two_stay_where_a_function_takes_what_they_scale() -> None:
    assert (numbers(exp(-(X * 0.5))), numbers(exp(X * 0.75)), numbers(exp(X + 0.5))) == ([], [0.75], [0.5])
    assert numbers(tanh(X) * 0.5) == [0.5]


def test_bounds_of_what_a_function_takes_stay() -> None:
    assert numbers(exp(at_least(at_most(X, 3.0), -2.5))) == []
    assert (numbers(exp(at_most(X, 3.0))), numbers(at_most(X, 3.0))) == ([], [3.0, 3.0])


def test_equal_numbers_are_parameters_of_their_own() -> None:
    equal, other = (with_parameters((X * 3.0 + number,), {})[0] for number in (3.0, 5.0))
    assert fingerprint(equal) == fingerprint(other)


def test_values_that_differ_in_numbers_alone_are_the_same_nodes() -> None:
    shared: Shared = {}
    first, second = (with_parameters((tanh(X * number) + 2.5,), shared)[0] for number in (3.0, 5.0))
    assert first == second


def test_results_that_are_numbers_are_parameters() -> None:
    values, words = with_parameters((constant(2.5, FLOAT64),), {})
    assert values[0].operation is Operation.PARAMETER
    assert words == struct.unpack("<q", struct.pack("<d", 2.5))


@pytest.mark.parametrize(("type", "code"), [(FLOAT16, "<e"), (FLOAT32, "<f"), (FLOAT64, "<d")])
def test_words_hold_the_bits_of_numbers_in_their_type(type: ScalarType, code: str) -> None:
    _, (word,) = with_parameters((convert(X, type) * -0.3,), {})
    content = struct.pack(code, -0.3)
    assert word.to_bytes(8, "little", signed=True)[: len(content)] == content


def test_a_kernel_has_so_many_parameters_at_most() -> None:
    value = X
    for number in range(MOST_NUMBERS + 3):
        value = value + (number + 1.5)
    assert len(numbers(value)) == MOST_NUMBERS
    assert constants(value) == [MOST_NUMBERS + number + 1.5 for number in range(3)]
