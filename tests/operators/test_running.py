"""CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT against NumPy and the pages' examples."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT16, FLOAT32, INT32, Device, TensorDataType, TensorDesc
from opendml.runtime.memory.host_array import Array
from opendml.spec.descs import desc_class
from opendml.spec.enums import AxisDirection
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from opendml.targets.cpu.pattern import Mode
from tests.pairwise import pairwise
from tests.running import laid_out, launches, numpy_type, run, same_bits
from tests.tolerances import assert_within

INCREASING, DECREASING = AxisDirection.INCREASING, AxisDirection.DECREASING
SUM, PRODUCT = "CUMULATIVE_SUMMATION", "CUMULATIVE_PRODUCT"
EXCLUSIVE = {SUM: "has_exclusive_sum", PRODUCT: "has_exclusive_product"}
TYPES = [TensorDataType[type] for type in operator(SUM).support[0].tensors["InputTensor"].types]
WALKS: list[tuple[list[int], int, set[Mode]]] = [
    ([1], 0, {Mode.POINTWISE}),
    ([7], 0, {Mode.SCAN_ROWS}),
    ([5, 16], 1, {Mode.SCAN_ROWS}),
    ([40, 1000], 1, {Mode.SCAN_ROWS}),
    ([3, 70001], 1, {Mode.ROWS_PARTIAL, Mode.SCAN_ROWS_COMBINE, Mode.SCAN_ROWS_MAP}),
    ([9, 50], 0, {Mode.SCAN_COLUMNS}),
    ([4, 9, 50], 1, {Mode.SCAN_COLUMNS}),
    ([20, 5, 700], 1, {Mode.SCAN_COLUMNS}),
    ([200, 2500], 0, {Mode.COLUMNS_PARTIAL, Mode.SCAN_COLUMNS_COMBINE, Mode.SCAN_COLUMNS_MAP}),
    ([5001, 37], 0, {Mode.COLUMNS_PARTIAL, Mode.SCAN_COLUMNS_COMBINE, Mode.SCAN_COLUMNS_MAP}),
]
every_walk = pytest.mark.parametrize(("sizes", "axis", "modes"), WALKS, ids=[f"{s}-{a}" for s, a, _ in WALKS])
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


def values(name: str, data_type: TensorDataType, sizes: list[int]) -> Array:
    type = numpy_type(TensorDesc(data_type, [1]))
    random = np.random.default_rng(1)
    if type.kind != "f":
        return random.integers(np.iinfo(type).min, np.iinfo(type).max, sizes, type, endpoint=True)
    deviation = 1.0 if name == SUM else 0.01
    return (random.standard_normal(sizes) * deviation + (name == PRODUCT)).astype(type)


def expected(name: str, x: Array, axis: int, exclusive: bool, direction: AxisDirection) -> Array:
    """Floats in float64; integers in their own type."""
    wide: Array = x.astype(np.float64) if x.dtype.kind == "f" else x
    down = direction is DECREASING
    line = np.flip(wide, axis) if down else wide
    result: Array = (np.cumsum if name == SUM else np.cumprod)(line, axis, dtype=wide.dtype)
    if exclusive:
        first = np.full_like(np.take(result, [0], axis), name == PRODUCT)
        result = np.concatenate([first, np.delete(result, -1, axis)], axis)
    return np.flip(result, axis) if down else result


@pairwise(walk=range(len(WALKS)), way=WAYS, name=[SUM, PRODUCT])
def test_every_walk_and_way(walk: int, way: tuple[bool, AxisDirection], name: str, device: Device) -> None:
    (sizes, axis, modes), (exclusive, direction) = WALKS[walk], way
    for data_type in (FLOAT32, INT32) if name == SUM else (FLOAT32,):
        desc = desc_of(name, data_type, sizes, axis, exclusive, direction)
        if exclusive is False:
            assert {launch.pattern.mode for launch in launches(desc)} == modes
        x = values(name, data_type, sizes)
        assert_within(name, run(desc, [x], device), expected(name, x, axis, exclusive, direction))


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("name", [SUM, PRODUCT])
@pytest.mark.parametrize("where", ["cpu", "reference"])
def test_every_type_of_the_table(name: str, data_type: TensorDataType, where: str) -> None:
    for sizes, axis in (([3, 77], 1), ([77, 3], 0)):
        x = values(name, data_type, sizes)
        result = run(desc_of(name, data_type, sizes, axis), [x], where)
        assert_within(name, result, expected(name, x, axis, False, INCREASING))


@every_walk
def test_thread_counts_change_no_bit(sizes: list[int], axis: int, modes: set[Mode]) -> None:
    x = values(SUM, FLOAT32, sizes)
    desc = desc_of(SUM, FLOAT32, sizes, axis)
    results = [run(desc, [x], Device("cpu", threads=threads)) for threads in (1, 2, 3)]
    assert all(same_bits(result, results[0]) for result in results[1:])


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 31, 32, 33, 64, 65])
@every_way
def test_sizes_around_vectors(size: int, exclusive: bool, direction: AxisDirection, device: Device) -> None:
    for sizes, axis in (([3, size], 1), ([size, 3], 0), ([3, size], 0)):
        x = values(SUM, FLOAT32, sizes)
        result = run(desc_of(SUM, FLOAT32, sizes, axis, exclusive, direction), [x], device)
        assert_within(SUM, result, expected(SUM, x, axis, exclusive, direction))


@pytest.mark.parametrize("direction", [INCREASING, DECREASING])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_strides_change_nothing(axis: int, direction: AxisDirection, device: Device) -> None:
    sizes = [6, 7, 40]
    x = values(SUM, FLOAT32, sizes)
    permuted, padded = TensorDesc(FLOAT32, sizes, [1, 6, 42]), TensorDesc(FLOAT32, sizes, [301, 43, 1])
    desc = desc_of(SUM, FLOAT32, sizes, axis, False, direction)
    strided = desc.replace(input_tensor=permuted, output_tensor=padded)
    assert_within(
        SUM, run(strided, [laid_out(x, permuted)], device), expected(SUM, x, axis, False, direction)
    )


@pytest.mark.parametrize(
    ("sizes", "axis"), [([5, 300], 1), ([300, 5], 0), ([100_000], 0), ([9000, 20], 0)], ids=str
)
def test_in_place_equals_out_of_place(sizes: list[int], axis: int, device: Device) -> None:
    x = values(SUM, FLOAT32, sizes)
    apart = dml.cumulative_summation(x, axis=axis, device=device)
    same = x.copy()
    assert dml.cumulative_summation(same, axis=axis, out=same, device=device) is same
    assert same_bits(same, apart)


@pytest.mark.parametrize(("sizes", "axis"), [([3, 100], 1), ([100, 3], 0), ([70_000], 0)], ids=str)
def test_not_a_number_stays_from_where_it_is(sizes: list[int], axis: int, device: Device) -> None:
    x = values(SUM, FLOAT32, sizes)
    at = tuple(size // 2 for size in sizes)
    for special in (math.nan, math.inf):
        x[at] = special
        for exclusive in (False, True):
            result = run(desc_of(SUM, FLOAT32, sizes, axis, exclusive), [x], device)
            assert_within(SUM, result, expected(SUM, x, axis, exclusive, INCREASING))


def test_large_outputs_bypass_the_caches_and_are_exact(device: Device) -> None:
    sizes = [5, 2_000_003]
    x = values(SUM, FLOAT32, sizes)
    for direction in (INCREASING, DECREASING):
        result = run(desc_of(SUM, FLOAT32, sizes, 1, True, direction), [x], device)
        assert_within(SUM, result, expected(SUM, x, 1, True, direction))


def test_sums_in_a_graph_may_be_computed_on() -> None:
    x = values(SUM, FLOAT16, [6, 80])
    graph = dml.Graph()
    tensor = graph.input("x", FLOAT16, x.shape)
    running = dml.cumulative_summation(dml.activation_relu(tensor), axis=1)
    twice = dml.cumulative_summation(running, axis=0)
    model = graph.compile({"tanh": dml.activation_tanh(running), "twice": twice})
    result = model(x=x)
    once = np.cumsum(np.maximum(x.astype(np.float64), 0), 1)
    np.testing.assert_allclose(result["tanh"], np.tanh(once), rtol=2e-3)
    np.testing.assert_allclose(result["twice"], np.cumsum(once, 0), rtol=2e-3)


@pytest.mark.parametrize("name", [SUM, PRODUCT])
def test_worked_examples_of_the_pages(name: str, device: Device) -> None:
    for example in operator(name).examples:
        x = np.array(example["inputs"]["InputTensor"], np.float32)
        given = example["attributes"]
        exclusive = given[next(key for key in given if key.startswith("HasExclusive"))]
        direction = AxisDirection[given["AxisDirection"].removeprefix("DML_AXIS_DIRECTION_")]
        desc = desc_of(name, FLOAT32, list(x.shape), given["Axis"], exclusive, direction)
        np.testing.assert_array_equal(run(desc, [x], device), example["outputs"]["OutputTensor"])
