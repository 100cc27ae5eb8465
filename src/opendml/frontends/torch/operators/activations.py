"""Activations. PyTorch decomposes their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

from opendml.frontends.common.calls import dml
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.torch.registry import Converter, Tensor, TorchNode, converts


@converts("gelu", to="ACTIVATION_GELU")
def gelu(node: TorchNode, x: Tensor, *, approximate: str = "none") -> Tensor:
    """Convert x * P(X <= x) for a normal X, or its approximation by tanh."""
    if approximate == "none":
        return dml.activation_gelu(x)
    inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
    return x * 0.5 * (dml.activation_tanh(inner) + 1.0)


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


def _softmax(function: Callable[..., Tensor]) -> Converter:
    def convert(node: TorchNode, x: Tensor, dim: int, half_to_float: bool) -> Tensor:
        return function(node.cast(x), axes=[dim % x.ndim])

    return convert


converts("_softmax", to=dml.activation_softmax1)(_softmax(dml.activation_softmax1))
converts("_log_softmax", to=dml.activation_log_softmax1)(_softmax(dml.activation_log_softmax1))
