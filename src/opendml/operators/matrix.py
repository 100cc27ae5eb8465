"""Products of matrices."""

from __future__ import annotations

from opendml.operators.quantization import aligned, exact_sum_type, less_zero_point, requantized
from opendml.operators.registry import defines, fused
from opendml.program.functions import multiply_add, rounded
from opendml.program.node import Node, contraction, convert
from opendml.program.scalar_type import ScalarType
from opendml.program.view import permuted, reshaped
from opendml.spec.enums import MatrixTransform
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc


@defines("GEMM")
def gemm(
    a: Node,
    b: Node,
    c: Node | None,
    *,
    trans_a: MatrixTransform,
    trans_b: MatrixTransform,
    alpha: float,
    beta: float,
    fused_activation: OperatorDesc | None,
) -> Node:
    """fused(alpha * (A B) + beta * C), A and B transposed where their transforms say so

    Products are added in float32. What a factor of 0 multiplies still counts where it is not finite.
    """
    rows = a if trans_a is MatrixTransform.NONE else _transposed(a)
    columns = b if trans_b is MatrixTransform.TRANSPOSE else _transposed(b)
    *batch, m, _ = rows.sizes
    n = columns.sizes[-2]
    result = product(rows, columns) * alpha
    if c is not None:
        result = multiply_add(reshaped(c, (*batch, m, n, 1)), beta, result)
    if fused_activation is not None and "SOFTMAX" in fused_activation.operator:
        return fused(fused_activation, reshaped(result, (*batch, m, n)))
    return reshaped(fused(fused_activation, result), (*batch, m, n))


@defines("MATRIX_MULTIPLY_INTEGER", stored=True)
def matrix_multiply_integer(a: Node, a_zero_point: Node | None, b: Node, b_zero_point: Node | None) -> Node:
    """the sums of (A - a_zero_point) (B - b_zero_point), in INT32

    The sums are exact; beyond INT32 they wrap.
    """
    return _product_of_integers(a, a_zero_point, b, b_zero_point, ScalarType.INT32)


@defines("MATRIX_MULTIPLY_INTEGER_TO_FLOAT", stored=True)
def matrix_multiply_integer_to_float(
    a: Node,
    a_scale: Node,
    a_zero_point: Node | None,
    b: Node,
    b_scale: Node,
    b_zero_point: Node | None,
    bias: Node | None,
) -> Node:
    """the sums of (A - a_zero_point) (B - b_zero_point) * (a_scale * b_scale) + bias

    Of 8-bit integers the sums are exact. Of wider ones the differences are rounded to float32, in which their
    products are added.
    """
    type = exact_sum_type(a.sizes[-1]) if a.type.bits == 8 else ScalarType.FLOAT32
    sums = _product_of_integers(a, a_zero_point, b, b_zero_point, type)
    scales = _product_of_scales(a_scale, b_scale, len(a.sizes))
    sums = convert(sums, ScalarType.FLOAT32)
    return sums * scales if bias is None else multiply_add(sums, scales, convert(bias, ScalarType.FLOAT32))


@defines("QUANTIZED_LINEAR_MATRIX_MULTIPLY", stored=True, output=True)
def quantized_linear_matrix_multiply(
    a: Node,
    a_scale: Node,
    a_zero_point: Node | None,
    b: Node,
    b_scale: Node,
    b_zero_point: Node | None,
    output_scale: Node,
    output_zero_point: Node | None,
    *,
    output: TensorDesc,
) -> Node:
    """clamp(round(y / output_scale) + output_zero_point) to the range of the output, where
    y = (A - a_zero_point) (B - b_zero_point) * (a_scale * b_scale)

    The sums are exact. NaN (0 / 0, say) gives 0.
    """
    rank = len(a.sizes)
    sums = _product_of_integers(a, a_zero_point, b, b_zero_point, exact_sum_type(a.sizes[-1]))
    scales = _product_of_scales(a_scale, b_scale, rank)
    zero_point = output_zero_point and aligned(output_zero_point, rank)
    return requantized(sums, scales, aligned(output_scale, rank), zero_point, output)


def _product_of_integers(
    a: Node, a_zero_point: Node | None, b: Node, b_zero_point: Node | None, type: ScalarType
) -> Node:
    """Return the product of two matrices without their zero points, in a type."""
    rank = len(a.sizes)
    # Differences of 32-bit integers need more digits than float32 has.
    exact = ScalarType.FLOAT64 if a.type.bits == 32 else type
    rows, columns = (
        convert(less_zero_point(each, zero and aligned(zero, rank), exact), type)
        for each, zero in ((a, a_zero_point), (b, b_zero_point))
    )
    return reshaped(product(rows, _transposed(columns)), (*rows.sizes[:-1], columns.sizes[-1]))


def _product_of_scales(a_scale: Node, b_scale: Node, rank: int) -> Node:
    """Return the scale of a product, in FLOAT32."""
    a, b = (convert(aligned(scale, rank), ScalarType.FLOAT32) for scale in (a_scale, b_scale))
    return rounded(a * b)


def product(rows: Node, columns: Node) -> Node:
    """Return the sums (..., M, N, 1) of products of rows (..., M, K) with columns (..., N, K)."""
    *batch, m, k = rows.sizes
    n = columns.sizes[-2]
    # Of (..., M, N, K), the rows have no N and the columns no M; K is summed.
    spread = reshaped(rows, (*batch, m, 1, k)), reshaped(columns, (*batch, 1, n, k))
    return contraction(*spread, [len(rows.sizes)])


def _transposed(x: Node) -> Node:
    """Return with the last two dimensions exchanged."""
    *leading, row, column = range(len(x.sizes))
    return permuted(x, (*leading, column, row))
