"""Activations of ONNX Runtime's own domain."""

from __future__ import annotations

import math

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.node import MICROSOFT
from opendml.frontends.onnx.operators.views import along
from opendml.frontends.onnx.registry import converts
from opendml.runtime.graphs.tensor import GraphTensor


def _with_bias(node: Conversion, number: int) -> GraphTensor:
    """Input 0 and a bias along its last axis, if there is one."""
    tensor = node.tensor(0)
    if not node.has(number):
        return tensor
    if node.sizes(number) != node.sizes(0)[-1:]:
        raise NotExpressible(f"bias of sizes {list(node.sizes(number))} for {list(node.sizes(0))}")
    rank = len(tensor.sizes)
    return dml.element_wise_add(tensor, along(node.tensor(number), rank - 1, rank))


@converts("Gelu", domain=MICROSOFT)
def gelu(node: Conversion) -> Result:
    """Exactly, by the error function."""
    return node.result(dml.activation_gelu(node.tensor(0)), node.sizes(0))


@converts("BiasGelu", domain=MICROSOFT)
def bias_gelu(node: Conversion) -> Result:
    """The same of a sum."""
    return dml.activation_gelu(_with_bias(node, 1))


@converts("FastGelu", domain=MICROSOFT)
def fast_gelu(node: Conversion) -> Result:
    """By the hyperbolic tangent: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3)))."""
    x = _with_bias(node, 1)
    square = dml.element_wise_multiply(x, x)
    inner = dml.element_wise_multiply(x, dml.activation_linear(square, alpha=0.044715, beta=1.0))
    turned = dml.activation_tanh(dml.element_wise_multiply(inner, math.sqrt(2 / math.pi)))
    half = dml.activation_linear(turned, alpha=0.5, beta=0.5)
    return node.result(dml.element_wise_multiply(x, half), node.sizes(0))


@converts("QuickGelu", domain=MICROSOFT)
def quick_gelu(node: Conversion) -> Result:
    """The input times the sigmoid of `alpha` times it."""
    scale = float(node.attribute("alpha", 1.702))
    return node.result(dml.activation_swish(node.tensor(0), sigmoid_input_scale=scale), node.sizes(0))


@converts("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(node: Conversion) -> Result:
    """The first half of a sum times GELU of its second half."""
    whole = _with_bias(node, 1)
    if whole.sizes[-1] % 2:
        raise NotExpressible(f"no halves of {whole.sizes[-1]} elements")
    half = whole.sizes[-1] // 2
    values, gates = dml.split(whole, axis=len(whole.sizes) - 1, sizes=[half, half])
    return dml.element_wise_multiply(values, dml.activation_gelu(gates))


@converts("BiasAdd", domain=MICROSOFT)
def bias_add(node: Conversion) -> Result:
    """The input, a bias along its last axis, and what was skipped."""
    if node.sizes(2) != node.sizes(0):
        raise NotExpressible(f"sizes {list(node.sizes(2))} of what was skipped for {list(node.sizes(0))}")
    return dml.element_wise_add(_with_bias(node, 1), node.tensor(2))
