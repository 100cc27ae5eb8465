"""Matrix products and convolutions of ONNX Runtime's own domain, with activations."""

from __future__ import annotations

from collections.abc import Sequence

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.node import MICROSOFT
from opendml.frontends.onnx.operators.convolution import conv
from opendml.frontends.onnx.operators.matrix import batch_sizes, gemm, stacked
from opendml.frontends.onnx.operators.views import permuted, shaped
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import Computed
from opendml.runtime.graphs.tensor import GraphTensor


class ChannelsLast(Conversion):
    """A node whose input 0 has its channels last, seen as if they were first."""

    def __init__(self, node: Conversion) -> None:
        super().__init__(node.node, node.graph, node._values, node._tensors)

    def sizes(self, number: int) -> tuple[int, ...]:
        sizes = super().sizes(number)
        return sizes if number else (*sizes[:1], *sizes[-1:], *sizes[1:-1])

    def tensor(self, number: int, dimensions: int | None = None) -> GraphTensor:
        tensor = super().tensor(number, dimensions)
        rank = len(tensor.sizes)
        return tensor if number else permuted(tensor, (0, rank - 1, *range(1, rank - 1)))

    def turned(self, result: Result) -> Result:
        """A result with its channels last."""
        tensor = tensor_of(result)
        return permuted(tensor, (0, *range(2, len(tensor.sizes)), 1))


def tensor_of(result: Result) -> GraphTensor:
    """The one tensor that a converter returned.

    Raises:
        NotExpressible: it is known, as what has no elements is, and none of the graph.
    """
    found = result.tensor if isinstance(result, Computed) else result
    if not isinstance(found, GraphTensor):
        raise NotExpressible("input 0 or the result has no elements")
    return found


def activated(name: str, tensor: GraphTensor, parameters: Sequence[float | None]) -> GraphTensor:
    """A tensor behind the activation that a fused node names; "" for none.

    Args:
        parameters: the activation's attributes in their order (alpha, beta); None for those left out.

    Raises:
        NotExpressible: there is no such activation.
    """
    first, second = (*parameters, None, None)[:2]
    match name:
        case "":
            return tensor
        case "Relu":
            return dml.activation_relu(tensor)
        case "Sigmoid":
            return dml.activation_sigmoid(tensor)
        case "Tanh":
            return dml.activation_tanh(tensor)
        case "Softplus":
            return dml.activation_softplus(tensor)
        case "Softsign":
            return dml.activation_softsign(tensor)
        case "LeakyRelu":
            return dml.activation_leaky_relu(tensor, alpha=0.01 if first is None else first)
        case "Elu":
            return dml.activation_elu(tensor, alpha=1.0 if first is None else first)
        case "ThresholdedRelu":
            return dml.activation_thresholded_relu(tensor, alpha=1.0 if first is None else first)
        case "HardSigmoid":
            alpha, beta = 0.2 if first is None else first, 0.5 if second is None else second
            return dml.activation_hard_sigmoid(tensor, alpha=alpha, beta=beta)
        case "Clip" if first is not None and second is not None:
            return dml.element_wise_clip(tensor, min=first, max=second)
        case _:
            raise NotExpressible(f"activation {name!r} with {list(parameters)}")


def _activated(node: Conversion, tensor: GraphTensor) -> GraphTensor:
    names = [f"activation_{name}" for name in ("alpha", "beta", "gamma")]
    return activated(
        node.attribute("activation", ""), tensor, [node.node.attributes.get(name) for name in names]
    )


def _operand(node: Conversion, number: int, which: str) -> GraphTensor:
    """A stack of matrices, transposed as the attributes say; a vector is not."""
    tensor = node.tensor(number)
    order = list(range(len(tensor.sizes)))
    if len(order) > 2 and node.attribute(f"transBatch{which}", 0):
        order = [*order[1:-1], order[0], order[-1]]
    if len(order) > 1 and node.attribute(f"trans{which}", 0):
        order[-2:] = reversed(order[-2:])
    return permuted(tensor, order)


@converts("TransposeMatMul", domain=MICROSOFT)
@converts("FusedMatMul", domain=MICROSOFT)
def fused_matmul(node: Conversion) -> Result:
    """`alpha` times the product of matrices, each of which may be transposed."""
    if not node.sizes(0) or not node.sizes(1):
        raise NotExpressible("a scalar is no matrix")
    a, b = _operand(node, 0, "A"), _operand(node, 1, "B")
    is_row, is_column = len(a.sizes) == 1, len(b.sizes) == 1
    a, b = shaped(a, (1, *a.sizes)) if is_row else a, shaped(b, (*b.sizes, 1)) if is_column else b
    if a.sizes[-1] != b.sizes[-2]:
        raise NotExpressible(f"matrices of sizes {list(a.sizes)} and {list(b.sizes)} have no product")
    batch = batch_sizes(a, b)
    result = dml.gemm(stacked(a, batch), stacked(b, batch), alpha=float(node.attribute("alpha", 1.0)))
    rows, columns = a.sizes[-2:-1], b.sizes[-1:]
    return node.result(result, (*batch, *(() if is_row else rows), *(() if is_column else columns)))


@converts("FusedMatMulActivation", domain=MICROSOFT)
def fused_matmul_activation(node: Conversion) -> Result:
    """The same with an activation."""
    result = fused_matmul(node)
    assert isinstance(result, Computed)
    return node.result(_activated(node, result.tensor), result.sizes)


@converts("FusedGemm", domain=MICROSOFT)
def fused_gemm(node: Conversion) -> Result:
    """Gemm with an activation."""
    return _activated(node, tensor_of(gemm(node)))


@converts("FusedConv", domain=MICROSOFT)
def fused_conv(node: Conversion) -> Result:
    """Conv, what is added to it, and an activation."""
    result = tensor_of(conv(node))
    if node.has(3):
        result = dml.element_wise_add(result, node.tensor(3))
    return activated(node.attribute("activation", ""), result, node.attribute("activation_params", []))


@converts("NhwcConv", domain=MICROSOFT)
def nhwc_conv(node: Conversion) -> Result:
    """Conv of an input with its channels last; the filter has them behind its outputs."""
    view = ChannelsLast(node)
    if node.sizes(1)[1] * node.attribute("group", 1) != view.sizes(0)[1]:
        raise NotExpressible(f"a filter of sizes {list(node.sizes(1))} for {list(node.sizes(0))}")
    return view.turned(conv(view))
