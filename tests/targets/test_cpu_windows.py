"""Products of windows, and the search for tilings."""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import product
from random import Random
from typing import NamedTuple

import numpy as np
import pytest

from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Access, Kernel, operations_of
from opendml.compiler.simplify import simplify
from opendml.program.node import Node, Operation, contraction, convert
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.targets.common.candidates import Estimate
from opendml.targets.cpu.contraction.image import ViewedImage, viewed_image
from opendml.targets.cpu.contraction.launches import construct, launches_of
from opendml.targets.cpu.contraction.roles import roles_of
from opendml.targets.cpu.contraction.schedule import (
    ALIKE,
    NEARLY,
    Priced,
    ProductQuery,
    Tiles,
    any_reduction,
    chosen_tiles,
    columns_of_all,
    estimates,
    sums_alike,
)
from opendml.targets.cpu.contraction.tiling import ImageWindow, Storage, Tiling
from opendml.targets.cpu.contraction.tilings import UsualForm, streamed_tiles, usual_form
from opendml.targets.cpu.launch import CpuLaunch
from opendml.targets.cpu.machine import CpuMachine, assumed, machine
from opendml.targets.cpu.pattern import CpuMode
from opendml.targets.cpu.schedule import scheduled
from tests.nodes import convolution as convolution_tilings
from tests.nodes import matrix_product, operands_of, program
from tests.targets.kernels import contraction_kernel, run_launches, with_b_ahead
from tests.targets.test_cpu_contraction import assert_accurate, values
from tools.cuda_contraction_cases import contraction_cases
from tools.machines import PROCESSORS
from tools.schedule_cases import kernels


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
    for way in estimates(ProductQuery(kernel, machine())):
        tiles = way.choice
        if tiles.viewed and tiles.micro.vectors == 2 and (all or not tiles.a.is_ahead):
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
    assert {tiles.viewed.broadcast for tiles in ways if tiles.viewed} == {False, True}
    check_ways(ways, arrays)


def test_neither_blocks_nor_what_is_packed_ahead_change_a_bit() -> None:
    kernel, arrays = convolution(FORMS[0])
    ways = ways_with_an_image(kernel, all=True)
    strips = list(filter(None, map(with_b_ahead, ways)))
    assert strips
    check_ways([*ways, *strips[:1]], arrays)


def test_one_tile_of_filters_after_the_other_is_multiplied_by_all_windows() -> None:
    """In three parts of the products, by blocks of one and of several tiles and rows of windows."""
    kernel, arrays = convolution(Form((7, 9), (3, 3)), channels=64, filters=100)
    ways = [each for each in ways_with_an_image(kernel, all=True) if each.viewed and each.viewed.broadcast]
    assert len({(each.rows, each.columns) for each in ways}) > 1
    strips = list(filter(None, map(with_b_ahead, ways)))
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
        packing, block = scheduled(kernel)[1]
    assert packing.pattern.mode is CpuMode.CONTRACTION_PACK
    assert block.pattern.walk_as(Tiling).windows == "a"


@pytest.mark.usefixtures("no_matrix_registers")
def test_filters_that_several_images_meet_are_packed_once() -> None:
    kernel, _ = convolution(Form((4, 4), (3, 3)), channels=256, filters=256)
    with assumed(replace(machine(), vector_bytes=64, l2_bytes=2 * 1024 * 1024, threads=1)):
        strips, block = scheduled(kernel)[1]
    assert (strips.pattern.mode, strips.fixed) == (CpuMode.CONTRACTION_PACK, False)
    assert block.pattern.walk_as(Tiling).windows == "a"


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


def viewed_in(kernel: Kernel, broadcast: bool = False) -> ViewedImage | None:
    """The windows of which an operand of a kernel consists."""
    roles = roles_of(kernel, exchanged=broadcast)
    assert roles
    return viewed_image(roles, broadcast)


@pytest.mark.parametrize("broadcast", [False, True])
@pytest.mark.parametrize("form", FORMS[:4], ids=str)
def test_windows_are_found_by_how_they_overlap(form: Form, broadcast: bool) -> None:
    viewed = viewed_in(convolution(form)[0], broadcast)
    assert viewed
    each = zip(form.extents, form.strides, form.dilations, strict=True)
    assert [viewed.image.rows, viewed.image.columns] == [ImageWindow(*numbers) for numbers in each]
    assert (viewed.height, viewed.width) == form.output
    assert viewed.roles.count(viewed.channels) == 6


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
    assert viewed_in(kernel) is None
    assert viewed_in(kernel, broadcast=True) is None


@pytest.mark.parametrize("transposed", [False, True])
def test_a_matrix_is_no_image(transposed: bool) -> None:
    a, b, out = values("float32", 30, 1, 20), values("float32", 1, 40, 20), np.zeros((30, 40, 1), "f")
    if transposed:
        b = values("float32", 1, 20, 40).transpose(0, 2, 1)
    kernel = contraction_kernel(a, b, (2,), [out])
    assert viewed_in(kernel) is None
    assert viewed_in(kernel, broadcast=True) is None


def test_that_filters_are_constant_changes_no_bit() -> None:
    kernel, arrays = convolution(Form((14, 14), (3, 3)), channels=64, filters=64)
    fixed: tuple[Access, ...] = (replace(kernel.loads[0], fixed=True), *kernel.loads[1:])
    results = []
    for each in (kernel, replace(kernel, loads=fixed)):
        launches = scheduled(each)[1]
        tiling = launches[-1].pattern.walk
        assert isinstance(tiling, Tiling)
        assert tiling.image
        run_launches(launches, arrays)
        assert_accurate(arrays[-1], *arrays[:2], AXES)
        results.append(arrays[-1].copy())
    np.testing.assert_array_equal(*results)


F32 = ScalarType.FLOAT32
THREADS = (1, 4, 8)
MACHINES: dict[str, CpuMachine] = {**PROCESSORS, "amx, eight threads": replace(PROCESSORS["amx"], threads=8)}


def kernels_of(result: Node) -> Iterator[Kernel]:
    given = program(result)
    for kernel in fuse(replace(given, results=simplify(given.results))).kernels:
        if Operation.CONTRACTION in operations_of(kernel.values):
            yield kernel


def random_product(random: Random) -> Node:
    size = [random.choice((1, 2, 5, 7, 16, 33, 64, 100, 200, 256, 385, 1000, 2048)) for _ in range(3)]
    turned = random.random() < 0.5, random.random() < 0.5
    return matrix_product(F32, (size[0], size[1], size[2]), *turned, random.choice((1, 1, 3, 12)))


def random_convolution(random: Random) -> Node:
    channels, filters, side = random.choice((1, 3, 16, 64)), random.choice((4, 32, 96)), random.randint(5, 40)
    window, stride = random.choice((1, 3, 3, 5)), random.choice((1, 1, 2))
    images = random.choice((1, 2, 5)), channels, side, side + random.randint(0, 3)
    padding = random.choice((0, window // 2))
    return convolution_tilings(
        F32, images, (filters, window, window), stride=stride, before=padding, after=padding
    )


def as_constant(kernel: Kernel, number: int, random: Random) -> Kernel:
    """The kernel with an operand that is a constant, or the same in all steps of a recurrence."""
    change = {"fixed": True} if random.random() < 0.7 else {"steps": 7}
    loads = [replace(load, **change) if load.buffer == number else load for load in kernel.loads]
    return replace(kernel, loads=tuple(loads))


def all_kernels() -> Iterator[Kernel]:
    for _, kernel in kernels("amx"):
        if Operation.CONTRACTION in operations_of(kernel.values):
            yield kernel
    random = Random(4)
    for count in range(6):
        result = (random_product if count % 2 else random_convolution)(random)
        for kernel in kernels_of(result):
            yield kernel
            yield as_constant(kernel, random.randrange(2), random)


def large_products() -> Iterator[Kernel]:
    """Those of whose tilings more are for more threads, and of few rows."""
    random = Random(5)
    for m, n, k in ((196, 512, 1024), (784, 128, 512), (64, 2304, 768), (50, 3072, 768), (5, 3072, 768)):
        for turned in (False, True):
            for kernel in kernels_of(matrix_product(F32, (m, n, k), b_turned=turned)):
                yield kernel
                yield as_constant(kernel, 1, random)


def chosen(kernel: Kernel, threads: int) -> Tiles | None:
    """Return the tiles that are chosen; None if a reduction without tiles is as good."""
    answer = chosen_tiles(ProductQuery(kernel, replace(machine(), threads=threads)))
    return answer.choice if isinstance(answer, Estimate) else None


def tried(kernel: Kernel, all_threads: Sequence[int]) -> list[Tiles | None]:
    """The tiles that win where all are tried, by the number of threads."""
    both_roles = (roles_of(kernel, exchanged) for exchanged in (False, True))
    few = [streamed_tiles(roles, 2) for roles in both_roles if roles]
    if any(few):
        return [next(filter(None, few)) for _ in all_threads]
    families = ProductQuery(kernel, machine()).families
    ways = [(priced, list(map(priced.estimate, priced.tiles()))) for priced in families]
    for priced, found in ways:
        assert all(priced.family.least <= way.work for way in found)
        assert all(priced.least_of_all <= way.order for way in found)
    least = min((way for _, found in ways for way in found), key=lambda way: way.order, default=None)
    if least is None or any_reduction(kernel) <= least.order:
        return [None for _ in all_threads]
    best = least.choice
    alike = [(priced, way.choice) for priced, found in ways for way in found if sums_alike(way.choice, best)]
    if best.instructions.are_amx and best.viewed:
        columns = columns_of_all(best, families)
        alike = [(priced, tiles) for priced, tiles in alike if tiles.columns == columns]
    alike += [
        (priced, priced.fixed_b_ahead.of(tiles))
        for priced, tiles in alike
        if priced.fixed_b_ahead and tiles.packed_ahead is None
    ]
    return [cheapest_or_usual(alike, threads) for threads in all_threads]


def cheapest_or_usual(ways: Sequence[tuple[Priced, Tiles]], threads: int) -> Tiles:
    """The tiles that cost least, or those with a constant in a usual form that cost little more."""
    costs = [(priced.on_threads(tiles, threads), tiles) for priced, tiles in ways]
    cost, chosen = min(costs, key=lambda each: each[0])
    near = []
    for form in UsualForm:
        usual = [each for each in costs if usual_form(each[1]) is form]
        nearest, tiles = min(usual, key=lambda each: each[0], default=((math.inf, 0.0), chosen))
        if nearest[0] <= NEARLY * cost[0]:
            near.append((nearest[0], tiles))
    least = min([each for each, _ in near], default=0.0)
    return next((tiles for each, tiles in near if each <= ALIKE * least), chosen)


def facts(tiles: Tiles | None) -> object:
    """All that tiles are, but for their roles, of which only which operand is which can differ."""
    if tiles is None:
        return None
    numbers = [getattr(tiles, name) for name in Tiles.__slots__ if name not in ("roles", "viewed")]
    viewed = tiles.viewed and (tiles.viewed.broadcast, tiles.viewed.image)
    return numbers, viewed, tiles.roles.a.loads, tiles.roles.b.loads


@pytest.mark.parametrize("name", MACHINES)
def test_the_search_finds_what_trying_all_does_and_bounds_are_bounds(name: str) -> None:
    with assumed(MACHINES[name]):
        for kernel in (*all_kernels(), *large_products()):
            found = [chosen(kernel, threads) for threads in THREADS]
            assert list(map(facts, found)) == list(map(facts, tried(kernel, THREADS)))
            for tiles in filter(None, found):
                launches = zip(construct(kernel, tiles.choice), launches_of(tiles), strict=True)
                assert all(words_of(one) == words_of(other) for one, other in launches)


def words_of(launch: CpuLaunch) -> object:
    """Return all that a launch consists of."""
    values = [getattr(launch, field.name) for field in fields(launch) if field.name != "pattern"]
    return launch.pattern.text(), values


@pytest.mark.parametrize("name", MACHINES)
def test_few_rows_stream_a_large_constant_from_the_panels_of_many(name: str) -> None:
    with assumed(MACHINES[name]):
        for m, turned in product((2, 5, 8, 64, 200), (False, True)):
            (kernel,) = kernels_of(matrix_product(F32, (m, 3072, 768), b_turned=turned))
            loads = [replace(load, fixed=load.buffer == 1) for load in kernel.loads]
            for threads in THREADS:
                tiles = chosen(replace(kernel, loads=tuple(loads)), threads)
                assert tiles
                # In matrix registers, fixed sizes split the constant where it lies.
                is_split = tiles.instructions.are_amx and tiles.b is Storage.PACKED
                assert is_split == (name.startswith("amx") and m == 200)
                assert is_split or usual_form(tiles) is UsualForm.B
                assert (tiles.b is Storage.STREAMED) == (m <= 8)


INTEGERS = [case for case in contraction_cases() if "INT" in case.name]


@pytest.mark.parametrize("name", ["avx512", "amx, eight threads"])
def test_the_search_finds_what_trying_all_does_of_integers(name: str) -> None:
    assert INTEGERS
    with assumed(MACHINES[name]):
        for case in INTEGERS:
            for result in case.program.results:
                for kernel in kernels_of(result):
                    assert [facts(chosen(kernel, 2))] == list(map(facts, tried(kernel, [2])))


def test_bytes_whose_zero_point_is_subtracted_are_not_read_in_place() -> None:
    bytes_of_both = operands_of((ScalarType.UINT8, ScalarType.UINT8), (40, 48, 200), False, False)
    rows, columns = (convert(each, ScalarType.INT32) for each in bytes_of_both)
    total = contraction(rows - 3, columns, (3,))
    with assumed(MACHINES["amx, eight threads"]):
        (kernel,) = kernels_of(total)
        assert facts(chosen(kernel, 8)) == facts(tried(kernel, [8])[0])
        assert not any(
            tiles.a is Storage.IN_PLACE
            for priced in ProductQuery(kernel, machine()).families
            for tiles in priced.tiles()
        )


@pytest.mark.parametrize("name", PROCESSORS)
def test_few_of_all_candidates_are_priced(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    priced, everything = 0, 0
    order, on_threads = Priced.order, Priced.on_threads

    def counted(of: Priced, tiles: Tiles) -> tuple[int, float]:
        nonlocal priced
        priced += 1
        return order(of, tiles)

    def counted_on_threads(of: Priced, tiles: Tiles, threads: int) -> tuple[int, float]:
        nonlocal priced
        priced += 1
        return on_threads(of, tiles, threads)

    with assumed(PROCESSORS[name]):
        for _, kernel in kernels(name):
            if Operation.CONTRACTION in operations_of(kernel.values):
                everything += sum(1 for _ in estimates(ProductQuery(kernel, machine())))
                with monkeypatch.context() as patch:
                    patch.setattr(Priced, "order", counted)
                    patch.setattr(Priced, "on_threads", counted_on_threads)
                    chosen(kernel, 2)
    assert 0 < priced < everything / 3
