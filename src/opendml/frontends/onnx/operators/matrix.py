"""Matrix products, also with what ONNX Runtime fuses to them."""

from __future__ import annotations

import math
from typing import NamedTuple

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import broadcast_sizes, permuted, shaped, with_rank
from opendml.frontends.common.types import FLOATS, NotExpressible
from opendml.frontends.onnx.conversion import OnnxConversion, Result
from opendml.frontends.onnx.operators.activations import activated
from opendml.frontends.onnx.operators.convolution import conv
from opendml.frontends.onnx.registry import MICROSOFT, converts
from opendml.frontends.onnx.values import Computed
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor


class Stacks(NamedTuple):
    """Two stacks of matrices.

    Args:
        a, b: the stacks, without dimensions of size 1 that vectors lack.
        batch: the common sizes in front of those of the matrices.
        sizes: ONNX's sizes of their product.
    """

    a: GraphTensor
    b: GraphTensor
    batch: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def flat(self) -> tuple[GraphTensor, GraphTensor]:
        """Both stacks repeated to the common sizes, in three dimensions."""
        return _flat(self.a, self.batch), _flat(self.b, self.batch)


def stacks_of(a: GraphTensor, b: GraphTensor, a_rank: int = 2, b_rank: int = 2) -> Stacks:
    """Return two operands of a product as stacks. A vector on the left is a row, one on the right a column.

    Args:
        a_rank, b_rank: ONNX's numbers of dimensions: 0 for scalars and 1 for vectors.

    Raises:
        NotExpressible: sizes that do not fit together, or a scalar.
    """
    if not a_rank or not b_rank:
        raise NotExpressible("a scalar is no matrix")
    a = shaped(a, (1, *a.sizes)) if a_rank == 1 else a
    b = shaped(b, (*b.sizes, 1)) if b_rank == 1 else b
    if a.sizes[-1] != b.sizes[-2]:
        raise NotExpressible(f"matrices of sizes {list(a.sizes)} and {list(b.sizes)} have no product")
    batch = broadcast_sizes(a.sizes[:-2], b.sizes[:-2])
    rows = a.sizes[-2:-1] if a_rank > 1 else ()
    return Stacks(a, b, batch, (*batch, *rows, *(b.sizes[-1:] if b_rank > 1 else ())))


def _flat(matrices: GraphTensor, batch: tuple[int, ...]) -> GraphTensor:
    sizes = matrices.sizes[-2:]
    return shaped(repeated(matrices, (*batch, *sizes)), (math.prod(batch), *sizes))


def product(a: GraphTensor, b: GraphTensor) -> GraphTensor:
    """Return the products of two stacks of matrices, whose sizes in front are repeated as NumPy does.

    Raises:
        NotExpressible: sizes that do not fit together.
    """
    return _product(stacks_of(a, b))


def _product(stacks: Stacks) -> GraphTensor:
    a, b, batch, _ = stacks
    sizes = (*batch, a.sizes[-2], b.sizes[-1])
    if a.data_type not in FLOATS:
        return _integer_product(a, b, sizes)
    if math.prod(b.sizes[:-2]) == 1 and math.prod(a.sizes[:-2]) == math.prod(batch):
        rows = math.prod(batch) * a.sizes[-2]
        return shaped(dml.gemm(shaped(a, (rows, a.sizes[-1])), shaped(b, b.sizes[-2:])), sizes)
    return shaped(dml.gemm(*stacks.flat), sizes)


def _integer_product(a: GraphTensor, b: GraphTensor, sizes: tuple[int, ...]) -> GraphTensor:
    """Return the product of integers, which GEMM does not take."""
    rank = len(sizes)
    left = with_rank(shaped(a, (*a.sizes[:-1], 1, a.sizes[-1])), rank + 1)
    right = with_rank(b, rank).permute([*range(rank - 2), rank - 1, rank - 2])
    right = shaped(right, (*right.sizes[:-2], 1, *right.sizes[-2:]))
    return shaped(dml.reduce(left * right, function="SUM", axes=[rank]), sizes)


@converts("MatMul", to="GEMM")
def matmul(node: OnnxConversion) -> Result:
    """Convert MatMul."""
    stacks = stacks_of(node.tensor(0), node.tensor(1), len(node.sizes(0)), len(node.sizes(1)))
    return node.result(_product(stacks), stacks.sizes)


@converts("Gemm", to="GEMM")
def gemm(node: OnnxConversion) -> Result:
    """Convert Gemm: alpha A B + beta C. Products of integers have no factors."""
    alpha, beta = node.attribute("alpha"), node.attribute("beta")
    a, b, c = node.tensor(0), node.tensor(1), node.optional(2)
    turned = node.flag("transA"), node.flag("transB")
    if c is not None:
        c = repeated(c, (a.sizes[turned[0]], b.sizes[not turned[1]]))
    if a.data_type in FLOATS:
        trans_a, trans_b = ("TRANSPOSE" if each else "NONE" for each in turned)
        return dml.gemm(a, b, c, trans_a=trans_a, trans_b=trans_b, alpha=alpha, beta=beta)
    if (alpha, beta) != (1.0, 1.0):
        raise NotExpressible(f"alpha {alpha} and beta {beta} of integers")
    result = product(a.T if turned[0] else a, b.T if turned[1] else b)
    return result if c is None else result + c


class ChannelsLast(OnnxConversion):
    """A node whose input 0 has its channels last, seen as if they were first."""

    def __init__(self, node: OnnxConversion) -> None:
        super().__init__(node.node, node.graph, node._values, node._tensors)

    def sizes(self, number: int) -> tuple[int, ...]:
        """Return the sizes of an input, with the channels of input 0 first."""
        sizes = super().sizes(number)
        return sizes if number else (*sizes[:1], *sizes[-1:], *sizes[1:-1])

    def tensor(self, number: int, rank: int | None = None) -> GraphTensor:
        """Return an input, with the channels of input 0 first."""
        tensor = super().tensor(number, rank)
        last = len(tensor.sizes) - 1
        return tensor if number else permuted(tensor, (0, last, *range(1, last)))

    def turned(self, result: Result) -> Result:
        """Return the first tensor of a result with its channels last."""
        tensor = tensor_of(result[0] if isinstance(result, tuple) else result)
        return permuted(tensor, (0, *range(2, len(tensor.sizes)), 1))


def tensor_of(result: object) -> GraphTensor:
    """Return the tensor of a converter's result.

    Raises:
        NotExpressible: it is known, as what has no elements is.
    """
    found = result.tensor if isinstance(result, Computed) else result
    if not isinstance(found, GraphTensor):
        raise NotExpressible("input 0 or the result has no elements")
    return found


def _activated(node: OnnxConversion, tensor: GraphTensor) -> GraphTensor:
    names = [f"activation_{name}" for name in ("alpha", "beta", "gamma")]
    return activated(tensor, node.attribute("activation"), [node.attribute(name) for name in names])


def _operand(node: OnnxConversion, number: int, which: str) -> GraphTensor:
    """Return a stack of matrices, transposed as the attributes say; a vector is not."""
    tensor = node.tensor(number)
    order = list(range(len(tensor.sizes)))
    if len(order) > 2 and node.flag(f"transBatch{which}"):
        order = [*order[1:-1], order[0], order[-1]]
    if len(order) > 1 and node.flag(f"trans{which}"):
        order[-2:] = reversed(order[-2:])
    return permuted(tensor, order)


@converts("TransposeMatMul", "FusedMatMul", domain=MICROSOFT, to="GEMM")
def fused_matmul(node: OnnxConversion) -> Computed:
    """Convert `alpha` times the product of matrices, each of which may be transposed."""
    operands = _operand(node, 0, "A"), _operand(node, 1, "B")
    stacks = stacks_of(*operands, len(node.sizes(0)), len(node.sizes(1)))
    return node.result(dml.gemm(*stacks.flat, alpha=float(node.attribute("alpha"))), stacks.sizes)


@converts("FusedMatMulActivation", domain=MICROSOFT, to="GEMM")
def fused_matmul_activation(node: OnnxConversion) -> Result:
    """Convert FusedMatMul with an activation."""
    result = fused_matmul(node)
    return node.result(_activated(node, result.tensor), result.sizes)


@converts("FusedGemm", domain=MICROSOFT, to="GEMM")
def fused_gemm(node: OnnxConversion) -> Result:
    """Convert Gemm with an activation."""
    return _activated(node, tensor_of(gemm(node)))


@converts("FusedConv", domain=MICROSOFT, to="CONVOLUTION")
def fused_conv(node: OnnxConversion) -> Result:
    """Convert Conv, a tensor that is added to it, and an activation."""
    result = tensor_of(conv(node))
    result = result + node.tensor(3) if node.has(3) else result
    return activated(result, node.attribute("activation"), node.attribute("activation_params") or [])


@converts("NhwcConv", domain=MICROSOFT, to="CONVOLUTION")
def nhwc_conv(node: OnnxConversion) -> Result:
    """Convert Conv of an input with its channels last; the filter has them behind its outputs."""
    view = ChannelsLast(node)
    if node.sizes(1)[1] * node.attribute("group") != view.sizes(0)[1]:
        raise NotExpressible(f"a filter of sizes {list(node.sizes(1))} for {list(node.sizes(0))}")
    return view.turned(conv(view))
