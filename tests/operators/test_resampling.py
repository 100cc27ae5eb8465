"""Resampling against its formula, in every form, and which forms only move elements."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from opendml import TensorDataType, TensorDesc, descs
from opendml.program.node import Operation, View, ordered
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of
from opendml.spec.enums import AxisDirection, InterpolationMode
from opendml.spec.operator_desc import Size2D
from opendml.spec.schema import operator
from tests.pairwise import pairwise
from tests.running import device_kinds, on_arrays
from tests.tolerances import assert_within

NEAREST, LINEAR = InterpolationMode.NEAREST_NEIGHBOR, InterpolationMode.LINEAR
UP, DOWN = AxisDirection.INCREASING, AxisDirection.DECREASING
TYPES = operator("RESAMPLE2").support[0].tensors["InputTensor"].types
every_device = pytest.mark.parametrize("device", device_kinds())

# Sizes, output sizes, scales, offsets of the input's and of the output's pixels.
FORMS = [
    ((5,), (10,), (2.0,), (0.5,), (-0.5,)),
    ((5,), (7,), (1.5,), (0.0,), (0.0,)),
    ((9,), (3,), (1 / 3,), (0.0,), (0.0,)),
    ((9,), (3,), (1 / 3,), (0.5,), (-0.5,)),
    ((4,), (12,), (2.0,), (0.25,), (0.75,)),
    ((8,), (4,), (0.5,), (0.0,), (0.0,)),
    ((6,), (2,), (0.75,), (-2.5,), (0.0,)),
    ((3, 4), (3, 8), (1.0, 2.0), (0.5, 0.5), (-0.5, -0.5)),
    ((3, 4), (7, 5), (2.25, 1.25), (0.5, 0.0), (-0.5, 0.0)),
    ((3, 35), (6, 70), (2.0, 2.0), (0.5, 0.5), (-0.5, -0.5)),
    ((5, 70), (2, 35), (0.5, 0.5), (0.5, 0.5), (-0.5, -0.5)),
    ((2, 33), (4, 65), (2.0, 2.0), (0.0, 0.25), (0.0, -1.0)),
    ((1, 2, 3, 4), (2, 4, 4, 9), (2.0, 2.0, 1.25, 2.5), (0.5, 0.5, 0.5, 0.0), (-0.5, -0.5, -0.5, 0.0)),
]
every_form = pytest.mark.parametrize("form", FORMS, ids=str)


def _coordinates(size: int, scale: float, input_offset: float, output_offset: float) -> Array:
    """In float32, as all steps are."""
    places = np.arange(size, dtype=np.float32) - np.float32(output_offset)
    return np.asarray(places / np.float32(scale) - np.float32(input_offset))


def _nearest(x: Array, form: Any, rounding: Any) -> Array:
    _, sizes, *numbers = form
    for axis, size in enumerate(sizes):
        places = rounding(_coordinates(size, *(each[axis] for each in numbers)))
        x = np.take(x, np.clip(places, 0, x.shape[axis] - 1).astype(np.int64), axis)
    return x


def _linear(x: Array, form: Any) -> Array:
    _, sizes, *numbers = form
    x = x.astype(np.float64)
    for axis, size in enumerate(sizes):
        places = _coordinates(size, *(each[axis] for each in numbers)).astype(np.float64)
        before, last = np.floor(places), x.shape[axis] - 1
        ends = [np.take(x, np.clip(at, 0, last).astype(np.int64), axis) for at in (before, before + 1)]
        weight = (places - before).reshape(-1, *(1,) * (x.ndim - axis - 1))
        x = ends[0] * (1 - weight) + ends[1] * weight
    return x


def _attributes(form: Any, mode: InterpolationMode) -> dict[str, Any]:
    names = ("scales", "input_pixel_offsets", "output_pixel_offsets")
    return dict(zip(names, form[2:], strict=True)) | {"interpolation_mode": mode}


def _values(type: str, sizes: tuple[int, ...]) -> Array:
    dtype = ScalarType[type].numpy
    numbers = np.random.default_rng(len(sizes)).uniform(-100, 100, sizes)
    return (numbers if dtype.kind == "f" else np.abs(numbers)).astype(dtype)


@pairwise(
    device=device_kinds(),
    type=TYPES,
    direction=AxisDirection,
    form=FORMS,
)
def test_nearest_rounds_in_its_direction(form: Any, direction: AxisDirection, type: str, device: str) -> None:
    x = _values(type, form[0])
    expected = _nearest(x, form, np.ceil if direction is UP else np.floor)
    attributes = _attributes(form, NEAREST) | {"rounding_direction": direction}
    (result,) = on_arrays(descs.Resample2, [x], [expected], device, **attributes)
    np.testing.assert_array_equal(result, expected)


@every_device
@every_form
def test_the_elder_nearest_rounds_halves_up(form: Any, device: str) -> None:
    x = _values("FLOAT32", form[0])
    expected = _nearest(x, form, lambda places: np.floor(places + np.float32(0.5)))
    (result,) = on_arrays(descs.Resample1, [x], [expected], device, **_attributes(form, NEAREST))
    np.testing.assert_array_equal(result, expected)


@every_device
@pytest.mark.parametrize("type", ["FLOAT32", "FLOAT16"])
@every_form
def test_linear(form: Any, type: str, device: str) -> None:
    x = _values(type, form[0])
    expected = _linear(x, form)
    attributes = _attributes(form, LINEAR)
    for desc, more in ((descs.Resample1, {}), (descs.Resample2, {"rounding_direction": UP})):
        (result,) = on_arrays(desc, [x], [expected.astype(x.dtype)], device, **attributes, **more)
        assert_within(desc.operator, result, expected)


@every_device
@pytest.mark.parametrize("type", ["INT8", "UINT8"])
def test_means_of_integers_are_truncated(type: str, device: str) -> None:
    x = np.array([1, 2, 100, 3], ScalarType[type].numpy)
    x = x if type == "UINT8" else -x
    form = ((4,), (7,), (2.0,), (0.0,), (0.0,))
    expected = np.trunc(_linear(x, form)).astype(x.dtype)
    (result,) = on_arrays(descs.Resample1, [x], [expected], device, **_attributes(form, LINEAR))
    np.testing.assert_array_equal(result, expected)


@every_device
@pytest.mark.parametrize("number", [7, 100, 127])
@pytest.mark.parametrize("type", ["INT8", "UINT8"])
def test_means_of_equal_integers_are_these(type: str, number: int, device: str) -> None:
    x = np.full((9, 11), number if type == "UINT8" else -number, ScalarType[type].numpy)
    form = ((9, 11), (13, 33), (1.5, 3.0), (0.5, 0.5), (-0.5, -0.5))
    expected = np.full((13, 33), x[0, 0], x.dtype)
    (result,) = on_arrays(descs.Resample1, [x], [expected], device, **_attributes(form, LINEAR))
    np.testing.assert_array_equal(result, expected)


@every_device
@pytest.mark.parametrize("mode", InterpolationMode)
def test_resample_is_of_pixel_centers(mode: InterpolationMode, device: str) -> None:
    x = _values("FLOAT32", (2, 3, 4, 5))
    output = np.zeros((2, 3, 6, 13), np.float32)
    scales = (1.0, 1.0, 1.5, 2.6)
    attributes: dict[str, Any] = {"interpolation_mode": mode, "scales": scales}
    (result,) = on_arrays(descs.Resample, [x], [output], device, **attributes)
    attributes |= {"input_pixel_offsets": (0.5,) * 4, "output_pixel_offsets": (-0.5,) * 4}
    (expected,) = on_arrays(descs.Resample1, [x], [output], device, **attributes)
    np.testing.assert_array_equal(result, expected)


@pairwise(
    device=device_kinds(),
    type=["FLOAT32", "FLOAT16"],
    sizes=[(2, 3, 3, 4), (1, 2, 2, 3, 4)],
    mode=InterpolationMode,
)
def test_upsample_enlarges_height_and_width(
    mode: InterpolationMode, sizes: tuple[int, ...], type: str, device: str
) -> None:
    x = _values(type, sizes)
    whole = (*sizes[:-2], sizes[-2] * 3, sizes[-1] * 2)
    ones, rank = (1.0,) * (len(sizes) - 2), len(sizes)
    form = (sizes, whole, (*ones, 3.0, 2.0), (0.5,) * rank, (-0.5,) * rank)
    expected = np.repeat(np.repeat(x, 3, -2), 2, -1) if mode is NEAREST else _linear(x, form)
    attributes = {"scale_size": Size2D(2, 3), "interpolation_mode": mode}
    (result,) = on_arrays(descs.Upsample2D, [x], [expected.astype(x.dtype)], device, **attributes)
    assert_within("UPSAMPLE_2D", result, expected)


@pytest.mark.parametrize(("up", "factor"), list(product([True, False], [1, 2, 3, 4, 8])))
def test_whole_factors_only_move_elements(up: bool, factor: int) -> None:
    if not up and factor == 3:
        return  # a third is no float32
    sizes = (5, 24), (5, 24 * factor if up else 24 // factor)
    tensors = [TensorDesc(TensorDataType.FLOAT32, each) for each in sizes]
    scales = (1.0, float(factor) if up else 1 / factor)
    program = program_of(descs.Resample(*tensors, interpolation_mode=NEAREST, scales=scales))
    views = [node.attribute for node in ordered(program.results) if node.operation is Operation.VIEW]
    assert not any(isinstance(view, View) and view.indexed for view in views)
