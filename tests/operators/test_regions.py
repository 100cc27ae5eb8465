"""Pooled and aligned regions and their gradients against their formulas in float64."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendml as dml
from opendml import FLOAT32, TensorDesc, descs
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import InterpolationMode, ReduceFunction
from opendml.spec.operator_desc import Size2D
from opendml.targets.common.pattern import Step
from opendml.targets.cpu.pattern import CpuMode
from tests.operators.gradients import by_differences
from tests.pairwise import pairwise
from tests.peers.peer import examples
from tests.running import device_kinds, launches, on_arrays
from tests.tolerances import assert_within

every_device = pytest.mark.parametrize("device", device_kinds())
types = pytest.mark.parametrize("type", [np.float32, np.float16])
AVERAGE, MAX = ReduceFunction.AVERAGE, ReduceFunction.MAX
NEAREST, LINEAR = InterpolationMode.NEAREST_NEIGHBOR, InterpolationMode.LINEAR

IMAGE = (2, 3, 7, 9)
# Corners x1, y1, x2, y2: within the image, an element, beyond its ends, inverted, empty, and far away.
CORNERS = [
    [0, 0, 8, 6],
    [2, 1, 2, 1],
    [1.5, 2.5, 6.5, 3.25],
    [-3, -2, 4, 3],
    [5, 4, 20, 11],
    [6, 5, 1, 2],
    [3.3, 3.3, 3.3, 3.3],
    [-90, -80, -70, -60],
]


def _image(type: Any, channels: int = IMAGE[1]) -> Array:
    return np.random.default_rng(0).uniform(-2, 2, (IMAGE[0], channels, *IMAGE[2:])).astype(type)


def _regions(type: Any) -> Array:
    return np.array(CORNERS).astype(type)


def _batches(count: int, type: Any = np.uint32) -> Array:
    return (np.arange(count) % IMAGE[0]).astype(type)


def _pooled(x: Array, regions: Array, size: tuple[int, int], scale: float) -> Array:
    result = np.empty((len(regions), x.shape[1], *size), x.dtype)
    for number, (batch, *corners) in enumerate(regions.astype(np.float64)):
        x1, y1, x2, y2 = (math.floor(corner * scale + 0.5) for corner in corners)
        ranges = []
        for low, high, extent, bins in ((y1, y2, x.shape[2], size[0]), (x1, x2, x.shape[3], size[1])):
            low, high = (min(max(at, 0), extent - 1) for at in (low, high))
            span = max(high - low, 0) + 1
            ranges.append([(low + k * span // bins, low + -(-(k + 1) * span // bins)) for k in range(bins)])
        for row, column in np.ndindex(*size):
            own = tuple(slice(*each) for each in (ranges[0][row], ranges[1][column]))
            at = min(max(int(batch), 0), x.shape[0] - 1)
            result[number, :, row, column] = x[(at, slice(None), *own)].max(axis=(1, 2))
    return result


@pairwise(
    device=device_kinds(),
    type=[np.float32, np.float16],
    scale=[1.0, 0.5],
    channels=[3, 20],
    size=[(2, 3), (1, 1), (7, 9), (10, 4)],
)
def test_pooling(size: tuple[int, int], channels: int, scale: float, type: Any, device: str) -> None:
    x = _image(type, channels)
    batches = np.array([0, 1, 1, 0, 1.75, -1, 7, 0])
    regions = np.concatenate([batches[:, None], np.array(CORNERS)], axis=1).astype(type)
    expected = _pooled(x, regions, size, scale)
    attributes = {"spatial_scale": scale, "pooled_size": Size2D(width=size[1], height=size[0])}
    inputs = [x, regions.reshape(1, 1, -1, 5)]
    (result,) = on_arrays(descs.RoiPooling, inputs, [expected], device, **attributes)
    np.testing.assert_array_equal(result, expected)


def test_parts_of_a_wide_region_end_where_they_should() -> None:
    """The number of a part times the width of the region is more than INT32 holds."""
    width, parts = 1_000_000, 4096
    x = np.arange(width, dtype=np.float32).reshape(1, 1, 1, width)
    region = np.array([0, 0, 0, width - 1, 0], np.float32).reshape(1, 1, 1, 5)
    pooled = dml.roi_pooling(x, region, spatial_scale=1.0, pooled_size=Size2D(parts, 1)).ravel()
    np.testing.assert_array_equal(pooled, -(-np.arange(1, parts + 1) * width // parts) - 1)


@every_device
def test_pooled_nan_is_the_greatest(device: str) -> None:
    x = np.array([[[[1, np.nan, np.inf, -np.inf]]]], np.float32)
    regions = np.array([[[[0, 0, 0, 3, 0]]]], np.float32)
    attributes = {"spatial_scale": 1.0, "pooled_size": Size2D(width=4, height=1)}
    (result,) = on_arrays(descs.RoiPooling, [x, regions], [x], device, **attributes)
    np.testing.assert_array_equal(result, x)


class _Form:
    """Attributes of ROI_ALIGN1 without the scales, which are 1, and the outputs' height and width."""

    def __init__(self, **changed: Any) -> None:
        self.size: tuple[int, int] = changed.pop("size", (2, 3))
        self.attributes: dict[str, Any] = {
            "reduction_function": AVERAGE,
            "interpolation_mode": LINEAR,
            "spatial_scale_x": 1.0,
            "spatial_scale_y": 1.0,
            "input_pixel_offset": 0.5,
            "output_pixel_offset": -0.5,
            "out_of_bounds_input_value": 7.0,
            "minimum_samples_per_output": 1,
            "maximum_samples_per_output": 2**32 - 1,
            "align_regions_to_corners": False,
        } | changed

    def __str__(self) -> str:
        return f"{self.size}"


def _samples(low: float, high: float, bins: int, size: int, form: _Form) -> list[list[float]]:
    """Of each output along an axis the places of its samples."""
    given = form.attributes
    least, most = given["minimum_samples_per_output"], given["maximum_samples_per_output"]
    most = max(least, min(most, math.ceil(size / bins)))
    extent = high - low
    count = max(1, min(max(math.ceil(abs(extent) / bins), least), most))
    total = bins * count
    places = []
    for sample in range(total):
        place = sample - given["output_pixel_offset"]
        if not given["align_regions_to_corners"]:
            place *= extent / total
        elif total == 1:
            place = extent / 2
        else:
            place *= extent / (total - 1)
        places.append(low + place - given["input_pixel_offset"])
    return [places[k * count : (k + 1) * count] for k in range(bins)]


def _value(image: Array, y: float, x: float, form: _Form) -> Array:
    """Of each channel."""
    height, width = image.shape[1:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.full(len(image), form.attributes["out_of_bounds_input_value"])
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    if form.attributes["interpolation_mode"] is NEAREST:
        return np.asarray(image[:, math.floor(y + 0.5), math.floor(x + 0.5)])
    top, left = math.floor(y), math.floor(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    upper = image[:, top, left] * (1 - (x - left)) + image[:, top, right] * (x - left)
    lower = image[:, bottom, left] * (1 - (x - left)) + image[:, bottom, right] * (x - left)
    return np.asarray(upper * (1 - (y - top)) + lower * (y - top))


def _aligned(x: Array, regions: Array, batches: Array, form: _Form) -> Array:
    image = x.astype(np.float64)
    result = np.empty((len(regions), x.shape[1], *form.size))
    reduced = np.mean if form.attributes["reduction_function"] is AVERAGE else np.max
    for number, (x1, y1, x2, y2) in enumerate(regions.astype(np.float64)):
        rows = _samples(y1, y2, form.size[0], x.shape[2], form)
        columns = _samples(x1, x2, form.size[1], x.shape[3], form)
        own = image[min(int(batches[number]), len(image) - 1)]
        for row, column in np.ndindex(*form.size):
            values = [_value(own, y, x, form) for y in rows[row] for x in columns[column]]
            result[number, :, row, column] = reduced(values, axis=0)
    return result


def _check(form: _Form, regions: Array, type: Any, device: str, channels: int = IMAGE[1]) -> None:
    x, batches = _image(type, channels), _batches(len(regions))
    expected = _aligned(x, regions, batches, form)
    inputs = [x, regions.astype(type), batches]
    made = [expected.astype(type)]
    (result,) = on_arrays(descs.RoiAlign1, inputs, made, device, **form.attributes)
    assert_within("ROI_ALIGN1", result, expected)


@pairwise(
    device=device_kinds(),
    type=[np.float32, np.float16],
    form=[
        _Form(),
        _Form(reduction_function=MAX),
        _Form(interpolation_mode=NEAREST, input_pixel_offset=0.0, output_pixel_offset=-0.375),
        _Form(minimum_samples_per_output=3, maximum_samples_per_output=3, size=(3, 2)),
        _Form(minimum_samples_per_output=0, maximum_samples_per_output=1, size=(1, 1)),
        _Form(align_regions_to_corners=True, input_pixel_offset=0.0, output_pixel_offset=0.0, size=(3, 4)),
        _Form(align_regions_to_corners=True, maximum_samples_per_output=1, size=(1, 1)),
        _Form(reduction_function=MAX, maximum_samples_per_output=2, size=(12, 5)),
    ],
    channels=[3, 20],
)
def test_alignment(form: _Form, channels: int, type: Any, device: str) -> None:
    _check(form, _regions(type), type, device, channels)


def test_many_channels_are_read_beside_each_other() -> None:
    """Unless regions are too few to be worth it."""
    image = TensorDesc(FLOAT32, [1, 32, 40, 40])
    for count in (40, 1):
        regions, pooled = TensorDesc(FLOAT32, [1, 1, count, 5]), TensorDesc(FLOAT32, [count, 32, 3, 3])
        desc = descs.RoiPooling(image, regions, pooled, spatial_scale=1.0, pooled_size=Size2D(3, 3))
        patterns = [launch.pattern for launch in launches(desc)]
        assert any(pattern.mode is CpuMode.TRANSPOSED for pattern in patterns) is (count == 40)
        loads = [
            load for pattern in patterns if getattr(pattern.walk, "bounded", ()) for load in pattern.loads
        ]
        steps = {load.step for load in loads if load.type is ScalarType.FLOAT32}
        assert steps <= {Step.NONE, Step.CONTIGUOUS} or count == 1


@every_device
def test_batches_of_either_type_and_the_last_for_those_that_are_not_there(device: str) -> None:
    x, regions = _image(np.float32), np.array([[0, 0, 8, 6]] * 3, np.float32)
    form = _Form()
    for type in (np.uint32, np.uint64):
        batches = np.array([0, 1, np.iinfo(type).max], type)
        expected = _aligned(x, regions, np.minimum(batches, 1), form)
        made = [expected.astype(np.float32)]
        (result,) = on_arrays(descs.RoiAlign1, [x, regions, batches], made, device, **form.attributes)
        assert_within("ROI_ALIGN1", result, expected)


@every_device
@given(data=st.data())
@examples
def test_any_alignment(device: str, data: st.DataObject) -> None:
    # Sixteenths are exact, so that no sample count is at the mercy of a rounding.
    corner = st.integers(-64, 256).map(lambda number: number / 16)
    regions = np.array([[data.draw(corner) for _ in range(4)] for _ in range(3)], np.float32)
    least = data.draw(st.integers(0, 3))
    form = _Form(
        size=(data.draw(st.sampled_from([1, 2, 4, 8])), data.draw(st.sampled_from([1, 2, 4]))),
        reduction_function=data.draw(st.sampled_from([AVERAGE, MAX])),
        minimum_samples_per_output=least,
        maximum_samples_per_output=data.draw(st.integers(max(least, 1), 9)),
        input_pixel_offset=data.draw(st.sampled_from([0.0, 0.5])),
        align_regions_to_corners=data.draw(st.booleans()),
    )
    _check(form, regions, np.float32, device)


@every_device
def test_regions_that_are_not_finite_are_out_of_bounds(device: str) -> None:
    x = _image(np.float32)
    regions = np.array([[np.nan, 0, 8, 6], [0, 0, np.inf, 6], [-np.inf, 0, np.inf, 6]], np.float32)
    for function in (AVERAGE, MAX):
        form = _Form(reduction_function=function, size=(1, 1))
        made = [np.zeros((3, 3, 1, 1), np.float32)]
        inputs = [x, regions, _batches(3)]
        (result,) = on_arrays(descs.RoiAlign1, inputs, made, device, **form.attributes)
        np.testing.assert_array_equal(result, np.full((3, 3, 1, 1), 7))


@every_device
def test_the_elder_form_is_that_of_pixel_centers(device: str) -> None:
    x, regions, batches = _image(np.float32), _regions(np.float32), _batches(len(CORNERS))
    form = _Form()
    elder = dict(form.attributes)
    for name in ("input_pixel_offset", "output_pixel_offset", "align_regions_to_corners"):
        del elder[name]
    made = [np.zeros((len(CORNERS), 3, *form.size), np.float32)]
    (result,) = on_arrays(descs.RoiAlign, [x, regions, batches], made, device, **elder)
    (newer,) = on_arrays(descs.RoiAlign1, [x, regions, batches], made, device, **form.attributes)
    np.testing.assert_array_equal(result, newer)


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
    _Form(reduction_function=MAX, interpolation_mode=NEAREST, minimum_samples_per_output=3, size=(1, 1)),
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
