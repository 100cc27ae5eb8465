"""Element-wise values that follow a product: one kernel on the tensor cores, for every form that DirectML
allows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import descs
from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Kernel
from opendml.program.program import Program
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.runtime.program import program_of
from opendml.spec.fused_activation import fusable_since, fused_activations
from opendml.spec.operator_desc import OperatorDesc
from opendml.targets.cuda.launch import CudaLaunch
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.planning import compiled_program, plan
from opendml.targets.cuda.schedule import schedule
from tests.cuda.compiled import MACHINES
from tools.cuda_emulator import COMPILER, emulated
from tools.operator_case import graph_program

M, N, K = 512, 768, 640
FACTORS = ((1.0, 1.0), (0.5, 1.0), (1.0, 0.5), (0.5, 0.25), (0.0, 1.0), (0.5, 0.0))
STRIDES = {
    "whole": (N, 1),
    "row": (0, 1),
    "column": (1, 0),
    "number": (0, 0),
    "transposed": (1, M),
    "padded": (N + 8, 1),
}
"""The strides of C in elements, by its form."""
SHAPED = {"ACTIVATION_SOFTMAX", "ACTIVATION_LOG_SOFTMAX", "ACTIVATION_HARDMAX"}
"""Activations that are reductions."""


def modes(program: Program, capability: int) -> list[str]:
    """Return the modes of a program's kernels on a device of a compute capability."""
    planned = plan(program, MACHINES[capability])
    assert not planned.kernels.initializers
    return [mode for kernel in planned.launches for mode in kernel]


def gemm(
    type: dml.TensorDataType,
    c: str | None,
    alpha: float,
    beta: float,
    activation: OperatorDesc | None = None,
    batch: tuple[int, ...] = (),
    transforms: tuple[str, str] = ("NONE", "NONE"),
) -> OperatorDesc:
    """Return a GEMM with C in a form, perhaps without."""
    a = [*batch, K, M] if transforms[0] == "TRANSPOSE" else [*batch, M, K]
    b = [*batch, N, K] if transforms[1] == "TRANSPOSE" else [*batch, K, N]
    sizes = [*batch, M, N]
    addend = None
    if c is not None:
        addend = dml.TensorDesc(type, sizes, strides=[*(0 for _ in batch), *STRIDES[c]])
    return descs.Gemm(
        dml.TensorDesc(type, a),
        dml.TensorDesc(type, b),
        addend,
        dml.TensorDesc(type, sizes),
        trans_a=transforms[0],
        trans_b=transforms[1],
        alpha=alpha,
        beta=beta,
        fused_activation=activation,
    )


UNITS = {dml.FLOAT16: {80: "mma", 90: "wgmma"}, dml.FLOAT32: {80: "fma", 90: "wgmma_parts"}}


@pytest.mark.parametrize("type", UNITS, ids=lambda type: type.name)
@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("c", [None, *STRIDES])
def test_gemm_is_one_kernel_for_every_alpha_beta_and_form_of_c(
    type: dml.TensorDataType, capability: int, c: str | None
) -> None:
    for alpha, beta in FACTORS:
        program = program_of(gemm(type, c, alpha, beta))
        assert modes(program, capability) == [UNITS[type][capability]], (alpha, beta)


@pytest.mark.parametrize("type", UNITS, ids=lambda type: type.name)
def test_batches_and_transposed_operands_are_one_kernel(type: dml.TensorDataType) -> None:
    ways = ("NONE", "TRANSPOSE")
    for transforms, batch in itertools.product(itertools.product(ways, ways), ((3,), (2, 3))):
        desc = gemm(type, "row", 0.5, 0.25, batch=batch, transforms=transforms)
        assert modes(program_of(desc), 90) == [UNITS[type][90]]


def activations() -> Iterator[OperatorDesc]:
    """Yield the element-wise activations of GEMM."""
    for name in fused_activations():
        if fusable_since("GEMM", name) and name not in SHAPED and not name.endswith("MAX1"):
            make = getattr(descs, "".join(word.capitalize() for word in name.split("_")))
            needed = [each for each in signature(make).parameters.values() if each.default is each.empty]
            yield make(**{each.name: 0.5 for each in needed})


def test_every_fused_activation_stays_in_the_kernel_of_a_gemm() -> None:
    for activation, type in itertools.product(activations(), UNITS):
        desc = gemm(type, "whole", 0.5, 0.25, activation)
        assert modes(program_of(desc), 90) == [UNITS[type][90]], activation.operator


def test_float32_convolutions_keep_their_bias_and_activation() -> None:
    x, filters, y = ((2, 64, 28, 28), (128, 32, 3, 3), (2, 128, 28, 28))
    for activation in (None, descs.ActivationRelu(), descs.ElementWiseClip(min=0.0, max=6.0)):
        desc = descs.Convolution(
            *(dml.TensorDesc(dml.FLOAT32, sizes) for sizes in (x, filters, (1, 128, 1, 1), y)),
            mode="CROSS_CORRELATION",
            direction="FORWARD",
            strides=[1, 1],
            dilations=[1, 1],
            start_padding=[1, 1],
            end_padding=[1, 1],
            output_padding=[0, 0],
            group_count=2,
            fused_activation=activation,
        )
        assert modes(program_of(desc), 90) == ["fma"]


def quantized(type: dml.TensorDataType, *, zeros: bool, of_columns: bool) -> Iterator[OperatorDesc]:
    """Return products of integers with scales and zero points, of the columns or of the whole matrix."""
    a, b, y = ((1, 1, M, K), (1, 1, K, N), (1, 1, M, N))
    one, column = (1, 1, 1, 1), (1, 1, 1, N if of_columns else 1)
    rows, columns = (dml.TensorDesc(type, sizes) for sizes in (a, b))
    zero_a, zero_b = (dml.TensorDesc(type, sizes) if zeros else None for sizes in (one, column))
    scale_a, scale_b = (dml.TensorDesc(dml.FLOAT32, sizes) for sizes in (one, column))
    yield descs.MatrixMultiplyInteger(rows, zero_a, columns, zero_b, dml.TensorDesc(dml.INT32, y))
    yield descs.QuantizedLinearMatrixMultiply(
        *(rows, scale_a, zero_a, columns, scale_b, zero_b, scale_a, zero_a, dml.TensorDesc(type, y))
    )
    for result in (dml.FLOAT32, dml.FLOAT16):
        scales = [dml.TensorDesc(result, sizes) for sizes in (one, column)]
        for bias in (None, dml.TensorDesc(result, y)):
            yield descs.MatrixMultiplyIntegerToFloat(
                *(rows, scales[0], zero_a, columns, scales[1], zero_b, bias, dml.TensorDesc(result, y))
            )


@pytest.mark.parametrize("type", [dml.INT8, dml.UINT8], ids=lambda type: type.name)
def test_quantized_products_are_one_kernel(type: dml.TensorDataType) -> None:
    for zeros, of_columns in itertools.product((False, True), repeat=2):
        for desc in quantized(type, zeros=zeros, of_columns=of_columns):
            assert modes(program_of(desc), 80) == ["imma"], desc.operator
            # Warpgroups need columns that are contiguous along k, so these are copied first.
            assert modes(program_of(desc), 90)[-1] in ("imma", "wgmma_bytes"), desc.operator
            assert set(modes(program_of(desc), 90)[:-1]) <= {"transposed"}, desc.operator


def along_rows(bias: GraphTensor) -> GraphTensor:
    return bias.reinterpret((M, N), strides=(0, 1))


CHAINS: dict[str, Callable[..., Any]] = {
    "scaled, with a residual": lambda a, b, c, _: dml.element_wise_add(
        dml.element_wise_multiply(dml.gemm(a, b), 0.3), c
    ),
    "bias, activation and residual": lambda a, b, c, bias: dml.element_wise_add(
        dml.activation_gelu(dml.gemm(a, b, along_rows(bias), alpha=0.5, beta=2.0)), c
    ),
    "quantized": lambda a, b, c, bias: dml.cast(
        dml.element_wise_clip(dml.element_wise_round(dml.gemm(a, b, c, alpha=0.5)), min=-128, max=127),
        output_type="INT8",
    ),
    "scaled by columns": lambda a, b, c, scale: dml.element_wise_multiply(
        dml.gemm(a, b, alpha=0.5), along_rows(scale)
    ),
    "in another type": lambda a, b, c, _: dml.cast(dml.gemm(a, b, c, alpha=0.5), output_type="FLOAT32"),
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize(("capability", "unit"), [(80, "mma"), (90, "wgmma")])
def test_chains_of_operators_after_a_product_are_part_of_its_kernel(
    name: str, capability: int, unit: str
) -> None:
    sizes = ((M, K), (K, N), (M, N), (1, N))
    program = graph_program(CHAINS[name], *(("FLOAT16", each) for each in sizes))
    assert modes(program, capability) == [unit]


def test_a_normalized_sum_of_a_product_and_a_residual_is_stored_in_float16() -> None:
    program = graph_program(
        lambda a, b, c: dml.mean_variance_normalization2(
            dml.element_wise_add(dml.gemm(a, b, alpha=0.5), c),
            axes=[1],
            use_mean=True,
            use_variance=True,
            epsilon=1e-5,
        ),
        *(("FLOAT16", each) for each in ((M, K), (K, N), (M, N))),
    )
    planned = plan(program, MACHINES[90])
    assert [len(kernel.loads) for kernel in planned.kernels.kernels] == [3, 1]
    assert planned.kernels.arena_bytes == 2 * M * N


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("capability", [80, 90])
def test_scaled_products_with_a_scaled_addend_are_those_of_float64(capability: int) -> None:
    m, n, k = 40, 72, 64
    tensors = [dml.TensorDesc(dml.FLOAT16, sizes) for sizes in ((m, k), (k, n), (m, n))]
    c = dml.TensorDesc(dml.FLOAT16, (m, n), strides=(0, 1))
    program = program_of(descs.Gemm(*tensors[:2], c, tensors[2], alpha=0.5, beta=0.25))
    generator = np.random.default_rng(0)
    a, b, row, y = (
        generator.normal(size=sizes).astype(np.float16) for sizes in ((m, k), (k, n), (n,), (m, n))
    )
    with emulated():

        def scheduled(kernel: Kernel, machine: CudaMachine, alignments: Sequence[int]) -> CudaLaunch:
            return schedule(kernel, MACHINES[capability], alignments)

        instance = compiled_program(program, scheduler=scheduled).instantiate()
        for number, array in enumerate((a, b, row, y)):
            instance.bind(number, array.ctypes.data)
        instance.dispatch()
    wide = [array.astype(np.float64) for array in (a, b, row)]
    np.testing.assert_allclose(y, 0.5 * (wide[0] @ wide[1]) + 0.25 * wide[2], rtol=1e-3, atol=1e-5)


def test_scaled_float16_products_with_a_scaled_addend_are_one_kernel_on_the_cpu() -> None:
    """Targets fuse all that follows a product."""
    for alpha, beta in FACTORS:
        program = program_of(gemm(dml.FLOAT16, "whole", alpha, beta))
        assert [kernel.domain for kernel in fuse(program).kernels] == [(M, N, K)]
