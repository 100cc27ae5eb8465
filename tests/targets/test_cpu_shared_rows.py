"""Element-wise kernels on the CPU whose neighbouring rows are computed together, since they read the same."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Kernel
from opendml.program.sizes import is_traced
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of
from opendml.targets.common.candidates import Estimate
from opendml.targets.cpu import schedule_elements, shared_rows
from opendml.targets.cpu.launch import CpuLaunch, query_of
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.pattern import IMAGE_BYTES, CopiedImage, CpuMode, ElementWalk
from opendml.targets.cpu.schedule import schedule
from opendml.targets.cpu.schedule_elements import ELEMENTS
from tests.targets.kernels import run_launches
from tests.targets.walks import check
from tests.tolerances import assert_within

Sizes = tuple[int, int]
LANES = machine().lanes


def depthwise(
    image: Sizes, window: Sizes, strides: Sizes, dilations: Sizes, start: Sizes, end: Sizes, channels: int = 3
) -> Any:
    """The desc of a convolution of each channel alone, with bias and ReLU."""
    x = dml.TensorDesc(dml.FLOAT32, [2, channels, *image])
    filters = dml.TensorDesc(dml.FLOAT32, [channels, 1, *window])
    bias = dml.TensorDesc(dml.FLOAT32, [1, channels, 1, 1])
    extents = [(size - 1) * dilation + 1 for size, dilation in zip(window, dilations, strict=True)]
    sizes = [
        (size + before + after - extent) // stride + 1
        for size, before, after, extent, stride in zip(image, start, end, extents, strides, strict=True)
    ]
    return dml.descs.Convolution(
        x,
        filters,
        bias,
        dml.TensorDesc(dml.FLOAT32, [2, channels, *sizes]),
        strides=strides,
        dilations=dilations,
        start_padding=start,
        end_padding=end,
        output_padding=(0, 0),
        group_count=channels,
        fused_activation=dml.descs.ActivationRelu(),
    )


def kernel_of(desc: Any) -> Kernel:
    """The one kernel of an operator."""
    (kernel,) = fuse(program_of(desc)).kernels
    return kernel


def launches(kernel: Kernel, name: str) -> list[CpuLaunch]:
    """The launches of the candidate of a name."""
    query = query_of(kernel)
    (way,) = (each for each in ELEMENTS if each.name == name)
    answer = way.estimate(query)
    assert isinstance(answer, Estimate), answer
    assert way.construct
    return way.construct(query, answer.choice)


def fenced(array: Array) -> Array:
    """A copy of an array behind which nothing can be read."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, -(-array.nbytes // page) * page + page)
    bytes = np.frombuffer(memory, np.uint8)
    unreadable = ctypes.c_void_p(bytes.ctypes.data + len(bytes) - page)
    assert ctypes.CDLL(None).mprotect(unreadable, ctypes.c_size_t(page), 0) == 0
    end = len(bytes) - page
    result = bytes[end - array.nbytes : end].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


def convolved(desc: Any, x: Array, filters: Array, bias: Array) -> tuple[Array, Array]:
    """The convolution in float64, and what is added up for each result."""
    margins = [(0, 0), (0, 0), *zip(desc.start_padding, desc.end_padding, strict=True)]
    image = np.pad(x.astype(np.float64), margins)
    height, width = desc.output_tensor.sizes[2:]
    total, terms = np.zeros((2, *desc.output_tensor.sizes))
    for row, column in np.ndindex(*filters.shape[2:]):
        top, left = row * desc.dilations[0], column * desc.dilations[1]
        seen = image[:, :, top :: desc.strides[0], left :: desc.strides[1]][:, :, :height, :width]
        products = seen * filters[:, 0, row, column].reshape(1, -1, 1, 1)
        total += products
        terms += np.abs(products)
    return np.maximum(total + bias, 0), terms + np.abs(bias)


FORMS = [
    depthwise((7, 7), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
    depthwise((14, 14), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)),
    depthwise((13, 5), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)),
    depthwise((10, 16), (5, 5), (1, 1), (1, 1), (2, 2), (2, 2)),
    depthwise((9, 15), (3, 4), (2, 2), (1, 2), (0, 1), (1, 4)),
    depthwise((1, 8), (3, 3), (1, 2), (1, 1), (2, 0), (1, 1)),
    depthwise((23, 40), (5, 3), (1, 3), (2, 1), (3, 0), (0, 2)),
    depthwise((11, 35), (2, 4), (1, 2), (1, 2), (0, 4), (2, 1)),
    depthwise((150, 45), (5, 5), (1, 1), (1, 1), (2, 2), (2, 2)),
    depthwise((9, 1501), (3, 5), (2, 2), (1, 2), (0, 4), (1, 3)),
]
"""The last ones are copied in parts: of rows, and of columns."""


@pytest.mark.parametrize("desc", FORMS, ids=lambda desc: f"{desc.input_tensor.sizes[2:]} {desc.strides}")
def test_rows_together_have_the_bits_of_rows_alone(desc: Any) -> None:
    kernel = kernel_of(desc)
    random = np.random.default_rng(1)
    x, filters, bias = (
        fenced(random.standard_normal(each.sizes, np.float32))
        for each in (desc.input_tensor, desc.filter_tensor, desc.bias_tensor)
    )
    together, alone = (np.full(desc.output_tensor.sizes, np.nan, np.float32) for _ in range(2))
    run_launches(launches(kernel, "blocks of shared rows"), [x, filters, bias, fenced(together)])
    for out, name, at_once in (
        (together, "blocks of shared rows", None),
        (alone, "blocks of rows", None),
        (together, "blocks of shared rows", 1),
    ):
        run_launches(launches(kernel, name), [x, filters, bias, out], at_once)
        assert_within("CONVOLUTION", out, *convolved(desc, x, filters, bias))
    np.testing.assert_array_equal(together.view(np.uint32), alone.view(np.uint32))


def test_what_is_read_under_several_guards_is_no_pair() -> None:
    desc = depthwise((20, 2), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1))
    random = np.random.default_rng(3)
    x, filters, bias = (
        random.standard_normal(each.sizes, np.float32)
        for each in (desc.input_tensor, desc.filter_tensor, desc.bias_tensor)
    )
    kernel, out = kernel_of(desc), np.empty(desc.output_tensor.sizes, np.float32)
    run_launches(schedule(kernel), [x, filters, bias, out])
    assert_within("CONVOLUTION", out, *convolved(desc, x, filters, bias))


def test_what_is_not_a_number_beside_a_margin_stays_where_it_is() -> None:
    x: Array = np.ones((1, 2, 7, 7), np.float32)
    x[0, 0, 0, 0], x[0, 1, 6, 6] = np.nan, np.inf
    filters = np.ones((2, 1, 3, 3), np.float32)
    out = dml.convolution(x, filters, start_padding=[1, 1], end_padding=[1, 1], group_count=2, device="cpu")
    assert np.argwhere(~np.isfinite(out[0, 0])).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert np.argwhere(~np.isfinite(out[0, 1])).tolist() == [[5, 5], [5, 6], [6, 5], [6, 6]]


POOLINGS: list[Callable[[Array], Any]] = [
    lambda x: dml.max_pooling(
        x, window_size=[3, 3], strides=[2, 2], start_padding=[1, 1], end_padding=[1, 1], device="cpu"
    ),
    lambda x: dml.average_pooling(
        x,
        window_size=[3, 3],
        strides=[1, 1],
        start_padding=[1, 1],
        end_padding=[1, 1],
        include_padding=False,
        device="cpu",
    ),
]


@pytest.mark.parametrize(
    ("operator", "pooling", "dtype"),
    list(zip(("MAX_POOLING", "AVERAGE_POOLING"), POOLINGS, (np.float32, np.float16), strict=True)),
    ids=["max", "average"],
)
def test_pooling_of_shared_rows_is_that_of_each_channel_with_columns_for_rows(
    operator: str, pooling: Callable[[Array], Any], dtype: type
) -> None:
    x: Array = np.random.default_rng(2).standard_normal((1, 5, 19, 23)).astype(dtype)
    turned = pooling(np.ascontiguousarray(x.swapaxes(2, 3)))
    assert_within(operator, pooling(x).swapaxes(2, 3), turned)


def test_the_row_of_zeros_is_as_long_as_blocks_of_narrow_elements() -> None:
    sizes = [1, 1, 5, 40_000]
    tensor = dml.TensorDesc(dml.INT8, sizes)
    desc = dml.descs.MaxPooling2(
        tensor,
        tensor,
        None,
        strides=(1, 1),
        window_size=(3, 1),
        start_padding=(1, 0),
        end_padding=(1, 0),
        dilations=(1, 1),
    )
    x = np.random.default_rng(4).integers(-128, 128, sizes, np.int8)
    out = np.empty_like(x)
    run_launches(launches(kernel_of(desc), "blocks of shared rows"), [x, out])
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (0, 0)], constant_values=-128)
    np.testing.assert_array_equal(out, np.maximum(np.maximum(padded[:, :, :-2], x), padded[:, :, 2:]))


@pytest.mark.parametrize("desc", FORMS[:3], ids=lambda desc: f"{desc.input_tensor.sizes[2:]} {desc.strides}")
def test_rows_of_windows_are_computed_together(desc: Any) -> None:
    assert [launch.pattern.mode for launch in schedule(kernel_of(desc))] == [CpuMode.SHARED_ROWS]


@pytest.mark.parametrize(
    ("desc", "planes"),
    [(FORMS[0], 1), (FORMS[1], 4), (FORMS[-2], 1), (depthwise((9, 112), (3, 3), (1, 1), *[(1, 1)] * 3), 0)],
    ids=["one", "four", "parts", "wide"],
)
def test_images_with_margins_are_copied_unless_they_are_wide_for_their_windows(
    desc: Any, planes: int
) -> None:
    (launch,) = launches(kernel_of(desc), "blocks of shared rows")
    rows = launch.pattern.walk_as(ElementWalk).shared_rows
    assert (len(rows.planes) if isinstance(rows, CopiedImage) else 0) == planes


@pytest.mark.parametrize(("columns", "fits"), [(7, True), (LANES, True), (LANES + 1, False)])
def test_rows_of_an_image_are_in_vectors_if_they_fit(columns: int, fits: bool) -> None:
    desc = depthwise((9, columns), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1))
    (launch,) = launches(kernel_of(desc), "blocks of shared rows")
    rows = launch.pattern.walk_as(ElementWalk).shared_rows
    assert isinstance(rows, CopiedImage)
    assert rows.fits_vectors is fits


def test_a_copied_image_fits_for_all_sizes_that_share_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks: list[tuple[int, int]] = []

    def noted(query: Any, nest: Any, mode: CpuMode, block: int, chunk: int, image: Any = None) -> Any:
        if isinstance(image, CopiedImage):
            count = nest.inner.count
            blocks.append((block if is_traced(count) else min(block, count), chunk))
        return constructed(query, nest, mode, block, chunk, image)

    constructed = schedule_elements._blocks_of_rows
    monkeypatch.setattr(schedule_elements, "_blocks_of_rows", noted)
    random = np.random.default_rng(5)
    filters = random.standard_normal((2, 1, 2, 1), np.float32)
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [1, 2, "height", "width"])
    y = dml.convolution(x, graph.constant(filters), start_padding=[1, 1], end_padding=[1, 1], group_count=2)
    model = graph.compile({"y": y}, "cpu")
    for height, width in ((200, 40), (200, 63), (180, 64), (200, 33)):
        image = random.standard_normal((1, 2, height, width), np.float32)
        bare = dml.convolution(
            image, filters, start_padding=[1, 1], end_padding=[1, 1], group_count=2, device="cpu"
        )
        np.testing.assert_array_equal(model(image)["y"], bare)
    assert IMAGE_BYTES < (40 + 4) * (200 + 4) * 4
    assert blocks
    for block, chunk in blocks:
        assert block * (chunk + 1) * 4 <= IMAGE_BYTES


def test_rows_that_read_nothing_in_common_are_computed_alone() -> None:
    desc = depthwise((12, 12), (2, 2), (2, 2), (1, 1), (0, 0), (0, 0))
    assert [launch.pattern.mode for launch in schedule(kernel_of(desc))] == [CpuMode.POINTWISE]


def repeated(sizes: list[int], repeats: list[int], data_type: dml.TensorDataType) -> Any:
    """The desc of a TILE."""
    result = [size * count for size, count in zip(sizes, repeats, strict=True)]
    return dml.descs.Tile(
        dml.TensorDesc(data_type, sizes), dml.TensorDesc(data_type, result), repeats=repeats
    )


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("width", [512, 519])
@pytest.mark.parametrize("data_type", [dml.FLOAT32, dml.FLOAT16, dml.UINT8, dml.INT64])
def test_rows_together_are_streamed_where_all_lie_alike(data_type: dml.TensorDataType, width: int) -> None:
    rows = repeated([2, 33, width], [1, 2, 1], data_type)
    bundles = repeated([2, 33, width, 1], [1, 2, 1, 2], data_type)
    for desc in (rows, bundles):
        (launch,) = launches(kernel_of(desc), "blocks of shared rows")
        assert launch.pattern.stores[0].streamed is (width == 512)
        (taken,) = schedule(kernel_of(desc))
        assert any(store.streamed for store in taken.pattern.stores)
        check(desc, dml.Device("cpu"))


@pytest.mark.parametrize("strides", [(1, 1), (2, 1), (1, 2)])
def test_values_are_counted_as_they_are_shared(strides: Sizes) -> None:
    kernel = kernel_of(depthwise((19, 23), (3, 5), strides, (1, 1), (1, 2), (1, 2)))
    nest = query_of(kernel).nest
    loads = shared_rows._loads(kernel, nest)
    for each in shared_rows._nests(kernel, nest):
        counted = shared_rows._Readings(kernel, each, loads)
        for rows in (4, 2, 3):
            readings = shared_rows._Readings(kernel, each, loads).of(rows)
            values = {row[number] for row in readings for number in loads}
            assert counted.count_of(rows, list(loads)) == len(values)
