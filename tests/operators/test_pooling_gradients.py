"""Gradients of pooling against sums over the windows, and against PyTorch's."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendml as dml
from opendml import TensorDataType, TensorDesc, descs
from opendml.compiler.fuse import fuse
from opendml.compiler.simplify import simplify
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of
from tests.operators.test_pooling import FORMS, UNDILATED, Form, _attributes
from tests.pairwise import pairwise
from tests.peers.peer import examples
from tests.running import device_kinds, launches, on_arrays
from tests.tolerances import assert_within

every_device = pytest.mark.parametrize("device", device_kinds())
types = pytest.mark.parametrize("type", [np.float32, np.float16])


def _values(seed: int, sizes: tuple[int, ...], type: Any) -> Array:
    """Multiples of 1/8, of which many are equal, and all sums exact."""
    return (np.random.default_rng(seed).integers(-8, 9, sizes) / 8).astype(type)


def _by_window(x: Array, incoming: Array, form: Form, include: bool | None) -> Array:
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
    assert_within("AVERAGE_POOLING_GRAD", result, _by_window(x, incoming, form, include))


def _maximum(form: Form, type: Any, device: str) -> None:
    x, incoming = _values(0, (2, 3, *form.image), type), _values(1, (2, 3, *form.counts), type)
    (result,) = on_arrays(descs.MaxPoolingGrad, [x, incoming], [x], device, **_attributes(form))
    np.testing.assert_array_equal(result, _by_window(x, incoming, form, None))


@pairwise(
    device=device_kinds(),
    type=[np.float32, np.float16],
    include=[False, True],
    form=UNDILATED,
)
def test_average(form: Form, include: bool, type: Any, device: str) -> None:
    _average(form, include, type, device)


@pairwise(
    device=device_kinds(),
    type=[np.float32, np.float16],
    form=FORMS,
)
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


@every_device
@pytest.mark.parametrize("form", [FORMS[0], FORMS[1]], ids=str)
def test_gradients_agree_with_pytorch(form: Form, device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    generator = np.random.default_rng(0)
    x = generator.standard_normal((2, 3, *form.image)).astype(np.float32)
    incoming = generator.standard_normal((2, 3, *form.counts)).astype(np.float32)
    functional, padding = torch.nn.functional, form.start
    wide = torch.from_numpy(x.astype(np.float64)).requires_grad_()
    for pooled, desc, inputs, more in (
        (functional.max_pool2d, descs.MaxPoolingGrad, [x, incoming], {"dilations": form.dilations}),
        (functional.avg_pool2d, descs.AveragePoolingGrad, [incoming], {"include_padding": True}),
    ):
        wide.grad = None
        pooled(wide, form.extents, form.strides, padding).backward(torch.from_numpy(incoming).double())
        attributes = _attributes(form, dilated=False) | more
        (result,) = on_arrays(desc, inputs, [x], device, **attributes)
        assert_within(desc.operator, result, wide.grad.numpy())


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
