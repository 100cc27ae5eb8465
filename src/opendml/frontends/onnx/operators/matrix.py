"""Matrix products."""

from __future__ import annotations

import math

import numpy as np

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.operators.views import permuted, shaped
from opendml.frontends.onnx.registry import converts
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType

_FLOATS = (TensorDataType.FLOAT32, TensorDataType.FLOAT16)


def product(a: GraphTensor, b: GraphTensor) -> GraphTensor:
    """The products of two stacks of matrices, whose sizes in front are repeated as NumPy repeats them.

    Raises:
        NotExpressible: sizes that do not fit together.
    """
    (rows, depth), (deep, columns) = a.sizes[-2:], b.sizes[-2:]
    if depth != deep:
        raise NotExpressible(f"matrices of sizes {list(a.sizes)} and {list(b.sizes)} have no product")
    batch = batch_sizes(a, b)
    if a.data_type not in _FLOATS:
        return _integer_product(a, b, (*batch, rows, columns))
    if math.prod(b.sizes[:-2]) == 1 and math.prod(a.sizes[:-2]) == math.prod(batch):
        merged = dml.gemm(shaped(a, (math.prod(batch) * rows, depth)), shaped(b, (depth, columns)))
    else:
        merged = dml.gemm(stacked(a, batch), stacked(b, batch))
    return shaped(merged, (*batch, rows, columns))


def batch_sizes(a: GraphTensor, b: GraphTensor) -> tuple[int, ...]:
    """The common sizes in front of those of the matrices.

    Raises:
        NotExpressible: they have none.
    """
    try:
        return np.broadcast_shapes(a.sizes[:-2], b.sizes[:-2])
    except ValueError as error:
        raise NotExpressible(f"sizes {list(a.sizes)} and {list(b.sizes)} do not broadcast") from error


def stacked(matrices: GraphTensor, batch: tuple[int, ...]) -> GraphTensor:
    """One stack of matrices, repeated to `batch`."""
    sizes = matrices.sizes[-2:]
    return shaped(repeated(matrices, (*batch, *sizes)), (math.prod(batch), *sizes))


def _integer_product(a: GraphTensor, b: GraphTensor, sizes: tuple[int, ...]) -> GraphTensor:
    """The same of integers, which GEMM does not take."""
    rank = len(sizes)
    left = shaped(a, [1] * (rank - len(a.sizes)) + [*a.sizes[:-1], 1, a.sizes[-1]])
    turned = permuted(b, [*range(len(b.sizes) - 2), len(b.sizes) - 1, len(b.sizes) - 2])
    right = shaped(turned, [1] * (rank - len(b.sizes)) + [*turned.sizes[:-2], 1, *turned.sizes[-2:]])
    summed = dml.reduce(dml.element_wise_multiply(left, right), function="SUM", axes=[rank])
    return shaped(summed, sizes)


@converts("MatMul")
def matmul(node: Conversion) -> Result:
    """A vector on the left is a row, one on the right a column."""
    a_sizes, b_sizes = node.sizes(0), node.sizes(1)
    if not a_sizes or not b_sizes:
        raise NotExpressible("a scalar is no matrix")
    a, b = node.tensor(0), node.tensor(1)
    result = product(
        shaped(a, (1, *a.sizes)) if len(a_sizes) == 1 else a,
        shaped(b, (*b.sizes, 1)) if len(b_sizes) == 1 else b,
    )
    rows = result.sizes[-2:-1] if len(a_sizes) > 1 else ()
    columns = result.sizes[-1:] if len(b_sizes) > 1 else ()
    return node.result(result, (*result.sizes[:-2], *rows, *columns))


@converts("Gemm")
def gemm(node: Conversion) -> Result:
    """Y = alpha A B + beta C."""
    alpha, beta = node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    transposed = [bool(node.attribute(name, 0)) for name in ("transA", "transB")]
    a, b, c = node.tensor(0), node.tensor(1), node.optional(2)
    rows = a.sizes[1 if transposed[0] else 0]
    columns = b.sizes[0 if transposed[1] else 1]
    if c is not None:
        c = repeated(c, (rows, columns))
    if a.data_type in _FLOATS:
        transforms = ["TRANSPOSE" if each else "NONE" for each in transposed]
        return dml.gemm(a, b, c, trans_a=transforms[0], trans_b=transforms[1], alpha=alpha, beta=beta)
    if (alpha, beta) != (1.0, 1.0):
        raise NotExpressible(f"alpha {alpha} and beta {beta} of integers")
    result = product(
        *(permuted(each, (1, 0)) if turned else each for each, turned in zip((a, b), transposed, strict=True))
    )
    return result if c is None else dml.element_wise_add(result, c)
