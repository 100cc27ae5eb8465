"""Resampling and its gradients against their formulas, in every form, and which forms only move elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendml import TensorDataType, TensorDesc, Unsupported, descs
from opendml.operators.resampling import Sampling
from opendml.operators.resampling_gradients import MOST_PLACES, _EvenTaps, _Taps
from opendml.program.node import Operation, View, ordered
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of
from opendml.spec.enums import AxisDirection, InterpolationMode
from opendml.spec.operator_desc import Size2D
from opendml.spec.schema import operator
from tests.pairwise import pairwise
from tests.peers.peer import examples
from tests.running import device_kinds, launches, on_arrays
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


@pairwise(device=device_kinds(), type=TYPES, direction=AxisDirection, form=FORMS)
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
def test_upsample_enlarges(mode: InterpolationMode, sizes: tuple[int, ...], type: str, device: str) -> None:
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


SHRINKING = [
    ((9,), (3,), (1 / 3,), (0.5,), (-0.5,)),
    ((40,), (4,), (0.1,), (0.5,), (-0.5,)),
    ((12, 30), (9, 7), (0.75, 0.25), (0.5, 0.0), (-0.5, 0.0)),
    ((16, 5), (4, 5), (0.2, 0.5), (3.5, 0.5), (0.0, -0.5)),
    ((6,), (3,), (1e-3,), (-2.0,), (-0.5,)),
    ((2, 3, 21, 17), (2, 3, 5, 8), (1.0, 1.0, 5 / 21, 8 / 17), (0.5,) * 4, (-0.5,) * 4),
]
every_form_antialiased = pytest.mark.parametrize("form", SHRINKING, ids=str)


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
def test_means_of_integers_are_truncated_of_antialiased(form: Any, type: str, device: str) -> None:
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
    # Nearest neighbors are never filtered.
    case=[
        *((form, mode) for form in FORMS if min(form[2]) >= 0.5 for mode in (LINEAR, NEAREST)),
        (SHRINKING[0], NEAREST),
    ],
)
def test_scales_from_a_half_on_are_not_filtered(case: Any, antialiased: bool, device: str) -> None:
    form, mode = case
    x = _values("FLOAT32", form[0])
    attributes = _attributes(form, mode) | {"rounding_direction": DOWN}
    made = [np.zeros(form[1], np.float32)]
    (expected,) = on_arrays(descs.Resample2, [x], made, device, **attributes)
    (result,) = on_arrays(descs.Resample3, [x], made, device, antialiased=antialiased, **attributes)
    np.testing.assert_array_equal(result, expected)


@every_device
def test_what_has_no_weight_does_not_count(device: str) -> None:
    x = np.ones(20, np.float32)
    x[-1] = np.inf
    form = ((20,), (4,), (0.2,), (0.5,), (-0.5,))
    attributes = _attributes(form, LINEAR) | {"rounding_direction": UP, "antialiased": True}
    (result,) = on_arrays(descs.Resample3, [x], [np.zeros(4, np.float32)], device, **attributes)
    np.testing.assert_array_equal(result, [1, 1, 1, np.inf])


# Also: far beyond both ends, nothing but the last element, no element, and large scales.
MORE_FORMS = [
    ((4,), (40,), (1.0,), (12.0,), (0.0,)),
    ((4,), (9,), (1.0,), (-50.0,), (0.0,)),
    ((4,), (9,), (1.0,), (50.0,), (0.0,)),
    ((6,), (3,), (1e-3,), (0.5,), (-0.5,)),
    ((3,), (1,), (2.5,), (0.25,), (0.0,)),
    ((3,), (120,), (40.0,), (0.5,), (-0.5,)),
    ((2, 3), (7, 100), (3.3, 33.0), (0.5, 0.0), (-0.5, 0.0)),
]
every_form_gradients = pytest.mark.parametrize("form", FORMS + MORE_FORMS, ids=str)


def _transposed(form: Any, incoming: Array, forward: Callable[[Array], Array]) -> Array:
    """The gradient of a linear forward operator, from what it makes of each element alone."""
    wide = incoming.astype(np.float64)
    result: Array = np.zeros(form[0])
    for place in np.ndindex(*form[0]):
        x = np.zeros(form[0])
        x[place] = 1.0
        result[place] = (forward(x) * wide).sum()
    return result


def _incoming(form: Any, type: Any) -> Array:
    numbers: Array = np.random.default_rng(0).uniform(-1, 1, form[1])
    return numbers.astype(type)


@pairwise(
    device=device_kinds(), type=[np.float32, np.float16], direction=AxisDirection, form=FORMS + MORE_FORMS
)
def test_nearest(form: Any, direction: AxisDirection, type: Any, device: str) -> None:
    incoming = _incoming(form, type)
    expected = _transposed(
        form, incoming, lambda x: _nearest(x, form, np.ceil if direction is UP else np.floor)
    )
    attributes = _attributes(form, NEAREST) | {"rounding_direction": direction}
    (result,) = on_arrays(descs.ResampleGrad1, [incoming], [expected.astype(type)], device, **attributes)
    assert_within("RESAMPLE_GRAD1", result, expected)


@every_device
@every_form_gradients
def test_the_elder_nearest_rounds_halves_up_of_gradients(form: Any, device: str) -> None:
    incoming = _incoming(form, np.float32)
    expected = _transposed(
        form, incoming, lambda x: _nearest(x, form, lambda places: np.floor(places + np.float32(0.5)))
    )
    made = [expected.astype(np.float32)]
    (result,) = on_arrays(descs.ResampleGrad, [incoming], made, device, **_attributes(form, NEAREST))
    assert_within("RESAMPLE_GRAD1", result, expected)


@pairwise(device=device_kinds(), type=[np.float32, np.float16], form=FORMS + MORE_FORMS)
def test_linear_of_gradients(form: Any, type: Any, device: str) -> None:
    incoming = _incoming(form, type)
    expected = _transposed(form, incoming, lambda x: _linear(x, form))
    attributes = _attributes(form, LINEAR)
    for desc, more in ((descs.ResampleGrad, {}), (descs.ResampleGrad1, {"rounding_direction": UP})):
        (result,) = on_arrays(desc, [incoming], [expected.astype(type)], device, **attributes, **more)
        assert_within("RESAMPLE_GRAD1", result, expected)


@every_device
@given(data=st.data())
@examples
def test_any_form(device: str, data: st.DataObject) -> None:
    size, count = (data.draw(st.integers(1, 12)) for _ in range(2))
    scale = data.draw(st.floats(0.125, 6.0, width=32))
    offsets = [data.draw(st.floats(-9.0, 9.0, width=32)) for _ in range(2)]
    form = ((size,), (count,), (scale,), (offsets[0],), (offsets[1],))
    incoming = _incoming(form, np.float32)
    forwards = {LINEAR: partial(_linear, form=form), NEAREST: partial(_nearest, form=form, rounding=np.floor)}
    for mode, forward in forwards.items():
        expected = _transposed(form, incoming, forward)
        attributes = _attributes(form, mode) | {"rounding_direction": DOWN}
        made = [expected.astype(np.float32)]
        (result,) = on_arrays(descs.ResampleGrad1, [incoming], made, device, **attributes)
        assert_within("RESAMPLE_GRAD1", result, expected)


@every_device
def test_what_is_not_finite_stays_where_it_is_read(device: str) -> None:
    form = ((6,), (9,), (1.5,), (0.5,), (-0.5,))
    incoming = np.zeros(9, np.float32)
    incoming[3] = np.inf
    made = [np.zeros(6, np.float32)]
    (result,) = on_arrays(descs.ResampleGrad, [incoming], made, device, **_attributes(form, LINEAR))
    np.testing.assert_array_equal(result, [0, np.inf, np.inf, 0, 0, 0])


@pytest.mark.parametrize(
    ("scale", "size", "most"),
    [(2.0, 1000, 5), (0.5, 1000, 2), (1 / 3, 999, 2), (7.5, 100, 16), (1e-9, 50, 2)],
)
def test_an_element_looks_at_few_outputs(scale: float, size: int, most: int) -> None:
    count = max(1, int(size * scale))
    assert _Taps.of(size, count, None, Sampling(scale, 0.5, -0.5)).count <= most


def test_copies_are_sums_of_neighbours_in_one_pass() -> None:
    x, incoming = (TensorDesc(TensorDataType.FLOAT32, [2, 3, size, size]) for size in (6, 12))
    form = (x.sizes, incoming.sizes, (1.0, 1.0, 2.0, 2.0), (0.0,) * 4, (0.0,) * 4)
    attributes = _attributes(form, NEAREST) | {"rounding_direction": DOWN}
    assert len(launches(descs.ResampleGrad1(incoming, x, **attributes))) == 1


@every_device
@pytest.mark.parametrize("size", [3, 4])
def test_blocks_of_any_size_are_summed(size: int, device: str) -> None:
    """Those of five by five along one dimension after the other."""
    for block in ((2, 3), (5, 5)):
        counts = tuple(size * each for each in block)
        form = ((size, size), counts, tuple(map(float, block)), (0.0,) * 2, (0.0,) * 2)
        incoming = _incoming(form, np.float32)
        made = [np.zeros((size, size), np.float32)]
        attributes = _attributes(form, NEAREST) | {"rounding_direction": DOWN}
        (result,) = on_arrays(descs.ResampleGrad1, [incoming], made, device, **attributes)
        exact = incoming.reshape(size, block[0], size, block[1]).sum((1, 3), np.float64)
        assert_within("RESAMPLE_GRAD1", result, exact)


def test_weights_of_whole_scales_are_known_ahead() -> None:
    even = _EvenTaps.of(5, 10, Sampling(2.0, 0.5, -0.5))
    assert even is not None
    assert (even.before, even.weights) == (1, (0.25, 0.75, 0.75, 0.25))
    assert (even.first, even.last) == ((0.25, 1.0, 0.75, 0.25), (0.25, 0.75, 1.0, 0.25))
    assert _EvenTaps.of(5, 11, Sampling(2.0, 0.5, -0.5)) is None
    assert _EvenTaps.of(5, 10, Sampling(1.5, 0.5, -0.5)) is None
    assert _EvenTaps.of(5, 10, Sampling(2.0, 50.0, -0.5)) is None


@every_device
@pytest.mark.parametrize("place", [0, 1, 7, 18, 19])
def test_what_is_not_finite_goes_where_weights_known_ahead_say(place: int, device: str) -> None:
    form = ((10,), (20,), (2.0,), (0.5,), (-0.5,))
    incoming = np.zeros(20, np.float32)
    incoming[place] = np.inf
    made = [np.zeros(10, np.float32)]
    (result,) = on_arrays(descs.ResampleGrad, [incoming], made, device, **_attributes(form, LINEAR))
    met = {max((place - 1) // 2, 0), min((place + 1) // 2, 9)}
    np.testing.assert_array_equal(result, [np.inf if each in met else 0 for each in range(10)])


@pytest.mark.parametrize("field", ["InputGradientTensor", "OutputGradientTensor"])
@pytest.mark.parametrize("operator", [descs.ResampleGrad, descs.ResampleGrad1])
def test_dimensions_too_long_to_be_listed_are_refused(operator: Any, field: str) -> None:
    size = MOST_PLACES + 1
    incoming, made = (TensorDesc(TensorDataType.FLOAT32, [each], [0]) for each in (size, 3))
    scale = size / 3
    if field == "OutputGradientTensor":
        incoming, made, scale = made, TensorDesc(TensorDataType.FLOAT32, [size]), 3 / size
    attributes = _attributes(((3,), (3,), (scale,), (0.25,), (0.0,)), LINEAR)
    if operator is descs.ResampleGrad1:
        attributes["rounding_direction"] = DOWN
    desc = operator(incoming, made, **attributes)
    name = "RESAMPLE_GRAD1?"
    with pytest.raises(Unsupported, match=rf"{name}: {field}.Sizes\[0\]: 67,108,865 elements; at most 67,1"):
        program_of(desc)
