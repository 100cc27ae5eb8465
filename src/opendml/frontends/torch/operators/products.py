"""Products of matrices."""

from __future__ import annotations

import torch

import opendml as dml
from opendml.frontends.torch.conversion import Conversion
from opendml.frontends.torch.registry import converts
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor

_aten = torch.ops.aten


@converts(_aten.mm.default, _aten.bmm.default)
def multiply(node: Conversion, a: GraphTensor, b: GraphTensor) -> GraphTensor:
    """a b"""
    return dml.gemm(a, b)


@converts(_aten.addmm.default, _aten.baddbmm.default)
def multiply_add(
    node: Conversion, c: GraphTensor, a: GraphTensor, b: GraphTensor, *, beta: float = 1, alpha: float = 1
) -> GraphTensor:
    """beta * c + alpha * a b; without beta, c does not count."""
    if beta == 0:
        return dml.gemm(a, b, alpha=float(alpha))
    return dml.gemm(a, b, repeated(c, node.sizes), alpha=float(alpha), beta=float(beta))
