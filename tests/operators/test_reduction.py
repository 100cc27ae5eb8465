"""Reductions, running sums and softmax against NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT16, FLOAT32, INT32, UINT32, Device, TensorDataType, TensorDesc, descs
from opendml.compiler.fuse import fuse
from opendml.runtime.memory.host_array import Array
from opendml.spec.descs import desc_class
from opendml.spec.enums import AxisDirection, ReduceFunction
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from opendml.targets.cpu.engine import kernel_assembly
from opendml.targets.cpu.pattern import CpuMode
from tests.pairwise import pairwise
from tests.running import FLOATS, laid_out, launches, numpy_type, run, same_bits
from tests.tolerances import assert_within
from tools.terms import of_log_softmax, of_reduction, of_softmax

INCREASING, DECREASING = AxisDirection.INCREASING, AxisDirection.DECREASING
SEARCHES = (ReduceFunction.ARGMIN, ReduceFunction.ARGMAX)
COVERING = (ReduceFunction.SUM, ReduceFunction.MIN, ReduceFunction.LOG_SUM_EXP, ReduceFunction.ARGMAX)
"""One function for each way of accumulating, and one that takes two passes."""

ALL_TYPES = [
    (function, TensorDataType[type])
    for function in ReduceFunction
    for type in next(
        table for table in operator("REDUCE").support if function.name in (table.functions or ())
    )
    .tensors["InputTensor"]
    .types
]
"""Every function with every type that the newest level allows."""

# The sizes are such that they lead to these modes whatever the size of the caches.
WALKS: list[tuple[list[int], list[int], set[CpuMode]]] = [
    ([1], [0], {CpuMode.POINTWISE}),
    ([7], [0], {CpuMode.ROWS}),
    ([100, 3], [1], {CpuMode.ROWS}),
    ([33, 65], [1], {CpuMode.ROWS}),
    ([3, 4, 5, 6], [1, 3], {CpuMode.ROWS}),
    ([2, 70, 7, 9], [0, 2, 3], {CpuMode.ROWS}),
    ([70001], [0], {CpuMode.ROWS_PARTIAL, CpuMode.ROWS_COMBINE}),
    ([3, 70001], [1], {CpuMode.ROWS_PARTIAL, CpuMode.ROWS_COMBINE}),
    ([9, 50], [0], {CpuMode.COLUMNS}),
    ([4, 9, 50], [1], {CpuMode.COLUMNS}),
    ([3, 11, 1037], [1], {CpuMode.COLUMNS_PARTIAL, CpuMode.COLUMNS_COMBINE}),
    ([5001, 37], [0], {CpuMode.COLUMNS_PARTIAL, CpuMode.COLUMNS_COMBINE}),
    ([40, 2500], [0], {CpuMode.COLUMNS_PARTIAL, CpuMode.COLUMNS_COMBINE}),
    ([200, 5, 700], [1], {CpuMode.COLUMNS}),
    ([50, 3, 90, 20], [0, 2], {CpuMode.COLUMNS_PARTIAL, CpuMode.COLUMNS_COMBINE}),
]


def reduce_desc(
    function: ReduceFunction,
    data_type: TensorDataType,
    sizes: Sequence[int],
    axes: Sequence[int],
    strides: Sequence[int] | None = None,
) -> OperatorDesc:
    output = TensorDesc(
        UINT32 if function in SEARCHES else data_type,
        [1 if axis in axes else size for axis, size in enumerate(sizes)],
    )
    return descs.Reduce(TensorDesc(data_type, sizes, strides), output, function=function, axes=axes)


def values(data_type: TensorDataType, sizes: Sequence[int], seed: int = 0) -> Array:
    """Random numbers with equal ones among them; integers of the whole range."""
    random = np.random.default_rng(seed)
    type = numpy_type(TensorDesc(data_type, [1]))
    if type.kind == "f":
        return (random.integers(-40, 41, sizes) / 8).astype(type)
    return random.integers(np.iinfo(type).min, np.iinfo(type).max, sizes, type, endpoint=True)


def expected(function: ReduceFunction, x: Array, axes: Sequence[int]) -> Array:
    """By NumPy: floats in float64, integers in their own type."""
    dims = tuple(axes)
    wide: Array = x.astype(np.float64) if x.dtype.kind == "f" else x
    type: Any = wide.dtype
    with np.errstate(all="ignore"):
        match function:
            case ReduceFunction.ARGMIN | ReduceFunction.ARGMAX:
                return searched(wide, dims, function is ReduceFunction.ARGMAX, last=False)
            case ReduceFunction.AVERAGE:
                result = wide.mean(axis=dims, keepdims=True)
            case ReduceFunction.L1:
                result = np.abs(wide).sum(axis=dims, keepdims=True, dtype=type)
            case ReduceFunction.L2:
                result = np.sqrt(np.square(wide).sum(axis=dims, keepdims=True))
            case ReduceFunction.LOG_SUM:
                result = np.log(wide.sum(axis=dims, keepdims=True))
            case ReduceFunction.LOG_SUM_EXP:
                result = np.logaddexp.reduce(wide, axis=dims, keepdims=True)
            case ReduceFunction.MAX:
                result = wide.max(axis=dims, keepdims=True)
            case ReduceFunction.MIN:
                result = wide.min(axis=dims, keepdims=True)
            case ReduceFunction.MULTIPLY:
                result = wide.prod(axis=dims, keepdims=True, dtype=type)
            case ReduceFunction.SUM:
                result = wide.sum(axis=dims, keepdims=True, dtype=type)
            case ReduceFunction.SUM_SQUARE:
                result = np.square(wide).sum(axis=dims, keepdims=True, dtype=type)
        return np.asarray(result)


def searched(x: Array, axes: tuple[int, ...], greatest: bool, last: bool) -> Array:
    """Row-major indices over the axes of the first or last extreme element, by looking at all of them."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    rows = x.transpose(*kept, *sorted(axes)).reshape(*(x.shape[axis] for axis in kept), -1)
    extreme = (rows.max if greatest else rows.min)(axis=-1, keepdims=True)
    found = (rows == extreme) | (np.isnan(rows) if x.dtype.kind == "f" else False)
    index = found.shape[-1] - 1 - found[..., ::-1].argmax(-1) if last else found.argmax(-1)
    return np.expand_dims(index, tuple(sorted(axes))).astype(np.uint32)


def assert_reduced(result: Array, wanted: Array, function: ReduceFunction) -> None:
    """Integers are exact."""
    assert_within("REDUCE", result, wanted, of_reduction(function, wanted))


@pytest.mark.parametrize(("function", "data_type"), ALL_TYPES, ids=lambda each: each.name)
@pytest.mark.parametrize("where", ["cpu", "reference"])
def test_all_functions_and_types(function: ReduceFunction, data_type: TensorDataType, where: str) -> None:
    for sizes, axes in (([6, 5, 37], [2]), ([6, 5, 37], [0])):
        x = values(data_type, sizes)
        result = run(reduce_desc(function, data_type, sizes, axes), [x], where)
        assert_reduced(result, expected(function, x, axes), function)


def id_of(value: object) -> str | None:
    """Return the id of a value. The order of a set differs between processes."""
    return None if isinstance(value, set) else str(value)


@pytest.mark.parametrize(("sizes", "axes", "modes"), WALKS, ids=id_of)
def test_every_walk(sizes: list[int], axes: list[int], modes: set[CpuMode], device: Device) -> None:
    sums = reduce_desc(ReduceFunction.SUM, FLOAT32, sizes, axes)
    assert {launch.pattern.mode for launch in launches(sums)} == modes
    cases = [(each, FLOAT32) for each in COVERING] + [(ReduceFunction.SUM, FLOAT16)]
    for function, data_type in cases:
        x = values(data_type, sizes)
        result = run(reduce_desc(function, data_type, sizes, axes), [x], device)
        assert_reduced(result, expected(function, x, axes), function)


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257, 300])
def test_sizes_around_vectors(size: int, device: Device) -> None:
    for sizes, axes in (([3, size], [1]), ([size, 3], [0]), ([3, size], [0])):
        x = values(FLOAT32, sizes)
        for function in (
            ReduceFunction.SUM,
            ReduceFunction.MIN,
            ReduceFunction.ARGMIN,
            ReduceFunction.ARGMAX,
        ):
            result = run(reduce_desc(function, FLOAT32, sizes, axes), [x], device)
            assert_reduced(result, expected(function, x, axes), function)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]], ids=str)
@pytest.mark.parametrize("axes", [[0], [1], [2], [0, 2], [1, 2], [0, 1, 2]], ids=str)
def test_strides_change_nothing(order: list[int], axes: list[int], device: Device) -> None:
    sizes, strides, step = [5, 19, 40], [0, 0, 0], 1
    for axis in reversed(order):
        strides[axis], step = step, step * sizes[axis]
    x = values(FLOAT32, sizes)
    for function in (ReduceFunction.SUM, ReduceFunction.MAX, ReduceFunction.ARGMAX, ReduceFunction.ARGMIN):
        desc = reduce_desc(function, FLOAT32, sizes, axes, strides)
        result = run(desc, [laid_out(x, desc.input_tensor)], device)
        assert_reduced(result, expected(function, x, axes), function)


@pairwise(
    name=["argmin", "argmax"],
    direction=[INCREASING, DECREASING],
    data_type=["FLOAT32", "FLOAT16", "INT8", "UINT8", "INT64", "UINT64"],
)
def test_search_takes_the_first_or_the_last_of_equal_elements(
    name: str, direction: AxisDirection, data_type: str, device: Device
) -> None:
    for sizes, axes in (([300, 7], [0]), ([7, 300], [1]), ([4, 30, 9], [0, 2]), ([90_000], [0])):
        x = (values(TensorDataType[data_type], sizes) % 5).astype(data_type.lower())
        result = getattr(dml, name)(x, axes=axes, axis_direction=direction, device=device)
        wanted = searched(x, tuple(axes), name == "argmax", direction is DECREASING)
        np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("output_type", ["UINT32", "UINT64", "INT32", "INT64"])
def test_indices_come_in_any_type_of_the_table(output_type: str) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    result = dml.argmax(x, axes=[0, 1], output_type=TensorDataType[output_type])
    assert result.dtype == output_type.lower()
    assert result.tolist() == [[11]]
    out = np.zeros((1, 1), output_type.lower())
    assert dml.reduce(x, function=ReduceFunction.ARGMAX, axes=[0, 1], out=out) is out
    assert out.tolist() == [[11]]


@pytest.mark.parametrize(
    ("sizes", "axes"), [([40], [0]), ([3, 300], [1]), ([300, 3], [0]), ([80_000], [0])], ids=str
)
def test_not_a_number_comes_first_in_searches(sizes: list[int], axes: list[int], device: Device) -> None:
    x = values(FLOAT32, sizes)
    middle, last = np.array(sizes) // 2, np.array(sizes) - 1
    x[tuple(middle)] = -math.nan
    x[tuple(last)] = math.nan
    for function in set(ReduceFunction) - set(SEARCHES):
        result = run(reduce_desc(function, FLOAT32, sizes, axes), [x], device)
        np.testing.assert_array_equal(np.isnan(result), np.isnan(expected(function, x, axes)))
        assert np.isnan(result).any()
    for function in SEARCHES:
        for direction in (INCREASING, DECREASING):
            search = descs.Argmin if function is ReduceFunction.ARGMIN else descs.Argmax
            reduced = reduce_desc(function, FLOAT32, sizes, axes)
            desc = search(reduced.input_tensor, reduced.output_tensor, axes=axes, axis_direction=direction)
            np.testing.assert_array_equal(
                run(desc, [x], device),
                searched(x, tuple(axes), function is ReduceFunction.ARGMAX, direction is DECREASING),
            )


@pytest.mark.parametrize("extreme", [math.inf, -math.inf])
def test_groups_of_infinities(extreme: float, device: Device) -> None:
    x = np.full((3, 70), extreme, np.float32)
    for function in ReduceFunction:
        result = run(reduce_desc(function, FLOAT32, x.shape, [1]), [x], device)
        np.testing.assert_array_equal(result, expected(function, x, [1]))


def test_signs_of_zeros_do_not_decide_a_search(device: Device) -> None:
    x = np.array([[0.0, -0.0, 0.0], [-0.0, 0.0, -0.0]], np.float32)
    for function in SEARCHES:
        assert run(reduce_desc(function, FLOAT32, x.shape, [1]), [x], device).ravel().tolist() == [0, 0]


def test_float_sums_are_rounded_once(device: Device) -> None:
    x = np.random.default_rng(1).standard_normal(3_000_000, np.float32)
    result = run(reduce_desc(ReduceFunction.SUM, FLOAT32, x.shape, [0]), [x], device)
    assert result[0] == np.float32(math.fsum(x))
    halves = np.full(200_000, 0.1, np.float16)
    average = run(reduce_desc(ReduceFunction.AVERAGE, FLOAT16, halves.shape, [0]), [halves], device)
    assert average[0] == np.float16(0.1)


def test_intermediate_results_do_not_overflow(device: Device) -> None:
    far = np.array([1e30, 1e30, 1e-30, 1e-30], np.float32)
    for function, x in (
        (ReduceFunction.MULTIPLY, far),
        (ReduceFunction.L2, far),
        (ReduceFunction.LOG_SUM, np.full(100, 3e38, np.float32)),
        (ReduceFunction.LOG_SUM_EXP, np.full(100, 1e4, np.float32)),
    ):
        result = run(reduce_desc(function, FLOAT32, x.shape, [0]), [x], device)
        assert_reduced(result, expected(function, x, [0]), function)


def test_reductions_in_a_graph() -> None:
    graph = dml.Graph()
    x = graph.input("x", FLOAT32, [4, 50, 6])
    rows = dml.reduce(x, function=ReduceFunction.SUM, axes=[1])
    model = graph.compile(
        {
            "all": dml.reduce(rows, function=ReduceFunction.MAX, axes=[0, 2]),
            "where": dml.argmin(dml.activation_relu(x), axes=[1]),
            "rows": dml.activation_tanh(rows),
        }
    )
    values_ = np.random.default_rng(5).standard_normal((4, 50, 6), np.float32)
    result = model(x=values_)
    sums = values_.sum(1, keepdims=True, dtype=np.float64)
    np.testing.assert_allclose(result["all"], sums.max((0, 2), keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(result["rows"], np.tanh(sums), rtol=1e-6)
    np.testing.assert_array_equal(result["where"], np.maximum(values_, 0).argmin(1, keepdims=True))
    assert result["where"].dtype == np.uint32


SUM, PRODUCT = "CUMULATIVE_SUMMATION", "CUMULATIVE_PRODUCT"
EXCLUSIVE = {SUM: "has_exclusive_sum", PRODUCT: "has_exclusive_product"}
TYPES = [TensorDataType[type] for type in operator(SUM).support[0].tensors["InputTensor"].types]
WALKS_RUNNING: list[tuple[list[int], int, set[CpuMode]]] = [
    ([1], 0, {CpuMode.POINTWISE}),
    ([7], 0, {CpuMode.SCAN_ROWS}),
    ([5, 16], 1, {CpuMode.SCAN_ROWS}),
    ([40, 1000], 1, {CpuMode.SCAN_ROWS}),
    ([3, 70001], 1, {CpuMode.ROWS_PARTIAL, CpuMode.SCAN_ROWS_COMBINE, CpuMode.SCAN_ROWS_MAP}),
    ([9, 50], 0, {CpuMode.SCAN_COLUMNS}),
    ([4, 9, 50], 1, {CpuMode.SCAN_COLUMNS}),
    ([20, 5, 700], 1, {CpuMode.SCAN_COLUMNS}),
    ([200, 2500], 0, {CpuMode.COLUMNS_PARTIAL, CpuMode.SCAN_COLUMNS_COMBINE, CpuMode.SCAN_COLUMNS_MAP}),
    ([5001, 37], 0, {CpuMode.COLUMNS_PARTIAL, CpuMode.SCAN_COLUMNS_COMBINE, CpuMode.SCAN_COLUMNS_MAP}),
]
WAYS = list(product((False, True), (INCREASING, DECREASING)))
every_way = pytest.mark.parametrize(("exclusive", "direction"), WAYS, ids=str)


def desc_of(
    name: str,
    data_type: TensorDataType,
    sizes: list[int],
    axis: int,
    exclusive: bool = False,
    direction: AxisDirection = INCREASING,
) -> OperatorDesc:
    tensor = TensorDesc(data_type, sizes)
    attributes: dict[str, Any] = {"axis": axis, "axis_direction": direction, EXCLUSIVE[name]: exclusive}
    return desc_class(name)(tensor, tensor, **attributes)


def values_running(name: str, data_type: TensorDataType, sizes: list[int]) -> Array:
    type = numpy_type(TensorDesc(data_type, [1]))
    random = np.random.default_rng(1)
    if type.kind != "f":
        return random.integers(np.iinfo(type).min, np.iinfo(type).max, sizes, type, endpoint=True)
    deviation = 1.0 if name == SUM else 0.01
    return (random.standard_normal(sizes) * deviation + (name == PRODUCT)).astype(type)


def expected_running(name: str, x: Array, axis: int, exclusive: bool, direction: AxisDirection) -> Array:
    """Floats in float64; integers in their own type."""
    wide: Array = x.astype(np.float64) if x.dtype.kind == "f" else x
    down = direction is DECREASING
    line = np.flip(wide, axis) if down else wide
    result: Array = (np.cumsum if name == SUM else np.cumprod)(line, axis, dtype=wide.dtype)
    if exclusive:
        first = np.full_like(np.take(result, [0], axis), name == PRODUCT)
        result = np.concatenate([first, np.delete(result, -1, axis)], axis)
    return np.flip(result, axis) if down else result


@pairwise(walk=range(len(WALKS_RUNNING)), way=WAYS, name=[SUM, PRODUCT])
def test_every_walk_and_way(walk: int, way: tuple[bool, AxisDirection], name: str, device: Device) -> None:
    (sizes, axis, modes), (exclusive, direction) = WALKS_RUNNING[walk], way
    for data_type in (FLOAT32, INT32) if name == SUM else (FLOAT32,):
        desc = desc_of(name, data_type, sizes, axis, exclusive, direction)
        if exclusive is False:
            assert {launch.pattern.mode for launch in launches(desc)} == modes
        x = values_running(name, data_type, sizes)
        assert_within(name, run(desc, [x], device), expected_running(name, x, axis, exclusive, direction))


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("name", [SUM, PRODUCT])
@pytest.mark.parametrize("where", ["cpu", "reference"])
def test_every_type_of_the_table(name: str, data_type: TensorDataType, where: str) -> None:
    for sizes, axis in (([3, 77], 1), ([77, 3], 0)):
        x = values_running(name, data_type, sizes)
        result = run(desc_of(name, data_type, sizes, axis), [x], where)
        assert_within(name, result, expected_running(name, x, axis, False, INCREASING))


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 31, 32, 33, 64, 65])
@every_way
def test_sizes_around_vectors_of_running(
    size: int, exclusive: bool, direction: AxisDirection, device: Device
) -> None:
    for sizes, axis in (([3, size], 1), ([size, 3], 0), ([3, size], 0)):
        x = values_running(SUM, FLOAT32, sizes)
        result = run(desc_of(SUM, FLOAT32, sizes, axis, exclusive, direction), [x], device)
        assert_within(SUM, result, expected_running(SUM, x, axis, exclusive, direction))


@pytest.mark.parametrize(
    ("sizes", "axis"), [([5, 300], 1), ([300, 5], 0), ([100_000], 0), ([9000, 20], 0)], ids=str
)
def test_in_place_equals_out_of_place(sizes: list[int], axis: int, device: Device) -> None:
    x = values_running(SUM, FLOAT32, sizes)
    apart = dml.cumulative_summation(x, axis=axis, device=device)
    same = x.copy()
    assert dml.cumulative_summation(same, axis=axis, out=same, device=device) is same
    assert same_bits(same, apart)


@pytest.mark.parametrize(("sizes", "axis"), [([3, 100], 1), ([100, 3], 0), ([70_000], 0)], ids=str)
def test_not_a_number_stays_from_where_it_is(sizes: list[int], axis: int, device: Device) -> None:
    x = values_running(SUM, FLOAT32, sizes)
    at = tuple(size // 2 for size in sizes)
    for special in (math.nan, math.inf):
        x[at] = special
        for exclusive in (False, True):
            result = run(desc_of(SUM, FLOAT32, sizes, axis, exclusive), [x], device)
            assert_within(SUM, result, expected_running(SUM, x, axis, exclusive, INCREASING))


def test_large_outputs_bypass_the_caches_and_are_exact(device: Device) -> None:
    sizes = [5, 2_000_003]
    x = values_running(SUM, FLOAT32, sizes)
    for direction in (INCREASING, DECREASING):
        result = run(desc_of(SUM, FLOAT32, sizes, 1, True, direction), [x], device)
        assert_within(SUM, result, expected_running(SUM, x, 1, True, direction))


def test_sums_in_a_graph_may_be_computed_on() -> None:
    x = values_running(SUM, FLOAT16, [6, 80])
    graph = dml.Graph()
    tensor = graph.input("x", FLOAT16, x.shape)
    running = dml.cumulative_summation(dml.activation_relu(tensor), axis=1)
    twice = dml.cumulative_summation(running, axis=0)
    model = graph.compile({"tanh": dml.activation_tanh(running), "twice": twice})
    result = model(x=x)
    once = np.cumsum(np.maximum(x.astype(np.float64), 0), 1)
    np.testing.assert_allclose(result["tanh"], np.tanh(once), rtol=2e-3)
    np.testing.assert_allclose(result["twice"], np.cumsum(once, 0), rtol=2e-3)


NAMES = ("ACTIVATION_SOFTMAX1", "ACTIVATION_LOG_SOFTMAX1", "ACTIVATION_HARDMAX1")
SPLIT_ROWS = {CpuMode.ROWS_PARTIAL, CpuMode.ROWS_COMBINE, CpuMode.ROWS_MAP}
SPLIT_COLUMNS = {CpuMode.COLUMNS_PARTIAL, CpuMode.COLUMNS_COMBINE, CpuMode.COLUMNS_MAP}
WALKS_SOFTMAX: list[tuple[list[int], list[int], set[CpuMode]]] = [
    ([3, 1], [1], {CpuMode.POINTWISE}),
    ([100, 3], [1], {CpuMode.ROWS}),
    ([40, 1000], [1], {CpuMode.ROWS}),
    ([2, 70, 7, 9], [0, 2, 3], {CpuMode.ROWS}),
    ([3, 70001], [1], SPLIT_ROWS),
    ([9, 50], [0], {CpuMode.COLUMNS}),
    ([4, 9, 50], [1], {CpuMode.COLUMNS}),
    ([5001, 37], [0], SPLIT_COLUMNS),
]


@pytest.mark.parametrize(("name", "asks"), [("ACTIVATION_SOFTMAX1", True), ("ACTIVATION_HARDMAX1", False)])
def test_the_next_rows_are_asked_for_while_exponentials_are_computed(name: str, asks: bool) -> None:
    (launch,) = launches(desc_of_softmax(name, FLOAT32, [40, 1024], [1]))
    assert ("llvm.prefetch" in kernel_assembly(launch.pattern)) == asks


def desc_of_softmax(name: str, data_type: TensorDataType, sizes: list[int], axes: list[int]) -> OperatorDesc:
    tensor = TensorDesc(data_type, sizes)
    return desc_class(name)(tensor, tensor, axes=axes)


def expected_softmax(name: str, x: Array, axes: list[int]) -> Array:
    """In float64."""
    dims, wide = tuple(axes), x.astype(np.float64)
    with np.errstate(all="ignore"):
        shifted = wide - wide.max(dims, keepdims=True)
        total = np.exp(shifted).sum(dims, keepdims=True)
        if name == "ACTIVATION_SOFTMAX1":
            return np.asarray(np.exp(shifted) / total)
        if name == "ACTIVATION_LOG_SOFTMAX1":
            return np.asarray(shifted - np.log(total))
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    order = (*kept, *sorted(axes))
    rows = wide.transpose(order).reshape(*(x.shape[axis] for axis in kept), -1)
    result = np.zeros_like(rows)
    np.put_along_axis(result, rows.argmax(-1)[..., None], 1.0, -1)
    return result.reshape([x.shape[axis] for axis in order]).transpose(np.argsort(order))


def assert_close(name: str, result: Array, x: Array, axes: list[int]) -> None:
    wanted = expected_softmax(name, x, axes)
    if name == "ACTIVATION_HARDMAX1":
        np.testing.assert_array_equal(result, wanted)
    elif name == "ACTIVATION_LOG_SOFTMAX1":
        assert_within(name, result, wanted, of_log_softmax(x, axes))
    else:
        assert_within(name, result, wanted, of_softmax(x, axes, wanted))


@pytest.mark.parametrize(("sizes", "axes", "modes"), WALKS_SOFTMAX, ids=id_of)
@pytest.mark.parametrize("name", NAMES)
def test_walks_are_exact(
    name: str, sizes: list[int], axes: list[int], modes: set[CpuMode], device: Device
) -> None:
    for data_type in FLOATS:
        desc = desc_of_softmax(name, data_type, sizes, axes)
        if data_type is FLOAT32:
            assert {launch.pattern.mode for launch in launches(desc)} == modes
        x = (np.random.default_rng(1).standard_normal(sizes) * 5).astype(numpy_type(desc.input_tensor))
        assert_close(name, run(desc, [x], device), x, axes)
        assert_close(name, run(desc, [x], "reference"), x, axes)


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 33, 65, 255, 256, 300])
@pytest.mark.parametrize("name", NAMES)
def test_sizes_around_vectors_of_softmax(name: str, size: int, device: Device) -> None:
    for sizes, axes in (([3, size], [1]), ([size, 3], [0])):
        x = np.random.default_rng(size).standard_normal(sizes, np.float32)
        assert_close(name, run(desc_of_softmax(name, FLOAT32, sizes, axes), [x], device), x, axes)


@pytest.mark.parametrize("name", ["ACTIVATION_SOFTMAX", "ACTIVATION_LOG_SOFTMAX", "ACTIVATION_HARDMAX"])
def test_the_older_form_is_the_newer_one_over_the_last_dimension(name: str, device: Device) -> None:
    x = np.random.default_rng(6).standard_normal((1, 1, 5, 33), np.float32)
    older, newer = (getattr(dml, f"{name.lower()}{suffix}") for suffix in ("", "1"))
    assert same_bits(older(x, device=device), newer(x, axes=[3], device=device))


def test_large_elements_do_not_overflow(device: Device) -> None:
    x = np.array([[1e4, 1e4, -1e4], [3e38, -3e38, 0.0]], np.float32)
    assert dml.activation_softmax1(x, axes=[1], device=device).tolist() == [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]
    half = np.full((1, 3000), 60000.0, np.float16)
    assert_close("ACTIVATION_SOFTMAX1", dml.activation_softmax1(half, axes=[1], device=device), half, [1])


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("device_kind", ["cpu", "reference"])
def test_what_is_not_finite_is_treated_as_in_pytorch(special: float, device_kind: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = np.array([[1.0, special, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0], [special] * 4], np.float32)
    wide = torch.from_numpy(x).double()
    wanted = torch.nn.functional.softmax(wide, dim=1).numpy()
    result = dml.activation_softmax1(x, axes=[1], device=device_kind)
    assert_within("ACTIVATION_SOFTMAX1", result, wanted, of_softmax(x, [1], wanted))
    wanted = torch.nn.functional.log_softmax(wide, dim=1).numpy()
    result = dml.activation_log_softmax1(x, axes=[1], device=device_kind)
    assert_within("ACTIVATION_LOG_SOFTMAX1", result, wanted, of_log_softmax(x, [1]))


def test_hardmax_takes_the_first_greatest_element_and_not_a_number_before_all(device: Device) -> None:
    x = np.array([[1, 3, 3, 2], [math.nan, 9, 9, math.nan], [-math.inf] * 4], np.float32)
    result = dml.activation_hardmax1(x, axes=[1], device=device)
    assert result.tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]


def test_softmax_of_a_normalization_is_one_kernel() -> None:
    x = np.random.default_rng(7).standard_normal((30, 64), np.float32)
    graph = dml.Graph()
    tensor = graph.input("x", FLOAT32, x.shape)
    normalized = dml.mean_variance_normalization1(tensor, axes=[1])
    model = graph.compile({"y": dml.activation_softmax1(normalized, axes=[1])})
    assert len(fuse(model._program).kernels) == 1
    separate = dml.activation_softmax1(dml.mean_variance_normalization1(x, axes=[1]), axes=[1])
    np.testing.assert_allclose(model(x=x)["y"], separate, rtol=2e-6)


def test_float16_is_rounded_once(device: Device) -> None:
    x = np.random.default_rng(9).standard_normal((50, 40)).astype(np.float16)
    tensor = TensorDesc(FLOAT16, x.shape)
    result = run(descs.ActivationSoftmax1(tensor, tensor, axes=[1]), [x], device)
    assert_close("ACTIVATION_SOFTMAX1", result, x, [1])


THREADED = [
    *(
        reduce_desc(function, FLOAT32, sizes, axes)
        for function in (ReduceFunction.SUM, ReduceFunction.LOG_SUM_EXP, ReduceFunction.ARGMAX)
        for sizes, axes, _ in WALKS
    ),
    *(desc_of(SUM, FLOAT32, sizes, axis) for sizes, axis, _ in WALKS_RUNNING),
    *(desc_of_softmax("ACTIVATION_SOFTMAX1", FLOAT32, sizes, axes) for sizes, axes, _ in WALKS_SOFTMAX),
]


@pytest.mark.parametrize("number", range(len(THREADED)))
def test_thread_counts_change_no_bit(number: int) -> None:
    desc: Any = THREADED[number]
    x = np.random.default_rng(3).standard_normal(desc.input_tensor.sizes, np.float32)
    results = [run(desc, [x], Device("cpu", threads=threads)) for threads in (1, 2, 3)]
    assert all(same_bits(result, results[0]) for result in results[1:])


STRIDED_SIZES = [6, 7, 40]
STRIDED = [
    *(
        desc_of(SUM, FLOAT32, STRIDED_SIZES, axis, False, direction)
        for axis in range(3)
        for direction in AxisDirection
    ),
    *(
        desc_of_softmax(name, FLOAT32, STRIDED_SIZES, axes)
        for name in NAMES
        for axes in ([0], [2], [0, 1], [0, 2])
    ),
]


@pytest.mark.parametrize("number", range(len(STRIDED)))
def test_strides_of_running_sums_and_softmax_change_nothing(number: int, device: Device) -> None:
    desc, x = STRIDED[number], np.random.default_rng(4).standard_normal(STRIDED_SIZES, np.float32)
    permuted, padded = (TensorDesc(FLOAT32, STRIDED_SIZES, each) for each in ([1, 6, 42], [301, 43, 1]))
    strided = desc.replace(input_tensor=permuted, output_tensor=padded)
    result = run(strided, [laid_out(x, permuted)], device)
    np.testing.assert_allclose(result, run(desc, [x], "reference"), rtol=1e-6, atol=1e-6)
