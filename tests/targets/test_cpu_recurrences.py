"""Recurrences on the CPU: what all steps read is packed once, and threads keep their items."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import opendml as dml
from opendml.compiler.fuse import fuse
from opendml.compiler.simplify import simplify
from opendml.operators.matrix import product
from opendml.program.node import Node, Window, recurrence
from opendml.program.program import Program, packed
from opendml.program.view import reshaped, sliced
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of
from opendml.targets.cpu.executable import CpuExecutable, _scheduled
from opendml.targets.cpu.launch import Launch
from opendml.targets.cpu.machine import Machine, assumed, machine
from opendml.targets.cpu.native import MOST_KEPT, THREADS
from opendml.targets.cpu.pattern import Mode, Tiling
from opendml.targets.cpu.schedule import schedule
from opendml.targets.kept import addresses_within, kept_bytes
from opendml.targets.reference.evaluate import evaluate
from tests.programs import initialize, layout_of, sources
from tests.targets.test_cpu_matrix_registers import X86, assert_compiles, with_matrix_registers
from tests.tolerances import assert_within

HIDDEN = 320
GENERATOR = np.random.default_rng(0)
WEIGHTS = GENERATOR.uniform(-0.1, 0.1, (HIDDEN, HIDDEN)).astype(np.float32)


def _state(rows: int) -> Array:
    return GENERATOR.uniform(-1, 1, (1, rows, HIDDEN)).astype(np.float32)


def _multiplied(state: Node, weights: Node, steps: int) -> Node:
    """Each state is the one before times the weights."""

    def step(state: Node, parts: Sequence[Node]) -> Node:
        rows = reshaped(state, state.sizes[1:])
        return reshaped(product(rows, parts[0]), state.sizes)

    return recurrence(steps, state, [(weights, Window((0, 0), weights.sizes, (0, 0)))], step)


def _program(result: Node, arrays: Sequence[Array], constants: Sequence[int] = ()) -> Program:
    written = (packed(result.type, result.sizes),)
    return Program(tuple(map(layout_of, arrays)), written, simplify([result]), frozenset(constants))


def _run(program: Program, arrays: Sequence[Array], threads: int) -> Array:
    executable = CpuExecutable(program, threads)
    kept = np.zeros(kept_bytes(executable.kept) + 64, np.uint8)
    addresses = addresses_within(executable.kept, kept.ctypes.data)
    initialize(executable, {number: arrays[number].ctypes.data for number in program.constants}, addresses)
    instance = executable.instantiate(kept=addresses)
    out = np.full(program.outputs[0].sizes, np.nan, np.float32)
    for number, array in enumerate((*arrays, out)):
        if number not in program.constants:
            instance.bind(number, array.ctypes.data)
    instance.dispatch()
    return out


@pytest.mark.parametrize("rows", [1, 2, 33])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_steps_share_what_they_multiply_by(rows: int, steps: int) -> None:
    arrays = [_state(rows), WEIGHTS]
    result = _multiplied(*sources(*arrays), steps) * 1.0
    (wanted,) = evaluate([result], arrays)
    found = [
        _run(_program(result, arrays, constants), arrays, threads)
        for constants in ((), (1,))
        for threads in (1, 2, 3, 8)
    ]
    assert_within("RNN", found[0], wanted)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_what_all_steps_multiply_by_is_packed_once() -> None:
    arrays = [_state(1), WEIGHTS]
    program = _program(_multiplied(*sources(*arrays), 4) * 1.0, arrays)
    kernels = fuse(program)
    (repeat,) = kernels.repeats
    launches = [schedule(kernel) for kernel in kernels.kernels]
    packing = [each[0] for each in launches if each[0].pattern.mode is Mode.CONTRACTION_STRIPS]
    assert len(packing) == repeat.count
    assert all(launch.steady and not launch.fixed for launch in packing)
    assert CpuExecutable(program).launch_count == sum(map(len, launches)) - (repeat.count - 1)


def test_dispatches_at_once_agree() -> None:
    """One has the pool's workers, the others are alone."""
    arrays = [GENERATOR.uniform(-1, 1, (1, 4, 1024)), GENERATOR.uniform(-0.05, 0.05, (1024, 1024))]
    arrays = [each.astype(np.float32) for each in arrays]
    program = _program(_multiplied(*sources(*arrays), 30) * 1.0, arrays)
    wanted = _run(program, arrays, 1)
    assert np.isfinite(wanted).all()
    with ThreadPoolExecutor(4) as callers:
        for found in callers.map(lambda _: _run(program, arrays, 3), range(12)):
            np.testing.assert_array_equal(found, wanted)


def _steps(rows: int, hidden: int) -> list[Launch]:
    """The sums of products of the first two steps of many."""
    state = np.zeros((1, rows, hidden), np.float32)
    weights = np.zeros((hidden, hidden), np.float32)
    program = _program(_multiplied(*sources(state, weights), 50) * 1.0, [state, weights])
    with assumed(replace(machine(), threads=2)):
        launches = [launch for several in _scheduled(fuse(program)) for launch in several]
    return [launch for launch in launches if isinstance(launch.pattern.tiling, Tiling)][:2]


@pytest.mark.parametrize("rows", [1, 4, 33])
def test_threads_keep_their_items_from_step_to_step(rows: int) -> None:
    first, second = _steps(rows, 1024)
    assert first.claims == second.claims > 1
    assert first.kept
    assert second.kept
    assert (first.backwards, second.backwards) == (False, True)


def _lstm(hidden: int, features: int, batch: int = 1, has_bias: bool = False) -> Program:
    """Of 100 steps."""
    tensors = ((1, 100, batch, features), (1, 1, 4 * hidden, features), (1, 1, 4 * hidden, hidden))
    x, weights, recurrent = (dml.TensorDesc(dml.FLOAT32, sizes) for sizes in tensors)
    desc = dml.descs.Lstm(
        x,
        weights,
        recurrent,
        bias_tensor=dml.TensorDesc(dml.FLOAT32, (1, 1, 1, 8 * hidden)) if has_bias else None,
        output_sequence_tensor=dml.TensorDesc(dml.FLOAT32, (100, 1, batch, hidden)),
        activation_descs=(dml.descs.ActivationSigmoid(), *[dml.descs.ActivationTanh()] * 2),
        direction=dml.RecurrentNetworkDirection.FORWARD,
    )
    return program_of(desc)


def test_a_small_step_is_the_callers() -> None:
    kernels = fuse(_lstm(128, 128))
    (repeat,) = kernels.repeats
    with assumed(replace(machine(), vector_bytes=64, l2_bytes=2 * 1024 * 1024)):
        *_, step = _scheduled(kernels)[repeat.first]
    assert step.items > 1
    assert step.claims == 1


@pytest.mark.parametrize(("hidden", "features", "threads"), [(64, 128, 1), (512, 128, 2), (64, 8192, 2)])
def test_threads_are_asked_where_they_would_not_only_wait(hidden: int, features: int, threads: int) -> None:
    """Of small steps for their own sake never, but to multiply by what all steps see."""
    with assumed(replace(machine(), threads=2)):
        executable = CpuExecutable(_lstm(hidden, features), 2)
    assert executable.instantiate_without_arena()._job.words[THREADS] == threads


def _step(batch: int, hidden: int, host: Machine, has_bias: bool = False) -> list[Launch]:
    """What is launched in each step of an LSTM, the sums of products first."""
    kernels = fuse(_lstm(hidden, hidden, batch, has_bias))
    (repeat,) = kernels.repeats
    with assumed(host):
        launches = _scheduled(kernels)[repeat.first :][: repeat.length]
    return [launch for several in launches for launch in several if not launch.steady]


@X86
@pytest.mark.parametrize("has_bias", [False, True])
def test_threads_keep_rows_in_all_launches_of_a_step(has_bias: bool) -> None:
    """Of few rows half a tile each, where a cache has room for what all are multiplied by."""
    host = replace(with_matrix_registers(), threads=2)
    products, *others = _step(32, 128, host, has_bias)
    assert len(others) == 2
    assert isinstance(products.pattern.tiling, Tiling)
    assert products.pattern.mode is Mode.CONTRACTION_MATRICES
    assert products.pattern.tiling.micro.rows == 16
    assert [(each.claims, each.kept) for each in (products, *others)] == [(2, True)] * 3
    with assumed(host):
        assert_compiles(products.pattern)


@X86
@pytest.mark.parametrize("hidden", [256, 512])
def test_threads_keep_columns_of_what_no_cache_has_room_for(hidden: int) -> None:
    products, *_ = _step(32, hidden, replace(with_matrix_registers(), threads=2))
    assert products.pattern.mode is Mode.CONTRACTION_MATRICES
    assert isinstance(products.pattern.tiling, Tiling)
    assert products.pattern.tiling.micro.rows == 32


@X86
def test_the_number_of_threads_chooses_no_tile_of_a_step() -> None:
    shapes = set()
    for threads in (1, 2, 3, 8, 32):
        products, *_ = _step(32, 128, replace(with_matrix_registers(), threads=threads))
        assert isinstance(products.pattern.tiling, Tiling)
        shapes.add(products.pattern.tiling.micro)
    assert len(shapes) == 1


@pytest.mark.parametrize("value", [1.0, 1e-40, 1e30, np.inf, np.nan])
def test_steps_of_few_rows_hold_any_number(value: float) -> None:
    """Whatever the number of threads, to the same bits."""
    arrays = [_state(32), WEIGHTS]
    arrays[0][0, 20, 7] = value
    result = _multiplied(*sources(*arrays), 3) * 1.0
    (wanted,) = evaluate([result], arrays)
    found = []
    for threads in (1, 2, 3, 8):
        with assumed(replace(machine(), threads=threads)):
            found.append(_run(_program(result, arrays), arrays, threads))
    scale = np.max(np.abs(wanted), axis=-1, keepdims=True, where=np.isfinite(wanted), initial=1e-30)
    np.testing.assert_allclose(found[0] / scale, wanted / scale, rtol=0, atol=1e-5)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


@pytest.mark.usefixtures("no_matrix_registers")
def test_items_of_which_there_are_too_many_are_not_kept() -> None:
    """Each claim of a kept launch is a bit."""
    first, second = _steps(20_000, 1024)
    assert first.claims == second.claims > MOST_KEPT
    assert not first.kept
    assert not second.kept


def test_recurrences_with_weights_of_their_own_have_rooms_of_their_own() -> None:
    arrays = [_state(1), WEIGHTS]
    state, weights = sources(*arrays)
    first = _multiplied(state, weights * 0.5, 2)
    second = _multiplied(sliced(first, (2, 0, 0), state.sizes), weights * -2.0, 3)
    result = second * 1.0
    (wanted,) = evaluate([result], arrays)
    found = _run(_program(result, arrays), arrays, 1)
    assert_within("RNN", found, wanted)


def test_steps_share_machine_code_whatever_lies_beside_the_first_state() -> None:
    """Of such sizes a temporary of each step lies beside the first state, but not beside the second one."""
    steps, batch, size, hidden = 2, 3, 3, 7

    def tensor(*sizes: int) -> dml.TensorDesc:
        return dml.TensorDesc(dml.FLOAT32, [1, *sizes])

    state = tensor(1, batch, hidden)
    desc = dml.descs.Gru(
        tensor(steps, batch, size),
        tensor(1, 3 * hidden, size),
        tensor(1, 3 * hidden, hidden),
        bias_tensor=tensor(1, 1, 6 * hidden),
        hidden_init_tensor=state,
        output_single_tensor=state,
        activation_descs=(dml.descs.ActivationSigmoid(), dml.descs.ActivationTanh()),
        direction=dml.RecurrentNetworkDirection.BACKWARD,
        linear_before_reset=True,
    )
    program = program_of(desc)
    kernels = fuse(replace(program, results=simplify(program.results)))
    (repeat,) = kernels.repeats
    first, second = (
        [launch.pattern.text() for kernel in step for launch in schedule(kernel)]
        for step in (
            kernels.kernels[repeat.first : repeat.first + repeat.length],
            kernels.kernels[repeat.first + repeat.length :][: repeat.length],
        )
    )
    assert any(Mode.SHARED_ROWS.name in text for text in first)
    assert first == second
