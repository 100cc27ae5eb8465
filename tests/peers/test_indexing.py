"""Elements chosen, written, sorted and found by indices, against ONNX and PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import opendml as dml
from opendml.runtime.memory.host_array import Array

from .deviations import deviation
from .onnx_peer import PEERS, onnx_result, onnx_results, onnx_type
from .peer import DEVICES, Random, examples, seeds

every_device = pytest.mark.parametrize("device", DEVICES)
TYPES = ("float32", "int64", "uint8")


def _peer(random: Random) -> str:
    """One of the two that evaluate ONNX."""
    return PEERS[int(random.generator.integers(len(PEERS)))]


def _all_different(x: Array) -> Array:
    """Whole numbers, each with a fraction of its own."""
    return np.asarray(x + np.arange(x.size, dtype=x.dtype).reshape(x.shape) / x.dtype.type(2 * x.size))


distinct = deviation("TOP_K1", "equal elements among the least", _all_different)


def _indices(random: Random, size: int, shape: tuple[int, ...]) -> Array:
    """Valid ones, also from the end."""
    return random.laid_out(random.generator.integers(-size, size, shape))


def _distinct(random: Random, size: int, shape: tuple[int, ...], axis: int) -> Array:
    """Of which none is twice in a line along the axis."""
    lines = np.broadcast_to(
        np.arange(size).reshape([-1] + [1] * (len(shape) - axis - 1)),
        (*shape[:axis], size, *shape[axis + 1 :]),
    )
    return random.generator.permuted(lines, axis=axis).take(range(shape[axis]), axis)


def _first(x: Array, k: int, axis: int, greatest: bool, device: str) -> Sequence[Array]:
    """The values and places of the first elements of a sort."""
    direction = "DECREASING" if greatest else "INCREASING"
    return dml.top_k1(x, axis=axis, k=k, axis_direction=direction, device=device)


def _source(random: Random, shape: tuple[int, ...]) -> Array:
    return random.values(random.of_type(TYPES), shape, special=False)


@every_device
@given(random=seeds)
@examples
def test_elements_are_gathered_and_scattered_as_by_onnx(device: str, random: Random) -> None:
    shape = random.shape()
    axis = int(random.generator.integers(len(shape)))
    x = _source(random, shape)
    chosen = (*shape[:axis], int(random.generator.integers(1, shape[axis] + 1)), *shape[axis + 1 :])
    indices = _indices(random, shape[axis], chosen)
    expected = onnx_result("runtime", "GatherElements", [x, indices], x.dtype.name, axis=axis)
    np.testing.assert_array_equal(dml.gather_elements(x, indices, axis=axis, device=device), expected)
    indices = _distinct(random, shape[axis], chosen, axis)
    updates = random.values(x.dtype, chosen, special=False)
    expected = onnx_result(_peer(random), "ScatterElements", [x, indices, updates], x.dtype.name, axis=axis)
    np.testing.assert_array_equal(dml.scatter(x, indices, updates, axis=axis, device=device), expected)


@every_device
@given(random=seeds)
@examples
def test_tuples_of_indices_are_those_of_onnx(device: str, random: Random) -> None:
    shape = random.shape(rank=3)
    x, batches = _source(random, shape), int(random.generator.integers(2))
    length = int(random.generator.integers(1, 4 - batches))
    columns = [_indices(random, size, (*shape[:batches], 4, 1)) for size in shape[batches : batches + length]]
    indices = np.concatenate(columns, axis=-1)
    counts = {"input_dimension_count": 3, "indices_dimension_count": indices.ndim}
    # Both have as many dimensions as the result, of which the last ones count.
    rank = max(3, indices.ndim, indices.ndim - 1 + 3 - batches - length)
    wide, tuples = (each.reshape((1,) * (rank - each.ndim) + each.shape) for each in (x, indices))
    expected = onnx_result(_peer(random), "GatherND", [x, indices], x.dtype.name, batch_dims=batches)
    result = dml.gather_nd1(wide, tuples, **counts, batch_dimension_count=batches, device=device)
    np.testing.assert_array_equal(result.reshape(expected.shape), expected)
    if not batches:
        result = dml.gather_nd(wide, tuples, **counts, device=device)
        np.testing.assert_array_equal(result.reshape(expected.shape), expected)


@every_device
@given(random=seeds)
@examples
def test_updates_at_tuples_of_indices_are_those_of_onnx(device: str, random: Random) -> None:
    shape = random.shape(rank=3)
    x, length = _source(random, shape), int(random.generator.integers(1, 4))
    places = int(np.prod(shape[:length]))
    count = int(random.generator.integers(1, places + 1))
    number = random.generator.permutation(places)[:count]
    indices = np.stack(np.unravel_index(number, shape[:length]), axis=-1)
    updates = random.values(x.dtype, (count, *shape[length:]), special=False)
    expected = onnx_result(_peer(random), "ScatterND", [x, indices, updates], x.dtype.name)
    tuples = indices.reshape(1, *indices.shape)
    given_ = updates.reshape((1,) * (3 - updates.ndim) + updates.shape)
    result = dml.scatter_nd(
        x, tuples, given_, input_dimension_count=3, indices_dimension_count=2, device=device
    )
    np.testing.assert_array_equal(result, expected)


@every_device
@given(random=seeds)
@examples
def test_one_hot_is_that_of_onnx(device: str, random: Random) -> None:
    shape = random.shape(rank=int(random.generator.integers(1, 4)))
    axis, depth = int(random.generator.integers(len(shape) + 1)), int(random.generator.integers(1, 9))
    indices = _indices(random, depth, shape)
    values = np.array([-1.5, 2.0], np.float32)
    expected = onnx_result("runtime", "OneHot", [indices, np.array([depth]), values], "float32", axis=axis)
    sizes = (*shape[:axis], 1, *shape[axis:])
    pair = values.reshape((1,) * len(shape) + (2,))
    result = dml.one_hot(indices.reshape(sizes), pair, axis=axis, sizes=expected.shape, device=device)
    np.testing.assert_array_equal(result, expected)


@every_device
@given(random=seeds)
@examples
def test_subsequences_are_reversed_as_by_onnx(device: str, random: Random) -> None:
    batch, time, rest = (int(each) for each in random.generator.integers(1, 8, 3))
    x = random.values(np.dtype("float32"), (batch, time, rest))
    lengths = random.generator.integers(1, time + 1, batch)
    expected = onnx_result("runtime", "ReverseSequence", [x, lengths], "float32", batch_axis=0, time_axis=1)
    given_ = np.ascontiguousarray(np.broadcast_to(lengths.reshape(-1, 1, 1), (batch, 1, rest)), np.uint32)
    np.testing.assert_array_equal(dml.reverse_subsequences(x, given_, axis=1, device=device), expected)


@every_device
@given(random=seeds)
@examples
def test_what_is_not_zero_is_found_where_onnx_finds_it(device: str, random: Random) -> None:
    x = random.values(np.dtype("float32"), random.shape())
    expected = onnx_result(_peer(random), "NonZero", [x], "int64")
    count, coordinates = dml.nonzero_coordinates(x, device=device)
    assert count.item() == expected.shape[1]
    np.testing.assert_array_equal(coordinates[: expected.shape[1]], expected.T)
    assert not coordinates[expected.shape[1] :].any()


@every_device
@pytest.mark.parametrize("greatest", [False, True])
@given(random=seeds)
@examples
def test_the_first_of_a_sort_are_those_of_onnx(greatest: bool, device: str, random: Random) -> None:
    shape = random.shape()
    axis = int(random.generator.integers(len(shape)))
    k = int(random.generator.integers(1, shape[axis] + 1))
    # Few different numbers: the lowest index of equal ones comes first.
    x = random.laid_out(random.generator.integers(-9, 10, shape).astype(np.float32))
    attributes: dict[str, Any] = {"axis": axis, "largest": int(greatest), "sorted": 1}
    peer = _peer(random)
    if peer == "reference" and not greatest:
        x = distinct(x)
    values, places = onnx_results(peer, "TopK", [x, np.array([k])], ["float32", "int64"], **attributes)
    found = _first(x, k, axis, greatest, device)
    np.testing.assert_array_equal(found[0], values)
    np.testing.assert_array_equal(found[1], places)


@every_device
@given(random=seeds)
@examples
def test_nan_is_sorted_as_by_pytorch(device: str, random: Random) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = random.values(np.dtype("float32"), (int(random.generator.integers(1, 30)), 16))
    k = int(random.generator.integers(1, x.shape[1] + 1))
    for greatest in (False, True):
        wanted = torch.topk(torch.from_numpy(x.copy()), k, largest=greatest).values.numpy()
        np.testing.assert_array_equal(_first(x, k, 1, greatest, device)[0], wanted)


@every_device
@given(random=seeds)
@examples
def test_what_was_pooled_is_put_back_as_by_pytorch(device: str, random: Random) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    batch, channels, rows, columns = (int(each) for each in random.generator.integers(1, 5, 4))
    x = random.values(np.dtype("float32"), (batch, channels, 2 * rows, 2 * columns), special=False)
    functional = torch.nn.functional
    pooled, places = functional.max_pool2d(torch.from_numpy(x.copy()), 2, return_indices=True)
    expected = functional.max_unpool2d(pooled, places, 2).numpy()
    # Places are those of the whole tensor here, of each image there.
    whole = places.numpy().astype(np.uint64) + np.arange(batch * channels, dtype=np.uint64).reshape(
        batch, channels, 1, 1
    ) * np.uint64(4 * rows * columns)
    result = dml.max_unpooling(pooled.numpy(), whole, sizes=x.shape, device=device)
    np.testing.assert_array_equal(result, expected)


@every_device
@given(random=seeds)
@examples
def test_diagonals_are_those_of_onnx_and_numpy(device: str, random: Random) -> None:
    sizes, offset = random.shape(rank=2), int(random.generator.integers(-9, 10))
    # ONNX Runtime has it of these.
    dtype = random.of_type(("float32", "int32", "int64"))
    result = dml.diagonal_matrix(
        sizes=(1, 1, *sizes), offset=offset, value=1.0, output_type=dtype, device=device
    )
    expected = onnx_result(
        _peer(random), "EyeLike", [np.zeros(sizes, np.float32)], dtype.name, k=offset, dtype=onnx_type(dtype)
    )
    np.testing.assert_array_equal(result[0, 0], expected)
    np.testing.assert_array_equal(result[0, 0], np.eye(*sizes, k=offset, dtype=dtype))


@every_device
@given(random=seeds)
@examples
def test_bands_of_a_matrix_are_those_of_pytorch(device: str, random: Random) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = random.values(np.dtype("float32"), random.shape(rank=2), special=False)
    begin, end = (int(each) for each in np.sort(random.generator.integers(-5, 6, 2)))
    ones = torch.ones(x.shape)
    band = (torch.triu(ones, begin) * torch.tril(ones, end - 1)).numpy() if end > begin else 0 * x
    expected = np.where(band != 0, np.float32(3), x)
    result = dml.diagonal_matrix1(
        x,
        value_data_type=dml.FLOAT32,
        value=3.0,
        diagonal_fill_begin=begin,
        diagonal_fill_end=end,
        device=device,
    )
    np.testing.assert_array_equal(result, expected)
