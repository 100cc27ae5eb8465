"""Kernels of the CUDA target run on the processor, thread by thread, and compute what the reference
computes: of each mode a few, for each way in which elements lie. `python -m tools.cuda_check --emulated` runs
all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.compiler.kernel import Kernel
from opendml.compiler.sized import at_sizes
from opendml.operators.activation import swish
from opendml.program.atoms import Dimension
from opendml.program.carriers import carried
from opendml.program.node import Operation, apply, contraction, convert, source
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.size_values import Conditions
from opendml.program.view import reshaped
from opendml.runtime.program import program_of
from opendml.spec import descs
from opendml.spec.enums import AxisDirection, TensorDataType
from opendml.spec.tensor_desc import TensorDesc
from opendml.targets.common.candidates import Decision
from opendml.targets.cuda import kernel_source, planning, rolled_windows
from opendml.targets.cuda.cubins import Cubin
from opendml.targets.cuda.executable import CudaInstance
from opendml.targets.cuda.job import CudaJob, JobForm
from opendml.targets.cuda.launch import CudaLaunch
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.pattern import WARPGROUP_MODES, CudaMode
from opendml.targets.cuda.planning import CudaTracedProgram, Scheduler, compiled_program, plan
from opendml.targets.cuda.schedule import schedule, table_of
from opendml.targets.cuda.schedule_contraction import TILES, CudaProductQuery
from opendml.targets.cuda.schedule_depthwise import DEPTHWISE
from opendml.targets.cuda.schedule_scans import LineSpan, construct_scan
from opendml.targets.cuda.schedule_short_sums import SHORT_SUMS
from opendml.targets.cuda.warpgroup_tile import PARTS_TILES
from opendml.targets.reference.backend import ReferenceExecutable
from opendml.targets.reference.evaluate import evaluate
from tests.conftest import MadeOnce
from tests.cuda.compiled import aligned
from tests.nodes import matrix_product, program
from tests.plans import NETWORKS, traced_program
from tests.programs import sources
from tools.cuda_case import Case
from tools.cuda_check import runs, worst_of
from tools.cuda_contraction_cases import contraction_cases, convolved, of_bfloat16
from tools.cuda_emulator import COMPILER, MACHINE, emulated
from tools.cuda_tiles import in_tiles

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
Run = tuple[Case, Scheduler]
Chosen = dict[CudaMode, list[Run]]


def _elements(case: Case) -> int:
    return sum(layout.element_count for layout in (*case.program.inputs, *case.program.outputs))


@cache
def _kernels(case: Case) -> tuple[Kernel, ...]:
    return plan(case.program, MACHINE).kernels.kernels


def _launches(case: Case, scheduler: Scheduler) -> Iterator[CudaLaunch]:
    """Yield the launches of a case as a device plans it, with copies of operands."""
    for kernel in _kernels(case):
        bytes = (case.offset * access.type.bytes for access in (*kernel.loads, *kernel.stores))
        yield scheduler(kernel, MACHINE, [min(16, each & -each) if each else 16 for each in bytes])


@pytest.fixture(scope="session")
def chosen(made_once: MadeOnce) -> Chosen:
    """The runs to emulate, by mode. One process of tests finds them, in 12 s; others read their numbers."""
    every = [(case, scheduler) for case, _, scheduler in runs()]

    def write(folder: Path) -> None:
        (folder / "numbers.json").write_text(json.dumps(_numbers_of_chosen(every)))

    numbers = json.loads((made_once("emulated_runs", write) / "numbers.json").read_text())
    return {mode: [every[number] for number in numbers[mode.value]] for mode in CudaMode}


def _numbers_of_chosen(every: Sequence[Run]) -> dict[str, list[int]]:
    """Return numbers of runs by mode: the smallest cases that have each pair of ways in which elements lie.
    Of warpgroups there is a case for each way of work, not for each pair."""
    chosen: dict[str, list[int]] = {mode.value: [] for mode in CudaMode}
    seen = set[tuple[object, ...]]()
    for number, (case, scheduler) in sorted(enumerate(every), key=lambda each: _elements(each[1][0])):
        for launch in _launches(case, scheduler):
            pattern, constants = launch.pattern, dict(launch.pattern.constants)
            way: tuple[object, ...]
            more = set[tuple[object, ...]]()
            way = pattern.mode, pattern.vector > 1, pattern.columns, pattern.flat, launch.cooperative
            if pattern.mode is CudaMode.REDUCE:
                way += tuple(
                    bool(constants[name]) for name in ("REGISTER_UNITS", "SHARED_UNITS", "REREADS", "TEAM")
                )
                way += constants["STAGES"] > 1, constants["HAS_ELEMENTS"], constants["SPAN"] > 32
            if pattern.mode in (CudaMode.MMA, CudaMode.SHORT_SUMS):
                more.add((pattern.mode, pattern.loads[0].type))
            if pattern.mode is CudaMode.SHORT_SUMS:
                way += *(constants[name] for name in ("UNIT", "GUARDED", "PADDED")), launch.grid > 1
            elif "UNIT" in constants:
                way += constants["UNIT"] > 1, constants["UNIT_ACROSS"], constants["STORED_ALONG_ROWS"]
            if pattern.mode in WARPGROUP_MODES:
                way = pattern.mode, constants["A_ALONG_K"], constants["B_ALONG_K"]
                ways_of_work = "SPLIT", "SLICES", "CLUSTER", "TURNS", "LOOPS_K", "STAGED_BYTES"
                more = {(pattern.mode, name, constants[name]) for name in ways_of_work}
            if pattern.mode is CudaMode.WGMMA_CHAIN:
                names = "ROWS", "HIDES", "PARTS", "SPLIT", "TERMS"
                way += *(constants[name] for name in names), len(pattern.loads)
            if pattern.mode in (CudaMode.REDUCE, CudaMode.WGMMA_CHAIN):
                more |= {(pattern.mode, *pair) for pair in combinations(enumerate(way), 2)}
            else:
                more.add(way)
            if not seen.issuperset(more):
                seen |= more
                chosen[pattern.mode.value].append(number)
    return chosen


@pytest.mark.parametrize("mode", CudaMode)
def test_kernels_compute_what_the_reference_does(mode: CudaMode, chosen: Chosen) -> None:
    with emulated():
        for case, scheduler in chosen[mode]:
            error, used = worst_of(case, scheduler)
            assert mode.value in used
            assert error <= 1, case.name


@pytest.mark.parametrize("mode", CudaMode)
def test_results_that_are_wanted_twice_are_stored_twice(mode: CudaMode, chosen: Chosen) -> None:
    case, scheduler = chosen[mode][0]
    program = case.program
    twice = replace(program, outputs=2 * program.outputs, results=2 * program.results)
    with emulated():
        error, _ = worst_of(replace(case, program=twice), scheduler)
    assert error <= 1, case.name


def test_maps_of_the_copy_engine_follow_what_is_bound(chosen: Chosen) -> None:
    """One instance, bound twice: the second time to tensors elsewhere."""
    case, scheduler = next(run for run in chosen[CudaMode.WGMMA] if _is_packed(run[0].program))
    with emulated():
        instance = compiled_program(case.program, scheduler=scheduler).instantiate()
        reference = ReferenceExecutable(case.program).instantiate()
        for seed in range(2):
            generator = np.random.default_rng(seed)
            shapes = [layout.sizes for layout in (*case.program.inputs, *case.program.outputs)]
            tensors = [generator.normal(size=sizes).astype(np.float16) for sizes in shapes]
            found = tensors[-1].copy()
            for number, tensor in enumerate(tensors):
                reference.bind(number, tensor.ctypes.data)
                instance.bind(number, (found if tensor is tensors[-1] else tensor).ctypes.data)
            instance.dispatch()
            reference.dispatch()
            np.testing.assert_allclose(found, tensors[-1], rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("mode", WARPGROUP_MODES)
@pytest.mark.parametrize("operand", "AB")
def test_operands_that_are_the_same_in_every_run_may_be_loaded_ahead(
    mode: CudaMode, operand: str, chosen: Chosen
) -> None:
    with emulated():
        for case, scheduler in chosen[mode]:
            error, used = worst_of(case, partial(_with_fixed, operand, scheduler))
            assert mode.value in used
            assert error <= 1, case.name


def _with_fixed(
    operand: str, scheduler: Scheduler, kernel: Kernel, machine: CudaMachine, alignments: Sequence[int]
) -> CudaLaunch:
    """Return the launch of a kernel if an operand of its product is the same in every run."""
    launch = scheduler(kernel, machine, alignments)
    if launch.pattern.mode not in WARPGROUP_MODES:
        return launch
    number = dict(launch.pattern.constants)[f"{operand}_LOAD"]
    loads = tuple(replace(load, fixed=load.fixed or at == number) for at, load in enumerate(kernel.loads))
    fixed = scheduler(replace(kernel, loads=loads), machine, alignments)
    assert dict(fixed.pattern.constants)[f"{operand}_FIXED"] == 1
    return fixed


def test_kernels_let_a_product_begin_but_no_other_kernel() -> None:
    random = np.random.default_rng(6)
    arrays = [random.standard_normal((64, 64)).astype(np.float16) for _ in range(2)]
    x, y = (convert(each, ScalarType.FLOAT32) for each in sources(*arrays))
    total = contraction(reshaped(x, (64, 1, 64)), reshaped(y, (1, 64, 64)), (2,))
    doubled = convert(reshaped(total, (64, 64)), ScalarType.FLOAT16)
    elements = convert(x + 1, ScalarType.FLOAT16)
    with emulated():
        instance = compiled_program(program(elements, doubled)).instantiate()
        room = np.zeros((4, 64 * 64 + 8), np.float16)
        for number, array in enumerate((*arrays, *room[2:])):
            instance.bind(number, array.ctypes.data)
        instance.dispatch()
        assert _modes_and_words(instance) == [
            (CudaMode.POINTWISE, 1),
            (CudaMode.WGMMA, 0),
        ]
        # The copy engine does not load operands that are not aligned.
        room[0, 1:].reshape(-1)[: 64 * 64] = arrays[1].reshape(-1)
        instance.bind(1, room[0, 1:].ctypes.data)
        instance.dispatch()
        assert [word for _, word in _modes_and_words(instance)] == [0, 0]
    (_, exact) = evaluate([elements, doubled], arrays)
    np.testing.assert_allclose(room[3, : 64 * 64].reshape(64, 64), exact, rtol=5e-3, atol=0.1)


def test_grids_that_would_crowd_on_some_multiprocessors_gain_nothing_early(
    chosen: Chosen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "cubins_of", lambda patterns, _: [Cubin("", b"")] * len(patterns))
    case, scheduler = chosen[CudaMode.WGMMA][0]
    launch = next(each for each in _launches(case, scheduler) if each.pattern.mode is CudaMode.WGMMA)
    machine = replace(MACHINE, multiprocessors=132)
    owner: Any = SimpleNamespace(machine=machine, current=nullcontext, function=lambda *_: None)

    def prepared(grid: int) -> CudaJob:
        count = len(launch.pattern.accesses)
        sized = replace(launch, grid=grid, shared_bytes=1000)
        planned = planning._planned([(sized, (16,) * count)], machine)
        return CudaJob(JobForm(planned, [[[(0, 0)] * count]], 1, machine), owner)

    gains = {grid: bool(prepared(grid).gains[0]) for grid in (1, 66, 67, 80, 92, 93, 132, 264)}
    assert [grid for grid, gain in gains.items() if not gain] == [67, 80, 92]
    # Of grids that do not fill the device, a block has a multiprocessor to itself.
    shared = [prepared(grid)._shared.tolist()[0] for grid in (66, 80, 132, 264)]
    assert shared == [machine.shared_bytes // 2, 1000, machine.shared_bytes // 2, 1000]


def _modes_and_words(instance: CudaInstance) -> list[tuple[CudaMode, int]]:
    """Return the modes of launches, and whether each lets the next one begin."""
    found = list[tuple[CudaMode, int]]()
    for number in range(len(instance._job.form.launches)):
        job, at = instance._job, number
        if number in instance._others:
            job, at = instance._others[number][1], 0
        word = job._words[job.form.next_words[job.form.owners.tolist().index(at)]]
        found.append((CudaMode(job.form.launches[at].mode), int(word)))
    return found


def test_products_of_few_rows_that_read_the_same_share_a_launch() -> None:
    random = np.random.default_rng(5)
    arrays = [random.standard_normal((64, 128)).astype(np.float16) for _ in range(4)]
    x, *weights = (convert(each, ScalarType.FLOAT32) for each in sources(*arrays))
    rows = reshaped(x, (64, 1, 128))
    products = [contraction(rows, reshaped(each, (1, 64, 128)), (2,)) for each in weights]
    results = [convert(each, ScalarType.FLOAT16) for each in products]
    # The last product reads what the first one writes.
    second = reshaped(convert(results[0], ScalarType.FLOAT32), (64, 1, 64))
    columns = reshaped(convert(source(1, ScalarType.FLOAT16, (64, 128)), ScalarType.FLOAT32), (1, 128, 64))
    results.append(convert(contraction(second, columns, (2,)), ScalarType.FLOAT16))
    with emulated():
        executable = compiled_program(program(*results))
        instance = executable.instantiate()
        outputs = [np.zeros(result.sizes, np.float16) for result in results]
        for number, array in enumerate((*arrays, *outputs)):
            instance.bind(number, array.ctypes.data)
        instance.dispatch()
        assert [tuple(kernels) for _, kernels in executable.parts.groups] == [(0, 1, 2), (3,)]
    for found, exact in zip(outputs, evaluate(results, arrays), strict=True):
        np.testing.assert_allclose(found, exact, rtol=5e-3, atol=0.1)


@pytest.mark.parametrize("make", NETWORKS)
def test_one_traced_program_computes_what_the_reference_does_for_each_size(make: Any) -> None:
    hints = {"batch": 2, "length": 24, "keys": 40}
    program, trace = traced_program(make, "FLOAT16", hints)
    program = replace(program, constants=frozenset())
    count, generator = 0, np.random.default_rng(1)
    ranges = {name: Dimension(hints[name], 2, 64) for name in trace.dimensions}
    with emulated():
        with trace.within(ranges) as guards:
            executable = CudaTracedProgram(program).compile()
        assert executable is not None
        conditions = Conditions(guards, executable.sizes)
        hosted = executable.sized_instance((), None)
        for batch, length, keys in ((2, 24, 40), (3, 16, 40), (2, 8, 24), (4, 23, 40), (2, 24, 33)):
            sizes = {"batch": batch, "length": length, "keys": keys}
            values = conditions.values({name: sizes[name] for name in ranges})
            if values is None:
                continue
            count += 1
            exact = at_sizes(program, sizes)
            layouts = (*exact.inputs, *exact.outputs)
            tensors = [generator.normal(size=each.sizes).astype(np.float16) for each in layouts]
            wanted = [tensor.copy() for tensor in tensors]
            for own, tensors_of in ((executable.at(values), tensors), (ReferenceExecutable(exact), wanted)):
                instance = own.instantiate()
                for number, tensor in enumerate(tensors_of):
                    instance.bind(number, tensor.ctypes.data)
                instance.dispatch()
            copied = [tensor.copy() for tensor in tensors[: len(exact.inputs)]]
            copied += [np.empty_like(tensor) for tensor in tensors[len(exact.inputs) :]]
            hosted.resize(values)
            for number, tensor in enumerate(copied):
                hosted.bind(number, tensor.ctypes.data)
            hosted.dispatch()
            for found, expected, again in zip(tensors, wanted, copied, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-2, atol=2e-2)
                np.testing.assert_array_equal(found, again)
    assert count >= 2


def _depthwise(x: Any, y: Any) -> dict[str, Any]:
    weights, pair = np.arange(36, dtype=np.float16).reshape(4, 1, 3, 3) / 16, [1, 1]
    padded = {"start_padding": pair, "end_padding": pair, "group_count": 4}
    return {"y": dml.convolution(x, weights, strides=pair, dilations=pair, **padded)}


def _on_its_side(layout: Layout) -> Layout:
    """Return a layout with channels last in which the columns of an image follow each other."""
    _, channels, height, width = layout.sizes
    pixel = layout.type.bytes * channels
    return replace(layout, strides=(pixel * width * height, layout.type.bytes, pixel, pixel * height))


def test_a_depthwise_convolution_with_channels_last_serves_traced_sizes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The distance of the lines of a window is traced."""
    monkeypatch.setattr(rolled_windows, "_LEAST_PRODUCTS", 0)
    hints = {"batch": 2, "length": 24, "keys": 40}
    program, trace = traced_program(_depthwise, "FLOAT16", hints)
    (x, *others), (y,) = program.inputs, program.outputs
    inputs, outputs = (_on_its_side(x), *others), (_on_its_side(y),)
    program = replace(program, inputs=inputs, outputs=outputs, constants=frozenset())
    generator = np.random.default_rng(1)
    with emulated():
        with trace.within({name: Dimension(hints[name], 2, 64) for name in hints}) as guards:
            executable = CudaTracedProgram(program).compile()
        assert executable is not None
        assert [each.mode for each in executable.parts.launches] == [CudaMode.DEPTHWISE.value]
        for sizes in (hints | {"batch": 3, "length": 17}, hints | {"length": 8}):
            values = Conditions(guards, executable.sizes).values(sizes)
            assert values is not None
            exact = at_sizes(program, sizes)
            layouts = (*exact.inputs, *exact.outputs)
            tensors = [generator.normal(size=each.element_count).astype(np.float16) for each in layouts]
            wanted = [tensor.copy() for tensor in tensors]
            for own, arrays in ((executable.at(values), tensors), (ReferenceExecutable(exact), wanted)):
                instance = own.instantiate()
                for number, array in enumerate(arrays):
                    instance.bind(number, array.ctypes.data)
                instance.dispatch()
            np.testing.assert_allclose(tensors[-1], wanted[-1], rtol=1e-2, atol=2e-2)


def _is_packed(program: Program) -> bool:
    return all(each == packed(each.type, each.sizes) for each in (*program.inputs, *program.outputs))


@pytest.mark.parametrize("turned", [(False, True), (True, False)], ids=["along k", "across k"])
def test_numbers_that_have_no_parts_are_multiplied_as_they_are(turned: tuple[bool, bool]) -> None:
    """Infinities, NaN and numbers that TF32 rounds to infinity, in either factor."""
    generator = np.random.default_rng(1)
    a, b = (generator.normal(size=sizes).astype(np.float32) for sizes in ((68, 40), (40, 72)))
    a[0, 3], a[1, 5], a[2, 7], b[9, 4], b[1, 5], b[3, 6] = np.inf, np.nan, 3e38, -np.inf, 2e38, 0
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = (a.astype(np.float64) @ b).astype(np.float32)
    found = np.empty_like(wanted)
    given = program(matrix_product(ScalarType.FLOAT32, (68, 72, 40), *turned))
    with emulated():
        tile = next(each for each in PARTS_TILES if each.rows == each.columns == 64)
        instance = compiled_program(given, scheduler=partial(in_tiles, tile, 1)).instantiate()
        factors = [
            np.ascontiguousarray(each.T if is_turned else each)
            for each, is_turned in zip((a, b), turned, strict=True)
        ]
        for number, tensor in enumerate((*factors, found)):
            instance.bind(number, tensor.ctypes.data)
        instance.dispatch()
    is_large = ~np.isfinite(wanted)
    np.testing.assert_array_equal(found[is_large], wanted[is_large])
    np.testing.assert_allclose(found[~is_large], wanted[~is_large], rtol=1e-5, atol=1e-4)


def test_every_mode_is_run(chosen: Chosen) -> None:
    assert all(chosen.values()), [mode for mode, cases in chosen.items() if not cases]


def test_a_kernel_that_does_not_store_is_found(chosen: Chosen, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = kernel_source.file_text
    monkeypatch.setattr(
        kernel_source, "file_text", lambda name: whole(name).replace("store_outputs<", "forget_outputs<")
    )
    case, scheduler = chosen[CudaMode.POINTWISE][0]
    text = "template <int V, typename... T> DEVICE void forget_outputs(const T&...) {}"
    monkeypatch.setattr(
        kernel_source, "printed", lambda pattern, of=kernel_source.printed: of(pattern) + text
    )
    with emulated():
        error, _ = worst_of(case, scheduler)
    assert error > 1


def test_tensor_cores_multiply_all_numbers_of_bfloat16() -> None:
    """Infinities, NaN with any bits, and subnormal numbers, in either factor."""
    sizes = m, n, k = 37, 50, 33
    given, generator = of_bfloat16(sizes), np.random.default_rng(1)
    a, b, c = (
        (generator.normal(size=each).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        for each in ((m, k), (k, n), (m, n))
    )
    a[0, 3], a[1, 5], a[2], b[9, 4], b[1, 5], c[0, 0] = 0x7F80, 0x7F81, 1, 0xFF80, 0xFFC5, 0x7FFF
    b[:, 7] = 0x8001
    found = np.empty_like(c)
    tile = next(each for each in TILES if each.mode is CudaMode.MMA and each.rows == 64)
    with emulated():
        instance = compiled_program(given, scheduler=partial(in_tiles, tile, 1)).instantiate()
        for number, tensor in enumerate((a, b, c, found)):
            instance.bind(number, tensor.ctypes.data)
        instance.dispatch()
    x, y, z, result = ((each.astype(np.uint32) << 16).view(np.float32) for each in (a, b, c, found))
    with np.errstate(invalid="ignore"):
        wanted = x.astype(np.float64) @ y + z
        np.testing.assert_allclose(result, wanted, rtol=2**-8, atol=2e-6 * k)
    assert np.isnan(result).sum() > n
    np.testing.assert_array_equal(result[np.isinf(wanted)], wanted[np.isinf(wanted)])


@pytest.mark.parametrize(
    ("form", "modes"),
    [
        ("(7, 7) 3 1 1", {CudaMode.POINTWISE, CudaMode.TRANSPOSED, CudaMode.WGMMA_WINDOWS}),
        ("(13, 12) 3 2 1", {CudaMode.POINTWISE, CudaMode.WGMMA_WINDOWS}),
        ("(6, 10) 3 1 2", {CudaMode.MMA}),
        (
            "(2, 40, 9, 7) (72, 3, 1) 1",
            {CudaMode.WGMMA_BFLOAT16_WINDOWS},
        ),
        ("(1, 3, 24, 30) (40, 7, 7) 2", {CudaMode.MMA}),
    ],
)
def test_convolutions_of_operators_compute_what_the_reference_does(form: str, modes: set[CudaMode]) -> None:
    """The first has its channels outermost, and is copied."""
    (case,) = (case for case in contraction_cases() if f"CONVOLUTION {form} " in f"{case.name.upper()} ")
    with emulated():
        error, used = worst_of(case, schedule)
    assert error <= 1
    assert set(used) == {mode.value for mode in modes}


def test_swish_of_bfloat16_is_rounded_once_for_all_numbers() -> None:
    """With the exponential and the quotient of the hardware."""
    bits = np.arange(2**16).astype(np.uint16)
    found = np.zeros_like(bits)
    x = convert(source(0, ScalarType.BFLOAT16, bits.shape), ScalarType.FLOAT32)
    result = apply(Operation.ROUND, swish(x, sigmoid_input_scale=1.0))
    with emulated():
        executable = compiled_program(carried(program(convert(result, ScalarType.BFLOAT16))))
        instance = executable.instantiate()
        for number, array in enumerate((bits, found)):
            instance.bind(number, array.ctypes.data)
        instance.dispatch()
    exponents = bits >> 7 & 0xFF
    given, rounded = (
        (each[exponents < 0xFF].astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        for each in (bits, found)
    )
    exact = given / (1 + np.exp(-np.maximum(given, -700.0)))
    assert (np.abs(rounded - exact) <= 1.01 * 2.0**-8 * np.abs(exact) + 2.0**-126).all()


def _as_given(launch: CudaLaunch, *_: object) -> CudaLaunch:
    return launch


@pytest.mark.parametrize(
    ("type", "images", "window", "form"),
    [
        ("FLOAT16", (2, 16, 13, 12), (3, 3), {"stride": 2, "before": 1}),
        ("FLOAT32", (1, 24, 10, 17), (5, 3), {"dilation": 2, "before": 4, "after": 2}),
        ("FLOAT16", (2, 24, 9, 11), (7, 7), {"before": 3, "after": 3}),
    ],
)
def test_depthwise_convolutions_with_channels_last_are_summed_in_strips(
    monkeypatch: pytest.MonkeyPatch,
    type: str,
    images: tuple[int, ...],
    window: tuple[int, ...],
    form: dict[str, int],
) -> None:
    """Small windows are unrolled at first. Strips of each height are right."""
    monkeypatch.setattr(rolled_windows, "_LEAST_PRODUCTS", 0)
    filters, is_last = (images[1], *window), ("input", "output")
    program = convolved(type, images, filters, groups=images[1], lies_last=is_last, **form)
    (kernel,) = plan(program, MACHINE).kernels.kernels
    query = CudaProductQuery(kernel, MACHINE, aligned(kernel))
    assert DEPTHWISE.alternatives is not None
    choices = {each.choice.height: each.choice for each in DEPTHWISE.alternatives(query)}
    assert len(choices) == 3
    with emulated():
        for choice in choices.values():
            launch = Decision(((DEPTHWISE, choice),)).construct(query)
            error, used = worst_of(Case(type, program, absolute=1e-3), partial(_as_given, launch))
            assert error <= 1
            assert used == ["depthwise"]


@pytest.mark.parametrize(
    ("images", "window", "form"),
    [
        ((2, 3, 13, 12), (16, 3, 3), {"stride": 2, "before": 1}),
        ((1, 32, 9, 11), (96, 1, 1), {}),
        ((1, 4, 10, 12), (8, 2, 5), {"before": 2, "after": 3, "stride": 2}),
        ((1, 3, 16, 16), (32, 4, 4), {"stride": 4}),
    ],
)
def test_convolutions_of_few_channels_are_summed_in_registers(
    images: tuple[int, ...], window: tuple[int, ...], form: dict[str, int]
) -> None:
    """Channels of one, two, four and eight are loaded together. The last block may have fewer columns."""
    is_last = ("input", "output") if images[1] == 3 else ("input", "filter", "output")
    program = convolved("FLOAT16", images, window, lies_last=is_last, **form)
    (kernel,) = (each for each in plan(program, MACHINE).kernels.kernels if each.axes)
    query = CudaProductQuery(kernel, MACHINE, aligned(kernel))
    assert SHORT_SUMS.alternatives is not None
    choice = list(SHORT_SUMS.alternatives(query))[-1].choice
    launch = Decision(((SHORT_SUMS, choice),)).construct(query)
    with emulated():
        error, used = worst_of(Case("FLOAT16", program, absolute=1e-3), partial(_as_given, launch))
    assert error <= 1
    assert set(used) == {"short_sums"}


ALONG, ACROSS = LineSpan(64, 64, 8, team=3, resident=1), LineSpan(128, 4, 8, team=3, resident=1)
WAVE = ALONG.span * ALONG.keep * ALONG.team


def _so(way: LineSpan, kernel: Kernel, machine: CudaMachine, alignments: Sequence[int]) -> CudaLaunch:
    _, query = table_of(kernel, machine, alignments)
    return construct_scan(query, way)


WAVES = [
    ((2, WAVE), 1, ALONG),
    ((2, 2 * WAVE - 1), 1, ALONG),
    ((1, 3 * WAVE + 8), 1, ALONG),
    ((4 * 8 * 3 * 2 + 1, 35), 0, ACROSS),
    ((5, 3), 0, ACROSS),
]
SUMMED = [dml.FLOAT32, dml.FLOAT16, dml.INT32, dml.INT64]


# Each shape has both directions, and so has each type.
@pytest.mark.parametrize(
    ("sizes", "axis", "way", "direction", "data_type"),
    [
        (*wave, direction, SUMMED[(number + 2 * turn) % len(SUMMED)])
        for number, wave in enumerate(WAVES)
        for turn, direction in enumerate(AxisDirection)
    ],
)
def test_waves_of_tiles_are_summed_up_in_their_order(
    data_type: TensorDataType, direction: AxisDirection, sizes: tuple[int, int], axis: int, way: LineSpan
) -> None:
    tensor = TensorDesc(data_type, sizes)
    is_down = direction is AxisDirection.DECREASING
    desc = descs.CumulativeSummation(
        tensor, tensor, axis=axis, axis_direction=direction, has_exclusive_sum=is_down
    )
    case = Case(f"{sizes} {data_type} {direction}", program_of(desc), mean=1.0, deviation=0.001)
    with emulated():
        error, _ = worst_of(case, partial(_so, way))
    assert error <= 1
