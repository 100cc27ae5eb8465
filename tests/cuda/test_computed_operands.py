"""Products whose operands are computed: in the loader of a tile, or by a kernel that stores them first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

import opendml as dml
from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Kernel, KernelProgram
from opendml.compiler.simplify import simplify
from opendml.program.node import Node, Operation, ordered
from opendml.program.program import Program
from opendml.targets.cuda import planning, stored_operands
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.pattern import CudaMode
from opendml.targets.cuda.planning import plan
from opendml.targets.cuda.schedule_chain import ChainShape
from opendml.targets.cuda.schedule_contraction import TILES, Shape
from tests.cuda.compiled import MACHINES, aligned
from tools.cuda_case import Case
from tools.cuda_check import worst_of
from tools.cuda_emulator import COMPILER, emulated
from tools.cuda_operand_cases import OPERANDS, operand_cases, product_with
from tools.cuda_tiles import in_tiles
from tools.operator_case import graph_program

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
N = K = 4096
HEADS = 12
BLOCKS, COLUMNS = "x W^T of uint4 in blocks", "x W of int8, scales of columns"
LOADER_80, LOADER_90 = "mma", "mma"
STORED_80, STORED_90 = "pointwise mma", "pointwise wgmma"


def kernels_of(program: Program) -> KernelProgram:
    """Return the kernels of a program before anything is stored first."""
    return fuse(Program(program.inputs, program.outputs, simplify(program.results)))


def units(program: Program, capability: int) -> str:
    """Return the modes of the kernels on a device of a compute capability."""
    return " ".join(mode for kernel in plan(program, MACHINES[capability]).launches for mode in kernel)


@pytest.mark.parametrize(
    ("operands", "rows", "ampere", "hopper"),
    [
        ("relu(x) W", 16, STORED_80, STORED_90),
        ("relu(x) W", 512, STORED_80, STORED_90),
        ("relu(x) W", 4096, STORED_80, STORED_90),
        ("gelu(x) W", 4096, STORED_80, STORED_90),
        (COLUMNS, 1, LOADER_80, LOADER_90),
        (COLUMNS, 16, LOADER_80, LOADER_90),
        (COLUMNS, 64, LOADER_80, STORED_90),
        (COLUMNS, 512, STORED_80, STORED_90),
        (BLOCKS, 16, LOADER_80, LOADER_90),
        (BLOCKS, 64, LOADER_80, STORED_90),
        (BLOCKS, 512, STORED_80, STORED_90),
        ("x cast(W)", 16, LOADER_80, LOADER_90),
        ("x cast(W)", 512, STORED_80, STORED_90),
    ],
)
def test_float16_operands_are_computed_where_that_takes_fewer_cycles(
    operands: str, rows: int, ampere: str, hopper: str
) -> None:
    """On an H100 each of these choices took the least time, or at most 5 % more."""
    program = product_with(operands, "FLOAT16", rows, N, K)
    assert (units(program, 80), units(program, 90)) == (ampere, hopper)


def test_a_vector_times_dequantized_rows_is_reduced() -> None:
    assert units(product_with("x W^T of uint8 in blocks", "FLOAT16", 1, N, K), 90) == "reduce"


def test_an_operand_larger_than_the_limit_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    program = product_with(COLUMNS, "FLOAT16", 512, N, K)
    monkeypatch.setattr(stored_operands, "MOST_STORED_BYTES", 2 * N * K - 1)
    assert units(program, 90) == "mma"


@pytest.mark.parametrize("operands", OPERANDS)
def test_tiles_compute_whole_units_of_neighbours(operands: str) -> None:
    """Eight elements of FLOAT16: 16 bytes in shared memory."""
    (kernel,) = kernels_of(product_with(operands, "FLOAT16", 512, 512, 512)).kernels
    shape = Shape(kernel, aligned(kernel))
    assert shape.mode is CudaMode.MMA
    for side, operand in zip(shape.sides, shape.operands, strict=True):
        constants = side.constants()
        is_loaded = operand.operation is Operation.SOURCE
        assert (constants["COPIED"], constants["COMPUTED"]) == (int(is_loaded), int(not is_loaded))
        assert (constants["UNIT"], constants["PARTIAL"]) == (8, 0)


def test_units_end_with_the_operand() -> None:
    (kernel,) = kernels_of(product_with("relu(x) W", "FLOAT16", 40, 72, 100)).kernels
    constants = Shape(kernel, [16] * 3).sides[0].constants()
    assert (constants["UNIT"], constants["PARTIAL"], constants["COMPUTED"]) == (4, 0, 1)
    (kernel,) = kernels_of(product_with("x relu(W^T)", "FLOAT16", 40, 72, 99)).kernels
    constants = Shape(kernel, [16] * 3).sides[1].constants()
    assert (constants["UNIT"], constants["COMPUTED"]) == (1, 0)


def attention_with_bias(
    batch: int, tokens: int, size: int, *, stacked: str = "", shared: int = HEADS, type: str = "FLOAT16"
) -> Program:
    """Return attention of 12 heads, over `shared` heads of keys, whose queries, keys and values get a bias.
    `stacked`: those of "qkv" that lie in one tensor."""
    hidden = {"q": HEADS * size, "k": shared * size, "v": shared * size}
    names = {"q": "query", "k": "key", "v": "value"}
    inputs: dict[str, tuple[int, ...]]
    inputs = {names[each]: (batch, tokens, count) for each, count in hidden.items() if each not in stacked}
    if stacked:
        name = "stacked_" + "_".join(names[each] for each in stacked)
        inputs[name] = (batch, tokens, HEADS, len(stacked), size)
    inputs["bias"] = (sum(hidden.values()),)

    def build(*tensors: Any) -> Any:
        return dml.multihead_attention1(
            **dict(zip(inputs, tensors, strict=True)),
            scale=size**-0.5,
            query_head_count=HEADS,
            key_value_head_count=shared,
            mask_type="NONE",
        )

    return graph_program(build, *((type, sizes) for sizes in inputs.values()))


BIASES: list[tuple[dict[str, Any], str, str]] = [
    ({"batch": 1, "tokens": 128, "size": 64}, "mma_chain", "mma_chain"),
    ({"batch": 8, "tokens": 512, "size": 64}, "mma_chain", "pointwise wgmma_chain"),
    ({"batch": 8, "tokens": 512, "size": 64, "stacked": "qkv"}, "mma_chain", "pointwise wgmma_chain"),
    ({"batch": 8, "tokens": 512, "size": 64, "stacked": "qk"}, "mma_chain", "pointwise wgmma_chain"),
    ({"batch": 8, "tokens": 512, "size": 64, "stacked": "kv"}, "mma_chain", "pointwise wgmma_chain"),
    (
        {"batch": 8, "tokens": 512, "size": 64, "shared": 4},
        "pointwise mma_chain",
        "pointwise pointwise wgmma_chain",
    ),
    ({"batch": 2, "tokens": 4096, "size": 128}, "pointwise mma_chain", "pointwise wgmma_chain"),
    ({"batch": 8, "tokens": 512, "size": 64, "type": "FLOAT32"}, "fma_chain", "fma_chain"),
]
"""Forms of attention with a bias, and the kernels of them on compute capability 8.0 and 9.0."""


@pytest.mark.parametrize(("form", "ampere", "hopper"), BIASES, ids=[str(form) for form, *_ in BIASES])
def test_operands_of_attention_are_stored_where_that_takes_fewer_cycles(
    form: dict[str, Any], ampere: str, hopper: str
) -> None:
    program = attention_with_bias(**form)
    assert (units(program, 80), units(program, 90)) == (ampere, hopper)


def test_attention_of_many_tokens_stores_no_queries_where_it_reads_them_once() -> None:
    """Without warpgroups: keys and values are read once for each tile of queries."""
    program = attention_with_bias(2, 4096, 128)
    (stores, _) = plan(program, MACHINES[80]).kernels.kernels
    queries = next(number for number, each in enumerate(program.inputs) if len(each.sizes) == 3)
    assert queries not in {load.buffer for load in stores.loads}
    assert [store.type.name for store in stores.stores] == ["FLOAT16"] * 2


def test_one_kernel_stores_all_operands_of_attention_in_float16() -> None:
    stores, attention = plan(attention_with_bias(8, 512, 64), MACHINES[90]).kernels.kernels
    assert [store.type.name for store in stores.stores] == ["FLOAT16"] * 3
    assert {load.buffer for load in attention.loads} == {store.buffer for store in stores.stores}


def _activated(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (dml.activation_linear(each, alpha=2.0, beta=0.5) for each in (q, k, v))
    return dml.multihead_attention(q, k, v, scale=0.125, head_count=HEADS, mask_type="NONE")


def _rotated(q: Any, k: Any, v: Any, cosine: Any, sine: Any) -> Any:
    def rotated(x: Any) -> Any:
        heads = x.reshape((8, 512, HEADS, 64))
        a, b = heads[:, :, :, :32], heads[:, :, :, 32:]
        halves = [a * cosine - b * sine, b * cosine + a * sine]
        return dml.join(halves, axis=3).reshape(x.sizes)

    return dml.multihead_attention(rotated(q), rotated(k), v, scale=0.125, head_count=HEADS, mask_type="NONE")


def _normalized(q: Any, k: Any, v: Any) -> Any:
    def normalized(x: Any) -> Any:
        heads = x.reshape((8, 512, HEADS, 64))
        return dml.mean_variance_normalization2(
            heads, axes=[3], use_mean=False, use_variance=True, epsilon=1e-5
        ).reshape(x.sizes)

    return dml.multihead_attention(
        normalized(q), normalized(k), v, scale=0.125, head_count=HEADS, mask_type="NONE"
    )


@pytest.mark.parametrize(
    ("build", "more", "ampere", "hopper"),
    [
        (_activated, (), "mma_chain", "pointwise wgmma_chain"),
        (_rotated, (("FLOAT16", (8, 512, HEADS, 32)),) * 2, "pointwise mma_chain", "pointwise wgmma_chain"),
        (_normalized, (), "reduce reduce mma_chain", "reduce reduce wgmma_chain"),
    ],
)
def test_attention_of_computed_tensors_reaches_the_tensor_cores(
    build: Callable[..., Any], more: Any, ampere: str, hopper: str
) -> None:
    program = graph_program(build, *[("FLOAT16", (8, 512, HEADS * 64))] * 3, *more)
    assert (units(program, 80), units(program, 90)) == (ampere, hopper)


CASES = {case.name: case for case in operand_cases()}


@needs_compiler
@pytest.mark.parametrize(
    "name",
    [
        "contraction FLOAT16 of gelu(x) W, 72x136x96",
        "contraction FLOAT16 of gelu(x^T) tanh(W), misaligned",
        "contraction FLOAT16 of relu(x) W, 40x72x100",
        "contraction FLOAT16 of x W^T of uint4 in blocks, 33x41x96",
    ],
)
def test_tiles_compute_what_the_reference_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "stored_operands", lambda machine, kernel: ())
    tile = next(each for each in TILES if each.mode is CudaMode.MMA and each.rows == 64)
    with emulated():
        error, modes = worst_of(CASES[name], partial(in_tiles, tile, 1))
    assert set(modes) == {"mma"}
    assert error <= 1


def any_computed(_: CudaMachine, kernel: Kernel) -> Sequence[Node]:
    """Choose all computed operands of products, whatever that costs."""
    chain = ChainShape.of(kernel)
    if chain is not None:
        return stored_operands._computed(kernel, chain.values)
    if sum(node.operation is Operation.CONTRACTION for node in ordered(kernel.values)) != 1:
        return ()
    return stored_operands._computed(kernel, stored_operands._shape(kernel).operands)


@needs_compiler
@pytest.mark.parametrize("operands", ["gelu(x^T) tanh(W)", "x W^T of uint8 in blocks"])
def test_stored_operands_give_what_the_reference_does(operands: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "stored_operands", any_computed)
    case = Case(operands, product_with(operands, "FLOAT16", 40, 72, 64), deviation=1.0, absolute=2e-3)
    with emulated():
        error, modes = worst_of(case, planning.schedule)
    assert modes.count("pointwise") == (2 if "gelu" in operands else 1)
    assert error <= 1


def test_an_operand_of_several_products_is_stored_once() -> None:
    make: Callable[..., Any] = lambda x, a, b: dml.element_wise_add(  # noqa: E731
        *(dml.gemm(dml.activation_relu(x), each) for each in (a, b))
    )
    program = graph_program(make, *[("FLOAT16", (2048, 2048))] * 3)
    assert sorted(units(program, 90).split()) == ["pointwise", "wgmma", "wgmma"]


@needs_compiler
def test_stored_operands_of_attention_give_what_the_reference_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "stored_operands", any_computed)
    case = Case("", attention_with_bias(1, 40, 32, stacked="qkv"), deviation=0.5, absolute=2e-4)
    with emulated():
        error, modes = worst_of(case, planning.schedule)
    assert sorted(modes) == ["pointwise", "wgmma_chain"]
    assert error <= 1
