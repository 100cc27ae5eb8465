"""Gradients of resampling: the transpose of the forward operator, element by element, and PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendml import TensorDataType, TensorDesc, Unsupported, descs
from opendml.operators.resampling import Sampling
from opendml.operators.resampling_gradients import MOST_PLACES, _EvenTaps, _Taps
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of
from opendml.spec.enums import AxisDirection
from tests.operators.test_resampling import DOWN, FORMS, LINEAR, NEAREST, UP, _attributes, _linear, _nearest
from tests.pairwise import pairwise
from tests.peers.peer import examples
from tests.running import device_kinds, launches, on_arrays
from tests.tolerances import assert_within

every_device = pytest.mark.parametrize("device", device_kinds())
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
every_form = pytest.mark.parametrize("form", FORMS + MORE_FORMS, ids=str)


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
    device=device_kinds(),
    type=[np.float32, np.float16],
    direction=AxisDirection,
    form=FORMS + MORE_FORMS,
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
@every_form
def test_the_elder_nearest_rounds_halves_up(form: Any, device: str) -> None:
    incoming = _incoming(form, np.float32)
    expected = _transposed(
        form, incoming, lambda x: _nearest(x, form, lambda places: np.floor(places + np.float32(0.5)))
    )
    made = [expected.astype(np.float32)]
    (result,) = on_arrays(descs.ResampleGrad, [incoming], made, device, **_attributes(form, NEAREST))
    assert_within("RESAMPLE_GRAD1", result, expected)


@pairwise(device=device_kinds(), type=[np.float32, np.float16], form=FORMS + MORE_FORMS)
def test_linear(form: Any, type: Any, device: str) -> None:
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
@pytest.mark.parametrize("sizes", [(12, 4), (3, 16)], ids=str)
def test_gradients_agree_with_pytorch(sizes: tuple[int, int], device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    image = (2, 3, 6, 8)
    x = torch.zeros(image, dtype=torch.float64, requires_grad=True)
    incoming = np.random.default_rng(0).standard_normal((2, 3, *sizes)).astype(np.float32)
    torch.nn.functional.interpolate(x, sizes, mode="bilinear").backward(torch.from_numpy(incoming).double())
    scales = [1.0, 1.0, sizes[0] / 6, sizes[1] / 8]
    form = (image, (2, 3, *sizes), scales, (0.5,) * 4, (-0.5,) * 4)
    made = [np.zeros(image, np.float32)]
    (result,) = on_arrays(descs.ResampleGrad, [incoming], made, device, **_attributes(form, LINEAR))
    assert_within("RESAMPLE_GRAD", result, x.grad.numpy())


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
def test_an_element_looks_at_hardly_more_outputs_than_are_made_of_it(
    scale: float, size: int, most: int
) -> None:
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
