"""Windows, dilations and strides that are much larger than the tensor: only its elements are visited.

Each result is compared with the sum over all elements of the tensor that lie in the window. Before they were
clipped, these windows took hours.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import opendml as dml
from opendml.operators.pooling import MOST_IDLE
from opendml.runtime.memory.host_array import Array
from tests.running import device_kinds

every_device = pytest.mark.parametrize("device", device_kinds())
HUGE = 2**30
X = np.array([[[[1, 2, -3], [4, 8, 5]]]], np.float32)
FORMS = {
    "one stride": ([HUGE, HUGE], [1, 1], [1, 1], [HUGE - 1, HUGE - 1], [0, 1]),
    "huge strides": ([HUGE, HUGE], [HUGE // 2, HUGE // 4], [1, 1], [HUGE - 1, HUGE - 2], [HUGE, HUGE]),
    "dilated": ([HUGE, HUGE], [1, 3], [2, 1], [2 * HUGE - 2, HUGE - 1], [1, 4]),
    "one dimension": ([HUGE, 2], [1, 1], [1, 1], [HUGE - 1, 1], [0, 0]),
    "just above the limit": ([MOST_IDLE + 3, MOST_IDLE + 4], [1, 2], [1, 1], [MOST_IDLE + 2] * 2, [1, 2]),
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
Form = tuple[list[int], list[int], list[int], list[int], list[int]]


def counts(form: Form) -> list[int]:
    window, strides, dilations, start, end = form
    spans = [(extent - 1) * dilation + 1 for extent, dilation in zip(window, dilations, strict=True)]
    each = zip(X.shape[2:], spans, strides, start, end, strict=True)
    return [(size + a + b - span) // stride + 1 for size, span, stride, a, b in each]


def elements(form: Form) -> dict[tuple[int, ...], Array]:
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


def options(form: Form, *, dilated: bool = True) -> dict[str, list[int]]:
    names = ("window_size", "strides", "dilations", "start_padding", "end_padding")
    given = dict(zip(names, form, strict=True))
    return given if dilated else {name: each for name, each in given.items() if name != "dilations"}


@every_device
@every_form
def test_averages_of_what_windows_have_of_the_tensor(device: str, form: Form) -> None:
    y = np.asarray(dml.average_pooling1(X, include_padding=False, device=device, **options(form)))
    whole = np.asarray(dml.average_pooling1(X, include_padding=True, device=device, **options(form)))
    for output, inside in elements(form).items():
        total = float(X[0, 0][inside].sum(dtype=np.float64))
        np.testing.assert_allclose(y[0, 0][output], total / max(inside.sum(), 1), rtol=1e-6)
        np.testing.assert_allclose(whole[0, 0][output], total / np.prod(form[0], dtype=float), rtol=1e-6)


@every_device
@every_form
def test_norms_and_greatest_elements_of_what_windows_have_of_the_tensor(device: str, form: Form) -> None:
    norm = np.asarray(dml.lp_pooling1(X, p=2, device=device, **options(form)))
    greatest, index = dml.max_pooling2(X, output_indices=True, device=device, **options(form))
    for output, inside in elements(form).items():
        values = np.where(inside, X[0, 0], -np.inf)
        np.testing.assert_allclose(norm[0, 0][output], np.sqrt((X[0, 0][inside] ** 2).sum()), rtol=1e-6)
        assert np.asarray(greatest)[0, 0][output] == values.max()
        assert np.asarray(index)[0, 0][output] == (values.argmax() if inside.any() else X.size)


@every_device
@every_form
def test_gradients_of_what_windows_have_of_the_tensor(device: str, form: Form) -> None:
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
    form = FORMS["huge strides"]
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
    [
        (1, HUGE, HUGE - 2),
        (HUGE, 1, HUGE // 2),
        (3, HUGE, HUGE + 1),
        (2, 258, 7),
        (HUGE, HUGE, 5),
    ],
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
