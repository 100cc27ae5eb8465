"""Pooled and aligned regions against ONNX, and antialiased resampling against PyTorch, where they differ."""

from __future__ import annotations

import math

import numpy as np
import pytest

from opendml import descs
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import AxisDirection, InterpolationMode, ReduceFunction
from opendml.spec.operator_desc import Size2D
from tests.running import on_arrays

from .deviations import deviation
from .onnx_peer import PEERS, onnx_result
from .peer import DEVICES

IMAGE = np.random.default_rng(0).uniform(-2, 2, (1, 3, 8, 8)).astype(np.float32)
BINS = 4


def _moved_inside(regions: Array) -> Array:
    """Regions with the nearest corners within the image."""
    return np.concatenate([regions[:, :1], np.clip(regions[:, 1:], 0, IMAGE.shape[2] - 1)], axis=1)


def _no_more_samples(asked: int) -> int:
    """The samples of a region as large as the image, where there are as many as needed."""
    return asked or math.ceil(IMAGE.shape[2] / BINS)


def _unfiltered(antialiased: bool) -> bool:
    return False


corners_within = deviation("ROI_POOLING", "regions beyond the input", _moved_inside)
samples_of = {
    name: deviation(name, "regions larger than the input", _no_more_samples)
    for name in ("ROI_ALIGN", "ROI_ALIGN1")
}
filters = deviation("RESAMPLE3", "scales from 1/2 to 1, antialiased", _unfiltered)


@pytest.mark.parametrize("device", DEVICES)
def test_regions_are_cut_to_the_image_before_they_are_pooled(device: str) -> None:
    regions = np.array([[0, -4, -2, 5, 6], [0, 3, 2, 20, 15]], np.float32)
    inside = corners_within(regions)
    expected = onnx_result("runtime", "MaxRoiPool", [IMAGE, inside], "float32", pooled_shape=[BINS, BINS])
    size = Size2D(width=BINS, height=BINS)
    inputs = [IMAGE, regions.reshape(1, 1, -1, 5)]
    (result,) = on_arrays(descs.RoiPooling, inputs, [expected], device, spatial_scale=1.0, pooled_size=size)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("name", samples_of)
def test_great_regions_have_the_samples_of_the_image(name: str, peer: str, device: str) -> None:
    regions, batches = np.array([[-9, -8, 19, 18]], np.float32), np.array([0])
    expected = onnx_result(
        peer,
        "RoiAlign",
        [IMAGE, regions, batches],
        "float32",
        output_height=BINS,
        output_width=BINS,
        sampling_ratio=samples_of[name](0),
        spatial_scale=1.0,
    )
    attributes = {
        "reduction_function": ReduceFunction.AVERAGE,
        "interpolation_mode": InterpolationMode.LINEAR,
        "spatial_scale_x": 1.0,
        "spatial_scale_y": 1.0,
        "out_of_bounds_input_value": 0.0,
        "minimum_samples_per_output": 1,
        "maximum_samples_per_output": 2**32 - 1,
    }
    desc = descs.RoiAlign if name == "ROI_ALIGN" else descs.RoiAlign1
    inputs = [IMAGE, regions, batches.astype(np.uint32)]
    (result,) = on_arrays(desc, inputs, [expected], device, **attributes)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_nothing_is_filtered_where_no_element_is_missed(device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    wide = torch.from_numpy(IMAGE.astype(np.float64))
    expected = torch.nn.functional.interpolate(wide, (6, 5), mode="bilinear", antialias=filters(True)).numpy()
    (result,) = on_arrays(
        descs.Resample3,
        [IMAGE],
        [expected.astype(np.float32)],
        device,
        interpolation_mode=InterpolationMode.LINEAR,
        rounding_direction=AxisDirection.DECREASING,
        scales=[1, 1, 6 / 8, 5 / 8],
        input_pixel_offsets=[0.5] * 4,
        output_pixel_offsets=[-0.5] * 4,
        antialiased=True,
    )
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
