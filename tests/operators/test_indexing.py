"""Gathering against NumPy, with indices of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendml import descs
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
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


@pairwise(
    device=device_kinds(),
    axis=[0, 1, 2],
    sizes=[(), (1,), (4,), (2, 3), (2, 1, 3)],
)
def test_gather_of_every_rank(sizes: tuple[int, ...], axis: int, device: str) -> None:
    x = _values("FLOAT32", 2, 3, 5)
    indices = _indices("INT64", x.shape[axis], *sizes)
    expected = np.take(x, _places(indices, x.shape[axis]), axis)
    np.testing.assert_array_equal(_gathered(x, indices, axis, device), expected)


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


@pairwise(
    device=device_kinds(),
    index_type=INDEX_TYPES,
    type=TYPES,
    axis=[0, 2],
)
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
def test_each_index_of_a_tuple_is_moved_to_the_nearest_end_of_its_dimension(
    index_type: str, device: str
) -> None:
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
