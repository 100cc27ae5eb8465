"""Pooling, its gradients and folding against their definitions, window by window."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendml as dml
from opendml import TensorDataType, TensorDesc, descs
from opendml.compiler.fuse import fuse
from opendml.compiler.simplify import simplify
from opendml.operators.pooling import MOST_IDLE
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of
from opendml.spec.schema import operator
from tests.pairwise import pairwise
from tests.peers.peer import examples
from tests.running import device_kinds, launches, on_arrays
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


@pairwise(device=device_kinds(), dtype=FLOATS, include=[False, True], form=FORMS)
def test_average(form: Form, include: bool, dtype: Any, device: str) -> None:
    x = _image(form, dtype)

    def mean(elements: Array, numbers: Array, padded: tuple[int, ...]) -> float:
        count = int(np.prod(padded)) if include else elements.size
        return float(elements.astype(np.float64).sum()) / max(count, 1)

    expected, terms = _by_window(x, form, mean), _by_window(np.abs(x), form, mean)
    attributes = _attributes(form) | {"include_padding": include}
    (result,) = on_arrays(descs.AveragePooling1, [x], [expected.astype(dtype)], device, **attributes)
    assert_within("AVERAGE_POOLING1", result, expected, terms)


@pairwise(device=device_kinds(), dtype=FLOATS, p=[1, 2, 7], form=FORMS[2:4])
def test_norm(form: Form, p: int, dtype: Any, device: str) -> None:
    x = _image(form, dtype)

    def norm(elements: Array, numbers: Array, padded: tuple[int, ...]) -> float:
        return float((np.abs(elements.astype(np.float64)) ** p).sum() ** (1 / p))

    expected = _by_window(x, form, norm)
    (result,) = on_arrays(descs.LpPooling1, [x], [expected.astype(dtype)], device, p=p, **_attributes(form))
    assert_within("LP_POOLING1", result, expected)


@every_device
@pytest.mark.parametrize("p", [2, 5])
def test_norms_of_great_and_not_finite_numbers(p: int, device: str) -> None:
    rows = [[1e38, -1e38], [0, 0], [np.inf, 1], [np.nan, 1], [1e-30, -1e-30]]
    x = np.array(rows, np.float32).reshape(1, 1, 5, 2)
    form = Form((5, 2), (1, 2), (1, 1), (1, 1), (0, 0), (0, 0))
    (result,) = on_arrays(
        descs.LpPooling, [x], [np.zeros((1, 1, 5, 1), np.float32)], device, p=p, **_attributes(form, False)
    )
    root = 2 ** (1 / p)
    assert_within("LP_POOLING", result.reshape(-1), [1e38 * root, 0, np.inf, np.nan, 1e-30 * root])


def _expected_maximum(x: Array, form: Form) -> tuple[Array, Array]:
    least = x.dtype.type(-np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min)
    values = _by_window(x, form, lambda e, n, p: e.max() if e.size else least).astype(x.dtype)
    indices = _by_window(x, form, lambda e, n, p: n[e.argmax()] if e.size else x.size)
    return values, indices


@every_device
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_maximum_and_its_index(form: Form, device: str) -> None:
    _check_maximum(form, np.dtype(np.float32), np.dtype(np.uint32), device)


@pairwise(device=device_kinds(), index_type=[np.uint32, np.uint64], type=ALL_TYPES)
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


types = pytest.mark.parametrize("type", [np.float32, np.float16])


def _values(seed: int, sizes: tuple[int, ...], type: Any) -> Array:
    """Multiples of 1/8, of which many are equal, and all sums exact."""
    return (np.random.default_rng(seed).integers(-8, 9, sizes) / 8).astype(type)


def _by_window_gradients(x: Array, incoming: Array, form: Form, include: bool | None) -> Array:
    """The gradient at x, of maxima if `include` is None, else of averages."""
    result = np.zeros(x.shape)
    for place in np.ndindex(*incoming.shape):
        axes, inside = [], 1
        for axis, o in enumerate(place[2:]):
            first = o * form.strides[axis] - form.start[axis]
            at = [first + k * form.dilations[axis] for k in range(form.extents[axis])]
            axes.append([i for i in at if 0 <= i < form.image[axis]])
            inside *= sum(i < form.image[axis] + form.end[axis] for i in at) if include else len(axes[-1])
        found = [(*place[:2], *inner) for inner in product(*axes)]
        if include is None and found:
            values = [x[one] for one in found]
            result[found[int(np.argmax(values))]] += incoming[place]
        elif include is not None:
            for one in found:
                result[one] += np.float64(incoming[place]) / inside
    return result


def _average(form: Form, include: bool, type: Any, device: str) -> None:
    incoming = _values(1, (2, 3, *form.counts), type)
    x = np.zeros((2, 3, *form.image), type)
    attributes = _attributes(form, dilated=False) | {"include_padding": include}
    (result,) = on_arrays(descs.AveragePoolingGrad, [incoming], [x], device, **attributes)
    assert_within("AVERAGE_POOLING_GRAD", result, _by_window_gradients(x, incoming, form, include))


def _maximum(form: Form, type: Any, device: str) -> None:
    x, incoming = _values(0, (2, 3, *form.image), type), _values(1, (2, 3, *form.counts), type)
    (result,) = on_arrays(descs.MaxPoolingGrad, [x, incoming], [x], device, **_attributes(form))
    np.testing.assert_array_equal(result, _by_window_gradients(x, incoming, form, None))


@pairwise(device=device_kinds(), type=[np.float32, np.float16], include=[False, True], form=UNDILATED)
def test_average_of_gradients(form: Form, include: bool, type: Any, device: str) -> None:
    _average(form, include, type, device)


@pairwise(device=device_kinds(), type=[np.float32, np.float16], form=FORMS)
def test_maximum(form: Form, type: Any, device: str) -> None:
    _maximum(form, type, device)


def _form(data: st.DataObject, dilated: bool) -> Form:
    rank = data.draw(st.integers(2, 3))
    extents, strides, dilations, start, end, room = (
        tuple(data.draw(st.integers(least, most)) for _ in range(rank))
        for least, most in ((1, 5 - rank), (1, 4), (1, 3 if dilated else 1), (0, 3), (0, 3), (0, 5))
    )
    image = tuple((k - 1) * d + 1 + more for k, d, more in zip(extents, dilations, room, strict=True))
    return Form(image, extents, strides, dilations, start, end, data.draw(st.booleans()))


@every_device
@given(data=st.data())
@examples
def test_any_average(device: str, data: st.DataObject) -> None:
    _average(_form(data, dilated=False), data.draw(st.booleans()), np.float32, device)


@every_device
@given(data=st.data())
@examples
def test_any_maximum(device: str, data: st.DataObject) -> None:
    _maximum(_form(data, dilated=True), np.float32, device)


@every_device
def test_nan_and_the_first_of_equals_take_the_gradient(device: str) -> None:
    x = np.array([[[[1, np.nan, np.nan, 2, 2, 1, -np.inf, -np.inf]]]], np.float32)
    incoming = np.array([[[[1, 2, 4, 8]]]], np.float32)
    form = Form((1, 8), (1, 2), (1, 2), (1, 1), (0, 0), (0, 0))
    (result,) = on_arrays(descs.MaxPoolingGrad, [x, incoming], [x], device, **_attributes(form))
    np.testing.assert_array_equal(result.reshape(-1), [0, 1, 2, 0, 4, 0, 8, 0])


@every_device
def test_windows_of_padding_give_their_gradient_to_nothing(device: str) -> None:
    x, incoming = np.ones((1, 1, 2, 2), np.float32), np.full((1, 1, 3, 3), 5, np.float32)
    form = Form((2, 2), (1, 1), (2, 2), (1, 1), (2, 2), (1, 1))
    expected = np.zeros((1, 1, 2, 2))
    expected[0, 0, 0, 0] = 5
    (result,) = on_arrays(descs.MaxPoolingGrad, [x, incoming], [x], device, **_attributes(form))
    np.testing.assert_array_equal(result, expected)


def test_windows_are_searched_once() -> None:
    """The indices of the greatest elements lie in memory: they are not found anew at each place."""
    x = TensorDesc(TensorDataType.FLOAT32, [2, 3, 12, 12])
    incoming = TensorDesc(TensorDataType.FLOAT32, [2, 3, 6, 6])
    desc = descs.MaxPoolingGrad(
        x, incoming, x, **_attributes(Form((12, 12), (3, 3), (2, 2), (1, 1), (1, 1), (0, 0)))
    )
    assert len(launches(desc)) > 1


def test_strides_and_padding_may_be_left_out() -> None:
    gradient = np.ones((1, 1, 2, 3), np.float32)
    result = dml.average_pooling_grad(gradient, window_size=[2, 1], include_padding=False, sizes=[1, 1, 3, 3])
    np.testing.assert_array_equal(result[0, 0], [[0.5] * 3, [1] * 3, [0.5] * 3])


@types
def test_sums_are_rounded_before_they_lie_in_memory(type: Any) -> None:
    data_type = TensorDataType[np.dtype(type).name.upper()]
    x, incoming = (TensorDesc(data_type, [2, 3, size, size]) for size in (11, 6))
    window = {"strides": (2, 2), "window_size": (3, 3), "start_padding": (1, 1), "end_padding": (1, 1)}
    desc = descs.AveragePoolingGrad(incoming, x, **window, include_padding=True)
    program = program_of(desc)
    kernels = fuse(replace(program, results=simplify(program.results))).kernels
    assert ScalarType.FLOAT64 not in {store.type for kernel in kernels for store in kernel.stores}


@pytest.mark.parametrize("before", [0, 1, 3])
def test_whole_blocks_of_places_are_written_where_they_belong(before: int) -> None:
    x, incoming = (
        TensorDesc(TensorDataType.FLOAT32, [2, 3, size, size]) for size in (12, (10 + before) // 2)
    )
    window = {"strides": (2, 2), "window_size": (4, 4), "start_padding": (before,) * 2, "end_padding": (0, 0)}
    desc = descs.AveragePoolingGrad(incoming, x, **window, include_padding=True)
    program = program_of(desc)
    assert len(fuse(replace(program, results=simplify(program.results))).kernels) == 1


@pytest.mark.parametrize("width", [100, 300, 40_000])
def test_numbers_of_greatest_elements_are_as_wide_as_windows_need(width: int) -> None:
    """In UINT8, UINT16 and UINT32; equal elements have numbers that differ by much."""
    x = np.random.default_rng(width).integers(0, 3, (1, 2, 4, width)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    gradient = np.random.default_rng(1).uniform(-1, 1, windows.shape[:4]).astype(np.float32)
    greatest = windows.reshape(*windows.shape[:4], 9).argmax(-1)
    expected = np.zeros(x.shape)
    batch, channel, row, column = np.indices(greatest.shape)
    np.add.at(expected, (batch, channel, row + greatest // 3, column + greatest % 3), gradient)
    y = dml.max_pooling_grad(x, gradient, window_size=[3, 3], strides=[1, 1])
    np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-6, atol=1e-6)


every_float = pytest.mark.parametrize("type", ["float32", "float16"])
# Sizes of the image, windows, strides, dilations, padding before and after.
WINDOWS = [
    ((5, 7), (3, 2), (1, 1), (1, 1), (1, 0), (0, 1)),
    ((9, 8), (3, 3), (2, 3), (1, 1), (0, 1), (1, 2)),
    ((8, 6), (2, 2), (2, 2), (1, 1), (0, 0), (0, 0)),
    ((11, 7), (2, 3), (1, 1), (3, 2), (2, 0), (0, 2)),
    ((12, 9), (3, 2), (2, 3), (3, 2), (1, 2), (2, 1)),
    ((6,), (3,), (4,), (1,), (1,), (2,)),
    ((4, 5, 6), (2, 3, 2), (1, 2, 2), (2, 1, 1), (0, 1, 0), (1, 0, 1)),
]
every_window = pytest.mark.parametrize("windows", WINDOWS, ids=str)
Windows = tuple[tuple[int, ...], ...]


def _places(windows: Windows) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """The element of a window, the number of the window, and its place, of all in the image."""
    image, extents, strides, dilations, before, _ = windows
    counts = _counts(windows)
    for number, block in enumerate(itertools.product(*map(range, counts))):
        for element, tap in enumerate(itertools.product(*map(range, extents))):
            place = tuple(
                b * stride + t * dilation - start
                for b, t, stride, dilation, start in zip(block, tap, strides, dilations, before, strict=True)
            )
            if all(0 <= p < size for p, size in zip(place, image, strict=True)):
                yield element, number, place


def _counts(windows: Windows) -> list[int]:
    return [
        (size + start + end - dilation * (extent - 1) - 1) // stride + 1
        for size, extent, stride, dilation, start, end in zip(*windows, strict=True)
    ]


def _attributes_folding(windows: Windows) -> dict[str, Sequence[int]]:
    names = ("window_sizes", "strides", "dilations", "start_padding", "end_padding")
    return dict(zip(names, windows[1:], strict=True))


def _columns(windows: Windows, type: str) -> Array:
    rows, count = int(np.prod(windows[1])), int(np.prod(_counts(windows)))
    return np.zeros((2, 3 * rows, count), type)


@every_device
@every_float
@every_window
def test_unfold_takes_each_window(windows: Windows, type: str, device: str) -> None:
    x = np.random.default_rng(1).integers(1, 100, (2, 3, *windows[0])).astype(type)
    expected = _columns(windows, type)
    rows = int(np.prod(windows[1]))
    for element, number, place in _places(windows):
        for channel in range(3):
            expected[:, channel * rows + element, number] = x[:, channel][(slice(None), *place)]
    (result,) = on_arrays(descs.Unfold, [x], [expected], device, **_attributes_folding(windows))
    np.testing.assert_array_equal(result, expected)


@every_device
@every_float
@every_window
def test_fold_adds_up_what_unfold_takes(windows: Windows, type: str, device: str) -> None:
    x: Array = _columns(windows, type)
    x[...] = np.random.default_rng(2).integers(1, 20, x.shape)
    expected = np.zeros((2, 3, *windows[0]), type)
    rows = int(np.prod(windows[1]))
    for element, number, place in _places(windows):
        for channel in range(3):
            expected[:, channel][(slice(None), *place)] += x[:, channel * rows + element, number]
    (result,) = on_arrays(descs.Fold, [x], [expected], device, **_attributes_folding(windows))
    np.testing.assert_array_equal(result, expected)


def test_all_but_the_windows_may_be_left_out() -> None:
    columns = np.ones((1, 2, 6), np.float32)
    result = dml.fold(columns, window_sizes=[2, 1], sizes=[1, 1, 3, 3])
    np.testing.assert_array_equal(result[0, 0], [[1] * 3, [2] * 3, [1] * 3])


HUGE = 2**30
X = np.array([[[[1, 2, -3], [4, 8, 5]]]], np.float32)
FORMS_HUGE = {
    "one stride": ([HUGE, HUGE], [1, 1], [1, 1], [HUGE - 1, HUGE - 1], [0, 1]),
    "huge strides": ([HUGE, HUGE], [HUGE // 2, HUGE // 4], [1, 1], [HUGE - 1, HUGE - 2], [HUGE, HUGE]),
    "dilated": ([HUGE, HUGE], [1, 3], [2, 1], [2 * HUGE - 2, HUGE - 1], [1, 4]),
    "one dimension": ([HUGE, 2], [1, 1], [1, 1], [HUGE - 1, 1], [0, 0]),
    "just above the limit": ([MOST_IDLE + 3, MOST_IDLE + 4], [1, 2], [1, 1], [MOST_IDLE + 2] * 2, [1, 2]),
}
every_form = pytest.mark.parametrize("form", FORMS_HUGE.values(), ids=FORMS_HUGE)
HugeForm = tuple[list[int], list[int], list[int], list[int], list[int]]


def counts(form: HugeForm) -> list[int]:
    window, strides, dilations, start, end = form
    spans = [(extent - 1) * dilation + 1 for extent, dilation in zip(window, dilations, strict=True)]
    each = zip(X.shape[2:], spans, strides, start, end, strict=True)
    return [(size + a + b - span) // stride + 1 for size, span, stride, a, b in each]


def elements(form: HugeForm) -> dict[tuple[int, ...], Array]:
    """Whether each element of X is in the window of each output."""
    window, strides, dilations, start, _ = form
    found = {}
    for output in product(*map(range, counts(form))):
        inside = []
        for axis, o in enumerate(output):
            first = o * strides[axis] - start[axis]
            places = range(first, first + window[axis] * dilations[axis], dilations[axis])
            inside.append(np.array([place in places for place in range(X.shape[2 + axis])]))
        found[output] = np.outer(*inside)
    return found


def options(form: HugeForm, *, dilated: bool = True) -> dict[str, list[int]]:
    names = ("window_size", "strides", "dilations", "start_padding", "end_padding")
    given = dict(zip(names, form, strict=True))
    return given if dilated else {name: each for name, each in given.items() if name != "dilations"}


@every_device
@every_form
def test_averages_of_what_windows_have_of_the_tensor(device: str, form: HugeForm) -> None:
    y = np.asarray(dml.average_pooling1(X, include_padding=False, device=device, **options(form)))
    whole = np.asarray(dml.average_pooling1(X, include_padding=True, device=device, **options(form)))
    for output, inside in elements(form).items():
        total = float(X[0, 0][inside].sum(dtype=np.float64))
        np.testing.assert_allclose(y[0, 0][output], total / max(inside.sum(), 1), rtol=1e-6)
        np.testing.assert_allclose(whole[0, 0][output], total / np.prod(form[0], dtype=float), rtol=1e-6)


@every_device
@every_form
def test_norms_and_greatest_elements_of_what_windows_have_of_the_tensor(device: str, form: HugeForm) -> None:
    norm = np.asarray(dml.lp_pooling1(X, p=2, device=device, **options(form)))
    greatest, index = dml.max_pooling2(X, output_indices=True, device=device, **options(form))
    for output, inside in elements(form).items():
        values = np.where(inside, X[0, 0], -np.inf)
        np.testing.assert_allclose(norm[0, 0][output], np.sqrt((X[0, 0][inside] ** 2).sum()), rtol=1e-6)
        assert np.asarray(greatest)[0, 0][output] == values.max()
        assert np.asarray(index)[0, 0][output] == (values.argmax() if inside.any() else X.size)


@every_device
@every_form
def test_gradients_of_what_windows_have_of_the_tensor(device: str, form: HugeForm) -> None:
    gradient = np.arange(1, 1 + np.prod(counts(form)), dtype=np.float32).reshape(1, 1, *counts(form))
    y = dml.max_pooling_grad(X, gradient, device=device, **options(form))
    wanted = np.zeros(X.shape[2:])
    for output, inside in elements(form).items():
        if inside.any():
            values = np.where(inside, X[0, 0], -np.inf)
            wanted[np.unravel_index(values.argmax(), values.shape)] += gradient[0, 0][output]
    np.testing.assert_allclose(np.asarray(y)[0, 0], wanted, rtol=1e-6)


@every_device
def test_gradients_of_averages_are_shared_among_the_elements_that_windows_have(device: str) -> None:
    form = FORMS_HUGE["huge strides"]
    gradient = np.arange(1, 1 + np.prod(counts(form)), dtype=np.float32).reshape(1, 1, *counts(form))
    sizes = list(X.shape)
    y = dml.average_pooling_grad(
        gradient, include_padding=False, sizes=sizes, device=device, **options(form, dilated=False)
    )
    wanted = np.zeros(X.shape[2:])
    for output, inside in elements(form).items():
        wanted += inside * gradient[0, 0][output] / max(inside.sum(), 1)
    np.testing.assert_allclose(np.asarray(y)[0, 0], wanted, rtol=1e-6)


@every_device
@pytest.mark.parametrize(
    ("stride", "dilation", "start"),
    [(1, HUGE, HUGE - 2), (HUGE, 1, HUGE // 2), (3, HUGE, HUGE + 1), (2, 258, 7), (HUGE, HUGE, 5)],
)
def test_transposed_convolutions_with_huge_gaps(device: str, stride: int, dilation: int, start: int) -> None:
    filter = np.array([[[[2, 3, 5]], [[7, 11, 13]]]], np.float32)
    bias = np.array([1, -1], np.float32).reshape(1, 2, 1, 1)
    x = np.array([[[[1, 10, 100]]]], np.float32)
    whole = 2 * stride + 2 * dilation + 1
    end = whole - start - 5
    y = dml.convolution(
        x,
        filter,
        bias,
        direction="BACKWARD",
        strides=[1, stride],
        dilations=[1, dilation],
        start_padding=[0, start],
        end_padding=[0, end],
        device=device,
    )
    wanted = np.zeros((2, 5)) + bias.reshape(2, 1)
    for channel, i, k in product(range(2), range(3), range(3)):
        place = i * stride + k * dilation - start
        if 0 <= place < 5:
            wanted[channel, place] += x[0, 0, 0, i] * filter[0, channel, 0, k]
    np.testing.assert_array_equal(np.asarray(y)[0, :, 0], wanted)
