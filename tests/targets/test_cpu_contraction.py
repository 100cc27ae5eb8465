"""Sums of products on the CPU, in every way that it has, against NumPy's float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from opendml.compiler.kernel import Kernel
from opendml.program.functions import maximum
from opendml.program.node import Node, apply, convert
from opendml.program.node import Operation as Op
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.targets.cpu.contraction.costs import block_sizes, has_low_tiles, largest_tiles
from opendml.targets.cpu.contraction.launches import launches_of
from opendml.targets.cpu.contraction.roles import Varying
from opendml.targets.cpu.contraction.schedule import ProductQuery, Tiles, estimates
from opendml.targets.cpu.contraction.tiling import Instructions, Storage
from opendml.targets.cpu.machine import assumed, detected, machine
from opendml.targets.cpu.pattern import CpuMode
from opendml.targets.cpu.schedule import schedule
from tests.pairwise import pairwise
from tests.targets.kernels import contraction_kernel, run_launches, with_b_ahead
from tests.tolerances import assert_within

RANDOM = np.random.default_rng(9)


def values(type: str, *sizes: int) -> Array:
    """Random numbers; integers of all bits."""
    if np.dtype(type).kind == "f":
        return RANDOM.standard_normal(sizes).astype(type)
    info = np.iinfo(type)
    return RANDOM.integers(info.min, info.max, sizes, type, endpoint=True)


def product(a: Array, b: Array, axes: tuple[int, ...]) -> Array:
    """The sums of products: of floats in FLOAT64, of integers wrapping."""
    wide: Any = np.float64 if a.dtype.kind == "f" else a.dtype
    total: Array = np.sum(a.astype(wide) * b.astype(wide), axis=axes, keepdims=True, dtype=wide)
    return total


def assert_accurate(result: Array, a: Array, b: Array, axes: tuple[int, ...], what: str = "") -> None:
    """Errors of sums of products, relative to the sums of their magnitudes, within the stated bound."""
    wanted, terms = product(a, b, axes), product(np.abs(a), np.abs(b), axes)
    if result.dtype == np.float64:
        assert (np.abs(result - wanted) <= 2.0**-46 * terms).all(), what
    else:
        assert_within("GEMM", result, wanted, terms, what=what)


def run(kernel: Kernel, *arrays: Array) -> set[CpuMode]:
    """Runs a kernel; returns the modes that it takes."""
    launches = schedule(kernel)
    run_launches(launches, arrays)
    return {launch.pattern.mode for launch in launches}


@pytest.mark.parametrize(
    ("type", "sizes"),
    [
        *((type, (5, 37, 23)) for type in ("float64", "int8", "uint8", "int32", "uint64")),
        *(("float32", sizes) for sizes in ((1, 600, 500), (1, 4, 20_000), (600, 1, 500), (1, 1, 70_000))),
    ],
    ids=str,
)
@pytest.mark.parametrize("transposed", [False, True])
def test_other_types_and_products_of_vectors_are_accurate(
    type: str, sizes: tuple[int, int, int], transposed: bool
) -> None:
    """Other types than FLOAT32 are summed in their own."""
    m, n, k = sizes
    a, b = values(type, m, 1, k), values(type, 1, n, k)
    if transposed:
        b = values(type, 1, k, n).transpose(0, 2, 1)
    out = np.zeros((m, n, 1), type)
    run(contraction_kernel(a, b, (2,), [out]), a, b, out)
    assert_accurate(out, a, b, (2,))


def every_tiling(
    kernel: Kernel, vectors: tuple[int, ...] = (2,), ahead: bool = False, in_place: bool = False
) -> dict[str, Tiles]:
    """The ways to compute a kernel in tiles of so many vectors, each with the smallest blocks."""
    ways: dict[str, Tiles] = {}
    for candidate in estimates(ProductQuery(kernel, machine())):
        tiles = candidate.choice
        reads = tiles.a.is_ahead, tiles.a is Storage.IN_PLACE
        if tiles.micro.vectors in vectors and reads == (ahead, in_place):
            known = ways.get(candidate.name)
            if known is None or known.rows * known.columns > tiles.rows * tiles.columns:
                ways[candidate.name] = tiles
    return ways


def check_tilings(
    a: Array,
    b: Array,
    axes: tuple[int, ...],
    out: Array,
    vectors: tuple[int, ...] = (2,),
    ahead: bool = False,
) -> None:
    """The ways to compute a * b in tiles are accurate, whichever operand is broadcast."""
    kernel = contraction_kernel(a, b, axes, [out])
    ways = every_tiling(kernel, vectors, ahead)
    assert ways
    for name, tiles in ways.items():
        out[...] = np.nan
        run_launches(launches_of(tiles), [a, b, out])
        assert_accurate(out, a, b, axes, name)
        strips = with_b_ahead(tiles)
        if strips and not ahead:
            check_strips(strips, [a, b], out)


def check_strips(tiles: Tiles, arrays: list[Array], out: Array) -> None:
    """Packing the operand whose elements are vectors ahead changes no bit of what is in `out`."""
    expected = out.copy()
    out[...] = np.nan
    strips, products = launches_of(tiles)
    run_launches([strips, products], [*arrays, out])
    assert strips.pattern.mode is CpuMode.CONTRACTION_PACK
    np.testing.assert_array_equal(out, expected)


def require_same_bits(ways: Sequence[Tiles], arrays: list[Array], out: Array) -> None:
    """Require ways to compute the same bits; those of the last one are in `out`."""
    results = set()
    for tiles in ways:
        out[...] = np.nan
        run_launches(launches_of(tiles), [*arrays, out])
        results.add(out.tobytes())
    assert len(results) == 1


def laid_out(array: Array, order: tuple[int, ...], gap: int = 0) -> Array:
    """The same values with the dimensions in another order in memory, outermost first, and so many elements
    left out behind each row; not aligned."""
    sizes = [array.shape[number] for number in order]
    fill = np.nan if array.dtype.kind == "f" else 99
    memory = np.full(np.prod([*sizes[:-1], sizes[-1] + gap]) + 1, fill, array.dtype)[1:]
    inside = memory.reshape(*sizes[:-1], sizes[-1] + gap)[..., : sizes[-1]]
    inside[...] = array.transpose(order)
    return inside.transpose(np.argsort(order))


SIZES = [
    *((m, 33, 37) for m in (1, 3, 6, 14, 15, 29)),
    *((5, n, 35) for n in (1, 15, 16, 17, 33, 65)),
    *((15, 40, k) for k in (2, 3, 4, 5, 255, 256, 257, 515)),
    (143, 291, 50),
]
ORDERS = [(0, 1, 2), (2, 0, 1)]


@pytest.mark.parametrize(("number", "sizes"), list(enumerate(SIZES)), ids=str)
def test_tiles_of_any_size_are_accurate(number: int, sizes: tuple[int, int, int]) -> None:
    """Tiles of all numbers of vectors take turns: each meets several sizes along all dimensions."""
    m, n, k = sizes
    vectors = sorted({largest.vectors for largest in largest_tiles()})
    a, b, out = values("float32", m, 1, k), values("float32", 1, n, k), np.zeros((m, n, 1), "f")
    check_tilings(a, b, (2,), out, (vectors[number % len(vectors)],))


@pairwise(gap=[0, 3], a_order=ORDERS, b_order=ORDERS, out_order=[(0, 1, 2), (1, 0, 2)])
def test_operands_and_results_lie_in_memory_in_any_order(
    a_order: tuple[int, ...], b_order: tuple[int, ...], out_order: tuple[int, ...], gap: int
) -> None:
    m, n, k = 30, 50, 70
    a, b = (
        laid_out(values("float32", m, 1, k), a_order, gap),
        laid_out(values("float32", 1, n, k), b_order, gap),
    )
    check_tilings(a, b, (2,), laid_out(np.zeros((m, n, 1), "f"), out_order, gap), ahead=gap > 0)


@pytest.mark.parametrize("ahead", [False, True])
def test_products_with_batches_broadcast_dimensions_and_several_summed_ones(ahead: bool) -> None:
    a, b = values("float32", 3, 1, 5, 1, 7, 1, 11), values("float32", 3, 2, 1, 19, 7, 1, 11)
    out = np.zeros((3, 2, 5, 19, 1, 1, 1), "f")
    check_tilings(a, b, (4, 6), out, ahead=ahead)
    check_tilings(a[:1], b, (4, 6), laid_out(out, (2, 1, 0, 3, 4, 5, 6)), ahead=ahead)
    order = (6, 1, 5, 0, 3, 2, 4)
    check_tilings(laid_out(a, order), laid_out(b, order, 2), (4, 6), out, ahead=ahead)


@pytest.mark.parametrize(
    "sizes", [(2, 33, 31), (3, 64, 32), (5, 130, 65), (8, 300, 40), (2, 16, 2100)], ids=str
)
def test_few_rows_are_multiplied_by_matrices_where_these_lie(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    a, b, out = values("float32", 2, m, 1, k), values("float32", 2, 1, n, k), np.zeros((2, m, n, 1), "f")
    further = values("float32", 2, 1, n, 1)
    for gap in (0, 3):
        b = laid_out(b, (0, 1, 3, 2), gap)
        kernel = contraction_kernel(a, b, (3,), [out], [further], lambda total, other: [total + other])
        require_same_bits(tilings_in_rows(kernel), [a, b, further], out)
        assert_accurate(out - further, a, b, (3,))


@pytest.mark.parametrize("m", [9, 10, 16, 17, 29, 30])
@pytest.mark.parametrize(
    "others", [(1, 40), (15, 33), (16, 32), (17, 31), (33, 2), (70, 257), (1030, 17), (40, 2048)], ids=str
)
def test_more_rows_have_the_same_bits_if_matrices_are_packed(m: int, others: tuple[int, int]) -> None:
    """One more column lies behind those of whole tiles, and one more product behind whole parts."""
    if m > machine().registers - 2:
        pytest.skip("the registers hold the sums of fewer rows")
    n, k = others
    a, b, out = values("float32", 2, m, 1, k), values("float32", 2, 1, n, k), np.zeros((2, m, n, 1), "f")
    b, further = laid_out(b, (0, 1, 3, 2), 3), values("float32", 2, 1, n, 1)
    stores_sums = contraction_kernel(a, b, (3,), [out])
    adds = contraction_kernel(a, b, (3,), [out], [further], lambda total, other: [total + other])
    for kernel, arrays in ((adds, [a, b, further]), (stores_sums, [a, b])):
        packed = [each for each in every_tiling(kernel).values() if not each.instructions.are_amx]
        assert packed
        require_same_bits([*packed, *tilings_in_rows(kernel)], arrays, out)
    assert_accurate(out, a, b, (3,))


def tilings_in_rows(kernel: Kernel, varying: Varying = None) -> list[Tiles]:
    """Those that read the operand whose elements are vectors where it lies."""
    return [
        each.choice
        for each in estimates(ProductQuery(kernel, machine(), varying=varying))
        if each.choice.b is Storage.IN_PLACE and each.choice.instructions is Instructions.FMA
    ]


def test_only_matrices_in_memory_are_multiplied_where_they_lie() -> None:
    def count(m: int, b: Array, **changes: Any) -> int:
        a, out = values("float32", m, 1, b.shape[2]), np.zeros((m, b.shape[1], 1), "f")
        return len(tilings_in_rows(contraction_kernel(a, b, (2,), [out], **changes)))

    rows, deep = (laid_out(values("float32", 1, 40, k), (0, 2, 1)) for k in (2048, 2049))
    assert count(2, rows)
    assert not count(1, rows)
    assert count(machine().registers - 2, rows)
    assert not count(machine().registers - 1, rows)
    assert count(8, deep)
    assert not count(9, deep)
    assert not count(2, values("float32", 1, 40, 30))
    assert not count(2, rows, operand=lambda value: apply(Op.ABSOLUTE, value))


@pytest.mark.parametrize(
    ("sizes", "type"),
    [
        ((1, 9, 17000), "float32"),
        ((3, 9, 64), "float16"),
        ((8, 50, 33), "float32"),
        ((2, 3, 2100), "float32"),
    ],
    ids=str,
)
def test_few_rows_are_multiplied_by_rows_where_these_lie(sizes: tuple[int, int, int], type: str) -> None:
    m, n, k = sizes
    a, b, out = values(type, 2, m, 1, k), values(type, 2, 1, n, k), np.zeros((2, m, n, 1), "f")
    for b_laid_out in (b, laid_out(b, (0, 2, 1, 3), 3)):
        kernel = contraction_kernel(a, b_laid_out, (3,), [out])
        require_same_bits(dots(kernel), [a, b_laid_out], out)
        assert_accurate(out, a, b, (3,))


def test_more_rows_are_multiplied_in_place_if_their_number_and_depth_stay() -> None:
    a, b = values("float32", 12, 1, 30), laid_out(values("float32", 1, 50, 30), (0, 2, 1))
    kernel = contraction_kernel(a, b, (2,), [np.zeros((12, 50, 1), "f")])
    open_columns, *others = (tilings_in_rows(kernel, {dimension}) for dimension in (1, 0, 2))
    assert open_columns
    assert others == [[], []]


def test_dots_are_only_of_rows_that_lie_along_what_is_summed() -> None:
    a, b, out = values("float32", 4, 1, 30), values("float32", 1, 50, 30), np.zeros((4, 50, 1), "f")
    assert dots(contraction_kernel(a, b, (2,), [out]))
    assert not dots(contraction_kernel(laid_out(a, (2, 1, 0)), b, (2,), [out]))
    assert not dots(contraction_kernel(a, laid_out(b, (2, 1, 0)), (2,), [out]))


def dots(kernel: Kernel) -> list[Tiles]:
    """The ways whose vectors lie along what is summed."""
    return [
        each.choice
        for each in estimates(ProductQuery(kernel, machine()))
        if each.choice.instructions is Instructions.DOTS
    ]


def test_of_ways_that_take_as_long_the_one_with_less_work_is_taken() -> None:
    a, b = values("float32", 4, 1, 500), laid_out(values("float32", 1, 500, 500), (0, 2, 1))
    ways = list(
        estimates(ProductQuery(contraction_kernel(a, b, (2,), [np.zeros((4, 500, 1), "f")]), machine()))
    )
    best = min(ways, key=lambda way: way.order)
    alike = [way for way in ways if round(way.cycles) == round(best.cycles)]
    assert len(alike) > 1
    assert best.work == min(way.work for way in alike)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("output", [(13, 9), (5, 7)], ids=str)
def test_windows_are_multiplied_where_they_lie(stride: int, output: tuple[int, int]) -> None:
    """A convolution without padding: [N, O, OH, OW, C, KH, KW]."""
    height, width = output
    image = values("float32", 2, 6, height * stride + 2, width * stride + 2)
    s = image.strides
    windows = np.lib.stride_tricks.as_strided(
        image, (2, 1, height, width, 6, 3, 3), (s[0], 0, s[2] * stride, s[3] * stride, s[1], s[2], s[3])
    )
    filters = values("float32", 1, 20, 1, 1, 6, 3, 3)
    check_tilings(filters, windows, (4, 5, 6), np.zeros((2, 20, height, width, 1, 1, 1), "f"))


@pytest.mark.parametrize("channels", [28, 64])
@pytest.mark.parametrize("ahead", [False, True])
def test_rows_that_begin_anywhere_in_a_part_stay_within_it(channels: int, ahead: bool) -> None:
    """Products of windows of three columns, in parts of 256: the last row of a part begins near its end."""
    image = values("float32", 1, channels, 7, 10)
    n, c, y, x = image.strides
    windows = np.lib.stride_tricks.as_strided(image, (1, 1, 5, 8, channels, 3, 3), (n, 0, y, x, c, y, x))
    filters = values("float32", 1, 20, 1, 1, channels, 3, 3)
    check_tilings(filters, windows, (4, 5, 6), np.zeros((1, 20, 5, 8, 1, 1, 1), "f"), ahead=ahead)


@pytest.mark.parametrize("m", [5, 40])
def test_what_follows_is_computed_and_stored_with_the_sums(m: int) -> None:
    n, k = 70, 50
    a, b = values("float32", m, 1, k), values("float32", 1, n, k)
    rows, columns, both = values("float32", m, 1, 1), values("float32", 1, n, 1), values("float32", m, n, 1)
    scale = values("float32", 1, 1, 1)
    raw, narrow = np.zeros((m, n, 1), "f"), laid_out(np.zeros((m, n, 1), np.float16), (0, 1, 2), 5)
    across = laid_out(np.zeros((m, n, 1), "f"), (1, 0, 2))

    def epilogue(total: Node, rows: Node, columns: Node, both: Node, scale: Node) -> list[Node]:
        activated = maximum(total * scale + rows + columns, 0.0)
        return [total, convert(activated, ScalarType.FLOAT16), activated - both]

    further, outputs = [rows, columns, both, scale], [raw, narrow, across]
    kernel = contraction_kernel(a, b, (2,), outputs, further, epilogue)
    total = product(a, b, (2,))
    activated = np.maximum(total * scale + rows + columns, 0)
    terms = product(np.abs(a), np.abs(b), (2,))
    further_terms = terms * np.abs(scale) + np.abs(rows) + np.abs(columns)
    for tiles in every_tiling(kernel).values():
        run_launches(launches_of(tiles), [a, b, *further, *outputs])
        assert_within("GEMM", raw, total, terms)
        assert_within("GEMM", narrow, activated, further_terms)
        assert_within("GEMM", across, activated - both, further_terms + np.abs(both))


@pytest.mark.parametrize(("m", "n", "k"), [(16, 31, 9), (49, 33, 300), (98, 64, 40), (113, 17, 5)])
def test_results_that_lie_along_the_rows_of_tiles_are_turned(m: int, n: int, k: int) -> None:
    """A residual is read, and a column's number added, beside results that are turned."""
    a, b = laid_out(values("float32", m, 1, k), (1, 2, 0)), values("float32", 1, n, k)
    column, both = values("float32", 1, n, 1), laid_out(values("float32", m, n, 1), (1, 0, 2))
    out = laid_out(np.zeros((m, n, 1), "f"), (1, 0, 2))

    def epilogue(total: Node, column: Node, both: Node) -> list[Node]:
        return [maximum(total + column, 0.0) + both]

    kernel = contraction_kernel(a, b, (2,), [out], [column, both], epilogue)
    wanted = np.maximum(product(a, b, (2,)) + column, 0) + both
    terms = product(np.abs(a), np.abs(b), (2,)) + np.abs(column) + np.abs(both)
    ways = [way.choice for way in estimates(ProductQuery(kernel, machine()))]
    turning = [each for each in ways if each.turns]
    assert turning
    results = set()
    for tiles in turning:
        out[...] = np.nan
        run_launches(launches_of(tiles), [a, b, column, both, out])
        assert_within("GEMM", out, wanted, terms)
        results.add(out.tobytes())
    assert len(results) == 1


def test_operands_are_computed_while_they_are_packed() -> None:
    a, b = values("float16", 30, 1, 90), laid_out(values("float16", 1, 60, 90), (2, 1, 0))

    def operand(value: Node) -> Node:
        wide = convert(value, ScalarType.FLOAT32)
        return wide * apply(Op.ABSOLUTE, wide)

    out = np.zeros((30, 60, 1), "f")
    kernel = contraction_kernel(a, b, (2,), [out], operand=operand)
    for name, tiles in every_tiling(kernel).items():
        run_launches(launches_of(tiles), [a, b, out])
        assert_accurate(out, *(each.astype("f") * np.abs(each.astype("f")) for each in (a, b)), (2,), name)
        strips = with_b_ahead(tiles)
        assert (strips is None) == (tiles.instructions is Instructions.AMX_BF16)
        if strips:
            check_strips(strips, [a, b], out)


@pytest.mark.parametrize("in_bf16", [False, True])
def test_results_depend_neither_on_blocks_nor_on_who_computes_them(in_bf16: bool) -> None:
    a, b = values("float32", 150, 1, 800), values("float32", 1, 300, 800)
    out = np.zeros((150, 300, 1), "f")
    kernel = contraction_kernel(a, b, (2,), [out])
    results = set()
    ways = [way.choice for way in estimates(ProductQuery(kernel, machine())) if "exchanged" not in way.name]
    for tiles in ways:
        if (tiles.instructions is Instructions.AMX_BF16) is in_bf16:
            for at_once in (None, 1):
                run_launches(launches_of(tiles), [a, b, out], at_once)
                results.add(out.tobytes())
    assert len(results) == (1 if not in_bf16 or machine().has("amx-bf16") else 0)


def as_float32(value: Node) -> Node:
    return convert(value, ScalarType.FLOAT32)


def test_panels_are_read_in_place_where_short_rows_lie_one_behind_the_other() -> None:
    b, out = values("float32", 2, 1, 33, 256), np.zeros((2, 40, 33, 1), "f")
    dense = values("float32", 2, 40, 1, 256)
    gaps, narrow = laid_out(dense, (0, 1, 2, 3), 1), dense.astype(np.float16)
    long = values("float32", 2, 40, 1, 257)
    for a, can in [(dense, True), (gaps, False), (narrow, False), (long, has_low_tiles())]:
        wide = b if a is not long else values("float32", 2, 1, 33, 257)
        ways = every_tiling(contraction_kernel(a, wide, (3,), [out], operand=as_float32), in_place=True)
        assert any(not name.count("exchanged") for name in ways) is can


@pytest.mark.usefixtures("no_matrix_registers")
@pytest.mark.parametrize("m", [14, 28, 41, 5])
@pytest.mark.parametrize("k", [2, 147, 256, *(k for k in (257, 600, 2100) if has_low_tiles())])
def test_panels_read_in_place_change_no_bit(m: int, k: int) -> None:
    """Of several groups, with a last panel that is whole or not."""
    a, b = values("float32", 2, m, 1, k), values("float32", 2, 1, k, 40).transpose(0, 1, 3, 2)
    out = np.zeros((2, m, 40, 1), "f")
    kernel = contraction_kernel(a, b, (3,), [out])
    ways = []
    for in_place in (False, True):
        tiles = every_tiling(kernel, in_place=in_place)
        ways += [tiles[name] for name in tiles if "exchanged" not in name and "by rows" not in name]
    assert len(ways) == 2
    require_same_bits(ways, [a, b], out)
    assert_accurate(out, a, b, (3,))


@pytest.mark.parametrize("sizes", [(512, 512, 512), (128, 768, 768), (33, 65, 127), (1, 512, 512)], ids=str)
def test_the_number_of_threads_decides_blocks_and_no_bits(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    a, b, out = np.empty((m, 1, k), "f"), np.empty((1, n, k), "f"), np.empty((m, n, 1), "f")
    kernel = contraction_kernel(a, b, (2,), [out])
    items, operands = [], set()
    for threads in (1, 2, 8):
        with assumed(replace(detected(), threads=threads)):
            launches = schedule(kernel)
        items.append(launches[-1].items)
        operands.add((launches[-1].pattern.mode, launches[-1].pattern.stores))
    assert items == sorted(items)
    assert len(operands) == 1


@pytest.mark.parametrize("sizes", [(1, 4096, 300), (1, 4100, 1029), (2, 2049, 4500)], ids=str)
def test_vectors_times_matrices_have_the_same_bits_on_all_threads(sizes: tuple[int, int, int]) -> None:
    count, n, k = sizes
    a, b = values("float32", count, 1, k), values("float32", count, k, n).transpose(0, 2, 1)
    out = np.empty((count, n, 1), np.float32)
    results, modes = set(), []
    for threads in (1, 2, 3, 64):
        with assumed(replace(machine(), threads=threads)):
            out[:] = np.nan
            modes.append(run(contraction_kernel(a, b, (2,), [out]), a, b, out))
        assert_accurate(out, a, b, (2,))
        results.add(out.tobytes())
    assert len(results) == 1
    assert modes[0] == {CpuMode.COLUMNS}
    assert modes[-1] == {CpuMode.COLUMNS_PARTIAL, CpuMode.COLUMNS_COMBINE}


@pytest.mark.parametrize("count", [1, 13, 14, 255, 256, 257, 518, 1000, 5000])
@pytest.mark.parametrize("unit", [1, 13, 48])
def test_blocks_are_whole_tiles_that_fit_their_room(count: int, unit: int) -> None:
    for most in (128, 512):
        for size in block_sizes(count, unit, most // unit * unit):
            assert size % unit == 0
            assert unit <= size <= most


def errors(result: Array, a: Array, b: Array) -> Array:
    """Of products of matrices, relative to the sums of the magnitudes."""
    wide = a.astype(np.float64), b.astype(np.float64)
    return np.asarray(np.abs(result - wide[0] @ wide[1]) / (np.abs(wide[0]) @ np.abs(wide[1])))


@dataclass(frozen=True)
class Matrices:
    """Two matrices, and what each way in tiles of two vectors makes of their product."""

    a: Array
    b: Array
    results: dict[str, tuple[Tiles, Array]]


def multiplied(k: int, positive: bool) -> Matrices:
    """Matrices of normal numbers or their magnitudes."""
    generator = np.random.default_rng(k)
    a, b = generator.standard_normal((15, k), np.float32), generator.standard_normal((k, 33), np.float32)
    if positive:
        a, b = np.abs(a), np.abs(b)
    spread_a, spread_b = a[:, None], b.T[None]
    out = np.zeros((15, 33, 1), "f")
    results = {}
    for name, tiles in every_tiling(contraction_kernel(spread_a, spread_b, (2,), [out])).items():
        run_launches(launches_of(tiles), [spread_a, spread_b, out])
        results[name] = tiles, out[..., 0].copy()
    return Matrices(a, b, results)


DEPTHS = pytest.mark.parametrize("k", [256, 2048, 2049, 16_384, 65_536])
SIGNS = pytest.mark.parametrize("positive", [False, True], ids=["mixed", "positive"])


@DEPTHS
@SIGNS
def test_errors_stay_within_the_bound_in_every_way(k: int, positive: bool) -> None:
    product = multiplied(k, positive)
    parts = -(-k // 256)
    bound = (min(k, 256) + min(parts, 8) + -(-parts // 8)) * 2**-24
    results: dict[tuple[bool, bool], set[bytes]] = {}
    for name, (tiles, result) in product.results.items():
        assert errors(result, product.a, product.b).max() <= bound, name
        # Of numbers in pieces it matters which operand's are multiplied first.
        is_amx = tiles.instructions.are_amx
        alike = is_amx, is_amx and "exchanged" in name
        results.setdefault(alike, set()).add(result.tobytes())
    assert all(len(each) == 1 for each in results.values())


@pytest.mark.usefixtures("no_matrix_registers")
@SIGNS
def test_products_are_added_in_their_order_in_parts_of_256_and_2048(positive: bool) -> None:
    product = multiplied(2 * 2048 + 300, positive)
    expected = np.zeros((15, 33), np.float32)
    for eighth in range(0, product.a.shape[1], 2048):
        together = np.zeros_like(expected)
        for part in range(eighth, min(eighth + 2048, product.a.shape[1]), 256):
            total = np.zeros_like(expected)
            for depth in range(part, min(part + 256, product.a.shape[1])):
                total = multiplied_and_added(product.a[:, depth, None], product.b[depth], total)
            together += total
        expected += together
    for name, (_, result) in product.results.items():
        np.testing.assert_array_equal(result, expected, name)


def multiplied_and_added(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once: the sum in FLOAT64, where products are exact, is rounded to odd first."""
    product, wide = a.astype(np.float64) * b, c.astype(np.float64)
    total = product + wide
    taken = total - product
    error = (product - (total - taken)) + (wide - taken)
    is_even = total.view(np.int64) % 2 == 0
    odd = np.nextafter(total, np.copysign(np.inf, error))
    return np.where(is_even & (error != 0), odd, total).astype(np.float32)


@pytest.mark.parametrize("n", [1, 40, 600])
@pytest.mark.parametrize("k", [256, 300, 5000, 20_011])
def test_a_vector_times_a_matrix_adds_few_sums_to_each_other(n: int, k: int) -> None:
    a, b = np.abs(values("float32", 1, k)), np.abs(values("float32", k, n))
    spread_a, spread_b = a[:, None], b.T[None]
    out = np.zeros((1, n, 1), "f")
    modes = run(contraction_kernel(spread_a, spread_b, (2,), [out]), spread_a, spread_b, out)
    assert errors(out[..., 0], a, b).max() <= (56 + k / 128) * 2**-24
    assert (CpuMode.COLUMNS_PARTIAL in modes) is (n > 1)
