"""Every way in which the CPU walks its kernels, at odd sizes and over memory of any alignment, against the
reference: each operator family, streamed or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from opendml import FLOAT16, FLOAT32, INT32, UINT8, Device, TensorDataType, TensorDesc, descs
from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Access, KernelProgram
from opendml.operators.softmax import softmax1
from opendml.program import functions
from opendml.program.node import Node, Operation, convert, rebuild, source
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.runtime.host_array import Array
from opendml.runtime.program import tensors_of
from opendml.spec.enums import AxisDirection, ReduceFunction
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import reach
from opendml.targets.cpu import executable, launch, schedule_groups
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.pattern import Mode, Pattern
from opendml.targets.reference.evaluate import evaluate
from tests.running import elements, launches, numpy_type, run

SMALL_CACHES = replace(machine(), l2_bytes=64 * 1024, last_cache_bytes=64 * 1024)
"""As if this machine had hardly any caches: results of some thousand elements are streamed past them then."""
SPLIT_ROWS = {Mode.ROWS_PARTIAL, Mode.ROWS_COMBINE}
SPLIT_COLUMNS = {Mode.COLUMNS_PARTIAL, Mode.COLUMNS_COMBINE}
GUARD = 0xA5
LINE = 64
REDUCED = [
    ReduceFunction.AVERAGE,
    ReduceFunction.L2,
    ReduceFunction.LOG_SUM_EXP,
    ReduceFunction.MAX,
    ReduceFunction.MULTIPLY,
]


@dataclass(frozen=True)
class Walk:
    """Sizes, the axes that are reduced (the first of them scanned) in them, and the strides of all tensors of
    these sizes."""

    sizes: tuple[int, ...]
    axes: tuple[int, ...]
    strides: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return f"{list(self.sizes)} over {list(self.axes)}{' strided' if self.strides else ''}"

    def tensor(self, data_type: TensorDataType) -> TensorDesc:
        """A tensor of these sizes."""
        return TensorDesc(data_type, self.sizes, self.strides)

    def reduced(self, data_type: TensorDataType) -> TensorDesc:
        """A tensor with one element for each group."""
        return TensorDesc(data_type, [1 if i in self.axes else size for i, size in enumerate(self.sizes)])


WALKS = [
    Walk((37, 1025), (1,)),
    Walk((131, 519), (1,), (600, 1)),
    Walk((19, 7, 11, 21), (0, 1, 3)),
    Walk((5, 33, 71), (1, 2), (33 * 71, 1, 33)),
    Walk((9, 40_003), (1,)),
    Walk((3, 301, 45), (1, 2), (301 * 48, 48, 1)),
    Walk((3, 20_003), (1,), (60_010, 3)),
    Walk((3, 9, 61, 777), (1, 3)),
    Walk((20, 9, 45), (1,)),
    Walk((15, 519), (0,)),
    Walk((7, 13, 2049), (1,)),
    Walk((140, 9, 601), (1,)),
    Walk((301, 523), (0,)),
    Walk((107, 2049), (0,), (2064, 1)),
    Walk((12_001, 3), (0,)),
]


def reductions(walk: Walk) -> Iterator[OperatorDesc]:
    for function in REDUCED:
        yield descs.Reduce(walk.tensor(FLOAT32), walk.reduced(FLOAT32), function=function, axes=walk.axes)
    for data_type in (FLOAT16, INT32):
        x, result = walk.tensor(data_type), walk.reduced(data_type)
        yield descs.Reduce(x, result, function=ReduceFunction.SUM, axes=walk.axes)


def searches(walk: Walk) -> Iterator[OperatorDesc]:
    output = walk.reduced(TensorDataType.INT64)
    for search in (descs.Argmin, descs.Argmax):
        for direction in AxisDirection:
            yield search(walk.tensor(FLOAT32), output, axes=walk.axes, axis_direction=direction)
    yield descs.Argmax(walk.tensor(UINT8), output, axes=walk.axes)


def softmaxes(walk: Walk) -> Iterator[OperatorDesc]:
    tensor, narrow = walk.tensor(FLOAT32), walk.tensor(FLOAT16)
    for activation in (descs.ActivationSoftmax1, descs.ActivationLogSoftmax1, descs.ActivationHardmax1):
        yield activation(tensor, tensor, axes=walk.axes)
    yield descs.ActivationSoftmax1(narrow, narrow, axes=walk.axes)


def normalizations(walk: Walk) -> Iterator[OperatorDesc]:
    for data_type in (FLOAT32, FLOAT16):
        tensor = walk.tensor(data_type)
        for parameter in (None, tensor, walk.reduced(data_type)) if data_type is FLOAT32 else (None,):
            sizes = parameter and parameter.sizes
            yield descs.MeanVarianceNormalization1(
                tensor,
                sizes and TensorDesc(data_type, sizes),
                sizes and TensorDesc(data_type, sizes),
                tensor,
                axes=walk.axes,
                normalize_variance=parameter is not tensor,
                fused_activation=descs.ActivationRelu(),
            )
    if len(walk.axes) == 1:
        (axis,) = walk.axes
        yield descs.LpNormalization(tensor, tensor, axis=axis, epsilon=1e-5, p=2)


def scans(walk: Walk) -> Iterator[OperatorDesc]:
    tensor = walk.tensor(FLOAT32)
    for direction, exclusive in product(AxisDirection, (False, True)):
        way: dict[str, Any] = {"axis": walk.axes[0], "axis_direction": direction}
        yield descs.CumulativeSummation(tensor, tensor, **way, has_exclusive_sum=exclusive)
        yield descs.CumulativeProduct(tensor, tensor, **way, has_exclusive_product=exclusive)
    for data_type in (FLOAT16, INT32):
        tensor = walk.tensor(data_type)
        yield descs.CumulativeSummation(tensor, tensor, axis=walk.axes[0], axis_direction=direction)


def images(walk: Walk) -> Iterator[OperatorDesc]:
    """Operators that are no walk over groups, over the same sizes: activations, operators of two tensors, and
    casts; transposed ones too."""
    x, scalar = walk.tensor(FLOAT32), TensorDesc(FLOAT32, walk.sizes, [0] * len(walk.sizes))
    backwards = [math.prod(walk.sizes[:axis]) for axis in range(len(walk.sizes))]
    across = TensorDesc(FLOAT32, walk.sizes, backwards)
    yield descs.ActivationTanh(x, x)
    yield descs.ActivationTanh(x, across)
    yield descs.ActivationTanh(across, x)
    for other in (x, across, scalar):
        yield descs.ElementWiseSubtract(x, other, x)
    for given, wanted in permutations((FLOAT32, FLOAT16, UINT8), 2):
        yield descs.Cast(walk.tensor(given), walk.tensor(wanted))


Family = Callable[[Walk], Iterator[OperatorDesc]]
FAMILIES: list[Family] = [images, reductions, searches, softmaxes, normalizations, scans]


def memory_at(offset: int, tensor: TensorDesc) -> tuple[Array, Array]:
    """Bytes that hold a tensor so many elements behind the start of a cache line, and the tensor's own."""
    size = reach(tensor.sizes, tensor.effective_strides) * numpy_type(tensor).itemsize
    raw = np.full(size + 6 * LINE, GUARD, np.uint8)
    first = -raw.ctypes.data % LINE + LINE + offset * numpy_type(tensor).itemsize
    return raw, raw[first : first + size].view(numpy_type(tensor))


def values_for(desc: OperatorDesc, tensor: TensorDesc, seed: int) -> Array:
    """Memory for an input whose running products, too, stay where they can be compared."""
    count = reach(tensor.sizes, tensor.effective_strides)
    type = numpy_type(tensor)
    random = np.random.default_rng(seed)
    if type.kind != "f":
        return random.integers(0, 120, count).astype(type)
    near_one = "PRODUCT" in desc.operator or getattr(desc, "function", None) is ReduceFunction.MULTIPLY
    product_deviation = 1 / math.sqrt(math.prod(tensor.sizes))
    values = random.standard_normal(count) * (product_deviation if near_one else 1.0)
    if near_one or getattr(desc, "function", None) is ReduceFunction.LOG_SUM:
        values = np.abs(values) if not near_one else values + 1.0
    return values.astype(type)


def check(desc: OperatorDesc, device: Device) -> None:
    """The operator over memory at all `places` equals the reference, with the same bits at each, and writes
    nothing beside its output's elements."""
    tensors = tensors_of(desc, "INPUT_TENSOR")
    values = [tensor and values_for(desc, tensor, seed) for seed, tensor in enumerate(tensors)]
    (output,) = tensors_of(desc, "OUTPUT_TENSOR")
    assert output is not None
    wanted = run(desc, values, "reference")
    compiled = device.compile_operator(device.create_operator(desc))
    first: Array | None = None
    for offsets in places(len([value for value in values if value is not None]) + 1):
        numbers = iter(offsets)
        inputs: list[Array | None] = []
        for tensor, value in zip(tensors, values, strict=True):
            memory = None if tensor is None else memory_at(next(numbers), tensor)[1]
            if memory is not None:
                memory[:] = value
            inputs.append(memory)
        raw, memory = memory_at(next(numbers), output)
        compiled.bind(inputs, [memory]).dispatch()
        result, bits = elements(memory, output), memory.view(f"u{memory.itemsize}")
        if first is None:
            assert_close(result, wanted, str(desc))
            first = bits.copy()
        assert (bits == first).all(), f"{desc} depends on where its tensors lie"
        elements(bits, output)[...] = int.from_bytes([GUARD] * memory.itemsize, "little")
        assert (raw == GUARD).all(), f"{desc} writes beside its output"


def assert_close(result: Array, wanted: Array, what: str) -> None:
    """Equal integers; floats but for the roundings of their parts."""
    if result.dtype.kind != "f":
        np.testing.assert_array_equal(result, wanted, what)
        return
    resolution = float(np.finfo(result.dtype).eps)
    scale = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
    np.testing.assert_allclose(result, wanted, rtol=8 * resolution, atol=2 * resolution * scale, err_msg=what)


def places(tensor_count: int) -> list[list[int]]:
    """Places of tensors behind cache lines: all at their start, each alone elsewhere, all elsewhere and
    apart."""
    alone = [[3 if each == other else 0 for each in range(tensor_count)] for other in range(tensor_count)]
    return [[0] * tensor_count, *alone, [5 * each + 1 for each in range(tensor_count)]]


@pytest.fixture
def small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_caches(monkeypatch)


def use_small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (launch, schedule_groups):
        monkeypatch.setattr(module, "machine", lambda: SMALL_CACHES)


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("walk", WALKS, ids=str)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_every_walk_over_memory_of_any_alignment_equals_the_reference(family: Family, walk: Walk) -> None:
    device = Device("cpu")
    for desc in family(walk):
        check(desc, device)


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("direction", AxisDirection)
@pytest.mark.parametrize("sizes", [(37, 1025), (3, 40_003)], ids=str)
def test_running_sums_that_cancel_do_not_depend_on_where_the_results_lie(
    sizes: tuple[int, ...], direction: AxisDirection
) -> None:
    tensor = TensorDesc(FLOAT32, sizes)
    desc = descs.CumulativeSummation(tensor, tensor, axis=1, axis_direction=direction)
    assert any(store.streamed for each in launches(desc) for store in each.pattern.stores)
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


STORING = {
    Mode.POINTWISE,
    Mode.ROWS,
    Mode.ROWS_MAP,
    Mode.COLUMNS,
    Mode.COLUMNS_MAP,
    Mode.SCAN_ROWS,
    Mode.SCAN_ROWS_MAP,
    Mode.SCAN_COLUMNS,
    Mode.SCAN_COLUMNS_MAP,
}
SIDE_BY_SIDE = {mode for mode in Mode if mode.columns}
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
def test_the_walks_above_take_every_schedule() -> None:
    patterns = [
        each.pattern
        for walk, family in product(WALKS, FAMILIES)
        for desc in family(walk)
        for each in launches(desc)
    ]
    assert {pattern.mode for pattern in patterns} == set(Mode)
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
    for kernel in program.kernels:
        before = len(loads)
        values += rebuild(kernel.values, partial(_renumbered, before=before))
        loads += kernel.loads
    stores = tuple(store for kernel in program.kernels for store in kernel.stores)
    merged = replace(first, loads=tuple(loads), stores=stores, values=tuple(values))
    return replace(program, kernels=(merged,))


def _renumbered(node: Node, before: int) -> Node:
    if node.operation is not Operation.SOURCE or not isinstance(node.attribute, int):
        return node
    return source(node.attribute + before, node.type, node.sizes)


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
            patch.setattr(executable, "fuse", lambda given: with_all_stores(fuse(given)))
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
def test_truly_large_tensors_equal_the_reference(
    family: Family, axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = replace(machine(), last_cache_bytes=16 * 1024 * 1024)
    for module in (launch, schedule_groups):
        monkeypatch.setattr(module, "machine", lambda: usual)
    descs = [next(family(Walk((2100, 2049), (axis,))))]
    if family is scans:
        descs = list(family(Walk((2100, 2049), (axis,))))[:2]
    for desc in descs:
        assert any(store.streamed for each in launches(desc) for store in each.pattern.stores)
        check(desc, Device("cpu"))
