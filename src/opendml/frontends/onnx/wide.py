"""Nodes on float16 that become several operators: float32 from their inputs to their outputs.

Each DirectML operator rounds its result to its type. Where one node of ONNX becomes several operators,
float16 between them would lose digits that the node does not lose, and overflow where its result does not.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import TensorProto, helper

from opendml.frontends.onnx.inference import inferred_outputs
from opendml.frontends.onnx.node import MICROSOFT, OWN, Node, nodes_of
from opendml.frontends.onnx.values import Value

_HALF, _ELEMENT = np.dtype(np.float16), TensorProto.FLOAT16

_SEVERAL_OPERATORS = frozenset(
    {
        ("", "AffineGrid"),
        ("", "DFT"),
        ("", "Einsum"),
        ("", "GridSample"),
        ("", "Mean"),
        ("", "Resize"),
        ("", "RotaryEmbedding"),
        ("", "STFT"),
        ("", "Sum"),
        ("", "Upsample"),
        (MICROSOFT, "BiasGelu"),
        (MICROSOFT, "BiasSplitGelu"),
        (MICROSOFT, "FastGelu"),
        (MICROSOFT, "RotaryEmbedding"),
        (MICROSOFT, "SkipLayerNormalization"),
        (MICROSOFT, "SkipSimplifiedLayerNormalization"),
    }
)
"""What converters make several operators of that compute. Not the kinds of attention: these keep caches in
their own type, and widen scores alone."""


def is_wide(node: Node) -> bool:
    """Whether a node on float16 becomes several operators that compute."""
    return (node.domain, node.operator) in _SEVERAL_OPERATORS


def wide_nodes(node: Node, values: Mapping[str, Value], prefix: str) -> tuple[Node, ...] | None:
    """Return the node between conversions to float32 and back; None if it takes or makes no float16."""
    halves = {name for name in node.inputs if name in values and values[name].type == _HALF}
    made = {name for name in node.outputs if name}
    if types := inferred_outputs(node, values):  # ONNX infers nothing of other domains
        made &= {name for name, each in types.items() if each.tensor_type.elem_type == _ELEMENT}
    if not halves or not made:
        return None
    names = {name: f"{prefix}{name}" for name in (*halves, *made)}
    inputs, outputs = ([names.get(name, name) for name in some] for some in (node.inputs, node.outputs))
    before = [helper.make_node("Widen", [name], [names[name]], domain=OWN) for name in sorted(halves)]
    message = helper.make_node(node.operator, inputs, outputs, node.name, domain=node.domain)
    message.attribute.extend(node.message.attribute)
    after = [helper.make_node("Narrow", [names[name]], [name], domain=OWN) for name in sorted(made)]
    return nodes_of([*before, message, *after], {**node.opsets, OWN: 1})
