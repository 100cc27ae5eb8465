"""Products of matrices."""

from __future__ import annotations

from opendml.operators.registry import defines, fused
from opendml.program.functions import multiply_add
from opendml.program.node import Node, contraction
from opendml.program.view import permuted, reshaped
from opendml.spec.enums import MatrixTransform
from opendml.spec.operator_desc import OperatorDesc


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
    *batch, m, k = rows.sizes
    n = columns.sizes[-2]
    # Of (..., M, N, K), A has no N and B no M; K is summed.
    spread = reshaped(rows, (*batch, m, 1, k)), reshaped(columns, (*batch, 1, n, k))
    result = contraction(*spread, [len(a.sizes)]) * alpha
    if c is not None:
        result = multiply_add(reshaped(c, (*batch, m, n, 1)), beta, result)
    if fused_activation is not None and "SOFTMAX" in fused_activation.operator:
        return fused(fused_activation, reshaped(result, (*batch, m, n)))
    return reshaped(fused(fused_activation, result), (*batch, m, n))


def _transposed(x: Node) -> Node:
    """With the last two dimensions exchanged."""
    *leading, row, column = range(len(x.sizes))
    return permuted(x, (*leading, column, row))
