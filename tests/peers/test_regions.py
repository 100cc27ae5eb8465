"""Aligned regions against torchvision; pooled and aligned regions against ONNX, and antialiased resampling
against PyTorch, where they differ."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from opendml import descs
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import AxisDirection, InterpolationMode, ReduceFunction
from opendml.spec.operator_desc import Size2D
from tests.running import on_arrays
from tests.tolerances import assert_within
from tests.vision import roi_align

from .deviations import deviation
from .onnx_peer import PEERS, onnx_result
from .peer import DEVICES, Random, computed, exact, examples, seeds

IMAGE = np.random.default_rng(0).uniform(-2, 2, (1, 3, 8, 8)).astype(np.float32)
BINS = 4
ALIGNED: dict[str, Any] = {
    "reduction_function": ReduceFunction.AVERAGE,
    "interpolation_mode": InterpolationMode.LINEAR,
    "out_of_bounds_input_value": 0.0,
}
AS_NEEDED = {"minimum_samples_per_output": 1, "maximum_samples_per_output": 2**32 - 1}


def _moved_inside(regions: Array) -> Array:
    """Regions with the nearest corners within the image."""
    return np.concatenate([regions[:, :1], np.clip(regions[:, 1:], 0, IMAGE.shape[2] - 1)], axis=1)


def _no_more_samples(asked: int) -> int:
    """The samples of a region as large as the image, where there are as many as needed."""
    return asked or math.ceil(IMAGE.shape[2] / BINS)


def _one_of_an_empty_region(asked: int) -> int:
    """The samples of a region without height or width, where there are as many as needed."""
    return asked or 1


def _unfiltered(antialiased: bool) -> bool:
    return False


corners_within = deviation("ROI_POOLING", "regions beyond the input", _moved_inside)
samples_of = {
    name: deviation(name, "regions larger than the input", _no_more_samples)
    for name in ("ROI_ALIGN", "ROI_ALIGN1")
}
samples_of_empty = {
    name: deviation(name, "empty regions, as many samples as needed", _one_of_an_empty_region)
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


def _require_alike(name: str, peer: str, device: str, regions: Array, samples: int) -> None:
    """Regions of one image, aligned with as many samples as needed, and by a peer with so many."""
    batches = np.zeros(len(regions), np.int64)
    expected = onnx_result(
        peer,
        "RoiAlign",
        [IMAGE, regions, batches],
        "float32",
        output_height=BINS,
        output_width=BINS,
        sampling_ratio=samples,
        spatial_scale=1.0,
    )
    result = _aligned(name, IMAGE, regions, batches, expected.shape, device, **AS_NEEDED)
    assert_within(name, result, expected, peer=True)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("name", samples_of)
def test_great_regions_have_the_samples_of_the_image(name: str, peer: str, device: str) -> None:
    regions = np.array([[-9, -8, 19, 18]], np.float32)
    _require_alike(name, peer, device, regions, samples_of[name](0))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("name", samples_of_empty)
def test_empty_regions_have_a_sample(name: str, peer: str, device: str) -> None:
    """Their sides that are not empty are below four bins of one element, so they need one sample too."""
    regions = np.array([[1, 2, 4, 2], [3, 1, 3, 5], [3, 3, 3, 3]], np.float32)
    _require_alike(name, peer, device, regions, samples_of_empty[name](0))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("aligned", [True, False])
@given(random=seeds)
@examples
def test_regions_are_aligned_as_in_torchvision(device: str, aligned: bool, random: Random) -> None:
    """Regions within the image, of one element at least: torchvision as it is written in Python takes nothing
    to be out of bounds, and where it does not align, it widens smaller ones."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    dtype = random.of_type(("float32", "float16"))
    x = random.values(dtype, (2, 3, 9, 11), -4, 4, special=False)
    scale = float(random.generator.choice([0.25, 0.5, 1, 2]))
    first = random.generator.integers(0, 6 * 8, (4, 2)) / 8
    last = np.minimum(first + random.generator.integers(8, 8 * 8, (4, 2)) / 8, (11, 9))
    regions = (np.concatenate([first, last], axis=1) / scale).astype(dtype)
    batches = random.generator.integers(0, 2, 4)
    height, width, samples = (int(n) for n in random.generator.integers((1, 1, 0), (5, 5, 4)))
    boxes = torch.from_numpy(np.concatenate([batches[:, None], exact(regions)], axis=1))
    expected = roi_align(torch.from_numpy(exact(x)), boxes, (height, width), scale, samples, aligned).numpy()
    asked = {f"{end}_samples_per_output": samples for end in ("minimum", "maximum")} if samples else AS_NEEDED
    for name in ("ROI_ALIGN", "ROI_ALIGN1") if aligned else ("ROI_ALIGN1",):
        offset = {"input_pixel_offset": 0.5 if aligned else 0.0} if name == "ROI_ALIGN1" else {}
        result = _aligned(name, x, regions, batches, expected.shape, device, scale, **asked, **offset)
        assert_within(name, result, expected)


def _aligned(
    name: str,
    x: Array,
    regions: Array,
    batches: Array,
    sizes: tuple[int, ...],
    device: str,
    scale: float = 1.0,
    **more: Any,
) -> Array:
    if name == "ROI_ALIGN1":
        more = {"input_pixel_offset": 0.5, "output_pixel_offset": -0.5, **more}
    scales = {"spatial_scale_x": scale, "spatial_scale_y": scale}
    inputs = [x, regions, batches.astype(np.uint32)]
    return computed(name, *inputs, device=device, sizes=sizes, **ALIGNED, **scales, **more)


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
    assert_within("RESAMPLE3", result, expected)
