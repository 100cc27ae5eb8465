"""Programs for the checks of the CUDA target that multiply computed operands: activated, converted and
dequantized ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import opendml as dml
from opendml.program.carriers import carried
from opendml.program.program import Program
from tools.cuda_case import Case
from tools.operator_case import graph_program

BLOCK = 32
"""Elements along k that share a scale and a zero point."""
_ERROR = 4e-6
"""Allowed for each product that is summed, of the magnitudes that the inputs have."""


def dequantized(weights: Any, *parameters: Any) -> Any:
    """Return weights as floats, of a scale and perhaps a zero point for each block."""
    kind = "SCALE_ZERO_POINT" if len(parameters) > 1 else "SCALE"
    return dml.dequantize(weights, list(parameters), quantization_type=kind)


def product_with(operands: str, type: str, m: int, n: int, k: int) -> Program:
    """Return the program of a product of an m x k matrix with a k x n matrix, whose operands are computed as
    a name of `OPERANDS` says. Elements of 4 bits take a byte each."""
    make, *inputs = OPERANDS[operands](type, m, n, k)
    return carried(graph_program(make, *inputs))


OPERANDS: dict[str, Callable[[str, int, int, int], tuple[Any, ...]]] = {
    "relu(x) W": lambda type, m, n, k: (
        lambda x, w: dml.gemm(dml.activation_relu(x), w),
        *((type, (m, k)), (type, (k, n))),
    ),
    "gelu(x) W": lambda type, m, n, k: (
        lambda x, w: dml.gemm(dml.activation_gelu(x), w),
        *((type, (m, k)), (type, (k, n))),
    ),
    "x relu(W^T)": lambda type, m, n, k: (
        lambda x, w: dml.gemm(x, dml.activation_relu(w), trans_b="TRANSPOSE"),
        *((type, (m, k)), (type, (n, k))),
    ),
    "gelu(x^T) tanh(W)": lambda type, m, n, k: (
        lambda x, w: dml.gemm(dml.activation_gelu(x), dml.activation_tanh(w), trans_a="TRANSPOSE"),
        *((type, (k, m)), (type, (k, n))),
    ),
    "x cast(W)": lambda type, m, n, k: (
        lambda x, w: dml.gemm(x, dml.cast(w, output_type=type)),
        *((type, (m, k)), ("FLOAT32" if type == "FLOAT16" else "FLOAT16", (k, n))),
    ),
    "x W of int8, scales of columns": lambda type, m, n, k: (
        lambda x, w, scale: dml.gemm(x, dequantized(w, scale)),
        *((type, (m, k)), ("INT8", (k, n)), (type, (1, n))),
    ),
    "x W^T of uint8, zero points of rows": lambda type, m, n, k: (
        lambda x, w, scale, zero: dml.gemm(x, dequantized(w, scale, zero), trans_b="TRANSPOSE"),
        *((type, (m, k)), ("UINT8", (n, k)), (type, (n, 1)), ("UINT8", (n, 1))),
    ),
    "x W^T of uint8 in blocks": lambda type, m, n, k: (
        lambda x, w, scale, zero: dml.gemm(x, dequantized(w, scale, zero), trans_b="TRANSPOSE"),
        *((type, (m, k)), ("UINT8", (n, k)), (type, (n, k // BLOCK)), ("UINT8", (n, k // BLOCK))),
    ),
    "x W^T of uint4 in blocks": lambda type, m, n, k: (
        lambda x, w, scale, zero: dml.gemm(x, dequantized(w, scale, zero), trans_b="TRANSPOSE"),
        *((type, (m, k)), ("UINT4", (n, k)), (type, (n, k // BLOCK)), ("UINT4", (n, k // BLOCK))),
    ),
}
"""By what is multiplied, x (m, k) and W (k, n) of a type, a function of graph tensors and its inputs."""


def operand_cases() -> Iterator[Case]:
    """Yield all cases. Units of neighbours end within the sizes, and beyond some of them."""
    wide, odd = (72, 136, 96), (33, 41, 96)
    names = list(OPERANDS)
    runs = [("FLOAT16", name, wide) for name in names]
    runs += [("FLOAT16", name, odd) for name in names[::2]]
    runs += [("FLOAT32", name, wide) for name in names[1::3]]
    for type, name, sizes in runs:
        absolute = _ERROR * sizes[-1] * (256.0 if "int8" in name else 8.0)
        given = product_with(name, type, *sizes)
        label = f"contraction {type} of {name}, {'x'.join(map(str, sizes))}"
        yield Case(label, given, deviation=1.0, absolute=absolute)
    part = product_with("relu(x) W", "FLOAT16", 40, 72, 100)
    yield Case("contraction FLOAT16 of relu(x) W, 40x72x100", part, absolute=_ERROR * 800)
    again = product_with("gelu(x^T) tanh(W)", "FLOAT16", 40, 72, 64)
    yield Case("contraction FLOAT16 of gelu(x^T) tanh(W), misaligned", again, 1, absolute=_ERROR * 600)
    tokens, heads, size = 40, 3, 32
    hidden = heads * size
    yield Case(
        "chain FLOAT16 of queries, keys and values with a bias",
        graph_program(
            lambda q, k, v, bias: dml.multihead_attention(
                *(q, k, v),
                bias=bias,
                scale=size**-0.5,
                mask_filter_value=-1e4,
                head_count=heads,
                mask_type="NONE",
            ),
            *[("FLOAT16", (2, tokens, hidden))] * 3,
            ("FLOAT16", (3 * hidden,)),
        ),
        deviation=0.5,
        absolute=1e-5,
    )
