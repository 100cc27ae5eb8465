"""Nodes on float16 that become several operators: float32 from their inputs to their outputs.

Each DirectML operator rounds its result to its type. Where one node of ONNX becomes several operators,
float16 between them would lose digits that the node does not lose, and overflow where its result does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import helper

from opendml.frontends.onnx.node import MICROSOFT, OWN, Node, nodes_of
from opendml.frontends.onnx.values import Value

_HALF = np.dtype(np.float16)

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
    }
)
"""What converters make several operators of that compute. Not the kinds of attention: these keep caches in
their own type, and widen scores alone."""


def is_wide(node: Node) -> bool:
    """Whether a node on float16 becomes several operators that compute."""
    return (node.domain, node.operator) in _SEVERAL_OPERATORS


def wide_nodes(node: Node, values: Sequence[Value | None], prefix: str) -> tuple[Node, ...] | None:
    """Return the node between conversions to float32 and back, or None if no input is of float16."""
    halves = {i for i, value in enumerate(values) if value is not None and value.type == _HALF}
    if not halves:
        return None
    inputs = [f"{prefix}{i}" if i in halves else name for i, name in enumerate(node.inputs)]
    outputs = [prefix + name if name else "" for name in node.outputs]
    before = [helper.make_node("Widen", [node.inputs[i]], [inputs[i]], domain=OWN) for i in sorted(halves)]
    message = helper.make_node(node.operator, inputs, outputs, node.name, domain=node.domain)
    message.attribute.extend(node.message.attribute)
    after = [
        helper.make_node("Narrow", [wide], [name], domain=OWN)
        for name, wide in zip(node.outputs, outputs, strict=True)
        if name
    ]
    return nodes_of([*before, message, *after], {**node.opsets, OWN: 1})
