"""Gradients of aligned regions against differences of the forward formula in float64."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from opendml import descs
from opendml.runtime.memory.host_array import Array
from tests.operators.gradients import by_differences
from tests.operators.test_regions import MAX, NEAREST, _aligned, _Form
from tests.running import device_kinds, on_arrays
from tests.tolerances import assert_within

every_device = pytest.mark.parametrize("device", device_kinds())
# Samples are neither on elements nor at the bounds, where the samples have no derivative.
REGIONS = np.array(
    [
        [0.3, 0.4, 4.1, 3.2],
        [1.13, 1.07, 2.9, 2.2],
        [-2.23, -1.61, 3.37, 2.76],
        [3.7, 2.9, 0.6, 0.35],
        [0.3, 0.4, 4.1, 3.2],
        [-9.3, -9.1, -8.2, -8.4],
    ],
    np.float32,
)
BATCHES = np.array([0, 1, 1, 0, 0, 5], np.uint32)
FORMS = [
    _Form(size=(2, 3)),
    _Form(reduction_function=MAX, maximum_samples_per_output=2, size=(3, 2)),
    _Form(interpolation_mode=NEAREST, input_pixel_offset=0.0, output_pixel_offset=-0.375),
    _Form(align_regions_to_corners=True, input_pixel_offset=0.0, output_pixel_offset=0.0, size=(3, 2)),
    _Form(align_regions_to_corners=True, maximum_samples_per_output=1, size=(1, 1)),
    _Form(reduction_function=MAX, interpolation_mode=NEAREST, minimum_samples_per_output=3, size=(1, 2)),
]
TYPES = ["float32"] * len(FORMS) + ["float16"]


def _without_outside(form: _Form) -> _Form:
    return _Form(size=form.size, **(form.attributes | {"out_of_bounds_input_value": 0.0}))


def _given(form: _Form, type: Any) -> tuple[Array, Array]:
    """An image, and what comes to the regions' outputs."""
    generator = np.random.default_rng(8)
    image, incoming = (2, 2, 4, 5), (len(REGIONS), 2, *form.size)
    return generator.uniform(-2, 2, image).astype(type), generator.normal(size=incoming).astype(type)


def _run(form: _Form, inputs: list[Any], outputs: list[Any], device: str) -> list[Array]:
    attributes = {
        name: value for name, value in form.attributes.items() if name != "out_of_bounds_input_value"
    }
    return on_arrays(descs.RoiAlignGrad, inputs, outputs, device, **attributes)


@cache
def _by_differences(number: int, type: str) -> tuple[Array, Array]:
    form = _without_outside(FORMS[number])
    x, incoming = _given(form, type)
    regions = REGIONS.astype(type)
    return (
        by_differences(lambda x: _aligned(x, regions, BATCHES, form), x, incoming),
        by_differences(lambda regions: _aligned(x, regions, BATCHES, form), regions, incoming),
    )


@every_device
@pytest.mark.parametrize(("number", "type"), [(n % len(FORMS), type) for n, type in enumerate(TYPES)])
def test_gradients(number: int, type: str, device: str) -> None:
    form = _without_outside(FORMS[number])
    x, incoming = _given(form, type)
    expected = _by_differences(number, type)
    inputs = [x, incoming, REGIONS.astype(type), BATCHES]
    found = _run(form, inputs, [each.astype(type) for each in expected], device)
    for result, wanted in zip(found, expected, strict=True):
        assert_within("ROI_ALIGN_GRAD", result, wanted)


@every_device
def test_either_gradient_alone_is_the_same(device: str) -> None:
    form = _without_outside(FORMS[0])
    x, incoming = _given(form, np.float32)
    inputs, outputs = [x, incoming, REGIONS, BATCHES], [x, REGIONS]
    both = _run(form, inputs, outputs, device)
    (of_image,) = _run(form, [None, *inputs[1:]], [x, None], device)
    (of_regions,) = _run(form, inputs, [None, REGIONS], device)
    np.testing.assert_array_equal(of_image, both[0])
    np.testing.assert_array_equal(of_regions, both[1])


@every_device
@pytest.mark.parametrize("size", [1e-40, 1e-20, 1e30, 0.0])
def test_gradients_of_any_magnitude(size: float, device: str) -> None:
    form = _without_outside(FORMS[0])
    x, incoming = _given(form, np.float32)
    small = (incoming * np.float32(size)).astype(np.float32)
    (one,), (other,) = (
        _run(form, [None, each, REGIONS, BATCHES], [x, None], device) for each in (incoming, small)
    )
    np.testing.assert_allclose(
        other, one * np.float64(size), rtol=1e-5 if size != 1e-40 else 1e-2, atol=3e-45
    )


@every_device
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_not_finite_makes_nan_of_all(value: float, device: str) -> None:
    form = _without_outside(FORMS[0])
    x, incoming = _given(form, np.float32)
    incoming[0, 0, 0, 0] = value
    (result,) = _run(form, [None, incoming, REGIONS, BATCHES], [x, None], device)
    assert np.isnan(result).all()


@every_device
def test_the_first_of_several_greatest_samples_has_the_gradient(device: str) -> None:
    form = _Form(
        size=(1, 1), reduction_function=MAX, interpolation_mode=NEAREST, minimum_samples_per_output=3
    )
    region, batch = np.array([[0, 0, 3, 3]], np.float32), np.zeros(1, np.uint32)
    for greatest in (1.0, np.nan):
        x = np.array([[0, 0, 0], [0, greatest, greatest], [greatest, 0, 0]], np.float32).reshape(1, 1, 3, 3)
        expected = np.zeros_like(x)
        expected[0, 0, 1, 1] = 5
        inputs = [x, np.full((1, 1, 1, 1), 5, np.float32), region, batch]
        (result,) = _run(form, inputs, [x, None], device)
        np.testing.assert_array_equal(result, expected)
