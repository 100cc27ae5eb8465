"""Pooling against its definition, window by window, and against PyTorch's conventions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendml import descs
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.spec.schema import operator
from tests.pairwise import pairwise
from tests.peers.peer import examples
from tests.running import device_kinds, on_arrays
from tests.tolerances import assert_within

every_device = pytest.mark.parametrize("device", device_kinds())
FLOATS = (np.float32, np.float16)
ALL_TYPES = operator("MAX_POOLING2").support[0].tensors["InputTensor"].types


class Form(NamedTuple):
    """Windows, one number for each spatial dimension; `counts` of outputs, which may be rounded up."""

    image: tuple[int, ...]
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    start: tuple[int, ...]
    end: tuple[int, ...]
    up: bool = False

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of windows."""
        result = []
        for axis, size in enumerate(self.image):
            span = (self.extents[axis] - 1) * self.dilations[axis] + 1
            room = size + self.start[axis] + self.end[axis] - span
            result.append((-(-room // self.strides[axis]) if self.up else room // self.strides[axis]) + 1)
        return tuple(result)


FORMS = [
    Form((6, 6), (2, 2), (2, 2), (1, 1), (0, 0), (0, 0)),
    Form((7, 6), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)),
    Form((7, 6), (3, 2), (2, 3), (1, 1), (1, 0), (0, 1), up=True),
    Form((5, 8), (2, 3), (1, 1), (3, 2), (1, 2), (2, 1)),
    Form((4, 5), (4, 5), (1, 1), (1, 1), (0, 0), (0, 0)),
    Form((2, 2), (2, 2), (3, 3), (1, 1), (2, 2), (2, 2)),
    Form((5, 70), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)),
    Form((4, 41), (2, 2), (2, 2), (1, 1), (1, 1), (0, 0)),
    Form((4, 3, 5), (2, 2, 3), (1, 2, 2), (1, 1, 2), (1, 0, 1), (0, 1, 2)),
]
UNDILATED = [form for form in FORMS if set(form.dilations) == {1}]


def _by_window(x: Array, form: Form, function: Callable[[Array, Array, tuple[int, ...]], Any]) -> Array:
    """function(the window's elements in x, their numbers, how many are in the padded x per dimension)."""
    numbers = np.arange(x.size).reshape(x.shape)
    result = []
    for batch, channel in np.ndindex(*x.shape[:2]):
        for place in product(*map(range, form.counts)):
            found = []
            padded = []
            for axis, o in enumerate(place):
                first = o * form.strides[axis] - form.start[axis]
                at = [first + k * form.dilations[axis] for k in range(form.extents[axis])]
                found.append([i for i in at if 0 <= i < form.image[axis]])
                padded.append(sum(i < form.image[axis] + form.end[axis] for i in at))
            chosen = np.ix_(*found)
            elements, own = x[batch, channel][chosen], numbers[batch, channel][chosen]
            result.append(function(elements.reshape(-1), own.reshape(-1), tuple(padded)))
    return np.array(result).reshape(*x.shape[:2], *form.counts)


def _attributes(form: Form, dilated: bool = True) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "strides": form.strides,
        "window_size": form.extents,
        "start_padding": form.start,
        "end_padding": form.end,
    }
    return attributes | ({"dilations": form.dilations} if dilated else {})


def _image(form: Form, dtype: Any, seed: int = 0) -> Array:
    generator = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return generator.uniform(-3, 3, (2, 3, *form.image)).astype(dtype)
    limits = np.iinfo(dtype)
    few = np.array([limits.min, limits.max, 0, 1, limits.min + 1], dtype)
    return generator.choice(few, (2, 3, *form.image))


@pairwise(
    device=device_kinds(),
    dtype=FLOATS,
    include=[False, True],
    form=FORMS,
)
def test_average(form: Form, include: bool, dtype: Any, device: str) -> None:
    x = _image(form, dtype)

    def mean(elements: Array, numbers: Array, padded: tuple[int, ...]) -> float:
        count = int(np.prod(padded)) if include else elements.size
        return float(elements.astype(np.float64).sum()) / max(count, 1)

    expected, terms = _by_window(x, form, mean), _by_window(np.abs(x), form, mean)
    attributes = _attributes(form) | {"include_padding": include}
    (result,) = on_arrays(descs.AveragePooling1, [x], [expected.astype(dtype)], device, **attributes)
    assert_within("AVERAGE_POOLING1", result, expected, terms)


@pairwise(
    device=device_kinds(),
    dtype=FLOATS,
    p=[1, 2, 7],
    form=FORMS[2:4],
)
def test_norm(form: Form, p: int, dtype: Any, device: str) -> None:
    x = _image(form, dtype)

    def norm(elements: Array, numbers: Array, padded: tuple[int, ...]) -> float:
        return float((np.abs(elements.astype(np.float64)) ** p).sum() ** (1 / p))

    expected = _by_window(x, form, norm)
    (result,) = on_arrays(descs.LpPooling1, [x], [expected.astype(dtype)], device, p=p, **_attributes(form))
    assert_within("LP_POOLING1", result, expected)


@every_device
def test_norms_of_great_and_not_finite_numbers(device: str) -> None:
    rows = [[1e38, -1e38], [0, 0], [np.inf, 1], [np.nan, 1], [1e-30, 1e-30]]
    x = np.array(rows, np.float32).reshape(1, 1, 5, 2)
    form = Form((5, 2), (1, 2), (1, 1), (1, 1), (0, 0), (0, 0))
    (result,) = on_arrays(
        descs.LpPooling, [x], [np.zeros((1, 1, 5, 1), np.float32)], device, p=5, **_attributes(form, False)
    )
    root = 2 ** (1 / 5)
    assert_within("LP_POOLING", result.reshape(-1), [1e38 * root, 0, np.inf, np.nan, 1e-30 * root])


@every_device
def test_norms_of_squares_beyond_float32(device: str) -> None:
    x = np.array([[1e30, 1e30], [1e-30, -1e-30], [0, 0], [np.inf, 1], [3, -4]], np.float32).reshape(
        1, 1, 5, 2
    )
    form = Form((5, 2), (1, 2), (1, 1), (1, 1), (0, 0), (0, 0))
    (result,) = on_arrays(
        descs.LpPooling, [x], [np.zeros((1, 1, 5, 1), np.float32)], device, p=2, **_attributes(form, False)
    )
    assert_within("LP_POOLING", result.reshape(-1), [2**0.5 * 1e30, 2**0.5 * 1e-30, 0, np.inf, 5])


def _expected_maximum(x: Array, form: Form) -> tuple[Array, Array]:
    least = x.dtype.type(-np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min)
    values = _by_window(x, form, lambda e, n, p: e.max() if e.size else least).astype(x.dtype)
    indices = _by_window(x, form, lambda e, n, p: n[e.argmax()] if e.size else x.size)
    return values, indices


@every_device
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_maximum_and_its_index(form: Form, device: str) -> None:
    _check_maximum(form, np.dtype(np.float32), np.dtype(np.uint32), device)


@pairwise(
    device=device_kinds(),
    index_type=[np.uint32, np.uint64],
    type=ALL_TYPES,
)
def test_maximum_of_every_type(type: str, index_type: Any, device: str) -> None:
    form = Form((3, 4), (2, 2), (2, 1), (1, 1), (1, 0), (0, 1))
    _check_maximum(form, ScalarType[type].numpy, np.dtype(index_type), device)


def _check_maximum(form: Form, dtype: np.dtype[Any], index_type: np.dtype[Any], device: str) -> None:
    x = _image(form, dtype)
    values, indices = _expected_maximum(x, form)
    outputs = [values, indices.astype(index_type)]
    results = on_arrays(descs.MaxPooling2, [x], outputs, device, **_attributes(form))
    for result, expected in zip(results, outputs, strict=True):
        np.testing.assert_array_equal(result, expected)


@every_device
@pytest.mark.parametrize("form", UNDILATED, ids=str)
def test_elder_forms_have_no_dilation(form: Form, device: str) -> None:
    x = _image(form, np.float32)
    values, indices = _expected_maximum(x, form)
    attributes = _attributes(form, dilated=False)
    (alone,) = on_arrays(descs.MaxPooling, [x], [values], device, **attributes)
    np.testing.assert_array_equal(alone, values)
    (alone,) = on_arrays(descs.MaxPooling1, [x], [values, None], device, **attributes)
    np.testing.assert_array_equal(alone, values)
    both = on_arrays(descs.MaxPooling1, [x], [values, indices.astype(np.uint32)], device, **attributes)
    np.testing.assert_array_equal(both[1], indices)
    for desc, newer, more in (
        (descs.AveragePooling, descs.AveragePooling1, {"include_padding": False}),
        (descs.LpPooling, descs.LpPooling1, {"p": 2}),
    ):
        (old,) = on_arrays(desc, [x], [values], device, **attributes, **more)
        (new,) = on_arrays(newer, [x], [values], device, **_attributes(form), **more)
        np.testing.assert_array_equal(old, new)


@every_device
def test_nan_is_the_greatest(device: str) -> None:
    x = np.array([[[[1, np.nan, np.nan, np.inf], [-np.inf, -np.inf, -np.inf, -np.inf]]]], np.float32)
    form = Form((2, 4), (1, 4), (1, 1), (1, 1), (0, 1), (0, 0))
    outputs = [np.zeros((1, 1, 2, 2), np.float32), np.zeros((1, 1, 2, 2), np.uint32)]
    values, indices = on_arrays(descs.MaxPooling2, [x], outputs, device, **_attributes(form))
    np.testing.assert_array_equal(values.reshape(-1), [np.nan, np.nan, -np.inf, -np.inf])
    # The padding, of -infinity too, is not found.
    np.testing.assert_array_equal(indices.reshape(-1), [1, 1, 4, 4])


@every_device
@pytest.mark.parametrize("extent", [3, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_the_padding_is_not_found_among_the_least(dtype: Any, extent: int, device: str) -> None:
    form = Form((5, 6), (extent, extent), (1, 1), (1, 1), (extent - 1,) * 2, (extent - 1,) * 2)
    x = np.full((2, 3, *form.image), -np.inf if dtype is np.float32 else -128, dtype)
    values, indices = _expected_maximum(x, form)
    found = on_arrays(
        descs.MaxPooling2, [x], [values, indices.astype(np.uint32)], device, **_attributes(form)
    )
    np.testing.assert_array_equal(found[1], indices)


@every_device
@given(data=st.data())
@examples
def test_any_form(device: str, data: st.DataObject) -> None:
    rank = data.draw(st.integers(2, 3))
    extents, strides, dilations, start, end, room = (
        tuple(data.draw(st.integers(least, most)) for _ in range(rank))
        for least, most in ((1, 5 - rank), (1, 4), (1, 3), (0, 3), (0, 3), (0, 5))
    )
    image = tuple((k - 1) * d + 1 + more for k, d, more in zip(extents, dilations, room, strict=True))
    form = Form(image, extents, strides, dilations, start, end, data.draw(st.booleans()))
    _check_maximum(form, np.dtype(np.float32), np.dtype(np.uint32), device)
