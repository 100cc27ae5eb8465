"""REDUCE, ARGMIN and ARGMAX against NumPy: functions, types, axes, layouts, special values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT16, FLOAT32, UINT32, Device, TensorDataType, TensorDesc, descs
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import AxisDirection, ReduceFunction
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from opendml.targets.cpu.pattern import Mode
from tests.pairwise import pairwise
from tests.running import laid_out, launches, numpy_type, run, same_bits
from tests.tolerances import assert_within
from tools.terms import of_reduction

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
WALKS: list[tuple[list[int], list[int], set[Mode]]] = [
    ([1], [0], {Mode.POINTWISE}),
    ([7], [0], {Mode.ROWS}),
    ([100, 3], [1], {Mode.ROWS}),
    ([33, 65], [1], {Mode.ROWS}),
    ([3, 4, 5, 6], [1, 3], {Mode.ROWS}),
    ([2, 70, 7, 9], [0, 2, 3], {Mode.ROWS}),
    ([70001], [0], {Mode.ROWS_PARTIAL, Mode.ROWS_COMBINE}),
    ([3, 70001], [1], {Mode.ROWS_PARTIAL, Mode.ROWS_COMBINE}),
    ([9, 50], [0], {Mode.COLUMNS}),
    ([4, 9, 50], [1], {Mode.COLUMNS}),
    ([3, 11, 1037], [1], {Mode.COLUMNS_PARTIAL, Mode.COLUMNS_COMBINE}),
    ([5001, 37], [0], {Mode.COLUMNS_PARTIAL, Mode.COLUMNS_COMBINE}),
    ([40, 2500], [0], {Mode.COLUMNS_PARTIAL, Mode.COLUMNS_COMBINE}),
    ([200, 5, 700], [1], {Mode.COLUMNS}),
    ([50, 3, 90, 20], [0, 2], {Mode.COLUMNS_PARTIAL, Mode.COLUMNS_COMBINE}),
]
every_walk = pytest.mark.parametrize(("sizes", "axes", "modes"), WALKS, ids=[f"{s}-{a}" for s, a, _ in WALKS])


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
def test_every_function_and_type_of_the_table(
    function: ReduceFunction, data_type: TensorDataType, where: str
) -> None:
    for sizes, axes in (([6, 5, 37], [2]), ([6, 5, 37], [0])):
        x = values(data_type, sizes)
        result = run(reduce_desc(function, data_type, sizes, axes), [x], where)
        assert_reduced(result, expected(function, x, axes), function)


@every_walk
def test_every_walk(sizes: list[int], axes: list[int], modes: set[Mode], device: Device) -> None:
    sums = reduce_desc(ReduceFunction.SUM, FLOAT32, sizes, axes)
    assert {launch.pattern.mode for launch in launches(sums)} == modes
    cases = [(each, FLOAT32) for each in COVERING] + [(ReduceFunction.SUM, FLOAT16)]
    for function, data_type in cases:
        x = values(data_type, sizes)
        result = run(reduce_desc(function, data_type, sizes, axes), [x], device)
        assert_reduced(result, expected(function, x, axes), function)


@every_walk
def test_thread_counts_change_no_bit(sizes: list[int], axes: list[int], modes: set[Mode]) -> None:
    x = np.random.default_rng(3).standard_normal(sizes, np.float32)
    for function in (ReduceFunction.SUM, ReduceFunction.LOG_SUM_EXP, ReduceFunction.ARGMAX):
        desc = reduce_desc(function, FLOAT32, sizes, axes)
        results = [run(desc, [x], Device("cpu", threads=threads)) for threads in (1, 2, 3)]
        assert all(same_bits(result, results[0]) for result in results[1:])


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
def test_not_a_number_propagates_and_comes_first_in_searches(
    sizes: list[int], axes: list[int], device: Device
) -> None:
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


@pytest.mark.parametrize("name", ["REDUCE", "ARGMIN", "ARGMAX"])
def test_worked_examples_of_the_pages(name: str, device: Device) -> None:
    for example in operator(name).examples:
        x = np.array(example["inputs"]["InputTensor"], np.float32)
        wanted = np.array(example["outputs"]["OutputTensor"])
        attributes = example["attributes"]
        if name == "REDUCE":
            function = ReduceFunction[attributes["Function"].removeprefix("DML_REDUCE_FUNCTION_")]
            result = dml.reduce(x, function=function, axes=attributes["Axes"], device=device)
        else:
            result = getattr(dml, name.lower())(x, axes=attributes["Axes"], device=device)
        np.testing.assert_array_equal(result, wanted)


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


@pytest.mark.parametrize(
    ("function", "axes"),
    [
        (each, axes)
        for each in ReduceFunction
        for axes in ([1], [0, 3])
        if each not in SEARCHES or axes == [1]
    ],
    ids=str,
)
def test_onnx_reduces_alike(function: ReduceFunction, axes: list[int], device: Device) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    from onnx.reference import ReferenceEvaluator

    x = np.random.default_rng(8).standard_normal((3, 4, 5, 7), np.float32)
    search = function in SEARCHES
    names = {"AVERAGE": "ReduceMean", "MULTIPLY": "ReduceProd", "ARGMIN": "ArgMin", "ARGMAX": "ArgMax"}
    name = names.get(function.name, "Reduce" + "".join(word.title() for word in function.name.split("_")))
    if search:
        node = onnx.helper.make_node(name, ["x"], ["y"], axis=axes[0], keepdims=1)
    else:
        node = onnx.helper.make_node(name, ["x", "axes"], ["y"], keepdims=1)
    evaluator = ReferenceEvaluator(
        onnx.helper.make_model(
            onnx.helper.make_graph(
                [node],
                "reduction",
                [onnx.helper.make_tensor_value_info(each, 1, None) for each in node.input],
                [onnx.helper.make_tensor_value_info("y", 1, None)],
            )
        )
    )
    feeds = {"x": x} if search else {"x": x, "axes": np.array(axes)}
    with np.errstate(all="ignore"):
        (wanted,) = evaluator.run(None, feeds)
    result = dml.reduce(x, function=function, axes=axes, device=device)
    assert_within("REDUCE", result, wanted, peer=True)
