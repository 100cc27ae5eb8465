"""What is computed of constants ahead of all runs, and what is not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from opendml.compiler.fuse import fuse
from opendml.compiler.prepare import split
from opendml.program.four_bit import in_bytes, unpacked
from opendml.program.node import (
    Node,
    Operation,
    apply,
    contraction,
    convert,
    source,
)
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.view import permuted

FLOAT16, FLOAT32 = ScalarType.FLOAT16, ScalarType.FLOAT32
SIZES = (1, 8, 4, 4)
ROW = (1, 8, 1, 1)
X = source(0, FLOAT32, SIZES)
SCALE, SHIFT = (source(number, FLOAT32, ROW) for number in (1, 2))
WHOLE = source(3, FLOAT32, SIZES)
HALF = source(4, FLOAT16, SIZES)
REPEATED = source(5, FLOAT32, SIZES)
INPUTS = (
    *(packed(each.type, each.sizes) for each in (X, SCALE, SHIFT, WHOLE, HALF)),
    Layout(FLOAT32, SIZES, (0, 4, 0, 0)),
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
    assert prepared(X * gain) == (gain,)
    assert prepared(X * gain, root(X) + gain) == (gain,)


def test_what_changes_or_depends_on_nothing_is_not_prepared() -> None:
    assert prepared(X * 2.0 + X) == ()
    assert prepared(X * root(X + 3.0) * SCALE) == ()
    program = program_of(X * root(SHIFT), constants=frozenset())
    assert not fuse(program).initializers
    assert not fuse(program).prepared


@pytest.mark.parametrize(
    ("value", "number"),
    [(WHOLE, 3), (convert(HALF, FLOAT32), 4), (permuted(WHOLE, (0, 1, 3, 2)), 3)],
    ids=["constant", "converted", "moved"],
)
def test_what_a_kernel_reads_for_free_stays_as_it_is(value: Node, number: int) -> None:
    assert prepared(X * value) == ()
    (kernel,) = fuse(program_of(X * value)).kernels
    assert {load.buffer: load.fixed for load in kernel.loads} == {0: False, number: True}


@pytest.mark.parametrize(
    ("larger", "parts"),
    [
        (SCALE + REPEATED, ()),
        (root(SCALE) * convert(HALF, FLOAT32), (root,)),
    ],
    ids=["repeated", "widened"],
)
def test_what_takes_more_memory_than_its_constants_is_not_prepared(
    larger: Node, parts: Sequence[object]
) -> None:
    found = prepared(X * larger)
    assert larger not in found
    assert [node.operation for node in found] == [Operation.SQUARE_ROOT for _ in parts]


def test_halves_of_bytes_are_prepared_as_bytes() -> None:
    layout = Layout(ScalarType.UINT4, (2, 8), (8, 1))
    halves = unpacked(source(0, ScalarType.UINT8, (8,)), layout)
    value = convert(halves, FLOAT32) * source(1, FLOAT32, (2, 1))
    inputs = tuple(packed(type, sizes) for type, sizes in ((ScalarType.UINT8, (8,)), (FLOAT32, (2, 1))))
    x = source(2, FLOAT32, (2, 8))
    whole = Program(
        (*inputs, packed(FLOAT32, (2, 8))), (packed(FLOAT32, (2, 8)),), (x * value,), frozenset({0, 1})
    )
    (found,) = split(in_bytes(whole))[0].results
    assert (found.type, found.sizes) == (ScalarType.UINT8, (2, 8))


def test_sums_are_prepared_however_large_they_are() -> None:
    column, row = source(1, FLOAT32, (8, 1, 2)), source(2, FLOAT32, (1, 8, 2))
    x = source(0, FLOAT32, (8, 8, 1))
    inputs = tuple(packed(FLOAT32, each.sizes) for each in (x, column, row))
    total = contraction(column, row, (2,))
    program = Program(inputs, (packed(FLOAT32, x.sizes),), (x * (total + 1.0),), frozenset({1, 2}))
    assert split(program)[0].results == (total,)


def test_results_that_are_constant_are_copied() -> None:
    program = fuse(program_of(WHOLE + 1.0))
    (ahead,), (copy,) = program.initializers, program.kernels
    assert [load.buffer for load in ahead.loads] == [3]
    assert [store.buffer for store in ahead.stores] == [program.first_prepared]
    assert [load.buffer for load in copy.loads] == [program.first_prepared]
    assert copy.values[0].operation is Operation.SOURCE


def test_kernels_read_what_is_prepared_from_memory_of_its_own() -> None:
    program = fuse(program_of(X * root(SCALE) + root(SHIFT) * X * X))
    (kernel,) = program.kernels
    first = program.first_prepared
    assert {load.buffer: load.fixed for load in kernel.loads} == {0: False, first: True, first + 1: True}
    assert {store.buffer for each in program.initializers for store in each.stores} == {first, first + 1}
    assert len({each.recipe.text for each in program.prepared}) == 1
    assert [each.recipe.constants for each in program.prepared] == [(1,), (2,)]
    assert [store.buffer for store in kernel.stores] == [len(INPUTS)]
