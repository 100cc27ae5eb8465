"""Convolutions on the CPU whose image is packed once for all windows that see it."""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from opendml.compiler.kernel import Access, Kernel
from opendml.runtime.memory.host_array import Array
from opendml.targets.cpu.contraction.image import Seen, seen_by
from opendml.targets.cpu.contraction.roles import roles_of
from opendml.targets.cpu.contraction.schedule import Tiles, candidates, launches_of, tiled
from opendml.targets.cpu.machine import assumed, machine
from opendml.targets.cpu.pattern import Mode, Tiling, Window
from tests.targets.kernels import contraction_kernel, run_launches, with_strips
from tests.targets.test_cpu_contraction import assert_accurate, values


class Form(NamedTuple):
    """Windows, by rows and columns, of an image without padding."""

    output: tuple[int, int]
    extents: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)

    @property
    def image(self) -> tuple[int, int]:
        """The rows and columns that windows see."""
        each = zip(self.output, self.extents, self.strides, self.dilations, strict=True)
        height, width = ((o - 1) * s + (k - 1) * d + 1 for o, k, s, d in each)
        return height, width


FORMS = [
    Form((13, 9), (3, 3)),
    Form((6, 18), (3, 3), strides=(2, 2)),
    Form((5, 7), (5, 4), strides=(3, 2)),
    Form((9, 17), (3, 3), dilations=(2, 3)),
    Form((7, 33), (1, 3)),
    Form((20, 1), (5, 1)),
]
AXES = (4, 5, 6)


def windows_of(image: Array, form: Form) -> Array:
    """What windows see: [N, 1, rows, columns, C, window]."""
    n, c, y, x = image.strides
    (down, along), (row, column) = form.strides, form.dilations
    sizes = (image.shape[0], 1, *form.output, image.shape[1], *form.extents)
    strides = (n, 0, y * down, x * along, c, y * row, x * column)
    return np.lib.stride_tricks.as_strided(image, sizes, strides)


def convolution(form: Form, channels: int = 6, filters: int = 20) -> tuple[Kernel, list[Array]]:
    """A convolution of two images; filters, windows and results."""
    windows = windows_of(values("float32", 2, channels, *form.image), form)
    weights = values("float32", 1, filters, 1, 1, channels, *form.extents)
    out = np.zeros((2, filters, *form.output, 1, 1, 1), "f")
    return contraction_kernel(weights, windows, AXES, [out]), [weights, windows, out]


def ways_with_an_image(kernel: Kernel, all: bool = False) -> list[Tiles]:
    """One of each kind with two vectors in a tile, in the smallest blocks; `all`: those where an operand is
    packed ahead too, and the largest blocks."""
    kinds: dict[str, list[Tiles]] = {}
    for way in candidates(kernel):
        tiles = way.tiles
        if tiles and tiles.seen and tiles.micro.vectors == 2 and (all or not tiles.ahead):
            kinds.setdefault(way.name, []).append(tiles)
    ordered = [sorted(tiles, key=lambda each: each.rows * each.columns) for tiles in kinds.values()]
    return [tiles for each in ordered for tiles in (each[0], each[-1])[: 1 + all]]


def check_ways(ways: list[Tiles], arrays: list[Array]) -> None:
    """They are accurate, and agree to the bit."""
    results = set()
    for tiles in ways:
        for at_once in (None, 1):
            arrays[-1][...] = np.nan
            run_launches(launches_of(tiles), arrays, at_once)
            assert_accurate(arrays[-1], *arrays[:2], AXES)
            results.add(arrays[-1].tobytes())
    assert len(results) == 1


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_windows_are_multiplied_and_broadcast_where_their_image_lies(form: Form) -> None:
    kernel, arrays = convolution(form)
    ways = ways_with_an_image(kernel)
    assert {tiles.seen.broadcast for tiles in ways if tiles.seen} == {False, True}
    check_ways(ways, arrays)


def test_neither_blocks_nor_what_is_packed_ahead_change_a_bit() -> None:
    kernel, arrays = convolution(FORMS[0])
    ways = ways_with_an_image(kernel, all=True)
    strips = list(filter(None, map(with_strips, ways)))
    assert strips
    check_ways([*ways, *strips[:1]], arrays)


def test_one_tile_of_filters_after_the_other_is_multiplied_by_all_windows() -> None:
    """In three parts of the products, by blocks of one and of several tiles and rows of windows."""
    kernel, arrays = convolution(Form((7, 9), (3, 3)), channels=64, filters=100)
    ways = [each for each in ways_with_an_image(kernel, all=True) if each.seen and each.seen.broadcast]
    assert len({(each.rows, each.columns) for each in ways}) > 1
    strips = list(filter(None, map(with_strips, ways)))
    assert len(strips) == len(ways)
    check_ways([*ways, *strips], arrays)


@pytest.mark.usefixtures("no_matrix_registers")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2)], ids=str)
def test_few_windows_are_broadcast_beside_constant_filters(strides: tuple[int, int], threads: int) -> None:
    kernel, _ = convolution(Form((14, 14), (3, 3), strides), channels=256, filters=256)
    kernel = replace(kernel, loads=(replace(kernel.loads[0], fixed=True), *kernel.loads[1:]))
    host = replace(machine(), vector_bytes=64, l2_bytes=2 * 1024 * 1024, threads=threads)
    with assumed(host):
        modes = [launch.pattern.mode for launch in tiled(kernel)]
    assert modes == [Mode.CONTRACTION_STRIPS, Mode.CONTRACTION_BROADCAST_IMAGE]


@pytest.mark.usefixtures("no_matrix_registers")
def test_filters_that_several_images_meet_are_packed_once() -> None:
    kernel, _ = convolution(Form((4, 4), (3, 3)), channels=256, filters=256)
    with assumed(replace(machine(), vector_bytes=64, l2_bytes=2 * 1024 * 1024, threads=1)):
        strips, block = tiled(kernel)
    assert (strips.pattern.mode, strips.fixed) == (Mode.CONTRACTION_STRIPS, False)
    assert block.pattern.mode is Mode.CONTRACTION_BROADCAST_IMAGE


def test_sums_of_many_channels_are_added_part_by_part() -> None:
    kernel, arrays = convolution(Form((5, 8), (3, 3)), channels=300, filters=5)
    check_ways(ways_with_an_image(kernel), arrays)


@pytest.mark.parametrize("form", [FORMS[1], Form((5, 9), (3, 3), strides=(2, 2))], ids=str)
def test_nothing_behind_an_image_is_read(form: Form) -> None:
    kernel, arrays = convolution(form)
    weights, _, out = arrays
    sizes = (2, 6, *form.image)
    size = int(np.prod(sizes)) * 4
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, -(-size // page) * page + page)
    bytes = np.frombuffer(memory, np.uint8)
    unreadable = ctypes.c_void_p(bytes.ctypes.data + len(bytes) - page)
    assert ctypes.CDLL(None).mprotect(unreadable, ctypes.c_size_t(page), 0) == 0
    image = bytes[len(bytes) - page - size : len(bytes) - page].view(np.float32).reshape(sizes)
    image[...] = values("float32", *sizes)
    windows = windows_of(image, form)
    for tiles in ways_with_an_image(kernel):
        run_launches(launches_of(tiles), [weights, windows, out])
        assert_accurate(out, weights, windows, AXES)


def seen_in(kernel: Kernel, broadcast: bool = False) -> Seen | None:
    """The windows of which an operand of a kernel consists."""
    roles = roles_of(kernel, exchanged=broadcast)
    assert roles
    return seen_by(roles, broadcast)


@pytest.mark.parametrize("broadcast", [False, True])
@pytest.mark.parametrize("form", FORMS[:4], ids=str)
def test_windows_are_found_by_how_they_overlap(form: Form, broadcast: bool) -> None:
    seen = seen_in(convolution(form)[0], broadcast)
    assert seen
    each = zip(form.extents, form.strides, form.dilations, strict=True)
    assert [seen.image.rows, seen.image.columns] == [Window(*numbers) for numbers in each]
    assert (seen.height, seen.width) == form.output
    assert seen.roles.count(seen.channels) == 6


@pytest.mark.parametrize(
    "form",
    [
        Form((9, 9), (1, 1), strides=(2, 2)),
        Form((9, 9), (2, 2), strides=(2, 2)),
        Form((9, 9), (3, 3), strides=(2, 2), dilations=(3, 3)),
        Form((3, 3), (3, 3), dilations=(4, 4)),
    ],
    ids=str,
)
def test_windows_that_do_not_share_what_lies_together_have_no_image(form: Form) -> None:
    kernel = convolution(form)[0]
    assert seen_in(kernel) is None
    assert seen_in(kernel, broadcast=True) is None


@pytest.mark.parametrize("transposed", [False, True])
def test_a_matrix_is_no_image(transposed: bool) -> None:
    a, b, out = values("float32", 30, 1, 20), values("float32", 1, 40, 20), np.zeros((30, 40, 1), "f")
    if transposed:
        b = values("float32", 1, 20, 40).transpose(0, 2, 1)
    kernel = contraction_kernel(a, b, (2,), [out])
    assert seen_in(kernel) is None
    assert seen_in(kernel, broadcast=True) is None


def test_that_filters_are_constant_changes_no_bit() -> None:
    kernel, arrays = convolution(Form((14, 14), (3, 3)), channels=64, filters=64)
    fixed: tuple[Access, ...] = (replace(kernel.loads[0], fixed=True), *kernel.loads[1:])
    results = []
    for each in (kernel, replace(kernel, loads=fixed)):
        launches = tiled(each)
        tiling = launches[-1].pattern.tiling
        assert isinstance(tiling, Tiling)
        assert tiling.image
        assert launches[-1].pattern.mode in (Mode.CONTRACTION_IMAGE, Mode.CONTRACTION_BROADCAST_IMAGE)
        run_launches(launches, arrays)
        assert_accurate(arrays[-1], *arrays[:2], AXES)
        results.append(arrays[-1].copy())
    np.testing.assert_array_equal(*results)
