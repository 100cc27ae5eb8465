"""Gathering, scattering and selection against NumPy, with indices of every kind."""

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
from opendml.spec.enums import AxisDirection
from opendml.spec.schema import operator
from tests.pairwise import pairwise
from tests.peers.peer import examples
from tests.running import device_kinds, on_arrays, same_bits

TYPES = operator("GATHER").support[0].tensors["InputTensor"].types
INDEX_TYPES = operator("GATHER").support[0].tensors["IndicesTensor"].types
every_device = pytest.mark.parametrize("device", device_kinds())
every_index_type = pytest.mark.parametrize("index_type", INDEX_TYPES)


def _values(type: str, *sizes: int) -> Array:
    dtype = ScalarType[type].numpy
    return np.random.default_rng(1).integers(0, 100, sizes).astype(dtype)


def _indices(type: str, size: int, *sizes: int, beyond: int = 0) -> Array:
    """Indices into `size` elements: negative ones of signed types, and with `beyond` also some out of
    range."""
    dtype = ScalarType[type].numpy
    least = -size - beyond if dtype.kind == "i" else 0
    chosen = np.random.default_rng(2).integers(least, size + beyond, sizes).astype(dtype)
    if beyond:
        limits = np.iinfo(dtype.name)
        chosen.reshape(-1)[:2] = limits.min, limits.max
    return chosen


def _places(indices: Array, size: int) -> Array:
    """What the indices mean: negative ones count from the end, others are moved to the nearest end."""
    return np.array(
        [min(max(i + size if i < 0 else i, 0), size - 1) for i in indices.reshape(-1).tolist()]
    ).reshape(indices.shape)


def _gathered(x: Array, indices: Array, axis: int, device: str) -> Array:
    """GATHER as ONNX has it, of tensors of any ranks: all get the same with leading ones."""
    expected_sizes = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    rank = max(x.ndim, indices.ndim, len(expected_sizes))

    def filled(sizes: tuple[int, ...]) -> tuple[int, ...]:
        return (1,) * (rank - len(sizes)) + sizes

    (result,) = on_arrays(
        descs.Gather,
        [x.reshape(filled(x.shape)), indices.reshape(filled(indices.shape))],
        [np.zeros(filled(expected_sizes), x.dtype)],
        device,
        axis=axis + rank - x.ndim,
        index_dimensions=indices.ndim,
    )
    return result.reshape(expected_sizes)


@every_device
@every_index_type
@pytest.mark.parametrize("type", TYPES)
def test_gather_of_every_type(type: str, index_type: str, device: str) -> None:
    x, indices = _values(type, 3, 5, 2), _indices(index_type, 5, 4)
    expected = np.take(x, _places(indices, 5), 1)
    assert same_bits(_gathered(x, indices, 1, device), expected)


@every_device
@every_index_type
def test_indices_out_of_range_are_moved_to_the_nearest_end(index_type: str, device: str) -> None:
    x, indices = _values("FLOAT32", 7, 3), _indices(index_type, 7, 20, beyond=9)
    expected = x[_places(indices, 7)]
    np.testing.assert_array_equal(_gathered(x, indices, 0, device), expected)
    columns = _indices(index_type, 7, 20, 3, beyond=9)
    along = np.take_along_axis(x, _places(columns, 7), 0)
    np.testing.assert_array_equal(
        on_arrays(descs.GatherElements, [x, columns], [along], device, axis=0)[0], along
    )


@pairwise(device=device_kinds(), index_type=INDEX_TYPES, type=TYPES, axis=[0, 2])
def test_elements_along_an_axis(axis: int, type: str, index_type: str, device: str) -> None:
    x = _values(type, 4, 3, 5)
    sizes = tuple(6 if each == axis else size for each, size in enumerate(x.shape))
    indices = _indices(index_type, x.shape[axis], *sizes)
    expected = np.take_along_axis(x, _places(indices, x.shape[axis]), axis)
    (result,) = on_arrays(descs.GatherElements, [x, indices], [expected], device, axis=axis)
    assert same_bits(np.ascontiguousarray(result), expected)


def _by_tuples(x: Array, indices: Array, batch: int) -> Array:
    if batch:
        return np.stack([_by_tuples(a, b, batch - 1) for a, b in zip(x, indices, strict=True)])
    columns = [_places(indices[..., number], x.shape[number]) for number in range(indices.shape[-1])]
    return x[tuple(columns)]


@every_device
@every_index_type
@pytest.mark.parametrize(
    ("x_sizes", "sizes", "batch"),
    [
        ((4, 5), (3, 2), 0),
        ((4, 5, 6), (2, 3, 1), 0),
        ((4, 5, 6), (7, 3), 0),
        ((2, 3, 4, 5), (2, 6, 2), 1),
        ((2, 3, 4, 5), (2, 3, 1), 2),
        ((3, 4), (2,), 0),
    ],
    ids=str,
)
def test_index_tuples(
    x_sizes: tuple[int, ...], sizes: tuple[int, ...], batch: int, index_type: str, device: str
) -> None:
    x, indices = _values("FLOAT32", *x_sizes), _indices(index_type, min(x_sizes), *sizes)
    expected = _by_tuples(x, indices, batch)
    rank = max(len(x_sizes), len(sizes), expected.ndim)

    def filled(array: Array) -> Array:
        return array.reshape((1,) * (rank - array.ndim) + array.shape)

    attributes: dict[str, Any] = {
        "input_dimension_count": len(x_sizes),
        "indices_dimension_count": len(sizes),
    }
    arrays = [filled(x), filled(indices)]
    results = on_arrays(
        descs.GatherNd1, arrays, [filled(expected)], device, batch_dimension_count=batch, **attributes
    )
    if batch == 0:
        results += on_arrays(descs.GatherNd, arrays, [filled(expected)], device, **attributes)
    for result in results:
        np.testing.assert_array_equal(result.reshape(expected.shape), expected)


@every_device
@every_index_type
def test_each_index_of_a_tuple_is_moved_to_the_nearest_end(index_type: str, device: str) -> None:
    x, indices = _values("FLOAT32", 7, 7, 3), _indices(index_type, 7, 1, 20, 2, beyond=9)
    expected = x[_places(indices[0, :, 0], 7), _places(indices[0, :, 1], 7)][None]
    attributes: dict[str, Any] = {"input_dimension_count": 3, "indices_dimension_count": 3}
    results = on_arrays(descs.GatherNd, [x, indices], [expected], device, **attributes)
    results += on_arrays(
        descs.GatherNd1, [x, indices], [expected], device, batch_dimension_count=0, **attributes
    )
    for result in results:
        np.testing.assert_array_equal(result, expected)


@every_device
@given(data=st.data())
@examples
def test_any_gather(device: str, data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    axis = data.draw(st.integers(0, len(sizes) - 1))
    index_sizes = data.draw(st.lists(st.integers(1, 4), max_size=3))
    x = _values("FLOAT32", *sizes)
    type = data.draw(st.sampled_from(INDEX_TYPES))
    indices = _indices(type, sizes[axis], *index_sizes)
    expected = np.take(x, _places(indices, sizes[axis]), axis)
    np.testing.assert_array_equal(_gathered(x, indices, axis, device), expected)


def _position(sizes: tuple[int, ...], axis: int) -> Array:
    return np.arange(sizes[axis]).reshape([-1 if each == axis else 1 for each in range(len(sizes))])


DATA_TYPES = operator("SCATTER").support[0].tensors["InputTensor"].types
TYPES_AND_INDEX_TYPES = [(type, "INT64") for type in DATA_TYPES] + [("FLOAT32", type) for type in INDEX_TYPES]
every_type_and_index_type = pytest.mark.parametrize(("type", "index_type"), TYPES_AND_INDEX_TYPES)


@every_device
@every_type_and_index_type
def test_one_hot_of_every_type(type: str, index_type: str, device: str) -> None:
    sizes, axis = (4, 3, 5), 0 if index_type == "INT64" else 2
    indices = _indices(index_type, sizes[axis], *(1 if d == axis else size for d, size in enumerate(sizes)))
    off_and_on = _values(type, 2, 1, 2) + np.array(1).astype(ScalarType[type].numpy)
    expected = np.where(
        _position(sizes, axis) == _places(indices, sizes[axis]), off_and_on.flat[1], off_and_on.flat[0]
    )
    (result,) = on_arrays(descs.OneHot, [indices, off_and_on], [expected], device, axis=axis)
    assert same_bits(np.ascontiguousarray(result), expected)


@every_device
@every_index_type
def test_one_hot_of_an_index_out_of_range_is_off(index_type: str, device: str) -> None:
    indices = _indices(index_type, 7, 20, 1, beyond=9)
    meant = [i + 7 if i < 0 else i for i in indices.reshape(-1).tolist()]
    expected = np.array([[float(i == place) for i in range(7)] for place in meant], np.float32)
    values = np.array([[0, 1]], np.float32)
    (result,) = on_arrays(descs.OneHot, [indices, values], [expected], device, axis=1)
    np.testing.assert_array_equal(result, expected)


@every_device
@pytest.mark.parametrize("length_type", ["UINT32", "UINT64"])
@pytest.mark.parametrize("type", operator("REVERSE_SUBSEQUENCES").support[0].tensors["InputTensor"].types)
def test_reversed_subsequences(type: str, length_type: str, device: str) -> None:
    x, axis = _values(type, 4, 3, 5), 0 if length_type == "UINT32" else 2
    dtype = ScalarType[length_type].numpy
    lengths = np.random.default_rng(3).integers(0, 8, [1 if d == axis else n for d, n in enumerate(x.shape)])
    lengths.flat[0] = -1  # the greatest of the type
    lengths = lengths.astype(dtype)
    expected = np.array(x)
    for place in np.ndindex(*lengths.shape):
        line = tuple(slice(None) if d == axis else i for d, i in enumerate(place))
        length = min(int(lengths[place]), x.shape[axis])
        expected[line][:length] = x[line][:length][::-1]
    (result,) = on_arrays(descs.ReverseSubsequences, [x, lengths], [expected], device, axis=axis)
    assert same_bits(np.ascontiguousarray(result), expected)


TYPES_SCATTERING = operator("SCATTER").support[0].tensors["InputTensor"].types
INDEX_TYPES_SCATTERING = operator("SCATTER").support[0].tensors["IndicesTensor"].types
every_index_type_scattering = pytest.mark.parametrize("index_type", INDEX_TYPES_SCATTERING)
TYPES_AND_INDEX_TYPES_SCATTERING = [(type, "INT64") for type in TYPES_SCATTERING] + [
    ("FLOAT32", type) for type in INDEX_TYPES_SCATTERING
]
every_type_and_index_type_scattering = pytest.mark.parametrize(
    ("type", "index_type"), TYPES_AND_INDEX_TYPES_SCATTERING
)


def _values_scattering(type: str, *sizes: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).integers(0, 100, sizes).astype(ScalarType[type].numpy)


def _indices_scattering(type: str, size: int, *sizes: int) -> Array:
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
    """Return the place that an index means; None where it is out of range."""
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
    updates = _values_scattering(x.dtype.name.upper(), *indices.shape, seed=3)
    expected = _scattered(x, indices, updates, axis)
    (result,) = on_arrays(descs.Scatter, [x, indices, updates], [expected], device, axis=axis)
    assert same_bits(np.ascontiguousarray(result), expected)


@every_device
@every_type_and_index_type_scattering
def test_the_last_update_holds_and_wrong_ones_are_left_out(type: str, index_type: str, device: str) -> None:
    _check_scatter(_values_scattering(type, 4, 3, 5), _indices_scattering(index_type, 5, 4, 3, 20), 2, device)


@pairwise(device=device_kinds(), count=[1, 2, 40], axis=[0, 1, 2])
def test_scatter_along_every_axis(axis: int, count: int, device: str) -> None:
    x = _values_scattering("FLOAT32", 6, 7, 33)
    sizes = tuple(count if each == axis else size for each, size in enumerate(x.shape))
    _check_scatter(x, _indices_scattering("INT32", x.shape[axis], *sizes), axis, device)


@every_device
@pytest.mark.parametrize("columns", [3, 5, 15])
def test_one_update_of_each_line_leaves_all_others(columns: int, device: str) -> None:
    x = _values_scattering("FLOAT32", 4, 9, columns)
    _check_scatter(x, _indices_scattering("INT32", 9, 4, 1, columns), 1, device)


@every_device
def test_long_lines(device: str) -> None:
    x = _values_scattering("FLOAT32", 2, 50_000)
    _check_scatter(x, _indices_scattering("INT64", 50_000, 2, 60_001), 1, device)


@every_device
@every_index_type_scattering
@pytest.mark.parametrize(
    ("x_sizes", "sizes"),
    [((4, 5), (30, 2)), ((4, 5, 6), (2, 3, 1)), ((4, 5, 6), (40, 3)), ((9,), (1,)), ((3, 4, 2), (2, 2, 2))],
    ids=str,
)
def test_index_tuples_of_scattering(
    x_sizes: tuple[int, ...], sizes: tuple[int, ...], index_type: str, device: str
) -> None:
    x, indices = (
        _values_scattering("FLOAT32", *x_sizes),
        _indices_scattering(index_type, min(x_sizes), *sizes),
    )
    updates = _values_scattering("FLOAT32", *sizes[:-1], *x_sizes[sizes[-1] :], seed=3)
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
    x = _values_scattering(data, 2, 3, 4, 5) + np.array(1, ScalarType[data].numpy)
    expected = np.zeros((2, 3, 7, 9), x.dtype)
    indices = _indices_scattering(index_type, expected.size, *x.shape)
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
    x = _values_scattering(type, *sizes) % 3
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
    indices = _indices_scattering(
        data.draw(st.sampled_from(INDEX_TYPES_SCATTERING)),
        sizes[axis],
        *(max(count, 2) if each == axis else size for each, size in enumerate(sizes)),
    )
    _check_scatter(_values_scattering("FLOAT32", *sizes), indices, axis, device)


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
def test_indices_and_updates_are_repeated_in_a_graph(indices: Any, updates: Any, device: str) -> None:
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


TYPES_SELECTION = operator("TOP_K1").support[0].tensors["InputTensor"].types
every_direction = pytest.mark.parametrize("direction", list(AxisDirection))


def _values_selection(type: str, *sizes: int, few: bool = False) -> Array:
    """Numbers of the whole range, or few different ones; of floats also special ones."""
    dtype, generator = ScalarType[type].numpy, np.random.default_rng(4)
    if dtype.kind == "f":
        numbers = generator.normal(0, 100, sizes).round(0 if few else 3)
        special = generator.choice(np.array([np.inf, -np.inf, np.nan, -np.nan, -0.0, 0.0, 1e-7]), sizes)
        return np.where(generator.random(sizes) < 0.1, special, numbers).astype(dtype)
    limits = np.iinfo(dtype.name)
    low, high = (0, 7) if few else (limits.min, limits.max)
    return generator.integers(low, high, sizes, dtype.name, endpoint=True)


def _top(x: Array, axis: int, k: int, direction: AxisDirection) -> tuple[Array, Array]:
    """By a stable sort of the ranks of the elements, NaN being the greatest."""
    _, ranks = np.unique(x, return_inverse=True)
    ranks = ranks.reshape(x.shape)
    if direction is AxisDirection.DECREASING:
        ranks = -ranks
    indices = np.argsort(ranks, axis=axis, kind="stable").take(range(k), axis)
    return np.take_along_axis(x, indices, axis), indices


def _check(x: Array, axis: int, k: int, direction: AxisDirection, device: str, index: str = "u4") -> None:
    values, indices = _top(x, axis, k, direction)
    attributes: dict[str, Any] = {"axis": axis, "k": k}
    expected = [values, indices.astype(index)]
    results = on_arrays(descs.TopK1, [x], expected, device, axis_direction=direction, **attributes)
    if direction is AxisDirection.DECREASING:
        results += on_arrays(descs.TopK, [x], expected, device, **attributes)
    for number, result in enumerate(results):
        assert same_bits(np.ascontiguousarray(result), np.ascontiguousarray(expected[number % 2]))


@pairwise(device=device_kinds(), direction=list(AxisDirection), few=[False, True], type=TYPES_SELECTION)
def test_every_type(type: str, few: bool, direction: AxisDirection, device: str) -> None:
    _check(_values_selection(type, 5, 83, few=few), 1, 9, direction, device)


@pairwise(device=device_kinds(), direction=list(AxisDirection), axis=[0, 1, 2], index=["u4", "u8"])
def test_every_axis(index: str, axis: int, direction: AxisDirection, device: str) -> None:
    _check(_values_selection("FLOAT32", 17, 6, 33, few=True), axis, 5, direction, device, index)


@every_device
@every_direction
@pytest.mark.parametrize("type", ["FLOAT32", "INT64"])
@pytest.mark.parametrize(
    ("length", "k"),
    [
        (1, 1),
        (2, 1),
        (2, 2),
        (16, 16),
        (17, 16),
        (64, 63),
        (1000, 1),
        (1000, 5),
        (1000, 64),
        (1000, 700),
        (5000, 5000),
    ],
)
def test_each_number_of_elements(
    length: int, k: int, type: str, direction: AxisDirection, device: str
) -> None:
    _check(_values_selection(type, 2, length, few=length < 64), 1, k, direction, device)


@every_device
@every_direction
@pytest.mark.parametrize("type", ["FLOAT16", "UINT8", "UINT64"])
@pytest.mark.parametrize(("length", "k"), [(1000, 5), (1003, 20), (5000, 3)])
def test_ordered_and_equal_lines(
    length: int, k: int, type: str, direction: AxisDirection, device: str
) -> None:
    x = np.sort(_values_selection(type, 2, length), 1)
    for each in (x, np.ascontiguousarray(x[:, ::-1]), _values_selection(type, 2, length, few=True)):
        _check(each, 1, k, direction, device)


@every_device
@every_direction
@pytest.mark.parametrize("type", ["FLOAT32", "UINT64"])
def test_long_lines_of_selection(type: str, direction: AxisDirection, device: str) -> None:
    x = _values_selection(type, 2, 200_001)
    _check(x, 1, 100, direction, device)
    _check(np.sort(x), 1, 100, direction, device)


@every_device
def test_the_least_and_the_greatest_number_are_found(device: str) -> None:
    for type in ("UINT32", "INT64", "UINT8"):
        dtype = ScalarType[type].numpy
        for number in (np.iinfo(dtype.name).min, np.iinfo(dtype.name).max):
            x = np.full(300, number, dtype)
            for direction in AxisDirection:
                _check(x, 0, 300, direction, device)
