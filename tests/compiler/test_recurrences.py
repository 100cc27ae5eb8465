"""Recurrences: what steps see, where their states lie, and what their kernels share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opendml.compiler.fuse import fuse
from opendml.compiler.prepare import split
from opendml.compiler.simplify import simplify
from opendml.program.functions import exp, reduce_sum
from opendml.program.node import Node, Operation, Window, convert, ordered, recurrence
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.view import in_memory, joined, sliced
from opendml.runtime.memory.host_array import Array
from tests.programs import assert_agrees, kernels_of, layout_of, run_program, sources

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
