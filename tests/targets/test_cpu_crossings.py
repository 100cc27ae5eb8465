"""Element-wise kernels whose results lie otherwise than what they read: in blocks of both loops, or a few
neighbours put together as bundles of vectors."""

from __future__ import annotations

import pytest

from opendml import FLOAT16, FLOAT32, INT8, INT64, UINT8, Device, TensorDataType, TensorDesc, descs
from opendml.compiler.loops import WIDEST_BUNDLE
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.engine import kernel_assembly
from opendml.targets.cpu.pattern import Mode, Step, crossed_block
from tests.running import launches
from tests.targets.walks import check


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("data_type", [FLOAT16, FLOAT32, UINT8])
@pytest.mark.parametrize(("blocks", "more"), [((1, 1), (21, 35)), ((0, 1), (9, 1)), ((1, 2), (0, 0))])
def test_blocks_of_both_loops_equal_the_reference(
    blocks: tuple[int, int], more: tuple[int, int], data_type: TensorDataType
) -> None:
    most = crossed_block(ScalarType.of(data_type).bytes)
    rows, steps = (count * size + rest for count, size, rest in zip(blocks, most, more, strict=True))
    sizes = (2, rows, steps)
    across = TensorDesc(data_type, sizes, [rows * steps, 1, rows])
    along = TensorDesc(data_type, sizes)
    desc = descs.ElementWiseMax(across, along, along)
    (launch,) = launches(desc)
    assert launch.pattern.mode is Mode.TRANSPOSED
    check(desc, Device("cpu"))


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize(("rows", "streamed"), [(400, True), (40, False)])
@pytest.mark.parametrize("spread", [0, 1, 16])
def test_what_a_core_does_not_hold_is_streamed_whatever_the_distance_of_its_rows(
    rows: int, streamed: bool, spread: int
) -> None:
    steps = 200
    across = TensorDesc(FLOAT32, [rows, steps], [1, rows])
    desc = descs.ActivationRelu(across, TensorDesc(FLOAT32, [rows, steps], [steps + spread, 1]))
    (launch,) = launches(desc)
    assert launch.pattern.stores[0].streamed is streamed
    check(desc, Device("cpu"))


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize(("rows", "fetches"), [(400, 1), (40, 0)])
def test_operands_of_streamed_results_are_prefetched(rows: int, fetches: int) -> None:
    matrix = TensorDesc(FLOAT32, [rows, 200])
    (launch,) = launches(descs.ActivationRelu(matrix, matrix))
    assert kernel_assembly(launch.pattern).count('call void @"llvm.prefetch') == fetches


def test_short_rows_that_lie_across_are_not_streamed() -> None:
    image = TensorDesc(FLOAT32, [1, 60, 300, 300])
    pixels = TensorDesc(FLOAT32, image.sizes, [0, 1, 60 * 300, 60])
    (launch,) = launches(descs.ActivationRelu(image, pixels))
    assert launch.pattern.mode is Mode.TRANSPOSED
    assert not launch.pattern.stores[0].streamed


@pytest.mark.parametrize("data_type", [FLOAT16, FLOAT32, INT8])
@pytest.mark.parametrize("channels", range(2, WIDEST_BUNDLE + 1))
def test_pixels_of_a_few_channels_are_put_together_and_taken_apart(
    channels: int, data_type: TensorDataType
) -> None:
    image = TensorDesc(data_type, [2, channels, 5, 43])
    strides = [channels * 5 * 43, 1, 43 * channels, channels]
    pixels = TensorDesc(data_type, image.sizes, strides)
    for desc in (descs.ActivationRelu(image, pixels), descs.ActivationRelu(pixels, image)):
        (launch,) = launches(desc)
        assert launch.pattern.mode is Mode.POINTWISE
        assert sorted(map(len, launch.pattern.bundles)) == [channels]
        check(desc, Device("cpu"))


def test_what_is_wider_than_a_bundle_is_transposed() -> None:
    image = TensorDesc(FLOAT32, [1, WIDEST_BUNDLE + 1, 30, 43])
    pixels = TensorDesc(FLOAT32, image.sizes, [0, 1, 43 * (WIDEST_BUNDLE + 1), WIDEST_BUNDLE + 1])
    (launch,) = launches(descs.ActivationRelu(image, pixels))
    assert launch.pattern.mode is Mode.TRANSPOSED


def test_windows_as_far_apart_as_they_are_wide_are_loaded_as_bundles() -> None:
    image, pooled = TensorDesc(FLOAT32, [1, 2, 9, 60]), TensorDesc(FLOAT32, [1, 2, 3, 20])
    margins = {"start_padding": [0, 0], "end_padding": [0, 0]}
    desc = descs.MaxPooling(image, pooled, strides=[3, 3], window_size=[3, 3], **margins)
    (launch,) = launches(desc)
    assert sorted(map(len, launch.pattern.bundles)) == [3, 3, 3]
    assert all(load.step is Step.STRIDED for load in launch.pattern.loads)
    check(desc, Device("cpu"))


def test_what_is_gathered_is_read_where_it_lies_beside_what_lies_across() -> None:
    """Along the row loop the elements of both follow each other, the gathered ones from a computed place."""
    sizes = [8, 8, 64]
    x, indices = TensorDesc(INT64, [8, 39, 64]), TensorDesc(INT64, sizes)
    desc = descs.GatherElements(x, indices, TensorDesc(INT64, sizes, [1, 8, 128]), axis=1)
    (launch,) = launches(desc)
    assert launch.pattern.mode is Mode.TRANSPOSED
    check(desc, Device("cpu"))
