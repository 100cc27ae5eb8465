"""Activations. Their gradients are decomposed by PyTorch."""

from __future__ import annotations

import math

import torch

import opendml as dml
from opendml.frontends.torch.conversion import Conversion, NotExpressible
from opendml.frontends.torch.registry import converts
from opendml.runtime.graphs.tensor import GraphTensor

_aten = torch.ops.aten


@converts(_aten.gelu.default)
def gelu(node: Conversion, x: GraphTensor, *, approximate: str = "none") -> GraphTensor:
    """x * P(X <= x) for a normal X, or its approximation by tanh."""
    if approximate == "none":
        return dml.activation_gelu(x)
    cube = dml.element_wise_multiply(dml.element_wise_multiply(x, x), x)
    inner = dml.element_wise_add(x, dml.element_wise_multiply(cube, 0.044715))
    bent = dml.activation_tanh(dml.element_wise_multiply(inner, math.sqrt(2 / math.pi)))
    return dml.element_wise_multiply(dml.element_wise_multiply(x, 0.5), dml.element_wise_add(bent, 1.0))


@converts(_aten.silu.default)
def silu(node: Conversion, x: GraphTensor) -> GraphTensor:
    """x * sigmoid(x)"""
    return dml.activation_swish(x)


@converts(_aten.hardswish.default)
def hard_swish(node: Conversion, x: GraphTensor) -> GraphTensor:
    """x * hardsigmoid(x)"""
    return dml.activation_hard_swish(x, alpha=1 / 6, beta=0.5)


@converts(_aten.hardsigmoid.default)
def hard_sigmoid(node: Conversion, x: GraphTensor) -> GraphTensor:
    """x / 6 + 1/2 within 0 and 1."""
    return dml.activation_hard_sigmoid(x, alpha=1 / 6, beta=0.5)


@converts(_aten.leaky_relu.default)
def leaky_relu(node: Conversion, x: GraphTensor, negative_slope: float = 0.01) -> GraphTensor:
    """x, below 0 times the slope."""
    return dml.activation_leaky_relu(x, alpha=float(negative_slope))


@converts(_aten.elu.default)
def elu(
    node: Conversion, x: GraphTensor, alpha: float = 1, scale: float = 1, input_scale: float = 1
) -> GraphTensor:
    """scale * x, below 0 scale * alpha * (exp(input_scale * x) - 1)"""
    if input_scale != 1:
        below = dml.activation_elu(dml.element_wise_multiply(x, float(input_scale)), alpha=float(alpha))
        bent = dml.element_wise_if(dml.element_wise_logical_greater_than(x, 0.0), x, below)
    else:
        bent = dml.activation_elu(x, alpha=float(alpha))
    return bent if scale == 1 else dml.element_wise_multiply(bent, float(scale))


@converts(_aten.softplus.default)
def softplus(node: Conversion, x: GraphTensor, beta: float = 1, threshold: float = 20) -> GraphTensor:
    """log(1 + exp(beta * x)) / beta; above PyTorch's threshold that is x to the last digits."""
    if beta < 1 or threshold < 20:
        raise NotExpressible(f"beta {beta} with threshold {threshold}")
    return dml.activation_softplus(x, steepness=float(beta))


@converts(_aten._softmax.default)
def softmax(node: Conversion, x: GraphTensor, dim: int, half_to_float: bool) -> GraphTensor:
    """exp(x) over its sum along a dimension."""
    return dml.activation_softmax1(node.cast(x, node.dtype), axes=[dim % len(x.sizes)])


@converts(_aten._log_softmax.default)
def log_softmax(node: Conversion, x: GraphTensor, dim: int, half_to_float: bool) -> GraphTensor:
    """The logarithm of the softmax along a dimension."""
    return dml.activation_log_softmax1(node.cast(x, node.dtype), axes=[dim % len(x.sizes)])
