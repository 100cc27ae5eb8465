"""Every way in which the CPU walks its kernels, at odd sizes and over memory of any alignment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT16, FLOAT32, INT8, INT64, UINT8, Device, TensorDataType, TensorDesc, descs
from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Access, KernelProgram
from opendml.compiler.loops import LONG, WIDEST_BUNDLE
from opendml.operators.softmax import softmax1
from opendml.program import functions
from opendml.program.node import Node, Operation, convert, rebuild, source
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.spec.enums import AxisDirection, PaddingMode
from opendml.targets.common.pattern import Step
from opendml.targets.cpu import planning
from opendml.targets.cpu.engine import kernel_assembly
from opendml.targets.cpu.executable import CpuExecutable
from opendml.targets.cpu.machine import assumed, machine
from opendml.targets.cpu.pattern import TILE, CpuMode, CpuPattern, RowOrder, crossed_block
from opendml.targets.reference.evaluate import evaluate
from tests.running import elements, launches
from tests.targets.walks import (
    FAMILIES,
    GUARD,
    WALKS,
    Family,
    Walk,
    assert_close,
    check,
    images,
    memory_at,
    places,
    scans,
    softmaxes,
    walked,
)

SPLIT_ROWS = {CpuMode.ROWS_PARTIAL, CpuMode.ROWS_COMBINE}
SPLIT_COLUMNS = {CpuMode.COLUMNS_PARTIAL, CpuMode.COLUMNS_COMBINE}
PLACING = {
    CpuMode.SCATTER,
    CpuMode.SCATTER_COLUMNS,
    CpuMode.SCATTER_TILES,
    CpuMode.SCATTER_STRIPS,
    CpuMode.POSITIONS_CHUNKS,
    CpuMode.POSITIONS,
    CpuMode.TOP,
    CpuMode.TOP_CHUNKS,
    CpuMode.TOP_MERGE,
}
"""What tests of placings walk, as those of contractions walk theirs."""


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("walk", WALKS, ids=str)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_every_walk_over_memory_of_any_alignment_equals_the_reference(family: Family, walk: Walk) -> None:
    device = Device("cpu")
    for desc in walked(family, walk):
        check(desc, device)


STORING = {
    CpuMode.TRANSPOSED,
    CpuMode.POINTWISE,
    CpuMode.ROWS,
    CpuMode.ROWS_MAP,
    CpuMode.COLUMNS,
    CpuMode.COLUMNS_MAP,
    CpuMode.SCAN_COLUMNS,
    CpuMode.SCAN_COLUMNS_MAP,
}
SIDE_BY_SIDE = {mode for mode in CpuMode if mode.columns} - PLACING
CHOICES: dict[str, tuple[Callable[[CpuPattern], object], set[CpuMode]]] = {
    "streamed": (lambda pattern: any(store.streamed for store in pattern.stores), STORING),
    "stashes": (lambda pattern: getattr(pattern.walk, "stashes", False), {CpuMode.ROWS, CpuMode.COLUMNS}),
    "streamed and stashes": (
        lambda pattern: (
            getattr(pattern.walk, "stashes", False) and any(store.streamed for store in pattern.stores)
        ),
        {CpuMode.ROWS, CpuMode.COLUMNS},
    ),
    "wide tile": (
        lambda pattern: getattr(pattern.walk, "tile", 0) > TILE,
        SIDE_BY_SIDE - {CpuMode.COLUMNS_MAP},
    ),
    "whole rows": (
        lambda pattern: getattr(pattern.walk, "order", None) is RowOrder.WHOLE,
        {CpuMode.COLUMNS, *SPLIT_COLUMNS},
    ),
    "long rows": (
        lambda pattern: getattr(pattern.walk, "long_rows", False),
        {CpuMode.ROWS, CpuMode.ROWS_PARTIAL},
    ),
    "out of order": (lambda pattern: not getattr(pattern.walk, "in_order", True), {CpuMode.ROWS}),
    "later stage": (lambda pattern: getattr(pattern.walk, "stage", 0) > 0, {*SPLIT_ROWS, *SPLIT_COLUMNS}),
}
"""What a schedule chooses beside the mode, and the modes in which it is chosen at times and at times not."""


@pytest.mark.usefixtures("small_caches")
def test_the_walks_take_every_schedule() -> None:
    patterns = [
        each.pattern
        for walk, family in product(WALKS, FAMILIES)
        for desc in walked(family, walk)
        for each in launches(desc)
    ]
    walked_elsewhere = {mode for mode in CpuMode if mode.name.startswith("CONTRACTION")} | PLACING
    walked_elsewhere |= {CpuMode.SHARED_ROWS, CpuMode.SHORT_ROWS}
    assert {pattern.mode for pattern in patterns} == set(CpuMode) - walked_elsewhere
    for name, (choice, modes) in CHOICES.items():
        for chosen in (False, True):
            found = {pattern.mode for pattern in patterns if bool(choice(pattern)) is chosen}
            assert modes <= found, f"{name} {chosen}: {modes - found}"


def with_all_stores(program: KernelProgram) -> KernelProgram:
    """One kernel in place of several over the same domain, each of which stores an output; the first has the
    axes of all."""
    first = program.kernels[0]
    assert {kernel.domain for kernel in program.kernels} == {first.domain}
    assert {kernel.axes for kernel in program.kernels} <= {first.axes, ()}
    loads: list[Access] = []
    values: list[Node] = []
    numbers: list[int] = []
    for kernel in program.kernels:
        before = len(loads)
        given = len(numbers)
        values += rebuild(kernel.values, partial(_renumbered, before=before, given=given))
        numbers += kernel.numbers
        loads += kernel.loads
    stores = tuple(store for kernel in program.kernels for store in kernel.stores)
    merged = replace(first, loads=tuple(loads), stores=stores, values=tuple(values), numbers=tuple(numbers))
    return replace(program, kernels=(merged,))


def _renumbered(node: Node, before: int, given: int) -> Node:
    shift = {Operation.SOURCE: before, Operation.PARAMETER: given}.get(node.operation)
    if shift is None or not isinstance(node.attribute, int):
        return node
    return Node(node.operation, node.type, node.sizes, attribute=node.attribute + shift)


def two_results(walk: Walk, x: Node) -> Iterator[tuple[Node, Node]]:
    """Pairs of values that one kernel can store."""
    yield functions.exp(x), convert(x * 0.5, ScalarType.FLOAT16)
    yield softmax1(x, axes=walk.axes), x - functions.reduce_maximum(x, walk.axes)
    yield functions.reduce_maximum(x, walk.axes), convert(functions.mean(x, walk.axes), x.type)
    yield softmax1(x, axes=walk.axes), functions.reduce_maximum(x, walk.axes)
    running = functions.running_sum(x, walk.axes[0], exclusive=False, reverse=False)
    if len(walk.axes) == 1:
        yield running, x * 3.0


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("walk", [walk for walk in WALKS if walk.strides is None], ids=str)
def test_kernels_of_several_stores_write_all_of_them(walk: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = packed(ScalarType.FLOAT32, walk.sizes)
    x = np.random.default_rng(1).standard_normal(walk.sizes).astype(np.float32)
    for results in two_results(walk, source(0, layout.type, layout.sizes)):
        outputs = tuple(packed(result.type, result.sizes) for result in results)
        program = Program((layout,), outputs, results)
        wanted = evaluate(results, [x])
        with monkeypatch.context() as patch:
            patch.setattr(planning, "fuse", lambda given, *_, **__: with_all_stores(fuse(given)))
            instance = CpuExecutable(planning.compile_plan(program, None)).instantiate()
        instance.bind(0, x.ctypes.data)
        for offsets in places(2):
            made = []
            for number, (result, offset) in enumerate(zip(results, offsets, strict=True)):
                tensor = TensorDesc(result.type.data_type, result.sizes)
                raw, memory = memory_at(offset, tensor)
                instance.bind(1 + number, memory.ctypes.data)
                made.append((raw, elements(memory, tensor)))
            instance.dispatch()
            for (raw, values), exact in zip(made, wanted, strict=True):
                assert_close(values, exact, str(offsets))
                assert np.count_nonzero(raw != GUARD) <= values.nbytes


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("family", [images, softmaxes, scans], ids=lambda family: family.__name__)
def test_truly_large_tensors_equal_the_reference(family: Family, axis: int) -> None:
    descs = [next(family(Walk((2100, 2049), (axis,))))]
    if family is scans:
        descs = list(family(Walk((2100, 2049), (axis,))))[:2]
    with assumed(replace(machine(), last_cache_bytes=16 * 1024 * 1024)):
        for desc in descs:
            streamed = any(store.streamed for each in launches(desc) for store in each.pattern.stores)
            assert streamed or (family is scans and axis == 1)
            check(desc, Device("cpu"))


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("direction", AxisDirection)
@pytest.mark.parametrize("sizes", [(37, 1025), (3, 40_003)], ids=str)
def test_cancelling_sums_do_not_depend_on_places(sizes: tuple[int, ...], direction: AxisDirection) -> None:
    tensor = TensorDesc(FLOAT32, sizes)
    desc = descs.CumulativeSummation(tensor, tensor, axis=1, axis_direction=direction)
    random = np.random.default_rng(1)
    x = random.standard_normal(sizes).astype(np.float32)
    x *= random.choice(np.float32([1, 2.0**60]), sizes)
    device = Device("cpu")
    compiled = device.compile_operator(device.create_operator(desc))
    found = set()
    for offset in range(16):
        memory = memory_at(offset, tensor)[1]
        compiled.bind([x], [memory]).dispatch()
        found.add(memory.tobytes())
    assert len(found) == 1


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("data_type", [FLOAT16, FLOAT32, UINT8])
@pytest.mark.parametrize(("blocks", "more"), [((1, 1), (21, 35)), ((0, 1), (9, 1)), ((1, 2), (0, 0))])
def test_blocks_of_both_loops_equal_the_reference(
    blocks: tuple[int, int], more: tuple[int, int], data_type: TensorDataType
) -> None:
    most = crossed_block(ScalarType.of(data_type).bytes)
    rows, steps = (count * size + rest for count, size, rest in zip(blocks, most, more, strict=True))
    sizes = (2, rows, steps)
    across = TensorDesc(data_type, sizes, [rows * steps, 1, rows])
    along = TensorDesc(data_type, sizes)
    desc = descs.ElementWiseMax(across, along, along)
    (launch,) = launches(desc)
    assert launch.pattern.mode is CpuMode.TRANSPOSED
    check(desc, Device("cpu"))


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize(("rows", "streamed"), [(400, True), (40, False)])
@pytest.mark.parametrize("spread", [0, 1, 16])
def test_what_a_core_does_not_hold_is_streamed(rows: int, streamed: bool, spread: int) -> None:
    steps = 200
    across = TensorDesc(FLOAT32, [rows, steps], [1, rows])
    desc = descs.ActivationRelu(across, TensorDesc(FLOAT32, [rows, steps], [steps + spread, 1]))
    (launch,) = launches(desc)
    assert launch.pattern.stores[0].streamed is streamed
    check(desc, Device("cpu"))


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize(("rows", "fetches"), [(400, 1), (40, 0)])
def test_operands_of_streamed_results_are_prefetched(rows: int, fetches: int) -> None:
    matrix = TensorDesc(FLOAT32, [rows, 200])
    (launch,) = launches(descs.ActivationRelu(matrix, matrix))
    assert kernel_assembly(launch.pattern).count('call void @"llvm.prefetch') == fetches


def test_short_rows_that_lie_across_are_not_streamed() -> None:
    image = TensorDesc(FLOAT32, [1, 60, 300, 300])
    pixels = TensorDesc(FLOAT32, image.sizes, [0, 1, 60 * 300, 60])
    (launch,) = launches(descs.ActivationRelu(image, pixels))
    assert launch.pattern.mode is CpuMode.TRANSPOSED
    assert not launch.pattern.stores[0].streamed


@pytest.mark.parametrize("data_type", [FLOAT16, FLOAT32, INT8])
@pytest.mark.parametrize("channels", range(2, WIDEST_BUNDLE + 1))
def test_pixels_of_few_channels_are_bundled(channels: int, data_type: TensorDataType) -> None:
    image = TensorDesc(data_type, [2, channels, 5, 43])
    strides = [channels * 5 * 43, 1, 43 * channels, channels]
    pixels = TensorDesc(data_type, image.sizes, strides)
    for desc in (descs.ActivationRelu(image, pixels), descs.ActivationRelu(pixels, image)):
        (launch,) = launches(desc)
        assert launch.pattern.mode is CpuMode.POINTWISE
        assert sorted(map(len, launch.pattern.bundles)) == [channels]
        check(desc, Device("cpu"))


def test_what_is_wider_than_a_bundle_is_transposed() -> None:
    image = TensorDesc(FLOAT32, [1, WIDEST_BUNDLE + 1, 30, 43])
    pixels = TensorDesc(FLOAT32, image.sizes, [0, 1, 43 * (WIDEST_BUNDLE + 1), WIDEST_BUNDLE + 1])
    (launch,) = launches(descs.ActivationRelu(image, pixels))
    assert launch.pattern.mode is CpuMode.TRANSPOSED


def test_windows_as_far_apart_as_they_are_wide_are_loaded_as_bundles() -> None:
    image, pooled = TensorDesc(FLOAT32, [1, 2, 9, 60]), TensorDesc(FLOAT32, [1, 2, 3, 20])
    margins = {"start_padding": [0, 0], "end_padding": [0, 0]}
    desc = descs.MaxPooling(image, pooled, strides=[3, 3], window_size=[3, 3], **margins)
    (launch,) = launches(desc)
    assert sorted(map(len, launch.pattern.bundles)) == [3, 3, 3]
    assert all(load.step is Step.STRIDED for load in launch.pattern.loads)
    check(desc, Device("cpu"))


def test_what_is_gathered_is_read_where_it_lies_beside_what_lies_across() -> None:
    """Along the row loop the elements of both follow each other, the gathered ones from a computed place."""
    sizes = [8, 8, 64]
    x, indices = TensorDesc(INT64, [8, 39, 64]), TensorDesc(INT64, sizes)
    desc = descs.GatherElements(x, indices, TensorDesc(INT64, sizes, [1, 8, 128]), axis=1)
    (launch,) = launches(desc)
    assert launch.pattern.mode is CpuMode.TRANSPOSED
    check(desc, Device("cpu"))


def lanes(type: TensorDataType) -> int:
    """Elements of a vector of a kernel that has no others."""
    return machine().vector_bytes // {FLOAT16: 2, UINT8: 1}.get(type, 4)


def slice_of_rows(type: TensorDataType, width: int) -> descs.Slice:
    x, y = TensorDesc(type, [3, 21, 9, width + 5]), TensorDesc(type, [3, 21, 7, width])
    return descs.Slice(x, y, offsets=[0, 0, 1, 2], sizes=y.sizes, strides=[1, 1, 1, 1])


@pytest.mark.parametrize("type", [FLOAT32, FLOAT16, UINT8, INT64], ids=str)
@pytest.mark.parametrize("vectors", [1, 2, 4])
def test_rows_of_full_vectors_have_no_loop(type: TensorDataType, vectors: int) -> None:
    steps = vectors * lanes(type)
    for width, expected in ((steps, steps), (steps + 1, 0)):
        desc = slice_of_rows(type, width)
        (launch,) = launches(desc)
        assert launch.pattern.row_steps == expected
        check(desc, Device("cpu"))


def test_of_many_vectors_there_is_a_loop() -> None:
    (launch,) = launches(slice_of_rows(FLOAT32, 5 * lanes(FLOAT32)))
    assert not launch.pattern.row_steps


def test_guards_of_rows_of_full_vectors() -> None:
    x, y = (TensorDesc(FLOAT32, [3, 5, width]) for width in (lanes(FLOAT32) - 3, lanes(FLOAT32)))
    margins: dict[str, Sequence[int]] = {"start_padding": [0, 0, 2], "end_padding": [0, 0, 1]}
    desc = descs.Padding(x, y, padding_mode=PaddingMode.CONSTANT, padding_value=3.0, **margins)
    (launch,) = launches(desc)
    assert launch.pattern.row_steps == lanes(FLOAT32)
    check(desc, Device("cpu"))


@pytest.mark.usefixtures("small_caches")
def test_rows_that_follow_each_other_are_written_together() -> None:
    desc = slice_of_rows(FLOAT32, 3 * lanes(FLOAT32))
    (launch,) = launches(desc)
    assert (launch.pattern.mode, launch.pattern.row_steps) == (CpuMode.SHORT_ROWS, 3 * lanes(FLOAT32))
    check(desc, Device("cpu"))


def test_rows_at_indices_are_one_kernel() -> None:
    """Each index is used for one row, so it is moved into the range there."""
    # Shorter rows are put together as bundles.
    width = max(LONG, lanes(FLOAT32))
    x, indices = TensorDesc(FLOAT32, [1, 50, width]), TensorDesc(INT64, [1, 1, 70])
    desc = descs.Gather(x, indices, TensorDesc(FLOAT32, [1, 70, width]), axis=1, index_dimensions=1)
    (launch,) = launches(desc)
    assert launch.pattern.row_steps == width
    table = np.arange(50 * width, dtype=np.float32).reshape(1, 50, width)
    chosen = np.random.default_rng(0).integers(-60, 60, (1, 1, 70))
    within = np.clip(np.where(chosen < 0, chosen + 50, chosen), 0, 49)
    expected = table[:, within[0, 0]]
    np.testing.assert_array_equal(dml.gather(table, chosen, axis=1, index_dimensions=1), expected)


@pytest.mark.usefixtures("small_caches")
def test_rows_that_are_streamed_begin_where_memory_has_boundaries() -> None:
    """Of 64 steps, four vectors of AVX-512: streamed ones would be short rows but for their boundaries."""
    steps, width = 64, 8
    x = TensorDesc(FLOAT32, [45, steps, width], [2 * width * steps, 1, steps])
    y = TensorDesc(FLOAT32, [45, steps, width], [width * steps + 3, width, 1])
    desc = descs.ElementWiseIdentity(x, y)
    for vector_bytes in (16, 32, 64):
        with assumed(replace(machine(), vector_bytes=vector_bytes)):
            (launch,) = launches(desc)
        assert (launch.pattern.mode, launch.pattern.row_steps) == (CpuMode.POINTWISE, 0)
        assert launch.pattern.stores[0].streamed
    check(desc, Device("cpu"))
