"""Scattered elements one by one, in order; and the coordinates of elements that are not zero."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendml as dml
from opendml import descs
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.spec.schema import operator
from tests.pairwise import pairwise
from tests.peers.peer import examples
from tests.running import device_kinds, on_arrays, same_bits

TYPES = operator("SCATTER").support[0].tensors["InputTensor"].types
INDEX_TYPES = operator("SCATTER").support[0].tensors["IndicesTensor"].types
every_device = pytest.mark.parametrize("device", device_kinds())
every_index_type = pytest.mark.parametrize("index_type", INDEX_TYPES)
TYPES_AND_INDEX_TYPES = [(type, "INT64") for type in TYPES] + [("FLOAT32", type) for type in INDEX_TYPES]
every_type_and_index_type = pytest.mark.parametrize(("type", "index_type"), TYPES_AND_INDEX_TYPES)


def _values(type: str, *sizes: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).integers(0, 100, sizes).astype(ScalarType[type].numpy)


def _indices(type: str, size: int, *sizes: int) -> Array:
    """Indices into `size` elements, many of them equal: negative ones of signed types, some out of range, and
    the least and the greatest of the type."""
    dtype = ScalarType[type].numpy
    least = -size - 2 if dtype.kind == "i" else 0
    chosen = np.random.default_rng(2).integers(least, size + 2, sizes).astype(dtype)
    limits = np.iinfo(dtype.name)
    if chosen.size > 2:
        chosen.reshape(-1)[-2:] = limits.min, limits.max
    return chosen


def _place(index: int, size: int) -> int | None:
    """What an index means; None where it is out of range."""
    place = index + size if index < 0 else index
    return place if 0 <= place < size else None


def _scattered(x: Array, indices: Array, updates: Array, axis: int) -> Array:
    result = x.copy()
    for at in np.ndindex(*indices.shape):
        place = _place(int(indices[at]), x.shape[axis])
        if place is not None:
            result[(*at[:axis], place, *at[axis + 1 :])] = updates[at]
    return result


def _check_scatter(x: Array, indices: Array, axis: int, device: str) -> None:
    updates = _values(x.dtype.name.upper(), *indices.shape, seed=3)
    expected = _scattered(x, indices, updates, axis)
    (result,) = on_arrays(descs.Scatter, [x, indices, updates], [expected], device, axis=axis)
    assert same_bits(np.ascontiguousarray(result), expected)


@every_device
@every_type_and_index_type
def test_the_last_of_several_updates_holds_and_those_out_of_range_are_left_out(
    type: str, index_type: str, device: str
) -> None:
    _check_scatter(_values(type, 4, 3, 5), _indices(index_type, 5, 4, 3, 20), 2, device)


@pairwise(
    device=device_kinds(),
    count=[1, 2, 40],
    axis=[0, 1, 2],
)
def test_scatter_along_every_axis(axis: int, count: int, device: str) -> None:
    x = _values("FLOAT32", 6, 7, 33)
    sizes = tuple(count if each == axis else size for each, size in enumerate(x.shape))
    _check_scatter(x, _indices("INT32", x.shape[axis], *sizes), axis, device)


@every_device
@pytest.mark.parametrize("columns", [3, 5, 15])
def test_one_update_of_each_line_leaves_all_others(columns: int, device: str) -> None:
    x = _values("FLOAT32", 4, 9, columns)
    _check_scatter(x, _indices("INT32", 9, 4, 1, columns), 1, device)


@every_device
def test_long_lines(device: str) -> None:
    x = _values("FLOAT32", 2, 50_000)
    _check_scatter(x, _indices("INT64", 50_000, 2, 60_001), 1, device)


@every_device
@every_index_type
@pytest.mark.parametrize(
    ("x_sizes", "sizes"),
    [((4, 5), (30, 2)), ((4, 5, 6), (2, 3, 1)), ((4, 5, 6), (40, 3)), ((9,), (1,)), ((3, 4, 2), (2, 2, 2))],
    ids=str,
)
def test_index_tuples(x_sizes: tuple[int, ...], sizes: tuple[int, ...], index_type: str, device: str) -> None:
    x, indices = _values("FLOAT32", *x_sizes), _indices(index_type, min(x_sizes), *sizes)
    updates = _values("FLOAT32", *sizes[:-1], *x_sizes[sizes[-1] :], seed=3)
    expected = x.copy()
    for at in np.ndindex(*sizes[:-1]):
        places = [_place(int(i), size) for i, size in zip(indices[at], x_sizes, strict=False)]
        if None not in places:
            expected[tuple(places)] = updates[at]
    rank = max(len(x_sizes), len(sizes), updates.ndim)

    def filled(array: Array) -> Array:
        return array.reshape((1,) * (rank - array.ndim) + array.shape)

    (result,) = on_arrays(
        descs.ScatterNd,
        [filled(x), filled(indices), filled(updates)],
        [filled(expected)],
        device,
        input_dimension_count=len(x_sizes),
        indices_dimension_count=len(sizes),
    )
    np.testing.assert_array_equal(result.reshape(expected.shape), expected)


@pairwise(
    device=device_kinds(),
    data=operator("MAX_UNPOOLING").support[0].tensors["InputTensor"].types,
    index_type=["UINT32", "UINT64"],
)
def test_unpooling(index_type: str, data: str, device: str) -> None:
    x = _values(data, 2, 3, 4, 5) + np.array(1, ScalarType[data].numpy)
    expected = np.zeros((2, 3, 7, 9), x.dtype)
    indices = _indices(index_type, expected.size, *x.shape)
    for value, index in zip(x.reshape(-1), indices.reshape(-1).tolist(), strict=True):
        if index < expected.size:
            expected.reshape(-1)[index] = value
    (result,) = on_arrays(descs.MaxUnpooling, [x, indices], [expected], device)
    assert same_bits(np.ascontiguousarray(result), expected)


@every_device
def test_unpooling_undoes_pooling(device: str) -> None:
    x = np.random.default_rng(5).permutation(np.arange(1, 97, dtype=np.float32)).reshape(2, 3, 4, 4)
    values, indices = dml.max_pooling1(
        x, strides=[2, 2], window_size=[2, 2], output_indices=True, device=device
    )
    result = dml.max_unpooling(values, indices, sizes=x.shape, device=device)
    np.testing.assert_array_equal(result, np.where(np.isin(x, values), x, 0))


@pairwise(
    device=device_kinds(),
    type=operator("NONZERO_COORDINATES").support[0].tensors["InputTensor"].types,
    sizes=[(3, 4, 5), (1, 1, 7, 2), (1,)],
)
def test_nonzero_coordinates(sizes: tuple[int, ...], type: str, device: str) -> None:
    x = _values(type, *sizes) % 3
    if x.dtype.kind == "f":
        x.reshape(-1)[-3:] = np.array([np.nan, -0.0, -1], x.dtype)[: x.size]
    rank = len(sizes)
    for width in range(rank, max(1, sum(1 for _ in itertools.dropwhile(lambda n: n == 1, sizes))) - 1, -1):
        found = np.argwhere(x != 0)[:, rank - width :]
        rows = np.zeros((1,) * (rank - 2) + (x.size, width), np.uint32)
        rows[..., : len(found), :] = found
        count = np.full((1,) * rank, len(found), np.uint32)
        results = on_arrays(descs.NonzeroCoordinates, [x], [count, rows], device)
        np.testing.assert_array_equal(results[0], count)
        np.testing.assert_array_equal(results[1], rows)


@every_device
@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 1.0])
def test_coordinates_of_many_elements(share: float, device: str) -> None:
    x = (np.random.default_rng(6).random((300, 411)) < share).astype(np.int8)
    count, rows = dml.nonzero_coordinates(x, device=device)
    found = np.argwhere(x)
    assert count.item() == len(found)
    np.testing.assert_array_equal(rows[: len(found)], found)
    assert not rows[len(found) :].any()


@every_device
@given(data=st.data())
@examples
def test_any_scatter(device: str, data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    axis = data.draw(st.integers(0, len(sizes) - 1))
    count = data.draw(st.integers(1, 9))
    indices = _indices(
        data.draw(st.sampled_from(INDEX_TYPES)),
        sizes[axis],
        *(max(count, 2) if each == axis else size for each, size in enumerate(sizes)),
    )
    _check_scatter(_values("FLOAT32", *sizes), indices, axis, device)


@every_device
def test_graphs_go_on_from_what_is_scattered(device: str) -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [5, 6])
    indices = graph.input("indices", dml.TensorDataType.INT32, [5, 3])
    top: Any = dml.top_k1(x, axis=1, k=3)
    written = dml.scatter(x, indices, top[0], axis=1)
    both = dml.join([written, dml.element_wise_negate(x)], axis=1)
    model = graph.compile({"y": dml.activation_relu(both), "written": written}, device=device)
    values = np.random.default_rng(7).normal(size=(5, 6)).astype(np.float32)
    places = np.array([[0, 1, 2]] * 4 + [[5, 5, -1]], np.int32)
    results = model(x=values, indices=places)
    expected = _scattered(values, places, -np.sort(-values)[:, :3], 1)
    np.testing.assert_array_equal(results["written"], expected)
    np.testing.assert_array_equal(results["y"], np.maximum(np.hstack([expected, -values]), 0))


@every_device
@pytest.mark.parametrize(
    ("indices", "updates"),
    [(np.int32([[1, 0, 1]] * 2), 5.0), (1, np.float32([[7, 8, 9]] * 2)), (np.int32([[1], [0]]), None)],
    ids=["a number", "one index", "a column of indices"],
)
def test_indices_and_updates_are_repeated_to_each_other_within_a_graph(
    indices: Any, updates: Any, device: str
) -> None:
    values = np.float32([[1, 2, 3], [4, 5, 6]])
    updates = -values if updates is None else updates
    arrays = {"x": values, "indices": indices, "updates": updates}
    expected = dml.scatter(values, indices, updates, axis=0, device="reference")
    graph = dml.Graph()
    given = {
        name: graph.constant(array) if isinstance(array, np.ndarray) else array
        for name, array in arrays.items()
    }
    model = graph.compile({"y": dml.scatter(*given.values(), axis=0)}, device=device)
    np.testing.assert_array_equal(model()["y"], expected)
