"""Columns of windows, and images of such columns, element by element."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import descs
from opendml.runtime.memory.host_array import Array
from tests.running import device_kinds, on_arrays
from tests.tolerances import assert_within

every_device = pytest.mark.parametrize("device", device_kinds())
every_float = pytest.mark.parametrize("type", ["float32", "float16"])
# Sizes of the image, windows, strides, dilations, padding before and after.
WINDOWS = [
    ((5, 7), (3, 2), (1, 1), (1, 1), (1, 0), (0, 1)),
    ((9, 8), (3, 3), (2, 3), (1, 1), (0, 1), (1, 2)),
    ((8, 6), (2, 2), (2, 2), (1, 1), (0, 0), (0, 0)),
    ((11, 7), (2, 3), (1, 1), (3, 2), (2, 0), (0, 2)),
    ((12, 9), (3, 2), (2, 3), (3, 2), (1, 2), (2, 1)),
    ((6,), (3,), (4,), (1,), (1,), (2,)),
    ((4, 5, 6), (2, 3, 2), (1, 2, 2), (2, 1, 1), (0, 1, 0), (1, 0, 1)),
]
every_window = pytest.mark.parametrize("windows", WINDOWS, ids=str)
Windows = tuple[tuple[int, ...], ...]


def _places(windows: Windows) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """The element of a window, the number of the window, and its place, of all in the image."""
    image, extents, strides, dilations, before, _ = windows
    counts = _counts(windows)
    for number, block in enumerate(itertools.product(*map(range, counts))):
        for element, tap in enumerate(itertools.product(*map(range, extents))):
            place = tuple(
                b * stride + t * dilation - start
                for b, t, stride, dilation, start in zip(block, tap, strides, dilations, before, strict=True)
            )
            if all(0 <= p < size for p, size in zip(place, image, strict=True)):
                yield element, number, place


def _counts(windows: Windows) -> list[int]:
    return [
        (size + start + end - dilation * (extent - 1) - 1) // stride + 1
        for size, extent, stride, dilation, start, end in zip(*windows, strict=True)
    ]


def _attributes(windows: Windows) -> dict[str, Sequence[int]]:
    names = ("window_sizes", "strides", "dilations", "start_padding", "end_padding")
    return dict(zip(names, windows[1:], strict=True))


def _columns(windows: Windows, type: str) -> Array:
    rows, count = int(np.prod(windows[1])), int(np.prod(_counts(windows)))
    return np.zeros((2, 3 * rows, count), type)


@every_device
@every_float
@every_window
def test_unfold_takes_each_window(windows: Windows, type: str, device: str) -> None:
    x = np.random.default_rng(1).integers(1, 100, (2, 3, *windows[0])).astype(type)
    expected = _columns(windows, type)
    rows = int(np.prod(windows[1]))
    for element, number, place in _places(windows):
        for channel in range(3):
            expected[:, channel * rows + element, number] = x[:, channel][(slice(None), *place)]
    (result,) = on_arrays(descs.Unfold, [x], [expected], device, **_attributes(windows))
    np.testing.assert_array_equal(result, expected)


@every_device
@every_float
@every_window
def test_fold_adds_up_what_unfold_takes(windows: Windows, type: str, device: str) -> None:
    x: Array = _columns(windows, type)
    x[...] = np.random.default_rng(2).integers(1, 20, x.shape)
    expected = np.zeros((2, 3, *windows[0]), type)
    rows = int(np.prod(windows[1]))
    for element, number, place in _places(windows):
        for channel in range(3):
            expected[:, channel][(slice(None), *place)] += x[:, channel * rows + element, number]
    (result,) = on_arrays(descs.Fold, [x], [expected], device, **_attributes(windows))
    np.testing.assert_array_equal(result, expected)


@every_device
@pytest.mark.parametrize("windows", [((9, 8), (3, 2), (2, 3), (2, 1), (1, 2), (1, 2)), WINDOWS[2]], ids=str)
def test_they_agree_with_pytorch(windows: Windows, device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    image, extents, strides, dilations, before, _ = windows
    more: dict[str, Any] = {"dilation": dilations, "padding": before, "stride": strides}
    x = np.random.default_rng(3).normal(size=(2, 3, *image)).astype("f4")
    columns = torch.nn.functional.unfold(torch.from_numpy(x), extents, **more)
    attributes = _attributes(windows)
    (result,) = on_arrays(descs.Unfold, [x], [columns.numpy()], device, **attributes)
    np.testing.assert_array_equal(result, columns.numpy())
    folded = torch.nn.functional.fold(columns.double(), image, extents, **more).numpy()
    (result,) = on_arrays(descs.Fold, [columns.numpy()], [folded.astype("f4")], device, **attributes)
    assert_within("FOLD", result, folded)


def test_all_but_the_windows_may_be_left_out() -> None:
    columns = np.ones((1, 2, 6), np.float32)
    result = dml.fold(columns, window_sizes=[2, 1], sizes=[1, 1, 3, 3])
    np.testing.assert_array_equal(result[0, 0], [[1] * 3, [2] * 3, [1] * 3])
