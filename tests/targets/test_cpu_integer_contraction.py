"""Sums of products of integers on the CPU, in every way that it has, are exact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from opendml import INT8, INT32, UINT8, TensorDesc, descs
from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Kernel
from opendml.program.node import contraction, convert, source
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of
from opendml.targets.cpu import machine_code
from opendml.targets.cpu.contraction.launches import launches_of
from opendml.targets.cpu.contraction.roles import roles_of
from opendml.targets.cpu.contraction.schedule import ProductQuery, Tiles, estimates
from opendml.targets.cpu.machine import CpuMachine, assumed, detected, machine
from opendml.targets.cpu.pattern import CpuMode
from tests.running import launches
from tests.targets.kernels import access, run_launches, with_b_ahead
from tests.targets.test_cpu_attributes import PROCESSORS, Processor, compiled, undefined_symbols
from tests.targets.test_cpu_contraction import laid_out
from tests.targets.test_cpu_windows import FORMS, Form, windows_of

RANDOM = np.random.default_rng(8)
TYPES = ["uint8", "int8"]
SIGNS = list(product(TYPES, TYPES))
FEATURES = {
    "bytes in 512 bits": (64, "avx512f,avx512bw,avx512vnni"),
    "bytes in matrix registers": (64, "avx512f,avx512bw,avx512vnni,amx-tile,amx-int8,amx-bf16"),
    "bytes in 256 bits": (32, "avx2,avxvnni"),
    "pairs in 256 bits": (32, "avx2"),
    "words": (64, "avx512f"),
}
"""Bytes of a vector, and the features, of processors that pack differently."""
CODES: dict[str, dict[str, machine_code.MachineCode]] = {name: {} for name in FEATURES}
PACKED = {"bytes": ("INT8", "UINT8"), "pairs": ("INT16", "INT16"), "words": ("INT32", "INT32")}


def with_features(vector_bytes: int, features: str) -> CpuMachine:
    """This machine with other features."""
    names = ",".join(f"+{feature}" for feature in features.split(",") if feature)
    return replace(detected(), vector_bytes=vector_bytes, features=names)


@pytest.fixture(params=FEATURES)
def packed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """As if this machine were one of these, if it has what they have: the types in which operands of bytes
    are packed there."""
    vector_bytes, features = FEATURES[request.param]
    host = detected()
    if not host.triple.startswith("x86_64") or host.vector_bytes < vector_bytes:
        pytest.skip(f"this processor has no vectors of {vector_bytes} bytes")
    if "vnni" in features and not host.has("avx512vnni" if vector_bytes == 64 else "avxvnni"):
        pytest.skip("this processor has no products of bytes")
    if "amx" in features and not host.has("amx-int8"):
        pytest.skip("this processor has no matrix registers")
    # Code is kept by its pattern, for one machine.
    monkeypatch.setattr(machine_code, "_codes", CODES[request.param])
    monkeypatch.setattr(machine_code, "_cached", lambda text, symbols: None)
    monkeypatch.setattr(machine_code, "write_object", lambda key, code: None)
    with assumed(with_features(vector_bytes, features)):
        yield PACKED[request.param.split()[0]]


def numbers(type: str, *sizes: int) -> Array:
    """Integers of all bits, every other one the least or the greatest."""
    info = np.iinfo(type)
    ends = RANDOM.choice(np.array([info.min, info.max], type), sizes)
    return np.where(
        RANDOM.random(sizes) < 0.5, ends, RANDOM.integers(info.min, info.max, sizes, type, endpoint=True)
    )


class Product:
    """A sum of products of bytes, each less its zero point if there is one, and the array for it."""

    def __init__(
        self, a: Array, a_zero: Array | None, b: Array, b_zero: Array | None, axes: tuple[int, ...] = (2,)
    ) -> None:
        self.axes, self.given = axes, [each for each in (a, a_zero, b, b_zero) if each is not None]
        differences = [
            each.astype(np.int64) - (0 if zero is None else zero.astype(np.int64))
            for each, zero in ((a, a_zero), (b, b_zero))
        ]
        self.expected = (differences[0] * differences[1]).sum(axis=axes, keepdims=True).astype(np.int32)
        self.out = np.zeros(self.expected.shape, np.int32)
        self.has_zeros = a_zero is not None, b_zero is not None

    @property
    def kernel(self) -> Kernel:
        """The kernel that computes it."""
        arrays = [*self.given, self.out]
        accesses = [access(number, array) for number, array in enumerate(arrays)]
        values = iter(
            convert(source(number, accesses[number].type, array.shape), ScalarType.INT32)
            for number, array in enumerate(self.given)
        )
        a, b = (next(values) - next(values) if has_zero else next(values) for has_zero in self.has_zeros)
        domain = np.broadcast_shapes(*(array.shape for array in self.given))
        total = contraction(a, b, self.axes)
        return Kernel(domain, self.axes, tuple(accesses[:-1]), tuple(accesses[-1:]), (total,))

    def tiles(self, exchanged: bool = False, ahead: bool = False) -> Tiles:
        """A way to compute it in tiles of two vectors, with the smallest blocks."""
        ways = [
            way.choice
            for way in estimates(ProductQuery(self.kernel, machine()))
            if way.choice.micro.vectors == 2 and ("exchanged" in way.name) is exchanged
        ]
        return min((way for way in ways if way.a.is_ahead is ahead), key=lambda way: way.rows * way.columns)

    def check(self, exchanged: bool = False, ahead: bool = False, strips: bool = False) -> None:
        """That way is exact; `strips`: with b packed ahead."""
        tiles = self.tiles(exchanged, ahead)
        if strips:
            packed_ahead = with_b_ahead(tiles)
            assert packed_ahead is not None
            tiles = packed_ahead
        self.check_tiles(tiles)

    def check_tiles(self, tiles: Tiles) -> None:
        """One way is exact."""
        self.out[...] = -1
        run_launches(launches_of(tiles), [*self.given, self.out])
        np.testing.assert_array_equal(self.out, self.expected)


def matrices(
    types: tuple[str, str], m: int, n: int, k: int, zeros: tuple[int, int] | None = (1, 1)
) -> Product:
    """A product of matrices; `zeros`: how many zero points a's rows and b's columns have; None: none."""
    a, b = numbers(types[0], m, 1, k), numbers(types[1], 1, n, k)
    if zeros is None:
        return Product(a, None, b, None)
    return Product(a, numbers(types[0], zeros[0], 1, 1), b, numbers(types[1], 1, zeros[1], 1))


def test_operands_are_packed_as_the_instructions_want_them(packed: tuple[str, str]) -> None:
    for exchanged in (False, True):
        roles = roles_of(matrices(("uint8", "int8"), 30, 40, 50).kernel, exchanged)
        assert roles is not None
        assert tuple(type.name for type in roles.types) == packed


@pytest.mark.parametrize("types", SIGNS, ids="-".join)
def test_all_signs_and_zero_points_are_exact(types: tuple[str, str], packed: tuple[str, str]) -> None:
    matrices(types, 14, 37, 50, (14, 37)).check()
    matrices(types, 14, 37, 50, None).check(exchanged=True)


def test_either_operand_is_packed_ahead(packed: tuple[str, str]) -> None:
    one = matrices(("uint8", "uint8"), 28, 70, 1030)
    one.check(ahead=True)
    one.check(strips=True)


SIZES = [(1, 33, 37), (14, 32, 4), (28, 40, 1023), (28, 40, 1025), (14, 33, 2051), (90, 300, 70)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_tiles_of_any_size_are_exact(sizes: tuple[int, int, int], packed: tuple[str, str]) -> None:
    m, n, k = sizes
    matrices(("int8", "uint8"), m, n, k).check()


ORDERS = [(0, 1, 2), (2, 0, 1)]


@pytest.mark.parametrize(("a_order", "b_order"), list(product(ORDERS, ORDERS)), ids=str)
def test_operands_lie_in_memory_in_any_order(
    a_order: tuple[int, ...], b_order: tuple[int, ...], packed: tuple[str, str]
) -> None:
    a, b = numbers("uint8", 28, 1, 70), numbers("uint8", 1, 50, 70)
    zeros = numbers("uint8", 28, 1, 1), numbers("uint8", 1, 50, 1)
    apart = [laid_out(each, order, 3) for each, order in ((a, a_order), (b, b_order))]
    Product(apart[0], zeros[0], apart[1], zeros[1]).check()


@pytest.mark.parametrize("channels", [4, 5])
def test_windows_are_exact_wherever_their_rows_begin(channels: int, packed: tuple[str, str]) -> None:
    """A convolution: [N, O, OH, OW, KH, KW, C], with the channels innermost, or the columns."""
    image = numbers("uint8", 2, 7, 8, channels)
    filters = numbers("int8", 1, 20, 1, 1, 3, 3, channels)
    zeros = numbers("uint8", 1, 1, 1, 1, 1, 1, 1), numbers("int8", 1, 20, 1, 1, 1, 1, 1)
    for memory in (image, laid_out(image, (0, 3, 1, 2))):
        n, y, x, c = memory.strides
        windows = np.lib.stride_tricks.as_strided(memory, (2, 1, 5, 6, 3, 3, channels), (n, 0, y, x, y, x, c))
        Product(filters, zeros[1], windows, zeros[0], (4, 5, 6)).check()


@pytest.mark.parametrize(
    ("form", "channels", "types"),
    [(FORMS[0], 128, ("int8", "uint8")), (FORMS[1], 8, ("uint8", "int8")), (FORMS[3], 4, ("int8", "int8"))],
    ids=str,
)
def test_channels_of_an_image_share_words(
    form: Form, channels: int, types: tuple[str, str], packed: tuple[str, str]
) -> None:
    """In one part of the products or several, in small blocks, and in large ones of what is packed ahead."""
    filters, image = (
        numbers(types[0], 1, 20, 1, 1, channels, *form.extents),
        numbers(types[1], 2, channels, *form.image),
    )
    zeros = numbers(types[0], 1, 20, 1, 1, 1, 1, 1), numbers(types[1], 1, 1, 1, 1, 1, 1, 1)
    one = Product(filters, zeros[0], windows_of(image, form), zeros[1], (4, 5, 6))
    ways = [way.choice for way in estimates(ProductQuery(one.kernel, machine())) if way.choice.viewed]
    assert bool(ways) is (packed[0] != "INT32")
    for ahead, choose in ((False, min), (True, max)):
        alike = [tiles for tiles in ways if tiles.a.is_ahead is ahead and tiles.micro.vectors == 2]
        if alike:
            one.check_tiles(choose(alike, key=lambda tiles: tiles.rows * tiles.columns))


@pytest.mark.parametrize("has_zeros_of_rows", [False, True])
def test_images_whose_words_would_differ_are_packed_window_by_window(
    has_zeros_of_rows: bool, packed: tuple[str, str]
) -> None:
    """For the zero points of rows, else for channels that fill no words."""
    form, group = FORMS[0], 4 // ScalarType[packed[0]].bytes
    channels = 8 if has_zeros_of_rows else 8 - group // 2
    windows = windows_of(numbers("uint8", 1, channels, *form.image), form)
    filters = numbers("int8", 1, 20, 1, 1, channels, *form.extents)
    zeros = numbers("uint8", 1, 1, form.output[0] if has_zeros_of_rows else 1, 1, 1, 1, 1)
    one = Product(filters, None, windows, zeros, (4, 5, 6))
    assert not any(way.choice.viewed for way in estimates(ProductQuery(one.kernel, machine())))
    one.check()


def test_zero_points_that_change_along_k_are_subtracted_before(packed: tuple[str, str]) -> None:
    a, b = numbers("uint8", 15, 1, 70), numbers("int8", 1, 40, 70)
    one = Product(a, numbers("uint8", 1, 1, 70), b, None)
    roles = roles_of(one.kernel, False)
    assert roles is not None
    assert roles.types[0] is not ScalarType.INT8
    one.check()


def test_sums_wrap(packed: tuple[str, str]) -> None:
    a, b = np.full((15, 1, 40_000), 255, np.uint8), np.full((1, 33, 40_000), 255, np.uint8)
    one = Product(a, None, b, None)
    assert (one.expected == 255 * 255 * 40_000 - 2**32).all()
    one.check()


_LLVM_FEATURES = {
    "haswell": "avx2",
    "skylake-avx512": "avx512f,avx512bw,avx512vl",
    "sapphirerapids": "avx512f,avx512bw,avx512vl,avx512vnni",
    "generic": "",
}


@pytest.mark.parametrize("processor", PROCESSORS, ids=str)
def test_processors_that_are_not_here_need_no_symbols(processor: Processor) -> None:
    machine = replace(
        with_features(processor.vector_bytes, _LLVM_FEATURES[processor.name]), triple=processor.triple
    )
    with assumed(machine):
        for launch in launches_of(matrices(("uint8", "int8"), 30, 40, 50).tiles(ahead=True)):
            assert not list(undefined_symbols(compiled(launch.pattern, processor)))


def test_quantized_operators_multiply_what_they_read() -> None:
    """No tensor of differences is written, whatever lies around an image."""
    one = [1, 1, 1, 1]
    sides = {"start_padding": [1, 1], "end_padding": [1, 1], "strides": [1, 1], "dilations": [1, 1]}
    operators = [
        descs.MatrixMultiplyInteger(
            TensorDesc(UINT8, [1, 1, 60, 70]),
            TensorDesc(UINT8, [1, 1, 1, 1]),
            TensorDesc(INT8, [1, 1, 70, 80]),
            TensorDesc(INT8, [1, 1, 1, 80]),
            TensorDesc(INT32, [1, 1, 60, 80]),
        ),
        descs.ConvolutionInteger(
            TensorDesc(UINT8, [1, 16, 20, 20]),
            TensorDesc(UINT8, one),
            TensorDesc(INT8, [32, 16, 3, 3]),
            TensorDesc(INT8, one),
            TensorDesc(INT32, [1, 32, 20, 20]),
            group_count=1,
            **sides,
        ),
    ]
    for desc in operators:
        assert {launch.pattern.mode for launch in launches(desc)} <= {
            CpuMode.CONTRACTION,
            CpuMode.CONTRACTION_PACK,
        }
        assert fuse(program_of(desc)).arena_bytes == 0
