"""Every way in which the CPU walks its kernels, at odd sizes and over memory of any alignment, against the
reference: each operator family, streamed or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest

from opendml import Device, TensorDesc
from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Access, KernelProgram
from opendml.operators.softmax import softmax1
from opendml.program import functions
from opendml.program.node import Node, Operation, convert, rebuild, source
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import executable
from opendml.targets.cpu.machine import assumed, machine
from opendml.targets.cpu.pattern import Mode, Pattern
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
    reductions,
    scans,
    searches,
    softmaxes,
    walked,
)

SPLIT_ROWS = {Mode.ROWS_PARTIAL, Mode.ROWS_COMBINE}
SPLIT_COLUMNS = {Mode.COLUMNS_PARTIAL, Mode.COLUMNS_COMBINE}
PLACING = {
    Mode.SCATTER,
    Mode.SCATTER_COLUMNS,
    Mode.SCATTER_TILES,
    Mode.SCATTER_STRIPS,
    Mode.POSITIONS_CHUNKS,
    Mode.POSITIONS,
    Mode.TOP,
    Mode.TOP_CHUNKS,
    Mode.TOP_MERGE,
}
"""What tests of placings walk, as those of contractions walk theirs."""


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("walk", WALKS, ids=str)
@pytest.mark.parametrize("family", [images, reductions, searches], ids=lambda family: family.__name__)
def test_every_walk_over_memory_of_any_alignment_equals_the_reference(family: Family, walk: Walk) -> None:
    device = Device("cpu")
    for desc in walked(family, walk):
        check(desc, device)


STORING = {
    Mode.TRANSPOSED,
    Mode.POINTWISE,
    Mode.ROWS,
    Mode.ROWS_MAP,
    Mode.COLUMNS,
    Mode.COLUMNS_MAP,
    Mode.SCAN_COLUMNS,
    Mode.SCAN_COLUMNS_MAP,
}
SIDE_BY_SIDE = {mode for mode in Mode if mode.columns} - PLACING
CHOICES: dict[str, tuple[Callable[[Pattern], object], set[Mode]]] = {
    "streamed": (lambda pattern: any(store.streamed for store in pattern.stores), STORING),
    "stashes": (lambda pattern: pattern.stashes, {Mode.ROWS, Mode.COLUMNS}),
    "streamed and stashes": (
        lambda pattern: pattern.stashes and any(store.streamed for store in pattern.stores),
        {Mode.ROWS, Mode.COLUMNS},
    ),
    "wide tile": (lambda pattern: pattern.wide_tile, SIDE_BY_SIDE - {Mode.COLUMNS_MAP}),
    "whole rows": (lambda pattern: pattern.whole_rows, {Mode.COLUMNS, *SPLIT_COLUMNS}),
    "long rows": (lambda pattern: pattern.long_rows, {Mode.ROWS, Mode.ROWS_PARTIAL}),
    "out of order": (lambda pattern: not pattern.in_order, {Mode.ROWS}),
    "later stage": (lambda pattern: pattern.stage > 0, {*SPLIT_ROWS, *SPLIT_COLUMNS}),
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
    walked_elsewhere = {mode for mode in Mode if mode.name.startswith("CONTRACTION")} | PLACING
    walked_elsewhere |= {Mode.SHARED_ROWS, Mode.SHORT_ROWS}
    assert {pattern.mode for pattern in patterns} == set(Mode) - walked_elsewhere
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
def test_kernels_with_several_stores_write_all_of_them_at_any_place(
    walk: Walk, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = packed(ScalarType.FLOAT32, walk.sizes)
    x = np.random.default_rng(1).standard_normal(walk.sizes).astype(np.float32)
    for results in two_results(walk, source(0, layout.type, layout.sizes)):
        outputs = tuple(packed(result.type, result.sizes) for result in results)
        program = Program((layout,), outputs, results)
        wanted = evaluate(results, [x])
        with monkeypatch.context() as patch:
            patch.setattr(executable, "fuse", lambda given, *_, **__: with_all_stores(fuse(given)))
            instance = executable.CpuExecutable(program).instantiate()
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
