"""Products of FLOAT32 in matrix registers: numbers that can be taken apart and others, wherever they stand,
against NumPy's float64. What else holds for products in tiles is tested with the others
(test_cpu_contraction.py, test_cpu_windows.py)."""

from __future__ import annotations

import ctypes
import multiprocessing
import sys
from dataclasses import replace
from types import SimpleNamespace

import llvmlite.binding as llvm
import numpy as np
import pytest

import opendml as dml
from opendml.runtime.memory.host_array import Array
from opendml.targets.cpu import machine as machines
from opendml.targets.cpu.contraction.launches import launches_of
from opendml.targets.cpu.contraction.schedule import ProductQuery, Tiles, estimates
from opendml.targets.cpu.contraction.tiling import Instructions, Storage, Tiling
from opendml.targets.cpu.engine import Effort, kernel_assembly
from opendml.targets.cpu.host_facts import host_facts
from opendml.targets.cpu.machine import CpuMachine, assumed, machine
from opendml.targets.cpu.machine_code import compile_object
from opendml.targets.cpu.pattern import CpuPattern
from opendml.targets.cpu.schedule import schedule
from tests.running import same_bits
from tests.targets.kernels import contraction_kernel, run_launches
from tests.targets.test_cpu_windows import Form, convolution
from tests.tolerances import assert_within

X86 = pytest.mark.skipif(not machine().triple.startswith("x86_64"), reason="this is no x86-64 processor")
HERE = pytest.mark.skipif(not machine().has("amx-bf16"), reason="this processor has no matrix registers")
LARGEST = float(np.finfo(np.float32).max)
WINDOW = 2.0**-79, 2.0**29
"""The magnitudes of numbers that are taken apart."""

AT_ODDS = {
    "not a number": np.nan,
    "infinite": -np.inf,
    "largest": LARGEST,
    "denormal": 1e-40,
    "least denormal": 1.4e-45,
    "least normal": -(2.0**-126),
    "below the window": np.nextafter(np.float32(WINDOW[0]), np.float32(0)),
    "above the window": np.nextafter(np.float32(WINDOW[1]), np.float32(np.inf)),
}
WITHIN = {
    "zero": 0.0,
    "minus zero": -0.0,
    "least": WINDOW[0],
    "greatest": WINDOW[1],
    "all bits": 16_777_215.0,
    "halfway": 1 + 2.0**-8,
    "just above halfway": 1 + 2.0**-8 + 2.0**-23,
}


def in_bf16(a: Array, b: Array, out: Array) -> dict[str, Tiles]:
    """The ways to multiply two matrices in pieces, those of the smallest blocks."""
    ways: dict[str, Tiles] = {}
    spread = a[:, None], b.T[None]
    kernel = contraction_kernel(*spread, (2,), [out[..., None]])
    for way in estimates(ProductQuery(kernel, machine())):
        if way.choice.instructions is Instructions.AMX_BF16:
            name = f"{way.name} {way.choice.a.is_ahead}"
            known = ways.get(name)
            if known is None or known.rows * known.columns > way.choice.rows * way.choice.columns:
                ways[name] = way.choice
    return ways


def multiplied(tiles: Tiles, a: Array, b: Array) -> Array:
    """The product, computed in a way."""
    out = np.full((len(a), b.shape[1], 1), np.nan, np.float32)
    run_launches(launches_of(tiles), [a[:, None], b.T[None], out])
    return out[..., 0]


def wanted(a: Array, b: Array) -> tuple[Array, Array]:
    """The product and the sums of the magnitudes in FLOAT64; beyond FLOAT32 infinite."""
    wide = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        total = wide[0] @ wide[1]
        return np.where(np.abs(total) > LARGEST, np.copysign(np.inf, total), total), np.abs(wide[0]) @ np.abs(
            wide[1]
        )


def assert_right(result: Array, a: Array, b: Array, what: str) -> None:
    """What is not finite is as IEEE arithmetic says; other errors are within the stated bound."""
    total, magnitude = wanted(a, b)
    finite = np.isfinite(total) & (magnitude < LARGEST)
    odd = ~np.isfinite(total)
    np.testing.assert_array_equal(result[odd], total[odd].astype(np.float32), what)
    error = np.abs(result[finite].astype(np.float64) - total[finite])
    depth = a.shape[1]
    bound = (min(depth, 256) + 8 + depth / 2048) * 2.0**-24
    assert np.all(error <= bound * magnitude[finite] + depth * 2.0**-149), what


@HERE
@pytest.mark.parametrize(
    "sizes", [(17, 17, 5), (32, 32, 32), (33, 31, 129), (50, 70, 147), (65, 33, 300)], ids=str
)
def test_sums_are_accurate_whatever_the_sizes(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    random = np.random.default_rng(m)
    a, b = random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)
    ways = in_bf16(a, b, np.empty((m, n), np.float32))
    assert ways
    for name, tiles in ways.items():
        assert_right(multiplied(tiles, a, b), a, b, name)


@HERE
@pytest.mark.parametrize("value", [*AT_ODDS.values(), *WITHIN.values()], ids=[*AT_ODDS, *WITHIN])
@pytest.mark.parametrize("transposed", [False, True])
def test_one_number_among_others_is_multiplied_as_it_is(value: float, transposed: bool) -> None:
    """In either operand, or in both."""
    random = np.random.default_rng(5)
    m, n, k = 40, 70, 200
    for places in ("a", "b", "ab"):
        a, b = random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)
        if transposed:
            a, b = np.asfortranarray(a), np.asfortranarray(b)
        for operand in places:
            array = a if operand == "a" else b
            array[tuple(random.integers(array.shape))] = value
        for name, tiles in in_bf16(a, b, np.empty((m, n), np.float32)).items():
            assert_right(multiplied(tiles, a, b), a, b, f"{places} {name}")


@HERE
@pytest.mark.parametrize("value", [1.0, np.nan, 1e-40, LARGEST])
@pytest.mark.parametrize("sizes", [(65, 70, 145), (66, 31, 256), (130, 33, 300), (70, 1000, 770)], ids=str)
def test_panels_for_vectors_are_split_to_the_bits_of_a_matrix(
    sizes: tuple[int, int, int], value: float
) -> None:
    m, n, k = sizes
    random = np.random.default_rng(k)
    a, b = random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)
    b[k // 2, n - 1] = b[k - 1, n // 3] = value
    storages = set()
    for matrix in (b, np.asfortranarray(b)):
        for name, tiles in in_bf16(a, matrix, np.empty((m, n), np.float32)).items():
            if tiles.b is Storage.PACKED:
                storages.add(tiles.a)
                panels = replace(tiles, b=Storage.PANELS)
                assert same_bits(multiplied(panels, a, matrix), multiplied(tiles, a, matrix)), name
    assert storages == {Storage.PACKED, Storage.AHEAD}


@HERE
@pytest.mark.parametrize("value", [*AT_ODDS.values(), *WITHIN.values()], ids=[*AT_ODDS, *WITHIN])
def test_a_product_with_one_is_the_number_itself(value: float) -> None:
    b = np.full((64, 64), value, np.float32)
    a = np.eye(64, dtype=np.float32)
    for tiles in in_bf16(a, b, np.empty((64, 64), np.float32)).values():
        # Of NaN and infinities, times zero, the sums are NaN.
        expected = b if np.isfinite(value) else np.full_like(b, np.nan)
        np.testing.assert_array_equal(multiplied(tiles, a, b), expected)


@HERE
def test_numbers_of_all_magnitudes_are_multiplied() -> None:
    random = np.random.default_rng(3)
    bits = random.integers(0, 2**32, (2, 96, 160), np.uint32, endpoint=False)
    a, b = bits.view(np.float32)
    a, b = (np.where(np.isfinite(each), each, np.float32(1)) * np.float32(2.0**-70) for each in (a, b))
    for name, tiles in in_bf16(a, b.T.copy(), np.empty((96, 96), np.float32)).items():
        assert_right(multiplied(tiles, a, b.T.copy()), a, b.T, name)


@HERE
@pytest.mark.parametrize("value", AT_ODDS.values(), ids=AT_ODDS)
@pytest.mark.parametrize("strides", [[1, 1], [2, 2]], ids=str)
def test_images_hold_any_number(value: float, strides: list[int]) -> None:
    random = np.random.default_rng(7)
    x = random.standard_normal((1, 64, 15, 17), np.float32)
    x[0, 37, 8, 3] = x[0, 0, 0, 0] = value
    filters = random.standard_normal((40, 64, 3, 3), np.float32)
    given = {"strides": strides, "start_padding": [1, 1], "end_padding": [1, 1]}
    found = dml.convolution(x, filters, device="cpu", **given)
    expected = dml.convolution(x, filters, device="reference", **given)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    terms = dml.convolution(np.abs(x), np.abs(filters), device="reference", **given)
    assert_within("CONVOLUTION", found, expected, terms)


@HERE
@pytest.mark.parametrize("value", [1.0, 1e-30, np.inf])
def test_the_number_of_threads_changes_no_bit_of_an_image(value: float) -> None:
    kernel, arrays = convolution(Form((75, 75), (3, 3)), channels=64, filters=128)
    arrays[1][0, 0, 5, 70, 3] = value
    results = set()
    for threads in (1, 2, 3, 8):
        with assumed(replace(machine(), threads=threads)):
            launches = schedule(kernel)
        assert launches[-1].pattern.walk_as(Tiling).windows == "b"
        run_launches(launches, arrays)
        results.add(arrays[-1].tobytes())
    assert len(results) == 1


@HERE
def test_a_convolution_by_another_is_computed_in_bfloat16_parts() -> None:
    """Windows of an image, and filters that are no constants."""
    random = np.random.default_rng(8)
    x, filters = (
        random.standard_normal((2, 64, 9, 20), np.float32),
        random.standard_normal((33, 64, 3, 3), "f"),
    )
    found, expected = (dml.convolution(x, filters, device=each) for each in ("cpu", "reference"))
    terms = dml.convolution(np.abs(x), np.abs(filters), device="reference")
    assert_within("CONVOLUTION", found, expected, terms)


def _product_of_a_child(a: Array, b: Array) -> bytes:
    return np.asarray(dml.gemm(a, b, device="cpu")).tobytes()


@HERE
@pytest.mark.parametrize("way", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_other_processes_have_matrix_registers_too(way: str) -> None:
    random = np.random.default_rng(4)
    a, b = (random.standard_normal((1, 1, 160, 160), np.float32) for _ in range(2))
    with multiprocessing.get_context(way).Pool(1) as pool:
        found = pool.apply_async(_product_of_a_child, (a, b)).get(60)
    assert found == np.asarray(dml.gemm(a, b, device="cpu")).tobytes()


@X86
def test_code_for_matrix_registers_is_made_on_any_machine() -> None:
    """Of both operands packed by items, of either packed ahead, and of an image."""
    a, b, out = (np.empty(sizes, np.float32) for sizes in ((64, 300), (300, 64), (64, 64)))
    with assumed(with_matrix_registers()):
        ways = in_bf16(a, b, out).values()
        patterns = {
            each.pattern.text(): each.pattern for tiles in list(ways)[:3] for each in launches_of(tiles)
        }
        assert patterns
        for pattern in patterns.values():
            assert_compiles(pattern)


def with_matrix_registers() -> CpuMachine:
    """A machine that has them."""
    name, l2_bytes = "sapphirerapids", 2 * 1024 * 1024
    return replace(machine(), name=name, features=SAPPHIRE_RAPIDS, vector_bytes=64, l2_bytes=l2_bytes)


def assert_compiles(pattern: CpuPattern) -> None:
    """For the machine that is assumed."""
    host = machine()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple = llvm.Target.from_triple(host.triple)
    target = triple.create_target_machine(cpu=host.name, features=host.features, opt=1)
    assert b"ELF" in compile_object(kernel_assembly(pattern), Effort.HOIST, target)


SAPPHIRE_RAPIDS = ",".join(
    f"+{each}"
    for each in (
        *("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd", "fma", "f16c"),
        *("amx-tile", "amx-bf16"),
    )
)


def _features_where(granted: int, platform: str, monkeypatch: pytest.MonkeyPatch) -> CpuMachine:
    """This machine, if it had matrix registers and the system answered a request for them so."""
    facts = replace(host_facts(), features="+amx-tile,+amx-bf16,+fma,+f16c")
    library = SimpleNamespace(syscall=lambda *operands: granted)
    monkeypatch.setattr(machines, "host_facts", lambda: facts)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    monkeypatch.setattr(sys, "platform", platform)
    return machines.detected.__wrapped__()


@X86
@pytest.mark.parametrize(
    ("granted", "platform", "has"), [(0, "linux", True), (-1, "linux", False), (0, "win32", False)]
)
def test_matrix_registers_are_used_where_the_system_keeps_them(
    granted: int, platform: str, has: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _features_where(granted, platform, monkeypatch)
    assert found.has("amx-bf16") is has
    assert found.has("amx-tile") is has
    assert found.has("fma")
