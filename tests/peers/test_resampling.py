"""Resampling and gathering against PyTorch and ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from opendml import descs
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import AxisDirection, InterpolationMode
from tests.running import on_arrays
from tests.tolerances import assert_within

from .onnx_peer import PEERS, onnx_result
from .peer import DEVICES, Random, exact, examples, seeds

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


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("rounding", ROUNDINGS)
@given(random=seeds)
@examples
def test_nearest_agrees_with_onnx_runtime(
    rounding: str, coordinates: str, device: str, random: Random
) -> None:
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


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("peer", PEERS)
@given(random=seeds)
@examples
def test_linear_agrees_with_onnx(peer: str, coordinates: str, device: str, random: Random) -> None:
    x, scales = _image(random), _scales(random)
    if int(np.prod([int(size * scale) for size, scale in zip(x.shape, scales, strict=True)])) == 0:
        return
    expected = _onnx(peer, x, scales, "linear", coordinates)
    attributes = {"interpolation_mode": LINEAR, "rounding_direction": DOWN}
    result = _resized(x, expected.shape, scales, device, COORDINATES[coordinates], **attributes)
    assert_within("RESAMPLE2", result, expected, peer=True)


def _onnx(peer: str, x: Array, scales: list[float], mode: str, coordinates: str, **attributes: Any) -> Array:
    inputs = [x, np.zeros(0, np.float32), np.array(scales, np.float32)]
    more = {"mode": mode, "coordinate_transformation_mode": coordinates}
    return onnx_result(peer, "Resize", inputs, "float32", **more, **attributes)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mode", ["nearest-exact", "bilinear"])
@given(random=seeds)
@examples
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


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("peer", PEERS)
@given(random=seeds)
@examples
def test_gathering_agrees_with_onnx(peer: str, device: str, random: Random) -> None:
    sizes = random.shape(rank=3)
    axis = int(random.generator.integers(3))
    x = random.generator.uniform(-9, 9, sizes).astype(np.float32)
    low = -sizes[axis]
    indices = random.generator.integers(low, sizes[axis], random.generator.integers(1, 4, 2))
    expected = onnx_result(peer, "Gather", [x, indices], "float32", axis=axis)
    (result,) = on_arrays(
        descs.Gather,
        [x[None], indices[None, None]],
        [expected],
        device,
        axis=axis + 1,
        index_dimensions=2,
    )
    np.testing.assert_array_equal(result, expected)
    along = random.generator.integers(low, sizes[axis], [4 if d == axis else s for d, s in enumerate(sizes)])
    expected = onnx_result(peer, "GatherElements", [x, along], "float32", axis=axis)
    (result,) = on_arrays(descs.GatherElements, [x, along], [exact(expected).astype("f4")], device, axis=axis)
    np.testing.assert_array_equal(result, expected)
