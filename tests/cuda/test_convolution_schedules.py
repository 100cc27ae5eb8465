"""Schedules of convolutions on compute capability 9.0: tensor maps, and copies to channels
last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Access, Kernel
from opendml.frontends.common.attention import in_rows
from opendml.program.node import Operation, convert
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.view import reshaped
from opendml.runtime.program import program_of
from opendml.spec import descs
from opendml.spec.tensor_desc import TensorDesc
from opendml.targets.common.candidates import Estimate
from opendml.targets.common.forms import Memo
from opendml.targets.common.guards import guards_of
from opendml.targets.cuda import channels_last, tensor_map
from opendml.targets.cuda.channels_last import with_channels_last
from opendml.targets.cuda.image_layouts import _Images
from opendml.targets.cuda.launch import CudaLaunch
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.parameters import ParameterStruct
from opendml.targets.cuda.pattern import CudaMode
from opendml.targets.cuda.planning import compiled_program
from opendml.targets.cuda.schedule import schedule
from opendml.targets.cuda.schedule_contraction import CudaTileChoice, Shape, estimates
from opendml.targets.cuda.schedule_warpgroups import ConvolutionShape, PartConvolutionShape
from opendml.targets.cuda.tensor_map import CORNERS, MOST_OFFSET, MOST_TRAVERSED, TensorMap, WindowMap
from opendml.targets.cuda.warpgroup_tile import PART_WINDOW_TILES, WINDOW_TILES
from opendml.targets.kept import addresses_within, kept_bytes
from opendml.targets.reference.backend import ReferenceExecutable
from tests.cuda.compiled import MACHINES, aligned
from tests.cuda.test_warpgroup_schedules import MapDriver
from tests.nodes import convolution
from tests.programs import initialize
from tools.contraction_cases import channels_last as channels_last_of
from tools.cuda_case import Case
from tools.cuda_check import worst_of
from tools.cuda_contraction_cases import byte_convolution, convolved, moved_windows
from tools.cuda_emulator import COMPILER, emulated
from tools.cuda_tiles import in_tiles
from tools.machines import planned
from tools.operator_case import Sizes, graph_program

FLOAT16 = ScalarType.FLOAT16
MACHINE = MACHINES[90]
Images = tuple[int, int, int, int]
Filters = tuple[int, int, int]
SAME = {"before": 1, "after": 1}


def kernel_of(program: Program) -> Kernel:
    (kernel,) = fuse(program).kernels
    return kernel


def shape_of(images: Images, filters: Filters, **form: int) -> ConvolutionShape:
    kernel = kernel_of(moved_windows(images, filters, **form))
    return ConvolutionShape(Shape(kernel, aligned(kernel)))


def maps_of(images: Images, filters: Filters, **form: int) -> tuple[WindowMap, TensorMap]:
    """Return the tensor maps of images and filters, in tiles of 128 x 64."""
    alone = (each for each in WINDOW_TILES if each.blocks_of_cluster == 1)
    tile = next(each for each in alone if (each.rows, each.columns) == (128, 64))
    a, b = shape_of(images, filters, **form).launch(tile, 1, MACHINE).maps
    return (a, b) if isinstance(a, WindowMap) else (b, a)  # type: ignore[return-value]


def last_channels(sizes: Images) -> Layout:
    """Return a tensor of FLOAT16 with its second dimension innermost."""
    _, c, h, w = sizes
    return Layout(FLOAT16, sizes, (2 * c * h * w, 2, 2 * c * w, 2 * c))


def copy_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make copies cost nothing, which nobody remembers."""
    monkeypatch.setattr(channels_last, "_COPY_CYCLES", -1e9)
    monkeypatch.setattr(channels_last, "_known", Memo())


def packed_convolution(images: Images, filters: Filters, constant: bool = False, **form: int) -> Program:
    """Return a convolution whose tensors are packed, as DirectML's default is."""
    product = convolution(FLOAT16, images, filters, **form)
    output = (images[0], filters[0], *product.sizes[3:5])
    return Program(
        (packed(FLOAT16, images), packed(FLOAT16, (filters[0], images[1], *filters[1:]))),
        (packed(FLOAT16, output),),
        (reshaped(convert(product, FLOAT16), output),),
        frozenset({1}) if constant else frozenset(),
    )


def test_a_window_map_describes_the_images_in_memory() -> None:
    """3 images of 72 channels and 13 x 20 pixels, by 40 filters of 3 x 5 with strides and dilations of 2."""
    images, filters = maps_of((3, 72, 13, 20), (40, 3, 5), stride=2, dilation=2, before=2, after=3)
    assert images.sizes == (72, 20, 13, 3)
    assert images.strides == (144, 20 * 144, 13 * 20 * 144)
    # 9 results to a line, the last of which begins at pixel 14 of 20; 7 lines, the last at 10 of 13.
    assert (images.lower, images.upper, images.steps) == ((-2, -2), (-5, -2), (2, 2))
    assert (images.box, filters.box) == ((64, 128), (64, 1, 1, 64))
    assert filters.sizes == (72, 5, 3, 40)
    assert filters.strides == (144, 5 * 144, 15 * 144)


def test_the_images_begin_where_the_first_window_would_without_padding() -> None:
    images, _ = maps_of((2, 64, 9, 11), (40, 3, 3), **SAME)
    kernel = kernel_of(moved_windows((2, 64, 9, 11), (40, 3, 3), **SAME))
    assert kernel.loads[images.access].offset + images.offset == 0
    assert images.offset == (11 + 1) * 128


@pytest.mark.parametrize("tile", WINDOW_TILES, ids=str)
def test_maps_keep_within_the_limits_of_the_copy_engine(tile: object) -> None:
    for is_packed in (0, 1):
        shape = shape_of((3, 72, 16, 24), (40, 3, 5), stride=1, before=2, after=2, is_packed=is_packed)
        for map in shape.launch(tile, 1, MACHINE).maps:  # type: ignore[arg-type]
            assert all(stride % 16 == 0 for stride in map.strides)
            assert max(map.box) <= 256
            assert map.box[0] * map.type.bytes == 128
            if isinstance(map, WindowMap):
                assert {*map.lower, *map.upper} <= set(CORNERS)
                assert max(map.steps) <= MOST_TRAVERSED


@pytest.mark.parametrize(
    ("images", "filters", "form", "wanted"),
    [
        ((2, 64, 40, 40), (64, 3, 3), {"stride": MOST_TRAVERSED}, True),
        ((2, 64, 40, 40), (64, 3, 3), {"stride": MOST_TRAVERSED + 1}, False),
        ((1, 64, 300, 4), (64, 2, 1), {**SAME, "dilation": 127}, True),
        ((1, 64, 300, 4), (64, 2, 1), {**SAME, "dilation": 130}, False),
        ((1, 64, 4, 300), (64, 3, 3), {"before": 128, "after": 128}, True),
        ((1, 64, 4, 300), (64, 3, 3), {"before": 129, "after": 129}, False),
        ((2, 60, 20, 20), (64, 3, 3), {}, False),
        ((2, 16, 20, 20), (64, 3, 3), SAME, True),
        ((2, 8, 20, 20), (64, 3, 3), SAME, False),
        ((2, 64, 20, 20), (64, 3, 3), {"groups": 2}, False),
    ],
    ids=str,
)
def test_limits_of_the_copy_engine_decide_who_moves_the_window(
    images: Images, filters: Filters, form: dict[str, int], wanted: bool
) -> None:
    assert MOST_OFFSET == 255
    assert shape_of(images, filters, **form).is_loadable is wanted


def test_results_are_rows_and_columns_as_they_lie_in_memory() -> None:
    by_channels, by_pixels = (shape_of((2, 64, 8, 12), (40, 3, 3), **SAME, is_packed=each) for each in (0, 1))
    assert (by_channels.m, by_channels.n, by_channels.batch_count) == (192, 40, 1)
    assert (by_pixels.m, by_pixels.n, by_pixels.batch_count) == (40, 192, 1)


def test_units_of_results_do_not_run_over_the_end_of_an_image() -> None:
    """If an image has 45 pixels, which are no multiple of 8, results of FLOAT16 are stored one by one; for
    others each image is a matrix of its own."""
    shape = shape_of((3, 64, 5, 9), (64, 3, 3), **SAME, is_packed=1)
    assert (shape.m, shape.n, shape.batch_count) == (64, 135, 1)
    product = convolution(FLOAT16, (3, 64, 5, 9), (64, 3, 3), **SAME)
    inputs = last_channels((3, 64, 5, 9)), last_channels((64, 64, 3, 3))
    output = packed(ScalarType.FLOAT32, product.sizes)
    kernel = kernel_of(Program(inputs, (output,), (product,)))
    shape = ConvolutionShape(Shape(kernel, [16] * (len(kernel.loads) + 1)))
    assert (shape.m, shape.n, shape.batch_count) == (64, 45, 3)


@pytest.mark.parametrize("factor", [(2, 64, 1, 1), (2, 1, 1, 1), (1, 64, 8, 1)])
def test_results_that_read_a_value_of_each_image_or_line_read_it_for_each_column(
    factor: tuple[int, ...],
) -> None:
    """Columns are the pixels of all images. A factor that neighbouring pixels share, such as that of a
    squeeze-and-excitation block, is no value of a row of the tile."""
    launch = _launch_of_scaled(factor)
    assert dict(launch.pattern.constants)["STAGED_UNIT"] == 0


@pytest.mark.parametrize("factor", [(1, 64, 1, 1), (1, 1, 1, 1)])
def test_results_that_read_a_value_of_each_channel_go_through_shared_memory(factor: tuple[int, ...]) -> None:
    launch = _launch_of_scaled(factor)
    assert dict(launch.pattern.constants)["STAGED_UNIT"] > 0


def _launch_of_scaled(factor: tuple[int, ...]) -> CudaLaunch:
    """Return the launch of a convolution of FLOAT16 over images whose channels are innermost, and whose
    results, which are packed, are multiplied by a tensor of such sizes."""
    kernel = kernel_of(graph_program(_scaled_convolution, *_inputs_of_scaled(factor)))
    shape = ConvolutionShape(Shape(kernel, aligned(kernel)))
    return shape.launch(WINDOW_TILES[-1], 1, MACHINE)


def _inputs_of_scaled(factor: tuple[int, ...]) -> list[tuple[str, Sizes]]:
    images, filters = (2, 64, 8, 8), (64, 64, 3, 3)
    return [("FLOAT16", each) for each in (channels_last_of(images), channels_last_of(filters), factor)]


def _scaled_convolution(images: Any, filters: Any, factor: Any) -> Any:
    return factor * dml.convolution(images, filters, start_padding=[1, 1], end_padding=[1, 1])


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("factor", [(2, 64, 1, 1), (1, 1, 8, 1)])
def test_convolutions_scaled_by_image_or_line_compute_what_the_reference_does(
    factor: tuple[int, ...],
) -> None:
    program = graph_program(_scaled_convolution, *_inputs_of_scaled(factor))
    case = Case("scaled convolution", program, deviation=0.5, absolute=1e-2)
    with emulated():
        error, used = worst_of(case, partial(in_tiles, WINDOW_TILES[-1], 1))
    assert used == ["wgmma_windows"]
    assert error <= 1


def test_strided_windows_of_one_pixel_are_seen_as_one_matrix() -> None:
    shape = shape_of((4, 256, 28, 28), (512, 1, 1), stride=2)
    assert (shape.m, shape.n, shape.k) == (4 * 14 * 14, 512, 256)


def test_channels_of_a_tap_fill_whole_steps() -> None:
    assert shape_of((2, 72, 9, 11), (40, 3, 3), **SAME).k == 9 * 128


def test_how_a_window_moves_is_no_part_of_the_code() -> None:
    tile = WINDOW_TILES[0]
    forms = SAME, {"before": 2, "after": 2, "dilation": 2}
    launches = [shape_of((8, 64, 28, 28), (64, 3, 3), **form).launch(tile, 1, MACHINE) for form in forms]
    assert len({launch.pattern.text() for launch in launches}) == 1
    assert [launch.values["dilation0"] for launch in launches] == [1, 2]
    names = {*ParameterStruct(launches[0].pattern).words, *ParameterStruct(launches[0].pattern).divisors}
    assert {"begin0", "stride1", "pixels0", "pixels1", "taps0", "channels"} <= names


@pytest.mark.parametrize(
    ("type", "mode", "is_staged"),
    [
        (dml.FLOAT16, CudaMode.WGMMA_WINDOWS, True),
        (dml.FLOAT32, CudaMode.WGMMA_PART_WINDOWS, False),
    ],
)
def test_public_convolutions_of_channels_last_tensors_take_the_copy_engine(
    type: dml.TensorDataType, mode: CudaMode, is_staged: bool
) -> None:
    def tensor(*sizes: int) -> TensorDesc:
        _, c, h, w = sizes
        return TensorDesc(type, sizes, strides=(c * h * w, 1, w * c, c))

    desc = descs.Convolution(
        tensor(8, 64, 28, 28),
        tensor(96, 64, 3, 3),
        TensorDesc(type, (1, 96, 1, 1)),
        tensor(8, 96, 28, 28),
        strides=[1, 1],
        dilations=[1, 1],
        start_padding=[1, 1],
        end_padding=[1, 1],
        output_padding=[0, 0],
        group_count=1,
    )
    kernel = kernel_of(program_of(desc))
    pattern = schedule(kernel, MACHINE, aligned(kernel)).pattern
    assert pattern.mode is mode
    assert bool(dict(pattern.constants)["STAGED_BYTES"]) is is_staged


def test_convolutions_of_float32_have_steps_of_32_channels() -> None:
    kernel = kernel_of(moved_windows((2, 40, 9, 11), (40, 3, 3), type="FLOAT32", **SAME))
    shape = PartConvolutionShape(Shape(kernel, aligned(kernel)))
    images, filters = shape.launch(PART_WINDOW_TILES[0], 1, MACHINE).maps
    assert shape.k == 9 * 64
    assert (images.box, filters.box) == ((32, 128), (32, 1, 1, 128))


def test_few_results_of_float32_have_a_narrow_tile() -> None:
    kernel = kernel_of(moved_windows((2, 320, 64, 64), (4, 3, 3), type="FLOAT32", **SAME))
    constants = dict(schedule(kernel, MACHINE, aligned(kernel)).pattern.constants)
    assert (constants["ROWS"], constants["COLUMNS_OF_TILE"]) == (64, 32)


def test_packed_images_of_float32_are_copied_too() -> None:
    program = fuse(moved_windows((32, 64, 56, 56), (64, 3, 3), type="FLOAT32", is_packed=True, **SAME))
    assert len(with_channels_last(program, MACHINE).kernels) == 1
    program = fuse(convolved("FLOAT32", (32, 64, 56, 56), (64, 3, 3), **SAME))
    assert len(with_channels_last(program, MACHINE).kernels) == 3


@pytest.mark.parametrize(("outputs", "side", "copies"), [(32, 3, 0), (64, 7, 1)])
def test_small_windows_of_few_channels_are_not_copied(outputs: int, side: int, copies: int) -> None:
    """On an H100, copies take 1.25 of the time for 3 x 3, and 0.33 for 7 x 7."""
    margin = {"before": side // 2, "after": side // 2}
    program = packed_convolution((32, 3, 224, 224), (outputs, side, side), True, stride=2, **margin)
    assert len(with_channels_last(fuse(program), MACHINE).kernels) == 1 + copies


def test_a_window_map_is_encoded_for_im2col(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = MapDriver()
    monkeypatch.setattr(tensor_map, "driver_module", lambda: fake)
    monkeypatch.setattr(MapDriver, "cuTensorMapEncodeIm2col", MapDriver.cuTensorMapEncodeTiled, raising=False)
    images, _ = maps_of((3, 72, 13, 20), (40, 3, 5), stride=2, dilation=2, before=2, after=3)
    tensor_map.encoded(images, 4096 + images.offset)
    (words,) = fake.encoded
    assert words[:3] == ("float16", 4, 4096 + images.offset)
    assert words[3:10] == (
        *([72, 20, 13, 3], [144, 20 * 144, 13 * 20 * 144]),
        *([-2, -2], [-5, -2], 64, 128, [1, 2, 2, 1]),
    )


def test_packed_images_are_copied_before_the_convolution_and_constant_weights_once() -> None:
    program = fuse(packed_convolution((32, 64, 56, 56), (64, 3, 3), **SAME))
    found = with_channels_last(program, MACHINE)
    assert (len(program.kernels), len(found.kernels), len(found.prepared)) == (1, 3, 0)
    assert found.arena_bytes >= 2 * 64 * (32 * 56 * 56 + 64 * 9)
    assert [(each.first, each.last) for each in found.temporaries] == [(0, 2), (1, 2)]
    program = fuse(packed_convolution((32, 64, 56, 56), (64, 3, 3), constant=True, **SAME))
    found = with_channels_last(program, MACHINE)
    assert (len(found.kernels), len(found.initializers), len(found.prepared)) == (2, 1, 1)
    assert found.prepared[0].size == 2 * 64 * 64 * 9
    assert found.prepared[0].recipe.constants == (1,)


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
def test_a_convolution_stores_what_a_copy_would_with_channels_last() -> None:
    program = graph_program(_with_channels_behind_pixels, *_INPUTS)
    assert len(planned(program, "sm_90").kernels.kernels) == 1
    case = Case("convolution with channels last", program, deviation=0.5, absolute=1e-2)
    with emulated():
        error, used = worst_of(case, schedule)
    assert used == ["wgmma_windows"]
    assert error <= 1


_INPUTS = [("FLOAT16", channels_last_of(each)) for each in ((2, 64, 7, 7), (72, 64, 3, 3))]
"""Images, and filters of 3 x 3."""


def _with_channels_behind_pixels(images: Any, filters: Any) -> Any:
    found = dml.convolution(images, filters, start_padding=[1, 1], end_padding=[1, 1])
    return found.permute(0, 2, 3, 1)


def test_a_result_that_would_lie_along_matrices_is_copied() -> None:
    def graph(a: Any, b: Any) -> Any:
        return dml.gemm(a, b).permute(0, 2, 3, 1)

    inputs = [("FLOAT16", (1, 64, 128, 64)), ("FLOAT16", (1, 64, 64, 128))]
    assert len(planned(graph_program(graph, *inputs), "sm_90").kernels.kernels) == 2


def test_a_result_that_others_read_is_copied() -> None:
    def graph(images: Any, filters: Any) -> Any:
        found = dml.convolution(images, filters, start_padding=[1, 1], end_padding=[1, 1])
        return found.permute(0, 2, 3, 1), found

    kernels = planned(graph_program(graph, *_INPUTS), "sm_90").kernels.kernels
    assert sorted(len(kernel.axes) > 0 for kernel in kernels) == [False, True]


def test_kernels_of_equal_form_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels_last, "_known", Memo())
    judged: list[Shape] = []

    def counted(shape: Shape, machine: CudaMachine) -> Iterator[Estimate[CudaTileChoice]]:
        judged.append(shape)
        return estimates(shape, machine)

    monkeypatch.setattr(channels_last, "estimates", counted)
    for _ in range(3):
        program = fuse(packed_convolution((32, 64, 56, 56), (64, 3, 3), **SAME))
        assert len(with_channels_last(program, MACHINE).kernels) == 3
    assert len(judged) == 1


@pytest.mark.parametrize("at", [0, 64])
def test_what_is_copied_begins_where_its_tensor_does(at: int) -> None:
    """Two convolutions of equal form read other channels of one image."""
    images, filters = ("FLOAT16", (32, 128, 56, 56)), ("FLOAT16", (64, 64, 3, 3))

    def convolved(x: Any, weights: Any) -> Any:
        return dml.convolution(x[:, at : at + 64], weights, start_padding=[1, 1], end_padding=[1, 1])

    found = with_channels_last(fuse(graph_program(convolved, images, filters)), MACHINE)
    copying = found.kernels[0]
    assert len(found.kernels) == 3
    assert copying.loads[0].offset == 2 * at * 56 * 56


@pytest.mark.parametrize(
    ("images", "capability"),
    [((1, 3, 8, 8), 90), ((32, 3, 56, 56), 90), ((32, 64, 56, 56), 80), ((32, 64, 56, 56), 100)],
)
def test_few_channels_and_other_devices_copy_nothing(images: Images, capability: int) -> None:
    program = fuse(packed_convolution(images, (64, 3, 3), **SAME))
    assert with_channels_last(program, MACHINES[capability]).kernels == program.kernels


def test_images_of_few_channels_are_copied_so_that_rows_of_windows_are_contiguous() -> None:
    """Squares of 2 x 2 pixels become one pixel, as strides are 2. Copies pad 3 channels to 4, so that windows
    begin multiples of 16 bytes apart. Without the copy k has 49 taps."""
    program = fuse(packed_convolution((32, 3, 224, 224), (64, 7, 7), stride=2, before=3, after=3))
    copies = with_channels_last(program, MACHINE).kernels
    assert [kernel.domain for kernel in copies[:-1]] == [
        (32, 115, 115, 2, 2, 4),
        (64, 4, 4, 2, 2, 4),
    ]
    shape = ConvolutionShape(Shape(copies[-1], aligned(copies[-1])))
    assert (shape.m, shape.n, shape.k) == (64, 32 * 112 * 112, 4 * 64)
    assert not guards_of(copies[-1].values)


def test_products_beside_a_gathered_operand_keep_what_gathers_it() -> None:
    """The first layer of GPT-2 adds embeddings of tokens to a product along heads and their elements."""

    def layer(heads: Any, weights: Any, table: Any, tokens: Any) -> Any:
        rows = dml.gather(table, tokens, axis=2, index_dimensions=1)
        return dml.gemm(in_rows(heads).reinterpret((1, 1, 512, 768)), weights) + rows

    table, tokens = ("FLOAT16", (1, 1, 900, 768)), ("INT32", (1, 1, 1, 512))
    inputs = [("FLOAT16", (1, 12, 512, 64)), ("FLOAT16", (1, 1, 768, 768)), table, tokens]
    program = fuse(graph_program(layer, *inputs))
    found = with_channels_last(program, MACHINE)
    assert any(guards_of(kernel.values) for kernel in program.kernels)
    assert found.kernels == program.kernels


def test_what_the_copy_engine_can_load_is_not_copied() -> None:
    program = fuse(moved_windows((32, 64, 56, 56), (64, 3, 3), **SAME))
    assert with_channels_last(program, MACHINE).kernels == program.kernels


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
@pytest.mark.parametrize(
    ("images", "filters", "form"),
    [
        ((2, 64, 8, 8), (40, 3, 3), SAME),
        ((2, 44, 6, 7), (24, 3, 3), {**SAME, "stride": 2}),
        ((2, 3, 20, 22), (24, 7, 7), {"before": 3, "after": 2, "stride": 2}),
        ((2, 6, 9, 11), (40, 3, 5), SAME),
        ((1, 5, 12, 14), (16, 3, 5), {"before": 2, "stride": 3}),
    ],
    ids=str,
)
def test_convolutions_over_copies_compute_what_the_reference_does(
    monkeypatch: pytest.MonkeyPatch, images: Images, filters: Filters, form: dict[str, int]
) -> None:
    copy_always(monkeypatch)
    case = Case("packed convolution", packed_convolution(images, filters, **form), absolute=1e-3)
    with emulated():
        error, used = worst_of(case, schedule)
    # Two copies, the convolution, then maybe copies for tensors that are aligned to fewer bytes.
    assert used[2] in ("wgmma_windows", "reduction")
    assert error <= 1


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
@pytest.mark.parametrize(
    ("images", "filters", "form"),
    [
        ((2, 24, 9, 11), (40, 3, 3), {"padding": 1}),
        ((2, 3, 20, 22), (24, 7, 7), {"padding": 3, "stride": 2}),
    ],
    ids=str,
)
def test_convolutions_of_bytes_have_their_zero_points_around_copies(
    monkeypatch: pytest.MonkeyPatch, images: Images, filters: Filters, form: dict[str, int]
) -> None:
    """Images are filled with their zero point, and filters with theirs: one for each output."""
    copy_always(monkeypatch)
    program = byte_convolution(images, filters, **form)
    with emulated():
        error, used = worst_of(Case("convolution of bytes", program, special=True), schedule)
    assert used[2] in ("wgmma_byte_windows", "reduction")
    assert error == 0


def test_zero_points_of_constant_filters_belong_to_the_recipe_of_their_copy() -> None:
    program = byte_convolution((32, 64, 28, 28), (64, 3, 3), 1)
    names = {1: "input zero point", 2: "filter", 3: "filter zero point"}
    for fixed, prepared in ((names.keys(), [(2, 3)]), ({2}, [])):
        kernels = with_channels_last(fuse(replace(program, constants=frozenset(fixed))), MACHINE)
        assert [each.recipe.constants for each in kernels.prepared] == prepared
        assert len(kernels.kernels) == 3 - len(prepared)


def _residual_block(x: Any, *filters: Any, pooled: bool) -> Any:
    same: dict[str, Any] = {"start_padding": [1, 1], "end_padding": [1, 1]}
    first = dml.activation_relu(dml.convolution(x, filters[0], **same))
    if pooled:
        first = dml.max_pooling(first, window_size=[3, 3], strides=[1, 1], **same)
    second = dml.convolution(first, filters[1], **same)
    result: Any = dml.convolution(second + first, filters[2], **same)
    return result


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("pooled", [False, True])
def test_images_between_convolutions_are_stored_with_channels_last(
    pooled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only inputs are copied: convolutions, their residuals and pooling have one order of images."""
    copy_always(monkeypatch)
    inputs = [("FLOAT16", (1, 64, 7, 7)), *[("FLOAT16", (64, 64, 3, 3))] * 3]
    program = graph_program(partial(_residual_block, pooled=pooled), *inputs)
    kernels = planned(program, MACHINE).kernels.kernels
    copies = [kernel for kernel in kernels if kernel.values[0].operation is Operation.SOURCE]
    assert sorted(kernel.loads[0].buffer or 0 for kernel in copies) == [0, 1, 2, 3]
    case = Case("residual block", program, deviation=0.1, absolute=2e-2)
    with emulated():
        error, used = worst_of(case, schedule)
    assert error <= 1
    assert used.count("wgmma_windows") == 3


def _joined_pixels(x: Any, y: Any, scale: Any, weights: Any) -> Any:
    upper = dml.activation_relu(x * scale)
    return dml.convolution(dml.join([upper, y + 1.0], axis=1), weights)


def test_images_that_are_read_with_channels_last_are_stored_so_for_products() -> None:
    """Both parts of the joined images are."""
    images = [("FLOAT16", channels_last_of((2, channels, 6, 7))) for channels in (24, 40)]
    program = graph_program(_joined_pixels, *images, ("FLOAT16", (1, 24, 1, 1)), ("FLOAT16", (32, 64, 1, 1)))
    *parts, _ = planned(program, MACHINE).kernels.kernels
    assert [kernel.stores[0].strides[1] for kernel in parts] == [2, 2]


def _narrowed_block(x: Any, first: Any, own: Any, last: Any) -> Any:
    """Return products of the windows of each channel of products, as in MobileNetV2."""
    wide = dml.activation_relu(dml.convolution(x, first))
    margin: dict[str, Any] = {"start_padding": [1, 1], "end_padding": [1, 1]}
    alone = dml.convolution(wide, own, strides=[2, 2], group_count=64, **margin)
    return dml.convolution(dml.activation_relu(alone), last)


def test_unrolled_windows_of_each_channel_alone_have_images_with_channels_last() -> None:
    """The images of windows with strides have more pixels than the results."""
    sizes = [(8, 16, 56, 56), (64, 16, 1, 1), (64, 1, 3, 3), (32, 64, 1, 1)]
    found = planned(graph_program(_narrowed_block, *(("FLOAT16", each) for each in sizes)), MACHINE)
    first, own, _ = found.kernels.kernels
    assert found.launches[1] == ("depthwise",)
    assert first.stores[0].strides[2] == own.stores[0].strides[1] == 2


def _normalized_block(x: Any, first: Any, own: Any, last: Any) -> Any:
    """Return means of products of normalized pixels behind a convolution of each channel alone, as in
    ConvNeXt."""
    margin: dict[str, Any] = {"start_padding": [3, 3], "end_padding": [3, 3]}
    image = dml.convolution(x, first, strides=[2, 2])
    alone = dml.convolution(image, own, group_count=32, **margin)
    normal = dml.mean_variance_normalization1(alone, axes=[1], normalize_variance=True, epsilon=1e-6)
    result: Any = dml.reduce(dml.convolution(normal, last) + image, function="AVERAGE", axes=[2, 3])
    return result


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
@pytest.mark.parametrize(("type", "sizes"), [("FLOAT16", (34, 38)), ("FLOAT32", (14, 14))])
def test_convolutions_of_each_channel_alone_have_images_and_results_with_channels_last(
    type: str, sizes: tuple[int, int]
) -> None:
    """Windows may be as large as the images."""
    inputs = [(type, each) for each in ((2, 16, *sizes), (32, 16, 2, 2), (32, 1, 7, 7), (32, 32, 1, 1))]
    program = graph_program(_normalized_block, *inputs)
    case = Case("normalized block", program, deviation=0.1, absolute=5e-2 if type == "FLOAT16" else 1e-3)
    *before, means = planned(program, MACHINE).kernels.kernels
    channels = [(each.stores[0], each.domain.index(32)) for each in before]
    assert (len(before), means.axes) == (4, (3, 4, 5, 6))
    assert all(store.strides[axis] == store.type.bytes for store, axis in channels)
    with emulated():
        error, used = worst_of(case, schedule)
    assert error <= 1
    assert "depthwise" in used


@pytest.mark.parametrize("before", [0, 3, 6])
def test_guarded_accesses_to_images_move_as_far_as_counters_reach(before: int) -> None:
    """3 images have 4 channels of 5 x 6 pixels. Windows of 7 x 7 begin 3 pixels before them, or inside."""
    domain, strides = (3, 4, 5, 6, 7, 7), (240, 60, 12, 2, 12, 2)
    access = Access(0, FLOAT16, -before * (12 + 2), strides)
    counters = [
        Access(None, ScalarType.UINT32, -before, tuple(int(number in own) for number in range(6)))
        for own in ((2, 4), (3, 5))
    ]
    moved = _Images(4, 30, 2)._moved(access, domain, list(zip(counters, (5, 6), strict=True)))
    assert moved is not None
    places = np.arange(3 * 4 * 30).reshape(3, 4, 30).transpose(0, 2, 1).reshape(-1).argsort()
    _, _, y, x, down, along = np.indices(domain)
    line, pixel = y + down - before, x + along - before
    inside = (line >= 0) & (line < 5) & (pixel >= 0) & (pixel < 6)
    old, new = (
        each.offset + sum(index * step for index, step in zip(np.indices(domain), each.strides, strict=True))
        for each in (access, moved)
    )
    np.testing.assert_array_equal(new[inside], 2 * places[old[inside] // 2])
    assert _Images(4, 30, 2)._moved(access, domain, ()) is None


@pytest.mark.parametrize(
    ("domain", "offset", "strides", "is_moved"),
    [
        ((3, 4, 5, 6), 0, (240, 60, 12, 2), True),
        ((3, 4, 30), 0, (240, 60, 2), True),
        ((12, 30), 0, (60, 2), False),
        ((2, 2, 3, 3), 60 + 14, (480, 120, 16, 4), True),
        ((2, 2, 3, 3), 60 + 14, (480, 120, 24, 4), False),
        ((3, 2, 5, 5), 120, (240, -60, 12, 2), True),
        ((3, 4, 5), 58, (240, 60, -2), True),
        ((3, 120), 0, (240, 2), False),
        ((3, 4, 30), 2, (240, 60, 2), False),
        ((4, 5), 0, (62, 12), False),
    ],
)
def test_accesses_to_images_move_along_channels_or_pixels(
    domain: tuple[int, ...], offset: int, strides: tuple[int, ...], is_moved: bool
) -> None:
    """3 images have 4 channels of 30 pixels."""
    places = np.arange(3 * 4 * 30).reshape(3, 4, 30).transpose(0, 2, 1).reshape(-1).argsort()
    moved = _Images(4, 30, 2)._moved(Access(0, FLOAT16, offset, strides), domain, ())
    assert (moved is not None) == is_moved
    if moved is not None:
        for index in np.ndindex(domain):
            old, new = (
                each.offset + np.dot(index, each.strides)
                for each in (Access(0, FLOAT16, offset, strides), moved)
            )
            assert new == 2 * places[old // 2]


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
def test_copies_of_constant_weights_are_made_once_at_initialization(monkeypatch: pytest.MonkeyPatch) -> None:
    copy_always(monkeypatch)
    program = packed_convolution((2, 64, 8, 8), (40, 3, 3), constant=True, **SAME)
    generator = np.random.default_rng(7)
    x, weights = (generator.normal(size=each.sizes).astype(np.float16) for each in program.inputs)
    found, wanted = (np.full(program.outputs[0].sizes, 77, np.float16) for _ in range(2))
    reference = ReferenceExecutable(replace(program, constants=frozenset())).instantiate()
    for buffer, array in enumerate((x, weights, wanted)):
        reference.bind(buffer, array.ctypes.data)
    reference.dispatch()
    with emulated():
        executable = compiled_program(program)
        assert len(executable.parts.accesses) == 3
        kept = np.zeros(kept_bytes(executable.kept) + 256, np.uint8)
        begin = -(-kept.ctypes.data // 256) * 256
        addresses = addresses_within(executable.kept, begin)
        initialize(executable, {1: weights.ctypes.data}, addresses)
        weights[:] = np.nan
        instance = executable.instantiate(None, addresses)
        for buffer, array in ((0, x), (2, found)):
            instance.bind(buffer, array.ctypes.data)
        instance.dispatch()
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-2)
