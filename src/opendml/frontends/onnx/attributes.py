"""Attributes of ONNX operators that a node lacks: their defaults, from ONNX's schemas."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from opendml.frontends.onnx.registry import MICROSOFT
from opendml.frontends.onnx.schemas import newest_schema_of, schema_of

_EXPERIMENTAL: Mapping[str, Mapping[str, Any]] = {
    "Affine": {"alpha": 1.0, "beta": 0.0},
    "Crop": {},
    "ImageScaler": {"scale": 1.0},
    "ParametricSoftplus ScaledTanh": {"alpha": 1.0, "beta": 1.0},
    "SimplifiedLayerNormalization": {"axis": -1, "epsilon": 1e-5, "stash_type": 1},
}
_OF_ONNX_RUNTIME: Mapping[str, Mapping[str, Any]] = {
    "Attention MultiHeadAttention QAttention": {"mask_filter_value": -10000.0},
    "DequantizeLinear QuantizeLinear": {"axis": 1},
    "DynamicQuantizeLSTM": {"direction": "forward"},
    "EmbedLayerNormalization SkipLayerNormalization SkipSimplifiedLayerNormalization": {"epsilon": 1e-12},
    "FusedConv": {"activation": "", "auto_pad": "NOTSET", "group": 1},
    "FusedGemm": {"activation": "", "alpha": 1.0, "beta": 1.0},
    "FusedMatMul QGemm TransposeMatMul": {"alpha": 1.0},
    "FusedMatMulActivation": {"activation": "", "alpha": 1.0},
    "GroupNorm SkipGroupNorm": {"channels_last": 1, "epsilon": 1e-5},
    "GroupQueryAttention": {"causal": 1, "local_window_size": -1},
    "MatMulNBits": {"bits": 4},
    "NhwcConv QLinearConv": {"auto_pad": "NOTSET", "group": 1},
    "NhwcMaxPool QLinearAveragePool": {"auto_pad": "NOTSET"},
    "QLinearLeakyRelu": {"alpha": 0.01},
    "QLinearReduceMean": {"keepdims": 1},
    "QLinearSoftmax": {"axis": -1, "opset": 13},
    "QuickGelu": {"alpha": 1.702},
    "RotaryEmbedding": {"scale": 1.0},
}
_WITHOUT_SCHEMA = {
    (domain, name): defaults
    for domain, table in (("", _EXPERIMENTAL), (MICROSOFT, _OF_ONNX_RUNTIME))
    for names, defaults in table.items()
    for name in names.split()
}
"""The defaults of operators that the `onnx` package has no schema of: experimental operators of old models,
and those of ONNX Runtime. Its documentation states the latter. What is not here has no default."""


@cache
def defaults_of(domain: str, operator: str, version: int) -> Mapping[str, Any]:
    """Return the defaults of an operator's attributes in a version, by name. Those without one are absent."""
    if (domain, operator) in _WITHOUT_SCHEMA or domain:
        return _WITHOUT_SCHEMA.get((domain, operator), {})
    # An operator set may be older than the operator.
    attributes = (schema_of(operator, version, domain) or newest_schema_of(operator)).attributes
    return {name: each.default for name, each in attributes.items() if each.default is not None}
