"""Activations. PyTorch decomposes their gradients."""

from __future__ import annotations

import math

from opendml import functions as dml
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.torch.registry import Tensor, TorchNode, converts


@converts("gelu", to="ACTIVATION_GELU")
def gelu(node: TorchNode, x: Tensor, *, approximate: str = "none") -> Tensor:
    """Convert x * P(X <= x) for a normal X, or its approximation by tanh."""
    if approximate == "none":
        return dml.activation_gelu(x)
    inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
    return x * 0.5 * (dml.activation_tanh(inner) + 1.0)


@converts("silu", to="ACTIVATION_SWISH")
def silu(node: TorchNode, x: Tensor) -> Tensor:
    """Convert x * sigmoid(x)."""
    return dml.activation_swish(x)


@converts("hardswish", to="ACTIVATION_HARD_SWISH")
def hard_swish(node: TorchNode, x: Tensor) -> Tensor:
    """Convert x * hardsigmoid(x)."""
    return dml.activation_hard_swish(x, alpha=1 / 6, beta=0.5)


@converts("hardsigmoid", to="ACTIVATION_HARD_SIGMOID")
def hard_sigmoid(node: TorchNode, x: Tensor) -> Tensor:
    """Convert x / 6 + 1/2 within 0 and 1."""
    return dml.activation_hard_sigmoid(x, alpha=1 / 6, beta=0.5)


@converts("leaky_relu", to="ACTIVATION_LEAKY_RELU")
def leaky_relu(node: TorchNode, x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Convert x, below 0 times the slope."""
    return dml.activation_leaky_relu(x, alpha=float(negative_slope))


@converts("elu", to="ACTIVATION_ELU")
def elu(node: TorchNode, x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    """Convert scale * x, below 0 scale * alpha * (exp(input_scale * x) - 1)."""
    bent = dml.activation_elu(x if input_scale == 1 else x * float(input_scale), alpha=float(alpha))
    bent = bent if input_scale == 1 else dml.element_wise_if(x > 0.0, x, bent)
    return bent if scale == 1 else bent * float(scale)


@converts("softplus", to="ACTIVATION_SOFTPLUS")
def softplus(node: TorchNode, x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """Convert log(1 + exp(beta * x)) / beta. Above PyTorch's threshold that is x to the last digits."""
    if beta < 1 or threshold < 20:
        raise NotExpressible(f"beta {beta} with threshold {threshold}")
    return dml.activation_softplus(x, steepness=float(beta))


@converts("_softmax", to="ACTIVATION_SOFTMAX1")
def softmax(node: TorchNode, x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Convert exp(x) over its sum along a dimension."""
    return dml.activation_softmax1(node.cast(x), axes=[dim % x.ndim])


@converts("_log_softmax", to="ACTIVATION_LOG_SOFTMAX1")
def log_softmax(node: TorchNode, x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Convert the logarithm of the softmax along a dimension."""
    return dml.activation_log_softmax1(node.cast(x), axes=[dim % x.ndim])
