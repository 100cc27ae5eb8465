"""Nodes on float16 that become several operators, and compute in float32 between them.

Each DirectML operator rounds its result to its type. Between the operators of one ONNX node, float16 would
lose digits and overflow where the node does not.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from opendml.frontends.onnx.inference import inferred_outputs
from opendml.frontends.onnx.node import OnnxNode, nodes_of
from opendml.frontends.onnx.package import onnx
from opendml.frontends.onnx.registry import MICROSOFT, OWN
from opendml.frontends.onnx.values import Value

_HALF, _ELEMENT = np.dtype(np.float16), onnx.TensorProto.FLOAT16

_ONNX_OPERATORS = "AffineGrid DFT Einsum GridSample Mean Resize RotaryEmbedding STFT Sum Upsample"
_MICROSOFT_OPERATORS = (
    "BiasGelu BiasSplitGelu FastGelu RotaryEmbedding SkipLayerNormalization SkipSimplifiedLayerNormalization"
)
_SEVERAL_OPERATORS = frozenset(
    (domain, name)
    for domain, names in (("", _ONNX_OPERATORS), (MICROSOFT, _MICROSOFT_OPERATORS))
    for name in names.split()
)
"""Operators whose converters make several computing operators.

Attention is not among them: it keeps caches in their own type, and widens only scores.
"""


def is_wide(node: OnnxNode) -> bool:
    """Return whether a node becomes several computing operators."""
    return (node.domain, node.operator) in _SEVERAL_OPERATORS


def wide_nodes(node: OnnxNode, values: Mapping[str, Value], prefix: str) -> tuple[OnnxNode, ...] | None:
    """Return the node between conversions to float32 and back; None if it takes or makes no float16."""
    halves = {name for name in node.inputs if name in values and values[name].type == _HALF}
    made = {name for name in node.outputs if name}
    if not halves:
        return None
    if types := inferred_outputs(node, values):  # ONNX infers nothing for other domains.
        made &= {name for name, each in types.items() if each.tensor_type.elem_type == _ELEMENT}
    if not made:
        return None
    names = {name: f"{prefix}{name}" for name in (*halves, *made)}
    inputs, outputs = ([names.get(name, name) for name in some] for some in (node.inputs, node.outputs))
    before = [onnx.helper.make_node("Widen", [name], [names[name]], domain=OWN) for name in sorted(halves)]
    message = onnx.helper.make_node(node.operator, inputs, outputs, node.name, domain=node.domain)
    message.attribute.extend(node.message.attribute)
    after = [onnx.helper.make_node("Narrow", [names[name]], [name], domain=OWN) for name in sorted(made)]
    return nodes_of([*before, message, *after], {**node.opsets, OWN: 1})
