"""Products of matrices."""

from __future__ import annotations

from opendml.frontends.common.calls import dml
from opendml.frontends.torch.registry import Tensor, TorchNode, converts
from opendml.runtime.graphs.repeat import repeated


@converts("mm", "bmm", to="GEMM")
def multiply(node: TorchNode, a: Tensor, b: Tensor) -> Tensor:
    """Convert the product of two matrices, or of stacks of them."""
    return dml.gemm(a, b)


@converts("addmm", "baddbmm", to="GEMM")
def multiply_add(
    node: TorchNode, c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """Convert beta * c + alpha * a b; without beta, c does not count."""
    if beta == 0:
        return dml.gemm(a, b, alpha=float(alpha))
    return dml.gemm(a, b, repeated(c, node.sizes), alpha=float(alpha), beta=float(beta))
