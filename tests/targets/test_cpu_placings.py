"""What is placed along lines, of any layout, against the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from opendml.compiler.fuse import fuse
from opendml.program.node import Node, Operation, convert, placing, scattered_sum, source
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.executable import CpuExecutable
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
