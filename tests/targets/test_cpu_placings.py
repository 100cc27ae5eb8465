"""What is placed along lines, of any layout, against the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from opendml.compiler.fuse import fuse
from opendml.compiler.placings import in_any_order
from opendml.program.functions import reduce_sum, select
from opendml.program.node import (
    Node,
    Operation,
    constant,
    convert,
    placing,
    scattered_last,
    scattered_sum,
    source,
)
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.executable import CpuExecutable
from opendml.targets.cpu.machine import assumed, machine
from opendml.targets.cpu.native import MOST_KEPT
from opendml.targets.cpu.pattern import Mode
from opendml.targets.cpu.schedule import schedule
from opendml.targets.reference.executable import ReferenceExecutable

INT32, INT64, UINT32 = ScalarType.INT32, ScalarType.INT64, ScalarType.UINT32
SIZES = (6, 5, 33)
_PLACES = 20


def _results(program: Program, threads: int | None = None) -> list[np.ndarray[tuple[int], np.dtype[np.int8]]]:
    """The bytes of the outputs; those between elements are 0."""
    generator = np.random.default_rng(1)
    memory = [
        generator.integers(-3, _PLACES + 3, layout.span[1] // layout.type.bytes).astype(layout.type.numpy)
        for layout in program.inputs
    ]
    memory += [np.zeros(layout.span[1], np.int8) for layout in program.outputs]
    executable = ReferenceExecutable(program) if threads is None else CpuExecutable(program, threads)
    instance = executable.instantiate()
    for number, array in enumerate(memory):
        instance.bind(number, array.ctypes.data)
    instance.dispatch()
    return [array.view(np.int8) for array in memory[len(program.inputs) :]]


def _check(results: Sequence[Node], outputs: Sequence[Layout], inputs: Sequence[Layout]) -> None:
    program = Program(tuple(inputs), tuple(outputs), tuple(results))
    expected = _results(program)
    for threads in (1, 2):
        for result, wanted in zip(_results(program, threads), expected, strict=True):
            np.testing.assert_array_equal(result, wanted)


def _strided(type: ScalarType, sizes: Sequence[int]) -> Layout:
    """The first dimension innermost, with gaps."""
    strides, step = [], 2 * type.bytes
    for size in sizes:
        strides.append(step)
        step *= size + 1
    return Layout(type, tuple(sizes), tuple(strides))


def _spaced(type: ScalarType, sizes: Sequence[int]) -> Layout:
    """The last dimension innermost, with gaps."""
    reverse = _strided(type, sizes[::-1])
    return Layout(type, tuple(sizes), reverse.strides[::-1])


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (2, 0), (0, 2), (1, 0, 2)], ids=str)
@pytest.mark.parametrize("type", [INT32, INT64, UINT32])
def test_sums_at_places(type: ScalarType, axes: tuple[int, ...]) -> None:
    places, values = source(0, type, SIZES), source(1, INT32, SIZES)
    sums = scattered_sum(places, convert(values, INT64) - 5, axes, _PLACES)
    _check([sums], [packed(sums.type, sums.sizes)], [packed(type, SIZES), packed(INT32, SIZES)])


def test_sums_of_values_that_repeat() -> None:
    places, values = source(0, INT32, (1, 5, 33)), source(1, INT64, (6, 1, 33))
    sums = scattered_sum(places, values, (1, 2), _PLACES)
    inputs = [packed(each.type, each.sizes) for each in (places, values)]
    _check([sums], [packed(sums.type, sums.sizes)], inputs)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("type", [ScalarType.INT8, INT64, ScalarType.FLOAT16])
def test_the_last_value_of_each_place(type: ScalarType, axis: int) -> None:
    sizes = tuple(_PLACES if each == axis else size for each, size in enumerate(SIZES))
    places, values, before = source(0, INT32, SIZES), source(1, type, SIZES), source(2, type, sizes)
    result = scattered_last(places, values, before, axis)
    outputs = [_strided(type, sizes), packed(type, sizes)]
    for inputs in (
        [packed(INT32, SIZES), packed(type, SIZES), packed(type, sizes)],
        [_strided(INT32, SIZES), _strided(type, SIZES), _strided(type, sizes)],
    ):
        _check([result, result], outputs, inputs)


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("operation", [Operation.SCATTER, Operation.SCATTER_LAST, Operation.SCATTER_SUM])
@pytest.mark.parametrize(("rows", "mode"), [(9, Mode.SCATTER_COLUMNS), (11, Mode.SCATTER_TILES)])
def test_lines_side_by_side_are_placed_a_tile_at_a_time(operation: Operation, rows: int, mode: Mode) -> None:
    sizes = (3, rows, 301)
    places, values = source(0, INT32, sizes), source(1, INT64, sizes)
    if operation is Operation.SCATTER_SUM:
        result = scattered_sum(places, values, (1,), _PLACES)
    elif operation is Operation.SCATTER_LAST:
        result = scattered_last(places, values, constant(7, INT64) + source(2, INT64, (3, _PLACES, 301)), 1)
    else:
        result = placing(operation, places, 1, _PLACES)
    inputs = [packed(INT32, sizes), packed(INT64, sizes), packed(INT64, (3, _PLACES, 301))]
    outputs = [packed(result.type, result.sizes), _spaced(result.type, result.sizes)]
    program = Program(tuple(inputs), tuple(outputs), (result,) * 2)
    (launch,) = schedule(fuse(program, in_order=True).kernels[-1])
    assert launch.pattern.mode is mode
    assert launch.items > 3
    _check([result] * 2, outputs, inputs)


@pytest.mark.parametrize("operation", [Operation.SCATTER, Operation.SCATTER_LAST, Operation.SCATTER_SUM])
@pytest.mark.parametrize("type", [INT32, ScalarType.FLOAT16])
def test_long_lines_side_by_side_are_placed_a_vector_at_a_time(
    operation: Operation, type: ScalarType
) -> None:
    """Some of the places lie outside."""
    count, lines = 600, 141
    sizes = (2, 300, lines)
    before = source(2, type, (2, count, lines))
    places, values = source(0, INT32, sizes) * 29, source(1, type, sizes)
    if operation is Operation.SCATTER_SUM:
        result = scattered_sum(places, convert(values, INT32), (1,), count)
    elif operation is Operation.SCATTER_LAST:
        result = scattered_last(places, values, before, 1)
    else:
        result = placing(operation, places, 1, count)
    inputs = [packed(INT32, sizes), packed(type, sizes), packed(type, before.sizes)]
    outputs = [packed(result.type, result.sizes), _spaced(result.type, result.sizes)]
    program = Program(tuple(inputs), tuple(outputs), (result,) * 2)
    (launch,) = schedule(fuse(program, in_order=True).kernels[-1])
    if result.type.bytes <= 4:
        assert launch.pattern.mode is Mode.SCATTER_STRIPS
    _check([result] * 2, outputs, inputs)


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("lines", [100, 10_000, 1_000_000])
@pytest.mark.parametrize(("rows", "kept"), [(20, False), (4000, True)])
def test_threads_keep_tiles_of_many_rows_that_lie_side_by_side(
    rows: int, lines: int, kept: bool, vector_bytes: int
) -> None:
    places = source(0, INT64, (rows, lines))
    result = scattered_sum(places, places, (0,), rows)
    program = Program((packed(INT64, places.sizes),), (packed(result.type, result.sizes),), (result,))
    with assumed(replace(machine(), vector_bytes=vector_bytes, l2_bytes=1024 * 1024)):
        (launch,) = schedule(fuse(program, in_order=True).kernels[-1])
    assert launch.kept == kept
    assert launch.claims <= MOST_KEPT or not kept


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("least", [-9, 0, 9, 99])
def test_positions_of_what_holds(least: int, axis: int) -> None:
    found = source(0, INT32, SIZES) >= least
    placed = placing(Operation.POSITIONS, found, axis, SIZES[axis])
    outputs = [_strided(placed.type, placed.sizes), packed(placed.type, placed.sizes)]
    _check([placed, placed], outputs, [_strided(INT32, SIZES)])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_positions_are_gone_on_from_where_they_are_found(axis: int) -> None:
    """As kernels of several results, of which one moves along less, and of a kernel of its own."""
    x, others = source(0, INT32, SIZES), source(1, INT32, (1, *SIZES[1:]))
    placed = placing(Operation.POSITIONS, x * others >= 0, axis, SIZES[axis])
    results = [placed, placed * 3 + others, convert(placed, INT64) - convert(x, INT64)]
    results.append(select(placed < 0, constant(7, INT32), placed))
    results.append(reduce_sum(placed + 1, [axis]))
    outputs = [
        make(each.type, each.sizes) for make, each in zip((_strided, _spaced) * 3, results, strict=False)
    ]
    inputs = [_spaced(INT32, SIZES), packed(INT32, others.sizes)]
    _check(results, outputs, inputs)
    program = Program(tuple(inputs), tuple(outputs[:4]), tuple(results[:4]))
    (kernel,) = fuse(program, in_order=True).kernels
    assert len(kernel.stores) == 4


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("share", [0.0, 0.001, 0.7, 1.0])
@pytest.mark.parametrize("length", [33, 16 * 1024, 3 * 16 * 1024 + 7])
def test_positions_of_chunks_follow_each_other(share: float, length: int) -> None:
    sizes = (2, length)
    # The reference's inputs lie evenly in these bounds.
    x = source(0, INT32, sizes)
    placed = placing(Operation.POSITIONS, x >= round(_PLACES + 3 - share * (_PLACES + 6)), 1, length)
    results = [convert(placed, UINT32) * 5, placed]
    program = Program(
        (packed(INT32, sizes),), tuple(packed(each.type, sizes) for each in results), tuple(results)
    )
    (kernel,) = fuse(program, in_order=True).kernels
    launches = schedule(kernel)
    assert [each.pattern.mode for each in launches] == [Mode.POSITIONS_CHUNKS, Mode.POSITIONS]
    assert launches[0].items == 2 * -(-length // (16 * 1024))
    _check(results, program.outputs, program.inputs)


@pytest.mark.parametrize("length", [1, 33, 3 * 16 * 1024 + 7])
def test_the_number_of_positions_is_found_with_them(length: int) -> None:
    sizes = (2, length)
    placed = placing(Operation.POSITIONS, source(0, INT32, sizes) >= 5, 1, length)
    number = reduce_sum(convert(placed >= 0, UINT32), [1])
    results = [number * 2, placed, number]
    program = Program(
        (packed(INT32, sizes),), tuple(packed(each.type, each.sizes) for each in results), tuple(results)
    )
    assert len(fuse(program, in_order=True).kernels) == 1
    _check(results, program.outputs, program.inputs)


def test_positions_beside_their_number_wait_for_it() -> None:
    sizes = (3, 33)
    placed = placing(Operation.POSITIONS, source(0, INT32, sizes) >= 5, 1, 33)
    result = placed + reduce_sum(convert(placed >= 0, INT32), [1])
    _check([result], [packed(INT32, sizes)], [packed(INT32, sizes)])


def test_placing_in_any_order_means_the_same() -> None:
    places, values, before = (source(number, INT32, SIZES) for number in range(3))
    results = (
        scattered_last(places, values, before, 1),
        placing(Operation.POSITIONS, values < 5, 2, SIZES[2]),
    )
    program = Program(
        (packed(INT32, SIZES),) * 3, tuple(packed(each.type, each.sizes) for each in results), results
    )
    in_order = _results(program)
    for found, wanted in zip(
        _results(replace(program, results=in_any_order(results))), in_order, strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("operation", [Operation.SCATTER, Operation.TOP])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_lines_of_any_layout_and_several_stores(axis: int, operation: Operation) -> None:
    type = INT32 if operation is Operation.SCATTER else UINT32
    count = _PLACES if operation is Operation.SCATTER else 4
    placed = placing(operation, source(0, type, SIZES), axis, count)
    outputs = [_strided(placed.type, placed.sizes), packed(placed.type, placed.sizes)]
    _check([placed, placed], outputs, [_strided(type, SIZES)])


def test_what_is_placed_is_a_kernel_of_its_own_and_what_it_is_made_of_is_not() -> None:
    x = source(0, UINT32, SIZES)
    result = placing(Operation.TOP, x * 2 + 1, 2, 4) + 1
    program = fuse(Program((packed(UINT32, SIZES),), (packed(result.type, result.sizes),), (result,)))
    assert [kernel.axes for kernel in program.kernels] == [(2,), ()]


def test_long_lines_are_split_between_threads() -> None:
    sizes = (2, 300_000)
    placed = placing(Operation.TOP, source(0, UINT32, sizes), 1, 70)
    program = Program((packed(UINT32, sizes),), (packed(placed.type, placed.sizes),), (placed,))
    (kernel,) = fuse(program).kernels
    assert [launch.pattern.mode for launch in schedule(kernel)] == [Mode.TOP_CHUNKS, Mode.TOP_MERGE]
    _check([placed], program.outputs, program.inputs)
