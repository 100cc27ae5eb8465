"""Attributes of ONNX operators that a node lacks: their defaults, from the schemas of the `onnx` package."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import onnx

from opendml.frontends.onnx.registry import MICROSOFT

_WITHOUT_SCHEMA: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("", "Affine"): {"alpha": 1.0, "beta": 0.0},
    ("", "Crop"): {},
    ("", "ImageScaler"): {"scale": 1.0},
    ("", "ParametricSoftplus"): {"alpha": 1.0, "beta": 1.0},
    ("", "ScaledTanh"): {"alpha": 1.0, "beta": 1.0},
    ("", "SimplifiedLayerNormalization"): {"axis": -1, "epsilon": 1e-5, "stash_type": 1},
    (MICROSOFT, "Attention"): {"mask_filter_value": -10000.0},
    (MICROSOFT, "DequantizeLinear"): {"axis": 1},
    (MICROSOFT, "EmbedLayerNormalization"): {"epsilon": 1e-12},
    (MICROSOFT, "FusedConv"): {"activation": "", "auto_pad": "NOTSET", "group": 1},
    (MICROSOFT, "FusedGemm"): {"activation": "", "alpha": 1.0, "beta": 1.0},
    (MICROSOFT, "FusedMatMul"): {"alpha": 1.0},
    (MICROSOFT, "FusedMatMulActivation"): {"activation": "", "alpha": 1.0},
    (MICROSOFT, "GroupNorm"): {"channels_last": 1, "epsilon": 1e-5},
    (MICROSOFT, "GroupQueryAttention"): {"causal": 1, "local_window_size": -1},
    (MICROSOFT, "MatMulNBits"): {"bits": 4},
    (MICROSOFT, "MultiHeadAttention"): {"mask_filter_value": -10000.0},
    (MICROSOFT, "NhwcConv"): {"auto_pad": "NOTSET", "group": 1},
    (MICROSOFT, "NhwcMaxPool"): {"auto_pad": "NOTSET"},
    (MICROSOFT, "QAttention"): {"mask_filter_value": -10000.0},
    (MICROSOFT, "QGemm"): {"alpha": 1.0},
    (MICROSOFT, "QLinearAveragePool"): {"auto_pad": "NOTSET"},
    (MICROSOFT, "QLinearConv"): {"auto_pad": "NOTSET", "group": 1},
    (MICROSOFT, "QLinearLeakyRelu"): {"alpha": 0.01},
    (MICROSOFT, "QLinearReduceMean"): {"keepdims": 1},
    (MICROSOFT, "QLinearSoftmax"): {"axis": -1, "opset": 13},
    (MICROSOFT, "QuantizeLinear"): {"axis": 1},
    (MICROSOFT, "QuickGelu"): {"alpha": 1.702},
    (MICROSOFT, "RotaryEmbedding"): {"scale": 1.0},
    (MICROSOFT, "SkipGroupNorm"): {"channels_last": 1, "epsilon": 1e-5},
    (MICROSOFT, "SkipLayerNormalization"): {"epsilon": 1e-12},
    (MICROSOFT, "SkipSimplifiedLayerNormalization"): {"epsilon": 1e-12},
    (MICROSOFT, "TransposeMatMul"): {"alpha": 1.0},
}
"""The defaults of operators that the `onnx` package has no schema of: experimental operators of old models,
and those of ONNX Runtime. Its documentation states the latter. What is not here has no default."""


@cache
def defaults_of(domain: str, operator: str, version: int) -> Mapping[str, Any]:
    """Return the defaults of an operator's attributes in a version, by name. Those without one are absent."""
    if (domain, operator) in _WITHOUT_SCHEMA or domain:
        return _WITHOUT_SCHEMA.get((domain, operator), {})
    try:
        schema = onnx.defs.get_schema(operator, version, domain)
    except onnx.defs.SchemaError:  # the operator set is older than the operator
        schema = onnx.defs.get_schema(operator, domain)
    defaults = {name: each.default_value for name, each in schema.attributes.items()}
    return {name: value_of(each) for name, each in defaults.items() if each.name}


def value_of(attribute: onnx.AttributeProto) -> Any:
    """Return the value of an attribute in Python's types. Tensors and graphs stay ONNX's messages."""
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if attribute.type == onnx.AttributeProto.STRINGS:
        return [each.decode("utf-8", "replace") for each in value]
    return list(value) if attribute.type in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS) else value
