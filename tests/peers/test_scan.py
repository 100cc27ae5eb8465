"""Running sums and products against NumPy and ONNX."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given

from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import AxisDirection
from tests.tolerances import assert_within

from .onnx_peer import PEERS, onnx_result
from .peer import DEVICES, FLOATS, Random, computed, exact, examples, seeds

SCANS: dict[str, Callable[..., Array]] = {"CUMULATIVE_SUMMATION": np.cumsum, "CUMULATIVE_PRODUCT": np.cumprod}
EXCLUSIVE = {"CUMULATIVE_SUMMATION": "has_exclusive_sum", "CUMULATIVE_PRODUCT": "has_exclusive_product"}


def _scanned(operator: str, x: Array, axis: int, direction: AxisDirection, exclusive: bool) -> Array:
    lines = np.moveaxis(x, axis, -1)
    if direction is AxisDirection.DECREASING:
        lines = lines[..., ::-1]
    if exclusive:
        first = np.full_like(lines[..., :1], 0 if operator == "CUMULATIVE_SUMMATION" else 1)
        lines = np.concatenate([first, lines[..., :-1]], -1)
    with np.errstate(all="ignore"):
        lines = SCANS[operator](lines, -1, dtype=x.dtype)
    if direction is AxisDirection.DECREASING:
        lines = lines[..., ::-1]
    result: Array = np.moveaxis(lines, -1, axis)
    return result


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("direction", AxisDirection, ids=lambda direction: direction.name.lower())
@pytest.mark.parametrize("operator", SCANS)
@given(random=seeds)
@examples
def test_scans_agree_with_numpy(
    operator: str, direction: AxisDirection, exclusive: bool, device: str, random: Random
) -> None:
    shape = random.shape()
    axis = int(random.generator.integers(len(shape)))
    dtype = random.of_type((*FLOATS, "int32", "int64", "uint32", "uint64"))
    # Sums of numbers with one sign do not cancel: the order of addition leaves float64 sums alike.
    x = (
        random.values(dtype, shape, 0.5, 1.5, special=False)
        if dtype.kind == "f"
        else random.full(dtype, shape)
    )
    expected = _scanned(operator, exact(x) if dtype.kind == "f" else x, axis, direction, exclusive)
    attributes = {"axis": axis, "axis_direction": direction, EXCLUSIVE[operator]: exclusive}
    assert_within(operator, computed(operator, x, device=device, **attributes), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("operator", SCANS)
@pytest.mark.parametrize("sizes", [(1, 3, 1, 1, 2), (1,), (1, 5), (5, 1)])
def test_scans_along_one_element(sizes: tuple[int, ...], operator: str, exclusive: bool, device: str) -> None:
    x = Random(0).values(np.dtype("float32"), sizes, 0.5, 1.5, special=False)
    for axis in [axis for axis, size in enumerate(sizes) if size == 1]:
        expected = _scanned(operator, x, axis, AxisDirection.INCREASING, exclusive)
        attributes = {
            "axis": axis,
            "axis_direction": AxisDirection.INCREASING,
            EXCLUSIVE[operator]: exclusive,
        }
        np.testing.assert_array_equal(computed(operator, x, device=device, **attributes), expected)


@pytest.mark.parametrize("peer", PEERS)
@given(random=seeds)
@examples
def test_running_sums_agree_with_onnx(peer: str, random: Random) -> None:
    shape = random.shape()
    axis = int(random.generator.integers(len(shape)))
    exclusive, reverse = random.generator.integers(2, size=2).tolist()
    x = random.values(np.dtype("float32"), shape, 0, 1, special=False)
    inputs = [x, np.array(axis, np.int64)]
    expected = onnx_result(peer, "CumSum", inputs, "float32", exclusive=exclusive, reverse=reverse)
    direction = AxisDirection.DECREASING if reverse else AxisDirection.INCREASING
    attributes = {"axis": axis, "axis_direction": direction, "has_exclusive_sum": bool(exclusive)}
    result = computed("CUMULATIVE_SUMMATION", x, device="reference", **attributes)
    assert_within("CUMULATIVE_SUMMATION", result, expected, peer=True)
