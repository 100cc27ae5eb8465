"""Products with constants that stay in narrow types on the CPU."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
import pytest

import opendml as dml
from opendml.compiler.kernel import Kernel
from opendml.program.node import Node, apply, bitcast, contraction, convert, source
from opendml.program.node import Operation as Op
from opendml.program.scalar_type import ScalarType
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.runtime.memory.host_array import Array
from opendml.targets.cpu.contraction.arithmetic import has_bytes
from opendml.targets.cpu.contraction.launches import launches_of
from opendml.targets.cpu.contraction.schedule import ProductQuery, estimates
from opendml.targets.cpu.contraction.tiling import Instructions, Storage, Tiling
from opendml.targets.cpu.executable import CpuExecutable
from opendml.targets.cpu.launch import CpuLaunch
from opendml.targets.cpu.machine import assumed, machine
from opendml.targets.cpu.pattern import CpuMode
from opendml.targets.cpu.schedule import schedule, scheduled
from tests.pairwise import pairwise
from tests.targets.emulated_registers import emulated_registers
from tests.targets.kernels import access, run_launches
from tests.tolerances import assert_within
from tools.machines import PROCESSORS

F32 = ScalarType.FLOAT32
RANDOM = np.random.default_rng(28)


@dataclass(frozen=True)
class Form:
    """A constant matrix of `n` columns: its type, its scales and zero points, and where its elements lie."""

    type: str
    n: int
    blocks: int
    block: int
    zeros: bool = True
    along_depth: bool = True
    scale: str = "float32"

    @property
    def bits(self) -> int:
        """The bits of a number."""
        return 4 if self.type.endswith("int4") else 16 if "float" in self.type else 8

    def numbers(self, *sizes: int) -> Array:
        """Return random numbers of the type, over all its range. Those of 4 bits have a byte each."""
        if "float" in self.type:
            floats = RANDOM.standard_normal(sizes).astype("f")
            return floats.astype(ml_dtypes.bfloat16 if self.type == "bfloat16" else "float16")
        least, carrier = (0, "uint8") if self.type.startswith("u") else (-(2 ** (self.bits - 1)), "int8")
        return RANDOM.integers(least, least + 2**self.bits, sizes).astype(carrier)

    def arrays(self) -> list[Array]:
        """Return the numbers, scales and zero points, over (row, column, block, element of a block)."""
        sizes = 1, self.n, self.blocks, self.block
        result = [self.numbers(*sizes)]
        if "float" not in self.type:
            result.append(RANDOM.uniform(0.5, 2, (*sizes[:-1], 1)).astype(self.scale))
            result += [self.numbers(*sizes[:-1], 1)] * self.zeros
        if not self.along_depth:
            result = [laid_out_by_rows(each) for each in result]
        return result

    def element(self, number: Node, *parameters: Node) -> Node:
        """Return the element as operators compute it."""
        if self.type == "bfloat16":
            bits = apply(Op.SHIFT_LEFT, convert(number, ScalarType.UINT32), 16)
            return bitcast(bits, F32)
        value = convert(number, F32)
        if len(parameters) > 1:
            value = value - convert(parameters[1], F32)
        return value * convert(parameters[0], F32) if parameters else value


def laid_out_by_rows(array: Array) -> Array:
    """Return the same values with the columns innermost in memory."""
    return np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


def product(m: int, form: Form) -> tuple[Kernel, list[Array]]:
    """Return the kernel that multiplies `m` rows by the matrix, and its arrays."""
    a = RANDOM.standard_normal((m, 1, form.blocks, form.block)).astype("f")
    constants = form.arrays()
    out = np.full((m, form.n, 1, 1), np.nan, "f")
    carriers = [each.view("uint16") if form.type == "bfloat16" else each for each in constants]
    loads = [access(number, each) for number, each in enumerate((a, *carriers))]
    loads[1:] = [replace(load, fixed=True) for load in loads[1:]]
    loads[1] = replace(loads[1], four_bit=form.bits == 4)
    sources = [
        source(number, load.type, each.shape)
        for number, (load, each) in enumerate(zip(loads, (a, *carriers), strict=True))
    ]
    total = contraction(sources[0], form.element(*sources[1:]), (2, 3))
    domain = m, form.n, form.blocks, form.block
    kernel = Kernel(domain, (2, 3), tuple(loads), (access(len(loads), out),), (total,))
    return kernel, [a, *constants, out]


def check(m: int, form: Form) -> list[CpuLaunch]:
    """Require a product to be accurate, and its constant to be packed in its own type."""
    kernel, arrays = product(m, form)
    launches = schedule(kernel)
    run_launches(launches, arrays)
    packing, multiplying = launches
    assert packing.fixed
    assert packing.pattern.mode is CpuMode.CONTRACTION_PACK
    assert multiplying.pattern.walk_as(Tiling).b.storage.is_narrow
    width = 2 * machine().lanes
    columns, depth = -(-form.n // width) * width, form.blocks * form.block
    blocks = -(-depth // min(form.block, 256))
    own = columns * (depth * form.bits // 8 + blocks * sum(each.itemsize for each in arrays[2:-1]))
    assert own <= packing.partial_bytes <= own + columns // width * 64
    require_accurate(arrays)
    return launches


def require_accurate(arrays: list[Array]) -> None:
    """Require sums of products within the stated bound."""
    a, (number, *parameters), out = arrays[0], arrays[1:-1], arrays[-1]
    values = number.astype("f")
    if len(parameters) > 1:
        values = values - parameters[1].astype("f")
    if parameters:
        values = values * parameters[0].astype("f")
    exact, terms = (
        np.einsum("mabk,nabk->mn", left.astype("d"), right[0, :, None].astype("d"))[..., None, None]
        for left, right in ((a, values), (np.abs(a), np.abs(values)))
    )
    assert_within("GEMM", out, exact, terms)


ROWS = [1, 3, 8, 21]


@pairwise(
    type=["int4", "uint4", "int8", "uint8"],
    m=ROWS,
    n=[64, 333],
    block=[(70, 16), (17, 32), (9, 64), (5, 128), (3, 256), (1, 1040)],
    zeros=[False, True],
    along_depth=[False, True],
    scale=["float32", "float16"],
    vector_bytes=[32, 64],
)
def test_quantized_constants_stay_packed_for_few_and_many_rows(
    type: str,
    m: int,
    n: int,
    block: tuple[int, int],
    zeros: bool,
    along_depth: bool,
    scale: str,
    vector_bytes: int,
) -> None:
    form = Form(type, n, *block, zeros, along_depth, scale)
    with assumed(replace(machine(), vector_bytes=min(vector_bytes, machine().vector_bytes))):
        check(m, form)


@pairwise(
    type=["float16", "bfloat16"], m=ROWS, along_depth=[False, True], k=[300, 513], vector_bytes=[32, 64]
)
def test_constants_of_two_bytes_stay_so(
    type: str, m: int, along_depth: bool, k: int, vector_bytes: int
) -> None:
    with assumed(replace(machine(), vector_bytes=min(vector_bytes, machine().vector_bytes))):
        check(m, Form(type, 75, 1, k, along_depth=along_depth))


@pytest.mark.skipif(not machine().triple.startswith("x86_64"), reason="this is no x86-64 processor")
@pytest.mark.parametrize("type", ["int4", "uint8", "bfloat16"])
def test_matrix_registers_multiply_what_items_widen(type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those of the processor, or emulated if it has none."""
    if type == "int4" and not machine().has("avx512f"):
        pytest.skip("numbers of 4 bits are widened by AVX-512, which this processor does not have")
    with nullcontext() if machine().has("amx-bf16") else emulated_registers(monkeypatch):
        kernel, arrays = product(40, Form(type, 40, 17, 32))
        ways = [each.choice for each in estimates(ProductQuery(kernel, machine()))]
        amx = next(each for each in ways if each.instructions is Instructions.AMX_BF16)
        run_launches(launches_of(amx), arrays)
    assert amx.b is Storage.NARROW
    require_accurate(arrays)


needs_dots = pytest.mark.skipif(not has_bytes(machine()), reason="this processor adds no products of bytes")


@needs_dots
@pytest.mark.parametrize("type", ["int4", "uint8"])
@pytest.mark.parametrize("m", [1, 5])
def test_digits_of_rows_keep_the_bound_where_magnitudes_of_a_block_differ(type: str, m: int) -> None:
    """Half of the elements are far below the largest of their block, or are no digits at all."""
    kernel, arrays = product(m, Form(type, 75, 20, 32))
    a = arrays[0]
    a[:, :, :16] *= 2.0 ** RANDOM.integers(-40, 1, a[:, :, :16].shape).astype("f")
    a[:, :, 16] *= 2.0 ** RANDOM.integers(-119, 62, a[:, :, 16].shape).astype("f")
    a[:, :, 17] = 0
    launches = schedule(kernel)
    assert launches[-1].pattern.walk_as(Tiling).instructions is Instructions.DIGITS
    run_launches(launches, arrays)
    require_accurate(arrays)


@needs_dots
def test_digits_of_rows_keep_the_bound_where_scales_are_very_small() -> None:
    """The product of a block's scale with that of its digits would be denormal."""
    kernel, arrays = product(2, Form("uint4", 75, 20, 32))
    arrays[2] *= 2.0**-110
    run_launches(schedule(kernel), arrays)
    require_accurate(arrays)


@needs_dots
def test_digits_of_rows_keep_infinities_and_nan() -> None:
    kernel, arrays = product(2, Form("uint4", 64, 8, 32, zeros=False))
    (a, numbers, _, out), (one, two) = arrays, (0, 1)
    a[one, 0, 3, 7], a[two, 0, 5, 1] = np.inf, np.nan
    run_launches(schedule(kernel), arrays)
    is_zero = numbers[0, :, 3, 7] == 0
    assert is_zero.any()
    np.testing.assert_array_equal(out[one, :, 0, 0], np.where(is_zero, np.nan, np.inf))
    assert np.isnan(out[two]).all()


@needs_dots
@pytest.mark.parametrize("change", ["float zero points", "16 bits", "an odd depth"])
def test_other_elements_than_scaled_differences_are_widened(change: str) -> None:
    form = Form(
        "float16" if change == "16 bits" else "uint8", 640, 1, 513 if change == "an odd depth" else 512
    )
    if change == "float zero points":
        form = FloatZeros("uint8", 640, 16, 32)
    launches = schedule(product(1, form)[0])
    assert launches[-1].pattern.walk_as(Tiling).instructions is Instructions.FMA


@dataclass(frozen=True)
class FloatZeros(Form):
    """A matrix whose zero points are floats, which are subtracted behind the scale."""

    def element(self, number: Node, *parameters: Node) -> Node:
        scale, zero = (convert(each, F32) for each in parameters)
        return convert(number, F32) * scale - zero


def test_all_rows_read_one_packed_constant() -> None:
    """The launches that pack a constant are equal, whatever the number of rows and the instructions."""
    form, packings, kinds = Form("uint4", 640, 20, 32), set(), set()
    for name in ("avx512", "amx"):
        with assumed(PROCESSORS[name]):
            for m in (1, 4, 16, 64, 500):
                for varying in (None, (0,)):
                    _, (packing, multiplying) = scheduled(product(m, form)[0], varying)
                    packings.add((packing.pattern.text(), packing.parameters))
                    tiling = multiplying.pattern.walk_as(Tiling)
                    kinds.add((tiling.instructions, tiling.b.storage))
    assert len(packings) == 1
    assert kinds == {
        (Instructions.FMA, Storage.NARROW),
        (Instructions.DIGITS, Storage.NARROW_STREAMED),
        (Instructions.AMX_BF16, Storage.NARROW),
    }


def quantized(
    graph: dml.Graph, k: int, n: int, block: int, along_depth: bool, zeros: bool = True
) -> tuple[GraphTensor, Array]:
    """Return a dequantized constant of `k` rows in a graph, and its values."""
    blocks = k // block
    q, zero = (RANDOM.integers(0, 16, (rows, n)).astype(ml_dtypes.uint4) for rows in (k, blocks))
    scale = RANDOM.uniform(0.5, 2, (blocks, n)).astype("f")
    values = (q.astype("f") - np.repeat(zero, block, 0).astype("f") * zeros) * np.repeat(scale, block, 0)
    arrays = [q, scale, *[zero] * zeros]
    if along_depth:
        arrays = [np.ascontiguousarray(each.T) for each in arrays]
    weights, *parameters = map(graph.constant, arrays)
    kind = "SCALE_ZERO_POINT" if zeros else "SCALE"
    return dml.dequantize(weights, parameters, quantization_type=kind), values


@pytest.mark.parametrize("along_depth", [False, True])
def test_one_packed_constant_of_four_bits_serves_one_row_and_many(along_depth: bool) -> None:
    """With blocks along the rows or the columns of the matrix, the product is one kernel."""
    k, n, block = 512, 96, 32
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["rows", k])
    weights, values = quantized(graph, k, n, block, along_depth)
    model = graph.compile({"y": dml.gemm(x, weights, trans_b="TRANSPOSE" if along_depth else "NONE")})
    packed = n * (k // 2 + k // block * (4 + 1))
    for rows in (1, 3, 7, 20, 64):
        a = RANDOM.standard_normal((rows, k)).astype("f")
        exact, terms = (
            left.astype("d") @ right for left, right in ((a, values), (np.abs(a), np.abs(values)))
        )
        assert_within("GEMM", model(x=a)["y"], exact, terms)
    assert model.persistent_bytes == packed
    (kernel,) = model.explain(x=a).kernels
    assert len(kernel.operators) == 2


@pytest.mark.parametrize("is_narrow", [False, True])
@pytest.mark.parametrize("columns", [1, 9, 17, 26, 40, 58])
def test_one_row_reads_panels_together_up_to_a_last_one_that_is_not_whole(
    columns: int, is_narrow: bool
) -> None:
    """Whole tiles of a last block are stored where they belong, and the others through scratch memory."""
    k, n = 64, 9 * 128 + columns
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["rows", k])
    if is_narrow:
        weights, values = quantized(graph, k, n, 32, False)
    else:
        values = RANDOM.standard_normal((k, n)).astype("f")
        weights = graph.constant(values)
    model = graph.compile({"y": dml.gemm(x, weights)})
    for _ in range(2):
        a = RANDOM.standard_normal((1, k)).astype("f")
        exact, terms = (
            left.astype("d") @ right for left, right in ((a, values), (np.abs(a), np.abs(values)))
        )
        assert_within("GEMM", model(x=a)["y"], exact, terms)


def test_numbers_of_four_bits_are_unpacked_for_one_matrix_at_a_time() -> None:
    """Each matrix has a step that prepares and packs it. So one of them at a time takes a byte per number."""
    k, n = 1024, 1056
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [3, k])
    results = {name: dml.gemm(x, quantized(graph, k, n, 32, False)[0]) for name in "yz"}
    model = graph.compile(results)
    executable = model._work.executable
    assert isinstance(executable, CpuExecutable)
    between = [sum(size for _, size in step.between) for step in executable.parts.steps]
    assert max(between) < 1.2 * k * n
    assert sum(between) >= 2 * k * n
