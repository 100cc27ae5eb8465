"""Recurrences, past keys and repeated values on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT32, Device, TensorDesc, descs
from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import KernelProgram, operations_of
from opendml.compiler.simplify import simplify
from opendml.operators.matrix import product
from opendml.operators.normalization import mean_variance_normalization2
from opendml.operators.reduction import reduce
from opendml.operators.softmax import hardmax1, log_softmax1, softmax1
from opendml.program import functions
from opendml.program.node import Node, Operation, Window, constant, convert, recurrence, source
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.view import reshaped, sliced
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of
from opendml.spec.enums import AxisDirection, ReduceFunction
from opendml.spec.enums import MultiheadAttentionMaskType as MaskType
from opendml.spec.tensor_desc import reach
from opendml.targets.cpu.contraction.tiling import Instructions, Tiling
from opendml.targets.cpu.executable import CpuExecutable
from opendml.targets.cpu.launch import CpuLaunch
from opendml.targets.cpu.machine import CpuMachine, assumed, machine
from opendml.targets.cpu.native import THREADS
from opendml.targets.cpu.pattern import CpuMode
from opendml.targets.cpu.planning import _scheduled, compile_plan
from opendml.targets.cpu.schedule import schedule
from opendml.targets.kept import addresses_within, kept_bytes
from opendml.targets.reference.evaluate import evaluate
from tests.pairwise import pairwise
from tests.programs import compile_program, initialize, layout_of, sources
from tests.running import run
from tests.targets.test_cpu_matrix_registers import X86, assert_compiles, with_matrix_registers
from tests.tolerances import assert_within
from tools.machines import DEVICES, PROCESSORS, planned
from tools.operator_case import Form

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
    executable = CpuExecutable(compile_plan(program, threads))
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
    packing = [each[0] for each in launches if each[0].pattern.mode is CpuMode.CONTRACTION_PACK]
    assert len(packing) == repeat.count
    assert all(launch.steady and not launch.fixed for launch in packing)
    job = CpuExecutable(compile_plan(program, None))._job
    assert job.words[0] == sum(map(len, launches)) - (repeat.count - 1)


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


def _steps(rows: int, hidden: int) -> list[CpuLaunch]:
    """The sums of products of the first two steps of many."""
    state = np.zeros((1, rows, hidden), np.float32)
    weights = np.zeros((hidden, hidden), np.float32)
    program = _program(_multiplied(*sources(state, weights), 50) * 1.0, [state, weights])
    with assumed(replace(machine(), threads=2)):
        launches = [launch for several in _scheduled(fuse(program)) for launch in several]
    return [launch for launch in launches if isinstance(launch.pattern.walk, Tiling)][:2]


@pytest.mark.parametrize("rows", [1, 4, 33])
def test_threads_keep_their_items_from_step_to_step(rows: int) -> None:
    first, second = _steps(rows, 1024)
    assert first.claims == second.claims > 1
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
        executable = CpuExecutable(compile_plan(_lstm(hidden, features), 2))
    assert executable.instantiate_without_arena()._job.words[THREADS] == threads


def _step(batch: int, hidden: int, host: CpuMachine, has_bias: bool = False) -> list[CpuLaunch]:
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
    tiling = products.pattern.walk_as(Tiling)
    assert tiling.instructions is Instructions.AMX_BF16
    assert tiling.micro.rows == 16
    assert [each.claims for each in (products, *others)] == [2] * 3
    with assumed(host):
        assert_compiles(products.pattern)


@X86
@pytest.mark.parametrize("hidden", [256, 512])
def test_threads_keep_columns_of_what_no_cache_has_room_for(hidden: int) -> None:
    products, *_ = _step(32, hidden, replace(with_matrix_registers(), threads=2))
    tiling = products.pattern.walk_as(Tiling)
    assert tiling.instructions is Instructions.AMX_BF16
    assert products.pattern.walk.micro.rows == 32


@X86
def test_the_number_of_threads_chooses_no_tile_of_a_step() -> None:
    shapes = set()
    for threads in (1, 2, 3, 8, 32):
        products, *_ = _step(32, 128, replace(with_matrix_registers(), threads=threads))
        assert isinstance(products.pattern.walk, Tiling)
        shapes.add(products.pattern.walk.micro)
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
    assert any(CpuMode.SHARED_ROWS.name in text for text in first)
    assert first == second


TARGETS = (*DEVICES, *PROCESSORS)
PRESENTS = ("output_present_key_tensor", "output_present_value_tensor")
BATCH, HEADS, PAST, SIZE = 2, 12, 512, 64


def attention(queries: int, *, presents: bool = True, lengths: bool = False) -> Program:
    """Return attention of new queries to keys of the past and as many new ones. `presents`: those are
    outputs, too; `lengths`: each batch says how many past keys it has."""
    new, past = (BATCH, queries, HEADS * SIZE), (BATCH, HEADS, PAST, SIZE)
    tensors: dict[str, tuple[int, ...]] = dict.fromkeys(("query", "key", "value"), new)
    tensors |= dict.fromkeys(("past_key", "past_value"), past)
    if lengths:
        tensors["past_sequence_lengths"] = (BATCH,)
    counts = {"query_head_count": HEADS, "key_value_head_count": HEADS}
    attributes: Mapping[str, object] = {"scale": SIZE**-0.5, "mask_type": MaskType.NONE, **counts}
    wanted = frozenset(PRESENTS if presents else ())
    return Form("MULTIHEAD_ATTENTION1", "", tensors, attributes, wanted=wanted).case("FLOAT16").program


def kernels(program: Program, target: str) -> KernelProgram:
    return planned(program, target).kernels


@pytest.mark.parametrize("lengths", [False, True], ids=["all", "lengths"])
@pytest.mark.parametrize("queries", [1, 64])
@pytest.mark.parametrize("target", TARGETS)
def test_attention_reads_the_present_that_the_caller_gets(target: str, queries: int, lengths: bool) -> None:
    program = attention(queries, lengths=lengths)
    found = kernels(program, target)
    presents = {len(program.inputs) + 1, len(program.inputs) + 2}
    products = [each for each in found.kernels if Operation.CONTRACTION in operations_of(each.values)]
    read = {load.buffer for kernel in products for load in kernel.loads}
    assert presents <= read
    keys = PAST if lengths else PAST + queries
    assert found.arena_bytes <= 2 * 4 * BATCH * HEADS * queries * keys + 4096


@pytest.mark.parametrize("target", TARGETS)
def test_what_no_caller_gets_is_joined_in_the_type_of_the_past(target: str) -> None:
    found = kernels(attention(64, presents=False), target)
    copies = [each for each in found.kernels if Operation.CONTRACTION not in operations_of(each.values)]
    assert {store.type.name for kernel in copies for store in kernel.stores} == {"FLOAT16"}
    assert found.arena_bytes == 2 * 2 * BATCH * HEADS * (PAST + 64) * SIZE


@pytest.mark.parametrize(
    ("target", "mode"),
    [
        ("sm_80", "mma_chain"),
        ("sm_90", "wgmma_chain"),
        ("avx512", "contraction_chain"),
        ("amx", "contraction_chain"),
        ("avx2", "contraction_chain"),
    ],
)
def test_queries_that_share_a_past_are_one_kernel(target: str, mode: str) -> None:
    modes = [mode for kernel in planned(attention(64), target).launches for mode in kernel]
    assert modes == ["pointwise"] * 4 + [mode]


F32 = ScalarType.FLOAT32
EXTENTS = (1, 2, 3, 5, 17, 33, 70)
Generator = np.random.Generator


def random_program(random: Generator) -> Program:
    """A few operators on tensors that repeat along some dimensions, one result in their common sizes."""
    sizes = tuple(int(random.choice(EXTENTS)) for _ in range(random.integers(1, 5)))
    likely = random.choice([0.0, 0.3, 0.9], len(sizes))
    inputs = [repeated(random, sizes, likely) for _ in range(random.integers(1, 4))]
    sources = [source(number, F32, layout.sizes) for number, layout in enumerate(inputs)]
    value = random.choice(np.array(sources, object))
    for _ in range(random.integers(1, 4)):
        value = STEPS[random.integers(len(STEPS))](random, value, sources)
    value = convert(value, F32)
    return Program(tuple(inputs), (packed(F32, value.sizes or sizes),), (value,))


def repeated(random: Generator, sizes: tuple[int, ...], likely: Array) -> Layout:
    """A tensor of these sizes whose elements repeat along dimensions, each as likely as said."""
    strides = zip(packed(F32, sizes).strides, likely, strict=True)
    return Layout(F32, sizes, tuple(0 if random.random() < each else stride for stride, each in strides))


def some_axes(random: Generator, value: Node) -> list[int]:
    rank = len(value.sizes)
    return sorted(int(axis) for axis in random.choice(rank, random.integers(1, rank + 1), replace=False))


def reduction(random: Generator, value: Node, sources: Sequence[Node]) -> Node:
    function = random.choice(np.array(REDUCED, object))
    result = reduce(value, function=function, axes=some_axes(random, value))
    return convert(result, F32)


def search(random: Generator, value: Node, sources: Sequence[Node]) -> Node:
    """Of an input: among computed values, which is the greatest may depend on their rounding."""
    x = random.choice(np.array(sources, object))
    kind = functions.index_of_maximum if random.random() < 0.5 else functions.index_of_minimum
    found = convert(kind(x, some_axes(random, x), last=random.random() < 0.5), F32)
    return value + found if random.random() < 0.5 else value + hardmax1(x, axes=some_axes(random, x))


def softmax(random: Generator, value: Node, sources: Sequence[Node]) -> Node:
    return (softmax1 if random.random() < 0.5 else log_softmax1)(value, axes=some_axes(random, value))


def normalization(random: Generator, value: Node, sources: Sequence[Node]) -> Node:
    scale, bias = (random.choice(np.array([None, *sources], object)) for _ in range(2))
    return mean_variance_normalization2(
        value,
        scale,
        bias,
        axes=some_axes(random, value),
        use_mean=bool(random.random() < 0.7),
        use_variance=bool(random.random() < 0.7),
        epsilon=0.5,
        fused_activation=None,
    )


def scan(random: Generator, value: Node, sources: Sequence[Node]) -> Node:
    way = {"exclusive": bool(random.random() < 0.5), "reverse": bool(random.random() < 0.5)}
    axis = int(random.integers(len(value.sizes)))
    if random.random() < 0.5:
        return functions.running_sum(value * 0.125, axis, **way)
    return functions.running_product(functions.tanh(value) * 0.01 + 1.0, axis, **way)


def pointwise(random: Generator, value: Node, sources: Sequence[Node]) -> Node:
    other: Node = random.choice(np.array([*sources, constant(0.75, F32)], object))
    kind = random.integers(5)
    if kind == 0:
        return functions.power(abs(value) + 0.5, functions.tanh(other))
    if kind == 1:
        chosen = random.choice(np.array(sources, object))
        return functions.select(chosen < other, value, value * 0.5)
    if kind == 2:
        return functions.select(functions.reduce_maximum(sources[0], [0]) < 2.5, value, other)
    if kind == 3:
        return functions.exp(functions.minimum(value, 2.0))
    return value * 0.5 + other


REDUCED = [
    function
    for function in ReduceFunction
    if function.name not in ("ARGMIN", "ARGMAX", "MULTIPLY", "LOG_SUM")
]
STEPS: list[Callable[[Generator, Node, Sequence[Node]], Node]] = [
    reduction,
    search,
    softmax,
    normalization,
    scan,
    pointwise,
]


def result_of(program: Program, inputs: Sequence[Array], kind: str) -> Array:
    """The program's one result."""
    instance = compile_program(program, kind).instantiate()
    result = np.zeros(program.outputs[0].sizes, np.float32)
    for buffer, array in enumerate([*inputs, result]):
        instance.bind(buffer, array.ctypes.data)
    instance.dispatch()
    return result


@pytest.mark.parametrize("seed", range(50))
def test_programs_over_repeated_values_equal_the_reference(seed: int) -> None:
    random = np.random.default_rng(seed)
    program = random_program(random)
    inputs = [random.integers(-3, 4, layout.span[1] // 4).astype(np.float32) for layout in program.inputs]
    wanted = result_of(program, inputs, "reference")
    scale = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0))
    result = result_of(program, inputs, "cpu")
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5 * scale)


@pairwise(axes=[[0], [1], [0, 1]], strides=[[0, 0], [0, 1], [1, 0]], sizes=[[4, 17], [40, 70], [3, 40_000]])
def test_operators_on_repeated_inputs_equal_the_reference(
    sizes: list[int], strides: list[int], axes: list[int], device: Device
) -> None:
    x, y = TensorDesc(FLOAT32, sizes, strides), TensorDesc(FLOAT32, sizes)
    group = TensorDesc(FLOAT32, [1 if axis in axes else size for axis, size in enumerate(sizes)])
    memory = np.random.default_rng(1).integers(-3, 4, reach(sizes, strides)).astype(np.float32)
    for desc in (
        descs.Reduce(x, group, function=ReduceFunction.LOG_SUM_EXP, axes=axes),
        descs.Reduce(x, group, function=ReduceFunction.AVERAGE, axes=axes),
        descs.ActivationSoftmax1(x, y, axes=axes),
        descs.ActivationLogSoftmax1(x, y, axes=axes),
        descs.CumulativeSummation(x, y, axis=axes[0], axis_direction=AxisDirection.INCREASING),
    ):
        wanted = run(desc, [memory], "reference")
        np.testing.assert_allclose(run(desc, [memory], device), wanted, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("sizes", [(33, 70), (5, 9000), (9000, 5)], ids=str)
def test_a_condition_of_a_group_chooses_for_all_its_elements(sizes: tuple[int, int], axis: int) -> None:
    x = np.random.default_rng(1).integers(-99, 100, sizes).astype(np.float32)
    sources = [source(0, F32, sizes), source(1, F32, sizes)]
    greatest = functions.reduce_maximum(sources[0], [axis])
    chosen = functions.select(greatest < 98.0, *sources)
    layout = packed(F32, sizes)
    result = result_of(Program((layout, layout), (layout,), (chosen,)), [x, -x], "cpu")
    np.testing.assert_array_equal(result, np.where(x.max(axis, keepdims=True) < 98, x, -x))
