"""What is placed along lines, loops that end at bounds, and accumulations, against the reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from opendml import FLOAT32, TensorDesc, descs
from opendml import UINT32 as DATA_UINT32
from opendml.compiler.bounds import is_bounded
from opendml.compiler.fuse import Abilities, fuse
from opendml.compiler.rewrites import with_unordered_scatters
from opendml.program.functions import reduce_maximum, reduce_minimum, reduce_sum, select
from opendml.program.node import (
    Node,
    Operation,
    apply,
    constant,
    contraction,
    convert,
    index,
    placing,
    reduction,
    scattered_last,
    scattered_sum,
    source,
)
from opendml.program.node import Operation as Op
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.view import gathered, reshaped, sliced
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import InterpolationMode, ReduceFunction
from opendml.spec.operator_desc import OperatorDesc, Size2D
from opendml.targets.common.accumulations import TOGETHER, Accumulation, accumulations_of
from opendml.targets.cpu.executable import CpuExecutable
from opendml.targets.cpu.launch import CpuLaunch
from opendml.targets.cpu.pattern import CpuMode
from opendml.targets.cpu.planning import compile_plan
from opendml.targets.cpu.schedule import schedule
from opendml.targets.reference.backend import ReferenceExecutable
from opendml.targets.reference.evaluate import evaluate
from tests import nodes
from tests.pairwise import pairwise
from tests.programs import assert_agrees, layout_of, sources
from tests.running import launches

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
    executable = (
        ReferenceExecutable(program) if threads is None else CpuExecutable(compile_plan(program, threads))
    )
    instance = executable.instantiate()
    for number, array in enumerate(memory):
        instance.bind(number, array.ctypes.data)
    instance.dispatch()
    return [array.view(np.int8) for array in memory[len(program.inputs) :]]


def _check(results: Sequence[Node], outputs: Sequence[Layout] = (), inputs: Sequence[Layout] = ()) -> None:
    """Require both numbers of threads to compute what the reference does, over packed tensors or others."""
    program = nodes.program(*results)
    inputs, outputs = tuple(inputs) or program.inputs, tuple(outputs) or program.outputs
    program = replace(program, inputs=inputs, outputs=outputs)
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
    _check([sums])


def test_sums_of_values_that_repeat() -> None:
    places, values = source(0, INT32, (1, 5, 33)), source(1, INT64, (6, 1, 33))
    sums = scattered_sum(places, values, (1, 2), _PLACES)
    _check([sums])


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


SCATTERS = [Operation.SCATTER, Operation.SCATTER_LAST, Operation.SCATTER_SUM]


def _check_scattered(operation: Operation, places: Node, values: Node, before: Node) -> CpuLaunch:
    """Check what is placed along axis 1 of three, stored twice, and return its last launch."""
    count = before.sizes[1]
    if operation is Operation.SCATTER_SUM:
        result = scattered_sum(places, values, (1,), count)
    elif operation is Operation.SCATTER_LAST:
        result = scattered_last(places, values, before, 1)
    else:
        result = placing(operation, places, 1, count)
    outputs = [packed(result.type, result.sizes), _spaced(result.type, result.sizes)]
    program = replace(nodes.program(result, result), outputs=tuple(outputs))
    (launch,) = schedule(fuse(program, Abilities(scatters_in_order=True)).kernels[-1])
    _check([result] * 2, outputs)
    return launch


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("operation", SCATTERS)
@pytest.mark.parametrize(("rows", "mode"), [(9, CpuMode.SCATTER_COLUMNS), (11, CpuMode.SCATTER_TILES)])
def test_lines_side_by_side_are_placed_a_tile_at_a_time(
    operation: Operation, rows: int, mode: CpuMode
) -> None:
    sizes = (3, rows, 301)
    before = constant(7, INT64) + source(2, INT64, (3, _PLACES, 301))
    launch = _check_scattered(operation, source(0, INT32, sizes), source(1, INT64, sizes), before)
    assert launch.pattern.mode is mode
    assert launch.items > 3


@pytest.mark.parametrize("operation", SCATTERS)
@pytest.mark.parametrize("type", [INT32, ScalarType.FLOAT16])
def test_long_lines_side_by_side_are_placed_by_vectors(operation: Operation, type: ScalarType) -> None:
    """Some of the places lie outside."""
    sizes = (2, 300, 141)
    places, values = source(0, INT32, sizes) * 29, source(1, type, sizes)
    values = convert(values, INT32) if operation is Operation.SCATTER_SUM else values
    launch = _check_scattered(operation, places, values, source(2, type, (2, 600, 141)))
    if operation is not Operation.SCATTER_SUM:
        assert launch.pattern.mode is CpuMode.SCATTER_STRIPS


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
    (kernel,) = fuse(program, Abilities(scatters_in_order=True)).kernels
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
    program = nodes.program(*results)
    (kernel,) = fuse(program, Abilities(scatters_in_order=True)).kernels
    launches = schedule(kernel)
    assert [each.pattern.mode for each in launches] == [CpuMode.POSITIONS_CHUNKS, CpuMode.POSITIONS]
    assert launches[0].items == 2 * -(-length // (16 * 1024))
    _check(results)


@pytest.mark.parametrize("length", [1, 33, 3 * 16 * 1024 + 7])
def test_the_number_of_positions_is_found_with_them(length: int) -> None:
    sizes = (2, length)
    placed = placing(Operation.POSITIONS, source(0, INT32, sizes) >= 5, 1, length)
    number = reduce_sum(convert(placed >= 0, UINT32), [1])
    results = [number * 2, placed, number]
    assert len(fuse(nodes.program(*results), Abilities(scatters_in_order=True)).kernels) == 1
    _check(results)


def test_positions_beside_their_number_wait_for_it() -> None:
    sizes = (3, 33)
    placed = placing(Operation.POSITIONS, source(0, INT32, sizes) >= 5, 1, 33)
    result = placed + reduce_sum(convert(placed >= 0, INT32), [1])
    _check([result])


def test_placing_in_any_order_means_the_same() -> None:
    places, values, before = (source(number, INT32, SIZES) for number in range(3))
    results = (
        scattered_last(places, values, before, 1),
        placing(Operation.POSITIONS, values < 5, 2, SIZES[2]),
    )
    program = nodes.program(*results)
    in_order = _results(program)
    for found, wanted in zip(
        _results(replace(program, results=with_unordered_scatters(results))), in_order, strict=True
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
    assert [kernel.axes for kernel in fuse(nodes.program(result)).kernels] == [(2,), ()]


def test_long_lines_are_split_between_threads() -> None:
    sizes = (2, 300_000)
    placed = placing(Operation.TOP, source(0, UINT32, sizes), 1, 70)
    (kernel,) = fuse(nodes.program(placed)).kernels
    assert [launch.pattern.mode for launch in schedule(kernel)] == [CpuMode.TOP_CHUNKS, CpuMode.TOP_MERGE]
    _check([placed])


F32 = ScalarType.FLOAT32
TAPS = 9
NOTHING = {reduce_sum: 0.0, reduce_maximum: -math.inf, reduce_minimum: math.inf}
COUNTS = {
    np.float32: [3, 0, -5, 2.5, math.nan, math.inf, -math.inf, 1e30, 9, 8.5],
    np.int32: [3, 0, -5, 2**31 - 1, -(2**31), 9, 1],
    np.int64: [3, 0, -5, 2**63 - 1, -(2**63), 2**32 + 1],
}


def _values(*sizes: int) -> Array:
    """Whole numbers, so that sums are exact."""
    return np.random.default_rng(0).integers(-9, 10, sizes).astype(np.float32)


def _taps(type: ScalarType, axis: int = 1, rank: int = 3) -> Node:
    along = [int(each == axis) for each in range(rank)]
    return convert(index(INT32, [TAPS if each else 1 for each in along], 0, along), type)


def _gathered(x: Node, shift: Node, axes: int = 1) -> Node:
    """Taps of x (groups, twice as many taps along each axis, width), from a place of each group on."""
    rank = axes + 2
    places = {
        axis: reshaped(shift, (x.sizes[0], *(1,) * (rank - 1))) + _taps(INT32, axis, rank)
        for axis in range(1, rank - 1)
    }
    steps = [[int(row == column and row in (0, rank - 1)) for column in range(rank)] for row in range(rank)]
    return gathered(x, (x.sizes[0], *(TAPS,) * axes, x.sizes[-1]), places, steps=steps)


def _shifts(groups: int) -> Array:
    return np.random.default_rng(2).integers(0, TAPS, (groups, 1, 1)).astype(np.int32)


def _bounded_loops(result: Node, *arrays: Array) -> list[tuple[tuple[int, int], ...]]:
    """Those of the launches that compute a node."""
    layout = packed(result.type, result.sizes)
    program = Program(tuple(map(layout_of, arrays)), (layout,), (result,))
    kernels = fuse(program, Abilities(ends_loops=True)).kernels
    return [getattr(launch.pattern.walk, "bounded", ()) for kernel in kernels for launch in schedule(kernel)]


@pairwise(width=[1, 5, 70], type=COUNTS, function=NOTHING)
def test_no_bound_but_numbers_above_zero_lets_a_loop_go_on(function: Any, type: Any, width: int) -> None:
    counts = np.array(COUNTS[type], type).reshape(-1, 1, 1)
    x, shifts = _values(len(counts), 2 * TAPS, width), _shifts(len(counts))
    value, shift, count = sources(x, shifts, counts)
    terms = select(_taps(count.type) < count, _gathered(value, shift), NOTHING[function])
    result = convert(function(terms, [1]), F32)
    assert_agrees([result], [x, shifts, counts])
    assert any(_bounded_loops(result, x, shifts, counts)) == (width > 1)


def test_loops_over_two_axes_end_each_at_its_own_bound() -> None:
    x, shifts = _values(4, 2 * TAPS, 2 * TAPS, 20), _shifts(4)
    counts = [np.array(each, np.float32).reshape(-1, 1, 1, 1) for each in ([1, 4, 9, 2], [3, 3, 1, 9])]
    value, shift, *bounds = sources(x, shifts, *counts)
    inside = [_taps(F32, axis, 4) < bound for axis, bound in zip((1, 2), bounds, strict=True)]
    result = convert(reduce_sum(select(apply(Op.AND, *inside), _gathered(value, shift, 2), 0.0), [1, 2]), F32)
    assert_agrees([result], [x, shifts, *counts])
    first, second = max(_bounded_loops(result, x, shifts, *counts))
    assert {first[0], second[0]} == {0, 1}


def test_a_loop_goes_on_until_nothing_counts_for_any_reduction() -> None:
    x, shifts = _values(3, 2 * TAPS, 20), _shifts(3)
    counts = [np.array(each, np.float32).reshape(-1, 1, 1) for each in ([1, 4, 9], [3, 2, 0])]
    value, shift, *bounds = sources(x, shifts, *counts)
    found = _gathered(value, shift)
    total = reduce_sum(select(_taps(F32) < bounds[0], found, 0.0), [1])
    greatest = reduce_maximum(select(_taps(F32) < bounds[1], found, -math.inf), [1])
    result = convert(total, F32) + greatest
    assert_agrees([result], [x, shifts, *counts])
    assert any(_bounded_loops(result, x, shifts, *counts))


@pytest.mark.parametrize("case", ["lanes", "rows", "other number", "elements", "in order", "again"])
def test_a_loop_goes_on_where_elements_may_count(case: str) -> None:
    x, shifts = _values(3, 2 * TAPS, 20), _shifts(3)
    sizes = {"lanes": (3, 1, 20), "rows": (3, TAPS, 1)}.get(case, (3, 1, 1))
    counts = np.random.default_rng(1).integers(0, TAPS, sizes).astype(np.float32)
    value, shift, count = sources(x, shifts, counts)
    found = sliced(value, (0, 1, 0), (3, TAPS, 20)) if case == "in order" else _gathered(value, shift)
    terms = select(_taps(F32) < count, found, 1.0 if case == "other number" else 0.0)
    result = reduce_sum(terms, [1])
    if case == "elements":
        result = convert(terms, ScalarType.FLOAT64) * result
    if case == "again":
        result = reduce_sum(select(_taps(F32) < count, found * convert(result, F32), 0.0), [1])
    result = convert(result, F32)
    assert_agrees([result], [x, shifts, counts])
    assert not any(_bounded_loops(result, x, shifts, counts))


def test_a_bound_that_only_looks_as_if_it_varied_is_one() -> None:
    x, counts = _values(3, TAPS, 20), np.ones((3, 1, 1), np.float32)
    value, count = sources(x, counts)
    for bound, expected in ((count, True), (count + _taps(F32) * 0.0, False)):
        reduction = reduce_sum(select(_taps(F32) < bound, value, 0.0), [1])
        assert is_bounded(reduction) is expected


def _tensor(*sizes: int) -> TensorDesc:
    return TensorDesc(FLOAT32, list(sizes))


def _aligned(function: ReduceFunction) -> OperatorDesc:
    regions, batches = _tensor(1, 1, 8, 4), TensorDesc(DATA_UINT32, [1, 1, 1, 8])
    return descs.RoiAlign(
        *(_tensor(1, 4, 50, 68), regions, batches, _tensor(8, 4, 7, 7)),
        reduction_function=function,
        interpolation_mode=InterpolationMode.LINEAR,
        spatial_scale_x=1.0,
        spatial_scale_y=1.0,
        out_of_bounds_input_value=0.0,
        minimum_samples_per_output=1,
        maximum_samples_per_output=2**32 - 1,
    )


REGIONS = {
    "averages": _aligned(ReduceFunction.AVERAGE),
    "greatest samples": _aligned(ReduceFunction.MAX),
    "greatest elements": descs.RoiPooling(
        *(_tensor(1, 4, 50, 68), _tensor(1, 1, 8, 5), _tensor(8, 4, 7, 7)),
        spatial_scale=1.0,
        pooled_size=Size2D(width=7, height=7),
    ),
}


@pytest.mark.parametrize("name", REGIONS)
def test_loops_over_a_region_end_where_it_has_no_more(name: str) -> None:
    bounded = [
        loop for launch in launches(REGIONS[name]) for loop in getattr(launch.pattern.walk, "bounded", ())
    ]
    assert len(bounded) == 2


NAN, INF = float("nan"), float("inf")
FLOATS: list[Sequence[float]] = [
    [3.0, -1.5, 8.0, 8.0, -1.5, 0.25],
    [1.0, NAN, 8.0, NAN, -1.5, 2.0],
    [NAN, 1.0, 8.0, 9.0, 9.0, 2.0],
    [2.0, 1.0, -INF, 9.0, -INF, 2.0],
    [1e6, 1e6 + 1, 1e6 + 2, 1e6, 1e6, 1e6 + 1],
]
INTEGERS: list[Sequence[float]] = [[3, -1, 7, 7, -1, 2], [2**31 - 1, 5, -(2**31), 2**31 - 1, 4, 4]]
SIMPLE = [Operation.SUM, Operation.PRODUCT, Operation.LEAST, Operation.GREATEST]
SEARCHED = [Operation.FIRST_LEAST, Operation.LAST_LEAST, Operation.FIRST_GREATEST, Operation.LAST_GREATEST]


def accumulated(
    one: Accumulation, elements: Sequence[Sequence[Array]], split: int, in_order: bool
) -> list[Array]:
    """The results of a group, from its elements' operands in two parts; positions grow within each."""
    states = []
    for part in (elements[:split], elements[split:]):
        state = evaluate(one.start, elements[0])
        for operands in part:
            state = evaluate(one.add_in_order if in_order else one.add, [*state, *operands])
        states.append(state)
    state = evaluate(one.merge, [*states[0], *states[1]])
    return evaluate(one.results, [*state, np.array(1 / len(elements))])


def check(nodes: Sequence[Node], inputs: Sequence[Array]) -> None:
    """Reductions over one axis that share an accumulation equal what the reference says of them."""
    ((one,),) = accumulations_of(nodes)
    columns = [np.broadcast_to(each, inputs[0].shape) for each in evaluate(one.operands, inputs)]
    elements = list(zip(*columns, strict=True))
    wanted = [each.reshape(()) for each in evaluate(one.nodes, inputs)]
    for split in (0, 1, 4):
        for in_order in (False, True):
            found = accumulated(one, elements, split, in_order)
            for value, exact, node in zip(found, wanted, one.nodes, strict=True):
                assert value.dtype == node.type.numpy
                np.testing.assert_allclose(value, exact, rtol=1e-12, atol=1e-9, err_msg=f"{node} {split}")


@pytest.mark.parametrize("operation", [*SIMPLE, *SEARCHED], ids=lambda operation: operation.name)
@pytest.mark.parametrize(
    ("type", "values"),
    [*((F32, v) for v in FLOATS), *((INT32, v) for v in INTEGERS)],
    ids=str,
)
def test_reductions_follow_states(operation: Operation, type: ScalarType, values: Sequence[float]) -> None:
    x = source(0, type, (len(values),))
    check([reduction(operation, x, [0])], [np.array(values, type.numpy)])


@pytest.mark.parametrize("from_half", [False, True])
@pytest.mark.parametrize(
    "operations", [[Operation.MEAN], [Operation.VARIANCE], [Operation.MEAN, Operation.VARIANCE]]
)
@pytest.mark.parametrize("values", [FLOATS[0], FLOATS[4]], ids=str)
def test_moments_share_a_state(
    values: Sequence[float], operations: Sequence[Operation], from_half: bool
) -> None:
    stored = ScalarType.FLOAT16 if from_half else F32
    array = np.array(values, stored.numpy) if not from_half else np.array(FLOATS[0], stored.numpy)
    x = convert(source(0, stored, (len(values),)), F32)
    check([reduction(operation, x, [0]) for operation in operations], [array])


EIGHTS: dict[str, Sequence[float]] = {
    "large mean": [60000, 60032, 60000, 60000, 60000, 60000, 60000, 60000],
    "sums beyond float16": [65504, 65504, -65504, 65504, 65504, 65504, 65504, 65504],
    "one far off, first": [60000, 3, 3.5, 2.5, 3, 3.25, 2.75, 3],
    "one far off, last": [3, 3.5, 2.5, 3, 3.25, 2.75, 3, -60000],
    "magnitudes that float32 cannot add": [65504, -65504, 6e-8, 0.1, 0.3, 1e-3, 7e-5, -6e-8],
    "denormals": [6e-8, 1.2e-7, -6e-8, 0.0, 1.8e-7, 6e-8, 6e-5, 5.9e-5],
    "random": [0.3, -1.7, 0.01, 2.4, -0.6, 1.1, -0.2, 0.9],
    "equal": [0.1] * TOGETHER,
}


@pytest.mark.parametrize("values", EIGHTS.values(), ids=EIGHTS.keys())
@pytest.mark.parametrize("shift", [0.0, 0.5, -65504.0])
def test_eight_float16_are_taken_in_together_within_half_a_millionth_of_their_deviation(
    values: Sequence[float], shift: float
) -> None:
    array = np.array(values, np.float16)
    x = convert(source(0, ScalarType.FLOAT16, array.shape), F32)
    nodes = [reduction(operation, x, [0]) for operation in (Operation.MEAN, Operation.VARIANCE)]
    ((one,),) = accumulations_of(nodes)
    assert one.add_together is not None
    start = [np.array(part) for part in (shift, 0.0, 0.0)]
    state = evaluate(one.add_together, [*start, *(np.array(each, np.float32) for each in array)])
    exact = array.astype(np.float64)
    mean, squares = (float(part) for part in (state[1] / TOGETHER + shift, state[2]))
    assert abs(mean - exact.mean()) <= 0.5e-6 * exact.std()
    # Of a shift that is far off, FLOAT64 loses its own digits alone.
    wanted = float(np.square(exact - shift).sum())
    spread = float(np.square(exact - exact.mean()).sum())
    assert abs(squares - wanted) <= 0.5e-6 * spread + 1e-14 * wanted


def test_infinities_and_nan_stay_when_taken_in_together() -> None:
    x = convert(source(0, ScalarType.FLOAT16, (TOGETHER,)), F32)
    ((one,),) = accumulations_of([reduction(Operation.VARIANCE, x, [0])])
    assert one.add_together is not None
    for value in (NAN, INF, -INF):
        array = np.array([1.0] * (TOGETHER - 1) + [value], np.float32)
        with np.errstate(invalid="ignore"):
            state = evaluate(one.add_together, [np.array(0.0)] * 3 + [np.array(each) for each in array])
            assert np.isnan(evaluate(one.results, [*state, np.array(1 / TOGETHER)])[0])


@pytest.mark.parametrize("type", [F32, INT32])
def test_products_are_summed(type: ScalarType) -> None:
    a, b = (source(number, type, (6,)) for number in range(2))
    inputs = [np.array(values, type.numpy) for values in (INTEGERS[0], [1, 2, 3, -4, 5, 6])]
    check([contraction(a, b, [0])], inputs)


def test_reductions_of_other_values_have_states_of_their_own_and_later_passes() -> None:
    x, y = (source(number, F32, (6,)) for number in range(2))
    greatest = reduction(Operation.GREATEST, x, [0])
    values = [
        reduction(Operation.SUM, convert(x, ScalarType.FLOAT64), [0]),
        reduction(Operation.SUM, y, [0]),
        reduction(Operation.LEAST, x - greatest, [0]),
        reduction(Operation.MEAN, x, [0]),
        reduction(Operation.VARIANCE, x, [0]),
    ]
    stages = accumulations_of(values)
    operations = [[[node.operation for node in each.nodes] for each in stage] for stage in stages]
    assert operations == [
        [[Operation.SUM], [Operation.SUM], [Operation.GREATEST], [Operation.MEAN, Operation.VARIANCE]],
        [[Operation.LEAST]],
    ]
