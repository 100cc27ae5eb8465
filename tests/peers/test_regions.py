"""Regions, pooling, resampling and indexing against PyTorch, ONNX and torchvision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import descs
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import AxisDirection, InterpolationMode, ReduceFunction
from opendml.spec.operator_desc import OperatorDesc, Size2D
from tests.running import on_arrays
from tests.tolerances import assert_within
from tests.vision import roi_align

from .deviations import deviation
from .onnx_peer import PEERS, onnx_result, onnx_results
from .peer import Random, computed, every_device, exact, on_random

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


@every_device
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


@every_device
@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("name", samples_of)
def test_great_regions_have_the_samples_of_the_image(name: str, peer: str, device: str) -> None:
    regions = np.array([[-9, -8, 19, 18]], np.float32)
    _require_alike(name, peer, device, regions, samples_of[name](0))


@every_device
@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("name", samples_of_empty)
def test_empty_regions_have_a_sample(name: str, peer: str, device: str) -> None:
    """Their sides that are not empty are below four bins of one element, so they need one sample too."""
    regions = np.array([[1, 2, 4, 2], [3, 1, 3, 5], [3, 3, 3, 3]], np.float32)
    _require_alike(name, peer, device, regions, samples_of_empty[name](0))


@pytest.mark.parametrize("aligned", [True, False])
@on_random
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


@every_device
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


class _Pooling:
    """A random pooling that PyTorch allows: at most half a window of padding."""

    def __init__(self, random: Random, dilated: bool) -> None:
        draw = random.generator.integers
        self.rank = int(draw(2, 4))
        extents = draw(1, 5, self.rank)
        self.extents: list[int] = extents.tolist()
        self.strides: list[int] = draw(1, 4, self.rank).tolist()
        self.dilations: list[int] = draw(1, 3 if dilated else 2, self.rank).tolist()
        self.padding: list[int] = [int(draw(0, k // 2 + 1)) for k in self.extents]
        image = ((extents - 1) * self.dilations + 1 + draw(0, 5, self.rank)).tolist()
        self.x = random.generator.uniform(-3, 3, (2, 3, *image)).astype(np.float32)

    def by_torch(self, name: str, *arguments: Any, **attributes: Any) -> Any:
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        function = getattr(torch.nn.functional, f"{name}{self.rank}d")
        return function(torch.from_numpy(exact(self.x)), *arguments, self.extents, **attributes)

    def of_magnitudes(self) -> _Pooling:
        """The same of all elements without their signs."""
        other = copy(self)
        other.x = np.abs(self.x)
        return other

    def computed(
        self, desc: type[OperatorDesc], outputs: list[Array], device: str, **more: Any
    ) -> list[Array]:
        attributes: dict[str, Any] = {
            "strides": self.strides,
            "window_size": self.extents,
            "start_padding": self.padding,
            "end_padding": self.padding,
        }
        return on_arrays(desc, [self.x], outputs, device, **attributes, **more)


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("ceil", [False, True])
@on_random
def test_averages_agree_with_pytorch(ceil: bool, include: bool, device: str, random: Random) -> None:
    case = _Pooling(random, dilated=False)
    expected, terms = (
        each.by_torch(
            "avg_pool", stride=case.strides, padding=case.padding, ceil_mode=ceil, count_include_pad=include
        ).numpy()
        for each in (case, case.of_magnitudes())
    )
    made = [expected.astype(np.float32)]
    (result,) = case.computed(descs.AveragePooling, made, device, include_padding=include)
    assert_within("AVERAGE_POOLING", result, expected, terms)


@pytest.mark.parametrize("ceil", [False, True])
@on_random
def test_maxima_agree_with_pytorch(ceil: bool, device: str, random: Random) -> None:
    case = _Pooling(random, dilated=True)
    values, indices = case.by_torch(
        "max_pool",
        stride=case.strides,
        padding=case.padding,
        dilation=case.dilations,
        ceil_mode=ceil,
        return_indices=True,
    )
    # PyTorch numbers the elements of each channel by itself.
    batches, channels, *image = case.x.shape
    first = np.arange(batches * channels).reshape(batches, channels, *(1,) * case.rank) * np.prod(image)
    outputs = [values.numpy().astype(np.float32), (indices.numpy() + first).astype(np.uint32)]
    results = case.computed(descs.MaxPooling2, outputs, device, dilations=case.dilations)
    for result, expected in zip(results, outputs, strict=True):
        np.testing.assert_array_equal(result, expected)


_magnitudes = deviation("LP_POOLING", "odd P, negative elements", np.abs)
deviation("LP_POOLING1", "odd P, negative elements", np.abs)


@pytest.mark.parametrize("p", [1, 2, 3])
@on_random
def test_norms_agree_with_pytorch(p: int, device: str, random: Random) -> None:
    case = _Pooling(random, dilated=False)
    case.padding = [0] * case.rank
    given_x = case.x
    if p % 2:
        case.x = _magnitudes(given_x)
    expected = case.by_torch("lp_pool", float(p), stride=case.strides).numpy()
    case.x = given_x
    (result,) = case.computed(descs.LpPooling, [expected.astype(np.float32)], device, p=p)
    assert_within("LP_POOLING", result, expected)


NEAREST, LINEAR = InterpolationMode.NEAREST_NEIGHBOR, InterpolationMode.LINEAR
UP, DOWN = AxisDirection.INCREASING, AxisDirection.DECREASING

# ONNX's names for the rounding; how ONNX Runtime says them to DirectML: a shift of the input, a direction.
ROUNDINGS = {
    "round_prefer_floor": (0.5, UP),
    "round_prefer_ceil": (-0.5, DOWN),
    "floor": (0.0, DOWN),
    "ceil": (0.0, UP),
}
COORDINATES = {"half_pixel": (0.5, -0.5), "asymmetric": (0.0, 0.0)}


def _image(random: Random) -> Array:
    return random.generator.uniform(-9, 9, (1, 2, *random.generator.integers(1, 9, 2))).astype(np.float32)


def _resized(
    x: Array,
    sizes: tuple[int, ...],
    scales: list[float],
    device: str,
    offsets: tuple[float, float],
    **more: Any,
) -> Array:
    rank = len(sizes)
    (result,) = on_arrays(
        descs.Resample2,
        [x],
        [np.zeros(sizes, x.dtype)],
        device,
        scales=scales,
        input_pixel_offsets=(offsets[0],) * rank,
        output_pixel_offsets=(offsets[1],) * rank,
        **more,
    )
    return result


def _scales(random: Random) -> list[float]:
    """Of four dimensions, as float32 has them; some meet elements and halves exactly."""
    chosen = random.generator.choice([0.5, 1.0, 2.0, 1.5, 3.0, 1 / 3, 2.5, 0.7], 2)
    return [1.0, 1.0, *chosen.astype(np.float32).astype(float).tolist()]


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("rounding", ROUNDINGS)
@on_random
def test_nearest_agrees_with_runtime(rounding: str, coordinates: str, device: str, random: Random) -> None:
    x, scales = _image(random), _scales(random)
    expected = _onnx("runtime", x, scales, "nearest", coordinates, nearest_mode=rounding)
    if 0 in expected.shape:
        return
    shift, direction = ROUNDINGS[rounding]
    in_offset, out_offset = COORDINATES[coordinates]
    attributes = {"interpolation_mode": NEAREST, "rounding_direction": direction}
    offsets = (in_offset + shift, out_offset)
    result = _resized(x, expected.shape, scales, device, offsets, **attributes)
    np.testing.assert_array_equal(result, expected)


def _onnx(peer: str, x: Array, scales: list[float], mode: str, coordinates: str, **attributes: Any) -> Array:
    inputs = [x, np.zeros(0, np.float32), np.array(scales, np.float32)]
    more = {"mode": mode, "coordinate_transformation_mode": coordinates}
    return onnx_result(peer, "Resize", inputs, "float32", **more, **attributes)


@pytest.mark.parametrize("mode", ["nearest-exact", "bilinear"])
@on_random
def test_pixel_centers_agree_with_pytorch(mode: str, device: str, random: Random) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = _image(random)
    sizes = tuple(random.generator.integers(1, 20, 2).tolist())
    expected = torch.nn.functional.interpolate(torch.from_numpy(x), sizes, mode=mode).numpy()
    scales = [1.0, 1.0, *(new / old for new, old in zip(sizes, x.shape[2:], strict=True))]
    (result,) = on_arrays(
        descs.Resample,
        [x],
        [expected],
        device,
        interpolation_mode=NEAREST if mode == "nearest-exact" else LINEAR,
        scales=scales,
    )
    assert_within("RESAMPLE", result, expected, peer=True)


def _peer(random: Random) -> str:
    """One of the two that evaluate ONNX."""
    return PEERS[int(random.generator.integers(len(PEERS)))]


def _all_different(x: Array) -> Array:
    """Whole numbers, each with a fraction of its own."""
    return np.asarray(x + np.arange(x.size, dtype=x.dtype).reshape(x.shape) / x.dtype.type(2 * x.size))


distinct = deviation("TOP_K1", "equal elements among the least", _all_different)


def _first(x: Array, k: int, axis: int, greatest: bool, device: str) -> Sequence[Array]:
    """The values and places of the first elements of a sort."""
    direction = "DECREASING" if greatest else "INCREASING"
    return dml.top_k1(x, axis=axis, k=k, axis_direction=direction, device=device)


@pytest.mark.parametrize("greatest", [False, True])
@on_random
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


@on_random
def test_nan_is_sorted_as_by_pytorch(device: str, random: Random) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = random.values(np.dtype("float32"), (int(random.generator.integers(1, 30)), 16))
    k = int(random.generator.integers(1, x.shape[1] + 1))
    for greatest in (False, True):
        wanted = torch.topk(torch.from_numpy(x.copy()), k, largest=greatest).values.numpy()
        np.testing.assert_array_equal(_first(x, k, 1, greatest, device)[0], wanted)


@on_random
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


@on_random
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
