"""PyTorch calls that compute what the operators of `cuda_contractions` compute, made from their descs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from opendml.spec.enums import ConvolutionDirection, MultiheadAttentionMaskType
from opendml.spec.operator_desc import OperatorDesc

TorchCall = Callable[..., Any]
"""Computes the output from the inputs in the desc's order. Inputs of FLOAT64 give the exact result."""
_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "ACTIVATION_RELU": torch.relu,
    "ACTIVATION_GELU": torch.nn.functional.gelu,
}
_CONVOLUTIONS = (
    (torch.nn.functional.conv1d, torch.nn.functional.conv_transpose1d),
    (torch.nn.functional.conv2d, torch.nn.functional.conv_transpose2d),
    (torch.nn.functional.conv3d, torch.nn.functional.conv_transpose3d),
)
"""Forward and backward functions, for one, two and three spatial dimensions."""


def torch_call(desc: OperatorDesc) -> TorchCall | None:
    """Return the PyTorch call for an operator, or None if there is none."""
    values: Any = desc
    if desc.operator == "GEMM":
        return partial(_multiplied, values)
    if desc.operator == "CONVOLUTION":
        return partial(_convolved, values)
    if desc.operator in ("MULTIHEAD_ATTENTION", "MULTIHEAD_ATTENTION1"):
        return partial(_attended, values)
    if desc.operator == "MATRIX_MULTIPLY_INTEGER" and values.a_zero_point_tensor is None:
        return _integers_multiplied
    return None


def _activated(desc: Any, result: Any) -> Any:
    fused = desc.fused_activation
    return result if fused is None else _ACTIVATIONS[fused.operator](result)


def _multiplied(desc: Any, a: Any, b: Any, c: Any = None) -> Any:
    a, b = (
        each.transpose(-1, -2) if turned else each for each, turned in ((a, desc.trans_a), (b, desc.trans_b))
    )
    result = torch.matmul(a, b)
    if desc.alpha != 1:
        result = result * desc.alpha
    if c is not None:
        result = result + (c if desc.beta == 1 else c * desc.beta)
    return _activated(desc, result)


def _convolved(desc: Any, x: Any, filters: Any, bias: Any = None) -> Any:
    forward, backward = _CONVOLUTIONS[len(desc.strides) - 1]
    assert desc.start_padding == desc.end_padding
    if bias is not None:
        bias = bias.flatten()
    if desc.direction is ConvolutionDirection.BACKWARD:
        spread = desc.output_padding, desc.group_count, desc.dilations
        return _activated(desc, backward(x, filters, bias, desc.strides, desc.start_padding, *spread))
    windows = desc.strides, desc.start_padding, desc.dilations, desc.group_count
    return _activated(desc, forward(x, filters, bias, *windows))


def _attended(desc: Any, q: Any, k: Any, v: Any, *further: Any) -> Any:
    """Compute the first output. The present keys and values are made, but not returned."""
    grouped = desc.operator.endswith("1")
    heads = desc.query_head_count if grouped else desc.head_count
    own = desc.key_value_head_count if grouped else heads
    q, k, v = (
        each.unflatten(2, (count, -1)).transpose(1, 2) for each, count in ((q, heads), (k, own), (v, own))
    )
    added = None
    if desc.mask_type is MultiheadAttentionMaskType.BOOLEAN:
        added, *further = further  # type: ignore[assignment]
        added = added.bool()
    elif desc.relative_position_bias_tensor is not None:
        added, *further = further  # type: ignore[assignment]
    if further:
        past_k, past_v = further
        k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
    results = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, added, scale=desc.scale, enable_gqa=own != heads
    )
    return results.transpose(1, 2).flatten(2)


def _integers_multiplied(a: Any, b: Any) -> Any:
    # _int_mm takes two dimensions, and exists for INT8 on CUDA devices alone.
    if a.dtype is torch.int8 and a.device.type == "cuda":
        return torch._int_mm(a[0, 0], b[0, 0])
    return torch.matmul(a.double(), b.double())
