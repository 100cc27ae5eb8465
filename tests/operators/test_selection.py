"""The greatest and least elements against stable sorts, in every type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opendml import descs
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import AxisDirection
from opendml.spec.schema import operator
from tests.pairwise import pairwise
from tests.running import device_kinds, on_arrays, same_bits

TYPES = operator("TOP_K1").support[0].tensors["InputTensor"].types
every_device = pytest.mark.parametrize("device", device_kinds())
every_direction = pytest.mark.parametrize("direction", list(AxisDirection))


def _values(type: str, *sizes: int, few: bool = False) -> Array:
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


@pairwise(
    device=device_kinds(),
    direction=list(AxisDirection),
    few=[False, True],
    type=TYPES,
)
def test_every_type(type: str, few: bool, direction: AxisDirection, device: str) -> None:
    _check(_values(type, 5, 83, few=few), 1, 9, direction, device)


@pairwise(
    device=device_kinds(),
    direction=list(AxisDirection),
    axis=[0, 1, 2],
    index=["u4", "u8"],
)
def test_every_axis(index: str, axis: int, direction: AxisDirection, device: str) -> None:
    _check(_values("FLOAT32", 17, 6, 33, few=True), axis, 5, direction, device, index)


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
def test_every_number_of_elements(
    length: int, k: int, type: str, direction: AxisDirection, device: str
) -> None:
    _check(_values(type, 2, length, few=length < 64), 1, k, direction, device)


@every_device
@every_direction
@pytest.mark.parametrize("type", ["FLOAT16", "UINT8", "UINT64"])
@pytest.mark.parametrize(("length", "k"), [(1000, 5), (1003, 20), (5000, 3)])
def test_lines_in_order_and_of_equal_elements(
    length: int, k: int, type: str, direction: AxisDirection, device: str
) -> None:
    x = np.sort(_values(type, 2, length), 1)
    for each in (x, np.ascontiguousarray(x[:, ::-1]), _values(type, 2, length, few=True)):
        _check(each, 1, k, direction, device)


@every_device
@every_direction
@pytest.mark.parametrize("type", ["FLOAT32", "UINT64"])
def test_long_lines(type: str, direction: AxisDirection, device: str) -> None:
    x = _values(type, 2, 200_001)
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
