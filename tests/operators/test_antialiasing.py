"""Antialiased resampling against its formula in float64 and PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opendml import descs
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from tests.operators.test_resampling import (
    DOWN,
    FORMS,
    LINEAR,
    NEAREST,
    UP,
    _attributes,
    _coordinates,
    _linear,
    _values,
)
from tests.pairwise import pairwise
from tests.running import device_kinds, on_arrays
from tests.tolerances import assert_within

every_device = pytest.mark.parametrize("device", device_kinds())
SHRINKING = [
    ((9,), (3,), (1 / 3,), (0.5,), (-0.5,)),
    ((40,), (4,), (0.1,), (0.5,), (-0.5,)),
    ((12, 30), (9, 7), (0.75, 0.25), (0.5, 0.0), (-0.5, 0.0)),
    ((16, 5), (4, 5), (0.2, 0.5), (3.5, 0.5), (0.0, -0.5)),
    ((6,), (3,), (1e-3,), (-2.0,), (-0.5,)),
    ((2, 3, 21, 17), (2, 3, 5, 8), (1.0, 1.0, 5 / 21, 8 / 17), (0.5,) * 4, (-0.5,) * 4),
]
every_form = pytest.mark.parametrize("form", SHRINKING, ids=str)


def _filtered(x: Array, form: Any) -> Array:
    _, sizes, *numbers = form
    x = x.astype(np.float64)
    scales = np.asarray(numbers[0], np.float32)
    for axis in np.argsort(scales, kind="stable"):
        if scales[axis] < 0.5:
            places = _coordinates(sizes[axis], *(each[axis] for each in numbers)).astype(np.float64)
            places = np.clip(places, 0, x.shape[axis] - 1)
            distances = np.abs(np.arange(x.shape[axis]) - places[:, None])
            weights = np.maximum(0, 1 - distances * np.float64(scales[axis]))
            weights /= weights.sum(axis=1, keepdims=True)
            x = np.moveaxis(np.tensordot(weights, x, axes=(1, axis)), 0, axis)
            numbers = [
                [*each[:axis], own, *each[axis + 1 :]]
                for each, own in zip(numbers, (1.0, 0.0, 0.0), strict=True)
            ]
    return _linear(x, (None, sizes, *numbers))


@pairwise(device=device_kinds(), type=["FLOAT32", "FLOAT16"], form=SHRINKING)
def test_means_of_all_that_an_element_stands_for(form: Any, type: str, device: str) -> None:
    x = _values(type, form[0])
    expected = _filtered(x, form)
    attributes = _attributes(form, LINEAR) | {"rounding_direction": UP, "antialiased": True}
    (result,) = on_arrays(descs.Resample3, [x], [expected.astype(x.dtype)], device, **attributes)
    assert_within("RESAMPLE3", result, expected)


@pairwise(device=device_kinds(), type=["INT8", "UINT8"], form=SHRINKING)
def test_means_of_integers_are_truncated(form: Any, type: str, device: str) -> None:
    dtype = ScalarType[type].numpy
    x = np.random.default_rng(0).integers(-100 if type == "INT8" else 0, 100, form[0], dtype)
    attributes = _attributes(form, LINEAR) | {"rounding_direction": UP, "antialiased": True}
    exact = _filtered(x, form)
    (result,) = on_arrays(descs.Resample3, [x], [exact.astype(dtype)], device, **attributes)
    # One that is almost whole may be on either side.
    assert ((result == np.trunc(exact + 1e-4)) | (result == np.trunc(exact - 1e-4))).all()
    (result,) = on_arrays(descs.Resample3, [x * 0 + 99], [exact.astype(dtype)], device, **attributes)
    np.testing.assert_array_equal(result, 99)


@pairwise(
    device=device_kinds(),
    antialiased=[False, True],
    form=[form for form in FORMS if min(form[2]) >= 0.5],
)
def test_nothing_is_filtered_where_scales_are_not_below_a_half(
    form: Any, antialiased: bool, device: str
) -> None:
    x = _values("FLOAT32", form[0])
    for mode in (LINEAR, NEAREST):
        attributes = _attributes(form, mode) | {"rounding_direction": DOWN}
        made = [np.zeros(form[1], np.float32)]
        (expected,) = on_arrays(descs.Resample2, [x], made, device, **attributes)
        (result,) = on_arrays(descs.Resample3, [x], made, device, antialiased=antialiased, **attributes)
        np.testing.assert_array_equal(result, expected)


@every_device
def test_nearest_neighbors_are_never_filtered(device: str) -> None:
    form = SHRINKING[0]
    x = _values("FLOAT32", form[0])
    attributes = _attributes(form, NEAREST) | {"rounding_direction": DOWN}
    made = [np.zeros(form[1], np.float32)]
    (expected,) = on_arrays(descs.Resample2, [x], made, device, **attributes)
    (result,) = on_arrays(descs.Resample3, [x], made, device, antialiased=True, **attributes)
    np.testing.assert_array_equal(result, expected)


@every_device
def test_means_agree_with_pytorch(device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    form = SHRINKING[-1]
    x = _values("FLOAT32", form[0])
    expected = torch.nn.functional.interpolate(
        torch.from_numpy(x.astype(np.float64)), form[1][2:], mode="bilinear", antialias=True
    ).numpy()
    attributes = _attributes(form, LINEAR) | {"rounding_direction": UP, "antialiased": True}
    (result,) = on_arrays(descs.Resample3, [x], [expected.astype(np.float32)], device, **attributes)
    assert_within("RESAMPLE3", result, expected)


@every_device
def test_what_has_no_weight_does_not_count(device: str) -> None:
    x = np.ones(20, np.float32)
    x[-1] = np.inf
    form = ((20,), (4,), (0.2,), (0.5,), (-0.5,))
    attributes = _attributes(form, LINEAR) | {"rounding_direction": UP, "antialiased": True}
    (result,) = on_arrays(descs.Resample3, [x], [np.zeros(4, np.float32)], device, **attributes)
    np.testing.assert_array_equal(result, [1, 1, 1, np.inf])
